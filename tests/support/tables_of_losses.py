"""Tables of losses whose persistence, weeks and trends are known."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.signal import lfilter

FIRST, BEFORE = "2026-01-05", 200  # a Monday; rounds before it, so that deviations are stationary
PATTERN = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, -0.5])  # of a week


def table(
    seed: int = 0,
    rounds: int = 200,
    arms: int = 10,
    rho: float = 0.0,
    deviation: float = 0.0,
    week: float = 0.0,
    own_week: float = 0.0,
    trend: float = 0.0,
    units: int = 1,
    seen: float = 1.0,
    coins: bool = False,
) -> pd.DataFrame:
    """Return bills of 80 to 220 with noise of 15 %, or coins; the arguments are shares of a bill.

    ``seen`` is the share of arms in a round, and ``trend`` the change over all rounds.
    """
    rng, t = np.random.default_rng(seed), np.arange(rounds)
    means, own = rng.uniform(80, 220, arms), own_week * rng.standard_normal((7, arms))
    noise = rng.standard_normal((BEFORE + rounds, arms))
    x = deviation * lfilter([np.sqrt(1 - rho**2)], [1.0, -rho], noise, axis=0)[BEFORE:]
    course = week * PATTERN[t % 7] + trend * (t / max(rounds - 1, 1) - 0.5)
    factors = 1 + course[:, None] + own[t % 7] + x
    round, arm = (np.repeat(one, units) for one in (rng.random((rounds, arms)) < seen).nonzero())
    costs: Any = means[arm] * factors[round, arm]
    if coins:
        losses = 1.0 * (rng.random(len(arm)) < (costs / 300).clip(0, 1))
    else:
        losses = costs * (1 + 0.15 * rng.standard_normal(len(arm)))
    dates = pd.date_range(FIRST, periods=rounds)
    return pd.DataFrame({"arm": [f"lane {k}" for k in arm], "round": dates[round], "loss": losses})
