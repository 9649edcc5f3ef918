"""Restarts of arms: reports that no longer count, or count again, and the log they come from."""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple

import numpy as np

from multiplay.kernels import hypotheses as change
from multiplay.kernels import moments as kernels
from multiplay.kernels.moments import AVERAGE, FOURTH, KEPT, MEAN, UNITS, WITHIN, B, F, N, W
from multiplay.types import Arrays, FloatArray, IntArray

ROUND, ARM = range(2)  # of a row of the log; the rest is the report
WIDTH = 2 + KEPT
UNSEEN = -1.0  # first round of an arm without a report that counts
COLUMNS = (  # of a hypothesis, and of the moments with the same content
    (change.H_N, N),
    (change.H_MEAN, MEAN),
    (change.H_B, B),
    (change.H_W, W),
)


class Restart(NamedTuple):
    """The reports of some arms that count, from a round on.

    Attributes
    ----------
    keep : bool
        True: all reports since the round count, as one mean that did not change. False: earlier
        reports no longer count.
    since : int
        The round.
    places : array of shape (n,)
        The arms.
    first : array of shape (n,)
        The first round of each arm with a report that counts; ``since`` if there is none.
    seen : array of shape (n, 2)
        Units and total loss of the reports that count, without a discount.
    sums : array of shape (n, 9)
        Their moments, with the discount or window of the learner.
    kept : array of shape (n, window, 5)
        Their reports by the slots of a window.
    """

    keep: bool
    since: int
    places: IntArray
    first: FloatArray
    seen: FloatArray
    sums: FloatArray
    kept: FloatArray

    @property
    def units(self) -> int:
        """The number of units that count."""
        return round(float(self.seen[:, 0].sum()))

    def arrays(self) -> Arrays:
        """Return the arrays that follow from the reports."""
        return {"first": self.first, "seen": self.seen, "sums": self.sums, "kept": self.kept}

    def unscaled(self, shift: FloatArray, factor: float) -> Restart:
        """Return the same for losses x instead of shift + factor x; an empty shift is 0."""
        if not len(shift) and factor == 1.0:
            return self
        seen, sums, kept = self.seen.copy(), self.sums.copy(), self.kept.copy()
        seen[:, 1] = (seen[:, 1] - shift * seen[:, 0]) / factor
        sums[:, MEAN] = np.where(sums[:, N] > 0.0, (sums[:, MEAN] - shift) / factor, 0.0)
        moved = (kept[:, :, AVERAGE] - shift[:, None]) / factor
        kept[:, :, AVERAGE] = np.where(kept[:, :, UNITS] > 0.0, moved, 0.0)
        sums[:, (B, W)] /= factor**2
        kept[:, :, WITHIN] /= factor**2
        sums[:, F] /= factor**4
        kept[:, :, FOURTH] /= factor**4
        return self._replace(seen=seen, sums=sums, kept=kept)


