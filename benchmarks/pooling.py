"""Arms that learn from each other: other worlds, late reports, changes, long runs, and cost.

Command line: ``python -m benchmarks.pooling --only late changes --jobs 2``. Without ``--trials``
each topic has the number of trials that its limits were stated for. The usual worlds are a topic of
``benchmarks.bills``: ``--only pooled``.
"""

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

if __name__ == "__main__":
    from benchmarks import ONE_THREAD

    os.environ.update(ONE_THREAD)  # before the import of numpy

import numpy as np

from benchmarks import change
from benchmarks.bills import BIG_SET, REGRET, SURPRISES, Bills, Rng, Surprise
from benchmarks.harness import Runner, Section, Target, command, standard_error
from multiplay import (
    ActionSet,
    BootstrapCTS,
    Budget,
    Changes,
    FollowTheLeader,
    Policy,
    PooledCTS,
    Streams,
    Study,
    TimeVarying,
    Transport,
    simulate,
)
from multiplay.storage import MemoryStore
from multiplay.types import FloatArray

POOLED, ALONE = "PooledCTS", "BootstrapCTS"
POLICIES: dict[str, Policy] = {
    POOLED: PooledCTS(),
    ALONE: BootstrapCTS(),
    "FollowTheLeader": FollowTheLeader(),
}
MEANS_SEED, SEED = 210, 213  # not those on which the constants of the policy were chosen
Finals = Mapping[str, FloatArray]


def shown(values: FloatArray) -> str:
    """Return the mean with its standard error, and the 95 % quantile."""
    error, q95 = standard_error(values.tolist()), np.quantile(values, 0.95)
    return f"{np.mean(values):.1f} ± {error:.1f} [{q95:.0f}]"


def above(values: FloatArray, expected: tuple[float, float]) -> float:
    """Return how far a mean is above that of a prototype, in standard errors of both."""
    level, by = expected
    return float((np.mean(values) - level) / np.hypot(standard_error(values.tolist()), by))


def row_of(world: str, finals: Finals, expected: tuple[float, float]) -> dict[str, Any]:
    """Return a row of a table."""
    row = {"world": world} | {name: shown(values) for name, values in finals.items()}
    return row | {"prototype": f"{expected[0]} ± {expected[1]}"}


# ------------------------------------------------------------ other worlds

LANES = Transport([14] * 10, [5] * 20, slack=True)


class Kind(NamedTuple):
    """A world: its set, means of all trials, law and width, rounds, and the prototype."""

    actions: ActionSet
    means: Callable[[Rng, tuple[int, int]], FloatArray]
    law: str
    width: float
    rounds: int
    expected: tuple[float, float]


def some_cheap(share: float, cheap: tuple[float, float], others: tuple[float, float]) -> Any:
    """Return means of which a share, drawn anew in each trial, is cheap."""

    def means(rng: Rng, shape: tuple[int, int]) -> FloatArray:
        rank = rng.random(shape).argsort(axis=1)
        is_cheap = rank < round(share * shape[1])
        return np.where(is_cheap, rng.uniform(*cheap, shape), rng.uniform(*others, shape))

    return means


def uniform(low: float, high: float) -> Any:
    """Return means between two numbers."""
    return lambda rng, shape: rng.uniform(low, high, shape)


OF_TWO, OF_FOUR = Budget(1, [1] * 2), Budget(1, [1] * 4)
BEST_OF_60 = Budget(5, [1] * 60, sense="max")
FIFTIETH = some_cheap(0.02, (0.03, 0.08), (0.35, 0.5))
WORLDS: dict[str, Kind] = {
    "200 lanes, a tenth cheap": Kind(
        LANES, some_cheap(0.1, (0.1, 0.2), (0.6, 0.8)), "around", 0.05, 60, (181.6, 3.7)
    ),
    "200 lanes, a fiftieth cheap": Kind(LANES, FIFTIETH, "around", 0.03, 60, (94.4, 3.1)),
    "200 lanes, two kinds": Kind(
        LANES, some_cheap(0.5, (0.18, 0.22), (0.58, 0.62)), "around", 0.05, 60, (187.8, 1.2)
    ),
    "20 x 10 lanes, bills of 20 %": Kind(
        BIG_SET, uniform(0.04, 0.8), "share", 0.2, 60, (486.5, 6.0)
    ),
    "1 of 2, coins": Kind(OF_TWO, uniform(0, 1), "coin", 0.0, 300, (2.9, 0.3)),
    "1 of 4, coins": Kind(OF_FOUR, uniform(0.2, 0.6), "coin", 0.0, 1000, (16.3, 2.8)),
    "1 of 4, little noise": Kind(OF_FOUR, uniform(0.2, 0.6), "around", 0.1, 300, (1.6, 0.05)),
    "rewards, 5 of 60, coins": Kind(BEST_OF_60, uniform(0.2, 0.6), "coin", 0.0, 300, (96.1, 3.6)),
    "rewards, 5 of 60, little noise": Kind(
        BEST_OF_60, uniform(0.2, 0.6), "around", 0.1, 300, (32.2, 0.3)
    ),
    "skewed, 144 lanes": Kind(
        Transport([3] * 12, [3] * 12),
        lambda rng, shape: rng.beta(1.5, 6, shape),
        "skew",
        3.0,
        100,
        (91.9, 1.8),
    ),
}


