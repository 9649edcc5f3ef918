"""Smoothed beliefs: mean losses of every past day, from all reports before and after it.

The bill of a unit of arm i on day t is

    mu[i, t] + <theta, phi[t, i]> + c[i] (L[t] + D[t]) + E[i, t] + noise,

where phi are the features, if they are declared, mu is a random walk of each arm (variance q a
week), L the common level of all arms, a random walk from 0 (variance g a week), D the effect of the
day on all arms (variance kappa), and E the effect of the day on one arm (variance lam). c is 1, or
the average bill of the arm over that of all bills: then level and days change all prices by the
same share. All are Gaussian. The result is averaged over a grid of q, g, kappa, lam and both c,
weighted by their likelihood: there is no optimiser, and the same reports give the same bits.

Features that multiply are factors of all of this, exp(<gamma, psi[t, i]>). Reports are made those
of a linear model, as in ``kernels.factors``, and again where this model says that they should be.

A price may also jump. Where bills show it, mu begins again there. Where an arm has no bills,
nothing shows it, and mu moves as far as jumps do by their rate in all arms that have bills.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from functools import cached_property
from itertools import groupby
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

from multiplay.kernels.factors import LEAST, MOST
from multiplay.types import BoolArray, FloatArray, IntArray

# The grid, in variances of the bill of a unit.
DRIFTS = (1e-6, 0.01, 0.1, 0.6)  # q, of a week
LEVELS = (0.0, 0.02, 0.2)  # g, of a week
DAYS = (0.0, 0.05, 0.5)  # kappa, of a day
OWN = (0.0, 0.1, 0.5)  # lam, of an arm on a day
WALKS = np.array([(drift, own) for drift in DRIFTS for own in OWN])
SHARES = (0, 1)  # the power of the average bill that c is
COMMON = [
    (share, day, level)
    for share in SHARES
    for day in DAYS
    for level in LEVELS
    if share == 0 or level + day > 0  # c changes nothing without level and days
]
# A trend is nearly always a share of the prices, and few alike arms with bills do not tell.
PRIOR = np.array([0.1 if share == 0 and level > 0 else 1.0 for share, _, level in COMMON])
POWERS = (0, 1, 2)  # of the mean, to which the variance of a bill may be proportional
COEFFICIENT = 0.5  # standard deviation of a coefficient, in the largest range
PSEUDO_UNITS = 4.0  # of the common variance, in that of each arm
FEWEST_PAIRS = 20  # degrees of freedom within days, below which differences between days count too
NEGLIGIBLE = 1e-4  # weight of a model that is left out
FALSE_ALARM = 0.01  # of a jump, in a study with constant means
JUMPS, LOOKED_AT = 0.5, 52.0  # before any bill: jumps, and the weeks of arms with bills they are of
MOST_BINS = 60  # of time, in which means are constant
MOST_ENTRIES = 4_000_000  # of the covariances of all arms between bins
MOST_TANGENTS = 6  # linear models, each where the one before says
EXACT = 0.01  # change of the logarithm of a factor: half of its square is the error of a mean


class Reports(NamedTuple):
    """Reports of all days; arrays are (days, arms).

    Attributes
    ----------
    place : array of shape (days,)
        The time of each day, in weeks.
    units : array
        The number of units seen.
    total, squares : array
        The sum of their losses and of their squares; NaN for squares that are not known.
    low, high : array of shape (arms,)
        The range of the losses of each arm.
    phi : array of shape (days, arms, p)
        The features, scaled, with an intercept; None if there are none.
    """

    place: FloatArray
    units: FloatArray
    total: FloatArray
    squares: FloatArray
    low: FloatArray
    high: FloatArray
    phi: FloatArray | None = None


class Tangent(NamedTuple):
    """Where factors are made linear; arrays are (days, arms).

    With base as the mean without factors, and eta as the logarithm of the factor, a mean is

        exp(eta) (the mean of the linear model - base eta),

    where the linear model has the columns base psi in place of psi, and reports y exp(-eta) + base
    eta.

    Attributes
    ----------
    base, eta : array
        The two, as believed.
    """

    base: FloatArray
    eta: FloatArray

    @property
    def factor(self) -> FloatArray:
        """The factors."""
        return np.asarray(np.exp(self.eta))

    @property
    def rest(self) -> FloatArray:
        """What is added to the mean of the linear model times the factor."""
        return -self.factor * self.base * self.eta

    def divided(self, reports: Reports, factors: int) -> Reports:
        """Return reports without factors; the last ``factors`` columns of phi are base psi."""
        assert reports.phi is not None
        phi = reports.phi.copy()
        phi[..., -factors:] *= self.base[..., None] / _largest(reports)
        total, squares = reports.total / self.factor, reports.squares / self.factor**2
        return reports._replace(total=total, squares=squares, phi=phi)


class Contrast(NamedTuple):
    """Posterior of weighted sums of means: one for each group of days.

    Attributes
    ----------
    mean : array of shape (groups,)
        The expected sums.
    covariance : array of shape (groups, groups)
        Their covariance.
    """

    mean: FloatArray
    covariance: FloatArray

    @property
    def total(self) -> tuple[float, float]:
        """The mean and the standard deviation of the sum over all groups."""
        return float(self.mean.sum()), math.sqrt(max(float(self.covariance.sum()), 0.0))

    @property
    def deviation(self) -> FloatArray:
        """The standard deviation of each group."""
        found: FloatArray = np.sqrt(np.maximum(self.covariance.diagonal(), 0.0))
        return found


class Jumps(NamedTuple):
    """The largest change of each arm that bills show; arrays are (arms,).

    Attributes
    ----------
    found : array of bool
        Whether it is larger than chance explains: wrong in 1 of 100 studies with constant means.
    place : array
        The time of the first bills after it, in weeks.
    units : array
        The number of bills since then.
    """

    found: BoolArray
    place: FloatArray
    units: FloatArray


class Smoothed:
    """Beliefs about the mean losses of past days.

    Parameters
    ----------
    reports
        All reports. Days are in any order.
    jumped
        The time of the jump of each arm, in weeks; infinite if it has none. See ``of``.
    tangent
        Where factors were made linear; reports are divided by them. None if no feature multiplies.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bills = rng.normal([50.0, 80.0], 5.0, size=(20, 2))
    >>> ends = np.zeros(2), np.full(2, 100.0)
    >>> reports = Reports(np.arange(20) / 7, np.ones((20, 2)), bills, bills**2, *ends)
    >>> difference = np.tile([-1.0, 1.0], (20, 1)) / 20
    >>> mean, deviation = Smoothed(reports).contrast(difference, np.zeros(20, int)).total
    >>> bool(abs(mean - 30) < 2 * deviation < 10)
    True
    """

    def __init__(
        self,
        reports: Reports,
        jumped: FloatArray | None = None,
        tangent: Tangent | None = None,
    ) -> None:
        self.reports, self.tangent = reports, tangent
        self._more = 0.0 if tangent is None else tangent.base * tangent.eta
        self.jumped = np.full(reports.units.shape[1], np.inf) if jumped is None else jumped
        units = reports.units
        self._seen = units > 0
        self.phi = np.zeros((*units.shape, 0)) if reports.phi is None else reports.phi
        self._average = np.divide(reports.total, units, out=np.zeros_like(units), where=self._seen)
        self._n = units.sum(axis=0)
        self._known = self._n > 0
        self._fit_spread()
        self._fit_prior()
        self._bin()
        self._fit_moves()
        self.rest = np.where(self._seen, self._average - self.prior_mean + self._more, 0.0)
        self.scale = COEFFICIENT * _largest(reports)

    @classmethod
    def of(cls, reports: Reports, factors: int = 0) -> Smoothed:
        """Return beliefs by which an arm begins again where its bills show a jump.

        The last ``factors`` columns of the features multiply.
        """
        found = cls._touching(reports, factors) if factors else cls(reports)
        jumps = found.jumps()
        if not jumps.found.any():
            return found
        return cls(found.reports, np.where(jumps.found, jumps.place, np.inf), found.tangent)

    @classmethod
    def _touching(cls, reports: Reports, factors: int) -> Smoothed:
        """Return beliefs of a linear model that touches where they are themselves.

        Factors are those from the average of all bills: a factor of all prices is not known.
        """
        assert reports.phi is not None
        psi, largest = reports.phi[..., -factors:], _largest(reports)
        psi = psi - np.average(psi, axis=(0, 1), weights=reports.units)
        centred = np.concatenate([reports.phi[..., :-factors], psi], axis=2)
        reports = reports._replace(phi=centred)
        n, total = reports.units.sum(axis=0), reports.total.sum(axis=0)
        average = np.where(n > 0, total / np.maximum(n, 1.0), total.sum() / max(n.sum(), 1.0))
        base = np.broadcast_to(np.maximum(average, LEAST * largest), psi.shape[:2])
        tangent = Tangent(base, np.zeros(base.shape))
        for _ in range(MOST_TANGENTS):
            found = cls(tangent.divided(reports, factors), tangent=tangent)
            eta = psi @ (found.coefficients[-factors:] / largest)
            base = found._linear_means() - tangent.base * eta
            eta = np.clip(eta, -MOST, MOST)
            before, tangent = tangent.eta, Tangent(np.maximum(base, LEAST * largest), eta)
            if np.abs(eta - before).max() < EXACT:
                break
        return found

    # ------------------------------------------------------------ what the grid has in common

    def _fit_spread(self) -> None:
        """Estimate the variance of a bill of each arm, within a day."""
        units, average = self.reports.units, self._average
        within = np.where(units > 1, self.reports.squares - units * average**2, 0.0)
        told = np.isfinite(within) & (units > 1)
        squares = np.where(told, np.maximum(within, 0.0), 0.0).sum(axis=0)
        freedom = np.where(told, units - 1, 0.0).sum(axis=0)
        more, pairs, changes = self._between()
        if freedom.sum() < FEWEST_PAIRS:
            squares, freedom = squares + more, freedom + pairs
        span = self.reports.high - self.reports.low
        least = 1e-10 * float((span**2).max())
        mean = self._n @ self._arm_means() / max(self._n.sum(), 1.0)
        noise = squares.sum() / max(freedom.sum(), 1.0)
        means = np.where(self._known, self._shrunken(noise / np.maximum(self._n, 1.0)), mean)
        best, self.pooled = -math.inf, 0.0
        self.relative = means / mean if (means > 0).all() else np.ones_like(means)
        for power in POWERS:
            shape = self.relative**power
            scale = max(float((squares / shape).sum() / max(freedom.sum(), 1.0)), least)
            target = scale * shape
            fit = -0.5 * float((freedom * np.log(target) + squares / target).sum())
            if fit > best:
                best = fit
                self.variance = (squares + PSEUDO_UNITS * target) / (freedom + PSEUDO_UNITS)
        # units of a day may cost the same: then days differ more than units
        days = changes.sum() / 2 / max(pairs.sum(), 1.0)
        self.pooled = max(float(squares.sum() / max(freedom.sum(), 1.0)), float(days), least)

    def _between(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the squared changes of the average of each arm from a day to the next.

        They are in variances of a unit; then there is their number, and their sum as they are.
        """
        scaled, pairs, changes = np.zeros((3, len(self._n)))
        order = np.argsort(self.reports.place, kind="stable")
        for arm in np.flatnonzero(self._seen.sum(axis=0) > 1):
            days = order[self._seen[order, arm]]
            squares = np.diff(self._average[days, arm]) ** 2
            inverse = 1.0 / self.reports.units[days, arm]
            scaled[arm] = (squares / (inverse[1:] + inverse[:-1])).sum()
            pairs[arm], changes[arm] = len(squares), squares.sum()
        return scaled, pairs, changes

    def _arm_means(self) -> FloatArray:
        return np.asarray(self.reports.total.sum(axis=0) / np.maximum(self._n, 1.0))

    def _shrunken(self, noise: FloatArray) -> FloatArray:
        """Return the averages of the arms, drawn to each other; ``noise`` are their variances.

        The spread of an arm follows its mean. By its own average, an arm with few bills that looks
        dear by chance would count as noisy, and one that looks cheap as sure.
        """
        means, seen = self._arm_means(), self._known
        if seen.sum() < 2:
            return means
        apart, centre = self._apart(noise), means[seen].mean()
        return np.asarray(centre + (means - centre) * apart / (apart + noise))

    def _apart(self, noise: FloatArray) -> float:
        """Return the variance of means between arms; ``noise`` are variances of the averages."""
        own = max(float(noise[self._known].mean()), 1e-300)
        return max(float(self._arm_means()[self._known].var(ddof=1)) - own, 0.1 * own)

    def _fit_prior(self) -> None:
        """Set mean and variance of the first day: of arms that are alike, or of the range."""
        low, high = self.reports.low, self.reports.high
        self.prior_mean, self.prior_variance = (low + high) / 2, (high - low) ** 2 / 12
        seen, means = self._known, self._arm_means()
        count = int(seen.sum())
        if count < 2:
            return
        apart = self._apart(self.variance / np.maximum(self._n, 1.0))
        alike = seen | (self.phi.shape[2] > 0)  # features say how arms differ
        self.prior_mean = np.where(alike, means[seen].mean(), self.prior_mean)
        self.prior_variance = np.where(alike, apart * (1 + 2 / count), self.prior_variance)

    def _bin(self) -> None:
        """Divide the time into bins of equal length, within which means are constant."""
        place, arms = self.reports.place, max(len(self._n), 1)
        most = max(min(MOST_BINS, int(math.sqrt(MOST_ENTRIES / arms))), 2)
        exact, bins = np.unique(place, return_inverse=True)
        if len(exact) > most:
            length = np.ptp(place) / most
            number = np.minimum(np.floor((place - place.min()) / length), most - 1)
            parts = number + (place[:, None] >= np.unique(self.jumped)).sum(axis=1)
            _, first, bins = np.unique(parts, return_index=True, return_inverse=True)
            exact = place.min() + (number[first] + 0.5) * length
        self.times, self.bins = exact, bins.astype(np.int64)
        steps = np.sqrt(np.append(0.0, np.diff(exact)))
        self.steps = steps * (np.arange(len(steps)) <= self.bins[:, None])

    def _fit_moves(self) -> None:
        """Set the variance of what jumps add to the mean of each arm at the beginning of a bin."""
        gaps = np.append(0.0, np.diff(self.times))[:, None]
        used = np.zeros((len(self.times), len(self._n)), bool)
        np.logical_or.at(used, self.bins, self._seen)
        found = np.isfinite(self.jumped)
        rate = (found.sum() + JUMPS) / ((used * gaps).sum() + LOOKED_AT)
        moves = np.where(used, 0.0, rate * gaps)
        for arm in np.flatnonzero(found):
            moves[self.bins[self.reports.place >= self.jumped[arm]].min(), arm] += 1.0
        self.moves = moves * self.prior_variance

    # ------------------------------------------------------------ the grid

    @property
    def weights(self) -> FloatArray:
        """The posterior weights of the models, by (q, lam), and by (c, kappa, g)."""
        return self._weights[0]

    @property
    def coefficients(self) -> FloatArray:
        """The expected coefficients of the columns of phi."""
        return self._weights[2]

    @cached_property
    def _weights(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The weights of the models, what is expected to be added to a bill, and theta."""
        fit = np.zeros((len(WALKS), len(COMMON)))
        effects = np.zeros((*fit.shape, len(self.bins) + self.phi.shape[2]))
        for place, day in self._models(np.ones(fit.shape, bool)):
            fit[place], effects[place] = day.fit + math.log(PRIOR[place[1]]), day.effect
        weights = np.exp(fit - fit.max())
        weights /= weights.sum()
        loads = np.array([self.relative**share for share, *_ in COMMON])
        effects = np.einsum("wc,wct->ct", weights, effects)
        days, theta = effects[:, : len(self.bins)], effects.sum(axis=0)[len(self.bins) :]
        return weights, days.T @ loads + self.phi @ theta, theta

    def _likely(self) -> Iterator[tuple[float, _Days]]:
        """Yield the models that matter, with their weights."""
        weights = np.where(self.weights > NEGLIGIBLE, self.weights, 0.0)
        weights /= weights.sum()
        for place, day in self._models(weights > 0):
            yield float(weights[place]), day

    def _models(self, wanted: BoolArray) -> Iterator[tuple[tuple[int, int], _Days]]:
        """Yield the wanted models with their places; all of them are kept if they are small."""
        entries = len(self._n) * len(self.times) ** 2
        at_once = max(MOST_ENTRIES // entries, 1)
        if at_once >= len(WALKS):
            yield from ((place, day) for place, day in self._kept if wanted[place])
            return
        walks = np.flatnonzero(wanted.any(axis=1))
        for some in np.split(walks, range(at_once, len(walks), at_once)):
            yield from ((place, day) for place, day in self._of(some) if wanted[place])

    @cached_property
    def _kept(self) -> list[tuple[tuple[int, int], _Days]]:
        return list(self._of(np.arange(len(WALKS))))

    def _of(self, walks: IntArray) -> Iterator[tuple[tuple[int, int], _Days]]:
        """Yield the models of some random walks, which are computed together."""
        for number, walk in zip(walks.tolist(), random_walks(self, WALKS[walks]), strict=True):
            for (share, variance), group in groupby(enumerate(COMMON), lambda one: one[1][:2]):
                day = _Days(walk, share, variance)
                for place, (*_, level) in group:
                    yield (number, place), day.with_level(level)

    def contrast(self, weights: FloatArray, groups: IntArray) -> Contrast:
        """Return the posterior of the sums of weights[t, i] * mean[t, i] over days of a group.

        ``weights`` are (days, arms). ``groups`` has the group of each day, from 0; the weights of a
        day of group -1 are 0.
        """
        count = int(groups.max()) + 1
        mean, within, between = np.zeros(count), np.zeros((count, count)), np.zeros((count, count))
        certain = np.zeros(count)
        if self.tangent is not None:
            np.add.at(certain, groups, (weights * self.tangent.rest).sum(axis=1))
            weights = weights * self.tangent.factor
        for weight, day in self._likely():
            one = day.contrast(weights, groups, count)
            mean += weight * one.mean
            within += weight * one.covariance
            between += weight * np.outer(one.mean, one.mean)
        return Contrast(mean + certain, within + between - np.outer(mean, mean))

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw the mean loss of each day and arm from the posterior, (count, days, arms)."""
        numbers = rng.multinomial(count, self.weights.ravel()).reshape(self.weights.shape)
        drawn = [day.draw(numbers[place], rng) for place, day in self._models(numbers > 0)]
        return self._of_losses(np.concatenate(drawn))

    def jumps(self) -> Jumps:
        """Return the largest change of each arm, and whether it is beyond chance.

        The mean of the bills after a day is compared with that before, for every day, each without
        what is expected of level and day. Days differ by the believed effects of days, and bills by
        the spread of the arm.
        """
        days = [day for _, day, _ in COMMON]
        day_variance = self.pooled * float(
            self.weights.sum(axis=1) @ WALKS[:, 1] + self.weights.sum(axis=0) @ days
        )
        rest = self.reports.total - self.reports.units * (self._weights[1] - self._more)
        order = np.argsort(self.reports.place, kind="stable")
        size, since, place = np.zeros(len(self._n)), self._n.copy(), np.full(len(self._n), np.inf)
        for arm in np.flatnonzero(self._seen.sum(axis=0) > 1):
            days = order[self._seen[order, arm]]
            units, total = self.reports.units[days, arm], rest[days, arm]
            before, number = units.cumsum()[:-1], np.arange(1.0, len(days))
            after = units.sum() - before
            change = (total.sum() - total.cumsum()[:-1]) / after - total.cumsum()[:-1] / before
            variance = self.variance[arm] * (1 / before + 1 / after)
            variance += day_variance * (1 / number + 1 / (len(days) - number))
            deviations = np.abs(change) / np.sqrt(variance)
            at = int(deviations.argmax())
            size[arm], since[arm] = deviations[at], after[at]
            place[arm] = self.reports.place[days[at + 1]]
        tests = 2 * max(int(self._seen.sum()), 1)  # up or down, on every day
        least = -NormalDist().inv_cdf(FALSE_ALARM / tests)
        return Jumps(size > least, place, since)

    def means(self) -> FloatArray:
        """Return the expected mean loss of each arm, without its own effects of days."""
        return self._of_losses(self._linear_means())

    def variances(self, day: int) -> FloatArray:
        """Return the variance of a bill of each arm on a day."""
        of_day: FloatArray = self.variance
        if self.tangent is not None:
            of_day = of_day * self.tangent.factor[day] ** 2
        return of_day

    def _linear_means(self) -> FloatArray:
        return np.asarray(sum(weight * day.means() for weight, day in self._likely()))

    def _of_losses(self, means: FloatArray) -> FloatArray:
        """Return mean losses from those of the linear model, (..., days, arms)."""
        if self.tangent is None:
            return means
        return np.asarray(self.tangent.factor * means + self.tangent.rest)


class _Walk:
    """The posterior of the random walks of all arms, without effects of days on all arms.

    Attributes
    ----------
    own
        The variance lam.
    precision, rest : arrays of shape (days, arms)
        The precision of the average of a day, given the mean, and that average less the prior mean.
    means : array of shape (bins, arms)
        The posterior means, less the prior mean.
    covariance : array of shape (arms, bins, bins)
        The posterior covariances.
    fit : float
        The logarithm of the likelihood.
    """

    def __init__(
        self,
        smoothed: Smoothed,
        own: float,
        precision: FloatArray,
        means: FloatArray,
        covariance: FloatArray,
        fit: float,
    ) -> None:
        self.smoothed, self.own, self.precision = smoothed, own, precision
        self.means, self.covariance, self.fit = means, covariance, fit
        self.rest = smoothed.rest
        self._of_days: dict[int, tuple[FloatArray, FloatArray]] = {}

    def of_days(self, share: int) -> tuple[FloatArray, FloatArray]:
        """Return the precision of effects of days, then of theta, and their weighted rest."""
        if share not in self._of_days:
            self._of_days[share] = self._computed(self.smoothed.relative**share)
        return self._of_days[share]

    def _computed(self, load: FloatArray) -> tuple[FloatArray, FloatArray]:
        bins, precision = self.smoothed.bins, self.precision * load
        found = np.diag(precision @ load)
        seen = np.flatnonzero(precision.any(axis=0))
        if len(seen) <= len(self.means):
            for arm in seen:
                days = np.flatnonzero(precision[:, arm])
                weight, at = precision[days, arm], bins[days]
                covariance = self.covariance[arm][at[:, None], at]
                found[days[:, None], days] -= weight[:, None] * covariance * weight
        else:  # the same sums, a bin at a time
            for k in range(len(self.means)):
                days = np.flatnonzero(bins == k)
                others = self.covariance[:, k].T[bins] * precision
                found[days] -= precision[days] @ others.T
        rest = (precision * (self.rest - self.means[bins])).sum(axis=1)
        if not self.smoothed.phi.shape[2]:
            return found, rest
        unexplained, own, of_theta = self.of_theta
        across = np.einsum("i,tip->tp", load, unexplained)
        return np.block([[found, across], [across.T, own]]), np.append(rest, of_theta)

    @cached_property
    def of_theta(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What walks do not explain of the features, the precision of theta, and its rest."""
        phi, precision, bins = self.smoothed.phi, self.precision[..., None], self.smoothed.bins
        sums = np.zeros((len(self.means), *phi.shape[1:]))
        np.add.at(sums, bins, precision * phi)
        left = precision * (phi - np.einsum("ikl,lip->kip", self.covariance, sums)[bins])
        own = np.einsum("tip,tiq->pq", phi, left)
        rest = np.einsum("tip,ti->p", phi, self.precision * (self.rest - self.means[bins]))
        return left, own, rest


def random_walks(smoothed: Smoothed, walks: FloatArray) -> list[_Walk]:
    """Return the posteriors for some pairs (q, lam), in variances of a bill, (pairs, 2).

    A Kalman filter and smoother of each arm, all pairs and arms at once.
    """
    drift, own = (smoothed.pooled * walks).T[..., None, None]  # (pairs, 1, 1)
    units, rest, bins = smoothed.reports.units, smoothed.rest, smoothed.bins
    precision = units / (smoothed.variance + units * own)  # (pairs, days, arms)
    count, pairs, arms = len(smoothed.times), len(walks), units.shape[1]
    sums, weighted = np.zeros((2, count, pairs, arms))
    by_day = precision.transpose(1, 0, 2)
    np.add.at(sums, bins, by_day)
    np.add.at(weighted, bins, by_day * rest[:, None])
    predicted, filtered, ahead, means = np.empty((4, count, pairs, arms))
    gaps = np.append(0.0, np.diff(smoothed.times))
    variance, mean = np.tile(smoothed.prior_variance, (pairs, 1)), np.zeros((pairs, arms))
    for k in range(count):
        predicted[k] = variance + gaps[k] * drift[:, 0] + smoothed.moves[k]
        ahead[k] = mean
        variance = predicted[k] / (1.0 + predicted[k] * sums[k])
        mean = mean + variance * (weighted[k] - sums[k] * mean)
        filtered[k], means[k] = variance, mean
    residual = weighted - sums * ahead
    fit = residual**2 * filtered + ahead * (weighted + residual) - np.log1p(predicted * sums)
    seen = np.log(precision, out=np.zeros_like(precision), where=precision > 0)
    fits = 0.5 * fit.sum(axis=(0, 2)) + 0.5 * (seen - precision * rest**2).sum(axis=(1, 2))
    covariance = np.empty((count, count, pairs, arms))
    covariance[-1, -1] = filtered[-1]
    for k in range(count - 2, -1, -1):
        gain = filtered[k] / predicted[k + 1]
        means[k] += gain * (means[k + 1] - ahead[k + 1])
        later = covariance[k + 1, k + 1 :]
        covariance[k, k + 1 :] = covariance[k + 1 :, k] = gain * later
        covariance[k, k] = filtered[k] + gain**2 * (later[0] - predicted[k + 1])
    each = np.ascontiguousarray(covariance.transpose(2, 3, 0, 1))
    parts = zip(own.ravel().tolist(), precision, means.transpose(1, 0, 2), each, fits, strict=True)
    return [_Walk(smoothed, *part) for part in parts]


class _Days:
    """The posterior of one model: random walks of arms, effects of days, common level, features.

    Level and effect of a day are one effect on all arms; theta comes after those of all days.
    ``effect`` is their mean. Around it are the effect of the day, by the Cholesky factor of its
    precision, and ``level`` times a standard normal vector; ``load`` is c.
    """

    def __init__(self, walk: _Walk, share: int, variance: float) -> None:
        self.walk, self.fit = walk, float(walk.fit)
        self.load = walk.smoothed.relative**share
        self.precision, self.rest = walk.of_days(share)
        self.count = count = len(walk.precision)  # of days
        self.effect, self.level = np.zeros(len(self.rest)), np.zeros((len(self.rest), 0))
        self.factor: FloatArray | None = None
        if variance > 0:
            common = variance * walk.smoothed.pooled
            self.factor = _root(np.eye(count) / common + self.precision[:count, :count])
            half = _solved(self.factor, self.rest[:count])
            self.effect[:count] = _solved(self.factor, half, transposed=True)
            self.fit += 0.5 * float(half @ half)
            self.fit -= float(np.log(self.factor.diagonal()).sum()) + 0.5 * count * math.log(common)

    @cached_property
    def steps(self) -> tuple[FloatArray, FloatArray]:
        """What theta and the steps of the level add to the effect, and their precision."""
        steps, theta = self.walk.smoothed.steps, len(self.rest) - self.count
        found = np.zeros((len(self.rest), theta + steps.shape[1]))
        found[self.count :, :theta], found[: self.count, theta:] = np.eye(theta), steps
        pull = self.precision @ found
        if self.factor is not None:
            pulled = _solved(self.factor, pull[: self.count])
            found[: self.count] -= _solved(self.factor, pulled, transposed=True)
        return found, pull.T @ found

    def with_level(self, variance: float) -> _Days:
        """Return the same model with features, and with a level that walks."""
        steps, precision = self.steps
        theta = len(self.rest) - self.count
        used = theta + (len(precision) - theta if variance > 0 else 0)
        if not used:
            return self
        size = np.full(used, math.sqrt(variance * self.walk.smoothed.pooled))
        size[:theta] = self.walk.smoothed.scale
        factor = _root(np.eye(used) + size[:, None] * precision[:used, :used] * size)
        found = copy(self)
        found.level = _solved(factor, (steps[:, :used] * size).T).T
        half = self.rest @ found.level
        found.effect = self.effect + found.level @ half
        found.fit += 0.5 * float(half @ half) - float(np.log(factor.diagonal()).sum())
        return found

    @property
    def shift(self) -> FloatArray:
        """What level, day and features add to a bill, (days, arms)."""
        return self._shift(self.effect)

    def _shift(self, effect: FloatArray) -> FloatArray:
        """Return what effects add to a bill, (..., days, arms)."""
        days, theta = effect[..., : self.count], effect[..., self.count :]
        of_features = np.einsum("tip,...p->...ti", self.walk.smoothed.phi, theta)
        return np.asarray(days[..., None] * self.load + of_features)

    def means(self) -> FloatArray:
        """Return the expected mean of each day and arm, without its own effects of days."""
        walk, smoothed = self.walk, self.walk.smoothed
        pull = np.zeros_like(walk.means)
        np.add.at(pull, smoothed.bins, walk.precision * self.shift)
        means = walk.means - np.einsum("ikl,li->ki", walk.covariance, pull)
        return np.asarray(smoothed.prior_mean + means[smoothed.bins] + self.shift)

    def contrast(self, weights: FloatArray, groups: IntArray, count: int) -> Contrast:
        """Return the posterior of one model; see ``Smoothed.contrast``."""
        walk, smoothed = self.walk, self.walk.smoothed
        bins, precision = smoothed.bins, walk.precision
        counted = groups >= 0
        # the effect of a day on an arm is known in part, from the bills of that day
        gain = walk.own * precision
        left = np.where(counted[:, None], weights * (1 - gain), 0.0)
        known = np.where(counted[:, None], weights * gain * walk.rest, 0.0).sum(axis=1)
        unknown = np.where(counted[:, None], weights**2 * walk.own * (1 - gain), 0.0).sum(axis=1)
        group = np.where(counted, groups, 0)
        mean: FloatArray = np.bincount(group, known, count).astype(float)
        covariance: FloatArray = np.diag(np.bincount(group, unknown, count).astype(float))
        level = np.where(counted, weights @ smoothed.prior_mean, 0.0)
        mean += np.bincount(group, level, count)
        on_days = np.zeros((count, len(self.rest)))
        on_days[group, np.arange(len(bins))] = left @ self.load
        np.add.at(on_days[:, len(bins) :], group, np.einsum("ti,tip->tp", left, smoothed.phi))
        used = np.flatnonzero(left.any(axis=0))
        for arms in np.split(used, range(0, len(used), max(MOST_ENTRIES // on_days.size, 1))[1:]):
            sums = np.zeros((count, len(smoothed.times), len(arms)))
            np.add.at(sums, (group, bins), left[:, arms])
            by_arm = np.ascontiguousarray(sums.transpose(2, 0, 1))
            pulled = by_arm @ walk.covariance[arms]  # (arms, groups, bins)
            mean += (by_arm @ walk.means.T[arms, :, None]).sum(axis=(0, 2))
            covariance += (pulled @ by_arm.transpose(0, 2, 1)).sum(axis=0)
            pulled = pulled[:, :, bins] * precision[:, arms].T[:, None]
            on_days[:, : len(bins)] -= np.tensordot(self.load[arms], pulled, 1)
            on_days[:, len(bins) :] -= np.einsum("igt,tip->gp", pulled, smoothed.phi[:, arms])
        mean += on_days @ self.effect
        of_level = on_days @ self.level
        covariance += of_level @ of_level.T
        if self.factor is not None:
            half = _solved(self.factor, on_days[:, : len(bins)].T)
            covariance += half.T @ half
        return Contrast(mean, covariance)

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw the means of all days and arms, (count, days, arms)."""
        walk, smoothed = self.walk, self.walk.smoothed
        bins, precision = smoothed.bins, walk.precision
        arms = precision.shape[1]
        effect = self.effect + rng.standard_normal((count, self.level.shape[1])) @ self.level.T
        if self.factor is not None:
            noise = rng.standard_normal((len(bins), count))
            effect[:, : len(bins)] += _solved(self.factor, noise, transposed=True).T
        shift = self._shift(effect)
        pull = np.zeros((len(smoothed.times), count, arms))
        np.add.at(pull, bins, shift.transpose(1, 0, 2) * precision[:, None])
        values, vectors = np.linalg.eigh(walk.covariance)  # a walk that hardly moves is singular
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None]
        noise = rng.standard_normal(pull.shape)
        means = walk.means + np.einsum("ikl,lni->nki", roots, noise)
        means -= np.einsum("ikl,lni->nki", walk.covariance, pull)
        found = means[:, bins] + shift
        gain = walk.own * precision
        found += gain * (walk.rest - found)
        found += np.sqrt(walk.own * (1 - gain)) * rng.standard_normal(found.shape)
        return np.asarray(smoothed.prior_mean + found)


def _largest(reports: Reports) -> float:
    """Return the largest range of the losses of an arm."""
    return float((reports.high - reports.low).max())


def _root(precision: FloatArray) -> FloatArray:
    """Return the lower triangle of Cholesky."""
    return np.asarray(np.linalg.cholesky(precision), dtype=float)


def _solved(factor: FloatArray, right: FloatArray, transposed: bool = False) -> FloatArray:
    """Return the solution of ``factor`` x = right, for a lower triangle or its transpose."""
    from scipy.linalg import solve_triangular

    trans: Literal["N", "T"] = "T" if transposed else "N"
    found = solve_triangular(factor, right, trans=trans, lower=True, check_finite=False)
    return np.asarray(found, dtype=float)
