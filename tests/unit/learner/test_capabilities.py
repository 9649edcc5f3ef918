"""What a policy can learn from is declared, true, and checked before round 1; plays are watched."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusal import refused

import multiplay.policies
from multiplay import (
    ActionSet,
    Adversarial,
    Alternating,
    Attacked,
    Budget,
    Constant,
    Corrupted,
    Duplicated,
    Environment,
    Feedback,
    GenCTS,
    GenLBINFV,
    Learner,
    Play,
    Policy,
    RandomWalk,
    Replay,
    Stochastic,
    Transport,
    simulate,
)
from multiplay._support.builder import classes_of
from multiplay.experiments.experiment import build
from multiplay.policies import FPLIX
from multiplay.policies.base import check_fits
from multiplay.random import Rng
from multiplay.testing import check_policy
from multiplay.types import Arrays, FloatArray, IntArray

PAPER = Transport([1, 4, 5], [4, 6])
FEW, MANY = Budget(3, [3, 3]), Budget(1100, [1100, 1100])  # 6 units, and more than 2048
HALF = Constant([0.5, 0.5])
ENVIRONMENTS: dict[str, Environment] = {
    "stochastic": Stochastic(HALF),
    "corrupted": Corrupted(HALF, HALF, at=1),
    "attacked": Attacked(HALF, budget=1.0),
    "alternating": Alternating(means=[0.5, 0.5], shift=0.1),
    "walk": Adversarial(RandomWalk(0.1)),
    "table": Adversarial(np.full((5, 2), 0.5)),
    "slots": Adversarial(np.full((5, 2, 1100), 0.5)),
    "function with slots": Adversarial(lambda t, past: np.full((1, 2, 1100), 0.5)),
    "replay": Replay({"arm": ["arm 1", "arm 2"] * 1100, "round": [0] * 2200, "loss": [0.5] * 2200}),
}


@pytest.mark.parametrize("actions", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments_show_the_units_that_they_promise(name: str, actions: ActionSet) -> None:
    environment = ENVIRONMENTS[name]
    world = environment.open(actions, 5, [0], 0)
    feedback = world.observe(actions.argmin(np.zeros((1, 2)))).feedback
    assert (feedback.units is not None) == environment.shows_units(actions)


def test_a_function_may_show_units_or_not() -> None:
    """Nobody knows before round 1: it is not refused then, but in the round."""
    world = Adversarial(lambda t, past: np.full(2, 0.5))
    assert world.shows_units(MANY)
    with refused("feedback"):
        simulate(MANY, world, {"CTS": Duplicated(GenCTS())}, horizon=2, trials=1)


@pytest.mark.parametrize("name", ["stochastic", "corrupted", "walk", "table"])
def test_copies_of_too_many_units_are_refused_before_anything_runs(
    name: str, tmp_path: Path
) -> None:
    policies: dict[str, Policy] = {"GenCTS": GenCTS(), "CTS": Duplicated(GenCTS())}
    with refused("policy: expected a policy that learns from the total losses of the arms"):
        simulate(MANY, ENVIRONMENTS[name], policies, horizon=5, trials=2, store=tmp_path / "here")
    assert not (tmp_path / "here").exists()


def test_copies_of_many_units_run_where_each_has_its_loss() -> None:
    result = simulate(MANY, ENVIRONMENTS["slots"], {"CTS": Duplicated(GenCTS())}, 3, 1)
    assert np.isfinite(result.regret.values).all()


def test_an_experiment_says_which_policy_does_not_fit() -> None:
    experiment = build(
        {
            "horizon": 100,
            "trials": 1,
            "actions": {"type": "Budget", "total": 1100, "caps": [1100, 1100]},
            "environment": {
                "type": "Stochastic",
                "distribution": {"type": "Constant", "value": [0.5, 0.5]},
            },
            "policies": {"CTS": {"type": "Duplicated", "policy": {"type": "GenCTS"}}},
        }
    )
    with refused("policies.CTS.policy: expected a policy that learns from the total losses"):
        experiment.check()


def test_a_learner_is_told_whatever_people_know() -> None:
    """Nobody knows before tell() whether units will come, so nothing is refused before."""
    learner = Learner(MANY, Duplicated(GenCTS()))
    play = learner.ask()
    with refused("losses"):
        learner.tell(play.id, (play.action / 2).tolist())
    learner.tell(play.id, [[0.5] * a for a in play.action.tolist()])


def test_what_is_declared() -> None:
    """Only copies need single units, and linear bandits no more than the total of a round.

    The leaders, FPLIX, ESCB and linear bandits need a linear objective. All but copies and linear
    bandits can be used live: with sets that change, units that are missing, and plans of others.
    GLRCUCB forgets all arms together and OLSUCBC keeps sums of pairs of arms, so their set cannot
    change.
    """
    kinds = classes_of(multiplay.policies)
    made = {name: kind.example() for name, kind in kinds.items() if issubclass(kind, Policy)}
    bandits = {
        "BestOfThreeWorlds",
        "ExplorationByOptimisation",
        "LinTS",
        "LinUCB",
        "ScaledScribble",
    }
    assert {name for name, one in made.items() if one.learns_from == "units"} == {"Duplicated"}
    assert {name for name, one in made.items() if one.learns_from == "round"} == bandits
    assert {name for name, one in made.items() if one.needs_linear} == {
        *("Constrained", "ESCB", "FPLIX", "GenAdaINF", "GenLBINFV", "Hybrid", "LBINF"),
        "OLSUCBC",
        *bandits,
    }
    cannot = {"Duplicated", *bandits}
    for declared, other in {
        "changing": cannot | {"GLRCUCB", "OLSUCBC"},
        "partial": cannot,
        "absorbs": cannot - {"LinTS", "LinUCB"},  # a regression learns from any plan
    }.items():
        assert {name for name, one in made.items() if not getattr(one, declared)} == other
    assert Duplicated(FPLIX()).needs_linear
    for name, kind in kinds.items():
        if name in made:
            assert "not seen" in (kind.__doc__ or ""), f"{name}: what does it do with unseen units?"
    assert not Duplicated(Duplicated(GenCTS())).needs_linear


def test_declarations_are_no_settings() -> None:
    assert repr(FPLIX()) == "FPLIX(eta=None, gamma=None, cap=1000)"
    assert repr(Duplicated(GenCTS())) == "Duplicated(policy=GenCTS())"
    check_fits(GenLBINFV(), PAPER, 100, shows_units=False)


@dataclass(frozen=True)
class Own(Policy):
    """A policy that plays at random, and writes down what ``read`` makes of the feedback."""

    read: Any = None

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        return {"learned": np.zeros(trials), "warm": np.zeros(trials)}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        costs = rng.random((len(state["learned"]), actions.d))
        return Play(actions.argmin(costs), {}, {"warm": state["learned"] + 1})

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        state["learned"] += self.read(feedback)
        state |= play.cache


@dataclass(frozen=True)
class OwnUnits(Own):
    """Says that it needs units."""

    learns_from = "units"


@dataclass(frozen=True)
class OwnRound(Own):
    """Says that the total of the round is enough."""

    learns_from = "round"


def of_units(feedback: Feedback) -> Any:
    return feedback.units.max(axis=1)  # type: ignore[union-attr]


def of_arms(feedback: Feedback) -> Any:
    return feedback.total[:, 0]


def of_round(feedback: Feedback) -> Any:
    return feedback.total.sum(axis=1)


def test_policies_of_others_that_declare_nothing_work_as_before() -> None:
    """Even one that reads single units without saying so, where there are any."""
    world = Stochastic(Constant(np.array([0.4, 0.5, 0.6, 0.5, 0.4, 0.6])))
    for read in (of_units, of_arms, of_round):
        result = simulate(PAPER, world, {"own": Own(read)}, 5, 2)
        assert np.isfinite(result.regret.values).all()


def test_check_policy_believes_what_is_true() -> None:
    check_policy(Own(of_arms), PAPER)
    check_policy(Own(of_round), PAPER)
    check_policy(OwnRound(of_round), PAPER)
    check_policy(Duplicated(OwnRound(of_round)), PAPER)
    check_policy(Duplicated(Duplicated(GenCTS())), PAPER)


def test_check_policy_finds_who_needs_more_than_it_says() -> None:
    with pytest.raises(AssertionError, match="must accept totals, or refuse them"):
        check_policy(Own(of_units), PAPER)
    with pytest.raises(AssertionError, match="must not depend on the losses of single arms"):
        check_policy(OwnRound(of_arms), PAPER)
    with pytest.raises(AssertionError, match="learns_from must be one of"):
        check_policy(Unheard(of_round), PAPER)
    with pytest.raises(AssertionError, match="'totals', so update must not refuse totals"):
        check_policy(Choosy(GenCTS()), PAPER)


@dataclass(frozen=True)
class Unheard(Own):
    """Says what nobody understands."""

    learns_from = "everything"  # type: ignore[assignment]


@dataclass(frozen=True)
class Choosy(Duplicated):
    """Copies that deny what they need."""

    learns_from = "totals"


@dataclass(frozen=True)
class CacheReader(Own):
    """Learns from its cache, which may be dropped."""

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        state["learned"] += play.cache.get("warm", 0.0)


@dataclass(frozen=True)
class CacheNeeder(Own):
    """Cannot choose without its cache."""

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        return Play(super().choose(actions, state, rng).action, {}, {"warm": 1 + state["warm"]})


def test_check_policy_finds_who_needs_its_cache() -> None:
    with pytest.raises(AssertionError, match="must not depend on its cache"):
        check_policy(CacheReader(of_round), PAPER)
    with pytest.raises(AssertionError, match="choose must work without the cache of a play"):
        check_policy(CacheNeeder(of_round), PAPER)


@dataclass(frozen=True)
class Live(GenCTS):
    """Promises all that is needed for live use, and breaks one promise."""

    breaks: str = ""

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        extra = {"shapes": {"pairs": np.zeros((trials, actions.d + 1))}}
        state = super().start(actions, horizon, trials)
        return state | {"tip": np.zeros((trials, actions.d))} | extra.get(self.breaks, {})

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        play = super().choose(actions, state, rng)
        return Play(play.action, {}, {"tip": play.action / 2} if self.breaks == "warm" else {})

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        super().absorb(actions, state, feedback, rng)
        if self.breaks == "seen":
            state["q"] += feedback.count - feedback.seen
        if self.breaks == "finite":
            with np.errstate(all="ignore"):
                state["tip"] = np.where(feedback.count > 0, feedback.total / feedback.seen, 0.0)
        if self.breaks == "others":
            state["q"] += (feedback.count - feedback.seen)[:, 3:4] * (feedback.seen[:, 3:4] > 0)
        state |= play.cache

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        super().absorb(actions, state, feedback, rng)
        if self.breaks == "absorb":
            state["plan"] = feedback.count

    def believed(self, state: Arrays) -> FloatArray:
        mean = super().believed(state)
        assert mean is not None
        return mean[:, 0] if self.breaks == "belief" else mean

    def interval(self, state: Arrays, level: float) -> tuple[FloatArray, FloatArray]:
        half = (1 - level if self.breaks == "interval" else level) * np.ones(state["p"].shape) / 2
        return 0.5 - half, 0.5 + half


@pytest.mark.parametrize(
    ("breaks", "says"),
    [
        ("shapes", r"state\['pairs'\] must be \(trials,\) or \(trials, d, ...\), or named by warm"),
        ("warm", "warm must name {'tip'}"),
        ("seen", "the beliefs about an arm without observations must not change"),
        ("finite", r"state\['tip'\] must be finite"),
        ("others", "missing units of one arm must not change the beliefs about other arms"),
        ("absorb", "absorb must not change the names and shapes of the state"),
        ("belief", "believed must give a number for each trial and arm"),
        ("interval", "a higher level must give a wider interval"),
    ],
)
def test_check_policy_finds_who_is_not_fit_for_live_use(breaks: str, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check_policy(Live(breaks=breaks), PAPER)


def test_check_policy_believes_who_is_fit_for_live_use() -> None:
    check_policy(Live(), PAPER)


@dataclass(frozen=True)
class Cheat(Policy):
    """Plays an action of the set, but in one round something else."""

    at: int
    wrong: tuple[int, ...]

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        return {"t": np.zeros(trials, dtype=np.int64)}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        action: IntArray = actions.argmin(np.zeros((len(state["t"]), actions.d)))
        if state["t"][0] + 1 == self.at:
            action[-1] = self.wrong
        return Play(action)

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        state["t"] += 1


@pytest.mark.parametrize(
    ("at", "wrong"),
    [
        (1, (0, 1, 4, 0, 0, 4)),  # in the box, but 9 units instead of 10
        (7, (0, 1, -1, 5, 5, 0)),  # outside, in a round that is not recorded
        (7, (0, 1, 5, -1, -1, 6)),
        (30, (0, 1, 4, 0, 0, 4)),  # in the box, in a recorded round
        (100, (0, 1, 4, 0, 0, 4)),
    ],
)
def test_plays_are_watched(at: int, wrong: tuple[int, ...]) -> None:
    world, cheat = Stochastic(Constant(np.full(6, 0.5))), {"cheat": Cheat(at, wrong)}
    with pytest.raises(
        ArithmeticError, match=rf"chose in round {at} a vector that is not an action of .*Fix"
    ):
        simulate(PAPER, world, cheat, horizon=100, trials=3, record=10)
