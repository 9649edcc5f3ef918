"""Processes that are killed at any moment, and servers that crash: nothing answered is lost."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from postgres import Server, lose_commits
from study_workers import KINDS, Request, WorkerGroup, requests
from trucks import new_study, tables, verified

import multiplay as mp
from multiplay.errors import UnknownOutcome
from multiplay.storage import MemoryStore, Store, store_at
from multiplay.studies import synced
from multiplay.studies.replica import bits


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep snapshots, so that some die of it."""
    monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 20)


@contextmanager
def workers_of(store: Store, folder: Path, workers: int) -> Iterator[WorkerGroup]:
    rehearse()
    new_study(store).disconnect()
    group = WorkerGroup(store, folder, workers, seed=workers)
    try:
        yield group
    finally:
        group.kill_all()


def rehearse() -> None:
    """Do each thing once, so that kernels are compiled before anybody is killed for it."""
    alone, asked = new_study(MemoryStore()), None
    for request in islice(requests(0), sum(map(len, KINDS))):
        answer = request.of(alone, asked)
        asked = answer if request.verb == "ask" else asked


def check(store: Store, answered: list[list[tuple[Request, Any]]]) -> None:
    """Compare the journal with what was answered, and with one process that is asked the same."""
    with mp.Study.open("lanes", store=store) as study:
        entries = [*study.entries(1)]
        asked = {request.key: (request, answer) for log in answered for request, answer in log}
        keys = Counter(entry.labels.key for entry in entries)
        assert set(keys.values()) == {1}, "every key once"
        assert keys.keys() == asked.keys(), "all that was answered, and nothing else"
        ids = [entry.labels.play for entry in entries if entry.labels.kind == "ask"]
        assert ids == list(range(1, len(ids) + 1)), "no id twice"
        assert study.plays()["id"].tolist() == ids
        for entry in entries:
            request, answer = asked[entry.labels.key or ""]
            header = entry.record.header
            if request.verb == "ask":
                plan = {lane: trucks for lane, trucks in answer[1].items() if trucks}
                assert (entry.labels.play, header["plan"]) == (answer[0], plan)
            elif request.verb in ("cancel", "retract"):
                assert [entry.labels.play] == answer
            else:
                said = [header[name] for name in ("seen", "missing", "clipped")]
                assert [entry.labels.play, *said] == answer
        ends = {"tell": "told", "close": "told", "correct": "told", "cancel": "cancelled"}
        last = {entry.labels.play: ends.get(entry.labels.kind, "pending") for entry in entries}
        assert study.plays()["status"].tolist() == [last[id] for id in ids]
        assert verified(study).ok
        alone = new_study(MemoryStore())
        plays: dict[tuple[int, int], Any] = {}
        for entry in entries:
            request, answer = asked[entry.labels.key or ""]
            here = request.worker, request.round
            assert request.of(alone, plays.get(here), at=entry.labels.at) == answer
            plays[here] = answer if request.verb == "ask" else plays.get(here)
        for one, other in zip(entries, alone.entries(1), strict=True):
            assert (one.labels, one.record.header) == (other.labels, other.record.header)
            assert bits(one.record.arrays) == bits(other.record.arrays)
        assert tables(alone) == tables(study), "one process comes to the same"


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("workers", "kills"), [(4, 6), pytest.param(8, 50, marks=pytest.mark.soak)]
)
def test_kills_on_sqlite(workers: int, kills: int, tmp_path: Path) -> None:
    store = store_at(tmp_path / "trucks.db")
    with workers_of(store, tmp_path, workers) as group:
        for _ in range(kills):
            group.wait(20)
            group.kill()
        group.wait(20)
        check(store, group.end())


@pytest.mark.parametrize(
    ("workers", "kills", "crashes"), [(4, 4, 1), pytest.param(8, 50, 10, marks=pytest.mark.soak)]
)
def test_kills_on_postgresql(
    workers: int, kills: int, crashes: int, postgresql: Server, tmp_path: Path
) -> None:
    store = store_at(postgresql.new_url())
    with workers_of(store, tmp_path, workers) as group:
        for number in range(1, kills + 1):
            group.wait(20)
            if number * crashes % kills < crashes:
                postgresql.stop("immediate")
                group.kill()
                postgresql.start(fsync=True)
            else:
                group.kill()
        group.wait(20)
        check(store, group.end())


@pytest.mark.slow
@pytest.mark.parametrize("number", [10, pytest.param(200, marks=pytest.mark.soak)])
@pytest.mark.parametrize("keyed", [True, False])
def test_lost_answers_at_commit(
    keyed: bool, number: int, postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With keys, each is done once; without, what was answered is there once, and no more."""
    rng, unknown, answered = random.Random(number), 0, list[int]()
    store = store_at(postgresql.new_url())
    with new_study(store) as study, monkeypatch.context() as patch:
        lose_commits(patch, lambda: rng.random() < 0.5)
        for k in range(number):
            play = None
            while play is None:
                try:
                    play = study.ask(key=f"{k}" if keyed else None)
                except UnknownOutcome:
                    unknown += 1
                    if not keyed:
                        break
            answered += [] if play is None else [play.id]
    assert unknown > number // 4
    with mp.Study.open("lanes", store=store) as study:
        asked = [entry for entry in study.entries(1) if entry.labels.kind == "ask"]
        ids = [entry.labels.play for entry in asked]
        assert ids == list(range(1, len(ids) + 1))
        assert len(set(answered)) == len(answered)
        assert set(answered) <= set(ids)
        assert len(ids) <= len(answered) + (0 if keyed else unknown)
        assert len(answered) == number or not keyed
        assert study.verify().ok
