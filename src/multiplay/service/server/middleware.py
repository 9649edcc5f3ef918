"""Middleware of every request: its id, log line, metrics, limits, security headers and path."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from itertools import count
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from multiplay._support.checks import shortened
from multiplay.service.api.problems import of_error, request_id
from multiplay.service.errors import RequestRefused
from multiplay.service.server import metrics
from multiplay.service.settings import Settings

REQUEST_ID = re.compile(rb"(?!mp_)[A-Za-z0-9._-]{1,64}")  # an API key is not accepted, nor logged
WORKER, NUMBERS = secrets.token_hex(6), count()  # for ids of requests without one
CONNECTION = "connection"  # in the state of a request: the connection it came by
CLIENT_CLOSED = 499  # the status in the log when the client left before the response
LONGEST = 200  # characters of a path in the log
HTML = b"text/html"
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    b"font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    b"base-uri 'none'"
)
SECURITY_HEADERS = [
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
# DNS rebinding: a page of another site can make a browser send requests to a domain that resolves
# to this machine. Such requests still have the name of that domain.
LOOPBACK = re.compile(rb"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.IGNORECASE)

log = logging.getLogger("multiplay.service")


def install(app: Starlette, settings: Settings) -> None:
    """Add all middleware to an application."""
    app.add_middleware(EncodedPaths)
    if settings.https:
        app.add_middleware(HttpsScheme)
    app.add_middleware(RequestLimits, settings=settings)
    app.add_middleware(RequestLog)  # outermost: it also counts responses of the others


class RequestLog:
    """Gives every request an id, a log line and metrics, and every response security headers.

    An endpoint stores its path in ``scope["state"]["route"]``, and the id of the API key, which is
    not secret, in ``scope["state"]["key_id"]``.
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
        state = scope.setdefault("state", {})
        state["request_id"] = id
        status, size = 0, 0

        async def send_safely(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = with_security_headers(message.get("headers", ()), id)
            elif message["type"] == "http.response.body":
                size += len(message.get("body", b""))
            await send(message)

        metrics.count_start()
        try:
            try:
                await self.app(scope, receive, send_safely)
            except ClientDisconnect:
                pass
            except Exception as error:
                if isinstance(error, RuntimeError) and _is_closed(state):
                    return  # uvloop raises it where a client leaves between two responses
                response = of_error(error, id)
                if status:  # part of a response is sent: it must not look complete
                    raise IncompleteResponse from None
                await response(scope, receive, send_safely)
        finally:
            if (connection := state.get(CONNECTION)) is not None:
                connection.response_finished()
            seconds = time.perf_counter() - begin
            status = status or CLIENT_CLOSED
            metrics.count_end(scope["method"], state.get("route"), status, seconds)
            log.info("request", extra={"fields": _line(scope, status, seconds, size)})


def _is_closed(state: dict[str, Any]) -> bool:
    """Return whether the connection of a request is closed."""
    connection = state.get(CONNECTION)
    return connection is not None and connection.is_closed


class IncompleteResponse(RuntimeError):
    """A response ended early; the error that caused it is logged already."""


def _request_id(scope: Scope) -> str:
    """Return the id that the client sent, or a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and REQUEST_ID.fullmatch(value):
            given: str = value.decode("ascii")
            return given
    return new_id()


def new_id() -> str:
    """Return a unique id for a request."""
    return f"{WORKER}-{next(NUMBERS):x}"


def with_security_headers(headers: list[tuple[bytes, bytes]], id: str) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response together with the security headers and the request id."""
    given = {name.lower(): value for name, value in headers}
    page = given.get(b"content-type", b"").startswith(HTML)
    added = [
        *SECURITY_HEADERS,
        (b"referrer-policy", b"same-origin" if page else b"no-referrer"),
        (b"x-request-id", id.encode("ascii")),
    ]
    if b"cache-control" not in given:
        added.append((b"cache-control", b"no-store"))
    return [*headers, *added]


def _line(scope: Scope, status: int, seconds: float, size: int) -> dict[str, Any]:
    """Return the fields of a log line: no query, no header but the id, no body."""
    state, client = scope["state"], scope.get("client")
    return {
        "id": state["request_id"],
        "method": scope["method"],
        "path": shortened(scope["path"], LONGEST),
        "route": state.get("route"),
        "status": status,
        "ms": round(seconds * 1000, 3),
        "bytes": size,
        "caller": state.get("key_id"),
        "client": client[0] if client else None,
    }


class RequestLimits:
    """Refuses requests for other hosts, and bodies that are encoded, too large or too slow."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._open, self._limits = settings.open, settings.limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = RequestHeaders(scope)
        try:
            self._check(headers)
        except RequestRefused as error:
            await of_error(error, request_id(scope))(scope, receive, send)
            return
        if headers.content_length or headers.transfer_encoding:
            receive = self._limited(receive)
        await self.app(scope, receive, send)

    def _check(self, given: RequestHeaders) -> None:
        """Raise ``RequestRefused`` if the body should not be read."""
        if len(given.hosts) > 1 or (not given.hosts and given.version != "1.0"):
            detail = f"Expected one Host header, got {len(given.hosts)}."
            raise RequestRefused(400, "Invalid host", detail)
        if self._open and not all(LOOPBACK.fullmatch(host) for host in given.hosts or [b""]):
            detail = "Without API keys, the host must be localhost, 127.0.0.1 or [::1]."
            hint = "Use one of these hosts, or create a key and start the service with --host."
            raise RequestRefused(421, "Misdirected request", detail, hint)
        if given.content_encoding or given.transfer_encoding not in (b"", b"chunked"):
            hint = "Send the body without Content-Encoding."
            detail = "Compressed bodies are not accepted."
            raise RequestRefused(415, "Unsupported encoding", detail, hint)
        if given.content_length > self._limits.body:
            raise self._too_large()

    def _limited(self, receive: Receive) -> Receive:
        """Return a ``receive`` that raises if the body is too large or too slow."""
        deadline = asyncio.get_running_loop().time() + self._limits.seconds
        size, is_complete = 0, False

        async def limited() -> Message:
            nonlocal size, is_complete
            if is_complete:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                detail = f"The body was not complete within {self._limits.seconds:g} seconds."
                raise RequestRefused(408, "Request too slow", detail) from None
            size += len(message.get("body", b""))
            if size > self._limits.body:
                raise self._too_large()
            is_complete = not message.get("more_body", False)
            return message

        return limited

    def _too_large(self) -> RequestRefused:
        detail = f"The body has more than {self._limits.body} bytes."
        return RequestRefused(413, "Body too large", detail, "Send it in parts.")


class RequestHeaders:
    """The headers that name the host and describe the body."""

    def __init__(self, scope: Scope) -> None:
        self.version: str = scope.get("http_version", "1.1")
        self.hosts: list[bytes] = []
        self.content_length, self.transfer_encoding, self.content_encoding = 0, b"", b""
        for name, value in scope["headers"]:
            if name == b"host":
                self.hosts.append(value)
            elif name == b"content-length":
                self.content_length = int(value)
            elif name == b"transfer-encoding":
                self.transfer_encoding += value.strip().lower()
            elif name == b"content-encoding" and value.strip().lower() != b"identity":
                self.content_encoding = value


class EncodedPaths:
    """Keeps ``%2F`` and ``%25`` encoded in paths, so that ``unquote`` gives a name with slashes."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "http" and b"%" in scope.get("raw_path", b""):
            scope = {**scope, "path": partly_decoded(scope["raw_path"].decode("latin-1"))}
        await self.app(scope, receive, send)


class HttpsScheme:
    """Sets the scheme to https, for a service behind a proxy that ends TLS."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "http":
            scope = {**scope, "scheme": "https"}
        await self.app(scope, receive, send)


def partly_decoded(raw: str) -> str:
    """Return a path with its parts decoded, except for slashes and percent signs in them.

    Examples
    --------
    >>> partly_decoded("/studies/north%2Fsouth%20100%25/ask")
    '/studies/north%2Fsouth 100%25/ask'
    """
    parts = (unquote(part).replace("%", "%25").replace("/", "%2F") for part in raw.split("/"))
    return "/".join(parts)
