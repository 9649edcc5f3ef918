"""BG-CTS: a twin of whole runs, the published regret, the paradox, and settings."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples_of_sets import SETS
from known import check_known
from many_streams import many_streams
from refusal import refused
from scipy.stats import norm

from multiplay import (
    BGCTS,
    ActionSet,
    Bernoulli,
    Budget,
    Coverage,
    Duplicated,
    Explicit,
    Feedback,
    GenCTS,
    Knapsack,
    Path,
    Policy,
    Stochastic,
    Transport,
    simulate,
)
from multiplay.actions import IntegerProgram
from multiplay.testing import check_policy
from multiplay.types import FloatArray

QUICK = [actions for actions in SETS if not isinstance(actions, IntegerProgram)]


@pytest.mark.parametrize(
    "actions",
    [
        pytest.param(actions, id=repr(actions), marks=[pytest.mark.slow] * (i % 3 > 0))
        for i, actions in enumerate(QUICK)
    ],
)
def test_contract(actions: ActionSet) -> None:
    check_policy(BGCTS(), actions)
    check_policy(BGCTS(lam=0.5), actions)


def test_contract_of_copies() -> None:
    check_policy(Duplicated(BGCTS()), Transport([1, 2], [2, 1]))


TWINNED: list[tuple[ActionSet, int]] = [  # with the m of the boost
    (Transport([1, 4, 5], [4, 6]), 6),
    (Knapsack([3, 4, 5], 10), 3),
    (Budget(2, [1] * 5, sense="max"), 2),
    (Path([("s", "a"), ("s", "b"), ("a", "t"), ("b", "t"), ("a", "b")], "s", "t"), 3),
    (Explicit([[0, 3, 1, 0], [2, 2, 1, 0], [5, 0, 1, 0]], sense="max"), 3),  # one arm never played
]


@pytest.mark.parametrize("lam", [0.0, 0.3])
@pytest.mark.parametrize(("actions", "m"), TWINNED, ids=repr)
def test_a_twin_that_keeps_all_losses_plays_the_same(
    actions: ActionSet, m: int, lam: float
) -> None:
    """All losses in lists, the formula number by number, and the best of the listed actions."""
    policy, draws, world = BGCTS(lam), np.random.default_rng(1), np.random.default_rng(2)
    same = np.random.default_rng(1)
    listed = actions.enumerate()
    losses: list[list[float]] = [[] for _ in range(actions.d)]
    state = policy.start(actions, None, 1)
    for t in range(1, 40):
        play = policy.choose(actions, state, draws)
        uniform = same.random((1, actions.d))[0]
        unseen = [i for i in range(actions.d) if not losses[i] and listed[:, i].any()]
        if unseen:
            units = listed[:, unseen].sum(axis=1)
            assert play.action[0, unseen].sum() == units.max()
        else:
            logarithm = math.log(max(t, math.e))
            f = logarithm + (m + 2) * math.log(logarithm)
            f += m / 2 * math.log(1 + math.e / lam) if lam else 0
            theta = [
                np.mean(own) + norm.ppf(u) * math.sqrt((1 + lam) * f / logarithm / 2 / len(own))
                if own
                else 0.0
                for own, u in zip(losses, uniform.tolist(), strict=True)
            ]
            values = actions.sign * listed @ np.array(theta)
            assert (play.action[0] == listed[values.argmin()]).all()
        total = np.zeros((1, actions.d))
        for i, units in enumerate(play.action[0].tolist()):
            own = world.random(units).tolist()
            losses[i] += own
            total[0, i] = sum(own)
        policy.update(actions, state, play, Feedback(play.action, total), draws)


def two_plans(m: int, units: int = 1) -> Path:
    """Two disjoint paths of m arcs; the arcs of the first come first."""
    arcs = [
        (f"{side}{i}" if i else "from", f"{side}{i + 1}" if i + 1 < m else "to")
        for side in "ab"
        for i in range(m)
    ]
    return Path(arcs, "from", "to", units)


def final(policy: Policy, m: int, rounds: int, trials: int, units: int = 1) -> FloatArray:
    means = np.repeat([0.1, 0.3], m)
    world = Stochastic(Bernoulli(means))
    run = simulate(two_plans(m, units), world, {"it": policy}, rounds, trials, seed=0, record=1)
    return run.final("it")


@pytest.mark.slow
def test_its_regret_is_that_of_the_authors() -> None:
    """Seven runs are in the authors' notebook: 450, 400, 440, 460, 390, 410 and 400."""
    published = np.array([450, 400, 440, 460, 390, 410, 400])
    error = published.std(ddof=1) / 7**0.5
    check_known(final(BGCTS(), 50, 20_000, trials=10), published.mean(), error)


def irwin_hall(m: int, level: Fraction) -> float:
    """The probability that m uniform numbers are less than ``level`` in all."""
    terms = ((-1) ** k * math.comb(m, k) * (level - k) ** m for k in range(math.floor(level) + 1))
    return float(sum(terms) / math.factorial(m))


@pytest.mark.parametrize("m", [4, 8, 12])
def test_the_exact_posterior_seldom_tries_an_unseen_plan_of_many_arms(m: int) -> None:
    """The dear plan is known to cost 0.3 an arm; a z-test at level 1e-6."""
    trials, exact = 40_000, irwin_hall(m, Fraction(3, 10) * m)
    ones = np.ones((trials, m))
    state = {"p": np.hstack([ones, 3e11 * ones]), "q": np.hstack([ones, 7e11 * ones])}
    tried = GenCTS().choose(two_plans(m), state, many_streams(trials)).action[:, 0].mean()
    assert abs(tried - exact) < 4.9 * math.sqrt(exact * (1 - exact) / trials)


def test_the_boosted_draws_find_the_better_plan_of_many_arms() -> None:
    """Each round with the dear plan costs 10; the exact posterior would wait 3.7 million."""
    assert 1 / irwin_hall(50, Fraction(15)) > 3.7e6
    assert final(BGCTS(), 50, 300, trials=20).max() < 600


def test_other_objectives_take_means_in_the_unit_interval() -> None:
    calls = Coverage(4, [3, 1])
    state = BGCTS().start(calls, None, 1)
    index = BGCTS().index(calls, state, np.random.default_rng(0))
    assert index is not None
    assert ((index >= 0) & (index <= 1)).all()


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, "wide", True, None])
def test_settings_are_checked(bad: Any) -> None:
    with refused("lam"):
        BGCTS(bad)
