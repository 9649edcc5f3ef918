"""Declared costs: every exported set and policy declares its cost, and the cost is what it does.

The service offers what declares its cost. A new class is found in ``__all__`` of its package; no
line of this file has to change for it.
"""

from collections import Counter
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

import multiplay as mp
from multiplay import (
    ActionSet,
    Bernoulli,
    Budget,
    GenCTS,
    Policy,
    SpanningTree,
    Stochastic,
    actions,
    policies,
)
from multiplay._support.builder import classes_of
from multiplay._support.serialization import settings
from multiplay.actions.costs import SetCost, SetSize, length
from multiplay.errors import InvalidInput
from multiplay.hull import DecompositionHull
from multiplay.policies.base import PolicyCost
from multiplay.random import Streams
from multiplay.service.studies import limits
from multiplay.types import Arrays

SETS = [kind for kind in classes_of(actions).values() if issubclass(kind, ActionSet)]
POLICIES = [kind for kind in classes_of(policies).values() if issubclass(kind, Policy)]
NOT_OFFERED = {"TimeVarying", "Limited"}  # settings are sets and functions
CALLS_FOR_ONE_ACTION = 3  # in each trial and round: a leader, an unseen arm, and a random action
ROUNDS = 4


def check_set_cost(kind: Any) -> None:
    """Raise ``AssertionError`` unless a set declares its own cost, and the right one."""
    name = kind.__name__
    assert "cost" in vars(kind), f"write {name}.cost: a SetCost, or None not to offer it"
    cost = kind.cost
    if cost is None:
        return
    example = kind.example()
    arms, *_ = cost.requirements(settings(example))
    assert arms.amount == example.d, f"{name}.cost.arms must count the arms"
    if not example.linear:  # it has no hull
        return
    described = not isinstance(example.hull, DecompositionHull)
    assert (cost.oracle == "flow") == described, f"{name}.cost.oracle must say what its hull needs"


