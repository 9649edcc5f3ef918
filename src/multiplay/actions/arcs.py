"""Graphs as people write them: pairs of named nodes."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from multiplay._support.checks import is_integer, is_list
from multiplay.errors import InvalidInput
from multiplay.types import IntArray

Node: TypeAlias = str | int


class Arcs:
    """Pairs of nodes as people write them, ``[("Lyon", "Paris"), ...]``, numbered."""

    pairs: list[tuple[Node, Node]]
    number: dict[Node, int]

    def __init__(self, argument: str, pairs: Any) -> None:
        if isinstance(pairs, np.ndarray) and _are_numbers(pairs):
            self._take_numbers(pairs)
            return
        self.pairs = [_pair(argument, pair) for pair in (pairs if is_list(pairs) else [pairs])]
        if not self.pairs:
            raise InvalidInput(
                argument,
                "at least one pair of nodes",
                "none",
                "Give at least one pair, as in [('Lyon', 'Paris')].",
            )
        self.number = {}
        for pair in self.pairs:
            for node in pair:
                self.number.setdefault(node, len(self.number))
        self.tail = np.array([self.number[tail] for tail, _ in self.pairs])
        self.head = np.array([self.number[head] for _, head in self.pairs])

    def _take_numbers(self, pairs: IntArray) -> None:
        """Number the nodes in the order in which they come, all at once."""
        nodes, place, number = np.unique(pairs, return_index=True, return_inverse=True)
        order = np.argsort(place)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        self.pairs = list(map(tuple, pairs.tolist()))
        self.number = {node: i for i, node in enumerate(nodes[order].tolist())}
        ends = rank[number.reshape(pairs.shape)]
        self.tail, self.head = ends[:, 0].copy(), ends[:, 1].copy()

    def names(self, between: str) -> list[str]:
        """Return "tail->head" for every pair, numbered where one pair comes twice."""
        seen: dict[str, int] = {}
        names = []
        for tail, head in self.pairs:
            name = f"{tail}{between}{head}"
            seen[name] = seen.get(name, 0) + 1
            names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
        return names

    def node(self, argument: str, label: Any) -> int:
        """Return the number of a node, or say that no arc touches it."""
        if (isinstance(label, str) or is_integer(label)) and label in self.number:
            return self.number[label]
        known = ", ".join(map(repr, list(self.number)[:5]))
        raise InvalidInput(
            argument,
            f"a node of the graph, such as {known}",
            repr(label),
            "Add an arc that touches this node.",
        )


def _are_numbers(pairs: NDArray[Any]) -> bool:
    """Say whether an array has a pair of two different integers in every row."""
    rows = pairs.ndim == 2 and pairs.shape[1] == 2 and len(pairs) > 0
    return rows and pairs.dtype.kind in "iu" and bool((pairs[:, 0] != pairs[:, 1]).all())


def _pair(argument: str, pair: Any) -> tuple[Node, Node]:
    ends = pair.tolist() if isinstance(pair, np.ndarray) else pair
    named = is_list(ends) and all(isinstance(end, str) or is_integer(end) for end in ends)
    if not named or len(ends) != 2 or ends[0] == ends[1]:
        raise InvalidInput(
            argument,
            "pairs of two different nodes, each a text or an integer",
            repr(pair),
            "Write [('Lyon', 'Paris'), ...].",
        )
    tail, head = (end if isinstance(end, str) else int(end) for end in ends)
    return tail, head
