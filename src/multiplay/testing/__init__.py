"""Contracts as test suites: run them on an action set, a policy or a storage of your own.

Each function raises ``AssertionError`` with the property that failed. Chance enters through a seed,
and a right implementation fails for fewer than one seed in a million.
"""

from multiplay.testing.checks import check_actions, check_policy, optimality_gap
from multiplay.testing.storage import check_storage

__all__ = ["check_actions", "check_policy", "check_storage", "optimality_gap"]
