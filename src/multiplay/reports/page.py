"""A page about results that needs nothing but a browser."""

from __future__ import annotations

import io
import re
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay.errors import InvalidInput
from multiplay.experiments.toml_writer import experiment
from multiplay.reports.conclusion import conclusion
from multiplay.reports.tables import (
    Table,
    comparisons,
    number,
    quantities,
    settings,
    suboptimal_plays,
    summary,
)
from multiplay.results.result import Result
from multiplay.version import __version__

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from matplotlib.figure import Figure

TEMPLATE = Path(__file__).with_name("page.html")
WIDTH = 4.8  # inches of a figure: letters stay legible when it shrinks to a phone
POINTS = 200  # rounds of a figure, evenly spaced; and as many more, for the logarithmic axis
INK = "#010203"  # what is drawn in the colour of the text, light or dark
LONGEST_LISTING = 100_000  # characters
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def report(results: Mapping[str, Result], title: str | None = None) -> str:
    """Return a page with a section for each result, by its title or the name of its file.

    It holds everything that it shows: no style, script, font or picture is fetched.
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
    """Return a page with this heading, in the looks that all pages share."""
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
    for make in (summary, comparisons, suboptimal_plays, quantities, settings):
        yield html_table(make(result))
    yield from run_again(name, result)
    yield "</section>\n"


def _kind(plain: Any) -> str:
    return escape(str((plain or {}).get("type", "unknown")))


def html_table(table: Table) -> str:
    """Return a table that scrolls by itself where it is too wide; nothing if it has no rows."""
    if not table.rows:
        return ""
    head = _row(table, table.columns, 'th scope="col"') if any(table.columns) else ""
    body = "".join(
        _row(table, row, "td", ' class="ruled"' if place in table.ruled else "")
        for place, row in enumerate(table.rows)
    )
    lines = escape(table.note).replace("\n", "<br>")
    note = f'<p class="note">{lines}</p>\n' if table.note else ""
    title = escape(table.title)
    unfolded = "" if table.folded else " open"
    return (
        f"<details{unfolded}><summary><h3>{title}</h3></summary>\n"
        f'<div class="table" role="region" tabindex="0" aria-label="{title}"><table>\n'
        f"<thead>{head}</thead>\n<tbody>\n{body}</tbody></table></div>\n{note}</details>\n"
    )


def _row(table: Table, row: list[str], tag: str, looks: str = "") -> str:
    cells = []
    for place, (column, cell) in enumerate(zip(table.columns, row, strict=True)):
        words = "words" if place < table.labels else "" if column else "words free"
        decided = " decided" if cell.endswith(" lower") and column == "verdict" else ""
        opening = tag if place or tag != "td" else 'th scope="row"'
        text = escape(cell).replace("\n", "<br>")
        if opening.endswith('"row"') and "<br>" in text:  # a name, and more about it
            text = text.replace("<br>", '<br><span class="note">', 1) + "</span>"
        cells.append(f'<{opening} class="{words}{decided}">{text}</{opening.split()[0]}>')
    return f"<tr{looks}>{''.join(cells)}</tr>\n"


def run_again(name: str, result: Result) -> Iterator[str]:
    """Yield the commands that give the same numbers, and the experiment itself."""
    yield "<h3>Run it again</h3>\n"
    try:
        text = experiment(result)
    except InvalidInput as error:
        yield f"<p>Its configuration does not fit into a file ({escape(str(error.got))}): "
        yield "run the script again that made it.</p>\n"
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
    """Yield the regret against rounds and against their logarithm."""
    from multiplay.results.plots import plot_regret

    captions = {
        "linear": "Mean and 95 % confidence band.",
        "log": "The same against log T: logarithmic regret is a straight line.",
    }
    regret, last = thinned(result), result.summary()[result.measure].loc[result.ranked]
    ends = ", ".join(f"{policy} {number(value)}" for policy, value in last.items())
    marks = {at: NOT_XML.sub("\ufffd", text) for at, text in result.marks.items()}
    said = "".join(f" {text}." for text in dict.fromkeys(marks.values()))
    for x, caption in captions.items():
        label = (
            f"Mean {result.measure} of each policy against rounds, {x} axis.{said} "
            f"At the end: {ends}."
        )
        draw = partial(plot_regret, regret, x=x, width=WIDTH, marks=marks)
        yield f"<figure>{svg(draw, prefix + x + '-', label)}"
        yield f"<figcaption>{caption}</figcaption></figure>\n"


def thinned(result: Result) -> Any:
    """Return the regret at as many rounds as can be seen, with names that XML can hold."""
    last = result.regret.sizes["round"] - 1
    even, early = np.linspace(0, last, POINTS), np.geomspace(1, last + 1, POINTS) - 1
    seen = np.unique(np.round(np.concatenate([even, early])).astype(int))
    names = [NOT_XML.sub("\ufffd", name) for name in result.policies]
    return result.regret.isel(round=seen).assign_coords(policy=names)


def svg(draw: Callable[[], Figure], prefix: str, label: str) -> str:
    """Return a figure as part of a page: text as text, in its colours, with ids of its own."""
    from xml.etree import ElementTree

    import matplotlib as mpl

    inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    style: Any = {"svg.fonttype": "none", "svg.hashsalt": "multiplay", **dict.fromkeys(inks, INK)}
    buffer = io.BytesIO()
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the reader's fonts may have it
        draw().savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(buffer.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)
    for element in root.iter():
        _adapt(element, prefix)
    box = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update({"viewBox": box, "role": "img", "aria-label": NOT_XML.sub("\ufffd", label)})
    return ElementTree.tostring(root, encoding="unicode")


def _adapt(element: Element, prefix: str) -> None:
    """Take an element out of its namespace, prefix its ids, and draw black in the text's colour."""
    element.tag = element.tag.rpartition("}")[2]
    for key, value in list(element.attrib.items()):
        del element.attrib[key]
        name = key.rpartition("}")[2]
        if name == "id":
            value = prefix + value
        elif name == "href":
            value = value.replace("#", f"#{prefix}", 1)
        else:
            value = value.replace("url(#", f"url(#{prefix}")
            value = re.sub(f"{INK}|#000000", "currentColor", value)
        element.set(name, value)
