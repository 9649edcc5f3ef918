"""Synchronised state: the state of a study in this process, updated from its journal."""

from __future__ import annotations

import math
import shlex
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar, cast

from multiplay._support.dates import day_name
from multiplay.errors import InvalidInput, StoreError
from multiplay.learner.engine import REQUEST, Engine
from multiplay.learner.plays import PendingPlay
from multiplay.learner.queries import Queries
from multiplay.storage import Damaged, Entry, Head, Journal, Labels, MemoryStore, Record, Store
from multiplay.storage.journal import damaged
from multiplay.studies import entry_codec
from multiplay.studies.entry_codec import Request
from multiplay.studies.replica import Replica, rebuilt, rehearse

SNAPSHOT_EVERY = 500  # entries, at least; see _interval

OLDER = "the store is older than what this process has seen: was a backup restored?"

T = TypeVar("T")


class Committed(NamedTuple):
    """The last transaction of this process.

    Attributes
    ----------
    entries : tuple of (Labels, Record)
        The entries that it wrote.
    pending : int
        The number of pending plays after it.
    """

    entries: tuple[tuple[Labels, Record], ...] = ()
    pending: int = 0


class Seen(NamedTuple):
    """The last entry of a study that this process has read or written.

    Attributes
    ----------
    first : bytes
        The digest of the first entry: names can be reused after a deletion.
    head : Head
        The entry.
    accepted : float
        When a shorter journal had been accepted.
    """

    first: bytes
    head: Head
    accepted: float


SEEN: dict[tuple[str, str], Seen] = {}  # by the URL of the store and the name of the study


