"""How every kernel is compiled: one decorator, so that the options stand in one place."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a loop over arrays: cached on disk, without the interpreter lock, IEEE division."""
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    if hasattr(compiled, "enable_caching"):  # not a plain function, with numba switched off
        compiled._cache = late = LateCache(function)
        compiled.compile = partial(_in_one_process, compiled.compile, late)
        compiled.get_call_template = partial(_for_any_number, compiled.get_call_template)
    return cast(F, compiled)


def _for_any_number(template: Callable[..., Any], args: Any, kws: Any) -> Any:
    """Let a kernel that is called with 0 be the one for all numbers: numba compiles one for 0."""
    of_any: Callable[[Any], Any] = numba.types.unliteral
    return template(tuple(map(of_any, args)), {name: of_any(one) for name, one in kws.items()})


def _in_one_process(compile: Callable[..., Any], cache: "LateCache", signature: Any) -> Any:
    """Compile, or take what another process has compiled meanwhile: it is waited for.

    Kernels do not call each other in circles, so nobody waits for one that waits.
    """
    with global_compiler_lock, cache.alone():  # in this order: threads wait for the first
        return compile(signature)


class LateCache:
    """A cache that looks for its folder when the kernel is called first; most never are."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @cached_property
    def _cache(self) -> "KernelCache":
        return KernelCache(self._function)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from compiling this kernel, where files can be locked."""
        with ExitStack() as stack:
            with suppress(ImportError, OSError):  # no such locks here, or no folder to write to
                from fcntl import LOCK_EX, flock

                name = f"{self._cache._impl.filename_base}.lock"
                flock(stack.enter_context(Path(self._cache.cache_path, name).open("w")), LOCK_EX)
            yield

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
