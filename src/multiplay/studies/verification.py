"""Replay a journal, and compare: every play and the state, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.policies import Policy
from multiplay.storage import Damaged, Entry, Journal, Record
from multiplay.studies import entry_codec
from multiplay.studies.replica import Replica, bits


class Verified(NamedTuple):
    """What replaying a journal has shown.

    Attributes
    ----------
    entries, plays : int
        How many were read.
    problems : tuple of str
        What is wrong, with the number of the entry; nothing, if all is well.

    Examples
    --------
    >>> from multiplay import Budget, GenCTS, Study
    >>> study = Study.create("new", Budget(1, [1, 1]), GenCTS(), store="memory://verified")
    >>> play = study.ask()
    >>> verified = study.verify()
    >>> verified
    Verified(entries=2, plays=1, problems=())
    >>> print(verified)
    2 entries, 1 play: all is as it was written, and comes out the same
    >>> verified.ok
    True
    """

    entries: int
    plays: int
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether all is well."""
        return not self.problems

    def __str__(self) -> str:
        entries, plays = _counted(self.entries, "entry"), _counted(self.plays, "play")
        text = f"{entries}, {plays}: "
        if self.ok:
            return text + "all is as it was written, and comes out the same"
        return text + "something is wrong\n" + "\n".join(self.problems)


def _counted(number: int, word: str) -> str:
    many = {"entry": "entries", "play": "plays"}
    return f"{number} {word if number == 1 else many[word]}"


def verify(
    journal: Journal,
    live: Replica | None,
    last: int,
    actions: ActionSet | None = None,
    policy: Policy | None = None,
    progress: Callable[[int], None] | None = None,
) -> Verified:
    """Replay all entries up to the last of a live state, and compare.

    There is no live state if an entry cannot be applied; that one is named. After the first that
    cannot be replayed, the others are only compared with their digests. ``progress`` is
    called with the number of entries that were read.
    """
    snapshot, problems = journal.get(), list[str]()
    replica: Replica | None = None
    seen = plays = number = 0
    replaying = True
    while number <= last:
        try:
            for entry in journal.entries(number):
                if entry.number > last:
                    break
                number = entry.number + 1
                seen, plays = seen + 1, plays + (entry.labels.kind == entry_codec.ASK)
                if progress is not None:
                    progress(seen)
                if replaying:
                    try:
                        replica = _next(replica, entry, actions, policy)
                        _compare_snapshot(replica, snapshot)
                    except (ValueError, KeyError, TypeError, AttributeError) as error:
                        if replica is None and isinstance(error, InvalidInput):
                            raise  # a class of others must be given, or multiplay is too old
                        problems.append(f"{name(entry)}: {error}")
                        replaying = False
            break
        except Damaged as damaged:
            number = number if damaged.number is None else damaged.number
            problems.append(f"entry {number}: {damaged}")
            replaying, number = False, number + 1
    states = [one.record() for one in (replica, live) if one is not None and replaying]
    if len(states) == 2 and not same(*states):
        problems.append(f"the state after entry {last} is not what replaying comes to")
    known = 0 if snapshot is None else snapshot.header.get("number", 0)
    if known > max(last, journal.head().number):  # others may have written on
        problems.append(f"entries {last + 1} to {known} are missing: a snapshot knows them")
    return Verified(seen, plays, tuple(problems))


def _next(
    replica: Replica | None, entry: Entry, actions: ActionSet | None, policy: Policy | None
) -> Replica:
    if replica is None:
        return Replica.begun(entry, actions, policy)
    replica.apply(entry, check=True)
    return replica


def _compare_snapshot(replica: Replica, snapshot: Record | None) -> None:
    if snapshot is None or snapshot.header.get("number") != replica.number:
        return
    if not same(replica.record(), snapshot):
        raise ValueError("the snapshot after it is not what replaying comes to")


def name(entry: Entry) -> str:
    """Name an entry for people."""
    kind, _, play, _ = entry.labels
    return f"entry {entry.number} ({kind}{'' if play is None else f' of play {play}'})"


def same(one: Record, other: Record) -> bool:
    """Compare bit for bit."""
    headers = [json.dumps(record.header, sort_keys=True) for record in (one, other)]
    return headers[0] == headers[1] and bits(one.arrays) == bits(other.arrays)