class SyncedState(Queries):
    """A journal and its state, which takes in new entries of other processes before every verb.

    User-defined sets and policies are passed again.

    Attributes
    ----------
    name, store
        The name of the study, and its store.
    by : str or None
        The author of the entries that are written.
    replay_limit : float
        Seconds for which a verb may replay the journal: ``correct``, ``retract``, ``forget`` and
        ``unforget`` raise ``InvalidInput`` after them, and change nothing.
    committed : Committed
        The last transaction of this process.
    """

    def __init__(
        self,
        name: str,
        store: Store,
        journal: Journal,
        actions: Any = None,
        policy: Any = None,
        by: str | None = None,
    ) -> None:
        self.name, self.store = name, store
        self._can_be_restored = not isinstance(store, MemoryStore)  # from a backup
        self._rehearsed = -1  # 0 with the kernels of plans, 1 with those of reports, too
        self._journal, self._given = journal, (actions, policy)
        self._first: bytes | None = None  # the digest of the first entry
        self._lock = threading.RLock()
        self._replica: Replica | None = None
        self._in_turn = self._changed = self._spoiled = False
        self._snapshot_at = 0
        self._foreseen: set[tuple[str, str]] = set()  # kinds and keys that have no entry yet
        self.by, self.replay_limit = by, math.inf
        self._request: Request | None = None  # that has written nothing yet
        self._is_recorded = False  # whether an entry has the id of the request
        self.committed = Committed()
        self._written: list[tuple[Labels, Record]] = []

    @contextmanager
    def together(self, learns: bool = True) -> Iterator[None]:
        """Run all verbs of a block in one transaction, committed at its end.

        Kernels are compiled before it begins, those of reports only if it ``learns``. A verb that
        raises ``InvalidInput`` changes nothing, and the block may continue. After any other error
        nothing of the block is kept.
        """
        with self._lock:
            if self._in_turn:
                raise RuntimeError("transactions of one study cannot be nested")
            if self._replica is None:  # a long replay outside the transaction
                seen = self._seen()
                self._caught_up(self._journal.head(), seen)
            if self._replica is not None and self._rehearsed < learns:
                rehearse(self._replica.engine, learns)  # compile outside the transaction, too
                self._rehearsed = int(learns)
            self._changed = self._spoiled = False
            self._written = []
            seen = self._seen()
            try:
                with self._journal.transaction() as head:
                    self._caught_up(head, seen)
                    self._in_turn = True
                    yield
                    if self._spoiled:
                        raise RuntimeError(
                            "a verb of the block failed: nothing of the block is kept"
                        )
            except BaseException as error:
                if self._changed or not isinstance(error, InvalidInput):
                    self._replica = None  # read again from the journal
                raise
            finally:
                self._in_turn, self._foreseen = False, set()
            pending = len(self._own().engine.pending)
            self.committed = Committed(tuple(self._written), pending)
            self._remember()
            self._keep_snapshot()

    @contextmanager
    def _turn(self, learns: bool = True) -> Iterator[Replica]:
        """Run one verb in a transaction, on the current state; it is committed at the end.

        Within ``together`` it is part of the transaction of that block.
        """
        with self._lock:
            if not self._in_turn:
                with self.together(learns):
                    yield self._own()
                return
            before, self._changed = self._changed, False
            try:
                yield self._own()
            except BaseException as error:
                self._spoiled |= self._changed or not isinstance(error, InvalidInput)
                raise
            finally:
                self._changed |= before

    def foresee(self, requests: Sequence[tuple[str, str]]) -> None:
        """Look up the requests of this transaction in one query.

        Each is the name of a verb and the id of a request.
        """
        if not self._in_turn:
            raise RuntimeError("foresee() is called within together()")
        wanted = [pair for request in {*requests} for pair in entry_codec.request_keys(*request)]
        found = {(entry.labels.kind, entry.labels.key) for entry in self._journal.find_all(wanted)}
        self._foreseen |= {*wanted} - found

    def pending_after(self, id: int) -> Iterator[PendingPlay]:
        """Yield the pending plays with larger ids, oldest first; each is made when it is needed."""
        with self._current() as engine:
            for one in engine.pending:
                if one > id:
                    yield self._pending_play(engine, one)

    def _own(self) -> Replica:
        """Return the state within a transaction."""
        if self._spoiled or self._replica is None:
            raise RuntimeError("a verb failed: end the block")
        return self._replica

    @contextmanager
    def _current(self) -> Iterator[Engine]:
        with self._lock:
            seen = self._seen()
            yield self._caught_up(self._journal.head(), seen).engine

    def _caught_up(self, head: Head, seen: Seen | None) -> Replica:
        """Return the state after all entries.

        ``seen`` is what this process had seen before the head was read. A journal without that
        entry is refused, unless it was accepted.
        """
        replica, self._replica = self._replica, None  # dropped if an entry cannot be applied
        if seen is not None and self._is_older(head, seen.head, replica):
            self._check_accepted(seen)
            replica = None
        if replica is None or head.number < replica.number or _is_other(head, replica):
            replica = self._restored()
        elif head.number > replica.number + 2 * SNAPSHOT_EVERY:  # newer snapshot
            replica = max(replica, self._restored(), key=lambda one: one.number)
        elif _is_due(replica.engine, replica.number, head.number):  # its writer keeps it
            self._snapshot_at = head.number
        if head.number > replica.number:
            try:
                replica = self._follow(replica)
            except Damaged:  # or the journal was replaced by a backup
                if seen is not None and self._lacks(seen.head):
                    self._check_accepted(seen)
                replica = self._follow(self._restored())
        self._replica = replica
        if not self._in_turn:
            self._remember()
        return replica

    # ------------------------------------------------------------ what this process has seen

    def _seen(self) -> Seen | None:
        """Return the last entry that this process has seen, also by another handle."""
        seen = SEEN.get((self.store.url, self.name))
        if seen is not None and self._first is None:
            self._first = next(self._journal.entries()).digest
        return None if seen is None or seen.first != self._first else seen

    def _remember(self) -> None:
        """Record that this process has seen the entries of the state."""
        replica = self._replica
        if replica is None or self._first is None or not self._can_be_restored:
            return
        known, head = self._seen(), Head(replica.number, replica.digest)
        if known is None or known.head.number <= head.number:
            accepted = self._journal.accepted() if known is None else known.accepted
            SEEN[self.store.url, self.name] = Seen(self._first, head, accepted)

    def _is_older(self, head: Head, seen: Head, replica: Replica | None) -> bool:
        """Return whether the journal does not have the last entry that this process has seen."""
        if head.number <= seen.number:
            return head != seen
        if replica is not None and replica.number == seen.number:
            return False  # its digest is compared when the newer entries are applied
        return self._lacks(seen)

    def _lacks(self, seen: Head) -> bool:
        """Return whether an entry is missing, or a different one."""
        entry = next(self._journal.entries(seen.number), None)
        return entry is None or entry.digest != seen.digest

    def _check_accepted(self, seen: Seen) -> None:
        """Raise ``StoreError`` unless the journal was accepted since this process has seen it."""
        if self._journal.accepted() <= seen.accepted:
            hint = f"To continue from it, run: multiplay study accept {shlex.quote(self.name)}."
            raise StoreError(self.store.url, OLDER, hint)
        SEEN.pop((self.store.url, self.name), None)

    # ------------------------------------------------------------ reading the journal

    def _follow(self, replica: Replica) -> Replica:
        """Return the state after all newer entries; after a correction, it is a new one."""
        for entry in self._journal.entries(replica.number + 1, replica.digest):
            try:
                if entry_codec.changes_past(entry):
                    kept = self._restored()  # the process that corrected has written a snapshot
                    if kept.number >= entry.number:
                        return self._follow(kept)
                    return self._rebuilt()
                replica.apply(entry)
            except Damaged:
                raise
            except entry_codec.UNREADABLE as error:
                reason = f"one that cannot be replayed ({error})"
                raise damaged(entry.number, reason) from error
        return replica

    def _rebuilt(self, new: Entry | None = None, limit: float = math.inf) -> Replica:
        """Return the state after all entries, with all corrections, and a new one."""
        end, bases = self._journal.head().number + 1, self._bases()
        return rebuilt(self._journal, end, *self._given, new=new, bases=bases, limit=limit)

    def _at(self, number: int) -> Replica:
        """Return the state as it was after an entry, with the corrections until then."""
        newest, end = self._snapshot_at, number + 1
        bases = [self._restored(before=end)]
        self._snapshot_at = newest
        limit = self.replay_limit
        return rebuilt(self._journal, end, *self._given, bases=bases, limit=limit)

    def _bases(self) -> Iterator[Replica]:
        """Yield the states of the snapshots, newest first."""
        newest = self._restored()
        number = newest.number
        yield newest
        before = self._restored(before=number)
        self._snapshot_at = number
        yield before

    def _restored(self, before: int | None = None) -> Replica:
        """Return the state of the newest snapshot, or that after the first entry.

        ``before``: of the newest one before this number.
        """
        first = next(self._journal.entries())
        self._first = first.digest
        replica = Replica.from_first_entry(first, *self._given)
        self._given = replica.engine.state.actions, replica.engine.state.policy
        kept = self._journal.get() if before is None else self._journal.get(before)
        if kept is not None:
            with suppress(*entry_codec.UNREADABLE, StopIteration):  # a bad snapshot: replay
                replica = self._from_snapshot(replica, kept)
        self._snapshot_at = replica.number
        return replica

    def _from_snapshot(self, first: Replica, kept: Record) -> Replica:
        """Return the state of a snapshot, if it belongs to this journal."""
        replica = first.restored(kept)
        entry = next(self._journal.entries(replica.number))
        return replica if entry.digest == replica.digest else first

    def _keep_snapshot(self) -> None:
        """Write a snapshot if the last one is old; errors are ignored."""
        replica = self._replica
        if replica is None or not _is_due(replica.engine, self._snapshot_at, replica.number):
            return
        self._snapshot_at = replica.number
        with suppress(StoreError, InvalidInput):
            self._journal.put(replica.record())

    def _write(self, replica: Replica, record: Record, labels: Labels, **result: Any) -> None:
        """Write the entry of a verb; the first entry of a request gets its id.

        ``result`` is what the result of the request needs, and the entry has not.
        """
        self._changed = True
        if labels.key is not None:
            labels = labels._replace(key=day_name(labels.key))
        request, self._request = self._request, None
        if request is not None:
            if labels.key is None:
                labels = labels._replace(key=REQUEST + request.id)
            else:
                result[entry_codec.ID] = request.id
            record = entry_codec.requested(record, request, **result)
            self._is_recorded = True
        known_as = labels.kind, labels.key or ""
        is_new = known_as in self._foreseen
        self._foreseen.discard(known_as)
        record = entry_codec.signed(record, self.by)
        replica.advance(self._journal.write(record, labels, is_new=is_new))
        self._written.append((labels, record))

    def _correct(self, draft: Record, labels: Labels) -> Replica:
        """Return the state with a correction that is not written yet, which is then used."""
        last = self._journal.head().number
        new = self._rebuilt(Entry(last + 1, labels, draft, b""), self.replay_limit)
        self._changed, self._replica = True, new
        if last > new.began + 2 * SNAPSHOT_EVERY:
            self._snapshot_at = -1  # write one, so that other processes need not replay as much
        return new

    def _guarded(self, items: Iterator[T]) -> Iterator[T]:
        """Yield items read from the journal, each while no other thread uses it."""
        end = object()
        while True:
            with self._lock:
                item = next(items, end)
            if item is end:
                return
            yield cast(T, item)


def forget(store: Store, name: str) -> None:
    """Forget what this process has seen of a study that was deleted."""
    SEEN.pop((store.url, name), None)


def _interval(engine: Engine) -> int:
    """Return the number of entries from one snapshot to the next.

    Writing a snapshot takes as long as an entry with 6 arms, 7 entries with 100, 40 with 10,000,
    and one more for every 30 pending plays. So the interval is doubled until it is more than half
    of the number of pending plays; it is only doubled, so that all processes use the same.
    """
    return SNAPSHOT_EVERY << (len(engine.pending) // (2 * SNAPSHOT_EVERY)).bit_length()


def _is_due(engine: Engine, last: int, number: int) -> bool:
    """Return whether a snapshot is due at one of the entries since the last one."""
    every = _interval(engine)
    return number // every > last // every


def _is_other(head: Head, replica: Replica) -> bool:
    return head.number == replica.number and head.digest != replica.digest
