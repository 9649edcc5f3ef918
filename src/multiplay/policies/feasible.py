"""The check that stands where a policy's action leaves the library."""

from multiplay.actions import ActionSet
from multiplay.policies.base import Play, Policy


def check_play(policy: Policy, actions: ActionSet, play: Play, trials: int, when: str) -> None:
    """Raise ``ArithmeticError`` unless a policy has chosen an action of the set in every trial."""
    action, shape = play.action, (trials, actions.d)
    if action.shape != shape or not actions.contains(action).all():
        raise ArithmeticError(
            f"{policy!r} chose in {when} what is no action of {actions!r}. "
            f"Fix choose(): it must return actions of the set, in an array of shape {shape}."
        )
