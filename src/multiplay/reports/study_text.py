"""Texts and tables about the facts of a study, for the terminal and for pages."""

from __future__ import annotations

import shlex
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay._support.formatting import (
    UNKNOWN,
    Table,
    counted,
    left_out,
    legible,
    minute,
    plan_text,
    plural,
)
from multiplay._support.hints import Surface, rendered
from multiplay._support.words import Words, money_text, verb_of
from multiplay.errors import InvalidInput
from multiplay.learner.constraints import ConstraintReport
from multiplay.learner.facts import constraint_text, rows_of
from multiplay.learner.plays import PENDING, TOLD
from multiplay.learner.promises import PromiseReport
from multiplay.learner.switching import SwitchingReport
from multiplay.reports.study import StudyFacts
from multiplay.reports.study_curve import FEWEST, PARTS, Change

if TYPE_CHECKING:
    from multiplay.learner.plays import Estimate, PendingPlay


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
    plays = f"{counted(facts.asked, 'plan')} asked" + (f": {became}" if facts.asked else "")
    clipped = f"; {counted(facts.clipped, 'number')} clipped to the range" if facts.clipped else ""
    words, does = facts.words, facts.summary.removesuffix(".")
    arms = f"{words.arms(len(facts.arms))}, {facts.loss_range} {words.currency}".rstrip()
    saved = [facts.saved] if facts.saved else []
    limits = [constraint_report_text(one, words) for one in facts.constraints]
    return [arms, f"{does} ({facts.policy})", plays + clipped, *limits, *saved]


def constraint_report_text(row: ConstraintReport, words: Words) -> str:
    """Return what became of a constraint, in one line.

    Examples
    --------
    >>> from multiplay import AtMost, Baseline, BaselineReport, InProportion, SwitchingCost
    >>> words, limit = Words("EUR", "truck"), Baseline(InProportion(), 0.03)
    >>> used = BaselineReport("baseline", limit, -2310.0, 3120.0, 2400.0, 14, 5)
    >>> print(constraint_report_text(used, words))
    baseline: 3 % more than a split in proportion; 3,120 EUR left, 2,400 for sure; -2,310 EUR \
spent; restricted on 5 of 14 days
    >>> changes = SwitchingReport("switching cost", SwitchingCost(15), 3, 45.0)
    >>> print(constraint_report_text(changes, words))
    switching cost: 15 EUR for each truck that differs from the last plan; 3 trucks so far, 45 EUR
    >>> co2 = AtMost(40_000, {"*": 80}, plays=22, name="CO2")
    >>> stands = PromiseReport("CO2", co2, 12_300, 39_800, 38_900, 40_000, 0.31, "sure", 15, 0.0)
    >>> print(constraint_report_text(stands, words))
    CO2: 12,300 of at most 40,000; expected 39,800 at the end; price 0.31 EUR; 15 days left; will \
it hold? sure
    """
    if isinstance(row, PromiseReport):
        return promise_text(row, words)
    what = constraint_text(row.constraint, words)
    if isinstance(row, SwitchingReport):
        return f"{what}; {words.units(row.changed)} so far, {words.money(row.spent)}"
    left = f"{words.money(row.left)} left, {money_text(row.sure_of)} for sure"
    spent = f"{words.money(row.spent)} spent"
    return f"{what}; {left}; {spent}; restricted on {row.restricted} of {words.rounds(row.days)}"


def promise_text(row: PromiseReport, words: Words) -> str:
    """Return how a promise stands, in one line."""
    limit = f"{money_text(row.used)} of {row.constraint.kind} {money_text(row.constraint.limit)}"
    if not row.left_plays:
        kept = "yes" if row.holds == "sure" else f"no: {money_text(row.used)}"
        return f"{row.name}: {limit}; ended; did it hold? {kept}"
    ahead = f"expected {money_text(row.expected_end)} at the end; price {words.money(row.price)}"
    left = f"{words.rounds(row.left_plays)} left"
    return f"{row.name}: {limit}; {ahead}; {left}; will it hold? {row.holds}"


def prices_text(play: PendingPlay, words: Words) -> str:
    """Return the prices of a play, and whether a promise changed it beyond them."""
    prices = ", ".join(f"{name} {words.money(price)}" for name, price in play.prices.items())
    held = "; a promise changed the plan beyond its price" if play.held else ""
    return f"prices: {prices}{held}"


# ---------------------------------------------------------------- costs of rounds


def outcomes(facts: StudyFacts, surface: Surface = Surface.PYTHON) -> dict[str, str]:
    """Return the costs of rounds, expected costs, the trend and the best plan, by name."""
    return {**_rounds(facts), "best plan": best_plan_text(facts, surface)}


def _rounds(facts: StudyFacts) -> dict[str, str]:
    did, whole, change = wording(facts).did, facts.curve.whole, facts.curve.change()
    words = facts.words
    if not whole.rounds:
        return {plural(words.round): _none_known(facts)}
    if change is None:
        average = f"{did} {words.money(whole.realised)} on average"
        too_few = f"known after about {words.rounds(FEWEST * PARTS)}"
        said = {words.rounds(whole.rounds): average + _expected(facts, whole.expected)}
        return said | {"trend": too_few}
    said = {}
    for which, ends in (("first", change.early), ("last", change.late)):
        each = f"{did} {words.money(ends.realised)} each{_expected(facts, ends.expected)}"
        said[f"{which} {words.rounds(ends.rounds)}"] = each
    return {**said, "trend": trend(change, words)}


def _none_known(facts: StudyFacts) -> str:
    noun = wording(facts).noun
    if not facts.told:
        return "none was reported yet"
    one = facts.words.round
    return f"the {noun} of a {one} is not known: it is not the sum over its units"


