"""The field's other algorithms: contract, published numbers, and one property for each."""

import itertools
import math
import pathlib
from typing import Any

import numpy as np
import pytest
from examples_of_sets import SETS, Shifts
from known import check_known
from many_streams import many_streams
from refusal import refused
from scipy import stats

from multiplay import (
    ActionSet,
    Bernoulli,
    Budget,
    Coverage,
    Duplicated,
    Explicit,
    Feedback,
    IntegerProgram,
    Knapsack,
    Learner,
    Path,
    Policy,
    SpanningTree,
    Stochastic,
    Streams,
    Transport,
    simulate,
)
from multiplay.policies import (
    ESCB,
    FPLIX,
    LBINF,
    CombUCB,
    EpsilonGreedy,
    FollowTheLeader,
    GaussianCTS,
    GenLBINFV,
    Hybrid,
    RandomAction,
)
from multiplay.policies.base import check_fits
from multiplay.posteriors.averages import Normal
from multiplay.random import POLICY, Rng
from multiplay.testing import check_policy
from multiplay.types import Arrays, FloatArray, IntArray

PAPER = Transport([1, 4, 5], [4, 6])
EMPTY = Transport([2, 0, 3], [0, 4, 1])  # some arms can never be played
TWO = Budget(1, [1, 1])
POLICIES: list[Policy] = [
    CombUCB(),
    ESCB(),
    GaussianCTS(),
    FPLIX(),
    FPLIX(eta=0.5, gamma=0.0, cap=3),
    EpsilonGreedy(0.3),
    FollowTheLeader(),
    RandomAction(),
]
SEERS: list[Policy] = [CombUCB(), ESCB(), GaussianCTS(), FollowTheLeader(), EpsilonGreedy(0.0)]


def is_defined(policy: Policy, actions: ActionSet) -> bool:
    """Indices and sums of losses want a linear objective."""
    return actions.linear or not policy.needs_linear


ON_ALL = [*SETS, PAPER, EMPTY]


@pytest.mark.parametrize(
    ("policy", "actions"),
    [
        # each policy on a third of the sets, and each set with a third of the policies
        pytest.param(
            policy, actions, id=f"{policy}-{actions}", marks=[pytest.mark.slow] * (left > 0)
        )
        for i, policy in enumerate(POLICIES)
        for j, actions in enumerate(ON_ALL)
        for left in [(i + j) % 3]
    ],
)
def test_contract(policy: Policy, actions: ActionSet) -> None:
    slow = isinstance(actions, IntegerProgram)  # HiGHS: copies and repetitions take seconds
    if not is_defined(policy, actions):
        with refused("actions"):
            check_fits(policy, actions, None, shows_units=True)
        return
    if not (slow and isinstance(policy, FPLIX)):
        check_policy(policy, actions)
    if not slow and not isinstance(actions, Shifts):  # one oracle says nothing about copies
        check_policy(Duplicated(policy), actions)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "m", "g", "regret", "deviation"), [(4, 2, 0.25, 83, 18), (10, 5, 0.125, 348, 37)]
)
def test_combucb_has_its_published_regret_on_m_sets(
    d: int, m: int, g: float, regret: float, deviation: float
) -> None:
    """Public research code, mean and standard deviation of 30 runs; ours are 100.

    Within 4 combined standard errors: a right program fails for one seed in 16,000.
    """
    means = np.where(np.arange(d) < m, (1 - g) / 2, (1 + g) / 2)
    final = simulate(
        Budget(m, np.ones(d)),
        Stochastic(Bernoulli(means)),
        {"policy": CombUCB()},
        horizon=10_000,
        trials=100,
        seed=0,
        record=1,
    ).final("policy")
    check_known(final, regret, deviation / 30**0.5)


def counted(actions: ActionSet, trials: int, seed: int = 0, most: int = 30) -> Arrays:
    """Return a state with a few samples of every arm."""
    rng = np.random.default_rng(seed)
    count = rng.integers(1, most, (trials, actions.d))
    total = rng.binomial(count, 0.4)
    t = rng.integers(2, 1000, trials)
    return {"t": t, "count": count.astype(float), "sum": total.astype(float)}


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("t", [2, 3])
def test_combucb_is_optimistic_with_the_stated_frequency(t: int, sense: str) -> None:
    """The exact binomial frequency, by a z-test at level 1e-6; and t^(-2 alpha) bounds it."""
    trials, N, mu, alpha = 200_000, 40, 0.55, 0.5
    actions, rng = Budget(1, [1, 1], sense=sense), np.random.default_rng(t)
    state = {
        "t": np.full(trials, t),
        "count": np.full((trials, 2), float(N)),
        "sum": rng.binomial(N, mu, (trials, 2)).astype(float),
    }
    too_far = actions.sign * (CombUCB(alpha).bounds(actions, state) - mu) > 0
    heads, width = np.arange(N + 1), math.sqrt(alpha * math.log(t) / N)
    exact = stats.binom.pmf(heads, N, mu)[actions.sign * (heads / N - mu) > width].sum()
    error = math.sqrt(exact * (1 - exact) / too_far.size)
    assert 0.01 < exact < t ** (-2 * alpha)
    assert abs(too_far.mean() - exact) < 4.9 * error


