"""What is said of tables of losses: how often it is wrong."""

from typing import Any

import numpy as np
import pytest
from tables_of_losses import table

import multiplay as mp

TABLES = 60
pytestmark = pytest.mark.slow


def checked(**given: Any) -> list[mp.DataCheck]:
    """Return what is said of many tables of 6 arms and 100 rounds."""
    return [
        mp.check_data(table(seed, rounds=100, arms=6, **given))
        for seed in range(1000, 1000 + TABLES)
    ]


@pytest.mark.parametrize("world", [{}, {"coins": True}, {"week": 0.2, "trend": 0.3}])
def test_little_is_seen_where_there_is_nothing(world: dict[str, Any]) -> None:
    """At levels of 0.01 for persistence and 0.02 for weeks and trends: 5 of 60 have p < 0.01."""
    found = checked(**world)
    assert sum(one.persists or False for one in found) <= 4
    if not world.get("week"):
        assert sum(one.week != "none" for one in found) <= 5
        assert sum(one.trend != "none" for one in found) <= 5
    else:
        assert sum(one.week == "alike" for one in found) >= TABLES - 5
        assert sum(one.trend == "alike" for one in found) >= TABLES - 5


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_intervals_of_rho_hold_it(rho: float) -> None:
    """0.95 intervals: fewer than 50 of 60 have p < 0.001; they are somewhat too narrow."""
    found = checked(rho=rho, deviation=0.2, seen=0.7)
    assert all(one.persists for one in found)
    assert sum(one.low <= rho <= one.high for one in found) >= 50
    assert np.mean([one.rho for one in found]) == pytest.approx(rho, abs=0.05)
