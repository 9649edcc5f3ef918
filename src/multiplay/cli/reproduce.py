"""Command reproduce: the experiments of the paper, and its claims."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.table import Table

from multiplay._support.atomic_files import (
    missing_folders,
    taken_back_if_refused,
    writable_folder,
    write_text,
    write_whole,
)
from multiplay._support.checks import EXACT, positive_integer
from multiplay._support.deadline import reported
from multiplay.cli.app import errors
from multiplay.cli.screen import for_screen, write_tables
from multiplay.experiments import paper
from multiplay.reports import report
from multiplay.results import Result
from multiplay.results.result import regret_table
from multiplay.simulation.executors import MOST_JOBS, available_cores
from multiplay.simulation.simulate import MOST_TRIALS

MOST_INSTANCES = 100  # whose lower bounds are averaged


def reproduce(
    trials: Annotated[int, typer.Option(min=1, help="Independent trials; the paper has 30.")] = 30,
    horizon: Annotated[int, typer.Option(min=55, help="Rounds in a trial.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; one for each core if not given.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for figures, results and summary.")] = Path(
        "results"
    ),
    all_policies: Annotated[
        bool,
        typer.Option("--all-policies", help="Also run all policies, and write report.html."),
    ] = False,
) -> None:
    """Run both experiments of the paper and test its claims.

    Writes [b]figure1[/b] (stochastic) and [b]figure2[/b] (corrupted) as png and svg, the results as
    netCDF, and [b]summary.txt[/b]. Read the results in Python with
    [b]multiplay.load("results/stochastic.nc")[/b].

    With [b]--all-policies[/b], both experiments are run again with all policies of the library,
    including those that observe only the total of a round. [b]report.html[/b] compares them.

    Examples:

        multiplay reproduce

        multiplay reproduce --all-policies

        multiplay reproduce --trials 300 --seed 1 --out results/300
    """
    jobs = jobs or available_cores()
    for option, number, largest in (
        ("horizon", horizon, EXACT),
        ("trials", trials, MOST_TRIALS),
        ("jobs", jobs, MOST_JOBS),
    ):
        positive_integer(option, number, "Give a positive whole number.", largest)
    started = time.perf_counter()
    with folder_of_results(out) as folder:
        results = _run_both(horizon, trials, seed, jobs, folder)
        if all_policies:
            _report_on_all(horizon, trials, seed, jobs, folder)
    tables: list[RenderableType] = [
        for_screen(regret_table(result), paper.TITLES[regime]) for regime, result in results.items()
    ]
    tables.append(_claims_table(paper.verdicts(**results), trials))
    write_whole(folder / "summary.txt", partial(write_tables, tables))
    Console().print(*tables, sep="\n")
    seconds = time.perf_counter() - started
    files = "figure1, figure2, results" + (", report.html" if all_policies else "")
    typer.echo(f"{files} and summary are in {folder}/ ({seconds:.0f} s)")


@contextmanager
def folder_of_results(out: Path) -> Iterator[Path]:
    """Yield the folder of a command; after an interrupt, say what is kept, and exit."""
    try:
        with taken_back_if_refused(missing_folders(out)):
            yield writable_folder("out", out)
    except KeyboardInterrupt:
        errors().print("Interrupted: files that were complete are kept, without partial files.")
        raise typer.Exit(130) from None


def _run_both(horizon: int, trials: int, seed: int, jobs: int, folder: Path) -> dict[str, Result]:
    """Run the two experiments; each is saved before the next begins.

    In the first run, each process compiles the kernels of its policies.
    """
    results = {}
    for number, regime in enumerate(paper.REGIMES, start=1):
        with reported(f"{regime} regime"):
            result = paper.run(regime, horizon, trials, seed, jobs)
        result.save(folder / f"{regime}.nc")
        bounds = {}
        if regime == "stochastic":
            with reported("lower bounds"):
                bounds["lower bound"] = paper.lower_bounds(min(trials, MOST_INSTANCES), seed)
        save = partial(result.plot(bounds=bounds).savefig, dpi=150)
        for suffix in ("png", "svg"):
            write_whole(folder / f"figure{number}.{suffix}", save)
        results[regime] = result
    return results


def _report_on_all(horizon: int, trials: int, seed: int, jobs: int, folder: Path) -> None:
    """Run all policies in both regimes, and write the report."""
    policies, results = paper.all_policies(), {}
    for regime in paper.REGIMES:
        with reported(f"{regime} regime, all policies"):
            result = paper.run(regime, horizon, trials, seed, jobs, policies=policies)
        result.save(folder / f"{regime}-all.nc")
        results[f"{regime}-all.nc"] = result
    with reported("report"):
        page = report(results, "All policies in the experiments of the paper")
    write_text(folder / "report.html", page)


def _claims_table(verdicts: list[paper.Verdict], trials: int) -> Table:
    table = Table(
        title=f"Claims of the paper, at {trials} trials",
        title_justify="left",
        caption="A claim holds if its interval lies below 0. Early growth: in the first fifth of "
        "the rounds after the switch; late growth: in the last fifth. Linear regret would grow by "
        "100 % of its early growth, a square root by 27 %, and what levels off by less than 10 %.",
        caption_justify="left",
        show_lines=True,
    )
    table.add_column("claim", ratio=3)
    table.add_column("verdict", no_wrap=True)
    table.add_column("paired difference, 95 % interval", ratio=4)
    styles = {"holds": "green", "does not hold": "red", "undecided": "yellow", "no claim": "dim"}
    for verdict in verdicts:
        mean, low, high = verdict.estimate
        table.add_row(
            verdict.claim,
            f"[{styles[verdict.outcome]}]{verdict.outcome}[/]",
            f"{verdict.measure}:\n{mean:.1f} ({low:.1f} to {high:.1f})"
            + (f"\n{verdict.note}" if verdict.note else ""),
        )
    return table
