"""Logged data: a table with one row for each unit, as reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay._support.checks import is_number
from multiplay._support.frames import column, frame, in_order
from multiplay.errors import InvalidInput
from multiplay.features import Features
from multiplay.features.columns import Column
from multiplay.features.table import item
from multiplay.learner.ranges import Ranges
from multiplay.learner.reports import Report
from multiplay.types import Arrays, FloatArray, IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd


NO_FEATURES: Arrays = {}


class LoggedData(NamedTuple):
    """Logged losses, one entry of each array for each unit.

    Attributes
    ----------
    arms : list of names
        The different arms.
    arm, round : arrays
        The number of the arm of each unit in ``arms``, and the number of its round.
    loss : array
        The loss of each unit, in the user's unit; NaN if it is missing.
    features : dict of arrays
        The codes of the features of each unit, for features that are columns of the table.
    """

    arms: list[str]
    arm: IntArray
    round: IntArray
    loss: FloatArray
    features: Arrays = NO_FEATURES


def read_table(
    table: Any, arm: str, round: str, loss: str, features: Features | None = None
) -> LoggedData:
    """Return a table as logged data; rounds are numbered in the order of their labels.

    Of ``features``, those that have a column in the table are read.
    """
    import pandas as pd

    example = "learn_table(table, arm='lane', round='day', loss='cost')"
    rows = frame(table, arm)
    labels = column(rows, round, example)
    names = column(rows, arm, example).astype(str)
    losses = column(rows, loss, example, gaps=True)
    values = _values(losses, f"table[{loss!r}]")
    codes, arms = pd.factorize(names)
    rounds, _ = in_order(labels)
    found: Arrays = {}
    if features is not None:
        for name, kind in features.columns.items():
            if name in rows.columns and name not in (arm, round, loss):
                found[name] = _codes(kind, name, column(rows, name, example))
    return LoggedData([str(name) for name in arms], codes, rounds, values, found)


def _codes(column: Column, name: str, values: pd.Series[Any]) -> FloatArray:
    """Return the codes of a column of features; each different value is read once."""
    import pandas as pd

    numbers, different = pd.factorize(values)
    where = f"table[{name!r}]"
    codes = np.array([column.code(where, item(value)) for value in different], dtype=float)
    found: FloatArray = codes[numbers]
    return found


def reports(
    logged: LoggedData, names: tuple[str, ...], ranges: Ranges, argument: str = "table"
) -> list[Report]:
    """Return a report of all these arms for each round of logged data."""
    number = {name: i for i, name in enumerate(names)}
    unknown = [name for name in logged.arms if name not in number]
    if unknown:
        raise InvalidInput(
            argument,
            f"names of known arms, such as {names[0]!r}",
            repr(unknown[0]),
            "Rename the arms, or remove the rows of unknown arms.",
        )
    places = np.array([number[name] for name in logged.arms], dtype=np.int64)[logged.arm]
    rounds, values = logged.round, logged.loss
    order, found = np.lexsort((places, rounds)), []
    bounds = ranges.of(names)
    for rows_of in np.split(order, np.flatnonzero(np.diff(rounds[order])) + 1):
        count = np.bincount(places[rows_of], minlength=len(names))
        learned, clipped = ranges.learned(names, bounds, count, values[rows_of])
        gaps = bool(np.isnan(learned).any())
        found.append(Report(count, count, learned, {}, None, gaps, clipped, whole=not gaps))
    return found


def _values(losses: pd.Series[Any], argument: str) -> FloatArray:
    """Return a column of losses, NaN where one is missing."""
    hint = "Use numbers, and an empty cell where a loss is missing."
    if losses.dtype.kind not in "biuf":
        wrong = [one for one in losses.dropna() if not is_number(one)]
        got = repr(wrong[0]) if wrong else f"{losses.dtype}"
        raise InvalidInput(argument, "numbers", got, hint)
    values: FloatArray = losses.to_numpy(dtype=float, na_value=np.nan)
    if np.isinf(values).any():
        raise InvalidInput(argument, "finite numbers", f"{values[np.isinf(values)][0]}", hint)
    return values
