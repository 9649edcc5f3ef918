"""Objects as plain data: descriptions of configurations, and packed objects.

``describe`` records a configuration beside its result, with large arrays by their digests. ``pack``
loses nothing: ``unpack`` builds the same object again.
"""

import hashlib
import inspect
import json
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multiplay._support.builder import Builder, arguments_of, errors_below
from multiplay._support.user_modules import name_in_folder
from multiplay.errors import InvalidInput
from multiplay.types import Arrays

SHORT_LIST = 8
LEAVES = {type(None), bool, int, float, str}
CONTAINERS = {"array", "tuple", "mapping"}  # packed under these names, beside the classes
WITHOUT_ARRAYS: dict[str, Any] = {  # builders of containers without arrays
    "tuple": lambda items: tuple(items),
    "mapping": lambda keys, values: dict(zip(keys, values, strict=True)),
}
ADDED = {"Transport": ("surplus", "slack")}  # a setting, and the older one that included it
OLDER: dict[str, dict[str, Any]] = {  # settings that came later, with what was done before
    "FeatureCTS": {"draws": True, "priors": 1},
    "FeatureModel": {"priors": 1},
}
FORMER = {"Changing": "TimeVarying"}  # classes by their names in older versions
MEMORIES = {"follow": {"type": "Changes"}, "ignore": None}  # of the setting "change"
RENAMED_SETTINGS: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {  # names, and values, of 0.9
    "GenCTS": {"units": ("unit_means", {})},
    "BootstrapCTS": {"change": ("memory", MEMORIES), "units": ("unit_means", {})},
    "FeatureCTS": {"change": ("memory", MEMORIES)},
}
NO_VALUES: dict[str, Any] = {}
LARGE = 100_000  # numbers; a larger array is recorded by its shape and digest


def settings(thing: object) -> dict[str, Any]:
    """Return the arguments that build ``thing``: each is kept as an attribute of the same name."""
    try:
        kind: Any = type(thing)
        names = _arguments(kind)
    except ValueError:  # a class that is not written in Python
        raise InvalidInput(
            type(thing).__name__, "plain data", f"{thing!r}", "Give numbers, text or lists."
        ) from None
    for name in names:
        if not hasattr(thing, name):
            raise InvalidInput(
                type(thing).__name__,
                f"the argument {name!r} as an attribute of the same name",
                "none",
                f"Write self.{name} = {name} in __init__: settings are read from attributes.",
            )
    return {name: getattr(thing, name) for name in names}


@lru_cache(maxsize=256)
def _arguments(kind: type) -> tuple[str, ...]:
    """Return the names of the arguments that build an object of this class."""
    return tuple(arguments_of(kind))


