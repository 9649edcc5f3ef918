"""Facts of a learner or study as text: settings, counts, the table of arms, that of pending plays.

Notebooks, the terminal, reports and the pages of the service show the same facts and tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay._support.formatting import (
    UNKNOWN,
    Table,
    brief_policy,
    counted,
    legible,
    minute,
    percent,
    plan_text,
    plural,
    time_ago,
)
from multiplay._support.html import Panel
from multiplay._support.words import Words, money_text
from multiplay.constraints import Baseline, Constraint, Promise, SwitchingCost
from multiplay.learner.engine import Engine
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.queries import arms_frame
from multiplay.types import IntArray

if TYPE_CHECKING:  # imported where they are used: they take as long as all the rest
    import pandas as pd

LEVEL = 0.95
MOST_ARMS, MOST_PENDING = 20, 5  # rows of a panel
PLAIN = Words()


@dataclass(frozen=True)
class Facts:
    """Settings and counts of a learner or study.

    Attributes
    ----------
    policy : str
        The policy, with the settings that differ from the defaults.
    summary : str
        What the policy does.
    words : Words
        The words of the user.
    set_type : str
        The class of the action set.
    arm_count : int
        How many arms have occurred.
    loss_range : str
        What a unit can cost or bring.
    asked, told, open_plays : int
        How many plays were asked, told, and still wait for their losses; told is None where that
        is not known.
    clipped : int
        How many numbers were clipped to their range.
    constrained_by : tuple of Constraint
        What the plans must keep or pay.
    """

    policy: str
    summary: str
    words: Words
    set_type: str
    arm_count: int
    loss_range: str
    asked: int
    told: int | None
    open_plays: int
    clipped: int
    constrained_by: tuple[Constraint, ...] = field(default=(), kw_only=True)

    @classmethod
    def of(cls, engine: Engine) -> Facts:
        """Return the facts of a learner or study."""
        state = engine.state
        return Facts(
            policy=brief_policy(state.policy),
            summary=state.policy.summary,
            words=engine.words,
            set_type=type(state.actions).__name__,
            arm_count=len(state.arms.names),
            loss_range=str(state.ranges),
            asked=engine.asked,
            told=state.told,
            open_plays=len(engine.pending),
            clipped=engine.clipped,
            constrained_by=tuple(engine.constraints),
        )

    def as_text(self) -> dict[str, str]:
        """Return the facts by name, as text."""
        limits = [constraint_text(one, self.words) for one in self.constrained_by]
        return {
            "policy": self.summary,
            "settings": self.policy,
            "set": f"{self.set_type}, {self.words.arms(self.arm_count)}",
            "range": f"{self.loss_range} {self.words.currency}".rstrip(),
            **({"constraints": "; ".join(limits)} if limits else {}),
            "plans": self.counts(),
        }

    def counts(self) -> str:
        """Return how many plays were asked and told, and how many are pending if there are any.

        Examples
        --------
        >>> policy = "GenCTS", "Plays at random."
        >>> Facts(*policy, Words(), "Budget", 2, "losses from 0 to 1", 3, 0, 3, 0).counts()
        '3 asked, 0 told, 3 pending'
        """
        always = {"asked": self.asked} | ({} if self.told is None else {"told": self.told})
        if_any = {"pending": self.open_plays, "numbers clipped": self.clipped}
        found = always | {word: count for word, count in if_any.items() if count}
        return ", ".join(f"{count} {word}" for word, count in found.items())


def constraint_text(one: Constraint, words: Words) -> str:
    """Return a constraint in a few words.

    Examples
    --------
    >>> constraint_text(SwitchingCost(15.0), Words("EUR", "truck"))
    'switching cost: 15 EUR for each truck that differs from the last plan'
    """
    if isinstance(one, SwitchingCost):
        text = f"{words.money(one.cost)} for each {words.unit} that differs from the last plan"
    elif isinstance(one, Promise):
        until = "" if one.until is None else f" until {one.until}"
        text = f"{one.kind} {money_text(one.limit)}{until}"
    else:
        text = one.text if isinstance(one, Baseline) else repr(one)
    return f"{one.name}: {text}"


class PendingRow(NamedTuple):
    """A pending play: when it was asked, its units, its expected total and its plan.

    ``asked`` is NaT or None where it is not known.
    """

    id: int
    key: str | None
    asked: Any
    units: int
    expected: float
    plan: Mapping[str, int]


def by_share(arms: pd.DataFrame) -> pd.DataFrame:
    """Return a table of arms, those that are in most plans first."""
    return arms.sort_values(["share", "seen"], ascending=False, kind="stable")


def arms_table(arms: pd.DataFrame, count: int, level: float = LEVEL, words: Words = PLAIN) -> Table:
    """Return some arms as text, out of so many; ``arms`` as ``Learner.arms(level)`` returns it.

    Where losses persist, the mean is that of the next round, and there is one of the long run.
    """
    persists = not arms["long_run"].equals(arms["mean"])
    rows = [
        [
            legible(arm.arm),
            str(arm.seen),
            money_text(arm.mean),
            words.ends(arm.low, arm.high),
            *([money_text(arm.long_run)] if persists else []),
            minute(arm.last_seen),
            percent(arm.share),
        ]
        for arm in rows_of(arms)
    ]
    mean = words.in_currency(f"next {words.round}" if persists else "mean")
    columns = [words.arm, "seen", mean, f"{100 * level:.4g} % interval"]
    columns += [*(["long run"] if persists else []), "last seen", "in plans"]
    more = count - len(rows)
    note = f"And {counted(more, f'more {words.arm}')}, in fewer plans." if more > 0 else ""
    return Table(plural(words.arm).capitalize(), columns, rows, note)


def pending_table(
    plays: Iterable[PendingRow], count: int, now: datetime | None = None, words: Words = PLAIN
) -> Table:
    """Return some pending plays as text, out of so many, the oldest first.

    Without ``now``, there is no column with the time that has passed since a play was asked.
    """
    rows = [
        [
            str(one.id),
            legible(one.key or UNKNOWN),
            UNKNOWN if now is None else time_ago(one.asked, now),
            plan_text(one.plan, arm=words.arm),
            str(one.units),
            money_text(one.expected),
        ]
        for one in plays
    ]
    columns = ["no.", "key", "asked", "plan", plural(words.unit), words.in_currency("expected")]
    more = count - len(rows)
    note = f"And {more} more, asked later." if more > 0 else ""
    table = Table("Pending plans", columns, rows, note, labels=4)
    return table if now is not None else table.without("asked")


def rows_of(table: pd.DataFrame) -> list[Any]:
    """Return the rows of a table as tuples with the names of its columns."""
    return [*table.itertuples(index=False)]


# ---------------------------------------------------------------- for notebooks


def learner_panel(title: str, where: Mapping[str, str], engine: Engine) -> Panel:
    """Return the panel of a learner or study; ``where`` holds further facts, such as the store."""
    state = engine.state
    arms = arms_frame(state, engine.beliefs, LEVEL, _most_played(state, MOST_ARMS))
    first = islice(engine.pending.items(), MOST_PENDING)
    plays = []
    for id, play in first:
        names, action = play.round_set.actions.names, play.action[0]
        units = {names[i]: int(action[i]) for i in np.flatnonzero(action)}
        plays.append(PendingRow(id, play.key, None, int(action.sum()), play.expected, units))
    return panel_of(title, where, Facts.of(engine), arms, plays)


def panel_of(
    title: str,
    where: Mapping[str, str],
    facts: Facts,
    arms: pd.DataFrame,
    plays: Iterable[PendingRow],
) -> Panel:
    """Return the panel of these facts, arms and pending plays."""
    words = facts.words
    tables = (
        pending_table(plays, facts.open_plays, None, words).without(plural(words.unit)),
        arms_table(arms, facts.arm_count, LEVEL, words).without("last seen"),
    )
    return Panel(title, {**where, **facts.as_text()}, tables)


def _most_played(state: PolicyState, most: int) -> IntArray:
    """Return the places of the arms that are in most plans, and of those the most often seen."""
    plans, units = (state.statistics.columns[name] for name in ("plans", "units"))
    return np.lexsort((-units, -plans))[:most]
