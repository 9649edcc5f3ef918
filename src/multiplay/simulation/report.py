"""A result for readers: tables of words, and a page that needs nothing but a browser."""

from __future__ import annotations

import io
import json
import re
import shlex
import warnings
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay.errors import InvalidInput
from multiplay.simulation.results import Result
from multiplay.simulation.simulate import recorded_rounds

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

TEMPLATE = Path(__file__).with_name("report.html")
WIDTH = 4.8  # inches of a figure: letters stay legible when it shrinks to a phone
POINTS = 200  # rounds of a figure, evenly spaced; and as many more, for the logarithmic axis
INK = "#010203"  # what is drawn in the colour of the text, light or dark
MOST_ARMS = 20
LONGEST_LISTING = 100_000  # characters
SHORT_LIST = 8
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

QUANTITIES = {
    "switches": ("switches", "how often the action changed"),
    "L_star": ("L*", "what the best fixed action would have got in hindsight"),
    "Q2": ("Q2", "squared distance of the losses from their mean"),
    "V1": ("V1", "path length of the losses"),
    "corruption": ("C", "the corruption, a sum over rounds of the largest change to any loss"),
}


class Table(NamedTuple):
    """A table of words; the first ``labels`` columns are text, the rest numbers."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""
    labels: int = 1


# ---------------------------------------------------------------- tables


def summary(result: Result) -> Table:
    """Return the final regret of every policy."""
    rows = [
        [str(policy), number(mean), between(low, high), number(time)]
        for policy, mean, low, high, time in result.summary().itertuples()
    ]
    columns = ["policy", f"final {result.measure}", "95 % interval", "µs per trial and round"]
    return Table(f"Final {result.measure}", columns, rows)


def comparisons(result: Result) -> Table:
    """Return the verdict on every pair of policies."""
    rows = []
    for A, B, mean, low, high, p, verdict in result.compare().itertuples(index=False):
        words = {"A lower": f"{A} lower", "B lower": f"{B} lower"}.get(verdict, verdict)
        rows.append([str(A), str(B), words, number(mean), between(low, high), probability(p)])
    many = (
        f"The {len(rows)} intervals hold together with 95 % (Bonferroni); the p values are "
        "adjusted by Holm."
        if len(rows) > 1
        else "One pair: nothing is corrected."
    )
    note = (
        f"Final {result.measure} of A minus that of B, paired by trial: both met the same losses. "
        f"{many} A verdict is given where the interval excludes 0."
    )
    columns = ["A", "B", "verdict", "difference", "95 % interval", "p"]
    return Table("Comparisons", columns, rows, note, labels=3)


def quantities(result: Result) -> Table:
    """Return what else was measured."""
    found = result.quantities()
    rows = [[str(policy), *map(number, row)] for policy, *row in found.itertuples()]
    meanings = [": ".join(QUANTITIES[name]) for name in found.columns]
    columns = ["policy", *(QUANTITIES[name][0] for name in found.columns)]
    note = f"Means over the trials. {'; '.join(meanings)}."
    return Table("Measured besides", columns, rows if len(columns) > 1 else [], note)


def suboptimal_plays(result: Result) -> Table:
    """Return the suboptimal plays of the arms that have the most."""
    title, columns = "Suboptimal plays", ["arm", *result.policies]
    if "excess" not in result.dataset:
        return Table(title, columns, [])
    mean = result.dataset["excess"].mean("trial").transpose("arm", "policy")
    arms, values = mean["arm"].values, mean.values
    most = np.sort(np.argsort(-values.max(axis=1), kind="stable")[:MOST_ARMS])
    rows = [[str(arms[i]), *map(number, values[i])] for i in most]
    left_out = len(arms) - len(most)
    more = f" {left_out} arms with fewer are left out." if left_out else ""
    note = f"Units beyond those of the best fixed action, over all rounds, means over trials.{more}"
    return Table(title, columns, rows, note)


def settings(result: Result) -> Table:
    """Return the configuration in brief."""
    plain = result.configuration
    policies = [f"{name}: {brief(value)}" for name, value in plain.get("policies", {}).items()]
    values = {
        "actions": brief(plain.get("actions")),
        "environment": brief(plain.get("environment")),
        "policies": "\n".join(policies),
        **{key: str(plain.get(key)) for key in ("horizon", "trials", "seed")},
        "versions": ", ".join(f"{name} {found}" for name, found in result.versions.items()),
    }
    return Table("Configuration", ["", ""], [[key, value] for key, value in values.items()])


def number(value: float) -> str:
    """Return a number as people write it.

    Examples
    --------
    >>> [number(x) for x in (0, 0.01234, 9.876, 1234.56, 3e9)]
    ['0', '0.0123', '9.88', '1234.6', '3e+09']
    """
    if value == 0 or not 10 <= abs(value) < 1e7:
        return f"{value:.3g}"
    return f"{value:.1f}"


def between(low: float, high: float) -> str:
    """Return an interval in words."""
    return f"{number(low)} to {number(high)}" if np.isfinite([low, high]).all() else "none"


def probability(p: float) -> str:
    """Return a p value in words."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def brief(plain: Any) -> str:
    """Return plain data in one line, with large arrays by their shapes.

    Examples
    --------
    >>> brief({"type": "Budget", "total": 2, "caps": [1, 1, 3], "names": None})
    'Budget(total=2, caps=[1, 1, 3])'
    >>> brief(list(range(100))), brief([[0.0, 0.0], [0.0, 0.0]])
    ('100 numbers', '0.0')
    """
    if isinstance(plain, dict):
        items = [f"{k}={brief(v)}" for k, v in plain.items() if k != "type" and v is not None]
        return f"{plain.get('type', '')}({', '.join(items)})"
    if isinstance(plain, list):
        shape, flat = _shape(plain)
        if len(shape) > 1 and len(set(map(str, flat))) == 1:
            return str(flat[0])
        if len(flat) > SHORT_LIST or len(shape) > 1:
            kind = "names" if isinstance(flat[0], str) else "numbers"
            return f"{' by '.join(map(str, shape))} {kind}"
        return f"[{', '.join(map(brief, plain))}]"
    return str(plain)


