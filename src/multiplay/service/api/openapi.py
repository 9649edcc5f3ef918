"""The OpenAPI document: what every operation may answer, besides what it is for."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from multiplay.service.api.models import Problem
from multiplay.version import __version__

PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
MEANINGS = {
    400: "The request cannot be read: not JSON, or not the fields that it should have.",
    401: "There is no key, or it is not valid.",
    403: "The key may not do this.",
    404: "There is no such study or play.",
    408: "The body came too slowly.",
    409: "It does not go with what was done before.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "The content cannot be used: what was expected, what came, and what to do.",
    503: "The store is not available now, or too much is asked at once: try again.",
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": PROBLEM} for status, text in MEANINGS.items()
}
ANSWERS[401]["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
ANSWERS[503]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "It is as you have it."}}
TITLE = "multiplay"
KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key, made by `multiplay key create`. None as long as there is none.",
}
STUDY = {
    "name": "study",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1},
    "description": "The name of the study.",
}
KNOWN = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "The ETag of what you have.",
}
AGAIN = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": r"^[\x21-\x7e]+$"},
    "description": "The same request with the same key again changes nothing, and is answered the "
    "very same. Choose a new random text for every new request.",
}
READ_ONLY = ("/best", "/expect", "/verify")
ABOUT = """
How many of everything to use, again and again, when nobody knows what a unit costs.

Make a study of what may be played. Every day, `ask` for a plan; when the costs have come, `tell`
them. It does better next time. What was answered is safe.

Send your key with every request: `Authorization: Bearer mp_...`. Give every request that changes
something an `Idempotency-Key`; then it is safe to send it again when an answer was lost.
"""


def _parameters(path: str, method: str, operation: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parameters that a visit reads itself."""
    found = [STUDY] if "{study}" in path else []
    if "304" in operation["responses"]:
        found.append(KNOWN)
    if method == "post" and not path.endswith(READ_ONLY):
        found.append(AGAIN)
    return found


def describe(app: FastAPI) -> None:
    """Let an app give its document, with the schema of problems."""

    def openapi() -> dict[str, Any]:
        if not app.openapi_schema:
            document = get_openapi(
                title=TITLE,
                version=__version__,
                description=ABOUT.strip(),
                routes=app.routes,
                license_info={"name": "MIT"},
            )
            for path, operations in document["paths"].items():
                for method, operation in operations.items():
                    operation["security"] = [{"key": []}, {}]
                    given = _parameters(path, method, operation)
                    operation["parameters"] = [*given, *operation.get("parameters", [])]
            document["components"]["securitySchemes"] = {"key": KEY}
            schemas = document["components"]["schemas"]
            schemas["Problem"] = Problem.model_json_schema()
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
