"""Table 1 of the paper with what was measured: tables for the screen, and a page."""

import shlex
from html import escape
from itertools import accumulate

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
from multiplay.reports.table1_figure import TITLE, single_panels
from multiplay.results import Result
from multiplay.results.intervals import interval
from multiplay.results.svg import svg

RULED = tuple(last - 1 for last in accumulate(map(len, GROUPS)))[:-1]


def tables(measured: Measurements) -> list[Table]:
    """Return what is promised, what was lost, and what it took."""
    return [promised(), regrets(measured), costs(measured)]


def promised() -> Table:
    """Return Table 1 as the paper prints it, with a column for what a row sees."""
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
    return Table("What is promised", columns, rows, note, labels=5, ruled=RULED)


def regrets(measured: Measurements) -> Table:
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


def costs(measured: Measurements) -> Table:
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
    return Table("What it costs", columns, rows, note, ruled=RULED)


def _power(size: str, power: float) -> str:
    """Return a law of growth in words; a small negative exponent is none.

    Examples
    --------
    >>> _power("units", 0.93), _power("|A|", -0.01), _power("|A|", float("nan"))
    ('units^0.9', '|A|^0.0', '-')
    """
    return NONE if np.isnan(power) else f"{size}^{round(power, 1) + 0.0:.1f}"


def kilobytes(size: int) -> str:
    """Return a number of bytes in words.

    Examples
    --------
    >>> kilobytes(13_262), kilobytes(2_135_548)
    ('13 kB', '2.1 MB')
    """
    return f"{size / 1e3:.0f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"


# ---------------------------------------------------------------- page


def page(measured: Measurements, command: str) -> str:
    """Return one file that fetches nothing: what it shows, the figures, the tables, how to repeat.

    ``command`` gives the same numbers again.
    """
    legend, *panels = (
        f"<figure>{svg(draw, f'{name}-', label)}</figure>\n"
        for name, (draw, label) in single_panels(measured).items()
    )
    instance = measured.instance
    about = (
        f"On {instance.title}: {instance.actions!r}, {instance.horizon} rounds, "
        f"{instance.trials} trials, seed {instance.seed}."
    )
    body = [
        f"<p>{escape(about)}</p>\n{legend}",
        f'<div class="figures">\n{"".join(panels)}</div>\n',
        *map(html_table, tables(measured)),
        f"<h3>Run it again</h3>\n<pre><code>{escape(command)}</code></pre>\n",
    ]
    return whole_page(TITLE, "".join(body))


def command(file: str | None, instance: Instance) -> str:
    """Return the command that gives the same numbers again.

    Examples
    --------
    >>> from multiplay.experiments.table1 import instance
    >>> command("my file.toml", instance(trials=5))
    "multiplay table1 'my file.toml' --trials 5 --horizon 10000 --seed 0"
    """
    words = ["multiplay", "table1", *([] if file is None else [file])]
    for option in ("trials", "horizon", "seed"):
        words += [f"--{option}", str(getattr(instance, option))]
    return shlex.join(words)
