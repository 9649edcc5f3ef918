"""Regimes: what a world says of its losses, attacks on a budget, waves, walks and phases."""

import json
import pickle
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from refusal import refused

import multiplay as mp
from multiplay import (
    Adversarial,
    Bernoulli,
    Beta,
    Budget,
    Constant,
    Corrupted,
    Distribution,
    Environment,
    Observation,
    Stochastic,
    Transport,
    Uniform,
    environments,
)
from multiplay._support.builder import Builder, classes_of
from multiplay._support.serialization import describe, pack, unpack
from multiplay.environments import Alternating, Attacked, RandomWalk, Sinusoids, World
from multiplay.experiments import paper

Array = NDArray[np.float64]

PLANS = Transport([1, 4, 5], [4, 6])
TRIALS, ROUNDS = 4, 12
BILLION = 10**9
HUGE = Transport([BILLION, BILLION], [BILLION, BILLION])
MIXED = Budget(4000, caps=[3, 5, 4000])  # four slots for each arm: n = 3, 5, 4000

RNG = np.random.default_rng(0)
LOW, HIGH = RNG.uniform(0, 0.5, (TRIALS, 6)), RNG.uniform(0.5, 1, (TRIALS, 6))
UNIFORM, BETA = Uniform(LOW, HIGH), Beta([1, 2, 3, 4, 5, 6], 2)
COIN = Bernoulli([0.3, 0.4, 0.5, 0.6, 0.7, 0.4])


def copycat(t: int, past: NDArray[np.int64]) -> Array:
    """What was played more often costs more."""
    losses: Array = (1 + past.sum(axis=0)) / (1 + 5 * t)
    return losses


CHANGED: dict[str, tuple[Distribution, Environment]] = {  # beside the clean losses
    "switch": (UNIFORM, Corrupted(UNIFORM, Bernoulli(LOW), at=4)),
    "attack": (BETA, Attacked(BETA, budget=3.3)),
    "attack on all": (UNIFORM, Attacked(UNIFORM, budget=3.3, on="all")),
    "spread attack": (COIN, Attacked(COIN, budget=3.3, when="spread")),
    "spread attack on all": (BETA, Attacked(BETA, budget=3.3, when="spread", on="all")),
}
UNCHANGED: dict[str, Environment] = {
    "stochastic": Stochastic(BETA),
    "adversarial": Adversarial(RNG.random((ROUNDS, 6))),
    "slots": Adversarial(RNG.random((ROUNDS, 6, 7))),
    "adaptive": Adversarial(copycat),
    "alternating": Alternating([0.3, 0.4, 0.5, 0.6, 0.7, 0.4], shift=0.3, first=2),
    "sinusoids": Adversarial(Sinusoids(0.5, [0.1, 0.2, 0.3, 0.4, 0.5, 0.0], period=5.5)),
    "random walk": Adversarial(RandomWalk(step=0.15)),
}
ENVIRONMENTS = UNCHANGED | {name: environment for name, (_, environment) in CHANGED.items()}
everywhere = pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
changed = pytest.mark.parametrize(("clean", "environment"), CHANGED.values(), ids=CHANGED)


def opened(environment: Environment, trials: Any = range(TRIALS), seed: int = 5) -> World:
    environment.check(PLANS, ROUNDS, TRIALS)
    return environment.open(PLANS, ROUNDS, trials, seed)


def everything(world: World, actions: Any = PLANS, trials: int = TRIALS) -> Observation:
    """Play all n_i units of every arm, to see their losses."""
    return world.observe(np.tile(actions.n, (trials, 1)))


def all_units(seen: Observation) -> Array:
    assert seen.feedback.units is not None
    return seen.feedback.units


def spent(world: World) -> Array:
    assert world.corruption is not None
    return world.corruption


@dataclass(frozen=True)
class Scripted(mp.Policy):
    """Plays what is written, over and over."""

    script: tuple[tuple[int, ...], ...]

    def start(self, actions: Any, horizon: int | None, trials: int) -> Any:
        return {"round": np.zeros(trials, dtype=np.int64)}

    def choose(self, actions: Any, state: Any, rng: Any) -> mp.Play:
        return mp.Play(np.array(self.script)[state["round"] % len(self.script)])

    def update(self, actions: Any, state: Any, play: Any, feedback: Any, rng: Any) -> None:
        state["round"] += 1


