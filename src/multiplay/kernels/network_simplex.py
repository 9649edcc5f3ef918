"""Minimum-cost integer flows by the primal network simplex method, compiled.

The nodes of a network have supplies (positive at a source, negative at a sink, sum zero). A flow
carries them along arcs, with an integer from 0 to the capacity on each. The method keeps a
spanning tree; the arcs outside of the tree are empty or full. It goes to cheaper and cheaper trees:

1. An arc outside of the tree whose use lowers the cost *enters*: it closes a cycle.
2. Flow is pushed round the cycle until an arc *blocks*; that arc leaves the tree.
3. The part of the tree that hung on the leaving arc is hung on the entering one.

An artificial root, joined to every node by an artificial arc, makes the first tree. These arcs
cost more than any path of real ones, so that they carry nothing in the end.

All trees are *strongly feasible*: from every node some flow could be sent along the tree to the
root. Then trees of the same cost never recur. The rule that keeps this so: of several blocking
arcs the last one leaves, seen from the apex of the cycle (its node nearest to the root) in the
direction of the push (Cunningham 1976).

A tree is a table of integers with one row for each node:

- ``PARENT``, the arc ``ARC`` to the parent, and ``DEPTH``, the number of arcs to the root;
- ``NEXT`` and ``PREVIOUS`` in the *thread*, the cyclic order in which a depth-first walk from the
  root meets the nodes: a subtree is its top and the deeper nodes that directly follow it;
- ``UP`` and ``DOWN``, what can still be pushed along ``ARC`` to the parent and from the parent.
"""

import math

import numpy as np
from numpy.typing import NDArray

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray, IntArray

Ends = NDArray[np.uint32]  # unsigned, for numba then omits the test for negative indices
Sides = NDArray[np.int8]
Start = tuple[Ends, IntArray, Sides, IntArray]

OPTIMAL, INFEASIBLE, UNBOUNDED, STALLED = 0, 1, 2, 3
UNLIMITED = 2**62  # a capacity

TAIL, HEAD = 0, 1
EMPTY, FULL = 1, -1  # an arc outside of the tree: the sign of the change that it allows
PARENT, ARC, DEPTH, NEXT, PREVIOUS, UP, DOWN = 0, 1, 2, 3, 4, 5, 6
COLUMNS = 7

ROUNDING = 8 * 2.0**-52  # reduced costs closer to zero than this times a path's cost are zero
FEW_ARCS = 64  # a feasible tree is the faster start below, the star of artificial arcs above
BLOCKS_PER_ARC = 1000  # the search gives up after so many; it never should


@subroutine
def set_potentials(ends: Ends, costs: FloatArray, tree: IntArray, potential: FloatArray) -> None:
    """Make the reduced costs of the tree arcs zero."""
    root = len(tree) - 1
    potential[root] = costs[-1]  # then zero below an empty artificial arc: no digits are lost
    node = tree[root, NEXT]
    while node != root:
        arc = tree[node, ARC]
        rise = -costs[arc] if ends[arc, TAIL] == node else costs[arc]
        potential[node] = potential[tree[node, PARENT]] + rise
        node = tree[node, NEXT]


@subroutine
def reduced_cost(
    ends: Ends, costs: FloatArray, side: Sides, potential: FloatArray, arc: int
) -> float:
    """Return what the cost changes with each unit that an arc outside of the tree changes."""
    around = costs[arc] + potential[ends[arc, TAIL]] - potential[ends[arc, HEAD]]
    return float(side[arc] * around)


@subroutine
def blocking_node(
    tree: IntArray, source: int, target: int, capacity: int
) -> tuple[int, int, int, bool]:
    """Follow the cycle closed by an arc from ``source`` to ``target`` up to its apex.

    Returns the apex, the flow that can be pushed, the node whose ``ARC`` is the last to block (-1
    if the entering arc blocks first) and whether that node is above the source.
    """
    source_push, source_block = capacity, -1
    target_push, target_block = capacity, -1
    while source != target:
        if tree[source, DEPTH] >= tree[target, DEPTH]:
            if tree[source, DOWN] < source_push:
                source_push, source_block = tree[source, DOWN], source
            source = tree[source, PARENT]
        else:
            if tree[target, UP] <= target_push:
                target_push, target_block = tree[target, UP], target
            target = tree[target, PARENT]
    if source_push < target_push:
        return source, source_push, source_block, True
    return source, target_push, target_block, False


