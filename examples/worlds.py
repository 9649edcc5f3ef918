"""Six policies in eight environments at three scales, as defined in worlds.toml.

Prints a table of the regret of every policy in every cell, names the cells where GenAdaINF is
significantly worse than GenLBINFV in the mean, and draws worlds.png.
"""

import argparse
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from numpy.typing import ArrayLike

from multiplay import ActionSet, Adversarial, Environment, Result
from multiplay._support.checks import unit_interval
from multiplay.environments import World
from multiplay.experiments.experiment import build
from multiplay.results.comparison import simultaneous
from multiplay.results.intervals import LEVEL, interval, standard_error
from multiplay.results.plots import style
from multiplay.types import FloatArray, IntArray

HERE = Path(__file__).parent
REFERENCE = "GenLBINFV"
Cells = dict[tuple[str, int], Result]


@dataclass(frozen=True, eq=False)
class Punishing(Environment):
    """Adaptive adversary: l_i(t) = costs_i + penalty * (share of arm i in the last rounds).

    The share is the average of a_i / n_i over the last ``memory`` rounds. All units of an arm lose
    the same. ``costs`` has one number for each trial and arm.
    """

    costs: ArrayLike
    penalty: float
    memory: int

    @property
    def adaptive(self) -> bool:
        """Whether losses depend on the actions."""
        return True

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """Losses stay in [0, 1]."""
        unit_interval("costs, penalty", np.asarray(self.costs) + self.penalty)

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        costs, most = np.asarray(self.costs)[list(trials)], np.maximum(actions.n, 1)

        def losses(t: int, past: IntArray) -> FloatArray:
            share = past[-self.memory :].sum(axis=0) / (self.memory * most)
            return np.asarray(costs + self.penalty * share)

        return Adversarial(losses).open(actions, horizon, trials, seed)


def play(plain: dict[str, Any]) -> Iterator[tuple[tuple[str, int], Result]]:
    """Yield the result of every environment at every scale."""
    rest = {key: value for key, value in plain.items() if key not in ("scales", "worlds")}
    actions = plain["actions"]
    for world, environment in plain["worlds"].items():
        for scale in plain["scales"]:
            scaled = {key: [scale * one for one in actions[key]] for key in ("supply", "demand")}
            cell = {"actions": {**actions, **scaled}, "environment": environment, "record": 1}
            yield (world, scale), build({**rest, **cell}, HERE).run()


def rows(world: str, scale: int, result: Result) -> str:
    """Return a row of the table for each policy."""
    lines = []
    for policy in result.policies:
        final = result.final(policy)
        median, high = np.quantile(final, [0.5, 0.95])
        numbers = f"{final.mean():.0f} ± {standard_error(final):.0f} | {median:.0f} | {high:.0f}"
        lines.append(f"| {world} | {scale} | {policy} | {numbers} | {final.max():.0f} |")
    return "\n".join(lines)


def worse(results: Cells, level: float) -> list[str]:
    """Return the cells where the mean of GenAdaINF is above that of GenLBINFV, paired by trial."""
    named = []
    for (world, scale), result in results.items():
        for policy in _ours(result):
            more = interval(result.final(policy) - result.final(REFERENCE), level)
            if more.low > 0:
                text = f"{more.mean:.0f} more ({more.low:.0f} to {more.high:.0f})"
                named.append(f"- {world}, scale {scale}, {policy}: {text}")
    return named or ["- none"]


def draw(results: Cells, plain: dict[str, Any]) -> Figure:
    """Draw a panel for each cell: means with intervals, and the 95 % quantiles as open marks."""
    worlds, scales = list(plain["worlds"]), plain["scales"]
    figure = Figure(figsize=(12, 1.55 * len(worlds) + 0.9), layout="constrained")
    axes = figure.subplots(len(worlds), len(scales), squeeze=False, sharey=True)
    for (world, scale), result in results.items():
        ax = axes[worlds.index(world), scales.index(scale)]
        _panel(ax, result, scale)
        ax.set_title(f"{world}, units times {scale}", fontsize=9, loc="left")
    for ax in axes[-1]:
        ax.set_xlabel(f"pseudo-regret after {plain['horizon']} rounds")
    figure.suptitle(
        f"Mean with its 95 % interval (filled) and 95 % quantile (open), {plain['trials']} trials",
        x=0.01,
        ha="left",
        fontsize=11,
    )
    return figure


