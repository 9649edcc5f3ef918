"""Worker processes: stopping on signals and with the parent, and the folder of their metrics.

uvicorn starts the workers and replaces those that die. A worker imports this module before it can
respond to its parent, so the module imports little.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from types import FrameType

from multiplay.service.server.metrics import FOLDER

GRACE = 30  # seconds to finish the requests that are being handled
LATER = 5  # further seconds, after which a worker without a parent is killed
STOPS = (signal.SIGTERM, signal.SIGINT)
PREFIX = "multiplay-metrics-"  # of the folder where workers write their metrics

_serves = threading.Event()  # in this process


class WorkerReady:
    """An event that any worker process sets when it serves."""

    def __init__(self) -> None:
        self._event = multiprocessing.get_context("spawn").Event()

    async def __call__(self) -> None:
        """Set the event: this process serves."""
        _serves.set()
        self._event.set()

    def then(self, act: Callable[[], None]) -> None:
        """Call a function after the event, in a thread."""

        def wait() -> None:
            self._event.wait()
            act()

        threading.Thread(target=wait, daemon=True).start()


@contextmanager
def stopping_on_signals(event: asyncio.Event, drain: float = 0.0) -> Iterator[None]:
    """Set an event when this process shall stop, so that streams without an end stop.

    After the first signal it serves for ``drain`` more seconds, in which a proxy finds out that it
    is not ready, and sends requests elsewhere. In a worker process, the end of the parent is a
    signal to stop. In a thread, nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def later(stop: Callable[[], object]) -> None:
        loop.call_soon_threadsafe(loop.call_later, drain, stop)

    with signals_handled(lambda: loop.call_soon_threadsafe(event.set), later if drain else None):
        if (parent := multiprocessing.parent_process()) is not None:
            threading.Thread(target=_stop_with, args=[parent, drain], daemon=True).start()
        yield


@contextmanager
def signals_handled(
    act: Callable[[], object], later: Callable[[Callable[[], object]], object] | None = None
) -> Iterator[None]:
    """Call a function when a signal to stop arrives, before the handler that is installed.

    That one is given to ``later`` at the first signal, and called at once at each further signal.

    A terminal interrupts a worker and its parent, which terminates the worker: either signal can
    arrive first. uvicorn drops open requests at an interrupt that is not the first signal, so the
    first interrupt of a worker is handled as SIGTERM.
    """
    before = {one: signal.getsignal(one) for one in STOPS}
    is_worker = multiprocessing.parent_process() is not None
    first = {signal.SIGINT: signal.SIGTERM} if is_worker else {}
    delays = [] if later is None else [later]

    def handle(number: int, frame: FrameType | None) -> None:
        act()
        received = signal.Signals(number)
        passed_on = first.pop(received, received)
        handler = before[passed_on]
        if callable(handler):
            call = partial(handler, passed_on, frame)
            delays.pop()(call) if delays else call()

    for one in STOPS:
        signal.signal(one, handle)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextmanager
def called_in_thread(act: Callable[[], object]) -> Iterator[Callable[[], object]]:
    """Return a function that a signal handler may call: it has a thread call ``act``.

    ``act`` may take locks, which a signal handler must not: it can interrupt their owner.
    """
    requests: SimpleQueue[bool] = SimpleQueue()  # its ``put`` is reentrant

    def wait() -> None:
        while requests.get():
            act()

    threading.Thread(target=wait, daemon=True).start()
    try:
        yield lambda: requests.put(True)
    finally:
        requests.put(False)


def _stop_with(parent: BaseProcess, drain: float) -> None:
    """Stop this process when its parent has ended without stopping it.

    A process that does not serve yet has no requests to finish, and ends at once.
    """
    parent.join()
    shutil.rmtree(os.environ.get(FOLDER, ""), ignore_errors=True)
    if not _serves.is_set():
        os._exit(0)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(drain + GRACE + LATER)
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def metrics_folder() -> Iterator[None]:
    """Create a folder where workers write their metrics, so that each can return the sums."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, environment(FOLDER, name):
        yield


@contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    """Set a variable for processes that are started in the block."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
