"""Answers in time: a play of the set, drawn from a mixture with a known mean, and marked."""

import io
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import forked
from refusal import refused

import multiplay as mp
from multiplay._support import deadline
from multiplay.actions import limited
from multiplay.policies import Policy
from multiplay.random import POLICY, Streams
from multiplay.storage import MemoryStore, Record
from multiplay.storage.base import Entry
from multiplay.studies.replica import Check, ReplayMismatch, Replica

SOON = 1e-9  # seconds: over before anything can be found
PROGRAM = mp.IntegerProgram([[3, 5, 4, 7], [6, 2, 5, 3]], [11, 12], (0, 2), sense="max")


def learner(policy: Policy | None = None) -> mp.Learner:
    return mp.Learner(PROGRAM, mp.GenLBINFV(horizon=1000) if policy is None else policy, seed=3)


def rewards(play: mp.PendingPlay) -> list[float]:
    return [0.5 * units for units in play.action.tolist()]


@pytest.mark.parametrize("limit", [0, -1, "5", math.nan, True, [1]])
def test_a_limit_is_a_positive_number_of_seconds(limit: Any) -> None:
    study = mp.Study.create("lanes", PROGRAM, mp.GenCTS(), store=MemoryStore())
    for asks in (learner().ask, study.ask):
        with refused("time_limit"):
            asks(time_limit=limit)


@pytest.mark.parametrize("policy", [mp.GenLBINFV(horizon=1000), mp.Hybrid(), mp.GenCTS()])
def test_a_truncated_play_is_a_play(policy: Policy) -> None:
    one = learner(policy)
    for _ in range(5):
        play = one.ask(time_limit=SOON)
        assert play.truncated
        assert PROGRAM.contains(play.action)
        assert one.tell(play.id, rewards(play)).missing == 0
    assert not one.ask().truncated
    assert not one.ask(time_limit=1000).truncated


def test_who_has_the_time_makes_the_same_choice() -> None:
    patient, limited = learner(), learner()
    for _ in range(5):
        play, same = patient.ask(), limited.ask(time_limit=1000)
        assert play.plan == same.plan
        patient.tell(play.id, rewards(play))
        limited.tell(same.id, rewards(same))
    quick = mp.Learner(mp.Transport([1, 4, 5], [4, 6]), mp.GenCTS(), seed=0)
    assert not quick.ask(time_limit=SOON).truncated, "who needs no oracle is not cut short"


def test_a_truncated_play_has_the_mean_that_its_memo_says() -> None:
    """So a / x weighs losses as in any other play, and estimates stay unbiased."""
    one = learner()
    for truncated in (False, True):
        with deadline.before(0.0 if truncated else math.inf):
            play = one.policy.choose(PROGRAM, one.state, Streams.spawn(0, POLICY, [0]))
        mean = play.cache["weights"][0] @ play.cache["atoms"][0]
        assert play.memo["x"][0] == pytest.approx(mean, rel=1e-12)
        assert play.memo["rest"][0] == pytest.approx(PROGRAM.n - mean, rel=1e-9)
        assert (play.memo["x"] > 0).all()
        assert play.action[0].tolist() in play.cache["atoms"][0].tolist()


def test_what_was_found_by_a_deadline_is_not_remembered() -> None:
    program = mp.IntegerProgram(PROGRAM.A, PROGRAM.b, PROGRAM.bounds, "max")
    costs = -np.array([0.3, 0.9, 0.5, 0.8])
    with deadline.before(0.0) as limit:
        first, M = program.argmin(costs), program.M
    assert limit.truncated
    assert program.contains(first)
    assert M == PROGRAM.M
    assert (program.argmin(costs) == PROGRAM.argmin(costs)).all()


def test_branch_and_bound_stops() -> None:
    known = np.zeros(4, dtype=np.int64)
    costs = -np.ones(4)
    with deadline.before(0.0) as limit:
        assert PROGRAM._branch_and_bound(costs, known, 1e-8) is known
    assert limit.truncated
    assert PROGRAM._branch_and_bound(costs, known, 1e-8).sum() == PROGRAM.M


def test_a_program_is_made_in_time_or_not_at_all() -> None:
    """One made in too little time would have a wrong n for ever; n itself takes hours for some."""
    with deadline.before(0.0), refused("A, b, bounds"):
        mp.IntegerProgram(PROGRAM.A, PROGRAM.b, (0, 2))
    with deadline.before(0.0), refused("A, b, bounds"):
        limited(PROGRAM, np.array([1, 2, 2, 2]), np.full(4, -1))
    with deadline.before(time.monotonic() + 1000):
        assert mp.IntegerProgram(PROGRAM.A, PROGRAM.b, (0, 2)).n.tolist() == PROGRAM.n.tolist()


