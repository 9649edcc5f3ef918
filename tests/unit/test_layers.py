"""Imports run downwards only, without a circle: the order of the house is declared here."""

import ast
import re
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import multiplay

ROOT = Path(multiplay.__file__).parent
PICTURE = Path(__file__).parents[2] / "docs" / "layers.svg"

# Lowest first. A package imports from its own line and from lines above it in this list, which are
# lower in the house. docs/layers.svg shows the same.
LAYERS = [
    ["errors", "version"],
    ["types"],
    ["_support"],
    ["kernels"],
    ["random", "storage"],
    ["feedback"],
    ["hull"],
    ["actions"],
    ["environments", "policies"],
    ["results"],
    ["simulation", "learner", "theory"],
    ["studies"],
    ["testing", "experiments"],
    ["reports", "remote"],
    ["service"],
    ["cli"],
]
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}
DOORS = {"__init__", "__main__"}  # multiplay itself: it stands above all, and nobody imports it
STRANGERS = [{"environments", "policies"}]  # of one level, and neither knows the other


class Import(NamedTuple):
    """That a file of one package imports another package."""

    by: str
    of: str
    place: str


def package(root: Path, module: Path) -> str:
    return module.relative_to(root).parts[0].removesuffix(".py")


def names_imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Give every module of ours that is imported, in functions and for type checkers too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the whole name, not a relative one"
            if node.module == "multiplay":
                yield from ((f"multiplay.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield node.module or "", node.lineno


def imports_of(root: Path) -> list[Import]:
    """Return what packages import from each other; multiplay itself stands above them all."""
    found = []
    for module in sorted(root.rglob("*.py")):
        by = package(root, module)
        for name, line in names_imported(ast.parse(module.read_text(encoding="utf-8"))):
            ours, _, below = name.partition(".")
            of = below.partition(".")[0] or "multiplay"
            if ours == "multiplay" and of != by and by not in DOORS:
                found.append(Import(by, of, f"{module.relative_to(root)}:{line}"))
    return found


def is_upward(one: Import) -> bool:
    """What multiplay itself exports, a class say, is imported from where it lives."""
    return LEVEL.get(one.of, len(LAYERS)) > LEVEL[one.by] or {one.by, one.of} in STRANGERS


def drawn(bad: Iterable[Import]) -> str:
    """The layers as a table, highest first, and what is wrong."""
    rows = [f"{LEVEL[name]:3}  {name}" for name in sorted(LEVEL, key=lambda name: -LEVEL[name])]
    wrong = [f"{one.place}: {one.by} imports {one.of}" for one in bad]
    return "\n".join(["level  package", *rows, "", *wrong])


def circle(imports: Iterable[Import]) -> list[str]:
    """Return packages that import each other in a circle, or nothing."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for one in imports:
        sorter.add(one.by, one.of)
    try:
        sorter.prepare()
    except CycleError as error:
        names: list[str] = error.args[1]
        return names
    return []


INSIDE = imports_of(ROOT)


def test_every_package_has_a_level() -> None:
    unknown = {package(ROOT, module) for module in ROOT.rglob("*.py")} - set(LEVEL) - DOORS
    assert not unknown, f"say in LAYERS where these belong: {unknown}\n{drawn([])}"


def test_imports_never_run_upwards() -> None:
    bad = [one for one in INSIDE if is_upward(one)]
    assert not bad, "\n" + drawn(bad)


def test_packages_import_each_other_in_no_circle() -> None:
    found = circle(INSIDE)
    assert not found, "\n" + drawn(one for one in INSIDE if {one.by, one.of} <= set(found))


def test_the_house_is_seen() -> None:
    """Were the imports not found, the tests above would be content with anything."""
    packages = {(one.by, one.of) for one in INSIDE}
    assert {("simulation", "policies"), ("actions", "hull"), ("cli", "experiments")} <= packages
    assert any(one.place.startswith("environments/base.py") for one in INSIDE)


def test_what_is_wrong_is_noticed(tmp_path: Path) -> None:
    late = "def late():\n    from multiplay.simulation import simulate\n    import multiplay\n"
    for name, code in {
        "policies/late.py": late,
        "environments/base.py": "from multiplay.policies.base import Policy\n",
        "simulation/ask.py": "from multiplay import learner\n",
        "learner/tell.py": "import multiplay.simulation.simulate\n",
    }.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(code)
    found = imports_of(tmp_path)
    upward = [one.place for one in found if is_upward(one)]
    assert upward == ["environments/base.py:1", "policies/late.py:2", "policies/late.py:3"]
    assert "policies/late.py:2: policies imports simulation" in drawn(found)
    assert set(circle(found)) == {"simulation", "learner"}


def test_the_picture_shows_these_layers() -> None:
    """From top to bottom, the names in typewriter letters are the layers, highest first."""
    shown = re.findall(r'class="where"[^>]*>([^<]*)<', PICTURE.read_text(encoding="utf-8"))
    names = [re.sub(r"(\.py|/)$", "", word) for words in shown for word in words.split()]
    assert sorted(names) == sorted(LEVEL), "every package once"
    assert [LEVEL[name] for name in names] == sorted(LEVEL.values(), reverse=True)
