"""Policies that look at all actions, and the sets that are too large for it."""

from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.types import IntArray


def all_actions(policy: str, actions: ActionSet, limit: int, instead: str) -> IntArray:
    """Return all actions, or say why this policy cannot look at them, and what to use instead."""
    try:
        return actions.all_actions(limit)
    except InvalidInput as error:
        if error.argument != "limit":
            raise
        raise InvalidInput(
            "actions",
            f"a set of at most {limit} actions, for {policy} looks at all of them",
            f"more in {actions!r}",
            f"Use {instead}; or write {policy}(limit=...).",
        ) from error
