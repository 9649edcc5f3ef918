"""Comparison with a rule: the played days of a journal, and answers that are cached."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, cast

import multiplay.actions
from multiplay._support import deadline
from multiplay._support.builder import classes_of
from multiplay._support.hints import Hint, Term
from multiplay._support.serialization import pack, set_digest
from multiplay.actions import ActionSet, Rule
from multiplay.errors import InvalidInput
from multiplay.learner.comparison import (
    Asked,
    Ended,
    Event,
    Learned,
    LearnedTable,
    Past,
    PlansByKey,
    PlayedDays,
    Question,
    Told,
    played_days,
)
from multiplay.learner.engine import Engine
from multiplay.learner.past_plans import DRIVEN
from multiplay.learner.plays import PendingState, time_of
from multiplay.learner.reports import ParsedLosses, parse_losses
from multiplay.learner.round_set import RoundSet
from multiplay.policies import Policy
from multiplay.savings import Savings
from multiplay.storage import Entry, Head, Record, Store
from multiplay.storage.base import JournalEntries
from multiplay.studies import entry_codec
from multiplay.studies.entry_codec import StoredFeatures, StoredSet
from multiplay.studies.replica import Corrections, Replica, corrections, ranges_at
from multiplay.types import FloatArray, IntArray

LARGE = 200_000  # plays times arms of a study that is compared in seconds
MOST_ANSWERS = 50  # that are cached
NOT_REPLACED = Record({}, {})
CORRECTED = entry_codec.CLOSE, True  # a play that was closed, and then told its losses
NO_RULE_HINT = Hint(
    "Use {}.",
    Term("savings(versus=InProportion()), or set study.versus = InProportion()", "compared"),
)

_answers: dict[tuple[bytes, bytes], Savings] = {}  # by the digests of the last entry and question


def rule_in(journal: JournalEntries) -> Rule | None:
    """Return the rule that was set last; None if there is none."""
    last = max(
        journal.pairs(entry_codec.COMPARE, ()), key=lambda pair: pair[0].number, default=None
    )
    return None if last is None else entry_codec.rule_of(last[0].record)


def checked_rule(rule: Any) -> Rule | None:
    """Return a rule that a journal can keep; raise ``InvalidInput`` for another one."""
    ours = isinstance(rule, Rule) and type(rule).__name__ in classes_of(multiplay.actions)
    if rule is None or ours:
        return cast(Rule | None, rule)
    expected = "a rule that the journal can keep"
    hint = "Use InProportion(), PriceList({...}) or FixedPlan({...}); None for no rule."
    raise InvalidInput("versus", expected, repr(rule), hint)


def answered(
    store: Store, name: str, head: Head, given: tuple[Any, Any], past: Past, question: Question
) -> Savings:
    """Return the answer to a question about a study, from a cache if it was asked before.

    The journal is read with a separate connection, up to its entry ``head``; ``given`` are the set
    and the policy, if they are user-defined.
    """
    key = head.digest, _digest(question)
    found = _answers.get(key)
    if found is None:
        with closing(store.open(name)) as journal:
            history = read_days(journal, head.number + 1, *given)
        found = past._replace(history=history).answer(question)
        if key[1] and not deadline.was_missed():  # otherwise plans may not be the best
            _answers[key] = found
        while len(_answers) > MOST_ANSWERS:
            _answers.pop(next(iter(_answers)), None)
    return found


def _digest(question: Question) -> bytes:
    """Return a digest of a question; b"" if its rule or policy is user-defined."""
    versus, *rest = question
    if isinstance(versus, PlansByKey):
        return set_digest([versus.by_key, repr(rest)], {})
    if versus is None or versus == DRIVEN:
        return set_digest(repr(question if versus else rest), {})
    if not type(versus).__module__.startswith("multiplay."):
        return b""
    plain, arrays = pack(versus, "versus")
    return set_digest([plain, repr(rest)], arrays)


def saved_text(study: Any) -> str:
    """Return what a study saved against its rule, in one line; "" if it has no rule.

    The study is here, or of a service. It takes a time that grows with the history, seconds for a
    long one; a study with ``LARGE`` plays times arms is not compared.
    """
    rule = study.versus
    if rule is None:
        return ""
    about = f"saved against {rule.text}:"
    if study.asked * len(study.known_arms) > LARGE:
        return f"{about} not computed here, because the study is large"
    try:
        return str(study.savings(rule))
    except InvalidInput as refused:
        reason = f"{refused.argument}: expected {refused.expected}, got {refused.got}"
        return f"{about} not known ({reason})"


def read_days(
    journal: JournalEntries,
    end: int,
    actions: ActionSet | None = None,
    policy: Policy | None = None,
) -> PlayedDays:
    """Return the played days of the entries before number ``end``; nothing is replayed.

    Losses are as they were corrected. Plays that were told before a learner was imported are left
    out: its file has no reports. User-defined sets and policies are passed again.
    """
    ranges = ranges_at(journal, end).of_losses
    first = Replica.from_first_entry(next(journal.entries()), actions, policy, ranges=ranges)
    return days_since(journal, first, end)


def days_since(journal: JournalEntries, first: Replica, end: int) -> PlayedDays:
    """Return the played days of the entries after a state, and before number ``end``."""
    events = _Reader(first.engine).events(journal, first.number + 1, end)
    return played_days(events, first.engine.state.ranges, first.engine.pending)


class _Reader:
    """Events of entries; equal sets are built once."""

    def __init__(self, engine: Engine) -> None:
        self._state, self._sets = engine.state, dict[bytes, RoundSet]()
        self._features = engine.state.features
        self._played = {id: play.round_set for id, play in engine.pending.items()}

    def events(self, journal: JournalEntries, start: int, end: int) -> Iterator[Event]:
        """Yield plays, reports and external losses, without those that were retracted."""
        replaced = Corrections.of(corrections(journal, end)).replaced
        for entry in journal.entries(start):
            if entry.number >= end:
                return
            if entry.record.header.get("imported"):
                continue
            new = replaced.get(entry.number, NOT_REPLACED)
            if new is not None:
                yield from self._events_of(entry, new)
            elif self._features is not None:  # retracted: its scales stay
                scales = entry_codec.scales_of(entry.record.header)
                self._features.table.freeze_at(scales)

    def _events_of(self, entry: Entry, new: Record) -> Iterator[Event]:
        """Yield the event of an entry, if it is one; ``new`` has its losses if it was corrected."""
        (kind, _, play, when), record = entry.labels, entry.record
        id = play or 0
        if kind == entry_codec.ASK:
            if entry_codec.REPLACES in record.header:
                yield Ended(record.header[entry_codec.REPLACES])
            yield Asked(id, self._asked(entry))
        elif kind in (entry_codec.TELL, entry_codec.PART) or (kind, bool(new.header)) == CORRECTED:
            losses = {**record.header, **new.header}["losses"]
            final = kind != entry_codec.PART
            yield Told(id, self._parsed(losses, self._played[id]), final, when)
        elif kind == entry_codec.CLOSE:
            yield Ended(id, when)
        elif kind == entry_codec.CANCEL:
            yield Ended(id)
        elif kind == entry_codec.LEARN:
            round_set, header = self._round_set(record), {**record.header, **new.header}
            action = entry_codec.action_of_plan(header["plan"], round_set.given.names)
            round_set = self._featured(round_set, record, action)
            parsed = self._parsed(header["losses"], round_set)
            when = time_of(entry_codec.shown_key(entry.labels), when)
            yield Learned(round_set, action, parsed, when)
        elif kind == entry_codec.TABLE:
            logged, phi = entry_codec.logged_data_of(record), list[FloatArray | None]()
            if self._features is not None:
                scales = entry_codec.scales_of(record.header)
                phi, _ = self._features.learn_scales(logged, logged.arms, scales)
            yield LearnedTable(logged, phi)
        elif kind == entry_codec.DESCRIBE and self._features is not None:
            self._features.set_arm_features(
                *entry_codec.described(record), entry_codec.scales_of(record.header)
            )

    def _asked(self, entry: Entry) -> PendingState:
        labels = entry.labels
        round_set = self._featured(self._round_set(entry.record), entry.record)
        self._played[labels.play or 0] = round_set
        play = entry_codec.play_of(entry.record, round_set.given.names)
        return PendingState(
            play, round_set, entry_codec.shown_key(labels), asked=labels.at
        ).without_cache()

    def _round_set(self, record: Record) -> RoundSet:
        """Return the set of an entry with its limits, as the user gave it."""
        stored, state = StoredSet.of_record(record), self._state
        found = self._sets.get(stored.digest)
        if found is None:
            given = stored.given(state.actions) or state.actions
            bounds = state.ranges.of(given.names)
            found = RoundSet(given, stored.plan_limits(), given, bounds, state.ranges)
            self._sets[stored.digest] = found
        return found

    def _featured(
        self, round_set: RoundSet, record: Record, action: IntArray | None = None
    ) -> RoundSet:
        """Return a set with the features of an entry; those of a plan have its arms only."""
        features, stored = self._features, StoredFeatures.of_record(record)
        if features is None or "features" not in stored.header:
            return round_set
        names = round_set.given.names
        today = stored.today(names, features.features)
        if action is None:
            found = features.checked(today, names, names, stored.scales)
        else:
            found = features.checked_plan(today, round_set, action, names, stored.scales)
        features.keep_values(found, names)
        return round_set.featured(found)

    def _parsed(self, losses: Any, round_set: RoundSet) -> ParsedLosses:
        return parse_losses(losses, round_set.given.names, self._state.policy)
