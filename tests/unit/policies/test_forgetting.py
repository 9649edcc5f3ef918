"""Discounts and windows: against a slow twin that knows the whole history."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import refused

from multiplay import (
    BGCTS,
    COSV,
    ESCB,
    Alternating,
    Bernoulli,
    Budget,
    CombUCB,
    Coverage,
    Duplicated,
    EpsilonGreedy,
    Feedback,
    FollowTheLeader,
    GaussianCTS,
    GenCTS,
    Knapsack,
    Play,
    Stochastic,
    Transport,
    simulate,
)
from multiplay.policies.index import IndexPolicy
from multiplay.posteriors.averages import FADED, Normal
from multiplay.posteriors.base import Additive
from multiplay.random import POLICY, Rng, Streams
from multiplay.testing import check_policy
from multiplay.types import Arrays, FloatArray, IntArray

D = 4
ARMS = Budget(3, [2] * D)
KINDS: list[IndexPolicy] = [
    *(GenCTS(), CombUCB(), GaussianCTS()),
    *(FollowTheLeader(), EpsilonGreedy(), BGCTS(), COSV()),
]
WAYS: list[dict[str, Any]] = [{"discount": 0.8}, {"discount": 0.99}, {"window": 1}, {"window": 3}]


def names_of(ways: Any) -> str:
    return repr(ways)


def streams(trials: int, seed: int = 0) -> Rng:
    return Streams.spawn(seed, POLICY, range(trials))


@dataclass
class Twin:
    """Every sample with the number of rounds told when it came; sums are made from all of them."""

    policy: Any
    told: int = 0
    samples: list[tuple[int, dict[str, FloatArray]]] = field(default_factory=list)

    @property
    def sums_of(self) -> Additive:
        posterior: Additive = self.policy.posterior
        return posterior

    def add(self, gains: dict[str, FloatArray]) -> None:
        self.samples.append((self.told, gains))

    def learned(self) -> dict[str, FloatArray]:
        sums = {name: np.zeros((2, D)) for name in self.sums_of.names}
        for when, gains in self.samples:
            age = self.told - when
            weight = 1.0
            if self.policy.discount is not None:
                weight = self.policy.discount**age
            if self.policy.window is not None:
                weight = float(age < self.policy.window)
            for name, gain in gains.items():
                sums[name] += weight * gain
        return {name: self.sums_of.prior + total for name, total in sums.items()}


def gains_of(policy: Any, feedback: Feedback, rng: Rng) -> dict[str, FloatArray]:
    if isinstance(policy, GenCTS):
        heads = feedback.flip(rng).astype(float)
        return {"p": heads, "q": feedback.seen - heads}
    units, total = feedback.seen.astype(float), feedback.total
    found = {"count": units, "sum": total}
    if isinstance(policy, COSV):
        found |= {"products": total**2, "pairs": units**2, "squares": units**4}
    return found


def feedback_of(rng: np.random.Generator, arms: IntArray | None = None) -> Feedback:
    """Random samples of some arms, in two trials; some units are missing."""
    count = rng.integers(0, 3, (2, D))
    if arms is not None:
        count = count[:, arms]
    seen = np.minimum(count, rng.integers(0, 3, count.shape))
    return Feedback(count, rng.random(count.shape) * seen, seen=seen)


def cut(state: Arrays, arms: IntArray) -> Arrays:
    return {k: v[:, arms] if v.ndim >= 2 else v.copy() for k, v in state.items()}


def put_back(state: Arrays, arms: IntArray, part: Arrays, shared: bool) -> None:
    for name, array in part.items():
        if array.ndim >= 2:
            state[name][:, arms] = array
        elif shared:
            state[name] = array


def wide(gains: dict[str, FloatArray], arms: IntArray) -> dict[str, FloatArray]:
    full = {name: np.zeros((2, D)) for name in gains}
    for name, gain in gains.items():
        full[name][:, arms] = gain
    return full


@pytest.mark.slow
@settings(deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    way=st.sampled_from(WAYS),
    days=st.lists(st.tuples(st.sampled_from(["tell", "own", "absorb"]), st.integers(1, 15))),
    seed=st.integers(0, 99),
)
def test_a_twin_with_the_whole_history_agrees(
    kind: Any, way: dict[str, Any], days: list[tuple[str, int]], seed: int
) -> None:
    """Rounds told with all arms and with some, and plans of others, in any order.

    Absent arms are let pass before the others are told, on a cut of the state whose shared entries
    are thrown away.
    """
    policy = replace(kind, **way)
    twin, losses = Twin(policy), np.random.default_rng(seed)
    rng, same = streams(2), streams(2)
    state = policy.start(ARMS, None, 2)
    for verb, subset in days:
        today = np.flatnonzero([subset >> i & 1 for i in range(D)])
        if verb == "own":
            today = np.arange(D)
        away = np.setdiff1d(np.arange(D), today)
        actions = Budget(1, [2] * len(today))
        told = feedback_of(losses, today)
        part, rest = cut(state, today), cut(state, away)
        if verb == "absorb":
            policy.absorb(actions, part, told, rng)
        else:
            policy.absent(rest, 1, 0.0)
            policy.update(actions, part, Play(told.count), told, rng)
            twin.told += 1
        put_back(state, away, rest, shared=False)
        put_back(state, today, part, shared=True)
        twin.add(wide(gains_of(policy, told, same), today))
        for name, expected in twin.learned().items():
            np.testing.assert_allclose(state[name], expected, rtol=1e-12, atol=1e-12)
    if policy.window is not None:
        assert (state["t"] == 1 + twin.told).all()
        assert state[f"recent_{policy.posterior.names[0]}"].shape == (2, D, policy.window)


@pytest.mark.parametrize("way", WAYS, ids=names_of)
@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_many_absent_rounds_at_once_are_as_many_single_ones(kind: Any, way: Any) -> None:
    policy = replace(kind, **way)
    losses = np.random.default_rng(0)
    state = policy.start(ARMS, None, 2)
    for _ in range(5):
        told = feedback_of(losses)
        policy.update(ARMS, state, Play(told.count), told, streams(2))
    for rounds in (2, 7):
        slow = {name: array.copy() for name, array in state.items()}
        fast = {name: array.copy() for name, array in state.items()}
        policy.absent(fast, rounds, 0.0)
        for _ in range(rounds):
            policy.absent(slow, 1, 0.0)
            if "t" in slow:
                slow["t"] += 1
        for name in policy.posterior.names:
            np.testing.assert_allclose(fast[name], slow[name], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_new_arms_know_nothing_whatever_passed_before(kind: Any) -> None:
    for way in WAYS:
        policy = replace(kind, **way)
        state = policy.start(ARMS, None, 2)
        before = {name: array.copy() for name, array in state.items()}
        policy.absent(state, 1000, 0.0)
        for name, array in before.items():
            np.testing.assert_array_equal(state[name], array)


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_a_window_longer_than_the_horizon_changes_nothing(kind: Any) -> None:
    """Bit for bit: nothing ever leaves."""
    world = Stochastic(Bernoulli(np.linspace(0.2, 0.8, D)))
    policies = {"all": kind, "window": replace(kind, window=60)}
    result = simulate(ARMS, world, policies, 60, trials=5, seed=1)
    all_, window = (result.regret.sel(policy=name).values for name in policies)
    np.testing.assert_array_equal(all_, window)


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_without_forgetting_the_state_is_as_ever(kind: Any) -> None:
    keys = {"p", "q"} if isinstance(kind, GenCTS) else {"t", "count", "sum"}
    keys |= {"products", "pairs", "squares"} if isinstance(kind, COSV) else set()
    assert set(kind.start(ARMS, None, 1)) == keys
    assert "discount" not in repr(kind)
    assert "discount=0.9" in repr(replace(kind, discount=0.9))


@pytest.mark.parametrize("way", WAYS, ids=names_of)
@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_contracts(kind: Any, way: Any) -> None:
    check_policy(replace(kind, **way), Transport([1, 4, 5], [4, 6]))
    check_policy(replace(kind, **way), Knapsack([3, 4, 5], 10))


def test_duplicates_and_other_objectives() -> None:
    check_policy(Duplicated(GenCTS(discount=0.9)), Transport([1, 2], [2, 1]))
    check_policy(Duplicated(GenCTS(window=3)), Transport([1, 2], [2, 1]))
    for kind in KINDS:
        check_policy(replace(kind, discount=0.9), Coverage.example())  # type: ignore[type-var]


@pytest.mark.parametrize("kind", KINDS[1:], ids=repr)
def test_what_left_the_memory_is_unseen_again(kind: Any) -> None:
    """An arm that was not seen for long is played again, by whatever is forgotten."""
    count = np.array([[1, 1, 1, 0]])
    for way, rounds in (({"window": 5}, 5), ({"discount": 0.5}, 4)):
        policy = replace(kind, **way)
        state = policy.start(ARMS, None, 1)
        first = Feedback(np.array([[0, 0, 0, 1]]), np.array([[0.0, 0.0, 0.0, 1.0]]))
        policy.update(ARMS, state, Play(first.count), first, streams(1))
        for _ in range(rounds - 1):
            told = Feedback(count, 0.1 * count)
            policy.update(ARMS, state, Play(count), told, streams(1))
            assert state["count"][0, 3] >= FADED
        policy.update(ARMS, state, Play(count), Feedback(count, 0.1 * count), streams(1))
        assert state["count"][0, 3] < FADED
        assert policy.choose(ARMS, state, streams(1)).action[0, 3] >= 1
        assert policy.believed(state)[0, 3] == pytest.approx(0.5, abs=0.05)


def test_bounds_of_combucb_count_the_rounds_that_are_remembered() -> None:
    state = {
        "t": np.array([50]),
        "count": np.array([[20.0, 0.5, 40.0, 0.0]]),
        "sum": np.array([[18.0, 0.4, 39.0, 0.0]]),
    }
    for way, rounds in (
        ({}, 50.0),
        ({"window": 30}, 30.0),
        ({"window": 70}, 50.0),
        ({"discount": 0.9}, sum(0.9**k for k in range(50))),
    ):
        bounds = CombUCB(alpha=0.3, **way).bounds(ARMS, state)
        width = np.sqrt(0.3 * np.log(rounds) / np.array([20, 0.5, 40, 1]))
        mean = np.array([0.9, 0.8, 39 / 40, 0])
        np.testing.assert_allclose(bounds[0], np.clip(mean - width, 0, 1), rtol=1e-12)


def test_the_normal_draw_grows_wider_as_samples_fade() -> None:
    policy = GaussianCTS(discount=0.9)
    state = {"count": np.array([[4.0, 0.25]]), "sum": np.array([[2.0, 0.125]])}
    np.testing.assert_allclose(Normal().deviation(ARMS, state), [[0.25, 1.0]])
    theta = policy.index(Budget(1, [1, 1]), state, streams(1))
    assert theta is not None
    assert theta.shape == (1, 2)


def test_rounding_leaves_nothing_behind() -> None:
    """After the window of 3 only emptiness: exactly, for losses that are no round numbers."""
    policy, rng = CombUCB(window=3), np.random.default_rng(0)
    state = policy.start(ARMS, None, 2)
    for _ in range(200):
        told = feedback_of(rng)
        policy.update(ARMS, state, Play(told.count), told, streams(2))
    policy.absent(state, 3, 0.0)
    assert (state["sum"] == 0).all()
    assert (state["count"] == 0).all()


@pytest.mark.parametrize("kind", [GenCTS(), CombUCB(alpha=0.1), GaussianCTS()], ids=repr)
def test_forgetting_follows_a_flip(kind: Any) -> None:
    """Two arms change places after 600 of 900 rounds: what forgets comes back at half the price.

    (CombUCB with its usual alpha explores so much that it comes back in any case.)
    """
    means = np.where(np.arange(900)[:, None] < 600, [0.1, 0.9], [0.9, 0.1])
    arms, rng = Budget(1, [1, 1]), np.random.default_rng(0)
    lost = []
    for policy in (kind, replace(kind, discount=0.98), replace(kind, window=100)):
        stream, total = streams(20), 0.0
        state = policy.start(arms, None, 20)
        for t in range(900):
            play = policy.choose(arms, state, stream)
            units = (rng.random((20, 2)) < means[t]) * play.action
            policy.update(arms, state, play, Feedback(play.action, units * 1.0), stream)
            total += float((play.action * (means[t] - 0.1)).sum()) / 20
        lost.append(total)
    assert max(lost[1:]) < lost[0] / 2


@pytest.mark.parametrize("kind", [GenCTS, CombUCB, GaussianCTS])
def test_what_cannot_be_forgotten_is_refused(kind: Any) -> None:
    for discount in (0, 1, -0.5, 1.5, "slowly", float("nan"), True):
        with refused("discount"):
            kind(discount=discount)
    for window in (0, -1, 2.5, "week", True, 10**9):
        with refused("window"):
            kind(window=window)
    with refused("window"):
        kind(discount=0.9, window=10)
    with pytest.raises(TypeError):
        ESCB(discount=0.9)  # type: ignore[call-arg]


def test_forgetting_in_a_world_of_jumps() -> None:
    world = Alternating(np.linspace(0.3, 0.7, D), shift=0.2, first=20, growth=1)
    policies = {f"{type(k).__name__} {w}": replace(k, **w) for k in KINDS for w in WAYS}  # type: ignore[type-var]
    result = simulate(ARMS, world, policies, 50, trials=3, seed=1)
    assert np.isfinite(result.regret.values).all()
