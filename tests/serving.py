"""A service for tests: in a thread of this process, on a port of its own."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from multiplay.service.app import create_app
from multiplay.service.settings import Settings

PATIENCE = 60.0  # seconds


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
