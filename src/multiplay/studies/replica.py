"""What a journal comes to: the state after its entries, one by one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from multiplay._support.checks import check_instance
from multiplay._support.serialization import pack
from multiplay.actions import ActionSet
from multiplay.learner import snapshot
from multiplay.learner.engine import Core
from multiplay.learner.plays import PendingState
from multiplay.learner.round_set import NO_LIMITS, Limits, Today
from multiplay.policies import Policy
from multiplay.random import ASK, LEARN, TELL, Rounds, Streams
from multiplay.storage import Entry, Record
from multiplay.studies import entry_codec
from multiplay.studies.entry_codec import Day
from multiplay.types import Arrays

NO_NUMBERS = np.zeros((1, 4), dtype=np.uint64)  # a study has no state of random numbers
DERIVED = ("actions", "policy")  # in the first entry, and therefore not in snapshots


class Differs(ValueError):
    """An entry says something else than replaying comes to."""


class Replica:
    """The state after some entries of a journal.

    Whoever applies the same entries has the same state, bit for bit: what was chosen is in the
    journal, and the random numbers of round t come from (seed, t).

    Attributes
    ----------
    core : Core
        What is known, and what waits.
    number : int
        Of the last entry that was applied.
    digest : bytes
        Of that entry.
    next_id : int
        Of the next play.
    """

    def __init__(self, core: Core, seed: int, first: Entry) -> None:
        self.core = core
        self.asking, self.telling_of, self.learning_at = (
            Rounds(seed, purpose) for purpose in (ASK, TELL, LEARN)
        )
        self.number, self.digest = first.number, first.digest
        self.next_id, self.last_day = 1, entry_codec.USUAL
        self.usual_set = entry_codec.set_digest(*pack(core.mind.actions, "actions"))

    @classmethod
    def begun(
        cls, first: Entry, actions: ActionSet | None = None, policy: Policy | None = None
    ) -> Replica:
        """Return the state after the first entry; a class of others must be given again."""
        header, record = first.record.header, first.record
        entry_codec.check_format(header)
        if first.labels.kind == entry_codec.IMPORT:
            learner = Record(header["learner"], record.arrays)
            core, log = snapshot.parts_of(learner, actions, policy)
            replica = cls(core, header["seed"], first)
            replica.next_id = max(log.ids(), default=0) + 1
            return replica
        made_of = {name: header[name] for name in ("outside", "missing", "changing")}
        ranges = {"losses": None, "rewards": None} | header["ranges"]
        core = Core.made(
            snapshot.rebuild("actions", record, actions),
            snapshot.rebuild("policy", record, policy),
            Streams(NO_NUMBERS),
            **ranges,
            **made_of,
        )
        return cls(core, header["seed"], first)

    # ------------------------------------------------------------ snapshots

    def record(self) -> Record:
        """Return the state as a snapshot."""
        header, arrays = snapshot.record(self.core, None)
        kept = {name: value for name, value in header.items() if name not in DERIVED}
        of_sets = tuple(f"{name}/" for name in DERIVED)
        arrays = {name: a for name, a in arrays.items() if not name.startswith(of_sets)}
        del arrays["rng"]
        own = {
            "format": entry_codec.FORMAT,
            "number": self.number,
            "digest": self.digest.hex(),
            "next_id": self.next_id,
            "last_day": self.last_day.hex(),
            "core": kept,
        }
        return Record(own, arrays)

    def restored(self, kept: Record) -> Replica:
        """Return the state of a snapshot; this one is that of the first entry."""
        own, mind = kept.header, self.core.mind
        entry_codec.check_format(own)
        header, arrays = dict(own["core"]), kept.arrays | {"rng": NO_NUMBERS}
        for name in DERIVED:
            header[name], of_one = pack(getattr(mind, name), name)
            arrays |= entry_codec.under(f"{name}/", of_one)
        core, _ = snapshot.parts_of(Record(header, arrays), mind.actions, mind.policy)
        replica = Replica.__new__(Replica)
        replica.__dict__ |= self.__dict__ | {"core": core}
        replica.number, replica.digest = own["number"], bytes.fromhex(own["digest"])
        replica.next_id, replica.last_day = own["next_id"], bytes.fromhex(own["last_day"])
        return replica

    # ------------------------------------------------------------ verbs

    def day(self, actions: Any, limits: Limits) -> tuple[Today, Day]:
        """Return a day for ``ask``, after all of it was checked, and as the journal keeps it.

        A set that says the same as that of the last play *is* that set, in every process: its warm
        start goes on.
        """
        mind = self.core.mind
        if actions is mind.actions:
            actions = None
        if actions is None and limits is NO_LIMITS:
            return mind.usual, USUAL_DAY
        if actions is not None:
            check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
        day = Day.of(actions, limits, self.usual_set)
        given = None if day.plain is None else actions  # one that says the same as the usual set
        return self._known(day) or mind.day(given, limits), day

    def _known(self, day: Day) -> Today | None:
        if day.digest == entry_codec.USUAL:
            return self.core.mind.usual
        return self.core.mind.last if day.digest == self.last_day else None

    def day_of(self, record: Record) -> tuple[Today, Day]:
        """Return the day of an entry."""
        mind = self.core.mind
        if "set" not in record.header and "limits" not in record.header:  # as a rule
            return mind.usual, USUAL_DAY
        day = Day.read(record)
        known = self._known(day)
        return known or mind.day(day.given(mind.actions), day.wanted()), day

    def ask(
        self, today: Today, day: Day, when: float, key: str | None, until: float = math.inf
    ) -> tuple[int, PendingState]:
        """Choose the next play."""
        id = self.next_id
        self.core.mind.rng = self.asking.at(id)
        play = self.core.ask(id, today, when, key, until)
        self.next_id, self.last_day = id + 1, day.digest
        return id, play

    def telling(self, id: int) -> Core:
        """Return the core, with the random numbers for learning from a play."""
        self.core.mind.rng = self.telling_of.at(id)
        return self.core

    def learning(self) -> Core:
        """Return the core, with the random numbers for learning from what others did."""
        self.core.mind.rng = self.learning_at.at(self.number + 1)
        return self.core

    # ------------------------------------------------------------ replaying

    def apply(self, entry: Entry, check: bool = False) -> None:
        """Take an entry that comes next. ``check``: choose again, and compare all that it says.

        Raises ``Differs`` where the entry says something else.
        """
        if not entry.record.header.get("imported"):  # what came before is in the first entry
            says = REPLAY[entry.labels.kind](self, entry, check)
            if check:
                _compare(entry, says)
        self.advance(entry)

    def advance(self, entry: Entry) -> None:
        """Note that an entry is applied."""
        self.number, self.digest = entry.number, entry.digest

    def _asked(self, entry: Entry, check: bool) -> Record | None:
        record, labels = entry.record, entry.labels
        today, day = self.day_of(record)
        truncated, key = entry_codec.is_truncated(record), entry_codec.shown_key(labels)
        if check and not truncated:
            id, chosen = self.ask(today, day, labels.at, key)
            if id != labels.play:
                raise Differs(f"play {labels.play}, where the next one is {id}")
            return entry_codec.asked(chosen, day)
        assert labels.play is not None  # an ask is of a play
        play, header = entry_codec.play_of(record, today.actions.names), record.header
        expected = entry_codec.from_number(header["expected"])
        rest = key, None, labels.at, expected, header["units"]
        pending = PendingState(play, today, *rest, truncated=truncated)
        says = self._truncated(pending, day) if check else None
        self.core.keep(labels.play, pending)
        self.next_id, self.last_day = labels.play + 1, day.digest
        return says

    def _truncated(self, play: PendingState, day: Day) -> Record:
        """Return what an entry should say of a play that ran out of time, which none can repeat.

        It must be an action of the day, and a mixture must have the mean that its memo says.
        """
        mind = self.core.mind
        try:
            mind.check(play.today, play.play, "a truncated play")
        except ArithmeticError as error:
            raise Differs(str(error)) from None
        cache = play.play.cache
        if {"atoms", "weights"} <= cache.keys():
            mean = (cache["weights"][:, :, None] * cache["atoms"]).sum(axis=1)
            if not np.allclose(mean, play.memo["x"], rtol=1e-9, atol=1e-12):
                raise Differs("its memo is not the mean of its mixture")
        cost = mind.believed_cost(play.today, play.action[0])
        units = int(play.action.sum())
        return entry_codec.asked(play._replace(expected=cost, units=units), day)

    def _told(self, entry: Entry, check: bool) -> Record | None:
        id, header = self._pending(entry), entry.record.header
        core = self.telling(id)
        play = core.pending[id]
        reading, final = core.read(header["losses"], play), entry.labels.kind == entry_codec.TELL
        heard = core.tell(id, reading, final, header["ignore"], entry.labels.at)
        if not check:
            return None
        return entry_codec.reported(heard, reading, play.today.actions.names, header["ignore"])

    def _closed(self, entry: Entry, check: bool) -> Record:
        id = self._pending(entry)
        told, outcome = self.telling(id).close(id, entry.labels.at)
        return Record(entry_codec.answer(told) | entry_codec.outcome_of(outcome), {})

    def _cancelled(self, entry: Entry, check: bool) -> None:
        self.core.cancel(self._pending(entry))

    def _learned(self, entry: Entry, check: bool) -> Record:
        record, core = entry.record, self.learning()
        header, day = record.header, Day.read(record)
        today = core.mind.day(day.given(core.mind.actions))
        action = entry_codec.action_of_plan(header["plan"], today.actions.names)
        told, reading = core.learn(
            today, action, header["losses"], header["ignore"], entry.labels.at
        )
        return entry_codec.learned(
            told, reading, action, today.actions.names, header["ignore"], day
        )

    def _learned_table(self, entry: Entry, check: bool) -> Record:
        outcomes = entry_codec.outcomes_of(entry.record)
        return entry_codec.learned_table(self.learning().learn_all(outcomes), outcomes)

    def _pending(self, entry: Entry) -> int:
        id = entry.labels.play
        if id is None or id not in self.core.pending:
            raise Differs(f"{entry.labels.kind} of play {id}, which does not wait")
        return id


USUAL_DAY = Day(None, {}, {}, entry_codec.USUAL)
REPLAY: dict[str, Callable[[Replica, Entry, bool], Record | None]] = {
    entry_codec.ASK: Replica._asked,
    entry_codec.TELL: Replica._told,
    entry_codec.PART: Replica._told,
    entry_codec.CLOSE: Replica._closed,
    entry_codec.CANCEL: Replica._cancelled,
    entry_codec.EXPIRE: lambda replica, entry, check: None,
    entry_codec.LEARN: Replica._learned,
    entry_codec.TABLE: Replica._learned_table,
}


def _compare(entry: Entry, says: Record | None) -> None:
    """Raise ``Differs`` unless an entry says what replaying comes to, bit for bit."""
    if says is None:
        return
    for name in sorted((says.header.keys() | entry.record.header.keys()) - entry_codec.MARKS):
        one, other = (json.dumps(record.header.get(name)) for record in (entry.record, says))
        if one != other:
            raise Differs(f"{name} is {one[:80]}, where replaying comes to {other[:80]}")
    if bits(entry.record.arrays) != bits(says.arrays):
        raise Differs("its arrays are not those that replaying comes to")


def bits(arrays: Arrays) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Return arrays so that they can be compared bit for bit."""
    return {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()}
