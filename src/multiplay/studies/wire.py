"""Wire format: sets, constraints, losses and tables as JSON, for the service and its clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay import actions as sets
from multiplay import features, policies
from multiplay._support.builder import Builder, check_keys, classes_of, errors_below
from multiplay._support.checks import is_list, is_number, natural_number
from multiplay._support.csv_format import number_in
from multiplay._support.frames import TableFile, column
from multiplay._support.serialization import (
    WITHOUT_ARRAYS,
    number_or_none,
    pack,
    types_in,
)
from multiplay.actions import Rule
from multiplay.constraints import AtLeast, AtMost, Baseline, SwitchingCost
from multiplay.constraints.constraint import Constraint
from multiplay.constraints.promise import PROMISES, STORED, Promise
from multiplay.errors import InvalidInput
from multiplay.features import Features
from multiplay.features.table import item, rows_by_arm
from multiplay.learner.comparison import PlansByKey, compared
from multiplay.learner.logged_data import EXAMPLE, arm_columns
from multiplay.learner.reports import (
    EXACT,
    as_float,
    by_label,
    losses_argument,
    losses_of_arm,
    unwrapped,
    with_gaps,
)
from multiplay.studies.export import PLAYS, frame_of
from multiplay.studies.play_history import PlayedPlan, rows_of
from multiplay.types import Arrays

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

UNITS = "Use an int of at least 0."


# ------------------------------------------------------------ sets, policies and features

FEATURES = {name: kind for name, kind in classes_of(features).items() if name != "FeatureRows"}


def to_plain(where: str, thing: Any) -> Any:
    """Return a set, a policy or declared features as plain data for JSON, without loss.

    Examples
    --------
    >>> from multiplay import Budget
    >>> plain = to_plain("actions", Budget(2, [1, 1, 3]))
    >>> plain["type"], plain["caps"], builder().build("actions", plain).caps
    ('Budget', [1, 1, 3], array([1, 1, 3]))
    """
    header, arrays = pack(thing, where)
    foreign = sorted(types_in(header) - {*builder().classes, "array"})
    if foreign:
        expected = "a class of multiplay, because the service has no user-defined classes"
        hint = "Use a class of multiplay, or a local store: Study.create(..., store=...)."
        raise InvalidInput(where, expected, foreign[0], hint)
    return _with_arrays(header, arrays)


def request_set(actions: Any) -> Any:
    """Return a set as plain data for a request: without n of a ``Model``, which is computed."""
    plain = to_plain("actions", actions)
    if isinstance(actions, sets.Model):
        del plain["n"]
    return plain


def _with_arrays(plain: Any, arrays: Arrays) -> Any:
    """Return packed data with its arrays as lists."""
    if isinstance(plain, list):
        return [_with_arrays(value, arrays) for value in plain]
    if not isinstance(plain, dict):
        return plain
    if plain.get("type") == "array":
        return arrays[plain["name"]].tolist()
    if plain.get("type") == "tuple":  # a list says the same
        return _with_arrays(plain["items"], arrays)
    return {key: _with_arrays(value, arrays) for key, value in plain.items()}


@lru_cache(maxsize=1)
def builder() -> Builder:
    """Return the builder of sets, policies and features from plain data; it imports nothing."""
    kinds = {**classes_of(sets), **classes_of(policies), **KINDS}
    return Builder({**kinds, **FEATURES, **WITHOUT_ARRAYS})


# ------------------------------------------------------------ constraints

KINDS = {one.__name__: one for one in (AtLeast, AtMost, Baseline, SwitchingCost)}
RULES = {name: kind for name, kind in classes_of(sets).items() if issubclass(kind, Rule)}
CONSTRAINTS = Builder({**KINDS, **RULES, **WITHOUT_ARRAYS})


def of_constraint(constraint: Constraint) -> dict[str, Any]:
    """Return a constraint as plain data.

    Examples
    --------
    >>> plain = of_constraint(AtMost(40, {"air": 5}, plays=3, name="CO2"))
    >>> plain["type"], plain["limit"], plain["of"], to_constraint("constraint", plain).name
    ('AtMost', 40, {'air': 5.0}, 'CO2')
    """
    plain: dict[str, Any] = to_plain("constraints", constraint)
    return plain | ({"of": dict(constraint.of)} if isinstance(constraint, Promise) else {})


def to_constraint(where: str, plain: Mapping[str, Any]) -> Constraint:
    """Return the constraint of plain data; errors name where it was given."""
    kind = PROMISES.get(plain["type"]) if isinstance(plain.get("type"), str) else None
    if kind is None:
        made: Constraint = CONSTRAINTS.build(where, plain, Constraint)
        return made
    given = {name: value for name, value in plain.items() if name != "type"}  # an arm may be "type"
    check_keys(where, given, (*STORED, "of"), ("limit", "of", "plays"), f"{kind.__name__}()")
    with errors_below(where):
        return kind(**given)


# ------------------------------------------------------------ savings


def of_versus(given: Any) -> dict[str, Any] | str:
    """Return what plays are compared with as plain data; the argument ``versus`` of ``savings``.

    Examples
    --------
    >>> of_versus({"Monday": {"air": 2}})
    {'plans': [{'key': 'Monday', 'plan': {'air': 2}}]}
    """
    versus = compared(given, functions=False)
    if isinstance(versus, PlansByKey):
        return {"plans": [{"key": key, "plan": plan} for key, plan in versus.by_key.items()]}
    plain: dict[str, Any] | str = to_plain("versus", versus)
    return plain


def to_plans(plain: Iterable[Mapping[str, Any]]) -> PlansByKey:
    """Return plans by key from plain data of ``of_versus``."""
    plans: dict[str, dict[str, int]] = {}
    for one in plain:
        if one["key"] in plans:
            hint = "Leave one of the plans out."
            raise InvalidInput("versus.plans", "every key once", repr(one["key"]), hint)
        plans[one["key"]] = dict(one["plan"])
    return PlansByKey(plans)


# ------------------------------------------------------------ tables


def of_table(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table: times as text, NaN as null.

    Examples
    --------
    >>> import pandas as pd
    >>> of_table(pd.DataFrame({"arm": ["A"], "mean": [float("nan")]}))
    [{'arm': 'A', 'mean': None}]
    """
    columns = {name: _values(table[name]) for name in table.columns}
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def of_played_plan(played: PlayedPlan) -> dict[str, Any]:
    """Return a play with its plan and losses as plain data."""
    row, plan, losses, prices, held = played
    times = {name: row[name] and row[name].isoformat() for name in ("asked", "told")}
    promised = {"prices": dict(prices), "held": held}
    return {**row, **times, "plan": plan, "losses": losses, **promised}


