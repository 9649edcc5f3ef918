"""Integer flows: the action sets that are networks, and their oracle."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import EXACT, with_last_axis
from multiplay.actions.base import (
    ActionSet,
    Duplicate,
    extensions,
    owners,
    read_only,
    too_many,
)
from multiplay.actions.costs import SetCost, SetSize, length
from multiplay.errors import InvalidInput
from multiplay.hull import Hull, NetworkHull
from multiplay.hull.graph import Graph
from multiplay.kernels import extremes, flows, network_simplex
from multiplay.types import BoolArray, FloatArray, IntArray

BATCH = 1 << 22  # numbers in one batch of cost vectors
MANY_ARCS = 1000  # from which two searches for each arc take longer than one flow that is changed
PASSES = 20  # over all nodes: bounds on the flow that reaches them
DEAD_ENDS = 20  # partial flows that enumeration follows, for each action that it may list


class FlowSet(ActionSet, vectorised=True):
    """A = {f[arms] : f integer, 0 <= f <= capacity, out - in = balance at every node}.

    The base of the sets that are networks. Arcs that are no arms are free: they cost nothing, and
    take up what may be left over. A subclass with a better way than the general one (an oracle that
    is a selection, n in closed form) overrides just that.

    Parameters
    ----------
    graph, capacity
        The network.
    arms
        The arcs that are arms, in their order; all of them if not given.
    n
        max over A of a_i where it is known; found by the oracle if not given.
    """

    cost = SetCost(SetSize("capacity", lambda s: length(s["capacity"])), oracle="flow")
    quick_oracle = True

    def __init__(
        self,
        graph: Graph,
        capacity: IntArray,
        arms: IntArray | None = None,
        n: IntArray | None = None,
        names: Sequence[str] | None = None,
        sense: str = "min",
    ) -> None:
        self.graph, self.capacity = graph, read_only(capacity)
        self.arms = read_only(np.arange(len(capacity)) if arms is None else arms)
        self.n = self._greatest() if n is None else n
        super().__init__(names, sense)

    @property
    def _all_arcs_are_arms(self) -> bool:
        return len(self.arms) == len(self.capacity)

    _has_flow = False  # whether that is known without looking for one

    @cached_property
    def _cheapest_flow(self) -> "MinimumCostFlow":
        return MinimumCostFlow(self.graph, self.capacity, self._has_flow)

    @cached_property
    def extremes(self) -> "Extremes":
        """The least and the greatest flow on every arc, and a flow between them."""
        arcs = len(self.capacity)
        if arcs > MANY_ARCS:
            return self._widened()
        low, high, total = np.empty(arcs, np.int64), np.empty(arcs, np.int64), np.zeros(arcs)
        chunk = max(1, BATCH // arcs)
        for start in range(0, arcs, chunk):
            some = np.arange(start, min(start + chunk, arcs))
            unit = np.zeros((len(some), arcs))
            unit[np.arange(len(some)), some] = 1.0
            for sign, extreme in ((1.0, low), (-1.0, high)):
                found = self._flows(sign * unit)
                extreme[some] = found[np.arange(len(some)), some]
                total += found.sum(axis=0)
        return Extremes(low, high, total / (2 * arcs))

    def _widened(self) -> "Extremes":
        """Change one flow until it has been at the extremes of all arcs."""
        graph, arcs = self.graph, len(self.capacity)
        (low, high), mean = np.empty((2, arcs), np.int64), np.empty(arcs)
        flow, most = self._any_flow(), flow_bounds(graph, self.capacity)
        extremes.widen(graph.tail, graph.head, *graph.incidence, most, flow, low, high, mean)
        return Extremes(low, high, mean)

    def _any_flow(self) -> IntArray:
        """Return a flow, free arcs and all."""
        first = self._cheapest_flow.first
        return self._flows(np.zeros((1, len(self.capacity))))[0] if first is None else first.copy()

    def _greatest(self) -> IntArray:
        """Return n: many arms reach their capacities together, and only the others need a search.

        Where arcs have no limit, ``extremes`` also finds out whether a cycle has none.
        """
        unlimited = (self.capacity == network_simplex.UNLIMITED).any()
        if unlimited or len(self.capacity) > MANY_ARCS:
            return self.extremes.high[self.arms]
        limit = self.capacity[self.arms]
        greatest = self._pushed(limit > 0)
        left, more = greatest < limit, True
        while more:
            greatest = np.maximum(greatest, self._pushed(left))
            more = bool((left & (greatest == limit)).any())
            left = greatest < limit
        for arm in np.flatnonzero(left):
            greatest = np.maximum(greatest, self._pushed(np.arange(len(limit)) == arm))
        return greatest

    def _pushed(self, wanted: BoolArray) -> IntArray:
        """Return the action with the most units of the wanted arms."""
        costs = np.zeros((1, len(self.capacity)))
        costs[0, self.arms[wanted]] = -1.0
        most: IntArray = self._flows(costs)[0, self.arms]
        return most

    def _flows(self, costs: FloatArray) -> IntArray:
        """Return the best flow for every row of ``costs`` (rows, arcs), free arcs and all."""
        return self._cheapest_flow(costs)

    def oracle(self, costs: FloatArray) -> IntArray:
        """Call the network simplex method."""
        if self._all_arcs_are_arms:
            return self._cheapest_flow(costs)
        all_costs = np.zeros((len(costs), len(self.capacity)))
        all_costs[:, self.arms] = costs
        return self._cheapest_flow(all_costs).take(self.arms, axis=1)

    @cached_property
    def m(self) -> int:
        """Largest number of different arms in one action.

        Every arm is split in two, one for its first unit, which earns 1, and one for the rest: the
        best integer flow uses as many arms as can be.
        """
        graph, first, rest = self.graph, np.minimum(self.n, 1), self.capacity.copy()
        rest[self.arms] -= first
        tail = np.concatenate([graph.tail, graph.tail[self.arms]])
        head = np.concatenate([graph.head, graph.head[self.arms]])
        twice = Graph(tail, head, graph.balance)
        flow = MinimumCostFlow(twice, np.concatenate([rest, first]))
        costs = np.repeat([[0.0, -1.0]], [len(self.capacity), self.d], axis=1)
        return int(flow(costs)[0, len(self.capacity) :].sum())

    def contains(self, action: ArrayLike) -> BoolArray:
        """Return whether vectors are integer flows, or become flows with free arcs."""
        rows, whole = _whole_rows(action, self.d)
        missing = np.empty((len(rows), len(self.graph.balance)), dtype=np.int64)
        inside = np.empty(len(rows), dtype=bool)
        complete, balance = self._all_arcs_are_arms, self.graph.balance
        flows.leave_missing(*self._arm_ends, balance, self._n, complete, rows, missing, inside)
        if whole is not True:
            inside &= whole
        if not complete:
            inside[inside] = self._free_arcs_carry(missing[inside])
        return inside if rows is action else inside.reshape(np.shape(action)[:-1])

    @cached_property
    def _arm_ends(self) -> tuple[IntArray, IntArray]:
        """Tails and heads of the arms."""
        return self.graph.tail[self.arms], self.graph.head[self.arms]

    @cached_property
    def _free(self) -> IntArray:
        """The arcs that are not arms."""
        return np.setdiff1d(np.arange(len(self.capacity)), self.arms)

    @cached_property
    def _free_arcs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Tails, heads and capacities of the free arcs."""
        free = self._free
        return self.graph.tail[free], self.graph.head[free], self.capacity[free]

    def _free_arcs_carry(self, missing: IntArray) -> BoolArray:
        """Return for every row of balances whether some flow on the free arcs has it."""
        tail, head, capacity = self._free_arcs
        status = [network_simplex.feasible_start(tail, head, row, capacity)[0] for row in missing]
        return np.array([one == network_simplex.OPTIMAL for one in status], dtype=bool)

    def enumerate(self, limit: int = 100_000) -> IntArray:
        """Return all actions: partial flows are extended arc by arc, by what the nodes allow."""
        tail, head, (low, high, _) = self.graph.tail, self.graph.head, self.extremes
        out, into = np.zeros((2, len(self.graph.balance)), dtype=np.int64)  # still to be decided
        np.add.at(out, tail, high)
        np.add.at(into, head, high)
        partial, need = np.zeros((1, 0), dtype=np.int64), self.graph.balance[None, :]
        for e, (v, w) in enumerate(zip(tail, head, strict=True)):
            out[v] -= high[e]
            into[w] -= high[e]
            least = np.maximum(low[e], np.maximum(need[:, v] - out[v], -into[w] - need[:, w]))
            most = np.minimum(high[e], np.minimum(need[:, v] + into[v], out[w] - need[:, w]))
            if np.maximum(most - least + 1, 0).sum() > DEAD_ENDS * limit:
                raise too_many(limit)
            row, flow = extensions(least, most)
            partial, need = np.column_stack([partial[row], flow]), need[row]
            need[:, v] -= flow
            need[:, w] += flow
        actions = partial.take(self.arms, axis=1)
        if not self._all_arcs_are_arms:
            actions = np.unique(actions, axis=0)
        if len(actions) > limit:
            raise too_many(limit)
        return actions

    def _within(self, most: IntArray, fixed: IntArray) -> tuple[ActionSet, IntArray]:
        """Lower capacities; fixed units leave their tails and reach their heads beforehand."""
        if not self.linear:
            return super()._within(most, fixed)
        units, capacity = np.maximum(fixed, 0), self.capacity.copy()
        open_to = np.minimum(capacity[self.arms], most)
        capacity[self.arms] = np.where(fixed >= 0, 0, open_to)
        tail, head = self._arm_ends
        balance = self.graph.balance.copy()
        np.subtract.at(balance, tail, units)
        np.add.at(balance, head, units)
        graph = Graph(self.graph.tail, self.graph.head, balance)
        return FlowSet(graph, capacity, self.arms, sense=self.sense), units

    @cached_property
    def _duplicate(self) -> Duplicate:
        """The network with n_i parallel arcs of capacity 1 for arm i."""
        return super()._duplicate if self.n.max() <= 1 else self._interchangeable

    @cached_property
    def _interchangeable(self) -> Duplicate:
        owner = owners(self.n)
        free = self._free
        arcs = np.concatenate([self.arms[owner], free])
        graph = Graph(self.graph.tail[arcs], self.graph.head[arcs], self.graph.balance)
        ones = np.ones(len(owner), dtype=np.int64)
        capacity = np.concatenate([ones, self.capacity[free]])
        copies = FlowSet(graph, capacity, np.arange(len(owner)), n=ones, sense=self.sense)
        return Duplicate(copies, owner)

    @cached_property
    def hull(self) -> Hull:
        """The flow polytope; its vertices are integral."""
        return NetworkHull(self.graph, *self.extremes, self.arms)


