"""The generator bit for bit against numpy; the distributions by tests at level 1e-6 each."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from multiplay import InvalidInput, Streams
from multiplay.random import ASK, LOSSES, POLICY, TELL, Rounds, seed_sequence

LEVEL = 1e-6
DRAWS = 100_000


def test_bits_are_those_of_numpy() -> None:
    streams = Streams.spawn(3, LOSSES, range(4))
    ours = np.concatenate([streams.random((4, 50)), streams.random((4, 7))], axis=1)
    for k in range(4):
        twin = np.random.Generator(np.random.SFC64(seed_sequence(3, LOSSES, k)))
        assert (ours[k] == twin.random(57)).all()


def test_streams_differ_by_seed_purpose_and_trial() -> None:
    first = [
        Streams.spawn(seed, purpose, [trial]).random((1, 1))[0, 0]
        for seed in range(5)
        for purpose in (LOSSES, POLICY)
        for trial in range(5)
    ]
    assert len(set(first)) == len(first)


@pytest.mark.parametrize("seed", [-1, 1.5, "one", None, True])
def test_bad_seeds(seed: object) -> None:
    with pytest.raises(InvalidInput, match="seed: expected a whole number"):
        Streams.spawn(seed, LOSSES, [0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("a", "b"),
    [(1, 1), (2.5, 7), (1, 1e4), (3e5, 2e6), (1e12, 3e12), (0.3, 0.4), (0.01, 5), (1e-3, 1e-3)],
)
def test_beta(a: float, b: float) -> None:
    draws = Streams.spawn(0, 0, [0]).beta(np.full((1, DRAWS), a), b)[0]
    assert ((draws >= 0) & (draws <= 1)).all()
    # next to 0 and 1 many draws are rounded to the same number: count those, and test the others
    inside = (draws > 1e-12) & (draws < 1 - 1e-12)
    low, high = stats.beta.cdf(1e-12, a, b), stats.beta.cdf(1 - 1e-12, a, b)
    beta = stats.beta(a, b)
    # many units are Gaussian but for 1e-7, which is found a thousand times faster
    cdf = beta.cdf if a < 1e9 else stats.norm(beta.mean(), beta.std()).cdf
    assert stats.binomtest(int(inside.sum()), DRAWS, high - low).pvalue > LEVEL
    uniform = (cdf(draws[inside]) - low) / (high - low)
    assert stats.kstest(uniform, "uniform").pvalue > LEVEL


@pytest.mark.parametrize(
    ("n", "p"),
    [
        (1, 0.3),
        (10, 0.5),
        (40, 0.01),
        (100, 0.2),
        (100, 0.93),
        (1000, 0.4),
        (10**6, 0.3),
        (10**10, 0.7),
    ],
)
def test_binomial(n: int, p: float) -> None:
    draws = Streams.spawn(1, 0, [0]).binomial(np.full((1, DRAWS), n), p)[0]
    edges = np.unique(stats.binom.ppf(np.linspace(0.05, 0.95, 19), n, p))
    expected = np.diff(stats.binom.cdf(edges, n, p), prepend=0.0, append=1.0)
    observed = np.bincount(np.searchsorted(edges, draws), minlength=len(expected))
    used = expected > 0
    assert observed[~used].sum() == 0
    assert stats.chisquare(observed[used], DRAWS * expected[used]).pvalue > LEVEL


def test_binomial_at_its_ends() -> None:
    streams = Streams.spawn(0, 0, [0])
    n = np.array([[0, 5, 5, 10**12]])
    assert streams.binomial(n, np.array([[0.5, 0.0, 1.0, 0.0]])).tolist() == [[0, 0, 5, 0]]


def test_rounds_begin_as_numpy_begins() -> None:
    """SFC64 with the same three words and a counter of 1, after twelve numbers."""
    rounds = Rounds(seed=7, purpose=ASK)
    words = seed_sequence(7, ASK, 0).generate_state(3, np.uint64)
    for t in (0, 1, 365, 2**53):
        twin = np.random.SFC64(0)
        state: Any = twin.state
        mixed = int(words[2]) ^ splitmix(t)
        state["state"]["state"] = np.array([words[0], words[1], mixed, 1], dtype=np.uint64)
        twin.state = state
        twin.random_raw(12)
        assert (rounds.at(t).random((1, 5)) == np.random.Generator(twin).random(5)).all()


def splitmix(t: int) -> int:
    """SplitMix64's next number from the state t, in whole numbers of Python."""
    z = (t + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


@pytest.mark.parametrize("seed", [0, 1])
def test_rounds_are_independent_of_each_other(seed: int) -> None:
    """Each of the three tests at level 1e-6."""
    rounds = Rounds(seed, TELL)
    drawn = np.concatenate([rounds.at(t).random((1, 2)) for t in range(1, 20_001)])
    assert stats.kstest(drawn[:, 0], "uniform").pvalue > LEVEL
    assert stats.pearsonr(drawn[:-1, 0], drawn[1:, 0]).pvalue > LEVEL  # one round and the next
    assert stats.pearsonr(drawn[:, 0], drawn[:, 1]).pvalue > LEVEL
    others = [Rounds(seed, ASK), Rounds(seed + 1, TELL)]
    assert all((other.at(1).random((1, 2)) != drawn[0]).all() for other in others)
