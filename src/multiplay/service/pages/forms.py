"""Forms of the pages: user input, the data that it describes, and the errors in it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from multiplay import policies
from multiplay._support.csv_format import number_in
from multiplay._support.dates import moment_of
from multiplay._support.formatting import number
from multiplay._support.hints import Surface, rendered
from multiplay._support.words import Words
from multiplay.errors import InvalidInput
from multiplay.learner.reports import Reports

MISSING = "-"  # a unit that was not reported
RESERVED = (".", "..")  # names with a meaning of their own in a URL
# Lyon 3, Lyon: 3, Lyon = 3; a comma is part of a number
LINE = re.compile(r"(?P<name>.*?)[\s:=;]+(?P<number>[^\s:=;]+)")
AMBIGUOUS = re.compile(r"[-+]?[1-9]\d{0,2}[.,]\d{3}")  # one thousand and more, or three decimals
NUMBER_RULE = "Write 1234.5, 1234,50 or 1.234,50 €."
SIGN = re.compile(  # of a currency, beside an amount
    r"(?<=\d)\s*(?:[€$£¥]|(?:EUR|USD|GBP|CHF)\b)|[€$£¥]\s*(?=[-+]?\d)", re.IGNORECASE
)
LONGEST_NAME, LONGEST_LINE = 80, 400  # characters
MOST_LINES = 500

KINDS = {
    "transport": "Transport: ship units from suppliers to customers",
    "knapsack": "Knapsack: pack items with weights up to a capacity",
    "budget": "Budget: allocate a number of units to several uses",
}


class PolicyChoice(NamedTuple):
    """A policy that the form of a new study offers, with its settings as plain data."""

    title: str
    words: str
    plain: dict[str, Any]


POLICIES = {
    "PooledCTS": PolicyChoice(
        "Lanes learn from each other, changes are followed (PooledCTS)",
        "The default. It tries a lane as far as what the lanes usually cost leaves room for it to "
        "be better, and forgets the costs of a lane before a change.",
        {"type": "PooledCTS", "memory": {"type": "Changes"}},
    ),
    "persists": PolicyChoice(
        "Lanes learn from each other, costs that persist are followed (PooledCTS)",
        "For costs that stay high or low for some days: it plans for the next day, from what the "
        "last ones were like. The preview of a table says whether yours do.",
        {"type": "PooledCTS", "memory": {"type": "Persists"}},
    ),
    "constant": PolicyChoice(
        "Lanes learn from each other, changes are ignored (PooledCTS)",
        "For costs that vary by chance only: all observations count alike.",
        {"type": "PooledCTS"},
    ),
    "BootstrapCTS": PolicyChoice(
        "Thompson sampling that follows changes (BootstrapCTS)",
        "For lanes that have nothing to do with each other: each is learned alone.",
        {"type": "BootstrapCTS", "memory": {"type": "Changes"}},
    ),
    "GenCTS": PolicyChoice(
        "Thompson sampling of the paper (GenCTS)",
        "For costs of 0 or 1. It tries as much as if every cost were all or nothing.",
        {"type": "GenCTS"},
    ),
    "GenLBINFV": PolicyChoice(
        "Best of both worlds (GenLBINFV)",
        "For costs that may change suddenly or adversarially. It learns more slowly.",
        {"type": "GenLBINFV"},
    ),
    "LinTS": PolicyChoice(
        "Linear Thompson sampling (LinTS)",
        "For studies that observe only the total of a day, not the cost of each unit.",
        {"type": "LinTS"},
    ),
}


def policy_title(brief: str) -> str:
    """Return the title of a policy that the form offers, or its text.

    Examples
    --------
    >>> policy_title("PooledCTS(memory=Changes())"), policy_title("CombUCB()")
    ('Lanes learn from each other, changes are followed (PooledCTS)', 'CombUCB()')
    """
    for one in POLICIES.values():
        memory = f"memory={one.plain['memory']['type']}()" if "memory" in one.plain else ""
        if brief == f"{one.plain['type']}({memory})":
            return one.title
    return brief


class UploadedFile(NamedTuple):
    """A file that a form sent: its name, and its content."""

    name: str
    data: bytes


@dataclass
class Form:
    """User input in the fields of a form, with an error message for each invalid field.

    Attributes
    ----------
    values : dict
        The input of each field.
    errors : dict
        The error of each field; under "" the error that belongs to no field.
    files : dict
        The file of each field for files that was used.
    columns : sequence of str
        The columns of the table that has filled in its fields.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    files: Mapping[str, UploadedFile] = field(default_factory=dict)
    columns: Sequence[str] = ()

    def get(self, name: str, default: str = "") -> str:
        """Return the input of a field."""
        return self.values.get(name, default)

    @contextmanager
    def noting(self, *fields: str) -> Iterator[None]:
        """Record an error raised in the block for the field that it names, or the first field."""
        try:
            yield
        except InvalidInput as error:
            self.note(error, *fields)

    def note(self, error: InvalidInput, *fields: str) -> None:
        """Record an error for the field that it names, or for the first of these fields."""
        named = [name for name in fields if name == error.argument]
        named = named or [name for name in fields if name in error.argument]
        place = (named or [*fields, ""])[0]
        self.errors.setdefault(place, error_text(error))


