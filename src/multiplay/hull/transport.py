"""The hull of transport plans: the transport polytope, by a Newton step without a general graph."""

import numpy as np

from multiplay.hull.base import Hull, Regulariser, not_converged
from multiplay.hull.graph import bipartite, rounded
from multiplay.kernels.newton import minimise
from multiplay.kernels.newton_pairs import minimise_pairs
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray, IntArray


class TransportHull(Hull):
    r"""The transport polytope, whose vertices are integral.

    .. math::

        \operatorname{conv}(\mathcal{A}) = \Bigl\{x \ge 0 :
            \; & \sum_k x_{jk} = \text{supply}_j, \\
            & \sum_j x_{jk} = \text{demand}_k\Bigr\}

    Suppliers and demanders with nothing to send or take, and everything when only one supplier or
    one demander is left, have no freedom: those arms are forced, and never reach the optimisation.

    Parameters
    ----------
    supply, demand
        Arrays of whole numbers with equal sums.

    Examples
    --------
    >>> hull = TransportHull(np.array([1, 4, 5]), np.array([4, 6]))
    >>> centre = hull.start(trials=1)
    >>> centre["x"]
    array([[0.4, 0.6, 1.6, 2.4, 2. , 3. ]])
    >>> hull.draw(centre, np.random.default_rng(0))  # every arm is rounded down or up
    array([[0, 1, 2, 2, 2, 3]])
    """

    point = ("x", "rest", "multipliers")
    rounds = True

    def __init__(self, supply: IntArray, demand: IntArray) -> None:
        self.n = np.minimum.outer(supply, demand).ravel().astype(float)
        rows, cols = np.flatnonzero(supply), np.flatnonzero(demand)
        self.has_freedom = len(rows) >= 2 and len(cols) >= 2
        free = np.arange(len(self.n)).reshape(len(supply), len(demand))[np.ix_(rows, cols)]
        sides = [supply[rows], demand[cols]]
        if len(cols) > len(rows):
            # the Schur complement is as large as the second side: let it be the shorter one
            free, sides = free.T, sides[::-1]
        self.free, self.sums = np.ascontiguousarray(free), np.concatenate(sides).astype(float)
        # interior when both sides have two nodes, and the only plan when they do not
        self.centre = np.outer(supply, demand / max(demand.sum(), 1)).ravel()
        self.graph = bipartite(supply, demand)

    def start(self, trials: int) -> Arrays:
        """Return the independent plan u_x v_y / sum(u), with multipliers zero."""
        x = np.tile(self.centre, (trials, 1))
        multipliers = np.zeros((trials, sum(self.free.shape)))
        return {"x": x, "rest": self.n - x, "multipliers": multipliers}

    def minimise(
        self, costs: FloatArray, beta: FloatArray, regulariser: Regulariser, warm: Arrays
    ) -> Arrays:
        """Run damped Newton from ``warm``; see ``kernels.newton`` and ``kernels.newton_pairs``."""
        x, rest, dual = warm["x"].copy(), warm["rest"].copy(), warm["multipliers"].copy()
        step = minimise_pairs if self.free.shape[1] == 2 else minimise
        if self.has_freedom and not step(
            self.free, self.sums, self.n, costs, beta, regulariser.phi, x, rest, dual
        ):
            raise not_converged()
        return {"x": x, "rest": rest, "multipliers": dual}

    def draw(self, point: Arrays, rng: Rng) -> IntArray:
        """Draw by dependent rounding: every arm is rounded down or up, margins exact, mean x."""
        return rounded(self.graph, point["x"], point["rest"], rng)
