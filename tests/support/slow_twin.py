"""A learner, slowly: all that happened is kept, and everything is computed anew from that.

Written from the documentation, with plain dicts by the names of arms, and without any of the
classes that it is compared with.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

EPSILON, ETA = 0.2, 0.25


class RefusedError(Exception):
    """What was told cannot be used."""


@dataclass(frozen=True)
class Settings:
    """How the learner was made; ``ranges`` has "*" for all arms that it does not name."""

    policy: str  # GenCTS, CombUCB, GenLBINFV or Hybrid
    ranges: Mapping[str, tuple[float, float]]
    clip: bool = False
    rewards: bool = False
    horizon: int | None = None
    gd: bool = False
    first_by_units: bool = False

    @property
    def scale(self) -> float:
        return max(high - low for low, high in self.ranges.values())

    def low(self, arm: str) -> float:
        return self.ranges.get(arm, self.ranges["*"])[0]

    def high(self, arm: str) -> float:
        return self.ranges.get(arm, self.ranges["*"])[1]


class Asked(NamedTuple):
    """A play; ``x`` and ``rest`` are what the policy noted of it, n = x + rest."""

    id: int
    key: str | None
    when: float
    plan: dict[str, int]
    short: float
    x: dict[str, float]
    rest: dict[str, float]
    n: dict[str, int]


class Told(NamedTuple):
    id: int
    losses: dict[str, Any]
    final: bool
    ignore: bool
    when: float


class Closed(NamedTuple):
    id: int
    when: float


class Cancelled(NamedTuple):
    id: int


class Learned(NamedTuple):
    plan: dict[str, int]
    losses: dict[str, Any]
    n: dict[str, int]
    ignore: bool
    when: float


class Table(NamedTuple):
    rows: Sequence[tuple[int, str, float | None]]  # round, arm, loss


Event = Asked | Told | Closed | Cancelled | Learned | Table


@dataclass
class Arm:
    """What is known of an arm; N and S are units and the sum of their losses, in [0, 1]."""

    L: float
    beta2: float
    q: float = 0.5
    N: int = 0
    S: float = 0.0
    euros: float = 0.0
    plans: int = 0
    last: float = math.nan
    heads: int | None = 0  # None: it depends on coins


@dataclass
class Play:
    """What was told of a play so far."""

    asked: Asked
    g: float
    q: dict[str, float]
    expected: float
    units: dict[str, list[float | None]]
    totals: dict[str, float] = field(default_factory=dict)
    in_full: set[str] = field(default_factory=set)
    reports: list[dict[str, Any]] = field(default_factory=list)
    status: str = "pending"
    clipped: int = 0
    seen: int = 0
    realised: float = math.nan
    told: float = math.nan


class Story:
    """Everything that follows from what happened."""

    def __init__(self, settings: Settings, first: Mapping[str, int], events: Sequence[Event]):
        self.settings = settings
        self.arms: dict[str, Arm] = {}
        self.plays: dict[int, Play] = {}
        self.rounds = self.clipped = 0
        self.repeated = False  # whether the last event was a report that was told before
        self.meet(first)
        for event in events:
            self.repeated = False
            getattr(self, f"on_{type(event).__name__.lower()}")(event)

    # ------------------------------------------------------------ arms

    def meet(self, n: Mapping[str, int]) -> None:
        for name, most in n.items():
            if name not in self.arms:
                beta = (1 + EPSILON) / (max(most, 1) if self.settings.first_by_units else 1)
                start = self.rounds * (0.5 + self.offset(name))
                self.arms[name] = Arm(start, beta**2)

    def offset(self, name: str) -> float:
        return self.settings.low(name) / self.settings.scale

    def prediction(self, name: str) -> float:
        arm = self.arms[name]
        return arm.q if self.settings.gd else (0.5 + arm.S) / (1 + arm.N)

    # ------------------------------------------------------------ what happens

    def on_asked(self, event: Asked) -> None:
        self.meet(event.n)
        best = 1.0 if self.settings.rewards else 0.0
        hybrid = self.settings.policy == "Hybrid"
        delta = (1 + EPSILON) / (3 * EPSILON)
        g = max(4.0, 1.5 + delta, math.log(self.rounds + 1))
        if self.settings.horizon is not None:
            g = math.log(self.settings.horizon)
        self.plays[event.id] = Play(
            event,
            g,
            {name: best if hybrid else self.prediction(name) for name in event.n},
            event.short + sum(a * self.euros(i, self.prediction(i)) for i, a in event.plan.items()),
            {name: [None] * units for name, units in event.plan.items()},
        )

    def euros(self, name: str, loss: float) -> float:
        return self.settings.low(name) + self.settings.scale * loss

    def on_told(self, event: Told) -> None:
        play, content = self.plays[event.id], meaning(event.losses)
        self.repeated = content in play.reports
        if play.status == "cancelled" or (play.status == "told" and not self.repeated):
            raise RefusedError
        if play.status == "told":
            return
        if not self.repeated:
            partly = event.ignore or not event.final or bool(play.reports)
            self.merge(play, content, partly)
            play.reports.append(content)
        if event.final:
            if not event.ignore:
                check_gaps(play)
            self.repeated = False
            self.finish(play, event.when)

    def on_closed(self, event: Closed) -> None:
        self.finish(self.plays[event.id], event.when)

    def on_cancelled(self, event: Cancelled) -> None:
        self.plays[event.id].status = "cancelled"

    def on_learned(self, event: Learned) -> None:
        asked = Asked(0, None, event.when, event.plan, 0.0, {}, {}, event.n)
        units: dict[str, list[float | None]] = {i: [None] * a for i, a in event.plan.items()}
        play = Play(asked, 0.0, {}, 0.0, units)
        self.merge(play, meaning(event.losses), event.ignore)
        if not event.ignore:
            check_gaps(play)
        self.meet(event.n)
        for name in event.plan:
            self.count(name, *self.seen_of(play, name), event.when)
        self.clipped += play.clipped

    def on_table(self, event: Table) -> None:
        for number in sorted({row[0] for row in event.rows}):
            for name in self.arms:
                told = [loss for t, arm, loss in event.rows if (t, arm) == (number, name)]
                known = [self.in_range(name, loss) for loss in told if loss is not None]
                self.clipped += sum(outside for _, outside in known)
                self.count(name, [loss for loss, _ in known], None, math.nan)

    # ------------------------------------------------------------ reports

    def in_range(self, name: str, loss: float, units: int = 1) -> tuple[float, int]:
        low, high = units * self.settings.low(name), units * self.settings.high(name)
        slack = 0.0 if units == 1 else 1e-9 * units * self.settings.scale
        outside = not low - slack <= loss <= high + slack
        if outside and not self.settings.clip:
            raise RefusedError
        return min(max(loss, low), high), int(outside)

    def merge(self, play: Play, content: dict[str, Any], partly: bool) -> None:
        for name, known in play.units.items():
            given = content.get(name, ())
            if isinstance(given, float):
                if not known:
                    raise AssertionError("nobody tells a total of nothing here")
                total, outside = self.in_range(name, given, len(known))
                play.clipped += outside
                before = play.totals.get(name, total)
                if before != total or any(loss is not None for loss in known):
                    raise RefusedError
                play.totals[name] = total
                continue
            if len(given) > len(known) or (not partly and len(given) != len(known)):
                raise RefusedError
            losses: list[float | None] = []
            for loss in given:
                inside, outside = (None, 0) if loss is None else self.in_range(name, loss)
                losses.append(inside)
                play.clipped += outside
            if losses and name in play.totals:
                raise RefusedError
            if losses and len(losses) == len(known):
                play.in_full.add(name)
                for j, loss in enumerate(losses):
                    if loss is not None and known[j] not in (None, loss):
                        raise RefusedError
                    known[j] = known[j] if loss is None else loss
            else:
                free = [j for j, loss in enumerate(known) if loss is None]
                if len(losses) > len(free):
                    raise RefusedError
                for j, loss in zip(free, losses, strict=False):
                    known[j] = loss
        if content.keys() - play.units.keys():
            raise RefusedError

    def seen_of(self, play: Play, name: str) -> tuple[list[float], float | None]:
        """Return the losses of the units seen, in euros; or how many units, and their total.

        A report with a total of some arm is a report of totals.
        """
        known = [loss for loss in play.units[name] if loss is not None]
        if not play.totals:
            return known, None
        units = len(play.units[name]) if name in play.totals else len(known)
        return [math.nan] * units, play.totals.get(name, sum(known))

    def count(self, name: str, seen: list[float], total: float | None, when: float) -> None:
        """Take the samples of an arm, whoever chose them."""
        arm, units = self.arms[name], len(seen)
        if not units:
            return
        euros = sum(seen) if total is None else total
        loss = (euros - units * self.settings.low(name)) / self.settings.scale
        certain = [(one - self.settings.low(name)) / self.settings.scale for one in seen]
        if total is not None:
            certain = [loss / units] * units
        if arm.heads is None or not all(min(abs(y), abs(1 - y)) < 1e-12 for y in certain):
            arm.heads = None
        else:
            arm.heads += sum(y > 0.5 for y in certain)
        arm.N, arm.S, arm.euros = arm.N + units, arm.S + loss, arm.euros + euros
        arm.q += ETA * (loss / units - arm.q)
        if not math.isnan(when):
            arm.last = when if math.isnan(arm.last) else max(arm.last, when)

    def finish(self, play: Play, when: float) -> None:
        """Learn from a play: nothing more will come."""
        event, hybrid = play.asked, self.settings.policy == "Hybrid"
        for name, arm in self.arms.items():
            arm.L += self.offset(name)
            if name not in event.n or (hybrid and event.n[name] == 0):
                arm.L += self.prediction(name)
        play.realised = event.short
        for name, a in event.plan.items():
            arm, q = self.arms[name], play.q[name]
            seen, total = self.seen_of(play, name)
            euros, units = (sum(seen) if total is None else total), len(seen)
            if event.x:
                if not (hybrid and event.n[name] == 0):
                    arm.L += q
                if hybrid and a and not units:
                    arm.L += a / event.x[name] * (self.prediction(name) - q)
                if units:
                    k = (euros / units - self.settings.low(name)) / self.settings.scale
                    arm.L += a / event.x[name] * (k - q)
                    u, rest = event.x[name] / event.n[name], event.rest[name] / event.n[name]
                    least = min(1.0, 2 * rest / (u**2 * play.g)) if play.g else 0.0
                    arm.beta2 += (a / event.n[name] * (k - q)) ** 2 * least / play.g
            self.count(name, seen, total, when)
            arm.plans += a > 0
            play.seen += units
            play.realised += euros
        self.rounds += 1
        self.clipped += play.clipped
        play.status, play.told = "told", when


def meaning(losses: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a report says: arms of which it says nothing are left out."""
    said: dict[str, Any] = {}
    for name, given in losses.items():
        if name.startswith("unmet->") or given is None:
            continue
        if isinstance(given, float):
            said[name] = given
        elif len(given):
            said[name] = tuple(given)
    return said


def check_gaps(play: Play) -> None:
    """Refuse the last report if units are missing of which nobody said that they are."""
    for name, known in play.units.items():
        silent = name not in play.totals and None in known
        if silent and name not in play.in_full:
            raise RefusedError
