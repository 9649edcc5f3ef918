"""Problem documents (RFC 9457): the responses to all errors."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from multiplay._support.checks import shortened
from multiplay._support.formatting import counted
from multiplay._support.hints import Surface, rendered
from multiplay._support.renamed import RENAMED
from multiplay._support.suggestions import suggestion
from multiplay.errors import Conflict, InvalidInput, NotFound, StoreError, UnknownOutcome
from multiplay.service.api.models import DATE_TIME
from multiplay.service.api.paging import NAME, NUMBER
from multiplay.service.errors import (
    Forbidden,
    InvalidFields,
    MalformedRequest,
    Overloaded,
    RequestRefused,
    Unauthenticated,
    UnsupportedMediaType,
)

TYPE = "application/problem+json"
LONGEST = 1_000  # characters of a detail
RETRY = {"Retry-After": "1"}  # seconds
NO_BODY = (204, 304)
NOT_ALLOWED = 405

log = logging.getLogger("multiplay.service")


class Kind(NamedTuple):
    """The status, title and headers of a problem."""

    status: int
    title: str
    headers: dict[str, str] | None = None


# An error whose class is not here has the kind of its base class.
KINDS: dict[type[Exception], Kind] = {
    MalformedRequest: Kind(400, "Invalid request"),
    Unauthenticated: Kind(401, "Unauthenticated", {"WWW-Authenticate": "Bearer"}),
    Forbidden: Kind(403, "Forbidden"),
    NotFound: Kind(404, "Not found"),
    Conflict: Kind(409, "Conflict"),
    UnsupportedMediaType: Kind(415, "Unsupported media type"),
    InvalidInput: Kind(422, "Invalid input"),
    StoreError: Kind(503, "Store not available", RETRY),
    Overloaded: Kind(503, "Overloaded", RETRY),
    UnknownOutcome: Kind(503, "Outcome unknown"),  # to retry is not safe without a key
}


def problem(
    status: int,
    title: str,
    detail: str,
    *,
    request_id: str,
    argument: str | None = None,
    expected: str | None = None,
    got: object = None,
    hint: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a response with a problem document.

    Examples
    --------
    >>> response = problem(404, "Not found", "There is no play 7.", request_id="a1")
    >>> response.status_code, response.media_type
    (404, 'application/problem+json')
    >>> json.loads(response.body)["type"]
    'urn:multiplay:not-found'
    """
    document = {
        "type": "urn:multiplay:" + re.sub(r"[^a-z0-9]+", "-", title.lower()),
        "title": title,
        "status": status,
        "detail": shortened(detail, LONGEST),
        "instance": f"urn:request:{request_id}",
        "argument": argument,
        "expected": expected,
        "got": None if got is None else shortened(str(got), LONGEST),
        "hint": hint,
    }
    content = json.dumps({name: value for name, value in document.items() if value is not None})
    return Response(content, status, headers, TYPE)


def of_error(error: Exception, request_id: str) -> Response:
    """Return the response to an error; the details of an unexpected error are only logged."""
    if isinstance(error, InvalidFields):
        return _of_fields(error, request_id)
    if isinstance(error, RequestRefused):
        status, title, detail = error.status, error.title, error.detail
        return problem(status, title, detail, request_id=request_id, hint=error.hint)
    if isinstance(error, HTTPException):
        return _of_status(error, request_id)
    kind = kind_of(error)
    if kind is not None and isinstance(error, InvalidInput):
        said = rendered(error.hint, Surface.HTTP)
        return problem(
            kind.status,
            kind.title,
            f"{error.argument}: expected {error.expected}, got {error.got}. {said}",
            request_id=request_id,
            argument=error.argument,
            expected=error.expected,
            got=error.got,
            hint=error.hint,  # in Python: RemoteStudy raises the same error as Study
            headers=kind.headers,
        )
    if not isinstance(error, Overloaded):  # which is no fault
        log.error("failed", exc_info=error, extra={"fields": {"id": request_id}})
    if kind is not None and isinstance(error, StoreError):
        detail = f"{error.reason}. {error.hint}"  # without the location of the store
        return problem(kind.status, kind.title, detail, request_id=request_id, headers=kind.headers)
    detail = "An unexpected error occurred. The log of the service has the details under this id."
    return problem(500, "Internal error", detail, request_id=request_id)


def kind_of(error: Exception) -> Kind | None:
    """Return the kind of an error; None for an unexpected error."""
    return next((KINDS[one] for one in type(error).__mro__ if one in KINDS), None)


def request_id(scope: Mapping[str, Any]) -> str:
    """Return the id of a request, which its response and its log line have."""
    known: str = scope.get("state", {}).get("request_id", "unknown")
    return known


def install(app: Starlette) -> None:
    """Respond to all errors of an application with problem documents."""
    for kind in (*KINDS, InvalidFields, RequestRefused, HTTPException):
        app.add_exception_handler(kind, _handle)


