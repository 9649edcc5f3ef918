"""Spanning trees and matchings: sets of 0/1 vectors on undirected graphs."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import with_last_axis
from multiplay.actions.base import ActionSet, whole_box
from multiplay.actions.costs import SetCost, SetSize, length
from multiplay.actions.network import Arcs, Node
from multiplay.actions.oracle import OracleSet
from multiplay.errors import InvalidInput
from multiplay.kernels import trees
from multiplay.types import BoolArray, FloatArray, IntArray


class SpanningTree(ActionSet, vectorised=True):
    r"""Sets of edges that join all nodes of a graph without a cycle, as 0/1 vectors.

    .. math::

        \mathcal{A} = \{a \in \{0, 1\}^d : \{e : a_e = 1\} \text{ is a spanning tree}\}

    Parameters
    ----------
    edges
        Pairs of nodes, in any order; a node is a text or an integer.
    names
        Names of the edges.
    sense
        "min" if edges bring losses, "max" if they bring rewards.

    Examples
    --------
    >>> cables = SpanningTree([("a", "b"), ("b", "c"), ("a", "c")])
    >>> cables.argmin([0.3, 0.2, 0.1])
    array([0, 1, 1])
    """

    cost = SetCost(SetSize("edges", lambda s: length(s["edges"])), oracle="polynomial")
    quick_oracle = True

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls([("a", "b"), ("b", "c"), ("a", "c")])

    def __init__(
        self,
        edges: Sequence[tuple[Node, Node]],
        names: Sequence[str] | None = None,
        sense: str = "min",
    ) -> None:
        labelled = Arcs("edges", edges)
        self.edges = labelled.pairs
        self._graph = labelled.tail, labelled.head, len(labelled.number)
        apart = np.flatnonzero(trees.components(*self._graph))
        if len(apart):
            one, other = next(iter(labelled.number)), list(labelled.number)[apart[0]]
            raise InvalidInput(
                "edges",
                "a connected graph",
                f"no path from {one!r} to {other!r}",
                "Add an edge between the parts.",
            )
        self.n = np.ones(len(self.edges), dtype=np.int64)
        self._limits = np.zeros(len(self.edges))  # -inf for edges of every tree, inf for no tree's
        super().__init__(labelled.names("-") if names is None else names, sense)

    def __repr__(self) -> str:
        return f"SpanningTree({self.d} edges)"

    def oracle(self, costs: FloatArray) -> IntArray:
        """Run Kruskal's algorithm: the cheapest edges that close no cycle."""
        actions = np.empty(costs.shape, dtype=np.int64)
        trees.spanning_trees(*self._graph, costs + self._limits, actions)
        return actions

    def contains(self, action: ArrayLike) -> BoolArray:
        """Return whether vectors are 0/1, and their edges a spanning tree."""
        a = with_last_axis("action", action, self.d)
        inside = np.atleast_1d(whole_box(a, self.n)).ravel()
        rows, answer = a.reshape(-1, self.d).astype(np.int64), np.empty_like(inside)
        trees.are_spanning_trees(*self._graph, rows, answer)
        inside &= (rows[:, self._limits == -np.inf] == 1).all(axis=1)
        joined: BoolArray = (inside & answer).reshape(a.shape[:-1])
        return joined

    def _within(self, most: IntArray, fixed: IntArray) -> tuple[ActionSet, IntArray]:
        """Take fixed edges first and closed ones last: both fit if some tree has them so."""
        others, nothing = self._fresh(), np.zeros(self.d, dtype=np.int64)
        inside, outside = fixed == 1, (fixed == 0) | (most == 0)
        others._limits = np.select([inside, outside], [-np.inf, np.inf])
        tree = others.oracle(np.zeros((1, self.d)))[0]
        if (tree[inside] == 0).any() or (tree[outside] == 1).any():
            raise InvalidInput("edges", "a tree within the limits", "none", "Close fewer edges.")
        others.n = others.oracle(-np.eye(self.d)).diagonal()
        return others, nothing


