"""Server-sent events: notifications when the journal of a study grows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.responses import StreamingResponse

from multiplay.errors import InvalidInput, StoreError
from multiplay.service.auth.authenticator import Caller
from multiplay.service.studies.manager import StudyManager

PAUSE = 0.5  # seconds between two queries of a journal
HEARTBEAT = 15.0  # seconds after which a comment is sent, and the key is confirmed
RETRY = "retry: 2000\n\n"  # milliseconds, until a browser connects again


async def stream(manager: StudyManager, name: str, token: str | None) -> StreamingResponse:
    """Return a stream that ends when the client leaves, the key ends, or the service stops.

    The events are named "changed"; their data is the number of the last entry.
    """
    caller = await manager.caller(token)
    caller.check("read", name)
    await manager.latest(name, caller)  # raises NotFound before anything is sent
    manager.check_streams()
    return StreamingResponse(
        _events(manager, name, token, caller),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _events(
    manager: StudyManager, name: str, token: str | None, caller: Caller
) -> AsyncIterator[str]:
    last, checked = -1, time.monotonic()
    with manager.streaming(), suppress(InvalidInput, StoreError):  # study, key or store is gone
        yield RETRY
        while not manager.stopping.is_set():
            number = (await manager.latest(name, caller)).number
            if number != last:
                last = number
                yield f"id: {number}\nevent: changed\ndata: {number}\n\n"
            if time.monotonic() - checked > HEARTBEAT:
                checked, caller = time.monotonic(), await manager.caller(token)
                yield ": heartbeat\n\n"
            with suppress(TimeoutError):
                await asyncio.wait_for(manager.stopping.wait(), PAUSE)
