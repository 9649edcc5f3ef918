"""What is a flow, and what is not."""

from multiplay.kernels.jit import kernel
from multiplay.types import IntArray


@kernel
def leave_missing(
    tail: IntArray, head: IntArray, balance: IntArray, flows: IntArray, missing: IntArray
) -> None:
    """missing[k, v] = balance[v] - (what leaves node v minus what enters it in flow k)."""
    for k in range(len(flows)):
        for v in range(len(balance)):
            missing[k, v] = balance[v]
        for e in range(len(tail)):
            missing[k, tail[e]] -= flows[k, e]
            missing[k, head[e]] += flows[k, e]
