"""Run the tests on every Python of this machine: ``python tools/matrix.py --help``.

Each Python gets an environment in .matrix/ with the newest versions of everything, the oldest one
another with the lowest versions that pyproject.toml promises. multiplay is installed there as a
wheel, as users have it, so what is tested is the package and not the checkout. Needs uv.
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
FEWEST = 2  # versions of Python: one alone is what make test has
USED = ("cluster", "parquet", "postgresql", "service", "testing")  # by users
TOOLS = ("bench", "examples", "test")  # extras whose versions promise nothing
LOWEST = "lowest"

# The fuzzer needs newer versions of hypothesis and others than those that are tried.
TOO_NEW, NEEDS_IT = "schemathesis", "tests/integration/test_service_fuzz.py"
# Old versions of others use what new versions of others call old. Nothing can be done about it
# here, and whether multiplay does so itself is seen with the newest versions.
PATIENT = ["-W", "ignore::DeprecationWarning", "-W", "ignore::PendingDeprecationWarning"]

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


class Failed(Exception):
    """Something that keeps the tests from being run."""


class Outcome(NamedTuple):
    """What became of one environment."""

    name: str
    versions: dict[str, str]
    said: str
    seconds: float
    passed: bool


def main(tests: list[str], only: str | None) -> int:
    """Test in all environments or one; return the exit code."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if not uv:
        raise Failed("uv is missing: run make matrix, or pip install uv")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = promised(project)
    found = {name: python for name in wanted if (python := interpreter(name))}
    if missing := [name for name in wanted if name not in found]:
        say(f"this machine has no Python {', '.join(missing)}: not tested here")
    if only and only not in (*found, LOWEST):
        raise Failed(f"--only takes {', '.join(found)} or {LOWEST}, and not {only}")
    if len(found) < FEWEST and not only:
        raise Failed(f"found {len(found)} versions of Python, and {FEWEST} are the least")
    shutil.rmtree(FOLDER / "wheel", ignore_errors=True)
    run([uv, "build", "--quiet", "--wheel", "--out-dir", FOLDER / "wheel"])
    wheel = next((FOLDER / "wheel").glob("*.whl"))
    environments = {**found, LOWEST: next(iter(found.values()))}
    outcomes = [
        one(uv, name, python, wheel, project, tests)
        for name, python in environments.items()
        if only in (None, name)
    ]
    print_table(outcomes)
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def say(what: str) -> None:
    """Print what is done next."""
    print(f"matrix: {what}", flush=True)


