"""Switching costs: plans against enumeration, the contract of policies, and what is refused."""

from typing import Any

import numpy as np
import pytest

from multiplay import (
    BootstrapCTS,
    Budget,
    CombUCB,
    Constrained,
    Coverage,
    Explicit,
    FeatureCTS,
    FeatureRows,
    Feedback,
    GenCTS,
    GenLBINFV,
    IntegerProgram,
    InvalidInput,
    Knapsack,
    Model,
    Stochastic,
    Streams,
    SwitchingCost,
    Transport,
    Uniform,
)
from multiplay.actions.base import best_of
from multiplay.constraints.switching import Changes
from multiplay.posteriors import memories
from multiplay.testing import check_policy

SETS = [
    Transport([2, 3], [2, 3]),
    Transport([1, 2, 2], [3, 2]),
    Budget(4, [3, 2, 4]),
    Knapsack([3, 2, 4], 9, limits=[2, 3, 2]),
    Explicit([[0, 3], [2, 2], [5, 0], [1, 1]]),
    IntegerProgram.example(),
    Model.example(),
]


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("actions", SETS, ids=repr)
def test_plans_have_the_least_cost_of_all_actions(actions: Any, ordered: bool) -> None:
    rng, everything = np.random.default_rng(4), actions.enumerate()
    rows = 2 if actions.searches else 40
    theta = rng.random((rows, actions.d))
    if ordered:
        theta = actions.sign * np.sort(actions.sign * rng.random((rows, actions.d, 3)))
    last = everything[rng.integers(len(everything), size=rows)]
    last[0] = actions.n + 1  # a plan of another set
    charge = rng.choice([0.0, 0.05, 0.2, 1.0], size=rows)
    found = Changes(last, charge).plans(actions, theta, best_of(actions, theta))
    for k in range(rows):
        value = actions.value_by_unit if ordered else actions.value
        costs = actions.sign * value(everything, theta[k])
        costs = costs + charge[k] * np.abs(everything - last[k]).sum(axis=1)
        own = actions.sign * value(found[k], theta[k])
        own = own + charge[k] * np.abs(found[k] - last[k]).sum()
        assert actions.contains(found[k])
        assert own == pytest.approx(costs.min())


def test_other_sets_have_the_better_one_of_two_plans() -> None:
    actions = Coverage.example()
    theta = np.random.default_rng(0).random((30, actions.d))
    proposal = actions.best(theta)
    last = np.roll(proposal, 1, axis=0)
    found = Changes(last, np.full(30, 0.1)).plans(actions, theta, proposal)
    stays = actions.value(last, theta) >= actions.value(proposal, theta) - 0.1 * np.abs(
        last - proposal
    ).sum(axis=1)
    assert 0 < stays.sum() < 30
    assert (found == np.where(stays[:, None], last, proposal)).all()


def test_the_contract_of_policies_holds() -> None:
    for policy in (GenCTS(), CombUCB(), BootstrapCTS(memory=memories.Changes(), replan="rarely")):
        check_policy(Constrained(policy, [SwitchingCost(0.1)]), Transport([1, 4, 5], [4, 6]))


def test_a_policy_that_reads_features_learns_from_the_plan_that_is_played() -> None:
    """Its memo has the features of the arms of the last plan, not those of its own plan."""
    plans, rng = Budget(2, [2, 2, 2]), Streams.spawn(0, 0, [0])
    phi = np.array([[1.0, 0.1], [1.0, 0.5], [1.0, 0.9]])
    today, policy = (
        plans.featured(FeatureRows.of(phi)),
        Constrained(FeatureCTS(), [SwitchingCost(5.0)]),
    )
    state, wanted = policy.start(today, None, 1), set()
    for _ in range(10):
        wanted.add(tuple(FeatureCTS().choose(today, state, Streams(rng.state.copy())).action[0]))
        play = policy.choose(today, state, rng)
        (arms,) = play.action[0].nonzero()
        assert play.memo["arms"].tolist() == [arms.tolist()]
        assert play.memo["phi"].tolist() == [phi[arms].tolist()]
        policy.update(today, state, play, Feedback(play.action, play.action / 2), rng)
    assert len(wanted) > 1


def test_a_cost_of_nothing_changes_no_play() -> None:
    """And a large one keeps the first plan until it was played often enough."""
    actions, played = Transport([1, 4, 5], [4, 6]), dict[float | None, list[Any]]()
    world = Stochastic(Uniform(0.0, np.array([0.2, 0.8, 0.5, 0.4, 0.7, 0.3])))
    for change in (None, 0.0, 10.0):
        policy: Any = GenCTS()
        if change is not None:
            policy = Constrained(policy, [SwitchingCost(change)])
        opened, rng = world.open(actions, 40, [0, 1], 3), Streams.spawn(3, 0, [0, 1])
        state, played[change] = policy.start(actions, None, 2), []
        for _ in range(40):
            play = policy.choose(actions, state, rng)
            policy.update(actions, state, play, opened.observe(play.action).feedback, rng)
            played[change].append(play.action)
    assert np.array_equal(played[None], played[0.0])
    assert (np.array(played[10.0]) == played[10.0][0]).all()
    assert not (np.array(played[0.0]) == played[0.0][0]).all()


@pytest.mark.parametrize("given", [-1, np.nan, np.inf, "15", None, True])
def test_costs_that_are_no_costs_are_refused(given: Any) -> None:
    with pytest.raises(InvalidInput, match="cost: expected a number of 0 or more"):
        SwitchingCost(given)


def test_policies_without_an_index_are_refused_and_numbers_of_another_setting() -> None:
    with pytest.raises(InvalidInput, match="because of the constraints"):
        Constrained(GenLBINFV(), [SwitchingCost(1)]).start(Transport([1], [1]), None, 1)
    with pytest.raises(InvalidInput, match=r"change: .* a switching cost"):
        BootstrapCTS(change=15)  # type: ignore[call-arg]
