"""Request limits: requests that are refused for their host, encoding, size or speed."""

from __future__ import annotations

import asyncio
import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from multiplay.service.api.problems import of_error, request_id
from multiplay.service.errors import RequestRefused
from multiplay.service.settings import Settings

# DNS rebinding: a page of another site can make a browser send requests to a domain that resolves
# to this machine. Such requests still have the name of that domain.
LOOPBACK = re.compile(rb"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.IGNORECASE)


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
