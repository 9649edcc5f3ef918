"""Texts and tables about the facts of a study, for the terminal and for pages."""

from __future__ import annotations

import shlex
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from multiplay._support.formatting import (
    UNKNOWN,
    Table,
    amount,
    between,
    counted,
    left_out,
    legible,
    minute,
    number,
    plan_text,
)
from multiplay.errors import InvalidInput
from multiplay.learner.facts import rows_of
from multiplay.reports.study import StudyFacts
from multiplay.reports.study_curve import FEWEST, PARTS, Change

if TYPE_CHECKING:
    from multiplay.learner.plays import Estimate


class Wording(NamedTuple):
    """The words for losses, or for rewards."""

    noun: str
    does: str
    should: str
    did: str


COSTS = Wording("cost", "costs", "cost", "cost")
REWARDS = Wording("reward", "brings", "bring", "brought")


class Step(NamedTuple):
    """A next step: a sentence, and the command for it."""

    why: str
    command: str


def wording(facts: StudyFacts) -> Wording:
    """Return the words for losses or rewards, as the study has them."""
    return REWARDS if facts.rewards else COSTS


def head(facts: StudyFacts) -> list[str]:
    """Return the settings and the counts of the study, one line each."""
    counts = {"told": facts.told, "pending": len(facts.pending), "cancelled": facts.cancelled}
    became = ", ".join(f"{n} {word}" for word, n in counts.items())
    plays = f"{counted(facts.asked, 'play')} asked" + (f": {became}" if facts.asked else "")
    clipped = f"; {counted(facts.clipped, 'number')} clipped to the range" if facts.clipped else ""
    arms = counted(len(facts.arms), "arm")
    return [f"{facts.policy} on {arms}, {facts.loss_range}", plays + clipped]


# ---------------------------------------------------------------- costs of rounds


def outcomes(facts: StudyFacts) -> dict[str, str]:
    """Return the costs of rounds, expected costs, the trend and the best plan, by name."""
    return {**_rounds(facts), "best plan": best_plan_text(facts)}


def _rounds(facts: StudyFacts) -> dict[str, str]:
    did, whole, change = wording(facts).did, facts.curve.whole, facts.curve.change()
    if not whole.rounds:
        return {"rounds": _none_known(facts)}
    if change is None:
        average = f"{did} {number(whole.realised)} on average{_expected(whole.expected)}"
        too_few = f"known after about {FEWEST * PARTS} rounds"
        return {counted(whole.rounds, "round"): average, "trend": too_few}
    said = {}
    for which, ends in (("first", change.early), ("last", change.late)):
        each = f"{did} {number(ends.realised)} each{_expected(ends.expected)}"
        said[f"{which} {ends.rounds} rounds"] = each
    return {**said, "trend": trend(change)}


def _none_known(facts: StudyFacts) -> str:
    noun = wording(facts).noun
    if not facts.told:
        return "none was told yet"
    return f"the {noun} of a round is not known: it is not the sum over its units"


def _expected(expected: float) -> str:
    return "" if np.isnan(expected) else f"; expected: {number(expected)}"


def trend(change: Change) -> str:
    """Return the change of the cost of a round since the beginning as text."""
    amount, low, high = change.difference, change.low, change.high
    if not change.is_clear:
        return f"not significant (95 % interval of the change: {between(low, high)})"
    way, less = ("falling", "less") if amount < 0 else ("rising", "more")
    ends = between(*sorted((abs(low), abs(high))))
    return f"{way}: {number(abs(amount))} {less} (95 % interval: {ends})"


def best_plan_text(facts: StudyFacts) -> str:
    """Return the best plan and its expected total as text."""
    if isinstance(facts.best, InvalidInput):
        return f"not known by {facts.best.got}. {facts.best.hint}"
    total, low, high = facts.best.expected
    ends = f"{level(facts)} interval: {between(low, high)}"
    should = f"should {wording(facts).should} {number(total)}"
    return f"{should} ({ends}): {plan_text(facts.best.plan)}"


def outlook(expected: Estimate, sense: str) -> str:
    """Return the expected total of a plan as text."""
    verb = "cost" if sense == "min" else "bring"
    if np.isnan(expected.total):
        return f"how much it should {verb} is not known yet"
    words = f"should {verb} {number(expected.total)} in all"
    known = np.isfinite([expected.low, expected.high]).all()
    return f"{words} ({between(expected.low, expected.high)})" if known else words


