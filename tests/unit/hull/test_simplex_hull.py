"""FTRL steps that stop at a harmless gap: the gap is proved anew, without the code that made it."""

import warnings
from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest

import multiplay as mp
from multiplay import ActionSet
from multiplay.hull import DecompositionHull, Regulariser, decomposition
from multiplay.hull.decomposition import HARMLESS, SHARE
from multiplay.types import Arrays, FloatArray, IntArray

Rng = np.random.Generator
Oracle = Callable[[FloatArray], IntArray]


@pytest.fixture(autouse=True)
def _quick_even_on_a_few_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decomposition, "SMALL", 0)


def plain_packing(sack: mp.Knapsack, costs: FloatArray) -> IntArray:
    """Return the cheapest packing by the textbook table over items and capacities."""
    weights, room = sack.weights.astype(np.int64), int(sack.capacity)
    best, kept = np.zeros(room + 1), []
    for i, weight in enumerate(weights):
        options = np.full((int(sack.n[i]) + 1, room + 1), np.inf)
        for units in range(int(sack.n[i]) + 1):
            options[units, units * weight :] = best[: room + 1 - units * weight] + units * costs[i]
        kept.append(options.argmin(axis=0))
        best = options.min(axis=0)
    action, left = np.zeros(len(weights), dtype=np.int64), room
    for i in reversed(range(len(weights))):
        action[i] = kept[i][left]
        left -= action[i] * weights[i]
    return action


def random_knapsack(rng: Rng, most_items: int = 12) -> mp.Knapsack:
    """Weights from 0, limits from 1, a capacity that is short, ample or enough for all."""
    d = int(rng.integers(1, most_items + 1))
    weights = rng.integers(rng.integers(2), rng.integers(2, 31), d)
    limits = rng.integers(1, rng.choice([2, 3, 6]), d)
    capacity = max(1, int(rng.uniform(0.05, 1.05) * (weights @ limits)))
    return mp.Knapsack(weights, capacity, limits=limits)


def random_trees(rng: Rng) -> mp.SpanningTree:
    nodes = int(rng.integers(2, 7))
    more = [(v, w) for v in range(nodes) for w in range(v + 2, nodes) if rng.random() < 0.6]
    return mp.SpanningTree([(v, v + 1) for v in range(nodes - 1)] + more)


def random_list(rng: Rng) -> mp.Explicit:
    return mp.Explicit(np.unique(rng.integers(0, 4, rng.integers(1, (30, 7), 2)), axis=0))


def few_actions(rng: Rng) -> mp.Explicit:
    return mp.Explicit(np.unique(rng.integers(0, 3, rng.integers(1, 6, 2)), axis=0))


def parts(rng: Rng, trials: int, d: int) -> Regulariser:
    """Return phi as GenLBINFV, Hybrid and GenAdaINF have it."""
    one, g = np.ones(trials), rng.uniform(1, 12)
    return [
        Regulariser(barrier=one, entropy=g * one),
        Regulariser(barrier=0 * one, entropy=one, root=one),
        Regulariser(barrier=rng.uniform(0.1, 2, (trials, d)), entropy=g * one, shannon=g * one),
    ][rng.integers(3)]


def objective(
    x: FloatArray, n: IntArray, costs: FloatArray, beta: FloatArray, phi: FloatArray
) -> float:
    """<costs, x> + sum beta phi(x) of one trial, forced arms left out."""
    free = n > 0
    u = np.clip(x[free] / n[free], 1e-300, 1)
    v = np.clip(1 - u, 1e-300, 1)
    barrier, entropy, root, shannon = np.broadcast_to(phi, (len(n), 4))[free].T
    each = barrier * (u - 1 - np.log(u)) + entropy * (u + v * np.log(v)) - root * np.sqrt(u)
    each += shannon * (1 - u + u * np.log(u))
    return float(costs @ x + (beta * n)[free] @ each)


