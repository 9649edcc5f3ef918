"""Rules: a plan for every set, without learning, to compare with or to fall back on."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from multiplay._support.checks import (
    EXACT,
    check_instance,
    is_integer,
    is_number,
    shortened,
    true_or_false,
)
from multiplay._support.suggestions import suggestion
from multiplay.actions.base import ActionSet, owners, unit_numbers
from multiplay.actions.limits import Limited
from multiplay.actions.transport import Transport
from multiplay.errors import InvalidInput
from multiplay.types import FloatArray, IntArray

MOST_SHOWN = 3  # arms in an error


class Rule(ABC):
    r"""A plan for every set: a function :math:`b` of the set alone, which learns nothing.

    .. math::

        \mathcal{A} \mapsto b(\mathcal{A}) \in \mathcal{A}

    Its settings are plain data, so that a journal can keep it.

    Examples
    --------
    The first action of a list, as a rule of its own:

    >>> from dataclasses import dataclass
    >>> from multiplay import Budget
    >>> @dataclass(frozen=True)
    ... class First(Rule):
    ...     text = "the first action"
    ...
    ...     @classmethod
    ...     def example(cls):
    ...         return cls()
    ...
    ...     def plan(self, actions):
    ...         return actions.enumerate()[0]
    >>> First().plan(Budget(2, caps=[1, 1, 3]))
    array([0, 0, 2])
    """

    @classmethod
    @abstractmethod
    def example(cls) -> Self:
        """Return a rule for the arms "air" and "sea", for examples."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The rule in a few words, such as "a price list"."""

    @abstractmethod
    def plan(self, actions: ActionSet) -> IntArray:
        """Return the action of the rule in a set; ``InvalidInput`` if it has none there."""


@dataclass(frozen=True)
class InProportion(Rule):
    r"""Split units in proportion to supply and demand.

    On a ``Transport``, every supplier serves all demanders alike:

    .. math::

        b_{xy} \approx \text{supply}_x\, \text{demand}_y \,/\,
            \max\Bigl(\sum_x \text{supply}_x, \sum_y \text{demand}_y\Bigr),

    each lane rounded up or down, with the least sum of squared differences. On other sets, arms
    have units in proportion to the most that they can have, :math:`b_i \approx M n_i / \sum_j n_j`;
    the action with the least sum of squared differences is played, in a ``Transport`` with
    capacities or limits too.

    Examples
    --------
    >>> from multiplay import Budget
    >>> InProportion().plan(Transport([1, 4, 5], [4, 6]))
    array([0, 1, 2, 2, 2, 3])
    >>> InProportion().plan(Budget(6, caps=[2, 4, 6]))
    array([1, 2, 3])
    """

    @classmethod
    def example(cls) -> Self:
        """Return the rule."""
        return cls()

    @property
    def text(self) -> str:
        """The rule in a few words."""
        return "a split in proportion"

    def plan(self, actions: ActionSet) -> IntArray:
        """Return the action nearest to a split in proportion."""
        check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
        if isinstance(actions, Transport) and actions.capacities is None:
            return _rounded_split(actions)
        split, n = _split(actions), actions.n
        k = unit_numbers(n)  # the k-th unit changes (a - b)^2 by 2 (k - b) - 1
        action: IntArray = actions.argmin_increasing(2 * (k - split[owners(n)]) - 1)
        return action


@dataclass(frozen=True)
class PriceList(Rule):
    r"""Play the best action for given prices p.

    .. math::

        b = \operatorname*{arg\,min}_{a \in \mathcal{A}} \langle a, p \rangle

    For rewards it is arg max. Known costs of a ``Model`` count too.

    Parameters
    ----------
    prices
        By arm, what a unit costs or brings, in the unit of the losses. Arms that a set does not
        have are ignored; a set whose arm has no price is an error.

    Examples
    --------
    >>> from multiplay import Budget
    >>> PriceList({"air": 9.0, "sea": 4.0}).plan(Budget(3, caps=[2, 2], names=["air", "sea"]))
    array([1, 2])
    """

    prices: Mapping[str, float]

    def __post_init__(self) -> None:
        prices = _by_arm("prices", self.prices, "prices")
        for name, price in prices.items():
            if not is_number(price) or not math.isfinite(price):
                got = shortened(repr(price))
                raise InvalidInput(f"prices[{name!r}]", "a number", got, "Give its price.")
            prices[name] = float(price)
        object.__setattr__(self, "prices", prices)

    @classmethod
    def example(cls) -> Self:
        """Return a list with two prices."""
        return cls({"air": 9.0, "sea": 4.0})

    @property
    def text(self) -> str:
        """The rule in a few words."""
        return "a price list"

    def plan(self, actions: ActionSet) -> IntArray:
        """Return the best action for the prices."""
        check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
        missing = [name for name in actions.names if name not in self.prices]
        if missing:
            hint = "Add their prices." + suggestion(missing[0], self.prices)
            raise InvalidInput("prices", "a price for every arm", f"none for {_few(missing)}", hint)
        return actions.best([self.prices[name] for name in actions.names])


