"""Example of trucks with features: distance of a lane, price of fuel, weekday, and rain."""

from collections.abc import Mapping
from typing import Any

from trucks import plans

import multiplay as mp
from multiplay.storage import Store

WEEK = ["Mon", "Tue", "Wed", "Thu", "Fri"]
KM = {"Lyon->north": 450, "Lyon->south": 120, "Lille->north": 90, "Lille->south": 700}
FEATURES = mp.Features(
    km=mp.Number(centre=300, scale=100, unit="km"),
    fuel=mp.Number(centre=1.6, scale=0.1, unit="EUR/l"),
    weekday=mp.Category(WEEK),
    rain=mp.Flag(),
    products=[("km", "fuel")],
)
SETTINGS: dict[str, Any] = {
    "loss_range": (0, 250),
    "seed": 7,
    "features": FEATURES,
    "arm_features": {"km": KM},
}


def featured_study(store: Store, name: str = "lanes", **settings: Any) -> mp.Study:
    return mp.Study.create(name, plans(), store=store, **SETTINGS | settings)


def day(number: int) -> dict[str, Any]:
    """Return the features of a day."""
    rain = {"Lyon->south": True, "*": False} if number % 3 else False
    return {"fuel": 1.5 + number % 4 / 10, "weekday": WEEK[number % 5], "rain": rain}


def bills(number: int, plan: Mapping[str, int]) -> dict[str, list[float]]:
    """Return the costs of the trucks of a plan on a day: 20 for each 100 km, 8 more in rain."""
    given = day(number)
    found = {}
    for arm, units in plan.items():
        rain = given["rain"] if isinstance(given["rain"], bool) else arm == "Lyon->south"
        mean = 40 + 0.2 * KM[arm] + 8 * rain + 100 * (given["fuel"] - 1.5)
        found[arm] = [mean + (7 * number + 13 * truck) % 5 for truck in range(units)]
    return {arm: units for arm, units in found.items() if units}


def ask_and_tell(study: mp.Study | mp.RemoteStudy, rounds: int, first: int = 0) -> None:
    for number in range(first, first + rounds):
        play = study.ask(features=day(number), at=number)
        study.tell(play.id, bills(number, play.plan), at=number + 0.5)
