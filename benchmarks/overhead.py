"""Overhead of a round: compared with fused loops, and with a plain script for a single trial."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks import fused, rounds
from benchmarks.harness import Section, Target, interleave
from multiplay import Bernoulli, Budget, CombUCB, GenCTS, GenLBINFV, Hybrid, Policy, Stochastic
from multiplay.experiments import paper
from multiplay.simulation.block import Block, play
from multiplay.simulation.simulate import recorded_rounds
from multiplay.types import FloatArray

OURS = {"GenCTS": "GenCTS", "CTS": "CTS", "GenLBINFV": "GenLBINFV ls", "LBINFV": "LBINFV"}
MOST_TIMES = {30: 2.5, 1000: 1.5}  # number of trials: most times the fused loop
ALONE: dict[str, tuple[Policy, float]] = {  # policy, and most µs of a round in one trial
    "GenCTS": (GenCTS(), 15.0),
    "CombUCB": (CombUCB(), 15.0),
    "Hybrid": (Hybrid(), 35.0),
    "GenLBINFV": (GenLBINFV(horizon=rounds.T), 35.0),
}
SCRIPT = "CombUCB, plain numpy"
MEANS, PLAYED = np.linspace(0.2, 0.8, 10), 5  # of the arms, and how many are played


def run(quick: bool) -> list[Section]:
    """Measure the ratio to the fused loops, and rounds of one trial."""
    return [against_fused(quick), one_trial(quick)]


def against_fused(quick: bool, most_times: Mapping[int, float] = MOST_TIMES) -> Section:
    """Compare the paper's policies with special-purpose loops for its instance."""
    rows, targets = [], []
    for trials, limit in most_times.items():
        length = max(50, (20_000 if quick else 100_000) // trials)
        for name, loop in fused.runs().items():
            policy = rounds.POLICIES[OURS[name]]
            runs = {
                "ours": our_time(rounds.blocks_of(policy, trials, length)),
                "fused": fused_time(loop, trials, length),
            }
            timings = interleave(runs, budget=0.5 if quick else 3.0)
            ours, alone = (timings[kind].median * 1e6 / (trials * length) for kind in runs)
            rows.append(
                {
                    "policy": name,
                    "trials": trials,
                    "µs": ours,
                    "fused loop": alone,
                    "times": ours / alone,
                }
            )
            what = f"{name}, {trials} trials, times the fused loop"
            targets.append(Target(what, ours / alone, limit))
    shows = (
        "Processor time in µs per trial and round. The fused loop runs all rounds of all trials in "
        "one compiled function: it supports two demanders, draws losses in place, and keeps only "
        "the regret."
    )
    return Section("Against a program for the paper's instance alone", shows, rows, targets)


def one_trial(quick: bool) -> Section:
    """Time a round of one trial on 10 arms, 5 of them played."""
    arms, length = Budget(PLAYED, caps=[1] * len(MEANS)), 1000 if quick else 5000
    losses = Stochastic(Bernoulli(MEANS))
    recorded = recorded_rounds(length, length // 10)
    runs = {}
    for name, (policy, _) in ALONE.items():
        block = Block(arms, losses, policy, length, range(1), 0, recorded)
        runs[name] = our_time([block])
    runs[SCRIPT] = lambda: _processor_time(plain_comb_ucb, [1], [length])
    timings = interleave(runs, budget=1.0 if quick else 8.0)
    took = {name: 1e6 * timing.median / length for name, timing in timings.items()}
    rows: list[dict[str, Any]] = [
        {"policy": name, "µs": took[name], "at most": ALONE[name][1]} for name in ALONE
    ]
    rows.append({"policy": SCRIPT, "µs": took[SCRIPT]})
    targets = [Target(f"{n}, one trial, a round", took[n], ALONE[n][1], "µs") for n in ALONE]
    ratio = took["CombUCB"] / took[SCRIPT]
    targets.append(Target("CombUCB, one trial, times a plain numpy script", ratio, 1.0))
    shows = (
        "Processor time in µs of a whole round: policy, losses, regret and checks. The script "
        "draws losses in place, checks nothing, and keeps only the regret."
    )
    return Section("One trial, 10 arms, 5 of them played", shows, rows, targets)


def plain_comb_ucb(rounds: int) -> FloatArray:
    """Run CombUCB on the losses of ``one_trial``, as a researcher would write it for one run."""
    rng, d = np.random.default_rng(0), len(MEANS)
    best, regret, total = np.sort(MEANS)[:PLAYED].sum(), np.empty(rounds), 0.0
    count, losses = np.zeros(d), np.zeros(d)
    for t in range(1, rounds + 1):
        unseen = (count == 0).any()
        index = count if unseen else losses / count - np.sqrt(1.5 * np.log(t) / count)
        arms = np.argpartition(index, PLAYED)[:PLAYED]
        count[arms] += 1
        losses[arms] += rng.random(PLAYED) < MEANS[arms]
        total += MEANS[arms].sum() - best
        regret[t - 1] = total
    return regret


def our_time(blocks: list[Block]) -> Callable[[], float]:
    """Return a contender that plays blocks, and subtracts the time before the first round."""
    recorded = recorded_rounds(1, 1)
    beginnings = [block._replace(horizon=1, rounds=recorded) for block in blocks]

    def seconds() -> float:
        return _processor_time(play, beginnings, blocks)

    seconds()  # loads the kernels from disk
    return seconds


def fused_time(loop: Any, trials: int, length: int) -> Callable[[], float]:
    """Return a contender that runs a fused loop on the costs of the paper."""
    costs = paper.costs(trials, seed=0).reshape(trials, 3, 2)

    def seconds() -> float:
        return _processor_time(lambda rounds: loop(costs, rounds, 0), [1], [length])

    seconds()
    return seconds


def _processor_time(run: Callable[[Any], object], short: list[Any], long: list[Any]) -> float:
    """Return the processor seconds of long runs, minus those of short runs.

    Other processes affect wall-clock time, but not processor time.
    """
    marks = [time.process_time()]
    for several in (short, long):
        for one in several:
            run(one)
        marks.append(time.process_time())
    return marks[2] - 2 * marks[1] + marks[0]