# ---------------------------------------------------------------- averages over all units


@everywhere
def test_averages_are_those_of_all_units_whatever_is_played(environment: Environment) -> None:
    nothing, all_of_it = opened(environment), opened(environment)
    for _ in range(ROUNDS):
        seen = everything(all_of_it)
        units = all_units(seen)
        edges = np.cumsum(PLANS.n)[:-1]
        expected = np.column_stack([arm.mean(axis=1) for arm in np.split(units, edges, axis=1)])
        np.testing.assert_allclose(seen.averages, expected, rtol=1e-12, atol=1e-15)
        if not environment.adaptive:
            unseen = nothing.observe(np.zeros((TRIALS, 6), dtype=np.int64))
            assert (unseen.averages == seen.averages).all()
            assert (unseen.means == seen.means).all()


def test_only_functions_of_the_past_are_adaptive() -> None:
    assert [name for name, one in ENVIRONMENTS.items() if one.adaptive] == ["adaptive"]


@pytest.mark.parametrize("actions", [HUGE, MIXED], ids=["billions", "mixed"])
def test_averages_of_a_great_many_units_are_totals_of_playing_all(actions: Any) -> None:
    world = Stochastic(Uniform(0.1, np.linspace(0.2, 0.9, actions.d))).open(actions, 3, range(5), 0)
    for _ in range(3):
        feedback, _, averages = everything(world, actions, 5)
        assert feedback.units is None, "else every unit has a loss of its own"
        np.testing.assert_allclose(averages, feedback.total / actions.n, rtol=1e-12)


@pytest.mark.parametrize("actions", [HUGE, MIXED], ids=["billions", "mixed"])
def test_averages_of_a_great_many_units_have_the_right_mean_and_variance(actions: Any) -> None:
    """Level: at most 4 arms, a mean and a variance each, 8 tests at 1e-7 (5.33 standard errors)."""
    trials, high = 20_000, np.linspace(0.4, 1, actions.d)
    world = Stochastic(Uniform(0, high)).open(actions, 1, range(trials), 0)
    averages = everything(world, actions, trials).averages
    variance = high**2 / 12 / actions.n
    error = np.abs(averages.mean(axis=0) - high / 2)
    assert (error < 5.33 * np.sqrt(variance / trials)).all()
    # averages of uniform numbers have no heavier tails than a normal: Var s^2 <= 2 sigma^4 / trials
    ratio = averages.var(axis=0, ddof=1) / variance
    assert (np.abs(ratio - 1) < 5.33 * np.sqrt(2 / trials)).all()


def test_an_arm_without_units_has_average_zero() -> None:
    actions = Budget(2, caps=[2, 0, 2])
    for environment in (
        Stochastic(Uniform(0.5, np.ones(3))),
        Corrupted(Constant(np.full(3, 0.5)), Constant(np.ones(3)), at=1),
        Attacked(Constant(np.full(3, 0.5)), budget=1),
    ):
        world = environment.open(actions, 2, range(3), 0)
        for _ in range(2):
            averages = world.observe(np.tile([2, 0, 0], (3, 1))).averages
            assert (averages[:, 1] == 0).all()
            assert (averages[:, [0, 2]] >= 0.5).all()


# ---------------------------------------------------------------- corruption, measured


@changed
def test_corruption_is_the_sum_of_the_largest_changes(
    clean: Distribution, environment: Environment
) -> None:
    """With the same seed, the clean losses are those of the stochastic regime."""
    world, untouched, total = opened(environment), opened(Stochastic(clean)), np.zeros(TRIALS)
    for _ in range(ROUNDS):
        now, before = all_units(everything(world)), all_units(everything(untouched))
        total += np.abs(now - before).max(axis=1)
        np.testing.assert_allclose(spent(world), total, rtol=1e-12)
    assert (total > 1).all(), "else nothing was compared"


