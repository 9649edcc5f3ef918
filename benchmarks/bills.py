"""Losses like bills: coverage of beliefs, regret, missing reports and cost, against limits.

Command line: ``python -m benchmarks.bills --only coverage regret --trials 60 --jobs 2``. Without
``--trials`` each topic has the number of trials that its limits were stated for, and takes up to
an hour on one core; ``--trials 40`` takes minutes.
"""

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

if __name__ == "__main__":
    from benchmarks import ONE_THREAD

    os.environ.update(ONE_THREAD)  # before the import of numpy

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Runner, Section, Target, command, standard_error
from multiplay import (
    ActionSet,
    BootstrapCTS,
    Budget,
    Environment,
    Feedback,
    FollowTheLeader,
    GenAdaINF,
    GenCTS,
    GenLBINFV,
    Learner,
    Observation,
    Policy,
    PooledCTS,
    TimeVarying,
    Transport,
    World,
    simulate,
)
from multiplay.environments.base import Slots
from multiplay.experiments import paper
from multiplay.learner.moments import ArmReport
from multiplay.types import FloatArray, IntArray

Rng = np.random.Generator
LAWS: dict[str, Callable[[FloatArray, float, Rng], FloatArray]] = {
    "around": lambda m, w, rng: m + w * (2 * rng.random(m.shape) - 1),
    "share": lambda m, w, rng: m * (1 + w * (2 * rng.random(m.shape) - 1)),
    "coin": lambda m, w, rng: (rng.random(m.shape) < m).astype(float),
    "uniform": lambda m, w, rng: 2 * m * rng.random(m.shape),
    "skew": lambda m, w, rng: rng.beta(w * m, w * (1 - m)),
    "disaster": lambda m, w, rng: np.where(rng.random(m.shape) < (m - 0.1) / 0.9, 1.0, 0.1),
    "mirror": lambda m, w, rng: np.where(rng.random(m.shape) < 1 - m / 0.9, 0.0, 0.9),
    "expo": lambda m, w, rng: np.minimum(_before_cut(m) * rng.exponential(size=m.shape), 1.0),
    "normal": lambda m, w, rng: rng.normal(m, w),
}


def _before_cut(mean: FloatArray) -> FloatArray:
    """Return s with E[min(s X, 1)] = mean, for X exponential of mean 1."""
    s = mean.copy()
    for _ in range(50):
        s = mean / -np.expm1(-1 / s)
    return s


@dataclass(frozen=True, eq=False)
class Bills(Environment):
    """Losses of units around ``means``, with effects of the day, and reports that are missing.

    Parameters
    ----------
    means
        The mean loss of each trial and arm.
    law, width
        A name of ``LAWS``, or "sure and rare": every second arm is nearly constant, the others are
        0.4 or rarely 1; and the parameter of the law.
    day, common
        Standard deviation of the effect of a day on all units of an arm, and on those of all arms.
    missing, of_lanes
        The share of units without a report; whether all units of an arm are missing together.
    totals
        Whether reports have only the total of each arm.
    flips_at
        From this round on, losses are 1 minus what they would have been.
    """

    means: FloatArray
    law: str
    width: float = 0.0
    day: float = 0.0
    common: float = 0.0
    missing: float = 0.0
    of_lanes: bool = False
    totals: bool = False
    flips_at: int | None = None

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """Accept every set: the means were drawn for it."""

    def shows_units(self, actions: ActionSet) -> bool:
        """Return whether single losses are told."""
        return not self.totals

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        return BillsWorld(self, self.means[list(trials)], actions.n, seed, next(iter(trials)))

    def losses(self, means: FloatArray, rng: Rng) -> FloatArray:
        """Draw losses without effects of the day, as many as there are means."""
        if self.law != "sure and rare":
            return LAWS[self.law](means, self.width, rng)
        sure = LAWS["around"](means, 0.01, rng)
        rare = np.where(rng.random(means.shape) < (means - 0.4) / 0.6, 1.0, 0.4)
        return np.where(np.arange(means.shape[-1]) % 2 == 0, sure, rare)

    def effects(self, shape: tuple[int, ...], rng: Rng) -> FloatArray:
        """Draw the effects of a day on each arm, (..., d)."""
        own = self.day * rng.standard_normal(shape)
        return own + self.common * rng.standard_normal((*shape[:-1], 1))


