"""Requests that are refused before anybody reads them: too large, too slow, not meant for us."""

from __future__ import annotations

import asyncio
import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from multiplay.service.api.problems import Refused, of_error, request_id
from multiplay.service.settings import Settings

# A page of a stranger can make a browser send requests to a name that the stranger's name server
# says is this machine: such a request still has the stranger's name.
OURS = re.compile(rb"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.IGNORECASE)


class Doors:
    """Lets requests in that are meant for this service, and whose bodies are small and quick."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._open, self._limits = settings.open, settings.limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Given(scope)
        try:
            self._check(given)
        except Refused as error:
            await of_error(error, request_id(scope))(scope, receive, send)
            return
        if given.length or given.transfer:
            receive = self._limited(receive)
        await self.app(scope, receive, send)

    def _check(self, given: Given) -> None:
        """Refuse what should not be read."""
        if len(given.hosts) > 1 or (not given.hosts and given.version != "1.0"):
            detail = f"A request has one header Host; this one has {len(given.hosts)}."
            raise Refused(400, "Invalid host", detail)
        if self._open and not all(OURS.fullmatch(host) for host in given.hosts or [b""]):
            detail = "Without keys this service answers to localhost, 127.0.0.1 and [::1] only."
            hint = "Use one of these names, or make a key and name the address to listen on."
            raise Refused(421, "Misdirected request", detail, hint)
        if given.coding or given.transfer not in (b"", b"chunked"):
            hint = "Send the body as it is, without Content-Encoding."
            raise Refused(415, "Unsupported encoding", "Bodies may not be compressed.", hint)
        if given.length > self._limits.body:
            raise self._too_large()

    def _limited(self, receive: Receive) -> Receive:
        """Return what gives a body as it comes, as long as it is neither too large nor too slow."""
        deadline = asyncio.get_running_loop().time() + self._limits.seconds
        size, is_whole = 0, False

        async def limited() -> Message:
            nonlocal size, is_whole
            if is_whole:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                detail = f"The body must be here within {self._limits.seconds:g} seconds."
                raise Refused(408, "Request too slow", detail) from None
            size += len(message.get("body", b""))
            if size > self._limits.body:
                raise self._too_large()
            is_whole = not message.get("more_body", False)
            return message

        return limited

    def _too_large(self) -> Refused:
        detail = f"A body may have {self._limits.body} bytes."
        return Refused(413, "Body too large", detail, "Send it in parts.")


class Given:
    """The headers of a request that say where it goes and what its body is."""

    def __init__(self, scope: Scope) -> None:
        self.version: str = scope.get("http_version", "1.1")
        self.hosts: list[bytes] = []
        self.length, self.transfer, self.coding = 0, b"", b""
        for name, value in scope["headers"]:
            if name == b"host":
                self.hosts.append(value)
            elif name == b"content-length":
                self.length = int(value)
            elif name == b"transfer-encoding":
                self.transfer += value.strip().lower()
            elif name == b"content-encoding" and value.strip().lower() != b"identity":
                self.coding = value
