"""Processes of this machine: started with what they need, and kept from one run to the next."""

import multiprocessing
import os
import signal
import sys
import sysconfig
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import process
from multiprocessing.context import BaseContext
from typing import Any

from multiplay._support.checks import positive_integer

MOST_JOBS = 10_000
IDLE = 300.0  # seconds for which processes are kept without work
NEEDED = "multiplay.simulation.block"  # all that a worker imports
READ_ONCE = ("NUMBA", "OMP", "OPENBLAS", "MKL", "PYTHON")  # variables that libraries read at first
INSTALLED = tuple(sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib"))


class LocalProcesses(ProcessPoolExecutor):
    """A pool of processes that is gone at once when something goes wrong."""

    def __init__(self, jobs: int) -> None:
        self.size = self.lent = positive_integer(
            "jobs", jobs, "Give a positive integer; each job is a process.", MOST_JOBS
        )
        self.path, self.variables, self.edited = list(sys.path), _variables(), _edited()
        self.idle = threading.Timer(IDLE, release, [self])
        super().__init__(jobs, mp_context=_start_method(), initializer=_begin, initargs=(__file__,))

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool | None:
        if kind is not None:
            self.stop()
        return super().__exit__(kind, error, trace)

    def stop(self) -> None:
        """End all processes, whatever they are doing."""
        for worker in self.workers():
            worker.terminate()
        self.shutdown()

    def workers(self) -> list[process.BaseProcess]:
        """Return the processes that have been started."""
        return list((self._processes or {}).values())

    def is_good_for(self, jobs: int) -> bool:
        """Say whether so many jobs find here what they would find in new processes."""
        edited, known = _edited(), self.edited
        self.edited = known | edited
        return (
            jobs <= self.size
            and not self._broken
            and all(worker.is_alive() for worker in self.workers())
            and self.path == sys.path
            and self.variables == _variables()
            and all(edited.get(file, when) == when for file, when in known.items())
        )


# ---------------------------------------------------------------- kept between runs

_lock = threading.Lock()
_kept: LocalProcesses | None = None


@contextmanager
def lent_processes(jobs: int) -> Iterator[LocalProcesses]:
    """Lend processes to a run: those of the run before, if they are good for it.

    Who has them has them alone, and others start their own: a run waits for nobody.
    """
    pool = _take(jobs) or LocalProcesses(jobs)
    pool.lent = jobs
    try:
        yield pool
    except BaseException:
        pool.stop()
        raise
    _keep(pool)


def release(pool: LocalProcesses | None = None) -> None:
    """End the processes that are kept; if a pool is given, only if it is that one."""
    global _kept
    with _lock:
        if pool is not None and pool is not _kept:
            return
        pool, _kept = _kept, None
    _end(pool)


def _take(jobs: int) -> LocalProcesses | None:
    global _kept
    with _lock:
        pool, _kept = _kept, None
    if pool is None:
        return None
    pool.idle.cancel()
    if pool.is_good_for(jobs):
        return pool
    _end(pool)
    return None


def _keep(pool: LocalProcesses) -> None:
    global _kept
    pool.idle = threading.Timer(IDLE, release, [pool])
    pool.idle.daemon = True
    pool.idle.start()
    with _lock:
        before, _kept = _kept, pool
    _end(before)  # of a run beside this one


def _end(pool: LocalProcesses | None) -> None:
    if pool is not None:
        pool.idle.cancel()
        pool.shutdown(wait=False)


# ---------------------------------------------------------------- what processes begin with


def _edited() -> dict[str, int]:
    """Return when the files of all modules that are not installed were written.

    A process that has imported one of them would go on with what was in it.
    """
    found = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not file.startswith(INSTALLED):
            with suppress(OSError):
                found[file] = os.stat(file).st_mtime_ns
    return found


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(READ_ONCE)}


_variables_of_server: dict[str, str] | None = None
_forked = False
_of_parent: list[LocalProcesses] = []


def _start_method() -> BaseContext:
    """Return how to start processes: by a server that has imported once, and forks.

    It has no threads. A fork of this process would copy whatever locks other threads hold. Where
    there can be no such server, or it began with other variables, each process imports for itself.
    """
    global _variables_of_server
    if _forked or "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    if _variables_of_server is None:
        _variables_of_server = _variables()
        multiprocessing.set_forkserver_preload([NEEDED])
    same = _variables_of_server == _variables()
    return multiprocessing.get_context("forkserver" if same else "spawn")


def _begin(home: str) -> None:
    """Begin a worker: it never hears of Ctrl-C, and is gone when its program is."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if home != __file__:  # the server found another multiplay than the program did
        for name in [name for name in sys.modules if name.partition(".")[0] == "multiplay"]:
            del sys.modules[name]


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _forget() -> None:
    """Leave the processes of the parent to the parent, after a fork; the server is its own too."""
    global _lock, _kept, _forked
    _lock, _forked = threading.Lock(), True
    if _kept is not None:
        process._children.difference_update(_kept.workers())  # type: ignore[attr-defined]
        _of_parent.append(_kept)  # for throwing it away would end it
        _kept = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back while processes start: they inherit that, and never hear of it at all.

    A mask is that of one thread: where another one takes the signal, the handler waits as well.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    heard: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    waits = threading.current_thread() is threading.main_thread() and handler is not None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if waits:
        signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        yield
    finally:
        if waits:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if heard:
            signal.raise_signal(signal.SIGINT)
