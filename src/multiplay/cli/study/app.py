"""The commands of studies: what they share."""

import json
import math
from typing import Annotated, Any

import typer

from multiplay.cli.app import app
from multiplay.cli.study.words import Commands
from multiplay.studies.study import PLACE, Study

study = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="""
    Plans for every day, from a study: it learns what they cost, and loses nothing.

    A study lives in a store: a file (SQLite) or a PostgreSQL database. Any number of programs may
    use it at once. A first day:

        multiplay study create lanes --supply 1,4,5 --demand 4,6 --losses 0,250

        multiplay study ask lanes --key 2026-11-15

        multiplay study tell lanes 1 costs.csv

        multiplay study show lanes
    """,
)
app.add_typer(study, name="study")

Name = Annotated[str, typer.Argument(help="The name of the study.")]
StoreAt = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="MULTIPLAY_STORE",
        help="Where studies are kept: sqlite:///FILE, or postgresql://USER@HOST/DATABASE.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, for programs.")]
Key = Annotated[
    str | None,
    typer.Option(help="What you call this request: given again, it answers the same."),
]
DEFAULT_STORE = PLACE


def opened(name: str, store: str) -> Study:
    """Open a study for a command."""
    return Study.open(name, store=store)


def print_json(answer: Any) -> None:
    """Print an answer for programs: NaN is null, times are ISO 8601."""
    typer.echo(text_of(answer))


def text_of(answer: Any) -> str:
    """Return an answer as JSON."""
    return json.dumps(plain(answer), ensure_ascii=False)


def plain(value: Any) -> Any:
    """Return what JSON can hold."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "item"):  # a number of numpy
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "isoformat"):
        return None if value != value else value.isoformat(timespec="microseconds")  # NaT
    return value
