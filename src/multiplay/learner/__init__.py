"""One learner, live: ask for a plan, tell what it cost, ask again."""

from typing import Any

from multiplay.learner.learner import Learner
from multiplay.learner.plays import Expected, PendingPlay, Plan, Told
from multiplay.moved import warn

__all__ = ["Expected", "Learner", "PendingPlay", "Plan", "Told"]


def __getattr__(name: str) -> Any:
    if name == "Asked":
        warn("multiplay.learner.Asked is now multiplay.PendingPlay")
        return PendingPlay
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
