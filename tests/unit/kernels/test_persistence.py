"""Filters of losses that persist, their evidence and forecasts, compared with a dense twin."""

import numpy as np
import persistence_twin as twin
import pytest
from persistence_twin import Seen

from multiplay.feedback import Feedback
from multiplay.kernels import persistence as kernels
from multiplay.kernels.moments import AVERAGE, KEPT, UNITS
from multiplay.kernels.persistence import (
    ALL_MEAN,
    ALL_UNITS,
    EVIDENCE,
    JUMPS,
    LATEST,
    LONG_RUN,
    M0,
    M1,
    MEAN,
    MODELS,
    P00,
    P01,
    P11,
    REPORTS,
    SQUARES,
    VARIANCE,
)
from multiplay.posteriors.memories import Persists
from multiplay.posteriors.moments import Moments
from multiplay.random import Streams
from multiplay.types import Arrays

D = 3


def told(rounds: int, seed: int) -> tuple[Arrays, list[list[Seen]]]:
    """Return a state after some rounds, in which arms were idle at times, and the reports."""
    rng, memory = np.random.default_rng(seed), Persists()
    of, seen = Moments(memory), [list[Seen]() for _ in range(D)]
    state, x = memory.start(of, 1, D), np.zeros(D)
    for t in range(2, rounds + 2):
        state["t"] += 1
        x = 0.9 * x + 0.05 * rng.standard_normal(D)
        reports = np.zeros((1, D, KEPT))
        for i in range(D):
            if rng.random() < (0.9, 0.5, 0.1)[i]:
                units, y = rng.integers(1, 5), np.clip(0.4 + x[i], 0, 1)
                reports[0, i, [UNITS, AVERAGE]] = units, y
                seen[i].append(Seen(t, float(units), float(y)))
        memory.learn(of, state, Feedback.of_reports(reports), Streams.spawn(0, 0, [0]))
    return state, seen


def noises(reports: list[Seen]) -> list[float]:
    """Return R of each report: totals tell nothing of what units have in common."""
    return [1 / report.units for report in reports]


@pytest.mark.parametrize("g", range(JUMPS))
@pytest.mark.parametrize("seed", [1, 2])
def test_a_filter_is_the_dense_normal_distribution(g: int, seed: int) -> None:
    """Mean and covariance of (mu, x), and the squared errors, whatever the gaps."""
    state, seen = told(40, seed)
    model = float(MODELS[g, 0]), float(MODELS[g, 1])
    for row, reports in zip(state["filters"][0, :, g], seen, strict=True):
        if not reports:
            assert (row == 0).all()
            continue
        dense = twin.given(reports, noises(reports), model, reports[-1].round)
        scale = 1 + abs(dense.covariance).max()
        np.testing.assert_allclose(row[[M0, M1]], dense.mean, rtol=1e-6, atol=1e-9 * scale)
        found = [[row[P00], row[P01]], [row[P01], row[P11]]]
        np.testing.assert_allclose(found, dense.covariance, rtol=1e-6, atol=1e-9 * scale)
        errors = twin.forecasts(reports, noises(reports), model)
        assert row[SQUARES] == pytest.approx(sum(e**2 / S for e, S in errors), rel=1e-6)


def test_evidence_is_that_of_forecasts_and_counts_for_the_gap() -> None:
    """Of one arm that was told alone: s^2 follows from its own errors so far."""
    memory, seen = (
        Persists(),
        [Seen(t, 2.0, y) for t, y in ((2, 0.3), (3, 0.5), (9, 0.2), (30, 0.4))],
    )
    of = Moments(memory)
    state = memory.start(of, 1, 1)
    for report in seen:
        state["t"][:] = report.round
        reports = np.zeros((1, 1, KEPT))
        reports[0, 0, [UNITS, AVERAGE]] = report.units, report.average
        memory.learn(of, state, Feedback.of_reports(reports), Streams.spawn(0, 0, [0]))
    for g in range(JUMPS):
        model, expected, squares = (float(MODELS[g, 0]), float(MODELS[g, 1])), 0.0, 0.0
        for k, (error, S) in enumerate(twin.forecasts(seen, noises(seen), model), 1):
            n, units = float(k), sum(one.units for one in seen[:k])
            average = sum(one.units * one.average for one in seen[:k]) / units
            coin = average * (1 - average)
            phi = (0.25 + squares) / (0.25 + (n - 1) * coin)
            s2 = (squares + 6 * phi * coin) / (n - 1 + 6)
            count = min(seen[k].round - seen[k - 1].round, 3)
            expected = 0.99 * expected + count * twin.log_student(error, S * s2, n - 1 + 4)
            squares += error**2 / S
        assert state["filters"][0, 0, g, EVIDENCE] == pytest.approx(expected, rel=1e-8)
    trace = state["traces"][0, 0]
    assert trace[[REPORTS, ALL_UNITS]].tolist() == [4, 8]
    assert trace[ALL_MEAN] == pytest.approx(0.35)


