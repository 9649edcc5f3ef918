"""Losses with features: regret, coverage, new arms, speed and other libraries, against limits.

Command line: ``python -m benchmarks.features --only table coverage --jobs 2``. Without
``--trials`` each topic has the number of trials that its limits were stated for.
"""

import os
import time
from collections.abc import Callable
from typing import Any

if __name__ == "__main__":
    from benchmarks import ONE_THREAD

    os.environ.update(ONE_THREAD)  # before the import of numpy

import numpy as np

from benchmarks.bills import FIVE_OF_TEN
from benchmarks.change import shown
from benchmarks.contexts import INSTANCES, SETS, WithoutFeatures
from benchmarks.harness import Runner, Section, Target, command, standard_error
from benchmarks.linear_bandits import calvera, wen
from multiplay import (
    Baseline,
    Bernoulli,
    BootstrapCTS,
    Budget,
    Category,
    Changes,
    Contextual,
    Environment,
    FeatureCTS,
    FeatureRows,
    Features,
    GenCTS,
    InProportion,
    Learner,
    NormalContexts,
    Number,
    Policy,
    Stochastic,
    Streams,
    TimeVarying,
    Uniform,
    simulate,
)
from multiplay.beliefs.features import FeatureRegression, Reports
from multiplay.learner.features import model_of
from multiplay.types import FloatArray

SEED, POLICY = 2030, 1
FEATURES, FOLLOW = "FeatureCTS()", "FeatureCTS(memory=Changes())"
BLIND: dict[str, Policy] = {
    "GenCTS()": GenCTS(),
    "BootstrapCTS()": BootstrapCTS(),
    "BootstrapCTS(memory=Changes())": BootstrapCTS(memory=Changes()),
    "without features": WithoutFeatures(),
}
COMPARED: dict[str, Policy] = {
    FEATURES: FeatureCTS(),
    FOLLOW: FeatureCTS(memory=Changes()),
    **BLIND,
}
RULES: dict[str, Policy] = {  # of the same model
    FEATURES: FeatureCTS(),
    "FeatureCTS(draws=True)": FeatureCTS(draws=True),
    "FeatureCTS(optimism=2.0)": FeatureCTS(optimism=2.0),
}
WORSE = 1.15  # times the regret of the best policy without features

# ------------------------------------------------------------------- table


def of_instance(name: str, policy: str, trials: int) -> FloatArray:
    """Return the final regret of a policy on an instance of the table."""
    instance = INSTANCES[name]
    environment, one = instance.environment(trials), {policy: (COMPARED | RULES)[policy]}
    actions, rounds = SETS[instance.actions], instance.rounds
    return simulate(actions, environment, one, rounds, trials, instance.seed, record=1).final(
        policy
    )


def table(trials: int | None, run: Runner) -> list[Section]:
    """Measure all policies on the instances of the acceptance table."""
    number = {name: trials or instance.trials for name, instance in INSTANCES.items()}
    found = run({(n, p): (of_instance, (n, p, number[n])) for n in INSTANCES for p in COMPARED})
    rows, targets = [], []
    for name, instance in INSTANCES.items():
        finals = {p: found[name, p] for p in COMPARED}
        accepted, error = instance.accepted
        limit = accepted + 4 * float(np.hypot(error, standard_error(finals[FEATURES].tolist())))
        best = min(float(finals[p].mean()) for p in BLIND)
        row: dict[str, Any] = {"instance": name, "trials": number[name]}
        row["accepted"] = f"{accepted:g} ± {error:g}"
        rows.append(row | {p: shown(values) for p, values in finals.items()})
        targets.append(Target(f"{name}: {FEATURES}", float(finals[FEATURES].mean()), limit))
        for policy in (FEATURES, FOLLOW):
            if policy == FOLLOW or not instance.changes:
                ratio = float(finals[policy].mean()) / best
                targets.append(Target(f"{name}: {policy} / best without features", ratio, WORSE))
    shows = "Final regret ± standard error against the best plan of each day."
    return [Section("Acceptance table", shows, rows, targets)]


