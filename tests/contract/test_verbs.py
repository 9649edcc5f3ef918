"""Every verb, once for learners, studies in each store, and studies of a service.

Plans are fixed, or chosen without random numbers, and the usual policy learns without them: so
results, tables and errors of all
owners must be those of a learner.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from inspect import getmembers, isfunction
from typing import Any, NamedTuple

import pandas as pd
import pytest
from owners import Owners, Place, takes

import multiplay as mp
from multiplay.errors import Conflict, InvalidInput, NotFound
from multiplay.studies.entry_codec import REQUESTED
from multiplay.studies.verbs import StudyVerbs

PLANS = mp.Budget(3, [2, 2, 2], names=["air", "sea", "rail"])
EVEN = {"air": 1, "sea": 1, "rail": 1}
MOST_BY_AIR = {"air": 2, "sea": 1, "rail": 0}
LOSSES = {"air": [10.0], "sea": [20.0], "rail": [30.0]}
OTHERS = {"air": [10.0], "sea": [20.0], "rail": [33.0]}
NAN = float("nan")
DAY = 86_400.0
START = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
COSTS = {"air": 80.0, "sea": 20.0, "rail": 45.0}
CO2 = mp.AtMost(90.0, {"*": 2, "air": 5}, plays=9, name="CO2")
FEATURES = mp.Features(km=mp.Number(centre=300, scale=100, unit="km"))
KM = {"km": {"air": 250.0, "sea": 400.0, "rail": 100.0}}
TABLE = {
    "arm": ["air", "air", "sea", "rail"],
    "round": ["2026-01-01", "2026-01-02", "2026-01-02", "2026-01-02"],
    "loss": [15.0, 25.0, 35.0, None],
}
BAD_TABLE = TABLE | {"loss": [15.0, 900.0, 35.0, None]}


def new(owners: Owners, **settings: Any) -> Any:
    return owners.new(PLANS, **({"loss_range": (0, 100)} | settings))


def ask(owner: Any, key: str, day: int, plan: Mapping[str, int] = EVEN) -> Any:
    return owner.ask(key=key, fixed=plan, at=START + day * DAY)


def prepared(owners: Owners) -> Any:
    """Return an owner with a play of each status.

    Those of "a" and "b" are told, "c" and "d" are pending, the first with a part of its losses, and
    "e" is cancelled. The first report of "sea" is forgotten, and there is a promise.
    """
    owner = new(owners)
    ask(owner, "a", 0)
    owner.tell("a", LOSSES, at=START)
    ask(owner, "b", 1, MOST_BY_AIR)
    owner.tell("b", {"air": [40.0, 60.0], "sea": [24.0]}, at=START + DAY)
    ask(owner, "c", 2)
    owner.tell("c", {"air": [12.0]}, final=False, at=START + 2 * DAY)
    ask(owner, "d", 3)
    ask(owner, "e", 4)
    owner.cancel("e")
    owner.forget("sea", before=2, at=START + 5 * DAY)
    owner.add_constraint(CO2)
    return owner


class State(NamedTuple):
    """All that public queries tell, for exact comparison, and a summary that tests can state."""

    summary: dict[str, dict[str, Any]]
    rest: list[Any]


def state(owner: Any) -> State:
    plays, arms = owner.plays(external=True), owner.arms()
    plays["key"] = plays["key"].where(plays["id"] > 0, "external")  # whose keys studies alone have
    reports = owner.constraints()
    versus = getattr(owner, "versus", None)
    pending = [(play.id, play.key, play.plan) for play in owner.pending()]
    summary = {
        "plays": dict(zip(plays["key"], plays["status"], strict=True)),
        "seen": dict(zip(arms["arm"], arms["seen"].tolist(), strict=True)),
        "average": {row.arm: f"{row.average:.6g}" for row in arms.itertuples()},
        "promises": {one.name: one.constraint.limit for one in reports},
        "words": owner.words._asdict(),
        "versus": {} if versus is None else {"rule": versus},
    }
    return State(summary, [plays.to_csv(), arms.to_csv(), pending, reports])


def entries(owner: Any) -> int:
    """Return the number of entries of a study, without those that keep the answer of a request."""
    found = [] if isinstance(owner, mp.Learner) else owner.entries()
    return sum(entry.labels.kind != REQUESTED for entry in found)


# ------------------------------------------------------------ verbs that change the state


@dataclass(frozen=True, eq=False)
class Call:
    """A verb with arguments."""

    verb: str
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def run(self, owner: Any, **more: Any) -> Any:
        return getattr(owner, self.verb)(*self.arguments, **self.options, **more)


def call(verb: str, *arguments: Any, **options: Any) -> Call:
    return Call(verb, arguments, options)


def refused(act: Call, owner: Any, **more: Any) -> tuple[type, str, str]:
    """Return the class, the argument and the given value of the error of a verb."""
    with pytest.raises(InvalidInput) as caught:
        act.run(owner, **more)
    error = caught.value
    assert error.expected
    assert error.hint
    return type(error), error.argument, str(error.got)


def receipt(id: int | None, seen: int, missing: int = 0, **more: Any) -> mp.Receipt:
    return mp.Receipt(id, seen, missing, **({"clipped": 0, "repeated": False} | more))


class Write(NamedTuple):
    """A verb, its result, what changes in the summary of the state, and calls that differ.

    ``at_end`` is what changes in the number of units seen when all pending plays are closed later.
    """

    act: Call
    result: Any
    changes: dict[str, dict[str, Any]]
    others: tuple[Call, ...] = ()
    at_end: dict[str, int] | None = None


LATER = START + 9 * DAY
BEFORE: dict[str, dict[str, Any]] = {
    "plays": {"a": "told", "b": "told", "c": "pending", "d": "pending", "e": "cancelled"},
    "seen": {"air": 3, "sea": 2, "rail": 1},
    "average": {"air": "36.6667", "sea": "24", "rail": "30"},
    "promises": {"CO2": 90},
    "words": {"currency": "", "unit": "unit", "arm": "item", "round": "day"},
    "versus": {},
}
TOLD: dict[str, dict[str, Any]] = {
    "plays": {"d": "told"},
    "seen": {"air": 4, "sea": 3, "rail": 2},
    "average": {"air": "30", "sea": "22"},
}
BY_AIR = mp.AtLeast(4, {"*": 0, "air": 1}, plays=9, name="by air")
WRITES: dict[str, Write] = {
    "tell": Write(
        call("tell", "d", LOSSES, at=LATER),
        receipt(4, 3),
        TOLD,
        (
            call("tell", "d", OTHERS, at=LATER),
            call("tell", "d", LOSSES, final=False, at=LATER),
            call("tell", "c", OTHERS, at=LATER),
        ),
    ),
    "tell totals": Write(
        call("tell", "d", {"air": 10.0, "sea": 20.0, "rail": 30.0}, at=LATER),
        receipt(4, 3),
        TOLD,
        (call("tell", "c", {"air": 10.0, "sea": 20.0, "rail": 30.0}, at=LATER),),
    ),
    "tell a part": Write(
        call("tell", "d", {"sea": [20.0]}, final=False, at=LATER),
        receipt(4, 1, 2, final=False),
        {},
        (call("tell", "d", {"sea": [20.0]}, at=LATER),),
        at_end={"sea": 3},
    ),
    "tell the rest": Write(
        call("tell", "c", {"sea": [35.0]}, missing="ignore", at=LATER),
        receipt(3, 2, 1),
        {
            "plays": {"c": "told"},
            "seen": {"air": 4, "sea": 3},
            "average": {"air": "30.5", "sea": "29.5"},
        },
        (call("tell", "c", {"sea": [35.0]}, final=False, at=LATER),),
    ),
    "close": Write(
        call("close", "c", at=LATER),
        receipt(3, 1, 2),
        {"plays": {"c": "told"}, "seen": {"air": 4}, "average": {"air": "30.5"}},
        (call("close", "d", at=LATER),),
    ),
    "cancel": Write(
        call("cancel", "c"),
        None,
        {"plays": {"c": "cancelled"}},
        (call("cancel", "d"),),
        at_end={"air": 3},
    ),
    "expire": Write(
        call("expire", 5.5 * DAY, at=LATER),
        [3, 4],
        {
            "plays": {"c": "told", "d": "cancelled"},
            "seen": {"air": 4},
            "average": {"air": "30.5"},
        },
    ),
    "expire by a timedelta": Write(
        call("expire", timedelta(days=6.5), at=LATER),
        [3],
        {"plays": {"c": "told"}, "seen": {"air": 4}, "average": {"air": "30.5"}},
    ),
    "correct": Write(
        call("correct", "a", OTHERS, at=LATER),
        receipt(1, 3),
        {"average": {"rail": "33"}},
        (
            call("correct", "a", LOSSES, at=LATER),
            call("correct", "b", {"air": [40.0, 60.0], "sea": [24.0]}, at=LATER),
        ),
    ),
    "retract": Write(
        call("retract", "a", at=LATER),
        None,
        {
            "plays": {"a": "pending"},
            "seen": {"air": 2, "sea": 1, "rail": 0},
            "average": {"air": "50", "rail": "nan"},
        },
        (call("retract", "b", at=LATER),),
    ),
    "retract a part": Write(
        call("retract", "c", at=LATER),
        None,
        {},
        (call("retract", "a", at=LATER),),
        at_end={"air": 3},
    ),
    "learn": Write(
        call("learn", EVEN, OTHERS, at=LATER),
        receipt(None, 3),
        {
            "plays": {"external": "external"},
            "seen": {"air": 4, "sea": 3, "rail": 2},
            "average": {"air": "30", "sea": "22", "rail": "31.5"},
        },
        (
            call("learn", EVEN, LOSSES, at=LATER),
            call("learn", MOST_BY_AIR, {"air": 22.0, "sea": 20.0}, at=LATER),
        ),
    ),
    "learn_table": Write(
        call("learn_table", TABLE),
        receipt(None, 3, 1),
        {
            "plays": {"external": "external"},
            "seen": {"air": 5, "sea": 3},
            "average": {"air": "30", "sea": "29.5"},
        },
        (call("learn_table", TABLE | {"loss": [15.0, 25.0, 36.0, None]}),),
    ),
    "learn_table without bad rows": Write(
        call("learn_table", BAD_TABLE, skip_bad=True),
        receipt(None, 2, 1, skipped=1),
        {
            "plays": {"external": "external"},
            "seen": {"air": 4, "sea": 3},
            "average": {"air": "31.25", "sea": "29.5"},
        },
        (call("learn_table", TABLE),),
    ),
    "set_words": Write(
        call("set_words", mp.Words("EUR", "box")),
        None,
        {"words": {"currency": "EUR", "unit": "box"}},
        (call("set_words", mp.Words("EUR", "truck")),),
    ),
    "set_range": Write(
        call("set_range", (0, 200), at=LATER),
        None,
        {},
        (call("set_range", (0, 300), at=LATER), call("set_range", None, at=LATER)),
    ),
    "set_versus": Write(
        call("set_versus", mp.InProportion()),
        None,
        {"versus": {"rule": mp.InProportion()}},
        (call("set_versus", mp.FixedPlan(EVEN)),),
    ),
    "add_constraint": Write(
        call("add_constraint", BY_AIR),
        None,
        {"promises": {"by air": 4}},
        (call("add_constraint", mp.AtLeast(5, {"*": 0, "air": 1}, plays=9, name="by air")),),
    ),
    "end_constraint": Write(
        call("end_constraint", "CO2"),
        None,
        {"promises": {"CO2": None}},
        (call("end_constraint", "CO"),),
    ),
    "forget": Write(
        call("forget", "air", before=2, at=LATER),
        mp.Remaining(2, 2),
        {"average": {"air": "50"}},
        (
            call("forget", "rail", before=2, at=LATER),
            call("forget", before=2, at=LATER),
            call("forget", "air", before=1, at=LATER),
            call("forget", "air", before=datetime(2026, 3, 2, tzinfo=UTC), at=LATER),
        ),
    ),
    "forget all arms": Write(
        call("forget", before=datetime(2026, 3, 2, tzinfo=UTC), at=LATER),
        mp.Remaining(2, 3),
        {"average": {"air": "50", "rail": "nan"}},
        (call("forget", before=2, at=LATER),),
    ),
    "unforget": Write(
        call("unforget", "sea", at=LATER),
        mp.Remaining(1, 2),
        {"average": {"sea": "22"}},
        (call("unforget", "sea", since=0, at=LATER),),
    ),
    "unforget all arms": Write(
        call("unforget", since=0, at=LATER),
        mp.Remaining(0, 6),
        {"average": {"sea": "22"}},
        (call("unforget", "sea", since=0, at=LATER),),
    ),
}
END = LATER + DAY


def summary_after(changes: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the summary of the state after changes, in which None removes a name."""
    return {
        part: {
            name: value
            for name, value in (old | changes.get(part, {})).items()
            if value is not None
        }
        for part, old in BEFORE.items()
    }


