"""Connections with limits: requests whose headers are too slow or too large, and slow readers.

A connection parses what it receives, and passes complete heads and bodies on to the HTTP protocol
of uvicorn, which it wraps. So uvicorn never waits for a head.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from typing import Any, cast

import httptools
import uvicorn

from multiplay.service.api.problems import problem
from multiplay.service.errors import RequestRefused
from multiplay.service.server.middleware import CONNECTION, new_id, with_security_headers
from multiplay.service.studies.limits import ServiceLimits

LIMITS = "connection_limits"  # in the state of the application
PIPELINED = 16  # requests of one connection that may wait for their responses
LINGER = 10.0  # seconds in which a client may still send after the last response
LEAST = 65_536  # bytes that a client must read within the seconds of the limits

log = logging.getLogger("multiplay.service")


class ConnectionLimits:
    """The limits of the connections of one server, which the lifespan of its application returns.

    Attributes
    ----------
    limits : ServiceLimits
        The limits of each connection, and of their number.
    open : int
        The number of open connections.
    """

    def __init__(self, limits: ServiceLimits) -> None:
        self.limits, self.open = limits, 0


class TooManyRequests(Exception):
    """A client sent too many requests without waiting for responses."""


class HeadersTooLarge(Exception):
    """The headers of a request are larger than the limit."""


class Connection(asyncio.Protocol):
    """A connection to one client.

    It closes when the client sends its headers too slowly, sends too much before a body, or does
    not read its responses. A clock runs while the connection waits for anything but the body of a
    request in progress; the time limit of a body is middleware.

    Parameters
    ----------
    http
        Makes the HTTP protocol of uvicorn.
    app_state
        The state that the lifespan of the application returned, with ``ConnectionLimits``.
    arguments
        The other arguments of a protocol of uvicorn.
    """

    def __init__(
        self,
        http: Callable[..., asyncio.Protocol],
        *,
        app_state: dict[str, Any],
        **arguments: Any,
    ) -> None:
        state = {**app_state, CONNECTION: self}  # each request gets a copy of it
        self._http = http(app_state=state, **arguments)
        self._shared: ConnectionLimits = app_state[LIMITS]
        self._limits = self._shared.limits
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn
        self._parsed: list[bytes] = []  # not yet passed on
        self._whole = 0  # how many of them are of complete requests
        self._is_counted = False  # whether the request that is being received is in progress
        self._is_passed = False  # whether the head of an incomplete request was passed on
        self._refusal: RequestRefused | None = None  # to send after the responses in progress
        self._url, self._headers = b"", list[tuple[bytes, bytes]]()
        self._is_chunked = False
        self._in_headers, self._is_complete = False, True  # the request that is being received
        self._head_size = 0  # bytes
        self._unparsed = 0  # bytes since the last progress: of a trailer without an end, say
        self._in_progress = 0  # requests that were passed on and have no complete response
        self._is_left = False  # whatever is received is discarded
        self._clock: asyncio.TimerHandle | None = None
        self._reader_check: asyncio.TimerHandle | None = None
        self._unread = 0  # bytes that the client had not read at the last check

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the connection, or refuse it."""
        self._transport = cast(asyncio.Transport, transport)  # that of uvloop has another class
        self._http.connection_made(transport)
        self._shared.open += 1
        self._start_clock()
        if self._shared.open > self._limits.connections:
            detail = f"The service has {self._limits.connections} open connections already."
            self._refuse(RequestRefused(503, "Too many connections", detail))

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection."""
        self._shared.open -= 1
        self._stop_clock()
        self._stop_reader_check()
        self._http.connection_lost(exc)

    def eof_received(self) -> bool | None:
        """End the connection after what was sent."""
        return self._http.eof_received()

    # ------------------------------------------------------------ requests

    def data_received(self, data: bytes) -> None:
        """Parse data, and pass on what is complete."""
        if self._is_left:
            return
        self._unparsed += len(data)
        if not self._in_progress:
            self._start_clock()
        try:
            self._parse(data)
        except httptools.HttpParserError as error:
            self._end_with(self._refusal_of(error))
            return
        if self._unparsed > self._limits.headers:
            self._refuse(self._headers_too_large())
        elif self._parsed:
            parsed, self._parsed, self._whole = b"".join(self._parsed), [], 0
            self._is_passed = not self._is_complete
            self._http.data_received(parsed)

    def _parse(self, data: bytes) -> None:
        """Parse data.

        Some clients offer another protocol with a request, and send its body in any case. The
        parser treats that body as data of the other protocol, so it gets the head again without the
        offer.
        """
        while data:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as offer:
                if self._parser.get_method() == b"CONNECT":  # nothing but the offer
                    raise httptools.HttpParserError from None
                self._headers = [one for one in self._headers if one[0].lower() != b"upgrade"]
                data = self._head() + data[offer.args[0] :]
                self._parser = httptools.HttpRequestParser(self)
                self._parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def _head(self) -> bytes:
        method, version = self._parser.get_method(), self._parser.get_http_version().encode()
        lines = [name + b": " + value for name, value in self._headers]
        return b"\r\n".join([method + b" " + self._url + b" HTTP/" + version, *lines, b"", b""])

    def on_message_begin(self) -> None:
        """Start a request; called by the parser, as all methods that begin with "on_"."""
        if self._in_progress >= PIPELINED:
            raise TooManyRequests
        self._url, self._headers, self._is_chunked = b"", [], False
        self._unparsed = self._head_size = 0
        self._in_headers, self._is_complete = True, False
        self._is_counted = self._is_passed = False
        self._start_clock()

    def on_url(self, url: bytes) -> None:
        """Add a part of the URL."""
        self._url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes | None) -> None:
        """Add a header; trailers behind a body are discarded."""
        if self._in_headers:
            value = value or b""
            self._headers.append((name, value))
            self._count_head(len(name) + len(value) + len(b": \r\n"))
            if name.lower() == b"transfer-encoding":
                self._is_chunked = True

    def on_headers_complete(self) -> None:
        """Pass on the head."""
        self._in_headers, self._unparsed = False, 0
        if not self._parser.should_upgrade():
            self._stop_clock()
            self._in_progress += 1
            self._is_counted = True
            self._parsed.append(self._head())

    def on_body(self, body: bytes) -> None:
        """Pass on a part of a body."""
        self._unparsed = 0
        self._parsed.append(b"%x\r\n%b\r\n" % (len(body), body) if self._is_chunked else body)

    def on_message_complete(self) -> None:
        """Complete a request."""
        if not self._parser.should_upgrade():
            self._is_complete, self._unparsed = True, 0
            if self._is_chunked:
                self._parsed.append(b"0\r\n\r\n")
            self._whole = len(self._parsed)

    def _count_head(self, size: int) -> None:
        self._head_size += size
        if self._head_size > self._limits.headers:
            raise HeadersTooLarge

    # ------------------------------------------------------------ responses

    @property
    def is_closed(self) -> bool:
        """Whether no response can be sent any more."""
        return self._transport.is_closing()

    def response_finished(self) -> None:
        """Go on to the next request; called by middleware after each response."""
        self._in_progress -= 1
        if self._in_progress:
            return
        if self._refusal is not None:
            self._is_left = False
            self._refuse(self._refusal)
            return
        self._start_reader_check()
        if not self._is_complete and not self._in_headers:  # the rest of a body is not needed
            self._leave()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        self._http.pause_writing()
        self._start_reader_check()

    def resume_writing(self) -> None:
        """Go on writing: the client has read."""
        self._http.resume_writing()
        self._stop_reader_check()
        if not self._in_progress:  # the rest of a response must be read too
            self._start_reader_check()

    # ------------------------------------------------------------ clocks

    def _start_clock(self) -> None:
        if self._clock is None:
            self._clock = self._loop.call_later(self._limits.seconds, self._time_out)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _time_out(self) -> None:
        self._clock = None
        if self._in_headers and self._refusal is None:
            detail = f"The headers were not complete within {self._limits.seconds:g} seconds."
            self._refuse(RequestRefused(408, "Request too slow", detail))
        elif not self._transport.is_closing():
            self._transport.close()
            self._start_reader_check()

    def _start_reader_check(self) -> None:
        unread = self._transport.get_write_buffer_size()
        if self._reader_check is None and unread:
            self._unread = unread
            self._reader_check = self._loop.call_later(self._limits.seconds, self._check_reader)

    def _stop_reader_check(self) -> None:
        if self._reader_check is not None:
            self._reader_check.cancel()
            self._reader_check = None

    def _check_reader(self) -> None:
        """Close the connection if the client has read almost nothing since the last check."""
        self._reader_check = None
        unread = self._transport.get_write_buffer_size()
        if unread and unread > self._unread - LEAST:
            fields = {"bytes": unread, "client": self._client()}
            log.info("response not read", extra={"fields": fields})
            self._transport.abort()
        else:
            self._start_reader_check()

    # ------------------------------------------------------------ refusals

    def _refusal_of(self, error: httptools.HttpParserError) -> RequestRefused:
        """Return the refusal of data that cannot be parsed."""
        if isinstance(error.__context__, HeadersTooLarge):
            return self._headers_too_large()
        if isinstance(error.__context__, TooManyRequests):
            detail = f"More than {PIPELINED} requests were sent without waiting for a response."
            return RequestRefused(400, "Too many pipelined requests", detail)
        return _malformed()

    def _end_with(self, error: RequestRefused) -> None:
        """Refuse malformed data, after the responses to the complete requests before it.

        If the malformed request is being handled already, the connection is closed.
        """
        if self._is_counted and not self._is_complete:  # the error is in the body
            if self._is_passed:
                self._refuse(error)
                return
            self._in_progress -= 1
        whole, self._parsed = self._parsed[: self._whole], []
        if whole:
            self._http.data_received(b"".join(whole))
        if self._in_progress:
            self._refusal, self._is_left = error, True
            self._start_clock()  # a stream of events has no end
        else:
            self._refuse(error)

    def _headers_too_large(self) -> RequestRefused:
        detail = f"The headers have more than {self._limits.headers} bytes."
        return RequestRefused(431, "Headers too large", detail)

    def _refuse(self, error: RequestRefused) -> None:
        """Respond with a problem, and close the connection when the client can have read it."""
        if self._is_left or self._transport.is_closing():
            return
        self._is_left = True
        id = new_id()
        fields = {"id": id, "status": error.status, "reason": error.title}
        log.info("refused", extra={"fields": {**fields, "client": self._client()}})
        if self._in_progress:  # the problem would be read as part of another response
            self._transport.close()
            self._start_reader_check()
            return
        self._transport.write(_response(error, id))
        self._leave()

    def _leave(self) -> None:
        """Close the connection after a while, in which data of the client is discarded.

        If it were closed while the client sends, the response could be lost.
        """
        if self._transport.is_closing():
            return
        self._is_left = True
        self._stop_clock()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._clock = self._loop.call_later(LINGER, self._transport.abort)

    def _client(self) -> str | None:
        peer = self._transport.get_extra_info("peername")
        return str(peer[0]) if peer else None


class LimitedConfig(uvicorn.Config):
    """The configuration of uvicorn, whose connections have limits."""

    def load(self) -> None:
        """Load the application, and wrap the HTTP protocol."""
        super().load()
        self.http_protocol_class: Any = partial(Connection, self.http_protocol_class)


def _malformed() -> RequestRefused:
    return RequestRefused(400, "Malformed request", "The data is not a valid HTTP/1.1 request.")


def _response(error: RequestRefused, id: str) -> bytes:
    """Return the bytes of a response with a problem."""
    answer = problem(error.status, error.title, error.detail, request_id=id)
    own = [(b"date", formatdate(usegmt=True).encode()), (b"connection", b"close")]
    headers = with_security_headers([*own, *answer.raw_headers], id)
    status = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\n".encode()
    lines = [name + b": " + value + b"\r\n" for name, value in headers]
    return b"".join([status, *lines, b"\r\n", bytes(answer.body)])
