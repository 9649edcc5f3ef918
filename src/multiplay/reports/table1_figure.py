"""The figure of Table 1: regret in three regimes, and how time grows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from multiplay.experiments.table1 import REGIMES, ROWS, Measurements
from multiplay.results.svg import WIDTH, thinned
from multiplay.types import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Table 1 of the paper, measured"
HEADINGS = {
    "stochastic": "Stochastic",
    "corrupted": "Corrupted after a fifth of the rounds",
    "adversarial": "Adversarial: all means jump together",
    "growth": "Time on larger and larger sets",
}
DOTS = [(0, (1, 1.5)), (0, (4, 1.5, 1, 1.5))]  # of the two bounds
MAGNITUDES = 3  # powers of ten that a logarithmic scale of regret shows


def figure(measured: Measurements) -> Figure:
    """Return all panels, with one legend."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(11, 8.6), layout="constrained")
    for ax, draw in zip(made.subplots(2, 2).flat, _panels(measured).values(), strict=True):
        draw(ax)
    made.suptitle(f"{TITLE}: {measured.instance.title}", fontsize=12, parse_math=False)
    _add_legend(made, measured, loc="outside lower center", ncols=4)
    return made


def single_panels(measured: Measurements) -> dict[str, tuple[Callable[[], Figure], str]]:
    """Return what draws each panel in a figure of its own, with words for it; the legend first."""
    from matplotlib.figure import Figure

    def legend() -> Figure:
        made = Figure(figsize=(WIDTH, 1.9))
        _add_legend(made, measured, loc="center", ncols=2)
        return made

    def alone(draw: Callable[[Axes], None]) -> Figure:
        made = Figure(figsize=(WIDTH, 3.4), layout="constrained")
        draw(made.add_subplot())
        return made

    return {
        "legend": (legend, "Colour and dashes of every row."),
        **{
            name: (partial(alone, draw), HEADINGS[name]) for name, draw in _panels(measured).items()
        },
    }


def _panels(measured: Measurements) -> dict[str, Callable[[Axes], None]]:
    regret = {regime: partial(_draw_regret, measured, regime) for regime in REGIMES}
    return {**regret, "growth": partial(_draw_growth, measured)}


def _draw_regret(measured: Measurements, regime: str, ax: Axes) -> None:
    """Draw mean and band of every row against rounds, with bounds and marks where there are any."""
    from multiplay.results.intervals import band
    from multiplay.results.plots import draw_marks

    ax.set_title(HEADINGS[regime], loc="left", fontsize=11, pad=18)
    result = measured.outcomes[regime].result
    if result is None:
        ax.text(0.5, 0.5, "No row plays here.", ha="center", transform=ax.transAxes)
        ax.set_axis_off()
        return
    regret, looks = thinned(result.regret), _looks(measured)
    rounds = regret["round"].values
    mean, low, high = band(regret.transpose("policy", "trial", "round").values, axis=1)
    for place, name in enumerate(result.policies):
        ax.plot(rounds, mean[place], **looks[name], zorder=3)
        if result.regret.sizes["trial"] > 1:
            colour = looks[name]["color"]
            ax.fill_between(rounds, low[place], high[place], color=colour, alpha=0.15, lw=0)
    for name, bound in measured.bounds.items() if regime == "stochastic" else ():
        ax.plot(rounds, bound.curve(rounds.astype(float)), **looks[name], zorder=2)
    _scale(ax, rounds, mean, jumps=regime == "adversarial")
    ax.set_ylabel(f"cumulative {result.measure}")
    _tidy(ax)
    draw_marks(ax, rounds, result.marks)


def _draw_growth(measured: Measurements, ax: Axes) -> None:
    looks = _looks(measured)
    for row in ROWS:
        grown = measured.growth[row.name]
        ax.plot(grown.units, grown.time, **looks[row.name], marker=".", markersize=5)
    ax.set_title(HEADINGS["growth"], loc="left", fontsize=11, pad=18)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("units, in the paper's transport and multiples of it")
    ax.set_ylabel("µs for each trial and round")
    _tidy(ax)


def _scale(ax: Axes, rounds: IntArray, mean: FloatArray, jumps: bool) -> None:
    """Choose logarithms where they can be taken: of regret, and of rounds for phases that grow."""
    largest = float(mean.max())
    if largest > 0 and mean.min() >= 0:
        ax.set_yscale("log", nonpositive="clip")
        ax.set_ylim(largest / 10**MAGNITUDES, 2 * largest)
    if jumps:
        ax.set_xscale("log")
    ax.set_xlim(rounds[0] if jumps else 0, rounds[-1])
    ax.set_xlabel("round, log scale" if jumps else "round")


def _looks(measured: Measurements) -> dict[str, dict[str, Any]]:
    """Return how lines are drawn: dashed for totals, solid for units, bounds as dots in ink."""
    from matplotlib import rcParams

    from multiplay.results.plots import COLOURS

    rows = {
        row.name: {"color": COLOURS[place], "ls": "--" if row.sees_totals else "-", "lw": 1.6}
        for place, row in enumerate(ROWS)
    }
    ink = rcParams["text.color"]
    bounds = {
        name: {"color": ink, "ls": dots, "lw": 1.2}
        for name, dots in zip(measured.bounds, DOTS, strict=False)
    }
    return {**rows, **bounds}


def _add_legend(figure: Figure, measured: Measurements, **where: Any) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], label=name, **looks) for name, looks in _looks(measured).items()]
    title = "dashed: sees totals only; solid: sees every unit; bands: 95 % confidence"
    figure.legend(
        handles=lines,
        title=title,
        title_fontsize=8,
        fontsize=9,
        frameon=False,
        handlelength=3.2,
        **where,
    )


def _tidy(ax: Axes) -> None:
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
