"""Policies that play as another policy: what they share with it, and what they need of it."""

from collections.abc import Iterator

import numpy as np

from multiplay._support.hints import Hint
from multiplay.actions import ActionSet
from multiplay.actions.base import ORDERED
from multiplay.actions.costs import Requirement
from multiplay.errors import InvalidInput
from multiplay.policies.base import LearnsFrom, Policy
from multiplay.policies.index import ArmPolicy, orders_units
from multiplay.random import Streams
from multiplay.types import Arrays, BoolArray, FloatArray


class Wrapped(Policy):
    """A policy that plays as ``policy`` unless there is a reason to play a different plan."""

    policy: Policy

    def requirements(self, actions: ActionSet) -> Iterator[Requirement]:
        """Yield what ``policy`` requires."""
        yield from self.policy.requirements(actions)

    @property
    def learns_from(self) -> LearnsFrom:  # type: ignore[override]
        """What the policy learns from."""
        return self.policy.learns_from

    @property
    def changing(self) -> bool:  # type: ignore[override]
        """Whether the policy can play on changing sets."""
        return self.policy.changing

    @property
    def partial(self) -> bool:  # type: ignore[override]
        """Whether the policy allows missing units."""
        return self.policy.partial

    @property
    def needs_range(self) -> bool:  # type: ignore[override]
        """Whether the policy needs a known range."""
        return self.policy.needs_range

    @property
    def absorbs(self) -> bool:  # type: ignore[override]
        """Whether the policy learns from external plans."""
        return self.policy.absorbs

    @property
    def pools(self) -> bool:  # type: ignore[override]
        """Whether arms that are absent from a round teach the policy."""
        return self.policy.pools

    def taught(self, state: Arrays, offset: FloatArray) -> Arrays:
        """Return what absent arms teach the policy."""
        return self.policy.taught(state, offset)

    def absent(self, state: Arrays, rounds: int, offset: FloatArray | float) -> None:
        """Let rounds pass for the policy."""
        self.policy.absent(state, rounds, offset)

    def believed(self, state: Arrays) -> FloatArray | None:
        """Return what the policy believes."""
        return self.policy.believed(state)

    def interval(self, state: Arrays, level: float) -> tuple[FloatArray, FloatArray] | None:
        """Return the interval of the policy."""
        return self.policy.interval(state, level)

    def warm(self, actions: ActionSet) -> tuple[str, ...]:
        """Return the entries of the policy that belong to this set."""
        return self.policy.warm(actions)


def must_see(policy: Policy, actions: ActionSet, state: Arrays) -> BoolArray:
    """Return in which trials some arms must be seen before the best plan is played."""
    if isinstance(policy, ArmPolicy) and policy.posterior.sees_first:
        early: BoolArray = np.asarray(policy.posterior.unseen(actions, state).any(axis=1))
        return early
    return np.zeros(1, dtype=bool)


def has_index(policy: Policy, actions: ActionSet, state: Arrays) -> bool:
    """Return whether a policy plays the best plan for some costs."""
    trials = max(map(len, state.values()), default=1)
    return policy.index(actions, state, Streams.spawn(0, 0, [0] * trials)) is not None


def check_index(policy: Policy, indexed: bool, because_of: str) -> None:
    """Raise ``InvalidInput`` if a policy has no costs for which a different plan can be the best.

    ``indexed`` is ``has_index``; ``because_of`` needs these costs, such as "the allowance".
    """
    if not indexed:
        raise InvalidInput(
            "policy",
            f"a policy that plays the best plan for some costs, because of {because_of}",
            f"{policy!r}",
            "Use PooledCTS or GenCTS.",
        )


def check_arm_means(policy: Policy) -> None:
    """Raise ``InvalidInput`` if units have means of their own, with which no allowance is made."""
    if orders_units(policy):
        expected = "one mean for each arm, because an allowance compares plans by them"
        raise InvalidInput("policy", expected, f"{policy!r}", Hint("Leave out {}.", ORDERED))


def check_limits(policy: Policy, actions: ActionSet, indexed: bool) -> None:
    """Raise ``InvalidInput`` if an allowance cannot limit a policy on this set."""
    check_index(policy, indexed, "the allowance")
    if not actions.affine:
        raise InvalidInput(
            "actions",
            "a set whose costs are sums over units, because an allowance is a share of them",
            f"{actions!r}",
            "Leave out the baseline.",
        )
