"""Two months of live use: the cost of a truck with several learners, day by day.

Demand changes every day. A lane is closed for a week, there is a strike, a warehouse opens on day
30, and on day 45 a new toll makes one lane expensive. The learner observes the cost of every truck,
in euros. It is compared with the best plan of each day for the true mean costs, and with the plan
that sends trucks in proportion to supplies and demands. The default policy follows the change.
"""

import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
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
FOLLOW, IGNORE = "PooledCTS(memory=Changes())", "PooledCTS()"
POLICIES = {
    FOLLOW: mp.PooledCTS(memory=mp.Changes()),
    IGNORE: mp.PooledCTS(),
    "PooledCTS(discount=0.97)": mp.PooledCTS(discount=0.97),
    "BootstrapCTS(memory=Changes())": mp.BootstrapCTS(memory=mp.Changes()),
    "GenCTS()": mp.GenCTS(),
    "GenLBINFV()": mp.GenLBINFV(),
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


def live(policy: mp.Policy, seed: int) -> FloatArray:
    """Simulate two months; return the mean cost of a truck for the plan of each day."""
    rng = np.random.default_rng([7, seed])
    learner = mp.Learner(day(1), policy, seed=seed, loss_range=(0, 250), varying_set=True)
    paid = []
    for t in range(1, DAYS + 1):
        today, morning = day(t), START + timedelta(days=t - 1)
        euros = means(t, today)
        play = learner.ask(actions=today, key=f"{morning:%Y-%m-%d}", at=morning)
        trucks = zip(today.names, play.action, euros, strict=True)
        bills = {lane: (euro * rng.uniform(0.6, 1.4, k)).tolist() for lane, k, euro in trucks}
        learner.tell(play.id, bills, at=morning + timedelta(hours=14))
        paid.append(euros @ play.action / play.action.sum())
    return np.array(paid)


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
    follow, ignore = paid[FOLLOW], paid[IGNORE].mean(axis=0)
    ignore[: TOLL - 1] = np.nan  # nearly the same until then
    lines = {f"average of {len(follow)} learners": follow.mean(axis=0), **fixed}
    for number, (name, costs) in enumerate((lines | {"changes ignored": ignore}).items()):
        colour, line = style(number)
        axes.plot(days, costs, color=colour, linestyle=line, label=name)
    low, high = np.quantile(follow, [0.25, 0.75], axis=0)
    band, colour = "the middle half of the learners", style(0)[0]
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
        name: np.array([live(policy, seed) for seed in range(options.learners)])
        for name, policy in POLICIES.items()
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
