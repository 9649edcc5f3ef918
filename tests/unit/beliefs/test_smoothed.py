"""Smoothed beliefs equal a dense Gaussian posterior in which every effect is a coordinate."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from multiplay.beliefs import smoothed
from multiplay.beliefs.smoothed import Reports, Smoothed
from multiplay.types import FloatArray, IntArray

BY_DAY = ("place", "units", "total", "squares")


def drawn_reports(seed: int, days: int = 7, arms: int = 3, most: int = 6) -> Reports:
    """Return bills of some days; the last arm has none."""
    rng = np.random.default_rng(seed)
    units = rng.integers(0, most + 1, (days, arms)).astype(float)
    units[:, -1] = 0
    units[0, 0] = most
    means, shape = rng.uniform(30, 90, arms), (days, arms, most)
    bills = means[:, None] * rng.uniform(0.6, 1.4, shape) + rng.normal(0, 8, (days, 1, 1))
    bills[np.arange(most) >= units[..., None]] = 0
    place = np.sort(rng.uniform(0, 2, days))
    ends = np.zeros(arms), np.full(arms, 200.0)
    return Reports(place, units, bills.sum(axis=2), (bills**2).sum(axis=2), *ends)


def variances(reports: Reports) -> tuple[list[float], float]:
    """Return the variance of a bill of each arm, and that of all arms, by loops."""
    squares, freedom = sums_of_squares(reports)
    mean = shrunken(reports)
    best: tuple[float, list[float]] = (-math.inf, [])
    for power in (0, 1, 2):
        scale = sum(squares[i] / mean[i] ** power for i in range(len(mean))) / sum(freedom)
        target = [scale * one**power for one in mean]
        rows = list(zip(squares, freedom, target, strict=True))
        fit = sum(-free * math.log(to) - square / to for square, free, to in rows)
        best = max(best, (fit, [(square + 4 * to) / (free + 4) for square, free, to in rows]))
    return best[1], sum(squares) / sum(freedom)


def sums_of_squares(reports: Reports) -> tuple[list[float], list[float]]:
    """Return the squares of each arm within days, and their degrees of freedom."""
    days, arms = reports.units.shape
    squares, freedom = [0.0] * arms, [0.0] * arms
    for t, i in itertools.product(range(days), range(arms)):
        n = reports.units[t, i]
        if n:
            squares[i] += reports.squares[t, i] - reports.total[t, i] ** 2 / n
            freedom[i] += n - 1
    assert sum(freedom) >= smoothed.FEWEST_PAIRS, "else differences between days count"
    return squares, freedom


def shrunken(reports: Reports) -> list[float]:
    """Return the averages of the arms drawn to each other; of an arm without bills, that of all."""
    squares, freedom = sums_of_squares(reports)
    bills, total = reports.units.sum(axis=0), reports.total.sum(axis=0)
    seen = [i for i in range(len(bills)) if bills[i]]
    noise = {i: sum(squares) / sum(freedom) / bills[i] for i in seen}
    mean = {i: total[i] / bills[i] for i in seen}
    middle, typical = np.mean(list(mean.values())), np.mean(list(noise.values()))
    apart = max(np.var(list(mean.values()), ddof=1) - typical, 0.1 * typical)
    drawn = {i: middle + (mean[i] - middle) * apart / (apart + noise[i]) for i in seen}
    return [drawn.get(i, total.sum() / bills.sum()) for i in range(len(bills))]


def moves(reports: Reports, first: list[float], jumped: FloatArray) -> FloatArray:
    """Return the variance that jumps have added to each arm until each day."""
    days, arms = reports.units.shape
    gaps = np.append(0, np.diff(reports.place))
    exposure = sum(gaps[t] for t in range(days) for i in range(arms) if reports.units[t, i])
    rate = (np.isfinite(jumped).sum() + 0.5) / (exposure + 52)
    found = np.zeros((days, arms))
    for t, i in itertools.product(range(days), range(arms)):
        found[t, i] = found[t - 1, i] if t else 0.0
        found[t, i] += 0.0 if reports.units[t, i] else rate * gaps[t] * first[i]
        found[t, i] += first[i] if reports.place[t] == jumped[i] else 0.0
    return found


def dense(
    reports: Reports,
    weights: FloatArray,
    groups: IntArray,
    jumped: FloatArray,
    more: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return mean and covariance of contrasts: all models, all effects, one large matrix.

    ``more`` is added to the average bill of each day and arm, once prior and noise are known.
    """
    days, arms = reports.units.shape
    variance, pooled = variances(reports)
    bills = reports.units.sum(axis=0)
    seen = [i for i in range(arms) if bills[i]]
    mean = {i: reports.total[:, i].sum() / bills[i] for i in seen}
    overall = reports.total.sum() / bills.sum()
    relative = [one / overall for one in shrunken(reports)]
    noise = np.mean([variance[i] / bills[i] for i in seen])
    apart = max(np.var(list(mean.values()), ddof=1) - noise, 0.1 * noise) * (1 + 2 / len(seen))
    alike = seen if reports.phi is None else range(arms)
    centre = [np.mean(list(mean.values())) if i in alike else 100.0 for i in range(arms)]
    first = [apart if i in alike else 200.0**2 / 12 for i in range(arms)]
    moved = moves(reports, first, jumped)
    cells = list(itertools.product(range(days), range(arms)))
    rows = [cell for cell in cells if reports.units[cell]]
    added = np.zeros(reports.units.shape) if more is None else more
    y = np.array([reports.total[cell] / reports.units[cell] + added[cell] for cell in rows])
    contrast = np.zeros((groups.max() + 1, len(cells)))
    for place, (t, i) in enumerate(cells):
        contrast[groups[t], place] = weights[t, i]
    shown = np.array([[row == cell for cell in cells] for row in rows], float)
    fits, found = [], []
    for (q, lam), (share, kappa, g) in itertools.product(smoothed.WALKS, smoothed.COMMON):
        prior = np.zeros((len(cells), len(cells)))  # of the mean of every cell
        for (a, (t, i)), (b, (s, j)) in itertools.product(enumerate(cells), repeat=2):
            elapsed = min(reports.place[t], reports.place[s]) - reports.place.min()
            if i == j:
                prior[a, b] += first[i] + q * pooled * elapsed + lam * pooled * (t == s)
                prior[a, b] += moved[min(t, s), i]
            of_all = (g * elapsed + kappa * (t == s)) * pooled
            prior[a, b] += of_all * (relative[i] * relative[j]) ** share
            if reports.phi is not None:
                prior[a, b] += 100.0**2 * reports.phi[t, i] @ reports.phi[s, j]
        level = np.array([centre[i] for _, i in cells])
        errors = np.diag([variance[i] / reports.units[t, i] for t, i in rows])
        of_bills = shown @ prior @ shown.T + errors
        gain = prior @ shown.T @ np.linalg.inv(of_bills)
        posterior = level + gain @ (y - shown @ level)
        covariance = prior - gain @ shown @ prior
        weight = 0.1 if share == 0 and g > 0 else 1.0  # of the model, before any bill
        fits.append(multivariate_normal(shown @ level, of_bills).logpdf(y) + math.log(weight))
        found.append((contrast @ posterior, contrast @ covariance @ contrast.T))
    likely = np.exp(np.array(fits) - max(fits))
    likely /= likely.sum()
    whole = sum(w * m for w, (m, _) in zip(likely, found, strict=True))
    spread = [
        w * (v + np.outer(m - whole, m - whole)) for w, (m, v) in zip(likely, found, strict=True)
    ]
    return whole, sum(spread)


