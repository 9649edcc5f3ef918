"""The belief model of a learner against a slow reference, and its promises."""

import numpy as np
import pytest
from belief_twin import BeliefTwin, Total
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from multiplay import BootstrapCTS, Budget, Learner, Policy

NAMES = ["air", "sea", "rail", "road"]
LOW, HIGH = 20.0, 220.0
TRUCKS = 3  # of an arm that is told as a total


def share(loss: float) -> float:
    return (loss - LOW) / (HIGH - LOW)


@st.composite
def told_rounds(draw: st.DrawFn) -> list[dict[str, object]]:
    """Rounds of one to four arms: lists of losses, some missing, or a total."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    level, noise = rng.uniform(LOW, HIGH, 4), rng.choice([0.0, 1.0, 30.0, 100.0])
    rounds: list[dict[str, object]] = []
    for _ in range(draw(st.integers(0, 12))):
        told: dict[str, object] = {}
        for i, name in enumerate(NAMES):
            units = int(rng.integers(0, 6))
            if units:
                bills = np.clip(level[i] + rng.normal(0, 1, units) * noise, LOW, HIGH).tolist()
                kind = rng.choice(["units", "units", "gaps", "total"])
                told[name] = TRUCKS * bills[0] if kind == "total" else bills
                if kind == "gaps":
                    bills[0] = None
        rounds.append(told)
    return rounds


def play(policy: Policy, rounds: list[dict[str, object]]) -> tuple[Learner, BeliefTwin]:
    """Tell the same rounds to a learner, in the user's unit, and to the slow reference."""
    plans = Budget(20, [5] * 4, names=NAMES, at_most=True)
    learner = Learner(plans, policy, seed=1, losses=(LOW, HIGH), missing="ignore")
    discount, window = policy.discount, policy.window  # type: ignore[attr-defined]
    twin = BeliefTwin(4, discount, window)
    for told in rounds:
        units = {n: len(v) if isinstance(v, list) else TRUCKS for n, v in told.items()}
        asked = learner.ask(fixed={name: units.get(name, 0) for name in NAMES})
        learner.tell(asked, told)
        reports: dict[int, object] = {}
        for i, name in enumerate(NAMES):
            losses = told.get(name)
            if isinstance(losses, list):
                seen = [share(loss) for loss in losses if loss is not None]
                if seen:
                    reports[i] = seen
            elif losses is not None:
                average = share(losses / TRUCKS)  # type: ignore[operator]
                reports[i] = Total(TRUCKS, TRUCKS * average)
        twin.tell(reports)  # type: ignore[arg-type]
    return learner, twin


@given(told_rounds(), st.sampled_from([(None, None), (0.8, None), (None, 3)]))
def test_beliefs_are_those_of_the_slow_reference(
    rounds: list[dict[str, object]], memory: tuple[float | None, int | None]
) -> None:
    discount, window = memory
    learner, twin = play(BootstrapCTS(discount=discount, window=window), rounds)
    arms, expected = learner.arms(level=0.9), twin.beliefs(level=0.9)
    scale = HIGH - LOW
    for name in ("mean", "low", "high"):
        reference = [LOW + scale * getattr(one, name) for one in expected]
        assert_allclose(arms[name], reference, rtol=0, atol=1e-9)
    assert_allclose(arms["spread"], scale * np.sqrt(twin.noise().s), rtol=1e-9)
    plan = [2, 0, 5, 1]
    found, slow = learner.expect(plan, level=0.8), twin.estimate(plan, level=0.8)
    for name in ("total", "low", "high"):
        cost = 8 * LOW + scale * getattr(slow, name)
        assert getattr(found, name) == pytest.approx(cost, abs=1e-8)
    assert learner.policy_state.moments.common == pytest.approx([twin.gn, twin.gd], abs=1e-12)
    assert ((arms["low"] <= arms["mean"]) & (arms["mean"] <= arms["high"])).all()
