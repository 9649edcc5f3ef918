"""Feature rows: phi of every arm in a round, kept as a part of the arms and a part of the day."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from multiplay.types import FloatArray, IntArray


class FeatureRows(NamedTuple):
    r"""The features of all arms in a round, as products of two parts.

    .. math::

        \phi_{ij} = A_{ij} D_j, \qquad j = 1, \ldots, p, \qquad \phi_{i1} = 1.

    A column of arms (distance) has :math:`D_j = 1`, one of days (fuel price) :math:`A_{ij} = 1`,
    and a product of both neither. So a day changes p numbers, and A stays: 1,000,000 arms need no
    features of their own in every round.

    Attributes
    ----------
    arm : array of shape (trials or 1, d, p)
        A, the part of the arms; one trial stands for all.
    day : array of shape (trials or 1, p)
        D, the part of the day; one trial stands for all.
    factors : int
        How many of the last columns multiply the whole loss, see ``Features``.

    Examples
    --------
    >>> rows = FeatureRows.of([[1.0, -0.5], [1.0, 2.0]])  # two arms, an intercept and a distance
    >>> rows.d, rows.p
    (2, 2)
    >>> rows.phi(np.array([1]))
    array([[[1., 2.]]])
    """

    arm: FloatArray
    day: FloatArray
    factors: int = 0

    @classmethod
    def of(cls, phi: object) -> FeatureRows:
        """Return rows from phi itself, of shape (d, p) or (trials, d, p)."""
        arm = np.ascontiguousarray(phi, dtype=float)
        arm = arm[np.newaxis] if arm.ndim == 2 else arm
        return cls(arm, np.ones((1, arm.shape[2])))

    @classmethod
    def none(cls, d: int, p: int = 1, factors: int = 0) -> FeatureRows:
        """Return rows of an intercept alone; other columns are 0."""
        day = np.zeros((1, p))
        day[0, 0] = 1.0
        return cls(np.ones((1, d, p)), day, factors)

    @property
    def d(self) -> int:
        """The number of arms."""
        return int(self.arm.shape[1])

    @property
    def p(self) -> int:
        """The number of columns."""
        return int(self.arm.shape[2])

    def phi(self, arms: IntArray) -> FloatArray:
        """Return phi of some arms, of shape (trials or 1, arms, p)."""
        phi: FloatArray = self.arm[:, arms] * self.day[:, np.newaxis]
        return phi

    def cut(self, places: IntArray) -> FeatureRows:
        """Return the rows of the arms at these places."""
        return FeatureRows(np.ascontiguousarray(self.arm[:, places]), self.day, self.factors)
