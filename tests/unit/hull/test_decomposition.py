"""The FTRL step over the hull of a set that is known by its oracle only."""

from collections.abc import Callable
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_kernel import in_kernel
from scipy import stats

from multiplay import Transport
from multiplay.hull import Regulariser
from multiplay.hull.decomposition import DecompositionHull
from multiplay.kernels import decomposition as kernels
from multiplay.random import POLICY, Streams
from multiplay.testing.strategies import random_transport
from multiplay.types import Arrays, FloatArray, IntArray

LOG_T = np.log(10_000)
EXACT = ("x", "rest", "atoms", "weights")  # what a point is; the rest is a help for the next
FORCED_AND_EMPTY = [[1, 2, 0, 3], [4, 2, 0, 1], [2, 2, 0, 0]]
DEGENERATE = {
    "one action": [[2, 0, 1]],
    "one arm": [[0], [3]],
    "one arm, one action": [[3]],
    "two actions": [[0, 3, 1], [2, 0, 1]],
    "forced and empty arms": FORCED_AND_EMPTY,
    "holes": [[0, 3], [2, 2], [5, 0]],
    "interior actions": [[0, 0], [4, 0], [0, 4], [4, 4], [2, 2], [1, 3]],
    "large": [[0, 10**9, 1], [10**9, 0, 0], [10**6, 10**6, 10**6]],
}


def regulariser(trials: int) -> Regulariser:
    return Regulariser(barrier=np.ones(trials), entropy=np.full(trials, LOG_T))


@dataclass
class Oracle:
    """What the hull is told about a set."""

    n: IntArray
    oracle: Callable[[FloatArray], IntArray]

    @property
    def hull(self) -> DecompositionHull:
        """All digits there are; test_simplex_hull.py has the steps that stop before."""
        return DecompositionHull(self.oracle, self.n, gap=0.0)


def explicit(actions: list[list[int]] | IntArray) -> Oracle:
    rows = np.array(actions, dtype=np.int64)
    return Oracle(rows.max(axis=0), lambda costs: rows[(costs @ rows.T).argmin(axis=1)])


def m_set(d: int, m: int) -> Oracle:
    def oracle(costs: FloatArray) -> IntArray:
        rank = costs.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        return (rank < m).astype(np.int64)

    return Oracle(np.ones(d, dtype=np.int64), oracle)


def knapsack(sizes: IntArray, capacity: int, copies: int) -> Oracle:
    """sum_i sizes_i a_i <= capacity, a_i <= copies, by the textbook recursion over items."""
    n = np.minimum(copies, capacity // sizes)
    items = np.repeat(np.arange(len(n)), n)

    def oracle(costs: FloatArray) -> IntArray:
        best = np.zeros((len(costs), capacity + 1))
        taken = np.zeros((len(items), len(costs), capacity + 1), dtype=bool)
        for copy, item in enumerate(items):
            size, left = sizes[item], best[:, : capacity + 1 - sizes[item]]
            with_item = left + costs[:, item, None]
            taken[copy, :, size:] = with_item < best[:, size:]
            best[:, size:] = np.minimum(with_item, best[:, size:])
        action = np.zeros(costs.shape, dtype=np.int64)
        rows, room = np.arange(len(costs)), np.full(len(costs), capacity)
        for copy in reversed(range(len(items))):
            take = taken[copy, rows, room]
            action[:, items[copy]] += take
            room -= take * sizes[items[copy]]
        return action

    return Oracle(n, oracle)


PLANS = Transport([3, 5, 2], [4, 4, 2])
SETS: dict[str, Oracle] = {
    "m-set": m_set(5, 2),
    "wide m-set": m_set(12, 5),
    "transport": Oracle(PLANS.n, PLANS.oracle),
    "knapsack": knapsack(np.random.default_rng(0).integers(1, 31, 20), 100, 1),
    "integer knapsack": knapsack(np.random.default_rng(1).integers(1, 31, 8), 60, 3),
    "explicit": explicit(np.random.default_rng(2).integers(0, 6, (30, 6))),
    "forced and empty arms": explicit(FORCED_AND_EMPTY),
    "holes": explicit(DEGENERATE["holes"]),
}


def gap(known: Oracle, costs: FloatArray, beta: FloatArray, point: Arrays) -> float:
    """max over a in A of <gradient, x - a>, a bound on what is left to gain, per unit of costs."""
    x, rest, n = point["x"], point["rest"], known.n
    free = (x > 0) & (rest > 0)
    u, v = np.where(free, x / np.maximum(n, 1), 0.5), np.where(free, rest / np.maximum(n, 1), 0.5)
    gradient = np.where(free, costs + beta * (1 - 1 / u - LOG_T * np.log(v)), 0.0)
    gaps = (gradient * (x - known.oracle(gradient))).sum(axis=1)
    return float((gaps / (1 + np.abs(costs) @ n)).max())


def check_mixture(known: Oracle, point: Arrays) -> None:
    x, rest, atoms, weights = (point[name] for name in EXACT)
    assert (weights >= 0).all()
    assert np.allclose(weights.sum(axis=1), 1, rtol=0, atol=1e-14)
    assert np.allclose(np.einsum("ts,tsd->td", weights, atoms), x, rtol=1e-12, atol=0)
    assert np.allclose(np.einsum("ts,tsd->td", weights, known.n - atoms), rest, rtol=1e-12, atol=0)


def slow_twin(actions: IntArray, costs: FloatArray, beta: FloatArray) -> FloatArray:
    """Minimise over the weights of all actions by cvxpy and Clarabel."""
    n = actions.max(axis=0)
    free = np.flatnonzero(actions.min(axis=0) < n)
    weights = cp.Variable(len(actions), nonneg=True)
    x = actions[:, free].T @ weights
    u = cp.multiply(x, 1 / n[free])
    phi = u - 1 - cp.log(u) + LOG_T * (u - cp.entr(1 - u))
    objective = costs[free] @ x + cp.sum(cp.multiply(beta[free] * n[free], phi))
    cp.Problem(cp.Minimize(objective), [cp.sum(weights) == 1]).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
    )
    answer: FloatArray = n.astype(float)
    answer[free] = np.asarray(x.value)
    return answer


