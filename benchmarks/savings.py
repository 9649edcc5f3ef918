"""Savings: coverage of their intervals, common trends, other policies and speed, against limits.

Command line: ``python -m benchmarks.savings --only totals --trials 60 --jobs 2``. Trials are
studies of every world. Without ``--trials`` there are as many as the limits were stated for, which
takes an hour on one core.
"""

import os
import time
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

if __name__ == "__main__":
    from benchmarks import ONE_THREAD

    os.environ.update(ONE_THREAD)  # before the import of numpy

import numpy as np

from benchmarks.change import DEMO_SET
from benchmarks.harness import Runner, Section, Target, command
from multiplay import (
    ActionSet,
    BootstrapCTS,
    Budget,
    Changes,
    Features,
    Feedback,
    GenCTS,
    GenLBINFV,
    InProportion,
    Learner,
    Number,
    Policy,
    PooledCTS,
    Streams,
    Transport,
)
from multiplay._support.words import Words
from multiplay.policies.base import drop_warm_start
from multiplay.savings import Bills, estimate, simulated
from multiplay.savings.days import DAY, PlayedDay
from multiplay.savings.estimates import History
from multiplay.service.studies import demonstration as demo
from multiplay.types import FloatArray, IntArray

Rng = np.random.Generator
DAYS, LANES, MOST, HIGHEST = 60, 9, 250.0, 1.4  # most: the range of a bill
LOW = 0.6  # bills are a mean times LOW to HIGHEST
NAMES = [f"{depot}->{town}" for depot in "ABC" for town in ("north", "south", "coast")]
PATTERN = np.array([20.0, 10.0, 5.0, 0.0, -5.0, -15.0, -15.0])  # of a week
POLICIES: dict[str, Policy] = {
    "GenCTS": GenCTS(),
    "GenLBINFV": GenLBINFV(),
    "BootstrapCTS": BootstrapCTS(),
    "PooledCTS": PooledCTS(memory=Changes()),  # of a learner without a policy
}
STUDIES, BLOCK, SEED = 400, 20, 4207
Z = 1.96


class Case(NamedTuple):
    """A policy in a world, which is stationary unless ``world`` is the name of another."""

    policy: str
    world: str
    fixed: bool = False
    history: int = 0
    days: int = DAYS

    @property
    def text(self) -> str:
        """The world in words."""
        more = ", fixed set" if self.fixed else ", history" if self.history else ""
        return self.world + more


THOMPSON = ("stationary", "drift", "toll", "weekly", "weeklylane", "days", "laneday", "disasters")
CASES = [
    *(Case("GenCTS", world) for world in THOMPSON),
    Case("GenCTS", "stationary", fixed=True),
    Case("GenCTS", "stationary", history=20),
    *(Case("GenLBINFV", world) for world in ("stationary", "drift", "weekly")),
    Case("GenLBINFV", "stationary", history=20),
]
TREND_DAYS = 45
TRENDS = {  # the change of all prices until the last day, as a share
    "control": 0.0,
    "falling, 10 %": -0.1,
    "falling, 20 %": -0.2,
    "rising, 10 %": 0.1,
    "rising, 20 %": 0.2,
}
TREND_CASES = [
    Case(policy, world, days=TREND_DAYS)
    for policy in ("GenCTS", "BootstrapCTS", "PooledCTS")
    for world in (*TRENDS, "toll")
]


@cache
def set_of(t: int) -> ActionSet:
    """Return the set of day t: a demand that varies, and supplies 8:9:10 of it."""
    demand = np.random.default_rng([2026, t]).integers([4, 5, 3], [9, 10, 8]) if t else [6, 7, 5]
    share = np.array([8, 9, 10]) * np.sum(demand) / 27
    supply = np.floor(share).astype(int)
    supply[np.argsort(supply - share, kind="stable")[: np.sum(demand) - supply.sum()]] += 1
    return Transport(supply, demand, names=NAMES)


@cache
def split_of(t: int) -> IntArray:
    """Return the plan of day t in proportion."""
    return InProportion().plan(set_of(t))


