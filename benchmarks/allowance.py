"""Allowance: how often plays exceed it, what it costs, and how long a restricted plan takes.

Command line: ``python -m benchmarks.allowance --only runs coins --trials 2000 --jobs 2``. Every run
has means of its own, and is judged by expected costs.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

if __name__ == "__main__":
    from benchmarks import ONE_THREAD

    os.environ.update(ONE_THREAD)  # before the import of numpy

import numpy as np
from scipy.stats import beta

from benchmarks.harness import Runner, Section, Target, command
from multiplay import (
    ActionSet,
    Baseline,
    BootstrapCTS,
    Budget,
    Changes,
    Constrained,
    Feedback,
    GenCTS,
    InProportion,
    Learner,
    Policy,
    PooledCTS,
    Rule,
    Streams,
    Transport,
)
from multiplay.actions.base import owners, unit_numbers
from multiplay.policies.constrained import RESTRICTED
from multiplay.types import BoolArray, FloatArray, IntArray

SEED, RUNS, BLOCK, DAYS, HISTORY = 33, 2000, 500, 60, 30
EUROS, SHARE, FREE = 250.0, 0.03, 0.9  # the range; the allowance; a free policy's own plans
PLANS = Transport([5, 6, 7], [6, 7, 5])
POLICIES: dict[str, Policy] = {
    "BootstrapCTS": BootstrapCTS(),
    "follow": BootstrapCTS(memory=Changes()),
    "GenCTS": GenCTS(),
    "PooledCTS": PooledCTS(),
}
WALK, DAY, LANE_DAY, DISASTER = 3.0, 15.0, 10.0, 0.03
ADS = Budget(10, [4] * 6)
COINS = "coins"  # losses of 0 or the whole range


class Case(NamedTuple):
    """A world, a baseline, a policy, and the days before the first play."""

    world: str
    baseline: str
    policy: str
    per: str | None = None
    history: bool = False
    free_by: int | None = None  # limit on the median first day from which the policy is free
    plans: ActionSet = PLANS
    share: float = SHARE
    days: int = DAYS

    @property
    def text(self) -> str:
        """The case in a few words."""
        words = [self.world, self.baseline, self.policy]
        if self.world == COINS:
            words = [type(self.plans).__name__, f"{100 * self.share:g} %", self.policy]
        words += [f"{self.days} days"] * (self.days > DAYS)
        more = ["history"] * self.history + ["per week"] * (self.per is not None)
        return ", ".join(words + more)


CASES = [
    Case("stationary", "proportion", "BootstrapCTS", free_by=3),
    Case("stationary", "proportion", "GenCTS", free_by=4),
    Case("stationary", "list", "BootstrapCTS", free_by=21),
    Case("stationary", "list", "GenCTS", free_by=28),
    Case("stationary", "proportion", "BootstrapCTS", history=True, free_by=1),
    Case("stationary", "list", "BootstrapCTS", history=True, free_by=20),
    Case("stationary", "proportion", "follow"),
    Case("days", "proportion", "BootstrapCTS"),
    Case("laneday", "proportion", "BootstrapCTS"),
    Case("laneday", "list", "BootstrapCTS"),
    Case("rare", "proportion", "BootstrapCTS"),
    Case("rare", "list", "BootstrapCTS"),
    Case("changing", "proportion", "BootstrapCTS"),
    Case("drift", "proportion", "BootstrapCTS", "week"),
    Case("drift", "list", "BootstrapCTS", "week"),
    Case("drift", "list", "follow", "week"),
    Case("drift", "list", "BootstrapCTS"),
]


BEFORE = {  # regret of that without an allowance, under a normal bound (300 runs of seed 33)
    "Budget, 3 %, GenCTS": 0.448,
    "Budget, 3 %, PooledCTS": 0.594,
    "Budget, 5 %, GenCTS": 0.457,
    "Budget, 5 %, PooledCTS": 0.634,
    "Transport, 3 %, GenCTS": 0.540,
    "Transport, 3 %, PooledCTS": 0.670,
    "Transport, 5 %, GenCTS": 0.567,
    "Transport, 5 %, PooledCTS": 0.696,
}
COIN_CASES = [
    Case(COINS, "list", policy, plans=plans, share=share, days=50)
    for plans in (ADS, PLANS)
    for share in (0.03, 0.05)
    for policy in ("GenCTS", "PooledCTS")
]
LONG = Case(COINS, "list", "GenCTS", plans=ADS, share=0.05, days=200)


@dataclass(frozen=True)
class Listed(Rule):
    """The best plans for the price lists of all runs, (runs, d)."""

    prices: FloatArray

    @classmethod
    def example(cls) -> Self:
        """Return a list of one run."""
        return cls(np.ones((1, 9)))

    @property
    def text(self) -> str:
        """The rule in a few words."""
        return "price lists"

    def plan(self, actions: ActionSet) -> IntArray:
        """Return a plan for each run."""
        return actions.argmin(self.prices)


class Block(NamedTuple):
    """Runs of a case: expected costs of each day, (runs, days), and whether plays were free."""

    played: FloatArray
    baseline: FloatArray
    best: FloatArray
    free: BoolArray


def today(case: Case, day: int) -> ActionSet:
    """Return the set of a day; all runs have the same."""
    if case.world != "changing":
        return case.plans
    rng = np.random.default_rng([2026, day])
    units = int(rng.integers(12, 22))
    supply = [units * 8 // 27, units * 9 // 27]
    demand = 1 + rng.multinomial(units - 3, [1 / 3] * 3)
    return Transport([*supply, units - sum(supply)], demand)


def play(case: Case, limited: bool, block: int, trials: int) -> Block:
    """Play some runs of a case, with an allowance or without."""
    rng = np.random.default_rng([SEED, block])
    low, high = (0.1 * EUROS, 0.8 * EUROS) if case.world == COINS else (40.0, 160.0)
    means = rng.uniform(low, high, (trials, case.plans.d))
    prices = means * np.exp(rng.normal(0, 0.25, means.shape))
    rule: Rule = Listed(prices) if case.baseline == "list" else InProportion()
    inner = POLICIES[case.policy]
    limit = Baseline(rule, case.share, per=case.per)
    policy = Constrained(inner, [limit]) if limited else inner
    streams = Streams.spawn(SEED, block, range(trials))
    state = policy.start(case.plans, None, trials)
    costs, free = np.empty((3, trials, case.days)), np.ones((trials, case.days), dtype=bool)
    if case.history:
        plan = np.broadcast_to(rule.plan(PLANS), means.shape).copy()
        for _ in range(HISTORY):
            policy.absorb(PLANS, state, bills(case.world, PLANS, plan, means, rng), streams)
    for day in range(case.days):
        plans = today(case, day)
        if case.world == "drift" and day:
            means = np.clip(means + rng.normal(0, WALK, means.shape), 10, 200)
        expected = means
        if case.world == "rare":
            expected = (1 - DISASTER) * means + DISASTER * EUROS
        chosen = policy.choose(plans, state, streams)
        baseline = np.broadcast_to(rule.plan(plans), means.shape)
        three = chosen.action, baseline, plans.argmin(expected)
        costs[:, :, day] = [(one * expected).sum(axis=1) for one in three]
        free[:, day] = ~chosen.memo.get(RESTRICTED, np.zeros(trials, dtype=bool))
        told = bills(case.world, plans, chosen.action, means, rng)
        policy.update(plans, state, chosen, told, streams)
    played, of_baseline, best = costs
    return Block(played, of_baseline, best, free)


def bills(
    world: str, plans: ActionSet, action: IntArray, means: FloatArray, rng: np.random.Generator
) -> Feedback:
    """Return the losses of the units of a day."""
    owner, k = owners(plans.n), unit_numbers(plans.n)
    units = means[:, owner] * rng.uniform(0.6, 1.4, (len(means), len(owner)))
    if world == "rare":
        units = np.where(rng.random(units.shape) < DISASTER, EUROS, units)
    if world == COINS:
        units = np.where(rng.random(units.shape) * EUROS < means[:, owner], EUROS, 0.0)
    if world == "days":
        units += rng.normal(0, DAY, (len(means), 1))
    if world == "laneday":
        units += rng.normal(0, LANE_DAY, means.shape)[:, owner]
    losses = np.clip(units / EUROS, 0.0, 1.0)
    first = np.concatenate([[0], np.cumsum(plans.n)])
    counted = np.where(k <= action[:, owner], losses, 0.0)
    total = np.add.reduceat(counted, first[:-1], axis=1)
    return Feedback(action, total, losses, first)


def violated(runs: Block, share: float, per: str | None) -> tuple[BoolArray, float]:
    """Return the runs that exceed the allowance on some day, and the largest excess."""
    played, allowed = runs.played.copy(), (1 + share) * runs.baseline
    start = range(0, played.shape[1], 7 if per else played.shape[1])
    excess = np.concatenate(
        [
            played[:, a : a + start.step].cumsum(1) / allowed[:, a : a + start.step].cumsum(1) - 1
            for a in start
        ],
        axis=1,
    )
    return np.any(excess > 1e-9, axis=1), float(excess.max())


def free_from(free: BoolArray) -> FloatArray:
    """Return the first day from which the policy's own plan is played on 9 of 10 days."""
    ten = np.lib.stride_tricks.sliding_window_view(free, 10, axis=1).sum(axis=2)
    good, never = ten >= 10 * FREE, free.shape[1] + 1.0
    days: FloatArray = np.where(good.any(axis=1), good.argmax(axis=1) + 1.0, never)
    return days


