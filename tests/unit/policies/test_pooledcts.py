"""PooledCTS: the formulas behind its plays, its parts, and its regret where arms are many."""

import numpy as np
import pooled_twin
import pytest

from multiplay import (
    BootstrapCTS,
    Budget,
    Changes,
    Composed,
    Draw,
    InvalidInput,
    Learner,
    OptimisticQuantile,
    Play,
    Pooled,
    PooledCTS,
    Stochastic,
    Streams,
    Transport,
    Uniform,
    simulate,
)
from multiplay.kernels.moments import N
from multiplay.types import Arrays

PLANS = Transport([1, 4, 5], [4, 6])


def played(policy: PooledCTS, rounds: int) -> tuple[Arrays, Streams]:
    """Return the state after some rounds of one trial, and the stream of the next one."""
    state, rng = policy.start(PLANS, None, 1), Streams.spawn(4, 0, [0])
    world = Stochastic(Uniform(np.full(6, 0.1), np.linspace(0.3, 0.9, 6)))
    live = world.open(PLANS, rounds, [0], 4)
    for _ in range(rounds):
        play = policy.choose(PLANS, state, rng)
        policy.update(PLANS, state, play, live.observe(play.action).feedback, rng)
    return state, rng


def test_its_index_is_the_quantile_of_the_pooled_posterior() -> None:
    """At x between z / 2 and z, or beyond: the twin brackets theta, and the extremes are at z."""
    policy = PooledCTS()
    state, rng = played(policy, 20)
    assert state["t"].tolist() == [21]
    twin, units = pooled_twin.pooled(state["moments"][0], np.zeros(6)), state["moments"][0, :, N]
    z = np.sqrt(np.log(31) / 2)
    ends = [
        pooled_twin.optimistic(twin, units, np.full(6, x), np.zeros(6), np.ones(6), 1.0)
        for x in (z / 2, z)
    ]
    thetas = np.array([policy.index(PLANS, state, rng) for _ in range(200)])[:, 0]
    inside = (thetas >= ends[1] - 1e-6) & (thetas <= ends[0] + 1e-6)
    assert 0.5 < inside.mean() < 1.0  # xi > z in a few rounds: lower for all arms at once
    assert (thetas <= ends[0] + 1e-6).all()
    beyond = (thetas < ends[1] - 1e-6).any(axis=1)
    assert (thetas[beyond] < ends[0]).all()


@pytest.mark.parametrize("options", [{}, {"memory": Changes()}, {"window": 5}, {"discount": 0.9}])
def test_it_is_its_parts(options: dict[str, object]) -> None:
    policy = PooledCTS(**options)  # type: ignore[arg-type]
    curiosity = 0.05 if "memory" in options else 0.0
    parts = Composed(Pooled(policy.posterior.memory, curiosity=curiosity), OptimisticQuantile())
    one, two = (Learner(PLANS, each, seed=3) for each in (policy, parts))
    for _ in range(8):
        plays = one.ask(), two.ask()
        assert plays[0].plan == plays[1].plan
        for learner, play in zip((one, two), plays, strict=True):
            learner.tell(play, {arm: [0.3] * n for arm, n in play.plan.items()})


def test_an_arm_that_was_not_seen_is_like_the_others() -> None:
    """After forty rounds of arms near 0.5, an unseen arm is not taken for one near 0."""
    plans, rng = Budget(3, [1] * 12), np.random.default_rng(0)
    policy, draws = PooledCTS(), {}
    for level in (0.2, 0.5, 0.8):
        state = policy.start(plans, None, 1)
        report = plans.argmin(np.array([[0.0] * 3 + [1.0] * 9]))
        for _ in range(40):
            told = Stochastic(Uniform(np.full(12, level - 0.02), np.full(12, level + 0.02)))
            feedback = told.open(plans, 1, [0], int(rng.integers(99))).observe(report).feedback
            policy.update(plans, state, Play(report), feedback, Streams.spawn(0, 0, [0]))
        theta = policy.index(plans, state, Streams.spawn(1, 0, [0]))
        assert theta is not None
        draws[level] = theta[0, 5]
    assert draws[0.2] < draws[0.5] < draws[0.8]


def test_rules_and_posteriors_that_do_not_fit_are_refused() -> None:
    for parts in ((Pooled(), Draw()), (PooledCTS().posterior, Draw(shared=True))):
        with pytest.raises(InvalidInput) as error:
            Composed(*parts)
        assert error.value.argument == "rule"
    with pytest.raises(InvalidInput) as error:
        PooledCTS(curiosity=0.1)
    assert error.value.argument == "curiosity"


def test_many_arms_cost_less_than_alone() -> None:
    """64 lanes, 40 rounds, 12 trials, seed 0: at most 0.85 of the regret, by a paired margin."""
    lanes = Transport([6] * 8, [6] * 8)
    means = np.random.default_rng(5).uniform(0.2, 0.6, (12, 64))
    world = Stochastic(Uniform(means - 0.1, means + 0.1))
    policies = {"pooled": PooledCTS(), "alone": BootstrapCTS()}
    result = simulate(lanes, world, policies, horizon=40, trials=12, seed=0)
    difference = 0.85 * result.final("alone") - result.final("pooled")
    error = difference.std(ddof=1) / np.sqrt(12)
    assert difference.mean() > 4.03 * error  # 1e-3 by Student, one-sided
