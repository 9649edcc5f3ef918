"""Random histories of learners and studies, against a twin that computes all anew each time."""

import json
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from effort import examples
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from slow_twin import (
    Asked,
    Cancelled,
    Closed,
    Event,
    Learned,
    RefusedError,
    Settings,
    SlowLearner,
    Table,
    Told,
)

import multiplay as mp
from multiplay.learner import snapshot
from multiplay.learner.engine import Engine
from multiplay.learner.policy_state import PolicyState
from multiplay.storage import MemoryStore
from multiplay.studies import learner_files, synced

POLICIES: dict[str, tuple[mp.Policy, dict[str, Any]]] = {
    "GenCTS": (mp.GenCTS(), {}),
    "CombUCB": (mp.CombUCB(), {}),
    "GenLBINFV": (mp.GenLBINFV(), {}),
    "GenLBINFV, horizon": (mp.GenLBINFV(horizon=100), {"horizon": 100}),
    "GenLBINFV, gd": (
        mp.GenLBINFV(prediction="gd", initial="units"),
        {"gd": True, "first_by_units": True},
    ),
    "Hybrid": (mp.Hybrid(), {}),
}
RANGES: list[dict[str, tuple[float, float]]] = [
    {"*": (0.0, 1.0)},
    {"*": (0.0, 250.0)},
    {"*": (50.0, 250.0)},
    {"*": (20.0, 220.0), "A->x": (0.0, 100.0), "B->y": (90.0, 290.0)},
    {"A->x": (10.0, 110.0), "A->y": (0.0, 50.0), "B->x": (10.0, 110.0), "B->y": (30.0, 60.0)},
]
OFTEN = [*["ask"] * 4, *["tell"] * 6, "end", "learn", "save_and_load"]
SEED = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Day:
    """Supplies and demands by name, and what else a set of transports has."""

    supply: dict[str, int]
    demand: dict[str, int]
    closed: frozenset[str] = frozenset()
    slack: bool = False
    shortage: float | None = None
    surplus: bool = False

    @property
    def lanes(self) -> list[tuple[str, str]]:
        return [(s, d) for s in self.supply for d in self.demand]

    def actions(self, sense: str) -> mp.Transport:
        shape = len(self.supply), len(self.demand)
        capacities = np.array([0 if f"{s}->{d}" in self.closed else 99 for s, d in self.lanes])
        return mp.Transport(
            list(self.supply.values()),
            list(self.demand.values()),
            names=(list(self.supply), list(self.demand)),
            capacities=capacities.reshape(shape) if self.closed else None,
            slack=self.slack,
            sense=sense,
            shortage=self.shortage,
            surplus=self.surplus,
        )


USUAL = Day({"A": 3, "B": 2}, {"x": 2, "y": 3})


def another_day(rnd: random.Random) -> Day:
    """Another day: other demands, a closed lane, a new warehouse, a shortage, or nothing at all."""
    suppliers = rnd.choice([["A", "B"], ["B", "A"], ["A", "B", "C"], ["C", "A"], ["B"]])
    demanders = rnd.choice([["x", "y"], ["y", "x"], ["x", "y", "z"], ["x"]])
    supply = {s: rnd.randint(0, 3) for s in suppliers}
    if rnd.random() < 0.1:
        supply = dict.fromkeys(supply, 0)
    total = sum(supply.values())
    kind = rnd.choice(["even", "even", "closed", "short", "slack", "surplus"])
    wanted = total + rnd.randint(1, 3) if kind == "short" else total
    if kind in ("slack", "surplus"):
        wanted = rnd.randint(0, total)
    demand = dict.fromkeys(demanders, 0)
    for _ in range(wanted):
        demand[rnd.choice(demanders)] += 1
    closed: frozenset[str] = frozenset()
    if kind == "closed" or rnd.random() < 0.2:
        lanes = [f"{s}->{d}" for s in suppliers for d in demanders]
        closed = frozenset(rnd.sample(lanes, rnd.randint(1, 2) if len(lanes) > 1 else 1))
    shortage = 40.0 if closed or kind == "short" else None
    return Day(supply, demand, closed, kind == "slack", shortage, kind == "surplus")


@dataclass(frozen=True)
class Limits:
    at_most: dict[str, int]
    exclude: list[str]
    fixed: dict[str, int]

    def options(self) -> dict[str, Any]:
        given = {"at_most": self.at_most, "exclude": self.exclude, "fixed": self.fixed}
        return {name: value for name, value in given.items() if value}


