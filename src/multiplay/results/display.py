"""What notebooks show of a result."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np

from multiplay._support import html
from multiplay._support.formatting import Table, between, number
from multiplay.results.result import Result
from multiplay.results.svg import curves, thinned

POINTS = 50  # rounds of the figure
SHORT_LIST = 8  # numbers of a setting that is shown
MOST_ROWS = 24  # policies in the table
MOST_CURVES = 8  # policies in the figure


def shown(result: Result) -> str:
    """Return what was simulated, the final regret of the policies, and their curves."""
    plain, rounds = result.configuration, int(result.dataset["round"][-1])
    facts = {
        "set": outline(plain.get("actions")),
        "environment": outline(plain.get("environment")),
        "rounds": str(rounds),
        "trials": str(result.regret.sizes["trial"]),
        "seed": str(plain.get("seed")),
    }
    table = summary(result)
    left_out = len(table.rows) - MOST_ROWS
    if left_out > 0:
        more = f"And {left_out} more policies, with a larger {result.measure}. {table.note}"
        table = table._replace(rows=table.rows[:MOST_ROWS], note=more.strip())
    return html.panel(result.title or "Result", facts, html.shown(table), _figure(result))


def outline(plain: Any) -> str:
    """Return plain data without its large parts: settings that are short, and names of classes.

    Examples
    --------
    >>> outline({"type": "Budget", "total": 2, "caps": [1, 1, 3], "names": ["a", "b", "c"]})
    'Budget(total=2, caps=[1, 1, 3])'
    >>> outline({"type": "Stochastic", "losses": {"type": "Uniform", "low": [0.1] * 50}})
    'Stochastic(losses=Uniform)'
    """
    if not isinstance(plain, dict):
        return "unknown" if plain is None else str(plain)
    settings = [f"{name}={_brief(value)}" for name, value in plain.items() if _is_short(value)]
    kind = plain.get("type", "")
    named = [one for one in settings if not one.startswith("type=")]
    return f"{kind}({', '.join(named)})" if named else str(kind)


def _is_short(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= SHORT_LIST and all(isinstance(one, int) for one in value)
    return value is not None and value is not False


def _brief(value: Any) -> str:
    return str(value.get("type", "...") if isinstance(value, dict) else value)


def _figure(result: Result) -> str:
    """Return the curves of those policies that end lowest."""
    regret = thinned(result, POINTS, early=0)
    final = regret.isel(round=-1).mean("trial").values
    lowest = np.sort(np.argsort(final, kind="stable")[:MOST_CURVES])
    regret = regret.isel(policy=lowest)
    # the same picture has the same ids, and other pictures on the page have others
    digest = sha256(regret.values.tobytes() + repr(result.policies).encode()).hexdigest()[:12]
    note = ""
    if len(lowest) < len(final):
        note = f'<p class="note">The {len(lowest)} policies that end lowest.</p>\n'
    return curves(result, regret, "linear", f"multiplay-{digest}-") + note


def summary(result: Result) -> Table:
    """Return the final regret of every policy, the lowest first."""
    rows = [
        [str(policy), number(mean), between(low, high), number(time)]
        for policy, mean, low, high, time in result.summary().loc[result.ranked].itertuples()
    ]
    columns = ["policy", f"final {result.measure}", "95 % interval", "µs per trial and round"]
    note = ""
    if "corruption" in result.dataset:
        note = f"corruption C = {float(result.dataset['corruption'].mean()):.0f} on average"
    return Table(f"Final {result.label}", columns, rows, note)
