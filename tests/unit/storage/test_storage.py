"""Storages: the contract for each, files that are whole or not there, and old runs."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from effort import TIME_LIMIT
from refusal import refused

import multiplay as mp
from multiplay import storage
from multiplay._support import atomic_files
from multiplay._support.atomic_files import as_path, write_new, write_text, write_whole
from multiplay.errors import InvalidInput
from multiplay.storage import Damaged, FolderStorage, Journal, MemoryStorage, Record, Storage
from multiplay.testing import check_storage
from multiplay.testing.storage import NAMES


def cut_short(folder: Storage, number: int) -> None:
    assert isinstance(folder, FolderStorage)
    path = folder.folder / f"record-{number:09d}.npz"
    path.write_bytes(path.read_bytes()[:100])


def lost(folder: Storage, number: int) -> None:
    assert isinstance(folder, FolderStorage)
    (folder.folder / f"record-{number:09d}.npz").unlink()


def check_folder(tmp_path: Path) -> None:
    check_storage(lambda name: FolderStorage(tmp_path / name), cut_short)
    check_storage(lambda name: FolderStorage(tmp_path / "again" / name), lost)


def check_memory(tmp_path: Path) -> None:
    check_storage({name: MemoryStorage() for name in NAMES}.__getitem__)


PROTOCOLS = (Storage, Journal)
CHECKS: dict[type, Callable[[Path], None]] = {
    FolderStorage: check_folder,
    MemoryStorage: check_memory,
}


@pytest.mark.parametrize(
    "kind",
    [
        kind
        for kind in map(storage.__dict__.get, storage.__all__)
        if isinstance(kind, type) and issubclass(kind, Storage) and kind not in PROTOCOLS
    ],
)
def test_contract(kind: type, tmp_path: Path) -> None:
    """Every storage that is exported is here by itself; write down how it is opened."""
    CHECKS[kind](tmp_path)


class Forgetful(MemoryStorage):
    def put(self, snapshot: Record) -> None:
        if self._snapshot is None:
            super().put(snapshot)


class Aliasing(MemoryStorage):
    def append(self, record: Record) -> int:
        self._records.append(record)
        return len(self._records) - 1


class Backwards(MemoryStorage):
    def read(self, start: int = 0) -> Any:
        return reversed(list(super().read(start)))


@pytest.mark.parametrize("kind", [Forgetful, Aliasing, Backwards])
def test_the_contract_sees_a_storage_that_breaks_it(kind: type[MemoryStorage]) -> None:
    with pytest.raises((AssertionError, IndexError)):
        check_storage({name: kind() for name in NAMES}.__getitem__)


APPEND = """
import sys
from multiplay.storage import FolderStorage, Record
storage = FolderStorage(sys.argv[1])
for k in range(40):
    storage.append(Record({"by": sys.argv[2], "k": k}, {}))
"""


def test_processes_append_side_by_side(tmp_path: Path) -> None:
    """Nothing is lost or overwritten, and each process's records keep their order."""
    writers = [subprocess.Popen([sys.executable, "-c", APPEND, tmp_path, by]) for by in "ab"]
    assert [writer.wait(timeout=TIME_LIMIT) for writer in writers] == [0, 0]
    headers = [record.header for _, record in FolderStorage(tmp_path).read()]
    for by in "ab":
        assert [header["k"] for header in headers if header["by"] == by] == list(range(40))
    assert len(headers) == 80


def test_a_newer_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multiplay.storage.folder.FORMAT", 2)
    FolderStorage(tmp_path).append(Record({}, {}))
    monkeypatch.undo()
    with pytest.raises(InvalidInput, match=r"Update multiplay\.") as caught:
        list(FolderStorage(tmp_path).read())
    assert not isinstance(caught.value, Damaged), "it must not be taken for missing"


def test_a_damaged_snapshot_is_refused(tmp_path: Path) -> None:
    folder = FolderStorage(tmp_path)
    folder.put(Record({"k": 1}, {}))
    (tmp_path / "snapshot.npz").write_bytes(b"PK")
    with pytest.raises(Damaged, match="restore a backup"):
        folder.get()


# ---------------------------------------------------------------- whole files

KILLED = """
import os, signal, sys
from pathlib import Path
from multiplay._support.atomic_files import write_whole

def write(draft):
    draft.write_text("half")
    print("writing", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

write_whole(sys.argv[1], write)
"""


def kill_a_writer(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "writing\n")


