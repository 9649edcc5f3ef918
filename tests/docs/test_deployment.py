"""Files for deployment: image, containers, metrics, dashboard, units and nightly jobs."""

import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
import typer
import yaml
from effort import TIME_LIMIT
from pages import ROOT
from prometheus_client.parser import text_string_to_metric_families
from serving import connected, serving
from trucks import ask_and_tell, new_study

import multiplay.__main__  # noqa: F401 - all commands are added
from multiplay.cli.app import app
from multiplay.service.auth import keys
from multiplay.storage import store_at

DEPLOY = ROOT / "deploy"
REQUIREMENT = re.compile(r"(\S+)==(\S+) \\\n(?: +--hash=sha256:\w{64}(?: \\)?\n)+")
PACKAGE = re.compile(r"^[\w-]+")
OURS = re.compile(r"\b(?:multiplay|process)_\w+|\bup\b")
DAY = "2026-11-15"
PROBES = 120  # each waits for a second


def instructions() -> list[tuple[str, list[str]]]:
    """Return the instructions of the Dockerfile with their words."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.split()[1:]) for line in lines]


def loaded(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


# ---------------------------------------------------------------- the image


def test_the_image_is_slim_without_root_and_has_a_health_check() -> None:
    found = instructions()
    images = [words[0] for name, words in found if name == "FROM"]
    assert len(set(images)) == 1, "the environment is copied from one stage to the other"
    assert images[0].endswith("-slim")
    user = next(words[0] for name, words in reversed(found) if name == "USER")
    assert int(user) > 0
    assert any("/readyz" in " ".join(words) for name, words in found if name == "HEALTHCHECK")


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text()
    copied = {
        file
        for name, words in instructions()
        if name == "COPY" and not words[0].startswith("--from")
        for file in words[:-1]
    }
    assert copied == set(re.findall(r"^!(.*)$", ignored, re.MULTILINE))
    assert all((ROOT / file).exists() for file in copied)


def test_packages_are_installed_by_their_hashes_only() -> None:
    runs = [" ".join(words) for name, words in instructions() if name == "RUN"]
    assert not [run for run in runs if "pip" in run or "apt" in run]
    assert "deploy/install.sh /opt/multiplay" in runs
    installs = re.findall(r"-m pip install (.*)", (DEPLOY / "install.sh").read_text())
    assert len(installs) == 3
    assert all("$hashed" in line or "--no-index" in line for line in installs)
    assert "--require-hashes" in (DEPLOY / "install.sh").read_text()


def test_the_command_has_the_options_of_the_program() -> None:
    command: Any = typer.main.get_command(app)
    words = loaded("compose.yaml")["services"]["blue"]["command"]
    in_image = next(words for name, words in instructions() if name == "CMD")
    assert json.loads(" ".join(in_image)) == words
    options = {option for given in command.commands[words[0]].params for option in given.opts}
    assert {word for word in words if word.startswith("--")} <= options


def requirements(name: str) -> dict[str, str]:
    """Return the versions in a file of requirements; assert that each has a hash."""
    text, found = (DEPLOY / name).read_text(), {}
    while text:
        one = REQUIREMENT.match(text)
        assert one, f"no hash: {text[:80]}"
        found[one[1]] = one[2]
        text = text[one.end() :]
    return found


def test_requirements_are_those_of_the_project_with_hashes() -> None:
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    pins = {name.lower().replace("_", "-").replace(".", "-"): pins[name] for name in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    lines = [*project["project"]["dependencies"], *extras["service"], *extras["postgresql"]]
    found = requirements("requirements.txt")
    assert {found_name(line) for line in lines} <= set(found), "run make requirements"
    assert found == {name: pins[name] for name in found}, "run make requirements"
    builds = requirements("build-requirements.txt")
    assert [f"hatchling=={builds['hatchling']}"] == project["build-system"]["requires"]


def found_name(line: str) -> str:
    one = PACKAGE.match(line)
    assert one
    return one[0]


@pytest.mark.soak
def test_the_steps_of_the_image_make_a_service_that_is_healthy(tmp_path: Path) -> None:
    """What Docker would do, with the same script and the same commands, in an empty folder."""
    source, target = tmp_path / "build", tmp_path / "multiplay"
    for name, words in instructions():
        if name == "COPY" and not words[0].startswith("--from"):
            for file in words[:-1]:
                (source / words[-1]).mkdir(parents=True, exist_ok=True)
                if (ROOT / file).is_dir():
                    shutil.copytree(ROOT / file, source / words[-1], dirs_exist_ok=True)
                else:
                    shutil.copy(ROOT / file, source / words[-1])
    kept = {name: os.environ[name] for name in ("SSL_CERT_FILE", "PATH") if name in os.environ}
    subprocess.run(
        ["deploy/install.sh", str(target)], cwd=source, env=kept, check=True, timeout=TIME_LIMIT
    )
    shutil.rmtree(source)
    environment = {
        "PATH": f"{target}/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "NUMBA_CACHE_DIR": str(tmp_path / "kernels"),
        "MULTIPLAY_STORE": f"sqlite:///{tmp_path}/studies.db",
    }
    run: Any = {"env": environment, "cwd": tmp_path, "check": True, "timeout": TIME_LIMIT}
    [check] = [words for name, words in instructions() if name == "HEALTHCHECK"]
    probe = json.loads(" ".join(check).partition("CMD ")[2])
    command = loaded("compose.yaml")["services"]["blue"]["command"]
    subprocess.run(["multiplay", "key", "create", "--can", "manage"], **run)
    probe[-1] = probe[-1].replace("8000", "8765")
    service = subprocess.Popen(
        ["multiplay", *command, "--port", "8765"],
        env=environment,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert service.stderr is not None
    try:
        assert any("Listening" in line for line in service.stderr), "it has not started"
        for _ in range(PROBES):  # it compiles kernels, and is not ready before
            if subprocess.run(probe, **run | {"check": False}).returncode == 0:
                break
        else:
            raise AssertionError("it is not ready")
    finally:
        service.terminate()
        service.communicate(timeout=TIME_LIMIT)
    assert service.returncode == 0


# ---------------------------------------------------------------- containers


def test_only_the_proxy_is_reachable_from_other_machines() -> None:
    found = loaded("compose.yaml")["services"]
    assert set(found) == {"blue", "green", "database", "proxy", "prometheus", "grafana"}
    assert found["blue"] == found["green"]
    ports = {name: one.get("ports", []) for name, one in found.items()}
    assert [name for name in ports if ports[name]] == ["proxy", "grafana"]
    assert ports["grafana"] == ["127.0.0.1:3000:3000"]
    assert found["blue"]["read_only"]
    assert found["blue"]["cap_drop"] == ["ALL"]
    assert all(":" in one["image"] or "build" in one for one in found.values()), "a version"
    assert f"{found['blue']['build']}" == "."


def test_files_and_variables_of_the_containers_exist() -> None:
    text = (ROOT / "compose.yaml").read_text()
    given = re.findall(r"^(\w+)=", (DEPLOY / "example.env").read_text(), re.MULTILINE)
    assert set(re.findall(r"\$\{(\w+)", text)) == set(given)
    files = re.findall(r"- \./(\S+?):", text)
    assert len(files) == 5
    assert all((ROOT / file).exists() for file in files)
    [secret] = re.findall(r"file: \./(\S+)", text)
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {f"/{secret}", "/.env"} <= set(ignored)
    volumes = loaded("compose.yaml")["volumes"]
    assert set(re.findall(r"- (\w+):/", text)) == set(volumes)


def test_the_proxy_forwards_to_the_service_and_hides_its_metrics() -> None:
    lines = [line.strip() for line in (DEPLOY / "Caddyfile").read_text().splitlines()]
    assert "reverse_proxy {$SERVICES:blue:8000 green:8000} {" in lines
    assert "health_uri /readyz" in lines
    assert any(line.startswith("respond /metrics 404") for line in lines)
    assert any(line.startswith("encode ") for line in lines)


def test_the_unit_runs_a_command_of_the_program() -> None:
    unit = (DEPLOY / "systemd" / "multiplay.service").read_text()
    [line] = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    program, verb, *words = shlex.split(line)
    command: Any = typer.main.get_command(app)
    options = {option for given in command.commands[verb].params for option in given.opts}
    assert program.endswith("/bin/multiplay")
    assert {word for word in words if word.startswith("--")} <= options
    assert "DynamicUser=yes" in unit


# ---------------------------------------------------------------- metrics


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A service with one study and one key: its address, and the key."""
    store = store_at(tmp_path_factory.mktemp("deployed") / "studies.db")
    with new_study(store) as study:
        ask_and_tell(study, 1)  # kernels are compiled before a client waits for them
    with serving(store.url, open=False) as url:
        yield url, keys.create(store, "play").token


