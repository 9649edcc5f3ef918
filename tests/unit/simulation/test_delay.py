"""Late feedback in simulations, against a loop over a queue of reports."""

import heapq
import tomllib
from typing import Any

import numpy as np
import pytest
from refusal import refused

from multiplay import (
    Bernoulli,
    CombUCB,
    Feedback,
    GenAdaINF,
    GenCTS,
    GenLBINFV,
    Play,
    Policy,
    Stochastic,
    TimeVarying,
    Transport,
    simulate,
)
from multiplay.experiments.experiment import build, experiment_file
from multiplay.policies.base import shown
from multiplay.random import POLICY, Streams
from multiplay.types import FloatArray

PLANS, MEANS = Transport([1, 4, 5], [4, 6]), np.array([0.1, 0.7, 0.4, 0.2, 0.3, 0.5])
COINS, T = Stochastic(Bernoulli(MEANS)), 60


def queued(policy: Policy, delays: list[int]) -> FloatArray:
    """Return the regret of three trials where round t is told after delays[t] more rounds."""
    world, rng = COINS.open(PLANS, T, range(3), 0), Streams.spawn(0, POLICY, range(3))
    state, regret = policy.start(PLANS, T, 3), np.zeros(3)
    best = PLANS.best(MEANS) @ MEANS
    queue: list[tuple[int, int, Play, Feedback]] = []
    for t in range(T):
        play = policy.choose(PLANS, state, rng)
        state |= play.cache
        regret += play.action @ MEANS - best
        bare, feedback = Play(play.action, play.memo), world.observe(play.action).feedback
        heapq.heappush(queue, (t + delays[t % len(delays)], t, bare, feedback))
        while queue and queue[0][0] <= t:
            _, _, told, feedback = heapq.heappop(queue)
            policy.update(PLANS, state, told, shown(policy, feedback), rng)
    return regret


@pytest.mark.parametrize("delay", [3, [0, 5, 1, 0, 9], 1000])
@pytest.mark.parametrize("policy", [GenCTS(), CombUCB(), GenLBINFV(), GenAdaINF()], ids=repr)
def test_reports_come_in_the_order_of_a_queue(policy: Policy, delay: Any) -> None:
    result = simulate(PLANS, COINS, {"it": policy}, T, 3, delay=delay)
    expected = queued(policy, delay if isinstance(delay, list) else [delay])
    np.testing.assert_allclose(result.final("it"), expected, rtol=1e-9)


def test_no_delay_changes_nothing() -> None:
    results = [simulate(PLANS, COINS, [GenLBINFV()], T, 2, delay=delay) for delay in (0, [0, 0])]
    assert results[0].regret.equals(results[1].regret)
    assert results[0].configuration == results[1].configuration


def test_delay_on_changing_sets() -> None:
    days = TimeVarying([PLANS, Transport([2, 3, 5], [5, 5])])
    result = simulate(days, COINS, [GenCTS(), GenLBINFV()], T, 3, delay=4, jobs=1)
    assert np.isfinite(result.regret).all()


def test_a_result_gives_the_file_that_repeats_it() -> None:
    result = simulate(PLANS, COINS, {"GenCTS": GenCTS()}, T, 2, delay=[0, 3])
    text = experiment_file(result)
    assert "delay = [0, 3]" in text
    assert build(tomllib.loads(text)).run().regret.equals(result.regret)


@pytest.mark.parametrize("delay", [-1, 1.5, "3", [], [1, None], True, np.nan])
def test_bad_delays(delay: Any) -> None:
    with refused("delay"):
        simulate(PLANS, COINS, [GenCTS()], T, 2, delay=delay)
