"""Parallel simulation: start of worker processes, their reuse, and the speed-up."""

import os
import time
from functools import partial
from statistics import median

from benchmarks.harness import Section, Target, fresh, interleave

JOBS = 2


def run(quick: bool) -> list[Section]:
    """Measure the start in new processes, and the speed-up in turns."""
    starts = [fresh("workers.ready") for _ in range(3 if quick else 7)]
    rows = [
        {"until": what, "s": median(start[what] for start in starts)} for what in list(starts[0])
    ]
    first, second, later = (row["s"] for row in rows[:3])
    shows = f"Seconds in a new process that starts {JOBS} workers; medians over new processes."
    targets = [
        Target("a worker is ready, first call", first, 0.7, "s"),
        Target("workers are ready, second call", second, 0.05, "s"),
        Target("replaced workers are ready", later, 0.7, "s"),
    ]
    return [Section("Workers", shows, rows, targets), _speed_up(quick)]


def ready() -> dict[str, float]:
    """Return the seconds until workers respond, and until a short simulation is done."""
    import multiplay
    from multiplay.experiments import paper
    from multiplay.simulation import executors

    environment = paper.environments(60, 30, seed=0)["stochastic"]

    def answer() -> float:
        started = time.perf_counter()
        with executors.interrupts_held(), executors.local_processes(JOBS) as workers:
            for pending in [workers.submit(os.getpid) for _ in range(JOBS)]:
                pending.result()
        return time.perf_counter() - started

    def simulate() -> float:
        started = time.perf_counter()
        multiplay.simulate(paper.PLANS, environment, paper.POLICIES, 60, 30, jobs=JOBS)
        return time.perf_counter() - started

    first, second = answer(), answer()
    executors.release()
    return {
        "all workers respond, first call": first,
        "all workers respond, second call": second,
        "all workers respond, after they were replaced": answer(),
        "60 rounds of the paper are played, kernels from disk": simulate(),
        "60 rounds of the paper are played, once more": simulate(),
    }


def _speed_up(quick: bool) -> Section:
    """Compare one process with two processes on the first experiment of the paper."""
    from multiplay.experiments import paper

    horizon = 500 if quick else 2000

    def seconds(jobs: int) -> float:
        started = time.perf_counter()
        paper.run("stochastic", horizon, jobs=jobs)
        return time.perf_counter() - started

    numbers = (1, JOBS)
    turns = {jobs: partial(seconds, jobs) for jobs in numbers}
    times = interleave(turns, 10 if quick else 60)
    rows = [
        {
            "processes": jobs,
            "s": times[jobs].median,
            "times faster": times[1].least / times[jobs].least,
        }
        for jobs in numbers
    ]
    shows = f"The first experiment of the paper, {horizon} rounds; the workers are already running."
    gain = times[1].least / times[JOBS].least
    target = Target(
        f"{JOBS} processes compared with one", gain, 1.6, "times as fast", at_least=True
    )
    return Section("Speed-up", shows, rows, [target])
