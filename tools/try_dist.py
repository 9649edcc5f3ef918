"""Check of the wheel and the source distribution: ``python tools/try_dist.py dist``.

Checks the files of both, then installs each into an empty environment outside the checkout, and
runs the imports, the first example of the README and the command line. Uses the standard
library alone.
"""

import os
import re
import runpy
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "multiplay"
IN_SDIST = (
    "benchmarks/__main__.py",
    "docs/architecture.md",
    "docs/figure1.png",
    "examples/live.py",
    "src/multiplay/py.typed",
    "tests/conftest.py",
    "tools/try_dist.py",
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "Makefile",
    "README.md",
    "constraints.txt",
    "pyproject.toml",
)
NOT_IN_SDIST = ("results/", "docs/_build/", "docs/reference/names/", ".venv/", ".matrix/", "dist/")
LEFT_BEHIND = ("__pycache__", ".pyc", ".nbi", ".nbc")  # files of Python and numba caches

# Modules that need an extra; all other modules must be importable without extras.
NEED_AN_EXTRA = (
    "multiplay.gym",
    "multiplay.remote.client",
    "multiplay.service",
    "multiplay.storage.postgresql",
    "multiplay.testing",
)
IMPORT_ALL = """
import importlib, pkgutil, sys
import multiplay

optional = tuple(sys.argv[1:])
for found in pkgutil.walk_packages(multiplay.__path__, "multiplay.", onerror=lambda name: None):
    if found.name == "multiplay.__main__":
        continue
    try:
        importlib.import_module(found.name)
    except (ModuleNotFoundError, multiplay.InvalidInput):
        if not found.name.startswith(optional):
            raise
"""


class DistributionError(Exception):
    """An error in a distribution, which must not be published."""


def main(folder: Path) -> None:
    """Check the wheel and the source distribution in a folder."""
    source = runpy.run_path(str(PACKAGE / "version.py"))
    version = source["__version__"]
    wheel, sdist = single_file(folder, "*.whl"), single_file(folder, "*.tar.gz")
    for path in (wheel, sdist):
        if not path.name.startswith(f"multiplay-{version}"):
            raise DistributionError(f"{path.name} does not have version {version}: run make dist")
    print_step(f"content of {wheel.name}")
    check_wheel(wheel, version)
    print_step(f"content of {sdist.name}")
    check_sdist(sdist)
    with tempfile.TemporaryDirectory(prefix="multiplay-dist-") as place:
        environment = CleanEnvironment(Path(place))
        for path in (wheel, sdist):
            print_step(f"installing {path.name} into an empty environment")
            environment.install(path)
            environment.use(source["described"]())
    print_step("all checks passed")


def print_step(what: str) -> None:
    """Print the next step."""
    print(f"dist: {what}", flush=True)


def single_file(folder: Path, pattern: str) -> Path:
    """Return the only file in a folder that matches a pattern."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise DistributionError(f"expected one {pattern} in {folder}, got {names}: run make dist")
    return found[0].resolve()


def check_wheel(wheel: Path, version: str) -> None:
    """Raise an error unless a wheel has exactly the package and its licence."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    information = f"multiplay-{version}.dist-info/"
    raise_if_any("not part of the package", [n for n in names if not is_ours(n, information)])
    source = {
        f"multiplay/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and not any(part in path.as_posix() for part in LEFT_BEHIND)
    }
    raise_if_any("missing in the wheel", source - names)
    raise_if_any("missing in the wheel", {f"{information}licenses/LICENSE"} - names)


def is_ours(name: str, information: str) -> bool:
    """Return whether a file may be in the wheel."""
    return name.startswith(("multiplay/", information)) and not any(
        part in name for part in LEFT_BEHIND
    )


def check_sdist(sdist: Path) -> None:
    """Raise an error unless a source distribution has the files to build and test it."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    raise_if_any("missing in the source distribution", set(IN_SDIST) - names)
    made = [n for n in names if n.startswith(NOT_IN_SDIST) or any(p in n for p in LEFT_BEHIND)]
    raise_if_any("generated, not source", made)


def raise_if_any(why: str, names: "set[str] | list[str]") -> None:
    """Raise an error that lists the names, if there are any."""
    if names:
        raise DistributionError("\n  ".join([f"{why}:", *sorted(names)]))


class CleanEnvironment:
    """A new virtual environment outside the checkout; each command runs in an empty folder."""

    def __init__(self, place: Path) -> None:
        self._place = place
        programs = place / "environment" / ("Scripts" if os.name == "nt" else "bin")
        self._python, self._command = programs / "python", programs / "multiplay"
        self._environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
        }
        self._environment |= {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1"}
        venv.create(place / "environment", with_pip=True)

    def install(self, path: Path) -> None:
        """Install a wheel or a source distribution, with the versions of constraints.txt."""
        options = ["--quiet", "--disable-pip-version-check", "--force-reinstall"]
        if self._command.exists() or self._command.with_suffix(".exe").exists():
            options.append("--no-deps")  # the first installation installed them
        pins = ["--constraint", str(ROOT / "constraints.txt")]
        self._run([self._python, "-m", "pip", "install", *options, *pins, path])

    def use(self, described: str) -> None:
        """Run the imports, the first example of the README, and the command line."""
        print_step("  importing all modules that need no extra")
        self._run([self._python, "-c", IMPORT_ALL, *NEED_AN_EXTRA])
        print_step("  running the first example of the README")
        self._run([self._python, "-c", first_python(ROOT / "README.md")])
        print_step("  running the command line")
        output = self._run([self._command, "--version"])
        if output.strip() != described:
            raise DistributionError(f"--version prints {output.strip()!r}, expected {described!r}")
        if "reproduce" not in self._run([self._command, "--help"]):
            raise DistributionError("multiplay --help does not list the command reproduce")
        if "clone" not in self._run([self._command, "bench"], code=2).lower():
            raise DistributionError("the error of multiplay bench does not mention a clone")

    def _run(self, command: "list[str | Path]", code: int = 0) -> str:
        """Run a command in a new empty folder; return its output."""
        folder = tempfile.mkdtemp(dir=self._place)
        words = [str(word) for word in command]
        done = subprocess.run(
            words,
            cwd=folder,
            env=self._environment,
            text=True,
            encoding="utf-8",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode != code:
            shown = " ".join(words[:4])[:200]
            ended = f"{shown} ended with {done.returncode}, expected {code}"
            raise DistributionError(f"{ended}:\n{done.stdout}")
        return done.stdout


def first_python(page: Path) -> str:
    """Return the first Python block of a page."""
    found = re.search(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    if not found:
        raise DistributionError(f"{page.name} has no Python code")
    return found[1]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/try_dist.py FOLDER")
    try:
        main(Path(sys.argv[1]))
    except DistributionError as error:
        sys.exit(f"dist: {error}")
