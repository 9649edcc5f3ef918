"""The flow polytope of any directed graph."""

import numpy as np

from multiplay.hull.base import Hull, Regulariser, not_a_flow, not_converged
from multiplay.hull.graph import Graph
from multiplay.kernels import network_newton
from multiplay.kernels.rounding import round_flows
from multiplay.streams import Rng
from multiplay.types import Arrays, FloatArray, IntArray


class NetworkHull(Hull):
    """{x : x are the flows of the arms in a flow of the graph}; its vertices are integral.

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
        self._arm = np.flatnonzero(~forced[arms])
        self._slack = np.flatnonzero(~forced[self.free])
        loose = np.concatenate([arms[self._arm], self.free[self._slack]])
        position, self._pattern = network_newton.eliminate(
            len(graph.balance), graph.tail[loose], graph.head[loose]
        )
        balance = graph.balance.copy()
        np.subtract.at(balance, graph.tail[forced], low[forced])
        np.add.at(balance, graph.head[forced], low[forced])
        self._balance = np.empty(len(balance))
        self._balance[position] = balance
        self._n, self._centre = self.high[loose], self.centre[loose]

    def start(self, trials: int) -> Arrays:
        """Return the centre, with multipliers that know of no costs."""
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
        """Damped Newton from ``warm``; see ``multiplay.kernels.network_newton``."""
        point = {name: array.copy() for name, array in warm.items()}
        if len(self._arm) == 0:
            return point
        steps = network_newton.minimise(
            self._pattern,
            self._balance,
            self._n,
            self._centre,
            self._arm,
            self._slack,
            costs,
            beta,
            regulariser.phi,
            point["x"],
            point["rest"],
            point["slack"],
            point["multipliers"],
        )
        if steps == network_newton.FAILED:
            raise not_converged()
        return point

    def draw(self, point: Arrays, rng: Rng) -> IntArray:
        """Dependent rounding: every arc is rounded down or up, balance exact, mean x."""
        g = self.graph
        flows, rests = np.empty((2, len(point["x"]), len(g.tail)))
        flows[:, self.arms], flows[:, self.free] = point["x"], point["slack"][:, 0]
        rests[:, self.arms], rests[:, self.free] = point["rest"], point["slack"][:, 1]
        rounded = np.empty(flows.shape, dtype=np.int64)
        coins = rng.random(flows.shape)
        if not round_flows(g.tail, g.head, g.balance, *g.incidence, flows, rests, coins, rounded):
            raise not_a_flow()
        return rounded[:, self.arms]
