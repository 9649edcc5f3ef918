"""Played days and bills, as savings are estimated from them: sums by arm, in the user's unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from multiplay.actions import ActionSet
from multiplay.types import FloatArray, IntArray

DAY = 86_400.0  # seconds
DATE = re.compile(r"\d{4}-\d\d-\d\d")  # at the beginning of a key
MOST_A_DAY = 2  # plays, on average, whose times are read as dates
PLAYS_OF_A_WEEK = 7  # where they are not


class Bills(NamedTuple):
    """The losses of one day that count as bills only: external plans, imported tables.

    Attributes
    ----------
    time : float
        Seconds since 1970, in UTC; NaN if it is not known.
    key : str
        The key of the day; a date such as "2026-03-01" is read as its time. "" if it has none.
    names : tuple of strings
        The arms.
    units : array of integers
        The number of units seen of each arm.
    total : array
        The sum of their losses, in the user's unit.
    squares : array
        The sum of the squares of their losses; NaN where only the total of several units is known.
    phi : array or None
        The features of each arm, scaled, with an intercept; None if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> units = np.array([2, 0])
    >>> Bills(0.0, "", ("air", "sea"), units, np.array([9.0, 0]), np.array([41.0, 0])).units
    array([2, 0])
    """

    time: float
    key: str
    names: tuple[str, ...]
    units: IntArray
    total: FloatArray
    squares: FloatArray
    phi: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class PlayedDay:
    """A play that was told: its set, its plan, and its bills; arrays are over the arms of the set.

    Parameters
    ----------
    time
        Seconds since 1970, in UTC; NaN if it is not known.
    key
        The key of the play; a date such as "2026-03-01" is read as its time. "" if it has none.
    actions
        The set of the day with its limits, without offset and bounds: costs in the user's unit.
    action
        The plan that was played.
    units, total, squares
        As in ``Bills``: units seen of each arm, the sum of their losses, and that of their squares.
    x
        The mean of the plan, from which it was drawn (FTRL); None where it was not logged.
    phi
        As in ``Bills``.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import Budget
    >>> plan, total = np.array([2, 0]), np.array([9.0, 0.0])
    >>> day = PlayedDay(0.0, "", Budget(2, [2, 2]), plan, plan, total, np.array([41.0, 0.0]))
    >>> day.bills.names
    ('arm 1', 'arm 2')
    """

    time: float
    key: str
    actions: ActionSet
    action: IntArray
    units: IntArray
    total: FloatArray
    squares: FloatArray
    x: FloatArray | None = None
    phi: FloatArray | None = None

    @property
    def bills(self) -> Bills:
        """The same losses, as bills only."""
        names = self.actions.names
        return Bills(self.time, self.key, names, self.units, self.total, self.squares, self.phi)

    def certain(self, action: IntArray) -> float:
        """Return the cost of an action that is known: of units not served, and of the set."""
        actions = self.actions
        unmet = sum(actions.unmet(action).values()) if actions.penalty else 0
        return actions.sign * actions.penalty * unmet + float(actions.known_cost(action))


class Calendar(NamedTuple):
    """The weeks of bills and days.

    Attributes
    ----------
    place : array
        The time of each of the bills, and then of the days, in weeks from the first day.
    dates : tuple of strings
        The same as text: a date, or the number of the play; "" for bills without a time.
    week : array of integers
        The week of each of the days.
    labels : tuple of strings
        The weeks as text.
    """

    place: FloatArray
    dates: tuple[str, ...]
    week: IntArray
    labels: tuple[str, ...]


def calendar(bills: Sequence[Bills], days: Sequence[PlayedDay]) -> Calendar:
    """Return the weeks of some bills and days, each in their order.

    Weeks begin with the first day. Bills without a time count as those of the days before it, one a
    day. Where the time of a play is not known, or plays follow each other faster than two a day,
    seven plays count as a week.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import Budget
    >>> one = np.ones(2, int), np.ones(2, int), np.ones(2), np.ones(2)
    >>> days = [PlayedDay(np.nan, f"2026-03-{t:02}", Budget(2, [2, 2]), *one) for t in range(1, 11)]
    >>> calendar([], days).labels
    ('2026-03-01', '2026-03-08')
    >>> calendar([], [PlayedDay(np.nan, "", Budget(2, [2, 2]), *one) for _ in range(10)]).labels
    ('plays 1 to 7', 'plays 8 to 10')
    """
    first, count = len(bills), len(days)
    both: list[Bills | PlayedDay] = [*bills, *days]
    when = np.array([_seconds(one) for one in both])
    unknown = np.flatnonzero(~np.isfinite(when[:first]))
    when[unknown] = when[first:].min() - DAY * np.arange(len(unknown), 0, -1)
    span = float(np.ptp(when[first:]))
    if not np.isfinite(when).all() or span < (count - 1) * DAY / MOST_A_DAY:
        number = np.arange(len(when)) - first
        place, dates = number / PLAYS_OF_A_WEEK, [f"play {k + 1}" if k >= 0 else "" for k in number]
        week = number[first:] // PLAYS_OF_A_WEEK
        begin = np.arange(0, count, PLAYS_OF_A_WEEK)
        labels = [f"plays {k + 1} to {min(k + PLAYS_OF_A_WEEK, count)}" for k in begin]
        return Calendar(place, tuple(dates), week, tuple(labels))
    start = np.floor(when[first:].min() / DAY) * DAY
    place = (when - start) / (7 * DAY)
    used, week = np.unique(np.floor(place[first:]), return_inverse=True)
    labels = [_date(start + 7 * DAY * k) for k in used]
    dates = ["" if t in unknown else _date(seconds) for t, seconds in enumerate(when)]
    return Calendar(place, tuple(dates), week.astype(np.int64), tuple(labels))


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"


def _seconds(day: Bills | PlayedDay) -> float:
    """Return the time of a day: its key if that is a date, else the time of the play.

    The number of an order, such as "10000725", is not a date.
    """
    try:
        when = datetime.fromisoformat(day.key if DATE.match(day.key) else "")
    except ValueError:
        return day.time
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
