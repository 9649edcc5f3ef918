"""The journal of a study: what was changed in it is named, and snapshots may come and go."""

import gc
import json
import re
import sqlite3
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from trucks import STORES, ask_and_tell, euros, new_study, store_of, tables, verified

import multiplay as mp
from multiplay.errors import StoreError
from multiplay.storage import Damaged, Entry, Head, Record, store_at
from multiplay.storage import journal as journal_module
from multiplay.storage.journal import BaseJournal, JournalRow
from multiplay.studies import entry_codec, synced


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a snapshot after every few entries."""
    monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 5)


# ---------------------------------------------------------------- verify


@pytest.fixture
def file(tmp_path: Path) -> Iterator[tuple[mp.Study, sqlite3.Connection]]:
    """A study of some plays, and a door at the back of its store."""
    path = tmp_path / "trucks.db"
    with new_study(store_at(path)) as study, closing(sqlite3.connect(path)) as door:
        for key in "abc":
            play = study.ask(key=key)
            study.tell(play.id, euros(play))
        yield study, door


ENTRY_3 = "UPDATE multiplay_entries SET {} WHERE number = 3"  # the second ask
COPY = "previous, digest, header, arrays FROM multiplay_entries WHERE number"
DAMAGES = {
    ENTRY_3.format("""header = replace(header, '"units": 5', '"units": 6')"""): 3,
    ENTRY_3.format("at = at + 1"): 3,
    ENTRY_3.format("key = 'z'"): 3,
    ENTRY_3.format("digest = x'00'"): 3,
    ENTRY_3.format("arrays = x'00'"): 3,
    "DELETE FROM multiplay_entries WHERE number = 3": 3,
    f"INSERT INTO multiplay_entries SELECT journal, 7, kind, 'y', play, at, {COPY} = 6": 7,
    "UPDATE multiplay_entries SET number = CASE number WHEN 3 THEN -5 ELSE -3 END "
    "WHERE number IN (3, 5); UPDATE multiplay_entries SET number = -number WHERE number < 0": 3,
}


@pytest.mark.parametrize("later", ["0.10.0.dev99", "0.10.0"])
def test_plays_of_a_development_version_are_checked_by_that_version_only(
    later: str, file: tuple[mp.Study, sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, _ = file
    assert study.verify().unchecked == 0
    other = entry_codec.writer().replace(mp.__version__, later, 1)
    assert other.startswith(f"{later} ")
    monkeypatch.setattr(entry_codec, "writer", lambda: other)
    found = study.verify()
    assert found.ok
    assert found.unchecked == found.plays == 3


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_row_that_is_not_as_it_was_written_is_named(
    damage: str, file: tuple[mp.Study, sqlite3.Connection]
) -> None:
    study, door = file
    assert study.verify().ok
    door.executescript(damage)
    for found in (study.verify(), verified(study)):
        assert found.problems[0].startswith(f"entry {DAMAGES[damage]}"), found
        assert "problems found\nentry" in str(found)
    with pytest.raises(Damaged) as caught:
        mp.Study.open("lanes", store=study.store)
    assert caught.value.number == DAMAGES[damage]


def sealed_again(door: sqlite3.Connection, number: int, old: str, new: str) -> None:
    """Change what an entry says, with digests that fit: who does this knows how they are made."""
    columns = ", ".join(f'"{name}"' for name in JournalRow._fields)
    head = Head()
    for row in door.execute(f"SELECT {columns} FROM multiplay_entries ORDER BY number").fetchall():
        row = JournalRow(*row)
        header = row.header.replace(old, new) if row.number == number else row.header
        digest = journal_module.digest_of(*row[:5], head.digest, header, row.arrays or b"")
        door.execute(
            "UPDATE multiplay_entries SET header = ?, previous = ?, digest = ? WHERE number = ?",
            (header, head.digest, digest, row.number),
        )
        head = Head(row.number, digest)
    door.execute("UPDATE multiplay_journals SET last_digest = ?", (head.digest,))
    door.commit()
    synced.SEEN.clear()  # as in a process that has not seen the original


LIES = [
    (0, '"seed": 7', '"seed": 8', r"entry \d \(ask of play"),
    (3, '"expected": ', '"expected": 1', r"entry 3 \(ask of play 2\): expected is 1"),
    (
        3,
        '"units": 5',
        '"units": 6',
        r"entry 3 \(ask of play 2\): units is 6, but replaying gives 5",
    ),
    (4, '"seen": 5', '"seen": 4', r"entry 4 \(tell of play 2\): seen is 4, .* gives 5"),
    (4, "[", "[1", r"entry 4 \(tell of play 2\): losses of .* in \[0, 250\]"),
]


@pytest.mark.parametrize(("number", "old", "new", "says"), LIES)
def test_a_row_that_was_changed_with_its_digests_is_named_by_replaying(
    number: int, old: str, new: str, says: str, file: tuple[mp.Study, sqlite3.Connection]
) -> None:
    study, door = file
    sealed_again(door, -1, "", "")
    assert verified(study).ok, "digests are made as they were"
    sealed_again(door, number, old, new)
    (problem,) = verified(study).problems
    assert re.search(says, problem), problem


def test_an_entry_that_cannot_be_replayed_is_named_by_every_verb(
    file: tuple[mp.Study, sqlite3.Connection],
) -> None:
    study, door = file
    sealed_again(door, 4, "[", "[1")
    for act in (study.ask, study.arms, lambda: mp.Study.open("lanes", store=study.store)):
        with pytest.raises(Damaged, match=r"entry 4 as .* cannot be replayed \(losses of"):
            act()


@pytest.mark.usefixtures("often")
def test_a_tail_that_was_cut_off_is_missed_by_the_snapshot(
    file: tuple[mp.Study, sqlite3.Connection],
) -> None:
    study, door = file
    door.executescript(
        "DELETE FROM multiplay_entries WHERE number >= 5; UPDATE multiplay_journals SET last = 4,"
        "last_digest = (SELECT digest FROM multiplay_entries WHERE number = 4)"
    )
    with pytest.raises(StoreError, match="older than what this process has seen"):
        study.ask(key="c")
    synced.SEEN.clear()  # as in a process that has not seen the original
    problems = verified(study).problems
    assert problems == ("entries 5 to 5 are missing: a snapshot is newer",)


# ---------------------------------------------------------------- snapshots and memory


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of all entries that are read from now on."""
    numbers: list[int] = []
    entry_of = journal_module.entry_of

    def counted(row: JournalRow) -> Entry:
        numbers.append(row.number)
        return entry_of(row)

    monkeypatch.setattr(journal_module, "entry_of", counted)
    return numbers