class Extremes(NamedTuple):
    """For every arc the least and the greatest flow; a flow strictly between, where they differ."""

    low: IntArray
    high: IntArray
    centre: FloatArray


class MinimumCostFlow:
    """argmin over the integer flows of a graph, 0 <= f <= capacity, of <costs, f>."""

    def __init__(self, graph: Graph, capacity: IntArray, has_flow: bool = False) -> None:
        status, self._start, self.first = network_simplex.feasible_start(
            graph.tail, graph.head, graph.balance, capacity.copy(), has_flow
        )
        if status != network_simplex.OPTIMAL:
            raise InvalidInput(
                "capacities",
                "a network that carries all supplies to the demands",
                "a network without such a flow",
                "Raise capacities, or add arcs.",
            )

    def __call__(self, costs: FloatArray) -> IntArray:
        """Return a best flow for each row of ``costs`` (rows, arcs)."""
        flows = np.empty(costs.shape, dtype=np.int64)
        status = network_simplex.minimum_cost_flows(*self._start, costs, flows)
        if status == network_simplex.UNBOUNDED:
            raise _without_limit()
        if status != network_simplex.OPTIMAL:
            raise ArithmeticError(f"the network simplex method failed with status {status}")
        return flows


def flow_bounds(graph: Graph, capacity: IntArray) -> IntArray:
    """Return bounds on the flow of every arc, of its capacity at most.

    A flow consists of paths from supplies to demands and of cycles. So an arc that no cycle has
    carries no more than all supplies. Nor does it carry more than can reach its tail, or leave its
    head.
    """
    tail, head, balance = graph.tail, graph.head, graph.balance
    nodes, without = len(balance), capacity == network_simplex.UNLIMITED
    if without.any() and (_circles(graph, without) & without).any():
        raise _without_limit()
    supplies = int(np.maximum(balance, 0).sum())
    paths_and_cycles = supplies + float(capacity[~without].sum(dtype=float))
    most = np.where(without, int(min(paths_and_cycles, EXACT)), capacity)
    most = np.where(_circles(graph, capacity > 0), most, np.minimum(most, supplies))
    for _ in range(PASSES):
        before = most
        reaching = balance + np.bincount(head, most, nodes)
        leaving = np.bincount(tail, most, nodes) - balance
        limit = np.minimum(reaching[tail], leaving[head])
        most = np.where(limit < most, np.maximum(limit, 0), most).astype(np.int64)
        if (most == before).all():
            break
    return most


