"""Quantiles of beta distributions, at a normal number that all arms of a trial share.

A quantile is given by z with the probability Phi(z) below it, so that both tails are exact.
"""

import math

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray

NORMAL = 1_000.0  # parameters from which the expansion is off by less than 3e-6 in probability
STEEP = 5.0  # below it, the power law of the tail is the better first guess
ENOUGH = 1e-5  # step relative to x (1 - x): the next one would be about its square
MOST_STEPS, MOST_TERMS = 60, 100_000


@subroutine
def below(z: float) -> float:
    """Phi(z), the probability of less than z."""
    return 0.5 * math.erfc(-z * 0.7071067811865476)


@subroutine
def expansion(z: float, a: float, b: float) -> float:
    """The quantile of Beta(a, b) by Cornish and Fisher (1938), from four moments."""
    n = a + b
    mean = a / n
    deviation = math.sqrt(mean * (1.0 - mean) / (n + 1.0))
    skew = 2.0 * (b - a) * math.sqrt((n + 1.0) / (a * b)) / (n + 2.0)
    excess = 6.0 * ((a - b) ** 2 * (n + 1.0) / (a * b) - (n + 2.0)) / ((n + 2.0) * (n + 3.0))
    z2 = z * z
    w = z + (z2 - 1.0) * skew / 6.0 + z * (z2 - 3.0) * excess / 24.0
    return mean + deviation * (w - z * (2.0 * z2 - 5.0) * skew * skew / 36.0)


@subroutine
def fraction(a: float, b: float, x: float) -> float:
    """a B(a, b) F(x) / (x^a (1 - x)^b), by Lentz's continued fraction; x below the mean is fast."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    found = d
    for k in range(1, MOST_TERMS):
        term = k * (b - k) * x / ((a - 1.0 + 2 * k) * (a + 2 * k))
        d, c = 1.0 / (1.0 + term * d), 1.0 + term / c
        found *= d * c
        term = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 1.0 + 2 * k))
        d, c = 1.0 / (1.0 + term * d), 1.0 + term / c
        found *= d * c
        if abs(d * c - 1.0) < 1e-12:
            break
    return found


@subroutine
def lower_quantile(z: float, a: float, b: float) -> float:
    """The quantile of Beta(a, b) for z <= 0: Newton's method for log F as a function of log x.

    log F is concave in log x if b >= 1, so that the steps converge from any start. A bracket
    protects them for b < 1.
    """
    if a >= NORMAL and b >= NORMAL:
        return max(expansion(z, a, b), 0.0)
    u = below(z)
    if a == 1.0:
        return -math.expm1(math.log1p(-u) / b)
    log_u = math.log(u)
    if b == 1.0:
        return math.exp(log_u / a)
    log_B = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    middle = (a + 1.0) / (a + b + 2.0)
    x = expansion(z, a, b)
    if a < STEEP or not 0.0 < x < 1.0:
        x = math.exp((log_u + math.log(a) + log_B) / a)
        if x <= 0.0:
            return 0.0
        if x >= 1.0:
            x = middle
    low, high = 0.0, 1.0
    for _ in range(MOST_STEPS):
        slope = math.exp(a * math.log(x) + b * math.log1p(-x) - log_B)  # x (1 - x) F'(x)
        if x < middle:
            F = slope * fraction(a, b, x) / a
        else:
            F = 1.0 - slope * fraction(b, a, 1.0 - x) / b
        if u > F:
            low = x
        else:
            high = x
        new = 0.0
        if F > 0.0 and slope > 0.0:
            new = x * math.exp(min((log_u - math.log(F)) * F * (1.0 - x) / slope, 700.0))
        if abs(new - x) <= ENOUGH * x * (1.0 - x):
            return new
        x = new if low < new < high else (low + high) / 2.0
    return x


@subroutine
def beta_quantile(z: float, a: float, b: float) -> float:
    """The number below which Beta(a, b) is with probability Phi(z)."""
    return lower_quantile(z, a, b) if z <= 0.0 else 1.0 - lower_quantile(-z, b, a)


@kernel
def beta_quantiles(z: FloatArray, a: FloatArray, b: FloatArray, out: FloatArray) -> None:
    """out[k, i] = the quantile of Beta(a[k, i], b[k, i]) at z[k, 0], which all arms share."""
    for k in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[k, i] = beta_quantile(z[k, 0], a[k, i], b[k, i])
