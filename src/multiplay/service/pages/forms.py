"""What people type into forms: text, and the data that it stands for."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from multiplay._support.formatting import number
from multiplay.actions import ActionSet, Budget, Knapsack, Transport
from multiplay.actions.transport import sides_of
from multiplay.errors import InvalidInput
from multiplay.learner.losses import losses_of
from multiplay.service.pages.typed_values import a_number, a_whole_number, as_lines, named_numbers
from multiplay.studies import wire

MISSING = "-"  # stands for a unit that did not report

TAKEN = (".", "..")  # in an address these mean something else

KINDS = {
    "transport": "Transport: units go from suppliers to demanders",
    "knapsack": "Knapsack: items with weights, as many as fit",
    "budget": "Budget: a number of units, spread over several uses",
}


class Way(NamedTuple):
    """A way to learn, for people who do not know its name."""

    title: str
    words: str
    plain: dict[str, Any]


WAYS = {
    "GenCTS": Way(
        "Learn from every unit (GenCTS)",
        "The right choice for most: it tries what is uncertain, less and less as it learns.",
        {"type": "GenCTS"},
    ),
    "forgetting": Way(
        "Learn, and forget what is old (GenCTS with a discount)",
        "For prices that drift: what happened 100 rounds ago counts for almost nothing.",
        {"type": "GenCTS", "discount": 0.97},
    ),
    "GenLBINFV": Way(
        "Be careful (GenLBINFV)",
        "For costs that may change suddenly or against you: it learns slower, and is hard to fool.",
        {"type": "GenLBINFV"},
    ),
    "LinTS": Way(
        "Learn from totals (LinTS)",
        "When only the total of a whole round is known, and never that of single units.",
        {"type": "LinTS"},
    ),
}

# what library hints say in Python, in the words of the forms
WORDS = {
    r"slack=True": "tick “Supply may be left over”",
    r"write shortage=[\d.]+, say: what each unmet unit costs, in the unit of the losses": (
        "fill in “What an unmet unit costs”"
    ),
    r"Correct it, or make the learner with outside='clip'\.": (
        "Correct it. (A study can be made so that it takes such numbers, and counts them.)"
    ),
    r"write None in the list for each that is missing, or write\s+missing='ignore'": (
        "or write - for each unit that did not report"
    ),
    r"Give a list for each arm \(empty where nothing was played\), or totals\.": (
        "Write one number for each unit, with spaces between."
    ),
    r"Use learn\(plan, losses\) if it was driven all the same\.": "",
    r"Use the id of a play that ask\(\) gave\.": "Choose one that waits.",
}


@dataclass
class Form:
    """What was typed, and what is wrong with it: kept, and said beside the field.

    Attributes
    ----------
    values : dict
        By field, what was typed.
    errors : dict
        By field, what is wrong; below "" what belongs to no field.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def get(self, name: str, default: str = "") -> str:
        """Return what was typed into a field."""
        return self.values.get(name, default)

    @contextmanager
    def noting(self, *fields: str) -> Iterator[None]:
        """Note an error of the block beside the field that it names, or the first of these."""
        try:
            yield
        except InvalidInput as error:
            self.note(error, *fields)

    def note(self, error: InvalidInput, *fields: str) -> None:
        """Note an error beside the field that it names, or the first of these."""
        named = [name for name in fields if name in error.argument]
        place = (named or [*fields, ""])[0]
        self.errors.setdefault(place, in_words(error))


def in_words(error: InvalidInput) -> str:
    """Return an error for people who have never seen Python.

    Examples
    --------
    >>> in_words(InvalidInput("key", "a new key", "'Monday'", "Use another."))
    "Expected a new key, got 'Monday'. Use another."
    """
    hint = error.hint
    for python, words in WORDS.items():
        hint = re.sub(python, words, hint)
    hint = hint[:1].upper() + hint[1:]
    return f"Expected {error.expected}, got {error.got}. {hint}".strip()


# ---------------------------------------------------------------- a new study


class NewStudy(NamedTuple):
    """What a new study is made of, as plain data."""

    name: str
    actions: dict[str, Any]
    policy: dict[str, Any]
    losses: tuple[float, float] | None
    rewards: tuple[float, float] | None
    outside: str


NEW_FIELDS = ("name", "supply", "demand", "shortage", "items", "capacity", "caps", "total", "low")


def new_study(form: Form) -> NewStudy | None:
    """Return what was typed, or None if something is wrong: the form says what."""
    kind, way = form.get("kind"), form.get("policy")
    if kind not in KINDS:
        form.errors["kind"] = "Choose one of these."
    if way not in WAYS:
        form.errors["policy"] = "Choose one of these."
    name = form.get("name").strip()
    if not name:
        form.errors["name"] = "Give the study a name, such as: lanes"
    elif name in TAKEN:
        form.errors["name"] = "This cannot be a name on these pages. Choose another one."
    brings = kind == "knapsack" or form.get("sense") == "max"
    actions: dict[str, Any] = {}
    if kind == "transport":
        actions = _transport(form, "max" if brings else "min")
    elif kind == "knapsack":
        actions = _knapsack(form)
    elif kind == "budget":
        actions = _budget(form, "max" if brings else "min")
    span = _range(form)
    outside = "clip" if form.get("outside") == "clip" else "refuse"
    if form.errors or span is None:
        return None
    losses, rewards = (None, span) if brings else (span, None)
    return NewStudy(name, actions, WAYS[way].plain, losses, rewards, outside)


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
    if form.get("slack"):
        plain["slack"] = True
    if form.get("shortage").strip():
        with form.noting("shortage"):
            plain["shortage"] = a_number("shortage", form.get("shortage"))
    if supply and demand:
        _check_balance(form, int(sum(supply.values())), int(sum(demand.values())))
    return plain


