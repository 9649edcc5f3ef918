"""Rounds on changing action sets, compared with rounds on one fixed set."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count

import numpy as np

from benchmarks.harness import Section, Target, interleave
from benchmarks.instances import Size, label, transport
from multiplay import ActionSet, Environment, GenCTS, Stochastic, TimeVarying, Transport, Uniform
from multiplay.simulation.block import Block, play
from multiplay.simulation.simulate import recorded_rounds, usual_comparator

DAYS = 30  # different sets
LIMIT = 2.0  # times the rounds of one set
ONE_SET = "one set"


def run(quick: bool, trials: Sequence[int] = (1, 100), size: Size = (10, 10)) -> list[Section]:
    """Measure GenCTS on sets of one size, at each number of trials."""
    rows, targets = [], []
    for number in trials:
        rounds = max(50, 1500 // number) * (1 if quick else 3)
        timings = interleave(contenders(size, number, rounds), budget=2.0 if quick else 15.0)
        one_set = timings[ONE_SET].median
        for name, (total, least, _) in timings.items():
            ratio = total / one_set
            row = {"sets": name, "trials": number, "µs": 1e6 * total, "fastest": 1e6 * least}
            rows.append(row | {"times one set": ratio})
            if name != ONE_SET:
                what = f"GenCTS, {name} of {label(size)}, {number} trials, times one set"
                targets.append(Target(what, ratio, LIMIT))
    shows = (
        f"µs per trial and round of GenCTS on {DAYS} different transport sets of {label(size)}: "
        "one set for all rounds of a run (a different set in each run), a list of sets in turn, "
        "and a function that builds the set of each round. Means differ between trials. With "
        "changing sets, the time includes the best action of each round and trial."
    )
    return [Section("Sets that change", shows, rows, targets)]


def contenders(size: Size, trials: int, rounds: int) -> Mapping[str, Callable[[], float]]:
    """Return functions that play a run with a new seed, and return seconds per trial and round."""
    days = [transport(size, seed) for seed in range(DAYS)]
    sides = [(day.supply, day.demand) for day in days]
    costs = np.random.default_rng(0).uniform(0.1, 0.5, (trials, days[0].d))
    world = Stochastic(Uniform(0, 2 * costs))

    def built(t: int) -> Transport:
        return Transport(*sides[t % DAYS])

    return {
        ONE_SET: _player(days, world, trials, rounds),
        "a list": _player([TimeVarying(days)], world, trials, rounds),
        "a function": _player([TimeVarying(built).over(rounds)], world, trials, rounds),
    }


def _player(
    sets: Sequence[ActionSet], world: Environment, trials: int, rounds: int
) -> Callable[[], float]:
    recorded, seeds = recorded_rounds(rounds, max(1, rounds // 10)), count()

    def seconds() -> float:
        seed = next(seeds)
        actions = sets[seed % len(sets)]
        block = Block(actions, world, GenCTS(), rounds, range(trials), seed, recorded)
        measured = play(block._replace(against=usual_comparator(actions, world)))
        return float(measured["seconds"].sum()) / (trials * rounds)

    return seconds
