"""Limits on the units of arms: the part of a set that respects them."""

from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support import deadline
from multiplay._support.checks import check_instance, numbers, whole_numbers, with_last_axis
from multiplay.actions.base import ActionSet, owners, read_only, unit_numbers
from multiplay.actions.budget import Budget
from multiplay.errors import InvalidInput
from multiplay.hull import FixedHull, Hull
from multiplay.types import BoolArray, FloatArray, IntArray


class Limited(ActionSet, vectorised=True):
    r"""The actions of a set that respect some limits, over the same arms.

    .. math::

        \{a \in \mathcal{A} :
            \; & a_i \le \text{most}_i, \\
            & a_i = \text{fixed}_i \text{ where } \text{fixed}_i \ge 0\}

    ``limited(actions, most, fixed)`` makes it. Units that are fixed are taken out of the problem:
    what is left is a set of the same kind, with the same oracle and the same hull, where those arms
    are closed.

    Parameters
    ----------
    actions
        The other set, :math:`\mathcal{A}`.
    most
        The most units of each arm; 0 closes it.
    fixed
        The units of each arm, -1 where they are free.

    Examples
    --------
    >>> today = Limited(Budget(5, caps=[4, 4, 2]), most=[4, 2, 2], fixed=[-1, -1, 1])
    >>> today.enumerate()
    array([[2, 2, 1],
           [3, 1, 1],
           [4, 0, 1]])
    >>> today.n
    array([4, 2, 1])
    """

    cost = None  # not offered by the service

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls(Budget(5, caps=[4, 4, 2]), most=[4, 2, 2], fixed=[-1, -1, 1])

    def __init__(self, actions: ActionSet, most: ArrayLike, fixed: ArrayLike) -> None:
        check_instance("actions", actions, ActionSet, "Budget(5, [4, 4, 2])")
        self.actions = actions
        self.fixed = read_only(_fixed(fixed, actions))
        self.most = read_only(_most(most, self.fixed, actions))
        self._rest, self._units = self._without_fixed_units()
        self.n = self._rest.n + self._units
        self.linear, self.offset, self.penalty = actions.linear, actions.offset, actions.penalty
        self.extra, self.has_known = actions.extra, actions.has_known
        self.searches = actions.searches
        super().__init__(actions.names, actions.sense)

    def _without_fixed_units(self) -> tuple[ActionSet, IntArray]:
        """Return the set that is left, and the units to be added to its actions."""
        try:
            return self.actions._within(np.array(self.most), np.array(self.fixed))
        except InvalidInput as error:
            if error.argument == "actions" or deadline.was_missed():
                raise  # it cannot be limited at all, or not in time
        is_fixed = self.fixed >= 0
        is_limited = (self.most < self.actions.n) & ~is_fixed
        used = {"at_most": is_limited.any(), "fixed": is_fixed.any()}
        raise InvalidInput(
            ", ".join(name for name, yes in used.items() if yes),
            f"limits that leave at least one action of {self.actions!r}",
            "limits that leave no action",
            "Open what is closed, raise at_most, or fix other units.",
        ) from None

    def __repr__(self) -> str:
        fixed, closed = int((self.fixed >= 0).sum()), int((self.most == 0).sum())
        return f"Limited({self.actions!r}, {fixed} arms fixed, {closed} closed)"

    def unmet(self, action: ArrayLike) -> dict[str, int]:
        """Return the units of demand that an action leaves unmet, by their names."""
        return self.actions.unmet(action)

    @cached_property
    def m(self) -> int:
        """Largest number of different arms in one action."""
        return self._rest.m + int((self._units > 0).sum())

    @cached_property
    def M(self) -> int:  # noqa: N802
        """Largest number of units in one action."""
        return self._rest.M + int(self._units.sum())

    def oracle(self, costs: FloatArray) -> IntArray:
        """Call the oracle of the set without fixed units."""
        best: IntArray = self._rest.oracle(costs) + self._units
        return best

    def _argmin_increasing(self, costs: FloatArray) -> IntArray:
        free = unit_numbers(self.n) > self._units[owners(self.n)]
        best: IntArray = self._rest._argmin_increasing(costs[:, free]) + self._units
        return best

    def shifted(self, offset: FloatArray, scale: float = 1.0) -> Self:
        """Return the same set with an offset; known costs are those of the set without limits."""
        other = super().shifted(offset, scale)
        if self.has_known:
            other._rest = self._rest.shifted(offset, scale)
            other.offset = other._rest.offset
            vars(other).pop("hull", None)
        return other

    def known(self, action: ArrayLike) -> FloatArray:
        """Return h(a), as A has it."""
        return self._rest.known(action) if self.extra else super().known(action)

    def known_cost(self, action: ArrayLike) -> FloatArray:
        """Return the known cost of actions, as A has it."""
        return self._rest.known_cost(action) if self.has_known else super().known_cost(action)

    def value(self, action: ArrayLike, means: ArrayLike) -> FloatArray:
        """Return the expected loss or reward of an action, as A has it."""
        return super().value(action, means) if self.linear else self._rest.value(action, means)

    def best(self, means: ArrayLike) -> IntArray:
        """Return the action of the best value; fixed units are worth the same in every action."""
        if self.linear and not self.has_known:  # the rest then has no offset
            means = self._whole("means", means)
        best: IntArray = self._rest.best(means) + self._units
        return best

    def contains(self, action: ArrayLike) -> BoolArray:
        """Return whether vectors are in A and respect the limits."""
        a = with_last_axis("action", action, self.d)
        inside: BoolArray = self._rest.contains(a - self._units)
        return inside

    def enumerate(self, limit: int = 100_000) -> IntArray:
        """Return all actions."""
        everything: IntArray = self._rest.enumerate(limit) + self._units
        return everything

    @cached_property
    def hull(self) -> Hull:
        """The hull of the set without fixed units, with these units added."""
        return FixedHull(self._rest.hull, self._units) if self._units.any() else self._rest.hull


