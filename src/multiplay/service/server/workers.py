"""Worker processes and their parent: one that dies is replaced, and none outlives the parent."""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from prometheus_client.multiprocess import mark_process_dead

from multiplay.service.server.metrics import FOLDER

GRACE = 30  # seconds to finish what is being answered
LATER = 5  # seconds after which nobody is waited for any more
PAUSES = (1, 2, 5, 10, 30)  # seconds before another try, of a worker that does not begin
FAILED = 3  # the exit code of a process that could not begin, as that of uvicorn
STOPS = (signal.SIGTERM, signal.SIGINT)
PREFIX = "multiplay-measures-"  # of the folder where workers write what they measure

SPAWN = multiprocessing.get_context("spawn")

log = logging.getLogger("multiplay.service")


class Parent:
    """The parent of a worker, as the worker sees it."""

    def __init__(self, line: Connection) -> None:
        self._line = line

    def ready(self) -> None:
        """Say that this worker answers."""
        self._line.send(None)

    def fail(self, error: Exception) -> None:
        """Say why this worker cannot begin."""
        self._line.send(error)

    def watch(self, stop: Callable[[], None]) -> None:
        """Stop when the parent wishes it or is gone, and leave in any case a while after it."""
        threading.Thread(target=self._watch, args=[stop], daemon=True).start()

    def _watch(self, stop: Callable[[], None]) -> None:
        try:
            self._line.recv()
        except (EOFError, OSError):  # killed: nobody else will tidy up
            shutil.rmtree(os.environ[FOLDER], ignore_errors=True)
        stop()
        time.sleep(GRACE + LATER)
        logging.shutdown()
        os._exit(1)


class Worker:
    """A worker, as the parent sees it."""

    def __init__(self, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.line, end = SPAWN.Pipe()
        self.process: BaseProcess = SPAWN.Process(target=work, args=(*arguments, Parent(end)))
        with _held_back(signal.SIGINT):  # Ctrl-C is for the parent, which tells the workers
            self.process.start()
        end.close()  # so that the end of the worker is the end of the line
        self.is_ready = False

    def stop(self) -> None:
        """Let it finish what it answers; one that answers nothing yet is not waited for."""
        if not self.is_ready:
            self.process.kill()
            return
        with suppress(OSError):  # it ended by itself
            self.line.send(None)


class Workers:
    """Keeps a number of worker processes at work until SIGTERM or SIGINT.

    Parameters
    ----------
    count
        How many.
    work
        What each does, at the top level of a module.
    arguments
        Of ``work``; a ``Parent`` follows them.
    """

    def __init__(self, count: int, work: Callable[..., None], *arguments: Any) -> None:
        self._count, self._work, self._arguments = count, work, arguments
        self._workers: list[Worker] = []
        self._due: list[float] = []  # when workers are to be started
        self._tries = 0  # that failed, one after the other
        self._was_ready = False

    def run(self, ready: Callable[[], None], stopping: Callable[[], None]) -> None:
        """Work; ``ready`` is called once all workers answer, ``stopping`` when they shall end."""
        with _wishes() as wish, _measures() as folder:
            self._due = [time.monotonic()] * self._count
            try:
                while not wish.poll():
                    self._start_those_due()
                    self._wait(wish, folder)
                    if not self._was_ready and self._all_ready():
                        self._was_ready = True
                        ready()
            finally:
                stopping()
                self._end(wish)

    def _all_ready(self) -> bool:
        return len(self._workers) == self._count and all(one.is_ready for one in self._workers)

    def _start_those_due(self) -> None:
        now = time.monotonic()
        for due in [due for due in self._due if due <= now]:
            self._due.remove(due)
            self._workers.append(Worker(self._work, self._arguments))

    def _wait(self, wish: Connection, folder: Path) -> None:
        """Wait until a worker says something or ends, one is due, or somebody wishes to stop."""
        seconds = max(0.0, min(self._due) - time.monotonic()) if self._due else None
        news = wait([wish, *(self._lines())], seconds)
        if wish.poll():  # then workers may have been told by somebody else, and end as they should
            return
        for worker in [one for one in self._workers if one.line in news]:
            try:
                said = worker.line.recv()
            except (EOFError, OSError):
                self._replace(worker, folder)
            else:
                if said is not None:
                    self._fail(said)
                worker.is_ready, self._tries = True, 0

    def _lines(self) -> list[Connection]:
        return [worker.line for worker in self._workers]

    def _replace(self, worker: Worker, folder: Path) -> None:
        worker.process.join(LATER)
        worker.process.kill()
        worker.line.close()
        self._workers.remove(worker)
        mark_process_dead(worker.process.pid, str(folder))  # type: ignore[no-untyped-call]
        fields = {"worker": worker.process.pid, "exit code": worker.process.exitcode}
        log.error("worker ended", extra={"fields": fields})
        if worker.is_ready:
            self._due.append(time.monotonic())
        elif self._was_ready:  # what it needs is not there now, and others may still have it
            self._due.append(time.monotonic() + PAUSES[min(self._tries, len(PAUSES) - 1)])
            self._tries += 1
        else:
            raise SystemExit(FAILED)

    def _fail(self, error: Exception) -> None:
        if not self._was_ready:
            raise error
        log.error("worker cannot begin", extra={"fields": {"why": str(error)}})

    def _end(self, wish: Connection) -> None:
        """Wait for the workers to finish; whoever presses Ctrl-C once more does not wait."""
        deadline = time.monotonic() + GRACE + LATER
        while wish.poll():
            wish.recv()
        for worker in self._workers:
            worker.stop()
        while ends := [one.process.sentinel for one in self._workers if one.process.is_alive()]:
            news = wait([wish, *ends], max(0.0, deadline - time.monotonic()))
            if not news or (wish in news and wish.recv() == signal.SIGINT):
                for worker in self._workers:
                    worker.process.kill()
                break
        for worker in self._workers:
            worker.process.join()
            worker.line.close()


@contextmanager
def _wishes() -> Iterator[Connection]:
    """Give what can be read as soon as somebody wishes to stop."""
    wish, write = SPAWN.Pipe(duplex=False)
    before = {one: signal.signal(one, lambda number, frame: write.send(number)) for one in STOPS}
    try:
        yield wish
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        write.close()
        wish.close()


@contextmanager
def _measures() -> Iterator[Path]:
    """Give a folder where workers write what they measure, so that each can show the sum."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, environment(FOLDER, name):
        yield Path(name)


@contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    """Set a variable for processes that are started in the meantime."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextmanager
def _held_back(one: signal.Signals) -> Iterator[None]:
    """Keep a signal from processes that are started in the meantime; here it comes after it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # would let the signal through as it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [one])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
