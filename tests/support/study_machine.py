"""Random uses of a study through several handles, compared with the model after each verb."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from contextlib import suppress
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
from study_model import Day, Model, Play, Refused, Terms

from multiplay.errors import InvalidInput
from multiplay.policies import Policy
from multiplay.storage.memory import MemoryStore
from multiplay.studies import Study

USUAL = Day({"A": 3, "B": 2}, {"x": 2, "y": 3})
DAYS = [  # the usual one, and one that says the same; other supplies, another order, other arms
    USUAL,
    Day({"A": 3, "B": 2}, {"x": 2, "y": 3}),
    Day({"A": 1, "B": 3}, {"x": 2, "y": 2}),
    Day({"B": 2, "A": 2}, {"y": 3, "x": 1}),
    Day({"A": 2}, {"x": 1, "y": 1}),
    Day({"B": 1, "C": 3}, {"x": 2, "z": 2}),
    Day({"A": 2, "C": 2}, {"y": 1, "z": 3}),
]
PHASES = [Phase.generate, Phase.shrink]  # what fails is made short
RANGES = [(0.0, 1.0), (0.0, 250.0), (50.0, 250.0)]
HOUR, LEVELS, FRESH = 3600.0, 8, 9
UNKNOWN, TOO_MANY = 10**6, 99  # a play that there is not, units that no lane can have
OFTEN = [
    *["ask", "ask_today", "ask_and_tell", "repeat"] * 3,
    *["tell"] * 6,
    *["ask_limited", "tell_again", "end", "learn", "open_again"] * 2,
    *["expire", "learn_table", "nonsense"],
]
STYLES = ["whole", "whole", "gaps", "arms", "short", "totals", "round", "other"]

DAY, PICK = st.sampled_from(DAYS), st.integers(0, 5)
KEY = st.sampled_from([*[None] * 5, "a", "b", "c", "ü 中 'x'; --", "k" * 200])
TIME = st.integers(0, 20).map(lambda hours: HOUR * hours)
MISSING = st.sampled_from([None, "ignore", "refuse"])
ROWS = st.lists(st.tuples(st.integers(0, 2), PICK, st.integers(0, LEVELS)), min_size=1, max_size=8)


class Studies(Protocol):
    """Where studies are: what ``check_study`` needs of it."""

    @property
    def create(self) -> Callable[..., Any]:
        """Begins a study: ``create(name, actions, policy, **settings)``."""

    def open(self, name: str) -> Any:
        """Go on with a study."""

    def list(self) -> list[str]:
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
        """Ask it; return the answer as plain data, and what is refused as text."""
        try:
            return plain(getattr(study, self.verb)(*self.args, **self.options))
        except InvalidInput:
            return "refused"


NONSENSE = [
    Request("ask", (), {"key": ""}),
    Request("ask", (), {"key": "k" * 201}),
    Request("ask", (), {"at": math.inf}),
    Request("ask", ("plans",), {}),
    Request("ask", (), {"exclude": ["nowhere"]}),
    Request("tell", (UNKNOWN, {}), {}),
    Request("tell", ("one", {}), {}),
    Request("tell", (-1, {}), {"key": "a"}),
    Request("close", (0,), {}),
    Request("cancel", (None,), {}),
    Request("expire", (-HOUR,), {}),
    Request("learn", ({"nowhere": 1}, {"nowhere": [0.5]}), {}),
    Request("learn", ({"A->x": 9}, {"A->x": [0.5] * 9}), {}),
    Request("learn_table", ({"round": [1], "arm": ["nowhere"], "loss": [0.5]},), {}),
]


def plain(answer: Any) -> Any:
    """Return an answer so that it can be compared, bit for bit."""
    if hasattr(answer, "plan"):
        return *shown(answer), tuple(map(repr, answer.expected))  # as text, so that NaN is NaN
    return answer if answer is None or isinstance(answer, list) else tuple(answer)


def shown(play: Any) -> tuple[Any, ...]:
    """Return a play without what it should cost, which changes with all that is learned."""
    of_play = (play.id, play.key) if hasattr(play, "id") else ()
    return *of_play, dict(play.plan), play.action.tolist()


class View(NamedTuple):
    """All that a handle shows."""

    plays: Any
    arms: Any
    pending: Any
    counts: tuple[int, int]

    @classmethod
    def of(cls, study: Any) -> View:
        """Look at a study."""
        pending = [shown(play) for play in study.pending()]
        return cls(study.plays(), study.arms(), pending, (study.asked, study.clipped))

    def same(self, other: View) -> bool:
        """Compare bit for bit."""
        tables = self.plays.equals(other.plays) and self.arms.equals(other.arms)
        return tables and self[2:] == other[2:]


def beliefs(study: Any) -> list[Any]:
    """Return what a study advises, as text."""
    found = [Request("best", (), {}).of(study), study.drift().to_csv()]
    return [*found, [plain(play)[4] for play in study.pending()]]


class StudyMachine(RuleBasedStateMachine):
    """One study of one store. All that a rule does goes through ``_do``."""

    studies: Studies
    policy: Policy

    @initialize(
        range=st.sampled_from(RANGES),
        clip=st.booleans(),
        ignore=st.booleans(),
        changing=st.booleans(),
        seed=st.integers(0, 3),
    )
    def begin(
        self, range: tuple[float, float], clip: bool, ignore: bool, changing: bool, seed: int
    ) -> None:
        """Create the study, and open it twice."""
        policy, self.name = self.policy, f"check_study {uuid4()}"
        self.settings: dict[str, Any] = {
            "seed": seed,
            "losses": range,
            "outside": "clip" if clip else "refuse",
            "missing": "ignore" if ignore and policy.partial else "refuse",
            "changing": changing and policy.changing,
        }
        ignore = self.settings["missing"] == "ignore"
        self.model = Model(USUAL, Terms.of(policy, *range, clip, ignore))
        self.requests: list[tuple[Request, Callable[[], Any], Any, bool]] = []
        made = self.studies.create(self.name, USUAL.actions(), policy, **self.settings)
        self.handles = [made, *(self.studies.open(self.name) for _ in "12")]
        assert self.name in self.studies.list(), "a study must be listed"
        self.view: View | None = None  # what all handles show; None if that has changed
        self.sound = True

    @rule(verb=st.sampled_from(OFTEN), who=st.integers(0, 2), data=st.data())
    def use(self, verb: str, who: int, data: st.DataObject) -> None:
        """Do something with one of the handles.

        One rule draws what to do: of several, hypothesis would switch off a half each time, and
        where nothing is asked, there is nothing to tell.
        """
        needs_plays = verb in ("tell", "tell_again", "end")
        self.draw, self.who = data.draw, who
        getattr(self, "ask" if needs_plays and not self.model.plays else verb)()

    # ------------------------------------------------------------ plays

    def ask(self) -> None:
        """Ask on the usual set."""
        self._ask(USUAL, self._key_and_time())

    def ask_today(self) -> None:
        """Ask on the set of today, which is made anew."""
        day = self.draw(DAY)
        self._ask(day, self._key_and_time(), day.actions())

    def ask_limited(self) -> None:
        """Ask with limits that some plan keeps, or that no plan keeps."""
        day, order, loose = self.draw(DAY), self.draw(PICK), self.draw(PICK)
        kept, names = day.plan(order), day.names
        limits: dict[str, Any] = {"at_most": {names[0]: kept[names[0]] + loose % 2}}
        if loose >= 2:
            limits["exclude"] = [name for name in names[1:] if not kept[name]]
        if loose >= 4:
            limits["fixed"] = {names[-1]: kept[names[-1]] if loose == 4 else TOO_MANY}
        given = () if day is USUAL else (day.actions(),)
        self._ask(day, self._key_and_time() | limits, *given)

    def _ask(self, day: Day, options: dict[str, Any], *given: Any) -> None:
        self._do(Request.made("ask", given, options), lambda: self._expect(day, options))

    def _expect(self, day: Day, options: dict[str, Any]) -> Any:
        """Return what checks the play that is asked for."""
        before = self.model.asked_before(options["key"])
        if before is not None:
            return lambda answer: same_play(answer, before)
        most, none, exact = (options.get(name, {}) for name in ("at_most", "exclude", "fixed"))
        another = day != USUAL or most or none or exact  # one that says the same is the usual one
        if another and not self.model.terms.changing:
            raise Refused
        if TOO_MANY in exact.values():
            raise Refused

        def chosen(answer: Any) -> None:
            id, key, plan, action, _ = answer
            assert id > max(self.model.plays, default=0), "ids must be new, and increase"
            assert key == options["key"], "a play must have the key that was given"
            assert day.has(plan), f"a plan of the day was asked: {plan}"
            assert action == [plan[name] for name in day.names], "action and plan must agree"
            assert all(plan[name] <= units for name, units in most.items()), "at_most"
            assert not any(plan[name] for name in none), "exclude"
            assert all(plan[name] == units for name, units in exact.items()), "fixed"
            self.model.ask(id, key, day.names, plan, options["at"])

        return chosen

    def ask_and_tell(self) -> None:
        """Ask, and tell all losses: the usual case."""
        self.ask()
        play = self.model.pending[-1:] or [*self.model.plays.values()]
        losses = self._losses(play[-1].plan, play[-1].id or 0, "whole")
        self._same_verb("tell", (play[-1].id, losses), self._key_and_time())

    def tell(self) -> None:
        """Tell a play: whole, in part, by totals, or something else."""
        play, style = self._some_play(), self.draw(st.sampled_from(STYLES))
        losses = self._losses(play.plan, play.id or 0, style)
        options = {"final": self.draw(st.booleans()), "missing": self.draw(MISSING)}
        self._same_verb("tell", (play.id, losses), options | self._key_and_time())

    def tell_again(self) -> None:
        """Tell what was told before, if something was, with a key or without."""
        play = self._one_of(self.model.told or [*self.model.plays.values()])
        said = self._one_of(play.said or [{}])
        losses = said if isinstance(said, float) else {k: _listed(v) for k, v in said.items()}
        options = {"final": self.draw(st.booleans())} | self._key_and_time()
        self._same_verb("tell", (play.id, losses), options)

    def _losses(self, plan: dict[str, int], number: int, style: str) -> Any:
        """Return a report: what each unit lost follows from the number of the play."""
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
        """Return the losses of an arm as they are told in some style."""
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
        self._same_verb(verb, (self._some_play().id,), self._key_and_time())

    def expire(self) -> None:
        """Let plays expire."""
        hours = self.draw(st.sampled_from([15, 5, 0]))
        self._same_verb("expire", (HOUR * hours,), self._key_and_time())

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
        """Learn from a history; level 0 stands for a unit that did not report."""
        terms, names = self.model.terms, list(self.model.arms)
        step, rows = (terms.high - terms.low) / LEVELS, self.draw(ROWS)
        table = {
            "round": [number for number, _, _ in rows],
            "arm": [names[arm % len(names)] for _, arm, _ in rows],
            "loss": [terms.low + step * level if level else math.nan for _, _, level in rows],
        }
        self._same_verb("learn_table", (table,), {"key": self.draw(KEY)})

    # ------------------------------------------------------------ handles

    def repeat(self) -> None:
        """Ask something again, as it was asked."""
        if not self.requests:
            return
        request, expect, _, _ = self._one_of(self.requests)
        self._do(request, expect)

    def open_again(self) -> None:
        """Close a handle and open a new one, or pickle it where that is possible."""
        old, new = self.handles[self.who], None
        if self.draw(st.booleans()):
            with suppress(TypeError):  # in a store of this process
                new = pickle.loads(pickle.dumps(old))
        self.handles[self.who] = self.studies.open(self.name) if new is None else new
        disconnect(old)

    def nonsense(self) -> None:
        """Send a request that must be refused."""
        self._do(self.draw(st.sampled_from(NONSENSE)), refuse)

    # ------------------------------------------------------------ inside

    def _key_and_time(self) -> dict[str, Any]:
        return {"key": self.draw(KEY), "at": self.draw(TIME)}

    def _some_play(self) -> Play:
        """Draw a play, usually a pending one."""
        plays, seldom = [*self.model.plays.values()], self.draw(PICK) == 5
        play: Play = self._one_of(plays if seldom else self.model.pending or plays)
        return play

    def _one_of(self, things: list[Any]) -> Any:
        """Draw a thing by its number: what is drawn is printed, and things are long."""
        return things[self.draw(st.integers(0, len(things) - 1))]

    def _same_verb(self, verb: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Ask a verb that the model has as well."""
        request = Request.made(verb, args, options)
        self._do(request, lambda: getattr(self.model, verb)(*args, **request.options))

    def _do(self, request: Request, expect: Callable[[], Any]) -> None:
        """Ask something of a handle, and compare the answer with that of the model.

        What is refused or repeated must leave all as it was; otherwise tables are compared at last.
        """
        self.sound, self.model.written = False, False
        study = self.handles[self.who]
        try:
            expected = expect()
        except Refused:
            expected = "refused"
        try:
            if not self.model.written and not callable(expected):
                self._look(study)
            answer = request.of(study)
            if callable(expected):
                assert answer != "refused", "it must not be refused"
                expected(answer)
            else:
                assert answer == expected, f"the answer must be {expected}, not {answer}"
            if self.model.written:
                self.view = None
            else:
                self._look(study)
            pending = [play.id for play in self.model.pending]
            assert [play.id for play in study.pending()] == pending, "the same plays must wait"
        except AssertionError as error:
            before = "\n".join(str(one) for one, *_ in self.requests)
            raise AssertionError(f"{request}: {error}\nafter these:\n{before}") from error
        self.requests.append((request, expect, answer, self.model.written))
        self.sound = True

    def _look(self, study: Any) -> View:
        """Return all that a handle shows, after comparing it with the model and what was shown."""
        view = View.of(study)
        if self.view is None:
            check(view, self.model, self.policy)
            self.view = view
        assert self.view.same(view), "what is refused or repeated must change nothing"
        return view

    def teardown(self) -> None:
        """Compare all handles, and twins that were asked the same; then delete the study."""
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
            assert self.name not in self.studies.list(), "what is deleted must not be listed"
            gone = Request("ask", (), {}).of(self.handles[0])
            assert gone == "refused", "a handle on a study that was deleted must refuse"

    def _compare(self) -> None:
        fresh = self.studies.open(self.name)
        self.handles.append(fresh)
        view, believed = self._look(fresh), beliefs(fresh)
        for study in self.handles:
            assert View.of(study).same(view), "all handles must show the same"
            assert beliefs(study) == believed, "all handles must believe the same"
        if hasattr(fresh, "verify"):
            verified = fresh.verify()
            assert verified.ok, f"{verified}"
            assert verified.plays == len(self.model.plays), "verify must see every play"
        twin = self._twin()
        assert view.same(View.of(twin)), "one process must come to the same"
        assert beliefs(twin) == believed, "one process must come to the same beliefs"

    def _twin(self) -> Study:
        """Ask the same of one process: what has done something; or all, opened each time."""
        store, opened = MemoryStore(), self.settings["seed"] % 2
        twin = Study.create("twin", USUAL.actions(), self.policy, store=store, **self.settings)
        for request, _, answer, written in self.requests:
            if opened:
                twin = Study.open("twin", store=store)
            if opened or written:
                alone = request.of(twin)
                assert alone == answer, f"{request}: {answer}, but {alone} in one process"
        return twin


