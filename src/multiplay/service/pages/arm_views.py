"""The page of the arms of a study as data: what is believed of each, and what has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from multiplay._support.formatting import Table
from multiplay._support.words import Words, money_text
from multiplay.learner import facts as learner_facts
from multiplay.reports import study_text
from multiplay.reports.study import StudyFacts
from multiplay.service.pages.features import Drivers, drivers
from multiplay.service.pages.home import MOST_CHANGES, changes_text
from multiplay.studies import Study

if TYPE_CHECKING:
    import pandas as pd

MOST_ALARMS = 20
MOST_ARMS = 200  # rows, unless all of them are requested
BAR_WIDTH, BAR_MARGIN = 120.0, 5.0
PLAIN = Words()


class IntervalBar(NamedTuple):
    """An interval on the scale of all arms; without a mean where nothing was seen."""

    low: float
    high: float
    mean: float | None


class ArmRow(NamedTuple):
    """An arm as text, with the bar of its interval; ``long_run`` where losses persist, else ""."""

    name: str
    seen: int
    mean: str
    interval: str
    long_run: str
    bar: IntervalBar | None
    last_seen: str
    share: str


class ArmRows(NamedTuple):
    """The arms on a page.

    Attributes
    ----------
    rows : list of ArmRow
        The arms that are shown.
    found, all : int
        The number of arms that match the filter, and of all arms.
    wanted : str
        The filter: a part of the name.
    whole : bool
        Whether all arms that match were requested.
    low, high : str
        The ends of the scale.
    """

    rows: list[ArmRow]
    found: int
    all: int
    wanted: str
    whole: bool
    low: str
    high: str


class ChangedArm(NamedTuple):
    """An arm that has changed: the round to forget before, or whether that was done."""

    name: str
    before: int
    acted: bool


class ArmsTab(NamedTuple):
    """The content of the page: ``restarts`` is whether reports can be forgotten."""

    arms: ArmRows
    alarms: Table
    changes: list[str]
    changed: list[ChangedArm]
    restarts: bool
    names: tuple[str, ...]
    no_alarm: str
    follows: bool
    drivers: Drivers | None


def arms_tab(study: Study, found: StudyFacts, wanted: str = "", whole: bool = False) -> ArmsTab:
    """Return the page of the arms, those whose names contain ``wanted``."""
    return ArmsTab(
        arms=arm_rows(found.arms, wanted, whole, study.words),
        alarms=study_text.alarms_table(found, MOST_ALARMS),
        changes=changes_text(found.alarms.head(MOST_CHANGES), study.words),
        changed=changed_arms(found.alarms),
        restarts=study.policy.partial,
        names=study.known_arms[:MOST_ARMS],
        no_alarm=study_text.no_alarm(found),
        follows=found.follows,
        drivers=drivers(study),
    )


def arm_rows(
    table: pd.DataFrame, wanted: str = "", whole: bool = False, words: Words = PLAIN
) -> ArmRows:
    """Return the arms whose names contain ``wanted``, the most frequent in plans first."""
    part = wanted.strip().casefold()
    fits = [part in name.casefold() for name in table["arm"]]
    found = learner_facts.by_share(table[fits])
    shown = found if whole else found.head(MOST_ARMS)
    known = shown[["low", "high"]].to_numpy()
    known = known[np.isfinite(known)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    cells = learner_facts.arms_table(shown, len(table), words=words).rows
    rows = [
        ArmRow(
            name=str(arm.arm),
            seen=int(arm.seen),
            mean=mean,
            interval=interval,
            long_run="".join(long_run),
            bar=_bar(arm.low, arm.mean, arm.high, low, high),
            last_seen=last_seen,
            share=share,
        )
        for arm, (_, _, mean, interval, *long_run, last_seen, share) in zip(
            learner_facts.rows_of(shown), cells, strict=True
        )
    ]
    ends = (money_text(end) for end in (low, high))
    return ArmRows(rows, len(found), len(table), wanted, whole, *ends)


def _bar(low: float, mean: float, high: float, first: float, last: float) -> IntervalBar | None:
    if not np.isfinite([low, high]).all():
        return None

    def place(value: float) -> float:
        share = (value - first) / (last - first or 1.0)
        return round(BAR_MARGIN + float(share) * (BAR_WIDTH - 2 * BAR_MARGIN), 1)

    return IntervalBar(place(low), place(high), None if np.isnan(mean) else place(mean))


def changed_arms(alarms: pd.DataFrame) -> list[ChangedArm]:
    """Return the arms of the first alarms that are later than all tables."""
    return [
        ChangedArm(arm, int(row.since) + 1, bool(row.acted))
        for row in learner_facts.rows_of(alarms[alarms["date"].isna()].head(MOST_ALARMS))
        for arm in row.arms
    ][:MOST_ALARMS]
