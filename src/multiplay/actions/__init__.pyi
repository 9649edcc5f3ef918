"""The public names of multiplay.actions: each is imported from its module on first use."""

from multiplay.actions.assignment import Assignment as Assignment
from multiplay.actions.base import ActionSet as ActionSet, Duplicate as Duplicate
from multiplay.actions.budget import Budget as Budget
from multiplay.actions.time_varying import TimeVarying as TimeVarying
from multiplay.actions.coverage import Coverage as Coverage
from multiplay.actions.explicit import Explicit as Explicit
from multiplay.actions.graphs import Matching as Matching, SpanningTree as SpanningTree
from multiplay.actions.knapsack import Knapsack as Knapsack
from multiplay.actions.limits import Limited as Limited, limited as limited
from multiplay.actions.model import Model as Model
from multiplay.actions.network import Network as Network, Path as Path
from multiplay.actions.oracle import OracleSet as OracleSet
from multiplay.actions.program import IntegerProgram as IntegerProgram
from multiplay.actions.rules import (
    FixedPlan as FixedPlan,
    InProportion as InProportion,
    PriceList as PriceList,
    Rule as Rule,
)
from multiplay.actions.transport import Transport as Transport
