"""Promises: whole months with budgets and contracts, what they cost, and how long a plan takes.

Command line: ``python -m benchmarks.promises --only months --trials 60 --jobs 2``. A month has 30
days and sets that change; its costs are compared with the linear program of all days with the true
means, which allows fractions of units. Months whose program is infeasible are left out.
"""

import os
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

if __name__ == "__main__":
    from benchmarks import ONE_THREAD

    os.environ.update(ONE_THREAD)  # before the import of numpy

import numpy as np
from scipy.optimize import linprog

from benchmarks.harness import Runner, Section, Target, command
from multiplay import (
    AtLeast,
    AtMost,
    BootstrapCTS,
    FollowTheLeader,
    InvalidInput,
    Learner,
    Policy,
    Promise,
    PromiseReport,
    Transport,
)
from multiplay.constraints.prices import RemainingSet, shadow_prices
from multiplay.types import FloatArray, IntArray

SEED, MONTHS, DAYS, PAST, EUROS = 2034, 60, 30, 20, 250.0
CLASHES = 100
BILLS = 400  # of each lane, where means are known
METHODS = ("list", "likely", "quota")
RAISED = (1.0, 1.001, 1.01, 1.1, 1.3, 2.0, 5.0, 20.0)  # prices of a quota, until it is kept
ABOVE = {("list", True): 1.0, ("list", False): 4.0, ("likely", True): 6.0, ("likely", False): 6.0}
ROUGH, BROKEN = 0.35, 5.0  # limits: of changes of prices, and of broken months in %
NAMES = (["Lyon", "Lille", "Paris"], ["north", "south", "coast"])


class World(NamedTuple):
    """A month: sets, sets of the past, true means, and its promises."""

    sets: list[Transport]
    past: list[Transport]
    means: FloatArray
    promises: list[Promise]
    amounts: FloatArray
    limits: FloatArray
    least: float


class Lived(NamedTuple):
    """A month that was played."""

    above: float  # % above the linear program
    over: float  # % over a limit
    promised: bool  # whether the first day said "sure" or "likely" of all promises
    rough: float  # mean change of the first price, over its mean
    held: float  # share of days that a promise changed beyond its price


def random_day(rng: np.random.Generator) -> Transport:
    """Return the set of a day."""
    demand = rng.integers([4, 5, 3], [9, 10, 8])
    share = np.array([8, 9, 10]) * demand.sum() / 27
    supply = np.floor(share).astype(int)
    supply[np.argsort(supply - share, kind="stable")[: demand.sum() - supply.sum()]] += 1
    return Transport(supply, demand, names=NAMES)


def world(seed: int, promises: int) -> World | None:
    """Return a month with 1 to 3 promises; None if its program is infeasible."""
    rng = np.random.default_rng([SEED, seed])
    means = rng.uniform(40, 160, 9)
    sets, past = ([random_day(rng) for _ in range(k)] for k in (DAYS, PAST))
    co2 = np.clip(160 - 0.6 * means + rng.normal(0, 15, 9), 5, None)
    carrier, hours = np.zeros(9), rng.uniform(2, 8, 9)
    carrier[[2, 3]] = 1

    def use(amounts: FloatArray, costs: FloatArray) -> float:
        return sum(float(one.argmin(costs) @ amounts) for one in sets)

    free = use(co2, means)
    rows: list[tuple[type[Promise], FloatArray, float, str]]
    rows = [(AtMost, co2, free + 0.4 * (use(co2, co2) - free), "CO2")]
    free = use(carrier, means)
    rows.append((AtLeast, carrier, free + 0.2 * (use(carrier, -carrier) - free), "carrier B"))
    rows.append((AtMost, hours, 1.1 * use(hours, means), "hours"))
    made, names = list[Promise](), sets[0].names
    for kind, amounts, limit, name in rows[:promises]:
        by_arm = dict(zip(names, amounts.tolist(), strict=True))
        made.append(kind(limit, by_arm, plays=DAYS, name=name))
    signed = np.stack([one.sign * one.amounts(names) for one in made])
    limits = np.array([one.sign * one.limit for one in made])
    least = program(sets, means, signed, limits)
    return None if least is None else World(sets, past, means, made, signed, limits, least)


