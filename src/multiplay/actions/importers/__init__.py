"""Importers of optimisation models: from the objects of other libraries, and from MPS files."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from multiplay.actions.importers.selection import ImportedModel, settings
from multiplay.errors import InvalidInput

# By the root module of a type: the module of the importer, and its function.
READERS = {
    "pulp": ("libraries", "from_pulp"),
    "pyomo": ("libraries", "from_pyomo"),
    "cvxpy": ("libraries", "from_cvxpy"),
    "linopy": ("libraries", "from_linopy"),
    "mip": ("libraries", "from_mip"),
    "highspy": ("libraries", "from_highspy"),
    "ortools": ("ortools_models", "from_ortools"),
}


def imported(thing: Any, arms: Any, known: str | None, sense: str | None) -> dict[str, Any]:
    """Return the settings of a ``Model`` for a model of another library, or an MPS file."""
    return settings(read(thing), arms, known, sense)


def read(thing: Any) -> ImportedModel:
    """Return the columns and rows of a model of another library, or of an MPS file."""
    if isinstance(thing, str | os.PathLike):
        from multiplay.actions.importers.mps import read_file

        return read_file(thing)
    if not isinstance(thing, type):
        for kind in type(thing).__mro__:
            found = READERS.get(kind.__module__.partition(".")[0])
            if found is not None:
                module = import_module(f"multiplay.actions.importers.{found[0]}")
                reader: Callable[[Any], ImportedModel] = getattr(module, found[1])
                try:
                    return reader(thing)
                except AttributeError as error:  # a variable, a constraint or a solver
                    raise _no_model(thing) from error
    raise _no_model(thing)


def _no_model(thing: Any) -> InvalidInput:
    return InvalidInput(
        "thing",
        f"a model of {', '.join(READERS)}, or the path of an MPS file",
        repr(thing)[:60],
        "Give the model itself, or write it to an MPS file and give its path.",
    )