def _expected(facts: StudyFacts, expected: float) -> str:
    return "" if np.isnan(expected) else f"; expected: {facts.words.money(expected)}"


def trend(change: Change, words: Words) -> str:
    """Return the change of the cost of a round since the beginning as text."""
    amount, low, high = change.difference, change.low, change.high
    if not change.is_clear:
        return f"not significant (95 % interval of the change: {words.between(low, high)})"
    way, less = ("falling", "less") if amount < 0 else ("rising", "more")
    ends = words.ends(*sorted((abs(low), abs(high))))
    return f"{way}: {words.money(abs(amount))} {less} (95 % interval: {ends})"


def best_plan_text(facts: StudyFacts, surface: Surface) -> str:
    """Return the best plan and its expected total as text."""
    if isinstance(facts.best, InvalidInput):
        if facts.best.argument.startswith("features"):
            return f"known after the first plan: it needs the features of a {facts.words.round}"
        return f"not known by {facts.best.got}. {rendered(facts.best.hint, surface)}"
    total, low, high = facts.best.expected
    words = facts.words
    ends = "" if np.isnan(low) else f" ({level(facts)} interval: {words.ends(low, high)})"
    should = f"should {wording(facts).should} {words.money(total)}"
    return f"{should}{ends}: {plan_text(facts.best.plan, arm=words.arm)}"


def outlook(expected: Estimate, sense: str, words: Words) -> str:
    """Return the expected total of a plan as a sentence."""
    verb = verb_of(sense)
    if np.isnan(expected.total):
        return f"What this plan should {verb} is not known yet."
    return f"This plan should {verb} {words.estimate(*expected)}."


def notes(facts: StudyFacts) -> list[str]:
    """Return remarks for the comparison of rounds."""
    found = []
    whole, words = facts.curve.whole, facts.words
    if facts.told and not facts.arms["seen"].any():
        total, single = plural(words.round), plural(words.arm)
        noun = wording(facts).noun
        found.append(f"Only totals of {total} were reported, no {noun}s of single {single}.")
    if whole.rounds and np.isnan(whole.expected):
        found.append("The policy gives no expected totals.")
    if misfit := facts.arms.attrs.get("misfit"):
        found.append(f"No intervals: {misfit}.")
    (fewest, most), rounds = facts.units, plural(words.round)
    if fewest != most:
        size = f"from {fewest} to {words.units(most)}"
        found.append(f"Plans have {size}, so {rounds} also differ in size.")
    if facts.incomplete and whole.rounds:
        found.append(
            f"Some {plural(words.unit)} did not report in {words.rounds(facts.incomplete)}: the "
            f"{wording(facts).noun} of such a {words.round} is scaled up from those that did."
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
        waits = "1 plan is pending" if count == 1 else f"{count} plans are pending"
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
            f"{changes}: a {facts.words.unit} {does} more or less than before, and this policy "
            "does not follow. "
            "Create a study with one that does, PooledCTS(memory=Changes()), the default:"
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
    arm, does = facts.words.arm, wording(facts).does
    return f"No change was found: no {arm} {does} more or less than before."


# ---------------------------------------------------------------- tables


def alarms_table(facts: StudyFacts, most: int) -> Table:
    """Return the changes of arms; after those acted upon, older losses no longer count."""
    words = facts.words
    rows = [
        [
            *(_changed(one, words), _until(one)),
            *(money_text(one.before), money_text(one.after)),
            *(str(one.units), UNKNOWN if isnan(one.sure) else f"{one.sure:.1%}"),
            "yes" if one.acted else "no",
        ]
        for one in rows_of(facts.alarms.head(most))
    ]
    heads = (words.in_currency(head) for head in ("before", "after"))
    columns = [words.arm, f"until {words.round}", *heads, plural(words.unit), "sure", "acted"]
    note = left_out(len(facts.alarms) - most, "changes")
    return Table(f"Changes of {plural(words.arm)}", columns, rows, note)


def _changed(change: Any, words: Words) -> str:
    """Return the arm of a change, or how many arms share it."""
    if len(change.arms) == 1:
        return legible(change.arm)
    return f"{change.arm.removesuffix('arms')}{plural(words.arm)}"


def _until(change: Any) -> str:
    """Return the last round before a change, or the last day of an imported table."""
    import pandas as pd

    before = change.date - pd.Timedelta(days=1)
    return str(change.since) if pd.isna(before) else f"{before:%Y-%m-%d}"


def last_plays_table(facts: StudyFacts, surface: Surface = Surface.PYTHON) -> Table:
    """Return the last plays."""
    told = "reported" if surface is Surface.PAGE else "told"
    texts = {TOLD: told} | ({PENDING: "waits"} if surface is Surface.PAGE else {})
    rows = [
        [
            str(play.id),
            legible(play.key or UNKNOWN),
            texts.get(play.status, str(play.status)),
            minute(play.asked),
            minute(play.told),
            f"{play.seen} of {play.units}",
            money_text(play.expected),
            money_text(play.realised),
        ]
        for play in rows_of(facts.last)
    ]
    heads = (facts.words.in_currency(head) for head in ("expected", "actual"))
    names = ("date", "made") if surface is Surface.PAGE else ("key", "asked")
    columns = ["no.", names[0], "status", names[1], told, "seen", *heads]
    return Table("Last plans", columns, rows, "Times are UTC." if rows else "", labels=3)


def level(facts: StudyFacts) -> str:
    """Return the level of the intervals in percent."""
    return f"{100 * facts.level:.4g} %"
