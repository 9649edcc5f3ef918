"""Two months of live use: 60 days with a different demand each day, and costs of 0 to 250 euros.

The lane from Lyon to the south is closed on days 20 to 26, and a warehouse in Metz opens on day 30.
Every policy plays twice: once it meets the new lanes when they open, and once it was told of them
on day 1, when they were still closed. Prints the regret of both in euros, against the best plan of
each day for the true mean costs.
"""

import argparse
from typing import NamedTuple

import numpy as np

import multiplay as mp
from multiplay.types import FloatArray, IntArray

DAYS, OPENS, CLOSED = 60, 30, range(20, 27)
RANGE = (0.0, 250.0)
WAREHOUSES, CLIENTS = ["Lyon", "Lille", "Metz"], ["north", "south", "west"]
METZ, LANE = 2, (0, 1)  # the warehouse that opens, and the lane that closes
POLICIES: dict[str, mp.Policy] = {
    "GenCTS": mp.GenCTS(),
    "CombUCB": mp.CombUCB(),
    "GenLBINFV": mp.GenLBINFV(),
    "Hybrid": mp.Hybrid(),
}


class Day(NamedTuple):
    """The trucks of a day, and the cost of each of them on each lane."""

    supply: IntArray
    demand: IntArray
    euros: FloatArray  # (warehouses, clients, trucks)
    open: bool  # whether the lane from Lyon to the south is

    def plans(self, with_metz: bool) -> mp.Transport:
        """Return the action set of this day."""
        rows = slice(None) if with_metz else slice(METZ)
        capacities = np.full((len(WAREHOUSES), len(CLIENTS)), int(self.demand.sum()))
        if not self.open:
            capacities[LANE] = 0
        return mp.Transport(
            self.supply[rows],
            self.demand,
            names=(WAREHOUSES[rows], CLIENTS),
            capacities=None if self.open else capacities[rows],
        )


def two_months(rng: np.random.Generator) -> tuple[FloatArray, list[Day]]:
    """Draw the mean costs of all lanes, and the days."""
    means = rng.uniform(40, 210, (len(WAREHOUSES), len(CLIENTS)))
    width = np.minimum(60, np.minimum(means, RANGE[1] - means))
    days = []
    for day in range(1, DAYS + 1):
        demand = rng.integers(2, 8, len(CLIENTS))
        from_lille = demand[1] + (demand[0] + demand[2]) // 3  # enough when the lane is closed
        supply = np.array([demand.sum() - from_lille, from_lille, 0])
        if day >= OPENS:
            supply[METZ], supply[0] = supply[0] // 2, supply[0] - supply[0] // 2
        draws = rng.uniform(-1, 1, (*means.shape, int(demand.sum())))
        euros = means[..., None] + width[..., None] * draws
        days.append(Day(supply, demand, euros, day not in CLOSED))
    return means, days


def play(policy: mp.Policy, means: FloatArray, days: list[Day], seed: int, ahead: bool) -> float:
    """Return the regret of two months; ``ahead``: all lanes are known from the first day."""
    learner = mp.Learner(
        days[0].plans(ahead), policy, seed=seed, loss_range=RANGE, varying_set=True
    )
    regret = 0.0
    for number, day in enumerate(days, start=1):
        today = day.plans(ahead or number >= OPENS)
        chosen = learner.ask(today)
        if not today.contains(chosen.action):
            raise AssertionError(f"day {number} has an infeasible plan")
        of_today = means.ravel()[: today.d]
        best = today.argmin(of_today)
        regret += float((chosen.action - best) @ of_today)
        lists = day.euros.reshape(-1, day.euros.shape[2])
        costs = zip(chosen.action.tolist(), lists, strict=False)
        learner.tell(chosen.id, [euros[:trucks].tolist() for trucks, euros in costs])
    return regret


def run(trials: int, seed: int = 0) -> dict[str, FloatArray]:
    """Return the regrets of all policies: (2, trials), without and with all lanes known ahead."""
    regrets = {name: np.empty((2, trials)) for name in POLICIES}
    for trial in range(trials):
        means, days = two_months(np.random.default_rng([seed, trial]))
        for name, policy in POLICIES.items():
            regrets[name][:, trial] = [play(policy, means, days, trial, a) for a in (False, True)]
    return regrets


def ratio(regrets: FloatArray) -> tuple[float, float]:
    """Return the ratio of two mean regrets, and its standard error; trials are paired."""
    late, ahead = regrets
    value = late.mean() / ahead.mean()
    error = (late - value * ahead).std(ddof=1) / (ahead.mean() * len(late) ** 0.5)
    return float(value), float(error)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=40, help="independent trials")
    regrets = run(parser.parse_args().trials)
    print("| policy | met when they open | told in advance | ratio |\n" + "|---" * 4 + "|")
    for name, pair in regrets.items():
        error = pair.std(axis=1, ddof=1) / pair.shape[1] ** 0.5
        both = [f"{m:.0f} ± {e:.0f}" for m, e in zip(pair.mean(axis=1), error, strict=True)]
        print(f"| {name} | {' | '.join(both)} | {'{:.3f} ± {:.3f}'.format(*ratio(pair))} |")
    print("all plans were feasible")


if __name__ == "__main__":
    main()