def snapshots(study: mp.Study) -> list[int]:
    """The entries after which there are snapshots, the newest first."""
    journal = study.store.open(study.name)
    assert isinstance(journal, BaseJournal)
    with closing(journal):
        headers = [kept.header for kept in journal._snapshots() if kept.header != "rubbish"]
        return [json.loads(header)["number"] for header in headers]


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("kind", STORES)
def test_a_study_opens_from_its_snapshot(
    kind: str, read: list[int], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """What came before it is not read, except for the first entry."""
    study = new_study(store_of(kind, request, tmp_path))
    ask_and_tell(study, 30)
    newest, reserve = snapshots(study)
    assert 55 < newest <= 60
    assert newest - reserve == 5
    read.clear()
    with study, mp.Study.open("lanes", store=study.store) as other:
        assert min(number for number in read if number) >= newest - 1
        assert len(read) < 15
        assert tables(other) == tables(study)
        ask_and_tell(other, 1)
        read.clear()
        assert other.ask().id == 32
        assert len(read) < 3, "who knows all that was written reads nothing"
        play = study.ask()
        assert len(read) < 8, "and who does not, what is new"
        assert play.id == 33
        assert other.verify().ok


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The entries behind which a snapshot is kept from now on."""
    numbers: list[int] = []
    put = BaseJournal.put

    def counted(self: BaseJournal, snapshot: Record) -> None:
        if self._head is None:
            numbers.append(snapshot.header["number"])
        put(self, snapshot)

    monkeypatch.setattr(BaseJournal, "put", counted)
    return numbers


@pytest.mark.usefixtures("often")
def test_who_writes_the_entry_keeps_the_snapshot(kept: list[int]) -> None:
    study = new_study(store_at("memory://kept once"))
    other = mp.Study.open("lanes", store=study.store)
    for k in range(9):
        play = (study, other)[k % 2].ask()
        other.tell(play.id, euros(play))
    assert kept == [5, 10, 15]
    mp.Study.open("lanes", store=study.store).ask()
    study.ask()
    assert kept == [5, 10, 15, 20]


@pytest.mark.usefixtures("often")
def test_where_many_plays_wait_snapshots_are_rare(kept: list[int]) -> None:
    study = new_study(store_at("memory://rare"))
    plays = [study.ask() for _ in range(50)]
    assert kept == [5, 10, 20, 40]
    for play in plays:
        study.tell(play.id, euros(play))
    assert kept[4:] == [61, 80, 90, 95, 100]


SPOILS = {
    "deleted": "DELETE FROM multiplay_snapshots",
    "newest damaged": "UPDATE multiplay_snapshots SET header = 'rubbish' WHERE number = "
    "(SELECT max(number) FROM multiplay_snapshots)",
    "all damaged": "UPDATE multiplay_snapshots SET arrays = x'00'",
}


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("spoil", SPOILS)
def test_a_study_works_on_without_its_snapshots(spoil: str, tmp_path: Path) -> None:
    path = tmp_path / "trucks.db"
    with new_study(store_at(path)) as study, closing(sqlite3.connect(path)) as door:
        ask_and_tell(study, 8)
        waits = study.ask(key="waits")
        door.executescript(SPOILS[spoil])
        with mp.Study.open("lanes", store=study.store) as other:
            assert tables(other) == tables(study)
            assert other.tell(waits.id, euros(waits)).seen == 5
            ask_and_tell(other, 5)
            assert min(snapshots(other)) > 18, "there will be others"
            assert tables(other) == tables(study)
            assert study.verify().ok
            assert other.verify().ok


@pytest.mark.usefixtures("often")
def test_a_snapshot_that_lies_is_named(tmp_path: Path) -> None:
    """Whole, and of the right entry, but not what replaying comes to."""
    with new_study(store_at(tmp_path / "trucks.db")) as study:
        ask_and_tell(study, 3)
        journal = study.store.open("lanes")
        with closing(journal):
            kept = journal.get()
            assert kept is not None
            kept.arrays["state/p"][0, 0] += 1
            journal.put(kept)
            number = kept.header["number"]
        (problem,) = verified(study).problems
        assert problem.startswith(f"entry {number} (")
        assert "the snapshot after it differs from the replay" in problem


@pytest.mark.usefixtures("often")
def test_a_snapshot_of_another_history_is_not_used(tmp_path: Path) -> None:
    with new_study(store_at(tmp_path / "trucks.db")) as study:
        ask_and_tell(study, 3)
        with new_study(study.store, "other", seed=8) as other:
            ask_and_tell(other, 3)
        here, there = (study.store.open(name) for name in ("lanes", "other"))
        with closing(here), closing(there):
            kept = there.get()
            assert kept is not None
            here.put(kept)
        with mp.Study.open("lanes", store=study.store) as again:
            assert tables(again) == tables(study)


def held(study: mp.Study) -> int:
    """Return how many bytes there are, after all reports were booked."""
    study.arms()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.slow
def test_memory_does_not_grow_with_history(tmp_path: Path) -> None:
    store = store_at(f"sqlite:///{tmp_path}/trucks.db?synchronous=normal")
    with new_study(store) as study:
        ask_and_tell(study, 300)
        study.arms()
        tracemalloc.start()
        try:
            ask_and_tell(study, 50)
            before = held(study)
            ask_and_tell(study, 2000)  # caches of some kilobytes are filled on the way
            grown = held(study) - before
        finally:
            tracemalloc.stop()
    assert grown < 2000 * 32, "one number for each entry would be as much"
