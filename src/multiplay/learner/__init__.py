"""Live learner: ask for a plan, tell its losses, ask again."""

from multiplay._support.words import Words
from multiplay.learner.allowance import Allowance
from multiplay.learner.logged_data import TableCheck, TableProblem
from multiplay.learner.plays import Estimate, PendingPlay, Plan, Receipt, Remaining, Why
from multiplay.learner.promises import PromiseReport
from multiplay.learner.reports import Reports

__all__ = [
    "Allowance",
    "Estimate",
    "PendingPlay",
    "Plan",
    "PromiseReport",
    "Receipt",
    "Remaining",
    "Reports",
    "TableCheck",
    "TableProblem",
    "Why",
    "Words",
]