# ------------------------------------------------------------------- rules

RULED = (
    *("3x2, p 5, iid, linear", "3x2, p 5, weekday, effects", "3x2, p 5, constant, effects"),
    *("3x2, p 5, constant, useless", "3x2, p 5, constant, effects, Bernoulli"),
    *("3x2, p 5, constant, useless, Bernoulli", "10x10, p 20, iid, linear"),
)


def rules(trials: int | None, run: Runner) -> list[Section]:
    """Measure random optimism, which grows with the round, against draws and fixed optimism."""
    found = run({(n, p): (of_instance, (n, p, trials or 10)) for n in RULED for p in RULES})
    rows = [{"instance": n} | {p: shown(found[n, p]) for p in RULES} for n in RULED]
    return [Section("Rules", "Final regret ± standard error, by the rule of the policy.", rows)]


# ------------------------------------------------------- without features

PLAIN: dict[str, float] = {"5 of 10, little noise": 15, "rare disasters": 21}


def of_plain(name: str, policy: str, trials: int) -> FloatArray:
    """Return the final regret where there are no features."""
    environment: Environment
    if name == "rare disasters":
        actions, seeds = SETS["3x2"], [np.random.default_rng((SEED, k)) for k in range(trials)]
        means = np.array([rng.uniform(0.01, 0.10, actions.d) for rng in seeds])
        environment = Stochastic(Bernoulli(means))
    else:
        actions, means = FIVE_OF_TEN[0], np.where(np.arange(10) < 5, 0.45, 0.55)
        environment = Stochastic(Uniform(means - 0.1, means + 0.1))
    one = {policy: COMPARED[policy]}
    return simulate(actions, environment, one, 2000, trials, SEED, record=1).final(policy)


def plain(trials: int | None, run: Runner) -> list[Section]:
    """Measure two instances without features, for which the noise must be learned."""
    number = trials or 100
    found = run({(n, p): (of_plain, (n, p, number)) for n in PLAIN for p in COMPARED})
    rows = [{"instance": n} | {p: shown(found[n, p]) for p in COMPARED} for n in PLAIN]
    targets = [Target(n, float(found[n, FEATURES].mean()), limit) for n, limit in PLAIN.items()]
    shows = f"Final regret ± standard error after 2,000 rounds, {number} trials."
    return [Section("Without features", shows, rows, targets)]


# ---------------------------------------------------------------- coverage


def covered(name: str, trials: int) -> dict[int, float]:
    """Return the share of arms whose 95 % interval holds their mean, after some rounds."""
    instance = INSTANCES[name]
    actions, policy = SETS[instance.actions], FeatureCTS()
    world = instance.environment(trials).open(actions, instance.rounds, range(trials), SEED)
    first = world.contexts(1)
    state = policy.start(actions.featured(first), instance.rounds, trials)
    rng, shares, model = Streams.spawn(SEED, POLICY, range(trials)), {}, model_of(policy)
    for t in range(1, instance.rounds + 1):
        rows = world.contexts(t)
        assert rows is not None
        today = actions.featured(rows)
        believed = model.posterior(state, rows) if t in (100, instance.rounds) else None
        play = policy.choose(today, state, rng)
        seen = world.observe(play.action)
        if believed is not None:
            mean, deviation = believed
            shares[t] = float((np.abs(seen.means - mean) <= 1.96 * deviation).mean())
        policy.update(today, state, play, seen.feedback, rng)
    return shares


def coverage(trials: int | None, run: Runner) -> list[Section]:
    """Measure the coverage of 95 % intervals of all arms, played or not."""
    found = run({name: (covered, (name, trials or 20)) for name in INSTANCES})
    rows, targets = [], []
    for name, shares in found.items():
        holds = INSTANCES[name].holds
        (_, early), (last, late) = shares.items()
        row = {"instance": name, "round 100": early, "last round": late}
        rows.append(row | {"the model holds": "yes" if holds else "no"})
        for t, share in {100: early, last: late}.items() if holds else ():
            targets.append(Target(f"coverage, {name}, round {t}", share, 0.92, at_least=True))
            targets.append(Target(f"coverage, {name}, round {t}", share, 0.98))
    return [Section("Coverage", "95 % intervals of the means of all arms.", rows, targets)]


