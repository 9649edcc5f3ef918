"""Savings: what the plays of a study saved against a rule, with an interval."""

from multiplay.savings.days import Bills as Bills
from multiplay.savings.days import PlayedDay as PlayedDay
from multiplay.savings.estimates import cost_of_learning as cost_of_learning
from multiplay.savings.estimates import estimate as estimate
from multiplay.savings.lives import simulated as simulated
from multiplay.savings.result import Evidence as Evidence
from multiplay.savings.result import Savings as Savings
from multiplay.savings.result import WeekSavings as WeekSavings
