"""Random numbers inside kernels: the SFC64 generator and three distributions on top of it.

A generator is a row of four uint64. The bits are those of ``numpy.random.SFC64`` with the same
state, so numpy is the slow twin of this file.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray, IntArray

Generators = NDArray[np.uint64]  # (trials, 4)

_TO_UNIT = 1.0 / 9007199254740992.0  # 2^-53


@subroutine
def advance(a: Any, b: Any, c: Any, w: Any) -> Any:
    """Return 64 random bits, and the four words of the generator after them."""
    bits = a + b + w
    turned = (c << np.uint64(24)) | (c >> np.uint64(40))
    return bits, b ^ (b >> np.uint64(11)), c + (c << np.uint64(3)), turned + bits, w + np.uint64(1)


@subroutine
def next_bits(g: Generators) -> Any:
    """64 random bits; advances the generator ``g``."""
    bits, g[0], g[1], g[2], g[3] = advance(g[0], g[1], g[2], g[3])
    return bits


@subroutine
def mixed(number: Any) -> Any:
    """Return 64 bits that look random, other ones for every number.

    This is the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
    """
    z = np.uint64(number) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@subroutine
def seeded(base: Generators, salt: Any) -> Any:
    """Return the words of a generator of its own, for every ``base`` of three words and salt.

    They are the seed of SFC64; as in numpy, the first twelve numbers are thrown away.
    """
    a, b, c, w = base[0], base[1], base[2] ^ salt, np.uint64(1)
    for _ in range(12):
        _, a, b, c, w = advance(a, b, c, w)
    return a, b, c, w


@kernel
def begin(base: Generators, t: int, g: Generators) -> None:
    """Let ``g`` begin round t of a sequence that ``base``, three words, stands for."""
    g[0], g[1], g[2], g[3] = seeded(base, mixed(t))


@subroutine
def uniform(g: Generators) -> float:
    """Uniform on [0, 1)."""
    return np.int64(next_bits(g) >> np.uint64(11)) * _TO_UNIT


@subroutine
def normal_pair(g: Generators) -> tuple[float, float]:
    """Return two standard normal numbers by Marsaglia's polar method."""
    while True:
        v = 2.0 * uniform(g) - 1.0
        w = 2.0 * uniform(g) - 1.0
        s = v * v + w * w
        if 0.0 < s < 1.0:
            scale = math.sqrt(-2.0 * math.log(s) / s)
            return v * scale, w * scale


@subroutine
def gamma_above_one(g: Generators, shape: float, z: float) -> float:
    """Gamma(shape, 1) for shape >= 1, from a normal number z: Marsaglia and Tsang (2000)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        v = 1.0 + c * z
        if v > 0.0:
            v = v * v * v
            u = uniform(g)
            if u < 1.0 - 0.0331 * z**4 or math.log(u) < 0.5 * z * z + d * (1.0 - v + math.log(v)):
                return d * v
        z = normal_pair(g)[0]


@subroutine
def log_gamma_variate(g: Generators, shape: float, z: float) -> float:
    """Logarithm of a Gamma(shape, 1) number; it does not underflow for small shapes."""
    if shape >= 1.0:
        return math.log(gamma_above_one(g, shape, z))
    boost = math.log(1.0 - uniform(g)) / shape
    return math.log(gamma_above_one(g, shape + 1.0, z)) + boost


@subroutine
def beta(g: Generators, a: float, b: float) -> float:
    """Beta(a, b) as a ratio of gamma numbers."""
    z, w = normal_pair(g)
    if a >= 1.0 and b >= 1.0:
        x = gamma_above_one(g, a, z)
        return x / (x + gamma_above_one(g, b, w))
    log_ratio = log_gamma_variate(g, b, w) - log_gamma_variate(g, a, z)
    return 1.0 / (1.0 + math.exp(min(log_ratio, 700.0)))


@subroutine
def stirling_tail(k: float) -> float:
    """log k! minus Stirling's log sqrt(2 pi) + (k + 1/2) log(k + 1) - (k + 1)."""
    if k < 10.0:
        return (
            math.lgamma(k + 1.0)
            - 0.5 * math.log(2.0 * math.pi)
            - (k + 0.5) * math.log(k + 1.0)
            + (k + 1.0)
        )
    r = 1.0 / (k + 1.0)
    return (1.0 / 12.0 - (1.0 / 360.0 - r * r / 1260.0) * r * r) * r


@subroutine
def binomial(g: Generators, n: int, p: float) -> int:
    """Binomial(n, p): inversion for small means, Hörmann's (1993) BTRS otherwise."""
    if n == 0 or p <= 0.0:
        return 0
    if p >= 1.0:
        return n
    if p > 0.5:
        return n - binomial_small_p(g, n, 1.0 - p)
    return binomial_small_p(g, n, p)


@subroutine
def binomial_small_p(g: Generators, n: int, p: float) -> int:
    """Binomial(n, p) for p <= 1/2."""
    if n * p < 10.0:
        # sum geometric gaps between successes until they pass n
        log_q = math.log1p(-p)
        successes = 0
        position = math.floor(math.log(1.0 - uniform(g)) / log_q) + 1.0
        while position <= n:
            successes += 1
            position += math.floor(math.log(1.0 - uniform(g)) / log_q) + 1.0
        return successes
    spread = math.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    v_inside = 0.92 - 4.2 / b
    while True:
        u = uniform(g) - 0.5
        v = 1.0 - uniform(g)
        us = 0.5 - abs(u)
        k = math.floor((2.0 * a / us + b) * u + n * p + 0.5)
        if us >= 0.07 and v <= v_inside:
            return int(k)
        if 0 <= k <= n:
            density = (2.83 + 5.1 / b) * spread / (a / (us * us) + b)
            if math.log(v * density) <= log_relative_to_mode(n, p, k):
                return int(k)


@subroutine
def log_relative_to_mode(n: int, p: float, k: float) -> float:
    """Logarithm of P(k) / P(mode) for Binomial(n, p)."""
    mode, odds = math.floor((n + 1) * p), p / (1.0 - p)
    return (
        (mode + 0.5) * math.log((mode + 1.0) / (odds * (n - mode + 1.0)))
        + (n + 1.0) * math.log((n - mode + 1.0) / (n - k + 1.0))
        + (k + 0.5) * math.log(odds * (n - k + 1.0) / (k + 1.0))
        + stirling_tail(mode)
        + stirling_tail(n - mode)
        - stirling_tail(k)
        - stirling_tail(n - k)
    )


@subroutine
def pick(weights: FloatArray, mass: float) -> int:
    """Return the first place up to which the weights add up to more than ``mass``.

    It never has a weight of 0: where rounding leaves the sum short, it is the last that has more.
    """
    chosen = 0
    for i in range(len(weights)):
        if weights[i] > 0.0:
            chosen = i
            mass -= weights[i]
            if mass < 0.0:
                break
    return chosen


@kernel
def fill_uniform(generators: Generators, out: FloatArray) -> None:
    """out[k, :] from generator k."""
    for k in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[k, i] = uniform(generators[k])


@kernel
def fill_beta(generators: Generators, a: FloatArray, b: FloatArray, out: FloatArray) -> None:
    """out[k, i] ~ Beta(a[k, i], b[k, i])."""
    for k in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[k, i] = beta(generators[k], a[k, i], b[k, i])


@kernel
def fill_binomial(generators: Generators, n: IntArray, p: FloatArray, out: IntArray) -> None:
    """out[k, i] ~ Binomial(n[k, i], p[k, i])."""
    for k in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[k, i] = binomial(generators[k], n[k, i], p[k, i])
