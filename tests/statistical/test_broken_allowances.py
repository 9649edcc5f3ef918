"""Allowances: how often losses of 0 and 1 break them, and their bound against simulated sums."""

import numpy as np
import pytest
from benchmarks.allowance import ADS, COINS, PLANS, Case, play, violated
from scipy.special import hyp1f1

from multiplay.actions import ActionSet
from multiplay.constraints.baseline import ArmBeliefs, Margin

SURE = 0.99


def of_coins(n: np.ndarray, ones: np.ndarray) -> ArmBeliefs:
    """Return what is believed of arms with so many losses of 1 among n units."""
    mean = ones / np.maximum(n, 1)
    low = np.zeros_like(mean)
    return ArmBeliefs.of(n.astype(float), mean, ones * (1 - mean), low, low + 1, SURE)


def test_moments_and_generating_function_of_a_beta_distribution() -> None:
    """Mean, variance and scale are those of Beta(1 + ones, 1 + zeros), and bound its tails."""
    risk, rng, closest = -np.log(1 - SURE), np.random.default_rng(9), 0.0
    for _ in range(300):
        n = int(rng.integers(0, 60))
        ones = int(rng.integers(0, n + 1))
        a, b = 1.0 + ones, 1.0 + n - ones
        found = of_coins(np.array([n]), np.array([ones]))
        mean, variance = a / (a + b), a * b / (a + b) ** 2 / (a + b + 1)
        scale = (b - a) / (a + b) / (a + b + 2)
        assert found.mean[0] == pytest.approx(mean)
        assert found.tail[0] == pytest.approx(risk * scale)
        assert found.square[0] <= 2 * risk * variance * (1 + 1e-9)
        for side in (1.0, -1.0):
            largest = max(side * scale, 0.0)
            for share in (0.2, 0.5, 0.9):
                x = share / largest if largest > 0 else share * 20
                if x < 300:
                    log_of = float(np.log(hyp1f1(a, a + b, side * x))) - side * x * mean
                    limit = variance * x**2 / (2 * (1 - largest * x))
                    assert log_of <= limit * (1 + 1e-9)
                    closest = max(closest, log_of / limit)
    assert closest > 0.95


def test_bound_against_simulated_sums() -> None:
    """Sums of beta numbers are below the bound in 1 % of draws at most; a normal bound is not."""
    rng, below, of_normal = np.random.default_rng(3), list[float](), list[float]()
    nothing = np.zeros(1)
    for _ in range(60):
        n, left = rng.integers(3, 40, 6), rng.normal(0, 3, 6) * (rng.random(6) < 0.6)
        ones = rng.binomial(n, rng.uniform(0.05, 0.8, 6))
        mean, square, tail = (one[None] for one in of_coins(n, ones))
        margin = Margin(1.0, left[None], mean, square, tail, nothing, nothing, nothing)
        draws = rng.beta(1.0 + ones, 1.0 + n - ones, (20_000, 6)) @ left
        bound = float(margin.of(np.zeros((1, 1, 6), dtype=np.int64))[0, 0])
        below.append(float((draws < bound).mean()))
        variance = mean[0] * (1 - mean[0]) / (n + 3)
        normal = left @ mean[0] - 2.326 * np.sqrt(variance @ left**2)
        of_normal.append(float((draws < normal - 1e-12).mean()))
    assert max(below) <= 0.01
    assert max(of_normal) >= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("plans", [ADS, PLANS], ids=["budget", "transport"])
def test_allowance_with_losses_of_0_and_1(plans: ActionSet) -> None:
    """It is broken in at most 1.5 % of 200 runs; a normal bound was in 19 and 4 %."""
    case = Case(COINS, "list", "GenCTS", plans=plans, share=0.05, days=50)
    made = play(case, True, 71, 200)
    broken, _ = violated(made, case.share, None)
    assert broken.mean() <= 0.015
    assert (made.played != made.baseline).mean() > 0.2
