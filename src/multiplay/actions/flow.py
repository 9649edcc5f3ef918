"""The oracle of everything that is a network."""

from multiplay.arrays import FloatArray, IntArray
from multiplay.graph import Graph


class MinimumCostFlow:
    """argmin over the integer flows of a graph, 0 <= f <= capacity, of <costs, f>."""

    def __init__(self, graph: Graph, capacity: IntArray) -> None:
        self.graph, self.capacity = graph, capacity

    def __call__(self, costs: FloatArray) -> IntArray:
        raise NotImplementedError
