"""The public surfaces say what they said before, and agree on the fields of every result."""

import dataclasses
import json
from functools import cached_property
from typing import Any, NamedTuple

import golden
import pytest
from golden_text import is_like

import multiplay as mp
from multiplay.learner.plays import Untried, WhyRow
from multiplay.savings import Evidence, WeekSavings
from multiplay.service.api.openapi import document
from multiplay.studies.entry_codec import COMPARE, CREATE, IMPORT, KINDS, REQUESTED, WORDS

RENEW = "python tests/support/golden.py --renew"
MOST_SHOWN = 5  # lines that differ


@pytest.mark.parametrize("name", golden.KEPT)
def test_golden(name: str) -> None:
    made = golden.made(name).portable()
    kept = golden.kept(name).read_text("utf-8").splitlines()
    pairs = list(zip(kept, made, strict=False))
    pairs += [(line, "no line") for line in kept[len(made) :]]
    pairs += [("no line", line) for line in made[len(kept) :]]
    differ = [f"kept: {old}\nmade: {new}" for old, new in pairs if not is_like(old, new)]
    shown = "\n".join(differ[:MOST_SHOWN])
    assert not differ, (
        f"{len(differ)} lines of {golden.kept(name).name} differ:\n{shown}\n"
        f"If that is meant, run `{RENEW}`, and read what has changed."
    )


def test_every_kind_of_entry_is_golden() -> None:
    names = [name for name in golden.KEPT if name.startswith("study")]
    lines = [line for name in names for line in golden.kept(name).read_text("utf-8").splitlines()]
    entries = [json.loads(line.removeprefix("entry: ")) for line in lines if line[:6] == "entry:"]
    kinds = {kind for some in KINDS.values() for kind in some}
    assert {entry["kind"] for entry in entries} == kinds | {CREATE, IMPORT, REQUESTED}
    assert kinds >= {WORDS, COMPARE}


# ------------------------------------------------------------ fields of results


class Result(NamedTuple):
    """A result: its class or the columns of its table, its schema, and where commands print it."""

    python: type | tuple[str, ...]
    schema: str
    command: str
    path: tuple[str | int, ...] = ()


ARMS = (
    *("arm", "seen", "mean", "low", "high", "average", "spread", "last_seen", "share"),
    "long_run",
)
DRIFT = ("arm", "since", "before", "after", "units", "sure", "acted", "certain", "date", "arms")
EFFECTS = ("feature", "per", "effect", "low", "high", "changes_plans", "text")
ARM_EFFECTS = ("arm", "effect", "low", "high")
RESULTS = {
    "play": Result(mp.PendingPlay, "Play", "ask"),
    "pending play": Result(mp.PendingPlay, "Play", "pending", (0,)),
    "plan": Result(mp.Plan, "Plan", "best"),
    "estimate": Result(mp.Estimate, "Estimate", "expect", ("expected",)),
    "estimate of a play": Result(mp.Estimate, "Estimate", "ask", ("expected",)),
    "receipt": Result(mp.Receipt, "Receipt", "tell"),
    "receipt of close": Result(mp.Receipt, "Receipt", "close"),
    "receipt of correct": Result(mp.Receipt, "Receipt", "correct"),
    "remaining": Result(mp.Remaining, "Remaining", "forget"),
    "remaining of unforget": Result(mp.Remaining, "Remaining", "unforget"),
    "why": Result(mp.Why, "Why", "why"),
    "row of why": Result(WhyRow, "WhyRow", "why", ("rows", 0)),
    "untried of why": Result(Untried, "Untried", "why", ("untried",)),
    "saved": Result(mp.Savings, "Savings", "savings"),
    "week": Result(WeekSavings, "SavingsWeek", "savings", ("weeks", 0)),
    "evidence": Result(Evidence, "Evidence", "savings", ("rests_on", 0)),
    "promise": Result(mp.PromiseReport, "PromiseReport", "add-constraint"),
    "promise of many": Result(mp.PromiseReport, "PromiseReport", "constraints", (0,)),
    "baseline": Result(mp.BaselineReport, "BaselineReport", "constraints", (0,)),
    "switching cost": Result(mp.SwitchingReport, "SwitchingReport", "add-constraint"),
    "import": Result(mp.Import, "Import", "imports", (0,)),
    "table": Result(mp.TableCheck, "TableCheck", "learn-table", ("check",)),
    "problem": Result(mp.TableProblem, "TableProblem", "learn-table", ("check", "problems", 0)),
    "verified": Result(mp.Verified, "Verified", "verify"),
    "words": Result(mp.Words, "Words", "set"),
    "arms": Result(ARMS, "Arm", "arms", (0,)),
    "drift": Result(DRIFT, "Drift", "drift", (0,)),
    "effects": Result(EFFECTS, "Effect", "effects", ("effects", 0)),
    "effects of arms": Result(ARM_EFFECTS, "ArmEffect", "effects", ("effects", 0)),
}

