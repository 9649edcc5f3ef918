"""Laplacians of graphs that are too large to be eliminated: preconditioned conjugate gradients.

L s = b, where (L s)_v is the sum over the arcs e at node v, with the other end w, of
weight_e (s_v - s_w). The elimination of a graph with many cycles fills a matrix of all nodes. Here
every step passes the arcs once, and the weights may span many orders of magnitude:

The preconditioner M has the arcs of a spanning forest of large weights as they are. Of all other
arcs it has the diagonal. It is solved by eliminating the forest from its leaves, without a
subtraction. So heavy arcs, which take most of the steps otherwise, take none, and light ones
between many nodes mix fast.

The error s - s* is measured by <s - s*, L (s - s*)>, about <r, M^-1 r> with the residual r. For a
Newton step that is the local norm: every x_i has a share of x_i in it, however small it is.
"""

from typing import Any

import numpy as np

from multiplay.kernels.jit import subroutine
from multiplay.types import FloatArray, IntArray

MOST_STEPS = 1000


@subroutine
def solve_laplacian(
    tail: IntArray,
    head: IntArray,
    weight: FloatArray,
    leaves: IntArray,
    up: IntArray,
    precision: float,
    b: FloatArray,
) -> Any:
    """Replace b by s with L s = b, up to ``precision`` times its first error; return the steps.

    ``leaves`` and ``up`` are a spanning forest, see ``spanning_forest``.
    """
    nodes = len(b)
    work = np.zeros((6, nodes))
    s, z, p, Lp, pivot, share = work[0], work[1], work[2], work[3], work[4], work[5]
    eliminate_forest(tail, head, weight, leaves, up, pivot, share)
    close(tail, head, leaves, up, b, z)
    before, enough, taken = 0.0, 0.0, 0
    while taken < MOST_STEPS:
        apply_forest(tail, head, leaves, up, pivot, share, b, z)
        error = 0.0
        for v in range(nodes):
            error += b[v] * z[v]
        if taken == 0:
            enough = precision * precision * error
        if not error > enough:
            break
        turn = error / before if taken > 0 else 0.0
        for v in range(nodes):
            p[v] = z[v] + turn * p[v]
            Lp[v] = 0.0
        curvature = 0.0
        for e in range(len(weight)):
            push = weight[e] * (p[tail[e]] - p[head[e]])
            Lp[tail[e]] += push
            Lp[head[e]] -= push
        for v in range(nodes):
            curvature += p[v] * Lp[v]
        if not curvature > 0.0:
            break
        length = error / curvature
        for v in range(nodes):
            s[v] += length * p[v]
            b[v] -= length * Lp[v]
        before = error
        taken += 1
    for v in range(nodes):
        b[v] = s[v]
    return taken


@subroutine
def close(
    tail: IntArray, head: IntArray, leaves: IntArray, up: IntArray, b: FloatArray, total: FloatArray
) -> None:
    """Let the root of every tree take what the nodes of the tree have together in b.

    L s has none of it. It is rounding, but grows in every step.
    """
    for v in range(len(b)):
        total[v] = b[v]
    for v in leaves:
        e = up[v]
        total[head[e] if tail[e] == v else tail[e]] += total[v]
        total[v] = 0.0
    for v in range(len(b)):
        b[v] -= total[v]


@subroutine
def eliminate_forest(
    tail: IntArray,
    head: IntArray,
    weight: FloatArray,
    leaves: IntArray,
    up: IntArray,
    pivot: FloatArray,
    share: FloatArray,
) -> None:
    """Factorise M: a leaf with d on the diagonal and an arc of weight w leaves d w / (d + w)."""
    in_forest = np.zeros(len(weight), dtype=np.bool_)
    for v in leaves:
        in_forest[up[v]] = True
    for e in range(len(weight)):
        if not in_forest[e] and tail[e] != head[e]:
            pivot[tail[e]] += weight[e]
            pivot[head[e]] += weight[e]
    for v in leaves:
        e = up[v]
        above = head[e] if tail[e] == v else tail[e]
        share[v] = weight[e] / (pivot[v] + weight[e])
        pivot[above] += share[v] * pivot[v]
        pivot[v] += weight[e]


@subroutine
def apply_forest(
    tail: IntArray,
    head: IntArray,
    leaves: IntArray,
    up: IntArray,
    pivot: FloatArray,
    share: FloatArray,
    r: FloatArray,
    z: FloatArray,
) -> None:
    """z = M^-1 r; where M is singular, the root of the tree is grounded."""
    for v in range(len(r)):
        z[v] = r[v]
    for v in leaves:
        e = up[v]
        z[head[e] if tail[e] == v else tail[e]] += share[v] * z[v]
    for v in range(len(r)):
        z[v] = z[v] / pivot[v] if pivot[v] > 0.0 else 0.0
    for i in range(len(leaves) - 1, -1, -1):
        v = leaves[i]
        e = up[v]
        z[v] += share[v] * z[head[e] if tail[e] == v else tail[e]]