def truth(case: Case, rng: Rng, studies: int) -> FloatArray:
    """Draw the mean cost of a unit by study, day and lane, before a bill is cut to its range."""
    mean = np.repeat(rng.uniform(40, 160, (studies, 1, LANES)), case.days, axis=1)
    week = np.arange(case.days) % 7
    if case.world in TRENDS:
        mean *= np.linspace(1, 1 + TRENDS[case.world], case.days)[:, None]
    if case.world == "drift":
        mean += rng.normal(0, 3, mean.shape).cumsum(axis=1)
    if case.world == "toll":
        mean[np.arange(studies), 30:, rng.integers(0, LANES, studies)] += 60
    if case.world in ("weekly", "weeklylane"):
        mean += PATTERN[week][:, None]
    if case.world == "weeklylane":
        mean += rng.normal(0, 10, (studies, 7, LANES))[:, week]
    if case.world == "days":
        mean += rng.normal(0, 15, (studies, case.days, 1))
    if case.world == "laneday":
        mean += rng.normal(0, 10, mean.shape)
    return np.maximum(mean, 5.0)


def expected(case: Case, mean: FloatArray) -> FloatArray:
    """Return the expected bill of a unit, cut to its range."""
    over = HIGHEST * mean > MOST
    cut = (MOST**2 - (LOW * mean) ** 2) / 2 + MOST * (HIGHEST * mean - MOST)
    cost = np.where(over, cut / ((HIGHEST - LOW) * mean), mean)
    return 0.97 * cost + 0.03 * MOST if case.world == "disasters" else cost


def bills(case: Case, mean: FloatArray, most: int, rng: Rng) -> FloatArray:
    """Draw the bills of a day: (studies, lanes, units)."""
    drawn = np.minimum(mean[..., None] * rng.uniform(LOW, HIGHEST, (*mean.shape, most)), MOST)
    if case.world == "disasters":
        drawn[rng.random(drawn.shape) < 0.03] = MOST
    return drawn


class Studies(NamedTuple):
    """Studies that were played: their days, how many came before, and the true costs."""

    days: list[list[PlayedDay]]
    history: int
    means: FloatArray  # (studies, days, lanes)
    drawn: FloatArray  # the same, before bills are cut to their range
    lists: FloatArray  # the prices of the price list, (studies, lanes)
    splits: list[IntArray]  # in proportion, of each day


def played(
    case: Case,
    first: int,
    studies: int,
    policy: Policy | None = None,
    drawn: FloatArray | None = None,
) -> Studies:
    """Play some studies at once: trials of the policy are studies.

    The policy of the case plays unless another is given, with means of its own or those ``drawn``.
    """
    number = [*CASES, *TREND_CASES].index(case)
    rng = np.random.default_rng([SEED, number, first])
    if drawn is None:
        drawn = truth(case, rng, studies)
    lists = drawn.mean(axis=1) * np.exp(rng.normal(0, 0.25, (studies, LANES)))
    streams = Streams.spawn(SEED, number, range(first, first + studies))
    policy = policy or POLICIES[case.policy]
    numbers = [0 if case.fixed else t + 1 for t in range(case.days)]
    splits, before = [split_of(t) for t in numbers], set_of(numbers[0])
    state = policy.start(before, None, studies)
    days: list[list[PlayedDay]] = [[] for _ in range(studies)]
    for t in range(case.days):
        actions = set_of(numbers[t])
        if actions is not before:
            drop_warm_start(policy, state, before)
        before = actions
        most = int(actions.n.max())
        cost = bills(case, drawn[:, t], most, rng)
        x: FloatArray | None = None
        if t < case.history:
            action = np.tile(splits[t], (studies, 1))
        else:
            play = policy.choose(actions, state, streams)
            action, x = play.action, play.memo.get("x")
        cost = np.where(np.arange(most) < action[..., None], cost, 0.0)
        units = np.ascontiguousarray(cost).reshape(studies, -1) / MOST
        starts = np.arange(LANES + 1) * most
        feedback = Feedback(action, cost.sum(axis=2) / MOST, units, starts)
        if t < case.history:
            policy.absorb(actions, state, feedback, streams)
        else:
            policy.update(actions, state, play, feedback, streams)
        for k in range(studies):
            sums = cost[k].sum(axis=1), (cost[k] ** 2).sum(axis=1)
            mean = None if x is None else x[k].copy()
            one = PlayedDay(DAY * t, "", actions, action[k], action[k], *sums, mean)
            days[k].append(one)
    return Studies(days, case.history, expected(case, drawn), drawn, lists, splits)


