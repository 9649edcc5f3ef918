"""LinTS and LinUCB: least squares, draws, bounds, and regret against other programs."""

import math
from typing import Any

import numpy as np
import pytest
from examples_of_sets import SETS
from known import check_known
from many_streams import many_streams
from refusal import refused
from scipy import stats

from multiplay import (
    ActionSet,
    Assignment,
    AtMost,
    Budget,
    Coverage,
    Duplicated,
    Explicit,
    GaussianCTS,
    IntegerProgram,
    Learner,
    LinTS,
    LinUCB,
    Policy,
    RandomAction,
    Stochastic,
    SwitchingCost,
    Transport,
    Uniform,
    simulate,
)
from multiplay.experiments import paper
from multiplay.feedback import Feedback
from multiplay.policies.base import Play, check_fits
from multiplay.policies.regression import estimate
from multiplay.testing import check_policy
from multiplay.types import Arrays, FloatArray, IntArray

PAPER = Transport([1, 4, 5], [4, 6])
FEW = [Budget(2, [1, 1, 1, 1]), Assignment(3), Explicit([[0, 3, 1], [2, 2, 1], [5, 0, 1]])]
BASIS = Budget(1, [1] * 5)
BILLION = Transport([10**9, 10**9], [10**9, 10**9, 0])
NO_RNG = np.random.default_rng(0)  # for policies that draw nothing


def told(
    actions: ActionSet, rounds: int, trials: int = 3, seed: int = 0
) -> tuple[Arrays, IntArray, FloatArray]:
    """Tell random totals of random plays, spanning ones first; return the state, plays, totals."""
    rng, policy = np.random.default_rng(seed), LinTS()
    state = policy.start(actions, None, trials)
    plays, totals = [], []
    for t in range(rounds):
        if t < actions.spanning.s:
            action = np.tile(actions.spanning.E[t], (trials, 1))
        else:
            action = actions.argmin(rng.normal(size=(trials, actions.d)))
        total = action.sum(axis=1) * rng.random(trials)
        policy.update(actions, state, Play(action), Feedback(action, total[:, None]), NO_RNG)
        plays.append(action)
        totals.append(total)
    return state, np.array(plays), np.array(totals)


def moments(state: Arrays, trial: int) -> tuple[FloatArray, FloatArray]:
    R, z = state["R"][trial], state["z"][trial]
    return R.T @ R, R.T @ z


# ---------------------------------------------------------------- least squares


@pytest.mark.parametrize("actions", [PAPER, BASIS, BILLION, *FEW], ids=repr)
def test_the_estimate_is_that_of_numpy(actions: ActionSet) -> None:
    state, plays, totals = told(actions, 60)
    J = actions.spanning.J
    fitted = estimate(actions, state, np.zeros_like(state["z"]))
    for trial in range(3):
        x, y = plays[:, trial][:, J].astype(float), totals[:, trial]
        theta = np.linalg.lstsq(x, y, rcond=None)[0]
        assert np.allclose(fitted[trial, J], theta, rtol=1e-9, atol=1e-12)
        V, b = moments(state, trial)
        assert np.allclose(V, x.T @ x, rtol=1e-12, atol=1e-9)
        assert np.allclose(b, x.T @ y, rtol=1e-12, atol=1e-9)
    others = np.setdiff1d(np.arange(actions.d), J)
    assert (fitted[:, others] == 0).all()
    everything = plays.reshape(-1, actions.d)  # the loss of an action is that of its coordinates
    best = np.linalg.lstsq(plays[:, 0].astype(float), totals[:, 0], rcond=None)[0]
    assert np.allclose(everything @ fitted[0], everything @ best, rtol=1e-6)


def test_exact_losses_are_found_exactly_after_s_rounds() -> None:
    losses = np.random.default_rng(0).random(PAPER.d)
    learner = Learner(PAPER, LinTS(sigma=1e-9))
    for t in range(10):
        play = learner.ask()
        if t >= PAPER.spanning.s:
            assert (play.action == PAPER.best(losses)).all()
        else:
            assert (play.action == PAPER.spanning.E[t]).all()
        learner.tell(play.id, float(play.action @ losses))


def test_a_long_run_keeps_its_digits() -> None:
    """30,000 rounds on two actions, few on a third: V has entries of 10^6 and a pivot of 10."""
    E = PAPER.spanning.E
    state, policy = LinTS().start(PAPER, None, 1), LinTS()
    rng = np.random.default_rng(1)
    number = np.where(np.arange(30_000) % 3000 == 2, 2, rng.integers(0, 2, 30_000))
    number[:3] = range(3)
    totals = 10 * rng.random(len(number))
    for n, total in zip(number, totals, strict=True):
        action = E[n][None]
        policy.update(PAPER, state, Play(action), Feedback(action, np.array([[total]])), NO_RNG)
    fitted = E @ estimate(PAPER, state, np.zeros((1, 3)))[0]
    averages = np.bincount(number, totals) / np.bincount(number)  # independent actions: their own
    assert np.allclose(fitted, averages, rtol=1e-11)


