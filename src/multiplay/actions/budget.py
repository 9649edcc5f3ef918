"""Budgets: a total that is spread over the arms, with caps."""

from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import (
    EXACT,
    natural_number,
    true_or_false,
    whole_numbers,
    with_last_axis,
)
from multiplay._support.hints import Hint, Option
from multiplay.actions.base import ActionSet, Duplicate, owners, read_only, whole_box
from multiplay.actions.costs import SetCost, SetSize, length
from multiplay.actions.flow import Extremes, FlowSet
from multiplay.errors import InvalidInput
from multiplay.hull.graph import Graph
from multiplay.kernels.selection import cheapest
from multiplay.kernels.units import collect
from multiplay.types import BoolArray, FloatArray, IntArray

AT_MOST = Option("at_most", "True")
KEPT_BACK_HINT = Hint("Write {} if units may be kept back.", AT_MOST)


class Budget(FlowSet, vectorised=True):
    r"""A number of units to be spread over the arms, each arm up to its cap.

    .. math::

        \mathcal{A} = \Bigl\{a \in \mathbb{Z}^d :
            \; & 0 \le a_i \le \text{caps}_i, \\
            & \sum_{i=1}^d a_i = \text{total}\Bigr\}

    With caps of 1 it is the m-set of the literature, m = ``total``.

    Parameters
    ----------
    total
        The units to be spread.
    caps
        The most units of each arm.
    at_most
        True: :math:`\sum_i a_i \le \text{total}`, some units may be kept back.
    names
        Names of the arms.
    sense
        "min" if units bring losses, "max" if they bring rewards.

    See Also
    --------
    Knapsack : Units have weights.
    Coverage : More units of an arm add less and less.

    Examples
    --------
    >>> ads = Budget(5, caps=[4, 4, 2], names=["news", "search", "radio"], sense="max")
    >>> ads.best([0.3, 0.5, 0.4])
    array([0, 4, 1])
    >>> Budget(2, caps=[1, 1, 1, 1]).argmin([0.4, 0.1, 0.3, 0.2])
    array([0, 1, 0, 1])
    """

    cost = SetCost(SetSize("caps", lambda s: length(s["caps"])), oracle="flow")

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls(5, caps=[4, 4, 2], names=["news", "search", "radio"], sense="max")

    def __init__(
        self,
        total: int,
        caps: ArrayLike,
        at_most: bool = False,
        names: Sequence[str] | None = None,
        sense: str = "min",
    ) -> None:
        self.total = natural_number("total", total, "Give the number of units, 0 or more.")
        self.caps = read_only(whole_numbers("caps", caps))
        self.at_most = true_or_false("at_most", at_most, KEPT_BACK_HINT)
        nothing = self.total == 0 or self.at_most  # is an action
        if self.caps.ndim != 1 or len(self.caps) == 0 or (self.caps.sum() == 0 and not nothing):
            raise InvalidInput(
                "caps",
                "a list with at least one positive number",
                f"{self.caps.tolist()}",
                "Give the largest number of units of each arm.",
            )
        most = EXACT // (len(self.caps) + 1)
        if self.total > most:
            raise InvalidInput("total", f"at most {most} units", self.total, "Use larger units.")
        n = np.minimum(self.caps, self.total)
        if n.sum() < self.total and not self.at_most:
            raise InvalidInput(
                "total",
                f"at most the sum of the caps, {n.sum()}",
                f"{self.total}",
                Hint("Raise the caps, or write {}.", AT_MOST),
            )
        arcs = len(n) + self.at_most  # from one node to another; the last keeps units back
        ends = np.zeros(arcs, dtype=np.int64)
        capacity = np.append(n, self.total)[:arcs]
        graph = Graph(ends, ends + 1, np.array([self.total, -self.total]))
        super().__init__(graph, capacity, np.arange(len(n)), n=n, names=names, sense=sense)

    def __repr__(self) -> str:
        at_most = ", at_most=True" if self.at_most else ""
        return f"Budget({self.total}, caps={self.caps.tolist()}{at_most})"

    @cached_property
    def m(self) -> int:
        """Largest number of different arms in one action."""
        return min(self.total, int((self.n > 0).sum()))

    @cached_property
    def extremes(self) -> Extremes:
        """The least flow of an arc, which the other arcs cannot take, and its capacity."""
        high = self.capacity
        low = np.maximum(self.total - (high.sum() - high), 0)
        room = (high - low).sum()
        share = (self.total - low.sum()) / room if room > 0 else 0.0
        return Extremes(low, high, low + share * (high - low))

    def oracle(self, costs: FloatArray) -> IntArray:
        """Select the cheapest arms."""
        actions = np.empty(costs.shape, np.int64)
        cheapest(costs, self._n, self.total, self.at_most, actions)
        return actions

    def _argmin_by_unit(self, costs: FloatArray) -> IntArray:
        """Select the cheapest units."""
        if self.n.max() <= 1:
            return self._argmin_increasing(costs)
        copies, owner = self._duplicate
        chosen = copies.argmin(costs)
        action = np.zeros((len(costs), self.d), dtype=np.int64)
        collect(np.ascontiguousarray(chosen), owner, action)
        return action

    def contains(self, action: ArrayLike) -> BoolArray:
        """Return whether vectors are integral, within the caps, and have the right sum."""
        a = with_last_axis("action", action, self.d)
        units = a.sum(axis=-1)
        fits = units <= self.total if self.at_most else units == self.total
        inside: BoolArray = whole_box(a, self.n) & fits
        return inside

    def _within(self, most: IntArray, fixed: IntArray) -> tuple[ActionSet, IntArray]:
        """Spread what is not fixed over the other arms."""
        if not self.linear:
            return super()._within(most, fixed)
        units, caps = np.maximum(fixed, 0), np.where(fixed >= 0, 0, most)
        total = self.total - int(units.sum())
        return Budget(total, caps, self.at_most, sense=self.sense), units

    @cached_property
    def _duplicate(self) -> Duplicate:
        """The m-set of the n_i copies of every arm."""
        owner = owners(self.n)
        copies = Budget(self.total, np.ones(len(owner)), self.at_most, sense=self.sense)
        return Duplicate(copies, owner)