def describe(thing: Any) -> Any:
    """Return ``thing`` as dicts, lists, strings and numbers, large arrays by their digest.

    Examples
    --------
    >>> from multiplay import Duplicated, Hybrid
    >>> describe(Duplicated(Hybrid()))
    {'type': 'Duplicated', 'policy': {'type': 'Hybrid', 'gamma': 1.0}}
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
    return {"type": type_name(type(thing)), **describe(settings(thing))}


def _digest(array: NDArray[Any]) -> dict[str, Any]:
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return {"type": "array", "shape": list(array.shape), "sha256": digest}


def type_name(kind: type) -> str:
    """Return the name of a class of multiplay, or "module.Class" for a user class."""
    ours = kind.__module__.split(".")[0] == __name__.split(".")[0]
    return kind.__name__ if ours else f"{name_in_folder(kind.__module__)}.{kind.__qualname__}"


def pack(thing: Any, where: str = "thing") -> tuple[Any, Arrays]:
    """Return ``thing`` as plain data, with its arrays apart; nothing is lost.

    A class that is not multiplay's own is packed by its name and settings, and only a process
    that has the class can unpack it. Functions, and objects that do not keep their settings as
    attributes, are refused; ``where`` is the name of the object in errors. Mappings become dicts.

    Examples
    --------
    >>> from multiplay import Budget
    >>> header, arrays = pack(Budget(2, [1, 1, 3]))
    >>> header["type"], header["caps"], arrays["0"]
    ('Budget', {'type': 'array', 'name': '0'}, array([1, 1, 3]))
    """
    arrays: Arrays = {}
    return _pack(where, thing, arrays), arrays


def unpack(header: Any, arrays: Arrays, builder: Builder) -> Any:
    """Return the object that was packed, built from the classes of ``builder``.

    What an older version packed keeps its meaning; see ``completed``.

    Examples
    --------
    >>> from multiplay import Budget, actions
    >>> from multiplay._support.builder import classes_of
    >>> unpack(*pack(Budget(2, [1, 1, 3])), Builder(classes_of(actions))).caps
    array([1, 1, 3])
    """
    array: Any = {"array": lambda name: arrays[name][()]}  # a number, if it was one
    own = _Unpacker({**builder.classes, **WITHOUT_ARRAYS, **array})
    return own.build("header", completed(header))


class _Unpacker(Builder):
    """Builder of packed data: lists and tuples without objects are copied as a whole."""

    def build(self, where: str, plain: Any, wanted: type = object) -> Any:
        """Build packed data."""
        if _is_flat(plain):
            return list(plain) if type(plain) is list else tuple(plain["items"])
        return super().build(where, plain, wanted)


def _is_flat(header: Any) -> bool:
    """Return whether packed data are a list or a tuple of numbers and texts, such as an arc."""
    if type(header) is dict and header.get("type") == "tuple":
        header = header.get("items")
    return type(header) is list and LEAVES.issuperset(map(type, header))


def completed(header: Any) -> Any:
    """Return packed data of any version as this one writes them: with all settings and new names.

    All settings are packed, so one that is missing is newer than the data. ``slack`` of a transport
    set once allowed more than the demand, which is ``surplus`` now. A model of features that was
    packed has ``effects``; a table by hand may leave it out, and has the defaults of this version.

    Examples
    --------
    >>> completed({"type": "Transport", "slack": True})
    {'type': 'Transport', 'slack': True, 'surplus': True}
    >>> completed({"type": "Transport", "slack": True, "surplus": False})["surplus"]
    False
    >>> completed({"type": "Changing", "sets": []})
    {'type': 'TimeVarying', 'sets': []}
    >>> completed({"type": "BootstrapCTS", "change": "follow", "units": None})
    {'type': 'BootstrapCTS', 'memory': {'type': 'Changes'}, 'unit_means': None}
    >>> old = {"type": "SwitchingCost", "policy": {"type": "GenCTS"}, "change": 0.1}
    >>> completed(old)["constraints"]
    [{'type': 'SwitchingCost', 'cost': 0.1}]
    """
    if _is_flat(header):
        return header
    if isinstance(header, list):
        return [completed(value) for value in header]
    if not isinstance(header, dict):
        return header
    full = _renamed({key: completed(value) for key, value in header.items()})
    new, old = ADDED.get(str(header.get("type")), (None, None))
    if new is not None and new not in full:
        full[new] = full.get(old, False)
    if "effects" in full:
        full = _with_older(full)
    return _constrained(full) if "policy" in full else full


def _with_older(full: dict[str, Any]) -> dict[str, Any]:
    """Return a packed model of features with the settings that came after it was packed."""
    found = OLDER.get(str(full.get("type")), {}) | full
    if found.get("draws") and found.get("optimism") is not None:
        found["draws"] = False
    return found


def _constrained(full: dict[str, Any]) -> dict[str, Any]:
    """Return a policy of 0.9 with a constraint of its own as ``Constrained``."""
    if full.get("type") == "Conservative":
        names = {"baseline": "rule", "allowance": "allowance", "sure": "sure", "per": "per"}
        given = {new: full[old] for old, new in names.items() if old in full}
        one = {"type": "Baseline", "rule": {"type": "InProportion"}} | given
    elif full.get("type") == "SwitchingCost":
        one = {"type": "SwitchingCost", "cost": full.get("change", 0.05)}
    else:
        return full
    return {"type": "Constrained", "policy": full["policy"], "constraints": [one]}


def _renamed(plain: dict[Any, Any]) -> dict[Any, Any]:
    """Return the plain data of one object with new names of its class and of its settings."""
    if "type" not in plain:
        return plain
    kind = str(plain["type"])
    settings, found = RENAMED_SETTINGS.get(kind, {}), {}
    for key, value in plain.items():
        name, values = settings.get(key, (key, NO_VALUES))
        found[name] = values.get(value, value) if isinstance(value, str) else value
    return found | {"type": FORMER.get(kind, plain["type"])}


def comparable(header: Any) -> Any:
    """Return packed data without the settings that are None or False, to compare it.

    Tuples are lists there. A class may get a new argument that is None or False by default: objects
    that were packed before and after that then compare equal.

    Examples
    --------
    >>> comparable({"type": "Budget", "total": 2, "names": None})
    {'type': 'Budget', 'total': 2}
    """
    if _is_flat(header):
        return header
    if isinstance(header, list):
        return [comparable(value) for value in header]
    if not isinstance(header, dict):
        return header
    if header.get("type") == "tuple":
        return [comparable(value) for value in header["items"]]
    is_object = "type" in header
    return {
        key: comparable(value)
        for key, value in header.items()
        if not (is_object and (value is None or value is False))
    }


def types_in(header: Any) -> set[str]:
    """Return the names of all classes in plain data, ``CONTAINERS`` among them."""
    if isinstance(header, list):
        return {name for value in header for name in types_in(value)}
    if not isinstance(header, dict):
        return set()
    own = {str(header["type"])} if "type" in header else set()
    return own.union(*map(types_in, header.values()))


def _pack(where: str, thing: Any, arrays: Arrays) -> Any:
    if _is_plain_array(thing):
        name = str(len(arrays))
        arrays[name] = np.asarray(thing)
        return {"type": "array", "name": name}
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if type(thing) is list:
        if all(type(value) in LEAVES for value in thing):  # such as the names of many thousand arms
            return list(thing)
        return [_pack(f"{where}[{i}]", value, arrays) for i, value in enumerate(thing)]
    if type(thing) is tuple:
        return {"type": "tuple", "items": _pack(where, list(thing), arrays)}
    if isinstance(thing, Mapping):
        if "type" not in thing and all(type(key) is str for key in thing):
            return {key: _pack(f"{where}.{key}", value, arrays) for key, value in thing.items()}
        keys, values = list(thing), list(thing.values())
        return {"type": "mapping", **_pack(where, {"keys": keys, "values": values}, arrays)}
    if inspect.isroutine(thing) or isinstance(thing, type | np.ndarray):
        raise InvalidInput(
            where,
            "numbers, text, lists, or objects that keep their settings",
            f"{thing!r}",
            "Write a function as a method of a class of your own, and convert arrays to numbers.",
        )
    with errors_below(where):
        arguments = settings(thing)
    if "type" in arguments:
        hint = "Rename the argument: files use this key for the class."
        raise InvalidInput(where, "an argument with a different name", "'type'", hint)
    return {"type": type_name(type(thing)), **_pack(where, arguments, arrays)}


def _is_plain_array(thing: object) -> bool:
    """Return whether this is an array, or a numpy number, that an array file can hold."""
    if isinstance(thing, np.ma.MaskedArray):
        return False
    return isinstance(thing, np.ndarray | np.generic) and not thing.dtype.hasobject


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
            if isinstance(flat[0], dict):
                return f"{len(flat)} of {', '.join(sorted(types_in(flat)))}"
            kind = "names" if isinstance(flat[0], str) else "numbers"
            return f"{' by '.join(map(str, shape))} {kind}"
        return f"[{', '.join(map(brief, plain))}]"
    return str(plain)


def _shape(values: list[Any]) -> tuple[list[int], list[Any]]:
    """Return the shape of nested lists, and their items; ragged lists count as items."""
    shape, flat = [len(values)], values
    while flat and all(isinstance(v, list) and len(v) == len(flat[0]) for v in flat):
        shape.append(len(flat[0]))
        flat = [value for part in flat for value in part]
    return shape, flat


def number_or_none(value: float) -> float | None:
    """Return a number for JSON: None where it is not finite."""
    return value if math.isfinite(value) else None


def number_or_nan(value: float | None) -> float:
    """Return what ``number_or_none`` was given: NaN for None."""
    return math.nan if value is None else float(value)


def with_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Return arrays with a prefix before their names."""
    return {prefix + name: array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays whose names have a prefix, without the prefix."""
    return {k.removeprefix(prefix): array for k, array in arrays.items() if k.startswith(prefix)}


def set_digest(plain: Any, arrays: Arrays) -> bytes:
    """Return a digest of 16 bytes of a packed set."""
    digest = hashlib.blake2b(json.dumps(comparable(plain)).encode(), digest_size=16)
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.digest()
