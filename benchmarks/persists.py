"""Losses that persist: regret with ``Persists`` and with ``Changes``, against limits.

Command line: ``python -m benchmarks.persists --only persisting --trials 20``. Without ``--trials``
each topic has the number of trials that its limits were stated for.
"""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

if __name__ == "__main__":
    from benchmarks import ONE_THREAD

    os.environ.update(ONE_THREAD)  # before the import of numpy

import numpy as np
from scipy.signal import lfilter

from benchmarks import change
from benchmarks.change import Case, Moves, Path
from benchmarks.harness import ROOT, Runner, Section, Target, command, standard_error
from multiplay import (
    ActionSet,
    Adversarial,
    Budget,
    Changes,
    Learner,
    Persists,
    Policy,
    PooledCTS,
    simulate,
)
from multiplay.cli.data import files_of
from multiplay.types import FloatArray

PERSISTS, DEFAULT = "Persists()", "Changes()"
POLICIES: dict[str, Policy] = {
    PERSISTS: PooledCTS(memory=Persists()),
    DEFAULT: PooledCTS(memory=Changes()),
}
LEAST, MOST = 0.01, 0.99  # means of losses that persist


def ratio_of(found: dict[str, FloatArray]) -> tuple[float, float]:
    """Return the ratio of the means with and without persistence, and its standard error."""
    ours, default = found[PERSISTS], found[DEFAULT]
    ratio = float(ours.mean() / default.mean())
    error = standard_error((ours - ratio * default).tolist()) / float(default.mean())
    return ratio, error


def section(title: str, found: dict[str, Any], limits: dict[str, float]) -> Section:
    """Return the table of some worlds, with their limits."""
    rows, targets = [], []
    for name, finals in found.items():
        ratio, error = ratio_of(finals)
        row = {"world": name} | {policy: change.shown(finals[policy]) for policy in POLICIES}
        rows.append(row | {"ratio": f"{ratio:.2f} ± {error:.2f}"})
        if name in limits:
            targets.append(Target(f"{name}: ratio", ratio, limits[name]))
    shows = "Final regret ± standard error against the best plan of each round, paired by trial."
    return Section(title, shows, rows, targets)


# -------------------------------------------------------------- stationary


def of_case(name: str, trials: int) -> dict[str, FloatArray]:
    """Return the final regret in a world of ``benchmarks.change``."""
    return change.final((change.STATIONARY | change.OTHERS)[name], POLICIES, trials)


def stationary(trials: int | None, run: Runner) -> list[Section]:
    """Measure what looking for persistence costs where nothing changes."""
    found = run({name: (of_case, (name, trials or 400)) for name in change.STATIONARY})
    one = section("Stationary", found, dict.fromkeys(found, 1.2))
    mean = float(np.mean([ratio_of(finals)[0] for finals in found.values()]))
    one.targets.append(Target("stationary: mean ratio", mean, 1.05))
    return [one]


# ---------------------------------------------------------------- drifting

DRIFTING = {"one flip": 1.1, "waves": 1.0, "walks": 0.8}


def of_drift(world: str, trials: int) -> dict[str, FloatArray]:
    """Return the final regret in a world of ``benchmarks.change``."""
    environment, rounds = change.drifting()[world], change.LONG
    given: dict[str, Any] = {"record": 1, "against": "each round"}
    result = simulate(change.PLANS, environment, POLICIES, rounds, trials, change.SEED, **given)
    return {name: result.final(name) for name in POLICIES}


def drifting(trials: int | None, run: Runner) -> list[Section]:
    """Measure worlds that drift, or change once."""
    found = run({name: (of_drift, (name, trials or 100)) for name in change.drifting()})
    return [section("Drifting", found, DRIFTING)]


def others(trials: int | None, run: Runner) -> list[Section]:
    """Measure changes of one arm, of all, in steps and slowly, on several sets."""
    found = run({name: (of_case, (name, trials or 20)) for name in change.OTHERS})
    return [section("Other worlds", found, {})]


# -------------------------------------------------------------- persisting


def persisting_means(rho: float, deviation: float) -> Moves:
    """Return means with a deviation that persists: x <- rho x + noise."""

    def moves(means: FloatArray, actions: ActionSet, at: int) -> Path:
        noise = np.random.default_rng((change.SEED, 9)).standard_normal((at + 1, *means.shape))
        noise[1:] *= np.sqrt(1 - rho**2)
        x = deviation * lfilter([1.0], [1.0, -rho], noise, axis=0)
        return lambda t: np.clip(means + x[t], LEAST, MOST)

    return moves