@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("seed", range(6))
def test_step_equals_cvxpy(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    size, d = int(rng.integers(2, 25)), int(rng.integers(1, 6))
    actions = rng.integers(0, 4, (size, d))
    known = explicit(actions)
    costs, beta = scale * rng.normal(size=(1, d)), 1 + rng.random((1, d))
    point = known.hull.minimise(costs, beta, regulariser(1), known.hull.start(1))
    # Clarabel stops at a relative gap of 1e-10, so x is right to about its square root
    assert np.allclose(point["x"][0], slow_twin(actions, costs[0], beta[0]), atol=4e-5)
    assert gap(known, costs, beta, point) < 1e-11


@pytest.mark.parametrize("scale", [0.1, 10.0, 1e3, 1e5])
@pytest.mark.parametrize("seed", range(4))
def test_step_equals_that_of_the_transport_hull(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    plans = random_transport(rng, int(rng.integers(2, 5)), int(rng.integers(2, 5)), 20)
    hull, trials = DecompositionHull(plans.oracle, plans.n, gap=0.0), 5
    costs, beta = scale * rng.normal(size=(trials, plans.d)), 1 + rng.random((trials, plans.d))
    point = hull.minimise(costs, beta, regulariser(trials), hull.start(trials))
    twin = plans.hull.minimise(costs, beta, regulariser(trials), plans.hull.start(trials))
    # relative: arms with x near 1e-5 count, and so do complements that small
    assert np.allclose(point["x"], twin["x"], rtol=1e-9, atol=0)
    assert np.allclose(point["rest"], twin["rest"], rtol=1e-9, atol=0)


@given(
    seed=st.integers(0, 2**32),
    d=st.integers(1, 7),
    size=st.integers(1, 30),
    units=st.sampled_from([1, 2, 5, 1000, 10**9]),
    scale=st.floats(-1, 5).map(lambda power: 10.0**power),
)
def test_any_set_and_any_scale(seed: int, d: int, size: int, units: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    actions = rng.integers(0, units + 1, (size, d)) * (rng.random(d) < 0.9)
    known = explicit(np.where(rng.random(d) < 0.1, actions[0], actions))
    hull, trials = known.hull, 3
    costs, beta = scale * rng.normal(size=(trials, d)), 1 + 5 * rng.random((trials, d))
    point = hull.minimise(costs, beta, regulariser(trials), hull.start(trials))
    assert gap(known, costs, beta, point) < 1e-11
    check_mixture(known, point)


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_sets(name: str) -> None:
    actions, rng = np.array(DEGENERATE[name]), np.random.default_rng(0)
    known, trials = explicit(actions), 20
    hull, forced = known.hull, actions.min(axis=0) == actions.max(axis=0)
    scales = 10.0 ** rng.uniform(-1, 5, (trials, 1))
    costs = scales * rng.normal(size=(trials, len(known.n)))
    beta = 1 + rng.random(costs.shape)
    point = hull.minimise(costs, beta, regulariser(trials), hull.start(trials))
    assert gap(known, costs, beta, point) < 1e-11
    check_mixture(known, point)
    assert (point["x"][:, forced] == known.n[forced]).all()
    assert (point["rest"][:, forced] == 0).all()
    assert (point["x"][:, ~forced] > 0).all()
    assert (point["rest"][:, ~forced] > 0).all()


@pytest.mark.parametrize("name", SETS)
def test_start_is_interior_and_small(name: str) -> None:
    known = SETS[name]
    point = known.hull.start(2)
    check_mixture(known, point)
    both = known.oracle(np.concatenate([np.eye(len(known.n)), -np.eye(len(known.n))]))
    free = both.min(axis=0) < known.n
    assert (point["x"][:, free] > 0).all()
    assert (point["rest"][:, free] > 0).all()
    used = point["atoms"][0][point["weights"][0] > 0]
    assert np.linalg.matrix_rank(used[1:] - used[0]) == len(used) - 1


@pytest.mark.parametrize("name", SETS)
def test_rounds_of_a_bandit(name: str) -> None:
    """costs_i += q_i + a_i / x_i (k_i - q_i) for 300 rounds; three trials begin at -1e5 to 1e5."""
    known, rng, trials = SETS[name], np.random.default_rng(7), 6
    hull, shape = known.hull, (trials, len(known.n))
    costs = rng.normal(size=shape) * np.array([0, 0, 0, 100, 1e4, 1e5])[:, None]
    beta2, point = np.full(shape, 1.44), hull.start(trials)
    means, n = rng.uniform(0.1, 0.9, shape), np.maximum(known.n, 1)
    for _ in range(300):
        beta = np.sqrt(beta2)
        point = hull.minimise(costs, beta, regulariser(trials), point)
        assert gap(known, costs, beta, point) < 1e-11
        check_mixture(known, point)
        action = hull.draw(point, rng)
        error = np.where(action > 0, (rng.random(shape) < means) - 0.5, 0.0)
        u = np.maximum(point["x"], 1e-100) / n
        costs += 0.5 + action / n / u * error
        beta2 += (action / n * error) ** 2 * np.minimum(1, 2 * point["rest"] / n / u**2) / LOG_T


@pytest.mark.parametrize("name", ["wide m-set", "integer knapsack", "explicit"])
def test_the_last_step_depends_on_the_costs_alone(name: str) -> None:
    known, rng, trials = SETS[name], np.random.default_rng(0), 5
    hull, shape = known.hull, (trials, len(known.n))
    costs, beta = 1e3 * rng.normal(size=shape), 1 + rng.random(shape)
    cold = hull.minimise(costs, beta, regulariser(trials), hull.start(trials))
    near = hull.minimise(0.9 * costs + 1, beta, regulariser(trials), hull.start(trials))
    warm = hull.minimise(costs, beta, regulariser(trials), near)
    assert np.allclose(cold["x"], warm["x"], rtol=1e-8, atol=0)


@pytest.mark.parametrize("name", ["m-set", "knapsack", "transport"])
def test_a_trial_depends_on_its_own_row_and_warm_is_left_alone(name: str) -> None:
    known, rng, trials = SETS[name], np.random.default_rng(4), 4
    hull, shape = known.hull, (trials, len(known.n))
    costs, beta = 20 * rng.normal(size=shape), 1 + rng.random(shape)
    warm = hull.minimise(costs, beta, regulariser(trials), hull.start(trials))
    before = {name: array.copy() for name, array in warm.items()}
    costs += 20 * rng.normal(size=shape)
    together = hull.minimise(costs, beta, regulariser(trials), warm)
    assert all(np.array_equal(warm[name], before[name], equal_nan=True) for name in hull.point)
    for k in range(trials):
        row = {name: array[k : k + 1] for name, array in warm.items()}
        alone = hull.minimise(costs[k : k + 1], beta[k : k + 1], regulariser(1), row)
        assert all((alone[name][0] == together[name][k]).all() for name in EXACT)


@pytest.mark.parametrize("seed", range(20))
def test_heavy_rows_do_not_drown_light_ones(seed: int) -> None:
    """A consistent system with rows of weight 1 and 1e12 keeps its solution."""
    rng = np.random.default_rng(seed)
    rows, cols = 9, 6
    differences, solution = rng.integers(-3, 4, (rows, cols)), rng.integers(-9, 10, cols)
    # three heavy rows: they alone do not determine the solution
    roots = np.where(np.arange(rows) % 3 == seed % 3, 1e12, 1.0) * rng.uniform(1, 2, rows)
    matrix, right = roots[:, None] * differences, roots * (differences @ solution)
    order, dw = np.empty(cols, dtype=np.int64), np.empty(cols + 1)
    work, norms = np.empty(cols), np.empty(cols)
    rank = kernels.triangulate(matrix, right, cols, 3 * roots, order, work, norms)
    assert rank == cols
    in_kernel(kernels.newton_step)(matrix, right, rank, order, dw)
    assert np.allclose(dw[1:], solution, rtol=0, atol=1e-10)
    assert dw[0] == pytest.approx(-solution.sum(), abs=1e-10)


def test_complements_are_exact_when_tiny() -> None:
    # stationarity on {(0, 1), (1, 0)}: c = beta n (1/u) up to terms of order log u
    known = explicit([[0, 1], [1, 0]])
    hull, point = known.hull, known.hull.start(1)
    for scale in 10.0 ** np.arange(13):
        point = hull.minimise(np.array([[0, scale]]), np.ones((1, 2)), regulariser(1), point)
    assert point["x"][0, 1] == pytest.approx(1e-12, rel=1e-9)
    assert point["rest"][0, 0] == point["x"][0, 1]


def test_an_arm_that_fills_up_freely_keeps_a_complement() -> None:
    # rest / n = exp(-c / beta entropy) would be 10^-4700: it stays a positive float, below 1e-16
    known = explicit([[0], [3]])
    costs = np.array([[-1e5]])
    point = known.hull.minimise(costs, np.ones((1, 1)), regulariser(1), known.hull.start(1))
    assert 0 < point["rest"][0, 0] < 1e-15
    assert point["x"][0, 0] == 3
    # above the floor it is the root of c + n phi'(x) / n = 0
    costs = np.array([[-100.0]])
    point = known.hull.minimise(costs, np.ones((1, 1)), regulariser(1), known.hull.start(1))
    v = point["rest"][0, 0] / 3
    assert 1 - 1 / (1 - v) - LOG_T * np.log(v) == pytest.approx(100, rel=1e-12)


@pytest.mark.parametrize("name", ["m-set", "integer knapsack", "holes"])
def test_draws_are_actions_with_mean_x(name: str) -> None:
    """Every atom is drawn with its weight: a chi-squared test at level 1e-6."""
    known, rng, draws = SETS[name], np.random.default_rng(3), 20_000
    costs, beta = rng.normal(size=(1, len(known.n))), np.ones((1, len(known.n)))
    point = known.hull.minimise(costs, beta, regulariser(1), known.hull.start(1))
    many = {name: np.repeat(array, draws, axis=0) for name, array in point.items()}
    used = point["weights"][0] * draws > 5
    atoms, weights = point["atoms"][0][used], point["weights"][0][used]
    drawn = (known.hull.draw(many, rng)[:, None] == atoms).all(axis=2).sum(axis=0)
    assert drawn.sum() >= draws * (weights.sum() - 0.01)
    assert stats.chisquare(drawn, drawn.sum() * weights / weights.sum()).pvalue > 1e-6


def test_draws_take_one_number_of_each_stream() -> None:
    known, trials = SETS["m-set"], 5
    point, streams = known.hull.start(trials), Streams.spawn(0, POLICY, range(trials))
    action = known.hull.draw(point, streams)
    expected = Streams.spawn(0, POLICY, range(trials)).random((trials, 2))
    assert (streams.random((trials, 1))[:, 0] == expected[:, 1]).all()
    chosen = (point["weights"].cumsum(axis=1) <= expected[:, :1]).sum(axis=1)
    assert (action == point["atoms"][np.arange(trials), chosen]).all()


def test_an_inexact_oracle_is_found_out() -> None:
    # the minimiser is on the edge from (2, 2) to (5, 0), and known: (0, 3) is no answer any more
    honest, costs, beta = SETS["holes"], np.array([[-100.0, -100.0]]), np.ones((1, 2))
    hull = honest.hull
    warm = hull.minimise(costs, beta, regulariser(1), hull.start(1))
    hull.oracle = lambda costs: honest.oracle(-costs)
    with pytest.raises(ArithmeticError, match="oracle is not exact"):
        hull.minimise(costs, beta, regulariser(1), warm)


def test_costs_that_are_not_finite_are_reported() -> None:
    hull = SETS["m-set"].hull
    with pytest.raises(ArithmeticError, match="did not converge"):
        hull.minimise(np.full((1, 5), np.nan), np.ones((1, 5)), regulariser(1), hull.start(1))
