"""The application that commands are added to, and its way out."""

from typing import Annotated

import typer
from rich.console import Console

from multiplay.errors import InvalidInput, StoreError
from multiplay.version import __version__

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="""
    Learn [b]how many[/b] of everything to use, again and again, when nobody knows its cost.

    Each round, a policy picks whole numbers (trucks on every lane, say), sees what each unit cost,
    and does better next time. Start with the experiments of the paper:

        multiplay reproduce

    and go on in Python:

        import multiplay as mp
        plans = mp.Transport(supply=[1, 4, 5], demand=[4, 6])
        learner = mp.Learner(plans, mp.GenCTS(), seed=7)
        play = learner.ask()
    """,
)


def main() -> None:
    """Run the command line; bad input is one clear line, not a traceback."""
    try:
        app()
    except (InvalidInput, StoreError) as error:
        typer.secho("multiplay: ", fg="red", bold=True, nl=False, err=True)
        typer.echo(error, err=True)
        raise SystemExit(2 if isinstance(error, InvalidInput) else 1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def errors() -> Console:
    """Return the console for what is not the answer."""
    return Console(stderr=True)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    """Answer ``--version``."""
    if show:
        typer.echo(f"multiplay {__version__}")
        raise typer.Exit
