"""Policies for full bandit feedback: only the total loss of a round is seen."""

import numpy as np

from multiplay._support.checks import integer_setting, is_number
from multiplay._support.hints import Hint, Option
from multiplay.actions import ActionSet
from multiplay.actions.coordinates import Listed
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.policies.base import Policy, all_actions
from multiplay.types import FloatArray


class Bandit(Policy):
    """Base class of the linear-bandit policies of Table 1: all actions are listed, T is known.

    A subclass is a dataclass with the settings below.
    """

    learns_from = "round"
    needs_linear = True

    horizon: int | None
    scale: float
    limit: int

    def __post_init__(self) -> None:
        if self.horizon is not None:
            hint = "Give the number of rounds, a positive integer."
            integer_setting(self, "horizon", hint)
        if not (is_number(self.scale) and 0 < self.scale < np.inf):
            raise InvalidInput(
                "scale", "a positive number", repr(self.scale), "Leave it out for 1."
            )
        integer_setting(self, "limit", "Leave it out for the default.")

    def listed(self, actions: ActionSet) -> Listed:
        """Return all actions in coordinates, or raise ``InvalidInput`` if there are too many."""
        name = type(self).__name__
        if actions.offset is not None:
            expected = f"a set without known costs of arms, which {name} cannot use"
            raise InvalidInput("actions", expected, f"{actions!r}", "Use LinTS or LinUCB.")
        all_actions(name, actions, self.limit, "LinTS, which does not list actions")
        return actions.listed(self.limit)

    def rounds(self, horizon: int | None) -> int:
        """Return T, the number of rounds: at least 2, because log 1 = 0."""
        T = horizon if self.horizon is None else self.horizon
        if T is None:
            own = Option("horizon", "365", type(self).__name__ + "({})")
            hint = Hint("Use {}, for example.", own)
            raise InvalidInput("horizon", "a number of rounds", "none", hint)
        return max(T, 2)


def share_lost(actions: ActionSet, feedback: Feedback) -> FloatArray:
    """Return y / M for losses and 1 - y / M for rewards, in [0, 1]; y is the total of the round."""
    f: FloatArray = feedback.round_total / max(actions.M, 1)
    return f if actions.sense == "min" else 1 - f
