"""State machine of random requests to a study, compared with the model after each request."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

import numpy as np
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)
from study_model import Day, Model, Play, Refused, StudyTerms

from multiplay import Learner, Reports, SwitchingCost, Words
from multiplay.actions import FixedPlan, InProportion, PriceList, Rule
from multiplay.constraints import AtLeast, AtMost
from multiplay.errors import InvalidInput
from multiplay.policies import Policy
from multiplay.storage.memory import MemoryStore
from multiplay.studies import Study

USUAL = Day({"A": 3, "B": 2}, {"x": 2, "y": 3})
DAYS = [  # the usual set, an equal set; different supplies, order and arms
    USUAL,
    Day({"A": 3, "B": 2}, {"x": 2, "y": 3}),
    Day({"A": 1, "B": 3}, {"x": 2, "y": 2}),
    Day({"B": 2, "A": 2}, {"y": 3, "x": 1}),
    Day({"A": 2}, {"x": 1, "y": 1}),
    Day({"B": 1, "C": 3}, {"x": 2, "z": 2}),
    Day({"A": 2, "C": 2}, {"y": 1, "z": 3}),
]
PHASES = [Phase.generate, Phase.shrink]  # failing examples are shortened
RANGES = [(0.0, 1.0), (0.0, 250.0), (50.0, 250.0)]
CHANGES = [None, None, 0.25, 15.0]  # what a changed unit costs
HOUR, LEVELS, FRESH = 3600.0, 8, 9
UNKNOWN, TOO_MANY = 10**6, 99  # the id of no play, more units than a lane allows
OFTEN = [
    *["ask", "ask_today", "ask_and_tell", "repeat"] * 3,
    *["tell"] * 6,
    *["ask_limited", "tell_again", "end", "learn", "open_again", "correct", "ask_ahead"] * 2,
    *["add_constraint", "end_constraint", "ask_instead"],
    *["expire", "learn_table", "set_words", "set_versus", "invalid", "retract"],
]
STYLES = ["whole", "whole", "gaps", "arms", "short", "totals", "round", "other"]

RULES: list[Rule | None] = [
    InProportion(),
    FixedPlan({"A->x": 2, "B->y": 2, "A->y": 1}, nearest=True),
    PriceList({f"{x}->{y}": float(ord(x) * ord(y)) for x in "ABC" for y in "xyz"}),
    None,
]

# More plays than a study has: no warning. Plays are on 1970-01-01.
CONSTRAINTS = [
    AtMost(40, {"*": 1, "A->x": 3}, plays=60, name="CO2"),
    AtMost(9, {"*": 2, "B->y": 0.5}, plays=60, name="CO2", hard=False, until="1970-01-01"),
    AtLeast(20, {"*": 0, "A->y": 1}, plays=60, name="contract", until="1970-01-02"),
    AtLeast(5, {"*": 0.25}, plays=60, name="over", hard=False, until="1969-12-31"),
    SwitchingCost(0.25),
    SwitchingCost(15.0),
]

DAY, PICK = st.sampled_from(DAYS), st.integers(0, 5)
KEY = st.sampled_from([*[None] * 5, "a", "b", "c", "ü 中 'x'; --", "k" * 200])
TIME = st.integers(0, 20).map(lambda hours: HOUR * hours)
AGAIN = st.sampled_from([None, None, "skip", "add", "refuse"])
MISSING = st.sampled_from([None, "ignore", "refuse"])
ROWS = st.lists(st.tuples(st.integers(0, 2), PICK, st.integers(0, LEVELS)), min_size=1, max_size=8)


class Studies(Protocol):
    """The operations on studies that ``check_study`` needs."""

    @property
    def create(self) -> Callable[..., Any]:
        """The function ``create(name, actions, policy, **settings)``, which creates a study."""

    def open(self, name: str) -> Any:
        """Open a study."""

    def names(self) -> list[str]:
        """Return the names of all studies."""

    def delete(self, name: str) -> None:
        """Remove a study."""


class Request(NamedTuple):
    """A request to a study: shown in errors, and repeated for other handles."""

    verb: str
    args: tuple[Any, ...]
    options: dict[str, Any]

    @classmethod
    def made(cls, verb: str, args: tuple[Any, ...], options: dict[str, Any]) -> Request:
        """Return a request; options that are None are left out."""
        return cls(verb, args, {k: value for k, value in options.items() if value is not None})

    def __str__(self) -> str:
        named = [f"{name}={value!r}" for name, value in self.options.items()]
        return f"{self.verb}({', '.join([*map(repr, self.args), *named])})"

    def of(self, study: Any) -> Any:
        """Send the request; return the answer as plain data, or "refused"."""
        try:
            return plain(getattr(study, self.verb)(*self.args, **self.options))
        except InvalidInput:
            return "refused"


INVALID = [
    Request("ask", (), {"key": ""}),
    Request("ask", (), {"key": "k" * 201}),
    Request("ask", (), {"at": math.inf}),
    Request("ask", ("plans",), {}),
    Request("ask", (), {"exclude": ["nowhere"]}),
    Request("ask", (), {"ahead": "tomorrow"}),
    Request("tell", (UNKNOWN, {}), {}),
    Request("tell", ("one", {}), {}),
    Request("tell", (-1, {}), {"key": "a"}),
    Request("close", (0,), {}),
    Request("cancel", (None,), {}),
    Request("correct", (UNKNOWN, {}), {}),
    Request("retract", ("nowhere",), {}),
    Request("expire", (-HOUR,), {}),
    Request("learn", ({"nowhere": 1}, {"nowhere": [0.5]}), {}),
    Request("learn", ({"A->x": 9}, {"A->x": [0.5] * 9}), {}),
    Request("learn_table", ({"round": [1], "arm": [None], "loss": [0.5]},), {}),
    Request("set_words", (Words(unit=""),), {}),
    Request("set_words", (7,), {"key": "a"}),
    Request("why", (UNKNOWN,), {}),
    Request("set_versus", (7,), {"key": "a"}),
    Request("savings", (7,), {}),
    Request("savings", ({"a": {"nowhere": 1}},), {}),
    Request("savings", (InProportion(),), {"since": "1971-01-01"}),
    Request("cost_of_learning", (), {"level": 2.0}),
    Request("add_constraint", ("CO2",), {"key": "a"}),
    Request("add_constraint", (AtMost(3, {"nowhere": 1}, plays=2),), {}),
    Request("end_constraint", ("nowhere",), {"key": "a"}),
    Request("end_constraint", (7,), {}),
]


def plain(answer: Any) -> Any:
    """Return an answer as plain data, for exact comparison."""
    if hasattr(answer, "plan"):
        promised = getattr(answer, "prices", {}), getattr(answer, "held", False)
        change_cost = getattr(answer, "change_cost", 0.0)
        # as text, so that NaN equals NaN
        numbers = map(repr, (*answer.expected, *promised, change_cost))
        return *shown(answer), tuple(numbers)
    return answer if answer is None or isinstance(answer, list) else tuple(answer)


def shown(play: Any) -> tuple[Any, ...]:
    """Return a play without its expected cost, which changes with each report."""
    of_play = (play.id, play.key) if hasattr(play, "id") else ()
    return *of_play, dict(play.plan), play.action.tolist()


class View(NamedTuple):
    """The tables and counts of a handle."""

    plays: Any
    arms: Any
    pending: Any
    counts: tuple[int, int]
    words: Words
    versus: Rule | None
    constraints: list[Any]

    @classmethod
    def of(cls, study: Any) -> View:
        """Return the view of a study."""
        pending = [shown(play) for play in study.pending()]
        counts, words = (study.asked, study.clipped), study.words
        rest = study.versus, study.constraints()
        return cls(study.plays(), study.arms(), pending, counts, words, *rest)

    def same(self, other: View) -> bool:
        """Return whether two views are equal bit for bit."""
        tables = self.plays.equals(other.plays) and self.arms.equals(other.arms)
        return tables and self[2:] == other[2:]


def beliefs(study: Any) -> list[Any]:
    """Return the best plan, the drift, the savings and the expected costs of a study, as text."""
    found = [Request("best", (), {}).of(study), study.drift().to_csv()]
    found += [savings(study.cost_of_learning), savings(study.savings)]
    found += [why(play) for play in study.pending()]
    return [*found, [plain(play)[4] for play in study.pending()]]


def why(play: Any) -> Any:
    """Return the explanation of a play as text; refused where the cost of plans is not known."""
    try:
        return repr(play.why())
    except InvalidInput:
        return "refused"


def savings(verb: Callable[[], Any]) -> str:
    """Return savings as text, or why they are refused, for example if too few plays were told.

    The number of the last entry is left out: one process writes fewer results of requests.
    """
    try:
        return repr(replace(verb(), entry=None))
    except InvalidInput as refused:
        return f"{refused}"


class StudyMachine(RuleBasedStateMachine):
    """One study of one store; all requests go through ``_do``."""

    studies: Studies
    policy: Policy

    @initialize(
        range=st.sampled_from(RANGES),
        clip=st.booleans(),
        ignore=st.booleans(),
        varying_set=st.booleans(),
        change=st.sampled_from(CHANGES),
        seed=st.integers(0, 3),
    )
    def begin(
        self,
        range: tuple[float, float],
        clip: bool,
        ignore: bool,
        varying_set: bool,
        change: float | None,
        seed: int,
    ) -> None:
        """Create the study, and open it twice."""
        policy, self.name = self.policy, f"check_study {uuid4()}"
        self.settings: dict[str, Any] = {
            "seed": seed,
            "loss_range": range,
            "reports": Reports(
                "clip" if clip else "refuse",
                "ignore" if ignore and policy.partial else "refuse",
            ),
            "varying_set": varying_set and policy.changing,
        }
        ignore, indexed = self.settings["reports"].missing == "ignore", has_index(policy)
        if change is not None and indexed:
            self.settings["constraints"] = [SwitchingCost(change)]
        promises, cost = kinds_of_promises(policy), change if indexed else None
        terms = StudyTerms.of(policy, *range, clip, ignore, promises, indexed, cost)
        self.model = Model(USUAL, terms)
        self.requests: list[tuple[Request, Callable[[], Any], Any, bool]] = []
        made = self.studies.create(self.name, USUAL.actions(), policy, **self.settings)
        self.handles = [made, *(self.studies.open(self.name) for _ in "12")]
        assert self.name in self.studies.names(), "a study must be listed"
        self.view: View | None = None  # the view of all handles; None after a change
        self.sound = True

    @rule(verb=st.sampled_from(OFTEN), which=st.integers(0, 2), data=st.data())
    def use(self, verb: str, which: int, data: st.DataObject) -> None:
        """Send a request through one of the handles.

        One rule draws the kind of request. With several rules, hypothesis would disable about half
        of them in each example, and without ask there are no plays to tell.
        """
        needs_plays = verb in ("tell", "tell_again", "end", "correct", "retract")
        self.draw, self.handle = data.draw, which
        getattr(self, "ask" if needs_plays and not self.model.plays else verb)()

    # ------------------------------------------------------------ plays

    def ask(self) -> None:
        """Ask on the usual set."""
        self._ask(USUAL, self._key_and_time())

    def ask_today(self) -> None:
        """Ask on the set of a day, which is built for each request."""
        day = self.draw(DAY)
        self._ask(day, self._key_and_time(), day.actions())

    def ask_limited(self) -> None:
        """Ask with limits that are feasible or infeasible."""
        day, order, loose = self.draw(DAY), self.draw(PICK), self.draw(PICK)
        kept, names = day.plan(order), day.names
        limits: dict[str, Any] = {"at_most": {names[0]: kept[names[0]] + loose % 2}}
        if loose >= 2:
            limits["exclude"] = [name for name in names[1:] if not kept[name]]
        if loose >= 4:
            limits["fixed"] = {names[-1]: kept[names[-1]] if loose == 4 else TOO_MANY}
        given = () if day is USUAL else (day.actions(),)
        self._ask(day, self._key_and_time() | limits, *given)

    def ask_ahead(self) -> None:
        """Ask with the sets of some of the plays to come, which a study with promises takes."""
        days = self.draw(st.lists(DAY, max_size=3)) if self.settings["varying_set"] else [USUAL]
        ahead = [one.actions() for one in days]
        self._ask(USUAL, self._key_and_time() | {"ahead": ahead})

    def ask_instead(self) -> None:
        """Ask for a play instead of the pending one with the key."""
        day = self.draw(DAY)
        given = () if day is USUAL else (day.actions(),)
        self._ask(day, self._key_and_time() | {"replace": True}, *given)

    def _ask(self, day: Day, options: dict[str, Any], *given: Any) -> None:
        self._do(Request.made("ask", given, options), lambda: self._expect(day, options))

    def _expect(self, day: Day, options: dict[str, Any]) -> Any:
        """Return a function that checks the play."""
        key, replace = options["key"], options.get("replace", False)
        before, asked_for = self.model.asked_before(key), asked_for_of(day, options)
        if replace and (key is None or (before is not None and before.status == "told")):
            raise Refused
        if before is not None and before.status != "cancelled" and not replace:
            if before.asked_for != asked_for:
                raise Refused
            return lambda answer: same_play(answer, before)
        most, none, exact = (options.get(name, {}) for name in ("at_most", "exclude", "fixed"))
        differs = day != USUAL or most or none or exact  # an equal set counts as usual
        if differs and not self.model.terms.changing:
            raise Refused
        if TOO_MANY in exact.values() or ("ahead" in options and not self.model.promises):
            raise Refused

        def chosen(answer: Any) -> None:
            id, key, plan, action, numbers = answer
            assert id > max(self.model.plays, default=0), "ids must be new, and increase"
            assert key == options["key"], "a play must have the key that was given"
            assert day.has(plan), f"the set of the day has no plan {plan}"
            assert action == [plan[name] for name in day.names], "action and plan must agree"
            assert all(plan[name] <= units for name, units in most.items()), "at_most"
            assert not any(plan[name] for name in none), "exclude"
            assert all(plan[name] == units for name, units in exact.items()), "fixed"
            if before is not None:
                before.status = "cancelled"
            assert numbers[-1] == repr(self.model.change_cost(plan)), "the cost of changes"
            self.model.ask(id, key, day.names, plan, options["at"], asked_for)

        return chosen

    def ask_and_tell(self) -> None:
        """Ask, and tell all losses, the most frequent case."""
        self.ask()
        play = self.model.pending[-1:] or [*self.model.plays.values()]
        losses = self._losses(play[-1].plan, play[-1].id or 0, "whole")
        self._same_verb("tell", (play[-1].id, losses), self._key_and_time())

    def tell(self) -> None:
        """Tell a play completely, in part, by totals, or with wrong losses."""
        play, style = self._some_play(), self.draw(st.sampled_from(STYLES))
        losses = self._losses(play.plan, play.id or 0, style)
        options = {"final": self.draw(st.booleans()), "missing": self.draw(MISSING)}
        self._same_verb("tell", (self._name(play), losses), options | self._key_and_time())

    def tell_again(self) -> None:
        """Repeat a report, if there is one, with a key or without."""
        play = self._one_of(self.model.told or [*self.model.plays.values()])
        report = self._one_of(play.reports or [{}])
        losses = report if isinstance(report, float) else {k: _listed(v) for k, v in report.items()}
        options = {"final": self.draw(st.booleans())} | self._key_and_time()
        self._same_verb("tell", (self._name(play), losses), options)

    def _losses(self, plan: dict[str, int], number: int, style: str) -> Any:
        """Return a report; the loss of each unit depends on the number of the play."""
        terms, shift = self.model.terms, style == "other"
        step = (terms.high - terms.low) / (LEVELS + 1)
        losses: dict[str, Any] = {}
        for i, (name, units) in enumerate(plan.items()):
            levels = [1 + (7 * number + 3 * i + 5 * j + shift) % LEVELS for j in range(units)]
            losses[name] = [terms.low + step * level for level in levels]
        if style == "round":
            return sum(sum(units) for units in losses.values())
        for name, units in losses.items():
            if units and style != "whole" and self.draw(st.booleans()):
                losses[name] = self._changed(units, style)
        return {name: told for name, told in losses.items() if told != []}

    def _changed(self, units: list[float], style: str) -> Any:
        """Return the losses of an arm in a style of report."""
        if style == "gaps":
            return [self.draw(st.sampled_from([loss, None])) for loss in units]
        if style == "totals":
            return sum(units)
        if style == "arms":
            return None
        if style == "short":
            return units[: self.draw(PICK)]
        return [self.model.terms.high + 30.0, *units[1:]]

    def end(self) -> None:
        """Close a play, or cancel it."""
        verb = self.draw(st.sampled_from(["close", "cancel"]))
        self._same_verb(verb, (self._name(self._some_play()),), self._key_and_time())

    def correct(self) -> None:
        """Correct a report, usually of a play that was told."""
        play, style = self._ended_play(), self.draw(st.sampled_from(STYLES))
        losses = self._losses(play.plan, (play.id or 0) + self.draw(PICK) % 2, style)
        options = {"missing": self.draw(MISSING)} | self._key_and_time()
        self._same_verb("correct", (self._name(play), losses), options)

    def retract(self) -> None:
        """Retract a report, usually of a play that was told."""
        self._same_verb("retract", (self._name(self._ended_play()),), self._key_and_time())

    def expire(self) -> None:
        """Let plays expire."""
        hours = self.draw(st.sampled_from([15, 5, 0]))
        self._same_verb("expire", (HOUR * hours,), self._key_and_time())

    def set_words(self) -> None:
        """Set all words."""
        words = self.draw(st.sampled_from([Words(unit="truck"), Words("€", arm="way")]))
        self._same_verb("set_words", (words,), self._key_and_time())

    def set_versus(self) -> None:
        """Set the rule that plays are compared with."""
        self._same_verb("set_versus", (self.draw(st.sampled_from(RULES)),), self._key_and_time())

    def add_constraint(self) -> None:
        """Add a constraint; there may be one of its name."""
        given = self.draw(st.sampled_from(CONSTRAINTS))
        self._same_verb("add_constraint", (given,), self._key_and_time())

    def end_constraint(self) -> None:
        """End a constraint, usually one that was added."""
        names = [*self.model.promises, "contract", "switching cost"]
        self._same_verb("end_constraint", (self._one_of(names),), self._key_and_time())

    # ------------------------------------------------------------ external plans

    def learn(self) -> None:
        """Learn from an external plan, of the usual set or of a different one."""
        day, order, style = self.draw(DAY), self.draw(PICK), self.draw(st.sampled_from(STYLES))
        plan = day.plan(order)
        losses = self._losses(plan, order, style)
        options = {"missing": self.draw(MISSING)} | self._key_and_time()
        sets = {} if day is USUAL else {"actions": day.actions()}

        def expect() -> Any:
            if sets and not self.model.terms.changing:
                raise Refused
            return self.model.learn(plan, losses, day=day, **options)

        self._do(Request.made("learn", (plan, losses), options | sets), expect)

    def learn_table(self) -> None:
        """Learn from a history; level 0 is a missing loss. A row may be bad, or of a new arm."""
        terms, names = self.model.terms, [*self.model.arms, "C->z", None]
        step, rows = (terms.high - terms.low) / LEVELS, self.draw(ROWS)
        dates = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
        labels: list[Any] = self.draw(st.sampled_from([[0, 1, 2], dates]))
        table = {
            "round": [labels[number] for number, _, _ in rows],
            "arm": [names[arm % len(names)] for _, arm, _ in rows],
            "loss": [terms.low + step * level if level else math.nan for _, _, level in rows],
        }
        options = {"key": self.draw(KEY), "skip_bad": self.draw(st.booleans())}
        options["again"] = self.draw(AGAIN)
        self._same_verb("learn_table", (table,), options)

    # ------------------------------------------------------------ handles

    def repeat(self) -> None:
        """Repeat a request."""
        if not self.requests:
            return
        request, expect, _, _ = self._one_of(self.requests)
        self._do(request, expect)

    def open_again(self) -> None:
        """Close a handle and open a new one, or pickle it where that is possible."""
        old, new = self.handles[self.handle], None
        if self.draw(st.booleans()):
            with suppress(TypeError):  # handles on a store in memory
                new = pickle.loads(pickle.dumps(old))
        self.handles[self.handle] = self.studies.open(self.name) if new is None else new
        disconnect(old)

    def invalid(self) -> None:
        """Send a request that must be refused."""
        self._do(self.draw(st.sampled_from(INVALID)), refuse)

    # ------------------------------------------------------------ inside

    def _key_and_time(self) -> dict[str, Any]:
        return {"key": self.draw(KEY), "at": self.draw(TIME)}

    def _some_play(self) -> Play:
        """Draw a play, usually a pending one."""
        plays, seldom = [*self.model.plays.values()], self.draw(PICK) == 5
        play: Play = self._one_of(plays if seldom else self.model.pending or plays)
        return play

    def _ended_play(self) -> Play:
        """Draw a play, usually one that was told."""
        plays, seldom = [*self.model.plays.values()], self.draw(PICK) == 5
        told = [play for play in plays if play.status == "told"]
        play: Play = self._one_of(plays if seldom else told or plays)
        return play

    def _name(self, play: Play) -> Any:
        """Return the id of a play or, for every other play that has one, its key."""
        return play.key if play.key is not None and (play.id or 0) % 2 else play.id

    def _one_of(self, things: list[Any]) -> Any:
        """Draw an element by its number, because hypothesis prints the drawn values."""
        return things[self.draw(st.integers(0, len(things) - 1))]

    def _same_verb(self, verb: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Send a request with a verb that the model implements."""
        request = Request.made(verb, args, options)
        self._do(request, lambda: getattr(self.model, verb)(*args, **request.options))

    def _do(self, request: Request, expect: Callable[[], Any]) -> None:
        """Send a request through a handle, and compare the answer with that of the model.

        Refused and repeated requests must change nothing; otherwise tables are compared at the end.
        """
        self.sound, self.model.written = False, False
        study = self.handles[self.handle]
        try:
            expected = expect()
        except Refused:
            expected = "refused"
        try:
            if not self.model.written and not callable(expected):
                self._look(study)
            answer = request.of(study)
            if callable(expected):
                assert answer != "refused", "the request must not be refused"
                expected(answer)
            else:
                assert answer == expected, f"the answer must be {expected}, not {answer}"
            if self.model.written:
                self.view = None
            else:
                self._look(study)
            pending = [play.id for play in self.model.pending]
            assert [play.id for play in study.pending()] == pending, (
                "the plays without a final report must agree"
            )
        except AssertionError as error:
            before = "\n".join(str(one) for one, *_ in self.requests)
            raise AssertionError(f"{request}: {error}\nafter these:\n{before}") from error
        self.requests.append((request, expect, answer, self.model.written))
        self.sound = True

    def _look(self, study: Any) -> View:
        """Return the view of a handle, after comparing it with the model and the last view."""
        view = View.of(study)
        if self.view is None:
            check(view, self.model, self.policy)
            self.view = view
        assert self.view.same(view), "refused and repeated requests must change nothing"
        return view

    def teardown(self) -> None:
        """Compare all handles and a study in memory; then delete the study."""
        if not hasattr(self, "handles"):
            return
        try:
            if self.sound:
                self._compare()
        finally:
            self.studies.delete(self.name)
            for study in self.handles:
                disconnect(study)
        if self.sound:
            assert self.name not in self.studies.names(), "a deleted study must not be listed"
            gone = Request("ask", (), {}).of(self.handles[0])
            assert gone == "refused", "a handle on a deleted study must refuse requests"

    def _compare(self) -> None:
        fresh = self.studies.open(self.name)
        self.handles.append(fresh)
        view, believed = self._look(fresh), beliefs(fresh)
        plans = fresh.plans()
        check_plans(plans, self.model)
        for study in self.handles:
            assert View.of(study).same(view), "all handles must have the same view"
            assert beliefs(study) == believed, "all handles must have the same beliefs"
            assert study.plans().equals(plans), "all handles must have the same plans"
        if hasattr(fresh, "verify"):
            verified = fresh.verify()
            assert verified.ok, f"{verified}"
            assert verified.plays == len(self.model.plays), "verify must count every play"
        twin = self._twin()
        assert view.same(View.of(twin)), "one process must have the same view"
        assert beliefs(twin) == believed, "one process must have the same beliefs"

    def _twin(self) -> Study:
        """Repeat requests in one process: those that wrote, or all, each with a new handle."""
        store, opened = MemoryStore(), self.settings["seed"] % 2
        twin = Study.create("twin", USUAL.actions(), self.policy, store=store, **self.settings)
        for request, _, answer, written in self.requests:
            if opened:
                twin = Study.open("twin", store=store)
            if opened or written:
                alone = request.of(twin)
                assert alone == answer, f"{request}: {answer}, but {alone} in one process"
        return twin


