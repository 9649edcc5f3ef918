"""multiplay bench."""

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from multiplay.cli.app import app
from multiplay.errors import InvalidInput


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

    Examples
    --------
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
    root = Path(__file__).parents[3]
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
