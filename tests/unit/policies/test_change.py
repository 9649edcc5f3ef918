"""Hypotheses about changes: against a slow reference, and what follows from them."""

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusal import refused

from multiplay import (
    Bernoulli,
    BootstrapCTS,
    Budget,
    Corrupted,
    Feedback,
    Learner,
    Play,
    Stochastic,
    Streams,
    Study,
    Transport,
    simulate,
)
from multiplay.kernels import change
from multiplay.random import POLICY
from multiplay.types import Arrays

AT = 1_790_000_000.0
FOLLOW = BootstrapCTS(change="follow")
ARMS = Budget(12, [4, 4, 4], at_most=True)


# ---------------------------------------------------------------- a slow reference


@dataclass
class Since:
    """A hypothesis: the mean has been the same since a round."""

    start: int
    weight: float
    units: list[float] = field(default_factory=list)


@dataclass
class SlowArm:
    hypotheses: list[Since] = field(default_factory=list)
    D: float = 0.0
    V: float = 0.0
    E: float = 0.0
    F: float = 0.0
    last: list[float] = field(default_factory=list)
    changes: int = 0
    lived: int = 0


def log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


class SlowChange:
    """Steps 1 to 5 of the specification for all arms, with the units of every hypothesis."""

    def __init__(self, d: int) -> None:
        self.arms = [SlowArm() for _ in range(d)]

    def tell(self, t: int, told: list[list[float]]) -> None:
        arms = self.arms
        phi_all = (0.5 + sum(arm.D for arm in arms)) / (0.5 + sum(arm.V for arm in arms))
        changes = 1 + sum(arm.changes for arm in arms)
        hazard = min(changes / (50_000 + sum(arm.lived for arm in arms)), 0.002)
        for arm, units in zip(arms, told, strict=True):
            if units:
                self.tell_arm(arm, t, units, phi_all, hazard)

    def tell_arm(
        self, arm: SlowArm, t: int, units: list[float], phi_all: float, hazard: float
    ) -> None:
        a, r = len(units), sum(units) / len(units)
        if arm.last:
            b, q = len(arm.last), sum(arm.last) / len(arm.last)
            p = (a * r + b * q) / (a + b)
            arm.D = 0.995 * arm.D + a * b / (a + b) * (r - q) ** 2
            arm.V = 0.995 * arm.V + p * (1 - p) * (a + b) / (a + b - 1)
        if a > 1:
            arm.E = 0.995 * arm.E + sum((x - r) ** 2 for x in units)
            arm.F = 0.995 * arm.F + a * r * (1 - r)
        phi = max((arm.D + phi_all) / (arm.V + 1), arm.E / (arm.F + 1), 1e-4)
        kept = arm.hypotheses
        if len(kept) == 16:
            lightest = min(range(12), key=lambda k: kept[k].weight)
            kept[lightest - 1 if lightest else 1].weight += kept[lightest].weight
            del kept[lightest]
        for one in kept:
            one.weight *= 1 - hazard
        kept.append(Since(t, hazard if kept else 1.0))
        fits = []
        for one in kept:
            n, S, X = len(one.units), sum(one.units), sum(units)
            before = log_beta(0.5 + S / phi, 0.5 + (n - S) / phi)
            fits.append(log_beta(0.5 + (S + X) / phi, 0.5 + (n - S + a - X) / phi) - before)
        for one, fit in zip(kept, fits, strict=True):
            one.weight *= math.exp(max(fit - max(fits), -5.0))
            one.units += units
        self.normalise(kept)
        oldest = kept[0].start
        while len(kept) > 1 and kept[0].weight < 0.001:
            del kept[0]
        self.normalise(kept)
        arm.changes += kept[0].start - oldest > 5
        arm.lived += 1
        arm.last = units

    @staticmethod
    def normalise(kept: list[Since]) -> None:
        total = sum(one.weight for one in kept)
        for one in kept:
            one.weight /= total


def feedback_of(told: list[list[float]]) -> Feedback:
    count = np.array([[len(units) for units in told]])
    flat = np.array([[loss for units in told for loss in units]], dtype=float)
    total = np.array([[sum(units) for units in told]])
    return Feedback(count, total, flat, np.append(0, np.cumsum(count[0])))


def update(state: Arrays, told: list[list[float]]) -> None:
    feedback = feedback_of(told)
    FOLLOW.update(ARMS, state, Play(feedback.count), feedback, Streams.spawn(0, POLICY, [0]))


