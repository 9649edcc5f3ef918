"""Guarantees: by hand on two arms, and on simulated runs."""

import math
import re
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from refusal import refused
from scipy import optimize

from multiplay import (
    Adversarial,
    Assignment,
    Bernoulli,
    Budget,
    Corrupted,
    Coverage,
    Explicit,
    GenCTS,
    GenLBINFV,
    InvalidInput,
    Knapsack,
    RandomWalk,
    Result,
    Stochastic,
    Streams,
    Transport,
    Uniform,
    simulate,
)
from multiplay.actions import ActionSet
from multiplay.environments import Environment
from multiplay.experiments import paper
from multiplay.random import POLICY
from multiplay.results.plots import Bound
from multiplay.theory import Gaussian, families, lower_bound
from multiplay.theory.guarantees import (
    Guarantee,
    Instance,
    gencts,
    genlbinfv_adversarial,
    genlbinfv_corrupted,
    genlbinfv_stochastic,
    realised_bound,
)
from multiplay.types import FloatArray, IntArray

TWO = Budget(3, [3, 2])  # (3, 0), (2, 1), (1, 2)
MEANS = [0.2, 0.5]


def test_two_arms_by_hand() -> None:
    """a* = (3, 0); every other action plays both arms, and the nearest has gap 0.3."""
    two = Instance(TWO, MEANS)
    assert two.best.tolist() == [3, 0]
    assert two.Delta == pytest.approx([0.3, 0.3])
    assert (two.W, two.lambda_A, two.kappa) == (5, 2, 3)
    t = np.array([10.0, 100.0])
    assert gencts(two).curve(t) == pytest.approx(9 * 2 * (6 + 2 * math.log(2)) / 0.3 * np.log(t))


@pytest.mark.parametrize(("eta", "proved"), [(None, True), (0.25, False)])
def test_the_stochastic_promise_is_the_maximum_of_its_proof(
    eta: float | None, proved: bool
) -> None:
    """TWO has n = (3, 2) and a* = (3, 0): b = (3.6, 2.4), delta = 2, z = 2 s^2 / 0.3."""
    for s2 in (0.0, 0.01, 0.25, 10.0):  # no loss varies by 10, but the formula must be right
        promise = genlbinfv_stochastic(Instance(TWO, MEANS), [0.1, s2], eta)
        assert promise.proved is proved
        z = 2 * s2 / 0.3 * (1 if eta is None else 2)
        y = np.linspace(1, 1000, 4_000_000) if z > 0 else np.ones(1)
        cost = 2.4**2 * (y**2 - 1) / z if z > 0 else 0.0
        h = (4 * 2.4 * y + 4 * 2 * 2 * np.log(y) - cost).max() - 2 * 2.4
        assert promise.curve(np.array([math.e])) == pytest.approx(h + 2 * 3.6)


@pytest.mark.parametrize("corruption", [0.0, 1.0, 100.0, 1e5])
@pytest.mark.parametrize("eta", [None, 0.25])
def test_the_corrupted_bound_is_the_minimum_of_its_proof(
    corruption: float, eta: float | None
) -> None:
    """TWO has a* = (3, 0), M = 3, one arm in J with n = 2; its arms have epsilon 0.5 and 0.1."""
    bound = genlbinfv_corrupted(Instance(TWO, MEANS), 0.2, corruption, eta, epsilon=[0.5, 0.1])
    g, shrink = math.log(1000), 1 if eta is None else 1 - 2 * eta
    z, delta, b = 2 * 0.2 / 0.3 / shrink, 1.1 / 0.3, (3 * 1.5, 2 * 1.1)
    y = np.geomspace(1, 1e7, 40_000)

    def leading(log_chi: float) -> float:
        chi = math.exp(log_chi)
        f = 2 * b[1] * y + 2 * 2 * delta * np.log(y) - b[1]  # x = b^2 (y^2 - 1) / s^2
        gain = ((1 + chi) * f - chi * b[1] ** 2 * (y**2 - 1) / z).max()
        root = math.sqrt(6 * corruption / shrink) * 2 * (2 + delta / 1.1)
        whole = g * (gain + (1 + chi) * b[0]) + (1 + chi) * root * math.sqrt(g)
        return float(whole + 2 * chi * corruption * 3)

    best = optimize.minimize_scalar(leading, bounds=(-12, 0), method="bounded").fun
    assert bound.curve(np.array([1000.0])) == pytest.approx(min(best, leading(0.0)), rel=2e-3)


