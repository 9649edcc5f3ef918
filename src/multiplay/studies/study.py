"""Study: a learner whose verbs are durable, for any number of processes and machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain
from os import PathLike
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np

from multiplay._support.atomic_files import as_path
from multiplay._support.checks import true_or_false
from multiplay._support.html import HasPanel, Panel
from multiplay._support.words import USUAL_WORDS, Words
from multiplay.actions import ActionSet, Rule, Transport
from multiplay.beliefs.restart import ReportLog
from multiplay.constraints import Constraint
from multiplay.errors import Conflict, InvalidInput, StoreError
from multiplay.features import Features
from multiplay.learner.allowance import AllowanceCurve
from multiplay.learner.comparison import NO_DAYS, Question, Versus
from multiplay.learner.engine import Engine, Range, checked_key
from multiplay.learner.facts import learner_panel
from multiplay.learner.play_log import joined_tables
from multiplay.learner.plays import (
    CANCELLED,
    When,
    timestamp,
)
from multiplay.learner.ranges import ByName
from multiplay.learner.reports import REFUSED, Reports
from multiplay.policies import Policy
from multiplay.random import Streams, seed_or_random
from multiplay.savings import Savings
from multiplay.storage import Damaged, Entry, Head, Labels, Record, Store
from multiplay.storage.base import JournalEntries
from multiplay.storage.folder import read_record
from multiplay.storage.stores import DEFAULT_STORE, store_at
from multiplay.studies import (
    backup,
    comparison,
    entry_codec,
    export,
    learner_files,
    play_history,
)
from multiplay.studies.commands.base import COMMANDS, Command
from multiplay.studies.entry_codec import Request
from multiplay.studies.like import arms_like
from multiplay.studies.replica import (
    NO_NUMBERS,
    Made,
    Replica,
    Verified,
    rehearse,
    report_log,
    verify,
)
from multiplay.studies.synced import SyncedState, forget
from multiplay.studies.turn import Turn
from multiplay.studies.verbs import LocalVerbs, StudyVerbs
from multiplay.types import FloatArray

MOST_COMPILED = 100  # studies whose kernels are compiled beforehand

R = TypeVar("R")
T = TypeVar("T")

Place = Store | str | PathLike[str]


class Study(LocalVerbs, StudyVerbs, SyncedState, HasPanel):
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
    >>> study = Study.create("lanes", plans, loss_range=(0, 250), store="memory://truck")
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
    Study('lanes' in memory://truck, PooledCTS on 4 arms: 1 asked, 1 told, losses from 0 to 250)
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
        loss_range: Range | None = None,
        reports: Reports = REFUSED,
        varying_set: bool = False,
        features: Features | None = None,
        arm_features: Any = None,
        constraints: Sequence[Constraint] = (),
        words: Words = USUAL_WORDS,
        like: str | Sequence[str] | None = None,
        store: Place = DEFAULT_STORE,
        key: str | None = None,
        by: str | None = None,
    ) -> Self:
        """Create a study.

        Parameters
        ----------
        name
            The name of the study; it must be new.
        actions, policy, seed, loss_range, reports, varying_set, features, arm_features,
        constraints, words
            As in ``Learner``. The random numbers of round t come from (seed, t).
        like
            Names of studies of the store, or patterns such as ``west/*``. The new study learns from
            their arms how far the costs of arms are apart, their level and their noise, as they
            are now; none of their averages is taken for that of an arm here. For policies that let
            arms learn from each other (``PooledCTS``), and for beliefs; without features.
        store
            The store: ``sqlite:///file.db`` (or a path), ``postgresql://...`` for several
            machines, ``memory://`` for tests. The file ``multiplay.db`` if not given.
        key
            The same key again returns the study that was created with it.
        by
            The author of the entries that are written.
        """
        drawn, place = seed_or_random(seed), store_at(store)
        if like is not None and features is not None:
            got, hint = "like= and features=", "Leave one of them out."
            raise InvalidInput("like", "a study without declared features", got, hint)
        engine = Engine.create(
            actions,
            policy,
            Streams(NO_NUMBERS),
            loss_range=loss_range,
            reports=reports,
            varying_set=varying_set,
            features=features,
            arm_features=arm_features,
            constraints=constraints,
            words=words,
            like=None if like is None else arms_like(like, actions, place, cls),
        )
        record = entry_codec.create_record(engine, drawn, varying_set)
        record = entry_codec.signed(record, by)
        known = None if key is None else checked_key(key)
        labels = Labels(entry_codec.CREATE, known, at=timestamp("at", None))
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
        store: Place = DEFAULT_STORE,
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
    def names(cls, prefix: str = "", *, store: Place = DEFAULT_STORE) -> list[str]:
        """Return the names of the studies of a store that begin with a prefix."""
        return store_at(store).names(prefix)

    @classmethod
    def delete(cls, name: str, *, store: Place = DEFAULT_STORE) -> None:
        """Delete a study and its journal."""
        place = store_at(store)
        place.delete(name)
        forget(place, name)

    @classmethod
    def rename(cls, name: str, new: str, *, store: Place = DEFAULT_STORE) -> None:
        """Give a study a new name; its journal and its API keys stay as they are.

        The new name must not be in use. Open studies of the old name raise ``NotFound``: open the
        study again under its new name.

        Examples
        --------
        >>> from multiplay import Study, Transport
        >>> study = Study.create("lanes", Transport([1], [1]), store="memory://renamed")
        >>> Study.rename("lanes", "lanes of Lyon", store="memory://renamed")
        >>> Study.names(store="memory://renamed")
        ['lanes of Lyon']
        """
        place = store_at(store)
        place.rename(name, new)
        forget(place, name)

    @classmethod
    def compile_all(cls, *, store: Place = DEFAULT_STORE) -> None:
        """Compile the kernels of the studies of a store, so that their first plays do not wait.

        Of many studies, a sample of 100 is read: one play of each kind of set and policy. Without
        studies, those of the default policy for ``Transport``. Studies with user-defined classes
        and damaged studies are left out.
        """
        place = store_at(store)
        names = place.names()
        names = names[:: max(1, len(names) // MOST_COMPILED)]
        if not names:
            rehearse(Engine.create(Transport.example(), None, Streams(NO_NUMBERS)))
        for name in names:
            with (
                suppress(InvalidInput, *entry_codec.UNREADABLE),
                closing(place.open(name)) as journal,
            ):
                rehearse(Replica.from_first_entry(next(journal.entries())).engine)

    @classmethod
    def accept(cls, name: str, *, store: Place = DEFAULT_STORE) -> Head:
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
        store: Place = DEFAULT_STORE,
    ) -> Self:
        """Create a study from a file of ``Learner.save``, which continues from there.

        Plays keep their ids and keys. ``seed`` is that of the new plays.
        """
        place = store_at(store)
        record, drawn = read_record(as_path("path", path)), seed_or_random(seed)
        plays = [*learner_files.imported_plays(record, actions, policy)]
        first = entry_codec.import_record(learner_files.without_journal(record), drawn)
        labels = Labels(entry_codec.IMPORT, at=timestamp("at", None))
        journal = place.create(name, first, labels, plays)
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
        store: Place = DEFAULT_STORE,
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

    # ------------------------------------------------------------ verbs

    def do(self, command: Command[R], key: str | None = None, at: When = None) -> R:
        """Run a verb that changes the study, in a transaction."""
        when, key = timestamp("at", at), None if key is None else checked_key(key)
        if command.prepares:
            with self._current() as engine:
                command = command.prepared(engine)
        with self._turn(command.learns) as replica:
            turn, before = StudyTurn(self, replica, key, when), replica.engine.state.told
            result = command.run(turn)
        turn.engine.warn_if_over(before)
        if turn.asked is not None:
            turn.engine.warn_if_promised(turn.asked)
        return result

    def _rule(self) -> Rule | None:
        with self._lock:
            return comparison.rule_in(self._journal)

    def _compared(self, versus: Any) -> Versus:
        if versus is None:
            versus = self.versus
            if versus is None:
                raise InvalidInput("versus", "a rule", "nothing", comparison.NO_RULE_HINT)
        return super()._compared(versus)

    def _answer(self, question: Question) -> Savings:
        with self._current() as engine:
            replica = self._own()
            head = Head(replica.number, replica.digest)
            past = self._past(engine, NO_DAYS, head.number)
        return comparison.answered(self.store, self.name, head, self._given, past, question)

    def _asked(self, id: int) -> tuple[Engine, float]:
        with self._lock:
            entry = play_history.asked_entry(self._journal, id)
            return self._at(entry.number).engine, entry.labels.at

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
        """The names of all promises so far, in order; those that ended too."""
        with self._current() as engine:
            first = [one.name for one in engine.constraints.promises.initial]
            made = [name for name, _ in self._promises_made(engine)]
        return (*dict.fromkeys(first + made),)

    def _promises_made(self, engine: Engine) -> Iterator[tuple[str, int]]:
        """Yield the name and the number of each entry that made a promise, in order."""
        found = self._journal.pairs(entry_codec.PROMISE, ()) if engine.constraints.promises else ()
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
                return cast(T, _result(StudyTurn(self, replica), verb, known))
            self._request, self._is_recorded = request, False
            try:
                result = act()
            finally:
                self._request = None
            if not self._is_recorded:
                self._write_result(replica, verb, request, result)
            return result

    # ------------------------------------------------------------ private

    def _status(self, asked: Entry) -> str:
        """Return the status of the play of an entry."""
        assert asked.labels.play is not None
        return play_history.status(self._journal, asked.labels.play)

    def _id_of(self, key: str) -> int | None:
        return play_history.id_of(self._journal, key)

    def _history(self, act: Callable[[JournalEntries], Any]) -> Any:
        with self._lock:
            return act(self._journal)

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
        record = entry_codec.result_record(verb, request, COMMANDS[verb].stored(result))
        self._write(replica, record, Labels(kind, key, None, timestamp("at", None)))


class StudyTurn(Turn):
    """One verb of a study in a transaction."""

    def __init__(
        self, study: Study, replica: Replica, key: str | None = None, when: float = math.nan
    ) -> None:
        super().__init__(study, replica, study._journal, key, when)
        self._study = study

    @property
    def request(self) -> Request | None:
        """The request of a client that calls the verb, as long as no entry has its id."""
        return self._study._request

    def changed(self) -> None:
        """Say that the state has changed: it is not used again if the verb fails from here on."""
        self._study._changed = True

    def write(
        self,
        kind: str,
        made: Made,
        play: int | None = None,
        *,
        key: str | None = None,
        **result: Any,
    ) -> None:
        """Write an entry to the journal."""
        record = made if isinstance(made, Record) else made()
        labels = Labels(kind, key, play, self.when)
        self._study._write(self.replica, record, labels, **result)

    def corrected(self, draft: Record, labels: Labels) -> Replica:
        """Return the state with a correction that is not written yet, which is then used."""
        self.replica = self._study._correct(draft, labels)
        return self.replica

    def widen(self, wider: ByName) -> None:
        """Replay the journal with wider ranges; the entry is not the one of the request."""
        request, self._study._request = self._study._request, None
        super().widen(wider)
        self._study._request = request

    def report_log(self) -> ReportLog:
        """Return the reports of all entries so far: the journal is replayed."""
        study, end = self._study, self.replica.number + 1
        return report_log(self.journal, end, *study._given, limit=study.replay_limit)


def _result(turn: Turn, verb: str, known: Entry) -> Any:
    """Return the result of a request from its entry."""
    header = known.record.header
    if known.labels.kind == entry_codec.REQUESTED:
        return COMMANDS[header["verb"]].of_stored(turn, header["result"])
    return COMMANDS[verb].result(turn, known)


def _opened(
    kind: type[Study], name: str, store: Store, actions: Any, policy: Any, by: str | None
) -> Study:
    return kind.open(name, store=store, actions=actions, policy=policy, by=by)


def allowance_curve(study: Study, asked: Iterable[Entry]) -> AllowanceCurve | None:
    """Return the allowance after each of the last plays that were not cancelled, given by entries.

    None without a baseline, with known costs, and for an allowance that starts anew each week.
    """
    with study._current() as engine:
        limit = engine.constraints.allowance
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
        for name, kept in engine.constraints.promises.kept.items():
            own = [
                one
                for one in entries
                if name in one.record.header.get(entry_codec.PRICES, ())
                and one.number > begins.get(name, 0)  # names may be used again
            ]
            plans = [one.record.header["plan"] for one in own]
            each = np.array(
                [kept.settings.amounts([*plan]) @ [*plan.values()] for plan in plans], dtype=float
            )
            total = kept.used(engine.state.arms.names, kept.units)
            prices = [one.record.header[entry_codec.PRICES][name] for one in own]
            used = total - (each.sum() - each.cumsum())
            curves[name] = PromiseCurve(own, used, np.array(prices, dtype=float))
    return curves