@subroutine
def push_up(tree: IntArray, node: int, apex: int, push: int) -> None:
    """Push flow from a node up to the apex of the cycle; a negative push goes down."""
    while node != apex:
        tree[node, UP] -= push
        tree[node, DOWN] += push
        node = tree[node, PARENT]


@subroutine
def link(tree: IntArray, node: int, following: int) -> None:
    """Let one node follow another in the thread."""
    tree[node, NEXT] = following
    tree[following, PREVIOUS] = node


@subroutine
def shift_run(
    tree: IntArray, potential: FloatArray, last: int, above: int, hole: int, lift: int, rise: float
) -> int:
    """Shift the nodes after ``last`` that are deeper than ``above``, as far as ``hole``."""
    node = tree[last, NEXT]
    while tree[node, DEPTH] > above and node != hole:
        tree[node, DEPTH] += lift
        potential[node] += rise
        last, node = node, tree[node, NEXT]
    return last


@subroutine
def hang(
    tree: IntArray,
    potential: FloatArray,
    cut: int,
    top: int,
    parent: int,
    arc: int,
    up: int,
    down: int,
    rise: float,
) -> None:
    """Hang the subtree of ``cut`` by its node ``top`` on ``parent``, with ``arc`` between them.

    The arcs from ``top`` to ``cut`` are turned round: each node there becomes a child of the one
    before. In the thread it is followed by its old subtree, without the hole that the latter left.
    """
    before, new_parent = tree[cut, PREVIOUS], parent
    node, last, after_hole = top, before, -1  # behind ``before`` for the time being
    while True:
        old_parent, old_arc, old_depth = tree[node, PARENT], tree[node, ARC], tree[node, DEPTH]
        old_up, old_down = tree[node, UP], tree[node, DOWN]
        depth = tree[parent, DEPTH] + 1
        tree[node, PARENT], tree[node, ARC], tree[node, DEPTH] = parent, arc, depth
        tree[node, UP], tree[node, DOWN] = up, down
        potential[node] += rise
        lift = depth - old_depth
        link(tree, last, node)
        last = shift_run(tree, potential, node, old_depth, parent, lift, rise)
        if node != top:
            link(tree, last, after_hole)
            last = shift_run(tree, potential, last, old_depth, parent, lift, rise)
        after_hole = tree[last, NEXT]
        if node == cut:
            break
        node, parent, arc, up, down = old_parent, node, old_arc, old_down, old_up
    link(tree, before, after_hole)
    link(tree, last, tree[new_parent, NEXT])
    link(tree, new_parent, top)


@subroutine
def pivot(
    ends: Ends,
    capacity: IntArray,
    costs: FloatArray,
    side: Sides,
    tree: IntArray,
    potential: FloatArray,
    arc: int,
) -> bool:
    """Let an arc enter the tree; return whether the flow that it takes is bounded."""
    fall = reduced_cost(ends, costs, side, potential, arc)
    source, target = ends[arc, TAIL], ends[arc, HEAD]
    if side[arc] == FULL:
        source, target = target, source
    apex, push, cut, above_source = blocking_node(tree, source, target, capacity[arc])
    if push >= UNLIMITED // 2:
        return False
    if push > 0:
        push_up(tree, source, apex, -push)
        push_up(tree, target, apex, push)
    if cut < 0:
        side[arc] = -side[arc]
        return True
    leaving = tree[cut, ARC]
    flow = tree[cut, DOWN] if ends[leaving, TAIL] == cut else tree[cut, UP]
    side[leaving] = EMPTY if flow == 0 else FULL
    rest = capacity[arc] - push
    if above_source:
        hang(tree, potential, cut, source, target, arc, rest, push, -fall)
    else:
        hang(tree, potential, cut, target, source, arc, push, rest, fall)
    return True


