"""Command run: an experiment from a TOML file."""

import shutil
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from multiplay._support.atomic_files import (
    missing_folders,
    taken_back_if_refused,
    writable_folder,
    write_whole,
)
from multiplay.cli.app import errors
from multiplay.cli.screen import for_screen
from multiplay.errors import InvalidInput
from multiplay.experiments.experiment import Experiment, read, shipped
from multiplay.results import Result
from multiplay.results.result import regret_table
from multiplay.simulation.cluster import cluster as on_cluster
from multiplay.simulation.executors import available_cores

RESULT, BLOCKS = "result.nc", "blocks"


def run(
    file: Annotated[Path | None, typer.Argument(help="The experiment: a TOML file.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the result; results/NAME if not given.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; one for each core if not given.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue an interrupted run: compute missing blocks."),
    ] = False,
    cluster: Annotated[
        str | None, typer.Option(help="Run on a Dask cluster: the address of its scheduler.")
    ] = None,
    print_example: Annotated[
        bool, typer.Option("--print-example", help="Print a commented example and exit.")
    ] = False,
) -> None:
    """Run an experiment from a TOML file.

    For a class of your own, write [b]type = "module.Class"[/b], and put the module beside the file.
    Its code is run here and on the workers of a cluster, which receive a copy.

    Each block is saved when it is finished. After Ctrl-C, a crash or a full disk,
    [b]--resume[/b] computes only the missing blocks, and gives the same result.

    Writes [b]result.nc[/b], for [b]multiplay show[/b], [b]plot[/b] and [b]report[/b], and
    [b]regret.png[/b] and [b]regret.svg[/b].

    Examples:

        multiplay run --print-example > experiment.toml

        multiplay run experiment.toml

        multiplay run experiment.toml --resume --jobs 4

        multiplay run experiment.toml --cluster tcp://localhost:8786
    """
    if print_example:
        typer.echo(shipped("example").read_text(encoding="utf-8"), nl=False)
        return
    if file is None:
        raise InvalidInput(
            "file", "an experiment file", "no file", "See multiplay run --print-example."
        )
    experiment = read(file)
    folder = out or Path("results") / file.stem
    if (folder / RESULT).exists():
        raise InvalidInput(
            "out",
            "a folder without a result",
            f"{folder}, which has one",
            f"Show it with multiplay show {folder / RESULT}, or choose a different --out.",
        )
    with taken_back_if_refused(missing_folders(folder)):
        writable_folder("out", folder)
        result = _run(experiment, folder, jobs or available_cores(), cluster, resume, file)
    result.save(folder / RESULT)
    save = partial(result.plot().savefig, dpi=150)
    for suffix in ("png", "svg"):
        write_whole(folder / f"regret.{suffix}", save)
    shutil.rmtree(folder / BLOCKS)
    Console().print(for_screen(regret_table(result), experiment.title or file.stem))
    typer.echo(f"result.nc and regret.png are in {folder}/")


def _run(
    experiment: Experiment,
    folder: Path,
    jobs: int,
    cluster: str | None,
    resume: bool,
    file: Path,
) -> Result:
    again = f"continue with: multiplay run {file} --out {folder} --resume"
    try:
        with ExitStack() as stack:
            executor = None
            if cluster is not None:
                executor, jobs = stack.enter_context(on_cluster(cluster))
            return experiment.run(jobs, executor, folder / BLOCKS, resume)
    except KeyboardInterrupt:
        errors().print(f"Interrupted. Finished blocks are kept; {again}", highlight=False)
        raise typer.Exit(130) from None
    except OSError as error:
        errors().print(f"{error}. Finished blocks are kept; {again}", highlight=False)
        raise typer.Exit(1) from None