@changed
def test_corruption_depends_neither_on_play_nor_on_other_trials(
    clean: Distribution, environment: Environment
) -> None:
    together, alone = opened(environment), opened(environment, [2])
    for _ in range(ROUNDS):
        everything(together)
        alone.observe(np.zeros((1, 6), dtype=np.int64))
    assert (spent(together)[[2]] == spent(alone)).all()


@pytest.mark.parametrize("name", UNCHANGED)
def test_without_clean_losses_there_is_no_corruption(name: str) -> None:
    world = opened(UNCHANGED[name])
    everything(world)
    assert world.corruption is None


def test_corruption_of_the_paper_is_the_largest_shift() -> None:
    """From [0, 2c] to [1 - 2c, 1] every loss of a lane moves by 1 - 2c."""
    horizon, trials = 100, 30
    environment = paper.environments(horizon, trials, 3)["corrupted"]
    assert isinstance(environment, Corrupted)
    assert isinstance(environment.before, Uniform)
    largest = (1 - environment.before.high).max(axis=1)
    world = environment.open(PLANS, horizon, range(trials), 3)
    for t in range(1, horizon + 1):
        everything(world, PLANS, trials)
        np.testing.assert_allclose(spent(world), max(t - environment.at, 0) * largest, rtol=1e-12)
    assert (spent(world) > 10).all()


def test_without_corrupted_rounds_corruption_is_zero() -> None:
    world = opened(Corrupted(Constant(np.zeros(6)), Constant(np.ones(6)), at=ROUNDS))
    for _ in range(ROUNDS):
        everything(world)
    assert (spent(world) == np.zeros(TRIALS)).all()


def test_corruption_counts_all_units_of_a_huge_plan() -> None:
    """One unit in a thousand is changed: among billions, some unit always is."""
    switch = Corrupted(Bernoulli(np.full(4, 0.5)), Bernoulli(np.full(4, 0.501)), at=1)
    world = switch.open(HUGE, 11, range(2), 0)
    for _ in range(11):
        everything(world, HUGE, 2)
    assert (spent(world) == np.full(2, 10.0)).all()


def test_nothing_is_counted_where_nothing_can_change() -> None:
    """A sure 0 stays a sure 0, whatever the luck."""
    sure = Bernoulli(np.zeros(4))
    for environment in (Corrupted(sure, Constant(np.zeros(4)), at=1), Attacked(sure, budget=0)):
        world = environment.open(HUGE, 3, [0], 0)
        for _ in range(3):
            everything(world, HUGE, 1)
        assert (spent(world) == np.zeros(1)).all()


# ---------------------------------------------------------------- attacks on a budget


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("on", ["best", "all"])
@pytest.mark.parametrize("when", ["start", "spread"])
def test_an_attack_moves_losses_by_its_formula(sense: str, on: str, when: str) -> None:
    """Arms 1 and 2 are the best where losses count, arms 3 and 4 where rewards do."""
    actions = Budget(4, caps=[2, 2, 2, 2], sense=sense)
    clean = Uniform([0.1, 0.2, 0.4, 0.5], [0.3, 0.5, 0.8, 0.9])
    attack = Attacked(clean, budget=2.2, when=when, on=on)
    world, untouched = (one.open(actions, 10, range(3), 1) for one in (attack, Stochastic(clean)))
    best = np.array([1, 1, 0, 0] if sense == "min" else [0, 0, 1, 1], dtype=bool)
    target = np.where(best, 1.0, 0.0) if sense == "min" else np.where(best, 0.0, 1.0)
    moved = best | (on == "all")
    # an arm can move by so much: up from its lower limit, or down from its upper one
    reach = np.where(target == 1, 1 - clean.low, clean.high)[moved].max()
    total = np.zeros(3)
    for _ in range(10):
        seen = everything(world, actions, 3)
        now, before = all_units(seen), all_units(everything(untouched, actions, 3))
        strength = np.clip((2.2 - total) / reach, 0, 1) if when == "start" else np.full(3, 0.22)
        pull = np.where(moved, target - clean.mean, 0)
        np.testing.assert_allclose(seen.means, clean.mean + np.outer(strength, pull), atol=1e-12)
        pull = np.where(moved.repeat(2), target.repeat(2) - before, 0)
        np.testing.assert_allclose(now, before + strength[:, None] * pull, atol=1e-12)
        total += np.abs(now - before).max(axis=1)


