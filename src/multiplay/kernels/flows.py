"""Membership tests of flows: imbalances at nodes, and bounds of arcs."""

from multiplay.kernels.jit import kernel
from multiplay.types import BoolArray, IntArray


@kernel
def leave_missing(
    tail: IntArray,
    head: IntArray,
    balance: IntArray,
    n: IntArray,
    complete: bool,
    flows: IntArray,
    missing: IntArray,
    inside: BoolArray,
) -> None:
    """missing[k, v] = balance[v] - (what leaves node v minus what enters it in flow k).

    ``inside[k]`` says whether 0 <= flow <= n on all arcs and, where there are no other arcs
    (``complete``), whether nothing is missing.
    """
    for k in range(len(flows)):
        inside[k] = True
        for v in range(len(balance)):
            missing[k, v] = balance[v]
        for e in range(len(tail)):
            inside[k] &= 0 <= flows[k, e] <= n[e]
            missing[k, tail[e]] -= flows[k, e]
            missing[k, head[e]] += flows[k, e]
        for v in range(len(balance) if complete else 0):
            inside[k] &= missing[k, v] == 0
