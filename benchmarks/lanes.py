"""Sets of up to a million arms: time per round and memory, one process per set and policy."""

import math
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from benchmarks.harness import Plot, Section, Target, curves, fresh, peak_memory
from benchmarks.instances import Game, network, transport
from multiplay import ActionSet, GenCTS, GenLBINFV, Policy

POLICIES: dict[str, Policy] = {"GenCTS": GenCTS(), "GenLBINFV": GenLBINFV(horizon=10**7)}
KINDS = ("Transport", "Network")
ROUNDS = 20
MEMORY = 8192  # MiB of the whole process
EXPONENT = 1.5
FIT_FROM = 10**4


def run(quick: bool) -> list[Section]:
    """Measure both kinds of sets."""
    sizes = [10**2, 10**4, 10**5] if quick else [10**k for k in range(2, 7)]
    return [growth(kind, sizes) for kind in KINDS]


def growth(kind: str, sizes: Sequence[int], rounds: int = ROUNDS) -> Section:
    """Measure rounds of both policies on sets of increasing size."""
    rows = []
    for arms in sizes:
        row: dict[str, Any] = {"arms": arms}
        for name in POLICIES:
            used = fresh("lanes.case", kind=kind, arms=arms, policy=name, rounds=rounds)
            row |= {"nodes": used["nodes"], "set, s": used["set"]}
            row |= {f"{name}, ms": 1e3 * used["round"], f"{name}, first, ms": 1e3 * used["first"]}
            row[f"{name}, MiB"] = used["peak"]
        rows.append(row)
    lines = curves(rows, "arms", {name: f"{name}, ms" for name in POLICIES})
    title = f"A round, one trial, {kind}"
    plot = Plot(f"lanes-{kind.lower()}", title, "arms d", "ms per round", lines, FIT_FROM)
    powers = plot.exponents()
    what = f"{kind}, d >= 10^{math.log10(FIT_FROM):.0f}: exponent of the round of"
    targets = [Target(f"{what} {n}", powers.get(n, math.nan), EXPONENT) for n in POLICIES]
    most = max(rows[-1][f"{name}, MiB"] for name in POLICIES)
    targets.append(
        Target(f"{kind}, {sizes[-1]:.0e} arms, {rounds} rounds: memory", most, MEMORY, "MiB")
    )
    shows = (
        f"Processor time, median of {rounds} rounds of one trial; the first round includes the "
        "start of the policy; set: the time to build it. Memory is that of the process."
    )
    return Section(f"A million lanes: {kind}", shows, rows, targets, [plot])


def large_set(kind: str, arms: int) -> ActionSet:
    """Return a square transport problem, or a network with a hundred arcs for each node."""
    if kind == "Transport":
        side = math.isqrt(arms)
        return transport((side, side))
    return network(arms, max(arms // 100, 10))


def case(kind: str, arms: int, policy: str, rounds: int) -> dict[str, float]:
    """Return seconds to build the set, of the first round and of a round, and memory in MiB."""
    Game(large_set(kind, 100), POLICIES[policy])()  # compiles
    begun = time.process_time()
    actions = large_set(kind, arms)
    made = time.process_time()
    game, seconds = Game(actions, POLICIES[policy]), []
    game()
    first = time.process_time() - made
    for _ in range(rounds - 1):
        started = time.process_time()
        game()
        seconds.append(time.process_time() - started)
    nodes = len(actions.graph.balance)  # type: ignore[attr-defined]
    taken = {"set": made - begun, "first": first, "round": median(seconds)}
    return taken | {"nodes": nodes, "peak": peak_memory()}