def _shape(values: list[Any]) -> tuple[list[int], list[Any]]:
    """Return the shape of nested lists, and what is in them; ragged ones are taken as they are."""
    shape, flat = [len(values)], values
    while flat and all(isinstance(v, list) and len(v) == len(flat[0]) for v in flat):
        shape.append(len(flat[0]))
        flat = [value for part in flat for value in part]
    return shape, flat


# ---------------------------------------------------------------- running it again


def experiment(result: Result) -> str:
    """Return the configuration as an experiment file, for ``multiplay run``."""
    plain = result.configuration
    lines = [f"{key} = {toml(plain[key])}" for key in ("horizon", "trials", "seed")]
    rounds = result.dataset["round"].values.tolist()
    if rounds != recorded_rounds(plain["horizon"], None).tolist():
        lines.append(f"record = {toml(rounds)}")
    for key in ("actions", "environment", "policies"):
        lines += ["", f"[{key}]"]
        lines += [f"{_key(k)} = {toml(v)}" for k, v in plain[key].items() if v is not None]
    return "\n".join([*lines, ""])


def toml(plain: Any) -> str:
    """Return plain data as a TOML value.

    Examples
    --------
    >>> toml({"type": "GenLBINFV", "eta": 0.25, "epsilon": None, "any_horizon": False})
    '{ type = "GenLBINFV", eta = 0.25, any_horizon = false }'
    """
    formula = isinstance(plain, str) and plain.lstrip().startswith("=")
    if formula or plain is None or (isinstance(plain, dict) and plain.get("type") in NO_SETTINGS):
        raise InvalidInput(
            "experiment",
            "settings that a file can hold",
            brief(plain),
            "Run the script again that made the result.",
        )
    if isinstance(plain, dict):
        items = [
            f"{_key(key)} = {toml(value)}" for key, value in plain.items() if value is not None
        ]
        return f"{{ {', '.join(items)} }}"
    if isinstance(plain, list):
        return f"[{', '.join(map(toml, plain))}]"
    if isinstance(plain, float):
        return repr(plain)
    return json.dumps(plain, ensure_ascii=False)  # the same in TOML


