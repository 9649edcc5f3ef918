"""Demonstration study: a simulated year of trucks between depots and towns."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from multiplay._support.words import Words
from multiplay.actions import InProportion, Transport
from multiplay.learner.reports import Reports
from multiplay.service.auth import keys
from multiplay.studies import Study, entry_codec
from multiplay.studies.study import Place
from multiplay.types import FloatArray

NAME, KEY = "trucks", "demonstration"
DEPOTS = {"Lyon": 5, "Lille": 3, "Nantes": 4}
TOWNS = {"north": 3, "south": 4, "east": 2, "coast": 3}
WORDS = Words("EUR", "truck", "lane", "day")
DAYS, DAY, BATCH = 365, 86_400.0, 30  # days, seconds of a day, days of one commit
HIGHEST = 400.0  # euros
SPREAD = 25.0
ROAD_WORKS = (200, 7, 120.0)  # first day, lane, and additional cost of a truck
SEED = 2026


def prepare(store: Place) -> dict[str, str]:
    """Create the study if it does not exist; return the notes for the pages of studies."""
    if NAME not in Study.names(store=store):
        _year(store)
    return {NAME: note(store)}


def new_key(store: Place) -> str:
    """Return a new key for the demonstration, and revoke the previous one."""
    for row in keys.list_all(store):
        if row.name == KEY:
            keys.revoke(store, row.id)
    return keys.create(store, "manage", name=KEY).token


def note(store: Place) -> str:
    """Return what the plans of the year saved: estimated from bills, and by the simulation.

    Both compare with trucks in proportion to supply and demand on the same days. The mean costs of
    the simulation are not known to the study.
    """
    with Study.open(NAME, store=store) as study:
        if study.actions.names != _plans().names or study.asked < DAYS:  # a study of the user
            return ""
        saved = study.savings(InProportion())
        truth = _saved_by_means(study)
    return (
        f"This year is simulated. Its plans {saved.sentence} By the mean costs of the simulation, "
        f"which the study does not know, it was {WORDS.money(truth)}."
    )


def _saved_by_means(study: Study) -> float:
    """Return what the plans saved by the mean costs of the simulation."""
    means, _ = _world()
    usual, names = InProportion().plan(study.actions), study.actions.names
    asked = (entry for entry in study.entries() if entry.labels.kind == entry_codec.ASK)
    saved = 0.0
    for day, entry in zip(range(DAYS), asked, strict=False):
        action = entry_codec.action_of_plan(entry.record.header["plan"], names)
        saved += float(_costs(means, day) @ (usual - action))
    return saved


def _plans() -> Transport:
    sides = list(DEPOTS), list(TOWNS)
    return Transport(list(DEPOTS.values()), list(TOWNS.values()), names=sides)


def _world() -> tuple[FloatArray, np.random.Generator]:
    """Return the mean costs of all lanes on the first day, and the source of the noise."""
    rng = np.random.default_rng(SEED)
    return rng.uniform(80.0, 300.0, len(DEPOTS) * len(TOWNS)), rng


def _costs(means: FloatArray, day: int) -> FloatArray:
    """Return the mean costs of a day."""
    begins, lane, more = ROAD_WORKS
    costs = means.copy()
    costs[lane] += more * (day >= begins)
    return costs


def _year(store: Place) -> None:
    """Simulate a year, and ask for the plan of today."""
    means, rng = _world()
    first = time.time() - DAYS * DAY
    given: dict[str, Any] = {
        "loss_range": (0, HIGHEST),
        "reports": Reports(missing="ignore"),
        "words": WORDS,
    }
    with Study.create(NAME, _plans(), store=store, **given) as study:
        for month in range(0, DAYS, BATCH):
            with study.together():
                for day in range(month, min(month + BATCH, DAYS)):
                    _play(study, first + day * DAY, _costs(means, day), rng)
        study.set_versus(InProportion())
        study.ask(key=_date(first + DAYS * DAY))


def _play(study: Study, at: float, costs: FloatArray, rng: np.random.Generator) -> None:
    """Simulate one day; 1 % of the trucks do not report their costs."""
    play = study.ask(key=_date(at), at=at)
    report: dict[str, list[float | None]] = {}
    for arm, (name, trucks) in enumerate(play.plan.items()):
        euros = rng.normal(costs[arm], SPREAD, trucks).clip(0, HIGHEST).round(2)
        report[name] = [None if rng.random() < 0.01 else float(cost) for cost in euros]
    study.tell(play.id, report, at=at + 0.6 * DAY)


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))
