"""Transport plans."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multiplay.actions.base import ActionSet, Duplicate, too_many
from multiplay.actions.flow import MinimumCostFlow
from multiplay.arrays import (
    EXACT,
    BoolArray,
    FloatArray,
    IntArray,
    whole_numbers,
    with_last_axis,
)
from multiplay.errors import InvalidInput
from multiplay.graph import Graph, bipartite
from multiplay.hull import TransportHull

Names = Sequence[str] | tuple[Sequence[str], Sequence[str]]


class Transport(ActionSet):
    """A = {a integer, a >= 0 : sum_y a_xy = supply_x, sum_x a_xy = demand_y}.

    Arm (x, y), number ``x * len(demand) + y``, is the lane from supplier x to demander y, and
    a_xy the number of units (trucks, say) sent along it, at most n_xy = min(supply_x, demand_y).

    Parameters
    ----------
    supply, demand
        Whole numbers with equal sums.
    names
        The suppliers' and the demanders' names, as a pair of lists, or one name for each lane.

    Examples
    --------
    >>> plans = Transport(supply=[1, 4, 5], demand=[4, 6])
    >>> plans.d, plans.m, plans.M, len(plans.enumerate())
    (6, 5, 10, 9)
    >>> plans.argmin([0.1, 0.9, 0.5, 0.2, 0.3, 0.4])
    array([1, 0, 0, 4, 3, 2])
    >>> Transport([2], [1, 1], names=(["Lyon"], ["north", "south"])).names
    ('Lyon->north', 'Lyon->south')
    """

    def __init__(self, supply: ArrayLike, demand: ArrayLike, names: Names | None = None) -> None:
        self.supply, self.demand = _side("supply", supply), _side("demand", demand)
        if self.supply.sum() != self.demand.sum():
            raise InvalidInput(
                "supply, demand",
                "equal sums",
                f"{self.supply.sum()} supplied and {self.demand.sum()} demanded",
                "Add a supplier or a demander that takes up the difference.",
            )
        self.n = np.minimum.outer(self.supply, self.demand).ravel()
        super().__init__(_lane_names(names, len(self.supply), len(self.demand)))

    def __repr__(self) -> str:
        return f"Transport(supply={self.supply.tolist()}, demand={self.demand.tolist()})"

    @property
    def M(self) -> int:  # noqa: N802
        """Number of units in every plan."""
        return int(self.supply.sum())

    @cached_property
    def m(self) -> int:
        """Largest number of lanes in one plan.

        Every lane is split in two, one for its first unit, which earns 1, and one for the rest:
        the best integer flow uses as many lanes as can be.
        """
        graph, lanes = bipartite(self.supply, self.demand), self.n
        twice = Graph(np.tile(graph.tail, 2), np.tile(graph.head, 2), graph.balance)
        flow = MinimumCostFlow(twice, np.concatenate([np.minimum(lanes, 1), lanes]))
        return int(flow(np.repeat([[-1.0, 0.0]], self.d, axis=1))[0, : self.d].sum())

    @cached_property
    def _flow(self) -> MinimumCostFlow:
        return MinimumCostFlow(bipartite(self.supply, self.demand), self.n)

    def oracle(self, costs: FloatArray) -> IntArray:
        """Network simplex."""
        return self._flow(costs)

    def contains(self, action: ArrayLike) -> BoolArray:
        """Say whether vectors are non-negative, integral and have the right margins."""
        a = with_last_axis("action", action, self.d)
        plan = a.reshape(*a.shape[:-1], len(self.supply), len(self.demand))
        inside: BoolArray = (
            ((a >= 0) & (a == np.floor(a))).all(axis=-1)
            & (plan.sum(axis=-1) == self.supply).all(axis=-1)
            & (plan.sum(axis=-2) == self.demand).all(axis=-1)
        )
        return inside

    def enumerate(self, limit: int = 100_000) -> IntArray:
        """Return all plans, lane by lane: each partial plan is extended by what still fits."""
        plans = np.zeros((1, 0), dtype=np.int64)
        open_demand = self.demand[None, :]
        for units in self.supply:
            rows = np.zeros((len(plans), 0), dtype=np.int64)
            index, left = np.arange(len(plans)), np.full(len(plans), units)
            for y in range(len(self.demand)):
                # what the later demanders of this row can take bounds this lane from below
                later = open_demand[index, y + 1 :].sum(axis=1)
                low = np.maximum(left - later, 0)
                choices = np.minimum(left, open_demand[index, y]) - low + 1
                if choices.sum() > limit:
                    raise too_many(limit)
                repeat = np.repeat(np.arange(len(index)), choices)
                offset = np.arange(len(repeat)) - np.repeat(choices.cumsum() - choices, choices)
                lane = low[repeat] + offset
                rows = np.column_stack([rows[repeat], lane])
                index, left = index[repeat], left[repeat] - lane
            plans = np.column_stack([plans[index], rows])
            open_demand = open_demand[index] - rows
        return plans

    def duplicate(self) -> Duplicate:
        """Each unit of supply becomes a supplier of one unit: supply_x copies of lane (x, y)."""
        return self._duplicate

    @cached_property
    def _duplicate(self) -> Duplicate:
        if self.M * len(self.demand) > 10_000_000:
            raise InvalidInput(
                "actions",
                "at most 10 million copied arms",
                f"{self.M} units x {len(self.demand)} demanders",
                "Use the policy itself: it needs no copies.",
            )
        supplier = np.repeat(np.arange(len(self.supply)), self.supply)
        lanes = np.arange(self.d).reshape(len(self.supply), len(self.demand))
        copies = Transport(np.ones(len(supplier)), self.demand)
        return Duplicate(copies, lanes[supplier].ravel())

    @cached_property
    def hull(self) -> TransportHull:
        """Return the transport polytope."""
        return TransportHull(self.supply, self.demand)


def _side(argument: str, values: ArrayLike) -> IntArray:
    side = whole_numbers(argument, values)
    if side.ndim != 1 or len(side) == 0 or side.sum() == 0:
        raise InvalidInput(
            argument,
            "a list with at least one positive number",
            f"{side.tolist()}",
            "An empty plan leaves nothing to learn.",
        )
    if side.sum() > EXACT:
        raise InvalidInput(argument, "a sum of at most 2^53", f"{side.sum()}", "Use larger units.")
    return side


def _lane_names(names: Names | None, suppliers: int, demanders: int) -> Sequence[Any]:
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
                "Give one for each.",
            )
        return [f"{source}->{target}" for source in sources for target in targets]
    return names
