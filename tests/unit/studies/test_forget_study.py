"""Study.forget and Study.unforget: journal entries that replay, verify and copy bit for bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trucks import STORES, ask_and_tell, euros, new_study, store_of, tables, verified

import multiplay as mp
from multiplay.errors import InvalidInput, NotFound
from multiplay.learner.engine import Engine
from multiplay.storage import MemoryStore, Store
from multiplay.studies import synced
from multiplay.studies.entry_codec import Request

POLICIES = [
    mp.BootstrapCTS(memory=mp.Changes()),
    mp.BootstrapCTS(),
    mp.GenCTS(),
    mp.CombUCB(window=5),
]
LANES = ["Lyon->north", "Lyon->south", "Lille->north", "Lille->south"]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return store_of(request.param, request, tmp_path)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 7)


def lived(study: Any, days: int, seed: int = 0) -> None:
    """Ask, tell, forget and unforget, in a random order."""
    rng = np.random.default_rng(seed)
    table = {"arm": LANES[:2], "round": [1, 2], "loss": [8.0, None]}
    study.learn_table(table)
    for day in range(1, days + 1):
        ask_and_tell(study, 1)
        lane = [None, *LANES][rng.integers(5)]
        if rng.random() < 0.3:
            study.forget(lane, before=int(rng.integers(1, day + 2)))
        if rng.random() < 0.3:
            study.unforget(lane, since=int(rng.integers(0, day + 1)))
        if rng.random() < 0.2:
            study.unforget(LANES[rng.integers(4)])
        if rng.random() < 0.2:
            play = study.ask()
            study.tell(play.id, {LANES[0]: [None]}, final=False, missing="ignore")
            study.learn(play.plan, euros(play, 3.0))
            study.close(play.id)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.usefixtures("often")
def test_restarts_replay_verify_and_copy_bit_for_bit(policy: mp.Policy, tmp_path: Path) -> None:
    study = new_study(MemoryStore(), policy=policy, reports=mp.Reports(missing="ignore"))
    lived(study, 25)
    kinds = {entry.labels.kind for entry in study.entries()}
    assert {"forget", "keep"} <= kinds
    assert study.verify().ok
    assert verified(study).ok
    study.export(tmp_path / "lanes.jsonl")
    read = mp.Study.import_journal("lanes", tmp_path / "lanes.jsonl", store=MemoryStore())
    study.backup(tmp_path / "copy.db")
    copied = mp.Study.open("lanes", store=tmp_path / "copy.db")
    for other in (read, copied):
        assert other.head == study.head
        assert tables(other) == tables(study)
        assert other.verify().ok
    for one in (study, read, copied):
        ask_and_tell(one, 3)
        one.forget(LANES[0], before=2)
    means, *others = (one.arms()["mean"].tolist() for one in (study, read, copied))
    assert others == [means, means]


def test_a_study_and_a_learner_have_the_same_beliefs() -> None:
    policy = mp.BootstrapCTS(memory=mp.Changes())
    study = new_study(MemoryStore(), policy=policy)
    learner = mp.Learner(study.actions, policy, loss_range=(0, 250))
    for day in range(20):
        play = study.ask()
        own = learner.ask(fixed=play.plan)
        for one, id in ((study, play.id), (learner, own.id)):
            one.tell(id, euros(play))
            if day in (8, 15):
                one.forget(LANES[day % 3], before=day // 2)
            if day == 17:
                one.unforget(LANES[15 % 3])
    assert study.arms()["mean"].tolist() == learner.arms()["mean"].tolist()
    assert study.drift().equals(learner.drift())


def test_handles_in_every_store_agree(store: Store) -> None:
    with new_study(store) as study, mp.Study.open("lanes", store=store) as other:
        ask_and_tell(study, 6)
        left = other.forget(LANES[2], before=4)
        assert left.since == 4
        assert tables(study) == tables(other)
        ask_and_tell(study, 2)
        assert study.unforget(LANES[2]).units == study.unforget(LANES[2], since=0).units
        assert tables(study) == tables(other)
        assert other.verify().ok


def test_an_imported_learner_has_its_reports(tmp_path: Path) -> None:
    learner = mp.Learner(new_study(MemoryStore()).actions, mp.BootstrapCTS(), loss_range=(0, 250))
    for _ in range(6):
        play = learner.ask()
        learner.tell(play, euros(play))
    learner.save(tmp_path / "learner")
    study = mp.Study.import_learner("lanes", tmp_path / "learner", store=MemoryStore())
    ask_and_tell(study, 2)
    units = study.unforget(since=0).units
    assert units == 8 * 5
    assert study.forget(before=3).units == 6 * 5
    assert study.verify().ok


def test_in_a_block_entries_of_the_block_count() -> None:
    study = new_study(MemoryStore())
    with study.together():
        ask_and_tell(study, 4)
        assert study.forget(before=3).units == 2 * 5
        with pytest.raises(InvalidInput):
            study.forget(before=99)
        assert study.unforget(since=0).units == 4 * 5
    assert verified(study).ok


@pytest.mark.parametrize("key", [None, "k"])
def test_a_request_that_comes_twice_is_answered_the_same(key: str | None) -> None:
    study = new_study(MemoryStore())
    ask_and_tell(study, 5)
    acts = {
        "forget": lambda: study.forget(LANES[0], before=3, key=key),
        "unforget": lambda: study.unforget(LANES[0], since=0, key=key),
    }
    for verb, act in acts.items():
        first = study.once(verb, Request(verb), act)
        assert isinstance(first, mp.Remaining)
        head = study.head
        assert study.once(verb, Request(verb), act) == first
        assert study.head == head
    assert verified(study).ok


def test_a_study_that_was_deleted_forgets_nothing() -> None:
    store = MemoryStore()
    study = new_study(store)
    ask_and_tell(study, 2)
    mp.Study.delete("lanes", store=store)
    with pytest.raises(NotFound):
        study.forget(before=1)


def test_verify_computes_the_sums_again(monkeypatch: pytest.MonkeyPatch) -> None:
    study = new_study(MemoryStore(), policy=mp.BootstrapCTS())
    ask_and_tell(study, 5)
    rebuild = Engine.restarted

    def wrong(*given: Any) -> Any:
        restart = rebuild(*given)
        return restart._replace(sums=restart.sums * (1 + 1e-9))

    with monkeypatch.context() as broken:
        broken.setattr(Engine, "restarted", wrong)
        study.forget(LANES[0], before=3)
    found = study.verify()
    assert not found.ok
    assert "forget" in found.problems[0]


def test_a_study_opens_without_reading_what_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry holds the sums: replaying it needs no earlier entries."""
    study = new_study(MemoryStore())
    ask_and_tell(study, 5)
    study.forget(LANES[0], before=3)
    other = mp.Study.open("lanes", store=study.store)
    with other._current() as engine:
        assert engine.state.log is None
    assert tables(other) == tables(study)
