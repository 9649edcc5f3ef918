"""Contract tests for your own action sets, policies, environments, storages and stores.

Each function raises ``AssertionError`` with the property that failed. The tests are randomised by a
seed, and a correct implementation fails for fewer than one seed in a million. Instances for
hypothesis are in ``multiplay.testing.strategies``, which is imported separately.
"""

from multiplay.testing.actions import check_actions, optimality_gap
from multiplay.testing.environments import check_environment
from multiplay.testing.journal import check_store
from multiplay.testing.policies import check_policy
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
