"""Forms for plans: the set and the limits of a day, and a plan of the user."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from multiplay._support.formatting import number
from multiplay.actions import ActionSet, Budget, Knapsack, Transport
from multiplay.actions.transport import sides_of
from multiplay.errors import InvalidInput
from multiplay.service.pages.forms import (
    Form,
    a_number,
    a_whole_number,
    as_lines,
    error_text,
    named_numbers,
)
from multiplay.studies import wire

RULES = {"exclude": "closed", "at_most": "at most", "fixed": "exactly"}
FEWEST_RULES, MOST_RULES = 3, 40  # rows of a form
MOST_UNIT_FIELDS = 240  # arms with a field each; a larger plan is typed as lines
REPLAYED = timedelta(days=14)  # a study whose last plan is older is not of these days


# ---------------------------------------------------------------- the set of a day


def next_day(keys: Iterable[str | None], today: date) -> str:
    """Return the name of the next plan: the day after the last plan, and not before today.

    A study of the past continues where it ended.

    Examples
    --------
    >>> next_day(["2026-11-16", "2026-11-17"], date(2026, 11, 17))
    '2026-11-18'
    >>> next_day(["2026-11-13"], date(2026, 11, 16)), next_day(["Monday"], date(2026, 11, 16))
    ('2026-11-16', '2026-11-16')
    >>> next_day(["2024-02-28"], date(2026, 11, 16))
    '2024-02-29'
    """
    days = [day for key in keys if (day := a_day(key or "")) is not None]
    if not days:
        return f"{today}"
    following = max(days) + timedelta(days=1)
    return f"{following if today - following > REPLAYED else max(following, today)}"


def a_day(text: str) -> date | None:
    """Return the day that a text names, such as 2026-11-17; None if it names none."""
    found = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", text.strip())
    try:
        return None if found is None else date(*map(int, found.groups()))
    except ValueError:
        return None


def usual_values(actions: ActionSet) -> dict[str, str]:
    """Return the default input of the fields for today's set, empty for sets without fields."""
    if isinstance(actions, Transport):
        sides = sides_of(actions.names)
        if sides is not None:
            supply, demand = actions.supply.tolist(), actions.demand.tolist()
            fields = {"supply": as_lines(sides[0], supply), "demand": as_lines(sides[1], demand)}
            if actions.capacities is not None:
                most = actions.capacities.ravel().tolist()
                fields["capacities"] = as_lines([*actions.names], most)
            return fields
    if isinstance(actions, Knapsack):
        return {"capacity": number(actions.capacity)}
    if isinstance(actions, Budget):
        return {"total": str(actions.total)}
    return {}


def today(form: Form, usual: ActionSet) -> dict[str, Any] | None:
    """Return today's set as plain data; None if it is the usual set, or if the input is invalid."""
    before = usual_values(usual)
    typed = {name: form.get(name, before[name]).strip() for name in before}
    if all(typed[name].split() == before[name].split() for name in before):
        return None
    plain: dict[str, Any] = wire.to_plain("actions", usual)
    if isinstance(usual, Transport):
        _read_sides(form, plain, usual, typed)
    for name, read in (("capacity", a_number), ("total", a_whole_number)):
        if name in before:
            with form.noting(name):
                plain[name] = read(name, typed[name])
    return plain


def _read_sides(
    form: Form, plain: dict[str, Any], usual: Transport, typed: Mapping[str, str]
) -> None:
    """Read today's supplies, demands and capacities into the plain data of a set."""
    sides: dict[str, dict[str, float]] = {}
    for name in ("supply", "demand"):
        with form.noting(name):
            sides[name] = named_numbers(name, typed[name])
            plain[name] = [*sides[name].values()]
    if form.errors:
        return
    names = [*sides["supply"]], [*sides["demand"]]
    if names != sides_of(usual.names):
        plain["names"] = [*names]
    if "capacities" in typed:
        with form.noting("capacities"):
            given = named_numbers("capacities", typed["capacities"], lanes=True)
            lanes = [f"{source}->{target}" for source in names[0] for target in names[1]]
            if missing := [lane for lane in lanes if lane not in given]:
                hint = "Write 0 for a lane that does not exist."
                raise InvalidInput("capacities", "all lanes", f"no {missing[0]!r}", hint)
            width = len(names[1])
            most = [given[lane] for lane in lanes]
            plain["capacities"] = [most[k : k + width] for k in range(0, len(most), width)]


# ---------------------------------------------------------------- limits of a day


class RuleRow(NamedTuple):
    """A row of the form for limits, as it was typed."""

    arm: str
    rule: str
    units: str


def rule_rows(form: Form) -> list[RuleRow]:
    """Return the rows of the form for limits, with an empty one at the end."""
    rows = [
        RuleRow(*(form.get(f"{name}{k}").strip() for name in ("rule-arm", "rule", "rule-units")))
        for k in range(MOST_RULES)
    ]
    used = max((k for k, row in enumerate(rows) if row.arm or row.units), default=-1) + 1
    return rows[: min(max(used + 1, FEWEST_RULES), MOST_RULES)]


