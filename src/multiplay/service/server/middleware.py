"""What happens to every request, whatever it asks: an id, a log line, measures, safe headers."""

from __future__ import annotations

import logging
import re
import secrets
import time
from itertools import count
from typing import Any

from fastapi import FastAPI
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from multiplay._support.checks import shortened
from multiplay.service.api.problems import of_error
from multiplay.service.server import metrics
from multiplay.service.server.compression import Compression
from multiplay.service.server.request_limits import Doors
from multiplay.service.settings import Settings

REQUEST_ID = re.compile(rb"(?!mp_)[A-Za-z0-9._-]{1,64}")  # a key is none, nor is it logged
WORKER, NUMBERS = secrets.token_hex(6), count()  # ids of requests that bring none
LEFT = 499  # the status in the log when nobody waited for an answer
LONGEST = 200  # letters of a path in the log
HTML = b"text/html"
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    b"font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    b"base-uri 'none'"
)
SAFE = [
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]

log = logging.getLogger("multiplay.service")


def install(app: FastAPI, settings: Settings) -> None:
    """Put all of it around an app."""
    app.add_middleware(Compression)
    app.add_middleware(Doors, settings=settings)
    app.add_middleware(Account)  # outermost: what the others answer is counted too


class Account:
    """Gives every request an id, and an account of it to the log and to the measures.

    Whoever knows the key of a request leaves its id, which is no secret, in
    ``scope["state"]["key_id"]``.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin = time.perf_counter()
        id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = id
        status, size = 0, 0

        async def send_safely(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = with_safe_headers(message.get("headers", ()), id)
            elif message["type"] == "http.response.body":
                size += len(message.get("body", b""))
            await send(message)

        metrics.begin()
        try:
            try:
                await self.app(scope, receive, send_safely)
            except ClientDisconnect:
                pass
            except Exception as error:
                answer = of_error(error, id)
                if status:  # half of it is sent: it must not look whole
                    raise Broken from None
                await answer(scope, receive, send_safely)
        finally:
            seconds = time.perf_counter() - begin
            status = status or LEFT
            route = _route(scope)
            metrics.end(scope["method"], route, status, seconds)
            log.info("request", extra={"fields": _line(scope, route, status, seconds, size)})


class Broken(RuntimeError):
    """An answer broke off; the log says why already."""


def _request_id(scope: Scope) -> str:
    """Return the id that a client gave, or a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and REQUEST_ID.fullmatch(value):
            given: str = value.decode("ascii")
            return given
    return new_id()


def new_id() -> str:
    """Return an id for a request, unlike all others."""
    return f"{WORKER}-{next(NUMBERS):x}"


def with_safe_headers(headers: list[tuple[bytes, bytes]], id: str) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer and those that keep browsers out of trouble."""
    given = {name.lower(): value for name, value in headers}
    page = given.get(b"content-type", b"").startswith(HTML)
    added = [
        *SAFE,
        (b"referrer-policy", b"same-origin" if page else b"no-referrer"),
        (b"x-request-id", id.encode("ascii")),
    ]
    if b"cache-control" not in given:
        added.append((b"cache-control", b"no-store"))
    return [*headers, *added]


def _route(scope: Scope) -> str | None:
    """Return the template of the path, without names of studies; None if there is no such path."""
    # of a router within a router the route knows the last part only, and this context all of it
    context = scope.get("fastapi", {}).get("effective_route_context")
    template: str | None = getattr(context or scope.get("route"), "path_format", None)
    if template is None and "endpoint" in scope:  # a folder of files
        template = scope["root_path"] + "/{path}"
    return template


def _line(
    scope: Scope, route: str | None, status: int, seconds: float, size: int
) -> dict[str, Any]:
    """Return what the log says: no query, no header but the id, no body."""
    state, client = scope["state"], scope.get("client")
    return {
        "id": state["request_id"],
        "method": scope["method"],
        "path": shortened(scope["path"], LONGEST),
        "route": route,
        "status": status,
        "ms": round(seconds * 1000, 3),
        "bytes": size,
        "caller": state.get("key_id"),
        "client": client[0] if client else None,
    }
