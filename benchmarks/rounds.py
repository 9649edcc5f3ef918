"""Time per trial and round of all policies on the paper's experiment, split into parts."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from typing import Any
from unittest.mock import patch

from benchmarks.harness import Section, Target, calibration, interleave
from multiplay import (
    ESCB,
    FPLIX,
    LBINF,
    BestOfThreeWorlds,
    CombUCB,
    Duplicated,
    EpsilonGreedy,
    ExplorationByOptimisation,
    FollowTheLeader,
    GaussianCTS,
    GenAdaINF,
    GenCTS,
    GenLBINFV,
    Hybrid,
    LinTS,
    LinUCB,
    Policy,
    RandomAction,
    ScaledScribble,
)
from multiplay.experiments import paper
from multiplay.simulation.block import Block, play
from multiplay.simulation.scheduling import LARGEST_BLOCK
from multiplay.simulation.simulate import recorded_rounds

T = paper.HORIZON  # of the regulariser, also where fewer rounds are timed
POLICIES: dict[str, Policy] = {
    "GenCTS": GenCTS(),
    "CTS": Duplicated(GenCTS()),
    "GenLBINFV ls": GenLBINFV(horizon=T),
    "GenLBINFV gd": GenLBINFV(horizon=T, prediction="gd"),
    "LBINFV": Duplicated(GenLBINFV(horizon=T)),
    "GenAdaINF": GenAdaINF(),
    "GaussianCTS": GaussianCTS(),
    "CombUCB": CombUCB(),
    "ESCB": ESCB(),
    "Hybrid": Hybrid(),
    "LBINF": LBINF(horizon=T),
    "FPLIX": FPLIX(),
    "LinTS": LinTS(),
    "LinUCB": LinUCB(),
    "ScaledScribble": ScaledScribble(horizon=T),
    "ExplorationByOptimisation": ExplorationByOptimisation(horizon=T),
    "BestOfThreeWorlds": BestOfThreeWorlds(horizon=T),
    "EpsilonGreedy": EpsilonGreedy(),
    "FollowTheLeader": FollowTheLeader(),
    "RandomAction": RandomAction(),
}
LIMITS = {
    "GenCTS": 5.0,
    "CTS": 10.0,
    "GenLBINFV ls": 4.0,
    "GenLBINFV gd": 4.0,
    "LBINFV": 7.0,
    "LinTS": 3.0,
    "LinUCB": 3.0,
    "ScaledScribble": 15.0,
    "ExplorationByOptimisation": 40.0,
    "BestOfThreeWorlds": 60.0,
}
INSIDE_CHOOSE = ("oracle", "FTRL step", "rounding")


def run(quick: bool, trials: Sequence[int] = (1, 30, 1000)) -> list[Section]:
    """Measure all policies side by side, at each number of trials."""
    rows, targets = [], []
    for number in trials:
        rounds = max(100, min(500, 20_000 // number)) * (1 if quick else 3)
        blocks = {name: blocks_of(policy, number, rounds) for name, policy in POLICIES.items()}
        runs = {name: _runner(parts, number * rounds) for name, parts in blocks.items()}
        timings = interleave(runs, budget=1.0 if quick else 5.0)
        for name, (total, least, _) in timings.items():
            row = {"policy": name, "trials": number, "µs": 1e6 * total, "fastest": 1e6 * least}
            shares = _shares(POLICIES[name], blocks[name])
            rows.append(row | {part: 1e6 * total * share for part, share in shares.items()})
            if number >= 30 and name in LIMITS:
                limit = LIMITS[name] * (1 if number >= 1000 else 2)
                what = f"{name}, {number} trials, per trial and round"
                targets.append(Target(what, 1e6 * total, limit, "µs"))
    shows = (
        "µs per trial and round, median of turns, split into parts; the shares are from a run with "
        f"timers, scaled to the total of a run without timers. One step of a fixed loop took "
        f"{calibration():.2f} ns on this machine."
    )
    return [Section("Rounds of the paper's stochastic experiment", shows, rows, targets)]


def blocks_of(policy: Policy, trials: int, rounds: int) -> list[Block]:
    """Return blocks of trials as ``simulate`` makes them; a tenth of the rounds is recorded."""
    environment = paper.environments(rounds, trials, seed=0)["stochastic"]
    recorded = recorded_rounds(rounds, max(1, rounds // 10))
    starts = range(0, trials, LARGEST_BLOCK)
    ranges = [range(k, min(k + LARGEST_BLOCK, trials)) for k in starts]
    return [Block(paper.PLANS, environment, policy, rounds, r, 0, recorded) for r in ranges]


def _runner(blocks: list[Block], times: int) -> Callable[[], float]:
    """Return a contender: seconds per trial and round, with a new seed in each call."""
    seeds = count()

    def seconds() -> float:
        seed = next(seeds)
        played = [play(block._replace(seed=seed)) for block in blocks]
        return float(sum(part["seconds"].sum() for part in played)) / times

    return seconds


def _shares(policy: Policy, blocks: list[Block]) -> dict[str, float]:
    """Return the share of each part, measured by timers."""
    watch = Stopwatch()
    actions, hull = type(paper.PLANS), type(paper.PLANS.hull)
    world = type(blocks[0].environment.open(paper.PLANS, 1, [0], 0))
    methods: list[tuple[str, type, str]] = [
        ("choose", type(policy), "choose"),
        ("oracle", actions, "oracle"),
        ("FTRL step", hull, "minimise"),
        ("rounding", hull, "draw"),
        ("environment", world, "observe"),
        ("update", type(policy), "update"),
    ]
    with ExitStack() as stack:
        for part, kind, name in methods:
            stack.enter_context(patch.object(kind, name, watch.around(part, getattr(kind, name))))
        total = float(sum(play(block)["seconds"].sum() for block in blocks))
    parts = {part: watch.seconds.get(part, 0.0) for part, _, _ in methods}
    parts["simulation"] = total - sum(parts.values())
    return {part: seconds / total for part, seconds in parts.items()}


class Stopwatch:
    """Total time of methods by part, without the timed methods that they call."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.inside: list[float] = []  # for each running method: seconds of timed methods in it

    def around(self, part: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method with a timer around it."""

        def watched(*arguments: Any) -> Any:
            if part in INSIDE_CHOOSE and not self.inside:
                return method(*arguments)  # the comparator is computed before the first round
            self.inside.append(0.0)
            started = time.perf_counter()
            answer = method(*arguments)
            elapsed = time.perf_counter() - started
            self.seconds[part] = self.seconds.get(part, 0.0) + elapsed - self.inside.pop()
            if self.inside:
                self.inside[-1] += elapsed
            return answer

        return watched