# ---------------------------------------------------------------- Thompson sampling


@pytest.mark.parametrize("actions", [PAPER, FEW[0], FEW[2]], ids=repr)
def test_draws_have_the_covariance_of_the_posterior(actions: ActionSet) -> None:
    """s z-tests of means, s (s + 1) / 2 of covariances, s of the law: level 1e-6 each."""
    trials, sigma = 40_000, 0.7
    s, J = actions.spanning.s, actions.spanning.J
    one = told(actions, 15, 1)[0]
    state = {name: np.repeat(array, trials, 0) for name, array in one.items()}
    rng = many_streams(trials)
    draws = LinTS(sigma).draw(actions, state, rng)[:, J]
    V, b = moments(one, 0)
    covariance, mean = sigma**2 * np.linalg.inv(V), np.linalg.solve(V, b)
    variance = np.diag(covariance)
    assert (np.abs(draws.mean(axis=0) - mean) < 4.9 * np.sqrt(variance / trials)).all()
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / trials)
    assert (np.abs(np.cov(draws.T) - covariance) < 4.9 * error).all()
    for i in range(s):
        standard = (draws[:, i] - mean[i]) / math.sqrt(variance[i])
        assert stats.kstest(standard, "norm").pvalue > 1e-6


def test_the_index_before_all_is_known_is_a_draw_with_a_prior() -> None:
    state, plays, totals = told(PAPER, 2, trials=20_000)
    for name in state:  # every trial was told the same
        state[name][:] = state[name][0]
    policy, basis, half = LinTS(sigma=0.7), PAPER.spanning, PAPER.M / 2
    drawn = policy.index(PAPER, state, many_streams(20_000))[:, basis.J]
    x, X = plays[:, 0][:, basis.J].astype(float), basis.X.astype(float)
    covariance = np.linalg.inv(x.T @ x / 0.7**2 + X.T @ X / half**2)
    mean = covariance @ (x.T @ totals[:, 0] / 0.7**2 + X.T @ np.full(basis.s, half) / half**2)
    width = np.linalg.cholesky(covariance)
    errors = np.linalg.solve(width, (drawn - mean).T)  # independent, with variance 1
    assert np.abs(errors.mean(axis=1)).max() < 5 / math.sqrt(20_000)
    assert np.abs(np.cov(errors) - np.eye(basis.s)).max() < 0.06


@pytest.mark.parametrize("policy", [LinTS(), LinUCB()], ids=repr)
def test_external_plans_say_as_much_as_spanning_ones(policy: Any) -> None:
    rng = np.random.default_rng(3)
    losses: FloatArray = np.linspace(0.1, 0.9, PAPER.d)
    state = policy.start(PAPER, None, 2)
    everything = PAPER.all_actions()
    for _ in range(20):
        plan = rng.choice(everything, size=2)
        policy.absorb(PAPER, state, Feedback(plan, plan * losses), NO_RNG)
    before = {name: array.copy() for name, array in state.items()}
    outside = np.ones((2, PAPER.d), dtype=np.int64)
    policy.absorb(PAPER, state, Feedback(outside, 0.5 * np.ones((2, PAPER.d))), NO_RNG)
    assert all((state[name] == before[name]).all() for name in state)
    fitted = estimate(PAPER, state, np.zeros_like(state["z"]))
    assert np.allclose(fitted @ everything.T, losses @ everything.T)


def test_plans_that_a_promise_permits_are_learned_where_spanning_ones_are_not_permitted() -> None:
    plans, losses = Budget(4, [4, 4, 4], names=["a", "b", "c"]), [0.1, 0.6, 0.5]
    few = AtMost(3, of={"a": 1, "b": 0, "c": 0}, plays=30, name="few")
    learner, told = Learner(plans, LinTS(sigma=0.01), constraints=[SwitchingCost(0.02), few]), []
    assert any(row[0] > 3 for row in plans.spanning.E.tolist())
    for _ in range(30):
        play = learner.ask()
        told.append(play.action)
        learner.tell(play, float(play.action @ losses))
    assert sum(action[0] for action in told) <= 3
    assert all(action[1] == 0 for action in told[10:])
    with refused("policy"):  # nothing is known of a
        learner.expect({"c": 4})
    learner.learn({"a": 1, "c": 3}, 1.6)
    assert learner.expect({"c": 4}).total == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize("sense", ["min", "max"])
