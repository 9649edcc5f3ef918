"""Branch and bound and the dynamic programme against enumeration, a table, and HiGHS."""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from in_kernel import in_kernel
from scipy.optimize import Bounds, LinearConstraint, milp

from multiplay.kernels import knapsack as kernel
from multiplay.types import FloatArray, IntArray

PROGRAMME, SEARCH = 0, 10**9  # node caps that leave everything to one of the two methods
METHODS = (PROGRAMME, 1, 7, kernel.NODE_CAP, SEARCH)


class Sack(NamedTuple):
    weights: IntArray
    capacity: int
    limits: IntArray


def sack(weights: object, capacity: int, limits: object) -> Sack:
    """Return a sack whose limits are cut to what fits, as the kernel expects them."""
    w = np.array(weights, dtype=np.int64).reshape(-1)
    most = np.where(w > 0, capacity // np.maximum(w, 1), 2**62)
    return Sack(w, capacity, np.minimum(most, np.array(limits, dtype=np.int64)))


def pack(case: Sack, values: FloatArray, node_cap: int = kernel.NODE_CAP) -> IntArray:
    """Return the packings, after a look whether they are allowed."""
    actions = np.full(values.shape, -7, dtype=np.int64)
    assert kernel.best_packings(*case, values, node_cap, actions) == kernel.OPTIMAL
    assert np.all((actions >= 0) & (actions <= case.limits))
    loads = actions.astype(object) @ case.weights.astype(object)  # which never overflow
    assert np.all(loads <= case.capacity)
    return actions


def gains(values: FloatArray, actions: IntArray) -> FloatArray:
    total: FloatArray = (values * actions).sum(axis=1)
    return total


def assert_best(
    case: Sack, values: FloatArray, best: FloatArray, methods: Sequence[int] = METHODS
) -> None:
    """Every method packs what is worth ``best``."""
    slack = 1e-12 * (np.abs(values) * case.limits).sum(axis=1)
    for node_cap in methods:
        gap = np.abs(gains(values, pack(case, values, node_cap)) - best)
        assert np.all(gap <= slack), node_cap


def by_enumeration(case: Sack, values: FloatArray) -> FloatArray:
    packings = np.array(list(product(*(range(n + 1) for n in case.limits))), dtype=np.int64)
    packings = packings[packings @ case.weights <= case.capacity]
    best: FloatArray = (values @ packings.T).max(axis=1)
    return best


def by_table(case: Sack, values: FloatArray) -> FloatArray:
    """Return the best gains by the textbook recursion over all capacities, unit by unit."""
    best = []
    for row in values:
        table = np.zeros(case.capacity + 1)
        for weight, limit, value in zip(case.weights, case.limits, row, strict=True):
            before = table.copy()
            for units in range(1, limit + 1):
                load = units * weight
                shifted = before[: len(table) - load] + units * value
                table[load:] = np.maximum(table[load:], shifted)
        best.append(table[-1])
    return np.array(best)


def by_highs(case: Sack, values: FloatArray) -> FloatArray:
    def best(row: FloatArray) -> float:
        fits = LinearConstraint(case.weights[None].astype(float), ub=case.capacity)
        result = milp(
            -row,
            integrality=np.ones(len(row), dtype=np.int64),
            bounds=Bounds(0, case.limits),
            constraints=fits,
            options={"mip_rel_gap": 0},
        )
        assert result.fun is not None
        return -result.fun

    return np.array([best(row) for row in values])


VALUES = st.one_of(st.integers(-3, 4).map(float), st.floats(-1, 1))


@st.composite
def small_sacks(draw: st.DrawFn) -> tuple[Sack, FloatArray]:
    """Few items, often without weight, limit or value, often with the same ratio."""
    d = draw(st.integers(1, 5))

    def many(numbers: st.SearchStrategy[float]) -> list[float]:
        return draw(st.lists(numbers, min_size=d, max_size=d))

    weights = many(st.integers(0, 7))
    case = sack(weights, draw(st.integers(0, 25)), many(st.sampled_from([0, 1, 1, 2, 3, 5])))
    same_ratio = 0.1 * case.weights
    return case, np.array([many(VALUES), many(VALUES), many(VALUES), same_ratio])


@given(small_sacks())
@settings(deadline=None, max_examples=examples(200))
def test_best_of_all_packings(case_values: tuple[Sack, FloatArray]) -> None:
    case, values = case_values
    assert_best(case, values, by_enumeration(case, values))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [1, 3, 10**6])
def test_medium_sacks_against_highs(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    case = sack(rng.integers(1, 1000, 60), 10**4, most)
    values = np.concatenate([rng.random((2, 60)), rng.beta(30, 70, (2, 60))])
    expected = by_highs(case, values)
    for node_cap in METHODS:
        assert gains(values, pack(case, values, node_cap)) == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [1, 4, 10**6])
