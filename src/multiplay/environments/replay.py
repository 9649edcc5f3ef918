"""Replay of logged outcomes: losses from a table with one row for each outcome."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from multiplay._support.checks import is_list, unit_interval
from multiplay._support.frames import column, frame, in_order
from multiplay.actions import ActionSet, TimeVarying, Transport
from multiplay.environments.base import Environment, Observation, Slots, World
from multiplay.environments.contexts import averaged, feature_columns
from multiplay.errors import InvalidInput
from multiplay.features.rows import FeatureRows
from multiplay.kernels import replay as kernels
from multiplay.random import INSTANCE, LOSSES, Streams
from multiplay.types import FloatArray, IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Replay(Environment):
    r"""Logged outcomes, from a table with a row for each: its arm, its round, its loss.

    Each round replays a logged round (such as a day): the units that arm i plays are drawn without
    replacement from the outcomes :math:`o_{i1}, \dots, o_{iK_i}` that arm i had there. The mean of
    arm i in that round is the average of these outcomes,

    .. math::

        \ell_i = \frac{1}{K_i} \sum_{k=1}^{K_i} o_{ik},

    and regret is measured against the best fixed action in hindsight. The order of the rows does
    not matter.

    With ``TimeVarying`` sets and ``shuffle=False`` the set of round t and the outcomes of round t
    belong together: a round needs outcomes for the units of its own set only.

    Parameters
    ----------
    table
        A pandas ``DataFrame``, whatever ``pandas.DataFrame(table)`` takes, or the path of a CSV
        file. Afterwards the attribute ``table`` is a ``Log``, which identifies it.
    arm
        The column with the names of the arms, those of the action set.
    round
        The column that says in which logged round the outcome came: any labels that can be sorted.
    loss
        The column with the losses, or rewards, in [0, 1].
    shuffle
        True: the logged rounds come in a random order, different in each trial; all come once
        before any is repeated, and then in a new order. False: in the order of their labels,
        repeatedly.
    features
        Columns with features of arm and round, which are averaged over the rows of an arm in a
        round. Policies that read features (``Policy.reads_features``) get them, after a column of
        ones. They are used as they are: scale them beforehand, by constants that were known
        before the first round.

    Examples
    --------
    >>> from multiplay import Transport
    >>> plans = Transport([2], [1, 1], names=(["Lyon"], ["north", "south"]))
    >>> trucks = {
    ...     "arm": ["Lyon->north", "Lyon->north", "Lyon->south", "Lyon->north", "Lyon->south"],
    ...     "round": ["Monday", "Monday", "Monday", "Tuesday", "Tuesday"],
    ...     "loss": [0.25, 0.75, 0.5, 1.0, 0.0],
    ... }
    >>> world = Replay(trucks, shuffle=False).open(plans, horizon=2, trials=[0], seed=0)
    >>> seen = world.observe(plans.argmin([[0, 0]]))
    >>> seen.feedback.total  # one of the two trucks to the north
    array([[0.25, 0.5 ]])
    >>> seen.means, world.total_means
    (array([[0.5, 0.5]]), array([[1.5, 0.5]]))
    """

    table: Any
    arm: str = "arm"
    round: str = "round"
    loss: str = "loss"
    shuffle: bool = True
    features: Sequence[str] = ()
    cells: Cells = field(init=False, repr=False)

    @classmethod
    def example(cls) -> Self:
        """Return a log of three days, for examples with ``Transport.example()``."""
        plans, rng = Transport.example(), np.random.default_rng(0)
        days = np.repeat([1, 2, 3], plans.n.sum())
        arms = np.tile(np.repeat(plans.names, plans.n), 3)
        return cls({"arm": arms, "round": days, "loss": rng.random(len(days)).round(2)})

    def __post_init__(self) -> None:
        if not isinstance(self.shuffle, bool):
            raise InvalidInput("shuffle", "True or False", repr(self.shuffle), "Leave it out.")
        rows = frame(self.table, self.arm)
        if not is_list(self.features) or not all(isinstance(n, str) for n in self.features):
            raise InvalidInput(
                "features",
                "a list of columns",
                repr(self.features),
                "Write ['km', 'fuel'], for example.",
            )
        object.__setattr__(self, "features", tuple(self.features))
        example = "Replay(table, arm='lane', round='day', loss='cost')"
        columns = (self.arm, self.round, self.loss)
        arm, label, loss = (column(rows, name, example) for name in columns)
        losses = unit_interval(f"table[{self.loss!r}]", loss.to_numpy())
        columns_of_features = feature_columns(rows, self.features) if self.features else None
        cells = _sorted(arm.astype(str), label, losses, columns_of_features)
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "table", Log(len(rows), cells.digest()))

    def shows_units(self, actions: ActionSet) -> bool:
        """Return True: every unit has an outcome of its own."""
        return True

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """Raise ``InvalidInput`` unless arm i has n_i outcomes in every logged round.

        Where the set changes and the rounds come in order, n_i is that of the round.
        """
        unknown = [name for name in self.cells.arms if name not in actions.names]
        if unknown:
            raise InvalidInput(
                f"table[{self.arm!r}]",
                f"the names of the arms of {actions!r}, such as {actions.names[0]!r}",
                repr(unknown[0]),
                "Rename the arms, or remove the rows of unknown arms.",
            )
        _, count, _ = self.cells.of(actions.names)
        silent = np.flatnonzero((actions.n > 0) & (count.sum(axis=0) == 0))
        if len(silent):
            raise InvalidInput(
                f"table[{self.arm!r}]",
                f"outcomes of arm {actions.names[silent[0]]!r}",
                "none",
                "Add these outcomes to the table, or leave the arm out of the action set.",
            )
        if isinstance(actions, TimeVarying) and not self.shuffle:
            for t in range(horizon):
                r = t % len(count)
                self._check_outcomes(actions.at(t + 1), r, count[r])
        else:
            for r, outcomes in enumerate(count):
                self._check_outcomes(actions, r, outcomes)

    def _check_outcomes(self, actions: ActionSet, r: int, count: IntArray) -> None:
        """Raise ``InvalidInput`` if an arm may play more units than it has outcomes."""
        short = count < actions.n
        if short.any():
            i = int(short.argmax())
            raise InvalidInput(
                "table",
                f"at least {actions.n[i]} outcomes of arm {actions.names[i]!r} in round "
                f"{self.cells.rounds[r]}, one for each unit that it may play",
                f"{count[i]}",
                "Leave that round out, or let the arm play fewer units.",
            )

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        return ReplayWorld(self.cells, self.shuffle, actions, horizon, trials, seed)


@dataclass(frozen=True)
class Log:
    """The identity of a table: its number of rows, and a digest independent of their order."""

    rows: int
    sha256: str


class Cells(NamedTuple):
    """Outcomes sorted by round, arm and loss.

    Those of arm i in round r are ``outcomes[first[c] : first[c + 1]]``, c = r * len(arms) + i.
    """

    rounds: tuple[str, ...]
    arms: tuple[str, ...]
    first: IntArray
    outcomes: FloatArray
    features: FloatArray | None = None  # (rounds, arms, p)

    def of(self, names: Sequence[str]) -> tuple[IntArray, IntArray, FloatArray]:
        """Return start, number and average of the outcomes of these arms: (rounds, d)."""
        place = {arm: i for i, arm in enumerate(self.arms)}
        column = np.array([place.get(name, -1) for name in names])
        counts = np.diff(self.first)
        sums = np.bincount(np.repeat(np.arange(len(counts)), counts), self.outcomes, len(counts))
        start, count, total = (
            np.where(column >= 0, cell.reshape(len(self.rounds), -1).take(column, axis=1), 0)
            for cell in (self.first[:-1], counts, sums)
        )
        return start, count, total / np.maximum(count, 1)

    def features_of(self, names: Sequence[str]) -> FloatArray | None:
        """Return the features of these arms, (rounds, d, p); 0 for an arm without outcomes."""
        if self.features is None:
            return None
        place = {arm: i for i, arm in enumerate(self.arms)}
        column = np.array([place.get(name, -1) for name in names])
        phi = np.where(column[:, None] >= 0, self.features[:, column], np.nan)
        phi[..., 0] = 1.0
        return np.nan_to_num(phi)

    def digest(self) -> str:
        """Return the SHA-256 of all outcomes with their rounds and arms."""
        sha = hashlib.sha256(repr((self.rounds, self.arms)).encode())
        sha.update(self.first.tobytes())
        sha.update(self.outcomes.tobytes())
        if self.features is not None:
            sha.update(self.features.tobytes())
        return sha.hexdigest()


class ReplayWorld(World):
    """Logged rounds in some order, and units drawn from their outcomes."""

    def __init__(
        self,
        cells: Cells,
        shuffle: bool,
        actions: ActionSet,
        horizon: int,
        trials: Sequence[int],
        seed: int,
    ) -> None:
        self.slots = Slots(actions.n, every_unit=True)
        self.shape = len(trials), len(cells.rounds)
        self.shuffle, self.outcomes = shuffle, cells.outcomes
        self.start, self.count, self.logged_means = cells.of(actions.names)
        self.place = np.arange(self.count.max())
        self.total_means = self._total_means(horizon, Streams.spawn(seed, INSTANCE, trials))
        self.orders = Streams.spawn(seed, INSTANCE, trials)
        self.streams = Streams.spawn(seed, LOSSES, trials)
        self.features = cells.features_of(actions.names)
        self.round, self.ordered = 0, 0

    def contexts(self, t: int) -> FeatureRows | None:
        """Return the features of the logged rounds that come in round t."""
        if self.features is None:
            return None
        return FeatureRows.of(self.features[self._replayed(t)])

    def observe(self, action: IntArray) -> Observation:
        """Draw an outcome for every slot, played or not: all policies get the same losses."""
        self.round += 1
        replayed = self._replayed(self.round)
        coins = self.streams.random((len(action), len(self.slots.owner)))
        units = np.empty_like(coins)
        kernels.draw(
            self.outcomes,
            self.start,
            self.count,
            self.logged_means,
            replayed,
            self.slots.first,
            coins,
            self.place,
            units,
        )
        return self.slots.observation(units, action, self.logged_means[replayed])

    def _replayed(self, t: int) -> IntArray:
        """Return the logged round that comes in round t, for each trial."""
        passes, position = divmod(t - 1, self.shape[1])
        if passes == self.ordered:
            self.order = self._order(self.orders)
            self.ordered += 1
        replayed: IntArray = self.order[:, position].copy()
        return replayed

    def _order(self, streams: Streams) -> IntArray:
        """Return the order of the logged rounds in one pass, (trials, rounds)."""
        if not self.shuffle:
            return np.broadcast_to(np.arange(self.shape[1]), self.shape)
        return streams.random(self.shape).argsort(axis=1, kind="stable")

    def _total_means(self, horizon: int, streams: Streams) -> FloatArray:
        """Add up whole passes, and the rounds of the last one, whose order is drawn in advance."""
        passes, rest = divmod(horizon, self.shape[1])
        total = np.tile(passes * self.logged_means.sum(axis=0), (self.shape[0], 1))
        for _ in range(passes + 1):
            order = self._order(streams)
        for replayed in order[:, :rest].T:
            total += self.logged_means[replayed]
        return total


def _sorted(
    arm: pd.Series[Any], label: pd.Series[Any], losses: FloatArray, features: FloatArray | None
) -> Cells:
    """Sort the outcomes by round, arm and loss."""
    import pandas as pd

    r, rounds = in_order(label)
    i, arms = pd.factorize(arm, sort=True)
    cell = r * len(arms) + i
    counts = np.bincount(cell, minlength=len(rounds) * len(arms))
    return Cells(
        rounds=tuple(map(str, rounds)),
        arms=tuple(map(str, arms)),
        first=np.concatenate([[0], np.cumsum(counts)]),
        outcomes=losses[np.lexsort((losses, cell))],
        features=None if features is None else averaged(i, r, features, len(arms)),
    )
