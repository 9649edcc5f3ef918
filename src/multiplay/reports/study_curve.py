"""Costs of rounds as a curve of at most 200 points, for any number of rounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from multiplay.results.intervals import student
from multiplay.types import FloatArray

MOST = 200  # stretches that are kept
FEWEST = 5  # rounds of an average that is compared
PARTS = 4  # the first and the last of so many parts are compared
SUMS = ("count", "total", "squares", "expected_count", "expected_total")


class Average(NamedTuple):
    """The average cost of some rounds.

    Attributes
    ----------
    rounds : int
        How many rounds.
    realised, expected : float
        The mean cost, and the mean expected cost; NaN if not known.
    variance : float
        The variance of the costs; NaN for fewer than two rounds.
    """

    rounds: int
    realised: float
    expected: float
    variance: float


class Change(NamedTuple):
    """The change of the cost of a round from the beginning to the end, with a 95 % interval."""

    early: Average
    late: Average
    difference: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


class Stretch(NamedTuple):
    """Consecutive rounds: the first, the last, and their averages."""

    first: int
    last: int
    average: Average


class Curve:
    """Sums over stretches of rounds, which become longer as there are more.

    Rounds are numbered from 1, in the order in which they were asked. Rounds without a known cost
    are counted, and are not in the sums.

    Examples
    --------
    >>> curve = Curve()
    >>> for cost in (5.0, 7.0, np.nan):
    ...     curve.add(np.array([cost]), np.array([6.0]))
    >>> curve.rounds, curve.known, curve.whole.realised
    (3, 2, 6.0)
    >>> [round(one.average.realised, 1) for one in curve.stretches()]
    [5.0, 7.0, nan]
    """

    def __init__(self, most: int = MOST) -> None:
        self.rounds, self.width = 0, 1  # of each stretch
        self._origin: float | None = None  # subtracted before squaring, for precision
        self._sums = np.zeros((len(SUMS), most))

    def add(self, realised: FloatArray, expected: FloatArray) -> None:
        """Add the next rounds: their costs, and the expected costs; NaN if not known."""
        known = ~np.isnan(realised)
        if self._origin is None and known.any():
            self._origin = float(realised[known.argmax()])
        self._make_room(self.rounds + len(realised))
        places = (self.rounds + np.arange(len(realised))) // self.width
        cost = np.where(known, realised - (self._origin or 0.0), 0.0)
        both = known & ~np.isnan(expected)
        terms = (known, cost, cost**2, both, np.where(both, expected, 0.0))
        for sums, term in zip(self._sums, terms, strict=True):
            sums += np.bincount(places, weights=term, minlength=len(sums))
        self.rounds += len(realised)

    def _make_room(self, rounds: int) -> None:
        """Join pairs of stretches until there is room for so many rounds."""
        most = self._sums.shape[1]
        while rounds > most * self.width:
            self._sums = np.pad(_joined(self._sums, 2), ((0, 0), (0, most - -(-most // 2))))
            self.width *= 2

    @property
    def known(self) -> int:
        """The number of rounds with a known cost."""
        return int(self._sums[0].sum())

    @property
    def whole(self) -> Average:
        """The average of all rounds."""
        return self._average(self._used(1).sum(axis=1))

    def stretches(self, most: int = MOST) -> list[Stretch]:
        """Return all rounds in at most so many stretches of the same length."""
        joined = -(-self._used(1).shape[1] // most) or 1
        width = self.width * joined
        return [
            Stretch(k * width + 1, min((k + 1) * width, self.rounds), self._average(sums))
            for k, sums in enumerate(self._used(joined).T)
        ]

    def trend(self) -> FloatArray:
        """Return a moving average for every stretch, over a fifth of all stretches.

        At the ends it is the average of the first and of the last fifth. NaN before the first round
        with a known cost, and after the last one.
        """
        count, total, *_ = self._used(1)
        known = np.flatnonzero(count)
        trend = np.full(len(count), np.nan)
        if len(known):
            first, end = known[0], known[-1] + 1
            width = min(2 * (len(count) // 10) + 1, end - first)
            places = np.arange(first, end)
            start = np.clip(places - width // 2, first, end - width)
            added = np.pad(np.cumsum([count, total], axis=1), ((0, 0), (1, 0)))
            rounds, cost = added[:, start + width] - added[:, start]
            trend[places] = (self._origin or 0.0) + _ratio(cost, rounds)
        return trend

    def change(self) -> Change | None:
        """Compare the first and the last quarter; None if there are too few rounds."""
        sums = self._used(1)
        share = np.cumsum(sums[0]) / max(self.known, 1)
        first, last = (int(k) + 1 for k in np.searchsorted(share, [1 / PARTS, 1 - 1 / PARTS]))
        parts = sums[:, :first], sums[:, last:]
        early, late = (self._average(part.sum(axis=1)) for part in parts)
        if min(early.rounds, late.rounds) < FEWEST:
            return None
        errors = np.array([one.variance / one.rounds for one in (early, late)])
        doubt, error = 0.0, float(errors.sum())
        if error > 0:  # Welch: the variances may differ
            freedom = error**2 / sum(errors**2 / (np.array([early.rounds, late.rounds]) - 1))
            doubt = student(int(freedom) + 1) * error**0.5
        difference = late.realised - early.realised
        return Change(early, late, difference, difference - doubt, difference + doubt)

    def _used(self, joined: int) -> FloatArray:
        """Return the sums of the stretches in use, joined in groups."""
        return _joined(self._sums[:, : -(-self.rounds // self.width)], joined)

    def _average(self, sums: FloatArray) -> Average:
        count, total, squares, expected_count, expected_total = sums.tolist()
        mean = total / count if count else np.nan
        spread = max(squares - count * mean**2, 0.0) if count else np.nan
        return Average(
            int(count),
            (self._origin or 0.0) + mean,
            expected_total / expected_count if expected_count else np.nan,
            spread / (count - 1) if count > 1 else np.nan,
        )


def _joined(sums: FloatArray, joined: int) -> FloatArray:
    """Add up groups of neighbours."""
    padded = np.pad(sums, ((0, 0), (0, -sums.shape[1] % joined)))
    together: FloatArray = padded.reshape(len(sums), -1, joined).sum(axis=2)
    return together


def _ratio(one: FloatArray, other: FloatArray) -> FloatArray:
    empty = np.full(len(one), np.nan)
    ratio: FloatArray = np.divide(one, other, out=empty, where=other > 0)
    return ratio