def proved_gap(
    oracle: Oracle, n: IntArray, costs: FloatArray, beta: FloatArray, phi: FloatArray, point: Arrays
) -> FloatArray:
    """max over a in A of <gradient, x - a>, for every trial."""
    gaps = np.zeros(len(costs))
    for t, (x, rest) in enumerate(zip(point["x"], point["rest"], strict=True)):
        free = (x > 0) & (rest > 0)
        u, v = x[free] / n[free], rest[free] / n[free]
        barrier, entropy, root, shannon = np.broadcast_to(phi[t], (len(n), 4))[free].T
        gradient = np.zeros(len(n))
        slope = barrier * (1 - 1 / u) - entropy * np.log(v) - root / 2 / np.sqrt(u)
        gradient[free] = costs[t, free] + beta[t, free] * (slope + shannon * np.log(u))
        gaps[t] = gradient @ (x - oracle(gradient))
    return gaps


def check_mixture(actions: ActionSet, point: Arrays) -> None:
    weights, atoms = point["weights"], point["atoms"]
    assert (weights >= 0).all()
    assert np.allclose(weights.sum(axis=1), 1, rtol=0, atol=1e-14)
    assert actions.contains(atoms[weights > 0]).all()
    for name, units in (("x", atoms), ("rest", actions.n - atoms)):
        mean = np.einsum("ts,tsd->td", weights, units)
        assert np.allclose(mean, point[name], rtol=1e-12, atol=0)


def play(rng: Rng, actions: ActionSet, oracle: Oracle, rounds: int) -> None:
    """Take the steps of some rounds, and prove every one of them."""
    trials = int(rng.integers(1, 4))
    hull, psi = actions.hull, parts(rng, trials, actions.d)
    point, costs = hull.start(trials), np.zeros((trials, actions.d))
    beta = 10 ** rng.uniform(-1, 1) * rng.uniform(0.5, 1.5, costs.shape)
    size = 10 ** rng.uniform(-1, 1.5)
    for _ in range(rounds):
        costs = costs + size * rng.exponential(1, costs.shape) * rng.normal(0.3, 1, costs.shape)
        beta *= rng.uniform(1, 1.1, costs.shape)
        point = hull.minimise(costs, beta, psi, point)
        check_mixture(actions, point)
        gap = proved_gap(oracle, actions.n, costs, beta, psi.phi, point)
        # tangents of logarithms, where an arm is all but full or empty
        allowed = 1.2 * hull.harmless(costs, beta, psi)
        smaller = np.minimum(point["x"], point["rest"])
        near = (smaller < 1e-8) & (actions.argmin(np.eye(actions.d)).min(axis=0) < actions.n)
        assert ((gap <= allowed) | near.any(axis=1)).all()


@pytest.mark.parametrize("sets", [30, pytest.param(6000, marks=pytest.mark.soak)])
def test_every_step_over_a_knapsack_is_proved_by_another_oracle(sets: int) -> None:
    """About 8 rounds and 2 trials each: 10^5 steps in the soak."""
    rng = np.random.default_rng(sets)
    for _ in range(sets):
        sack = random_knapsack(rng)
        play(rng, sack, lambda costs, sack=sack: plain_packing(sack, costs), rounds=8)  # type: ignore[misc]


@pytest.mark.parametrize("draw", [random_trees, random_list, few_actions])
@pytest.mark.parametrize("sets", [10, pytest.param(1000, marks=pytest.mark.soak)])
def test_every_step_is_proved_by_a_list_of_all_actions(
    draw: Callable[[Rng], ActionSet], sets: int
) -> None:
    rng = np.random.default_rng(sets)
    for _ in range(sets):
        actions = draw(rng)
        every = actions.enumerate()
        play(rng, actions, lambda costs, every=every: every[(every @ costs).argmin()], rounds=6)  # type: ignore[misc]


