"""Assignments: a perfect matching of two sides of the same size."""

from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import positive_integer, with_last_axis
from multiplay.actions.base import whole_box
from multiplay.actions.costs import SetCost, SetSize, positive
from multiplay.actions.flow import FlowSet
from multiplay.actions.transport import Names, lane_names
from multiplay.hull import Hull, TransportHull
from multiplay.hull.graph import Graph, bipartite
from multiplay.kernels.assignment import best_assignments
from multiplay.types import BoolArray, FloatArray, IntArray


class Assignment(FlowSet, vectorised=True):
    r"""Pairs of a row and a column: as many as possible, no row and no column twice.

    .. math::

        \mathcal{A} = \Bigl\{
            & a \in \{0, 1\}^{\text{rows} \times \text{cols}} : \\
            & \sum_y a_{xy} \le 1, \; \sum_x a_{xy} \le 1, \\
            & \sum_{x, y} a_{xy} = \min(\text{rows}, \text{cols})\Bigr\}

    Arm (x, y), number ``x * cols + y``, gives y to x. If there are as many rows as columns,
    everyone gets exactly one; if not, everyone on the shorter side does.

    Parameters
    ----------
    rows, cols
        How many there are on both sides; as many columns as rows if ``cols`` is not given.
    names
        The names of the rows and the columns, as a pair of lists, or one name for each pair.
    sense
        "min" if pairs bring losses, "max" if they bring rewards.

    See Also
    --------
    Transport : Several units for everyone.
    Matching : Only some pairs can be made.

    Examples
    --------
    >>> Assignment(2).argmin([0.1, 0.9, 0.3, 0.8])
    array([1, 0, 0, 1])
    >>> nurses = Assignment(2, 3, names=(["Ann", "Bob"], ["day", "late", "night"]))
    >>> len(nurses.enumerate()), nurses.m
    (6, 2)
    """

    cost = SetCost(
        SetSize("rows, cols", lambda s: positive(s["rows"]) * positive(s.get("cols") or s["rows"])),
        oracle="flow",
    )
    arm_word = "lane"

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls(2, 3, names=(["Ann", "Bob"], ["day", "late", "night"]))

    def __init__(
        self, rows: int, cols: int | None = None, names: Names | None = None, sense: str = "min"
    ) -> None:
        self.rows = positive_integer("rows", rows, "Give a positive integer.")
        hint = "Leave it out if there are as many as rows."
        self.cols = self.rows if cols is None else positive_integer("cols", cols, hint)
        d, shorter = self.rows * self.cols, min(self.rows, self.cols)
        ones = np.ones(d, dtype=np.int64)
        capacity = np.ones(d + (0 if self.rows == self.cols else max(self.rows, self.cols)))
        super().__init__(
            self._network(shorter),
            capacity.astype(np.int64),
            np.arange(d),
            n=ones,
            names=lane_names(names, self.rows, self.cols),
            sense=sense,
        )

    def _network(self, shorter: int) -> Graph:
        """Return an arc for every pair; free arcs join the longer side to one more node."""
        left, right = np.ones(self.rows, dtype=np.int64), np.ones(self.cols, dtype=np.int64)
        graph = bipartite(left, right)
        if self.rows == self.cols:
            return graph
        nodes, beyond = np.arange(self.rows + self.cols), self.rows + self.cols
        if self.rows < self.cols:
            many = nodes[self.rows :]
            tail, head = many, np.full(len(many), beyond)
        else:
            many = nodes[: self.rows]
            tail, head = np.full(len(many), beyond), many
        balance = np.append(graph.balance, 0)
        balance[many] = 0
        balance[beyond] = shorter if self.rows > self.cols else -shorter
        return Graph(
            np.concatenate([graph.tail, tail]), np.concatenate([graph.head, head]), balance
        )

    def __repr__(self) -> str:
        return f"Assignment({self.rows}, {self.cols})"

    @cached_property
    def m(self) -> int:
        """Number of pairs in every assignment."""
        return min(self.rows, self.cols)

    def oracle(self, costs: FloatArray) -> IntArray:
        """Find shortest augmenting paths."""
        actions = np.empty(costs.shape, dtype=np.int64)
        best_assignments(self.rows, self.cols, costs, actions)
        return actions

    def contains(self, action: ArrayLike) -> BoolArray:
        """Return whether vectors are 0/1, with no row or column twice and enough pairs."""
        a = with_last_axis("action", action, self.d)
        table = a.reshape(*a.shape[:-1], self.rows, self.cols)
        inside: BoolArray = (
            whole_box(a, self.n)
            & (table.sum(axis=-1) <= 1).all(axis=-1)
            & (table.sum(axis=-2) <= 1).all(axis=-1)
            & (a.sum(axis=-1) == self.m)
        )
        return inside

    @cached_property
    def hull(self) -> Hull:
        """The Birkhoff polytope, or its rectangular form."""
        if self.rows != self.cols:
            return super().hull
        ones = np.ones(self.rows, dtype=np.int64)
        return TransportHull(ones, ones)
