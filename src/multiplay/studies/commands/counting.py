"""Commands that determine which reports count: forget and unforget."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, ClassVar

from multiplay.beliefs.restart import ReportLog
from multiplay.errors import InvalidInput
from multiplay.learner.engine import Engine, Round
from multiplay.learner.plays import Remaining
from multiplay.storage import Entry, Labels, Record
from multiplay.studies import entry_codec
from multiplay.studies.commands.base import (
    PLAYS,
    Arg,
    ClientContext,
    Command,
    Http,
    Plain,
    some_of,
    verb,
)
from multiplay.studies.commands.values import ARM, FIRST_ROUND, ROUND
from multiplay.studies.entry_codec import FORGET, HIDDEN, KEEP
from multiplay.studies.replica import Check, Replica, first_entry
from multiplay.studies.turn import Turn


@dataclass(frozen=True)
class Restart(Command[Remaining]):
    """Let only some reports of an arm count."""

    kind: ClassVar[str]
    returns = Remaining

    arm: Annotated[str | None, Arg(ARM, "The name of an arm; all arms by default.")] = None

    def given(self) -> Round | None:
        """Return the round from which on reports count."""
        raise NotImplementedError

    def plain(self, context: ClientContext) -> Plain:
        """Return the arguments as plain data for JSON."""
        if not isinstance(self.arm, str | None):
            expected = f"a name such as {context.arms()[0]!r}"
            raise InvalidInput("arm", expected, repr(self.arm), "Check the spelling.")
        return super().plain(context)

    def do(self, turn: Turn) -> Remaining:
        """Compute what is left from all reports; see ``PolicyState.masks`` for the policy."""
        engine = turn.engine
        engine.check_restarts()
        arm, given, keeps = engine.checked_arm(self.arm), self.given(), self.kind == KEEP
        log, hidden = turn.report_log(), None
        if engine.state.masks:
            _check_has_all(log, engine)
        restart = engine.restarted(log, keeps, arm, given, turn.when)
        if engine.state.masks:
            hidden = first_entry(turn.journal, turn.replica.number + 1, restart.since)
        record = entry_codec.restart_record(self.kind, arm, given, restart, hidden)
        if hidden is None:
            turn.changed()
        else:
            labels = Labels(self.kind, turn.key, at=turn.when)
            engine = turn.corrected(record, labels).engine
        remaining = engine.restart(restart, hidden is not None)
        turn.write(self.kind, record, key=turn.key)
        return remaining

    def again(self, turn: Turn, known: Entry) -> Remaining:
        """Return what is left; raise if the key was used for another arm or round."""
        turn.engine.check_restarts()
        arm = turn.engine.checked_arm(self.arm)
        said = tuple(known.record.header[name] for name in ("arm", "given"))
        if said != (arm, entry_codec.plain_round(self.given())):
            raise entry_codec.used_before(known, "was used for a different arm or round")
        return self.result(turn, known)

    @classmethod
    def result(cls, turn: Turn, known: Entry) -> Remaining:
        """Return what was left."""
        return entry_codec.remaining_of(known)

    @staticmethod
    def replay(replica: Replica, entry: Entry, check: Check) -> Record | None:
        """Let the reports of the entry count; after a correction, compute them anew."""
        engine, header, kind = replica.engine, entry.record.header, entry.labels.kind
        arm, expected, keeps, now = header["arm"], None, kind == KEEP, entry.labels.at
        hidden = header.get(HIDDEN)
        of_hidden = hidden is not None
        if entry.number < replica.corrections.last or not entry.record.arrays:
            assert engine.state.log is not None  # its sums are those of then, or were not kept
            given = replica.corrections.round_now(entry, engine.state.told)
            with suppress(InvalidInput, KeyError):  # reports before it, or the arm, are retracted
                restart = engine.restarted(engine.state.log, keeps, arm, given, now)
                engine.restart(restart, of_hidden)
            return None
        restart = entry_codec.restart_of(entry, engine.arm_places(arm))
        if check is Check.BITS and engine.state.log is not None:
            given = entry_codec.round_given(header["given"])
            restart = engine.restarted(engine.state.log, keeps, arm, given, now)
            expected = entry_codec.restart_record(kind, arm, given, restart, hidden)
        engine.restart(restart, of_hidden)
        return expected


def _check_has_all(log: ReportLog, engine: Engine) -> None:
    """Raise ``InvalidInput`` if reports are not in the journal, and so cannot be hidden."""
    if log.begins:
        raise InvalidInput(
            "policy",
            "a policy that forgets reports by their sums: the journal begins after some reports",
            f"{engine.state.policy!r}",
            "Use PooledCTS or GenCTS without features, or begin a new study.",
        )


@verb(
    "forget",
    Http(
        "POST",
        "forget",
        PLAYS,
        "Forget",
        "The round before which reports no longer count.",
        {"arm": "Lyon->north", "before": 12},
    ),
    FORGET,
)
@dataclass(frozen=True, kw_only=True)
class Forget(Restart):
    """Forget the losses of an arm, or of all arms, that were reported before a round."""

    kind = FORGET
    before: Annotated[Round, Arg(FIRST_ROUND)]

    def given(self) -> Round | None:
        """Return the first round that is left."""
        return self.before


@verb(
    "unforget",
    Http(
        "POST",
        "unforget",
        PLAYS,
        "Unforget",
        "The round since which all reports count again; by default the last forgetting is undone.",
        {"arm": "Lyon->north", "since": 0},
        rules=(some_of("arm", "since"),),
    ),
    KEEP,
)
@dataclass(frozen=True, kw_only=True)
class Unforget(Restart):
    """Let all losses of an arm since a round count again, also those that were forgotten."""

    kind = KEEP
    since: Annotated[Round | None, Arg(ROUND)] = None

    def given(self) -> Round | None:
        """Return the first round whose reports count again."""
        return self.since
