"""Action sets of users, defined by a solver for the cheapest action."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support import deadline
from multiplay._support.checks import numbers, positive_integer, whole_numbers, with_last_axis
from multiplay.actions.base import ActionSet, remember, whole_box
from multiplay.errors import InvalidInput
from multiplay.types import BoolArray, FloatArray, IntArray

REMEMBERED = 1000  # answers of ``solve``, by costs
INEXACT = 1e-6  # a solver may miss the least cost by so much of the costs


class OracleSet(ActionSet, vectorised=True):
    r"""A user-defined set, from one method that finds the cheapest action.

    .. math::

        \text{solve}(c) = \operatorname*{arg\,min}_{a \in \mathcal{A}} \langle a, c \rangle

    ``solve`` gets one cost vector, of any sign, and returns one action; it must be exact and give
    the same answer to the same costs. Where rewards are maximised (``sense="max"``) it still
    minimises: rewards come with a minus sign. Everything else is made of it: n, M, the hull and the
    sampler (simplicial decomposition), and so every policy runs.

    A subclass sets its own attributes first and then calls ``super().__init__``, which calls
    ``solve`` already. If it writes ``contains`` too, for one vector of shape (d,) and with one bool
    as its answer, every answer of ``solve`` is checked by it.

    Parameters
    ----------
    d
        Number of arms.
    n
        The largest :math:`a_i` of all actions, where it is known; else ``solve`` finds it.
    names, sense
        As for every action set.

    Attributes
    ----------
    calls : int
        How often ``solve`` was asked; repeated costs are answered from memory.

    Examples
    --------
    >>> class Shifts(OracleSet):
    ...     '''Two to four people, of two kinds.'''
    ...     def __init__(self):
    ...         super().__init__(d=2)
    ...     def solve(self, costs):
    ...         people = 4 if costs.min() < 0 else 2
    ...         return people * (np.arange(2) == costs.argmin())
    >>> Shifts().argmin([[0.5, 0.2], [-0.1, 0.3]])
    array([[0, 2],
           [4, 0]])
    """

    def __init__(
        self,
        d: int,
        n: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        sense: str = "min",
    ) -> None:
        d = positive_integer("d", d, "Give the number of arms, a positive integer.")
        self.calls = 0
        self._memory: dict[bytes, IntArray] = {}
        self._seen: set[bytes] = set()
        self.n = np.full(d, np.iinfo(np.int64).max) if n is None else whole_numbers("n", n)
        if self.n.shape != (d,):
            raise InvalidInput(
                "n", f"{d} numbers", f"shape {self.n.shape}", "Give one number for each arm."
            )
        super().__init__(names, sense)
        try:
            self._check_solver()
        except AttributeError as error:
            if error.obj is not self:
                raise
            raise InvalidInput(
                "solve",
                f"the attribute {error.name!r} of {type(self).__name__} before super().__init__()",
                "no such attribute",
                f"Set self.{error.name} before super().__init__(...), which calls solve().",
            ) from error
        if n is None:
            self.n = np.array([self.oracle(-row[None])[0, i] for i, row in enumerate(np.eye(d))])

    @abstractmethod
    def solve(self, costs: FloatArray) -> ArrayLike:
        """Return one action a in A with the least <a, costs>, from finite costs (d,)."""

    def oracle(self, costs: FloatArray) -> IntArray:
        """Call ``solve`` for each row, unless its answer is cached."""
        return np.array([self._answer(row) for row in costs]).reshape(costs.shape)

    def contains(self, action: ArrayLike) -> BoolArray:
        """Return whether vectors are answers of ``solve``.

        For sets of 0/1 vectors this is membership in A, since costs 1 - 2a have no other answer
        than a. Other sets may hold more actions than linear costs can reach: write your own
        ``contains`` if you play them.
        """
        a = with_last_axis("action", action, self.d)
        inside = np.atleast_1d(whole_box(a, self.n)).ravel()
        rows = a.reshape(-1, self.d)[inside].astype(np.int64)
        inside[inside] = [self._is_answer(row) for row in rows]
        answer: BoolArray = inside.reshape(a.shape[:-1])
        return answer

    def _is_answer(self, action: IntArray) -> bool:
        if action.tobytes() in self._seen:
            return True
        costs = 1.0 - 2.0 * action / np.maximum(self.n, 1)
        return bool((self._answer(costs) == action).all())

    def _answer(self, costs: FloatArray) -> IntArray:
        key = costs.tobytes()
        action = self._memory.get(key)
        if action is None:
            if self._memory and deadline.is_over():
                return self._best_known(costs)
            self.calls += 1
            action = self._checked(self.solve(costs.copy()))
            if deadline.was_missed():
                return action
            remember(self._memory, key, action, REMEMBERED)
        return action

    def _best_known(self, costs: FloatArray) -> IntArray:
        """Return the best of the cached actions: no time is left to solve."""
        known = np.array(list(self._memory.values()))
        best: IntArray = known[(known @ costs).argmin()]
        return best

    def _checked(self, answer: ArrayLike) -> IntArray:
        """Return an answer of ``solve`` as integers, or raise ``InvalidInput``."""
        action = numbers("solve", answer)
        hint = "Fix solve(): it must return one number for each arm."
        if action.shape != (self.d,):
            raise InvalidInput(
                "solve", f"an action of shape ({self.d},)", f"shape {action.shape}", hint
            )
        if not whole_box(action, self.n):
            expected = "whole numbers from 0 to n_i"
            raise InvalidInput(
                "solve", expected, f"{action.tolist()}", "Fix solve(), or give a different n."
            )
        whole = action.astype(np.int64)
        if type(self).contains is OracleSet.contains:
            self._seen.add(whole.tobytes())
        elif not self.contains(whole):
            expected = "an action that contains() accepts"
            raise InvalidInput(
                "solve",
                expected,
                f"{whole.tolist()}",
                "Fix solve() or contains(): they must agree.",
            )
        return whole

    def _check_solver(self) -> None:
        """Raise ``InvalidInput`` at once for a solver that is not deterministic, or maximises."""
        for costs in np.random.default_rng(0).normal(size=(3, self.d)):
            once, twice = (self._checked(self.solve(costs.copy())) for _ in range(2))
            if (once != twice).any():
                raise InvalidInput(
                    "solve",
                    "the same action for the same costs",
                    f"{once.tolist()} and {twice.tolist()}",
                    "Make solve() deterministic: break ties by the number of the arm.",
                )
        other = self._checked(self.solve(-costs))
        if costs @ (once - other) > INEXACT * (np.abs(costs) @ (once + other)):
            raise InvalidInput(
                "solve",
                f"an action with the least <a, costs>, for costs {costs.round(2).tolist()}",
                f"{once.tolist()}, which costs more than {other.tolist()}",
                "Return the cheapest action. With sense='max', too, solve() minimises: its costs "
                "are then rewards with a minus sign.",
            )
