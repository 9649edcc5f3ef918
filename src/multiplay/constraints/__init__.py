"""Constraints on plans: costs of changes, an allowance of a baseline, promises over a period.

Any of them may be used together, in learners, studies and simulations. ``terms`` has the plan of a
round under all of them; ``switching``, ``baseline`` and ``reserve`` have one term each, and
``promise`` and ``prices`` what the last one is computed from.
"""

from multiplay.constraints.baseline import Baseline
from multiplay.constraints.constraint import Constraint
from multiplay.constraints.promise import AtLeast, AtMost, Promise
from multiplay.constraints.switching import SwitchingCost

__all__ = ["AtLeast", "AtMost", "Baseline", "Constraint", "Promise", "SwitchingCost"]
