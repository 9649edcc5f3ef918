"""Events of a learner: its plays and reports, from which its state is computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from multiplay.beliefs.restart import ReportLog
from multiplay.errors import Conflict, InvalidInput
from multiplay.features.table import ArmFeatures, Scales, Values
from multiplay.learner.engine import Engine, ReportResult, Round
from multiplay.learner.logged_data import LoggedData
from multiplay.learner.play_log import external_line
from multiplay.learner.plays import PendingState
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.reports import ParsedLosses
from multiplay.learner.round_set import RoundSet
from multiplay.promises.promise import Promise
from multiplay.random import Streams
from multiplay.types import Arrays, IntArray


class Asked(NamedTuple):
    """A play that was chosen, and the scales of features that its round determined."""

    id: int
    play: PendingState
    scales: Scales | None = None

    def replay(self, engine: Engine) -> None:
        """Keep the play as it was chosen."""
        round_set, today = self.play.round_set, self.play.today
        round_set = engine.with_features(round_set, today, scales=self.scales)
        engine.keep(self.id, self.play, round_set)


class Told(NamedTuple):
    """A report of a play; ``words`` is the state of the random numbers before it."""

    id: int
    parsed: ParsedLosses
    final: bool
    ignore: bool
    when: float
    words: bytes

    def replay(self, engine: Engine) -> ReportResult:
        """Add the report."""
        engine.state.rng = _stream(self.words)
        return engine.tell(self.id, self.parsed, self.final, self.ignore, self.when)


class Ended(NamedTuple):
    """A play that was closed, or cancelled: then ``words`` is empty."""

    id: int
    when: float = 0.0
    words: bytes = b""

    @property
    def is_closed(self) -> bool:
        """Whether the play was closed."""
        return bool(self.words)

    def replay(self, engine: Engine) -> None:
        """End the play."""
        if self.is_closed:
            engine.state.rng = _stream(self.words)
            engine.close(self.id, self.when)
        else:
            engine.cancel(self.id)


class Learned(NamedTuple):
    """An external plan and its losses."""

    round_set: RoundSet
    action: IntArray
    parsed: ParsedLosses
    ignore: bool
    when: float
    words: bytes
    today: Values | None = None
    scales: Scales | None = None

    def replay(self, engine: Engine) -> None:
        """Learn from the plan."""
        engine.state.rng = _stream(self.words)
        round_set = engine.with_features(self.round_set, self.today, self.action, self.scales)
        engine.absorb(round_set, self.action, self.parsed, self.ignore, self.when)


class LearnedTable(NamedTuple):
    """Logged data."""

    logged: LoggedData
    scales: Scales
    words: bytes

    def replay(self, engine: Engine) -> None:
        """Learn from the data."""
        engine.state.rng = _stream(self.words)
        engine.learn_all(self.logged, self.scales)


class Described(NamedTuple):
    """Features of arms."""

    arms: list[str]
    codes: Arrays
    scales: Scales

    def replay(self, engine: Engine) -> None:
        """Keep the features."""
        features = engine.state.features
        assert features is not None
        features.describe(self.arms, self.codes, self.scales)


class Restarted(NamedTuple):
    """Reports of an arm that were forgotten, or kept: ``given`` is the round or time."""

    keep: bool
    arm: str | None
    given: Round | None
    now: float

    def replay(self, engine: Engine) -> None:
        """Forget or keep the reports of now."""
        log, given = engine.state.log, self.given
        assert log is not None
        if self.keep and isinstance(given, int):
            given = min(given, engine.state.told)
        with suppress(InvalidInput):  # the reports before that time were retracted
            engine.restart(engine.restarted(log, self.keep, self.arm, given, self.now))


class Promised(NamedTuple):
    """A promise that was made; ``past`` are the sets of earlier plays, if it is the first."""

    promise: Promise
    past: tuple[RoundSet, ...] = ()

    def replay(self, engine: Engine) -> None:
        """Make the promise."""
        engine.promises.add_promise(self.promise, [one.given for one in self.past])


class Released(NamedTuple):
    """A promise that was released."""

    name: str

    def replay(self, engine: Engine) -> None:
        """Release the promise."""
        engine.promises.release(self.name)


Event = Asked | Told | Ended | Learned | LearnedTable | Described | Restarted | Promised | Released


class Events:
    """All events of a learner since it was created, or since it was loaded from an older file.

    Corrected reports are replaced: the list is always that of the state.

    Attributes
    ----------
    all : list
        The events, in order.
    table : ArmFeatures or None
        The features of arms before the first event.
    begin : function or None
        Returns the learner before the first event, if it was loaded without its events.
    """

    def __init__(
        self, table: ArmFeatures | None = None, begin: Callable[[], Engine] | None = None
    ) -> None:
        self.all: list[Event] = []
        self.table, self.begin = None if table is None else copied(table), begin

    def external(self) -> list[tuple[float, ...]]:
        """Return the numbers of each external plan and each round of logged data."""
        lines = list[tuple[float, ...]]()
        for event in self.all:
            if isinstance(event, Learned):
                seen = event.parsed.seen(event.action)
                units = int(event.action.sum())
                lines.append(external_line(event.when, units, seen, event.parsed.total))
            elif isinstance(event, LearnedTable):
                lines += [external_line(*line) for line in event.logged.totals()]
        return lines

    def report(self, id: int) -> tuple[int, list[int]]:
        """Return the place of the final report of a play, and the places of its parts.

        Raises ``Conflict`` if the report came before the first event.
        """
        found = -1
        for place in range(len(self.all) - 1, -1, -1):
            one = self.all[place]
            if type(one) in (Told, Ended) and one.id == id:  # type: ignore[union-attr]
                found = place
                break
        if found < 0:
            raise Conflict(
                "play",
                "a play that was told since the learner was loaded",
                f"{id}, which was told before",
                "A file of an older version has no reports. Later plays can be corrected.",
            )
        return found, [place for place in self.parts(id) if place < found]

    def parts(self, id: int) -> list[int]:
        """Return the places of the reports of a play."""
        return [k for k, one in enumerate(self.all) if type(one) is Told and one.id == id]

    def play(self, id: int) -> PendingState:
        """Return a play as it was chosen."""
        for one in self.all:
            if type(one) is Asked and one.id == id:
                return one.play
        assert self.begin is not None  # it was pending in the file
        return self.begin().pending[id]

    def replace(
        self, live: Engine, place: int, parts: Sequence[int], new: Told | None = None
    ) -> Engine:
        """Replace a report and its parts, or leave them out; return the state then."""
        changed = self.without([place, *parts] if new is None else parts)
        if new is not None:
            changed[place - len(parts)] = new
        try:
            engine = self.replayed(changed, live)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            hint = "The file that the learner was loaded from is damaged: restore a backup."
            raise InvalidInput("events", "plays and reports as saved", f"{error}", hint) from error
        self.all = changed
        return engine

    def without(self, places: Iterable[int]) -> list[Event]:
        """Return the events without those at some places.

        Rounds of ``forget`` and ``keep`` still mean the same plays, where a report is left out.
        """
        gone, kept = {*places}, list[Event]()
        told = 0 if self.begin is None else self.begin().state.told
        left_out: list[int] = []  # rounds
        for place, one in enumerate(self.all):
            is_report = one.final if type(one) is Told else type(one) is Ended and one.is_closed
            told += is_report
            if place in gone:
                left_out += [told] if is_report else []
            elif type(one) is Restarted and isinstance(one.given, int):
                fewer = sum(round < one.given for round in left_out)
                kept.append(one._replace(given=one.given - fewer))
            else:
                kept.append(one)
        return kept

    def replayed(self, events: Sequence[Event], live: Engine) -> Engine:
        """Return the state after some events; ``live`` has the words and the warm start."""
        old = live.state
        if self.begin is None:
            table = None if self.table is None else copied(self.table)
            made = old.actions, old.policy, old.ranges, old.rng
            limit = None if live.allowance is None else live.allowance.fresh()
            switching = None if live.switching is None else live.switching.fresh()
            own = limit, live.promises.fresh(), switching
            engine = Engine(PolicyState(*made, table=table), live.missing, *own)
            engine.state.log = ReportLog() if old.policy.restarts else None
        else:
            engine = self.begin()
        for one in events:
            one.replay(engine)
        new, warm = engine.state, old.policy.warm(old.arms.warm_for)
        arrays = {name: array for name, array in new.arms.arrays.items() if name not in warm}
        of_warm = {name: array for name, array in old.arms.arrays.items() if name in warm}
        new.arms.arrays, new.arms.warm_for = arrays | of_warm, old.arms.warm_for
        new.usual, new.last, new.rng = old.usual, old.last, old.rng
        engine.words, engine.seed, engine.asked = live.words, live.seed, live.asked
        engine.promises.ahead = live.promises.ahead
        return engine


def copied(table: ArmFeatures) -> ArmFeatures:
    """Return a copy of the features of arms."""
    arrays = {name: array.copy() for name, array in table.arrays().items()}
    return ArmFeatures.of(table.features, list(table.places), arrays)


def words_of(engine: Engine) -> bytes:
    """Return the state of the random numbers."""
    return engine.state.rng.state.tobytes()


def _stream(words: bytes) -> Streams:
    return Streams(np.frombuffer(words, dtype=np.uint64).reshape(1, -1))
