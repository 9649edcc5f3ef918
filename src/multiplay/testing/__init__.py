"""Contracts as test suites: run them on an action set or a policy of your own.

Each function raises ``AssertionError`` with the property that failed. Chance enters through a seed,
and a right implementation fails for fewer than one seed in a million.
"""

from multiplay.testing.checks import check_actions, check_policy, optimality_gap

__all__ = ["check_actions", "check_policy", "optimality_gap"]
