"""Rewards: signs, regret, labels."""

import pathlib

import numpy as np
import pytest

from multiplay import (
    Adversarial,
    Bernoulli,
    Budget,
    Constant,
    Coverage,
    Duplicated,
    Explicit,
    GenCTS,
    GenLBINFV,
    Knapsack,
    Stochastic,
    load,
    simulate,
)

SACK = Knapsack([3, 4, 5], 10)
REWARDS = [0.2, 0.6, 0.9]


@pytest.mark.slow
def test_every_policy_learns_to_pack() -> None:
    """The best packing is two of item 3: after a while all policies pack it most of the time."""
    policies = {
        "GenCTS": GenCTS(),
        "CTS": Duplicated(GenCTS()),
        "GenLBINFV": GenLBINFV(),
        "LBINFV": Duplicated(GenLBINFV()),
    }
    result = simulate(SACK, Stochastic(Bernoulli(REWARDS)), policies, 2000, trials=8, seed=0)
    regret = result.regret.mean("trial")
    for name in policies:
        curve = regret.sel(policy=name)
        assert (curve.values >= 0).all(), "no fixed packing earns more than the best"
        late = float(curve.sel(round=2000) - curve.sel(round=1000))
        early = float(curve.sel(round=1000))
        assert late < early / 2, name
        assert late < 0.1 * 1000 * 0.6, name


def test_reward_lost_by_hand() -> None:
    """Three rounds of two packings, fixed in advance: a* is the second, worth 0.5 + 0.9 + 0.1."""
    rewards = np.array([[1.0, 0.5], [0.2, 0.9], [0.0, 0.1]])
    packings = Explicit([[1, 0], [0, 1]], sense="max")
    result = simulate(packings, Adversarial(rewards), {"GenCTS": GenCTS()}, 3, trials=40, seed=0)
    curves = result.regret.sel(policy="GenCTS").values
    steps = np.diff(curves, axis=1, prepend=0.0)
    for t, (first, second) in enumerate(rewards):
        played = np.unique(steps[:, t].round(12))
        assert set(played) == {0.0, round(second - first, 12)}


def test_reward_lost_against_an_adaptive_adversary() -> None:
    """Rewards that look at past actions: the best fixed action is only known at the end."""
    packings = Explicit([[1, 0], [0, 1]], sense="max")

    def rewards(t: int, past: np.ndarray) -> np.ndarray:
        return np.array([1.0, 0.0]) if len(past) == 0 else past[-1, :, ::-1].astype(float)

    result = simulate(packings, Adversarial(rewards), {"GenCTS": GenCTS()}, 20, trials=5, seed=0)
    final = result.final("GenCTS")
    assert (final >= -20).all()
    assert (final > 0).any()


def test_nonlinear_rewards_lose_what_their_value_says() -> None:
    calls, means = Coverage(4, [3, 1]), np.array([0.5, 0.9])
    result = simulate(
        calls, Stochastic(Constant(means)), {"GenCTS": GenCTS()}, 200, trials=3, seed=0, record=200
    )
    steps = np.diff(result.regret.values, axis=-1, prepend=0.0)
    values = calls.value(calls.enumerate(), means)
    losses = np.unique((values.max() - values).round(9))
    assert np.isin(steps.round(9), losses).all()
    assert (steps[..., -20:].mean() < 0.05).all()


def test_labels(tmp_path: pathlib.Path) -> None:
    arms, world = [1, 1, 1], Stochastic(Bernoulli(REWARDS))
    gains = simulate(Budget(1, arms, sense="max"), world, {"A": GenCTS()}, 5, trials=2)
    losses = simulate(Budget(1, arms), world, {"A": GenCTS()}, 5, trials=2)
    for result, column, axis in [
        (gains, "reward lost", "cumulative reward lost"),
        (losses, "regret", "cumulative pseudo-regret"),
    ]:
        result.save(tmp_path / "run.nc")
        again = load(tmp_path / "run.nc")
        assert again.summary().columns[0] == column
        assert again.plot().axes[0].get_ylabel() == axis


@pytest.mark.parametrize("at_most", [False, True])
def test_losses_and_rewards_of_a_budget(at_most: bool) -> None:
    """With at_most, nothing is the least loss and everything the largest reward."""
    spend = Budget(3, [2, 2], at_most=at_most)
    earn = Budget(3, [2, 2], at_most=at_most, sense="max")
    assert spend.best([0.2, 0.4]).tolist() == ([0, 0] if at_most else [2, 1])
    assert earn.best([0.2, 0.4]).tolist() == [1, 2]
