"""Contextual losses: means, streams, features that policies see, tables and bad input."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike
from scipy.stats import kstest

import multiplay as mp
from multiplay.environments.contexts import NormalContexts
from multiplay.experiments.experiment import read
from multiplay.random import Rng
from multiplay.testing import check_environment
from multiplay.types import Arrays, FloatArray

PLANS = mp.Transport.example()
LEVEL = 1e-4  # the probability that a correct sampler is refused
THETA = [0.5, 0.1, -0.05]


@dataclass(frozen=True)
class Reader(mp.Policy):
    """Play the best plan for known coefficients of the features."""

    theta: tuple[float, ...]
    reads_features = True
    changing = True

    def start(self, actions: mp.ActionSet, horizon: int | None, trials: int) -> Arrays:
        p = 0 if actions.features is None else actions.features.p  # 0: a check before round 1
        return {"p": np.full((trials, 1), p)}

    def choose(self, actions: mp.ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        assert actions.features is not None
        assert (state["p"] == actions.features.p).all(), "start must get features"
        means = means_of(actions.features.arm, self.theta)
        return mp.Play(actions.best(np.broadcast_to(means, (len(state["p"]), actions.d)).copy()))

    def update(
        self, actions: mp.ActionSet, state: Arrays, play: mp.Play, feedback: Any, rng: Rng
    ) -> None:
        assert actions.features is not None


class Blind(Reader):
    """A policy that must not get features."""

    reads_features = False

    def start(self, actions: mp.ActionSet, horizon: int | None, trials: int) -> Arrays:
        assert actions.features is None
        return {"trial": np.arange(trials)}

    def choose(self, actions: mp.ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        assert actions.features is None
        return mp.Play(actions.best(np.tile(rng.random((len(state["trial"]), 1)), actions.d)))

    def update(self, actions: mp.ActionSet, *others: Any) -> None:
        assert actions.features is None


def means_of(phi: FloatArray, theta: ArrayLike) -> FloatArray:
    means: FloatArray = phi @ np.asarray(theta)
    return means


def worlds(
    environment: mp.Environment, rounds: int, trials: Sequence[int] = (0, 1, 2), seed: int = 5
) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
    """Return phi, means and averages of every round."""
    environment.check(PLANS, rounds, len(trials))
    world = environment.open(PLANS, rounds, trials, seed)
    idle = np.zeros((len(trials), PLANS.d), dtype=np.int64)
    seen = []
    for t in range(1, rounds + 1):
        rows = world.contexts(t)
        assert rows is not None
        phi = np.broadcast_to(rows.arm * rows.day[:, None], (len(trials), PLANS.d, rows.p))
        outcome = world.observe(idle)
        assert world.contexts(t) is rows
        seen.append((phi, outcome.means, outcome.averages))
    return seen


# ------------------------------------------------------------------ means


@pytest.mark.parametrize("every", ["round", "week", "once"])
def test_means_are_linear_in_the_features(every: str) -> None:
    effects = np.linspace(-0.1, 0.1, PLANS.d)
    environment = mp.Contextual(THETA, mp.NormalContexts(3, every), effects)
    for phi, means, _ in worlds(environment, 9):
        np.testing.assert_allclose(means, np.clip(phi @ THETA + effects, 0, 1), atol=1e-12)


@pytest.mark.parametrize(
    ("link", "g"),
    [
        ("logistic", lambda x: 1 / (1 + np.exp(-x))),
        ((0.4, 0.1, 0.05), lambda x: 0.4 + 0.1 * x + 0.05 * x**2),
    ],
)
def test_links(link: Any, g: Any) -> None:
    theta = [-0.5, 1.0, 0.5]
    for phi, means, _ in worlds(mp.Contextual(theta, mp.NormalContexts(3), link=link), 4):
        np.testing.assert_allclose(means, np.clip(g(phi @ np.array(theta)), 0, 1), atol=1e-12)


def test_coefficients_by_round_and_trial() -> None:
    theta = np.random.default_rng(0).normal(0, 0.05, (3, 4, 2)) + np.array([0.5, 0])
    for t, (phi, means, _) in enumerate(worlds(mp.Contextual(theta, mp.NormalContexts(2)), 9)):
        expected = np.einsum("kip,kp->ki", phi, theta[:, t % 4])
        np.testing.assert_allclose(means, expected, atol=1e-12)
    rounds = mp.Contextual(theta[0], mp.NormalContexts(2))
    for t, (phi, means, _) in enumerate(worlds(rounds, 9)):
        np.testing.assert_allclose(means, phi @ theta[0, t % 4], atol=1e-12)


def test_features_repeat_as_the_setting_says() -> None:
    phi = {
        every: [phi for phi, *_ in worlds(mp.Contextual(THETA, NormalContexts(3, every)), 15)]
        for every in ("round", "week", "once")
    }
    assert all((a == phi["once"][0]).all() for a in phi["once"])
    assert all((phi["week"][t] == phi["week"][t % 7]).all() for t in range(15))
    assert not any((a == b).all() for a, b in pairwise(phi["week"][:8]))
    assert not any((a == b).all() for a, b in pairwise(phi["round"]))
    assert (phi["round"][0] == phi["once"][0]).all()
    drawn = np.array(phi["round"])[..., 1:].ravel()
    assert kstest(drawn, "norm").pvalue > LEVEL
    assert (np.array(phi["round"])[..., 0] == 1).all()


def test_effects_have_the_stated_deviations() -> None:
    trials, rounds = range(60), 20
    environment = mp.Contextual([0.5], np.ones((6, 1)), arm_sd=0.05, width=0.0)
    drawn = np.concatenate([means for _, means, _ in worlds(environment, 1, trials)]) - 0.5
    assert kstest(drawn.ravel() / 0.05, "norm").pvalue > LEVEL
    for name in ("round_sd", "day_sd"):
        effect: dict[str, Any] = {name: 0.05}
        environment = mp.Contextual([0.5], np.ones((6, 1)), width=0.0, **effect)
        seen = worlds(environment, rounds, trials)
        assert all((means == 0.5).all() for _, means, _ in seen)
        levels = np.array([averages for *_, averages in seen]) - 0.5
        if name == "day_sd":
            np.testing.assert_allclose(levels, levels[..., :1] + 0 * levels, atol=1e-12)
            levels = levels[..., 0]
        assert kstest(levels.ravel() / 0.05, "norm").pvalue > LEVEL


@pytest.mark.parametrize("losses", ["uniform", "bernoulli"])
def test_losses_near_0_keep_their_mean(losses: str) -> None:
    environment = mp.Contextual([0.02], np.ones((6, 1)), round_sd=0.1, day_sd=0.1, losses=losses)
    check_environment(environment, PLANS)
    averages = np.array([a for *_, a in worlds(environment, 100, range(30))])
    error = averages.std() / np.sqrt(100 * 30)  # arms of a day are not independent
    assert abs(averages.mean() - 0.02) < 4 * error


# ---------------------------------------------------------------- streams


def test_losses_and_features_do_not_depend_on_trials_or_plays() -> None:
    environment = mp.Contextual(
        THETA, mp.NormalContexts(3), arm_sd=0.05, round_sd=0.05, day_sd=0.02
    )
    check_environment(environment, PLANS)
    together, alone = worlds(environment, 5), worlds(environment, 5, [2])
    for some, one in zip(together, alone, strict=True):
        for a, b in zip(some, one, strict=True):
            assert (a[2] == b[0]).all()


@pytest.mark.slow
def test_losses_are_the_same_for_all_policies_and_jobs() -> None:
    environment = mp.Contextual(THETA, mp.NormalContexts(3), round_sd=0.05)
    policies = {"reader": Reader(tuple(THETA)), "GenCTS": mp.GenCTS(), "blind": Blind(())}
    settings: dict[str, Any] = {"horizon": 20, "trials": 5, "seed": 3}
    one = mp.simulate(PLANS, environment, policies, **settings)
    two = mp.simulate(PLANS, environment, policies, **settings, jobs=2)
    assert one.regret.equals(two.regret)
    alone = mp.simulate(PLANS, environment, {"GenCTS": mp.GenCTS()}, **settings)
    assert (alone.final("GenCTS") == one.final("GenCTS")).all()


def test_unit_losses_do_not_depend_on_the_features_that_are_drawn() -> None:
    constant: dict[str, Any] = {"theta": [0.5, 0.0], "width": 0.1}
    one = worlds(mp.Contextual(contexts=mp.NormalContexts(2), **constant), 5)
    other = worlds(mp.Contextual(contexts=mp.NormalContexts(2, "once"), **constant), 5)
    assert all((a[2] == b[2]).all() for a, b in zip(one, other, strict=True))


# ------------------------------------------------------------- simulation


def test_a_policy_that_knows_theta_has_no_regret() -> None:
    policies = {"reader": Reader(tuple(THETA)), "blind": Blind(())}
    environment = mp.Contextual(THETA, mp.NormalContexts(3), round_sd=0.05)
    result = mp.simulate(PLANS, environment, policies, 50, 4, seed=0)
    assert result.label == "regret against the best action of each round"
    assert np.abs(result.final("reader")).max() < 1e-9
    assert result.final("blind").min() > 1
    fixed = mp.simulate(PLANS, environment, policies, 50, 4, seed=0, against="fixed")
    assert (fixed.final("reader") < result.final("blind")).all()


def test_changing_sets_with_features() -> None:
    sets = mp.TimeVarying([PLANS, mp.Transport([2, 2, 2], [6, 0])])
    environment = mp.Contextual(THETA, mp.NormalContexts(3))
    result = mp.simulate(sets, environment, [Reader(tuple(THETA)), mp.GenCTS()], 30, 3, seed=0)
    assert np.abs(result.final(repr(Reader(tuple(THETA))))).max() < 1e-9


def test_one_arm_and_one_round() -> None:
    actions = mp.Budget(1, [1])
    environment = mp.Contextual([0.5, 0.1], mp.NormalContexts(2))
    policies = {"reader": Reader((0.5, 0.1)), "GenCTS": mp.GenCTS()}
    result = mp.simulate(actions, environment, policies, 1, 2, seed=0)
    assert (result.final("GenCTS") == 0).all()


@pytest.mark.slow
def test_many_units() -> None:
    plans = mp.Transport([1000, 4000], [2000, 3000])
    environment = mp.Contextual([0.5, 0.1], mp.NormalContexts(2), round_sd=0.05)
    assert environment.shows_units(plans)
    world = environment.open(plans, 1, [0], 0)
    seen = world.observe(np.array([[1000, 0, 1000, 3000]]))
    units = seen.feedback.units
    assert units is not None
    assert units[0, :1000].sum() == pytest.approx(seen.feedback.total[0, 0])
    assert not environment.shows_units(mp.Transport([10**9], [10**9]))


# ------------------------------------------------------------------ tables


def lanes(rounds: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    arm, day = np.tile(PLANS.names, rounds), np.repeat(np.arange(rounds), PLANS.d)
    return pd.DataFrame({"arm": arm, "round": day, "km": rng.random(len(arm))})


def test_a_table_gives_the_features_of_an_array(tmp_path: Path) -> None:
    table = lanes(3)
    array = np.ones((3, PLANS.d, 2))
    array[..., 1] = table["km"].to_numpy().reshape(3, -1)
    table.to_csv(tmp_path / "lanes.csv", index=False)
    shuffled = table.sample(frac=1, random_state=0)
    forms = [array, shuffled, table.to_dict("list"), str(tmp_path / "lanes.csv")]
    found = [worlds(mp.Contextual([0.5, 0.1], form), 7) for form in forms]
    for other in found[1:]:
        for some, one in zip(found[0], other, strict=True):
            assert all((a == b).all() for a, b in zip(some, one, strict=True))
    logs = {mp.Contextual([0.5, 0.1], form).contexts.sha256 for form in (table, forms[2])}
    assert len(logs) == 1


def test_a_table_without_rounds_stays() -> None:
    table = lanes(1).drop(columns="round")
    seen = worlds(mp.Contextual([0.5, 0.1], table), 3)
    assert all((phi == seen[0][0]).all() for phi, *_ in seen)


def test_an_experiment_file(tmp_path: Path) -> None:
    (tmp_path / "lanes.toml").write_text(
        """
        horizon = 20
        trials = 2
        seed = 1
        [actions]
        type = "Transport"
        supply = [1, 4, 5]
        demand = [4, 6]
        [environment]
        type = "Contextual"
        theta = [0.5, 0.1, -0.05]
        contexts = { type = "NormalContexts", p = 3, every = "week" }
        round_sd = 0.05
        [policies]
        GenCTS = { type = "GenCTS" }
        """
    )
    result = read(tmp_path / "lanes.toml").run()
    environment = mp.Contextual(THETA, mp.NormalContexts(3, "week"), round_sd=0.05)
    same = mp.simulate(PLANS, environment, {"GenCTS": mp.GenCTS()}, 20, 2, seed=1)
    assert (result.final("GenCTS") == same.final("GenCTS")).all()


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"theta": 0.5}, "theta: expected shape"),
        ({"theta": [0.5, np.nan]}, "theta: expected finite"),
        ({"theta": np.ones((1, 1, 1, 2))}, "theta: expected shape"),
        ({"theta": [0.5, 0.1, 0.2]}, "theta: expected 2 coefficients"),
        ({"contexts": np.ones(3)}, "contexts: expected NormalContexts"),
        ({"contexts": np.zeros((6, 2))}, "contexts: expected 1 in the first column"),
        ({"contexts": np.full((6, 2), np.nan)}, "contexts: expected finite"),
        ({"contexts": {"arm": ["a"]}}, "contexts: expected columns"),
        ({"contexts": {"arm": ["a"], "km": ["far"]}}, "table"),
        ({"contexts": {"arm": ["a"], "km": [np.nan]}}, "table"),
        ({"contexts": "missing.csv"}, "table"),
        ({"effects": "none"}, "effects: expected numbers"),
        ({"round_sd": -1}, "round_sd: expected a number of at least 0"),
        ({"day_sd": np.inf}, "day_sd"),
        ({"arm_sd": np.nan}, "arm_sd"),
        ({"width": "wide"}, "width"),
        ({"losses": "normal"}, "losses: expected 'uniform' or 'bernoulli'"),
        ({"link": "probit"}, "link: expected"),
        ({"link": []}, "link: expected"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], says: str) -> None:
    good: dict[str, Any] = {"theta": [0.5, 0.1], "contexts": mp.NormalContexts(2)}
    with pytest.raises(mp.InvalidInput, match=says):
        mp.Contextual(**good | settings)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"effects": [0.1, 0.2]}, "effects: expected a number, or shape"),
        ({"effects": np.zeros((4, 6))}, "effects"),
        ({"theta": np.full((4, 1, 2), 0.5)}, "theta: expected coefficients for 3 trials"),
        ({"contexts": np.ones((5, 2))}, "contexts: expected features of 6 arms"),
        ({"contexts": np.ones((4, 1, 6, 2))}, "contexts: expected features of 6 arms"),
        ({"contexts": {"arm": ["1->1"], "km": [1.0]}}, "contexts: expected features of arm"),
        ({"contexts": lanes(2).iloc[:-1]}, "in every round, got none in round 2"),
    ],
)
def test_shapes_that_do_not_fit_the_set_are_refused(settings: dict[str, Any], says: str) -> None:
    good: dict[str, Any] = {"theta": [0.5, 0.1], "contexts": mp.NormalContexts(2)}
    with pytest.raises(mp.InvalidInput, match=says):
        mp.simulate(PLANS, mp.Contextual(**good | settings), [mp.GenCTS()], 5, 3)


@pytest.mark.parametrize(
    ("p", "every", "says"),
    [(0, "round", "p: "), (2.5, "round", "p: "), (201, "round", "p: "), (2, "day", "every: ")],
)
def test_bad_normal_contexts_are_refused(p: Any, every: str, says: str) -> None:
    with pytest.raises(mp.InvalidInput, match=says):
        mp.NormalContexts(p, every)
