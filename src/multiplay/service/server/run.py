"""The service as one process or several: start, listen, and stop after open requests are done."""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from multiplay._support.checks import natural_number, positive_integer
from multiplay.errors import InvalidInput
from multiplay.service.server import logs
from multiplay.service.server.connection import LimitedConfig
from multiplay.service.server.workers import (
    GRACE,
    STOPS,
    WorkerReady,
    called_in_thread,
    environment,
    metrics_folder,
    signals_handled,
)
from multiplay.service.settings import VARIABLE, Settings
from multiplay.storage import store_at

FACTORY = "multiplay.service.app:app_from_environment"
IDLE = 30  # seconds that a connection may wait for its next request
BACKLOG = 2_048  # connections that are not accepted yet
RESPONSIVE = 30  # seconds in which a worker must respond to its parent
MOST_WORKERS = 1_000
FAILED = 3  # the exit code of a process that cannot start, as that of uvicorn

log = logging.getLogger("multiplay.service")


def serve(
    settings: Settings,
    announce: Callable[[str], None] = lambda url: None,
    factory: str = FACTORY,
) -> None:
    """Serve until SIGTERM or SIGINT, and finish the requests that are being handled then.

    Parameters
    ----------
    settings
        The settings; port 0 is any free port.
    announce
        Called with the address, as soon as a process serves; in another thread if there are
        several.
    factory
        Makes the ASGI application, as "module:function"; the environment variable
        ``settings.VARIABLE`` has the settings.
    """
    positive_integer("workers", settings.workers, "Use the number of processes.", MOST_WORKERS)
    check_store(settings.store)
    try:
        with bound(settings.host, settings.port) as listener:
            listener.listen(BACKLOG)
            with environment(VARIABLE, settings.to_text()):
                announcement = _Announcement(listener, settings.workers, announce)
                if settings.workers == 1:
                    _serve(settings, factory, listener, announcement)
                else:
                    _serve_with_workers(settings, factory, listener, announcement)
        log.info("stopped")
    finally:
        logs.flush()


def check_store(store: str) -> None:
    """Raise an error if the store cannot be opened: no worker could start."""
    opened = store_at(store)
    with closing(opened.keyring()) as keyring:
        keyring.is_empty()


def uvicorn_config(
    settings: Settings,
    factory: str,
    log_config: dict[str, Any] | None = None,
    ready: Callable[[], Awaitable[None]] | None = None,
) -> uvicorn.Config:
    """Return the configuration of uvicorn; ``ready`` is called when it serves, and repeatedly."""
    return LimitedConfig(
        factory,
        factory=True,
        interface="asgi3",
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=log_config,
        access_log=False,
        workers=settings.workers,
        proxy_headers=False,  # any client can send them
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=GRACE,
        timeout_worker_healthcheck=RESPONSIVE,
        callback_notify=ready,
    )


class _Announcement:
    """The announcement of the address, made once."""

    def __init__(
        self, listener: socket.socket, workers: int, announce: Callable[[str], None]
    ) -> None:
        self._url, self._workers, self._announce = address(listener), workers, announce
        self._is_made = False

    def make(self) -> None:
        """Announce the address, unless that was done."""
        if not self._is_made:
            self._is_made = True
            fields = {"url": self._url, "workers": self._workers}
            log.info("listening", extra={"fields": fields})
            self._announce(self._url)

    async def ready(self) -> None:
        """Announce the address: the server in this process serves."""
        self.make()


def _serve(
    settings: Settings, factory: str, listener: socket.socket, announcement: _Announcement
) -> None:
    """Serve in this process."""
    config = uvicorn_config(settings, factory, logs.CONFIG, announcement.ready)
    server = uvicorn.Server(config)

    def stop(number: int, frame: FrameType | None) -> None:
        server.should_exit = True

    # These handlers are called before those of the server are installed, and again after it has
    # stopped: it raises the signals again, which must not end this process.
    before = {one: signal.signal(one, stop) for one in STOPS}
    try:
        server.run([listener])
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _serve_with_workers(
    settings: Settings, factory: str, listener: socket.socket, announcement: _Announcement
) -> None:
    """Serve in worker processes, and replace those that die."""
    ready = WorkerReady()
    config = uvicorn_config(settings, factory, logs.CONFIG, ready)
    logging.getLogger("uvicorn.error").setLevel(logging.INFO)  # workers that die
    with metrics_folder():
        supervisor = Multiprocess(config, [listener])
        ready.then(announcement.make)

        def stop() -> None:
            # The supervisor looks at its signals only after it has replaced the workers that
            # ended, which must not happen once the listener is closed: it keeps that open.
            supervisor.should_exit.set()
            listener.close()

        with called_in_thread(stop) as request_stop, signals_handled(request_stop):
            supervisor.run()
        if any(worker.process.exitcode == FAILED for worker in supervisor.processes):
            sys.exit(FAILED)


def bound(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address of this machine.

    Examples
    --------
    >>> bound("127.0.0.1", 70000)
    Traceback (most recent call last):
    ...
    multiplay.errors.InvalidInput: port: expected a whole number from 0 to 65535, got 70000. \
Choose another port.
    """
    another = "Choose another port."
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
        if os.name == "posix":  # on Windows it would let two programs use one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        return listener
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            hint = "Stop the other program, or choose another port: 0 is any free port."
            raise InvalidInput("port", "a free port", f"{port}, which is in use", hint) from None
        if error.errno == errno.EACCES:
            got = f"{port}, which this user may not use"
            raise InvalidInput("port", "a free port", got, "Choose one above 1023.") from None
        raise _no_address(host, error) from None


def _no_address(host: str, error: OSError) -> InvalidInput:
    got = f"{host!r} ({error.strerror})"
    return InvalidInput("host", "an address of this machine", got, "Try 127.0.0.1.")


def address(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
