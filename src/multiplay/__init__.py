"""Learn how many of everything to use, when the cost of a unit is unknown."""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from multiplay.version import __version__ as __version__


def _modules_by_name() -> dict[str, str]:
    """Return the module of each public name, as ``__init__.pyi`` declares it."""
    declared = ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8"))
    imports = [node for node in declared.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in imports for alias in node.names}


# Public names are imported on first use: numba and scipy take long to load, and a client of a
# service or a help text needs neither.
_MODULES = _modules_by_name()
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES and _MODULES[name] != __name__:
        found = getattr(import_module(_MODULES[name]), name)
    elif not name.startswith("_") and find_spec(f"{__name__}.{name}"):
        found = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