def some_limits(rnd: random.Random, day: Day) -> Limits:
    if rnd.random() < 0.6:
        return Limits({}, [], {})
    lanes = [f"{s}->{d}" for s, d in day.lanes]
    pick = [lane for lane in lanes if rnd.random() < 0.3]
    kinds = [rnd.choice(["at_most", "exclude", "fixed"]) for _ in pick]
    of = {k: [lane for lane, kind in zip(pick, kinds, strict=True) if kind == k] for k in kinds}
    return Limits(
        {lane: rnd.randint(0, 3) for lane in of.get("at_most", [])},
        of.get("exclude", []),
        {lane: rnd.randint(0, 2) for lane in of.get("fixed", [])},
    )


def most_delivered(day: Day) -> int:
    """Return how many units can be delivered, by linear programming."""
    rows, bounds = sums(day), [(0, 0 if f"{s}->{d}" in day.closed else 99) for s, d in day.lanes]
    ends = [*day.supply.values(), *day.demand.values()]
    found = linprog(-np.ones(len(bounds)), A_ub=rows, b_ub=ends, bounds=bounds)
    return round(-float(found.fun or 0.0))


def sums(day: Day) -> Any:
    """Return the matrix of what leaves every supplier and reaches every demander."""
    ends = [*(("from", s) for s in day.supply), *(("to", d) for d in day.demand)]
    lanes = [(("from", s), ("to", d)) for s, d in day.lanes]
    return np.array([[float(end in lane) for lane in lanes] for end in ends])


def keepable(day: Day, limits: Limits) -> bool:
    """Say whether some plan of the day keeps the limits, by linear programming."""
    bounds = []
    for s, d in day.lanes:
        lane = f"{s}->{d}"
        most = min(limits.at_most.get(lane, 99), 0 if lane in limits.exclude else 99)
        most = min(most, 0 if lane in day.closed else 99)
        least = limits.fixed.get(lane, 0)
        if least > most:
            return False
        bounds.append((least, limits.fixed.get(lane, most)))
    rows, supply, demand = sums(day), [*day.supply.values()], [*day.demand.values()]
    k, unmet = len(supply), sum(demand) - most_delivered(day)
    options: dict[str, Any] = {"A_eq": rows, "b_eq": [*supply, *demand]}
    if unmet:
        every = np.vstack([rows, -np.ones(len(bounds))])
        options = {"A_ub": every, "b_ub": [*supply, *demand, -(sum(demand) - unmet)]}
    elif sum(supply) > sum(demand):
        both = np.vstack([rows[:k], -rows[k:]])
        options = {"A_ub": both, "b_ub": [*supply, *(-units for units in demand)]}
        if not day.surplus:
            options |= {"A_eq": rows[k:], "b_eq": demand}
    return bool(linprog(np.zeros(len(bounds)), **options, bounds=bounds).status == 0)


def check_plan(day: Day, limits: Limits, plan: Mapping[str, int]) -> int:
    """Check a plan by hand; return how many units it leaves unmet."""
    lanes = {lane: plan[f"{lane[0]}->{lane[1]}"] for lane in day.lanes}
    sent = {s: sum(k for (one, _), k in lanes.items() if one == s) for s in day.supply}
    came = {d: sum(k for (_, one), k in lanes.items() if one == d) for d in day.demand}
    unmet = sum(day.demand.values()) - most_delivered(day)
    assert all(isinstance(k, int) and k >= 0 for k in lanes.values())
    assert all(sent[s] <= day.supply[s] for s in sent)
    assert all(plan[lane] == 0 for lane in [*day.closed, *limits.exclude])
    assert all(plan[lane] <= most for lane, most in limits.at_most.items())
    assert all(plan[lane] == units for lane, units in limits.fixed.items())
    shown = {name: k for name, k in plan.items() if name.startswith("unmet->")}
    assert len(plan) == len(lanes) + len(shown)
    if unmet:
        assert shown == {f"unmet->{d}": day.demand[d] - came[d] for d in came}
        assert all(k >= 0 for k in shown.values())
        assert sum(shown.values()) == unmet
    else:
        assert not shown
        assert all(came[d] >= day.demand[d] for d in came)
    if not unmet and sum(day.supply.values()) == sum(day.demand.values()):
        assert sent == day.supply
        assert came == day.demand
    return unmet


