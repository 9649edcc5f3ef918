"""Every class that is exported is enrolled by itself, and keeps the contract of its kind.

A new policy, set, environment, distribution or storage is found in ``__all__`` of its package; no
line of this file has to change for it.
"""

import importlib
import importlib.util
import inspect
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multiplay import (
    ActionSet,
    Adversarial,
    Averages,
    Bernoulli,
    Budget,
    Coins,
    Composed,
    Contextual,
    Discount,
    Distribution,
    Draw,
    Environment,
    Feedback,
    GenCTS,
    Moments,
    Normal,
    Observation,
    Optimism,
    Play,
    Policy,
    Pooled,
    Replay,
    Rule,
    Stochastic,
    Transport,
    Window,
    actions,
    environments,
    policies,
    testing,
)
from multiplay._support.builder import Builder
from multiplay.environments import World
from multiplay.environments.contexts import Contexts
from multiplay.environments.oblivious import Oblivious
from multiplay.features.rows import FeatureRows
from multiplay.policies.index import FITTING
from multiplay.policies.rules import Rule as IndexRule
from multiplay.posteriors.base import Posterior
from multiplay.posteriors.memories import Memory
from multiplay.testing import (
    check_actions,
    check_environment,
    check_policy,
    check_settings,
    strategies,
)
from multiplay.types import Arrays, FloatArray, IntArray

PLANS = Transport.example()
PACKAGES = [actions, policies, environments]
if importlib.util.find_spec("multiplay.storage"):
    PACKAGES.append(importlib.import_module("multiplay.storage"))


def check_losses(losses: Oblivious) -> None:
    check_settings(losses)
    check_environment(Adversarial(losses), PLANS)


def check_distribution(distribution: Distribution) -> None:
    check_settings(distribution)
    check_environment(Stochastic(distribution), PLANS)


def check_contexts(contexts: Contexts) -> None:
    check_settings(contexts)
    check_environment(Contextual(np.full(contexts.p, 0.2), contexts), PLANS)


def check_rule(rule: Rule) -> None:
    check_settings(rule)
    plans = Budget(3, [2, 2], names=["air", "sea"])
    assert plans.contains(rule.plan(plans))
    assert rule.text


def check_posterior(posterior: Posterior) -> None:
    check_settings(posterior)
    rules = [one for one in FITTING["rule"] if isinstance(one, IndexRule)]
    fitting = [one for one in rules if not any(map(posterior.lacks, one.calls))]
    assert fitting
    for one in fitting:
        check_policy(Composed(posterior, one), PLANS)


def check_memory(memory: Memory) -> None:
    check_settings(memory)
    posterior = Normal if all(hasattr(Normal, call) for call in memory.calls) else Moments
    check_policy(Composed(posterior(memory), Draw()), PLANS)


def check_index_rule(rule: IndexRule) -> None:
    check_settings(rule)
    posteriors = Normal(), Averages(), Coins(), Moments(), Pooled()
    fitting = [one for one in posteriors if not any(map(one.lacks, rule.calls))]
    assert fitting
    for one in fitting:
        check_policy(Composed(one, rule), PLANS)


PARTS = Posterior, Memory, IndexRule  # of policies; made with their defaults, or as here
SETTINGS: dict[type, tuple[Any, ...]] = {Discount: (0.9,), Window: (5,), Optimism: (1.0,)}
CHECKS: dict[type, Callable[[Any], None]] = {
    Posterior: check_posterior,
    Memory: check_memory,
    IndexRule: check_index_rule,
    ActionSet: check_actions,
    Policy: lambda policy: check_policy(policy, PLANS),
    Environment: lambda environment: check_environment(environment, PLANS),
    Distribution: check_distribution,
    Oblivious: check_losses,
    Contexts: check_contexts,
    Rule: check_rule,
}


def exported(packages: Sequence[ModuleType]) -> list[type]:
    """Return the concrete classes; tuples, errors and plays are what the others hand around."""
    things = [getattr(package, name) for package in packages for name in package.__all__]
    kinds = [kind for kind in things if isinstance(kind, type) and not inspect.isabstract(kind)]
    records = (tuple, Exception, Play)
    return [kind for kind in kinds if not issubclass(kind, records) and not is_protocol(kind)]


