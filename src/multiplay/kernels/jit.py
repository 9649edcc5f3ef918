"""Compilation of kernels: one decorator with the options of numba, and a cache on disk."""

import hashlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import numba
from numba.core import event
from numba.extending import intrinsic

from multiplay._support import deadline

F = TypeVar("F", bound=Callable[..., Any])

types: Any = numba.types
carray: Callable[..., Any] = cast(Any, numba).carray
config: Any = numba.config  # CACHE_DIR is the setting NUMBA_CACHE_DIR

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",  # division as of IEEE
    "no_cfunc_wrapper": True,  # C does not call kernels
}
INNER = OPTIONS | {"no_cpython_wrapper": True}  # of functions that Python does not call either
PACKAGE = Path(__file__).parent
STALE = 86_400.0  # seconds without a new kernel, after which an old version of the cache is removed
MOST_WAITING = (
    60.0  # seconds for another process that compiles, within the time limit; then both do
)
STEP = 0.01  # seconds between two attempts to lock


def kernel(function: F) -> F:
    """Compile a function that Python calls: cached on disk, without the interpreter lock."""
    folder = cache_folder()
    with cached_in(folder):
        return cast(F, numba.njit(cache=folder is not None, **OPTIONS)(function))


def subroutine(function: F) -> F:
    """Compile a function that only kernels call: the compiled kernels contain it."""
    return cast(F, numba.njit(**INNER)(function))


def part(function: F) -> F:
    """Make a piece of kernels, which is written into each of them: some run faster than a call."""
    return cast(F, numba.njit(inline="always", **OPTIONS)(function))


def _pointer(typing: Any, array: Any, address: Any) -> Any:
    """Return the address of an array in C order as a pointer; None refuses other arrays."""
    if array.layout != "C":
        return None
    kind = types.CPointer(array.dtype)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[1], context.get_value_type(kind))

    return kind(array, address), code


pointer: Callable[..., Any] = intrinsic(_pointer)


@part
def borrowed(array: Any) -> Any:
    """Return a view of an array in C order without its owner: no references to it are counted.

    A compiled function counts a reference for every row that it takes of an array, and for every
    array that it passes on. Each count is an atomic operation with a memory barrier, and a trial of
    a small problem had more than thirty. Borrow arguments only, in the function that receives
    them: its caller owns them until it returns.
    """
    return carray(pointer(array, array.ctypes.data), array.shape)


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


@cache
def cache_folder() -> Path | None:
    """Return the folder of compiled kernels, or None if none can be written to.

    Compiled code contains the kernels that it calls, and numba looks at the file of one kernel
    only. So the folder is named by a digest of all kernels: an edit of any of them compiles all.
    """
    place = hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:8]
    for parent in _parents():
        folder = parent / f"multiplay-{place}-{digest_of_kernels()[:16]}"
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            _remove_stale(folder, f"multiplay-{place}-*")
            return folder
    return None


@cache
def compile_in_turn() -> None:
    """Let this process wait for others that call this too, so that each kernel is compiled once.

    For worker processes, which all need the same kernels at the same time. Processes that need
    different kernels would only wait for each other.
    """
    folder = cache_folder()
    if folder is not None:
        lock = CompilerLock(folder / "lock")
        event.register("numba:compiler_lock", lock)  # type: ignore[no-untyped-call]


def _parents() -> Iterator[Path]:
    """Give the folders to try: NUMBA_CACHE_DIR, beside the kernels, in the user's cache."""
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR)
    yield PACKAGE / "__pycache__"
    with suppress(RuntimeError):  # a user without a home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "multiplay"


def _remove_stale(folder: Path, pattern: str) -> None:
    """Remove the folders of earlier versions of these kernels that are no longer used."""
    for other in folder.parent.glob(pattern):
        with suppress(OSError):
            newest = max(path.stat().st_mtime for path in (other, *other.iterdir()))
            if other != folder and time.time() - newest > STALE:
                shutil.rmtree(other, ignore_errors=True)


@cache
def digest_of_kernels() -> str:
    """Return a digest of the source of all kernels."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.glob("*.py")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


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
