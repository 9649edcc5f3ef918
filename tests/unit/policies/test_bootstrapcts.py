"""BootstrapCTS: its draws against a slow reference, its limits, and what it makes of ranges."""

import numpy as np
import pytest
from belief_twin import BeliefTwin, Report, Total
from hypothesis import given
from hypothesis import strategies as st
from refusal import refused
from scipy import stats

from multiplay import (
    ActionSet,
    Bernoulli,
    BootstrapCTS,
    Budget,
    Feedback,
    GenCTS,
    Learner,
    Play,
    Stochastic,
    Streams,
    Uniform,
    simulate,
)
from multiplay.kernels.moments import B, N, W
from multiplay.random import POLICY
from multiplay.types import Arrays, FloatArray

FAILS = 1e-4  # level of each comparison of distributions
ARMS = Budget(12, [4, 4, 4], at_most=True)
TRIALS = 4000


def feedback_of(rounds: list[list[float]]) -> Feedback:
    """Return one report of three arms, by units."""
    count = np.array([[len(units) for units in rounds]])
    first = np.append(0, np.cumsum(count[0]))
    flat = np.array([[loss for units in rounds for loss in units]], dtype=float)
    total = np.array([[sum(units) for units in rounds]])
    return Feedback(count, total, flat, first)


def repeated(state: Arrays, trials: int) -> Arrays:
    return {name: np.repeat(array, trials, axis=0) for name, array in state.items()}


def drawn(policy: BootstrapCTS, state: Arrays, actions: ActionSet = ARMS) -> FloatArray:
    """Return many draws of the means of all arms, from one state."""
    rng = Streams.spawn(5, POLICY, range(TRIALS))
    theta = policy.index(actions, repeated(state, TRIALS), rng)
    assert theta is not None
    return theta


REPORTS: dict[str, list[dict[int, Report]]] = {
    "little noise": [{0: [0.30, 0.31, 0.29], 1: [0.5, 0.52]}, {0: [0.3, 0.32], 1: [0.51]}],
    "days": [{0: [0.2] * 4, 1: [0.6] * 4}, {0: [0.4] * 4, 1: [0.7] * 4}, {0: [0.3] * 4}],
    "totals": [{0: Total(4, 1.2), 1: [0.4, 0.6]}, {0: Total(2, 0.7)}, {1: [0.5, 0.1, 0.9]}],
    "coins": [{0: [0.0, 1.0, 0.0, 0.0], 1: [1.0, 1.0]}, {0: [0.0, 0.0], 1: [1.0, 0.0, 1.0]}],
}


@pytest.mark.parametrize("w", [1.0, 0.5])
@pytest.mark.parametrize("name", REPORTS)
def test_draws_are_those_of_the_slow_reference(name: str, w: float) -> None:
    policy, twin = BootstrapCTS(w), BeliefTwin(3, w=w)
    state = policy.start(ARMS, None, 1)
    for reports in REPORTS[name]:
        twin.tell(reports)
        for arm, report in reports.items():  # arm by arm: a feedback has units or totals
            if isinstance(report, Total):
                count, total = np.zeros((1, 3), dtype=np.int64), np.zeros((1, 3))
                count[0, arm], total[0, arm] = report
                feedback = Feedback(count, total)
            else:
                units = [list(report) if i == arm else [] for i in range(3)]
                feedback = feedback_of(units)
            policy.absorb(ARMS, state, feedback, Streams.spawn(0, POLICY, [0]))
    theta = drawn(policy, state)
    rng = np.random.default_rng(1)
    for arm in (0, 1):
        slow = twin.draw(arm, rng, TRIALS)
        assert stats.ks_2samp(theta[:, arm], slow).pvalue > FAILS
    unseen = stats.beta(w, 4 * w)
    assert stats.kstest(theta[:, 2], unseen.cdf).pvalue > FAILS


def test_losses_of_0_and_1_have_the_posterior_of_gencts() -> None:
    policy, state = BootstrapCTS(), BootstrapCTS().start(ARMS, None, 1)
    rng = np.random.default_rng(3)
    heads, seen = np.zeros(3), np.zeros(3)
    for _ in range(6):
        coins = [(rng.random(1) < p).astype(float).tolist() for p in (0.2, 0.5, 0.9)]
        heads, seen = heads + [sum(one) for one in coins], seen + 1
        policy.absorb(ARMS, state, feedback_of(coins), Streams.spawn(0, POLICY, [0]))
    theta = drawn(policy, state)
    for arm in range(3):
        exact = stats.beta(1 + heads[arm], 1 + seen[arm] - heads[arm])
        assert stats.kstest(theta[:, arm], exact.cdf).pvalue > FAILS


def test_an_arm_never_seen_is_optimistic_in_both_senses() -> None:
    rewards = Budget(12, [4, 4, 4], at_most=True, sense="max")
    for actions, exact in ((ARMS, stats.beta(1, 4)), (rewards, stats.beta(4, 1))):
        theta = drawn(BootstrapCTS(), BootstrapCTS().start(actions, None, 1), actions)
        assert stats.kstest(theta[:, 0], exact.cdf).pvalue > FAILS


