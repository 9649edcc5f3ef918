"""The bound for all policies: closed forms, a slow twin, and the constraints one by one."""

import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path as File

import cvxpy as cp
import numpy as np
import pytest
from refusal import refused
from scipy import optimize, special

from multiplay import (
    Assignment,
    Budget,
    Coverage,
    Explicit,
    Knapsack,
    Matching,
    Path,
    SpanningTree,
    Transport,
)
from multiplay.actions import ActionSet
from multiplay.experiments import paper
from multiplay.testing.strategies import random_transport
from multiplay.theory import Bernoulli, Family, Gaussian, LowerBound, lower_bound
from multiplay.types import FloatArray, IntArray

PAPER = Transport([1, 4, 5], [4, 6])
GRID = [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
FAMILIES = [Gaussian(0.05), Bernoulli()]
PAGE = (File(__file__).parents[3] / "docs" / "lower-bound.md").read_text(encoding="utf-8")


def draw_means(actions: ActionSet, seed: int) -> FloatArray:
    return np.random.default_rng(seed).uniform(0.1, 0.9, actions.d)


def random_budget(rng: np.random.Generator) -> Budget:
    at_most = bool(rng.integers(2))  # nothing at all would be the best of losses
    total, caps = int(rng.integers(2, 6)), rng.integers(1, 4, 6)
    return Budget(total, caps, at_most, sense="max" if at_most else "min")


def random_knapsack(rng: np.random.Generator) -> Knapsack:
    return Knapsack(rng.integers(3, 8, 5), int(rng.integers(10, 25)))


def random_list(rng: np.random.Generator) -> Explicit:
    actions = rng.integers(0, 4, (40, 8)) * rng.integers(0, 2, (40, 8))
    actions = np.unique(actions[actions.any(axis=1)], axis=0)
    return Explicit(actions, sense=rng.choice(["min", "max"]).item())


RANDOM_SETS: dict[str, Callable[[np.random.Generator], ActionSet]] = {
    "transport": lambda rng: random_transport(rng, 3, 3, 8),
    "budget": random_budget,
    "knapsack": random_knapsack,
    "list": random_list,
    "assignment": lambda rng: Assignment(4, 4),
    "path": lambda rng: Path(GRID, 0, 5, 2),
    "tree": lambda rng: SpanningTree([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]),
    "matching": lambda rng: Matching([(i, "abc"[j]) for i in range(3) for j in range(3)]),
}


def rivals_of(actions: ActionSet, best: IntArray) -> IntArray:
    everything = actions.enumerate()
    others: IntArray = everything[(everything != best).any(axis=1)]
    return others


def twin(
    rivals: IntArray, best: IntArray, known: IntArray, losses: FloatArray, loads: FloatArray
) -> float:
    """Minimise <losses, z> such that sum loads_i / z_i <= gap^2 / 2 on arms that are not known.

    ``loads`` has a row for each rival: a_i^2 variance_i for arms of their own.
    """
    gaps = (rivals - best) @ losses
    loads = np.where(known > 0, 0.0, 2 * loads / gaps[:, None] ** 2)
    alone = np.maximum(loads.max(axis=0), 1e-300)  # z_i if there were no other arms
    price = np.divide(gaps[:, None], rivals, out=np.full(rivals.shape, np.inf), where=rivals > 0)
    scale = np.where(loads.max(axis=0) > 0, alone * price.min(axis=0), 0.0).sum()
    weights = cp.Variable(len(rivals), nonneg=True)
    z = ((rivals - best) / gaps[:, None] / alone * scale).T @ weights
    with warnings.catch_warnings():
        # "may be inaccurate": the fifth digit is all we compare; and cvxpy adds up empty arrays
        warnings.simplefilter("ignore")
        constraints = []
        for load in np.unique(loads / alone, axis=0):
            arms = np.flatnonzero(load)
            if len(arms):
                constraints.append(cp.sum(cp.multiply(load[arms], cp.inv_pos(z[arms]))) <= 1)
        problem = cp.Problem(cp.Minimize(cp.sum(weights)), constraints)
        problem.solve(solver=cp.CLARABEL)
    return float(problem.value * scale)


def native_twin(actions: ActionSet, means: FloatArray, variance: FloatArray) -> float:
    best = actions.best(means)
    rivals = rivals_of(actions, best)
    return twin(rivals, best, best, actions.sign * means, rivals**2 * variance)


# Closed forms


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", FAMILIES, ids=["gaussian", "bernoulli"])
@pytest.mark.parametrize("m", [1, 3])
def test_m_sets_compare_every_arm_with_the_worst_of_the_best(
    m: int, family: Family, seed: int
) -> None:
    actions = Budget(m, [1] * 7)
    means = np.sort(draw_means(actions, seed))
    gaps, information = means[m:] - means[m - 1], family.divergence(means[m:], means[m - 1])
    bound = lower_bound(actions, means, family)
    assert bound.constant == pytest.approx((gaps / information).sum(), rel=1e-8)
    assert bound.rates[m:] == pytest.approx(1 / information, rel=1e-3)
    assert (bound.best == [1] * m + [0] * (7 - m)).all()


def test_gaussian_m_sets_as_printed() -> None:
    means = np.array([0.1, 0.2, 0.3, 0.5, 0.9])
    bound = lower_bound(Budget(2, [1] * 5), means, Gaussian(0.04))
    assert bound.constant == pytest.approx(2 * 0.04 * (1 / 0.1 + 1 / 0.3 + 1 / 0.7), rel=1e-8)


def reduced_costs(actions: Transport, means: FloatArray) -> FloatArray:
    """Return the reduced costs of all lanes, from the dual prices of the transport problem."""
    rows, columns = len(actions.supply), len(actions.demand)
    lanes = np.arange(actions.d).reshape(rows, columns)
    margins = np.array([np.isin(np.arange(actions.d), line) for line in [*lanes, *lanes.T]])
    supplied = np.concatenate([actions.supply, actions.demand])
    answer = optimize.linprog(means, A_eq=margins.astype(float), b_eq=supplied)
    return np.asarray(answer.lower.marginals)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("copied", [False, True])
def test_each_unused_lane_is_ruled_out_alone(seed: int, copied: bool) -> None:
    """Where a plan uses as many lanes as a tree has arcs, a deviation is one unused lane's."""
    actions = Transport([3, 5, 6], [4, 4, 6])
    means = draw_means(actions, seed) / 2
    unused = actions.best(means) == 0
    assert unused.sum() == 4
    costs = reduced_costs(actions, means)[unused]
    copies = np.bincount(actions.duplicate().owner) if copied else np.ones(actions.d)
    counts = copies[unused]
    gaussian = lower_bound(actions, means, Gaussian(means**2 / 3), copies if copied else None)
    expected = (2 * counts * means[unused] ** 2 / 3 / costs).sum()
    assert gaussian.constant == pytest.approx(expected, rel=1e-7)
    possible = costs < means[unused]  # a loss cannot fall below 0
    here = means[unused][possible]
    information = Bernoulli().divergence(here, here - costs[possible])
    coins = lower_bound(actions, means, Bernoulli(), copies if copied else None)
    expected = (counts[possible] * costs[possible] / information).sum()
    assert coins.constant == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("family", FAMILIES, ids=["gaussian", "bernoulli"])
def test_units_do_not_matter_without_copies_and_cost_their_number_with_them(family: Family) -> None:
    means = draw_means(PAPER, 1) / 2
    triple = Transport([3, 12, 15], [12, 18])
    copies = np.bincount(PAPER.duplicate().owner)
    once, thrice = (lower_bound(plans, means, family).constant for plans in (PAPER, triple))
    assert thrice == pytest.approx(once, rel=1e-8)
    once = lower_bound(PAPER, means, family, copies).constant
    thrice = lower_bound(triple, means, family, 3 * copies).constant
    assert thrice == pytest.approx(3 * once, rel=1e-8)


@pytest.mark.parametrize("family", FAMILIES, ids=["gaussian", "bernoulli"])
@pytest.mark.parametrize(
    "actions",
    [
        Transport([3, 5, 6], [2, 2, 10]),
        Transport([3, 5, 6], [2, 2, 10], sense="max"),
        Budget(5, [2, 3, 2, 4], sense="max"),
        Budget(3, [1] * 6),
        SpanningTree([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("copied", [False, True])
def test_large_sets_arm_by_arm_as_by_enumeration(
    actions: ActionSet, family: Family, copied: bool
) -> None:
    for seed in range(3):
        means = draw_means(actions, seed)
        copies = actions.n if copied else None
        listed = lower_bound(actions, means, family, copies)
        bound = lower_bound(actions, means, family, copies, limit=1)
        assert bound.constant == pytest.approx(listed.constant, rel=1e-7)
        assert bound.rates == pytest.approx(listed.rates, rel=1e-3, abs=1e-6)
        known = {tuple(action) for action in listed.active}
        assert {tuple(action) for action in bound.active} <= known


def test_large_transport() -> None:
    actions = random_transport(np.random.default_rng(0), 15, 15, 3000)
    means = draw_means(actions, 0)
    unused = actions.best(means) == 0
    assert unused.sum() == 14**2
    expected = (2 * 0.05 / reduced_costs(actions, means)[unused]).sum()
    assert lower_bound(actions, means, Gaussian(0.05)).constant == pytest.approx(expected, rel=1e-6)


# The slow twin, and the constraints one by one


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", RANDOM_SETS)
def test_gaussian_agrees_with_the_cone_program(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    actions = RANDOM_SETS[name](rng)
    means, variance = rng.uniform(0.1, 0.9, (2, actions.d))
    bound = lower_bound(actions, means, Gaussian(variance))
    assert bound.constant > 0
    assert bound.constant == pytest.approx(native_twin(actions, means, variance), rel=1e-5)


def least_evidence(means: FloatArray, action: IntArray, gap: float, plays: FloatArray) -> float:
    """Minimise sum plays_i KL_i over the ways to share the gap, by a general solver."""

    def evidence(shares: FloatArray) -> float:
        others = np.maximum(means - shares * gap / action, 0)
        there = special.rel_entr(means, others) + special.rel_entr(1 - means, 1 - others)
        return float(plays @ there)

    def slope(shares: FloatArray) -> FloatArray:
        others = np.maximum(means - shares * gap / action, 1e-12)
        return np.asarray(plays * gap / action * (means - others) / (others * (1 - others)))

    most = action * means / gap
    start = most / most.sum()
    size = evidence(start)
    answer = optimize.minimize(  # type: ignore[call-overload]
        lambda shares: evidence(shares) / size,
        start,
        method="SLSQP",
        jac=lambda shares: slope(shares) / size,
        bounds=[(0.0, float(share) * (1 - 1e-9)) for share in most],
        constraints=optimize.LinearConstraint(np.ones((1, len(start))), 1, 1),
        tol=1e-10,
    )
    assert answer.x.sum() == pytest.approx(1, abs=1e-8)
    return float(answer.fun * size)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", RANDOM_SETS)
def test_bernoulli_rates_rule_out_everything_and_nothing_twice(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    actions = RANDOM_SETS[name](rng)
    means = rng.uniform(0.1, 0.9, actions.d)
    bound = lower_bound(actions, means, Bernoulli())
    rivals = rivals_of(actions, bound.best)
    unused = bound.best == 0
    here = means if actions.sense == "min" else 1 - means
    evidence = {}
    for action, gap in zip(rivals, actions.sign * (rivals - bound.best) @ means, strict=True):
        arms = unused & (action > 0)
        if action[arms] @ here[arms] > gap * (1 + 1e-9):
            found = least_evidence(here[arms], action[arms], gap, bound.rates[arms])
            evidence[tuple(action)] = found
    assert min(evidence.values()) == pytest.approx(1, abs=1e-5)
    for action in bound.active:
        assert evidence[tuple(action)] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES, ids=["gaussian", "bernoulli"])
@pytest.mark.parametrize("name", RANDOM_SETS)
def test_rates_are_plays_that_cost_the_constant(name: str, family: Family) -> None:
    actions = RANDOM_SETS[name](np.random.default_rng(7))
    means = draw_means(actions, 7)
    bound = lower_bound(actions, means, family)
    assert actions.sign * bound.rates @ means == pytest.approx(bound.constant, rel=1e-9)
    assert (bound.rates[bound.best == 0] >= 0).all()
    directions = rivals_of(actions, bound.best) - bound.best
    _, distance = optimize.nnls(directions.T.astype(float), bound.rates, maxiter=10_000)
    assert distance < 1e-8 * np.abs(bound.rates).max()
    assert actions.contains(bound.active).all()
    assert (bound.best == actions.best(means)).all()


def test_bernoulli_pairs_of_arms_against_a_grid() -> None:
    """Nature shares the gap between two arms: all ways to share it, as rows of a linear program."""
    actions = Explicit([[1, 0, 0, 0], [0, 1, 2, 0], [0, 0, 1, 1], [0, 2, 0, 3]])
    means = np.array([0.3, 0.4, 0.5, 0.35])
    bound = lower_bound(actions, means, Bernoulli())
    rivals = rivals_of(actions, bound.best)
    gaps = (rivals - bound.best) @ means
    rows = []
    for action, gap in zip(rivals, gaps, strict=True):
        first, second = np.flatnonzero(action)
        shift = np.zeros((4001, 4))
        shift[:, first] = np.linspace(0, gap / action[first], 4001)
        shift[:, second] = (gap - action[first] * shift[:, first]) / action[second]
        shift = shift[(shift < means).all(axis=1)]
        other = means - shift
        rows.append(special.rel_entr(means, other) + special.rel_entr(1 - means, 1 - other))
    rays = (rivals - bound.best) / gaps[:, None]
    table = np.concatenate(rows) @ rays.T
    answer = optimize.linprog(np.ones(len(rays)), A_ub=-table, b_ub=-np.ones(len(table)))
    assert bound.constant == pytest.approx(answer.fun, rel=1e-6)


# Copies


def test_copies_are_the_bound_of_the_copied_set() -> None:
    """Supplier 1 sends both units to demander 1: one best action with copies, too."""
    actions, means = Transport([2, 2], [2, 2]), np.array([0.1, 0.6, 0.5, 0.3])
    copied, owner = actions.duplicate()
    for family in FAMILIES:
        expected = lower_bound(copied, means[owner], family)
        bound = lower_bound(actions, means, family, copies=np.bincount(owner))
        assert bound.constant == pytest.approx(expected.constant, rel=1e-8)
        assert bound.constant > 1.5 * lower_bound(actions, means, family).constant


@pytest.mark.parametrize("actions", [Transport([1, 2, 2], [2, 3]), Knapsack([2, 3, 4], 7)])
@pytest.mark.parametrize("seed", range(3))
def test_copies_where_several_copied_actions_are_best(actions: ActionSet, seed: int) -> None:
    """All of them are free to play: a copy is known if any of them plays it."""
    rng = np.random.default_rng(seed)
    means, variance = rng.uniform(0.1, 0.9, (2, actions.d))
    copied, owner = actions.duplicate()
    everything = copied.enumerate()
    gaps = copied.sign * (everything - copied.best(means[owner])) @ means[owner]
    known = everything[gaps < 1e-9]
    rivals = everything[gaps >= 1e-9]
    expected = twin(
        rivals,
        known[0],
        known.sum(axis=0),
        copied.sign * means[owner],
        rivals**2 * variance[owner],
    )
    bound = lower_bound(actions, means, Gaussian(variance), copies=np.bincount(owner))
    assert bound.constant == pytest.approx(expected, rel=1e-5)


def test_copies_triple_the_bound_in_the_experiment_of_the_paper() -> None:
    copies = np.bincount(PAPER.duplicate().owner)
    ratios = []
    for costs in np.random.default_rng(0).uniform(0.1, 0.5, (30, PAPER.d)):
        family = Gaussian(costs**2 / 3)  # of losses uniform on [0, 2 costs]
        native, copied = (lower_bound(PAPER, costs, family, b).constant for b in (None, copies))
        ratios.append(copied / native)
    assert 2.5 < np.median(ratios) < 3.5
    assert min(ratios) > 1
    assert max(ratios) < 5  # the most copies of a lane


# Rewards, and instances with nothing to learn


def test_rewards_mirror_losses() -> None:
    losses = draw_means(PAPER, 3)
    rewarded = Transport(PAPER.supply, PAPER.demand, sense="max")
    for family in FAMILIES:
        expected = lower_bound(PAPER, losses, family)
        bound = lower_bound(rewarded, 1 - losses, family)
        assert bound.constant == pytest.approx(expected.constant, rel=1e-8)
        assert bound.rates == pytest.approx(expected.rates, rel=1e-3)


@pytest.mark.parametrize(
    "actions",
    [Explicit([[2, 1]]), Explicit([[1, 0, 2], [1, 0, 3]]), Explicit([[1, 0], [1, 2]])],
    ids=["one action", "only known arms", "losses cannot be negative"],
)
def test_no_confusion_no_regret(actions: ActionSet) -> None:
    bound = lower_bound(actions, [0.3] * actions.d, Bernoulli())
    assert bound.constant == 0
    assert (bound.rates == 0).all()
    assert bound.active.shape == (0, actions.d)
    assert (bound.curve([1, 10]) == 0).all()


def test_losses_that_could_be_negative_do_confuse() -> None:
    assert lower_bound(Explicit([[1, 0], [1, 2]]), [0.3, 0.3], Gaussian(0.1)).constant > 0


def test_extreme_means_of_bernoulli() -> None:
    """A loss of 0 cannot fall and a loss of 1 is ruled out by log(1 / other) a play."""
    bound = lower_bound(Budget(1, [1, 1]), [0.5, 1.0], Bernoulli())
    assert bound.constant == pytest.approx(0.5 / np.log(2), rel=1e-8)
    free = Explicit([[1, 0, 0], [0, 1, 1]])
    bound = lower_bound(free, [0.4, 0.0, 0.8], Bernoulli())
    assert bound.constant == pytest.approx(0.4 / Bernoulli().divergence(0.8, 0.4), rel=1e-8)


def test_tiny_gaps_keep_their_digits() -> None:
    means = [0.5, 0.5 + 1e-6, 0.5 + 1e-3]
    expected = 2 * 0.25 * (1e6 + 1e3)
    assert lower_bound(Budget(1, [1] * 3), means, Gaussian(0.25)).constant == pytest.approx(
        expected, rel=1e-8
    )
    coins = lower_bound(Budget(1, [1] * 3), means, Bernoulli()).constant
    assert coins == pytest.approx(expected, rel=1e-5)


def test_curve() -> None:
    bound = LowerBound(2.0, np.zeros(1), np.zeros((0, 1), dtype=np.int64), np.ones(1, np.int64))
    assert bound.curve([1, math.e, math.e**3]) == pytest.approx([0, 2, 6])
    with refused("rounds"):
        bound.curve(0)


# Families


def test_divergence() -> None:
    rng = np.random.default_rng(0)
    here, there = rng.random((2, 1000))
    exact = special.rel_entr(here, there) + special.rel_entr(1 - here, 1 - there)
    assert Bernoulli().divergence(here, there) == pytest.approx(exact, rel=1e-9, abs=1e-14)
    assert Bernoulli().divergence([0, 1, 1, 0, 1], [0, 1, 0, 1, 0.5]) == pytest.approx(
        [0, 0, np.inf, np.inf, np.log(2)]
    )
    shift = 1e-7  # where the two terms of the formula cancel to the last digit
    small = Bernoulli().divergence(0.3, 0.3 - shift)
    assert small == pytest.approx(shift**2 / (2 * 0.3 * 0.7), rel=1e-6)


@pytest.mark.parametrize("family", FAMILIES, ids=["gaussian", "bernoulli"])
def test_closest_shifts_are_the_best_of_many(family: Family) -> None:
    rng = np.random.default_rng(1)
    means, plays = rng.uniform(0.2, 0.9, 3), rng.uniform(0.1, 5, (1, 3))
    action, gap = np.array([[1.0, 2.0, 3.0]]), np.array([0.6])
    found = family.closest(means, action, gap, plays)
    assert (action * found).sum() == pytest.approx(0.6)
    first, second = (grid.ravel() for grid in np.meshgrid(*[np.linspace(0, 0.6, 601)] * 2))
    shifts = np.column_stack([first, second, (0.6 - first - 2 * second) / 3])
    shifts = shifts[((shifts >= 0) & (shifts < means)).all(axis=1)]
    evidence = (plays * family.information(means, shifts)).sum(axis=1)
    least = (plays * family.information(means, found)).sum()
    assert least <= evidence.min() * (1 + 1e-12)
    assert least == pytest.approx(evidence.min(), rel=1e-4)


# Refusals


def test_refusals() -> None:
    means = draw_means(PAPER, 0)
    with refused("actions"):
        lower_bound([[1, 0]], means, Bernoulli())  # type: ignore[arg-type]
    with refused("actions"):
        lower_bound(Coverage(2, [1, 2]), [0.3, 0.4], Bernoulli())
    with refused("family"):
        lower_bound(PAPER, means, 0.25)  # type: ignore[arg-type]
    with refused("means"):
        lower_bound(PAPER, means[:5], Bernoulli())
    with refused("means"):
        lower_bound(PAPER, means + 1, Bernoulli())
    with refused("limit"):
        lower_bound(Assignment(4, 4), draw_means(Assignment(4, 4), 0), Bernoulli(), limit=8)
    with refused("limit"):  # the last action costs less than its two new arms alone
        both = Explicit([[2, 0, 0], [2, 1, 0], [2, 0, 1], [0, 1, 1]])
        lower_bound(both, [0.1, 0.3, 0.3], Gaussian(0.1), limit=1)
    with refused("limit"):  # no copy can be tried alone
        lower_bound(Explicit([[2, 0], [0, 2]]), [0.1, 0.3], Gaussian(0.1), [2, 2], limit=1)
    with refused("limit"):
        lower_bound(PAPER, means, Bernoulli(), limit=0)
    with refused("limit"):
        lower_bound(Knapsack([1] * 5000, 10), np.zeros(5000), Bernoulli())
    for copies in ([1, 1, 4, 4, 5], [1, 1, 4, 4, 4, 4], [1, 1, 4, 4, 5, 5.5]):
        with refused("copies"):
            lower_bound(PAPER, means, Bernoulli(), copies=copies)
    for variance in (0.0, [0.1, -0.1], np.nan, None):
        with refused("variance"):
            Gaussian(variance)  # type: ignore[arg-type]
    with refused("variance"):
        lower_bound(PAPER, means, Gaussian([0.1, 0.2]))


@pytest.mark.parametrize("limit", [1, 100])
def test_ties_are_named(limit: int) -> None:
    two_of_three = r"\[(1, 0, 0|0, 1, 0)\] and \[(1, 0, 0|0, 1, 0)\]"
    with pytest.raises(ValueError, match=two_of_three):
        lower_bound(Budget(1, [1] * 3), [0.1 + 0.2, 0.3, 0.4], Gaussian(0.1), limit=limit)
    on_its_arms = r"\[3, 1\] and \[[12], [23]\]|\[[12], [23]\] and"
    with pytest.raises(ValueError, match=on_its_arms):
        lower_bound(Budget(4, [3, 3]), [0.1, 0.1], Gaussian(0.1), limit=limit)
    with pytest.raises(ValueError, match=r"\[1, 0\] and \[1, 1\]|\[1, 1\] and \[1, 0\]"):
        lower_bound(Explicit([[1, 0], [1, 1]]), [0.3, 0.0], Gaussian(0.1), limit=limit)


def copied_and_native(plans: Transport, costs: FloatArray, family: Family) -> tuple[float, float]:
    copies = np.bincount(plans.duplicate().owner)
    return (
        lower_bound(plans, costs, family, copies).constant,
        lower_bound(plans, costs, family).constant,
    )


@pytest.mark.parametrize("instances", [30, pytest.param(1000, marks=pytest.mark.soak)])
def test_the_page_has_the_numbers_of_the_experiment(instances: int) -> None:
    """The ratios on the instances of ``multiplay reproduce``, as docs/lower-bound.md gives them."""
    pairs = [
        copied_and_native(paper.PLANS, costs, Gaussian(costs**2 / 3))
        for costs in paper.costs(instances, seed=0)
    ]
    ratios = np.array([copied / native for copied, native in pairs])
    words = " ".join(PAGE.split())
    numbers = r"median ([0-9.]+), from ([0-9.]+) to ([0-9]\.[0-9])"
    found = re.search(rf"paper\.costs\({instances}, seed=0\)`.*?{numbers}", words)
    assert found
    said = [float(number) for number in found.groups()]
    assert said == [round(x, 1) for x in (np.median(ratios), ratios.min(), ratios.max())]


def test_the_page_has_the_numbers_of_its_one_instance() -> None:
    costs, (row,) = (
        np.random.default_rng(1).uniform(0.1, 0.5, 6),
        re.findall(r"\| \(1, 4, 5\), \(4, 6\) \| (.*) \|", PAGE),
    )
    said = [float(cell) for cell in row.split("|")]
    found = [
        constant
        for family in (Gaussian(costs**2 / 3), Bernoulli())
        for constant in reversed(copied_and_native(PAPER, costs, family))
    ]
    assert said == pytest.approx(found, abs=0.05)
