"""Subroutines of kernels, called from Python."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def in_kernel(subroutine: F) -> F:
    """Return a kernel that only calls a subroutine: Python cannot call one itself."""

    @numba.njit(error_model="numpy")
    def call(*given: Any) -> Any:
        return subroutine(*given)

    return cast(F, call)