def flow_form(sack: mp.Knapsack, costs: FloatArray, beta: FloatArray, g: float) -> float:
    """Return the minimum over flows: a node for each item and load, an arc for each count.

    NaN where Clarabel itself says that its answer may be inaccurate.
    """
    room, weights = int(sack.capacity), sack.weights.astype(np.int64)
    arcs, units = [], []
    for i, weight in enumerate(weights):
        for load in range(room + 1):
            for count in range(int(sack.n[i]) + 1):
                if load + count * weight <= room:
                    arcs.append(
                        (i * (room + 1) + load, (i + 1) * (room + 1) + load + count * weight)
                    )
                    units.append((i, count))
    balance = np.zeros(((len(weights) + 1) * (room + 1), len(arcs)))
    taken = np.zeros((len(weights), len(arcs)))
    for arc, ((tail, head), (item, count)) in enumerate(zip(arcs, units, strict=True)):
        balance[tail, arc] -= 1
        balance[head, arc] += 1
        taken[item, arc] = count
    inner = slice(room + 1, len(weights) * (room + 1))
    flow = cp.Variable(len(arcs), nonneg=True)
    free = sack.n > 0
    x = taken[free] @ flow
    u = cp.multiply(x, 1 / sack.n[free])
    phi = u - 1 - cp.log(u) + g * (u - cp.entr(1 - u))
    goal = costs[free] @ x + cp.sum(cp.multiply((beta * sack.n)[free], phi))
    sums = [balance[inner] @ flow == 0, balance[0] @ flow == -1, balance[1 : room + 1] @ flow == 0]
    problem = cp.Problem(cp.Minimize(goal), sums)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL)
    return float(problem.value) if problem.status == cp.OPTIMAL else np.nan


@pytest.mark.parametrize("problems", [12, pytest.param(1000, marks=pytest.mark.soak)])
def test_steps_over_knapsacks_are_as_good_as_clarabel_over_flows(problems: int) -> None:
    """f is at most the gap above its minimum; Clarabel's own error is 1e-6 of the terms."""
    rng, compared = np.random.default_rng(0), 0
    for _ in range(problems):
        sack = random_knapsack(rng, 5)
        sack = mp.Knapsack(
            sack.weights, min(sack.capacity, 25), limits=sack.n + (sack.weights == 0)
        )
        costs, beta = 3 * rng.normal(size=(1, sack.d)), 1 + rng.random((1, sack.d))
        psi = Regulariser(barrier=np.ones(1), entropy=np.full(1, 5.0))
        point = sack.hull.minimise(costs, beta, psi, sack.hull.start(1))
        mine = objective(point["x"][0], sack.n, costs[0], beta[0], psi.phi[0])
        least = flow_form(sack, costs[0], beta[0], 5.0)
        if np.isnan(least):
            continue
        compared += 1
        error = 1e-6 * (1 + np.abs(costs[0]) @ sack.n + abs(least))
        assert least - error <= mine <= least + sack.hull.harmless(costs, beta, psi)[0] + error
    assert compared >= 0.98 * problems


def test_a_smaller_gap_is_a_setting() -> None:
    rng = np.random.default_rng(0)
    sack = mp.Knapsack(rng.integers(1, 31, 15), 80, limits=2)
    costs, beta = -5 * rng.random((1, 15)), np.full((1, 15), 1.2)
    psi = Regulariser(barrier=np.ones(1), entropy=np.full(1, 9.0))
    points, gaps = [], []
    for gap in (HARMLESS, 1e-3 * HARMLESS, 0.0):
        hull = DecompositionHull(sack.oracle, sack.n, gap=gap)
        points.append(hull.minimise(costs, beta, psi, hull.start(1)))
        gaps.append(proved_gap(sack.argmin, sack.n, costs, beta, psi.phi, points[-1])[0])
        assert gaps[-1] <= 1.001 * hull.harmless(costs, beta, psi)[0]
    assert gaps[2] < 1e-11
    # 2 gap >= the squared distance in the local norm, which is at least beta |dx|^2 here
    for point, gap in zip(points, gaps, strict=True):
        assert ((point["x"] - points[2]["x"]) ** 2).sum() <= 4 * gap + 1e-20


def test_the_harmless_gap_is_the_share_that_is_stated() -> None:
    assert SHARE**2 / 2 == HARMLESS
    sack = mp.Knapsack([3, 4, 5], 10)
    psi = Regulariser(barrier=np.ones(2), entropy=np.ones(2))
    beta = np.array([[1.0, 2.0, 4.0], [8.0, 1.0, 1.0]])
    gaps = sack.hull.harmless(np.zeros((2, 3)), beta, psi)
    assert np.allclose(gaps, HARMLESS / np.array([4.0, 8.0]), rtol=1e-15)


