"""How far and how long losses of a table stay away from their mean: likelihoods over a grid.

The average y of a units of arm i in round t is modelled as

    y = mu_i + <beta, z_it> + x_it + noise,  x_i,t+1 = rho x_it + N(0, (1 - rho^2) v s_i^2),

with noise of the variance s_i^2 (c + (1 - c) / a), as in docs/persists.md. Regressors z (weekdays,
a trend) have coefficients of all arms, or of each arm. Kalman filters with a flat prior of mu_i
turn y and z into independent errors, for each pair (rho, v) of a grid; the rest is least squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from multiplay.types import BoolArray, FloatArray, IntArray

RHOS = np.array([*np.arange(0.1, 0.8, 0.1), 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.999])
SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.97, 0.99])  # v / (1 + v)
FINE = 16  # pairs of a second grid, in each direction
WEAK = 1e-6  # precision of a coefficient before anything is seen
# Twice the logarithm of a ratio of likelihoods. rho is not known where nothing persists, so that
# the first is no quantile of chi^2: 2 of 700 tables in which nothing persists exceed it
# (tests/statistical/test_data_levels.py). The second is the .95 quantile of chi^2 with 1 degree.
PERSISTING, WITHIN = 9.0, 3.84


class Cells(NamedTuple):
    """The averages of a table by arm and round.

    Attributes
    ----------
    y : array
        The average loss of each arm in each round, (rounds, arms), in deviations s_i; NaN if it has
        none.
    units : array
        The number of units.
    z : array
        The regressors, (rounds, arms, k).
    common : float
        c, the share of the noise that the units of a round have in common.
    """

    y: FloatArray
    units: FloatArray
    z: FloatArray
    common: float


class Fit(NamedTuple):
    """Losses that persist, as they were fitted to a table.

    Attributes
    ----------
    ratio : float
        Twice the logarithm of the likelihood, over that where nothing persists.
    rho, low, high : float
        The share of a deviation that is left after a round, with its 95 % interval.
    share : float
        The share of the variance of a unit's loss in an arm that persists.
    coefficients, errors : array
        Those of regressors that all arms share, and their standard errors.
    """

    ratio: float
    rho: float
    low: float
    high: float
    share: float
    coefficients: FloatArray
    errors: FloatArray

    @property
    def persists(self) -> bool:
        """Whether that is certain at the level of 0.01."""
        return self.ratio > PERSISTING


class Filters:
    """The errors of forecasts, for each pair (rho, v), as sums of squares and products."""

    def __init__(self, cells: Cells, rhos: FloatArray = RHOS, shares: FloatArray = SHARES) -> None:
        self.cells, self.rhos, self.shares = cells, rhos, shares
        rho, share = (one.ravel() for one in np.meshgrid(rhos, shares, indexing="ij"))
        self.rho, v = np.append(rho, 0.0), np.append(share / (1 - share), 0.0)  # the last: nothing
        self.share = np.append(share, 0.0)
        rounds, arms, k = cells.z.shape
        G = len(v)
        self.A = np.zeros((arms, G, k + 1, k + 1))  # of y and z
        self.logs = np.zeros(G)  # of the variances of errors
        m0, m1 = np.zeros((2, arms, G, k + 1))
        P00, P01, P11 = np.zeros((3, arms, G))
        last = np.full(arms, -1)
        for t in range(rounds):
            (seen,) = (~np.isnan(cells.y[t])).nonzero()
            w = np.concatenate([cells.y[t, seen, None], cells.z[t, seen]], axis=1)[:, None]
            R = (cells.common + (1 - cells.common) / cells.units[t, seen])[:, None]
            new, old = last[seen] < 0, last[seen] >= 0
            at, w0, R0 = seen[new], w[new], R[new]
            m0[at], P00[at], P01[at], P11[at] = w0, v + R0, -v, v
            at, w, R = seen[old], w[old], R[old]
            left = self.rho ** (t - last[at])[:, None]
            x, p01 = left[:, :, None] * m1[at], left * P01[at]
            p00, p11 = P00[at], left**2 * P11[at] + (1 - left**2) * v
            S = p00 + 2 * p01 + p11 + R
            e = w - m0[at] - x
            self.A[at] += e[:, :, :, None] * e[:, :, None] / S[:, :, None, None]
            self.logs += np.log(S).sum(axis=0)
            k0, k1 = (p00 + p01) / S, (p01 + p11) / S
            m0[at], m1[at] = m0[at] + k0[:, :, None] * e, x + k1[:, :, None] * e
            P00[at], P01[at], P11[at] = p00 - k0**2 * S, p01 - k0 * k1 * S, p11 - k1**2 * S
            last[seen] = t
        self.own = P00  # variance of mu_i, over s_i^2
        self.errors = int((~np.isnan(cells.y)).sum() - (last >= 0).sum())

    def finer(self, fit: Fit) -> Filters:
        """Return the filters of a grid around a fit, which is wider than its interval."""
        around = []
        for grid, low, high in (
            (self.rhos, fit.low, fit.high),
            (self.shares, fit.share, fit.share),
        ):
            below, above = grid[grid < low], grid[grid > high]
            first, last = [grid[0], *below][-2:][0], [*above, grid[-1]][:2][-1]
            around.append(np.linspace(first, last, FINE))
        return Filters(self.cells, *around)

    @cached_property
    def used(self) -> BoolArray:
        """Which regressors differ from round to round in each arm, (arms, k)."""
        squares: FloatArray = np.diagonal(self.A[:, -1], axis1=1, axis2=2)[:, 1:]
        return np.asarray(squares > WEAK)

    def squares(self, shared: Sequence[int], own: Sequence[int]) -> Squares:
        """Return the least squares for regressors that all arms share, and that each has."""
        rest, of_arm = [0, *(1 + k for k in shared)], [1 + k for k in own]
        A, logs = self.A[:, :, rest][:, :, :, rest], np.zeros(len(self.logs))
        if own:
            inner = self.A[:, :, of_arm][:, :, :, of_arm] + WEAK * np.eye(len(own))
            cross = self.A[:, :, of_arm][:, :, :, rest]
            A = A - np.swapaxes(cross, 2, 3) @ np.linalg.solve(inner, cross)
            logs += np.linalg.slogdet(inner)[1].sum(axis=0)
        total = A.sum(axis=0)
        inner = total[:, 1:, 1:] + WEAK * np.eye(len(shared))
        beta = np.linalg.solve(inner, total[:, 1:, :1])[:, :, 0]
        left = total[:, 0, 0] - (total[:, 0, 1:] * beta).sum(axis=1)
        logs += np.linalg.slogdet(inner)[1]
        count = int(self.used[:, list(shared)].max(axis=0).sum() + self.used[:, list(own)].sum())
        return Squares(left, self.errors - count, -0.5 * (self.logs + logs), beta, inner)

    def fit(self, shared: Sequence[int], own: Sequence[int]) -> Fit:
        """Return the pair (rho, v) that is most likely, with its interval."""
        found = self.squares(shared, own)
        likely = found.likely
        at, nothing = int(likely[:-1].argmax()), float(likely[-1])
        best = float(likely[at])
        profile = 2 * (best - likely[:-1].reshape(len(self.rhos), -1).max(axis=1))
        low, high = ends(self.rhos, profile)
        use = at if best > nothing else len(likely) - 1
        variances = np.linalg.inv(found.inner[use]) * found.left[use] / found.free
        errors: FloatArray = np.sqrt(np.diagonal(variances))
        return Fit(
            max(2 * (best - nothing), 0.0),
            *(float(self.rho[at]), low, high, float(self.share[at])),
            *(found.beta[use], errors),
        )


class Squares(NamedTuple):
    """Least squares for each pair (rho, v): what is left, and the coefficients that arms share."""

    left: FloatArray
    free: int
    logs: FloatArray
    beta: FloatArray
    inner: FloatArray

    @property
    def likely(self) -> FloatArray:
        """The logarithm of the (restricted) likelihood of each pair."""
        likely: FloatArray = self.logs - 0.5 * self.free * np.log(self.left)
        return likely


def ends(rhos: FloatArray, profile: FloatArray) -> tuple[float, float]:
    """Return the interval of rho in which a profile is small; its root is linear near the best."""
    found, root = [], np.sqrt(profile)
    edges = 0.0 if rhos[0] == RHOS[0] else rhos[0], 1.0 if rhos[-1] == RHOS[-1] else rhos[-1]
    for step, edge in zip((-1, 1), map(float, edges), strict=True):
        k = int(profile.argmin())
        while 0 <= k < len(rhos) and profile[k] < WITHIN:
            k += step
        if not 0 <= k < len(rhos):
            found.append(edge)
            continue
        share = (np.sqrt(WITHIN) - root[k - step]) / (root[k] - root[k - step])
        found.append(float(rhos[k - step] + share * (rhos[k] - rhos[k - step])))
    return found[0], found[1]


def better(
    filters: Filters, small: Sequence[Sequence[int]], large: Sequence[Sequence[int]]
) -> float:
    """Return the p-value of what a larger model adds, for the pair that is most likely for it.

    A model is given by its regressors that all arms share, and that each arm has.
    """
    from scipy.stats import f

    one, other = filters.squares(*small), filters.squares(*large)
    more = one.free - other.free
    if more <= 0 or other.free <= 0:
        return 1.0
    at = int(other.likely.argmax())
    gain = (one.left[at] - other.left[at]) / more
    return float(f.sf(gain / (other.left[at] / other.free), more, other.free))


def averages(
    arm: IntArray, round: IntArray, loss: FloatArray, shape: tuple[int, int]
) -> FloatArray:
    """Return the units, the average and the squares within each cell, (3, rounds, arms)."""
    rounds, arms = shape
    cell = round * arms + arm
    units = np.bincount(cell, minlength=rounds * arms).astype(float)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(cell, weights=loss, minlength=rounds * arms) / units
    apart = (loss - mean[cell]) ** 2
    within = np.bincount(cell, weights=apart, minlength=rounds * arms)
    found: FloatArray = np.stack([units, mean, within]).reshape(3, rounds, arms)
    return found


def in_common(units: FloatArray, mean: FloatArray, within: FloatArray) -> float:
    """Return c, the share of the noise that units of a round have in common; 0 if it is unknown.

    What they do not share is seen within rounds, and the rest between successive ones.
    """
    freedom = float((units - 1).clip(0).sum())
    pair = (units[1:] > 0) & (units[:-1] > 0)
    if freedom == 0 or not pair.any() or within.sum() == 0:
        return 0.0
    unit = float(within.sum()) / freedom
    half = 0.5 * (mean[1:] - mean[:-1])[pair] ** 2
    inverse = 0.5 / units[1:][pair] + 0.5 / units[:-1][pair]
    day = max(float((half - unit * inverse).mean()), 0.0)
    return day / (day + unit)