@cache
def kinds_of_promises(policy: Policy) -> tuple[bool, ...]:
    """Return which promises a policy can have: hard ones, and those with a price only."""
    found = []
    for hard in (True, False):
        with suppress(InvalidInput):
            promise = AtMost(99, {"*": 1}, plays=9, hard=hard)
            Learner(USUAL.actions(), policy, constraints=[promise])
            found.append(hard)
    return tuple(found)


@cache
def has_index(policy: Policy) -> bool:
    """Return whether a policy can weigh what a change of the plan costs."""
    with suppress(InvalidInput):
        Learner(USUAL.actions(), policy, constraints=[SwitchingCost(1.0)])
        return True
    return False


def refuse() -> Any:
    """Raise Refused: the model of an invalid request."""
    raise Refused


def asked_for_of(day: Day, options: dict[str, Any]) -> str:
    """Return what a play is asked for as text, the same for the same request."""
    limits = [options.get(name) or None for name in ("at_most", "fixed", "exclude", "ahead")]
    return repr((day, limits))


def same_play(answer: Any, play: Play) -> None:
    """Check that an answer is a play that was asked before."""
    id, key, plan, action, _ = answer
    assert (id, key, plan) == (play.id, play.key, play.plan), "the same key must give the same play"
    assert action == [*play.plan.values()], "action and plan must agree"