@pytest.fixture(scope="module")
def exported(service: tuple[str, str]) -> dict[str, set[str]]:
    """The names of all series of a service that was used, and their labels."""
    url, key = service
    with connected(url, key=key, study="lanes") as study:
        ask_and_tell(study, 3)
    headers = {"Authorization": f"Bearer {key}"}
    text = httpx.get(
        f"{url}/metrics", headers=headers, trust_env=False, verify=False, timeout=TIME_LIMIT
    ).text
    found: dict[str, set[str]] = {"up": {"job"}}  # of Prometheus itself
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def panels() -> list[dict[str, Any]]:
    board = json.loads((DEPLOY / "grafana" / "multiplay.json").read_text())
    found: list[dict[str, Any]] = board["panels"]
    return found


def queries() -> list[str]:
    """Return all expressions of the dashboard and of the alerts."""
    [group] = loaded("deploy/prometheus/alerts.yml")["groups"]
    shown = [target["expr"] for panel in panels() for target in panel["targets"]]
    return shown + [rule["expr"] for rule in group["rules"]]


def test_dashboard_and_alerts_use_metrics_that_the_service_exports(
    exported: dict[str, set[str]],
) -> None:
    for query in queries():
        names = OURS.findall(query)
        assert names, query
        assert set(names) <= set(exported), query
        labels = set.union(*(exported[name] for name in names))
        grouped = re.findall(r"by \(([^)]*)\)", query)
        filtered = re.findall(r"[{,](\w+)=", query)
        wanted = {label.strip() for group in grouped for label in group.split(",")} | {*filtered}
        assert wanted <= labels, query