# ----------------------------------------------------------------- effects

WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri")
LOOKED_AT = (15, 60)  # days


def effects_of(trial: int) -> dict[str, FloatArray]:
    """Return which 95 % intervals of ``effects()`` hold the truth, by kind and day.

    Twelve lanes cost by distance, weekday and lane; the days of the week differ by up to 60 euros.
    """
    rng = np.random.default_rng((SEED, 12, trial))
    names = [f"lane {i}" for i in range(12)]
    plans = Budget(10, [3] * 12, names=names)
    scaled = rng.uniform(-1.5, 1.5, 12)
    own, week = rng.normal(0, 25, 12), rng.normal(0, 30, 5)
    features = Features(km=Number(centre=300, scale=100), weekday=Category(list(WEEK)))
    km = {"km": dict(zip(names, (300 + 100 * scaled).tolist(), strict=True))}
    learner = Learner(
        plans, FeatureCTS(), seed=trial, loss_range=(0, 600), features=features, arm_features=km
    )
    truth = {"1": 200 + week.mean() + own.mean(), "km": 31.0}
    truth |= {f"weekday={day}": week[k] - week.mean() for k, day in enumerate(WEEK)}
    truth |= dict(zip(names, (own - own.mean()).tolist(), strict=True))
    found: dict[str, list[bool]] = {}
    for day in range(1, max(LOOKED_AT) + 1):
        play = learner.ask(features={"weekday": WEEK[day % 5]})
        mean = 200 + 31 * scaled + own + week[day % 5] + rng.normal(0, 8, 12)
        costs = {a: rng.normal(mean[names.index(a)], 15, n) for a, n in play.plan.items()}
        learner.tell(play.id, {a: some.clip(0, 600).tolist() for a, some in costs.items()})
        if day in LOOKED_AT:
            tables = learner.effects(), learner.effects(by="arm")
            rows = [
                row
                for table in tables
                for row in table[[table.columns[0], "low", "high"]].to_numpy()
            ]
            for name, low, high in rows:
                kind = "levels" if "=" in name else "lanes" if name in names else name
                found.setdefault(f"{kind}, day {day}", []).append(low <= truth[name] <= high)
    return {kind: np.array(held) for kind, held in found.items()}


def effects(trials: int | None, run: Runner) -> list[Section]:
    """Measure the coverage of effects of features and of arms."""
    found = run({trial: (effects_of, (trial,)) for trial in range(trials or 200)})
    rows, targets = [], []
    for kind in next(iter(found.values())):
        share = float(np.mean([held[kind] for held in found.values()]))
        rows.append({"effect": kind, "coverage": share})
        targets.append(Target(f"effects, {kind}", share, 0.92, at_least=True))
        targets.append(Target(f"effects, {kind}", share, 0.99))
    shows = "95 % intervals of effects, compared with the average level or arm."
    return [Section("Effects", shows, rows, targets)]


# ------------------------------------------------------------- percentages

SEVEN = (*WEEK, "Sat", "Sun")
YEAR, MONTHS = 360, (30, 180, 360)  # days; effects are looked at on the days of MONTHS
FUEL, CLAUSE, SURCHARGE = 1.60, 0.5, 0.25
WAYS: dict[str, tuple[str, ...]] = {"multiplied": ("fuel", "weekday"), "added": ()}


