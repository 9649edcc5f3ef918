"""Spot capacity: three nodes in nine zones, hour by hour, on traces of 2023.

An arm is a zone, a unit a node, a round an hour. The loss of a node is the share of the hour in
which its zone had no capacity. The traces say what every zone had, so that the cost of each plan is
exact. Nothing is known in advance. Idealised: a node is back as soon as there is capacity, moving
is free, and the requests do not change the market.

The data: ``multiplay data fetch spot``.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from practice import compare, draw_figure

import multiplay as mp
from multiplay.cli.data import files_of
from multiplay.types import FloatArray

HOUR, DAY = 3600, 24


def lost(path: Path) -> FloatArray:
    """Return the share of each hour without capacity; a last hour of less than half is left out."""
    trace = json.loads(path.read_text("utf-8"))
    gap, up = float(trace["metadata"]["gap_seconds"]), np.array(trace["data"]) > 0
    hour = (np.arange(len(up)) * gap // HOUR).astype(np.int64)
    ticks = np.bincount(hour)
    hours = len(ticks) - int(ticks[-1] * gap < HOUR / 2)
    return np.asarray(1 - np.bincount(hour, up)[:hours] / ticks[:hours])


def losses_of(paths: list[Path]) -> FloatArray:
    """Return the losses of all zones, (hours, zones)."""
    columns = [lost(path) for path in paths]
    return np.stack([column[: min(map(len, columns))] for column in columns], axis=1)


def main() -> None:
    """Print the table, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=3)
    given = parser.parse_args()
    paths = files_of("spot")
    losses = losses_of(paths)
    zones = [path.name.partition("_")[0] for path in paths]
    actions = mp.Budget(given.nodes, [1] * len(zones), names=zones)
    print(f"{len(losses)} hours, {given.nodes} nodes in {len(zones)} zones: node-hours lost")
    curves = compare(actions, mp.Adversarial(losses), losses, DAY, given.trials)
    what = "Node-hours lost per node, less those of the default"
    draw_figure(Path("results/spot.png"), curves, what, "hours")


if __name__ == "__main__":
    main()
