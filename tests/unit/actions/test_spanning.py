"""Actions that span a set, found by its oracle, against the rank of all of its actions."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from examples_of_sets import SETS
from refusal import refused

from multiplay import (
    ActionSet,
    Assignment,
    Budget,
    Explicit,
    Knapsack,
    Matching,
    OracleSet,
    SpanningTree,
    Transport,
)
from multiplay.types import FloatArray, IntArray

MORE: list[ActionSet] = [
    Transport([1, 4, 5], [4, 6]),
    Transport([2, 0, 3], [0, 4, 1]),  # some arms can never be played
    Transport([2, 2, 2], [2, 2, 2]),
    Budget(3, [1] * 7),
    Explicit([[0, 0]]),
    Explicit([[0, 0], [3, 6]]),
    Explicit([[10**6, 1], [10**6, 0]]),
    Explicit([[10**9, 1], [10**9, 0]]),
    Explicit([[1, 1, 2], [2, 2, 4], [3, 3, 6]]),
]


def first_columns(rows: IntArray) -> list[int]:
    """Return the columns that are independent of those before them."""
    ranks = [0, *(np.linalg.matrix_rank(rows[:, : i + 1]) for i in range(rows.shape[1]))]
    return np.flatnonzero(np.diff(ranks)).tolist()


def check(actions: ActionSet) -> None:
    everything, basis = actions.enumerate(), actions.spanning
    rank = np.linalg.matrix_rank(everything)
    assert basis.s == rank
    assert basis.E.shape == (rank, actions.d)
    assert actions.contains(basis.E).all()
    assert np.array_equal(basis.X, basis.E[:, basis.J])
    assert rank == 0 or np.linalg.matrix_rank(basis.X) == rank
    assert np.isclose(basis.log_det, np.linalg.slogdet(basis.X.T @ basis.X)[1])
    assert basis.J.tolist() == first_columns(everything)
    if rank > 0:  # the other entries of an action follow from those in J
        weights = np.linalg.solve(basis.X.T, everything[:, basis.J].T)
        assert np.allclose(weights.T @ basis.E, everything, atol=1e-6)


@pytest.mark.parametrize("actions", [*SETS, *MORE], ids=repr)
def test_they_span_all_actions(actions: ActionSet) -> None:
    check(actions)


def test_random_sets_are_spanned() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        rank, d = rng.integers(1, 5), rng.integers(1, 9)
        rows = rng.integers(0, 4, (rng.integers(1, 12), rank)) @ rng.integers(0, 3, (rank, d))
        check(Explicit(np.unique(rows, axis=0)))


def test_single_arms_come_in_their_order() -> None:
    basis = Budget(1, [1] * 6).spanning
    assert np.array_equal(basis.E, np.eye(6))
    assert basis.J.tolist() == list(range(6))


@pytest.mark.parametrize(
    ("actions", "s"),
    [
        *((Assignment(n), (n - 1) ** 2 + 1) for n in (7, 12, 20)),
        (Assignment(5, 9), 5 * 8 + 1),
        (Transport([10**9] * 4, [10**9] * 4), 3 * 3 + 1),
        (Budget(10**9, [10**9] * 60), 60),
        (Matching([(i, 100 + j) for i in range(8) for j in range(8)]), 64),
        (SpanningTree([(i, j) for i in range(9) for j in range(i)]), 36),
    ],
    ids=repr,
)
def test_sets_too_large_to_list_have_the_dimension_that_is_known(
    actions: ActionSet, s: int
) -> None:
    assert actions.spanning.s == s
    assert np.linalg.matrix_rank(actions.spanning.X) == s


class Counted(OracleSet):
    """A set that counts how often it is asked."""

    def __init__(self, d: int) -> None:
        self.asked = 0
        super().__init__(d=d)

    def solve(self, costs: FloatArray) -> Any:
        self.asked += 1
        return 1 * (np.arange(len(costs)) == costs.argmin())


def test_two_questions_for_each_arm_and_no_more_later() -> None:
    actions = Counted(7)
    before = actions.asked
    basis = actions.spanning
    assert actions.asked - before <= 2 * 7
    assert actions.spanning is basis


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))]
)
def test_copies_of_a_set_keep_them(copied: Any) -> None:
    actions = Transport([1, 4, 5], [4, 6])
    for _ in range(2):  # before they are computed, and after
        twin = copied(actions)
        assert np.array_equal(twin.spanning.E, actions.spanning.E)
        assert np.array_equal(twin.spanning.J, actions.spanning.J)
        assert twin.spanning.X.flags.writeable


def test_too_many_dimensions_are_refused_soon() -> None:
    with refused("actions: expected a set of at most 500 dimensions"):
        _ = Budget(3, [1] * 600).spanning
    with refused("actions: expected a set of at most 10000 arms"):
        _ = Knapsack([1.0] * 10_001, 3).spanning
    assert Budget(1, [1] * 500).spanning.s == 500
