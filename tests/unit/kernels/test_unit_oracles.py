"""The oracles for selections, assignments, paths and trees against enumeration and scipy."""

import math
from collections.abc import Iterator
from itertools import combinations, permutations, product
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from in_kernel import in_kernel
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from multiplay.kernels import selection
from multiplay.kernels.assignment import best_assignments
from multiplay.kernels.paths import arcs_in_order, shortest_paths, topological_order
from multiplay.kernels.selection import cheapest
from multiplay.kernels.trees import are_spanning_trees, components, spanning_trees
from multiplay.types import BoolArray, FloatArray, IntArray

MODERATE = st.one_of(st.integers(-2, 2).map(float), st.floats(-1, 1))  # with many ties
COSTS = st.one_of(MODERATE, st.sampled_from([-1e300, -1e-300, -0.0, 1e-300, 1e300]))
SEEDS = st.integers(0, 2**32)


def integers(values: object) -> IntArray:
    return np.array(values, dtype=np.int64).reshape(-1)


def unwritten(costs: FloatArray) -> IntArray:
    return np.full(costs.shape, -7, dtype=np.int64)


@st.composite
def two_rows(draw: st.DrawFn, d: int) -> FloatArray:
    """Draw two rows of costs; huge ones hide errors in the others, so many draws have none."""
    costs = draw(st.sampled_from([MODERATE, COSTS]))
    return np.array(draw(st.lists(costs, min_size=2 * d, max_size=2 * d))).reshape(2, d)


def exact_cost(c: FloatArray, action: IntArray) -> float:
    """Return the sum over all units, rounded once: of two actions the cheaper is never larger."""
    return math.fsum(np.repeat(c, action))


def assert_cheapest_of(
    choices: Iterator[tuple[int, ...]], c: FloatArray, action: IntArray, rounding: float = 0.0
) -> None:
    """The action is one of the choices, and none is cheaper by more than the rounding.

    Oracles that only compare costs are exact. Oracles that add and subtract costs round them,
    also costs that neither their action nor the cheapest one has: an assignment's reduced costs
    contain those of all choices. Rounding is therefore a share of the largest sum of |c|.
    """
    every = np.array(list(choices), dtype=np.int64)
    assert np.any(np.all(every == action, axis=1))
    least = min(exact_cost(c, choice) for choice in every)
    assert exact_cost(c, action) <= least + rounding * np.max(every @ np.abs(c))


# ---------------------------------------------------------------------------------- selections


def select(costs: FloatArray, caps: IntArray, total: int, at_most: bool) -> IntArray:
    actions = unwritten(costs)
    cheapest(costs, caps, total, at_most, actions)
    return actions


def fill_in_order(c: FloatArray, caps: IntArray, total: int, at_most: bool) -> IntArray:
    """The slow twin: go through the sorted arms with Python's integers."""
    action = np.zeros(len(c), dtype=np.int64)
    for i in np.argsort(c, kind="stable"):
        if c[i] < 0 or not at_most:
            action[i] = min(int(caps[i]), total)
            total -= int(action[i])
    return action


@st.composite
def selections(draw: st.DrawFn) -> tuple[FloatArray, IntArray, int, bool]:
    caps = integers(draw(st.lists(st.integers(0, 3), min_size=1, max_size=5)))
    at_most = draw(st.booleans())
    total = draw(st.integers(0, int(caps.sum()) + 2 * at_most))
    return draw(two_rows(len(caps))), caps, total, at_most


@given(selections())
def test_selections_against_enumeration(case: tuple[FloatArray, IntArray, int, bool]) -> None:
    costs, caps, total, at_most = case
    for c, action in zip(costs, select(costs, caps, total, at_most), strict=True):
        every = product(*(range(cap + 1) for cap in caps))
        allowed = (a for a in every if sum(a) == total or (at_most and sum(a) < total))
        assert_cheapest_of(allowed, c, action)