@cache
def of_a_learner(name: str) -> tuple[Any, State]:
    """Return the result of a verb of a learner, and its state after it."""
    owner = prepared(Owners("learner"))
    return WRITES[name].act.run(owner), state(owner)


@pytest.mark.parametrize("name", WRITES)
def test_a_verb_that_changes_the_state(name: str, owners: Owners) -> None:
    """It has its result and its effect, as for a learner, and a key names one request."""
    act, result, changes, others, at_end = WRITES[name]
    owner = prepared(owners)
    if not hasattr(owner, act.verb):
        pytest.skip(f"a {owners.kind} has no {act.verb}")
    has_keys = takes(owner, act.verb, "key")
    key = {"key": "k"} if has_keys else {}
    assert act.run(owner, **key) == result
    after = state(owner)
    assert after.summary == summary_after(changes)
    if has_keys:
        number = entries(owner)
        is_receipt = isinstance(result, mp.Receipt)
        assert act.run(owner, **key) == (result._replace(repeated=True) if is_receipt else result)
        for other in others:
            found = refused(other, owner, **key)
            assert found[:2] == (Conflict, "key")
            assert "'k'" in found[2]
        for bad in ("", "x" * 300):
            assert refused(act, owner, key=bad)[:2] == (InvalidInput, "key")
        assert (state(owner), entries(owner)) == (after, number)
    if owners.kind == "memory":
        assert owner.verify().ok
    if act.verb != "set_versus":
        assert (result, after) == of_a_learner(name)
    if at_end is not None:
        owner.expire(0, at=END)
        assert state(owner).summary["seen"] == BEFORE["seen"] | {"air": 4} | at_end