class Interval(NamedTuple):
    """An estimate with the ends of its interval."""

    total: float
    low: float
    high: float


class Found(NamedTuple):
    """One estimate beside its true value, every week, and other methods."""

    true: float
    model: Interval
    weeks: list[tuple[float, Interval]]
    trusted: bool
    thin: float
    agrees: bool | None = None
    others: tuple[tuple[str, Interval], ...] = ()


def measured(case: Case, first: int, studies: int) -> list[dict[str, Found]]:
    """Return the estimates of some studies, against each rule."""
    return list(_measured(played(case, first, studies)))


def _measured(found: Studies) -> Iterator[dict[str, Found]]:
    for k, days in enumerate(found.days):
        told, mine = days[: found.history], days[found.history :]
        means = found.means[k, found.history :]
        history = History(mine, [day.bills for day in told], (0.0, MOST), Words())
        proportion = found.splits[found.history :]
        listed = [day.actions.best(found.lists[k]) for day in mine]
        rules = [("proportion", proportion, 1.0)]
        if len(found.splits) == DAYS:
            best = history.best_plans()
            rules += [("price list", listed, 1.0), ("cost of learning", best, -1.0)]
        yield {name: _compared(history, plans, means, sign) for name, plans, sign in rules}


def _compared(history: History, plans: Sequence[IntArray], means: FloatArray, sign: float) -> Found:
    compared = history.compare(plans)
    saved = history.saved(compared, 0.95, "")
    more = [plan - day.action for plan, day in zip(plans, history.days, strict=True)]
    true = (np.array(more) * means).sum(axis=1)
    by_week = np.bincount(history.calendar.week, true)
    weeks = [
        (sign * float(truth), _interval(row.saved, row.low, row.high, sign))
        for truth, row in zip(by_week, saved.by_week, strict=True)
    ]
    model = _interval(saved.total, saved.low, saved.high, sign)
    found = Found(sign * float(true.sum()), model, weeks, not saved.trust, saved.thin)
    logged = history.logged(compared)
    if logged is None or sign < 0:
        return found
    others = {}
    for method in ("ips", "dr"):
        one = history.with_numbers(saved, compared, history.weighted(compared, logged, method))
        others[method] = Interval(one.total, one.low, one.high)
    return found._replace(agrees=history.agrees(compared, logged), others=tuple(others.items()))


def _interval(total: float, low: float, high: float, sign: float) -> Interval:
    low, high = sorted((sign * low, sign * high))
    return Interval(sign * total, low, high)


def totals(trials: int | None, run: Runner) -> list[Section]:
    """Measure coverage and bias of totals and weeks."""
    studies, targets = trials or STUDIES, []
    rows = _rows(CASES, studies, run)
    for (case, rule), row in rows.items():
        targets += list(_limits(case, rule, row))
    shows = (
        f"{studies} studies of each world, seed {SEED}. Half: median half width. Standard error of "
        f"a coverage of 95 %: {100 * np.sqrt(0.95 * 0.05 / studies):.1f} %."
    )
    return [Section("Savings", shows, [*rows.values()], targets)]


def trends(trials: int | None, run: Runner) -> list[Section]:
    """Measure coverage where all prices fall or rise, and how often a warning is given."""
    studies, targets = trials or STUDIES, []
    rows = _rows(TREND_CASES, studies, run)
    for (case, _), row in rows.items():
        what, cover, trusted = f"{case.policy}, {case.text}", row["cover, %"], row["trusted, %"]
        if case.world == "toll":
            targets.append(Target(f"{what}: trusted, %", trusted, 50.0))
            continue
        targets.append(Target(f"{what}: cover, %", cover, 92.0, at_least=True))
        targets.append(Target(f"{what}: cover, %", cover, 98.0))
        targets.append(Target(f"{what}: trusted, %", trusted, 90.0, at_least=True))
    shows = f"{studies} studies of each world, seed {SEED}; {TREND_DAYS} days. Half: as above."
    return [Section("Savings under common trends", shows, [*rows.values()], targets)]


