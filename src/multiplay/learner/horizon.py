"""A horizon that is over: the policy goes on, and says so once."""

import warnings

from multiplay._support.checks import is_integer
from multiplay.policies import Duplicated, Policy

TELLER = 4  # who called the learner


def own_horizon(policy: Policy) -> int | None:
    """Return the number of rounds that a policy was made for, if it says one itself."""
    T = getattr(_without_copies(policy), "horizon", None)
    return T if is_integer(T) else None


def warn_if_over(policy: Policy, told: int) -> None:
    """Warn in the first round after a policy's own horizon, and in no other.

    ``told`` is the number of rounds told so far. It is kept with the learner, so that one that was
    loaded does not warn again.

    Examples
    --------
    >>> import warnings
    >>> from multiplay import GenLBINFV
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     for told in range(300, 400):
    ...         warn_if_over(GenLBINFV(horizon=365), told)
    >>> len(caught)
    1
    """
    T = own_horizon(policy)
    if T is None or told != T + 1:
        return
    policy = _without_copies(policy)
    name = type(policy).__name__
    without = "LinTS()" if policy.learns_from == "round" else "GenLBINFV()"
    warnings.warn(
        f"the horizon of {name}(horizon={T}) is over: round {told} was told. The learner goes on, "
        f"its plans are right, and it still learns. But its rates are made for {T} rounds, and "
        f"what is proved of its regret ends there. For a study whose end nobody knows, use "
        f"{without}, which needs no horizon; learn again from what was told, or start anew.",
        UserWarning,
        stacklevel=TELLER,
    )


def _without_copies(policy: Policy) -> Policy:
    while isinstance(policy, Duplicated):
        policy = policy.policy
    return policy
