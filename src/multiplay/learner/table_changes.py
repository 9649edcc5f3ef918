"""Changes of arms within tables of logged data, whose dates are the rounds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from multiplay.beliefs.changes import changes_of
from multiplay.feedback import Feedback
from multiplay.kernels import moments as kernels
from multiplay.learner.logged_data import LoggedData
from multiplay.learner.ranges import Ranges
from multiplay.learner.statistics import Drift
from multiplay.posteriors.memories import Changes
from multiplay.posteriors.moments import Moments
from multiplay.types import FloatArray, IntArray


class TableChange(NamedTuple):
    """A change of the mean loss of an arm, or of several arms at once, within tables.

    Attributes
    ----------
    arms : tuple of str
        The arms.
    date : datetime
        The first day of the new mean.
    before, after : float
        The mean before, and since then, in the user's unit.
    units : float
        The number of units since the change.
    sure : float
        The probability of the change under the model.
    acted : bool
        Whether a memory that follows changes has forgotten the losses from before: only where the
        tables were learned in the order of their days.
    """

    arms: tuple[str, ...]
    date: datetime
    before: float
    after: float
    units: float
    sure: float
    acted: bool


class TableChanges(NamedTuple):
    """The changes within tables of logged data, by the model of ``Changes`` and by its test.

    Attributes
    ----------
    found : list of TableChange
        The last change of each arm, those that arms share once.
    names : list of str
        The arms of the tables.
    test : Drift
        The test without a model.
    """

    found: list[TableChange]
    names: list[str]
    test: Drift

    @classmethod
    def of(cls, tables: Sequence[LoggedData], ranges: Ranges) -> TableChanges:
        """Return the changes within the tables that have dates, as if they were one table."""
        dated = [one for one in tables if len(one.times)]
        names = list(dict.fromkeys(name for one in dated for name in one.arms))
        place = {name: k for k, name in enumerate(names)}
        days = np.unique(np.concatenate([one.times for one in dated])) if dated else np.zeros(0)
        reports = np.zeros((len(days), len(names), kernels.KEPT))
        if dated:
            arm = np.concatenate([np.array([place[n] for n in one.arms])[one.arm] for one in dated])
            day = [np.searchsorted(days, one.times)[one.round] for one in dated]
            losses = (np.concatenate([one.loss for one in dated]) - ranges.origin) / ranges.span
            _summarise(np.concatenate(day), arm, losses.clip(0.0, 1.0), reports)
        ends = [end for one in dated for end in (one.times[0], one.times[-1])]
        in_order = ends == sorted(ends)
        memory, test, no_numbers = Changes(), Drift(len(names)), np.random.default_rng(0)
        of = Moments(memory)
        state = memory.start(of, 1, len(names))
        for one in reports:
            state["t"] += 1
            memory.learn(of, state, Feedback.of_reports(one[None]), no_numbers)
        seen = reports[:, :, kernels.UNITS]
        total = seen * reports[:, :, kernels.AVERAGE]
        test.add_many(np.arange(len(days)), slice(None), seen.astype(np.int64), total)
        found = list[TableChange]()
        for arms, since, *means, units, sure, acted in changes_of(
            state["hypotheses"][0], state["marks"][0]
        ):
            before, after = (float(ranges.from_shares(np.array(mean))) for mean in means)
            date = datetime.fromtimestamp(float(days[min(since, len(days) - 1)]), UTC)
            moved = tuple(names[arm] for arm in arms)
            found.append(TableChange(moved, date, before, after, units, sure, acted and in_order))
        return cls(sorted(found, key=lambda change: change.date), names, test)

    def certain(self, level: float) -> set[str]:
        """Return the arms whose change the test finds at this level."""
        return {self.names[alarm.arm] for alarm in self.test.alarms(level)} if self.names else set()


def _summarise(day: IntArray, arm: IntArray, losses: FloatArray, reports: FloatArray) -> None:
    """reports[t, i] = the report of the losses of arm i on day t; NaN is a loss not known."""
    order = np.lexsort((arm, day))
    day, arm, losses = day[order], arm[order], losses[order]
    every, none = np.arange(reports.shape[1]), np.zeros(0)
    ends = np.searchsorted(day, np.arange(len(reports) + 1))
    for t, report in enumerate(reports):
        rows = slice(int(ends[t]), int(ends[t + 1]))
        units = np.bincount(arm[rows], minlength=len(report))
        kernels.summarise(every, units, units, losses[rows], none, none, 1.0, report)