@pytest.mark.parametrize("on", ["best", "all"])
@pytest.mark.parametrize("clean", [UNIFORM, BETA, COIN], ids=["uniform", "beta", "bernoulli"])
@pytest.mark.parametrize("budget", [0, 0.4, 1, 7.3])
def test_a_budget_is_spent_and_never_exceeded(clean: Distribution, on: str, budget: float) -> None:
    world = Attacked(clean, budget, on=on).open(PLANS, 60, range(TRIALS), 2)
    for _ in range(60):
        everything(world)
        assert (spent(world) <= budget + 1e-12).all()
    assert (spent(world) >= budget - 1e-6).all()


def test_a_spread_attack_stays_within_its_budget() -> None:
    """Some coin of a good arm nearly always shows 0, and is moved by all that a round allows."""
    world = Attacked(COIN, budget=30, when="spread").open(PLANS, 60, range(TRIALS), 2)
    for t in range(1, 61):
        everything(world)
        assert (spent(world) <= 0.5 * t + 1e-12).all()
    assert (spent(world) > 25).all()


@pytest.mark.parametrize("when", ["start", "spread"])
def test_more_budget_than_rounds_moves_losses_all_the_way(when: str) -> None:
    one = Budget(1, caps=[1, 1])
    world = Attacked(Constant([0.25, 0.5]), 100, when, "all").open(one, 10, [0], 0)
    for _ in range(10):
        assert (everything(world, one, 1).feedback.total == [[1, 0]]).all()
    assert spent(world) == pytest.approx([7.5])


@pytest.mark.parametrize("when", ["start", "spread"])
def test_a_budget_holds_for_a_great_many_units(when: str) -> None:
    """Somewhere among a billion a clean loss is 0.2, and moves by 0.8 s."""
    clean = Uniform(np.array([0.2, 0.5, 0.5, 0.2]), np.array([0.4, 0.9, 0.9, 0.4]))
    world = Attacked(clean, budget=2, when=when).open(HUGE, 5, range(3), 0)
    costs = [0.8, 1.6, 2.0, 2.0, 2.0] if when == "start" else [0.32, 0.64, 0.96, 1.28, 1.6]
    strength = [1, 1, 0.5, 0, 0] if when == "start" else [0.4] * 5
    for t in range(5):
        feedback, means, _ = everything(world, HUGE, 3)
        np.testing.assert_allclose(spent(world), costs[t])
        mean = 0.3 + strength[t] * 0.7
        np.testing.assert_allclose(means, np.tile([mean, 0.7, 0.7, mean], (3, 1)))
        # a billion losses average out: 5 standard deviations are below 1e-4
        np.testing.assert_allclose(feedback.total / HUGE.n, means, atol=1e-4)


@pytest.mark.parametrize("when", ["start", "spread"])
def test_the_means_under_attack_are_the_expected_losses(when: str) -> None:
    """Level: 6 arms in 8 rounds, 48 tests at 2e-8 (5.6 standard errors), 1e-6 in all."""
    trials = 6000
    world = Attacked(BETA, 2.5, when, "all").open(PLANS, 8, range(trials), 0)
    noisy = 0
    for _ in range(8):
        _, means, averages = everything(world, PLANS, trials)
        above = averages - means
        error = above.std(axis=0) / np.sqrt(trials)
        assert (np.abs(above.mean(axis=0)) <= 5.6 * error + 1e-12).all()
        noisy += int((error > 1e-4).sum())
    assert noisy >= 30, "else nothing was tested"


# ---------------------------------------------------------------- waves and walks


