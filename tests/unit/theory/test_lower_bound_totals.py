"""The bound for policies that see totals only: a cone program, closed forms, and symmetries."""

import importlib
import re
import warnings
from collections.abc import Callable
from pathlib import Path as File

import cvxpy as cp
import numpy as np
import pytest
from refusal import refused
from scipy import linalg, optimize

from multiplay import Assignment, Budget, Explicit, Knapsack, Path, SpanningTree, Transport
from multiplay.actions import ActionSet
from multiplay.experiments import paper
from multiplay.testing.strategies import random_transport
from multiplay.theory import Bernoulli, Gaussian, LowerBound, lower_bound
from multiplay.types import FloatArray, IntArray

PAPER = Transport([1, 4, 5], [4, 6])
GRID = [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
PAGE = (File(__file__).parents[3] / "docs" / "lower-bound.md").read_text(encoding="utf-8")


def from_totals(actions: ActionSet, means: FloatArray, variance: FloatArray | float) -> LowerBound:
    return lower_bound(actions, means, Gaussian(variance), feedback="total")


def random_list(rng: np.random.Generator, most: int, rows: int, d: int) -> Explicit:
    actions = np.unique(rng.integers(0, most + 1, (rows, d)), axis=0)
    return Explicit(actions, sense=rng.choice(["min", "max"]).item())


RANDOM_SETS: dict[str, Callable[[np.random.Generator], ActionSet]] = {
    "zeros and ones": lambda rng: random_list(rng, 1, 20, 6),
    "integers": lambda rng: random_list(rng, 4, 25, 4),
    "few integers": lambda rng: random_list(rng, 3, 5, 7),
    "transport": lambda rng: random_transport(rng, 2, 3, 8),
    "budget": lambda rng: Budget(4, rng.integers(1, 4, 4)),
    "at most": lambda rng: Budget(3, rng.integers(1, 4, 4), True, sense="max"),
    "nothing is best": lambda rng: Budget(3, rng.integers(1, 3, 4), True),
    "knapsack": lambda rng: Knapsack(rng.integers(3, 8, 4), 14),
    "assignment": lambda rng: Assignment(3, 3),
    "path": lambda rng: Path(GRID, 0, 5, 2),
    "tree": lambda rng: SpanningTree([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]),
}


def instance(name: str, seed: int) -> tuple[ActionSet, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    actions = RANDOM_SETS[name](rng)
    means, variance = rng.uniform(0.1, 0.9, (2, actions.d))
    return actions, means, variance


def rivals_of(actions: ActionSet, best: IntArray) -> IntArray:
    everything = actions.enumerate()
    others: IntArray = everything[(everything != best).any(axis=1)]
    return others


def solved(problem: cp.Problem) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the fifth digit is all we compare
        problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


def twin(actions: ActionSet, means: FloatArray, variance: FloatArray) -> float:
    """Minimise regret such that every <a, l> has a good estimate from the totals.

    The estimate sum_b y_b (mean total of b), with sum_b y_b b = a up to multiples of a*, has the
    variance sum_b y_b^2 v_b / w_b, which must be at most gap_a^2 / 2. No coordinates, no inverse.
    """
    best = actions.best(means)
    rivals = rivals_of(actions, best)
    rivals = rivals[rivals.any(axis=1)]
    gaps = actions.sign * (rivals - best) @ means
    variances = rivals @ variance
    scale = 2 * (variances / gaps).sum()  # each action ruled out by its own plays: feasible
    left = np.array([np.linalg.matrix_rank([a, best]) == 2 or not best.any() for a in rivals])
    rows, columns = left.sum(), len(rivals)  # a multiple of a* has a total that is known
    y, level = cp.Variable((rows, columns)), cp.Variable((rows, 1))
    w, noise = cp.Variable((1, columns), nonneg=True), cp.Variable((rows, columns))
    plays = np.ones((rows, 1)) @ w
    size = np.sqrt(2 * variances * gaps / scale) / gaps[left, None]
    sides = [2 * cp.multiply(size, y), plays - noise]  # size^2 y^2 / plays <= noise
    constraints = [
        y @ rivals + level @ best[None, :] == rivals[left],
        cp.SOC(cp.vec(plays + noise, "C"), cp.vstack([cp.vec(side, "C") for side in sides])),
        cp.sum(noise, axis=1) <= 1,
    ]
    return solved(cp.Problem(cp.Minimize(cp.sum(w)), constraints)) * float(scale)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", RANDOM_SETS)
def test_agrees_with_the_cone_program(name: str, seed: int) -> None:
    actions, means, variance = instance(name, seed)
    bound = from_totals(actions, means, variance)
    assert bound.constant > 0
    assert bound.constant == pytest.approx(twin(actions, means, variance), rel=1e-5)


def matrix_fractions(
    rivals: IntArray, best: IntArray, losses: FloatArray, variance: float, ruled_out: IntArray
) -> float:
    """a' H^-1 a <= gap^2 / 2 as it is written, on the space that is orthogonal to a*."""
    off = linalg.null_space(best[None, :].astype(float))
    left, gaps = rivals @ off, (rivals - best) @ losses
    scale = 1 / np.median(gaps)
    squares = left[:, :, None] * left[:, None, :]
    squares *= (scale / (variance * rivals.sum(axis=1) * gaps))[:, None, None]
    w = cp.Variable(len(rivals), nonneg=True)
    H = cp.reshape(squares.reshape(len(rivals), -1).T @ w, (off.shape[1],) * 2, order="C")
    constraints = [
        cp.matrix_frac(np.sqrt(2) * (a @ off) / ((a - best) @ losses), H) <= 1 for a in ruled_out
    ]
    return solved(cp.Problem(cp.Minimize(cp.sum(w)), constraints)) * float(scale)


@pytest.mark.parametrize("seed", range(3))
def test_three_of_five_agree_with_matrix_fractions(seed: int) -> None:
    actions = Budget(3, [1] * 5)
    means = np.random.default_rng(seed).uniform(0.1, 0.9, 5)
    best = actions.best(means)
    rivals = rivals_of(actions, best)
    expected = matrix_fractions(rivals, best, means, 0.25, rivals)
    assert from_totals(actions, means, 0.25).constant == pytest.approx(expected, rel=1e-5)


# Closed forms


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("basis", [Budget(1, [1] * 5), Explicit(np.eye(5, dtype=int))])
def test_the_basis_is_the_bound_of_lai_and_robbins(basis: ActionSet, seed: int) -> None:
    means, variance = np.random.default_rng(seed).uniform(0.1, 0.9, (2, 5))
    others = np.arange(5) != means.argmin()
    gaps = means[others] - means.min()
    gaussian = from_totals(basis, means, variance)
    assert gaussian.constant == pytest.approx((2 * variance[others] / gaps).sum(), rel=1e-9)
    coins = lower_bound(basis, means, Bernoulli(), feedback="total")
    expected = (gaps / Bernoulli().divergence(means[others], means.min())).sum()
    assert coins.constant == pytest.approx(expected, rel=1e-8)


def test_multiples_of_the_basis_rule_out_each_arm_alone() -> None:
    """Several units of one arm are so many samples of it: not the path of single units."""
    actions, means = Explicit([[3, 0, 0], [0, 2, 0], [0, 0, 4]]), np.array([0.1, 0.4, 0.3])
    variance = np.array([0.5, 0.2, 0.3])
    expected = 2 * (2 * 0.2 / (0.8 - 0.3) + 4 * 0.3 / (1.2 - 0.3))
    assert from_totals(actions, means, variance).constant == pytest.approx(expected, rel=1e-9)


def test_two_actions_pay_for_all_the_noise_of_the_other() -> None:
    """Seen unit by unit, only the arm that a* leaves out would be uncertain."""
    actions, means = Explicit([[2, 1, 0], [2, 1, 3]]), np.array([0.3, 0.2, 0.4])
    variance = np.array([0.1, 0.2, 0.3])
    bound = from_totals(actions, means, variance)
    assert bound.constant == pytest.approx(2 * (0.2 + 0.2 + 0.9) / 1.2, rel=1e-9)
    assert bound.rates == pytest.approx([0, 0, bound.constant / 0.4], rel=1e-9)
    assert bound.active.tolist() == [[2, 1, 3]]
    units = lower_bound(actions, means, Gaussian(variance))
    assert units.constant == pytest.approx(2 * 0.3 / 0.4, rel=1e-9)


def test_tiny_gaps_keep_their_digits() -> None:
    actions, means = Explicit([[2, 0], [0, 2]]), np.array([0.5, 0.5 + 1e-7])
    assert from_totals(actions, means, 0.25).constant == pytest.approx(0.5 / 1e-7, rel=1e-8)


@pytest.mark.parametrize("name", ["at most", "knapsack"])
@pytest.mark.parametrize("seed", [1, 7])
def test_gaps_of_very_different_sizes(name: str, seed: int) -> None:
    """Near ties beside actions that are far worse: single plays tell 10^9 times as much."""
    actions, means, variance = instance(name, seed)
    means = 0.5 + 1e-6 * means
    expected = twin(actions, means, variance)
    assert from_totals(actions, means, variance).constant == pytest.approx(expected, rel=1e-5)


# What changes nothing, and what changes the bound by a factor


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", RANDOM_SETS)
def test_totals_tell_no_more_than_units(name: str, seed: int) -> None:
    """(sum_i b_i d_i)^2 / v_b <= sum_i b_i d_i^2 / variance_i: Cauchy and Schwarz."""
    actions, means, variance = instance(name, seed)
    units = lower_bound(actions, means, Gaussian(variance)).constant
    assert from_totals(actions, means, variance).constant >= units * (1 - 1e-8)


@pytest.mark.parametrize("name", RANDOM_SETS)
def test_scales_of_losses_of_variances_and_of_units(name: str) -> None:
    actions, means, variance = instance(name, 4)
    once = from_totals(actions, means, variance).constant
    assert from_totals(actions, 3 * means, variance).constant == pytest.approx(once / 3, rel=1e-8)
    assert from_totals(actions, means, 3 * variance).constant == pytest.approx(3 * once, rel=1e-8)
    triple = Explicit(3 * actions.enumerate(), sense=actions.sense)
    assert from_totals(triple, means, variance).constant == pytest.approx(once, rel=1e-8)


@pytest.mark.parametrize("name", RANDOM_SETS)
def test_the_totals_are_all_that_counts(name: str) -> None:
    """Arms in another order, and an arm in two halves that are always played together."""
    actions, means, variance = instance(name, 5)
    expected = from_totals(actions, means, variance)
    order = np.random.default_rng(0).permutation(actions.d)
    halves = np.append(order, order[0])
    share = np.append(np.ones(actions.d), 0.5)
    share[0] = 0.5
    other = Explicit(actions.enumerate()[::-1, halves], sense=actions.sense)
    bound = from_totals(other, means[halves] * share, variance[halves] * share)
    assert bound.constant == pytest.approx(expected.constant, rel=1e-8)
    assert sorted(map(tuple, bound.active[:, np.argsort(order)])) == sorted(
        map(tuple, expected.active)
    )


@pytest.mark.parametrize("actions", [Budget(3, [1] * 5), Budget(4, [2, 3, 2, 1]), PAPER], ids=repr)
def test_the_level_does_not_matter_where_all_actions_have_as_many_units(
    actions: ActionSet,
) -> None:
    means, variance = np.random.default_rng(6).uniform(0.1, 0.9, (2, actions.d))
    once = from_totals(actions, means, variance)
    shifted = from_totals(actions, means + 2.5, variance)
    assert shifted.constant == pytest.approx(once.constant, rel=1e-8)
    assert (shifted.best == once.best).all()


def test_rewards_mirror_losses() -> None:
    means = np.random.default_rng(3).uniform(0.1, 0.9, PAPER.d)
    rewarded = Transport(PAPER.supply, PAPER.demand, sense="max")
    losses, rewards = from_totals(PAPER, means, 0.1), from_totals(rewarded, 1 - means, 0.1)
    assert rewards.constant == pytest.approx(losses.constant, rel=1e-8)
    assert rewards.rates == pytest.approx(losses.rates, rel=1e-3)


@pytest.mark.parametrize("name", RANDOM_SETS)
def test_rates_are_plays_that_cost_the_constant(name: str) -> None:
    actions, means, variance = instance(name, 7)
    bound = from_totals(actions, means, variance)
    assert actions.sign * bound.rates @ means == pytest.approx(bound.constant, rel=1e-9)
    directions = rivals_of(actions, bound.best) - bound.best
    _, distance = optimize.nnls(directions.T.astype(float), bound.rates, maxiter=10_000)
    assert distance < 1e-8 * np.abs(bound.rates).max()
    assert len(bound.active) > 0
    assert actions.contains(bound.active).all()
    assert (bound.best == actions.best(means)).all()


@pytest.mark.parametrize(
    "actions",
    [
        Explicit([[2, 1]]),
        Explicit([[1, 2], [2, 4], [3, 6]]),
        Explicit([[0, 0], [1, 2]], sense="max"),
    ],
    ids=["one action", "multiples", "nothing at all"],
)
def test_no_confusion_no_regret(actions: ActionSet) -> None:
    bound = from_totals(actions, np.array([0.3, 0.4]), 0.1)
    assert bound.constant == 0
    assert (bound.rates == 0).all()
    assert bound.active.shape == (0, 2)


def test_a_thousand_actions() -> None:
    """Ruling out the active ones alone, with all actions to play, costs as much."""
    rng = np.random.default_rng(0)
    actions = random_list(rng, 3, 1000, 6)
    means = rng.uniform(0.1, 0.9, 6)
    bound = from_totals(actions, means, 0.1)
    rivals = rivals_of(actions, bound.best)
    assert len(rivals) > 850
    expected = matrix_fractions(rivals, bound.best, actions.sign * means, 0.1, bound.active)
    assert bound.constant == pytest.approx(expected, rel=1e-5)


# Refusals


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    means = np.random.default_rng(0).uniform(0.1, 0.9, PAPER.d)
    with refused("feedback"):
        lower_bound(PAPER, means, Gaussian(0.1), feedback="bandit")
    with refused("copies"):
        lower_bound(PAPER, means, Gaussian(0.1), copies=[1, 1, 4, 4, 5, 5], feedback="total")
    with refused("family"):
        lower_bound(PAPER, means, Bernoulli(), feedback="total")
    with refused("limit"):
        lower_bound(PAPER, means, Gaussian(0.1), limit=5, feedback="total")
    with refused("limit"):
        lower_bound(Knapsack([1] * 5000, 10), np.zeros(5000), Gaussian(0.1), feedback="total")
    with refused("means"):
        lower_bound(PAPER, np.zeros(PAPER.d), Gaussian(0.1), feedback="total")
    module = importlib.import_module("multiplay.theory.lower_bound")
    monkeypatch.setattr(module, "LARGEST_TABLE", 80)  # 9 actions in 3 dimensions are 81 numbers
    with refused("actions"):
        lower_bound(PAPER, means, Gaussian(0.1), feedback="total")


def test_an_unfinished_game_is_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    game = importlib.import_module("multiplay.theory.game")
    monkeypatch.setattr(game, "MOST_ROUNDS", 2)
    means = np.random.default_rng(0).uniform(0.1, 0.9, 5)
    with pytest.raises(ArithmeticError, match=r"known to .* only"):
        from_totals(Budget(3, [1] * 5), means, 0.25)


# The experiment of the paper


@pytest.mark.slow
def test_the_page_has_the_numbers_of_the_experiment() -> None:
    """The mean over the instances, as docs/lower-bound.md gives them."""
    words = " ".join(PAGE.split())
    said = r"\$([0-9.]+) \\log T\$"
    found = re.search(rf"{said} for policies with all units and {said}", words)
    assert found
    constants = [paper.lower_bounds(100, 0, feedback).constant for feedback in ("units", "total")]
    assert [float(number) for number in found.groups()] == [round(c, 2) for c in constants]
