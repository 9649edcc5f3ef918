"""multiplay show, multiplay plot and multiplay report: what came out."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from multiplay._support.atomic_files import write_text, write_whole
from multiplay.cli.app import app
from multiplay.cli.files import check_suffix
from multiplay.cli.screen import for_screen
from multiplay.experiments import toml_writer
from multiplay.reports import tables
from multiplay.reports.conclusion import conclusion
from multiplay.reports.page import report as page_about
from multiplay.results import load
from multiplay.results.result import regret_table

Saved = Annotated[Path, typer.Argument(metavar="RESULT.nc", help="What Result.save wrote.")]


@app.command()
def show(
    result: Saved,
    experiment: Annotated[
        bool, typer.Option("--experiment", help="Print the experiment file that gives it again.")
    ] = False,
) -> None:
    """Show a result: the conclusion, final regret, comparisons, what else was measured and run.

    Policies are compared on the same trials, pair by pair. The intervals are made wider for the
    number of pairs, so that with 95 % none of the verdicts is wrong.

    Examples:

        multiplay show results/stochastic.nc

        multiplay show run.nc --experiment > again.toml
    """
    loaded = load(result)
    if experiment:
        typer.echo(toml_writer.experiment(loaded), nl=False)
        return
    typer.echo(f"{conclusion(loaded)}\n")
    makers = (regret_table, tables.comparisons, tables.quantities, tables.settings)
    for table in (make(loaded) for make in makers):
        if table.rows:
            Console().print(for_screen(table))


@app.command()
def plot(
    result: Saved,
    out: Annotated[Path, typer.Option("--out", "-o", help="The figure: .png, .svg or .pdf.")],
    trials: Annotated[
        bool, typer.Option("--trials", help="Draw every single trial too, thinly.")
    ] = False,
    x: Annotated[
        str, typer.Option(help="linear, or log: logarithmic regret is a straight line.")
    ] = "linear",
    y: Annotated[
        str, typer.Option(help="linear, or log, which shows what is positive.")
    ] = "linear",
    measure: Annotated[
        str, typer.Option(help="regret in means, or realised, in the losses that were paid.")
    ] = "regret",
    title: Annotated[str | None, typer.Option(help="What to write above.")] = None,
    marks: Annotated[
        bool, typer.Option(help="Show where something happened, such as corruption.")
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


@app.command()
def report(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULT.nc ...", help="One section for each of them.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page: .html.")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, typer.Option(help="The heading of the page.")] = None,
) -> None:
    """Write a page about one or more results, to read in any browser, to send and to archive.

    One file that fetches nothing: figures, tables with intervals and verdicts, what was measured,
    what was run, and how to run it again.

    Examples:

        multiplay report results/stochastic.nc results/corrupted.nc -o report.html
    """
    check_suffix("out", out, (".html", ".htm"))
    page = page_about({str(path): load(path) for path in results}, title)
    write_text(out, page)
    typer.echo(f"{out}")