def test_sinusoids_follow_their_formula() -> None:
    centre, amplitude = [0.5, 0.4, 0.3, 0.2, 0.6, 0.9], [0.5, -0.4, 0.3, 0.2, 0.0, 0.1]
    period, phase = [4, 7.5, 1, 0.3, 2, 1000], [0, 0.25, 0.4, -0.1, 0, 3.3]
    world = opened(Adversarial(Sinusoids(centre, amplitude, period, phase)))
    for t in range(1, ROUNDS + 1):
        expected = [
            c + a * np.sin(2 * np.pi * (t / p + q))
            for c, a, p, q in zip(centre, amplitude, period, phase, strict=True)
        ]
        units = all_units(everything(world))
        np.testing.assert_allclose(units, np.tile(np.repeat(expected, PLANS.n), (TRIALS, 1)))
        assert ((units >= 0) & (units <= 1)).all()


@pytest.mark.parametrize("period", [1, 0.5, 0.3, 2, 4, 7.5, 1e9, 1e20])
@pytest.mark.parametrize("horizon", [1, 2, 57])
def test_total_of_a_wave_is_the_sum_over_its_rounds(period: float, horizon: int) -> None:
    one = Budget(1, caps=[1, 1])
    waves = Sinusoids(0.5, [0.5, 0.3], period, phase=[0.1, 0.8])
    world, total = Adversarial(waves).open(one, horizon, range(2), 0), np.zeros((2, 2))
    for _ in range(horizon):
        total += everything(world, one, 2).means
    assert world.total_means is not None
    np.testing.assert_allclose(world.total_means, total, rtol=1e-12)


def walked(step: Any, start: Any, rounds: int, trials: int = 5, seed: int = 0) -> Array:
    """Return the losses of arms that walk, (rounds, trials, 2)."""
    two = Budget(1, caps=[1, 1])
    world = Adversarial(RandomWalk(step, start)).open(two, rounds, range(trials), seed)
    losses = []
    for _ in range(rounds):
        losses.append(everything(world, two, trials).means)
    return np.array(losses)


@pytest.mark.parametrize("step", [0.01, 0.37, 1.0])
def test_a_walk_steps_up_or_down_and_stays_in_the_unit_interval(step: float) -> None:
    losses = walked(step, [0.5, 1.0], 400)
    assert (losses[0] == [0.5, 1.0]).all()
    assert ((losses >= 0) & (losses <= 1)).all()
    here, there = losses[:-1], losses[1:]
    up, down = here + step, here - step
    targets = np.stack([np.where(up > 1, 2 - up, up), np.where(down < 0, -down, down)])
    assert (np.abs(targets - there) < 1e-12).any(axis=0).all()


def test_walks_differ_between_trials_arms_and_seeds() -> None:
    losses = walked(0.01, 0.5, 60)
    paths = [losses[:, k, i] for k in range(5) for i in range(2)]
    paths.append(walked(0.01, 0.5, 60, seed=1)[:, 0, 0])
    assert len({path.tobytes() for path in paths}) == 11


def test_a_step_up_is_as_likely_as_a_step_down() -> None:
    """Level: the ups of each of 2 arms, and the repeated directions, 4 tests at 2.5e-7 (5.16)."""
    up = np.diff(walked(1e-4, 0.5, 1001, trials=20), axis=0) > 0
    for coins in (up, up[1:] == up[:-1]):
        ups, tosses = coins.sum(axis=(0, 1)), coins[..., 0].size
        assert (np.abs(ups - tosses / 2) < 5.16 * np.sqrt(tosses) / 2).all()


# ---------------------------------------------------------------- alternating phases


def test_means_alternate_in_growing_phases() -> None:
    """Phases of 3, 6, 12, ... rounds; in odd ones everything is dearer, in even ones cheaper."""
    gap = 0.1
    means = np.where(np.arange(6) < 3, (1 - gap) / 2, (1 + gap) / 2)
    world = Alternating(means, (1 - gap) / 2, first=3, growth=2).open(PLANS, 40, range(2), 0)
    dear = [1] * 3 + [0] * 6 + [1] * 12 + [0] * 19
    for t in range(40):
        feedback, now, _ = everything(world, PLANS, 2)
        low, high = (1 - gap, 1) if dear[t] else (0, gap)
        np.testing.assert_allclose(now, np.tile([low] * 3 + [high] * 3, (2, 1)), atol=1e-15)
        assert feedback.units is not None
        assert np.isin(feedback.units, [0, 1]).all()


