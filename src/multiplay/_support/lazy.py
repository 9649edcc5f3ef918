"""Lazy imports: the public names of a package, imported on first use."""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose stub file declares its names.

    The stub, ``__init__.pyi``, imports each of them as ``Name as Name``, or all names of a package
    with a stub of its own by ``*``.
    """
    modules = _declared(package, file)
    names = sorted(modules)

    def find(name: str) -> Any:
        from multiplay._support.renamed import RENAMED
        from multiplay._support.suggestions import suggest_arguments, suggestion

        if name == "__all__":
            found: Any = names
        elif name in modules and modules[name] != package:
            found = getattr(import_module(modules[name]), name)
            if isinstance(found, type):
                suggest_arguments(found)
        elif not name.startswith("_") and find_spec(f"{package}.{name}"):
            found = import_module(f"{package}.{name}")
        else:
            near = "" if name.startswith("_") else suggestion(name, names)
            message = f"module {package!r} has no attribute {name!r}."
            if hint := RENAMED["multiplay"].get(name):
                near = f" {hint}"
                if _is_imported():  # an AttributeError would lose its message
                    raise ImportError(message + near, name=name)
            raise AttributeError(f"{message}{near}" if near else message.removesuffix("."))
        setattr(sys.modules[package], name, found)
        return found

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names})

    return find, listed


def _is_imported() -> bool:
    """Return whether the name is read by a statement ``from package import name``."""
    from inspect import currentframe  # errors are rare
    from opcode import opmap

    frame = currentframe()
    for _ in range(2):  # of this function, and of __getattr__
        frame = frame.f_back if frame is not None else None
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


def _declared(package: str, file: str) -> dict[str, str]:
    """Return the public names of a package, and the module that each is imported from."""
    modules, module = dict[str, str](), ""
    with open(f"{file.removesuffix('.py')}.pyi", encoding="utf-8") as stub:
        for line in stub:  # not by ``ast``, whose import would take most of the time
            if line.startswith("from "):
                module = line.split()[1]
            if line.endswith(" import *\n"):
                below = "/".join([*module.split(".")[package.count(".") + 1 :], "__init__.py"])
                names = _declared(module, file.removesuffix("__init__.py") + below)
                modules |= dict.fromkeys(names, module)
            for part in line.split(","):
                if " as " in part:
                    modules[part.rpartition(" as ")[2].strip()] = module
    return modules
