"""Declared costs of action sets: their size before they are made, and the speed of their oracles.

The numbers were measured: within them, a set is made in seconds, and so are its first plans.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from multiplay._support.checks import is_list, is_number


class Requirement(NamedTuple):
    """A quantity with a limit, above which a plan takes minutes or gigabytes.

    Attributes
    ----------
    argument : str
        The argument that an error names.
    amount : int
        The quantity.
    most : int or None
        The limit; None for the limit on arms that the caller has.
    unit : str
        What is counted.
    got : str
        The quantity as an error states it; the amount if empty.
    hint : str
        What to do instead; use multiplay in Python if empty.
    """

    argument: str
    amount: int
    most: int | None
    unit: str
    got: str = ""
    hint: str = ""


class SetSize(NamedTuple):
    """A quantity that the settings of a set determine before it is made.

    ``count`` accepts settings of wrong types, which the set itself refuses later.
    """

    argument: str
    count: Callable[[Mapping[str, Any]], int]
    most: int | None = None
    unit: str = "arms"


class SetCost(NamedTuple):
    """Cost of an action set, declared by its class.

    Attributes
    ----------
    arms : SetSize
        The number of arms. The limit of the caller applies beside its own.
    oracle : "flow", "polynomial", "search" or "solver"
        "flow": the hull is described by a network, and policies that minimise over the hull need
        no oracle. "polynomial": the hull is explored by thousands of calls of a fast oracle.
        "search": a call of the oracle is a search, whose time may grow exponentially. "solver": so
        is every other question too, such as whether a vector is an action.
    other : tuple of SetSize
        Further quantities that time or memory depend on.
    timed : bool
        Whether a call of the oracle may take hours, and stops at the deadline that is set.
    check : function or None
        Raises ``InvalidInput`` for settings that are not accepted from others. Like ``count``, it
        accepts settings of wrong types.
    """

    arms: SetSize
    oracle: Literal["flow", "polynomial", "search", "solver"]
    other: tuple[SetSize, ...] = ()
    timed: bool = False
    check: Callable[[Mapping[str, Any]], None] | None = None

    def requirements(self, settings: Mapping[str, Any]) -> list[Requirement]:
        """Return what a set with these settings requires.

        Examples
        --------
        >>> from multiplay import Budget
        >>> Budget.cost.requirements({"total": 2, "caps": [1, 1, 3]})[0].amount
        3
        """
        arms = self.arms if self.arms.most is None else self.arms._replace(most=None, unit="arms")
        return [
            Requirement(one.argument, one.count(settings), one.most, one.unit)
            for one in (self.arms, arms, *self.other)
        ]


def length(value: Any) -> int:
    """Return the length of a list, and 1 for anything else."""
    return len(value) if is_list(value) else 1


def positive(value: Any) -> int:
    """Return a positive number without its fraction, and 1 for anything else.

    A set may read 1e9 as the whole number that it is.
    """
    return int(value) if is_number(value) and 1 < value < math.inf else 1


def entries(table: Any) -> int:
    """Return the length of the longest list of a table, and 1 for anything else."""
    return longest([*table.values()]) if isinstance(table, Mapping) else 1


def longest(rows: Any) -> int:
    """Return the length of the longest row, and 1 for anything that has no rows."""
    return max(map(length, rows), default=1) if is_list(rows) else 1
