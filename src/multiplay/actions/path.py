"""Paths in a directed acyclic graph."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from multiplay._support.checks import natural_number
from multiplay.actions.arcs import Arcs, Node
from multiplay.actions.costs import SetCost, SetSize, length
from multiplay.actions.flow import FlowSet
from multiplay.errors import InvalidInput
from multiplay.hull.graph import Graph
from multiplay.kernels import paths
from multiplay.types import BoolArray, FloatArray, IntArray


class Path(FlowSet):
    r"""Units that travel from a source to a target in a directed acyclic graph; one unit is a path.

    .. math::

        \mathcal{A} = \Bigl\{a \in \mathbb{Z}_{\ge 0}^d :
            \sum_{e \text{ out of } v} a_e - \sum_{e \text{ into } v} a_e = b_v
            \text{ at every node } v\Bigr\},

    where :math:`b_v` is ``units`` at the source, ``-units`` at the target, and 0 elsewhere.

    Arm e is arc e of the graph, and :math:`a_e` the units that travel along it.

    Parameters
    ----------
    arcs
        Pairs (tail, head) of nodes; a node is a text or an integer. Parallel arcs are welcome.
    source, target
        Where the units start, and where they go.
    units
        How many there are.
    names
        What people call the arcs.
    sense
        "min" if arcs bring losses (the shortest path is the best), "max" if they bring rewards.

    See Also
    --------
    Network : Graphs with cycles or capacities, and several sources.

    Examples
    --------
    >>> routes = Path([("s", "a"), ("s", "b"), ("a", "t"), ("b", "t"), ("a", "b")], "s", "t")
    >>> routes.argmin([0.1, 0.5, 0.9, 0.2, 0.3])
    array([1, 0, 0, 1, 1])
    >>> len(routes.enumerate()), routes.M
    (3, 3)
    """

    cost = SetCost(SetSize("arcs", lambda s: length(s["arcs"])), oracle="flow")

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, to try things on."""
        return cls([("s", "a"), ("s", "b"), ("a", "t"), ("b", "t"), ("a", "b")], "s", "t")

    def __init__(
        self,
        arcs: Sequence[tuple[Node, Node]],
        source: Node,
        target: Node,
        units: int = 1,
        names: Sequence[str] | None = None,
        sense: str = "min",
    ) -> None:
        labelled = Arcs("arcs", arcs)
        self.arcs, self.source, self.target = labelled.pairs, source, target
        self.units = natural_number("units", units, "Give the number of units, 0 or more.")
        self._ends = labelled.node("source", source), labelled.node("target", target)
        order, cycle = paths.topological_order(labelled.tail, labelled.head, len(labelled.number))
        if cycle:
            nodes = [list(labelled.number)[node] for node in [*cycle, cycle[0]]]
            raise InvalidInput(
                "arcs",
                "a graph without cycles",
                " -> ".join(map(repr, nodes)),
                "Take an arc out, or use a Network, whose capacities keep cycles finite.",
            )
        self._in_order = paths.arcs_in_order(labelled.tail, order)
        balance = np.zeros(len(labelled.number), dtype=np.int64)
        balance[self._ends[0]] += self.units
        balance[self._ends[1]] -= self.units
        graph = Graph(labelled.tail, labelled.head, balance)
        on_a_path = self._on_a_path(graph)
        if not on_a_path.any():
            raise InvalidInput(
                "source, target",
                "two nodes with a path from one to the other",
                f"{source!r} and {target!r}",
                "Give arcs as pairs (tail, head), in the direction of travel.",
            )
        capacity = np.full(len(self.arcs), self.units)
        super().__init__(
            graph,
            capacity,
            n=np.where(on_a_path, self.units, 0),
            names=labelled.names("->") if names is None else names,
            sense=sense,
        )

    def __repr__(self) -> str:
        return f"Path({len(self.arcs)} arcs, {self.source!r} to {self.target!r}, {self.units})"

    def _on_a_path(self, graph: Graph) -> BoolArray:
        """Say for every arc whether some path from source to target uses it."""
        ahead, behind = np.zeros((2, len(graph.balance)), dtype=bool)
        ahead[self._ends[0]], behind[self._ends[1]] = True, True
        for arc in self._in_order:
            ahead[graph.head[arc]] |= ahead[graph.tail[arc]]
        for arc in self._in_order[::-1]:
            behind[graph.tail[arc]] |= behind[graph.head[arc]]
        on_a_path: BoolArray = ahead[graph.tail] & behind[graph.head]
        return on_a_path

    def oracle(self, costs: FloatArray) -> IntArray:
        """Find shortest paths, in topological order: without capacities, all units take one."""
        actions, graph = np.empty(costs.shape, dtype=np.int64), self.graph
        arcs, nodes = (graph.tail, graph.head, self._in_order), len(graph.balance)
        paths.shortest_paths(*arcs, *self._ends, nodes, self.units, costs, actions)
        return actions

    def _flows(self, costs: FloatArray) -> IntArray:
        return self.oracle(costs)
