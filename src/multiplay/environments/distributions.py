"""Distributions of a single loss, on [0, 1]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import numbers, unit_interval
from multiplay._support.serialization import settings
from multiplay.errors import InvalidInput
from multiplay.kernels.losses import COIN, STRAIGHT
from multiplay.types import FloatArray, IntArray


class Distribution(ABC):
    r"""One distribution for all arms, each arm, or each trial and arm.

    A loss is drawn as the quantile of a uniform number u, so that distributions can be compared at
    the same quantiles:

    .. math::

        L = F^{-1}(u), \qquad \mu = \mathbb{E}[L] = \int_0^1 F^{-1}(u) \, du.

    Parameters are numbers, or arrays of shape (d,) or (trials, d). A subclass keeps them as
    attributes of the same names, and writes ``mean``, which is :math:`\mu`, and ``quantile``, which
    is :math:`F^{-1}`.

    Examples
    --------
    >>> class Rising(Distribution):
    ...     '''Losses with the density 2 x / top ** 2 on [0, top].'''
    ...     def __init__(self, top):
    ...         self.top = np.asarray(top, dtype=float)
    ...     @property
    ...     def mean(self):
    ...         return 2 * self.top / 3
    ...     def quantile(self, u):
    ...         return self.top * np.sqrt(u)
    >>> Rising([0.3, 0.9]).mean
    array([0.2, 0.6])
    >>> Rising(0.5).quantile([0.01, 0.25, 1])
    array([0.05, 0.25, 0.5 ])
    """

    def _match(self, **parameters: FloatArray) -> tuple[FloatArray, ...]:
        """Return the parameters, all of one shape."""
        try:
            arrays = np.broadcast_arrays(*parameters.values())
            return tuple(array.copy() for array in arrays)  # not views of the arguments
        except ValueError:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in parameters.items())
            raise InvalidInput(
                type(self).__name__,
                "parameters of one shape",
                shapes,
                "Give each parameter a number, or one for each arm.",
            ) from None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in settings(self).items())})"

    @classmethod
    def example(cls) -> Self:
        """Return six distributions, one for each arm of ``Transport.example()``."""
        return cls()

    @property
    @abstractmethod
    def mean(self) -> FloatArray:
        """Mean of a loss."""

    @abstractmethod
    def quantile(self, u: FloatArray) -> FloatArray:
        """Return the losses at the probabilities ``u``."""

    def mirrored(self) -> Distribution:
        """Return the distribution of 1 - L.

        Examples
        --------
        >>> Uniform(0, [0.25, 0.75]).mirrored()
        Uniform(low=[0.75 0.25], high=[1. 1.])
        """
        name = type(self).__name__
        raise InvalidInput(
            "distribution",
            "a distribution that can be mirrored",
            name,
            f"Write {name}.mirrored(), the distribution of 1 - L.",
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the parameters."""
        return self.mean.shape

    def check(self, argument: str, d: int, trials: int) -> None:
        """Raise ``InvalidInput`` unless there is one for all arms, or each arm (and trial)."""
        if self.shape not in ((), (d,), (trials, d)):
            raise InvalidInput(
                argument,
                f"a number, or parameters of shape ({d},), or ({trials}, {d}) for one row a trial",
                f"shape {self.shape}",
                "Give one number for all arms, or one for each.",
            )

    def spread(self, trials: Sequence[int], owner: IntArray) -> Self:
        """Return the distribution of every slot: one row for each trial, one column a slot.

        Examples
        --------
        >>> Bernoulli([0.1, 0.2]).spread(trials=[0], owner=np.array([0, 0, 1])).mean
        array([[0.1, 0.1, 0.2]])
        >>> Bernoulli(0.5).spread(trials=[0], owner=np.array([0, 0, 1])).mean
        array([[0.5, 0.5, 0.5]])
        """
        rows = np.asarray(trials) if len(self.shape) == 2 else np.zeros(len(trials), dtype=int)
        columns = owner if self.shape else np.zeros_like(owner)
        return type(self)(
            **{
                name: np.atleast_2d(value)[rows][:, columns]
                for name, value in settings(self).items()
            }
        )


class Uniform(Distribution):
    r"""Losses that are uniform between two numbers of [0, 1].

    .. math::

        L \sim \mathcal{U}[\text{low}, \text{high}], \qquad
        \mathbb{E}[L] = \frac{\text{low} + \text{high}}{2}

    Parameters
    ----------
    low, high
        The least and the greatest loss: numbers, or arrays of shape (d,) or (trials, d).

    Examples
    --------
    >>> Uniform(0, [0.4, 1.0]).mean
    array([0.2, 0.5])
    """

    @classmethod
    def example(cls) -> Self:
        """Return six distributions, one for each arm of ``Transport.example()``."""
        return cls(0, [0.2, 0.4, 0.6, 0.8, 1.0, 0.5])

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        self.low, self.high = self._match(
            low=unit_interval("low", low), high=unit_interval("high", high)
        )
        crossed = self.low > self.high
        if crossed.any():
            pair = f"{self.low[crossed].flat[0]:g} > {self.high[crossed].flat[0]:g}"
            raise InvalidInput(
                "low, high", "low <= high", pair, "Give a low that is not above the high."
            )

    @property
    def mean(self) -> FloatArray:
        """The mean (low + high) / 2."""
        return (self.low + self.high) / 2

    def quantile(self, u: FloatArray) -> FloatArray:
        """Return low + (high - low) u."""
        return self.low + (self.high - self.low) * u

    def mirrored(self) -> Uniform:
        """Return Uniform(1 - high, 1 - low)."""
        return Uniform(1 - self.high, 1 - self.low)


