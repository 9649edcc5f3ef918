"""Promises: limits on what the plays of a period consume or deliver together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from multiplay._support.checks import (
    is_number,
    positive_integer,
    shortened,
    true_or_false,
)
from multiplay._support.dates import day_name
from multiplay._support.hints import Hint, Option
from multiplay._support.patterns import matches
from multiplay._support.suggestions import suggestion
from multiplay.constraints.constraint import Constraint
from multiplay.errors import InvalidInput
from multiplay.types import FloatArray

OTHERS = "*"  # the pattern of all other arms
STORED = ("limit", "until", "plays", "name", "hard")  # in a record, before the amounts
SOFT_HINT = Hint("Use {} to overshoot as little as possible.", Option("hard", "False"))


@dataclass(frozen=True)
class Promise(Constraint):
    """A limit on the sum of known amounts over the plays until a date.

    See ``AtMost`` and ``AtLeast``.

    Examples
    --------
    >>> isinstance(AtLeast(200, {"*": 1}, plays=22), Promise)
    True
    """

    sign: ClassVar[float]  # sign * amounts are limited from above
    kind: ClassVar[str]  # as text, before the limit

    limit: float
    of: Mapping[str, float]
    until: str | None = field(default=None, kw_only=True)
    plays: int = field(kw_only=True)
    name: str = field(default="", kw_only=True)
    hard: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if not is_number(self.limit) or not 0 <= self.limit < math.inf:
            hint = "Give the amount of the whole period."
            raise InvalidInput("limit", "a number of 0 or more", repr(self.limit), hint)
        limit = self.limit if isinstance(self.limit, int) else float(self.limit)
        object.__setattr__(self, "limit", limit)
        object.__setattr__(self, "of", _amounts(self.of))
        object.__setattr__(self, "until", _date(self.until))
        hint = "Give the number of plays until then, such as working days."
        positive_integer("plays", self.plays, hint)
        object.__setattr__(self, "plays", int(self.plays))
        if not isinstance(self.name, str):
            raise InvalidInput("name", "a text", repr(self.name), "Use 'CO2', for example.")
        if not self.name:
            object.__setattr__(self, "name", "promise")
        true_or_false("hard", self.hard, SOFT_HINT)

    def amounts(self, names: Sequence[str]) -> FloatArray:
        """Return what a unit of each arm counts.

        The name of the arm decides, then the last pattern that fits, then "*".

        Examples
        --------
        >>> AtMost(40, {"*": 80, "Lyon->*": 120}, plays=22).amounts(["Lyon->north", "Lille->south"])
        array([120.,  80.])
        """
        found = [self._amount(name) for name in names]
        for name, amount in zip(names, found, strict=True):
            if amount is None:
                raise InvalidInput(
                    "of",
                    f"an amount of {self.name} for every arm",
                    f"none for {name!r}",
                    'Add it, or "*" for all other arms.' + suggestion(name, self.of),
                )
        return np.array(found, dtype=float)

    def record(self) -> dict[str, Any]:
        """Return the promise as plain data; the order of the patterns matters.

        Examples
        --------
        >>> promise_of(AtMost(40, {"*": 80.0}, plays=22).record())
        AtMost(limit=40, of={'*': 80.0}, until=None, plays=22, name='promise', hard=True)
        """
        plain = {"kind": type(self).__name__} | {name: getattr(self, name) for name in STORED}
        return plain | {"of": [[pattern, amount] for pattern, amount in self.of.items()]}

    def _amount(self, name: str) -> float | None:
        if name in self.of:
            return self.of[name]
        for pattern in reversed(self._patterns):
            if matches(pattern, name):
                return self.of[pattern]
        return self.of.get(OTHERS)

    @cached_property
    def _patterns(self) -> list[str]:
        return [pattern for pattern in self.of if "*" in pattern and pattern != OTHERS]


@dataclass(frozen=True)
class AtMost(Promise):
    r"""The plays until a date use at most so much in total.

    .. math::

        \sum_t \langle c, a(t) \rangle \le B

    Parameters
    ----------
    limit
        B, the amount of all plays together.
    of
        c, what a unit of an arm uses, by arm or by pattern: in "Lyon->*" the star stands for any
        text, and "*" for all other arms. Of several patterns that fit, the last decides. Amounts
        are known, and 0 or more.
    until
        The date until which it counts, such as "2026-11-30".
    plays
        The number of plays until then, such as working days: a date alone does not say it.
    name
        A name, such as "CO2".
    hard
        True: once it can be kept, it is kept, by plans that leave enough for the days to come.
        False: only its price changes the plans.

    Examples
    --------
    >>> AtMost(40_000, of={"*": 80, "Lyon->*": 120}, plays=22, name="CO2").limit
    40000
    """

    sign = 1.0
    kind = "at most"


@dataclass(frozen=True)
class AtLeast(Promise):
    r"""The plays until a date have at least so much in total.

    .. math::

        \sum_t \langle c, a(t) \rangle \ge B

    Its parameters are those of ``AtMost``: 200 units with a carrier, by contract, for example.

    Examples
    --------
    >>> AtLeast(200, of={"*": 0, "Paris->*": 1}, plays=22, name="carrier B").hard
    True
    """

    sign = -1.0
    kind = "at least"


PROMISES: dict[str, type[Promise]] = {one.__name__: one for one in (AtMost, AtLeast)}


def promise_of(plain: Mapping[str, Any]) -> Promise:
    """Return the promise of a record."""
    fields = {name: plain[name] for name in STORED}
    return PROMISES[plain["kind"]](of=dict(plain["of"]), **fields)


def _amounts(given: Any) -> dict[str, float]:
    example = 'Use {"*": 80, "Lyon->*": 120}, for example.'
    if not isinstance(given, Mapping) or not given:
        raise InvalidInput("of", "amounts by arm or pattern", shortened(repr(given)), example)
    for name, amount in given.items():
        if not isinstance(name, str):
            raise InvalidInput("of", "names of arms or patterns", shortened(repr(name)), example)
        if not is_number(amount) or not 0 <= amount < math.inf:
            hint = "Give what one unit counts."
            raise InvalidInput(f"of[{name!r}]", "a number of 0 or more", repr(amount), hint)
    return {name: float(amount) for name, amount in given.items()}


def _date(given: Any) -> str | None:
    if given is None:
        return None
    if isinstance(given, datetime):
        given = given.date()
    if isinstance(given, date):
        return given.isoformat()
    try:
        return date.fromisoformat(day_name(given) if isinstance(given, str) else given).isoformat()
    except (TypeError, ValueError):
        hint = "Use '2026-11-30', for example."
        raise InvalidInput("until", "a date", shortened(repr(given)), hint) from None
