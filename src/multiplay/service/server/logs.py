"""Logs: one line of JSON for each event, on stderr, written by a thread."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue
from typing import Any

# No message contains a secret on purpose; secrets in messages of other libraries are masked. The
# first part of an API key is not secret.
SECRETS = re.compile(r"(mp_[0-9a-f]{12}_)[\w-]+|(://[^\s:/@]*:)[^\s@/]+(?=@)")
SIGNS = ("mp_", "://")  # a line without any of them has no secret

# For logging.config.dictConfig; uvicorn applies it in every worker process.
CONFIG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"queue": {"()": "multiplay.service.server.logs.queue_handler"}},
    "root": {"handlers": ["queue"], "level": "WARNING"},
    "loggers": {"multiplay.service": {"level": "INFO"}},
}

_encode = json.JSONEncoder(default=str).encode
_listeners: list[QueueListener] = []


class JsonFormatter(logging.Formatter):
    """Formats an event as a line of JSON; a traceback is a field of it.

    The attribute ``fields`` of a record is a mapping of further fields.

    Examples
    --------
    >>> fields = {"id": "a1", "path": "/v1"}
    >>> record = logging.makeLogRecord({"msg": "request", "levelname": "INFO", "fields": fields})
    >>> list(json.loads(JsonFormatter().format(record)))
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


class RecordQueue(QueueHandler):
    """Puts records in a queue as they are: the thread that writes them formats them."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Return the record."""
        return record


def queue_handler() -> RecordQueue:
    """Return a handler, and start the thread that writes its records as JSON to stderr."""
    queue: SimpleQueue[logging.LogRecord] = SimpleQueue()
    writer = logging.StreamHandler()
    writer.setFormatter(JsonFormatter())
    listener = QueueListener(queue, writer)
    listener.start()
    _listeners.append(listener)
    logging.captureWarnings(True)
    return RecordQueue(queue)


def flush() -> None:
    """Write all records that are in a queue."""
    for listener in _listeners:
        listener.stop()
        listener.start()


def without_secrets(text: str) -> str:
    """Return a text with API keys and passwords of databases masked.

    Examples
    --------
    >>> without_secrets("key mp_0123456789ab_c2VjcmV0, store postgresql://me:word@host/plans")
    'key mp_0123456789ab_***, store postgresql://me:***@host/plans'
    """
    if not any(sign in text for sign in SIGNS):
        return text
    return SECRETS.sub(lambda found: f"{found[1] or found[2]}***", text)
