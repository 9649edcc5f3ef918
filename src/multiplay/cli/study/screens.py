"""What the commands of studies show, and how they count along."""

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from multiplay._support.formatting import Table
from multiplay.actions.transport import UNMET, sides_of
from multiplay.cli.app import errors
from multiplay.cli.screen import for_screen
from multiplay.cli.study.app import DEFAULT_STORE
from multiplay.studies import Study

NOTHING = "-"
PAUSE = 0.1  # seconds between two moves of a bar


def show(table: Table) -> None:
    """Print a table."""
    Console().print(for_screen(table))


def plan_table(plan: Mapping[str, int], title: str) -> Table:
    """Return a plan as a table: suppliers by demanders if that fits, or the arms that are played.

    Examples
    --------
    >>> plan_table({"Lyon->north": 2, "Lyon->south": 0, "unmet->south": 1}, "Today").rows
    [['Lyon', '2', '-'], ['unmet', '-', '1']]
    >>> plan_table({"news": 2, "radio": 0}, "Today").rows
    [['news', '2']]
    """
    unmet = {name: units for name, units in plan.items() if name.startswith(UNMET)}
    lanes = {name: units for name, units in plan.items() if name not in unmet}
    sides = sides_of(list(lanes))
    if sides is not None:
        sources, targets = sides
        rows = [[x, *(shown(lanes[f"{x}->{y}"]) for y in targets)] for x in sources]
        if unmet:
            rows.append(["unmet", *(shown(unmet.get(f"{UNMET}{y}", 0)) for y in targets)])
        cells = [["", *targets], *rows]
        widths = [max(map(cell_len, column)) + 3 for column in zip(*cells, strict=True)]
        if sum(widths) < Console().width:
            return Table(title, ["", *targets], rows)
    played = [[name, shown(units)] for name, units in plan.items() if units]
    others = len(plan) - len(played)
    note = f"nothing of {others} other arms" if others else ""
    return Table(title, ["arm", "units"], played, note)


def shown(units: int) -> str:
    """Return units in a table."""
    return str(units) if units else NOTHING


def moment(time: Any) -> str:
    """Return a time in a table; nothing for one that is not known."""
    return "" if time != time else f"{time:%Y-%m-%d %H:%M}"


def next_step(command: str, study: Study, store: str) -> str:
    """Say which command comes next."""
    usual = os.environ.get("MULTIPLAY_STORE", DEFAULT_STORE)
    where = "" if store == usual else f" --store {quoted(study.store.url)}"
    return f"Next: multiplay study {command}{where}"


def quoted(text: str) -> str:
    """Return text as a shell takes it."""
    return shlex.quote(text)


def size(study: Study) -> int:
    """Return how many entries a journal has now."""
    with closing(study.store.open(study.name)) as journal:
        return journal.head().number + 1


@contextmanager
def bar(words: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function that moves a bar to a number; silent where no terminal is attached."""
    if not sys.stderr.isatty():
        yield lambda number: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(), console=errors(), transient=True) as progress:
        task, moved = progress.add_task(words, total=total), time.monotonic()

        def move(number: int) -> None:
            nonlocal moved
            if time.monotonic() > moved + PAUSE:
                moved = time.monotonic()
                progress.update(task, completed=number)

        yield move
