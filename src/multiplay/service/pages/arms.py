"""Every arm with its mean and its interval, as rows with bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from multiplay._support.formatting import amount, between, number, percent
from multiplay.reports.study import rows_of
from multiplay.reports.study_words import moment
from multiplay.studies import Study

if TYPE_CHECKING:
    import pandas as pd

MOST = 200  # rows at once
WIDTH, MARGIN = 120.0, 5.0  # of a bar
LEVEL = 0.95


class Bar(NamedTuple):
    """An interval on the scale of all arms; without a dot where nothing was seen."""

    low: float
    high: float
    mean: float | None


class Arm(NamedTuple):
    """An arm in words, with its bar."""

    name: str
    seen: int
    mean: str
    interval: str
    bar: Bar | None
    last_seen: str
    share: str


class Arms(NamedTuple):
    """The arms of a page.

    Attributes
    ----------
    rows : list of Arm
        Those that are shown.
    found, all : int
        How many fit what was looked for, and how many there are.
    wanted : str
        What was looked for in their names.
    whole : bool
        Whether all that fit were asked for.
    low, high : str
        The ends of the scale.
    """

    rows: list[Arm]
    found: int
    all: int
    wanted: str
    whole: bool
    low: str
    high: str


def arms_of(study: Study, wanted: str = "", whole: bool = False) -> Arms:
    """Return the arms whose names have these letters, those that are in most plans first."""
    return shown(study.arms(LEVEL), wanted, whole)


def shown(table: pd.DataFrame, wanted: str = "", whole: bool = False) -> Arms:
    """Return arms for a page."""
    letters = wanted.strip().casefold()
    fits = [letters in name.casefold() for name in table["arm"]]
    found = table[fits].sort_values(["share", "seen"], ascending=False, kind="stable")
    part = found if whole else found.head(MOST)
    ends = part[["low", "high"]].to_numpy()
    ends = ends[np.isfinite(ends)]
    low, high = (float(ends.min()), float(ends.max())) if len(ends) else (0.0, 1.0)
    rows = [
        Arm(
            name=str(arm.arm),
            seen=int(arm.seen),
            mean=amount(arm.mean),
            interval=between(arm.low, arm.high),
            bar=_bar(arm.low, arm.mean, arm.high, low, high),
            last_seen=moment(arm.last_seen),
            share=percent(arm.share),
        )
        for arm in rows_of(part)
    ]
    return Arms(rows, len(found), len(table), wanted, whole, number(low), number(high))


def _bar(low: float, mean: float, high: float, first: float, last: float) -> Bar | None:
    if not np.isfinite([low, high]).all():
        return None

    def place(value: float) -> float:
        share = (value - first) / (last - first or 1.0)
        return round(MARGIN + float(share) * (WIDTH - 2 * MARGIN), 1)

    return Bar(place(low), place(high), None if np.isnan(mean) else place(mean))
