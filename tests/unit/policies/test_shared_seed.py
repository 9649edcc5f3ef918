"""One seed for all arms: quantiles, marginal distributions, dependence, and a slow reference."""

from typing import Any

import numpy as np
import pytest
from refusal import refused
from scipy import integrate, stats
from scipy.special import betainc, betaincinv

from multiplay import (
    BGCTS,
    COSV,
    ActionSet,
    BootstrapCTS,
    Budget,
    Changes,
    Explicit,
    Feedback,
    GaussianCTS,
    GenCTS,
    Knapsack,
    Play,
    Policy,
    Streams,
    Transport,
)
from multiplay.kernels.quantiles import NORMAL, beta_quantiles
from multiplay.random import POLICY
from multiplay.testing import check_policy
from multiplay.types import Arrays, FloatArray

FAILS = 1e-4  # level of each comparison of distributions
DRAWS = 4000
ARMS = Transport([1, 4, 5], [4, 6])
REWARDS = Knapsack([3, 4, 5, 6], 16)
Kind = tuple[type[Any], dict[str, Any]]
KINDS: list[Kind] = [
    (GenCTS, {}),
    (GaussianCTS, {}),
    (BGCTS, {}),
    (COSV, {}),
    (BootstrapCTS, {}),
    (BootstrapCTS, {"memory": Changes(), "curiosity": 0.1}),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("actions", [ARMS, REWARDS, Budget(2, [1, 1, 3])], ids=str)
def test_the_contract(kind: Kind, actions: ActionSet) -> None:
    check_policy(kind[0](**kind[1], shared_seed=True), actions)


@pytest.mark.parametrize(
    ("low", "high"), [(0.02, 2), (1, 30), (1, 1e5), (1e3, 1e4), (1e5, 1e9)], ids=str
)
def test_quantiles_are_those_of_scipy(low: float, high: float) -> None:
    rng = np.random.default_rng(4)
    a, b = np.exp(rng.uniform(np.log(low), np.log(high), (2, 2000, 2)))
    z = rng.uniform(-5, 5, (2000, 1))
    found = np.empty(a.shape)
    beta_quantiles(z, a, b, found)
    u, v = stats.norm.cdf(z), stats.norm.sf(z)
    exact = np.where(z < 0, betaincinv(a, b, u), 1 - betaincinv(b, a, v))
    sd = np.sqrt(a * b / (a + b + 1)) / (a + b)
    assert (np.abs(found - exact) <= 1e-3 * sd).all()
    few = np.minimum(a, b) < NORMAL
    assert (np.abs(found - exact)[few] <= (2e-5 * sd + 1e-15)[few]).all()
    inside = (found > 1e-9) & (found < 1 - 1e-9)  # elsewhere a rounding error is a probability
    assert (np.abs(betainc(a, b, found) - u)[inside] < 3e-6).all()


def played(policy: Policy, actions: ActionSet, rounds: int = 12) -> Arrays:
    """Return the state after rounds in which means change late, and the last arm is not seen."""
    rng = np.random.default_rng(2)
    state = policy.start(actions, None, 1)
    n, first = actions.n, np.append(0, np.cumsum(actions.n))
    for t in range(rounds):
        seen = rng.integers(0, n + 1)[None, :]
        seen[0, -1] = 0
        means = np.linspace(0.1, 0.9 if t < rounds - 2 else 0.5, actions.d).repeat(n)
        units = np.clip(rng.normal(means, 0.1), 0, 1)
        total = np.array([[units[first[i] :][: seen[0, i]].sum() for i in range(actions.d)]])
        flat = np.zeros((1, first[-1]))
        flat[0] = units
        feedback = Feedback(seen, total, flat, first)
        policy.update(actions, state, Play(seen), feedback, Streams.spawn(0, POLICY, [0]))
    return state


def drawn(policy: Any, state: Arrays, actions: ActionSet, seed: int) -> FloatArray:
    many = {name: np.repeat(array, DRAWS, axis=0) for name, array in state.items()}
    theta: FloatArray = policy.index(actions, many, Streams.spawn(seed, POLICY, range(DRAWS)))
    return theta


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("actions", [ARMS, REWARDS], ids=["losses", "rewards"])
def test_each_arm_draws_as_with_a_seed_of_its_own(kind: Kind, actions: ActionSet) -> None:
    own, shared = kind[0](**kind[1]), kind[0](**kind[1], shared_seed=True)
    state = played(own, actions)
    apart, together = drawn(own, state, actions, 7), drawn(shared, state, actions, 8)
    for i in range(actions.d):
        assert stats.ks_2samp(apart[:, i], together[:, i]).pvalue > FAILS
    ranks = np.asarray(stats.spearmanr(together).statistic)
    if kind[0] is BootstrapCTS:  # two or three numbers: the ranks agree, not perfectly
        assert ranks.min() > 0.3
        assert np.abs(np.asarray(stats.spearmanr(apart).statistic)[0, 1:]).max() < 0.1
    else:
        order = np.argsort(together[:, 0])
        assert (np.diff(together[order], axis=0) >= -1e-9).all()
        assert ranks.min() > 1 - 1e-9


class Fixed:
    """Random numbers that are given: what a policy draws from them is a function of them."""

    def __init__(self, numbers: FloatArray) -> None:
        self.state = np.zeros((len(numbers), 4), dtype=np.uint64)
        self.numbers = numbers

    def random(self, size: tuple[int, ...]) -> FloatArray:
        return self.numbers[:, : size[1]]

    def integers(self, low: int, high: int, size: tuple[int, ...], dtype: type) -> Any:
        return np.zeros(size, dtype=dtype)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_bootstrap_draws_rise_with_each_of_the_numbers(number: int) -> None:
    policy = BootstrapCTS(memory=Changes(), shared_seed=True)
    state = played(policy, ARMS)
    grid = np.full((300, 3), 0.3)
    grid[:, number] = np.linspace(0.001, 0.999, 300)
    rng: Any = Fixed(grid)
    many = {name: np.repeat(array, 300, axis=0) for name, array in state.items()}
    theta = policy.index(ARMS, many, rng)
    assert theta is not None
    assert (np.diff(theta, axis=0) >= -1e-12).all()
    assert (np.ptp(theta, axis=0) > 0).any()


def test_the_weights_of_the_bootstrap_have_the_quantile_of_an_integral() -> None:
    """V_1 + V_n c by adaptive quadrature over V_n ~ Beta(n, 2), V_1 uniform on [0, 1 - V_n]."""
    policy, two = BootstrapCTS(shared_seed=True), Budget(1, [1, 1])
    for c, n in ((0.3, 1), (0.3, 7), (0.9, 3)):
        state = policy.start(two, None, 1)
        for _ in range(n):  # a constant loss: the core does not vary
            seen = np.array([[1, 0]])
            feedback = Feedback(seen, seen * c, np.array([[c, 0.0]]), np.array([0, 1, 2]))
            policy.update(two, state, Play(seen), feedback, Streams.spawn(0, POLICY, [0]))
        for u in (0.01, 0.2, 0.5, 0.95):
            rng: Any = Fixed(np.full((1, 3), u))
            theta = policy.index(two, state, rng)
            assert theta is not None
            x = float(theta[0, 0])

            def below(v: float, x: float = x, c: float = c, n: int = n) -> float:
                share = min(max(x - v * c, 0.0) / (1 - v), 1.0) if v < 1 else float(c <= x)
                return share * float(stats.beta.pdf(v, n, 2))

            breaks = [b for b in (x / c, (1 - x) / (1 - c)) if 0 < b < 1]
            found, _ = integrate.quad(below, 0, 1, points=breaks or None)
            assert found == pytest.approx(u, abs=1e-7)


def slow_draw(policy: Policy, state: Arrays, k: int, number: float) -> FloatArray:
    """Return the draws of trial k by scipy's quantiles at a uniform number."""
    if isinstance(policy, GenCTS):
        return np.asarray(stats.beta.ppf(number, state["p"][k], state["q"][k]))
    count = np.maximum(state["count"][k], 1)
    return np.asarray(stats.norm.ppf(number, state["sum"][k] / count, np.sqrt(0.25 / count)))


@pytest.mark.parametrize("kind", [GenCTS, GaussianCTS])
@pytest.mark.parametrize("actions", [REWARDS, Explicit([[2, 0, 1], [1, 1, 1], [0, 3, 0]])], ids=str)
def test_plays_are_the_best_for_the_slow_reference(kind: type[Any], actions: ActionSet) -> None:
    """By scipy's quantiles and the list of all actions; equal draws have several best ones."""
    policy, trials, every = kind(shared_seed=True), 3, actions.all_actions(10_000)
    rng, losses = Streams.spawn(1, POLICY, range(trials)), np.random.default_rng(8)
    state = policy.start(actions, None, trials)
    checked, different = 0, set()
    for _ in range(60):
        numbers = Streams(rng.state.copy()).random((trials, 1))[:, 0]
        play = policy.choose(actions, state, rng)
        for k in range(trials):
            if "count" in state and (state["count"][k] == 0).any():
                continue  # GaussianCTS plays unseen arms first
            values = actions.sign * (every @ slow_draw(policy, state, k, numbers[k]))
            mine = values[(every == play.action[k]).all(axis=1)]
            assert mine == pytest.approx(values.min(), abs=1e-8)
            checked += 1
            different.add(tuple(play.action[k]))
        total = losses.binomial(play.action, np.linspace(0.3, 0.5, actions.d)).astype(float)
        policy.update(actions, state, play, Feedback(play.action, total), rng)
    assert checked > 100
    assert len(different) > 1


def test_bad_settings() -> None:
    for kind in (GenCTS, GaussianCTS, BootstrapCTS):
        for bad in ("yes", 1, None):
            with refused("shared_seed: expected True or False"):
                kind(shared_seed=bad)  # type: ignore[arg-type]
    with refused("shared_seed: expected a rule that fits the posterior"):
        BootstrapCTS(0.5, shared_seed=True)


def test_the_default_is_not_in_the_name_of_a_policy() -> None:
    assert repr(GenCTS()) == "GenCTS()"
    assert repr(GenCTS(shared_seed=True)) == "GenCTS(shared_seed=True)"
