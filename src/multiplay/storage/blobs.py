"""Arrays as bytes: what they are called and look like, then what is in them.

Names, types and shapes are one line of text, as in a .npy file. It is the same for most records of
a journal, so that it is written and understood once.
"""

import ast
import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from multiplay.storage.base import Damaged
from multiplay.types import Arrays

MAGIC = b"MPA1"  # the number is the version of this format
START = len(MAGIC) + 4  # behind it, the length of the line of text, then that line
KEPT = 256  # lines that are remembered


class _Place(NamedTuple):
    """Where an array stands behind the line, and what it looks like."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int


def to_bytes(arrays: Arrays) -> bytes:
    """Return arrays without objects as bytes; nothing for no arrays."""
    if not arrays:
        return b""
    look = tuple([(name, array.dtype, array.shape) for name, array in arrays.items()])
    return b"".join([_line(look), *[array.tobytes() for array in arrays.values()]])


def from_bytes(blob: bytes) -> Arrays:
    """Return the arrays that ``to_bytes`` wrote, for the caller to keep and change.

    Examples
    --------
    >>> from_bytes(to_bytes({"costs": np.array([0.5, 2.0])}))
    {'costs': array([0.5, 2. ])}
    """
    if not blob:
        return {}
    if blob[: len(MAGIC)] != MAGIC:
        raise _damaged("bytes that begin with something else")
    end = START + int.from_bytes(blob[len(MAGIC) : START], "little")
    places, size = _places(blob[START:end])
    if len(blob) != end + size:
        raise _damaged(f"{len(blob)} bytes instead of {end + size}")
    return {
        name: np.ndarray(shape, dtype, bytearray(blob[end + start : end + stop]))
        for name, dtype, shape, start, stop in places
    }


@lru_cache(KEPT)
def _line(look: tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]) -> bytes:
    descriptions = [(name, np.lib.format.dtype_to_descr(d), shape) for name, d, shape in look]
    line = ascii(descriptions).encode()
    return MAGIC + len(line).to_bytes(4, "little") + line


@lru_cache(KEPT)
def _places(line: bytes) -> tuple[list[_Place], int]:
    """Return where each array is, and the size of all."""
    places, size = [], 0
    try:
        for name, description, shape in ast.literal_eval(line.decode()):
            dtype = np.lib.format.descr_to_dtype(description)
            if not isinstance(name, str) or dtype.hasobject or min(shape, default=0) < 0:
                raise ValueError(name)
            start, size = size, size + dtype.itemsize * math.prod(shape)
            places.append(_Place(name, dtype, shape, start, size))
    except Exception as error:  # whatever rubbish can raise
        raise _damaged(f"a line that cannot be read ({type(error).__name__})") from None
    return places, size


def _damaged(got: str) -> Damaged:
    return Damaged("arrays", "arrays written by multiplay", got, "Restore a backup.")
