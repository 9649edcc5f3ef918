"""The hull of flows on any directed graph: its flow polytope."""

import numpy as np

from multiplay.hull.base import Hull, Regulariser, not_converged
from multiplay.hull.graph import Graph, rounded
from multiplay.kernels import network_newton
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray, IntArray


class NetworkHull(Hull):
    r"""The flow polytope of any directed graph, whose vertices are integral.

    .. math::

        \operatorname{conv}(\mathcal{A}) = \Bigl\{
            & (f_e)_{e \text{ arm}} : \text{low}_e \le f_e \le \text{high}_e, \\
            & \sum_{e \text{ out of } v} f_e - \sum_{e \text{ into } v} f_e = \text{balance}_v
            \text{ at every node } v\Bigr\}

    Parameters
    ----------
    graph
        Arcs and the balance of the nodes; parallel arcs and several components are welcome.
    low, high
        The least and the greatest flow of each arc. Arcs where they agree are forced, and never
        reach the optimisation.
    centre
        A flow that is strictly between ``low`` and ``high`` on all other arcs.
    arms
        The arcs that are arms, in the order of the arms. The others are free of cost.

    Examples
    --------
    >>> from multiplay import Network
    >>> roads = Network(
    ...     arcs=[("mine", "port"), ("mine", "mill"), ("mill", "port")],
    ...     supplies={"mine": 4, "port": -4},
    ...     capacities=[3, 2, None],
    ... )
    >>> roads.hull.start(trials=1)["x"]
    array([[2.5, 1.5, 1.5]])
    >>> roads.hull.draw(roads.hull.start(trials=1), np.random.default_rng(0))
    array([[2, 2, 2]])
    """

    point = ("x", "rest", "multipliers", "slack")
    rounds = True

    def __init__(
        self,
        graph: Graph,
        low: IntArray,
        high: IntArray,
        centre: FloatArray,
        arms: IntArray,
    ) -> None:
        forced = low == high
        self.graph, self.arms = graph, arms
        self.free = np.setdiff1d(np.arange(len(low)), arms)
        self.centre, self.high = np.where(forced, low, centre), high.astype(float)
        self.n = self.high[arms]
        self._arcs_are_arms = np.array_equal(arms, np.arange(len(low)))
        self._arm = np.flatnonzero(~forced[arms])
        self._slack = np.flatnonzero(~forced[self.free])
        loose = np.concatenate([arms[self._arm], self.free[self._slack]])
        position, pattern = network_newton.eliminate(
            len(graph.balance), graph.tail[loose], graph.head[loose]
        )
        balance = graph.balance.copy()
        np.subtract.at(balance, graph.tail[forced], low[forced])
        np.add.at(balance, graph.head[forced], low[forced])
        ordered = np.empty(len(balance))
        ordered[position] = balance
        limits = self.high[loose], self.centre[loose]
        self._problem = *pattern, ordered, *limits, self._arm, self._slack

    def start(self, trials: int) -> Arrays:
        """Return the centre, with multipliers for zero costs."""
        x, free = self.centre[self.arms], self.centre[self.free]
        ones = np.ones_like(free)
        slack = np.stack([free, self.high[self.free] - free, ones, ones])
        return {
            "x": np.tile(x, (trials, 1)),
            "rest": np.tile(self.n - x, (trials, 1)),
            "multipliers": np.zeros((trials, len(self.graph.balance))),
            "slack": np.tile(slack, (trials, 1, 1)),
        }

    def minimise(
        self, costs: FloatArray, beta: FloatArray, regulariser: Regulariser, warm: Arrays
    ) -> Arrays:
        """Run damped Newton from ``warm``; see ``multiplay.kernels.network_newton``."""
        x, rest, dual = warm["x"].copy(), warm["rest"].copy(), warm["multipliers"].copy()
        slack = warm["slack"].copy() if len(self.free) else warm["slack"]
        if len(self._arm):
            steps = network_newton.minimise(
                *self._problem, costs, beta, regulariser.phi, x, rest, slack, dual
            )
            if steps == network_newton.FAILED:
                raise not_converged()
        return {"x": x, "rest": rest, "multipliers": dual, "slack": slack}

    def draw(self, point: Arrays, rng: Rng) -> IntArray:
        """Draw by dependent rounding: every arc is rounded down or up, balance exact, mean x."""
        if self._arcs_are_arms:
            return rounded(self.graph, point["x"], point["rest"], rng)
        flows, rests = np.empty((2, len(point["x"]), len(self.high)))
        flows[:, self.arms], flows[:, self.free] = point["x"], point["slack"][:, 0]
        rests[:, self.arms], rests[:, self.free] = point["rest"], point["slack"][:, 1]
        return rounded(self.graph, flows, rests, rng).take(self.arms, axis=1)
