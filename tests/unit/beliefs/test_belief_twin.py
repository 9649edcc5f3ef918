"""The slow reference of the belief model gives the numbers that its specification states."""

import numpy as np
import pytest
from belief_twin import BeliefTwin, Total
from scipy import stats


def test_four_zeros_leave_rare_losses_open() -> None:
    twin = BeliefTwin(3)
    twin.tell({0: [0.0] * 4})
    seen, unseen, _ = twin.beliefs()
    assert (seen.mean, seen.low, seen.high) == pytest.approx((0.009, 0.0, 0.309), abs=5e-4)
    assert (unseen.mean, unseen.low, unseen.high) == pytest.approx((0.156, 0.0, 1.0), abs=5e-4)


def test_a_total_alone_is_narrower_than_the_range() -> None:
    twin = BeliefTwin(3)
    twin.tell({0: Total(4, 600 / 500)})
    seen = twin.beliefs()[0]
    euros = (500 * seen.mean, 500 * seen.low, 500 * seen.high)
    assert euros == pytest.approx((153.5, 0, 471), abs=0.5)


def test_a_range_by_arm_is_knowledge() -> None:
    twin = BeliefTwin(3, low=[20 / 250, 0, 0], high=[30 / 250, 1, 1])
    twin.tell({1: [0.6, 0.5], 2: [0.4, 0.45]})
    plan = twin.estimate([4, 0, 0])
    assert [250 * x for x in plan[:3]] == pytest.approx([120, 80, 120])


def test_draws_for_coins_are_those_of_the_paper() -> None:
    twin, rng = BeliefTwin(1), np.random.default_rng(1)
    coins = rng.integers(0, 2, 20).astype(float)
    for coin in coins:
        twin.tell({0: [coin]})
    assert twin.within(0)[1] == 1
    draws, ones = twin.draw(0, rng, 4000), coins.sum()
    assert stats.kstest(draws, stats.beta(1 + ones, 1 + 20 - ones).cdf).pvalue > 0.01
