"""ExplorationByOptimisation against a plain twin, exact integrals, cvxpy, and measured regret."""

import math

import cvxpy as cp
import numpy as np
import pytest
from known import check_known
from refusal import refused
from scipy import stats
from scipy.spatial import ConvexHull

from multiplay import (
    ActionSet,
    Budget,
    Explicit,
    ExplorationByOptimisation,
    Feedback,
    InvalidInput,
    Learner,
    Path,
    Stochastic,
    Streams,
    Transport,
    Uniform,
    simulate,
)
from multiplay.experiments import paper
from multiplay.kernels import exploration as kernels
from multiplay.policies import Play
from multiplay.random import POLICY
from multiplay.testing import check_policy
from multiplay.types import FloatArray

PAPER = Transport([1, 4, 5], [4, 6])
SETS: dict[str, ActionSet] = {
    "transport": PAPER,
    "basis": Budget(1, np.ones(4)),
    "2 of 5": Budget(2, np.ones(5)),
    "line": Budget(3, [3, 3]),
}
SKEWS = [0.0, 0.3, 3.0, 30.0, 300.0, 3000.0]
LEVELS = 14  # ceil(log2 10^4)


def costs_of(actions: ActionSet, seed: int = 0) -> FloatArray:
    """Return costs in coordinates, of random directions, from none to very skewed."""
    rng = np.random.default_rng(seed)
    return np.multiply.outer(SKEWS, rng.normal(size=(5, actions.listed().r))).reshape(
        -1, actions.listed().r
    )


