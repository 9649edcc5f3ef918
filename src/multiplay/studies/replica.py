"""Replay of a journal: the state after its entries, and the verification of every entry."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import Enum
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multiplay._support.checks import check_instance
from multiplay._support.formatting import counted
from multiplay._support.serialization import (
    comparable,
    completed,
    number_or_nan,
    pack,
    set_digest,
    type_name,
    unpack,
    with_prefix,
)
from multiplay.actions import ActionSet
from multiplay.actions.milp import solver_version
from multiplay.beliefs.restart import ReportLog
from multiplay.errors import InvalidInput
from multiplay.features import Features, Flag
from multiplay.learner import snapshot
from multiplay.learner.constraints import Before
from multiplay.learner.engine import Engine, Round
from multiplay.learner.plan_request import PlanRequest
from multiplay.learner.plays import PendingState
from multiplay.learner.ranges import Ranges
from multiplay.learner.reports import Reports
from multiplay.learner.round_set import NO_LIMITS, PlanLimits, RoundSet
from multiplay.policies import Policy
from multiplay.policies.missing import stop_counting
from multiplay.random import ASK, LEARN, TELL, Rounds, Streams
from multiplay.storage import Damaged, Entry, Journal, Record
from multiplay.storage.base import JournalEntries
from multiplay.studies import entry_codec
from multiplay.studies.entry_codec import HIDDEN, RANGE, StoredAhead, StoredFeatures, StoredSet
from multiplay.types import Arrays, IntArray, Note

NO_NUMBERS = np.zeros((1, 4), dtype=np.uint64)  # a study has no state of random numbers
DERIVED = ("actions", "policy")  # in the first entry, and therefore not in snapshots
VERSION_0_9 = 3  # the format of its learners
PLACE = ("number", "digest", "next_id")  # in snapshots
NEARLY = {"rtol": 1e-6, "atol": 1e-9}  # for states of different versions and processors
REQUESTS = "requests"  # in a snapshot: the last requests that gave a key
MOST_REQUESTS = 1000  # of these that are remembered: years of one plan a day
RESULTS = "results"  # in a snapshot: the number of entries that are results of requests


class Check(Enum):
    """What is compared when an entry is replayed."""

    NOTHING = 0
    COUNTS = 1  # plays are actions of their sets; whole numbers and text are equal
    BITS = 2  # plays are chosen again; the whole entry is equal bit for bit


class Corrections(NamedTuple):
    """The corrections of a journal.

    Attributes
    ----------
    replaced : dict
        The correction of an entry, by the number of the entry; None if it was retracted.
    retracted : dict
        The number of the correction that retracted an entry, by the number of the entry.
    last : int
        The number of the last correction; -1 if there is none.
    told : int
        The number of plays told before the journal began.
    reports : list
        The numbers of the entries of all reports so far, also of retracted ones.
    """

    replaced: dict[int, Record | None]
    retracted: dict[int, int]
    last: int
    told: int
    reports: list[int]

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Corrections:
        """Return the effect of corrections, in order: the last one of a report counts."""
        found = cls({}, {}, entries[-1].number if entries else -1, 0, [])
        for entry in entries:
            header = entry.record.header
            is_retracted = entry.labels.kind == entry_codec.RETRACT
            found.replaced.update(dict.fromkeys(header[entry_codec.PARTS]))
            found.replaced[header[entry_codec.OF]] = None if is_retracted else entry.record
            if is_retracted:
                found.retracted[header[entry_codec.OF]] = entry.number
        return found

    def round_now(self, entry: Entry, told: int) -> Round | None:
        """Return the round of ``forget`` or ``unforget``, numbered without retracted reports.

        It is the round of the same play. ``told`` is the number of plays told without them.
        """
        given = entry_codec.round_given(entry.record.header["given"])
        if not isinstance(given, int) or given <= self.told or entry.number >= self.last:
            return given
        then = [n for n in self.reports if self.retracted.get(n, entry.number) >= entry.number]
        before = then[: given - self.told - 1]
        now = self.told + 1 + sum(number not in self.retracted for number in before)
        return min(now, told) if entry.labels.kind == entry_codec.KEEP else now


NO_CORRECTIONS = Corrections({}, {}, -1, 0, [])


class Masks(NamedTuple):
    """Reports that no longer count, and are hidden while the journal is replayed.

    Attributes
    ----------
    everywhere : int
        The number of the first entry whose reports count.
    by_arm : dict
        The same for arms that differ.
    last : int
        The number of the last entry that says so; -1 if there is none.
    """

    everywhere: int
    by_arm: dict[str, int]
    last: int

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Masks:
        """Return the effect of ``forget`` and ``unforget``, in order."""
        everywhere, by_arm, last = 0, dict[str, int](), -1
        for entry in entries:
            arm, first = (entry.record.header[name] for name in ("arm", entry_codec.HIDDEN))
            last = entry.number
            if entry.labels.kind == entry_codec.KEEP:
                everywhere, by_arm = (first, {}) if arm is None else (everywhere, by_arm)
            elif arm is None:
                everywhere = max(everywhere, first)
                by_arm = {name: max(first, known) for name, known in by_arm.items()}
            else:
                first = max(first, by_arm.get(arm, everywhere))
            if arm is not None:
                by_arm[arm] = first
        return cls(everywhere, by_arm, last)

    def at(self, number: int) -> Callable[[str], bool] | None:
        """Return whether the reports of an entry are hidden, by arm; None if none are."""
        if number >= max([self.everywhere, *self.by_arm.values()]):
            return None
        return lambda arm: number < self.by_arm.get(arm, self.everywhere)


NO_MASKS = Masks(0, {}, -1)

REHEARSED: set[tuple[str, str, bool]] = set()  # kinds of sets, policies, and whether of losses
FLAG = Features(flag=Flag())  # declared features, for a rehearsal
MOST_REHEARSED_ARMS = 64  # of a set; for a larger one, an example of its class is played


def rehearse(engine: Engine, learns: bool = True) -> None:
    """Compile the kernels of a policy and its set: play one round that is not kept.

    Once for each kind in a process. Compiling takes seconds to minutes, in which a transaction
    would keep the lock. The set is built again, so that the one of the study keeps its caches.
    Unless it ``learns``, only what a plan needs is compiled: no losses are told.
    """
    actions, policy = engine.state.actions, engine.state.policy
    kind = type_name(type(actions)), repr(policy)[:200], learns  # a policy reads features
    if {kind, (*kind[:2], True)} & REHEARSED or not all(
        _is_built_in(one) for one in (actions, policy)
    ):
        return
    REHEARSED.add(kind)
    with suppress(Exception):  # then the first play compiles them
        if len(actions.names) > MOST_REHEARSED_ARMS:
            same: ActionSet = type(actions).example()
        else:
            same = unpack(*pack(actions, "actions"), snapshot.builder_of())
        featured, today = (None, None) if engine.state.features is None else (FLAG, {"flag": True})
        trial = Engine.create(same, policy, Streams(NO_NUMBERS), features=featured)
        trial.state.rng = Rounds(0, ASK).at(1)
        round_set = trial.featured(trial.round_set(None, None, (), None), today)
        play = trial.ask(1, round_set, 0.0, None)
        trial.beliefs.expected(round_set, play.action[0])
        if not learns:
            return
        units = dict(zip(same.names, play.action[0].tolist(), strict=True))
        losses = {name: [0.5] * count for name, count in units.items() if count}
        trial.state.rng = Rounds(0, TELL).at(1)
        trial.tell(1, trial.parse(losses, play), True, False, 0.0)


def _is_built_in(thing: object) -> bool:
    return type(thing).__module__.startswith("multiplay.")


Made = Record | Callable[[], Record]  # an entry, or what makes it when it is read


class ReplayMismatch(ValueError):
    """An entry differs from the result of replaying it."""


class Replica:
    """The state after some entries of a journal.

    The same entries give the same state, bit for bit, in every process: the chosen plays are in the
    journal, and the random numbers of round t come from (seed, t).

    Attributes
    ----------
    engine : Engine
        The policy with its state, and the pending plays.
    number, digest : int, bytes
        The number and the digest of the last entry that was applied.
    next_id : int
        The id of the next play.
    last_set : bytes
        The digest of the set of the last play.
    usual_digest : bytes
        The digest of the usual set.
    results : int
        The number of entries that are results of requests only. The random numbers for external
        plans do not depend on them: a study gives the same numbers with a service and without.
    requests : dict
        The numbers of the last entries of requests that gave a key, by ``request_number``. Such an
        entry has the key of the caller, so the journal cannot find it by its request.
    corrections : Corrections
        The reports that are replaced while entries are replayed; see ``rebuilt``.
    masks : Masks
        The reports that are hidden while entries are replayed.
    redone : dict
        The entries of the corrected reports, by the number of the entry that they replace.
    began : int
        The number of the entry after which the last replay with corrections began.
    """

    masks = NO_MASKS

    def __init__(self, engine: Engine, seed: int, first: Entry) -> None:
        self.engine, engine.seed = engine, seed
        self.asking, self.telling_of, self.learning_at = (
            Rounds(seed, purpose) for purpose in (ASK, TELL, LEARN)
        )
        self.number, self.digest = first.number, first.digest
        self.next_id, self.last_set, self.results = 1, entry_codec.USUAL, 0
        self.usual_digest = set_digest(*pack(engine.state.actions, "actions"))
        self.requests: dict[int, int] = {}
        self.corrections = NO_CORRECTIONS
        self.redone: dict[int, Record] = {}
        self.began = first.number

    @classmethod
    def from_first_entry(
        cls,
        first: Entry,
        actions: ActionSet | None = None,
        policy: Policy | None = None,
        *,
        logged: bool = False,
        ranges: Ranges | None = None,
    ) -> Replica:
        """Return the state after the first entry; user-defined classes must be passed again.

        ``logged``: with a log of all reports; ``ranges`` of losses that were set later.
        """
        header, record = first.record.header, first.record
        entry_codec.check_format(header)
        if first.labels.kind == entry_codec.IMPORT:
            if ranges is not None:
                raise no_new_range()
            learner = Record(header["learner"], record.arrays)
            engine, log = snapshot.parts_of(learner, actions, policy)
            known = engine.state.log or ReportLog(engine.state.told + 1)
            engine.state.log = known if logged else None
            replica = cls(engine, header["seed"], first)
            replica.next_id = learner.header.get(snapshot.NEXT_ID) or log.next_free_id
            return replica
        [pairs] = header["ranges"].values()  # by "losses" or "rewards"
        if ranges is not None:
            header = header | {"outside": ranges.outside}
            pairs = ranges.by_name
        table = entry_codec.table_of(record)
        engine = Engine.create(
            snapshot.rebuild("actions", record, actions),
            snapshot.rebuild("policy", record, policy),
            Streams(NO_NUMBERS),
            loss_range=pairs,
            reports=Reports(header["outside"], header["missing"]),
            varying_set=header["changing"],
            features=None if table is None else table.features,
            arm_features=table,
            constraints=entry_codec.constraints_of(record),
            like=record.arrays.get(snapshot.LIKE),
        )
        engine.set_words(**header.get("words", {}))
        if header[snapshot.VERSION] <= VERSION_0_9:
            stop_counting(engine.state.arms.arrays)
        engine.state.log = ReportLog() if logged else None
        return cls(engine, header["seed"], first)

    # ------------------------------------------------------------ snapshots

    def record(self) -> Record:
        """Return the state as a snapshot."""
        header, arrays = snapshot.record(self.engine)
        kept = {name: value for name, value in header.items() if name not in DERIVED}
        of_sets = tuple(f"{name}/" for name in DERIVED)
        arrays = {name: a for name, a in arrays.items() if not name.startswith(of_sets)}
        del arrays["rng"]
        if self.requests:
            arrays[REQUESTS] = np.array([*self.requests.items()], dtype=np.int64)
        own = {
            "format": entry_codec.FORMAT,
            "number": self.number,
            "digest": self.digest.hex(),
            "next_id": self.next_id,
            entry_codec.WITH: entry_codec.writer(),
            "core": kept,
            **({RESULTS: self.results} if self.results else {}),
        }
        return Record(own, arrays)

    def restored(self, kept: Record) -> Replica:
        """Return the state of a snapshot; ``self`` is the state after the first entry."""
        own, state = kept.header, self.engine.state
        entry_codec.check_format(own)
        if snapshot.is_older(own["core"]):
            raise ValueError("a snapshot of an older version: its entries are replayed")
        header, arrays = dict(own["core"]), kept.arrays | {"rng": NO_NUMBERS}
        requests = arrays.pop(REQUESTS, np.empty((0, 2), dtype=np.int64))
        for name in DERIVED:
            header[name], of_one = pack(getattr(state, name), name)
            arrays |= with_prefix(f"{name}/", of_one)
        engine, _ = snapshot.parts_of(Record(header, arrays), state.actions, state.policy)
        engine.seed, engine.state.log = self.engine.seed, None
        replica = Replica.__new__(Replica)
        replica.__dict__ |= self.__dict__ | {"engine": engine}
        replica.number, replica.digest = own["number"], bytes.fromhex(own["digest"])
        last, usual = engine.state.last, engine.state.actions
        given = None if last.given is usual else last.given
        replica.last_set = StoredSet.of(given, last.limits, self.usual_digest).digest
        replica.next_id, replica.results = own["next_id"], own.get(RESULTS, 0)
        replica.requests = dict(requests.tolist())
        return replica

    # ------------------------------------------------------------ verbs

    def round_set(self, actions: Any, limits: PlanLimits) -> tuple[RoundSet, StoredSet]:
        """Return the set of a round, after it was checked, and its form in the journal.

        A set that equals that of the last play is treated as that set, in every process: its warm
        start is kept.
        """
        state = self.engine.state
        if actions is state.actions:
            actions = None
        if actions is None and limits is NO_LIMITS:
            return state.usual, USUAL_SET
        if actions is not None:
            check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
        stored_set = StoredSet.of(actions, limits, self.usual_digest)
        given = None if stored_set.plain is None else actions  # None if it equals the usual set
        return self._known(stored_set) or state.round_set(given, limits), stored_set

    def _known(self, stored_set: StoredSet) -> RoundSet | None:
        if stored_set.digest == entry_codec.USUAL:
            return self.engine.state.usual
        return self.engine.state.last if stored_set.digest == self.last_set else None

    def round_set_of(self, record: Record) -> tuple[RoundSet, StoredSet]:
        """Return the set of a round from an entry, and its form in the journal."""
        state = self.engine.state
        if "set" not in record.header and "limits" not in record.header:  # as a rule
            return state.usual, USUAL_SET
        stored_set = StoredSet.of_record(record)
        round_set = self._known(stored_set)
        if round_set is None:
            given, limits = stored_set.given(state.actions), stored_set.plan_limits()
            round_set = state.round_set(given, limits, stored=True)
        return round_set, stored_set

    def featured(self, round_set: RoundSet, record: Record) -> RoundSet:
        """Return the set of a round with the features of an entry."""
        features = self.engine.state.features
        if features is None:
            return round_set
        stored = StoredFeatures.of_record(record)
        today = stored.today(round_set.actions.names, features.features)
        return self.engine.with_features(round_set, today, scales=stored.scales)

    def beginning(self, journal: JournalEntries, logged: bool = False) -> Replica:
        """Return the state after the first entry of the journal; ``logged`` as there."""
        first, state = next(journal.entries()), self.engine.state
        return Replica.from_first_entry(first, state.actions, state.policy, logged=logged)

    def stored_features(self, round_set: RoundSet) -> StoredFeatures:
        """Return the features of a round in the form of the journal."""
        return StoredFeatures.of(round_set, self.engine.declared)

    def ask(
        self,
        round_set: RoundSet,
        stored_set: StoredSet,
        when: float,
        key: str | None,
        until: float = math.inf,
        baseline: IntArray | None = None,
        ahead: tuple[ActionSet, ...] = (),
        replaces: int | None = None,
    ) -> tuple[int, PendingState]:
        """Choose the next play; ``baseline`` and ``ahead`` as in ``Engine.ask``.

        ``replaces`` is a pending play that is cancelled before.
        """
        id = self.next_id
        if replaces is not None:
            self.engine.cancel(replaces)
        self.engine.state.rng = self.asking.at(id)
        play = self.engine.ask(id, round_set, when, key, until, baseline, ahead)
        play = play._replace(best=self.engine.best_cost(round_set, play.expected))
        self.next_id, self.last_set = id + 1, stored_set.digest
        return id, play

    def telling(self, id: int) -> Engine:
        """Return the engine, with the random numbers for learning from a play."""
        self.engine.state.rng = self.telling_of.at(id)
        return self.engine

    def learning(self) -> Engine:
        """Return the engine, with the random numbers for learning from external plans."""
        self.engine.state.rng = self.learning_at.at(self.number + 1 - self.results)
        return self.engine

    # ------------------------------------------------------------ replaying

    def apply(self, entry: Entry, check: Check = Check.NOTHING) -> None:
        """Apply the next entry, and compare it with its replay; see ``Check``.

        Raises ``ReplayMismatch`` where the entry differs.
        """
        if not entry.record.header.get("imported"):  # what came before is in the first entry
            self.engine.state.hides = self.masks.at(entry.number)
            if entry.number < self.corrections.last and entry.labels.kind in entry_codec.REPORTS:
                self.corrections.reports.append(entry.number)
            if entry.number in self.corrections.replaced:
                self._redo(entry, self.corrections.replaced[entry.number])
            else:
                expected = REPLAY[entry.labels.kind](self, entry, check)
                if check is not Check.NOTHING:
                    _compare(entry, expected, check)
        self.advance(entry)

    def advance(self, entry: Entry) -> None:
        """Record that an entry is applied."""
        self.number, self.digest = entry.number, entry.digest
        self.results += entry.labels.kind == entry_codec.REQUESTED
        request = entry_codec.request_of(entry)
        if request is not None:
            self.requests[entry_codec.request_number(entry.labels.kind, request)] = entry.number
            if len(self.requests) > MOST_REQUESTS:
                del self.requests[next(iter(self.requests))]

    def numbers_of(self, verb: str, request: str) -> Iterator[int]:
        """Yield the numbers of entries that a request with a key may have written."""
        for kind in entry_codec.KINDS[verb] if self.requests else ():
            number = self.requests.get(entry_codec.request_number(kind, request))
            if number is not None:
                yield number

    def replay_ask(self, entry: Entry, check: Check) -> Record | None:
        """Keep a play as it was chosen, or choose it again; return the entry that this gives."""
        record, labels = entry.record, entry.labels
        round_set, stored_set = self.round_set_of(record)
        round_set = self.featured(round_set, record)
        stored_ahead = StoredAhead.of_record(record)
        ahead = stored_ahead.given(self.engine)
        truncated, key = entry_codec.is_truncated(record), entry_codec.shown_key(labels)
        replaces = record.header.get(entry_codec.REPLACES)
        if replaces is not None and replaces not in self.engine.pending:
            raise ReplayMismatch(f"it replaces play {replaces}, which is not pending")
        if check is not Check.NOTHING and labels.play != self.next_id:
            raise ReplayMismatch(f"it has play {labels.play}, but the next play is {self.next_id}")
        if check is Check.BITS and not truncated:
            baseline = self.engine.baseline_again(round_set, entry_codec.memo_of(record))
            stored_ahead = StoredAhead.of(ahead, self.engine)
            given = round_set, stored_set, labels.at, key, math.inf, baseline, ahead, replaces
            _, chosen = self.ask(*given)
            return self._ask_record(chosen, round_set, stored_set, stored_ahead, replaces)
        if replaces is not None:
            self.engine.cancel(replaces)
        assert labels.play is not None  # an ask is of a play
        play, header = entry_codec.play_of(record, round_set.actions.names), record.header
        expected = number_or_nan(header["expected"])
        rest = key, None, labels.at, expected, header["units"]
        of_arms: dict[str, Any] = {"truncated": truncated, "phi": round_set.phi(play.action[0])}
        of_arms["gap"] = entry_codec.gap_of(record)
        of_arms["today"] = round_set.today
        pending = PendingState(play, round_set.base, *rest, **of_arms)
        expected_record = None
        if check is not Check.NOTHING:
            rest_of = round_set, stored_set, stored_ahead, replaces
            expected_record = self._without_choosing(pending, *rest_of)
        self.engine.keep(labels.play, pending, round_set, ahead)
        self.next_id, self.last_set = labels.play + 1, stored_set.digest
        return expected_record

    def ask_record(
        self,
        play: PendingState,
        round_set: RoundSet,
        stored_set: StoredSet,
        ahead: StoredAhead,
        replaces: int | None = None,
    ) -> Made:
        """Return the entry of a play, or what makes it."""
        return self._ask_record(play, round_set, stored_set, ahead, replaces)

    def _ask_record(
        self,
        play: PendingState,
        round_set: RoundSet,
        stored_set: StoredSet,
        ahead: StoredAhead,
        replaces: int | None,
    ) -> Record:
        prices = self.engine.constraints.promises.prices_of(play.play)
        rest = self.stored_features(round_set), ahead, prices, replaces
        return entry_codec.ask_record(play, stored_set, *rest)

    def plan_request(
        self,
        round_set: RoundSet,
        stored_set: StoredSet,
        baseline: IntArray | None,
        ahead: Iterable[ActionSet],
    ) -> PlanRequest:
        """Return what a play is asked for, as ``entry_codec.plan_request`` reads an entry."""
        features, names = self.stored_features(round_set), round_set.actions.names
        plan = None if baseline is None else entry_codec.plan_of(baseline, names)
        digests = [self.engine.constraints.promises.digest(one).hex() for one in ahead]
        header = {**stored_set.header(), **features.header, entry_codec.AHEAD: digests}
        header |= {} if plan is None else {entry_codec.BASELINE: plan}
        arrays = with_prefix(entry_codec.SET, stored_set.arrays) | features.arrays
        request = entry_codec.plan_request(Record(header, arrays), self.engine.has_rule)
        assert request is not None
        return request

    def _without_choosing(
        self,
        play: PendingState,
        round_set: RoundSet,
        stored_set: StoredSet,
        ahead: StoredAhead,
        replaces: int | None,
    ) -> Record:
        """Return the expected entry of a play that is not chosen again.

        A truncated play cannot be: its bits depend on the time. Other versions and processors
        choose different bits.

        It must be an action of the set, and a mixture must have the mean in its memo.
        """
        state = self.engine.state
        try:
            state.check(play.round_set, play.play, "the play")
        except ArithmeticError as error:
            raise ReplayMismatch(str(error)) from None
        cache = play.play.cache
        if {"atoms", "weights"} <= cache.keys():
            mean = (cache["weights"][:, :, None] * cache["atoms"]).sum(axis=1)
            if not np.allclose(mean, play.memo["x"], rtol=1e-9, atol=1e-12):
                raise ReplayMismatch("its memo is not the mean of its mixture")
        state.begin_round(round_set)
        cost = self.engine.beliefs.cost(round_set, play.action[0], play.phi)
        best = self.engine.best_cost(round_set, cost)
        again = play._replace(expected=cost, units=int(play.action.sum()), best=best)
        return self._ask_record(again, round_set, stored_set, ahead, replaces)

    def _redo(self, entry: Entry, record: Record | None) -> None:
        """Apply an entry with the losses of its correction; without any if it was retracted."""
        redo = REDO.get(entry.labels.kind)
        if redo is None:
            raise ReplayMismatch("a correction replaces it, but it is not a report")
        redone = redo(self, entry, record)
        if redone is not None:
            self.redone[entry.number] = redone

    def external(self, record: Record) -> tuple[RoundSet, StoredSet, IntArray]:
        """Return the set of an external plan with its features, its stored form, and the action."""
        engine, header, stored_set = self.engine, record.header, StoredSet.of_record(record)
        round_set = engine.state.round_set(stored_set.given(engine.state.actions), stored=True)
        names = round_set.actions.names
        action = entry_codec.action_of_plan(header["plan"], names)
        features = engine.state.features
        if features is not None:
            stored = StoredFeatures.of_record(record)
            today = stored.today(names, features.features)
            round_set = engine.with_features(round_set, today, action, stored.scales)
        return round_set, stored_set, action

    def add_constraint(self, constraint: Any, before: Before) -> Record:
        """Add a constraint; return its entry."""
        stored = StoredAhead.of(before.sets, self.engine)
        made = self.engine.add_constraint(constraint, before)
        return entry_codec.constraint_record(made, stored, before)

    def pending_id(self, entry: Entry) -> int:
        """Return the id of the pending play of an entry."""
        id = entry.labels.play
        if id is None or id not in self.engine.pending:
            raise ReplayMismatch(f"{entry.labels.kind} of play {id}, which is not pending")
        return id


USUAL_SET = StoredSet(None, {}, {}, entry_codec.USUAL)
# By the kind of an entry; commands add theirs.
REPLAY: dict[str, Callable[[Replica, Entry, Check], Record | None]] = {
    entry_codec.REQUESTED: lambda replica, entry, check: None
}
REDO: dict[str, Callable[[Replica, Entry, Record | None], Record | None]] = {}


def rebuilt(
    journal: JournalEntries,
    end: int,
    actions: ActionSet | None = None,
    policy: Policy | None = None,
    *,
    new: Entry | None = None,
    begin: Callable[[bool, Ranges | None], Replica] | None = None,
    bases: Iterable[Replica] = (),
    logged: bool = False,
    limit: float = math.inf,
) -> Replica:
    """Return the state after the entries before number ``end``, with all corrections among them.

    The journal is replayed with the corrected reports at the places of the original ones, and the
    plays as they were chosen.

    Parameters
    ----------
    new
        A correction that is not written yet, or an entry that hides reports.
    begin
        Returns the state after the first entry, with a log of all reports or without one, and
        with ranges of losses that were set later; it is read from the entry if not given.
    bases
        States of snapshots: the replay begins at the first that has no report that is corrected
        later. Without one it begins at the first entry.
    logged
        With a log of all reports.
    limit
        Seconds, after which ``InvalidInput`` is raised.
    """
    until = time.monotonic() + limit
    changes = [entry for entry in [new] if entry is not None]
    found = corrections(journal, end)
    found += [e for e in changes if e.labels.kind in entry_codec.CORRECTIONS]
    known, ranges = Corrections.of(found), ranges_at(journal, end, new)
    known = known._replace(last=max(known.last, ranges.number))
    restarts = entries_of(journal, entry_codec.RESTARTS, end)
    hiding = (e for e in restarts + changes if entry_codec.HIDDEN in e.record.header)
    masks = Masks.of(hiding)
    again = [entry.number for entry in restarts if entry.number < known.last]
    last = [*again, masks.last, ranges.number]
    fitting = (one for one in bases if not logged and _fits(one, found, last))
    base = next(fitting, None)
    if base is None:
        logs = logged or bool(again)
        if begin is None:
            first = next(journal.entries())
            of_losses = ranges.of_losses
            base = Replica.from_first_entry(first, actions, policy, logged=logs, ranges=of_losses)
        else:
            base = begin(logs, ranges.of_losses)
        known = known._replace(told=base.engine.state.told)
    base.corrections, base.masks, base.began = known, masks, base.number
    for entry in journal.entries(base.number + 1, base.digest):
        if entry.number >= end:
            break
        if time.monotonic() >= until:
            raise _long_replay(limit)
        base.apply(entry)
    base.corrections, base.masks, base.engine.state.hides = NO_CORRECTIONS, NO_MASKS, None
    base.engine.state.log = base.engine.state.log if logged else None
    return base


class RangesAt(NamedTuple):
    """Ranges of losses that were set later than the first entry: the entry, and the ranges."""

    number: int
    of_losses: Ranges | None


def ranges_at(journal: JournalEntries, end: int, new: Entry | None = None) -> RangesAt:
    """Return the last ranges of losses that were set before number ``end``, or are new."""
    found = [entry for entry, _ in journal.pairs(entry_codec.RANGE, ())]
    before = [entry for entry in found if entry.number < end]
    if new is not None and new.labels.kind == entry_codec.RANGE:
        before.append(new)
    if before:
        return RangesAt(before[-1].number, entry_codec.ranges_of(before[-1].record.header))
    if found:  # a learner has the last ranges only
        return RangesAt(-1, entry_codec.ranges_of(found[0].record.header["before"]))
    return RangesAt(-1, None)


def no_new_range() -> InvalidInput:
    """Return the error of a new range for reports that are not in the journal."""
    expected, hint = "reports that are all in the journal", "Begin a new study with this range."
    return InvalidInput("loss_range", expected, "a file without those of the past", hint)


def _is_restart(entry: Entry) -> bool:
    return entry.labels.kind in entry_codec.RESTARTS


def _long_replay(limit: float) -> InvalidInput:
    expected = f"a journal that is replayed within {limit:g} seconds"
    hint = "Use multiplay in Python, or the command line, with the same store: they have no limit."
    return InvalidInput("study", expected, "a journal that takes longer", hint)


def _fits(base: Replica, found: Sequence[Entry], restarts: Sequence[int]) -> bool:
    """Return whether a replay may begin at a state: later corrections are of later reports.

    ``restarts`` are the entries whose sums are computed anew, which needs all reports, and the last
    one that hides reports.
    """
    later = Corrections.of([entry for entry in found if entry.number > base.number])
    first = min(later.replaced, default=math.inf)
    return max(restarts, default=0) <= base.number < first


def corrections(journal: JournalEntries, end: int) -> list[Entry]:
    """Return the corrections before number ``end``, in order."""
    return entries_of(journal, entry_codec.CORRECTIONS, end)


def entries_of(journal: JournalEntries, kinds: Iterable[str], end: int) -> list[Entry]:
    """Return the entries of these kinds before number ``end``, in order."""
    found = (e for kind in kinds for e, _ in journal.pairs(kind, ()))
    return sorted((e for e in found if e.number < end), key=lambda e: e.number)


def first_entry(journal: JournalEntries, end: int, round: int) -> int:
    """Return the number of the first entry with a report of a round or later; ``end`` if none.

    The journal has all reports.
    """
    if round == 0:
        return 0
    retracted = Corrections.of(corrections(journal, end)).retracted
    told = [e.number for e in entries_of(journal, entry_codec.REPORTS, end)]
    counted = [number for number in told if number not in retracted]
    return counted[round - 1] if round <= len(counted) else end


def report_log(
    journal: JournalEntries,
    end: int,
    actions: ActionSet | None = None,
    policy: Policy | None = None,
    limit: float = math.inf,
) -> ReportLog:
    """Return the reports of all entries before number ``end``: the journal is replayed."""
    log = rebuilt(journal, end, actions, policy, logged=True, limit=limit).engine.state.log
    assert log is not None
    return log


def _compare(entry: Entry, expected: Record | None, check: Check) -> None:
    """Raise ``ReplayMismatch`` unless an entry equals its replay."""
    if expected is None:
        return
    found = entry.record.header
    names = (expected.header.keys() | found.keys()) - entry_codec.MARKS
    if check is Check.COUNTS:
        both = expected.header.keys() & found.keys()
        names = {name for name in names & both if isinstance(found[name], int | str)}
    for name in sorted(names):
        one, other = (json.dumps(header.get(name)) for header in (found, expected.header))
        if one != other:
            raise ReplayMismatch(f"{name} is {one[:80]}, but replaying gives {other[:80]}")
    if check is Check.BITS and bits(entry.record.arrays) != bits(expected.arrays):
        raise ReplayMismatch("its arrays differ from the replay")


def same_first_entry(one: Record, other: Record) -> bool:
    """Return whether two first entries create the same study, by any author and version."""
    marks = {entry_codec.BY, "multiplay", entry_codec.SOLVER}
    headers = [
        json.dumps({name: value for name, value in record.header.items() if name not in marks})
        for record in (one, other)
    ]
    return headers[0] == headers[1] and bits(one.arrays) == bits(other.arrays)


def bits(arrays: Arrays) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Return types, shapes and bytes of arrays, to compare them bit for bit."""
    return {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()}


