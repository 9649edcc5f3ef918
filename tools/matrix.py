"""Test matrix: the tests on every Python of this machine, and with the lowest versions.

``python tools/matrix.py --help`` shows the options. Each Python gets an environment in .matrix/
with the newest versions of all packages. The oldest Python gets a second environment with the
lowest versions that pyproject.toml allows. multiplay is installed from a wheel, so that the tests
use the package and not the checkout. Needs uv.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".matrix"
FEWEST = 2  # least number of Python versions; make test covers one
USED = ("cluster", "excel", "parquet", "postgresql", "service", "testing")  # extras for users
TOOLS = ("bench", "examples", "models", "test")  # extras for development
LOWEST = "lowest"

# The fuzzer needs newer versions of hypothesis and its dependencies than the lowest ones.
FUZZER, FUZZ_TEST = "schemathesis", "tests/integration/test_service_fuzz.py"
# Old versions of dependencies use deprecated functions of other dependencies. The environments
# with the newest versions show the deprecation warnings of multiplay itself.
NO_WARNINGS = ["-W", "ignore::DeprecationWarning", "-W", "ignore::PendingDeprecationWarning"]

SHOWN = ("numpy", "numba", "scipy", "pandas")
VERSIONS = f"""
import importlib.metadata, json, platform
import multiplay
print(json.dumps({{
    "home": multiplay.__file__,
    "python": platform.python_version(),
    **{{name: importlib.metadata.version(name) for name in {SHOWN}}},
}}))
"""


class MatrixError(Exception):
    """An error that prevents the tests from running."""


class Outcome(NamedTuple):
    """The result of one environment."""

    name: str
    versions: dict[str, str]
    summary: str
    seconds: float
    passed: bool


def main(tests: list[str], only: str | None) -> int:
    """Test in all environments or one; return the exit code."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if not uv:
        raise MatrixError("uv is missing: run make matrix, or pip install uv")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    required = supported(project)
    found = {name: python for name in required if (python := interpreter(name))}
    if missing := [name for name in required if name not in found]:
        print_step(f"this machine has no Python {', '.join(missing)}: not tested here")
    if only and only not in (*found, LOWEST):
        raise MatrixError(f"--only: expected {', '.join(found)} or {LOWEST}, got {only}")
    if len(found) < FEWEST and not only:
        raise MatrixError(f"found {len(found)} versions of Python, expected at least {FEWEST}")
    shutil.rmtree(FOLDER / "wheel", ignore_errors=True)
    run([uv, "build", "--quiet", "--wheel", "--out-dir", FOLDER / "wheel"])
    wheel = next((FOLDER / "wheel").glob("*.whl"))
    environments = {**found, LOWEST: next(iter(found.values()))}
    outcomes = [
        run_environment(uv, name, python, wheel, project, tests)
        for name, python in environments.items()
        if only in (None, name)
    ]
    print_table(outcomes)
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def print_step(what: str) -> None:
    """Print the next step."""
    print(f"matrix: {what}", flush=True)


def run(command: list[str | Path]) -> str:
    """Run a command in the checkout; return its output."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env=clean(),
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        shown = " ".join(str(word) for word in command[:4])
        raise MatrixError(f"{shown} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def clean() -> dict[str, str]:
    """Return the variables of this process, without PYTHONPATH, which may name the checkout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


# -------------------------------------------------------------------- versions of Python


def supported(project: dict[str, Any]) -> list[str]:
    """Return the versions of Python that the classifiers name, oldest first."""
    found = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    return sorted(found, key=lambda name: int(name.partition(".")[2]))


def interpreter(name: str) -> Path | None:
    """Return a working Python of this version, or None."""
    question = "import sys; print('%d.%d' % sys.version_info[:2])"
    for path in candidates(name):
        if path.is_file():
            asked = subprocess.run([path, "-c", question], capture_output=True, text=True)
            if asked.returncode == 0 and asked.stdout.strip() == name:
                return path
    return None


def candidates(name: str) -> Iterator[Path]:
    """Yield possible paths of a Python of this version: this one, on PATH, and of pyenv."""
    yield Path(sys.executable)
    for folder in os.environ["PATH"].split(os.pathsep):
        yield Path(folder, f"python{name}")
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for version in sorted(home.glob(f"versions/{name}.*"), reverse=True):
        yield version / "bin" / "python"


# ------------------------------------------------------------------------------ one environment


