"""The regulariser of the FTRL steps, written once for all of them.

``phi(x) = n [barrier (u - 1 - log u) + entropy (u + (1 - u) log(1 - u)) - root sqrt(u)
+ shannon (1 - u + u log u)]`` with ``u = x / n``. The weights of its four parts stand in an array
``phi`` (4, arms), in this order. What happens near ``u = 0``, by all parts but the entropy, and
near ``v = 1 - u = 0``, by the entropy, is asked for one by one: each caller knows its own way to
treat tiny numbers.
"""

import math
from typing import Any

from multiplay.kernels.jit import kernel
from multiplay.types import FloatArray

BARRIER, ENTROPY, ROOT, SHANNON = range(4)


@kernel
def slope(phi: FloatArray, a: int, u: float, log_v: float) -> Any:
    """phi' = barrier (1 - 1/u) - entropy log(1 - u) - root / (2 sqrt(u)) + shannon log u."""
    phi1 = phi[BARRIER, a] * (1.0 - 1.0 / u) - phi[ENTROPY, a] * log_v
    if phi[ROOT, a] > 0.0:
        phi1 -= 0.5 * phi[ROOT, a] / math.sqrt(u)
    if phi[SHANNON, a] > 0.0:
        phi1 += phi[SHANNON, a] * math.log(u)
    return phi1


@kernel
def curvature_below(phi: FloatArray, a: int, u: float) -> Any:
    """u^2 times the part of n phi'' that comes from the side of 0.

    n phi'' = barrier / u^2 + root / (4 u^(3/2)) + shannon / u + entropy / (1 - u).
    """
    below = phi[BARRIER, a]
    if phi[ROOT, a] > 0.0:
        below += 0.25 * phi[ROOT, a] * math.sqrt(u)
    if phi[SHANNON, a] > 0.0:
        below += phi[SHANNON, a] * u
    return below
