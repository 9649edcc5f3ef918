"""Baseline: safe plans against enumeration, indices of policies, and plays in simulations."""

import numpy as np
import pytest

from multiplay import (
    Baseline,
    BootstrapCTS,
    Budget,
    Changes,
    CombUCB,
    Constrained,
    Coverage,
    FixedPlan,
    FollowTheLeader,
    GaussianCTS,
    GenCTS,
    GenLBINFV,
    InProportion,
    InvalidInput,
    Knapsack,
    Learner,
    Policy,
    Rule,
    Stochastic,
    Streams,
    SwitchingCost,
    Transport,
    Uniform,
)
from multiplay.actions import ActionSet, limited
from multiplay.constraints.baseline import Allowed, Margin
from multiplay.constraints.terms import planned
from multiplay.testing import check_policy

INDEXED = [GenCTS(), GaussianCTS(), BootstrapCTS(), CombUCB(), FollowTheLeader()]


def drawn_margin(plans: ActionSet, baseline: np.ndarray, rng: np.random.Generator) -> Margin:
    """Return a margin that some plans keep: after a few days near the baseline."""
    d = plans.d
    mean, variance = rng.uniform(0.2, 0.6, (1, d)), rng.uniform(0, 0.01, (1, d))
    left = rng.uniform(-1, 1, (1, d)) + 0.2 * baseline
    gain, doubt = rng.uniform(-0.2, 0.5, 1), rng.uniform(0, 0.1, 1)
    tail = rng.spawn(1)[0].uniform(-0.02, 0.02, (1, d))
    target, others = left + (1 + 0.1 * plans.sign) * baseline, (gain, 4.0 * doubt, 0.01 + 0 * gain)
    return Margin(plans.sign, target, mean, 4.0 * variance, tail, *others)


SETS = [
    Transport([2, 3, 2], [3, 2, 2]),
    Budget(4, [3, 2, 2, 3]),
    Budget(4, [3, 2, 2, 3], at_most=True, sense="max"),
    limited(Transport([2, 3, 2], [3, 2, 2]), [3, 3, 1, 3, 3, 3, 3, 3, 3], [-1] * 8 + [1]),
]


@pytest.mark.parametrize("plans", SETS, ids=str)
def test_safe_plans_against_enumeration(plans: ActionSet) -> None:
    """Plans are safe by a sum written out; most are the best safe ones, and few are far off."""
    everything, rng = plans.enumerate(), np.random.default_rng(5)
    (baseline,) = plans.argmin(rng.random((1, plans.d)))
    gaps = list[float]()  # of the best safe plan; infinite where none was found
    for _ in range(200):
        margin = drawn_margin(plans, baseline, rng)
        theta = rng.uniform(0, 1, (1, plans.d))
        costs, proposal = plans.sign * theta, plans.best(theta)
        term = Allowed(baseline[None], margin)
        action = planned(plans, theta.copy, proposal, [term])
        left = margin.target - everything
        g = margin.gain + plans.sign * left @ margin.mean[0]
        g = g - np.sqrt(margin.doubt + left**2 @ margin.square[0])
        g = g - np.maximum((-plans.sign * left * margin.tail[0]).max(axis=1), margin.most)
        np.testing.assert_allclose(margin.of(everything[None])[0], g, atol=1e-12)
        by_plan = dict(zip(map(tuple, everything.tolist()), g, strict=True))
        is_safe = by_plan[tuple(action[0].tolist())] >= 0
        if by_plan[tuple(proposal[0].tolist())] >= 0:
            assert (action == proposal).all()
            assert term.eta[0] == 0
            continue
        assert is_safe or (action == baseline).all()
        if (g >= 0).any():
            best = (everything[g >= 0] @ costs[0]).min()
            gap = float(action[0] @ costs[0] - best) / abs(best)
            gaps.append(gap if is_safe else np.inf)
    assert len(gaps) >= 5
    assert min(gaps) > -1e-9
    assert np.mean(np.isfinite(gaps)) >= 0.9
    assert np.mean(np.array(gaps) < 1e-9) >= 0.4
    assert np.mean([gap for gap in gaps if np.isfinite(gap)]) <= 0.1


