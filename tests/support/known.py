"""Numbers that are known from elsewhere, and what it means to meet them."""

import numpy as np

from multiplay.types import FloatArray


def check_known(final: FloatArray, mean: float, error: float, whose: str = "") -> None:
    """Expect the mean of all trials within 4 combined standard errors of a known mean.

    A right program fails for one seed in 16,000.
    """
    combined = np.hypot(error, final.std(ddof=1) / len(final) ** 0.5)
    assert abs(final.mean() - mean) < 4 * combined, f"{whose} {final.mean():.1f}, not {mean}"