class Verified(NamedTuple):
    """The result of verifying a journal.

    Attributes
    ----------
    entries, plays : int
        The numbers of entries and plays read.
    problems : tuple of str
        The problems found, each with the number of its entry; empty if there are none.
    unchecked : int
        The number of plays that were not chosen again, because a different version or processor
        wrote them or an entry before them. Their digests, feasibility and effect are checked.
    solvers : tuple of two str, or None
        The versions of the solver that the study was created with and of this process, if they
        differ: they may choose different plans of the same cost.

    Examples
    --------
    >>> from multiplay import Budget, Study
    >>> study = Study.create("new", Budget(1, [1, 1]), store="memory://verified")
    >>> play = study.ask()
    >>> verified = study.verify()
    >>> verified
    Verified(entries=2, plays=1, problems=(), unchecked=0, solvers=None)
    >>> print(verified)
    2 entries, 1 play: all entries are intact and replay to the same state
    >>> verified.ok
    True
    """

    entries: int
    plays: int
    problems: tuple[str, ...]
    unchecked: int = 0
    solvers: Annotated[
        tuple[str, str] | None,
        "The versions of the solver at creation and now, if they differ.",
    ] = None

    @property
    def ok(self) -> Annotated[bool, Note.SHOWN]:
        """Whether no problem was found."""
        return not self.problems

    def __str__(self) -> str:
        entries, plays = counted(self.entries, "entry"), counted(self.plays, "play")
        text, solvers = f"{entries}, {plays}: ", ""
        if self.solvers is not None:
            then, now = self.solvers
            solvers = f"\ncreated with {then}, verified with {now}: plans of equal cost may differ"
        if not self.ok:
            return text + "problems found\n" + "\n".join(self.problems) + solvers
        text += "all entries are intact and replay to the same state" + solvers
        if self.unchecked:
            text += f"\n{counted(self.unchecked, 'play')} not checked: other version"
        return text