NO_SETTINGS = ("function", "array")  # by name or by digest alone


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


# ---------------------------------------------------------------- the page


def report(results: Mapping[str, Result], title: str | None = None) -> str:
    """Return a page with a section for each result, by the names of their files.

    It holds everything that it shows: no style, script, font or picture is fetched.
    """
    import multiplay

    stems = [Path(name).stem for name in results]
    headings = stems if len(set(stems)) == len(stems) else list(results)
    sections = [
        "".join(section(heading, name, results[name], f"r{place}-"))
        for place, (heading, name) in enumerate(zip(headings, results, strict=True))
    ]
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title or f"multiplay: {', '.join(headings)}"),
        version=multiplay.__version__,
        body="\n".join(sections),
    )


def section(heading: str, name: str, result: Result, prefix: str) -> Iterator[str]:
    """Yield the parts of a section; ``prefix`` makes the ids of its figures unique."""
    plain = result.configuration
    rounds, trials = int(result.dataset["round"][-1]), result.regret.sizes["trial"]
    yield f"<section>\n<h2>{escape(heading)}</h2>\n"
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
    body = "".join(_row(table, row, "td") for row in table.rows)
    note = f'<p class="note">{escape(table.note)}</p>\n' if table.note else ""
    title = escape(table.title)
    return (
        f"<details open><summary><h3>{title}</h3></summary>\n"
        f'<div class="table" role="region" tabindex="0" aria-label="{title}"><table>\n'
        f"<thead>{head}</thead>\n<tbody>\n{body}</tbody></table></div>\n{note}</details>\n"
    )


def _row(table: Table, row: list[str], tag: str) -> str:
    cells = []
    for place, (column, cell) in enumerate(zip(table.columns, row, strict=True)):
        words = "words" if place < table.labels else "" if column else "words free"
        decided = " decided" if cell.endswith(" lower") and column == "verdict" else ""
        opening = tag if place or tag != "td" else 'th scope="row"'
        text = escape(cell).replace("\n", "<br>")
        cells.append(f'<{opening} class="{words}{decided}">{text}</{opening.split()[0]}>')
    return f"<tr>{''.join(cells)}</tr>\n"


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
    captions = {
        "linear": "Mean and 95 % confidence band.",
        "log": "The same against log T: logarithmic regret is a straight line.",
    }
    regret, last = _thinned(result), result.summary()[result.measure]
    ends = ", ".join(f"{policy} {number(value)}" for policy, value in last.items())
    for x, caption in captions.items():
        label = (
            f"Mean {result.measure} of each policy against rounds, {x} axis. At the end: {ends}."
        )
        yield f"<figure>{svg(regret, x, prefix + x + '-', label)}"
        yield f"<figcaption>{caption}</figcaption></figure>\n"


def _thinned(result: Result) -> Any:
    """Return the regret at as many rounds as can be seen, with names that XML can hold."""
    last = result.regret.sizes["round"] - 1
    even, early = np.linspace(0, last, POINTS), np.geomspace(1, last + 1, POINTS) - 1
    seen = np.unique(np.round(np.concatenate([even, early])).astype(int))
    names = [NOT_XML.sub("\ufffd", name) for name in result.policies]
    return result.regret.isel(round=seen).assign_coords(policy=names)


def svg(regret: Any, x: str, prefix: str, label: str) -> str:
    """Return a figure as part of a page: text as text, in its colours, with ids of its own."""
    from xml.etree import ElementTree

    import matplotlib as mpl

    from multiplay.simulation.plots import plot_regret

    inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    style: Any = {"svg.fonttype": "none", "svg.hashsalt": "multiplay", **dict.fromkeys(inks, INK)}
    buffer = io.BytesIO()
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the reader's fonts may have it
        figure = plot_regret(regret, x=x, width=WIDTH)
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
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
