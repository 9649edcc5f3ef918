"""Targets of the Makefile: each runs in the environment that it installs, from an empty folder.

Most tests read imports, without running anything: the environment of the tests has all packages,
so that a run in it would not show a missing one. The last tests, marked soak, clone and run.
"""

import ast
import os
import re
import runpy
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Any

import httpx
import pytest
from effort import TIME_LIMIT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pages import CODE, MAGIC, ROOT

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OURS = ("multiplay", "benchmarks")
EXECUTED = sorted(
    page for part in ("gallery", "tutorials") for page in ROOT.glob(f"docs/{part}/*.md")
)
ENVIRONMENT = re.compile(r"^(\w+): \.venv/installed(?:-(\w+))?\b", re.MULTILINE)
EXTRAS = dict(re.findall(r"^EXTRAS-(\w+) := (\S+)$", MAKEFILE, re.MULTILINE))


def extras(target: str) -> tuple[str, ...]:
    """Return the extras that a target installs."""
    found = dict(ENVIRONMENT.findall(MAKEFILE))[target]
    return tuple(EXTRAS[found].split(",")) if found else ()


@cache
def with_dependencies(requirement: str) -> frozenset[str]:
    """Return the names of the distributions that a requirement installs."""
    wanted, found = [Requirement(requirement)], set[str]()
    while wanted:
        one = wanted.pop()
        name, given = canonicalize_name(one.name), one.extras or {""}
        if name in found or not any(_applies(one, extra) for extra in given):
            continue
        found.add(name)
        try:
            lines = requires(name) or []
        except PackageNotFoundError:
            pytest.skip(f"{name} is not installed: its dependencies are not known")
        inner = map(Requirement, lines)
        wanted += [need for need in inner if any(_applies(need, extra) for extra in given)]
    return frozenset(found)


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


@cache
def installed(names: tuple[str, ...]) -> set[str]:
    """Return the distributions of an installation of multiplay with these extras."""
    optional = PROJECT["optional-dependencies"]
    lines = [*PROJECT["dependencies"], *(line for name in names for line in optional[name])]
    return set().union(*map(with_dependencies, lines))