class ReportLog:
    """The reports of all arms in the order in which they were told.

    A learner keeps it; for a study it is read from the journal. It also records the rounds from
    which the reports of an arm counted before, so that a restart can be undone.

    Parameters
    ----------
    begins
        The first round of the log; 0 if nothing was told before.

    Examples
    --------
    >>> log = ReportLog()
    >>> log.begin_round(when=100.0)
    >>> log.add(1, np.array([[2.0, 0.5, 0.02, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0]]))
    >>> log.of_arm(0)
    array([[1.  , 2.  , 0.5 , 0.02, 0.  , 1.  ]])
    >>> log.round_at(100.0), log.round_at(101.0)
    (1, 2)
    """

    def __init__(self, begins: int = 0) -> None:
        self.begins = begins
        self._rows, self._times = array("d"), array("d")
        self._starts = np.zeros(0)
        self._earlier: list[tuple[int, float]] = []  # arms and their earlier starts

    def begin_round(self, when: float) -> None:
        """Add a round that was told at this time."""
        self._times.append(when)

    def add(self, round: int, reports: FloatArray, starts: FloatArray | None = None) -> None:
        """Add the reports of a round, one for each arm.

        ``starts`` are the first rounds that count after it, where arms forget by themselves.
        """
        (arms,) = reports[:, UNITS].nonzero()
        rows = np.empty((len(arms), WIDTH))
        rows[:, ROUND], rows[:, ARM], rows[:, 2:] = round, arms, reports[arms]
        self._rows.frombytes(rows.tobytes())
        self._grow(len(reports))
        if starts is None:
            new = arms[self._starts[arms] == UNSEEN]
            self._starts[new] = round
            return
        changed = (starts != self._starts) & (starts != UNSEEN)
        for arm in np.flatnonzero(changed).tolist():
            self._begin(arm, float(starts[arm]))

    def of_arm(self, arm: int, since: float = 0.0) -> FloatArray:
        """Return the reports of an arm from a round on: the round, and the report."""
        rows = self.rows()
        found = rows[(rows[:, ARM] == arm) & (rows[:, ROUND] >= since)]
        return np.delete(found, ARM, axis=1)

    def rows(self) -> FloatArray:
        """Return all reports: round, arm, and the report."""
        return np.array(self._rows).reshape(-1, WIDTH)

    def start(self, arm: int) -> float:
        """Return the first round of an arm whose report counts; ``UNSEEN`` if there is none."""
        return float(self._starts[arm]) if arm < len(self._starts) else UNSEEN

    def previous_start(self, arm: int) -> float:
        """Return the start of an arm before its last change; its start if it never changed."""
        earlier = [start for one, start in self._earlier if one == arm]
        return earlier[-1] if earlier else self.start(arm)

    def round_at(self, when: float) -> int:
        """Return the first round that was told at this time or later; the next round if none."""
        (later,) = (np.array(self._times) >= when).nonzero()
        place = int(later[0]) if len(later) else len(self._times)
        return max(self.begins, 1) + place

    def restart(self, restart: Restart) -> None:
        """Record a restart."""
        self._grow(int(restart.places.max(initial=-1)) + 1)
        for arm, first in zip(restart.places.tolist(), restart.first.tolist(), strict=True):
            if restart.keep:
                self._earlier = [one for one in self._earlier if one[0] != arm or one[1] < first]
                self._starts[arm] = first
            elif self._starts[arm] != UNSEEN and self._starts[arm] < first:
                self._begin(arm, first)

    def _begin(self, arm: int, start: float) -> None:
        """Let an arm start later; its earlier start is recorded if a report lies between."""
        before = float(self._starts[arm])
        if before != UNSEEN and (self.of_arm(arm, before)[:, ROUND] < start).any():
            self._earlier.append((arm, before))
        self._starts[arm] = start

    def _grow(self, arms: int) -> None:
        more = arms - len(self._starts)
        if more > 0:
            self._starts = np.append(self._starts, np.full(more, UNSEEN))

    def arrays(self) -> Arrays:
        """Return the log as arrays."""
        return {
            "begins": np.array([self.begins]),
            "rows": self.rows(),
            "times": np.array(self._times),
            "starts": self._starts,
            "earlier": np.array(self._earlier, dtype=float).reshape(-1, 2),
        }

    @classmethod
    def of(cls, arrays: Arrays) -> ReportLog:
        """Return the log that ``arrays`` returned."""
        log = cls(int(arrays["begins"][0]))
        for own, name in ((log._rows, "rows"), (log._times, "times")):
            own.frombytes(np.asarray(arrays[name], dtype=float).tobytes())
        log._starts = np.array(arrays["starts"], dtype=float)
        log._earlier = [(int(arm), start) for arm, start in arrays["earlier"].tolist()]
        return log


