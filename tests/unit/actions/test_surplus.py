"""What is demanded is delivered exactly, unless the set allows a surplus."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import refused
from scipy.optimize import linprog

import multiplay as mp
from multiplay import Transport, policies
from multiplay._support.builder import classes_of
from multiplay.actions import limited
from multiplay.policies import Policy
from multiplay.testing import check_actions
from multiplay.types import FloatArray, IntArray

TRUCKS = Transport([12, 10, 10, 10], [4] * 6, slack=True)  # 42 trucks for a demand of 24
SMALL = Transport([3, 3, 2], [2, 2], slack=True)
POLICIES = [
    kind.example()
    for kind in classes_of(policies).values()
    if isinstance(kind, type) and issubclass(kind, Policy)
]

LISTING = {  # policies that list all actions of a set, here too many
    "BestOfThreeWorlds",
    "ESCB",
    "ExplorationByOptimisation",
    "LinUCB",
    "OLSUCBC",
    "ScaledScribble",
}


def plans(supply: IntArray, demand: IntArray, lanes: IntArray, surplus: bool) -> IntArray:
    """List all plans with slack, or with a surplus too, by trying every plan."""
    limits = np.minimum(lanes, supply[:, None]).ravel()
    everything = np.array(list(product(*(range(n + 1) for n in limits))), dtype=np.int64)
    tables = everything.reshape(-1, len(supply), len(demand))
    arrives = tables.sum(axis=1)
    met = arrives >= demand if surplus else arrives == demand
    kept: IntArray = everything[(tables.sum(axis=2) <= supply).all(axis=1) & met.all(axis=1)]
    return kept


@given(
    demand=st.lists(st.integers(0, 2), min_size=1, max_size=3),
    more=st.lists(st.integers(0, 2), min_size=2, max_size=2),
    seed=st.one_of(st.none(), st.integers(0, 2**32)),
    surplus=st.booleans(),
)
@settings(max_examples=examples(30))
def test_the_plans_are_those_of_a_list(
    demand: list[int], more: list[int], seed: int | None, surplus: bool
) -> None:
    supply, wanted = np.array(more), np.array(demand)
    supply[0] += max(wanted.sum() - supply.sum(), 0)
    lanes, capacities = np.full((2, len(demand)), 9), None
    if seed is not None:
        lanes = capacities = np.random.default_rng(seed).integers(0, 3, (2, len(demand)))
    expected = plans(supply, wanted, lanes, surplus)
    if len(expected) == 0:
        with refused("capacities"):
            Transport(supply, wanted, capacities=capacities, slack=True, surplus=surplus)
        return
    day = Transport(supply, wanted, capacities=capacities, slack=True, surplus=surplus)
    found = day.enumerate()
    assert np.array_equal(np.unique(found, axis=0), np.unique(expected, axis=0))
    assert len(found) == len(expected)
    assert (day.n == expected.max(axis=0)).all()
    assert expected.sum(axis=1).max() == day.M
    assert day.m == (expected > 0).sum(axis=1).max()
    box = np.array(list(product(*(range(n + 2) for n in day.n)))[:2000])
    inside = (box[:, None] == expected[None]).all(axis=2).any(axis=1)
    assert (day.contains(box) == inside).all()


@pytest.mark.parametrize("surplus", [False, True])
def test_the_oracle_agrees_with_highs(surplus: bool) -> None:
    rng = np.random.default_rng(3)
    supply, demand = rng.integers(3, 9, 5), rng.integers(1, 5, 6)
    lanes = rng.integers(1, 5, (5, 6))
    for capacities in (None, lanes):
        day = Transport(supply, demand, capacities=capacities, slack=True, surplus=surplus)
        sent, arrives = np.kron(np.eye(5), np.ones(6)), np.kron(np.ones(5), np.eye(6))
        rows: dict[str, Any] = {"A_ub": sent, "b_ub": supply, "A_eq": arrives, "b_eq": demand}
        if surplus:
            both = np.vstack([sent, -arrives])
            rows = {"A_ub": both, "b_ub": np.concatenate([supply, -demand])}
        most = [None] * 30 if capacities is None else capacities.ravel().tolist()
        for costs in rng.normal(size=(20, 30)):
            answer = linprog(costs, **rows, bounds=[(0, n) for n in most])
            assert answer.success
            assert day.argmin(costs) @ costs == pytest.approx(answer.fun, abs=1e-9)


def test_the_sets_keep_the_contract() -> None:
    for day in (SMALL, Transport([3, 3, 2], [2, 2], surplus=True)):
        check_actions(day)
        check_actions(limited(day, np.full(6, 2), np.array([-1, 1, -1, -1, -1, -1])))


def test_a_surplus_includes_slack() -> None:
    one = Transport([3, 3], [2, 2], surplus=True)
    assert (one.slack, one.surplus, one.M) == (True, True, 6)
    assert repr(one) == "Transport(supply=[3, 3], demand=[2, 2], surplus=True)"
    assert one.enumerate().tolist() == (
        Transport([3, 3], [2, 2], slack=True, surplus=True).enumerate().tolist()
    )
    assert repr(SMALL) == "Transport(supply=[3, 3, 2], demand=[2, 2], slack=True)"
    assert one._facts()["surplus"] == "more than the demand may be delivered"
    assert "surplus" not in SMALL._facts()


def test_equal_sums_leave_nothing_to_choose() -> None:
    usual = Transport([1, 4, 5], [4, 6]).enumerate()
    for surplus in (False, True):
        assert (
            Transport([1, 4, 5], [4, 6], slack=True, surplus=surplus).enumerate() == usual
        ).all()


def test_a_shortage_has_no_surplus() -> None:
    lanes = [[2, 1], [3, 1]]
    for surplus in (False, True):
        day = Transport([5, 3], [2, 4], None, lanes, slack=True, shortage=1.0, surplus=surplus)
        arrives = day.enumerate().reshape(-1, 2, 2).sum(axis=1)
        assert (arrives <= day.demand).all()
        assert (arrives.sum(axis=1) == 4).all()


def test_fixed_units_beyond_the_demand_are_refused() -> None:
    fixed = np.full(6, -1)
    fixed[[0, 2]] = 2  # four units for a demand of two
    with refused("fixed"):
        limited(SMALL, SMALL.n, fixed)
    more = Transport([3, 3, 2], [2, 2], surplus=True)
    assert (limited(more, more.n, fixed).enumerate()[:, [0, 2]] == 2).all()


def excess(actions: Transport, policy: Policy) -> FloatArray:
    """Simulate losses of 0.5 for every unit: the regret is half of the units beyond the least."""
    world = mp.Stochastic(mp.Constant(np.full(actions.d, 0.5)))
    result = mp.simulate(actions, world, [policy], horizon=55, trials=2, seed=1)
    regret: FloatArray = result.regret.values
    return regret


@pytest.mark.filterwarnings("ignore:all actions of")
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_every_policy_delivers_the_demand(policy: Policy) -> None:
    assert (excess(SMALL, policy) == 0).all()


@pytest.mark.filterwarnings("ignore:all actions of")
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_every_policy_sends_24_trucks(policy: Policy) -> None:
    if type(policy).__name__ in LISTING:
        with pytest.raises(mp.InvalidInput, match="actions"):
            excess(TRUCKS, policy)
        return
    assert (excess(TRUCKS, policy) == 0).all()
    if isinstance(policy, mp.LBINF):  # a learner has no horizon of its own
        policy = mp.LBINF(horizon=55)
    learner = mp.Learner(TRUCKS, policy, seed=2)
    for _ in range(5):
        play = learner.ask()
        assert sum(play.plan.values()) == 24
        assert (play.action.reshape(4, 6).sum(axis=0) == 4).all()
        learner.tell(play.id, [[0.5] * units for units in play.action])


def test_a_surplus_is_used_by_a_policy_that_explores() -> None:
    """The tests above can fail: with a surplus, uniform exploration sends more."""
    more = Transport([12, 10, 10, 10], [4] * 6, surplus=True)
    assert excess(more, mp.GenLBINFV()).max() > 0


# ---------------------------------------------------------------- other sets


def test_a_network_keeps_exactly_what_is_demanded() -> None:
    """A node that takes what is left over is joined by free arcs from the suppliers only."""
    lanes = [(f"s{x}", f"d{y}") for x in range(3) for y in range(2)]
    left = [(f"s{x}", "left") for x in range(3)]
    supplies = {"s0": 3, "s1": 3, "s2": 2, "d0": -2, "d1": -2, "left": -4}
    network = mp.Network([*lanes, *left], supplies, [3] * 6 + [3] * 3, free=[6, 7, 8])
    assert np.array_equal(
        np.unique(network.enumerate(), axis=0), np.unique(SMALL.enumerate(), axis=0)
    )
    with pytest.raises(mp.InvalidInput, match="from the suppliers only"):
        mp.Network(lanes, {"s0": 3, "d0": -2})


@pytest.mark.parametrize("at_most", [False, True])
def test_a_budget_is_never_exceeded(at_most: bool) -> None:
    budget = mp.Budget(4, [3, 2, 2], at_most=at_most)
    units = budget.enumerate().sum(axis=1)
    assert units.max() == budget.M == 4
    assert units.min() == (0 if at_most else 4)
