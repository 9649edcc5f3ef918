"""Numbers, and names with numbers, as people type them."""

import math
import re
from typing import Any

from multiplay.errors import InvalidInput

# Lyon 3, Lyon: 3, Lyon = 3; a comma may stand in a number, and is refused there
LINE = re.compile(r"(?P<name>.*?)[\s:=;]+(?P<number>[^\s:=;]+)")
LONGEST_NAME = 80  # letters
MOST_LINES = 500


def a_number(name: str, text: str) -> float:
    """Return a number, whole ones as integers."""
    typed = text.strip()
    try:
        value = int(typed) if re.fullmatch(r"[+-]?\d{1,15}", typed) else float(typed)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in typed:
        hint = "Write 120 or 120.5, with a dot." if "," in typed else "Write 120, for example."
        raise InvalidInput(name, "a number", repr(text)[:60] if typed else "nothing", hint)
    return value


def a_whole_number(name: str, text: str) -> int:
    """Return a whole number of at least 0."""
    value = a_number(name, text)
    if not isinstance(value, int) or value < 0:
        expected = "a whole number of at least 0"
        raise InvalidInput(name, expected, repr(text.strip())[:60], "Write 3, for example.")
    return value


def named_numbers(name: str, text: str, whole: bool = True) -> dict[str, float]:
    """Return numbers by name, from lines such as ``Lyon 3``.

    Examples
    --------
    >>> named_numbers("supply", "Lyon 3" + chr(10) + "Le Havre: 2")
    {'Lyon': 3, 'Le Havre': 2}
    """
    found: dict[str, float] = {}
    lines = [(place, line.strip()) for place, line in enumerate(text.splitlines(), 1)]
    used = [(place, line) for place, line in lines if line]
    if not used:
        hint = "Write one in each line, such as: Lyon 3"
        raise InvalidInput(name, "a name and a number in each line", "nothing", hint)
    if len(used) > MOST_LINES:
        hint = "Use the interface for programs for more."
        raise InvalidInput(name, f"at most {MOST_LINES} lines", f"{len(used)}", hint)
    for place, line in used:
        match = LINE.fullmatch(line)
        called = "" if match is None else match["name"].strip()
        if match is None or not called:
            hint = "Write the name first, then the number: Lyon 3"
            expected = f"a name and a number in line {place}"
            raise InvalidInput(name, expected, repr(line[:60]), hint)
        if called in found:
            hint = "Give everybody another name."
            raise InvalidInput(name, "every name once", f"{called!r} twice", hint)
        if len(called) > LONGEST_NAME or not called.isprintable() or "->" in called:
            expected = f"in line {place} a name of at most {LONGEST_NAME} letters, without ->"
            raise InvalidInput(name, expected, repr(called[:60]), "Use a shorter name.")
        read = a_whole_number if whole else a_number
        try:
            found[called] = read(name, match["number"])
        except InvalidInput as error:
            expected = f"{error.expected} in line {place}"
            raise InvalidInput(name, expected, error.got, error.hint) from None
    return found


def as_lines(names: list[str], values: list[Any]) -> str:
    """Return names and numbers as they would be typed."""
    return "\n".join(f"{name} {value}" for name, value in zip(names, values, strict=True))