WIDE, TWO = (0.2, 0.8), Budget(2, [1] * 8)


def case(actions: ActionSet, law: str, rho: float, deviation: float, rounds: int = 1500) -> Case:
    """Return a world of losses that persist."""
    return Case(actions, WIDE, law, persisting_means(rho, deviation), rounds, rounds)


PERSISTING: dict[str, tuple[Case, float]] = {  # with the limit of the ratio
    "rho .9, coins": (case(change.PLANS, "coin", 0.9, 0.2), 0.85),
    "rho .9, bills of 8 %": (case(change.PLANS, "bills", 0.9, 0.2), 0.65),
    "rho .98, bills of 8 %": (case(change.PLANS, "bills", 0.98, 0.2), 0.65),
    "rho .5, bills of 8 %": (case(change.PLANS, "bills", 0.5, 0.15), 0.9),
    "2 of 8, rho .9, bills of 8 %": (case(TWO, "bills", 0.9, 0.2), 0.65),
    "2 of 8, rho .98, coins": (case(TWO, "coin", 0.98, 0.2), 1.0),
    "2 of 8, rho .995, coins, 3,000 rounds": (case(TWO, "coin", 0.995, 0.2, 3000), 1.0),
}


def of_persisting(name: str, trials: int) -> dict[str, FloatArray]:
    """Return the final regret in a world of losses that persist."""
    return change.final(PERSISTING[name][0], POLICIES, trials)


def persisting(trials: int | None, run: Runner) -> list[Section]:
    """Measure worlds in which a deviation of each arm fades from round to round."""
    found = run({name: (of_persisting, (name, trials or 20)) for name in PERSISTING})
    return [section("Persisting", found, {name: limit for name, (_, limit) in PERSISTING.items()})]


# ------------------------------------------------------------------ traces

LEAST_SEEN = 48  # hours, after which intervals are looked at
MOST_LOST, LEAST_HELD, MOST_HELD = 0.145, 0.9, 0.98


def of_traces(policy: str, trials: int) -> tuple[FloatArray, float]:
    """Return the node-hours lost per trial, and the share of intervals that held the next hour."""
    sys.path.insert(0, str(ROOT / "examples"))
    losses: FloatArray = import_module("spot").losses_of(files_of("spot"))
    hours, zones = losses.shape
    nodes = Budget(3, [1] * zones)
    world, one = Adversarial(losses), {policy: POLICIES[policy]}
    found = simulate(nodes, world, one, hours, trials, change.SEED, record=1, against="each round")
    least = float((nodes.best(losses) * losses).sum())
    lost: FloatArray = (found.final(policy) + least) / (hours * nodes.best(losses[0]).sum())
    learner, held = Learner(nodes, POLICIES[policy], seed=0), []
    for t in range(hours):
        if t >= LEAST_SEEN:
            arms = learner.arms()
            held.append(((arms["low"] <= losses[t]) & (losses[t] <= arms["high"])).mean())
        play, of = learner.ask(), dict(zip(nodes.names, losses[t].tolist(), strict=True))
        learner.tell(play.id, {arm: [of[arm]] * units for arm, units in play.plan.items()})
    return lost, float(np.mean(held))


def traces(trials: int | None, run: Runner) -> list[Section]:
    """Measure three nodes in nine zones, where ``multiplay data fetch spot`` was run."""
    found = run({name: (of_traces, (name, trials or 20)) for name in POLICIES})
    rows = [
        {"memory": name, "node-hours lost": f"{lost.mean():.4f}", "intervals that hold": held}
        for name, (lost, held) in found.items()
    ]
    lost, held = found[PERSISTS]
    targets = [
        Target("node-hours lost", float(lost.mean()), MOST_LOST),
        Target("intervals that hold the next hour, at least", held, LEAST_HELD, at_least=True),
        Target("intervals that hold the next hour, at most", held, MOST_HELD),
    ]
    return [Section("Traces", "Three nodes in nine zones, hour by hour.", rows, targets)]


TOPICS: dict[str, Callable[[int | None, Runner], list[Section]]] = {
    "stationary": stationary,
    "drifting": drifting,
    "others": others,
    "persisting": persisting,
    "traces": traces,
}

if __name__ == "__main__":
    command("benchmarks.persists", __doc__, TOPICS)
