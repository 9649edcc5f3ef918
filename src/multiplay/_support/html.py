"""Pieces of HTML: tables for pages, and what notebooks show of an object.

All text is escaped. What notebooks show takes the colours and letters around it, so that it can be
read in light and in dark ones, and says nothing about the rest of the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from multiplay._support.checks import shortened
from multiplay._support.formatting import Table, legible

LONGEST = 200  # letters of a cell in a notebook
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
    """Return head and body of a table; the first cell of a row is its name.

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


def panel(title: str, facts: Mapping[str, str], *parts: str) -> str:
    """Return what a notebook shows of an object: its title, facts about it, and other parts.

    Examples
    --------
    >>> "<b>Learner</b>" in panel("Learner", {"asked": "3"})
    True
    """
    about = Table("", ["", ""], [[name, value] for name, value in facts.items()])
    inside = "".join([f"<p><b>{escape(_short(title))}</b></p>\n", shown(about), *parts])
    return f'<div class="multiplay-shown">\n<style>\n{STYLE}\n</style>\n{inside}</div>'


def shown(table: Table) -> str:
    """Return a table for a notebook, with its title and note; nothing if it has no rows.

    It scrolls by itself where it is too wide. Cells are cut where they are very long.
    """
    return "".join(_shown(table)) if table.rows else ""


def _shown(table: Table) -> Iterator[str]:
    short = table._replace(
        columns=[_short(cell) for cell in table.columns],
        rows=[[_short(cell) for cell in row] for row in table.rows],
    )
    if table.title:
        yield f"<p>{escape(_short(table.title))}</p>\n"
    # the style is repeated: who does not trust a notebook takes all style sheets out of it
    yield f'<div class="wide" style="overflow-x: auto"><table>\n{rows(short)}</table></div>\n'
    if table.note:
        yield f'<p class="note">{escape(_short(table.note))}</p>\n'


def _short(text: str) -> str:
    """Return a text that is not too long, in letters that have a shape."""
    return legible(shortened(text, LONGEST))
