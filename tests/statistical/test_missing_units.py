"""What units that never report cost, on the instance of the paper."""

from collections.abc import Callable, Container

import numpy as np
import pytest

import multiplay as mp
from multiplay.experiments import paper
from multiplay.feedback import Feedback
from multiplay.random import POLICY, Streams
from multiplay.types import BoolArray, FloatArray, IntArray

PLANS = paper.PLANS
MOST = int(PLANS.n.max())
PARTIAL = [
    mp.GenCTS(),
    mp.GaussianCTS(),
    mp.CombUCB(),
    mp.ESCB(),
    mp.EpsilonGreedy(),
    mp.GenLBINFV(),
    mp.LBINF(horizon=1000),
    mp.Hybrid(),
    mp.GenAdaINF(),
    mp.FPLIX(),
]

Shown = Callable[[int, IntArray, np.random.Generator], BoolArray]


def regret(
    policy: mp.Policy,
    shown: Shown,
    rounds: int,
    trials: int,
    seed: int = 0,
    changes_at: int | None = None,
) -> FloatArray:
    """Return the regret of every round and trial; ``shown`` says which of all units report.

    From round ``changes_at`` on, every loss is 1 minus what it would have been.
    """
    rng, world = Streams.spawn(seed, POLICY, range(trials)), np.random.default_rng(seed)
    means, state = paper.costs(trials, seed), policy.start(PLANS, None, trials)
    change = rounds if changes_at is None else changes_at
    best = PLANS.argmin(change * means + (rounds - change) * (1 - means))
    first, place = MOST * np.arange(PLANS.d + 1), np.arange(MOST)
    regrets = np.empty((rounds, trials))
    for t in range(rounds):
        play = policy.choose(PLANS, state, rng)
        assert PLANS.contains(play.action).all()
        units = 2 * means[..., None] * world.random((trials, PLANS.d, MOST))
        if t >= change:
            units = 1 - units
        told = (place < play.action[..., None]) & shown(t, play.action, world)
        units = np.take_along_axis(units, np.argsort(~told, axis=2, kind="stable"), axis=2)
        seen = told.sum(axis=2)
        total = (units * (place < seen[..., None])).sum(axis=2)
        feedback = Feedback(play.action, total, units.reshape(trials, -1), first, seen)
        policy.update(PLANS, state, play, feedback, rng)
        assert all(np.isfinite(array).all() for array in state.values())
        now = means if t < change else 1 - means
        regrets[t] = ((play.action - best) * now).sum(axis=1)
    return regrets


def everything(t: int, action: IntArray, world: np.random.Generator) -> BoolArray:
    return np.ones((*action.shape, MOST), dtype=bool)


def half(t: int, action: IntArray, world: np.random.Generator) -> BoolArray:
    return world.random((*action.shape, MOST)) < 0.5


def half_of_the_lanes(t: int, action: IntArray, world: np.random.Generator) -> BoolArray:
    told: BoolArray = world.random((*action.shape, 1)) < 0.5
    return np.broadcast_to(told, (*action.shape, MOST))


def silent(arm: int, when: Container[int]) -> Shown:
    def shown(t: int, action: IntArray, world: np.random.Generator) -> BoolArray:
        told = everything(t, action, world)
        told[:, arm] &= t not in when
        return told

    return shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "trials"),
    [(mp.GenCTS(), 200), (mp.Hybrid(), 40), (mp.FPLIX(), 40), (mp.GenLBINFV(), 40)],
    ids=repr,
)
def test_half_of_the_units_are_missing(policy: mp.Policy, trials: int) -> None:
    """The regret of 1000 rounds is less than 2.5 times that with all units.

    Measured: 1.6 times for GenCTS, and 1.0 times for the others. One with 2.5 would pass for one
    seed in 44; for GenCTS the difference is more than 5 standard errors, so that a right program
    fails for less than one seed in 1000.
    """
    some, whole = (regret(policy, shown, 1000, trials).sum(axis=0) for shown in (half, everything))
    excess = some - 2.5 * whole
    assert excess.mean() < -2 * excess.std(ddof=1) / trials**0.5


@pytest.mark.slow
def test_a_change_is_found_with_half_of_the_reports() -> None:
    """After a change, the regret is at most 1.25 times that with all reports.

    Measured: 1.06 times where units are missing, 0.93 where all units of a lane are. If units seen
    had the weight of all, it would be 1.8 and 3.6 times.
    """
    whole, units, of_lanes = (
        regret(mp.GenLBINFV(), shown, 2000, trials=40, changes_at=400).sum(axis=0).mean()
        for shown in (everything, half, half_of_the_lanes)
    )
    assert units < 1.25 * whole
    assert of_lanes < 1.25 * whole


@pytest.mark.parametrize("policy", PARTIAL, ids=repr)
@pytest.mark.parametrize("start", [0, 100])
def test_an_arm_is_silent_for_100_rounds(policy: mp.Policy, start: int) -> None:
    """All stays finite and feasible, and what was lost is learned afterwards: regret falls."""
    regrets = regret(policy, silent(3, range(start, start + 100)), 400, trials=20).mean(axis=1)
    assert regrets[300:].mean() < regrets[:100].mean()


def test_an_arm_does_not_look_cheap_because_it_is_silent() -> None:
    """Nothing is ever heard of the worse arm; it is known from history to be worse."""
    for policy in (mp.Hybrid(), mp.FPLIX(), mp.GenLBINFV()):
        learner = mp.Learner(
            mp.Budget(4, caps=[4, 4]), policy, reports=mp.Reports(missing="ignore")
        )
        learner.learn_table({"round": [1] * 20, "arm": ["arm 2"] * 20, "loss": [0.9] * 20})
        played = []
        for _ in range(300):
            play = learner.ask()
            learner.tell(play.id, {"arm 1": [0.1] * play.plan["arm 1"]})
            played.append(play.plan["arm 2"])
        assert sum(played[200:]) < 40, f"{policy!r}: {sum(played[200:])} of 400 units"
