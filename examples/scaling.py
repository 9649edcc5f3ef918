"""Regret and time as the number of units grows, for native and duplicated methods.

The supplies and demands of the paper's experiment are multiplied by 1, 2, 4, ..., 64. Copies
multiply with them: CTS and LBINFV have 20, 40, 80, ... arms where GenCTS and GenLBINFV have 6.
GenAdaINF, which is not in the paper, is designed for many units.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

import multiplay as mp
from multiplay.experiments import paper
from multiplay.results.intervals import interval
from multiplay.results.plots import style

POLICIES = {**paper.POLICIES, "GenAdaINF": mp.GenAdaINF()}


def run(scales: list[int], horizon: int, trials: int) -> pd.DataFrame:
    """One row for each scale and policy: final regret, its interval, and time per round."""
    costs, rows = paper.costs(trials, seed=0), []
    world = mp.Stochastic(mp.Uniform(0, 2 * costs))
    mp.simulate(paper.PLANS, world, POLICIES, 60, trials)  # compiles the kernels
    for scale in scales:
        plans = mp.Transport(scale * paper.PLANS.supply, scale * paper.PLANS.demand)
        result = mp.simulate(plans, world, POLICIES, horizon, trials, record=1)
        seconds = result.dataset["seconds"].mean("trial")
        for policy in result.policies:
            mean, low, high = interval(result.final(policy))
            microseconds = 1e6 * float(seconds.sel(policy=policy)) / horizon
            rows.append((scale, policy, mean, low, high, microseconds))
    columns = ["scale", "policy", "regret", "ci low", "ci high", "µs per round"]
    return pd.DataFrame(rows, columns=columns)


def draw(table: pd.DataFrame, horizon: int, trials: int) -> Figure:
    """Regret and time over the scale, on logarithmic axes, with the exponents in the legend."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for number, (policy, rows) in enumerate(table.groupby("policy", sort=False)):
        colour, dashes = style(number)
        error = [rows["regret"] - rows["ci low"], rows["ci high"] - rows["regret"]]
        for ax, column, bars in ((left, "regret", error), (right, "µs per round", None)):
            late = rows[rows["scale"] >= rows["scale"].median()]
            slope = np.polyfit(np.log(late["scale"]), np.log(late[column]), 1)[0]
            ax.errorbar(
                rows["scale"],
                rows[column],
                bars,
                label=f"{policy}: $x^{{{slope:.2f}}}$",
                color=colour,
                linestyle=dashes,
                marker="os^Dv"[number],
                markersize=5,
                capsize=3,
            )
    left.set_ylabel(f"pseudo-regret after {horizon} rounds, 95 % intervals")
    right.set_ylabel("µs per trial and round")
    for ax in (left, right):
        ax.set(xscale="log", yscale="log", xlabel="supplies and demands, times those of the paper")
        ax.set_xticks(sorted(set(table["scale"])))
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.minorticks_off()
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=9, title="exponents of the upper half", title_fontsize=8)
    figure.suptitle(f"More units, {trials} trials", x=0.01, ha="left", fontsize=11)
    return figure


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=64, help="largest factor, a power of two")
    parser.add_argument("--horizon", type=int, default=2000, help="rounds")
    parser.add_argument("--trials", type=int, default=20, help="independent trials")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of scaling.png")
    chosen = parser.parse_args()
    scales = [2**k for k in range(chosen.largest.bit_length())]
    table = run(scales, chosen.horizon, chosen.trials)
    print(table.to_string(index=False, float_format="{:.1f}".format))
    chosen.out.mkdir(parents=True, exist_ok=True)
    draw(table, chosen.horizon, chosen.trials).savefig(chosen.out / "scaling.png", dpi=110)


if __name__ == "__main__":
    main()
