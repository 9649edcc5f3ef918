"""Plans of the past: what was driven on imported days, as plans of other days."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from multiplay._support.formatting import counted
from multiplay._support.hints import Hint, Term
from multiplay.actions import ActionSet
from multiplay.actions.base import owners, unit_numbers
from multiplay.errors import InvalidInput
from multiplay.savings import Bills, PlayedDay
from multiplay.types import IntArray

DRIVEN: Final = "driven"
COMPARABLE = 2.0  # how many times fewer or more units a day of the past may have


class PastPlans(NamedTuple):
    """What was driven on the days of imported tables and external plans.

    A day is compared with a plan of the past that its set has: the demand is the same. The days of
    a set have such plans in turn, evenly from the first to the last. Where the set has none, it is
    compared with the action nearest to their average, in squares, of the days with at most twice as
    many units and at least half as many; the average is scaled to the units of the day. A day
    without such days has no plan.

    Attributes
    ----------
    text : str
        What they are, with the number of days whose demand is the same.
    plans : list of arrays, or None
        The plan for each day.
    """

    text: str
    plans: list[IntArray | None]

    @classmethod
    def of(cls, days: Sequence[PlayedDay], past: Sequence[Bills]) -> PastPlans:
        """Return the plans of the past for days; raise ``InvalidInput`` if nothing was driven."""
        of_arms = {tuple(one.names): np.zeros(0, dtype=np.int64) for one in past}
        known = dict.fromkeys(name for arms in of_arms for name in arms)
        names = dict(zip(known, range(len(known)), strict=True))
        for arms in of_arms:
            of_arms[arms] = np.array([names[name] for name in arms], dtype=np.int64)
        driven = np.zeros((len(past), len(names)), dtype=np.int64)
        for row, one in zip(driven, past, strict=True):
            row[of_arms[tuple(one.names)]] = one.units
        driven = driven[driven.any(axis=1)]
        if not len(driven):
            table = Term("learn_table(...)", "import")
            rule = Term("InProportion()", "in proportion")
            hint = Hint("Import the bills of the past with {}, or use {}.", table, rule)
            raise InvalidInput("versus", "imported days, for 'driven'", "none", hint)
        same, plans = 0, list[IntArray | None]()
        of_set: dict[ActionSet, tuple[IntArray, bool]] = {}
        counts, turns = Counter(day.actions for day in days), Counter[ActionSet]()
        for day in days:
            if day.actions not in of_set:
                of_set[day.actions] = _comparable(day.actions, driven, names)
            found, exact = of_set[day.actions]
            same += exact
            turn, count = turns[day.actions], counts[day.actions]
            turns[day.actions] += 1
            place = turn * max(len(found), count) // count
            plans.append(found[place % len(found)] if len(found) else None)
        shown = f"the plans of {counted(len(driven), 'imported day')}"
        return cls(f"{shown} (the demand is the same for {same} of {len(days)})", plans)


def _comparable(
    actions: ActionSet, driven: IntArray, names: dict[str, int]
) -> tuple[IntArray, bool]:
    """Return plans of the past for a set, one in each row, and whether the set has them."""
    places = [names.get(name, -1) for name in actions.names]
    padded = np.pad(driven, ((0, 0), (0, 1)))  # arms that were never driven have no units
    own = padded[:, places]
    served = own.sum(axis=1) == driven.sum(axis=1)
    exact = own[served & actions.contains(own)]
    if len(exact):
        return exact, True
    units = driven.sum(axis=1)
    near = own[(units <= COMPARABLE * actions.M) & (COMPARABLE * units >= actions.M)]
    if not near.any():
        return near[:0], False
    average = near.mean(axis=0)
    average *= actions.M / average.sum()
    k = unit_numbers(actions.n)
    return actions.argmin_increasing(2.0 * (k - average[owners(actions.n)]) - 1.0)[None], False
