"""multiplay study show: what a study knows, on the screen or as a page."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from multiplay._support.atomic_files import write_text
from multiplay.cli.files import check_suffix
from multiplay.cli.study.app import (
    DEFAULT_STORE,
    AsJson,
    Name,
    StoreAt,
    opened,
    print_json,
    study,
)
from multiplay.cli.study.drawing import draw
from multiplay.reports.study import LAST, facts
from multiplay.reports.study_page import page


@study.command()
def show(
    name: Name,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
    last: Annotated[int, typer.Option(min=0, help="How many of the last plays to show.")] = LAST,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page instead: .html.")
    ] = None,
    level: Annotated[
        float, typer.Option(help="Of the intervals: the probability that one holds the truth.")
    ] = 0.95,
) -> None:
    """Show a study: what it believes of every arm, what rounds cost, what waits, what to do.

    With [b]--html[/b], a page to read in any browser, to send and to archive: one file that
    fetches nothing.

    Examples:

        multiplay study show lanes

        multiplay study show lanes --last 30 --level 0.9

        multiplay study show lanes --html lanes.html

    JSON: study, store, policy, unit, at; asked, told, pending, cancelled, clipped, incomplete
    (numbers); level; arms; best, with plan and expected, or refused; rounds, with mean, expected,
    change and stretches; drift; plays_pending; last_plays.
    """
    if html is not None:
        check_suffix("html", html, (".html", ".htm"))
    with opened(name, store) as found:
        seen = facts(found, last, level)
    said = None if store in (DEFAULT_STORE, os.environ.get("MULTIPLAY_STORE")) else seen.store
    if html is not None:
        write_text(html, page(seen, said))
    if as_json:
        print_json(seen.plain())
    elif html is not None:
        typer.echo(f"{html}")
    else:
        draw(Console(), seen, said)
