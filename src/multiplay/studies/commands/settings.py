"""Commands that set the words of a study, and the rule that its plays are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from multiplay._support.words import given_words
from multiplay.actions import Rule
from multiplay.errors import InvalidInput
from multiplay.learner.engine import Range, check_grows
from multiplay.learner.ranges import GROW, Ranges
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
from multiplay.studies.commands.values import CURRENCY, LOSS_RANGE, RULE, WORD
from multiplay.studies.comparison import checked_rule
from multiplay.studies.entry_codec import COMPARE, RANGE, WORDS
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


@verb(
    "set_range",
    Http(
        "PUT",
        "range",
        STUDIES,
        "SetRange",
        "The least and the largest loss of a unit, or pairs by arm; null for a range that grows.",
        {"loss_range": [0, 500]},
    ),
    RANGE,
)
@dataclass(frozen=True)
class SetRange(SilentCommand):
    """Set the range of losses, with which all reports are learned again; null: it grows."""

    loss_range: Annotated[Range | None, Arg(LOSS_RANGE)]

    def ranges(self, turn: Turn) -> Ranges:
        """Return the ranges, after checking that the policy can learn with others."""
        state = turn.engine.state
        old, outside = state.ranges, state.ranges.outside
        if state.policy.needs_range:
            expected = "a policy whose range of losses may change"
            raise InvalidInput("policy", expected, f"{state.policy!r}", "Begin a new study.")
        if self.loss_range is None:
            return Ranges(old.noun, old.by_name, GROW, state.arms.names)
        outside = "refuse" if outside == GROW else outside
        return Ranges(old.noun, self.loss_range, outside, state.arms.names)

    def do(self, turn: Turn) -> None:
        """Replay the journal with these ranges."""
        ranges = self.ranges(turn)
        check_grows(ranges, turn.engine.state.policy, turn.engine.state.actions)
        turn.set_ranges(ranges, turn.key)

    def again(self, turn: Turn, known: Entry) -> None:
        """Raise if the key was used for a different range."""
        if not entry_codec.ranges_of(known.record.header).same(self.ranges(turn)):
            raise entry_codec.used_before(known, "was used for a different range")


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
