"""Sets, plays and tables as JSON, for a service and its clients: each way there and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay import actions as sets
from multiplay import policies
from multiplay.builder import Builder, classes_of
from multiplay.learner.plays import Expected, PendingPlay, Plan, Told
from multiplay.serialization import pack
from multiplay.types import Arrays

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

TIMES = {"asked", "told", "last_seen"}  # columns of tables


# ------------------------------------------------------------ sets and policies


def to_plain(where: str, thing: Any) -> Any:
    """Return a set or a policy as JSON can hold it; nothing is lost.

    Examples
    --------
    >>> from multiplay import Budget
    >>> plain = to_plain("actions", Budget(2, [1, 1, 3]))
    >>> plain["type"], plain["caps"], builder().build("actions", plain).caps
    ('Budget', [1, 1, 3], array([1, 1, 3]))
    """
    header, arrays = pack(thing, where)
    return _with_arrays(header, arrays)


def _with_arrays(plain: Any, arrays: Arrays) -> Any:
    """Return packed data with its arrays as lists."""
    if isinstance(plain, list):
        return [_with_arrays(value, arrays) for value in plain]
    if not isinstance(plain, dict):
        return plain
    if plain.get("type") == "array":
        return arrays[plain["name"]].tolist()
    return {key: _with_arrays(value, arrays) for key, value in plain.items()}


def builder() -> Builder:
    """Return what builds sets and policies of plain data; it imports nothing."""
    containers: dict[str, Any] = {
        "tuple": lambda items: tuple(items),
        "mapping": lambda keys, values: dict(zip(keys, values, strict=True)),
    }
    return Builder({**classes_of(sets), **classes_of(policies), **containers})


# ------------------------------------------------------------ plays and reports


def number(value: float) -> float | None:
    """Return a number as JSON can write it: None for NaN."""
    return value if math.isfinite(value) else None


def from_number(value: float | None) -> float:
    """Return what ``number`` was given."""
    return math.nan if value is None else float(value)


def of_expected(expected: Expected) -> dict[str, Any]:
    """Return what a plan should cost."""
    return {name: number(float(value)) for name, value in expected._asdict().items()}


def to_expected(plain: Mapping[str, Any]) -> Expected:
    """Return what ``of_expected`` was given."""
    return Expected(*(from_number(plain[name]) for name in Expected._fields))


def of_plan(plan: Plan | PendingPlay) -> dict[str, Any]:
    """Return a plan: units by arm, the same in order, and what it should cost."""
    return {
        "plan": dict(plan.plan),
        "action": plan.action.tolist(),
        "expected": of_expected(plan.expected),
    }


def to_plan(plain: Mapping[str, Any]) -> Plan:
    """Return what ``of_plan`` was given."""
    return Plan(_action(plain), dict(plain["plan"]), lambda: to_expected(plain["expected"]))


def of_play(play: PendingPlay) -> dict[str, Any]:
    """Return a play."""
    return {"id": play.id, "key": play.key, "hurried": play.hurried, **of_plan(play)}


def to_play(plain: Mapping[str, Any]) -> PendingPlay:
    """Return what ``of_play`` was given."""
    return PendingPlay(
        plain["id"],
        _action(plain),
        dict(plain["plan"]),
        plain["key"],
        lambda: to_expected(plain["expected"]),
        plain["hurried"],
    )


def _action(plain: Mapping[str, Any]) -> Any:
    return np.array(plain["action"], dtype=np.int64)


def of_told(told: Told) -> dict[str, Any]:
    """Return what became of a report."""
    return told._asdict()


def to_told(plain: Mapping[str, Any]) -> Told:
    """Return what ``of_told`` was given."""
    return Told(**{name: plain[name] for name in Told._fields})


# ------------------------------------------------------------ tables


def of_table(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table: times as text, NaN as null.

    Examples
    --------
    >>> import pandas as pd
    >>> of_table(pd.DataFrame({"arm": ["A"], "mean": [float("nan")]}))
    [{'arm': 'A', 'mean': None}]
    """
    columns = {name: _values(name, table[name]) for name in table.columns}
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _values(name: str, column: Any) -> list[Any]:
    if name in TIMES:
        return [None if at != at else at.isoformat() for at in column]
    values = column.tolist()
    return [number(value) if type(value) is float else value for value in values]


def to_table(rows: Iterable[Mapping[str, Any]], like: pd.DataFrame) -> pd.DataFrame:
    """Return rows as a table with the columns and types of another one."""
    import pandas as pd

    rows = list(rows)
    made = {}
    for name, kind in zip(map(str, like.columns), like.dtypes, strict=True):
        values = [row[name] for row in rows]
        if name in TIMES:
            made[name] = pd.to_datetime(pd.Series(values, dtype=object), utc=True).astype(kind)
        elif kind == np.float64:
            made[name] = pd.Series([from_number(value) for value in values], dtype=kind)
        else:
            made[name] = pd.Series(values, dtype=kind)
    return pd.DataFrame(made)


def losses(told: Any) -> Any:
    """Return losses as JSON can hold them: None for a unit that did not report."""
    return _plain_numbers(told, _loss)


def units(plan: Any) -> Any:
    """Return units by arm, or in order, as JSON can hold them."""
    return _plain_numbers(plan, lambda value: value)


def _plain_numbers(given: Any, leaf: Callable[[Any], Any]) -> Any:
    if hasattr(given, "items"):  # a dict, or a pandas Series
        return {key: _plain_numbers(value, leaf) for key, value in given.items()}
    if hasattr(given, "tolist"):  # of numpy
        given = given.tolist()
    if isinstance(given, list | tuple):
        return [_plain_numbers(value, leaf) for value in given]
    return leaf(given)


def _loss(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
