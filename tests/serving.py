"""Services for tests, on ports of their own: in a thread of this process, or as processes."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import uvicorn

from multiplay.service.app import create_app
from multiplay.service.settings import Settings

PATIENCE = 60.0  # seconds
LISTENS = re.compile(r'"url": "(http://[^"]*:(\d+))"')


@contextmanager
def serving(store: str, open: bool = True) -> Iterator[str]:
    """Serve the studies of a store until the end of the block; give the address."""
    app = create_app(Settings(store=store, open=open))
    config = uvicorn.Config(app, port=0, log_level="warning", access_log=False, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        end = time.monotonic() + PATIENCE
        while not server.started:
            assert thread.is_alive(), "the service has not started"
            assert time.monotonic() < end, "the service does not start"
            time.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        app.state.stopping.set()  # streams of events end
        server.should_exit = True
        thread.join(PATIENCE)


class Served:
    """``multiplay serve`` as processes of its own, which may be killed and started again.

    Parameters
    ----------
    store
        The URL or the path of the store.
    log
        The file to which the service writes what it has to say.
    options
        More of the command.
    """

    def __init__(self, store: str | Path, log: Path, *options: str) -> None:
        self._log, self._port = log, "0"
        self._command = [sys.executable, "-m", "multiplay", "serve", "--store", f"{store}"]
        self._command += options
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()

    def start(self) -> None:
        """Start it, on the port that it had before, and wait until it listens."""
        said = self.log.count("\n")
        with self._log.open("ab") as file:
            self.process = subprocess.Popen(
                [*self._command, "--port", self._port],
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,
            )
        end = time.monotonic() + PATIENCE
        while not (found := LISTENS.search("\n".join(self.log.split("\n")[said:]))):
            assert self.process.poll() is None, f"the service has ended: {self.log[-2000:]}"
            assert time.monotonic() < end, "the service does not start"
            time.sleep(0.05)
        self.url, self._port = found[1], found[2]

    def kill(self) -> None:
        """Kill all of its processes at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Ask it to stop; return its exit code."""
        self.process.terminate()
        return self.process.wait(PATIENCE)

    @property
    def log(self) -> str:
        """All that it said."""
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""