@pytest.mark.parametrize("seed", [3, 4])
def test_beliefs_are_dense_forecasts_with_a_prior_of_all_arms(seed: int) -> None:
    """Mean and variance of the next round, and the long-run mean, of every model with weight."""
    state, seen = told(60, seed)
    filters, traces, gaps = (state[name][0] for name in ("filters", "traces", "gaps"))
    weights, found = np.empty(JUMPS + 1), np.zeros((JUMPS, D, 3))
    now = float(state["t"][0])
    kernels.believe(filters, traces, gaps, now, weights, found)
    assert weights.sum() == pytest.approx(1.0)
    n, total = traces[:, REPORTS], traces[:, ALL_UNITS] @ traces[:, ALL_MEAN]
    mean = total / traces[:, ALL_UNITS].sum()
    k = (traces[:, ALL_UNITS] * traces[:, ALL_MEAN] + 2 * mean) / (traces[:, ALL_UNITS] + 2)
    coins = k * (1 - k)
    squares = filters[:, :, SQUARES]
    phi = (0.25 + squares.sum(axis=0)) / (0.25 + ((n - 1).clip(0) * coins).sum())
    s2 = (squares + 6 * phi * coins[:, None]) / ((n - 1).clip(0)[:, None] + 6)
    heaviest = int(weights[:JUMPS].argmax())
    means, own = filters[:, heaviest, M0], s2[:, heaviest] * filters[:, heaviest, P00]
    m = (0.5 + means.sum()) / (D + 1)
    spread = max((1 / 12 + ((means - m) ** 2 - own).clip(0).sum()) / (D + 1), 2e-4)
    for g in range(1, JUMPS):
        if weights[g] == 0:
            continue
        model = float(MODELS[g, 0]), float(MODELS[g, 1])
        for i, reports in enumerate(seen):
            gap, wide = now + 1 - reports[-1].round, 1.0
            for j in range(1, int(np.log2(gap)) + 1 if gap >= 2 else 0):
                wide = max(wide, (2 + gaps[j, 0]) / (2 + gaps[j, 1]))
            scale = s2[i, g] * wide
            prior = m, spread / scale
            dense = twin.given(reports, noises(reports), model, now + 1, prior)
            together = dense.covariance.sum() * scale
            expected = {MEAN: dense.mean.sum(), VARIANCE: together, LONG_RUN: dense.mean[0]}
            for column, value in expected.items():
                assert found[g, i, column] == pytest.approx(value, rel=1e-5, abs=1e-9)


def delivered(rng: np.random.Generator, rounds: int, late: int) -> list[int]:
    """Return rounds in the order in which their reports come, each up to ``late`` rounds late."""
    order = np.argsort(np.arange(rounds) + rng.integers(0, late + 1, rounds), kind="stable")
    return [int(t) + 2 for t in order]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("late", [2, 6])
def test_late_reports_are_filtered_in_the_order_of_their_rounds(seed: int, late: int) -> None:
    """The twin filters all reports again from the start, in order; each arm has one a round."""
    rng, memory, rounds = np.random.default_rng(seed), Persists(), 40
    of = Moments(memory)
    state = memory.start(of, 1, D)
    losses, units = rng.random((rounds + 2, D)), rng.integers(1, 4, (rounds + 2, D))
    idle = rng.random((rounds + 2, D)) < 0.3
    seen = [list[Seen]() for _ in range(D)]
    order = delivered(rng, rounds, late)
    assert order != sorted(order)
    for t in order:
        state["t"] += 1
        reports = np.zeros((1, D, KEPT))
        for i in range(D):
            if not idle[t, i]:
                reports[0, i, [UNITS, AVERAGE]] = units[t, i], losses[t, i]
                seen[i].append(Seen(t, float(units[t, i]), float(losses[t, i])))
        feedback = Feedback.of_reports(reports)
        memory.learn(of, state, feedback, Streams.spawn(0, 0, [0]), np.array([t]))
    for i, told_so in enumerate(seen):
        in_order = sorted(told_so)
        assert state["traces"][0, i, LATEST] == in_order[-1].round
        for g in range(JUMPS):
            model = float(MODELS[g, 0]), float(MODELS[g, 1])
            row = state["filters"][0, i, g]
            dense = twin.given(in_order, noises(in_order), model, in_order[-1].round)
            scale = 1 + abs(dense.covariance).max()
            np.testing.assert_allclose(row[[M0, M1]], dense.mean, rtol=1e-6, atol=1e-9 * scale)
            found = [[row[P00], row[P01]], [row[P01], row[P11]]]
            np.testing.assert_allclose(found, dense.covariance, rtol=1e-6, atol=1e-9 * scale)
            squares = sum(e**2 / S for e, S in twin.forecasts(in_order, noises(in_order), model))
            assert row[SQUARES] == pytest.approx(squares, rel=1e-6)


def test_a_report_that_is_later_than_all_that_are_kept_comes_before_these() -> None:
    """Of 20 reports the last 8 are kept: one of round 2 counts as one of the round before them."""
    memory = Persists()
    of, rng = Moments(memory), Streams.spawn(0, 0, [0])
    state = memory.start(of, 1, 1)
    for t in [*range(3, 23), 2]:
        state["t"] += 1
        reports = np.zeros((1, 1, KEPT))
        reports[0, 0, [UNITS, AVERAGE]] = 1.0, 0.02 * t
        memory.learn(of, state, Feedback.of_reports(reports), rng, np.array([t]))
    in_order = [Seen(t, 1.0, 0.02 * t) for t in range(3, 23)]
    in_order.insert(12, Seen(14, 1.0, 0.04))
    for g in range(1, JUMPS):
        model = float(MODELS[g, 0]), float(MODELS[g, 1])
        dense = twin.given(in_order, noises(in_order), model, 22)
        row = state["filters"][0, 0, g]
        np.testing.assert_allclose(row[[M0, M1]], dense.mean, rtol=1e-5, atol=1e-7)
