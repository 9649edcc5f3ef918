"""Studies in stores that fail: an error says so, nothing that was answered is lost, all goes on."""

import os
import pwd
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from effort import TIME_LIMIT
from postgres import Server, driver_of
from processes import in_processes
from trucks import ask_and_tell, euros, new_study, store_of, tables, verified

import multiplay as mp
from multiplay.errors import NotFound, StoreError
from multiplay.storage import Damaged, Store, store_at
from multiplay.storage.sql import SqlJournal
from multiplay.studies import synced


class Office:
    """Somebody who uses a study, with keys, and knows what was answered."""

    def __init__(self, store: Store) -> None:
        self.study = new_study(store)
        self.plans: dict[str, dict[str, int]] = {}  # by key
        self.told: set[str] = set()
        self.day = 0

    def work(self, days: int = 1) -> None:
        """Ask and tell; what fails is done again the next time, with the same key."""
        for _ in range(days):
            key = f"{self.day}"
            play = self.study.ask(key=key)
            assert self.plans.setdefault(key, play.plan) == play.plan
            self.study.tell(play.id, euros(play), key=key)
            self.told.add(key)
            self.day += 1

    def fails(self, reason: str, act: Callable[[], Any] | None = None) -> None:
        with pytest.raises(StoreError, match=reason) as caught:
            (act or self.work)()
        assert caught.value.hint

    def check(self) -> None:
        """All that was answered is there once; the handle goes on, and shows what others see."""
        self.work(2)
        with mp.Study.open("lanes", store=self.study.store) as other:
            for study in (self.study, other):
                table = study.plays().set_index("key")["status"]
                assert table.index.tolist() == [f"{day}" for day in range(self.day)]
                assert set(table.index[table == "told"]) == self.told
                for key, plan in self.plans.items():
                    assert table[key] == "cancelled" or study.ask(key=key).plan == plan
            assert tables(other) == tables(self.study)
            assert other.verify().ok


@contextmanager
def office_in(store: Store) -> Iterator[Office]:
    office = Office(store)
    with office.study:
        office.work()
        yield office
        office.check()


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a snapshot after nearly every verb."""
    monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 2)


def pragma(study: mp.Study, text: str) -> int:
    """Say something to SQLite by the connection of a study."""
    journal = study._journal
    assert isinstance(journal, SqlJournal)
    journal.head()
    value: int = journal._connection._connection.execute(f"PRAGMA {text}").fetchone()[0]
    return value


@pytest.mark.usefixtures("often")
def test_a_full_disk(tmp_path: Path) -> None:
    """Snapshots fail before, and nobody is told: a study does well without."""
    with office_in(store_at(tmp_path / "trucks.db")) as office:
        for room in (3, 5, 6):
            pages = pragma(office.study, "page_count")
            pragma(office.study, f"max_page_count = {pages + room}")
            office.fails("the disk is full. Free some space", lambda: office.work(1000))
            office.fails("the disk is full")
            assert len(office.study.plays()) <= office.day + 1, "who reads needs no room"
            pragma(office.study, "max_page_count = 1000000")
            office.work()


def test_a_study_that_finds_no_room_is_not_begun(tmp_path: Path) -> None:
    store = store_at(tmp_path / "trucks.db")
    with office_in(store) as office:
        names = mp.Study.names(store=store)
        large = mp.Explicit([[k, 1] for k in range(20_000)])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sqlite3, "connect", with_room(sqlite3.connect, 40))
            with pytest.raises(StoreError, match="full"):
                mp.Study.create("large", large, mp.GenCTS(), store=store)
        assert mp.Study.names(store=store) == names
        mp.Study.create("large", large, mp.GenCTS(), store=store).disconnect()
        office.work()


def with_room(connect: Callable[..., sqlite3.Connection], pages: int) -> Callable[..., Any]:
    def connected(*place: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*place, **options)
        connection.execute(f"PRAGMA max_page_count = {pages}").close()
        return connection

    return connected


@pytest.fixture
def own_folder() -> Iterator[Path]:
    """A folder of a user who is not allowed everything."""
    folder = Path(tempfile.mkdtemp())
    if os.getuid() == 0:
        os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
    yield folder
    shutil.rmtree(folder)


def test_a_file_that_can_only_be_read(own_folder: Path, tmp_path: Path) -> None:
    """For a while: the same handle writes again when it may."""
    with office_in(store_at(tmp_path / "trucks.db")):
        pass  # all modules are imported: another user may not read them

    def work(_: int) -> None:
        if os.getuid() == 0:
            os.setuid(pwd.getpwnam("nobody").pw_uid)
        path = own_folder / "trucks.db"
        with office_in(store_at(path)) as office:
            office.study.disconnect()
            path.chmod(0o444)
            before = tables(office.study)
            office.fails("it is read-only. Allow this user")
            assert tables(office.study) == before, "who reads may go on"
            for file in own_folder.iterdir():
                file.chmod(0o644)
            office.work()

    in_processes(1, work)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_writer_that_sleeps(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    place = store_of(kind, request, tmp_path).url
    store = store_at(f"{place}{'&' if '?' in place else '?'}timeout=0.05")
    with office_in(store) as office, mp.Study.open("lanes", store=place) as other:
        before = tables(office.study)
        sleeping, awake = threading.Event(), threading.Event()

        def sleep() -> None:
            with other._turn():
                sleeping.set()
                awake.wait(TIME_LIMIT)

        sleeper = threading.Thread(target=sleep)
        sleeper.start()
        try:
            assert sleeping.wait(TIME_LIMIT)
            for _ in range(2):
                office.fails(r"0\.05 seconds\. Stop that process")
            assert tables(office.study) == before, "who reads does not wait"
        finally:
            awake.set()
            sleeper.join()
        office.work()
        assert tables(other) == tables(office.study)


def test_a_clock_that_goes_backwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What came later in the journal came later, whatever the time was."""
    with office_in(store_at(tmp_path / "trucks.db")) as office:
        study, day = office.study, 86_400.0
        now = time.time()
        for back in (1, 3, 2):
            monkeypatch.setattr(time, "time", lambda back=back: now - back * day)
            office.work(2)
        times = study.plays()["asked"]
        assert not times.is_monotonic_increasing
        assert study.plays()["id"].is_monotonic_increasing
        newest = max(study.arms()["last_seen"].dropna())
        assert newest.timestamp() == pytest.approx(now, abs=60), "the last time is the latest"
        old = study.ask(key=f"{office.day}", at=now - 9 * day)
        new = study.ask(key=f"{office.day + 1}", at=now + 9 * day)
        assert study.expire(5 * day, at=now - 20 * day) == []
        assert study.expire(5 * day, at=now) == [old.id]
        assert [play.id for play in study.pending()] == [new.id]
        assert study.tell(new.id, euros(new), at=-1.0).seen == 5
        office.plans |= {f"{office.day}": old.plan, f"{office.day + 1}": new.plan}
        office.told.add(f"{office.day + 1}")
        office.day += 2


