"""Contexts: the features of all arms in every round, drawn or from an array or a table."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from multiplay._support.checks import integer_setting, numbers
from multiplay._support.frames import column, frame, in_order
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.features.rows import FeatureRows
from multiplay.random import CONTEXT, Streams, standard_normal
from multiplay.types import FloatArray, IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

MOST_COLUMNS = 200
REPEATED = {"round": None, "week": 7, "once": 1}  # rounds until the features come again

Rows = Callable[[int], FeatureRows]  # of the rounds 1, 2, ... in this order


class Contexts(ABC):
    """The features of all arms in all rounds; the first column is the intercept."""

    p: int

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples with ``Transport.example()``."""
        return cls()

    @abstractmethod
    def check(self, actions: ActionSet, trials: int) -> None:
        """Raise ``InvalidInput`` if these features do not fit."""

    @abstractmethod
    def open(self, actions: ActionSet, trials: Sequence[int], seed: int) -> Rows:
        """Return the rows of these trials as a function of the round."""


@dataclass(frozen=True)
class NormalContexts(Contexts):
    r"""Features that are standard normal numbers, for ``Contextual``.

    .. math::

        \phi_{ti} = (1, x_{ti2}, \ldots, x_{tip}), \qquad x_{tij} \sim \mathcal{N}(0, 1)
        \text{ independently}

    Each trial has its own features. Their random stream is used for nothing else, so losses and
    policies draw the same numbers for all settings.

    Parameters
    ----------
    p
        The number of columns, the intercept included; at most 200.
    every
        "round": new features in every round. "week": seven tables in turn. "once": the features of
        round 1 stay.

    See Also
    --------
    Contextual : The environment that it is for.

    Examples
    --------
    >>> from multiplay import Budget, Contextual
    >>> coins = Contextual([0.5, 0.1], NormalContexts(2), losses="bernoulli")
    >>> world = coins.open(Budget(1, caps=[1, 1]), horizon=5, trials=[0], seed=0)
    >>> world.contexts(1).arm.round(2)
    array([[[ 1.  , -1.3 ],
            [ 1.  , -0.86]]])
    """

    p: int
    every: str = "round"

    @classmethod
    def example(cls) -> Self:
        """Return two columns, new in every round, for ``Transport.example()``."""
        return cls(2)

    def __post_init__(self) -> None:
        integer_setting(self, "p", "Give the number of columns with the intercept.", MOST_COLUMNS)
        if not isinstance(self.every, str) or self.every not in REPEATED:
            raise InvalidInput(
                "every", "'round', 'week' or 'once'", repr(self.every), "Leave it out."
            )

    def check(self, actions: ActionSet, trials: int) -> None:
        """Accept every set."""

    def open(self, actions: ActionSet, trials: Sequence[int], seed: int) -> Rows:
        """Return the rows of these trials as a function of the round."""
        streams, shape = Streams.spawn(seed, CONTEXT, trials), (len(trials), actions.d, self.p)
        period = REPEATED[self.every]
        kept: list[FeatureRows] = []

        def rows(t: int) -> FeatureRows:
            if period is not None and t > period:
                return kept[(t - 1) % period]
            phi = np.ones(shape)
            phi[..., 1:] = standard_normal((*shape[:2], self.p - 1), streams)
            drawn = FeatureRows.of(phi)
            if period is not None:
                kept.append(drawn)
            return drawn

        return rows


class ArrayContexts(Contexts):
    """Features from an array (d, p), (rounds, d, p) or (trials, rounds, d, p).

    Rounds begin again after the last one.
    """

    def __init__(self, array: Any) -> None:
        phi = numbers("contexts", array)
        if phi.ndim not in (2, 3, 4) or 0 in phi.shape:
            raise InvalidInput(
                "contexts",
                "NormalContexts, a table, or an array (d, p), (rounds, d, p) or "
                "(trials, rounds, d, p)",
                f"shape {phi.shape}",
                "Give p numbers for each arm.",
            )
        if not (phi[..., 0] == 1).all():
            wrong = phi[..., 0][phi[..., 0] != 1].flat[0]
            raise InvalidInput(
                "contexts", "1 in the first column", f"{wrong:g}", "Put a column of ones first."
            )
        self.array: FloatArray = phi.reshape((1,) * (4 - phi.ndim) + phi.shape).copy()
        self.p = phi.shape[-1]

    def check(self, actions: ActionSet, trials: int) -> None:
        """Raise ``InvalidInput`` unless there are features for each arm, and trial if given."""
        of_trials, _, d, p = self.array.shape
        if d != actions.d or of_trials not in (1, trials):
            raise InvalidInput(
                "contexts",
                f"features of {actions.d} arms, for all trials or each of {trials}",
                f"{d} arms, {of_trials} trials",
                f"Give an array (rounds, {actions.d}, {p}).",
            )

    def open(self, actions: ActionSet, trials: Sequence[int], seed: int) -> Rows:
        """Return the rows of these trials as a function of the round."""
        own = self.array if len(self.array) == 1 else self.array[list(trials)]
        rounds = [FeatureRows.of(own[:, t]) for t in range(own.shape[1])]
        return lambda t: rounds[(t - 1) % len(rounds)]


class TableContexts(Contexts):
    """Features from a table with a column of arms, perhaps one of rounds, and the features."""

    def __init__(self, table: Any, arm: str = "arm", round: str = "round") -> None:
        rows = frame(table, arm)
        names = [name for name in rows.columns if name not in (arm, round)]
        if not names:
            raise InvalidInput("contexts", "columns of features", "none", "Add columns.")
        example = "a table with the columns arm, round, km, fuel"
        label = column(rows, round, example) if round in rows.columns else None
        arms = column(rows, arm, example).astype(str)
        values = feature_columns(rows, names)
        places = np.zeros(len(rows), dtype=np.int64) if label is None else in_order(label)[0]
        self.names, self.rows = ("1", *map(str, names)), len(rows)
        self.arms, found = _factorized(arms)
        self.cells = averaged(found, places, values, len(self.arms))
        self.p = self.cells.shape[2]

    def digest(self) -> str:
        """Return the SHA-256 of all features with their arms and names."""
        sha = hashlib.sha256(repr((self.names, self.arms)).encode())
        sha.update(self.cells.tobytes())
        return sha.hexdigest()

    def check(self, actions: ActionSet, trials: int) -> None:
        """Raise ``InvalidInput`` unless each arm has features in every round of the table."""
        for name in actions.names:
            missing = (
                np.isnan(self.cells[:, self.arms.index(name)]).any(axis=1)
                if name in self.arms
                else np.ones(1, dtype=bool)
            )
            if missing.any():
                raise InvalidInput(
                    "contexts",
                    f"features of arm {name!r} in every round",
                    f"none in round {int(missing.argmax()) + 1} of the table",
                    "Add a row for each arm and round.",
                )

    def open(self, actions: ActionSet, trials: Sequence[int], seed: int) -> Rows:
        """Return the rows of the arms of the set as a function of the round."""
        order = [self.arms.index(name) for name in actions.names]
        rounds = [FeatureRows.of(cells[order]) for cells in self.cells]
        return lambda t: rounds[(t - 1) % len(rounds)]


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


def _factorized(arms: pd.Series[Any]) -> tuple[list[str], IntArray]:
    import pandas as pd

    place, names = pd.factorize(arms, sort=True)
    return list(map(str, names)), place
