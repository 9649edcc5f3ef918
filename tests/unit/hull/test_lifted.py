"""The lifted hull: its minimisers against cvxpy over a list, and the distribution of its draws."""

import numpy as np
import pytest

from multiplay import Regulariser
from multiplay.hull import LiftedHull
from multiplay.types import FloatArray, IntArray

PLANS = np.array([[4, 0, 1], [2, 2, 0], [0, 4, 1], [3, 1, 2], [1, 1, 2], [0, 0, 3]])
HEIGHTS = np.array([1.0, 2.0, 1.0, 0.4, 3.0, 0.7])
N = PLANS.max(axis=0)


def lifted_hull(plans: IntArray, heights: FloatArray) -> LiftedHull:
    def cheapest(costs: FloatArray, weight: float) -> IntArray:
        best: IntArray = plans[(plans @ costs + weight * heights).argmin()]
        return best

    def known(action: IntArray) -> float:
        return float(heights[(plans == action).all(axis=1).argmax()])

    return LiftedHull(cheapest, known, plans.max(axis=0))


def by_cvxpy(costs: FloatArray, beta: FloatArray, weight: float) -> tuple[FloatArray, float]:
    """Return x and the objective of the best mixture of all plans, with barrier and entropy."""
    import cvxpy as cp

    w = cp.Variable(len(PLANS), nonneg=True)
    u, v = (PLANS.T / N[:, None]) @ w, ((N - PLANS).T / N[:, None]) @ w
    phi = cp.multiply(N, u - 1 - cp.log(u) + u - cp.entr(v))
    objective = costs @ (PLANS.T @ w) + weight * (HEIGHTS @ w) + beta @ phi
    problem = cp.Problem(cp.Minimize(objective), [cp.sum(w) == 1])
    problem.solve(solver=cp.CLARABEL)
    return PLANS.T @ w.value, problem.value


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0, 40.0])
def test_minimisers_are_those_of_the_list(weight: float) -> None:
    rng, hull = np.random.default_rng(7), lifted_hull(PLANS, HEIGHTS)
    costs, beta = rng.normal(size=(4, 3)), rng.uniform(0.05, 3.0, (4, 3))
    regulariser = Regulariser(barrier=np.ones(4), entropy=np.ones(4))
    point = hull.lifted(costs, beta, regulariser, hull.start(4), np.full(4, weight))
    assert np.allclose(point["weights"].sum(axis=1), 1.0)
    assert (point["weights"] >= 0).all()
    mean = (point["weights"][:, :, None] * point["atoms"]).sum(axis=1)
    assert np.allclose(mean, point["x"], atol=1e-12)
    assert np.allclose(point["x"] + point["rest"], N)
    for t in range(4):
        x, least = by_cvxpy(costs[t], beta[t], weight)
        u, v = point["x"][t] / N, point["rest"][t] / N
        phi = N * (u - 1 - np.log(u) + u + v * np.log(v))
        value = costs[t] @ point["x"][t] + weight * hull.height(point)[t] + beta[t] @ phi
        assert value <= least + 1e-4
        assert np.abs(point["x"][t] - x).max() < 0.05


def test_the_height_is_the_lower_envelope() -> None:
    """Two depots of cost 1: half of each plan (4, 0), (0, 4) costs 1, the plan (2, 2) costs 2."""
    hull = lifted_hull(np.array([[4, 0], [2, 2], [0, 4]]), np.array([1.0, 2.0, 1.0]))
    one = Regulariser(barrier=np.ones(1), entropy=np.ones(1))
    point = hull.lifted(np.zeros((1, 2)), np.ones((1, 2)), one, hull.start(1), np.ones(1))
    assert np.allclose(point["x"], 2.0, atol=1e-3)
    assert hull.height(point)[0] == pytest.approx(1.0, abs=1e-3)


def test_draws_have_the_mean_of_the_point() -> None:
    """2,000 draws; a false alarm has a probability below 1e-6 for each arm (5 deviations)."""
    hull = lifted_hull(PLANS, HEIGHTS)
    one = Regulariser(barrier=np.ones(1), entropy=np.ones(1))
    costs, beta = np.array([[0.2, -0.1, 0.4]]), np.full((1, 3), 0.5)
    point = hull.lifted(costs, beta, one, hull.start(1), np.ones(1))
    many = {name: np.repeat(array, 2000, axis=0) for name, array in point.items()}
    drawn = hull.draw(many, np.random.default_rng(3))
    deviation = drawn.std(axis=0) / np.sqrt(2000)
    assert (np.abs(drawn.mean(axis=0) - point["x"][0]) < 5 * deviation + 1e-9).all()


def test_a_warm_start_changes_nothing_that_matters() -> None:
    hull, rng = lifted_hull(PLANS, HEIGHTS), np.random.default_rng(1)
    one, beta = Regulariser(barrier=np.ones(1), entropy=np.ones(1)), np.full((1, 3), 0.3)
    warm = hull.start(1)
    for _ in range(10):
        costs = rng.normal(size=(1, 3))
        warm = hull.lifted(costs, beta, one, warm, np.ones(1))
        fresh = hull.lifted(costs, beta, one, hull.start(1), np.ones(1))
        assert np.abs(warm["x"] - fresh["x"]).max() < 0.02
