"""What is written down of a run, against a slow recomputation from the losses themselves."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from multiplay import (
    Adversarial,
    Bernoulli,
    Budget,
    Constant,
    Corrupted,
    Duplicated,
    Explicit,
    GenCTS,
    GenLBINFV,
    RandomWalk,
    Stochastic,
    Transport,
    Uniform,
    simulate,
)
from multiplay.environments import Environment
from multiplay.random import POLICY, Streams

PLANS = Transport([1, 4, 5], [4, 6])
MEANS = np.random.default_rng(0).uniform(0.1, 0.5, PLANS.d)


def replayed(environment: Environment, horizon: int, trial: int, seed: int) -> dict[str, Any]:
    """Play GenCTS in one trial once more, by hand, and keep every array of every round."""
    policy, rng = GenCTS(), Streams.spawn(seed, POLICY, [trial])
    world = environment.open(PLANS, horizon, [trial], seed)
    state = policy.start(PLANS, horizon, 1)
    kept: dict[str, list[Any]] = {name: [] for name in ("action", "total", "means", "averages")}
    for _ in range(horizon):
        play = policy.choose(PLANS, state, rng)
        feedback, means, averages = world.observe(play.action)
        policy.update(PLANS, state, play, feedback, rng)
        for name, value in [
            ("action", play.action),
            ("total", feedback.total),
            ("means", means),
            ("averages", averages),
        ]:
            kept[name].append(value[0].copy())
    return {name: np.array(values) for name, values in kept.items()}


@pytest.mark.parametrize(
    "environment",
    [
        Stochastic(Uniform(0, 2 * MEANS)),
        Corrupted(Uniform(0, 2 * MEANS), Uniform(1 - 2 * MEANS, 1), at=30),
        Adversarial(RandomWalk(0.1)),
        Adversarial(lambda t, past: np.full(6, 0.5) + (past[-1:].sum(axis=0) > 2) * 0.3),
    ],
    ids=["stochastic", "corrupted", "walk", "adaptive"],
)
def test_quantities_equal_their_definitions(environment: Environment) -> None:
    T, trials, seed = 100, 3, 5
    result = simulate(PLANS, environment, {"A": GenCTS()}, T, trials, seed, record=T)
    data = result.dataset.sel(policy="A")
    for trial in range(trials):
        kept, one = replayed(environment, T, trial, seed), data.sel(trial=trial)
        a, k = kept["action"], kept["averages"]
        everything = PLANS.enumerate()
        best = everything[(everything @ kept["means"].sum(axis=0)).argmin()]
        pseudo = ((a - best) * kept["means"]).sum(axis=1).cumsum()
        paid = (kept["total"].sum(axis=1) - k @ best).cumsum()
        assert np.allclose(one["regret"], pseudo)
        assert np.allclose(one["realised"], paid)
        assert one["switches"] == (np.diff(a, axis=0) != 0).any(axis=1).sum()
        assert one["L_star"] == pytest.approx((everything @ k.sum(axis=0)).min())
        assert one["Q2"] == pytest.approx(((k - k.mean(axis=0)) ** 2).sum())
        assert one["V1"] == pytest.approx(np.abs(np.diff(k, axis=0)).sum())
        seen = [kept["total"][a[:, i] > 0, i] / a[a[:, i] > 0, i] for i in range(PLANS.d)]
        assert one["Q2_played"] == pytest.approx(sum(len(s) * s.var() for s in seen if len(s)))
        assert one["V1_played"] == pytest.approx(sum(np.abs(np.diff(s)).sum() for s in seen))
        if environment.adaptive:
            assert "excess" not in one
        else:
            assert (one["excess"].values == np.maximum(a - best, 0).sum(axis=0)).all()
    assert ("corruption" in data) == isinstance(environment, Corrupted)


@pytest.mark.parametrize("policy", [GenCTS(), GenLBINFV(), Duplicated(GenCTS())], ids=repr)
def test_realised_and_pseudo_regret_agree_in_expectation(policy: Any) -> None:
    """Their difference has mean zero in every trial: z-test over 400 trials, level 1e-6."""
    arms = Budget(3, [2, 2, 2])
    world = Stochastic(Bernoulli([0.2, 0.5, 0.6]))
    data = simulate(arms, world, {"A": policy}, 100, trials=400, seed=0, record=1).dataset
    difference = (data["realised"] - data["regret"]).values.ravel()
    assert difference.std() > 0
    assert abs(difference.mean()) < 4.9 * difference.std() / 400**0.5


def test_three_rounds_by_hand() -> None:
    """Two plans; losses 0.2/0.6, 0.9/0.1, 0.5/0.5: the second is best, with 1.2 against 1.6."""
    losses = np.array([[0.2, 0.6], [0.9, 0.1], [0.5, 0.5]])
    plans = Explicit([[1, 0], [0, 1]])
    data = simulate(plans, Adversarial(losses), {"A": GenCTS()}, 3, trials=50, seed=0).dataset
    steps = np.diff(data["regret"].values[0], axis=1, prepend=0.0)
    first = ~np.isclose(steps, 0.0)
    assert np.allclose(steps[:, 0][first[:, 0]], -0.4)
    assert np.allclose(steps[:, 1][first[:, 1]], 0.8)
    assert np.allclose(steps[:, 2], 0.0)
    assert np.allclose(data["realised"], data["regret"])
    assert np.allclose(data["L_star"], 1.2)
    assert np.allclose(data["Q2"], 0.74 / 3 + 0.14)
    assert np.allclose(data["V1"], 0.7 + 0.5 + 0.4 + 0.4)


def test_constant_losses_have_no_variation() -> None:
    data = simulate(PLANS, Stochastic(Constant(MEANS)), {"A": GenCTS()}, 50, trials=2).dataset
    assert np.allclose(data["Q2"], 0.0)
    assert np.allclose(data["V1"], 0.0)


MEMORY = """
import multiplay as mp, numpy as np, re, sys
plans = mp.Transport([1, 4, 5], [4, 6])
world = mp.Stochastic(mp.Uniform(0, 2 * np.full(6, 0.3)))
run = lambda T: mp.simulate(plans, world, {"A": mp.GenCTS(), "B": mp.RandomAction()}, T, trials=100,
                            record=min(T, 1000))
run(int(sys.argv[1]))
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1)) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_memory_is_what_is_recorded() -> None:
    """With 1000 records, 20,000 rounds of 100 trials take no more memory than 2,000."""
    peaks = []
    for rounds in (2_000, 20_000):
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, str(rounds)], capture_output=True, text=True, check=True
        )
        peaks.append(float(done.stdout))
    assert peaks[1] < peaks[0] + 20
    assert peaks[1] < 500
