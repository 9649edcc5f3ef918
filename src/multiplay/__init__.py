"""Learn how many of everything to use, when nobody knows what a unit costs."""

from multiplay.actions import (
    ActionSet,
    Assignment,
    Budget,
    Coverage,
    Explicit,
    IntegerProgram,
    Knapsack,
    Matching,
    Network,
    OracleSet,
    Path,
    SpanningTree,
    Transport,
)
from multiplay.environments import (
    Adversarial,
    Alternating,
    Attacked,
    Bernoulli,
    Beta,
    Constant,
    Corrupted,
    Distribution,
    Environment,
    RandomWalk,
    Replay,
    Sinusoids,
    Stochastic,
    Uniform,
)
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.learner import Learner
from multiplay.policies import Duplicated, GenCTS, GenLBINFV, Play, Policy
from multiplay.simulation import Result, load, simulate
from multiplay.streams import Streams
from multiplay.version import __version__

__all__ = [
    "ActionSet",
    "Adversarial",
    "Alternating",
    "Assignment",
    "Attacked",
    "Bernoulli",
    "Beta",
    "Budget",
    "Constant",
    "Corrupted",
    "Coverage",
    "Distribution",
    "Duplicated",
    "Environment",
    "Explicit",
    "Feedback",
    "GenCTS",
    "GenLBINFV",
    "IntegerProgram",
    "InvalidInput",
    "Knapsack",
    "Learner",
    "Matching",
    "Network",
    "OracleSet",
    "Path",
    "Play",
    "Policy",
    "RandomWalk",
    "Replay",
    "Result",
    "Sinusoids",
    "SpanningTree",
    "Stochastic",
    "Streams",
    "Transport",
    "Uniform",
    "__version__",
    "load",
    "simulate",
]
