"""Slow reference of a learner: its state, recomputed from the list of all events.

It follows the documentation, uses plain dicts by the names of arms, and shares no class with the
learner that it is compared with.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from belief_twin import BeliefTwin, Report, Total

EPSILON, ETA = 0.2, 0.25


class RefusedError(Exception):
    """The learner must refuse this report."""


@dataclass(frozen=True)
class Settings:
    """Settings of the learner; in ``ranges``, "*" stands for all arms that are not named."""

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

    @property
    def origin(self) -> float:
        return min(low for low, _ in self.ranges.values())

    @property
    def span(self) -> float:
        return max(high for _, high in self.ranges.values()) - self.origin

    def low(self, arm: str) -> float:
        return self.ranges.get(arm, self.ranges["*"])[0]

    def high(self, arm: str) -> float:
        return self.ranges.get(arm, self.ranges["*"])[1]


class Asked(NamedTuple):
    """A play; ``x`` and ``rest`` are stored by the policy, n = x + rest."""

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
    """Statistics of an arm; N and S are units and the sum of their losses, in [0, 1]."""

    L: float
    beta2: float
    q: float = 0.5
    N: int = 0
    S: float = 0.0
    euros: float = 0.0
    plans: int = 0
    last: float = math.nan
    heads: int | None = 0  # None: depends on random numbers
    played: int = 0  # units of our own plays, and those of them that were seen
    known: int = 0


@dataclass
class Play:
    """A play, with the reports on it so far."""

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


class SlowLearner:
    """The state of a learner after some events."""

    def __init__(self, settings: Settings, first: Mapping[str, int], events: Sequence[Event]):
        self.settings = settings
        self.arms: dict[str, Arm] = {}
        self.reports: list[dict[str, Report]] = []  # of all rounds, as shares of the whole range
        self.plays: dict[int, Play] = {}
        self.rounds = self.clipped = 0
        self.external = 0  # plans and rounds of tables
        self.repeated = False  # whether the last event repeated a report
        self.add_arms(first)
        for event in events:
            self.repeated = False
            getattr(self, f"on_{type(event).__name__.lower()}")(event)

    # ------------------------------------------------------------ arms

    def add_arms(self, n: Mapping[str, int]) -> None:
        for name, most in n.items():
            if name not in self.arms:
                beta = (1 + EPSILON) / (max(most, 1) if self.settings.first_by_units else 1)
                start = self.rounds * (0.5 + self.offset(name))
                self.arms[name] = Arm(start, beta**2)

    def offset(self, name: str) -> float:
        return self.settings.low(name) / self.settings.scale

    def share(self, name: str, euros: float) -> float:
        """Return a loss as beliefs see it: as a share of the range of its arm."""
        low = self.settings.low(name)
        return (euros - low) / (self.settings.high(name) - low)

    def beliefs(self) -> BeliefTwin:
        """Return what is believed after all reports."""
        names = list(self.arms)
        twin = BeliefTwin(len(names))
        for reports in self.reports:
            twin.tell({names.index(name): report for name, report in reports.items()})
        return twin

    def in_euros(self, name: str, share: float) -> float:
        """Return the loss of a unit from its share of the range of its arm."""
        low = self.settings.low(name)
        return low + (self.settings.high(name) - low) * share

    def expected(self, plan: Mapping[str, int]) -> float:
        means = [belief.mean for belief in self.beliefs().beliefs()]
        pairs = zip(self.arms, means, strict=True)
        return sum(plan.get(name, 0) * self.in_euros(name, mean) for name, mean in pairs)

    def note(self, play: Play) -> None:
        """Add what a play tells of each arm to the reports that beliefs follow from."""
        reports: dict[str, Report] = {}
        for name, units in play.units.items():
            known = [self.share(name, loss) for loss in units if loss is not None]
            if name in play.totals:
                average = self.share(name, play.totals[name] / len(units))
                reports[name] = Total(len(units), len(units) * average)
            elif known:
                reports[name] = known
        self.reports.append(reports)

    def prediction(self, name: str) -> float:
        arm = self.arms[name]
        return arm.q if self.settings.gd else (0.5 + arm.S) / (1 + arm.N)

    # ------------------------------------------------------------ events

    def on_asked(self, event: Asked) -> None:
        self.add_arms(event.n)
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
            event.short + self.expected(event.plan),
            {name: [None] * units for name, units in event.plan.items()},
        )

    def on_told(self, event: Told) -> None:
        play, content = self.plays[event.id], report_content(event.losses)
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
        self.merge(play, report_content(event.losses), event.ignore)
        if not event.ignore:
            check_gaps(play)
        self.add_arms(event.n)
        self.external += 1
        for name, units_of in event.plan.items():
            self.arms[name].plans += units_of > 0
            self.count(name, *self.seen_of(play, name), event.when)
        self.note(play)
        self.clipped += play.clipped

    def on_table(self, event: Table) -> None:
        for number in sorted({row[0] for row in event.rows}):
            reports: dict[str, Report] = {}
            self.external += 1
            for name in self.arms:
                told = [loss for t, arm, loss in event.rows if (t, arm) == (number, name)]
                self.arms[name].plans += bool(told)
                known = [self.in_range(name, loss) for loss in told if loss is not None]
                self.clipped += sum(outside for _, outside in known)
                self.count(name, [loss for loss, _ in known], None, math.nan)
                if known:
                    reports[name] = [self.share(name, loss) for loss, _ in known]
            self.reports.append(reports)

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
                    raise AssertionError("a report has a total of an arm without units")
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
        """Return the losses of the observed units in euros; or NaN for each unit, and the total.

        If the report has a total of any arm, all arms are counted by totals.
        """
        known = [loss for loss in play.units[name] if loss is not None]
        if not play.totals:
            return known, None
        units = len(play.units[name]) if name in play.totals else len(known)
        return [math.nan] * units, play.totals.get(name, sum(known))

    def count(self, name: str, seen: list[float], total: float | None, when: float) -> None:
        """Add the samples of an arm, from plays and from external plans."""
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
        """Learn from a play; it receives no more reports."""
        event, hybrid = play.asked, self.settings.policy == "Hybrid"
        for name, arm in self.arms.items():
            arm.L += self.offset(name)
            if name not in event.n or (hybrid and event.n[name] == 0):
                arm.L += self.prediction(name)
        play.realised = event.short
        self.note(play)
        today = [self.arms[name] for name in event.n]
        pool = (1 + sum(arm.known for arm in today)) / (1 + sum(arm.played for arm in today))
        for name, a in event.plan.items():
            arm, q = self.arms[name], play.q[name]
            seen, total = self.seen_of(play, name)
            euros, units = (sum(seen) if total is None else total), len(seen)
            if event.x:
                if not (hybrid and event.n[name] == 0):
                    arm.L += q
                belief = self.prediction(name) if hybrid else q
                error = 0.0  # of what is believed, weighed by the chance of a report
                if units:
                    k = (euros / units - self.settings.low(name)) / self.settings.scale
                    p = min(max((20 * pool + arm.known) / (20 + arm.played), 0.05), 1.0)
                    error = units / (p * a) * (k - belief)
                if a:
                    arm.L += a / event.x[name] * (belief + error - q)
                    u, rest = event.x[name] / event.n[name], event.rest[name] / event.n[name]
                    least = min(1.0, 2 * rest / (u**2 * play.g)) if play.g else 0.0
                    arm.beta2 += (a / event.n[name] * error) ** 2 * least / play.g
            arm.played, arm.known = arm.played + a, arm.known + units
            self.count(name, seen, total, when)
            arm.plans += a > 0
            play.seen += units
            play.realised += euros
        self.rounds += 1
        self.clipped += play.clipped
        play.status, play.told = "told", when


def report_content(losses: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a report, without the arms that have no losses."""
    content: dict[str, Any] = {}
    for name, given in losses.items():
        if name.startswith("unmet->") or given is None:
            continue
        if isinstance(given, float):
            content[name] = given
        elif len(given):
            content[name] = tuple(given)
    return content


def check_gaps(play: Play) -> None:
    """Refuse the last report if losses are missing that no report has marked as missing."""
    for name, known in play.units.items():
        silent = name not in play.totals and None in known
        if silent and name not in play.in_full:
            raise RefusedError
