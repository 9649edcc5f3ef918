"""A study in words and tables, for the screen and for a page."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from multiplay._support.formatting import (
    UNKNOWN,
    Table,
    amount,
    between,
    counted,
    legible,
    number,
    percent,
    plan,
)
from multiplay.errors import InvalidInput
from multiplay.reports.study import Facts, Open, rows_of
from multiplay.reports.study_curve import FEWEST, PARTS, Change

if TYPE_CHECKING:
    from datetime import datetime

    from multiplay.learner.plays import Estimate

STEPS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))  # of ages
FOLLOWS = 2  # an age is shown in the first unit of which there are so many


class Wording(NamedTuple):
    """What is said of costs, or of rewards."""

    noun: str
    does: str
    should: str
    did: str


COSTS = Wording("cost", "costs", "cost", "cost")
REWARDS = Wording("reward", "brings", "bring", "brought")


class Step(NamedTuple):
    """What to do next, and the command for it."""

    why: str
    command: str


def wording(facts: Facts) -> Wording:
    """Return the words for what units of this study do."""
    return REWARDS if facts.rewards else COSTS


def head(facts: Facts) -> list[str]:
    """Say what study this is, and how far it has come."""
    counts = {"told": facts.told, "pending": len(facts.pending), "cancelled": facts.cancelled}
    became = ", ".join(f"{n} {word}" for word, n in counts.items())
    plays = f"{counted(facts.asked, 'play')} asked" + (f": {became}" if facts.asked else "")
    clipped = f"; {counted(facts.clipped, 'number')} clipped to the range" if facts.clipped else ""
    arms = counted(len(facts.arms), "arm")
    return [f"{facts.policy} on {arms}, {facts.unit}", plays + clipped]


# ---------------------------------------------------------------- what rounds cost


def outcomes(facts: Facts) -> dict[str, str]:
    """Say what rounds cost, what was expected, the trend, and what the best plan should cost."""
    return {**_rounds(facts), "best plan": best(facts)}


def _rounds(facts: Facts) -> dict[str, str]:
    did, whole, change = wording(facts).did, facts.curve.whole, facts.curve.change()
    if not whole.rounds:
        return {"rounds": _none_known(facts)}
    if change is None:
        average = f"{did} {number(whole.realised)} on average{_expected(whole.expected)}"
        too_few = f"not to be seen before about {FEWEST * PARTS} rounds are told"
        return {counted(whole.rounds, "round"): average, "trend": too_few}
    said = {}
    for which, ends in (("first", change.early), ("last", change.late)):
        each = f"{did} {number(ends.realised)} each{_expected(ends.expected)}"
        said[f"{which} {ends.rounds} rounds"] = each
    return {**said, "trend": trend(change)}


def _none_known(facts: Facts) -> str:
    noun = wording(facts).noun
    if not facts.told:
        return "none was told yet"
    return f"the {noun} of a round is not known: it is not the sum of what its units tell"


def _expected(expected: float) -> str:
    return "" if np.isnan(expected) else f"; expected: {number(expected)}"


def trend(change: Change) -> str:
    """Say whether rounds cost more or less than at the beginning, or whether that is chance."""
    amount, low, high = change.difference, change.low, change.high
    if not change.is_clear:
        return f"none that is clear (95 % interval of the change: {between(low, high)})"
    way, less = ("falling", "less") if amount < 0 else ("rising", "more")
    ends = between(*sorted((abs(low), abs(high))))
    return f"{way}: {number(abs(amount))} {less} (95 % interval: {ends})"


def best(facts: Facts) -> str:
    """Say what the best plan should cost, and what it is."""
    if isinstance(facts.best, InvalidInput):
        return f"not known by {facts.best.got}. {facts.best.hint}"
    total, low, high = facts.best.expected
    ends = f"{level(facts)} interval: {between(low, high)}"
    should = f"should {wording(facts).should} {number(total)}"
    return f"{should} ({ends}): {plan(facts.best.plan)}"


def outlook(expected: Estimate, sense: str) -> str:
    """Say what a plan should cost or bring."""
    verb = "cost" if sense == "min" else "bring"
    if np.isnan(expected.total):
        return f"what it should {verb} is not known yet"
    words = f"should {verb} {number(expected.total)} in all"
    known = np.isfinite([expected.low, expected.high]).all()
    return f"{words} ({between(expected.low, expected.high)})" if known else words


def notes(facts: Facts) -> list[str]:
    """Say what one should know when one compares rounds."""
    found = []
    whole = facts.curve.whole
    if facts.told and not facts.arms["seen"].any():
        found.append("Totals of rounds were told, and nothing of single arms.")
    if whole.rounds and np.isnan(whole.expected):
        found.append("The policy did not say what it expected.")
    fewest, most = facts.units
    if fewest != most:
        found.append(f"Plans have from {fewest} to {most} units: rounds differ in size, too.")
    if facts.incomplete and whole.rounds:
        found.append(
            f"Units did not report in {counted(facts.incomplete, 'round')}: the "
            f"{wording(facts).noun} of such a round is scaled up from those that did."
        )
    return found


# ---------------------------------------------------------------- what to do


def next_steps(facts: Facts, store: str | None = None) -> list[Step]:
    """Return what to do next; ``store`` is what the commands must say of it, if anything."""

    def command(verb: str, *more: str) -> str:
        where = [] if store is None else ["--store", store]
        return shlex.join(["multiplay", "study", verb, facts.name, *more, *where])

    steps = []
    if facts.pending:
        oldest = facts.pending[0]
        waits = "1 play waits" if len(facts.pending) == 1 else f"{len(facts.pending)} plays wait"
        id, noun = str(oldest.id), wording(facts).noun
        tell, cancel = command("tell", id, f"{noun}s.csv"), command("cancel", id)
        steps.append(Step(f"{waits}. Tell the {noun}s of the oldest:", tell))
        steps.append(Step("Or cancel it, if it was never driven:", cancel))
    if facts.clipped:
        which = "1 number was" if facts.clipped == 1 else f"{facts.clipped} numbers were"
        why = f"{which} outside the range. Begin a study with a wider one:"
        steps.append(Step(why, "multiplay study create --help"))
    if len(facts.alarms):
        arms, does = counted(len(facts.alarms), "arm"), wording(facts).does
        why = (
            f"{arms}: a unit {does} clearly more or less than before. If that goes on, a policy "
            "that forgets does better, such as GenCTS(discount=0.97):"
        )
        steps.append(Step(why, "multiplay study create --help"))
    if not facts.pending:
        which = "next" if facts.asked else "first"
        steps.append(Step(f"Ask for the {which} plan:", command("ask")))
    return steps


def no_alarm(facts: Facts) -> str:
    """Say that nothing has changed; nothing, if there are alarms or if nothing was seen."""
    if len(facts.alarms) or not facts.arms["seen"].any():
        return ""
    return f"No alarm: no arm {wording(facts).does} clearly more or less than before."


# ---------------------------------------------------------------- tables


def arms_table(facts: Facts, most: int) -> Table:
    """Return the arms that are in most plans."""
    shown = facts.by_share().head(most)
    rows = [
        [
            legible(arm.arm),
            str(arm.seen),
            amount(arm.mean),
            between(arm.low, arm.high),
            moment(arm.last_seen),
            percent(arm.share),
        ]
        for arm in rows_of(shown)
    ]
    columns = ["arm", "seen", "mean", f"{level(facts)} interval", "last seen", "in plans"]
    return Table("Arms", columns, rows, more_arms(facts, most))


def more_arms(facts: Facts, most: int) -> str:
    """Say how many arms are left out."""
    left_out = len(facts.arms) - most
    return f"And {left_out} more arms, in fewer plans." if left_out > 0 else ""


def pending_table(facts: Facts, most: int) -> Table:
    """Return the plays that wait, oldest first."""
    rows = [
        [
            str(one.id),
            legible(one.key or UNKNOWN),
            age(one, facts.now),
            plan(one.plan),
            str(one.units),
            amount(one.expected),
        ]
        for one in facts.pending[:most]
    ]
    columns = ["play", "key", "asked", "plan", "units", "expected"]
    left_out = len(facts.pending) - most
    note = f"And {left_out} more, asked later." if left_out > 0 else ""
    return Table("Plays that wait", columns, rows, note, labels=4)


def alarms_table(facts: Facts, most: int) -> Table:
    """Return the arms whose recent losses do not fit the old ones."""
    rows = [
        [legible(one.arm), str(one.since), amount(one.before), amount(one.after), str(one.units)]
        for one in rows_of(facts.alarms.head(most))
    ]
    columns = ["arm", "since round", "before", "after", "units after"]
    left_out = len(facts.alarms) - most
    note = f"And {left_out} more arms." if left_out > 0 else ""
    return Table("Alarms: what has changed", columns, rows, note)


def plays_table(facts: Facts) -> Table:
    """Return the last plays."""
    rows = [
        [
            str(play.id),
            legible(play.key or UNKNOWN),
            str(play.status),
            moment(play.asked),
            moment(play.told),
            f"{play.seen} of {play.units}",
            amount(play.expected),
            amount(play.realised),
        ]
        for play in rows_of(facts.last)
    ]
    columns = ["play", "key", "status", "asked", "told", "seen", "expected", "realised"]
    return Table("Last plays", columns, rows, "Times are UTC." if rows else "", labels=3)


def level(facts: Facts) -> str:
    """Return the level of the intervals in percent."""
    return f"{100 * facts.level:.4g} %"


def moment(when: datetime) -> str:
    """Return a time to the minute, or a dash if it is not known."""
    return UNKNOWN if when != when else when.strftime("%Y-%m-%d %H:%M")


def age(play: Open, now: datetime) -> str:
    """Say how long ago a play was asked."""
    if play.asked != play.asked:
        return UNKNOWN
    seconds = (now - play.asked).total_seconds()
    length = duration(abs(seconds))
    return f"in {length}" if seconds < 0 else f"{length} ago"


def duration(seconds: float) -> str:
    """Return a length of time in one unit.

    Examples
    --------
    >>> duration(0.2), duration(119), duration(7_300), duration(400_000)
    ('0 s', '119 s', '2 h', '4 d')
    """
    for length, unit in STEPS:
        if seconds >= FOLLOWS * length:
            return f"{int(seconds / length)} {unit}"
    return f"{int(seconds)} s"
