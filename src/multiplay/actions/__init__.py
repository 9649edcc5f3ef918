"""Action sets: the vectors of whole numbers that may be played."""

from multiplay.actions.assignment import Assignment
from multiplay.actions.base import ActionSet, Duplicate
from multiplay.actions.budget import Budget
from multiplay.actions.changing import Changing
from multiplay.actions.coverage import Coverage
from multiplay.actions.explicit import Explicit
from multiplay.actions.graphs import Matching, SpanningTree
from multiplay.actions.knapsack import Knapsack
from multiplay.actions.limits import Limited, limited
from multiplay.actions.network import Network, Path
from multiplay.actions.oracle import OracleSet
from multiplay.actions.program import IntegerProgram
from multiplay.actions.transport import Transport

__all__ = [
    "ActionSet",
    "Assignment",
    "Budget",
    "Changing",
    "Coverage",
    "Duplicate",
    "Explicit",
    "IntegerProgram",
    "Knapsack",
    "Limited",
    "Matching",
    "Network",
    "OracleSet",
    "Path",
    "SpanningTree",
    "Transport",
    "limited",
]