class History:
    """A learner and its slow twin; after each event all that is known must be the same."""

    def __init__(self, policy: str, seed: int, folder: Path) -> None:
        rnd = random.Random(seed)
        self.policy, more = POLICIES[policy]
        given = rnd.choice(RANGES)
        rewards, clip = rnd.random() < 0.3, rnd.random() < 0.4
        self.sense, self.certain = ("max" if rewards else "min"), rnd.random() < 0.5
        unit: dict[str, Any] = {"loss_range": given}
        self.file = folder / "learner.npz"
        self.learner: Any = self.begun(
            USUAL.actions(self.sense),
            self.policy,
            seed=seed % 1000,
            reports=mp.Reports("clip" if clip else "refuse"),
            varying_set=True,
            **unit,
        )
        others = min(low for low, _ in given.values()), max(high for _, high in given.values())
        name = type(self.policy).__name__
        self.settings = Settings(name, {"*": others} | given, clip, rewards, **more)
        self.first = {f"{s}->{d}": 2 if (s, d) != ("A", "y") else 3 for s, d in USUAL.lanes}
        self.events: list[Event] = []
        self.replayed: tuple[list[Event], SlowLearner] | None = None
        self.days: dict[int, Day] = {}
        self.truth: dict[int, dict[str, list[float]]] = {}
        self.shown: dict[int, dict[str, int]] = {}
        self.asked_for: dict[int, tuple[mp.ActionSet | None, dict[str, Any]]] = {}
        self.issued: set[int] = set()
        self.clock = count(1)
        self.saved: int | None = None

    def begun(self, actions: mp.ActionSet, policy: mp.Policy, **settings: Any) -> Any:
        return mp.Learner(actions, policy, **settings)

    def status_of(self, id: int) -> str:
        plays = self.learner.plays().set_index("id")["status"]
        return str(plays[id])

    def now(self) -> float:
        return 3600.0 * next(self.clock)

    def slow(self, *more: Event) -> SlowLearner:
        """Return the slow twin after all events; it is kept until there are other events."""
        events = [*self.events, *more]
        if self.replayed is None or self.replayed[0] != events:
            self.replayed = events, SlowLearner(self.settings, self.first, events)
        return self.replayed[1]

    # ------------------------------------------------------------ events

    def ask(self, rnd: random.Random) -> None:
        usual = rnd.random() < 0.4
        day = USUAL if usual else another_day(rnd)
        limits, when = some_limits(rnd, day), self.now()
        key = rnd.choice([None, None, f"key {rnd.randint(0, 9)}"])
        keys = {event.key: event for event in self.events if isinstance(event, Asked)}
        actions = None if usual and rnd.random() < 0.9 else day.actions(self.sense)
        before = self.fingerprint()
        if key is not None and key in keys and self.status_of(keys[key].id) != "cancelled":
            id, (then, options) = keys[key].id, self.asked_for[keys[key].id]
            play = self.learner.ask(then, key=key, **options)
            assert (play.id, play.key, play.plan) == (id, key, self.shown[id])
            assert play.repeated
            if options != limits.options():
                with pytest.raises(mp.InvalidInput):
                    self.learner.ask(then, key=key, **limits.options())
            assert self.fingerprint() == before
            return
        try:
            play = self.learner.ask(actions, key=key, at=when, **limits.options())
        except mp.InvalidInput:
            assert limits.options()
            assert not keepable(day, limits)
            assert self.fingerprint() == before
            return
        unmet = check_plan(day, limits, play.plan)
        assert play.id not in self.issued
        self.issued.add(play.id)
        memo, names = self.learner.engine.pending[play.id].memo, self.names_of(day)
        n = self.learner.engine.pending[play.id].round_set.actions.n.tolist()
        x, rest = (
            dict(zip(names, memo[what][0].tolist(), strict=True)) if what in memo else {}
            for what in ("x", "rest")
        )
        plan = {name: play.plan[name] for name in names}
        penalty = (day.shortage or 0.0) * unmet * (-1 if self.sense == "max" else 1)
        most = dict(zip(names, n, strict=True))
        assert all(abs(most[name] - x[name] - rest[name]) < 1e-9 for name in x)
        self.days[play.id], self.shown[play.id] = day, play.plan
        self.asked_for[play.id] = actions, limits.options()
        self.truth[play.id] = {i: [self.loss(rnd, i) for _ in range(a)] for i, a in plan.items()}
        self.events.append(Asked(play.id, key, when, plan, penalty, x, rest, most))
        self.compare()

    @staticmethod
    def names_of(day: Day) -> list[str]:
        return [f"{s}->{d}" for s, d in day.lanes]

    def loss(self, rnd: random.Random, name: str) -> float:
        low, high = self.settings.low(name), self.settings.high(name)
        if rnd.random() < 0.03:
            return high + rnd.choice([1.0, 30.0])
        part = rnd.choice([0.0, 1.0]) if self.certain else rnd.randint(0, 8) / 8
        return low + part * (high - low)

    def tell(self, rnd: random.Random) -> None:
        slow = self.slow()
        pending = [id for id, play in slow.plays.items() if play.status == "pending"]
        ids = pending if rnd.random() < 0.8 else list(slow.plays)
        if not ids:
            return
        id = rnd.choice(ids)
        final, ignore = rnd.random() < 0.6, rnd.random() < 0.4
        losses = self.report(rnd, id, slow)
        event, before = Told(id, losses, final, ignore, self.now()), self.fingerprint()
        missing = rnd.choice(["ignore"] if ignore else ["refuse", None])
        try:
            after = self.slow(event)
        except RefusedError:
            with pytest.raises(mp.InvalidInput):
                self.learner.tell(id, losses, final=final, missing=missing, at=event.when)
            assert self.fingerprint() == before
            return
        told = self.learner.tell(id, losses, final=final, missing=missing, at=event.when)
        play = after.plays[id]
        assert told.repeated == after.repeated
        assert told.final == (play.status == "told")
        units, ended = sum(play.asked.plan.values()), play.status == "told"
        assert told.seen + told.missing == units
        assert told.seen == (play.seen if ended else sum(len(s[0]) for s in seen(after, id)))
        if after.repeated:
            assert self.fingerprint() == before
        self.events.append(event)
        self.compare()

    def report(self, rnd: random.Random, id: int, slow: SlowLearner) -> dict[str, Any]:
        truth, style = self.truth[id], rnd.random()
        reports = [e.losses for e in self.events if isinstance(e, Told) and e.id == id]
        if reports and rnd.random() < 0.3:
            return rnd.choice(reports)
        losses: dict[str, Any] = {}
        for name, units in truth.items():
            told: list[float | None] = list(units)
            if style < 0.4 or not units:  # complete
                losses[name] = told
            elif style < 0.6:  # some are missing
                losses[name] = [loss if rnd.random() < 0.6 else None for loss in told]
            elif style < 0.8:  # some arms, and some of their units
                if rnd.random() < 0.6:
                    losses[name] = told[: rnd.randint(0, len(told))]
            elif rnd.random() < 0.8:
                losses[name] = float(sum(units)) if rnd.random() < 0.7 else told
        played = [name for name, told in losses.items() if truth[name] and isinstance(told, list)]
        if played and rnd.random() < 0.15:  # one is wrong
            name = rnd.choice(played)
            losses[name] = [self.loss(rnd, name) for _ in losses[name]]
        if rnd.random() < 0.03:
            losses["nowhere"] = []
            losses["nowhere"].append(0.5)
        return losses | {name: None for name in self.shown[id] if name.startswith("unmet")}

    def end(self, rnd: random.Random) -> None:
        """Cancel, or close, or let plays expire."""
        slow = self.slow()
        if not slow.plays:
            return
        id, how, when = rnd.choice(list(slow.plays)), rnd.random(), self.now()
        pending = {k: play for k, play in slow.plays.items() if play.status == "pending"}
        if how < 0.3:
            age = 3600.0 * rnd.randint(2, 30)
            late = [k for k, play in pending.items() if play.asked.when < when - age]
            assert self.learner.expire(age, at=when) == late
            for k in late:
                self.events.append(Closed(k, when) if pending[k].reports else Cancelled(k))
        elif id not in pending:
            before = self.fingerprint()
            with pytest.raises(mp.InvalidInput):
                self.learner.cancel(id) if how < 0.6 else self.learner.close(id)
            assert self.fingerprint() == before
        elif how < 0.6:
            self.learner.cancel(id)
            self.events.append(Cancelled(id))
        else:
            self.learner.close(id, at=when)
            self.events.append(Closed(id, when))
        self.compare()

    def learn(self, rnd: random.Random) -> None:
        """Learn from somebody else's plan, or from a table."""
        if rnd.random() < 0.4:
            names, before = list(self.slow().arms), self.fingerprint()
            rows: list[tuple[int, str, float | None]] = []
            for _ in range(rnd.randint(1, 6)):
                name = rnd.choice(names)
                loss = None if rnd.random() < 0.2 else self.loss(rnd, name)
                rows.append((rnd.randint(1, 3), name, loss))
            rows.append((0, names[0], self.settings.low(names[0])))  # so that there is a number
            event: Event = Table(rows)
            table = {"round": [r[0] for r in rows], "arm": [r[1] for r in rows]}
            self.accept(
                event,
                before,
                lambda: self.learner.learn_table(
                    table | {"loss": [math.nan if r[2] is None else r[2] for r in rows]},
                    again="add",  # the twin learns all rows: known ones are tested elsewhere
                ),
            )
            return
        day = USUAL if rnd.random() < 0.4 else another_day(rnd)
        actions = day.actions(self.sense)
        action = actions.best(np.array([rnd.random() for _ in range(actions.d)]))
        plan = dict(zip(self.names_of(day), action.tolist(), strict=True))
        losses: dict[str, Any] = {}
        for name, units in plan.items():
            some = [None if rnd.random() < 0.2 else self.loss(rnd, name) for _ in range(units)]
            losses[name] = some
        if rnd.random() < 0.3:
            losses.pop(rnd.choice(list(losses)))
        ignore, before = rnd.random() < 0.5, self.fingerprint()
        most = dict(zip(plan, actions.n.tolist(), strict=True))
        event = Learned(plan, losses, most, ignore, self.now())
        missing, given = ("ignore" if ignore else None), None if day is USUAL else actions
        self.accept(
            event,
            before,
            lambda: self.learner.learn(plan, losses, actions=given, missing=missing, at=event.when),
        )

    def accept(self, event: Event, before: Any, act: Any) -> None:
        try:
            self.slow(event)
        except RefusedError:
            with pytest.raises(mp.InvalidInput):
                act()
            assert self.fingerprint() == before
            return
        act()
        self.events.append(event)
        self.compare()

    def save_and_load(self, rnd: random.Random) -> None:
        """Save and load; or crash, and go on from the last save."""
        if rnd.random() < 0.7 or self.saved is None:
            self.learner.save(self.file)
            self.saved = len(self.events)
        self.learner = mp.Learner.load(self.file)
        self.events = self.events[: self.saved]
        self.compare()

    # ------------------------------------------------------------ comparison

    def fingerprint(self) -> tuple[str, dict[str, bytes]]:
        """Return all that the learner holds."""
        header, arrays = learner_files.record_of(self.learner.replica, self.learner.journal)
        return json.dumps(header), {name: array.tobytes() for name, array in arrays.items()}

    def compare(self) -> None:
        slow, learner = self.slow(), self.learner
        self.compare_state(slow)
        self.compare_arms(slow)
        self.compare_plays(slow)
        pending = {id: play for id, play in slow.plays.items() if play.status == "pending"}
        for play, (id, twin) in zip(learner.pending(), pending.items(), strict=True):
            assert (play.id, play.key) == (id, twin.asked.key)
            assert play.plan == self.shown[id]
        assert learner.clipped == slow.clipped
        assert learner.asked == len(slow.plays)

    def compare_state(self, slow: SlowLearner) -> None:
        names, state = self.learner.policy_state.arms.names, self.learner.state
        assert list(names) == list(slow.arms)
        arms, rounds = list(slow.arms.values()), slow.rounds + 1
        expected: dict[str, Any] = {}
        if self.settings.policy == "GenCTS":
            p, q = state["p"][0], state["q"][0]
            assert (p + q - 2).tolist() == [arm.N for arm in arms]
            assert (p >= 1).all()
            assert (q >= 1).all()
            for k, arm in enumerate(arms):
                assert arm.heads is None or p[k] == 1 + arm.heads
        if self.settings.policy in ("CombUCB", "Hybrid"):
            expected |= {"count": [arm.N for arm in arms], "sum": [arm.S for arm in arms]}
            expected["t"] = rounds
        if self.settings.policy in ("GenLBINFV", "Hybrid"):
            expected["L"] = [arm.L for arm in arms]
            expected["played"] = [arm.played for arm in arms]
            expected["seen"] = [arm.known for arm in arms]
        if self.settings.policy == "GenLBINFV":
            expected["beta2"] = [arm.beta2 for arm in arms]
            expected["q"] = [slow.prediction(name) for name in names]
            if not self.settings.gd:
                expected |= {"samples": [arm.N for arm in arms], "sum": [arm.S for arm in arms]}
            clock: dict[str, float] = {"t": rounds}
            if self.settings.horizon is not None:
                clock = {"g": math.log(self.settings.horizon)}
            expected |= clock
        for what, values in expected.items():
            np.testing.assert_allclose(state[what][0], values, rtol=1e-9, atol=1e-9, err_msg=what)
        warm = self.policy.warm(self.learner.policy_state.last.actions)
        assert state.keys() - set(warm) == expected.keys() or self.settings.policy == "GenCTS"

    def compare_arms(self, slow: SlowLearner) -> None:
        table, arms = self.learner.arms(), list(slow.arms.values())
        assert table["arm"].tolist() == list(slow.arms)
        assert table["seen"].tolist() == [arm.N for arm in arms]
        if self.all_count(slow):
            self.compare_beliefs(table, slow)
        share = [arm.plans / max(slow.rounds + slow.external, 1) for arm in arms]
        np.testing.assert_allclose(table["share"], share, rtol=1e-9)
        last = [time.timestamp() if time == time else math.nan for time in table["last_seen"]]
        np.testing.assert_array_equal(last, [arm.last for arm in arms])

    def all_count(self, slow: SlowLearner) -> bool:
        """Return whether beliefs have followed no change: the slow twin follows none."""
        seen = [arm.N for arm in slow.arms.values()]
        return bool((self.learner.policy_state.moments.seen == seen).all())

    def compare_beliefs(self, table: pd.DataFrame, slow: SlowLearner) -> None:
        means = [arm.euros / arm.N if arm.N else math.nan for arm in slow.arms.values()]
        np.testing.assert_allclose(table["average"], means, rtol=1e-9, atol=1e-9)
        beliefs = slow.beliefs().beliefs()
        for name in ("mean", "low", "high"):
            shares = [getattr(one, name) for one in beliefs]
            euros = [
                slow.in_euros(name, share) for name, share in zip(slow.arms, shares, strict=True)
            ]
            np.testing.assert_allclose(table[name], euros, rtol=1e-7, atol=1e-7)

    def compare_plays(self, slow: SlowLearner) -> None:
        table, plays = self.learner.plays(), list(slow.plays.values())
        assert table["id"].tolist() == list(slow.plays)
        assert table["key"].tolist() == [play.asked.key for play in plays]
        assert table["status"].tolist() == [play.status for play in plays]
        assert table["units"].tolist() == [sum(play.asked.plan.values()) for play in plays]
        assert table["seen"].tolist() == [play.seen for play in plays]
        ended = [play.clipped if play.status == "told" else 0 for play in plays]
        assert table["clipped"].tolist() == ended
        realised = [play.realised for play in plays]
        np.testing.assert_allclose(table["realised"], realised, rtol=1e-9, atol=1e-9)
        if self.all_count(slow):
            expected = [play.expected for play in plays]
            np.testing.assert_allclose(table["expected"], expected, rtol=1e-7, atol=1e-7)


