"""FTRL step over the hull of knapsacks, which is available through the oracle only."""

import time
from collections.abc import Mapping
from statistics import median, quantiles
from typing import Any

import numpy as np

from benchmarks.harness import Plot, Section, Target, curves
from multiplay import Bernoulli, GenLBINFV, Knapsack, Stochastic, Streams
from multiplay.random import POLICY

T = 10_000
LIMITS = {50: 1.0, 100: 5.0, 200: 25.0, 400: 150.0}  # number of items: most ms per round


def knapsack(items: int) -> Knapsack:
    """Return a knapsack of random weights and limits; a quarter of all units fits."""
    rng = np.random.default_rng((0, items))
    weights, limits = rng.integers(1, 31, items), rng.integers(1, 5, items)
    return Knapsack(weights, int(weights @ limits) // 4, limits=limits)


def choices(sack: Knapsack, rounds: int) -> list[float]:
    """Return the seconds of each call of ``GenLBINFV.choose``, for one trial."""
    policy, trial = GenLBINFV(), range(1)
    means = np.random.default_rng(0).uniform(0.1, 0.9, (1, sack.d))
    world = Stochastic(Bernoulli(means)).open(sack, T, trial, seed=0)
    rng, state = Streams.spawn(0, POLICY, trial), policy.start(sack, T, 1)
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        play = policy.choose(sack, state, rng)
        taken.append(time.perf_counter() - started)
        policy.update(sack, state, play, world.observe(play.action).feedback, rng)
    return taken


def run(quick: bool, limits: Mapping[int, float] = LIMITS, last: int = 200) -> list[Section]:
    """Play rounds of one trial, and time the later half."""
    rows, targets = [], []
    for items, limit in limits.items():
        if quick and items > 100:
            continue
        taken = choices(knapsack(items), last)
        late = [1e3 * seconds for seconds in taken[last // 2 :]]
        row: dict[str, Any] = {"items": items, "first round, ms": 1e3 * taken[0]}
        row |= {"median, ms": median(late), "90 %, ms": quantiles(late, n=10)[-1]}
        rows.append(row)
        targets.append(Target(f"GenLBINFV, knapsack of {items} items", median(late), limit, "ms"))
    shows = (
        "Time of choose, one trial of GenLBINFV, T = 10^4; weights up to 30, limits up to 4; a "
        f"quarter of all units fits. Rounds {last // 2} to {last}."
    )
    lines = curves(rows, "items", {"GenLBINFV": "median, ms"})
    plot = Plot("hull", "FTRL over a knapsack", "items", "ms per round", lines, fit_from=50)
    return [Section("FTRL over an oracle alone", shows, rows, targets, [plot])]