# ------------------------------------------------------------ invalid arguments

TOO_LARGE = LOSSES | {"air": [101.0]}
TOO_MANY = LOSSES | {"air": [1.0, 2.0]}
OF_AN_UNKNOWN_ARM = LOSSES | {"road": [1.0]}
ON_FRIDAYS = mp.Budget(2, [2, 2], names=["road", "canal"])
OF_AIR, OF_SEA, OF_RAIL = "losses of 'air'", "losses of 'sea'", "losses of 'rail'"
IN_A_CENTURY = datetime(2126, 1, 1, tzinfo=UTC)
Refusal = tuple[Call, type[InvalidInput], str]
REFUSALS: list[Refusal] = [
    (call("ask", fixed={"road": 1}), InvalidInput, "fixed"),
    (call("set_range", (0, 20)), InvalidInput, OF_RAIL),  # of "a", the first that was told
    (call("set_range", (0, 35)), InvalidInput, OF_AIR),  # of "b"
    (call("set_range", (9, 0)), InvalidInput, "loss_range"),
    (call("set_range", {"road": (0, 100), "*": (0, 100)}), InvalidInput, "loss_range"),
    (call("ask", fixed={"air": 9}), InvalidInput, "fixed"),
    (call("ask", fixed={"air": 1.5}), InvalidInput, "fixed['air']"),
    (call("ask", fixed={"air": -1}), InvalidInput, "fixed['air']"),
    (call("ask", at_most={"air": NAN}), InvalidInput, "at_most['air']"),
    (call("ask", at_most={"air": 0, "sea": 0}), InvalidInput, "at_most"),
    (call("ask", exclude=["road"]), InvalidInput, "exclude"),
    (call("ask", exclude="air"), InvalidInput, "exclude"),
    (call("ask", ON_FRIDAYS), InvalidInput, "actions"),
    (call("ask", [1, 2]), InvalidInput, "actions"),
    (call("ask", features={"km": 1.0}), InvalidInput, "features"),
    (call("ask", baseline=EVEN), InvalidInput, "baseline"),
    (call("ask", ahead=[3]), InvalidInput, "ahead[0]"),
    (call("ask", time_limit=-1), InvalidInput, "time_limit"),
    (call("ask", time_limit=NAN), InvalidInput, "time_limit"),
    (call("ask", replace=True), InvalidInput, "replace"),
    (call("ask", key="f", replace="yes"), InvalidInput, "replace"),
    (call("ask", key=""), InvalidInput, "key"),
    (call("ask", key=3), InvalidInput, "key"),
    (call("ask", key="a"), Conflict, "key"),
    (call("ask", key="a", fixed=EVEN, replace=True), Conflict, "key"),
    (call("ask", at=NAN), InvalidInput, "at"),
    (call("ask", at="soon"), InvalidInput, "at"),
    (call("tell", 99, LOSSES), NotFound, "play"),
    (call("tell", "z", LOSSES), NotFound, "play"),
    (call("tell", 1.5, LOSSES), NotFound, "play"),
    (call("tell", None, LOSSES), NotFound, "play"),
    (call("tell", "a", OTHERS), Conflict, "play"),
    (call("tell", "e", LOSSES), Conflict, "play"),
    (call("tell", "d", {"air": [NAN]}), InvalidInput, OF_SEA),
    (call("tell", "d", {"air": [10.0]}), InvalidInput, OF_SEA),
    (call("tell", "d", TOO_LARGE), InvalidInput, OF_AIR),
    (call("tell", "d", TOO_MANY), InvalidInput, OF_AIR),
    (call("tell", "d", OF_AN_UNKNOWN_ARM), InvalidInput, "losses"),
    (call("tell", "d", LOSSES | {"air": ["ten"]}), InvalidInput, OF_AIR),
    (call("tell", "d", LOSSES | {"air": [float("inf")]}), InvalidInput, OF_AIR),
    (call("tell", "d", 60.0), InvalidInput, "losses"),
    (call("tell", "d", "60"), InvalidInput, "losses"),
    (call("tell", "c", LOSSES | {"air": [13.0]}), Conflict, OF_AIR),
    (call("tell", "d", LOSSES, final="no"), InvalidInput, "final"),
    (call("tell", "d", LOSSES, missing="forget"), InvalidInput, "missing"),
    (call("tell", "d", LOSSES, at=NAN), InvalidInput, "at"),
    (call("close", 99), NotFound, "play"),
    (call("close", "a"), Conflict, "play"),
    (call("close", "e"), Conflict, "play"),
    (call("cancel", "z"), NotFound, "play"),
    (call("cancel", "a"), Conflict, "play"),
    (call("cancel", "e"), Conflict, "play"),
    (call("expire", -1), InvalidInput, "older_than"),
    (call("expire", NAN), InvalidInput, "older_than"),
    (call("expire", timedelta(days=-1)), InvalidInput, "older_than"),
    (call("expire", "week"), InvalidInput, "older_than"),
    (call("correct", 99, LOSSES), NotFound, "play"),
    (call("correct", "z", LOSSES), NotFound, "play"),
    (call("correct", "d", LOSSES), Conflict, "play"),
    (call("correct", "e", LOSSES), Conflict, "play"),
    (call("correct", "a", TOO_LARGE), InvalidInput, OF_AIR),
    (call("correct", "a", TOO_MANY), InvalidInput, OF_AIR),
    (call("correct", "a", OF_AN_UNKNOWN_ARM), InvalidInput, "losses"),
    (call("correct", "a", {"air": [10.0]}), InvalidInput, OF_SEA),
    (call("correct", "a", "12"), InvalidInput, "losses"),
    (call("correct", "a", LOSSES, missing="no"), InvalidInput, "missing"),
    (call("retract", 99), NotFound, "play"),
    (call("retract", None), NotFound, "play"),
    (call("retract", "x" * 300), NotFound, "play"),
    (call("retract", "a", at=NAN), InvalidInput, "at"),
    (call("retract", "d"), Conflict, "play"),
    (call("retract", "e"), Conflict, "play"),
    (call("learn", {"road": 1}, {"road": [1.0]}), InvalidInput, "plan"),
    (call("learn", {"air": 1.5, "sea": 1.5}, LOSSES), InvalidInput, "plan['air']"),
    (call("learn", {"air": 3}, {"air": [1.0] * 3}), InvalidInput, "plan"),
    (call("learn", EVEN, {"air": [1.0]}), InvalidInput, OF_SEA),
    (call("learn", EVEN, TOO_LARGE), InvalidInput, OF_AIR),
    (call("learn", EVEN, LOSSES, actions=ON_FRIDAYS), InvalidInput, "actions"),
    (call("learn", EVEN, LOSSES, missing="no"), InvalidInput, "missing"),
    (call("learn", EVEN, LOSSES, features={"km": 1.0}), InvalidInput, "features"),
    (call("learn_table", BAD_TABLE), InvalidInput, "table"),
    (call("learn_table", TABLE, "lane"), InvalidInput, "table"),
    (call("learn_table", TABLE, skip_bad="yes"), InvalidInput, "skip_bad"),
    (call("learn_table", TABLE, day_first="yes"), InvalidInput, "day_first"),
    (call("learn_table", 3), InvalidInput, "table"),
    (call("check_table", TABLE, "lane"), InvalidInput, "table"),
    (call("check_table", TABLE, day_first="yes"), InvalidInput, "day_first"),
    (call("set_arm_features", KM), InvalidInput, "table"),
    (call("set_words", mp.Words(unit="")), InvalidInput, "unit"),
    (call("set_words", arm=3), InvalidInput, "arm"),
    (call("set_words", round="r" * 41), InvalidInput, "round"),
    (call("set_versus", "in proportion"), InvalidInput, "versus"),
    (call("add_constraint", CO2), InvalidInput, "constraints"),
    (call("add_constraint", "CO2"), InvalidInput, "constraints"),
    (call("add_constraint", mp.AtMost(3, {"air": 1}, plays=2)), InvalidInput, "of"),
    (call("end_constraint", "CO"), NotFound, "name"),
    (call("note", " "), InvalidInput, "text"),
    (call("note", 7), InvalidInput, "text"),
    (call("forget", "road", before=1), InvalidInput, "arm"),
    (call("forget", 7, before=1), InvalidInput, "arm"),
    (call("forget", ["air"], before=1), InvalidInput, "arm"),
    (call("forget", before=0), InvalidInput, "before"),
    (call("forget", before=2.0), InvalidInput, "before"),
    (call("forget", before=datetime(2026, 3, 1, 12, tzinfo=UTC)), InvalidInput, "before"),
    (call("forget", before=datetime(2026, 2, 28, tzinfo=UTC)), InvalidInput, "before"),
    (call("forget", before=-3), InvalidInput, "before"),
    (call("forget", before=99), InvalidInput, "before"),
    (call("forget", before=1.5), InvalidInput, "before"),
    (call("forget", before=NAN), InvalidInput, "before"),
    (call("forget", before=True), InvalidInput, "before"),
    (call("forget", before=None), InvalidInput, "before"),
    (call("forget", before="2026-03-01"), InvalidInput, "before"),
    (call("forget", before=IN_A_CENTURY), InvalidInput, "before"),
    (call("unforget"), InvalidInput, "since"),
    (call("unforget", "road"), InvalidInput, "arm"),
    (call("unforget", "air", since=-1), InvalidInput, "since"),
    (call("unforget", "air", since=99), InvalidInput, "since"),
    (call("unforget", "air", since=0.5), InvalidInput, "since"),
    (call("unforget", "air", since=NAN), InvalidInput, "since"),
    (call("unforget", "air", since=IN_A_CENTURY), InvalidInput, "since"),
    (call("best", ON_FRIDAYS), InvalidInput, "actions"),
    (call("best", exclude=["road"]), InvalidInput, "exclude"),
    (call("best", fixed={"air": 1.5}), InvalidInput, "fixed['air']"),
    (call("best", features={"km": 1.0}), InvalidInput, "features"),
    (call("expect", {"air": 9}), InvalidInput, "plan"),
    (call("expect", {"road": 1}), InvalidInput, "plan"),
    (call("expect", EVEN, exclude=["air"]), InvalidInput, "plan['air']"),
    (call("expect", EVEN, level=2), InvalidInput, "level"),
    (call("expect", EVEN, level=NAN), InvalidInput, "level"),
    (call("why", 99), NotFound, "play"),
    (call("why", "z"), NotFound, "play"),
    (call("arms", level=2), InvalidInput, "level"),
    (call("arms", level="much"), InvalidInput, "level"),
    (call("arms", features={"km": 1.0}), InvalidInput, "features"),
    (call("effects"), InvalidInput, "features"),
    (call("drift", level=0), InvalidInput, "level"),
    (call("savings"), InvalidInput, "versus"),
    (call("savings", mp.InProportion()), InvalidInput, "study"),
    (call("savings", "nowhere.csv"), InvalidInput, "versus"),
    (call("savings", {"a": {"air": -1}}), InvalidInput, "versus['a']['air']"),
    (call("savings", mp.InProportion(), level=2), InvalidInput, "level"),
    (call("savings", mp.InProportion(), method="magic"), InvalidInput, "method"),
    (call("savings", mp.InProportion(), since="tomorrow"), InvalidInput, "since"),
    (call("cost_of_learning"), InvalidInput, "study"),
    (call("cost_of_learning", until="2026-02-30"), InvalidInput, "until"),
]


