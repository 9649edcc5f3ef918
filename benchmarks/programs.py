"""Rounds of FTRL on integer programs, whose oracle is HiGHS."""

import time
from statistics import median, quantiles

import numpy as np

from benchmarks.harness import Section, Target
from multiplay import GenLBINFV, IntegerProgram, Learner

ROWS = 3


def run(quick: bool, d: int = 50, rounds: tuple[int, int] = (100, 200)) -> list[Section]:
    """Measure one trial on integer programs with binding constraints."""
    seeds = range(1 if quick else 3)
    rows = [{"program": seed, **round_of(seed, d, *rounds)} for seed in seeds]
    shows = f"GenLBINFV, one trial, {d} arms, {ROWS} constraints, rounds {rounds[0]} to {rounds[1]}"
    middle = median(row["median, ms"] for row in rows)
    target = Target(f"a round on an integer program of {d} arms", middle, 50, "ms")
    return [Section("Integer programs", f"{shows}.", rows, [target])]


def round_of(seed: int, d: int, first: int, last: int) -> dict[str, float]:
    """Return milliseconds of processor time of ``ask`` and ``tell``: late rounds, and round 1."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 10, (ROWS, d))
    program = IntegerProgram(weights, weights.sum(axis=1) // 2, bounds=(0, 2), sense="max")
    means = rng.uniform(0.2, 0.8, d)
    learner, taken = Learner(program, GenLBINFV(horizon=10_000), seed=0), []
    for _ in range(last):
        started = time.process_time()
        play = learner.ask()
        learner.tell(play.id, rng.binomial(play.action, means).astype(float).tolist())
        taken.append(1000 * (time.process_time() - started))
    late = taken[first - 1 :]
    return {"median, ms": median(late), "p90, ms": quantiles(late, n=10)[-1], "first, ms": taken[0]}
