"""What the service tells the people who run it: one line of JSON for each event, on stderr."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import TextIO

PAUSE = 0.05  # seconds for which lines are collected
# Nothing here logs a secret; should a text of others have one in it, it is not shown. The first
# part of a key is no secret.
SECRETS = re.compile(r"(mp_[0-9a-f]{12}_)[\w-]+|(://[^\s:/@]*:)[^\s@/]+(?=@)")
SIGNS = ("mp_", "://")  # of a secret: a line without any is not searched

_encode = json.JSONEncoder(default=str).encode


class Lines(logging.Formatter):
    """Writes an event as a line of JSON; a traceback is a field of it.

    What stands in the attribute ``fields`` of a record stands in the line.

    Examples
    --------
    >>> fields = {"id": "a1", "path": "/v1"}
    >>> record = logging.makeLogRecord({"msg": "request", "levelname": "INFO", "fields": fields})
    >>> list(json.loads(Lines().format(record)))
    ['time', 'level', 'event', 'id', 'path']
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return without_secrets(_encode(line))


class Writer(logging.StreamHandler[TextIO]):
    """Writes lines some at a time: who answers requests must not wait for a file each time.

    A line of an error, and the last ones of the process, are written at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []
        self._wanted = threading.Event()
        threading.Thread(target=self._write_now_and_then, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line."""
        self._lines.append(self.format(record))  # the lock of the handler is held
        if record.levelno >= logging.ERROR:
            self.flush()
        else:
            self._wanted.set()

    def flush(self) -> None:
        """Write what waits."""
        with self.lock or nullcontext():
            lines, self._lines = self._lines, []
            if lines:
                self.stream.write("\n".join([*lines, ""]))
                super().flush()

    def _write_now_and_then(self) -> None:
        while self._wanted.wait():
            time.sleep(PAUSE)
            self._wanted.clear()
            with suppress(ValueError):  # the stream is closed: the process ends
                self.flush()


def without_secrets(text: str) -> str:
    """Return a text without keys of clients and passwords of databases.

    Examples
    --------
    >>> without_secrets("key mp_0123456789ab_c2VjcmV0, store postgresql://me:word@host/plans")
    'key mp_0123456789ab_***, store postgresql://me:***@host/plans'
    """
    if not any(sign in text for sign in SIGNS):
        return text
    return SECRETS.sub(lambda found: f"{found[1] or found[2]}***", text)


def set_up() -> None:
    """Write all events of this process as lines: our own, and warnings of uvicorn and others."""
    handler = Writer()
    handler.setFormatter(Lines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.captureWarnings(True)
    # what no line shows need not be found out
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.getLogger("multiplay.service").setLevel(logging.INFO)