def _panel(ax: Axes, result: Result, scale: int) -> None:
    for place, policy in enumerate(result.policies):
        final, (colour, _) = result.final(policy), style(place)
        mean, low, high = interval(final)
        ax.hlines(place, low, high, color=colour)
        ax.plot(mean, place, "o", color=colour, markersize=5)
        ax.plot(np.quantile(final, 0.95), place, "o", mfc="none", color=colour, markersize=6)
    width = 20 * scale  # linear up to here, then logarithmic, on both sides of 0
    ax.set_xscale("asinh", linear_width=width)
    ax.set_xticks(_ticks(*ax.get_xlim(), width))
    ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    ax.minorticks_off()
    ax.set_yticks(range(len(result.policies)), result.policies, fontsize=8)
    ax.set_ylim(len(result.policies) - 0.5, -0.5)
    ax.axvline(0, color="grey", linewidth=0.8)
    ax.tick_params(axis="x", labelsize=8)
    ax.grid(axis="x", alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)


def _ticks(low: float, high: float, width: float) -> list[float]:
    """Return 0, powers of ten and their triples, the largest first, as far as they have room."""
    sizes = [times * 10.0**power for times in (1, 3) for power in range(6, 0, -1)]
    room, kept = 0.13 * (np.arcsinh(high / width) - np.arcsinh(low / width)), [0.0]
    for tick in [sign * size for size in sizes for sign in (1, -1)]:
        apart = np.abs(np.arcsinh(np.array(kept) / width) - np.arcsinh(tick / width)).min()
        if low <= tick <= high and apart >= room:
            kept.append(tick)
    return kept


def _ours(result: Result) -> list[str]:
    return [policy for policy in result.policies if policy.startswith("GenAdaINF")]


def main() -> None:
    """Run from the command line."""
    plain = tomllib.loads((HERE / "worlds.toml").read_text())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=plain["horizon"], help="rounds")
    parser.add_argument("--trials", type=int, default=plain["trials"], help="independent trials")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of worlds.png")
    parser.add_argument(
        "--anytime", action="store_true", help="play GenLBINFV only, with and without a horizon"
    )
    parser.add_argument("--epsilon", type=float, default=0.2, help="of GenLBINFV with --anytime")
    chosen = parser.parse_args()
    plain |= {"horizon": chosen.horizon, "trials": chosen.trials}
    if chosen.anytime:
        options = {"prediction": ["ls", "gd"], "anytime": [False, True], "epsilon": chosen.epsilon}
        plain |= {"policies": {"GenLBINFV": {"type": "GenLBINFV", **options}}, "scales": [1]}
    print("| world | scale | policy | mean ± se | median | 95 % quantile | largest |")
    print("|---" * 7 + "|")
    results: Cells = {}
    for (world, scale), result in play(plain):
        results[world, scale] = result
        print(rows(world, scale, result), flush=True)
    if chosen.anytime:
        return
    comparisons = sum(len(_ours(result)) for result in results.values())
    print(f"\nWorse than {REFERENCE} in the mean, all {comparisons} intervals at once 95 %:\n")
    print("\n".join(worse(results, simultaneous(comparisons))))
    print("\nThe same, each interval alone 95 % (one in 40 is here by chance):\n")
    print("\n".join(worse(results, LEVEL)))
    chosen.out.mkdir(parents=True, exist_ok=True)
    draw(results, plain).savefig(chosen.out / "worlds.png", dpi=100)


if __name__ == "__main__":
    main()
