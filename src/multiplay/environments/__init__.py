"""Environments: where losses come from."""

from multiplay.environments.adversarial import Adversarial
from multiplay.environments.alternating import Alternating
from multiplay.environments.attacked import Attacked
from multiplay.environments.base import Environment, Observation, World
from multiplay.environments.corrupted import Corrupted
from multiplay.environments.distributions import Bernoulli, Beta, Constant, Distribution, Uniform
from multiplay.environments.oblivious import RandomWalk, Sinusoids
from multiplay.environments.replay import Replay
from multiplay.environments.stochastic import Stochastic

__all__ = [
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
    "World",
]
