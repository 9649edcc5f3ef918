"""Commands that set the words of a study, and the rule that its plays are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from multiplay._support.words import given_words
from multiplay.actions import Rule
from multiplay.storage import Entry, Record
from multiplay.studies import entry_codec
from multiplay.studies.commands.base import (
    STUDIES,
    Arg,
    ClientContext,
    Http,
    Plain,
    SilentCommand,
    verb,
)
from multiplay.studies.commands.values import CURRENCY, RULE, WORD
from multiplay.studies.comparison import checked_rule
from multiplay.studies.entry_codec import COMPARE, WORDS
from multiplay.studies.replica import Check, Replica
from multiplay.studies.turn import Turn

EXAMPLE_WORDS = {"currency": "EUR", "unit": "truck", "arm": "lane", "round": "day"}


@verb(
    "set_words",
    Http(
        "PUT",
        "words",
        STUDIES,
        "SetWords",
        "Words to set; the others stay as they are.",
        EXAMPLE_WORDS,
    ),
    WORDS,
)
@dataclass(frozen=True)
class SetWords(SilentCommand):
    """Set the words in which plans and costs are shown; others stay as they are."""

    currency: Annotated[str | None, Arg(CURRENCY, "The unit of costs.")] = None
    unit: Annotated[str | None, Arg(WORD, "A unit of a plan.")] = None
    arm: Annotated[str | None, Arg(WORD, "An arm.")] = None
    round: Annotated[str | None, Arg(WORD, "A round.")] = None

    def given(self) -> dict[str, str]:
        """Return the words that are given."""
        return given_words(**vars(self))

    def plain(self, context: ClientContext) -> Plain:
        """Return the words as plain data."""
        return {**self.given()}

    def do(self, turn: Turn) -> None:
        """Set the words."""
        words = turn.engine.set_words(**self.given())
        turn.write(WORDS, Record({"words": words}, {}), key=turn.key)

    def again(self, turn: Turn, known: Entry) -> None:
        """Raise if the key was used for different words."""
        if known.record.header["words"] != self.given():
            raise entry_codec.used_before(known, "was used for different words")

    @staticmethod
    def replay(replica: Replica, entry: Entry, check: Check) -> Record:
        """Set the words."""
        return Record({"words": replica.engine.set_words(**entry.record.header["words"])}, {})


COMPARED = Http(
    "PUT",
    "versus",
    STUDIES,
    "SetVersus",
    "The rule that plays are compared with; null for none.",
    {"rule": {"type": "InProportion"}},
)


@verb("set_versus", COMPARED, COMPARE)
@dataclass(frozen=True)
class SetVersus(SilentCommand):
    """Set the rule that plays are compared with, which GET returns as `versus`; null for none."""

    rule: Annotated[Rule | None, Arg(RULE)]

    def do(self, turn: Turn) -> None:
        """Keep the rule in the journal, from which it is read."""
        turn.write(COMPARE, entry_codec.compare_record(checked_rule(self.rule)), key=turn.key)

    def again(self, turn: Turn, known: Entry) -> None:
        """Raise if the key was used for a different rule."""
        if entry_codec.rule_of(known.record) != checked_rule(self.rule):
            raise entry_codec.used_before(known, "was used for a different rule")
