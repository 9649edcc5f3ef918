"""Layers of the package: imports run downwards, and no two files import each other in a circle.

Imports inside functions and under ``TYPE_CHECKING`` count too.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import multiplay

ROOT = Path(multiplay.__file__).parent
PICTURE = Path(__file__).parents[2] / "docs" / "layers.svg"

# Lowest first. A package imports from its own line and from the lines above it in this list, which
# are lower layers. docs/layers.svg shows the same.
LAYERS = [
    ["errors", "version"],
    ["types"],
    ["_support"],
    ["kernels"],
    ["random", "storage", "features"],
    ["feedback", "beliefs"],
    ["hull"],
    ["actions"],
    ["constraints", "posteriors"],
    ["environments", "policies"],
    ["results"],
    ["savings"],
    ["simulation", "gym", "learner", "theory"],
    ["studies"],
    ["testing", "experiments"],
    ["reports", "remote"],
    ["service"],
    ["cli"],
]
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}
TOP = {"__init__", "__main__"}  # multiplay itself: it may import all, and no package imports it
SEPARATE = [{"environments", "policies"}]  # of one layer, and neither imports the other


class Import(NamedTuple):
    """An import of one file by another: their modules, and the place of the statement."""

    by: str
    of: str
    place: str

    @property
    def packages(self) -> tuple[str, str]:
        """The packages of both, of which the lowest part of the name is the key of ``LEVEL``."""
        return _package(self.by), _package(self.of)


def _package(module: str) -> str:
    """Return the first part of a module's name below multiplay; ``multiplay`` for itself."""
    below = module.partition(".")[2].partition(".")[0]
    return below or "multiplay"


