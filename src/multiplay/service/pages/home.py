"""Home page: for each study the plan of today, missing reports, the last costs and changes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay._support.dates import day_names
from multiplay._support.formatting import plan_text
from multiplay._support.words import Words, noun_of
from multiplay.learner.facts import rows_of
from multiplay.learner.plays import TOLD, PendingPlay
from multiplay.reports.study_curve import Change, Curve
from multiplay.service.pages.features import day_fields
from multiplay.service.pages.plans import set_summary
from multiplay.storage import Journal
from multiplay.studies import Study, play_history
from multiplay.types import FloatArray

if TYPE_CHECKING:
    import pandas as pd

ROUNDS = 30  # on the small curve
ENTRIES = 3 * ROUNDS  # that are read: a play has two, and some have more
MOST_MISSING, MOST_CHANGES, MOST_ARMS = 3, 3, 3  # that are listed; the others are counted
WIDTH, HEIGHT, MARGIN = 220.0, 48.0, 4.0  # of a small curve


class PlanLine(NamedTuple):
    """A plan in a line of text."""

    id: int
    day: str
    text: str
    cost: str
    is_told: bool


class MissingReport(NamedTuple):
    """A play of an earlier day without a final report."""

    id: int
    day: str


class Sparkline(NamedTuple):
    """A small curve of the last costs: the points, the trend, and both in words."""

    points: list[tuple[float, float]]
    trend: str
    words: str


class StudyCard(NamedTuple):
    """A study on the home page; ``problem`` says why it cannot be read, if so."""

    name: str
    kind: str = ""
    asked: int = 0
    round: str = "day"
    plan: PlanLine | None = None
    asks_here: bool = False
    missing: Sequence[MissingReport] = ()
    more_missing: int = 0
    changes: Sequence[str] = ()
    more_changes: int = 0
    curve: Sparkline | None = None
    problem: str = ""


class StudyToday(NamedTuple):
    """What the home page needs to know from the state of a study."""

    card: StudyCard
    words: Words
    noun: str
    pending: list[PendingPlay]


def study_today(study: Study) -> StudyToday:
    """Return the state of a study for the home page."""
    found = study.drift()
    words, changes = study.words, changes_text(found.head(MOST_CHANGES), study.words)
    pending = study.pending()
    for play in pending[-1:]:
        _ = play.expected  # computed now and kept, while the study may be used
    card = StudyCard(
        study.name,
        set_summary(study.actions),
        study.asked,
        words.round,
        asks_here=not day_fields(study),
        changes=changes,
        more_changes=len(found) - len(changes),
    )
    return StudyToday(card, words, noun_of(study.actions.sense), pending)


def study_card(today: StudyToday, journal: Journal, now: datetime) -> StudyCard:
    """Return a study for the home page, with its last plays."""
    start = max(journal.head().number + 1 - ENTRIES, 0)
    *_, plays = play_history.play_tables(journal, 2 * ENTRIES, start)
    days = {int(play.id): day_of(play.key, play.asked) for play in rows_of(plays)}
    missing = [
        MissingReport(play.id, days.get(play.id) or play.key or f"{today.words.round} {play.id}")
        for play in today.pending
        if days.get(play.id, "") < f"{now:%Y-%m-%d}"
    ]
    return today.card._replace(
        plan=_plan(today, plays, days, f"{now:%Y-%m-%d}"),
        missing=missing[:MOST_MISSING],
        more_missing=max(len(missing) - MOST_MISSING, 0),
        curve=sparkline(_all_days(journal, start, plays), today.words, today.noun),
    )


def day_of(key: str | None, asked: datetime) -> str:
    """Return the day of a play: its key, if that is a date, or the day on which it was asked.

    Examples
    --------
    >>> day_of("2026-11-16", datetime(2026, 11, 15)), day_of("Monday", datetime(2026, 11, 15))
    ('2026-11-16', '2026-11-15')
    """
    days = [] if key is None else day_names(key)
    return days[0] if len(days) > 1 else f"{asked:%Y-%m-%d}"


def _plan(
    today: StudyToday, plays: pd.DataFrame, days: dict[int, str], now: str
) -> PlanLine | None:
    """Return the newest plan of today or later; of today also one that was told."""
    words = today.words
    for play in reversed(today.pending):
        day = days.get(play.id, "")
        if day >= now:
            cost = f"should {'cost' if today.noun == 'cost' else 'bring'} "
            cost += words.estimate(*play.expected)
            return PlanLine(play.id, day, plan_text(play.plan, arm=words.arm), cost, is_told=False)
    for row in reversed([*rows_of(plays)]):
        if row.status == TOLD and days[int(row.id)] == now:
            cost, missing = words.money(float(row.realised)), int(row.units) - int(row.seen)
            cost += f", {words.units(missing)} not reported" if missing else ""
            return PlanLine(int(row.id), now, "", cost, is_told=True)
    return None


def _all_days(journal: Journal, start: int, plays: pd.DataFrame) -> pd.DataFrame:
    """Return the costs of plays and of external days, in order of time."""
    import pandas as pd

    external = play_history.external_days(journal, start).tail(ROUNDS)
    if not len(external):
        return plays
    return pd.concat([plays, external]).sort_values("asked", kind="stable", na_position="first")


def changes_text(changes: pd.DataFrame, words: Words) -> list[str]:
    """Return changes of arms as sentences, with what was done about them."""
    return [
        f"{_arms(row.arms, words)}: {words.money(row.before)} before, {words.money(row.after)} "
        f"{_moment(row, words)}. "
        + ("Older reports no longer count." if row.acted else "Older reports still count.")
        for row in rows_of(changes)
    ]


def _moment(change: Any, words: Words) -> str:
    """Return when a change was: the day of a table, or a round."""
    from pandas import NaT

    if change.date is NaT:
        return f"after {words.round} {change.since}"
    return f"since {change.date:%Y-%m-%d}"


def _arms(names: Sequence[str], words: Words) -> str:
    shown = ", ".join(names[:MOST_ARMS])
    more = len(names) - MOST_ARMS
    return f"{shown} and {words.arms(more)} more" if more > 0 else shown


def sparkline(plays: pd.DataFrame, words: Words, noun: str = "cost") -> Sparkline | None:
    """Return the small curve of the last costs; None for fewer than two.

    External days have the id 0.
    """
    known: Any = plays[plays["realised"].notna()].tail(ROUNDS)
    costs: FloatArray = known["realised"].to_numpy(dtype=float)
    if len(costs) < 2:
        return None
    curve = Curve()
    curve.add(costs, np.full(len(costs), np.nan))
    trend = curve.trend()
    low, high = float(costs.min()), float(costs.max())
    x = np.linspace(MARGIN, WIDTH - MARGIN, len(costs))

    def y(values: FloatArray) -> FloatArray:
        shares = (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
        return np.asarray(HEIGHT - MARGIN - shares * (HEIGHT - 2 * MARGIN))

    across, up, middle = x.tolist(), y(costs).tolist(), y(trend).tolist()
    points = [(round(a, 1), round(b, 1)) for a, b in zip(across, up, strict=True)]
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, middle, strict=True))
    last = f"{words.money(float(costs[-1]))} on the last {words.round}"
    text = f"{noun.capitalize()} of the last {words.rounds(len(costs))}: {last}"
    external = int((known["id"] == 0).sum())
    text += f" ({external} from an import or another plan)" if external else ""
    return Sparkline(points, line, f"{text}, {trend_text(curve.change(), words)}")


def trend_text(change: Change | None, words: Words) -> str:
    """Return the change from the first to the last quarter of a curve as text."""
    if change is None:
        return "trend not known yet"
    if not change.is_clear:
        return "no clear trend"
    way = "falling" if change.difference < 0 else "rising"
    ends = sorted((abs(change.low), abs(change.high)))
    return f"{way} by {words.money(abs(change.difference))} ({words.between(*ends)})"
