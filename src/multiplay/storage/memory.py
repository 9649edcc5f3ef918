"""A storage that is gone with its process: for tests, and for runs that nobody resumes."""

import copy
import json
from collections.abc import Iterator

from multiplay.storage.base import Record, Storage, header_text


class MemoryStorage(Storage):
    """Keeps copies, so that nobody changes what is kept.

    Examples
    --------
    >>> storage = MemoryStorage()
    >>> storage.append(Record({"day": 1}, {}))
    0
    >>> [record.header for _, record in storage.read()]
    [{'day': 1}]
    """

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._snapshot: Record | None = None

    def append(self, record: Record) -> int:
        """Keep a record behind all others."""
        self._records.append(_copy(record))
        return len(self._records) - 1

    def read(self, start: int = 0) -> Iterator[tuple[int, Record]]:
        """Yield the records from this number on."""
        for number in range(start, len(self._records)):
            yield number, copy.deepcopy(self._records[number])

    def put(self, snapshot: Record) -> None:
        """Keep this snapshot instead of the one before."""
        self._snapshot = _copy(snapshot)

    def get(self) -> Record | None:
        """Return the snapshot."""
        return copy.deepcopy(self._snapshot)


def _copy(record: Record) -> Record:
    return Record(json.loads(header_text(record)), copy.deepcopy(record.arrays))