def is_protocol(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


def check(kind: type, folder: Path) -> None:
    """Run the contract of its kind on an example of the class."""
    if any(base.__name__ == "Storage" for base in kind.__mro__):
        testing.check_storage(opener(kind, folder))
        return
    if any(base.__name__ == "Store" for base in kind.__mro__):
        testing.check_store(kind())
        return
    promise = next((CHECKS[base] for base in kind.__mro__ if base in CHECKS), None)
    assert promise, f"{kind.__name__} is of no kind that has a contract: {list(CHECKS)}"
    if issubclass(kind, PARTS):
        promise(kind(*SETTINGS.get(kind, ())))
        return
    try:
        example = kind.example()  # type: ignore[attr-defined]
    except TypeError as error:
        raise AssertionError(f"write {kind.__name__}.example(): a small instance") from error
    assert type(example) is kind, f"{kind.__name__}.example() must return a {kind.__name__}"
    promise(example)


def opener(kind: Callable[..., Any], folder: Path) -> Callable[[str], Any]:
    """Return what opens a storage by name: in a folder of that name, if it asks for one."""
    if inspect.signature(kind).parameters:
        return lambda name: kind(folder / name)
    made: dict[str, Any] = {}
    return lambda name: made.setdefault(name, kind())


@pytest.mark.parametrize("kind", exported(PACKAGES))
def test_contract(kind: type, tmp_path: Path) -> None:
    check(kind, tmp_path)


def test_the_classes_are_found() -> None:
    found = {kind.__name__ for kind in exported(PACKAGES)}
    assert {"Transport", "GenCTS", "Replay", "Beta", "RandomWalk"} <= found
    assert not found & {"ActionSet", "OracleSet", "World", "Play", "Observation", "Duplicate"}


# ---------------------------------------------------------------- what is wrong is noticed


class Forgetful(Budget):
    """A set whose example is that of its parent, with other arguments."""

    def __init__(self, caps: Any) -> None:
        super().__init__(1, caps)


class Impostor(Budget):
    """A set that returns a parent for an example."""

    @classmethod
    def example(cls) -> Any:
        return Budget.example()


@dataclass(frozen=True)
class Cheat(GenCTS):
    """A policy that plays too much."""

    def choose(self, actions: ActionSet, state: Any, rng: Any) -> Play:
        play = super().choose(actions, state, rng)
        return Play(play.action + 1, play.memo)


class Orphan:
    """A class of no kind."""


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Forgetful, r"write Forgetful\.example\(\)"),
        (Impostor, "must return a Impostor"),
        (Cheat, "choose must play actions of the set"),
        (Orphan, "of no kind"),
    ],
)
def test_a_new_class_is_enrolled_by_itself(kind: type, says: str, tmp_path: Path) -> None:
    package = ModuleType("package")
    package.__all__ = [kind.__name__]  # type: ignore[attr-defined]
    setattr(package, kind.__name__, kind)
    (found,) = exported([package])
    with pytest.raises(AssertionError, match=says):
        check(found, tmp_path)


@dataclass(frozen=True)
class Beginner(Policy):
    """A policy with a usual mistake."""

    mistake: str

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        return {"sum": np.zeros((trials, actions.d))}

    def choose(self, actions: ActionSet, state: Any, rng: Any) -> Any:
        action = actions.best(state["sum"])
        return action if self.mistake == "no play" else Play(action)

    def update(self, actions: ActionSet, state: Any, play: Any, feedback: Any, rng: Any) -> None:
        total = feedback.total
        if self.mistake == "trials added up":
            state["sum"] += total.sum(axis=0)
        elif self.mistake == "one row":
            state["sum"] = state["sum"].sum(axis=0) + total[0]
        elif self.mistake == "a number":
            state["sum"] = total.sum()
        elif self.mistake == "a state of its own":
            state = {"sum": state["sum"] + total}
        else:
            state["sum"] += total


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        ("no play", "choose must return a Play, not a ndarray"),
        ("trials added up", r"the other trials: state\['sum'\] does"),
        (
            "one row",
            r"update must leave in state\['sum'\].* \(3, ...\): got ndarray of shape \(6,\)",
        ),
        ("a number", r"update must leave in state\['sum'\].*: got float64 of shape \(\)"),
        ("a state of its own", "update must write into the state that it is given"),
    ],
)
def test_usual_mistakes_of_policies_are_named(mistake: str, says: str) -> None:
    check_policy(Beginner("none"), PLANS)
    with pytest.raises(AssertionError, match=says):
        check_policy(Beginner(mistake), PLANS)


@dataclass(frozen=True, eq=False)
class Broken(Environment):
    """Coins of mean 0.5, with something wrong."""

    what: str

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        return self.what == "phases"

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        pass

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        inside = Stochastic(Bernoulli(np.full(actions.d, 0.5)))
        return BrokenWorld(self.what, inside.open(actions, horizon, trials, seed))


