"""GLR-CUCB: the test against all splits, the restart, forced exploration and settings."""

import math

import numpy as np
import pytest
from examples_of_sets import SETS
from refusal import refused

from multiplay import GLRCUCB, ActionSet, Budget, Duplicated, Feedback, Path, Policy, Transport
from multiplay.actions import IntegerProgram
from multiplay.testing import check_policy
from multiplay.types import Arrays

PLANS = Transport([1, 4, 5], [4, 6])
BOTH = Budget(2, [1, 1])
RNG = np.random.default_rng(0)
QUICK = [actions for actions in SETS if not isinstance(actions, IntegerProgram)]


@pytest.mark.parametrize("actions", QUICK, ids=repr)
def test_contract(actions: ActionSet) -> None:
    check_policy(GLRCUCB(), actions)


def kl(x: float, y: float) -> float:
    sides = [(x, y), (1 - x, 1 - y)]
    return sum(a * math.log(a / b) for a, b in sides if a > 0)


def slow_ratio(losses: list[float]) -> float:
    """The likelihood ratio over all splits, as it is defined."""
    n, mean = len(losses), average(losses)
    return max(
        (
            s * kl(average(losses[:s]), mean) + (n - s) * kl(average(losses[s:]), mean)
            for s in range(1, n)
        ),
        default=0.0,
    )


def average(losses: list[float]) -> float:
    return math.fsum(losses) / len(losses)


def tell(policy: Policy, state: Arrays, losses: list[float]) -> None:
    one = np.ones((1, 2), dtype=np.int64)
    play = policy.choose(BOTH, state, RNG)
    policy.update(BOTH, state, play, Feedback(one, np.array([losses])), RNG)


@pytest.mark.parametrize("seed", range(12))
def test_it_starts_again_when_the_ratio_over_all_splits_is_large(seed: int) -> None:
    rng, delta = np.random.default_rng(seed), 0.05
    policy, restarts = GLRCUCB(delta=delta), 0
    arms: tuple[list[float], list[float]] = ([], [])
    state = policy.start(BOTH, 1000, 1)
    for t in range(110):  # no checkpoint is dropped yet
        means = np.array([0.3, 0.2 if t < 50 else 0.8])
        losses = (rng.random(2) < means).astype(float) if seed % 2 else rng.random(2) * means
        tell(policy, state, losses.tolist())
        for arm, loss in zip(arms, losses.tolist(), strict=True):
            arm.append(loss)
        n = len(arms[0])
        changed = any(slow_ratio(arm) >= math.log(4 * n**1.5 / delta) for arm in arms)
        assert (state["t"][0] == 1) == changed
        if changed:
            restarts += 1
            arms = ([], [])
        assert state["count"].tolist() == [[len(arm) for arm in arms]]
        assert state["sum"][0] == pytest.approx([sum(arm) for arm in arms])
    if seed % 2:
        assert restarts >= 1


@pytest.mark.parametrize(
    "actions",
    [
        PLANS,
        Budget(2, [1] * 5, sense="max"),
        Path([("s", "t"), ("s", "u"), ("u", "t")], "s", "t", 2),
    ],
    ids=repr,
)
def test_a_twin_that_keeps_all_losses_plays_the_same(actions: ActionSet) -> None:
    """Whole runs: bounds and ratios from lists of losses, and the best of all listed actions.

    A restart counts rounds from 1. Actions of equal value are all right.
    """
    delta, p, d = 0.9, 0.3, actions.d
    policy, world, restarts = GLRCUCB(p=p, delta=delta), np.random.default_rng(3), 0
    listed, means = actions.enumerate(), np.linspace(0.05, 0.95, d)
    state = policy.start(actions, 1000, 1)
    rounds: list[list[list[float]]] = [[] for _ in range(d)]  # losses by arm and round
    t = 1
    for day in range(120):
        play = policy.choose(actions, state, RNG)
        action = play.action[0]
        assert (action == listed).all(axis=1).any()
        losses = [[loss for own in arm for loss in own] for arm in rounds]
        turn = (t - 1) % int(d / p)
        bounds = np.zeros(d)
        for i, own in enumerate(losses):
            width = math.sqrt(1.5 * math.log(t) / max(len(own), 1))
            bounds[i] = np.clip((average(own) if own else 0) - actions.sign * width, 0, 1)
        values = actions.sign * listed @ bounds
        value = actions.sign * action @ bounds
        if turn < d:
            most = listed[:, turn] == listed[:, turn].max()
            assert action[turn] == actions.n[turn]
            assert value == pytest.approx(values[most].min())
        elif all(losses):
            assert value == pytest.approx(values.min())
        chance = means if day < 60 else 1 - means
        told = [
            (world.random(units) < q).astype(float).tolist()
            for units, q in zip(action, chance, strict=True)
        ]
        total = np.array([[sum(own) for own in told]])
        policy.update(actions, state, play, Feedback(action[None], total), RNG)
        changed = False
        for arm, own in zip(rounds, told, strict=True):
            if own:
                arm.append(own)
                n = sum(map(len, arm))
                changed |= ratio_between_rounds(arm) >= math.log(4 * n**1.5 / delta)
        t = 1 if changed else t + 1
        if changed:
            restarts += 1
            rounds = [[] for _ in range(d)]
        assert state["t"][0] == t
    assert restarts >= 1


