"""What was seen of every arm, whatever the policy makes of it."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from multiplay.feedback import Feedback
from multiplay.learner.drift import Drift
from multiplay.policies.averages import predicted
from multiplay.types import Arrays, FloatArray, IntArray

COLUMNS = ("units", "total", "squares", "lumped", "plans", "last")
BATCH = 256  # reports that are booked together: one by one would cost as much as learning

Entry = tuple[IntArray | None, Feedback, bool, int, float]


class Seen:
    """For each arm: units seen, the sums of losses and of their squares, plans, last time.

    Of the units, some may be lumped together: told by a total, where single losses are not known.

    Losses are in [0, 1], as policies see them. Reports are booked some at a time, and whoever reads
    books what is left.
    """

    def __init__(self, arms: int) -> None:
        self._columns = {name: np.zeros(arms) for name in COLUMNS}
        self._columns["last"][:] = np.nan
        self._drift = Drift(arms)
        self._entries: list[Entry] = []

    @property
    def columns(self) -> dict[str, FloatArray]:
        """What was seen, one column for each quantity."""
        self.book()
        return self._columns

    def at(self, places: IntArray | None) -> dict[str, FloatArray]:
        """Return what was seen of the arms at some places; of all, if None."""
        if places is None:
            return self.columns
        return {name: column[places] for name, column in self.columns.items()}

    @property
    def drift(self) -> Drift:
        """Whether recent losses fit the old ones."""
        self.book()
        return self._drift

    def grow(self, arms: int) -> None:
        """Make room for new arms, at the end."""
        more = arms - len(self.columns["units"])
        for name, column in self.columns.items():
            nothing = np.nan if name == "last" else 0.0
            self._columns[name] = np.append(column, np.full(more, nothing))
        self._drift.grow(more)

    def add(
        self, places: IntArray | None, feedback: Feedback, ours: bool, round: int, when: float
    ) -> None:
        """Take one report of the arms at these places (all, if None); ``ours``: of our own plan."""
        self._entries.append((places, feedback, ours, round, when))
        if len(self._entries) == BATCH:
            self.book()

    def book(self) -> None:
        """Book what was taken."""
        entries, self._entries = self._entries, []
        for _, group in groupby(entries, key=lambda entry: id(entry[0])):
            self._book(list(group))

    def _book(self, entries: list[Entry]) -> None:
        """Book reports of the same arms."""
        places, c = entries[0][0], self._columns
        arms = slice(None) if places is None else places
        ours = np.array([entry[2] for entry in entries])
        count = np.concatenate([entry[1].count for entry in entries])
        c["plans"][arms] += (count[ours] > 0).sum(axis=0)
        known = [entry for entry in entries if entry[1].total.shape == entry[1].count.shape]
        if not known:  # of a round as a whole, nothing is seen of its arms
            return
        seen = np.concatenate([entry[1].seen for entry in known])
        total = np.concatenate([entry[1].total for entry in known])
        when = np.array([entry[4] for entry in known])
        c["units"][arms] += seen.sum(axis=0)
        c["total"][arms] = _added(c["total"][arms], total)
        c["squares"][arms] = _added(c["squares"][arms], squares([entry[1] for entry in known]))
        lumped = np.array([entry[1].units is None for entry in known])
        c["lumped"][arms] += seen[lumped].sum(axis=0)
        latest = np.fmax.reduce(np.where(seen > 0, when[:, None], np.nan))  # of history: NaN
        c["last"][arms] = np.fmax(c["last"][arms], latest)
        rounds = np.array([entry[3] for entry in known], dtype=np.int64)
        self._drift.add_many(rounds, arms, seen, total)

    def predicted(self) -> FloatArray:
        """Return (1/2 + sum) / (1 + units) of each arm."""
        return predicted({"sum": self.columns["total"], "count": self.columns["units"]})

    def arrays(self) -> Arrays:
        """Return all of it."""
        drift = {f"drift/{name}": array for name, array in self.drift.arrays().items()}
        return self.columns | drift

    @classmethod
    def of(cls, arrays: Arrays) -> Seen:
        """Return what ``arrays`` gave."""
        seen = cls(len(arrays["units"]))
        seen._columns = {name: arrays[name].astype(float) for name in COLUMNS}
        drift = {k.removeprefix("drift/"): v for k, v in arrays.items() if k.startswith("drift/")}
        seen._drift = Drift.of(drift)
        return seen


def _added(sums: FloatArray, rows: FloatArray) -> FloatArray:
    """Return sums + rows, one after the other: the same bits, however many are booked together."""
    last: FloatArray = np.add.accumulate(np.concatenate([sums[None], rows]))[-1]
    return last


def squares(reports: list[Feedback]) -> FloatArray:
    """Return the sum of the squared losses of each arm, one row for each report.

    Where only a total is known, it stands for the squares: a loss in [0, 1] is at least its square.
    """
    found = np.concatenate([one.total for one in reports])
    rows = [row for row, one in enumerate(reports) if one.units is not None]
    if rows:
        d = found.shape[1]
        slots = np.concatenate([slots_of(reports[row]) for row in rows])
        units = np.concatenate([reports[row].units[0] for row in rows])  # type: ignore[index]
        cell = np.arange(len(rows) * d).repeat(slots)
        sums = np.bincount(cell, weights=units * units, minlength=len(rows) * d)
        found[rows] = sums.reshape(-1, d)
    return found


def slots_of(report: Feedback) -> IntArray:
    """Return the room that each arm has among the units of a report."""
    room: IntArray = report.count[0]
    if not report.complete and report.first is not None:
        room = np.diff(report.first)
    return room
