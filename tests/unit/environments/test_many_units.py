"""Losses of arms with many units: drawn again and again, stored never."""

import numpy as np
import pytest
from scipy import stats

from multiplay import (
    Bernoulli,
    Beta,
    Constant,
    Distribution,
    Duplicated,
    GenCTS,
    Stochastic,
    Transport,
    Uniform,
    simulate,
)
from multiplay.environments.base import Slots
from multiplay.environments.distributions import law_of
from multiplay.feedback import Units
from multiplay.random import LOSSES, POLICY, Streams
from multiplay.testing import check_environment
from multiplay.types import IntArray

FEW, MANY, HUGE = (Transport([k, 4 * k, 5 * k], [4 * k, 6 * k]) for k in (1, 100, 10**6))
MEANS = np.array([0.1, 0.5, 0.3, 0.25, 0.4, 0.35])
DISTRIBUTIONS = [Uniform(MEANS / 2, 2 * MEANS), Bernoulli(MEANS), Constant(MEANS)]
TRIALS = range(3)


def plays(actions: Transport, seed: int = 0) -> IntArray:
    """Return an action in every trial, and an arm with an odd number of units in each."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, actions.n + 1, (len(TRIALS), actions.d))


@pytest.mark.parametrize("actions", [FEW, MANY, HUGE])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_one_pass_gives_what_quantiles_give(actions: Transport, distribution: Distribution) -> None:
    slots, action = Slots(actions.n), plays(actions)
    arms = distribution.spread(TRIALS, np.arange(actions.d))
    each = distribution.spread(TRIALS, slots.owner)
    law = law_of(arms)
    assert law is not None
    here, there = (Streams.spawn(3, LOSSES, TRIALS) for _ in range(2))
    for t in range(1, 4):
        quick = slots.drawn(here, t, law, action, arms.mean)
        slow = slots.observation(each.quantile(slots.uniforms(there, t)), action, arms.mean)
        np.testing.assert_allclose(quick.feedback.total, slow.feedback.total, rtol=1e-12)
        np.testing.assert_allclose(quick.averages, slow.averages, rtol=1e-12)
        if slots.every_unit:
            assert np.array_equal(quick.feedback.units, slow.feedback.units)  # type: ignore[arg-type]
        else:
            assert quick.feedback.units is None


def test_a_distribution_of_ones_own_has_no_law() -> None:
    class Skewed(Uniform):
        pass

    assert law_of(Beta([[1.0]], [[2.0]])) is None
    assert law_of(Skewed([[0.0]], [[1.0]])) is None


@pytest.mark.parametrize("distribution", [*DISTRIBUTIONS, Beta([1, 2, 3, 4, 5, 6], 2)])
def test_the_contract_holds_for_many_units(distribution: Distribution) -> None:
    actions = Transport([70, 80, 90], [120, 120])
    assert Slots(actions.n).many
    check_environment(Stochastic(distribution), actions, horizon=4, trials=2)


def test_units_are_stored_when_somebody_looks_only() -> None:
    world = Stochastic(Uniform(0, 2 * MEANS)).open(MANY, 10, TRIALS, seed=0)
    feedback = world.observe(plays(MANY)).feedback
    assert isinstance(feedback._units, Units)
    world.observe(plays(MANY, seed=1))  # later rounds change nothing
    units, first = feedback.units, feedback.first
    assert units is not None
    assert first is not None
    for k, i in np.ndindex(feedback.count.shape):
        played = units[k, first[i] : first[i] + feedback.count[k, i]]
        np.testing.assert_allclose(feedback.total[k, i], played.sum(), rtol=1e-12)


def test_heads_are_those_of_the_units_that_were_seen() -> None:
    """Twin: the same coins, one by one, in plain Python."""
    world = Stochastic(Uniform(0, 2 * MEANS)).open(MANY, 10, TRIALS, seed=0)
    feedback = world.observe(plays(MANY)).feedback
    rng, coins = (Streams.spawn(5, POLICY, TRIALS) for _ in range(2))
    heads, units, first = feedback.flip(rng), feedback.units, feedback.first
    assert units is not None
    assert first is not None
    for k in TRIALS:
        bits = np.random.SFC64()
        state = bits.state
        state["state"]["state"] = coins.state[k].copy()
        bits.state = state
        for i in range(MANY.d):
            words = bits.random_raw((feedback.count[k, i] + 1) // 2)
            halves = np.column_stack([words >> np.uint64(32), words & np.uint64(2**32 - 1)])
            coin = halves.ravel()[: feedback.count[k, i]] / 2.0**32
            assert heads[k, i] == (coin < units[k, first[i] :][: len(coin)]).sum()
    generator = np.random.default_rng(0)
    assert (feedback.flip(generator) <= feedback.count).all()  # numpy's own will do as well


def test_luck_is_uniform_and_independent() -> None:
    """Five tests at the level 1e-4 each."""
    slots, streams = Slots(MANY.n), Streams.spawn(1, LOSSES, range(2))
    rounds = np.stack([slots.uniforms(streams, t) for t in range(1, 21)])  # (rounds, trials, slots)
    assert stats.kstest(rounds.ravel(), "uniform").pvalue > 1e-4
    flat = rounds.reshape(len(rounds), -1)
    pairs = [
        (rounds[:, 0], rounds[:, 1]),  # trials
        (flat[:-1], flat[1:]),  # rounds
        (rounds[..., slots.first[1] : slots.first[2]], rounds[..., : slots.first[1]]),  # arms
        (flat[:, :-1], flat[:, 1:]),  # neighbours
    ]
    for one, other in pairs:
        assert stats.pearsonr(one.ravel(), other.ravel()).pvalue > 1e-4


@pytest.mark.filterwarnings("ignore:all actions of")
def test_copies_meet_the_losses_of_many_units() -> None:
    few, policies = Transport([60, 60], [60, 60]), {"CTS": Duplicated(GenCTS())}
    assert Slots(few.n).many
    losses = Stochastic(Constant([0.25, 0.5, 0.75, 1.0]))
    result = simulate(few, losses, policies, horizon=3, trials=2)
    paid = result.dataset["realised"].to_numpy()
    np.testing.assert_allclose(paid, result.regret.to_numpy(), rtol=1e-12)  # nothing is luck here


@pytest.mark.parametrize("distribution", [*DISTRIBUTIONS, Uniform(0, np.full((3, 6), 0.5))])
def test_kernels_get_arrays_in_the_order_they_are_compiled_for(distribution: Distribution) -> None:
    """Parameters that are spread over the trials come in any order of memory."""
    world = Stochastic(distribution).open(FEW, 10, TRIALS, seed=0)
    seen = world.observe(plays(FEW))
    assert seen.means.flags.carray
    law = law_of(distribution.spread(TRIALS, np.arange(6)))
    assert law is not None
    assert law.numbers.flags.carray
