"""Commands for many studies: fleet ask."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from multiplay._support.formatting import Table, counted
from multiplay.cli.screen import print_table
from multiplay.cli.study.app import StoreAt
from multiplay.cli.study.maintenance import progress_bar
from multiplay.errors import InvalidInput, StoreError
from multiplay.learner.plays import PendingPlay
from multiplay.remote.fleet import Answer
from multiplay.storage import Store
from multiplay.storage.stores import DEFAULT_STORE, store_at
from multiplay.studies import Study
from multiplay.studies.results import to_plain

MOST_SHOWN = 20  # plans in the table

fleet = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="""
    Many studies at once, such as one for each city.

        multiplay fleet ask --all --at 2026-11-18 --out plans.jsonl

        multiplay fleet ask --prefix west/ --at 2026-11-18 --url https://plans.example.org
    """,
)


@fleet.callback()
def commands() -> None:
    """Keep ``ask`` a command of a group that has no other one."""


@fleet.command()
def ask(
    names: Annotated[list[str] | None, typer.Argument(help="Names of studies.")] = None,
    at: Annotated[
        str,
        typer.Option(
            metavar="DAY", help="The day of the plans. It is the key of the play in each study."
        ),
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="All studies.")] = False,
    prefix: Annotated[
        str | None, typer.Option(help="The studies whose names begin with this text.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the plans to a file of JSON lines.")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            envvar="MULTIPLAY_URL", help="A service; its API key is read from MULTIPLAY_KEY."
        ),
    ] = None,
    api_key: Annotated[str | None, typer.Option(envvar="MULTIPLAY_KEY", hidden=True)] = None,
    store: StoreAt = DEFAULT_STORE,
) -> None:
    """Ask many studies for the plan of a day.

    The day is the key of the play in each study. So a command that was stopped is simply run again:
    a study that has a plan for this day gives the same plan.

        multiplay fleet ask --all --at 2026-11-18 --out plans.jsonl

    A study that fails does not stop the others: its error is printed, and the exit code is 1.
    """
    if not at:
        hint = "Write --at 2026-11-18."
        raise InvalidInput("--at", "the day of the plans", "nothing", hint)
    if bool(names) + every + (prefix is not None) != 1:
        got = "none" if not names and not every and prefix is None else "several"
        expected = "names of studies, --all or --prefix"
        raise InvalidInput("studies", expected, got, "Give one of them.")
    if url:
        from multiplay.remote.connection import connect

        service = connect(url, key=api_key).studies
        chosen = names or service.names(prefix or "")
        answers = service.ask(chosen, key=at)
    else:
        place = store_at(store)
        chosen = names or place.names(prefix or "")
        answers = (_asked(name, place, at) for name in chosen)
    found = list[Answer]()
    with progress_bar("asking studies", len(chosen)) as move:
        for one in answers:
            found.append(one)
            move(len(found))
    _report(found, at, out)


def _asked(name: str, store: Store, day: str) -> Answer:
    try:
        with Study.open(name, store=store) as study:
            return Answer(name, study.ask(key=day), None)
    except (InvalidInput, StoreError) as error:
        return Answer(name, None, error)


def _report(answers: list[Answer], day: str, out: Path | None) -> None:
    """Write or print the plans, then the errors."""
    plans = [one for one in answers if one.error is None]
    if out is not None:
        lines = [json.dumps(_plain(one.study, one.result)) for one in plans]
        out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        typer.echo(f"{counted(len(plans), 'plan')} of {day} in {out}.")
    elif plans:
        rows = [
            [one.study, _text(one.result), f"{one.result.expected.total:,.6g}"]
            for one in plans[:MOST_SHOWN]
        ]
        more = len(plans) - len(rows)
        note = f"{more} more: write them to a file with --out." if more else ""
        columns = ["study", "plan", "expected"]
        print_table(Table(f"Plans of {day}", columns, rows, labels=2, note=note))
    failed = [one for one in answers if one.error is not None]
    for one in failed[:MOST_SHOWN]:
        typer.secho(f"{one.study}: ", fg="red", bold=True, nl=False, err=True)
        typer.echo(one.error, err=True)
    if failed:
        typer.echo(f"{len(failed)} of {counted(len(answers), 'study')} failed.", err=True)
        raise typer.Exit(1)


def _plain(study: str, play: PendingPlay) -> dict[str, Any]:
    plain = to_plain(play)
    return {"study": study} | {name: plain[name] for name in ("id", "key", "plan", "expected")}


def _text(play: PendingPlay) -> str:
    return ", ".join(f"{arm} {units}" for arm, units in play.plan.items() if units)
