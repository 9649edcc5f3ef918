import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from multiplay import InvalidInput, Transport
from multiplay.testing import check_actions
from multiplay.testing.strategies import random_transport, transports

PAPER = Transport([1, 4, 5], [4, 6])


def highs_value(plans: Transport, costs: np.ndarray) -> float:
    """Return the smallest cost by scipy's HiGHS, which knows nothing of networks."""
    rows, cols = len(plans.supply), len(plans.demand)
    equations = np.vstack(
        [np.kron(np.eye(rows), np.ones(cols)), np.kron(np.ones(rows), np.eye(cols))]
    )
    margins = np.concatenate([plans.supply, plans.demand]).astype(float)
    answer = linprog(costs, A_eq=equations, b_eq=margins, method="highs")
    assert answer.success, answer.message
    return float(answer.fun or 0.0)


@given(plans=transports(), data=st.data())
def test_oracle_equals_highs(plans: Transport, data: st.DataObject) -> None:
    ties = st.integers(-2, 2).map(float)
    fine = st.floats(-1, 1, allow_subnormal=False)
    cost = data.draw(st.sampled_from([ties, fine]))
    costs = np.array(data.draw(st.lists(cost, min_size=plans.d, max_size=plans.d)))
    best = plans.argmin(costs)
    assert plans.contains(best)
    assert plans.value(best, costs) == pytest.approx(
        highs_value(plans, costs), rel=1e-7, abs=1e-7 * plans.M
    )


def test_oracle_equals_highs_on_larger_problems() -> None:
    rng = np.random.default_rng(0)
    for rows, cols in [(20, 30), (40, 40), (1, 50), (60, 2)]:
        plans = random_transport(rng, rows, cols, 1000)
        costs = rng.random(plans.d)
        value = plans.value(plans.argmin(costs), costs)
        assert value == pytest.approx(highs_value(plans, costs), rel=1e-9)


def brute_force(plans: Transport) -> set[tuple[int, ...]]:
    boxes = itertools.product(*(range(int(n) + 1) for n in plans.n))
    return {box for box in boxes if plans.contains(np.array(box))}


@pytest.mark.parametrize(
    ("supply", "demand"),
    [
        ([1, 4, 5], [4, 6]),
        ([2, 0, 1], [1, 2]),
        ([3], [1, 1, 1]),
        ([1, 1, 1], [1, 1, 1]),
        ([2], [2]),
    ],
)
def test_enumeration_equals_brute_force(supply: list[int], demand: list[int]) -> None:
    plans = Transport(supply, demand)
    listed = [tuple(row) for row in plans.enumerate().tolist()]
    assert len(listed) == len(set(listed))
    assert set(listed) == brute_force(plans)


def test_sizes_of_the_paper() -> None:
    assert (PAPER.d, len(PAPER.enumerate()), PAPER.n.sum(), PAPER.M, PAPER.m) == (6, 9, 19, 10, 5)
    assert PAPER.n.tolist() == [1, 1, 4, 4, 4, 5]
    assert PAPER.duplicate().actions.d == 20
    other = Transport([1, 3, 4], [1, 1, 2, 4])
    assert (other.d, other.n.sum(), other.duplicate().actions.d) == (12, 19, 32)
    assert other.n.tolist() == [1, 1, 1, 1, 1, 1, 2, 3, 1, 1, 2, 4]


@given(plans=transports(side=3, most=12))
def test_most_lanes_equal_enumeration(plans: Transport) -> None:
    assert plans.m == (plans.enumerate() > 0).sum(axis=1).max()