@subroutine
def optimise(
    ends: Ends,
    capacity: IntArray,
    costs: FloatArray,
    side: Sides,
    tree: IntArray,
    potential: FloatArray,
) -> int:
    """Pivot until no real arc lowers the cost; return the status.

    The best arc of a block enters, and the search goes on with the next block.
    """
    arcs = len(ends) - (len(tree) - 1)
    block = max(10, 2 * int(math.sqrt(arcs)))
    tolerance = ROUNDING * costs[-1]
    set_potentials(ends, costs, tree, potential)
    fresh, priced, first = True, 0, 0
    for _ in range(BLOCKS_PER_ARC * len(ends)):
        stop = min(first + block, arcs)
        # not -1, for which numba would compile ``pivot`` once more
        best, lowest = int(np.int64(-1)), -tolerance
        for arc in range(first, stop):
            change = reduced_cost(ends, costs, side, potential, arc)
            if change < lowest:
                best, lowest = arc, change
        priced += stop - first
        first = stop if stop < arcs else 0
        if best >= 0:
            if not pivot(ends, capacity, costs, side, tree, potential, best):
                return UNBOUNDED
            fresh, priced = False, 0
        elif priced >= arcs:
            if fresh:
                return OPTIMAL
            # Every shift has rounded the potentials: look again with fresh ones.
            set_potentials(ends, costs, tree, potential)
            fresh, priced = True, 0
    return STALLED


@subroutine
def copy_start(start_side: Sides, start_tree: IntArray, side: Sides, tree: IntArray) -> None:
    """Reset the workspace, in loops: numba takes seconds to compile an assignment of slices."""
    for arc in range(len(side)):
        side[arc] = start_side[arc]
    for node in range(len(tree)):
        for column in range(COLUMNS):
            tree[node, column] = start_tree[node, column]


@subroutine
def copy_costs(costs: FloatArray, all_costs: FloatArray) -> None:
    """Set the costs of the real arcs, and those of the artificial arcs above any path of them."""
    arcs, largest = len(costs), 0.0
    for arc in range(arcs):
        all_costs[arc] = costs[arc]
        largest = max(largest, abs(costs[arc]))
    nodes = len(all_costs) - arcs
    for node in range(nodes):
        all_costs[arcs + node] = (nodes + 1) * largest if largest > 0 else 1.0


@subroutine
def write_flow(ends: Ends, capacity: IntArray, side: Sides, tree: IntArray, flow: IntArray) -> int:
    """Write the flow of a tree; return ``INFEASIBLE`` if an artificial arc carries some of it."""
    for arc in range(len(flow)):
        flow[arc] = 0 if side[arc] == EMPTY else capacity[arc]
    for node in range(len(tree) - 1):
        arc = tree[node, ARC]
        if arc < len(flow):
            flow[arc] = tree[node, DOWN] if ends[arc, TAIL] == node else tree[node, UP]
        elif tree[node, DOWN] > 0:  # since an empty one leads to the root, by strong feasibility
            return INFEASIBLE
    return OPTIMAL


@kernel
def minimum_cost_flows(
    ends: Ends,
    capacity: IntArray,
    start_side: Sides,
    start_tree: IntArray,
    costs: FloatArray,
    flows: IntArray,
) -> int:
    """Write a flow of least cost for each row of ``costs`` (trials, arcs) into ``flows``.

    The first four arguments come from ``feasible_start`` and stay as they are. Every trial
    starts from the same tree, so its flow depends on its own costs only. These must be finite;
    costs of cycles below 2e-15 · nodes · (the largest cost) count as zero.

    Returns ``OPTIMAL``, or the status of the first trial that failed; the later ones are not run.
    """
    side, tree = np.empty_like(start_side), np.empty_like(start_tree)
    potential, all_costs = np.empty(len(tree)), np.empty(len(ends))
    for trial in range(len(costs)):
        copy_start(start_side, start_tree, side, tree)
        copy_costs(costs[trial], all_costs)
        status = optimise(ends, capacity, all_costs, side, tree, potential)
        if status == OPTIMAL:
            status = write_flow(ends, capacity, side, tree, flows[trial])
        if status != OPTIMAL:
            return status
    return OPTIMAL


