"""The oracle of everything that is a network."""

import numpy as np

from multiplay.arrays import FloatArray, IntArray
from multiplay.errors import InvalidInput
from multiplay.graph import Graph
from multiplay.kernels import network_simplex


class MinimumCostFlow:
    """argmin over the integer flows of a graph, 0 <= f <= capacity, of <costs, f>."""

    def __init__(self, graph: Graph, capacity: IntArray) -> None:
        start = network_simplex.feasible_start(graph.tail, graph.head, graph.balance, capacity)
        status, self._ends, self._capacity, self._side, self._tree = start
        if status != network_simplex.OPTIMAL:
            raise InvalidInput(
                "actions", "a network that some flow fits", "an infeasible one", "Raise capacities."
            )

    def __call__(self, costs: FloatArray) -> IntArray:
        """Return a best flow for each row of ``costs`` (rows, arcs)."""
        flows = np.empty(costs.shape, dtype=np.int64)
        status = network_simplex.minimum_cost_flows(
            self._ends, self._capacity, self._side, self._tree, costs, flows
        )
        if status != network_simplex.OPTIMAL:
            raise ArithmeticError(f"the network simplex method failed with status {status}")
        return flows
