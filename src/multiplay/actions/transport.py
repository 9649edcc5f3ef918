"""Transport plans."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay.actions.base import Duplicate, owners, read_only
from multiplay.actions.flow import FlowSet
from multiplay.checks import EXACT, true_or_false, whole_numbers
from multiplay.errors import InvalidInput
from multiplay.hull import Hull, TransportHull
from multiplay.hull.graph import Graph, bipartite
from multiplay.types import IntArray

Names = Sequence[str] | tuple[Sequence[str], Sequence[str]]


class Transport(FlowSet):
    """A = {a integer, a >= 0 : sum_y a_xy = supply_x, sum_x a_xy = demand_y}.

    Arm (x, y), number ``x * len(demand) + y``, is the lane from supplier x to demander y, and
    a_xy the number of units (trucks, say) sent along it, at most n_xy = min(supply_x, demand_y).

    Parameters
    ----------
    supply, demand
        Whole numbers with equal sums.
    names
        The suppliers' and the demanders' names, as a pair of lists, or one name for each lane.
    capacities
        What each lane can carry, shape (suppliers, demanders): a_xy <= capacities_xy, 0 where there
        is no lane.
    slack
        True: sum_y a_xy <= supply_x and sum_x a_xy >= demand_y.
    sense
        "min" if units bring losses, "max" if they bring rewards.

    Examples
    --------
    >>> plans = Transport(supply=[1, 4, 5], demand=[4, 6])
    >>> plans.d, plans.m, plans.M, len(plans.enumerate())
    (6, 5, 10, 9)
    >>> plans.argmin([0.1, 0.9, 0.5, 0.2, 0.3, 0.4])
    array([1, 0, 0, 4, 3, 2])
    >>> Transport([2], [1, 1], names=(["Lyon"], ["north", "south"])).names
    ('Lyon->north', 'Lyon->south')
    >>> Transport([3, 3], [2, 2], slack=True).argmin([0.1, 0.9, 0.2, 0.8])
    array([2, 0, 0, 2])
    """

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, to try things on."""
        return cls(supply=[1, 4, 5], demand=[4, 6])

    def __init__(
        self,
        supply: ArrayLike,
        demand: ArrayLike,
        names: Names | None = None,
        capacities: ArrayLike | None = None,
        slack: bool = False,
        sense: str = "min",
    ) -> None:
        self.supply, self.demand = _side("supply", supply), _side("demand", demand)
        hint = "Write slack=True if supply may be left over."
        self.slack = slack = true_or_false("slack", slack, hint)
        spare = int(self.supply.sum() - self.demand.sum())
        if spare < 0 or (spare > 0 and not slack):
            raise InvalidInput(
                "supply, demand",
                "a supply of at least the demand" if slack else "equal sums",
                f"{self.supply.sum()} supplied and {self.demand.sum()} demanded",
                "Raise the supply."
                if spare < 0 and slack
                else "Write slack=True, or add a supplier or a demander for the difference.",
            )
        lanes = np.minimum.outer(self.supply, self.demand + spare)
        self.capacities = None if capacities is None else _capacities(capacities, lanes.shape)
        if self.capacities is not None:
            lanes = np.minimum(lanes, self.capacities)
        capacity, graph = lanes.ravel(), bipartite(self.supply, self.demand)
        arms = np.arange(lanes.size)
        if spare > 0:
            graph, leftover = _with_spare(graph, self.supply, spare)
            capacity = np.concatenate([capacity, leftover])
        super().__init__(
            graph,
            capacity,
            arms,
            n=lanes.ravel() if capacities is None else None,
            names=lane_names(names, *lanes.shape),
            sense=sense,
        )

    def __repr__(self) -> str:
        loose = ", capacities=..." if self.capacities is not None else ""
        loose += ", slack=True" if self.slack else ""
        return f"Transport(supply={self.supply.tolist()}, demand={self.demand.tolist()}{loose})"

    @property
    def _plain(self) -> bool:
        return self.capacities is None and self._all_arcs_are_arms

    @cached_property
    def _duplicate(self) -> Duplicate:
        """Each unit of supply becomes a supplier of one unit: supply_x copies of lane (x, y).

        Where lanes have capacities these would bind the copies together: there each lane becomes
        n_xy parallel arcs.
        """
        if self.capacities is not None:
            return super()._duplicate
        owners(np.repeat(self.supply, len(self.demand)))  # refuses too many
        supplier = owners(self.supply)
        lanes = np.arange(self.d).reshape(len(self.supply), len(self.demand))
        copies = Transport(np.ones(len(supplier)), self.demand, slack=self.slack, sense=self.sense)
        return Duplicate(copies, lanes[supplier].ravel())

    @cached_property
    def hull(self) -> Hull:
        """Return the transport polytope."""
        return TransportHull(self.supply, self.demand) if self._plain else super().hull


def _with_spare(graph: Graph, supply: IntArray, spare: int) -> tuple[Graph, IntArray]:
    """Join every node to a new one that takes what is left over; return the new capacities too."""
    nodes = np.arange(len(graph.balance))
    tail = np.concatenate([graph.tail, nodes])
    head = np.concatenate([graph.head, np.full(len(nodes), len(nodes))])
    leftover = np.full(len(nodes), spare)
    leftover[: len(supply)] = np.minimum(supply, spare)
    return Graph(tail, head, np.append(graph.balance, -spare)), leftover


def _side(argument: str, values: ArrayLike) -> IntArray:
    side = whole_numbers(argument, values)
    if side.ndim != 1 or len(side) == 0 or side.sum() == 0:
        raise InvalidInput(
            argument,
            "a list with at least one positive number",
            f"{side.tolist()}",
            "Give at least one unit.",
        )
    if side.sum() > EXACT:
        raise InvalidInput(argument, "a sum of at most 2^53", f"{side.sum()}", "Use larger units.")
    return read_only(side)


def _capacities(capacities: ArrayLike, shape: tuple[int, ...]) -> IntArray:
    lanes = whole_numbers("capacities", capacities)
    if lanes.shape != shape:
        raise InvalidInput(
            "capacities", f"shape {shape}", f"shape {lanes.shape}", "Give one for each lane."
        )
    return read_only(lanes)


def lane_names(names: Names | None, suppliers: int, demanders: int) -> Sequence[Any]:
    """Return a name for each lane, from those of both sides or as they are given."""
    if names is None:
        names = (
            [f"s{x + 1}" for x in range(suppliers)],
            [f"d{y + 1}" for y in range(demanders)],
        )
    if len(names) == 2 and not isinstance(names[0], str) and not isinstance(names[1], str):
        sources, targets = names
        if len(sources) != suppliers or len(targets) != demanders:
            raise InvalidInput(
                "names",
                f"{suppliers} suppliers' and {demanders} demanders' names",
                f"{len(sources)} and {len(targets)}",
                "Give one name for each.",
            )
        return [f"{source}->{target}" for source in sources for target in targets]
    return names