def test_on_the_basis_it_is_gaussian_thompson_sampling(sense: str) -> None:
    """Round for round: with one unit sigma = 1/2, so the variance of arm i is 1 / (4 N_i)."""
    actions = Budget(1, [1] * 5, sense=sense)
    world = Stochastic(Uniform([0.0] * 5, [0.6, 0.9, 0.9, 0.9, 0.9]))
    policies = {"linear": LinTS(), "arms": GaussianCTS(), "wider": GaussianCTS(2.0)}
    result = simulate(actions, world, policies, horizon=2000, trials=20, seed=4)
    curves = result.regret
    assert np.array_equal(curves.sel(policy="linear"), curves.sel(policy="arms"))
    assert not np.array_equal(curves.sel(policy="linear"), curves.sel(policy="wider"))
    one, other = Learner(actions, LinTS(), seed=1), Learner(actions, GaussianCTS(), seed=1)
    for t in range(200):
        play = one.ask()
        assert other.ask().plan == play.plan
        loss = float(t * 0.37 % 1)
        one.tell(play.id, loss)
        other.tell(play.id, (play.action * loss).tolist())


def test_thompson_sampling_lists_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """More actions than could be listed, and 10^9 units."""
    listed: list[ActionSet] = []
    for actions in (Assignment(12), BILLION):
        listing = type(actions).enumerate

        def enumerate(self: ActionSet, limit: int = 100_000, listing: Any = listing) -> IntArray:
            listed.append(self)
            found: IntArray = listing(self, limit)
            return found

        monkeypatch.setattr(type(actions), "enumerate", enumerate)
        learner, rounds = Learner(actions, LinTS()), actions.spanning.s + 3
        for _ in range(rounds):
            play = learner.ask()
            assert actions.contains(play.action)
            learner.tell(play.id, 0.5 * float(play.action.sum()))
        assert (learner.asked, learner.open_plays) == (rounds, 0)
        assert listed == []
        with refused("limit"):
            actions.enumerate(1000)
        assert listed.pop() is actions, "a listing would have been noticed"


# ---------------------------------------------------------------- optimism


@pytest.mark.parametrize("actions", [PAPER, BASIS, *FEW], ids=repr)
@pytest.mark.parametrize("sigma", [None, 0.3])
def test_linucb_equals_a_slow_loop(sigma: float | None, actions: ActionSet) -> None:
    state, plays, totals = told(actions, 40)
    policy, s, J = LinUCB(sigma), actions.spanning.s, actions.spanning.J
    chosen = policy.choose(actions, state, NO_RNG).action
    index = policy.indices(actions, state)
    everything = actions.enumerate()
    first = plays[:s, 0][:, J].astype(float)
    for trial in range(3):
        x = plays[:, trial][:, J].astype(float)
        inverse = np.linalg.inv(x.T @ x)
        theta = inverse @ x.T @ totals[:, trial]
        growth = np.linalg.det(x.T @ x) / np.linalg.det(first.T @ first)
        noise = math.sqrt(actions.M) / 2 if sigma is None else sigma
        radius = noise * math.sqrt(s + 2 * math.log(41) + math.log(growth))
        slow = [
            a @ theta - actions.sign * radius * math.sqrt(a @ inverse @ a) for a in everything[:, J]
        ]
        assert np.allclose(index[trial], slow, rtol=1e-9)
        assert (chosen[trial] == everything[np.argmin(actions.sign * index[trial])]).all()


def test_the_radius_holds_as_often_as_it_says() -> None:
    """Normal noise, 2000 trials, 100 rounds of LinUCB: at most 1 / t too far, with level 1e-6."""
    trials, rounds, sigma = 2000, 100, 0.5
    means = np.array([0.2, 0.6, 0.3, 0.2, 0.7, 0.4])
    policy, rng = LinUCB(sigma), np.random.default_rng(0)
    state, J = policy.start(PAPER, None, trials), PAPER.spanning.J
    truth = np.linalg.solve(PAPER.spanning.X, PAPER.spanning.E @ means)
    for t in range(1, rounds + 1):
        play = policy.choose(PAPER, state, NO_RNG)
        total = play.action @ means + sigma * rng.normal(size=trials)
        policy.update(PAPER, state, play, Feedback(play.action, total[:, None]), NO_RNG)
        if t in (5, 20, rounds):
            error = estimate(PAPER, state, np.zeros((trials, 3)))[:, J] - truth
            far = (np.einsum("kij,kj->ki", state["R"], error) ** 2).sum(axis=1)
            wrong = (far > policy.radius(PAPER, state) ** 2).mean()
            assert wrong < 1 / t + 4.9 * math.sqrt(1 / t / trials)


# ---------------------------------------------------------------- regret