def notes(facts: StudyFacts) -> list[str]:
    """Return remarks for the comparison of rounds."""
    found = []
    whole = facts.curve.whole
    if facts.told and not facts.arms["seen"].any():
        found.append("Only totals of rounds were told, no losses of single arms.")
    if whole.rounds and np.isnan(whole.expected):
        found.append("The policy gives no expected totals.")
    fewest, most = facts.units
    if fewest != most:
        found.append(f"Plans have from {fewest} to {most} units, so rounds also differ in size.")
    if facts.incomplete and whole.rounds:
        found.append(
            f"Some units did not report in {counted(facts.incomplete, 'round')}: the "
            f"{wording(facts).noun} of such a round is scaled up from the units that did."
        )
    return found


# ---------------------------------------------------------------- next steps


def next_steps(facts: StudyFacts, store: str | None = None) -> list[Step]:
    """Return the next steps; ``store`` is the option --store of their commands, if needed."""

    def command(verb: str, *more: str) -> str:
        where = [] if store is None else ["--store", store]
        return shlex.join(["multiplay", "study", verb, facts.name, *more, *where])

    steps = []
    if facts.pending:
        oldest = facts.pending[0]
        count = len(facts.pending)
        waits = "1 play is pending" if count == 1 else f"{count} plays are pending"
        id, noun = str(oldest.id), wording(facts).noun
        tell, cancel = command("tell", id, f"{noun}s.csv"), command("cancel", id)
        steps.append(Step(f"{waits}. Tell the {noun}s of the oldest:", tell))
        steps.append(Step("Or cancel it, if it was not carried out:", cancel))
    if facts.clipped:
        which = "1 number was" if facts.clipped == 1 else f"{facts.clipped} numbers were"
        why = f"{which} outside the range. Create a study with a wider range:"
        steps.append(Step(why, "multiplay study create --help"))
    if len(facts.alarms) and not facts.follows:
        changes, does = counted(len(facts.alarms), "change"), wording(facts).does
        why = (
            f"{changes}: a unit {does} more or less than before, and this policy does not follow. "
            "Create a study with one that does, BootstrapCTS(change='follow'), the default:"
        )
        steps.append(Step(why, "multiplay study create --help"))
    if not facts.pending:
        which = "next" if facts.asked else "first"
        steps.append(Step(f"Ask for the {which} plan:", command("ask")))
    return steps


def no_alarm(facts: StudyFacts) -> str:
    """Return a sentence if there is no alarm; nothing before the first losses were told."""
    if len(facts.alarms) or not facts.arms["seen"].any():
        return ""
    return f"No change was found: no arm {wording(facts).does} more or less than before."


# ---------------------------------------------------------------- tables


def alarms_table(facts: StudyFacts, most: int) -> Table:
    """Return the changes of arms; after those acted upon, older losses no longer count."""
    rows = [
        [
            *(legible(one.arm), str(one.since), amount(one.before), amount(one.after)),
            *(str(one.units), UNKNOWN if isnan(one.sure) else f"{one.sure:.1%}"),
            "yes" if one.acted else "no",
        ]
        for one in rows_of(facts.alarms.head(most))
    ]
    columns = ["arm", "since round", "before", "after", "units", "sure", "acted"]
    note = left_out(len(facts.alarms) - most, "changes")
    return Table("Changes of arms", columns, rows, note)


def last_plays_table(facts: StudyFacts) -> Table:
    """Return the last plays."""
    rows = [
        [
            str(play.id),
            legible(play.key or UNKNOWN),
            str(play.status),
            minute(play.asked),
            minute(play.told),
            f"{play.seen} of {play.units}",
            amount(play.expected),
            amount(play.realised),
        ]
        for play in rows_of(facts.last)
    ]
    columns = ["play", "key", "status", "asked", "told", "seen", "expected", "realised"]
    return Table("Last plays", columns, rows, "Times are UTC." if rows else "", labels=3)


def level(facts: StudyFacts) -> str:
    """Return the level of the intervals in percent."""
    return f"{100 * facts.level:.4g} %"