def modules_of(root: Path) -> dict[str, Path]:
    """Return all files below a folder, by the names of their modules."""
    found = {}
    for file in sorted(root.rglob("*.py")):
        parts = ["multiplay", *file.relative_to(root).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def names_imported(tree: ast.AST) -> Iterator[tuple[str, str, int]]:
    """Yield every imported module, the imported name (or nothing), and the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "", node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: use absolute imports"
            yield from ((node.module or "", alias.name, node.lineno) for alias in node.names)


def imports_of(root: Path) -> list[Import]:
    """Return all imports between files.

    ``from package import name`` imports the submodule of this name if there is one; otherwise the
    package itself. A package imports its own submodules, which is no circle: what a submodule
    imports from its own package's ``__init__`` is. A stub, ``__init__.pyi``, declares the imports
    that its package makes on first use.
    """
    modules, found = modules_of(root), []
    stubs = [(by, file.with_suffix(".pyi")) for by, file in modules.items()]
    for by, file in [*modules.items(), *(stub for stub in stubs if stub[1].exists())]:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for module, name, line in names_imported(tree):
            full = f"{module}.{name}" if f"{module}.{name}" in modules else module
            if full.partition(".")[0] == "multiplay" and full != by:
                found.append(Import(by, full, f"{file.relative_to(root)}:{line}"))
    return sorted(set(found))


def is_upward(one: Import) -> bool:
    """Return whether an import leads to a higher or separate layer, or to multiplay itself."""
    by, of = one.packages
    if by == of or by in ("multiplay", *TOP):
        return False
    return LEVEL.get(of, len(LAYERS)) > LEVEL[by] or {by, of} in SEPARATE


def circle(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return modules or packages that import each other in a circle; an empty list if none do."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for by, of in pairs:
        sorter.add(by, of)
    try:
        sorter.prepare()
    except CycleError as error:
        names: list[str] = error.args[1]
        return names
    return []


def between_packages(imports: Iterable[Import]) -> set[tuple[str, str]]:
    """Return the pairs of different packages of imports, without multiplay itself."""
    pairs = {one.packages for one in imports}
    return {(by, of) for by, of in pairs if by != of and by not in ("multiplay", *TOP)}


def between_files(imports: Iterable[Import]) -> set[tuple[str, str]]:
    """Return the pairs of files of imports."""
    return {(one.by, one.of) for one in imports}


def listing(bad: Iterable[Import]) -> str:
    """Return the layers as a table, highest first, and the imports that are wrong."""
    rows = [f"{LEVEL[name]:3}  {name}" for name in sorted(LEVEL, key=lambda name: -LEVEL[name])]
    wrong = [f"{one.place}: {one.by} imports {one.of}" for one in bad]
    return "\n".join(["layer  package", *rows, "", *wrong])


@pytest.fixture(scope="module")
def inside() -> list[Import]:
    """Return the imports between the files of the package."""
    return imports_of(ROOT)


def test_every_package_has_a_layer() -> None:
    found = {file.relative_to(ROOT).parts[0].removesuffix(".py") for file in ROOT.rglob("*.py")}
    assert found - TOP == set(LEVEL), f"LAYERS must name each package\n{listing([])}"


def test_imports_run_downwards(inside: list[Import]) -> None:
    bad = [one for one in inside if is_upward(one)]
    assert not bad, "\n" + listing(bad)


def test_packages_do_not_import_each_other_in_a_circle(inside: list[Import]) -> None:
    found = circle(between_packages(inside))
    assert not found, "\n" + listing(one for one in inside if set(one.packages) <= set(found))


def test_files_do_not_import_each_other_in_a_circle(inside: list[Import]) -> None:
    found = circle(between_files(inside))
    assert not found, "\n" + listing(one for one in inside if {one.by, one.of} <= set(found))


def test_imports_are_found(inside: list[Import]) -> None:
    """Without any imports, the tests above would pass."""
    packages, files = between_packages(inside), between_files(inside)
    assert {("simulation", "policies"), ("actions", "hull"), ("cli", "experiments")} <= packages
    assert ("multiplay.storage.memory", "multiplay.storage.base") in files
    assert ("multiplay.storage", "multiplay.storage.memory") in files
    assert ("multiplay.policies", "multiplay.policies.gencts") in files, "by its stub"
    assert len(files) > 1000


def write(root: Path, files: dict[str, str]) -> None:
    for name, code in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(code)


def test_imports_upwards_are_detected(tmp_path: Path) -> None:
    late = "def late():\n    from multiplay.simulation import simulate\n    import multiplay\n"
    write(
        tmp_path,
        {
            "policies/late.py": late,
            "environments/base.py": "from multiplay.policies.base import Policy\n",
            "simulation/ask.py": "from multiplay import learner\n",
            "learner/__init__.py": "",
            "learner/tell.py": "import multiplay.simulation.simulate\n",
        },
    )
    found = imports_of(tmp_path)
    upward = [one.place for one in found if is_upward(one)]
    assert upward == ["environments/base.py:1", "policies/late.py:3", "policies/late.py:2"]
    assert "policies/late.py:2: multiplay.policies.late imports multiplay.simulation" in listing(
        found
    )
    assert set(circle(between_packages(found))) == {"simulation", "learner"}
    assert not circle(between_files(found)), "these files are no circle, but their packages are"


BASE = "from multiplay.actions.display import shown\n"
CIRCLES = {
    "at the top": BASE,
    "for type checkers": f"if TYPE_CHECKING:\n    {BASE}",
    "inside a function": f"def late():\n    {BASE}",
    "by the package": "from multiplay.actions import display\n",
    "by its whole name": "import multiplay.actions.display\n",
}


@pytest.mark.parametrize("base", CIRCLES.values(), ids=CIRCLES.keys())
def test_circles_between_files_are_detected(tmp_path: Path, base: str) -> None:
    write(
        tmp_path,
        {
            "actions/__init__.py": "from multiplay.actions.base import ActionSet\n",
            "actions/base.py": base,
            "actions/middle.py": "from multiplay.actions.base import ActionSet\n",
            "actions/display.py": "from multiplay.actions.middle import halved\n",
        },
    )
    found = imports_of(tmp_path)
    names = {f"multiplay.actions.{name}" for name in ("base", "middle", "display")}
    assert set(circle(between_files(found))) == names
    assert not circle(between_packages(found))


@pytest.mark.parametrize("suffix", ["py", "pyi"])
def test_importing_the_own_package_is_a_circle(tmp_path: Path, suffix: str) -> None:
    write(
        tmp_path,
        {
            "actions/__init__.py": "",
            f"actions/__init__.{suffix}": "from multiplay.actions.base import ActionSet\n",
            "actions/base.py": "from multiplay.actions import ActionSet\n",
        },
    )
    found = circle(between_files(imports_of(tmp_path)))
    assert set(found) == {"multiplay.actions", "multiplay.actions.base"}


def test_the_picture_shows_these_layers() -> None:
    """From top to bottom, the names in a fixed-width font are the layers, highest first."""
    shown = re.findall(r'class="where"[^>]*>([^<]*)<', PICTURE.read_text(encoding="utf-8"))
    names = [re.sub(r"(\.py|/)$", "", word) for words in shown for word in words.split()]
    assert sorted(names) == sorted(LEVEL), "every package once"
    assert [LEVEL[name] for name in names] == sorted(LEVEL.values(), reverse=True)
