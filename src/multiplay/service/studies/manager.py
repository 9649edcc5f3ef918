"""The studies and keys of a store, as one worker of the service has them."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from multiplay.actions import ActionSet
from multiplay.errors import StoreError
from multiplay.service.auth.authenticator import Caller, Register
from multiplay.service.server import metrics
from multiplay.service.settings import Settings
from multiplay.service.studies.batching import Desk, Job
from multiplay.service.studies.journal_pool import Handles
from multiplay.service.studies.limits import build_actions
from multiplay.storage import Head, Journal, Store, store_at
from multiplay.storage.base import Keyring, checked_name
from multiplay.studies import Study, Verified

T = TypeVar("T")
THREADS = 16
MOST_DESKS = 24  # studies that are kept open, each with a connection to the store
MOST_JOBS = 2_000  # that wait for one study
SHARED = 0.2  # seconds for which a look at the last entry is good enough for those who watch
CHECKS = 1  # journals that are verified at a time: that takes all of a core


class Office:
    """Desks for all studies of a store, and its keys.

    One thread at a time works at each desk. Long reads have handles of their own, so that nobody
    waits for them.

    Attributes
    ----------
    stopping : asyncio.Event
        Set when the service begins to stop: streams of events end.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings, self.store = settings, store_at(settings.store)
        self._register = Register(self.store.keyring(), settings.open)
        self._pool = ThreadPoolExecutor(THREADS, "multiplay")
        self._desks: OrderedDict[str, Desk] = OrderedDict()
        self._handles = Handles(self.store)
        self._checks = asyncio.Semaphore(CHECKS)
        self._heads: dict[str, tuple[float, asyncio.Future[Head]]] = {}
        self._streams = 0
        self.stopping = asyncio.Event()

    def close(self) -> None:
        """End all threads, when their work is done, and all connections."""
        self._pool.shutdown(wait=True)
        for desk in self._desks.values():
            desk.close()
        self._handles.close()
        self._register.close()

    # ------------------------------------------------------------ keys

    async def caller(self, token: str | None) -> Caller:
        """Return who asks; raise ``Unknown`` if there is no such key."""
        return await self._in_thread(lambda: self._register.caller(token))

    async def claimed(self, token: str | None) -> Caller:
        """Return who asks, by what this worker remembers of keys.

        All that an office does makes sure, where it is done, that the key is still valid.
        """
        return self._register.remembered(token) or await self.caller(token)

    async def with_keys(self, act: Callable[[Keyring], T]) -> T:
        """Call something with the keyring."""
        return await self._in_thread(lambda: self._register.use(act))

    # ------------------------------------------------------------ studies

    async def names(self, caller: Caller) -> list[str]:
        """Return the names of the studies that somebody may see."""
        names = await self._done(caller, self.store.names)
        return [name for name in names if caller.study in (None, name)]

    async def check_store(self) -> None:
        """Raise ``StoreError`` if the store cannot be read."""
        await self._in_thread(self.store.names)

    async def built(self, plain: Any) -> ActionSet | None:
        """Build a set of plain data, if it is given, in a thread: it may take seconds."""
        if plain is None:
            return None
        limits = self.settings.limits
        return await self._in_thread(lambda: build_actions("actions", plain, limits))

    async def create(self, name: str, caller: Caller, act: Callable[[Store], Study]) -> None:
        """Begin a study: ``act`` makes it in the store."""
        caller.check("manage", name)

        def made() -> None:
            act(self.store).disconnect()

        await self._done(caller, made)

    async def delete(self, name: str, caller: Caller) -> None:
        """Remove a study for good."""
        caller.check("manage", name)
        await self._done(caller, lambda: self.store.delete(name))

    async def write(
        self,
        name: str,
        caller: Caller,
        verb: str,
        act: Callable[[Study], T],
        shown: Callable[[T], Any] | None = None,
        request: str | None = None,
    ) -> Any:
        """Do a verb that changes a study; what ``shown`` makes of it is durable.

        ``request`` is what this is known by, if it comes again.
        """
        caller.check("play", name)
        known = None if request is None else caller.request(request)
        answer = await self._desk(name).do(Job(act, shown, caller, verb=verb, request=known))
        metrics.verb(verb)
        return answer

    async def read(self, name: str, caller: Caller, act: Callable[[Study], T]) -> T:
        """Look at a study, quickly."""
        caller.check("read", name)
        found: T = await self._desk(name).do(Job(act, None, caller))
        return found

    async def look(self, name: str, caller: Caller, act: Callable[[Journal], T]) -> T:
        """Look at the journal of a study; this may take long."""
        caller.check("read", name)
        return await self._done(caller, lambda: self._handles.use(name, act))

    async def latest(self, name: str, caller: Caller) -> Head:
        """Return the last entry of a study; one look is shared by all who watch.

        Who watches makes sure now and then that the key is still valid.
        """
        caller.check("read", name)
        known = self._heads.get(name)
        if known is None or time.monotonic() - known[0] > SHARED:
            head = partial(self._handles.use, name, lambda journal: journal.head())
            look = asyncio.ensure_future(self._in_thread(head))
            known = self._heads[name] = (time.monotonic(), look)
            if len(self._heads) > MOST_DESKS:
                del self._heads[next(iter(self._heads))]
        return await asyncio.shield(known[1])

    def check_streams(self) -> None:
        """Raise ``StoreError`` if there are too many streams of events."""
        if self._streams >= self.settings.limits.streams:
            reason = f"{self._streams} streams of events are open already"
            raise StoreError("service", reason, "Close some, or try again later.")

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Count a stream of events for as long as the block."""
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    async def verify(self, name: str, caller: Caller) -> Verified:
        """Replay the whole journal of a study, with a handle of its own; one at a time."""
        caller.check("read", name)

        def verified() -> Verified:
            with Study.open(name, store=self.store) as study:
                return study.verify()

        async with self._checks:
            return await self._done(caller, verified)

    # ------------------------------------------------------------ inside

    def _desk(self, name: str) -> Desk:
        desk = self._desks.get(name)
        if desk is None:
            checked_name(name)
            opened = partial(Study.open, name, store=self.store)
            desk = Desk(self._pool, opened, self._register, MOST_JOBS)
            self._desks[name] = desk
        self._desks.move_to_end(name)
        if len(self._desks) > MOST_DESKS:
            idle = next((one for one, its in self._desks.items() if not its.is_busy), name)
            if idle != name:
                self._pool.submit(self._desks.pop(idle).close)
        return desk

    async def _done(self, caller: Caller, act: Callable[[], T]) -> T:
        """Do something in a thread, for somebody whose key is still valid."""

        def done() -> T:
            self._register.confirm(caller)
            return act()

        return await self._in_thread(done)

    async def _in_thread(self, act: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, act)
