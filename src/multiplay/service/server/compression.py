"""Answers made smaller for clients that accept it: JSON and files, never pages or streams."""

from __future__ import annotations

import asyncio
import re
import zlib

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SMALLEST = 1_024  # bytes that are worth it
LARGE = 65_536  # bytes that are left to a thread, so that others do not wait
LEVEL = 5
GZIP = 16 + zlib.MAX_WBITS
# A page has a token in it that is a secret. Compressed with words of a stranger it could be
# guessed from the length, so pages are sent as they are.
KINDS = re.compile(
    rb"(application/(json|problem\+json|javascript)|text/(css|javascript|plain)|image/svg\+xml)"
    rb"(;.*)?"
)
VARY = (b"vary", b"Accept-Encoding")


class Compression:
    """Compresses answers that are worth it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "http":
            send = Answer(scope, send).send
        await self.app(scope, receive, send)


class Answer:
    """An answer on its way: its beginning waits until the first part of the body is known."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send = scope, send
        self._start: Message | None = None
        self._squeeze: zlib._Compress | None = None

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            if _suits(message):
                message["headers"] = [*message["headers"], VARY]
                self._start = message
                return
        elif self._start is not None:
            start, self._start = self._start, None
            if _is_worth_it(message) and _accepts_gzip(self._scope):
                self._squeeze = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
                await self._make_smaller(message)
                _say_so(start, message)
            await self._send(start)
        elif self._squeeze is not None:
            await self._make_smaller(message)
        await self._send(message)

    async def _make_smaller(self, message: Message) -> None:
        body, last = message.get("body", b""), not message.get("more_body", False)
        if len(body) < LARGE:
            message["body"] = self._squeezed(body, last)
        else:
            message["body"] = await asyncio.to_thread(self._squeezed, body, last)

    def _squeezed(self, body: bytes, last: bool) -> bytes:
        assert self._squeeze is not None
        mode = zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH
        return self._squeeze.compress(body) + self._squeeze.flush(mode)


def _suits(start: Message) -> bool:
    """Say whether an answer is of a kind that may be compressed, and is not yet."""
    if start["status"] in (204, 206, 304):
        return False
    headers = dict(start.get("headers", ()))
    kind = headers.get(b"content-type", b"")
    return b"content-encoding" not in headers and KINDS.fullmatch(kind) is not None


def _is_worth_it(first: Message) -> bool:
    return first.get("more_body", False) or len(first.get("body", b"")) >= SMALLEST


def _say_so(start: Message, first: Message) -> None:
    """Change the headers of an answer to what its body is now."""
    headers = MutableHeaders(raw=start["headers"])
    headers["content-encoding"] = "gzip"
    if first.get("more_body", False):
        del headers["content-length"]
    else:
        headers["content-length"] = str(len(first["body"]))
    if headers.get("etag", "").startswith('"'):  # other bytes: it is not the very same any more
        headers["etag"] = "W/" + headers["etag"]


def _accepts_gzip(scope: Scope) -> bool:
    """Say whether a client takes gzip; ``gzip;q=0`` says that it does not."""
    if scope["method"] == "HEAD":  # no body, and the length of one that would not be sent
        return False
    given = b",".join(value for name, value in scope["headers"] if name == b"accept-encoding")
    for choice in given.lower().split(b","):
        coding, _, weight = choice.replace(b" ", b"").partition(b";")
        if coding == b"gzip":
            return not re.fullmatch(rb"q=0(\.0*)?", weight)
    return False
