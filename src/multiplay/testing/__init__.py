"""Contracts as test suites: run them on a set, a policy, an environment or a store of your own.

Each function raises ``AssertionError`` with the property that failed. Chance enters through a seed,
and a right implementation fails for fewer than one seed in a million. Instances for hypothesis are
in ``multiplay.testing.strategies``, which is imported by itself.
"""

from multiplay.testing.checks import check_actions, check_policy, optimality_gap
from multiplay.testing.environments import check_environment
from multiplay.testing.journal import check_store
from multiplay.testing.settings import check_settings
from multiplay.testing.storage import check_storage

__all__ = [
    "check_actions",
    "check_environment",
    "check_policy",
    "check_settings",
    "check_storage",
    "check_store",
    "optimality_gap",
]
