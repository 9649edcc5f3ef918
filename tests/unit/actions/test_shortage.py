"""Bad days: too little supply, lanes that are closed, and nothing to do at all."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusal import refused

import multiplay as mp
from multiplay import ActionSet, Transport, actions
from multiplay._support.builder import Builder, classes_of
from multiplay._support.serialization import pack, settings, unpack
from multiplay.actions import limited
from multiplay.testing import check_actions
from multiplay.types import IntArray

small = st.integers(0, 3)


def most_served(supply: IntArray, demand: IntArray, lanes: IntArray) -> IntArray:
    """List all plans that deliver as many units as can be, by trying every plan."""
    limits = np.minimum(lanes, np.minimum.outer(supply, demand)).ravel()
    plans = np.array(list(product(*(range(n + 1) for n in limits))), dtype=np.int64)
    tables = plans.reshape(-1, len(supply), len(demand))
    fits = (tables.sum(axis=2) <= supply).all(axis=1) & (tables.sum(axis=1) <= demand).all(axis=1)
    plans = plans[fits]
    units = plans.sum(axis=1)
    best: IntArray = plans[units == units.max()]
    return best


@given(
    supply=st.lists(small, min_size=2, max_size=2),
    demand=st.lists(small, min_size=2, max_size=3),
    seed=st.one_of(st.none(), st.integers(0, 2**32)),
)
def test_a_shortage_serves_what_it_can(supply: Any, demand: Any, seed: int | None) -> None:
    shape, capacities = (len(supply), len(demand)), None
    if seed is not None:
        capacities = np.random.default_rng(seed).integers(0, 3, shape)
    slack = sum(supply) > sum(demand)
    lanes = np.full(shape, 9) if capacities is None else capacities
    wanted = most_served(np.array(supply), np.array(demand), lanes)
    unmet = sum(demand) - wanted[0].sum()
    day = Transport(supply, demand, capacities=capacities, slack=slack, shortage=2.5)
    if unmet > 0:
        assert np.array_equal(day.enumerate(), np.unique(wanted, axis=0))
        assert (day.n == wanted.max(axis=0)).all()
        assert all(sum(day.unmet(action).values()) == unmet for action in wanted)
        assert all(min(day.unmet(action).values()) >= 0 for action in wanted)
        with pytest.raises(mp.InvalidInput, match="write shortage="):
            Transport(supply, demand, capacities=capacities, slack=slack)
        return
    usual = Transport(supply, demand, capacities=capacities, slack=slack)
    costs = np.random.default_rng(0).integers(-1, 2, (20, day.d)).astype(float)
    assert (day.argmin(costs) == usual.argmin(costs)).all()
    assert np.array_equal(day.enumerate(), usual.enumerate())
    assert type(day.hull) is type(usual.hull)
    assert day.unmet(day.argmin(costs[0])) == {}


@pytest.mark.parametrize(
    "day",
    [
        Transport([3, 2], [4, 2, 1], shortage=1.0),
        Transport([3, 2], [4, 2, 1], shortage=0, sense="max"),
        Transport([3, 3], [2, 4], capacities=[[2, 1], [3, 1]], shortage=1),
        Transport([5, 3], [2, 4], capacities=[[2, 1], [3, 1]], slack=True, shortage=1),
        Transport([3], [2, 4], shortage=1),
    ],
    ids=repr,
)
def test_a_day_with_a_shortage_keeps_the_contract(day: Transport) -> None:
    check_actions(day)


def test_what_is_unmet_has_the_names_of_the_demanders() -> None:
    names = (["Lyon", "Metz"], ["north", "south"])
    day = Transport([1, 2], [3, 2], names=names, shortage=40)
    assert day.penalty == 40
    assert day.unmet([1, 0, 0, 2]) == {"unmet->north": 2, "unmet->south": 0}
    assert Transport([1, 2], [3, 2], shortage=1).unmet([1, 0, 0, 2]) == {
        "unmet->d1": 2,
        "unmet->d2": 0,
    }
    nameless = Transport([1, 2], [3, 2], names=list("abcd"), shortage=1)
    assert set(nameless.unmet([1, 0, 0, 2])) == {"unmet->d1", "unmet->d2"}
    usual = Transport([1, 2], [1, 2])
    assert (usual.unmet([1, 0, 0, 2]), usual.penalty, usual.shortage) == ({}, 0.0, None)
    part = limited(day, np.array([0, 9, 9, 9]), np.full(4, -1))
    assert part.penalty == 40
    assert part.unmet([0, 1, 1, 1]) == {"unmet->north": 2, "unmet->south": 0}


def test_a_shortage_is_saved() -> None:
    names = (["Lyon", "Metz"], ["north", "south"])
    day = Transport([1, 2], [3, 2], names=names, capacities=[[1, 1], [0, 2]], shortage=2.5)
    assert repr(day) == "Transport(supply=[1, 2], demand=[3, 2], capacities=..., shortage=2.5)"
    assert settings(day)["shortage"] == 2.5
    assert settings(Transport([1], [1]))["shortage"] is None
    again = unpack(*pack(day), Builder(classes_of(actions)))
    assert again.unmet([1, 0, 0, 2]) == {"unmet->north": 2, "unmet->south": 0}
    assert (again.enumerate() == day.enumerate()).all()


@pytest.mark.parametrize(
    ("argument", "build"),
    [
        ("supply, demand", lambda: Transport([3], [4])),
        ("supply, demand", lambda: Transport([3], [4], slack=True)),
        ("supply, demand", lambda: Transport([4], [3], shortage=1)),
        ("capacities", lambda: Transport([3, 1], [3, 1], capacities=[[2, 1], [0, 1]])),
        ("shortage", lambda: Transport([3], [4], shortage=-1)),
        ("shortage", lambda: Transport([3], [4], shortage=np.nan)),
        ("shortage", lambda: Transport([3], [4], shortage=np.inf)),
        ("shortage", lambda: Transport([3], [4], shortage=True)),
        ("supply", lambda: Transport([], [4], shortage=1)),
        ("demand", lambda: Transport([0], [])),
    ],
)
def test_bad_days_that_are_refused(argument: str, build: Any) -> None:
    with refused(argument):
        build()


EMPTY: list[ActionSet] = [
    Transport([0, 0], [0, 0]),
    Transport([0, 0], [3, 1], shortage=2),
    Transport([2, 1], [0, 0], slack=True, capacities=np.zeros((2, 2))),
    mp.Budget(0, [2, 3]),
    mp.Budget(3, [0, 0], at_most=True),
    mp.Network([("a", "b"), ("b", "c")], {}, [2, None]),
    mp.Path([("s", "t")], "s", "t", units=0),
    mp.Knapsack([4, 5], 0),
    mp.Knapsack([4, 5], 3),
    mp.Coverage(0, [1, 2]),
    limited(mp.Budget(5, [4, 4]), np.array([4, 4]), np.array([2, 3])),
]
CHANGING = [
    policy.example() if policy not in (mp.GenLBINFV, mp.LBINF) else policy(any_horizon=True)
    for policy in (getattr(mp, name) for name in mp.__all__)
    if isinstance(policy, type) and issubclass(policy, mp.Policy) and policy.changing
]


@pytest.mark.parametrize("day", EMPTY, ids=repr)
def test_a_day_without_a_choice(day: ActionSet) -> None:
    (only,) = day.enumerate()
    check_actions(day)
    for policy in CHANGING:
        if policy.needs_linear and not day.linear:
            continue
        state, rng = policy.start(day, 10, 2), np.random.default_rng(0)
        for _ in range(3):
            play = policy.choose(day, state, rng)
            assert (play.action == only).all()
            total = play.action * rng.random(play.action.shape)
            policy.update(day, state, play, mp.Feedback(play.action, total), rng)
            assert all(np.isfinite(array).all() for array in state.values())


@pytest.mark.filterwarnings("ignore:all actions of")
def test_simulation_of_days_without_a_unit() -> None:
    world = mp.Stochastic(mp.Bernoulli(np.full(4, 0.5)))
    policies = {type(policy).__name__: policy for policy in CHANGING}
    result = mp.simulate(EMPTY[0], world, policies, horizon=5, trials=2, seed=0)
    assert (result.regret == 0).all()


def test_a_report_of_a_day_with_a_shortage_may_come_twice() -> None:
    """What is unmet stands in the plan, so people report it: also when the play is over."""
    day = Transport([1, 1], [2, 2], names=(["A", "B"], ["x", "y"]), shortage=300)
    learner = mp.Learner(day, mp.GenCTS(), loss_range=(0, 250))
    play = learner.ask()
    report = {name: [100.0] * units for name, units in play.plan.items()}
    assert any(name.startswith("unmet->") for name in report)
    learner.tell(play.id, report)
    assert learner.tell(play.id, report).repeated
    with refused(
        "losses: expected names such as 'A->x', got 'A->z'. Check the spelling. Did you mean 'A->"
    ):
        learner.tell(play.id, report | {"A->z": [], "B->zz": []})
