"""Replica with one stream of random numbers: the state of a learner, and its replay."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from multiplay._support.serialization import pack, set_digest
from multiplay.actions import ActionSet
from multiplay.beliefs.restart import ReportLog
from multiplay.errors import InvalidInput
from multiplay.features import Features
from multiplay.features.table import ArmFeatures, Scales
from multiplay.learner import snapshot
from multiplay.learner.engine import Engine
from multiplay.learner.plan_request import PlanRequest
from multiplay.learner.plays import PendingState
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.ranges import Ranges
from multiplay.learner.round_set import PlanLimits, RoundSet
from multiplay.random import Streams
from multiplay.storage import Entry, Record
from multiplay.storage.base import JournalEntries
from multiplay.studies import entry_codec
from multiplay.studies.entry_codec import NO_FEATURES, StoredAhead, StoredFeatures, StoredSet
from multiplay.studies.object_journal import ObjectJournal
from multiplay.studies.replica import (
    NO_CORRECTIONS,
    USUAL_SET,
    Check,
    Made,
    Replica,
    no_new_range,
    rebuilt,
)
from multiplay.types import IntArray

NOT_COMPARED = b"not compared"  # in place of the digest of a set
MOST_PACKED = 32  # sets whose stored form is kept


class StreamReplica(Replica):
    """The state of a learner after some entries of its journal.

    All random numbers come from one running stream. The journal has its state before every entry
    from which something was learned, and a replay continues from there. Plays are kept in the
    journal without their warm start, which is therefore that of the state in use.

    Attributes
    ----------
    table : ArmFeatures or None
        The features of arms before the first entry.
    file : Record or None
        The learner before the first entry, if it is that of a file without a journal.
    words : bytes
        The state of the random numbers before the last report.
    has_cancelled : bool
        Whether a play was cancelled for another one that could not be chosen.
    """

    def __init__(
        self,
        engine: Engine,
        table: ArmFeatures | None = None,
        file: Record | None = None,
    ) -> None:
        self.engine, self.table, self.file = engine, table, file
        self.number, self.digest, self.next_id, self.began = 0, b"", 1, 0
        self.last_set, self.results, self.requests = NOT_COMPARED, 0, {}
        self.corrections, self.redone = NO_CORRECTIONS, {}
        self.words, self.has_cancelled = b"", False
        self._journal: ObjectJournal | None = None  # that is replayed

    @cached_property
    def usual_digest(self) -> bytes:  # type: ignore[override]
        """The digest of the usual set."""
        return set_digest(*pack(self.engine.state.actions, "actions"))

    # ------------------------------------------------------------ verbs

    def round_set(self, actions: Any, limits: PlanLimits) -> tuple[RoundSet, StoredSet]:
        """Return the set of a round, after it was checked; its stored form is made when needed."""
        return self.engine.state.round_set(actions, limits), USUAL_SET

    def ask(
        self,
        round_set: RoundSet,
        stored_set: StoredSet,
        when: float,
        key: str | None,
        until: float = np.inf,
        baseline: IntArray | None = None,
        ahead: tuple[ActionSet, ...] = (),
        replaces: int | None = None,
    ) -> tuple[int, PendingState]:
        """Choose the next play; as ``Replica.ask``, without the cost of the best plan."""
        id, engine = self.next_id, self.engine
        if replaces is not None:
            engine.cancel(replaces)
            self.has_cancelled = True
        engine.ask(id, round_set, when, key, until, baseline, ahead)
        self.next_id, self.last_set, self.has_cancelled = id + 1, NOT_COMPARED, False
        return id, engine.pending[id]

    def ask_record(
        self,
        play: PendingState,
        round_set: RoundSet,
        stored_set: StoredSet,
        ahead: StoredAhead,
        replaces: int | None = None,
    ) -> Made:
        """Return what makes the entry of a play."""
        prices = self.engine.constraints.promises.prices_of(play.play) or None
        usual = None if round_set.base is self.engine.state.usual else self.usual_digest
        features = self.engine.declared, round_set.scales
        return partial(asked_record, play, usual, *features, ahead, prices, replaces)

    def plan_request(
        self,
        round_set: RoundSet,
        stored_set: StoredSet,
        baseline: IntArray | None,
        ahead: Iterable[ActionSet],
    ) -> PlanRequest:
        """Return what a play is asked for."""
        own = round_set.base is not self.engine.state.usual
        stored = stored_form(round_set.base, self.usual_digest) if own else USUAL_SET
        return super().plan_request(round_set, stored, baseline, ahead)

    def telling(self, id: int) -> Engine:
        """Return the engine, whose random numbers continue; ``words`` is their state before."""
        self.words = self.engine.state.rng.state.tobytes()
        return self.engine

    def learning(self) -> Engine:
        """Return the engine; as ``telling``."""
        return self.telling(0)

    # ------------------------------------------------------------ replaying

    def apply(self, entry: Entry, check: Check = Check.NOTHING) -> None:
        """Apply the next entry, with the random numbers that it had."""
        words = b"" if self._journal is None else self._journal.words(entry.number)
        if words:
            state = np.frombuffer(words, dtype=np.uint64).reshape(1, -1)
            self.engine.state.rng = Streams(state)
        super().apply(entry, check)

    def beginning(
        self, journal: JournalEntries, logged: bool = False, ranges: Ranges | None = None
    ) -> StreamReplica:
        """Return the state before the first entry, with a log if the policy can forget.

        ``ranges`` of losses are those of this state if they are not given.
        """
        live, old = self.engine, self.engine.state
        ranges = ranges or old.ranges
        if self.file is None:
            table = None if self.table is None else copied(self.table)
            made = old.actions, old.policy, ranges, old.rng
            own = live.constraints.fresh()
            engine = Engine(PolicyState(*made, table=table, like=old.like), live.missing, own)
            engine.state.log = ReportLog() if logged or old.policy.restarts else None
        elif not ranges.same(old.ranges):
            raise no_new_range()
        else:
            engine, _ = snapshot.parts_of(self.file, old.actions, old.policy)
            if logged and engine.state.log is None:
                engine.state.log = ReportLog(engine.state.told + 1)
        if ranges is old.ranges:
            engine.state.usual = old.usual  # the same object in all plays
        return StreamReplica(engine, self.table, self.file)

    def rebuilt(
        self, journal: ObjectJournal, new: Entry | None = None, logged: bool = False
    ) -> StreamReplica:
        """Return the state after all entries, with all corrections and a new one.

        Its words, its warm start and its random numbers are those of this state. It has a log of
        all reports if the policy needs one to forget, or with ``logged``.
        """
        end, keeps_log = journal.head().number + 1, logged or self.engine.state.policy.restarts
        made = self._replayed(journal, end, new, keeps_log)
        made._continue(self)
        return made

    def at(self, journal: ObjectJournal, number: int) -> Engine:
        """Return the engine as it was after an entry, with the corrections until then."""
        return self._replayed(journal, number + 1).engine

    def _replayed(
        self, journal: ObjectJournal, end: int, new: Entry | None = None, logged: bool = False
    ) -> StreamReplica:
        """Return the state after the entries before number ``end``, and a new one."""

        def begin(logged: bool, ranges: Ranges | None) -> Replica:
            same = ranges is None or ranges.same(self.engine.state.ranges)
            first = self.beginning(journal, logged, None if same else ranges)
            first._journal = journal
            return first

        try:
            made = rebuilt(journal, end, new=new, begin=begin, logged=logged)
        except InvalidInput:
            raise
        except entry_codec.UNREADABLE as error:
            hint = "The file that the learner was loaded from is damaged: restore a backup."
            raise InvalidInput("events", "plays and reports as saved", f"{error}", hint) from error
        assert isinstance(made, StreamReplica)
        return made

    def _continue(self, live: StreamReplica) -> None:
        """Take over what a replay does not give."""
        engine, old, new = self.engine, live.engine.state, self.engine.state
        new.rng = old.rng
        if new.ranges.same(old.ranges):
            warm = old.policy.warm(old.arms.warm_for)
            arrays = {name: array for name, array in new.arms.arrays.items() if name not in warm}
            of_warm = {name: array for name, array in old.arms.arrays.items() if name in warm}
            new.arms.arrays, new.arms.warm_for = arrays | of_warm, old.arms.warm_for
            new.usual, new.last = old.usual, old.last
        engine.words, engine.seed = live.engine.words, live.engine.seed
        engine.asked, before = live.engine.asked, live.engine.constraints.promises
        engine.constraints.promises.ahead = before.ahead
        self.next_id, self.last_set, self._journal = live.next_id, NOT_COMPARED, None


def copied(table: ArmFeatures) -> ArmFeatures:
    """Return a copy of the features of arms."""
    arrays = {name: array.copy() for name, array in table.arrays().items()}
    return ArmFeatures.of(table.features, list(table.places), arrays)


@lru_cache(MOST_PACKED)
def stored_form(round_set: RoundSet, usual: bytes) -> StoredSet:
    """Return the stored form of a set that is not the usual one without limits.

    ``usual`` is the digest of the usual set.
    """
    return StoredSet.of(round_set.given, round_set.limits, usual)


def asked_record(
    play: PendingState,
    usual: bytes | None,
    declared: Features | None,
    scales: Scales | None,
    ahead: StoredAhead = entry_codec.NO_SETS,
    prices: dict[str, float] | None = None,
    replaces: int | None = None,
) -> Record:
    """Return the entry of a play.

    ``usual`` is the digest of the usual set, None if it is that of the play; ``scales`` are those
    that its features determined.
    """
    stored_set = USUAL_SET if usual is None else stored_form(play.round_set, usual)
    features = NO_FEATURES
    if declared is not None and play.today is not None:
        names = play.round_set.actions.names
        features = StoredFeatures.of_values(play.today, scales or {}, names, declared)
    return entry_codec.ask_record(play, stored_set, features, ahead, prices, replaces)