def program(
    sets: list[Transport], means: FloatArray, amounts: FloatArray, limits: FloatArray
) -> float | None:
    """Return the cost of the linear program of all days, by HiGHS; None if it is infeasible."""
    d = len(means)
    rows, sides = list[FloatArray](), list[float]()
    for s, one in enumerate(sets):
        lanes = np.arange(d).reshape(len(one.supply), -1)
        ends = zip([*lanes, *lanes.T], [*one.supply, *one.demand], strict=True)
        for which, units in ends:
            row = np.zeros(d * len(sets))
            row[s * d + which] = 1
            rows.append(row)
            sides.append(float(units))
    use = np.tile(amounts, (1, len(sets)))
    solved = linprog(np.tile(means, len(sets)), use, limits, np.array(rows), sides)
    return float(solved.fun or 0.0) if solved.status == 0 else None


def bills(rng: np.random.Generator, plan: dict[str, int], means: FloatArray) -> dict[str, Any]:
    """Return a bill for each unit of a plan."""
    pairs = zip(plan.items(), means, strict=True)
    return {arm: (mean * rng.uniform(0.6, 1.4, k)).tolist() for (arm, k), mean in pairs}


def promises_of(learner: Learner) -> list[PromiseReport]:
    """Return how the promises of a learner stand."""
    return [one for one in learner.constraints() if isinstance(one, PromiseReport)]


def live(seed: int, promises: int, known: bool, method: str) -> Lived | None:
    """Play a month; ``known``: the policy knows the means."""
    made = world(seed, promises)
    if made is None:
        return None
    rng, names = np.random.default_rng([SEED, seed, 1]), made.sets[0].names
    policy: Policy = FollowTheLeader() if known else BootstrapCTS()
    learner = Learner(made.sets[0], policy, seed=seed, loss_range=(0, EUROS), varying_set=True)
    if known:
        rounds = np.repeat(np.arange(BILLS), len(names)).tolist()
        losses = np.tile(made.means, BILLS).tolist()
        learner.learn_table({"arm": [*names] * BILLS, "round": rounds, "loss": losses})
    for one in made.past:
        learner.cancel(learner.ask(actions=one))
    if method == "quota":
        return quota(made, learner, rng)
    for promise in made.promises:
        learner.add_constraint(promise)
    cost, prices, held, sure = 0.0, list[float](), 0, False
    for t, one in enumerate(made.sets):
        ahead = made.sets[t + 1 :] if method == "list" else None
        try:
            play = learner.ask(actions=one, ahead=ahead)
        except InvalidInput:  # the program is feasible within the gap only
            return None
        if t == 0:
            sure = {row.holds for row in promises_of(learner)} <= {"sure", "likely"}
        prices.append(play.prices["CO2"])
        held += play.held
        cost += float(play.action @ made.means)
        learner.tell(play, bills(rng, play.plan, made.means))
    used = np.array([row.used for row in promises_of(learner)])
    signs = np.array([one.sign for one in made.promises])
    return lived(made, cost, signs * used, np.array(prices), sure, held / DAYS)


def lived(
    made: World, cost: float, used: FloatArray, prices: FloatArray, sure: bool, held: float
) -> Lived:
    """Return the numbers of a month."""
    over = float(((used - made.limits) / np.abs(made.limits)).max())
    rough = float(np.abs(np.diff(prices)).mean() / max(prices.mean(), 1e-12))
    return Lived(100 * (cost / made.least - 1), 100 * over, sure, rough, held)


def quota(made: World, learner: Learner, rng: np.random.Generator) -> Lived:
    """Play a month where every day has its share of what is left."""
    cost, used, prices = 0.0, np.zeros(len(made.limits)), list[float]()
    state, names = learner.engine.state, made.sets[0].names
    for t, one in enumerate(made.sets):
        share = (made.limits - used) / (DAYS - t)
        places = state.arms.places(names)
        index = state.policy.index(state.usual.actions, state.arms.cut(places), learner.rng)
        assert index is not None
        theta = EUROS * index[0]
        found = shadow_prices([RemainingSet(one, 1.0, theta, made.amounts)], share).prices
        plan: IntArray = one.argmin(theta)
        for factor in RAISED:
            plan = one.argmin(theta + factor * found @ made.amounts)
            if (made.amounts @ plan <= share + 1e-9).all():
                break
        prices.append(float(found[0]))
        cost += float(plan @ made.means)
        used += made.amounts @ plan
        units = dict(zip(names, plan.tolist(), strict=True))
        learner.learn(units, bills(rng, units, made.means), actions=one)
    return lived(made, cost, used, np.array(prices), False, 0.0)


