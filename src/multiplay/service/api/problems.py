"""Answers that say what is wrong: problem+json (RFC 9457), with what to do about it."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

import fastapi
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from multiplay._support.checks import shortened
from multiplay.errors import Conflict, InvalidInput, NotFound, StoreError
from multiplay.service.api.refusals import Forbidden, Malformed, Unknown, Unsupported

TYPE = "application/problem+json"
LONGEST = 1_000  # letters of a detail
RETRY = {"Retry-After": "1"}  # seconds
NO_BODY = (204, 304)
# What stands in a place for a kind of a union, not for a field.
KIND = re.compile(r"(dict|list|function-\w+|constrained-\w+)\[|(float|constrained-\w+)$")
METHOD = 405  # not allowed

log = logging.getLogger("multiplay.service")


class Kind(NamedTuple):
    """How an error is answered."""

    status: int
    title: str
    headers: dict[str, str] | None = None


class Refused(fastapi.HTTPException):
    """A request that is not even read; FastAPI lets such an error pass where a body is read."""

    def __init__(self, status: int, title: str, detail: str, hint: str | None = None) -> None:
        super().__init__(status, detail)
        self.title, self.hint = title, hint


# Of errors that say themselves what is wrong; of an error that is not here, what it inherits from.
KINDS: dict[type[Exception], Kind] = {
    Malformed: Kind(400, "Invalid request"),
    Unknown: Kind(401, "No valid key", {"WWW-Authenticate": "Bearer"}),
    Forbidden: Kind(403, "Not allowed"),
    NotFound: Kind(404, "Not found"),
    Conflict: Kind(409, "Conflict"),
    Unsupported: Kind(415, "Not JSON"),
    InvalidInput: Kind(422, "Invalid input"),
    StoreError: Kind(503, "Store not available", RETRY),
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
    """Return an answer that says what is wrong.

    Examples
    --------
    >>> answer = problem(404, "Not found", "There is no play 7.", request_id="a1")
    >>> answer.status_code, answer.media_type
    (404, 'application/problem+json')
    >>> json.loads(answer.body)["type"]
    'urn:multiplay:not-found'
    """
    said = {
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
    content = json.dumps({name: value for name, value in said.items() if value is not None})
    return Response(content, status, headers, TYPE)


def of_error(error: Exception, request_id: str) -> Response:
    """Return the answer to an error; one that nobody foresaw is told to the log only."""
    if isinstance(error, RequestValidationError):
        return _of_validation(error.errors(), request_id)
    if isinstance(error, HTTPException):
        return _of_status(error, request_id)
    kind = kind_of(error)
    if kind is not None and isinstance(error, InvalidInput):
        return problem(
            kind.status,
            kind.title,
            str(error),
            request_id=request_id,
            argument=error.argument,
            expected=error.expected,
            got=error.got,
            hint=error.hint,
            headers=kind.headers,
        )
    log.error("failed", exc_info=error, extra={"fields": {"id": request_id}})
    if kind is not None and isinstance(error, StoreError):
        detail = f"{error.reason}. {error.hint}"  # where the store is concerns no client
        return problem(kind.status, kind.title, detail, request_id=request_id, headers=kind.headers)
    detail = "Something went wrong that should not. The log of the service says what, by this id."
    return problem(500, "Internal error", detail, request_id=request_id)


def kind_of(error: Exception) -> Kind | None:
    """Return how an error is answered; None for one that nobody foresaw."""
    return next((KINDS[one] for one in type(error).__mro__ if one in KINDS), None)


def request_id(scope: Mapping[str, Any]) -> str:
    """Return what a request is known by, in answers and in the log."""
    known: str = scope.get("state", {}).get("request_id", "unknown")
    return known


def install(app: FastAPI) -> None:
    """Answer all errors of an app this way."""
    for kind in (*KINDS, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _handle)


async def _handle(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == METHOD:
        error = HTTPException(METHOD, error.detail, {"Allow": _allowed(request)})
    if isinstance(error, InvalidInput):
        error = discreet(error, request.app.state.office.store.url)
    return of_error(error, request_id(request.scope))


def _allowed(request: Request) -> str:
    """Return the methods of a path, which may be those of several routes."""
    methods: set[str] = set()
    for one in request.app.router.routes:
        # a router that was included knows its routes with their whole paths
        routes = getattr(one, "effective_route_contexts", lambda one=one: [one])()
        for route in routes:
            if route.matches(request.scope)[0] is not Match.NONE:
                methods |= getattr(route, "methods", None) or set()
    return ", ".join(sorted(methods))


def discreet(error: InvalidInput, url: str) -> InvalidInput:
    """Return an error without the place of the store, which concerns no client."""
    expected, got = (str(part).replace(f"in {url}", "here") for part in (error.expected, error.got))
    return type(error)(error.argument, expected, got, error.hint)


def _of_status(error: HTTPException, request_id: str) -> Response:
    if error.status_code in NO_BODY:
        return Response(status_code=error.status_code, headers=error.headers)
    if isinstance(error, Refused):
        title, hint = error.title, error.hint
    else:
        title, hint = HTTPStatus(error.status_code).phrase.capitalize(), None
    detail = str(error.detail or title)
    return problem(
        error.status_code, title, detail, request_id=request_id, hint=hint, headers=error.headers
    )


def _of_validation(errors: Sequence[Mapping[str, Any]], request_id: str) -> Response:
    """Say what is wrong with the first of the fields that cannot be read."""
    first = errors[0]
    argument = _place(first)
    expected, got, hint = _words(first)
    if len(errors) > 1:
        hint = f"{hint} Places of this request that are wrong: {len(errors)}."
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


def _words(error: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what was expected, what came, and what to do."""
    if error["type"] == "missing":
        return "a value", "nothing", "Add it."
    if error["type"] == "extra_forbidden":
        return "no field of this name", _got(error), "Remove it."
    if error["type"] == "json_invalid":
        reason = error.get("ctx", {}).get("error", "other text")
        return "JSON", f"{reason} (at letter {error['loc'][-1]})", "Correct it."
    if isinstance(error.get("input"), bytes):  # nobody said that it is JSON
        return "JSON", "a body of another type", "Send Content-Type: application/json."
    if error["type"] == "model_attributes_type":
        return "an object", _got(error), "Correct it."
    said = re.sub(r"^\w+ should (be |have )?", "", error["msg"])
    return re.sub(r", (unable|got) .*", "", said), _got(error), "Correct it."


def _got(error: Mapping[str, Any]) -> str:
    return shortened(repr(error.get("input")))


def _place(error: Mapping[str, Any]) -> str:
    """Return the name of a field, ``actions.supply[0]`` say, or where it should be."""
    where, *path = error["loc"]  # it begins with body, query, path, header or cookie
    path = [one for one in path if not (isinstance(one, str) and KIND.match(one))]
    if not path or error["type"] == "json_invalid":
        return str(where)
    named = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path)
    return named.removeprefix(".")
