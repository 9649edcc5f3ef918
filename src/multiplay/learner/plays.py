"""Plays: pending plays, plans, estimates, explanations and receipts.

``Engine.ask`` keeps a play as a ``PendingState``, and the caller gets it as a ``PendingPlay``. Each
report of ``tell`` is joined to the pending state and answered with a ``Receipt``. After the final
one the play is no longer pending: its line is in ``play_log.py``, or in the journal of a study.
"""

from __future__ import annotations

import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeVar

import numpy as np

from multiplay._support.checks import is_number
from multiplay._support.dates import moment_of
from multiplay._support.formatting import (
    Table,
    chosen,
    counted,
    left_out,
    legible,
    plural,
)
from multiplay._support.hints import Hint, Option, Term, Verb
from multiplay._support.html import HasPanel, Panel
from multiplay._support.words import Words, money_text, noun_of, verb_of
from multiplay.errors import InvalidInput, NotFound, StoreError
from multiplay.features.table import Values
from multiplay.learner.reports import Report
from multiplay.learner.round_set import RoundSet
from multiplay.policies import Play
from multiplay.types import Arrays, FloatArray, IntArray, MaybeKnown, Note, Sense

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

PENDING, TOLD, CANCELLED, EXTERNAL = "pending", "told", "cancelled", "external"
NEVER = math.nan
MOST_ROWS_SHOWN = 30  # of a plan in a notebook
MOST_ARMS_ESTIMATED = 10_000  # of a set for which a notebook computes an interval
DATE = re.compile(r"(\d{4}-\d\d-\d\d|\d{1,2}\.\d{1,2}\.\d{4})(?!\d)")  # a key begins with it
LONGEST_ID = 19  # digits
FAR = 9e9  # seconds: pandas has no times after the year 2262
CARRIED_OUT_HINT = Hint("Use {} if the plan was carried out.", Verb("learn", "plan, losses"))
NOT_TOLD_HINT = Hint("Use {}.", Verb("tell", "play, losses"))
FROM_ASK_HINT = Hint("Use the id or the key of a play from {}.", Verb("ask"))
PART_HINT = Hint("Use {} if more losses follow.", Option("final", "False"))


T = TypeVar("T")
When = datetime | float | None  # a time, or seconds since 1970; None for now


class Estimate(NamedTuple):
    r"""The expected total cost (or reward) of a plan, with an interval for that expectation.

    For a plan a, where a unit of arm i is believed to cost :math:`m_i`, the mean that
    ``Learner.arms`` shows, these are

    .. math::

        \text{total} = \sum_i a_i m_i, \qquad
        \text{low}, \text{high} = \text{total} \mp t_\nu \sqrt{\text{var}}.

    The variance counts the errors of each arm, the level and the days that all arms share, and
    :math:`t_\nu` is a quantile of Student's distribution. It is an interval for the expectation:
    the realised cost of a plan varies more. The ends stay within the ranges of the arms.

    Attributes
    ----------
    total : float
        The expected total, in the user's unit; NaN if it cannot be estimated yet.
    low, high : float
        The ends of the interval, of level 95 % by default.

    Examples
    --------
    >>> from multiplay import Budget, Learner
    >>> learner = Learner(Budget(2, [2, 2], names=["air", "sea"]), loss_range=(0, 100))
    >>> for _ in range(20):
    ...     told = learner.learn({"air": 1, "sea": 1}, {"air": [80.0], "sea": [30.0]})
    >>> total, low, high = learner.expect({"sea": 2})
    >>> bool(low < 60 < high), bool(0 < low < total < high < 200)
    (True, True)
    """

    total: MaybeKnown
    low: MaybeKnown
    high: MaybeKnown


TO_LEARN, INSTEAD, FIXED, CLOSED, AT_MOST = "to learn", "instead", "fixed", "closed", "at most"
LIMITED = (FIXED, CLOSED, AT_MOST)
MOST_NAMED = 3  # arms in a sentence
RAREST = 0.01  # share of arms that is told as 1 of so many
PRICES = "What a unit of each promise is worth; negative for `AtLeast`."
HELD = "Whether a promise changed the plan beyond its price."