def months(trials: int | None, run: Runner) -> list[Section]:
    """Measure costs, broken promises and prices of whole months."""
    number = trials or MONTHS
    cases = [(k, known, method) for k in (1, 2, 3) for known in (True, False) for method in METHODS]
    pieces = [(seed, *case) for case in cases for seed in range(number)]
    found = run({piece: (live, piece) for piece in pieces})
    rows, targets = list[dict[str, Any]](), list[Target]()
    for promises, known, method in cases:
        of_case = [found[seed, promises, known, method] for seed in range(number)]
        all_ = [one for one in of_case if one is not None]
        above, over, promised, rough, held = (np.array(one) for one in zip(*all_, strict=True))
        means = "known" if known else "learned"
        broken = over > 1e-7
        rows.append(
            {
                "constraints": promises,
                "means": means,
                "method": method,
                "months": len(all_),
                "above LP %": float(above.mean()),
                "se": float(above.std() / len(all_) ** 0.5),
                "broken %": 100 * float(broken.mean()),
                "over at most %": float(max(over.max(), 0.0)),
                "promised": int(promised.sum()),
                "of these broken": int(broken[promised.astype(bool)].sum()),
                "rough": float(rough.mean()),
                "held %": 100 * float(held.mean()),
            }
        )
        if method == "quota":
            continue
        name = f"{promises} promises, {means}, {method}"
        if promises < 3:
            limit = ABOVE[method, known]
            targets.append(Target(f"{name}: above the program", float(above.mean()), limit, "%"))
        kept = broken[promised.astype(bool)]
        if method == "list":
            targets.append(Target(f"{name}: promised and broken", float(kept.sum()), 0))
        else:
            share = 100 * float(broken.mean())
            targets.append(Target(f"{name}: broken", share, BROKEN, "%"))
        targets.append(Target(f"{name}: changes of the price", float(rough.mean()), ROUGH))
    shows = f"{number} months of {DAYS} days with 9 lanes; above the linear program of all days."
    return [Section("Months", shows, rows, targets)]


class Clash(NamedTuple):
    """A month of promises that exclude each other: what was said on day 1, and what came."""

    first: float  # by how much the first promise was broken, %
    said: float  # what the second one would miss, by the report of day 1, % of its limit
    missed: float  # what it missed
    named: bool  # whether day 1 named the second one, and not the first


def clash(seed: int, changing: bool) -> Clash:
    """Play a month: two promises of one carrier, of which only one can be kept."""
    rng = np.random.default_rng([SEED, seed, 2])
    sets = [random_day(rng) for _ in range(DAYS)] if changing else [random_day(rng)] * DAYS
    past = [random_day(rng) for _ in range(PAST)] if changing else sets[:1] * PAST
    names, means = sets[0].names, rng.uniform(40, 160, 9)
    carrier = np.zeros(9)
    carrier[rng.choice(9, 2, replace=False)] = 1
    most = sum(float(one.argmin(-carrier) @ carrier) for one in sets)
    least = sum(float(one.argmin(carrier) @ carrier) for one in sets)
    low, high = (round(least + share * (most - least)) for share in (0.35, 0.65))
    of = dict(zip(names, carrier.tolist(), strict=True))
    pair: list[Promise] = [AtMost(low, of, plays=DAYS, name="few")]
    pair.append(AtLeast(high, of, plays=DAYS, name="many"))
    if rng.random() < 0.5:
        pair.reverse()
    learner = Learner(sets[0], seed=seed, loss_range=(0, EUROS), varying_set=True)
    for one in past:
        learner.cancel(learner.ask(actions=one))
    for promise in pair:
        learner.add_constraint(promise)
    said, named = 0.0, False
    for t, one in enumerate(sets):
        play = learner.ask(actions=one)
        if t == 0:
            first, second = (row.holds for row in promises_of(learner))
            named = first in ("sure", "likely") and second.startswith("no: at best ")
            words = second.removeprefix("no: at best ").split(",")[0]
            said = abs(float(words) - pair[1].limit) if named else np.nan
        learner.tell(play, bills(rng, play.plan, means))
    over = [
        max(row.constraint.sign * (row.used - row.constraint.limit), 0.0)
        for row in promises_of(learner)
    ]
    shares = 100 / pair[0].limit, 100 / pair[1].limit
    return Clash(shares[0] * over[0], shares[1] * said, shares[1] * over[1], named)


