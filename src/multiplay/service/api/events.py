"""Server-sent events: whoever watches a study is told when its journal grows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.responses import StreamingResponse

from multiplay.errors import InvalidInput, StoreError
from multiplay.service.auth.authenticator import Caller
from multiplay.service.studies.manager import Office

PAUSE = 0.5  # seconds between two looks at a journal
HEARTBEAT = 15.0  # seconds after which a word is sent, and the key is looked at again
RETRY = "retry: 2000\n\n"  # milliseconds, until a browser comes back


async def stream(office: Office, name: str, token: str | None) -> StreamingResponse:
    """Answer with events until the client leaves, the key ends, or the service stops.

    An event is called "changed"; its data is the number of the last entry.
    """
    caller = await office.caller(token)
    caller.check("read", name)
    await office.latest(name, caller)  # refuses what is not there before anything is sent
    office.check_streams()
    return StreamingResponse(
        _events(office, name, token, caller),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _events(
    office: Office, name: str, token: str | None, caller: Caller
) -> AsyncIterator[str]:
    last, checked = -1, time.monotonic()
    with office.streaming(), suppress(InvalidInput, StoreError):  # study, key or store is gone
        yield RETRY
        while not office.stopping.is_set():
            number = (await office.latest(name, caller)).number
            if number != last:
                last = number
                yield f"id: {number}\nevent: changed\ndata: {number}\n\n"
            if time.monotonic() - checked > HEARTBEAT:
                checked, caller = time.monotonic(), await office.caller(token)
                yield ": still here\n\n"
            with suppress(TimeoutError):
                await asyncio.wait_for(office.stopping.wait(), PAUSE)
