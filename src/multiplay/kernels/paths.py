"""Shortest paths in directed graphs without cycles, compiled; parallel arcs are allowed.

Arcs are taken in the topological order of their tails: when an arc is looked at, all arcs into its
tail have been, and the distance of the tail is final. Costs may be negative.
"""

import math
from graphlib import CycleError, TopologicalSorter

import numpy as np

from multiplay.kernels.jit import kernel
from multiplay.types import FloatArray, IntArray

NONE = -1


def topological_order(tail: IntArray, head: IntArray, nodes: int) -> tuple[IntArray, list[int]]:
    """Return (order, []): the nodes, each before those that its arcs lead to.

    If there is no such order, returns ([], cycle): nodes v, w, ..., z with arcs v -> w -> ... -> v.
    """
    graph: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(range(nodes), ()))
    for v, w in zip(tail.tolist(), head.tolist(), strict=True):
        graph.add(w, v)
    try:
        return np.array(list(graph.static_order()), dtype=np.int64), []
    except CycleError as error:
        return np.empty(0, dtype=np.int64), error.args[1][:-1]  # the last node is the first


def arcs_in_order(tail: IntArray, order: IntArray) -> IntArray:
    """Return the numbers of the arcs, sorted by the places of their tails in ``order``."""
    place = np.argsort(order)
    return np.argsort(place[tail], kind="stable")


@kernel
def shortest_paths(
    tail: IntArray,
    head: IntArray,
    arcs: IntArray,
    source: int,
    target: int,
    nodes: int,
    units: int,
    costs: FloatArray,
    actions: IntArray,
) -> None:
    """Send ``units`` along the cheapest path from source to target, for each row of ``costs``.

    ``arcs`` come from ``arcs_in_order``. Of equally cheap ways to a node the one whose last arc
    comes first in this order is taken. If there is no path, the action is zero.
    """
    distance, arc_to = np.empty(nodes), np.empty(nodes, dtype=np.int64)
    for k in range(len(costs)):
        for node in range(nodes):
            distance[node], arc_to[node] = math.inf, NONE
        distance[source] = 0.0
        for arc in arcs:
            through = distance[tail[arc]] + costs[k, arc]
            if through < distance[head[arc]]:
                distance[head[arc]], arc_to[head[arc]] = through, arc
        for arc in range(len(tail)):
            actions[k, arc] = 0
        node = target
        while arc_to[node] != NONE:
            actions[k, arc_to[node]] = units
            node = tail[arc_to[node]]
