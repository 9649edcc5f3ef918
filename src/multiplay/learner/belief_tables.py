"""Beliefs as tables, in the user's unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from multiplay.learner.beliefs import Mind
from multiplay.learner.plays import times
from multiplay.types import IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd


def arms(mind: Mind, level: float, places: IntArray | None = None) -> pd.DataFrame:
    """Return one row for each arm ever met, or for those at some places."""
    import pandas as pd

    names = mind.roster.names
    if places is not None:
        names = tuple(names[place] for place in places)
    low, scale = mind.ranges.of(names).low, mind.ranges.scale
    below, above = mind.intervals(level, places)
    seen = mind.seen.at(places)
    return pd.DataFrame(
        {
            "arm": pd.Series(names, dtype=object),
            "seen": seen["units"].astype(np.int64),
            "mean": low + scale * mind.averages(places),
            "low": low + scale * below,
            "high": low + scale * above,
            "last_seen": times(seen["last"]),
            "share": seen["plans"] / max(mind.told, 1),
        }
    )


def drift(mind: Mind, level: float) -> pd.DataFrame:
    """Return one row for each arm whose recent losses do not fit the old ones."""
    import pandas as pd

    names, scale = mind.roster.names, mind.ranges.scale
    low, alarms = mind.ranges.of(names).low, mind.seen.drift.alarms(level)
    places = np.array([alarm.arm for alarm in alarms], dtype=np.int64)
    return pd.DataFrame(
        {
            "arm": pd.Series([names[place] for place in places], dtype=object),
            "since": np.array([alarm.since for alarm in alarms], dtype=np.int64),
            "before": low[places] + scale * np.array([alarm.before for alarm in alarms]),
            "after": low[places] + scale * np.array([alarm.after for alarm in alarms]),
            "units": np.array([alarm.recent for alarm in alarms], dtype=np.int64),
        }
    )
