"""Moments of the losses of each arm, as reports come in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from multiplay.kernels import moments as kernels
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

    Examples
    --------
    >>> moments = ArmMoments(2)
    >>> nothing = np.full(2, np.nan)
    >>> count, shift = np.array([2, 0]), np.zeros(2)
    >>> moments.add(None, ArmReport(count, count, np.array([0.2, 0.4]), nothing, shift, 1.0))
    >>> moments.seen, moments.mean.round(3)
    (array([2., 0.]), array([0.3, 0. ]))
    """

    def __init__(self, arms: int, discount: float | None = None, window: int | None = None) -> None:
        self.discount, self.window = discount, window
        self.sums = np.zeros((arms, kernels.COLUMNS))
        self.common = np.zeros(2)
        self.kept = np.zeros((arms, window or 0, kernels.KEPT))
        self.rounds = 0
        self.version = 0  # counts changes, for values that are computed once

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
        more = arms - len(self.sums)
        self.sums = np.concatenate([self.sums, np.zeros((more, kernels.COLUMNS))])
        self.kept = np.concatenate([self.kept, np.zeros((more, *self.kept.shape[1:]))])
        self.version += 1

    def pass_round(self) -> None:
        """Forget before the report of a round is added: by the discount, or by the window."""
        if self.discount is not None:
            kernels.fade(self.sums, self.discount)
            self.common *= self.discount
        if self.window is not None:
            self.kept[:, self.rounds % self.window] = 0.0
        self.rounds += 1

    def add(self, places: IntArray | None, report: ArmReport) -> None:
        """Add the report of a round; its arms are at ``places``, or all arms in order if None."""
        window = self.window or 1
        slot = (self.rounds - 1) % window
        rows = ALL if places is None else places
        kernels.add_report(self.sums, self.common, rows, *report, self.kept, slot)
        if self.window is not None:
            kernels.rebuild(self.sums, self.common, self.kept, self.rounds % window)
        self.version += 1

    def arrays(self) -> Arrays:
        """Return the state."""
        return {"sums": self.sums, "common": self.common, "kept": self.kept}

    def restore(self, arrays: Arrays, rounds: int) -> None:
        """Set the state that ``arrays`` returned, after so many rounds told."""
        for name, fresh in self.arrays().items():
            if arrays[name].shape != fresh.shape or not np.isfinite(arrays[name]).all():
                raise ValueError("it holds the moments of a different learner")
            setattr(self, name, np.array(arrays[name], dtype=float))
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
        self.sums[:, columns] = np.stack([units, units, units, units, mean, between], axis=1)
        self.rounds = rounds
        self.version += 1
