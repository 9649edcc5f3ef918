"""Stores of journals: the contract for each, and what databases make hard."""

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from effort import TIME_LIMIT
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from postgres import Server, driver_of, pooled
from processes import in_processes
from refusal import refused

from multiplay._support.suggestions import suggestion
from multiplay.errors import Conflict, InvalidInput, NotFound, StoreError
from multiplay.storage import (
    Damaged,
    Entry,
    Head,
    Journal,
    Labels,
    MemoryStore,
    Record,
    Storage,
    store_at,
)
from multiplay.storage import journal as journal_module
from multiplay.storage.base import NEAR, KeyRecord, Store
from multiplay.storage.connection import DatabaseConnection
from multiplay.storage.journal import from_bytes, row_of, to_bytes
from multiplay.storage.schema import Sql
from multiplay.storage.sql import SqlJournal, SqlStore
from multiplay.storage.sqlite import SqliteStore
from multiplay.testing import check_storage, check_store

EMPTY = Record({}, {})


def database(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if kind == "sqlite":
        return store_at(tmp_path / "journals.db")
    server: Server = request.getfixturevalue("postgresql")
    return store_at(server.new_url())


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return MemoryStore()
    return database(request.param, request, tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Return a store that processes share."""
    return database(request.param, request, tmp_path)


def opener(store: Store) -> Callable[[str], Journal]:
    def opened(name: str) -> Journal:
        return store.open(name) if name in store.names() else store.create(name, EMPTY)

    return opened


def sql(journal: Storage, text: str) -> None:
    """Change the tables behind the back of a journal; it stands for #."""
    assert isinstance(journal, SqlJournal)
    with driver_of(journal) as driver:
        driver.execute(text.replace("#", f"{journal._id}")).close()


def spoiler(change: str) -> Callable[[Storage, int], None]:
    where = "WHERE journal = # AND number ="
    if change == "DELETE":
        return lambda journal, number: sql(
            journal, f"DELETE FROM multiplay_entries {where} {number}"
        )
    return lambda journal, number: sql(
        journal, f"UPDATE multiplay_entries SET {change} {where} {number}"
    )


def spoil_snapshot(journal: Storage) -> None:
    """Change the newest that is whole still."""
    newest = "SELECT max(number) FROM multiplay_snapshots WHERE journal = # AND header <> '{}'"
    sql(journal, f"UPDATE multiplay_snapshots SET header = '{{}}' WHERE number = ({newest})")


# ---------------------------------------------------------------- contracts


def test_contract_of_a_store(store: Store) -> None:
    check_store(store)


def test_contract_of_journals(store: Store) -> None:
    if isinstance(store, MemoryStore):
        check_storage(opener(store))
    else:
        check_storage(opener(store), spoiler("header = '{\"k\": 8}'"), spoil_snapshot)


CHANGES = [
    "DELETE",
    "header = 'rubbish'",
    "header = x'00'",
    "arrays = x'00'",
    "arrays = NULL",
    "at = 1.5",
    "kind = 'tell'",
    "key = 'b'",
    "play = 9",
    "digest = x'00'",
    "previous = x'00'",
]


def test_a_row_that_was_changed_is_named(tmp_path: Path) -> None:
    """Whatever was changed; and the rows around it are read."""
    store = store_at(f"sqlite:///{tmp_path}/a.db?synchronous=normal")
    for change in CHANGES:
        journal = store.create(change, EMPTY)
        for k in range(3):
            journal.write(Record({"k": k}, {"x": np.arange(k + 1)}), Labels("ask", f"{k}", k))
        spoiler(change)(journal, 2)
        with pytest.raises(Damaged) as caught:
            list(journal.entries())
        assert caught.value.number == 2, change
        assert next(journal.entries(1)).number == 1, change
        assert [entry.number for entry in journal.entries(3)] == [3], change
        journal.close()


def test_a_row_that_was_put_in_place_of_another_is_seen_behind_it(tmp_path: Path) -> None:
    """Its own digest is right; that of the next one tells."""
    journal = store_at(tmp_path / "a.db").create("a", EMPTY)
    entries = [journal.write(Record({"k": k}, {})) for k in range(3)]
    row = row_of(Head(1, entries[0].digest), Record({"k": 7}, {}), Labels())
    spoiler(f"header = '{row.header}', digest = x'{row.digest.hex()}'")(journal, 2)
    for start in (0, 2, 3):
        with pytest.raises(Damaged, match="does not follow the one before") as caught:
            list(journal.entries(start))
        assert caught.value.number == 3
    journal.close()


def test_the_contract_sees_what_breaks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, broken in (
        ("_roll_back", lambda journal: journal._commit()),
        ("_keyed", lambda journal, kind, key: None),
        ("_put", lambda journal, snapshot: None),
        ("_of_play", lambda journal, play: []),
        ("_paired", lambda journal, kind, ends, start, limit: []),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"multiplay.storage.memory.MemoryJournal.{name}", broken)
            with pytest.raises((AssertionError, RecursionError)):
                check_storage(opener(MemoryStore()))
    with monkeypatch.context() as patch:
        patch.setattr("multiplay.storage.memory.journal_deleted", lambda *_: KeyError())
        with pytest.raises(KeyError):
            check_store(MemoryStore())
    for name, wrong in (
        ("find", lambda keyring, ids: []),
        ("all", lambda keyring: []),
        ("is_empty", lambda keyring: True),
        ("remove", lambda keyring, id: True),
        ("remove_expired", lambda keyring, now: None),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"multiplay.storage.memory.MemoryKeyring.{name}", wrong)
            with pytest.raises(AssertionError):
                check_store(MemoryStore())


def test_a_store_may_keep_no_keys() -> None:
    class Keyless(MemoryStore):
        def keyring(self) -> NoReturn:
            Store.keyring(self)
            raise AssertionError("the default must raise")

    check_store(Keyless())
    with refused("store"):
        Keyless().keyring()


class Diaries(RuleBasedStateMachine):
    """Two handles, and a list that knows what they must say."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.handles = [store.create("a", EMPTY), store.open("a")]
        self.written: list[Entry] = list(self.handles[0].entries())
        self.snapshots: list[int | None] = [None]

    handle = st.integers(0, 1)
    labels = st.lists(
        st.tuples(
            st.sampled_from(["ask", "tell"]),
            st.one_of(st.none(), st.sampled_from("abcdef")),
            st.one_of(st.none(), st.integers(0, 3)),
        ),
        max_size=4,
    )

    @rule(handle=handle, labels=labels, ends=st.sampled_from(["well", "badly", "with a snapshot"]))
    def turn(self, handle: int, labels: list[Any], ends: str) -> None:
        journal = self.handles[handle]
        new: list[Entry] = []
        with suppress(ZeroDivisionError), journal.transaction() as head:
            assert head == (self.written[-1].number, self.written[-1].digest)
            for k, (kind, key, play) in enumerate(labels):
                record = Record({"k": k, "by": handle}, {"k": np.arange(k)} if k % 2 else {})
                if key and any(one.labels[:2] == (kind, key) for one in [*self.written, *new]):
                    with refused("key"):
                        journal.write(record, Labels(kind, key, play))
                else:
                    new.append(journal.write(record, Labels(kind, key, play, k / 3)))
            if ends == "with a snapshot":
                journal.put(Record({"number": journal.head().number}, {}))
            assert 1 / (ends != "badly")
        if ends != "badly":
            self.written += new
        if ends == "with a snapshot":
            self.snapshots.append(self.written[-1].number)

    @rule(handle=handle)
    def close(self, handle: int) -> None:
        self.handles[handle].close()

    @rule(handle=handle, part=st.floats(0, 1))
    def look(self, handle: int, part: float) -> None:
        journal, start = self.handles[handle], int(part * len(self.written))
        assert looks(journal.entries(start)) == looks(self.written[start:])
        for play in range(4):
            expected = [entry for entry in self.written if entry.labels.play == play]
            assert looks(journal.of_play(play)) == looks(expected)
        for entry in self.written[start : start + 3]:
            if entry.labels.key is not None:
                found = journal.find(entry.labels.kind, entry.labels.key)
                assert found is not None
                assert looks([found]) == looks([entry])
        snapshot = journal.get()
        assert (snapshot and snapshot.header["number"]) == self.snapshots[-1]

    def teardown(self) -> None:
        for journal in self.handles:
            journal.close()


def looks(entries: Iterable[Entry]) -> list[Any]:
    return [
        (one.number, one.labels, one.digest, one.record.header, len(one.record.arrays))
        for one in entries
    ]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_any_order_of_things(kind: str, tmp_path: Path) -> None:
    numbers = count()

    class Here(Diaries):
        def __init__(self) -> None:
            place = f"sqlite:///{tmp_path}/{next(numbers)}.db?synchronous=normal"
            super().__init__(store_at(place) if kind == "sqlite" else MemoryStore())

    run_state_machine_as_test(Here, settings=settings(max_examples=12, stateful_step_count=12))


# ---------------------------------------------------------------- reading


def test_batches_have_everything(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "FIRST_BATCH", 2)
    monkeypatch.setattr(journal_module, "LARGEST_BATCH", 3)
    monkeypatch.setattr(journal_module, "BATCH_BYTES", 1000)
    journal = store.create("a", EMPTY)
    with journal.transaction():
        for k in range(10):
            large = {"x": np.zeros(300)} if k in (4, 5) else {}  # a batch of its own
            journal.write(Record({"k": k}, large), Labels("ask", None, k))
            journal.write(Record({"k": -k}, {}), Labels("tell", None, k))
        in_turn = [entry.number for entry in journal.entries()]
    assert in_turn == [entry.number for entry in journal.entries()] == list(range(21))
    assert [entry.number for entry in journal.entries(13)] == list(range(13, 21))
    pairs = [(one.record.header["k"], end) for one, end in journal.pairs("ask", ["tell", "x"])]
    assert [(k, end and end.record.header["k"]) for k, end in pairs] == [(k, -k) for k in range(10)]
    reading = journal.entries()
    next(reading)
    journal.append(EMPTY)
    assert len(list(reading)) == 21, "what comes while one reads is read too"
    journal.close()


def test_a_turn_within_a_turn_is_an_error(store: Store) -> None:
    journal = store.create("a", EMPTY)
    with (
        journal.transaction(),
        pytest.raises(RuntimeError, match="cannot be nested"),
        journal.transaction(),
    ):
        pass
    assert journal.append(EMPTY) == 1
    journal.close()


STRUCTURE = np.dtype([("a", "<i4"), ("b", [("c", "f8"), ("d", "S3", (2,))])], align=True)
ARRAYS = [
    np.array(7),
    np.empty((0, 4), np.int8),
    np.array("zwölf"),
    np.array(["", ""], "U0"),
    np.zeros(2, "V0"),
    np.array(["2026-11-15", "NaT"], "M8[ns]"),
    np.array([-0.0, np.nan, np.inf, 5e-324], ">f8"),
    np.array([1, 2**64 - 1], np.uint64),
    np.array([True, False]),
    np.ones((2, 3), "c16")[:, ::2],
    np.asfortranarray(np.arange(6, dtype=np.float16).reshape(2, 3)),
    np.ones(2, STRUCTURE),
    np.zeros(3, np.dtype([(("title", "name"), "f8")])),
    np.array(b"\0a\0"),
]


def test_arrays_are_bytes_and_back() -> None:
    arrays = {f"{k} ü\n'\"\0\ud800": array for k, array in enumerate(ARRAYS)}
    blob = to_bytes(arrays)
    kept = from_bytes(blob)
    assert list(kept) == list(arrays)
    for name, array in arrays.items():
        found = kept[name]
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == array.tobytes()
        assert found.flags.writeable
        assert found.flags.aligned, "kernels are compiled for such arrays"
    assert from_bytes(to_bytes({})) == {}


def test_damaged_bytes_are_refused() -> None:
    blob = to_bytes({"a": np.arange(3.0), "b": np.array(["x"])})
    for end in range(1, len(blob)):
        with pytest.raises(Damaged, match="arrays written by multiplay"):
            from_bytes(blob[:end])
    with pytest.raises(Damaged):
        from_bytes(blob + b"x")
    rng = np.random.default_rng(0)
    for place in range(len(blob)):
        changed = bytearray(blob)
        changed[place] = rng.integers(256)
        with suppress(Damaged):  # the only error; the digest sees what it does not
            from_bytes(bytes(changed))


# ---------------------------------------------------------------- places

BAD_PLACES: dict[str, Any] = {
    "number": 3,
    "none": None,
    "folder": ".",
    "nothing": "",
    "memory of SQLite": ":memory:",
    "its URL": "sqlite:///:memory:",
    "no path": "sqlite://",
    "two slashes": "sqlite://plans.db",
    "unknown option": "sqlite:///plans.db?mode=ro",
    "wrong option": "sqlite:///plans.db?synchronous=off",
    "wrong time": "sqlite:///plans.db?timeout=soon",
    "negative time": "sqlite:///plans.db?timeout=-1",
    "other database": "mysql://host/plans",
    "two at signs": "postgresql://me:a@s3cret@host/plans",
    "port": "postgresql://me:s3cret@host:port/plans",
    "option of nobody": "postgresql://me:s3cret@host/plans?colour=red",
    "time of nobody": "postgresql://me:s3cret@host/plans?timeout=nan",
}


@pytest.mark.parametrize("place", BAD_PLACES.values(), ids=BAD_PLACES)
def test_what_is_no_place_is_refused(place: Any) -> None:
    with pytest.raises(ValueError, match=r": expected .+, got .+\. [A-Z].+\.$") as caught:
        store_at(place)
    assert "s3cret" not in str(caught.value)


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert store_at("memory://a") is store_at("memory://a")
    assert store_at("memory://a") is not store_at("memory://")
    store = MemoryStore()
    assert store_at(store) is store
    for place in ("a.db", "sqlite:///a.db", tmp_path / "a.db", f"sqlite:///{tmp_path}/a.db"):
        found = store_at(place)
        assert isinstance(found, SqliteStore)
        assert found.path == tmp_path / "a.db"
        again = store_at(found.url)
        assert isinstance(again, SqliteStore)
        assert again.path == found.path
    assert found.names() == []
    assert not (tmp_path / "a.db").exists(), "looking must not make a file"
    with refused("name"):
        found.open("a")
    assert not (tmp_path / "a.db").exists(), "looking must not make a file"
    store_at("new/folder/a.db").create("a", EMPTY).close()
    assert store_at("sqlite:///new/folder/a.db").names() == ["a"]


@pytest.mark.parametrize(("options", "level"), [("", 2), ("?synchronous=normal&timeout=5", 1)])
def test_options_of_sqlite(options: str, level: int, tmp_path: Path) -> None:
    store = store_at(f"sqlite:///{tmp_path}/a.db{options}")
    again = store_at(store.url)
    assert isinstance(store, SqliteStore)
    assert isinstance(again, SqliteStore)
    assert (again.synchronous, again.timeout) == (store.synchronous, store.timeout)
    assert store.timeout == (5 if options else 30)
    journal = store.create("a", EMPTY)
    asked = [("PRAGMA synchronous", level), ("PRAGMA journal_mode", "wal")]
    for question, answer in asked:
        assert journal._connection._connection.execute(question).fetchone() == (answer,)
    journal.close()


def test_a_password_is_never_shown() -> None:
    """Nobody listens at port 1."""
    for place in (
        "postgresql://me:secret1@127.0.0.1:1/plans",
        "postgres://me@127.0.0.1:1/plans?password=secret1&sslpassword=secret2",
    ):
        store = store_at(place)
        with pytest.raises(StoreError, match="no connection") as caught:
            store.names()
        for text in (str(caught.value), repr(caught.value), repr(store), store.url):
            assert "secret" not in text
        assert caught.value.__cause__ is None


LIGHT = """
import sys
import multiplay.storage
multiplay.storage.store_at("memory://")
heavy = {"sqlalchemy", "psycopg", "sqlite3"} & set(sys.modules)
assert not heavy, heavy
sys.modules["psycopg"] = None
try:
    multiplay.storage.store_at("postgresql://host/plans")
except multiplay.InvalidInput as error:
    assert "pip install 'multiplay[postgresql]'" in str(error)
else:
    raise AssertionError
"""


def test_databases_are_imported_when_they_are_used() -> None:
    subprocess.run([sys.executable, "-c", LIGHT], check=True, timeout=TIME_LIMIT)


def test_newer_tables_are_refused(shared: Store) -> None:
    journal = shared.create("a", EMPTY)
    sql(journal, "UPDATE multiplay_schema SET version = 3")
    journal.append(EMPTY)
    journal.close()
    getattr(shared, "renew", lambda: None)()  # the version is read again, as after ten seconds
    acts: list[Callable[[], object]] = [
        journal.head,
        shared.names,
        lambda: shared.open("a"),
        lambda: shared.create("b", EMPTY),
        lambda: shared.delete("a"),
    ]
    for act in acts:
        with pytest.raises(ValueError, match=r"version 2 .* Update multiplay\."):
            act()
    journal.close()


# ---------------------------------------------------------------- names and keys


def test_an_unknown_name_reads_few_names(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest names are suggested, and what is read does not grow with the store."""
    for k in range(2 * NEAR + 40):
        store.create(f"lane {k:03}", EMPTY).close()
    compared: list[int] = []

    def watched(name: object, known: Iterable[str]) -> str:
        names = list(known)
        compared.append(len(names))
        return suggestion(name, names)

    monkeypatch.setattr("multiplay.storage.base.suggestion", watched)
    fetched = count_rows(monkeypatch)
    acts: list[Callable[[str], object]] = [
        store.open,
        store.delete,
        lambda name: store.rename(name, "b"),
    ]
    for act in acts:
        with pytest.raises(NotFound, match=r"Did you mean 'lane 070'\?"):
            act("lane 070b")
    with pytest.raises(NotFound, match=r"Did you mean 'lane 000'\?"):
        store.open("lane 000b")
    assert compared == [2 * NEAR] * 3 + [NEAR + 1]
    assert all(rows <= NEAR for rows in fetched)


def count_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which every query of a database adds the number of its rows."""
    fetch, counts = DatabaseConnection.fetch, list[int]()

    def counted(self: DatabaseConnection, sql: Sql, **given: Any) -> list[tuple[Any, ...]]:
        rows = fetch(self, sql, **given)
        counts.append(len(rows))
        return rows

    monkeypatch.setattr(DatabaseConnection, "fetch", counted)
    return counts


@pytest.mark.parametrize("end", ["commit", "roll back"])
def test_two_renames_to_one_name(end: str, postgresql: Server) -> None:
    """The second waits for the first, and is a conflict if the first is committed."""
    store = store_at(postgresql.new_url())
    assert isinstance(store, SqlStore)
    for name in "ab":
        store.create(name, EMPTY).close()
    refusals: list[Exception] = []

    def rename() -> None:
        try:
            store.rename("b", "c")
        except Exception as error:
            refusals.append(error)

    with store._changing("a", None) as (connection, journal):
        connection.change(store.sql.rename, journal=journal, new="c")
        thread = threading.Thread(target=rename)
        thread.start()
        while not connection.fetch(Sql(WAITING, ())):
            time.sleep(0.01)
        if end == "roll back":
            connection.change(store.sql.rename, journal=journal, new="a")
    thread.join(TIME_LIMIT)
    assert [type(error) for error in refusals] == ([Conflict] if end == "commit" else [])
    assert store.names() == (["b", "c"] if end == "commit" else ["a", "c"])


WAITING = "SELECT 1 FROM pg_locks WHERE NOT granted"


@pytest.mark.parametrize("act", ["delete", "rename"])
def test_a_key_of_a_study_that_goes_away_is_not_stored(act: str, store: Store) -> None:
    """Between the check of the caller and the transaction of the key."""
    store.create("lanes", EMPTY).close()
    row = KeyRecord("a", b"1" * 32, "one", "lanes", "play", 1.0)
    store.delete("lanes") if act == "delete" else store.rename("lanes", "roads")
    with closing(store.keyring()) as keyring:
        with pytest.raises(NotFound):
            keyring.add(row)
        assert keyring.is_empty()
        keyring.add(row._replace(study=None))


# ---------------------------------------------------------------- processes


def test_processes_make_tables_at_once(shared: Store) -> None:
    def work(k: int) -> None:
        shared.create(f"of {k}", EMPTY).close()
        with suppress(InvalidInput):  # of those who come later
            shared.create("of all", Record({"by": k}, {})).close()

    in_processes(4, work)
    assert shared.names() == ["of 0", "of 1", "of 2", "of 3", "of all"]
    journal = shared.open("of all")
    assert journal.head().number == 0
    journal.close()


def test_processes_write_side_by_side(shared: Store) -> None:
    """The parent's connection is open when they begin, and works when they are done."""
    journal = shared.create("a", EMPTY)

    def work(k: int) -> None:
        for n in range(20):
            with journal.transaction() as head:
                journal.write(Record({"by": k, "n": n}, {"head": np.array(head.number)}))

    in_processes(4, work)
    assert journal.append(EMPTY) == 81
    entries = list(journal.entries(1))[:-1]
    assert [entry.number for entry in entries] == list(range(1, 81))
    for entry in entries:
        assert entry.record.arrays["head"] == entry.number - 1
    for k in range(4):
        own = [entry.record.header for entry in entries if entry.record.header["by"] == k]
        assert [header["n"] for header in own] == list(range(20))
    journal.close()


def test_a_file_that_was_replaced_is_opened_again(tmp_path: Path) -> None:
    """A process that goes on with the old one would write where nobody looks."""
    place, backup = tmp_path / "a.db", tmp_path / "backup.db"

    def remove() -> None:
        for path in tmp_path.glob("a.db*"):  # the log is a part of the database
            path.unlink()

    store = store_at(place)
    journal = store.create("a", EMPTY)
    journal.append(EMPTY)
    sql(journal, f"VACUUM INTO '{backup}'")
    journal.append(EMPTY)
    remove()
    with pytest.raises(StoreError, match="does not exist"):
        journal.append(EMPTY)
    shutil.copy(backup, place)
    assert journal.head().number == 1
    assert journal.append(EMPTY) == 2
    other = store.open("a")
    assert other.head().number == 2
    other.close()
    remove()
    shutil.copy(backup, place)
    assert journal.append(EMPTY) == 2, "the log is that of the new file"
    remove()
    store.create("a", EMPTY).close()
    with refused("name"):
        journal.append(EMPTY)


def test_missing_rows_at_the_end_are_noticed(shared: Store) -> None:
    """By every handle, also a new one: the number of the next entry would be used twice."""
    journal = shared.create("a", EMPTY)
    for _ in range(3):
        journal.append(EMPTY)
    journal.put(EMPTY)
    sql(journal, "DELETE FROM multiplay_entries WHERE journal = # AND number >= 2")
    with closing(shared.open("a")) as other:
        for handle in (journal, other):
            for act in (handle.head, lambda handle=handle: handle.append(EMPTY)):
                with pytest.raises(Damaged, match=r"entries 2 to 3.*study accept a\.") as caught:
                    act()
                assert caught.value.number == 2
        assert [entry.number for entry in other.entries()] == [0, 1]
        assert journal.accepted() == 0
        assert other.accept().number == 1
        assert journal.head().number == 1
        assert journal.get() is None, "it may be newer than the last entry"
        assert journal.append(EMPTY) == other.head().number == 2
        before = journal.accepted()
        assert before > 0
        assert other.accept().number == 2
        assert journal.accepted() > before
    journal.close()


def test_a_different_last_row_is_noticed(shared: Store) -> None:
    journal = shared.create("a", EMPTY)
    journal.append(Record({"k": 1}, {}))
    sql(journal, "UPDATE multiplay_entries SET digest = previous WHERE journal = # AND number = 1")
    with pytest.raises(Damaged, match=r"expected entry 1,"):
        journal.head()
    with pytest.raises(Damaged, match=r"expected entry 1,"):
        journal.append(EMPTY)
    journal.close()


def test_tables_of_version_0_9_get_new_columns(shared: Store) -> None:
    """With the first change; a process of version 0.9 may write before and after that."""
    journal = shared.create("a", EMPTY)
    assert isinstance(journal, SqlJournal)
    for column in ("last", "last_digest", "accepted"):
        sql(journal, f"ALTER TABLE multiplay_journals DROP COLUMN {column}")
    sql(journal, "UPDATE multiplay_schema SET version = 1")
    journal.close()
    getattr(shared, "renew", lambda: None)()  # its connections, as of a new process
    assert journal.head().number == 0
    journal.close()
    with closing(shared.open("a")) as reader, closing(shared.open("a")) as writer:
        assert reader.head().number == 0
        assert reader.accepted() == 0
        assert writer.append(EMPTY) == 1
        assert reader.head() == writer.head()
        assert reader.append(EMPTY) == 2
        sql(writer, "UPDATE multiplay_journals SET last = 1 WHERE id = #")  # 2 is of version 0.9
        assert reader.head().number == 2
        assert reader.append(EMPTY) == 3
        sql(writer, "DELETE FROM multiplay_entries WHERE journal = # AND number = 3")
        with pytest.raises(Damaged, match="entry 3"):
            reader.head()
    shared.create("b", EMPTY).close()


def test_indices_answer(tmp_path: Path) -> None:
    """A scan of the history would grow with it."""
    journal = store_at(tmp_path / "a.db").create("a", EMPTY)
    assert isinstance(journal, SqlJournal)
    asked = {
        journal._sql.keyed(2): "by_key (journal=? AND kind=? AND key=?)",
        journal._sql.of_play: "by_play (journal=? AND play=?)",
        journal._sql.ends(2): "by_play (journal=? AND play=?)",
        journal._sql.batch: "(journal=? AND number>?)",
        journal._sql.of_kind: "(journal=? AND number>?)",
        journal._sql.head: "(journal=?)",
        journal._sql.near[0]: "(name<?)",
        journal._sql.near[1]: "(name>?)",
    }
    for statement, index in asked.items():
        values = [1] * len(statement.names)
        plan = journal._connection._connection.execute(
            f"EXPLAIN QUERY PLAN {statement.text}", values
        )
        steps = [detail for *_, detail in plan.fetchall()]
        assert steps[-1].endswith(index), steps
        assert not any("TEMP B-TREE" in step for step in steps), "it must come in order"
    journal.close()


# ---------------------------------------------------------------- connections to PostgreSQL


@pytest.mark.skipif(
    not (shutil.which("pgbouncer") or Path("/usr/sbin/pgbouncer").exists()),
    reason="needs pgbouncer",
)
def test_a_proxy_may_pool_transactions(postgresql: Server) -> None:
    """Each transaction may have another session: no setting and no statement is kept in one."""
    with pooled(postgresql, postgresql.new_url()) as url:
        store = store_at(url)
        journals = [store.create(f"{k}", EMPTY) for k in range(3)]

        def write(journal: Journal) -> None:
            for k in range(20):
                with journal.transaction():
                    journal.write(EMPTY, Labels("ask", f"{k}"))
                    journal.find("ask", f"{k}")

        threads = [threading.Thread(target=write, args=[one]) for one in journals]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIME_LIMIT)
        for journal in journals:
            assert journal.head().number == 20
            assert len(list(journal.entries())) == 21
            with journal.transaction():
                assert isinstance(journal, SqlJournal)
                shown = [
                    journal._connection._connection.execute(f"SHOW {name}").fetchone()[0]
                    for name in ("lock_timeout", "idle_in_transaction_session_timeout")
                ]
            assert shown == ["30s", "5min"]
            with driver_of(journal) as driver:
                assert driver.execute("SHOW lock_timeout").fetchone() == ("0",)


def test_handles_share_few_connections(postgresql: Server) -> None:
    """Many journals and threads of one process have eight connections, with that of the keys."""
    import psycopg

    url = postgresql.new_url()
    store = store_at(f"{url}&application_name=pooled")
    journals = [store.create(f"{k}", EMPTY) for k in range(30)]
    keyring = store.keyring()

    def write(journal: Journal) -> None:
        for _ in range(3):
            with journal.transaction():
                journal.append(EMPTY)
                assert keyring_lock.acquire()
                try:
                    assert keyring.is_empty()
                finally:
                    keyring_lock.release()

    keyring_lock = threading.Lock()
    threads = [threading.Thread(target=write, args=[one]) for one in journals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIME_LIMIT)
    assert [journal.head().number for journal in journals] == [3] * 30
    with psycopg.connect(url) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pooled'"
        [found] = connection.execute(query).fetchone() or (0,)
    assert 1 < found <= 8
    for journal in journals:
        journal.close()
    keyring.close()
