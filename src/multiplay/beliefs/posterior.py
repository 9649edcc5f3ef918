"""Posterior of the mean losses of the arms, given their moments."""

from __future__ import annotations

import math

import numpy as np

from multiplay.kernels import beliefs as kernels
from multiplay.kernels.moments import MEAN, SEEN, B, F, N, W
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

    The noise of a unit grows with the mean of its arm, by a power that is learned:
    :math:`s_i^2 \propto m_i^p`, with p between 0 and 2.

    Parameters
    ----------
    sums, common
        The moments of all arms, see ``multiplay.kernels.moments``, and two sums that arms share.
    low, width
        The lowest loss of each arm and the width of its range, where ranges differ by arm. Arms are
        then alike as shares of their own ranges.
    like
        Moments of arms of others, which teach the spread, the level and the noise; none of them
        is an arm here.

    Examples
    --------
    >>> import numpy as np
    >>> nothing = Posterior(np.zeros((2, 9)), np.zeros(2))
    >>> nothing.mean
    array([0.5, 0.5])
    """

    def __init__(
        self,
        sums: FloatArray,
        common: FloatArray,
        low: FloatArray | float = 0.0,
        width: FloatArray | None = None,
        like: FloatArray | None = None,
    ) -> None:
        self._low, self._width, own = low, width, len(sums)
        if width is not None:
            sums, common = shares(sums, low, width), common / width.mean() ** 2
        self._sums = sums if like is None else np.concatenate([sums, like])
        self._sizes = np.empty((kernels.SIZES, 4))
        self._all = np.empty((len(self._sums), 6))
        self._rest = np.empty(2)
        kernels.believe(self._sums, common, self._sizes, self._all, self._rest)
        self._arms = self._all[:own]

    def _in_range(self, share: FloatArray) -> FloatArray:
        """Return losses of the arms that are these shares of their ranges."""
        return share if self._width is None else self._low + self._width * share

    @property
    def mean(self) -> FloatArray:
        """The believed mean loss of a unit of each arm, :math:`m_i`."""
        return self._in_range(self._arms[:, kernels.M])

    @property
    def spread(self) -> FloatArray:
        """The standard deviation of the loss of a unit of each arm within a day, :math:`s_i`."""
        deviation: FloatArray = np.sqrt(self._arms[:, kernels.S2])
        return deviation if self._width is None else self._width * deviation

    @property
    def mean_unseen(self) -> float:
        """The believed mean loss of an arm that was never seen, as a share of its range."""
        return float(self._sizes[:, kernels.WEIGHT] @ self._sizes[:, kernels.MU])

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        r"""Return :math:`m_i \mp t_{\nu_i} \sqrt{\text{var}_i}` for each arm."""
        width = student(self._arms[:, kernels.NU], level)
        width *= np.sqrt(self._arms[:, kernels.VARIANCE])
        middle = self._arms[:, kernels.M]
        return self._in_range(middle - width), self._in_range(middle + width)

    def probability_below(self, place: int, loss: float) -> float:
        """Return the probability that the mean loss of an arm is below a loss.

        Examples
        --------
        >>> Posterior(np.zeros((2, 9)), np.zeros(2)).probability_below(1, 0.5)
        0.5
        """
        from scipy.special import stdtr

        variance = self._arms[place, kernels.VARIANCE]
        scale = 1.0 if self._width is None else self._width[place]
        deviations = (loss - self.mean[place]) / (scale * math.sqrt(variance))
        return float(stdtr(self._arms[place, kernels.NU], deviations))

    def half_width(self, places: IntArray, units: FloatArray, level: float) -> float:
        """Return half of the width of the interval of the mean cost of a plan.

        ``units[j]`` units are of the arm at ``places[j]``, -1 for an arm never seen; each of them
        counts as the width of its range, where ranges differ.
        """
        variance, nu = kernels.plan(self._sums, self._sizes, self._all, self._rest, places, units)
        return float(student(np.array([nu]), level)[0]) * math.sqrt(variance)


def shares(sums: FloatArray, low: FloatArray | float, width: FloatArray) -> FloatArray:
    """Return the moments of losses as shares of the ranges of their arms.

    Examples
    --------
    >>> row = np.zeros((1, 9))
    >>> row[0, [N, MEAN, B]] = 4, 0.3, 0.02
    >>> shares(row, 0.2, np.array([0.5]))[0, [N, MEAN, B]].round(3)
    array([4.  , 0.2 , 0.08])
    """
    found, square = sums.copy(), width**2
    found[:, MEAN] = np.where(sums[:, N] > SEEN, (sums[:, MEAN] - low) / width, 0.0)
    found[:, B] /= square
    found[:, W] /= square
    found[:, F] /= square**2
    return found


def student(nu: FloatArray, level: float) -> FloatArray:
    """Return the quantile (1 + level) / 2 of Student's distribution.

    It is computed once for each number of degrees of freedom: many arms have the same.
    """
    from scipy.special import stdtrit

    different, places = np.unique(nu, return_inverse=True)
    return np.asarray(stdtrit(different, (1 + level) / 2), dtype=float)[places]
