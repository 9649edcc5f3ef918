"""Turn: one verb in a transaction, with what a command reads and writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from multiplay._support.checks import is_integer
from multiplay._support.serialization import number_or_nan
from multiplay.beliefs.restart import ReportLog
from multiplay.learner.engine import Engine
from multiplay.learner.plays import AnyPlay, Estimate, PendingPlay, PendingState, play_id
from multiplay.learner.queries import Queries
from multiplay.learner.ranges import OTHERS, ByName, Ranges
from multiplay.storage import Entry, Labels, Record
from multiplay.storage.base import JournalEntries
from multiplay.studies import entry_codec, play_history
from multiplay.studies.entry_codec import Request
from multiplay.studies.replica import Made, Replica


class Turn(ABC):
    """One verb in a transaction.

    Attributes
    ----------
    owner : Queries
        The learner or study that runs the verb.
    replica : Replica
        The current state.
    journal : JournalEntries
        The entries so far.
    key, when
        The key that was given to the verb, checked; and its time in seconds since 1970.
    asked : PendingState or None
        The play that the verb chose.
    """

    def __init__(
        self,
        owner: Queries,
        replica: Replica,
        journal: JournalEntries,
        key: str | None,
        when: float,
    ) -> None:
        self.owner, self.replica, self.journal = owner, replica, journal
        self.key, self.when = key, when
        self.asked: PendingState | None = None

    @property
    def engine(self) -> Engine:
        """The policy with its state, and the pending plays."""
        return self.replica.engine

    @property
    @abstractmethod
    def request(self) -> Request | None:
        """The request of a client that calls the verb, as long as no entry has its id."""

    @abstractmethod
    def changed(self) -> None:
        """Say that the state has changed: it is not used again if the verb fails from here on."""

    @abstractmethod
    def write(
        self,
        kind: str,
        made: Made,
        play: int | None = None,
        *,
        key: str | None = None,
        **result: Any,
    ) -> None:
        """Write an entry.

        Parameters
        ----------
        kind, made
            The kind of the entry, and its content, or what makes that.
        play
            The id of the play that it is about.
        key
            The key of the entry.
        result
            What the result of a request needs, and the entry has not.
        """

    @abstractmethod
    def corrected(self, draft: Record, labels: Labels) -> Replica:
        """Return the state with a correction that is not written yet, which is then used."""

    def set_ranges(self, ranges: Ranges, key: str | None = None) -> None:
        """Replay the journal with other ranges of losses, and write their entry."""
        record = entry_codec.range_record(ranges, self.engine.state.ranges)
        self.corrected(record, Labels(entry_codec.RANGE, key, at=self.when))
        self.write(entry_codec.RANGE, record, key=key)

    def widen(self, wider: ByName) -> None:
        """Replay the journal with wider ranges of losses."""
        old = self.engine.state.ranges
        names = [name for name in wider if name != OTHERS]
        self.set_ranges(Ranges(old.noun, wider, old.outside, names))

    @abstractmethod
    def report_log(self) -> ReportLog:
        """Return the reports of all entries so far."""

    # ------------------------------------------------------------ plays

    def pending_play(self, id: int) -> PendingPlay:
        """Return a pending play in its public form."""
        return self.owner._pending_play(self.engine, id)

    def id_of(self, play: AnyPlay) -> int:
        """Return the id of a play; that of a key is read from the journal."""
        if type(play) is int:  # as a rule
            return play
        return play_id(play, lambda key: play_history.id_of(self.journal, key))

    def about(self, id: Any) -> list[Entry]:
        """Return all entries of a play."""
        return play_history.about(self.journal, id)

    def pending_id(self, play: AnyPlay) -> int:
        """Return the id of a play, after checking that it is pending."""
        id = self.id_of(play)
        if not is_integer(id) or id not in self.engine.pending:
            raise play_history.ended_play(id, self.about(id))
        return int(id)

    def play_again(self, asked: Entry) -> PendingPlay:
        """Return a play of an earlier entry."""
        id = asked.labels.play
        assert id is not None
        if id in self.engine.pending:
            return self.pending_play(id)
        return self.play_as_then(asked, [asked.record.header["expected"], None, None])

    def play_as_then(self, asked: Entry, expected: Sequence[float | None]) -> PendingPlay:
        """Return a play as it was asked, with the estimate of that time."""
        id = asked.labels.play
        assert id is not None
        action, plan = play_history.plan_again(self.replica, asked.record)
        then = Estimate(*map(number_or_nan, expected))
        key, header = entry_codec.shown_key(asked.labels), asked.record.header
        baseline, restricted = play_history.baseline_again(self.replica, asked.record)
        switching, units = self.engine.constraints.switching, header.get(entry_codec.CHANGED, 0)
        return PendingPlay(
            id,
            action,
            plan,
            key,
            lambda: then,
            lambda: self.owner.why(id),
            entry_codec.is_truncated(asked.record),
            lambda: self.owner.words,
            baseline,
            restricted,
            entry_codec.gap_of(asked.record),
            header.get(entry_codec.PRICES),
            bool(header.get(entry_codec.HELD)),
            0.0 if switching is None else switching.settings.cost * units,
        )
