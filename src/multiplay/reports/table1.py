"""Table 1 of the paper beside measurements: its tables, its page and its figure."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay._support.formatting import Table, number
from multiplay.experiments.growth import exponent
from multiplay.experiments.table1 import (
    GROUPS,
    NONE,
    REGIMES,
    ROWS,
    Instance,
    Measurements,
    Row,
)
from multiplay.reports.page import html_table, whole_page
from multiplay.results import Result
from multiplay.results.intervals import interval
from multiplay.results.svg import WIDTH, svg, thinned
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
RULED = tuple(last - 1 for last in accumulate(map(len, GROUPS)))[:-1]


def table1_tables(measured: Measurements) -> list[Table]:
    """Return the tables of the bounds, of the measured regret, and of time and memory."""
    return [bounds_table(), regrets_table(measured), costs_table(measured)]


def bounds_table() -> Table:
    """Return Table 1 as the paper prints it, with a column for the feedback of each row."""
    rows = [
        [
            f"{row.name}\n{row.source}",
            "totals" if row.sees_totals else "units",
            row.stochastic,
            row.adversarial,
            row.complexity,
        ]
        for row in ROWS
    ]
    columns = ["", "sees", "stochastic, O(·)", "adversarial, O(·)", "complexity"]
    note = (
        "Sees: the total loss of a round, or the loss of every unit. T rounds, d arms; bᵢ: copies "
        "of arm i; nᵢ: its most units in an action; m, M: most arms, most units of an action. Σ: "
        "over all arms; Σ_J*: over those that the best action leaves out. Δᵢ, σᵢ²: gap and "
        "variance of arm i; Δ, σ²: smallest gap of an action, largest variance of what is seen. "
        "c(A, ℓ): the constant of the lower bound for totals. Z: smallest of the loss of the best "
        "action, what it could lose more, quadratic variation and path length. The last two rows "
        "are not in the paper."
    )
    return Table("Bounds of the paper", columns, rows, note, labels=5, ruled=RULED)


def regrets_table(measured: Measurements) -> Table:
    """Return the final regret of every row in three regimes, with its interval."""
    instance, outcomes = measured.instance, measured.outcomes
    log_T = np.log(instance.horizon)
    rows = [[row.name, *(_regret(outcomes[name].result, row) for name in REGIMES)] for row in ROWS]
    lines = [
        f"On {instance.title}: mean over {instance.trials} trials of {instance.horizon} rounds, "
        "and its 95 % interval. Corrupted: losses L become 1 - L after a fifth of the rounds. "
        f"Adversarial: all means jump up and down by {number(instance.shift)} together, in phases "
        "that grow. Below 0: better than every fixed action.",
    ]
    if measured.bounds:
        bounds = [
            f"{name}: {_brief(one.constant * log_T)}" for name, one in measured.bounds.items()
        ]
        lines.append(f"In the long run, mean of c log T over the instances: {'; '.join(bounds)}.")
    refused = {regime: one.refused for regime, one in outcomes.items() if one.refused}
    for name, reason in {**measured.fitting.refused, **refused}.items():
        lines.append(f"{NONE} {name}: {reason}.")
    return Table("Final regret", ["", *REGIMES], rows, "\n".join(lines), ruled=RULED)


def _regret(result: Result | None, row: Row) -> str:
    if result is None or row.name not in result.policies:
        return NONE
    mean, low, high = interval(result.final(row.name))
    ends = f"{_brief(low)} to {_brief(high)}" if np.isfinite([low, high]).all() else "no interval"
    return f"{_brief(mean)}\n{ends}"


def _brief(value: float) -> str:
    return number(value) if abs(value) < 100 else f"{value:.0f}"


def costs_table(measured: Measurements) -> Table:
    """Return time and memory of every row, and how they grow."""
    stochastic, memory = measured.outcomes["stochastic"].result, measured.fitting.memory
    times = {} if stochastic is None else stochastic.summary()["µs per round"].to_dict()
    rows = []
    for row in ROWS:
        grown = measured.growth[row.name]
        sizes = grown.actions if row.sees_totals else grown.units
        rows.append(
            [
                row.name,
                number(times[row.name]) if row.name in times else NONE,
                kilobytes(memory[row.name]) if row.name in memory else NONE,
                _power(row.size, exponent(sizes, grown.time)),
                _power(row.size, exponent(sizes, grown.memory)),
                f"{row.size} {sizes[0]} to {sizes[-1]}" if sizes else NONE,
            ]
        )
    columns = ["", "µs", "memory", "time\ngrows like", "memory\ngrows like", "measured for"]
    note = (
        "µs: for each trial and round of the stochastic regime, losses and regret included. "
        "Memory: of one trial, with what is kept of the set (copies, lists, facets). Growth: of "
        "the policy itself, on the paper's transport with supplies and demands times 1, 2, 3, ..., "
        "as far as it accepts the set and is quick; the slope of a log-log fit over the larger "
        "half of the sizes. GenCTS and GenLBINFV are told the totals of the arms there, which is "
        "enough for them. |A|: the number of actions, which here grows like units²."
    )
    return Table("Time and memory", columns, rows, note, ruled=RULED)


def _power(size: str, power: float) -> str:
    """Return a law of growth as text; a small negative exponent is 0.

    Examples
    --------
    >>> _power("units", 0.93), _power("|A|", -0.01), _power("|A|", float("nan"))
    ('units^0.9', '|A|^0.0', '-')
    """
    return NONE if np.isnan(power) else f"{size}^{round(power, 1) + 0.0:.1f}"


def kilobytes(size: int) -> str:
    """Return a number of bytes as text.

    Examples
    --------
    >>> kilobytes(13_262), kilobytes(2_135_548)
    ('13 kB', '2.1 MB')
    """
    return f"{size / 1e3:.0f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"


# ---------------------------------------------------------------- page


def table1_page(measured: Measurements, command: str) -> str:
    """Return an HTML page in one file: the instance, the figures, the tables and the command.

    ``command`` repeats the measurement.
    """
    legend, *panels = (
        f"<figure>{svg(draw, f'{name}-', label)}</figure>\n"
        for name, (draw, label) in _single_panels(measured).items()
    )
    instance = measured.instance
    about = (
        f"On {instance.title}: {instance.actions!r}, {instance.horizon} rounds, "
        f"{instance.trials} trials, seed {instance.seed}."
    )
    body = [
        f"<p>{escape(about)}</p>\n{legend}",
        f'<div class="figures">\n{"".join(panels)}</div>\n',
        *map(html_table, table1_tables(measured)),
        f"<h3>Repeat the measurement</h3>\n<pre><code>{escape(command)}</code></pre>\n",
    ]
    return whole_page(TITLE, "".join(body))


def table1_command(file: str | None, instance: Instance) -> str:
    """Return the command that repeats the measurement.

    Examples
    --------
    >>> from multiplay.experiments.table1 import instance
    >>> table1_command("my file.toml", instance(trials=5))
    "multiplay table1 'my file.toml' --trials 5 --horizon 10000 --seed 0"
    """
    words = ["multiplay", "table1", *([] if file is None else [file])]
    for option in ("trials", "horizon", "seed"):
        words += [f"--{option}", str(getattr(instance, option))]
    return shlex.join(words)


# ---------------------------------------------------------------- figure


def table1_figure(measured: Measurements) -> Figure:
    """Return all panels, with one legend."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(11, 8.6), layout="constrained")
    for ax, draw in zip(made.subplots(2, 2).flat, _panels(measured).values(), strict=True):
        draw(ax)
    made.suptitle(f"{TITLE}: {measured.instance.title}", fontsize=12, parse_math=False)
    _add_legend(made, measured, loc="outside lower center", ncols=4)
    return made


def _single_panels(measured: Measurements) -> dict[str, tuple[Callable[[], Figure], str]]:
    """Return functions that draw each panel as a figure, with a label; the legend first."""
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
    """Draw mean and band of every row against rounds, with bounds and marks."""
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
    """Use a logarithmic scale for positive regret, and for the rounds of growing phases."""
    largest = float(mean.max())
    if largest > 0 and mean.min() >= 0:
        ax.set_yscale("log", nonpositive="clip")
        ax.set_ylim(largest / 10**MAGNITUDES, 2 * largest)
    if jumps:
        ax.set_xscale("log")
    ax.set_xlim(rounds[0] if jumps else 0, rounds[-1])
    ax.set_xlabel("round, log scale" if jumps else "round")


def _looks(measured: Measurements) -> dict[str, dict[str, Any]]:
    """Return the styles of lines: dashed for totals, solid for units, dotted for bounds."""
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