def error_text(error: InvalidInput) -> str:
    """Return an error as text without Python code.

    Examples
    --------
    >>> from multiplay._support.hints import Hint, Option
    >>> error_text(InvalidInput("key", "a new key", "'Monday'", "Use a different key."))
    "Expected a new key, got 'Monday'. Use a different key."
    >>> hint = Hint("Use {} if more will follow.", Option("final", "False"))
    >>> error_text(InvalidInput("losses", "3 losses", "2", hint))
    'Expected 3 losses, got 2. Use “More will follow” if more will follow.'
    """
    hint = rendered(error.hint, Surface.PAGE)
    return f"Expected {rendered(error.expected, Surface.PAGE)}, got {error.got}. {hint}".strip()


# ---------------------------------------------------------------- numbers and names


def a_number(name: str, text: str) -> float:
    """Return a number, an integer if it is written as one.

    The decimal mark is a point or a comma; where both occur, the last one. ``1.234`` is refused: it
    is a thousand and more for some readers, and about one for others. A currency is left out.

    Examples
    --------
    >>> a_number("cost", "12,5"), a_number("cost", "12.5"), a_number("cost", "0,125")
    (12.5, 12.5, 0.125)
    >>> a_number("cost", "160,50 €"), a_number("cost", "1.234,50"), a_number("cost", "1,234.50")
    (160.5, 1234.5, 1234.5)
    """
    typed = SIGN.sub("", text).strip()
    got = repr(text)[:60] if typed else "nothing"
    if AMBIGUOUS.fullmatch(typed):
        whole = re.sub(r"[.,]", "", typed)
        hint = f"Write {whole}, or {typed}0 for the decimal number."
        raise InvalidInput(name, "a number that can be read in one way", got, hint)
    decimal = max(".,", key=typed.rfind)
    if "." in typed and "," in typed:
        found = number_in(typed, decimal)
        typed = typed if found is None else repr(found)
    plain = typed if "." in typed else typed.replace(",", ".", 1)
    try:
        value = int(plain) if re.fullmatch(r"[+-]?\d{1,15}", plain) else float(plain)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in typed:
        hint = NUMBER_RULE if "," in typed else "Write 120, for example."
        raise InvalidInput(name, "a number", got, hint)
    return value


def as_typed(value: float) -> str:
    """Return a number as text that ``a_number`` reads as the same number.

    Examples
    --------
    >>> as_typed(120.0), as_typed(12.345)
    ('120', '12.3450')
    """
    text = f"{value:.0f}" if value == int(value) and abs(value) < 1e15 else repr(float(value))
    return f"{text}0" if AMBIGUOUS.fullmatch(text) else text


def a_whole_number(name: str, text: str) -> int:
    """Return an integer of at least 0."""
    value = a_number(name, text)
    if not isinstance(value, int) or value < 0:
        expected = "a whole number of at least 0"
        raise InvalidInput(name, expected, repr(text.strip())[:60], "Write 3, for example.")
    return value


