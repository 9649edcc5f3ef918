"""Facts of a study for the terminal and for pages, collected in one pass over its history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay._support.formatting import Table, brief_policy
from multiplay.errors import InvalidInput
from multiplay.learner.constraints import ConstraintReport
from multiplay.learner.facts import Facts, PendingRow, arms_table, by_share, pending_table, rows_of
from multiplay.learner.plays import CANCELLED, PENDING, TOLD, Estimate
from multiplay.policies.index import follows_changes
from multiplay.reports.study_curve import Curve
from multiplay.studies import Study
from multiplay.studies.results import to_plain
from multiplay.types import FloatArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

CHUNK = 10_000  # plays that are read together
LAST = 10  # plays in the table of the last plays


class BestPlan(NamedTuple):
    """The best plan by current estimates, and its expected total."""

    plan: dict[str, int]
    expected: Estimate


@dataclass(frozen=True)
class StudyFacts(Facts):
    """The facts of a study, with its arms, alarms, pending plays, last plays and rounds.

    Attributes
    ----------
    name, store : str
        The name of the study, and the address of its store.
    rewards : bool
        Whether units bring rewards, rather than losses.
    follows : bool
        Whether the policy follows changes, or features explain them.
    level : float
        The level of the intervals.
    now : datetime
        The time of the facts.
    cancelled : int
        How many plays were cancelled.
    units : tuple of int
        The fewest and the most units of a play.
    incomplete : int
        Plays that were told without some units. In the curve their costs are scaled up by
        units / seen.
    arms, alarms, last : DataFrame
        ``Study.arms``, ``Study.drift`` and the last rows of ``Study.plays``.
    curve : Curve
        The costs of the plays, in the order in which they were asked.
    pending : list of PendingRow
        The pending plays, oldest first.
    best : BestPlan or InvalidInput
        The best plan, or the reason why it is not known.
    constraints : sequence of ConstraintReport
        What became of each constraint.
    saved : str
        What was saved against the rule of the study, in one line; "" if it was not computed.
    """

    name: str
    store: str
    rewards: bool
    follows: bool
    level: float
    now: datetime
    cancelled: int
    units: tuple[int, int]
    incomplete: int
    arms: pd.DataFrame
    alarms: pd.DataFrame
    last: pd.DataFrame
    curve: Curve
    pending: list[PendingRow]
    best: BestPlan | InvalidInput
    constraints: Sequence[ConstraintReport] = ()
    saved: str = ""

    def most_played(self, most: int) -> pd.DataFrame:
        """Return the arms that are in most plans, the most frequent first."""
        return by_share(self.arms).head(most)

    def arms_table(self, most: int) -> Table:
        """Return the arms that are in most plans as text."""
        return arms_table(self.most_played(most), len(self.arms), self.level, self.words)

    def pending_table(self, most: int) -> Table:
        """Return the oldest pending plays as text."""
        return pending_table(self.pending[:most], len(self.pending), self.now, self.words)

    def plain(self) -> dict[str, Any]:
        """Return the facts as plain data, for JSON."""
        return {
            "study": self.name,
            "store": self.store,
            "policy": self.policy,
            "unit": self.loss_range,
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
            "saved": self.saved or None,
            "constraints": [*map(to_plain, self.constraints)],
            "rounds": _plain_curve(self.curve),
            "drift": self.alarms.to_dict("records"),
            "plays_pending": [one._asdict() for one in self.pending],
            "last_plays": self.last.to_dict("records"),
        }


def study_facts(
    study: Study,
    last: int = LAST,
    level: float = 0.95,
    now: datetime | None = None,
    plays: Iterable[pd.DataFrame] | None = None,
) -> StudyFacts:
    """Return the facts of a study, in memory that does not grow with its history.

    Parameters
    ----------
    study
        The study, which is not changed.
    last
        How many of the last plays to include.
    level
        The level of the intervals.
    now
        The time of the facts; the current time if not given.
    plays
        The plays to include; all of them if not given, in a time that grows with the history.

    Examples
    --------
    >>> from multiplay import Study, Transport
    >>> study = Study.create("new", Transport([1, 1], [2]), store="memory://facts")
    >>> seen = study_facts(study)
    >>> seen.asked, seen.loss_range, seen.best.expected.total
    (0, 'losses from 0 to 1', 1.0)
    """
    arms = study.arms(level)
    history = _History(last)
    for table in study.plays(chunk=CHUNK) if plays is None else plays:
        history.add(table)
    plans = {play.id: play.plan for play in study.pending()}
    return StudyFacts(
        name=study.name,
        store=study.store.url,
        policy=brief_policy(study.policy),
        summary=study.policy.summary,
        words=study.words,
        set_type=type(study.actions).__name__,
        arm_count=len(arms),
        loss_range=study.loss_range,
        constrained_by=study.constrained_by,
        open_plays=len(plans),
        rewards=study.actions.sense == "max",
        follows=study.features is not None or follows_changes(study.policy),
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
            PendingRow(play.id, play.key, play.asked, play.units, play.expected, plans[play.id])
            for play in history.pending
            if play.id in plans  # otherwise it was told in the meantime
        ],
        best=_best_plan(study, level),
        constraints=study.constraints(),
    )


class _History:
    """Sums over plays, the pending plays, and the last plays."""

    def __init__(self, last: int) -> None:
        self.last: Any = None
        self.curve = Curve()
        self.number = dict.fromkeys((PENDING, TOLD, CANCELLED), 0)
        self.units = (0, 0)
        self.incomplete = 0
        self.pending: list[Any] = []
        self._most = last

    def add(self, plays: pd.DataFrame) -> None:
        """Add the next plays."""
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
    """Return the costs of all units, scaled up from the units seen; NaN if none was seen."""
    unknown = (seen == 0) & (units > 0)
    scale = np.where(seen < units, units / np.maximum(seen, 1), 1.0)
    return np.where(unknown, np.nan, realised * scale)


def _best_plan(study: Study, level: float) -> BestPlan | InvalidInput:
    try:
        best = study.best()
        return BestPlan(best.plan, study.expect(best.action, level=level))
    except InvalidInput as refused:
        return refused


def _plain_best(best: BestPlan | InvalidInput) -> dict[str, Any]:
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
