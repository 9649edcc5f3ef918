"""A single number is that of every arm."""

from typing import Any

import numpy as np
import pytest
from refusal import refused

from multiplay import (
    Alternating,
    Attacked,
    Bernoulli,
    Beta,
    Budget,
    Constant,
    Corrupted,
    Coverage,
    Distribution,
    Environment,
    Explicit,
    GenCTS,
    Stochastic,
    Transport,
    Uniform,
    simulate,
)
from multiplay.theory import Gaussian, Instance, lower_bound

FULL = np.ones(3)
PAIRS: list[tuple[Distribution, Distribution]] = [
    (Bernoulli(0.3), Bernoulli(0.3 * FULL)),
    (Uniform(0, 0.5), Uniform(0 * FULL, 0.5 * FULL)),
    (Constant(0.2), Constant(0.2 * FULL)),
    (Beta(2, 3), Beta(2 * FULL, 3 * FULL)),
]
BETTER = Bernoulli([0.1, 0.5, 0.9])


def runs(environment: Environment) -> Any:
    result = simulate(Budget(4, [2, 3, 1]), environment, {"GenCTS": GenCTS()}, 40, trials=3, seed=2)
    return result.dataset[["regret", "realised", "L_star", "switches"]]


@pytest.mark.filterwarnings("ignore:all actions of")
@pytest.mark.parametrize(("one", "each"), PAIRS, ids=lambda pair: type(pair).__name__)
def test_one_distribution_for_all_arms(one: Distribution, each: Distribution) -> None:
    """The same numbers as one for each arm, in every regime."""
    assert runs(Stochastic(one)).equals(runs(Stochastic(each)))
    later, later_each = (Corrupted(before=first, after=BETTER, at=9) for first in (one, each))
    assert runs(later).equals(runs(later_each))
    attacked, attacked_each = (Attacked(clean, budget=5.0) for clean in (one, each))
    assert runs(attacked).equals(runs(attacked_each))


def test_one_mean_for_all_arms_that_alternate() -> None:
    one, each = (Alternating(means, shift=0.25, first=4) for means in (0.5, 0.5 * FULL))
    assert runs(one).equals(runs(each))


def test_other_shapes_are_still_refused() -> None:
    for wrong in ([0.1, 0.2], [[0.1]], np.full((2, 3), 0.1)):
        with refused("distribution"):
            runs(Stochastic(Bernoulli(wrong)))


@pytest.mark.parametrize("number", [0.25, 1, np.float64(0.25), np.array(0.25)])
@pytest.mark.parametrize(
    "actions",
    [
        Transport([1, 4, 5], [4, 6]),
        Budget(4, [2, 3, 1], sense="max"),
        Explicit([[3, 0], [1, 1], [0, 5]]),
        Coverage(3, [1.0, 2.0]),
    ],
    ids=lambda actions: type(actions).__name__,
)
def test_sets_take_a_number_as_the_means_of_all_arms(actions: Any, number: Any) -> None:
    means = np.full(actions.d, float(number))
    np.testing.assert_array_equal(actions.best(number), actions.best(means))
    action = actions.best(means)
    assert actions.value(action, number) == actions.value(action, means)
    with refused("action"):
        actions.value(1, means)


@pytest.mark.parametrize("wrong", ["0.5", None, True, np.nan, 1j, [0.5]])
def test_what_is_no_number_is_refused(wrong: Any) -> None:
    actions = Explicit([[3, 0], [1, 1]])
    with refused("means"):
        actions.best(wrong)
    with refused("costs"):
        actions.argmin(wrong)


def test_theory_takes_a_number_as_the_means_of_all_arms() -> None:
    """Actions of different sizes differ even so."""
    actions = Explicit([[1, 0, 0], [0, 2, 0], [0, 1, 2]])
    one, each = (lower_bound(actions, means, Gaussian(0.2)) for means in (0.3, 0.3 * FULL))
    assert one.constant == each.constant > 0
    np.testing.assert_array_equal(one.rates, each.rates)
    np.testing.assert_array_equal(Instance(actions, 0.3).Delta, Instance(actions, 0.3 * FULL).Delta)