def year_of(way: str, trial: int) -> dict[str, list[tuple[bool, float]]]:
    """Return whether 95 % intervals hold the truth, and errors, by what is looked at.

    Eight lanes with prices from 80 to 320. Half of a price goes with the price of fuel, which
    wanders by a third, and Saturdays cost 25 % more; a bill varies by 8 %.
    """
    rng = np.random.default_rng((SEED, 13, trial))
    names = [f"lane {i}" for i in range(8)]
    price, fuel = np.exp(rng.uniform(np.log(80), np.log(320), 8)), np.empty(YEAR + 1)
    fuel[:] = np.clip(FUEL * np.exp(np.cumsum(rng.normal(0, 0.012, YEAR + 1))), 1.1, 2.3)
    scaled = Number(centre=FUEL, scale=0.1, unit="EUR/l")
    features = Features(fuel=scaled, weekday=Category(list(SEVEN)), multiplies=WAYS[way])
    plans = Budget(6, [3] * 8, names=names)
    learner = Learner(plans, seed=trial, loss_range=(0, 700), features=features)
    found: dict[str, list[tuple[bool, float]]] = {}
    for day in range(1, YEAR + 1):
        weekday = SEVEN[day % 7]
        factor = (1 + CLAUSE * (fuel[day] / FUEL - 1)) * (1 + SURCHARGE * (weekday == "Sat"))
        play = learner.ask(features={"fuel": float(fuel[day]), "weekday": weekday})
        truth = sum(n * factor * price[names.index(a)] for a, n in play.plan.items())
        low, high, expected = play.expected.low, play.expected.high, play.expected.total
        kind = "plans, Saturdays" if weekday == "Sat" else "plans, other days"
        found.setdefault(kind, []).append((low <= truth <= high, expected / truth - 1))
        costs = {}
        for a, n in play.plan.items():
            bill = price[names.index(a)] * factor * (1 + rng.normal(0, 0.05))
            costs[a] = (bill * (1 + rng.normal(0, 0.06, n))).clip(0, 700).tolist()
        learner.tell(play.id, costs)
        if day in MONTHS and way == "multiplied":
            rows = {row["feature"]: row for row in learner.effects().to_dict("records")}
            true = {"weekday=Sat": 100 * SURCHARGE, "fuel": 100 * CLAUSE * 0.1 / FUEL}
            for name, percent in true.items():
                row = rows[name]
                one = bool(row["low"] <= percent <= row["high"]), float(row["effect"] - percent)
                found.setdefault(f"{name}, day {day}", []).append(one)
    return found


def percent(trials: int | None, run: Runner) -> list[Section]:
    """Measure plans and effects where fuel and Saturdays change prices by percentages."""
    number = trials or 100
    found = run({(way, t): (year_of, (way, t)) for way in WAYS for t in range(number)})
    rows, targets = [], []
    for way in WAYS:
        for kind in found[way, 0]:
            held, error = np.array([one for t in range(number) for one in found[way, t][kind]]).T
            row = {"features are": way, "of": kind, "coverage": float(held.mean())}
            rows.append(row | {"error, median": float(np.median(np.abs(error)))})
            if way == "multiplied" and "fuel" not in kind:  # of a clause that is no power
                targets.append(Target(f"percent, {kind}", held.mean(), 0.92, at_least=True))
                targets.append(Target(f"percent, {kind}", held.mean(), 0.99))
    shows = "95 % intervals; errors are shares of the cost of a plan, or percentage points."
    return [Section("Percentages", shows, rows, targets)]


SEASON, ALLOWED = 60, 0.03  # days of a life, and the allowance


