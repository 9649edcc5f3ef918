"""Facts of a study on the terminal: tables, interval bars and a chart, without colours."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from multiplay._support.formatting import Table as TextTable
from multiplay._support.formatting import abbreviated, plural
from multiplay._support.hints import Surface
from multiplay._support.words import Words, money_text
from multiplay.errors import InvalidInput
from multiplay.learner.facts import rows_of
from multiplay.reports import study_text
from multiplay.reports.study import StudyFacts
from multiplay.reports.study_curve import Stretch
from multiplay.types import FloatArray

HEIGHT = 5  # lines of a chart
MARGIN = 10  # characters of the scale to its left
FROM_0 = 0.6  # a scale begins at 0 if the smallest value is below this part of the largest
EIGHTHS = " ▁▂▃▄▅▆▇█"
MOST_ARMS, MOST_PENDING, MOST_ALARMS = 20, 10, 10
NARROWEST, WIDEST = 40, 110  # characters: longer lines are hard to read
NARROWEST_NAME, LONGEST_KEY = 12, 14
NARROWEST_BAR, WIDEST_BAR = 10, 40
PLAN, NARROWEST_PLAN = "plan", 24
GAP = 2  # between columns
BEST, EXPECTED = "best plan", "expected"
ASIDE = len(f" ◂ {BEST}, {EXPECTED}  ")  # characters to the right of the chart
ASCII = str.maketrans("├┤─│●◂└\u00d7…�▁▂▃▄▅▆▇█", "||-|o<+x.?...:::##")


def draw_study(console: Console, facts: StudyFacts, store: str | None) -> None:
    """Print the facts; ``store`` is the option --store of the commands on it, if needed."""
    with console.capture() as captured:
        for part in _parts(facts, min(max(console.width, NARROWEST), WIDEST)):
            console.print(part, highlight=False, crop=False)
        console.print(_heading("Next steps"))
        for step in study_text.next_steps(facts, store):
            console.print(Text(step.why), highlight=False)
            console.print(Text(f"    {step.command}"), highlight=False, soft_wrap=True)
    lines = (line.rstrip() for line in captured.get().splitlines())
    print(writable("\n".join(lines), console.encoding))


def writable(text: str, encoding: str) -> str:
    """Return a text in characters of an encoding.

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


def _parts(facts: StudyFacts, width: int) -> Iterator[RenderableType]:
    say = study_text.wording(facts)
    yield _heading(f"{facts.name} in {facts.store}", first=True)
    yield Text("\n".join(study_text.head(facts)))
    words = facts.words
    yield _heading(
        words.in_currency(f"{plural(words.arm).capitalize()}: {say.noun} of a {words.unit}")
    )
    yield from _arms(facts, width)
    yield _heading(words.in_currency(f"{say.noun.capitalize()} per {words.round}"))
    yield from _rounds(facts, width)
    yield from _listed(facts.pending_table(MOST_PENDING), width)
    yield from _listed(study_text.alarms_table(facts, MOST_ALARMS), width)
    if no_alarm := study_text.no_alarm(facts):
        yield Text(f"\n{no_alarm}")
    yield from _listed(study_text.last_plays_table(facts).without("told"), width)


def _heading(text: str, first: bool = False) -> Text:
    return Text(text if first else f"\n{text}", style="bold")


# ---------------------------------------------------------------- tables


