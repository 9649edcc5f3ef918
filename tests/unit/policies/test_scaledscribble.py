"""ScaledScribble: its parts against slow twins, its estimates by draws, its regret by numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from known import check_known
from refusal import refused
from scipy import stats

from multiplay import (
    ActionSet,
    Budget,
    Coverage,
    Duplicated,
    Explicit,
    Feedback,
    Learner,
    ScaledScribble,
    Stochastic,
    Transport,
    Uniform,
    simulate,
)
from multiplay.actions.coordinates import Listed
from multiplay.experiments import paper
from multiplay.kernels.dense import cholesky, jacobi, solve_cholesky
from multiplay.testing import check_policy
from multiplay.types import Arrays, FloatArray, IntArray

PAPER = Transport([1, 4, 5], [4, 6])
BASIS, PAIRS = Budget(1, [1] * 4), Budget(2, [1] * 5)
LINE = Explicit([[0, 3], [2, 2], [4, 1]])
SETS: list[ActionSet] = [
    PAPER,
    BASIS,
    PAIRS,
    LINE,
    Explicit([[0, 0], [1, 1]]),
    Explicit([[1, 2]]),
    Budget(4, [4, 4, 2], at_most=True, sense="max"),
    Transport([3, 3], [2, 2], surplus=True, sense="max"),
]
SOLID = [one for one in SETS if one.listed().r > 0]
HORIZON = 10_000


@dataclass(frozen=True)
class Skewed:
    """A state after some rounds, on the way to a corner, the same in all trials."""

    actions: ActionSet
    policy: ScaledScribble
    state: Arrays

    @classmethod
    def of(cls, actions: ActionSet, trials: int, depth: float = 200.0) -> "Skewed":
        listed, policy = actions.listed(), ScaledScribble()
        rng = np.random.default_rng(3)
        state = policy.start(actions, HORIZON, trials)
        state["L"] += depth * rng.uniform(-1, 1, listed.r)
        state["m"] += rng.uniform(-0.2, 0.3, listed.s)
        state["G"] += 7.0
        return cls(actions, policy, state)

    @property
    def listed(self) -> Listed:
        return self.actions.listed()

    def costs(self) -> FloatArray:
        """L + m_hull: the difference of losses <m, X> / s between actions, by least squares."""
        listed = self.listed
        losses = listed.X @ self.state["m"][0] / np.linalg.norm(listed.E, axis=1).max()
        m_hull = np.linalg.lstsq(listed.Y, losses - losses.mean(), rcond=None)[0]
        costs: FloatArray = self.state["L"][0] + m_hull
        return costs

    def beta(self) -> float:
        r, theta = self.listed.r, len(self.listed.facets.b)
        return float(6 * r + 2 * r * np.sqrt(7.0 / (theta * np.log(HORIZON))))


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_small_dense_algebra(n: int) -> None:
    """Against numpy, on positive matrices whose entries are of very different sizes."""
    rng = np.random.default_rng(n)
    for spread in (0, 3, 8):
        half = rng.normal(size=(n, n + 2)) * 10.0 ** rng.uniform(-spread / 2, spread / 2, (n, 1))
        a, right = half @ half.T, rng.normal(size=n)
        root, solved = a.copy(), right.copy()
        assert cholesky(root)
        assert np.allclose(np.tril(root) @ np.tril(root).T, a, rtol=1e-12)
        solve_cholesky(root, solved)
        assert np.allclose(a @ solved, right)
        turned, values, vectors = half.T.copy(), np.empty(n), np.empty((n, n))
        jacobi(turned, values, vectors)
        assert np.allclose(vectors @ vectors.T, np.eye(n), atol=1e-14)
        assert np.allclose(vectors.T * values @ vectors, a, rtol=1e-10, atol=1e-14 * a.max())
        singular = np.linalg.svd(half, compute_uv=False)
        assert np.allclose(np.sort(values**0.5), np.sort(singular), rtol=1e-7)
    assert not cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))


def psi(listed: Listed, y: FloatArray) -> float:
    C, b = listed.facets
    return float(-np.log(b - C @ y).sum())


@pytest.mark.parametrize("size", [0.1, 3.0, 100.0])
@pytest.mark.parametrize("actions", SOLID, ids=repr)
def test_the_minimiser_against_another_solver(actions: ActionSet, size: float) -> None:
    listed = actions.listed()
    C, b = listed.facets
    costs = size * np.random.default_rng(0).normal(size=(1, listed.r))
    x = listed.polytope.minimise(costs, np.array([2.0]))[0]
    y = cp.Variable(listed.r)
    best = cp.Problem(cp.Minimize(costs[0] @ y - 2 * cp.sum(cp.log(b - C @ y)))).solve()
    value = costs[0] @ x + 2 * psi(listed, x)
    assert value <= best + 1e-6 * (1 + abs(best))
    assert value == pytest.approx(best, rel=1e-5, abs=1e-5)
    assert np.allclose((b - C @ x) / (b - C @ y.value), 1, atol=5e-3)


@pytest.mark.parametrize("actions", SOLID, ids=repr)
def test_the_minimiser_is_found_from_anywhere(actions: ActionSet) -> None:
    """Newton's next step, by numpy, is negligible beside the distance to every facet."""
    listed, rng = actions.listed(), np.random.default_rng(0)
    hull, (C, b) = listed.polytope, listed.facets
    sizes = 10.0 ** rng.uniform(-3, 6, (100, 1))
    costs, beta = sizes * rng.normal(size=(100, listed.r)), np.ones(100)
    cold = hull.minimise(costs, beta)
    assert np.array_equal(hull.minimise(costs[7:8], beta[:1]), cold[7:8])
    others = hull.minimise(costs[::-1].copy(), beta)
    for found in (cold, hull.minimise(costs, beta, warm=others)):
        slack = b - found @ C.T
        assert (slack > 0).all()
        gradient = costs + (1 / slack) @ C
        hessian = np.einsum("kf,fp,fq->kpq", 1 / slack**2, C, C)
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        assert np.abs(step @ C.T / slack).max() < 1e-8


