"""Commands of external plans, logged data and features of arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, TypeVar

from multiplay._support.checks import true_or_false
from multiplay._support.frames import TableFile, table_file
from multiplay.actions import ActionSet
from multiplay.errors import Conflict, InvalidInput
from multiplay.learner.engine import Engine, Losses, Units
from multiplay.learner.logged_data import (
    LoggedData,
    ReadTable,
    TableCheck,
    arm_columns,
    checked_day_first,
)
from multiplay.learner.plays import Receipt
from multiplay.learner.reports import parse_losses
from multiplay.learner.round_set import NO_LIMITS
from multiplay.storage import Entry, Record
from multiplay.studies import entry_codec, results, wire
from multiplay.studies.commands.base import (
    PLAYS,
    QUERIES,
    Arg,
    Build,
    ClientContext,
    Http,
    Plain,
    Query,
    Reader,
    ReportCommand,
    SilentCommand,
    verb,
)
from multiplay.studies.commands.plays import EXAMPLE_LOSSES
from multiplay.studies.commands.values import (
    ARM_TABLE,
    FEATURES,
    FLAG,
    LEAVE_OUT,
    LOSSES,
    MISSING,
    SET,
    UNITS,
    remark,
)
from multiplay.studies.entry_codec import DESCRIBE, LEARN, TABLE, StoredSet
from multiplay.studies.imports import Import, free_name, imports, rows_known
from multiplay.studies.replica import Check, ReplayMismatch, Replica
from multiplay.studies.turn import Turn

EXAMPLE_PLAN = {"Lyon->north": 1, "Lyon->south": 1, "Lille->north": 0, "Lille->south": 1}
SKIP, ADD, REFUSE = AGAIN = "skip", "add", "refuse"  # what to do with known rows
KM = {"km": {"Lyon->north": 450, "Lyon->south": 120, "Lille->north": 90, "Lille->south": 700}}


@verb(
    "learn",
    Http(
        "POST",
        "learn",
        PLAYS,
        "Learn",
        "An external plan and its losses.",
        {"plan": EXAMPLE_PLAN, "losses": EXAMPLE_LOSSES, "key": "2026-11-14"},
    ),
    LEARN,
)
@dataclass(frozen=True)
class Learn(ReportCommand):
    """Learn from an external plan and its losses."""

    plan: Annotated[Units, Arg(UNITS)]
    losses: Annotated[Losses, Arg(LOSSES)]
    actions: Annotated[ActionSet | None, Arg(SET, "The set of that round, if it differs.")] = None
    features: Annotated[Any, Arg(FEATURES)] = None
    missing: Annotated[str | None, Arg(MISSING)] = None

    def do(self, turn: Turn) -> Receipt:
        """Learn from the plan."""
        engine, replica = turn.engine, turn.replica
        given = self.plan, self.actions, self.features, self.missing
        round_set, action, ignore = engine.external(*given)
        names, stored = round_set.actions.names, replica.stored_features(round_set)
        told, parsed = replica.learning().learn(round_set, action, self.losses, ignore, turn.when)
        turn.changed()
        own = None if self.actions is engine.state.actions else self.actions
        rest = ignore, StoredSet.of(own, NO_LIMITS, replica.usual_digest), stored
        made = partial(entry_codec.learn_record, told, parsed, action, names, *rest)
        turn.write(LEARN, made, key=turn.key)
        return told

    def again(self, turn: Turn, known: Entry) -> Receipt:
        """Return the receipt; raise if the key was used for a different plan or losses."""
        engine = turn.engine
        given = self.plan, self.actions, self.features, self.missing
        round_set, action, _ = engine.external(*given)
        names, stored = round_set.actions.names, turn.replica.stored_features(round_set)
        unmet = round_set.actions.unmet(action)
        parsed = parse_losses(self.losses, names, engine.state.policy, unmet)
        said = entry_codec.plan_of(action, names), entry_codec.losses_by_arm(parsed, names)
        then = tuple(known.record.header[name] for name in ("plan", "losses"))
        if said != then or not entry_codec.same_features(known.record, stored):
            raise entry_codec.used_before(known, "was used for different losses")
        return entry_codec.repeated_receipt(known, turn.request)

    @staticmethod
    def replay(replica: Replica, entry: Entry, check: Check) -> Record:
        """Learn from the plan."""
        header, engine = entry.record.header, replica.learning()
        round_set, stored_set, action = replica.external(entry.record)
        names, stored = round_set.actions.names, replica.stored_features(round_set)
        ignore = header["ignore"]
        told, parsed = engine.learn(round_set, action, header["losses"], ignore, entry.labels.at)
        return entry_codec.learn_record(told, parsed, action, names, ignore, stored_set, stored)

    @staticmethod
    def redo(replica: Replica, entry: Entry, correction: Record | None) -> Record | None:
        """Learn from the corrected losses; only features are kept of a plan that is retracted."""
        if correction is None:
            replica.engine.keep_features(replica.external(entry.record)[0])
            return None
        losses = {name: correction.header[name] for name in ("losses", "ignore")}
        learned = Record({**entry.record.header, **losses}, entry.record.arrays)
        return Learn.replay(replica, entry._replace(record=learned), Check.COUNTS)


@dataclass(frozen=True)
class LoggedTable:
    """A table of logged data, and its columns."""

    table: Any
    arm: str | Sequence[str] = "arm"
    round: str = "round"
    loss: str = "loss"
    day_first: bool | None = None
    id: str | None = None

    def read_by(self, engine: Engine) -> ReadTable:
        """Return the table as logged data, compared with the arms of an engine."""
        columns = self.arm, self.round, self.loss, self.day_first, self.id
        return engine.read_table(self.table, *columns)

    @cached_property
    def file(self) -> TableFile:
        """The table, as it was read."""
        return table_file(self.table, arm_columns(self.arm))

    def plain(self, context: ClientContext) -> Plain:
        """Return the table as plain data, one list for each column."""
        named = {*arm_columns(self.arm), self.round, self.loss, self.id}
        has_more = any(name not in named for name in self.file.frame.columns)
        features = context.features() if has_more else None
        columns = self.arm, self.round, self.loss, self.id
        plain = wire.of_logged_table(self.file, *columns, features)
        return plain | {"day_first": checked_day_first(self.day_first)}

    @classmethod
    def takes_long_to_build(cls, plain: Mapping[str, Any]) -> bool:
        """Return True: a table may be large."""
        return True


L = TypeVar("L", bound="LearnTable")


@verb(
    "learn_table",
    Http("POST", "learn-table", PLAYS, "Table"),
    TABLE,
)
@dataclass(frozen=True)
class LearnTable(LoggedTable, ReportCommand):
    """Learn from logged data: one entry of each list for each unit."""

    prepares = True
    skip_bad: Annotated[bool, Arg(FLAG)] = False
    if_known: str = SKIP
    source: str = ""
    logged: LoggedData | None = None

    def prepared(self: L, engine: Engine) -> L:
        """Return the command with its table as logged data."""
        skip_bad = true_or_false("skip_bad", self.skip_bad, LEAVE_OUT)
        if self.if_known not in AGAIN:
            raise InvalidInput("again", ", ".join(map(repr, AGAIN)), repr(self.if_known), LEAVE_OUT)
        engine.check_absorbs()
        logged = self.read_by(engine).learned(skip_bad)
        source = remark("source", self.source) if self.source else logged.source
        return replace(self, logged=logged._replace(source=source))

    def do(self, turn: Turn) -> Receipt:
        """Learn from the data; of rows that are known, as ``if_known`` says."""
        logged = self.logged
        assert logged is not None
        if self.if_known != ADD:
            found = rows_known(turn.journal, logged)
            if found.known and self.if_known == REFUSE:
                got = f"{found.known:,} of {len(found.new):,} rows are known"
                hint = "Leave out the rows that were learned before."
                raise Conflict("table", "rows that are not known", got, hint)
            if found.known == len(found.new):
                return Receipt(None, 0, 0, repeated=True, skipped=logged.skipped, known=found.known)
            if found.known:
                whole = entry_codec.digest_of_table(logged)
                logged = logged.rows(found.new)._replace(known=found.known, whole=whole)
        if logged.source:
            logged = logged._replace(source=free_name(turn.journal, logged.source))
        told, scales = turn.replica.learning().learn_all(logged)
        turn.changed()
        turn.write(TABLE, entry_codec.table_record(told, logged, scales), key=turn.key)
        return told

    def again(self, turn: Turn, known: Entry) -> Receipt:
        """Return the receipt; raise if the key was used for a different table."""
        assert self.logged is not None
        if not entry_codec.same_logged_data(known.record, self.logged):
            raise entry_codec.used_before(known, "was used for a different table")
        return entry_codec.repeated_receipt(known, turn.request)

    def plain(self, context: ClientContext) -> Plain:
        """Return the table as plain data, one list for each column."""
        skip_bad = true_or_false("skip_bad", self.skip_bad, LEAVE_OUT)
        source = self.source or self.file.source
        more = {"again": self.if_known, "source": source} if source else {"again": self.if_known}
        return super().plain(context) | {"skip_bad": skip_bad} | more

    @classmethod
    def of_plain(cls: type[L], plain: Mapping[str, Any], build: Build, **more: Any) -> L:
        """Return the command of plain data."""
        options = {name: plain[name] for name in ("day_first", "skip_bad") if name in plain}
        options |= {"if_known": plain.get("again", SKIP), "source": plain.get("source") or ""}
        return cls(**wire.to_logged_table(plain)._asdict(), **options, **more)

    @staticmethod
    def replay(replica: Replica, entry: Entry, check: Check) -> Record:
        """Learn from the data."""
        logged = entry_codec.logged_data_of(entry.record)
        scales = entry_codec.scales_of(entry.record.header)
        told, scales = replica.learning().learn_all(logged, scales)
        return entry_codec.table_record(told, logged, scales)

    @staticmethod
    def redo(replica: Replica, entry: Entry, correction: Record | None) -> None:
        """Keep only the scales of a table that is retracted."""
        if correction is not None:
            raise ReplayMismatch("a correction replaces it, but it is not a report")
        logged = entry_codec.logged_data_of(entry.record)
        replica.engine.skip_all(logged, entry_codec.scales_of(entry.record.header))


@verb("check_table", Http("POST", "check-table", QUERIES, "TableRows"))
@dataclass(frozen=True)
class CheckTable(LoggedTable, Query[TableCheck]):
    """Return what would be learned from logged data, and the problems of the rows."""

    def read(self, reader: Reader) -> TableCheck:
        """Return what the table has."""
        with reader.current() as engine:
            table = self.read_by(engine)
        found = reader.history(lambda journal: rows_known(journal, table.logged))
        return table.check._replace(known=found.known, changed=found.changed)

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any], build: Build, **more: Any) -> CheckTable:
        """Return the query of plain data."""
        columns = wire.to_logged_table(plain)._asdict()
        return cls(**columns, day_first=plain.get("day_first"), **more)

    def answer(self, plain: Plain, context: ClientContext) -> TableCheck:
        """Return what the table has from plain data."""
        return results.of_plain(TableCheck, plain, format=self.file.format)


@verb("imports", Http("GET", "imports", QUERIES))
@dataclass(frozen=True)
class Imports(Query[list[Import]]):
    """Return every table that was learned: its name, what was new in it, and if it counts."""

    def read(self, reader: Reader) -> list[Import]:
        """Return the imports, in order."""
        found: list[Import] = reader.history(imports)
        return found

    @staticmethod
    def present(result: list[Import]) -> Plain:
        """Return imports as plain data."""
        return {"items": [*map(results.to_plain, result)]}

    def answer(self, plain: Plain, context: ClientContext) -> list[Import]:
        """Return the imports of plain data."""
        return [results.of_plain(Import, one) for one in plain["items"]]


@verb(
    "set_arm_features",
    Http(
        "PUT",
        "arm-features",
        PLAYS,
        "SetArmFeatures",
        "Features of arms; values that an arm had before are replaced.",
        {"features": KM, "key": "distances"},
    ),
    DESCRIBE,
)
@dataclass(frozen=True)
class SetArmFeatures(SilentCommand):
    """Keep features of arms. Values that an arm had before are replaced."""

    table: Annotated[Any, Arg(ARM_TABLE, json_name="features")]

    def do(self, turn: Turn) -> None:
        """Keep the features."""
        arms, codes = turn.engine.described(self.table)
        scales = turn.engine.keep_arm_features(arms, codes)
        turn.changed()
        turn.write(DESCRIBE, entry_codec.describe_record(arms, codes, scales), key=turn.key)

    def again(self, turn: Turn, known: Entry) -> None:
        """Raise if the key was used for a different table."""
        if not entry_codec.same_description(known.record, *turn.engine.described(self.table)):
            raise entry_codec.used_before(known, "was used for a different table")

    @staticmethod
    def replay(replica: Replica, entry: Entry, check: Check) -> None:
        """Keep the features."""
        features = replica.engine.state.features
        if features is None:
            raise ReplayMismatch("it has features of arms, but the study has none")
        scales = entry_codec.scales_of(entry.record.header)
        features.set_arm_features(*entry_codec.described(entry.record), scales)
