"""Study: a learner whose verbs are durable, for any number of processes and machines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import timedelta
from itertools import chain
from os import PathLike
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar, cast

import numpy as np

from multiplay._support.atomic_files import as_path
from multiplay._support.checks import is_integer, true_or_false
from multiplay._support.deadline import checked_limit
from multiplay._support.html import HasPanel, Panel
from multiplay._support.serialization import number_or_nan
from multiplay._support.words import given_words
from multiplay.actions import ActionSet, Rule, Transport
from multiplay.errors import Conflict, InvalidInput, StoreError
from multiplay.features import Features
from multiplay.learner import snapshot
from multiplay.learner.allowance import SURE, AllowanceCurve, AllowanceSettings
from multiplay.learner.comparison import NO_DAYS, Against, Question
from multiplay.learner.engine import Engine, Losses, Range, Round, Units, checked_key
from multiplay.learner.facts import learner_panel
from multiplay.learner.learner import When
from multiplay.learner.plan_request import PlanRequest, checked_replace
from multiplay.learner.play_log import joined_tables
from multiplay.learner.plays import (
    CANCELLED,
    AnyPlay,
    Estimate,
    PendingPlay,
    Receipt,
    Remaining,
    duration_seconds,
    timestamp,
)
from multiplay.learner.promises import MOST_PAST, checked_promises, given_sets
from multiplay.learner.reports import parse_losses
from multiplay.learner.round_set import NO_LIMITS
from multiplay.policies import Policy
from multiplay.promises.promise import Promise
from multiplay.random import Streams, seed_or_random
from multiplay.savings import Saved
from multiplay.storage import Damaged, Entry, Head, Labels, Record, Store
from multiplay.storage.folder import read_record
from multiplay.storage.stores import store_at
from multiplay.studies import backup, comparison, entry_codec, export, play_history
from multiplay.studies.comparison import checked_rule
from multiplay.studies.corrections import Target
from multiplay.studies.entry_codec import Request, StoredAhead, StoredSet
from multiplay.studies.replica import (
    NO_NUMBERS,
    Replica,
    Verified,
    rehearse,
    report_log,
    verify,
)
from multiplay.studies.synced import SyncedState, forget
from multiplay.types import FloatArray

PLACE = "sqlite:///multiplay.db"
MOST_READ = 200  # entries, to find the sets of the last plays

SILENT = (entry_codec.CANCEL, entry_codec.DESCRIBE, entry_codec.RETRACT)
PROMISED = (entry_codec.PROMISE, entry_codec.RELEASE)
NO_RESULTS = (*SILENT, *PROMISED, entry_codec.WORDS, entry_codec.COMPARE)  # kinds of entries
NO_RECEIPTS = (*SILENT, *PROMISED, entry_codec.EXPIRE, "set_words", "set_compare")  # verbs

T = TypeVar("T")

Place = Store | str | PathLike[str]
Ids: TypeAlias = list[int]  # a study has a method that is called list
Names: TypeAlias = list[str]


class Study(SyncedState, HasPanel):
    """A learner with a journal in a store: every verb is durable when it returns.

    ``Study.create`` creates a study, ``Study.open`` opens it again. The verbs are those of
    ``Learner``. Any number of processes, threads and machines may use one study: each verb is a
    transaction on the current state. The state is the result of replaying the journal.

    ``key`` makes a verb idempotent: the same verb with the same key returns the same result and
    changes nothing. After a crash or a lost connection, call it again with the same key. Each verb
    has its own keys.

    Examples
    --------
    >>> from multiplay import Study, Transport
    >>> plans = Transport([2, 1], [1, 2], names=(["Lyon", "Lille"], ["north", "south"]))
    >>> study = Study.create("lanes", plans, losses=(0, 250), store="memory://truck")
    >>> play = study.ask(key="Monday")
    >>> same = Study.open("lanes", store="memory://truck").ask(key="Monday")
    >>> same.plan == play.plan
    True
    >>> euros = {lane: [120.0] * trucks for lane, trucks in play.plan.items()}
    >>> print(study.tell(play.id, euros))
    play 1: 3 of 3 units seen
    >>> print(study.verify())
    3 entries, 1 play: all entries are intact and replay to the same state
    >>> study
    Study('lanes' in memory://truck, BootstrapCTS on 4 arms: 1 asked, 1 told, losses from 0 to 250)
    """

    # ------------------------------------------------------------ all studies of a store

    @classmethod
    def create(
        cls,
        name: str,
        actions: ActionSet,
        policy: Policy | None = None,
        *,
        seed: int | None = 0,
        losses: Range | None = None,
        rewards: Range | None = None,
        outside: str = "refuse",
        missing: str = "refuse",
        changing: bool = False,
        features: Features | None = None,
        arms: Any = None,
        currency: str | None = None,
        unit: str | None = None,
        arm: str | None = None,
        round: str | None = None,
        baseline: Rule | str | None = None,
        allowance: float | None = None,
        sure: float = SURE,
        per: str | None = None,
        promises: Sequence[Promise] | None = None,
        change: float | None = None,
        store: Place = PLACE,
        key: str | None = None,
        by: str | None = None,
    ) -> Self:
        """Create a study.

        Parameters
        ----------
        name
            The name of the study; it must be new.
        actions, policy, seed, losses, rewards, outside, missing, changing, features, arms
            As in ``Learner``. The random numbers of round t come from (seed, t).
        currency, unit, arm, round
            The words in which plans and costs are shown; as in ``Learner``.
        baseline, allowance, sure, per
            What plans may cost more than those of a rule; as in ``Learner``.
        promises
            What all plays until a date may use, or have to; as in ``Learner``.
        change
            What each unit that differs from the last plan costs; as in ``Learner``.
        store
            The store: ``sqlite:///file.db`` (or a path), ``postgresql://...`` for several
            machines, ``memory://`` for tests. The file ``multiplay.db`` if not given.
        key
            The same key again returns the study that was created with it.
        by
            The author of the entries that are written.
        """
        drawn, made_of = seed_or_random(seed), (losses, rewards, outside, missing, changing)
        limit = AllowanceSettings.given(baseline, allowance, sure, per)
        rest, own = (features, arms, limit), checked_promises(promises)
        numbers = Streams(NO_NUMBERS)
        engine = Engine.create(
            actions, policy, numbers, *made_of, *rest, promises=own, change=change
        )
        words = engine.set_words(currency=currency, unit=unit, arm=arm, round=round)
        record = entry_codec.create_record(engine, drawn, changing, words)
        record = entry_codec.signed(record, by)
        known = None if key is None else checked_key(key)
        labels = Labels(entry_codec.CREATE, known, at=timestamp("at", None))
        place = store_at(store)
        try:
            journal = place.create(name, record, labels)
        except Conflict:
            if known is None:
                raise
            with closing(place.open(name)) as there:
                if next(there.entries()).labels.key != known:
                    raise
            return cls.open(name, store=place, by=by)
        return cls(name, place, journal, actions, engine.state.policy, by)

    @classmethod
    def open(
        cls,
        name: str,
        *,
        store: Place = PLACE,
        actions: ActionSet | None = None,
        policy: Policy | None = None,
        by: str | None = None,
    ) -> Self:
        """Open a study; user-defined sets and policies must be passed again.

        ``by`` is the author of the entries that are written.
        """
        place = store_at(store)
        study = cls(name, place, place.open(name), actions, policy, by)
        try:
            with study._current():
                return study
        except BaseException:  # it may have been renamed since
            study.disconnect()
            raise

    @classmethod
    def list(cls, *, store: Place = PLACE) -> Names:
        """Return the names of all studies of a store."""
        return store_at(store).names()

    @classmethod
    def delete(cls, name: str, *, store: Place = PLACE) -> None:
        """Delete a study and its journal."""
        place = store_at(store)
        place.delete(name)
        forget(place, name)

    @classmethod
    def rename(cls, name: str, new: str, *, store: Place = PLACE) -> None:
        """Give a study a new name; its journal and its API keys stay as they are.

        The new name must not be in use. Open studies of the old name raise ``NotFound``: open the
        study again under its new name.

        Examples
        --------
        >>> from multiplay import Study, Transport
        >>> study = Study.create("lanes", Transport([1], [1]), store="memory://renamed")
        >>> Study.rename("lanes", "lanes of Lyon", store="memory://renamed")
        >>> Study.list(store="memory://renamed")
        ['lanes of Lyon']
        """
        place = store_at(store)
        place.rename(name, new)
        forget(place, name)

    @classmethod
    def compile_all(cls, *, store: Place = PLACE) -> None:
        """Compile the kernels of all studies of a store, so that their first plays do not wait.

        Without studies, those of the default policy for ``Transport``. Studies with user-defined
        classes and damaged studies are left out.
        """
        place = store_at(store)
        names = place.names()
        if not names:
            rehearse(Engine.create(Transport.example(), None, Streams(NO_NUMBERS)))
        for name in names:
            with (
                suppress(InvalidInput, *entry_codec.UNREADABLE),
                closing(place.open(name)) as journal,
            ):
                rehearse(Replica.from_first_entry(next(journal.entries())).engine)

    @classmethod
    def accept(cls, name: str, *, store: Place = PLACE) -> Head:
        """Accept the entries that a store has as the whole journal; return the last one.

        A process that has seen later entries refuses to continue, and so does the store itself if
        entries at the end are missing: play ids would be issued twice. Accept a backup that was
        restored on purpose. Plays after it are unknown to the study.
        """
        with closing(store_at(store).open(name)) as journal:
            return journal.accept()

    @classmethod
    def import_learner(
        cls,
        name: str,
        path: str | PathLike[str],
        *,
        seed: int | None = 0,
        actions: ActionSet | None = None,
        policy: Policy | None = None,
        store: Place = PLACE,
    ) -> Self:
        """Create a study from a file of ``Learner.save``, which continues from there.

        Plays keep their ids and keys. ``seed`` is that of the new plays.
        """
        place = store_at(store)
        record = snapshot.without_events(read_record(as_path("path", path)))
        drawn = seed_or_random(seed)
        _, log = snapshot.parts_of(record, actions, policy)
        first = entry_codec.import_record(record, drawn)
        labels = Labels(entry_codec.IMPORT, at=timestamp("at", None))
        journal = place.create(name, first, labels, entry_codec.imported_plays(log))
        forget(place, name)
        return cls(name, place, journal, actions, policy)

    @classmethod
    def import_journal(
        cls,
        name: str,
        path: str | PathLike[str],
        *,
        actions: ActionSet | None = None,
        policy: Policy | None = None,
        store: Place = PLACE,
        progress: Callable[[int], None] | None = None,
    ) -> Self:
        """Create a study from JSON lines of ``export``: the same journal, bit for bit.

        An error names a missing or changed line, and then nothing is kept. ``progress`` is called
        with the number of entries read.
        """
        place = store_at(store)
        journal = backup.import_journal(place, name, path, actions, policy, progress)
        forget(place, name)
        return cls(name, place, journal, actions, policy)

    # ------------------------------------------------------------ properties

    def __repr__(self) -> str:
        text = f"{self.name!r} in {self.store.url}"
        with suppress(StoreError, InvalidInput), self._current() as engine:
            text += f", {engine}"
        return f"Study({text})"

    def _panel(self) -> Panel:
        title, where = f"Study {self.name}", {"store": self.store.url}
        with suppress(StoreError, InvalidInput), self._current() as engine:
            return learner_panel(title, where, engine)
        return Panel(title, where)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()

    def __reduce__(self) -> Any:
        return _opened, (type(self), self.name, self.store, *self._given, self.by)

    def disconnect(self) -> None:
        """Close the connection to the store; the next verb opens it again."""
        with self._lock:
            self._journal.close()

    @property
    def head(self) -> Head:
        """The last entry of the journal: its number, and its digest."""
        with self._lock:
            return self._journal.head()

    # ------------------------------------------------------------ plays

    def ask(
        self,
        actions: ActionSet | None = None,
        *,
        key: str | None = None,
        at_most: Mapping[str, int] | None = None,
        exclude: Iterable[str] = (),
        fixed: Mapping[str, int] | None = None,
        features: Any = None,
        baseline: Units | None = None,
        ahead: Sequence[ActionSet] | None = None,
        time_limit: float | None = None,
        replace: bool = False,
        at: When = None,
    ) -> PendingPlay:
        """Choose the next play; as ``Learner.ask``."""
        when, until = timestamp("at", at), time.monotonic() + checked_limit(time_limit)
        key, replace = checked_replace(key, replace)
        with self._turn() as replica:
            engine = replica.engine
            round_set, stored_set = replica.round_set(
                actions, engine.limits(actions, at_most, exclude, fixed)
            )
            round_set = engine.featured(round_set, features)
            base = engine.baseline(round_set, baseline)
            known = None if key is None else play_history.last_asked(self._journal, key)
            if key is not None and known is not None:
                request = replica.plan_request(round_set, stored_set, base, given_sets(ahead))
                if not self._is_free(replica, key, known, request, replace):
                    if entry_codec.is_of(known, self._request):
                        return cast(PendingPlay, self._result(replica, known))
                    return self._again(replica, known).again()
            sets = engine.promises.checked_ahead(engine.state, ahead)
            stored_ahead = StoredAhead.of(sets, engine)
            old = None if known is None else known.labels.play
            replaces = old if old in engine.pending else None
            self._changed = True  # new arms are added before the policy may fail
            given = round_set, stored_set, when, key, until, base, sets, replaces
            id, play = replica.ask(*given)
            asked, result = self._pending_play(engine, id), dict[str, Any]()
            if self._request is not None:  # the estimate of now, whatever is learned later
                result = {entry_codec.EXPECTED: entry_codec.estimate_fields(asked.expected)}
            record = replica.ask_record(play, round_set, stored_set, stored_ahead, replaces)
            label = key if known is None else entry_codec.next_key(known.labels)
            self._write(replica, record, Labels(entry_codec.ASK, label, id, when), **result)
        engine.warn_if_promised(play)
        return asked

    def tell(
        self,
        play: AnyPlay,
        losses: Losses,
        *,
        final: bool = True,
        missing: str | None = None,
        key: str | None = None,
        at: When = None,
    ) -> Receipt:
        """Learn from the losses of a play; as ``Learner.tell``."""
        when = timestamp("at", at)
        final = true_or_false("final", final, "Use final=False if more losses follow.")
        with self._turn() as replica:
            engine, known = replica.engine, self._known(key, entry_codec.TELL, entry_codec.PART)
            ignore = engine.ignores(missing)
            id = self._id(play)
            pending = engine.pending.get(id) if is_integer(id) else None
            if known is not None or pending is None:
                return self._told_again(replica, id, losses, final, known)
            parsed, before = engine.parse(losses, pending), engine.state.told
            result = replica.telling(id).tell(id, parsed, final, ignore, when)
            self._changed = True
            if not result.receipt.repeated:
                names = pending.round_set.actions.names
                kind = entry_codec.TELL if final else entry_codec.PART
                record = entry_codec.report_record(result, parsed, names, ignore)
                self._write(replica, record, Labels(kind, key, int(id), when))
            told = result.receipt
        engine.warn_if_over(before)
        return told

    def close(self, play: AnyPlay, *, key: str | None = None, at: When = None) -> Receipt:
        """Close a play: learn from the losses told so far; the rest counts as missing."""
        when = timestamp("at", at)
        with self._turn() as replica:
            id, known = self._id(play), self._known(key, entry_codec.CLOSE)
            if known is not None:
                self._check_same_play(known, id)
                return entry_codec.repeated_receipt(known, self._request)
            self._check_waits(replica, id)
            before = replica.engine.state.told
            told = self._close(replica, id, key, when)
        replica.engine.warn_if_over(before)
        return told

    def cancel(self, play: AnyPlay, *, key: str | None = None, at: When = None) -> None:
        """Discard a play that was not carried out: nothing is learned from it."""
        when = timestamp("at", at)
        with self._turn() as replica:
            id, known = self._id(play), self._known(key, entry_codec.CANCEL)
            if known is not None:
                return self._check_same_play(known, id)
            self._check_waits(replica, id)
            return self._cancel(replica, id, key, when)

    def correct(
        self,
        play: AnyPlay,
        losses: Losses,
        *,
        missing: str | None = None,
        key: str | None = None,
        at: When = None,
    ) -> Receipt:
        """Replace the losses that were told of a play; as ``Learner.correct``.

        ``play`` may also be the key of an external plan of ``learn``. The journal keeps both
        reports. It is replayed from the last snapshot before the play, or from its beginning.
        """
        when = timestamp("at", at)
        with self._turn() as replica:
            known, engine = self._known(key, entry_codec.CORRECT), replica.engine
            target, ignore = Target.of(self._journal, play), engine.ignores(missing)
            reported, parsed = target.parse(replica, losses)
            told = entry_codec.losses_by_arm(parsed, reported.round_set.actions.names)
            if known is not None:
                target.check_same(known, told)
                return entry_codec.repeated_receipt(known, self._request)
            if target.is_told(told):
                return entry_codec.receipt_of(target.about[-1], True)
            engine.check_report(target.id, reported, parsed, ignore)
            draft = target.draft(told, ignore)
            labels = target.labels(entry_codec.CORRECT, key, when)
            new = self._correct(draft, labels)
            record = target.correction(draft, new.redone[draft.header[entry_codec.OF]])
            self._write(new, record, labels)
            return entry_codec.receipt_of(Entry(new.number, labels, record, new.digest), False)

    def retract(self, play: AnyPlay, *, key: str | None = None, at: When = None) -> None:
        """Withdraw the losses that were told of a play; as ``Learner.retract``.

        ``play`` may also be the key of an external plan or table, whose losses then no longer
        count.
        """
        when = timestamp("at", at)
        with self._turn():
            known, target = self._known(key, entry_codec.RETRACT), Target.of(self._journal, play)
            if known is not None:
                return target.check_same(known)
            record, labels = target.retraction(), target.labels(entry_codec.RETRACT, key, when)
            return self._write(self._correct(record, labels), record, labels)

    def expire(
        self, older_than: timedelta | float, *, key: str | None = None, at: When = None
    ) -> Ids:
        """Close or cancel all plays that are older than this; as ``Learner.expire``."""
        when, length = timestamp("at", at), duration_seconds("older_than", older_than)
        with self._turn() as replica:
            known = self._known(key, entry_codec.EXPIRE)
            if known is not None:
                plays: Ids = known.record.header["plays"]
                return plays
            before, late = replica.engine.state.told, replica.engine.late(when - length)
            if late or key is not None:
                record = Record({"plays": [*late]}, {})
                self._write(replica, record, Labels(entry_codec.EXPIRE, key, None, when))
            for id, closes in late.items():
                end = self._close if closes else self._cancel
                end(replica, id, None, when)
        replica.engine.warn_if_over(before)
        return [*late]

    # ------------------------------------------------------------ external plans

    def learn(
        self,
        plan: Units,
        losses: Losses,
        *,
        actions: ActionSet | None = None,
        features: Any = None,
        missing: str | None = None,
        key: str | None = None,
        at: When = None,
    ) -> Receipt:
        """Learn from an external plan; as ``Learner.learn``.

        Use a key, such as the date: without a key, the same plan told twice is learned twice.
        """
        when = timestamp("at", at)
        with self._turn() as replica:
            engine = replica.engine
            round_set, action, ignore = engine.external(plan, actions, features, missing)
            names, stored = round_set.actions.names, replica.stored_features(round_set)
            known = self._known(key, entry_codec.LEARN)
            if known is not None:
                parsed = parse_losses(
                    losses, names, engine.state.policy, round_set.actions.unmet(action)
                )
                said = entry_codec.plan_of(action, names), entry_codec.losses_by_arm(parsed, names)
                then = tuple(known.record.header[name] for name in ("plan", "losses"))
                if said != then or not entry_codec.same_features(known.record, stored):
                    raise entry_codec.used_before(known, "was used for different losses")
                return entry_codec.repeated_receipt(known, self._request)
            told, parsed = replica.learning().learn(round_set, action, losses, ignore, when)
            self._changed = True
            given = None if actions is engine.state.actions else actions
            rest = ignore, StoredSet.of(given, NO_LIMITS, replica.usual_digest), stored
            record = entry_codec.learn_record(told, parsed, action, names, *rest)
            self._write(replica, record, Labels(entry_codec.LEARN, key, None, when))
            return told

    def learn_table(
        self,
        table: Any,
        arm: str | Sequence[str] = "arm",
        round: str = "round",
        loss: str = "loss",
        *,
        skip_bad: bool = False,
        day_first: bool | None = None,
        key: str | None = None,
        at: When = None,
    ) -> Receipt:
        """Learn from logged data; as ``Learner.learn_table``.

        ``at`` is the time of this entry of the journal; the dates of the rounds are in the table.
        """
        when = timestamp("at", at)
        skip_bad = true_or_false("skip_bad", skip_bad, "Leave it out.")
        with self._current() as engine:
            engine.check_absorbs()
            read = engine.read_table(table, arm, round, loss, day_first)
        logged = read.learned(skip_bad)
        with self._turn() as replica:
            known = self._known(key, entry_codec.TABLE)
            if known is not None:
                if not entry_codec.same_logged_data(known.record, logged):
                    raise entry_codec.used_before(known, "was used for a different table")
                return entry_codec.repeated_receipt(known, self._request)
            told, scales = replica.learning().learn_all(logged)
            self._changed = True
            labels = Labels(entry_codec.TABLE, key, None, when)
            self._write(replica, entry_codec.table_record(told, logged, scales), labels)
            return told

    def describe(self, table: Any, *, key: str | None = None, at: When = None) -> None:
        """Keep features of arms; as ``Learner.describe``."""
        when = timestamp("at", at)
        with self._turn() as replica:
            known = self._known(key, entry_codec.DESCRIBE)
            arms, codes = replica.engine.described(table)
            if known is not None:
                if not entry_codec.same_description(known.record, arms, codes):
                    raise entry_codec.used_before(known, "was used for a different table")
                return
            scales = replica.engine.describe(arms, codes)
            self._changed = True
            record = entry_codec.describe_record(arms, codes, scales)
            self._write(replica, record, Labels(entry_codec.DESCRIBE, key, None, when))

    def set_words(
        self,
        currency: str | None = None,
        unit: str | None = None,
        arm: str | None = None,
        round: str | None = None,
        *,
        key: str | None = None,
        at: When = None,
    ) -> None:
        """Set the words in which plans and costs are shown; as ``Learner.set_words``."""
        when = timestamp("at", at)
        words = given_words(currency=currency, unit=unit, arm=arm, round=round)
        with self._turn() as replica:
            known = self._known(key, entry_codec.WORDS)
            if known is not None:
                if known.record.header["words"] != words:
                    raise entry_codec.used_before(known, "was used for different words")
                return
            replica.engine.set_words(**words)
            record = Record({"words": words}, {})
            self._write(replica, record, Labels(entry_codec.WORDS, key, None, when))

    # ------------------------------------------------------------ promises

    def promise(self, promise: Promise, *, key: str | None = None, at: When = None) -> None:
        """Make a promise, which counts the plays from now on; as ``Learner.promise``."""
        when = timestamp("at", at)
        with self._turn() as replica:
            known = self._known(key, entry_codec.PROMISE)
            if known is not None:
                said = known.record.header[entry_codec.PROMISE]
                if not isinstance(promise, Promise) or said != promise.record():
                    raise entry_codec.used_before(known, "was used for a different promise")
                return
            past = [] if replica.engine.promises else self._past_sets(replica)
            record = replica.promise(promise, past)
            self._changed = True
            self._write(replica, record, Labels(entry_codec.PROMISE, key, None, when))

    def _past_sets(self, replica: Replica) -> Sequence[ActionSet]:
        """Return the sets of the last plays, from the end of the journal."""
        entries = self._journal.entries(max(replica.number + 1 - MOST_READ, 1))
        asked = [entry for entry in entries if entry.labels.kind == entry_codec.ASK]
        own = [one.record for one in asked if not one.record.header.get("imported")]
        return [replica.round_set_of(record)[0].given for record in own[-MOST_PAST:]]

    def release(self, name: str, *, key: str | None = None, at: When = None) -> None:
        """End a promise by its name; as ``Learner.release``."""
        when = timestamp("at", at)
        with self._turn() as replica:
            known = self._known(key, entry_codec.RELEASE)
            if known is not None:
                if known.record.header["name"] != name:
                    raise entry_codec.used_before(known, "was used for a different promise")
                return
            replica.engine.promises.release(name)
            self._changed = True
            labels = Labels(entry_codec.RELEASE, key, None, when)
            self._write(replica, Record({"name": name}, {}), labels)

    # ------------------------------------------------------------ comparison with a rule

    @property
    def compare(self) -> Rule | None:
        """The rule that plays are compared with, for ``show`` and ``saved``; None if none is set.

        Set it to ``InProportion()``, for example. The journal keeps it.

        Examples
        --------
        >>> from multiplay import Budget, InProportion, Study
        >>> study = Study.create("ads", Budget(3, [3, 3]), store="memory://compare-example")
        >>> study.compare = InProportion()
        >>> Study.open("ads", store="memory://compare-example").compare
        InProportion()
        """
        with self._lock:
            return comparison.rule_in(self._journal)

    @compare.setter
    def compare(self, rule: Rule | None) -> None:
        self.set_compare(rule)

    def set_compare(self, rule: Rule | None, *, key: str | None = None, at: When = None) -> None:
        """Set the rule that plays are compared with; None for no rule. See ``compare``."""
        when, record = timestamp("at", at), entry_codec.compare_record(checked_rule(rule))
        with self._turn() as replica:
            known = self._known(key, entry_codec.COMPARE)
            if known is not None:
                if entry_codec.rule_of(known.record) != rule:
                    raise entry_codec.used_before(known, "was used for a different rule")
                return
            self._write(replica, record, Labels(entry_codec.COMPARE, key, None, when))

    def _compared(self, against: Any) -> Against:
        if against is None:
            against = self.compare
            if against is None:
                hint = "Use saved(against=InProportion()), or set study.compare = InProportion()."
                raise InvalidInput("against", "a rule", "nothing", hint)
        return super()._compared(against)

    def _answer(self, question: Question) -> Saved:
        with self._current() as engine:
            replica = self._own()
            head = Head(replica.number, replica.digest)
            past = self._past(engine, NO_DAYS, head.number)
        return comparison.answered(self.store, self.name, head, self._given, past, question)

    # ------------------------------------------------------------ reports that count

    def forget(
        self,
        arm: str | None = None,
        *,
        before: Round,
        key: str | None = None,
        at: When = None,
    ) -> Remaining:
        """Forget the losses of an arm that were told before a round; as ``Learner.forget``.

        The journal is replayed to compute what is left, which takes as long as opening a study
        without a snapshot.
        """
        return self._restart(entry_codec.FORGET, arm, before, key, at)

    def keep(
        self,
        arm: str | None = None,
        *,
        since: Round | None = None,
        key: str | None = None,
        at: When = None,
    ) -> Remaining:
        """Let all losses of an arm since a round count again; as ``Learner.keep``."""
        return self._restart(entry_codec.KEEP, arm, since, key, at)

    def _restart(
        self, kind: str, arm: str | None, given: Round | None, key: str | None, at: When
    ) -> Remaining:
        when = timestamp("at", at)
        with self._turn() as replica:
            engine = replica.engine
            engine.check_restarts()
            arm, known = engine.checked_arm(arm), self._known(key, kind)
            if known is not None:
                said = tuple(known.record.header[name] for name in ("arm", "given"))
                if said != (arm, entry_codec.plain_round(given)):
                    raise entry_codec.used_before(known, "was used for a different arm or round")
                return entry_codec.remaining_of(known)
            end, limit = replica.number + 1, self.replay_limit
            log = report_log(self._journal, end, *self._given, limit=limit)
            restart = engine.restarted(log, kind == entry_codec.KEEP, arm, given, when)
            self._changed = True
            remaining = engine.restart(restart)
            record = entry_codec.restart_record(kind, arm, given, restart)
            self._write(replica, record, Labels(kind, key, None, when))
            return remaining

    # ------------------------------------------------------------ history

    def plays(self, *, external: bool = False, chunk: int | None = None) -> Any:
        """Return a table of all plays: id, key, when asked and told, units, expected, realised.

        ``external``: True for external plans and imported days as well. They come first, in order
        of time, with id 0 and the status "external". ``chunk``: yield the table in parts of this
        number of rows, for a long history.
        """
        rows = play_history.CHUNK if chunk is None else play_history.checked_chunk(chunk)
        tables = play_history.play_tables(self._journal, rows)
        if true_or_false("external", external, "Leave it out."):
            tables = chain(play_history.external_tables(self._journal, rows), tables)
        parts = self._guarded(tables)
        return joined_tables(parts) if chunk is None else parts

    def plans(self, *, wide: bool = False) -> Any:
        """Return a table of all plans, with a row for each play and arm that was played.

        External plans are among them, with id 0 and the status "external"; imported tables are not.

        Parameters
        ----------
        wide
            True: one row for each play, with the columns of ``plays()`` and a column for each arm
            that was ever played, with its units.

        Returns
        -------
        DataFrame
            ``id``, ``key``, ``status``, ``asked`` and ``told`` of the play; ``arm``, ``units``,
            ``seen`` (the units that were told) and ``loss`` (their total) of the arm; ``expected``
            and ``realised`` of the whole play, the same in all its rows. If there were promises:
            ``price of`` each of them, and ``held`` of the play.

        Examples
        --------
        >>> from multiplay import Budget, Study
        >>> ads = Budget(3, [3, 3], names=["news", "radio"])
        >>> study = Study.create("ads", ads, store="memory://plans-example")
        >>> play = study.ask(fixed={"news": 2})
        >>> told = study.tell(play, {"news": [0.5, 0.25], "radio": [1.0]})
        >>> print(study.plans()[["id", "arm", "units", "seen", "loss"]])
           id    arm  units  seen  loss
        0   1   news      2     2  0.75
        1   1  radio      1     1  1.00
        """
        opened = export.history_in(self.store, self.name)
        return export.plans_table(opened, wide, self.known_arms, self.promised)

    @property
    def promised(self) -> tuple[str, ...]:
        """The names of all promises ever made, in order; released ones too."""
        with self._current() as engine:
            first = [one.name for one in engine.promises.initial]
            made = [name for name, _ in self._promises_made(engine)]
        return (*dict.fromkeys(first + made),)

    def _promises_made(self, engine: Engine) -> Iterator[tuple[str, int]]:
        """Yield the name and the number of each entry that made a promise, in order."""
        found = self._journal.pairs(entry_codec.PROMISE, ()) if engine.promises else ()
        for entry, _ in found:
            yield entry.record.header[entry_codec.PROMISE]["name"], entry.number

    def entries(self, start: int = 0) -> Iterator[Entry]:
        """Yield the entries of the journal from this number on, in order."""
        return self._guarded(self._journal.entries(start))

    def export(
        self,
        path: str | PathLike[str],
        *,
        plays: bool = False,
        plans: bool = False,
        wide: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Write the journal, the plays or the plans to a file; return the number of rows.

        Parameters
        ----------
        path
            The ending is the format: ``.csv``, ``.xlsx``, ``.jsonl`` (JSON lines) or ``.parquet``
            (needs ``pip install 'multiplay[parquet]'``). JSON lines of the journal are complete:
            ``import_journal`` restores the study. In the other formats the content of an entry is
            JSON text. ``.xlsx`` is always a workbook of the plans, with sheets of plans, bills and
            arms, and a summary.
        plays
            True: the table of plays, as ``plays()`` gives it.
        plans, wide
            True: the table of plans, as ``plans(wide=wide)`` gives it.
        progress
            Called with the number of rows so far.
        """
        content = export.Content.checked(plays, plans, wide, self.known_arms, self.promised)
        opened = export.history_in(self.store, self.name)
        return export.export(opened, path, content, lambda: export.overview(self), progress)

    def backup(
        self, path: str | PathLike[str], *, progress: Callable[[int], None] | None = None
    ) -> int:
        """Copy this study to a new SQLite file; return the number of entries.

        Other processes may continue to write: the file has all entries before the call. Open it
        with ``Study.open(name, store=path)``. A file that exists raises an error.
        """
        return backup.backup(export.history_in(self.store, self.name), self.name, path, progress)

    def copy(
        self,
        to: Place | None = None,
        *,
        name: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Copy this study to another store or a new name, bit for bit.

        Return the number of entries. Use it to move a study from SQLite to PostgreSQL, or back, or
        to try something on a copy. Stop the programs that write to
        the study before: entries that are written after the call are not in the copy. API keys are
        not copied.

        Parameters
        ----------
        to
            The other store: a path or a URL. The store of this study if not given.
        name
            The name of the copy; the same name if not given. It must be new in its store.
        progress
            Called with the number of entries copied.
        """
        place = self.store if to is None else store_at(to)
        new_name = self.name if name is None else name
        opened = export.history_in(self.store, self.name)
        entries = backup.copy(opened, place, new_name, progress)
        forget(place, new_name)
        return entries

    def verify(self, progress: Callable[[int], None] | None = None) -> Verified:
        """Replay the whole journal, and compare every entry and the state, bit for bit.

        Plays of a different version or processor are not chosen again: ``unchecked`` is their
        number. Their digests, feasibility and effect on the state are checked.

        ``progress`` is called with the number of entries replayed.
        """
        with self._lock:
            live, problems = None, list[str]()
            try:
                seen, head = self._seen(), self._journal.head()
            except Damaged as error:  # entries at the end are missing
                head, problems = Head((error.number or 0) - 1), [f"{error}"]
            else:
                with suppress(*entry_codec.UNREADABLE):  # verify() names it
                    live = self._caught_up(head, seen)
            return verify(self._journal, live, head.number, *self._given, progress, problems)

    def is_asked(self, key: str | None) -> bool:
        """Return whether a play that was not cancelled has this key."""
        with self._lock:
            asked = None if key is None else play_history.last_asked(self._journal, key)
            return asked is not None and self._status(asked) != CANCELLED

    def once(self, verb: str, request: Request, act: Callable[[], T]) -> T:
        """Call a verb for a request of a client; the same request again has the same result.

        The result is that of the entry of the request, or is stored with it. The same id with
        different content raises ``Conflict``. A request that is refused is not recorded.

        Parameters
        ----------
        verb
            The name of the verb, such as "ask".
        request
            The id of the request, and the digest of its content.
        act
            Calls the verb of this study.
        """
        with self._turn() as replica:
            known = self._entry_of(replica, verb, request)
            if known is not None:
                entry_codec.check_same_request(known, request)
                return cast(T, self._result(replica, known))
            self._request, self._is_recorded = request, False
            try:
                result = act()
            finally:
                self._request = None
            if not self._is_recorded:
                self._write_result(replica, verb, request, result)
            return result

    # ------------------------------------------------------------ private

    def _known(self, key: str | None, *kinds: str) -> Entry | None:
        """Return the entry of a key that was used before."""
        return None if key is None else play_history.keyed(self._journal, kinds, checked_key(key))

    def _status(self, asked: Entry) -> str:
        """Return the status of the play of an entry."""
        assert asked.labels.play is not None
        return play_history.status(self._journal, asked.labels.play)

    def _is_free(
        self, replica: Replica, key: str, known: Entry, request: PlanRequest, replace: bool
    ) -> bool:
        """Return whether the key of a play can name a new play; as ``PlanRequest.is_free``."""
        then = entry_codec.plan_request(known.record, replica.engine.has_rule)
        return request.is_free(key, then, known.labels.at, self._status(known), replace)

    def _id_of(self, key: str) -> int | None:
        return play_history.id_of(self._journal, key)

    def _entry_of(self, replica: Replica, verb: str, request: Request) -> Entry | None:
        """Return the entry that a request wrote before."""
        for number in replica.numbers_of(verb, request.id):
            entry = next(self._journal.entries(number))
            if entry_codec.is_of(entry, request):
                return entry
        wanted = entry_codec.request_keys(verb, request.id)
        if self._foreseen.issuperset(wanted):
            return None
        return next(iter(self._journal.find_all(wanted)), None)

    def _write_result(self, replica: Replica, verb: str, request: Request, result: Any) -> None:
        """Write the result of a request that wrote no entry without a key."""
        kind, key = entry_codec.request_keys(verb, request.id)[-1]
        record = entry_codec.result_record(verb, request, result)
        self._write(replica, record, Labels(kind, key, None, timestamp("at", None)))

    def _result(self, replica: Replica, known: Entry) -> Any:
        """Return the result of a request from its entry."""
        header, kind = known.record.header, known.labels.kind
        if kind == entry_codec.REQUESTED:
            result, verb = header["result"], header["verb"]
            if verb == entry_codec.ASK:
                asked = play_history.about(self._journal, result["play"])[0]
                then = self._as_then(replica, asked, result[entry_codec.EXPECTED])
                return then.again() if result.get("repeated") else then
            if verb in entry_codec.RESTARTS:
                return Remaining(**result)
            if verb in NO_RECEIPTS:
                return result
            return Receipt(**result | {"added": tuple(result.get("added", ()))})
        if kind == entry_codec.ASK:
            mark = header.get(entry_codec.AT_REQUEST)
            if not isinstance(mark, dict):  # of version 0.9
                return self._again(replica, known)
            return self._as_then(replica, known, mark[entry_codec.EXPECTED])
        if kind == entry_codec.EXPIRE:
            return header["plays"]
        if kind in entry_codec.RESTARTS:
            return entry_codec.remaining_of(known)
        if kind in NO_RESULTS:
            return None
        return entry_codec.receipt_of(known, False)

    def _as_then(
        self, replica: Replica, asked: Entry, expected: Sequence[float | None]
    ) -> PendingPlay:
        """Return a play as it was asked, with the estimate of that time."""
        id = asked.labels.play
        assert id is not None
        action, plan = play_history.plan_again(replica, asked.record)
        then = Estimate(*map(number_or_nan, expected))
        key, header = entry_codec.shown_key(asked.labels), asked.record.header
        made = id, action, plan, key, lambda: then, lambda: self.why(id)
        baseline, restricted = play_history.baseline_again(replica, asked.record)
        switching, units = replica.engine.switching, header.get(entry_codec.CHANGED, 0)
        return PendingPlay(
            *made,
            entry_codec.is_truncated(asked.record),
            lambda: self.words,
            baseline,
            restricted,
            entry_codec.gap_of(asked.record),
            header.get(entry_codec.PRICES),
            bool(header.get(entry_codec.HELD)),
            0.0 if switching is None else switching.change * units,
        )

    def _close(self, replica: Replica, id: int, key: str | None, when: float) -> Receipt:
        told, outcome = replica.telling(id).close(id, when)
        self._changed = True
        record = Record(entry_codec.receipt_fields(told) | entry_codec.outcome_of(outcome), {})
        self._write(replica, record, Labels(entry_codec.CLOSE, key, int(id), when))
        return told

    def _cancel(self, replica: Replica, id: int, key: str | None, when: float) -> None:
        self._changed = True
        replica.engine.cancel(id)
        self._write(replica, Record({}, {}), Labels(entry_codec.CANCEL, key, int(id), when))

    def _again(self, replica: Replica, asked: Entry) -> PendingPlay:
        """Return a play of an earlier entry."""
        id = asked.labels.play
        assert id is not None
        if id in replica.engine.pending:
            return self._pending_play(replica.engine, id)
        return self._as_then(replica, asked, [asked.record.header["expected"], None, None])

    def _told_again(
        self, replica: Replica, id: Any, losses: Losses, final: bool, known: Entry | None
    ) -> Receipt:
        """Return the receipt of a report that was told before."""
        about = play_history.about(self._journal, id)
        return play_history.told_before(replica, about, losses, final, known, self._request)

    def _check_waits(self, replica: Replica, id: Any) -> None:
        if not is_integer(id) or id not in replica.engine.pending:
            raise play_history.ended_play(id, play_history.about(self._journal, id))

    def _check_same_play(self, known: Entry, id: Any) -> None:
        if known.labels.play != id:
            raise entry_codec.used_before(known, f"was used for play {known.labels.play}")


def _opened(
    kind: type[Study], name: str, store: Store, actions: Any, policy: Any, by: str | None
) -> Study:
    return kind.open(name, store=store, actions=actions, policy=policy, by=by)


def allowance_curve(study: Study, asked: Iterable[Entry]) -> AllowanceCurve | None:
    """Return the allowance after each of the last plays that were not cancelled, given by entries.

    None without a baseline, with known costs, and for an allowance that starts anew each week.
    """
    with study._current() as engine:
        limit = engine.allowance
        if limit is None or limit.settings.per is not None:
            return None
        headers = [entry.record.header for entry in asked]
        if any(entry_codec.BASELINE not in header for header in headers):  # imported plays
            return None
        plays = [(header["plan"], header[entry_codec.BASELINE]) for header in headers]
        return limit.curve(engine.state, plays)


class PromiseCurve(NamedTuple):
    """The last plays of a promise: their entries, what was used after each, and their prices."""

    asked: list[Entry]
    used: FloatArray
    prices: FloatArray


def promise_curves(study: Study, asked: Iterable[Entry]) -> dict[str, PromiseCurve]:
    """Return the last plays of every promise, given by entries of plays that were not cancelled.

    Each play counts as planned, and what reports said otherwise is counted before the first.
    """
    entries, curves = list(asked), dict[str, PromiseCurve]()
    with study._current() as engine:
        begins = dict(study._promises_made(engine))
        for name, kept in engine.promises.kept.items():
            own = [
                one
                for one in entries
                if name in one.record.header.get(entry_codec.PRICES, ())
                and one.number > begins.get(name, 0)  # names may be used again
            ]
            plans = [one.record.header["plan"] for one in own]
            each = np.array(
                [kept.promise.amounts([*plan]) @ [*plan.values()] for plan in plans], dtype=float
            )
            total = kept.used(engine.state.arms.names, kept.units)
            prices = [one.record.header[entry_codec.PRICES][name] for one in own]
            used = total - (each.sum() - each.cumsum())
            curves[name] = PromiseCurve(own, used, np.array(prices, dtype=float))
    return curves
