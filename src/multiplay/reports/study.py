"""What there is to show of a study, collected in one pass over its history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay._support.formatting import brief_policy
from multiplay.errors import InvalidInput
from multiplay.learner.plays import CANCELLED, PENDING, TOLD, Estimate
from multiplay.reports.study_curve import Curve
from multiplay.studies import Study
from multiplay.types import FloatArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

CHUNK = 10_000  # plays that are read at once
LAST = 10  # plays in the table of the last ones


class Open(NamedTuple):
    """A play that waits: when it was asked, of how many units, its plan and what it should cost."""

    id: int
    key: str | None
    asked: pd.Timestamp
    units: int
    expected: float
    plan: dict[str, int]


class Best(NamedTuple):
    """The best plan by what is known now, with what it should cost."""

    plan: dict[str, int]
    expected: Estimate


@dataclass(frozen=True)
class Facts:
    """All that is shown of a study, in its own unit.

    Attributes
    ----------
    name, store, policy, unit : str
        What it is called, where it is kept, how it learns, and what a unit can cost or bring.
    rewards : bool
        Whether units bring rewards, rather than cost something.
    level : float
        Of the intervals.
    now : datetime
        When it was looked at.
    asked, told, cancelled, clipped : int
        How many plays were asked, told and cancelled; how many numbers were clipped.
    units : tuple of int
        The fewest and the most units of a play.
    incomplete : int
        Plays that were told, but not of all units. In the curve their costs are scaled up: times
        units / seen.
    arms, alarms, last : DataFrame
        As ``Study.arms``, ``Study.drift`` and the last rows of ``Study.plays``.
    curve : Curve
        What the plays cost, in the order in which they were asked.
    pending : list of Open
        The plays that wait, oldest first.
    best : Best or InvalidInput
        The best plan, or why it is not known.
    """

    name: str
    store: str
    policy: str
    unit: str
    rewards: bool
    level: float
    now: datetime
    asked: int
    told: int
    cancelled: int
    clipped: int
    units: tuple[int, int]
    incomplete: int
    arms: pd.DataFrame
    alarms: pd.DataFrame
    last: pd.DataFrame
    curve: Curve
    pending: list[Open]
    best: Best | InvalidInput

    def by_share(self) -> pd.DataFrame:
        """Return the arms, those that are in most plans first."""
        return self.arms.sort_values(["share", "seen"], ascending=False, kind="stable")

    def plain(self) -> dict[str, Any]:
        """Return all of it for programs."""
        return {
            "study": self.name,
            "store": self.store,
            "policy": self.policy,
            "unit": self.unit,
            "at": self.now,
            "asked": self.asked,
            "told": self.told,
            "pending": len(self.pending),
            "cancelled": self.cancelled,
            "clipped": self.clipped,
            "incomplete": self.incomplete,
            "level": self.level,
            "arms": self.arms.to_dict("records"),
            "best": _plain_best(self.best),
            "rounds": _plain_curve(self.curve),
            "drift": self.alarms.to_dict("records"),
            "plays_pending": [one._asdict() for one in self.pending],
            "last_plays": self.last.to_dict("records"),
        }


def facts(
    study: Study,
    last: int = LAST,
    level: float = 0.95,
    now: datetime | None = None,
    plays: Iterable[pd.DataFrame] | None = None,
) -> Facts:
    """Collect what is shown; the memory that it takes does not grow with the history.

    Parameters
    ----------
    study
        Nothing of it is changed.
    last
        How many of the last plays to keep.
    level
        Of the intervals.
    now
        When it is looked at; by the clock if not given.
    plays
        Those to collect; all of them if not given, which takes as long as the history.

    Examples
    --------
    >>> from multiplay import GenCTS, Study, Transport
    >>> study = Study.create("new", Transport([1, 1], [2]), GenCTS(), store="memory://facts")
    >>> seen = facts(study)
    >>> seen.asked, seen.unit, seen.best.expected.total
    (0, 'losses from 0 to 1', 1.0)
    """
    arms = study.arms(level)
    history = _History(last)
    for table in study.plays(chunk=CHUNK) if plays is None else plays:
        history.add(table)
    plans = {play.id: play.plan for play in study.pending()}
    return Facts(
        name=study.name,
        store=study.store.url,
        policy=brief_policy(study.policy),
        unit=study.unit,
        rewards=study.actions.sense == "max",
        level=level,
        now=datetime.now(UTC) if now is None else now,
        asked=history.curve.rounds,
        told=history.number[TOLD],
        cancelled=history.number[CANCELLED],
        clipped=study.clipped,
        units=history.units,
        incomplete=history.incomplete,
        arms=arms,
        alarms=study.drift(),
        last=history.last,
        curve=history.curve,
        pending=[
            Open(play.id, play.key, play.asked, play.units, play.expected, plans[play.id])
            for play in history.pending
            if play.id in plans  # else it was told meanwhile
        ],
        best=_best(study, level),
    )


class _History:
    """Sums over plays, those that wait, and the last ones."""

    def __init__(self, last: int) -> None:
        self.last: Any = None
        self.curve = Curve()
        self.number = dict.fromkeys((PENDING, TOLD, CANCELLED), 0)
        self.units = (0, 0)
        self.incomplete = 0
        self.pending: list[Any] = []
        self._most = last

    def add(self, plays: pd.DataFrame) -> None:
        """Go on with some plays."""
        import pandas as pd

        status, units, seen = (plays[name].to_numpy() for name in ("status", "units", "seen"))
        told = status == TOLD
        realised = np.where(told, plays["realised"].to_numpy(), np.nan)
        self.curve.add(_of_all(realised, units, seen), plays["expected"].to_numpy())
        for name in self.number:
            self.number[name] += int((status == name).sum())
        self.incomplete += int((told & (seen < units)).sum())
        if len(units):
            ends = int(units.min()), int(units.max())
            old = self.units if self.last is not None else ends
            self.units = min(old[0], ends[0]), max(old[1], ends[1])
        self.pending += rows_of(plays[status == PENDING])
        enough = self.last is None or len(plays) >= self._most
        kept = plays if enough else pd.concat([self.last, plays])
        self.last = kept.tail(self._most).reset_index(drop=True)


def _of_all(realised: FloatArray, units: FloatArray, seen: FloatArray) -> FloatArray:
    """Return what all units cost, if they cost on average what those seen did; NaN for none."""
    unknown = (seen == 0) & (units > 0)
    scale = np.where(seen < units, units / np.maximum(seen, 1), 1.0)
    return np.where(unknown, np.nan, realised * scale)


def _best(study: Study, level: float) -> Best | InvalidInput:
    try:
        best = study.best()
        return Best(best.plan, study.expect(best.action, level=level))
    except InvalidInput as refused:
        return refused


def _plain_best(best: Best | InvalidInput) -> dict[str, Any]:
    if isinstance(best, InvalidInput):
        return {"refused": str(best)}
    return {"plan": best.plan, "expected": best.expected._asdict()}


def _plain_curve(curve: Curve) -> dict[str, Any]:
    change = curve.change()
    return {
        "known": curve.known,
        "mean": curve.whole.realised,
        "expected": curve.whole.expected,
        "change": None
        if change is None
        else {name: _plain(value) for name, value in change._asdict().items()},
        "stretches": [
            {"first": one.first, "last": one.last, **_plain(one.average)}
            for one in curve.stretches()
        ],
    }


def _plain(value: Any) -> Any:
    return dict(value._asdict()) if hasattr(value, "_asdict") else value


def rows_of(table: pd.DataFrame) -> list[Any]:
    """Return the rows of a table, with names as in its head."""
    return [*table.itertuples(index=False)]
