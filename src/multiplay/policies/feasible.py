"""What a policy chooses must be an action of the set, wherever it leaves the library."""

from multiplay.actions import ActionSet
from multiplay.policies.base import Play, Policy


def check_play(policy: Policy, actions: ActionSet, play: Play, trials: int, when: str) -> None:
    """Raise ``ArithmeticError`` unless a policy has chosen an action of the set in every trial."""
    action, shape = play.action, (trials, actions.d)
    if action.shape != shape or not actions.contains(action).all():
        raise no_action(policy, actions, trials, when)


def no_action(policy: Policy, actions: ActionSet, trials: int, when: str) -> ArithmeticError:
    """Return the error of a play that is outside the set."""
    return ArithmeticError(
        f"{policy!r} chose in {when} what is no action of {actions!r}. Fix choose(): it must "
        f"return actions of the set, in an array of shape {(trials, actions.d)}."
    )
