"""Example of trucks for studies: plans, their costs, and stores of each kind."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from postgres import Server

import multiplay as mp
from multiplay.storage import MemoryStore, Store, store_at

STORES = ["memory", "sqlite", "postgresql"]


def plans(supply: tuple[int, int] = (2, 3), demand: tuple[int, int] = (4, 1)) -> mp.Transport:
    return mp.Transport(supply, demand, names=(["Lyon", "Lille"], ["north", "south"]))


def euros(play: Any, more: float = 0.0) -> dict[str, list[float]]:
    """Return the costs of the trucks of a play, which depend on its id alone."""
    return costs(play.id, play.plan, more)


def costs(id: int, plan: Mapping[str, int], more: float = 0.0) -> dict[str, list[float]]:
    lanes = enumerate(plan.items())
    return {
        lane: [50.0 + (37 * id + 11 * i + 17 * truck) % 100 + more for truck in range(trucks)]
        for i, (lane, trucks) in lanes
        if trucks
    }


def new_study(store: Store, name: str = "lanes", **settings: Any) -> mp.Study:
    given: dict[str, Any] = {"policy": mp.GenCTS(), "loss_range": (0, 250), "seed": 7} | settings
    return mp.Study.create(name, plans(), store=store, **given)


def ask_and_tell(study: mp.Study | mp.RemoteStudy, rounds: int) -> None:
    for _ in range(rounds):
        play = study.ask()
        study.tell(play.id, euros(play))


def tables(study: mp.Study | mp.RemoteStudy) -> list[str]:
    """Return all tables and plays of a study as text, for exact comparison."""
    pending = [(play.id, play.key, play.plan, play.expected) for play in study.pending()]
    frames = study.plays(), study.arms(), study.drift()
    best = study.best()
    texts = [frame.to_csv() for frame in frames]
    return [*texts, repr(pending), repr((best.plan, best.expected)), f"{study.asked}"]


def verified(study: mp.Study) -> mp.Verified:
    """Verify a study with a new handle, which has read no entries yet."""
    with mp.Study(study.name, study.store, study.store.open(study.name)) as other:
        return other.verify()


def store_of(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if kind == "memory":
        return MemoryStore()
    if kind == "sqlite":
        return store_at(tmp_path / "trucks.db")
    server: Server = request.getfixturevalue("postgresql")
    return store_at(server.new_url())