def rebuild(
    log: ReportLog,
    keep: bool,
    since: int,
    places: IntArray,
    rounds: int,
    limits: tuple[float, float],
) -> Restart:
    """Return the restart of some arms from a round on, after so many rounds told.

    ``limits`` are those of the memory. What was forgotten before stays forgotten, unless it is to
    be kept.
    """
    count, discount = len(places), limits[0]
    window = None if math.isinf(limits[1]) else int(limits[1])
    first, seen = np.full(count, float(since)), np.zeros((count, 2))
    sums, kept = np.zeros((count, kernels.COLUMNS)), np.zeros((count, window or 0, KEPT))
    rows = log.rows()
    rows = rows[np.argsort(rows[:, ARM], kind="stable")]
    ends = np.searchsorted(rows[:, ARM], places), np.searchsorted(rows[:, ARM], places, "right")
    for k, (arm, begin, end) in enumerate(zip(places, *ends, strict=True)):
        own = rows[begin:end]
        own = own[own[:, ROUND] >= (since if keep else max(since, log.start(arm)))]
        if not len(own):
            continue
        reports = own[:, 2:]
        first[k], seen[k, 0] = own[0, ROUND], reports[:, UNITS].sum()
        seen[k, 1] = reports[:, UNITS] @ reports[:, AVERAGE]
        if window is None:
            add_all(sums[k : k + 1], own[:, ROUND], reports, rounds, discount)
        else:
            keep_all(sums[k : k + 1], kept[k : k + 1], own[:, ROUND], reports, rounds, window)
    return Restart(keep, since, places, first, seen, sums, kept)


def add_all(
    sums: FloatArray, told: FloatArray, reports: FloatArray, rounds: int, discount: float
) -> None:
    """Add the reports of an arm to its moments, with a discount below 1 if there is one."""
    common, last = np.zeros(2), told[0]
    for round, report in zip(told, reports, strict=True):
        if discount < 1.0 and round > last:
            kernels.fade(sums, discount ** (round - last))
        kernels.add_reports(sums, common, report[None])
        last = round
    if discount < 1.0:
        kernels.fade(sums, discount ** (rounds - last))


def keep_all(
    sums: FloatArray,
    kept: FloatArray,
    told: FloatArray,
    reports: FloatArray,
    rounds: int,
    window: int,
) -> None:
    """Keep the last reports of an arm in the slots of a window, and compute its moments."""
    common, nothing = np.zeros(2), np.zeros((1, KEPT))
    recent = told > rounds - window
    for round, report in zip(told[recent].astype(int), reports[recent], strict=True):
        slot = (int(round) - 1) % window
        kernels.keep_reports(sums, common, kept[:, slot : slot + 1], 0, report[None])
    kernels.keep_reports(sums, common, kept, (rounds - 1) % window, nothing)


def restart_hypotheses(
    moments: FloatArray,
    hypotheses: FloatArray,
    marks: FloatArray,
    snaps: FloatArray,
    restart: Restart,
    offset: int = 0,
) -> None:
    """Restart arms that follow changes; ``offset`` is added to rounds.

    Hypotheses that begin before the round are dropped, and the first one left has their weight; or
    all are dropped for one. This is not counted as a change, and changes that were confirmed before
    are no longer noted.
    """
    for place, first, row in zip(restart.places, restart.first, restart.sums, strict=True):
        own, length = hypotheses[place], int(marks[place, change.LENGTH])
        dropped = length
        if not restart.keep:
            dropped = int((own[:length, change.START] < restart.since + offset).sum())
            if dropped == 0:
                continue
        left = own[dropped:length]
        left = left[left[:, change.H_N] < row[N] + 0.5]  # others have earlier reports, moved
        weight = 1.0 - float(left[:, change.WEIGHT].sum())
        if row[N] > 0.0 and not (len(left) and left[0, change.START] <= first + offset):
            begun = np.zeros((1, change.COLUMNS))
            begun[0, change.START] = first + offset
            for column, of_moments in COLUMNS:
                begun[0, column] = row[of_moments]
            left = np.concatenate([begun, left])
        left = left.copy()
        own[:] = 0.0
        own[: len(left)] = left
        own[: min(len(left), 1), change.WEIGHT] += weight
        moments[place] = row
        marks[place, change.LENGTH] = len(left)
        marks[place, change.SINCE : change.SHARED + 1] = 0.0
        snaps[place, :, change.LEVEL] = change.UNKNOWN
