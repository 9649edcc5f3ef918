"""Switching costs: a year of plans in which every truck that changes its lane costs money.

Three depots, three customers, 18 trucks a day, new mean prices in every trial, and bills between 0
and twice the mean, in a range of 0 to 250 EUR. Compares plans with a switching cost with both
extremes: a new draw every day, and no change after a first period. Prints what a year costs above
the best plan, changes included, and draws switching.png.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import multiplay as mp
from multiplay.random import POLICY
from multiplay.results.intervals import band
from multiplay.results.plots import COLOURS, DASHES
from multiplay.types import FloatArray, IntArray

PLANS = mp.Transport([5, 6, 7], [6, 7, 5])
RANGE = 250.0
CHANGES = (5.0, 15.0, 40.0)  # EUR for each unit that differs
SEED = 35


def year(
    policy: mp.Policy, means: FloatArray, days: int, change: float, stop: int | None = None
) -> tuple[FloatArray, IntArray]:
    """Return the cost above the best plan, with changes, after each day, and the changed units.

    From day ``stop`` on, the plan that is best by what is believed then is never changed.
    """
    trials = range(len(means))
    world = mp.Stochastic(mp.Uniform(0.0, 2 * means)).open(PLANS, days, trials, SEED)
    rng, state = mp.Streams.spawn(SEED, POLICY, trials), policy.start(PLANS, None, len(means))
    least, last = PLANS.value(PLANS.best(means), means), None
    cost, units = np.zeros((len(means), days)), np.zeros(len(means), dtype=np.int64)
    for day in range(days):
        play = policy.choose(PLANS, state, rng)
        if stop is not None and day >= stop:
            believed = policy.believed(state)
            assert believed is not None
            kept = PLANS.best(believed) if day == stop or last is None else last
            play = mp.Play(kept, play.memo, play.cache)
        changed = 0 if last is None else np.abs(play.action - last).sum(axis=1)
        units += changed
        last = play.action
        cost[:, day] = RANGE * (PLANS.value(last, means) - least) + change * changed
        policy.update(PLANS, state, play, world.observe(last).feedback, rng)
    return cost.cumsum(axis=1), units


def run(trials: int, days: int) -> list[dict[str, tuple[FloatArray, IntArray]]]:
    """Return costs and changes of all methods, for each switching cost."""
    means = np.random.default_rng(SEED).uniform(0.2, 0.5, (trials, PLANS.d))
    free, found = mp.BootstrapCTS(), []
    for change in CHANGES:
        calm = mp.Constrained(free, [mp.SwitchingCost(change / RANGE)])
        found.append(
            {
                "switching cost": year(calm, means, days, change),
                "a new draw every day": year(free, means, days, change),
                "no change after 7 days": year(free, means, days, change, 7),
                "no change after 30 days": year(free, means, days, change, 30),
            }
        )
    return found


def draw(results: list[dict[str, tuple[FloatArray, IntArray]]]) -> Figure:
    """Draw the costs by day, with bands."""
    figure = Figure(figsize=(15, 4.8), layout="constrained")
    axes = figure.subplots(1, len(CHANGES))
    for ax, found, change in zip(axes, results, CHANGES, strict=True):
        for number, (name, (costs, _)) in enumerate(found.items()):
            mean, low, high = band(costs)
            days = np.arange(1, len(mean) + 1)
            ax.plot(days, mean, DASHES[number % 3], color=COLOURS[number], label=name)
            ax.fill_between(days, low, high, color=COLOURS[number], alpha=0.15, lw=0)
        title = f"{change:g} EUR for each unit: mean of {len(costs)} trials, 95 %"
        ax.set_title(title, loc="left", fontsize=11)
        ax.set(xlabel="day", ylim=(0, None))
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("EUR above the best plan, changes included")
    axes[0].legend(frameon=False)
    return figure


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--trials", type=int, default=100, help="independent trials")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the figure")
    chosen = parser.parse_args()
    results = run(chosen.trials, chosen.days)
    for found, change in zip(results, CHANGES, strict=True):
        for name, (costs, units) in found.items():
            mean, low, high = band(costs[:, -1])
            said = f"{mean:,.0f} EUR ({low:,.0f} to {high:,.0f}), {units.mean():.0f} changed units"
            print(f"{change:g} EUR, {name}: {said}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    draw(results).savefig(chosen.out / "switching.png", dpi=110)


if __name__ == "__main__":
    main()