class WhyRow(NamedTuple):
    """An arm of a plan, compared with the best plan.

    Attributes
    ----------
    arm : str
        The arm, or the name of units that cannot be served.
    units, best_units : int
        Its units in this plan, and in the best one.
    mean, low, high : float
        The believed cost of a unit with its interval, in the user's unit; NaN if it is not known.
    seen : int
        The number of units that were reported so far.
    reason : str
        "to learn", "instead", "fixed", "closed", "at most", or "".
    """

    arm: str
    units: int
    best_units: Annotated[int, "Its units in the best plan."]
    mean: Annotated[MaybeKnown, "The believed cost of a unit; null if unknown."]
    low: MaybeKnown
    high: MaybeKnown
    seen: Annotated[int, "The number of units that were reported so far."]
    reason: Annotated[str, Literal["", "to learn", "instead", "fixed", "closed", "at most"]]


class Untried(NamedTuple):
    """What other arms teach about arms of a plan of which no report counts.

    Attributes
    ----------
    arms : tuple of str
        Arms that the plan has to learn, and that were never seen, or whose reports were forgotten.
    low, high : float
        What arms cost here, or bring: the 95 % interval of these.
    worth : float
        If a unit costs less than this, or brings more, the plan is better than the best one. The
        extra cost is shared by all units to learn.
    share : float
        The probability of that, for an arm like the others.
    """

    arms: tuple[str, ...]
    low: Annotated[float, "What arms cost here: the interval of these arms."]
    high: float
    worth: Annotated[float, "The cost of a unit below which the plan is better than the best one."]
    share: Annotated[float, "The probability that an arm like the others costs less."]


