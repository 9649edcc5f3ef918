"""Oracle of transport problems, compared with HiGHS, POT and scipy's assignment solver."""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any, cast

import numpy as np
import ot  # type: ignore[import-untyped]
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, linprog

from benchmarks.harness import Plot, Section, Target, TimeForecast, compare, curves
from benchmarks.instances import SIZES, Size, label, margins, transport
from multiplay import Transport
from multiplay.types import FloatArray

ONE, BATCH, POT, LEAN, HIGHS, SCIPY = (
    *("multiplay", "multiplay, 1 of 100", "POT ot.emd", "POT without checks"),
    *("scipy linprog", "scipy assignment"),
)
Solve = Callable[[FloatArray], NDArray[Any]]  # a cost vector to a plan


def run(quick: bool, sizes: Sequence[Size] = SIZES) -> list[Section]:
    """Measure with new random costs in every call."""
    budget, forecast = 1.0 if quick else 4.0, TimeForecast(5.0 if quick else 60.0, {HIGHS: 1.5})
    rows, units, targets = [], [], []
    for size in sizes:
        plans = transport(size)
        solvers = {POT: _pot(plans), LEAN: _pot(plans, center_dual=False, check_marginals=False)}
        row = _compare(plans, solvers | {HIGHS: _highs(plans)}, budget, forecast)
        rows.append(row)
        targets += _targets(plans, row, budget)
        plans = Transport([1] * size[0], [1] * size[0])
        solvers = {SCIPY: _assignment(plans), POT: _pot(plans)}
        units.append(_compare(plans, solvers, budget, forecast))
    shows = "µs per cost vector; fresh uniform costs, one at a time and in a batch of 100."
    return [
        Section("Oracle on transport", shows, rows, targets, [_plot("plan", rows)]),
        Section("Oracle on unit supplies", shows, units, [], [_plot("assignment", units)]),
    ]


def _targets(plans: Transport, row: dict[str, Any], budget: float) -> list[Target]:
    """Measure multiplay and POT alone in short turns, for a precise ratio."""
    if row["size"] not in ("3x2", "10x10", "200x200"):
        return []
    both: dict[str, Solve] = {ONE: plans.argmin, POT: _pot(plans)}
    timings, _ = compare(both, list(_costs(plans)), budget)
    ratios = {
        "one at a time": timings[POT].median / timings[ONE].median,
        "100 at once": row[POT] / row[BATCH],
    }
    return [
        Target(
            f"oracle, {row['size']}, {how}, times faster than ot.emd",
            ratio,
            10 if plans.d <= 100 else 1,
            at_least=True,
        )
        for how, ratio in ratios.items()
    ]


def _costs(plans: Transport) -> FloatArray:
    """Return many cost vectors: branch prediction adapts to a few that are repeated."""
    number = 100 * min(100, max(2, 40_000 // plans.d))
    return np.random.default_rng(0).random((number, plans.d))


def _compare(
    plans: Transport, solvers: Mapping[str, Solve], budget: float, forecast: TimeForecast
) -> dict[str, Any]:
    costs = _costs(plans)
    batches = cycle(costs.reshape(-1, 100, plans.d))
    row: dict[str, Any] = {"size": label((len(plans.supply), len(plans.demand))), "arms": plans.d}
    contenders: dict[str, Solve] = {ONE: plans.argmin}
    contenders |= {BATCH: lambda one: plans.argmin(next(batches))[0]} | dict(solvers)
    row |= {name: forecast.too_long(name, plans.d) for name in contenders}
    included = {name: solve for name, solve in contenders.items() if row[name] is None}
    timings, answers = compare(included, list(costs), budget)
    forecast.record(plans.d, {name: timing.first for name, timing in timings.items()})
    values = {name: float(answer.ravel() @ costs[0]) for name, answer in answers.items()}
    if not np.allclose(list(values.values()), values[ONE], rtol=1e-6):
        raise ArithmeticError(f"the solvers disagree at {plans.d} arms: {values}")
    row |= {name: 1e6 * timing.median for name, timing in timings.items()}
    row[BATCH] /= 100
    return row


def _pot(plans: Transport, **options: bool) -> Solve:
    supply, demand = plans.supply.astype(float), plans.demand.astype(float)
    shape = (len(supply), len(demand))
    return lambda costs: np.asarray(ot.emd(supply, demand, costs.reshape(shape), **options))


def _highs(plans: Transport) -> Solve:
    (A, b), solver = margins(plans), cast(Any, linprog)
    return lambda costs: np.asarray(solver(costs, A_eq=A, b_eq=b, method="highs").x)


def _assignment(plans: Transport) -> Solve:
    nodes = len(plans.supply)

    def solve(costs: FloatArray) -> FloatArray:
        plan = np.zeros((nodes, nodes))
        plan[linear_sum_assignment(costs.reshape(nodes, nodes))] = 1.0
        return plan

    return solve


def _plot(what: str, rows: list[dict[str, Any]]) -> Plot:
    columns = {column: column for column in rows[0] if column not in ("size", "arms")}
    lines = curves(rows, "arms", columns)
    return Plot(
        f"oracle-{what}", f"Best {what} for fresh costs", "arms d", "µs per cost vector", lines, 100
    )
