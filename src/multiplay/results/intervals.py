"""Confidence intervals of means over trials.

Regrets are skewed: a few unlucky trials cost much, and Student's interval, which is as long on
either side, then misses the true mean too often, nearly always from below. Hall's transformation of
the t statistic takes the skewness out (Hall, On the removal of skewness by transformation, 1992).
With u = (mean - true mean) / standard error and a = skewness / sqrt(trials),

    g(u) = u + a u^2 / 3 + a^2 u^3 / 27 + a / 6

grows with u and is closer to a Student variable than u is. But where tails are heavy on both sides
the skewness of a few trials is mostly luck. So an interval holds the means that either u or g(u)
allows: its ends are the outer ones of Student's and Hall's. It costs no resampling, p values and
intervals belong together, and for many trials it is Student's again. ``docs/mathematics.md`` has
the coverage that decided, against Student, Hall alone, BCa and bootstrap-t.
"""

from typing import NamedTuple

import numpy as np

from multiplay.types import FloatArray

LEVEL = 0.95
FEW = 8  # fewer trials do not determine a skewness


class Interval(NamedTuple):
    """A mean over trials, and its confidence interval, at the level 95 % by default.

    Attributes
    ----------
    mean : float
        Over all trials.
    low, high : float
        The ends of the interval; infinite where there is one trial only.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay.results import interval
    >>> found = interval(np.array([1.0, 2.0, 3.0]))
    >>> found.mean, round(found.low, 2), round(found.high, 2)
    (2.0, -0.48, 4.48)
    """

    mean: float
    low: float
    high: float


def student(trials: int, level: float = LEVEL) -> float:
    """Return half the width of a Student interval over ``trials``, in standard errors."""
    from scipy import special  # here: importing multiplay should not wait for it

    return float(special.stdtrit(trials - 1, (1 + level) / 2))


def interval(values: FloatArray, level: float = LEVEL) -> Interval:
    r"""Return the mean of independent values with its confidence interval; one value has none.

    Let :math:`\bar{v}` be the mean of K values, :math:`\sigma` their standard error, t the quantile
    of Student's distribution with K - 1 degrees of freedom, and a their skewness over
    :math:`\sqrt{K}`. Hall's transformation of :math:`u = (\bar{v} - \mu) / \sigma` takes the
    skewness out:

    .. math::

        g(u) = u + \frac{a u^2}{3} + \frac{a^2 u^3}{27} + \frac{a}{6}.

    The interval has all means :math:`\mu` with :math:`|u| \le t`, which is Student's interval, or
    :math:`|g(u)| \le t`, and what lies between them. For less than 8 values, whose skewness is
    mostly luck, it is Student's.

    Parameters
    ----------
    values
        One for each trial.
    level
        The probability with which the interval is to hold the true mean.

    Returns
    -------
    Interval
        The mean, and the ends.

    References
    ----------
    Hall: On the Removal of Skewness by Transformation, Journal of the Royal Statistical Society B
    54, 1992.

    Examples
    --------
    >>> interval(np.array([1.0, 2.0, 3.0])).mean
    2.0
    >>> [round(x, 2) for x in interval(np.arange(10.0) ** 3)]
    [202.5, 22.73, 486.4]
    """
    return Interval(*(float(number) for number in band(np.asarray(values, dtype=float), level)))


def band(
    values: FloatArray, level: float = LEVEL, axis: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return means, low and high ends of the intervals of many series, trials along ``axis``."""
    trials, mean = values.shape[axis], np.mean(values, axis=axis)
    if trials < 2:
        return mean, np.full(mean.shape, -np.inf), np.full(mean.shape, np.inf)
    error, a = _error_and_skewness(values, axis)
    t = student(trials, level)
    low = mean - error * np.maximum(_untransformed(t, a), t)
    high = mean - error * np.minimum(_untransformed(-t, a), -t)
    return mean, low, high


def p_value(values: FloatArray) -> float:
    """Return P(|t| >= min{|u|, |g(u)|}) if the true mean is 0; one value has 1.

    Here u = mean / standard error. It is below 1 - level where the interval excludes 0.

    Examples
    --------
    >>> round(p_value(np.array([1.0, 2.0, 3.0])), 4)
    0.0742
    """
    from scipy import special

    if len(values) < 2:
        return 1.0
    mean, (error, a) = np.mean(values), _error_and_skewness(np.asarray(values, dtype=float), 0)
    if error == 0:  # the same in every trial
        return 1.0 if mean == 0 else 0.0
    u = mean / error
    least = min(abs(u), abs(_transformed(u, a)))
    return float(2 * special.stdtr(len(values) - 1, -least))


def standard_error(values: FloatArray) -> float:
    """Return the standard error of the mean of at least two values."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def _error_and_skewness(values: FloatArray, axis: int) -> tuple[FloatArray, FloatArray]:
    """Return standard errors, and a = skewness / sqrt(trials), 0 where there are few trials."""
    trials = values.shape[axis]
    error = np.std(values, axis=axis, ddof=1, keepdims=True) / np.sqrt(trials)
    if trials < FEW:
        return error.squeeze(axis), np.zeros_like(error.squeeze(axis))
    centred = values - np.mean(values, axis=axis, keepdims=True)
    z = np.divide(centred, error, out=np.zeros_like(centred), where=error > 0)
    a = np.mean(z**3, axis=axis) / ((trials - 1) ** 1.5 * np.sqrt(trials))
    return error.squeeze(axis), a


def _transformed(u: FloatArray, a: FloatArray) -> FloatArray:
    """g(u)."""
    result: FloatArray = u + a * u**2 / 3 + a**2 * u**3 / 27 + a / 6
    return result


def _untransformed(t: float, a: FloatArray) -> FloatArray:
    """Return the u with g(u) = t: (3 / a) (c - 1), where c^3 = 1 + a (t - a / 6)."""
    c = np.cbrt(1 + a * (t - a / 6))
    u: FloatArray = 3 * (t - a / 6) / (1 + c + c**2)
    return u
