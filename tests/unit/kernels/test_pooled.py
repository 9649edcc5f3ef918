"""The pooled prior, noise and optimistic quantiles, compared with a slow twin."""

from itertools import pairwise

import numpy as np
import pooled_twin
import pytest
from in_kernel import in_kernel

from multiplay import Budget, Changes, Feedback, Play, PooledCTS
from multiplay.kernels import bootstrap, pooled, random
from multiplay.kernels.hypotheses import (
    CHANGES,
    H_B,
    H_MEAN,
    H_N,
    H_W,
    LAST_ROUND,
    LENGTH,
    LOOKS,
    MARKS,
    MOVES,
    OCTAVES,
    WEIGHT,
)
from multiplay.kernels.hypotheses import COLUMNS as HYPOTHESIS
from multiplay.kernels.moments import COLUMNS, KEPT, N
from multiplay.random import Streams, stream_words
from multiplay.types import Arrays, FloatArray

NOT_KEPT = np.zeros((1, 1, 0, KEPT))
NOTHING = (
    np.zeros((1, 1, 0, HYPOTHESIS)),
    np.zeros((1, 1, MARKS)),
    np.zeros((1, 1, OCTAVES, 3)),
)
NO_OTHERS = np.zeros((1, 0, COLUMNS))
LAWS = ("coins", "narrow", "constant", "skew", "zero", "totals")
normal_pair, uniform = in_kernel(random.normal_pair), in_kernel(random.uniform)


