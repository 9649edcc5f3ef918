"""Studies that leave as files, and come back: all of it, or nothing."""

import base64
import csv
import errno
import importlib.util
import json
import os
import tracemalloc
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from openpyxl import load_workbook
from pyarrow import parquet
from refusal import refused

from multiplay import (
    AtLeast,
    AtMost,
    Budget,
    GenCTS,
    GenLBINFV,
    InProportion,
    InvalidInput,
    Learner,
    RandomAction,
    Reports,
    StoreError,
    Study,
    Transport,
)
from multiplay._support import xlsx
from multiplay.storage import Head, Labels, Record, store_at
from multiplay.storage.journal import from_bytes, row_of
from multiplay.storage.memory import MemoryStore
from multiplay.studies import export, synced

PLANS = Transport([2, 1], [1, 2], names=(["Lyon", "Lille"], ["north", "süd"]), shortage=9.0)
HISTORY = {"arm": ["Lyon->north", "Lille->süd"], "round": [1, 2], "loss": [3.0, None]}


def lived_through(policy: Any = None, store: Any = None) -> Study:
    """A study in which everything has happened."""
    store = MemoryStore() if store is None else store
    study = Study.create(
        "lanes",
        PLANS,
        policy or GenCTS(),
        loss_range=(0, 10),
        reports=Reports(outside="clip"),
        store=store,
        seed=3,
    )
    study.learn_table(HISTORY, key="the years before")
    for k in range(3):
        play = study.ask(key=f'day "{k}", ü', at=1e9 + k / 3)
        study.tell(play.id, {arm: [4.0 + k] * n for arm, n in play.plan.items()})
    short = study.ask(Transport([1, 1], [1, 2], PLANS.names, shortage=9.0), exclude=["Lyon->north"])
    study.tell(short.id, {"Lyon->süd": [None]}, final=False, missing="ignore")
    study.close(short.id)
    study.cancel(study.ask().id)
    others = {"Lyon->north": 1, "Lyon->süd": 1, "Lille->süd": 1}
    study.learn(others, {"Lyon->north": [20.0]}, missing="ignore")
    study.ask(key="waits")
    return study


@pytest.fixture(params=[GenCTS, GenLBINFV])
def study(request: pytest.FixtureRequest) -> Study:
    return lived_through(request.param())


def no_overview() -> Any:
    raise AssertionError("needed for plans only")


def exported(study: Study, path: Path) -> list[dict[str, Any]]:
    study.export(path)
    return json_lines(path)


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# ---------------------------------------------------------------- JSON lines, there and back


