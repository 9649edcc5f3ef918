"""JSON schemas of objects that name a class of multiplay, made from the arguments of the class.

They say what can be said of one argument by itself: whether it is needed, its types, its words, and
that numbers are not negative. The class checks the rest when it is built.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from numpy.typing import ArrayLike

from multiplay.actions import Rule
from multiplay.actions.base import SENSES
from multiplay.constraints.baseline import EACH_DAY, WEEK
from multiplay.features.columns import Column
from multiplay.policies import Policy
from multiplay.policies.exploration import EXPLORATIONS
from multiplay.policies.genlbinfv import INITIALS, PREDICTIONS
from multiplay.policies.index import PARTS_OF_POLICIES
from multiplay.service.studies.limits import PARTS, POLICIES, RULES, SETS
from multiplay.studies.wire import FEATURES, KINDS

REF = "#/components/schemas/{model}"
CLASSES: dict[str, Any] = {**SETS, **POLICIES, **PARTS, **RULES, **FEATURES, **KINDS}
ARRAY_LIKE = frozenset(get_args(ArrayLike))  # among them texts, which no argument takes
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}
ENTRY = {"type": ["number", "string", "boolean", "null"]}
ROW = {"type": "array", "items": ENTRY}
LIST = {"type": "array", "items": {"anyOf": [ENTRY, ROW]}}  # of numbers, names, pairs or rows
WORDS: dict[str, tuple[str, ...]] = {  # of arguments that are a text, by their name
    "sense": tuple(SENSES),
    "replan": ("rarely",),
    "unit_means": ("ordered",),
    "prediction": PREDICTIONS,
    "initial": INITIALS,
    "exploration": EXPLORATIONS,
    "rule": (EACH_DAY,),
    "per": (WEEK,),
}
SIGNED = {"constant", "centre", "source", "target"}  # numbers that may be negative
COMPUTED = {"n"}  # arguments that the service computes


def of_class(names: Iterable[str]) -> dict[str, Any]:
    """Return the schema of an object that one of these classes makes from its arguments."""
    return {"anyOf": [{"$ref": REF.format(model=name)} for name in sorted(names)]}


def of_classes() -> dict[str, Any]:
    """Return the schemas of all classes by name, to which those of bodies refer."""
    return {name: of_one_class(name, kind) for name, kind in CLASSES.items()}


def of_one_class(name: str, kind: type) -> dict[str, Any]:
    """Return the schema of an object of one class."""
    given = inspect.signature(kind, eval_str=True).parameters.values()
    arguments = [one for one in given if one.kind is not one.VAR_KEYWORD]
    needed = [one.name for one in arguments if one.default is one.empty]
    return {
        "type": "object",
        "title": name,
        "properties": {
            "type": {"const": name},
            **{one.name: _of_argument(one.name, one.annotation) for one in arguments},
        },
        "required": ["type", *needed],
        "additionalProperties": False,
    }


def _of_argument(name: str, annotation: Any) -> dict[str, Any]:
    if name in COMPUTED:
        return {"type": "null"}
    schemas = {str(one["type"]): one for one in _schemas_of(annotation)}
    for kind in ("integer", "number"):
        if kind in schemas and name not in SIGNED:
            schemas[kind] = {"type": kind, "minimum": 0}
    if "string" in schemas and name in WORDS:
        schemas["string"] = {"type": "string", "enum": [*WORDS[name]]}
    found = [*schemas.values()]
    return found[0] if len(found) == 1 else {"anyOf": found}


def _schemas_of(annotation: Any) -> Iterator[dict[str, Any]]:
    """Yield the schemas of the types of an annotation; arrays of numpy are lists."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation in TYPES:
        yield {"type": TYPES[annotation]}
    elif origin in (Union, UnionType):
        is_array = ARRAY_LIKE.issubset(parts)
        for part in parts:
            if not (is_array and part in ARRAY_LIKE):
                yield from _schemas_of(part)
        if is_array:
            yield LIST
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        yield _of_mapping(*parts)
    elif annotation is Column:
        yield {"type": "object", **of_class(one for one in FEATURES if one != "Features")}
    elif annotation in PARTS_OF_POLICIES:
        fits = (name for name, kind in PARTS.items() if issubclass(kind, annotation))
        yield {"type": "object", **of_class(fits)}
    elif annotation is Policy:
        yield {"type": "object"}
    elif annotation is Rule:
        yield {"type": "object", **of_class(RULES)}
    else:
        yield LIST


def _of_mapping(key: Any, value: Any) -> dict[str, Any]:
    """Return the schema of a mapping; one by names is not empty, and its units are not negative."""
    values = LIST if value is Any else next(_schemas_of(value))
    if key is not str:
        return {"type": "object", "additionalProperties": values}
    if value is int:
        values = {**values, "minimum": 0}
    return {"type": "object", "additionalProperties": values, "minProperties": 1}
