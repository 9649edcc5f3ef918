"""The classes that an experiment file may name: those of multiplay, and anybody's subclasses."""

import importlib
import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import multiplay.actions
import multiplay.environments
import multiplay.policies
from multiplay._support.builder import Builder, classes_of
from multiplay._support.user_modules import Place, name_in_its_place
from multiplay.actions import ActionSet
from multiplay.environments import Distribution, Environment
from multiplay.environments.oblivious import Oblivious
from multiplay.errors import InvalidInput
from multiplay.policies import Policy

MODULES = (multiplay.actions, multiplay.environments, multiplay.policies)
BASES = (ActionSet, Environment, Distribution, Oblivious, Policy)


class FileBuilder(Builder):
    """Builds the classes of multiplay by their names, and anybody's subclasses as "module.Class".

    A module beside the file comes before an installed one. Nothing is built before its class is
    known to be a subclass of ours: ``type = "subprocess.Popen"`` starts nothing.
    """

    def __init__(self, place: Place, leaf: Callable[[str, Any], Any]) -> None:
        classes = classes_of(*MODULES)
        super().__init__({name: c for name, c in classes.items() if issubclass(c, BASES)}, leaf)
        self.place = place

    def find(self, where: str, name: Any) -> type:
        """Return a class of multiplay by its name, or anybody's as "module.Class"."""
        if not isinstance(name, str) or "." not in name:
            return super().find(where, name)
        module, _, attribute = name.rpartition(".")
        kind = getattr(self._module(where, module), attribute, None)
        if kind is None:
            hint = "Check the spelling, or write the class."
            raise InvalidInput(where, f"a class of the module {module}", repr(attribute), hint)
        if not isinstance(kind, type) or not issubclass(kind, BASES):
            bases = ", ".join(base.__name__ for base in BASES)
            hint = "Nothing else is built. Derive your class from one of them."
            raise InvalidInput(where, f"a subclass of {bases}", f"{name}, {kind!r}", hint)
        if inspect.isabstract(kind):
            missing = ", ".join(sorted(kind.__abstractmethods__))
            hint = "Write them in the class, or name a subclass that has them."
            raise InvalidInput(where, "a class with all its methods", f"none for {missing}", hint)
        return kind

    def _module(self, where: str, name: str) -> ModuleType:
        try:
            return self.place.load(name) if self.place.has(name) else importlib.import_module(name)
        except SyntaxError as error:
            line = "" if error.lineno is None else f", line {error.lineno}"
            raise InvalidInput(
                where,
                "a module that Python can read",
                f"{error.filename or name}{line} ({error.msg})",
                "Correct this line.",
            ) from None
        except ModuleNotFoundError as error:
            missing = name_in_its_place(error.name or name)
            raise InvalidInput(
                where,
                "a module that can be imported",
                f"{name} ({self._line_of(error)}no module named {missing})",
                f"Put {missing.replace('.', '/')}.py beside the file, or install its package.",
            ) from None
        except Exception as error:  # whatever a module does when it is imported
            raise InvalidInput(
                where,
                "a module that can be imported",
                f"{name} ({self._line_of(error)}{type(error).__name__}: {error})",
                "Correct the module.",
            ) from error

    def _line_of(self, error: Exception) -> str:
        """Return where in a module beside the file something went wrong, if it was there."""
        paths = {source.path for source in self.place.sources.values()}
        lines = [
            f"{Path(frame.filename).name}, line {frame.lineno}, "
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename in paths
        ]
        return lines[-1] if lines else ""
