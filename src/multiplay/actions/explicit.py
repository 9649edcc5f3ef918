"""Sets that are given as a list of actions."""

from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import whole_numbers, with_last_axis
from multiplay.actions.base import ActionSet, Duplicate, owners, read_only, too_many, whole_box
from multiplay.actions.costs import SetCost, SetSize, longest
from multiplay.errors import InvalidInput
from multiplay.types import BoolArray, FloatArray, IntArray

BATCH = 1 << 24  # numbers in one table of costs


class Explicit(ActionSet, vectorised=True):
    r"""Actions that are listed one by one.

    .. math::

        \mathcal{A} = \{a^{(1)}, \dots, a^{(K)}\}, \text{ the rows of } \text{actions}

    The slow twin of every other set, and the way to choose from a few given plans.

    Parameters
    ----------
    actions
        One action in each row; repeated rows count once.
    names, sense
        Names of the arms; "min" if units bring losses, "max" if they bring rewards.

    Examples
    --------
    >>> plans = Explicit([[0, 3], [2, 2], [5, 0]])
    >>> plans.n, plans.argmin([0.5, 0.6])
    (array([5, 3]), array([0, 3]))
    """

    cost = SetCost(SetSize("actions", lambda s: longest(s["actions"])), oracle="polynomial")

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls([[0, 3], [2, 2], [5, 0]])

    def __init__(
        self, actions: ArrayLike, names: Sequence[str] | None = None, sense: str = "min"
    ) -> None:
        listed = whole_numbers("actions", actions)
        if listed.ndim != 2 or listed.size == 0:
            raise InvalidInput(
                "actions",
                "at least one action, each a list of numbers",
                f"shape {listed.shape}",
                "Use [[0, 3], [2, 2]], for example.",
            )
        _, first = np.unique(listed, axis=0, return_index=True)
        self.actions = read_only(listed[np.sort(first)])
        self.n = self.actions.max(axis=0)
        super().__init__(names, sense)

    def __repr__(self) -> str:
        return f"Explicit({len(self.actions)} actions of {self.d} arms)"

    def oracle(self, costs: FloatArray) -> IntArray:
        """Compare all actions."""
        answers = np.empty(costs.shape, dtype=np.int64)
        table, chunk = self.actions.T.astype(float), max(1, BATCH // len(self.actions))
        for start in range(0, len(costs), chunk):
            some = slice(start, start + chunk)
            answers[some] = self.actions[(costs[some] @ table).argmin(axis=1)]
        return answers

    def contains(self, action: ArrayLike) -> BoolArray:
        """Return whether vectors are in the list."""
        a = with_last_axis("action", action, self.d)
        rows = a.reshape(-1, self.d)
        inside = np.array([row.tobytes() in self._listed for row in rows + 0.0], dtype=bool)
        return inside.reshape(a.shape[:-1])

    @cached_property
    def _listed(self) -> set[bytes]:
        return {row.tobytes() for row in self.actions.astype(float)}

    def enumerate(self, limit: int = 100_000) -> IntArray:
        """Return the list."""
        if len(self.actions) > limit:
            raise too_many(limit)
        return self.actions.copy()

    def _within(self, most: IntArray, fixed: IntArray) -> tuple[ActionSet, IntArray]:
        """Keep the actions within the limits."""
        fits = (self.actions <= most) & ((fixed < 0) | (self.actions == fixed))
        kept = self.actions[fits.all(axis=1)]
        if len(kept) == 0:
            raise InvalidInput(
                "limits",
                "limits that leave at least one action",
                "limits that leave no action",
                "Relax the limits.",
            )
        return Explicit(kept, sense=self.sense), np.zeros_like(fixed)

    @cached_property
    def _duplicate(self) -> Duplicate:
        """The set of all choices of copies, a_i of the n_i copies of arm i."""
        if self.n.max() <= 1:
            return super()._duplicate
        return Duplicate(ExplicitCopies(self), owners(self.n))


class ExplicitCopies(ActionSet, vectorised=True):
    """The copied problem of an ``Explicit`` set: for each of its actions, all choices of copies."""

    cost = Explicit.cost

    def __init__(self, original: Explicit) -> None:
        self.original, self.owner = original, owners(original.n)
        self.first = np.concatenate([[0], np.cumsum(original.n)])
        self.n = np.ones(len(self.owner), dtype=np.int64)
        super().__init__(sense=original.sense)

    def oracle(self, costs: FloatArray) -> IntArray:
        """Price each action at its cheapest copies, and take those of the best action."""
        order = np.lexsort((costs, np.broadcast_to(self.owner, costs.shape)), axis=-1)
        ordered = np.take_along_axis(costs, order, axis=1)
        sums = np.concatenate([np.zeros((len(costs), 1)), ordered.cumsum(axis=1)], axis=1)
        listed, start = self.original.actions, self.first[:-1]
        prices = np.zeros((len(costs), len(listed)))
        for i in range(self.original.d):
            prices += sums[:, start[i] + listed[:, i]] - sums[:, [start[i]]]
        best = listed[prices.argmin(axis=1)]
        place = np.arange(len(self.owner)) - start[self.owner]
        chosen = np.empty(costs.shape, dtype=np.int64)
        np.put_along_axis(chosen, order, (place < best[:, self.owner]).astype(np.int64), axis=1)
        return chosen

    def contains(self, action: ArrayLike) -> BoolArray:
        """Return whether the copies of every arm add up to an action of the list."""
        a = with_last_axis("action", action, self.d)
        return whole_box(a, self.n) & self.original.contains(self._collect(a))

    def _collect(self, action: FloatArray) -> FloatArray:
        sums = np.concatenate([np.zeros((*action.shape[:-1], 1)), action.cumsum(axis=-1)], axis=-1)
        collected: FloatArray = np.diff(sums[..., self.first], axis=-1)
        return collected
