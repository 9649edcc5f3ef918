"""Simulation: rounds, trials, seeds, regret, results."""

from multiplay.simulation.results import Result, load
from multiplay.simulation.simulate import simulate

__all__ = ["Result", "load", "simulate"]
