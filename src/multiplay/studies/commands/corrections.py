"""Commands that correct or retract reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from multiplay.learner.engine import Losses
from multiplay.learner.plays import AnyPlay, Receipt
from multiplay.storage import Entry
from multiplay.studies import entry_codec
from multiplay.studies.commands.base import (
    OF_PLAY,
    PLAYS,
    Arg,
    Http,
    ReportCommand,
    SilentCommand,
    verb,
)
from multiplay.studies.commands.plays import ENDED, EXAMPLE_LOSSES
from multiplay.studies.commands.values import LOSSES, MISSING, PLAY
from multiplay.studies.corrections import Target
from multiplay.studies.entry_codec import CORRECT, OF, RETRACT
from multiplay.studies.turn import Turn


@verb(
    "correct",
    Http(
        "POST",
        OF_PLAY + "correct",
        PLAYS,
        "Correct",
        "The right losses of a play that was told.",
        {"losses": EXAMPLE_LOSSES, "key": "correction-2026-11-15"},
    ),
    CORRECT,
)
@dataclass(frozen=True)
class Correct(ReportCommand):
    """Replace the losses of a play, or of the external plan with this key, by the right ones."""

    play: Annotated[AnyPlay, Arg(PLAY)]
    losses: Annotated[
        Losses,
        Arg(
            LOSSES,
            "All losses of the play, by arm as in a report; they replace those told before.",
        ),
    ]
    missing: Annotated[str | None, Arg(MISSING)] = None

    def do(self, turn: Turn) -> Receipt:
        """Replay the journal with these losses in place of those that were told."""
        return self._corrected(turn, None)

    def again(self, turn: Turn, known: Entry) -> Receipt:
        """Return the receipt of the correction; raise if it was a different one."""
        return self._corrected(turn, known)

    def _corrected(self, turn: Turn, known: Entry | None) -> Receipt:
        engine, target = turn.engine, Target.of(turn.journal, self.play)
        if known is None:
            target.report()  # raises if there is none that counts
        ignore = engine.ignores(self.missing)
        reported, parsed = target.parse(turn.replica, self.losses)
        told = entry_codec.losses_by_arm(parsed, reported.round_set.actions.names)
        if known is not None:
            target.check_same(known, told)
            return entry_codec.repeated_receipt(known, turn.request)
        if target.is_told(told):
            return entry_codec.receipt_of(target.about[-1], True)
        engine.check_report(target.id, reported, parsed, ignore)
        draft, labels = target.draft(told, ignore), target.labels(CORRECT, turn.key, turn.when)
        new = turn.corrected(draft, labels)
        record = target.correction(draft, new.redone[draft.header[OF]])
        turn.write(CORRECT, record, target.id, key=turn.key)
        return entry_codec.receipt_of(Entry(new.number, labels, record, new.digest), False)


@verb("retract", Http("POST", OF_PLAY + "retract", PLAYS, *ENDED, optional=True), RETRACT)
@dataclass(frozen=True)
class Retract(SilentCommand):
    """Withdraw the losses of a play, which is then pending again, or of an external plan."""

    play: Annotated[AnyPlay, Arg(PLAY)]

    def do(self, turn: Turn) -> None:
        """Replay the journal without the losses."""
        target = Target.of(turn.journal, self.play)
        record = target.retraction()
        turn.corrected(record, target.labels(RETRACT, turn.key, turn.when))
        turn.write(RETRACT, record, target.id, key=turn.key)

    def again(self, turn: Turn, known: Entry) -> None:
        """Raise if the key was used for another report."""
        Target.of(turn.journal, self.play).check_same(known)
