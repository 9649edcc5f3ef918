"""Model of a study: its documented behaviour in plain Python, by the names of arms.

The model has no policy and no journal, and shares no code with studies. It takes the plan of each
play from the study, and computes all other results.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import permutations
from typing import Any, NamedTuple

from multiplay import Words
from multiplay.actions import Transport
from multiplay.constraints import Promise, SwitchingCost
from multiplay.policies import Policy

PENDING, TOLD, CANCELLED = "pending", "told", "cancelled"
ROUNDING = 1e-9

Answer = tuple[int | None, int, int, int, bool, bool, tuple[str, ...], int, int]  # as ``Receipt``
Content = float | dict[str, Any]  # a report: the total of the round, or losses by arm


class Refused(Exception):
    """The study must refuse the request, and change nothing."""


class Day(NamedTuple):
    """Supplies and demands by name, which define a set of plans."""

    supply: dict[str, int]
    demand: dict[str, int]

    @property
    def names(self) -> list[str]:
        """The arms, in order."""
        return [f"{one}->{other}" for one in self.supply for other in self.demand]

    def actions(self) -> Transport:
        """Return a new object of the set."""
        names = list(self.supply), list(self.demand)
        return Transport([*self.supply.values()], [*self.demand.values()], names=names)

    def plan(self, order: int) -> dict[str, int]:
        """Return the plan that fills the lanes in an order of the suppliers."""
        orders = [*permutations(self.supply)]
        left, wanted = dict(self.supply), dict(self.demand)
        plan = dict.fromkeys(self.names, 0)
        for one in orders[order % len(orders)]:
            for other in self.demand:
                units = min(left[one], wanted[other])
                plan[f"{one}->{other}"] = units
                left[one], wanted[other] = left[one] - units, wanted[other] - units
        return plan

    def has(self, plan: Mapping[str, int]) -> bool:
        """Return whether a plan is in the set of this round."""
        lanes = {tuple(name.split("->")): units for name, units in plan.items()}
        sent = {x: sum(k for (one, _), k in lanes.items() if one == x) for x in self.supply}
        came = {y: sum(k for (_, one), k in lanes.items() if one == y) for y in self.demand}
        whole = min(plan.values(), default=0) >= 0 and list(plan) == self.names
        return whole and sent == self.supply and came == self.demand


@dataclass(frozen=True)
class StudyTerms:
    """The settings of a study, and the abilities of its policy."""

    low: float
    high: float
    clip: bool
    ignore: bool
    changing: bool
    partial: bool
    absorbs: bool
    learns_from: str
    promises: tuple[bool, ...]  # which promises it can have: hard=True, hard=False
    indexed: bool  # whether it can have a switching cost
    change: float | None  # what a changed unit costs

    @classmethod
    def of(
        cls,
        policy: Policy,
        low: float,
        high: float,
        clip: bool,
        ignore: bool,
        promises: tuple[bool, ...],
        indexed: bool,
        change: float | None,
    ) -> StudyTerms:
        """Return the terms for a policy."""
        abilities = policy.changing, policy.partial, policy.absorbs, policy.learns_from
        return cls(low, high, clip, ignore, *abilities, promises, indexed, change)

    def inside(self, loss: float, units: int = 1) -> tuple[float, int]:
        """Return a loss within its range, and whether it was clipped."""
        low, high = units * self.low, units * self.high
        slack = ROUNDING * units * (self.high - self.low) if units > 1 else 0.0
        outside = not low - slack <= loss <= high + slack
        if outside and not self.clip:
            raise Refused
        return min(max(loss, low), high), int(outside)


@dataclass
class Play:
    """A play or an external plan: its reports so far, and its outcome."""

    plan: dict[str, int]
    id: int | None = None
    key: str | None = None
    asked: float = math.nan
    told: float = math.nan
    status: str = PENDING
    units: dict[str, list[float | None]] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    round: float | None = None
    excused: set[str] = field(default_factory=set)  # arms told by a full list
    reports: list[Content] = field(default_factory=list)
    whole: Content | None = None  # the report that counts, if it came at once
    clipped: int = 0
    closed: bool = False  # without a final report
    asked_for: str = ""  # its set and limits

    def __post_init__(self) -> None:
        self.units = {name: [None] * units for name, units in self.plan.items()}

    @property
    def size(self) -> int:
        """The number of units."""
        return sum(self.plan.values())

    def seen_of(self, name: str) -> int:
        """Return the number of observed units of an arm, one by one or in a total."""
        if name in self.totals:
            return self.plan[name]
        return sum(loss is not None for loss in self.units[name])

    def cost_of(self, name: str) -> float:
        """Return the cost of the observed units of an arm."""
        known = (loss for loss in self.units[name] if loss is not None)
        return self.totals.get(name, sum(known))

    @property
    def seen(self) -> int:
        """The number of observed units."""
        return self.size if self.round is not None else sum(map(self.seen_of, self.plan))

    def driven(self, name: str) -> int:
        """Return the units of an arm that count: those of the plan, or of the final report.

        A unit that a report marks with None was driven; one that it leaves out was not. A play that
        is closed without a final report counts as planned.
        """
        planned = self.closed or self.status == PENDING or self.round is not None
        return self.plan[name] if planned or name in self.excused else self.seen_of(name)

    @property
    def realised(self) -> float:
        """The cost of the observed units."""
        return sum(map(self.cost_of, self.plan)) if self.round is None else self.round

    def take(self, content: Content, terms: StudyTerms, partly: bool) -> None:
        """Add a new report."""
        if isinstance(content, float):
            self._take_round(content, terms)
            return
        if content.keys() - self.plan.keys() or self.round is not None:
            raise Refused
        for name, known in self.units.items():
            given = content.get(name, ())
            if isinstance(given, float):
                self._take_total(name, given, terms)
            elif len(given) > len(known) or (not partly and len(given) < len(known)):
                raise Refused
            elif given:
                self._take_units(name, [self._counted(loss, terms) for loss in given])

    def _take_round(self, told: float, terms: StudyTerms) -> None:
        total, outside = terms.inside(told, self.size)
        if not self.seen:
            self.round, self.clipped = total, outside
        elif self.round != total:
            raise Refused

    def _take_total(self, name: str, told: float, terms: StudyTerms) -> None:
        total, outside = terms.inside(told, self.plan[name])
        known = any(loss is not None for loss in self.units[name])
        if known or self.totals.get(name, total) != total:
            raise Refused
        self.totals[name], self.clipped = total, self.clipped + outside

    def _counted(self, loss: float | None, terms: StudyTerms) -> float | None:
        if loss is None:
            return None
        counted, outside = terms.inside(loss)
        self.clipped += outside
        return counted

    def _take_units(self, name: str, losses: Sequence[float | None]) -> None:
        known = self.units[name]
        if name in self.totals:
            raise Refused
        if len(losses) == len(known):  # one entry for each unit
            self.excused.add(name)
            places = list(range(len(known)))
        else:
            places = [place for place, loss in enumerate(known) if loss is None]
            if len(losses) > len(places):
                raise Refused
        for place, loss in zip(places, losses, strict=False):
            if loss is not None and known[place] not in (None, loss):
                raise Refused
            known[place] = known[place] if loss is None else loss

    def check_told(self, terms: StudyTerms, ignore: bool) -> None:
        """Refuse to finish a play from which the policy cannot learn."""
        if not ignore and self.round is None:
            silent = {name for name in self.plan if self.seen_of(name) < self.plan[name]}
            if silent - self.excused:
                raise Refused
        by_totals = bool(self.totals) or self.round is not None
        if terms.learns_from == "units" and by_totals:
            raise Refused
        if not terms.partial and self.seen < self.size:
            raise Refused

    def can_close(self, terms: StudyTerms) -> bool:
        """Return whether the play can be closed."""
        try:
            self.check_told(terms, ignore=True)
        except Refused:
            return False
        return True

    def answer(self, repeated: bool = False, final: bool = True) -> Answer:
        """Return the expected receipt."""
        return self.id, self.seen, self.size - self.seen, self.clipped, repeated, final, (), 0, 0


@dataclass
class Promised:
    """A promise, the plays that count for it, and the external plans."""

    promise: Promise
    plays: list[int] = field(default_factory=list)
    external: list[dict[str, int]] = field(default_factory=list)

    def counts(self, at: float) -> bool:
        """Return whether a play at this time counts; dates end at midnight, UTC."""
        until = self.promise.until
        return until is None or datetime.fromtimestamp(at, UTC).date().isoformat() <= until

    def amount(self, units: Mapping[str, int]) -> float:
        """Return what units use: by the name of the arm, or "*"."""
        of = self.promise.of
        return sum(count * of.get(name, of["*"]) for name, count in units.items())


@dataclass
class Arm:
    """The statistics of an arm."""

    seen: int = 0
    cost: float = 0.0
    plans: int = 0
    last: float = math.nan


class Model:
    """A study, as its documentation describes it.

    Verbs return the answer that the study must give, or raise ``Refused``.

    Attributes
    ----------
    written : bool
        Whether the last verb changed the study.
    """

    def __init__(self, usual: Day, terms: StudyTerms) -> None:
        self.usual, self.terms = usual, terms
        self.plays: dict[int, Play] = {}
        self.arms: dict[str, Arm] = {name: Arm() for name in usual.names}
        self.keys: dict[tuple[str, str], Any] = {}  # by verb and key: the request, and the answer
        self.words = Words(arm="lane")
        self.versus: Any = None
        self.promises: dict[str, Promised] = {}
        self.change = terms.change
        self.counted: list[tuple[int | None, Callable[[], None]]] = []  # reports, by play
        self.rows: Counter[str] = Counter()  # of all tables that were learned
        self.rounds = self.external = self.clipped = 0
        self.written = False

    @property
    def pending(self) -> list[Play]:
        """The pending plays, oldest first."""
        return [play for play in self.plays.values() if play.status == PENDING]

    @property
    def told(self) -> list[Play]:
        """The plays with at least one report."""
        return [play for play in self.plays.values() if play.reports]

    def known(self, verb: str, key: str | None, request: Any) -> Any:
        """Return the answer to a key; refuse the key for a different request."""
        before, answer = self.keys.get((verb, key or ""), (None, None))
        if before is not None and before != request:
            raise Refused
        return answer

    def note(self, verb: str, key: str | None, request: Any, answer: Any) -> None:
        """Record a change, with its answer if it has a key."""
        self.written = True
        if key is not None:
            self.keys[verb, key] = request, answer

    # ------------------------------------------------------------ verbs

    def asked_before(self, key: str | None) -> Play | None:
        """Return the last play of a key."""
        named = (p for p in reversed(self.plays.values()) if key is not None and p.key == key)
        return next(named, None)

    def ask(
        self,
        id: int,
        key: str | None,
        names: Sequence[str],
        plan: Any,
        at: float,
        asked_for: str = "",
    ) -> None:
        """Add the play that the study has chosen."""
        self.written = True
        self.add_arms(names)
        self.plays[id] = Play(dict(plan), id, key, at, asked_for=asked_for)
        for one in self.promises.values():
            if one.counts(at):
                one.plays.append(id)

    def change_cost(self, plan: Mapping[str, int]) -> float:
        """Return what a new plan costs, compared with the last one that was not cancelled."""
        played = [play.plan for play in self.plays.values() if play.status != CANCELLED]
        if not played or self.change is None:
            return 0.0
        changed = (abs(units - played[-1].get(name, 0)) for name, units in plan.items())
        return self.change * sum(changed)

    def used(self, name: str) -> tuple[float, float]:
        """Return what counts for a promise, and the part of external plans."""
        one = self.promises[name]
        plays = [self.plays[id] for id in one.plays if self.plays[id].status != CANCELLED]
        driven = [{arm: play.driven(arm) for arm in play.plan} for play in plays]
        external = sum(map(one.amount, one.external))
        return sum(map(one.amount, driven)) + external, external

    def add_constraint(
        self, given: Promise | SwitchingCost, *, at: float, key: str | None = None
    ) -> None:
        """Add a promise or a switching cost."""
        if self.known("add_constraint", key, repr(given)):
            return
        if isinstance(given, SwitchingCost):
            if self.change is not None or not self.terms.indexed:
                raise Refused
            self.change = given.cost
        else:
            if given.name in self.promises or given.hard not in self.terms.promises:
                raise Refused
            self.promises[given.name] = Promised(given)
        self.note("add_constraint", key, repr(given), True)

    def end_constraint(self, name: str, *, at: float, key: str | None = None) -> None:
        """End a promise, or the switching cost."""
        if self.known("end_constraint", key, name):
            return
        if name == "switching cost" and self.change is not None:
            self.change = None
        elif name in self.promises:
            del self.promises[name]
        else:
            raise Refused
        self.note("end_constraint", key, name, True)

    def tell(
        self,
        id: Any,
        losses: Any,
        *,
        at: float,
        final: bool = True,
        missing: str | None = None,
        key: str | None = None,
    ) -> Answer:
        """Add a report to a play."""
        play, content = self.play(id), report_content(losses)
        id = play.id
        if isinstance(content, float) and self.terms.learns_from != "round":
            raise Refused
        if isinstance(content, dict) and content.keys() - play.plan.keys():
            raise Refused
        known: Answer | None = self.known("tell", key, (id, content, final))
        if known is not None:
            return *known[:4], True, *known[5:]
        repeated = content in play.reports
        if play.status == TOLD and repeated:
            return play.answer(repeated=True)
        if play.status != PENDING:
            raise Refused
        ignore = self.terms.ignore if missing is None else missing == "ignore"
        draft = copy.deepcopy(play)
        if not repeated:
            draft.take(content, self.terms, partly=ignore or not final or bool(play.reports))
            draft.reports.append(content)
        if final:
            draft.check_told(self.terms, ignore)
        elif repeated:
            return draft.answer(repeated=True, final=False)
        self.plays[id] = draft
        if final:
            draft.whole = content if draft.reports == [content] and not play.reports else None
            self.finish(draft, at)
        self.note("tell", key, (id, content, final), draft.answer(final=final))
        return draft.answer(final=final)

    def close(self, id: Any, *, at: float, key: str | None = None) -> Answer:
        """Learn from the reports so far."""
        play = self.play(id)
        known: Answer | None = self.known("close", key, play.id)
        if known is not None:
            return *known[:4], True, *known[5:]
        if play.status != PENDING or not play.can_close(self.terms):
            raise Refused
        play.closed = True
        self.finish(play, at)
        self.note("close", key, play.id, play.answer())
        return play.answer()

    def cancel(self, id: Any, *, at: float, key: str | None = None) -> None:
        """Cancel a play."""
        play = self.play(id)
        if self.known("cancel", key, play.id):
            return
        if play.status != PENDING:
            raise Refused
        play.status = CANCELLED
        self.note("cancel", key, play.id, True)

    def correct(
        self, id: Any, losses: Any, *, at: float, missing: str | None = None, key: str | None = None
    ) -> Answer:
        """Replace the report of a play."""
        play, content = self.play(id), report_content(losses)
        if isinstance(content, float) and self.terms.learns_from != "round":
            raise Refused
        if isinstance(content, dict) and content.keys() - play.plan.keys():
            raise Refused
        known: Answer | None = self.known("correct", key, (play.id, content))
        if known is not None:
            return *known[:4], True, *known[5:]
        if play.status != TOLD:
            raise Refused
        if play.whole == content:
            return play.answer(repeated=True)
        ignore = self.terms.ignore if missing is None else missing == "ignore"
        draft = Play(play.plan, play.id, play.key, play.asked, play.told, TOLD)
        draft.asked_for = play.asked_for
        draft.take(content, self.terms, partly=ignore)
        draft.check_told(self.terms, ignore)
        draft.reports, draft.whole = [*play.reports, content], content
        self.replace(play, draft)
        self.note("correct", key, (play.id, content), draft.answer())
        return draft.answer()

    def retract(self, id: Any, *, at: float, key: str | None = None) -> None:
        """Withdraw the report of a play, or its parts."""
        play = self.play(id)
        if self.known("retract", key, play.id):
            return
        if play.status != TOLD and not (play.status == PENDING and play.reports):
            raise Refused
        self.replace(play, Play(play.plan, play.id, play.key, play.asked, asked_for=play.asked_for))
        self.note("retract", key, play.id, True)

    def replace(self, play: Play, new: Play) -> None:
        """Replace a play, and count all reports again."""
        assert play.id is not None
        self.plays[play.id] = new
        counted, self.counted = self.counted, []
        self.rounds = self.external = self.clipped = 0
        self.arms = {name: Arm() for name in self.arms}
        for id, count in counted:
            if id is None or self.plays[id].status == TOLD:
                self.learned(count, id)

    def expire(self, older_than: float, *, at: float, key: str | None = None) -> list[int]:
        """End old plays."""
        known: list[int] | None = self.known("expire", key, "expire")
        if known is not None:
            return known
        late = [play for play in self.pending if play.asked < at - older_than]
        for play in late:
            if play.reports and play.can_close(self.terms):
                play.closed = True
                self.finish(play, at)
            else:
                play.status = CANCELLED
        ids = [play.id for play in late if play.id is not None]
        self.note("expire", key, "expire", ids)
        return ids

    def set_words(self, words: Words, *, at: float, key: str | None = None) -> None:
        """Set all words."""
        if self.known("set_words", key, words):
            return
        self.words = words
        self.note("set_words", key, words, True)

    def set_versus(self, rule: Any, *, at: float, key: str | None = None) -> None:
        """Set the rule that plays are compared with."""
        if self.known("set_versus", key, repr(rule)):
            return
        self.versus = rule
        self.note("set_versus", key, repr(rule), True)

    def learn(
        self,
        plan: Mapping[str, int],
        losses: Any,
        *,
        at: float,
        day: Day,
        missing: str | None = None,
        key: str | None = None,
    ) -> Answer:
        """Learn from an external plan."""
        if not self.terms.absorbs or not day.has(plan):
            raise Refused
        play, content = Play(dict(plan)), report_content(losses)
        if isinstance(content, float) or content.keys() - plan.keys():
            raise Refused
        known: Answer | None = self.known("learn", key, (dict(plan), content))
        if known is not None:
            return *known[:4], True, *known[5:]
        ignore = self.terms.ignore if missing is None else missing == "ignore"
        play.take(content, self.terms, partly=ignore)
        play.check_told(self.terms, ignore)
        self.add_arms(day.names)

        def count() -> None:
            for name, units in plan.items():
                self.add_units(name, play.seen_of(name), play.cost_of(name), at)
                self.arms[name].plans += units > 0
            self.external += 1
            self.clipped += play.clipped

        self.learned(count)
        for one in self.promises.values():
            if one.counts(at):
                one.external.append(dict(plan))
        self.note("learn", key, (dict(plan), content), play.answer())
        return play.answer()

    def learn_table(
        self,
        rows: Mapping[str, Sequence[Any]],
        *,
        skip_bad: bool = False,
        again: str = "skip",
        key: str | None = None,
    ) -> Answer:
        """Learn from a history; a round is a time, or a label."""
        if not self.terms.absorbs:
            raise Refused
        units = list(zip(rows["round"], rows["arm"], rows["loss"], strict=True))
        told = [unit for unit in units if self.can_learn(*unit[1:])]
        if not told or (len(told) < len(units) and not skip_bad):
            raise Refused
        request = repr(told)
        known: Answer | None = self.known("learn_table", key, request)
        if known is not None:
            return *known[:4], True, *known[5:]
        skipped, number = len(units) - len(told), len(told)
        if again != "add":
            told = self.new_rows(told)
        same = number - len(told)
        if same and again == "refuse":
            raise Refused
        if not told:
            return None, 0, 0, 0, True, True, (), skipped, same
        inside = [(*unit[:2], *self.terms.inside(unit[2])) for unit in told if unit[2] == unit[2]]
        if len(inside) < len(told) and not self.terms.partial:
            raise Refused
        self.rows.update(map(repr, told))
        added = tuple(dict.fromkeys(arm for _, arm, _ in told if arm not in self.arms))
        self.add_arms(added)
        clipped = sum(outside for *_, outside in inside)

        def count() -> None:
            for round, arm, loss, _ in inside:
                dated = isinstance(round, datetime)
                self.add_units(arm, 1, loss, round.timestamp() if dated else math.nan)
            for _, arm in {(round, arm) for round, arm, _ in told}:
                self.arms[arm].plans += 1
            self.external += len({round for round, *_ in told})
            self.clipped += clipped

        self.learned(count)
        seen = len(inside)
        answer = None, seen, len(told) - seen, clipped, False, True, added, skipped, same
        self.note("learn_table", key, request, answer)
        return answer

    # ------------------------------------------------------------ inside

    def new_rows(self, given: Sequence[Any]) -> list[Any]:
        """Return the units of a history that are not in those before; equal ones are counted."""
        known, found = self.rows.copy(), list[Any]()
        for unit in given:
            if known[repr(unit)]:
                known[repr(unit)] -= 1
            else:
                found.append(unit)
        return found

    def can_learn(self, arm: Any, loss: float) -> bool:
        """Return whether a unit of a history can be learned."""
        try:
            self.terms.inside(self.terms.low if math.isnan(loss) else loss)
        except Refused:
            return False
        return arm is not None and (self.terms.changing or arm in self.arms)

    def play(self, id: Any) -> Play:
        """Return a play by its id or key, or refuse an unknown one."""
        named = self.asked_before(id) if isinstance(id, str) else None
        if named is not None:
            return named
        if type(id) is not int or id not in self.plays:
            raise Refused
        return self.plays[id]

    def add_arms(self, names: Sequence[str]) -> None:
        """Add the arms that are new."""
        for name in names:
            self.arms.setdefault(name, Arm())

    def add_units(self, name: str, seen: int, cost: float, at: float) -> None:
        """Add observed units to an arm."""
        arm = self.arms[name]
        arm.seen, arm.cost = arm.seen + seen, arm.cost + cost
        if seen and not math.isnan(at):
            arm.last = at if math.isnan(arm.last) else max(arm.last, at)

    def finish(self, play: Play, at: float) -> None:
        """Learn from a play; it receives no more reports."""
        play.status, play.told, id = TOLD, at, play.id
        assert id is not None

        def count() -> None:
            now = self.plays[id]  # it may be corrected
            self.rounds += 1
            self.clipped += now.clipped
            for name, units in now.plan.items():
                self.arms[name].plans += units > 0
                if now.round is None:
                    self.add_units(name, now.seen_of(name), now.cost_of(name), at)

        self.learned(count, id)

    def learned(self, count: Callable[[], None], id: int | None = None) -> None:
        """Count a report, of a play or of an external plan; see ``replace``."""
        self.counted.append((id, count))
        count()


def report_content(losses: Any) -> Content:
    """Return the content of a report, without the arms that have no losses."""
    if isinstance(losses, float):
        return losses
    if not isinstance(losses, Mapping):
        raise Refused
    content = {name: given for name, given in losses.items() if given is not None}
    content = {name: g if isinstance(g, float) else tuple(g) for name, g in content.items()}
    return {name: given for name, given in content.items() if given != ()}
