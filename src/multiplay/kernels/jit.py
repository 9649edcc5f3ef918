"""How every kernel is compiled: one decorator, so that the options stand in one place."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a loop over arrays: cached on disk, without the interpreter lock, IEEE division.

    The cache notices a change in the file of a kernel, not in the files of the kernels it calls:
    run ``make clean`` after editing a kernel that others call.
    """
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast(F, compiled)