def of_kind(name: str, trials: int) -> Finals:
    """Return the final regret of every trial and policy."""
    kind = WORLDS[name]
    means = kind.means(np.random.default_rng((MEANS_SEED, 11)), (trials, kind.actions.d))
    bills = Bills(means, kind.law, kind.width)
    result = simulate(kind.actions, bills, POLICIES, kind.rounds, trials, seed=SEED)
    return {policy: result.final(policy) for policy in POLICIES}


def of_surprise(name: str, trials: int) -> Finals:
    """Return final regrets where a good arm rarely costs nothing, and the other is constant."""
    chance, gap, units, rounds, _ = SURPRISES[name]
    good = 0.9 * (1 - chance)
    environment = Surprise(np.tile([good, good + gap], (trials, 1)), "mirror")
    actions = Budget(units, [units, units])
    result = simulate(actions, environment, POLICIES, rounds, trials, seed=SEED)
    return {policy: result.final(policy) for policy in POLICIES}


SURPRISED = {"p = .1, 1 unit": (5.9, 0.2), "p = .03, 8 units": (6.2, 0.2)}  # of a prototype


def worlds(trials: int | None, run: Runner) -> list[Section]:
    """Measure mixtures of arms, few arms, rewards, skewed losses and rare cheap surprises."""
    number = trials or 60
    jobs: dict[str, Any] = {name: (of_kind, (name, number)) for name in WORLDS}
    jobs |= {name: (of_surprise, (name, number)) for name in SURPRISED}
    found = run(jobs)
    rows, targets = [], []
    for name, finals in found.items():
        expected = WORLDS[name].expected if name in WORLDS else SURPRISED[name]
        rows.append(row_of(name, finals, expected))
        what = f"{name}: above the prototype, standard errors"
        targets.append(Target(what, above(finals[POOLED], expected), 4))
    return [Section("Other worlds", "Final regret ± standard error [95 %].", rows, targets)]


# ------------------------------------------------------------ late reports

WEEK = [6, 5, 4, 3, 2, 1, 0]  # all reports of 7 rounds are told after the seventh
LATE: dict[tuple[str, str], tuple[float, float]] = {  # world and reports; of a prototype
    ("8x8", "10 rounds late"): (128.9, 2.5),
    ("8x8", "weekly"): (95.4, 2.2),
    ("20x20", "10 rounds late"): (434.7, 5.7),
    ("20x20", "weekly"): (342.0, 5.6),
    ("paper", "10 rounds late"): (7.8, 0.6),
}


def of_late(world: str, reports: str, trials: int) -> Finals:
    """Return the final regret where reports are late, or told once a week."""
    case, delay = REGRET[world], WEEK if reports == "weekly" else 10
    bills = case.of(trials, MEANS_SEED)
    result = simulate(case.actions, bills, POLICIES, case.rounds, trials, SEED, delay=delay)
    return {policy: result.final(policy) for policy in POLICIES}


def late(trials: int | None, run: Runner) -> list[Section]:
    """Measure reports that are late, and weeks that are told at once."""
    found = run({key: (of_late, (*key, trials or 30)) for key in LATE})
    rows, targets = [], []
    for (world, reports), finals in found.items():
        expected, name = LATE[world, reports], f"{world}, {reports}"
        rows.append(row_of(name, finals, expected))
        what = f"{name}: above the prototype, standard errors"
        targets.append(Target(what, above(finals[POOLED], expected), 4))
    return [Section("Late reports", "Final regret ± standard error [95 %].", rows, targets)]


# ----------------------------------------------------------------- changes

