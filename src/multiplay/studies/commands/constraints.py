"""Commands of constraints: what plans must keep or pay from now on, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from multiplay.constraints import Constraint, Promise, SwitchingCost
from multiplay.constraints.constraint import checked_constraint
from multiplay.constraints.promised import MOST_PAST
from multiplay.learner.allowance import BaselineReport
from multiplay.learner.constraints import Before, ConstraintReport
from multiplay.learner.promises import PromiseReport
from multiplay.learner.switching import SwitchingReport
from multiplay.storage import Entry, Record
from multiplay.studies import entry_codec, results
from multiplay.studies.commands.base import (
    QUERIES,
    STUDIES,
    Arg,
    ClientContext,
    Http,
    Plain,
    Query,
    Reader,
    SilentCommand,
    verb,
)
from multiplay.studies.commands.values import CONSTRAINT as CONSTRAINT_KIND
from multiplay.studies.commands.values import TEXT
from multiplay.studies.entry_codec import ASK, CANCEL, CONSTRAINT, PROMISE, RELEASE
from multiplay.studies.replica import Check, Replica
from multiplay.studies.turn import Turn

MOST_READ = 200  # entries, to find the last plays
CO2 = {"type": "AtMost", "limit": 40_000, "of": {"*": 80, "Lyon->*": 120}, "plays": 22}
CO2 |= {"until": "2026-11-30", "name": "CO2", "hard": True}
REPORTS: dict[str, Any] = {"Baseline": BaselineReport, "SwitchingCost": SwitchingReport}


@verb(
    "add_constraint",
    Http(
        "POST",
        "constraints",
        STUDIES,
        "NewConstraint",
        "A constraint to add.",
        {"constraint": CO2, "key": "November"},
    ),
    PROMISE,
    CONSTRAINT,
)
@dataclass(frozen=True)
class AddConstraint(SilentCommand):
    """Add a constraint for the plans from now on: a promise, a baseline or a switching cost."""

    constraint: Annotated[Constraint, Arg(CONSTRAINT_KIND)]

    def do(self, turn: Turn) -> None:
        """Add the constraint."""
        record = turn.replica.add_constraint(self.constraint, self._before(turn))
        turn.changed()
        kind = PROMISE if PROMISE in record.header else CONSTRAINT
        turn.write(kind, record, key=turn.key)

    def _before(self, turn: Turn) -> Before:
        """Return the last plays, from the end of the journal, as far as they are needed."""
        replica, promises = turn.replica, turn.engine.constraints.promises
        switching = isinstance(self.constraint, SwitchingCost)
        if not switching and (promises or not isinstance(self.constraint, Promise)):
            return Before()
        entries = [*turn.journal.entries(max(replica.number + 1 - MOST_READ, 1))]
        asked = [one for one in entries if one.labels.kind == ASK]
        own = [one for one in asked if not one.record.header.get("imported")]
        if switching:
            pending = turn.engine.pending
            ended = {one.labels.play for one in entries if one.labels.kind == CANCEL} | {*pending}
            told = next((one for one in reversed(own) if one.labels.play not in ended), None)
            plan = None if told is None else told.record.header["plan"]
            after = 0 if told is None else told.number
            newer = (one.labels.play for one in own if one.number > after)
            return Before((), plan, tuple(id for id in newer if id in pending))
        sets = (replica.round_set_of(one.record)[0].given for one in own[-MOST_PAST:])
        return Before(tuple(sets))

    def again(self, turn: Turn, known: Entry) -> None:
        """Raise if the key was used for a different constraint."""
        checked_constraint(self.constraint, ())
        if entry_codec.constraint_of(known.record) != self.constraint:
            raise entry_codec.used_before(known, "was used for a different constraint")

    @staticmethod
    def replay(replica: Replica, entry: Entry, check: Check) -> Record:
        """Add the constraint."""
        before = entry_codec.before_of(entry.record, replica.engine)
        return replica.add_constraint(entry_codec.constraint_of(entry.record), before)


ENDED = Http(
    *("POST", "end-constraint", STUDIES, "EndConstraint"),
    *("The name of a constraint to end.", {"name": "CO2"}),
)


@verb("end_constraint", ENDED, RELEASE)
@dataclass(frozen=True)
class EndConstraint(SilentCommand):
    """End a constraint by its name."""

    name: Annotated[str, Arg(TEXT)]

    def do(self, turn: Turn) -> None:
        """End the constraint."""
        turn.engine.end_constraint(self.name)
        turn.changed()
        turn.write(RELEASE, Record({"name": self.name}, {}), key=turn.key)

    def again(self, turn: Turn, known: Entry) -> None:
        """Raise if the key was used for another constraint."""
        if known.record.header["name"] != self.name:
            raise entry_codec.used_before(known, "was used for a different constraint")

    @staticmethod
    def replay(replica: Replica, entry: Entry, check: Check) -> None:
        """End the constraint."""
        replica.engine.end_constraint(entry.record.header["name"])


@verb("list_constraints", Http("GET", "constraints", QUERIES))
@dataclass(frozen=True)
class Constraints(Query[list[ConstraintReport]]):
    """Return every constraint: its settings, and what plans have spent or used of it so far."""

    def read(self, reader: Reader) -> list[ConstraintReport]:
        """Return one report for each constraint."""
        with reader.current() as engine:
            return engine.constraint_reports()

    @staticmethod
    def present(result: list[ConstraintReport]) -> Plain:
        """Return reports as plain data."""
        return {"items": [*map(results.to_plain, result)]}

    def answer(self, plain: Plain, context: ClientContext) -> list[ConstraintReport]:
        """Return the reports of plain data."""
        return [
            results.of_plain(REPORTS.get(one["constraint"]["type"], PromiseReport), one)
            for one in plain["items"]
        ]
