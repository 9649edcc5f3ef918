"""Writing files so that a killed run never leaves half of one."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from multiplay.errors import InvalidInput


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


def missing_folders(path: str | Path) -> list[Path]:
    """Return the folder and those above it that are still to be made, the lowest first."""
    folder = Path(path)
    return [one for one in (folder, *folder.parents) if not os.path.lexists(one)]


@contextmanager
def taken_back_if_refused(made: list[Path], *traces: str) -> Iterator[None]:
    """Remove the folders that were made for work that is refused now.

    A folder that has more in it than the files named by ``traces`` stays: something was done.
    """
    try:
        yield
    except InvalidInput:
        if made and made[0].is_dir() and {one.name for one in made[0].iterdir()} <= set(traces):
            for trace in traces:
                (made[0] / trace).unlink(missing_ok=True)
        with suppress(OSError):  # a folder that is not empty
            for folder in made:
                folder.rmdir()
        raise


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