class BillsWorld(World):
    """The trials of ``Bills``: all policies get the same losses."""

    def __init__(self, bills: Bills, means: FloatArray, n: IntArray, seed: int, first: int) -> None:
        self.bills, self.means, self.slots, self.round = bills, means, Slots(n), 0
        self.rng = np.random.default_rng((seed, 77, first))

    def observe(self, action: IntArray) -> Observation:
        """Draw the loss of every slot, and hide those that are missing."""
        bills, rng, first = self.bills, self.rng, self.slots.first
        self.round += 1
        # arms last, so that laws may differ by arm
        most = int(np.diff(first).max())
        drawn = bills.losses(np.repeat(self.means[:, None], most, axis=1), rng)
        drawn = np.clip(drawn + bills.effects(self.means.shape, rng)[:, None], 0, 1)
        flips = bills.flips_at is not None and self.round > bills.flips_at
        drawn, means = (1 - drawn, 1 - self.means) if flips else (drawn, self.means)
        place = np.arange(most)[None, :, None]
        told = np.ones(drawn.shape, dtype=bool)
        if bills.missing:
            rows = (len(drawn), 1 if bills.of_lanes else most, drawn.shape[2])
            told &= rng.random(rows) >= bills.missing
        told &= place < action[:, None]
        # units that were seen come first
        drawn = np.take_along_axis(drawn, np.argsort(~told, axis=1, kind="stable"), axis=1)
        seen = told.sum(axis=1)
        total = (drawn * (place < seen[:, None])).sum(axis=1)
        shown = None if not bills.missing else seen
        if bills.totals:
            feedback = Feedback(action, total, seen=shown)
        else:
            starts = np.arange(drawn.shape[2] + 1) * most
            units = np.ascontiguousarray(drawn.transpose(0, 2, 1)).reshape(len(drawn), -1)
            feedback = Feedback(action, total, units, starts, shown)
        return Observation(feedback, means, means)


class Case(NamedTuple):
    """A world: sets in turn, the range of the means, and the settings of ``Bills``."""

    sets: tuple[ActionSet, ...]
    means: tuple[float, float]
    law: str
    bills: Mapping[str, Any] = {}
    rounds: int = 0

    @property
    def actions(self) -> ActionSet:
        """The set of the first day."""
        return self.sets[0]

    def of(self, trials: int, seed: int) -> Bills:
        """Return the world of some trials, with means of their own."""
        rng = np.random.default_rng((seed, 11))
        means = rng.uniform(*self.means, (trials, self.actions.d))
        return Bills(means, self.law, **self.bills)


def lanes_of(times: int = 1) -> tuple[ActionSet, ...]:
    """Return the paper's transport with so many times its units."""
    return (Transport(times * np.array([1, 4, 5]), times * np.array([4, 6])),)


def square(size: int, units: int) -> tuple[ActionSet, ...]:
    """Return a transport with as many suppliers as customers."""
    return (Transport([units] * size, [units] * size),)


SMALL, EIGHT = lanes_of(), lanes_of(8)
CHANGING = tuple(
    Transport(supply, demand)
    for supply, demand in (
        ([1, 4, 5], [4, 6]),
        ([4, 4, 2], [5, 5]),
        ([5, 1, 4], [6, 4]),
        ([3, 3, 4], [7, 3]),
    )
)
FIVE_OF_TEN = (Budget(5, [1] * 10),)
AROUND = {"width": 0.139}
MID = (0.2, 0.6)

# ---------------------------------------------------------------- coverage

COVERAGE: dict[str, Case] = {
    "mid": Case(SMALL, MID, "around", AROUND),
    "midbern": Case(SMALL, (0.15, 0.85), "coin"),
    "small": Case(SMALL, (0.01, 0.1), "share", {"width": 0.5}),
    "rare": Case(SMALL, (0.01, 0.1), "coin"),
    "tiny": Case(SMALL, (0.3, 0.5), "around", {"width": 0.003}),
    "paper": Case(SMALL, (0.1, 0.5), "uniform"),
    "day": Case(EIGHT, MID, "around", AROUND | {"day": 0.05}),
    "common": Case(EIGHT, MID, "around", AROUND | {"common": 0.05}),
    "miss": Case(SMALL, MID, "around", AROUND | {"missing": 0.5}),
    "totals": Case(SMALL, MID, "around", AROUND | {"totals": True}),
    "8totals": Case(EIGHT, MID, "around", AROUND | {"totals": True, "day": 0.05}),
    "change": Case(CHANGING, MID, "around", AROUND),
    "5of10": Case(FIVE_OF_TEN, MID, "around", AROUND),
    "skew": Case(SMALL, (0.05, 0.3), "skew", {"width": 0.3}),
    "8x8": Case(square(8, 6), MID, "around", AROUND),
    "8x8small": Case(square(8, 6), (0.01, 0.1), "share", {"width": 0.5}),
    "8x8bern": Case(square(8, 6), (0.05, 0.5), "coin"),
    "8x8rare": Case(square(8, 6), (0.005, 0.05), "coin"),
}
PLAYERS: dict[str, Policy] = {
    "GenCTS": GenCTS(),
    "BootstrapCTS": BootstrapCTS(),
    "FollowTheLeader": FollowTheLeader(),
    "GenLBINFV": GenLBINFV(),
}
READ_AT = (1, 2, 3, 5, 10, 20, 40)  # rounds told
EARLY, LATE = slice(0, 3), slice(3, None)


class Covered(NamedTuple):
    """Of one day: shares of arms and plans covered, expected/true, and means outside."""

    arms: float
    plan: float
    ratio: float
    outside: int


def told(bills: Bills, rng: Rng, truth: FloatArray, action: IntArray) -> list[Any]:
    """Return what a user tells of a play, in the order of the arms."""
    shift, reports = bills.effects(truth.shape, rng), list[Any]()
    for i, units in enumerate(action.tolist()):
        losses = bills.losses(np.full((units, 1), truth[i]), rng)[:, 0] + shift[i]
        losses = np.clip(losses, 0, 1)
        if bills.totals:
            reports.append(float(losses.sum()))
            continue
        here = rng.random(units) >= bills.missing
        reports.append([x if h else None for x, h in zip(losses.tolist(), here, strict=True)])
    return reports