@given(
    SEEDS,
    st.sampled_from([1, 15, 16, 17, 63, 64, 65, 100, 257, 1000]),
    st.sampled_from([1, 2, 30, 10**6]),
    st.sampled_from(["ones", "zeros and ones", "few", "a giant", "giants"]),
    st.sampled_from(["any", "sorted", "reversed"]),
    st.booleans(),
)
def test_selections_are_filled_in_order(
    seed: int, d: int, values: int, kind: str, order: str, at_most: bool
) -> None:
    rng = np.random.default_rng(seed)
    costs = (rng.integers(0, values, (3, d)) - values // 2) / values
    if order != "any":
        costs.sort(axis=1)
    if order == "reversed":
        costs = costs[:, ::-1].copy()
    caps = {
        "ones": np.ones(d, dtype=np.int64),
        "zeros and ones": rng.integers(0, 2, d),
        "few": rng.integers(0, 9, d),
        "a giant": np.where(np.arange(d) == d // 3, 10**15, 1),
        "giants": rng.integers(0, 10**15, d),
    }[kind]
    for total in (0, 1, int(rng.integers(0, caps.sum() + 1)), int(caps.sum())):
        total = min(total, int(caps.sum()))
        expected = [fill_in_order(c, caps, total, at_most) for c in costs]
        assert np.array_equal(select(costs, caps, total, at_most), expected)


def test_narrowing_takes_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each guess drops most of the arms, whatever their order, ties and caps."""
    rng = np.random.default_rng(3)
    d, rounds, guess = 3000, 0, selection.guess

    def counted_guess(*given: Any) -> tuple[float, float]:
        nonlocal rounds
        rounds += 1
        return guess(*given)

    monkeypatch.setattr(selection, "guess", counted_guess)
    for name in ("keep", "limits_of_few", "weigh_cheaper"):
        monkeypatch.setattr(selection, name, in_kernel(getattr(selection, name)))
    find_limit = cast(Any, selection.find_limit).py_func
    workspace = [np.empty(d + 16), integers(range(d + 16)), np.empty(32), integers(range(32))]
    for costs in (rng.uniform(size=d), np.arange(float(d)), rng.integers(0, 2, d) / 1):
        for caps in (np.ones(d, dtype=np.int64), (10 ** rng.uniform(0, 9, d)).astype(np.int64)):
            rounds, total = 0, int(caps.sum()) // 2
            limit = find_limit(costs, caps, total, np.inf, *workspace)
            assert caps[costs < limit].sum() <= total <= caps[costs <= limit].sum()
            assert 1 <= rounds <= 12


# --------------------------------------------------------------------------------- assignments


def assign(rows: int, cols: int, costs: FloatArray) -> IntArray:
    actions = unwritten(costs)
    best_assignments(rows, cols, costs, actions)
    return actions


def all_assignments(rows: int, cols: int) -> Iterator[tuple[int, ...]]:
    few, many = min(rows, cols), max(rows, cols)
    for partners in permutations(range(many), few):
        matrix = np.zeros((few, many), dtype=np.int64)
        matrix[np.arange(few), partners] = 1
        yield tuple((matrix if rows <= cols else matrix.T).ravel().tolist())


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, int, FloatArray]:
    rows, cols = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    return rows, cols, draw(two_rows(rows * cols))


@given(tables())
@example((3, 3, np.array([[0, 0, 0, 2, 1e300, 1e300, -1e300, 0, -1]])))
def test_assignments_against_enumeration(case: tuple[int, int, FloatArray]) -> None:
    rows, cols, costs = case
    for c, action in zip(costs, assign(*case), strict=True):
        assert_cheapest_of(all_assignments(rows, cols), c, action, rounding=1e-12)


@pytest.mark.parametrize("shape", [(10, 10), (3, 40), (40, 3), (50, 50), (49, 50), (80, 60)])
@pytest.mark.parametrize("kind", ["uniform", "two values", "product", "equal"])
def test_assignments_against_scipy(shape: tuple[int, int], kind: str) -> None:
    rng = np.random.default_rng(shape)
    costs = {
        "uniform": rng.uniform(-1, 1, (4, *shape)),
        "two values": 0.1 * rng.integers(0, 2, (4, *shape)),
        "product": rng.uniform(size=(4, shape[0], 1)) * rng.uniform(-1, 1, (4, 1, shape[1])),
        "equal": np.full((4, *shape), -0.3),
    }[kind]
    actions = assign(*shape, costs.reshape(4, -1)).reshape(costs.shape)
    for c, action in zip(costs, actions, strict=True):
        assert set(np.unique(action)) <= {0, 1}
        assert action.sum() == min(shape)
        assert action.sum(axis=0).max() == action.sum(axis=1).max() == 1
        assert (c * action).sum() == pytest.approx(c[linear_sum_assignment(c)].sum(), abs=1e-12)


# --------------------------------------------------------------------------------------- paths


def route(
    tail: IntArray, head: IntArray, nodes: int, ends: tuple[int, int], units: int, costs: FloatArray
) -> IntArray:
    order, cycle = topological_order(tail, head, nodes)
    assert cycle == []
    actions = unwritten(costs)
    shortest_paths(tail, head, arcs_in_order(tail, order), *ends, nodes, units, costs, actions)
    return actions


def all_paths(tail: IntArray, head: IntArray, node: int, target: int) -> Iterator[tuple[int, ...]]:
    """Yield the paths as vectors of zeros and ones."""
    if node == target:
        yield (0,) * len(tail)
    for arc in np.flatnonzero(tail == node):
        for rest in all_paths(tail, head, int(head[arc]), target):
            yield tuple(int(a == arc) + used for a, used in enumerate(rest))


@st.composite
def arcs(draw: st.DrawFn, nodes: int, most: int = 10) -> tuple[IntArray, IntArray]:
    """Draw any arcs: loops, parallel ones, cycles."""
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    ends = np.array(draw(st.lists(pairs, max_size=most)), dtype=np.int64).reshape(-1, 2)
    return ends[:, 0].copy(), ends[:, 1].copy()


@st.composite
def acyclic_graphs(draw: st.DrawFn) -> tuple[IntArray, IntArray, int, FloatArray]:
    nodes = draw(st.integers(2, 6))
    a, b = draw(arcs(nodes))
    a, b = a[a != b], b[a != b]
    name = integers(draw(st.permutations(range(nodes))))
    return name[np.minimum(a, b)], name[np.maximum(a, b)], nodes, draw(two_rows(len(a)))


@given(acyclic_graphs(), st.sampled_from([1, 10**12]))
def test_paths_against_enumeration(
    graph: tuple[IntArray, IntArray, int, FloatArray], units: int
) -> None:
    tail, head, nodes, costs = graph
    for ends in product(range(nodes), range(nodes)):
        paths = list(all_paths(tail, head, *ends))
        for c, action in zip(costs, route(tail, head, nodes, ends, units, costs), strict=True):
            if paths:
                assert_cheapest_of(iter(paths), c, action // units, rounding=1e-12)
                assert np.all(action % units == 0)
            else:
                assert np.all(action == 0)


def test_paths_against_a_linear_program() -> None:
    rng = np.random.default_rng(5)
    nodes, count = 40, 300
    a, b = rng.integers(0, nodes, (2, count))
    a, b = a[a != b], b[a != b]
    name = rng.permutation(nodes)
    low, high = np.append(np.minimum(a, b), 0), np.append(np.maximum(a, b), nodes - 1)
    costs = rng.uniform(-1, 1, (5, len(low)))
    ends = (int(name[0]), int(name[-1]))
    actions = route(name[low], name[high], nodes, ends, 7, costs)
    balance = np.zeros((nodes, len(low)))
    balance[low, np.arange(len(low))] += 1
    balance[high, np.arange(len(low))] -= 1
    supply = np.zeros(nodes)
    supply[[0, -1]] = 7, -7
    for c, action in zip(costs, actions, strict=True):
        assert np.array_equal(balance @ action, supply)
        assert c @ action == pytest.approx(linprog(c, A_eq=balance, b_eq=supply).fun)


@given(st.integers(1, 6).flatmap(lambda nodes: st.tuples(st.just(nodes), arcs(nodes))))
def test_topological_order_or_a_cycle(case: tuple[int, tuple[IntArray, IntArray]]) -> None:
    nodes, (tail, head) = case
    order, cycle = topological_order(tail, head, nodes)
    pairs = set(zip(tail.tolist(), head.tolist(), strict=True))
    if cycle:
        assert len(order) == 0
        assert len(set(cycle)) == len(cycle)
        assert set(zip(cycle, cycle[1:] + cycle[:1], strict=True)) <= pairs
    else:
        assert sorted(order.tolist()) == list(range(nodes))
        place = np.argsort(order)
        assert np.all(place[tail] < place[head])
        assert np.all(np.diff(place[tail[arcs_in_order(tail, order)]]) >= 0)


def test_cycles_are_named() -> None:
    assert topological_order(integers([0]), integers([0]), 1)[1] == [0]
    cycle = topological_order(integers([0, 1, 2, 3, 3]), integers([1, 2, 3, 1, 4]), 5)[1]
    first = cycle.index(1)
    assert cycle[first:] + cycle[:first] == [1, 2, 3]


# --------------------------------------------------------------------------------------- trees


def connect(tail: IntArray, head: IntArray, nodes: int, costs: FloatArray) -> IntArray:
    actions = unwritten(costs)
    spanning_trees(tail, head, nodes, costs, actions)
    return actions


def are_trees(tail: IntArray, head: IntArray, nodes: int, actions: IntArray) -> BoolArray:
    answer = np.empty(len(actions), dtype=np.bool_)
    are_spanning_trees(tail, head, nodes, actions, answer)
    return answer


def scipy_components(tail: IntArray, head: IntArray, nodes: int) -> tuple[int, IntArray]:
    graph = coo_array((np.ones(len(tail)), (tail, head)), shape=(nodes, nodes))
    count, label = connected_components(graph, directed=False)
    return int(count), label.astype(np.int64)


def all_trees(tail: IntArray, head: IntArray, nodes: int) -> Iterator[tuple[int, ...]]:
    for chosen in combinations(range(len(tail)), nodes - 1):
        kept = integers(chosen)
        if scipy_components(tail[kept], head[kept], nodes)[0] == 1:
            yield tuple(int(arc in chosen) for arc in range(len(tail)))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[IntArray, IntArray, int]:
    nodes = draw(st.integers(1, 5))
    return *draw(arcs(nodes, most=6)), nodes


@st.composite
def connected_graphs(draw: st.DrawFn) -> tuple[IntArray, IntArray, int, FloatArray]:
    """Draw a graph with a tree in it, at any place among the arcs."""
    tail, head, nodes = draw(graphs())
    parents = [draw(st.integers(0, node - 1)) for node in range(1, nodes)]
    tail, head = np.append(tail, integers(parents)), np.append(head, np.arange(1, nodes))
    order = integers(draw(st.permutations(range(len(tail)))))
    return tail[order], head[order], nodes, draw(two_rows(len(tail)))


@given(connected_graphs())
def test_trees_against_enumeration(graph: tuple[IntArray, IntArray, int, FloatArray]) -> None:
    tail, head, nodes, costs = graph
    for c, action in zip(costs, connect(tail, head, nodes, costs), strict=True):
        assert_cheapest_of(all_trees(tail, head, nodes), c, action)


@given(graphs())
def test_members_are_the_enumerated_trees(graph: tuple[IntArray, IntArray, int]) -> None:
    tail, head, nodes = graph
    every = np.array(list(product(range(2), repeat=len(tail))), dtype=np.int64)
    expected = set(all_trees(tail, head, nodes))
    answer = are_trees(tail, head, nodes, every)
    assert {tuple(action.tolist()) for action in every[answer]} == expected


def test_members_have_zeros_and_ones_only() -> None:
    tail, head = integers([0, 1, 2]), integers([1, 2, 0])
    actions = np.array([[1, 1, 0], [2, 0, 0], [1, 2, -1], [1, 1, -1], [1, 1, 1], [0, 0, 2]])
    assert are_trees(tail, head, 3, actions).tolist() == [True] + 5 * [False]


@given(graphs())
def test_components_against_scipy(graph: tuple[IntArray, IntArray, int]) -> None:
    tail, head, nodes = graph
    ours, (_, theirs) = components(tail, head, nodes), scipy_components(tail, head, nodes)
    for v in range(nodes):
        assert ours[v] == np.flatnonzero(theirs == theirs[v])[0]


@pytest.mark.parametrize("values", [3, 10**6])
def test_trees_against_scipy(values: int) -> None:
    """Scipy takes a matrix of positive costs, so without parallel arcs."""
    rng = np.random.default_rng(values)
    nodes = 60
    tail, head = np.triu_indices(nodes, 1)
    used = (rng.uniform(size=len(tail)) < 0.3) | (head == tail + 1)
    tail, head = tail[used].astype(np.int64), head[used].astype(np.int64)
    costs = rng.integers(1, values + 1, (5, len(tail))).astype(float)
    actions = connect(tail, head, nodes, costs)
    assert np.all(are_trees(tail, head, nodes, actions))
    for c, action in zip(costs, actions, strict=True):
        ends = tail.astype(np.int32), head.astype(np.int32)  # scipy 1.16 wants no others
        graph = coo_array((c, ends), shape=(nodes, nodes)).tocsr()
        assert c @ action == minimum_spanning_tree(graph).sum()


def test_ties_go_to_the_first_arc() -> None:
    tail, head = integers([1, 0, 0, 1]), integers([1, 1, 1, 0])
    assert connect(tail, head, 2, np.array([[-5.0, 2, 1, 1], [0, 0, 0, 0]])).tolist() == [
        [0, 0, 1, 0],
        [0, 1, 0, 0],
    ]


# ------------------------------------------------------------------------------------- batches


@pytest.mark.parametrize("oracle", ["selection", "assignment", "paths", "trees"])
def test_rows_depend_on_themselves_only(oracle: str) -> None:
    rng = np.random.default_rng(8)
    low, high = np.triu_indices(17, 1)
    costs = rng.integers(-2, 3, (30, len(low))) / 2

    def solve(some: FloatArray) -> IntArray:
        if oracle == "selection":
            return select(some, np.ones(len(low), dtype=np.int64), 50, False)
        if oracle == "assignment":
            return assign(8, 17, some)
        if oracle == "paths":
            return route(low, high, 17, (0, 16), 1, some)
        return connect(low, high, 17, some)

    together = solve(costs)
    assert np.array_equal(together, solve(costs[::-1].copy())[::-1])
    assert np.array_equal(together, np.vstack([solve(c[None]) for c in costs]))
