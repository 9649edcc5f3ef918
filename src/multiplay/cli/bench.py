"""multiplay bench."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from multiplay.cli.app import app
from multiplay.errors import InvalidInput

SOURCE = Path(__file__).parents[3]
COMPARED = ("clarabel", "cvxpy", "optuna", "ot")  # what the extra "bench" brings


@app.command()
def bench(
    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TOPIC]...", help="All topics if none is given: 'rounds', say."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Some minutes, and less exact numbers.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for figures and benchmarks.json.")] = Path(
        "results/bench"
    ),
) -> None:
    """Measure speed and memory, side by side with other software.

    Every target is a row of the last table, with what was reached. Contenders take turns in one
    run, on one thread. The benchmarks come with the source of multiplay, not with the package:

        make bench

    in a clone sets everything up and runs all of them.
    """
    if not (SOURCE / "benchmarks" / "__main__.py").is_file():
        raise InvalidInput(
            "bench",
            "a clone of the source, for the benchmarks are not part of the package",
            "an installed package",
            "Clone the repository, and run make bench there.",
        )
    if missing := [name for name in COMPARED if find_spec(name) is None]:
        raise InvalidInput(
            "bench",
            "the software to compare with",
            f"no {', '.join(missing)}",
            "Run make bench, or install multiplay with the extra 'bench'.",
        )
    command = [sys.executable, "-m", "benchmarks", "--out", str(out.resolve())]
    command += ["--quick"] if quick else []
    command += ["--only", *topics] if topics else []
    raise typer.Exit(subprocess.run(command, cwd=SOURCE, check=False).returncode)