def to_played_plan(plain: Mapping[str, Any]) -> PlayedPlan:
    """Return the play of plain data of ``of_played_plan``."""
    (row,) = rows_of(to_table([plain], PLAYS))
    promised = plain.get("prices", {}), plain.get("held", False)
    return PlayedPlan(row, plain["plan"], plain["losses"], *promised)


def of_beliefs(table: pd.DataFrame) -> dict[str, Any]:
    """Return a table of beliefs as plain data, with what the features do not explain."""
    return {"items": of_table(table), "misfit": table.attrs.get("misfit", "")}


def to_beliefs(plain: Mapping[str, Any], columns: Mapping[str, str]) -> pd.DataFrame:
    """Return plain data of ``of_beliefs`` as a table.

    Examples
    --------
    >>> from multiplay.studies.results import ARM_EFFECTS
    >>> plain = {"items": [{"arm": "A", "effect": 2.0, "low": None, "high": None}], "misfit": "!"}
    >>> to_beliefs(plain, ARM_EFFECTS).attrs
    {'misfit': '!'}
    """
    table = to_table(plain["items"], columns)
    table.attrs["misfit"] = plain["misfit"]
    return table


def _values(column: Any) -> list[Any]:
    if column.dtype.kind == "M":
        return [None if at != at else at.isoformat() for at in column]
    values = column.tolist()
    return [number_or_none(value) if type(value) is float else value for value in values]


def to_table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> pd.DataFrame:
    """Return rows as a table with these columns: the inverse of ``of_table``.

    Examples
    --------
    >>> from multiplay.studies.results import ARM_EFFECTS
    >>> to_table([{"arm": "A", "effect": 2.0, "low": None, "high": None, "units": 2}], ARM_EFFECTS)
      arm  effect  low  high
    0   A     2.0  NaN   NaN
    """
    return frame_of(columns, (tuple(row[name] for name in columns) for row in rows))


