"""Part of a set for one day: at most so many units of some arms, exactly so many of others."""

from typing import Any

import numpy as np
import pytest
from effort import examples
from examples_of_sets import DIAMOND, SETS, Shifts
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import refused

import multiplay as mp
from multiplay import ActionSet, actions
from multiplay._support.builder import Builder, classes_of
from multiplay._support.serialization import pack, unpack
from multiplay.actions import limited
from multiplay.hull import Regulariser
from multiplay.testing import check_actions
from multiplay.types import IntArray

LINEAR = [one for one in SETS if one.linear and not isinstance(one, Shifts)]
CHANGING = [
    mp.GenCTS(),
    mp.GaussianCTS(),
    mp.CombUCB(),
    mp.ESCB(),
    mp.FPLIX(),
    mp.GenLBINFV(any_horizon=True),
    mp.LBINF(any_horizon=True),
    mp.Hybrid(),
    mp.GenAdaINF(),
]


def within(everything: IntArray, most: IntArray, fixed: IntArray) -> IntArray:
    """Return the actions that keep the limits, in order."""
    kept = (everything <= most) & ((fixed < 0) | (everything == fixed))
    return np.unique(everything[kept.all(axis=1)], axis=0)


def random_limits(one: ActionSet, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw limits that some action of the set keeps, unless they are drawn without any."""
    everything = one.all_actions()
    some = everything[rng.integers(len(everything))]
    fixed = np.where(rng.random(one.d) < rng.choice([0.0, 0.3]), some, -1)
    most = np.where(rng.random(one.d) < 0.5, rng.integers(some, one.n + 1), one.n)
    if rng.random() < 0.2:
        most = np.where(fixed >= 0, most, rng.integers(0, one.n + 1))
    return most, fixed


def random_set(kind: str, rng: np.random.Generator) -> ActionSet:
    """Draw a small set of a kind; some draws are refused."""
    rows, cols = rng.integers(1, 4, 2)
    supply = rng.integers(0, 4, rows)
    demand = rng.multinomial(supply.sum(), np.ones(cols) / cols)
    arcs = [(int(v), int(w)) for v, w in rng.integers(0, 4, (5, 2)) if v < w]
    caps = rng.integers(0, 4, 4)
    match kind:
        case "Transport":
            return mp.Transport(supply, demand)
        case "lanes":
            return mp.Transport(
                supply + 1,
                demand,
                slack=True,
                capacities=rng.integers(0, 4, (rows, cols)),
                surplus=bool(rng.random() < 0.5),
            )
        case "Network":
            return mp.Network([(0, 3), *arcs], {0: 2, 3: -2}, [2] * (len(arcs) + 1), free=[0])
        case "Path":
            return mp.Path([*DIAMOND, *DIAMOND[:2]], "s", "t", units=int(rng.integers(1, 4)))
        case "Assignment":
            return mp.Assignment(int(rows), int(cols))
        case "Budget":
            return mp.Budget(int(rng.integers(0, 6)), caps, at_most=bool(rng.random() < 0.5))
        case "Knapsack":
            return mp.Knapsack(rng.integers(1, 9, 4) / 10, 1.2, limits=3)
        case "Coverage":
            return mp.Coverage(3, rng.integers(1, 9, 3))
        case _:
            return mp.Explicit(rng.integers(0, 3, (6, 4)))


@pytest.mark.parametrize(
    "kind",
    [
        "Transport",
        "lanes",
        "Network",
        "Path",
        "Assignment",
        "Budget",
        "Knapsack",
        "Coverage",
        "any",
    ],
)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(30))
def test_the_actions_are_those_that_keep_the_limits(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    try:
        one = random_set(kind, rng)
    except mp.InvalidInput:
        return
    most, fixed = random_limits(one, rng)
    wanted = within(one.enumerate(), most, fixed)
    if len(wanted) == 0:
        with pytest.raises(mp.InvalidInput, match=r"^(at_most|fixed|at_most, fixed): "):
            limited(one, most, fixed)
        return
    part = limited(one, most, fixed)
    assert np.array_equal(np.unique(part.enumerate(), axis=0), wanted)
    assert (part.n == wanted.max(axis=0)).all()
    assert wanted.sum(axis=1).max() == part.M
    assert (wanted > 0).sum(axis=1).max() == part.m
    assert part.contains(one.all_actions()).sum() == len(wanted)
    means = rng.random(one.d)
    best = part.sign * part.value(part.best(means), means)
    assert best == pytest.approx((part.sign * one.value(wanted, means)).min())
    assert part.names == one.names
    assert part.sense == one.sense


@pytest.mark.slow
@pytest.mark.parametrize("one", SETS[:-1], ids=repr)
def test_every_set_that_is_limited_keeps_the_contract(one: ActionSet) -> None:
    rng = np.random.default_rng(0)
    made = 0
    while made < 2:
        most, fixed = random_limits(one, rng)
        wanted = within(one.enumerate(), most, fixed)
        if len(wanted):
            part = limited(one, most, fixed)
            assert np.array_equal(np.unique(part.enumerate(), axis=0), wanted)
            check_actions(part)
            made += 1


@pytest.mark.parametrize("one", LINEAR, ids=repr)
def test_the_step_is_that_of_the_list_of_actions(one: ActionSet) -> None:
    rng = np.random.default_rng(1)
    some = one.enumerate()[-1]
    arm = int(some.argmax())
    fixed = np.where(np.arange(one.d) == arm, some, -1)
    part = limited(one, one.n, fixed)
    twin = mp.Explicit(within(one.enumerate(), one.n, fixed))
    costs, beta = 5 * rng.random((3, one.d)), 1 + rng.random((3, one.d))
    psi = Regulariser(barrier=np.ones(3), entropy=np.full(3, 7.0))
    found, slow = (s.hull.minimise(costs, beta, psi, s.hull.start(3)) for s in (part, twin))
    assert np.allclose(found["x"], slow["x"], rtol=1e-6, atol=1e-9)
    assert (found["x"][:, arm] == fixed[arm]).all()
    assert (found["rest"][:, arm] == 0).all()


@pytest.mark.parametrize("policy", CHANGING, ids=lambda one: type(one).__name__)
def test_every_policy_plays_what_is_left(policy: mp.Policy) -> None:
    plans = mp.Transport([3, 4, 5], [4, 6, 2])
    most, fixed = plans.n.copy(), np.full(9, -1)
    most[0], most[4], fixed[8] = 0, 2, 1
    part, rng = limited(plans, most, fixed), np.random.default_rng(0)
    state = policy.start(part, 100, 4)
    for _ in range(30):
        play = policy.choose(part, state, rng)
        assert part.contains(play.action).all()
        total = play.action * rng.random(play.action.shape)
        policy.update(part, state, play, mp.Feedback(play.action, total), rng)
        assert all(np.isfinite(array).all() for array in state.values())


def test_limits_of_limits_add_up() -> None:
    one = mp.Budget(6, [4, 4, 4])
    free = np.full(3, -1)
    once = limited(one, np.array([4, 1, 4]), np.array([3, -1, -1]))
    assert limited(once, np.array([9, 9, 2]), free).enumerate().tolist() == [[3, 1, 2]]
    with refused("fixed"):
        limited(once, one.n, np.array([2, -1, -1]))


def test_what_is_known_to_cost_more_counts() -> None:
    one, far = mp.Budget(6, [4, 4, 4]), np.array([0.0, 5.0, 0.0])
    part = limited(one, np.array([4, 4, 3]), np.array([1, -1, -1]))
    sooner = limited(one.shifted(far), np.array([4, 4, 3]), np.array([1, -1, -1]))
    for dear in (part.shifted(far), sooner):
        assert dear.best([0.5, 0.1, 0.9]).tolist() == [1, 2, 3]
        assert dear.value([1, 2, 3], 0.0) == 10
    assert part.best([0.5, 0.1, 0.9]).tolist() == [1, 4, 1]


def test_a_limited_set_is_saved_with_its_settings() -> None:
    part = limited(mp.Transport([1, 4, 5], [4, 6]), np.array([1, 1, 0, 9, 9, 9]), np.full(6, -1))
    again = unpack(*pack(part), Builder(classes_of(actions)))
    assert repr(again) == repr(part)
    assert (again.enumerate() == part.enumerate()).all()


PLANS = mp.Transport([1, 4, 5], [4, 6], names=(["Lyon", "Lille", "Metz"], ["north", "south"]))


@pytest.mark.parametrize(
    ("argument", "most", "fixed"),
    [
        ("fixed", [9] * 6, [2, -1, -1, -1, -1, -1]),  # there is but one unit
        ("fixed", [0, 9, 9, 9, 9, 9], [1, -1, -1, -1, -1, -1]),
        ("fixed", [9] * 6, [1, 1, -1, -1, -1, -1]),
        ("fixed", [9] * 6, [0.5, -1, -1, -1, -1, -1]),
        ("fixed", [9] * 6, [-2, -1, -1, -1, -1, -1]),
        ("fixed", [9] * 6, [-1]),
        ("fixed", [9] * 6, [np.nan] * 6),
        ("at_most", [0, 9, 0, 9, 0, 9], [-1] * 6),
        ("at_most", [0.5] * 6, [-1] * 6),
        ("at_most", [-1] * 6, [-1] * 6),
        ("at_most", [9], [-1] * 6),
        ("at_most, fixed", [9, 9, 0, 9, 0, 9], [0, -1, -1, -1, -1, -1]),
    ],
)
def test_limits_that_cannot_be(argument: str, most: Any, fixed: Any) -> None:
    with refused(argument):
        limited(PLANS, most, fixed)


@pytest.mark.parametrize("one", SETS[:-1], ids=repr)
def test_what_contradicts_the_set_is_refused(one: ActionSet) -> None:
    with refused("fixed"):
        limited(one, one.n, one.n + 1)


def test_an_oracle_alone_cannot_be_limited() -> None:
    with refused("actions"):
        limited(Shifts(), np.array([2, 2]), np.array([-1, -1]))
    nobody: Any = None
    with refused("actions"):
        actions.Limited(nobody, [1], [1])
    with pytest.raises(mp.InvalidInput, match="at_most, exclude and fixed"):
        limited(Shifts(), np.array([2, 2]), np.array([-1, -1]))
