"""Models of responses, made from the fields of result classes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from inspect import getdoc
from typing import Annotated, Any, Literal, get_args, get_origin

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, create_model
from pydantic_core import CoreSchema

from multiplay.constraints import Constraint
from multiplay.service.api.class_schemas import of_class
from multiplay.studies.results import ResultField, fields_of, is_optional, is_result, without_none
from multiplay.studies.wire import KINDS
from multiplay.types import Note

MODELS: dict[type, type[BaseModel]] = {}  # of result classes


class Shown:
    """In a model, ``Annotated[Estimate, Shown]`` is a result as it is shown."""

    @classmethod
    def __get_pydantic_core_schema__(cls, kind: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(model_of(kind))


def response_of(
    kind: type,
    config: ConfigDict | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
) -> type[BaseModel]:
    """Return the model of a result class; by default with its name and the line that describes it.

    Examples
    --------
    >>> from multiplay.learner.plays import Remaining
    >>> response_of(Remaining)(since=12, units=9)
    Remaining(since=12, units=9)
    """
    made: Any = {
        one.name: (_type_of(one), Field(description=_described(one))) for one in fields_of(kind)
    }
    about = description or (getdoc(kind) or "").partition("\n")[0]
    made |= {"__config__": config, "__doc__": about}
    MODELS[kind] = create_model(name or kind.__name__, **made)
    return MODELS[kind]


def model_of(kind: type) -> type[BaseModel]:
    """Return the model of a result class that was made, or a new one."""
    return MODELS.get(kind) or response_of(kind)


def _described(field: ResultField) -> str | None:
    return next((note for note in field.notes if isinstance(note, str)), None)


def _type_of(field: ResultField) -> Any:
    """Return the type of a field in a model."""
    values = [note for note in field.notes if get_origin(note) is Literal]
    found = values[0] if values else _json_type(without_none(field.type))
    may_be_null = is_optional(field.type) or Note.UNKNOWN_IS_NAN in field.notes
    return found | None if may_be_null else found


def _json_type(kind: Any) -> Any:
    """Return the type of JSON that a type becomes."""
    origin, parts = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Constraint):
        names = [name for name, one in KINDS.items() if issubclass(one, kind)]
        return Annotated[dict[str, Any], Field(json_schema_extra=of_class(names))]
    if is_result(kind):
        return model_of(kind)
    if origin is np.ndarray:
        return list[int]
    if origin is tuple:
        return list[_json_type(parts[0])]  # type: ignore[misc]
    if origin is Mapping:
        return dict[parts]  # type: ignore[misc, valid-type]
    return str if kind is datetime else kind
