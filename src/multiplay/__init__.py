"""Learn how many of everything to use, when nobody knows what a unit costs."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from multiplay import moved
from multiplay.version import __version__

if TYPE_CHECKING:
    from multiplay import theory
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
    from multiplay.learner import Expected, Learner, PendingPlay, Plan, Told
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
    from multiplay.remote import RemoteStudy, connect
    from multiplay.results import Result, load
    from multiplay.simulation.simulate import simulate
    from multiplay.streams import Rng, Streams
    from multiplay.studies import Study, Verified
    from multiplay.types import Arrays

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

# Where the public names live. Each is imported when somebody asks for it: numba and scipy take long
# to load, and who asks a service, or only looks at a help text, needs neither.
HOMES = {
    "actions": (
        "ActionSet",
        "Assignment",
        "Budget",
        "Changing",
        "Coverage",
        "Explicit",
        "IntegerProgram",
        "Knapsack",
        "Matching",
        "Network",
        "OracleSet",
        "Path",
        "SpanningTree",
        "Transport",
    ),
    "environments": (
        "Adversarial",
        "Alternating",
        "Attacked",
        "Bernoulli",
        "Beta",
        "Constant",
        "Corrupted",
        "Distribution",
        "Environment",
        "Observation",
        "RandomWalk",
        "Replay",
        "Sinusoids",
        "Stochastic",
        "Uniform",
    ),
    "errors": (
        "InvalidInput",
        "StoreError",
    ),
    "feedback": ("Feedback",),
    "hull": ("Regulariser",),
    "learner": (
        "Expected",
        "Learner",
        "PendingPlay",
        "Plan",
        "Told",
    ),
    "policies": (
        "BestOfThreeWorlds",
        "CombUCB",
        "Duplicated",
        "ESCB",
        "EpsilonGreedy",
        "ExplorationByOptimisation",
        "FPLIX",
        "FollowTheLeader",
        "GaussianCTS",
        "GenAdaINF",
        "GenCTS",
        "GenLBINFV",
        "Hybrid",
        "LBINF",
        "LinTS",
        "LinUCB",
        "Play",
        "Policy",
        "RandomAction",
        "ScaledScribble",
    ),
    "remote": (
        "RemoteStudy",
        "connect",
    ),
    "results": (
        "Result",
        "load",
    ),
    "simulation": ("simulate",),
    "streams": (
        "Rng",
        "Streams",
    ),
    "studies": (
        "Study",
        "Verified",
    ),
    "types": ("Arrays",),
}
HOME_OF = {name: home for home, names in HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in HOME_OF:
        found = getattr(import_module(f"{__name__}.{HOME_OF[name]}"), name)
    elif not name.startswith("_") and find_spec(f"{__name__}.{name}"):
        found = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *HOMES})


moved.install()
