"""Two months of live use: the cost of a truck with several learners, day by day.

Demand changes every day. A lane is closed for a week, there is a strike, a warehouse opens on day
30, and on day 45 a new toll makes one lane expensive. The learner observes the cost of every truck,
in euros. It is compared with the best plan of each day for the true mean costs, and with the plan
that sends trucks in proportion to supplies and demands. One learner is restarted at a drift alarm,
from all data except the outdated ones.
"""

import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import multiplay as mp
from multiplay.results.plots import style
from multiplay.types import FloatArray

DAYS, START = 60, datetime(2026, 3, 1, 6, tzinfo=UTC)
CUSTOMERS = ["north", "south", "coast"]
TRUCKS = {"Lille": 8, "Lyon": 9, "Paris": 10}
EUROS = {
    "Lille": [60, 150, 110],
    "Lyon": [140, 50, 90],
    "Paris": [80, 100, 130],
    "Reims": [45, 120, 70],
}
CLOSED, STRIKE, OPENING, TOLL = range(10, 17), 20, 30, 45
EVENTS = {
    CLOSED.start: "Lyon->coast closed\nfor a week",
    STRIKE: "strike: too\nfew trucks",
    OPENING: "warehouse\nReims opens",
    TOLL: "toll on\nLyon->south",
}
PLAIN, RESTARTED = "BootstrapCTS()", "BootstrapCTS(), restarted at an alarm"
LEARNERS = {
    PLAIN: (mp.BootstrapCTS(), False),
    RESTARTED: (mp.BootstrapCTS(), True),
    "BootstrapCTS(discount=0.97)": (mp.BootstrapCTS(discount=0.97), False),
    "GenCTS()": (mp.GenCTS(), False),
    "GenLBINFV()": (mp.GenLBINFV(), False),
}


def day(t: int) -> mp.Transport:
    """Return the action set of day t = 1, 2, ..."""
    demand = np.random.default_rng([2026, t]).integers([4, 5, 3], [8, 9, 7], endpoint=True)
    trucks = TRUCKS | {"Reims": 6} if t >= OPENING else TRUCKS
    if t == STRIKE:
        trucks = TRUCKS | {"Lyon": 3, "Paris": 0}
    capacities = np.minimum.outer(list(trucks.values()), demand)
    if t in CLOSED:
        capacities[list(trucks).index("Lyon"), CUSTOMERS.index("coast")] = 0
    names = list(trucks), CUSTOMERS
    return mp.Transport(
        list(trucks.values()), demand, names, capacities=capacities, slack=True, shortage=300
    )


def means(t: int, today: mp.Transport) -> FloatArray:
    """Return the mean cost of a truck on each lane of day t, in euros."""
    euros = np.array([EUROS[name.split("->")[0]] for name in today.names[:: len(CUSTOMERS)]], float)
    if t >= TOLL:
        euros[list(EUROS).index("Lyon"), CUSTOMERS.index("south")] += 100
    return euros.ravel()


def in_proportion(today: mp.Transport) -> FloatArray:
    """Return the split in proportion to supplies and demands, over the open lanes."""
    assert today.capacities is not None
    served = min(today.supply.sum(), today.demand.sum())
    sent, wanted = (served * side / side.sum() for side in (today.supply, today.demand))
    plan = (today.capacities > 0).astype(float)
    for _ in range(1000):  # scale the rows, then the columns, repeatedly
        plan *= (sent / np.maximum(plan.sum(axis=1), 1e-12))[:, None]
        plan *= wanted / plan.sum(axis=0)
    return plan.ravel()


def live(policy: mp.Policy, seed: int, restart: bool = False) -> FloatArray:
    """Simulate two months; return the mean cost of a truck for the plan of each day.

    ``restart``: restart the learner at a drift alarm, without the outdated data.
    """
    rng, book = np.random.default_rng([7, seed]), Book([], [], [])
    learner = mp.Learner(day(1), policy, seed, losses=(0, 250), changing=True)
    paid = []
    for t in range(1, DAYS + 1):
        today, morning = day(t), START + timedelta(days=t - 1)
        euros = means(t, today)
        play = learner.ask(actions=today, key=f"{morning:%Y-%m-%d}", at=morning)
        trucks = zip(today.names, play.action, euros, strict=True)
        bills = {lane: (euro * rng.uniform(0.6, 1.4, k)).tolist() for lane, k, euro in trucks}
        learner.tell(play.id, bills, at=morning + timedelta(hours=14))
        paid.append(euros @ play.action / play.action.sum())
        book.add(t, bills)
        if restart and len(alarms := learner.drift()):
            changed = alarms.set_index("arm")["since"]
            learner = mp.Learner(today, policy, seed + t, losses=(0, 250), changing=True)
            learner.learn_table(book.without(changed))
    return np.array(paid)