def test_the_corrupted_bound_grows_from_the_stochastic_one_like_a_root() -> None:
    instance, t = Instance(TWO, MEANS), np.array([10.0, 1e3, 1e6])
    clean = genlbinfv_stochastic(instance, 0.25).curve(t)
    assert (genlbinfv_corrupted(instance, 0.25, 0.0).curve(t) <= clean).all()
    curves = [genlbinfv_corrupted(instance, 0.25, C).curve(t) for C in (0, 1, 10, 1e6, 4e6)]
    assert all((less < more).all() for less, more in pairwise(curves))
    assert curves[-1] == pytest.approx(2 * curves[-2], rel=0.1)
    assert genlbinfv_corrupted(instance, 0.25, 1.0).proved
    assert not genlbinfv_corrupted(instance, 0.25, 1.0, eta=0.1).proved, "n = 2"


@pytest.mark.parametrize("n", [1, 3, 10])
@pytest.mark.parametrize("pattern", ["first rounds", "now and then", "to one side", "one round"])
def test_corruption_enters_the_weights_at_most_six_times(n: int, pattern: str) -> None:
    """The step of the proof that the paper has with the factor 1, on least squares.

    The squared errors of the predictions, with weights (a / n)^2, are at most those of losses
    without corruption plus 6 C (2 C for n = 1), up to logarithms.
    """
    rng, rounds, mean = np.random.default_rng(n), 2000, 0.3
    extra = np.zeros(8)
    for trial in range(8):
        a = rng.integers(1, n + 1, rounds)
        clean = np.array([(rng.random(k) < mean).mean() for k in a])
        corrupt = {
            "first rounds": np.arange(rounds) < 300,
            "now and then": rng.random(rounds) < 0.1,
            "to one side": rng.random(rounds) < 0.5 / np.sqrt(1 + np.arange(rounds)),
            "one round": np.arange(rounds) == 7,
        }[pattern]
        seen = np.where(corrupt, 1.0 if pattern != "now and then" else clean < mean, clean)
        weights, q = (a / n) ** 2, [0.5]
        total, count = 0.5, 1
        for k, units in zip(seen, a, strict=True):
            total, count = total + units * k, count + units
            q.append(total / count)
        C = np.abs(seen - clean).sum()
        wrong = (weights * (seen - np.array(q[:-1])) ** 2).sum()
        right = (weights * mean * (1 - mean) / a).sum()
        extra[trial] = wrong - right - (2 if n == 1 else 6) * C
    assert extra.mean() < 2 + math.log(n * rounds)


def test_regret_under_corruption_is_below_its_bound() -> None:
    """The first 100 rounds are corrupted; without corruption the first arm of three is best."""
    three, means, T = Budget(1, [1, 1, 1]), np.array([0.2, 0.6, 0.7]), 2000
    world = Corrupted(Bernoulli(1 - means), Bernoulli(means), at=100)
    by_arm = (0.5, 0.1, 0.2)
    for policy, eta, epsilon in (
        (GenLBINFV(), None, 0.2),
        (GenLBINFV(prediction="gd", eta=0.1), 0.1, 0.2),
        (GenLBINFV(epsilon=by_arm), None, by_arm),
    ):
        result = simulate(three, world, {"A": policy}, T, trials=10)
        variances, C = means * (1 - means), 100.0
        bound = genlbinfv_corrupted(Instance(three, means), variances, C, eta, epsilon)
        assert bound.proved
        assert result.final("A").mean() < bound.curve(np.array([T]))[0] < 0.6 * T


