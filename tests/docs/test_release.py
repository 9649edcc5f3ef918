"""The release: its versions agree everywhere, and the files for forges are valid."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import multiplay as mp

ROOT = Path(__file__).parents[2]
FORGE = ROOT / ".github"
PIN = re.compile(r"^([\w.-]+)==(\S+)$", re.MULTILINE)
SCHEMAS = {
    "vendor.citation-file-format": [ROOT / "CITATION.cff"],
    "vendor.compose-spec": [ROOT / "compose.yaml"],
    "vendor.dependabot": [FORGE / "dependabot.yml"],
    "vendor.github-issue-config": [FORGE / "ISSUE_TEMPLATE" / "config.yml"],
    "vendor.github-issue-forms": [
        FORGE / "ISSUE_TEMPLATE" / f"{name}.yml" for name in ("bug", "idea", "question")
    ],
    "vendor.github-workflows": sorted((FORGE / "workflows").glob("*.yml")),
}


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def plain(name: str) -> str:
    """Return the normalised name of a package."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    return {plain(name): version for name, version in PIN.findall(text("constraints.txt"))}


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(text("pyproject.toml"))["project"]
    return found


def test_version_changelog_and_citation_are_in_step() -> None:
    sections = re.findall(r"^## (\S+)", text("CHANGELOG.md"), re.MULTILINE)
    released = sections[1:] if sections[0] == "Unreleased" else sections
    assert released[0] == mp.__version__
    assert "Unreleased" not in released
    assert yaml.safe_load(text("CITATION.cff"))["version"] == mp.__version__


def test_hooks_have_the_pinned_versions() -> None:
    hooks = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"][0]["hooks"]
    asked = [pin for hook in hooks for pin in hook.get("additional_dependencies", [])]
    assert asked
    for pin in asked:
        name, _, version = pin.partition("==")
        assert pins()[plain(name)] == version


def test_everything_that_development_installs_is_pinned() -> None:
    extras = project()["optional-dependencies"].values()
    lines = [*project()["dependencies"], *(line for extra in extras for line in extra)]
    names = {plain(re.split(r"[\[<>=; ]", line)[0]) for line in lines}
    assert names - set(pins()) == set()


def test_what_users_install_has_a_lower_bound() -> None:
    of_users = ("client", "cluster", "excel", "parquet", "postgresql", "service", "testing")
    extras = project()["optional-dependencies"]
    lines = [*project()["dependencies"], *(line for name in of_users for line in extras[name])]
    assert [line for line in lines if ">=" not in line] == []


def test_the_matrix_has_the_versions_of_python_that_are_promised() -> None:
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(project()["classifiers"]))
    jobs = yaml.safe_load((FORGE / "workflows" / "test.yml").read_text("utf-8"))["jobs"]
    assert jobs["pythons"]["strategy"]["matrix"]["python"] == promised
    assert project()["requires-python"] == f">={promised[0]}"


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_for_the_forge_are_valid(schema: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    done = subprocess.run([*command, *map(str, SCHEMAS[schema])], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