def run(command: list[str | Path]) -> str:
    """Run a command in the checkout; return what it printed."""
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
        raise Failed(f"{shown} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def clean() -> dict[str, str]:
    """Return the variables of this process, without those that lead Python to the checkout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


# -------------------------------------------------------------------- which versions of Python


def promised(project: dict[str, Any]) -> list[str]:
    """Return the versions of Python that the classifiers name, oldest first."""
    found = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    return sorted(found, key=lambda name: int(name.partition(".")[2]))


def interpreter(name: str) -> Path | None:
    """Return a Python of this version that starts, if this machine has one."""
    question = "import sys; print('%d.%d' % sys.version_info[:2])"
    for path in candidates(name):
        if path.is_file():
            asked = subprocess.run([path, "-c", question], capture_output=True, text=True)
            if asked.returncode == 0 and asked.stdout.strip() == name:
                return path
    return None


def candidates(name: str) -> Iterator[Path]:
    """Yield where a Python of this version may be: this one, on the path, and where pyenv is."""
    yield Path(sys.executable)
    for folder in os.environ["PATH"].split(os.pathsep):
        yield Path(folder, f"python{name}")
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for version in sorted(home.glob(f"versions/{name}.*"), reverse=True):
        yield version / "bin" / "python"


# ------------------------------------------------------------------------------ one environment


def one(
    uv: str, name: str, python: Path, wheel: Path, project: dict[str, Any], tests: list[str]
) -> Outcome:
    """Make an environment, and run the tests in it."""
    started = time.monotonic()
    place = FOLDER / name
    there = place / "bin" / "python"
    try:
        say(f"{name}: installing")
        run([uv, "venv", "--quiet", "--clear", "--no-project", "--python", python, place])
        if name == LOWEST:
            install_lowest(uv, place, there, wheel, project)
        else:
            extras = ",".join((*USED, *TOOLS))
            run([uv, "pip", "install", "--quiet", "--python", there, f"{wheel}[{extras}]"])
        versions = json.loads(run([there, "-P", "-c", VERSIONS]))
        if place not in Path(versions["home"]).parents:
            raise Failed(f"multiplay is imported from {versions['home']}, not from the wheel")
    except Failed as error:
        print(error, flush=True)
        return Outcome(name, {}, "could not be installed", time.monotonic() - started, False)
    log = FOLDER / f"{name}.log"
    say(f"{name}: testing; {log.relative_to(ROOT)} has all that is said")
    code = run_tests(there, log, tests, [] if name != LOWEST else lowest_options())
    lines = log.read_text("utf-8", errors="replace").splitlines()
    for line in lines:
        if line.startswith(("FAILED", "ERROR")):
            print(f"  {line}", flush=True)
    said = re.sub(r"=+ ?| in [\d.]+s.*", "", lines[-1]) if lines else "nothing"
    return Outcome(name, versions, said, time.monotonic() - started, code == 0)


def install_lowest(uv: str, place: Path, there: Path, wheel: Path, project: dict[str, Any]) -> None:
    """Install the lowest versions that are promised, and test tools that go with them."""
    extras = project["optional-dependencies"]
    bounds = [*project["dependencies"], *(line for extra in USED for line in extras[extra])]
    asked, pinned = place / "bounds.in", place / "lowest.txt"
    asked.write_text("\n".join(bounds), "utf-8")
    resolve: list[str | Path] = [uv, "pip", "compile", "--quiet", "--resolution", "lowest-direct"]
    resolve += ["--no-header", "--no-annotate", "--only-binary", ":all:", "--python", there]
    pins = run([*resolve, asked])
    pinned.write_text(pins, "utf-8")
    check_bounds(bounds, dict(re.findall(r"^([\w.-]+)==(\S+)", pins, re.MULTILINE)))
    tools = [line for extra in TOOLS for line in extras[extra] if line != TOO_NEW]
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", there]
    run([*install, "--requirements", pinned, *tools])
    run([*install, "--no-deps", wheel])


def check_bounds(bounds: list[str], pins: dict[str, str]) -> None:
    """Raise ``Failed`` where a bound is lower than what can be installed together."""
    wrong = []
    for line in bounds:
        found = re.fullmatch(r"([\w.-]+)(?:\[\w+\])?>=([\w.]+)(?:;.*)?", line)
        if not found:
            raise Failed(f"{line} in pyproject.toml has no lower bound")
        name, lowest = found[1], found[2]
        if release(pins[name]) != release(lowest):
            wrong.append(f"  {line}: the lowest that goes with the others is {pins[name]}")
    if wrong:
        raise Failed("\n".join(["bounds in pyproject.toml that nothing keeps:", *wrong]))


def release(version: str) -> str:
    """Return a version without zeros at its end: 2.0.0 is 2."""
    return re.sub(r"(\.0)+$", "", version)


def lowest_options() -> list[str]:
    """Return the options of pytest for the lowest versions."""
    return [*PATIENT, f"--ignore={NEEDS_IT}"]


def run_tests(there: Path, log: Path, tests: list[str], options: list[str]) -> int:
    """Run some tests, or all and the examples of docstrings; return the exit code of pytest."""
    what = tests or ["--doctest-modules", "tests", "--pyargs", "multiplay"]
    command: list[str | Path] = [there, "-m", "pytest", "-n", "2", "--dist", "worksteal"]
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
    """Print the outcomes: versions, seconds, and whether the tests passed."""
    rows = [["", "python", *SHOWN, "seconds", "tests"]]
    for outcome in outcomes:
        shown = [outcome.versions.get(name, "-") for name in ("python", *SHOWN)]
        verdict = outcome.said if outcome.passed else f"FAILED: {outcome.said}"
        rows.append([outcome.name, *shown, f"{outcome.seconds:.0f}", verdict])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print()
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run the tests on every Python of this machine.")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="all if none is given")
    parser.add_argument("--only", metavar="NAME", help=f"one environment: 3.12, say, or {LOWEST}")
    given = parser.parse_args()
    try:
        sys.exit(main(given.tests, given.only))
    except Failed as error:
        sys.exit(f"matrix: {error}")
