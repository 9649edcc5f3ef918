"""Commands of promises: promise and release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from multiplay.actions import ActionSet
from multiplay.constraints.promise import Promise, promise_of
from multiplay.constraints.promised import MOST_PAST
from multiplay.storage import Entry, Record
from multiplay.studies import entry_codec
from multiplay.studies.commands.base import STUDIES, Arg, Http, SilentCommand, verb
from multiplay.studies.commands.values import PROMISE as PROMISE_KIND
from multiplay.studies.commands.values import TEXT
from multiplay.studies.entry_codec import ASK, PROMISE, RELEASE
from multiplay.studies.replica import Check, Replica
from multiplay.studies.turn import Turn

MOST_READ = 200  # entries, to find the sets of the last plays
CO2 = {"type": "AtMost", "limit": 40_000, "of": {"*": 80, "Lyon->*": 120}, "plays": 22}
CO2 |= {"until": "2026-11-30", "name": "CO2", "hard": True}


@verb(
    "promise",
    Http(
        "POST",
        "promises",
        STUDIES,
        "NewPromise",
        "A promise to make.",
        {"promise": CO2, "key": "November"},
    ),
    PROMISE,
)
@dataclass(frozen=True)
class MakePromise(SilentCommand):
    """Promise what the plays from now on use in all, at most or at least."""

    promise: Annotated[Promise, Arg(PROMISE_KIND)]

    def do(self, turn: Turn) -> None:
        """Make the promise."""
        past = [] if turn.engine.promises else _past_sets(turn)
        record = turn.replica.promise(self.promise, past)
        turn.changed()
        turn.write(PROMISE, record, key=turn.key)

    def again(self, turn: Turn, known: Entry) -> None:
        """Raise if the key was used for a different promise."""
        said, promise = known.record.header[PROMISE], self.promise
        if not isinstance(promise, Promise) or said != promise.record():
            raise entry_codec.used_before(known, "was used for a different promise")

    @staticmethod
    def replay(replica: Replica, entry: Entry, check: Check) -> Record:
        """Make the promise."""
        stored, given = entry_codec.past_of(entry.record), entry.record.header[PROMISE]
        return replica.promise(promise_of(given), stored.given(replica.engine))


def _past_sets(turn: Turn) -> Sequence[ActionSet]:
    """Return the sets of the last plays, from the end of the journal."""
    replica = turn.replica
    entries = turn.journal.entries(max(replica.number + 1 - MOST_READ, 1))
    asked = [entry for entry in entries if entry.labels.kind == ASK]
    own = [one.record for one in asked if not one.record.header.get("imported")]
    return [replica.round_set_of(record)[0].given for record in own[-MOST_PAST:]]


RELEASED = Http(
    "POST", "release", STUDIES, "Release", "The name of a promise to end.", {"name": "CO2"}
)


@verb("release", RELEASED, RELEASE)
@dataclass(frozen=True)
class Release(SilentCommand):
    """End a promise by its name."""

    name: Annotated[str, Arg(TEXT)]

    def do(self, turn: Turn) -> None:
        """End the promise."""
        turn.engine.promises.release(self.name)
        turn.changed()
        turn.write(RELEASE, Record({"name": self.name}, {}), key=turn.key)

    def again(self, turn: Turn, known: Entry) -> None:
        """Raise if the key was used for another promise."""
        if known.record.header["name"] != self.name:
            raise entry_codec.used_before(known, "was used for a different promise")

    @staticmethod
    def replay(replica: Replica, entry: Entry, check: Check) -> None:
        """End the promise."""
        replica.engine.promises.release(entry.record.header["name"])