def test_the_dashboard_shows_all_that_the_page_names() -> None:
    shown = {name for query in queries() for name in OURS.findall(query)}
    named = set(OURS.findall((ROOT / "docs" / "service.md").read_text()))
    missing = {name for name in named if not [one for one in shown if one.startswith(name)]}
    assert missing == set()
    page = (ROOT / "docs" / "deploying.md").read_text()
    for alert in loaded("deploy/prometheus/alerts.yml")["groups"][0]["rules"]:
        name = re.sub(r"_bucket$", "", OURS.findall(alert["expr"])[0])
        assert f"`{name}`" in page, alert["alert"]
        assert alert["annotations"]["summary"]


def test_the_dashboard_can_be_drawn() -> None:
    board = json.loads((DEPLOY / "grafana" / "multiplay.json").read_text())
    [source] = loaded("deploy/grafana/datasources.yml")["datasources"]
    assert {panel["datasource"]["uid"] for panel in panels()} == {source["uid"]}
    assert len({panel["id"] for panel in panels()}) == len(panels())
    places = [
        (panel["gridPos"]["x"] + i, panel["gridPos"]["y"] + j)
        for panel in panels()
        for i in range(panel["gridPos"]["w"])
        for j in range(panel["gridPos"]["h"])
    ]
    assert len(places) == len(set(places)), "no panel covers another"
    assert max(x for x, _ in places) < 24
    variables = {f"${one['name']}" for one in board["templating"]["list"]}
    used = {name for query in queries() for name in re.findall(r"\$[a-z]\w*", query)}
    assert used == variables
    [provider] = loaded("deploy/grafana/dashboards.yml")["providers"]
    volumes = loaded("compose.yaml")["services"]["grafana"]["volumes"]
    assert volumes[-1].split(":")[1] == f"{provider['options']['path']}/multiplay.json"


def test_prometheus_reads_the_service_with_its_key() -> None:
    [job] = loaded("deploy/prometheus/prometheus.yml")["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["blue:8000", "green:8000"]}]
    [secret] = loaded("compose.yaml")["services"]["prometheus"]["secrets"]
    assert job["authorization"] == {"credentials_file": f"/run/secrets/{secret}"}
    assert source_of("grafana/datasources.yml") == "http://prometheus:9090"


def source_of(name: str) -> str:
    [source] = loaded(f"deploy/{name}")["datasources"]
    return str(source["url"])


# ---------------------------------------------------------------- nightly plans


def asked(url: str, key: str) -> int:
    with connected(url, key=key, study="lanes") as study:
        return study.asked


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_nightly_plan_of_cron_is_asked_once(service: tuple[str, str], tmp_path: Path) -> None:
    url, key = service
    before = asked(url, key)
    environment = os.environ | {"MULTIPLAY_URL": url, "MULTIPLAY_KEY": key, "NO_PROXY": "*"}
    script = [str(DEPLOY / "nightly-plan.sh"), "lanes", str(tmp_path), DAY]
    plans = []
    for _ in range(2):
        subprocess.run(script, env=environment, check=True, timeout=TIME_LIMIT)
        [file] = tmp_path.iterdir()
        assert file.name == f"{DAY}.json"
        plans.append(json.loads(file.read_text()))
    assert plans[0] == plans[1]
    assert plans[0]["key"] == DAY
    assert asked(url, key) == before + 1


def test_the_nightly_plan_of_airflow_is_asked_once(
    service: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow is not installed: two decorators stand for it, and call the tasks at once."""
    url, key = service
    before = asked(url, key)
    plans: list[Any] = []
    settings: list[Any] = []

    def dag(**given: Any) -> Callable[[Any], Any]:
        settings.append(given)
        return lambda function: function

    def task(function: Any) -> Any:
        return lambda: plans.append([function(ds=day) for day in (DAY, DAY)])

    sdk: Any = ModuleType("airflow.sdk")
    sdk.dag, sdk.task = dag, task
    monkeypatch.setitem(sys.modules, "airflow", ModuleType("airflow"))
    monkeypatch.setitem(sys.modules, "airflow.sdk", sdk)
    for name, value in {"URL": url, "KEY": key, "STUDY": "lanes"}.items():
        monkeypatch.setenv(f"MULTIPLAY_{name}", value)
    runpy.run_path(str(DEPLOY / "airflow" / "nightly_plan.py"))
    [[first, again]] = plans
    assert first == again
    assert asked(url, key) <= before + 1, "the plan of that day may have been asked before"
    assert settings[0]["default_args"]["retries"] > 0