@pytest.mark.parametrize("sense", ["min", "max"])
def test_combucb_bounds_equal_a_slow_loop(sense: str) -> None:
    actions = Budget(1, [1, 1, 1], sense=sense)
    state = counted(actions, 50, most=3000)
    bounds = CombUCB().bounds(actions, state)
    for trial, arm in itertools.product(range(50), range(3)):
        N, S = state["count"][trial, arm], state["sum"][trial, arm]
        width = math.sqrt(1.5 * math.log(state["t"][trial]) / N)
        slow = max(0, S / N - width) if sense == "min" else min(1, S / N + width)
        assert bounds[trial, arm] == pytest.approx(slow, rel=1e-12)


def test_combucb_stays_where_losses_live() -> None:
    for sense, bound in (("min", 0.0), ("max", 1.0)):
        actions = Budget(1, [1, 1], sense=sense)
        state = {"t": np.array([900]), "count": np.ones((1, 2)), "sum": np.full((1, 2), 0.5)}
        assert (CombUCB().bounds(actions, state) == bound).all()


LISTED: list[ActionSet] = [
    PAPER,
    Knapsack([3, 4, 5], 10),
    Path([("s", "a"), ("s", "b"), ("a", "t"), ("b", "t"), ("a", "b")], "s", "t", units=2),
    SpanningTree([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("b", "d")]),
    Explicit([[0, 3, 1], [2, 2, 1], [5, 0, 1]], sense="max"),
]


@pytest.mark.parametrize("actions", LISTED, ids=repr)
def test_escb_equals_a_slow_loop(actions: ActionSet) -> None:
    policy, state = ESCB(), counted(actions, 50)
    state["t"][0] = 2  # ln ln 2 < 0 counts as 0
    chosen = policy.choose(actions, state, np.random.default_rng(0)).action
    everything = actions.enumerate()
    for trial, t in enumerate(state["t"]):
        f = math.log(t) + 4 * actions.m * (math.log(math.log(t)) if t > math.e else 0)
        slow = []
        for a in everything:
            value, doubt = 0.0, 0.0
            for i in range(actions.d):
                value += a[i] * state["sum"][trial, i] / state["count"][trial, i]
                doubt += a[i] ** 2 / state["count"][trial, i]
            slow.append(actions.sign * value - math.sqrt(f / 2 * doubt))
        fast = actions.sign * policy.indices(actions, state)[trial]
        assert np.allclose(fast, slow, rtol=1e-12, atol=1e-12)
        assert (chosen[trial] == everything[np.argmin(fast)]).all()


@pytest.mark.parametrize("many", [True, False])
def test_gaussian_draws_have_the_right_mean_and_variance(many: bool) -> None:
    """Twelve z-tests, 6 means and 6 variances, at level 1e-6 together; and the whole law."""
    trials, beta = 40_000, 1.5
    state = {name: np.repeat(array, trials, 0) for name, array in counted(PAPER, 1).items()}
    rng: Rng = np.random.default_rng(0)
    if many:
        rng = many_streams(trials)
    theta = Normal(beta=beta).draw(PAPER, state, rng)
    mean, variance = (state["sum"] / state["count"])[0], beta / (4 * state["count"][0])
    assert (np.abs(theta.mean(axis=0) - mean) < 5.4 * np.sqrt(variance / trials)).all()
    error = variance * math.sqrt(2 / (trials - 1))
    assert (np.abs(theta.var(axis=0, ddof=1) - variance) < 5.4 * error).all()
    standard = ((theta - mean) / np.sqrt(variance)).ravel()
    assert stats.kstest(standard, "norm").pvalue > 1e-6


class Zeros:
    """A generator in very bad luck."""

    def random(self, size: tuple[int, ...]) -> FloatArray:
        return np.zeros(size)


