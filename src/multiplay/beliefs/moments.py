"""Moments of the losses of each arm, as reports come in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from multiplay.beliefs.restart import UNSEEN, Restart, restart_hypotheses
from multiplay.kernels import change
from multiplay.kernels import moments as kernels
from multiplay.kernels.hypotheses import (
    H_B,
    H_MEAN,
    H_N,
    HYPOTHESES,
    LENGTH,
    START,
    WEIGHT,
    new_hypotheses,
)
from multiplay.types import Arrays, FloatArray, IntArray

ALL = np.zeros(0, dtype=np.int64)


class ArmReport(NamedTuple):
    """The losses that a round tells of each arm of its set.

    Attributes
    ----------
    played, slots : arrays of shape (d,)
        The number of units played, and of those that have an entry in ``units``.
    units : array
        The losses of single units, ordered by arm; NaN for a unit that was not seen.
    totals : array of shape (d,) or (0,)
        The total loss of all units of an arm, where single units are not known; otherwise NaN.
        Empty if there are none.
    shift, factor
        A loss counts as shift_i + factor times the given number; an empty shift is 0.
    """

    played: IntArray
    slots: IntArray
    units: FloatArray
    totals: FloatArray
    shift: FloatArray
    factor: float


class ArmMoments:
    r"""Nine sums for each arm, and two that all arms share.

    A report of arm i tells :math:`a` units with the average :math:`y`; it adds to the number of
    units n, the number of reports R, the mean, :math:`B = \sum a (y - \text{mean})^2` between
    reports and :math:`W = \sum (x - y)^2` within them; see ``multiplay.kernels.moments``. Only
    units that were seen count.

    Parameters
    ----------
    arms
        The number of arms.
    discount, window
        The factor by which old reports fade in each round told, or the number of rounds that
        count; None to keep all.
    follow
        True: an arm forgets the reports before a change, as ``PooledCTS(memory=Changes())``.

    Examples
    --------
    >>> moments = ArmMoments(2)
    >>> nothing = np.full(2, np.nan)
    >>> count, shift = np.array([2, 0]), np.zeros(2)
    >>> report = ArmReport(count, count, np.array([0.2, 0.4]), nothing, shift, 1.0)
    >>> added = moments.add(None, report)
    >>> moments.seen, moments.mean.round(3)
    (array([2., 0.]), array([0.3, 0. ]))
    """

    def __init__(
        self,
        arms: int,
        discount: float | None = None,
        window: int | None = None,
        follow: bool = False,
    ) -> None:
        self.discount, self.window, self.follow = discount, window, follow
        self.rounds = 0
        self.version = 0  # counts changes, for values that are computed once
        self._arrays = self._empty(arms) | {"common": np.zeros(2)}
        self._settled: tuple[int, FloatArray] | None = None

    def _empty(self, arms: int) -> Arrays:
        """Return the arrays by arm, for arms of which nothing is known."""
        empty: Arrays = {"sums": np.zeros((arms, kernels.COLUMNS))}
        empty["kept"] = np.zeros((arms, self.window or 0, kernels.KEPT))
        if self.follow:
            empty |= {name: array[0] for name, array in new_hypotheses(1, arms).items()}
        return empty

    @property
    def _sums(self) -> FloatArray:
        return self._arrays["sums"]

    @property
    def sums(self) -> FloatArray:
        """The nine sums of each arm, of the reports that count.

        Where changes are followed, these are the reports since a change that is confirmed, or has
        a weight of at least 0.95: an arm that is no longer played confirms nothing.
        """
        if not self.follow:
            return self._sums
        if self._settled is None or self._settled[0] != self.version:
            settled = np.empty_like(self._sums)
            change.settle(self._sums, self._arrays["hypotheses"], self._arrays["marks"], settled)
            self._settled = self.version, settled
        return self._settled[1]

    @property
    def common(self) -> FloatArray:
        """The two sums that all arms share."""
        return self._arrays["common"]

    @property
    def seen(self) -> FloatArray:
        """The units of each arm that count."""
        return self.sums[:, kernels.N]

    @property
    def mean(self) -> FloatArray:
        """The average loss of each arm; 0 for an arm never seen."""
        return self.sums[:, kernels.MEAN]

    def grow(self, arms: int) -> None:
        """Add new arms at the end, up to this number."""
        for name, fresh in self._empty(arms - len(self._sums)).items():
            self._arrays[name] = np.concatenate([self._arrays[name], fresh])
        self.version += 1

    def pass_round(self) -> None:
        """Forget before the report of a round is added: by the discount, or by the window."""
        if self.discount is not None:
            kernels.fade(self._sums, self.discount)
            self._arrays["common"] *= self.discount
        if self.window is not None:
            self._arrays["kept"][:, self.rounds % self.window] = 0.0
        self.rounds += 1

    def add(self, places: IntArray | None, report: ArmReport) -> FloatArray:
        """Add the report of a round; its arms are at ``places``, or all arms in order if None.

        Return the reports of all arms.
        """
        sums, common = self._sums, self.common
        reports = np.zeros((len(sums), kernels.KEPT))
        kernels.summarise(ALL if places is None else places, *report, reports)
        if self.follow:
            hypotheses, noises, marks, snaps = (self._arrays[name][None] for name in HYPOTHESES)
            arrays = hypotheses, noises, marks, snaps, np.array([self.rounds])
            change.learn(sums[None], common[None], *arrays, reports[None])
        elif self.window is not None:
            slot = (self.rounds - 1) % self.window
            kernels.keep_reports(sums, common, self._arrays["kept"], slot, reports)
        else:
            kernels.add_reports(sums, common, reports)
        self.version += 1
        return reports

    @property
    def starts(self) -> FloatArray | None:
        """The first round of each arm whose report counts, ``UNSEEN`` if there is none.

        None if arms do not forget by themselves.
        """
        if not self.follow:
            return None
        begin = self._arrays["hypotheses"][:, 0, START]
        return np.where(self._arrays["marks"][:, LENGTH] > 0.0, begin, UNSEEN)

    def restart(self, restart: Restart) -> None:
        """Let only the reports of a restart count of its arms."""
        if self.follow:
            hypotheses, _, marks, snaps = (self._arrays[name] for name in HYPOTHESES)
            restart_hypotheses(self._sums, hypotheses, marks, snaps, restart)
        else:
            self._sums[restart.places] = restart.sums
            self._arrays["kept"][restart.places] = restart.kept
        self.version += 1

    def arrays(self) -> Arrays:
        """Return the state."""
        return self._arrays

    def restore(self, arrays: Arrays, rounds: int) -> None:
        """Set the state that ``arrays`` returned, after so many rounds told."""
        for name, fresh in self._arrays.items():
            if arrays[name].shape != fresh.shape or not np.isfinite(arrays[name]).all():
                raise ValueError("it holds the moments of a different learner")
            self._arrays[name] = np.array(arrays[name], dtype=float)
        self.rounds = rounds
        self.version += 1

    def restore_sums(
        self, units: FloatArray, total: FloatArray, squares: FloatArray, rounds: int
    ) -> None:
        """Set what sums of losses and of their squares tell: each unit counts as one report."""
        seen = np.maximum(units, 1.0)
        mean = total / seen
        between = np.maximum(squares - total * mean, 0.0)
        columns = kernels.N, kernels.N2, kernels.A2, kernels.R, kernels.MEAN, kernels.B
        self._sums[:, columns] = np.stack([units, units, units, units, mean, between], axis=1)
        if self.follow:
            hypotheses, marks = self._arrays["hypotheses"], self._arrays["marks"]
            oldest = np.stack([units > 0, units, mean, between], axis=1)
            hypotheses[:, 0, [WEIGHT, H_N, H_MEAN, H_B]] = oldest
            marks[:, LENGTH] = units > 0
        self.rounds = rounds
        self.version += 1
