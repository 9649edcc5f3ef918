"""Compilation of kernels: one decorator with the options of numba, and a cache on disk."""

import functools
import hashlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",  # division as of IEEE
    "no_cfunc_wrapper": True,  # C does not call kernels
}
INNER = OPTIONS | {"no_cpython_wrapper": True}  # of functions that Python does not call either
PACKAGE = Path(__file__).parent
STALE = 86_400.0  # seconds without a new kernel, after which an old version of the cache is removed

_lock = threading.RLock()  # two threads share one compiled function
_turns: list[Path] = []  # the file that this process locks while it compiles, if it does

carray: Any = None  # of the compiler, once it is imported: kernels find them here
pointer: Any = None


def kernel(function: F) -> F:
    """Compile a function that Python calls: cached on disk, without the interpreter lock."""
    return cast(F, Deferred(function, OPTIONS, is_cached=True))


def subroutine(function: F) -> F:
    """Compile a function that only kernels call: the compiled kernels contain it."""
    return cast(F, Deferred(function, INNER))


def part(function: F) -> F:
    """Make a piece of kernels, which is written into each of them: some run faster than a call."""
    return cast(F, Deferred(function, OPTIONS | {"inline": "always"}))


class Deferred(functools.partial[Any]):
    """A function that is given to the compiler when it is first called, or met by the compiler.

    From then on it is a partial of the compiled function without arguments, which Python calls
    nearly as fast as that one.
    """

    _options: dict[str, Any]
    _is_cached: bool

    def __new__(cls, function: F, options: dict[str, Any], is_cached: bool = False) -> "Deferred":
        """Keep a function for the compiler."""
        self = super().__new__(cls, function)
        functools.update_wrapper(self, function)
        self._options, self._is_cached = options, is_cached
        self.__setstate__((self._first_call, (), {}, self.__dict__))
        return self

    def _first_call(self, *given: Any) -> Any:
        return self._compiled(*given)

    @functools.cached_property
    def _compiled(self) -> Any:
        """The function as numba knows it."""
        with _lock:
            if "_compiled" in self.__dict__:  # by another thread
                return self.__dict__["_compiled"]
            folder = cache_folder() if self._is_cached else None
            compiled = _compiler().cached(self.__wrapped__, folder, **self._options)
            self.__dict__["_compiled"] = compiled
            self.__setstate__((compiled, (), {}, self.__dict__))
            return compiled

    @property
    def _numba_type_(self) -> Any:
        return self._compiled._numba_type_

    def __getattr__(self, name: str) -> Any:
        """Return what the compiled function says of itself."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._compiled, name)

    def __reduce__(self) -> str:
        """Pickle the name: another process imports the function."""
        return cast(str, self.__qualname__)


@cache
def _compiler() -> ModuleType:
    from multiplay.kernels import compiler

    globals().update(carray=compiler.carray, pointer=compiler.pointer)
    for file in _turns:
        compiler.wait_for_others(file)
    return compiler


def compiled_so_far() -> int:
    """Return how many functions this process has compiled."""
    compiler = sys.modules.get("multiplay.kernels.compiler")
    return 0 if compiler is None else compiler.COMPILATIONS.count


@part
def borrowed(array: Any) -> Any:
    """Return a view of an array in C order without its owner: no references to it are counted.

    A compiled function counts a reference for every row that it takes of an array, and for every
    array that it passes on. Each count is an atomic operation with a memory barrier, and a trial of
    a small problem had more than thirty. Borrow arguments only, in the function that receives
    them: its caller owns them until it returns.
    """
    return carray(pointer(array, array.ctypes.data), array.shape)


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
        _turns.append(folder / "lock")
        if _compiler.cache_info().currsize:
            _compiler().wait_for_others(folder / "lock")


def _parents() -> Iterator[Path]:
    """Give the folders to try: NUMBA_CACHE_DIR, beside the kernels, in the user's cache."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
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