def test_rewards_by_hand() -> None:
    two = Instance(Budget(3, [3, 2], sense="max"), MEANS)
    assert two.best.tolist() == [1, 2]
    assert two.Delta == pytest.approx([0.3, 0.3])
    assert not genlbinfv_stochastic(two, 0.25).proved, "a*_1 = 1 is neither 0 nor 3"


def test_many_units_of_an_arm_are_not_promised_for_nothing() -> None:
    """The constant was 2.0 with kappa = 1, where no policy can do better than 4.9."""
    thirty = Explicit([[30, 0], [0, 30]])
    promise = gencts(Instance(thirty, [0.4, 0.5])).curve(np.array([math.e]))
    assert promise == pytest.approx(30**2 * 6 / 3)
    assert lower_bound(thirty, [0.4, 0.5], families.Bernoulli()).constant == pytest.approx(
        4.9, abs=0.01
    )


def random_instance(rng: np.random.Generator) -> Instance:
    """Return a small set of some kind, with means that have one best action."""
    d = int(rng.integers(2, 6))
    caps = rng.integers(1, 6, d)
    sense = "min" if rng.random() < 0.5 else "max"
    kinds: list[Callable[[], ActionSet]] = [
        lambda: Budget(int(rng.integers(1, caps.sum())), caps, sense=sense),
        lambda: Budget(int(rng.integers(1, d)), [1] * d, sense=sense),
        lambda: Transport(rng.multinomial(5, [1 / 3] * 3) + 1, [4, 4], sense=sense),
        lambda: Assignment(3, 3, sense=sense),
        lambda: Knapsack(rng.integers(2, 6, d), 9),
        lambda: Explicit(
            np.vstack(
                [rng.integers(0, 31, (int(rng.integers(2, 9)), d)), 30 * np.eye(d, dtype=int)]
            ),
            sense=sense,
        ),
    ]
    while True:
        actions = kinds[rng.integers(len(kinds))]()
        try:
            return Instance(actions, rng.uniform(0.05, 0.95, actions.d))
        except InvalidInput:  # two best actions
            continue


@pytest.mark.slow
@pytest.mark.parametrize("instances", [100, pytest.param(300, marks=pytest.mark.soak)])
def test_no_promise_is_below_the_lower_bound(instances: int) -> None:
    """On random instances of all sets, for each promise of the form c log T that has a constant.

    GenCTS sees coins only, so that its regret is that on Bernoulli losses with the same means. Its
    proof knows no more of losses than that they are sub-Gaussian with variance 1/4, so it may not
    promise less than what is possible there. GenLBINFV is promised a regret that shrinks with the
    variances: Bernoulli losses have l (1 - l), and Gaussian ones, the family of losses that are
    concentrated well inside [0, 1], have any.
    """
    rng, e = np.random.default_rng(0), np.array([math.e])
    closest = dict.fromkeys(("GenCTS", "LS", "GD"), np.inf)
    for _ in range(instances):
        instance = random_instance(rng)
        actions, means = instance.actions, instance.means
        some = rng.uniform(0.01, 0.25, actions.d)
        coins = lower_bound(actions, means, families.Bernoulli()).constant
        known = lower_bound(actions, means, Gaussian(0.25)).constant
        quiet = lower_bound(actions, means, Gaussian(some)).constant
        wide = means * (1 - means)
        pairs = [("GenCTS", gencts(instance), bound) for bound in (coins, known)]
        for name, eta in (("LS", None), ("GD", 0.25)):
            pairs.append((name, genlbinfv_stochastic(instance, wide, eta), coins))
            pairs.append((name, genlbinfv_stochastic(instance, some, eta), quiet))
        for name, promise, bound in pairs:
            assert promise.curve(e)[0] >= bound, f"{name} on {actions!r}, means {means}"
            if bound > 0:
                closest[name] = min(closest[name], promise.curve(e)[0] / bound)
    assert max(closest.values()) < 30, f"the test says something: {closest}"


