"""What policies do in a round, compiled, against the formulas written down once more in numpy."""

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from multiplay import LBINF, Budget, CombUCB, GenCTS, GenLBINFV, Hybrid, InvalidInput, Play
from multiplay.actions import ActionSet, limited
from multiplay.feedback import Feedback
from multiplay.kernels.rows import finite
from multiplay.random import POLICY, Streams
from multiplay.types import Arrays, FloatArray

TRIALS, T = 4, 1000
CAPS = [1, 4, 2, 3, 5]
EXACT: dict[str, Any] = {"rtol": 1e-13, "atol": 1e-13}


def sets(rng: np.random.Generator) -> dict[str, ActionSet]:
    plain, rewards = Budget(6, CAPS), Budget(6, CAPS, sense="max")
    most = np.array([1, 0, 2, 3, 5])  # the second arm is closed
    return {
        "losses": plain,
        "rewards": rewards,
        "offset": plain.shifted(rng.uniform(0, 0.5, 5)),
        "rewards with offset": rewards.shifted(rng.uniform(0, 0.5, 5)),
        "closed": limited(plain, most, np.full(5, -1)),
    }


def some_state(policy: Any, actions: ActionSet, rng: np.random.Generator) -> Arrays:
    """A state as after many rounds."""
    state: Arrays = policy.start(actions, T, TRIALS)
    shape = (TRIALS, actions.d)
    for name, high in (("L", 50.0), ("samples", 90.0), ("sum", 40.0), ("q", 1.0), ("count", 90.0)):
        if name in state:
            state[name] = rng.uniform(0.1, high, shape)
    if "beta2" in state:
        state["beta2"] = rng.uniform(1.0, 3.0, shape)
    if "t" in state:
        state["t"] = state["t"] + rng.integers(1, 500, TRIALS)
    if "played" in state:
        state["played"] = rng.uniform(20.0, 90.0, shape)
        state["seen"] = state["played"] * rng.uniform(0.3, 1.0, shape)
    return state


def some_feedback(play: Play, partial: bool, rng: np.random.Generator) -> Feedback:
    a = play.action
    seen = rng.integers(0, a + 1) if partial else None
    total = rng.uniform(0, 1, a.shape) * (a if seen is None else seen)
    return Feedback(a, total, seen=seen)


def copied(state: Arrays) -> Arrays:
    return {name: array.copy() for name, array in state.items()}


def errors(before: Arrays, feedback: Feedback, belief: FloatArray) -> FloatArray:
    """g_i (k_i - belief_i), with g_i = seen_i / (p_i a_i); 0 where nothing was seen."""
    played, known = before["played"], before["seen"]
    pool = (1 + known.sum(axis=1, keepdims=True)) / (1 + played.sum(axis=1, keepdims=True))
    p = np.clip((20 * pool + known) / (20 + played), 0.05, 1.0)
    g = feedback.seen / (p * np.maximum(feedback.count, 1))
    k = feedback.total / np.maximum(feedback.seen, 1)
    error: FloatArray = g * (k - belief)
    return error


def estimated(actions: ActionSet, L: FloatArray, memo: Arrays, error: FloatArray) -> FloatArray:
    """Lhat_i + q_i + (1 / x_i) error_i + offset_i, where the error is that of all units played."""
    x, q = memo["x"], memo["q"]
    ratio = np.where(x > 0, 1.0 / np.where(x > 0, x, 1.0), 0.0)
    offset = 0.0 if actions.offset is None else actions.offset
    new: FloatArray = L + q + ratio * error + offset
    return new


