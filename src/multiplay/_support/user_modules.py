"""Modules that are loaded by their place: ``sys.path`` stays as it is, and nothing is shadowed.

Every place has a package of its own, with a name that nobody else has; ``habits.py`` in it is the
module ``beside_1f0c.habits``. Inside, ``import helpers`` finds ``helpers.py`` of the same place
first. A place can be pickled with the sources of its modules, and works where no such folder is.
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
    """The text of a module, and where it stands."""

    path: str
    text: str
    is_package: bool


@dataclass
class Place:
    """A folder whose modules can be loaded; ``sources`` has those that were, by name."""

    folder: str
    root: str = field(default_factory=lambda: f"beside_{uuid4().hex}")
    sources: dict[str, Source] = field(default_factory=dict)
    followed: set[str] = field(default_factory=set)

    def has(self, name: str) -> bool:
        """Say whether a module of this name stands here."""
        parts = name.split(".")
        if parts[0] == OURS:  # a second copy of it would have other classes
            return False
        here = Path(self.folder, *parts)
        return name in self.sources or (
            all(part.isidentifier() for part in parts)
            and (here.with_name(f"{here.name}.py").is_file() or (here / "__init__.py").is_file())
        )

    def load(self, name: str) -> ModuleType:
        """Return the module of this name."""
        install(self)
        module = importlib.import_module(f"{self.root}.{name}")
        self._follow_imports()
        return module

    def source(self, name: str) -> Source | None:
        """Return what a module is made of, and keep it: what runs is what is sent to others."""
        if name not in self.sources:
            here = Path(self.folder, *name.split("."))
            module, package = here.with_name(f"{here.name}.py"), here / "__init__.py"
            if package.is_file():
                text = decode_source(package.read_bytes())
                self.sources[name] = Source(str(package), text, True)
            elif module.is_file():
                text = decode_source(module.read_bytes())
                self.sources[name] = Source(str(module), text, False)
            elif here.is_dir():  # modules below it, and nothing of its own
                self.sources[name] = Source(str(package), "", True)
        return self.sources.get(name)

    def _follow_imports(self) -> None:
        """Read all that the modules import from here, also what functions will import later."""
        while waiting := self.sources.keys() - self.followed:
            for name in waiting:
                self.followed.add(name)
                with suppress(OSError, SyntaxError, ValueError):  # it fails where it is imported
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
        """Import for a module of this place: its neighbours come first."""
        if level > 0 or not self.has(name):
            return builtins.__import__(name, globals, locals, fromlist, level)
        found = builtins.__import__(f"{self.root}.{name}", globals, locals, fromlist, 0)
        first: ModuleType = found if fromlist else getattr(found, name.partition(".")[0])
        return first


def _imported(name: str, source: Source) -> Iterator[str]:
    """Yield the names of modules that a module imports anywhere, and of what may be modules."""
    package = name.split(".") if source.is_package else name.split(".")[:-1]
    for node in ast.walk(ast.parse(source.text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = [*above, *([node.module] if node.module else [])]
            yield ".".join(module)
            yield from (".".join([*module, alias.name]) for alias in node.names)


PLACES: dict[str, Place] = {}  # by their roots


def install(place: Place) -> None:
    """Let the modules of a place be imported by their full names, as unpickling does."""
    PLACES.setdefault(place.root, place).sources.update(place.sources)
    if not any(finder is _Modules for finder in sys.meta_path):
        sys.meta_path.insert(0, _Modules)  # before the finder of files, which would find them too


def name_in_its_place(module: str) -> str:
    """Return the name of a module as people write it: without the root of its place."""
    root, _, name = module.partition(".")
    return name if root in PLACES and name else module


class _Modules:
    """Finds and runs the modules of all places."""

    def __init__(self, place: Place, source: Source) -> None:
        self.place, self.source = place, source

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer for names that begin with the root of a place."""
        root, _, below = name.partition(".")
        if root not in PLACES:
            return None
        place = PLACES[root]
        source = place.source(below) if below else Source(place.folder, "", True)
        if source is None:
            return None
        return spec_from_file_location(
            name,
            source.path,
            loader=cls(place, source),  # type: ignore[arg-type]
            submodule_search_locations=[] if source.is_package else None,
        )

    def create_module(self, spec: ModuleSpec) -> None:
        """Let a usual module be made."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the text."""
        names: dict[str, Any] = module.__dict__
        names["__builtins__"] = {**vars(builtins), "__import__": self.place.import_from_here}
        exec(compile(self.source.text, self.source.path, "exec", dont_inherit=True), names)

    def get_source(self, name: str) -> str:
        """Return the text, for tracebacks where the file is not."""
        return self.source.text
