"""The command line."""

import importlib
import sys
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from multiplay import __version__, paper
from multiplay.errors import InvalidInput
from multiplay.files import writable_folder, write_whole
from multiplay.simulation import Result
from multiplay.simulation.workers import LocalProcesses, available_cores

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
    except InvalidInput as error:
        typer.secho("multiplay: ", fg="red", bold=True, nl=False, err=True)
        typer.echo(error, err=True)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _errors() -> Console:
    return Console(stderr=True)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    """Answer ``--version``."""
    if show:
        typer.echo(f"multiplay {__version__}")
        raise typer.Exit


@app.command()
def reproduce(
    trials: Annotated[int, typer.Option(min=1, help="Independent trials; the paper has 30.")] = 30,
    horizon: Annotated[int, typer.Option(min=55, help="Rounds in a trial.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; one for each core if not given.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for figures, results and summary.")] = Path(
        "results"
    ),
) -> None:
    """Run both experiments of the paper and judge its claims.

    Writes [b]figure1[/b] (stochastic) and [b]figure2[/b] (corrupted) as png and svg, the results as
    netCDF, and [b]summary.txt[/b]. Read the results in Python with
    [b]multiplay.load("results/stochastic.nc")[/b].

    Examples:

        multiplay reproduce

        multiplay reproduce --trials 300 --seed 1 --out results/300
    """
    jobs = jobs or available_cores()
    folder = writable_folder("out", out)
    started = time.perf_counter()
    try:
        results = _run_both(horizon, trials, seed, jobs, folder)
    except KeyboardInterrupt:
        _errors().print("Interrupted: files that were complete are in place, no half ones.")
        raise typer.Exit(130) from None
    tables = [_summary_table(regime, result) for regime, result in results.items()]
    tables.append(_claims_table(paper.verdicts(**results), trials))
    write_whole(folder / "summary.txt", lambda draft: _write_text(tables, draft))
    Console().print(*tables, sep="\n")
    seconds = time.perf_counter() - started
    typer.echo(f"figure1, figure2, results and summary are in {folder}/ ({seconds:.0f} s)")


@app.command()
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Two minutes, smaller sizes.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="A topic, such as rounds or oracle; may be repeated.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for figures and benchmarks.json.")] = Path(
        "results/bench"
    ),
) -> None:
    """Measure the speed and the memory of everything, side by side with other software.

    Needs a checkout of the repository and the packages that it is compared with:
    [b]make bench[/b] sets both up. What it found on one machine is in docs/performance.md.

    Examples:

        multiplay bench --quick

        multiplay bench --only step --only oracle
    """
    suite = _benchmarks()
    for topic in only or ():
        if topic not in suite.TOPICS:
            raise InvalidInput("only", " or ".join(suite.TOPICS), topic, "Leave it out for all.")
    suite.main(quick, out, only or None)


def _benchmarks() -> Any:
    """Import the suite, which lives beside the package and not in it."""
    root = Path(__file__).parents[2]
    if not (root / "benchmarks" / "suite.py").is_file():
        raise InvalidInput(
            "bench", "a checkout of the repository", "an installed package", "Run make bench there."
        )
    sys.path.insert(0, str(root))
    try:
        return importlib.import_module("benchmarks.suite")
    except ModuleNotFoundError as missing:
        raise InvalidInput(
            "bench",
            "the software to compare with",
            f"no module {missing.name}",
            "Run make bench, or pip install '.[bench]'.",
        ) from None


def _run_both(horizon: int, trials: int, seed: int, jobs: int, folder: Path) -> dict[str, Result]:
    """Run the two experiments on the same processes; each is on disk before the next begins."""
    with _errors().status("compiling (the first time takes half a minute)"):
        paper.run("stochastic", horizon=55, trials=2)
    results = {}
    with LocalProcesses(jobs) as pool:
        for number, (regime, title) in enumerate(paper.TITLES.items(), start=1):
            result = paper.run(regime, horizon, trials, seed, jobs, pool)
            result.save(folder / f"{regime}.nc")
            save = partial(result.plot(title=title).savefig, dpi=150)
            for suffix in ("png", "svg"):
                write_whole(folder / f"figure{number}.{suffix}", save)
            results[regime] = result
    return results


def _summary_table(regime: str, result: Result) -> Table:
    table = Table(title=paper.TITLES[regime], title_justify="left")
    table.add_column("policy")
    for column in ("final regret", "95 % interval", "µs per trial and round"):
        table.add_column(column, justify="right")
    for policy, row in result.summary().iterrows():
        table.add_row(
            str(policy),
            f"{row['regret']:.1f}",
            f"{row['ci low']:.1f} to {row['ci high']:.1f}",
            f"{row['µs per round']:.1f}",
        )
    if "corruption" in result.dataset:
        level = float(result.dataset["corruption"].mean())
        table.caption = f"corruption C = {level:.0f} on average"
    return table


def _claims_table(verdicts: list[paper.Verdict], trials: int) -> Table:
    table = Table(
        title=f"Claims of the paper, at {trials} trials",
        title_justify="left",
        caption="A claim holds if its interval lies below 0. Early growth: in the first fifth of "
        "the rounds after the switch; late growth: in the last fifth.",
        caption_justify="left",
        show_lines=True,
    )
    table.add_column("claim", ratio=3)
    table.add_column("verdict", no_wrap=True)
    table.add_column("paired difference, 95 % interval", ratio=4)
    styles = {"holds": "green", "does not hold": "red", "undecided": "yellow"}
    for verdict in verdicts:
        mean, low, high = verdict.estimate
        table.add_row(
            verdict.claim,
            f"[{styles[verdict.outcome]}]{verdict.outcome}[/]",
            f"{verdict.measure}:\n{mean:.1f} ({low:.1f} to {high:.1f})",
        )
    return table


def _write_text(tables: list[Table], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        Console(file=file, width=100).print(*tables, sep="\n")