@pytest.mark.parametrize("depth", [0.0, 60.0, 1e4])
@pytest.mark.parametrize("actions", SOLID, ids=repr)
def test_points_of_a_round_against_a_slow_twin(actions: ActionSet, depth: float) -> None:
    """Points in the hull; rho by its definition, for all actions; and where scaling up leads."""
    listed = actions.listed()
    hull, (C, b) = listed.polytope, listed.facets
    costs = depth * np.random.default_rng(1).normal(size=(1, listed.r))
    x = hull.minimise(costs, np.array([10.0]))
    lambdas, e = hull.eigenpairs(x)
    hessian = sum(np.outer(c, c) / (at - c @ x[0]) ** 2 for c, at in zip(C, b, strict=True))
    assert np.allclose(hessian @ e[0].T, lambdas[0] * e[0].T, rtol=1e-9, atol=1e-9 * lambdas.max())
    assert np.allclose(e[0] @ e[0].T, np.eye(listed.r), atol=1e-13)
    steps = e / np.sqrt(lambdas)[:, :, None]
    points = np.concatenate([x + steps[0], x - steps[0]])
    assert (points @ C.T <= b + 1e-12).all()
    twin = np.zeros(listed.K)
    for action, y in enumerate(listed.Y):
        for c, at in zip(C, b, strict=True):
            if at - c @ y > 1e-9:
                twin[action] = max(twin[action], *((points - y) @ c / (at - c @ y)))
    z, rho = hull.nearest_action(x, steps)
    assert rho[0] == pytest.approx(twin.min(), rel=1e-9)
    assert twin[z[0]] == pytest.approx(twin.min(), rel=1e-9)
    assert 0 < rho[0] <= 1
    scaled_up = listed.Y[z] + (points - listed.Y[z]) / rho
    room = b - scaled_up @ C.T
    assert room.min() == pytest.approx(0, abs=1e-9)  # and no smaller rho would do


@pytest.mark.parametrize("actions", [*SOLID, Budget(3, [1] * 8)], ids=repr)
def test_draws_have_the_mean_that_is_asked_for(actions: ActionSet) -> None:
    """An even grid takes the place of the random number: all weights are exact to 1 / 20,000."""
    listed, rng = actions.listed(), np.random.default_rng(4)
    grid = (np.arange(20_000) + 0.5) / 20_000
    for share in (1.0, 0.05):
        mean = rng.dirichlet(np.full(listed.K, share)) @ listed.Y
        drawn = listed.polytope.draw(np.tile(mean, (len(grid), 1)), grid)
        assert np.allclose(listed.Y[drawn].mean(axis=0), mean, atol=np.ptp(listed.Y) / 2_000)
        assert len(np.unique(drawn)) <= listed.r + 1
    corners = listed.polytope.draw(listed.Y, np.full(listed.K, 1 - 1e-9))
    assert (corners == np.arange(listed.K)).all()


