"""HTML: rows of tables for pages, and the panels that notebooks show of an object.

All text is escaped. A panel takes the colours and fonts of the page around it, so that it is
legible in light and dark themes, and changes nothing else on the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import NamedTuple

from multiplay._support.checks import shortened
from multiplay._support.formatting import Table, legible

LONGEST = 200  # characters of a cell in a notebook
STYLE = """
.multiplay-shown { color: inherit; max-width: 60em; }
.multiplay-shown p { margin: .3em 0; }
.multiplay-shown .wide { overflow-x: auto; max-width: 100%; }
.multiplay-shown table { border-collapse: collapse; border: 0; margin: .4em 0; color: inherit;
  background: none; font-size: .9em; font-variant-numeric: tabular-nums; }
.multiplay-shown tr, .multiplay-shown tr:hover { background: none; }
.multiplay-shown th, .multiplay-shown td { padding: .2em .9em .2em 0; text-align: right;
  vertical-align: top; white-space: nowrap; color: inherit; background: none; border: 0;
  border-bottom: 1px solid rgba(128, 128, 128, .35); }
.multiplay-shown thead th { font-weight: 600; opacity: .75; }
.multiplay-shown tbody th { font-weight: 600; }
.multiplay-shown .words { text-align: left; white-space: normal; overflow-wrap: break-word;
  max-width: 30em; }
.multiplay-shown .free { overflow-wrap: anywhere; }
.multiplay-shown .ruled > * { border-bottom-color: currentColor; }
.multiplay-shown .note { font-size: .85em; opacity: .75; }
.multiplay-shown svg { display: block; width: 100%; height: auto; max-width: 36em; }
""".strip()


def rows(table: Table) -> str:
    """Return head and body of a table; the first cell of a row is its header.

    Examples
    --------
    >>> rows(Table("Arms", ["arm", "mean"], [["<A>", "1.5"]])).splitlines()[3]
    '<tr><th scope="row" class="words">&lt;A&gt;</th><td class="">1.5</td></tr>'
    """
    head = _row(table, table.columns, 'th scope="col"') if any(table.columns) else ""
    body = "".join(
        _row(table, row, "td", ' class="ruled"' if place in table.ruled else "")
        for place, row in enumerate(table.rows)
    )
    return f"<thead>{head}</thead>\n<tbody>\n{body}</tbody>"


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


# ---------------------------------------------------------------- for notebooks


class Panel(NamedTuple):
    """The facts that a notebook shows of an object, as data.

    Attributes
    ----------
    title : str
        The first line.
    facts : mapping
        Names of facts and their values, as text.
    tables : tuple of Table
        The tables below the facts.
    svg : str
        A figure, or nothing.
    note : str
        A remark below the figure, or nothing.
    """

    title: str
    facts: Mapping[str, str]
    tables: tuple[Table, ...] = ()
    svg: str = ""
    note: str = ""


def render(panel: Panel) -> str:
    """Return a panel as HTML for a notebook.

    Examples
    --------
    >>> "<b>Learner</b>" in render(Panel("Learner", {"asked": "3"}))
    True
    """
    about = Table("", ["", ""], [[name, value] for name, value in panel.facts.items()])
    parts = [f"<p><b>{escape(_short(panel.title))}</b></p>\n"]
    parts += [part for table in (about, *panel.tables) for part in _table(table)]
    parts += [panel.svg, _note(panel.note)]
    return f'<div class="multiplay-shown">\n<style>\n{STYLE}\n</style>\n{"".join(parts)}</div>'


def _table(table: Table) -> Iterator[str]:
    """Yield a table with its title and note; nothing if it has no rows.

    A wide table scrolls by itself. Very long cells are cut.
    """
    if not table.rows:
        return
    short = table._replace(
        columns=[_short(cell) for cell in table.columns],
        rows=[[_short(cell) for cell in row] for row in table.rows],
    )
    if table.title:
        yield f"<p>{escape(_short(table.title))}</p>\n"
    # the style is repeated: an untrusted notebook is shown without its style sheets
    yield f'<div class="wide" style="overflow-x: auto"><table>\n{rows(short)}</table></div>\n'
    yield _note(table.note)


def _note(text: str) -> str:
    return f'<p class="note">{escape(_short(text))}</p>\n' if text else ""


def _short(text: str) -> str:
    """Return a text of limited length, in printable characters."""
    return legible(shortened(text, LONGEST))


class HasPanel:
    """A class whose objects notebooks show as a panel."""

    def _panel(self) -> Panel:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return render(self._panel())
