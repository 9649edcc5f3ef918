"""Tables for the screen."""

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from multiplay.reports import tables


def for_screen(table: tables.Table, title: str | None = None) -> Group:
    """Return a table for the screen, in letters as they are: a name may have brackets."""
    grid = Table(
        title=Text(title or table.title),
        title_justify="left",
        show_header=any(table.columns),
        box=box.HEAVY_HEAD,
    )
    for place, column in enumerate(table.columns):
        words = place < table.labels or not column
        grid.add_column(Text(column), justify="left" if words else "right", no_wrap=not words)
    for row in table.rows:
        grid.add_row(*map(Text, row))
    return Group(grid, Text(table.note))