def test_better_is_told_what_gap_is_harmless() -> None:
    told: list[float] = []
    sack = mp.Knapsack([3, 4, 5, 7], 15)

    def better(costs: FloatArray, known: IntArray, harmless: float) -> IntArray:
        told.append(harmless)
        assert np.ptp(known @ costs) <= 1e-3 * (1 + np.abs(costs).sum())
        best = sack.argmin(costs)
        return known[0] if (known[0] - best) @ costs <= harmless else best

    hull = DecompositionHull(sack.oracle, sack.n, better)
    costs, beta = np.array([[-5.0, -7.0, -2.0, -9.0]]), np.ones((1, 4))
    psi = Regulariser(barrier=np.ones(1), entropy=np.full(1, 5.0))
    point = hull.minimise(costs, beta, psi, hull.start(1))
    gap = proved_gap(sack.argmin, sack.n, costs, beta, psi.phi, point)[0]
    assert gap <= 1.001 * hull.harmless(costs, beta, psi)[0]
    assert told
    assert set(told) == {0.5 * HARMLESS}


def test_a_lost_inverse_is_computed_anew() -> None:
    rng = np.random.default_rng(0)
    sack = mp.Knapsack(rng.integers(1, 31, 15), 80, limits=2)
    costs, beta = -5 * rng.random((2, 15)), np.full((2, 15), 1.2)
    psi = Regulariser(barrier=np.ones(2), entropy=np.full(2, 9.0))
    point = sack.hull.minimise(costs, beta, psi, sack.hull.start(2))
    broken = point | {"inverse": point["inverse"] + 1.0}
    after = sack.hull.minimise(1.1 * costs, beta, psi, broken)
    check_mixture(sack, after)
    gap = proved_gap(sack.argmin, sack.n, 1.1 * costs, beta, psi.phi, after)
    assert (gap <= 1.001 * sack.hull.harmless(1.1 * costs, beta, psi)).all()


def test_a_trial_depends_on_its_own_row() -> None:
    rng = np.random.default_rng(4)
    sack = mp.Knapsack(rng.integers(1, 31, 20), 100, limits=3)
    hull, costs, beta = sack.hull, -3 * rng.random((3, 20)), 1 + rng.random((3, 20))
    psi, one = (Regulariser(barrier=np.ones(k), entropy=np.full(k, 9.0)) for k in (3, 1))
    warm = hull.minimise(costs, beta, psi, hull.start(3))
    together = hull.minimise(1.2 * costs, beta, psi, warm)
    for t in range(3):
        row = {name: array[t : t + 1] for name, array in warm.items()}
        alone = hull.minimise(1.2 * costs[t : t + 1], beta[t : t + 1], one, row)
        assert all((alone[name][0] == together[name][t]).all() for name in hull.point)


def regrets(actions: ActionSet, gap: float, trials: int, rounds: int) -> FloatArray:
    """Return the regret of GenLBINFV in every trial; the hull is made for this set alone."""
    vars(actions)["hull"] = DecompositionHull(actions.oracle, actions.n, gap=gap)
    world = mp.Stochastic(mp.Bernoulli(np.random.default_rng(0).uniform(0.1, 0.9, actions.d)))
    result = mp.simulate(actions, world, {"policy": mp.GenLBINFV()}, rounds, trials, seed=0)
    return result.final("policy")


REGRET_SETS: dict[str, Callable[[], ActionSet]] = {
    "knapsack": lambda: mp.Knapsack(np.random.default_rng(0).integers(1, 31, 30), 120, limits=2),
    "trees": lambda: mp.SpanningTree([(v, w) for v in range(7) for w in range(v)]),
    "explicit": lambda: mp.Explicit(
        np.unique(np.random.default_rng(2).integers(0, 3, (40, 10)), axis=0)
    ),
}


@pytest.mark.soak
@pytest.mark.parametrize("name", REGRET_SETS)
def test_the_harmless_gap_leaves_the_regret_as_it_is(name: str) -> None:
    """Means of 40 trials differ by less than three standard errors of the difference."""
    make = REGRET_SETS[name]
    quick, exact = (regrets(make(), gap, 40, 1500) for gap in (HARMLESS, 0.0))
    error = np.hypot(quick.std(ddof=1), exact.std(ddof=1)) / np.sqrt(len(quick))
    assert abs(quick.mean() - exact.mean()) < 3 * error