@pytest.mark.slow
def test_the_theorem_without_its_constant_misses_the_bound_by_at_most_two() -> None:
    """c <= 2 sum_J* lambda_A s_i^2 / Delta_i for Gaussian losses, with equality on two arms.

    So the theorem's sum, taken with the constant 1, would be a promise below the bound.
    """
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(100):
        instance = random_instance(rng)
        s2 = rng.uniform(0.01, 0.25, instance.actions.d)
        c = lower_bound(instance.actions, instance.means, Gaussian(s2)).constant
        z = (instance.lambda_A * s2 / instance.Delta)[instance.best == 0].sum()
        assert c <= 2 * z * (1 + 1e-6)
        worst = max(worst, c / z if z > 0 else 0.0)
    assert worst == pytest.approx(2, rel=1e-6)


def test_adversarial_bound_by_hand() -> None:
    losses = np.tile([[0.2, 0.6], [0.4, 0.6]], (30, 1))
    result = simulate(TWO, Adversarial(losses), {"A": GenLBINFV()}, 60, trials=2)
    # arm 1 is in every action, with 0.2 and 0.4 in turn, and arm 2 always has 0.6:
    # L* = 3 * 18 = 54; Q2 = 60 * 0.1^2 = 0.6; V1 = 59 * 0.2 = 11.8; M T - L* = 126
    assert bound_at_60(genlbinfv_adversarial(TWO, result)) == pytest.approx(
        2 * math.sqrt(13 * 0.6 * math.log(60))
    )
    assert bound_at_60(genlbinfv_adversarial(TWO, result, eta=0.25)) == pytest.approx(
        2 * math.sqrt(13 * 0.6 * math.log(60) / 0.5)
    )


def bound_at_60(promise: Guarantee) -> float:
    return float(promise.curve(np.array([60.0]))[0])


def test_the_path_length_counts_twice() -> None:
    """R <= sqrt(sum n_i^2 log T (d + 8 V1) / (eta (1 - 2 eta))): 2 V1 / eta in the place of Z."""
    T, slow = 600, np.linspace([0.2, 0.6], [0.8, 0.6], 600)  # V1 = 0.6, and Q2 is 18
    result = simulate(TWO, Adversarial(slow), {"A": GenLBINFV()}, T, trials=2)
    bound = genlbinfv_adversarial(TWO, result, eta=0.25).curve(np.array([T]))
    assert bound == pytest.approx(math.sqrt(13 * math.log(T) * 8 * 0.6 / (0.25 * 0.5)))


@pytest.mark.slow
@pytest.mark.parametrize("prediction", ["ls", "gd"])
def test_units_that_differ_are_noise_to_who_plays_one_of_them(prediction: str) -> None:
    """Nothing varies over all slots, 0 and 1 against 2 d and 1, but regret grows like sqrt(T)."""
    pair, eta = Budget(2, [2, 2]), 0.25 if prediction == "gd" else None
    regret, promised = [], []
    for T in (1000, 4000):
        slots = np.tile([[0.0, 1.0], [5 / T**0.5, 1.0]], (T, 1, 1))
        policies = {"A": GenLBINFV(prediction=prediction)}
        result = simulate(pair, Adversarial(slots), policies, T, trials=50, seed=0)
        assert np.allclose(result.dataset["Q2"], 0, atol=1e-6)
        assert np.allclose(result.dataset["V1"], 0, atol=1e-6)
        regret.append(result.final("A").mean())
        promised.append(float(genlbinfv_adversarial(pair, result, eta).curve(np.array([T]))[0]))
    assert regret[1] / regret[0] > 1.5
    assert 1.5 < promised[1] / promised[0] < 2.5
    assert regret[0] < promised[0]
    assert regret[1] < promised[1]


