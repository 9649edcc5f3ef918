"""What people write behind options, as numbers and names."""

import json
from collections.abc import Iterable
from typing import Any

from multiplay.errors import InvalidInput


def names(option: str, text: str) -> list[str]:
    """Return names with commas between them.

    Examples
    --------
    >>> names("--suppliers", "Lyon, Lille")
    ['Lyon', 'Lille']
    """
    found = [part.strip() for part in text.split(",")]
    if "" in found:
        hint = f"Write {option} Lyon,Lille, for example."
        raise InvalidInput(option, "names with commas between them", repr(text), hint)
    return found


def numbers(option: str, text: str) -> list[int | float]:
    """Return numbers with commas between them; whole ones as integers.

    Examples
    --------
    >>> numbers("--weights", "3, 4,0.5")
    [3, 4, 0.5]
    """
    return [_number(option, part, text) for part in text.split(",")]


def named_numbers(option: str, text: str) -> tuple[list[str] | None, list[int | float]]:
    """Return numbers, with their names if they have some.

    Examples
    --------
    >>> named_numbers("--supply", "Lyon=1,Lille=4")
    (['Lyon', 'Lille'], [1, 4])
    >>> named_numbers("--supply", "1,4")
    (None, [1, 4])
    """
    if "=" not in text:
        return None, numbers(option, text)
    parts = [part.rpartition("=") for part in text.split(",")]
    found = names(option, ",".join(name for name, _, _ in parts))
    return found, [_number(option, number, text) for _, _, number in parts]


def pair(option: str, text: str | None) -> tuple[float, float] | None:
    """Return two numbers, if there are some."""
    if text is None:
        return None
    found = numbers(option, text)
    if len(found) != 2:
        hint = f"Write {option} 0,250, for example."
        raise InvalidInput(option, "two numbers, low and high", repr(text), hint)
    return found[0], found[1]


def units(option: str, texts: Iterable[str]) -> dict[str, int]:
    """Return units by arm, from texts such as ``Lyon->north=2``; a name may have a ``=``.

    Examples
    --------
    >>> units("--fixed", ["Lyon->north=2", "a=b=1"])
    {'Lyon->north': 2, 'a=b': 1}
    """
    found: dict[str, int] = {}
    for text in texts:
        arm, _, number = text.rpartition("=")
        if not arm or not number.strip().isdecimal():
            hint = f"Write {option} 'Lyon->north=2', with the quotes."
            raise InvalidInput(option, "an arm and its units", repr(text), hint)
        if arm.strip() in found:
            raise InvalidInput(option, "every arm once", repr(arm), "Leave one of the two out.")
        found[arm.strip()] = int(number)
    return found


def plain_data(option: str, text: str) -> Any:
    """Return what JSON says."""
    try:
        return json.loads(text)
    except ValueError as error:
        hint = f"""Write {option} '{{"Lyon->north": [120, 95, null]}}', for example."""
        raise InvalidInput(option, "JSON", f"{text[:60]!r} ({error})", hint) from None


def _number(option: str, part: str, text: str) -> int | float:
    try:
        return int(part)
    except ValueError:
        try:
            return float(part)
        except ValueError:
            hint = f"Write {option} 1,4,5, for example, with a dot in 0.5."
            raise InvalidInput(
                option, "numbers with commas between them", repr(text), hint
            ) from None
