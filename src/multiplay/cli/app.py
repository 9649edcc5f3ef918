"""The application of the command line, its exit codes, and checks that commands share."""

from pathlib import Path
from typing import Annotated, ClassVar

import typer
from rich.console import Console

from multiplay.cli.lazy_commands import LazyGroup
from multiplay.errors import InvalidInput, StoreError
from multiplay.version import described


class Commands(LazyGroup):
    """All commands, in the order of --help."""

    panels: ClassVar[dict[str, dict[str, str]]] = {
        "Commands": {
            "bench": "multiplay.cli.bench:bench",
            "data": "multiplay.cli.data:data",
            "reproduce": "multiplay.cli.reproduce:reproduce",
            "show": "multiplay.cli.results:show",
            "plot": "multiplay.cli.results:plot",
            "report": "multiplay.cli.results:report",
            "run": "multiplay.cli.run:run",
            "serve": "multiplay.cli.service:serve",
            "table1": "multiplay.cli.table1:table1",
            "study": "multiplay.cli.study.app:study",
            "fleet": "multiplay.cli.fleet:fleet",
            "key": "multiplay.cli.service:key",
        }
    }


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="""
    Choose [b]how many units[/b] of each arm to play, round after round, when costs are unknown.

    In each round, a policy chooses whole numbers (such as trucks on a lane), observes the cost
    of each unit, and learns from it. Run the experiments of the paper:

        multiplay reproduce

    Keep a study of your own, with a plan for every day:

        multiplay study --help

    Use it in Python:

        import multiplay as mp
        plans = mp.Transport(supply=[1, 4, 5], demand=[4, 6])
        learner = mp.Learner(plans, seed=7)
        play = learner.ask()
    """,
)


def main() -> None:
    """Run the command line; invalid input gives one line and exit code 2, not a traceback."""
    try:
        app()
    except (InvalidInput, StoreError) as error:
        typer.secho("multiplay: ", fg="red", bold=True, nl=False, err=True)
        typer.echo(error, err=True)
        raise SystemExit(2 if isinstance(error, InvalidInput) else 1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def errors() -> Console:
    """Return the console on standard error, for everything but the answer."""
    return Console(stderr=True)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Print the version."""
    if show:
        typer.echo(described())
        raise typer.Exit


def check_suffix(argument: str, path: Path, allowed: tuple[str, ...]) -> None:
    """Raise ``InvalidInput`` unless the name of a file ends in one of these."""
    if path.suffix.lower() not in allowed:
        raise InvalidInput(
            argument,
            f"a name that ends in {' or '.join(allowed)}",
            str(path),
            "Choose one of these endings.",
        )
