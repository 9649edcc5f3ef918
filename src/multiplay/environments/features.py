"""Columns of features in tables, averaged for each arm and round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from multiplay._support.checks import numbers
from multiplay._support.frames import column
from multiplay.types import FloatArray, IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd


def feature_columns(rows: pd.DataFrame, names: Sequence[str]) -> FloatArray:
    """Return the columns of features of a table, (rows, features), after the intercept."""
    example = "features=['km', 'fuel']"
    values = [numbers(f"table[{n!r}]", column(rows, n, example).to_numpy()) for n in names]
    return np.column_stack([np.ones(len(rows)), *values])


def averaged(arm: IntArray, round: IntArray, values: FloatArray, arms: int) -> FloatArray:
    """Return averages of the rows of each round and arm, (rounds, arms, p); NaN without rows."""
    rounds = int(round.max()) + 1
    cell = round * arms + arm
    count = np.bincount(cell, minlength=rounds * arms)
    sums = np.stack([np.bincount(cell, v, rounds * arms) for v in values.T], axis=1)
    with np.errstate(invalid="ignore"):
        means: FloatArray = (sums / count[:, None]).reshape(rounds, arms, -1)
    return means
