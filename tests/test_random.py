"""The generator bit for bit against numpy; the distributions by tests at level 1e-6 each."""

import numpy as np
import pytest
from scipy import stats

from multiplay import InvalidInput, Streams
from multiplay.streams import LOSSES, POLICY, seed_sequence

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
