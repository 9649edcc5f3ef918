"""Atomic files: written completely or not at all, also when a process or machine fails."""

import errno
import os
import platform
import re
import secrets
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from multiplay.errors import InvalidInput

# A draft is named after its target and its writer: host, process, and one start of that process.
HOST = f"{zlib.crc32(platform.node().encode()):08x}"
START = secrets.token_hex(4)
DRAFT = re.compile(r"\.draft-(?P<host>\w+)-(?P<process>\d+)-(?P<start>\w+)-")
PUBLIC, PRIVATE = 0o644, 0o600  # permissions of new files; a file that is replaced keeps its own
LONGEST = 32  # characters of the target's name in that of its draft


def as_path(argument: str, path: object) -> Path:
    """Return a path of user input, or raise ``InvalidInput``.

    Examples
    --------
    >>> as_path("path", 3)
    Traceback (most recent call last):
    ...
    multiplay.errors.InvalidInput: path: expected the name of a file or folder, got 3. \
Give text or a pathlib.Path.
    """
    expected = "the name of a file or folder"
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str):
        raise InvalidInput(argument, expected, repr(path), "Give text or a pathlib.Path.")
    if "\0" in name:
        raise InvalidInput(argument, expected, repr(name), "Remove the NUL character.")
    try:
        os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # too long, for example, or not allowed to look
        reason = error.strerror if isinstance(error, OSError) else error
        got = f"{name[:60]!r} ({reason})"
        raise InvalidInput(argument, expected, got, "Choose another name.") from None
    return Path(name)


def writable_folder(argument: str, path: str | Path) -> Path:
    """Return the folder, created if missing, after a test that it can be written."""
    folder = as_path(argument, path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidInput(
            argument,
            "a folder that can be written",
            f"{path} ({error.strerror})",
            "Choose another folder.",
        ) from None
    return folder


def missing_folders(path: str | Path) -> list[Path]:
    """Return the folder and its parents that do not exist yet, the lowest first."""
    folder = Path(path)
    return [one for one in (folder, *folder.parents) if not os.path.lexists(one)]


@contextmanager
def taken_back_if_refused(made: list[Path], *traces: str) -> Iterator[None]:
    """Remove the folders that were created for a run that raises ``InvalidInput``.

    A folder with more files than those named by ``traces`` stays.
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


def write_whole(path: str | Path, write: Callable[[Path], None], mode: int = PUBLIC) -> None:
    """Write a file beside ``path`` with ``write``, then rename it to ``path`` in one step.

    When this returns, the file survives a power cut.
    """
    path = as_path("path", path)
    if path.is_dir():
        raise InvalidInput("path", "the name of a file", f"{path}, a folder", "Add a file name.")
    folder = writable_folder("path", path.parent)
    remove_stale_drafts(folder)
    _write(path, write, os.replace, mode)


def write_new(path: Path, write: Callable[[Path], None], mode: int = PUBLIC) -> bool:
    """Write a file in one step unless it exists; return whether it was written."""
    try:
        _write(path, write, _link, mode)
    except FileExistsError:
        return False
    return True


def remove_stale_drafts(folder: Path) -> None:
    """Remove the drafts of processes of this machine that were killed while they wrote."""
    for draft in folder.glob(".*.draft-*"):
        writer = DRAFT.search(draft.name)
        if writer and writer["host"] == HOST and not _is_running(writer):
            try:
                draft.unlink()
            except OSError:  # removed by a different process, or the folder is read-only
                continue


def _is_running(writer: re.Match[str]) -> bool:
    process = int(writer["process"])
    if process == os.getpid():
        return writer["start"] == START  # else an earlier process had the same id
    if os.name != "posix":
        return True  # no harmless way to find out
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _write(
    path: Path, write: Callable[[Path], None], put: Callable[[Path, Path], None], mode: int
) -> None:
    prefix = f".{path.stem[:LONGEST]}.draft-{HOST}-{os.getpid()}-{START}-"
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=path.suffix)
    os.close(handle)
    draft = Path(name)
    try:
        write(draft)
        with suppress(OSError):
            mode = stat.S_IMODE(path.stat().st_mode)
        draft.chmod(mode)
        _sync(draft)
        put(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    _sync(path.parent)


def _link(draft: Path, path: Path) -> None:
    """Give a file its name unless a file of that name exists."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(path) from None
        os.replace(draft, path)


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    if os.name != "posix" and path.is_dir():
        return  # folders cannot be opened there
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that has no such thing for folders
            raise
    finally:
        os.close(handle)


def _fill(draft: Path, text: str) -> None:
    draft.write_text(text, encoding="utf-8")