def _circles(graph: Graph, arcs: BoolArray) -> BoolArray:
    """Return which arcs have both ends in one strong component of the given arcs."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    nodes, ends = len(graph.balance), (graph.tail[arcs], graph.head[arcs])
    joined = coo_array((np.ones(len(ends[0]), np.int8), ends), (nodes, nodes))
    _, part = connected_components(joined, connection="strong")
    within: BoolArray = part[graph.tail] == part[graph.head]
    return within


def _without_limit() -> InvalidInput:
    return InvalidInput(
        "capacities",
        "a limit to the flow round every cycle",
        "a cycle of arcs without capacities",
        "Give capacities on the arcs of that cycle.",
    )


def _whole_rows(action: ArrayLike, d: int) -> tuple[IntArray, BoolArray | bool]:
    """Return vectors along the last axis as integers (rows, d), and which of them were whole."""
    if isinstance(action, np.ndarray) and action.dtype == np.int64 and action.shape[-1:] == (d,):
        if action.ndim == 2 and action.flags.carray:
            return action, True
        rows = np.ascontiguousarray(action.reshape(-1, d))
        return rows if rows.flags.writeable else rows.copy(), True  # as kernels are compiled for
    a = with_last_axis("action", action, d).reshape(-1, d)
    whole = ((np.floor(a) == a) & (np.abs(a) <= EXACT)).all(axis=1)
    return np.where(whole[:, None], a, 0.0).astype(np.int64), whole
