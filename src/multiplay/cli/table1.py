"""Command table1: Table 1 of the paper, measured."""

import json
import time
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType

from multiplay._support.atomic_files import write_text, write_whole
from multiplay._support.checks import positive_integer
from multiplay._support.deadline import reported
from multiplay.cli.app import errors
from multiplay.cli.reproduce import MOST_INSTANCES, folder_of_results
from multiplay.cli.screen import for_screen, write_tables
from multiplay.experiments import table1 as experiment
from multiplay.experiments.growth import growth as growth_of
from multiplay.reports import table1 as report
from multiplay.simulation.executors import MOST_JOBS, available_cores


def table1(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[EXPERIMENT.toml]", help="The paper's instance if not given."),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Independent trials; the paper has 30.")
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(min=1, help="Rounds in a trial; the paper has 10,000.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; one for each core if not given.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for table, page, figure, results.")] = Path(
        "results/table1"
    ),
) -> None:
    """Measure Table 1 of the paper: regret, time and memory beside its formulas.

    Seven rows of the paper, and two baselines (LinTS, LinUCB). Three of the rows and both baselines
    observe only the [b]total[/b] loss of a round, the others the loss of [b]every unit[/b]. Each is
    run in three regimes: stochastic, corrupted (losses L become 1 - L after a fifth of the rounds),
    and adversarial (all means jump up and down together).

    From an experiment file (see [b]multiplay run --print-example[/b]) it takes the set, the losses,
    the horizon, the trials and the seed, but not the policies. The environment must be
    [b]Stochastic[/b]: the other two regimes are derived from it. A row that cannot play on this set
    has a dash, and a note gives the reason.

    Writes [b]table1.txt[/b], [b]table1.html[/b], [b]table1.png[/b] and [b]table1.svg[/b]; the
    results as [b]stochastic.nc[/b], [b]corrupted.nc[/b] and [b]adversarial.nc[/b], for
    [b]multiplay show[/b], [b]plot[/b] and [b]report[/b]; and memory and growth as
    [b]costs.json[/b].

    Examples:

        multiplay table1

        multiplay table1 --trials 5 --horizon 1000 --out results/quick

        multiplay table1 experiment.toml --jobs 4 --out results/mine
    """
    jobs = positive_integer(
        "jobs", jobs or available_cores(), "Give a positive whole number.", MOST_JOBS
    )
    given = {"trials": trials, "horizon": horizon, "seed": seed}
    changes = {key: value for key, value in given.items() if value is not None}
    instance, started = experiment.instance(file, **changes), time.perf_counter()
    with folder_of_results(out) as folder:
        measured = _measure(instance, file is None, jobs, folder)
    tables: list[RenderableType] = [for_screen(table) for table in report.table1_tables(measured)]
    write_whole(folder / "table1.txt", partial(write_tables, tables, sep="\n\n"))
    command = report.table1_command(None if file is None else str(file), instance)
    write_text(folder / "table1.html", report.table1_page(measured, command))
    save = partial(report.table1_figure(measured).savefig, dpi=150)
    for suffix in ("png", "svg"):
        write_whole(folder / f"table1.{suffix}", save)
    Console().print(*tables, sep="\n\n")
    seconds = time.perf_counter() - started
    typer.echo(f"table1.txt, .html, .png, .svg and the results are in {folder}/ ({seconds:.0f} s)")


def _measure(
    instance: experiment.Instance, is_papers: bool, jobs: int, folder: Path
) -> experiment.Measurements:
    """Measure everything; each result is saved before the next regime begins."""
    compiling = "compiling, and measuring memory (the first time takes a minute)"
    with errors().status(compiling), reported("memory"):
        fitting = experiment.fitting(instance)
    rows, outcomes = [row for row in experiment.ROWS if row.name in fitting.memory], {}
    for regime in experiment.REGIMES:
        with reported(f"{regime} regime"):
            outcome = experiment.run(instance, regime, rows, jobs)
        if outcome.result is not None:
            outcome.result.save(folder / f"{regime}.nc")
        outcomes[regime] = outcome
    with errors().status("measuring how time and memory grow"), reported("growth"):
        growth = {row.name: growth_of(row.policy) for row in experiment.ROWS}
    costs = {"memory": fitting.memory, "growth": {k: one._asdict() for k, one in growth.items()}}
    write_text(folder / "costs.json", json.dumps(costs, indent=1))
    bounds = {}
    if is_papers:
        with errors().status("computing the lower bounds"), reported("lower bounds"):
            few = min(instance.trials, MOST_INSTANCES)
            bounds = experiment.lower_bounds(few, instance.seed)
    return experiment.Measurements(instance, fitting, outcomes, growth, bounds)
