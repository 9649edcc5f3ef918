"""Constrained: the plays of a learner, promises that are kept, and settings of older versions."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from multiplay import (
    AtMost,
    Baseline,
    BootstrapCTS,
    Changes,
    Constrained,
    GenCTS,
    InProportion,
    Learner,
    Stochastic,
    Streams,
    SwitchingCost,
    Transport,
    Uniform,
)
from multiplay._support.serialization import comparable, completed, pack
from multiplay.experiments.experiment import build
from multiplay.testing import check_policy

PLANS = Transport([3, 4], [4, 3])
MEANS = np.array([0.2, 0.6, 0.5, 0.3])
CO2 = AtMost(60, of={"*": 1, "s1->d1": 4}, plays=6, name="CO2")
LIMITS = [SwitchingCost(0.05), Baseline(InProportion(), 0.05), CO2]
ORDERED = GenCTS(unit_means="ordered")
CASES = [list(one) for k in range(4) for one in combinations(LIMITS, k)]


@pytest.mark.parametrize("policy", [BootstrapCTS(memory=Changes()), ORDERED], ids=repr)
@pytest.mark.parametrize("limits", CASES, ids=lambda one: ", ".join(each.name for each in one))
def test_simulations_play_as_a_learner_whose_reports_come_at_once(
    limits: list[Any], policy: Any
) -> None:
    if policy == ORDERED and LIMITS[1] in limits:
        limits = [one for one in limits if one is not LIMITS[1]]  # an allowance compares means
    learner = Learner(PLANS, policy, constraints=limits)
    other = Learner(PLANS, Constrained(policy, limits))
    rng = np.random.default_rng(2)
    for _ in range(6):
        one, two = learner.ask(), other.ask()
        assert one.plan == two.plan
        told = zip(MEANS, one.action, strict=True)
        losses = [(mean * rng.uniform(0.8, 1.2, k)).tolist() for mean, k in told]
        learner.tell(one, losses)
        other.tell(two, losses)


@pytest.mark.parametrize(
    ("policy", "limits"), [(GenCTS(), LIMITS), (ORDERED, [LIMITS[0], CO2])], ids=repr
)
def test_every_trial_keeps_a_promise_in_every_period(policy: Any, limits: list[Any]) -> None:
    trials, rounds = range(4), 3 * CO2.plays
    policy, amounts = Constrained(policy, limits), CO2.amounts(PLANS.names)
    world = Stochastic(Uniform(0.5 * MEANS, 1.5 * MEANS)).open(PLANS, rounds, trials, 7)
    state, rng, used = policy.start(PLANS, None, 4), Streams.spawn(7, 1, trials), list[Any]()
    for _ in range(rounds):
        play = policy.choose(PLANS, state, rng)
        used.append(play.action @ amounts)
        policy.update(PLANS, state, play, world.observe(play.action).feedback, rng)
    periods = np.array(used).reshape(3, CO2.plays, 4).sum(axis=1)
    assert (periods <= CO2.limit).all()
    assert (periods >= 0.9 * CO2.limit).any()


def test_the_contract_of_policies_holds() -> None:
    check_policy(Constrained(GenCTS(), LIMITS), PLANS)
    check_policy(Constrained(ORDERED, [LIMITS[0], CO2]), PLANS)


RULE = {"type": "InProportion"}
FILE: dict[str, Any] = {
    "horizon": 9,
    "trials": 1,
    "actions": {"type": "Budget", "total": 2, "caps": [2, 2]},
    "environment": {
        "type": "Stochastic",
        "distribution": {"type": "Constant", "value": [0.5, 0.4]},
    },
}
CONSERVATIVE = {"allowance": 0.1, "sure": 0.99, "per": "week"}
OLD: dict[str, tuple[dict[str, Any], Constrained]] = {
    "Conservative": (
        {"type": "Conservative", "baseline": {"type": "InProportion"}} | CONSERVATIVE,
        Constrained(GenCTS(), [Baseline(InProportion(), 0.1, per="week")]),
    ),
    "SwitchingCost": (
        {"type": "SwitchingCost", "change": 0.2},
        Constrained(GenCTS(), [SwitchingCost(0.2)]),
    ),
}


@pytest.mark.parametrize("name", OLD)
def test_policies_of_older_files_are_read(name: str) -> None:
    """In headers of learners and journals, and in experiment files."""
    plain, policy = OLD[name]
    packed, _ = pack(policy)
    old = plain | {"policy": packed["policy"]}
    assert comparable(completed(old)) == comparable(packed)
    file = FILE | {"policies": {"old": plain | {"policy": {"type": "GenCTS"}}}}
    assert build(file).policies["old"] == policy


def test_a_grid_of_a_constraint() -> None:
    limits = [{"type": "SwitchingCost", "cost": [0.1, 0.2]}, {"type": "Baseline", "rule": RULE}]
    grid = {"type": "Constrained", "policy": {"type": "GenCTS"}, "constraints": limits}
    file = FILE | {"policies": {"calm": grid}}
    assert build(file).policies == {
        f"calm, cost={cost}": Constrained(GenCTS(), [SwitchingCost(cost), Baseline(InProportion())])
        for cost in (0.1, 0.2)
    }
