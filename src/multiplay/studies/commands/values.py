"""Kinds of arguments of verbs: as plain data for JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from multiplay._support.checks import check_instance, probability, true_or_false
from multiplay._support.deadline import checked_limit
from multiplay.actions import ActionSet
from multiplay.constraints.constraint import checked_constraint
from multiplay.errors import InvalidInput
from multiplay.learner.engine import checked_missing
from multiplay.learner.plays import PART_HINT, duration_seconds
from multiplay.learner.promises import given_sets
from multiplay.learner.queries import LEVEL as LEVEL_HINT
from multiplay.learner.queries import checked_by
from multiplay.storage.base import LONGEST_NAME
from multiplay.studies import entry_codec, wire
from multiplay.studies.commands.base import Build, Kind
from multiplay.studies.comparison import checked_rule

LEAVE_OUT = "Leave it out."
DRIFT_HINT = "Use 0.05 for a 5 % chance of a false alarm over the life of the learner."


def plain_set(argument: str, actions: Any) -> Any:
    """Return a set as plain data for a request."""
    check_instance(argument, actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
    return wire.request_set(actions)


def plain_table(argument: str, table: Any) -> dict[str, Any]:
    """Return a table of features of arms as plain data: values by feature and arm."""
    plain = wire.plain_features(table, argument) or {}
    for name, values in plain.items():
        if not isinstance(values, dict):
            hint = "Name the arms: values that hold for all arms are given when you ask."
            raise InvalidInput(f"{argument}[{name!r}]", "values by arm", repr(values), hint)
    return plain


def remark(argument: str, text: Any) -> str:
    """Return a remark for the journal, after checking it."""
    is_line = isinstance(text, str) and text.isprintable() and bool(text.strip())
    if not is_line or len(text) > LONGEST_NAME:
        expected = f"a printable text of 1 to {LONGEST_NAME} characters"
        raise InvalidInput(argument, expected, repr(text)[:80], "Write one short sentence.")
    return str(text)


def _as_it_is(argument: str, value: Any) -> Any:
    return value


def _flag(argument: str, value: Any) -> bool:
    return true_or_false(argument, value, PART_HINT if argument == "final" else LEAVE_OUT)


def _seconds(argument: str, value: Any) -> Any:
    checked_limit(value)
    return value


def _round(argument: str, given: Any) -> int | str:
    """Return the number of a round, or a time as text."""
    plain = entry_codec.plain_round(given)
    if plain is None or (isinstance(plain, int) and plain < 0):
        hint = "Use the number of a round, for example 12."
        raise InvalidInput(argument, "a round, or a datetime", repr(given), hint)
    return plain


def zoned_time(argument: str, text: str) -> datetime:
    """Return the time of a text that has a time zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        expected, hint = "a time with a time zone", "Use 2026-11-15T08:00:00Z, or omit it."
        raise InvalidInput(argument, expected, repr(text)[:60], hint)
    return found


def _built_round(argument: str, plain: int | str, build: Build) -> datetime | int:
    return zoned_time(argument, plain) if isinstance(plain, str) else plain


def _constraint(argument: str, given: Any) -> Any:
    return wire.of_constraint(checked_constraint(given, ()))


def _rule(argument: str, rule: Any) -> Any:
    return None if checked_rule(rule) is None else wire.to_plain(argument, rule)


def plain_range(given: Any) -> Any:
    """Return a range of losses as plain data: a pair, or pairs by arm."""
    if isinstance(given, Mapping):
        return {str(name): plain_range(pair) for name, pair in given.items()}
    return [*given] if isinstance(given, tuple) else given


TEXT = Kind("text", _as_it_is)
REMARK = Kind("text", remark)
FLAG = Kind("flag", _flag)
PLAY = Kind("play", _as_it_is)  # part of the path of a request
SET = Kind("set", plain_set, lambda where, plain, build: build.actions(where, plain), True)
SETS = Kind(
    "sets",
    lambda argument, sets: [wire.request_set(one) for one in given_sets(sets)],
    lambda where, plain, build: [
        build.actions(f"{where}[{k}]", one) for k, one in enumerate(plain)
    ],
    True,
)
UNITS = Kind("units", wire.plain_units)
UNITS_BY_ARM = Kind("units by arm", wire.plain_units_by_arm)
ARMS = Kind("arms", wire.plain_arms, lambda where, plain, build: tuple(plain))
ARM = Kind("arm", _as_it_is)
FEATURES = Kind("features", lambda argument, given: wire.plain_features(given, argument))
ARM_TABLE = Kind("features by arm", plain_table)
LOSSES = Kind("losses", lambda argument, losses: wire.plain_losses(losses))
MISSING = Kind("missing", lambda argument, given: checked_missing(given))
TIME_LIMIT = Kind("time limit", _seconds)
AGE = Kind("age", duration_seconds)
ROUND = Kind("round", _round, _built_round)
FIRST_ROUND = Kind("first round", _round, _built_round)
LOSS_RANGE = Kind(
    "loss range", lambda argument, given: plain_range(given), lambda where, plain, build: plain
)
WORD, CURRENCY = Kind("word", _as_it_is), Kind("currency", _as_it_is)
CONSTRAINT = Kind(
    "constraint", _constraint, lambda where, plain, build: build.constraint(where, plain)
)
RULE = Kind("rule", _rule, lambda where, plain, build: build.rule(where, plain))
VERSUS = Kind(
    "versus",
    lambda argument, given: wire.of_versus(given),
    lambda where, plain, build: build.versus(where, plain),
)
LEVEL = Kind("level", lambda argument, level: probability(argument, level, LEVEL_HINT))
DRIFT_LEVEL = Kind("level", lambda argument, level: probability(argument, level, DRIFT_HINT))
EFFECTS_BY = Kind("effects by", lambda argument, by: checked_by(by))
DAY, METHOD = Kind("day", _as_it_is), Kind("method", _as_it_is)