@pytest.mark.slow
@pytest.mark.parametrize(
    ("regime", "lints", "narrow"),
    [("stochastic", (115, 4), (30, 2)), ("corrupted", (3782, 187), (3972, 194))],
)
def test_regret_in_the_experiments_of_the_paper(
    regime: str, lints: tuple[float, float], narrow: tuple[float, float]
) -> None:
    """An independent program, 100 trials: within 4 combined standard errors."""
    policies: dict[str, Policy] = {"LinTS": LinTS(), "narrow": LinTS(0.55), "LinUCB": LinUCB()}
    result = paper.run(regime, trials=100, policies=policies)
    for name, (regret, error) in {"LinTS": lints, "narrow": narrow}.items():
        check_known(result.final(name), regret, error, name)
    if regime == "stochastic":  # its radius is larger than what Thompson sampling draws
        assert 2 < result.final("LinUCB").mean() / result.final("LinTS").mean() < 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "means", "regret", "error"),
    [(1, [0.3, 0.45, 0.45, 0.45, 0.45], 26, 1), (2, [0.2, 0.3, 0.45, 0.45, 0.45], 26, 2)],
    ids=["basis", "2 of 5"],
)
def test_regret_on_m_sets(m: int, means: list[float], regret: float, error: float) -> None:
    """An independent program with sigma = 0.3, 20 trials: within 4 combined standard errors."""
    world = Stochastic(Uniform(np.zeros(5), 2 * np.array(means)))
    result = simulate(Budget(m, [1] * 5), world, {"LinTS": LinTS(0.3)}, 10_000, 60, record=1)
    check_known(result.final("LinTS"), regret, error)


@pytest.mark.parametrize("sense", ["min", "max"])
def test_they_learn_losses_and_rewards(sense: str) -> None:
    """After 1000 rounds they have lost less than a third of what random play loses."""
    policies = {"LinTS": LinTS(), "LinUCB": LinUCB(0.5), "copies": Duplicated(LinTS(0.5))}
    means = np.array([0.1, 0.3, 0.2, 0.5, 0.4, 0.2])
    result = simulate(
        Transport([1, 4, 5], [4, 6], sense=sense),
        Stochastic(Uniform(np.zeros(6), 2 * means)),
        {**policies, "random": RandomAction()},
        horizon=1000,
        trials=10,
        record=1,
    )
    for name in policies:
        assert result.final(name).mean() < result.final("random").mean() / 3, name


# ---------------------------------------------------------------- contract and refusals


@pytest.mark.filterwarnings("ignore:all actions of")
@pytest.mark.parametrize("actions", [*SETS, PAPER, Transport([2, 0, 3], [0, 4, 1])], ids=repr)
@pytest.mark.parametrize("policy", [LinTS(), LinUCB()], ids=repr)
def test_contract(policy: Policy, actions: ActionSet) -> None:
    if not actions.linear:
        with refused("actions: expected a set with a linear objective"):
            check_fits(policy, actions, None, shows_units=True)
        return
    if not isinstance(actions, IntegerProgram):  # HiGHS: repetitions take seconds
        check_policy(policy, actions)
    simulate(
        actions, Stochastic(Uniform(np.zeros(actions.d), np.ones(actions.d))), {"": policy}, 1, 1
    )


def test_a_set_of_one_action_is_played() -> None:
    for actions in (Explicit([[1, 2]]), Explicit([[0, 0]])):
        for policy in (LinTS(), LinUCB()):
            learner = Learner(actions, policy)
            for _ in range(4):
                play = learner.ask()
                learner.tell(play.id, 0)
                assert (play.action == actions.enumerate()[0]).all()


@pytest.mark.parametrize("policy", [LinTS, LinUCB])
@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "wide", True])
def test_sigma_is_positive(bad: Any, policy: Any) -> None:
    with refused("sigma"):
        policy(sigma=bad)


@pytest.mark.parametrize("bad", [0, 2.5, "all", None])
def test_limit_is_a_number_of_actions(bad: Any) -> None:
    with refused("limit"):
        LinUCB(limit=bad)


def test_sets_that_are_too_large_are_refused_before_round_1() -> None:
    for actions in (Transport([30] * 5, [30] * 5), Budget(10**12, [10**12] * 3)):
        with refused("actions: expected a set of at most 10000 actions: LinUCB enumerates"):
            Learner(actions, LinUCB())
    with refused("actions: expected a set of at most 8 actions"):
        Learner(PAPER, LinUCB(limit=8))
    with refused("actions: expected a set of at most 500 dimensions"):
        Learner(Budget(3, [1] * 600), LinTS())
    with refused("actions: expected a set with a linear objective"):
        Learner(Coverage(4, [3, 1]), LinTS())
