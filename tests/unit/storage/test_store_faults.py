"""What can go wrong with a store: it says so, loses nothing that it had taken, and works again."""

import os
import pwd
import resource
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from effort import TIME_LIMIT
from postgres import Server, driver_of
from processes import in_processes

from multiplay.errors import StoreError, UnknownOutcome
from multiplay.storage import Journal, Record, Store, store_at
from multiplay.storage.sql import SqlJournal

LARGE = Record({}, {"x": np.zeros(5000)})  # ten pages of a file


class Diary:
    """Writes to a journal, and knows what must be in it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.journal: Journal = store.create("diary", Record({}, {}))
        self.taken: list[int] = []

    def write(self, record: Record = LARGE) -> None:
        number = self.journal.append(record)
        self.taken.append(number)

    def write_until(self, reason: str) -> None:
        with pytest.raises(StoreError, match=reason):
            self.fill()

    def fill(self) -> None:
        for _ in range(1000):
            self.write()

    def write_in_a_turn(self, *acts: Callable[[], object]) -> None:
        """Write one that is not known to be taken, and do the rest."""
        with self.journal.transaction():
            self.journal.append(Record({}, {}))
            for act in acts:
                act()

    def check(self) -> None:
        """All that was taken is there once and in order, and more can be written."""
        self.write()
        with closing(self.store.open("diary")) as other:
            for journal in (self.journal, other):
                numbers = [entry.number for entry in journal.entries(1)]
                assert numbers == self.taken == list(range(1, len(self.taken) + 1))


@contextmanager
def diary_in(store: Store) -> Iterator[Diary]:
    diary = Diary(store)
    try:
        diary.write()
        yield diary
        diary.check()
    finally:
        diary.journal.close()


def quietly(act: Callable[[], object]) -> Callable[[], None]:
    """Go on as if nothing was wrong."""

    def acted() -> None:
        with suppress(StoreError):
            act()

    return acted


def pragma(journal: Journal, text: str) -> int:
    assert isinstance(journal, SqlJournal)
    journal.head()
    value: int = journal._connection._connection.execute(f"PRAGMA {text}").fetchone()[0]
    return value


def test_a_full_disk(tmp_path: Path) -> None:
    with diary_in(store_at(tmp_path / "a.db")) as diary:
        pages = pragma(diary.journal, "page_count")
        pragma(diary.journal, f"max_page_count = {pages + 35}")
        diary.write_until("the disk is full. Free some space")
        assert len(diary.taken) > 2
        for act in (diary.write, quietly(diary.write)):
            with pytest.raises(StoreError, match="full"):
                diary.write_in_a_turn(act)
        with pytest.raises(StoreError, match="full"):
            diary.journal.put(LARGE)
        assert diary.journal.get() is None
        pragma(diary.journal, "max_page_count = 1000000")


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """The system refuses to write, in the middle of it."""

    def work(_: int) -> None:
        with diary_in(store_at(tmp_path / "a.db")) as diary:
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, hard))
            diary.write_until("cannot be read or written|is full")
            assert len(diary.taken) > 2
            diary.write_until("cannot be read or written|is full")
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))

    in_processes(1, work)


def test_a_turn_that_is_not_whole_is_not_kept(tmp_path: Path) -> None:
    """Closed within, or taken over by a child: what is written then would be without the lock."""
    with diary_in(store_at(tmp_path / "a.db")) as diary:
        for act in (diary.journal.close, quietly(diary.write)):
            with pytest.raises(StoreError, match="the handle was closed during its transaction"):
                diary.write_in_a_turn(diary.journal.close, act)

        def work(_: int) -> None:
            with pytest.raises(StoreError, match="belongs to the parent process"):
                diary.write()

        with diary.journal.transaction():
            in_processes(1, work)
            diary.write()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that other users can read."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_file_of_somebody_else(open_folder: Path) -> None:
    place = open_folder / "a.db"

    def work(_: int) -> None:
        nobody = pwd.getpwnam("nobody")
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
        store = store_at(place)
        assert store.names() == ["diary"]
        with closing(store.open("diary")) as journal:
            assert journal.head().number == 1
            for act in (lambda: journal.append(LARGE), lambda: store.create("b", LARGE)):
                with pytest.raises(StoreError, match=r"it is read-only\. Allow this user"):
                    act()
            assert len(list(journal.entries())) == 2
        with pytest.raises(StoreError, match=r"cannot be created .* Choose a different path"):
            store_at(open_folder / "b.db").create("a", LARGE)

    with diary_in(store_at(place)):
        for path in open_folder.iterdir():
            path.chmod(0o644)
        in_processes(1, work)


def test_a_connection_that_only_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with diary_in(store_at(tmp_path / "a.db")) as diary:
        diary.journal.close()
        with monkeypatch.context() as patch:
            patch.setattr(sqlite3, "connect", _only_reads(sqlite3.connect))
            store = store_at(tmp_path / "a.db")
            with closing(store.open("diary")) as journal:
                with pytest.raises(StoreError, match="it is read-only"):
                    journal.append(LARGE)
                assert journal.head().number == 1


def _only_reads(connect: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
    return lambda place, **options: connect(place.replace("mode=rw", "mode=ro"), **options)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_writer_that_sleeps(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/a.db?timeout="
    if kind == "postgresql":
        server: Server = request.getfixturevalue("postgresql")
        place = f"{server.new_url()}&timeout="
    with diary_in(store_at(f"{place}60")) as diary:
        hasty = store_at(f"{place}0.05").open("diary")
        with closing(hasty), closing(diary.store.open("diary")) as other:
            sleeping, awake = threading.Event(), threading.Event()

            def sleep() -> None:
                with other.transaction():
                    sleeping.set()
                    awake.wait(TIME_LIMIT)

            sleeper = threading.Thread(target=sleep)
            sleeper.start()
            assert sleeping.wait(TIME_LIMIT)
            for act in (lambda: hasty.append(LARGE), lambda: hasty.put(LARGE)):
                with pytest.raises(StoreError, match=r"0\.05 seconds\. Stop that process, or wait"):
                    act()
            assert hasty.head().number == 1, "who reads does not wait"
            threading.Timer(0.1, awake.set).start()
            diary.write()
            sleeper.join()
            diary.taken.append(hasty.append(LARGE))


def test_a_file_that_is_rubbish(tmp_path: Path) -> None:
    place, backup = tmp_path / "a.db", tmp_path / "backup.db"
    store = store_at(place)
    with diary_in(store) as diary:
        diary.journal.close()
        shutil.copy(place, backup)
        for rubbish in (b"rubbish" * 2000, place.read_bytes()[:100] + b"rubbish" * 2000):
            place.unlink()
            place.write_bytes(rubbish)
            for act in (diary.write, store.names, lambda: store.create("b", LARGE)):
                with pytest.raises(StoreError, match=r"not a database|damaged"):
                    act()
            os.unlink(place)
            with pytest.raises(StoreError, match="does not exist"):
                diary.write()
            shutil.copy(backup, place)
            assert diary.journal.head().number == 1


def test_damaged_pages(tmp_path: Path) -> None:
    """Also of the tables that are read when a connection is opened."""
    place = tmp_path / "a.db"
    store = store_at(place)
    diary = Diary(store)
    diary.journal.close()
    whole = place.read_bytes()
    failed: dict[int, str] = {}
    for page in range(len(whole) // 4096):
        start = 4096 * page + 100 * (page == 0)  # the file begins with 100 bytes about itself
        place.write_bytes(
            whole[:start] + b"\xff" * (4096 * (page + 1) - start) + whole[4096 * (page + 1) :]
        )
        for act in (diary.journal.head, store.names, lambda: store.open("diary"), diary.write):
            try:
                act()
            except StoreError as error:
                failed[page] = error.reason
            diary.journal.close()
    assert set(failed.values()) == {"the file is damaged"}
    assert {0, 1} <= failed.keys()
    assert len(failed) > 3


def test_a_damaged_schema_whose_text_cannot_be_decoded(tmp_path: Path) -> None:
    """SQLite quotes it in its message, which Python then cannot decode."""
    place = tmp_path / "a.db"
    store = store_at(place)
    Diary(store).journal.close()
    with closing(sqlite3.connect(place)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = place.read_bytes()
    assert b"CREATE TABLE multiplay_entries" in whole
    place.write_bytes(whole.replace(b"CREATE TABLE", b"CREATE \xec\xffBLE"))
    for act in (store.names, lambda: store.open("diary")):
        with pytest.raises(StoreError, match="the file is damaged"):
            act()


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
@pytest.mark.parametrize("when", ["before", "during"])
def test_a_log_that_is_deleted(tmp_path: Path, suffix: str, when: str) -> None:
    """What is written to it would be acknowledged, and lost with the process."""
    place = tmp_path / "a.db"
    with diary_in(store_at(place)) as diary:
        log = Path(f"{place}{suffix}")
        if when == "before":
            log.unlink()
            diary.write()
        else:
            with pytest.raises(UnknownOutcome, match="files were replaced during a commit"):
                diary.write_in_a_turn(log.unlink)
            diary.taken = [entry.number for entry in diary.journal.entries(1)]
        with sqlite3.connect(place) as other:  # a process that opens the files by their names
            count = other.execute("SELECT count(*) FROM multiplay_entries").fetchone()[0]
        other.close()
        assert count == len(diary.taken) + 1


def test_new_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with diary_in(store_at(tmp_path / "a.db")):
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"a.db": 0o600, "a.db-wal": 0o600, "a.db-shm": 0o600}


@pytest.mark.slow
def test_a_server_that_is_stopped(postgresql: Server) -> None:
    store = store_at(postgresql.new_url())

    def stop() -> None:
        postgresql.stop("immediate")

    try:
        postgresql.stop()
        postgresql.start(fsync=True)
        with diary_in(store) as diary:
            stop()
            for act in (diary.write, diary.journal.head, store.names):
                with pytest.raises(StoreError, match="no connection to the server"):
                    act()
            postgresql.start()
            assert diary.journal.head().number == 1
            stop()
            postgresql.start()
            assert diary.journal.head().number == 1, "a read is tried once more"
            stop()
            postgresql.start()
            diary.write()  # and so is a turn
            with pytest.raises(StoreError, match="no connection to the server"):
                diary.write_in_a_turn(stop, diary.write)
            postgresql.start()
            with pytest.raises(StoreError, match="may or may not have succeeded"):
                diary.write_in_a_turn(stop)
            postgresql.start()
    finally:
        if not postgresql.is_running():
            postgresql.start()


def test_a_connection_that_is_cut(postgresql: Server) -> None:
    import psycopg

    with diary_in(store_at(postgresql.new_url())) as diary:
        journal = diary.journal
        assert isinstance(journal, SqlJournal)

        def cut() -> None:
            with driver_of(journal) as driver:
                process = driver.info.backend_pid
            with psycopg.connect(postgresql.url(), autocommit=True) as other:
                other.execute(f"SELECT pg_terminate_backend({process}, 10000)")

        cut()
        diary.write()
        cut()
        assert len(list(journal.entries())) == 3
        with pytest.raises(StoreError, match="no connection"):
            diary.write_in_a_turn(cut, lambda: journal.find("ask", "key"))
        with pytest.raises(StoreError, match="no connection"):
            diary.write_in_a_turn(cut, quietly(journal.get), quietly(diary.write))
        with pytest.raises(StoreError, match="may or may not have succeeded"):
            diary.write_in_a_turn(cut)
