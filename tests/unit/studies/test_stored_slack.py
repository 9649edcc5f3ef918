"""Sets with slack that were stored before ``surplus``: their plans may exceed the demand."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import multiplay as mp
from multiplay._support import serialization
from multiplay._support.serialization import completed, pack, unpack
from multiplay.actions import limited
from multiplay.experiments.experiment import experiment_file
from multiplay.learner import snapshot
from multiplay.studies import synced

NAMES = ["Lyon", "Lille"], ["north", "south"]
POLICIES = [mp.GenLBINFV(any_horizon=True), mp.GenCTS()]


@contextmanager
def before_surplus() -> Iterator[None]:
    """Pack and describe sets as before ``surplus``: without this setting."""
    arguments = serialization._arguments

    def without(kind: type) -> tuple[str, ...]:
        return tuple(name for name in arguments(kind) if name != "surplus")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serialization, "_arguments", without)
        yield


def lanes(supply: tuple[int, int] = (4, 4), **more: Any) -> mp.Transport:
    return mp.Transport(supply, [2, 2], names=NAMES, **more)


def play_on(one: Any, rounds: int, **options: Any) -> list[list[int]]:
    """Play some rounds; return the actions."""
    found = []
    for _ in range(rounds):
        play = one.ask(**options)
        losses = [[0.25 + 0.5 * (i % 2)] * int(units) for i, units in enumerate(play.action)]
        one.tell(play.id, losses)
        found.append(play.action.tolist())
    return found


def test_a_packed_set_keeps_its_meaning() -> None:
    today = limited(lanes(surplus=True), np.full(4, 3), np.full(4, -1))
    with before_surplus():
        packed = pack(today)
    assert packed[0]["actions"]["slack"]
    assert "surplus" not in packed[0]["actions"]
    again = unpack(*packed, snapshot.builder_of())
    assert again.actions.surplus
    assert (again.enumerate() == today.enumerate()).all()
    now = unpack(*pack(lanes(slack=True)), snapshot.builder_of())
    assert not now.surplus
    assert now.M == 4


def test_other_data_is_not_changed() -> None:
    plain = {"type": "Budget", "slack": True, "below": [{"type": "Transport"}, [1, "a", None]]}
    below = [{"type": "Transport", "surplus": False}, [1, "a", None]]
    assert completed(plain) == {**plain, "below": below}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_a_study_continues_as_it_was(
    policy: mp.Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a snapshot, and by the replay of all entries, with the set of a round among them."""
    monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 7)
    path, other = tmp_path / "old.db", lanes((5, 3), surplus=True)
    with mp.Study.create("now", lanes(surplus=True), policy, seed=1, store=path) as study:
        expected = play_on(study, 8) + play_on(study, 4, actions=other) + play_on(study, 3)
    with (
        before_surplus(),
        mp.Study.create("old", lanes(surplus=True), policy, seed=1, store=path) as study,
    ):
        begun = play_on(study, 8) + play_on(study, 3, actions=other)
        headers = [entry.record.header for entry in study.entries()]
    assert "surplus" not in headers[0]["actions"]
    assert sum(entry.get("set", {}).get("slack", False) for entry in headers) == 3
    assert not any("surplus" in entry.get("set", {}) for entry in headers)
    with mp.Study.open("old", store=path) as study:
        assert study._journal.get() is not None
        assert study.actions.M == 8
        assert study.verify().ok
        assert begun + play_on(study, 1, actions=other) + play_on(study, 3) == expected
        assert study.verify().ok
    with mp.Study.open("old", store=path) as study:
        assert study.verify().ok


def test_a_set_of_a_round_means_what_it_says_now(tmp_path: Path) -> None:
    """Also right after the same settings of an older version."""
    path, policy = tmp_path / "old.db", mp.GenLBINFV(any_horizon=True)
    with (
        before_surplus(),
        mp.Study.create("old", lanes((2, 2)), policy, seed=1, store=path) as study,
    ):
        play_on(study, 2, actions=lanes((5, 3), surplus=True))
    with mp.Study.open("old", store=path) as study:
        assert all(sum(action) == 4 for action in play_on(study, 20, actions=lanes(slack=True)))


def test_a_set_that_is_passed_again_has_the_old_meaning(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with before_surplus():
        mp.Study.create("old", lanes(surplus=True), mp.GenCTS(), store=path).disconnect()
    with pytest.raises(mp.InvalidInput, match=r"\{'surplus': True\}, got \{'surplus': False\}"):
        mp.Study.open("old", store=path, actions=lanes(slack=True))
    with mp.Study.open("old", store=path, actions=lanes(slack=True, surplus=True)) as study:
        assert study.verify().ok


def test_a_learner_continues_as_it_was(tmp_path: Path) -> None:
    made = [mp.Learner(lanes(surplus=True), POLICIES[0], seed=3) for _ in range(2)]
    for learner in made:
        play_on(learner, 6)
        learner.ask(lanes((5, 3), surplus=True))
    with before_surplus():
        made[0].save(tmp_path / "old.npz")
    again = mp.Learner.load(tmp_path / "old.npz")
    assert isinstance(again.actions, mp.Transport)
    assert again.actions.surplus
    assert play_on(again, 10) == play_on(made[1], 10)


def test_an_experiment_file_of_an_old_result_repeats_it() -> None:
    world = mp.Stochastic(mp.Bernoulli([0.2, 0.4, 0.6, 0.8]))
    with before_surplus():
        old = mp.simulate(lanes(surplus=True), world, [mp.GenCTS()], horizon=5, trials=1, seed=0)
    assert "surplus" not in old.configuration["actions"]
    assert "surplus = true" in experiment_file(old)
    now = mp.simulate(lanes(slack=True), world, [mp.GenCTS()], horizon=5, trials=1, seed=0)
    assert "surplus = false" in experiment_file(now)
