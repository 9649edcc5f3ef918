"""Minimum-cost integer flows by the primal network simplex method, compiled.

A network has nodes with supplies (positive at a source, negative at a sink, sum zero) and arcs
``tail → head`` with capacities; a flow is an integer 0 ≤ f ≤ capacity on every arc that carries
the supplies. The method keeps a *tree solution*: a spanning tree of arcs whose flow is free, and
every other arc empty or full. It moves to a cheaper tree as long as there is one:

1. An arc outside the tree whose use would lower the cost *enters*: it closes a cycle.
2. Flow is pushed around the cycle until an arc *blocks*; that arc leaves the tree.
3. The part of the tree that hung on the leaving arc is hung on the entering one.

An artificial root, joined to every node by an artificial arc, makes the first tree. Artificial
arcs cost more than any path of real ones, so that they carry no flow in the end.

All trees are *strongly feasible*: from every node some flow can still be sent to the root along
the tree. This rules out cycling through trees of the same cost; it is preserved by the rule that
of several blocking arcs the last one leaves, the cycle being followed from its apex (its node
nearest to the root) in the direction of the push (Cunningham, 1976).

The tree is a table of integers with one row per node:

- ``PARENT``, the arc ``ARC`` to the parent, and ``DEPTH``, the number of arcs up to the root;
- ``NEXT`` and ``PREVIOUS`` in the *thread*, the cyclic order in which a depth-first walk from the
  root meets the nodes: a subtree is its top and the deeper nodes that directly follow;
- ``UP`` and ``DOWN``, what can still be pushed along ``ARC`` to the parent and from the parent.

A row is 56 bytes, mostly one cache line; the flow of a tree arc lives nowhere else.
"""

import math

import numpy as np
from numpy.typing import NDArray

from multiplay.kernels.jit import kernel

# Node numbers of arcs are unsigned because numba then omits the test for negative indices.
Nodes = NDArray[np.uint32]
Integers = NDArray[np.int64]
Signs = NDArray[np.int8]
Reals = NDArray[np.float64]

OPTIMAL, INFEASIBLE, UNBOUNDED, STALLED = 0, 1, 2, 3
NO_LIMIT = 2**62  # capacity of an arc that has none
PARENT, ARC, DEPTH, NEXT, PREVIOUS, UP, DOWN = 0, 1, 2, 3, 4, 5, 6
EMPTY, FULL = 1, -1  # sides of an arc outside the tree: signs of the change that is possible

SMALLEST_BLOCK = 10
FEW_ARCS = 100  # below, a feasible tree is the faster start; above, the star of artificial arcs
BLOCKS_PER_ARC = 1000  # before the search gives up, as it never should
ROUNDING = 8 * 2.0**-52


@kernel
def set_potentials(tail: Nodes, costs: Reals, tree: Integers, potential: Reals) -> None:
    """Make the reduced costs of all tree arcs zero."""
    root = len(tree) - 1
    potential[root] = costs[-1]  # keeps digits: the top of a feasible tree then gets zero
    node = tree[root, NEXT]
    while node != root:
        arc = tree[node, ARC]
        climb = -costs[arc] if tail[arc] == node else costs[arc]
        potential[node] = potential[tree[node, PARENT]] + climb
        node = tree[node, NEXT]


@kernel
def entering_arc(
    tail: Nodes,
    head: Nodes,
    costs: Reals,
    side: Signs,
    potential: Reals,
    first: int,
    stop: int,
    tolerance: float,
) -> int:
    """Return the arc from ``first`` to ``stop`` that lowers the cost most per unit, or -1."""
    best, lowest = -1, -tolerance
    for arc in range(first, stop):
        reduced_cost = side[arc] * (costs[arc] + potential[tail[arc]] - potential[head[arc]])
        if reduced_cost < lowest:
            best, lowest = arc, reduced_cost
    return best


