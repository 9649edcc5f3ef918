"""What may be played."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from multiplay.arrays import BoolArray, FloatArray, IntArray, with_last_axis
from multiplay.errors import InvalidInput
from multiplay.hull import Hull


class ActionSet(ABC):
    """A finite set A of non-negative integer vectors; ``a_i`` says how often arm i is played.

    A subclass sets ``n``, calls ``super().__init__(names)``, and writes ``oracle``, ``contains``,
    ``enumerate`` and, where it can, ``duplicate`` and ``hull``.

    Attributes
    ----------
    n : array of shape (d,)
        n_i = max over A of a_i.
    names : tuple of d strings
        What people call the arms.
    """

    n: IntArray

    def __init__(self, names: Sequence[str]) -> None:
        self.names = _checked_names(names, self.d)

    @property
    def d(self) -> int:
        """Number of arms."""
        return len(self.n)

    @cached_property
    @abstractmethod
    def m(self) -> int:
        """Largest number of different arms in one action."""

    @cached_property
    def M(self) -> int:  # noqa: N802
        """Largest number of units in one action."""
        return int(self.argmin(-np.ones(self.d)).sum())

    def argmin(self, costs: ArrayLike) -> IntArray:
        """Return argmin over a in A of <a, costs>, for every cost vector along the last axis."""
        costs = with_last_axis("costs", costs, self.d)
        return self.oracle(np.ascontiguousarray(costs.reshape(-1, self.d))).reshape(costs.shape)

    @abstractmethod
    def oracle(self, costs: FloatArray) -> IntArray:
        """Return the best action for each row of ``costs``, which are finite and (rows, d)."""

    def value(self, action: ArrayLike, means: ArrayLike) -> FloatArray:
        """Return the expected loss <a, means> of an action, along the last axis."""
        action = with_last_axis("action", action, self.d)
        values: FloatArray = (action * with_last_axis("means", means, self.d)).sum(axis=-1)
        return values

    @abstractmethod
    def contains(self, action: ArrayLike) -> BoolArray:
        """Say for every vector along the last axis whether it is in A."""

    @abstractmethod
    def enumerate(self, limit: int = 100_000) -> IntArray:
        """Return all actions, shape (|A|, d); refused when there are more than ``limit``."""

    def duplicate(self) -> "Duplicate":
        """Return the same problem with an arm of its own for every copy, all n_i = 1."""
        raise InvalidInput(
            "actions", "a set that can be duplicated", type(self).__name__, "Write its duplicate()."
        )

    @cached_property
    def hull(self) -> Hull:
        """conv(A): minimise over it, and draw an action with a given mean."""
        raise InvalidInput(
            "actions",
            "a set whose hull is known",
            type(self).__name__,
            "Use GenCTS: it needs none.",
        )


class Duplicate(NamedTuple):
    """A copied problem: its action set, and the arm that each copy stands for."""

    actions: ActionSet
    owner: IntArray


def _checked_names(names: Sequence[str], d: int) -> tuple[str, ...]:
    names = tuple(str(name) for name in names)
    if len(names) != d:
        raise InvalidInput("names", f"{d} names", f"{len(names)}", "Give one for each arm.")
    if len(set(names)) < d:
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput("names", "different names", f"{twice!r} twice", "Rename one of them.")
    return names


def too_many(limit: int) -> InvalidInput:
    """Return the error of an ``enumerate`` that met its limit."""
    return InvalidInput(
        "limit",
        "a set with no more actions than that",
        f"a set with more than {limit}",
        "Raise the limit, or use argmin, which needs no list.",
    )