def covered(world: str, player: str, trials: Sequence[int], total: int) -> list[list[Covered]]:
    """Play 40 days in each of some trials; read all beliefs after some of them."""
    case, answers = COVERAGE[world], []
    bills = case.of(total, seed=1)
    for trial in trials:
        truth, rng = bills.means[trial], np.random.default_rng((2, trial))
        learner = Learner(case.actions, PLAYERS[player], seed=trial)
        read = []
        for day in range(READ_AT[-1] + 1):
            play = learner.ask(case.sets[day % len(case.sets)])
            if day in READ_AT:
                read.append(_read(learner, play.expected, truth, float(play.action @ truth)))
            if day < READ_AT[-1]:
                names = case.actions.names
                reports = told(bills, rng, truth, play.action)
                learner.tell(play.id, dict(zip(names, reports, strict=True)))
        answers.append(read)
    return answers


def _read(learner: Learner, expected: Any, truth: FloatArray, cost: float) -> Covered:
    arms = learner.arms()
    low, high, mean = (arms[name].to_numpy() for name in ("low", "high", "mean"))
    return Covered(
        arms=float(((low <= truth) & (truth <= high)).mean()),
        plan=float(expected.low <= cost <= expected.high),
        ratio=float(expected.total) / cost,
        outside=int(((mean < low) | (mean > high)).sum()),
    )


