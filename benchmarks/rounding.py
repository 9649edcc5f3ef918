"""Random actions with mean x: dependent rounding, compared with decomposition into vertices."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.harness import Plot, Section, Target, TimeForecast, compare, curves
from benchmarks.instances import SIZES, Size, label, recorded_steps, transport
from multiplay import Streams, Transport
from multiplay.random import POLICY
from multiplay.types import Arrays, FloatArray, IntArray

OURS, OTHER = "dependent rounding", "decomposition"


def run(quick: bool, sizes: Sequence[Size] = SIZES) -> list[Section]:
    """Measure at the x of consecutive rounds of GenLBINFV."""
    forecast = TimeForecast(5.0 if quick else 60.0, {OTHER: 1.8})
    rows, targets = [], []
    for size in sizes:
        plans = transport(size)
        steps = recorded_steps(plans)
        left_out = forecast.too_long(OTHER, plans.d)
        row: dict[str, Any] = {"size": label(size), "arms": plans.d}
        contenders = _contenders(plans)
        if left_out:
            del contenders[OTHER]
        points = [step.point for step in steps]
        timings, answers = compare(contenders, points, 1.0 if quick else 4.0)
        forecast.record(plans.d, {name: timing.first for name, timing in timings.items()})
        row |= {f"{name}, µs": 1e6 * timing.median for name, timing in timings.items()}
        if left_out:
            row[f"{OTHER}, µs"] = left_out
        else:
            vertices, weights = answers[OTHER]
            if not np.allclose(weights @ vertices, points[0]["x"][0], rtol=0, atol=1e-9 * plans.M):
                raise ArithmeticError(f"the decomposition at {plans.d} arms does not give x")
            row |= {
                "vertices": len(weights),
                "times faster": row[f"{OTHER}, µs"] / row[f"{OURS}, µs"],
            }
            if size == (50, 50):
                what = "rounding, 50x50, times faster than decomposition"
                targets.append(Target(what, row["times faster"], 100, at_least=True))
        rows.append(row)
    shows = (
        "One draw, at the x of consecutive rounds of GenLBINFV. The decomposition calls the "
        "compiled oracle for vertices on the support of the rest, each with its largest weight."
    )
    lines = curves(rows, "arms", {name: f"{name}, µs" for name in (OURS, OTHER)})
    plot = Plot("rounding", "One draw with mean x", "arms d", "µs per draw", lines, fit_from=100)
    return [Section("Rounding", shows, rows, targets, [plot])]


def _contenders(plans: Transport) -> dict[str, Callable[[Arrays], Any]]:
    rng = Streams.spawn(0, POLICY, [0])
    return {
        OURS: lambda point: plans.hull.draw(point, rng),
        OTHER: lambda point: decompose(plans, point["x"][0]),
    }


def decompose(plans: Transport, x: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return vertices and weights whose convex combination is x.

    The oracle finds a vertex on the support of the remainder, and the largest multiple that fits
    is subtracted. That empties an arm each time, so there are at most d + 1 vertices. With
    logarithms as costs the oracle avoids small arms: three times fewer vertices than with zeros.
    """
    left, mass = x.copy(), 1.0
    vertices: list[IntArray] = []
    weights: list[float] = []
    while mass > 1e-12 and len(weights) <= plans.d:
        costs = np.full(len(x), 1e3 * plans.M)
        support = left > 0
        costs[support] = -np.log(left[support] / mass)
        vertex = plans.oracle(costs[None])[0]
        used = np.flatnonzero(vertex)
        ratios = left[used] / vertex[used]
        weight = float(ratios.min())
        if weight <= 0:  # because of rounding errors, no vertex fits the remainder
            break
        left[used] = np.where(ratios == weight, 0.0, left[used] - weight * vertex[used])
        mass -= weight
        vertices.append(vertex)
        weights.append(weight)
    shares = np.array(weights)
    return np.array(vertices), shares / shares.sum()