def test_medium_sacks_against_a_table(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    case = sack(rng.integers(1, 100, 50), 1000, rng.integers(0, most + 1, 50))
    values = np.concatenate([rng.uniform(-0.2, 1, (5, 50)), rng.integers(-1, 5, (5, 50))])
    assert_best(case, values, by_table(case, values))


@pytest.mark.parametrize("most", [1, 4, 10**6])
@pytest.mark.parametrize("digits", [0, 3])
def test_values_that_follow_the_weights(most: int, digits: int) -> None:
    """Then many packings are nearly as good as the best, and branch and bound runs into its cap."""
    rng = np.random.default_rng(most)
    weights = rng.integers(20, 200, 60)
    case = sack(weights, 2003, most)
    values = 0.1 * np.array(
        [weights, weights + 20, weights - 15, np.full(60, 7), weights + rng.uniform(-5, 5, 60)]
    )
    values += 10.0**-digits * rng.random(values.shape) * (digits > 0)
    assert_best(case, values, by_table(case, values), (PROGRAMME, 50, kernel.NODE_CAP))


def test_sum_that_no_packing_reaches() -> None:
    weights = 2 * np.random.default_rng(0).integers(10, 50, 40)
    case, values = sack(weights, 1001, 1), weights[None].astype(float)
    assert_best(case, values, np.array([1000.0]), (PROGRAMME, kernel.NODE_CAP))


@pytest.mark.parametrize("seed", range(3))
def test_weights_of_fifteen_digits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = np.ceil(rng.random(12) * 2**49).astype(np.int64)
    case = sack(weights, 2**50, 1)
    share = weights / 2**50
    values = np.array([rng.random(12), share, share + 0.1, share + 1e-9 * rng.random(12)])
    assert_best(case, values, by_enumeration(case, values))


def test_the_unit_of_weight_does_not_matter() -> None:
    rng = np.random.default_rng(5)
    small, values = sack(rng.integers(1, 60, 30), 499, 5), rng.random((20, 30))
    large = Sack(small.weights << 53, (small.capacity << 53) + 12345, small.limits)
    for node_cap in METHODS:
        assert np.array_equal(pack(small, values, node_cap), pack(large, values, node_cap))


@pytest.mark.parametrize("node_cap", METHODS)
def test_the_largest_integers(node_cap: int) -> None:
    case = sack([2**62, 2**61, 2**62, 2**61 + 1, 1], 2**62, 2**62)
    values = np.array([[4.0, 3, 1, 3, 0], [7.0, 3, 1, 3, 0], [4.0, 0, 9, 3, 2**-62]])
    assert pack(case, values, node_cap).tolist() == [
        [0, 2, 0, 0, 0],
        [1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0],
    ]


def by_exchange(case: Sack, row: FloatArray) -> float:
    """Return the best gain without limits but the capacity.

    Let w be the weight of the best item by ratio. Then w units of another item can be exchanged
    for units of the best one, so fewer than w of any other are needed.
    """
    first = int(np.argmax(row / case.weights))
    others = [i for i in range(len(row)) if i != first]
    counts = product(range(int(case.weights[first])), repeat=len(others))
    units = np.array(list(counts), dtype=np.int64)
    rest = (case.capacity - units @ case.weights[others]) // case.weights[first]
    return float((units @ row[others] + rest * row[first]).max())


@pytest.mark.parametrize("seed", range(10))
def test_a_billion_units(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = sack(rng.integers(3, 20, 4), 10**9 + int(rng.integers(100)), 10**9)
    near = case.weights * (1 + 1e-9 * rng.random((2, 4)))
    values = np.concatenate([rng.random((4, 4)), near, case.weights + np.ones((1, 4))])
    expected = np.array([by_exchange(case, row) for row in values])
    for node_cap in (PROGRAMME, 1, kernel.NODE_CAP):
        gain = gains(values, pack(case, values, node_cap))
        assert gain == pytest.approx(expected, rel=2e-13)


def test_items_without_weight_or_value() -> None:
    case = sack([0, 0, 0, 5, 5, 50], 12, [10**15, 3, 3, 10, 10, 10])
    values = np.array([[0.1, -0.1, 0.0, 1.0, 0.0, 9.0], [-1.0, 1.0, 1.0, -1.0, -2.0, 9.0]])
    for node_cap in METHODS:
        assert pack(case, values, node_cap).tolist() == [
            [10**15, 0, 0, 2, 0, 0],
            [0, 3, 3, 0, 0, 0],
        ]


def test_no_items_and_no_rows() -> None:
    assert pack(sack([], 5, []), np.empty((2, 0))).shape == (2, 0)
    assert pack(sack([1, 2], 5, 1), np.empty((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("node_cap", [PROGRAMME, 20, kernel.NODE_CAP])
def test_packing_depends_on_its_own_row_only(node_cap: int) -> None:
    rng = np.random.default_rng(2)
    case = sack(rng.integers(1, 20, 30), 100, 3)
    values = rng.integers(-1, 4, (30, 30)).astype(float)
    together = pack(case, values, node_cap)
    assert np.array_equal(together, pack(case, values[::-1].copy(), node_cap)[::-1])
    assert np.array_equal(together, [pack(case, row[None], node_cap)[0] for row in values])


@pytest.mark.parametrize("node_cap", METHODS)
def test_values_of_any_scale_give_the_same_packing(node_cap: int) -> None:
    rng = np.random.default_rng(3)
    case, values = sack(rng.integers(1, 100, 40), 999, 5), rng.uniform(-0.1, 1, (10, 40))
    actions = pack(case, values, node_cap)
    for exponent in (-900, -40, 40, 900):
        assert np.array_equal(actions, pack(case, np.ldexp(values, exponent), node_cap))


@pytest.mark.slow
def test_too_many_states_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = 2 * np.random.default_rng(0).integers(10, 50, 40)
    case, easy, hard = sack(weights, 1001, 1), np.arange(40.0), weights.astype(float)
    monkeypatch.setattr(kernel, "STATE_CAP", 100)
    for name in ("heap_of_items", "rank_one_more", "branch_and_bound", "dynamic_programme"):
        monkeypatch.setattr(kernel, name, in_kernel(getattr(kernel, name)))
    actions = np.full((3, 40), -1, dtype=np.int64)
    in_python = kernel.best_packings.py_func  # type: ignore[attr-defined]
    status = in_python(*case, np.array([easy, hard, easy]), 1000, actions)
    assert status == kernel.TOO_MANY_STATES
    assert np.array_equal(actions[0], pack(case, easy[None])[0])
    assert np.all(actions[2] == -1)
