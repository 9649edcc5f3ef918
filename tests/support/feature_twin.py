"""Slow twin of FeatureRegression: the dense posterior of coefficients and effects, in plain numpy.

For each size of the effects it keeps the precision matrix of (theta, b), with p + d rows, and adds
a report as one row of least squares. Nothing is eliminated, and nothing is compiled.
"""

from itertools import product

import numpy as np

from multiplay.types import FloatArray, IntArray

SIZES = (0.0, 0.0125, 0.03, 0.075, 0.2)
ALONE = np.array([0.004, 0.0125, 0.03, 0.075, 0.2])
CHANCES = np.array([0.01, 0.04, 0.25, 0.35, 0.35])


class Noise:
    """Variances s_u^2, s_e^2 and k, by weighted least squares with a prior, none negative."""

    def __init__(self, discount: float) -> None:
        self.discount = discount
        self.values = np.array([0.05**2, 1 / 4, 0.0])
        self.S0 = np.diag([25_000.0, 10_000.0, 10.0])
        self.t0 = self.S0 @ self.values
        self.S, self.t = self.S0.copy(), self.t0.copy()

    def fade(self) -> None:
        self.S = self.S0 + self.discount * (self.S - self.S0)
        self.t = self.t0 + self.discount * (self.t - self.t0)

    def add(self, weight: float, row: list[float], found: float) -> None:
        x = np.array(row)
        self.S = self.S + weight * np.outer(x, x)
        self.t = self.t + weight * found * x

    def fit(self) -> None:
        best, least = np.zeros(3), float("inf")
        for used in product([False, True], repeat=3):
            x = np.zeros(3)
            if any(used):
                x[list(used)] = np.linalg.solve(self.S[np.ix_(used, used)], self.t[list(used)])
            loss = float(x @ self.S @ x / 2 - self.t @ x)
            if (x >= 0).all() and loss < least:
                best, least = x, loss
        self.values = np.maximum(best, [1e-5, 1e-6, 0.0])


class FeatureTwin:
    """The posterior for one trial, with d arms from the start."""

    def __init__(self, d: int, p: int, effects: bool = True, discount: float = 1.0) -> None:
        self.d, self.p, self.effects, self.discount = d, p, effects, discount
        self.sizes = (ALONE if p == 1 else SIZES) if effects else SIZES[:1]
        self.m0 = np.append(np.append(0.5, np.zeros(p - 1)), np.zeros(d))
        self.prior = [np.diag([4.0] * p + [1 / s**2 if s else 0.0] * d) for s in self.sizes]
        self.L = np.zeros((p + d, p + d))  # precision and precision times mean of the reports
        self.r = np.zeros(p + d)
        chances = CHANCES if p == 1 else np.full(5, 0.2)
        self.ev0 = np.log(chances if effects else np.ones(1))
        self.ev = self.ev0.copy()
        self.noise = Noise(discount)

    def pass_round(self) -> None:
        if self.discount < 1:
            self.L, self.r = self.discount * self.L, self.discount * self.r
            self.ev = self.ev0 + self.discount * (self.ev - self.ev0)
            if self.effects:
                self.noise.fade()

    def moments(self, g: int) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the covariance of (theta, b)."""
        keep = slice(None) if self.sizes[g] else slice(0, self.p)  # no effects: b = 0
        P = (self.prior[g] + self.L)[keep, keep]
        r = (self.prior[g] @ self.m0 + self.r)[keep]
        mean, covariance = np.zeros(len(self.m0)), np.zeros(self.L.shape)
        mean[keep], covariance[keep, keep] = np.linalg.solve(P, r), np.linalg.inv(P)
        return mean, covariance

    def rows(self, phi: FloatArray) -> FloatArray:
        return np.concatenate([phi, np.eye(self.d)], axis=1)

    def learn(
        self, arms: IntArray, phi: FloatArray, a: FloatArray, y: FloatArray, scatter: FloatArray
    ) -> None:
        """Learn from a round: phi is by arm of the round."""
        best = int(np.argmax(self.ev))
        row = {i: np.append(f, np.eye(self.d)[i]) for i, f in zip(arms, phi, strict=True)}
        mean = self.moments(best)[0]
        chance = {i: float(np.clip(row[i] @ mean, 0.03, 0.97)) for i in arms}
        q = {i: m * (1 - m) for i, m in chance.items()}
        if self.effects:
            for i, n, s in zip(arms, a, scatter, strict=True):
                if n > 1 and np.isfinite(s):
                    self.noise.add(50_000 * (n - 1), [0.0, 1.0, q[i]], s / (n - 1))
            self.noise.fit()
            u, e, k = self.noise.values
        else:
            u, e, k = 0.0, 0.25, 0.0
        for i, n, average in zip(arms, a, y, strict=True):
            if n == 0:
                continue
            nu = u + (e + k * q[i]) / n
            for g in range(len(self.sizes)):
                mean, covariance = self.moments(g)
                v = row[i] @ covariance @ row[i] + nu
                error = average - row[i] @ mean
                self.ev[g] -= 0.5 * (np.log(v) + error**2 / v)
                if g == best:
                    found = error**2 - (v - nu)
                    self.noise.add(1 / (v - nu + 0.01) ** 2, [1.0, 1 / n, q[i] / n], found)
            self.L = self.L + np.outer(row[i], row[i]) / nu
            self.r = self.r + row[i] * average / nu
        if self.effects:
            self.noise.fit()

    def shares(self) -> FloatArray:
        share: FloatArray = np.exp(self.ev - self.ev.max())
        share /= share.sum()
        return share

    def posterior(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation of <row, (theta, b)> for each row: a mixture over sizes."""
        parts = [self.moments(g) for g in range(len(self.sizes))]
        share = self.shares()
        means = np.array([rows @ mean for mean, _ in parts])
        variances = np.array([((rows @ C) * rows).sum(axis=1) for _, C in parts])
        mean = share @ means
        return mean, np.sqrt(share @ (variances + (means - mean) ** 2))
