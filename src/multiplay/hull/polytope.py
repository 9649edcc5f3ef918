"""The hull of actions in a list: its facets, a barrier on it, and draws from it."""

from typing import NamedTuple

import numpy as np

from multiplay.kernels import scribble as kernels
from multiplay.types import FloatArray, IntArray

NEGLIGIBLE = 1e-9  # a slack below this, relative to the largest, is zero


class Facets(NamedTuple):
    """conv(Y) = {y : C y <= b}, with one row of C, of length 1, for each facet."""

    C: FloatArray
    b: FloatArray


class Simplices(NamedTuple):
    """A triangulation of the actions: y has coordinates inverse[k] @ (y, 1) in simplex k.

    ``corners`` has the numbers of its r + 1 actions; the coordinates are weights of these with the
    mean y, all of them non-negative where simplex k contains y.
    """

    corners: IntArray
    inverse: FloatArray


class Polytope:
    """The hull of the points Y, (K, r), with the barrier psi(y) = -sum_j log(b_j - C_j y).

    Examples
    --------
    >>> from multiplay import Transport
    >>> hull = Transport([1, 4, 5], [4, 6]).listed().polytope
    >>> hull.theta
    4
    """

    def __init__(self, Y: FloatArray, facets: Facets, simplices: Simplices) -> None:
        self.Y, self.facets, self.simplices = Y, facets, simplices
        slack = facets.b - Y @ facets.C.T
        self.slack: FloatArray = np.where(slack < NEGLIGIBLE * slack.max(), 0.0, slack)

    @property
    def theta(self) -> int:
        """The parameter of the barrier: the number of facets."""
        return len(self.facets.b)

    def minimise(
        self, costs: FloatArray, beta: FloatArray, warm: FloatArray | None = None
    ) -> FloatArray:
        """Return argmin of <costs, y> + beta psi(y), sought from ``warm``, or from the centre."""
        x = np.zeros_like(costs) if warm is None else warm.copy()
        kernels.minimise(*self.facets, costs / beta[:, None], x)
        return x

    def eigenpairs(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return those of the Hessian of psi at x: lambda[k, i], and e[k, i], a vector."""
        lambdas, e = np.empty(x.shape), np.empty((*x.shape, x.shape[1]))
        kernels.eigenpairs(*self.facets, x, lambdas, e)
        return lambdas, e

    def nearest_action(self, x: FloatArray, steps: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the number of the action z with the least rho(z), and that rho.

        rho(z) is the least number such that z + (w - z) / rho is in the hull for all points
        w = x +- steps[:, i].
        """
        z, rho = np.empty(len(x), dtype=np.int64), np.empty(len(x))
        kernels.nearest_action(*self.facets, self.slack, x, steps, z, rho)
        return z, rho

    def draw(self, mean: FloatArray, u: FloatArray) -> IntArray:
        """Return the number of an action with this mean, made of one uniform number for each.

        It is a corner of the Delaunay simplex that contains the mean.
        """
        drawn = np.empty(len(mean), dtype=np.int64)
        kernels.draw(*self.simplices, mean, u, drawn)
        return drawn
