"""HTML report about results, in one file, and the frame of all such pages."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from multiplay._support.formatting import Table
from multiplay._support.html import rows
from multiplay.errors import InvalidInput
from multiplay.experiments.experiment import experiment_file
from multiplay.reports.tables import (
    comparisons_table,
    conclusion,
    configuration_table,
    quantities_table,
    suboptimal_plays_table,
)
from multiplay.results.result import Result, regret_table
from multiplay.results.svg import curves, thinned
from multiplay.version import __version__

TEMPLATE = Path(__file__).with_name("page.html")
LONGEST_LISTING = 100_000  # characters


def report(results: Mapping[str, Result], title: str | None = None) -> str:
    """Return a page with a section for each result, by its title or the name of its file.

    The page is one file: it loads no style, script, font or picture.

    Parameters
    ----------
    results
        The results by name, such as the names of their files, which the commands on the page use.
    title
        The title of the page; the titles of the results if not given.

    Returns
    -------
    str
        The page, as HTML.

    Examples
    --------
    >>> from multiplay import Bernoulli, Budget, GenCTS, Stochastic, simulate
    >>> world = Stochastic(Bernoulli([0.2, 0.8]))
    >>> result = simulate(Budget(1, [1, 1]), world, {"GenCTS": GenCTS()}, 20, trials=2)
    >>> page = report({"two-arms.nc": result}, title="Two arms")
    >>> page.startswith("<!DOCTYPE html>"), "<h1>Two arms</h1>" in page
    (True, True)
    """
    stems = [result.title or Path(name).stem for name, result in results.items()]
    headings = stems if len(set(stems)) == len(stems) else list(results)
    sections = [
        "".join(section(heading, name, results[name], f"r{place}-"))
        for place, (heading, name) in enumerate(zip(headings, results, strict=True))
    ]
    contents = [
        f'<li><a href="#r{place}">{escape(heading)}</a>: {escape(conclusion(result))}</li>\n'
        for place, (heading, result) in enumerate(zip(headings, results.values(), strict=True))
    ]
    if len(results) > 1:
        sections.insert(0, f'<ul class="conclusions">\n{"".join(contents)}</ul>')
    return whole_page(title or f"multiplay: {', '.join(headings)}", "\n".join(sections))


def whole_page(title: str, body: str) -> str:
    """Return a page with this title, in the style of all reports."""
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title), version=__version__, body=body
    )


def section(heading: str, name: str, result: Result, prefix: str) -> Iterator[str]:
    """Yield the parts of a section; ``prefix`` makes the ids of its figures unique."""
    plain = result.configuration
    rounds, trials = int(result.dataset["round"][-1]), result.regret.sizes["trial"]
    yield f'<section id="{prefix[:-1]}">\n<h2>{escape(heading)}</h2>\n'
    yield f'<p class="conclusion">{escape(conclusion(result))}</p>\n'
    yield f"<p>{_kind(plain.get('actions'))}, {_kind(plain.get('environment'))}, {rounds} rounds, "
    yield f"{trials} trials, seed {escape(str(plain.get('seed')))}.</p>\n"
    yield '<div class="figures">\n'
    yield from figures(result, prefix)
    yield "</div>\n"
    for make in (
        regret_table,
        comparisons_table,
        suboptimal_plays_table,
        quantities_table,
        configuration_table,
    ):
        yield html_table(make(result))
    yield from run_again(name, result)
    yield "</section>\n"


def _kind(plain: Any) -> str:
    return escape(str((plain or {}).get("type", "unknown")))


def html_table(table: Table) -> str:
    """Return a table as HTML; a wide table scrolls by itself. Nothing if it has no rows."""
    if not table.rows:
        return ""
    lines = escape(table.note).replace("\n", "<br>")
    note = f'<p class="note">{lines}</p>\n' if table.note else ""
    title = escape(table.title)
    unfolded = "" if table.folded else " open"
    return (
        f"<details{unfolded}><summary><h3>{title}</h3></summary>\n"
        f'<div class="table" role="region" tabindex="0" aria-label="{title}"><table>\n'
        f"{rows(table)}</table></div>\n{note}</details>\n"
    )


def run_again(name: str, result: Result) -> Iterator[str]:
    """Yield the commands that repeat the experiment, and its configuration."""
    yield "<h3>Repeat the experiment</h3>\n"
    try:
        text = experiment_file(result)
    except InvalidInput as error:
        yield f"<p>The configuration cannot be written to a file ({escape(str(error.got))}): "
        yield "run the script that made it again.</p>\n"
        return
    file = shlex.quote(Path(name).name)
    again = shlex.quote(f"{Path(name).stem}-again.toml")
    commands = f"multiplay show {file} --experiment > {again}\nmultiplay run {again}"
    yield f"<pre><code>{escape(commands)}</code></pre>\n"
    if len(text) <= LONGEST_LISTING:
        yield f"<details><summary>The whole configuration, {escape(again)}</summary>\n"
        yield f"<pre><code>{escape(text)}</code></pre></details>\n"


# ---------------------------------------------------------------- figures


def figures(result: Result, prefix: str) -> Iterator[str]:
    """Yield the figures: regret against rounds and against their logarithm."""
    captions = {
        "linear": "Mean and 95 % confidence band.",
        "log": "The same against log T: logarithmic regret is a straight line.",
    }
    regret = thinned(result.regret)
    for x, caption in captions.items():
        yield f"<figure>{curves(regret, result.marks, x, prefix + x + '-')}"
        yield f"<figcaption>{caption}</figcaption></figure>\n"