FIXED_AT_2 = {"fixed": {"air": 2}}
REFUSALS += [
    (call(verb, **limits), InvalidInput, argument)
    for verb in ("ask", "best")
    for argument, limits in (
        ("at_most", {"at_most": {"road": 1}}),
        ("at_most", {"at_most": [1, 1, 1]}),
        ("exclude", {"exclude": [0]}),
        ("exclude", {"exclude": 3}),
        ("exclude", {"exclude": ["air", "sea"]}),
        ("fixed['air']", {"fixed": {"air": True}}),
        ("fixed['air']", FIXED_AT_2 | {"at_most": {"air": 1}}),
        ("fixed['air']", FIXED_AT_2 | {"exclude": ["air"]}),
        ("fixed", {"fixed": {"air": 2, "sea": 2}}),
    )
]
REFUSALS += [
    (act, InvalidInput, argument)
    for argument, plan in (
        ("plan", [1, 1]),
        ("plan", [1, 1, 2]),
        ("plan", "everything"),
        ("plan", None),
        ("plan['air']", {"air": -1}),
    )
    for act in (call("learn", plan, LOSSES), call("expect", plan))
]
REFUSALS += [
    (act, InvalidInput, "level")
    for level in (0, 1, -0.5, NAN, "0.95", True)
    for act in (call("arms", level), call("drift", level), call("expect", EVEN, level=level))
]
REFUSALS += [
    (act, InvalidInput, "at")
    for at in ("today", float("inf"), True, [1], 1e300, datetime(9999, 1, 1))
    for act in (call("expire", 1, at=at), call("ask", at=at))
]
REFUSALS += [(call("expire", age), InvalidInput, "older_than") for age in (None, True)]
REFUSALS += [
    (call("ask", key=key), InvalidInput, "key")
    for key in (b"x", True, ["x"], datetime(2026, 11, 15, tzinfo=UTC))
]
REFUSALS += [
    (call(verb, id, *losses), NotFound, "play")
    for id in (None, "1", 1.0, True, -1, [1], 2**80)
    for verb, *losses in (("tell", LOSSES), ("correct", LOSSES), ("close",), ("cancel",))
]