@pytest.mark.parametrize("partial", [False, True], ids=["all seen", "some missing"])
@pytest.mark.parametrize("kind", ["losses", "rewards", "offset", "rewards with offset", "closed"])
@pytest.mark.parametrize(
    "policy",
    [
        GenLBINFV(horizon=T),
        GenLBINFV(horizon=T, prediction="gd", eta=0.3),
        GenLBINFV(anytime=True),
        LBINF(horizon=T),
    ],
    ids=["ls", "gd", "anytime", "LBINF"],
)
def test_update_with_a_log_barrier(policy: Any, kind: str, partial: bool) -> None:
    rng = np.random.default_rng(5)
    actions = sets(rng)[kind]
    before = some_state(policy, actions, rng)
    state, stream = copied(before), Streams.spawn(0, POLICY, range(TRIALS))
    play = policy.choose(actions, state, stream)
    feedback = some_feedback(play, partial, rng)
    state["q"] = before["q"] = rng.uniform(0, 1, before["q"].shape)  # the play is a late one
    before = copied(before)
    policy.update(actions, state, play, feedback, stream)

    memo, seen = play.memo, feedback.seen >= 1
    k = feedback.total / np.maximum(feedback.seen, 1)
    error = errors(before, feedback, memo["q"])
    new = estimated(actions, before["L"], memo, feedback.count * error)
    assert np.allclose(state["L"], new, **EXACT)
    g = (memo["g"] if "g" in memo else before["g"])[:, None]
    n = np.maximum(actions.n, 1)
    u = np.where(memo["x"] > 0, memo["x"] / n, 1.0)
    alpha = (feedback.count / n) ** 2 * error**2
    alpha *= np.minimum(1.0, 2 * (memo["rest"] / n) / (u**2 * g))
    assert np.allclose(state["beta2"], before["beta2"] + alpha / g, **EXACT)
    if "sum" in state:
        samples, total = before["samples"] + feedback.seen, before["sum"] + feedback.total
        assert np.allclose(state["q"], (0.5 + total) / (1 + samples), **EXACT)
    else:
        moved = before["q"] + policy.eta * np.where(seen, k - before["q"], 0.0)
        assert np.allclose(state["q"], moved, **EXACT)


@pytest.mark.parametrize("partial", [False, True], ids=["all seen", "some missing"])
@pytest.mark.parametrize("kind", ["losses", "rewards", "offset", "rewards with offset", "closed"])
def test_update_of_hybrid(kind: str, partial: bool) -> None:
    rng = np.random.default_rng(6)
    actions, policy = sets(rng)[kind], Hybrid()
    before = some_state(policy, actions, rng)
    state, stream = copied(before), Streams.spawn(0, POLICY, range(TRIALS))
    play = policy.choose(actions, state, stream)
    feedback = some_feedback(play, partial, rng)
    policy.update(actions, state, play, feedback, stream)

    q = 0.0 if actions.sense == "min" else 1.0
    believed = (0.5 + before["sum"]) / (1 + before["count"])
    error = believed + errors(before, feedback, believed) - q
    L = estimated(actions, before["L"], play.memo, feedback.count * error)
    L += np.where(actions.n == 0, believed - q, 0.0)
    assert (play.memo["q"] == q).all()
    assert np.allclose(state["L"], L, **EXACT)
    assert (state["t"] == before["t"] + 1).all()
    assert np.allclose(state["sum"], before["sum"] + feedback.total, **EXACT)
    assert (state["count"] == before["count"] + feedback.seen).all()


@pytest.mark.parametrize("kind", ["losses", "rewards", "offset", "rewards with offset"])
def test_what_is_minimised(kind: str) -> None:
    rng = np.random.default_rng(7)
    actions = sets(rng)[kind]
    sign = 1.0 if actions.sense == "min" else -1.0
    offset = 0.0 if actions.offset is None else actions.offset

    ls = GenLBINFV(horizon=T)
    state = some_state(ls, actions, rng)
    beta = ls.beta(actions, state)
    assert np.allclose(beta**2, state["beta2"], **EXACT)
    whole = sign * (state["q"] + state["L"] + offset)
    assert np.allclose(ls.costs(actions, state, beta), whole, **EXACT)

    older = LBINF(horizon=T)
    whole -= beta * (1 + state["g"][:, None])
    assert np.allclose(older.costs(actions, state, beta), whole, **EXACT)

    hybrid = Hybrid(gamma=0.7)
    state = some_state(hybrid, actions, rng)
    beta = hybrid.beta(actions, state)
    assert np.allclose(beta, np.sqrt(state["t"])[:, None] / 2 * np.ones(actions.d), **EXACT)
    assert np.allclose(hybrid.costs(actions, state, beta), sign * state["L"] - 0.7 * beta, **EXACT)


