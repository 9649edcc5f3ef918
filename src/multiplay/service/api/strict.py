"""Routes that know who asks before they read a body, and read it strictly.

What FastAPI does for a request takes longer than a play takes to be chosen. So a route without
query parameters, which all routes are that change something, is answered without that; FastAPI
documents it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import signature
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.types import Receive, Scope, Send

from multiplay.service.api.models import MOST
from multiplay.service.api.refusals import Malformed, Unsupported
from multiplay.service.studies.limits import strict_json
from multiplay.service.studies.manager import Office

JSON = "application/json"


class StrictRoute(APIRoute):
    """A route with a key: the body of somebody unknown is not even read."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        if signature(endpoint).parameters.keys() <= {"request", "play", "body"}:
            self.app = _Direct(endpoint)

    def get_route_handler(self) -> Callable[[Request], Any]:
        """Return what answers."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            body = await _admitted(request)
            if body is not None:
                request._json = body  # where a request keeps what it has read
            return await handle(request)

        return strictly


class _Direct:
    """Answers for an endpoint with a request, the id of a play, and a body."""

    def __init__(self, endpoint: Callable[..., Awaitable[Response]]) -> None:
        self._endpoint, hints = endpoint, get_type_hints(endpoint)
        self._has_play = "play" in hints
        self._body = TypeAdapter(hints["body"]) if "body" in hints else None
        found = signature(endpoint).parameters.get("body")
        self._needs_body = found is not None and found.default is found.empty

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        body = await _admitted(request)
        given: dict[str, Any] = {}
        if self._has_play:
            given["play"] = _id(request.path_params["play"])
        if self._body is not None and (body is not None or self._needs_body):
            given["body"] = self._read(self._body, body)
        answer = await self._endpoint(request, **given)
        await answer(scope, receive, send)

    def _read(self, kind: TypeAdapter[Any], body: Any) -> Any:
        try:
            return kind.validate_python(body)
        except ValidationError as error:
            places = [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
            raise RequestValidationError(places) from None


async def _admitted(request: Request) -> Any:
    """Return the body, as data, of somebody who is known; None if there is no body."""
    office: Office = request.app.state.office
    caller = await office.claimed(token_of(request))
    request.state.caller, request.state.key_id = caller, caller.id
    body = await request.body()
    if not body:
        return None
    check_type(request, JSON, f"Send the header Content-Type: {JSON}.")
    return strict_json(body, office.settings.limits)


def token_of(request: Request) -> str | None:
    """Return the key of a request; "" if there is something else in its place."""
    given = request.headers.get("authorization")
    if given is None:
        return None
    scheme, _, token = given.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def check_type(request: Request, wanted: str, hint: str) -> None:
    """Refuse a body of another kind: what is no JSON, other sites can make a browser send."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != wanted:
        raise Unsupported("Content-Type", wanted, repr(given)[:60], hint)


def _id(text: str) -> int:
    if text.isdecimal() and text.isascii() and len(text) < 20 and int(text) <= MOST:
        return int(text)
    expected, hint = "the id of a play", "Give a whole number."
    raise Malformed("play", expected, repr(text)[:60], hint)
