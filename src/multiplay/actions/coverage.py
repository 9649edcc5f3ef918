"""Coverage: attempts that need to succeed once, with a reward that is not linear."""

from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import (
    for_each_arm,
    natural_number,
    numbers,
    unit_interval,
    with_last_axis,
)
from multiplay.actions.base import ActionSet, Duplicate, owners, read_only
from multiplay.actions.budget import Budget
from multiplay.actions.costs import SetCost, SetSize, length, positive
from multiplay.errors import InvalidInput
from multiplay.hull import Hull
from multiplay.kernels.selection import cheapest
from multiplay.types import FloatArray, IntArray

# Attempts times targets: every plan takes a table of so many numbers.
MOST_ATTEMPTS = 1_000_000


class Coverage(Budget):
    r"""Attempts to be spread over targets, where one success on a target is enough.

    .. math::

        \mathcal{A} &= \Bigl\{a \in \mathbb{Z}_{\ge 0}^d :
            \sum_{i=1}^d a_i = \text{budget}\Bigr\}, \\
        r(a, \mu) &= \sum_{i=1}^d w_i \bigl(1 - (1 - \mu_i)^{a_i}\bigr)

    Arm i is a target, and :math:`a_i` the number of attempts on it: calls to a customer, sensors on
    a site. Each attempt succeeds with probability :math:`\mu_i`, independently; :math:`w_i` is
    earned if at least one does, and :math:`r(a, \mu)` is the expected reward.

    The best action is found greedily: the j-th attempt on target i adds
    :math:`g_{ij} = w_i \mu_i (1 - \mu_i)^{j - 1}`, and the ``budget`` largest of all :math:`g_{ij}`
    are taken. Proof: the reward of a is :math:`\sum_i (g_{i1} + \dots + g_{i a_i})`, a sum of
    ``budget`` different :math:`g_{ij}`, so no action earns more than the ``budget`` largest ones.
    And :math:`g_{i1} \ge g_{i2} \ge \dots`, so these can be chosen as the first few of every
    target: they are those of an action.

    Means are estimated as always, but FTRL needs a linear reward, and refuses this set.

    Parameters
    ----------
    budget
        Number of attempts.
    weights
        :math:`w_i \ge 0`, what a success on target i is worth.
    names
        Names of the targets.

    Examples
    --------
    >>> calls = Coverage(budget=4, weights=[3, 1])
    >>> calls.best([0.5, 0.9])
    array([3, 1])
    >>> float(calls.value([3, 1], [0.5, 0.9]))
    3.525
    """

    linear = False

    cost = SetCost(
        SetSize("weights", lambda s: length(s["weights"])),
        oracle="flow",
        other=(
            SetSize(
                "budget",
                lambda s: length(s["weights"]) * positive(s["budget"]),
                MOST_ATTEMPTS,
                "attempts, the budget times the targets",
            ),
        ),
    )

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls(budget=4, weights=[3, 1])

    def __init__(self, budget: int, weights: ArrayLike, names: Sequence[str] | None = None) -> None:
        self.weights = read_only(_weights(weights).copy())
        attempts = natural_number("budget", budget, "Give the number of attempts, 0 or more.")
        owners(np.full(len(self.weights), attempts))  # refuses too many
        super().__init__(attempts, np.full(len(self.weights), attempts), names=names, sense="max")
        self.budget = attempts

    def __repr__(self) -> str:
        return f"Coverage({self.budget}, weights={self.weights.tolist()})"

    def value(self, action: ArrayLike, means: ArrayLike) -> FloatArray:
        """Return sum_i w_i (1 - (1 - mu_i)^a_i), along the last axis."""
        a, mu = with_last_axis("action", action, self.d), _chances(means, self.d)
        values: FloatArray = (self.weights * (1 - (1 - mu) ** a)).sum(axis=-1)
        return values

    def best(self, means: ArrayLike) -> IntArray:
        """Take the attempts of the largest gains."""
        mu = _chances(means, self.d)
        each = np.repeat(mu.reshape(-1, self.d, 1), self.budget, axis=2)
        return _attempts(each, self.weights, self.n).reshape(mu.shape)

    def _within(self, most: IntArray, fixed: IntArray) -> tuple[ActionSet, IntArray]:
        """Limit the free attempts: fixed ones earn the same in all actions."""
        units, others = np.maximum(fixed, 0), self._fresh()
        others.budget = self.budget - int(units.sum())
        Budget.__init__(others, others.budget, np.where(fixed >= 0, 0, most), sense="max")
        return others, units

    @cached_property
    def _duplicate(self) -> Duplicate:
        return Duplicate(CoverageCopies(self), owners(self.n))

    @cached_property
    def hull(self) -> Hull:
        """Raise ``InvalidInput``: the mean of a random action does not determine its reward."""
        raise InvalidInput(
            "actions",
            "a set with a linear objective <a, means>, which follow-the-regularised-leader needs: "
            "it plays at random around the mean of the best actions",
            f"{self!r}",
            "Use PooledCTS.",
        )


