"""OLSUCBC and COSV: twins that read the whole history, estimates that are right, and settings."""

import itertools
import math

import numpy as np
import pytest
from examples_of_sets import SETS
from numpy.typing import ArrayLike
from refusal import refused
from scipy import stats

from multiplay import (
    COSV,
    OLSUCBC,
    ActionSet,
    Budget,
    Correlated,
    Duplicated,
    Explicit,
    Feedback,
    Knapsack,
    Policy,
    Transport,
    Uniform,
)
from multiplay.policies.base import check_fits
from multiplay.testing import check_policy
from multiplay.types import Arrays, FloatArray, IntArray

PLANS = Transport([1, 4, 5], [4, 6])
RNG = np.random.default_rng(0)
Round = tuple[IntArray, FloatArray]  # the units and the total of each arm


@pytest.mark.slow
@pytest.mark.parametrize("actions", SETS, ids=repr)
def test_contract(actions: ActionSet) -> None:
    for policy in (COSV(), OLSUCBC()):
        if policy.needs_linear and not (actions.linear or actions.extra):
            with refused("actions"):
                check_fits(policy, actions, None, shows_units=True)
        else:
            check_policy(policy, actions)


def slow_mean(history: list[Round], i: int) -> float:
    return float(sum(T[i] for _, T in history) / sum(k[i] for k, _ in history))


def slow_bound(history: list[Round], i: int, j: int, kappa: float) -> float:
    """Return the upper bound of the covariance of two round means, from all rounds with both."""
    both = [(k[i] * k[j], T[i] / k[i] * (T[j] / k[j])) for k, T in history if k[i] * k[j] > 0]
    weight = sum(w for w, _ in both)
    n = weight**2 / sum(w**2 for w, _ in both)
    estimate = sum(w * y for w, y in both) / weight
    estimate -= slow_mean(history, i) * slow_mean(history, j)
    h = kappa * math.sqrt(math.log(len(history) + 1) + math.log(len(history[0][0])))
    return min(0.25, float(estimate + (5 * h / n**0.5 + h**2 / n + 1 / n**2) / 4))


def slow_indices(actions: ActionSet, history: list[Round], policy: OLSUCBC) -> list[float]:
    d, t = actions.d, len(history) + 1
    f = policy.alpha * (math.log(t) + d * math.log(max(1.0, math.log(t))))
    units = [sum(k[i] for k, _ in history) for i in range(d)]
    found = []
    for a in actions.enumerate():
        arms = np.flatnonzero(a).tolist()
        squared = 0.0
        for i, j in itertools.product(arms, arms):
            bound = slow_bound(history, i, j, policy.kappa)
            g = bound * sum(k[i] * k[j] for k, _ in history)
            if i == j:
                g = 2 * max(g, 0.0) + actions.n[i] ** 2
            squared += a[i] / units[i] * g * a[j] / units[j]
        value = sum(a[i] * slow_mean(history, i) for i in arms)
        found.append(value - actions.sign * f * math.sqrt(max(squared, 0.0)))
    return found


@pytest.mark.parametrize(
    ("actions", "kappa"),
    [(PLANS, 0.1), (Budget(3, [2, 2, 1], at_most=True, sense="max"), 0.0), (Budget(2, [1] * 4), 1)],
    ids=repr,
)
def test_both_are_their_twins_on_the_whole_history(actions: ActionSet, kappa: float) -> None:
    """The same indices and deviations in every round, for units of varying numbers."""
    optimist, sampler = OLSUCBC(0.3, kappa), COSV(2.0, kappa)
    state, other = optimist.start(actions, None, 1), sampler.start(actions, None, 1)
    everything, late = actions.enumerate(), 0
    history: list[Round] = []
    world = Correlated(Uniform(0, 1), 0.4).open(actions, 60, [0], seed=1)
    for _ in range(60):
        play = optimist.choose(actions, state, RNG)
        late += not state["unseen"].any()
        if late % 5 == 1:
            expected = slow_indices(actions, history, optimist)
            assert optimist.indices(actions, state)[0] == pytest.approx(expected, abs=1e-9)
            best = actions.sign * np.array(expected)
            assert best[(everything == play.action).all(axis=1)] <= best.min() + 1e-9
            for i in np.flatnonzero(actions.n).tolist():
                rounds, units = [k[i] for k, _ in history], sum(k[i] for k, _ in history)
                variance = max(slow_bound(history, i, i, kappa), 0.0)
                squared = sum(k**2 for k in rounds) * variance + actions.n[i] ** 2
                deviation = sampler.deviation(actions, other)[0, i]
                assert deviation == pytest.approx(math.sqrt(2 * squared) / units)
        feedback = world.observe(play.action).feedback
        optimist.update(actions, state, play, feedback, RNG)
        sampler.update(actions, other, play, feedback, RNG)
        history.append((play.action[0], feedback.total[0]))
    assert late > 40