def run_environment(
    uv: str, name: str, python: Path, wheel: Path, project: dict[str, Any], tests: list[str]
) -> Outcome:
    """Create an environment, and run the tests in it."""
    started = time.monotonic()
    environment = FOLDER / name
    env_python = environment / "bin" / "python"
    try:
        print_step(f"{name}: installing")
        run([uv, "venv", "--quiet", "--clear", "--no-project", "--python", python, environment])
        if name == LOWEST:
            install_lowest(uv, environment, env_python, wheel, project)
        else:
            extras = ",".join((*USED, *TOOLS))
            run([uv, "pip", "install", "--quiet", "--python", env_python, f"{wheel}[{extras}]"])
        versions = json.loads(run([env_python, "-P", "-c", VERSIONS]))
        if environment not in Path(versions["home"]).parents:
            raise MatrixError(f"multiplay is imported from {versions['home']}, not from the wheel")
    except MatrixError as error:
        print(error, flush=True)
        return Outcome(name, {}, "installation failed", time.monotonic() - started, False)
    log = FOLDER / f"{name}.log"
    print_step(f"{name}: testing; {log.relative_to(ROOT)} has the output")
    code = run_tests(env_python, log, tests, [] if name != LOWEST else lowest_options())
    lines = log.read_text("utf-8", errors="replace").splitlines()
    for line in lines:
        if line.startswith(("FAILED", "ERROR")):
            print(f"  {line}", flush=True)
    summary = re.sub(r"=+ ?| in [\d.]+s.*", "", lines[-1]) if lines else "nothing"
    return Outcome(name, versions, summary, time.monotonic() - started, code == 0)


def install_lowest(
    uv: str, environment: Path, env_python: Path, wheel: Path, project: dict[str, Any]
) -> None:
    """Install the lowest allowed versions, and compatible versions of the test tools."""
    extras = project["optional-dependencies"]
    bounds = [*project["dependencies"], *(line for extra in USED for line in extras[extra])]
    asked, pinned = environment / "bounds.in", environment / "lowest.txt"
    asked.write_text("\n".join(bounds), "utf-8")
    resolve: list[str | Path] = [uv, "pip", "compile", "--quiet", "--resolution", "lowest-direct"]
    resolve += ["--no-header", "--no-annotate", "--only-binary", ":all:", "--python", env_python]
    pins = run([*resolve, asked])
    pinned.write_text(pins, "utf-8")
    check_bounds(bounds, dict(re.findall(r"^([\w.-]+)==(\S+)", pins, re.MULTILINE)))
    tools = [line for extra in TOOLS for line in extras[extra] if line != FUZZER]
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", env_python]
    run([*install, "--requirements", pinned, *tools])
    run([*install, "--no-deps", wheel])


def check_bounds(bounds: list[str], pins: dict[str, str]) -> None:
    """Raise an error if a lower bound cannot be installed together with the other bounds."""
    wrong = []
    for line in bounds:
        found = re.fullmatch(r"([\w.-]+)(?:\[\w+\])?>=([\w.]+)(?:;.*)?", line)
        if not found:
            raise MatrixError(f"{line} in pyproject.toml has no lower bound")
        name, lowest = found[1], found[2]
        if release(pins[name]) != release(lowest):
            wrong.append(f"  {line}: the lowest compatible version is {pins[name]}")
    if wrong:
        raise MatrixError("\n".join(["bounds in pyproject.toml that cannot be installed:", *wrong]))


def release(version: str) -> str:
    """Return a version without trailing zeros: 2 for 2.0.0."""
    return re.sub(r"(\.0)+$", "", version)


def lowest_options() -> list[str]:
    """Return the options of pytest for the lowest versions."""
    return [*NO_WARNINGS, f"--ignore={FUZZ_TEST}"]


def run_tests(env_python: Path, log: Path, tests: list[str], options: list[str]) -> int:
    """Run the given tests, or all tests and doctests; return the exit code of pytest."""
    what = tests or ["--doctest-modules", "tests", "--pyargs", "multiplay"]
    command: list[str | Path] = [env_python, "-m", "pytest", "-n", "2", "--dist", "worksteal"]
    command += [
        "-m",
        "not soak",
        "--hypothesis-profile=check",
        "--quiet",
        "-p",
        "no:cacheprovider",
        *options,
        *what,
    ]
    with log.open("wb") as file:
        return subprocess.run(
            command, cwd=ROOT, env=clean(), stdout=file, stderr=subprocess.STDOUT, check=False
        ).returncode


def print_table(outcomes: list[Outcome]) -> None:
    """Print a table of versions, seconds and test results."""
    rows = [["", "python", *SHOWN, "seconds", "tests"]]
    for outcome in outcomes:
        shown = [outcome.versions.get(name, "-") for name in ("python", *SHOWN)]
        verdict = outcome.summary if outcome.passed else f"FAILED: {outcome.summary}"
        rows.append([outcome.name, *shown, f"{outcome.seconds:.0f}", verdict])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print()
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run the tests on every Python of this machine.")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="tests to run; all if not given")
    parser.add_argument("--only", metavar="NAME", help=f"one environment, such as 3.12 or {LOWEST}")
    given = parser.parse_args()
    try:
        sys.exit(main(given.tests, given.only))
    except MatrixError as error:
        sys.exit(f"matrix: {error}")
