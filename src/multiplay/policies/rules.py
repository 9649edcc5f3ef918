"""Rules: how a posterior becomes one number for each arm, of which the best action is played."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from multiplay._support.checks import is_number, true_or_false
from multiplay._support.hints import Hint, Term
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.posteriors.base import Posterior
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray

Index: TypeAlias = Callable[[ActionSet, Arrays, Rng], FloatArray]


class Rule(ABC):
    r"""How a posterior becomes :math:`\theta`, one number for each arm.

    Attributes
    ----------
    counts_rounds : bool
        Whether it needs the number of the round, ``t``.
    """

    counts_rounds: bool = False

    @property
    @abstractmethod
    def calls(self) -> tuple[str, ...]:
        """The methods of a posterior that it needs."""

    @abstractmethod
    def of(self, posterior: Posterior) -> Index:
        r"""Return the function that computes :math:`\theta`; the posterior has the methods."""


@dataclass(frozen=True)
class Draw(Rule):
    r"""Thompson sampling: :math:`\theta` is one draw of the posterior.

    With the posterior distribution :math:`F_i` of the mean loss of arm i,

    .. math::

        \theta_i = F_i^{-1}(u_i), \qquad u_i \sim \operatorname{Uniform}(0, 1),

    independently, or with the same :math:`u` for all arms.

    Parameters
    ----------
    shared
        One random number for all arms of a round (docs/choosing.md#one-seed-for-all-arms).
        False: each arm draws on its own.

    Examples
    --------
    >>> from multiplay import Composed, Draw, Learner, Normal, Transport
    >>> policy = Composed(Normal(), Draw(shared=True))
    >>> sum(Learner(Transport([1, 4, 5], [4, 6]), policy).ask().plan.values())
    10
    """

    shared: bool = False

    def __post_init__(self) -> None:
        check_shared_seed(self.shared, "shared")

    @property
    def calls(self) -> tuple[str, ...]:
        """A draw, or draws at one quantile."""
        return ("draw_shared",) if self.shared else ("draw",)

    def of(self, posterior: Posterior) -> Index:
        """Return the draw of the posterior."""
        draw: Index = getattr(posterior, *self.calls)
        return draw


@dataclass(frozen=True)
class Bound(Rule):
    r"""Optimism by counts: the best mean within a confidence bound.

    With :math:`N_i` units of arm i and their average :math:`\hat{\mu}_i`, in round t,

    .. math::

        \theta_i = \max\Bigl\{0, \hat{\mu}_i - \sqrt{\frac{\alpha \ln t}{N_i}}\Bigr\},

    and + and min with 1 for rewards. A discount or a window counts fewer rounds for t.

    Parameters
    ----------
    alpha
        :math:`\alpha`, positive: less explores less.

    Examples
    --------
    >>> from multiplay import Averages, Bound, Changes, Composed, Learner, Transport
    >>> policy = Composed(Averages(Changes()), Bound(0.3))
    >>> sum(Learner(Transport([1, 4, 5], [4, 6]), policy).ask().plan.values())
    10
    """

    counts_rounds = True
    calls = ("bound",)

    alpha: float = 1.5

    def __post_init__(self) -> None:
        if not (is_number(self.alpha) and 0 < self.alpha < np.inf):
            hint = "Leave it out for 1.5."
            raise InvalidInput("alpha", "a positive number", repr(self.alpha), hint)

    def of(self, posterior: Posterior) -> Index:
        """Return the bounds of the posterior."""
        bound: Index = partial(posterior.bound, self.alpha)  # type: ignore[attr-defined]
        return bound


@dataclass(frozen=True)
class Optimism(Rule):
    r"""Optimism by deviations: the mean less (for rewards: plus) c standard deviations.

    .. math::

        \theta_i = m_i - c\, s_i,

    with the mean :math:`m_i` and the standard deviation :math:`s_i` of the posterior of arm i.

    Parameters
    ----------
    c
        The number of standard deviations, at least 0.

    Examples
    --------
    >>> from multiplay import Composed, Learner, Moments, Optimism, Transport
    >>> policy = Composed(Moments(), Optimism(1.0))
    >>> sum(Learner(Transport([1, 4, 5], [4, 6]), policy).ask().plan.values())
    10
    """

    calls = ("mean", "deviation")

    c: float

    def __post_init__(self) -> None:
        if not (is_number(self.c) and 0 <= self.c < np.inf):
            raise InvalidInput("c", "a number of at least 0", repr(self.c), "Use 1.0 or 2.0.")

    def of(self, posterior: Posterior) -> Index:
        """Return means less deviations."""
        return partial(posterior.optimistic, self.c)


@dataclass(frozen=True)
class OptimisticQuantile(Rule):
    r"""A random optimistic quantile of the posterior, whose level grows with the round t.

    With :math:`\xi \sim \mathcal{N}(0, 1)`, one number in a round, and :math:`u_i` uniform on
    [0, 1], one for each arm,

    .. math::

        x_i = \max\Bigl(\tfrac12 (1 + u_i) \sqrt{\tfrac12 \ln(t + 10)},\; \xi\Bigr),

    :math:`\theta_i` is the quantile below which the posterior of arm i is with probability
    :math:`\Phi(-x_i)`; above which it is, for rewards.

    Examples
    --------
    >>> from multiplay import Composed, Learner, OptimisticQuantile, Pooled, Transport
    >>> policy = Composed(Pooled(), OptimisticQuantile())
    >>> sum(Learner(Transport([1, 4, 5], [4, 6]), policy).ask().plan.values())
    10
    """

    counts_rounds = True
    calls = ("quantile",)

    def of(self, posterior: Posterior) -> Index:
        """Return the quantile of the posterior."""
        quantile: Index = posterior.quantile  # type: ignore[attr-defined]
        return quantile


@dataclass(frozen=True)
class Mean(Rule):
    r"""No exploration: :math:`\theta` is the mean of the posterior.

    .. math::

        \theta_i = m_i.

    Examples
    --------
    >>> from multiplay import Coins, Composed, Learner, Mean, Transport
    >>> policy = Composed(Coins(), Mean())
    >>> sum(Learner(Transport([1, 4, 5], [4, 6]), policy).ask().plan.values())
    10
    """

    calls = ("mean",)

    def of(self, posterior: Posterior) -> Index:
        """Return the mean of the posterior."""
        mean: Index = posterior.mean  # type: ignore[attr-defined]
        return mean


SHARED_HINT = Hint("Write {} for one seed for all arms.", Term("True", "true"))


def check_shared_seed(shared: object, name: str) -> None:
    """Raise ``InvalidInput`` unless it is True or False."""
    true_or_false(name, shared, SHARED_HINT)