@pytest.fixture(scope="module")
def unchanged(place: Place) -> Iterator[Any]:
    """An owner that no test changes."""
    with place.owners() as owners:
        yield prepared(owners)


@cache
def learner_of_refusals() -> Any:
    return prepared(Owners("learner"))


def named(refusal: Refusal) -> str:
    act = refusal[0]
    given = [*map(str, act.arguments), *(f"{name}={value}" for name, value in act.options.items())]
    return f"{act.verb} {', '.join(given)}"[:60]


@pytest.mark.parametrize("case", REFUSALS, ids=named)
def test_invalid_arguments_are_refused_alike(case: Refusal, unchanged: Any) -> None:
    act, kind, argument = case
    if not hasattr(unchanged, act.verb):
        pytest.skip(f"no {act.verb}")
    *found, got = refused(act, unchanged)
    assert found == [kind, argument]
    if act.verb not in ("set_versus", "savings"):  # of which a learner has none, or no usual rule
        assert got == refused(act, learner_of_refusals())[2]


def test_refusals_change_nothing(unchanged: Any) -> None:
    """No entries are written, and the state of the policy stays the same too."""
    before = entries(unchanged), arrays(unchanged)
    for act, *_ in REFUSALS:
        if hasattr(unchanged, act.verb):
            refused(act, unchanged)
    assert (entries(unchanged), arrays(unchanged)) == before
    assert state(unchanged).summary == BEFORE
    assert state(unchanged) == state(learner_of_refusals())


def arrays(owner: Any) -> dict[str, bytes]:
    """Return the state of the policy of a learner, which studies do not show."""
    found = owner.state if isinstance(owner, mp.Learner) else {}
    return {name: array.tobytes() for name, array in found.items()}


def test_a_policy_that_needs_all_units_cannot_forget(owners: Owners) -> None:
    owner = new(owners, policy=mp.LinTS())
    for act in (call("forget", before=1), call("unforget", "air")):
        assert refused(act, owner)[:2] == (InvalidInput, "policy")


@pytest.mark.parametrize(
    "settings",
    [{"policy": mp.GenLBINFV()}, {"features": FEATURES, "arm_features": KM}],
    ids=["policy", "features"],
)
def test_forget_by_a_replay(settings: dict[str, Any], owners: Owners) -> None:
    """What is believed is as if the units had been missing; ``unforget`` undoes it."""
    tables = []
    for air in ([50.0], [None]):
        owner = new(owners, **settings)
        for day in range(4):
            told = LOSSES | ({"air": air} if day < 2 else {})
            owner.tell(ask(owner, str(day), day).id, told, missing="ignore", at=START + day * DAY)
        before = owner.arms()["mean"].tolist()
        if air == [50.0]:
            assert owner.forget("air", before=3, at=LATER) == mp.Remaining(3, 2)
            tables.append(owner.arms()["mean"].tolist())
            assert tables[-1] != before
            assert owner.unforget("air", since=0, at=LATER) == mp.Remaining(0, 4)
            assert owner.arms()["mean"].tolist() == pytest.approx(before, rel=1e-12)
        else:
            tables.append(before)
    assert tables[0] == pytest.approx(tables[1], rel=1e-12)


# ------------------------------------------------------------ plays


def test_ask(owners: Owners) -> None:
    """A plan is within its limits; a key names one request, also after the plan was told."""
    owner = new(owners)
    play = owner.ask(key="1.3.2026", at_most={"sea": 1}, exclude=["rail"], at=START)
    assert (play.id, play.key, play.plan) == (1, "2026-03-01", MOST_BY_AIR)
    assert play.action.tolist() == [2, 1, 0]
    assert play.expected.total == pytest.approx(150.0)
    assert not play.repeated
    again = owner.ask(key="2026-03-01", at_most={"sea": 1}, exclude=["rail"])
    assert again.repeated
    assert (again.id, again.plan, again.expected) == (play.id, play.plan, play.expected)
    with pytest.raises(Conflict) as caught:
        owner.ask(key="2026-03-01")
    assert caught.value.argument == "key"
    assert [one.id for one in owner.pending()] == [1]
    other = owner.ask(key="2026-03-01", fixed=EVEN, replace=True, at=START)
    assert (other.id, other.plan, other.repeated) == (2, EVEN, False)
    owner.tell("2026-03-01", LOSSES, at=START)
    assert owner.ask(key="2026-03-01", fixed=EVEN).id == 2
    assert owner.plays()["status"].tolist() == ["cancelled", "told"]


def test_ask_on_a_set_of_the_day(owners: Owners) -> None:
    """Arms are matched by name, and new ones are added."""
    owner = new(owners)
    today = mp.Budget(2, [1, 1], names=["road", "sea"])
    play = owner.ask(today, at=START)
    assert play.plan == {"road": 1, "sea": 1}
    owner.tell(play, {"road": [40.0], "sea": [60.0]}, at=START)
    assert owner.arms()["arm"].tolist() == ["air", "sea", "rail", "road"]
    assert owner.arms()["seen"].tolist() == [0, 1, 0, 1]
    assert owner.learn({"road": 1, "sea": 1}, [50.0, 70.0], actions=today, at=START).seen == 2
    assert owner.arms()["average"].tolist()[1::2] == pytest.approx([65.0, 45.0])
    assert owner.best(today).plan == {"road": 1, "sea": 1}
    assert owner.expect({"sea": 1, "road": 1}, actions=today).total > 100


