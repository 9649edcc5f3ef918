"""Where the mean loss of an arm may lie, for policies without a posterior."""

import numpy as np
from numpy.typing import ArrayLike

from multiplay.types import FloatArray


def empirical_bernstein(
    seen: ArrayLike, total: ArrayLike, squares: ArrayLike, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of an interval for the mean of losses in [0, 1], for each arm.

    With N = ``seen`` losses, their average, their sample variance V and
    c = ln(4 / (1 - level)), it is the average -/+ (sqrt(2 V c / N) + 7 c / (3 (N - 1))), cut to
    [0, 1]; [0, 1] where N < 2. For N losses that are drawn independently it holds the mean with a
    probability of at least ``level``, whatever their distribution. Where a policy chose how many to
    draw that is no theorem; the interval is wide enough that it is still true in simulations.

    Parameters
    ----------
    seen, total, squares
        How many losses, their sum, and the sum of their squares. Where the squares are not known
        give ``total`` again: a loss in [0, 1] is at least its square, so that the interval only
        becomes wider.
    level
        The probability, such as 0.95.

    References
    ----------
    Maurer, Pontil: Empirical Bernstein Bounds and Sample Variance Penalization, COLT 2009,
    theorem 4, for both sides.

    Examples
    --------
    >>> low, high = empirical_bernstein([1, 100, 100], [1.0, 50.0, 50.0], [1.0, 50.0, 25.0], 0.95)
    >>> low.round(2), high.round(2)
    (array([0.  , 0.25, 0.4 ]), array([1.  , 0.75, 0.6 ]))
    """
    seen, total = np.asarray(seen, dtype=float), np.asarray(total, dtype=float)
    c = np.log(4 / (1 - level))
    n = np.maximum(seen, 2.0)
    mean = total / n
    variance = np.maximum(np.asarray(squares) - total * mean, 0.0) / (n - 1)
    width = np.sqrt(2 * variance * c / n) + 7 * c / (3 * (n - 1))
    known = seen >= 2
    low = np.where(known, np.clip(mean - width, 0.0, 1.0), 0.0)
    high = np.where(known, np.clip(mean + width, 0.0, 1.0), 1.0)
    return low, high
