"""Weights of reports: the chance that a unit is reported, learned arm by arm."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import multiplay as mp
from multiplay.feedback import Feedback
from multiplay.policies.missing import COUNTS, report_counts, report_weights, stop_counting
from multiplay.random import POLICY, Streams

PLANS = mp.Transport([1, 4, 5], [4, 6])
WHO_WEIGHS = [
    mp.GenLBINFV(),
    mp.GenLBINFV(prediction="gd"),
    mp.LBINF(horizon=1000),
    mp.Hybrid(),
    mp.GenAdaINF(),
]


def report(played: list[int], seen: list[int]) -> Feedback:
    count = np.array([played])
    return Feedback(count, np.zeros(count.shape), seen=np.array([seen]))


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1)), min_size=3, max_size=30))
def test_weights_equal_a_slow_twin(units: list[tuple[int, float]]) -> None:
    rounds = [units[k : k + 3] for k in range(0, len(units) - 2, 3)]
    state, played, seen = report_counts(1, 3), [0] * 3, [0] * 3
    for told in rounds:
        a = [n for n, _ in told]
        shown = [int(n * share) for n, share in told]
        g = report_weights(state, report(a, shown))[0]
        pool = (1 + sum(seen)) / (1 + sum(played))
        for i in range(3):
            p = min(max((20 * pool + seen[i]) / (20 + played[i]), 0.05), 1)
            assert g[i] == pytest.approx(shown[i] / (p * a[i]) if a[i] else 1, rel=1e-12)
        played = [one + more for one, more in zip(played, a, strict=True)]
        seen = [one + more for one, more in zip(seen, shown, strict=True)]


@given(st.lists(st.lists(st.integers(0, 10**6), min_size=4, max_size=4), min_size=1, max_size=9))
def test_weights_are_exactly_one_while_all_is_seen(rounds: list[list[int]]) -> None:
    state = report_counts(1, 4)
    for played in rounds:
        assert (report_weights(state, report(played, played)) == 1).all()


def test_a_state_without_counts_weighs_nothing() -> None:
    state = report_counts(1, 3)
    stop_counting(state)
    assert report_weights(state, report([4, 2, 0], [1, 0, 0])).tolist() == [[1, 0, 1]]
    assert not state


@pytest.mark.parametrize("whole_arms", [False, True])
@pytest.mark.parametrize("policy", WHO_WEIGHS, ids=repr)
def test_estimates_are_unbiased(policy: mp.Policy, whole_arms: bool) -> None:
    """The mean of what is added to L, over plays and reports, is the mean loss of a unit.

    The losses have changed, so that predictions are wrong; half of the units are missing, each by
    itself or all of an arm together; the chance is known from the past.
    """
    trials, rng = 4000, np.random.default_rng(7)
    before, truth = (
        np.array([0.1, 0.4, 0.2, 0.3, 0.3, 0.2]),
        np.array([0.9, 0.6, 0.8, 0.7, 0.7, 0.8]),
    )
    state = policy.start(PLANS, None, trials)
    streams = Streams.spawn(0, POLICY, range(trials))
    known = np.full((trials, PLANS.d), 50)
    policy.absorb(PLANS, state, Feedback(known, known * before), streams)
    for name in COUNTS:
        state[name] += 1e12 if name == "played" else 5e11
    play = policy.choose(PLANS, state, streams)
    count, L = play.action, state["L"].copy()
    seen = count * rng.integers(0, 2, count.shape) if whole_arms else rng.binomial(count, 0.5)
    total = rng.binomial(seen, truth).astype(float)
    policy.update(PLANS, state, play, Feedback(count, total, seen=seen), streams)
    e = state["L"] - L
    z = (e.mean(axis=0) - truth) / (e.std(axis=0, ddof=1) / trials**0.5)
    assert abs(z).max() < 4, z


@pytest.mark.parametrize("policy", [*WHO_WEIGHS, mp.FPLIX()], ids=repr)
def test_counts_belong_to_the_names_of_arms(policy: mp.Policy, tmp_path: Path) -> None:
    """Arms of other sets keep their counts, and a saved learner continues with the same bits."""
    first = mp.Transport([2, 2], [2, 2], names=(["a", "b"], ["x", "y"]))
    other = mp.Transport([2, 2], [2, 2], names=(["b", "c"], ["x", "y"]))
    learner = mp.Learner(first, policy, seed=1, reports=mp.Reports(missing="ignore"))
    for day in range(8):
        play = learner.ask(other if day % 2 else first)
        learner.tell(play.id, {arm: [0.5] for arm, units in play.plan.items() if units})
    arrays = learner.engine.state.arms.arrays
    assert arrays["played"].shape == (1, 6)
    assert arrays["played"].sum() == 8 * 4
    assert arrays["seen"].sum() == learner.arms()["seen"].sum()
    learner.save(tmp_path / "saved.npz")
    again = mp.Learner.load(tmp_path / "saved.npz")
    plays = [
        (one.ask(first).action.tolist(), one.ask(other).action.tolist()) for one in (learner, again)
    ]
    assert plays[0] == plays[1]