@pytest.mark.parametrize(
    "policy", [CombUCB(), CombUCB(discount=0.9), CombUCB(alpha=1, window=40)], ids=repr
)
@pytest.mark.parametrize("kind", ["losses", "rewards"])
def test_bounds_of_combucb(policy: CombUCB, kind: str) -> None:
    rng = np.random.default_rng(8)
    actions = sets(rng)[kind]
    state = some_state(policy, actions, rng)
    state["count"][0, 0] = 0.05  # counts as unseen
    t = state["t"].astype(float)
    if policy.discount is not None:
        t = np.array([sum(policy.discount**k for k in range(int(rounds))) for rounds in t])
    if policy.window is not None:
        t = np.minimum(t, policy.window)
    N = np.where(state["count"] < 0.1, 1.0, state["count"])
    width = np.sqrt(policy.alpha * np.log(t)[:, None] / N)
    sign = 1.0 if kind == "losses" else -1.0
    expected = np.clip(state["sum"] / N - sign * width, 0, 1)
    assert np.allclose(policy.bounds(actions, state), expected, **EXACT)
    assert np.any((expected > 0) & (expected < 1))


def test_coins_of_gencts() -> None:
    rng = np.random.default_rng(9)
    actions, policy = Budget(6, CAPS), GenCTS()
    state = policy.start(actions, None, TRIALS)
    seen = rng.integers(0, 4, (TRIALS, 5))
    feedback = Feedback(seen + 1, seen * rng.uniform(0, 1, seen.shape), seen=seen)
    policy.absorb(actions, state, feedback, Streams.spawn(0, POLICY, range(TRIALS)))
    heads = feedback.flip(Streams.spawn(0, POLICY, range(TRIALS)))
    assert (state["p"] == 1 + heads).all()
    assert (state["q"] == 1 + seen - heads).all()


@pytest.mark.parametrize("policy", [GenLBINFV(horizon=T), LBINF(horizon=T), Hybrid(), CombUCB()])
def test_the_total_of_a_round_is_refused(policy: Any) -> None:
    actions, rng = Budget(6, CAPS), Streams.spawn(0, POLICY, range(TRIALS))
    state = policy.start(actions, T, TRIALS)
    play = policy.choose(actions, state, rng)
    together = Feedback(play.action, np.ones((TRIALS, 1)))
    with pytest.raises(InvalidInput, match="total of each arm"):
        policy.update(actions, state, play, together, rng)


@pytest.mark.parametrize("policy", [GenLBINFV(horizon=T), LBINF(horizon=T), Hybrid(), CombUCB()])
def test_feedback_of_other_trials_is_refused(policy: Any) -> None:
    actions, rng = Budget(6, CAPS), Streams.spawn(0, POLICY, range(TRIALS))
    state = policy.start(actions, T, TRIALS)
    play = policy.choose(actions, state, rng)
    fewer = Feedback(play.action[:2], play.action[:2] / 2)
    with pytest.raises(ValueError, match="shape"):
        policy.update(actions, state, play, fewer, rng)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_best_and_argmin_refuse_what_is_not_finite(wrong: float) -> None:
    actions, rows = Budget(6, CAPS), np.full((3, 5), 0.5)
    assert finite(rows)
    assert finite(np.full((2, 2), 1e308))
    rows[2, 4] = wrong
    assert not finite(rows)
    for ask, argument in ((actions.best, "means"), (actions.argmin, "costs")):
        with pytest.raises(InvalidInput, match=f"{argument}.*finite"):
            ask(rows)


def test_the_layout_of_costs_makes_no_difference() -> None:
    actions = Budget(6, CAPS)
    costs = np.random.default_rng(3).uniform(-1, 1, (3, 5))
    expected = actions.argmin(costs)
    still = costs.copy()
    still.flags.writeable = False
    for same in (np.asfortranarray(costs), still, costs.tolist(), costs.astype(object).tolist()):
        assert (actions.argmin(same) == expected).all()
        assert (actions.best(same) == expected).all()
    assert (actions.argmin(costs[None]) == expected[None]).all()
    assert (actions.best(costs[1]) == expected[1]).all()


def test_a_play_cannot_be_changed() -> None:
    play, other = Play(np.ones((1, 2), dtype=np.int64)), Play(np.ones((1, 2), dtype=np.int64))
    assert play.memo == play.cache == {}
    assert play.memo is not other.memo
    with pytest.raises(FrozenInstanceError):
        play.action = other.action  # type: ignore[misc]
