"""Worst cases: the regret of the best policy on the instance of the proof, computed exactly."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from refusal import refused

from multiplay import (
    Bernoulli,
    Budget,
    CombUCB,
    Explicit,
    FollowTheLeader,
    GenCTS,
    Knapsack,
    Stochastic,
    Transport,
    simulate,
)
from multiplay.results.intervals import interval
from multiplay.theory import adversarial_worst_case, duplicated_worst_case, families, lower_bound

PLANS = Transport([1, 4, 5], [4, 6])


def least_regret(arms: int, rounds: int) -> float:
    """Return the regret of the best policy if one arm, drawn at random, has fewer losses.

    Losses are 0 or 1, with mean 1/2, and less by ``gap`` on the good arm. The posterior depends
    on the plays and losses of each arm only, so that the best policy is found by recursion.
    """
    gap = min(1.0, math.sqrt(arms / rounds)) / 4

    def likelihood(plays: int, losses: int) -> float:
        """Return how much likelier these losses are on the good arm than on another one."""
        return (1 - 2 * gap) ** losses * (1 + 2 * gap) ** (plays - losses)

    @cache
    def value(seen: tuple[tuple[int, int], ...]) -> float:
        if sum(plays for plays, _ in seen) == rounds:
            return 0.0
        weights = [likelihood(*one) for one in seen]
        best = math.inf
        for arm in range(arms):
            good = weights[arm] / sum(weights)
            loss, (plays, losses) = 0.5 - gap * good, seen[arm]
            cost = gap * (1 - good)
            for lost, chance in ((1, loss), (0, 1 - loss)):
                after = list(seen)
                after[arm] = (plays + 1, losses + lost)
                cost += chance * value(tuple(sorted(after)))
            best = min(best, cost)
        return best

    return value(((0, 0),) * arms)


@pytest.mark.parametrize(("arms", "rounds"), [(2, 1), (2, 2), (2, 10), (2, 16), (3, 6), (4, 4)])
def test_no_policy_is_below_the_adversarial_worst_case(arms: int, rounds: int) -> None:
    """Five games of this many arms have five times the regret of one."""
    worst = adversarial_worst_case(Budget(5, [1] * (5 * arms)))
    assert worst.curve(np.array([rounds]))[0] <= 5 * least_regret(arms, rounds)


def test_measured_regret_is_above_the_adversarial_worst_case() -> None:
    """Four games of two arms, the better arm of each drawn anew in each trial, as in the proof."""
    games, arms, rounds, trials = 4, 2, 200, 40
    sides = np.array(list(product(range(arms), repeat=games)))
    actions = Explicit(np.eye(arms, dtype=int)[sides].reshape(len(sides), -1))
    good = np.random.default_rng(6).integers(0, arms, (trials, games))
    gap = math.sqrt(arms / rounds) / 4
    means = 0.5 - gap * np.eye(arms)[good].reshape(trials, -1)
    policies = {"GenCTS": GenCTS(), "CombUCB": CombUCB(), "leader": FollowTheLeader()}
    result = simulate(actions, Stochastic(Bernoulli(means)), policies, rounds, trials, seed=0)
    worst = adversarial_worst_case(actions)
    assert worst.formula == f"{games / 20:.4g} sqrt({arms} T)"
    for policy in policies:
        assert interval(result.final(policy)).low > worst.curve(np.array([rounds]))[0]


def test_the_adversarial_worst_case_is_that_of_the_paper_with_a_constant() -> None:
    for actions in (Budget(3, [1] * 12), Budget(4, [2] * 4), Budget(1, [1, 1])):
        W, t = int(actions.n.sum()), np.array([100.0, 10_000.0])
        root = np.sqrt(actions.M * W * t)
        assert adversarial_worst_case(actions).curve(t) == pytest.approx(root / 20)
    assert adversarial_worst_case(PLANS).instance.startswith("9 groups of 2 arms")
    assert adversarial_worst_case(Budget(2, [1, 1])).curve(np.array([100]))[0] == 0
    assert adversarial_worst_case(Budget(1, [1] * 100)).curve(np.array([4]))[0] == 4 / 20


@pytest.mark.parametrize("gap", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("paths", [2, 3, 5])
def test_the_duplicated_worst_case_is_the_lower_bound_of_its_instance(
    gap: float, paths: int
) -> None:
    """M copies with the same loss are one arm: M times the bound of a bandit with gap / M."""
    M = 4
    copied = Budget(M, [1] * (M * paths))
    worst = duplicated_worst_case(copied, gap, np.ones(copied.d, dtype=int))
    constant = worst.curve(np.array([math.e]))[0]
    means = np.full(paths, 0.5 + gap / M)
    means[0] = 0.5
    exact = M * lower_bound(Budget(1, [1] * paths), means, families.Bernoulli()).constant
    assert exact / 2 <= constant <= exact
    assert constant == pytest.approx((M * paths - M) * M / (4 * gap))


def test_common_copies_are_no_part_of_the_instance() -> None:
    """Transport has 10 units and 19 copies: 2 actions of 9 copies, and one copy in both."""
    copies = np.array([1, 1, 4, 4, 4, 5])
    worst = duplicated_worst_case(PLANS, 0.2, copies)
    assert worst.instance.startswith("2 actions of 9 copies")
    assert worst.formula == f"{81 / 0.8:.4g} log T"
    assert duplicated_worst_case(Budget(2, [1, 1]), 0.2, [1, 1]).formula == "0 log T"


def test_refusals() -> None:
    with refused("actions"):
        adversarial_worst_case(3)  # type: ignore[arg-type]
    with refused("copies"):
        duplicated_worst_case(PLANS, 0.2, [1] * 6)
    for gap in (0, -1, 6, math.nan, "wide"):
        with refused("gap"):
            duplicated_worst_case(PLANS, gap, [2, 2, 4, 4, 5, 5])  # type: ignore[arg-type]
    assert adversarial_worst_case(Knapsack([1, 2], 3)).curve(np.array([1]))[0] > 0
