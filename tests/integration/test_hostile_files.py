"""Damaged and hostile files: each is read, or refused with an error of multiplay."""

import io
import json
import random
import shutil
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import h5py  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import pytest
from mps_files import HANGS, damaged
from trucks import ask_and_tell, euros, new_study, plans, tables
from workbooks import HOSTILE

import multiplay as mp
from multiplay._support.frames import read_file
from multiplay.actions.importers.mps import read_text
from multiplay.actions.importers.selection import settings as model_settings
from multiplay.errors import InvalidInput, StoreError
from multiplay.experiments.experiment import read, shipped
from multiplay.results import load
from multiplay.service.studies.limits import ServiceLimits, build_actions
from multiplay.storage import store_at
from multiplay.studies import synced

REFUSED = (InvalidInput, StoreError)
FEW, MANY = 4, pytest.param(60, marks=pytest.mark.soak)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return content with a few bytes changed, a part repeated or removed, or cut off."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 3, 30))):
        place, length = rng.randrange(len(data)), rng.choice((1, 2, 8, 100))
        match rng.randrange(5):
            case 0:
                data[place] = rng.randrange(256)
            case 1:
                data[place : place + length] = bytes(rng.choices(range(256), k=length))
            case 2:
                data[place:place] = data[place : place + length]
            case 3:
                del data[place : place + length]
            case _:
                data[place : place + length] = bytes(length)
    return bytes(data[: rng.randrange(1, len(data))]) if rng.random() < 0.1 else bytes(data)


def read_or_refused(
    act: Callable[[Path], object], whole: Path, folder: Path, number: int, seed: str
) -> None:
    """Read mutated copies of a file; whatever happens to one, others are read as before."""
    rng, content = random.Random(seed), whole.read_bytes()
    refused = 0
    for k in range(number):
        path = folder / f"mutated-{k}{whole.suffix}"
        path.write_bytes(mutated(content, rng))
        try:
            act(path)
        except REFUSED:
            refused += 1
    assert refused > number // 4
    act(whole)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A folder with an SQLite file, a journal and a learner."""
    folder = tmp_path / "whole"
    folder.mkdir()
    with new_study(store_at(folder / "study.db")) as study:
        ask_and_tell(study, 5)
        study.ask(key="waits")
        study.export(folder / "study.jsonl")
    learner = mp.Learner(plans(), mp.GenCTS(), loss_range=(0, 250), seed=1)
    for _ in range(3):
        play = learner.ask()
        learner.tell(play.id, euros(play))
    learner.save(folder / "learner.npz")
    return folder


def use_database(path: Path) -> None:
    with mp.Study.open("lanes", store=path) as study:
        study.verify()
        study.ask()
        study.plays()


def use_journal(path: Path) -> None:
    store = f"memory://{path}"
    if mp.Study.names(store=store):
        mp.Study.delete("lanes", store=store)
    mp.Study.import_journal("lanes", path, store=store).ask()


def use_learner(path: Path) -> None:
    mp.Learner.load(path).ask()


FILES: dict[str, Callable[[Path], None]] = {
    "study.db": use_database,
    "study.jsonl": use_journal,
    "learner.npz": use_learner,
}


@pytest.mark.slow
@pytest.mark.parametrize("number", [FEW, MANY])
@pytest.mark.parametrize("name", FILES)
def test_mutated_files_of_studies(name: str, number: int, whole: Path, tmp_path: Path) -> None:
    read_or_refused(FILES[name], whole / name, tmp_path, number, name)


@pytest.mark.parametrize("ending", ["xlsx", "csv"])
@pytest.mark.parametrize("number", [60, pytest.param(2_000, marks=pytest.mark.soak)])
def test_mutated_tables(number: int, ending: str, tmp_path: Path) -> None:
    rows = pd.DataFrame({"lane": ["a", "b"] * 20, "day": range(40), "cost": 0.5})
    rows["date"] = pd.to_datetime("2026-11-16")
    whole = io.BytesIO()
    rows.to_excel(whole, index=False) if ending == "xlsx" else rows.to_csv(whole, index=False)
    rng, refused = random.Random(ending), 0
    for _ in range(number):
        data = mutated(whole.getvalue(), rng)
        for content in (data, data.decode("latin-1").encode("utf-16")):
            try:
                read_file(f"a.{ending}", "lane", data=content)
            except InvalidInput:
                refused += 1
    assert refused > number // 4


@pytest.mark.slow
@pytest.mark.parametrize("number", [FEW, MANY])
def test_mutated_experiments(number: int, tmp_path: Path) -> None:
    read_or_refused(read, shipped("stochastic"), tmp_path, number, "toml")


@pytest.mark.slow
@pytest.mark.parametrize("number", [FEW, MANY])
def test_mutated_results(number: int, tmp_path: Path) -> None:
    environment = mp.Stochastic(mp.Bernoulli([0.2, 0.5]))
    result = mp.simulate(mp.Budget(1, [1, 1]), environment, [mp.GenCTS()], horizon=10, trials=2)
    result.save(tmp_path / "whole.nc")
    read_or_refused(load, tmp_path / "whole.nc", tmp_path, number, "netcdf")


@pytest.mark.parametrize("number", [300, pytest.param(2_000, marks=pytest.mark.soak)])
def test_damaged_models(number: int) -> None:
    """Each is refused, or read within a second; of many, those that are read make a set."""
    rng, read = random.Random("mps"), 0
    for _ in range(number):
        text, before = damaged(rng), time.process_time()
        with suppress(InvalidInput):
            model = read_text(text)
            assert time.process_time() - before < 1.0  # of the processor
            read += 1
            plain = json.loads(json.dumps(model_settings(model, ["x*"], "all", None)))
            if number > 300:
                build_actions("actions", {"type": "Model", **plain}, ServiceLimits())
    assert number / 50 < read < number / 5


@pytest.mark.parametrize("text", [HANGS, HANGS + "\n", "", "\0", "ROWS\n" * 1_000, "*" * 100_000])
def test_hostile_models(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        read_text(text)
    path = tmp_path / "a.mps"
    path.write_text(text)
    with pytest.raises(InvalidInput):
        mp.Model.of(path, arms="*")


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "[a]\n" + "x." * 5_000 + "y = 1", "\0"])
def test_hostile_toml(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput):
        read(path)


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def array(values: object) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(values))
    return file.getvalue()


def test_a_compressed_learner_is_not_decompressed(tmp_path: Path) -> None:
    """A file of 30 kilobytes would need 30 megabytes of memory, or 1000 times as much."""
    bomb = {"header.npy": array(json.dumps({})), "array/x.npy": array(np.zeros(4_000_000))}
    path = archive(tmp_path / "a.npz", bomb)
    assert path.stat().st_size < 100_000
    for act in (
        mp.Learner.load,
        lambda path: mp.Study.import_learner("a", path, store="memory://"),
    ):
        with pytest.raises(InvalidInput, match="bytes when it is decompressed"):
            act(path)


def test_a_result_that_claims_to_be_huge_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with h5py.File(path, "w") as file:
        huge = {"shape": (10**12,), "dtype": "f8", "chunks": (10**4,), "compression": "gzip"}
        time = file.create_dataset("time", **huge)
        time.make_scale("time")
        file.create_dataset("regret", **huge).dims[0].attach_scale(time)
    with pytest.raises(InvalidInput, match="bytes when it is decompressed"):
        load(path)


MEMORY = """
import resource, sys
from pathlib import Path
from multiplay.errors import InvalidInput
from multiplay.service.pages import bills, tables
from multiplay.service.pages.forms import Form, UploadedFile