@pytest.mark.parametrize("policy", INDEXED, ids=repr)
def test_index_is_what_choose_plays(policy: Policy) -> None:
    """With the same random numbers, and in the same state, after all arms were seen."""
    plans, trials = Transport([1, 4, 5], [4, 6]), range(4)
    world = Stochastic(Uniform(np.full(6, 0.2), np.full(6, 0.6))).open(plans, 100, trials, 3)
    state, rng = policy.start(plans, None, 4), Streams.spawn(3, 1, trials)
    for t in range(12):
        before = Streams(rng.state)
        play = policy.choose(plans, state, rng)
        index = policy.index(plans, state, before)
        assert index is not None
        assert (before.state == rng.state).all()
        if t > 6:
            assert (play.action == plans.best(index)).all()
        policy.update(plans, state, play, world.observe(play.action).feedback, rng)


@pytest.mark.slow
def test_contract_on_other_sets() -> None:
    for plans in (Knapsack([1, 2, 3], 5), Budget(4, [3, 2, 2], sense="max")):
        check_policy(Constrained(BootstrapCTS(), [Baseline(InProportion(), per="week")]), plans)


def test_simulation_equals_a_learner_whose_reports_come_at_once() -> None:
    """The policy and the learner count the same units, and believe the same."""
    plans, means = Transport([3, 4], [4, 3]), np.array([0.2, 0.6, 0.5, 0.3])
    for inner, per in ((BootstrapCTS(), None), (BootstrapCTS(memory=Changes()), None)):
        rule = FixedPlan({"s1->d1": 0, "s1->d2": 3, "s2->d1": 4})
        policy = Constrained(inner, [Baseline(rule, 0.05, per=per)])
        learner = Learner(plans, inner, constraints=[Baseline(rule, 0.05, per=per)])
        other = Learner(plans, policy)
        rng, restricted = np.random.default_rng(2), 0
        for _ in range(15):
            one, two = learner.ask(), other.ask()
            assert one.plan == two.plan
            losses = {
                arm: (mean * rng.uniform(0.8, 1.2, k)).tolist()
                for (arm, k), mean in zip(one.plan.items(), means, strict=True)
            }
            learner.tell(one, losses)
            other.tell(two, losses)
            restricted += one.restricted
        assert 1 <= restricted < 15


def test_plays_stay_within_the_allowance() -> None:
    """60 trials of seed 7: naive plays exceed it on some day in most of them, these in none."""
    plans, rule, trials = Transport([5, 6, 7], [6, 7, 5]), InProportion(), range(60)
    means = np.random.default_rng(4).uniform(0.16, 0.64, plans.d)
    exceeded = []
    for policy in (BootstrapCTS(), Constrained(BootstrapCTS(), [Baseline(rule)])):
        world = Stochastic(Uniform(0.6 * means, 1.4 * means)).open(plans, 30, trials, 7)
        state, rng, costs = policy.start(plans, None, 60), Streams.spawn(7, 1, trials), []
        for _ in range(30):
            play = policy.choose(plans, state, rng)
            costs.append(play.action @ means)
            policy.update(plans, state, play, world.observe(play.action).feedback, rng)
        allowed = 1.03 * float(rule.plan(plans) @ means) * np.arange(1, 31)[:, None]
        exceeded.append(float((np.cumsum(costs, axis=0) > allowed + 1e-9).any(axis=0).mean()))
    assert exceeded[0] > 0.3
    assert exceeded[1] == 0.0


def test_bad_settings() -> None:
    plans, reads = Transport([1, 4, 5], [4, 6]), InProportion()

    def limited(policy: Policy, rule: Rule) -> Constrained:
        return Constrained(policy, [Baseline(rule)])

    for policy, argument in (
        (lambda: Constrained("GenCTS"), "policy"),  # type: ignore[arg-type]
        (lambda: Constrained(GenCTS(), SwitchingCost(1)), "constraints"),  # type: ignore[arg-type]
        (lambda: Constrained(GenCTS(), [15]), "constraints"),  # type: ignore[list-item]
        (lambda: Constrained(GenCTS(), [SwitchingCost(1), SwitchingCost(2)]), "constraints"),
        (lambda: Constrained(GenCTS(), [Baseline("each day")]), "constraints"),
        (lambda: Baseline("rule"), "rule"),
        (lambda: Baseline(reads, 0), "allowance"),
        (lambda: Baseline(reads, 0.1, sure=1.0), "sure"),
        (lambda: Baseline(reads, 0.1, per="day"), "per"),
        (lambda: limited(GenLBINFV(), reads).start(plans, None, 1), "policy"),
        (lambda: limited(GenCTS(), FixedPlan({"x": 1})).start(plans, None, 1), "baseline"),
        (lambda: limited(GenCTS(), reads).start(Coverage.example(), None, 1), "actions"),
    ):
        with pytest.raises(InvalidInput) as error:
            policy()
        assert error.value.argument == argument
