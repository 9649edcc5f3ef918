"""Integer knapsacks: units of items within a capacity."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import numbers, whole_numbers, with_last_axis
from multiplay.actions.base import (
    ActionSet,
    Duplicate,
    extensions,
    owners,
    read_only,
    too_many,
    whole_box,
)
from multiplay.actions.costs import Requirement, SetCost, SetSize, length
from multiplay.errors import InvalidInput
from multiplay.kernels.knapsack import NODE_CAP, OPTIMAL, best_packings
from multiplay.types import BoolArray, FloatArray, IntArray

MOST = 2**61  # weights and capacity, once they are integers
# Capacity in the largest unit in which all weights are integers: 1 s for the worst rewards that
# were found; at 10^7 a plan takes 6 s and 700 MB, or is not found.
MOST_CAPACITY = 1_000_000


class Knapsack(ActionSet, vectorised=True):
    r"""Items that bring rewards, within the capacity of a knapsack.

    .. math::

        \mathcal{A} = \Bigl\{a \in \mathbb{Z}^d :
            \; & 0 \le a_i \le \text{limits}_i, \\
            & \sum_{i=1}^d \text{weights}_i \, a_i \le \text{capacity}\Bigr\}

    Arm i is an item, and :math:`a_i` how many of it are packed. The most valuable packing is found
    by branch and bound, with dynamic programming behind it. Weights may be fractions: 0.1 means one
    tenth, and three of them fit into 0.3.

    Parameters
    ----------
    weights, capacity
        What a unit of each item weighs, and what the knapsack takes.
    limits
        The most units of each item, a number for all or a list; no limits but the capacity if not
        given.
    names
        Names of the items.

    See Also
    --------
    IntegerProgram : Several constraints.

    Examples
    --------
    >>> sack = Knapsack(weights=[3, 4, 5], capacity=10)
    >>> sack.n, len(sack.enumerate())
    (array([3, 2, 2]), 12)
    >>> sack.best([0.4, 0.6, 0.7])
    array([2, 1, 0])
    >>> Knapsack([0.1, 0.25], capacity=0.3, limits=5).n
    array([3, 1])
    """

    cost = SetCost(SetSize("weights", lambda s: length(s["weights"])), oracle="search")
    quick_oracle = True

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls(weights=[3, 4, 5], capacity=10)

    def __init__(
        self,
        weights: ArrayLike,
        capacity: float,
        limits: int | ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.weights = read_only(_not_negative("weights", weights).copy())
        given = _not_negative("capacity", capacity)
        if self.weights.ndim != 1 or len(self.weights) == 0 or given.ndim != 0:
            raise InvalidInput(
                "weights, capacity",
                "a list of weights, and one capacity",
                f"shapes {self.weights.shape} and {given.shape}",
                "Give one weight for each item.",
            )
        self.capacity = given.item()
        self._weights, self._capacity = _as_integers(self.weights, self.capacity)
        self.limits = None if limits is None else read_only(_limits(limits, len(self.weights)))
        self.n = self._most()
        super().__init__(names, sense="max")

    def __repr__(self) -> str:
        return f"Knapsack({len(self.weights)} items, capacity {self.capacity:g})"

    def requirements(self) -> list[Requirement]:
        """Limit the capacity, on which the dynamic programming depends."""
        unit = "times the largest unit in which all weights are whole"
        amount, hint = self._capacity, "Round the weights."
        return [Requirement("capacity", amount, MOST_CAPACITY, unit, f"{amount} times", hint)]

    def _most(self) -> IntArray:
        weightless = self._weights == 0
        if weightless.any() and self.limits is None:
            arm = int(np.argmax(weightless))
            raise InvalidInput(
                "limits",
                "a limit for an item without weight",
                f"no limit for item {arm + 1}",
                "Give a limit for it.",
            )
        fit = np.where(weightless, MOST, self._capacity // np.maximum(self._weights, 1))
        return fit if self.limits is None else np.minimum(fit, self.limits)

    @cached_property
    def m(self) -> int:
        """Largest number of different items: one of each of the lightest."""
        lightest = np.sort(self._weights[self.n > 0]).astype(object)
        return int((np.cumsum(lightest) <= self._capacity).sum())

    @cached_property
    def M(self) -> int:  # noqa: N802
        """Largest number of units: the lightest items first."""
        units, room = 0, self._capacity
        for i in np.argsort(self._weights, kind="stable"):
            weight, most = int(self._weights[i]), int(self.n[i])
            packed = most if weight == 0 else min(most, room // weight)
            units, room = units + packed, room - packed * weight
        return units

    def oracle(self, costs: FloatArray) -> IntArray:
        """Solve by branch and bound; by dynamic programming where that takes too long."""
        actions = np.empty(costs.shape, dtype=np.int64)
        status = best_packings(self._weights, self._capacity, self._n, -costs, NODE_CAP, actions)
        if status != OPTIMAL:
            raise ArithmeticError(
                "no best packing was found: the weights have too many digits for these rewards"
            )
        return actions

    def contains(self, action: ArrayLike) -> BoolArray:
        """Return whether vectors are integral, within the limits, and not too heavy."""
        a = with_last_axis("action", action, self.d)
        inside = whole_box(a, self.n) & (a @ self._weights <= 1.5 * self._capacity)
        # what is far too heavy is out already, so that integers do not overflow
        whole = np.where(inside[..., None], a, 0.0).astype(np.int64)
        light: BoolArray = inside & (whole @ self._weights <= self._capacity)
        return light

    def enumerate(self, limit: int = 100_000) -> IntArray:
        """Return all packings: partial ones are extended item by item, by what still fits."""
        packed, room = np.zeros((1, 0), dtype=np.int64), np.array([self._capacity])
        for weight, n in zip(self._weights, self.n, strict=True):
            most = np.minimum(n, room // weight) if weight > 0 else np.full(len(room), n)
            if (most + 1).sum() > limit:
                raise too_many(limit)
            row, units = extensions(np.zeros(len(room), dtype=np.int64), most)
            packed = np.column_stack([packed[row], units])
            room = room[row] - weight * units
        return packed

    def _within(self, most: IntArray, fixed: IntArray) -> tuple[ActionSet, IntArray]:
        """Pack the fixed units; the other items share the remaining capacity."""
        units, others = np.maximum(fixed, 0), self._fresh()
        weight = sum(w * u for w, u in zip(self._weights.tolist(), units.tolist(), strict=True))
        if weight > self._capacity:
            raise InvalidInput(
                "capacity", "at least the weight of the fixed units", "less", "Raise the capacity."
            )
        others._capacity = self._capacity - weight
        others.n = np.minimum(others._most(), np.where(fixed >= 0, 0, most))
        return others, units

    @cached_property
    def _duplicate(self) -> Duplicate:
        """The knapsack with n_i copies of item i, each packed or not."""
        owner = owners(self.n)
        return Duplicate(Knapsack(self.weights[owner], self.capacity, limits=1), owner)


def _not_negative(argument: str, values: ArrayLike) -> FloatArray:
    array = numbers(argument, values)
    if (array < 0).any():
        got = f"{array[array < 0].flat[0]:g}"
        raise InvalidInput(
            argument, "numbers that are not negative", got, "Give numbers of 0 or more."
        )
    return array


def _as_integers(weights: FloatArray, capacity: float) -> tuple[IntArray, int]:
    """Return weights and capacity in a unit in which all weights are integers.

    A float stands for its shortest decimal form, as a user writes it.
    """
    exact, room = [Fraction(repr(w)) for w in weights.tolist()], Fraction(repr(float(capacity)))
    unit = Fraction(math.gcd(*(w.numerator for w in exact)) or 1, 1) / math.lcm(
        *(w.denominator for w in exact)
    )
    whole, total = [int(w / unit) for w in exact], room // unit
    largest = max(total, *whole)
    if largest > MOST:
        raise InvalidInput(
            "weights, capacity",
            "weights with fewer digits",
            f"10^{math.log10(largest):.0f} times the largest unit in which all are whole",
            "Round the weights.",
        )
    return np.array(whole, dtype=np.int64), int(total)


def _limits(limits: ArrayLike, d: int) -> IntArray:
    array = whole_numbers("limits", limits)
    if array.ndim == 0:
        return np.full(d, array)
    if array.shape != (d,):
        got = f"shape {array.shape}"
        raise InvalidInput("limits", f"a number, or {d} numbers", got, "Give one for each item.")
    return array
