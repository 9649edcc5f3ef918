"""Command of remarks in the journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from multiplay.storage import Entry, Record
from multiplay.studies import entry_codec
from multiplay.studies.commands.base import STUDIES, Arg, Http, SilentCommand, verb
from multiplay.studies.commands.values import REMARK, remark
from multiplay.studies.turn import Turn

NOTE = "note"  # the kind of its entries
NOTED = Http(
    "POST", "notes", STUDIES, "Note", "A remark for the journal.", {"text": "Strike in Lyon."}
)


@verb("note", NOTED, NOTE)
@dataclass(frozen=True)
class WriteNote(SilentCommand):
    """Keep a remark in the journal, with plays and reports; nothing is learned from it."""

    text: Annotated[str, Arg(REMARK)]

    def do(self, turn: Turn) -> None:
        """Write the remark."""
        turn.write(NOTE, Record({"text": remark("text", self.text)}, {}), key=turn.key)

    def again(self, turn: Turn, known: Entry) -> None:
        """Raise if the key was used for a different remark."""
        if known.record.header["text"] != self.text:
            raise entry_codec.used_before(known, "was used for a different remark")
