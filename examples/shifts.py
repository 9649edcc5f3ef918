"""Shift planning: cover the shifts of a day, and learn what errors of workers cost.

A worker begins at one of five hours and works two blocks of four hours in a row. Three groups have
different wages, which are known. What errors and rework of a worker cost depends on the group and
on the hour, and is learned from the reports of every day, on top of the wage. Helper variables
with known costs count missing workers and leaders: agency workers need a leader in each block.

The model is written in PuLP: ``pip install pulp``. Prints the cost above that of the best plan for
a learner and for a planner who looks at wages only, and draws shifts.png.
"""

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import multiplay as mp
from multiplay.results.intervals import band
from multiplay.results.plots import COLOURS
from multiplay.types import FloatArray, IntArray

NEED = {"04-08": 4, "08-12": 9, "12-16": 11, "16-20": 8, "20-24": 5, "00-04": 3}
BLOCKS = list(NEED)
STARTS = BLOCKS[:-1]  # of two blocks in a row
WAGE = {"staff": 150, "north agency": 125, "south agency": 120}
SIZE = {"staff": 9, "north agency": 8, "south agency": 8}
MISSING, LEADER = 240, 60  # euros, for a worker and block, and for a block
LARGEST = 250  # euros of errors of one worker on one day
NAMES = [f"{group}, {start}" for group in WAGE for start in STARTS]


def plans() -> mp.Model:
    """Return the plans of a day: workers of each group that begin at each hour."""
    pulp: Any = import_module("pulp")
    day = pulp.LpProblem("shifts", pulp.LpMinimize)
    x = day.add_variable_dicts("x", (WAGE, STARTS), 0, max(SIZE.values()), "Integer")
    missing = day.add_variable_dict("missing", BLOCKS, 0, 2, "Integer")
    leader = day.add_variable_dict("leader", BLOCKS, cat="Binary")
    day += (
        pulp.lpSum([WAGE[group] * x[group][start] for group in WAGE for start in STARTS])
        + pulp.lpSum([MISSING * missing[block] for block in BLOCKS])
        + pulp.lpSum([LEADER * leader[block] for block in BLOCKS])
    )
    for block in BLOCKS:
        here = {group: [x[group][start] for start in _starts(block)] for group in WAGE}
        agency = [*here["north agency"], *here["south agency"]]
        day += pulp.lpSum(here["staff"] + agency) + missing[block] >= NEED[block]
        day += pulp.lpSum(agency) <= 16 * leader[block]
    for group, size in SIZE.items():
        day += pulp.lpSum(x[group].values()) <= size
    # wages are known, and errors come on top
    return mp.Model.of(day, arms=x, known="all")


def _starts(block: str) -> list[str]:
    """Return the hours at which workers begin who work in a block."""
    place = BLOCKS.index(block)
    return STARTS[max(place - 1, 0) : place + 1]


def errors(trials: int) -> FloatArray:
    """Return the mean cost of errors for each group and hour, in every trial."""
    rng = np.random.default_rng(1)
    groups = np.array([[20.0], [45.0], [70.0]]) * rng.uniform(0.5, 1.5, (trials, 3, 1))
    return (groups + rng.uniform(0, 60, (trials, 3, len(STARTS)))).reshape(trials, -1)


def learn(actions: mp.Model, mean: FloatArray, days: int, seed: int) -> FloatArray:
    """Return the expected cost of the plan of each day, wages and helpers included."""
    learner, rng = (
        mp.Learner(actions, loss_range=(0, LARGEST), seed=seed),
        np.random.default_rng(seed),
    )
    costs = []
    for _ in range(days):
        play = learner.ask()
        found = zip(mean, play.action, strict=True)
        spread = [rng.gamma(2, m / 2, n).clip(0, LARGEST) for m, n in found]
        learner.tell(play.id, dict(zip(actions.names, spread, strict=True)))
        costs.append(cost(actions, play.action, mean))
    return np.array(costs)


def cost(actions: mp.Model, action: IntArray, mean: FloatArray) -> float:
    """Return the expected cost of a plan: errors, and all that is known."""
    return float(action @ mean + actions.known_cost(action))


def run(days: int, trials: int) -> tuple[FloatArray, FloatArray, list[IntArray]]:
    """Return percent above the best plan, of learner by day and of planner; and two plans."""
    actions, means = plans(), errors(trials)
    by_wage = actions.best(np.zeros(actions.d))
    best = [actions.best(mean) for mean in means]
    least = np.array([cost(actions, *one) for one in zip(best, means, strict=True)])
    learned = np.array([learn(actions, mean, days, seed) for seed, mean in enumerate(means)])
    habit = np.array([cost(actions, by_wage, mean) for mean in means])
    return 100 * (learned / least[:, None] - 1), 100 * (habit / least - 1), [by_wage, best[0]]


def draw(learned: FloatArray, habit: FloatArray, shown: list[IntArray]) -> Figure:
    """Draw the cost above the best plan by day, and the cover of two plans."""
    figure = Figure(figsize=(13, 4.8), layout="constrained")
    left, *right = figure.subplots(1, 3, width_ratios=(1.5, 1, 1))
    day = np.arange(1, learned.shape[1] + 1)
    for number, (values, name) in enumerate(
        [(learned, "learner"), (np.repeat(habit[:, None], len(day), axis=1), "plan by wages only")]
    ):
        mean, low, high = band(values)
        left.plot(day, mean, color=COLOURS[number], label=name, ls="-" if number == 0 else "--")
        left.fill_between(day, low, high, color=COLOURS[number], alpha=0.2, lw=0)
    left.set(xlabel="day", ylabel="% above the cost of the best plan", ylim=(0, None))
    left.set_title(f"mean of {len(learned)} trials, 95 % confidence band", loc="left", fontsize=11)
    left.legend(frameon=False)
    for ax, plan, title in zip(right, shown, ("plan by wages", "best plan"), strict=True):
        _cover(ax, plan)
        ax.set_title(f"{title} of one trial", loc="left", fontsize=11)
    right[0].set(ylabel="workers", ylim=(0, max(NEED.values()) + 4))
    right[0].legend(frameon=False, fontsize=8, ncols=2, loc="upper left")
    right[1].sharey(right[0])
    for ax in (left, *right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25)
    return figure


def _cover(ax: Axes, plan: IntArray) -> None:
    units = plan.reshape(len(WAGE), len(STARTS))
    bottom = np.zeros(len(BLOCKS))
    for number, group in enumerate(WAGE):
        height = np.zeros(len(BLOCKS))
        height[:-1] += units[number]
        height[1:] += units[number]
        ax.bar(BLOCKS, height, bottom=bottom, color=COLOURS[number], alpha=0.7, label=group)
        bottom += height
    ax.step([*range(len(BLOCKS))], [*NEED.values()], "k_", where="mid", ms=22, label="need")
    ax.tick_params("x", rotation=45)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=60, help="days")
    parser.add_argument("--trials", type=int, default=20, help="independent trials")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of shifts.png")
    chosen = parser.parse_args()
    learned, habit, shown = run(chosen.days, chosen.trials)
    for name, values in (("first week", learned[:, :7]), ("last week", learned[:, -7:])):
        print(f"learner, {name}: {_text(values.mean(axis=1))} above the best plan")
    print(f"plan by wages only: {_text(habit)}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    draw(learned, habit, shown).savefig(chosen.out / "shifts.png", dpi=110)


def _text(values: FloatArray) -> str:
    mean, low, high = band(values)
    return f"{mean:.1f} % ({low:.1f} to {high:.1f})"


if __name__ == "__main__":
    main()
