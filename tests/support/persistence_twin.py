"""A slow twin of losses that persist: dense normal distributions in numpy, without a filter."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from multiplay.types import FloatArray


class Seen(NamedTuple):
    """A report of an arm: its round, its units, and their average."""

    round: int
    units: float
    average: float


class Normal(NamedTuple):
    """The mean and the covariance of (mu, x), the latter in units of the noise."""

    mean: FloatArray
    covariance: FloatArray


def covariance(rounds: FloatArray, others: FloatArray, rho: float, v: float) -> FloatArray:
    """Return the covariances of the deviations of rounds and others."""
    gaps = np.abs(rounds[:, None] - others)
    return v * np.where(gaps == 0, 1.0, rho**gaps)


def given(
    reports: Sequence[Seen],
    noises: Sequence[float],
    model: tuple[float, float],
    at: float,
    prior: tuple[float, float] | None = None,
) -> Normal:
    """Return (mu, x) of a round, given all reports at once; mu has a flat or a normal prior."""
    rounds = np.array([report.round for report in reports], dtype=float)
    y = np.array([report.average for report in reports])
    V = covariance(rounds, rounds, *model) + np.diag(noises)
    inverse, ones = np.linalg.inv(V), np.ones(len(y))
    precision, pull = ones @ inverse @ ones, ones @ inverse @ y
    if prior is not None:
        precision, pull = precision + 1 / prior[1], pull + prior[0] / prior[1]
    mu, own = pull / precision, 1 / precision
    c = covariance(np.array([float(at)]), rounds, *model)[0]
    x = c @ inverse @ (y - mu)
    slope = -c @ inverse @ ones  # of x by mu
    left = model[1] - c @ inverse @ c
    return Normal(
        np.array([mu, x]),
        np.array([[own, slope * own], [slope * own, left + slope**2 * own]]),
    )


def forecasts(
    reports: Sequence[Seen], noises: Sequence[float], model: tuple[float, float]
) -> list[tuple[float, float]]:
    """Return the error and the relative variance of the forecast of each report but the first."""
    found = []
    for k in range(1, len(reports)):
        before = given(reports[:k], noises[:k], model, reports[k].round)
        error = reports[k].average - before.mean.sum()
        found.append((float(error), float(before.covariance.sum() + noises[k])))
    return found


def log_student(error: float, variance: float, nu: float) -> float:
    """Return the logarithm of Student's density with this scale, squared, and sqrt(pi)."""
    return float(stats.t.logpdf(error, nu, scale=np.sqrt(variance)) + 0.5 * np.log(np.pi))