class BrokenWorld(World):
    corruption: FloatArray

    def __init__(self, what: str, world: World) -> None:
        self.what, self.world, self.total_means = what, world, world.total_means
        self.rng = np.random.default_rng()  # not from the seed
        assert world.total_means is not None
        self.corruption = np.ones(len(world.total_means))
        self.round = self.units = 0
        if what == "total means":
            self.total_means = world.total_means + 0.1
        elif what == "means":
            self.total_means = None

    def contexts(self, t: int) -> FeatureRows | None:
        if self.what not in ("features", "intercept"):
            return None
        phi = np.full((PLANS.d, 2), 0.5)
        if self.what == "features":
            phi[:] = 1.0, self.units
        return FeatureRows.of(phi)

    def observe(self, action: IntArray) -> Observation:
        self.units += int(action.sum() > 0)
        seen = self.world.observe(action)
        feedback, means, averages = seen
        match self.what:
            case "no seed":
                return seen._replace(averages=self.rng.random(averages.shape))
            case "company":
                return seen._replace(means=means + 0.01 * len(means))
            case "played":
                return seen._replace(means=means - 0.01 * (action > 0))
            case "averages":
                return seen._replace(averages=means)
            case "means":
                return seen._replace(means=means + 0.1)
            case "range":
                return seen._replace(feedback=Feedback(action, 2 * feedback.total))
            case "units":
                assert feedback.units is not None
                wrong = Feedback(action, feedback.total, feedback.units / 2, feedback.first)
                return seen._replace(feedback=wrong)
            case "phases":
                self.round += 1
                return seen._replace(means=means + self.round / 100)
            case "corruption":
                self.corruption = self.corruption / 2
        return seen


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("no seed", "the same seed"),
        ("company", "must not depend on the other trials"),
        ("played", "must not depend on what is played"),
        ("averages", "averages must be those of all n_i units"),
        ("means", "losses must have the means"),
        ("phases", "the same means in every round"),
        ("range", r"must be in \[0, 1\]"),
        ("units", "must add up to the total"),
        ("features", "features must not depend on what is played"),
        ("intercept", "the first feature must be 1"),
        ("corruption", "corruption must never decrease"),
        ("total means", "total_means must be the sum"),
    ],
)
def test_a_broken_environment_is_noticed(what: str, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check_environment(Broken(what), PLANS)


def test_an_environment_of_somebody_else_passes() -> None:
    check_environment(Broken("nothing"), PLANS)


def test_settings_that_change_in_a_file_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Builder, "build", lambda self, where, plain: Budget(2, [1, 1]))
    check_settings(Budget(2, [1, 1]))
    with pytest.raises(
        AssertionError, match="the settings of an object that is built again must be the same"
    ):
        check_settings(Budget(1, [1, 1]))
    with pytest.raises(AssertionError, match="of the same class"):
        check_settings(GenCTS())
    for unwritten in (Replay.example(), Adversarial(lambda t, past: np.zeros(6)), Cheat()):
        check_settings(unwritten)


# ---------------------------------------------------------------- more than one example each


def copycat(t: int, past: IntArray) -> FloatArray:
    """What was played more often costs more."""
    losses: FloatArray = (1 + past.sum(axis=0)) / (1 + 5 * t)
    return losses


def test_adaptive_adversaries_and_tables_keep_the_contract() -> None:
    check_environment(Adversarial(copycat), PLANS)
    table = np.random.default_rng(0).random((8, 6, 5))
    check_environment(Adversarial(table), PLANS, horizon=8)
    check_environment(Stochastic(Bernoulli(table[:4, :, 0])), PLANS, trials=4)


@given(data=st.data(), seed=st.integers(0, 2**32))
@settings(max_examples=5)
def test_random_losses_on_random_sets(data: st.DataObject, seed: int) -> None:
    some = data.draw(strategies.action_sets())
    losses = data.draw(strategies.distributions(some.d))
    check_environment(Stochastic(losses), some, seed, horizon=5)


def test_only_strategies_need_hypothesis() -> None:
    code = (
        "import sys\n"
        "sys.modules['hypothesis'] = None\n"
        "import multiplay.testing\n"
        "try:\n"
        "    import multiplay.testing.strategies\n"
        "except ModuleNotFoundError as error:\n"
        "    assert 'pip install multiplay[testing]' in str(error), error\n"
        "else:\n"
        "    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