@pytest.mark.parametrize(
    ("first", "growth", "expected"),
    [(1, 1.6, [1, 2, 3, 4, 7, 10, 13]), (7, 1, [7, 7, 7, 7, 7, 5]), (50, 3.0, [40])],
)
def test_phases_have_their_lengths(first: int, growth: float, expected: list[int]) -> None:
    """1.6^p = 1, 1.6, 2.56, 4.096, 6.55, 10.5, rounded; the last phase ends with the horizon."""
    assert Alternating([0.5], 0.5, first, growth).lengths(40) == expected


def test_alternating_losses_have_their_means() -> None:
    """Level: 6 arms in 6 rounds, 36 tests at 2.7e-8 (5.56 standard errors), 1e-6 in all."""
    trials, means = 4000, np.array([0.3, 0.4, 0.5, 0.6, 0.7, 0.4])
    world = Alternating(means, shift=[0.2, 0.1, -0.3, 0, 0.2, 0.3], first=1, growth=2).open(
        PLANS, 6, range(trials), 0
    )
    for t in range(6):
        averages = everything(world, PLANS, trials).averages
        sign = -1 if t in (1, 2) else 1
        expected = means + sign * np.array([0.2, 0.1, -0.3, 0, 0.2, 0.3])
        error = np.sqrt(expected * (1 - expected) / PLANS.n / trials)
        assert (np.abs(averages.mean(axis=0) - expected) < 5.56 * error).all()


def test_alternating_means_of_a_trial_come_from_its_row() -> None:
    rows = np.arange(24).reshape(4, 6) / 48 + 0.25
    world = opened(Alternating(rows, shift=0.25), [3, 0])
    seen = everything(world, PLANS, 2)
    np.testing.assert_allclose(seen.means, rows[[3, 0]] + 0.25)


def test_rounding_errors_do_not_leave_the_unit_interval() -> None:
    for means, shift in ((0.3, 0.1 + 0.2), (0.7, 0.3 + 4e-16)):
        assert not 0 <= means - shift <= means + shift <= 1, "else nothing is tested"
        world = opened(Alternating(np.full(6, means), shift, growth=1))
        for _ in range(2):
            now = everything(world).means
            assert ((now >= 0) & (now <= 1)).all()
        waves = opened(Adversarial(Sinusoids(means, shift, period=4)))
        for _ in range(4):
            losses = all_units(everything(waves))
            assert ((losses >= 0) & (losses <= 1)).all()


# ---------------------------------------------------------------- regret


@pytest.mark.parametrize("form", ["table", "slots", "function"])
def test_regret_of_three_adversarial_rounds_by_hand(form: str) -> None:
    """Losses over the horizon: 1.75 and 1.5 a unit, so (1, 2) is best; (2, 1) pays the difference.

    Round by round, (2, 1) costs 0.25 - 0.5, then 1 - 0.25, then 0.5 - 0.75 more than (1, 2).
    """
    losses = np.array([[0.25, 0.5], [1.0, 0.25], [0.5, 0.75]])
    apart = np.minimum(losses, 1 - losses)
    forms: dict[str, Any] = {
        "table": losses,
        "slots": np.stack([losses - apart, losses + apart], axis=2),
        "function": lambda t, past: losses[t - 1],
    }
    result = mp.simulate(
        Budget(3, caps=[2, 2]),
        Adversarial(forms[form]),
        {
            "wrong": Scripted(((2, 1),)),
            "right": Scripted(((1, 2),)),
            "wrong, right": Scripted(((2, 1), (1, 2))),
        },
        horizon=3,
        trials=2,
    )
    expected = {
        "wrong": [-0.25, 0.5, 0.25],
        "right": [0.0, 0.0, 0.0],
        "wrong, right": [-0.25, -0.25, -0.5],
    }
    for name, curve in expected.items():
        assert (result.regret.sel(policy=name).values == [curve, curve]).all()