def a_round(name: str, text: str, required: bool) -> int | datetime | None:
    """Return the number of a round, or a date (UTC); None for nothing, if that is allowed."""
    typed = text.strip()
    if not typed and not required:
        return None
    if re.fullmatch(r"\d{1,15}", typed):
        return int(typed)
    found = moment_of(typed)
    if found is None:
        got, hint = repr(text)[:60] if typed else "nothing", "Write 12 or 2026-06-12, for example."
        raise InvalidInput(name, "the number of a round, or a date", got, hint)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def named_numbers(
    name: str, text: str, whole: bool = True, lanes: bool = False
) -> dict[str, float]:
    """Return numbers by name, from lines such as ``Lyon 3``; ``lanes``: names may contain ->.

    Examples
    --------
    >>> named_numbers("supply", "Lyon 3" + chr(10) + "Le Havre: 2")
    {'Lyon': 3, 'Le Havre': 2}
    """
    found: dict[str, float] = {}
    lines = [(place, line.strip()) for place, line in enumerate(text.splitlines(), 1)]
    used = [(place, line) for place, line in lines if line]
    if not used:
        hint = "Write one name and number per line, for example: Lyon 3"
        raise InvalidInput(name, "a name and a number in each line", "nothing", hint)
    if len(used) > MOST_LINES:
        hint = "Use the API for larger sets."
        raise InvalidInput(name, f"at most {MOST_LINES} lines", f"{len(used)}", hint)
    for place, line in used:
        match = LINE.fullmatch(line) if len(line) <= LONGEST_LINE else None
        called = "" if match is None else match["name"].strip()
        if match is None or not called:
            hint = "Write the name first, then the number: Lyon 3"
            expected = f"a name and a number in line {place}"
            raise InvalidInput(name, expected, repr(line[:60]), hint)
        if called in found:
            raise InvalidInput(name, "different names", f"{called!r} twice", "Rename one of them.")
        bad = len(called) > LONGEST_NAME * (1 + lanes) or ("->" in called and not lanes)
        if bad or not called.isprintable():
            expected = f"in line {place} a name of at most {LONGEST_NAME} characters, without ->"
            raise InvalidInput(name, expected, repr(called[:60]), "Use a shorter name.")
        read = a_whole_number if whole else a_number
        try:
            found[called] = read(name, match["number"])
        except InvalidInput as error:
            expected = f"{error.expected} in line {place}"
            raise InvalidInput(name, expected, error.got, error.hint) from None
    return found


def as_lines(names: list[str], values: list[Any]) -> str:
    """Return names and numbers as user input, one per line."""
    return "\n".join(f"{name} {value}" for name, value in zip(names, values, strict=True))


def range_text(loss_range: str, words: Words) -> str:
    """Return the range of a study in the words of its user.

    Examples
    --------
    >>> range_text("losses from 0 to 400", Words("EUR", "truck"))
    'costs of a truck from 0 to 400 EUR'
    """
    _, _, ends = loss_range.partition(" ")
    noun = "rewards" if loss_range.startswith("rewards") else "costs"
    currency = f" {words.currency}" if words.currency and ends[-1:].isdigit() else ""
    ends = ends.replace("by arm", f"by {words.arm}")
    return f"{noun} of a {words.unit} {ends}{currency}"


# ---------------------------------------------------------------- a new study


class StudyInput(NamedTuple):
    """The settings of a new study, as plain data."""

    name: str
    actions: dict[str, Any]
    policy: dict[str, Any]
    loss_range: tuple[float, float] | None
    reports: Reports
    words: Words


NEW_FIELDS = (
    "name",
    "supply",
    "demand",
    "shortage",
    "items",
    "capacity",
    "caps",
    "total",
    "low",
    *Words._fields,
    "policy",
    "change",
)


def new_study(form: Form) -> StudyInput | None:
    """Return the settings of a new study, or None after recording errors in the form."""
    kind = form.get("kind")
    if kind not in KINDS:
        form.errors["kind"] = "Choose one of the options."
    rewarded = kind == "knapsack" or form.get("sense") == "max"
    actions: dict[str, Any] = {}
    if kind == "transport":
        actions = _transport(form, "max" if rewarded else "min")
    elif kind == "knapsack":
        actions = _knapsack(form)
    elif kind == "budget":
        actions = _budget(form, "max" if rewarded else "min")
    return study_of(form, actions)