def test_gaussian_draws_are_finite() -> None:
    state = counted(PAPER, 1)
    theta = Normal().draw(PAPER, state, Zeros())  # type: ignore[arg-type]
    assert np.isfinite(theta).all()
    assert (theta < -1).any()


@pytest.mark.parametrize("gamma", [0.0, 0.1])
@pytest.mark.parametrize("cap", [1, 3, 9, 1000])
def test_resampling_estimates_the_inverse_of_the_probability(cap: int, gamma: float) -> None:
    """Two arms with a gap of 1 in eta Lhat: the worse one leads with probability exp(-1) / 2.

    The mean of K is 1 / p up to the cap: z-tests by the sample's own error, at level 1e-6.
    """
    trials, policy = 40_000, FPLIX(cap=cap)
    costs = np.tile([2.0, 3.0], (trials, 1))
    wanted = np.ones((trials, 2), dtype=bool)
    rng = many_streams(trials)
    K = policy.repetitions(TWO, {"costs": costs}, np.full(trials, gamma), wanted, rng)
    q = np.array([1 - math.exp(-1) / 2, math.exp(-1) / 2])
    p = q + (1 - q) * gamma
    expected = (1 - (1 - p) ** cap) / p
    error = K.std(axis=0) / trials**0.5
    assert K.min() >= 1
    assert K.max() <= cap
    assert (np.abs(K.mean(axis=0) - expected) <= 5.1 * error + 1e-12).all()


def test_fplix_estimates_the_loss_of_one_unit() -> None:
    """Lhat = k K for what was played, however many units; its mean is k q / p, level 1e-6."""
    trials, k = 40_000, np.array([0.25, 0.75])
    actions, policy = Budget(3, [3, 3]), FPLIX(eta=1.0, gamma=0.2)
    state = policy.start(actions, None, trials)
    state["L"] += [2.0, 3.0]
    rng = np.random.default_rng(1)
    play = policy.choose(actions, state, rng)
    assert set(map(tuple, play.action.tolist())) == {(3, 0), (0, 3)}
    policy.update(actions, state, play, Feedback(play.action, play.action * k), rng)
    estimate = state["L"] - [2.0, 3.0]
    K = estimate / k
    assert np.allclose(K, K.round())
    assert ((K >= 1 - 1e-9) == (play.action > 0)).all()
    q = np.array([1 - math.exp(-1) / 2, math.exp(-1) / 2])
    error = estimate.std(axis=0) / trials**0.5
    assert (np.abs(estimate.mean(axis=0) - k * q / (q + (1 - q) * 0.2)) < 5.1 * error).all()


def test_fplix_rate_follows_the_losses() -> None:
    state = FPLIX().start(PAPER, None, 2)
    state["L"][1] = 10.0
    expected = [math.sqrt((1 + math.log(6)) / 6), math.sqrt((1 + math.log(6)) / 66)]
    assert np.allclose(FPLIX().rate(state), expected)
    assert (FPLIX(eta=0.3).rate(state) == 0.3).all()


def test_fplix_judges_late_losses_by_their_own_play() -> None:
    """What the state has become must not matter: with certain costs K = 1 for what was played."""
    policy, rng = FPLIX(gamma=0.0, eta=1.0), np.random.default_rng(0)
    state = policy.start(TWO, None, 1)
    state["L"][:] = [0.0, 1e6]
    early = policy.choose(TWO, state, rng)
    state["L"][:] = [1e6, 0.0]
    policy.update(TWO, state, early, Feedback(early.action, early.action / 2), rng)
    assert state["L"].tolist() == [[1e6 + 0.5, 0.0]]


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0])
def test_epsilon_greedy_explores_with_frequency_epsilon(epsilon: float) -> None:
    """Of two arms a random action takes the worse with probability 1/2: exact test, level 1e-6."""
    trials = 100_000
    state = {
        "t": np.full(trials, 3),
        "count": np.ones((trials, 2)),
        "sum": np.tile([0.3, 0.6], (trials, 1)),
    }
    action = EpsilonGreedy(epsilon).choose(TWO, state, np.random.default_rng(0)).action
    assert stats.binomtest(int(action[:, 1].sum()), trials, epsilon / 2).pvalue > 1e-6


def history(policy: Policy, actions: ActionSet, rounds: int, trials: int) -> list[Any]:
    """Return (action, total) of every round against random losses."""
    rng = Streams.spawn(3, POLICY, range(trials))
    state, luck, seen = policy.start(actions, None, trials), np.random.default_rng(0), []
    for _ in range(rounds):
        play = policy.choose(actions, state, rng)
        total = luck.binomial(play.action, np.linspace(0.2, 0.8, actions.d)).astype(float)
        policy.update(actions, state, play, Feedback(play.action, total), rng)
        seen.append((play.action, total))
    return seen


