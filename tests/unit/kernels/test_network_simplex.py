"""The network simplex method against a general solver of linear programs."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, linprog

from multiplay.kernels import network_simplex as ns
from multiplay.types import FloatArray, IntArray


class Network(NamedTuple):
    tail: IntArray
    head: IntArray
    supply: IntArray
    capacity: IntArray


def integers(values: object) -> IntArray:
    return np.array(values, dtype=np.int64).reshape(-1)


def transport(rows: IntArray, columns: IntArray) -> Network:
    a, b = len(rows), len(columns)
    tail, head = np.divmod(np.arange(a * b), b)
    supply = np.concatenate([rows, -columns])
    return Network(tail, a + head, supply, np.full(a * b, ns.UNLIMITED))


def incidence(network: Network) -> IntArray:
    matrix = np.zeros((len(network.supply), len(network.tail)), dtype=np.int64)
    arcs = np.arange(len(network.tail))
    np.add.at(matrix, (network.tail, arcs), 1)
    np.add.at(matrix, (network.head, arcs), -1)
    return matrix


def solve(network: Network, costs: FloatArray, few_arcs: int = ns.FEW_ARCS) -> tuple[int, IntArray]:
    """Return the status and the flows; ``few_arcs`` chooses between the two kinds of start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ns, "FEW_ARCS", few_arcs)
        status, start, _ = ns.feasible_start(*network)
    if status != ns.OPTIMAL:
        return status, np.empty((0, 0), dtype=np.int64)
    flows = np.full(costs.shape, -1, dtype=np.int64)
    return ns.minimum_cost_flows(*start, costs, flows), flows


def linear_program(network: Network, costs: FloatArray) -> Any:
    bounds = [(0, None if limit >= ns.UNLIMITED else int(limit)) for limit in network.capacity]
    return linprog(costs, A_eq=incidence(network), b_eq=network.supply, bounds=bounds)


def assert_feasible(network: Network, flows: IntArray) -> None:
    assert flows.dtype == np.int64
    assert np.all((flows >= 0) & (flows <= network.capacity))
    assert np.array_equal(flows @ incidence(network).T, np.tile(network.supply, (len(flows), 1)))


def assert_optimal(network: Network, costs: FloatArray) -> None:
    """Both starts give feasible flows, and the cost that the linear program has."""
    for few_arcs in (0, 10**9):
        status, flows = solve(network, costs, few_arcs)
        assert status == ns.OPTIMAL
        assert_feasible(network, flows)
        for c, flow in zip(costs, flows, strict=True):
            expected = linear_program(network, c).fun
            size = np.abs(c) @ flow
            assert c @ flow == pytest.approx(expected, rel=1e-9, abs=1e-9 * size + 1e-9)


COSTS = st.one_of(
    st.integers(-3, 3).map(float),  # many ties
    st.floats(-1, 1).map(lambda c: c if abs(c) > 1e-6 else 0.0),  # below, HiGHS calls it zero
)


@st.composite
def networks(draw: st.DrawFn, feasible: bool) -> tuple[Network, FloatArray]:
    """Networks with loops, parallel arcs, isolated nodes, and limits of any size; two costs."""
    nodes = draw(st.integers(1, 7))
    arcs = draw(st.integers(1, 20))

    def many(values: st.SearchStrategy[int], count: int) -> IntArray:
        return integers(draw(st.lists(values, min_size=count, max_size=count)))

    tail, head = many(st.integers(0, nodes - 1), arcs), many(st.integers(0, nodes - 1), arcs)
    flow = many(st.integers(0, 3), arcs)
    capacity = flow + many(st.sampled_from([0, 0, 1, 5]), arcs)
    if feasible:
        supply = np.bincount(tail, flow, nodes) - np.bincount(head, flow, nodes)
    else:
        supply = many(st.integers(-2, 2), nodes)
        supply[0] -= supply.sum()
    unlimited = many(st.integers(0, 3), arcs) == 0
    costs = np.array(draw(st.lists(COSTS, min_size=2 * arcs, max_size=2 * arcs))).reshape(2, arcs)
    costs[:, unlimited] = np.abs(costs[:, unlimited])
    capacity[unlimited] = ns.UNLIMITED
    return Network(tail, head, supply.astype(np.int64), capacity), costs


@st.composite
def transports(draw: st.DrawFn) -> tuple[Network, FloatArray]:
    a, b = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    total = draw(st.sampled_from([0, 3, 20, 10**9]))
    rows = rng.multinomial(total, rng.dirichlet(np.ones(a)))
    columns = rng.multinomial(total, rng.dirichlet(np.ones(b)))
    costs = rng.integers(0, 3, (2, a * b)).astype(float)
    costs[1] = rng.uniform(-1, 1, a * b)
    return transport(rows, columns), costs


@given(networks(feasible=True))
@settings(deadline=None, max_examples=examples(150))
def test_optimal_on_networks(case: tuple[Network, FloatArray]) -> None:
    assert_optimal(*case)


@given(transports())
@settings(deadline=None, max_examples=examples(150))
def test_optimal_on_transports(case: tuple[Network, FloatArray]) -> None:
    assert_optimal(*case)


