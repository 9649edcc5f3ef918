"""Figures of regret."""

import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from xarray import DataArray

from multiplay.errors import InvalidInput
from multiplay.results.intervals import LEVEL, band
from multiplay.types import FloatArray, IntArray

# Okabe and Ito's colours, told apart by every kind of eye; the dashes survive a grey print
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
DASHES: list[Any] = [
    *("-", "--", "-."),
    (0, (1, 1)),
    (0, (5, 1)),
    (0, (3, 1, 1, 1)),
    (0, (5, 3, 1, 3)),
]

SCALES = ("linear", "log")
BOUND = "#444444"
WIDTH, HEIGHT, LINE = 6.4, 3.5, 0.19  # inches: of a figure without its legend, of a line there
MANY_POINTS = 100_000  # more are drawn as pixels even in a vector figure


class Bound(Protocol):
    """What the theory says about regret: a lower bound, or a guarantee."""

    @property
    def curve(self) -> Callable[[FloatArray], FloatArray]:
        """From numbers of rounds to regret."""


def plot_regret(
    regret: DataArray,
    ax: Axes | None = None,
    title: str | None = None,
    trials: bool = False,
    x: str = "linear",
    y: str = "linear",
    width: float = WIDTH,
    bounds: Mapping[str, Bound] | None = None,
) -> Figure:
    """Draw the mean over trials with its confidence band, into ``ax`` or a figure of its own."""
    bounds = bounds or {}
    check_choice("x", x, SCALES)
    check_choice("y", y, SCALES)
    count, rounds = regret.sizes["trial"], regret["round"].values
    mean, low, high = band(regret.transpose("policy", "trial", "round").values, axis=1)
    if y == "log" and not (mean > 0).any():
        raise InvalidInput("y", "linear", "log, where no mean is positive", "Leave it out.")
    legend = Legend([*map(str, regret["policy"].values), *bounds], width)
    if ax is None:
        size = (width, HEIGHT + LINE * legend.rows)
        ax = Figure(figsize=size, layout="constrained").add_subplot()

    lines: list[Line2D] = []
    marker = "o" if len(rounds) == 1 else ""
    for number, curves in enumerate(regret.values):
        colour, dashes = style(number)
        curve = mean[number]
        lines += ax.plot(
            rounds, _shown(curve, y), color=colour, ls=dashes, lw=1.8, marker=marker, zorder=3
        )
        if count > 1:
            ends = low[number], high[number]
            ax.fill_between(rounds, *ends, color=colour, alpha=0.2, lw=0, zorder=2)
        if trials:
            _draw_trials(ax, rounds, _shown(curves, y), colour)
    for number, bound in enumerate(bounds.values()):
        curve = np.asarray(bound.curve(rounds.astype(float)))
        dots = (0, (1 + 2 * number, 2))
        lines += ax.plot(rounds, _shown(curve, y), color=BOUND, ls=dots, lw=1.4, zorder=3)

    cut = ((mean if count == 1 else low) <= 0).any() or (trials and (regret.values <= 0).any())
    name = regret.attrs.get("long_name", "regret")
    label = f"cumulative {'pseudo-regret' if name == 'regret' else name}"
    ax.set_ylabel(f"{label}, where positive" if y == "log" and cut else label)
    ax.set_xlabel("round, log scale" if x == "log" else "round")
    _scale(ax, rounds, mean, x, y)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    legend.add(ax, lines, count)
    if title:
        ax.set_title(title, loc="left", fontsize=11, parse_math=False)
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def style(number: int) -> tuple[str, Any]:
    """Return colour and dashes of a policy: the first 49 differ, and neighbours in both.

    Examples
    --------
    >>> style(0), style(7)
    (('#0072B2', '-'), ('#0072B2', '--'))
    """
    turn = number // len(COLOURS)
    return COLOURS[number % len(COLOURS)], DASHES[(number + turn) % len(DASHES)]


def check_choice(argument: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise ``InvalidInput`` unless ``value`` is one of those allowed."""
    if value not in allowed:
        raise InvalidInput(argument, " or ".join(allowed), repr(value), "Choose one of them.")


class Legend:
    """A legend below the axes, in as many columns as have room for the longest name."""

    def __init__(self, names: list[str], width: float) -> None:
        room = int(14 * width)  # characters in a line
        self.labels = [textwrap.fill(name, room - 6) or name for name in names]
        longest = max(len(line) for label in self.labels for line in label.split("\n"))
        self.columns = max(1, min(4, len(names), room // (longest + 6)))
        lines = sum(label.count("\n") + 1 for label in self.labels)
        self.rows = 2 + -(-lines // self.columns)

    def add(self, ax: Axes, lines: list[Line2D], trials: int) -> None:
        """Put it there, in letters as they are: a name may have dollars."""
        band = f"mean of {trials} trials, {LEVEL:.0%} confidence band"
        legend = ax.legend(
            lines,
            self.labels,
            title=band if trials > 1 else "one trial",
            loc="upper center",
            bbox_to_anchor=(0.5, 0),
            borderaxespad=4,  # in units of the font: below the label of the axis
            ncols=self.columns,
            frameon=False,
            fontsize=9,
            title_fontsize=8,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)


def _shown(values: FloatArray, y: str) -> FloatArray:
    """Leave out what has no logarithm."""
    return np.where(values > 0, values, np.nan) if y == "log" else values


def _draw_trials(ax: Axes, rounds: IntArray, curves: FloatArray, colour: str) -> None:
    paths = [np.column_stack([rounds, curve]) for curve in curves]
    alpha = max(0.1, min(0.5, 5 / len(curves)))
    lines = LineCollection(paths, colors=colour, linewidths=0.5, alpha=alpha, zorder=1)
    lines.set_rasterized(curves.size > MANY_POINTS)
    ax.add_collection(lines)


def _scale(ax: Axes, rounds: IntArray, mean: FloatArray, x: str, y: str) -> None:
    left = 0
    if x == "log":
        ax.set_xscale("log")
        left = min(rounds[0], rounds[-1] / 10)
    ax.set_xlim(left, rounds[-1])
    if y == "log":
        ax.set_yscale("log", nonpositive="clip")  # a band that reaches below 0 goes to the bottom
        ax.set_ylim(bottom=0.5 * mean[mean > 0].min())
