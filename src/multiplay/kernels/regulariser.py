"""The regulariser of the FTRL steps, written once for all of them.

``phi(x) = n [barrier (u - 1 - log u) + entropy (u + (1 - u) log(1 - u)) - root sqrt(u)
+ shannon (1 - u + u log u)]`` with ``u = x / n``. The weights of its four parts stand in an array
``phi`` (arms, 4), in this order, or (1, 4) if they are the same for all arms. What happens near
``u = 0``, by all parts but the entropy, and near ``v = 1 - u = 0``, by the entropy, is computed
by separate functions: each caller treats tiny numbers in its own way.
"""

import math
from typing import Any

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray


@subroutine
def weights(phi: FloatArray, arm: int) -> Any:
    """Return the weights of the four parts for an arm."""
    row = arm if len(phi) > 1 else 0
    return phi[row, 0], phi[row, 1], phi[row, 2], phi[row, 3]


@kernel
def logarithms(entropy: float, shannon: float, u: float, v: float) -> Any:
    """Return shannon log u - entropy log v; one logarithm, where one will do."""
    if shannon == 0.0:
        return -entropy * math.log(v)
    if shannon == entropy:
        return shannon * math.log(u / v)
    return shannon * math.log(u) - entropy * math.log(v)


@kernel
def slope(barrier: float, root: float, u: float, logs: float) -> Any:
    """phi' = barrier (1 - 1/u) - root / (2 sqrt(u)) + shannon log u - entropy log(1 - u)."""
    phi1 = barrier * (1.0 - 1.0 / u) + logs
    if root > 0.0:
        phi1 -= 0.5 * root / math.sqrt(u)
    return phi1


@kernel
def curvature_below(barrier: float, root: float, shannon: float, u: float) -> Any:
    """u^2 times the part of n phi'' that comes from the side of 0.

    n phi'' = barrier / u^2 + root / (4 u^(3/2)) + shannon / u + entropy / (1 - u).
    """
    below = barrier
    if root > 0.0:
        below += 0.25 * root * math.sqrt(u)
    if shannon > 0.0:
        below += shannon * u
    return below


@kernel
def third_below(barrier: float, root: float, shannon: float, u: float) -> Any:
    """-u^3 times the part of n^2 phi''' that comes from the side of 0.

    n^2 phi''' = -2 barrier / u^3 - 3 root / (8 u^(5/2)) - shannon / u^2 + entropy / (1 - u)^2.
    """
    below = 2.0 * barrier
    if root > 0.0:
        below += 0.375 * root * math.sqrt(u)
    if shannon > 0.0:
        below += shannon * u
    return below
