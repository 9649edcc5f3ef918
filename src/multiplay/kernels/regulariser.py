"""The regulariser of the FTRL steps, written once for all of them.

``phi(x) = n [barrier (u - 1 - log u) + entropy (u + (1 - u) log(1 - u)) - root sqrt(u)]`` with
``u = x / n``. Its parts near ``u = 0``, the barrier and the root, and near ``v = 1 - u = 0``, the
entropy, are asked for one by one: each caller knows its own way to treat tiny numbers.
"""

import math
from typing import Any

from multiplay.kernels.jit import kernel


@kernel
def slope(barrier: float, entropy: float, root: float, u: float, log_v: float) -> Any:
    """phi' = barrier (1 - 1/u) - entropy log(1 - u) - root / (2 sqrt(u))."""
    phi1 = barrier * (1.0 - 1.0 / u) - entropy * log_v
    if root > 0.0:
        phi1 -= 0.5 * root / math.sqrt(u)
    return phi1


@kernel
def curvature_below(barrier: float, root: float, u: float) -> Any:
    """u^2 times the part of n phi'' that comes from the side of 0.

    n phi'' = barrier / u^2 + root / (4 u^(3/2)) + entropy / (1 - u).
    """
    below = barrier
    if root > 0.0:
        below += 0.25 * root * math.sqrt(u)
    return below
