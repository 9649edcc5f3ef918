"""The FTRL step and the rounding of the transport polytope."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from multiplay import Transport
from multiplay.hull import Regulariser, TransportHull
from multiplay.kernels import newton, rounding
from multiplay.random import NO_WORDS
from multiplay.testing import optimality_gap
from multiplay.testing.strategies import random_transport, transports
from multiplay.types import Arrays, FloatArray

LOG_T = np.log(10_000)


def regulariser(trials: int) -> Regulariser:
    return Regulariser(barrier=np.ones(trials), entropy=np.full(trials, LOG_T))


def kkt_residual(plans: Transport, costs: FloatArray, beta: FloatArray, point: Arrays) -> float:
    """Largest gradient that the multipliers of the margins leave, relative to the costs."""
    u, v = point["x"][0] / plans.n, point["rest"][0] / plans.n
    gradient = costs + beta * (1 - 1 / u - LOG_T * np.log(v))
    assert isinstance(plans.hull, TransportHull)
    free, multipliers = plans.hull.free, point["multipliers"][0]
    left = gradient[free] - multipliers[: len(free), None] - multipliers[len(free) :]
    return float(np.abs(left).max() / max(1.0, np.abs(costs).max()))


def slow_twin(plans: Transport, costs: FloatArray, beta: FloatArray) -> FloatArray:
    """Minimise by cvxpy and Clarabel."""
    n = plans.n.astype(float)
    x = cp.Variable((len(plans.supply), len(plans.demand)))
    u = cp.multiply(cp.vec(x, order="C"), 1 / n)
    phi = u - 1 - cp.log(u) + LOG_T * (u - cp.entr(1 - u))
    objective = costs @ cp.vec(x, order="C") + cp.sum(cp.multiply(beta * n, phi))
    margins = [cp.sum(x, axis=1) == plans.supply, cp.sum(x, axis=0) == plans.demand]
    cp.Problem(cp.Minimize(objective), margins).solve(solver=cp.CLARABEL)
    assert x.value is not None
    return np.asarray(x.value).ravel()


@pytest.mark.parametrize(("rows", "cols"), [(2, 2), (3, 2), (2, 5), (6, 4), (8, 8)])
@pytest.mark.parametrize("rounds", [0, 1, 30])
def test_step_equals_cvxpy(rows: int, cols: int, rounds: int) -> None:
    rng = np.random.default_rng(100 * rows + 10 * cols + rounds)
    plans = random_transport(rng, rows, cols, 40)
    costs, beta = rounds * rng.random(plans.d), 1 + rng.random(plans.d)
    point = plans.hull.minimise(costs[None], beta[None], regulariser(1), plans.hull.start(1))
    # Clarabel stops at a relative gap of 1e-8, so x is right to about its square root
    assert np.allclose(point["x"][0], slow_twin(plans, costs, beta), atol=2e-4 * plans.n.max())
    assert kkt_residual(plans, costs, beta, point) < 1e-9


@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(2, 8),
    cols=st.integers(2, 8),
    scale=st.sampled_from([1.0, 100.0, 1e4, 1e6]),
    units=st.sampled_from([20, 10**4, 10**10]),
)
def test_residual_is_tiny_at_any_scale(
    seed: int, rows: int, cols: int, scale: float, units: int
) -> None:
    rng = np.random.default_rng(seed)
    plans = random_transport(rng, rows, cols, 20)
    plans = Transport(plans.supply * (units // 20), plans.demand * (units // 20))
    costs, beta = scale * rng.normal(size=plans.d), 1 + 5 * rng.random(plans.d)
    point = plans.hull.minimise(costs[None], beta[None], regulariser(1), plans.hull.start(1))
    assert kkt_residual(plans, costs, beta, point) < 1e-9


def test_warm_steps_take_few_iterations_and_stay_optimal() -> None:
    plans = Transport([1, 4, 5], [4, 6])
    rng = np.random.default_rng(3)
    hull, trials = plans.hull, 20
    point, costs = hull.start(trials), np.zeros((trials, plans.d))
    means = rng.uniform(0.1, 0.5, (trials, plans.d))
    beta = np.full(costs.shape, 1.2)
    for _ in range(300):
        point = hull.minimise(costs, beta, regulariser(trials), point)
        assert optimality_gap(plans, costs, beta, regulariser(trials), point).max() < 1e-10
        action = hull.draw(point, rng)
        costs += 0.5 + action / point["x"] * (rng.uniform(0, 2 * means) - 0.5)


def test_the_last_step_depends_on_the_costs_alone() -> None:
    plans, rng = Transport([3, 5, 2], [4, 4, 2]), np.random.default_rng(0)
    costs, beta = 1e5 * rng.random((1, plans.d)), np.full((1, plans.d), 3.0)
    cold = plans.hull.minimise(costs, beta, regulariser(1), plans.hull.start(1))
    near = plans.hull.minimise(costs * 0.99, beta, regulariser(1), plans.hull.start(1))
    warm = plans.hull.minimise(costs, beta, regulariser(1), near)
    assert np.allclose(cold["x"], warm["x"], rtol=1e-9, atol=0)
    assert np.allclose(cold["rest"], warm["rest"], rtol=1e-9, atol=0)


def test_complements_are_exact_when_tiny() -> None:
    # two lanes of a 2 x 2 problem fill up: the other two are tiny, and equal the complement
    plans = Transport([1, 1], [1, 1])
    point = plans.hull.start(1)
    for scale in 10.0 ** np.arange(19):
        costs = scale * np.array([[0.0, 1.0, 1.0, 0.0]])
        point = plans.hull.minimise(costs, np.ones((1, 4)), regulariser(1), point)
    x, rest = point["x"][0], point["rest"][0]
    assert (x[[0, 3]] == 1.0).all()
    # stationarity in the one direction left: c = beta n (1/u) up to terms of order log u
    assert x[1] == pytest.approx(1e-18, rel=1e-9)
    assert np.allclose(rest[[0, 3]], x[[1, 2]], rtol=1e-12, atol=0)


@pytest.mark.parametrize(("rows", "cols"), [(100, 100), (5000, 2)])
def test_steps_of_many_arms_do_not_read_memory_that_was_freed(rows: int, cols: int) -> None:
    rng = np.random.default_rng(rows)
    plans = Transport(np.full(rows, cols), np.full(cols, rows))
    costs, beta = 10 * rng.random((1, plans.d)), 1 + rng.random((1, plans.d))
    point = plans.hull.minimise(costs, beta, regulariser(1), plans.hull.start(1))
    assert kkt_residual(plans, costs[0], beta[0], point) < 1e-9


def two_columns(rows: int, units: int, rng: np.random.Generator) -> Transport:
    """Return plans with two columns, and suppliers of one unit or of up to ``units``."""
    supply = np.ones(rows, dtype=int) if units == 1 else rng.integers(0, units, rows) + 1
    return Transport(supply, [1, supply.sum() - 1] if rows == 2 else [2, supply.sum() - 2])


@pytest.mark.parametrize("rows", [2, 3, 10, 25])
@pytest.mark.parametrize("units", [1, 30])
def test_two_columns_give_the_point_of_any_number_of_columns(rows: int, units: int) -> None:
    rng, trials = np.random.default_rng(rows + units), 50
    plans = two_columns(rows, units, rng)
    hull, point = plans.hull, plans.hull.start(trials)
    assert isinstance(hull, TransportHull)
    for t in range(20):
        costs, beta = t * rng.random((trials, plans.d)), 1 + rng.random((trials, plans.d))
        other = {name: array.copy() for name, array in point.items()}
        given = hull.free, hull.sums, hull.n, costs, beta, regulariser(trials).phi
        assert newton.minimise(*given, *other.values())
        point = hull.minimise(costs, beta, regulariser(trials), point)
        for name in hull.point:
            assert np.allclose(point[name], other[name], rtol=1e-10, atol=0), name


@given(
    seed=st.integers(0, 2**32),
    weights=st.tuples(*[st.floats(0.1, 10)] * 2, *[st.sampled_from([0.0, 0.5, 20.0])] * 2),
    scale=st.sampled_from([0.0, 1.0, 1e3, 1e6, 1e9]),
)
def test_two_columns_give_the_point_for_every_regulariser_from_any_start(
    seed: int, weights: tuple[float, float, float, float], scale: float
) -> None:
    """The start is the minimiser of other costs of any size: steps are long."""
    rng = np.random.default_rng(seed)
    plans = two_columns(int(rng.integers(2, 8)), int(rng.choice([1, 5, 1000])), rng)
    hull, shape = plans.hull, (1, plans.d) if rng.random() < 0.5 else (1,)
    assert isinstance(hull, TransportHull)
    parts = [weight * rng.uniform(0.5, 2, shape) for weight in weights]  # of each arm, or of all
    before, costs = 10.0 ** rng.integers(0, 8) * rng.normal(size=(2, 1, plans.d))
    costs *= scale / abs(costs).max()
    beta, phi = rng.exponential(size=(1, plans.d)) + 0.1, Regulariser(*parts)
    start = hull.minimise(before, beta, phi, hull.start(1))
    point = hull.minimise(costs, beta, phi, start)
    other = hull.start(1)
    given = hull.free, hull.sums, hull.n, costs, beta, phi.phi
    assert newton.minimise(*given, *other.values())
    for name in ("x", "rest"):
        assert np.allclose(point[name], other[name], rtol=1e-8, atol=0), name


def rounded_pairs(x: FloatArray, coins: FloatArray) -> list[int]:
    """Round fractions in [0, 1] with an integer sum, two at a time: a slow twin."""
    left = {i: part for i, part in enumerate(x.tolist()) if part > 0}
    flow, tosses = [0] * len(x), iter(coins.tolist())
    while len(left) > 1:
        (i, f), (j, h) = list(left.items())[:2]
        up, down = min(1 - f, h), min(f, 1 - h)
        change = up if next(tosses) * (up + down) < down else -down
        left[i], left[j] = f + change, h - change
        for k in (i, j):
            if min(left[k], 1 - left[k]) < 1e-12:
                flow[k] = round(left.pop(k))
    for i, part in left.items():
        flow[i] = round(part)
    return flow


@pytest.mark.parametrize("rows", [2, 3, 10, 25])
@pytest.mark.parametrize("units", [1, 30])
def test_two_columns_are_rounded_two_rows_at_a_time(rows: int, units: int) -> None:
    rng, trials = np.random.default_rng(rows + units), 200
    plans = two_columns(rows, units, rng)
    hull, pairs = plans.hull, rounding.pairs_of_arcs
    assert isinstance(hull, TransportHull)
    assert pairs(hull.graph.tail, hull.graph.head, rows)
    assert not pairs(hull.graph.tail[::-1].copy(), hull.graph.head, rows)
    costs = 3 * rng.normal(size=(trials, plans.d))
    point = hull.minimise(costs, np.ones_like(costs), regulariser(trials), hull.start(trials))
    x, rest, coins = point["x"], point["rest"], rng.random(costs.shape)
    flows = np.empty(costs.shape, dtype=np.int64)
    assert rounding.round_flows(*hull.graph.arrays, x, rest, NO_WORDS, coins, flows) == trials
    assert plans.contains(flows).all()
    assert (abs(flows - x) < 1).all()
    first = x[:, ::2]
    slowly = [rounded_pairs(*row) for row in zip(first - np.floor(first), coins, strict=True)]
    assert np.array_equal(flows[:, ::2] - np.floor(first), slowly)


@pytest.mark.parametrize("rows", [10, 25])
def test_rounding_of_many_pairs_has_mean_x(rows: int) -> None:
    """Each arm is floor(x) or ceil(x): a binomial test for every row, at level 1e-6 in all."""
    draws, rng = 20_000, np.random.default_rng(rows)
    plans = Transport(np.ones(rows, dtype=int), [rows // 3, rows - rows // 3])
    costs = 5 * rng.normal(size=(1, plans.d))
    point = plans.hull.minimise(costs, np.ones_like(costs), regulariser(1), plans.hull.start(1))
    many = {name: np.repeat(array, draws, axis=0) for name, array in point.items()}
    ups = plans.hull.draw(many, rng).sum(axis=0)
    for up, fraction in zip(ups[::2], point["x"][0, ::2], strict=True):
        assert stats.binomtest(int(up), draws, fraction).pvalue > 1e-6 / rows


def test_kernel_reports_what_does_not_converge() -> None:
    plans = Transport([1, 1], [1, 1])
    with pytest.raises(ArithmeticError, match="did not converge"):
        plans.hull.minimise(
            np.full((1, 4), np.nan), np.ones((1, 4)), regulariser(1), plans.hull.start(1)
        )
    assert newton.MAX_ITERATIONS < 1000


@pytest.mark.parametrize("demand", [[56, 40], [20, 30, 46]])
def test_steps_to_points_that_are_too_tiny_end(demand: list[int]) -> None:
    """With entropies alone, x is about exp(-costs / beta): a step past it cannot be taken back."""
    plans, one, rng = Transport([24, 28, 20, 24], demand), np.ones(1), np.random.default_rng(0)
    entropies = Regulariser(barrier=0 * one, entropy=one, shannon=one)
    refused = dict.fromkeys((0.3, 3, 30), 0)
    for scale in refused:
        for _ in range(30):
            costs = scale * rng.normal(size=(1, plans.d))
            beta = np.full_like(costs, 0.02)
            try:
                point = plans.hull.minimise(costs, beta, entropies, plans.hull.start(1))
            except ArithmeticError:
                refused[scale] += 1
            else:
                assert optimality_gap(plans, costs, beta, entropies, point) < 1e-7
    assert refused[0.3] == 0
    assert refused[30] > 0


@pytest.mark.slow
@given(plans=transports(side=6), seed=st.integers(0, 2**32))
def test_rounding_keeps_margins_exactly(plans: Transport, seed: int) -> None:
    rng = np.random.default_rng(seed)
    start = plans.hull.start(4)
    costs, beta = 10 * rng.normal(size=(4, plans.d)), np.ones((4, plans.d))
    point = plans.hull.minimise(costs, beta, regulariser(4), start)
    action = plans.hull.draw(point, rng)
    assert plans.contains(action).all()
    slack = 1e-9 * plans.M
    assert (action >= np.floor(point["x"] - slack)).all()
    assert (action <= np.ceil(point["x"] + slack)).all()


@pytest.mark.parametrize("units", [10, 10**9])
def test_rounding_has_mean_x(units: int) -> None:
    """Each arm is floor(x) or ceil(x): a binomial test for every arm, at level 1e-6 in all."""
    draws = 20_000
    plans = Transport(np.array([1, 4, 5]) * units // 10, np.array([4, 6]) * units // 10)
    rng = np.random.default_rng(1)
    costs, beta = 5 * rng.normal(size=(1, plans.d)), np.ones((1, plans.d))
    point = plans.hull.minimise(costs, beta, regulariser(1), plans.hull.start(1))
    x = point["x"][0]
    many = {name: np.repeat(array, draws, axis=0) for name, array in point.items()}
    ups = (plans.hull.draw(many, rng) > x).sum(axis=0)
    for up, fraction in zip(ups, x - np.floor(x), strict=True):
        assert stats.binomtest(int(up), draws, fraction).pvalue > 1e-6 / plans.d


def test_rounding_of_pairs_of_arms_keeps_every_margin_mean() -> None:
    """The number of units on any set of arms has mean sum x: z-test at level 1e-6."""
    draws, rng = 20_000, np.random.default_rng(5)
    plans = random_transport(rng, 5, 4, 13)
    many = plans.hull.start(draws)
    action = plans.hull.draw(many, rng)
    for _ in range(20):
        arms = rng.random(plans.d) < 0.5
        units = action[:, arms].sum(axis=1)
        error = units.std() / np.sqrt(draws)
        assert (
            abs(units.mean() - many["x"][0, arms].sum()) <= stats.norm.isf(1e-6 / 40) * error + 1e-9
        )