# ---------------------------------------------------------------- a round


@pytest.mark.slow
@pytest.mark.parametrize("actions", [PAPER, BASIS, PAIRS, LINE], ids=repr)
def test_plays_and_estimates_are_unbiased(actions: ActionSet) -> None:
    """200,000 draws from one state: mean action x, mean estimate the gradient of f.

    At any level of the losses. Normal bounds at the level 1e-6, shared by all numbers of a set.
    """
    draws, levels = 200_000, (0.0, 0.4, -0.7)
    skewed = Skewed.of(actions, draws)
    listed, policy, rng = skewed.listed, skewed.policy, np.random.default_rng(5)
    x = listed.polytope.minimise(skewed.costs()[None], np.array([skewed.beta()]))[0]
    play = policy.choose(actions, {**skewed.state, "x": np.tile(x, (draws, 1))}, rng)
    assert np.allclose(play.cache["x"], x, atol=1e-9)
    losses = rng.uniform(0, 1, actions.d)
    means = [((play.action - listed.centre) @ listed.B, x)]
    for level in levels:
        state = {name: array.copy() for name, array in skewed.state.items()}
        total = play.action @ losses + level * actions.M
        policy.update(actions, state, play, Feedback(play.action, total[:, None]), rng)
        means.append((state["L"] - skewed.state["L"], losses @ listed.B / actions.M))
    allowed = stats.norm.isf(1e-6 / 2 / (len(means) * listed.r))
    for seen, mean in means:
        error = seen.std(axis=0) / draws**0.5
        assert (np.abs(seen.mean(axis=0) - mean) <= allowed * error).all()


def test_a_round_step_by_step() -> None:
    """What is learned is what the formulas say, trial by trial, in plain numpy."""
    skewed = Skewed.of(PAPER, 50)
    listed, state, rng = skewed.listed, skewed.state, np.random.default_rng(6)
    before = {name: array.copy() for name, array in state.items()}
    m_hull = skewed.costs() - before["L"][0]
    play = skewed.policy.choose(PAPER, state, rng)
    total = rng.uniform(0, 10, 50)
    skewed.policy.update(PAPER, state, play, Feedback(play.action, total[:, None]), rng)
    lambdas, e = listed.polytope.eigenpairs(play.cache["x"])
    size = np.linalg.norm(listed.E, axis=1).max()
    for k, a in enumerate(play.action):
        X, m, b = a @ listed.S / size, before["m"][k], play.memo["b"][k]
        err = total[k] / 10 - m @ X
        assert state["G"][k] == pytest.approx(7.0 + b * err**2)
        expected = m + 0.2 * b * err * X
        expected *= min(1.0, size * 6**0.5 / 10 / np.linalg.norm(expected))
        assert np.allclose(state["m"][k], expected)
        change = state["L"][k] - before["L"][k] - m_hull
        ways = [v * 2 * err * lambdas[k, i] ** 0.5 * e[k, i] for i in (0, 1) for v in (-1, 1)]
        assert np.isclose(change, ways if b else 0.0).all(axis=-1).any()
    assert 0 < play.memo["b"].mean() < 1


def test_the_prediction_stays_in_its_ball() -> None:
    """sqrt(d) s / M is the length of the largest losses: all units lose everything, for ever."""
    for actions in (PAPER, PAIRS):
        policy, rng = ScaledScribble(eta=0.24), np.random.default_rng(0)
        state = policy.start(actions, 1000, 3)
        for _ in range(300):
            play = policy.choose(actions, state, rng)
            policy.update(
                actions, state, play, Feedback(play.action, play.action.astype(float)), rng
            )
        size = np.linalg.norm(actions.enumerate(), axis=1).max()
        radius = size * actions.d**0.5 / actions.M
        assert (np.linalg.norm(state["m"], axis=1) <= radius * (1 + 1e-12)).all()
        assert np.allclose(state["m"] @ actions.listed().X.T / size, 1, atol=0.05)