def check(view: View, model: Model, policy: Policy) -> None:
    """Compare the view of a handle with the model."""
    plays, table = [*model.plays.values()], view.plays
    told = [play.status == "told" for play in plays]
    columns = {
        "id": [play.id for play in plays],
        "key": [play.key for play in plays],
        "status": [play.status for play in plays],
        "units": [play.size for play in plays],
        "seen": [play.seen * ended for play, ended in zip(plays, told, strict=True)],
        "clipped": [play.clipped * ended for play, ended in zip(plays, told, strict=True)],
    }
    for name, expected in columns.items():
        assert table[name].tolist() == expected, f"plays(): {name} must be {expected}"
    realised = [p.realised if ended else math.nan for p, ended in zip(plays, told, strict=True)]
    _close(table["realised"], realised, "plays(): realised")
    for name in ("asked", "told"):
        _close(_seconds(table[name]), [getattr(play, name) for play in plays], f"plays(): {name}")
    arms, table = [*model.arms.values()], view.arms
    assert table["arm"].tolist() == [*model.arms], "arms(): all arms in order of appearance"
    assert table["seen"].tolist() == [arm.seen for arm in arms], "arms(): units seen"
    reported = max(model.rounds + model.external, 1)
    _close(table["share"], [arm.plans / reported for arm in arms], "arms(): share")
    _close(_seconds(table["last_seen"]), [arm.last for arm in arms], "arms(): last seen")
    if not (getattr(policy, "discount", None) or getattr(policy, "window", None)):
        means = [arm.cost / arm.seen if arm.seen else math.nan for arm in arms]
        _close(table["average"], means, "arms(): average")
    pending = [(p.id, p.key, p.plan, [*p.plan.values()]) for p in model.pending]
    assert view.pending == pending, "pending(): the pending plays, oldest first"
    assert view.counts == (len(plays), model.clipped), "the numbers of plays and of clipped losses"
    assert view.words == model.words, "words"
    assert view.versus == model.versus, "the rule of the study"
    names = [*([] if model.change is None else ["switching cost"]), *model.promises]
    assert [one.name for one in view.constraints] == names, "constraints(): in order"
    for one in view.constraints[len(names) - len(model.promises) :]:
        used = f"constraints(): used of {one.name}"
        _close([one.used, one.external], [*model.used(one.name)], used)


