"""User modules: modules loaded from a folder, without a change to ``sys.path``.

Every folder has a package of its own with a unique name; its ``habits.py`` is the module
``beside_1f0c.habits``. Inside, ``import helpers`` finds ``helpers.py`` of the same folder first. A
folder is pickled with the sources of its modules, so that these work on a machine without it.
"""

import ast
import builtins
import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from importlib.util import decode_source, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from uuid import uuid4

OURS = __name__.partition(".")[0]


class Source(NamedTuple):
    """The text of a module, and the path of its file."""

    path: str
    text: str
    is_package: bool


@dataclass
class ModuleFolder:
    """A folder whose modules can be imported; ``sources`` has those imported so far, by name."""

    folder: str
    root: str = field(default_factory=lambda: f"beside_{uuid4().hex}")
    sources: dict[str, Source] = field(default_factory=dict)
    followed: set[str] = field(default_factory=set)

    def has(self, name: str) -> bool:
        """Return whether the folder has a module of this name."""
        parts = name.split(".")
        if parts[0] == OURS:  # a second copy would have different classes
            return False
        here = Path(self.folder, *parts)
        return name in self.sources or (
            all(part.isidentifier() for part in parts)
            and (here.with_name(f"{here.name}.py").is_file() or (here / "__init__.py").is_file())
        )

    def load(self, name: str) -> ModuleType:
        """Import and return the module of this name."""
        install(self)
        module = importlib.import_module(f"{self.root}.{name}")
        self._follow_imports()
        return module

    def source(self, name: str) -> Source | None:
        """Return the source of a module, and keep it: workers get the text that runs here."""
        if name not in self.sources:
            here = Path(self.folder, *name.split("."))
            module, package = here.with_name(f"{here.name}.py"), here / "__init__.py"
            if package.is_file():
                text = decode_source(package.read_bytes())
                self.sources[name] = Source(str(package), text, True)
            elif module.is_file():
                text = decode_source(module.read_bytes())
                self.sources[name] = Source(str(module), text, False)
            elif here.is_dir():  # a namespace package
                self.sources[name] = Source(str(package), "", True)
        return self.sources.get(name)

    def _follow_imports(self) -> None:
        """Read all modules of the folder that are imported, also inside functions."""
        while waiting := self.sources.keys() - self.followed:
            for name in waiting:
                self.followed.add(name)
                with suppress(OSError, SyntaxError, ValueError):  # the import itself will report it
                    for imported in _imported(name, self.sources[name]):
                        parts = imported.split(".")
                        for k in range(1, len(parts) + 1) if self.has(imported) else ():
                            self.source(".".join(parts[:k]))

    def import_from_here(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import on behalf of a module of this folder: modules of the folder come first."""
        if level > 0 or not self.has(name):
            return builtins.__import__(name, globals, locals, fromlist, level)
        found = builtins.__import__(f"{self.root}.{name}", globals, locals, fromlist, 0)
        first: ModuleType = found if fromlist else getattr(found, name.partition(".")[0])
        return first


def _imported(name: str, source: Source) -> Iterator[str]:
    """Yield the names that a module imports anywhere: modules, and names that may be modules."""
    package = name.split(".") if source.is_package else name.split(".")[:-1]
    for node in ast.walk(ast.parse(source.text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = [*above, *([node.module] if node.module else [])]
            yield ".".join(module)
            yield from (".".join([*module, alias.name]) for alias in node.names)


FOLDERS: dict[str, ModuleFolder] = {}  # by their roots


def install(folder: ModuleFolder) -> None:
    """Make the modules of a folder importable by their full names, as unpickling needs."""
    FOLDERS.setdefault(folder.root, folder).sources.update(folder.sources)
    if not any(finder is _Modules for finder in sys.meta_path):
        sys.meta_path.insert(0, _Modules)  # before the finder of files


def name_in_folder(module: str) -> str:
    """Return the name of a module in the source code of users: without the root package."""
    root, _, name = module.partition(".")
    return name if root in FOLDERS and name else module


class _Modules:
    """The finder and loader for the modules of all folders."""

    def __init__(self, folder: ModuleFolder, source: Source) -> None:
        self.folder, self.source = folder, source

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module whose name begins with the root of a folder."""
        root, _, below = name.partition(".")
        if root not in FOLDERS:
            return None
        folder = FOLDERS[root]
        source = folder.source(below) if below else Source(folder.folder, "", True)
        if source is None:
            return None
        return spec_from_file_location(
            name,
            source.path,
            loader=cls(folder, source),  # type: ignore[arg-type]
            submodule_search_locations=[] if source.is_package else None,
        )

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None: the default module object is used."""

    def exec_module(self, module: ModuleType) -> None:
        """Execute the source in the module."""
        names: dict[str, Any] = module.__dict__
        names["__builtins__"] = {**vars(builtins), "__import__": self.folder.import_from_here}
        exec(compile(self.source.text, self.source.path, "exec", dont_inherit=True), names)

    def get_source(self, name: str) -> str:
        """Return the source, for tracebacks on a machine without the file."""
        return self.source.text