def net(Y: FloatArray, levels: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Write every point of the net down, with its prior and the weights that it is rounded to."""
    K, r = Y.shape
    points, prior, rounded = [], [], []
    for k in range(levels + 1):
        e = 2.0**-k
        for v in range(K) if k > 0 else [0]:
            for u in range(K):
                points.append((1 - e) * Y[v] + e * (Y[u] + Y.mean(axis=0)) / 2)
                prior.append(2.0 ** (-r * k))
                rounded.append((1 - e) * np.eye(K)[v] + e / 2 * (np.eye(K)[u] + 1 / K))
    return np.array(points), np.array(prior), np.array(rounded)


def explored(
    actions: ActionSet, costs: FloatArray, levels: int = LEVELS
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return W, Cq, the feasible p and the best p, from a cold start."""
    number = np.full(len(costs), levels)
    W, Cq, feasible = kernels.reference(actions.listed().Y, costs, number)
    p = feasible.copy()
    kernels.explore(W, Cq, feasible, p)
    return W, Cq, feasible, p


def second_moment(W: FloatArray, p: FloatArray) -> FloatArray:
    V: FloatArray = np.einsum("ta,tai,taj->tij", p, W, W)
    return V


def z_of(W: FloatArray, Cq: FloatArray, p: FloatArray) -> FloatArray:
    z: FloatArray = np.trace(np.linalg.solve(second_moment(W, p), Cq), axis1=1, axis2=2)
    return z


@pytest.mark.parametrize("levels", [1, 5, LEVELS])
@pytest.mark.parametrize("name", SETS)
def test_the_reference_equals_a_net_that_is_written_down(name: str, levels: int) -> None:
    Y = SETS[name].listed().Y
    points, prior, rounded = net(Y, levels)
    costs = costs_of(SETS[name])
    W, Cq, p = kernels.reference(Y, costs, np.full(len(costs), levels))
    for t, cost in enumerate(costs):
        log = np.log(prior) - points @ cost
        q = np.exp(log - log.max())
        q /= q.sum()
        leading = points[q.argmax()]
        mu = q @ (points - leading) + leading
        centred = points - mu
        np.testing.assert_allclose(W[t], Y - mu, rtol=1e-9, atol=1e-14)
        covariance = (q[:, None] * centred).T @ centred
        np.testing.assert_allclose(Cq[t], covariance, rtol=1e-7, atol=1e-9 * covariance.max())
        np.testing.assert_allclose(p[t], q @ rounded, rtol=1e-9)


def test_each_trial_has_its_own_number_of_levels() -> None:
    Y, costs = PAPER.listed().Y, np.array([[1.0, 2.0], [1.0, 2.0], [30.0, 3.0]])
    together = kernels.reference(Y, costs, np.array([3, 14, 7]))
    for t, levels in enumerate([3, 14, 7]):
        alone = kernels.reference(Y, costs[t : t + 1], np.array([levels]))
        for one, all_of_them in zip(alone, together, strict=True):
            assert np.array_equal(one[0], all_of_them[t])


@pytest.mark.parametrize("best", [False, True], ids=["rounded", "optimised"])
@pytest.mark.parametrize("name", SETS)
def test_the_mean_is_exact_and_the_estimate_unbiased(name: str, best: bool) -> None:
    """By summing over all actions: E[V^-1 (a - mu) g] = theta for g = level + <theta, a>."""
    actions, rng = SETS[name], np.random.default_rng(1)
    W, Cq, feasible, p = explored(actions, costs_of(actions))
    if not best:
        p = feasible
    trials, K, r = W.shape
    assert (p > 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(np.einsum("ta,tai->ti", p, W), 0, atol=1e-12)
    before = np.cumsum(p, axis=1) - p
    directions = np.empty_like(W)
    for a in range(K):
        action, directions[:, a], z = kernels.draw(W, Cq, p, before[:, a] + p[:, a] / 2)
        assert (action == a).all()
    np.testing.assert_allclose(z, z_of(W, Cq, p), rtol=1e-7)
    for level in (0.0, 1.0, -1.0):
        theta = rng.normal(size=r)
        g = level + W @ theta
        estimate = np.einsum("ta,tai,ta->ti", p, directions, g)
        np.testing.assert_allclose(estimate, np.broadcast_to(theta, (trials, r)), atol=1e-7)


def test_actions_are_drawn_from_p() -> None:
    """A chi-square test of 200,000 draws: a right program fails for one seed in a million."""
    W, Cq, _, p = explored(PAPER, np.array([[0.5, 0.2]]))
    draws = 200_000
    uniform = Streams.spawn(0, POLICY, [0]).random((1, draws))[0]
    many_W, many_Cq, many_p = (np.repeat(each, draws, axis=0) for each in (W, Cq, p))
    action = kernels.draw(many_W, many_Cq, many_p, uniform)[0]
    count = np.bincount(action, minlength=len(p[0]))
    assert stats.chisquare(count, draws * p[0]).pvalue > 1e-6


def integrals(theta: FloatArray) -> tuple[float, FloatArray]:
    """<theta, mu - v> and the covariance of the density ~ exp(-<theta, y>) on the paper's hull.

    The polygon is cut into triangles that have the best action v as a corner. Points of the
    triangle v, b, c are v + s (1 - t)(b - v) + s t (c - v); Gauss-Legendre for t, and for s on
    intervals that shrink by halves towards v.
    """
    Y = PAPER.listed().Y
    v = Y[(Y @ theta).argmin()]
    ring = Y[ConvexHull(Y).vertices] - v
    nodes, weights = np.polynomial.legendre.leggauss(40)
    nodes, weights = (nodes + 1) / 2, weights / 2
    ends = np.append(0.5 ** np.arange(40), 0.0)
    s = (ends[1:, None] + (ends[:-1] - ends[1:])[:, None] * nodes).ravel()
    of_s = ((ends[:-1] - ends[1:])[:, None] * weights).ravel() * s
    points, mass = [], []
    for b, c in zip(ring, np.roll(ring, -1, axis=0), strict=True):
        edge = (1 - nodes)[:, None] * b + nodes[:, None] * c
        y = s[:, None, None] * edge
        area = abs(b[0] * c[1] - b[1] * c[0])
        points.append(y.reshape(-1, 2))
        mass.append((area * of_s[:, None] * weights * np.exp(-y @ theta)).ravel())
    y, q = np.concatenate(points), np.concatenate(mass)
    q /= q.sum()
    mu = q @ y
    return float(mu @ theta), (q[:, None] * (y - mu)).T @ (y - mu)


@pytest.mark.slow
def test_the_net_against_exact_integration() -> None:
    """Far from 0, <theta, a - v> is Gamma(r) under the density: mean and variance are r.

    Where theta is so large that the finest level of the net shows, or so small that other actions
    count, they differ more; and across theta the net is narrower than the density.
    """
    plans = PAPER.listed()
    directions = paper.costs(20, 0) @ plans.B
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for size in (100.0, 300.0):
        theta = size * directions
        W, Cq, _ = kernels.reference(plans.Y, theta, np.full(len(theta), LEVELS))
        for t in range(len(theta)):
            loss, covariance = integrals(theta[t])
            v = (plans.Y @ theta[t]).argmin()
            assert abs(loss - plans.r) < 1e-3
            assert abs(-W[t, v] @ theta[t] / loss - 1) < 0.01
            ratio = (theta[t] @ Cq[t] @ theta[t]) / (theta[t] @ covariance @ theta[t])
            assert 0.95 < ratio < 1.05
    W, Cq, _ = kernels.reference(plans.Y, 0.3 * directions, np.full(len(theta), LEVELS))
    for t in range(len(directions)):
        loss, covariance = integrals(0.3 * directions[t])
        share = np.linalg.eigvals(np.linalg.solve(covariance, Cq[t])).real
        assert 0.5 < share.min() <= share.max() < 1.3


def least_z(W: FloatArray, Cq: FloatArray) -> float:
    """min tr(Cq V(p)^-1) by cvxpy and Clarabel."""
    K, r = W.shape
    p = cp.Variable(K, nonneg=True)
    V = sum(p[a] * np.outer(W[a], W[a]) for a in range(K))
    columns = np.linalg.cholesky(Cq)
    z = sum(cp.matrix_frac(columns[:, i], V) for i in range(r))
    problem = cp.Problem(cp.Minimize(z), [cp.sum(p) == 1, W.T @ p == 0])
    return float(problem.solve(solver=cp.CLARABEL))


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_the_design_against_cvxpy(name: str) -> None:
    """A barrier nu = 0.02 z0 / K costs at most nu K = 0.02 z0, z0 being z of the rounded net."""
    actions = SETS[name]
    costs = costs_of(actions)[:20:2]
    W, Cq, feasible, p = explored(actions, costs)
    z, z0 = z_of(W, Cq, p), z_of(W, Cq, feasible)
    for t in range(len(costs)):
        # in coordinates where V of the rounded net is the identity, for the sake of the solver
        C = np.linalg.cholesky(second_moment(W[t : t + 1], feasible[t : t + 1])[0])
        white = np.linalg.solve(C, np.linalg.solve(C, Cq[t]).T)
        best = least_z(np.linalg.solve(C, W[t].T).T, (white + white.T) / 2)
        assert best * (1 - 1e-4) <= z[t] <= best + 0.02 * z0[t] + 1e-4 * best


@pytest.mark.parametrize("name", [*SETS, "3 of 7", "grid"])
def test_the_answer_is_the_same_from_any_warm_start(name: str) -> None:
    """Bad starts, that are no distributions or have another mean, and the answer itself.

    The answer is the minimum: with multipliers, its gradient vanishes. And z <= r, for the rounded
    net has more variance than the net, and the best p does not waste it.
    """
    grid = [(a, b) for a in range(9) for b in (a + 1, a + 3) if b < 9 and (b != a + 1 or b % 3)]
    more = {"3 of 7": Budget(3, np.ones(7)), "grid": Path(grid, 0, 8)}
    actions = {**SETS, **more}[name]
    costs, r = costs_of(actions, seed=2), actions.listed().r
    W, Cq, feasible, p = explored(actions, costs)
    rng = np.random.default_rng(3)
    for start in (rng.random(p.shape), np.ones_like(p), p[::-1].copy(), p * rng.random(p.shape), p):
        again = np.ascontiguousarray(start)
        kernels.explore(W, Cq, feasible, again)
        np.testing.assert_allclose(again, p, rtol=1e-7)
    nu = 0.02 * z_of(W, Cq, feasible) / p.shape[1]
    y = np.linalg.solve(second_moment(W, p), W.transpose(0, 2, 1))
    gradient = p * np.einsum("tia,tij,tja->ta", y, Cq, y) + nu[:, None]
    for t in range(len(p)):
        rows = p[t, :, None] * np.column_stack([np.ones(len(p[t])), y[t].T])
        rows /= np.linalg.norm(rows, axis=0)
        rest = gradient[t] - rows @ np.linalg.lstsq(rows, gradient[t], rcond=None)[0]
        assert np.abs(rest).max() < 1e-6 * nu[t]
    assert (z_of(W, Cq, p) <= r + 1e-9).all()
    assert (z_of(W, Cq, feasible) <= r + 1e-9).all()
    assert (z_of(W, Cq, p) <= z_of(W, Cq, feasible) * 1.001).all()


def on_paper(regime: str, exploration: str = "optimised") -> FloatArray:
    policy = ExplorationByOptimisation(exploration=exploration)
    return paper.run(regime, trials=60, policies={"policy": policy}).final("policy")


@pytest.mark.slow
def test_stochastic_regret_on_the_paper() -> None:
    """Against 60 trials of an independent prototype, with cost matrices of its own."""
    check_known(on_paper("stochastic"), 555, 26)


@pytest.mark.soak
def test_corrupted_regret_on_the_paper() -> None:
    check_known(on_paper("corrupted"), 569, 55)


@pytest.mark.soak
def test_rounded_regret_on_the_paper() -> None:
    check_known(on_paper("stochastic", "rounded"), 565, 24)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "means", "regret", "error"),
    [(1, [0.3, 0.45, 0.45, 0.45, 0.45], 105, 2), (2, [0.2, 0.3, 0.45, 0.45, 0.45], 233, 8)],
    ids=["basis", "2 of 5"],
)
def test_regret_on_small_sets(m: int, means: list[float], regret: float, error: float) -> None:
    world = Stochastic(Uniform(np.zeros(5), 2 * np.array(means)))
    policies = {"policy": ExplorationByOptimisation()}
    result = simulate(Budget(m, np.ones(5)), world, policies, 10_000, trials=20, record=1)
    check_known(result.final("policy"), regret, error)


