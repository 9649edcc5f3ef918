"""Services for tests, on free ports: in a thread of this process, or as processes."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Self

import uvicorn
from effort import TIME_LIMIT

import multiplay as mp
from multiplay.service.server.run import FACTORY, address, bound, uvicorn_config
from multiplay.service.server.workers import environment
from multiplay.service.settings import VARIABLE, Settings

LISTENS = re.compile(r'"url": "(http://[^"]*)"')


class Server(uvicorn.Server):
    """A server in a thread: it sets an event when it is ready, and ends streams when it stops."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.loaded_app.state.manager.stopping.set()
        await super().shutdown(sockets)


@contextmanager
def serving(store: str | PathLike[str], **settings: Any) -> Iterator[str]:
    """Serve the studies of a store until the end of the block; yield the URL."""
    chosen = Settings(store=str(store), **settings)
    with bound("127.0.0.1", chosen.port if "port" in settings else 0) as listener:
        server = Server(uvicorn_config(chosen, FACTORY))
        thread = threading.Thread(target=server.run, args=([listener],))
        with environment(VARIABLE, chosen.to_text()):
            thread.start()
            started = server.ready.wait(TIME_LIMIT)
        try:
            assert started, "the service has not started"
            yield address(listener)
        finally:
            server.should_exit = True
            thread.join(TIME_LIMIT)


def connected(url: str, **options: Any) -> mp.RemoteStudy:
    """Return a study of a service that may compile its kernels first, on a busy machine."""
    return mp.connect(url, timeout=TIME_LIMIT, patience=TIME_LIMIT, **options)


class Served:
    """``multiplay serve`` in separate processes, which can be killed and started again.

    Parameters
    ----------
    store
        The URL or the path of the store.
    log
        The file for the log of the service.
    options
        More options of the command.
    """

    def __init__(self, store: str | Path, log: Path, *options: str) -> None:
        self._log, self._held = log, bound("127.0.0.1", 0)  # no other program gets its port
        self._command = [sys.executable, "-m", "multiplay", "serve", "--store", f"{store}"]
        self._command += ["--port", f"{self._held.getsockname()[1]}", *options]
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()
        self._held.close()

    def start(self) -> None:
        """Start the service, always on the same port, and wait until it listens."""
        lines = self.log.count("\n")
        with self._log.open("ab") as file:
            self.process = subprocess.Popen(
                self._command,
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,
            )
        end = time.monotonic() + TIME_LIMIT
        while not (found := LISTENS.search("\n".join(self.log.split("\n")[lines:]))):
            assert self.process.poll() is None, f"the service has ended: {self.log[-2000:]}"
            assert time.monotonic() < end, "the service does not start"
            time.sleep(0.05)
        self.url = found[1]

    def kill(self) -> None:
        """Kill all processes of the service."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Stop the service; return its exit code."""
        self.process.terminate()
        return self.process.wait(TIME_LIMIT)

    @property
    def log(self) -> str:
        """The text of the log."""
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""