def seen(slow: SlowLearner, id: int) -> list[Any]:
    play = slow.plays[id]
    return [slow.seen_of(play, name) for name in play.units]


class InStudy(mp.Study):
    """A study that can be looked at as a learner can."""

    @property
    def engine(self) -> Engine:
        with self._current() as engine:
            return engine

    @property
    def policy_state(self) -> PolicyState:
        return self.engine.state

    @property
    def state(self) -> dict[str, Any]:
        return self.policy_state.arms.arrays


class StudyHistory(History):
    """The same in a study, which is opened again instead of saved and loaded; nothing crashes."""

    def begun(self, actions: mp.ActionSet, policy: mp.Policy, **settings: Any) -> Any:
        self.store = MemoryStore()
        return InStudy.create("lanes", actions, policy, store=self.store, **settings)

    def fingerprint(self) -> tuple[str, dict[str, bytes]]:
        header, arrays = snapshot.record(self.learner.engine)
        bits = {name: array.tobytes() for name, array in arrays.items() if name != "rng"}
        return json.dumps(header) + self.learner.plays().to_csv(), bits

    def save_and_load(self, rnd: random.Random) -> None:
        before = self.fingerprint()
        self.learner = InStudy.open("lanes", store=self.store)
        assert self.fingerprint() == before
        self.compare()


