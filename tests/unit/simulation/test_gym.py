"""The Gymnasium environment, against Gymnasium's own checker and a simulation."""

from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from refusal import refused

import multiplay as mp
from multiplay.gym import PlanEnv

MEANS = np.array([0.1, 0.7, 0.4, 0.2, 0.3, 0.5])
PLANS, COINS = mp.Transport([1, 4, 5], [4, 6]), mp.Stochastic(mp.Bernoulli(MEANS))
ADS = mp.Budget(3, [2, 3, 1], sense="max")
CASES: dict[str, Any] = {
    "losses": (PLANS, COINS),
    "rewards": (ADS, mp.Stochastic(mp.Beta([0.2, 0.5, 0.7], 1))),
    "features": (PLANS, mp.Contextual.example()),
    "one arm": (mp.Budget(1, [1]), mp.Stochastic(mp.Bernoulli([0.5]))),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # a Box without bounds, for costs
@pytest.mark.parametrize("case", CASES)
def test_the_checker_of_gymnasium(case: str) -> None:
    actions, environment = CASES[case]
    check_env(PlanEnv(actions, environment, horizon=20))


def test_an_episode_by_hand() -> None:
    """Seed 3; the best and the worst plan in turn: rewards, sums and regret add up."""
    env = PlanEnv(PLANS, COINS, 30, acts_by="plan")
    seen, _ = env.reset(seed=3)
    assert not any(value.any() for value in seen.values())
    plans = [PLANS.argmin(MEANS), PLANS.argmin(-MEANS)]
    rewards, units = [], np.zeros(6)
    for t in range(30):
        seen, reward, terminated, truncated, info = env.step(plans[t % 2])
        rewards.append(reward)
        units += info["plan"]
        assert not terminated
        assert truncated == (t == 29)
        assert reward == pytest.approx(-(seen["mean"] * info["plan"]).sum(), rel=1e-5)
    assert info["regret"] == pytest.approx(15 * (plans[1] - plans[0]) @ MEANS)
    np.testing.assert_allclose(seen["seen"] * PLANS.n * 30, units, rtol=1e-5)
    np.testing.assert_allclose((seen["average"] * units).sum(), -sum(rewards), rtol=1e-5)


def test_seeds_repeat_and_differ() -> None:
    def rewards(seed: int) -> list[float]:
        env = PlanEnv(PLANS, COINS, 20)
        env.reset(seed=seed)
        return [env.step(MEANS)[1] for _ in range(20)]

    assert rewards(1) == rewards(1) != rewards(2)


def test_rewards_and_known_costs_have_their_sign() -> None:
    env = PlanEnv(ADS, mp.Stochastic(mp.Constant([0.2, 0.5, 0.7])), 5)
    env.reset(seed=0)
    assert env.step([-0.2, -0.5, -0.7])[1] == pytest.approx(0.7 + 2 * 0.5)


@pytest.mark.parametrize(
    ("argument", "changes"),
    [
        ("actions", {"actions": mp.TimeVarying([PLANS, PLANS])}),
        ("actions", {"actions": "trucks"}),
        ("environment", {"environment": None}),
        ("horizon", {"horizon": 0}),
        ("acts_by", {"acts_by": "hand"}),
    ],
)
def test_bad_settings(argument: str, changes: dict[str, Any]) -> None:
    with refused(argument):
        PlanEnv(**{"actions": PLANS, "environment": COINS, "horizon": 9, **changes})


def test_bad_actions() -> None:
    env = PlanEnv(PLANS, COINS, 9, acts_by="plan")
    env.reset(seed=0)
    for plan in ([1, 0, 0, 4, 3, 3], [1, 0], [0.5] * 6, [np.nan] * 6, -np.ones(6)):
        with refused("action"):
            env.step(np.array(plan))
    costs = PlanEnv(PLANS, COINS, 9)
    costs.reset(seed=0)
    for given in ([1.0, 2.0], [np.nan] * 6, "costs"):
        with refused("action"):
            costs.step(given)
