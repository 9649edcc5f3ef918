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
from multiplay.learner.round_set import NO_LIMITS
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


@pytest.mark.parametrize("memory", [None, Changes()])
@pytest.mark.parametrize("ranges", [(0, 400), {"road 0": (50, 250), "*": (0, 400)}])
def test_arms_that_are_closed_today_still_teach(memory: Changes | None, ranges: object) -> None:
    """The prior and the noise are those of a slow twin with all arms, and new arms learn of it."""
    names = [f"road {k}" for k in range(12)]
    often, others = (Budget(6, [2] * 6, names=some) for some in (names[:6], names[4:10]))
    both = [*names[8:10], *names[4:6], *names[10:]]  # seen today, seen before, and new
    today = Budget(6, [2] * 6, names=both)
    learner = Learner(often, PooledCTS(memory=memory), loss_range=ranges, seed=0)  # type: ignore[arg-type]
    rng = np.random.default_rng(2)
    for day in range(14):
        play = learner.ask(others if day % 3 == 2 else often)
        learner.tell(play, {arm: rng.uniform(195, 215, n) for arm, n in play.plan.items()})
    state, policy = learner.engine.state, learner.policy
    places = state.begin_round(state.prepared(today, NO_LIMITS))
    actions, choosing = state.prepared(today, NO_LIMITS).actions, state.arms.to_choose(places)
    thetas = np.array(
        [policy.index(actions, choosing, Streams.spawn(k, 0, [0])) for k in range(60)]
    )[:, 0]
    rows, offset = state.arms.arrays["moments"][0], state.ranges.offset_of(state.arms.names)
    twin, units, z = pooled_twin.pooled(rows, offset), rows[places, N], np.sqrt(np.log(25) / 2)
    of_today = twin._replace(coins=twin.coins[places], k=twin.k[places], e=twin.e[places])
    low, high = (
        pooled_twin.optimistic(of_today, units, np.full(6, x), np.zeros(6), np.ones(6), 1.0)
        for x in (z, z / 2)
    )
    inside = (thetas >= low - 1e-4) & (thetas <= high + 1e-4)
    assert inside[(thetas >= low - 1e-4).all(axis=1)].all()
    assert inside.mean() > 0.7
    assert (thetas[:, 4:] > 0.3).mean() > 0.7  # new: like the ten that were seen, near 0.5


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