@given(st.integers(0, 2**32 - 1))
def test_draws_stay_in_the_range_of_the_arm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = BootstrapCTS().start(ARMS, None, 1)
    upper = rng.choice([1e-6, 0.2, 1.0], 3)
    for _ in range(rng.integers(0, 4)):
        losses = [(top * rng.choice([0.0, 0.5, 1.0], 3)).tolist() for top in upper]
        BootstrapCTS().absorb(ARMS, state, feedback_of(losses), Streams.spawn(0, POLICY, [0]))
    rng_of = Streams.spawn(int(rng.integers(9)), POLICY, range(50))
    theta = BootstrapCTS().index(ARMS.bounded(upper), repeated(state, 50), rng_of)
    assert theta is not None
    assert ((theta >= 0) & (theta <= upper)).all()


@pytest.mark.parametrize("memory", [{"discount": 0.7}, {"window": 3}], ids=repr)
def test_forgetting_gives_the_moments_of_the_slow_reference(memory: dict[str, float]) -> None:
    policy = BootstrapCTS(**memory)  # type: ignore[arg-type]
    twin = BeliefTwin(3, **memory)  # type: ignore[arg-type]
    state, rng = policy.start(ARMS, None, 1), np.random.default_rng(7)
    for _ in range(8):
        losses = [rng.random(k).tolist() for k in rng.integers(0, 4, 3)]
        feedback = feedback_of(losses)
        policy.update(ARMS, state, Play(feedback.count), feedback, Streams.spawn(0, POLICY, [0]))
        twin.tell({i: units for i, units in enumerate(losses) if units})
        for i in range(3):
            found, slow = state["moments"][0, i], twin.sums(i)
            assert found[[N, B, W]] == pytest.approx([slow.n, slow.B, slow.W], abs=1e-12)


def test_rounds_without_an_arm_pass_for_it_as_well() -> None:
    for policy in (BootstrapCTS(discount=0.5), BootstrapCTS(window=2)):
        state, rng = policy.start(ARMS, None, 1), Streams.spawn(0, POLICY, [0])
        told = feedback_of([[0.5, 0.7], [0.1], []])
        policy.update(ARMS, state, Play(told.count), told, rng)
        part = {name: array.copy() for name, array in state.items()}
        policy.absent(part, 1, 0.0)
        nothing = feedback_of([[], [], []])
        policy.update(ARMS, state, Play(nothing.count), nothing, rng)
        assert part["moments"] == pytest.approx(state["moments"], abs=1e-15)


def test_totals_are_learned_as_totals() -> None:
    state = BootstrapCTS().start(ARMS, None, 1)
    told = Feedback(np.array([[4, 0, 0]]), np.array([[1.0, 0.0, 0.0]]))
    BootstrapCTS().absorb(ARMS, state, told, Streams.spawn(0, POLICY, [0]))
    assert state["moments"][0, 0, [N, W]].tolist() == [4.0, 0.0]


def test_it_plays_the_cheap_arm_that_a_known_range_leaves() -> None:
    """Arm 1 costs at most 30, the others are seen at 200: no draw of arm 1 is above 30."""
    plans = Budget(4, [4, 4, 4])
    learner = Learner(plans, seed=1, loss_range={"arm 1": (20, 30), "*": (0, 250)})
    for _ in range(30):
        learner.learn([0, 2, 2], [[], [200.0, 210.0], [190.0, 205.0]])
    plays = [learner.ask() for _ in range(40)]
    assert all(play.plan["arm 1"] == 4 for play in plays)


def test_one_trial_by_hand_takes_a_generator_of_numpy() -> None:
    policy, state = BootstrapCTS(), BootstrapCTS().start(ARMS, None, 1)
    one, other = (policy.choose(ARMS, state, np.random.default_rng(3)) for _ in range(2))
    assert (one.action == other.action).all()


@pytest.mark.parametrize("w", [0, -1, np.inf, np.nan, "1", True, None], ids=repr)
def test_bad_w_is_refused(w: object) -> None:
    with refused("w: expected a positive number"):
        BootstrapCTS(w)  # type: ignore[arg-type]


@pytest.mark.slow
def test_it_beats_gencts_on_bills_and_equals_it_on_coins() -> None:
    """200 trials; a right program fails with a probability below 1 in 1,000."""
    means = np.random.default_rng(2).uniform(0.2, 0.6, 10)
    policies = {"coin": GenCTS(), "bill": BootstrapCTS()}
    plans = Budget(5, [1] * 10)
    bills = Stochastic(Uniform(means - 0.05, means + 0.05))
    found = simulate(plans, bills, policies, horizon=300, trials=200, seed=4)
    assert found.final("bill").mean() < found.final("coin").mean() / 2
    coins = simulate(plans, Stochastic(Bernoulli(means)), policies, 300, 200, seed=4)
    difference = coins.final("bill") - coins.final("coin")
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    assert abs(difference.mean()) < 4 * error + 0.1 * coins.final("coin").mean()
