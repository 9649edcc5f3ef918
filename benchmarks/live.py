"""Ask and tell of a learner in euros: on one set, and on a new set in every round."""

from collections.abc import Callable
from itertools import cycle

import numpy as np

from benchmarks.harness import Section, measure
from benchmarks.instances import Size, label, transport
from multiplay import CombUCB, GenCTS, GenLBINFV, Hybrid, Learner, Policy, Transport

POLICIES: dict[str, Policy] = {
    "GenCTS": GenCTS(),
    "CombUCB": CombUCB(),
    "GenLBINFV": GenLBINFV(),
    "Hybrid": Hybrid(),
}
DAYS = 30  # different sets
SIZES: tuple[Size, ...] = ((3, 2), (10, 10))


def run(quick: bool, sizes: tuple[Size, ...] = SIZES) -> list[Section]:
    """Measure ask + tell in euros, with the loss of every unit."""
    rows = []
    for size in sizes:
        functions: dict[str, Callable[[], object]] = {}
        for name, policy in POLICIES.items():
            functions[f"{name}, one set"] = _ask_and_tell(policy, size, new_days=False)
            functions[f"{name}, new days"] = _ask_and_tell(policy, size, new_days=True)
        timings = measure(functions, budget=2.0 if quick else 10.0)
        for name in POLICIES:
            one, new = (1e6 * timings[f"{name}, {w}"].median for w in ("one set", "new days"))
            row = {"policy": name, "lanes": label(size), "one set µs": one, "new days µs": new}
            rows.append(row | {"times one set": new / one})
    shows = (
        "µs of ask + tell with losses in euros: the usual set, and a new Transport in each "
        f"round, built from one of {DAYS} supplies and demands (the time includes building it)."
    )
    return [Section("Learner, live", shows, rows)]


def _ask_and_tell(policy: Policy, size: Size, new_days: bool) -> Callable[[], object]:
    days = [transport(size, seed) for seed in range(DAYS)]
    sides = cycle([(day.supply, day.demand) for day in days])
    most = int(max(day.n.max() for day in days))
    units = 250 * np.random.default_rng(0).random((100, days[0].d, most))
    tables = cycle(units.tolist())
    learner = Learner(days[0], policy, loss_range=(0, 250), varying_set=True)

    def once() -> None:
        play = learner.ask(Transport(*next(sides)) if new_days else None)
        pairs = zip(play.action.tolist(), next(tables), strict=True)
        learner.tell(play.id, [euros[:trucks] for trucks, euros in pairs])

    return once
