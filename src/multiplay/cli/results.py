"""Commands show, plot and report: saved results as text, figure and page."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from multiplay._support.atomic_files import write_text, write_whole
from multiplay.cli.app import check_suffix
from multiplay.cli.screen import print_table
from multiplay.experiments.experiment import experiment_file
from multiplay.reports import tables
from multiplay.reports.page import report as page_about
from multiplay.results import load
from multiplay.results.result import regret_table

Saved = Annotated[Path, typer.Argument(metavar="RESULT.nc", help="A file that Result.save wrote.")]


def show(
    result: Saved,
    experiment: Annotated[
        bool, typer.Option("--experiment", help="Print the experiment file that repeats it.")
    ] = False,
) -> None:
    """Show a result: conclusion, final regret, comparisons, other quantities, configuration.

    Policies are compared in pairs, on the same trials. The intervals are corrected for the number
    of pairs: with probability 95 %, no verdict is wrong.

    Examples:

        multiplay show results/stochastic.nc

        multiplay show run.nc --experiment > again.toml
    """
    loaded = load(result)
    if experiment:
        typer.echo(experiment_file(loaded), nl=False)
        return
    typer.echo(f"{tables.conclusion(loaded)}\n")
    makers = (
        regret_table,
        tables.comparisons_table,
        tables.quantities_table,
        tables.configuration_table,
    )
    for table in (make(loaded) for make in makers):
        if table.rows:
            print_table(table)


def plot(
    result: Saved,
    out: Annotated[Path, typer.Option("--out", "-o", help="The figure: .png, .svg or .pdf.")],
    trials: Annotated[
        bool, typer.Option("--trials", help="Also draw each trial as a thin line.")
    ] = False,
    x: Annotated[
        str, typer.Option(help="linear, or log: logarithmic regret is a straight line.")
    ] = "linear",
    y: Annotated[str, typer.Option(help="linear, or log, for positive values only.")] = "linear",
    measure: Annotated[
        str, typer.Option(help="regret (in expected losses), or realised (in observed losses).")
    ] = "regret",
    title: Annotated[str | None, typer.Option(help="The title of the figure.")] = None,
    marks: Annotated[
        bool, typer.Option(help="Mark events, such as the start of corruption.")
    ] = True,
) -> None:
    """Draw the mean regret of every policy with its 95 % confidence band.

    Examples:

        multiplay plot results/stochastic.nc -o regret.png

        multiplay plot run.nc -o regret.svg --x log --trials --title "Ads on a budget"
    """
    check_suffix("out", out, (".png", ".svg", ".pdf"))
    figure = load(result).plot(title=title, trials=trials, x=x, y=y, measure=measure, marks=marks)
    write_whole(out, partial(figure.savefig, dpi=150))
    typer.echo(f"{out}")


def report(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULT.nc ...", help="The results, one section each.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page: .html.")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
) -> None:
    """Write an HTML page about one or more results.

    The page is one file that loads nothing else: figures, tables with intervals and verdicts, the
    configuration, and the commands that repeat the experiment.

    Examples:

        multiplay report results/stochastic.nc results/corrupted.nc -o report.html
    """
    check_suffix("out", out, (".html", ".htm"))
    page = page_about({str(path): load(path) for path in results}, title)
    write_text(out, page)
    typer.echo(f"{out}")
