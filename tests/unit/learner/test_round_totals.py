"""Who learns from the round is shown its total only, and need not be told more."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusal import refused

import multiplay as mp
from multiplay import Duplicated, Feedback, GenCTS, Learner, LinTS, LinUCB, Policy, simulate
from multiplay.experiments.experiment import build
from multiplay.policies.base import shown
from multiplay.random import POLICY, Streams
from multiplay.types import Arrays

PLANS = mp.Transport([1, 4, 5], [4, 6], names=(["Lyon", "Lille", "Paris"], ["north", "south"]))
REWARDS = mp.Budget(3, [2, 2, 2, 1], at_most=True, sense="max")
ROUND: dict[str, Policy] = {
    "LinTS": LinTS(),
    "LinUCB": LinUCB(),
    "LinTS on copies": Duplicated(LinTS()),
    "LinTS on copies of copies": Duplicated(Duplicated(LinTS())),
}
every_policy = pytest.mark.parametrize("policy", ROUND.values(), ids=ROUND)


def total_of(play: mp.PendingPlay, number: int | None = None) -> float:
    """Return some total of a play; the same for the same number, and a multiple of 1/4."""
    rng = np.random.default_rng(play.id if number is None else number)
    return float(rng.integers(0, 4 * play.action.sum() + 1)) / 4


def go_on(learner: Learner, rounds: int = 12, total: Any = total_of) -> list[dict[str, int]]:
    plans = []
    for _ in range(rounds):
        play = learner.ask()
        learner.tell(play.id, total(play))
        plans.append(play.plan)
    return plans


def same(one: Arrays, other: Arrays) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)


# ---------------------------------------------------------------- what is told


NUMBERS: dict[str, Callable[[int], Any]] = {
    "int": lambda n: n,
    "float": float,
    "numpy float": np.float64,
    "short numpy float": np.float32,
    "numpy int": np.int64,
    "array without axes": lambda n: np.array(float(n)),
    "integer array without axes": np.array,
    "masked array without a mask": lambda n: np.ma.masked_array(float(n)),
    "decimal": Decimal,
    "fraction": Fraction,
}


@every_policy
@pytest.mark.parametrize("kind", NUMBERS.values(), ids=NUMBERS)
def test_any_kind_of_number_is_a_total(kind: Callable[[int], Any], policy: Policy) -> None:
    one, other = Learner(PLANS, policy, seed=3), Learner(PLANS, policy, seed=3)
    assert go_on(one, 6, lambda play: kind(play.id)) == go_on(other, 6, lambda play: float(play.id))
    assert same(one.state, other.state)


def test_a_total_may_miss_its_range_by_rounding() -> None:
    one, other = Learner(PLANS, LinTS()), Learner(PLANS, LinTS())
    for learner, totals in ((one, (10 + 1e-12, -1e-12)), (other, (10, 0))):
        for total in totals:
            learner.tell(learner.ask().id, total)
    assert same(one.state, other.state)


BAD: dict[str, Any] = {
    "nan": float("nan"),
    "numpy nan": np.float64("nan"),
    "decimal nan": Decimal("NaN"),
    "decimal that signals": Decimal("sNaN"),
    "infinite": float("inf"),
    "too long": 10**400,
    "too long to be written": 10**5000,
    "negative": -0.001,
    "negative fraction": Fraction(-1, 3),
    "more than all units": 10.001,
    "missing": np.ma.masked,
    "true": True,
    "true of numpy": np.True_,
    "text": "3.5",
    "text in an array": np.array("3.5"),
    "complex": 3 + 0j,
    "complex of numpy": np.complex128(3),
    "none": None,
    "bytes": b"3",
    "set": {3.5},
    "list": [3.5],
    "array with an axis": np.array([3.5]),
}


@every_policy
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_what_is_no_total_is_refused_and_nothing_is_lost(bad: Any, policy: Policy) -> None:
    one, other = Learner(PLANS, policy), Learner(PLANS, policy)
    for learner in (one, other):
        go_on(learner, 4)
    play = one.ask()
    assert other.ask().plan == play.plan
    with refused("losses"):
        one.tell(play.id, bad)
    assert [pending.id for pending in one.pending()] == [play.id]
    for learner in (one, other):
        learner.tell(play.id, 2.5)
    assert go_on(one) == go_on(other)
    assert same(one.state, other.state)


@pytest.mark.parametrize("bad", [True, "3.5", None], ids=repr)
def test_the_error_says_that_one_number_would_do(bad: Any) -> None:
    learner = Learner(PLANS, LinTS())
    with refused("losses: expected the total of all units, a dict by arm name, or a list"):
        learner.tell(learner.ask().id, bad)


@pytest.mark.parametrize("policy", [GenCTS(), Duplicated(GenCTS())], ids=repr)
@pytest.mark.parametrize(
    "number", [3.5, np.array(3), Decimal("3.5"), 10**5000, np.nan], ids=range(5)
)
def test_who_learns_from_arms_refuses_one_number(number: Any, policy: Policy) -> None:
    learner = Learner(PLANS, policy)
    play, before = learner.ask(), {name: array.copy() for name, array in learner.state.items()}
    with refused(f"losses: expected the losses of each arm, for {type(policy).__name__}"):
        learner.tell(play.id, number)
    assert same(learner.state, before)
    learner.tell(play.id, {name: [0.5] * units for name, units in play.plan.items()})


def test_what_is_masked_is_missing_for_arms_too() -> None:
    learner = Learner(PLANS, GenCTS())
    play = learner.ask()
    arm = max(play.plan, key=lambda name: play.plan[name])
    half = {name: units / 2 for name, units in play.plan.items()}
    units = np.ma.masked_array([0.5] * play.plan[arm], [True] + [False] * (play.plan[arm] - 1))
    with refused("losses of"):
        learner.tell(play.id, half | {arm: np.ma.masked})
    assert learner.tell(play.id, half | {arm: units}).missing == 1


@every_policy
def test_losses_by_arm_teach_what_their_sum_teaches(policy: Policy) -> None:
    """Every loss is 1/4 or 3/4, so that sums are exact in any order."""

    def units(play: mp.PendingPlay) -> dict[str, list[float]]:
        rng = np.random.default_rng(play.id)
        return {name: rng.choice([0.25, 0.75], a).tolist() for name, a in play.plan.items()}

    def totals(play: mp.PendingPlay) -> dict[str, float]:
        return {name: sum(losses) for name, losses in units(play).items()}

    told: list[Any] = [
        units,
        totals,
        lambda play: list(totals(play).values()),
        lambda play: sum(totals(play).values()),
    ]
    learners = [Learner(PLANS, policy, seed=5) for _ in told]
    plans = [go_on(one, 12, total) for one, total in zip(learners, told, strict=True)]
    assert plans[0] == plans[1] == plans[2] == plans[3]
    assert all(same(learners[0].state, one.state) for one in learners)


@every_policy
def test_totals_come_late_and_in_any_order(policy: Policy) -> None:
    """V = R'R and b = R'z do not depend on the order, beyond rounding."""
    learners = [Learner(PLANS, policy) for _ in range(2)]
    for learner, order in zip(learners, (1, -1), strict=True):
        go_on(learner, 3)
        plays = [learner.ask() for _ in range(6)]
        for play in plays[::order]:
            learner.tell(play.id, total_of(play))
        assert not learner.pending()
    V, other_V = ((R := one.state["R"][0]).T @ R for one in learners)
    b, other_b = (one.state["R"][0].T @ one.state["z"][0] for one in learners)
    assert np.allclose(V, other_V, rtol=0, atol=1e-9)
    assert np.allclose(b, other_b, rtol=0, atol=1e-9)
    go_on(learners[1])


@every_policy
@pytest.mark.parametrize("actions", [PLANS, REWARDS], ids=["losses", "rewards"])
def test_a_loaded_learner_continues_bit_for_bit(
    actions: mp.ActionSet, policy: Policy, tmp_path: Path
) -> None:
    for rounds in (0, 2, 9):
        learner = Learner(actions, policy, seed=2)
        go_on(learner, rounds)
        late = learner.ask()
        learner.save(tmp_path / "learner")
        loaded = Learner.load(tmp_path / "learner")
        for one in (learner, loaded):
            one.tell(late.id, total_of(late))
        plans, others = (
            go_on(one, 12, lambda play, one=one: total_of(play, one.asked))
            for one in (learner, loaded)
        )
        assert plans == others
        assert same(learner.state, loaded.state)


# ---------------------------------------------------------------- what is shown


@dataclass(frozen=True)
class Curious(Policy):
    """Says that it learns from the round, and writes down what it is shown."""

    learns_from = "round"

    def start(self, actions: mp.ActionSet, horizon: int | None, trials: int) -> Arrays:
        return {"y": np.zeros(trials), "p": np.ones((trials, actions.d))}

    def choose(self, actions: mp.ActionSet, state: Arrays, rng: mp.Rng) -> mp.Play:
        return mp.Play(actions.best(rng.random(state["p"].shape)))

    def update(
        self,
        actions: mp.ActionSet,
        state: Arrays,
        play: mp.Play,
        feedback: Feedback,
        rng: mp.Rng,
    ) -> None:
        assert feedback.total.shape == (len(state["y"]), 1)
        assert feedback.units is None
        assert feedback.first is None
        assert (feedback.count == play.action).all()
        state["y"] += feedback.round_total


MEANS = np.array([0.2, 0.25, 0.3, 0.25, 0.2, 0.3])  # plans of different costs
WORLDS: dict[str, mp.Environment] = {
    "stochastic": mp.Stochastic(mp.Bernoulli(MEANS)),
    "corrupted": mp.Corrupted(mp.Bernoulli(MEANS), mp.Bernoulli(0.75), at=3),
    "walk": mp.Adversarial(mp.RandomWalk(0.1)),
    "function": mp.Adversarial(lambda t, past: MEANS),
}


@pytest.mark.parametrize(
    "policy", [Curious(), Duplicated(Curious()), Duplicated(Duplicated(Curious()))], ids=repr
)
def test_nothing_but_the_total_is_shown(policy: Policy) -> None:
    for world in WORLDS.values():
        simulate(PLANS, world, {"curious": policy}, horizon=6, trials=2)
    learner = Learner(PLANS, policy)
    play = learner.ask()
    learner.tell(play.id, {name: [0.5] * a for name, a in play.plan.items()})
    play = learner.ask()
    learner.tell(play.id, 2.5)
    assert learner.state["y"] == 7.5


@every_policy
def test_it_does_not_matter_which_arm_the_losses_are_of(policy: Policy) -> None:
    """A fixed total for each action and round, lost on other units each time."""
    played = []
    for mixing in range(3):
        mix = np.random.default_rng(mixing)
        rng, losses = Streams.spawn(0, POLICY, [0, 1]), np.random.default_rng(9)
        state = policy.start(PLANS, None, 2)
        actions = []
        for _ in range(30):
            play = policy.choose(PLANS, state, rng)
            a = play.action
            lost = losses.integers(0, 11, size=2)
            total = np.array(list(map(mix.multivariate_hypergeometric, a, lost)))
            seen = shown(policy, Feedback(a, total.astype(float)))
            policy.update(PLANS, state, play, seen, rng)
            actions.append(a)
        played.append(actions)
    assert np.array_equal(played[0], played[1])
    assert np.array_equal(played[0], played[2])


def test_arms_of_a_round_cannot_be_read() -> None:
    seen = Feedback(np.array([[2, 0, 1]]), np.array([[0.5, 0.0, 0.25]])).round_only()
    assert seen.round_total.tolist() == [0.75]
    assert seen.round_only().total.tolist() == [[0.75]]
    with refused("feedback: expected the total of each arm, got the total of the round only"):
        _ = seen.mean
    with refused("feedback: expected the total of each arm, got the total of the round only"):
        seen.flip(np.random.default_rng(0))


# ---------------------------------------------------------------- wherever policies are used


def test_an_experiment_file_knows_them() -> None:
    experiment = build(
        {
            "horizon": 20,
            "trials": 2,
            "actions": {"type": "Transport", "supply": [1, 4, 5], "demand": [4, 6]},
            "environment": {
                "type": "Stochastic",
                "distribution": {"type": "Bernoulli", "mean": [0.4, 0.5, 0.6, 0.5, 0.4, 0.6]},
            },
            "policies": {
                "TS": {"type": "LinTS", "sigma": 0.5},
                "UCB": {"type": "LinUCB", "limit": 9},
                "copies": {"type": "Duplicated", "policy": {"type": "LinTS"}},
            },
        }
    )
    experiment.check()
    assert experiment.policies["TS"] == LinTS(sigma=0.5)
    assert experiment.policies["UCB"] == LinUCB(limit=9)
    result = simulate(
        experiment.actions, experiment.environment, experiment.policies, horizon=20, trials=2
    )
    assert np.isfinite(result.regret.values).all()


def test_copies_of_many_units_need_no_units_for_the_round() -> None:
    """Beyond 2048 units nobody is shown single ones; who asks for the round does not miss them."""
    many = mp.Budget(3, np.full(1100, 2))
    world = mp.Stochastic(mp.Constant(np.linspace(0.4, 0.6, 1100)))
    policies = {"copies": Duplicated(Curious())}
    assert np.isfinite(simulate(many, world, policies, 3, 1).regret.values).all()