def season_of(way: str, trial: int) -> dict[str, float]:
    """Return whether an allowance was kept, and the saving against its baseline, in one life.

    Six lanes with prices from 80 to 320, of which the rule uses all alike. The price of fuel rises
    by 40 %, of which half is a percentage of the price, and Saturdays cost 25 % more.
    """
    rng, names = np.random.default_rng((SEED, 14, trial)), [f"lane {i}" for i in range(6)]
    price = np.exp(rng.uniform(np.log(80), np.log(320), 6))
    scaled = Number(centre=FUEL, scale=0.1, unit="EUR/l")
    features = Features(fuel=scaled, weekday=Category(list(SEVEN)), multiplies=WAYS[way])
    plans, rule = Budget(12, [4] * 6, names=names), InProportion()
    given: dict[str, Any] = {"features": features, "constraints": [Baseline(rule, ALLOWED)]}
    learner, split = Learner(plans, seed=trial, loss_range=(0, 700), **given), rule.plan(plans)
    played, base, restricted = np.zeros(SEASON), np.zeros(SEASON), 0
    for day in range(SEASON):
        weekday, fuel = SEVEN[day % 7], FUEL * (1 + 0.4 * day / SEASON)
        factor = (1 + CLAUSE * (fuel / FUEL - 1)) * (1 + SURCHARGE * (weekday == "Sat"))
        play = learner.ask(features={"fuel": fuel, "weekday": weekday})
        played[day], base[day] = play.action @ price * factor, split @ price * factor
        restricted += play.restricted
        costs = {}
        for a, n in play.plan.items():
            bill = price[names.index(a)] * factor * (1 + rng.normal(0, 0.05))
            costs[a] = (bill * (1 + rng.normal(0, 0.06, n))).clip(0, 700).tolist()
        learner.tell(play.id, costs)
    saved, true = learner.savings(rule), float((base - played).sum())
    return {
        "broken": float((played.cumsum() > (1 + ALLOWED) * base.cumsum() + 1e-9).any()),
        "restricted days": restricted / SEASON,
        "cost / rule": float(played.sum() / base.sum()),
        "saving covered": float(saved.low <= true <= saved.high),
        "saving, error": saved.total / true - 1,
        "saving, half": (saved.high - saved.low) / 2 / true,
    }


def season(trials: int | None, run: Runner) -> list[Section]:
    """Measure allowances and savings where fuel and Saturdays change prices by percentages."""
    number = trials or 100
    found = run({(way, t): (season_of, (way, t)) for way in WAYS for t in range(number)})
    rows, targets = [], []
    for way in WAYS:
        lives = [found[way, t] for t in range(number)]
        row = {name: float(np.mean([one[name] for one in lives])) for name in lives[0]}
        errors = [abs(one["saving, error"]) for one in lives]
        rows.append({"features are": way} | row | {"error, median": float(np.median(errors))})
        if way == "multiplied":
            targets.append(Target("allowance broken", row["broken"], 0.01))
            targets.append(Target("saving covered", row["saving covered"], 0.92, at_least=True))
    shows = f"{number} lives of {SEASON} days; means, errors as shares of the true saving."
    return [Section("Allowances and savings of percentages", shows, rows, targets)]


# --------------------------------------------------------------- new lanes

OLD, NEW, OPENED, DAYS, UNITS = 30, 10, 30, 230, 15
WELL = 0.5  # of the daily regret of the best plan without the new lanes


def new_lanes(policy: str, trials: int) -> tuple[FloatArray, float]:
    """Return the daily regret of a policy, and what a day costs without the new lanes."""
    caps = np.full(OLD + NEW, 2)
    before = Budget(UNITS, np.where(np.arange(OLD + NEW) < OLD, caps, 0))
    sets = TimeVarying([before] * OPENED + [Budget(UNITS, caps)] * (DAYS - OPENED))
    rows = [np.random.default_rng((SEED, 8, k)).normal(size=5 + OLD + NEW) for k in range(trials)]
    drawn, half = np.array(rows), 0.12 / 2**0.5
    theta = half * drawn[:, None, :5] / np.linalg.norm(drawn[:, None, :5], axis=2, keepdims=True)
    theta[..., 0] += 0.5
    contexts = NormalContexts(5, "once")
    environment = Contextual(theta, contexts, half * drawn[:, 5:], round_sd=0.05)
    one = {policy: COMPARED[policy]}
    result = simulate(sets, environment, one, DAYS, trials, SEED, record=range(1, DAYS + 1))
    regret = result.regret.sel(policy=policy).to_numpy().mean(axis=0)
    world = environment.open(sets, DAYS, range(trials), SEED)
    means = world.observe(np.zeros((trials, OLD + NEW), dtype=np.int64)).means
    costs = [(s.best(means) * means).sum(axis=1).mean() for s in (before, sets.at(OPENED + 1))]
    return np.diff(regret, prepend=0.0), float(costs[0] - costs[1])


