"""multiplay study list, pending, arms and plays: what is known, and what was done."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from multiplay._support.formatting import Table, between, number
from multiplay.cli.study.app import (
    DEFAULT_STORE,
    AsJson,
    Name,
    StoreAt,
    opened,
    print_json,
    study,
    text_of,
)
from multiplay.cli.study.ask import described
from multiplay.cli.study.screens import moment, show
from multiplay.learner.plays import TOLD
from multiplay.storage import store_at
from multiplay.studies import Study

CHUNK = 1_000  # plays that are read at once
FEW = 20


@study.command("list")
def list_all(store: StoreAt = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Print the names of all studies of a store.

    Examples:

        multiplay study list

        multiplay study list --store postgresql://planner@server/plans

    JSON: store, studies (their names).
    """
    names, place = Study.list(store=store), store_at(store).url
    if as_json:
        print_json({"store": place, "studies": names})
    elif names:
        typer.echo("\n".join(names))
    else:
        typer.echo(f"no studies in {place}", err=True)


@study.command()
def pending(name: Name, store: StoreAt = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Show the plays that wait for their losses, oldest first.

    Examples:

        multiplay study pending lanes

    JSON: a list of plays, each as multiplay study ask prints it.
    """
    with opened(name, store) as known:
        plays = known.pending()
        if as_json:
            return print_json([described(play) for play in plays])
        rows = [
            [str(p.id), p.key or "", str(p.action.sum()), number_or_none(p.expected.total)]
            for p in plays
        ]
        show(Table(f"Plays of {name} that wait", ["id", "key", "units", "expected"], rows))
    return None


@study.command()
def arms(
    name: Name,
    level: Annotated[float, typer.Option(help="How sure the intervals are.")] = 0.95,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show what is believed of every arm: units seen, mean, interval, last seen, share of plans.

    Examples:

        multiplay study arms lanes

        multiplay study arms lanes --level 0.5 --json

    JSON: a list with arm, seen, mean, low, high, last_seen, share.
    """
    with opened(name, store) as known:
        table = known.arms(level)
    if as_json:
        return print_json(table.to_dict("records"))
    rows = [
        [arm, str(seen), number_or_none(mean), between(low, high), moment(last), f"{share:.0%}"]
        for arm, seen, mean, low, high, last, share in table.itertuples(index=False)
    ]
    interval = f"{level:.0%} interval"
    columns = ["arm", "seen", "mean", interval, "last seen", "share of plans"]
    return show(Table(f"Arms of {name}", columns, rows))


@study.command()
def plays(
    name: Name,
    last: Annotated[
        int | None,
        typer.Option(min=1, help="The newest only; 20 if not given, with --json all of them."),
    ] = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show what was asked and what it cost: the newest plays, in the order of their rounds.

    For all of them in a file, see [b]multiplay study export --plays[/b].

    Examples:

        multiplay study plays lanes --last 5

        multiplay study plays lanes --json > plays.json

    JSON: a list with id, key, status, asked, told, units, seen, expected, realised, clipped.
    """
    with opened(name, store) as known:
        rows = (row for table in known.plays(chunk=CHUNK) for row in table.to_dict("records"))
        if as_json:
            return _print_list(rows if last is None else deque(rows, last))
        few = deque(rows, FEW if last is None else last)
        title = f"The newest {len(few)} of {known.asked} plays of {name}"
    columns = ["id", "key", "asked", "units", "expected", "realised"]
    return show(Table(title, columns, [_cells(row) for row in few], labels=2))


def _print_list(rows: Iterable[Any]) -> None:
    """Print a list for programs, without ever holding all of it."""
    typer.echo("[", nl=False)
    for text in _separated(map(text_of, rows)):
        typer.echo(text, nl=False)
    typer.echo("]")


def _separated(texts: Iterable[str]) -> Iterator[str]:
    before = ""
    for text in texts:
        yield before + text
        before = ",\n"


def _cells(row: dict[str, Any]) -> list[str]:
    """Return a play for the screen; where nothing is realised, say why."""
    units, seen, status = row["units"], row["seen"], row["status"]
    told = status == TOLD
    return [
        str(row["id"]),
        row["key"] or "",
        moment(row["asked"]),
        f"{seen} of {units}" if told and seen < units else str(units),
        number_or_none(row["expected"]),
        number_or_none(row["realised"]) if told else status,
    ]


def number_or_none(value: float) -> str:
    """Return a number, and nothing for NaN."""
    return "" if value != value else number(value)
