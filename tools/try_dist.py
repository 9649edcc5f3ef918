"""Try what is to be published: ``python tools/try_dist.py dist``.

Looks into the wheel and the source distribution, then installs both into an empty environment, far
from the checkout, and uses them there as a stranger would. Needs the standard library only.
"""

import os
import re
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
LEFT_BEHIND = ("__pycache__", ".pyc", ".nbi", ".nbc")  # what running leaves beside the source

# What an extra is for; all other modules must be importable without any.
NEED_AN_EXTRA = (
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


class Wrong(Exception):
    """Something that must not be published."""


def main(folder: Path) -> None:
    """Try the wheel and the source distribution of a folder."""
    version = version_of_source()
    wheel, sdist = only(folder, "*.whl"), only(folder, "*.tar.gz")
    for path in (wheel, sdist):
        if not path.name.startswith(f"multiplay-{version}"):
            raise Wrong(f"{path.name} is not of version {version}: run make dist")
    say(f"content of {wheel.name}")
    check_wheel(wheel, version)
    say(f"content of {sdist.name}")
    check_sdist(sdist)
    with tempfile.TemporaryDirectory(prefix="multiplay-dist-") as place:
        stranger = Stranger(Path(place))
        for path in (wheel, sdist):
            say(f"installing {path.name} into an empty environment")
            stranger.install(path)
            stranger.use(version)
    say("all is well")


def say(what: str) -> None:
    """Print what is done next."""
    print(f"dist: {what}", flush=True)


def version_of_source() -> str:
    """Return what version.py says."""
    found = re.search(r'__version__ = "(.+)"', (PACKAGE / "version.py").read_text("utf-8"))
    if not found:
        raise Wrong("src/multiplay/version.py has no __version__")
    return found[1]


def only(folder: Path, pattern: str) -> Path:
    """Return the one file of a kind in a folder."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise Wrong(f"expected one {pattern} in {folder}, got {names}: run make dist")
    return found[0].resolve()


def check_wheel(wheel: Path, version: str) -> None:
    """Raise ``Wrong`` unless a wheel has the package, its licence, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    information = f"multiplay-{version}.dist-info/"
    refuse("is no part of the package", [n for n in names if not is_ours(n, information)])
    source = {
        f"multiplay/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and not any(part in path.as_posix() for part in LEFT_BEHIND)
    }
    refuse("is missing in the wheel", source - names)
    refuse("is missing in the wheel", {f"{information}licenses/LICENSE"} - names)


def is_ours(name: str, information: str) -> bool:
    """Say whether a file may be in the wheel."""
    return name.startswith(("multiplay/", information)) and not any(
        part in name for part in LEFT_BEHIND
    )


def check_sdist(sdist: Path) -> None:
    """Raise ``Wrong`` unless a source distribution has what building and testing need."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    refuse("is missing in the source distribution", set(IN_SDIST) - names)
    made = [n for n in names if n.startswith(NOT_IN_SDIST) or any(p in n for p in LEFT_BEHIND)]
    refuse("was made, and is no source", made)


def refuse(why: str, names: "set[str] | list[str]") -> None:
    """Raise ``Wrong`` if there are any names."""
    if names:
        raise Wrong("\n  ".join([f"this {why}:", *sorted(names)]))


class Stranger:
    """Somebody with an empty environment and an empty folder, who has never seen the checkout."""

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
            options.append("--no-deps")  # they are there since the first time
        pins = ["--constraint", str(ROOT / "constraints.txt")]
        self._run([self._python, "-m", "pip", "install", *options, *pins, path])

    def use(self, version: str) -> None:
        """Do what the README says, and ask the command line."""
        say("  every module that needs no extra is imported")
        self._run([self._python, "-c", IMPORT_ALL, *NEED_AN_EXTRA])
        say("  the first lines of the README run")
        self._run([self._python, "-c", first_python(ROOT / "README.md")])
        say("  the command line answers")
        said = self._run([self._command, "--version"])
        if said.strip() != f"multiplay {version}":
            raise Wrong(f"multiplay --version says {said.strip()!r}, and not {version}")
        if "reproduce" not in self._run([self._command, "--help"]):
            raise Wrong("multiplay --help does not name its commands")
        if "clone" not in self._run([self._command, "bench"], ends=2).lower():
            raise Wrong("multiplay bench does not say that it needs a clone")

    def _run(self, command: "list[str | Path]", ends: int = 0) -> str:
        """Run a command in a new empty folder; return what it printed."""
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
        if done.returncode != ends:
            shown = " ".join(words[:4])[:200]
            raise Wrong(f"{shown} ended with {done.returncode}, and not {ends}:\n{done.stdout}")
        return done.stdout


def first_python(page: Path) -> str:
    """Return the first Python code of a page."""
    found = re.search(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    if not found:
        raise Wrong(f"{page.name} has no Python code")
    return found[1]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/try_dist.py FOLDER")
    try:
        main(Path(sys.argv[1]))
    except Wrong as error:
        sys.exit(f"dist: {error}")
