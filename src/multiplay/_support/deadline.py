"""Time limits of long computations, and lines of progress while they run."""

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from multiplay._support.checks import is_number
from multiplay.errors import InvalidInput

SILENCE = 2.0  # seconds of work before a terminal shows a line about it
EVERY = 30.0  # seconds between two lines about a part of a long command, without a terminal


class Deadline:
    """A time to stop; ``truncated`` is True once a computation has stopped because of it.

    ``gap`` is how far from the best its outcome may then be; NaN if that is not known.
    """

    def __init__(self, until: float) -> None:
        self.until, self.truncated, self.gap = until, False, math.nan


NEVER = Deadline(math.inf)
_now: ContextVar[Deadline] = ContextVar("deadline", default=NEVER)


def checked_limit(seconds: object) -> float:
    """Return a time limit in seconds; infinity without a limit."""
    if seconds is None:
        return math.inf
    if is_number(seconds) and isinstance(seconds, int | float) and seconds > 0:
        return float(seconds)
    raise InvalidInput(
        "time_limit",
        "a positive number of seconds",
        repr(seconds),
        "Use 5 for five seconds, or leave it out for no limit.",
    )


@contextmanager
def before(until: float) -> Iterator[Deadline]:
    """Set a deadline, on the clock of ``time.monotonic``, for computations in the block."""
    deadline = NEVER if until == math.inf else Deadline(until)
    token = _now.set(deadline)
    try:
        yield deadline
    finally:
        _now.reset(token)


def left() -> float:
    """Return the remaining seconds; infinity where there is no deadline."""
    return _now.get().until - time.monotonic()


def postpone(seconds: float) -> None:
    """Move the deadline by time that went into something else than the computation."""
    deadline = _now.get()
    if deadline is not NEVER:
        deadline.until += seconds


def is_over() -> bool:
    """Return whether the deadline has passed, and mark it as truncated: the caller must stop."""
    deadline = _now.get()
    if deadline is NEVER or time.monotonic() < deadline.until:
        return False
    deadline.truncated = True
    return True


def check(argument: str) -> None:
    """Raise ``InvalidInput`` about a file if the deadline has passed: there is no part of it."""
    if is_over():
        hint = "Use a file with fewer rows and columns."
        raise InvalidInput(argument, "a file that is read in time", "one that takes longer", hint)


def was_missed() -> bool:
    """Return whether a computation has stopped early: its outcome may not be the best."""
    return _now.get().truncated


def report_gap(gap: float) -> None:
    """Record how far from the best the outcome of a truncated computation may be."""
    deadline = _now.get()
    if deadline.truncated and math.isfinite(gap):
        deadline.gap = gap


# ---------------------------------------------------------------- progress

_work: list[tuple[str, float]] = []  # running work, the outermost first, and its start
_watcher: threading.Thread | None = None
_lock = threading.Lock()  # between the watcher and the threads that work
_is_shown = False


@contextmanager
def status_line(what: str, is_cause: bool = False) -> Iterator[None]:
    """Write to the terminal what takes long; nothing for two seconds, or without a terminal.

    The line has the outermost work, unless work inside it ``is_cause`` of the wait.
    """
    global _watcher, _is_shown
    if not sys.stderr.isatty():
        yield
        return
    if _watcher is None or not _watcher.is_alive():  # nor is it after a fork
        _watcher = threading.Thread(target=_watch, daemon=True)
        _watcher.start()
    work = what, time.monotonic()
    with _lock:
        _work.insert(0 if is_cause else len(_work), work)
    try:
        yield
    finally:
        with _lock:
            _work.remove(work)
            if _is_shown and not _work:
                _write("\r\033[K")
                _is_shown = False


def _watch() -> None:
    while True:
        time.sleep(SILENCE / 4)
        _show_work(time.monotonic())


def _show_work(now: float) -> None:
    """Write the outermost work, if it has run for long at the time ``now``."""
    global _is_shown
    with _lock:
        for what, since in _work[:1]:
            if now - since > SILENCE * 3 / 4:
                _write(f"\r{what} ({now - since:.0f} s)")
                _is_shown = True


@contextmanager
def reported(part: str) -> Iterator[None]:
    """Print a line when a part of a long command is done, and every 30 seconds until then.

    On a terminal nothing is printed: progress bars show the same there.
    """
    if sys.stderr.isatty():
        yield
        return
    started, done = time.monotonic(), threading.Event()

    def repeat() -> None:
        while not done.wait(EVERY):
            _write(f"{part}: running ({time.monotonic() - started:.0f} s)\n")

    reporter = threading.Thread(target=repeat, daemon=True)
    reporter.start()
    try:
        yield
    finally:
        done.set()
        reporter.join()
    _write(f"{part}: done ({time.monotonic() - started:.0f} s)\n")


def _write(text: str) -> None:
    with suppress(OSError, ValueError):  # the terminal is closed
        sys.stderr.write(text)
        sys.stderr.flush()