def imports(code: str, nested: bool = True) -> Iterator[str]:
    """Yield the modules that code imports; without ``nested``, when it is imported itself."""
    todo: list[ast.AST] = [ast.parse(code)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        elif nested or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            todo += ast.iter_child_nodes(node)


def source(module: str) -> str:
    """Return the code of a module of the project; nothing for a class or function in one."""
    path = ROOT.joinpath("src" if module.startswith("multiplay") else "", *module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file.read_text("utf-8") if file.is_file() else ""


@cache
def imported(module: str) -> list[str]:
    """Return what a module of the project imports, without the functions of multiplay."""
    return [*imports(source(module), nested=not module.startswith("multiplay"))]


def packages(modules: Iterable[str]) -> set[str]:
    """Return the packages of others among modules, and those that modules of the project import."""
    todo, done, found = [*modules], set[str](), set[str]()
    while todo:
        module = todo.pop()
        package = module.partition(".")[0]
        if package in OURS and module not in done:
            todo += imported(module)
        elif package not in OURS and package not in sys.stdlib_module_names:
            found.add(package)
        done.add(module)
    return found


def missing(modules: Iterable[str], names: tuple[str, ...]) -> set[str]:
    """Return the packages that modules import, and an installation with these extras lacks."""
    there, known = installed(names), distributions()
    return {name for name in packages(modules) if not {*known.get(name, [name])} & there}


@cache
def distributions() -> dict[str, list[str]]:
    """Return the distributions that contain a package, by its name."""
    found = packages_distributions()
    return {package: [*map(canonicalize_name, names)] for package, names in found.items()}


def cells(page: Path) -> str:
    """Return the Python code of a page."""
    return MAGIC.sub("", "\n".join(code for code, _ in CODE.findall(page.read_text("utf-8"))))


@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_the_environment_of_the_site_has_what_its_pages_import_or_name(page: Path) -> None:
    assert missing(imports(cells(page)), extras("docs")) == set()
    named = re.findall(r"multiplay\[(\w+)\]", page.read_text("utf-8"))
    assert set(named) - set(extras("docs")) == set()


def test_the_environment_of_the_site_has_what_its_extensions_and_its_reference_import() -> None:
    files = [ROOT / "docs" / "conf.py", *ROOT.glob("docs/_ext/*.py")]
    pages = "".join(page.read_text("utf-8") for page in ROOT.glob("docs/reference/*.md"))
    described = re.findall(r"multiplay(?:\.\w+)+", pages)
    modules = [name for file in files for name in imports(file.read_text("utf-8"))]
    assert {"sphinx", "jupytext", "gymnasium"} <= packages([*modules, *described]), "all are read"
    assert missing([*modules, *described], extras("docs")) == set()
    assert extras("notebooks") == extras("docs")


@pytest.mark.parametrize(
    ("target", "module"),
    [
        ("reproduce", "multiplay.cli.reproduce"),
        ("table1", "multiplay.cli.table1"),
        ("serve", "multiplay.service.app"),
        ("bench", "benchmarks.suite"),
        *(("soak", f"benchmarks.{name}") for name in re.findall(r"-m benchmarks\.(\w+)", MAKEFILE)),
    ],
)
def test_the_environment_of_a_target_has_what_its_program_imports(target: str, module: str) -> None:
    assert source(module)
    assert missing([module], extras(target)) == set()


def test_the_tools_need_the_standard_library_only() -> None:
    for name in ("try_dist", "matrix"):
        assert packages(imports((ROOT / "tools" / f"{name}.py").read_text("utf-8"))) == set()


def test_modules_that_need_an_extra_are_known_to_the_check_of_distributions() -> None:
    files = [file.relative_to(ROOT / "src") for file in ROOT.glob("src/multiplay/**/*.py")]
    modules = [".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files]
    need = {module for module in modules if missing([module], ())}
    known = runpy.run_path(str(ROOT / "tools" / "try_dist.py"))["NEED_AN_EXTRA"]
    assert [module for module in need if not module.startswith(known)] == []
    assert [name for name in known if not any(module.startswith(name) for module in need)] == []


# ---------------------------------------------------------------- clones

# Variables of make for a short run. `make serve` has a test of its own.
SHORT: dict[str, list[str]] = {
    "reproduce": ["OPTIONS=--trials 2 --horizon 100 --jobs 1"],
    "table1": ["OPTIONS=--trials 2 --horizon 100 --jobs 1"],
    "test": ["TESTS=tests/unit/test_layers.py"],
    "docs": [],
    "notebooks": [],
    "dist": [],
    "bench": ["OPTIONS=--quick --only rounding"],
}
LISTENS = re.compile(r"Listening on (http://[\w.:]+)")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of the last commit, without an environment."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    place = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, place], check=True)
    return place


def make(clone: Path, *words: str, **options: Any) -> subprocess.Popen[str]:
    """Start make in a clone, with the Python of the tests, and without variables of other runs."""
    ours = ("MAKE", "MFLAGS", "PYTHON", "PYTEST", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = ["make", f"PYTHON={sys.executable}", *words]
    return subprocess.Popen(
        command, cwd=clone, env=kept, stderr=subprocess.STDOUT, text=True, **options
    )


@pytest.mark.soak
@pytest.mark.parametrize("target", SHORT)
def test_a_target_runs_in_an_empty_clone(target: str, clone: Path) -> None:
    with make(clone, target, *SHORT[target], stdout=subprocess.PIPE) as started:
        output, _ = started.communicate()
    assert started.returncode == 0, output[-10_000:]


@pytest.mark.soak
def test_the_service_of_an_empty_clone_answers(clone: Path) -> None:
    with make(
        clone, "serve", "OPTIONS=--port 0", stdout=subprocess.PIPE, start_new_session=True
    ) as started:
        assert started.stdout is not None
        output, found = "", None
        for line in started.stdout:
            output += line
            if found := LISTENS.search(line):
                break
        assert found, output
        try:
            answer = httpx.get(f"{found[1]}/healthz", timeout=TIME_LIMIT)
            assert answer.json()["status"] == "ok"
        finally:
            os.killpg(started.pid, signal.SIGINT)
            started.stdout.read()
