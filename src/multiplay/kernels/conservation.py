"""Imbalances at the nodes of a graph, and their correction along arcs with room for it.

Flows of 10^9 units leave no digits for an arc that carries a millionth of one. So sums at nodes
have twice the digits of a float, and what is missing is carried along a spanning forest of the arcs
that can carry it best, from the leaves inwards.
"""

from typing import Any

import numpy as np

from multiplay.kernels.jit import subroutine
from multiplay.types import FloatArray, IntArray

NEGLIGIBLE = 1e-10  # of a unit: no run is long enough to notice


@subroutine
def add(total: FloatArray, v: int, term: float) -> None:
    """total[0, v] + total[1, v] += term, without rounding (Knuth's two-sum)."""
    old = total[0, v]
    new = old + term
    seen = new - old
    total[0, v] = new
    total[1, v] += (old - (new - seen)) + (term - seen)


@subroutine
def measure_missing(
    tail: IntArray,
    head: IntArray,
    balance: FloatArray,
    n: FloatArray,
    flow: FloatArray,
    rest: FloatArray,
    missing: FloatArray,
) -> None:
    """missing[0, v] + missing[1, v] = balance[v] - (what leaves node v minus what enters it).

    An arc carries ``flow`` or ``n - rest``, whichever is known better.
    """
    for v in range(len(balance)):
        missing[0, v], missing[1, v] = balance[v], 0.0
    for e in range(len(tail)):
        part = flow[e]
        if part > rest[e]:
            part = -rest[e]
            add(missing, tail[e], -n[e])
            add(missing, head[e], n[e])
        add(missing, tail[e], -part)
        add(missing, head[e], part)


@subroutine
def largest(missing: FloatArray) -> Any:
    """Return how much is missing where most is."""
    most = 0.0
    for v in range(missing.shape[1]):
        most = max(most, abs(missing[0, v] + missing[1, v]))
    return most


@subroutine
def carry(
    tail: IntArray, head: IntArray, strength: FloatArray, missing: FloatArray, dx: FloatArray
) -> None:
    """Fill dx such that it makes up for what is missing, on a forest of the strongest arcs.

    Arcs outside the forest have dx = 0. A leaf has one arc of the forest, which must carry all that
    the leaf lacks; then the leaf is taken off.
    """
    for e in range(len(dx)):
        dx[e] = 0.0
    leaves, up = spanning_forest(tail, head, strength, missing.shape[1])
    for v in leaves:
        e = up[v]
        lacks = missing[0, v] + missing[1, v]
        dx[e] = lacks if tail[e] == v else -lacks
        w = head[e] if tail[e] == v else tail[e]
        add(missing, w, missing[0, v])
        add(missing, w, missing[1, v])


@subroutine
def spanning_forest(tail: IntArray, head: IntArray, strength: FloatArray, nodes: int) -> Any:
    """Return a forest of the strongest arcs: (leaves, up).

    ``leaves`` are all nodes but one of each tree, in an order such that each is a leaf when those
    before it are taken off; ``up[v]`` is the arc of the forest by which v then hangs.
    """
    arcs_left, up = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    leader, joined = np.arange(nodes), 0
    for e in np.argsort(-strength):
        v, w = leader_of(leader, tail[e]), leader_of(leader, head[e])
        if v != w:
            leader[v] = w
            joined += 1
            for end in (tail[e], head[e]):
                arcs_left[end] += 1
                up[end] += e  # the sum of its arcs: when one is left, that one
    leaves, taken = np.empty(joined, np.int64), 0
    for start in range(nodes):
        v = start
        while arcs_left[v] == 1:
            e = up[v]
            w = head[e] if tail[e] == v else tail[e]
            arcs_left[v] = 0
            arcs_left[w] -= 1
            up[w] -= e
            leaves[taken] = v
            taken += 1
            v = w
    return leaves, up


@subroutine
def leader_of(leader: IntArray, v: int) -> Any:
    """Return the node that stands for the tree of v, and shorten the way to it."""
    while leader[v] != v:
        leader[v] = leader[leader[v]]
        v = leader[v]
    return v
