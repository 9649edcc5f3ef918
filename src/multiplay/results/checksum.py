"""A checksum at the end of a file, behind all that its format knows of: HDF5 does not mind it.

It is no attribute of the dataset, since these are copied: a part of a result that somebody writes
to another file would take the checksum of the whole along.
"""

import hashlib
import os
from pathlib import Path

MARK = b"\nmultiplay sha256 "
LENGTH = len(MARK) + 64
CHUNK = 1 << 20  # bytes


def seal(path: Path) -> None:
    """Append the checksum of all that is there."""
    digest = _sha256(path, path.stat().st_size)
    with path.open("ab") as file:
        file.write(MARK + digest)


def is_damaged(path: Path) -> bool:
    """Say whether a sealed file has changed; of a file without a checksum nobody knows."""
    size = path.stat().st_size - LENGTH
    if size < 0:
        return False
    with path.open("rb") as file:
        file.seek(size, os.SEEK_SET)
        tail = file.read()
    return tail.startswith(MARK) and tail != MARK + _sha256(path, size)


def _sha256(path: Path, size: int) -> bytes:
    """Return the SHA-256 of the first ``size`` bytes, as text."""
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(min(CHUNK, size)):
            sha.update(chunk)
            size -= len(chunk)
    return sha.hexdigest().encode()
