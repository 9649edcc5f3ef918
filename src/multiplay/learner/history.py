"""Years of history: a table with one row for each unit, as reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay.checks import is_number
from multiplay.errors import InvalidInput
from multiplay.learner.ranges import Ranges
from multiplay.learner.report import Report
from multiplay.tables import column, frame, in_order
from multiplay.types import FloatArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd


def read_history(
    table: Any, arm: str, round: str, loss: str, names: tuple[str, ...], ranges: Ranges
) -> list[Report]:
    """Return a report of all these arms for each round of a table, in the order of its labels."""
    example = "learn_table(table, arm='lane', round='day', loss='cost')"
    rows = frame(table, arm)
    labels = column(rows, round, example)
    arms = column(rows, arm, example).astype(str).to_numpy()
    losses = column(rows, loss, example, gaps=True)
    number = {name: i for i, name in enumerate(names)}
    unknown = [name for name in arms if name not in number]
    if unknown:
        raise InvalidInput(
            f"table[{arm!r}]",
            f"the names of arms that are known, such as {names[0]!r}",
            repr(unknown[0]),
            "Rename the arms, or leave the rows of the others out.",
        )
    values = _values(losses, f"table[{loss!r}]")
    places = np.array([number[name] for name in arms], dtype=np.int64)
    rounds, _ = in_order(labels)
    order, reports = np.lexsort((places, rounds)), []
    bounds = ranges.of(names)
    for rows_of in np.split(order, np.flatnonzero(np.diff(rounds[order])) + 1):
        count = np.bincount(places[rows_of], minlength=len(names))
        learned, clipped = ranges.learned(names, bounds, count, values[rows_of])
        gaps = bool(np.isnan(learned).any())
        reports.append(Report(count, count, learned, {}, None, gaps, clipped, whole=not gaps))
    return reports


def _values(losses: pd.Series[Any], argument: str) -> FloatArray:
    """Return a column of losses, NaN where one is missing."""
    hint = "Give numbers, and leave a cell empty where one is missing."
    if losses.dtype.kind not in "biuf":
        others = [one for one in losses.dropna() if not is_number(one)]
        got = repr(others[0]) if others else f"{losses.dtype}"
        raise InvalidInput(argument, "numbers", got, hint)
    values: FloatArray = losses.to_numpy(dtype=float, na_value=np.nan)
    if np.isinf(values).any():
        raise InvalidInput(argument, "finite numbers", f"{values[np.isinf(values)][0]}", hint)
    return values
