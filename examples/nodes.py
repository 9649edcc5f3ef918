"""Spot capacity of up to 16 nodes a zone: the k-th node is a unit of its own.

Sixteen nodes in three zones, hour by hour, on traces of 2023. The loss of the k-th node of a zone
is the share of the hour in which the zone had fewer than k nodes, so that units have means of their
own. What was not played is known too: the cost of each plan is exact. Nothing is known in advance.

The data: ``multiplay data fetch nodes``.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from practice import ORACLE, POLICIES, Smoothed, draw_figure, print_table

import multiplay as mp
from multiplay.cli.data import files_of
from multiplay.random import POLICY, Streams
from multiplay.types import FloatArray

NODES, HOUR, DAY = 16, 3600, 24
SOME = ("PooledCTS(memory=Changes())", "PooledCTS(memory=Persists())", "follow the leader")
OTHERS: dict[str, mp.Policy] = {
    "ordered, Persists()": mp.BootstrapCTS(unit_means="ordered", memory=mp.Persists()),
    "ordered, discount=0.9": mp.BootstrapCTS(unit_means="ordered", discount=0.9),
    "ordered": mp.BootstrapCTS(unit_means="ordered"),
    "smoothed, 0.3": Smoothed(0.3),
}


def losses_of(paths: list[Path]) -> FloatArray:
    """Return the losses of k-th nodes, (hours, zones, 16); a last hour needs half of its ticks."""
    traces = [json.loads(path.read_text("utf-8")) for path in paths]
    ticks = min(len(trace["data"]) for trace in traces)
    nodes = np.array([trace["data"][:ticks] for trace in traces]).T
    gap = float(traces[0]["metadata"]["gap_seconds"])
    hour = (np.arange(ticks) * gap // HOUR).astype(np.int64)
    count = np.bincount(hour)
    hours = len(count) - int(count[-1] * gap < HOUR / 2)
    missing = nodes[:, :, None] < np.arange(1, NODES + 1)
    return np.stack([missing[hour == k].mean(axis=0) for k in range(hours)])


def costs(actions: mp.ActionSet, policy: mp.Policy, losses: FloatArray, trials: int) -> FloatArray:
    """Return the share of nodes lost in each hour and trial."""
    streams, state = Streams.spawn(1, POLICY, range(trials)), policy.start(actions, None, trials)
    first, lost = np.arange(actions.d + 1) * NODES, np.empty((len(losses), trials))
    for t, now in enumerate(losses):
        play = policy.choose(actions, state, streams)
        units = np.where(np.arange(NODES) < play.action[:, :, None], now, 0.0)
        feedback = mp.Feedback(play.action, units.sum(axis=2), units.reshape(trials, -1), first)
        policy.update(actions, state, play, feedback, streams)
        lost[t] = units.sum(axis=(1, 2)) / NODES
    return lost


def main() -> None:
    """Print the table, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    given = parser.parse_args()
    paths = files_of("nodes")
    losses, zones = losses_of(paths), [path.name.partition("_")[0] for path in paths]
    actions = mp.Budget(NODES, [NODES] * len(zones), names=zones)
    policies = {name: POLICIES[name] for name in SOME} | OTHERS
    found = {name: costs(actions, one, losses, given.trials) for name, one in policies.items()}
    fixed = actions.best_by_unit(losses.mean(axis=0))
    best = {"best fixed plan, in hindsight": fixed[None], ORACLE: actions.best_by_unit(losses)}
    for name, plans in best.items():
        played = np.arange(NODES) < plans[:, :, None]
        found[name] = np.where(played, losses, 0.0).sum(axis=(1, 2))[:, None] / NODES
    print(f"{len(losses)} hours, {NODES} nodes in {len(zones)} zones: node-hours lost")
    curves = print_table(found, DAY)
    what = "Node-hours lost per node, less those of the default"
    draw_figure(Path("results/nodes.png"), curves, what, "hours")


if __name__ == "__main__":
    main()
