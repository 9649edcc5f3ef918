"""Figures of regret, and the colours and dashes of their curves."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from os import PathLike
from typing import Any, Protocol

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from xarray import DataArray

from multiplay._support.atomic_files import as_path, write_whole
from multiplay.errors import InvalidInput
from multiplay.results.intervals import LEVEL, band
from multiplay.results.measured import FIXED
from multiplay.types import FloatArray, IntArray

SCALES = ("linear", "log")
BOUND = "#444444"
WIDTH, HEIGHT, LINE = 6.4, 3.5, 0.19  # inches: of a figure without its legend, of a line there
ABOVE = 18  # points between the axes and the title, where a mark has its text
MANY_POINTS = 100_000  # more are drawn as pixels even in a vector figure
WIDEST = 2.0  # a band that is this many times as high as all curves would hide them
MARGIN = 0.25  # of the height of the curves, above and below them where the axis is cut
DPI = 150
MOST_LABELS = 14  # below bars

# Okabe and Ito's colours, which colour-blind readers can tell apart, then those that stay farthest
# apart for all kinds of colour vision and are visible on white and on black. Dashes tell curves
# apart in greyscale prints.
COLOURS = [
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8648FD"),
    *("#BAB567", "#95572D", "#4D6668", "#7F88F5", "#634ECF", "#DA9FA3", "#6F608C", "#C5605E"),
    *("#B08341", "#82B87E", "#C740C0", "#7DBCCE", "#FE9043", "#AC82C0", "#A14F07", "#FC88F4"),
]
DASHES: list[Any] = [
    *("-", "--", "-."),
    (0, (1, 1)),
    (0, (5, 1)),
    (0, (3, 1, 1, 1)),
    (0, (5, 3, 1, 3)),
]

EVENLY = (0.7548776662466927, 0.5698402909980532)  # their multiples modulo 1 fill a square evenly
DARKEST, LIGHTEST, CHROMA = 0.5, 0.74, 0.1  # in Oklab: seen on white and on black


class Drawing(Figure):
    """A figure that notebooks show, without pyplot and ``%matplotlib inline``."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


class Bound(Protocol):
    """A bound on the regret: a lower bound, or a guarantee."""

    @property
    def curve(self) -> Callable[[FloatArray], FloatArray]:
        """The function from numbers of rounds to regret."""


