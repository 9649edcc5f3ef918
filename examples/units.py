"""Regret as all supplies and demands of the paper's experiment are multiplied.

Prints the numbers of docs/adainf.md, and draws units.png: the stochastic regime, the corrupted
regime, and the 95 % quantile of the corrupted regime.
"""

import argparse
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

import multiplay as mp
from multiplay.experiments import paper
from multiplay.results.intervals import interval, standard_error
from multiplay.results.plots import style

POLICIES: dict[str, mp.Policy] = {
    "GenCTS": mp.GenCTS(),
    "GenLBINFV": mp.GenLBINFV(epsilon=0.01),
    "GenAdaINF, caution 0": mp.GenAdaINF(caution=0),
    "GenAdaINF, caution 0.5": mp.GenAdaINF(caution=0.5),
    "GenAdaINF, caution 1": mp.GenAdaINF(caution=1),
}
TABLE_ONLY: dict[str, mp.Policy] = {
    "GenAdaINF, caution 0.75": mp.GenAdaINF(caution=0.75),
    "GenLBINFV, initial units": mp.GenLBINFV(epsilon=0.01, initial="units"),
}
COLUMNS = ["regime", "scale", "policy", "mean", "se", "sd", "95 %", "ci low", "ci high"]


def run(scales: list[int], horizon: int, trials: int) -> pd.DataFrame:
    """One row for each regime, scale and policy."""
    rows = []
    for regime, environment in paper.environments(horizon, trials, seed=0).items():
        for scale in scales:
            plans = mp.Transport(scale * paper.PLANS.supply, scale * paper.PLANS.demand)
            policies = POLICIES | TABLE_ONLY
            result = mp.simulate(plans, environment, policies, horizon, trials, record=1)
            for policy in policies:
                final = result.final(policy)
                mean, *ends = interval(final)
                sd, high = final.std(ddof=1), pd.Series(final).quantile(0.95)
                row = (regime, scale, policy, mean, standard_error(final), sd, high, *ends)
                rows.append(row)
                print("| " + " | ".join(map(_text, row[:7])) + " |", flush=True)
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(table: pd.DataFrame, horizon: int, trials: int) -> Figure:
    """Draw regret over the scale; under corruption, divided by the scale."""
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    stochastic, corrupted = (table[table["regime"] == regime] for regime in paper.REGIMES)
    _lines(left, stochastic, "mean", per_scale=False)
    _lines(middle, corrupted, "mean", per_scale=True)
    _lines(right, corrupted, "95 %", per_scale=True)
    left.set(yscale="log", title="Stochastic: mean regret")
    middle.set(title="Corrupted: mean regret / scale")
    right.set(title="Corrupted: 95 % quantile of regret / scale")
    for ax in (left, middle, right):
        ax.set(xscale="log", xlabel="scale: supplies and demands, times those of the paper")
        ax.set_xticks(sorted(set(table["scale"])))
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.minorticks_off()
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(
        *left.get_legend_handles_labels(), ncols=5, frameon=False, loc="outside lower left"
    )
    text = f"{horizon} rounds, {trials} trials; bars are 95 % intervals"
    figure.suptitle(text, x=0.01, ha="left", fontsize=11)
    return figure


def _lines(ax: Axes, table: pd.DataFrame, column: str, per_scale: bool) -> None:
    for number, policy in enumerate(POLICIES):
        rows = table[table["policy"] == policy]
        divisor = rows["scale"] if per_scale else 1
        values = rows[column] / divisor
        ends = rows["ci low"] / divisor, rows["ci high"] / divisor
        bars = [values - ends[0], ends[1] - values] if column == "mean" else None
        colour, dashes = style(number)
        ax.errorbar(
            rows["scale"],
            values,
            bars,
            label=policy,
            color=colour,
            linestyle=dashes,
            marker="os^Dv"[number],
            markersize=5,
            capsize=3,
        )
    if per_scale:
        ax.axhline(0, color="grey", linewidth=0.8)


def _text(value: str | float) -> str:
    return f"{value:.0f}" if isinstance(value, float) else str(value)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=64, help="largest factor, a power of two")
    parser.add_argument("--horizon", type=int, default=10_000, help="rounds")
    parser.add_argument("--trials", type=int, default=40, help="independent trials")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of units.png")
    chosen = parser.parse_args()
    print("| " + " | ".join(COLUMNS[:7]) + " |\n" + "|---" * 7 + "|")
    scales = [2**k for k in range(chosen.largest.bit_length())]
    table = run(scales, chosen.horizon, chosen.trials)
    chosen.out.mkdir(parents=True, exist_ok=True)
    draw(table, chosen.horizon, chosen.trials).savefig(chosen.out / "units.png", dpi=110)


if __name__ == "__main__":
    main()
