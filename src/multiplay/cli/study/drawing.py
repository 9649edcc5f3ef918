"""A study on the screen, in letters: nothing in it needs a colour."""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from multiplay._support.formatting import Table as TableOfWords
from multiplay._support.formatting import number, shortened
from multiplay.cli.study.charts import MARGIN, bar, chart
from multiplay.errors import InvalidInput
from multiplay.reports import study_words as words
from multiplay.reports.study import Facts, rows_of
from multiplay.reports.study_curve import Stretch

MOST_ARMS, MOST_PENDING, MOST_ALARMS = 20, 10, 10
NARROWEST, WIDEST = 40, 110  # letters: on wider screens, eyes lose the line
NARROWEST_NAME, LONGEST_KEY = 12, 14
NARROWEST_BAR, WIDEST_BAR = 10, 40
PLAN, NARROWEST_PLAN = "plan", 24
GAP = 2  # between columns
BEST, EXPECTED = "best plan", "expected"
ASIDE = len(f" ◂ {BEST}, {EXPECTED}  ")  # letters to the right of the chart
ASCII = str.maketrans("├┤─│●◂└\u00d7…�▁▂▃▄▅▆▇█", "||-|o<+x.?...:::##")


def draw(console: Console, facts: Facts, store: str | None) -> None:
    """Print all that is shown; ``store`` is what commands must say of it, if anything."""
    with console.capture() as captured:
        for part in _parts(facts, min(max(console.width, NARROWEST), WIDEST)):
            console.print(part, highlight=False, crop=False)
        console.print(_heading("What to do next"))
        for step in words.next_steps(facts, store):
            console.print(Text(step.why), highlight=False)
            console.print(Text(f"    {step.command}"), highlight=False, soft_wrap=True)
    lines = (line.rstrip() for line in captured.get().splitlines())
    print(writable("\n".join(lines), console.encoding))


def writable(text: str, encoding: str) -> str:
    """Return a text in letters that an encoding has.

    Examples
    --------
    >>> writable("├─●─┤ Zürich", "ascii")
    '|-o-| Z?rich'
    """
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(ASCII).encode(encoding, "replace").decode(encoding)
    return text


def _parts(facts: Facts, width: int) -> Iterator[RenderableType]:
    say = words.wording(facts)
    yield _heading(f"{facts.name} in {facts.store}", first=True)
    yield Text("\n".join(words.head(facts)))
    yield _heading(f"Arms: what a unit {say.does}")
    yield arms(facts, width)
    if note := words.more_arms(facts, MOST_ARMS):
        yield Text(note)
    yield _heading(f"{say.noun.capitalize()} per round")
    yield from rounds(facts, width)
    yield from _listed(words.pending_table(facts, MOST_PENDING), width)
    yield from _listed(words.alarms_table(facts, MOST_ALARMS), width)
    if no_alarm := words.no_alarm(facts):
        yield Text(f"\n{no_alarm}")
    yield from _listed(_without(words.plays_table(facts), "told"), width)


def _heading(text: str, first: bool = False) -> Text:
    return Text(text if first else f"\n{text}", style="bold")


# ---------------------------------------------------------------- tables


