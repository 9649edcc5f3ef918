"""Correlated losses: marginal distributions, correlations, and bad matrices."""

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike
from refusal import refused
from scipy import stats

from multiplay import Bernoulli, Beta, Budget, Correlated, Transport, Uniform
from multiplay.testing import check_environment
from multiplay.types import FloatArray

THREE = Budget(3, [1, 2, 1])


def losses(environment: Correlated, trials: int) -> FloatArray:
    """Return the losses of one unit of each arm in the first round, in many trials."""
    world = environment.open(THREE, 1, range(trials), seed=4)
    feedback = world.observe(np.broadcast_to(THREE.n, (trials, 3)).copy()).feedback
    assert feedback.units is not None
    assert (feedback.units[:, 1] == feedback.units[:, 2]).all(), "units share the loss of a round"
    return feedback.mean


@pytest.mark.parametrize("R", [0.5, [[1, -0.6, 0.2], [-0.6, 1, 0], [0.2, 0, 1]]], ids=str)
def test_losses_have_their_distribution_and_their_correlation(R: ArrayLike) -> None:
    """KS tests at level 1e-4; uniform losses have Spearman's correlation, 6 / pi asin(R / 2)."""
    trials = 20_000
    L = losses(Correlated(Uniform(0, [1, 0.5, 0.2]), R), trials)
    for i, high in enumerate((1, 0.5, 0.2)):
        assert stats.kstest(L[:, i], stats.uniform(0, high).cdf).pvalue > 1e-4
    for i, j in ((0, 1), (0, 2), (1, 2)):
        r = np.broadcast_to(R, (3, 3))[i, j]
        found = np.corrcoef(L[:, i], L[:, j])[0, 1]
        assert found == pytest.approx(6 / math.pi * math.asin(r / 2), abs=0.03)


def test_contract_where_arms_cannot_be_played_and_units_are_many() -> None:
    check_environment(Correlated(Beta(2, 3), -0.05), Transport([2, 0, 3], [0, 4, 1]))
    check_environment(Correlated(Bernoulli(0.3), 1.0), Budget(3_000, [2_000, 900, 900]))


@pytest.mark.parametrize(
    "bad",
    [
        1.5,
        -1.01,
        math.nan,
        "x",
        [0.5, 0.5],
        [[1, 2], [2, 1]],
        [[1, 0.5], [0.4, 1]],
        [[2, 0], [0, 1]],
        [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]],
    ],
    ids=str,
)
def test_bad_correlations_are_refused(bad: object) -> None:
    with refused("correlation"):
        Correlated(Uniform(0, 1), bad)  # type: ignore[arg-type]


def test_correlations_must_fit_the_arms() -> None:
    with refused("correlation"):
        Correlated(Uniform(0, 1), np.eye(2)).check(THREE, 10, 1)
    with refused("correlation"):
        Correlated(Uniform(0, 1), -0.6).check(THREE, 10, 1)
    with refused("distribution"):
        Correlated(Uniform(0, [1, 1]), 0.5).check(THREE, 10, 1)
    with refused("distribution"):
        Correlated(0.5, 0.5)  # type: ignore[arg-type]
