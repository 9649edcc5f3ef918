"""Server-sent events: notifications when the journal of a study grows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from multiplay.errors import InvalidInput, StoreError
from multiplay.service.auth.authenticator import Caller
from multiplay.service.studies.manager import StudyManager

PAUSE = 0.5  # seconds between two queries of a journal
HEARTBEAT = 15.0  # seconds after which a comment is sent
RETRY = "retry: 2000\n\n"  # milliseconds, until a browser connects again


async def stream(manager: StudyManager, name: str, token: str | None) -> EventStream:
    """Return a stream that ends when the client leaves, the key ends, or the service stops.

    The events are named "changed"; their data is the number of the last entry.
    """
    caller = await manager.caller(token)
    await manager.latest(name, caller)  # raises NotFound before anything is sent
    return EventStream(manager, name, caller)


class EventStream(StreamingResponse):
    """A response without an end. It is refused if too many are open."""

    def __init__(self, manager: StudyManager, name: str, caller: Caller) -> None:
        self._manager = manager
        super().__init__(
            _events(manager, name, caller),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events."""
        with self._manager.streaming():
            await super().__call__(scope, receive, send)


async def _events(manager: StudyManager, name: str, caller: Caller) -> AsyncIterator[str]:
    """Yield events; the key is confirmed after a change was read, and before it is sent."""
    last, sent = -1, time.monotonic()
    with suppress(InvalidInput, StoreError):  # the study, the key or the store is gone
        yield RETRY
        while not manager.stopping.is_set():
            number = (await manager.latest(name, caller)).number
            await manager.confirm(name, caller)
            if number != last:
                last, sent = number, time.monotonic()
                yield f"id: {number}\nevent: changed\ndata: {number}\n\n"
            elif time.monotonic() - sent > HEARTBEAT:
                sent = time.monotonic()
                yield ": heartbeat\n\n"
            with suppress(TimeoutError):
                await asyncio.wait_for(manager.stopping.wait(), PAUSE)
