"""Action sets: what may be played."""

from multiplay.actions.base import ActionSet, Duplicate
from multiplay.actions.transport import Transport

__all__ = ["ActionSet", "Duplicate", "Transport"]
