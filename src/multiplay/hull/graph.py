"""Directed graphs with a balance at every node, as arrays that kernels take."""

from functools import cached_property, lru_cache

import numpy as np

from multiplay.hull.base import not_a_flow
from multiplay.kernels.rounding import MANY_NODES, NO_FLOW, round_flows, round_with_care
from multiplay.random import Rng, words_and_uniforms
from multiplay.types import FloatArray, IntArray


class Graph:
    """Arcs ``tail[e] -> head[e]``; what leaves node v minus what enters it is ``balance[v]``."""

    def __init__(self, tail: IntArray, head: IntArray, balance: IntArray) -> None:
        self.tail, self.head, self.balance = tail, head, balance

    @cached_property
    def incidence(self) -> tuple[IntArray, IntArray]:
        """(first, incident): the arcs at node v are ``incident[first[v]:first[v + 1]]``."""
        ends = np.concatenate([self.tail, self.head])
        arcs = np.tile(np.arange(len(self.tail)), 2)
        order = np.lexsort((arcs, ends))
        first = np.searchsorted(ends[order], np.arange(len(self.balance) + 1))
        return first.astype(np.int64), arcs[order].astype(np.int64)

    @cached_property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """The arrays of the graph: tail, head, balance, first, incident."""
        return self.tail, self.head, self.balance, *self.incidence


def rounded(graph: Graph, flows: FloatArray, rests: FloatArray, rng: Rng) -> IntArray:
    """Round every row of flows down or up, balance exact, with these flows as the mean."""
    found, done = np.empty(flows.shape, np.int64), 0
    if len(graph.balance) >= MANY_NODES:
        coins = rng.random(flows.shape)
    else:
        words, coins = words_and_uniforms(rng, flows.shape)
        done = round_flows(*graph.arrays, flows, rests, words, coins, found)
    if 0 <= done < len(flows):
        done = round_with_care(done, *graph.arrays, flows, rests, coins, found)
    if done == NO_FLOW:
        raise not_a_flow()
    return found


def bipartite(supply: IntArray, demand: IntArray) -> Graph:
    """Return the graph of a transport problem: an arc from every supplier to every demander."""
    return Graph(*_lanes(len(supply), len(demand)), np.concatenate([supply, -demand]))


@lru_cache(maxsize=16)
def _lanes(suppliers: int, demanders: int) -> tuple[IntArray, IntArray]:
    """Return tails and heads, which the graphs of many days share: they are not written to."""
    arms = np.arange(suppliers * demanders)
    return arms // demanders, suppliers + arms % demanders
