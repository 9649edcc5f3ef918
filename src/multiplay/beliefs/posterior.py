"""Posterior of the mean losses of the arms, given their moments."""

from __future__ import annotations

import math

import numpy as np

from multiplay.beliefs.moments import ArmMoments
from multiplay.kernels import beliefs as kernels
from multiplay.types import FloatArray, IntArray


class Posterior:
    r"""Beliefs about the mean loss of each arm, and about the cost of a plan.

    Arms are alike up to a spread :math:`s_b` that is learned: their means are
    :math:`\mathcal{N}(\mu, s_b^2)`, with :math:`\mu \sim \mathcal{N}(1/2, 1/4)` and thirteen values
    of :math:`s_b`. With :math:`\pi_g` the posterior weight of value g, :math:`v_i` the variance of
    the average of arm i, and :math:`f_{gi}` the share of :math:`\mu` in what is believed of it,

    .. math::

        m_i = \sum_g \pi_g \bigl((1 - f_{gi})\, \bar{k}_i + f_{gi}\, \mu_g\bigr).

    The noise of a unit, an effect of the day of each arm, and one that all arms of a day share are
    learned. An arm never seen is believed to be like the others.

    Parameters
    ----------
    moments
        The moments of all arms; they are read once.

    Examples
    --------
    >>> from multiplay.beliefs.moments import ArmMoments
    >>> nothing = Posterior(ArmMoments(2))
    >>> nothing.mean
    array([0.5, 0.5])
    """

    def __init__(self, moments: ArmMoments) -> None:
        self._sums = moments.sums
        self._sizes = np.empty((kernels.SIZES, 4))
        self._arms = np.empty((len(moments.sums), 6))
        self._rest = np.empty(2)
        kernels.believe(moments.sums, moments.common, self._sizes, self._arms, self._rest)

    @property
    def mean(self) -> FloatArray:
        """The believed mean loss of a unit of each arm, :math:`m_i`."""
        return self._arms[:, kernels.M]

    @property
    def spread(self) -> FloatArray:
        """The standard deviation of the loss of a unit of each arm within a day, :math:`s_i`."""
        deviation: FloatArray = np.sqrt(self._arms[:, kernels.S2])
        return deviation

    @property
    def mean_unseen(self) -> float:
        """The believed mean loss of an arm that was never seen."""
        return float(self._sizes[:, kernels.WEIGHT] @ self._sizes[:, kernels.MU])

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        r"""Return :math:`m_i \mp t_{\nu_i} \sqrt{\text{var}_i}` for each arm."""
        width = student(self._arms[:, kernels.NU], level)
        width *= np.sqrt(self._arms[:, kernels.VARIANCE])
        return self.mean - width, self.mean + width

    def half_width(self, places: IntArray, action: IntArray, level: float) -> float:
        """Return half of the width of the interval of the mean cost of a plan.

        ``action[j]`` units are of the arm at ``places[j]``; -1 for an arm never seen.
        """
        variance, nu = kernels.plan(self._sums, self._sizes, self._arms, self._rest, places, action)
        return float(student(np.array([nu]), level)[0]) * math.sqrt(variance)


def student(nu: FloatArray, level: float) -> FloatArray:
    """Return the quantile (1 + level) / 2 of Student's distribution.

    It is computed once for each number of degrees of freedom: many arms have the same.
    """
    from scipy.special import stdtrit

    different, places = np.unique(nu, return_inverse=True)
    return np.asarray(stdtrit(different, (1 + level) / 2), dtype=float)[places]