def ratio_between_rounds(rounds: list[list[float]]) -> float:
    """The likelihood ratio over all splits between two rounds, as it is defined."""
    everything, largest = [loss for own in rounds for loss in own], 0.0
    for last in range(1, len(rounds)):
        before = [loss for own in rounds[:last] for loss in own]
        after = everything[len(before) :]
        parts = [len(part) * kl(average(part), average(everything)) for part in (before, after)]
        largest = max(largest, sum(parts))
    return largest


def test_a_change_is_found_after_checkpoints_were_dropped() -> None:
    policy = GLRCUCB()
    state = policy.start(BOTH, 2000, 1)
    for t in range(1000):
        tell(policy, state, [0.5, float(t % 5 == 0)])
    assert state["t"] == [1001], "nothing changed"
    for t in range(60):
        tell(policy, state, [0.5, float(t % 5 != 0)])
    assert state["t"] < [60]


def test_only_the_trial_that_changed_starts_again() -> None:
    policy = GLRCUCB()
    state = policy.start(BOTH, 1000, 2)
    count = np.ones((2, 2), dtype=np.int64)
    for t in range(80):
        losses = np.array([[0.2, 0.2], [0.2, 0.0 if t < 40 else 1.0]])
        policy.update(BOTH, state, policy.choose(BOTH, state, RNG), Feedback(count, losses), RNG)
    assert state["t"][0] == 81
    assert state["t"][1] < 41


def test_every_arm_is_played_in_its_turn() -> None:
    """Of floor(d / p) rounds the first d play as many units as possible of one arm each."""
    policy = GLRCUCB(p=0.25)
    state = policy.start(PLANS, None, 1)
    means = np.array([[0.1, 0.9, 0.9, 0.1, 0.5, 0.5]])
    for t in range(72):
        play = policy.choose(PLANS, state, RNG)
        if t % 24 < 6:
            assert play.action[0, t % 24] == PLANS.n[t % 24]
        policy.update(PLANS, state, play, Feedback(play.action, play.action * means), RNG)


def test_settings_follow_from_the_horizon() -> None:
    state = GLRCUCB().start(PLANS, 5000, 1)
    assert state["period"] == int(6 / math.sqrt(math.log(5000) / 5000))
    assert state["price"] == pytest.approx(math.log(4 * 5000))
    given = GLRCUCB(p=0.1, delta=0.5).start(PLANS, 5000, 1)
    assert given["period"] == [60]
    assert given["price"] == pytest.approx(math.log(8))


def test_settings_are_checked() -> None:
    for bad in (0.0, 1.0, "x"):
        with refused("p"):
            GLRCUCB(p=bad)  # type: ignore[arg-type]
        with refused("delta"):
            GLRCUCB(delta=bad)  # type: ignore[arg-type]
    with refused("alpha"):
        GLRCUCB(-1.0)
    assert repr(GLRCUCB(p=0.01)) == "GLRCUCB(alpha=1.5, p=0.01)"
    check_policy(Duplicated(GLRCUCB()), BOTH)