def test_pending(unchanged: Any) -> None:
    assert [(play.id, play.key, play.plan) for play in unchanged.pending()] == [
        (3, "c", EVEN),
        (4, "d", EVEN),
    ]
    assert unchanged.open_plays == 2
    first, second = unchanged.pending()
    assert first.expected == second.expected == unchanged.expect(EVEN)


def test_tell_again(owners: Owners) -> None:
    """The same report changes nothing, whole or in parts, also after a correction."""
    owner = prepared(owners)
    assert owner.tell("a", LOSSES) == receipt(1, 3, repeated=True)
    assert owner.tell("c", {"air": [12.0]}, final=False) == receipt(
        3, 1, 2, repeated=True, final=False
    )
    assert state(owner).summary == BEFORE
    owner.correct("a", OTHERS, at=LATER)
    assert owner.correct("a", OTHERS) == receipt(1, 3, repeated=True)
    assert owner.tell("a", LOSSES).repeated
    assert state(owner).summary == summary_after({"average": {"rail": "33"}})


def test_parts_of_a_report_are_learned_at_once(owners: Owners) -> None:
    owner = prepared(owners)
    part = {"sea": [None], "rail": [31.0]}
    assert owner.tell("c", part, final=False, at=LATER) == receipt(3, 2, 1, final=False)
    assert state(owner).summary == BEFORE
    assert owner.tell("c", {"sea": [21.0]}, at=LATER) == receipt(3, 3)
    told: dict[str, dict[str, Any]] = {
        "plays": {"c": "told"},
        "seen": {"air": 4, "sea": 3, "rail": 2},
        "average": {"air": "30.5", "sea": "22.5", "rail": "30.5"},
    }
    assert state(owner).summary == summary_after(told)


def test_a_retracted_play_can_be_told_or_cancelled(owners: Owners) -> None:
    owner = prepared(owners)
    owner.retract("a", at=LATER)
    assert [play.key for play in owner.pending()] == ["a", "c", "d"]
    assert owner.tell("a", OTHERS, at=START) == receipt(1, 3)
    assert state(owner).summary["seen"] == BEFORE["seen"]
    assert state(owner).summary["average"]["rail"] == "33"
    owner.retract("b", at=LATER)
    owner.cancel("b")
    assert state(owner).summary["plays"] == BEFORE["plays"] | {"b": "cancelled"}
    assert state(owner).summary["average"] == {"air": "10", "sea": "20", "rail": "33"}


def test_external_plans_are_corrected_and_retracted_by_key(owners: Owners) -> None:
    owner = prepared(owners)
    if not takes(owner, "learn", "key"):
        pytest.skip(f"a {owners.kind} has no keys of external plans")
    owner.learn(EVEN, LOSSES, key="plan", at=LATER)
    owner.learn_table(TABLE, key="table")
    assert owner.correct("plan", OTHERS, at=LATER) == receipt(None, 3)
    assert state(owner).summary["average"]["rail"] == "31.5"
    with pytest.raises(InvalidInput) as caught:
        owner.correct("table", LOSSES)
    assert (type(caught.value), caught.value.argument) == (InvalidInput, "play")
    owner.retract("plan", at=LATER)
    owner.retract("table", at=LATER)
    summary = state(owner).summary
    assert {part: summary[part] for part in ("seen", "average")} == {
        part: BEFORE[part] for part in ("seen", "average")
    }
    for key in ("plan", "table"):
        with pytest.raises(Conflict) as conflict:
            owner.retract(key)
        assert conflict.value.argument == "play"


def test_a_key_of_one_verb_is_not_one_of_another(owners: Owners) -> None:
    owner = prepared(owners)
    if not takes(owner, "close", "key"):
        pytest.skip(f"a {owners.kind} has no keys of verbs")
    owner.close("c", key="k", at=LATER)
    owner.cancel("d", key="k")
    forgotten = owner.forget("rail", before=2, key="k", at=LATER)
    kept = owner.unforget("rail", since=0, key="k", at=LATER)
    owner.learn(EVEN, LOSSES, key="k", at=LATER)
    assert owner.forget("rail", before=2, key="k") == forgotten == mp.Remaining(2, 0)
    assert owner.unforget("rail", since=0, key="k") == kept == mp.Remaining(0, 1)
    owner.set_words(mp.Words(unit="box"), key="k")
    owner.end_constraint("CO2", key="k")
    assert owner.expire(0, key="k", at=END) == []
    ask(owner, "k", 9)
    assert owner.expire(0, key="k", at=END) == [], "the plays of the first time"
    assert [play.key for play in owner.pending()] == ["k"]


# ------------------------------------------------------------ features


def featured(owners: Owners) -> Any:
    """Return an owner with features, two external plans and a pending play."""
    owner = new(owners, features=FEATURES)
    owner.set_arm_features(KM)
    owner.learn({"air": 1, "sea": 2}, {"air": 25.0, "sea": [40.0, 42.0]}, at=START)
    owner.learn(EVEN, {"air": 20.0, "sea": 44.0, "rail": 11.0}, features={"km": 150.0}, at=START)
    owner.ask(key="a", fixed=EVEN, features={"km": {"air": 300.0}}, at=START)
    return owner


def beliefs(owner: Any) -> list[Any]:
    best = owner.best(features={"km": 200.0})
    frames = [owner.effects(), owner.effects(by="arm", level=0.5), owner.arms()]
    frames.append(owner.arms(features={"km": 200.0}, level=0.8))
    texts = [frame.to_csv() for frame in frames]
    return [*texts, best.plan, best.expected, owner.expect(EVEN, features={"km": 120.0})]


@cache
def beliefs_of_a_learner() -> list[Any]:
    return beliefs(featured(Owners("learner")))


