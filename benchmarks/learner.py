"""Operations of a learner on the paper's problem: ask and tell, save and load."""

import tempfile
from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Section, Target, measure
from multiplay import GenCTS, GenLBINFV, Learner, Policy
from multiplay.experiments import paper

POLICIES: dict[str, Policy] = {"GenCTS": GenCTS(), "GenLBINFV": GenLBINFV(horizon=10_000)}
PLANS = paper.PLANS


def run(quick: bool) -> list[Section]:
    """Measure on the paper's 3x2 problem."""
    units = np.random.default_rng(0).random((1000, PLANS.d, int(PLANS.n.max())))
    losses = (2 * paper.costs(1, seed=0)[0][:, None] * units).tolist()

    def per_unit(action: list[int], table: list[list[float]]) -> Any:
        return [some[:a] for some, a in zip(table, action, strict=True)]

    def by_name(action: list[int], table: list[list[float]]) -> Any:
        pairs = zip(PLANS.names, table, action, strict=True)
        return {name: some[:a] for name, some, a in pairs if a}

    def totals(action: list[int], table: list[list[float]]) -> Any:
        return [sum(some[:a]) for some, a in zip(table, action, strict=True)]

    ways = {"per unit": per_unit, "per unit, by name": by_name, "totals": totals}
    functions: dict[str, Callable[[], object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, policy in POLICIES.items():
            for way, told in ways.items():
                functions[f"{name}: ask + tell, {way}"] = _ask_and_tell(policy, told, losses)
            learner, path = Learner(PLANS, policy), Path(folder) / f"{name}.npz"
            learner.save(path)
            functions[f"{name}: save"] = partial(learner.save, path)
            functions[f"{name}: load"] = partial(Learner.load, path)
        timings = measure(functions, budget=1.0 if quick else 10.0)
    rows: list[dict[str, Any]] = [
        {"what": what, "µs": 1e6 * timing.median, "fastest": 1e6 * timing.least}
        for what, timing in timings.items()
    ]
    targets = [Target(f"{r['what']}, 3x2", r["µs"], 150, "µs") for r in rows if "ask" in r["what"]]
    shows = "One learner on the paper's 3x2 problem; losses as lists, dicts or totals."
    return [Section("Learner", shows, rows, targets)]


def _ask_and_tell(
    policy: Policy,
    told: Callable[[list[int], list[list[float]]], Any],
    losses: list[list[list[float]]],
) -> Callable[[], object]:
    learner, tables = Learner(PLANS, policy), cycle(losses)

    def once() -> None:
        play = learner.ask()
        learner.tell(play.id, told(play.action.tolist(), next(tables)))

    return once
