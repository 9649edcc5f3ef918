r"""The plan of a round under several constraints.

A policy proposes the best plan for its costs :math:`\theta`, one in each row. Every constraint is a
``Term`` of the round: it may add a cost of changes to all plans, replace a plan that it does not
permit, and test plans. ``planned`` applies them in their order, and what a term plays instead
passes the tests of the terms before it: a promise that can be kept is certain and comes first, and
an allowance, which holds with a probability, comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from multiplay.actions import ActionSet
from multiplay.actions.base import added, best_of
from multiplay.actions.limits import Limited
from multiplay.constraints.switching import Changes
from multiplay.types import BoolArray, FloatArray, IntArray

MOST_COPIES = 20_000  # units of a set in which plans between others are searched
FAR = 10.0  # of the range of losses: what an arm that must be seen costs less
Keeps: TypeAlias = Callable[[IntArray], BoolArray]  # of plans for each row, (rows, k, d)


class Cheapest:
    """The plans of the least cost, by the policy and by what constraints add.

    Attributes
    ----------
    actions : ActionSet
        The set.
    theta : array of shape (rows, d), or (rows, d, K) by unit
        The costs of the policy; made where they are needed.
    proposal : array of shape (rows, d)
        The best plans for them.
    changes : Changes or None
        What changes of the last plans cost.
    paid : array of shape (rows, d) or None
        What a unit of each arm pays for promises, once these have found the plan.
    """

    def __init__(
        self,
        actions: ActionSet,
        theta: Callable[[], FloatArray],
        proposal: IntArray,
        changes: Changes | None = None,
        paid: FloatArray | None = None,
    ) -> None:
        self.actions, self._theta, self.proposal = actions, theta, proposal
        self.changes, self.paid = changes, paid

    @cached_property
    def theta(self) -> FloatArray:
        """The costs of the policy."""
        return self._theta()

    def rows(self, which: IntArray) -> Cheapest:
        """Return the same for some rows."""
        changes = None if self.changes is None else self.changes.rows(which)
        paid = None if self.paid is None else self.paid[which]
        return Cheapest(
            self.actions, lambda: self.theta[which], self.proposal[which], changes, paid
        )

    def plan(self, paid: FloatArray | None = None) -> IntArray:
        """Return the plans where a unit of each arm pays ``paid`` more, (rows, d)."""
        changes, plan = self.changes, self.proposal
        if paid is not None:
            theta = added(self.theta, self.actions.sign * paid)
            plan = best_of(self.actions, theta)
        elif changes is not None and changes.cost_something:
            theta = self.theta
        else:
            return plan
        return plan if changes is None else changes.plans(self.actions, theta, plan)

    def costs(self) -> FloatArray:
        """Return what a unit of each arm costs with what it pays, (rows, d)."""
        theta = self.theta if self.paid is None else self.theta + self.actions.sign * self.paid
        return self.actions.costs_of(theta)


class Term:
    """A constraint in one round. Every method does nothing here."""

    def changes(self) -> Changes | None:
        """Return what changes of the last plans cost."""
        return None

    def enforce(self, plan: IntArray, cheapest: Cheapest, keeps: Keeps) -> IntArray:
        """Return plans that are permitted, (rows, d); ``keeps`` tests by the terms before."""
        return plan

    def holds(self, plans: IntArray) -> BoolArray:
        """Return which of some plans for each row, (rows, k, d), are permitted."""
        return np.ones(plans.shape[:2], dtype=bool)


class Switching(Term):
    """A switching cost in one round: all plans pay for changes of the last ones."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    def changes(self) -> Changes:
        """Return what changes of the last plans cost."""
        return self._changes


def planned(
    actions: ActionSet, theta: Callable[[], FloatArray], proposal: IntArray, terms: Sequence[Term]
) -> IntArray:
    """Return the plans of a round, (rows, d).

    Parameters
    ----------
    actions
        The set.
    theta, proposal
        Makes the costs of each row, (rows, d); and the policy's plans, the best for them.
    terms
        The constraints in their order: certain ones first. At most one has a cost of changes.

    Examples
    --------
    Another arm is cheaper by 0.3, and a unit that moves there costs two changes:

    >>> from multiplay import Budget
    >>> plans, theta, last = Budget(3, caps=[3, 3]), np.array([[0.5, 0.2]]), np.array([[2, 1]])
    >>> for cost in (0.1, 0.2):
    ...     term = Switching(Changes(last, np.array([cost])))
    ...     print(planned(plans, lambda: theta, plans.best(theta), [term]))
    [[0 3]]
    [[2 1]]
    """
    changes = [found for term in terms if (found := term.changes()) is not None]
    cheapest = Cheapest(actions, theta, proposal, changes[0] if changes else None)
    plan, passed = cheapest.plan(), list[Term]()
    for term in terms:
        plan = term.enforce(plan, cheapest, _all_of(tuple(passed)))
        passed.append(term)
    return plan


def _all_of(terms: Sequence[Term]) -> Keeps:
    def keeps(plans: IntArray) -> BoolArray:
        held = np.ones(plans.shape[:2], dtype=bool)
        for term in terms:
            held &= term.holds(plans)
        return held

    return keeps


def is_network(actions: ActionSet) -> bool:
    """Return whether actions are flows, so that plans between others take milliseconds."""
    copies = int(actions.n.sum())
    while isinstance(actions, Limited):
        actions = actions.actions
    return 0 < copies <= MOST_COPIES and actions.cost is not None and actions.cost.oracle == "flow"


def seen_first(
    actions: ActionSet, theta: FloatArray, proposal: IntArray, early: BoolArray | None = None
) -> FloatArray:
    """Return the costs of a policy, less for arms that it plays because they were never seen.

    Where its proposal is not the best plan for its costs, the arms of the proposal must be seen
    first, and cost far less: so a constraint that changes the plan keeps many of them. ``early``
    are the rows where that may be so, (rows,); all of them if it is None, but none by unit.

    Examples
    --------
    >>> from multiplay import Budget
    >>> plans, theta, proposal = Budget(1, [1, 1]), np.array([[0.0, 0.3]]), np.array([[0, 1]])
    >>> seen_first(plans, theta, proposal)
    array([[ 0. , -9.7]])
    """
    finite: FloatArray = np.nan_to_num(theta, nan=0.5, posinf=FAR, neginf=-FAR)
    if theta.ndim == 3 or (early is not None and not early.any()):
        return finite
    first = (actions.best(finite) != proposal).any(axis=1)
    if early is not None:
        first &= early
    return np.where(first[:, None] & (proposal > 0), finite - actions.sign * FAR, finite)
