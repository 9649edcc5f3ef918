"""Simulation: rounds, trials, seeds, regret."""

from multiplay.results import Result, load
from multiplay.simulation.simulate import simulate

__all__ = ["Result", "load", "simulate"]
