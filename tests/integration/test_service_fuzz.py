"""The whole HTTP interface, fuzzed by a third party: no answer but those that are documented."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from effort import TIME_LIMIT
from serving import Served

import multiplay as mp
from multiplay.service.api.routes import OPERATIONS
from multiplay.service.auth import keys

# A set that does not go together, or a name that a study does not have, is what no schema can say,
# so it is answered by 422; what a client has already, by 304.
CONFIGURATION = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "304", "401", "403", "404", "409", "422"]
"""
ONE_STUDY = """
[parameters]
"path.study" = "lanes"
"""


def fuzzed(tmp_path: Path, configuration: str, *options: str, can: str = "manage") -> str:
    """Fuzz a service with a study that has plays; return what the fuzzer says.

    ``can``: the permission of its key.
    """
    store = tmp_path / "studies.db"
    plans = mp.Transport([2, 1], [1, 2], names=(["Lyon", "Lille"], ["north", "south"]))
    with mp.Study.create("lanes", plans, mp.GenCTS(), loss_range=(0, 250), store=store) as study:
        for _ in range(3):
            study.ask()
        study.tell(1, {arm: [120.0] * units for arm, units in study.pending()[0].plan.items()})
    key = keys.create(store, can).token
    written = tmp_path / "schemathesis.toml"
    written.write_text(configuration, encoding="utf-8")
    with Served(store, tmp_path / "log") as service:
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", f"{written}", "run"]
        command += [f"{service.url}/openapi.json", "--header", f"Authorization: Bearer {key}"]
        # kernels may be compiled first
        command += [f"--{kind}={TIME_LIMIT}" for kind in ("request-timeout", "max-response-time")]
        command += ["--checks", "all", "--seed", "1", "--no-color", "--generation-database", "none"]
        # a stream of events has no end; tests of its own watch it
        command += ["--exclude-path-regex", "/events$", *options]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert (
        mp.Study.open("lanes", store=store).verify().ok
        if "lanes" in mp.Study.names(store=store)
        else True
    )
    assert said.returncode == 0, said.stdout[-6000:] + said.stderr[-2000:]
    return said.stdout


def test_a_fuzzer_finds_nothing_in_small(tmp_path: Path) -> None:
    said = fuzzed(
        tmp_path, CONFIGURATION + ONE_STUDY, "--max-examples", "2", "--phases", "examples,fuzzing"
    )
    assert f"Tested: {len(OPERATIONS) - 1}" in said  # all but the stream of events


@pytest.mark.slow
def test_a_fuzzer_that_may_play_finds_nothing_in_all_phases(tmp_path: Path) -> None:
    """Also in requests that the schema does not allow, and in those that follow from others."""
    said = fuzzed(tmp_path, CONFIGURATION + ONE_STUDY, "--max-examples", "6", can="play")
    assert f"Tested: {len(OPERATIONS) - 1}" in said  # all but the stream of events


@pytest.mark.soak
@pytest.mark.parametrize("configuration", [CONFIGURATION, CONFIGURATION + ONE_STUDY])
def test_a_fuzzer_finds_nothing_in_full(tmp_path: Path, configuration: str) -> None:
    said = fuzzed(tmp_path, configuration, "--max-examples", "300")
    assert f"Tested: {len(OPERATIONS) - 1}" in said  # all but the stream of events


# ------------------------------------------------------------ a client made by a third party

GENERATOR = "openapi-python-client"
CALLS = """
import sys
from made import AuthenticatedClient
from made.api.plays import ask, cancel, expire, tell
from made.api.queries import list_arms, list_pending, list_plays
from made.api.studies import create_study, delete_study, get_study, list_studies
from made.models import Ask, Cancel, Expire, NewStudy, Tell

url, key = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=key, raise_on_unexpected_status=True)
transport = {"type": "Budget", "total": 2, "caps": [2, 2], "names": ["Lyon", "Lille"]}
body = NewStudy.from_dict({"name": "made", "actions": transport, "loss_range": [0, 9]})
made = create_study.sync(client=client, body=body, idempotency_key="create")
assert (made.name, made.arms) == ("made", ["Lyon", "Lille"]), made
play = ask.sync("made", client=client, body=Ask(key="Monday"), idempotency_key="one")
again = ask.sync("made", client=client, body=Ask(key="Monday"), idempotency_key="one")
assert play.to_dict() == again.to_dict()
losses = {arm: [1.5] * units for arm, units in play.plan.to_dict().items()}
told = tell.sync("made", play.id, client=client, body=Tell.from_dict({"losses": losses}))
assert (told.seen, told.final) == (2, True), told
second = ask.sync("made", client=client, body=Ask())
assert [one.id for one in list_pending.sync("made", client=client).items] == [second.id]
assert cancel.sync_detailed("made", second.id, client=client, body=Cancel()).status_code == 204
assert expire.sync("made", client=client, body=Expire(older_than=0)).plays == []
rows = list_plays.sync("made", client=client, limit=1)
assert (rows.items[0].id, rows.items[0].status) == (1, "told"), rows
assert list_plays.sync("made", client=client, cursor=rows.next_).items[0].id == 2
assert len(list_arms.sync("made", client=client).items) == 2
assert get_study.sync("made", client=client).asked == 2
assert [one.name for one in list_studies.sync(client=client).items] == ["lanes", "made"]
refused = ask.sync("nowhere", client=client, body=Ask())
assert refused.status == 404, refused
assert delete_study.sync_detailed("made", client=client).status_code == 204
"""


def generator(folder: Path) -> Path:
    """Return the environment of the generator: this one, or a new one."""
    if shutil.which(GENERATOR):
        return Path(shutil.which(GENERATOR) or "").parent
    made = folder / "environment"
    try:
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", made], check=True, timeout=120
        )
        install = [sys.executable, "-m", "pip", "--python", f"{made}", "install", "--quiet"]
        install += ["--disable-pip-version-check", "--no-compile"]
        subprocess.run([*install, GENERATOR], check=True, timeout=240, capture_output=True)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"{GENERATOR} cannot be installed: {error}")
    return made / "bin"


@pytest.mark.slow
def test_a_generated_client_can_be_used(tmp_path: Path) -> None:
    programs = generator(tmp_path)
    store = tmp_path / "studies.db"
    plans = mp.Transport([2, 1], [1, 2])
    mp.Study.create("lanes", plans, mp.GenCTS(), loss_range=(0, 250), store=store).disconnect()
    key = keys.create(store, "manage").token
    with Served(store, tmp_path / "log") as service:
        where = ["--url", f"{service.url}/openapi.json", "--meta", "none"]
        command = [f"{programs / GENERATOR}", "generate", *where]
        command += ["--output-path", f"{tmp_path / 'made'}"]
        subprocess.run(command, check=True, capture_output=True, timeout=TIME_LIMIT)
        called = subprocess.run(
            [f"{programs / 'python'}", "-c", CALLS, service.url, key],
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
        )
    assert called.returncode == 0, called.stderr[-3000:]
