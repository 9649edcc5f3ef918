"""FTRL step on transport problems, compared with cvxpy and Clarabel, and scipy's SLSQP."""

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import cvxpy as cp
import numpy as np
from scipy.optimize import minimize

from benchmarks.harness import Plot, Section, Target, TimeForecast, compare, curves
from benchmarks.instances import SIZES, Size, Step, label, margins, recorded_steps, transport
from multiplay import Transport
from multiplay.types import FloatArray

OURS, ONCE, ANEW, SLSQP = "multiplay", "cvxpy built once", "cvxpy built anew", "scipy SLSQP"
GROWTH = {ONCE: 1.4, ANEW: 1.3, SLSQP: 3.0}
Solve = Callable[[Step], FloatArray]


def run(quick: bool, sizes: Sequence[Size] = SIZES) -> list[Section]:
    """Measure the step over consecutive rounds of GenLBINFV, with each solver."""
    forecast = TimeForecast(5.0 if quick else 60.0, GROWTH)
    rows, targets = [], []
    for size in sizes:
        plans = transport(size)
        steps = recorded_steps(plans)
        makers = {OURS: _ours, ONCE: _built_once, ANEW: _built_anew, SLSQP: _slsqp}
        row: dict[str, Any] = {"size": label(size), "arms": plans.d}
        row |= {f"{name}, ms": forecast.too_long(name, plans.d) for name in makers}
        solvers, making = {}, {}
        for name, make in makers.items():
            if not row[f"{name}, ms"]:
                started = time.perf_counter()
                solvers[name] = make(plans, steps[0])
                making[name] = time.perf_counter() - started
        with warnings.catch_warnings(action="ignore"):  # Clarabel warns of inaccurate solutions
            timings, answers = compare(solvers, steps, budget=1.0 if quick else 4.0)
        forecast.record(plans.d, {n: timing.median + making[n] for n, timing in timings.items()})
        row |= {f"{name}, ms": 1e3 * timing.median for name, timing in timings.items()}
        cvxpy = [(timings[name].median, name) for name in (ONCE, ANEW) if name in timings]
        if cvxpy:
            row["times faster than cvxpy"] = min(cvxpy)[0] / timings[OURS].median
        row["objectives differ by"] = f"{_disagreement(plans, steps[0], answers):.0e}"
        rows.append(row)
        if cvxpy and plans.d < 10_000:
            way = min(cvxpy)[1] + (" alone" if len(cvxpy) < 2 else "")
            what = f"FTRL step, {label(size)}, times faster than Clarabel ({way})"
            targets.append(Target(what, row["times faster than cvxpy"], 300, at_least=True))
        if size == (200, 200):
            targets.append(Target("FTRL step, 200x200", row[f"{OURS}, ms"], 10, "ms"))
    shows = (
        "One step, warm, over consecutive rounds of GenLBINFV. cvxpy with Clarabel: built once "
        "with parameters, or for each step. SLSQP starts from the last round's x. Differences of "
        "objectives are relative."
    )
    columns = {name: f"{name}, ms" for name in (OURS, ONCE, ANEW, SLSQP)}
    lines = curves(rows, "arms", columns)
    plot = Plot("step", "One FTRL step", "arms d", "ms per step", lines, fit_from=100)
    return [Section("FTRL step", shows, rows, targets, [plot])]


def _ours(plans: Transport, example: Step) -> Solve:
    minimise = plans.hull.minimise
    return lambda step: minimise(step.costs, step.beta, step.regulariser, step.warm)["x"][0]


def _problem(plans: Transport, costs: Any, weights: Any, g: float) -> tuple[Any, Any]:
    """Return the convex problem, with ``weights`` = beta n, and its variable."""
    x = cp.Variable((len(plans.supply), len(plans.demand)))
    flat = cp.vec(x, order="C")
    u = cp.multiply(flat, 1 / plans.n)
    phi = u - 1 - cp.log(u) + g * (u - cp.entr(1 - u))
    sums = [cp.sum(x, axis=1) == plans.supply, cp.sum(x, axis=0) == plans.demand]
    objective = cp.Minimize(costs @ flat + cp.sum(cp.multiply(weights, phi)))
    return cp.Problem(objective, sums), x


def _built_once(plans: Transport, example: Step) -> Solve:
    costs, weights = cp.Parameter(plans.d), cp.Parameter(plans.d, nonneg=True)
    problem, x = _problem(plans, costs, weights, float(example.regulariser.entropy[0]))

    def solve(step: Step) -> FloatArray:
        costs.value, weights.value = step.costs[0], step.beta[0] * plans.n
        problem.solve(solver=cp.CLARABEL)
        return np.asarray(x.value).ravel()

    solve(example)  # cvxpy compiles the problem
    return solve


def _built_anew(plans: Transport, example: Step) -> Solve:
    def solve(step: Step) -> FloatArray:
        weights, g = step.beta[0] * plans.n, float(step.regulariser.entropy[0])
        problem, x = _problem(plans, step.costs[0], weights, g)
        problem.solve(solver=cp.CLARABEL)
        return np.asarray(x.value).ravel()

    return solve


def _slsqp(plans: Transport, example: Step) -> Solve:
    n, solver = plans.n.astype(float), cast(Any, minimize)
    matrix, sums = margins(plans)
    A, b = matrix.toarray()[:-1], sums[:-1]  # the last equation follows from the others

    def solve(step: Step) -> FloatArray:
        costs, beta, g = step.costs[0], step.beta[0], step.regulariser.entropy[0]
        answer = solver(
            lambda x: objective(x, n, step),
            step.warm["x"][0],
            jac=lambda x: costs + beta * (1 - n / x - g * np.log1p(-x / n)),
            method="SLSQP",
            bounds=np.column_stack([1e-9 * n, (1 - 1e-9) * n]),
            constraints={"type": "eq", "fun": lambda x: A @ x - b, "jac": lambda x: A},
            options={"maxiter": 1000, "ftol": 1e-9},
        )
        return np.asarray(answer.x)

    return solve


def objective(x: FloatArray, n: FloatArray, step: Step) -> float:
    """Return <costs, x> + sum beta phi(x)."""
    u = x / n
    v = np.maximum(1 - u, 1e-300)
    phi = n * (u - 1 - np.log(u) + step.regulariser.entropy[0] * (u + v * np.log(v)))
    return float(step.costs[0] @ x + step.beta[0] @ phi)


def _disagreement(plans: Transport, step: Step, answers: dict[str, FloatArray]) -> float:
    """Return by how much the objectives of the answers differ, relative to the largest."""
    n = plans.n.astype(float)
    values = {name: objective(np.clip(x, 1e-12 * n, n), n, step) for name, x in answers.items()}
    size = max(abs(value) for value in values.values())
    spread = (max(values.values()) - min(values.values())) / size
    if not spread < 1e-5:
        raise ArithmeticError(f"the solvers disagree at {plans.d} arms: {values}")
    return spread