@given(networks(feasible=False))
@settings(deadline=None, max_examples=examples(150))
def test_infeasible_networks_are_reported(case: tuple[Network, FloatArray]) -> None:
    network, costs = case
    infeasible = linear_program(network, np.zeros(len(network.tail))).status == 2
    status, start, _ = ns.feasible_start(*network)
    assert status == (ns.INFEASIBLE if infeasible else ns.OPTIMAL)
    assert ns.minimum_cost_flows(*start, costs, np.zeros(costs.shape, dtype=np.int64)) == status


@given(networks(feasible=True))
@settings(deadline=None, max_examples=examples(50))
def test_start_is_a_strongly_feasible_tree(case: tuple[Network, FloatArray]) -> None:
    network, _ = case
    nodes, arcs = len(network.supply), len(network.tail)
    _, (ends, capacity, side, tree), _ = ns.feasible_start(*network)
    flow = np.where(side == ns.EMPTY, 0, capacity)
    thread = [nodes]
    for _ in range(nodes):
        node = int(tree[thread[-1], ns.NEXT])
        arc, parent = tree[node, [ns.ARC, ns.PARENT]]
        up, down = tree[node, [ns.UP, ns.DOWN]]
        upward = ends[arc, ns.TAIL] == node
        flow[arc] = down if upward else up
        assert sorted(ends[arc]) == sorted([node, parent])
        assert parent in thread
        assert tree[node, ns.DEPTH] == tree[parent, ns.DEPTH] + 1
        assert tree[node, ns.PREVIOUS] == thread[-1]
        assert up + down == capacity[arc]
        assert up > 0
        thread.append(node)
    assert sorted(thread) == list(range(nodes + 1))
    assert np.all(flow[arcs:] == 0)
    assert_feasible(network, flow[None, :arcs])


@pytest.mark.parametrize("few_arcs", [0, 10**9])
def test_flow_depends_on_its_own_costs_only(few_arcs: int) -> None:
    rng = np.random.default_rng(0)
    network = transport(rng.multinomial(50, np.ones(7) / 7), rng.multinomial(50, np.ones(6) / 6))
    costs = rng.integers(0, 3, (30, 42)).astype(float)
    _, together = solve(network, costs, few_arcs)
    _, reversed_together = solve(network, costs[::-1].copy(), few_arcs)
    alone = [solve(network, c[None], few_arcs)[1][0] for c in costs]
    assert np.array_equal(together, reversed_together[::-1])
    assert np.array_equal(together, alone)


@pytest.mark.parametrize("values", [1, 2, 10, 10**6])
@pytest.mark.parametrize("few_arcs", [0, 10**9])
@pytest.mark.parametrize("limit", [1, ns.UNLIMITED])
def test_degenerate_assignments(values: int, few_arcs: int, limit: int) -> None:
    n = 60
    network = transport(np.ones(n, dtype=np.int64), np.ones(n, dtype=np.int64))
    network.capacity[:] = limit
    costs = 0.1 * np.random.default_rng(values).integers(0, values, (3, n * n)).astype(float)
    status, flows = solve(network, costs, few_arcs)
    assert status == ns.OPTIMAL
    assert_feasible(network, flows)
    for c, flow in zip(costs, flows, strict=True):
        best = linear_sum_assignment(c.reshape(n, n))
        assert c @ flow == pytest.approx(c.reshape(n, n)[best].sum())


def test_costs_of_any_scale_give_the_same_flow() -> None:
    rng = np.random.default_rng(1)
    network = transport(rng.multinomial(99, np.ones(9) / 9), rng.multinomial(99, np.ones(9) / 9))
    costs = rng.uniform(-1, 1, (5, 81))
    _, flows = solve(network, costs)
    for exponent in (-900, -40, 40, 900):
        _, scaled = solve(network, np.ldexp(costs, exponent))
        assert np.array_equal(flows, scaled)


def test_a_trillion_units() -> None:
    network = transport(integers([10**12, 0, 7]), integers([3, 10**12, 4]))
    status, flows = solve(network, np.array([[5.0, 1, 4, 2, 1, 1, 1, 9, 2]]))
    assert status == ns.OPTIMAL
    assert flows.tolist() == [[0, 10**12, 0, 0, 0, 0, 3, 0, 4]]


@pytest.mark.parametrize("few_arcs", [0, 10**9])
def test_cycle_without_limit_is_reported(few_arcs: int) -> None:
    network = Network(
        integers([0, 1, 2]), integers([1, 0, 2]), integers([0, 0, 0]), np.full(3, ns.UNLIMITED)
    )
    cycle, loop = np.array([[1.0, -2.0, 0.0]]), np.array([[0.0, 0.0, -1.0]])
    assert solve(network, cycle, few_arcs)[0] == ns.UNBOUNDED
    assert solve(network, loop, few_arcs)[0] == ns.UNBOUNDED
    network.capacity[:] = 4
    assert solve(network, cycle, few_arcs)[1].tolist() == [[4, 4, 0]]
    assert solve(network, loop, few_arcs)[1].tolist() == [[0, 0, 4]]


def test_network_without_arcs() -> None:
    nothing = integers([])
    status, flows = solve(Network(nothing, nothing, integers([0, 0]), nothing), np.empty((2, 0)))
    assert status == ns.OPTIMAL
    assert flows.shape == (2, 0)
    assert solve(Network(nothing, nothing, integers([1, -1]), nothing), np.empty((1, 0)))[0] == (
        ns.INFEASIBLE
    )