def _listed(table: TextTable, width: int) -> Iterator[RenderableType]:
    if not table.rows:
        return
    longest = {table.columns[0]: max(width // 4, NARROWEST_NAME), "key": LONGEST_KEY}
    yield _heading(table.title)
    yield _grid(_abbreviated(table, longest), width)
    if table.note:
        yield Text(table.note)


def _abbreviated(table: TextTable, longest: dict[str, int]) -> TextTable:
    """Abbreviate the cells of some columns."""
    cells = [
        abbreviated(cells, longest[name], cell_len) if name in longest else cells
        for name, *cells in zip(table.columns, *table.rows, strict=True)
    ]
    return table._replace(rows=[list(row) for row in zip(*cells, strict=True)])


def _grid(table: TextTable, width: int, drawn: str = "") -> Table:
    """Return a table for the screen. Numbers are not cut; a plan may have several lines.

    ``drawn`` is the head of a column of interval bars.
    """
    wide, left = _widths(table), [*table.columns[: table.labels], drawn]
    if PLAN in table.columns:
        plan = table.columns.index(PLAN)
        room = width - sum(wide) - GAP * (len(wide) - 1) + wide[plan]
        wide[plan] = min(wide[plan], max(room, NARROWEST_PLAN))
    total = sum(wide) + GAP * (len(wide) - 1)
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold", width=total)
    for column, room in zip(table.columns, wide, strict=True):
        justify: Literal["left", "right"] = "left" if column in left else "right"
        grid.add_column(Text(column), justify=justify, width=room, overflow="fold")
    for row in table.rows:
        grid.add_row(*map(Text, row))
    return grid


def _widths(table: TextTable) -> list[int]:
    rows = (table.columns, *table.rows)
    return [max(map(cell_len, cells)) for cells in zip(*rows, strict=True)]


# ---------------------------------------------------------------- arms


def _arms(facts: StudyFacts, width: int) -> Iterator[RenderableType]:
    """Yield the table of arms, with their intervals drawn on one scale."""
    table = facts.arms_table(MOST_ARMS).without("last seen")
    table = _abbreviated(table, {facts.words.arm: max(width // 4, NARROWEST_NAME)})
    taken = sum(_widths(table)) + GAP * len(table.columns)
    room = min(max(width - taken, NARROWEST_BAR), WIDEST_BAR)
    shown = facts.most_played(MOST_ARMS)
    ends = shown[["low", "high", "mean"]].to_numpy(dtype=float)
    known = ends[~np.isnan(ends)]
    low, high = (known.min(), known.max()) if len(known) else (np.nan, np.nan)
    left, right = money_text(low), money_text(high)
    scale = f"{left} {right:>{room - len(left) - 1}}"
    bars = [interval_bar(one.low, one.mean, one.high, (low, high), room) for one in rows_of(shown)]
    lines = zip([table.columns, *table.rows], [scale, *bars], strict=True)
    columns, *rows = ([*row[:-1], line, row[-1]] for row, line in lines)
    yield _grid(table._replace(columns=columns, rows=rows), width, drawn=scale)
    if table.note:
        yield Text(table.note)


# ---------------------------------------------------------------- rounds


def _rounds(facts: StudyFacts, width: int) -> Iterator[RenderableType]:
    """Yield a chart of the costs of rounds, the same as text, and remarks."""
    if facts.curve.known:
        yield Text("\n".join(_chart(facts, width)))
    grid = Table.grid(padding=(0, GAP, 0, 0))
    grid.add_column(no_wrap=True)
    for name, said in study_text.outcomes(facts, Surface.COMMAND_LINE).items():
        grid.add_row(Text(name), Text(said))
    yield grid
    for note in study_text.notes(facts):
        yield Text(note)


def _chart(facts: StudyFacts, width: int) -> Iterator[str]:
    """Yield the lines of the chart, with the best plan and the expected total beside it."""
    stretches = facts.curve.stretches(max(width - MARGIN - ASIDE, MARGIN))
    expected = [one.average.expected for one in stretches]
    levels = {EXPECTED: next((one for one in reversed(expected) if not np.isnan(one)), np.nan)}
    if not isinstance(facts.best, InvalidInput):
        levels = {BEST: facts.best.expected.total} | levels
    yield from column_chart([one.average.realised for one in stretches], levels)
    yield " " * MARGIN + _numbers(stretches, facts.words)


def _numbers(stretches: list[Stretch], words: Words) -> str:
    """Return the numbers of the rounds below a chart, and the rounds of a column."""
    last, together, wide = stretches[-1].last, stretches[0].last, len(stretches)
    if wide < len(f"1 {last}"):
        return f"{words.round} 1" if last == 1 else f"{plural(words.round)} 1 to {last}"
    each = words.rounds(together) if together > 1 else f"one {words.round}"
    return f"1{last:>{wide - 1}}  {each} a column"


# ---------------------------------------------------------------- charts of characters


def interval_bar(
    low: float, mean: float, high: float, scale: tuple[float, float], room: int
) -> str:
    """Draw an interval in so many characters, with a dot for the mean; unknown ones are left out.

    Examples
    --------
    >>> interval_bar(20, 50, 70, (0, 100), 21)
    '    ├─────●───┤      '
    >>> interval_bar(0, float("nan"), 100, (0, 100), 5)
    '├───┤'
    >>> interval_bar(float("nan"), 50, float("nan"), (0, 100), 5)
    '  ●  '
    """
    width = scale[1] - scale[0] or 1.0
    cells = [" "] * room

    def place(value: float) -> int:
        return round((value - scale[0]) / width * (room - 1))

    if not np.isnan(low + high):
        first, last = place(low), place(high)
        cells[first : last + 1] = "─" * (last + 1 - first)
        cells[first], cells[last] = ("├", "┤") if first < last else ("│", "│")
    if not np.isnan(mean):
        cells[place(mean)] = "●"
    return "".join(cells)


def column_chart(values: Sequence[float], levels: Mapping[str, float]) -> Iterator[str]:
    """Draw a column for each value, none for NaN, and the names of some levels beside.

    Examples
    --------
    >>> print(*column_chart([1, 2.5, 4.5, np.nan, 5], {"best": 2}), sep=chr(10))
           5 ┤  ▄ █
             │  █ █
             │ ▄█ █ ◂ best
             │ ██ █
             │███ █
           0 └─────
    """
    known = {name: level for name, level in levels.items() if not np.isnan(level)}
    everything = np.array([*values, *known.values()])
    bottom, top = scale_ends(everything[~np.isnan(everything)])

    def height(value: FloatArray) -> FloatArray:
        return (value - bottom) / (top - bottom) * HEIGHT

    heights = height(np.array(values))
    at = {name: min(int(height(np.array(level))), HEIGHT - 1) for name, level in known.items()}
    for line in reversed(range(HEIGHT)):
        label, edge = (money_text(top), "┤") if line == HEIGHT - 1 else ("", "│")
        beside = ", ".join(name for name, place in at.items() if place == line)
        aside = f" ◂ {beside}" if beside else ""
        yield f"{label:>{MARGIN - 2}} {edge}{_chart_line(heights - line)}{aside}"
    yield f"{money_text(bottom):>{MARGIN - 2}} └{'─' * len(values)}"


def _chart_line(heights: FloatArray) -> str:
    """Return one line of a chart, for columns of these heights above its bottom.

    Examples
    --------
    >>> _chart_line(np.array([-1, 0, 0.5, 1, 7, np.nan]))
    '  ▄██ '
    """
    eighths = np.nan_to_num(np.ceil(8 * np.clip(heights, 0, 1))).astype(int)
    return "".join(EIGHTHS[k] for k in eighths)


def scale_ends(values: FloatArray) -> tuple[float, float]:
    """Return the ends of a scale: from 0, if differences remain visible.

    Examples
    --------
    >>> scale_ends(np.array([3.0, 10.0])), scale_ends(np.array([90.0, 100.0]))
    ((0.0, 10.0), (88.0, 100.0))
    """
    low, high = float(values.min()), float(values.max())
    if 0 <= low <= FROM_0 * high:
        return 0.0, high or 1.0
    below = (high - low) / HEIGHT or abs(high) / HEIGHT or 1.0
    return low - below, high
