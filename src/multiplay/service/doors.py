"""Requests that are refused before anybody reads them: too large, too slow, not meant for us."""

from __future__ import annotations

import asyncio
import re

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from multiplay.service.problems import problem, request_id
from multiplay.service.settings import Settings

# A page of a stranger can make a browser send requests to a name that the stranger's name server
# says is this machine: such a request still has the stranger's name.
OURS = re.compile(rb"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.IGNORECASE)
LAST = {"Connection": "close"}  # for a client whose next bytes mean nothing


class Left(Exception):
    """The client is gone."""


class Doors:
    """Lets requests in that are whole, small enough and meant for this service."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.open, self.most = settings.open, settings.limits.body
        self.seconds = settings.limits.seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Given(scope)
        refusal = self._of_headers(headers, request_id(scope))
        if refusal is None and headers.has_body:
            try:
                async with asyncio.timeout(self.seconds):
                    body = await self._whole(receive)
            except TimeoutError:
                refusal = self._too_slow(request_id(scope))
            except Left:
                return
            else:
                if body is None:
                    refusal = self._too_large(headers, request_id(scope))
                else:
                    receive = _again(body, receive)
        await (refusal or self.app)(scope, receive, send)

    def _of_headers(self, given: Given, id: str) -> Response | None:
        """Say what is wrong with a request before its body is read."""
        if len(given.hosts) > 1 or (not given.hosts and given.version != "1.0"):
            detail = f"A request has one header Host; this one has {len(given.hosts)}."
            return problem(400, "Invalid host", detail, request_id=id, headers=LAST)
        if self.open and not all(OURS.fullmatch(host) for host in given.hosts or [b""]):
            detail = "Without keys this service answers to localhost, 127.0.0.1 and [::1] only."
            hint = "Use one of these names, or make a key."
            return problem(421, "Misdirected request", detail, request_id=id, hint=hint)
        if given.coding or given.transfer not in (b"", b"chunked"):
            detail = "A compressed body is not read here."
            hint = "Send the body as it is, without Content-Encoding."
            return problem(
                415, "Unsupported encoding", detail, request_id=id, hint=hint, headers=given.last
            )
        if given.length > self.most:
            return self._too_large(given, id)
        return None

    async def _whole(self, receive: Receive) -> bytes | None:
        """Return the body; None as soon as it is too large."""
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Left
            part = message.get("body", b"")
            size += len(part)
            if size > self.most:
                return None
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    def _too_large(self, given: Given, id: str) -> Response:
        expected = f"a body of at most {self.most} bytes"
        return problem(
            413,
            "Body too large",
            f"Expected {expected}.",
            request_id=id,
            argument="body",
            expected=expected,
            got=f"{given.length} bytes" if given.length else "more",
            hint="Send it in parts.",
            headers=given.last,
        )

    def _too_slow(self, id: str) -> Response:
        detail = f"The whole request must be here within {self.seconds:g} seconds."
        return problem(408, "Request too slow", detail, request_id=id, headers=LAST)


class Given:
    """The headers of a request that say what its body is."""

    def __init__(self, scope: Scope) -> None:
        self.version: str = scope.get("http_version", "1.1")
        self.hosts: list[bytes] = []
        self.length, self.transfer, self.coding, self.waits = 0, b"", b"", False
        for name, value in scope["headers"]:
            if name == b"host":
                self.hosts.append(value)
            elif name == b"content-length":
                self.length = int(value)
            elif name == b"transfer-encoding":
                self.transfer = (self.transfer + b"," + value.strip().lower()).lstrip(b",")
            elif name == b"content-encoding" and value.strip().lower() != b"identity":
                self.coding = value
            elif name == b"expect":
                self.waits = True

    @property
    def has_body(self) -> bool:
        """Say whether something comes behind the headers."""
        return self.length > 0 or bool(self.transfer)

    @property
    def last(self) -> dict[str, str] | None:
        """Return what ends the connection where nobody knows if the refused body will still come.

        Everyone else is heard to the end, since a connection that is closed while a client sends
        may take our answer with it.
        """
        return LAST if self.waits else None


def _again(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read, and then what comes after it."""
    given = False

    async def give() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give
