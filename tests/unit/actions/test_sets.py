"""Every action set against its contract, HiGHS, and itself in another form."""

import copy
import pathlib
import sys
from typing import Any

import numba
import numpy as np
import pytest
from effort import examples
from examples_of_sets import DIAMOND, SETS, Shifts
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from multiplay import (
    LBINF,
    ActionSet,
    Assignment,
    Budget,
    Coverage,
    Duplicated,
    Explicit,
    Feedback,
    GenCTS,
    GenLBINFV,
    Hybrid,
    IntegerProgram,
    InvalidInput,
    Knapsack,
    Learner,
    Matching,
    Network,
    OracleSet,
    Path,
    Play,
    Policy,
    Streams,
    Transport,
)
from multiplay.actions.flow import FlowSet
from multiplay.random import POLICY
from multiplay.testing import check_actions, check_policy, strategies
from multiplay.types import FloatArray

POLICIES: list[Policy] = [
    GenCTS(),
    GenLBINFV(),
    Duplicated(GenCTS()),
    Duplicated(GenLBINFV(prediction="gd")),
    Hybrid(),
    LBINF(),
    Duplicated(Hybrid()),
    Duplicated(LBINF()),
]


def is_defined(policy: Policy, actions: ActionSet) -> bool:
    """FTRL wants a linear objective; one oracle says nothing about copies."""
    if isinstance(policy, Duplicated):
        return not isinstance(actions, Shifts) and is_defined(policy.policy, actions)
    return isinstance(policy, GenCTS) or actions.linear


@pytest.mark.parametrize("actions", SETS, ids=repr)
def test_contract(actions: ActionSet) -> None:
    check_actions(actions)


@pytest.mark.parametrize("actions", SETS, ids=repr)
def test_actions_are_in_row_order(actions: ActionSet) -> None:
    """Kernels would be compiled again for another order of memory."""
    costs = np.random.default_rng(0).random((3, actions.d))
    assert actions.argmin(costs).flags.c_contiguous
    assert actions.enumerate().flags.c_contiguous


@pytest.mark.slow
@pytest.mark.parametrize("actions", SETS, ids=repr)
def test_policies(actions: ActionSet) -> None:
    for policy in POLICIES:
        if is_defined(policy, actions):
            check_policy(policy, actions)


@given(
    actions=strategies.action_sets(),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=examples(300))
def test_contract_on_random_sets(actions: ActionSet, seed: int) -> None:
    check_actions(actions, seed)


@given(actions=strategies.programs(), seed=st.integers(0, 2**32))
@settings(max_examples=examples(10))
def test_contract_on_random_programs(actions: IntegerProgram, seed: int) -> None:
    check_actions(actions, seed)


@given(
    actions=st.one_of(
        strategies.loose_transports(),
        strategies.networks(),
        strategies.assignments(),
        strategies.budgets(),
        strategies.path_sets(),
    ),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=examples(100))