@dataclass(frozen=True)
class Why(HasPanel):
    r"""Why a play differs from the best plan, by the beliefs when it was asked for.

    The best plan :math:`a^*` is that of ``best`` for the set, limits and features of the play. A
    play a explores if it is expected to cost more, and what it costs more is the price of learning:

    .. math::

        \text{extra} = \langle a, m \rangle - \langle a^*, m \rangle > 0.

    Where that is 0, the play counts as the best plan. The reason of an arm is

    - "fixed", "closed" or "at most" where a limit of the day determines its units,
    - "to learn" where the play has more units than the best plan, and the arm is uncertain: what
      its interval leaves open is at least a tenth of that of any other arm that differs,
    - "instead" where it has fewer units, or more of an arm that is well known. If no arm is there
      to learn, the play avoids arms of the best plan that may be worse than believed.

    An arm that was never seen, or whose reports no longer count, is believed to be like the others,
    where all have the same range and no features: ``untried`` says what these teach.

    Attributes
    ----------
    rows : tuple of WhyRow
        The arms that are in this plan or in the best one, and those with a limit.
    expected, best : Estimate
        The expected total of this plan, and of the best one.
    extra : float
        What this plan is expected to cost more, or to bring less; at least 0.
    words : Words
        The words in which it is shown.
    sense : "min" or "max"
        Whether costs are minimised, or rewards maximised.
    wanted : dict
        The units of each arm in the plan of the policy, where the allowance changed them.
    prices : dict
        The prices of promises, which the best plan pays as well.
    held : bool
        Whether a promise changed the plan beyond its price.
    changed : int
        The number of units that differ from the last plan, where they cost something.
    change_cost : float
        What they cost.
    promise_first : bool
        Whether the plan of a promise is played where neither the plans that were found within the
        allowance nor the baseline keep it.
    asked : float or None
        When a play that is not pending was asked for, in seconds since 1970: the beliefs are those
        of this time. None for a pending play.
    untried : Untried or None
        What other arms teach about arms to learn of which no report counts.

    Examples
    --------
    >>> from multiplay import Budget, Learner, Words
    >>> plans = Budget(2, [2, 2], names=["air", "sea"])
    >>> learner = Learner(plans, loss_range=(0, 100), words=Words("EUR", "box"))
    >>> told = learner.learn({"air": 2}, {"air": [40.0, 40.0]})
    >>> play = learner.ask(fixed={"sea": 1})
    >>> print(play.why())
    This plan is the best one by what is known; it should cost 84.2 EUR, 0 to 200. Fixed: sea.
    >>> [row.reason for row in play.why().rows]
    ['', 'fixed']
    """

    rows: tuple[WhyRow, ...]
    expected: Estimate
    best: Estimate
    extra: Annotated[float, "What it is expected to cost more, or to bring less."]
    words: Words
    sense: Sense
    wanted: Annotated[
        Mapping[str, int],
        "The units of each arm in the plan of the policy, where the allowance changed them.",
    ] = field(default_factory=dict)
    prices: Annotated[Mapping[str, float], PRICES] = field(default_factory=dict)
    held: Annotated[bool, HELD] = False
    changed: Annotated[
        int, "The number of units that differ from the last plan, where they cost something."
    ] = 0
    change_cost: Annotated[float, "What they cost."] = 0.0
    promise_first: Annotated[
        bool, "Whether a promise is kept by a plan that may exceed the allowance."
    ] = False
    asked: Annotated[
        float | None, "When a play that is not pending was asked for: these were the beliefs then."
    ] = None
    untried: Annotated[
        Untried | None, "What other arms teach about arms to learn of which no report counts."
    ] = None

    @property
    def explores(
        self,
    ) -> Annotated[bool, "Whether it is expected to cost more than the best plan."]:
        """Whether this plan is expected to cost more than the best one."""
        return self.extra > 0

    def __str__(self) -> Annotated[str, Note.SHOWN]:
        text = self._learning() if self.explores else self._best()
        more = [*self._allowance(), *self._promises(), *self._changes()]
        return " ".join([*self._then(), text, *self._lessons(), *self._limits(), *more])

    def _then(self) -> Iterator[str]:
        """Yield a sentence about the time of the beliefs, if it is not the present."""
        if self.asked is not None:
            when = f"{datetime.fromtimestamp(self.asked, UTC):%Y-%m-%d %H:%M} UTC"
            yield f"By what was known when it was asked for, {when}:"

    def _best(self) -> str:
        does = verb_of(self.sense)
        total = self.words.estimate(*self.expected)
        return f"This plan is the best one by what is known; it should {does} {total}."

    def _learning(self) -> str:
        words = self.words
        learned = [row for row in self.rows if row.reason == TO_LEARN]
        named = learned or [row for row in self.rows if row.units < row.best_units]
        named.sort(key=lambda row: -abs(row.best_units - row.units))
        parts = [self._sentence(row) for row in named[:MOST_NAMED]]
        more = counted(len(named) - MOST_NAMED, f"more {words.arm}")
        parts += [f"the same for {more}"] if len(named) > MOST_NAMED else []
        extra = "extra cost of learning" if self.sense == "min" else "loss of reward by learning"
        when = "today" if words.round == "day" else f"this {words.round}"
        text = "; ".join([*parts, f"expected {extra} {when} {words.money(self.extra)}."])
        return text[0].upper() + text[1:]

    def _sentence(self, row: WhyRow) -> str:
        """Return the units of an arm, and what is known of it."""
        words = self.words
        place = "on" if words.arm == "lane" else "of"
        if row.reason == TO_LEARN:
            units = f"{words.units(row.units)} {place} {legible(row.arm)} to learn"
            units += f" ({row.best_units} in the best plan)" if row.best_units else ""
        else:
            fewer = f"{row.best_units - row.units} fewer than in the best plan"
            units = f"{words.units(row.units)} {place} {legible(row.arm)}, {fewer}"
        known = [f"{self._reports(row.seen)} so far"]
        if np.isfinite([row.low, row.high]).all():
            known.append(words.between(row.low, row.high))
        return f"{units}: {', '.join(known)}"

    def _lessons(self) -> Iterator[str]:
        """Yield sentences about what other arms teach of those of which no report counts."""
        if self.untried is None:
            return
        arms, low, high, worth, share = self.untried
        seen = dict.fromkeys(arms, 0) | {row.arm: row.seen for row in self.rows}
        words, one = self.words, len(arms) == 1
        forgotten = [arm for arm in arms if seen[arm]]
        never = [arm for arm in arms if not seen[arm]]
        does, bound = verb_of(self.sense), "less" if self.sense == "min" else "more"
        it = f"it is worth a try if it {does}s" if one else f"they are worth a try if they {does}"
        others = plural(words.arm)
        which = f"1 of {round(1 / share)} {others} does" if share >= RAREST else "hardly any does"
        if never:
            yield f"{self._named(never)} {'was' if len(never) == 1 else 'were'} never tried."
        if forgotten:
            count = sum(seen[arm] for arm in forgotten)
            counts = "counts" if count == 1 else "count"
            yield f"The {self._reports(count)} of {self._named(forgotten)} no longer {counts}."
        yield (
            f"{others[0].upper()}{others[1:]} {does} {words.between(low, high)} here; "
            f"{it} {bound} than {words.money(worth)}, which {which}."
        )

    def _named(self, arms: Sequence[str]) -> str:
        """Return the names of some arms, the first of many."""
        named = [legible(arm) for arm in arms[:MOST_NAMED]]
        if len(arms) > MOST_NAMED:
            named.append(self.words.arms(len(arms) - MOST_NAMED) + " more")
        return " and ".join([", ".join(named[:-1]), named[-1]] if named[1:] else named)

    def _reports(self, count: int) -> str:
        """Return a number of reports, in words."""
        money = self.words.currency and self.sense == "min"
        return counted(count, "bill" if money else "report")

    def _allowance(self) -> Iterator[str]:
        """Yield a sentence about the plan that the allowance did not permit."""
        if self.wanted:
            place, words = "on" if self.words.arm == "lane" else "of", self.words
            parts = [
                f"{words.units(units)} {place} {legible(arm)}" for arm, units in self.wanted.items()
            ]
            more = counted(len(parts) - MOST_NAMED, f"more {words.arm}")
            parts[MOST_NAMED:] = [more] if len(parts) > MOST_NAMED else []
            yield f"The allowance changed this plan. Without it: {', '.join(parts)}."

    def _changes(self) -> Iterator[str]:
        """Yield a sentence about the units that differ from the last plan."""
        if self.changed:
            units, cost = self.words.units(self.changed), self.words.money(self.change_cost)
            yield f"Changes since the last plan: {units}, {cost}."

    def _promises(self) -> Iterator[str]:
        """Yield sentences about what promises did."""
        paid = [
            f"a unit of {legible(name)} {'costs' if price > 0 else 'is worth'} "
            f"{self.words.money(abs(price))}"
            for name, price in self.prices.items()
            if price
        ]
        if paid:
            yield f"Because of promises, {', '.join(paid)}."
        if self.held:
            later = plural(self.words.round)
            yield f"A promise changed the plan beyond that, to leave enough for later {later}."
        if self.promise_first:
            yield "The baseline would break a promise: this plan keeps it, beyond the allowance."

    def _limits(self) -> Iterator[str]:
        """Yield a sentence for each kind of limit."""
        for reason in LIMITED:
            names = [legible(row.arm) for row in self.rows if row.reason == reason]
            if names:
                more = len(names) - MOST_NAMED
                shown = ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
                yield f"{reason.capitalize()}: {shown}."

    def table(self) -> pd.DataFrame:
        """Return the rows as a table."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=WhyRow._fields)

    def as_table(self, most: int | None = None) -> Table:
        """Return the rows as text, in the words of the user, those that differ first."""
        words = self.words
        ranked = sorted(self.rows, key=lambda row: (not row.reason, -row.units))
        rows = [
            [
                legible(row.arm),
                str(row.units),
                str(row.best_units),
                money_text(row.mean),
                words.ends(row.low, row.high),
                str(row.seen),
                row.reason,
            ]
            for row in ranked[:most]
        ]
        noun = noun_of(self.sense)
        columns = [words.arm, plural(words.unit), "best", words.in_currency(noun)]
        columns += ["95 % interval", "seen", "reason"]
        note = left_out(len(ranked) - len(rows), plural(words.arm))
        return Table("", columns, rows, note)

    def _panel(self) -> Panel:
        return Panel("Why", {"plan": str(self)}, (self.as_table(MOST_ROWS_SHOWN),))


class HasEstimate(HasPanel, ABC):
    """A plan or play with an expected total."""

    _expect: Callable[[], Estimate]

    @cached_property
    def expected(self) -> Annotated[Estimate, Note.SHOWN]:
        """The expected total in the user's unit, estimated when it is first read."""
        return self._expect()

    @abstractmethod
    def _panel(self) -> Panel:
        """Return what a notebook shows."""