# ------------------------------------------------------------ user input


def plain_losses(told: Any) -> Any:
    """Return losses as plain data for JSON: None for a missing unit.

    Examples
    --------
    >>> from fractions import Fraction
    >>> plain_losses({"A": np.array([1, np.nan]), "B": Fraction(1, 4)})
    {'A': [1.0, None], 'B': 0.25}
    """
    told = unwrapped(told)
    if isinstance(told, Mapping):
        return {_arm("losses", name): _of_arm(losses_argument(name), told[name]) for name in told}
    if is_number(told) or type(told) in EXACT:
        return as_float("losses", told)
    if is_list(told):
        return [_of_arm(f"losses[{i}]", entry) for i, entry in enumerate(told)]
    hint = 'Use {"name of the arm": [loss of a unit, ...], ...}.'
    raise InvalidInput("losses", "a dict by arm name, or a list", repr(told), hint)


def _of_arm(argument: str, entry: Any) -> float | list[float | None] | None:
    """Return the losses of an arm, or their total; None if nothing was told."""
    told = losses_of_arm(argument, entry)
    if told is None or isinstance(told, float):
        return told
    return [number_or_none(loss) for loss in with_gaps(argument, told).tolist()]


def plain_units(argument: str, plan: Any) -> dict[str, int] | list[int]:
    """Return units by arm, or in order, as plain data for JSON.

    Examples
    --------
    >>> plain_units("plan", {"A": np.int64(2)})
    {'A': 2}
    """
    plan = by_label(plan)
    if is_list(plan):
        return [natural_number(f"{argument}[{i}]", k, UNITS) for i, k in enumerate(plan)]
    return plain_units_by_arm(argument, plan)


def plain_units_by_arm(argument: str, given: Any) -> dict[str, int]:
    """Return units by arm as plain data for JSON."""
    given = by_label(given)
    if not isinstance(given, Mapping):
        example = 'Use {"name of the arm": units, ...}.'
        raise InvalidInput(argument, "a dict by arm name", repr(given), example)
    return {
        _arm(argument, name): natural_number(f"{argument}[{name!r}]", given[name], UNITS)
        for name in given
    }


def plain_arms(argument: str, names: Any) -> list[str]:
    """Return names of arms as a list."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        hint = f"Use {argument}=['Lyon->north'], for example."
        raise InvalidInput(argument, "a list of names of arms", repr(names), hint)
    return [_arm(argument, name) for name in names]


def _arm(argument: str, name: Any) -> str:
    if not isinstance(name, str):  # as a key of JSON, 1 would become "1"
        raise InvalidInput(argument, "names of arms", repr(name), "Check the spelling.")
    return str(name)


def plain_features(given: Any, argument: str = "features") -> dict[str, Any] | None:
    """Return features as plain data for JSON: by feature a value for all arms, or values by arm.

    ``given`` is as in ``ask``, or the table of ``set_arm_features``. The service compares it with
    the declared features.

    Examples
    --------
    >>> plain_features({"fuel": np.float64(1.72), "rain": {"Lyon->south": True, "*": False}})
    {'fuel': 1.72, 'rain': {'Lyon->south': True, '*': False}}
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        arms, rows = rows_by_arm(given, argument)
        given = {name: dict(zip(arms, rows[name].tolist(), strict=True)) for name in rows.columns}
    plain: dict[str, Any] = {}
    for name, value in given.items():
        if not isinstance(name, str):
            hint = "Check the spelling."
            raise InvalidInput(argument, "names of features", repr(name), hint)
        where = f"{argument}[{name!r}]"
        if isinstance(value, Mapping):
            plain[name] = {
                _arm(where, arm): _feature(f"{where}[{arm!r}]", one) for arm, one in value.items()
            }
        else:
            plain[name] = _feature(where, value)
    return plain


def _feature(where: str, value: Any) -> bool | int | float | str:
    """Return the value of a feature; raise ``InvalidInput`` for one that no feature has."""
    value = item(value)
    if isinstance(value, str | bool | int) or (isinstance(value, float) and isfinite(value)):
        return value
    hint = "Give the value of this feature; a missing value cannot be used."
    raise InvalidInput(where, "a number, a text, or True or False", repr(value), hint)


