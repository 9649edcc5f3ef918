"""Live learner: ask for a plan, tell its losses, ask again."""

from multiplay._support.words import Words
from multiplay.learner.allowance import Allowance
from multiplay.learner.learner import Learner
from multiplay.learner.logged_data import TableCheck, TableProblem
from multiplay.learner.plays import Estimate, PendingPlay, Plan, Receipt, Remaining, Why
from multiplay.learner.promises import PromiseReport

__all__ = [
    "Allowance",
    "Estimate",
    "Learner",
    "PendingPlay",
    "Plan",
    "PromiseReport",
    "Receipt",
    "Remaining",
    "TableCheck",
    "TableProblem",
    "Why",
    "Words",
]