def test_describe_and_effects(owners: Owners) -> None:
    owner = featured(owners)
    effects = owner.effects()
    assert effects["feature"].tolist() == ["1", "km"]
    assert effects["per"].tolist() == ["1", "100 km"]
    assert (effects["low"] < effects["effect"]).all()
    assert (effects["effect"] < effects["high"]).all()
    assert owner.effects(by="arm")["arm"].tolist() == list(PLANS.names)
    assert beliefs(owner) == beliefs_of_a_learner()
    before = owner.arms()["mean"].tolist()
    key = {"key": "k"} if takes(owner, "set_arm_features", "key") else {}
    far = {"km": {"rail": 900.0}}
    owner.set_arm_features(far, **key)
    number = entries(owner)
    if key:
        owner.set_arm_features(far, **key)
    after = owner.arms()["mean"].tolist()
    assert after[:2] == before[:2]
    assert after[2] > before[2]
    if key:
        other = call("set_arm_features", {"km": {"rail": 901.0}})
        assert refused(other, owner, **key)[:2] == (Conflict, "key")
    for table, argument in (
        ({"km": {"air": NAN}}, "table['km']['air']"),
        ({"km": {"air": float("inf")}}, "table['km']['air']"),
        ({"mass": {"air": 1.0}}, "table"),
        (3, "table"),
    ):
        assert refused(call("set_arm_features", table), owner)[:2] == (InvalidInput, argument)
    for act, argument in (
        (call("ask", features={"kilo": 1.0}), "features"),
        (call("effects", by="round"), "by"),
        (call("effects", level=NAN), "level"),
        (call("arms", features={"kilo": 1.0}), "features"),
    ):
        assert refused(act, owner)[:2] == (InvalidInput, argument)
    assert (owner.arms()["mean"].tolist(), entries(owner)) == (after, number)
    if key:
        near, far_away = (
            call("learn", EVEN, [20.0, 44.0, 11.0], features={"km": km}, at=LATER)
            for km in (150.0, 151.0)
        )
        assert near.run(owner, **key) == receipt(None, 3)
        assert near.run(owner, **key) == receipt(None, 3, repeated=True)
        assert refused(far_away, owner, **key)[:2] == (Conflict, "key")


# ------------------------------------------------------------ queries

QUERIES: dict[str, Call] = {
    "best": call("best"),
    "best without an arm": call("best", exclude=["rail"]),
    "best of at most": call("best", at_most={"sea": 1}, fixed={"air": 1}),
    "expect": call("expect", MOST_BY_AIR),
    "expect a list": call("expect", [0, 1, 2], level=0.5),
    "why": call("why", "c"),
    "arms": call("arms"),
    "arms at a level": call("arms", 0.5),
    "drift": call("drift"),
    "check_table": call("check_table", TABLE),
    "check_table with problems": call("check_table", BAD_TABLE),
    "constraints": call("constraints"),
    "imports": call("imports"),
}


def answer(act: Call, owner: Any) -> Any:
    result = act.run(owner)
    if isinstance(result, pd.DataFrame):
        return result.to_csv()
    return (result.plan, result.expected) if isinstance(result, mp.Plan) else result


@pytest.mark.parametrize("name", QUERIES)
def test_queries_are_those_of_a_learner(name: str, unchanged: Any) -> None:
    assert answer(QUERIES[name], unchanged) == answer(QUERIES[name], learner_of_refusals())


def test_every_verb_is_here() -> None:
    """With its result or with arguments that are refused."""
    found = {name for name, verb in getmembers(StudyVerbs, isfunction) if name[0] != "_"}
    acts = [write.act for write in WRITES.values()] + [*QUERIES.values()]
    acts += [act for act, *_ in REFUSALS]
    assert {act.verb for act in acts} == found - {"do", "read"}


def test_best_and_expect(unchanged: Any) -> None:
    """Sea and rail cost less than air; limits hold; a plan of more units by air costs more."""
    best = unchanged.best()
    assert best.plan == {"air": 0, "sea": 2, "rail": 1}
    assert best.expected == unchanged.expect(best.plan)
    assert unchanged.best(exclude=["sea"]).plan == {"air": 1, "sea": 0, "rail": 2}
    assert unchanged.best(at_most={"sea": 1}, fixed={"air": 1}).plan == EVEN
    narrow, wide = (unchanged.expect(EVEN, level=level) for level in (0.5, 0.95))
    assert narrow.total == wide.total
    assert wide.low < narrow.low < wide.total < narrow.high < wide.high
    assert unchanged.expect(MOST_BY_AIR).total > wide.total > best.expected.total


def test_arms(unchanged: Any) -> None:
    arms, narrow = unchanged.arms(), unchanged.arms(level=0.5)
    assert arms["arm"].tolist() == list(PLANS.names)
    assert arms["share"].tolist() == [1.0, 1.0, 0.5]
    days = [pd.Timestamp(START + day * DAY, unit="s", tz="UTC") for day in (1, 1, 0)]
    assert arms["last_seen"].tolist() == days
    assert (arms["low"] <= narrow["low"]).all()
    assert (narrow["low"] < arms["mean"]).all()
    assert (arms["mean"] < narrow["high"]).all()
    assert (narrow["high"] < arms["high"]).all()


def test_why(owners: Owners) -> None:
    """The play has units of an arm that was never seen, instead of the best plan."""
    found = []
    for one in (owners, Owners("learner")):
        owner = new(one, policy=mp.CombUCB(), words=mp.Words(currency="EUR"))
        for day in range(4):
            losses = {"air": [10.0, 12.0], "sea": [30.0]}
            owner.learn(MOST_BY_AIR, losses, at=START + day * DAY)
        assert owner.words == mp.Words("EUR", "unit", "item", "day")
        play = owner.ask(key="a", at=LATER)
        why = owner.why("a")
        assert why == play.why() == owner.pending()[0].why() == owner.why(1)
        assert [(row.arm, row.units, row.best_units, row.seen, row.reason) for row in why.rows] == [
            ("air", 1, 2, 8, "instead"),
            ("rail", 2, 1, 0, "to learn"),
        ]
        assert why.explores
        assert why.expected == owner.expect(play.plan)
        assert why.best == owner.best().expected
        assert why.extra == pytest.approx(why.expected.total - why.best.total)
        owner.tell("a", {"air": [90.0], "rail": [1.0, 2.0]}, at=LATER + DAY)
        then = owner.why("a")
        assert replace(then, asked=None) == why, "by the beliefs before it was told"
        assert then.asked == LATER
        assert str(then).startswith("By what was known when it was asked for, 2026-")
        found += [why, then]
    assert found[:2] == found[2:]


def test_check_table(unchanged: Any) -> None:
    check = unchanged.check_table(TABLE)
    assert (check.rows, check.rounds, check.arms, check.total) == (4, 2, PLANS.names, 75.0)
    assert not check.problems
    (problem,) = unchanged.check_table(BAD_TABLE).problems
    assert (problem.row, problem.column) == (1, "loss")


def used(owner: Any) -> list[float]:
    return [one.used for one in owner.constraints()]


