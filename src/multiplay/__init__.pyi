"""The public names of multiplay: each is imported from its module on first use."""

from multiplay import theory as theory
from multiplay.actions import (
    ActionSet as ActionSet,
)
from multiplay.actions import (
    Assignment as Assignment,
)
from multiplay.actions import (
    Budget as Budget,
)
from multiplay.actions import (
    Changing as Changing,
)
from multiplay.actions import (
    Coverage as Coverage,
)
from multiplay.actions import (
    Explicit as Explicit,
)
from multiplay.actions import (
    IntegerProgram as IntegerProgram,
)
from multiplay.actions import (
    Knapsack as Knapsack,
)
from multiplay.actions import (
    Matching as Matching,
)
from multiplay.actions import (
    Network as Network,
)
from multiplay.actions import (
    OracleSet as OracleSet,
)
from multiplay.actions import (
    Path as Path,
)
from multiplay.actions import (
    SpanningTree as SpanningTree,
)
from multiplay.actions import (
    Transport as Transport,
)
from multiplay.environments import (
    Adversarial as Adversarial,
)
from multiplay.environments import (
    Alternating as Alternating,
)
from multiplay.environments import (
    Attacked as Attacked,
)
from multiplay.environments import (
    Bernoulli as Bernoulli,
)
from multiplay.environments import (
    Beta as Beta,
)
from multiplay.environments import (
    Constant as Constant,
)
from multiplay.environments import (
    Corrupted as Corrupted,
)
from multiplay.environments import (
    Distribution as Distribution,
)
from multiplay.environments import (
    Environment as Environment,
)
from multiplay.environments import (
    Observation as Observation,
)
from multiplay.environments import (
    RandomWalk as RandomWalk,
)
from multiplay.environments import (
    Replay as Replay,
)
from multiplay.environments import (
    Sinusoids as Sinusoids,
)
from multiplay.environments import (
    Stochastic as Stochastic,
)
from multiplay.environments import (
    Uniform as Uniform,
)
from multiplay.errors import (
    InvalidInput as InvalidInput,
)
from multiplay.errors import (
    StoreError as StoreError,
)
from multiplay.feedback import Feedback as Feedback
from multiplay.hull import Regulariser as Regulariser
from multiplay.learner import (
    Estimate as Estimate,
)
from multiplay.learner import (
    Learner as Learner,
)
from multiplay.learner import (
    PendingPlay as PendingPlay,
)
from multiplay.learner import (
    Plan as Plan,
)
from multiplay.learner import (
    Receipt as Receipt,
)
from multiplay.policies import (
    ESCB as ESCB,
)
from multiplay.policies import (
    FPLIX as FPLIX,
)
from multiplay.policies import (
    LBINF as LBINF,
)
from multiplay.policies import (
    BestOfThreeWorlds as BestOfThreeWorlds,
)
from multiplay.policies import (
    CombUCB as CombUCB,
)
from multiplay.policies import (
    Duplicated as Duplicated,
)
from multiplay.policies import (
    EpsilonGreedy as EpsilonGreedy,
)
from multiplay.policies import (
    ExplorationByOptimisation as ExplorationByOptimisation,
)
from multiplay.policies import (
    FollowTheLeader as FollowTheLeader,
)
from multiplay.policies import (
    GaussianCTS as GaussianCTS,
)
from multiplay.policies import (
    GenAdaINF as GenAdaINF,
)
from multiplay.policies import (
    GenCTS as GenCTS,
)
from multiplay.policies import (
    GenLBINFV as GenLBINFV,
)
from multiplay.policies import (
    Hybrid as Hybrid,
)
from multiplay.policies import (
    LinTS as LinTS,
)
from multiplay.policies import (
    LinUCB as LinUCB,
)
from multiplay.policies import (
    Play as Play,
)
from multiplay.policies import (
    Policy as Policy,
)
from multiplay.policies import (
    RandomAction as RandomAction,
)
from multiplay.policies import (
    ScaledScribble as ScaledScribble,
)
from multiplay.random import (
    Rng as Rng,
)
from multiplay.random import (
    Streams as Streams,
)
from multiplay.remote import (
    RemoteStudy as RemoteStudy,
)
from multiplay.remote import (
    connect as connect,
)
from multiplay.results import (
    Result as Result,
)
from multiplay.results import (
    load as load,
)
from multiplay.simulation.simulate import simulate as simulate
from multiplay.studies import (
    Study as Study,
)
from multiplay.studies import (
    Verified as Verified,
)
from multiplay.types import Arrays as Arrays
from multiplay.version import __version__ as __version__

__all__: list[str]
