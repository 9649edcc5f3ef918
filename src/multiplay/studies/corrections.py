"""Corrections: the report of a play or an external plan that is replaced or retracted."""

from __future__ import annotations

from typing import Any, NamedTuple

from multiplay._support.hints import Hint, Verb
from multiplay.errors import Conflict, InvalidInput
from multiplay.learner.engine import Losses, is_key
from multiplay.learner.plays import (
    CANCELLED,
    CARRIED_OUT_HINT,
    NOT_TOLD_HINT,
    AnyPlay,
    PendingState,
)
from multiplay.learner.reports import ParsedLosses
from multiplay.policies import Play
from multiplay.storage import Entry, Labels, Record
from multiplay.storage.base import JournalEntries
from multiplay.studies import entry_codec, play_history
from multiplay.studies.entry_codec import LEARN, OF, PART, PARTS, REPORTS, RETRACT, TABLE
from multiplay.studies.imports import table_named
from multiplay.studies.replica import Replica, corrections


class Target(NamedTuple):
    """A play or an external plan, and all entries about it.

    Attributes
    ----------
    journal : JournalEntries
        The journal.
    about : list of Entry
        Its entries in order: those of the play, or the external plan and its corrections.
    """

    journal: JournalEntries
    about: list[Entry]

    @classmethod
    def of(cls, journal: JournalEntries, play: AnyPlay) -> Target:
        """Return the play of an id or a key, or the external plan or table of a key or name."""
        if isinstance(play, str) and is_key(play):
            external = play_history.keyed(journal, (LEARN, TABLE), play)
            external = external or table_named(journal, play)
            if external is not None and not _is_carried_out(journal, play):
                found = corrections(journal, journal.head().number + 1)
                own = [entry for entry in found if entry.record.header[OF] == external.number]
                return cls(journal, [external, *own])
        return cls(journal, play_history.about(journal, play))

    @property
    def id(self) -> int | None:
        """The id of the play; None for an external plan."""
        return self.about[0].labels.play

    @property
    def name(self) -> str:
        """The play or the key of the external plan, for an error."""
        first = self.about[0].labels
        return repr(first.key if first.play is None else first.play)

    def report(self) -> Entry:
        """Return the entry of the report that counts; raise ``Conflict`` if there is none."""
        if self.id is None:
            if self.about[-1].labels.kind == RETRACT:
                hint: str = Hint("Use {} with a new key.", Verb("learn", "plan, losses"))
                raise self._conflict("which was retracted", hint)
            return self.about[0]
        end = play_history.pair_of(self.about)[1]
        status = play_history.status_of(end)
        if status == CANCELLED:
            raise self._conflict("which was cancelled", CARRIED_OUT_HINT)
        if end is None or end.labels.kind == RETRACT:
            raise self._conflict("which is pending", NOT_TOLD_HINT)
        report: Entry = next(e for e in reversed(self.about) if e.labels.kind in REPORTS)
        if report.record.header.get("imported"):
            hint = "Reports from before an import cannot be changed."
            raise self._conflict("which was told before the study was imported", hint)
        return report

    def parts(self, before: int) -> list[int]:
        """Return the numbers of the partial reports of the report with a number."""
        found: list[int] = []
        for entry in self.about:
            if entry.number >= before:
                break
            if entry.labels.kind == PART:
                found.append(entry.number)
            elif entry.labels.kind == RETRACT:
                found = []
        return found

    def retraction(self) -> Record:
        """Return the entry that retracts the report, or the parts of a pending play."""
        parts = self.parts(self.about[-1].number + 1)
        if parts and self.about[-1].labels.kind == PART:
            return Record({OF: parts[-1], PARTS: parts[:-1]}, {})
        report = self.report()
        return Record({OF: report.number, PARTS: self.parts(report.number)}, {})

    def draft(self, losses: Any, ignore: bool) -> Record:
        """Return the fields of a correction that are known before the journal is replayed."""
        report = self.report()
        told = {} if self.id is None else {"told": report.labels.at}
        parts = self.parts(report.number)
        return Record(
            {"losses": losses, "ignore": ignore, OF: report.number, PARTS: parts, **told}, {}
        )

    def correction(self, draft: Record, redone: Record) -> Record:
        """Return the entry of a correction, from the entry of the report in the replay."""
        names = redone.header.keys() & {"seen", "missing", "clipped", "realised", "digests"}
        header = {**draft.header, **{name: redone.header[name] for name in sorted(names)}}
        if "digests" in header:  # a report is recognised if it comes again, the old one too
            before = [
                e.record.header["digests"] for e in self.about if "digests" in e.record.header
            ]
            header["digests"] = (before[-1] if before else "") + header["digests"]
        return Record(header, {})

    def parse(self, replica: Replica, losses: Losses) -> tuple[PendingState, ParsedLosses]:
        """Return the play or plan with the set of its round, and losses of its arms."""
        first = self.about[0]
        if first.labels.kind == TABLE:
            hint = "Retract the table, and learn from the right one with a new key."
            raise InvalidInput("play", "a play or an external plan", "a table", hint)
        play = self._imported(replica) if first.record.header.get("imported") else None
        if play is None:
            round_set, _ = replica.round_set_of(first.record)
            plan, names = first.record.header["plan"], round_set.actions.names
            action = entry_codec.action_of_plan(plan, names)
            play = PendingState(Play(action[None], {}), round_set)
        return play, replica.engine.parse(losses, play)

    def _imported(self, replica: Replica) -> PendingState:
        """Return a play that was pending when the study was imported."""
        self.report()  # raises if it was told before
        assert self.id is not None
        return replica.beginning(self.journal).engine.pending[self.id]

    def is_told(self, losses: Any) -> bool:
        """Return whether the report that counts has these losses, as one report."""
        report, last = self.report(), self.about[-1]
        if last.labels.kind != entry_codec.CORRECT and self.parts(report.number):
            return False
        return bool(last.record.header.get("losses") == losses)

    def check_same(self, known: Entry, losses: Any = None) -> None:
        """Raise ``Conflict`` if the entry of a key corrects another report, or differently."""
        numbers = {entry.number for entry in self.about}
        if known.record.header[OF] not in numbers or known.record.header.get("losses") != losses:
            raise entry_codec.used_before(known, "was used for a different correction")

    def labels(self, kind: str, key: str | None, when: float) -> Labels:
        """Return the labels of a correction."""
        return Labels(kind, key, self.id, when)

    def _conflict(self, what: str, hint: str) -> Conflict:
        return Conflict("play", "a play that was told", f"{self.name}, {what}", hint)


def _is_carried_out(journal: JournalEntries, key: str) -> bool:
    """Return whether there is a play with this key that was not cancelled."""
    id = play_history.id_of(journal, key)
    return id is not None and play_history.status(journal, id) != CANCELLED
