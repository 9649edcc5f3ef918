"""multiplay data fetch: copies, the network, and the examples on small made-up files."""

import gzip
import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import multiplay as mp
from multiplay.cli import app
from multiplay.cli import data as command
from multiplay.errors import InvalidInput

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(command, "urlopen", no_network)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache" / "multiplay" / "data"


def no_network(url: str, timeout: float) -> Any:
    raise URLError("no network in tests")


def fetched(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["data", "fetch", *arguments])


def test_a_set_is_copied_from_a_folder_and_kept(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "emails").mkdir()
    (tmp_path / "emails" / "hillstrom.csv.gz").write_bytes(gzip.compress(b"visit\n1\n"))
    done = fetched("emails", "--from", str(tmp_path))
    assert done.exit_code == 0
    assert "1 files in" in done.output
    assert (cache / "emails" / "hillstrom.csv").read_bytes() == b"visit\n1\n"
    assert fetched("emails").exit_code == 0  # it is there: no network is needed


def test_a_set_is_fetched_from_its_repository(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def answer(url: str, timeout: float) -> Any:
        asked.append(url)
        return io.BytesIO(b"some")

    monkeypatch.setattr(command, "urlopen", answer)
    assert fetched("spot").exit_code == 0
    assert len(asked) == 9
    assert asked[0].endswith("/aws-02-15-2023/us-east-1a_v100_1.json")
    assert all(path.read_bytes() == b"some" for path in command.files_of("spot"))


@pytest.mark.parametrize(
    ("arguments", "argument", "says"),
    [
        (["spot"], "name", "--from FOLDER"),
        (["spot", "--from", "nowhere"], "from", "us-east-1a_v100_1.json"),
        (["weather"], "name", "spot, nodes, freight, emails"),
    ],
)
def test_an_error_says_what_to_do(arguments: list[str], argument: str, says: str) -> None:
    error = fetched(*arguments).exception
    assert isinstance(error, InvalidInput)
    assert error.argument == argument
    assert says in str(error)


def test_files_that_were_not_fetched_are_refused() -> None:
    with pytest.raises(InvalidInput, match="multiplay data fetch freight"):
        command.files_of("freight")


# ------------------------------------------------------------ the examples


def example(
    name: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> list[str]:
    """Return the lines that an example prints; its figure has something in it."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert Path("results", name).with_suffix(".png").stat().st_size > 10_000
    lines: list[str] = capsys.readouterr().out.splitlines()
    return lines


def costs(lines: list[str]) -> dict[str, float]:
    """Return the cost of a unit by policy, from a printed table."""
    rows = [line.split("|") for line in lines if line.startswith("| ")]
    return {row[1].strip(): float(row[2]) for row in rows[1:]}


@pytest.mark.slow
def test_the_example_of_spot_capacity(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Zones of which the first three are always there: the plans that know it lose nothing."""
    folder = cache / "spot"
    folder.mkdir(parents=True)
    for k, file in enumerate(command.SETS["spot"].files):
        up = [1] * 720 if k < 3 else [(t // 30 + k) % 2 for t in range(720)]
        text = json.dumps({"metadata": {"gap_seconds": 240}, "data": up})
        (folder / file).write_text(text, encoding="utf-8")
    lines = example("spot.py", ["--trials", "2"], monkeypatch, capsys)
    assert lines[0] == "48 hours, 3 nodes in 9 zones: node-hours lost"
    found = costs(lines)
    assert found["best plan of each round"] == found["best fixed plan, in hindsight"] == 0.0
    assert 0.0 < found["PooledCTS(memory=Changes())"] < 0.5


@pytest.mark.parametrize(
    ("hold", "policy"), [(0.99, "Persists"), (0.0, "Changes")], ids=["hours", "ticks"]
)
def test_the_check_of_a_table_of_spot_capacity_says_what_to_use(
    hold: float, policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zones that stay up or down for hours, or change at each tick; a third of hours is told."""
    monkeypatch.syspath_prepend(EXAMPLES)
    rng, paths, ticks = np.random.default_rng(3), [], 18 * 300
    for zone in range(9):
        change = rng.random(ticks) >= hold
        begun = np.maximum.accumulate(np.where(change, np.arange(ticks), 0))
        up = (rng.random(ticks) < 0.4 + 0.05 * zone)[begun]
        text = json.dumps({"metadata": {"gap_seconds": 200}, "data": up.astype(int).tolist()})
        paths.append(tmp_path / f"{zone}.json")
        paths[-1].write_text(text, encoding="utf-8")
    losses = runpy.run_path(str(EXAMPLES / "spot.py"))["losses_of"](paths)
    hours, zones = np.nonzero(rng.random(losses.shape) < 1 / 3)
    told = {"zone": zones, "hour": hours + 1, "lost": losses[hours, zones]}
    table = pd.DataFrame(told).astype({"zone": str})
    found = mp.check_data(table, arm="zone", round="hour", loss="lost")
    assert found.policy == f"PooledCTS(memory={policy}())"


@pytest.mark.slow
def test_the_example_of_nodes(cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Each zone has 6 nodes at all times: the 16 lose nothing, if 5 or 6 are in each."""
    (cache / "nodes").mkdir(parents=True)
    for file in command.SETS["nodes"].files:
        text = json.dumps({"metadata": {"gap_seconds": 600}, "data": [6] * 150})
        (cache / "nodes" / file).write_text(text, encoding="utf-8")
    lines = example("nodes.py", ["--trials", "2"], monkeypatch, capsys)
    assert lines[0] == "25 hours, 16 nodes in 3 zones: node-hours lost"
    found = costs(lines)
    assert found["best plan of each round"] == found["best fixed plan, in hindsight"] == 0.0
    assert 0.0 < found["ordered, Persists()"] < found["follow the leader"]


@pytest.mark.slow
def test_the_example_of_emails(cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    rng, rows = np.random.default_rng(0), []
    for recency in (1, 6, 12):
        for mens, womens in ((1, 0), (0, 1), (1, 1)):
            for k, mail in enumerate(("Mens E-Mail", "Womens E-Mail", "No E-Mail")):
                visits = rng.random(20) < 0.4 - 0.1 * k
                rows += [(recency, mens, womens, mail, int(one)) for one in visits]
    (cache / "emails").mkdir(parents=True)
    names = ["recency", "mens", "womens", "segment", "visit"]
    pd.DataFrame(rows, columns=names).to_csv(cache / "emails" / "hillstrom.csv", index=False)
    lines = example("emails.py", ["--trials", "2", "--days", "6"], monkeypatch, capsys)
    assert lines[0] == "6 days, 9 segments of 50 people: share of visits"
    found = costs(lines)
    assert found["best plan of each round"] == max(found.values())


@pytest.mark.slow
def test_the_example_of_freight(cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Two countries; rows without a weight of their own, and small ones, are left out."""
    rows = []
    for country, dear in (("Haiti", 9.0), ("Kenya", 3.0)):
        for k in range(40):
            date = f"{1 + k % 28}-Mar-{8 + k // 20:02d}"
            for mode, cost in (("Air", dear), ("Truck", 6.0)):
                rows.append((country, mode, date, str(100 * cost), "100"))
            rows.append((country, "Air", date, "See DN-304", "100"))
            rows.append((country, "Air", date, "4000", "10"))
    names = ["Country", "Shipment Mode", "Delivered to Client Date"]
    names += ["Freight Cost (USD)", "Weight (Kilograms)"]
    (cache / "freight").mkdir(parents=True)
    table = pd.DataFrame(rows, columns=names)
    table.to_csv(cache / "freight" / "scms.csv", index=False, encoding="utf-8-sig")
    lines = example("freight.py", ["--trials", "2", "--rounds", "6"], monkeypatch, capsys)
    assert lines[0].startswith("6 rounds, 4 lanes")
    assert costs(lines)["best plan of each round"] == pytest.approx((6 + 3) / 2 / 40, abs=1e-4)
