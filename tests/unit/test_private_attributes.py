"""Private attributes and internal modules of other libraries: the package uses none.

An attribute whose name begins with an underscore may change in any version of its library, and so
may a module that the library does not document.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import multiplay

ROOT = Path(multiplay.__file__).parent

DOCUMENTED = {"os._exit", "numba.core.event"}  # in the manuals of their libraries
NAMEDTUPLE = {"_replace", "_asdict", "_fields", "_make", "_field_defaults"}  # documented
INTERNAL = (  # modules without an underscore that their libraries do not document
    "fastapi.dependencies",
    "numba.core",
    "numba.np",
    "numpy.core",
    "pandas.core",
    "uvicorn.protocols",
    "xarray.core",
)
BY_NAME = {"getattr", "hasattr", "setattr", "delattr"}  # functions that take the name as text


def is_private(name: str) -> bool:
    """Return whether a name begins with one underscore; ``_repr_html_`` and such are protocols."""
    return name.startswith("_") and not name.endswith("_") and not name.startswith("__")


def is_internal(module: str) -> bool:
    """Return whether a module of another library is private or not documented."""
    if module in DOCUMENTED:
        return False
    private = any(is_private(part) for part in module.split("."))
    return private or any(f"{module}.".startswith(f"{name}.") for name in INTERNAL)


def accesses(tree: ast.AST) -> Iterator[tuple[ast.expr, str, int]]:
    """Yield every use of a private attribute: the object, the name, and the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.value, node.attr, node.lineno
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            function, name = node.func, node.args[1]
            called = function.attr if isinstance(function, ast.Attribute) else ""
            called = function.id if isinstance(function, ast.Name) else called.strip("_")
            if called in BY_NAME and isinstance(name, ast.Constant) and is_private(str(name.value)):
                yield node.args[0], str(name.value), node.lineno


def root_of(node: ast.expr) -> str:
    """Return the name at the beginning of ``name.a.b[c].d()``; nothing for other expressions."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        else:
            return ""
    return node.id


def is_own(node: ast.expr) -> bool:
    """Return whether an object is ``self`` or ``cls``, or ``super()``."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def imported(tree: ast.AST) -> tuple[set[str], set[str]]:
    """Return the names in a file that come from multiplay, and those from other libraries."""
    ours: set[str] = set()
    foreign: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                package = alias.name.split(".")[0]
                (ours if package == "multiplay" else foreign).add(alias.asname or package)
        elif isinstance(node, ast.ImportFrom):
            package = (node.module or "").split(".")[0]
            names = ours if package == "multiplay" else foreign
            names |= {alias.asname or alias.name for alias in node.names}
    return ours, foreign


def attributes(tree: ast.AST) -> set[str]:
    """Return the private attributes that the classes of a file define."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found |= set(names_in(node.body))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if is_own(node.value):
                found.add(node.attr)
        elif isinstance(node, ast.Call) and root_of(node.func) in ("setattr", "object"):
            found |= {name for value, name, _ in accesses(ast.Expr(node)) if is_own(value)}
    return {name for name in found if is_private(name)}


def names_in(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names that the statements of a class or a module define."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [one for target in targets for one in ast.walk(target)]
            yield from (one.id for one in names if isinstance(one, ast.Name))
            if any(isinstance(one, ast.Name) and one.id == "__slots__" for one in names):
                yield from (
                    str(one.value) for one in ast.walk(node) if isinstance(one, ast.Constant)
                )
        elif isinstance(node, ast.If | ast.Try):
            yield from names_in(node.body)


def modules_imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every imported module or name of another library, and the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        foreign = (name for name in names if name.split(".")[0] not in ("multiplay", "__future__"))
        yield from ((name, node.lineno) for name in foreign)


@cache
def trees_of(root: Path) -> dict[str, ast.Module]:
    """Return all files below a folder, parsed."""
    return {
        f"{file.relative_to(root)}": ast.parse(file.read_text(encoding="utf-8"))
        for file in sorted(root.rglob("*.py"))
    }


def violations(root: Path) -> list[str]:
    """Return all uses of private attributes and internal modules of other libraries."""
    trees = trees_of(root)
    defined: set[str] = set().union(*map(attributes, trees.values()))
    found = []
    for place, tree in trees.items():
        ours, foreign = imported(tree)
        for value, name, line in accesses(tree):
            root_name = root_of(value)
            if name in NAMEDTUPLE or f"{ast.unparse(value)}.{name}" in DOCUMENTED:
                continue
            if root_name in ours and isinstance(value, ast.Name):
                continue  # a name of one of our modules
            if root_name in foreign or name not in defined:
                found.append(f"{place}:{line}: {ast.unparse(value)}.{name}")
        internal = [(name, line) for name, line in modules_imported(tree) if is_internal(name)]
        found += [f"{place}:{line}: {name}" for name, line in internal]
    return found


def test_no_private_attribute_of_another_library_is_used() -> None:
    found = violations(ROOT)
    assert not found, "use the documented interface of the library:\n" + "\n".join(found)


def test_private_attributes_are_found() -> None:
    """Without any of them, the test above would pass."""
    own = [
        value for tree in trees_of(ROOT).values() for value, _, _ in accesses(tree) if is_own(value)
    ]
    assert len(own) > 1000


OWN = "class Base:\n    _made = 1\n    def __init__(self):\n        self._items = []\n"
BAD = {
    "an attribute of an argument": "def f(request):\n    return request._json\n",
    "an attribute that is set": "def f(request):\n    request._body = b''\n",
    "a name of a module": "import zlib\ndef f(x: zlib._Compress): ...\n",
    "a function of a module": "import os as system\nsystem._wrap_close(1)\n",
    "an attribute of its result": "import numba\nnumba.njit(f)._items\n",
    "an attribute by its name": "def f(x):\n    return getattr(x, '_cache')\n",
    "an attribute of a base class": "from a import A\nclass B(A):\n    def f(self):\n"
    "        return self._loop\n",
    "a private module": "from uvicorn._types import Scope\n",
    "a private submodule": "import a._b.c\n",
    "a private name": "from functools import _lru_cache_wrapper\n",
    "an internal module": "from numba.core import caching\n",
    "an internal module inside a function": "def f():\n    import pandas.core.frame\n",
    "an internal module of a package": "from uvicorn import protocols\n",
}
GOOD = {
    "an own attribute": OWN + "    def f(self):\n        return self._items, super()._made\n",
    "an own object": OWN + "def f(base):\n    return base._items\n",
    "a class attribute": OWN + "Base._made\n",
    "a namedtuple": "def f(row):\n    return row._replace(a=1), row._fields\n",
    "a documented function": "import os\nos._exit(1)\n",
    "a special method": "def f(x):\n    return x.__dict__, x._repr_html_()\n",
    "a frozen class": "class A:\n    def __init__(self):\n"
    "        object.__setattr__(self, '_x', 1)\n    def f(self):\n        return self._x\n",
    "a private name of ours": "from multiplay._support import html\nfrom multiplay.a import _b\n",
    "a documented module": "from __future__ import annotations\nfrom numba.core import event\n",
}


@pytest.mark.parametrize("code", BAD.values(), ids=BAD.keys())
def test_uses_are_detected(tmp_path: Path, code: str) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "other.py").write_text(code)
    assert [found.partition(":")[0] for found in violations(tmp_path)] == ["other.py"]


@pytest.mark.parametrize("code", GOOD.values(), ids=GOOD.keys())
def test_own_attributes_are_allowed(tmp_path: Path, code: str) -> None:
    (tmp_path / "module.py").write_text(code)
    assert violations(tmp_path) == []
