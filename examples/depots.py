"""Facility location: learn the prices of lanes beside the known rent of depots.

Three depots serve four customers with eight trucks a day. A depot that is used on a day costs rent,
which is known; the price of a truck on a lane is not. Prints the regret of five policies, one of
which does not see the rent, and draws depots.png.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import multiplay as mp
from multiplay.actions import ActionSet
from multiplay.random import Rng
from multiplay.types import Arrays

RENT = {"Lille": 0.9, "Lyon": 1.2, "Nantes": 0.8}  # in the unit of the losses
FREE = dict.fromkeys(RENT, 0.0)
DEMAND = {"Paris": 3, "Rennes": 2, "Dijon": 1, "Metz": 2}
ROOM = 6  # trucks of a depot


def plans(rent: Mapping[str, float] = RENT) -> mp.Model:
    """Return the set: an arm for each lane, and a helper for each depot, 1 if it is used."""
    lanes = [(depot, town) for depot in RENT for town in DEMAND]
    entries = []
    for row, town in enumerate(DEMAND):
        entries += [(row, k, 1) for k, lane in enumerate(lanes) if lane[1] == town]
    for number, depot in enumerate(RENT):  # trucks of the depot <= ROOM * used
        row = len(DEMAND) + number
        entries += [(row, k, 1) for k, lane in enumerate(lanes) if lane[0] == depot]
        entries += [(row, len(lanes) + number, -ROOM)]
    rows, columns, values = zip(*entries, strict=True)
    return mp.Model(
        columns={
            "lower": [0] * (len(lanes) + len(RENT)),
            "upper": [DEMAND[town] for _, town in lanes] + [1] * len(RENT),
            "integer": [True] * (len(lanes) + len(RENT)),
            "cost": [0.0] * len(lanes) + [*rent.values()],
        },
        rows={
            "lower": [*DEMAND.values()] + [None] * len(RENT),
            "upper": [*DEMAND.values()] + [0] * len(RENT),
        },
        matrix={"row": rows, "column": columns, "value": values},
        arms=range(len(lanes)),
        names=[f"{depot}->{town}" for depot, town in lanes],
    )


@dataclass(frozen=True)
class BlindCTS(mp.GenCTS):
    """GenCTS that chooses on another set, here the same plans without rent."""

    sees: mp.Model = None  # type: ignore[assignment]

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        """Choose as if depots were free."""
        return super().choose(self.sees, state, rng)


def run(horizon: int, trials: int, jobs: int) -> mp.Result:
    """Simulate five policies; every trial has other mean prices."""
    means = np.random.default_rng(0).uniform(0.1, 0.9, (trials, len(RENT) * len(DEMAND)))
    policies = {
        "GenCTS": mp.GenCTS(),
        "CombUCB": mp.CombUCB(),
        "GenLBINFV": mp.GenLBINFV(),
        "GenCTS, blind to rent": BlindCTS(sees=plans(FREE)),
        "random plans": mp.RandomAction(),
    }
    losses = mp.Stochastic(mp.Bernoulli(means))
    return mp.simulate(plans(), losses, policies, horizon, trials, seed=0, jobs=jobs)


def draw(result: mp.Result) -> Figure:
    """Draw all policies on the left, and those that see the rent on the right."""
    figure = Figure(figsize=(13, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    result.plot(left, "Three depots with rent, eight trucks a day")
    result.plot(right, "The three that see the rent", policies=result.policies[:3])
    return figure


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=300, help="rounds")
    parser.add_argument("--trials", type=int, default=12, help="independent trials")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of depots.png")
    chosen = parser.parse_args()
    result = run(chosen.horizon, chosen.trials, chosen.jobs)
    print(result.summary())
    chosen.out.mkdir(parents=True, exist_ok=True)
    draw(result).savefig(chosen.out / "depots.png", dpi=110)


if __name__ == "__main__":
    main()