def of_logged_table(
    file: TableFile,
    arm: str | Sequence[str],
    round: str,
    loss: str,
    id: str | None,
    declared: Features | None,
) -> dict[str, Any]:
    """Return the columns of a table for ``learn_table`` as plain data, one list each.

    With them come the columns of declared features, their names, and the numbers of the rows.

    Examples
    --------
    >>> from multiplay._support.frames import table_file
    >>> file = table_file({"lane": ["A"], "day": [1], "euros": [float("nan")]}, "lane")
    >>> plain = of_logged_table(file, "lane", "day", "euros", None, None)
    >>> plain["arm"], plain["round"], plain["loss"], plain["row"]
    ([['A']], [1], [None], 0)
    """
    parts, rows = arm_columns(arm), file.frame
    for name in (*parts, round, loss, *([] if id is None else [id])):
        column(rows, name, EXAMPLE, gaps=True)
    numbers = (rows.index.to_numpy() + file.first).tolist()
    first = numbers[0]
    has_gaps = numbers != list(range(first, first + len(numbers)))
    mark = None if file.format is None else file.format.decimal
    features = () if declared is None else declared.columns
    own_id = {} if id is None else {"id": id}
    plain = {
        "arm": [_cells(rows[part]) for part in parts],
        "round": _cells(rows[round]),
        "loss": _cells(rows[loss], mark),
        **{name: _cells(rows[of]) for name, of in own_id.items()},
        "columns": {"arm": list(parts), "round": round, "loss": loss, **own_id},
        "row": numbers if has_gaps else first,
    }
    own = {name: _cells(rows[name]) for name in features if name in rows.columns}
    return plain | ({"features": own} if declared is not None else {})


def _cells(values: pd.Series[Any], decimal: str | None = None) -> list[Any]:
    """Return a column as plain data; texts with a decimal mark become numbers."""
    missing = values.isna().tolist()
    cells = zip(values.tolist(), missing, strict=True)
    return [None if empty else _cell(value, decimal) for value, empty in cells]


def _cell(value: Any, decimal: str | None) -> Any:
    if isinstance(value, str) and decimal is not None:
        number = number_in(value, decimal)
        return value if number is None else number
    if isinstance(value, date):
        return value.isoformat()
    value = item(value)
    is_plain = isinstance(value, bool | int | str) or (isinstance(value, float) and isfinite(value))
    return value if is_plain else str(value)


class LoggedTable(NamedTuple):
    """A table for ``learn_table``, and the names of its columns."""

    table: TableFile
    arm: list[str]
    round: str
    loss: str
    id: str | None


def to_logged_table(plain: Mapping[str, Any]) -> LoggedTable:
    """Return plain data of ``of_logged_table`` as a table; one list may name the arms."""
    import pandas as pd

    arms = plain["arm"]
    parts = arms if arms and isinstance(arms[0], list) else [arms]
    default = ["arm"] if len(parts) == 1 else [f"arm[{k}]" for k in range(len(parts))]
    names: dict[str, Any] = {"arm": default, "round": "round", "loss": "loss", "id": "id"}
    names |= plain.get("columns") or {}
    if len(names["arm"]) != len(parts):
        got, hint = f"{len(names['arm'])}", "Give one name for each list of arm."
        raise InvalidInput("columns", f"{len(parts)} names of arm", got, hint)
    table = dict(zip(names["arm"], parts, strict=True))
    table |= {names["round"]: plain["round"], names["loss"]: plain["loss"]}
    id = None if plain.get("id") is None else names["id"]
    table |= {} if id is None else {id: plain["id"]}
    lists = {**plain.get("features", {}), **table}
    if len({len(values) for values in lists.values()}) > 1:
        got = ", ".join(f"{len(values)} of {name}" for name, values in lists.items())
        raise InvalidInput("table", "lists of the same length", got, "Check the lists.")
    row = plain.get("row", 0)
    rows = pd.DataFrame({name: pd.Series(values) for name, values in lists.items()})
    if isinstance(row, list):
        if len(row) != len(rows):
            got, hint = f"{len(row)}", "Give the number of each row, or of the first one."
            raise InvalidInput("row", f"{len(rows)} numbers", got, hint)
        rows.index = pd.Index(row, dtype=np.int64)
    first = 0 if isinstance(row, list) else row
    columns = names["arm"], names["round"], names["loss"], id
    return LoggedTable(TableFile(rows, None, first), *columns)
