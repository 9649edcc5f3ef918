"""Demonstration study: a simulated year of trucks between depots and towns."""

from __future__ import annotations

import time

import numpy as np

from multiplay.actions import Transport
from multiplay.service.auth import keys
from multiplay.studies import Study
from multiplay.studies.study import Place
from multiplay.types import FloatArray

NAME, KEY = "trucks", "demonstration"
DEPOTS = {"Lyon": 5, "Lille": 3, "Nantes": 4}
TOWNS = {"north": 3, "south": 4, "east": 2, "coast": 3}
DAYS, DAY, BATCH = 365, 86_400.0, 30  # days, seconds of a day, days of one commit
HIGHEST = 400.0  # euros
SPREAD = 25.0
ROAD_WORKS = (200, 7, 120.0)  # first day, lane, and additional cost of a truck


def prepare(store: Place) -> None:
    """Create the study if it does not exist."""
    if NAME not in Study.list(store=store):
        _year(store)


def new_key(store: Place) -> str:
    """Return a new key for the demonstration, and revoke the previous one."""
    for row in keys.list_all(store):
        if row.name == KEY:
            keys.revoke(store, row.id)
    return keys.create(store, "manage", name=KEY).token


def _year(store: Place) -> None:
    """Simulate a year, and ask for the plan of today."""
    rng = np.random.default_rng(2026)
    plans = Transport(
        list(DEPOTS.values()), list(TOWNS.values()), names=(list(DEPOTS), list(TOWNS))
    )
    means = rng.uniform(80.0, 300.0, len(plans.names))
    first = time.time() - DAYS * DAY
    ranges = 0, HIGHEST
    with Study.create(NAME, plans, losses=ranges, missing="ignore", store=store) as study:
        for month in range(0, DAYS, BATCH):
            with study.together():
                for day in range(month, min(month + BATCH, DAYS)):
                    _play(study, day, first + day * DAY, means, rng)
        study.ask(key=_date(first + DAYS * DAY))


def _play(study: Study, day: int, at: float, means: FloatArray, rng: np.random.Generator) -> None:
    """Simulate one day; 1 % of the trucks do not report their costs."""
    play = study.ask(key=_date(at), at=at)
    begins, lane, more = ROAD_WORKS
    costs = means.copy()
    costs[lane] += more * (day >= begins)
    report: dict[str, list[float | None]] = {}
    for arm, (name, trucks) in enumerate(play.plan.items()):
        euros = rng.normal(costs[arm], SPREAD, trucks).clip(0, HIGHEST).round(2)
        report[name] = [None if rng.random() < 0.01 else float(cost) for cost in euros]
    study.tell(play.id, report, at=at + 0.6 * DAY)


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))
