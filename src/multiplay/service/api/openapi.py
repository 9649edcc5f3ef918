"""The OpenAPI document, made from the table of operations."""

from __future__ import annotations

import inspect
from functools import cache
from http import HTTPStatus
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from multiplay.service.api.class_schemas import REF, of_classes
from multiplay.service.api.models import Problem
from multiplay.service.api.routes import OPERATIONS
from multiplay.service.api.routing import JSON, Operation
from multiplay.version import __version__

PROBLEM = {"application/problem+json": {"schema": {"$ref": REF.format(model="Problem")}}}
ERRORS = {
    400: "The request cannot be parsed: it is not JSON, or a field is missing, unknown or invalid.",
    401: "The API key is missing or not valid (unknown, revoked or expired).",
    403: "The API key lacks the permission.",
    404: "The study or the play does not exist.",
    408: "The body was sent too slowly.",
    409: "The request contradicts an earlier one.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "The content cannot be used: what was expected, what was given, and what to do.",
    431: "The headers, with the URL, are too large.",
    503: "The store is not available, or there are too many requests. Try again.",
}
ERROR_RESPONSES: dict[str, dict[str, Any]] = {
    f"{status}": {"description": text, "content": PROBLEM} for status, text in ERRORS.items()
}
ERROR_RESPONSES["401"]["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
ERROR_RESPONSES["503"]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
NOT_MODIFIED = {"description": "Not modified since your ETag."}
KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key, created by `multiplay key create`. Not needed as long as the store "
    "has no key.",
}
STUDY = {
    "name": "study",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1},
    "description": "The name of the study.",
}
PLAY = {
    "name": "play",
    "in": "path",
    "required": True,
    "schema": {"type": ["integer", "string"], "minLength": 1},
    "description": "The id of the play, or its key. A text of digits is an id if such a play "
    "exists, and otherwise a key.",
}
NO_NUL = r"^[^\x00]*$"
IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "The ETag of an earlier response.",
}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": r"^[\x21-\x7e]+$"},
    "description": "A request that is repeated with the same key changes nothing, and has the same "
    "response. Use a new random text for every new request.",
}
ABOUT = """
Decide how many units of each arm to use, round after round, when the costs are unknown.

Create a study with a set of possible plans. In every round, `ask` for a plan; when the costs are
known, `tell` them. The study learns from them. Every response is durable.

Send your API key with every request: `Authorization: Bearer mp_...`. Give every request that
changes something an `Idempotency-Key`; then it can be repeated safely when a response was lost.
"""


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "multiplay",
            "description": ABOUT.strip(),
            "license": {"name": "MIT"},
            "version": __version__,
        },
        "paths": paths,
        "components": {"schemas": _schemas(), "securitySchemes": {"key": KEY}},
    }


def _schemas() -> dict[str, Any]:
    """Return the schemas of all bodies and responses."""
    models: dict[type[BaseModel], Literal["validation", "serialization"]] = {}
    for operation in OPERATIONS:
        if operation.body is not None:
            models[operation.body] = "validation"
        if operation.answer is not None:
            models[operation.answer] = "serialization"
    models[Problem] = "serialization"
    _, found = models_json_schema([*models.items()], ref_template=REF)
    schemas: dict[str, Any] = found["$defs"] | of_classes()
    return {name: _without_nul(schemas[name]) for name in sorted(schemas)}


def _without_nul(schema: Any) -> Any:
    """Return a schema that says, there and within, that texts and names have no NUL characters.

    ``strict_json`` refuses them.
    """
    if isinstance(schema, list):
        return [_without_nul(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    whole = {key: one if key == "examples" else _without_nul(one) for key, one in schema.items()}
    types = schema.get("type")
    if not isinstance(types, str | list):  # a property of this name
        return whole
    if "string" in types and not {"pattern", "enum", "const"} & schema.keys():
        whole["pattern"] = NO_NUL
    if "object" in types and schema.get("additionalProperties", True) is not False:
        whole.setdefault("propertyNames", {"pattern": NO_NUL})
    return whole


def _described(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "tags": [operation.tag],
        "summary": operation.name.replace("_", " ").capitalize(),
        "description": inspect.getdoc(operation.handler),
        "operationId": operation.name,
        "parameters": _parameters(operation),
        "responses": _responses(operation),
        "security": [{"key": []}, {}],
    }
    if operation.body is not None:
        schema: dict[str, Any] = {"$ref": REF.format(model=operation.body.__name__)}
        if not operation.body_required:
            schema = {"anyOf": [schema, {"type": "null"}]}
        described["requestBody"] = {"content": {JSON: {"schema": schema}}}
        if operation.body_required:
            described["requestBody"]["required"] = True
    return described


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    found = [one for one in (STUDY, PLAY) if f"{{{one['name']}}}" in operation.path]
    if operation.etag:
        found.append(IF_NONE_MATCH)
    if operation.idempotency_key:
        found.append(IDEMPOTENCY_KEY)
    if operation.query is not None:
        schema = operation.query.model_json_schema()
        for name, given in schema["properties"].items():
            is_required = name in schema.get("required", ())
            one = {"name": name, "in": "query", "required": is_required, "schema": given}
            found.append({**one, "description": given["description"]})
    return found


def _responses(operation: Operation) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": HTTPStatus(operation.status).phrase}
    if operation.answer is not None:
        schema = {"$ref": REF.format(model=operation.answer.__name__)}
        answer["content"] = {JSON: {"schema": schema}}
    found = {f"{operation.status}": answer, **ERROR_RESPONSES, **operation.responses}
    return {**found, "304": NOT_MODIFIED} if operation.etag else found