def coverage(trials: int | None, run: Runner) -> list[Section]:
    """Measure how often 95 % intervals of arms and of the next plan cover the truth."""
    jobs = {}
    for world in COVERAGE:
        number = trials or (120 if world.startswith("8x8") else 400)
        for player in PLAYERS:
            parts = np.array_split(np.arange(number), max(1, number // 50))
            for k, part in enumerate(parts):
                jobs[world, player, k] = (covered, (world, player, part.tolist(), number))
    found = run(jobs)
    rows, cells, outside, close, medians = [], [], 0, 0, 0
    for world in COVERAGE:
        for player in PLAYERS:
            parts = [value for key, value in found.items() if key[:2] == (world, player)]
            table = np.array([row for part in parts for row in part])  # trials, days, numbers
            mean = table.mean(axis=0)
            arms, plan = mean[:, 0], mean[:, 1]
            ratio = np.median(table[:, LATE, 2], axis=0)
            worst = ratio[abs(ratio - 1).argmax()]
            outside += int(table[:, :, 3].sum())
            close, medians = close + int((abs(ratio - 1) <= 0.03).sum()), medians + len(ratio)
            cells.append((arms[LATE].mean(), plan[LATE].mean()))
            rows.append(
                {
                    "world": world,
                    "player": player,
                    "trials": len(table),
                    "arms d1-3": float(arms[EARLY].mean()),
                    "arms d5-40": float(arms[LATE].mean()),
                    "plan d1-3": float(plan[EARLY].mean()),
                    "plan d5-40": float(plan[LATE].mean()),
                    "expected/true": float(worst),
                }
            )
    of_arms, of_plans = np.array(cells).T
    targets = [
        Target("coverage: arms, cells below .93", float((of_arms < 0.93).sum()), 0),
        Target("coverage: arms, cells above .99", float((of_arms > 0.99).sum()), 0),
        Target("coverage: plans, cells below .92", float((of_plans < 0.92).sum()), 0),
        Target("coverage: plans, cells above .985", float((of_plans > 0.985).sum()), 0),
        Target("coverage: means outside their interval", float(outside), 0),
        Target("coverage: medians within 3 %", close / medians, 0.9, at_least=True),
    ]
    shows = (
        "Shares of 95 % intervals that cover the truth after 1 to 3 and 5 to 40 rounds told; plan: "
        "the next play. expected/true: the median after 5, 10, 20, 40 rounds that is furthest "
        "from 1."
    )
    return [Section("Coverage", shows, rows, targets)]


# ------------------------------------------------------------------ regret

REGRET: dict[str, Case] = {
    "paper": Case(SMALL, (0.1, 0.5), "uniform", {}, 1000),
    "readme": Case(SMALL, (0.32, 0.64), "normal", {"width": 0.08}, 200),
    "8x8": Case(square(8, 6), MID, "around", AROUND, 100),
    "5of10u": Case(FIVE_OF_TEN, MID, "around", {"width": 0.02}, 500),
    "twopoint": Case(SMALL, (0.42, 0.55), "sure and rare", {}, 1000),
    "expo": Case(SMALL, (0.05, 0.3), "expo", {}, 1000),
    "rare": Case(SMALL, (0.01, 0.1), "coin", {}, 1000),
    "paperbern": Case(SMALL, (0.1, 0.5), "coin", {}, 1000),
    "64bern": Case(lanes_of(64), (0.1, 0.5), "coin", {}, 300),
    "8x8rare": Case(square(8, 6), (0.005, 0.05), "coin", {}, 200),
    "20x20bern": Case(square(20, 5), (0.05, 0.5), "coin", {}, 60),
    "disaster": Case(SMALL, (0.109, 0.145), "disaster", {}, 1000),
    "mirror": Case(SMALL, (0.72, 0.882), "mirror", {}, 1000),
    "skew": Case(SMALL, (0.05, 0.3), "skew", {"width": 0.3}, 1000),
    "64day": Case(lanes_of(64), MID, "around", AROUND | {"day": 0.1}, 300),
    "8day": Case(EIGHT, MID, "around", AROUND | {"day": 0.05}, 300),
    "64": Case(lanes_of(64), MID, "around", AROUND, 300),
    "8common": Case(EIGHT, MID, "around", AROUND | {"common": 0.1}, 300),
    "20x20": Case(square(20, 5), MID, "around", AROUND, 60),
    "8totals": Case(EIGHT, MID, "around", AROUND | {"day": 0.05, "totals": True}, 300),
    "miss": Case(SMALL, (0.1, 0.5), "uniform", {"missing": 0.5}, 1000),
    "change": Case(CHANGING, MID, "around", AROUND, 500),
    "totals": Case(SMALL, (0.1, 0.5), "uniform", {"totals": True}, 1000),
}
EXPECTED: dict[str, tuple[float, float]] = {  # mean and standard error of a prototype
    "64day": (207.3, 26.1),
    "8day": (17.2, 0.9),
    "64": (65.4, 4.1),
    "8common": (36.9, 5.3),
    "rare": (14.7, 1.7),
    "paper": (6.7, 0.7),
    "20x20": (472.7, 1.7),
    "disaster": (11.4, 1.0),
    "8x8": (85.3, 0.8),
    "8totals": (13.6, 1.7),
    "twopoint": (9.6, 0.8),
    "64bern": (99.5, 5.2),
    "paperbern": (25.6, 3.2),
    "8x8rare": (76.9, 1.6),
    "skew": (16.4, 3.0),
    "20x20bern": (695.5, 3.6),
    "mirror": (18.4, 1.2),
    "miss": (11.8, 0.7),
    "change": (5.7, 0.4),
    "totals": (6.5, 0.6),
}
A_THIRD = ("paper", "readme", "8x8", "5of10u", "twopoint", "expo")
COINS = ("rare", "paperbern", "64bern", "8x8rare", "20x20bern")
SAMPLERS = ("GenCTS", "BootstrapCTS", "FollowTheLeader")


def regret_of(world: str, trials: int) -> dict[str, list[float]]:
    """Return the final regret of every trial, for each policy."""
    case = REGRET[world]
    actions = case.actions if len(case.sets) == 1 else TimeVarying(case.sets)
    policies = {name: PLAYERS[name] for name in SAMPLERS}
    environment = case.of(trials, seed=0)
    result = simulate(actions, environment, policies, case.rounds, trials, seed=3)
    return {name: result.final(name).tolist() for name in SAMPLERS}


def regret(trials: int | None, run: Runner) -> list[Section]:
    """Measure the regret of samplers in all worlds, against each other and a prototype."""
    found = run({world: (regret_of, (world, trials or 60)) for world in REGRET})
    rows, targets = [], []
    for world, finals in found.items():
        mean = {name: float(np.mean(finals[name])) for name in SAMPLERS}
        error = {name: standard_error(finals[name]) for name in SAMPLERS}
        q95 = {name: float(np.quantile(finals[name], 0.95)) for name in SAMPLERS}
        row: dict[str, Any] = {"world": f"{world}, {REGRET[world].rounds}"}
        for name in SAMPLERS:
            row[name] = f"{mean[name]:.1f} ± {error[name]:.1f} [{q95[name]:.0f}]"
        if world in EXPECTED:
            level, by = EXPECTED[world]
            row["prototype"] = f"{level} ± {by}"
            z = (mean["BootstrapCTS"] - level) / np.hypot(error["BootstrapCTS"], by)
            targets.append(Target(f"regret, {world}: above the prototype, standard errors", z, 4))
        ratio = mean["BootstrapCTS"] / mean["GenCTS"]
        if world in A_THIRD:
            targets.append(Target(f"regret, {world}: share of GenCTS", ratio, 1 / 3))
        if world in COINS:
            targets.append(Target(f"regret, {world} (coins): share of GenCTS", ratio, 1.1))
        if world == "disaster":
            most = q95["BootstrapCTS"] / q95["GenCTS"]
            targets.append(Target("regret, disaster: 95 % quantile, share of GenCTS", most, 1))
        rows.append(row)
    shows = "Mean ± standard error [95 % quantile] of the regret against the best plan."
    return [Section("Regret", shows, rows, targets)]


# ------------------------------------------------------------------ pooled

POOLED: dict[str, tuple[float, float]] = {  # mean and standard error of a prototype
    "paper": (6.6, 0.6),
    "readme": (2.0, 0.1),
    "8x8": (60.4, 1.0),
    "5of10u": (2.4, 0.1),
    "twopoint": (8.0, 0.6),
    "expo": (8.3, 1.3),
    "rare": (11.9, 1.6),
    "paperbern": (18.7, 2.0),
    "64bern": (97.7, 19.9),
    "8x8rare": (56.9, 1.7),
    "20x20bern": (382.8, 6.3),
    "disaster": (8.6, 0.7),
    "mirror": (15.3, 1.4),
    "skew": (12.9, 1.7),
    "64day": (225.7, 31.4),
    "8day": (14.6, 1.6),
    "64": (52.9, 4.4),
    "8common": (25.9, 4.8),
    "20x20": (228.3, 3.2),
    "8totals": (15.4, 1.5),
    "miss": (10.7, 1.0),
    "change": (1.7, 0.1),
    "totals": (7.6, 0.9),
}
SHARING: dict[str, Policy] = {
    "PooledCTS": PooledCTS(),
    "BootstrapCTS": BootstrapCTS(),
    "FollowTheLeader": FollowTheLeader(),
}


def shared(world: str, trials: int) -> dict[str, list[float]]:
    """Return the final regret of every trial, for a policy whose arms share a prior and others."""
    case = REGRET[world]
    actions = case.actions if len(case.sets) == 1 else TimeVarying(case.sets)
    result = simulate(actions, case.of(trials, 200), SHARING, case.rounds, trials, seed=203)
    return {name: result.final(name).tolist() for name in SHARING}


def pooled(trials: int | None, run: Runner) -> list[Section]:
    """Measure a prior that arms share, against arms that learn alone and a prototype."""
    found = run({world: (shared, (world, trials or 60)) for world in POOLED})
    rows, targets, ratios = [], [], []
    for world, finals in found.items():
        row: dict[str, Any] = {"world": f"{world}, {REGRET[world].rounds}"}
        for name, values in finals.items():
            q95 = np.quantile(values, 0.95)
            row[name] = f"{np.mean(values):.1f} ± {standard_error(values):.1f} [{q95:.0f}]"
        ours, alone = (np.array(finals[name]) for name in ("PooledCTS", "BootstrapCTS"))
        (level, by), ratio = POOLED[world], float(ours.mean() / alone.mean())
        z = (ours.mean() - level) / np.hypot(standard_error(ours.tolist()), by)
        paired = (ours - alone).mean() / standard_error((ours - alone).tolist())
        rows.append(row | {"prototype": f"{level} ± {by}", "ratio": ratio})
        ratios.append(ratio)
        what = f"pooled, {world}: distance from the prototype, standard errors"
        targets.append(Target(what, float(abs(z)), 4))
        what = f"pooled, {world}: ratio to BootstrapCTS, 1 if not above by 2 standard errors"
        targets.append(Target(what, 1.0 if paired < 2 else ratio, 1.1))
    mean = float(np.exp(np.mean(np.log(ratios))))
    targets.append(Target("pooled: geometric mean of the ratios", mean, 0.85))
    shows = "Mean ± standard error [95 % quantile] of the regret against the best plan."
    return [Section("A prior that arms share", shows, rows, targets)]


# --------------------------------------------------------------- surprises

SURPRISES = {  # chance of the cheap surprise, gap, units, rounds, prototype
    "p = .1, 1 unit": (0.1, 0.03, 1, 2000, (6.3, 0.4)),
    "p = .03, 8 units": (0.03, 0.015, 8, 1000, (5.3, 0.2)),
}


def surprised(name: str, trials: int) -> dict[str, list[float]]:
    """Return regrets where a good arm rarely costs nothing, and the other arm is constant."""
    chance, gap, units, rounds, _ = SURPRISES[name]
    good = 0.9 * (1 - chance)
    means = np.tile([good, good + gap], (trials, 1))
    environment = Surprise(means, "mirror")
    policies = {name: PLAYERS[name] for name in SAMPLERS}
    actions = Budget(units, [units, units])
    result = simulate(actions, environment, policies, rounds, trials, seed=3)
    return {name: result.final(name).tolist() for name in SAMPLERS}


@dataclass(frozen=True, eq=False)
class Surprise(Bills):
    """Two arms: 0.9 or rarely 0, and a constant."""

    def losses(self, means: FloatArray, rng: Rng) -> FloatArray:
        """Draw losses; only the first arm varies."""
        drawn = super().losses(means, rng)
        return np.where(np.arange(means.shape[-1]) == 0, drawn, means)


def surprises(trials: int | None, run: Runner) -> list[Section]:
    """Measure how often a rare cheap surprise is never found."""
    found = run({name: (surprised, (name, trials or 200)) for name in SURPRISES})
    rows, targets = [], []
    for name, finals in found.items():
        _, gap, units, rounds, (level, by) = SURPRISES[name]
        row: dict[str, Any] = {"world": name}
        for policy, values in finals.items():
            stuck = np.mean(np.array(values) > 0.8 * gap * units * rounds)
            row[policy] = f"{np.mean(values):.1f} ± {standard_error(values):.1f}, {stuck:.1%} stuck"
        rows.append(row | {"prototype": f"{level} ± {by}"})
        ours = finals["BootstrapCTS"]
        z = (np.mean(ours) - level) / np.hypot(standard_error(ours), by)
        targets.append(Target(f"surprise, {name}: above the prototype, standard errors", z, 4))
    return [Section("Rare cheap surprises", "Regret; runs above 80 % of the most.", rows, targets)]


# --------------------------------------------------------------- 200 lanes

BIG_SET = Transport([10] * 20, [20] * 10)
PRICES = (20, 400)
WIDTHS: dict[str, Policy] = {
    "FollowTheLeader": FollowTheLeader(),
    "GenCTS": GenCTS(),
    **{f"BootstrapCTS(w={w:g})": BootstrapCTS(w) for w in (1.0, 0.5, 0.25, 0.1)},
}


def lanes_cost(name: str, trials: int) -> list[float]:
    """Return the cost of 60 days divided by that of the best plan, for each trial."""
    rng = np.random.default_rng((0, 200))
    means = rng.uniform(*PRICES, (trials, BIG_SET.d)) / 500
    environment = Bills(means, "share", 0.2)
    result = simulate(BIG_SET, environment, {name: WIDTHS[name]}, 60, trials, seed=0)
    best = 60 * (BIG_SET.best(means) * means).sum(axis=1)
    ratio: list[float] = (1 + result.final(name) / best).tolist()
    return ratio


def lanes(trials: int | None, run: Runner) -> list[Section]:
    """Measure 60 days of 200 lanes: prices 20 to 400, bills ±20 %, range 0 to 500."""
    found = run({name: (lanes_cost, (name, trials or 60)) for name in WIDTHS})
    rows = [
        {"policy": name, "cost / best": float(np.mean(v)), "se": standard_error(v)}
        for name, v in found.items()
    ]
    ours, leader = (np.mean(found[n]) for n in ("BootstrapCTS(w=1)", "FollowTheLeader"))
    targets = [Target("200 lanes: cost, share of FollowTheLeader", float(ours / leader), 1.0)]
    shows = "Cost of 60 days divided by that of the best plan; 20 suppliers, 10 customers."
    return [Section("200 lanes", shows, rows, targets)]


# ----------------------------------------------------------------- missing

MISSING: dict[str, dict[str, Any]] = {
    "all reports": {},
    "half of the units missing": {"missing": 0.5},
    "half of the lanes missing": {"missing": 0.5, "of_lanes": True},
}
BARRIERS: dict[str, Policy] = {"GenLBINFV": GenLBINFV(anytime=True), "GenAdaINF": GenAdaINF()}


def missing_regret(kind: str, corrupted: bool, trials: int) -> dict[str, list[float]]:
    """Return the regret of 2000 rounds of the paper's problem."""
    means, flips_at = paper.costs(trials, 0), 400 if corrupted else None
    environment = Bills(means, "uniform", flips_at=flips_at, **MISSING[kind])
    result = simulate(paper.PLANS, environment, BARRIERS, 2000, trials, seed=0)
    return {name: result.final(name).tolist() for name in BARRIERS}


def missing(trials: int | None, run: Runner) -> list[Section]:
    """Measure FTRL policies with reports that are missing at random."""
    number, regimes = trials or 400, {"stochastic": False, "corrupted": True}
    jobs = {
        (regime, kind): (missing_regret, (kind, corrupted, number))
        for regime, corrupted in regimes.items()
        for kind in MISSING
    }
    found, rows, targets = run(jobs), [], []
    for (regime, kind), finals in found.items():
        row: dict[str, Any] = {"regime": regime, "reports": kind}
        for name, values in finals.items():
            row[name] = f"{np.mean(values):.1f} ± {standard_error(values):.1f}"
        rows.append(row)
    for kind in list(MISSING)[1:]:
        whole, some = (found["corrupted", k]["GenLBINFV"] for k in ("all reports", kind))
        ratio = float(np.mean(some) / np.mean(whole))
        targets.append(Target(f"GenLBINFV, corrupted, {kind}: regret ratio", ratio, 1.25))
    shows = "Regret ± standard error; corrupted: losses become 1 - loss after round 400."
    return [Section("Missing reports", shows, rows, targets)]


# ---------------------------------------------------------------- examples


def small_bills(seeds: Sequence[int]) -> list[tuple[bool, float]]:
    """Return whether the next plan is covered, and expected/true, after 12 days."""
    plans, answers = Transport([4, 5, 5], [3, 4, 3], slack=True), []
    for seed in seeds:
        rng = np.random.default_rng((6, seed))
        price = rng.uniform(20, 200, plans.d)
        learner = Learner(plans, loss_range=(0, 2000), seed=seed)
        for _ in range(12):
            play = learner.ask()
            bills = {
                arm: (price[i] * rng.uniform(0.5, 1.5, play.action[i])).tolist()
                for i, arm in enumerate(plans.names)
            }
            learner.tell(play.id, bills)
        play = learner.ask()
        cost, expected = float(play.action @ price), play.expected
        answers.append((expected.low <= cost <= expected.high, float(expected.total) / cost))
    return answers


def examples(trials: int | None, run: Runner) -> list[Section]:
    """Measure single examples: small losses, ranges by arm, zeros, and totals."""
    parts = np.array_split(np.arange(trials or 400), 8)
    found = run({k: (small_bills, (part.tolist(),)) for k, part in enumerate(parts)})
    plans = [one for part in found.values() for one in part]
    cover, ratio = float(np.mean([c for c, _ in plans])), float(np.median([r for _, r in plans]))
    rows: list[dict[str, Any]] = [
        {"example": "small losses: plan covered", "measured": cover, "expected": ".970"},
        {"example": "small losses: expected/true", "measured": ratio, "expected": "1.008"},
    ]
    targets = [
        Target("small losses: plan covered", cover, 0.92, at_least=True),
        Target("small losses: expected/true, distance from 1", abs(ratio - 1), 0.03),
    ]
    for name, measured, expected, within in single_examples():
        rows.append({"example": name, "measured": measured, "expected": f"{expected:g}"})
        targets.append(Target(f"{name}: distance", abs(measured - expected), within))
    return [Section("Examples", "In the user's unit.", rows, targets)]


def single_examples() -> Iterator[tuple[str, float, float, float]]:
    """Yield name, measured value, expected value, and tolerance."""
    own = Learner(Budget(4, [4, 4, 4]), loss_range={"arm 1": (20, 30), "*": (0, 250)}, seed=0)
    own.learn({"arm 2": 2, "arm 3": 2}, {"arm 2": [150.0, 140.0], "arm 3": [100.0, 110.0]})
    of_arm, of_plan = own.arms().iloc[0], own.expect({"arm 1": 4})
    yield "range by arm: mean", float(of_arm["mean"]), 25.0, 1e-9
    yield "range by arm: plan", float(of_plan.total), 100.0, 1e-9
    yield "range by arm: low end", float(of_plan.low), 80.0, 1e-9
    yield "range by arm: best() plays it", float(own.best().plan["arm 1"]), 4.0, 0.0
    zeros = Learner(Budget(4, [4, 4, 4]), seed=0)
    zeros.learn({"arm 1": 4}, {"arm 1": [0.0] * 4})
    table = zeros.arms()
    yield "four zeros: mean", float(table["mean"][0]), 0.009, 5e-4
    yield "four zeros: high end", float(table["high"][0]), 0.309, 5e-4
    yield "four zeros: mean of unseen arms", float(table["mean"][1]), 0.156, 5e-4
    total = Learner(Budget(4, [4, 4, 4]), loss_range=(0, 500), seed=0)
    total.learn({"arm 1": 4}, {"arm 1": 600.0})
    first = total.arms().iloc[0]
    yield "a total alone: mean", float(first["mean"]), 153.5, 0.5
    yield "a total alone: high end", float(first["high"]), 471.0, 0.5


# ------------------------------------------------------------------ prices

PRICES_BY_WORLD = {"15 to 1,500": (15.0, 1500.0), "50 to 600": (50.0, 600.0), "two ranges": None}
LANES = Transport([6] * 6, [6] * 6)
DAYS, NOISE = 40, 0.12  # normal bills, relative to the price
ENOUGH = 100  # intervals of a group, the fewest of which a share is compared with a limit
GROUPS: dict[str, Callable[[IntArray, FloatArray], NDArray[np.bool_]]] = {
    "cheapest third": lambda rank, seen: (rank == 0) & (seen > 0),
    "middle third": lambda rank, seen: (rank == 1) & (seen > 0),
    "dearest third": lambda rank, seen: (rank == 2) & (seen > 0),
    "unseen": lambda rank, seen: seen == 0,
    "1 to 4 units": lambda rank, seen: (seen > 0) & (seen < 5),
    "5 to 19 units": lambda rank, seen: (seen >= 5) & (seen < 20),
    "20 and more": lambda rank, seen: seen >= 20,
}


def priced(world: str, life: int) -> dict[str, list[float]]:
    """Return what was covered of each group of lanes and of plans after 40 days."""
    rng, ends, d = np.random.default_rng((9, life)), PRICES_BY_WORLD[world], LANES.d
    if ends is None:  # every second lane is cheap, and known to be
        cheap = np.arange(d) % 2 == 0
        price = np.where(cheap, rng.uniform(2, 10, d), rng.uniform(300, 2000, d))
        most = np.where(cheap, 12.0, 2500.0)
    else:
        low, high = map(math.log, ends)
        price, most = np.exp(rng.uniform(low, high, d)), np.full(d, 1.6 * ends[1])
    ranges = {name: (0.0, float(top)) for name, top in zip(LANES.names, most, strict=True)}
    learner = Learner(LANES, seed=life, loss_range=ranges)
    for _ in range(DAYS):
        play = learner.ask()
        bills = [rng.normal(p, NOISE * p, k) for p, k in zip(price, play.action, strict=True)]
        clipped = [np.clip(one, 0, top).tolist() for one, top in zip(bills, most, strict=True)]
        learner.tell(play, dict(zip(LANES.names, clipped, strict=True)))
    arms, rank = learner.arms(), price.argsort().argsort() * 3 // d
    covered = ((arms["low"] <= price) & (price <= arms["high"])).to_numpy()
    seen = arms["seen"].to_numpy()
    found = {name: covered[of(rank, seen)].tolist() for name, of in GROUPS.items()}
    ratio = arms["spread"].to_numpy() / (NOISE * price)
    found["spread of the cheapest third"] = ratio[(rank == 0) & (seen > 0)].tolist()
    best = learner.best()
    for name, (expected, action) in {
        "best()": (best.expected, np.array([best.plan[name] for name in LANES.names])),
        "expect()": (learner.expect(play.plan), play.action),
    }.items():
        cost = float(action @ price)
        found[name] = [float(expected.low <= cost <= expected.high)]
        found[f"{name}, expected/true"] = [float(expected.total) / cost]
    return found


def lives_of(world: str, lives: Sequence[int]) -> dict[str, list[float]]:
    """Return what was covered in some lives, together."""
    together: dict[str, list[float]] = {}
    for life in lives:
        for name, values in priced(world, life).items():
            together.setdefault(name, []).extend(values)
    return together


def prices(trials: int | None, run: Runner) -> list[Section]:
    """Measure intervals where prices differ tenfold, and where ranges do."""
    parts = np.array_split(np.arange(trials or 200), 8)
    found = run(
        {
            (world, k): (lives_of, (world, part.tolist()))
            for world in PRICES_BY_WORLD
            for k, part in enumerate(parts)
        }
    )
    rows, targets = [], []
    for world in PRICES_BY_WORLD:
        together: dict[str, list[float]] = {}
        for (of, _), part in found.items():
            for name, values in part.items() if of == world else ():
                together.setdefault(name, []).extend(values)
        for name, values in together.items():
            is_ratio = "expected" in name or "spread" in name
            value = float(np.median(values) if is_ratio else np.mean(values)) if values else np.nan
            rows.append({"prices": world, "what": name, "number": len(values), "measured": value})
            if is_ratio:
                within = 0.03 if "expected" in name else 0.1
                what = f"prices {world}: {name}, distance from 1"
                targets.append(Target(what, abs(value - 1), within))
            elif len(values) >= ENOUGH:
                most = 0.99 if name in ("unseen", "best()", "expect()") else 0.985
                if name == "unseen" and PRICES_BY_WORLD[world] is None:
                    most = 1.0  # even prices are within 1.73 deviations: a normal interval has 1.96
                targets += [
                    Target(f"prices {world}: {name} covered", value, 0.92, at_least=True),
                    Target(f"prices {world}: {name} covered at most", value, most),
                ]
    shows = "95 % intervals after 40 days of 36 lanes; normal bills of ±12 % of the price."
    return [Section("Prices", shows, rows, targets)]


# -------------------------------------------------------------------- cost


def cost(trials: int | None, run: Runner) -> list[Section]:
    """Measure the time of a day at 6 arms, of beliefs alone, and of reads at 10,000 arms."""
    rows: list[dict[str, Any]] = []
    for name in ("GenCTS", "BootstrapCTS"):
        learner = Learner(Transport([1, 4, 5], [4, 6]), PLAYERS[name], seed=0)
        asks, tells = zip(*(_day(learner) for _ in range(2000)), strict=True)
        row = {"what": f"{name}, 6 arms", "ask, µs": 1e6 * np.median(asks)}
        rows.append(row | {"tell, µs": 1e6 * np.median(tells)})
    apart = Learner(Transport([1, 4, 5], [4, 6]), PLAYERS["GenCTS"], seed=0)  # from the policy
    moments, counts = apart.engine.state.moments, np.array([1, 0, 2, 2, 1, 4])
    nothing = Feedback(counts[None], np.zeros((1, 6)))
    report = ArmReport(counts, counts, np.linspace(0, 1, 10), np.zeros(0), np.zeros(0), 1.0)

    def add_hundred() -> None:
        for _ in range(100):
            moments.add(None, report, nothing)

    adds = [_seconds(add_hundred) for _ in range(50)]
    added = 1e6 * float(np.median(adds)) / 100
    many = Learner(Budget(200, [1] * 10_000), BootstrapCTS(), seed=0)
    reads, days = [], []
    for _ in range(10):
        days.append(_day(many))
        reads.append(_seconds(many.arms))
    read = float(np.median(reads))
    asks, tells = zip(*days, strict=True)
    rows += [
        {"what": "beliefs of a report, 6 arms", "tell, µs": added},
        {
            "what": "10,000 arms",
            "ask, µs": 1e6 * np.median(asks),
            "tell, µs": 1e6 * np.median(tells),
        }
        | {"arms(), µs": 1e6 * read},
    ]
    sums = many.engine.state.moments.sums
    targets = [
        Target("beliefs in a tell, 6 arms", added, 20, "µs"),
        Target("arms() at 10,000 arms", 1e3 * read, 15, "ms"),
        Target("numbers for each arm", float(sums.size / len(sums)), 9),
    ]
    return [Section("Cost", "Median processor time of a call.", rows, targets)]


def _day(learner: Learner) -> tuple[float, float]:
    """Play a day; return the seconds of ask and tell."""
    started = time.process_time()
    play = learner.ask()
    asked = time.process_time()
    losses = {arm: [0.5] * units for arm, units in play.plan.items()}
    made = time.process_time()
    learner.tell(play.id, losses)
    return asked - started, time.process_time() - made


def _seconds(function: Callable[[], object]) -> float:
    started = time.process_time()
    function()
    return time.process_time() - started


# ------------------------------------------------------------ command line

TOPICS: dict[str, Callable[[int | None, Runner], list[Section]]] = {
    "coverage": coverage,
    "regret": regret,
    "pooled": pooled,
    "surprises": surprises,
    "lanes": lanes,
    "missing": missing,
    "examples": examples,
    "prices": prices,
    "cost": cost,
}


if __name__ == "__main__":
    command("benchmarks.bills", __doc__, TOPICS)
