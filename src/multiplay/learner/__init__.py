"""Live learner: ask for a plan, tell its losses, ask again."""

from multiplay._support.words import Words
from multiplay.learner.allowance import BaselineReport
from multiplay.learner.data_check import DataCheck
from multiplay.learner.data_measures import check_data
from multiplay.learner.logged_data import TableCheck, TableProblem
from multiplay.learner.plays import Estimate, PendingPlay, Plan, Receipt, Remaining, Why
from multiplay.learner.promises import PromiseReport
from multiplay.learner.reports import Reports
from multiplay.learner.switching import SwitchingReport

__all__ = [
    "BaselineReport",
    "DataCheck",
    "Estimate",
    "PendingPlay",
    "Plan",
    "PromiseReport",
    "Receipt",
    "Remaining",
    "Reports",
    "SwitchingReport",
    "TableCheck",
    "TableProblem",
    "Why",
    "Words",
    "check_data",
]
