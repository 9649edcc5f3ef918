"""The public names of multiplay.environments: each is imported from its module on first use."""

from multiplay.environments.adversarial import Adversarial as Adversarial
from multiplay.environments.alternating import Alternating as Alternating
from multiplay.environments.attacked import Attacked as Attacked
from multiplay.environments.base import (
    Environment as Environment,
    Observation as Observation,
    World as World,
)
from multiplay.environments.byunit import ByUnit as ByUnit
from multiplay.environments.contexts import NormalContexts as NormalContexts
from multiplay.environments.contextual import Contextual as Contextual
from multiplay.environments.correlated import Correlated as Correlated
from multiplay.environments.corrupted import Corrupted as Corrupted
from multiplay.environments.distributions import (
    Bernoulli as Bernoulli,
    Beta as Beta,
    Constant as Constant,
    Distribution as Distribution,
    Uniform as Uniform,
)
from multiplay.environments.oblivious import RandomWalk as RandomWalk, Sinusoids as Sinusoids
from multiplay.environments.replay import Replay as Replay
from multiplay.environments.stochastic import Stochastic as Stochastic