@pytest.mark.usefixtures("often")
def test_snapshots_that_vanish_while_a_study_is_used(tmp_path: Path) -> None:
    """Also for a handle that is far behind, and would rather begin with one."""
    path = tmp_path / "trucks.db"
    with (
        office_in(store_at(path)) as office,
        closing(sqlite3.connect(path)) as door,
        mp.Study.open("lanes", store=path) as idle,
    ):
        for damage in (
            "DELETE FROM multiplay_snapshots",
            "UPDATE multiplay_snapshots SET header = '{}'",
            "UPDATE multiplay_snapshots SET arrays = x'00', digest = x'00'",
        ):
            office.work(5)
            door.executescript(damage)
            assert tables(idle) == tables(office.study)
            office.work()
        office.work(5)
        assert tables(idle) == tables(office.study)


def test_a_server_that_stops(postgresql: Server) -> None:
    """For a while, and at moments when nobody expects it."""
    away = "no connection to the server"
    try:
        with office_in(store_at(postgresql.new_url())) as office:
            postgresql.stop("immediate")
            for act in (office.work, office.study.plays, office.study.arms):
                office.fails(away, act)
            assert "lanes" in repr(office.study)
            postgresql.start()
            office.work()
            postgresql.stop("immediate")
            postgresql.start()
            office.work()  # the connection was lost, and nobody needs to know
            with (
                pytest.raises(StoreError, match="may or may not have succeeded"),
                office.study._turn(),
            ):
                postgresql.stop("immediate")
            postgresql.start()
    finally:
        if not postgresql.is_running():
            postgresql.start()


@pytest.mark.parametrize("of", ["file", "study"])
@pytest.mark.parametrize("grows", [False, True])
def test_a_backup_that_is_put_in_place_of_a_study(tmp_path: Path, of: str, grows: bool) -> None:
    """A process that has seen more would issue the same ids again: it refuses, until accepted.

    Also if other processes have written more than it has seen.
    """
    path, backup = tmp_path / "trucks.db", tmp_path / "backup.db"
    older = r"older than what this process has seen: was a backup restored\? .* study accept lanes"
    with new_study(store_at(path)) as study:
        ask_and_tell(study, 2)
        if of == "study":
            study.backup(backup)
        study.disconnect()
        if of == "file":
            shutil.copy(path, backup)
        ask_and_tell(study, 3)
        study.disconnect()
        for log in tmp_path.glob("trucks.db-*"):
            log.unlink()
        backup.replace(path)
        if grows:
            in_processes(1, lambda _: ask_elsewhere(path))
        if of == "study":  # the file is a different one, and so is the handle
            with pytest.raises(NotFound):
                study.ask()
            study = mp.Study("lanes", study.store, study.store.open("lanes"))
        for act in (study.ask, study.arms, study.ask, study.verify):
            with pytest.raises(StoreError, match=older):
                act()
        assert mp.Study.accept("lanes", store=path).number == (12 if grows else 4)
        assert study.ask().id == (7 if grows else 3)
        with mp.Study.open("lanes", store=path) as other:
            assert tables(study) == tables(other)
            assert verified(study).ok
        study.disconnect()


def ask_elsewhere(path: Path) -> None:
    """Ask, cancel and tell in a process that has not seen the study."""
    synced.SEEN.clear()
    with mp.Study.open("lanes", store=path) as other:
        other.cancel(other.ask().id)
        ask_and_tell(other, 3)
        other.disconnect()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_missing_entries_at_the_end(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Nobody issues the ids of plays that were lost, and ``verify`` names the missing entries."""
    store = store_of(kind, request, tmp_path)
    with new_study(store) as study:
        ask_and_tell(study, 3)
        journal = study._journal
        assert isinstance(journal, SqlJournal)
        with driver_of(journal) as driver:
            driver.execute("DELETE FROM multiplay_entries WHERE number >= 5").close()
        for act in (study.ask, lambda: mp.Study.open("lanes", store=store)):
            with pytest.raises(Damaged, match="entries 5 to 6"):
                act()
        found = study.verify()
        assert not found.ok
        assert "entries 5 to 6" in found.problems[0]
        mp.Study.accept("lanes", store=store)
        assert study.ask().id == 3
        assert study.verify().ok