def verify(
    journal: Journal,
    live: Replica | None,
    last: int,
    actions: ActionSet | None = None,
    policy: Policy | None = None,
    progress: Callable[[int], None] | None = None,
    found: Iterable[str] = (),
) -> Verified:
    """Replay all entries up to number ``last``, and compare them and the final state.

    ``live`` is the state in use; None if an entry cannot be applied, which is then one of the
    problems. After the first entry that cannot be replayed, only the digests are checked.
    ``progress`` is called with the number of entries read. ``found`` are problems that are known
    already.
    """
    snapshot, problems = journal.get(), [*found]
    replica: Replica | None = None
    seen = plays = unchecked = number = 0
    replaying, check = True, Check.BITS
    solvers: tuple[str, str] | None = None
    while number <= last:
        try:
            for entry in journal.entries(number):
                if entry.number > last:
                    break
                number = entry.number + 1
                seen, plays = seen + 1, plays + (entry.labels.kind == entry_codec.ASK)
                if progress is not None:
                    progress(seen)
                if entry.number == 0:
                    solvers = _different_solvers(entry.record)
                if entry.number and not _is_own(entry.record):
                    check = Check.COUNTS  # also of later entries, which depend on this one
                unchecked += entry.labels.kind == entry_codec.ASK and check is Check.COUNTS
                if replaying:
                    try:
                        if replica is not None and _is_restart(entry):
                            state = replica.engine.state
                            state.log = state.log or report_log(
                                journal, entry.number, actions, policy
                            )
                        if replica is not None and entry.labels.kind in entry_codec.CORRECTIONS:
                            replica = _corrected(journal, entry, actions, policy, check)
                        else:
                            replica = _next(replica, entry, actions, policy, check)
                        of_all = HIDDEN in entry.record.header, entry.labels.kind == RANGE
                        if any(of_all):  # compared above
                            replica = rebuilt(journal, entry.number + 1, actions, policy)
                        _compare_snapshot(replica, snapshot, check)
                    except entry_codec.UNREADABLE as error:
                        if replica is None and isinstance(error, InvalidInput):
                            raise  # a user-defined class must be passed, or multiplay is too old
                        problems.append(f"{entry_title(entry)}: {error}")
                        replaying = False
            break
        except Damaged as damaged:
            number = number if damaged.number is None else damaged.number
            problems.append(f"entry {number}: {damaged}")
            replaying, number = False, number + 1
    states = [one.record() for one in (replica, live) if one is not None and replaying]
    if len(states) == 2 and not same_snapshot(*states, check=check):
        problems.append(f"the state after entry {last} differs from the replay")
    known = 0 if snapshot is None else snapshot.header.get("number", 0)
    if known > last and not found and known > journal.head().number:  # others may have written more
        problems.append(f"entries {last + 1} to {known} are missing: a snapshot is newer")
    return Verified(seen, plays, tuple(problems), unchecked, solvers)


