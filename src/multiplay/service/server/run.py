"""The service as a process, or as several: it begins, answers, and stops without losing a word."""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from multiplay._support.checks import natural_number, positive_integer
from multiplay.errors import InvalidInput, StoreError
from multiplay.service.server import logs
from multiplay.service.server.connection import Connection, LimitedConfig
from multiplay.service.server.workers import FAILED, GRACE, STOPS, Parent, Workers, environment
from multiplay.service.settings import VARIABLE, Settings

FACTORY = "multiplay.service.app:app_from_environment"
IDLE = 30  # seconds that a connection may wait for its next request
QUEUE = 2_048  # connections that nobody took yet
MOST_WORKERS = 1_000

log = logging.getLogger("multiplay.service")


def serve(
    settings: Settings,
    announce: Callable[[str], None] = lambda url: None,
    factory: str = FACTORY,
) -> None:
    """Serve until SIGTERM or SIGINT; requests that are being answered then are answered.

    Parameters
    ----------
    settings
        How; port 0 is any that is free.
    announce
        Is given the address as soon as it answers.
    factory
        Makes the app, as "module:function"; ``settings.VARIABLE`` of the environment has the
        settings. ``app.state.stopping`` is an event that is set when the service stops: streams
        that have no end of their own end then.
    """
    positive_integer("workers", settings.workers, "Give the number of processes.", MOST_WORKERS)
    listener = bound(settings.host, settings.port)
    logs.set_up()

    def ready() -> None:
        url = address(listener)
        log.info("listening", extra={"fields": {"url": url, "workers": settings.workers}})
        announce(url)

    with listener, environment(VARIABLE, settings.to_text()):
        if settings.workers == 1:
            Server(settings, factory, ready).run([listener])
        else:
            Workers(settings.workers, _work, settings, factory, listener).run(ready, listener.close)
    log.info("stopped")


class Server(uvicorn.Server):
    """Serves in this process: says when it answers, and ends streams when it stops."""

    def __init__(self, settings: Settings, factory: str, ready: Callable[[], None]) -> None:
        config = LimitedConfig(
            factory,
            factory=True,
            interface="asgi3",
            http=Connection,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            workers=settings.workers,
            proxy_headers=False,  # anybody can write them
            server_header=False,
            backlog=QUEUE,
            timeout_keep_alive=IDLE,
            timeout_graceful_shutdown=GRACE,
        )
        config.limits = settings.limits
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more requests, and finish those that are being answered."""
        self.config.loaded_app.state.stopping.set()
        await super().shutdown(sockets)

    def stop(self) -> None:
        """Begin to stop; from any thread."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on signals. To have stopped is a success, so they are not raised again after it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {one: signal.signal(one, self.handle_exit) for one in STOPS}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def _work(settings: Settings, factory: str, listener: socket.socket, parent: Parent) -> None:
    """Serve as one of several processes."""
    logs.set_up()
    server = Server(settings, factory, parent.ready)
    parent.watch(server.stop)
    try:
        server.run([listener])
    except (InvalidInput, StoreError) as error:
        parent.fail(error)
        sys.exit(FAILED)


def bound(host: str, port: int) -> socket.socket:
    """Return a socket at an address of this machine, or say why there is none.

    Examples
    --------
    >>> bound("127.0.0.1", 70000)
    Traceback (most recent call last):
    ...
    multiplay.errors.InvalidInput: port: expected a whole number from 0 to 65535, got 70000. \
Choose another one.
    """
    another = "Choose another one."
    if natural_number("port", port, another) > 65_535:
        raise InvalidInput("port", "a whole number from 0 to 65535", port, another)
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _no_address(host, error) from None
    try:
        if os.name == "posix":  # elsewhere it would let two programs have one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        return listener
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            hint = "Stop the other program, or choose another port: 0 is any that is free."
            raise InvalidInput("port", "a free port", f"{port}, which is used", hint) from None
        if error.errno == errno.EACCES:
            got = f"{port}, which this user may not use"
            raise InvalidInput("port", "a free port", got, "Choose one above 1023.") from None
        raise _no_address(host, error) from None


def _no_address(host: str, error: OSError) -> InvalidInput:
    got = f"{host!r} ({error.strerror})"
    return InvalidInput("host", "an address of this machine", got, "Try 127.0.0.1.")


def address(listener: socket.socket) -> str:
    """Return where to call."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
