"""Long runs stay finite and feasible. Warnings are errors in these tests."""

import numpy as np
import pytest

from multiplay import GenLBINFV, Stochastic, Streams, Transport, Uniform
from multiplay.random import POLICY
from multiplay.types import FloatArray


def play_long(plans: Transport, means: FloatArray, rounds: int, prediction: str = "ls") -> None:
    """Play GenLBINFV, and check every plan and every state."""
    policy, rng = GenLBINFV(prediction), Streams.spawn(0, POLICY, [0])
    world = Stochastic(Uniform(0, 2 * means)).open(plans, rounds, [0], seed=0)
    state = policy.start(plans, rounds, 1)
    feasible = True
    for _ in range(rounds):
        play = policy.choose(plans, state, rng)
        a = play.action.reshape(len(plans.supply), len(plans.demand))
        feasible &= bool(
            (a >= 0).all()
            and (a.sum(axis=1) == plans.supply).all()
            and (a.sum(axis=0) == plans.demand).all()
        )
        policy.update(plans, state, play, world.observe(play.action).feedback, rng)
    assert feasible
    for name, array in state.items():
        assert np.isfinite(array).all(), name
    best = plans.argmin(means)
    assert (state["x"][0] - best)[best > 0].min() > -1, "it has learned the best plan"


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [30_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_many_rounds_of_ten_by_ten(rounds: int) -> None:
    rng = np.random.default_rng(0)
    plans = Transport([3] * 10, [3] * 10)
    play_long(plans, rng.uniform(0.1, 0.5, plans.d), rounds)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [100_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_many_rounds_of_the_paper(rounds: int) -> None:
    rng = np.random.default_rng(0)
    plans = Transport([1, 4, 5], [4, 6])
    play_long(plans, rng.uniform(0.1, 0.5, plans.d), rounds)


@pytest.mark.soak
@pytest.mark.parametrize("prediction", ["ls", "gd"])
def test_a_million_rounds_of_ten_by_ten(prediction: str) -> None:
    rng = np.random.default_rng(1)
    plans = Transport([3] * 10, [3] * 10)
    play_long(plans, rng.uniform(0.1, 0.5, plans.d), 1_000_000, prediction)
