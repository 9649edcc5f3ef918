"""ETags and cursors: responses that may be 304, and lists in pages of limited size."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, TypeVar

from starlette.responses import JSONResponse, Response, StreamingResponse

from multiplay.storage import Head

CHUNK = 2**16  # bytes, at least, that are sent at once
NUMBER = "^(0|[1-9][0-9]{0,17})$"  # patterns of cursors
NAME = "^([A-Za-z0-9_-]{4})*([A-Za-z0-9_-]{2,3})?$"  # base64 without padding

T = TypeVar("T", int, str)


def etag(head: Head) -> str:
    """Return the ETag of a state; weak, because a proxy may compress the response."""
    return f'W/"{head.number}-{head.digest[:8].hex()}"'


def matches(given: str | None, tag: str) -> bool:
    """Return whether the header If-None-Match contains an ETag."""
    return given is not None and (given.strip() == "*" or tag in _tags(given))


def _tags(given: str) -> list[str]:
    """Return the ETags of a header, all of them as weak ones."""
    parts = [part.strip() for part in given.split(",")]
    return [part if part.startswith("W/") else f"W/{part}" for part in parts]


def response(tag: str, content: Any) -> Response:
    """Return a response with an ETag; 304 if the content is None."""
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if content is None:
        return Response(status_code=304, headers=headers)
    if isinstance(content, EncodedPage):
        headers["Content-Length"] = f"{content.size}"
        return StreamingResponse(content.chunks(), 200, headers, "application/json")
    return JSONResponse(content, headers=headers)


def page(items: list[Any], after: Any) -> dict[str, Any]:
    """Return a page of a list; ``after`` is the start of the next page, None for the last page."""
    return {"items": items, "next": None if after is None else to_cursor(after)}


class EncodedPage:
    """A page of a list as JSON, limited by rows and bytes, whose rows are sent one after another.

    Parameters
    ----------
    items
        The rows, each after the cursor of the page that follows it. They are read only as far as
        the page goes, and one further.
    rows, size
        The largest number of rows, and of bytes of all rows; the first row may have more.
    """

    def __init__(self, items: Iterable[tuple[int | str, Any]], rows: int, size: int) -> None:
        texts, last, after = list[bytes](), None, None
        for place, item in items:
            text = _encode(item)
            size -= len(text)
            if texts and (len(texts) == rows or size < 0):
                after = last
                break
            texts.append(text)
            last = place
        rest = b'],"next":' + _encode(None if after is None else to_cursor(after)) + b"}"
        self._parts = [b'{"items":[', *_joined(texts), rest]
        self.size = sum(map(len, self._parts))

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the text in parts, so that a client that does not read it is noticed."""
        for part in self._parts:
            yield part


def _joined(texts: list[bytes]) -> Iterator[bytes]:
    """Yield texts with commas between them, small ones together."""
    chunk = bytearray()
    for place, text in enumerate(texts):
        chunk += b"," * (place > 0) + text
        if len(chunk) >= CHUNK:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk)


def _encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def to_cursor(place: int | str) -> str:
    """Return a position in a list as a cursor: a number as it is, a name in base64.

    Examples
    --------
    >>> to_cursor(1000), from_cursor("1000", 0), from_cursor(None, 0)
    ('1000', 1000, 0)
    >>> to_cursor("Köln"), from_cursor(to_cursor("Köln"), "")
    ('S8O2bG4', 'Köln')
    """
    if isinstance(place, int):
        return f"{place}"
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def from_cursor(cursor: str | None, first: T) -> T:
    """Return the position of a cursor, which has the type of the first position."""
    if cursor is None:
        return first
    if isinstance(first, int):
        return int(cursor)
    text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    return text.decode(errors="replace")
