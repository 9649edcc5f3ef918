"""Growth of time and memory with arms, units, trials and rounds."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.harness import (
    Plot,
    Section,
    Target,
    curves,
    fresh,
    interleave,
    peak_memory,
    timed,
)
from benchmarks.instances import Game, Size, label, transport
from multiplay import (
    Duplicated,
    GenCTS,
    GenLBINFV,
    InvalidInput,
    Policy,
    Stochastic,
    Transport,
    Uniform,
    simulate,
)
from multiplay.experiments import paper
from multiplay.types import FloatArray

ARMS: tuple[Size, ...] = ((3, 2), *((N, N) for N in (4, 10, 20, 50, 100, 200)))
NATIVE: dict[str, Policy] = {"GenCTS": GenCTS(), "GenLBINFV": GenLBINFV(horizon=100_000)}
COPIED: dict[str, Policy] = {
    "CTS": Duplicated(NATIVE["GenCTS"]),
    "LBINFV": Duplicated(NATIVE["GenLBINFV"]),
}
Key = tuple[str, Any]


def run(quick: bool) -> list[Section]:
    """Measure every kind of growth."""
    return [
        arms(ARMS, budget=4.0 if quick else 30.0),
        units([10**k for k in range(1, 11)], budget=2.0 if quick else 20.0),
        trials([1, 30, 1000] if quick else [1, 10, 100, 1000, 10_000]),
        rounds([10**3, 10**4] if quick else [10**3, 10**4, 10**5, 10**6]),
        memory(*((1000, 200) if quick else (10_000, 1000))),
    ]


def arms(sizes: Sequence[Size], budget: float) -> Section:
    """Measure 6 to 40,000 arms: one trial, all sizes in turns."""
    games = {(n, size): Game(transport(size), p) for size in sizes for n, p in NATIVE.items()}
    timings = play_in_turns(games, budget)
    rows = []
    for size in sizes:
        row: dict[str, Any] = {"size": label(size), "arms": size[0] * size[1]}
        for name in NATIVE:
            row[f"{name}, µs"] = 1e6 * timings[name, size]
            row[f"{name} env, µs"] = 1e6 * games[name, size].environment_seconds()
        if budget >= 10 or size == sizes[-1]:
            used = fresh("growth.case", policies=list(NATIVE), size=size, trials=1, rounds=5)
            row["MiB"] = used["peak"] - used["start"]
        rows.append(row)
    lines = curves(rows, "arms", {name: f"{name}, µs" for name in NATIVE})
    title = "A round, one trial, square transport"
    plot = Plot("arms", title, "arms d", "µs per round", lines, fit_from=100)
    power = plot.exponents().get("GenLBINFV", math.nan)
    targets = [Target("arms: exponent of GenLBINFV's round, d >= 100", power, 1.5)]
    shows = (
        "µs per round, one trial, env: the part of the environment in it; memory beyond import and "
        "warm-up."
    )
    return Section("Growth with arms", shows, rows, targets, [plot])


def play_in_turns(games: Mapping[Key, Game], budget: float) -> dict[Key, float]:
    """Play up to 100 rounds of each game, then time the rounds in turns."""
    for game in games.values():
        stop = time.perf_counter() + 1.0
        for _ in range(100):
            game()
            if time.perf_counter() > stop:
                break
    timings = interleave({key: timed(game, 0.03) for key, game in games.items()}, budget)
    return {key: timing.median for key, timing in timings.items()}


def scaled(number: int) -> Transport:
    """Return the paper's problem with ``number`` units."""
    return Transport(paper.PLANS.supply * (number // 10), paper.PLANS.demand * (number // 10))


def units(numbers: Sequence[int], budget: float, trials: int = 100) -> Section:
    """Measure 10 to 10^10 units at six arms; duplicated policies up to their limit."""
    games = {(n, u): Game(scaled(u), p, trials) for n, p in NATIVE.items() for u in numbers}
    refused: dict[int, str] = {}
    for number in numbers:
        if refused and number < numbers[-1]:
            refused[number] = ""  # not run: it takes minutes
            continue
        try:
            Game(scaled(number), COPIED["CTS"])()
        except InvalidInput as error:
            refused[number] = f"{error}".split(". ")[0]
        else:
            games |= {(n, number): Game(scaled(number), p, trials) for n, p in COPIED.items()}
    timings = play_in_turns(games, budget)
    rows: list[dict[str, Any]] = []
    for number in numbers:
        row: dict[str, Any] = {"units": number}
        for name in NATIVE:
            row[f"{name}, µs"] = 1e6 * timings[name, number] / trials
            seconds = games[name, number].environment_seconds()
            row[f"{name} env, µs"] = 1e6 * seconds / trials
        for name in COPIED:
            if (name, number) in timings:
                row[f"{name}, µs"] = 1e6 * timings[name, number] / trials
            elif refused[number]:
                row[f"{name}, µs"] = "refused"
        kinds = {"native": NATIVE} if number in (numbers[0], numbers[-1]) else {}
        kinds |= {} if number in refused else {"copies": COPIED}
        for kind, some in kinds.items():
            used = fresh("growth.case", policies=list(some), units=number, trials=250, rounds=5)
            row[f"{kind}, MiB"] = used["peak"] - used["start"]
        rows.append(row)
    few, many = numbers[0], numbers[-1]
    limits = {number: limit for number, limit in ((1000, 2.0), (many, 1.2)) if number in numbers}
    compared = [(name, number) for name in NATIVE for number in (few, *limits)]
    again = play_in_turns({key: games[key] for key in compared}, budget / 2)
    targets = [
        Target(f"{number:.0e} units against {few}: time of {name}, times", ratio, limit)
        for number, limit in limits.items()
        for name in NATIVE
        for ratio in [again[name, number] / again[name, few]]
    ]
    more = rows[-1]["native, MiB"] - rows[0]["native, MiB"]
    targets.append(
        Target(f"units x {many // few:.0e}: increase of the memory of both", more, 1, "MiB")
    )
    shows = (
        f"µs per trial and round at {trials} trials, env: the part of the environment; memory "
        "beyond import and warm-up at 250 trials. Errors of duplicated policies: "
        + "; ".join(f"at {number:.0e} units, {why}" for number, why in refused.items() if why)
    )
    lines = curves(rows, "units", {name: f"{name}, µs" for name in paper.POLICIES})
    title = f"Six arms, {trials} trials"
    plot = Plot("units", title, "units in a plan", "µs per trial and round", lines)
    return Section("Growth with units", shows, rows, targets, [plot])


def trials(numbers: Sequence[int]) -> Section:
    """Measure 1 to 10,000 trials on the paper's experiment."""
    rows = []
    for number in numbers:
        names, rounds = list(paper.POLICIES), max(100, 2000 // number)
        used = fresh("growth.case", policies=names, trials=number, rounds=rounds)
        row: dict[str, Any] = {"trials": number, "rounds": rounds}
        row |= {f"{name}, µs": 1e6 * seconds for name, seconds in used["seconds"].items()}
        rows.append(row | {"MiB": used["peak"] - used["start"]})
    shows = (
        "µs per trial and round, and memory beyond import and warm-up; up to 1000 rounds are "
        "recorded. Each row is a separate process."
    )
    lines = curves(rows, "trials", {name: f"{name}, µs" for name in paper.POLICIES})
    title = "The paper's experiment, one process"
    plot = Plot("trials", title, "trials", "µs per trial and round", lines, fit_from=100)
    return Section("Growth with trials", shows, rows, [], [plot])


def rounds(numbers: Sequence[int]) -> Section:
    """Measure 1000 to a million rounds of one trial."""
    rows = []
    for number in numbers:
        used = fresh("growth.case", policies=list(NATIVE), trials=1, rounds=number)
        row: dict[str, Any] = {"rounds": number}
        for name, seconds in used["seconds"].items():
            row |= {f"{name}, µs": 1e6 * seconds, f"{name}, s": seconds * number}
        rows.append(row | {"MiB": used["peak"] - used["start"]})
    shows = "µs per round and total seconds, one trial; memory beyond import and warm-up."
    lines = curves(rows, "rounds", {name: f"{name}, s" for name in NATIVE})
    plot = Plot("rounds", "One trial of the paper's experiment", "rounds", "seconds", lines)
    return Section("Growth with rounds", shows, rows, [], [plot])


def memory(number: int, rounds: int) -> Section:
    """Measure the peak memory of a large experiment with all rounds recorded."""
    names = list(paper.POLICIES)
    used = fresh("growth.case", policies=names, trials=number, rounds=rounds)
    start, beyond = used["start"], used["peak"] - used["start"]
    projected = start + beyond * (10_000 * 1000) / (number * rounds)
    row = {"trials": number, "recorded rounds": rounds, "import and warm-up, MiB": start}
    row |= {"beyond, MiB": beyond, "10,000 trials, 1000 recorded, MiB": projected}
    what = "memory: 10,000 trials, 1000 recorded rounds, four policies"
    what += "" if number * rounds == 10**7 else f" (projected from {number} x {rounds})"
    shows = "Rounds that are not recorded take no memory, see Growth with rounds."
    targets = [Target(what, projected, 1024, "MiB")]
    return Section("Memory of a large experiment", shows, [row], targets)


def case(
    policies: list[str], trials: int, rounds: int, units: int = 10, size: Size | None = None
) -> dict[str, Any]:
    """Simulate; return seconds per trial and round, and memory in MiB (run by ``fresh``)."""
    lbinfv = GenLBINFV(horizon=max(rounds, 100_000))
    known = {**paper.POLICIES, "GenLBINFV": lbinfv, "LBINFV": Duplicated(lbinfv)}
    simulate(paper.PLANS, paper.environments(9, 1, 0)["stochastic"], known, 9, 1)
    start = peak_memory()
    plans = transport((size[0], size[1])) if size else scaled(units)
    costs = np.random.default_rng(0).uniform(0.1, 0.5, (trials, plans.d))
    chosen = {name: known[name] for name in policies}
    runs: list[FloatArray] = []
    stop = time.perf_counter() + 1.0
    while len(runs) < 5 and (not runs or time.perf_counter() < stop):
        played = simulate(plans, Stochastic(Uniform(0, 2 * costs)), chosen, rounds, trials)
        runs.append(played.dataset["seconds"].mean("trial").values / rounds)
        del played  # otherwise the memory of two results would be counted
    seconds = dict(zip(policies, np.median(runs, axis=0).tolist(), strict=True))
    return {"seconds": seconds, "start": start, "peak": peak_memory()}
