"""Families of distributions of the losses, and the divergence of two of their members."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import numbers
from multiplay.errors import InvalidInput
from multiplay.types import BoolArray, FloatArray

NEGLIGIBLE = 1e-12  # relative to the numbers that were added up
HALVINGS = 52  # of an interval of multipliers: all digits of a float
ALMOST_ALL = 1 - 2.0**-52  # a mean that moves by all of itself would make the logarithm infinite


class Family(ABC):
    r"""Distributions of a single loss (or reward), one for each mean.

    How hard two means are to tell apart is their Kullback-Leibler divergence: what one play speaks,
    on average, for the true density :math:`p_\ell` and against another,

    .. math::

        \operatorname{KL}(\ell, k) =
            \mathbb{E}_{X \sim p_\ell}\Bigl[\log \frac{p_\ell(X)}{p_k(X)}\Bigr].

    Examples
    --------
    How many plays have evidence log(1000) for a mean of 0.5, and against 0.4:

    >>> import numpy as np
    >>> from multiplay.theory import Bernoulli, Gaussian
    >>> for family in (Bernoulli(), Gaussian(variance=0.01)):
    ...     print(round(np.log(1000) / family.divergence(0.5, 0.4).item()))
    338
    14
    """

    @abstractmethod
    def check(self, means: FloatArray) -> None:
        """Raise ``InvalidInput`` unless every arm, shape (d,), has a distribution."""

    @abstractmethod
    def mirrored(self, means: FloatArray) -> FloatArray:
        """Return the means of losses that fall where the rewards rise."""

    @abstractmethod
    def information(self, means: FloatArray, shifts: FloatArray) -> FloatArray:
        r"""Return :math:`\operatorname{KL}(\ell, \ell - s)`, the information of one play."""

    @abstractmethod
    def reachable(self, means: FloatArray, actions: FloatArray, gaps: FloatArray) -> BoolArray:
        r"""Return for every action whether some shifts have :math:`\sum_i a_i s_i > \text{gap}`."""

    @abstractmethod
    def closest(
        self, means: FloatArray, actions: FloatArray, gaps: FloatArray, plays: FloatArray
    ) -> FloatArray:
        r"""Return the shifts that are hardest to detect, and large enough.

        With N the plays, they are

        .. math::

            \operatorname*{arg\,min}_{s} \Bigl\{\sum_i N_i \operatorname{KL}(\ell_i, \ell_i - s_i)
                \,:\, \sum_i a_i s_i \ge \text{gap}\Bigr\}.

        One row of ``actions``, ``gaps`` (reachable ones) and positive ``plays`` for each problem.
        """

    def divergence(self, means: ArrayLike, others: ArrayLike) -> FloatArray:
        """Return KL(mean, other), the evidence of one play for the mean against the other."""
        here = numbers("means", means)
        return self.information(here, here - numbers("others", others))


@dataclass(frozen=True, eq=False)
class Gaussian(Family):
    r"""Normal losses with known variances.

    .. math::

        \operatorname{KL}(\ell, k) = \frac{(\ell - k)^2}{2 \sigma^2}.

    Any mean is possible. Other losses may be treated as if they were normal, by their variances:
    those of losses uniform on [0, 2c] are :math:`c^2 / 3`.

    Parameters
    ----------
    variance
        :math:`\sigma^2`: one for all arms, or one for each.

    Examples
    --------
    >>> from multiplay.theory import Gaussian
    >>> Gaussian(variance=0.5).divergence([0.3, 0.3], [0.3, 0.1]).round(6)
    array([0.  , 0.04])
    """

    variance: ArrayLike

    def __post_init__(self) -> None:
        variance = numbers("variance", self.variance).copy()
        if (variance <= 0).any():
            raise InvalidInput(
                "variance",
                "positive numbers",
                f"{variance[variance <= 0].flat[0]:g}",
                "Give positive variances: an arm without noise is known after one play.",
            )
        object.__setattr__(self, "variance", variance)

    @property
    def _variance(self) -> FloatArray:
        return cast(FloatArray, self.variance)

    def check(self, means: FloatArray) -> None:
        """Raise ``InvalidInput`` unless there is one variance for all arms or one for each."""
        if self._variance.shape not in ((), means.shape):
            raise InvalidInput(
                "variance",
                f"a number, or {len(means)} numbers",
                f"shape {self._variance.shape}",
                "Give one for each arm.",
            )

    def mirrored(self, means: FloatArray) -> FloatArray:
        """Return -means."""
        return -means

    def information(self, means: FloatArray, shifts: FloatArray) -> FloatArray:
        r"""Return :math:`s^2 / (2 \sigma^2)`."""
        return shifts**2 / (2 * self._variance)

    def reachable(self, means: FloatArray, actions: FloatArray, gaps: FloatArray) -> BoolArray:
        """Return True: any arm can be shifted far enough."""
        return np.asarray((actions > 0).any(axis=1))

    def closest(
        self, means: FloatArray, actions: FloatArray, gaps: FloatArray, plays: FloatArray
    ) -> FloatArray:
        r"""Return the shifts in closed form.

        .. math::

            s_i = \text{gap} \cdot \frac{a_i \sigma_i^2 / N_i}{\sum_j a_j^2 \sigma_j^2 / N_j}.
        """
        direction = actions * self._variance / plays
        scale: FloatArray = gaps / (actions * direction).sum(axis=1)
        return direction * scale[:, None]


@dataclass(frozen=True)
class Bernoulli(Family):
    r"""Losses 0 or 1.

    .. math::

        \operatorname{KL}(\ell, k) = \ell \log \frac{\ell}{k}
            + (1 - \ell) \log \frac{1 - \ell}{1 - k}.

    Means stay in [0, 1]: a loss cannot fall below 0, so that some actions can never be the best.

    Examples
    --------
    >>> from multiplay.theory import Bernoulli
    >>> Bernoulli().divergence([0.5, 0.5, 1.0], [0.5, 0.25, 0.5]).round(6)
    array([0.      , 0.143841, 0.693147])
    """

    def check(self, means: FloatArray) -> None:
        """Raise ``InvalidInput`` for means outside [0, 1]."""
        outside = (means < 0) | (means > 1)
        if outside.any():
            raise InvalidInput(
                "means",
                "numbers in [0, 1] for the family Bernoulli",
                f"{means[outside][0]:g}",
                "Divide by the largest possible loss, or use the family Gaussian.",
            )

    def mirrored(self, means: FloatArray) -> FloatArray:
        """Return 1 - means."""
        return 1 - means

    def information(self, means: FloatArray, shifts: FloatArray) -> FloatArray:
        r"""Return :math:`\operatorname{KL}(\ell, \ell - s)`."""
        return _excess(means, -shifts) + _excess(1 - means, shifts)

    def reachable(self, means: FloatArray, actions: FloatArray, gaps: FloatArray) -> BoolArray:
        """Return whether means of 0 are more than enough."""
        most: FloatArray = actions @ means
        enough: BoolArray = most - gaps > NEGLIGIBLE * (most + gaps)
        return enough

    def closest(
        self, means: FloatArray, actions: FloatArray, gaps: FloatArray, plays: FloatArray
    ) -> FloatArray:
        r"""Solve an equation for every arm, and bisect for the multiplier :math:`\nu`.

        With N the plays,

        .. math::

            N_i \frac{\partial}{\partial s_i} \operatorname{KL}(\ell_i, \ell_i - s_i) = \nu a_i.

        Since :math:`s_i \le \nu a_i / (4 N_i)`, and what is left of the mean is at most
        :math:`\ell_i N_i / (\nu a_i)`, the first :math:`\nu` is too small and the second one large
        enough.
        """
        played = actions > 0
        low = np.log(4 * gaps / (actions**2 / plays).sum(axis=1))
        spare = (actions * means).sum(axis=1) - gaps
        high = np.log(np.where(played, means * plays, 0.0).sum(axis=1) / spare)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            shifts = _shifts(means, np.exp(middle)[:, None] * actions / plays)
            enough = (actions * shifts).sum(axis=1) >= gaps
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return _shifts(means, np.exp(high)[:, None] * actions / plays)


def _shifts(means: FloatArray, rate: FloatArray) -> FloatArray:
    """Return the shifts at which dKL/dshift = rate: mean - other = rate other (1 - other)."""
    other = 2 * means / (1 + rate + np.sqrt((1 - rate) ** 2 + 4 * rate * (1 - means)))
    return np.minimum(rate * other * (1 - other), ALMOST_ALL * means)


def _excess(p: FloatArray, change: FloatArray) -> FloatArray:
    """Return change - p log(1 + change / p), which is about change^2 / (2 p).

    p log(p / (p + change)) would lose all digits of small changes; the changes add up to 0.
    """
    t = np.divide(change, p, out=np.zeros(np.broadcast(p, change).shape), where=p > 0)
    with np.errstate(divide="ignore"):  # nothing is left: infinite
        return np.asarray(change - p * np.log1p(t))