def test_a_journal_comes_back_bit_for_bit(study: Study, tmp_path: Path) -> None:
    lines = tmp_path / "journal.jsonl"
    assert study.export(lines) == sum(1 for _ in study.entries())
    again = Study.import_journal("again", lines, store=study.store)
    again.export(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == lines.read_bytes()
    assert again.verify().ok
    assert again.ask(key="waits").plan == study.ask(key="waits").plan
    assert [again.ask().plan for _ in range(5)] == [study.ask().plan for _ in range(5)]


def test_a_line_says_all_of_an_entry(study: Study, tmp_path: Path) -> None:
    entries, lines = list(study.entries()), exported(study, tmp_path / "journal.jsonl")
    assert len(lines) == len(entries)
    for line, entry in zip(lines, entries, strict=True):
        assert line["number"] == entry.number
        assert [line[name] for name in Labels._fields] == list(entry.labels)
        assert datetime.fromisoformat(line["time"]).timestamp() == pytest.approx(entry.labels.at)
        assert line["content"] == entry.record.header
        assert line["digest"] == entry.digest.hex()
        arrays = from_bytes(base64.b64decode(line["arrays"]))
        assert {k: a.tobytes() for k, a in arrays.items()} == {
            k: a.tobytes() for k, a in entry.record.arrays.items()
        }


Lines = list[dict[str, Any]]


def sealed_again(lines: Lines) -> None:
    """Make digests that fit, as somebody would who knows how."""
    head = Head()
    for line in lines:
        arrays = from_bytes(base64.b64decode(line["arrays"]))
        labels = Labels(*(line[name] for name in Labels._fields))
        row = row_of(head, Record(line["content"], arrays), labels)
        line["digest"], head = row.digest.hex(), Head(row.number, row.digest)


def edited(lines: Lines) -> None:
    lines[3]["content"]["realised"] = 1.0


def dated_back(lines: Lines) -> None:
    lines[3]["at"] -= 1.0


def other_arrays(lines: Lines) -> None:
    lines[0]["arrays"] = lines[0]["arrays"][4:]


def no_base64(lines: Lines) -> None:
    lines[1]["arrays"] = "!" + lines[1]["arrays"][1:]


def one_missing(lines: Lines) -> None:
    del lines[4]


def two_swapped(lines: Lines) -> None:
    lines[4], lines[5] = lines[5], lines[4]


def the_end_missing(lines: Lines) -> None:
    del lines[-2:]


def one_more_field(lines: Lines) -> None:
    lines[2]["colour"] = "blue"


def a_number_as_key(lines: Lines) -> None:
    lines[2]["key"] = 7


def not_the_beginning(lines: Lines) -> None:
    del lines[0]
    for number, line in enumerate(lines):
        line["number"], line["last"] = number, len(lines) - 1
    sealed_again(lines)


def newer(lines: Lines) -> None:
    lines[0]["content"]["format"] = 99
    sealed_again(lines)


def no_such_arm(lines: Lines) -> None:
    lines[3]["content"]["losses"] = {"Rome->north": [1.0]}
    sealed_again(lines)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (edited, "line 4"),
        (dated_back, "line 4"),
        (other_arrays, "line 1"),
        (no_base64, "line 2"),
        (one_missing, "line 5"),
        (two_swapped, "line 5"),
        (the_end_missing, "incomplete"),
        (one_more_field, "line 3"),
        (a_number_as_key, "line 3"),
        (not_the_beginning, "line 1"),
        (newer, "Update multiplay"),
        (no_such_arm, "line 4"),
        (list.clear, "1 lines"),
    ],
)
def test_a_spoiled_journal_is_refused_and_nothing_is_kept(
    spoil: Callable[[Lines], None], words: str, tmp_path: Path
) -> None:
    lines = exported(lived_through(), tmp_path / "journal.jsonl")
    spoil(lines)
    (tmp_path / "bad.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    store = MemoryStore()
    with pytest.raises(InvalidInput, match=words) as caught:
        Study.import_journal("bad", tmp_path / "bad.jsonl", store=store)
    with refused("path"):
        raise caught.value
    assert store.names() == []


def test_a_file_that_is_cut_or_not_there_is_refused(tmp_path: Path) -> None:
    lines = tmp_path / "journal.jsonl"
    lived_through().export(lines)
    lines.write_bytes(lines.read_bytes()[:-20])
    store = store_at(tmp_path / "new.db")
    for path in (lines, tmp_path / "nothing.jsonl", tmp_path):
        with refused("path"):
            Study.import_journal("bad", path, store=store)
        assert store.names() == []


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    study = lived_through()
    study.export(tmp_path / "journal.jsonl")
    with refused("name"):
        Study.import_journal("lanes", tmp_path / "journal.jsonl", store=study.store)
    assert study.verify().ok


def test_a_policy_of_others_is_given_again(tmp_path: Path) -> None:
    class Mine(RandomAction):
        pass

    study = lived_through(Mine())
    study.export(tmp_path / "journal.jsonl")
    with refused("path, line 1"):
        Study.import_journal("again", tmp_path / "journal.jsonl", store=study.store)
    again = Study.import_journal(
        "again", tmp_path / "journal.jsonl", store=study.store, policy=Mine()
    )
    assert again.ask().plan == study.ask().plan


def test_what_comes_in_is_opened_without_replaying_it(tmp_path: Path) -> None:
    study = lived_through()
    study.export(tmp_path / "journal.jsonl")
    again = Study.import_journal("again", tmp_path / "journal.jsonl", store=study.store)
    snapshot = study.store.open("again").get()
    assert snapshot is not None
    assert snapshot.header["number"] == max(entry.number for entry in again.entries())


# ---------------------------------------------------------------- tables


def test_csv_and_parquet_say_what_the_lines_say(study: Study, tmp_path: Path) -> None:
    lines = exported(study, tmp_path / "journal.jsonl")
    for name in ("journal.csv", "journal.Parquet"):
        assert study.export(tmp_path / name) == len(lines)
    with (tmp_path / "journal.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    table = parquet.read_table(tmp_path / "journal.Parquet")
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds == {
        "number": "int64",
        "kind": "string",
        "key": "string",
        "play": "int64",
        "at": "double",
        "time": "timestamp[us, tz=UTC]",
        "content": "string",
        "arrays": "binary",
        "digest": "binary",
    }
    assert list(rows[0]) == list(kinds)
    for line, row, typed in zip(lines, rows, table.to_pylist(), strict=True):
        for plain in (row, typed):
            assert json.loads(plain["content"]) == line["content"]
        assert {k: row[k] for k in ("arrays", "digest", "time", "kind")} == {
            k: line[k] for k in ("arrays", "digest", "time", "kind")
        }
        same = ("number", "kind", "key", "play", "at")
        assert [typed[k] for k in same] == [line[k] for k in same]
        assert [row[k] for k in same] == ["" if line[k] is None else str(line[k]) for k in same]
        assert typed["digest"].hex() == line["digest"]
        assert base64.b64encode(typed["arrays"]).decode() == line["arrays"]
        assert typed["time"] == datetime.fromisoformat(line["time"])


def test_plays_are_exported_as_they_are(tmp_path: Path) -> None:
    study = lived_through()
    shown = study.plays()
    for name in ("plays.csv", "plays.jsonl", "plays.parquet"):
        assert study.export(tmp_path / name, plays=True) == len(shown)
    tables = [
        pd.read_csv(tmp_path / "plays.csv"),
        pd.DataFrame(json_lines(tmp_path / "plays.jsonl")),
        pd.read_parquet(tmp_path / "plays.parquet"),
    ]
    for table in tables:
        assert list(table.columns) == list(shown.columns)
        for name in ("asked", "told"):
            close = pd.to_datetime(table.pop(name), utc=True, format="ISO8601") - shown[name]
            assert (close.dropna().abs() < pd.Timedelta(microseconds=1)).all()
            assert (close.isna() == shown[name].isna()).all()
        expected = shown.drop(columns=["asked", "told"]).to_dict("records")
        for row, known in zip(table.to_dict("records"), expected, strict=True):
            assert {k: v for k, v in row.items() if v == v and v is not None} == {
                k: v for k, v in known.items() if v == v and v is not None
            }


def test_a_study_without_plays_has_a_table_without_rows(tmp_path: Path) -> None:
    study = Study.create("new", Budget(1, [1, 1]), GenCTS(), store=MemoryStore())
    assert study.export(tmp_path / "plays.csv", plays=True) == 0
    assert (tmp_path / "plays.csv").read_text().startswith("id,key,status")
    assert study.export(tmp_path / "plays.parquet", plays=True) == 0
    assert parquet.read_table(tmp_path / "plays.parquet").num_rows == 0


def test_other_endings_are_refused_by_name(tmp_path: Path) -> None:
    study = lived_through()
    for name in ("journal.xls", "journal", "csv"):
        with pytest.raises(InvalidInput, match=rf"{name}\. Choose"):
            study.export(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install 'multiplay\[parquet\]'"):
        lived_through().export(tmp_path / "journal.parquet")


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(entry: object, last: int) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    study, path = lived_through(), tmp_path / "journal.jsonl"
    path.write_text("old")
    monkeypatch.setattr(export, "to_line", full)
    with pytest.raises(StoreError, match="No space left"):
        study.export(path)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [(path.name, "old")]


@pytest.mark.slow
def test_memory_does_not_grow_with_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "PART_ROWS", 100)
    monkeypatch.setattr("multiplay.storage.journal.LARGEST_BATCH", 100)
    store, record = store_at(tmp_path / "long.db"), Record({"text": "x" * 999}, {"a": np.arange(9)})
    peaks: dict[str, list[int]] = {".csv": [], ".jsonl": [], ".parquet": []}
    for number in (300, 1_200):
        more = ((record, Labels("ask", play=k)) for k in range(number))
        store.create(f"{number}", record, Labels("create"), more).close()
        for suffix, found in peaks.items():
            tracemalloc.start()
            opened = export.history_in(store, f"{number}")
            export.export(opened, tmp_path / f"out{suffix}", export.Content(), no_overview)
            found.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    for few, many in peaks.values():
        assert many < 1.5 * few


# ---------------------------------------------------------------- backups


def test_a_backup_is_a_store_with_the_same_study(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "lanes.db"
    assert study.backup(path) == sum(1 for _ in study.entries())
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    with Study.open("lanes", store=path) as copy:
        assert copy.verify().ok
        pairs = zip(copy.entries(), study.entries(), strict=True)
        assert all(one.digest == other.digest for one, other in pairs)
        assert [copy.ask().plan for _ in range(5)] == [study.ask().plan for _ in range(5)]


def test_a_backup_has_what_was_done_before_it(tmp_path: Path) -> None:
    study = lived_through(store=store_at(tmp_path / "lively.db"))
    before = list(study.entries())
    other = Study.open("lanes", store=study.store)

    def goes_on(number: int) -> None:
        other.ask()

    assert study.backup(tmp_path / "lanes.db", progress=goes_on) == len(before)
    with Study.open("lanes", store=tmp_path / "lanes.db") as copy:
        assert [entry.digest for entry in copy.entries()] == [entry.digest for entry in before]
        assert copy.verify().ok
    assert other.asked == copy.asked + len(before)
    copy.disconnect()
    other.disconnect()
    study.disconnect()


def test_a_backup_opens_without_replaying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 3)
    lived_through(store=store_at(tmp_path / "lively.db")).backup(tmp_path / "lanes.db")
    journal = store_at(tmp_path / "lanes.db").open("lanes")
    assert journal.get() is not None
    journal.close()


def test_a_backup_replaces_nothing(tmp_path: Path) -> None:
    study, path = lived_through(), tmp_path / "lanes.db"
    path.write_text("old")
    with refused("path"):
        study.backup(path)
    assert path.read_text() == "old"


def test_a_backup_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(number: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lived_through().backup(tmp_path / "lanes.db", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_learner_that_became_a_study_is_backed_up_too(tmp_path: Path) -> None:
    learner = Learner(PLANS, GenCTS(), loss_range=(0, 10))
    play = learner.ask(key="before")
    learner.save(tmp_path / "learner.npz")
    study = Study.import_learner("lanes", tmp_path / "learner.npz", store=MemoryStore())
    study.backup(tmp_path / "lanes.db")
    study.export(tmp_path / "journal.jsonl")
    again = Study.import_journal("again", tmp_path / "journal.jsonl", store=study.store)
    with Study.open("lanes", store=tmp_path / "lanes.db") as copy:
        for one in (copy, again):
            assert one.ask(key="before").plan == play.plan
            assert one.verify().ok


def test_exports_and_backups_are_private(study: Study, tmp_path: Path) -> None:
    """A file that is replaced keeps its permissions."""
    before = os.umask(0o022)
    try:
        study.export(tmp_path / "a.csv")
        study.backup(tmp_path / "a.db")
        modes = [path.stat().st_mode & 0o777 for path in tmp_path.glob("a.*")]
        (tmp_path / "a.csv").chmod(0o640)
        study.export(tmp_path / "a.csv")
    finally:
        os.umask(before)
    assert modes == [0o600, 0o600]
    assert (tmp_path / "a.csv").stat().st_mode & 0o777 == 0o640


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1"]


def test_keys_are_no_formulas_in_a_spreadsheet(study: Study, tmp_path: Path) -> None:
    for key in [*FORMULAS, "plain", "a=1"]:
        study.ask(key=key)
    for name, plays in (("plays.csv", True), ("journal.csv", False)):
        study.export(tmp_path / name, plays=plays)
        with (tmp_path / name).open(encoding="utf-8", newline="") as file:
            keys = [row["key"] for row in csv.DictReader(file)]
        assert {f"'{key}" for key in FORMULAS} | {"plain", "a=1"} <= set(keys)
        assert not set(FORMULAS) & set(keys)
    study.export(tmp_path / "plays.jsonl", plays=True)
    lines = (tmp_path / "plays.jsonl").read_text(encoding="utf-8").splitlines()
    assert set(FORMULAS) <= {json.loads(line)["key"] for line in lines}


@pytest.mark.parametrize("line", ["[" * 200_000, '{"a":' * 200_000, "[" * 200_000 + "]" * 200_000])
def test_deep_lines_are_refused(line: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(line)
    with refused("path"):
        Study.import_journal("deep", path, store="memory://deep")


# ---------------------------------------------------------------- plans


def sheets(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The values of all cells by sheet, after checking that no cell is a formula."""
    book = load_workbook(path)
    for sheet in book:
        assert all(cell.data_type != "f" for row in sheet.iter_rows() for cell in row)
    return {sheet.title: [*sheet.iter_rows(values_only=True)] for sheet in book}


def test_plans_say_what_was_asked_and_told(study: Study) -> None:
    """Compared with what the verbs were given and returned."""
    study.set_words(study.words._replace(arm="lane"))
    asked: dict[int, dict[str, int]] = {}
    told: dict[tuple[int, str], tuple[int, float]] = {}
    before = study.asked
    for k in range(4):
        play = study.ask(key=f"{k}")
        asked[play.id] = {arm: n for arm, n in play.plan.items() if n}
        bills = {arm: [1.0 + k + j for j in range(n)] for arm, n in asked[play.id].items()}
        if k == 1:  # in parts: every first unit, then all others
            first = {arm: costs[:1] for arm, costs in bills.items()}
            study.tell(play, first, final=False)
            study.tell(play, {arm: costs[1:] for arm, costs in bills.items() if len(costs) > 1})
        elif k == 2:  # totals of arms
            none = dict.fromkeys(PLANS.names, 0.0)  # also of lanes without a truck
            study.tell(play, none | {arm: sum(costs) for arm, costs in bills.items()})
        elif k == 3:  # the last unit of each arm is missing
            bills = {arm: costs[:-1] for arm, costs in bills.items()}
            study.tell(play, {arm: [*costs, None] for arm, costs in bills.items()})
        else:
            study.tell(play, bills)
        told |= {(play.id, arm): (len(costs), sum(costs)) for arm, costs in bills.items()}
    wrong, early, *_ = asked
    study.correct(wrong, {arm: [9.0] * n for arm, n in asked[wrong].items()})
    study.retract(early)
    told |= {(wrong, arm): (n, 9.0 * n) for arm, n in asked[wrong].items()}
    told |= {(early, arm): (0, 0.0) for arm in asked[early]}
    plans, wide, plays = study.plans(), study.plans(wide=True), study.plays().set_index("id")
    for id, plan in asked.items():
        rows = plans[plans["id"] == id]
        assert dict(zip(rows["arm"], rows["units"], strict=True)) == plan
        for row in rows.itertuples():
            seen, total = told[id, row.arm]
            assert row.seen == seen
            assert row.loss == pytest.approx(total) if seen else np.isnan(row.loss)
            assert row.expected == plays.loc[id, "expected"]
            assert row.realised == pytest.approx(plays.loc[id, "realised"], nan_ok=True)
        (line,) = wide[wide["id"] == id].to_dict("records")
        assert {arm: line[arm] for arm in PLANS.names if line.get(arm)} == plan
    external = plans[plans["id"] == 0]
    assert external[["status", "arm", "units", "seen"]].to_numpy().tolist() == [
        ["external", "Lyon->north", 1, 1],
        ["external", "Lyon->süd", 1, 0],
        ["external", "Lille->süd", 1, 0],
    ]
    assert set(plans["id"]) == set(range(before + 5))
    own = wide[wide["id"] > 0].reset_index(drop=True)[list(plays.columns)[:2]]
    assert own.equals(study.plays()[list(plays.columns)[:2]])


def test_plans_are_the_same_in_all_files(study: Study, tmp_path: Path) -> None:
    study.set_words(study.words._replace(currency="EUR", unit="lorry", arm="lane"))
    for wide in (False, True):
        shown = study.plans(wide=wide)
        for suffix in ("csv", "jsonl", "parquet", "xlsx"):
            rows = study.export(tmp_path / f"plans.{suffix}", plans=not wide, wide=wide)
            assert rows == len(shown)
        read = pd.read_csv(tmp_path / "plans.csv")
        assert {"plan", "lorries", "actual cost of the plan (EUR)"} <= set(read.columns)
        tables = {
            "csv": read.set_axis(shown.columns, axis=1),
            "jsonl": pd.DataFrame(json_lines(tmp_path / "plans.jsonl")),
            "parquet": pd.read_parquet(tmp_path / "plans.parquet"),
            "xlsx": pd.read_excel(tmp_path / "plans.xlsx").set_axis(shown.columns, axis=1),
        }
        for table in tables.values():
            for name in ("asked", "told"):
                times = pd.to_datetime(table[name], utc=True, format="ISO8601")
                assert ((times - shown[name]).dropna().abs() < pd.Timedelta(milliseconds=1)).all()
                assert (times.isna() == shown[name].isna()).all()
            rest = [name for name in shown.columns if name not in ("asked", "told", "key")]
            pd.testing.assert_frame_equal(table[rest], shown[rest], check_dtype=False)


def test_a_sum_of_cents_has_no_more_digits_in_a_csv_file(tmp_path: Path) -> None:
    study = Study.create("cents", Budget(2, [2]), store=MemoryStore())
    study.tell(study.ask(), [[0.1, 0.2]])
    for wide, totals in ((False, 2), (True, 1)):  # of the arm and the play
        for suffix in ("csv", "jsonl"):
            study.export(tmp_path / f"plans.{suffix}", plans=True, wide=wide)
        (row,) = json_lines(tmp_path / "plans.jsonl")
        assert [*row.values()].count(0.1 + 0.2) == totals  # all digits
        with (tmp_path / "plans.csv").open(encoding="utf-8", newline="") as file:
            _, cells = csv.reader(file)
        assert cells.count("0.3") == totals


def test_a_workbook_has_what_a_spreadsheet_needs(tmp_path: Path) -> None:
    """Sheets, dates that are dates, number formats, frozen headers, widths, totals."""
    study, path = lived_through(), tmp_path / "lanes.xlsx"
    study.set_words(study.words._replace(currency="EUR", unit="lorry", arm="lane"))
    play = study.ask(key="2026-11-16")
    study.tell(play, {arm: [5.0] * n for arm, n in play.plan.items() if n})
    study.versus = InProportion()
    study.export(path, plays=True)
    cells = sheets(path)
    assert [*cells] == ["plans", "bills", "lanes", "summary"]
    heads, last = cells["plans"][0], dict(zip(cells["plans"][0], cells["plans"][-1], strict=True))
    assert heads[:2] == ("plan", "key")
    assert last["key"] == datetime(2026, 11, 16)
    assert (last["lane"], last["cost (EUR)"]) == (cells["plans"][-1][5], 5.0 * last["lorries"])
    bills = [row for row in cells["bills"][1:] if row[0] == play.id]
    assert [row[3:] for row in bills] == [
        (arm, 1, 5) for arm, n in play.plan.items() for _ in range(n) if arm in PLANS.names
    ]
    arms = study.arms()
    assert [row[:2] for row in cells["lanes"][1:]] == [*zip(arms["arm"], arms["seen"], strict=True)]
    assert [row[2] for row in cells["lanes"][1:]] == pytest.approx(arms["mean"].tolist())
    summary = {row[0]: row[1] for row in cells["summary"][:5]}
    assert (summary["study"], summary["plans"]) == ("lanes", study.asked)
    assert summary["savings"].startswith(f"saved against {InProportion().text}: not known (study:")
    assert cells["summary"][-1][-1] == pytest.approx(15 - study.plays()["expected"].iloc[-1])
    sheet = load_workbook(path)["plans"]
    formats = {cell.value: sheet.cell(2, cell.column).number_format for cell in sheet[1]}
    assert (formats["lorries"], formats["cost (EUR)"]) == ("#,##0", "#,##0.00")
    assert formats["asked (UTC)"] == "yyyy-mm-dd hh:mm"
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("C2", f"A1:K{len(cells['plans'])}")
    assert sheet.column_dimensions["F"].width >= len("Lille->north")


def test_names_are_no_formulas_in_a_table_of_plans(tmp_path: Path) -> None:
    names = [*FORMULAS, "id", "loss", "\x01bell", "plan"]
    study = Study.create(
        "=1+1", Budget(len(names), [1] * len(names), names=names), store=MemoryStore()
    )
    study.ask(key="=2+2")
    for wide in (False, True):
        for suffix in ("csv", "xlsx", "parquet", "jsonl"):
            study.export(tmp_path / f"plans.{suffix}", plans=True, wide=wide)
        with (tmp_path / "plans.csv").open(encoding="utf-8", newline="") as file:
            rows = [*csv.reader(file)]
        texts = {cell for row in rows for cell in row}
        assert not texts & {*FORMULAS, "=2+2"}
        assert {f"'{name}" for name in FORMULAS} <= texts
        assert len(set(rows[0])) == len(rows[0])  # no two columns have the same name
        cells = sheets(tmp_path / "plans.xlsx")  # which checks that there is no formula
        shown = {cell for row in cells["plans"] for cell in row}
        assert {*FORMULAS, "=2+2", "\ufffdbell"} - {"\r=1"} <= shown
    assert study.plans(wide=True).columns.tolist()[-len(names) :] == [
        "arm id" if name == "id" else name for name in names
    ]


def test_plans_that_do_not_fit_into_a_sheet_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = lived_through()
    for name, most in (("MOST_ROWS", 5), ("MOST_COLUMNS", 8)):
        with monkeypatch.context() as patched:
            patched.setattr(xlsx, name, most)
            with pytest.raises(InvalidInput, match=rf"at most {most} \w+ in a sheet.*\.csv"):
                study.export(tmp_path / "lanes.xlsx")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- promises


def test_plans_have_the_prices_of_promises_and_whether_they_changed_the_plan(
    tmp_path: Path,
) -> None:
    co2 = AtMost(12, of={"air": 5, "*": 1}, plays=2, name="CO2")
    actions = Budget(3, [3, 3], names=["air", "sea"])
    study = Study.create(
        "month",
        actions,
        GenCTS(),
        loss_range=(0, 9),
        constraints=[co2],
        store=MemoryStore(),
        seed=3,
    )
    asked = []
    for day in range(5):
        if day == 2:
            study.end_constraint("CO2")
            study.add_constraint(AtLeast(2, of={"air": 1, "*": 0}, plays=4, name="=by air"))
        ahead = [actions] * (1 - day) if day < 2 else [Budget(1, [3, 3], names=actions.names)] * 2
        asked.append(study.ask(ahead=ahead))
        costs = {"air": 1.0, "sea": 8.0}
        study.tell(asked[-1], {arm: [costs[arm]] * n for arm, n in asked[-1].plan.items()})
    study.cancel(study.ask())
    external = study.learn({"air": 3, "sea": 0}, {"air": [1.0] * 3})
    assert external.seen == 3
    wide = study.plans(wide=True)
    prices = ["price of CO2", "price of =by air"]
    assert list(wide)[len(export.PLAYS) :] == [*prices, "held", "air", "sea"]
    for number, name in enumerate(["CO2", "=by air"]):
        of_plays = [play.prices.get(name, np.nan) for play in asked]
        np.testing.assert_array_equal(wide[prices[number]][:5], of_plays)
    assert wide["held"].tolist() == [*(play.held for play in asked), wide["held"][5], False]
    assert {True, False} <= set(wide["held"])
    long = study.plans()
    again = long.drop_duplicates("id").set_index("id")[[*prices, "held"]]
    pd.testing.assert_frame_equal(again, wide.set_index("id")[[*prices, "held"]])
    study.set_words(study.words._replace(currency="EUR"))
    for table, is_wide in ((long, False), (wide, True)):
        for ending in ("csv", "parquet", "jsonl", "xlsx"):
            file = tmp_path / f"plans.{ending}"
            study.export(file, plans=True, wide=is_wide)
            read: dict[str, Callable[[Path], Any]] = {
                "csv": pd.read_csv,
                "parquet": pd.read_parquet,
                "jsonl": lambda path: pd.read_json(path, lines=True),
                "xlsx": lambda path: pd.read_excel(path, sheet_name="plans"),
            }
            found = read[ending](file)
            named = ending in ("csv", "xlsx")
            heads = [f"{name} (EUR)" for name in prices] if named else prices
            held = "changed by promises" if named else "held"
            rtol = 1e-13 if ending == "csv" else 1e-14  # Excel: 15 digits
            np.testing.assert_allclose(found[heads], table[prices], rtol=rtol)
            assert found[held].tolist() == table["held"].tolist(), ending
