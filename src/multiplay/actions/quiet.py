"""Keep a line that a C library prints away from the terminal."""

import ctypes
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

STDOUT = 1
_one_at_a_time = threading.Lock()


@contextmanager
def without(line: bytes) -> Iterator[None]:
    """Run a block and drop ``line`` from what arrives at the standard output meanwhile.

    No setting of Python reaches what C code prints: the file descriptor itself is turned to a
    temporary file. What else came, from other threads say, is passed on when the block ends.
    """
    with _one_at_a_time, tempfile.TemporaryFile() as caught:
        try:
            kept = os.dup(STDOUT)
        except OSError:  # a process without a standard output
            yield
            return
        _flush()
        os.dup2(caught.fileno(), STDOUT)
        try:
            yield
        finally:
            _flush()
            os.dup2(kept, STDOUT)
            os.close(kept)
            caught.seek(0)
            rest = caught.read().replace(line, b"")
            while rest:
                rest = rest[os.write(STDOUT, rest) :]


def _flush() -> None:
    """Write out what C code has printed so far."""
    with suppress(OSError, AttributeError):
        (ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)).fflush(None)