def test_a_learner_keeps_the_mark(tmp_path: Path) -> None:
    one = learner()
    ids = [one.ask(key="truncated", time_limit=SOON).id, one.ask(key="calm").id]
    told = one.ask(key="told", time_limit=SOON)
    one.tell(told.id, rewards(told))
    one.save(tmp_path / "learner.npz")
    again = mp.Learner.load(tmp_path / "learner.npz")
    assert [play.truncated for play in again.pending()] == [True, False]
    assert [play.id for play in again.pending()] == ids
    for who in (one, again):
        assert [who.ask(key=key).truncated for key in ("truncated", "calm", "told")] == [1, 0, 1]


def test_a_study_keeps_the_mark_and_verifies_it(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/study.db"
    study = mp.Study.create("lanes", PROGRAM, mp.GenLBINFV(horizon=1000), store=store)
    for limit in (SOON, None, SOON):
        play = study.ask(key=f"{study.asked}", time_limit=limit)
        study.tell(play.id, rewards(play))
    study.ask(key="waits", time_limit=SOON)
    again = mp.Study.open("lanes", store=store)
    keys = [again.ask(key=key).truncated for key in ("0", "1", "2", "waits")]
    assert keys == [True, False, True, True]
    assert again.verify().ok, str(again.verify())
    assert again.arms().equals(study.arms())


@pytest.mark.parametrize("change", ["memo", "plan", "expected"])
def test_a_truncated_play_that_cannot_be_is_found(change: str) -> None:
    study = mp.Study.create("lanes", PROGRAM, mp.GenLBINFV(horizon=1000), store=MemoryStore())
    study.ask(time_limit=SOON)
    first, asked = study._journal.entries(0)

    def changed(entry: Entry) -> Entry:
        header, arrays = dict(entry.record.header), dict(entry.record.arrays)
        if change == "memo":
            arrays["memo/x"] = arrays["memo/x"] + 0.01
        elif change == "plan":
            header["plan"] = {PROGRAM.names[0]: 9}
        else:
            header["expected"] += 1.0
        return entry._replace(record=Record(header, arrays))

    Replica.from_first_entry(first, None, None).apply(asked, check=Check.BITS)
    with pytest.raises(ReplayMismatch):
        Replica.from_first_entry(first, None, None).apply(changed(asked), check=Check.BITS)


@pytest.mark.slow
def test_on_the_command_line(tmp_path: Path) -> None:
    create = ["create", "lanes", "--supply", "1,4,5", "--demand", "4,6", "--policy", "GenCTS"]
    assert forked("study", *create, folder=tmp_path).returncode == 0
    asked = forked("study", "ask", "lanes", "--time-limit", "3600", "--json", folder=tmp_path)
    assert json.loads(asked.stdout)["truncated"] is False
    bad = forked("study", "ask", "lanes", "--time-limit", "-5", folder=tmp_path)
    assert bad.returncode == 2
    assert "time_limit" in bad.stderr


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_work_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call the step of the watcher with given times, so that the clock does not matter."""
    terminal, pipe = Terminal(), io.StringIO()
    monkeypatch.setattr(deadline, "SILENCE", 1e6)  # the thread itself shows nothing
    for stream in (terminal, pipe):
        monkeypatch.setattr(sys, "stderr", stream)
        with deadline.status_line("choosing a play"), deadline.status_line("and work within"):
            began = time.monotonic()
            deadline._show_work(began + 0.7e6)
            assert stream.getvalue() == "", "not yet"
            deadline._show_work(began + 2e6)
            assert stream.getvalue().startswith("\rchoosing a play (2") == (stream is terminal)
        shown = stream.getvalue()
        deadline._show_work(time.monotonic() + 9e6)
        assert stream.getvalue() == shown, "nothing after the work has ended"
    assert terminal.getvalue().endswith("\r\033[K"), "the line is removed"
    assert "within" not in terminal.getvalue()
    assert pipe.getvalue() == ""


def test_short_work_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(deadline, "SILENCE", 1e6)
    monkeypatch.setattr(sys, "stderr", terminal)
    with deadline.status_line("choosing a play"):
        deadline._show_work(time.monotonic())
    assert terminal.getvalue() == ""