# ------------------------------------------------------------ features, and a year

FUELS = {"the price of fuel stays": 0.0, "it rises by 30 %": 0.3}
KM, PER_KM, STARTS, OWN = (60.0, 300.0), 0.35, 25.0, 8.0  # euros of a bill; own: of each lane


def fuelled(world: str, lives: Sequence[int]) -> list[Found]:
    """Return the estimates of learners with features, where bills follow distance times fuel."""
    return [_fuelled(world, life) for life in lives]


def _fuelled(world: str, life: int) -> Found:
    rng = np.random.default_rng([SEED, 77, life])
    km, own = rng.uniform(*KM, LANES), rng.normal(0, OWN, LANES)
    declared = Features(
        km=Number(centre=180, scale=70), fuel=Number(centre=1, scale=0.1), products=[("km", "fuel")]
    )
    by_arm = {"km": dict(zip(NAMES, km.tolist(), strict=True))}
    given: dict[str, Any] = {"features": declared, "arm_features": by_arm, "loss_range": (0, MOST)}
    learner, true = Learner(set_of(0), seed=life, **given), 0.0
    for t, fuel in enumerate(np.linspace(1, 1 + FUELS[world], TREND_DAYS).tolist()):
        mean = STARTS + PER_KM * km * fuel + own
        play = learner.ask(set_of(t + 1), features={"fuel": fuel})
        most = int(play.action.max())
        drawn = mean[:, None] * rng.uniform(LOW, HIGHEST, (LANES, most))
        told = {
            name: drawn[i, : play.action[i]].clip(0, MOST).tolist() for i, name in enumerate(NAMES)
        }
        learner.tell(play, told)
        true += float((split_of(t + 1) - play.action) @ mean)
    saved = learner.savings(InProportion())
    return Found(
        true, Interval(saved.total, saved.low, saved.high), [], not saved.trust, saved.thin
    )


YEARS = {"road works": demo.ROAD_WORKS[0], "no road works": demo.DAYS}
SHOWN = 10  # bills of a lane after its price rises, by which it is known


def years(world: str, first: int, studies: int) -> list[tuple[Found, int]]:
    """Return the estimates of years as that of the demonstration, with means of their own.

    With each there is the number of bills of the lane that becomes dear, since then.
    """
    actions, days, begins = DEMO_SET, demo.DAYS, YEARS[world]
    (_, lane, more), highest, d = demo.ROAD_WORKS, demo.HIGHEST, actions.d
    rng, policy = np.random.default_rng([SEED, 99, first]), POLICIES["PooledCTS"]
    means = np.tile(rng.uniform(80.0, 300.0, (studies, 1, d)), (1, days, 1))
    means[:, begins:, lane] += more
    streams = Streams.spawn(SEED, 99, range(first, first + studies))
    state, most = policy.start(actions, None, studies), int(actions.n.max())
    played: list[list[PlayedDay]] = [[] for _ in range(studies)]
    for t in range(days):
        play = policy.choose(actions, state, streams)
        drawn = rng.normal(means[:, t, :, None], demo.SPREAD, (studies, d, most))
        cost = np.where(np.arange(most) < play.action[..., None], drawn.clip(0, highest), 0.0)
        units, starts = cost.reshape(studies, -1) / highest, np.arange(d + 1) * most
        feedback = Feedback(play.action, cost.sum(axis=2) / highest, units, starts)
        policy.update(actions, state, play, feedback, streams)
        for k, action in enumerate(play.action):
            sums = cost[k].sum(axis=1), (cost[k] ** 2).sum(axis=1)
            played[k].append(PlayedDay(DAY * t, "", actions, action, action, *sums))
    plans, answers = [InProportion().plan(actions)] * days, []
    for k, one in enumerate(played):
        history = History(one, [], (0.0, highest), Words())
        bills = sum(int(day.action[lane]) for day in one[begins:])
        answers.append((_compared(history, plans, means[k], 1.0), bills))
    return answers