def upper_bound(failures: int, runs: int) -> float:
    """Return the upper end of the one-sided 95 % interval of Clopper and Pearson."""
    return float(beta.ppf(0.95, failures + 1, runs - failures)) if failures < runs else 1.0


def measured(
    cases: Sequence[Case], trials: int | None, run: Runner
) -> Iterator[tuple[Case, Block, Block]]:
    """Yield the runs of some cases, with the allowance and without it."""
    number = trials or RUNS
    sizes = [min(BLOCK, number - first) for first in range(0, number, BLOCK)]
    pieces = [
        (case, limited, k, size)
        for case in cases
        for limited in (True, False)
        for k, size in enumerate(sizes)
    ]
    found = run({piece: (play, piece) for piece in pieces})
    for case in cases:
        safe, naive = (
            Block(*(np.concatenate(part) for part in zip(*blocks, strict=True)))
            for blocks in (
                [found[case, limited, k, size] for k, size in enumerate(sizes)]
                for limited in (True, False)
            )
        )
        yield case, safe, naive


def row_of(case: Case, safe: Block, naive: Block) -> dict[str, Any]:
    """Return violations, regret and freedom in the runs of a case."""
    of_case = case.share, case.per
    (broken, worst), (naive_broken, _) = (violated(one, *of_case) for one in (safe, naive))
    regret, of_naive = ((one.played - one.best).sum(axis=1) for one in (safe, naive))
    free, number = free_from(safe.free), len(regret)
    return {
        "world": case.text,
        "violated %": 100 * float(broken.mean()),
        "at most %": 100 * upper_bound(broken.sum(), number),
        "worst day %": 100 * worst,
        "since day 1 %": 100 * float(violated(safe, case.share, None)[0].mean()),
        "naive violated %": 100 * float(naive_broken.mean()),
        "regret": float(regret.mean()),
        "se": float(regret.std() / number**0.5),
        "naive regret": float(of_naive.mean()),
        "ratio": float(regret.mean() / of_naive.mean()),
        "own plan %": 100 * float(safe.free.mean()),
        "free from day": float(np.median(free)),
        "never free %": 100 * float((free > case.days).mean()),
        "cost / baseline": float(safe.played.sum() / safe.baseline.sum()),
    }


