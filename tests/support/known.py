"""Comparison of a simulated mean with a known mean."""

import numpy as np

from multiplay.types import FloatArray


def check_known(final: FloatArray, mean: float, error: float, name: str = "") -> None:
    """Assert that the mean of all trials is within 4 combined standard errors of a known mean.

    A correct program fails for one seed in 16,000.
    """
    combined = np.hypot(error, final.std(ddof=1) / len(final) ** 0.5)
    assert abs(final.mean() - mean) < 4 * combined, f"{name} {final.mean():.1f}, not {mean}"
