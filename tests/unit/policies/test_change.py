"""Hypotheses about changes: against a slow reference, and what follows from them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_kernel import in_kernel
from refusal import refused

from multiplay import (
    Bernoulli,
    BootstrapCTS,
    Budget,
    Changes,
    Corrupted,
    Feedback,
    GenCTS,
    GenLBINFV,
    Learner,
    Play,
    Policy,
    Stochastic,
    Streams,
    Study,
    Transport,
    simulate,
)
from multiplay.beliefs.changes import changes_of
from multiplay.kernels import hypotheses as columns
from multiplay.learner.plays import PendingPlay
from multiplay.random import POLICY
from multiplay.types import Arrays, FloatArray

Bills = dict[str, list[float]]
AT = 1_790_000_000.0
FOLLOW = BootstrapCTS(memory=Changes())
ARMS = Budget(20, [4] * 5, at_most=True)


# ---------------------------------------------------------------- a slow reference


@dataclass
class Since:
    """A hypothesis: the mean has been the same since a round; with a past that moved, or none."""

    start: int
    weight: float
    units: list[float] = field(default_factory=list)
    past: tuple[float, float, float] = (0.0, 0.0, 0.0)  # units, mean, squared deviations

    @property
    def n(self) -> float:
        return self.past[0] + len(self.units)

    @property
    def mean(self) -> float:
        return (self.past[0] * self.past[1] + sum(self.units)) / self.n if self.n else 0.0

    @property
    def squares(self) -> float:
        past = self.past[2] + self.past[0] * (self.past[1] - self.mean) ** 2
        return past + sum((x - self.mean) ** 2 for x in self.units)


@dataclass
class SlowArm:
    hypotheses: list[Since] = field(default_factory=list)
    D: float = 0.0
    V: float = 0.0
    E: float = 0.0
    F: float = 0.0
    last: list[float] = field(default_factory=list)
    last_mean: float = 0.0
    last_round: int = 0
    changes: int = 0
    lived: int = 0
    steps: int = 0
    before: float = 0.0
    confirmed: int = 0
    shared: int = 0

    def phi(self, phi_all: float) -> float:
        return max((self.D + phi_all) / (self.V + 1), self.E / (self.F + 1), 1e-4)

    def note(self, before: float, after: float, t: int) -> None:
        same = (after - before) * (before - self.before) > 0
        if self.steps and t - self.confirmed <= 100 and same:
            self.steps += 1
        else:
            self.steps, self.before = 1, before
        self.confirmed, self.shared = t, 0

    def sides(self, split: int) -> tuple[float, float, float, float, int] | None:
        """Return mean and units before a split, then after it, and the hypothesis that begins."""
        kept = self.hypotheses
        if not kept or self.last_round <= split:
            return None
        if self.confirmed > split and self.steps == 1:
            return self.before, kept[0].n, kept[0].mean, kept[0].n, 0
        for k, one in enumerate(kept):
            n = kept[0].n - one.n
            if k and one.start >= split and one.n and n > 0.5:
                before = (kept[0].n * kept[0].mean - one.n * one.mean) / n
                return before, n, one.mean, one.n, k
        return None


def log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


class SlowChange:
    """Steps 1 to 5 of the specification for all arms, with the units of every hypothesis.

    When an arm confirms a change, all arms follow it if most of them share it.
    """

    def __init__(self, d: int) -> None:
        self.arms = [SlowArm() for _ in range(d)]

    def tell(self, t: int, told: list[list[float]]) -> None:
        arms = self.arms
        phi_all = (0.5 + sum(arm.D for arm in arms)) / (0.5 + sum(arm.V for arm in arms))
        changes = 1 + sum(arm.changes for arm in arms)
        hazard = min(changes / (50_000 + sum(arm.lived for arm in arms)), 0.002)
        first, split = None, 0
        for arm, units in zip(arms, told, strict=True):
            if units and (new := self.tell_arm(arm, t, units, phi_all, hazard)):
                first, split = arm, new
        if first is not None:
            self.share(first, split, t, phi_all)

    def tell_arm(
        self, arm: SlowArm, t: int, units: list[float], phi_all: float, hazard: float
    ) -> int:
        a, r = len(units), sum(units) / len(units)
        if arm.last:
            b, q = len(arm.last), arm.last_mean
            p = (a * r + b * q) / (a + b)
            arm.D = 0.995 * arm.D + a * b / (a + b) * (r - q) ** 2
            arm.V = 0.995 * arm.V + p * (1 - p) * (a + b) / (a + b - 1)
        if a > 1:
            arm.E = 0.995 * arm.E + sum((x - r) ** 2 for x in units)
            arm.F = 0.995 * arm.F + a * r * (1 - r)
        phi = arm.phi(phi_all)
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
            n, S, X = one.n, one.n * one.mean, sum(units)
            before = log_beta(0.5 + S / phi, 0.5 + (n - S) / phi)
            fits.append(log_beta(0.5 + (S + X) / phi, 0.5 + (n - S + a - X) / phi) - before)
        for one, fit in zip(kept, fits, strict=True):
            one.weight *= math.exp(max(fit - max(fits), -5.0))
            one.units += units
        self.normalise(kept)
        oldest = kept[0]
        while len(kept) > 1 and kept[0].weight < 0.001:
            del kept[0]
        self.normalise(kept)
        arm.lived += 1
        arm.last, arm.last_mean, arm.last_round = units, r, t
        if kept[0].start - oldest.start <= 5:
            return 0
        arm.changes += 1
        new = max(kept, key=lambda one: one.weight)
        n = oldest.n - new.n
        arm.note((oldest.n * oldest.mean - new.n * new.mean) / n, new.mean, t)
        return new.start

    def share(self, first: SlowArm, split: int, t: int, phi_all: float) -> None:
        sides = [(arm, side) for arm in self.arms if (side := arm.sides(split))]
        units = sum(side[3] for _, side in sides)
        before, after = (sum(side[3] * side[which] for _, side in sides) for which in (0, 2))
        others = [(arm, side) for arm, side in sides if arm is not first]
        best: tuple[float, float, float, list[float]] = (3.0, 1.0, 0.0, [])
        for f, c in ((after / before, 0.0), (1.0, (after - before) / units)):
            fits = []
            for arm, (m, n, m_after, n_after, _) in others:
                noise = arm.phi(phi_all) * max(m * (1 - m), 1e-4) * (1 / n + 1 / n_after)
                gain = (m_after - m) ** 2 - (m_after - f * m - c) ** 2
                fits.append(min(max(gain / (2 * noise), -3.0), 3.0))
            moved = sum(fit > 0 for fit in fits)
            if len(fits) >= 2 and 3 * moved >= 2 * len(fits) and sum(fits) > best[0]:
                best = sum(fits), f, c, fits
        _, f, c, fits = best
        if not fits:
            return
        still = (sum(fit <= 0 for fit in fits) + 0.5) / (len(fits) + 2)
        stayed = [arm for (arm, _), fit in zip(others, fits, strict=True) if fit <= 0]
        for arm in self.arms:
            if arm.hypotheses and arm not in stayed:
                self.follow(arm, f, c, split, t, units, still)
                arm.shared = split

    def follow(
        self, arm: SlowArm, f: float, c: float, split: int, t: int, units: float, still: float
    ) -> None:
        side, kept = arm.sides(split), arm.hypotheses
        if arm.confirmed > split or (side and side[3] >= 8):
            if side and side[4]:
                arm.note(side[0], side[2], t)
                del kept[: side[4]]
                self.normalise(kept)
            return
        old = kept[0]
        left = units / (old.n + units)
        mean = min(max(f * old.mean + c, 0.0), 1.0)
        moved = Since(old.start, 1 - still, [], (left * old.n, mean, left * f * f * old.squares))
        arm.note(old.mean, mean, t)
        arm.hypotheses = [moved, Since(split, still, [*old.units], old.past)]
        arm.last_mean = min(max(f * arm.last_mean + c, 0.0), 1.0)

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
    state, slow = FOLLOW.start(ARMS, None, 1), SlowChange(5)
    level, noise = rng.uniform(0.1, 0.6, 5), rng.choice([0.01, 0.1, 0.5])
    for t in range(2, 52):
        if rng.random() < 0.05:
            level = rng.uniform(0.1, 0.6, 5)
        elif rng.random() < 0.05:
            level = np.clip(level * rng.uniform(0.7, 1.5), 0.05, 0.9)
        sizes = rng.integers(0, 5, 5) * (np.arange(5) < 4 + (t % 16 == 0))
        told = [
            np.clip(m + noise * rng.normal(size=k), 0, 1).tolist()
            for m, k in zip(level, sizes, strict=True)
        ]
        update(state, told)
        slow.tell(t, told)
    for i, arm in enumerate(slow.arms):
        found = state["hypotheses"][0, i]
        marks = state["marks"][0, i]
        length = int(marks[columns.LENGTH])
        assert length == len(arm.hypotheses)
        noted = arm.changes, arm.lived, arm.steps, arm.confirmed, arm.shared
        which = columns.CHANGES, columns.LIVED, columns.STEPS, columns.CONFIRMED, columns.SHARED
        assert tuple(marks[list(which)]) == noted
        assert marks[columns.FROM] == pytest.approx(arm.before)
        for row, one in zip(found[:length], arm.hypotheses, strict=True):
            assert row[columns.START] == one.start
            assert row[columns.WEIGHT] == pytest.approx(one.weight, rel=1e-4, abs=1e-12)
            assert row[columns.H_N] == pytest.approx(one.n)
            assert row[columns.H_MEAN] == pytest.approx(one.mean)
            assert row[columns.H_B] + row[columns.H_W] == pytest.approx(one.squares, abs=1e-12)
        assert (found[length:] == 0).all()
        if length:
            assert state["moments"][0, i, 0] == found[0, columns.H_N]


def test_the_rise_of_the_gamma_function() -> None:
    log_rise = in_kernel(columns.log_rise)
    for x in (0.5, 3.0, 40.0, 1e4, 1e8):
        for d in (0.0, 1e-3, 0.7, 5.0, 900.0):
            exact = math.lgamma(x + d) - math.lgamma(x)
            assert log_rise(x, d) == pytest.approx(exact, rel=1e-6, abs=1e-6 * (1 + d))


# ---------------------------------------------------------------- what follows


PLANS = Transport([1, 4, 5], [4, 6])
MEANS = np.array([0.1, 0.4, 0.2, 0.3, 0.3, 0.2])


@pytest.mark.slow
def test_it_follows_a_flip_and_costs_little_without_one() -> None:
    """100 trials; the limits are more than ten standard errors away."""
    policies = {"ignore": BootstrapCTS(), "follow": FOLLOW}
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
    learner = Learner(Budget(3, [3], names=["Lyon"]), policy, loss_range=(0, 500))
    price(learner, range(60), 120)
    price(learner, range(60, 75), 240)
    (arm,) = learner.arms().to_dict("records")
    if policy.posterior.memory.follows:
        assert arm["low"] < 240 < arm["high"]
        assert arm["mean"] == pytest.approx(240, abs=10)
    else:
        assert arm["mean"] < 160
    assert arm["seen"] == 225


def test_a_saved_learner_and_a_study_follow_in_the_same_way(tmp_path: Path) -> None:
    plans = Budget(3, [3, 3], names=["Lyon", "Lille"])
    learner = Learner(plans, FOLLOW, loss_range=(0, 500))
    price(learner, range(30), 120)
    learner.save(tmp_path / "learner.npz")
    again = Learner.load(tmp_path / "learner.npz")
    for one in (learner, again):
        price(one, range(30, 45), 240)
    assert again.arms().equals(learner.arms())
    with Study.create(
        "lanes", plans, FOLLOW, loss_range=(0, 500), store="memory://follow"
    ) as study:
        price(study, range(20), 120)
        price(study, range(20, 30), 240)
        with Study.open("lanes", store="memory://follow") as other:
            assert other.arms().equals(study.arms())
        assert study.verify().ok


def test_new_arms_have_no_hypotheses() -> None:
    learner = Learner(
        Budget(2, [2, 2], names=["a", "b"]), FOLLOW, loss_range=(0, 100), varying_set=True
    )
    price(learner, range(3), 50)
    wider = Budget(2, [2, 2, 2], names=["a", "b", "new"])
    play = learner.ask(wider)
    learner.tell(play.id, {name: [40.0] * k for name, k in play.plan.items()})
    assert len(learner.arms()) == 3


def test_a_policy_has_one_memory() -> None:
    for value in (True, "Changes", 1):
        with refused("memory: expected"):
            BootstrapCTS(memory=value)  # type: ignore[arg-type]
    for memory in ({"discount": 0.9}, {"window": 5}):
        with refused("memory: expected one memory"):
            BootstrapCTS(memory=Changes(), **memory)


# ---------------------------------------------------------------- drift()


LANES = Transport([5, 3, 4], [3, 4, 2, 3])
EUROS = np.random.default_rng(3).uniform(80, 300, LANES.d)


def days(costs: Callable[[int], FloatArray], number: int, policy: Policy | None = None) -> Learner:
    """Return a learner after some days with bills around these costs."""
    rng, learner = np.random.default_rng(5), Learner(LANES, policy, loss_range=(0, 500))
    for day in range(number):
        play = learner.ask(at=AT)
        bills = {
            lane: rng.normal(cost, 20, trucks).clip(0, 500).tolist()
            for (lane, trucks), cost in zip(play.plan.items(), costs(day), strict=True)
        }
        learner.tell(play.id, bills, at=AT)
    return learner


def with_cheapest(factor: float) -> FloatArray:
    return EUROS * np.where(EUROS.min() == EUROS, factor, 1.0)


@pytest.mark.parametrize("policy", [None, GenCTS(), GenLBINFV(any_horizon=True)], ids=repr)
def test_a_change_is_one_row_and_older_bills_do_not_count(policy: Policy | None) -> None:
    learner = days(lambda day: with_cheapest(2.0 if day >= 40 else 1.0), 70, policy)
    (row,) = learner.drift().to_dict("records")
    lane = LANES.names[EUROS.argmin()]
    assert (row["arm"], row["arms"], row["acted"]) == (lane, [lane], True)
    assert abs(row["since"] - 40) <= 5
    assert row["before"] == pytest.approx(EUROS.min(), rel=0.1)
    assert row["after"] == pytest.approx(2 * EUROS.min(), rel=0.1)
    assert row["sure"] > 0.95
    believed = learner.arms().set_index("arm").loc[lane]
    assert believed["low"] < 2 * EUROS.min() < believed["high"]


def test_a_change_that_arms_share_is_one_row() -> None:
    learner = days(lambda day: EUROS * (1.3 if day >= 40 else 1.0), 70)
    (row,) = learner.drift().to_dict("records")
    assert row["arm"] == f"{len(row['arms'])} of 12 arms"
    assert row["since"] == 40
    assert row["after"] / row["before"] == pytest.approx(1.3, abs=0.05)
    arms = learner.arms()  # also those that are idle since
    assert ((arms["low"] < 1.3 * EUROS) & (arms["high"] > 1.3 * EUROS)).sum() >= 10


def test_a_confirmed_change_is_a_row_until_a_newer_one_is_likely() -> None:
    """The newest hypothesis is the heaviest; below a weight of 0.5 it is not told."""
    arrays, told = {name: array[0] for name, array in columns.new_hypotheses(1, 1).items()}, []
    marks = {columns.LENGTH: 3, columns.STEPS: 1, columns.CONFIRMED: 45, columns.FROM: 0.2}
    arrays["marks"][0, list(marks)] = list(marks.values())
    for newest in (0.0, 0.42, 0.58):
        older = 1 - newest
        arrays["hypotheses"][0, :3, :4] = [  # start, weight, units, mean
            (42, 0.55 * older, 120, 0.4),
            (71, 0.45 * older, 60, 0.42),
            (101, newest, 20, 0.5),
        ]
        (change,) = changes_of(arrays["hypotheses"], arrays["marks"])
        told.append((change.since, change.before, change.after, change.units, change.acted))
        assert change.sure == pytest.approx(1.0 if newest < 0.5 else newest)
    assert told[0] == told[1] == (40, 0.2, 0.4, 120, True)
    since, before, *rest = told[2]
    assert (since, *rest) == (99, 0.5, 20, False)
    assert before == pytest.approx((120 * 0.4 - 20 * 0.5) / 100)


def test_changes_in_one_direction_are_one_row() -> None:
    learner = days(lambda day: with_cheapest(1 + 0.02 * max(day - 40, 0)), 90)
    (row,) = learner.drift().to_dict("records")
    assert 35 <= row["since"] <= 60
    assert row["before"] == pytest.approx(EUROS.min(), rel=0.15)


def test_nothing_changes() -> None:
    assert days(lambda day: EUROS, 150).drift().empty


@pytest.mark.parametrize("memory", [{"discount": 0.9}, {"window": 30}, {}], ids=str)
def test_without_hypotheses_only_what_is_certain_is_told(memory: dict[str, Any]) -> None:
    learner = days(lambda day: EUROS * 0 + (450 if day >= 60 else 20), 120, BootstrapCTS(**memory))
    rows = learner.drift()
    assert len(rows) > 0
    assert rows["certain"].all()
    assert rows["sure"].isna().all()
    assert not rows["acted"].any()


@pytest.mark.slow
def test_intervals_of_plans_recover_after_a_change_of_all_arms() -> None:
    """10 % of the range on day 20: at least 85 % cover on day 30; 100 trials, by 2.8 deviations."""
    covered = 0
    for seed in range(100):
        rng = np.random.default_rng([seed, 20])
        euros = rng.uniform(100, 300, LANES.d)
        learner = Learner(LANES, loss_range=(0, 500), seed=seed)
        for day in range(30):
            play, now = learner.ask(at=AT), euros + (50 if day >= 20 else 0)
            bills = {
                lane: rng.normal(cost, 0.08 * cost, trucks).clip(0, 500).tolist()
                for (lane, trucks), cost in zip(play.plan.items(), now, strict=True)
            }
            learner.tell(play.id, bills, at=AT)
        best = learner.best()
        estimate = best.expected
        covered += bool(estimate.low <= best.action @ (euros + 50) <= estimate.high)
    assert covered >= 85


# ---------------------------------------------------------------- how reports come


def bills_of(play: PendingPlay, euros: Mapping[str, float], rng: np.random.Generator) -> Bills:
    return {lane: rng.normal(euros[lane], 10, k).tolist() for lane, k in play.plan.items()}


def test_reports_that_come_late_blur_a_change_by_their_delay() -> None:
    lanes, rng = Budget(4, [3, 3], names=["Lyon", "Lille"]), np.random.default_rng(1)
    learner, waiting = Learner(lanes, loss_range=(0, 500)), list[tuple[PendingPlay, Bills]]()
    for day in range(80):
        play = learner.ask(at=AT)
        euros = {"Lyon": 100.0, "Lille": 110.0 if day < 50 else 220.0}
        waiting.append((play, bills_of(play, euros, rng)))
        if len(waiting) == 6:  # the report of five days ago
            late, bills = waiting.pop(0)
            learner.tell(late, bills, at=AT)
    (row,) = learner.drift().to_dict("records")
    assert (row["arm"], row["acted"]) == ("Lille", True)
    assert abs(row["since"] - 50) <= 5
    assert row["after"] == pytest.approx(220, abs=15)


def test_external_plans_show_a_change_as_well() -> None:
    lanes, rng = Budget(4, [3, 3], names=["Lyon", "Lille"]), np.random.default_rng(1)
    learner = Learner(lanes, loss_range=(0, 500))
    for day in range(40):
        euros = {"Lyon": 100.0, "Lille": 150.0 if day < 30 else 80.0}
        play = learner.ask(at=AT)
        learner.tell(play, bills_of(play, euros, rng), at=AT)
        if day >= 25:  # the dispatcher drives the idle lane
            learner.learn({"Lyon": 1, "Lille": 3}, {"Lyon": [100.0], "Lille": [euros["Lille"]] * 3})
    believed = learner.arms().set_index("arm")["mean"]
    assert believed["Lille"] == pytest.approx(80, abs=10)
    assert learner.best().plan["Lille"] == 3


def test_an_arm_that_was_away_is_followed_when_it_comes_back() -> None:
    both, rng = Budget(3, [2, 2], names=["Lyon", "Lille"]), np.random.default_rng(1)
    alone = Budget(2, [2], names=["Lyon"])
    learner = Learner(both, loss_range=(0, 500), varying_set=True)
    for day in range(100):
        today = alone if 30 <= day < 60 else both
        euros = {"Lyon": 100.0, "Lille": 90.0 if day < 60 else 180.0}
        play = learner.ask(today, at=AT)
        learner.tell(play, bills_of(play, euros, rng), at=AT)
    (row,) = learner.drift().to_dict("records")
    assert row["arm"] == "Lille"
    assert row["after"] == pytest.approx(180, abs=15)
    again = learner.arms().set_index("arm")["mean"]
    assert again["Lille"] == pytest.approx(180, abs=15)
    assert again["Lyon"] == pytest.approx(100, abs=10)


def test_curiosity_is_for_changes_and_from_0_to_1() -> None:
    for value in (-0.1, 1.5, np.nan, "much", True):
        with refused("curiosity: expected a number from 0 to 1"):
            BootstrapCTS(memory=Changes(), curiosity=value)  # type: ignore[arg-type]
    with refused("curiosity: expected 0 unless changes are followed"):
        BootstrapCTS(curiosity=0.1)


def test_curiosity_finds_an_idle_arm_that_became_cheap() -> None:
    """100 trials; the difference is seven standard errors."""
    lanes = Budget(2, [2, 2])
    world = Corrupted(Bernoulli([0.3, 0.5]), Bernoulli([0.3, 0.1]), at=400)
    policies = {
        "0": BootstrapCTS(memory=Changes()),
        "0.3": BootstrapCTS(memory=Changes(), curiosity=0.3),
    }
    found = simulate(lanes, world, policies, horizon=1500, trials=100, against="each round")
    assert found.final("0.3").mean() < found.final("0").mean()
