"""Tables and SQL statements of a database: one schema, compiled for each dialect.

SQLAlchemy compiles the statements once, and the driver runs them as text: that takes a third of the
time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from multiplay.storage.base import NEAR
from multiplay.storage.journal import JournalRow

VERSION = 2  # of the tables; a newer one is refused
HEADS = 2  # the version that added the last entries of journals
TABLES = sa.MetaData()

schema = sa.Table(
    "multiplay_schema",
    TABLES,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
)
CODE_POINTS = "C"  # the collation of PostgreSQL in which names are sorted
NAME = sa.Text().with_variant(sa.Text(collation=CODE_POINTS), "postgresql")
journals = sa.Table(
    "multiplay_journals",
    TABLES,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", NAME, nullable=False, unique=True),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("last", sa.BigInteger),  # the number of the last entry, and its digest
    sa.Column("last_digest", sa.LargeBinary),
    sa.Column("accepted", sa.Double),  # when a shorter journal was last accepted
    sqlite_autoincrement=True,  # the id of a deleted journal is not used again
)
# Tables of multiplay 0.9 do not have these; they are added before the first change.
ADDED = (journals.c.last, journals.c.last_digest, journals.c.accepted)
# The digests come before large columns: databases read a row from its beginning.
entries = sa.Table(
    "multiplay_entries",
    TABLES,
    sa.Column("journal", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("key", sa.Text),
    sa.Column("play", sa.BigInteger),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("previous", sa.LargeBinary, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("header", sa.Text, nullable=False),
    sa.Column("arrays", sa.LargeBinary),
)
sa.Index(
    "multiplay_entries_by_key",
    entries.c.journal,
    entries.c.kind,
    entries.c.key,
    unique=True,
    sqlite_where=entries.c.key.is_not(None),
    postgresql_where=entries.c.key.is_not(None),
)
sa.Index(
    "multiplay_entries_by_play",
    entries.c.journal,
    entries.c.play,
    entries.c.number,  # otherwise SQLite uses the primary key, which has this order
    sqlite_where=entries.c.play.is_not(None),
    postgresql_where=entries.c.play.is_not(None),
)
snapshots = sa.Table(
    "multiplay_snapshots",
    TABLES,
    sa.Column("journal", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("header", sa.Text, nullable=False),
    sa.Column("arrays", sa.LargeBinary),
)


KEYS = "multiplay_keys"  # created with the first key: older stores have no such table
keys = sa.Table(
    KEYS,
    sa.MetaData(),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("study", sa.Text),
    sa.Column("can", sa.Text, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("expires", sa.Double),
    sa.Column("parent", sa.Text),
)
REQUESTS = "multiplay_requests"  # created with the first one: older stores have no such table
requests = sa.Table(
    REQUESTS,
    sa.MetaData(),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
)


class Sql(NamedTuple):
    """A statement as text, and the names of its parameters, in order."""

    text: str
    names: tuple[str, ...]

    def values(self, given: dict[str, Any]) -> tuple[Any, ...]:
        """Return the parameters in the order of the statement."""
        return tuple([given[name] for name in self.names])


def compiled(statement: sa.sql.ClauseElement, dialect: sa.Dialect) -> Sql:
    """Return a statement compiled for a dialect."""
    found = statement.compile(dialect=dialect)
    return Sql(str(found), tuple(getattr(found, "positiontup", None) or ()))


class Statements:
    """All statements of journals, compiled for one dialect."""

    def __init__(self, dialect: sa.Dialect) -> None:
        self._dialect = dialect
        insert = postgresql.insert if dialect.name == "postgresql" else sqlite.insert
        row = [entries.c[name] for name in JournalRow._fields]
        bare = row[:-1]
        journal = entries.c.journal == _given("journal")
        zero: sa.ColumnClause[int] = sa.literal_column("0")
        one: sa.ColumnClause[int] = sa.literal_column("1")

        self.make = [*self._tables(), self._sql(sa.insert(schema))]
        self.add_columns = [
            Sql(f"ALTER TABLE {journals.name} ADD COLUMN {column.name} {kind}", ())
            for column in ADDED
            for kind in [column.type.compile(dialect)]
        ] + [self._sql(sa.insert(schema))]
        self.version = self._sql(sa.select(schema.c.version))

        name: Any = journals.c.name
        if dialect.name == "postgresql":  # in the order of Python, by the index of new tables
            name = name.collate(CODE_POINTS)
        self.names = self._sql(
            sa.select(journals.c.name)
            .where(name > _given("after"), name >= _given("prefix"))
            .order_by(name)
            .limit(_given("limit"))
            .offset(zero)
        )
        few: sa.ColumnClause[int] = sa.literal_column(f"{NEAR}")
        some = sa.select(journals.c.name).limit(few).offset(zero)
        before, after = journals.c.name < _given("name"), journals.c.name >= _given("name")
        self.near = [
            self._sql(some.where(before).order_by(journals.c.name.desc())),
            self._sql(some.where(after).order_by(journals.c.name)),
        ]
        named = sa.select(journals.c.id, journals.c.name, journals.c.created)
        self.named = self._sql(named.where(journals.c.name == _given("name")))
        self.identified = self._sql(named.where(journals.c.id == _given("journal")))
        new = insert(journals).values({"name": "", "created": 0.0}).inline()
        self.add_journal = self._sql(new.on_conflict_do_nothing())
        one_journal = sa.select(journals.c.id)
        self.lock_journal = self._sql(
            one_journal.where(journals.c.id == _given("journal")).with_for_update()
        )
        self.lock_named = self._sql(
            one_journal.where(journals.c.name == _given("name")).with_for_update()
        )
        self.remove = [
            self._sql(sa.delete(table).where(column == _given("journal")))
            for table, column in (
                (journals, journals.c.id),
                (snapshots, snapshots.c.journal),
                (entries, entries.c.journal),
            )
        ]

        self.make_requests = self._sql(CreateTable(requests))
        self.add_request = self._sql(insert(requests).on_conflict_do_nothing())
        self.request = self._sql(sa.select(*requests.columns).where(requests.c.id == _given("id")))
        self.rename = self._sql(
            sa.update(journals).where(journals.c.id == _given("journal")).values(name=_given("new"))
        )
        self.rename_keys = self._sql(
            sa.update(keys).where(keys.c.study == _given("old")).values(study=_given("new"))
        )
        self.remove_keys = self._sql(sa.delete(keys).where(keys.c.study == _given("study")))

        self.head, self.head_0_9 = self._head(journals.c.last, journals.c.last_digest), self._head()
        self.record_head = self._sql(
            sa.update(journals)
            .where(journals.c.id == _given("journal"))
            .values(last=_given("number"), last_digest=_given("digest"))
        )
        this = journals.c.id == _given("journal")
        self.accepted = self._sql(sa.select(journals.c.accepted).where(this))
        self.accept = self._sql(sa.update(journals).where(this).values(accepted=_given("at")))
        self.add = self._sql(insert(entries).on_conflict_do_nothing())
        assert self.add.names == ("journal", *JournalRow._fields)
        self.batch = self._sql(
            sa.select(*row)
            .where(journal, entries.c.number >= _given("start"))
            .order_by(entries.c.number)
            .limit(_given("limit"))
            .offset(zero)
        )
        self.of_play = self._sql(
            sa.select(*row)
            .where(journal, entries.c.play == _given("play"))
            .order_by(entries.c.number)
        )
        self.of_kind = self._sql(
            sa.select(*bare)
            .where(journal, entries.c.kind == _given("kind"), entries.c.number >= _given("start"))
            .order_by(entries.c.number)
            .limit(_given("limit"))
            .offset(zero)
        )

        self.snapshot = self._sql(
            sa.select(snapshots.c.digest, snapshots.c.header, snapshots.c.arrays)
            .where(snapshots.c.journal == _given("journal"))
            .order_by(snapshots.c.number.desc())
            .limit(one)
            .offset(_given("older"))
        )
        self.last_snapshot = self._sql(
            sa.select(sa.func.max(snapshots.c.number)).where(
                snapshots.c.journal == _given("journal")
            )
        )
        self.add_snapshot = self._sql(sa.insert(snapshots))
        self.drop_snapshots = self._sql(
            sa.delete(snapshots).where(
                snapshots.c.journal == _given("journal"), snapshots.c.number < _given("number")
            )
        )
        self.keyed, self.ends = lru_cache(self._keyed), lru_cache(self._ends)
        self.all_keyed = lru_cache(self._all_keyed)

    def _head(self, *recorded: sa.ColumnElement[Any]) -> Sql:
        """Return the query for the last entry of a journal, after the one that it recorded.

        The last column is the name of the journal.
        """
        rows = entries.alias("rows")
        last = sa.select(sa.func.max(rows.c.number)).where(rows.c.journal == journals.c.id)
        is_last = (entries.c.journal == journals.c.id) & (
            entries.c.number == last.correlate(journals).scalar_subquery()
        )
        columns = recorded or (sa.null(), sa.null())
        return self._sql(
            sa.select(*columns, entries.c.number, entries.c.digest, journals.c.name)
            .select_from(journals)
            .outerjoin(entries, is_last)
            .where(journals.c.id == _given("journal"))
        )

    def _keyed(self, count: int) -> Sql:
        """Return the query for the row with a key, of one of ``count`` kinds."""
        return self._sql(
            sa.select(*[entries.c[name] for name in JournalRow._fields]).where(
                entries.c.journal == _given("journal"),
                entries.c.kind.in_([_given(f"kind{k}") for k in range(count)]),
                entries.c.key == _given("key"),
            )
        )

    def _all_keyed(self, count: int) -> Sql:
        """Return the query for the rows of ``count`` (kind, key) pairs.

        A union of one query for each pair: a single condition could make the database scan all
        rows of a kind.
        """
        row = sa.select(*[entries.c[name] for name in JournalRow._fields])
        each = [
            row.where(
                entries.c.journal == _given("journal"),
                entries.c.kind == _given(f"kind{k}"),
                entries.c.key == _given(f"key{k}"),
            )
            for k in range(count)
        ]
        return self._sql(sa.union_all(*each))

    def _ends(self, count: int) -> Sql:
        """Return the query for the rows of ``count`` kinds that belong to plays of given rows."""
        asked = entries.alias("asked")
        row = [entries.c[name] for name in JournalRow._fields[:-1]]
        return self._sql(
            sa.select(*row)
            .select_from(asked)
            .join(
                entries, (entries.c.journal == asked.c.journal) & (entries.c.play == asked.c.play)
            )
            .where(
                asked.c.journal == _given("journal"),
                asked.c.kind == _given("kind"),
                asked.c.number >= _given("start"),
                asked.c.number <= _given("stop"),
                entries.c.kind.in_([_given(f"end{k}") for k in range(count)]),
            )
        )

    def _sql(self, statement: sa.sql.ClauseElement) -> Sql:
        return compiled(statement, self._dialect)

    def _tables(self) -> list[Sql]:
        found: list[sa.sql.ClauseElement] = []
        for table in TABLES.sorted_tables:
            found += [CreateTable(table), *(CreateIndex(index) for index in table.indexes)]
        return [self._sql(statement) for statement in found]


def _given(name: str) -> sa.BindParameter[Any]:
    return sa.bindparam(name)


_statements: dict[str, Statements] = {}


def statements(dialect: sa.Dialect) -> Statements:
    """Return the statements of a dialect, which are compiled once in a process."""
    if dialect.name not in _statements:
        _statements[dialect.name] = Statements(dialect)
    return _statements[dialect.name]
