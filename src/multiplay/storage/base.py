"""What every storage has."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from multiplay.errors import InvalidInput
from multiplay.types import Arrays


class Record(NamedTuple):
    """What is kept in one piece: plain data that JSON can hold, and arrays without objects."""

    header: dict[str, Any]
    arrays: Arrays


class Damaged(InvalidInput):
    """A record or snapshot that cannot be read.

    Attributes
    ----------
    number : int or None
        Of the record; None for the snapshot. ``read(number + 1)`` goes on behind it.
    """

    number: int | None = None


@runtime_checkable
class Storage(Protocol):
    """A list of records that only grows, and one snapshot that is replaced.

    Every call is atomic and durable: when it returns, what it wrote survives, and what it did not
    finish was never there. Several handles, in several processes, may work on one storage. A
    storage of your own is checked by ``multiplay.testing.check_storage``.
    """

    def append(self, record: Record) -> int:
        """Keep a record behind all others; return its number, counted from 0 without gaps."""

    def read(self, start: int = 0) -> Iterator[tuple[int, Record]]:
        """Yield the records from this number on, in order; raise ``Damaged`` at a lost one."""

    def put(self, snapshot: Record) -> None:
        """Keep this snapshot instead of the one before."""

    def get(self) -> Record | None:
        """Return the snapshot; None if there was none."""


def header_text(record: Record) -> str:
    """Return the header as JSON, after making sure that all of the record can be written."""
    for name, array in record.arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            raise InvalidInput(
                name, "an array of numbers or text", repr(array)[:60], "Convert it to numbers."
            )
    try:
        return json.dumps(record.header)
    except (TypeError, ValueError) as error:
        hint = "Give dicts with text as keys, lists, text and numbers."
        raise InvalidInput("header", "plain data", f"{error}", hint) from None
