"""Intervals for the mean losses of arms hold them as often as they say.

Every test of coverage is seeded, and a right program fails it for one seed in 10,000: a count of
intervals that hold is compared with the binomial quantile of its nominal level.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from multiplay import (
    Bernoulli,
    CombUCB,
    Feedback,
    GaussianCTS,
    GenCTS,
    Learner,
    Policy,
    Stochastic,
    Transport,
    Uniform,
)
from multiplay.environments import Distribution
from multiplay.policies.base import Play
from multiplay.random import POLICY, Streams
from multiplay.types import Arrays, BoolArray, FloatArray

FAILS = 1e-4
LAWS = ["bernoulli", "wide", "narrow"]


def law(name: str, means: FloatArray) -> Distribution:
    """Losses with these means: 0 or 1, spread out, or close together."""
    if name == "bernoulli":
        return Bernoulli(means)
    width = {"wide": 1.0, "narrow": 0.1}[name] * np.minimum(means, 1 - means)
    return Uniform(means - width, means + width)


def holds_often_enough(inside: BoolArray, level: float) -> bool:
    """Whether as many intervals hold as a level promises, where trials are independent."""
    return int(inside.sum()) >= stats.binom.ppf(FAILS, inside.size, level)


@cache
def play(policy: Policy, name: str, trials: int, rounds: int) -> tuple[FloatArray, Arrays]:
    """Play on a Transport with a uniform mean for each trial and arm: means and state."""
    plans = Transport([1, 4, 5], [4, 6])
    rng = Streams.spawn(1, POLICY, range(trials))
    means = np.random.default_rng(2).random((trials, plans.d))
    world = Stochastic(law(name, means)).open(plans, rounds, range(trials), 3)
    state = policy.start(plans, None, trials)
    for _ in range(rounds):
        choice = policy.choose(plans, state, rng)
        feedback = world.observe(choice.action).feedback
        policy.update(plans, state, choice, feedback, rng)
    return means, state


@pytest.mark.parametrize("name", LAWS)
def test_posteriors_hold_the_mean_after_any_play(name: str) -> None:
    """GenCTS: for uniform means its posterior is the true one, however it chose to play.

    So its coverage is the level itself, from both sides. All arms of a trial are looked at by one
    of them, another in each trial, so that what is counted is independent.
    """
    trials = 3000
    means, state = play(GenCTS(), name, trials, rounds=40)
    one = np.arange(trials), np.arange(trials) % means.shape[1]
    for level in (0.9, 0.95):
        ends = GenCTS().interval(state, level)
        assert ends is not None
        low, high = ends
        inside = ((low <= means) & (means <= high))[one]
        assert stats.binomtest(int(inside.sum()), trials, level).pvalue > FAILS


def interval_of(state: Arrays, level: float) -> tuple[FloatArray, FloatArray]:
    found = GaussianCTS().interval(state, level)
    assert found is not None
    return found


@pytest.mark.parametrize("name", LAWS)
def test_the_normal_posterior_holds_the_mean(name: str) -> None:
    trials = 3000
    means, state = play(GaussianCTS(), name, trials, rounds=40)
    one = np.arange(trials), np.arange(trials) % means.shape[1]
    for level in (0.9, 0.95):
        low, high = interval_of(state, level)
        assert holds_often_enough(((low <= means) & (means <= high))[one], level)


def test_little_is_known_of_arms_that_were_seldom_seen() -> None:
    plans = Transport([1, 4, 5], [4, 6])
    low, high = interval_of(GaussianCTS().start(plans, None, 2), 0.95)
    assert low.shape == (2, 6)
    assert (low == 0).all()
    assert (high == 1).all()
    ends = GenCTS().interval(GenCTS().start(plans, None, 2), 0.9)
    assert ends is not None
    np.testing.assert_allclose(ends, [np.full((2, 6), 0.05), np.full((2, 6), 0.95)])
    assert CombUCB().interval(CombUCB().start(plans, None, 1), 0.9) is None


@pytest.mark.smoke
def test_intervals_of_posteriors_are_their_quantiles() -> None:
    plans = Transport([1, 4, 5], [4, 6])
    rng = Streams.spawn(0, POLICY, range(2))
    count = np.array([[1, 0, 2, 3, 1, 3]] * 2)
    total = count * np.array([[0.25] * 6, [0.75] * 6])
    told = Feedback(count, total)
    for policy in (GenCTS(), GaussianCTS(beta=2.0)):
        state = policy.start(plans, None, 2)
        for _ in range(10):
            policy.update(plans, state, Play(count), told, rng)
        ends = policy.interval(state, 0.8)
        assert ends is not None
        low, high = ends
        if isinstance(policy, GenCTS):
            exact: Any = stats.beta(state["p"], state["q"])
        else:
            counted = np.maximum(state["count"], 1)
            exact = stats.norm(state["sum"] / counted, np.sqrt(2 / (4 * counted)))
        seen = count > 0
        np.testing.assert_allclose(low[seen], np.clip(exact.ppf(0.1), 0, 1)[seen], rtol=1e-9)
        np.testing.assert_allclose(high[seen], np.clip(exact.ppf(0.9), 0, 1)[seen], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [GenCTS(), GaussianCTS(), CombUCB()], ids=repr)
@pytest.mark.parametrize("by_total", [False, True], ids=["units", "totals"])
def test_what_a_plan_should_cost_is_in_its_interval(policy: Policy, by_total: bool) -> None:
    """The plan of the next day, and the best one; in euros, after 20 days of a learner's own."""
    plans, inside = Transport([1, 4, 5], [4, 6]), []
    for seed in range(150):
        rng = np.random.default_rng([seed, 5])
        means, learner = rng.random(plans.d), Learner(plans, policy, seed=seed, loss_range=(0, 250))
        for _ in range(20):
            play = learner.ask()
            euros = [250.0 * (rng.random(a) < m) for a, m in zip(play.action, means, strict=True)]
            learner.tell(play.id, [one.sum() for one in euros] if by_total else euros)
        for plan in (learner.ask(), learner.best()):
            truth, expected = 250 * float(plan.action @ means), plan.expected
            assert expected.low <= expected.total <= expected.high
            inside.append(expected.low <= truth <= expected.high)
    # the two plans of a learner are not independent: each kind is judged by itself
    assert holds_often_enough(np.array(inside[::2]), 0.95)
    assert holds_often_enough(np.array(inside[1::2]), 0.95)