def harder(t: int, past: IntArray) -> FloatArray:
    """Make arm 1 dear, in every trial, if more than one unit of it was played in the last round."""
    dear = past[-1, :, 0] > 1 if t > 1 else np.zeros(past.shape[1], dtype=bool)
    return np.column_stack([np.where(dear, 0.8, 0.4), np.full(len(dear), 0.5)])


def test_an_adaptive_adversary_has_numbers_for_each_policy() -> None:
    pair, world, T = Budget(2, [2, 2]), Adversarial(harder), 200
    policies = {"A": GenLBINFV(), "B": GenLBINFV(epsilon=0.5)}
    both = simulate(pair, world, policies, T, trials=3)
    with refused("policy"):
        genlbinfv_adversarial(pair, both)
    with refused("policy"):
        genlbinfv_adversarial(pair, both, policy="C")
    for name, policy in policies.items():
        alone = simulate(pair, world, {name: policy}, T, trials=3)
        assert (
            genlbinfv_adversarial(pair, both, policy=name).formula
            == genlbinfv_adversarial(pair, alone).formula
        )
    twins = simulate(pair, world, {"A": GenLBINFV(), "B": GenLBINFV()}, T, trials=3)
    same = twins.dataset.isel(policy=[0, 0]).assign_coords(policy=["A", "B"])
    assert genlbinfv_adversarial(pair, Result(same)).proved, "the same rows need no name"
    with refused("result"):
        genlbinfv_adversarial(pair, Result(both.dataset.drop_vars("Q2_played")), policy="A")


@pytest.mark.parametrize(
    ("epsilon", "least"), [(None, "34"), (0.5, "13"), (0.1, "176"), (0.01, "e^35.2")]
)
def test_the_realised_bound_needs_a_long_enough_horizon(epsilon: float | None, least: str) -> None:
    """log T - 1 >= 1/2 + (1 + e) / (3 e)."""
    policy, state = GenLBINFV(epsilon=epsilon), {"beta2": np.full((3, 2), 4.0)}
    enough = int(least) if least.isdigit() else 2 * 10**15
    assert realised_bound(TWO, policy, state, enough).mean > 0
    with refused("horizon"):
        realised_bound(TWO, policy, state, enough - 1 if least.isdigit() else 10**15)
    with pytest.raises(InvalidInput, match=f"at least {re.escape(least)} rounds"):
        realised_bound(TWO, policy, state, 12)


def test_realised_bound_by_hand() -> None:
    """beta grew from 1.2 to 2 on both arms: delta = 1.2 / 0.6 = 2."""
    bound = realised_bound(TWO, GenLBINFV(), {"beta2": np.full((3, 2), 4.0)}, horizon=100)
    grown = 2 * 2 - 1.2 + 4 * math.log(2 / 1.2)
    assert bound.mean == pytest.approx(math.log(100) * 5 * grown + 2 * 5 + 5 + 2 * 5 * 2)


def test_realised_bound_with_epsilon_by_arm() -> None:
    """TWO has n = (3, 2); delta = 1.5 / 1.5 = 1 and 1.2 / 0.6 = 2."""
    policy, state = GenLBINFV(epsilon=[0.5, 0.2]), {"beta2": np.full((3, 2), 4.0)}
    grown = 3 * (4 - 1.5 + 2 * math.log(2 / 1.5)) + 2 * (4 - 1.2 + 4 * math.log(2 / 1.2))
    bound = realised_bound(TWO, policy, state, horizon=100)
    assert bound.mean == pytest.approx(math.log(100) * grown + 2 * 5 + 5 + 2 * (3 * 1 + 2 * 2))
    with pytest.raises(InvalidInput, match="at least 34 rounds"):
        realised_bound(TWO, policy, state, 33)


