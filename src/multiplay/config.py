"""Objects as plain data and back: what was run is written down beside what came out."""

import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from multiplay.errors import InvalidInput


def settings(thing: object) -> dict[str, Any]:
    """Return the arguments that build ``thing``: each is kept as an attribute of the same name."""
    return {name: getattr(thing, name) for name in inspect.signature(type(thing)).parameters}


def to_plain(thing: Any) -> Any:
    """Return ``thing`` as dicts, lists, strings and numbers.

    Examples
    --------
    >>> from multiplay import Duplicated, GenCTS
    >>> to_plain(Duplicated(GenCTS()))
    {'type': 'Duplicated', 'policy': {'type': 'GenCTS'}}
    """
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, np.ndarray | np.generic):
        return thing.tolist()
    if isinstance(thing, Mapping):
        return {str(key): to_plain(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [to_plain(value) for value in thing]
    if inspect.isroutine(thing):
        return {"type": "function", "name": thing.__qualname__}
    return {"type": type(thing).__name__, **to_plain(settings(thing))}


def from_plain(plain: Any, modules: tuple[ModuleType, ...]) -> Any:
    """Build what ``to_plain`` wrote, from the classes that ``modules`` export."""
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
    raise InvalidInput(
        "type",
        "a class of multiplay",
        repr(plain["type"]),
        "Pass your own object when loading, for example load(path, policy=...).",
    )