@pytest.mark.parametrize("actions", LISTED, ids=repr)
def test_follow_the_leader_is_the_best_for_the_averages(actions: ActionSet) -> None:
    """From the whole history, over the list of all actions."""
    seen, everything = history(FollowTheLeader(), actions, 40, 5), actions.enumerate()
    followed = 0
    for t, trial in itertools.product(range(1, 40), range(5)):
        count = sum(action[trial] for action, _ in seen[:t])
        total = sum(losses[trial] for _, losses in seen[:t])
        if (count > 0).all():
            values = actions.sign * (everything @ (total / count))
            ours = actions.sign * (seen[t][0][trial] @ (total / count))
            assert ours <= values.min() + 1e-12
            followed += 1
    assert followed > 100


@pytest.mark.parametrize("policy", SEERS, ids=repr)
@pytest.mark.parametrize("actions", [*LISTED, EMPTY], ids=repr)
def test_every_arm_is_seen_first(policy: Policy, actions: ActionSet) -> None:
    """Each round shows something new, until all is seen that can be."""
    seen = np.zeros((5, actions.d), dtype=bool)
    for action, _ in history(policy, actions, actions.d, 5):
        missing = (~seen & (actions.n >= 1)).any(axis=1)
        new = ((action > 0) & ~seen).any(axis=1)
        assert (new | ~missing).all()
        seen |= action > 0
    assert (seen == (actions.n >= 1)).all()


def test_arms_that_can_never_be_played_are_not_waited_for() -> None:
    state, rng = counted(EMPTY, 50), np.random.default_rng(0)
    state["count"] *= EMPTY.n >= 1
    state["sum"] *= EMPTY.n >= 1
    leader = EMPTY.best(state["sum"] / np.maximum(state["count"], 1))
    assert (EMPTY.n == 0).any()
    assert len(np.unique(leader, axis=0)) > 1
    assert (FollowTheLeader().choose(EMPTY, state, rng).action == leader).all()


@pytest.mark.parametrize("policy", SEERS, ids=repr)
def test_trials_see_and_choose_side_by_side(policy: Policy) -> None:
    """One trial that has seen all, one that lacks an arm; and many plays before any feedback."""
    state = counted(PAPER, 2)
    state["count"][1, 3] = state["sum"][1, 3] = 0
    alone = {name: array[:1] for name, array in state.items()}
    both, rng = policy.choose(PAPER, state, Streams.spawn(0, POLICY, [0, 1])), [0]
    assert (
        both.action[0] == policy.choose(PAPER, alone, Streams.spawn(0, POLICY, rng)).action
    ).all()
    assert both.action[1, 3] == PAPER.n[3]
    fresh, streams = policy.start(PAPER, None, 2), Streams.spawn(0, POLICY, [0, 1])
    plays = [policy.choose(PAPER, fresh, streams) for _ in range(4)]
    for play in plays:
        policy.update(PAPER, fresh, play, Feedback(play.action, play.action / 2), streams)
    assert PAPER.contains(policy.choose(PAPER, fresh, streams).action).all()
    assert (fresh["t"] == 5).all()
    assert (fresh["count"] == sum(play.action for play in plays)).all()


@pytest.mark.parametrize("policy", [CombUCB(), FollowTheLeader()], ids=repr)
def test_rewards_are_mirrored_losses_where_all_actions_have_one_size(policy: Policy) -> None:
    """The same plays for losses L and for rewards 1 - L."""
    trials, luck = 20, np.random.default_rng(0)
    means = np.linspace(0.2, 0.8, 6)
    worlds = [Budget(4, [2] * 6, sense=sense) for sense in ("min", "max")]
    states = [policy.start(world, None, trials) for world in worlds]
    for _ in range(100):
        losses, gains = (
            policy.choose(world, state, luck) for world, state in zip(worlds, states, strict=True)
        )
        assert (losses.action == gains.action).all()
        a: IntArray = losses.action
        total = luck.binomial(a, means).astype(float)
        policy.update(worlds[0], states[0], losses, Feedback(a, total), luck)
        policy.update(worlds[1], states[1], gains, Feedback(a, a - total), luck)


def test_random_actions_are_random() -> None:
    """By symmetry all 6 pairs of 4 arms are equally likely: chi-squared test at level 1e-6."""
    trials, pairs, rng = 30_000, Budget(2, [1] * 4), np.random.default_rng(0)
    policy = RandomAction()
    action = policy.choose(pairs, policy.start(pairs, None, trials), rng).action
    _, observed = np.unique(action, axis=0, return_counts=True)
    assert len(observed) == 6
    assert stats.chisquare(observed).pvalue > 1e-6