class Matching(OracleSet, vectorised=True):
    r"""Sets of edges of a bipartite graph, no two of which share a node, as 0/1 vectors.

    .. math::

        \mathcal{A} = \Bigl\{a \in \{0, 1\}^d : \sum_{e \text{ at } v} a_e \le 1
            \text{ at every node } v\Bigr\}

    Parameters
    ----------
    edges
        Pairs (left, right) of nodes; a node is a text or an integer, and on one side only.
    names
        Names of the edges.
    sense
        "max", the default, if edges bring rewards; "min" if they bring losses.

    See Also
    --------
    Assignment : All pairs can be made, and as many as can be are.

    Examples
    --------
    >>> dates = Matching([("Ann", "noon"), ("Ann", "night"), ("Bob", "noon")])
    >>> dates.best([0.9, 0.5, 0.6])
    array([0, 1, 1])
    """

    cost = SetCost(SetSize("edges", lambda s: length(s["edges"])), oracle="polynomial")

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls([("Ann", "noon"), ("Ann", "night"), ("Bob", "noon")])

    def __init__(
        self,
        edges: Sequence[tuple[Node, Node]],
        names: Sequence[str] | None = None,
        sense: str = "max",
    ) -> None:
        labelled = Arcs("edges", edges)
        self.edges = labelled.pairs
        both = np.intersect1d(labelled.tail, labelled.head)
        if len(both):
            node = list(labelled.number)[both[0]]
            raise InvalidInput(
                "edges",
                "pairs (left, right), with different nodes left and right",
                f"{node!r} on both sides",
                "Rename one of the two.",
            )
        _, self._left = np.unique(labelled.tail, return_inverse=True)
        _, self._right = np.unique(labelled.head, return_inverse=True)
        self._shape = self._left.max() + 1, self._right.max() + 1
        names = labelled.names("-") if names is None else names
        super().__init__(len(self.edges), n=np.ones(len(self.edges)), names=names, sense=sense)

    def __repr__(self) -> str:
        return f"Matching({self.d} edges)"

    def solve(self, costs: FloatArray) -> IntArray:
        """Solve an assignment problem in which a pair that does not pay costs nothing."""
        from scipy.optimize import linear_sum_assignment

        table, edge = np.zeros(self._shape), np.full(self._shape, -1)
        for e in np.argsort(-costs, kind="stable"):  # of parallel edges, the cheapest comes last
            if costs[e] < 0 and self.n[e] > 0:
                table[self._left[e], self._right[e]] = costs[e]
                edge[self._left[e], self._right[e]] = e
        chosen = edge[linear_sum_assignment(table)]
        action = np.zeros(self.d, dtype=np.int64)
        action[chosen[chosen >= 0]] = 1
        return action

    def contains(self, action: ArrayLike) -> BoolArray:
        """Return whether vectors are 0/1 and use every node at most once."""
        a = with_last_axis("action", action, self.d)
        left, right = np.eye(self._shape[0])[self._left], np.eye(self._shape[1])[self._right]
        inside: BoolArray = (
            whole_box(a, self.n) & (a @ left <= 1).all(axis=-1) & (a @ right <= 1).all(axis=-1)
        )
        return inside

    def _within(self, most: IntArray, fixed: IntArray) -> tuple[ActionSet, IntArray]:
        """Close the edges that meet a fixed one."""
        units, others = np.maximum(fixed, 0), self._fresh()
        if not self.contains(units):
            raise InvalidInput("edges", "a matching", "edges that share a node", "Fix fewer edges.")
        kept = units == 1
        met = np.isin(self._left, self._left[kept]) | np.isin(self._right, self._right[kept])
        others.n = np.where(met | (fixed == 0) | (most == 0), 0, 1)
        others._memory, others._seen = {}, set()
        return others, units