@pytest.mark.parametrize(
    "plans",
    [
        PAPER,
        Transport([1, 3, 4], [1, 1, 2, 4]),
        Transport([7], [3, 4]),
        Transport([3, 4], [7]),
        Transport([5], [5]),
        Transport([2, 0, 3], [0, 4, 1]),
        Transport([1] * 5, [1] * 5),
        Transport([5, 1], [4, 2]),
        Transport(np.array([1, 4, 5]) * 10**6, np.array([4, 6]) * 10**6),
        Transport([3] * 10, [3] * 10),
        Transport([2, 3], [1, 1, 1, 1, 1]),
    ],
    ids=repr,
)
def test_contract(plans: Transport) -> None:
    check_actions(plans)


@pytest.mark.slow
@given(plans=transports(side=5, most=40), seed=st.integers(0, 2**32))
def test_contract_on_random_problems(plans: Transport, seed: int) -> None:
    check_actions(plans, seed)


def test_names() -> None:
    assert Transport([1], [1]).names == ("s1->d1",)
    assert Transport([2], [1, 1], names=["a", "b"]).names == ("a", "b")
    by_side = Transport([1, 1], [1, 1], names=(["L", "P"], ["n", "s"]))
    assert by_side.names == ("L->n", "L->s", "P->n", "P->s")


@pytest.mark.parametrize(
    ("supply", "demand", "says"),
    [
        ([1, 4, 5], [4, 5], "10 supplied and 9 demanded"),
        ([-1, 2], [1], "got -1"),
        ([1.5, 1.5], [3], "got 1.5"),
        ([np.nan], [1], "got nan"),
        ([np.inf], [1], "got inf"),
        ([], [], "supply: expected a list with at least one number"),
        ([0, 0], [], "demand: expected a list with at least one number"),
        ([[1, 2]], [3], "supply: expected a list"),
        (["many"], [1], "supply: expected numbers"),
        ([1], None, "demand"),
        ([2.0**53, 2.0**53], [2.0**54], "2^53"),
        ([10**20], [10**20], "2^53"),
    ],
)
def test_bad_margins(supply: list[float], demand: list[float], says: str) -> None:
    with pytest.raises(InvalidInput, match="expected") as error:
        Transport(supply, demand)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("names", "says"),
    [(["a"], "6 names"), (["a"] * 6, "'a' twice"), ((["a"], ["b", "c"]), "3 suppliers'")],
)
def test_bad_names(names: list[str], says: str) -> None:
    with pytest.raises(InvalidInput, match="names: expected") as error:
        Transport([1, 4, 5], [4, 6], names=names)
    assert says in str(error.value)


UNSEEN = ["", " ", "\u200b", "\u2060\ufeff", "\u00ad \u200d"]
ALIKE = [("\u00fc", "u\u0308"), ("Lyon", "Lyo\u200bn"), ("\ufeff\u00e9", "e\u0301")]


@pytest.mark.parametrize("name", UNSEEN)
def test_names_that_cannot_be_seen_are_refused(name: str) -> None:
    for names in ([name, "b"], ([name], ["a", "b"])):
        with pytest.raises(InvalidInput, match="names: expected names that can be seen"):
            Transport([2], [1, 1], names=names)


@pytest.mark.parametrize("names", ALIKE)
def test_names_that_look_the_same_are_refused(names: tuple[str, str]) -> None:
    for order in (names, names[::-1], (list(names), ["a"])):
        with pytest.raises(InvalidInput, match=r"names that look different, got .* the same"):
            Transport([1, 1], [2], names=order)
    assert Transport([1, 1], [2], names=["\u00fc", "u"]).names == ("\u00fc", "u")


def test_costs_of_the_wrong_shape_show_both_shapes() -> None:
    with pytest.raises(InvalidInput, match=r"costs: expected shape \(..., 6\), got shape \(3, 2\)"):
        PAPER.argmin(np.zeros((3, 2)))


def test_too_many_plans_to_enumerate() -> None:
    with pytest.raises(InvalidInput, match="limit: expected"):
        Transport([50] * 8, [50] * 8).enumerate()


def test_too_many_copies() -> None:
    with pytest.raises(InvalidInput, match="at most 10 million copied arms"):
        Transport([10**9], [10**9]).duplicate()