def test_steps_of_the_exponential_weights_are_short() -> None:
    """eta sqrt(h_a) <= 1/2 for all actions, where h_a = |Cq^(1/2) V^-1 (a - mu)|^2."""
    policy, trials, T = ExplorationByOptimisation(), 10, 3000
    world = paper.environments(T, trials, 0)["corrupted"].open(PAPER, T, range(trials), 0)
    state, rng = policy.start(PAPER, T, trials), Streams.spawn(0, POLICY, range(trials))
    plans, longest = PAPER.listed(), 0.0
    for t in range(T):
        play = policy.choose(PAPER, state, rng)
        if t % 10 == 0:
            beta = policy.beta(plans, state)
            W, Cq, _, p = explored(PAPER, state["L"] / beta[:, None], levels=12)
            np.testing.assert_allclose(p, play.cache["p"], rtol=1e-7)
            y = np.linalg.solve(second_moment(W, p), W.transpose(0, 2, 1))
            h = np.einsum("tia,tij,tja->ta", y, Cq, y)
            longest = max(longest, float((np.sqrt(h).max(axis=1) / beta).max()))
            assert (play.memo["z"] <= plans.r).all()
        policy.update(PAPER, state, play, world.observe(play.action).feedback, rng)
    assert longest < 0.5


@pytest.mark.parametrize("exploration", ["optimised", "rounded"])
@pytest.mark.parametrize(
    "actions",
    [
        Budget(3, [3, 3]),
        Explicit([[1, 2]]),
        Explicit([[1, 0], [0, 1]], sense="max"),
        Transport([1, 4, 5], [4, 6], sense="max"),
        Budget(2, np.ones(5), at_most=True, sense="max"),
        Explicit(np.array([[0, 0], [1, 0], [0, 1], [1, 1], [1, 0]])),
    ],
    ids=["line", "one action", "two actions", "rewards", "at most", "square"],
)
def test_contract(actions: ActionSet, exploration: str) -> None:
    check_policy(ExplorationByOptimisation(exploration=exploration), actions)


