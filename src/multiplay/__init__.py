"""Learn how many of everything to use, when nobody knows what a unit costs."""

from multiplay import moved, theory
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
from multiplay.hull import Regulariser
from multiplay.learner import Learner, PendingPlay
from multiplay.policies import (
    ESCB,
    FPLIX,
    LBINF,
    CombUCB,
    Duplicated,
    EpsilonGreedy,
    FollowTheLeader,
    GaussianCTS,
    GenCTS,
    GenLBINFV,
    Hybrid,
    Play,
    Policy,
    RandomAction,
)
from multiplay.results import Result, load
from multiplay.simulation import simulate
from multiplay.streams import Rng, Streams
from multiplay.types import Arrays
from multiplay.version import __version__

__all__ = [
    "ESCB",
    "FPLIX",
    "LBINF",
    "ActionSet",
    "Adversarial",
    "Alternating",
    "Arrays",
    "Assignment",
    "Attacked",
    "Bernoulli",
    "Beta",
    "Budget",
    "CombUCB",
    "Constant",
    "Corrupted",
    "Coverage",
    "Distribution",
    "Duplicated",
    "Environment",
    "EpsilonGreedy",
    "Explicit",
    "Feedback",
    "FollowTheLeader",
    "GaussianCTS",
    "GenCTS",
    "GenLBINFV",
    "Hybrid",
    "IntegerProgram",
    "InvalidInput",
    "Knapsack",
    "Learner",
    "Matching",
    "Network",
    "OracleSet",
    "Path",
    "PendingPlay",
    "Play",
    "Policy",
    "RandomAction",
    "RandomWalk",
    "Regulariser",
    "Replay",
    "Result",
    "Rng",
    "Sinusoids",
    "SpanningTree",
    "Stochastic",
    "Streams",
    "Transport",
    "Uniform",
    "__version__",
    "load",
    "simulate",
    "theory",
]

moved.install()