class Book(NamedTuple):
    """Log of costs, with one row for each truck."""

    arm: list[str]
    round: list[int]
    loss: list[float]

    def add(self, t: int, bills: dict[str, list[float]]) -> None:
        """Add the costs of a day."""
        for lane, euros in bills.items():
            self.arm.extend([lane] * len(euros))
            self.round.extend([t] * len(euros))
            self.loss.extend(euros)

    def without(self, changed: pd.Series) -> pd.DataFrame:
        """Return a table without the costs of lanes before they changed."""
        table = pd.DataFrame(self._asdict())
        return table[table["round"] > table["arm"].map(changed).fillna(0)]


def yardsticks() -> dict[str, FloatArray]:
    """Return the cost of a truck on each day for plans that do not learn."""
    best, habit = [], []
    for t in range(1, DAYS + 1):
        today = day(t)
        euros = means(t, today)
        plan, split = today.best(euros), in_proportion(today)
        best.append(euros @ plan / plan.sum())
        habit.append(euros @ split / split.sum())
    return {"in proportion": np.array(habit), "best plan of each day": np.array(best)}


def draw(paid: dict[str, FloatArray], fixed: dict[str, FloatArray]) -> Figure:
    """Draw the cost of a truck, day by day; for learners the mean and the middle half."""
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes, days = figure.add_subplot(), np.arange(1, DAYS + 1)
    plain, restarted = paid[PLAIN], paid[RESTARTED].mean(axis=0)
    restarted[: TOLL - 1] = np.nan  # the same until then, except for false alarms
    lines = {f"{PLAIN}, average of {len(plain)} learners": plain.mean(axis=0), **fixed}
    for number, (name, costs) in enumerate((lines | {RESTARTED: restarted}).items()):
        colour, line = style(number)
        axes.plot(days, costs, color=colour, linestyle=line, label=name)
    low, high = np.quantile(plain, [0.25, 0.75], axis=0)
    band, colour = f"the middle half of {PLAIN}", style(0)[0]
    axes.fill_between(days, low, high, color=colour, alpha=0.2, linewidth=0, label=band)
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top + 0.12 * (top - bottom))
    axes.axvspan(CLOSED.start - 0.5, CLOSED.stop - 0.5, color="grey", alpha=0.12, linewidth=0)
    for t, text in EVENTS.items():
        if t not in CLOSED:
            axes.axvline(t - 0.5, color="grey", linewidth=1, linestyle=":")
        axes.annotate(
            text, (t - 0.2, 0.985), xycoords=("data", "axes fraction"), va="top", fontsize=8.5
        )
    axes.set_xlim(0.5, DAYS + 0.5)
    axes.set_xlabel("day")
    axes.set_ylabel("expected cost of a truck, euros")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, fontsize=9, frameon=False)
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", type=int, default=100, help="of each policy")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for live.png")
    options = parser.parse_args()
    paid = {
        name: np.array([live(policy, seed, restart) for seed in range(options.learners)])
        for name, (policy, restart) in LEARNERS.items()
    }
    fixed = yardsticks()
    weeks = [range(7), range(7, 29), range(OPENING - 1, TOLL - 1), range(TOLL - 1, DAYS)]
    print("euros for a truck                  days 1-7   8-29  30-44  45-60    all")
    for name, costs in (paid | fixed).items():
        by_week = [costs[..., week].mean() for week in weeks]
        print(f"{name:37}", *(f"{euros:6.1f}" for euros in [*by_week, costs.mean()]))
    options.out.mkdir(parents=True, exist_ok=True)
    draw(paid, fixed).savefig(options.out / "live.png", dpi=120)
    print(f"\n{options.out / 'live.png'}")


if __name__ == "__main__":
    main()