@pytest.mark.parametrize(
    "environment",
    [
        Stochastic(Uniform(0, np.array([0.3, 0.6, 0.8, 0.5, 0.9, 0.4]))),
        Stochastic(Bernoulli([0.3, 0.6, 0.8, 0.5, 0.9, 0.4])),
        Adversarial(RandomWalk(0.1)),
    ],
    ids=["uniform", "Bernoulli", "walk"],
)
@pytest.mark.parametrize("policy", [GenLBINFV(), GenLBINFV(prediction="gd", epsilon=0.5)], ids=repr)
def test_the_realised_bound_holds(policy: GenLBINFV, environment: Environment) -> None:
    """The mean regret of 20 trials is below the mean bound, by far more than the noise."""
    plans, T, trials = Transport([1, 4, 5], [4, 6]), 1000, 20
    rng = Streams.spawn(0, POLICY, range(trials))
    world = environment.open(plans, T, range(trials), seed=0)
    state = policy.start(plans, T, trials)
    for _ in range(T):
        play = policy.choose(plans, state, rng)
        policy.update(plans, state, play, world.observe(play.action).feedback, rng)
    bound = realised_bound(plans, policy, state, T)
    regret = simulate(plans, environment, {"A": policy}, T, trials, seed=0).final("A")
    assert regret.mean() + 5 * regret.std() / trials**0.5 < bound.low
    assert bound.high < plans.M * T, "it says more than that losses are at most 1"


def test_refusals() -> None:
    with refused("means"):
        Instance(TWO, [0.5, 0.5])
    with refused("means"):
        Instance(TWO, [[0.5, 0.5]])
    with refused("actions"):
        Instance(Coverage(2, [1, 1]), [0.5, 0.5])
    with refused("eta"):
        genlbinfv_stochastic(Instance(TWO, MEANS), 0.25, eta=0.5)
    with refused("epsilon"):
        genlbinfv_stochastic(Instance(TWO, MEANS), 0.25, epsilon=0)
    with refused("epsilon"):
        genlbinfv_corrupted(Instance(TWO, MEANS), 0.25, 1.0, epsilon=[0.1, 0.2, 0.3])
    for corruption in (-1, math.inf, "much"):
        with refused("corruption"):
            genlbinfv_corrupted(Instance(TWO, MEANS), 0.25, corruption)  # type: ignore[arg-type]
    with refused("limit"):
        Instance(Budget(50, [1] * 100), np.linspace(0, 1, 100))


def test_bounds_are_drawn() -> None:
    result = simulate(TWO, Stochastic(Bernoulli(MEANS)), {"GenCTS": GenCTS()}, 100, trials=3)
    bounds: dict[str, Bound] = {
        "lower bound": lower_bound(TWO, MEANS, Gaussian(0.25)),
        "promise": gencts(Instance(TWO, MEANS)),
    }
    ax = result.plot(bounds=bounds).axes[0]
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["GenCTS", *bounds]
    rounds = result.regret["round"].values
    for line, bound in zip(ax.get_lines()[1:], bounds.values(), strict=True):
        assert np.allclose(line.get_ydata(), bound.curve(rounds.astype(float)))


def test_the_lower_bound_of_figure_1() -> None:
    """The mean over instances lies below what GenCTS loses, and grows with log T."""
    bound = paper.lower_bounds(trials=10, seed=0)
    regret = paper.run("stochastic", horizon=2000, trials=10).final("GenCTS").mean()
    assert 0 < bound.curve(np.array([2000.0]))[0] < regret
    each = [lower_bound(paper.PLANS, c, Gaussian(c**2 / 3)).constant for c in paper.costs(10, 0)]
    assert bound.constant == pytest.approx(np.mean(each))


def test_the_realised_bound_is_for_a_known_horizon() -> None:
    policy = GenLBINFV(anytime=True)
    with refused("state: expected the state of a run with a horizon"):
        realised_bound(TWO, policy, policy.start(TWO, 1000, 2), 1000)