SOAK = pytest.mark.soak


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "histories"),
    [
        (History, examples(60)),
        (StudyHistory, examples(10)),
        pytest.param(History, 1000, marks=SOAK),
        pytest.param(StudyHistory, 1000, marks=SOAK),
    ],
)
def test_histories_are_those_of_the_slow_twin(
    kind: type[History], histories: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 7)
    numbers = count()

    @settings(
        max_examples=histories,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],  # a failure is shown as it was found: to make it short is slow
        suppress_health_check=list(HealthCheck),
    )
    @given(
        policy=st.sampled_from(sorted(POLICIES)),
        seed=SEED,
        events=st.lists(st.sampled_from(OFTEN), min_size=25, max_size=40),
    )
    def one_history(policy: str, seed: int, events: list[str]) -> None:
        folder = tmp_path / f"{next(numbers)}"
        folder.mkdir()
        history, rnd = kind(policy, seed, folder), random.Random(seed + 1)
        for event in events:
            getattr(history, event)(rnd)
        if isinstance(history.learner, mp.Study):
            assert history.learner.verify().ok

    one_history()


# ------------------------------------------------------------ what such histories have found


def test_what_every_unit_loses_at_least_counts_for_new_arms_as_for_old_ones() -> None:
    """Otherwise a warehouse that opens late looks worse than the others, day by day."""
    for policy in (mp.GenLBINFV(), mp.GenAdaINF()):
        learner = mp.Learner(USUAL.actions("min"), policy, loss_range=(50, 250))
        for _ in range(10):
            play = learner.ask()
            learner.tell(play.id, {name: [150.0] * k for name, k in play.plan.items()})
        learner.ask(Day({"A": 3, "C": 2}, {"x": 2, "y": 3}).actions("min"))
        assert learner.state["L"][0] == pytest.approx(10 * 150 / 200), type(policy).__name__


