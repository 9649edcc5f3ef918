"""Learn how many of everything to use, when nobody knows what a unit costs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from multiplay import moved
from multiplay.actions import (
    ActionSet,
    Assignment,
    Budget,
    Changing,
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
    Observation,
    RandomWalk,
    Replay,
    Sinusoids,
    Stochastic,
    Uniform,
)
from multiplay.errors import InvalidInput, StoreError
from multiplay.feedback import Feedback
from multiplay.hull import Regulariser
from multiplay.policies import (
    ESCB,
    FPLIX,
    LBINF,
    BestOfThreeWorlds,
    CombUCB,
    Duplicated,
    EpsilonGreedy,
    ExplorationByOptimisation,
    FollowTheLeader,
    GaussianCTS,
    GenAdaINF,
    GenCTS,
    GenLBINFV,
    Hybrid,
    LinTS,
    LinUCB,
    Play,
    Policy,
    RandomAction,
    ScaledScribble,
)
from multiplay.streams import Rng, Streams
from multiplay.types import Arrays
from multiplay.version import __version__

if TYPE_CHECKING:
    from multiplay import theory
    from multiplay.learner import Expected, Learner, PendingPlay, Plan, Told
    from multiplay.remote import RemoteStudy, connect
    from multiplay.results import Result, load
    from multiplay.simulation.simulate import simulate
    from multiplay.studies import Study, Verified

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
    "BestOfThreeWorlds",
    "Beta",
    "Budget",
    "Changing",
    "CombUCB",
    "Constant",
    "Corrupted",
    "Coverage",
    "Distribution",
    "Duplicated",
    "Environment",
    "EpsilonGreedy",
    "Expected",
    "Explicit",
    "ExplorationByOptimisation",
    "Feedback",
    "FollowTheLeader",
    "GaussianCTS",
    "GenAdaINF",
    "GenCTS",
    "GenLBINFV",
    "Hybrid",
    "IntegerProgram",
    "InvalidInput",
    "Knapsack",
    "Learner",
    "LinTS",
    "LinUCB",
    "Matching",
    "Network",
    "Observation",
    "OracleSet",
    "Path",
    "PendingPlay",
    "Plan",
    "Play",
    "Policy",
    "RandomAction",
    "RandomWalk",
    "Regulariser",
    "RemoteStudy",
    "Replay",
    "Result",
    "Rng",
    "ScaledScribble",
    "Sinusoids",
    "SpanningTree",
    "Stochastic",
    "StoreError",
    "Streams",
    "Study",
    "Told",
    "Transport",
    "Uniform",
    "Verified",
    "__version__",
    "connect",
    "load",
    "simulate",
    "theory",
]

# Imported when somebody asks for them: workers, who play blocks, never do.
LATER = {
    "learner": ("Expected", "Learner", "PendingPlay", "Plan", "Told"),
    "remote": ("RemoteStudy", "connect"),
    "results": ("Result", "load"),
    "simulation": ("simulate",),
    "studies": ("Study", "Verified"),
    "theory": (),
}


def __getattr__(name: str) -> Any:
    for package, names in LATER.items():
        if name == package or name in names:
            found = import_module(f"{__name__}.{package}")
            return found if name == package else getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *LATER})


moved.install()