def features_and_years(trials: int | None, run: Runner) -> list[Section]:
    """Measure savings of learners with features, and of years as that of the demonstration."""
    lives = trials or 100
    jobs: dict[Any, Any] = {
        (world, first): (fuelled, (world, range(first, min(first + BLOCK, lives))))
        for world in FUELS
        for first in range(0, lives, BLOCK)
    }
    of_years = {
        (world, first): (years, (world, first, min(BLOCK, lives - first)))
        for world in YEARS
        for first in range(0, lives, BLOCK)
    }
    done, rows, targets = run(jobs | of_years), [], []
    groups = {
        f"km x fuel, {world}": [one for key in jobs if key[0] == world for one in done[key]]
        for world in FUELS
    }
    for world in YEARS:
        every = [one for key in of_years if key[0] == world for one in done[key]]
        seen = [found for found, bills in every if world != "road works" or bills >= SHOWN]
        groups[f"a year, {world}" + (", which bills show" if world == "road works" else "")] = seen
        if len(seen) < len(every):
            left = [found for found, bills in every if bills < SHOWN]
            groups[f"a year, {world}, with fewer than {SHOWN} bills of them"] = left
    for world, found in groups.items():
        row: dict[str, Any] = {"world": world, "lives": len(found)}
        row |= summary(found, weeks=False)
        rows.append(row)
        if "fewer" in world:
            continue
        targets.append(Target(f"{world}: cover, %", row["cover, %"], 92.0, at_least=True))
        if "road works, which" not in world:
            targets.append(Target(f"{world}: trusted, %", row["trusted, %"], 90.0, at_least=True))
    shows = f"{lives} lives of each world, seed {SEED}; against a split in proportion."
    return [Section("Savings with features, and of a year", shows, rows, targets)]


def _rows(
    cases: Sequence[Case], studies: int, run: Runner
) -> dict[tuple[Case, str], dict[str, Any]]:
    """Return a row of the table for each case and rule."""
    jobs = {
        (case, first): (measured, (case, first, min(BLOCK, studies - first)))
        for case in cases
        for first in range(0, studies, BLOCK)
    }
    done, rows = run(jobs), {}
    for case in cases:
        every = [one for (of, _), block in done.items() if of == case for one in block]
        for rule in every[0]:
            row = summary([one[rule] for one in every])
            rows[case, rule] = {"policy": case.policy, "world": case.text, "against": rule} | row
    return rows


def summary(found: Sequence[Found], weeks: bool = True) -> dict[str, Any]:
    """Return a row of the table."""
    pairs = [(one.true, one.model) for one in found]
    error = np.array([model.total - true for true, model in pairs])
    row = {
        "true": float(np.mean([one.true for one in found])),
        "cover, %": covered(pairs),
        "bias": float(error.mean()),
        "se of bias": float(error.std() / np.sqrt(len(error))),
        "rmse": float(np.sqrt((error**2).mean())),
        "half": float(np.median([(one.model.high - one.model.low) / 2 for one in found])),
        **({"weeks, %": covered([week for one in found for week in one.weeks])} if weeks else {}),
        "thin": float(np.mean([one.thin for one in found])),
        "trusted, %": 100 * float(np.mean([one.trusted for one in found])),
    }
    for place, (method, _) in enumerate(found[0].others):
        pairs = [(one.true, one.others[place][1]) for one in found]
        error = np.array([other.total - true for true, other in pairs])
        row[f"{method} cover, %"] = covered(pairs)
        row[f"{method} rmse"] = float(np.sqrt((error**2).mean()))
        row["agrees, %"] = 100 * float(np.mean([bool(one.agrees) for one in found]))
    return row


def covered(pairs: Sequence[tuple[float, Interval]]) -> float:
    """Return the share of true values within their intervals, in percent."""
    return 100 * float(np.mean([one.low <= true <= one.high for true, one in pairs]))


def _limits(case: Case, rule: str, row: dict[str, Any]) -> Iterator[Target]:
    what = f"{case.policy}, {case.text}, {rule}"
    if case.world == "toll":
        return
    for column in ("cover, %", "weeks, %"):
        yield Target(f"{what}: {column}", row[column], 92.0, at_least=True)
        yield Target(f"{what}: {column}", row[column], 97.0)
    yield Target(f"{what}: |bias|", abs(row["bias"]), row["half"] / Z / 2)