def test_random_packings_are_not_empty() -> None:
    sack, policy = Knapsack([3, 4, 5], 10), RandomAction()
    action = policy.choose(sack, policy.start(sack, None, 1000), np.random.default_rng(0)).action
    assert (action.max(axis=0) == sack.n).all()


@pytest.mark.slow
@pytest.mark.parametrize("sense", ["min", "max"])
def test_all_of_them_learn(sense: str) -> None:
    """After 2000 rounds every policy has lost less than half of what random play loses."""
    policies = {repr(policy): policy for policy in POLICIES if policy != RandomAction()}
    result = simulate(
        Transport([1, 4, 5], [4, 6], sense=sense),
        Stochastic(Bernoulli([0.2, 0.6, 0.3, 0.2, 0.7, 0.4])),
        {**policies, "random": RandomAction()},
        horizon=2000,
        trials=10,
        seed=0,
        record=1,
    )
    random = result.final("random").mean()
    for name in policies:
        assert result.final(name).mean() < random / 2, name


def test_what_needs_no_linear_objective_learns_without() -> None:
    policies: dict[str, Policy] = {
        "CombUCB": CombUCB(),
        "GaussianCTS": GaussianCTS(),
        "EpsilonGreedy": EpsilonGreedy(),
        "FollowTheLeader": FollowTheLeader(),
        "random": RandomAction(),
    }
    world, calls = Stochastic(Bernoulli([0.1, 0.5, 0.9])), Coverage(6, [1.0, 2.0, 2.0])
    result = simulate(calls, world, policies, horizon=500, trials=10, seed=0, record=1)
    random = result.final("random").mean()
    for name in list(policies)[:-1]:
        assert result.final(name).mean() < random / 2, name


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_learners_are_saved_and_loaded(policy: Policy, tmp_path: pathlib.Path) -> None:
    """With a play under way, whose memo must survive too."""
    learner = Learner(PAPER, policy, seed=1)
    for _ in range(8):
        play = learner.ask()
        learner.tell(play.id, (play.action / 2).tolist())
    late = learner.ask()
    learner.save(tmp_path / "learner.npz")
    loaded = Learner.load(tmp_path / "learner.npz")
    for each in (learner, loaded):
        each.tell(late.id, (late.action / 4).tolist())
    for _ in range(5):
        assert loaded.ask().plan == learner.ask().plan


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, "often", True, None])
def test_epsilon_is_a_probability(bad: Any) -> None:
    with refused("epsilon"):
        EpsilonGreedy(bad)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "wide", True])
def test_widths_are_positive(bad: Any) -> None:
    with refused("alpha"):
        CombUCB(bad)
    with refused("beta"):
        GaussianCTS(bad)
    with refused("eta"):
        FPLIX(eta=bad)


@pytest.mark.parametrize("bad", [0, -1, 1.5, math.nan, "all", True])
def test_limits_are_whole_numbers(bad: Any) -> None:
    with refused("limit"):
        ESCB(bad)
    with refused("cap"):
        FPLIX(cap=bad)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, "low"])
def test_gamma_is_a_probability(bad: Any) -> None:
    with refused("gamma"):
        FPLIX(gamma=bad)


def test_escb_refuses_what_it_cannot_list() -> None:
    for actions in (Transport([30] * 5, [30] * 5), Budget(10**12, [10**12] * 3)):
        with refused("actions: expected a set of at most 10000 actions"):
            ESCB().start(actions, None, 1)
    with refused("actions: expected a set of at most 8 actions"):
        ESCB(limit=8).start(PAPER, None, 1)
    assert ESCB(limit=9).start(PAPER, None, 1)["t"] == 1


@pytest.mark.parametrize("policy", [ESCB(), FPLIX(), GenLBINFV(), LBINF(), Hybrid()], ids=repr)
def test_linear_policies_refuse_other_objectives(policy: Policy) -> None:
    calls = Coverage(4, [3, 1])
    for one in (policy, Duplicated(policy), Duplicated(Duplicated(policy))):
        with refused("actions: expected a set with a linear objective"):
            check_fits(one, calls, 100, shows_units=True)
        with refused("actions: expected a set with a linear objective"):
            Learner(calls, one)
        with refused("actions: expected a set with a linear objective"):
            simulate(calls, Stochastic(Bernoulli([0.5, 0.5])), {"it": one}, horizon=100, trials=1)