def test_totals_of_different_arms_may_come_one_after_the_other() -> None:
    learner = mp.Learner(USUAL.actions("min"), mp.CombUCB())
    play = learner.ask()
    for name, units in play.plan.items():
        if units:
            learner.tell(play.id, {name: 0.5 * units}, final=False)
    assert learner.close(play.id).seen == 5
    assert learner.state["sum"].sum() == 2.5


def test_an_arm_of_which_nobody_spoke_is_not_excused_by_gaps_in_another() -> None:
    learner = mp.Learner(USUAL.actions("min"), mp.CombUCB())
    play = learner.ask()
    name = next(name for name, units in play.plan.items() if units)
    gap = {name: [None] * play.plan[name]}
    learner.tell(play.id, gap, final=False)
    with pytest.raises(mp.InvalidInput, match="more losses, one for each unit"):
        learner.tell(play.id, gap)
    assert learner.tell(play.id, gap, missing="ignore").seen == 0


def test_history_does_not_hide_when_an_arm_was_seen() -> None:
    learner = mp.Learner(USUAL.actions("min"), mp.CombUCB())
    play = learner.ask()
    learner.tell(play.id, {name: [0.5] * k for name, k in play.plan.items()}, at=3600.0)
    learner.learn_table({"round": [1] * 4, "arm": list(play.plan), "loss": [0.5] * 4})
    seen = learner.arms().set_index("arm")["last_seen"]
    assert all(seen[name].timestamp() == 3600.0 for name, k in play.plan.items() if k)


def test_units_that_nobody_served_may_be_named_again() -> None:
    learner = mp.Learner(USUAL.actions("min"), mp.GenCTS())
    short = Day({"A": 3, "B": 1}, {"x": 2, "y": 3}, shortage=5.0)
    play = learner.ask(short.actions("min"))
    told = {name: None if name.startswith("unmet") else [0.5] * k for name, k in play.plan.items()}
    assert not learner.tell(play.id, told).repeated
    assert learner.tell(play.id, told).repeated
    with pytest.raises(mp.InvalidInput, match="nowhere"):
        learner.tell(play.id, told | {"nowhere": 1.0})
