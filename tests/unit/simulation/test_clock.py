"""The clock of a simulation: it starts when the kernels are warm."""

import dataclasses
import importlib
from typing import Any, ClassVar

import numpy as np
import pytest

from multiplay import (
    Adversarial,
    Bernoulli,
    Budget,
    Corrupted,
    Duplicated,
    Environment,
    GenCTS,
    GenLBINFV,
    Policy,
    Stochastic,
    simulate,
)

module = importlib.import_module("multiplay.simulation.block")
ADS = Budget(2, caps=[1, 1, 2])
LOW, HIGH = Bernoulli([0.2, 0.3, 0.4]), Bernoulli([0.9, 0.8, 0.7])


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_warm", set())


@dataclasses.dataclass(frozen=True)
class Logged(GenCTS):
    """Writes down what is called, and how often it learned itself."""

    calls: ClassVar[list[str]] = []
    learned: list[int] = dataclasses.field(default_factory=list)

    def choose(self, actions: Any, state: Any, rng: Any) -> Any:
        self.calls.append("choose")
        return super().choose(actions, state, rng)

    def update(self, *arguments: Any) -> None:
        self.learned.append(1)
        super().update(*arguments)


def test_the_clock_starts_after_the_warm_up(cold: None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        @staticmethod
        def perf_counter() -> float:
            Logged.calls.append("clock")
            return 0.0

    monkeypatch.setattr(module, "time", Clock)
    policy = Logged()
    for warm in (["choose", "choose"], []):  # once in a process
        Logged.calls.clear()
        policy.learned.clear()
        simulate(ADS, Stochastic(LOW), {"logged": policy}, horizon=3, trials=2)
        assert Logged.calls == [*warm, "clock", "choose", "choose", "choose", "clock"]
        assert len(policy.learned) == 3, "the warm-up is played by a copy"


def test_a_function_of_past_actions_is_asked_once_for_every_round(cold: None) -> None:
    asked: list[int] = []

    def adversary(t: int, past: Any) -> Any:
        asked.append(t)
        return np.full(3, 0.5)

    simulate(ADS, Adversarial(adversary), {"GenCTS": GenCTS()}, horizon=4, trials=2)
    assert asked == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "policy", [GenCTS(), GenLBINFV(any_horizon=True), Duplicated(GenCTS())], ids=repr
)
@pytest.mark.parametrize(
    "environment",
    [Stochastic(LOW), Corrupted(LOW, HIGH, at=3), Adversarial(lambda t, past: np.full(3, 0.5))],
    ids=["stochastic", "corrupted", "adaptive"],
)
def test_nothing_is_compiled_while_the_clock_runs_and_numbers_stay(
    policy: Policy, environment: Environment, cold: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from numba.core.dispatcher import Dispatcher

    running = False
    clock = module.time.perf_counter

    class Clock:
        @staticmethod
        def perf_counter() -> float:
            nonlocal running
            running = not running
            return float(clock())

    compile_kernel = Dispatcher.compile

    def watched(self: Any, signature: Any) -> Any:
        assert not running, f"{self.py_func.__name__} is compiled while the clock runs"
        return compile_kernel(self, signature)

    monkeypatch.setattr(Dispatcher, "compile", watched)
    monkeypatch.setattr(module, "time", Clock)
    first = simulate(ADS, environment, {"policy": policy}, horizon=6, trials=3)
    again = simulate(ADS, environment, {"policy": policy}, horizon=6, trials=3)
    assert (first.regret.values == again.regret.values).all()


def test_one_round_is_not_warmed_by_two(cold: None) -> None:
    policy = Logged()
    Logged.calls.clear()
    simulate(ADS, Stochastic(LOW), {"logged": policy}, horizon=1, trials=1)
    assert Logged.calls == ["choose", "choose"]
