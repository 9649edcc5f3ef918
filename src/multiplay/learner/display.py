"""What notebooks show of a learner, a study, a play and a plan: nothing of them is changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay._support import html
from multiplay._support.formatting import (
    UNKNOWN,
    Table,
    amount,
    between,
    brief_policy,
    chosen,
    counted,
    number,
    percent,
    plan,
)
from multiplay.errors import InvalidInput, StoreError
from multiplay.learner import belief_tables
from multiplay.learner.beliefs import Mind
from multiplay.learner.engine import Core
from multiplay.learner.plays import Estimate, PendingPlay, PendingState, Plan
from multiplay.types import IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

LEVEL = 0.95
MOST_ARMS = 20
MOST_PENDING = 5
MOST_ROWS = 30  # of a plan
FEW = 10_000  # arms of a set for which somebody who only looks can wait for an interval
COLUMNS = ["arm", "seen", "mean", f"{LEVEL:.0%} interval".replace("%", " %"), "in plans"]


class Open(NamedTuple):
    """A play that waits: what it plays, and what it was expected to cost."""

    id: int
    key: str | None
    plan: Mapping[str, int]
    expected: float


def shown(title: str, where: Mapping[str, str], core: Core) -> str:
    """Return the policy, what was done so far, what waits, and the arms that are in most plans.

    ``where`` is what else there is to say of a study.
    """
    mind, pending = core.mind, len(core.pending)
    done = {"asked": core.asked, "told": mind.told}
    also = {"pending": pending, "numbers clipped": core.clipped}
    facts = {
        **where,
        "policy": brief_policy(mind.policy),
        "set": f"{type(mind.actions).__name__}, {counted(len(mind.roster.names), 'arm')}",
        "unit": str(mind.ranges),
        "plays": counts(done, also),
    }
    arms = belief_tables.arms(mind, LEVEL, most_played(mind, MOST_ARMS))
    first = islice(core.pending.items(), MOST_PENDING)
    plays = [Open(id, play.key, _played(play), play.expected) for id, play in first]
    tables = pending_table(plays, pending), arms_table(arms, len(mind.roster.names))
    return html.panel(title, facts, *map(html.shown, tables))


def counts(always: Mapping[str, int], if_any: Mapping[str, int]) -> str:
    """Return how often something was done; some of it only if it was done at all.

    Examples
    --------
    >>> counts({"asked": 3, "told": 0}, {"pending": 3, "clipped": 0})
    '3 asked, 0 told, 3 pending'
    """
    some = {word: count for word, count in if_any.items() if count}
    return ", ".join(f"{count} {word}" for word, count in {**always, **some}.items())


def most_played(mind: Mind, most: int) -> IntArray:
    """Return the places of the arms that are in most plans, and of those the most often seen."""
    plans, units = (mind.seen.columns[name] for name in ("plans", "units"))
    return np.lexsort((-units, -plans))[:most]


def _played(play: PendingState) -> dict[str, int]:
    """Return the units of the arms that are played, without a walk over all others."""
    names, action = play.today.actions.names, play.action[0]
    return {names[i]: int(action[i]) for i in np.flatnonzero(action)}


def arms_table(arms: pd.DataFrame, count: int) -> Table:
    """Return some arms out of so many, as ``Learner.arms`` gives them."""
    rows = [
        [
            arm.arm,
            str(arm.seen),
            amount(arm.mean),
            between(arm.low, arm.high),
            percent(arm.share),
        ]
        for arm in _rows(arms)
    ]
    more = count - len(rows)
    note = f"And {counted(more, 'more arm')}, in no more plans than these." if more else ""
    return Table("Arms", COLUMNS, rows, note)


def pending_table(plays: Iterable[Open], count: int) -> Table:
    """Return some plays that wait out of so many."""
    rows = [
        [str(one.id), one.key or UNKNOWN, plan(one.plan), amount(one.expected)] for one in plays
    ]
    more = count - len(rows)
    note = f"And {more} more, asked later." if more else ""
    return Table("Plays that wait", ["play", "key", "plan", "expected"], rows, note, labels=3)


def shown_play(play: PendingPlay) -> str:
    """Return a play: what to tell its losses to, its plan, and what it should cost."""
    facts = {"key": play.key} if play.key is not None else {}
    facts |= {"hurried": "the time limit was over"} if play.truncated else {}
    return _plan(f"PendingPlay {play.id}", facts, play)


def shown_plan(plan: Plan) -> str:
    """Return a plan, and what it should cost."""
    return _plan("Plan", {}, plan)


def _plan(title: str, facts: dict[str, str], one: PendingPlay | Plan) -> str:
    played = chosen(one.plan)
    facts |= {"units": str(int(one.action.sum())), "expected": _said(_expected(one))}
    rows = [[name, str(units)] for name, units in islice(played.items(), MOST_ROWS)]
    left_out = len(played) - len(rows), len(one.plan) - len(played)
    notes = [
        f"And {left_out[0]} more arms that are played." if left_out[0] else "",
        f"{counted(left_out[1], 'arm')} without a unit." if left_out[1] else "",
    ]
    table = Table("", ["arm", "units"], rows or [["nothing", "0"]], " ".join(filter(None, notes)))
    return html.panel(title, facts, html.shown(table))


def _expected(one: PendingPlay | Plan) -> Estimate | None:
    """Return what is expected, if somebody who only looks can have it.

    It is not kept: ``expected`` is what is known when it is read for the first time.
    """
    if "expected" in vars(one) or len(one.action) <= FEW:
        with suppress(StoreError, InvalidInput):
            return vars(one).get("expected") or one._expect()
    return None


def _said(expected: Estimate | None) -> str:
    if expected is None:
        return "read .expected to have it"
    if np.isnan(expected.total):
        return "not known yet"
    known = np.isfinite([expected.low, expected.high]).all()
    ends = f" ({between(expected.low, expected.high)})" if known else ""
    return f"{number(expected.total)} in all{ends}"


def _rows(table: pd.DataFrame) -> Sequence[Any]:
    return [*table.itertuples(index=False)]