def clashes(trials: int | None, run: Runner) -> list[Section]:
    """Measure promises that exclude each other, where sets are not known."""
    rows, targets = list[dict[str, Any]](), list[Target]()
    pieces = [(seed, changing) for changing in (False, True) for seed in range(trials or CLASHES)]
    found = run({piece: (clash, piece) for piece in pieces})
    for changing in (False, True):
        of_case = [found[piece] for piece in pieces if piece[1] == changing]
        first, said, missed, named = (np.array(one) for one in zip(*of_case, strict=True))
        name, gap = "changing sets" if changing else "one set", np.abs(said - missed)
        broken = 100 * float((first > 1e-7).mean())
        rows.append(
            {
                "sets": name,
                "months": len(of_case),
                "first broken %": broken,
                "over at most %": float(first.max()),
                "second named on day 1 %": 100 * float(named.mean()),
                "said %": float(np.nanmean(said)),
                "missed %": float(missed.mean()),
                "difference at most %": float(np.nanmax(gap)),
            }
        )
        targets.append(Target(f"{name}: first broken", broken, 1.0, "%"))
        share = 100 * float(named.mean())
        targets.append(Target(f"{name}: second named on day 1", share, 99.0, "%", at_least=True))
        targets.append(
            Target(f"{name}: said and missed differ by", float(np.nanmean(gap)), 1.0, "%")
        )
    shows = (
        f"{trials or CLASHES} months of {DAYS} days; at most so much of two lanes, at least more."
    )
    return [Section("Clashes", shows, rows, targets)]


def speed(trials: int | None, run: Runner) -> list[Section]:
    """Measure a plan with three promises and 30 known sets."""
    rows, targets = list[dict[str, Any]](), list[Target]()
    for size, units, limit in ((10, 5, 0.5), (32, 5, 5.0)):
        rng = np.random.default_rng(SEED)
        names = [[f"{side}{k}" for k in range(size)] for side in "ab"]
        share, sets = [1 / size] * size, list[Transport]()
        for _ in range(DAYS):
            supply, demand = (1 + rng.multinomial(size * (units - 1), share) for _ in "ab")
            sets.append(Transport(supply, demand, names=(names[0], names[1])))
        d, made = sets[0].d, list[Promise]()
        for k in range(3):
            amounts = rng.uniform(1, 9, d)
            low = sum(float(one.argmin(amounts) @ amounts) for one in sets)
            by_arm = dict(zip(sets[0].names, amounts.tolist(), strict=True))
            made.append(AtMost(2.2 * low, by_arm, plays=DAYS, name=f"promise {k}"))
        settings: dict[str, Any] = {
            "loss_range": (0, EUROS),
            "varying_set": True,
            "constraints": made,
        }
        learner, means = Learner(sets[0], seed=0, **settings), rng.uniform(40, 160, d)
        taken = list[float]()
        for t in range(trials or 5):
            started = time.process_time()
            play = learner.ask(actions=sets[t], ahead=sets[t + 1 :])
            taken.append(time.process_time() - started)
            learner.tell(play, bills(rng, play.plan, means))
        name = f"{d} lanes, 3 promises, {DAYS} days"
        seconds = float(np.median(taken[1:]))
        numbers = {"first s": taken[0], "s": seconds, "s at most": max(taken[1:])}
        rows.append({"set": name, **numbers})
        targets.append(Target(f"{name}: a plan", seconds, limit, "s"))
    return [Section("Speed", "Processor time of ask.", rows, targets)]


TOPICS: dict[str, Callable[[int | None, Runner], list[Section]]] = {
    "months": months,
    "clashes": clashes,
    "speed": speed,
}

if __name__ == "__main__":
    warnings.simplefilter("error")
    command("benchmarks.promises", __doc__, TOPICS)
