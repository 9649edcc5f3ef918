"""Copies of a study in other stores, backups, and import of an exported journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from os import PathLike
from pathlib import Path

from multiplay._support.atomic_files import (
    PRIVATE,
    as_path,
    remove_stale_drafts,
    writable_folder,
    write_new,
)
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput, StoreError
from multiplay.policies import Policy
from multiplay.storage import Entry, Journal, Labels, Record, Store
from multiplay.storage.base import AnsweredRequest
from multiplay.storage.stores import store_at
from multiplay.studies import entry_codec
from multiplay.studies.export import (
    History,
    Progress,
    ProgressCounter,
    entries_until,
    errors_of_line,
    read_lines,
    refusal_of,
)
from multiplay.studies.replica import Replica, rebuilt

BEGINNINGS = (entry_codec.CREATE, entry_codec.IMPORT)


def backup(
    opened: AbstractContextManager[History],
    name: str,
    path: str | PathLike[str],
    progress: Progress = None,
) -> int:
    """Copy a study to a new SQLite file; return the number of entries.

    Entries written during the copy are not in it. ``progress`` is called with the number of entries
    copied.
    """
    place, counter = as_path("path", path), ProgressCounter(progress)
    if place.exists():
        raise _taken(place)
    remove_stale_drafts(writable_folder("path", place.parent))

    def write(draft: Path) -> None:
        _copy(opened, store_at(draft), name, counter)

    with refusal_of(place):
        if not write_new(place, write, PRIVATE):
            raise _taken(place)
    return counter.number


def copy(
    opened: AbstractContextManager[History],
    store: Store,
    name: str,
    progress: Progress = None,
    answer: Callable[[int], AnsweredRequest | None] = lambda entries: None,
) -> int:
    """Copy a study to a store, in one transaction; return the number of entries.

    Entries written during the copy are not in it. ``answer`` returns the request to record, given
    the number of entries.
    """
    counter = ProgressCounter(progress)
    _copy(opened, store, name, counter, answer)
    return counter.number


def _copy(
    opened: AbstractContextManager[History],
    store: Store,
    name: str,
    counter: ProgressCounter,
    answer: Callable[[int], AnsweredRequest | None] = lambda entries: None,
) -> None:
    with opened as history:
        snapshot = history.snapshot()  # read before the head, so that it is never newer
        head = history.head()
        entries = counter.count(entries_until(history, head.number))
        first = next(entries)
        more = ((entry.record, entry.labels) for entry in entries)
        request = answer(head.number + 1)
        created = store.create(name, first.record, first.labels, more, request=request)
        with closing(created) as made:
            last = next(made.entries(head.number))
            assert last.digest == head.digest  # the digests are chained: all entries are equal
            if snapshot is not None:
                made.put(snapshot)


def import_journal(
    store: Store,
    name: str,
    path: str | PathLike[str],
    actions: ActionSet | None = None,
    policy: Policy | None = None,
    progress: Progress = None,
) -> Journal:
    """Create a study from exported JSON lines: all of it, or nothing.

    Every entry is replayed, so that the imported study can be used. From the first correction on,
    that is done when all entries are there.
    """
    counter, place = ProgressCounter(progress), as_path("path", path)
    replica: Replica | None = None
    corrected = 0  # the line of the last correction

    def replayed() -> Iterator[tuple[Record, Labels]]:
        nonlocal replica, corrected
        for entry in counter.count(read_lines(place)):
            if entry_codec.changes_past(entry):
                corrected = entry.number + 1
            if not corrected:
                with errors_of_line(entry.number + 1):
                    replica = _next(replica, entry, actions, policy)
            yield entry.record, entry.labels

    records = replayed()
    journal = store.create(name, *next(records), more=records)
    if corrected:
        try:
            with errors_of_line(corrected):
                replica = rebuilt(journal, journal.head().number + 1, actions, policy)
        except BaseException:
            journal.close()
            store.delete(name)
            raise
    assert replica is not None  # after the first line
    with suppress(StoreError, InvalidInput):  # a snapshot only makes opening faster
        journal.put(replica.record())
    return journal


def _next(
    replica: Replica | None, entry: Entry, actions: ActionSet | None, policy: Policy | None
) -> Replica:
    if replica is not None:
        replica.apply(entry)
        return replica
    if entry.labels.kind not in BEGINNINGS:
        raise ValueError(f"the first entry of a study cannot be {entry.labels.kind!r}")
    return Replica.from_first_entry(entry, actions, policy)


def _taken(path: Path) -> InvalidInput:
    hint = "Choose a different name, or move the old file."
    return InvalidInput("path", "a file that does not exist", str(path), hint)
