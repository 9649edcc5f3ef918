"""Regret on m-sets against numbers of independent programs."""

import numpy as np
import pytest
from known import check_known

from multiplay import Bernoulli, Budget, GenCTS, GenLBINFV, Policy, Stochastic, simulate
from multiplay.types import FloatArray

T = 10_000


def gap_means(d: int, m: int, g: float) -> FloatArray:
    return np.where(np.arange(d) < m, (1 - g) / 2, (1 + g) / 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "m", "means", "regret", "error", "trials"),
    [
        (GenCTS(), 2, gap_means(4, 2, 0.25), 22.2, 0.6, 300),
        (GenCTS(), 5, gap_means(10, 5, 0.125), 109.0, 2.5, 300),
        (GenLBINFV(epsilon=0.2), 2, np.array([0.5, 0.5, 0.9, 0.9, 0.9]), 51.7, 2.5, 200),
    ],
    ids=["GenCTS, 2 of 4", "GenCTS, 5 of 10", "GenLBINFV, 2 of 5"],
)
def test_regret_on_m_sets(
    policy: Policy, m: int, means: FloatArray, regret: float, error: float, trials: int
) -> None:
    """Within 4 combined standard errors: a right program fails for one seed in 16,000."""
    result = simulate(
        Budget(m, np.ones(len(means))),
        Stochastic(Bernoulli(means)),
        {"policy": policy},
        horizon=T,
        trials=trials,
        seed=0,
        record=1,
    )
    check_known(result.final("policy"), regret, error)
