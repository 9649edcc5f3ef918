"""A time limit that long computations ask after, and a line for people who wait."""

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from multiplay._support.checks import is_number
from multiplay.errors import InvalidInput

SILENCE = 2.0  # seconds after which somebody at a terminal is told what takes so long


class Deadline:
    """When to stop; ``truncated`` says whether somebody has stopped because of it."""

    def __init__(self, until: float) -> None:
        self.until, self.truncated = until, False


NEVER = Deadline(math.inf)
_now: ContextVar[Deadline] = ContextVar("deadline", default=NEVER)


def checked_limit(seconds: object) -> float:
    """Return a time limit in seconds; infinity if there is none."""
    if seconds is None:
        return math.inf
    if is_number(seconds) and isinstance(seconds, int | float) and seconds > 0:
        return float(seconds)
    raise InvalidInput(
        "time_limit",
        "a positive number of seconds",
        repr(seconds),
        "Write 5 for five seconds, or leave it out for as long as it takes.",
    )


@contextmanager
def before(until: float) -> Iterator[Deadline]:
    """Set a deadline, on the clock of ``time.monotonic``, for what is computed within."""
    deadline = NEVER if until == math.inf else Deadline(until)
    token = _now.set(deadline)
    try:
        yield deadline
    finally:
        _now.reset(token)


def left() -> float:
    """Return the seconds that are left; infinity where there is no deadline."""
    return _now.get().until - time.monotonic()


def is_over() -> bool:
    """Say whether to stop now with what there is; who asks does stop."""
    deadline = _now.get()
    if deadline is NEVER or time.monotonic() < deadline.until:
        return False
    deadline.truncated = True
    return True


def was_missed() -> bool:
    """Say whether somebody has stopped: what was found is not to be kept as the best."""
    return _now.get().truncated


# ---------------------------------------------------------------- people who wait

_work: list[tuple[str, float]] = []  # what is being done, the outermost first, and since when
_watcher: threading.Thread | None = None


@contextmanager
def told(what: str) -> Iterator[None]:
    """Say on the terminal what takes so long; silent for two seconds, and without a terminal."""
    global _watcher
    if not sys.stderr.isatty():
        yield
        return
    if _watcher is None or not _watcher.is_alive():  # nor is it after a fork
        _watcher = threading.Thread(target=_watch, daemon=True)
        _watcher.start()
    mine = what, time.monotonic()
    _work.append(mine)
    try:
        yield
    finally:
        _work.remove(mine)
        if time.monotonic() - mine[1] > SILENCE and not _work:
            _write("\r\033[K")


def _watch() -> None:
    while True:
        time.sleep(SILENCE / 4)
        for what, since in _work[:1]:
            seconds = time.monotonic() - since
            if seconds > SILENCE * 3 / 4:
                _write(f"\r{what} ({seconds:.0f} s)")


def _write(text: str) -> None:
    with suppress(OSError, ValueError):  # the terminal is gone
        sys.stderr.write(text)
        sys.stderr.flush()