@pytest.mark.skipif(os.name != "posix", reason="no SIGKILL")
def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_text(path, "old")
    kill_a_writer(path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2, "else the test shows nothing"
    write_text(tmp_path / "other.txt", "new")
    assert {entry.name for entry in tmp_path.iterdir()} == {"file.txt", "other.txt"}
    kill_a_writer(path)
    FolderStorage(tmp_path)
    assert {entry.name for entry in tmp_path.iterdir()} == {"file.txt", "other.txt"}


def test_drafts_of_the_living_are_left_alone(tmp_path: Path) -> None:
    """A draft is stale if its process is gone, or is another one with our number."""

    def draft(host: str, process: int, start: str) -> Path:
        path = tmp_path / f".file.draft-{host}-{process}-{start}-x.txt"
        path.touch()
        return path

    us, host, start = os.getpid(), atomic_files.HOST, atomic_files.START
    living = [
        draft(host, us, start),
        draft(host, os.getppid(), "00000000"),
        draft("elsewhere", 2**22 + 1, "00000000"),  # a process of another machine
    ]
    stale = [draft(host, us, "00000000"), draft(host, 2**22 + 1, start)]  # above pid_max
    unknown = tmp_path / ".mine.draft-2"
    unknown.touch()
    write_text(tmp_path / "file.txt", "new")
    assert [path.exists() for path in stale] == [False, False]
    assert all(path.exists() for path in [*living, unknown])


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File, name, folder: in this order, or a power cut leaves an empty file, or none."""
    events: list[str] = []
    sync, replace, link = os.fsync, os.replace, os.link

    def fsync(handle: int) -> None:
        events.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")
        sync(handle)

    def named(name: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        def put(draft: Path, path: Path) -> None:
            assert draft.read_text() == "new"
            events.append("name")
            name(draft, path)

        return put

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", named(replace))
    monkeypatch.setattr(os, "link", named(link))
    write_text(tmp_path / "file.txt", "new")
    assert events == ["file", "name", "folder"]
    events.clear()
    assert write_new(tmp_path / "new.txt", lambda draft: _write_new(draft))
    assert events == ["file", "name", "folder"]


def _write_new(draft: Path) -> None:
    draft.write_text("new")


def test_write_new_never_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(draft: Path, path: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    for name in ("with links", "without"):
        path = tmp_path / name
        assert write_new(path, _write_new)
        path.write_text("kept")
        assert not write_new(path, _write_new)
        assert path.read_text() == "kept"
        monkeypatch.setattr(os, "link", no_links)
    assert {entry.name for entry in tmp_path.iterdir()} == {"with links", "without"}


BAD_PATHS: dict[str, Any] = {
    "none": None,
    "number": 3,
    "bytes": b"file",
    "nul": "fi\0le",
    "list": ["file"],
    "too long": "x" * 5000,
    "not unicode": "\ud800",
}


@pytest.mark.parametrize("path", BAD_PATHS.values(), ids=BAD_PATHS)
def test_what_is_no_path_is_refused(path: Any, tmp_path: Path) -> None:
    with refused("file"):
        as_path("file", path)
    with refused("path"):
        write_whole(path, _write_new)
    with refused("folder"):
        FolderStorage(path)


# ---------------------------------------------------------------- runs


def run(store: Any, **changes: Any) -> Any:
    arguments: dict[str, Any] = {"horizon": 30, "trials": 4, "block": 1, "store": store, **changes}
    means = mp.Stochastic(mp.Bernoulli([0.2, 0.5, 0.7]))
    return mp.simulate(mp.Budget(2, [1, 1, 1]), means, {"GenCTS": mp.GenCTS()}, **arguments)


def test_a_run_is_kept_in_any_storage() -> None:
    memory, whole = MemoryStorage(), run(None)
    run(memory)
    records = [record for _, record in memory.read()]
    assert [record.header.get("start") for record in records] == [None, 0, 1, 2, 3]
    half = MemoryStorage()
    for record in records[:3]:
        half.append(record)
    resumed = run(half, resume=True)
    assert (resumed.regret == whole.regret).all()
    assert len(list(half.read())) == 5, "only what was missing was computed"
    with refused("store"):
        run(half)
    with pytest.raises(InvalidInput, match="horizon was 30 and is 31"):
        run(half, horizon=31, resume=True)


def test_a_storage_with_something_else_in_it_is_refused() -> None:
    other = MemoryStorage()
    other.append(Record({"day": 1}, {}))
    with refused("store"):
        run(other, resume=True)


def test_two_runs_do_not_begin_in_one_place(tmp_path: Path) -> None:
    """Somebody began between our look and our first record."""

    class Late(FolderStorage):
        def append(self, record: Record) -> int:
            if not list(self.folder.glob("record-*")):
                FolderStorage(self.folder).append(Record({"configuration": {}}, {}))
            return super().append(record)

    with refused("store"):
        run(Late(tmp_path))


@pytest.mark.parametrize("store", [3, ["folder"], "fol\0der"])
def test_a_store_is_a_folder_or_a_storage(store: Any) -> None:
    with refused("store"):
        run(store)