# ---------------------------------------------------------------- another policy

ASKED = {"GenCTS": "GenLBINFV", "GenLBINFV": "GenCTS"}
ASKED_STUDIES, RUNS = 80, 40


def asked(case: Case, first: int, studies: int) -> list[tuple[float, Interval]]:
    """Return true and estimated differences to another policy, on average over its plays."""
    policy, found = POLICIES[ASKED[case.policy]], []
    done = played(case, first, studies)
    for k, days in enumerate(done.days):
        drawn = np.repeat(done.drawn[k : k + 1], RUNS, axis=0)
        runs = played(case, 10_000 + RUNS * (first + k), RUNS, policy, drawn).days
        costs = [
            sum(day.action @ mean for day, mean in zip(run, done.means[k], strict=True))
            for run in [days, *runs]
        ]
        saved = simulated(days, [], policy, (0.0, MOST))
        found.append(
            (float(np.mean(costs[1:]) - costs[0]), Interval(saved.total, saved.low, saved.high))
        )
    return found


def policies(trials: int | None, run: Runner) -> list[Section]:
    """Measure the coverage of differences to another policy, by simulated lives."""
    studies, step = trials or ASKED_STUDIES, 4
    cases = [Case("GenCTS", "stationary"), Case("GenLBINFV", "stationary")]
    jobs = {
        (case, first): (asked, (case, first, min(step, studies - first)))
        for case in cases
        for first in range(0, studies, step)
    }
    done, rows, targets = run(jobs), [], []
    for case in cases:
        pairs = [one for (of, _), block in done.items() if of == case for one in block]
        error = np.array([one.total - true for true, one in pairs])
        row: dict[str, Any] = {
            "played": case.policy,
            "asked about": ASKED[case.policy],
            "true": float(np.mean([true for true, _ in pairs])),
            "cover, %": covered(pairs),
            "bias": float(error.mean()),
            "half": float(np.median([(one.high - one.low) / 2 for _, one in pairs])),
        }
        rows.append(row)
        targets.append(
            Target(f"{case.policy} played: cover, %", row["cover, %"], 90.0, at_least=True)
        )
    shows = f"{studies} studies, 200 lives each; the true cost is the mean of {RUNS} runs."
    return [Section("Another policy", shows, rows, targets)]


# ---------------------------------------------------------------- speed


def speed(trials: int | None, run: Runner) -> list[Section]:
    """Measure the time of an estimate for large studies."""
    rows, targets = [], []
    for lanes, days, limit in ((9, 60, 0.5), (200, 365, 5.0), (10_000, 60, 60.0)):
        study = _large(lanes, days)
        started = time.process_time()
        estimate(*study, (0.0, MOST))
        seconds = time.process_time() - started
        rows.append({"lanes": lanes, "days": days, "seconds": seconds})
        targets.append(Target(f"{lanes} lanes, {days} days", seconds, limit, "s"))
    return [Section("Speed", "Processor time of one estimate.", rows, targets)]


def _large(lanes: int, days: int) -> tuple[list[PlayedDay], list[Bills], list[IntArray]]:
    """Return a study in which both plans use each lane about every second day."""
    rng, units = np.random.default_rng(SEED), lanes // 2 + 1
    means, actions = rng.uniform(40, 160, lanes), Budget(units, [3] * lanes)
    found, plans = [], []
    for t in range(days):
        action, plan = (
            np.minimum(np.bincount(rng.integers(0, lanes, units), minlength=lanes), 3)
            for _ in range(2)
        )
        drawn = means[:, None] * rng.uniform(LOW, HIGHEST, (lanes, 3))
        drawn[np.arange(3) >= action[:, None]] = 0.0
        sums = drawn.sum(axis=1), (drawn**2).sum(axis=1)
        found.append(PlayedDay(DAY * t, "", actions, action, action, *sums))
        plans.append(plan)
    return found, [], plans


TOPICS = {
    "totals": totals,
    "trends": trends,
    "features": features_and_years,
    "policies": policies,
    "speed": speed,
}

if __name__ == "__main__":
    command("benchmarks.savings", __doc__, TOPICS)
