"""The release: its versions agree everywhere, and the files for forges are valid."""

import re
import subprocess
import sys
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

import multiplay as mp
from multiplay import version
from multiplay.kernels.jit import digest_of_kernels
from multiplay.learner import snapshot
from multiplay.storage import schema
from multiplay.studies import entry_codec

ROOT = Path(__file__).parents[2]
FORGE = ROOT / ".github"
# Versions with their kernels and stores. A change of them appends a line: `verify` compares the
# plays of one version bit for bit, and docs/upgrading.md says which versions read which stores.
RECORDED = {
    "0.10.0.dev0": "7b8db214abd7",
    "0.10.0.dev1": "dc028e2fc076",
    "0.10.0.dev2": "5e9eb960acbe",
    "0.10.0.dev3": "f1fbb1a4545b",
    "0.10.0.dev4": "5c1ae15ee4aa",
    "0.10.0.dev5": "d9b866ddda13",
    "0.10.0.dev6": "11c59033c66b",
}
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
    sections = re.findall(r"^## (.+)", text("CHANGELOG.md"), re.MULTILINE)
    release, dev, _ = mp.__version__.partition(".dev")
    assert sections[0] == (f"{release}, in development" if dev else release)
    assert [name for name in sections[1:] if not re.fullmatch(r"\d+\.\d+\.\d+", name)] == []
    assert yaml.safe_load(text("CITATION.cff"))["version"] == mp.__version__


def test_a_change_of_kernels_or_stores_has_a_version_of_its_own() -> None:
    version, digest = list(RECORDED.items())[-1]
    assert (mp.__version__, digest_of_kernels_and_stores()) == (version, digest), (
        "move the version, and append it with the new digest to RECORDED: see CONTRIBUTING.md"
    )


def digest_of_kernels_and_stores() -> str:
    """Return a digest of all kernels, all tables, and the names and formats in stored records."""
    tables = {
        table.name: [(c.name, type(c.type).__name__, c.nullable) for c in table.columns]
        for table in vars(schema).values()
        if isinstance(table, sa.Table)
    }
    names = [
        (name, value)
        for module in (entry_codec, snapshot)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    ]
    stored = (tables, sorted(names), entry_codec.KINDS, formats())
    return sha256(f"{digest_of_kernels()} {stored}".encode()).hexdigest()[:12]


def formats() -> tuple[int, int, int]:
    """Return the versions of tables, entries and saved learners."""
    return schema.VERSION, entry_codec.FORMAT, snapshot.FILE_FORMAT


def test_the_table_of_stores_ends_with_the_formats_of_this_version() -> None:
    rows = re.findall(r"^\| (\S+) \| (\d+) \| (\d+) \| (\d+) \|", text("docs/upgrading.md"), re.M)
    assert tuple(map(int, rows[-1][1:])) == formats()
    versions = [name for name, *_ in rows]
    assert set(versions[1:]) <= {*RECORDED}, "after 0.9, of which the tests keep a store"
    assert versions[0] == "0.9.0"


def test_the_commit_of_a_checkout_is_that_of_git() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    git = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    head = subprocess.run(git, capture_output=True, text=True, check=True).stdout
    assert head.startswith(version.commit().removesuffix("+changes"))
    assert version.described() == f"multiplay {mp.__version__} (commit {version.commit()})"


def test_the_commit_that_a_build_recorded_is_shown_without_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version, "__file__", str(tmp_path / "lib" / "multiplay" / "version.py"))
    monkeypatch.setattr(subprocess, "run", None)  # a call would raise an error
    (tmp_path / "lib" / "multiplay").mkdir(parents=True)
    assert version.described() == f"multiplay {mp.__version__}"
    (tmp_path / "lib" / "multiplay" / "commit.txt").write_text("1a2b3c4\n")
    assert version.described() == f"multiplay {mp.__version__} (commit 1a2b3c4)"


def test_without_git_the_commit_of_a_checkout_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert version.described() == f"multiplay {mp.__version__}"


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
