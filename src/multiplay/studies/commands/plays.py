"""Commands of plays: ask, tell, close, cancel and expire."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

from multiplay._support.checks import is_integer, true_or_false
from multiplay._support.deadline import checked_limit
from multiplay.actions import ActionSet
from multiplay.learner.engine import Losses, Units
from multiplay.learner.plan_request import checked_replace
from multiplay.learner.plays import PART_HINT, AnyPlay, PendingPlay, Receipt, duration_seconds
from multiplay.learner.promises import given_sets
from multiplay.storage import Entry, Record
from multiplay.studies import entry_codec, play_history
from multiplay.studies.commands.base import (
    OF_PLAY,
    PLAYS,
    Arg,
    ClientContext,
    Command,
    Http,
    Plain,
    ReportCommand,
    SilentCommand,
    verb,
)
from multiplay.studies.commands.values import (
    AGE,
    ARMS,
    FEATURES,
    FLAG,
    LOSSES,
    MISSING,
    PLAY,
    REMARK,
    SET,
    SETS,
    TIME_LIMIT,
    UNITS,
    UNITS_BY_ARM,
    remark,
)
from multiplay.studies.entry_codec import ASK, CANCEL, CLOSE, EXPIRE, PART, TELL, StoredAhead
from multiplay.studies.replica import Check, Replica
from multiplay.studies.turn import Turn

REASON = "reason"  # in the entry of a play that was cancelled
EXAMPLE_LOSSES = {"Lyon->north": [120.0], "Lyon->south": [95.0], "Lille->south": 310.5}


@dataclass(frozen=True)
class RoundLimits:
    """A set for a round, and limits of its plans."""

    actions: Annotated[ActionSet | None, Arg(SET, "The set of this round, if it differs.")] = None
    at_most: Annotated[
        Mapping[str, int] | None, Arg(UNITS_BY_ARM, "The largest number of units, by arm.")
    ] = None
    exclude: Annotated[Iterable[str], Arg(ARMS, "Arms that are not played in this round.")] = ()
    fixed: Annotated[
        Mapping[str, int] | None, Arg(UNITS_BY_ARM, "The exact number of units, by arm.")
    ] = None
    features: Annotated[Any, Arg(FEATURES)] = None


ASKED = Http(
    "POST",
    "ask",
    PLAYS,
    "Ask",
    "A play to choose.",
    {"key": "2026-11-15", "at_most": {"Lyon->north": 1}},
    optional=True,
)


@verb("ask", ASKED, ASK)
@dataclass(frozen=True)
class Ask(RoundLimits, Command[PendingPlay]):
    """Choose the next play. The same request with the same key returns the same play."""

    learns = False
    time_limit: Annotated[float | None, Arg(TIME_LIMIT, "Seconds to choose the play.")] = None
    baseline: Annotated[
        Units | None,
        Arg(UNITS, "The plan that you would use, for a study whose baseline is `each day`."),
    ] = None
    ahead: Annotated[
        Sequence[ActionSet] | None,
        Arg(
            SETS,
            "The sets of the plays after this one, in order, as far as they are known, for a study "
            "with promises.",
        ),
    ] = None
    replace: Annotated[
        bool,
        Arg(FLAG, "True to cancel the pending play of this key, and to choose a new one."),
    ] = False

    def known(self, turn: Turn) -> None:
        """Return None: a key may name several plays, see ``do``."""

    def do(self, turn: Turn) -> PendingPlay:
        """Choose a play, unless that of the key is asked for again."""
        until = time.monotonic() + checked_limit(self.time_limit)
        key, replaces_play = checked_replace(turn.key, self.replace)
        replica, engine = turn.replica, turn.engine
        limits = engine.limits(self.actions, self.at_most, self.exclude, self.fixed)
        round_set, stored_set = replica.round_set(self.actions, limits)
        round_set = engine.featured(round_set, self.features)
        base = engine.baseline(round_set, self.baseline)
        known = None if key is None else play_history.last_asked(turn.journal, key)
        if key is not None and known is not None:
            request = replica.plan_request(round_set, stored_set, base, given_sets(self.ahead))
            then = entry_codec.plan_request(known.record, engine.has_rule)
            assert known.labels.play is not None
            status = play_history.status(turn.journal, known.labels.play)
            if not request.is_free(key, then, known.labels.at, status, replaces_play):
                return self.again(turn, known)
        sets = engine.constraints.promises.checked_ahead(engine.state, self.ahead)
        stored_ahead = StoredAhead.of(sets, engine)
        old = None if known is None else known.labels.play
        replaces = old if old in engine.pending else None
        turn.changed()  # new arms are added before the policy may fail
        id, play = replica.ask(round_set, stored_set, turn.when, key, until, base, sets, replaces)
        asked, estimate = turn.pending_play(id), {}
        if turn.request is not None:  # the estimate of now, whatever is learned later
            estimate = {entry_codec.EXPECTED: entry_codec.estimate_fields(asked.expected)}
        record = replica.ask_record(play, round_set, stored_set, stored_ahead, replaces)
        label = key if known is None else entry_codec.next_key(known.labels)
        turn.write(ASK, record, id, key=label, **estimate)
        turn.asked = play
        return asked

    def again(self, turn: Turn, known: Entry) -> PendingPlay:
        """Return the play of the key, as a repeated one unless the same request asked for it."""
        if entry_codec.is_of(known, turn.request):
            return self.result(turn, known)
        return turn.play_again(known).again()

    @classmethod
    def result(cls, turn: Turn, known: Entry) -> PendingPlay:
        """Return the play with the estimate of that time."""
        mark = known.record.header.get(entry_codec.AT_REQUEST)
        if not isinstance(mark, dict):  # of version 0.9
            return turn.play_again(known)
        return turn.play_as_then(known, mark[entry_codec.EXPECTED])

    def answer(self, plain: Plain, context: ClientContext) -> PendingPlay:
        """Return the play of plain data."""
        return context.play(plain)

    @classmethod
    def stored(cls, result: PendingPlay) -> Plain:
        """Return the id and the estimate of a play."""
        expected = entry_codec.estimate_fields(result.expected)
        plain = {"play": result.id, entry_codec.EXPECTED: expected}
        return plain | ({"repeated": True} if result.repeated else {})

    @classmethod
    def of_stored(cls, turn: Turn, plain: Plain) -> PendingPlay:
        """Return the play with the estimate of that time."""
        then = turn.play_as_then(turn.about(plain["play"])[0], plain[entry_codec.EXPECTED])
        return then.again() if plain.get("repeated") else then

    @staticmethod
    def replay(replica: Replica, entry: Entry, check: Check) -> Record | None:
        """Keep the play, or choose it again."""
        return replica.replay_ask(entry, check)


@verb(
    "tell",
    Http(
        "POST",
        OF_PLAY + "tell",
        PLAYS,
        "Tell",
        "The losses of the units of a play.",
        {"losses": EXAMPLE_LOSSES, "key": "report-2026-11-15"},
    ),
    TELL,
    PART,
)
@dataclass(frozen=True)
class Tell(ReportCommand):
    """Report the losses of a play. The same report again changes nothing."""

    play: Annotated[AnyPlay, Arg(PLAY)]
    losses: Annotated[
        Losses,
        Arg(
            LOSSES,
            "By arm, the loss of every unit (null if it was not observed), or the total.",
        ),
    ]
    final: Annotated[bool, Arg(FLAG, "False if more losses will be reported.")] = True
    missing: Annotated[str | None, Arg(MISSING)] = None

    def do(self, turn: Turn) -> Receipt:
        """Add the report to a pending play, or recognise it."""
        return self._told(turn, None)

    def again(self, turn: Turn, known: Entry) -> Receipt:
        """Return the receipt of the report."""
        return self._told(turn, known)

    def _told(self, turn: Turn, known: Entry | None) -> Receipt:
        final, engine = self.final, turn.engine
        if final is not True:
            final = true_or_false("final", final, PART_HINT)
        ignore, id = engine.ignores(self.missing), turn.id_of(self.play)
        pending = engine.pending.get(id) if is_integer(id) else None
        if known is not None or pending is None:
            given = turn.about(id), self.losses, final, known, turn.request
            return play_history.told_before(turn.replica, *given)
        parsed = engine.parse(self.losses, pending)
        result = turn.replica.telling(id).tell(id, parsed, final, ignore, turn.when)
        turn.changed()
        if not result.receipt.repeated:
            names = pending.round_set.actions.names
            made = partial(entry_codec.report_record, result, parsed, names, ignore)
            turn.write(TELL if final else PART, made, int(id), key=turn.key)
        return result.receipt

    @staticmethod
    def replay(replica: Replica, entry: Entry, check: Check) -> Record | None:
        """Add the report."""
        id, header = replica.pending_id(entry), entry.record.header
        engine = replica.telling(id)
        play, ignore = engine.pending[id], header["ignore"]
        parsed, final = engine.parse(header["losses"], play), entry.labels.kind == TELL
        result = engine.tell(id, parsed, final, ignore, entry.labels.at)
        if check is Check.NOTHING:
            return None
        names = play.round_set.actions.names
        return entry_codec.report_record(result, parsed, names, ignore)

    @staticmethod
    def redo(replica: Replica, entry: Entry, correction: Record | None) -> Record | None:
        """Add the corrected report; a part of it counts no more, and nothing if it is retracted."""
        if entry.labels.kind == PART:
            return None
        replica.pending_id(entry)  # after a retraction, it stays pending
        if correction is None:
            return None
        told = entry._replace(labels=entry.labels._replace(kind=TELL), record=correction)
        return Tell.replay(replica, told, Check.COUNTS)


def _close(turn: Turn, id: int, key: str | None) -> Receipt:
    told, outcome = turn.replica.telling(id).close(id, turn.when)
    turn.changed()
    turn.write(CLOSE, entry_codec.close_record(told, outcome), id, key=key)
    return told


def _cancel(turn: Turn, id: int, key: str | None, reason: str | None = None) -> None:
    header = {} if reason is None else {REASON: remark(REASON, reason)}
    turn.changed()
    turn.engine.cancel(id)
    turn.write(CANCEL, Record(header, {}), id, key=key)


def _check_same_play(turn: Turn, known: Entry, play: AnyPlay) -> None:
    if known.labels.play != turn.id_of(play):
        raise entry_codec.used_before(known, f"was used for play {known.labels.play}")


ENDED = "End", "A play to close, to cancel or to retract.", {"key": "end-of-2026-11-15"}


@verb("close", Http("POST", OF_PLAY + "close", PLAYS, *ENDED, optional=True), CLOSE)
@dataclass(frozen=True)
class Close(ReportCommand):
    """Learn from the losses reported so far for a play, when no more will be reported."""

    play: Annotated[AnyPlay, Arg(PLAY)]

    def do(self, turn: Turn) -> Receipt:
        """Close the play."""
        return _close(turn, turn.pending_id(self.play), turn.key)

    def again(self, turn: Turn, known: Entry) -> Receipt:
        """Return the receipt; raise if the key was used for another play."""
        _check_same_play(turn, known, self.play)
        return entry_codec.repeated_receipt(known, turn.request)

    @staticmethod
    def replay(replica: Replica, entry: Entry, check: Check) -> Record:
        """Close the play."""
        id = replica.pending_id(entry)
        return entry_codec.close_record(*replica.telling(id).close(id, entry.labels.at))

    @staticmethod
    def redo(replica: Replica, entry: Entry, correction: Record | None) -> Record | None:
        """Add the report that replaces the closing."""
        return Tell.redo(replica, entry, correction)


CANCELLED = "Cancel", "A play to discard.", {"reason": "The truck broke down."}


@verb("cancel", Http("POST", OF_PLAY + "cancel", PLAYS, *CANCELLED, optional=True), CANCEL)
@dataclass(frozen=True)
class Cancel(SilentCommand):
    """Discard a play that was not carried out, without learning from it."""

    play: Annotated[AnyPlay, Arg(PLAY)]
    reason: Annotated[str | None, Arg(REMARK, "Why it was not carried out.")] = None

    def do(self, turn: Turn) -> None:
        """Cancel the play."""
        _cancel(turn, turn.pending_id(self.play), turn.key, self.reason)

    def again(self, turn: Turn, known: Entry) -> None:
        """Raise if the key was used for another play, or another reason."""
        _check_same_play(turn, known, self.play)
        if known.record.header.get(REASON) != self.reason:
            raise entry_codec.used_before(known, "was used for a different reason")

    @staticmethod
    def replay(replica: Replica, entry: Entry, check: Check) -> None:
        """Cancel the play."""
        replica.engine.cancel(replica.pending_id(entry))


EXPIRED = Http(
    "POST", "expire", PLAYS, "Expire", "The age of plays to end.", {"older_than": 604800}
)


@verb("expire", EXPIRED, EXPIRE)
@dataclass(frozen=True)
class Expire(Command[list[int]]):
    """End the pending plays that are older than a given age."""

    older_than: Annotated[timedelta | float, Arg(AGE, "The age in seconds.")]

    def do(self, turn: Turn) -> list[int]:
        """Close or cancel the plays."""
        late = turn.engine.late(turn.when - duration_seconds("older_than", self.older_than))
        if late or turn.key is not None:
            turn.write(EXPIRE, Record({"plays": [*late]}, {}), key=turn.key)
        for id, closes in late.items():
            (_close if closes else _cancel)(turn, id, None)
        return [*late]

    def again(self, turn: Turn, known: Entry) -> list[int]:
        """Return the plays."""
        return self.result(turn, known)

    @staticmethod
    def present(result: list[int]) -> Plain:
        """Return the plays as plain data."""
        return {"plays": result}

    def answer(self, plain: Plain, context: ClientContext) -> list[int]:
        """Return the plays of plain data."""
        plays: list[int] = plain["plays"]
        return plays

    @classmethod
    def result(cls, turn: Turn, known: Entry) -> list[int]:
        """Return the plays."""
        plays: list[int] = known.record.header["plays"]
        return plays
