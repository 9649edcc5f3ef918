"""Writing files so that a killed run never leaves half of one."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from multiplay.errors import InvalidInput


def path_of(argument: str, value: object) -> Path:
    """Return ``value`` as a path, or say what is wrong with it."""
    if not isinstance(value, str | os.PathLike) or "\0" in str(value) or not str(value):
        raise InvalidInput(
            argument,
            "the path of a file, as text or pathlib.Path",
            repr(value),
            'Give the name of a file, as in "result.nc".',
        )
    return Path(value)


def writable_folder(argument: str, path: str | Path) -> Path:
    """Return the folder, made if need be, after writing to it for a try."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidInput(
            argument, "a folder that can be written", f"{path} ({error.strerror})", "Name another."
        ) from None
    return folder


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in one step."""
    write_whole(path, lambda draft: _fill(draft, text))


def write_whole(path: str | Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a file beside ``path``, then put it in place in one step."""
    path = Path(path)
    if path.is_dir():
        raise InvalidInput("path", "the name of a file", f"{path}, a folder", "Add a file name.")
    folder = writable_folder("path", path.parent)
    handle, name = tempfile.mkstemp(dir=folder, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    draft = Path(name)
    try:
        write(draft)
        draft.chmod(0o644)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _fill(draft: Path, text: str) -> None:
    draft.write_text(text, encoding="utf-8")