def _check_balance(form: Form, have: int, want: int) -> None:
    """Note what is left over, or lacking, and nobody said what becomes of it."""
    sums = f"The suppliers have {have} in all, the demanders want {want}."
    if have > want and not form.get("slack"):
        form.errors.setdefault("demand", f"{sums} Tick “Supply may be left over”, or correct them.")
    if have < want and not form.get("shortage").strip():
        more = "Fill in “What an unmet unit costs”, or correct them."
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


def _range(form: Form) -> tuple[float, float] | None:
    low = high = math.nan
    with form.noting("low"):
        low = a_number("low", form.get("low"))
    with form.noting("high"):
        high = a_number("high", form.get("high"))
    if low >= high:
        form.errors["high"] = f"Give more than {number(low)}."
    return (float(low), float(high)) if low < high else None


# ---------------------------------------------------------------- asking


def usual_values(actions: ActionSet) -> dict[str, str]:
    """Return what the fields for today say as a rule; nothing if there are none for this set."""
    if isinstance(actions, Transport):
        sides = sides_of(actions.names)
        if sides is not None:
            supply, demand = actions.supply.tolist(), actions.demand.tolist()
            return {"supply": as_lines(sides[0], supply), "demand": as_lines(sides[1], demand)}
    if isinstance(actions, Knapsack):
        return {"capacity": number(actions.capacity)}
    if isinstance(actions, Budget):
        return {"total": str(actions.total)}
    return {}


def today(form: Form, usual: ActionSet) -> dict[str, Any] | None:
    """Return today's set as plain data; None if it is the usual one, or if something is wrong."""
    before = usual_values(usual)
    typed = {name: form.get(name, before[name]).strip() for name in before}
    if all(_same(typed[name], before[name]) for name in before):
        return None
    plain: dict[str, Any] = wire.to_plain("actions", usual)
    if isinstance(usual, Transport):
        sides: dict[str, dict[str, float]] = {}
        for name in ("supply", "demand"):
            with form.noting(name):
                sides[name] = named_numbers(name, typed[name])
                plain[name] = [*sides[name].values()]
        if not form.errors:
            _name_sides(form, plain, usual, sides)
    for name, read in (("capacity", a_number), ("total", a_whole_number)):
        if name in before:
            with form.noting(name):
                plain[name] = read(name, typed[name])
    return plain


def _name_sides(
    form: Form, plain: dict[str, Any], usual: Transport, sides: Mapping[str, Mapping[str, float]]
) -> None:
    """Name the lanes of today after those of both sides; as usual, if they are the same."""
    names = [*sides["supply"]], [*sides["demand"]]
    if names == sides_of(usual.names):
        return
    if usual.capacities is not None:
        form.errors["supply"] = "The lanes have capacities: keep the usual names, in their order."
        return
    plain["names"] = [*names]


def _same(one: str, other: str) -> bool:
    return one.split() == other.split()


# ---------------------------------------------------------------- telling


def field_of(place: int) -> str:
    """Return the name of the field of an arm: names of arms may be anything."""
    return f"arm{place}"


def losses(
    form: Form, plan: Mapping[str, int], by_round: bool, partly: bool
) -> dict[str, Any] | float | None:
    """Return what units cost, from one field for each arm, or from one total of the round.

    Examples
    --------
    >>> form = Form({"arm0": "120 95 -", "arm1": "310"})
    >>> losses(form, {"Lyon->north": 3, "Lyon->south": 2}, by_round=False, partly=False)
    {'Lyon->north': [120, 95, None], 'Lyon->south': 310}
    """
    if by_round:
        with form.noting("total"):
            return a_number("total", form.get("total"))
        return None
    told: dict[str, Any] = {}
    for place, (arm, units) in enumerate(plan.items()):
        name = field_of(place)
        with form.noting(name):
            found = _units(name, form.get(name), units, partly)
            if found is not None:
                told[arm] = found
    if not told and not form.errors:
        form.errors[""] = "Nothing is filled in yet."
    return None if form.errors else told


def note_loss(form: Form, error: InvalidInput, plan: Mapping[str, int]) -> None:
    """Note what is wrong with losses beside the arm that the error names."""
    arms = list(plan)
    places = [place for place, arm in enumerate(arms) if error.argument == losses_of(arm)]
    form.errors[field_of(places[0]) if places else ""] = in_words(error)


def _units(name: str, text: str, units: int, partly: bool) -> Any:
    """Return the losses of one arm: a list of units, their total, or None for nothing."""
    typed = text.split()
    if not typed:
        if partly:
            return None
        hint = f"Write {MISSING} for a unit that did not report, or say that more will come."
        many = "a number" if units == 1 else f"{units} numbers, or one total"
        raise InvalidInput(name, many, "nothing", hint)
    if len(typed) == 1 and units > 1 and typed != [MISSING]:
        return a_number(name, typed[0])
    if typed == [MISSING]:
        return [None] * units
    if len(typed) != units and not (partly and len(typed) < units):
        hint = f"Write one number for each unit with spaces between, {MISSING} if none came."
        raise InvalidInput(name, f"{units} numbers, or one total", f"{len(typed)}", hint)
    return [None if one == MISSING else a_number(name, one) for one in typed]