async def _handle(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == NOT_ALLOWED:
        error = HTTPException(NOT_ALLOWED, error.detail, {"Allow": _allowed(request)})
    if isinstance(error, InvalidInput):
        error = without_store(error, request.app.state.manager.store.url)
    return of_error(error, request_id(request.scope))


def _allowed(request: Request) -> str:
    """Return the methods of a path, which may have several routes."""
    methods: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            methods |= route.methods or set()
    return ", ".join(sorted(methods - {"HEAD"}))  # which a Route adds to GET


def without_store(error: InvalidInput, url: str) -> InvalidInput:
    """Return an error without the location of the store, which clients must not see."""
    got, here = str(error.got).replace(f"in {url}", "here"), error.expected
    if f"in {url}" in here:  # a Hint has no URL, and stays one
        here = here.replace(f"in {url}", "here")
    return type(error)(error.argument, here, got, error.hint)


def _of_status(error: HTTPException, request_id: str) -> Response:
    status, headers = error.status_code, error.headers
    if status in NO_BODY:
        return Response(status_code=status, headers=headers)
    title = HTTPStatus(status).phrase.capitalize()
    return problem(status, title, error.detail or title, request_id=request_id, headers=headers)


def _of_fields(error: InvalidFields, request_id: str) -> Response:
    """Describe the first of the invalid fields."""
    argument, expected, got, hint, fields = first_invalid(error)
    if fields > 1:
        hint = f"{hint} The request has {fields} invalid fields."
    return problem(
        400,
        "Invalid request",
        f"{argument}: expected {expected}, got {got}. {hint}",
        request_id=request_id,
        argument=argument,
        expected=expected,
        got=got,
        hint=hint,
    )


# ------------------------------------------------------------ invalid fields of a request

WHOLE, REAL, TEXT, FLAG = "a whole number", "a number", "a text", "true or false"
OBJECT, LIST = "an object", "a list"
PATTERNS = {
    DATE_TIME: "a time such as 2026-11-15T08:00:00Z",
    NUMBER: "the cursor of a page",
    NAME: "the cursor of a page",
}
VALUES: dict[str, str] = {  # of values, by the type of an error or its part before a "_"
    "int": WHOLE,
    "float": REAL,
    "finite": REAL,
    "string": TEXT,
    "bool": FLAG,
    "dict": OBJECT,
    "model": OBJECT,
    "mapping": OBJECT,
    "list": LIST,
    "tuple": LIST,
}
HINT = "The API reference of the service, at /docs, has an example."
LIMITS: dict[str, Callable[[Mapping[str, Any]], str]] = {  # by the type of an error
    "greater_than_equal": lambda of: f"at least {of['ge']:g}",
    "greater_than": lambda of: f"more than {of['gt']:g}",
    "less_than_equal": lambda of: f"at most {of['le']:g}",
    "less_than": lambda of: f"less than {of['lt']:g}",
    "string_too_short": lambda of: f"at least {counted(of['min_length'], 'character')}",
    "string_too_long": lambda of: f"at most {counted(of['max_length'], 'character')}",
    "too_short": lambda of: f"at least {counted(of['min_length'], 'item')}",
    "too_long": lambda of: f"at most {counted(of['max_length'], 'item')}",
    "literal_error": lambda of: str(of["expected"]),
    "string_pattern_mismatch": lambda of: PATTERNS.get(of["pattern"], "a text of another form"),
    "play_id": lambda of: "the id of a play",
}


class InvalidField(NamedTuple):
    """The first invalid field of a request, and how many there are."""

    argument: str
    expected: str
    got: str
    hint: str
    fields: int


def first_invalid(error: InvalidFields) -> InvalidField:
    """Describe the first invalid field; alternatives of one field are described together."""
    found = [(_path(error.content, one), one) for one in error.errors]
    top = found[0][0][:1]
    of_field = [pair for pair in found if pair[0][:1] == top]
    deepest = max(of_field, key=lambda pair: len(pair[0]))[0]  # the alternative that fits best
    alternatives = [one for path, one in of_field if path == deepest]
    first = alternatives[0]
    got = "nothing" if first["type"] == "missing" else shortened(repr(first.get("input")))
    texts = [*dict.fromkeys(_expected(one) for one in alternatives)]
    known, schema = (error.known, error.schema) if len(deepest) == 1 else ((), "")
    hint = _hint(first, known, schema)
    fields = len({path[:1] for path, _ in found})
    return InvalidField(_named(deepest) or error.where, _either(texts), got, hint, fields)


def _expected(error: Mapping[str, Any]) -> str:
    kind = str(error["type"])
    if kind == "missing":
        return "a value"
    if kind == "extra_forbidden":
        return "no field of this name"
    if kind in LIMITS:
        return LIMITS[kind](error.get("ctx", {}))
    return VALUES.get(kind.partition("_")[0], "a valid value")


def _hint(error: Mapping[str, Any], known: Iterable[str], schema: str) -> str:
    if error["type"] == "missing":
        return "Add it."
    if error["type"] == "extra_forbidden":
        name = error["loc"][-1]
        if new := RENAMED.get(schema, {}).get(name):
            return rendered(new, Surface.HTTP)
        return suggestion(name, known).strip() or "Remove it."
    return HINT


def _either(texts: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def _path(content: Any, error: Mapping[str, Any]) -> tuple[int | str, ...]:
    """Return the place of an error in the content, without the names of alternatives."""
    path = list[int | str]()
    for part in error["loc"]:
        inside = isinstance(content, list) and isinstance(part, int) and part < len(content)
        if inside or (isinstance(content, dict) and part in content):
            content = content[part]
            path.append(part)
    if error["type"] == "missing":
        path.append(error["loc"][-1])
    return tuple(path)


def _named(path: Iterable[int | str]) -> str:
    """Return the name of a field, for example ``actions.supply[0]``."""
    text = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path)
    return text.removeprefix(".")
