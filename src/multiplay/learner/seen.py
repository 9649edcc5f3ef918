"""What was seen of every arm, whatever the policy makes of it."""

from __future__ import annotations

import numpy as np

from multiplay.feedback import Feedback
from multiplay.learner.drift import Drift
from multiplay.learner.losses import Report
from multiplay.types import Arrays, FloatArray, IntArray

COLUMNS = ("units", "total", "squares", "plans", "last")


class Seen:
    """For each arm: units seen, the sums of losses and of their squares, plans, last time.

    Losses are in [0, 1], as policies see them.
    """

    def __init__(self, arms: int) -> None:
        self.columns = {name: np.zeros(arms) for name in COLUMNS}
        self.columns["last"][:] = np.nan
        self.drift = Drift(arms)

    def grow(self, arms: int) -> None:
        """Make room for new arms, at the end."""
        more = arms - len(self.columns["units"])
        for name, column in self.columns.items():
            nothing = np.nan if name == "last" else 0.0
            self.columns[name] = np.append(column, np.full(more, nothing))
        self.drift.grow(arms)

    def add(
        self, places: IntArray | None, report: Report, feedback: Feedback, round: int, when: float
    ) -> None:
        """Book one report of the arms at these places (all, if None)."""
        arms = slice(None) if places is None else places
        if feedback.total.shape != feedback.count.shape:  # only the round is known
            return
        c, seen, total = self.columns, feedback.seen[0], feedback.total[0]
        c["units"][arms] += seen
        c["total"][arms] += total
        c["squares"][arms] += report.squares(feedback)
        c["last"][arms] = np.where(seen > 0, when, c["last"][arms])
        self.drift.add(round, arms, seen, total)

    def count_plan(self, places: IntArray | None, action: IntArray) -> None:
        """Count a plan of our own."""
        self.columns["plans"][slice(None) if places is None else places] += action > 0

    def predicted(self) -> FloatArray:
        """Return (1/2 + sum) / (1 + units) of each arm."""
        mean: FloatArray = (0.5 + self.columns["total"]) / (1 + self.columns["units"])
        return mean

    def arrays(self) -> Arrays:
        """Return all of it."""
        drift = {f"drift/{name}": array for name, array in self.drift.arrays().items()}
        return self.columns | drift

    @classmethod
    def of(cls, arrays: Arrays) -> Seen:
        """Return what ``arrays`` gave."""
        seen = cls(len(arrays["units"]))
        seen.columns = {name: arrays[name].astype(float) for name in COLUMNS}
        drift = {k.removeprefix("drift/"): v for k, v in arrays.items() if k.startswith("drift/")}
        seen.drift = Drift.of(drift)
        return seen