def test_promises(owners: Owners) -> None:
    """Plays count as planned, what was not used does not count, and cancelled plays neither."""
    owner = new(owners, constraints=[CO2, BY_AIR])
    ask(owner, "a", 0, MOST_BY_AIR)
    ask(owner, "b", 1)
    assert used(owner) == [12.0 + 9.0, 3.0]
    assert [one.left_plays for one in owner.constraints()] == [7, 7]
    owner.tell("a", {"air": [10.0], "sea": [20.0]}, missing="ignore", at=START)
    assert used(owner) == [7.0 + 9.0, 2.0]
    owner.cancel("b")
    assert used(owner) == [7.0, 1.0]
    owner.learn(EVEN, LOSSES, at=START)
    reports = owner.constraints()
    assert [(row.name, row.constraint.kind, row.used, row.external) for row in reports] == [
        ("CO2", "at most", 16.0, 9.0),
        ("by air", "at least", 2.0, 1.0),
    ]
    owner.end_constraint("CO2")
    assert [row.name for row in owner.constraints()] == ["by air"]


def test_allowance(owners: Owners) -> None:
    found = []
    for one in (owners, Owners("learner")):
        rule = mp.FixedPlan(MOST_BY_AIR)
        owner = new(one, policy=mp.CombUCB(), constraints=[mp.Baseline(rule, 0.1)])
        plans = []
        for day in range(3):
            play = owner.ask(at=START + day * DAY)
            plans.append(play.plan)
            losses = {arm: [COSTS[arm]] * units for arm, units in play.plan.items()}
            owner.tell(play, losses, at=START + day * DAY)
        assert plans == [MOST_BY_AIR, MOST_BY_AIR, {"air": 1, "sea": 2, "rail": 0}]
        found += owner.constraints()
    assert found[0] == found[1]
    assert (found[0].days, found[0].restricted) == (3, 2)
    assert found[0].spent == pytest.approx(-290 / 7)
    assert found[0].left == pytest.approx(653 / 7)


# ------------------------------------------------------------ savings and changes

DAYS = 12


def with_history(owners: Owners) -> Any:
    """Return an owner that was told twelve plays, chosen without random numbers.

    Logged data shows that rail has become dearer.
    """
    owner = new(owners, policy=mp.CombUCB())
    for day in range(DAYS):
        play = owner.ask(key=f"2026-03-{day + 1:02}", at=START + day * DAY)
        losses = {arm: [COSTS[arm] + day % 3] * units for arm, units in play.plan.items()}
        owner.tell(play, losses, at=START + day * DAY)
    days = [f"2026-04-{day + 1:02}" for day in range(30)]
    logged = [20.0 + day % 3 if day < 15 else 90.0 - day % 3 for day in range(30)]
    owner.learn_table({"arm": ["rail"] * 30, "round": days, "loss": logged})
    return owner


@pytest.fixture(scope="module")
def history(place: Place) -> Iterator[Any]:
    """An owner with a history, which no test changes."""
    with place.owners() as owners:
        yield with_history(owners)


@cache
def history_of_a_learner() -> Any:
    return with_history(Owners("learner"))


HISTORIC: dict[str, Call] = {
    "savings": call("savings", mp.InProportion()),
    "saved in a period": call("savings", mp.InProportion(), since="2026-03-02", until="2026-03-11"),
    "saved against plans by key": call(
        "savings", {f"2026-03-{day + 1:02}": MOST_BY_AIR for day in range(DAYS)}, level=0.5
    ),
    "cost_of_learning": call("cost_of_learning"),
    "cost_of_learning in a period": call("cost_of_learning", since="2026-03-02", level=0.9),
    "drift": call("drift"),
    "arms": call("arms"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow) if " " in one else one for one in HISTORIC]
)
def test_savings_and_changes_are_those_of_a_learner(name: str, history: Any) -> None:
    found, expected = (answer(HISTORIC[name], one) for one in (history, history_of_a_learner()))
    if isinstance(found, mp.Savings):
        found, expected = replace(found, entry=None), replace(expected, entry=None)
    assert found == expected


def test_saved(history: Any) -> None:
    saved = history.savings(mp.InProportion())
    assert saved.days == DAYS
    assert saved.low <= saved.total <= saved.high
    assert saved.total > 0
    assert history.savings(mp.InProportion(), since="2026-03-02", until="2026-03-11").days == 10
    plans = {f"2026-03-{day + 1:02}": MOST_BY_AIR for day in range(DAYS)}
    assert history.savings(plans).total > saved.total
    learning = history.cost_of_learning()
    assert learning.days == DAYS
    assert learning.total > 0


def test_drift(history: Any, unchanged: Any) -> None:
    (row,) = history.drift().itertuples()
    assert (row.arm, row.units) == ("rail", 15)
    assert row.after == pytest.approx(89.0, abs=1)
    assert row.before < row.after
    assert unchanged.drift().empty


def test_a_switching_cost_and_a_baseline_at_any_time(owners: Owners) -> None:
    """They begin after the last plan, and count the plays from then on; so does a correction."""
    found = []
    for one in (owners, Owners("learner")):
        owner = new(one, policy=mp.GenCTS())
        ask(owner, "a", 0)
        ask(owner, "b", 1, MOST_BY_AIR)
        owner.cancel("b")
        owner.add_constraint(mp.SwitchingCost(50.0))
        owner.add_constraint(mp.Baseline(mp.FixedPlan(EVEN, nearest=True), 0.1))
        with pytest.raises(InvalidInput) as error:
            owner.add_constraint(mp.SwitchingCost(3.0))
        assert (error.value.argument, "switching cost" in error.value.hint) == ("constraints", True)
        assert owner.ask(key="c", at=START + 2 * DAY).plan == EVEN  # the last plan is that of "a"
        ask(owner, "d", 3, MOST_BY_AIR)
        ask(owner, "e", 4)
        baseline, switching = owner.constraints()
        assert (baseline.days, switching.changed, switching.spent) == (3, 4, 200.0)
        owner.cancel("e")
        assert owner.constraints()[1].changed == 2
        owner.tell("a", LOSSES, at=START)
        owner.correct("a", {arm: [2 * x for x in xs] for arm, xs in LOSSES.items()}, at=LATER)
        assert [
            row.days if row.name == "baseline" else row.changed for row in owner.constraints()
        ] == [2, 2]
        found.append([owner.constraints(), owner.constrained_by])
        owner.end_constraint("baseline")
        owner.end_constraint("switching cost")
        owner.cancel("d")  # which no constraint counts any more
        owner.add_constraint(mp.Baseline(mp.FixedPlan(EVEN, nearest=True), 0.2))
        (fresh,) = owner.constraints()
        assert (fresh.days, fresh.spent, fresh.constraint.allowance) == (0, 0.0, 0.2)
        found[-1].append(fresh)
    assert found[0] == found[1]