def _different_solvers(first: Record) -> tuple[str, str] | None:
    """Return the versions of the solver of the first entry and of now, if they differ."""
    then = first.header.get(entry_codec.SOLVER)
    return None if then in (None, solver_version()) else (str(then), solver_version())


def _is_own(record: Record) -> bool:
    """Return whether the same kernels wrote a record, on the same kind of processor."""
    return bool(record.header.get(entry_codec.WITH) == entry_codec.writer())


def _next(
    replica: Replica | None,
    entry: Entry,
    actions: ActionSet | None,
    policy: Policy | None,
    check: Check,
) -> Replica:
    if replica is None:
        return Replica.from_first_entry(entry, actions, policy)
    replica.apply(entry, check)
    return replica


def _corrected(
    journal: JournalEntries,
    entry: Entry,
    actions: ActionSet | None,
    policy: Policy | None,
    check: Check,
) -> Replica:
    """Return the state after a correction, by a second replay; compare the correction with it."""
    replica = rebuilt(journal, entry.number + 1, actions, policy)
    redone = replica.redone.get(entry.record.header[entry_codec.OF])
    if entry.labels.kind == entry_codec.CORRECT:
        if redone is None:
            raise ReplayMismatch("the entry that it corrects is not a report")
        both = entry.record.header.keys() & redone.header.keys() - {"digests"}
        same = {name: redone.header[name] for name in both}
        _compare(entry, Record({**entry.record.header, **same}, {}), check)
    return replica