class Bernoulli(Distribution):
    r"""Losses of 0 or 1.

    .. math::

        \mathbb{P}[L = 1] = 1 - \mathbb{P}[L = 0] = p, \qquad \mathbb{E}[L] = p

    Parameters
    ----------
    mean
        The probability p of a loss: a number, or an array of shape (d,) or (trials, d).

    Examples
    --------
    >>> Bernoulli([0.2, 0.7]).quantile([0.5, 0.5])
    array([0., 1.])

    One number is the same for all arms:

    >>> Bernoulli(0.2)
    Bernoulli(mean=0.2)
    """

    @classmethod
    def example(cls) -> Self:
        """Return six distributions, one for each arm of ``Transport.example()``."""
        return cls([0.2, 0.4, 0.3, 0.5, 0.6, 0.1])

    def __init__(self, mean: ArrayLike) -> None:
        (self.p,) = self._match(mean=unit_interval("mean", mean))

    @property
    def mean(self) -> FloatArray:
        """The probability p."""
        return self.p

    def quantile(self, u: FloatArray) -> FloatArray:
        """Return 1 where u >= 1 - p, else 0."""
        return (np.asarray(u) >= 1 - self.p).astype(float)

    def mirrored(self) -> Bernoulli:
        """Return Bernoulli(1 - p)."""
        return Bernoulli(1 - self.p)


class Beta(Distribution):
    r"""Losses with a Beta distribution.

    The density at x in [0, 1], and the mean, are

    .. math::

        f(x) = \frac{x^{a - 1} (1 - x)^{b - 1}}{\mathrm{B}(a, b)}, \qquad
        \mathbb{E}[L] = \frac{a}{a + b}.

    Parameters
    ----------
    a, b
        Positive: numbers, or arrays of shape (d,) or (trials, d). Beta(1, 1) is uniform.

    Examples
    --------
    >>> Beta([1, 3], 1).mean
    array([0.5 , 0.75])
    """

    @classmethod
    def example(cls) -> Self:
        """Return six distributions, one for each arm of ``Transport.example()``."""
        return cls([1, 2, 3, 4, 5, 6], 2)

    def __init__(self, a: ArrayLike, b: ArrayLike) -> None:
        a, b = numbers("a", a), numbers("b", b)
        for name, values in (("a", a), ("b", b)):
            if (values <= 0).any():
                raise InvalidInput(
                    name,
                    "positive numbers",
                    f"{values.min():g}",
                    "Give positive numbers; Beta(1, 1) is uniform.",
                )
        self.a, self.b = self._match(a=a, b=b)

    @property
    def mean(self) -> FloatArray:
        """The mean a / (a + b)."""
        return self.a / (self.a + self.b)

    def quantile(self, u: FloatArray) -> FloatArray:
        """Return the inverse of the regularised incomplete beta function."""
        from scipy import special  # here: importing multiplay should not wait for it

        return np.asarray(special.betaincinv(self.a, self.b, u), dtype=float)

    def mirrored(self) -> Beta:
        """Return Beta(b, a)."""
        return Beta(self.b, self.a)


class Constant(Distribution):
    r"""Constant losses.

    .. math::

        \mathbb{P}[L = \text{value}] = 1, \qquad \mathbb{E}[L] = \text{value}

    Parameters
    ----------
    value
        The loss: a number, or an array of shape (d,) or (trials, d).

    Examples
    --------
    >>> Constant([0.2, 0.7]).mean
    array([0.2, 0.7])
    """

    @classmethod
    def example(cls) -> Self:
        """Return six distributions, one for each arm of ``Transport.example()``."""
        return cls([0.2, 0.4, 0.3, 0.5, 0.6, 0.1])

    def __init__(self, value: ArrayLike) -> None:
        (self.value,) = self._match(value=unit_interval("value", value))

    @property
    def mean(self) -> FloatArray:
        """The value."""
        return self.value

    def quantile(self, u: FloatArray) -> FloatArray:
        """Return the value, for every u."""
        return self.value + np.zeros_like(u)

    def mirrored(self) -> Constant:
        """Return 1 - value."""
        return Constant(1 - self.value)


class Law(NamedTuple):
    """A distribution in the form that ``multiplay.kernels.losses`` implements.

    There are three numbers for each trial and arm: low, width and mean. STRAIGHT: a loss is
    low + width u, with u uniform; COIN: it is 1 if u >= low, else 0.
    """

    kind: int
    numbers: FloatArray


def law_of(distribution: Distribution) -> Law | None:
    """Return the law of a distribution (trials, d); None if kernels do not implement it.

    Examples
    --------
    >>> law_of(Uniform([[0.25]], [[0.75]])).numbers.ravel()
    array([0.25, 0.5 , 0.5 ])
    """
    kind, mean = STRAIGHT, distribution.mean
    if type(distribution) is Uniform:  # a class of one's own may draw in another way
        low, width = distribution.low, distribution.high - distribution.low
    elif type(distribution) is Constant:
        low, width = distribution.value, 0 * mean
    elif type(distribution) is Bernoulli:
        kind, low, width = COIN, 1 - mean, mean
    else:
        return None
    return Law(kind, np.array([low, width, mean], order="C"))  # the order that kernels want
