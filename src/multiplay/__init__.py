"""Learn how many of everything to use, when nobody knows what a unit costs."""

from multiplay.actions import ActionSet, Transport
from multiplay.environments import (
    Adversarial,
    Bernoulli,
    Beta,
    Constant,
    Corrupted,
    Distribution,
    Environment,
    Stochastic,
    Uniform,
)
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.learner import Learner
from multiplay.policies import Duplicated, GenCTS, GenLBINFV, Play, Policy
from multiplay.simulation import Result, load, simulate
from multiplay.streams import Streams

__version__ = "0.1.0"

__all__ = [
    "ActionSet",
    "Adversarial",
    "Bernoulli",
    "Beta",
    "Constant",
    "Corrupted",
    "Distribution",
    "Duplicated",
    "Environment",
    "Feedback",
    "GenCTS",
    "GenLBINFV",
    "InvalidInput",
    "Learner",
    "Play",
    "Policy",
    "Result",
    "Stochastic",
    "Streams",
    "Transport",
    "Uniform",
    "load",
    "simulate",
]