@kernel
def set_star(
    tail: IntArray,
    head: IntArray,
    supply: IntArray,
    capacity: IntArray,
    ends: Ends,
    capacities: IntArray,
    side: Sides,
    tree: IntArray,
) -> None:
    """Write the network with an artificial arc for each node, which makes the tree.

    There every node exchanges its supply with the root directly.
    """
    arcs, root = len(tail), len(supply)
    for arc in range(arcs):
        ends[arc, TAIL], ends[arc, HEAD] = tail[arc], head[arc]
        capacities[arc], side[arc] = capacity[arc], EMPTY
    for node in range(root + 1):
        tree[node, PARENT], tree[node, ARC], tree[node, DEPTH] = root, arcs + node, 1
        tree[node, NEXT], tree[node, PREVIOUS] = node + 1, node - 1
    tree[root, DEPTH], tree[root, NEXT], tree[0, PREVIOUS] = 0, 0, root
    tree[root, UP], tree[root, DOWN] = 0, 0
    for node in range(root):
        arc, out = arcs + node, supply[node]
        capacities[arc], side[arc] = UNLIMITED, EMPTY
        if out >= 0:
            ends[arc, TAIL], ends[arc, HEAD] = node, root
            tree[node, UP], tree[node, DOWN] = UNLIMITED - out, out
        else:
            ends[arc, TAIL], ends[arc, HEAD] = root, node
            tree[node, UP], tree[node, DOWN] = -out, UNLIMITED + out


@kernel
def empty_artificial_arcs(
    ends: Ends, capacities: IntArray, side: Sides, tree: IntArray, flow: IntArray
) -> int:
    """Change the tree to one whose flow uses no artificial arc, if there is one; write the flow."""
    nodes, arcs = len(tree) - 1, len(flow)
    costs = np.zeros(len(ends))
    for node in range(nodes):
        costs[arcs + node] = 1.0
    optimise(ends, capacities, costs, side, tree, np.empty(nodes + 1))
    return write_flow(ends, capacities, side, tree, flow)


def feasible_start(
    tail: IntArray, head: IntArray, supply: IntArray, capacity: IntArray, surely: bool = False
) -> tuple[int, Start, IntArray | None]:
    """Prepare a network for ``minimum_cost_flows``; find out whether it has a flow at all.

    ``surely`` says that it has one, which saves time where that is all that is to be found out.

    Returns ``OPTIMAL`` or ``INFEASIBLE``, the first four arguments of ``minimum_cost_flows`` (the
    arcs followed by an artificial arc of each node, their capacities, sides, and the tree), and the
    flow that was found, if one was looked for.
    """
    nodes, arcs = len(supply), len(tail)
    ends, capacities = np.empty((arcs + nodes, 2), np.uint32), np.empty(arcs + nodes, np.int64)
    side, tree = np.empty(arcs + nodes, np.int8), np.empty((nodes + 1, COLUMNS), np.int64)
    set_star(tail, head, supply, capacity, ends, capacities, side, tree)
    if surely and arcs >= FEW_ARCS:
        return OPTIMAL, (ends, capacities, side, tree), None
    flow = np.empty(arcs, np.int64)
    feasible_side, feasible_tree = side.copy(), tree.copy()
    status = empty_artificial_arcs(ends, capacities, feasible_side, feasible_tree, flow)
    if arcs < FEW_ARCS:
        side, tree = feasible_side, feasible_tree
    return status, (ends, capacities, side, tree), flow
