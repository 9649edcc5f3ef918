"""The drift alarm: a naive twin, false alarms, real changes, and a memory that is bounded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusal import refused
from scipy import special, stats

from multiplay.learner.statistics import FEW, MOST, Alarm, Drift
from multiplay.types import FloatArray, IntArray

LEVEL = 1e-4  # of every test here that depends on chance


def kl(x: float, y: float) -> float:
    return float(special.rel_entr(x, y) + special.rel_entr(1 - x, 1 - y))


def naive_excess(seen: list[int], total: list[float], delta: float) -> list[float]:
    """GLR above its threshold for every split between rounds, from the definition."""
    n, mean = sum(seen), sum(total) / sum(seen)
    excess = []
    for j in range(1, len(seen)):
        s, old = sum(seen[:j]), sum(total[:j])
        glr = s * kl(old / s, mean) + (n - s) * kl((sum(total) - old) / (n - s), mean)
        excess.append(glr - np.log(12 * s**2 * np.sqrt(n - s) / delta))
    return excess


@given(st.data())
def test_the_kernel_is_the_definition(data: st.DataObject) -> None:
    rounds = data.draw(st.integers(2, 40))
    seen = data.draw(st.lists(st.integers(1, 5), min_size=rounds, max_size=rounds))
    share = data.draw(
        st.lists(st.sampled_from([0, 0.125, 0.5, 1.0]), min_size=rounds, max_size=rounds)
    )
    total = [a * b for a, b in zip(seen, share, strict=True)]
    drift = Drift(3)
    for t in range(rounds):
        drift.add(t + 1, np.array([1]), np.array([seen[t]]), np.array([total[t]]))
    split, excess = drift.clearest_splits(0.1)
    each = naive_excess(seen, total, 0.1)
    assert excess[1] == pytest.approx(max(each), abs=1e-9)
    assert each[split[1]] == pytest.approx(max(each), abs=1e-9)
    assert drift.rounds[1, split[1]] == split[1] + 1
    assert split[0] == split[2] == -1, "arms that were never seen have no split"


@pytest.mark.parametrize("n", [1, 2, 7, 100, 5000])
def test_the_average_likelihood_is_not_far_below_the_largest(n: int) -> None:
    """KT >= the largest likelihood / (2 sqrt n), also for totals that are no whole numbers."""
    total = np.linspace(0, n, 1001)
    average = special.betaln(total + 0.5, n - total + 0.5) - np.log(np.pi)
    largest = -n * special.entr(total / n) - n * special.entr(1 - total / n)
    assert (average >= largest - np.log(2 * np.sqrt(n)) - 1e-9).all()


def false_alarms(losses: FloatArray, seen: IntArray, every: int, delta: float) -> int:
    """How many of many lives, one for each arm, ever have an alarm: losses (rounds, lives)."""
    lives = losses.shape[1]
    drift, alarmed = Drift(lives), np.zeros(lives, dtype=bool)
    for t in range(len(losses)):
        drift.add(t + 1, slice(None), seen[t], losses[t])
        if (t + 1) % every == 0:
            alarmed |= drift.clearest_splits(delta)[1] > 0
    return int(alarmed.sum())


@pytest.mark.parametrize(
    "law",
    [
        "units",
        *(pytest.param(law, marks=pytest.mark.slow) for law in ("rare", "even", "wide", "narrow")),
    ],
)
def test_false_alarms_are_rarer_than_the_level(law: str) -> None:
    """1000 lives of each kind, looked at in every round, or every 20th of long ones."""
    rng = np.random.default_rng(3)
    lives, rounds, every = 1000, 260, 1
    seen = np.ones((rounds, lives), dtype=np.int64)
    if law == "rare":
        losses = (rng.random((rounds, lives)) < 0.03).astype(float)
    elif law == "even":
        rounds, every = 1500, 20
        seen = np.ones((rounds, lives), dtype=np.int64)
        losses = (rng.random((rounds, lives)) < 0.5).astype(float)
    elif law == "wide":
        losses = rng.beta(0.3, 0.5, (rounds, lives))
    elif law == "narrow":
        losses = rng.beta(30, 50, (rounds, lives))
    else:
        seen = rng.integers(0, 5, (rounds, lives))
        losses = rng.binomial(seen, 0.7).astype(float)
    allowed = stats.binom.isf(LEVEL, lives, 0.1)
    assert false_alarms(losses, seen, every, delta=0.1) <= allowed


def bernoulli(drift: Drift, rng: np.random.Generator, rounds: range, means: list[float]) -> None:
    for t in rounds:
        losses = rng.random(len(means)) < means
        drift.add(t, slice(None), np.ones(len(means), dtype=np.int64), losses.astype(float))


@pytest.mark.slow
def test_false_alarms_over_all_arms() -> None:
    """Bonferroni: 200 lives of 10 arms, looked at every 25th of 500 rounds, at level 0.1."""
    rng = np.random.default_rng(4)
    alarmed = 0
    for _ in range(200):
        drift, found = Drift(10), False
        for first in range(1, 500, 25):
            bernoulli(drift, rng, range(first, first + 25), [0.1 * i for i in range(10)])
            found |= bool(drift.alarms(0.1))
        alarmed += found
    assert alarmed <= stats.binom.isf(LEVEL, 200, 0.1)


@pytest.mark.parametrize("long", [500, 20_000], ids=["young", "old"])
def test_a_change_is_found_soon_and_named(long: int) -> None:
    """From 0.3 to 0.6 on one arm of six: 20 lives, within 500 units each.

    The ratio grows by about kl(0.6, 0.3) = 0.19 for each unit; the threshold is below 32.
    """
    means = [0.3, 0.2, 0.5, 0.3, 0.9, 0.7]
    for seed in range(20 if long == 500 else 2):
        rng = np.random.default_rng(seed)
        drift = Drift(6)
        bernoulli(drift, rng, range(1, long + 1), means)
        assert drift.alarms(0.05) == []
        for first in range(long + 1, long + 501, 10):
            bernoulli(drift, rng, range(first, first + 10), [0.6, *means[1:]])
            alarms = drift.alarms(0.05)
            if alarms:
                break
        (alarm,) = alarms
        assert alarm.arm == 0
        assert abs(alarm.since - long) <= 60
        assert alarm.recent == first + 9 - alarm.since
        assert alarm.before == pytest.approx(0.3, abs=0.1)
        assert alarm.after == pytest.approx(0.6, abs=0.2)


@pytest.mark.slow
def test_a_change_long_ago_is_still_placed() -> None:
    """After 100,000 rounds, changes at 2000, in the middle and at the end: within a fifth."""
    rng = np.random.default_rng(5)
    changes = [2000, 50_000, 98_000]
    drift = Drift(3)
    for t in range(1, 100_001):
        losses = rng.random(3) < [0.6 if t > change else 0.3 for change in changes]
        drift.add(t, slice(None), np.ones(3, dtype=np.int64), losses.astype(float))
    assert drift.seen.shape == (3, MOST)
    assert (drift.length < MOST).all()
    alarms = drift.alarms(0.01)
    assert [alarm.arm for alarm in alarms] == [0, 1, 2]
    for alarm, change in zip(alarms, changes, strict=True):
        assert abs(alarm.since - change) < min(change, 100_000 - change) / 5


def test_thinning_keeps_the_sums_and_the_order() -> None:
    rng = np.random.default_rng(6)
    drift = Drift(2)
    seen = rng.integers(0, 4, (5000, 2))
    total = rng.random((5000, 2)) * seen
    everything_seen, everything = seen.cumsum(axis=0), total.cumsum(axis=0)
    for t in range(5000):
        drift.add(t, slice(None), seen[t], total[t])
    for i in range(2):
        used = slice(0, drift.length[i])
        rounds = drift.rounds[i, used]
        assert (np.diff(rounds) > 0).all()
        assert (drift.seen[i, used] == everything_seen[rounds, i]).all()
        np.testing.assert_allclose(drift.total[i, used], everything[rounds, i], rtol=1e-12)
        assert drift.seen[i, drift.length[i] - 1] == everything_seen[-1, i]
        assert (rounds[-60:] >= 4800).all(), "recent rounds are kept densely"


def test_several_units_count_as_samples() -> None:
    """4 units in each round say as much as 4 rounds of one unit, at the splits between rounds."""
    rng = np.random.default_rng(7)
    units = (rng.random((200, 4)) < np.where(np.arange(200) < 100, 0.2, 0.7)[:, None]).astype(float)
    together, single = Drift(1), Drift(1)
    for t in range(200):
        together.add(t + 1, slice(None), np.array([4]), units[t].sum(keepdims=True))
    for t in range(100, 130):  # few enough that nothing is thinned
        for loss in units[t]:
            single.add(t + 1, slice(None), np.array([1]), np.array([loss]))
    (alarm,) = together.alarms(0.05)
    assert abs(alarm.since - 100) <= 3
    assert alarm.recent == 4 * (200 - alarm.since)
    assert single.alarms(0.05) == []


def test_arrays_and_back_is_exact() -> None:
    rng = np.random.default_rng(8)
    drift = Drift(3)
    for rounds in (0, 3, FEW, 100, 200, 300):  # with no, little and much thinning behind it
        for t in range(rounds):
            drift.add(t, np.array([0, 2]), rng.integers(0, 3, 2), rng.random(2))
        again = Drift.of(drift.arrays())
        for t in range(1000, 1300):
            seen, total = rng.integers(0, 3, 3), rng.random(3)
            drift.add(t, slice(None), seen, total)
            again.add(t, slice(None), seen, total)
        for name, array in drift.arrays().items():
            np.testing.assert_array_equal(array, again.arrays()[name])
        assert drift.alarms(0.5) == again.alarms(0.5)


def test_new_arms_stand_at_the_end() -> None:
    drift = Drift(1)
    for t in range(50):
        drift.add(t, slice(None), np.array([5]), np.array([0.0]))
    drift.grow(2)
    for t in range(50, 100):
        drift.add(t, np.array([2, 0]), np.array([5, 5]), np.array([1.0, 5.0]))
    assert drift.alarms(0.05) == [Alarm(0, 49, 0.0, 1.0, 250)]
    assert drift.length.tolist() == [100, 0, 50]
    assert Drift(0).alarms(0.05) == []


@pytest.mark.parametrize("level", [0, 1, -0.1, "often", None, float("nan")])
def test_a_level_is_a_probability(level: object) -> None:
    with refused("level"):
        Drift(1).alarms(level)  # type: ignore[arg-type]