# ---------------------------------------------------------------- every set, every setting


@pytest.mark.parametrize("actions", SETS, ids=repr)
def test_contract(actions: ActionSet) -> None:
    check_policy(ScaledScribble(), actions)


def test_copies_keep_the_contract() -> None:
    check_policy(Duplicated(ScaledScribble()), Budget(2, [2, 2, 1]))


@pytest.mark.filterwarnings("ignore:all actions of")
@pytest.mark.parametrize("actions", SETS, ids=repr)
@pytest.mark.parametrize("horizon", [1, 2, 40])
def test_short_horizons(actions: ActionSet, horizon: int) -> None:
    world = Stochastic(Uniform(0.0, np.linspace(0.2, 1.0, actions.d)))
    result = simulate(actions, world, {"it": ScaledScribble()}, horizon, trials=3)
    assert np.isfinite(result.regret.values).all()
    if actions.listed().r == 0:
        assert (result.regret.values == 0).all()


def test_repeated_rows_change_nothing() -> None:
    class Twice(Explicit):
        def enumerate(self, limit: int = 100_000) -> Any:
            return np.repeat(super().enumerate(limit), 2, axis=0)

    rows = [[0, 3], [2, 2], [5, 0], [1, 1]]
    world = Stochastic(Uniform(0, [0.4, 0.8]))
    once, twice = (
        simulate(one, world, {"it": ScaledScribble()}, 200, trials=2)
        for one in (Explicit(rows), Twice(rows))
    )
    assert np.array_equal(once.regret.values, twice.regret.values)


def play_on(
    actions: ActionSet,
    policy: ScaledScribble,
    totals: Callable[[IntArray], FloatArray],
    rounds: int = 300,
) -> list[IntArray]:
    rng, played = np.random.default_rng(8), []
    state = policy.start(actions, HORIZON, 4)
    for _ in range(rounds):
        play = policy.choose(actions, state, rng)
        told = Feedback(play.action, totals(play.action)[:, None])
        policy.update(actions, state, play, told, rng)
        played.append(play.action)
    return played


def test_rewards_are_losses_of_what_is_missing() -> None:
    """Every plan has 10 units: a reward of 10 - y teaches what a loss of y does."""
    losses = np.array([0.1, 0.5, 0.3, 0.9, 0.2, 0.4])
    lost = play_on(PAPER, ScaledScribble(), lambda a: a @ losses)
    most = Transport([1, 4, 5], [4, 6], sense="max")
    won = play_on(most, ScaledScribble(), lambda a: 10 - a @ losses)
    assert np.array_equal(lost, won)


@pytest.mark.parametrize("sense", ["min", "max"])
def test_it_finds_the_better_of_two(sense: str) -> None:
    """Where there is one dimension, almost all plays are the better one, after some."""
    pair = Budget(1, [1, 1], sense=sense)
    means = np.array([0.9, 0.1] if sense == "min" else [0.1, 0.9])
    plays = np.array(play_on(pair, ScaledScribble(), lambda a: a @ means, 2000))
    assert plays[1000:, :, 1].mean() > 0.95


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6])
@pytest.mark.parametrize("actions", [PAPER, PAIRS, LINE], ids=repr)
def test_extreme_scales_stay_finite(actions: ActionSet, scale: float) -> None:
    policy, rng = ScaledScribble(scale=scale), np.random.default_rng(0)
    state = policy.start(actions, 100, 5)
    for _ in range(100):
        play = policy.choose(actions, state, rng)
        assert actions.contains(play.action).all()
        told = Feedback(play.action, play.action * rng.random(play.action.shape))
        policy.update(actions, state, play, told, rng)
        assert all(np.isfinite(array).all() for array in state.values())


# ---------------------------------------------------------------- late feedback


