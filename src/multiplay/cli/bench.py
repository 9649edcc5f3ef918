"""Command bench: the benchmarks of a source clone."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from multiplay.errors import InvalidInput

SOURCE = Path(__file__).parents[3]
COMPARED = ("clarabel", "cvxpy", "fastapi", "optuna", "ot")  # installed by the extra "bench"


def bench(
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC]...",
            help="Topics, such as service; all if not given.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few minutes, with less precise numbers.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for figures and benchmarks.json.")] = Path(
        "results/bench"
    ),
) -> None:
    """Measure speed and memory, beside other software.

    The last table lists every target with the measured value. The programs that are compared take
    turns in one run, on one thread. The benchmarks are in the source repository, not in the
    package. In a clone, this installs everything and runs all of them:

        make bench

    Examples:

        multiplay bench service

        multiplay bench rounds --quick
    """
    if not (SOURCE / "benchmarks" / "__main__.py").is_file():
        raise InvalidInput(
            "bench",
            "a clone of the source: the benchmarks are not in the package",
            "an installed package",
            "Clone the repository, and run make bench there.",
        )
    if missing := [name for name in COMPARED if find_spec(name) is None]:
        raise InvalidInput(
            "bench",
            "the software that it compares with",
            f"no {', '.join(missing)}",
            "Run make bench, or install multiplay with the extra 'bench'.",
        )
    command = [sys.executable, "-m", "benchmarks", "--out", str(out.resolve())]
    command += ["--quick"] if quick else []
    command += ["--only", *topics] if topics else []
    raise typer.Exit(subprocess.run(command, cwd=SOURCE, check=False).returncode)