@kernel
def blocking_node(
    tree: Integers, source: int, target: int, capacity: int
) -> tuple[int, int, int, bool]:
    """Follow the cycle that an arc from ``source`` to ``target`` closes, up to its apex.

    Returns the apex, the flow that can be pushed, the node whose ``ARC`` is the last to block
    (-1 if none does before the entering arc itself), and whether it is on the way to the source.
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


@kernel
def push_up(tree: Integers, node: int, apex: int, push: int) -> None:
    """Push flow from a node up to the apex of the cycle; a negative push goes down."""
    while node != apex:
        tree[node, UP] -= push
        tree[node, DOWN] += push
        node = tree[node, PARENT]


@kernel
def link(tree: Integers, node: int, following: int) -> None:
    """Let one node follow another in the thread."""
    tree[node, NEXT] = following
    tree[following, PREVIOUS] = node


@kernel
def shift_run(
    tree: Integers, potential: Reals, last: int, floor: int, hole: int, lift: int, change: float
) -> int:
    """Shift the nodes after ``last`` that are deeper than ``floor``, up to ``hole``."""
    node = tree[last, NEXT]
    while tree[node, DEPTH] > floor and node != hole:
        tree[node, DEPTH] += lift
        potential[node] += change
        last = node
        node = tree[node, NEXT]
    return last


@kernel
def move_subtree(
    tree: Integers, potential: Reals, cut: int, top: int, new_parent: int, change: float
) -> None:
    """Move the subtree of ``cut`` below ``new_parent``, with ``top`` as its new top.

    Each node between ``top`` and ``cut`` becomes a child of the one before it. In the new thread
    it is therefore followed by its old subtree without the hole that the one before it left.
    """
    before = tree[cut, PREVIOUS]
    stem, hole, after_hole, last = top, -1, -1, -1
    depth = tree[new_parent, DEPTH] + 1
    while True:
        floor = tree[stem, DEPTH]
        lift = depth - floor
        tree[stem, DEPTH] = depth
        potential[stem] += change
        if hole >= 0:
            link(tree, last, stem)
        last = shift_run(tree, potential, stem, floor, hole, lift, change)
        if hole >= 0:
            link(tree, last, after_hole)
            last = shift_run(tree, potential, last, floor, hole, lift, change)
        after_hole = tree[last, NEXT]
        if stem == cut:
            break
        stem, hole, depth = tree[stem, PARENT], stem, depth + 1
    link(tree, before, after_hole)
    link(tree, last, tree[new_parent, NEXT])
    link(tree, new_parent, top)


@kernel
def reverse_stem(
    tree: Integers, cut: int, top: int, new_parent: int, arc: int, up: int, down: int
) -> None:
    """Turn the tree arcs from ``top`` up to ``cut`` around; ``cut`` loses its own arc."""
    node, parent = top, new_parent
    while True:
        old_parent, old_arc = tree[node, PARENT], tree[node, ARC]
        old_up, old_down = tree[node, UP], tree[node, DOWN]
        tree[node, PARENT], tree[node, ARC] = parent, arc
        tree[node, UP], tree[node, DOWN] = up, down
        if node == cut:
            break
        node, parent = old_parent, node
        arc, up, down = old_arc, old_down, old_up


@kernel
def pivot(
    tail: Nodes,
    head: Nodes,
    capacity: Integers,
    costs: Reals,
    side: Signs,
    tree: Integers,
    potential: Reals,
    arc: int,
) -> bool:
    """Let an arc enter; return whether the flow that it takes is bounded."""
    gain = side[arc] * (costs[arc] + potential[tail[arc]] - potential[head[arc]])
    source, target = tail[arc], head[arc]
    if side[arc] == FULL:
        source, target = target, source
    apex, push, cut, on_source_side = blocking_node(tree, source, target, capacity[arc])
    if push >= NO_LIMIT // 2:
        return False
    if push > 0:
        push_up(tree, source, apex, -push)
        push_up(tree, target, apex, push)
    if cut < 0:
        side[arc] = -side[arc]
        return True

    leaving = tree[cut, ARC]
    leaving_flow = tree[cut, DOWN] if tail[leaving] == cut else tree[cut, UP]
    side[leaving] = EMPTY if leaving_flow == 0 else FULL
    rest = capacity[arc] - push
    if on_source_side:
        move_subtree(tree, potential, cut, source, target, -gain)
        reverse_stem(tree, cut, source, target, arc, rest, push)
    else:
        move_subtree(tree, potential, cut, target, source, gain)
        reverse_stem(tree, cut, target, source, arc, push, rest)
    return True


@kernel
def optimise(
    tail: Nodes,
    head: Nodes,
    capacity: Integers,
    costs: Reals,
    side: Signs,
    tree: Integers,
    potential: Reals,
) -> int:
    """Pivot until no real arc lowers the cost; return the status.

    The entering arc is the best one of a block of arcs; the search goes on with the next block.
    """
    arcs = len(tail) - (len(tree) - 1)
    block = max(SMALLEST_BLOCK, int(math.sqrt(arcs)))
    tolerance = ROUNDING * costs[-1]
    set_potentials(tail, costs, tree, potential)
    exact = True
    first = priced = 0
    for _ in range(BLOCKS_PER_ARC * len(tail)):
        stop = min(first + block, arcs)
        arc = entering_arc(tail, head, costs, side, potential, first, stop, tolerance)
        priced += stop - first
        first = stop if stop < arcs else 0
        if arc >= 0:
            if not pivot(tail, head, capacity, costs, side, tree, potential, arc):
                return UNBOUNDED
            exact = False
            priced = 0
        elif priced >= arcs:
            if exact:
                return OPTIMAL
            # The shifts of the potentials have added up rounding errors: look once more.
            set_potentials(tail, costs, tree, potential)
            exact = True
            priced = 0
    return STALLED


@kernel
def minimum_cost_flows(
    tail: Nodes,
    head: Nodes,
    capacity: Integers,
    start_side: Signs,
    start_tree: Integers,
    costs: Reals,
    flows: Integers,
) -> int:
    """Write a flow of minimum cost into each row of ``flows``.

    Parameters
    ----------
    tail, head, capacity, start_side, start_tree
        The network and the start, as ``feasible_start`` returns them; they are not changed.
    costs : (trials, arcs)
        Finite costs of one unit on each arc, one problem per row. Every problem starts from the
        same tree, so that its flow depends on its own row only.
    flows : (trials, arcs)
        The result.

    Returns
    -------
    int
        ``OPTIMAL``, or the status of the first row that could not be solved; the rows from this
        one on are then not written.
    """
    trials, arcs = costs.shape
    nodes = len(start_tree) - 1
    side = np.empty_like(start_side)
    tree = np.empty_like(start_tree)
    potential = np.empty(nodes + 1)
    all_costs = np.empty(arcs + nodes)
    for trial in range(trials):
        side[:] = start_side
        tree[:] = start_tree
        all_costs[:arcs] = costs[trial]
        largest = 0.0
        for arc in range(arcs):
            largest = max(largest, abs(costs[trial, arc]))
        all_costs[arcs:] = largest * (nodes + 1) if largest > 0 else 1.0
        status = optimise(tail, head, capacity, all_costs, side, tree, potential)
        if status != OPTIMAL:
            return status
        for arc in range(arcs):
            flows[trial, arc] = 0 if side[arc] == EMPTY else capacity[arc]
        for node in range(nodes):
            arc = tree[node, ARC]
            if arc < arcs:
                flows[trial, arc] = tree[node, DOWN] if tail[arc] == node else tree[node, UP]
    return OPTIMAL


def feasible_start(
    tail: Integers, head: Integers, supply: Integers, capacity: Integers
) -> tuple[int, Nodes, Nodes, Integers, Signs, Integers]:
    """Find out whether a network has a flow, and prepare it for ``minimum_cost_flows``.

    Parameters
    ----------
    tail, head : (arcs,)
        Nodes from 0 on.
    supply : (nodes,)
        What each node sends out more than it receives; the sum must be zero.
    capacity : (arcs,)
        At least ``NO_LIMIT`` if there is none.

    Returns
    -------
    status : int
        ``OPTIMAL`` if the network has a flow, else ``INFEASIBLE``.
    tail, head, capacity : (arcs + nodes,)
        The arcs, followed by one artificial arc between each node and the root.
    side : (arcs + nodes,)
        Whether an arc outside the start tree is ``EMPTY`` or ``FULL``.
    tree : (nodes + 1, 7)
        The start tree.
    """
    nodes, arcs = len(supply), len(tail)
    node, to_root = np.arange(nodes), supply >= 0
    tails = np.concatenate([tail, np.where(to_root, node, nodes)]).astype(np.uint32)
    heads = np.concatenate([head, np.where(to_root, nodes, node)]).astype(np.uint32)
    capacities = np.concatenate([capacity, np.full(nodes, NO_LIMIT)]).astype(np.int64)
    side = np.full(arcs + nodes, EMPTY, dtype=np.int8)
    star = star_of_artificial_arcs(np.asarray(supply, dtype=np.int64), arcs)

    phase_one_costs = np.repeat([0.0, 1.0], [arcs, nodes])
    tree, tree_side, potential = star.copy(), side.copy(), np.empty(nodes + 1)
    optimise(tails, heads, capacities, phase_one_costs, tree_side, tree, potential)
    artificial = tree[:nodes][tree[:nodes, ARC] >= arcs]
    # Strong feasibility: an artificial arc that carries nothing leads to the root.
    status = OPTIMAL if np.all(artificial[:, DOWN] == 0) else INFEASIBLE
    if arcs < FEW_ARCS:
        return status, tails, heads, capacities, tree_side, tree
    return status, tails, heads, capacities, side, star


def star_of_artificial_arcs(supply: Integers, arcs: int) -> Integers:
    """Return the tree in which every node hands its supply directly to the root."""
    nodes = len(supply)
    node = np.arange(nodes + 1)
    tree = np.zeros((nodes + 1, 7), dtype=np.int64)
    tree[:, PARENT] = nodes
    tree[:, ARC] = arcs + node
    tree[:nodes, DEPTH] = 1
    tree[:, NEXT] = np.roll(node, -1)
    tree[:, PREVIOUS] = np.roll(node, 1)
    tree[:nodes, UP] = np.where(supply >= 0, NO_LIMIT - supply, -supply)
    tree[:nodes, DOWN] = np.where(supply >= 0, supply, NO_LIMIT + supply)
    return tree
