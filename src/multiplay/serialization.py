"""Objects as plain data and back: what was run is written down beside what came out."""

import hashlib
import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multiplay.errors import InvalidInput
from multiplay.modules import name_in_its_place


class UnknownType(Exception):
    """A name that no class of multiplay has."""


SHORT_LIST = 8
LARGE = 100_000  # numbers; a larger array is written down by its shape and digest


def settings(thing: object) -> dict[str, Any]:
    """Return the arguments that build ``thing``: each is kept as an attribute of the same name."""
    names = inspect.signature(type(thing)).parameters
    for name in names:
        if not hasattr(thing, name):
            raise InvalidInput(
                type(thing).__name__,
                f"the argument {name!r} as an attribute of the same name",
                "none",
                "Results keep the settings of everything that made them.",
            )
    return {name: getattr(thing, name) for name in names}


def describe(thing: Any) -> Any:
    """Return ``thing`` as dicts, lists, strings and numbers.

    Examples
    --------
    >>> from multiplay import Duplicated, GenCTS
    >>> describe(Duplicated(GenCTS()))
    {'type': 'Duplicated', 'policy': {'type': 'GenCTS'}}
    """
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, np.ndarray | np.generic):
        return thing.tolist() if thing.size <= LARGE else _digest(np.asarray(thing))
    if isinstance(thing, Mapping):
        return {str(key): describe(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [describe(value) for value in thing]
    if callable(thing):
        return {"type": "function", "name": getattr(thing, "__qualname__", type(thing).__name__)}
    return {"type": _type_name(type(thing)), **describe(settings(thing))}


def _digest(array: NDArray[Any]) -> dict[str, Any]:
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return {"type": "array", "shape": list(array.shape), "sha256": digest}


def _type_name(kind: type) -> str:
    """Return a name that cannot be taken for one of ours if the class is somebody else's."""
    ours = kind.__module__.split(".")[0] == __name__.split(".")[0]
    return kind.__name__ if ours else f"{name_in_its_place(kind.__module__)}.{kind.__qualname__}"


def from_plain(plain: Any, modules: tuple[ModuleType, ...]) -> Any:
    """Build what ``describe`` wrote, from the classes that ``modules`` export."""
    if isinstance(plain, list):
        return [from_plain(value, modules) for value in plain]
    if not isinstance(plain, dict):
        return plain
    arguments = {key: from_plain(value, modules) for key, value in plain.items() if key != "type"}
    if "type" not in plain:
        return arguments
    for module in modules:
        if plain["type"] in module.__all__:
            return getattr(module, plain["type"])(**arguments)
    raise UnknownType(plain["type"])


def brief(plain: Any) -> str:
    """Return plain data in one line, with large arrays by their shapes.

    Examples
    --------
    >>> brief({"type": "Budget", "total": 2, "caps": [1, 1, 3], "names": None})
    'Budget(total=2, caps=[1, 1, 3])'
    >>> brief(list(range(100))), brief([[0.0, 0.0], [0.0, 0.0]])
    ('100 numbers', '0.0')
    """
    if isinstance(plain, dict):
        items = [f"{k}={brief(v)}" for k, v in plain.items() if k != "type" and v is not None]
        return f"{plain.get('type', '')}({', '.join(items)})"
    if isinstance(plain, list):
        shape, flat = _shape(plain)
        if len(shape) > 1 and len(set(map(str, flat))) == 1:
            return str(flat[0])
        if len(flat) > SHORT_LIST or len(shape) > 1:
            kind = "names" if isinstance(flat[0], str) else "numbers"
            return f"{' by '.join(map(str, shape))} {kind}"
        return f"[{', '.join(map(brief, plain))}]"
    return str(plain)


def _shape(values: list[Any]) -> tuple[list[int], list[Any]]:
    """Return the shape of nested lists, and what is in them; ragged ones are taken as they are."""
    shape, flat = [len(values)], values
    while flat and all(isinstance(v, list) and len(v) == len(flat[0]) for v in flat):
        shape.append(len(flat[0]))
        flat = [value for part in flat for value in part]
    return shape, flat
