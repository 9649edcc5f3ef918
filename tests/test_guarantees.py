"""Guarantees: by hand on two arms, and on simulated runs."""

import math

import numpy as np
import pytest

from multiplay import (
    Adversarial,
    Bernoulli,
    Budget,
    Coverage,
    GenCTS,
    GenLBINFV,
    RandomWalk,
    Stochastic,
    Streams,
    Transport,
    Uniform,
    simulate,
)
from multiplay.environments import Environment
from multiplay.experiments import paper
from multiplay.results.plots import Bound
from multiplay.streams import POLICY
from multiplay.theory import Gaussian, lower_bound
from multiplay.theory.guarantees import (
    Instance,
    gencts,
    genlbinfv_adversarial,
    genlbinfv_stochastic,
    realised_bound,
)
from refusal import refused

TWO = Budget(3, [3, 2])  # (3, 0), (2, 1), (1, 2)
MEANS = [0.2, 0.5]


def test_two_arms_by_hand() -> None:
    """a* = (3, 0); every other action plays both arms, and the nearest has gap 0.3."""
    two = Instance(TWO, MEANS)
    assert two.best.tolist() == [3, 0]
    assert two.Delta == pytest.approx([0.3, 0.3])
    assert (two.W, two.lambda_A) == (5, 2)
    t = np.array([10.0, 100.0])
    assert gencts(two).curve(t) == pytest.approx(2 * (6 + 2 * math.log(2)) / 0.3 * np.log(t))
    promise = genlbinfv_stochastic(two, [0.1, 0.25])
    assert promise.proved
    assert promise.curve(t) == pytest.approx(2 * 0.25 / 0.3 * np.log(t))
    slower = genlbinfv_stochastic(two, [0.1, 0.25], eta=0.25)
    assert slower.curve(t) == pytest.approx(2 * promise.curve(t))


def test_rewards_by_hand() -> None:
    two = Instance(Budget(3, [3, 2], sense="max"), MEANS)
    assert two.best.tolist() == [1, 2]
    assert two.Delta == pytest.approx([0.3, 0.3])
    assert not genlbinfv_stochastic(two, 0.25).proved, "a*_1 = 1 is neither 0 nor 3"


def test_adversarial_bound_by_hand() -> None:
    losses = np.tile([[0.2, 0.6], [0.4, 0.6]], (30, 1))
    result = simulate(TWO, Adversarial(losses), {"A": GenLBINFV()}, 60, trials=2)
    # the best is (3, 0): L* = 3 * 18 = 54; Q2 = 60 * 0.1^2 = 0.6; V1 = 59 * 0.2; M T - L* = 126
    bound = genlbinfv_adversarial(TWO, result)
    assert bound.curve(np.array([60.0])) == pytest.approx(2 * math.sqrt(13 * 0.6 * math.log(60)))
    faster = genlbinfv_adversarial(TWO, result, eta=0.25)
    assert faster.curve(np.array([60.0])) == pytest.approx(
        2 * math.sqrt(13 * 0.6 * math.log(60) / 0.5)
    )


def test_realised_bound_by_hand() -> None:
    """beta grew from 1.2 to 2 on both arms: delta = 1.2 / 0.6 = 2."""
    bound = realised_bound(TWO, GenLBINFV(), {"beta2": np.full((3, 2), 4.0)}, horizon=100)
    grown = 2 * 2 - 1.2 + 4 * math.log(2 / 1.2)
    assert bound.mean == pytest.approx(math.log(100) * 5 * grown + 2 * 5 + 5 + 2 * 5 * 2)


@pytest.mark.parametrize(
    "environment",
    [
        Stochastic(Uniform(0, np.array([0.3, 0.6, 0.8, 0.5, 0.9, 0.4]))),
        Stochastic(Bernoulli([0.3, 0.6, 0.8, 0.5, 0.9, 0.4])),
        Adversarial(RandomWalk(0.1)),
    ],
    ids=["uniform", "Bernoulli", "walk"],
)
@pytest.mark.parametrize("policy", [GenLBINFV(), GenLBINFV(prediction="gd", epsilon=0.5)], ids=repr)
def test_the_realised_bound_holds(policy: GenLBINFV, environment: Environment) -> None:
    """The mean regret of 20 trials is below the mean bound, by far more than the noise."""
    plans, T, trials = Transport([1, 4, 5], [4, 6]), 1000, 20
    rng = Streams.spawn(0, POLICY, range(trials))
    world = environment.open(plans, T, range(trials), seed=0)
    state = policy.start(plans, T, trials)
    for _ in range(T):
        play = policy.choose(plans, state, rng)
        policy.update(plans, state, play, world.observe(play.action).feedback, rng)
    bound = realised_bound(plans, policy, state, T)
    regret = simulate(plans, environment, {"A": policy}, T, trials, seed=0).final("A")
    assert regret.mean() + 5 * regret.std() / trials**0.5 < bound.low
    assert bound.high < plans.M * T, "it says more than that losses are at most 1"


def test_refusals() -> None:
    with refused("means"):
        Instance(TWO, [0.5, 0.5])
    with refused("means"):
        Instance(TWO, [[0.5, 0.5]])
    with refused("actions"):
        Instance(Coverage(2, [1, 1]), [0.5, 0.5])
    with refused("limit"):
        Instance(Budget(50, [1] * 100), np.linspace(0, 1, 100))


def test_bounds_are_drawn() -> None:
    result = simulate(TWO, Stochastic(Bernoulli(MEANS)), {"GenCTS": GenCTS()}, 100, trials=3)
    bounds: dict[str, Bound] = {
        "lower bound": lower_bound(TWO, MEANS, Gaussian(0.25)),
        "promise": gencts(Instance(TWO, MEANS)),
    }
    ax = result.plot(bounds=bounds).axes[0]
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["GenCTS", *bounds]
    rounds = result.regret["round"].values
    for line, bound in zip(ax.get_lines()[1:], bounds.values(), strict=True):
        assert np.allclose(line.get_ydata(), bound.curve(rounds.astype(float)))


def test_the_lower_bound_of_figure_1() -> None:
    """The mean over instances lies below what GenCTS loses, and grows with log T."""
    bound = paper.lower_bounds(trials=10, seed=0)
    regret = paper.run("stochastic", horizon=2000, trials=10).final("GenCTS").mean()
    assert 0 < bound.curve(np.array([2000.0]))[0] < regret
    each = [lower_bound(paper.PLANS, c, Gaussian(c**2 / 3)).constant for c in paper.costs(10, 0)]
    assert bound.constant == pytest.approx(np.mean(each))
