"""Years of history: a table with one row for each unit, as reports."""

from typing import Any

import numpy as np

from multiplay.errors import InvalidInput
from multiplay.learner.losses import Report
from multiplay.learner.ranges import Ranges
from multiplay.tables import column, frame, in_order


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
    if losses.dtype.kind not in "biuf":
        hint = "Give numbers, and leave a cell empty where one is missing."
        raise InvalidInput(f"table[{loss!r}]", "numbers", f"{losses.dtype}", hint)
    places = np.array([number[name] for name in arms], dtype=np.int64)
    values, (rounds, _) = losses.to_numpy(dtype=float), in_order(labels)
    order, reports = np.lexsort((places, rounds)), []
    bounds = ranges.of(names)
    for rows_of in np.split(order, np.flatnonzero(np.diff(rounds[order])) + 1):
        count = np.bincount(places[rows_of], minlength=len(names))
        learned, clipped = ranges.learned(names, bounds, count, values[rows_of])
        gaps = bool(np.isnan(learned).any())
        reports.append(Report(count, count, learned, {}, None, gaps, clipped, whole=not gaps))
    return reports