@dataclass(frozen=True)
class FixedPlan(Rule):
    r"""Play the same plan b every time, or the action that is nearest to it.

    .. math::

        \operatorname*{arg\,min}_{a \in \mathcal{A}} \sum_i |a_i - b_i|

    Parameters
    ----------
    units
        The units of each arm; arms that are left out have none.
    nearest
        True: where a set does not have the plan, play the action that moves the fewest units.
        False: that is an error.

    Examples
    --------
    >>> from multiplay import Budget
    >>> usual = FixedPlan({"air": 1, "sea": 2}, nearest=True)
    >>> usual.plan(Budget(3, caps=[2, 2], names=["air", "sea"]))
    array([1, 2])
    >>> usual.plan(Budget(2, caps=[2, 1], names=["air", "sea"]))
    array([1, 1])
    """

    units: Mapping[str, int]
    nearest: bool = False

    def __post_init__(self) -> None:
        units = _by_arm("units", self.units, "units")
        for name, k in units.items():
            if not is_integer(k) or not 0 <= k <= EXACT:
                hint = "Use an int of at least 0."
                raise InvalidInput(f"units[{name!r}]", "a whole number", shortened(repr(k)), hint)
            units[name] = int(k)
        object.__setattr__(self, "units", units)
        true_or_false("nearest", self.nearest, "Leave it out for False.")

    @classmethod
    def example(cls) -> Self:
        """Return a plan with three units."""
        return cls({"air": 1, "sea": 2}, nearest=True)

    @property
    def text(self) -> str:
        """The rule in a few words."""
        return "the fixed plan"

    def plan(self, actions: ActionSet) -> IntArray:
        """Return the plan, or the nearest action."""
        check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
        given = [self.units.get(name, 0) for name in actions.names]
        action = np.array(given, dtype=np.int64)
        unknown = [name for name, k in self.units.items() if k and name not in set(actions.names)]
        if not unknown and actions.contains(action):
            return action
        if self.nearest:
            k = unit_numbers(actions.n)
            near: IntArray = actions.argmin_increasing(
                np.where(k <= action[owners(actions.n)], -1.0, 1.0)
            )
            return near
        got = f"units of {_few(unknown)}, which it does not have" if unknown else f"{self.units}"
        hint = "Write nearest=True for the action that moves the fewest units."
        raise InvalidInput("units", f"an action of {actions!r}", got, hint)


def _split(actions: ActionSet) -> FloatArray:
    """Return units in proportion, with fractions."""
    whole = actions
    while isinstance(whole, Limited):
        whole = whole.actions
    if isinstance(whole, Transport):
        supply, demand = whole.supply.astype(float), whole.demand.astype(float)
        return np.outer(supply, demand).ravel() / float(max(supply.sum(), demand.sum(), 1.0))
    split: FloatArray = actions.M * actions.n / max(int(actions.n.sum()), 1)
    return split


def _rounded_split(plans: Transport) -> IntArray:
    """Return units in proportion, each lane rounded up or down; the number of units is no limit."""
    split = _split(plans)
    down = np.floor(split).astype(np.int64)
    units = down.reshape(len(plans.supply), len(plans.demand))
    part = split - down
    rest = Transport(
        plans.supply - units.sum(axis=1),
        plans.demand - units.sum(axis=0),
        capacities=(part > 0).reshape(units.shape).astype(np.int64),
        slack=plans.slack,
        shortage=plans.shortage,
        surplus=plans.surplus,
    )
    action: IntArray = down + rest.argmin(1 - 2 * part)
    return action


def _by_arm(argument: str, given: object, expected: str) -> dict[str, Any]:
    """Return a mapping by arm as a dict, after checking its names."""
    if type(given).__name__ == "Series" and hasattr(given, "to_dict"):
        given = given.to_dict()
    example = f"Write {argument}={{'Lyon->north': 3, ...}}."
    if not isinstance(given, Mapping) or not given:
        raise InvalidInput(argument, f"{expected} by arm", shortened(repr(given)), example)
    for name in given:
        if not isinstance(name, str):
            raise InvalidInput(argument, "names of arms", shortened(repr(name)), example)
    return dict(given)


def _few(names: Sequence[str]) -> str:
    """Return some names in quotes, and how many more there are."""
    more = len(names) - MOST_SHOWN
    shown = ", ".join(map(repr, names[:MOST_SHOWN]))
    return shown + (f" and {more} more" if more > 0 else "")