def newlanes(trials: int | None, run: Runner) -> list[Section]:
    """Measure the days until 10 lanes that open on day 30 are used well."""
    found = run({p: (new_lanes, (p, trials or 100)) for p in COMPARED})
    rows: list[dict[str, Any]] = []
    for policy, (daily, cost) in found.items():
        after = daily[OPENED:]
        week = np.convolve(after, np.ones(7) / 7, "valid")
        well = np.flatnonzero(week <= WELL * cost)
        rows.append(
            {
                "policy": policy,
                "days until used well": f"{well[0]}" if len(well) else "more than 200",
                "regret of 30 days after": float(after[:30].sum()),
                "regret of 200 days after": float(after.sum()),
            }
        )
    lost = {row["policy"]: row["regret of 30 days after"] for row in rows}
    ratio = lost[FEATURES] / min(lost[p] for p in BLIND)
    target = Target("new lanes: regret of 30 days, FeatureCTS / learned by name", ratio, 1)
    shows = (
        f"{OLD} lanes, {NEW} more from day {OPENED + 1}. Used well: the regret of a week is at "
        f"most {WELL:.0%} of what the best plan without the new lanes loses."
    )
    return [Section("New lanes", shows, rows, [target])]


# ------------------------------------------------------------------- speed

SPEED: dict[int, tuple[int, float]] = {100: (19, 0.15), 10**4: (199, 1.5), 10**6: (1999, 80.0)}


def round_time(d: int, seen: int, repeats: int) -> dict[str, float]:
    """Return the least milliseconds of learning, drawing and believing; p = 20, one trial."""
    p, rng = 20, np.random.default_rng(0)
    model = FeatureRegression()
    arm = np.concatenate([np.ones((1, d, 1)), rng.normal(size=(1, d, p - 1))], axis=2)
    rows, state = FeatureRows(arm, np.ones((1, p))), model.start(d, p, 1)
    streams = Streams.spawn(SEED, POLICY, [0])
    taken: dict[str, list[float]] = {"learn": [], "draw": [], "posterior": []}
    for _ in range(repeats):
        arms = np.sort(rng.choice(d, seen, replace=False))[None]
        units, mean = np.full((1, seen), 3.0), rng.uniform(0.3, 0.7, (1, seen))
        reports = Reports(arms, rows.phi(arms[0]), units, mean, np.full((1, seen), 0.02))
        calls: dict[str, Callable[[], object]] = {
            "learn": lambda reports=reports: model.learn(state, reports),  # type: ignore[misc]
            "draw": lambda: model.draw(state, rows, streams),
            "posterior": lambda: model.posterior(state, rows),
        }
        for name, call in calls.items():
            started = time.process_time()
            call()
            taken[name].append(time.process_time() - started)
    return {name: 1000 * min(times) for name, times in taken.items()}


def speed(trials: int | None, run: Runner) -> list[Section]:
    """Measure the time of a round besides the oracle, with 20 features."""
    rows, targets = [], []
    for d, (seen, limit) in SPEED.items():
        times = round_time(d, seen, 4 if d > 10**5 else 50)
        rows.append({"arms": d, "arms seen": seen} | {f"{n}, ms": ms for n, ms in times.items()})
        together = times["learn"] + times["draw"]
        targets.append(Target(f"a round, {d} arms", together, limit, "ms"))
    return [Section("Speed", "Least processor time, one trial, 20 features.", rows, targets)]


TOPICS: dict[str, Callable[[int | None, Runner], list[Section]]] = {
    "table": table,
    "rules": rules,
    "plain": plain,
    "coverage": coverage,
    "effects": effects,
    "percent": percent,
    "season": season,
    "newlanes": newlanes,
    "speed": speed,
    "calvera": calvera,
    "wen": wen,
}

if __name__ == "__main__":
    command("benchmarks.features", __doc__, TOPICS)
