"""Integer flows on any directed graph."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import EXACT, is_integer, is_list, whole_numbers
from multiplay.actions.arcs import Arcs, Node
from multiplay.actions.costs import SetCost, SetSize, length
from multiplay.actions.flow import FlowSet
from multiplay.errors import InvalidInput
from multiplay.hull.graph import Graph
from multiplay.kernels.network_simplex import UNLIMITED
from multiplay.types import IntArray


class Network(FlowSet):
    r"""Flows of whole units on any directed graph, from nodes with supplies to nodes with demands.

    .. math::

        \mathcal{A} = \Bigl\{
            & a \in \mathbb{Z}^d : 0 \le a_e \le \text{capacity}_e, \\
            & \sum_{e \text{ out of } v} a_e - \sum_{e \text{ into } v} a_e = \text{supply}_v
            \text{ at every node } v\Bigr\}

    Arm e is arc e of the graph, and :math:`a_e` the units that go along it. Arcs may be declared
    free: they carry flow, which counts in the sums, but cost nothing and are no arms.

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
        What people call the arcs that are arms.
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
        """Return a small instance, to try things on."""
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
        self.capacities = [None if c == UNLIMITED else int(c) for c in capacity]
        self.free = _free(free, len(self.arcs))
        arms = np.setdiff1d(np.arange(len(self.arcs)), self.free)
        all_names = labelled.names("->")
        super().__init__(
            Graph(labelled.tail, labelled.head, balance),
            capacity,
            arms,
            names=[all_names[arm] for arm in arms] if names is None else names,
            sense=sense,
        )

    def __repr__(self) -> str:
        return f"Network({len(self.arcs)} arcs, {len(self.supplies)} nodes)"


def _balance(supplies: Any, arcs: Arcs) -> IntArray:
    entries = supplies.items() if isinstance(supplies, Mapping) else supplies
    balance = np.zeros(len(arcs.number), dtype=np.int64)
    if not isinstance(supplies, Mapping) and not is_list(supplies):
        raise InvalidInput(
            "supplies", "a dict by node", repr(supplies), "Write {'mine': 4, 'port': -4}, say."
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
            "Add a node that takes up the difference, joined by free arcs.",
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
            "Give one capacity for each arc, with None for no limit.",
        )
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
