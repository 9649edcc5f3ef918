"""API reference page: the operations of the OpenAPI document, each with a shell command."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

UNTAGGED = "More"
EXAMPLES = {"study": "lanes", "play": "1"}  # in paths


class Parameter(NamedTuple):
    """A parameter of an operation."""

    name: str
    place: str
    required: bool
    words: str


class BodyField(NamedTuple):
    """A field of the body of a request."""

    name: str
    type: str
    required: bool
    words: str


class Operation(NamedTuple):
    """An operation as text."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    parameters: list[Parameter]
    fields: list[BodyField]
    curl: str
    answer: str
    statuses: list[str]


class OperationGroup(NamedTuple):
    """The operations with the same tag."""

    name: str
    operations: list[Operation]


def operation_groups(document: Mapping[str, Any], server: str) -> list[OperationGroup]:
    """Return all operations of a document by their tags, in its order."""
    found: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            group = (one.get("tags") or [UNTAGGED])[0]
            made = _operation(document, server, path, method.upper(), one)
            found.setdefault(group, []).append(made)
    return [OperationGroup(name, operations) for name, operations in found.items()]


def _operation(
    document: Mapping[str, Any], server: str, path: str, method: str, one: Mapping[str, Any]
) -> Operation:
    body = _example(document, _json_schema(one.get("requestBody", {})))
    answers = one.get("responses", {})
    good = [answers[status] for status in answers if status.startswith("2")]
    answer = _example(document, _json_schema(good[0])) if good else None
    description = one.get("description") or one.get("summary") or ""
    return Operation(
        id=f"{method.lower()}-" + re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-"),
        method=method,
        path=path,
        summary=re.split(r"(?<=[.:]) ", description.replace("\n", " "))[0].rstrip(":."),
        description=" ".join(description.split()),
        parameters=[_parameter(each) for each in one.get("parameters", [])],
        fields=_fields(document, _json_schema(one.get("requestBody", {}))),
        curl=_curl(server, path, method, body),
        answer="" if answer is None else json.dumps(answer, indent=2, ensure_ascii=False),
        statuses=sorted(answers),
    )


def _parameter(given: Mapping[str, Any]) -> Parameter:
    words = given.get("description") or given.get("schema", {}).get("description") or ""
    return Parameter(given["name"], given["in"], bool(given.get("required")), words)


def _fields(document: Mapping[str, Any], schema: Mapping[str, Any]) -> list[BodyField]:
    """Return the fields of a body."""
    resolved = next(
        (one for one in _choices(document, schema) if "properties" in one), dict[str, Any]()
    )
    required = resolved.get("required", ())
    return [
        BodyField(name, _type(document, one), name in required, one.get("description", ""))
        for name, one in resolved.get("properties", {}).items()
    ]


def _choices(document: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schemas of which a value has one, without references."""
    if "$ref" in schema:
        return _choices(document, _referred(document, schema["$ref"]))
    if "anyOf" in schema:
        return [one for choice in schema["anyOf"] for one in _choices(document, choice)]
    return [schema]


def _type(document: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return the type of a value as text."""
    found = dict.fromkeys(_type_of(document, one) for one in _choices(document, schema))
    return " or ".join(found)


def _type_of(document: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(json.dumps(one) for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(document, schema.get('items', {}))}".removesuffix(" of any")
    inside = schema.get("additionalProperties")
    if schema.get("type") == "object" and isinstance(inside, Mapping) and inside:
        return f"object of {_type(document, inside)}"
    return str(schema.get("type", "any"))


def _referred(document: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
    """Return the schema of a reference."""
    named = document
    for part in reference.removeprefix("#/").split("/"):
        named = named[part]
    return named


def _json_schema(holder: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a JSON body, empty without one."""
    content = holder.get("content", {}).get("application/json", {})
    schema: Mapping[str, Any] = content.get("schema", {})
    return schema


def _example(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    """Return the first example of a schema, or of the schema that it refers to."""
    if "examples" in schema:
        return schema["examples"][0]
    for choice in schema.get("anyOf", ()):
        found = _example(document, choice)
        if found is not None:
            return found
    if "$ref" not in schema:
        return None
    return _example(document, _referred(document, schema["$ref"]))


def _curl(server: str, path: str, method: str, body: Any) -> str:
    """Return a shell command that reads the API key from a variable."""
    filled = re.sub(r"\{(\w+)\}", lambda found: EXAMPLES.get(found[1], found[1]), path)
    lines = [f"curl {server}{filled}"]
    if method != "GET":
        lines[0] = f"curl -X {method} {server}{filled}"
    lines.append('-H "Authorization: Bearer $MULTIPLAY_KEY"')
    if method in ("POST", "DELETE"):
        lines.append('-H "Idempotency-Key: $(uuidgen)"')
    if body is not None:
        lines.append('-H "Content-Type: application/json"')
        lines.append(f"-d {shlex.quote(json.dumps(body, ensure_ascii=False))}")
    return " \\\n  ".join(lines)
