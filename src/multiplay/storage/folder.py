"""Storage in a folder: one file for each record, written atomically."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from multiplay._support.atomic_files import (
    remove_stale_drafts,
    writable_folder,
    write_new,
    write_whole,
)
from multiplay.errors import InvalidInput
from multiplay.storage.base import Damaged, Record, Storage, header_text

FORMAT = 1  # of files; newer formats are refused
VERSION = "multiplay_storage"
RECORD = re.compile(r"record-(\d+)\.npz")
SNAPSHOT = "snapshot.npz"
ARRAY = "array/"  # prefix of the names of arrays, so that none collides with the header


class FolderStorage(Storage):
    """A storage that writes each record to its own file, ``record-000000000.npz`` and so on.

    The name of the file is the number of the record, and a file is never replaced: any number of
    processes may append.

    Parameters
    ----------
    folder
        The folder; it is created if it does not exist.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     number = FolderStorage(folder).append(Record({"day": 1}, {}))
    ...     print(*(path.name for path in Path(folder).iterdir()))
    ...     print(*(record.header for _, record in FolderStorage(folder).read()))
    record-000000000.npz
    {'day': 1}
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = writable_folder("folder", folder)
        remove_stale_drafts(self.folder)
        self._next: int | None = None

    def __repr__(self) -> str:
        return f"FolderStorage({str(self.folder)!r})"

    def append(self, record: Record) -> int:
        """Write a record under the first free number."""
        write = _writer(record)
        number = self._count() if self._next is None else self._next
        while not write_new(self._place(number), write):
            number = self._count()  # another handle has used this number
        self._next = number + 1
        return number

    def read(self, start: int = 0) -> Iterator[tuple[int, Record]]:
        """Yield the records that existed when the reading began."""
        for number in range(start, self._count()):
            try:
                record = read_record(self._place(number))
            except Damaged as damaged:
                damaged.number = number
                raise
            yield number, record

    def put(self, snapshot: Record) -> None:
        """Replace the file of the snapshot."""
        write_record(self.folder / SNAPSHOT, snapshot)

    def get(self) -> Record | None:
        """Read the file of the snapshot."""
        path = self.folder / SNAPSHOT
        return read_record(path) if path.exists() else None

    def _place(self, number: int) -> Path:
        return self.folder / _name(number)

    def _count(self) -> int:
        names = (RECORD.fullmatch(path.name) for path in self.folder.iterdir())
        return max((int(name[1]) + 1 for name in names if name), default=0)


def _name(number: int) -> str:
    return f"record-{number:09d}.npz"


FIRST_RECORD = _name(0)


def write_record(path: str | Path, record: Record) -> None:
    """Write one record to one file, replacing its content."""
    write_whole(path, _writer(record))


def read_record(path: Path) -> Record:
    """Return the record of a file; raise ``Damaged`` if it cannot be read completely."""
    if not path.is_file():
        raise _damaged(path, "no such file", "Check the path, or restore a backup.")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            _check_size(archive.zip, path.stat().st_size)
            arrays = dict(archive.items())
        header = json.loads(str(arrays.pop("header")))
        version = int(header.pop(VERSION, 0))
    except Exception as error:  # a damaged archive can raise any exception
        raise _damaged(path, error, "The file is damaged: restore a backup.") from None
    if version > FORMAT:
        got = f"{path} of format {version}"
        raise InvalidInput("path", f"format {FORMAT} or older", got, "Update multiplay.")
    if version:
        arrays = {name.removeprefix(ARRAY): array for name, array in arrays.items()}
    return Record(header, arrays)


def _check_size(archive: ZipFile, size: int) -> None:
    """Raise ``ValueError`` for an archive that is larger than its file: it is never compressed."""
    whole = sum(member.file_size for member in archive.infolist())
    if whole > size:
        raise ValueError(f"{whole} bytes when it is decompressed")


def _writer(record: Record) -> Callable[[Path], None]:
    """Return a function that writes the record to a file; raise if it cannot be stored."""
    text = header_text(record._replace(header={**record.header, VERSION: FORMAT}))
    named: dict[str, Any] = {f"{ARRAY}{name}": array for name, array in record.arrays.items()}

    def write(draft: Path) -> None:
        with draft.open("wb") as file:
            # objects were refused above; numpy 2.0 would store allow_pickle=False as an array
            np.savez(file, header=np.array(text), **named)

    return write


def _damaged(path: Path, why: object, hint: str) -> Damaged:
    reason = " ".join(str(why).split())
    return Damaged("path", "a file written by multiplay", f"{path} ({reason})", hint)
