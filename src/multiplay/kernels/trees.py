"""Minimum spanning trees of undirected graphs, compiled; loops and parallel arcs are allowed.

After Kruskal (1956): the arcs are taken in the order of their costs, unless their ends are joined
already. Nodes that are joined have the same *root*: each node points to another one of its
component, ``towards[node]``, and by and by to the root, which points to itself.
"""

import numpy as np

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import BoolArray, FloatArray, IntArray


@subroutine
def separate(towards: IntArray) -> None:
    """Make every node a component."""
    for node in range(len(towards)):
        towards[node] = node


@subroutine
def root_of(towards: IntArray, node: int) -> int:
    """Return the root of a node; on the way, let the nodes skip what lies next."""
    while towards[node] != node:
        towards[node] = towards[towards[node]]
        node = towards[node]
    return node


@subroutine
def join(towards: IntArray, v: int, w: int) -> bool:
    """Join the components of two nodes; return whether they were different ones."""
    v, w = root_of(towards, v), root_of(towards, w)
    towards[max(v, w)] = min(v, w)
    return v != w


@kernel
def grow_trees(
    tail: IntArray, head: IntArray, nodes: int, order: IntArray, actions: IntArray
) -> None:
    """Take the arcs in the order that each row of ``order`` gives, unless they close a cycle."""
    towards = np.empty(nodes, dtype=np.int64)
    for k in range(len(order)):
        separate(towards)
        missing = nodes - 1
        for arc in order[k]:
            actions[k, arc] = 0
        for arc in order[k]:
            if missing == 0:
                break
            if join(towards, tail[arc], head[arc]):
                actions[k, arc] = 1
                missing -= 1


def spanning_trees(
    tail: IntArray, head: IntArray, nodes: int, costs: FloatArray, actions: IntArray
) -> None:
    """Write a minimum spanning tree for each row of ``costs``, as zeros and ones.

    Of arcs with equal costs the first is preferred. If the graph is not connected, the components
    get a tree each.
    """
    grow_trees(tail, head, nodes, np.argsort(costs, axis=1, kind="stable"), actions)


@kernel
def components(tail: IntArray, head: IntArray, nodes: int) -> IntArray:
    """Return for every node the smallest node that it is connected with."""
    towards = np.arange(nodes)
    for arc in range(len(tail)):
        join(towards, tail[arc], head[arc])
    for node in range(nodes):
        towards[node] = root_of(towards, node)
    return towards


@kernel
def are_spanning_trees(
    tail: IntArray, head: IntArray, nodes: int, actions: IntArray, answer: BoolArray
) -> None:
    """answer[k] = whether row k of ``actions`` has zeros and ones only, and these make a tree."""
    towards = np.empty(nodes, dtype=np.int64)
    for k in range(len(actions)):
        separate(towards)
        joined, good = 1, True
        for arc in range(len(tail)):
            if actions[k, arc] == 1:
                good &= join(towards, tail[arc], head[arc])
                joined += 1
            else:
                good &= actions[k, arc] == 0
        answer[k] = good and joined == nodes