def _compare_snapshot(replica: Replica, kept: Record | None, check: Check) -> None:
    if kept is None or kept.header.get("number") != replica.number:
        return
    if snapshot.is_older(kept.header["core"]):  # it lacks a part of the present state
        return
    check, replayed = check if _is_own(kept) else Check.COUNTS, replica.record()
    if same_snapshot(replayed, kept, check=check):
        return
    with suppress(*entry_codec.UNREADABLE):  # an older one may have equal sets more than once
        if same_snapshot(replayed, replica.restored(kept).record(), check=check):
            return
    raise ValueError("the snapshot after it differs from the replay")


def entry_title(entry: Entry) -> str:
    """Return the number, verb and play of an entry as text."""
    kind, _, play, _ = entry.labels
    return f"entry {entry.number} ({kind}{'' if play is None else f' of play {play}'})"


def same_snapshot(one: Record, other: Record, *, check: Check = Check.BITS) -> bool:
    """Return whether two snapshots are equal: bit for bit, or their common arrays nearly."""
    if check is Check.COUNTS:
        places = [tuple(record.header.get(name) for name in PLACE) for record in (one, other)]
        common = one.arrays.keys() & other.arrays.keys()
        return places[0] == places[1] and all(
            _are_close(one.arrays[name], other.arrays[name]) for name in common
        )
    headers = [
        json.dumps(comparable(completed(record.header)), sort_keys=True) for record in (one, other)
    ]
    return headers[0] == headers[1] and bits(one.arrays) == bits(other.arrays)


def _are_close(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return whether arrays are equal, and their numbers nearly."""
    if one.shape != other.shape:
        return False
    if one.dtype.kind == other.dtype.kind == "f":
        return bool(np.allclose(one, other, equal_nan=True, **NEARLY))
    return bool((one == other).all())