def read(name, data):
    form = Form({}, {}, {"file": UploadedFile(name, data)})
    assert bills.of_form(form, ["Lyon->north"], "2026-03-01") or form.errors
    try:
        return len(tables.read_draft(form, tables.KnownArms(("Lyon->north",), None)).file.frame)
    except InvalidInput:
        return 0

assert read("first.csv", b"lane,day,cost\\nLyon->north,2026-03-01,80\\n") == 1
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + 64 * 10**6
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
rows = sum(read(path.name, path.read_bytes()) for path in sorted(Path(sys.argv[1]).iterdir()))
print("rows", rows)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs the memory of a process")
def test_reading_any_upload_takes_less_than_64_megabytes(tmp_path: Path) -> None:
    """Above its limit, the process would raise MemoryError, or be killed."""
    for number, make in enumerate(HOSTILE.values()):
        (tmp_path / f"{number}.xlsx").write_bytes(make())
    largest = (f"{k},Lyon->north\N{GRINNING FACE},{k}" for k in range(30_000))
    tables = {
        "largest": "\n".join(["day,lane,cost", *largest]),
        "empty lines": "a,b,c\n1,2,3" + "\n" * 10**6,
        "separators": "," * 10**6,
        "wide": ",".join(f"c{k}" for k in range(100_000)) + "\n1",
        "a wide line": "a,b\n1,2\n" + "," * 10**6,
        "a quote": 'a,b\n"' + "x\n" * 500_000,
        "one line": "x" * 10**6,
    }
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text)
    act = [sys.executable, "-c", MEMORY, str(tmp_path)]
    done = subprocess.run(act, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "rows 30000", done.stderr[-2000:]


def test_names_of_members_do_not_leave_the_folder(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    members = {"../out.npy": array([1.0]), "/out.npy": array([1.0]), "header.npy": array("{}")}
    with pytest.raises(InvalidInput):
        mp.Learner.load(archive(inside / "a.npz", members))
    assert [path.name for path in tmp_path.rglob("*")] == ["inside", "a.npz"]


@pytest.mark.parametrize("name", ["../../out", "/out", "a/../../out", "..", "C:\\out"])
def test_names_of_studies_are_no_paths(name: str, whole: Path, tmp_path: Path) -> None:
    """A name is text in a table: it names no file of a backup, an export or an import."""
    folder = tmp_path / "deep" / "deeper"
    folder.mkdir(parents=True)
    before = {*tmp_path.rglob("*")}
    store = store_at(folder / "a.db")
    with mp.Study.import_journal(name, whole / "study.jsonl", store=store) as study:
        study.backup(folder / "b.db")
        study.export(folder / "c.jsonl")
    names = {path.name.partition("-")[0] for path in {*tmp_path.rglob("*")} - before}
    assert names == {"a.db", "b.db", "c.jsonl"}
    assert mp.Study.names(store=folder / "b.db") == [name]


def test_a_very_old_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All entries after it are replayed; one without its entries is not used."""
    path = tmp_path / "study.db"
    monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 2)
    with new_study(store_at(path)) as study:
        ask_and_tell(study, 1)
        monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 10**9)
        ask_and_tell(study, 40)
        with mp.Study.open("lanes", store=path) as other:
            assert tables(other) == tables(study)
            assert other.verify().ok
        study.disconnect()
        shutil.copy(path, tmp_path / "copy.db")
    with sqlite3.connect(tmp_path / "copy.db") as database:
        database.execute("UPDATE multiplay_snapshots SET header = '{}', arrays = NULL")
    database.close()
    with mp.Study.open("lanes", store=tmp_path / "copy.db") as copy:
        assert copy.asked == 41