def plot_regret(
    regret: DataArray,
    ax: Axes | None = None,
    title: str | None = None,
    trials: bool = False,
    x: str = "linear",
    y: str = "linear",
    width: float = WIDTH,
    bounds: Mapping[str, Bound] | None = None,
    marks: Mapping[int, str] | None = None,
    numbers: Sequence[int] | None = None,
) -> Figure:
    """Draw the mean over trials with its confidence band, into ``ax`` or a new figure.

    The legend has the lowest final mean first. ``marks`` are thin lines at some rounds, with a
    text. ``numbers`` has the number of each policy, which chooses its colour and dashes.
    """
    bounds, marks = bounds or {}, marks or {}
    check_choice("x", x, SCALES)
    check_choice("y", y, SCALES)
    count, rounds = regret.sizes["trial"], regret["round"].values
    mean, low, high = band(regret.transpose("policy", "trial", "round").values, axis=1)
    if y == "log" and not (mean > 0).any():
        raise InvalidInput("y", "linear", "log, where no mean is positive", "Leave it out.")
    order = [*np.argsort(mean[:, -1], kind="stable"), *range(len(mean), len(mean) + len(bounds))]
    promised = [np.asarray(bound.curve(rounds.astype(float))) for bound in bounds.values()]
    limits = None if y == "log" or count == 1 else _limits([mean, *promised], low, high)
    legend = Legend([*map(str, regret["policy"].values), *bounds], order, width)
    if limits:
        reach = f"{low.min():,.0f} to {high.max():,.0f}"
        legend.note = f"\naxis cut to the means: bands reach from {reach}"
    if ax is None:
        size = (width, HEIGHT + LINE * (legend.rows + bool(limits)))
        ax = Drawing(figsize=size, layout="constrained").add_subplot()

    lines: list[Line2D] = []
    marker = "o" if len(rounds) == 1 else ""
    for number, curves in enumerate(regret.values):
        colour, dashes = style(number if numbers is None else numbers[number])
        curve = mean[number]
        lines += ax.plot(
            rounds, _shown(curve, y), color=colour, ls=dashes, lw=1.8, marker=marker, zorder=3
        )
        if count > 1:
            ends = low[number], high[number]
            ax.fill_between(rounds, *ends, color=colour, alpha=0.2, lw=0, zorder=2)
        if trials:
            _draw_trials(ax, rounds, _shown(curves, y), colour)
    for number, curve in enumerate(promised):
        dots = (0, (1 + 2 * number, 2))
        lines += ax.plot(rounds, _shown(curve, y), color=BOUND, ls=dots, lw=1.4, zorder=3)

    cut = ((mean if count == 1 else low) <= 0).any() or (trials and (regret.values <= 0).any())
    name = regret.attrs.get("long_name", "regret")
    label = f"cumulative {'pseudo-regret' if name == 'regret' else name}"
    label += ", where positive" if y == "log" and cut else ""
    each_round = regret.attrs.get("against", FIXED) != FIXED
    ax.set_ylabel(f"{label},\nagainst the best action of each round" if each_round else label)
    ax.set_xlabel("round, log scale" if x == "log" else "round")
    _scale(ax, rounds, mean, x, y)
    if limits:
        ax.set_ylim(limits)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    legend.add(ax, lines, count)
    texts = draw_marks(ax, rounds, marks)
    if title:
        pad = ABOVE if texts else None
        ax.set_title(title, loc="left", fontsize=11, parse_math=False, pad=pad)
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def plot_bars(
    rows: Sequence[tuple[str, float, float, float]],
    ax: Axes | None,
    title: str,
    label: str,
) -> Figure:
    """Draw bars with intervals, into ``ax`` or a new figure: rows of name, value, low and high."""
    if ax is None:
        ax = Drawing(figsize=(WIDTH, HEIGHT), layout="constrained").add_subplot()
    places = np.arange(len(rows))
    values = np.array([row[1:] for row in rows], dtype=float).reshape(-1, 3)
    ends = np.abs(values[:, 1:].T - values[:, 0])
    ax.bar(places, values[:, 0], color=COLOURS[0], alpha=0.7, zorder=2)
    ax.errorbar(places, values[:, 0], ends, fmt="none", ecolor=BOUND, capsize=3, zorder=3)
    ax.axhline(0, color=BOUND, lw=0.8)
    step = max(1, -(-len(rows) // MOST_LABELS))
    names = [row[0] for row in rows[::step]]
    ax.set_xticks(places[::step], names, rotation=30, ha="right", parse_math=False)
    ax.set_ylabel(label, parse_math=False)
    ax.set_title(title, loc="left", fontsize=11, parse_math=False)
    ax.grid(axis="y", alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def save_figure(figure: Figure, path: str | PathLike[str]) -> None:
    """Save a figure to a file, in the format of its ending."""
    file, known = as_path("path", path), figure.canvas.get_supported_filetypes()
    if file.suffix[1:].lower() not in known:
        raise InvalidInput(
            "path",
            f"a file name with the ending of a picture: {', '.join(sorted(known))}",
            repr(str(path)),
            "Write .png or .svg, for example.",
        )
    write_whole(file, partial(figure.savefig, dpi=DPI))


def _limits(
    curves: Sequence[FloatArray], low: FloatArray, high: FloatArray
) -> tuple[float, float] | None:
    """Return limits of the axis around the curves where a band would hide them, else None."""
    bottom, top = min(0.0, *(c.min() for c in curves)), max(0.0, *(c.max() for c in curves))
    height = top - bottom
    bands = max(high.max(), top) - min(low.min(), bottom)
    if not np.isfinite(bands) or height <= 0 or bands <= WIDEST * height:
        return None
    return bottom - MARGIN * height, top + MARGIN * height


def check_choice(argument: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise ``InvalidInput`` unless ``value`` is one of those allowed."""
    if value not in allowed:
        raise InvalidInput(argument, " or ".join(allowed), repr(value), "Choose one of them.")


class Legend:
    """A legend below the axes, in as many columns as have room for the longest name."""

    note = ""  # below the title

    def __init__(self, names: list[str], order: list[int], width: float) -> None:
        room = int(14 * width)  # characters in a line
        self.order = order
        self.labels = [textwrap.fill(names[k], room - 6) or names[k] for k in order]
        longest = max(len(line) for label in self.labels for line in label.split("\n"))
        self.columns = max(1, min(4, len(names), room // (longest + 6)))
        lines = sum(label.count("\n") + 1 for label in self.labels)
        self.rows = 2 + -(-lines // self.columns)

    def add(self, ax: Axes, lines: list[Line2D], trials: int) -> None:
        """Add the legend, without mathematical notation: a name may have dollar signs."""
        band = f"mean of {trials} trials, {LEVEL:.0%} confidence band"
        legend = ax.legend(
            [lines[k] for k in self.order],
            self.labels,
            title=f"{band}{self.note}" if trials > 1 else "one trial",
            loc="upper center",
            bbox_to_anchor=(0.5, 0),
            borderaxespad=4,  # in units of the font: below the label of the axis
            ncols=self.columns,
            frameon=False,
            fontsize=9,
            title_fontsize=8,
        )
        legend.get_title().set_multialignment("center")
        for text in legend.get_texts():
            text.set_parse_math(False)


def _shown(values: FloatArray, y: str) -> FloatArray:
    """Return the values, without those that have no logarithm on a log axis."""
    return np.where(values > 0, values, np.nan) if y == "log" else values


def _draw_trials(ax: Axes, rounds: IntArray, curves: FloatArray, colour: str) -> None:
    paths = [np.column_stack([rounds, curve]) for curve in curves]
    alpha = max(0.1, min(0.5, 5 / len(curves)))
    lines = LineCollection(paths, colors=colour, linewidths=0.5, alpha=alpha, zorder=1)
    lines.set_rasterized(curves.size > MANY_POINTS)
    ax.add_collection(lines)


def draw_marks(ax: Axes, rounds: IntArray, marks: Mapping[int, str]) -> list[Any]:
    """Draw a thin line at each round, and its text above the axes: the same text only once."""
    ink = rcParams["text.color"]
    shown = {at: text for at, text in marks.items() if rounds[0] <= at <= rounds[-1]}
    for at in shown:
        ax.axvline(at, color=ink, lw=0.8, ls=(0, (4, 3)), alpha=0.6, zorder=1.5)
    last = {text: at for at, text in sorted(shown.items())}
    across = ax.get_xaxis_transform()
    return [
        ax.text(
            *(at, 1.01, text),
            transform=across,
            ha=_side(ax, at),
            va="bottom",
            fontsize=8,
            parse_math=False,
        )
        for text, at in last.items()
    ]


def _side(ax: Axes, at: int) -> str:
    """Return the alignment of a text at this round that keeps it above the axes."""
    left, here, right = ax.transData.transform([(x, 1) for x in (*ax.get_xlim(), at)])[[0, 2, 1], 0]
    share = (here - left) / (right - left)
    return "left" if share < 1 / 3 else "right" if share > 2 / 3 else "center"


def _scale(ax: Axes, rounds: IntArray, mean: FloatArray, x: str, y: str) -> None:
    left = 0
    if x == "log":
        ax.set_xscale("log")
        left = min(rounds[0], rounds[-1] / 10)
    ax.set_xlim(left, rounds[-1])
    if y == "log":
        ax.set_yscale("log", nonpositive="clip")  # a band that reaches below 0 goes to the bottom
        ax.set_ylim(bottom=0.5 * mean[mean > 0].min())


def style(number: int) -> tuple[str, Any]:
    """Return colour and dashes of a policy: no colour comes twice, neighbours differ in dashes.

    Examples
    --------
    >>> style(0), style(7), style(30)
    (('#0072B2', '-'), ('#8648FD', '--'), ('#14938e', (0, (5, 3, 1, 3))))
    """
    turn = number // len(DASHES)
    dashes = DASHES[(number + turn) % len(DASHES)]
    more = number - len(COLOURS)
    return (_generated(more) if more >= 0 else COLOURS[number]), dashes


def _generated(number: int) -> str:
    """Return one of many colours of about the same strength (B. Ottosson, Oklab, 2020)."""
    turn, height = (number * step % 1 for step in EVENLY)
    hue, lightness = 2 * np.pi * turn, DARKEST + (LIGHTEST - DARKEST) * height
    a, b = CHROMA * np.cos(hue), CHROMA * np.sin(hue)
    cones = np.array(
        [
            lightness + 0.3963377774 * a + 0.2158037573 * b,
            lightness - 0.1055613458 * a - 0.0638541728 * b,
            lightness - 0.0894841775 * a - 1.2914855480 * b,
        ]
    )
    to_rgb = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
    )
    light = np.clip(to_rgb @ cones**3, 0, 1)
    return to_hex(np.where(light > 0.0031308, 1.055 * light ** (1 / 2.4) - 0.055, 12.92 * light))