class CoverageCopies(Budget):
    """The copied problem: every attempt on a target is an arm of its own, with its own chance."""

    linear = False

    def __init__(self, original: Coverage) -> None:
        self.original = original
        super().__init__(original.budget, np.ones(original.n.sum()), sense="max")

    def value(self, action: ArrayLike, means: ArrayLike) -> FloatArray:
        """Return sum_i w_i (1 - prod over the played copies j of target i of (1 - mu_ij))."""
        a, mu = with_last_axis("action", action, self.d), _chances(means, self.d)
        failed = self._by_target(1 - a * mu).prod(axis=-1)
        values: FloatArray = (self.original.weights * (1 - failed)).sum(axis=-1)
        return values

    def best(self, means: ArrayLike) -> IntArray:
        """Take the attempts of the largest gains, the most promising copies of a target first."""
        mu = _chances(means, self.d)
        each = self._by_target(mu.reshape(-1, self.d))
        order = np.argsort(-each, axis=2, kind="stable")
        falling = np.take_along_axis(each, order, axis=2)
        attempts = _attempts(falling, self.original.weights, self.original.n)
        first = np.arange(self.original.budget) < attempts[:, :, None]
        chosen = np.empty(each.shape, dtype=np.int64)
        np.put_along_axis(chosen, order, first.astype(np.int64), axis=2)
        return chosen.reshape(mu.shape)

    def _by_target(self, values: FloatArray) -> FloatArray:
        return values.reshape(*values.shape[:-1], self.original.d, self.original.budget)

    @cached_property
    def hull(self) -> Hull:
        """Raise ``InvalidInput``, as the original set does."""
        return self.original.hull


def _attempts(each: FloatArray, weights: FloatArray, n: IntArray) -> IntArray:
    """Return the best number of attempts per target, from falling chances (rows, d, budget)."""
    rows, d, budget = each.shape
    failed_before = np.ones(each.shape)
    failed_before[:, :, 1:] = np.cumprod(1 - each[:, :, :-1], axis=2)
    gains = weights[:, None] * each * failed_before
    chosen = np.empty((rows, d * budget), dtype=np.int64)
    allowed = (np.arange(budget) < n[:, None]).astype(np.int64).ravel()
    cheapest(-gains.reshape(rows, -1), allowed, budget, False, chosen)
    attempts: IntArray = chosen.reshape(each.shape).sum(axis=2)
    return attempts


def _weights(weights: ArrayLike) -> FloatArray:
    array = numbers("weights", weights)
    if array.ndim != 1 or len(array) == 0 or (array < 0).any():
        raise InvalidInput(
            "weights",
            "a list of numbers that are not negative",
            f"{array.tolist()}",
            "Give a weight of 0 or more for each target.",
        )
    return array


def _chances(means: ArrayLike, d: int) -> FloatArray:
    return unit_interval("means", for_each_arm("means", means, d))