def limits(form: Form, names: Sequence[str]) -> dict[str, Any]:
    """Return the limits of a day, as ``ask`` takes them; errors are recorded in the form.

    Examples
    --------
    >>> typed = {"rule-arm0": "Lyon -> north", "rule0": "exclude", "rule-arm1": "lyon→south"}
    >>> form = Form(typed | {"rule1": "at_most", "rule-units1": "2"})
    >>> limits(form, ["Lyon->north", "Lyon->south"])
    {'exclude': ['Lyon->north'], 'at_most': {'Lyon->south': 2}, 'fixed': {}}
    """
    found: dict[str, Any] = {"exclude": [], "at_most": {}, "fixed": {}}
    known = by_spelling(names)
    for k, row in enumerate(rule_rows(form)):
        if not row.arm:
            if row.units:
                form.errors[f"rule-arm{k}"] = "Enter the name too."
            continue
        arm = known.get(spelling(row.arm))
        rule = row.rule if row.rule in RULES else "exclude"
        if arm is None:
            form.errors[f"rule-arm{k}"] = f"There is no {row.arm!r} today."
        elif arm in found[rule]:
            form.errors[f"rule-arm{k}"] = "It has this limit already. Remove one of them."
        elif rule == "exclude":
            found[rule].append(arm)
        else:
            with form.noting(f"rule-units{k}"):
                found[rule][arm] = a_whole_number(f"rule-units{k}", row.units)
    return found


def note_limit(form: Form, error: InvalidInput, names: Sequence[str]) -> bool:
    """Record an error beside the limit that it names; return whether it names one."""
    known = by_spelling(names)
    for k, row in enumerate(rule_rows(form)):
        arm, rule = known.get(spelling(row.arm)), row.rule or "exclude"
        if arm is not None and error.argument in (rule, f"{rule}[{arm!r}]"):
            form.errors.setdefault(f"rule-arm{k}", error_text(error))
            return True
    return False


def spelling(name: str) -> str:
    """Return a name without differences of case, spaces and arrows.

    Examples
    --------
    >>> spelling(" Lyon  -> North "), spelling("lyon\N{RIGHTWARDS ARROW}north")
    ('lyon->north', 'lyon->north')
    """
    plain = " ".join(name.replace("\N{RIGHTWARDS ARROW}", "->").split()).casefold()
    return re.sub(r"\s*->\s*", "->", plain)


def by_spelling(names: Iterable[str]) -> dict[str, str]:
    """Return names by their spelling; a name whose spelling is not its own is left out."""
    found: dict[str, str] = {}
    twice: set[str] = set()
    for name in names:
        if found.setdefault(spelling(name), name) != name:
            twice.add(spelling(name))
    return {plain: name for plain, name in found.items() if plain not in twice}


# ---------------------------------------------------------------- a plan of the user


class UnitField(NamedTuple):
    """The field for the units of an arm, with the units of the proposed plan."""

    field: str
    arm: str
    value: str


class PlanFields(NamedTuple):
    """Fields for a plan: suppliers by customers, a list of arms, or lines of text.

    Attributes
    ----------
    targets : list of str
        The customers, the columns of a table; empty for a list.
    rows : list of pairs
        The name of a row, and its fields.
    lines : str or None
        The plan as lines, where it has too many arms for fields.
    """

    targets: list[str]
    rows: list[tuple[str, list[UnitField]]]
    lines: str | None


def plan_fields(plan: Mapping[str, int]) -> PlanFields:
    """Return the fields for a plan on the arms of this plan, with its units."""
    names = [*plan]
    if len(names) > MOST_UNIT_FIELDS:
        used = {arm: units for arm, units in plan.items() if units}
        return PlanFields([], [], as_lines([*used], [*used.values()]))
    fields = [UnitField(f"unit{k}", arm, str(plan[arm] or "")) for k, arm in enumerate(names)]
    sides = sides_of(names)
    if sides is None:
        return PlanFields([], [(one.arm, [one]) for one in fields], None)
    sources, targets = sides
    width = len(targets)
    rows = [(source, fields[k * width : (k + 1) * width]) for k, source in enumerate(sources)]
    return PlanFields(targets, rows, None)


def own_plan(form: Form, names: Sequence[str]) -> dict[str, int] | None:
    """Return the plan that was typed; None if it is invalid, or if nothing was typed."""
    plan: dict[str, int] = {}
    if "plan" in form.values:
        known = by_spelling(names)
        with form.noting("plan"):
            typed = named_numbers("plan", form.get("plan"), lanes=True)
            for name, units in typed.items():
                arm = known.get(spelling(name))
                if arm is None:
                    raise InvalidInput("plan", "known names", repr(name)[:80], "Check it.")
                plan[arm] = int(units)
    for k, arm in enumerate(names[:MOST_UNIT_FIELDS] if "plan" not in form.values else ()):
        if form.get(f"unit{k}").strip():
            with form.noting(f"unit{k}"):
                plan[arm] = a_whole_number(f"unit{k}", form.get(f"unit{k}"))
    if form.errors:
        return None
    used = {arm: units for arm, units in plan.items() if units}
    return used or None


def set_of_plan(usual: ActionSet, plan: Mapping[str, int], names: Sequence[str]) -> Any:
    """Return a set that has a plan of the user, as plain data; None for the usual set.

    Supplies and demands are those of the plan, unless the usual set has it.
    """
    action = [plan.get(name, 0) for name in usual.names]
    if set(plan) <= set(usual.names) and usual.contains(action):
        return None
    plain: dict[str, Any] = wire.to_plain("actions", usual)
    sides = sides_of(names)
    if isinstance(usual, Transport) and usual.capacities is None and sides is not None:
        sent = [[plan.get(f"{source}->{target}", 0) for target in sides[1]] for source in sides[0]]
        received = [sum(column) for column in zip(*sent, strict=True)]
        return plain | {"supply": [*map(sum, sent)], "demand": received, "names": [*sides]}
    if isinstance(usual, Budget):
        return plain | {"total": sum(plan.values())}
    return None
