"""Schemas of the bodies and queries of requests, made from the arguments of commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType, new_class
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from multiplay.service.api import models
from multiplay.service.studies.limits import MOST_AHEAD
from multiplay.studies.commands.base import OF_PLAY, AnyCommand, Argument, Command

NOTHING: Mapping[str, Any] = MappingProxyType({})
# The type of each kind of argument.
TYPES: dict[str, Any] = {
    "text": models.Text,
    "flag": bool,
    "set": models.Set,
    "sets": Annotated[list[models.Set], Field(max_length=MOST_AHEAD)],
    "units": models.UnitsByArm,
    "units by arm": dict[str, models.Units],
    "arms": list[str],
    "arm": str,
    "features": models.Features,
    "features by arm": models.FeaturesByArm,
    "losses": models.LossesByArm,
    "missing": models.Missing,
    "time limit": models.Seconds,
    "age": Annotated[float, Field(ge=0, le=1e12)],
    "round": models.Round,
    "first round": Annotated[models.Round, Field(json_schema_extra={"minimum": 1})],
    "loss range": models.Range | None,
    "word": models.Word,
    "currency": models.CurrencyWord,
    "constraint": models.Constraint,
    "rule": models.Rule | None,
    "versus": models.Versus,
    "level": models.Level,
    "effects by": Literal["feature", "arm"],
    "day": models.Day,
    "method": Literal["model", "dr", "ips"],
}
# Schemas by name: several verbs may share one.
BODIES: dict[str, type[BaseModel]] = {"Table": models.Table, "TableRows": models.TableRows}
OF_VERBS: dict[str, Any] = {"key": models.KeyText | None, "at": models.When | None}


def annotations_of(command: type[AnyCommand]) -> dict[str, Any]:
    """Return the types of the query and of the body of the operation of a command."""
    http, arguments = command.http, command.body_arguments()
    found: dict[str, Any] = {}
    if http.path.startswith(OF_PLAY):
        found["query"] = models.PlayQuery
    elif http.method == "GET" and arguments:
        found["query"] = _model(command.verb, BaseModel, arguments)
    if http.body:
        body = BODIES.get(http.body)
        if body is None:
            labels = OF_VERBS if issubclass(command, Command) else {}
            own = {
                "__doc__": http.about,
                "model_config": models.example(*http.rules, **http.example),
                **dict.fromkeys(labels),
            }
            body = BODIES[http.body] = _model(http.body, models.Body, arguments, labels, own)
        found["body"] = body | None if http.optional else body
    return found


def _model(
    name: str,
    base: type[BaseModel],
    arguments: Iterable[Argument],
    types: Mapping[str, Any] = NOTHING,
    own: Mapping[str, Any] = NOTHING,
) -> type[BaseModel]:
    """Return a schema with a field for each argument, and others by their types and values."""
    fields = {one.json_name: _field(one) for one in arguments}
    annotations = {**{name: one[0] for name, one in fields.items()}, **types}
    values = {**{name: one[1] for name, one in fields.items()}, **own}
    content = {"__module__": __name__, "__annotations__": annotations, **values}
    made: type[BaseModel] = new_class(name, (base,), exec_body=lambda own: own.update(content))
    return made


def _field(one: Argument) -> tuple[Any, Any]:
    """Return the type of a field, and its default and description."""
    kind = TYPES[one.kind.name]
    about: dict[str, Any] = {"description": one.description} if one.description else {}
    if one.required:
        return kind, Field(**about)
    default = [] if one.default == () else one.default
    return kind | None if default is None else kind, Field(default=default, **about)
