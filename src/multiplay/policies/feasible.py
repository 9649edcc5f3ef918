"""What a policy chooses must be an action of the set, wherever it leaves the library."""

from multiplay.actions import ActionSet, OracleSet
from multiplay.actions.base import whole_box
from multiplay.policies.base import Play, Policy
from multiplay.types import BoolArray, IntArray


def check_play(
    policy: Policy,
    actions: ActionSet,
    play: Play,
    trials: int,
    when: str,
    *,
    restored: bool = False,
) -> None:
    """Raise ``ArithmeticError`` unless a policy has chosen an action of the set in every trial.

    ``restored`` says that the policy's state came from another process.
    """
    action, shape = play.action, (trials, actions.d)
    if action.shape != shape or False in _inside(actions, action, restored).tolist():
        raise no_action(policy, actions, trials, when)


def no_action(policy: Policy, actions: ActionSet, trials: int, when: str) -> ArithmeticError:
    """Return the error of a play that is outside the set."""
    return ArithmeticError(
        f"{policy!r} chose in {when} what is no action of {actions!r}. Fix choose(): it must "
        f"return actions of the set, in an array of shape {(trials, actions.d)}."
    )


def _inside(actions: ActionSet, action: IntArray, restored: bool) -> BoolArray:
    """Say which actions are in the set, as far as that can be known.

    A set with nothing but an oracle knows the actions that it has answered itself; a restored state
    may hold others, which it answered in another process.
    """
    if restored and isinstance(actions, OracleSet) and type(actions).contains is OracleSet.contains:
        return whole_box(action.astype(float), actions.n)
    inside: BoolArray = actions.contains(action)
    return inside