# Names of fields in Python and in JSON.
SPOKEN = {"Why": {"text"}, "Savings": {"text"}}  # JSON has the text of the object as well
RENAMED = {"by_week": "weeks", "evidence": "rests_on"}
NO_FIELDS = {"sentence", "remarks"}  # properties: parts of the text

ONLY_IN_PYTHON = {
    "table": {"format", "new"},  # how a file was read: the service does not read files
    "problem": {"text"},  # a sentence of the other fields
}


def fields_of(kind: type | tuple[str, ...]) -> set[str]:
    """Return the public fields and properties of a class, by their names in JSON."""
    if isinstance(kind, tuple):
        return set(kind)
    properties = {
        name
        for one in kind.__mro__
        for name, value in vars(one).items()
        if isinstance(value, property | cached_property)
    }
    fields = getattr(kind, "_fields", None)
    if fields is None:
        fields = [one.name for one in dataclasses.fields(kind)]
    public = {name for name in {*fields, *properties} - NO_FIELDS if not name.startswith("_")}
    return {RENAMED.get(name, name) for name in public} | SPOKEN.get(kind.__name__, set())


def printed(result: Result) -> set[str]:
    """Return the names that a command prints: of its answers, the one that has most of them."""
    expected, found = fields_of(result.python), set[str]()
    for label, line in golden.made("commands").all:
        if label != result.command or line["code"]:
            continue
        answer: Any = line["answer"]
        try:
            for step in result.path:
                answer = answer[step]
        except (KeyError, IndexError):
            continue
        names = set(answer or ())  # nothing where a result may be missing
        if len(expected & names) > len(expected & found):
            found = names
    return found


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_has_the_same_fields_in_python_and_in_its_schema(name: str) -> None:
    result = RESULTS[name]
    shown = fields_of(result.python) - ONLY_IN_PYTHON.get(name, set())
    schema = set(document()["components"]["schemas"][result.schema]["properties"])
    assert schema - shown == set()
    assert shown - schema == set()


@pytest.mark.parametrize("name", RESULTS)
def test_a_command_prints_the_fields_of_its_result(name: str) -> None:
    result = RESULTS[name]
    shown = fields_of(result.python) - ONLY_IN_PYTHON.get(name, set())
    found = printed(result)
    receipt_with_check = {"check"} if result.command == "learn-table" else set()
    assert found - shown - receipt_with_check == set()
    assert shown - found == set()


def test_tables_have_the_columns_of_their_results() -> None:
    learner = mp.Learner(mp.Budget(2, [2, 2], names=["air", "sea"]), loss_range=(0, 100))
    assert tuple(learner.arms().columns) == ARMS
    assert tuple(learner.drift().columns) == DRIFT
    features = mp.Features(km=mp.Number(centre=300, scale=100))
    arms = {"km": {"air": 250.0, "sea": 400.0}}
    featured = mp.Learner(
        learner.actions, loss_range=(0, 100), features=features, arm_features=arms
    )
    assert tuple(featured.effects().columns) == EFFECTS
    assert tuple(featured.effects(by="arm").columns) == ARM_EFFECTS
