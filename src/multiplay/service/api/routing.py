"""Routing: endpoints that validate their requests, and operations of the HTTP API.

An endpoint is one method of one path. From the table of operations in ``routes.py`` come routing,
validation and the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import UnionType
from typing import Any, get_args, get_type_hints
from urllib.parse import unquote

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from multiplay.service.api.context import RequestContext, StudyContext
from multiplay.service.api.models import MOST
from multiplay.service.errors import InvalidFields, UnsupportedMediaType
from multiplay.service.studies.limits import strict_json
from multiplay.service.studies.manager import StudyManager

JSON = "application/json"
NOT_ALLOWED = 405


class Endpoint:
    """A method of a path, as an ASGI application.

    Parameters
    ----------
    method, path
        Of the requests.
    handler
        Called with the request, and with the parameters that are validated: ``play``, an id, if the
        path has it, and ``query``, if it has an argument of this name. The type of this argument is
        the model of the query parameters; others are ignored.
    """

    def __init__(
        self,
        method: str,
        path: str,
        handler: Callable[..., Awaitable[Response]],
    ) -> None:
        self.method, self.path, self.handler = method, path, handler
        self.query: type[BaseModel] | None = get_type_hints(handler).get("query")
        self.name: str = getattr(handler, "__name__", "")
        self._has_play = "{play}" in path
        self._label = path.replace(":path}", "}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request; its log line and its metrics have the path of the endpoint."""
        scope.setdefault("state", {})["route"] = self._label
        if scope["method"] != self.method:  # a Route with GET accepts HEAD too
            raise HTTPException(NOT_ALLOWED)
        response = await self.respond(Request(scope, receive, send))
        await response(scope, receive, send)

    async def respond(self, request: Request) -> Response:
        """Return the response to a request."""
        return await self.handler(request, **self.parameters(request))

    def parameters(self, request: Request) -> dict[str, Any]:
        """Return the validated parameters of the path and of the query."""
        given: dict[str, Any] = {}
        if self._has_play:
            given["play"] = self.play(request.path_params["play"])
        if self.query is not None:
            query = dict(request.query_params)
            try:
                given["query"] = self.query.model_validate(query)
            except ValidationError as error:
                schema = self.query.__name__
                known = self.query.model_fields
                raise InvalidFields("query", error.errors(), query, known, schema) from None
        return given

    def play(self, text: str) -> Any:
        """Return the play of a path."""
        return _play_id(text)

    def route(self) -> Route:
        """Return the route of the endpoint."""
        return Route(self.path, self, methods=[self.method], name=self.name)


class Operation(Endpoint):
    """An operation of the HTTP API: it authenticates the caller before it reads the body.

    Parameters
    ----------
    method, path, handler
        Those of an endpoint; the handler gets a context in place of the request, and ``body``, if
        it has an argument of this name. The type of this argument is the model of the body, which
        may be omitted if it has a default. ``play`` is a text: an id or a key. The first line of
        the handler's docstring describes the operation.
    tag
        The group in the document.
    answer
        The model of the response; None for a response without a body.
    status
        Of a successful response.
    etag
        Whether the response has an ETag, and may be 304.
    idempotency_key
        Whether the header Idempotency-Key is read.
    responses
        Responses in place of those that are derived, as OpenAPI objects by status.
    """

    def __init__(
        self,
        method: str,
        path: str,
        handler: Callable[..., Awaitable[Response]],
        tag: str,
        answer: type[BaseModel] | None = None,
        *,
        status: int = 200,
        etag: bool = False,
        idempotency_key: bool = False,
        responses: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(method, path, handler)
        self.tag, self.answer, self.status = tag, answer, status
        self.etag, self.idempotency_key = etag, idempotency_key
        self.responses = responses or {}
        self._context = StudyContext if "{study}" in path else RequestContext
        self.body: type[BaseModel] | None = None
        self._body: TypeAdapter[Any] | None = None
        kind = get_type_hints(handler).get("body")
        self.body_required = kind is not None and not isinstance(kind, UnionType)
        if kind is not None:
            self.body = kind if self.body_required else get_args(kind)[0]
            self._body = TypeAdapter(kind)

    async def respond(self, request: Request) -> Response:
        """Return the response to a request."""
        manager: StudyManager = request.app.state.manager
        caller = await manager.remembered_caller(token_of(request))
        request.state.key_id = caller.id
        content = await self._content(request, manager)
        given = self.parameters(request)
        if self._body is not None and (content is not None or self.body_required):
            try:
                given["body"] = self._body.validate_python(content)
            except ValidationError as error:
                assert self.body is not None
                known, schema = self.body.model_fields, self.body.__name__
                raise InvalidFields("body", error.errors(), content, known, schema) from None
        return await self.handler(self._context(request, caller, self.name, content), **given)

    def play(self, text: str) -> str:
        """Return the play of a path; a slash in its key is still %2F there."""
        return unquote(text)

    async def _content(self, request: Request, manager: StudyManager) -> Any:
        """Return the body as data; None if it is empty."""
        body = await request.body()
        if not body:
            return None
        check_media_type(request, JSON, f"Send the header Content-Type: {JSON}.")
        return strict_json(body, manager.settings.limits)


def token_of(request: Request) -> str | None:
    """Return the API key of a request; "" if the header has another scheme."""
    given = request.headers.get("authorization")
    if given is None:
        return None
    scheme, _, token = given.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def check_media_type(request: Request, expected: str, hint: str) -> None:
    """Refuse a body of another media type: other sites can make a browser send forms, not JSON."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != expected:
        raise UnsupportedMediaType("Content-Type", expected, repr(given)[:60], hint)


def _play_id(text: str) -> int:
    if text.isdecimal() and text.isascii() and len(text) < 20 and int(text) <= MOST:
        return int(text)
    error = {"type": "play_id", "loc": ("play",), "input": text}
    raise InvalidFields("path", [error], {"play": text})
