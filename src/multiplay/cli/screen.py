"""Tables on the screen and in text files."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from multiplay._support.formatting import Table as TextTable

WIDTH = 100  # characters in a line of a file


def for_screen(table: TextTable, title: str | None = None) -> Group:
    """Return a table for the screen; brackets in names are not markup."""
    grid = Table(
        title=Text(title or table.title),
        title_justify="left",
        show_header=any(table.columns),
        box=box.HEAVY_HEAD,
    )
    for place, column in enumerate(table.columns):
        words = place < table.labels or not column
        justify: Literal["left", "right"] = "left" if words else "right"
        grid.add_column(Text(column), justify=justify, no_wrap=not words, overflow="fold")
    for place, row in enumerate(table.rows):
        grid.add_row(*map(Text, row), end_section=place in table.ruled)
    return Group(grid, Text(table.note))


def write_tables(tables: Iterable[RenderableType], path: Path, sep: str = "\n") -> None:
    """Write tables to a file as the screen shows them, 100 characters wide."""
    with path.open("w", encoding="utf-8") as file:
        Console(file=file, width=WIDTH).print(*tables, sep=sep)


def print_table(table: TextTable, uncut: bool = False) -> None:
    """Print a table; ``uncut``: also one that is wider than the screen, in long lines."""
    console, grid = Console(), for_screen(table)
    if uncut:
        cells = zip(table.columns, *table.rows, strict=True)
        wide = sum(max(map(cell_len, column)) + 3 for column in cells) + 1
        console.width = max(console.width, wide)
    console.print(grid)