@dataclass(frozen=True)
class Plan(HasEstimate):
    """Units of each arm, and their expected total (``expected``).

    Attributes
    ----------
    action : array of shape (d,)
        The number of units of each arm.
    plan : dict
        The same by arm name; it also has the units that cannot be served.
    expected : Estimate
        The expected total, estimated when it is first read.

    Examples
    --------
    ``best`` returns a plan. It is not a play: it does not become pending.

    >>> from multiplay import Budget, Learner
    >>> learner = Learner(Budget(3, [2, 2], names=["air", "sea"]), loss_range=(0, 100))
    >>> told = learner.learn({"air": 1, "sea": 2}, {"air": [90.0], "sea": [10.0, 20.0]})
    >>> best = learner.best()
    >>> best.plan
    {'air': 1, 'sea': 2}
    >>> best.action, learner.open_plays
    (array([1, 2]), 0)
    """

    action: IntArray
    plan: dict[str, int]
    _expect: Callable[[], Estimate] = field(repr=False, compare=False)
    _words: Callable[[], Words] = field(default=Words, repr=False, compare=False)

    def _panel(self) -> Panel:
        return _plan_panel("Plan", {}, self)


@dataclass(frozen=True, init=False)
class PendingPlay(HasEstimate):
    """A play without a final report, and its expected total (``expected``).

    Attributes
    ----------
    id : int
        The id to tell the losses to; it is never issued twice.
    action : array of shape (d,)
        How many units of each arm to play.
    plan : dict
        The same by the names of the arms; units that cannot be served are shown here too.
    key : str or None
        The caller's name of this play. The same request with this key gives the same play again.
    truncated : bool
        The time limit was reached before the policy finished its choice. The play is valid and
        learning from it is not biased, but it is not the play of a complete choice.
    gap : float or None
        How much less the best plan may cost (or more it may bring) than a truncated play, at the
        losses that the policy chose it for, in the user's unit. None if the play is not truncated,
        or no bound is known.
    why : method
        Explains the play: see ``Why``.
    baseline : dict or None
        The plan of the baseline, by the names of the arms; None for a learner without an allowance.
    restricted : bool
        Whether the allowance changed the plan of the policy.
    explores : int or None
        The number of units that differ from the baseline; None without one.
    prices : dict
        What a unit of each promise is worth in the user's unit, by its name; negative for
        ``AtLeast``. Empty for a learner without promises.
    held : bool
        Whether a promise changed the plan beyond its price.
    change_cost : float
        What its differences from the last plan cost, in the user's unit; no part of ``expected``.
    repeated : bool
        Whether the same request was made before with this key: nothing has changed.
    expected : Estimate
        What it should cost in total, by what is known when this is read for the first time.

    Examples
    --------
    ``ask`` returns a play. The same key gives the same play again; ``tell`` takes it or its id.

    >>> from multiplay import Budget, Learner
    >>> learner = Learner(Budget(3, [2, 2], names=["air", "sea"]), seed=1)
    >>> play = learner.ask(key="2026-11-15")
    >>> play.id, play.key, sum(play.plan.values())
    (1, '2026-11-15', 3)
    >>> learner.ask(key="2026-11-15").plan == play.plan
    True
    >>> costs = {arm: [0.25] * units for arm, units in play.plan.items()}
    >>> print(learner.tell(play.id, costs))
    play 1: 3 of 3 units seen
    """

    id: int
    action: IntArray
    plan: dict[str, int]
    key: str | None
    _expect: Callable[[], Estimate] = field(repr=False, compare=False)
    _why: Callable[[], Why] = field(repr=False, compare=False)
    truncated: bool = False
    _words: Callable[[], Words] = field(default=Words, repr=False, compare=False)
    baseline: Annotated[dict[str, int] | None, "The plan of the baseline; null without."] = None
    restricted: Annotated[bool, "Whether the allowance changed the plan of the policy."] = False
    gap: Annotated[
        float | None,
        "How far a truncated plan may be from the best, at the losses it was chosen for; null if "
        "the plan is not truncated, or no bound is known.",
    ] = None
    prices: Annotated[dict[str, float], PRICES] = field(default_factory=dict)
    held: Annotated[bool, HELD] = False
    change_cost: Annotated[
        float, "What the units that differ from the last plan cost; 0 without such a cost."
    ] = 0.0
    repeated: Annotated[
        bool, "Whether the same request was made before with this key: nothing has changed."
    ] = field(default=False, compare=False)

    def __init__(
        self,
        id: int,
        action: IntArray,
        plan: dict[str, int],
        key: str | None,
        expect: Callable[[], Estimate],
        why: Callable[[], Why],
        truncated: bool = False,
        words: Callable[[], Words] = Words,
        baseline: dict[str, int] | None = None,
        restricted: bool = False,
        gap: float | None = None,
        prices: dict[str, float] | None = None,
        held: bool = False,
        change_cost: float = 0.0,
        repeated: bool = False,
    ) -> None:  # faster than that of a frozen dataclass, which sets single fields
        self.__dict__.update(
            id=id,
            action=action,
            plan=plan,
            key=key,
            _expect=expect,
            _why=why,
            truncated=truncated,
            _words=words,
            baseline=baseline,
            restricted=restricted,
            gap=gap,
            prices={} if prices is None else prices,
            held=held,
            change_cost=change_cost,
            repeated=repeated,
        )

    @property
    def explores(
        self,
    ) -> Annotated[int | None, "Units that differ from the baseline; null without."]:
        """The number of units that differ from the baseline; None without one."""
        if self.baseline is None:
            return None
        both = [(self.plan.get(arm, 0), units) for arm, units in self.baseline.items()]
        more = sum(max(units - of_baseline, 0) for units, of_baseline in both)
        return max(more, sum(max(of_baseline - units, 0) for units, of_baseline in both))

    def why(self) -> Why:
        """Return what differs from the best plan by the present beliefs, and why.

        The play must be pending.
        """
        return self._why()

    def again(self) -> PendingPlay:
        """Return the play as the answer to a repeated request."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, repeated=True)
        return made

    def _panel(self) -> Panel:
        facts = {"key": self.key} if self.key is not None else {}
        facts |= {"truncated": truncation_text(self, self._words())} if self.truncated else {}
        return _plan_panel(f"Plan {self.id}", facts, self)


AnyPlay = int | str | PendingPlay  # its id, its key, or the play


def truncation_text(play: PendingPlay, words: Words) -> str:
    """Return that the time limit was reached, and how far the plan may be from the best one.

    Examples
    --------
    >>> import numpy as np
    >>> plan = {"air": 3}
    >>> play = PendingPlay(1, np.array([3]), plan, None, lambda: None, lambda: None, True, gap=20.0)
    >>> truncation_text(play, Words(currency="EUR"))
    'the time limit was reached; at the losses it was chosen for, the plan is within 20 EUR of \
the best one'
    """
    text = "the time limit was reached"
    if play.gap is None:
        return text
    far = f"the plan is within {words.money(play.gap)} of the best one"
    return f"{text}; at the losses it was chosen for, {far}"


def _plan_panel(title: str, facts: dict[str, str], one: Plan | PendingPlay) -> Panel:
    """Return the units of each arm that is played, and the expected total."""
    played, words = chosen(one.plan), _words_of(one)
    units = plural(words.unit)
    facts |= {units: str(int(one.action.sum())), "expected": _expected_text(one, words)}
    rows = [[name, str(units)] for name, units in islice(played.items(), MOST_ROWS_SHOWN)]
    more, unused = len(played) - len(rows), len(one.plan) - len(played)
    notes = [
        f"And {counted(more, f'more {words.arm}')} in the plan." if more else "",
        f"{words.arms(unused)} without a {words.unit}." if unused else "",
    ]
    note = " ".join(filter(None, notes))
    table = Table("", [words.arm, units], rows or [["nothing", "0"]], note)
    return Panel(title, facts, (table,))


def _words_of(one: Plan | PendingPlay) -> Words:
    """Return the words of a plan; those of no learner if its store cannot be read."""
    try:
        return one._words()
    except (StoreError, InvalidInput):
        return Words()


def _expected_text(one: Plan | PendingPlay, words: Words) -> str:
    """Return the expected total as text, where it is quick to compute.

    It is not stored: ``expected`` is an estimate of the time when it is first read.
    """
    if "expected" not in vars(one) and len(one.action) > MOST_ARMS_ESTIMATED:
        return "read .expected to compute it"
    try:
        expected = vars(one).get("expected") or one._expect()
    except (StoreError, InvalidInput):
        return "read .expected to compute it"
    return words.estimate(*expected)


class Receipt(NamedTuple):
    """The result of a report.

    Attributes
    ----------
    id : int or None
        The play; None for an external plan.
    seen, missing : int
        The numbers of units of the play that were told, and that are missing.
    clipped : int
        The number of losses of the play that were outside their range and moved to its end.
    repeated : bool
        Whether the same was told before: nothing has changed.
    final : bool
        Whether the play is closed: the policy has learned from it.
    added : tuple of str
        The arms that a table of logged data added.
    skipped, known : int
        The numbers of rows of the table that were left out, and that were learned before.

    Examples
    --------
    A part comes first, and the rest later:

    >>> from multiplay import Budget, Learner
    >>> learner = Learner(Budget(3, [3], names=["trucks"]))
    >>> play = learner.ask()
    >>> print(learner.tell(play.id, {"trucks": [0.5]}, final=False))
    play 1: 1 of 3 units seen, open for more
    >>> told = learner.tell(play.id, {"trucks": [0.75, 0.25]})
    >>> told.seen, told.missing, told.final
    (3, 0, True)
    """

    id: int | None
    seen: int
    missing: int
    clipped: int = 0
    repeated: bool = False
    final: bool = True
    added: Annotated[tuple[str, ...], "The arms that a table added."] = ()
    skipped: Annotated[int, "The number of rows of a table that were left out."] = 0
    known: Annotated[int, "The number of rows of a table that were learned before."] = 0

    def __str__(self) -> str:
        return self._text("play", "units")

    def in_words(self, words: Words) -> str:
        """Return the result in the words of the user.

        Examples
        --------
        >>> print(Receipt(3, 2, 1).in_words(Words(unit="truck")))
        plan 3: 2 of 3 trucks seen
        """
        return self._text("plan", plural(words.unit))

    def _text(self, play: str, units: str) -> str:
        what = "an external plan" if self.id is None else f"{play} {self.id}"
        if self.repeated:
            known = f"all {self.known:,} rows are known" if self.known else ""
            return f"{what}: {known or 'the same was told before'}, nothing has changed"
        text = f"{what}: {self.seen} of {self.seen + self.missing} {units} seen"
        text += f", {self.clipped} clipped" if self.clipped else ""
        text += f", {counted(self.skipped, 'row')} skipped" if self.skipped else ""
        text += f", {counted(self.known, 'row')} known before" if self.known else ""
        text += f"; added {', '.join(self.added)}" if self.added else ""
        return text if self.final else text + ", open for more"


class Remaining(NamedTuple):
    """The reports that count after ``forget`` or ``unforget``.

    Attributes
    ----------
    since : int
        The first round whose reports count.
    units : int
        The number of their units, of the arm or of all arms.

    Examples
    --------
    >>> from multiplay import Budget, Learner
    >>> learner = Learner(Budget(3, [3], names=["trucks"]))
    >>> for loss in (0.25, 0.75):
    ...     told = learner.tell(learner.ask(), {"trucks": [loss] * 3})
    >>> print(learner.forget("trucks", before=2))
    reports since round 2 count: 3 units
    >>> learner.unforget("trucks", since=1).units
    6
    """

    since: int
    units: int

    def __str__(self) -> str:
        return self.in_words(Words(round="round"))

    def in_words(self, words: Words) -> str:
        """Return the result in the words of the user."""
        return f"reports since {words.round} {self.since} count: {words.units(self.units)}"


class PendingState(NamedTuple):
    """A pending play: its set, its key, and its reports so far.

    Attributes
    ----------
    play, round_set
        The choice of the policy, and the set it was chosen from.
    asked, expected : float
        The time of ``ask``, and the expected cost then; NaN if not known.
    units : int
        The number of units in total.
    digests : bytes
        The digests of all reports, concatenated.
    truncated : bool
        Whether the time limit was reached before the policy finished its choice.
    phi : array of shape (arms played, p) or None
        The features of the arms that are played, in order.
    today : dict or None
        The values of the features on the day of the play.
    best : float
        The expected cost of the best plan when it was asked; NaN if it was not computed.
    gap : float or None
        How far a truncated play may be from the best one; see ``PendingPlay``.
    """

    play: Play
    round_set: RoundSet
    key: str | None = None
    report: Report | None = None
    asked: float = NEVER
    expected: float = NEVER
    units: int = 0
    digests: bytes = b""
    truncated: bool = False
    phi: FloatArray | None = None
    today: Values | None = None
    best: float = NEVER
    gap: float | None = None

    @property
    def action(self) -> IntArray:
        """The chosen action, (1, d)."""
        return self.play.action

    @property
    def memo(self) -> Arrays:
        """The data that the policy needs to learn from the play."""
        return self.play.memo

    def with_memo(self, memo: Arrays) -> PendingState:
        """Return the play with another memo."""
        return self._replace(play=Play(self.play.action, memo, self.play.cache))

    def without_cache(self) -> PendingState:
        """Return the play without its warm start, which is in the state."""
        if not self.play.cache:
            return self
        return PendingState(Play(self.play.action, self.play.memo), *self[1:])


def play_id(play: AnyPlay, id_of: Callable[[str], int | None]) -> int:
    """Return the id of a play; a text is the key of the play, an id is returned as it is.

    ``id_of`` returns the id of a key, None if no play has the key.
    """
    if isinstance(play, PendingPlay):
        return play.id
    if not isinstance(play, str):
        return play
    id = id_of(play)
    if id is None:
        hint = Hint("Use the id of a play, or the key that was given to {}.", Verb("ask"))
        key = Hint("{}", Term("the key of a play", "key of a play"))
        raise NotFound("play", key, repr(play)[:80], hint)
    return id


def of_text(text: str, act: Callable[[int | str], T]) -> T:
    """Call a verb with a play that is named by a text: an id, or a key.

    A text of digits is an id if such a play exists, and otherwise a key.

    Examples
    --------
    >>> from multiplay import Budget, Learner
    >>> learner = Learner(Budget(1, [1, 1]))
    >>> for key in ("7", "today"):
    ...     play = learner.ask(key=key)
    >>> for text in ("7", "2"):
    ...     of_text(text, learner.cancel)
    >>> learner.plays()["status"].tolist()
    ['cancelled', 'cancelled']
    """
    if not (text.isascii() and text.isdecimal() and len(text) < LONGEST_ID):
        return act(text)
    try:
        return act(int(text))
    except NotFound as error:
        if error.argument != "play":
            raise
        with suppress(NotFound):
            return act(text)
        raise


def timestamp(argument: str, when: datetime | float | None) -> float:
    """Return a time as seconds since 1970; now for None."""
    if when is None:
        return time.time()
    value = when.timestamp() if isinstance(when, datetime) else when
    if is_number(value) and abs(value) <= FAR:
        return float(value)
    raise InvalidInput(
        argument,
        "a datetime, or seconds since 1970",
        repr(when),
        Hint(
            "Use {}, or leave it out for the present time.",
            Term("datetime.now(UTC)", "present time"),
        ),
    )


def duration_seconds(argument: str, given: timedelta | float) -> float:
    """Return a duration in seconds."""
    value = given.total_seconds() if isinstance(given, timedelta) else given
    if not is_number(value) or not value >= 0:
        hint = "Use timedelta(days=30), for example, or a number of seconds."
        raise InvalidInput(argument, "a duration of at least 0", repr(given), hint)
    return float(value)


def time_of(key: str | None, otherwise: float) -> float:
    """Return the date at the beginning of a key in seconds since 1970; another time without one.

    Examples
    --------
    >>> time_of("1970-01-02, morning", 5.0), time_of("Monday", 5.0), time_of("1970-13-02", 5.0)
    (86400.0, 5.0, 5.0)
    """
    found = DATE.match(key or "")
    day = None if found is None else moment_of(found[1])
    return otherwise if day is None else day.replace(tzinfo=UTC).timestamp()
