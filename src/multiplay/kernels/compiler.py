"""The compiler of kernels: numba with our options, and what listens while it compiles.

It is imported when a kernel is first called: numba takes longer to import than most commands run.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

import numba
from numba.core import event
from numba.extending import intrinsic

from multiplay._support import deadline

types: Any = numba.types
carray: Callable[..., Any] = cast(Any, numba).carray
njit: Callable[..., Any] = cast(Any, numba).njit
config: Any = numba.config  # CACHE_DIR is the setting NUMBA_CACHE_DIR

MOST_WAITING = (
    60.0  # seconds for another process that compiles, within the time limit; then both do
)
STEP = 0.01  # seconds between two attempts to lock


def cached(function: Callable[..., Any], folder: Path | None, **options: Any) -> Any:
    """Compile a function, and keep the code in a folder."""
    with cached_in(folder):
        return njit(cache=folder is not None, **options)(function)


@contextmanager
def cached_in(folder: Path | None) -> Iterator[None]:
    """Let numba cache the functions that are decorated in the block in this folder."""
    before = config.CACHE_DIR
    if folder is not None:
        config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _pointer(typing: Any, array: Any, address: Any) -> Any:
    """Return the address of an array in C order as a pointer; None refuses other arrays."""
    if array.layout != "C":
        return None
    kind = types.CPointer(array.dtype)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[1], context.get_value_type(kind))

    return kind(array, address), code


pointer: Callable[..., Any] = intrinsic(_pointer)


class Compilations(event.Listener):
    """Counts the kernels that this process compiles, and says so on a terminal meanwhile."""

    def __init__(self) -> None:
        self.count = 0
        self._running = (
            threading.local()
        )  # of a thread: ``lines``, one for each kernel that it compiles

    def on_start(self, event: event.Event) -> None:
        """Show the line when the outermost kernel begins."""
        lines: list[ExitStack] = self._running.__dict__.setdefault("lines", [])
        lines.append(ExitStack())
        if len(lines) == 1:
            text = "compiling functions, once for this version"
            lines[0].enter_context(deadline.status_line(text, is_cause=True))
            self.count += 1

    def on_end(self, event: event.Event) -> None:
        """Remove the line when the outermost kernel is compiled."""
        if lines := self._running.__dict__.get("lines"):  # or it began before this listened
            lines.pop().close()


COMPILATIONS = Compilations()
event.register("numba:compile", COMPILATIONS)  # type: ignore[no-untyped-call]


def wait_for_others(path: Path) -> None:
    """Let this process lock a file while it compiles."""
    event.register("numba:compiler_lock", CompilerLock(path))  # type: ignore[no-untyped-call]


class CompilerLock(event.Listener):
    """A file that processes lock while they compile, so that each kernel is compiled once.

    A process that waited finds the kernel on disk. The lock only saves work: where files cannot be
    locked, or another process takes too long, both compile.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._threads = threading.RLock()  # taken before the lock of numba, and left after it
        self._owner: int | None = None
        self._depth = 0  # compiling a kernel compiles the subroutines that it calls
        self._file: IO[bytes] | None = None

    def on_start(self, event: event.Event) -> None:
        """Lock the file, unless this thread has done so."""
        self._threads.acquire()
        try:
            if self._depth == 0:
                self._file = _locked(self.path)
        except BaseException:  # an interrupt, while it waits
            self._threads.release()
            raise
        self._owner = threading.get_ident()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        """Unlock the file when the outermost kernel is compiled."""
        if self._owner != threading.get_ident():  # it began before kernels were imported
            return
        self._depth -= 1
        if self._depth == 0:
            self._owner = None
            if self._file is not None:
                _unlock(self._file)
                self._file = None
        self._threads.release()


def _locked(path: Path) -> IO[bytes] | None:
    """Return the open file, with a lock if it was to be had in time, or None if it has no locks."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock

        file = path.open("ab")
    except (ImportError, OSError):  # no such locks here, or the folder is gone
        return None
    until = time.monotonic() + min(MOST_WAITING, deadline.left())
    while time.monotonic() < until:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            time.sleep(STEP)
        except OSError:  # a file system without locks
            break
        else:
            break
    return file


def _unlock(file: IO[bytes]) -> None:
    """Unlock and close a file; a process that was forked meanwhile would keep the lock."""
    from fcntl import LOCK_UN, flock

    with suppress(OSError):
        flock(file, LOCK_UN)
    file.close()
