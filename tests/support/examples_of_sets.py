"""Action sets of every class, for tests that run on all of them."""

from typing import Any

import numpy as np

from multiplay import (
    ActionSet,
    Assignment,
    Budget,
    Coverage,
    Explicit,
    IntegerProgram,
    Knapsack,
    Matching,
    Model,
    Network,
    OracleSet,
    Path,
    SpanningTree,
    Transport,
)
from multiplay.types import FloatArray

DIAMOND = [("s", "a"), ("s", "b"), ("a", "t"), ("b", "t"), ("a", "b")]


class Shifts(OracleSet):
    """Two or four people of one of two kinds; the integer points between are not actions."""

    def __init__(self) -> None:
        super().__init__(d=2)

    def solve(self, costs: FloatArray) -> Any:
        people = 4 if costs.min() < 0 else 2
        return people * (np.arange(2) == costs.argmin())


SETS: list[ActionSet] = [
    Model.example(),
    Transport([1, 4, 5], [4, 6], capacities=[[1, 1], [3, 3], [3, 4]]),
    Transport([3, 3, 2], [2, 2], slack=True, capacities=[[2, 1], [1, 2], [0, 2]]),
    Transport([3, 3], [2, 2], slack=True, sense="max"),
    Transport([3, 3], [2, 2], surplus=True, sense="max"),
    Transport([3, 3, 2], [2, 2], surplus=True, capacities=[[2, 1], [1, 2], [0, 2]]),
    Network([(0, 1), (1, 2), (2, 0), (0, 2)], {0: 1, 2: -1}, [2, 2, 2, 2]),
    Network([(0, 1), (1, 2), (0, 2), (3, 4), (3, 4)], {0: 3, 2: -3, 3: 2, 4: -2}, free=[1, 3]),
    Assignment(3),
    Assignment(2, 4),
    Assignment(4, 2, sense="max"),
    Budget(2, [1, 1, 1, 1]),
    Budget(5, [4, 4, 2]),
    Budget(5, [4, 4, 2], at_most=True, sense="max"),
    Budget(3, [2, 1]),
    Budget(1, [1]),
    Path(DIAMOND, "s", "t"),
    Path([*DIAMOND, ("s", "elsewhere")], "s", "t", units=3),
    Knapsack([3, 4, 5], 10),
    Knapsack([0.1, 0.25], 0.3, limits=5),
    Knapsack([3, 0, 5, 40], 10, limits=[2, 2, 1, 1]),
    IntegerProgram([[1, 1, 1], [-2, -1, 0]], [6, -4], (0, 3)),
    IntegerProgram([[1, 1, 1]], [4], ([1, 0, 0], [2, None, 3]), "max"),
    Explicit([[0, 3], [2, 2], [5, 0]]),
    Explicit([[1, 2]]),
    Explicit([[0, 3, 1], [2, 2, 1], [5, 0, 1]], sense="max"),
    SpanningTree([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("b", "d")]),
    Matching([("Ann", "noon"), ("Ann", "night"), ("Bob", "noon"), ("Bob", "noon")]),
    Coverage(4, [3, 1]),
    Shifts(),
]
