"""Savings: what the plays of a study saved against a rule, with an interval."""

from multiplay.savings.days import Bills, PlayedDay
from multiplay.savings.estimates import cost_of_learning, estimate
from multiplay.savings.lives import simulated
from multiplay.savings.saved import Evidence, Saved, WeekSaved

__all__ = [
    "Bills",
    "Evidence",
    "PlayedDay",
    "Saved",
    "WeekSaved",
    "cost_of_learning",
    "estimate",
    "simulated",
]
