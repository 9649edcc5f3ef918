"""What a study promises, written down a second time: plain Python, by the names of arms.

It knows no policy and no journal, and shares no code with what it is compared with. What a plan is
to be, only the study can say; all that follows from it is computed here.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, NamedTuple

from multiplay.actions import Transport
from multiplay.policies import Policy

PENDING, TOLD, CANCELLED = "pending", "told", "cancelled"
ROUNDING = 1e-9

Answer = tuple[int | None, int, int, int, bool, bool]  # as ``Receipt``
Content = float | dict[str, Any]  # what a report says: of the round, or by arm


class Refused(Exception):
    """The study must refuse this, and change nothing."""


class Day(NamedTuple):
    """Supplies and demands by name: a set that can be made, and plans that can be checked."""

    supply: dict[str, int]
    demand: dict[str, int]

    @property
    def names(self) -> list[str]:
        """The arms, in order."""
        return [f"{one}->{other}" for one in self.supply for other in self.demand]

    def actions(self) -> Transport:
        """Make the set, anew each time."""
        names = list(self.supply), list(self.demand)
        return Transport([*self.supply.values()], [*self.demand.values()], names=names)

    def plan(self, order: int) -> dict[str, int]:
        """Fill the lanes in some order; the order of the suppliers decides."""
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
class Terms:
    """How a study was made, and what its policy can do."""

    low: float
    high: float
    clip: bool
    ignore: bool
    changing: bool
    partial: bool
    absorbs: bool
    learns_from: str

    @classmethod
    def of(cls, policy: Policy, low: float, high: float, clip: bool, ignore: bool) -> Terms:
        """Return the terms for a policy."""
        abilities = policy.changing, policy.partial, policy.absorbs, policy.learns_from
        return cls(low, high, clip, ignore, *abilities)

    def inside(self, loss: float, units: int = 1) -> tuple[float, int]:
        """Return a number that was told as it counts, and whether it was clipped."""
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
    said: list[Content] = field(default_factory=list)
    clipped: int = 0

    def __post_init__(self) -> None:
        self.units = {name: [None] * units for name, units in self.plan.items()}

    @property
    def size(self) -> int:
        """How many units it has."""
        return sum(self.plan.values())

    def seen_of(self, name: str) -> int:
        """How many units of an arm have reported, themselves or in a total."""
        if name in self.totals:
            return self.plan[name]
        return sum(loss is not None for loss in self.units[name])

    def cost_of(self, name: str) -> float:
        """What they cost."""
        known = (loss for loss in self.units[name] if loss is not None)
        return self.totals.get(name, sum(known))

    @property
    def seen(self) -> int:
        """How many units have reported."""
        return self.size if self.round is not None else sum(map(self.seen_of, self.plan))

    @property
    def realised(self) -> float:
        """What they cost."""
        return sum(map(self.cost_of, self.plan)) if self.round is None else self.round

    def take(self, content: Content, terms: Terms, partly: bool) -> None:
        """Take a report that was not told before."""
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

    def _take_round(self, told: float, terms: Terms) -> None:
        total, outside = terms.inside(told, self.size)
        if not self.seen:
            self.round, self.clipped = total, outside
        elif self.round != total:
            raise Refused

    def _take_total(self, name: str, told: float, terms: Terms) -> None:
        total, outside = terms.inside(told, self.plan[name])
        known = any(loss is not None for loss in self.units[name])
        if known or self.totals.get(name, total) != total:
            raise Refused
        self.totals[name], self.clipped = total, self.clipped + outside

    def _counted(self, loss: float | None, terms: Terms) -> float | None:
        if loss is None:
            return None
        counted, outside = terms.inside(loss)
        self.clipped += outside
        return counted

    def _take_units(self, name: str, losses: Sequence[float | None]) -> None:
        known = self.units[name]
        if name in self.totals:
            raise Refused
        if len(losses) == len(known):  # says which unit is meant
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

    def check_told(self, terms: Terms, ignore: bool) -> None:
        """Refuse the end of a play from which nothing can be learned."""
        if not ignore and self.round is None:
            silent = {name for name in self.plan if self.seen_of(name) < self.plan[name]}
            if silent - self.excused:
                raise Refused
        by_totals = bool(self.totals) or self.round is not None
        if terms.learns_from == "units" and by_totals:
            raise Refused
        if not terms.partial and self.seen < self.size:
            raise Refused

    def ends_well(self, terms: Terms) -> bool:
        """Say whether it could be closed now."""
        try:
            self.check_told(terms, ignore=True)
        except Refused:
            return False
        return True

    def answer(self, repeated: bool = False, final: bool = True) -> Answer:
        """Return the expected receipt."""
        return self.id, self.seen, self.size - self.seen, self.clipped, repeated, final


@dataclass
class Arm:
    """What was seen of an arm."""

    seen: int = 0
    cost: float = 0.0
    plans: int = 0
    last: float = math.nan


class Model:
    """A study, as its documentation describes it.

    Verbs return what the study must answer, or raise ``Refused``.

    Attributes
    ----------
    written : bool
        Whether the last verb has done something; otherwise nothing may have changed.
    """

    def __init__(self, usual: Day, terms: Terms) -> None:
        self.usual, self.terms = usual, terms
        self.plays: dict[int, Play] = {}
        self.arms: dict[str, Arm] = {name: Arm() for name in usual.names}
        self.keys: dict[tuple[str, str], Any] = {}  # of a verb: what was asked, and the answer
        self.rounds = self.clipped = 0
        self.written = False

    @property
    def pending(self) -> list[Play]:
        """The pending plays, oldest first."""
        return [play for play in self.plays.values() if play.status == PENDING]

    @property
    def told(self) -> list[Play]:
        """The plays of which something was told."""
        return [play for play in self.plays.values() if play.said]

    def known(self, verb: str, key: str | None, request: Any) -> Any:
        """Return the answer to a key; refuse it for another request."""
        before, answer = self.keys.get((verb, key or ""), (None, None))
        if before is not None and before != request:
            raise Refused
        return answer

    def note(self, verb: str, key: str | None, request: Any, answer: Any) -> None:
        """Note that something was done, with a key or without."""
        self.written = True
        if key is not None:
            self.keys[verb, key] = request, answer

    # ------------------------------------------------------------ verbs

    def asked_before(self, key: str | None) -> Play | None:
        """Return the play of a key."""
        return next((p for p in self.plays.values() if key is not None and p.key == key), None)

    def ask(self, id: int, key: str | None, names: Sequence[str], plan: Any, at: float) -> None:
        """Take the play that the study has chosen."""
        self.written = True
        self.meet(names)
        self.plays[id] = Play(dict(plan), id, key, at)

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
        """Take a report."""
        play, content = self.play(id), meaning(losses)
        if isinstance(content, float) and self.terms.learns_from != "round":
            raise Refused
        if isinstance(content, dict) and content.keys() - play.plan.keys():
            raise Refused
        known: Answer | None = self.known("tell", key, (id, content, final))
        if known is not None:
            return *known[:4], True, known[5]
        repeated = content in play.said
        if play.status == TOLD and repeated:
            return play.answer(repeated=True)
        if play.status != PENDING:
            raise Refused
        ignore = self.terms.ignore if missing is None else missing == "ignore"
        draft = copy.deepcopy(play)
        if not repeated:
            draft.take(content, self.terms, partly=ignore or not final or bool(play.said))
            draft.said.append(content)
        if final:
            draft.check_told(self.terms, ignore)
        elif repeated:
            return draft.answer(repeated=True, final=False)
        self.plays[id] = draft
        if final:
            self.finish(draft, at)
        self.note("tell", key, (id, content, final), draft.answer(final=final))
        return draft.answer(final=final)

    def close(self, id: Any, *, at: float, key: str | None = None) -> Answer:
        """Learn from what was told so far."""
        known: Answer | None = self.known("close", key, id)
        if known is not None:
            return *known[:4], True, known[5]
        play = self.play(id)
        if play.status != PENDING or not play.ends_well(self.terms):
            raise Refused
        self.finish(play, at)
        self.note("close", key, id, play.answer())
        return play.answer()

    def cancel(self, id: Any, *, at: float, key: str | None = None) -> None:
        """Forget a play."""
        if self.known("cancel", key, id):
            return
        play = self.play(id)
        if play.status != PENDING:
            raise Refused
        play.status = CANCELLED
        self.note("cancel", key, id, True)

    def expire(self, older_than: float, *, at: float, key: str | None = None) -> list[int]:
        """End old plays."""
        known: list[int] | None = self.known("expire", key, "expire")
        if known is not None:
            return known
        late = [play for play in self.pending if play.asked < at - older_than]
        for play in late:
            if play.said and play.ends_well(self.terms):
                self.finish(play, at)
            else:
                play.status = CANCELLED
        ids = [play.id for play in late if play.id is not None]
        self.note("expire", key, "expire", ids)
        return ids

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
        play, content = Play(dict(plan)), meaning(losses)
        if isinstance(content, float) or content.keys() - plan.keys():
            raise Refused
        known: Answer | None = self.known("learn", key, (dict(plan), content))
        if known is not None:
            return *known[:4], True, known[5]
        ignore = self.terms.ignore if missing is None else missing == "ignore"
        play.take(content, self.terms, partly=ignore)
        play.check_told(self.terms, ignore)
        self.meet(day.names)
        for name in plan:
            self.see(name, play.seen_of(name), play.cost_of(name), at)
        self.clipped += play.clipped
        self.note("learn", key, (dict(plan), content), play.answer())
        return play.answer()

    def learn_table(self, rows: Mapping[str, Sequence[Any]], *, key: str | None = None) -> Answer:
        """Learn from a history."""
        if not self.terms.absorbs:
            raise Refused
        request = repr(rows)
        known: Answer | None = self.known("learn_table", key, request)
        if known is not None:
            return *known[:4], True, known[5]
        told = [(arm, loss) for arm, loss in zip(rows["arm"], rows["loss"], strict=True)]
        if {arm for arm, _ in told} - self.arms.keys():
            raise Refused
        inside = [(arm, *self.terms.inside(loss)) for arm, loss in told if not math.isnan(loss)]
        if len(inside) < len(told) and not self.terms.partial:
            raise Refused
        for arm, loss, _ in inside:
            self.see(arm, 1, loss, math.nan)
        clipped = sum(outside for *_, outside in inside)
        self.clipped += clipped
        answer = None, len(inside), len(told) - len(inside), clipped, False, True
        self.note("learn_table", key, request, answer)
        return answer

    # ------------------------------------------------------------ inside

    def play(self, id: Any) -> Play:
        """Return a play, if there is one."""
        if type(id) is not int or id not in self.plays:
            raise Refused
        return self.plays[id]

    def meet(self, names: Sequence[str]) -> None:
        """Add the arms that are new."""
        for name in names:
            self.arms.setdefault(name, Arm())

    def see(self, name: str, seen: int, cost: float, at: float) -> None:
        """Count what was seen of an arm."""
        arm = self.arms[name]
        arm.seen, arm.cost = arm.seen + seen, arm.cost + cost
        if seen and not math.isnan(at):
            arm.last = at if math.isnan(arm.last) else max(arm.last, at)

    def finish(self, play: Play, at: float) -> None:
        """Learn from a play: nothing more will come."""
        play.status, play.told = TOLD, at
        self.rounds += 1
        self.clipped += play.clipped
        for name, units in play.plan.items():
            self.arms[name].plans += units > 0
            if play.round is None:
                self.see(name, play.seen_of(name), play.cost_of(name), at)


def meaning(losses: Any) -> Content:
    """Return what a report says: arms of which it says nothing are left out."""
    if isinstance(losses, float):
        return losses
    if not isinstance(losses, Mapping):
        raise Refused
    said = {name: given for name, given in losses.items() if given is not None}
    said = {name: g if isinstance(g, float) else tuple(g) for name, g in said.items()}
    return {name: given for name, given in said.items() if given != ()}