def check_policy_cost(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise ``AssertionError`` unless a policy declares its own cost, and the right one."""
    name = kind.__name__
    assert "cost" in vars(kind), f"write {name}.cost: a PolicyCost, or None not to offer it"
    cost = kind.cost
    if cost is None:
        return
    policy = kind.example()
    calls = calls_of(policy, monkeypatch)
    lists = calls["list"] > 0
    assert lists == (cost.most_actions is not None), f"{name}.cost.most_actions: lists {lists}"
    if cost.oracle == "once":
        solved = calls["start"] + calls["choose"]
        assert solved <= CALLS_FOR_ONE_ACTION * ROUNDS, f"{name}.cost.oracle: {calls}"
    if cost.oracle != "often in update":
        assert calls["update"] == 0, f"{name}.cost.oracle: {calls}"
    for field in fields(kind):
        if field.name in cost.capped:
            assert isinstance(field.default, int), f"{name}.{field.name} needs a default"
        elif "int" in str(field.type) and field.name not in ("window", "horizon", "priors"):
            less, more = (numbers_kept(replace(policy, **{field.name: n})) for n in (10, 40))
            assert less == more, f"{name}.cost must limit {field.name}, with which the state grows"


def calls_of(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how many cost vectors a policy solves in its rounds, and how often it lists all."""
    calls: Counter[str] = Counter()
    now = "start"
    solve, listed = SpanningTree.oracle, SpanningTree.all_actions

    def oracle(self: SpanningTree, costs: Any) -> Any:
        calls[now] += len(costs)
        return solve(self, costs)

    def all_actions(self: SpanningTree, *arguments: Any) -> Any:
        calls["list"] += 1
        return listed(self, *arguments)

    trees = SpanningTree([(a, b) for a in range(4) for b in range(a)])
    assert trees.m == trees.M == 3  # computed once, and not counted
    world = Stochastic(Bernoulli(0.5)).open(trees, ROUNDS, range(1), seed=0)
    with monkeypatch.context() as patch:
        patch.setattr(SpanningTree, "oracle", oracle)
        patch.setattr(SpanningTree, "all_actions", all_actions)
        state = policy.start(trees, 100, 1)
        rng = Streams.spawn(seed=0, purpose=0, trials=range(1))
        for _ in range(ROUNDS):
            now = "choose"
            play = policy.choose(trees, state, rng)
            state |= play.cache
            feedback = world.observe(play.action).feedback
            now = "update"
            policy.update(trees, state, play, policies.base.shown(policy, feedback), rng)
    return calls


def numbers_kept(policy: Policy) -> int:
    """Return the number of numbers in the first state."""
    state: Arrays = policy.start(Budget(3, [2, 2, 2]), 100, 1)
    return sum(array.size for array in state.values())


@pytest.mark.parametrize("kind", POLICIES)
def test_every_policy_says_what_it_does(kind: type[Policy]) -> None:
    """One sentence of its own, for readers of plans: without names of classes or settings."""
    text = kind.does
    assert "does" in vars(kind), "write what it does"
    assert text[0].isupper()
    assert text.endswith(".")
    assert text.count(". ") == 0
    assert len(text) <= 120
    assert sum(other.does == text for other in POLICIES) == 1
    assert kind.example().summary.startswith(text)


@pytest.mark.parametrize("kind", SETS)
def test_every_set_declares_its_cost(kind: type) -> None:
    check_set_cost(kind)


@pytest.mark.parametrize("kind", POLICIES)
def test_every_policy_declares_its_cost(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    check_policy_cost(kind, monkeypatch)


def test_what_declares_its_cost_is_offered() -> None:
    assert {kind.__name__ for kind in SETS} - NOT_OFFERED == limits.SETS.keys()
    offered = {kind.__name__ for kind in POLICIES if kind.cost is not None}
    assert offered == limits.POLICIES.keys()


# ---------------------------------------------------------------- what is wrong is noticed


class Undeclared(Budget):
    """A set that inherits the cost of its parent."""


class Miscounted(Budget):
    """A set that counts something else."""

    cost = SetCost(SetSize("caps", lambda s: 2 * length(s["caps"])), oracle="flow")


class Misdescribed(Budget):
    """A set with a wrong oracle."""

    cost = SetCost(SetSize("caps", lambda s: length(s["caps"])), oracle="search")


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Undeclared, r"write Undeclared\.cost"),
        (Miscounted, "must count the arms"),
        (Misdescribed, "must say what its hull needs"),
    ],
)
def test_a_set_with_a_wrong_cost_is_noticed(kind: type, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check_set_cost(kind)


@dataclass(frozen=True, repr=False)
class Cheap(GenCTS):
    """A policy that inherits the cost of its parent."""


@dataclass(frozen=True, repr=False)
class Lister(GenCTS):
    """A policy that lists all actions, and does not say so."""

    cost = GenCTS.cost

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        actions.all_actions()
        return super().start(actions, horizon, trials)


@dataclass(frozen=True)
class ManyCalls(policies.FPLIX):
    """A policy that solves many costs in update, and does not say so."""

    cost = PolicyCost(capped=("cap",))


@dataclass(frozen=True)
class HullWalk(policies.GenLBINFV):
    """A policy that minimises over the hull, and does not say so."""

    cost = PolicyCost()


@dataclass(frozen=True, repr=False)
class Keeper(GenCTS):
    """A policy that keeps many rounds, and does not say so."""

    cost = PolicyCost()
    rounds: int = 20

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        kept = np.zeros((trials, actions.d, self.rounds))
        return super().start(actions, horizon, trials) | {"kept": kept}


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Cheap, r"write Cheap\.cost"),
        (Lister, "most_actions: lists True"),
        (ManyCalls, r"ManyCalls\.cost\.oracle"),
        (HullWalk, r"HullWalk\.cost\.oracle"),
        (Keeper, "must limit rounds"),
    ],
)
def test_a_policy_with_a_wrong_cost_is_noticed(
    kind: type, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError, match=says):
        check_policy_cost(kind, monkeypatch)


def test_what_declares_nothing_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not limits.offered({"Cheap": Cheap, "Lister": Lister}, Policy).keys() - {"Lister"}
    monkeypatch.setitem(limits.EXPORTED, "Cheap", Cheap)
    with pytest.raises(InvalidInput, match=r"policy\.type: .* declares its cost.*Cheap"):
        limits.build_policy("policy", {"type": "Cheap"}, limits.ServiceLimits())
    monkeypatch.setitem(limits.EXPORTED, "Undeclared", Undeclared)
    sent = {"type": "Undeclared", "total": 1, "caps": [1]}
    with pytest.raises(InvalidInput, match=r"actions\.type: .* declares its cost.*Undeclared"):
        limits.build_actions("actions", sent, limits.ServiceLimits())
    with pytest.raises(InvalidInput, match=r"policy: .* declares its cost"):
        limits.check_together(Budget(1, [1]), Silent(), limits.ServiceLimits())


@dataclass(frozen=True)
class Silent(mp.RandomAction):
    """A policy without a cost."""

    cost = None  # type: ignore[assignment]
