"""The lower bound against a policy that comes close to it."""

import numpy as np
import pytest

from multiplay import Bernoulli, Budget, GenCTS, Stochastic, simulate, theory


@pytest.mark.slow
def test_thompson_sampling_grows_like_the_lower_bound() -> None:
    """Regret from round 10^4 to 10^5, per unit of log T, is between c / 2 and 2 c.

    With 4.9 standard errors to spare: a right program fails for one seed in a million.
    """
    arms, means = Budget(2, [2, 2, 2]), np.array([0.3, 0.5, 0.6])
    bound = theory.lower_bound(arms, means, theory.Bernoulli())
    result = simulate(
        arms,
        Stochastic(Bernoulli(means)),
        {"GenCTS": GenCTS()},
        horizon=100_000,
        trials=100,
        record=[10_000],
    )
    curves = result.regret.values[0]
    slopes = (curves[:, 1] - curves[:, 0]) / np.log(10)
    error = slopes.std(ddof=1) / len(slopes) ** 0.5
    assert slopes.mean() > bound.constant / 2 - 4.9 * error
    assert slopes.mean() < 2 * bound.constant + 4.9 * error
    assert error < bound.constant / 10, "or the test says nothing"
