"""Input that users try: a play in place of its id, and no seed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import multiplay as mp
from multiplay.errors import Conflict
from multiplay.storage import MemoryStore

PLANS = mp.Budget(3, [2, 2, 2], names=["air", "rail", "sea"])


def a_learner(**settings: Any) -> Any:
    return mp.Learner(PLANS, mp.GenCTS(), **settings)


def a_study(**settings: Any) -> Any:
    return mp.Study.create("plans", PLANS, mp.GenCTS(), store=MemoryStore(), **settings)


both = pytest.mark.parametrize("made", [a_learner, a_study])


def losses(play: mp.PendingPlay) -> dict[str, list[float]]:
    return {arm: [0.25] * units for arm, units in play.plan.items()}


@both
def test_a_play_stands_for_its_id(made: Callable[..., Any]) -> None:
    one = made()
    play = one.ask()
    part = one.tell(play, {}, final=False)
    assert (part.id, part.final) == (play.id, False)
    assert one.tell(play, losses(play)).seen == 3
    assert one.tell(play, losses(play)).repeated
    closed = one.ask()
    assert one.close(closed).id == closed.id
    cancelled = one.ask()
    one.cancel(cancelled)
    assert one.plays()["status"].tolist() == ["told", "told", "cancelled"]
    with pytest.raises(Conflict):
        one.close(closed)
    with pytest.raises(Conflict):
        one.cancel(cancelled)


@both
def test_a_plan_is_not_a_play(made: Callable[..., Any]) -> None:
    one = made()
    with pytest.raises(mp.InvalidInput, match="play"):
        one.tell(one.best(), {})


@both
def test_a_random_seed_is_recorded(made: Callable[..., Any]) -> None:
    one, other = made(seed=None), made(seed=None)
    assert one.seed != other.seed
    again = made(seed=one.seed)
    for _ in range(3):
        play, same = one.ask(), again.ask()
        assert play.plan == same.plan
        for who in (one, again):
            who.tell(play.id, losses(play))
    assert made(seed=5).seed == 5
    assert made().seed == 0
    with pytest.raises(mp.InvalidInput, match="seed"):
        made(seed=-1)


def test_a_seed_is_saved(tmp_path: Path) -> None:
    learner = a_learner(seed=None)
    learner.save(tmp_path / "learner.npz")
    assert mp.Learner.load(tmp_path / "learner.npz").seed == learner.seed
    store = MemoryStore()
    study = mp.Study.create("plans", PLANS, mp.GenCTS(), store=store, seed=None)
    assert mp.Study.open("plans", store=store).seed == study.seed
    imported = mp.Study.import_learner("old", tmp_path / "learner.npz", store=store, seed=None)
    assert mp.Study.open("old", store=store).seed == imported.seed