def refuse() -> Any:
    """Expect that something is refused."""
    raise Refused


def same_play(answer: Any, play: Play) -> None:
    """Check that an answer is a play that was asked before."""
    id, key, plan, action, _ = answer
    assert (id, key, plan) == (play.id, play.key, play.plan), "the same key, the same play for ever"
    assert action == [*play.plan.values()], "action and plan must agree"


def check(view: View, model: Model, policy: Policy) -> None:
    """Compare all that a handle shows with the model."""
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
    assert table["arm"].tolist() == [*model.arms], "arms(): all arms ever met, in order"
    assert table["seen"].tolist() == [arm.seen for arm in arms], "arms(): units seen"
    _close(table["share"], [arm.plans / max(model.rounds, 1) for arm in arms], "arms(): share")
    _close(_seconds(table["last_seen"]), [arm.last for arm in arms], "arms(): last seen")
    if not (getattr(policy, "discount", None) or getattr(policy, "window", None)):
        means = [arm.cost / arm.seen if arm.seen else math.nan for arm in arms]
        _close(table["mean"], means, "arms(): mean")
    pending = [(p.id, p.key, p.plan, [*p.plan.values()]) for p in model.pending]
    assert view.pending == pending, "pending(): the plays that wait, oldest first"
    assert view.counts == (len(plays), model.clipped), "how many were asked, and clipped"


def _close(found: Any, expected: list[float], what: str) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=what)


def _seconds(times: Any) -> list[float]:
    return [math.nan if time != time else time.timestamp() for time in times]


def _listed(told: Any) -> Any:
    return told if isinstance(told, float) else list(told)


def disconnect(study: Any) -> None:
    """Give back what a handle holds."""
    if hasattr(study, "disconnect"):
        study.disconnect()


def run(studies: Studies, policy: Policy, examples: int, steps: int, seed_: int) -> None:
    """Run the machine; the same seed does the same.

    A few examples at a time: hypothesis begins with all that is different, and then would go on
    with variations of that.
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
