"""Environments: where losses come from."""

from multiplay.environments.adversarial import Adversarial
from multiplay.environments.base import Environment, World
from multiplay.environments.corrupted import Corrupted
from multiplay.environments.distributions import Bernoulli, Beta, Constant, Distribution, Uniform
from multiplay.environments.stochastic import Stochastic

__all__ = [
    "Adversarial",
    "Bernoulli",
    "Beta",
    "Constant",
    "Corrupted",
    "Distribution",
    "Environment",
    "Stochastic",
    "Uniform",
    "World",
]
