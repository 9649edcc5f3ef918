"""The whole HTTP interface, fuzzed by a third party: no answer but those that are documented."""

import subprocess
import sys
from pathlib import Path

import pytest
from serving import Served

import multiplay as mp
from multiplay.service.auth import keys

# A set that does not go together is what no schema can say, so it is answered by 422; what a client
# has already, by 304.
CONFIGURATION = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "304", "401", "403", "404", "409", "422"]
"""
ONE_STUDY = """
[parameters]
"path.study" = "lanes"
"""


def fuzzed(tmp_path: Path, configuration: str, *options: str) -> str:
    """Fuzz a service with a study that has plays; return what the fuzzer says."""
    store = tmp_path / "studies.db"
    plans = mp.Transport([2, 1], [1, 2], names=(["Lyon", "Lille"], ["north", "south"]))
    with mp.Study.create("lanes", plans, mp.GenCTS(), losses=(0, 250), store=store) as study:
        for _ in range(3):
            study.ask()
        study.tell(1, {arm: [120.0] * units for arm, units in study.pending()[0].plan.items()})
    key = keys.create(store, "manage").token
    written = tmp_path / "schemathesis.toml"
    written.write_text(configuration, encoding="utf-8")
    with Served(store, tmp_path / "log") as service:
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", f"{written}", "run"]
        command += [f"{service.url}/openapi.json", "--header", f"Authorization: Bearer {key}"]
        command += ["--checks", "all", "--seed", "1", "--no-color", "--generation-database", "none"]
        # a stream of events has no end; tests of its own watch it
        command += ["--exclude-path-regex", "/events$", *options]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert (
        mp.Study.open("lanes", store=store).verify().ok
        if "lanes" in mp.Study.list(store=store)
        else True
    )
    assert said.returncode == 0, said.stdout[-6000:] + said.stderr[-2000:]
    return said.stdout


def test_a_fuzzer_finds_nothing_in_small(tmp_path: Path) -> None:
    said = fuzzed(tmp_path, CONFIGURATION + ONE_STUDY, "--max-examples", "2")
    assert "Tested: 21" in said


@pytest.mark.soak
@pytest.mark.parametrize("configuration", [CONFIGURATION, CONFIGURATION + ONE_STUDY])
def test_a_fuzzer_finds_nothing_in_full(tmp_path: Path, configuration: str) -> None:
    said = fuzzed(tmp_path, configuration, "--max-examples", "200")
    assert "Tested: 21" in said