def _listed(table: TableOfWords, width: int) -> Iterator[RenderableType]:
    if not table.rows:
        return
    longest = {"arm": max(width // 4, NARROWEST_NAME), "key": LONGEST_KEY}
    yield _heading(table.title)
    yield _grid(_shortened(table, longest), width)
    if table.note:
        yield Text(table.note)


def _shortened(table: TableOfWords, longest: dict[str, int]) -> TableOfWords:
    """Shorten the cells of some columns."""
    cells = [
        shortened(cells, longest[name], cell_len) if name in longest else cells
        for name, *cells in zip(table.columns, *table.rows, strict=True)
    ]
    return table._replace(rows=[list(row) for row in zip(*cells, strict=True)])


def _without(table: TableOfWords, column: str) -> TableOfWords:
    """Leave out a column, which would make a table too wide."""
    place = table.columns.index(column)
    columns, *rows = ([*row[:place], *row[place + 1 :]] for row in (table.columns, *table.rows))
    return table._replace(columns=columns, rows=rows)


def _grid(table: TableOfWords, width: int, drawn: str = "") -> Table:
    """Return a table for the screen. No number is ever cut; a plan may have many lines.

    ``drawn`` is the head of a column of drawings.
    """
    wide, left = _widths(table), [*table.columns[: table.labels], drawn]
    if PLAN in table.columns:
        plan = table.columns.index(PLAN)
        room = width - sum(wide) - GAP * (len(wide) - 1) + wide[plan]
        wide[plan] = min(wide[plan], max(room, NARROWEST_PLAN))
    total = sum(wide) + GAP * (len(wide) - 1)
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold", width=total)
    for column, letters in zip(table.columns, wide, strict=True):
        justify: Literal["left", "right"] = "left" if column in left else "right"
        grid.add_column(Text(column), justify=justify, width=letters, overflow="fold")
    for row in table.rows:
        grid.add_row(*map(Text, row))
    return grid


def _widths(table: TableOfWords) -> list[int]:
    rows = (table.columns, *table.rows)
    return [max(map(cell_len, cells)) for cells in zip(*rows, strict=True)]


# ---------------------------------------------------------------- arms


def arms(facts: Facts, width: int) -> Table:
    """Return what is known of the arms, with their intervals drawn on one scale."""
    table = _without(words.arms_table(facts, MOST_ARMS), "last seen")
    table = _shortened(table, {"arm": max(width // 4, NARROWEST_NAME)})
    taken = sum(_widths(table)) + GAP * len(table.columns)
    room = min(max(width - taken, NARROWEST_BAR), WIDEST_BAR)
    shown = facts.by_share().head(MOST_ARMS)
    ends = shown[["low", "high", "mean"]].to_numpy(dtype=float)
    low, high = np.nanmin(ends), np.nanmax(ends)
    left, right = number(low), number(high)
    scale = f"{left} {right:>{room - len(left) - 1}}"
    bars = [bar(one.low, one.mean, one.high, (low, high), room) for one in rows_of(shown)]
    lines = zip([table.columns, *table.rows], [scale, *bars], strict=True)
    columns, *rows = ([*row[:-1], line, row[-1]] for row, line in lines)
    return _grid(table._replace(columns=columns, rows=rows), width, drawn=scale)


# ---------------------------------------------------------------- rounds


def rounds(facts: Facts, width: int) -> Iterator[RenderableType]:
    """Yield a chart of what rounds cost, the same in words, and what one should know of it."""
    if facts.curve.known:
        yield Text("\n".join(_chart(facts, width)))
    grid = Table.grid(padding=(0, GAP, 0, 0))
    grid.add_column(no_wrap=True)
    for name, said in words.outcomes(facts).items():
        grid.add_row(Text(name), Text(said))
    yield grid
    for note in words.notes(facts):
        yield Text(note)


def _chart(facts: Facts, width: int) -> Iterator[str]:
    """Yield the lines of the chart, with what to compare with at their ends."""
    stretches = facts.curve.stretches(max(width - MARGIN - ASIDE, MARGIN))
    expected = [one.average.expected for one in stretches]
    levels = {EXPECTED: next((one for one in reversed(expected) if not np.isnan(one)), np.nan)}
    if not isinstance(facts.best, InvalidInput):
        levels = {BEST: facts.best.expected.total} | levels
    yield from chart([one.average.realised for one in stretches], levels)
    yield " " * MARGIN + _numbers(stretches)


def _numbers(stretches: list[Stretch]) -> str:
    """Return the numbers of the rounds below a chart, and how many are in a column."""
    last, together, wide = stretches[-1].last, stretches[0].last, len(stretches)
    if wide < len(f"1 {last}"):
        return "round 1" if last == 1 else f"rounds 1 to {last}"
    each = f"{together} rounds" if together > 1 else "one round"
    return f"1{last:>{wide - 1}}  {each} a column"