def limited(actions: ActionSet, most: ArrayLike, fixed: ArrayLike) -> Limited:
    r"""Return the actions of a set that respect some limits, and those that the set has already.

    .. math::

        \{a \in \mathcal{A} :
            \; & a_i \le \text{most}_i, \\
            & a_i = \text{fixed}_i \text{ where } \text{fixed}_i \ge 0\}

    It has the same arms; a closed one has :math:`n_i = 0`, and a free one -1 in ``fixed``.

    Examples
    --------
    >>> limited(Budget(5, [4, 4, 2]), most=[4, 2, 2], fixed=[-1, -1, 1]).enumerate()
    array([[2, 2, 1],
           [3, 1, 1],
           [4, 0, 1]])
    """
    if not isinstance(actions, Limited):
        return Limited(actions, most, fixed)
    now = _fixed(fixed, actions)
    twice = (actions.fixed >= 0) & (now >= 0) & (now != actions.fixed)
    if twice.any():
        arm = int(twice.argmax())
        raise InvalidInput(
            "fixed",
            f"{actions.fixed[arm]} units of {actions.names[arm]!r}, which are fixed already",
            f"{now[arm]}",
            "Leave this arm out of fixed.",
        )
    least = np.minimum(numbers("at_most", most), actions.most)
    return Limited(
        actions.actions,
        np.where(actions.fixed >= 0, actions.actions.n, least),
        np.maximum(now, actions.fixed),
    )


def _fixed(fixed: ArrayLike, actions: ActionSet) -> IntArray:
    given = numbers("fixed", fixed)
    hint = "Give one number for each arm, -1 where it is free."
    if given.shape != (actions.d,):
        raise InvalidInput("fixed", f"{actions.d} numbers", f"shape {given.shape}", hint)
    wrong = (given < -1) | (given != np.floor(given))
    if wrong.any():
        arm = int(wrong.argmax())
        name, got = actions.names[arm], f"{given[arm]:g}"
        raise InvalidInput("fixed", f"a whole number of units of {name!r}", got, hint)
    many = given > actions.n
    if many.any():
        arm = int(many.argmax())
        raise InvalidInput(
            "fixed",
            f"at most {actions.n[arm]} units of {actions.names[arm]!r}, the most in the set",
            f"{given[arm]:g}",
            "Fix fewer units.",
        )
    return given.astype(np.int64)


def _most(most: ArrayLike, fixed: IntArray, actions: ActionSet) -> IntArray:
    given = numbers("at_most", most)
    if given.shape != (actions.d,):
        hint = "Give one number for each arm, n_i where there is no limit."
        raise InvalidInput("at_most", f"{actions.d} numbers", f"shape {given.shape}", hint)
    limits = whole_numbers("at_most", np.minimum(given, actions.n))
    many = fixed > limits
    if many.any():
        arm = int(many.argmax())
        raise InvalidInput(
            "fixed",
            f"no more than at_most allows, {limits[arm]} units of {actions.names[arm]!r}",
            f"{fixed[arm]}",
            "Fix fewer units, or leave the name out of at_most and exclude.",
        )
    return limits