FOLLOWING: dict[str, Policy] = {
    POOLED: PooledCTS(memory=Changes()),
    ALONE: BootstrapCTS(memory=Changes()),
}
CHANGED: dict[str, tuple[float, float]] = {  # of a prototype, with curiosity 0.05
    "8 % bills": (2.9, 0.3),
    "8 x 8": (61.7, 1.4),
    "rare disasters": (32.3, 13.8),
    "5 of 10": (38.4, 2.2),
    "one lane doubles, 8 %": (5.7, 0.8),
    "one lane doubles, coins": (42.2, 6.6),
    "8 x 8, 8 lanes double": (148.0, 3.1),
    "idle lane becomes cheap, 8 %": (82.1, 20.0),
    "idle lane becomes cheap, coins": (182.3, 51.8),
    "waves": (132.6, 11.4),
    "walks": (68.7, 6.2),
    "common jumps": (135.7, 21.2),
}


def of_change(world: str, trials: int) -> Finals:
    """Return the final regret against the best plan of each round."""
    cases = change.STATIONARY | change.OTHERS
    if world in cases:
        return change.final(cases[world], FOLLOWING, trials)
    drifting = change.drifting()[world], FOLLOWING, change.LONG, trials, change.SEED
    result = simulate(change.PLANS, *drifting, record=1, against="each round")
    return {policy: result.final(policy) for policy in FOLLOWING}


def changes(trials: int | None, run: Runner) -> list[Section]:
    """Measure worlds that change, and what following costs where nothing changes."""
    found = run({world: (of_change, (world, trials or 16)) for world in CHANGED})
    rows, targets = [], []
    for world, finals in found.items():
        rows.append(row_of(world, finals, CHANGED[world]))
        what = f"{world}: above the prototype, standard errors"
        targets.append(Target(what, above(finals[POOLED], CHANGED[world]), 4))
    shows = "Final regret ± standard error [95 %] against the best plan of each round."
    return [Section("Changes", shows, rows, targets)]


# --------------------------------------------------------------- long runs

ENDLESS = ("paperbern", "rare", "8x8")
ROUNDS = 10_000
LINEAR, LOGARITHMIC = 0.5, 0.35  # of the regret, in the second half of the rounds