@pytest.mark.parametrize(
    ("seed", "days", "arms", "p", "jump"),
    [(0, 7, 3, 0, 0), (1, 3, 5, 0, 0), (0, 7, 3, 2, 0), (0, 7, 3, 0, 4)],
)
def test_contrasts_equal_a_dense_posterior(
    seed: int, days: int, arms: int, p: int, jump: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plans differ in their numbers of units, so that effects of days do not cancel."""
    monkeypatch.setattr(smoothed, "NEGLIGIBLE", 0.0)
    reports = drawn_reports(seed, days, arms)
    rng = np.random.default_rng([7, seed])
    weights = rng.integers(-3, 4, reports.units.shape).astype(float)
    if p:
        reports = reports._replace(phi=rng.normal(0, 0.3, (*weights.shape, p)))
    groups = np.arange(len(weights)) // 4
    jumped = np.full(arms, np.inf)
    jumped[0] = reports.place[jump] if jump else np.inf
    mean, covariance = dense(reports, weights, groups, jumped)
    found = Smoothed(reports, jumped).contrast(weights, groups)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(
        found.covariance, covariance, rtol=1e-9, atol=1e-9 * covariance.max()
    )


@pytest.mark.parametrize("seed", [0, 3])
def test_factors_are_the_linear_model_that_touches(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Means are factors times those of a dense model, whose slopes are those of the product."""
    monkeypatch.setattr(smoothed, "NEGLIGIBLE", 0.0)
    reports, rng = drawn_reports(seed), np.random.default_rng([8, seed])
    shape = days, arms = reports.units.shape
    phi = np.concatenate([np.ones((*shape, 1)), rng.normal(0, 0.5, (*shape, 2))], axis=2)
    phi[..., 2] = phi[:, :1, 2]  # of a day
    true = np.exp(0.3 * phi[..., 2])
    reports = reports._replace(
        total=reports.total * true, squares=reports.squares * true**2, phi=phi
    )
    found = Smoothed.of(reports, 1)
    assert found.tangent is not None
    base, eta = found.tangent
    bills = reports.units.sum()
    middle = sum(reports.units[cell] * phi[cell][2] for cell in np.ndindex(*shape)) / bills
    columns, slopes = phi.copy(), np.zeros(shape)
    for cell in np.ndindex(*shape):
        m = math.exp(eta[cell])
        columns[cell][2] = base[cell] * (phi[cell][2] - middle) / 200
        slopes[cell] = m
    divided = reports._replace(
        phi=columns, total=reports.total / slopes, squares=reports.squares / slopes**2
    )
    weights, groups = rng.integers(-3, 4, shape).astype(float), np.arange(days) // 4
    none = np.full(arms, np.inf)
    mean, covariance = dense(divided, weights * slopes, groups, none, base * eta)
    known = (weights * slopes * base * eta).sum(axis=1)
    mean = mean - np.bincount(groups, known)
    contrast = found.contrast(weights, groups)
    np.testing.assert_allclose(contrast.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(contrast.covariance, covariance, rtol=1e-9, atol=1e-9)
    gamma = found.coefficients[2] / 200
    np.testing.assert_allclose(eta, gamma * (phi[..., 2] - middle), atol=smoothed.EXACT)
    drawn = found.draw(4000, np.random.default_rng(seed))
    sums, (whole, deviation) = (weights * drawn).sum(axis=(1, 2)), contrast.total
    assert abs(sums.mean() - whole) < 4 * deviation / math.sqrt(4000)
    assert sums.std() == pytest.approx(deviation, rel=0.06)


def test_the_order_of_days_and_the_size_of_batches_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reports = drawn_reports(5)
    weights = np.random.default_rng(0).normal(size=reports.units.shape)
    groups = np.arange(len(weights)) // 4
    mean, covariance = Smoothed(reports).contrast(weights, groups)
    order = np.random.default_rng(1).permutation(len(weights))
    by_day = {name: getattr(reports, name)[order] for name in BY_DAY}
    shuffled = reports._replace(**by_day)
    again = Smoothed(shuffled).contrast(weights[order], groups[order])
    np.testing.assert_allclose(again.mean, mean, rtol=1e-9)
    monkeypatch.setattr(smoothed, "MOST_ENTRIES", 2 * 3 * 7**2)  # two pairs at once
    small = Smoothed(reports).contrast(weights, groups)
    np.testing.assert_allclose(small.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(small.covariance, covariance, rtol=1e-12)


@pytest.mark.parametrize("days", [56, 200])
def test_an_arm_begins_again_where_its_bills_show_a_jump(days: int) -> None:
    """Ten bills after a jump count, and not the many before it; seven other arms have none."""
    rng, arms = np.random.default_rng(4), 8
    units, means = np.ones((days, arms)), np.tile(rng.uniform(80, 200, arms), (days, 1))
    before = means[0, 0]
    means[days // 2 :, 0] += 100.0
    units[days // 2 + 10 :, 0] = 0.0
    bills = rng.normal(means, 25.0) * units
    ends = np.zeros(arms), np.full(arms, 400.0)
    reports = Reports(np.arange(days) / 7, units, bills, bills**2, *ends)
    found = Smoothed.of(reports)
    assert found.jumped.tolist() == [reports.place[days // 2], *[np.inf] * 7]
    weights, at_once = np.zeros((days, arms)), np.zeros(days, int)
    weights[days // 2 :, 0] = 2.0 / days
    mean, deviation = found.contrast(weights, at_once).total
    assert abs(mean - before - 100) < 2 * deviation < 60
    assert abs(found.contrast(weights[::-1], at_once).total[0] - before) < 10
    as_one, sure = Smoothed(reports).contrast(weights, at_once).total
    assert as_one + 2 * sure < before + 100


def test_without_a_jump_nothing_begins_again() -> None:
    reports = drawn_reports(5, days=30)
    assert not np.isfinite(Smoothed.of(reports).jumped).any()


def test_only_totals_and_constant_bills() -> None:
    """Without squares, the noise is learned between days; bills may have none."""
    rng = np.random.default_rng(3)
    units = np.full((30, 2), 2.0)
    total = rng.normal([100.0, 160.0], 10.0, (30, 2))  # of two units: variance 50 of each
    ends, difference = (np.zeros(2), np.full(2, 200.0)), np.tile([-1.0, 1.0], (30, 1)) / 30
    unknown = Smoothed(Reports(np.arange(30) / 7, units, total, np.full((30, 2), np.nan), *ends))
    assert 25 < unknown.pooled < 100
    mean, deviation = unknown.contrast(difference, np.zeros(30, int)).total
    assert abs(mean - 30) < 3 * deviation < 6
    same = np.tile([40.0, 70.0], (30, 1))
    constant = Smoothed(Reports(np.arange(30) / 7, np.ones((30, 2)), same, same**2, *ends))
    mean, deviation = constant.contrast(difference, np.zeros(30, int)).total
    assert mean == pytest.approx(30, abs=1e-3)
    assert deviation < 0.1
