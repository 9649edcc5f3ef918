"""Study manager: the open studies, journals and API keys of one worker process."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, ParamSpec, TypeVar

from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput, NotFound, StoreError
from multiplay.kernels.jit import compiled_so_far
from multiplay.service.auth.authenticator import Authenticator, Caller
from multiplay.service.errors import Forbidden, Overloaded, TookTooLong
from multiplay.service.server import metrics
from multiplay.service.settings import Settings
from multiplay.service.studies import bounded_verbs
from multiplay.service.studies.batching import Job, RequestBatcher, is_deleted
from multiplay.service.studies.limits import build_actions, check_path_name
from multiplay.service.studies.solver import MOST_SOLVING, SolverProcesses
from multiplay.storage import Head, Journal, Store, store_at
from multiplay.storage.base import Keyring, NoConnectionLeft, checked_name
from multiplay.studies import Study, Verified
from multiplay.studies.entry_codec import Request

log = logging.getLogger("multiplay.service")

T = TypeVar("T")
C = TypeVar("C")
P = ParamSpec("P")
THREADS = 16  # and one for each request that has integer programs solved
MOST_OPEN_STUDIES = 24  # with a store where each has a connection of its own
MOST_MEMORY = 256.0  # megabytes of open studies of a worker, by estimate
STUDY_MEMORY, ARM_MEMORY = 0.3, 0.002  # megabytes of an open study, and of each of its arms
MOST_IDLE = 8  # journals
MOST_COMPARED = 4  # studies that are kept open for comparisons
PAUSES = (0.01, 0.03, 0.1, 0.3)  # seconds, until the server has ended a closed connection
MOST_JOBS = 2_000  # waiting for one study
HEAD_LIFETIME = 0.2  # seconds for which the last entry of a study is cached for event streams
PATIENCE = 1.0  # seconds for kernels, before the service says that it is not ready
VERIFICATIONS = 1  # at a time: each uses a whole core
EXPORTS = 1  # at a time
COMPARISONS = 1  # at a time
MOST_EXPORTED = 1_000_000  # rows of an exported file


class StudyManager:
    """Request batchers for all studies of a store, and its keys.

    One thread at a time works on each study. Long reads use journals of their own, so that other
    requests do not wait for them.

    Attributes
    ----------
    stopping : asyncio.Event
        Set when the service begins to stop: event streams end.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings, self.store = settings, store_at(settings.store)
        self._authenticator = Authenticator(self.store.keyring(), settings.open)
        self._solvers = SolverProcesses()
        threads = THREADS + MOST_SOLVING
        self._pool = ThreadPoolExecutor(
            threads, "multiplay", self._solvers.use_in_thread, (self._solving_seconds,)
        )
        self._batchers: OrderedDict[str, RequestBatcher] = OrderedDict()
        shared = getattr(self.store, "shares_connections", False)
        self._may_exceed = False
        self._most_open = math.inf if shared else MOST_OPEN_STUDIES
        self._journals = IdlePool[Journal](self.store.open, lambda one: one.close(), MOST_IDLE)
        opened = partial(Study.open, store=self.store)
        self._compared = IdlePool(opened, Study.disconnect, MOST_COMPARED)
        self._verifications = asyncio.Semaphore(VERIFICATIONS)
        self._exports = asyncio.Semaphore(EXPORTS)
        self._comparisons = asyncio.Semaphore(COMPARISONS)
        self._heads: dict[str, tuple[float, asyncio.Future[Head]]] = {}
        self._streams = 0
        self._is_compiled = threading.Event()
        self.stopping = asyncio.Event()

    def close(self) -> None:
        """End all threads, when their jobs are done, and close all connections."""
        self._pool.shutdown(wait=True)
        self._solvers.close()
        for batcher in self._batchers.values():
            batcher.close()
        self._journals.close()
        self._compared.close()
        self._authenticator.close()

    # ------------------------------------------------------------ keys

    async def caller(self, token: str | None) -> Caller:
        """Return the caller of a key; raise ``Unauthenticated`` if there is none."""
        return await self._in_thread(lambda: self._authenticator.caller(token))

    async def remembered_caller(self, token: str | None) -> Caller:
        """Return the caller of a key, from the cache of this worker if possible.

        All methods confirm that the key is still valid, and one of the study, before they do
        anything.
        """
        return self._authenticator.cached(token) or await self.caller(token)

    async def use_keyring(self, act: Callable[[Keyring], T]) -> T:
        """Call a function with a keyring of its own.

        One that waits for a transaction to end must not delay that transaction, in which keys are
        confirmed.
        """

        def use() -> T:
            with closing(self.store.keyring()) as keyring:
                return act(keyring)

        return await self._in_thread(use)

    # ------------------------------------------------------------ studies

    async def names(
        self, caller: Caller, prefix: str = "", after: str = "", limit: int | None = None
    ) -> list[str]:
        """Return the names of studies that a caller may read, as ``Store.names``."""

        def names() -> list[str]:
            study = self._authenticator.current(caller).study
            if study is None:
                return self.store.names(prefix, after, limit)
            return [study] if study > after and study.startswith(prefix) else []

        return await self._in_thread(names)

    def start(self) -> None:
        """Begin to compile the kernels of all studies, in a thread."""

        def compile_all() -> None:
            started, before = time.perf_counter(), compiled_so_far()
            try:
                with suppress(StoreError):  # kernels are then compiled by the first requests
                    Study.compile_all(store=self.store)
            finally:
                self._is_compiled.set()
            taken = round(time.perf_counter() - started, 1)
            fields = {"compiled": compiled_so_far() - before, "seconds": taken}
            log.info("kernels ready", extra={"fields": fields})

        self._pool.submit(compile_all)

    async def check_ready(self) -> None:
        """Raise ``Overloaded`` while kernels are compiled, ``StoreError`` without a store."""
        if self.stopping.is_set():
            raise Overloaded("it is being stopped")
        if not await self._in_thread(lambda: self._is_compiled.wait(PATIENCE)):
            raise Overloaded(
                "it compiles the kernels of its studies; the first plays wait for them"
            )
        await self._in_thread(lambda: self.store.names(limit=1))

    async def build(self, act: Callable[[], T]) -> T:
        """Call a function that builds the arguments of a verb, in a thread: it may take seconds."""
        return await self._in_thread(self._within_limits(act, changes=True))

    async def build_actions(self, plain: Any) -> ActionSet | None:
        """Build a set from plain data, if given."""
        if plain is None:
            return None
        limits = self.settings.limits
        return await self.build(lambda: build_actions("actions", plain, limits))

    async def create(self, name: str, caller: Caller, act: Callable[[Store], T]) -> T:
        """Create a study: ``act`` creates it in the store, and returns the response."""
        await self._admit(caller, "manage", name)
        create = self._within_limits(lambda: act(self.store), changes=True)
        return await self._run_confirmed(caller, "manage", name, create)

    async def delete(self, name: str, caller: Caller, request: Request | None = None) -> None:
        """Delete a study; ``request`` is the request, if it has an idempotency key."""
        await self._admit(caller, "manage", name)
        check = partial(self._authenticator.confirm, caller, "manage", name)
        delete = partial(bounded_verbs.delete, self.store, name, request, check)
        await self._run_confirmed(caller, "manage", name, delete)

    async def rename(
        self, name: str, caller: Caller, new: str, request: Request | None = None
    ) -> None:
        """Give a study a new name; the caller may manage all studies."""
        await self._admit(caller, "manage")
        rename = partial(bounded_verbs.rename, self.store, name, check_path_name(new), request)
        await self._run_confirmed(caller, "manage", None, rename)

    async def copy(
        self, name: str, caller: Caller, new: str, request: Request | None = None
    ) -> int:
        """Copy a study to a new name; return the number of entries.

        The caller may manage all studies. Keys of the study are none of the copy.
        """
        await self._admit(caller, "manage")
        copy = partial(bounded_verbs.copy, self.store, name, check_path_name(new), request)
        return await self._run_confirmed(caller, "manage", None, copy)

    async def write(
        self,
        name: str,
        caller: Caller,
        verb: str,
        act: Callable[[Study], T],
        present: Callable[[T], Any] | None = None,
        request: Request | None = None,
        key: str | None = None,
    ) -> Any:
        """Run a verb that changes a study, and return what ``present`` makes of its result.

        The change is durable before ``present`` is called. ``request`` is the request, if it
        has an idempotency key, and ``key`` the key in its body.
        """
        await self._admit(caller, "play", name)
        act = self._within_limits(act, changes=True)
        present = present and self._within_limits(present)
        job = Job(act, present, caller, verb=verb, request=request, key=key)
        result = await self._batcher(name).run(job)
        metrics.count_verb(verb)
        return result

    async def read(self, name: str, caller: Caller, act: Callable[[Study], T]) -> T:
        """Call a short function that reads a study."""
        await self._admit(caller, "read", name)
        found: T = await self._batcher(name).run(Job(self._within_limits(act), None, caller))
        return found

    async def read_journal(self, name: str, caller: Caller, act: Callable[[Journal], T]) -> T:
        """Call a function that reads the journal of a study; it may take long."""
        await self._admit(caller, "read", name)
        return await self._read_confirmed(name, caller, lambda: self._journals.use(name, act))

    async def latest(self, name: str, caller: Caller) -> Head:
        """Return the last entry of a study; all event streams share one query.

        The stream itself confirms that the key is still valid.
        """
        await self._admit(caller, "read", name)
        known = self._heads.get(name)
        if known is None or time.monotonic() - known[0] > HEAD_LIFETIME:
            head = partial(self._journals.use, name, lambda journal: journal.head())
            query = asyncio.ensure_future(self._in_thread(head))
            query.add_done_callback(_retrieved)  # all streams that wait for it may have ended
            known = self._heads[name] = (time.monotonic(), query)
            if len(self._heads) > MOST_OPEN_STUDIES:
                del self._heads[next(iter(self._heads))]
        return await asyncio.shield(known[1])

    async def confirm(self, name: str, caller: Caller) -> None:
        """Raise an error if the key of a caller is not valid any more, or not for this study."""
        await self._in_thread(lambda: self._authenticator.confirm(caller, "read", name))

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Count an event stream for the duration of the block; raise if too many are open."""
        if self._streams >= self.settings.limits.streams:
            raise Overloaded(f"{self._streams} event streams are open already")
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    async def verify(self, name: str, caller: Caller) -> Verified:
        """Replay the whole journal of a study, on a connection of its own; one at a time."""
        await self._admit(caller, "read", name)

        def verify() -> Verified:
            with Study.open(name, store=self.store) as study:
                return study.verify()

        async with self._verifications:
            return await self._read_confirmed(name, caller, verify)

    async def saved(self, name: str, caller: Caller, act: Callable[[Study], T]) -> T:
        """Call a function that compares plays with a rule; one at a time.

        The study has a connection of its own, so that other requests to it do not wait.
        """
        await self._admit(caller, "read", name)
        async with self._comparisons:
            return await self._read_confirmed(name, caller, partial(self._compared.use, name, act))

    async def export(self, name: str, caller: Caller, format: str, wide: bool) -> bytes:
        """Return a file with the plans of a study, read on a connection of its own; one at a time.

        ``format`` is "xlsx", "csv" or "jsonl".
        """
        await self._admit(caller, "read", name)

        def export() -> bytes:
            with (
                TemporaryDirectory(prefix="multiplay-") as folder,
                Study.open(name, store=self.store) as study,
            ):
                path = Path(folder) / f"plans.{format}"
                study.export(path, plans=True, wide=wide, progress=_check_exported)
                return path.read_bytes()

        async with self._exports:
            return await self._read_confirmed(name, caller, export)

    # ------------------------------------------------------------ inside

    def _within_limits(self, act: Callable[P, T], changes: bool = False) -> Callable[P, T]:
        """Return a function whose integer programs have a time limit in total.

        They have the time to choose a play, and as much for all that comes before and after it.
        Elsewhere, in a verification say, each of them has this time.
        """

        def bounded(*arguments: P.args, **named: P.kwargs) -> T:
            with self._solvers.within(self._solving_seconds, changes):
                return act(*arguments, **named)

        return bounded

    @property
    def _solving_seconds(self) -> float:
        return 2 * self.settings.limits.seconds

    def _batcher(self, name: str) -> RequestBatcher:
        batcher = self._batchers.get(name)
        if batcher is None:
            checked_name(name)
            opened = partial(self._with_connection, partial(self._open, name))
            confirm = partial(self._authenticator.confirm, needed="read", study=name)
            batcher = RequestBatcher(self._pool, opened, confirm, MOST_JOBS)
            self._batchers[name], self._may_exceed = batcher, True
        self._batchers.move_to_end(name)
        if self._may_exceed:
            self._close_excess()
        return batcher

    def _close_excess(self) -> None:
        """Close idle studies that were not used for longest, until the others fit in memory."""
        memory = {
            name: STUDY_MEMORY + ARM_MEMORY * one.arms for name, one in self._batchers.items()
        }
        most, used = self._most_open, sum(memory.values())
        for name, one in [*self._batchers.items()][:-1]:
            self._may_exceed = used > MOST_MEMORY or len(self._batchers) > most
            if not self._may_exceed:
                break
            if not one.is_busy:
                used -= memory[name]
                self._pool.submit(self._batchers.pop(name).close)

    def _open(self, name: str) -> Study:
        """Open a study whose turns are limited, also where they replay the journal."""
        study = Study.open(name, store=self.store)
        study.replay_limit = self.settings.limits.seconds
        return study

    async def _admit(self, caller: Caller, needed: str, name: str | None = None) -> None:
        """Raise ``Forbidden`` unless a key has a permission for one study, or for all of them.

        A study that the cached key does not name may have a new name: then the store decides.
        """
        try:
            caller.check(needed, name)
        except Forbidden:
            await self._run_confirmed(caller, needed, name, lambda: None)

    async def _run_confirmed(
        self, caller: Caller, needed: str, name: str | None, act: Callable[[], T]
    ) -> T:
        """Call a function in a thread, if the key of the caller still has a permission."""

        def run() -> T:
            self._authenticator.confirm(caller, needed, name)
            return act()

        return await self._in_thread(run)

    async def _read_confirmed(self, name: str, caller: Caller, act: Callable[[], T]) -> T:
        """Call a function that reads a study, if the key of the caller is one of the study.

        A key for one study is confirmed again before the result is returned: a different study may
        have been given the name, and been read.
        """

        def read() -> T:
            found = act()
            if caller.study is not None:
                self._authenticator.confirm(caller, "read", name)
            return found

        return await self._run_confirmed(caller, "read", name, read)

    async def _in_thread(self, act: Callable[[], T]) -> T:
        try:
            act = partial(self._with_connection, act)
            return await asyncio.get_running_loop().run_in_executor(self._pool, act)
        except TookTooLong as error:
            raise error.problem from None

    def _with_connection(self, act: Callable[[], T]) -> T:
        """Call a function; while the store has no connection left, close idle ones and try again.

        Idle journals and studies of this worker keep connections. If none is idle, or others
        take what is freed, the error is raised after the last attempt: nothing was changed.
        """
        for pause in PAUSES:
            try:
                return act()
            except NoConnectionLeft:
                self._close_idle()
            time.sleep(pause)
        return act()

    def _close_idle(self) -> None:
        """Close the idle connection that was not used for longest, if there is one."""
        if not (self._journals.close_oldest() or self._compared.close_oldest()):
            any(one.close_if_idle() for one in tuple(self._batchers.values()))  # the first of them


def _retrieved(query: asyncio.Future[Any]) -> None:
    """Retrieve the error of a query, which would be logged otherwise."""
    if not query.cancelled():
        query.exception()


def _check_exported(rows: int) -> None:
    if rows > MOST_EXPORTED:
        expected, hint = f"at most {MOST_EXPORTED:,} rows", "Use multiplay study export, or wide."
        raise InvalidInput("export", expected, "more", hint)


class IdlePool(Generic[C]):
    """Open journals or studies for long reads, each for one thread at a time.

    To open one takes time: a connection, and the replay of a journal.
    """

    def __init__(self, opened: Callable[[str], C], closed: Callable[[C], None], most: int) -> None:
        self._open, self._close, self._most = opened, closed, most
        self._idle: list[tuple[str, C]] = []  # the most recently used last
        self._lock = threading.Lock()

    def use(self, name: str, act: Callable[[C], T]) -> T:
        """Call a function with the journal of a study, or with the study."""
        kept = self._take(name)
        if kept is not None:
            try:
                return self._use(name, kept, act)
            except NotFound as error:
                if not is_deleted(error):
                    raise
        return self._use(name, self._open(name), act)  # perhaps a new study of this name

    def close(self) -> None:
        """Close all that are idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, one in idle:
            self._close(one)

    def close_oldest(self) -> bool:
        """Close the one that was not used for longest; return whether there was one."""
        with self._lock:
            oldest = self._idle.pop(0)[1] if self._idle else None
        if oldest is not None:
            self._close(oldest)
        return oldest is not None

    def _take(self, name: str) -> C | None:
        with self._lock:
            for place, (kept, one) in reversed([*enumerate(self._idle)]):
                if kept == name:
                    del self._idle[place]
                    return one
        return None

    def _use(self, name: str, one: C, act: Callable[[C], T]) -> T:
        try:
            result = act(one)
        except BaseException:
            self._close(one)
            raise
        with self._lock:
            self._idle.append((name, one))
            is_full = len(self._idle) > self._most
        if is_full:
            self.close_oldest()
        return result