def study_of(form: Form, actions: dict[str, Any]) -> StudyInput | None:
    """Return the settings of a study of this set, or None after recording errors in the form."""
    policy, name = form.get("policy"), form.get("name").strip()
    if policy not in POLICIES:
        form.errors["policy"] = "Choose one of the options."
    if not name:
        form.errors["name"] = "Enter a name, for example: lanes"
    elif name in RESERVED:
        form.errors["name"] = "This name is reserved. Choose a different name."
    span = range_of(form)
    outside = "clip" if form.get("outside") == "clip" and span is not None else None
    if span is None and policy in POLICIES and _needs_range(policy):
        form.errors.setdefault(
            "high", "This way of choosing plans needs the range. Enter the largest value."
        )
    if form.errors:
        return None
    typed = {name: form.get(name).strip() for name in Words._fields}
    words = Words(**{name: word for name, word in typed.items() if word})
    return StudyInput(name, actions, POLICIES[policy].plain, span, Reports(outside), words)


def _needs_range(policy: str) -> bool:
    """Return whether a policy of the form needs a known range of costs."""
    return bool(getattr(policies, POLICIES[policy].plain["type"]).needs_range)


def _transport(form: Form, sense: str) -> dict[str, Any]:
    supply: dict[str, float] = {}
    demand: dict[str, float] = {}
    with form.noting("supply"):
        supply = named_numbers("supply", form.get("supply"))
    with form.noting("demand"):
        demand = named_numbers("demand", form.get("demand"))
    plain: dict[str, Any] = {
        "type": "Transport",
        "supply": [*supply.values()],
        "demand": [*demand.values()],
        "names": [[*supply], [*demand]],
        "sense": sense,
    }
    for choice in ("slack", "surplus"):
        if form.get(choice):
            plain[choice] = True
    if form.get("shortage").strip():
        with form.noting("shortage"):
            plain["shortage"] = a_number("shortage", form.get("shortage"))
    if supply and demand:
        _check_balance(form, int(sum(supply.values())), int(sum(demand.values())))
    return plain


def _check_balance(form: Form, have: int, want: int) -> None:
    """Record an error if supply and demand differ, and the form does not allow it."""
    sums = f"The total supply is {have}, the total demand is {want}."
    if have > want and not (form.get("slack") or form.get("surplus")):
        more = "Select “Supply may be left over”, or correct the numbers."
        form.errors.setdefault("demand", f"{sums} {more}")
    if have < want and not form.get("shortage").strip():
        more = "Enter a “Cost of an unmet unit”, or correct the numbers."
        form.errors.setdefault("demand", f"{sums} {more}")


def _knapsack(form: Form) -> dict[str, Any]:
    items: dict[str, float] = {}
    plain: dict[str, Any] = {"type": "Knapsack"}
    with form.noting("items"):
        items = named_numbers("items", form.get("items"), whole=False)
    with form.noting("capacity"):
        plain["capacity"] = a_number("capacity", form.get("capacity"))
    return plain | {"weights": [*items.values()], "names": [*items]}


def _budget(form: Form, sense: str) -> dict[str, Any]:
    caps: dict[str, float] = {}
    plain: dict[str, Any] = {"type": "Budget", "sense": sense}
    with form.noting("caps"):
        caps = named_numbers("caps", form.get("caps"))
    with form.noting("total"):
        plain["total"] = a_whole_number("total", form.get("total"))
    return plain | {"caps": [*caps.values()], "names": [*caps]}


def range_of(form: Form) -> tuple[float, float] | None:
    """Return the range of costs of a form; None if it is empty, or wrong."""
    if not form.get("high").strip():
        return None
    low = high = math.nan
    with form.noting("low"):
        low = a_number("low", form.get("low"))
    with form.noting("high"):
        high = a_number("high", form.get("high"))
    if low >= high:
        form.errors["high"] = f"Enter a number greater than {number(low)}."
    return (float(low), float(high)) if low < high else None
