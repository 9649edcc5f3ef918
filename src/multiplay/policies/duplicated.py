"""The duplicating technique: a binary-action method on a multi-play problem."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from multiplay._support.checks import check_instance
from multiplay.actions import ActionSet
from multiplay.actions.costs import Requirement
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.kernels import units as kernels
from multiplay.policies.base import LearnsFrom, Play, Policy, PolicyCost
from multiplay.policies.gencts import GenCTS
from multiplay.random import Rng
from multiplay.types import Arrays, IntArray

DEEPER = "copies of "  # before the memo of copies of copies, which has a name of the same kind


@dataclass(frozen=True)
class Duplicated(Policy):
    r"""Run ``policy`` on the problem where every copy of an arm is an arm of its own.

    Its actions b have a 0 or a 1 for each copy, and the copies of arm i make up

    .. math::

        a_i = \sum_{c \,:\, \operatorname{owner}(c) = i} b_c, \qquad b_c \in \{0, 1\}.

    ``Duplicated(GenCTS())`` is CTS and ``Duplicated(GenLBINFV())`` is LBINFV, the baselines of the
    paper. The statistics of the copies stay apart; the samples of an arm are handed to its played
    copies in order. Copies that were not seen cannot be told from others: all units must be seen.

    Parameters
    ----------
    policy
        How to learn on the copies.

    Examples
    --------
    >>> from multiplay import Bernoulli, Duplicated, GenCTS, Stochastic, Transport, simulate
    >>> plans, costs = Transport([1, 4, 5], [4, 6]), [0.1, 0.4, 0.2, 0.3, 0.3, 0.2]
    >>> plans.d, plans.duplicate().actions.d
    (6, 20)

    More arms are more to learn:

    >>> policies = {"CTS": Duplicated(GenCTS()), "GenCTS": GenCTS()}
    >>> simulate(plans, Stochastic(Bernoulli(costs)), policies, horizon=300, trials=10).ranked
    ['GenCTS', 'CTS']
    """

    does = "Treats every unit as something of its own, and leaves the choice to another policy."
    cost = PolicyCost()

    policy: Policy

    def requirements(self, actions: ActionSet) -> Iterator[Requirement]:
        """Limit the copies as the arms of a set, and yield what ``policy`` requires on them."""
        unit = "copied arms for Duplicated"
        most = actions.cost.arms.most if actions.cost else None
        for limit in (most, None):
            yield Requirement("policy", actions.copies, limit, unit)
        yield from self.policy.requirements(actions.duplicate().actions)

    def effort(self, actions: ActionSet) -> float:
        """Return the effort of ``policy``, with a copy for every unit of an arm."""
        policy = self.policy
        while isinstance(policy, Duplicated):
            policy = policy.policy
        return int(actions.n.sum()) * (policy.cost or PolicyCost()).step

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls(GenCTS())

    def __post_init__(self) -> None:
        check_instance("policy", self.policy, Policy, "Duplicated(GenCTS())")

    @property
    def learns_from(self) -> LearnsFrom:  # type: ignore[override]
        """Units, one for each copy; the round, if the policy on the copies learns from that."""
        return "round" if self.policy.learns_from == "round" else "units"

    @property
    def needs_linear(self) -> bool:  # type: ignore[override]
        """Whether the policy on the copies needs a linear objective."""
        return self.policy.needs_linear

    @property
    def uses_known(self) -> bool:  # type: ignore[override]
        """Whether the policy can play sets with known costs of whole actions."""
        return self.policy.uses_known

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state of the policy on the copies."""
        return self.policy.start(actions.duplicate().actions, horizon, trials)

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Choose copies, and play each arm as often as it has chosen copies."""
        copies, owner = actions.duplicate()
        chosen = self.policy.choose(copies, state, rng)
        action = np.empty((len(chosen.action), actions.d), np.int64)
        kernels.collect(chosen.action, owner, action)
        memo = {_deeper(name): array for name, array in chosen.memo.items()}
        memo["copies"] = chosen.action
        return Play(action, memo, chosen.cache)

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Pass the samples of every arm to its played copies."""
        copies, owner = actions.duplicate()
        memo = {k.removeprefix(DEEPER): v for k, v in play.memo.items() if k != "copies"}
        chosen = play.memo["copies"]
        if self.learns_from == "round":
            per_copy = Feedback(chosen, feedback.round_total[:, None])
        else:
            per_copy = self._per_copy(chosen, owner, feedback)
        self.policy.update(copies, state, Play(chosen, memo, play.cache), per_copy, rng)

    def _per_copy(self, chosen: IntArray, owner: IntArray, feedback: Feedback) -> Feedback:
        if feedback.units is None or feedback.first is None:
            raise InvalidInput(
                "feedback",
                "the loss of every unit, for a Duplicated policy",
                "totals per arm",
                "Use the policy without Duplicated: it learns from totals.",
            )
        losses = np.empty(chosen.shape)
        kernels.hand_out(feedback.units, feedback.first, owner, chosen, losses)
        return Feedback(chosen, losses, losses, np.arange(chosen.shape[1] + 1))


def _deeper(name: str) -> str:
    """Return the key of an entry of the copies' memo in the memo of their owners."""
    return DEEPER + name if name.startswith("copies") else name