def test_flows_equal_highs(actions: FlowSet, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arcs = np.arange(len(actions.capacity))
    equations = np.zeros((len(actions.graph.balance), len(arcs)))
    equations[actions.graph.tail, arcs] += 1
    equations[actions.graph.head, arcs] -= 1
    for costs in (rng.normal(size=actions.d), rng.integers(-2, 3, actions.d).astype(float)):
        all_costs = np.zeros(len(arcs))
        all_costs[actions.arms] = costs
        bounds = [(0, int(capacity)) for capacity in actions.capacity]
        answer = linprog(all_costs, A_eq=equations, b_eq=actions.graph.balance, bounds=bounds)
        assert answer.success
        assert actions.argmin(costs) @ costs == pytest.approx(answer.fun, abs=1e-7)


def rows_of(actions: ActionSet) -> Explicit:
    return Explicit(actions.enumerate(), sense=actions.sense)


BUDGET_ROWS = [[1, 1, 1, 1, 1], [-1, -1, -1, -1, -1]]
LANES = [[1, 1, 0, 0], [0, 0, 1, 1], [-1, 0, -1, 0], [0, -1, 0, -1]]
DEMANDED = [[1, 0, 1, 0], [0, 1, 0, 1]]
PATHS = [[1, 1, 0, 0, 0], [-1, -1, 0, 0, 0], [-1, 0, 1, 0, 1], [1, 0, -1, 0, -1]]
PATHS += [[0, -1, 0, 1, -1], [0, 1, 0, -1, 1]]
THREE_WAYS: list[list[ActionSet]] = [
    [Budget(2, [1] * 5), IntegerProgram(BUDGET_ROWS, [2, -2], (0, 1))],
    [Budget(4, [3, 1, 2, 2, 1]), IntegerProgram(BUDGET_ROWS, [4, -4], (0, [3, 1, 2, 2, 1]))],
    [
        Budget(4, [3, 1, 2], at_most=True, sense="max"),
        IntegerProgram([[1, 1, 1]], [4], (0, [3, 1, 2]), "max"),
    ],
    [Transport([3, 4], [2, 3], surplus=True), IntegerProgram(LANES, [3, 4, -2, -3])],
    [
        Transport([3, 4], [2, 3], slack=True),
        IntegerProgram([*LANES, *DEMANDED], [3, 4, -2, -3, 2, 3]),
    ],
    [
        Path(DIAMOND, "s", "t", units=2),
        IntegerProgram(PATHS, [2, -2, 0, 0, 0, 0]),
        Network(DIAMOND, {"s": 2, "t": -2}),
    ],
    [
        Knapsack([3, 4, 5], 10, limits=2),
        IntegerProgram([[3, 4, 5]], [10], (0, 2), "max"),
    ],
    [Assignment(2, 3), Transport([1, 1, 1], [1, 1, 1])],
]


@pytest.mark.slow
@pytest.mark.parametrize("ways", THREE_WAYS[:-1], ids=lambda ways: repr(ways[0]))
def test_the_same_set_in_three_ways_has_the_same_marginals(ways: list[ActionSet]) -> None:
    """One history of plays and losses, judged in every form: x(t) agrees to 1e-6."""
    policy, T = GenLBINFV(), 150
    forms = [*ways, rows_of(ways[0])]
    states = [policy.start(form, T, 1) for form in forms]
    rng, draws = Streams.spawn(0, POLICY, [0]), np.random.default_rng(0)
    means = np.linspace(0.1, 0.9, forms[0].d)
    for _ in range(T):
        plays = [policy.choose(form, state, rng) for form, state in zip(forms, states, strict=True)]
        for play in plays[1:]:
            assert np.allclose(play.memo["x"], plays[0].memo["x"], rtol=0, atol=1e-6)
        count = plays[0].action
        feedback = Feedback(count, draws.binomial(count, means).astype(float))
        for form, state, play in zip(forms, states, plays, strict=True):
            policy.update(form, state, Play(count, play.memo), feedback, rng)


def test_a_matching_of_everyone_is_an_assignment() -> None:
    """With costs of -10 and below every matching is as large as can be."""
    rng = np.random.default_rng(0)
    for rows, cols in [(3, 3), (2, 4), (5, 2)]:
        edges = [(x, f"y{y}") for x in range(rows) for y in range(cols)]
        matchings, assignments = Matching(edges), Assignment(rows, cols)
        costs = rng.random((20, rows * cols)) - 10
        assert (matchings.argmin(costs) == assignments.argmin(costs)).all()


def test_reward_and_loss_are_mirror_images() -> None:
    """Where all actions have the same size, maximising r and minimising 1 - r is the same."""
    rng = np.random.default_rng(0)
    means = rng.random((50, 6))
    gain, loss = Budget(3, [2] * 6, sense="max"), Budget(3, [2] * 6)
    assert (gain.best(means) == loss.best(1 - means)).all()
    assert gain.sign == -1


def test_the_empty_knapsack_does_not_win() -> None:
    sack = Knapsack([3, 4, 5], 10)
    assert (sack.best(np.full((1, 3), 0.01)).sum(axis=1) > 0).all()
    assert sack.sense == "max"


def test_real_weights_are_what_people_write() -> None:
    assert Knapsack([0.1], 0.3).n.tolist() == [3]  # 3 * 0.1 > 0.3 in floating point
    assert Knapsack([0.7, 0.2], 2.1).n.tolist() == [3, 10]
    assert Knapsack([1e-9, 1.0], 1.0).n.tolist() == [10**9, 1]
    assert Knapsack([1 / 3], 1).n.tolist() == [3]


def test_coverage_equals_brute_force_on_copies_of_different_chances() -> None:
    rng = np.random.default_rng(0)
    for weights in ([1.0, 2.0], [3.0, 0.0, 1.0]):
        copies = Coverage(3, weights).duplicate().actions
        everything = copies.enumerate()
        for means in rng.random((30, copies.d)):
            best = copies.value(copies.best(means), means)
            assert best == pytest.approx(copies.value(everything, means).max(), rel=1e-12)


def test_coverage_equals_simulated_successes() -> None:
    """1 - (1 - mu)^a is the chance of a success in a attempts: z-test at level 1e-6."""
    calls, means, draws = Coverage(5, [2.0, 1.0]), np.array([0.3, 0.6]), 100_000
    rng, action = np.random.default_rng(0), np.array([3, 2])
    earned = (calls.weights * (rng.binomial(action, means, (draws, 2)) > 0)).sum(axis=1)
    error = earned.std() / draws**0.5
    assert abs(earned.mean() - calls.value(action, means)) < 4.9 * error


def test_oracle_sets_remember_and_count() -> None:
    shifts = Shifts()
    costs = np.array([[0.3, 0.4], [0.3, 0.4], [-0.3, 0.4]])
    before = shifts.calls
    shifts.argmin(costs)
    assert shifts.calls == before + 2
    shifts.argmin(costs)
    assert shifts.calls == before + 2
    for number in range(2000):  # memory is bounded
        shifts.argmin([number, 0.5])
    assert len(shifts._memory) <= 1000


class TwoUnits(ActionSet):
    """Two units in all. Membership is written for one vector, as people do."""

    def __init__(self) -> None:
        self.n = np.array([2, 2, 1])
        super().__init__()

    def oracle(self, costs: FloatArray) -> Any:
        return Budget(2, self.n).argmin(costs)

    def contains(self, action: Any) -> Any:
        assert action.shape == (3,)
        return (action >= 0).all() and (action <= self.n).all() and action.sum() == 2


class Couples(OracleSet):
    """Two of four, known by an oracle and a membership for one vector."""

    def __init__(self) -> None:
        super().__init__(d=4)

    def solve(self, costs: FloatArray) -> Any:
        return np.argsort(np.argsort(costs, kind="stable"), kind="stable") < 2

    def contains(self, action: Any) -> Any:
        assert action.shape == (4,)
        return action.sum() == 2 and set(action) <= {0, 1}


class Mixed:
    def contains(self, action: Any) -> Any:
        return action.sum() == 2


class CouplesByMixture(Mixed, Couples):
    pass


class AlongTheLastAxis(TwoUnits):
    """The way that was needed before."""

    def contains(self, action: Any) -> Any:
        a = np.asarray(action)
        return (a >= 0).all(axis=-1) & (a <= self.n).all(axis=-1) & (a.sum(axis=-1) == 2)


class AllAtOnce(AlongTheLastAxis, vectorised=True):
    def contains(self, action: Any) -> Any:
        self.asked = getattr(self, "asked", 0) + 1
        return AlongTheLastAxis.contains(self, action)


@pytest.mark.parametrize("own", [TwoUnits, AlongTheLastAxis, AllAtOnce, Couples, CouplesByMixture])
def test_membership_is_written_for_one_vector(own: type[ActionSet]) -> None:
    actions = own()
    twin = Budget(2, actions.n)
    assert sorted(map(tuple, actions.enumerate())) == sorted(map(tuple, twin.enumerate()))
    box = np.indices((twin.n + 1).tolist()).reshape(twin.d, -1).T
    assert (actions.contains(box) == twin.contains(box)).all()
    assert actions.contains(box[:8].reshape(2, 4, -1)).shape == (2, 4)
    assert actions.contains(box[3].tolist()) == twin.contains(box[3])
    check_actions(actions)


def test_a_set_that_is_vectorised_is_asked_once() -> None:
    actions = AllAtOnce()
    actions.enumerate()
    assert actions.asked == 1


EXPOSED = [
    "n",
    "supply",
    "demand",
    "capacities",
    "caps",
    "capacity",
    "arms",
    "weights",
    "limits",
    "A",
    "b",
    "actions",
]


@pytest.mark.parametrize("actions", SETS, ids=repr)
def test_what_a_set_shows_cannot_be_written_to(actions: ActionSet) -> None:
    assert not copy.deepcopy(actions).n.flags.writeable
    shown = [getattr(actions, name, None) for name in EXPOSED]
    arrays = [array for array in shown if isinstance(array, np.ndarray)]
    assert arrays
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_arrays_of_the_caller_stay_the_callers() -> None:
    weights, rows, most = np.array([1.0, 2.0]), np.ones((1, 2)), np.ones(1)
    sets = [Knapsack(weights, 3.0), Coverage(2, weights), IntegerProgram(rows, most)]
    before = [actions.argmin([-1.0, -1.5]).tolist() for actions in sets]
    for array in (weights, rows, most):
        array += 1.0
    sets[2]._memory.clear()  # type: ignore[attr-defined]
    assert [actions.argmin([-1.0, -1.5]).tolist() for actions in sets] == before


def test_kernels_are_not_compiled_again_for_read_only_arrays() -> None:
    for actions in (Budget(2, [1, 2, 1]), Knapsack([1, 2, 1], 3), Transport([1, 2], [2, 1])):
        check_policy(GenCTS(), actions)
        check_policy(GenLBINFV(), actions)
    modules = [
        module for name, module in sys.modules.items() if name.startswith("multiplay.kernels")
    ]
    kernels = [thing for module in modules for thing in vars(module).values()]
    compiled = [kinds for kernel in kernels for kinds in getattr(kernel, "signatures", ())]
    arrays = [kind for kinds in compiled for kind in kinds if isinstance(kind, numba.types.Array)]
    assert arrays
    assert all(kind.mutable for kind in arrays)


def test_all_actions_are_listed_once_for_each_set() -> None:
    first, second = Budget(2, [1, 1, 1]), Budget(2, [1, 1, 1])
    everything = first.all_actions()
    assert (everything == first.enumerate()).all()
    assert np.shares_memory(everything, first.all_actions(limit=3))
    assert not np.shares_memory(everything, second.all_actions())
    with pytest.raises(ValueError, match="read-only"):
        everything[0, 0] = 5
    with pytest.raises(InvalidInput):
        first.all_actions(limit=2)


def test_huge_sets_cost_nothing_to_build() -> None:
    assert Budget(10**12, [10**15, 10**11]).n.tolist() == [10**12, 10**11]
    assert Path([(0, 1), (0, 1)], 0, 1, units=10**12).n.tolist() == [10**12, 10**12]
    assert Knapsack([1, 3], 10**15).n.tolist() == [10**15, 10**15 // 3]


@pytest.mark.parametrize("actions", SETS[:-1], ids=repr)
def test_learners_on_every_set_are_saved_and_loaded(
    actions: ActionSet, tmp_path: pathlib.Path
) -> None:
    policy = GenLBINFV(horizon=1000) if actions.linear else GenCTS()
    learner = Learner(actions, policy, seed=1)
    for _ in range(3):
        play = learner.ask()
        learner.tell(play.id, (play.action / 2).tolist())
    learner.save(tmp_path / "learner.npz")
    loaded = Learner.load(tmp_path / "learner.npz")
    assert type(loaded.actions) is type(actions)
    assert loaded.actions.sense == actions.sense
    for _ in range(3):
        assert loaded.ask().plan == learner.ask().plan