def test_one_action_is_just_played() -> None:
    learner = Learner(Explicit([[1, 2]]), ExplorationByOptimisation(horizon=3))
    for _ in range(3):
        play = learner.ask()
        assert play.action.tolist() == [1, 2]
        learner.tell(play.id, 1.5)


@pytest.mark.filterwarnings("ignore:all actions of")
def test_one_round() -> None:
    result = simulate(PAPER, Stochastic(Uniform(0.0, np.ones(6))), policies(), 1, 5)
    assert np.isfinite(result.regret.values).all()


def policies() -> dict[str, ExplorationByOptimisation]:
    kinds = ("optimised", "rounded")
    return {kind: ExplorationByOptimisation(exploration=kind) for kind in kinds}


def test_rewards_are_losses_turned_round() -> None:
    """The same uniform numbers, y of a reward world being M - y of a loss world."""
    losses, rewards = PAPER, Transport([1, 4, 5], [4, 6], sense="max")
    policy, rng = ExplorationByOptimisation(horizon=500), np.random.default_rng(0)
    one, other = (policy.start(actions, None, 1) for actions in (losses, rewards))
    first, second = (Streams.spawn(0, POLICY, [0]) for _ in range(2))
    for _ in range(200):
        play, twin = policy.choose(losses, one, first), policy.choose(rewards, other, second)
        assert np.array_equal(play.action, twin.action)
        y = play.action * rng.random(6)
        policy.update(losses, one, play, Feedback(play.action, y), first)
        policy.update(rewards, other, twin, Feedback(play.action, play.action - y), second)
        np.testing.assert_allclose(one["L"], other["L"], rtol=1e-9, atol=1e-9)


