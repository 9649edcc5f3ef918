"""Switching cost: plans that weigh what a change of the last plan costs against what it saves."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from multiplay._support.checks import is_number
from multiplay.actions import ActionSet
from multiplay.actions.base import owners, unit_numbers, values_of
from multiplay.constraints.constraint import Constraint
from multiplay.errors import InvalidInput
from multiplay.types import FloatArray, IntArray

MOST_COPIES = 20_000  # units of a set in which a plan with switching costs is searched


@dataclass(frozen=True)
class SwitchingCost(Constraint):
    r"""Every unit that differs from the last plan costs something.

    With the last plan b, which was played h times in a row, and the costs :math:`\theta` of which
    a policy would play the best plan (its draw, or its bounds),

    .. math::

        a = \operatorname*{arg\,min}_{a \in \mathcal{A}}
            \langle a, \theta \rangle + \frac{c}{\sqrt{h}} \sum_i |a_i - b_i|,

    and the difference of both at its largest for rewards. A change costs c once and saves in every
    round after it: so a new plan has to save its whole cost in one round, and a plan that has
    stayed for long is given up for less. Without :math:`\sqrt{h}` a large c would keep the first
    plan for ever, at a multiple of the cost: see "Switching costs" in docs/choosing.md. A unit
    more and a unit less count one each, so a unit that moves from one arm to another costs 2c: for
    a cost of 15 of each moved unit, use 7.5. Units of arms that the set of a round does not have
    do not count. The first plan costs nothing. Units that were not seen were played all the same,
    and plays without a report are last plans too.

    The minimum is exact on flows, and wherever an arm can be copied (budgets, knapsacks, integer
    programs, models, listed sets): the k-th unit of arm i costs :math:`\theta_i - c / \sqrt{h}` up
    to :math:`b_i`, and :math:`\theta_i + c / \sqrt{h}` beyond, which is convex. It is the better
    one of the last plan and the policy's own plan on all other sets: with a nonlinear objective,
    with known costs of helpers, and with more than 20,000 units. Random numbers are those of the
    policy alone. It is measured, and no bound is claimed.

    Parameters
    ----------
    cost
        c, the cost of each unit that differs, in the unit of the losses; 0 or more.

    References
    ----------
    Dekel, Ding, Koren, Peres: Bandits with Switching Costs: T^{2/3} Regret, STOC 2014. (The
    problem, for adversarial losses; read: the abstract. The rule here is our own.)

    Examples
    --------
    >>> from multiplay import Constrained, GenCTS, Stochastic, SwitchingCost, Transport, Uniform
    >>> from multiplay import simulate
    >>> plans, means = Transport([1, 4, 5], [4, 6]), np.array([0.1, 0.6, 0.4, 0.7, 0.3, 0.2])
    >>> world = Stochastic(Uniform(means - 0.1, means + 0.1))
    >>> policies = {"free": GenCTS(), "calm": Constrained(GenCTS(), [SwitchingCost(0.05)])}
    >>> simulate(plans, world, policies, horizon=60, trials=5).final("calm").shape
    (5,)
    """

    cost: float

    def __post_init__(self) -> None:
        if not is_number(self.cost) or not 0 <= self.cost < np.inf:
            hint = "Use the cost of one unit that differs from the last plan."
            raise InvalidInput("cost", "a number of 0 or more", repr(self.cost), hint)
        object.__setattr__(self, "cost", float(self.cost))

    @property
    def name(self) -> str:
        """Its name: there is one for all plans."""
        return "switching cost"


def charged(change: float, held: IntArray) -> FloatArray:
    """Return the cost of a unit that differs from a plan that was played so many times in a row.

    Examples
    --------
    >>> charged(15.0, np.array([0, 1, 9]))
    array([ 0., 15.,  5.])
    """
    return np.where(held > 0, change / np.sqrt(np.maximum(held, 1)), 0.0)


class Changes(NamedTuple):
    """What changes of the last plans cost.

    Attributes
    ----------
    last : array of shape (rows, d)
        The last plans, in the set or not.
    charge : array of shape (rows,)
        The cost of each unit that differs, in the unit of the policy; 0 before the first plan.
    """

    last: IntArray
    charge: FloatArray

    @property
    def cost_something(self) -> bool:
        """Whether changes cost something in any row."""
        return bool(self.charge.any())

    def rows(self, which: IntArray) -> Changes:
        """Return the same for some rows."""
        return Changes(self.last[which], self.charge[which])

    def of(self, plans: IntArray) -> FloatArray:
        """Return what plans for each row cost by their changes, (rows, k)."""
        cost: FloatArray = self.charge[:, None] * np.abs(plans - self.last[:, None]).sum(axis=2)
        return cost

    def by_unit(self, owner: IntArray, k: IntArray) -> FloatArray:
        """Return what the k-th unit of arm ``owner`` costs more or less, (rows, units)."""
        return np.where(k <= self.last[:, owner], -1.0, 1.0) * self.charge[:, None]

    def plans(self, actions: ActionSet, theta: FloatArray, proposal: IntArray) -> IntArray:
        """Return the plans of the least cost by theta and by their differences from the last plans.

        Parameters
        ----------
        actions
            The set.
        theta, proposal
            The costs of each row, (rows, d) or by unit, (rows, d, K), and the best plans for them.
            The proposal is returned where changes cost nothing.

        Examples
        --------
        Another arm is cheaper by 0.3; a unit that moves there costs two changes.

        >>> from multiplay import Budget
        >>> plans, theta, last = Budget(3, caps=[3, 3]), np.array([[0.5, 0.2]]), np.array([[2, 1]])
        >>> for change in (0.1, 0.2):
        ...     print(Changes(last, np.array([change])).plans(plans, theta, np.array([[0, 3]])))
        [[0 3]]
        [[2 1]]
        """
        last, free, n = self.last, self.charge == 0.0, actions.n
        if free.all():
            return proposal
        if actions.linear and 0 < n.sum() <= MOST_COPIES:
            owner, k = owners(n), unit_numbers(n)
            with suppress(InvalidInput):  # a set of the user that cannot be copied
                costs = actions.costs_by_unit(theta) + self.by_unit(owner, k)
                found = actions.argmin_increasing(costs)
                return np.where(free[:, None], proposal, found)
        rows = np.arange(len(theta))
        both = np.stack(
            [proposal, np.where(actions.contains(last)[:, None], last, proposal)], axis=1
        )
        values = actions.sign * values_of(actions, both, theta) + self.of(both)
        better: IntArray = both[rows, values.argmin(axis=1)]
        return better
