"""Few calls of the solver: the schedule, the known plans, and learners and studies with it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from multiplay import (
    BGCTS,
    COSV,
    BootstrapCTS,
    Budget,
    Changes,
    CombUCB,
    EpsilonGreedy,
    FollowTheLeader,
    GaussianCTS,
    GenCTS,
    IntegerProgram,
    InvalidInput,
    Knapsack,
    Learner,
    Model,
    Policy,
    Stochastic,
    Streams,
    Study,
    TimeVarying,
    Transport,
    Uniform,
    simulate,
)
from multiplay.policies.planners import MOST_PLANS, Rarely
from multiplay.posteriors.coins import Coins
from multiplay.testing import check_policy

POLICIES: list[Policy] = [
    GenCTS(replan="rarely"),
    GaussianCTS(replan="rarely"),
    BootstrapCTS(replan="rarely"),
    BootstrapCTS(memory=Changes(), replan="rarely"),
    CombUCB(replan="rarely"),
    CombUCB(window=9, replan="rarely"),
    FollowTheLeader(replan="rarely"),
    EpsilonGreedy(0, window=9, replan="rarely"),
    BGCTS(replan="rarely"),
    COSV(window=9, replan="rarely"),
]


class Counting(Transport):
    """A transport set that counts the rows for which its oracle is called."""

    calls = 0

    def oracle(self, costs: Any) -> Any:
        type(self).calls += len(costs)
        return super().oracle(costs)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_the_contract_of_policies_holds(policy: Policy) -> None:
    check_policy(policy, Transport([1, 4, 5], [4, 6]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Knapsack, IntegerProgram, Model])
def test_the_contract_holds_on_sets_with_a_solver(kind: Any) -> None:
    check_policy(GaussianCTS(replan="rarely"), kind.example())


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_plays_are_those_of_a_slow_twin(policy: Policy) -> None:
    """The twin keeps a list of (plan, last round), and walks through it."""
    actions, trials = Transport([2, 3, 2], [3, 4]), range(3)
    means = np.linspace(0.2, 0.6, actions.d)
    world = Stochastic(Uniform(means - 0.2, means + 0.2)).open(actions, 200, trials, 7)
    rng, state = Streams.spawn(3, 1, trials), policy.start(actions, None, 3)
    known: list[dict[tuple[int, ...], int]] = [{} for _ in trials]
    last, reach = [0, 0, 0], getattr(policy, "window", None) or 10**9
    for t in range(200):
        theta = policy.index(actions, state, Streams(rng.state.copy()))
        assert theta is not None
        play = policy.choose(actions, state, rng)
        for k in trials:
            fresh = "count" in state and (state["count"][k] < 0.1).any()
            if fresh:
                unseen = (state["count"][k] < 0.1).astype(float)
                plan, last[k] = actions.argmin(-unseen), t
            elif t - last[k] >= 0.035 * min(t, reach):
                plan, last[k] = actions.argmin(theta[k]), t
            else:
                plan = np.array(min(known[k], key=lambda a: float(np.dot(a, theta[k]))))
            assert play.action[k].tolist() == plan.tolist()
            if tuple(plan) not in known[k] and len(known[k]) == MOST_PLANS:
                del known[k][min(known[k], key=known[k].__getitem__)]
            known[k][tuple(plan)] = t
        feedback = world.observe(play.action).feedback
        policy.update(actions, state, play, feedback, rng)


def test_full_lists_drop_the_plan_that_was_not_played_for_the_longest_time() -> None:
    """29 rounds in a row add new plans; 40 more with other costs must fit in."""
    actions, policy = Budget(9, [9] * 4), GenCTS(replan="rarely")
    rng, state = np.random.default_rng(0), policy.start(actions, None, 1)
    order: list[tuple[int, ...]] = []
    for t in range(400):
        play = Rarely().of(Coins())(actions, state, rng.random((1, 4)))
        plan = tuple(play.action[0].tolist())
        order = [*[one for one in order if one != plan][-MOST_PLANS + 1 :], plan]
        state |= play.cache
        used = state["replan_played"][0] > 0
        assert {*map(tuple, state["replan_plans"][0].T[used].tolist())} == {*order}, t


def test_a_trial_calls_the_solver_in_few_rounds() -> None:
    """The schedule has 29 calls in 30 rounds and 60 in 100: the same calls around them."""
    actions, made = Counting([1, 4, 5], [4, 6]), []
    world = Stochastic(Uniform(0.0, np.array([0.2, 0.8, 0.5, 0.4, 0.7, 0.3])))
    policies = {"": GenCTS(replan="rarely")}
    for horizon in (30, 30, 100):  # the first one compiles, with calls of its own
        Counting.calls = 0
        simulate(actions, world, policies, horizon, 4, record=[horizon])
        made.append(Counting.calls)
    last, calls = 0, 0
    for t in range(100):
        if t - last >= 0.035 * t:
            last, calls = t, calls + 1
    assert made[2] - made[1] == 4 * (calls - 29)


def test_a_set_that_changes_is_solved_again_and_plans_are_feasible() -> None:
    first, second = Counting([1, 4, 5], [4, 6]), Counting([3, 3, 4], [5, 5])
    changing = TimeVarying([first] * 35 + [second] * 35)
    learner, calls = Learner(first, GenCTS(replan="rarely"), loss_range=(0, 1), seed=0), []
    for t in range(1, 71):
        Counting.calls = 0
        play = learner.ask(actions=changing.at(t))
        calls.append(Counting.calls)
        assert changing.at(t).contains(np.array([*play.plan.values()]))
        learner.tell(play, {arm: [0.5] * n for arm, n in play.plan.items()})
    assert sum(calls[:35]) == sum(calls[35:]) < 35


@pytest.mark.parametrize("policy", POLICIES[2:5], ids=repr)
def test_learners_and_studies_play_alike_after_a_restart(policy: Policy, tmp_path: Any) -> None:
    plans, store, file = Transport([1, 4, 5], [4, 6]), tmp_path / "plans.db", tmp_path / "learner"
    learners = [Learner(plans, policy, loss_range=(0, 1), seed=5) for _ in range(2)]
    study = Study.create("a", plans, policy, loss_range=(0, 1), seed=5, store=store)
    for t in range(45):
        if t % 11 == 10:
            learners[1].save(file)
            learners[1], study = Learner.load(file), Study.open("a", store=store)
        same = [learner.ask().plan for learner in learners]
        assert same[0] == same[1]
        owners: list[Any] = [*learners, study]
        for owner in owners:
            play = owner.ask() if owner is study else owner.pending()[0]
            owner.tell(play.id, {arm: [0.1 + t % 5 / 9] * n for arm, n in play.plan.items()})
    assert study.verify()


def test_other_values_are_refused_and_the_default_is_not_shown() -> None:
    for given in ("often", "", 3, True, ["rarely"], np.nan):
        with pytest.raises(InvalidInput, match="replan: expected None or 'rarely'"):
            GenCTS(replan=given)  # type: ignore[arg-type]
    assert repr(CombUCB()) == "CombUCB(alpha=1.5)"
    assert GenCTS(replan=None) == replace(GenCTS(replan="rarely"), replan=None)
