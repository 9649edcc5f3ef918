"""A connection that does not wait for ever: for headers, for the end of a body, for a reader."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httptools
from starlette.responses import Response
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from multiplay.service.api.problems import problem
from multiplay.service.server.middleware import new_id, with_safe_headers
from multiplay.service.studies.limits import ServiceLimits

PIPELINED = 16  # requests that may wait behind one that is being answered
LINGER = 10.0  # seconds in which a client that was answered may still send what nobody reads
LEAST = 65_536  # bytes that a client must take within the seconds of the limits

BAD = (400, "Malformed request", "This is not a request in HTTP/1.1.")
BUSY = (503, "Too many connections", "The service has all the connections that it can have.")

log = logging.getLogger("multiplay.service")


class LimitedConfig(Config):
    """How uvicorn serves, and what a connection may take."""

    limits: ServiceLimits


class TooMuch(Exception):
    """Headers are larger than they may be, or too many requests came at once."""


class Connection(HttpToolsProtocol):
    """Hangs up on clients that send too slowly, send too much before a body, or do not read.

    A clock runs while the connection waits for bytes that are not the body of a request that is
    being answered: whoever answers a request waits for its body himself.
    """

    def __init__(
        self,
        config: LimitedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.limits = config.limits
        self._clock: asyncio.TimerHandle | None = None
        self._reader: asyncio.TimerHandle | None = None  # looks whether the client still reads
        self._unsent = 0  # bytes that were not taken when it looked last
        self._unread = 0  # bytes of which nothing came out yet: a header, say, without its end
        self._size = 0  # bytes of the headers
        self._in_headers, self._is_whole = False, True
        self._refusal: tuple[int, str, str] | None = None
        self._is_left = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        super().connection_made(transport)
        self._start_clock()
        if len(self.connections) > self.limits.connections:
            self._refuse(BUSY)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._stop_clock()
        self._stop_reader()
        super().connection_lost(exc)

    # what comes in

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        if self._is_left:
            return
        self._unread += len(data)
        if not self._is_answering():
            self._start_clock()
        self._unset_keepalive_if_required()
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._refuse(self._refusal or BAD)
        if self._unread > self.limits.headers:
            self._refuse(self._too_large())

    def _feed(self, data: bytes) -> None:
        """Read what came.

        Some clients offer another protocol with a request, and send its body in any case. The
        parser believes that the body is of that protocol already, so it is given the request again
        without the offer.
        """
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as offer:
                data = self._head_without_offer() + data[offer.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn

    def _head_without_offer(self) -> bytes:
        method = self.parser.get_method()
        if method == b"CONNECT":  # nothing but the offer
            raise httptools.HttpParserError
        version = self.parser.get_http_version().encode()
        headers = [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([method + b" " + self.url + b" HTTP/" + version, *headers, b"", b""])

    def on_message_begin(self) -> None:
        """Begin a request."""
        if len(self.pipeline) >= PIPELINED:
            raise TooMuch
        self._unread = self._size = 0
        self._in_headers, self._is_whole = True, False
        self._start_clock()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those behind a body would change what was checked already."""
        if self._in_headers:
            self._count(len(name) + len(value) + len(b": \r\n"))
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer."""
        self._in_headers, self._unread = False, 0
        if not self.parser.should_upgrade():
            self._stop_clock()
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        if not self.parser.should_upgrade():
            self._is_whole, self._unread = True, 0
            super().on_message_complete()

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > self.limits.headers:
            self._refusal = self._too_large()
            raise TooMuch

    # what goes out

    def on_response_complete(self) -> None:
        """Go on to the next request, or to what is left of this one."""
        super().on_response_complete()
        if self._is_answering():
            return
        self._start_reader()
        if not self._is_whole and not self._in_headers:
            self._leave()

    def pause_writing(self) -> None:
        """Wait for a client to read."""
        super().pause_writing()
        self._start_reader()

    def resume_writing(self) -> None:
        """Go on: the client reads."""
        super().resume_writing()
        self._stop_reader()
        if not self._is_answering():  # the rest of an answer must be taken as well
            self._start_reader()

    # clocks

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_clock(self) -> None:
        if self._clock is None:
            self._clock = self.loop.call_later(self.limits.seconds, self._be_too_slow)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _be_too_slow(self) -> None:
        self._clock = None
        if self._in_headers:
            detail = f"The headers must be here within {self.limits.seconds:g} seconds."
            self._refuse((408, "Request too slow", detail))
        elif not self.transport.is_closing():
            self.transport.close()
            self._start_reader()

    def _start_reader(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        if self._reader is None and unsent:
            self._unsent = unsent
            self._reader = self.loop.call_later(self.limits.seconds, self._look_at_reader)

    def _stop_reader(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None

    def _look_at_reader(self) -> None:
        """Hang up if a client takes next to nothing of what is there for it."""
        self._reader = None
        unsent = self.transport.get_write_buffer_size()
        if unsent and unsent > self._unsent - LEAST:
            log.info("not read", extra={"fields": {"bytes": unsent, "client": self._client()}})
            self.transport.abort()
        else:
            self._start_reader()

    # refusals

    def _too_large(self) -> tuple[int, str, str]:
        detail = f"All headers may have {self.limits.headers} bytes."
        return 431, "Headers too large", detail

    def _refuse(self, reason: tuple[int, str, str]) -> None:
        """Say why, and hang up as soon as the client can have read it."""
        if self._is_left or self.transport.is_closing():
            return
        self._is_left = True
        status, title, detail = reason
        id = new_id()
        fields = {"id": id, "status": status, "why": title, "client": self._client()}
        log.info("refused", extra={"fields": fields})
        if self._is_answering():  # what we say would be read as part of another answer
            self.transport.close()
            self._start_reader()
            return
        self.transport.write(self._written(problem(status, title, detail, request_id=id), id))
        self._leave()

    def _leave(self) -> None:
        """Close the connection after a while, in which the client may still send what it will.

        Were it closed while a client sends, our answer could be lost with it.
        """
        if self.transport.is_closing():
            return
        self._is_left = True
        self._stop_clock()
        self._unset_keepalive_if_required()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._clock = self.loop.call_later(LINGER, self.transport.abort)

    def _client(self) -> str | None:
        return self.client[0] if self.client else None

    def _written(self, answer: Response, id: str) -> bytes:
        own = [*self.server_state.default_headers, (b"connection", b"close")]
        headers = with_safe_headers([*own, *answer.raw_headers], id)
        lines = [name + b": " + value + b"\r\n" for name, value in headers]
        return b"".join([STATUS_LINE[answer.status_code], *lines, b"\r\n", bytes(answer.body)])