def of_long(world: str, trials: int) -> FloatArray:
    """Return the regret at a tenth, half and all of the rounds, (trials, 3)."""
    case, parts = REGRET[world], [ROUNDS // 10, ROUNDS // 2, ROUNDS]
    actions = case.actions if len(case.sets) == 1 else TimeVarying(case.sets)
    bills, one = case.of(trials, MEANS_SEED), {POOLED: POLICIES[POOLED]}
    result = simulate(actions, bills, one, ROUNDS, trials, SEED, record=parts)
    regret: FloatArray = result.regret.sel(policy=POOLED).to_numpy()
    return regret


def long(trials: int | None, run: Runner) -> list[Section]:
    """Measure whether regret grows as log t: a linear one would grow by half in the second half."""
    found = run({world: (of_long, (world, trials or 20)) for world in ENDLESS})
    rows, targets = [], []
    for world, regret in found.items():
        at = [shown(values) for values in regret.T]
        _, half, all_of_it = regret.mean(axis=0)
        later = float(1 - half / all_of_it)
        row = dict(zip(("a tenth", "half", "all"), at, strict=True))
        rows.append({"world": world} | row | {"second half": later})
        targets.append(Target(f"{world}: share of the second half", later, LOGARITHMIC))
    shows = f"Regret ± standard error [95 %] after parts of {ROUNDS:,} rounds."
    return [Section("Long runs", shows, rows, targets)]


# -------------------------------------------------------------------- cost

SETS: dict[int, tuple[ActionSet, float]] = {  # arms: the set, and the most microseconds of a draw
    6: (Transport([1, 4, 5], [4, 6]), 20),
    200: (LANES, 250),
    10_000: (Budget(200, [1] * 10_000), 10_000),
}
BATCH = 100  # trials


def draw_time(policy: Any, actions: ActionSet, calls: int) -> float:
    """Return the least microseconds of a draw for one trial, after thirty rounds."""
    state, rng = policy.start(actions, None, 1), Streams.spawn(0, 3, [0])
    world = Bills(np.full((1, actions.d), 0.4), "around", 0.1).open(actions, 30, [0], 0)
    for _ in range(30):
        play = policy.choose(actions, state, rng)
        policy.update(actions, state, play, world.observe(play.action).feedback, rng)
    times = []
    for _ in range(calls):
        started = time.perf_counter()
        policy.index(actions, state, rng)
        times.append(time.perf_counter() - started)
    return 1e6 * min(times)


def batch_time(policy: Policy, rounds: int) -> float:
    """Return the least microseconds of choosing and learning a round of 100 trials."""
    actions, case = SETS[6][0], REGRET["paper"]
    world = case.of(BATCH, 0).open(actions, rounds, range(BATCH), 0)
    state, rng = policy.start(actions, None, BATCH), Streams.spawn(0, 3, range(BATCH))
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        play = policy.choose(actions, state, rng)
        chosen = time.perf_counter() - started
        feedback = world.observe(play.action).feedback
        started = time.perf_counter()
        policy.update(actions, state, play, feedback, rng)
        times.append(chosen + time.perf_counter() - started)
    return 1e6 * min(times)


def cost(trials: int | None, run: Runner) -> list[Section]:
    """Measure the time of a draw, and of a round of a batch."""
    rows, targets, both = [], [], (PooledCTS(), BootstrapCTS())
    for d, (actions, limit) in SETS.items():
        taken = [draw_time(policy, actions, trials or 200) for policy in both]
        rows.append({"what": f"a draw, {d} arms, µs", POOLED: taken[0], ALONE: taken[1]})
        targets.append(Target(f"a draw, {d} arms", taken[0], limit, "µs"))
    taken = [batch_time(policy, trials or 500) for policy in both]
    what = f"a round of {BATCH} trials"
    rows.append({"what": f"{what}, µs", POOLED: taken[0], ALONE: taken[1]})
    targets.append(Target(f"{what}, {POOLED} / {ALONE}", taken[0] / taken[1], 2))
    return [Section("Cost", "Least time of a call.", rows, targets)]


OLD_CITIES, OLD_DAYS, NEW_CITIES, NEW_DAYS = 10, 30, 40, 30
CITY = Transport([4] * 5, [4] * 5)


def city_life(study: Study, means: FloatArray, rng: Rng, days: int) -> FloatArray:
    """Ask and tell for some days; return the regret of each day."""
    regret = np.empty(days)
    least = float(CITY.argmin(means) @ means)
    for day in range(days):
        play = study.ask()
        regret[day] = play.action @ means - least
        told = {
            name: np.clip(rng.normal(means[k], NOISE, units), 0, None).tolist()
            for k, (name, units) in enumerate(zip(CITY.names, play.action.tolist(), strict=True))
            if units
        }
        study.tell(play, told)
    return regret


def of_cities(prices: str, number: int) -> Finals:
    """Return the regrets of new cities by day, alone and with arms of the old ones."""
    rng, store = np.random.default_rng([MEANS_SEED, len(prices)]), MemoryStore()
    draw = CITIES[prices]
    for k in range(OLD_CITIES):
        old = Study.create(f"old {k}", CITY, loss_range=(0, 1000), seed=k, store=store)
        city_life(old, draw(rng), rng, OLD_DAYS)
    found: dict[str, list[FloatArray]] = {"alone": [], "like": []}
    for k in range(number):
        means = draw(rng)
        for name, days in found.items():
            like = None if name == "alone" else "old *"
            given: dict[str, Any] = {"loss_range": (0, 1000), "seed": k, "store": store}
            study = Study.create(f"{name} {k}", CITY, like=like, **given)
            days.append(city_life(study, means, np.random.default_rng([SEED, k]), NEW_DAYS))
    return {name: np.array(days) for name, days in found.items()}


NOISE = 15.0
CITIES: dict[str, Callable[[Rng], FloatArray]] = {
    "alike": lambda rng: rng.normal(150, 15, 25).clip(0),
    "levels differ": lambda rng: rng.uniform(100, 300) * rng.normal(1, 0.1, 25).clip(0.5),
    "far apart": lambda rng: rng.uniform(50, 800, 25),
}


def cities(trials: int | None, run: Runner) -> list[Section]:
    """Compare the first days of new cities with and without the arms of ten old ones."""
    rows, targets = list[dict[str, Any]](), list[Target]()
    for prices in CITIES:
        finals = of_cities(prices, trials or NEW_CITIES)
        for days in (5, 30):
            alone, like = (finals[name][:, :days].sum(axis=1) for name in ("alone", "like"))
            ratio = float(like.sum() / alone.sum())
            rows.append(
                {
                    "cities": prices,
                    "days": days,
                    "alone": shown(alone),
                    "like": shown(like),
                    "ratio": ratio,
                    "better": f"{int((like < alone).sum())} of {len(alone)}",
                }
            )
            if days == NEW_DAYS:
                targets.append(Target(f"regret, {prices}", ratio, 1.05))
    shows = "Regret of new cities with 25 lanes and 20 trucks: mean ± standard error [95 %]."
    return [Section("New cities", shows, rows, targets)]


TOPICS: dict[str, Callable[[int | None, Runner], list[Section]]] = {
    "worlds": worlds,
    "late": late,
    "changes": changes,
    "long": long,
    "cost": cost,
    "cities": cities,
}

if __name__ == "__main__":
    command("benchmarks.pooling", __doc__, TOPICS)
