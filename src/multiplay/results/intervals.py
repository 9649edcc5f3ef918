"""Means over trials, with confidence intervals."""

from typing import NamedTuple

import numpy as np

from multiplay.types import FloatArray

LEVEL = 0.95


class Interval(NamedTuple):
    """A mean over trials, and its confidence interval, at the level 95 % if nothing is said."""

    mean: float
    low: float
    high: float


def student(trials: int, level: float = LEVEL) -> float:
    """Return how many standard errors of a mean over ``trials`` make half an interval."""
    from scipy import special  # here: importing multiplay should not wait for it

    return float(special.stdtrit(trials - 1, (1 + level) / 2))


def interval(values: FloatArray, level: float = LEVEL) -> Interval:
    """Return the mean of independent values with its Student interval; one value has none.

    Examples
    --------
    >>> interval(np.array([1.0, 2.0, 3.0])).mean
    2.0
    """
    mean = float(np.mean(values))
    if len(values) < 2:
        return Interval(mean, -np.inf, np.inf)
    margin = student(len(values), level) * standard_error(values)
    return Interval(mean, mean - margin, mean + margin)


def p_value(values: FloatArray) -> float:
    """Return P(|t| >= |mean / standard error|) if the true mean is 0; one value has 1.

    Examples
    --------
    >>> round(p_value(np.array([1.0, 2.0, 3.0])), 4)
    0.0742
    """
    from scipy import special

    mean = float(np.mean(values))
    if len(values) < 2 or mean == 0:
        return 1.0
    error = standard_error(values)
    if error == 0:  # the same in every trial
        return 0.0
    return float(2 * special.stdtr(len(values) - 1, -abs(mean) / error))


def standard_error(values: FloatArray) -> float:
    """Return the standard error of the mean of at least two values."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))