def test_only_the_total_of_a_round_counts() -> None:
    policy, rng = ExplorationByOptimisation(horizon=500), Streams.spawn(0, POLICY, [0])
    state = policy.start(PAPER, None, 1)
    for _ in range(20):
        play = policy.choose(PAPER, state, rng)
        y = play.action / 4
        twin = {name: each.copy() for name, each in state.items()}
        policy.update(PAPER, state, play, Feedback(play.action, y), rng)
        policy.update(PAPER, twin, play, Feedback(play.action, y[:, ::-1]), rng)
        assert all(np.array_equal(state[name], twin[name]) for name in state)


@pytest.mark.parametrize("name", SETS)
def test_late_feedback(name: str) -> None:
    """Fifty plays wait, and come back in another order, judged by their own p and mu."""
    actions, rng = SETS[name], Streams.spawn(0, POLICY, range(3))
    policy, order = ExplorationByOptimisation(horizon=1000), np.random.default_rng(0)
    state = policy.start(actions, None, 3)
    pending: list[Play] = []
    expected = np.zeros_like(state["L"])
    for _ in range(1000):
        pending.append(policy.choose(actions, state, rng))
        if len(pending) > 50:
            play = pending.pop(int(order.integers(50)))
            y = play.action * order.random(play.action.shape)
            policy.update(actions, state, play, Feedback(play.action, y), rng)
            g = 2 * y.sum(axis=1) / actions.M - 1
            expected += play.memo["direction"] * g[:, None]
    np.testing.assert_allclose(state["L"], expected)
    assert np.isfinite(state["L"]).all()
    assert (state["p"] > 0).all()


def test_refusals() -> None:
    with refused(
        "actions: expected a set of at most 60 actions: ExplorationByOptimisation enumerates"
    ):
        ExplorationByOptimisation().start(Budget(3, np.ones(9)), 100, 1)
    with refused("horizon"):
        ExplorationByOptimisation().start(PAPER, None, 1)
    with refused("exploration"):
        ExplorationByOptimisation(exploration="optimized")
    for wrong in (0, -1.0, math.inf, math.nan, "1", True):
        with refused("scale"):
            ExplorationByOptimisation(scale=wrong)  # type: ignore[arg-type]
    for wrong in (0, 2.5, "60"):
        with refused("limit"):
            ExplorationByOptimisation(limit=wrong)  # type: ignore[arg-type]
        with refused("horizon"):
            ExplorationByOptimisation(horizon=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        Learner(PAPER, ExplorationByOptimisation())


def test_a_larger_limit_lists_more_actions() -> None:
    policy = ExplorationByOptimisation(horizon=100, limit=84)
    state, actions = policy.start(Budget(3, np.ones(9)), None, 1), Budget(3, np.ones(9))
    play = policy.choose(actions, state, Streams.spawn(0, POLICY, [0]))
    assert play.cache["p"].shape == (1, 84)


@pytest.mark.soak
@pytest.mark.parametrize("scale", [0.1, 1.0])
@pytest.mark.parametrize("name", SETS)
def test_long_skewed_runs(name: str, scale: float) -> None:
    """One arm loses everything, another nothing: p has tiny entries, and the mean stays exact."""
    actions, T, trials = SETS[name], 100_000, 3
    policy, rng = ExplorationByOptimisation(scale=scale), Streams.spawn(0, POLICY, range(trials))
    state = policy.start(actions, T, trials)
    means = np.linspace(0, 1, actions.d) ** 2  # not a sum of rows and columns: plans would tie
    for t in range(T):
        play = policy.choose(actions, state, rng)
        policy.update(actions, state, play, Feedback(play.action, play.action * means), rng)
        if t % 1000 == 0:
            beta = policy.beta(actions.listed(), state)
            costs = state["L"] / beta[:, None]
            W, Cq, _, p = explored(actions, costs, levels=17)
            np.testing.assert_allclose(np.einsum("ta,tai->ti", p, W), 0, atol=1e-12)
            assert (z_of(W, Cq, p) <= actions.listed().r + 1e-9).all()
    assert all(np.isfinite(each).all() for each in state.values())
    if scale == 1:  # below 1/2 a trial may stay with another action
        assert (actions.listed().E[play.cache["p"].argmax(axis=1)] == actions.best(means)).all()
        assert (play.cache["p"].max(axis=1) > 0.99).all()