def moments_of(law: str, d: int, rounds: int, rng: np.random.Generator) -> FloatArray:
    """Return the moments of arms after some rounds, in which some arms were not played."""
    moments, means = np.zeros((1, d, COLUMNS)), rng.uniform(0.05, 0.9, d)
    for _ in range(rounds):
        seen = rng.integers(0, 6, (1, d)) * (rng.random((1, d)) < 0.5)
        first = np.concatenate([[0], np.cumsum(seen[0])])
        mean = np.repeat(means, seen[0])
        units = {
            "coins": (rng.random(len(mean)) < mean).astype(float),
            "narrow": np.clip(mean + 0.02 * rng.standard_normal(len(mean)), 0, 1),
            "skew": rng.beta(0.3 * mean, 0.3 * (1 - mean)),
            "zero": 0 * mean,
        }.get(law, mean)[None]
        total = np.array([[units[0, a:b].sum() for a, b in pairwise(first)]])
        reports = np.empty((1, d, KEPT))
        single = np.zeros((1, 0)) if law == "totals" else units
        bootstrap.summarise(seen, total, single, first, reports)
        bootstrap.learn(moments, NOT_KEPT, np.zeros(1, dtype=np.int64), reports)
    return moments


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("d", "rounds"), [(1, 0), (1, 30), (6, 1), (6, 40), (40, 3), (40, 25)])
def test_the_pooled_model_is_that_of_a_slow_twin(law: str, d: int, rounds: int) -> None:
    """The prior, the coins, the means and e, with arms that were not seen and shifted arms."""
    rng = np.random.default_rng((7, d, rounds))
    rows = moments_of(law, d, rounds, rng)[0]
    shift = rng.uniform(0, 0.1, d) if rounds % 2 else np.zeros(d)
    out = np.empty((d, pooled.POOLED))
    m, c0 = in_kernel(pooled.pool)(rows, shift, out)
    twin = pooled_twin.pooled(rows, shift)
    assert (m, c0) == pytest.approx((twin.m, twin.c0), rel=1e-9)
    for column, expected in zip(out.T, (twin.coins, twin.k, twin.e, rows[:, N]), strict=True):
        np.testing.assert_allclose(column, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_draw_is_an_optimistic_quantile(law: str, sign: float) -> None:
    """theta is the quantile at max(z (1 + u) / 2, xi), for the random numbers of its trial."""
    rng, d = np.random.default_rng(5), 12
    moments, t = moments_of(law, d, 15, rng), np.array([16])
    shift, upper = rng.uniform(0, 0.1, d), np.full(d, 0.8)
    words, theta = stream_words(Streams.spawn(3, 0, [0]), 1), np.empty((1, d))
    again = words.copy()
    pooled.draw(words, moments, *NOTHING, t, shift, upper, NO_OTHERS, 0.0, sign, theta)
    xi, z = normal_pair(again[0])[0], np.sqrt(np.log(26) / 2)
    level = np.array([max(z * (1 + uniform(again[0])) / 2, xi) for _ in range(d)])
    assert (words == again).all()
    twin = pooled_twin.pooled(moments[0], shift)
    expected = pooled_twin.optimistic(twin, moments[0, :, N], level, shift, upper, sign)
    np.testing.assert_allclose(theta[0], expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("law", ["narrow", "coins"])
def test_many_arms_never_seen_have_the_quantiles_of_the_prior(law: str, sign: float) -> None:
    """More than 64 arms without a report: their quantiles lie between tabulated ones."""
    rng, d = np.random.default_rng(6), 200
    rows = np.zeros((1, d, COLUMNS))
    rows[:, :30] = moments_of(law, 30, 20, rng)
    shift, upper = rng.uniform(0, 0.1, d), np.full(d, 0.8)
    twin = pooled_twin.pooled(rows[0], shift)
    words, theta = stream_words(Streams.spawn(3, 0, [0]), 1), np.empty((1, d))
    beyond = set()
    for t in np.repeat([2, 20, 900], 12):
        again = words.copy()
        pooled.draw(words, rows, *NOTHING, np.array([t]), shift, upper, NO_OTHERS, 0.0, sign, theta)
        xi, z = normal_pair(again[0])[0], np.sqrt(np.log(t + 10) / 2)
        level = np.array([max(z * (1 + uniform(again[0])) / 2, xi) for _ in range(d)])
        assert (words == again).all()
        expected = pooled_twin.optimistic(twin, rows[0, :, N], level, shift, upper, sign)
        np.testing.assert_allclose(theta[0], expected, rtol=1e-4, atol=1e-5)  # deviations are > .1
        beyond.add((xi > z, xi > z / 2))
    assert beyond == {(False, False), (False, True), (True, True)}


def test_nothing_seen_is_a_uniform_prior() -> None:
    """Without any report, the mean of an arm is uniform on [0, 1]."""
    m, c0 = in_kernel(pooled.pool)(
        np.zeros((4, COLUMNS)), np.zeros(4), np.empty((4, pooled.POOLED))
    )
    assert (m, m * c0) == pytest.approx((0.5, 1.0))


def test_arms_that_are_alike_teach_an_arm_that_was_not_seen() -> None:
    """The prior narrows around the arms that were seen."""
    rng = np.random.default_rng(0)
    rows = moments_of("narrow", 30, 40, rng)[0]
    rows[:, 4] = 0.4 + 0.01 * rng.standard_normal(30)
    rows[0] = 0.0
    m, c0 = in_kernel(pooled.pool)(rows, np.zeros(30), np.empty((30, pooled.POOLED)))
    assert abs(m - 0.4) < 0.02
    assert np.sqrt(m * (1 - m) / (c0 + 1)) < 0.12  # of 30 arms, one more at the middle


def follow(rounds: int, curiosity: float) -> tuple[Arrays, PooledCTS]:
    """Return the state after some rounds: one arm doubles, one is idle, one is never played."""
    plans, policy = (
        Budget(20, [4] * 7, at_most=True),
        PooledCTS(memory=Changes(), curiosity=curiosity),
    )
    state, rng = policy.start(plans, None, 1), np.random.default_rng((8, rounds))
    means = rng.uniform(0.15, 0.45, 7)
    for t in range(rounds):
        if t == rounds // 2:
            means[0] *= 2
        sizes = rng.integers(1, 5, 7)
        sizes[5], sizes[6] = sizes[5] * (t < rounds // 3), 0
        told = np.clip(np.repeat(means, sizes) * (1 + 0.1 * rng.standard_normal(sizes.sum())), 0, 1)
        first = np.append(0, np.cumsum(sizes))
        total = np.array([[told[a:b].sum() for a, b in pairwise(first)]])
        feedback = Feedback(sizes[None], total, told[None], first)
        policy.update(plans, state, Play(sizes[None]), feedback, Streams.spawn(0, 0, [0]))
    return state, policy


@pytest.mark.parametrize("curiosity", [0.0, 0.05])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("rounds", [3, 26, 90])
def test_with_changes_a_draw_has_one_hypothesis_of_each_arm(
    rounds: int, sign: float, curiosity: float
) -> None:
    """The heaviest hypotheses are pooled, one is picked by its weight, and idle arms may move."""
    state, _ = follow(rounds, curiosity)
    marks, looks, d = state["marks"][0], state["snaps"][0][:, :, [MOVES, LOOKS]], 7
    own = [
        [
            pooled_twin.Hypothesis(*row[[WEIGHT, H_N, H_MEAN, H_B, H_W]])
            for row in rows[: int(length)]
        ]
        for rows, length in zip(state["hypotheses"][0], marks[:, LENGTH], strict=True)
    ]
    if rounds == 90:
        assert marks[0, CHANGES] == 1.0
    assert max(map(len, own)) > 1
    shift, upper = np.linspace(0, 0.1, d), np.full(d, 0.8)
    rows = pooled_twin.of_heaviest(state["moments"][0], own, marks[:, CHANGES] > 0)
    twin, t = pooled_twin.pooled(rows, shift), int(state["t"][0])
    moves = [pooled_twin.squared_move(looks, curiosity, t - last) for last in marks[:, LAST_ROUND]]
    assert (moves[5] > moves[0]) == (curiosity > 0 or rounds == 90)
    words, theta = stream_words(Streams.spawn(3, 0, [0]), 1), np.empty((1, d))
    moments, hypotheses, snaps = state["moments"], state["hypotheses"], state["snaps"]
    arrays = moments, hypotheses, state["marks"], snaps, state["t"]
    for _ in range(20):
        again = words.copy()
        pooled.draw(words, *arrays, shift, upper, NO_OTHERS, curiosity, sign, theta)
        xi, z = normal_pair(again[0])[0], np.sqrt(np.log(t + 10) / 2)
        level, masses = np.empty(d), np.zeros(d)
        for i in range(d):
            level[i] = max(z * (1 + uniform(again[0])) / 2, xi)
            masses[i] = uniform(again[0]) if own[i] else 0.0
        assert (words == again).all()
        expected = pooled_twin.followed(
            twin, rows[:, N], own, masses, np.array(moves), level, shift, upper, sign
        )
        np.testing.assert_allclose(theta[0], expected, rtol=1e-4, atol=1e-7)