def check_plans(table: Any, model: Model) -> None:
    """Compare the table of plans with the model."""
    rows = table.groupby("id")
    for play in model.plays.values():
        plan = {arm: n for arm, n in play.plan.items() if n and arm in model.arms}
        units = dict(rows.get_group(play.id)[["arm", "units"]].to_numpy()) if plan else {}
        assert units == plan, "plans(): the units of each arm that was played"
        if plan and play.status == "told":
            assert rows["seen"].sum()[play.id] == play.seen, "plans(): the units that were told"


def _close(found: Any, expected: list[float], what: str) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=what)


def _seconds(times: Any) -> list[float]:
    return [math.nan if time != time else time.timestamp() for time in times]


def _listed(told: Any) -> Any:
    return told if isinstance(told, float) else list(told)


def disconnect(study: Any) -> None:
    """Release the resources of a handle."""
    if hasattr(study, "disconnect"):
        study.disconnect()


def run(studies: Studies, policy: Policy, examples: int, steps: int, seed_: int) -> None:
    """Run the machine; the same seed gives the same requests.

    Each run has few examples: hypothesis starts with diverse examples, and then generates
    variations of them.
    """
    for first in range(0, examples, FRESH):

        class Machine(StudyMachine):
            pass

        Machine.studies, Machine.policy = studies, policy
        run_state_machine_as_test(
            seed(1000 * seed_ + first)(Machine),
            settings=settings(
                max_examples=min(FRESH, examples - first),
                stateful_step_count=steps,
                deadline=None,
                database=None,
                phases=PHASES,
                suppress_health_check=list(HealthCheck),
            ),
        )
