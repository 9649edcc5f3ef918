"""Stores and files of version 0.9: they open, verify, and continue with the same plays."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import multiplay as mp
from multiplay._support.serialization import pack, with_prefix
from multiplay.actions import base
from multiplay.learner import snapshot
from multiplay.storage import Record
from multiplay.studies.replica import Check, ReplayMismatch, Replica

DATA = Path(__file__).parents[2] / "data"
EXPECTED: dict[str, Any] = json.loads((DATA / "expected-0.9.json").read_text())
STUDIES = sorted(EXPECTED.keys() - {"learner"})
TOWNS = ["Lyon", "Lille"], ["north", "south"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return Path(shutil.copy(DATA / "study-0.9.db", tmp_path))


def told(play: mp.PendingPlay, high: float) -> dict[str, list[float]]:
    """Return the losses that ``tests/data/write_0_9.py`` tells."""
    rng = np.random.default_rng(play.id)
    return {
        name: (high * rng.random(units)).round(3).tolist()
        for name, units in play.plan.items()
        if not name.startswith("unmet")
    }


def chosen(one: Any, high: float) -> list[list[int]]:
    """Return the next plays, on the same sets as ``tests/data/write_0_9.py``."""
    options: list[dict[str, Any]] = [{}, {}]
    if isinstance(one.actions, mp.Transport):
        options.insert(0, {"actions": mp.Transport((1, 4), (4, 1), names=TOWNS)})
        options.append({"fixed": {one.actions.names[1]: 1}})
    found = []
    for option in options:
        play = one.ask(**option)
        one.tell(play.id, told(play, high))
        found.append(play.action.tolist())
    return found


def test_the_store_has_all_studies(store: Path) -> None:
    assert mp.Study.names(store=store) == STUDIES


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_opens_verifies_and_chooses_the_same(store: Path, name: str) -> None:
    expected = EXPECTED[name]
    with mp.Study.open(name, store=store) as study:
        assert study.head.number + 1 == expected["entries"]
        before = study.verify()
        assert before.ok, before
        assert before.unchecked == before.plays
        assert str(before).endswith("not checked: other version") == (before.plays > 0)
        assert chosen(study, expected["high"]) == expected["next"]
        after = study.verify()
        assert after.ok, after
        assert after.entries > before.entries
    with mp.Study.open(name, store=store) as again:
        assert again.asked == after.plays
        assert again.verify().ok


def test_a_change_of_an_entry_of_version_0_9_is_noticed(store: Path) -> None:
    """Also a plan that is not feasible, with digests that fit."""
    with mp.Study.open("lanes", store=store) as study:
        entries = [*study.entries()]
        ask = next(entry for entry in entries if entry.labels.kind == "ask")
        plan = dict.fromkeys(ask.record.header["plan"], 99)
        changed = ask._replace(
            record=Record({**ask.record.header, "plan": plan}, ask.record.arrays)
        )
        replica = Replica.from_first_entry(entries[0])
        for entry in entries[1 : ask.number]:
            replica.apply(entry, Check.COUNTS)
        with pytest.raises(ReplayMismatch):
            replica.apply(changed, Check.COUNTS)


def test_a_store_of_version_0_9_is_refused_by_it_after_a_change(store: Path) -> None:
    """Version 0.9 reads the version of the tables, and asks for an update."""
    with closing(sqlite3.connect(store)) as tables:
        version = "SELECT max(version) FROM multiplay_schema"
        assert tables.execute(version).fetchone() == (1,)
        with mp.Study.open("lanes", store=store) as study:
            assert tables.execute(version).fetchone() == (1,), "reading changes nothing"
            study.ask()
        assert tables.execute(version).fetchone() == (2,)


@pytest.mark.parametrize("name", STUDIES)
def test_without_its_snapshot_a_study_comes_to_the_same(
    store: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = EXPECTED[name]
    with mp.Study.open(name, store=store) as study:
        monkeypatch.setattr(study._journal, "get", lambda: None)
        study._replica = None
        assert study.verify().ok
        assert chosen(study, expected["high"]) == expected["next"]


def test_the_studies_have_snapshots_and_every_verb(store: Path) -> None:
    """The data is worth a test only if it covers what version 0.9 could write."""
    kinds, limits, snapshots = set[str](), set[str](), 0
    truncated = []
    for name in STUDIES:
        with mp.Study.open(name, store=store) as study:
            snapshots += study._journal.get() is not None
            for entry in study.entries():
                kinds.add(entry.labels.kind)
                limits.update(entry.record.header.get("limits", {}))
                truncated.append(entry.record.header.get("hurried", False))
            assert sum(play.truncated for play in study.pending()) == (name == "truncated")
    assert snapshots >= 3
    assert truncated.count(True) == 2
    assert limits == {"at_most", "exclude", "fixed"}
    assert kinds == {
        *("create", "import", "ask", "tell", "part", "close", "cancel"),
        *("expire", "learn", "learn_table"),
    }


def test_keys_of_a_study_are_found_again(store: Path) -> None:
    with mp.Study.open("lanes", store=store) as study:
        play = study.ask(key="Monday")
        assert play.id == 4
        assert study.tell(play.id, told(play, 250), key="Monday's bills").repeated
        assert study.ask(key="waits").id in [one.id for one in study.pending()]


def test_a_set_is_passed_again(store: Path) -> None:
    plans, policy = mp.Transport((3, 2), (2, 3), names=TOWNS), mp.GenLBINFV()
    with mp.Study.open("barrier", store=store, actions=plans, policy=policy) as study:
        assert study.actions is plans
        assert study.policy is policy
    with pytest.raises(mp.InvalidInput, match="actions"):
        mp.Study.open("barrier", store=store, actions=mp.Transport((2, 3), (2, 3), names=TOWNS))


def test_a_learner_continues(tmp_path: Path) -> None:
    learner = mp.Learner.load(DATA / "learner-0.9.npz")
    assert [(play.id, play.key) for play in learner.pending()] == [(5, "waits"), (6, "part")]
    learner.save(tmp_path / "again.npz")
    for one in (learner, mp.Learner.load(tmp_path / "again.npz")):
        play = one.ask(key="waits")
        assert play.id == 5
    loaded = mp.Learner.load(DATA / "learner-0.9.npz")
    loaded.replica.next_id = loaded.asked + 1  # the losses above depend on the ids
    assert chosen(loaded, EXPECTED["learner"]["high"]) == EXPECTED["learner"]["next"]


@pytest.mark.parametrize("version", [1, 2, 8])
def test_other_formats_are_refused(tmp_path: Path, version: int) -> None:
    with np.load(DATA / "learner-0.9.npz") as archive:
        arrays = dict(archive.items())
    header = json.loads(str(arrays["header"])) | {snapshot.VERSION: version}
    path = tmp_path / "learner.npz"
    np.savez(path, **{**arrays, "header": np.array(json.dumps(header))})
    with pytest.raises(mp.InvalidInput, match=f"format 3 to 7, got format {version}"):
        mp.Learner.load(path)


class OwnPolicy(mp.GenCTS):
    """A user-defined policy with the settings of GenCTS."""


@pytest.mark.parametrize("left_out", [("discount",), ("discount", "window")])
def test_settings_that_were_not_stored_have_defaults(left_out: tuple[str, ...]) -> None:
    """Version 0.9 did not write settings such as ``discount=None``."""
    for policy in (mp.GenCTS(), OwnPolicy()):
        plain, arrays = pack(policy, "policy")
        for name in left_out:
            del plain[name]
        record = Record({"policy": plain}, with_prefix("policy/", arrays))
        assert snapshot.rebuild("policy", record, policy) is policy
        with pytest.raises(mp.InvalidInput, match="policy"):
            snapshot.rebuild("policy", record, type(policy)(discount=0.9))


@pytest.mark.parametrize("names", [("\u00fc", "u\u0308"), ("", "b"), ("Lyo\u200bn", "Lyon")])
def test_names_that_0_9_accepted_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, str]
) -> None:
    """Such a study continues; a new set with such names is refused."""
    path = tmp_path / "a.db"
    with base.stored_names():
        study = mp.Study.create("odd", mp.Budget(2, [2, 2], names=names), mp.GenCTS(), store=path)
        study.disconnect()
    monkeypatch.setattr(base, "_stored", set())
    base._different.cache_clear()
    base._checked.clear()
    with pytest.raises(mp.InvalidInput, match="names"):
        mp.Budget(2, [2, 2], names=[*names])
    with mp.Study.open("odd", store=path) as study:
        assert study.actions.names == names
        play = study.ask(at_most={names[1]: 1})
        study.tell(play.id, {name: [0.5] * units for name, units in play.plan.items()})
        assert study.ask(mp.Budget(1, [1, 1], names=[*names])).id == 2
        assert study.verify().ok
