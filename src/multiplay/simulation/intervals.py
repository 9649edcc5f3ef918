"""Means over trials, with confidence intervals."""

from typing import NamedTuple

import numpy as np

from multiplay.arrays import FloatArray

LEVEL = 0.95


class Interval(NamedTuple):
    """A mean over trials, and its confidence interval at the level 95 %."""

    mean: float
    low: float
    high: float


def student(trials: int) -> float:
    """Return how many standard errors of a mean over ``trials`` make half an interval."""
    from scipy import special  # here: importing multiplay should not wait for it

    return float(special.stdtrit(trials - 1, (1 + LEVEL) / 2))


def interval(values: FloatArray) -> Interval:
    """Return the mean of independent values with its Student interval; one value has none.

    Examples
    --------
    >>> interval(np.array([1.0, 2.0, 3.0])).mean
    2.0
    """
    mean = float(np.mean(values))
    if len(values) < 2:
        return Interval(mean, -np.inf, np.inf)
    margin = student(len(values)) * float(np.std(values, ddof=1)) / len(values) ** 0.5
    return Interval(mean, mean - margin, mean + margin)