def runs(trials: int | None, run: Runner) -> list[Section]:
    """Measure violations, regret and freedom in all worlds."""
    rows, targets = list[dict[str, Any]](), list[Target]()
    for case, safe, naive in measured(CASES, trials, run):
        row, name = row_of(case, safe, naive), case.text
        rows.append(row)
        if case.world != "drift" or case.per:
            targets.append(Target(f"{name}: violated, upper bound", row["at most %"], 1.0, "%"))
            what = f"{name}: regret, of that without allowance"
            targets.append(Target(what, row["ratio"], 1.15))
        if case.free_by is not None:
            targets.append(Target(f"{name}: free from day", row["free from day"], case.free_by))
    shows = f"{trials or RUNS} runs of {DAYS} days; an allowance of 3 %; expected costs."
    return [Section("Runs", shows, rows, targets)]


def coins(trials: int | None, run: Runner) -> list[Section]:
    """Measure the same for losses of 0 and 1, beside the regret of a normal bound."""
    rows, targets = list[dict[str, Any]](), list[Target]()
    for case, safe, naive in measured([*COIN_CASES, LONG], trials, run):
        row, name = row_of(case, safe, naive), case.text
        rows.append(row)
        if case == LONG:
            continue
        ratio = row["ratio"] / BEFORE[name]
        targets.append(Target(f"{name}: violated", row["violated %"], 1.5, "%"))
        targets.append(Target(f"{name}: regret, of that under a normal bound", ratio, 1.3))
    shows = f"{trials or RUNS} runs of 50 or 200 days; losses of 0 and {EUROS:g}; expected costs."
    return [Section("Coins", shows, rows, targets)]


def speed(trials: int | None, run: Runner) -> list[Section]:
    """Measure a restricted plan of a learner on 8 x 8 lanes, and of an unrestricted one."""
    rows, targets = list[dict[str, Any]](), list[Target]()
    for size, each in ((3, 6), (8, 6), (8, 12)):
        plans = Transport([each] * size, [each] * size)
        learner = Learner(
            plans, seed=0, loss_range=(0, EUROS), constraints=[Baseline(InProportion())]
        )
        rng = np.random.default_rng(SEED)
        means = rng.uniform(40, 160, plans.d)
        taken: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(trials or 40):
            started = time.process_time()
            asked = learner.ask()
            taken[asked.restricted].append(1e3 * (time.process_time() - started))
            losses = {
                arm: (mean * rng.uniform(0.6, 1.4, k)).tolist()
                for (arm, k), mean in zip(asked.plan.items(), means, strict=True)
            }
            learner.tell(asked, losses)
        name = f"{size} x {size} lanes, {size * each} units"
        slow = [*taken[True][1:]] or [np.nan]  # the first compiles
        rows.append(
            {
                "set": name,
                "restricted plans": len(taken[True]),
                "ms, restricted": float(np.median(slow)),
                "ms at most": float(np.max(slow)),
                "ms, free": float(np.median(taken[False] or [np.nan])),
            }
        )
        if (size, each) == (8, 6):
            targets.append(Target(f"{name}: a restricted plan", float(np.median(slow)), 50, "ms"))
    return [Section("Speed", "Processor time of ask.", rows, targets)]


TOPICS: dict[str, Callable[[int | None, Runner], list[Section]]] = {
    "runs": runs,
    "coins": coins,
    "speed": speed,
}

if __name__ == "__main__":
    command("benchmarks.allowance", __doc__, TOPICS)
