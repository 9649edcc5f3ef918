"""The mismatched sampling paradox: two disjoint plans of m arms, with Bernoulli losses.

A unit costs 0.1 on every arm of one plan and 0.3 on every arm of the other. Samplers whose
likelihood is right stay with the plan that they try first; normal draws do not. Prints the regret
over time, by m and by units, and draws mismatch.png. The instance is that of Zhang and Combes,
arXiv 2410.05441, with losses in place of rewards.
"""

import argparse
from collections.abc import Iterable
from fractions import Fraction
from math import comb, factorial, floor
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import multiplay as mp
from multiplay.results.intervals import interval
from multiplay.results.plots import style
from multiplay.types import FloatArray, IntArray

BERNOULLI: dict[str, mp.Policy] = {  # the exact posterior, with a uniform prior and with Jeffreys'
    "GenCTS()": mp.GenCTS(),
    "BootstrapCTS()": mp.BootstrapCTS(),
    "BootstrapCTS(w=0.5)": mp.BootstrapCTS(0.5),
}
OTHERS: dict[str, mp.Policy] = {
    "GaussianCTS()": mp.GaussianCTS(),
    "BGCTS()": mp.BGCTS(),
    "ESCB()": mp.ESCB(),
}
POLICIES = BERNOULLI | OTHERS
MANY = 50  # arms of a plan
CHEAP, DEAR = 0.1, 0.3
Table = dict[str, dict[str, FloatArray]]  # the final regret by column and policy


def two_plans(m: int, units: int = 1) -> mp.Path:
    """Return all ways to send units over two disjoint paths of m arcs; arms are arcs."""
    arcs = [
        (f"{side}{i}" if i else "from", f"{side}{i + 1}" if i + 1 < m else "to")
        for side in ("dear", "cheap")
        for i in range(m)
    ]
    return mp.Path(arcs, "from", "to", units)


def play(
    name: str, m: int, horizon: int, trials: int, units: int = 1, scale: float = 1.0
) -> mp.Result:
    """Return the result of one policy, with mean losses times ``scale``."""
    world = mp.Stochastic(mp.Bernoulli(scale * np.repeat([DEAR, CHEAP], m)))
    rounds = np.unique(np.geomspace(1, horizon, 60).astype(int)).tolist()
    one = {name: POLICIES[name]}
    return mp.simulate(two_plans(m, units), world, one, horizon, trials, record=rounds)


def waiting(m: int) -> float:
    """Return the rounds until ``GenCTS`` tries the cheap plan, once it knows the dear one well.

    The inverse of the probability that m uniform draws of the unseen arms are less than m * DEAR in
    all (Irwin and Hall), in exact arithmetic.
    """
    level = Fraction(str(DEAR)) * m
    terms = ((-1) ** k * comb(m, k) * (level - k) ** m for k in range(floor(level) + 1))
    return float(factorial(m) / sum(terms))


def by_arms(sizes: list[int], horizon: int, trials: int) -> Table:
    """Return the final regret for numbers of arms in a plan."""
    return {
        f"m = {m}": {name: play(name, m, horizon, trials).final(name) for name in POLICIES}
        for m in sizes
    }


def by_units(units: list[int], horizon: int, trials: int) -> Table:
    """Return the final regret of a unit, for the losses above and for a fifth of them."""
    return {
        f"units: {k}, losses {scale * CHEAP:.2g} and {scale * DEAR:.2g}": {
            name: play(name, MANY, horizon, trials, k, scale).final(name) / k
            for name in POLICIES
            if name != "ESCB()"  # it lists all actions
        }
        for scale in (1.0, 0.2)
        for k in units
    }


def printed(table: Table, lost: dict[str, float]) -> str:
    """Return the means with intervals; in brackets, the trials that lost more than a half."""
    names = list(next(iter(table.values())))
    lines = ["| regret | " + " | ".join(names) + " |", "|---" * (1 + len(names)) + "|"]
    for column, finals in table.items():
        cells = [
            f"{shown(values)} [{(values > lost[column] / 2).sum()}]" for values in finals.values()
        ]
        lines.append(f"| {column} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def shown(values: FloatArray) -> str:
    """Return the mean, and half the width of its 95 % interval."""
    mean, low, high = interval(values)
    return f"{mean:.0f} ± {(high - low) / 2:.0f}"


def draw(curves: dict[str, mp.Result], arms: Table, sizes: list[int], horizon: int) -> Figure:
    """Draw regret over rounds and by the number of arms, with 95 % bands of the means."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for number, (name, result) in enumerate(curves.items()):
        colour, dashes = style(number)
        regret = result.regret.sel(policy=name).transpose("trial", "round")
        band(left, regret["round"].values, regret.values.T, colour, dashes, name)
        band(right, np.array(sizes), [finals[name] for finals in arms.values()], colour, dashes, "")
    left.set(xscale="log", xlabel=f"round, m = {MANY}", ylabel="regret, 95 % bands of the mean")
    right.set(xlabel="m, arms of a plan", ylabel=f"regret after {horizon} rounds")
    for ax in (left, right):
        ax.set_yscale("log")
        ax.set_ylim(bottom=1)
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False, fontsize=9)
    return figure


def band(
    ax: Axes, x: IntArray, values: Iterable[FloatArray], colour: str, dashes: Any, name: str
) -> None:
    """Draw the means of all trials at each x, with their intervals."""
    mean, low, high = np.array([interval(one) for one in values]).T
    ax.plot(x, np.maximum(mean, 0.1), color=colour, linestyle=dashes, label=name)
    ax.fill_between(x, np.maximum(low, 0.1), np.maximum(high, 0.1), color=colour, alpha=0.1, lw=0)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=20_000, help="rounds with m = 50")
    parser.add_argument("--trials", type=int, default=30, help="independent trials")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of mismatch.png")
    chosen = parser.parse_args()
    horizon, trials = chosen.horizon, chosen.trials
    curves = {name: play(name, MANY, horizon, trials) for name in POLICIES}
    long = {f"{horizon} rounds": {name: one.final(name) for name, one in curves.items()}}
    print(printed(long, dict.fromkeys(long, 0.2 * MANY * horizon)), flush=True)
    sizes, half = list(range(5, 66, 15)), horizon // 2
    arms = by_arms(sizes, half, trials)
    print("\n" + printed(arms, {f"m = {m}": 0.2 * m * half for m in sizes}), flush=True)
    rounds = ", ".join(f"{waiting(m):.3g} with m = {m}" for m in sizes)
    print(f"\nRounds until GenCTS first plays the cheap plan after the dear one: {rounds}")
    few = horizon // 8
    units = by_units([1, 2, 4, 8], few, trials)
    lost = {c: 0.2 * MANY * few * (0.2 if c.endswith("0.06") else 1) for c in units}
    print("\n" + printed(units, lost))
    chosen.out.mkdir(parents=True, exist_ok=True)
    draw(curves, arms, sizes, half).savefig(chosen.out / "mismatch.png", dpi=110)


if __name__ == "__main__":
    main()
