"""The oracle of everything that is a network."""

import numpy as np

from multiplay.arrays import FloatArray, IntArray
from multiplay.errors import InvalidInput
from multiplay.graph import Graph
from multiplay.kernels import network_simplex


class MinimumCostFlow:
    """argmin over the integer flows of a graph, 0 <= f <= capacity, of <costs, f>."""

    def __init__(self, graph: Graph, capacity: IntArray) -> None:
        status, self._start = network_simplex.feasible_start(
            graph.tail, graph.head, graph.balance, capacity
        )
        if status != network_simplex.OPTIMAL:
            raise InvalidInput(
                "actions", "a network that some flow fits", "an infeasible one", "Raise capacities."
            )

    def __call__(self, costs: FloatArray) -> IntArray:
        """Return a best flow for each row of ``costs`` (rows, arcs)."""
        flows = np.empty(costs.shape, dtype=np.int64)
        status = network_simplex.minimum_cost_flows(*self._start, costs, flows)
        if status != network_simplex.OPTIMAL:
            raise ArithmeticError(f"the network simplex method failed with status {status}")
        return flows
