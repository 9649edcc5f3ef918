"""Flows and paths on directed graphs, whose arcs are pairs of named nodes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from multiplay._support.checks import EXACT, is_integer, is_list, natural_number, whole_numbers
from multiplay._support.hints import Hint, Term
from multiplay.actions.costs import SetCost, SetSize, length
from multiplay.actions.flow import FlowSet
from multiplay.errors import InvalidInput
from multiplay.hull.graph import Graph
from multiplay.kernels import paths
from multiplay.kernels.network_simplex import UNLIMITED
from multiplay.types import BoolArray, FloatArray, IntArray

Node: TypeAlias = str | int
SPREAD = 4  # numbers of nodes, for each of them, in a list that is indexed by them


class Arcs:
    """Pairs of nodes from user input, ``[("Lyon", "Paris"), ...]``, with numbers for the nodes."""

    pairs: list[tuple[Node, Node]]
    number: dict[Node, int]

    def __init__(self, argument: str, pairs: Any) -> None:
        if isinstance(pairs, np.ndarray) and _are_numbers(pairs):
            self._take_numbers(pairs)
            return
        self.pairs = [_pair(argument, pair) for pair in (pairs if is_list(pairs) else [pairs])]
        if not self.pairs:
            raise InvalidInput(
                argument,
                "at least one pair of nodes",
                "none",
                "Give at least one pair, as in [('Lyon', 'Paris')].",
            )
        self.number = {}
        for pair in self.pairs:
            for node in pair:
                self.number.setdefault(node, len(self.number))
        self.tail = np.array([self.number[tail] for tail, _ in self.pairs])
        self.head = np.array([self.number[head] for _, head in self.pairs])

    def _take_numbers(self, pairs: IntArray) -> None:
        """Number the nodes in the order in which they come, all at once."""
        flat = pairs.ravel()
        if int(flat.max()) - int(flat.min()) < SPREAD * flat.size:  # numbered without sorting
            place = np.full(int(flat.max()) - int(flat.min()) + 1, flat.size)
            node_of = flat - flat.min()
            np.minimum.at(place, node_of, np.arange(flat.size))
        else:
            _, place, node_of = np.unique(flat, return_index=True, return_inverse=True)
        order = np.argsort(place, kind="stable")[: int((place < flat.size).sum())]
        rank = np.empty(len(place), dtype=np.int64)
        rank[order] = np.arange(len(order))
        self.pairs = list(map(tuple, pairs.tolist()))
        self.number = {node: i for i, node in enumerate(flat[place[order]].tolist())}
        ends = rank[node_of.reshape(pairs.shape)]
        self.tail, self.head = ends[:, 0].copy(), ends[:, 1].copy()

    def names(self, between: str) -> list[str]:
        """Return "tail->head" for every pair, numbered where one pair comes twice."""
        names = [f"{tail}{between}{head}" for tail, head in self.pairs]
        seen = {name: 0 for name, count in Counter(names).items() if count > 1}
        for i, name in enumerate(names if seen else ()):
            if name in seen:
                seen[name] += 1
                names[i] = name if seen[name] == 1 else f"{name} ({seen[name]})"
        return names

    def node(self, argument: str, label: Any) -> int:
        """Return the number of a node, or raise ``InvalidInput`` if no arc touches it."""
        if (isinstance(label, str) or is_integer(label)) and label in self.number:
            return self.number[label]
        known = ", ".join(map(repr, list(self.number)[:5]))
        raise InvalidInput(
            argument,
            f"a node of the graph, such as {known}",
            repr(label),
            "Add an arc that touches this node.",
        )


class Network(FlowSet):
    r"""Flows of whole units on any directed graph, from nodes with supplies to nodes with demands.

    .. math::

        \mathcal{A} = \Bigl\{
            & a \in \mathbb{Z}^d : 0 \le a_e \le \text{capacity}_e, \\
            & \sum_{e \text{ out of } v} a_e - \sum_{e \text{ into } v} a_e = \text{supply}_v
            \text{ at every node } v\Bigr\}

    Arm e is arc e of the graph, and :math:`a_e` the units that go along it. Arcs may be declared
    free: they carry flow, which counts in the sums, but cost nothing and are no arms. A node with a
    demand keeps exactly that many units; what else reaches it travels on.

    Parameters
    ----------
    arcs
        Pairs (tail, head) of nodes; a node is a text or an integer. Parallel arcs are welcome. For
        many arcs, an array of integers with two columns is fastest.
    supplies
        What each node supplies, by node, as a dict or as pairs; negative where units are demanded,
        and 0 where nothing is said. They sum to zero.
    capacities
        One for each arc, None for an arc without a limit; no limits at all if not given.
    names
        Names of the arcs that are arms.
    free
        The numbers of the arcs that are no arms.
    sense
        "min" if units bring losses, "max" if they bring rewards.

    See Also
    --------
    Transport : Every supplier has a lane to every demander.
    Path : A graph without cycles, one source and one target.

    Examples
    --------
    >>> roads = Network(
    ...     arcs=[("mine", "port"), ("mine", "mill"), ("mill", "port")],
    ...     supplies={"mine": 4, "port": -4},
    ...     capacities=[3, 2, None],
    ... )
    >>> roads.n, len(roads.enumerate())
    (array([3, 2, 2]), 2)
    >>> dict(zip(roads.names, roads.argmin([0.9, 0.1, 0.2]).tolist()))
    {'mine->port': 2, 'mine->mill': 2, 'mill->port': 2}
    """

    cost = SetCost(SetSize("arcs", lambda s: length(s["arcs"])), oracle="flow")

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls(
            [("Lyon", "hub"), ("hub", "Nice"), ("Lyon", "Nice")], {"Lyon": 3, "Nice": -3}, [2, 2, 3]
        )

    def __init__(
        self,
        arcs: Sequence[tuple[Node, Node]] | IntArray,
        supplies: Mapping[Any, int] | Sequence[tuple[Node, int]],
        capacities: Sequence[int | None] | ArrayLike | None = None,
        names: Sequence[str] | None = None,
        free: Sequence[int] = (),
        sense: str = "min",
    ) -> None:
        labelled = Arcs("arcs", arcs)
        self.arcs = labelled.pairs
        balance = _balance(supplies, labelled)
        self.supplies = [(node, int(balance[number])) for node, number in labelled.number.items()]
        capacity = _capacity(capacities, len(self.arcs))
        self.capacities = [None if c == UNLIMITED else c for c in capacity.tolist()]
        self.free = _free(free, len(self.arcs))
        arms: IntArray = np.delete(np.arange(len(self.arcs)), self.free)
        all_names = labelled.names("->") if names is None else []
        super().__init__(
            Graph(labelled.tail, labelled.head, balance),
            capacity,
            arms,
            names=[all_names[arm] for arm in arms] if names is None else names,
            sense=sense,
        )

    def __repr__(self) -> str:
        return f"Network({len(self.arcs)} arcs, {len(self.supplies)} nodes)"


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
        Names of the arcs.
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
        """Return a small instance, for examples."""
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
        """Return for every arc whether some path from source to target uses it."""
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

    def _any_flow(self) -> IntArray:
        flow: IntArray = self._flows(np.zeros((1, len(self.capacity))))[0]
        return flow


def _balance(supplies: Any, arcs: Arcs) -> IntArray:
    entries = supplies.items() if isinstance(supplies, Mapping) else supplies
    balance = np.zeros(len(arcs.number), dtype=np.int64)
    if not isinstance(supplies, Mapping) and not is_list(supplies):
        raise InvalidInput(
            "supplies",
            "a dict by node",
            repr(supplies),
            "Use {'mine': 4, 'port': -4}, for example.",
        )
    for entry in entries:
        if not is_list(entry) or len(entry) != 2:
            raise InvalidInput(
                "supplies",
                "a dict by node, or pairs",
                repr(entry),
                "Give a supply for each node, as in {'mine': 4, 'port': -4}.",
            )
        node, supply = entry
        if not is_integer(supply) or abs(supply) > EXACT:
            raise InvalidInput(
                f"supplies of {node!r}",
                "an integer",
                repr(supply),
                "Give a whole number; demands are negative numbers.",
            )
        balance[arcs.node("supplies", node)] += supply
    if balance.sum() != 0:
        raise InvalidInput(
            "supplies",
            "a sum of zero, demands being negative",
            f"{balance.sum()}",
            "Add a node for the difference. If supply may be left over, join it by free arcs from "
            "the suppliers only: demands then stay exact.",
        )
    return balance


def _capacity(capacities: Any, arcs: int) -> IntArray:
    if capacities is None:
        return np.full(arcs, UNLIMITED)
    if not is_list(capacities) or len(capacities) != arcs:
        got = f"{len(capacities)}" if is_list(capacities) else repr(capacities)
        raise InvalidInput(
            "capacities",
            f"a list of {arcs}, one for each arc",
            got,
            Hint(
                "Give one capacity for each arc, with {} for no limit.", Term("None", "no capacity")
            ),
        )
    if (
        isinstance(capacities, np.ndarray)
        and capacities.ndim == 1
        and capacities.dtype.kind in "iu"
    ):
        return whole_numbers("capacities", capacities)
    limits = [EXACT if capacity is None else capacity for capacity in capacities]
    without = [capacity is None for capacity in capacities]
    return np.where(without, UNLIMITED, whole_numbers("capacities", limits))


def _free(free: Any, arcs: int) -> list[int]:
    if not is_list(free) or not all(is_integer(arc) and 0 <= arc < arcs for arc in free):
        expected = f"numbers of arcs, from 0 to {arcs - 1}"
        raise InvalidInput("free", expected, repr(free), "Leave it out if all arcs are arms.")
    if len(set(free)) == arcs:
        raise InvalidInput(
            "free", "at least one arc that is an arm", "none", "Leave at least one arc out of free."
        )
    return sorted({int(arc) for arc in free})


def _are_numbers(pairs: NDArray[Any]) -> bool:
    """Return whether an array has a pair of two different integers in every row."""
    rows = pairs.ndim == 2 and pairs.shape[1] == 2 and len(pairs) > 0
    return rows and pairs.dtype.kind in "iu" and bool((pairs[:, 0] != pairs[:, 1]).all())


def _pair(argument: str, pair: Any) -> tuple[Node, Node]:
    ends = pair.tolist() if isinstance(pair, np.ndarray) else pair
    named = is_list(ends) and all(isinstance(end, str) or is_integer(end) for end in ends)
    if not named or len(ends) != 2 or ends[0] == ends[1]:
        raise InvalidInput(
            argument,
            "pairs of two different nodes, each a text or an integer",
            repr(pair),
            "Write [('Lyon', 'Paris'), ...].",
        )
    tail, head = (end if isinstance(end, str) else int(end) for end in ends)
    return tail, head
