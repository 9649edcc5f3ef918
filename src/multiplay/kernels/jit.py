"""How every kernel is compiled: one decorator, so that the options stand in one place."""

import hashlib
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a loop over arrays: cached on disk, without the interpreter lock, IEEE division."""
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    if hasattr(compiled, "enable_caching"):  # not a plain function, with numba switched off
        compiled._cache = LateCache(function)
    return cast(F, compiled)


class LateCache:
    """A cache that looks for its folder when the kernel is called first; most never are."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @cached_property
    def _cache(self) -> "KernelCache":
        return KernelCache(self._function)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)


def part(function: F) -> F:
    """Make a piece of kernels, which is written into each of them: some run faster than a call."""
    return cast(F, numba.njit(nogil=True, error_model="numpy", inline="always")(function))


class KernelCache(FunctionCache):
    """The cache of numba, which knows the file of a kernel alone; here all kernels count.

    Compiled code contains the kernels that it calls: an edit of any of them makes it stale.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        stamp = self._impl.locator.get_source_stamp(), digest_of_kernels()
        self._cache_file = IndexDataCacheFile(  # type: ignore[no-untyped-call]
            self._cache_path, self._impl.filename_base, stamp
        )


@cache
def digest_of_kernels() -> str:
    """Return a digest of the source of all kernels."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()
