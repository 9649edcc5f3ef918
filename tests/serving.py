"""A service for tests: in a thread of this process, on a port of its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

from multiplay.service.server import FACTORY, Server, address, bound
from multiplay.service.settings import VARIABLE, Settings
from multiplay.service.workers import environment

PATIENCE = 60.0  # seconds


@contextmanager
def serving(store: str | PathLike[str], **settings: Any) -> Iterator[str]:
    """Serve the studies of a store until the end of the block; give the address."""
    ready = threading.Event()
    chosen = Settings(store=str(store), **settings)
    with bound("127.0.0.1", chosen.port if "port" in settings else 0) as listener:
        server = Server(chosen, FACTORY, ready.set)
        thread = threading.Thread(target=server.run, args=([listener],))
        with environment(VARIABLE, chosen.to_text()):
            thread.start()
            started = ready.wait(PATIENCE)
        try:
            assert started, "the service has not started"
            yield address(listener)
        finally:
            server.stop()
            thread.join(PATIENCE)