@given(st.integers(0, 2**32 - 1))
def test_hypotheses_are_those_of_the_slow_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state, slow = FOLLOW.start(ARMS, None, 1), SlowChange(3)
    level, noise = rng.uniform(0.1, 0.9, 3), rng.choice([0.01, 0.1, 0.5])
    for t in range(2, 42):
        if rng.random() < 0.05:
            level = rng.uniform(0.1, 0.9, 3)
        sizes = rng.integers(0, 5, 3)
        told = [
            np.clip(m + noise * rng.normal(size=k), 0, 1).tolist()
            for m, k in zip(level, sizes, strict=True)
        ]
        update(state, told)
        slow.tell(t, told)
    for i, arm in enumerate(slow.arms):
        found = state["hypotheses"][0, i]
        marks = state["marks"][0, i]
        length = int(marks[change.LENGTH])
        assert length == len(arm.hypotheses)
        assert (marks[change.CHANGES], marks[change.LIVED]) == (arm.changes, arm.lived)
        for row, one in zip(found[:length], arm.hypotheses, strict=True):
            assert row[change.START] == one.start
            assert row[change.WEIGHT] == pytest.approx(one.weight, rel=1e-4, abs=1e-12)
            units = np.array(one.units)
            assert row[change.H_N] == len(units)
            assert row[change.H_MEAN] == pytest.approx(units.mean())
            squares = ((units - units.mean()) ** 2).sum()
            assert row[change.H_B] + row[change.H_W] == pytest.approx(squares, abs=1e-12)
        assert (found[length:] == 0).all()
        if length:
            assert state["moments"][0, i, 0] == found[0, change.H_N]


def test_the_rise_of_the_gamma_function() -> None:
    for x in (0.5, 3.0, 40.0, 1e4, 1e8):
        for d in (0.0, 1e-3, 0.7, 5.0, 900.0):
            exact = math.lgamma(x + d) - math.lgamma(x)
            assert change.log_rise(x, d) == pytest.approx(exact, rel=1e-6, abs=1e-6 * (1 + d))


# ---------------------------------------------------------------- what follows


PLANS = Transport([1, 4, 5], [4, 6])
MEANS = np.array([0.1, 0.4, 0.2, 0.3, 0.3, 0.2])


def test_it_follows_a_flip_and_costs_little_without_one() -> None:
    """100 trials; the limits are more than ten standard errors away."""
    policies = {name: BootstrapCTS(change=name) for name in ("ignore", "follow")}
    flip = Corrupted(Bernoulli(MEANS), Bernoulli(1 - MEANS), at=200)
    changed = simulate(PLANS, flip, policies, horizon=1000, trials=100, against="each round")
    assert changed.final("follow").mean() < changed.final("ignore").mean() / 4
    calm = simulate(PLANS, Stochastic(Bernoulli(MEANS)), policies, horizon=1000, trials=100)
    assert calm.final("follow").mean() < 1.5 * calm.final("ignore").mean()


def price(learner: Learner | Study, days: range, euros: float) -> None:
    rng = np.random.default_rng(days.start)
    for _ in days:
        play = learner.ask(at=AT)
        bills = {n: rng.normal(euros, 10, k).tolist() for n, k in play.plan.items()}
        learner.tell(play.id, bills, at=AT)


@pytest.mark.parametrize("policy", [FOLLOW, BootstrapCTS()], ids=["follow", "ignore"])
def test_beliefs_forget_what_was_before_a_confirmed_change(policy: BootstrapCTS) -> None:
    learner = Learner(Budget(3, [3], names=["Lyon"]), policy, losses=(0, 500))
    price(learner, range(60), 120)
    price(learner, range(60, 75), 240)
    (arm,) = learner.arms().to_dict("records")
    if policy.follows:
        assert arm["low"] < 240 < arm["high"]
        assert arm["mean"] == pytest.approx(240, abs=10)
    else:
        assert arm["mean"] < 160
    assert arm["seen"] == 225


def test_a_saved_learner_and_a_study_follow_in_the_same_way(tmp_path: Path) -> None:
    plans = Budget(3, [3, 3], names=["Lyon", "Lille"])
    learner = Learner(plans, FOLLOW, losses=(0, 500))
    price(learner, range(30), 120)
    learner.save(tmp_path / "learner.npz")
    again = Learner.load(tmp_path / "learner.npz")
    for one in (learner, again):
        price(one, range(30, 45), 240)
    assert again.arms().equals(learner.arms())
    with Study.create("lanes", plans, FOLLOW, losses=(0, 500), store="memory://follow") as study:
        price(study, range(20), 120)
        price(study, range(20, 30), 240)
        with Study.open("lanes", store="memory://follow") as other:
            assert other.arms().equals(study.arms())
        assert study.verify().ok


def test_new_arms_have_no_hypotheses() -> None:
    learner = Learner(Budget(2, [2, 2], names=["a", "b"]), FOLLOW, losses=(0, 100), changing=True)
    price(learner, range(3), 50)
    wider = Budget(2, [2, 2, 2], names=["a", "b", "new"])
    play = learner.ask(wider)
    learner.tell(play.id, {name: [40.0] * k for name, k in play.plan.items()})
    assert len(learner.arms()) == 3


def test_change_is_follow_or_ignore() -> None:
    for value in (None, True, "restart", 1):
        with refused("change: expected 'follow' or 'ignore'"):
            BootstrapCTS(change=value)  # type: ignore[arg-type]
    for memory in ({"discount": 0.9}, {"window": 5}):
        with refused("change: expected 'ignore' with a discount or a window"):
            BootstrapCTS(change="follow", **memory)