@pytest.mark.parametrize("actions", SOLID, ids=repr)
def test_late_feedback_in_any_order(actions: ActionSet) -> None:
    """L and G are sums over the plays, each judged by its own memo; then play goes on inside."""
    policy, rng = ScaledScribble(), np.random.default_rng(9)
    states = [Skewed.of(actions, 3, depth=5.0).state for _ in range(2)]
    plays = [policy.choose(actions, states[0], rng) for _ in range(8)]
    told = [Feedback(p.action, p.action * rng.random(p.action.shape)) for p in plays]
    for state, order in zip(states, (range(8), reversed(range(8))), strict=True):
        for number in order:
            policy.update(actions, state, plays[number], told[number], rng)
        assert all(np.isfinite(array).all() for array in state.values())
    first, last = states
    assert np.allclose(first["L"], last["L"])
    assert np.allclose(first["G"], last["G"])
    C, b = actions.listed().facets
    x = policy.choose(actions, last, rng).cache["x"]
    assert (b - x @ C.T > 0).all()


def test_it_learns_from_losses_that_come_late() -> None:
    """Receipt every tenth round, newest first: still the better action, nine times of ten."""
    pair, policy, rng = Budget(1, [1, 1]), ScaledScribble(), np.random.default_rng(0)
    state, means = policy.start(pair, 4000, 10), np.array([0.9, 0.1])
    for _ in range(400):
        plays = [policy.choose(pair, state, rng) for _ in range(10)]
        for play in reversed(plays):
            policy.update(pair, state, play, Feedback(play.action, play.action * means), rng)
    better = np.mean([policy.choose(pair, state, rng).action[:, 1] for _ in range(100)])
    assert better > 0.9


def test_a_learner_is_told_one_number() -> None:
    learner = Learner(PAPER, ScaledScribble(horizon=100), seed=0)
    plays = [learner.ask() for _ in range(3)]
    for play in reversed(plays):
        learner.tell(play.id, (play.action * 0.25).tolist())
    assert sum(learner.ask().plan.values()) == 10


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("eta", [0, 0.25, -0.1, 1, "0.1", None, float("nan"), True])
def test_steps_that_are_refused(eta: Any) -> None:
    with refused("eta: expected a step in (0, 1/4)"):
        ScaledScribble(eta=eta)


@pytest.mark.parametrize("scale", [0, -1, float("inf"), float("nan"), "1", None])
def test_scales_that_are_refused(scale: Any) -> None:
    with refused("scale: expected a positive number"):
        ScaledScribble(scale=scale)


@pytest.mark.parametrize("bad", [0, -5, 2.5, "10"])
def test_horizons_and_limits_that_are_refused(bad: Any) -> None:
    with refused("horizon"):
        ScaledScribble(horizon=bad)
    with refused("limit"):
        ScaledScribble(limit=bad)


def test_sets_that_are_refused() -> None:
    with refused("actions: expected a set whose hull has at most 7 dimensions"):
        ScaledScribble().start(Budget(4, [1] * 9), 100, 1)
    with refused("actions: expected a set of at most 8 actions"):
        ScaledScribble(limit=8).start(PAPER, 100, 1)
    with refused("horizon: expected a number of rounds"):
        ScaledScribble().start(PAPER, None, 1)
    with refused("actions: expected a set with a linear objective"):
        simulate(
            Coverage.example(),
            Stochastic(Uniform(0, np.full(Coverage.example().d, 0.5))),
            {"it": ScaledScribble()},
            horizon=100,
            trials=1,
        )


# ---------------------------------------------------------------- regret

# mean and standard error of the final pseudo-regret from a numpy prototype, 60 trials and 20
PROTOTYPE = {"stochastic": (699, 27), "corrupted": (639, 49)}


@pytest.mark.slow
@pytest.mark.parametrize("regime", PROTOTYPE)
def test_regret_in_the_experiments_of_the_paper(regime: str) -> None:
    result = paper.run(regime, trials=60, policies={"it": ScaledScribble()})
    check_known(result.final("it"), *PROTOTYPE[regime])


@pytest.mark.parametrize(
    ("actions", "means", "mean", "error"),
    [
        (Budget(1, [1] * 5), [0.3, 0.45, 0.45, 0.45, 0.45], 470, 19),
        (PAIRS, [0.2, 0.3, 0.45, 0.45, 0.45], 795, 21),
    ],
    ids=["plain bandit", "pairs"],
)
@pytest.mark.slow
def test_regret_where_all_arms_are_alike(
    actions: ActionSet, means: list[float], mean: float, error: float
) -> None:
    world = Stochastic(Uniform(0, 2 * np.array(means)))
    result = simulate(actions, world, {"it": ScaledScribble()}, HORIZON, trials=20)
    check_known(result.final("it"), mean, error)