def played(actions: ActionSet, correlation: ArrayLike, rounds: int) -> tuple[OLSUCBC, Arrays]:
    """Return the state after rounds with random actions of the set."""
    policy, rng = OLSUCBC(), np.random.default_rng(3)
    state = policy.start(actions, None, 1)
    world = Correlated(Uniform(0, 1), correlation).open(actions, rounds, [0], seed=5)
    for _ in range(rounds):
        action = actions.argmin(rng.normal(size=(1, actions.d)))
        policy.absorb(actions, state, world.observe(action).feedback, rng)
    return policy, state


@pytest.mark.parametrize("actions", [Budget(2, [1] * 3), Budget(5, [4, 3, 2])], ids=repr)
@pytest.mark.parametrize("r", [0.0, 1.0, -0.5, 0.8])
def test_covariances_of_round_means_are_estimated(actions: ActionSet, r: float) -> None:
    """Of uniform losses with a Gaussian copula: asin(R / 2) / (2 pi), whatever the units are.

    4,000 rounds, each pair in a third of them at least: the standard error is below 0.004.
    """
    policy, state = played(actions, r, 4_000)
    exact = math.asin(r / 2) / (2 * math.pi)
    assert r != 1 or exact == pytest.approx(1 / 12), "arms that are the same"
    expected = np.where(np.eye(3) > 0, 1 / 12, exact)
    assert np.abs(policy.covariance(state)[0] - expected).max() < 0.016


def test_arms_that_cancel_each_other_are_less_in_doubt() -> None:
    """The doubt about a total is that of its variance: none if the total is constant."""
    actions = Explicit([[1, 1]])
    doubts = []
    for r in (-1.0, 0.0, 1.0):
        _, state = played(actions, [[1, r], [r, 1]], 1_000)
        state["t"][:] = 1_001
        mean = (state["sum"] / state["count"]).sum()
        index = OLSUCBC(1.0, 0.0).indices(actions, state)[0, 0]
        f = math.log(1_001) + 2 * math.log(math.log(1_001))
        doubts.append(((mean - index) / f) ** 2)
        variance = (2 + 2 + 2 * r) / 12 / 1_000  # the diagonal counts twice
        assert doubts[-1] == pytest.approx(variance + 2 / 1_000**2, rel=0.1)
    assert doubts[0] < doubts[1] < doubts[2]


def test_every_pair_of_arms_is_seen_first() -> None:
    for actions in (PLANS, Budget(2, [1] * 5), Knapsack([3, 4, 5], 10)):
        policy, d = OLSUCBC(), actions.d
        state = policy.start(actions, None, 1)
        used = actions.enumerate() > 0
        possible = (used[:, :, None] & used[:, None, :]).any(axis=0)
        for _ in range(d * (d + 1) // 2):
            play = policy.choose(actions, state, RNG)
            policy.update(actions, state, play, Feedback(play.action, play.action / 2), RNG)
        assert ((state["pairs"][0] > 0) == possible).all()


def test_cosv_draws_with_the_stated_deviation() -> None:
    trials = 20_000
    policy, actions = COSV(1.5, 0.2), Budget(3, [2, 2])
    state = policy.start(actions, None, 1)
    for total in ([0.4, 0.9], [1.1, 0.1], [0.8, 0.3]):
        count = np.array([[2, 1]])
        policy.absorb(actions, state, Feedback(count, np.array([total])), RNG)
    many = {name: np.repeat(array, trials, axis=0) for name, array in state.items()}
    theta = policy.index(actions, many, np.random.default_rng(2))
    assert theta is not None
    mean, deviation = state["sum"] / state["count"], policy.deviation(actions, state)
    for i in range(2):
        law = stats.norm(mean[0, i], deviation[0, i])
        assert stats.kstest(theta[:, i], law.cdf).pvalue > 1e-4


@pytest.mark.parametrize(("kind", "scale"), [(OLSUCBC, "alpha"), (COSV, "beta")])
def test_settings_are_checked(kind: type[Policy], scale: str) -> None:
    for bad in (0.0, -1.0, math.nan, math.inf, "x", None, True):
        with refused(scale):
            kind(**{scale: bad})
    for bad in (-0.1, math.nan, math.inf, "x"):
        with refused("kappa"):
            kind(kappa=bad)  # type: ignore[call-arg]
    check_policy(Duplicated(kind()), Budget(2, [2, 1]))


def test_olsucbc_refuses_sets_that_are_too_large() -> None:
    with refused("actions"):
        OLSUCBC(limit=8).start(PLANS, None, 1)
    assert OLSUCBC(limit=9).start(PLANS, None, 1)["t"] == 1
    with refused("limit"):
        OLSUCBC(limit=0)