@pytest.mark.parametrize("name", [name for name in ENVIRONMENTS if name != "adaptive"])
def test_regret_is_against_the_best_fixed_action_of_the_horizon(name: str) -> None:
    """The slow way: open the same world, add up its means, and look at all nine plans."""
    script = ((0, 1, 2, 2, 2, 3), (1, 0, 0, 4, 3, 2))
    result = mp.simulate(
        PLANS, ENVIRONMENTS[name], {"script": Scripted(script)}, ROUNDS, TRIALS, seed=5
    )
    world, means = opened(ENVIRONMENTS[name]), []
    for _ in range(ROUNDS):
        means.append(everything(world).means)
    played = np.array([script[t % 2] for t in range(ROUNDS)])
    for k in range(TRIALS):
        rows = np.array(means)[:, k]
        plans = PLANS.enumerate()
        best = plans[(plans @ rows.sum(axis=0)).argmin()]
        expected = ((played - best) * rows).sum(axis=1).cumsum()
        np.testing.assert_allclose(
            result.regret.values[0, k], expected, rtol=1e-9, atol=1e-9, err_msg=f"trial {k}"
        )


# ---------------------------------------------------------------- memory, files, refusals


@pytest.mark.parametrize(
    "environment",
    [
        Attacked(BETA, budget=1000),
        Alternating(np.full(6, 0.5), shift=0.5),
        Adversarial(Sinusoids(0.5, 0.5, period=100)),
        Adversarial(RandomWalk(0.01)),
    ],
    ids=["attacked", "alternating", "sinusoids", "random walk"],
)
def test_memory_does_not_grow_with_the_horizon(environment: Environment) -> None:
    """A million rounds of a hundred trials; a table of them would take 5 GB."""
    action = np.tile(PLANS.n, (100, 1))
    environment.open(PLANS, 10, range(100), 0).observe(action)  # compiles
    tracemalloc.start()
    world = environment.open(PLANS, 10**6, range(100), 0)
    for _ in range(50):
        world.observe(action)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def through_a_file(environment: Environment) -> Any:
    builder = Builder(classes_of(environments))
    return builder.build("environment", json.loads(json.dumps(describe(environment))))


def through_a_storage(environment: Environment) -> Any:
    header, arrays = pack(environment)
    return unpack(json.loads(json.dumps(header)), arrays, Builder(classes_of(environments)))


def through_a_pickle(environment: Environment) -> Any:
    return pickle.loads(pickle.dumps(environment))


@pytest.mark.parametrize("name", [name for name in ENVIRONMENTS if name != "adaptive"])
@pytest.mark.parametrize("copy", [through_a_file, through_a_storage, through_a_pickle])
def test_a_copy_gives_the_same_losses(name: str, copy: Callable[[Environment], Any]) -> None:
    original, again = opened(ENVIRONMENTS[name]), opened(copy(ENVIRONMENTS[name]))
    for _ in range(ROUNDS):
        one, other = everything(original), everything(again)
        assert (all_units(one) == all_units(other)).all()
        assert (one.means == other.means).all()


def test_rules_are_plain_data() -> None:
    waves = Sinusoids(centre=np.array([0.5, 0.25]), amplitude=0.25, period=4)
    assert waves == Sinusoids((0.5, 0.25), 0.25, 4.0, 0.0)
    assert describe(Adversarial(waves)) == {
        "type": "Adversarial",
        "losses": {
            "type": "Sinusoids",
            "centre": [0.5, 0.25],
            "amplitude": 0.25,
            "period": 4.0,
            "phase": 0.0,
        },
    }


