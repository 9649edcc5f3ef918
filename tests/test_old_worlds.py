"""The world speaks once a round; what is one version old still works, with a warning."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from multiplay import (
    ActionSet,
    Environment,
    Feedback,
    GenCTS,
    Observation,
    RandomAction,
    Transport,
    Uniform,
    simulate,
)
from multiplay.environments import Adversarial, RandomWalk, Stochastic, World

PLANS = Transport([1, 4, 5], [4, 6])
ACTION = PLANS.argmin(np.zeros((3, 6)))


def opened() -> World:
    return Stochastic(Uniform(0, np.linspace(0.2, 0.9, 6))).open(PLANS, 10, range(3), 0)


@dataclass(frozen=True, eq=False)
class Waves(Environment):
    """Losses that rise from 0 to 1, by a world of the old or of the new kind."""

    old: bool

    @property
    def kind(self) -> type[World]:
        return OldWave if self.old else NewWave

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        pass

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        return self.kind(len(trials), actions.d, horizon)  # type: ignore[call-arg]


class NewWave(World):
    def __init__(self, trials: int, d: int, horizon: int) -> None:
        self.rows = iter(np.linspace(np.zeros((trials, d)), np.arange(d) / d, horizon))

    def observe(self, action: Any) -> Observation:
        means = next(self.rows)
        return Observation(Feedback(action, action * means), means, means)


class OldWave(NewWave):
    def observe(self, action: Any) -> Any:
        self.means = self.averages = next(self.rows)
        return Feedback(action, action * self.means)


def test_a_world_says_everything_at_once() -> None:
    seen = opened().observe(ACTION)
    assert isinstance(seen, Observation)
    feedback, means, averages = seen
    assert isinstance(feedback, Feedback)
    assert means.shape == averages.shape == (3, 6)


@pytest.mark.parametrize("name", ["total", "count", "units", "first", "mean"])
def test_an_observation_can_still_be_read_like_its_feedback(name: str) -> None:
    seen = opened().observe(ACTION)
    with pytest.warns(DeprecationWarning, match=rf"feedback\.{name}"):
        assert getattr(seen, name) is getattr(seen.feedback, name) or name == "mean"
    with pytest.warns(DeprecationWarning, match=r"feedback\.flip"):
        flip = seen.flip  # type: ignore[attr-defined]
    assert flip(np.random.default_rng(0)).shape == (3, 6)
    assert not hasattr(seen, "losses")


@pytest.mark.parametrize("name", ["means", "averages"])
def test_means_and_averages_can_still_be_read_after_a_round(name: str) -> None:
    world = opened()
    assert not hasattr(world, name), "before the first round there are none"
    for _ in range(2):
        seen = world.observe(ACTION)
        with pytest.warns(DeprecationWarning, match=rf"world\.observe\(action\)\.{name}"):
            assert getattr(world, name) is getattr(seen, name)


def test_an_old_world_is_simulated_like_a_new_one() -> None:
    settings: dict[str, Any] = {"horizon": 20, "trials": 3, "seed": 0}
    new = simulate(PLANS, Waves(old=False), {"GenCTS": GenCTS()}, **settings)
    with pytest.warns(DeprecationWarning, match="Observation"):
        old = simulate(PLANS, Waves(old=True), {"GenCTS": GenCTS()}, **settings)
    assert (old.regret == new.regret).all()
    assert (old.dataset["V1"] == new.dataset["V1"]).all()


@dataclass(frozen=True, eq=False)
class Counted(Environment):
    """A random walk that writes down which trials are observed, and how often."""

    rounds: list[tuple[int, ...]]

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        pass

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        walk = Adversarial(RandomWalk(0.1)).open(actions, horizon, trials, seed)
        return CountedWorld(walk, tuple(trials), self.rounds)


class CountedWorld(World):
    def __init__(self, world: World, trials: tuple[int, ...], rounds: list[tuple[int, ...]]):
        self.world, self.trials, self.rounds = world, trials, rounds

    def observe(self, action: Any) -> Observation:
        self.rounds.append(self.trials)
        return self.world.observe(action)


def test_one_look_ahead_serves_all_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three policies, blocks of 2 and 1 trials: each is played three times, and seen ahead once."""
    monkeypatch.setattr("multiplay.simulation.block.warm_up", lambda block: None)
    environment = Counted([])
    policies = {"a": RandomAction(), "b": GenCTS(), "c": RandomAction()}
    result = simulate(PLANS, environment, policies, horizon=7, trials=3, seed=0, block=2)
    assert sorted(set(environment.rounds)) == [(0, 1), (2,)]
    assert environment.rounds.count((0, 1)) == environment.rounds.count((2,)) == 7 * (3 + 1)
    alone = simulate(PLANS, Adversarial(RandomWalk(0.1)), {"b": GenCTS()}, 7, 3, seed=0)
    assert (result.regret.sel(policy="b") == alone.regret.sel(policy="b")).all()


def test_the_best_action_of_a_walk_is_the_same_in_other_processes(tmp_path: Any) -> None:
    policies = {"a": RandomAction(), "b": GenCTS()}
    walk = Adversarial(RandomWalk(0.1))
    here = simulate(PLANS, walk, policies, 30, 3, seed=0)
    there = simulate(PLANS, walk, policies, 30, 3, seed=0, jobs=2, block=2)
    assert (here.regret == there.regret).all()
