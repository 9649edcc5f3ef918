"""Comparison of every pair of policies on the same trials."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from multiplay.results.intervals import LEVEL, Interval, interval, p_value
from multiplay.types import FloatArray

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["A", "B", "difference", "ci low", "ci high", "p", "verdict"]


def compare(final: Mapping[str, FloatArray]) -> pd.DataFrame:
    """Compare the final regret of every pair, A minus B, paired by trial.

    Intervals and p values allow for skewness, see ``multiplay.results.intervals``, and belong
    together. With m pairs the intervals have the level 1 - 0.05 / m each, so that all of them hold
    at once with 95 % (Bonferroni), and so does every verdict. The p values are adjusted by Holm; as
    its steps can be smaller, p may be below 0.05 where the interval still holds 0.

    Examples
    --------
    >>> final = {"one": np.array([1.0, 2.0, 3.0]), "other": np.array([5.1, 6.0, 6.9])}
    >>> compare(final)[["A", "B", "difference", "verdict"]].to_dict("records")
    [{'A': 'one', 'B': 'other', 'difference': -4.0, 'verdict': 'A lower'}]
    """
    import pandas as pd

    pairs = list(combinations(final, 2))
    level = simultaneous(len(pairs))
    differences = [final[A] - final[B] for A, B in pairs]
    estimates = [interval(values, level) for values in differences]
    adjusted = holm(np.array([p_value(values) for values in differences]))
    rows = [
        (*pair, *estimate, float(p), verdict(estimate))
        for pair, estimate, p in zip(pairs, estimates, adjusted, strict=True)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def simultaneous(intervals: int) -> float:
    """Return the level of each of several intervals that shall all hold with 95 %.

    Examples
    --------
    >>> simultaneous(1), round(simultaneous(10), 3)
    (0.95, 0.995)
    """
    return LEVEL if intervals < 2 else 1 - (1 - LEVEL) / intervals


def holm(p: FloatArray) -> FloatArray:
    """Return p values adjusted for their number: max over j <= i of min{1, (m - j + 1) p_(j)}.

    Examples
    --------
    >>> holm(np.array([0.04, 0.01, 0.03])).tolist()
    [0.06, 0.03, 0.06]
    """
    order, m = np.argsort(p), len(p)
    adjusted = np.empty(m)
    adjusted[order] = np.maximum.accumulate((m - np.arange(m)) * p[order])
    return np.minimum(adjusted, 1.0)


def verdict(difference: Interval) -> str:
    """Return which of the two is lower, if the interval of A - B excludes 0."""
    if difference.high < 0:
        return "A lower"
    return "B lower" if difference.low > 0 else "undecided"