@pytest.mark.parametrize(
    ("argument", "make"),
    [
        ("clean", lambda: Attacked([0.5], 1)),  # type: ignore[arg-type]
        ("budget", lambda: Attacked(COIN, -1)),
        ("budget", lambda: Attacked(COIN, np.nan)),
        ("budget", lambda: Attacked(COIN, np.inf)),
        ("budget", lambda: Attacked(COIN, "much")),  # type: ignore[arg-type]
        ("when", lambda: Attacked(COIN, 1, when="end")),
        ("when", lambda: Attacked(COIN, 1, when=None)),  # type: ignore[arg-type]
        ("on", lambda: Attacked(COIN, 1, on="worst")),
        ("on", lambda: Attacked(COIN, 1, on=["best"])),  # type: ignore[arg-type]
        ("means", lambda: Alternating([0.5, 1.5], 0)),
        ("means", lambda: Alternating([0.5, np.nan], 0)),
        ("means, shift", lambda: Alternating([0.5, 0.7], 0.4)),
        ("means, shift", lambda: Alternating([0.5, 0.3], [0.4, -0.4])),
        ("shift", lambda: Alternating([0.5, 0.5], np.nan)),
        ("shift", lambda: Alternating([0.5, 0.5], [0.1, 0.1, 0.1])),
        ("shift", lambda: Alternating(0.5, [0.1, 0.1])),
        ("first", lambda: Alternating([0.5], 0.1, first=0)),
        ("first", lambda: Alternating([0.5], 0.1, first=1.5)),  # type: ignore[arg-type]
        ("growth", lambda: Alternating([0.5], 0.1, growth=0.9)),
        ("growth", lambda: Alternating([0.5], 0.1, growth=np.nan)),
        ("growth", lambda: Alternating([0.5], 0.1, growth="fast")),  # type: ignore[arg-type]
        ("centre, amplitude", lambda: Sinusoids(0.5, 0.6, 10)),
        ("centre, amplitude", lambda: Sinusoids([0.5, 0.2], [0.1, -0.3], 10)),
        ("centre", lambda: Sinusoids(np.nan, 0.1, 10)),
        ("centre", lambda: Sinusoids([[0.5]], 0.1, 10)),
        ("amplitude", lambda: Sinusoids(0.5, "0.1", 10)),
        ("period", lambda: Sinusoids(0.5, 0.1, 0)),
        ("period", lambda: Sinusoids(0.5, 0.1, [10, -1])),
        ("period", lambda: Sinusoids(0.5, 0.1, np.inf)),
        ("phase", lambda: Sinusoids(0.5, 0.1, 10, np.nan)),
        ("Sinusoids", lambda: Sinusoids([0.5, 0.5], 0.1, [10, 10, 10])),
        ("step", lambda: RandomWalk(-0.1)),
        ("step", lambda: RandomWalk(1.1)),
        ("step", lambda: RandomWalk(np.nan)),
        ("start", lambda: RandomWalk(0.1, start=2)),
        ("start", lambda: RandomWalk(0.1, start=[0.5, -0.5])),
        ("RandomWalk", lambda: RandomWalk([0.1, 0.1], start=[0.5, 0.5, 0.5])),
    ],
)
def test_bad_parameters_are_refused(argument: str, make: Callable[[], object]) -> None:
    with refused(argument):
        make()


def test_a_refusal_says_what_is_allowed() -> None:
    with pytest.raises(mp.InvalidInput, match="'start' or 'spread'"):
        Attacked(COIN, 1, when="never")
    with pytest.raises(mp.InvalidInput, match="'best' or 'all'"):
        Attacked(COIN, 1, on="none")


@pytest.mark.parametrize(
    ("argument", "environment"),
    [
        ("clean", Attacked(Constant(np.full(5, 0.5)), 1)),
        ("clean", Attacked(Constant(np.full((3, 6), 0.5)), 1)),
        ("means", Alternating(np.full(7, 0.5), 0.1)),
        ("means", Alternating(np.full((3, 6), 0.5), 0.1)),
        ("means", Alternating([0.5], 0.1)),
        ("centre", Adversarial(Sinusoids([0.5] * 5, 0.1, 10))),
        ("phase", Adversarial(Sinusoids(0.5, 0.1, 10, [0.1] * 7))),
        ("step", Adversarial(RandomWalk([0.1] * 5))),
        ("start", Adversarial(RandomWalk(0.1, [0.5]))),
    ],
)
def test_parameters_must_fit_arms_and_trials(argument: str, environment: Environment) -> None:
    with refused(argument):
        environment.check(PLANS, 10, 4)


def test_an_environment_keeps_its_own_numbers() -> None:
    means, shift = np.full(6, 0.5), np.full(6, 0.25)
    environment = Alternating(means, shift)
    means[:] = shift[:] = 7.0
    world = opened(environment)
    assert (everything(world).means == 0.75).all()
