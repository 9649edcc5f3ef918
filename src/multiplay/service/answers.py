"""The OpenAPI document: what every operation may answer, besides what it is for."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from multiplay.service.models import Problem
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
ABOUT = """
How many of everything to use, again and again, when nobody knows what a unit costs.

Make a study of what may be played. Every day, `ask` for a plan; when the costs have come, `tell`
them. It does better next time. What was answered is safe.

Send your key with every request: `Authorization: Bearer mp_...`. Give every request that changes
something an `Idempotency-Key`; then it is safe to send it again when an answer was lost.
"""


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
            schemas = document["components"]["schemas"]
            schemas["Problem"] = Problem.model_json_schema()
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
