"""Sets with any linear constraints: the integer points of a polyhedron, found by HiGHS."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support import deadline
from multiplay._support.checks import is_list, numbers, whole_numbers, with_last_axis
from multiplay._support.hints import Hint, Option, Term
from multiplay.actions.base import ActionSet, Duplicate, owners, read_only, whole_box
from multiplay.actions.costs import SetCost, SetSize, length, longest
from multiplay.actions.milp import SCALE, MixedProgram, Status, scale_of
from multiplay.actions.model_data import check_solvable
from multiplay.actions.oracle import OracleSet
from multiplay.errors import InvalidInput
from multiplay.hull import DecompositionHull
from multiplay.kernels import exchange
from multiplay.types import BoolArray, FloatArray, IntArray

Bounds = tuple[Any, Any]
ROUNDING = 1e-9  # A a may exceed b by so much of the numbers that were added
TINY = 1e-100
# What the hull may miss, times the largest beta. To prove less takes branch and bound seconds, and
# in experiments even 1 cost no regret that could be seen.
GAP = 0.5
SEARCHED = 0.02  # of what may be missed: a local search looks for more than this
PROVED = 1e-8  # of SCALE: an action this near to a lower bound is the best one
ENOUGH = 0.2  # of what the bound leaves to gain: a neighbour to stop at
WORTH = 0.01  # of what the bound leaves to gain: below it branch and bound looks for more

MOST_ARMS, MOST_CONSTRAINTS = 50, 100  # of a program whose plans take seconds


class IntegerProgram(OracleSet, vectorised=True):
    r"""All vectors of whole numbers that respect linear constraints and bounds.

    .. math::

        \mathcal{A} = \{a \in \mathbb{Z}^d : A a \le b, \; \text{lo} \le a \le \text{hi}\}

    Any linear side constraint can be written like this; an equation is two inequalities. HiGHS
    finds the best action, in milliseconds, where sets with a structure take microseconds.

    FTRL asks for many actions in its first round. Most of them come from a local search, and the
    linear relaxation proves that no better one is left. Where it cannot, because few or no actions
    meet several constraints with equality, branch and bound must, and a round of FTRL on dozens of
    arms may take minutes: policies that ask for one best action (GenCTS, CombUCB) are quick there.

    Parameters
    ----------
    A, b
        The matrix (constraints, d) and the right-hand side of :math:`A a \le b`; both empty if the
        bounds, as lists, are all there is.
    bounds
        (lo, hi), each a number for all arms or a list; None in hi for no limit. By default
        :math:`a \ge 0` and the constraints alone set limits.
    sense
        "min" if units bring losses, "max" if they bring rewards.
    names
        Names of the arms.

    Examples
    --------
    >>> crews = IntegerProgram(A=[[1, 1, 1], [-2, -1, 0]], b=[6, -4], bounds=(0, 3))
    >>> crews.argmin([0.5, 0.3, 0.1])
    array([2, 0, 0])
    >>> IntegerProgram([[1, 1]], [-1])  # doctest: +NORMALIZE_WHITESPACE, +ELLIPSIS
    Traceback (most recent call last):
    ...
    multiplay.errors.InvalidInput: A, b, bounds: expected a set with at least one action, got
    an empty set (HiGHS: The problem is infeasible. ...). Relax a constraint.
    """

    searches = True
    cost = SetCost(
        SetSize(
            "A",
            lambda s: max(longest(s["A"]), longest(s.get("bounds"))),
            MOST_ARMS,
            "arms in an IntegerProgram",
        ),
        oracle="search",
        other=(SetSize("A", lambda s: length(s["A"]), MOST_CONSTRAINTS, "constraints"),),
        timed=True,
    )

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls(A=[[1, 1, 1], [-2, -1, 0]], b=[6, -4], bounds=(0, 3))

    def __init__(
        self,
        A: ArrayLike,
        b: ArrayLike,
        bounds: Bounds = (0, None),
        sense: str = "min",
        names: Sequence[str] | None = None,
    ) -> None:
        self._A = np.array(numbers("A", A), order="C")  # kernels want an array of their own
        if self._A.size == 0 and is_list(bounds) and len(bounds) == 2 and is_list(bounds[0]):
            self._A = self._A.reshape(0, len(bounds[0]))  # no constraints, in a list or a file
        self.A, self.b = read_only(self._A), read_only(numbers("b", b).copy())
        if self.A.ndim != 2 or self.A.shape[1] == 0 or self.b.shape != self.A.shape[:1]:
            raise InvalidInput(
                "A, b",
                "shapes (constraints, d) and (constraints,)",
                f"{self.A.shape} and {self.b.shape}",
                "Give b one number for each row of A.",
            )
        check_solvable("A", self._A)
        check_solvable("b", self.b)
        d = self.A.shape[1]
        self._lo, self._hi = _bounds(bounds, d)
        self.bounds = (self._lo.tolist(), [None if h == np.inf else int(h) for h in self._hi])
        with deadline.status_line(f"making a program of {d} arms"):
            super().__init__(d, names=names, sense=sense)
        if deadline.was_missed():
            raise _no_time()  # n is not what it should be

    def __repr__(self) -> str:
        return f"IntegerProgram({self.d} arms, {len(self.b)} constraints)"

    def solve(self, costs: FloatArray) -> IntArray:
        """Call HiGHS; after the time limit, return the best action that it has found."""
        found = _solved(self._program(self._hi), costs, deadline.left())
        if found is not None and self.contains(found):
            return found
        if self._memory:
            return self._best_known(costs)
        if found is None:
            raise _no_time()
        raise InvalidInput(
            "A, b, bounds",
            "numbers within the precision of HiGHS",
            "an action that violates a constraint because of rounding",
            "Give numbers of a similar size, and fewer digits.",
        )

    def contains(self, action: ArrayLike) -> BoolArray:
        """Return whether vectors are integral, within the bounds, and satisfy A a <= b."""
        a = with_last_axis("action", action, self.d)
        rounding = ROUNDING * (np.abs(a) @ np.abs(self.A.T) + np.abs(self.b))
        inside: BoolArray = (
            whole_box(a, self.n)
            & (a >= self._lo).all(axis=-1)
            & (a @ self.A.T <= self.b + rounding).all(axis=-1)
        )
        return inside

    @cached_property
    def hull(self) -> DecompositionHull:
        """Simplicial decomposition that looks for better actions before it looks for the best."""
        return DecompositionHull(self.oracle, self.n, self._better, GAP)

    def _better(self, costs: FloatArray, known: IntArray, gap: float = 0.0) -> IntArray:
        """Return an action that costs less than the ``known`` ones, or a best one if none does.

        One that costs at most ``gap`` more counts as the best; other answers cost less by more than
        that. The relaxation says what is left to gain; its solution, rounded, and the known actions
        are where a local search begins. Branch and bound is asked only if that finds nothing, and
        more than the gap may be left.
        """
        scaled = _scaled(costs)
        most = gap * SCALE / max(np.abs(costs).max(), TINY)
        relaxed, bound = self._relaxation(scaled)
        best: IntArray = known[(known @ scaled).argmin()]
        now = best @ scaled
        if now - bound <= max(PROVED, SEARCHED * most):
            return best
        rounded = [how(relaxed).astype(np.int64) for how in (np.floor, np.ceil, np.rint)]
        for start in (*(a for a in rounded if self.contains(a)), *known):
            near = self._descend(scaled, start)
            if near @ scaled < best @ scaled and self.contains(near):
                best = near
            if now - best @ scaled > ENOUGH * (now - bound):
                break
        if now - best @ scaled > max(most, WORTH * (now - bound)) or now - bound <= most:
            return best
        return self._branch_and_bound(scaled, best, max(PROVED, most) / max(abs(now), abs(bound)))

    def _branch_and_bound(self, costs: FloatArray, known: IntArray, gap: float) -> IntArray:
        """Return the best action up to a relative gap, or the known one."""
        if deadline.is_over():
            return known
        answer = self._program(self.n.astype(float)).solve(costs, deadline.left(), gap)
        late = answer.status is Status.OUT_OF_TIME and deadline.is_over()
        action = known if answer.x is None else np.rint(answer.x).astype(np.int64)
        better = not late and action @ costs < known @ costs and self.contains(action)
        return action if better else known

    def _program(self, upper: FloatArray) -> MixedProgram:
        """Return the program with these upper bounds."""
        return self._unbounded._replace(upper=upper)

    @cached_property
    def _unbounded(self) -> MixedProgram:
        """The program without upper bounds; its matrix is made once, not for every solve."""
        from scipy import sparse

        low, whole = np.full(len(self.b), -np.inf), np.ones(self.d, dtype=bool)
        A, b, lower = sparse.csr_array(self._A), np.array(self.b), self._lo.astype(float)
        return MixedProgram(A, low, b, lower, np.full(self.d, np.inf), whole)

    def _relaxation(self, costs: FloatArray) -> tuple[FloatArray, float]:
        """Return the best point of {A x <= b, lo <= x <= n}, and a lower bound of its costs.

        Any y <= 0 gives a bound, y b + sum_i min over x_i of (costs - y A)_i x_i, whatever the
        tolerances of the solver that found y.
        """
        from scipy import optimize

        sides: Any = np.column_stack([self._lo, self.n])
        answer = optimize.linprog(costs, self._A, self.b, bounds=sides, method="highs-ds")
        if answer.x is None or answer.status != 0:  # numbers too far apart for it
            return self._lo.astype(float), -np.inf
        x, y = answer.x, answer.ineqlin.marginals
        relaxed: FloatArray = np.clip(np.round(x, 6), self._lo, self.n)
        y = np.minimum(y, 0.0)
        reduced = costs - y @ self.A
        bound = y @ self.b + np.minimum(reduced * self._lo, reduced * self.n).sum()
        return relaxed, float(bound)

    def _descend(self, costs: FloatArray, start: IntArray) -> IntArray:
        """Return the local optimum that exchanges of up to three units lead to."""
        action, A, b = start.copy(), self._A, self.b
        room = b - A @ action + ROUNDING * (np.abs(A) @ action + np.abs(b))
        exchange.descend(A, room, self._lo, self._n, costs, PROVED, action)
        return action

    @cached_property
    def m(self) -> int:
        """Largest number of different arms in one action: y_i <= a_i, y_i <= 1, most y."""
        program = self._program(self.n.astype(float)).counting(np.arange(self.d))
        most = _solved(program, np.repeat([0.0, -1.0], self.d), math.inf)
        assert most is not None  # there was all the time
        return int(most[self.d :].sum())

    def _within(self, most: IntArray, fixed: IntArray) -> tuple[ActionSet, IntArray]:
        """Tighten the bounds."""
        low, high = np.maximum(fixed, self._lo), np.where(fixed >= 0, fixed, most)
        program = IntegerProgram(self.A, self.b, (low.tolist(), high.tolist()), self.sense)
        return program, np.zeros_like(fixed)

    @cached_property
    def _duplicate(self) -> Duplicate:
        """The program with n_i copies of column i, and a row for every lower bound."""
        if self.n.max() <= 1:
            return super()._duplicate
        owner = owners(self.n)
        needed = np.flatnonzero(self._lo)
        A = np.concatenate([self.A[:, owner], -1.0 * (needed[:, None] == owner)])
        b = np.concatenate([self.b, -self._lo[needed]])
        return Duplicate(IntegerProgram(A, b, (0, 1), self.sense), owner)


def _bounds(bounds: Any, d: int) -> tuple[IntArray, FloatArray]:
    if not is_list(bounds) or len(bounds) != 2:
        hint = Hint("Use {}, for example.", Term("(0, None)", "(0, None)"))
        raise InvalidInput("bounds", "a pair (lo, hi)", repr(bounds), hint)
    lo, hi = (side if is_list(side) else [side] * d for side in bounds)
    limited = [h is not None and h != np.inf for h in hi]
    finite = whole_numbers("bounds", [h if yes else 0 for h, yes in zip(hi, limited, strict=True)])
    low, high = whole_numbers("bounds", lo), np.where(limited, finite, np.inf)
    if low.shape != (d,) or high.shape != (d,):
        got = f"{len(low)} and {len(high)}"
        raise InvalidInput("bounds", f"lo and hi for {d} arms", got, "Give one for each arm.")
    if (low > high).any():
        arm = int(np.argmax(low > high))
        got = f"{low[arm]} > {high[arm]:g} for arm {arm + 1}"
        raise InvalidInput("bounds", "lo <= hi", got, "Give a lower number first.")
    return low, high


def _no_time() -> InvalidInput:
    """Return the error of a program that could not be made before a deadline."""
    return InvalidInput(
        "A, b, bounds",
        "a program that is solved within the time limit",
        "a program that takes longer",
        "Remove constraints or arms, or raise the time limit.",
    )


def _scaled(costs: FloatArray) -> FloatArray:
    return costs * scale_of(costs)


def _solved(program: MixedProgram, costs: FloatArray, limit: float) -> IntArray | None:
    """Return the best action, or the best one found within ``limit`` seconds, if any."""
    answer = program.solve(costs, limit)
    late = answer.status is Status.OUT_OF_TIME and deadline.is_over()
    if answer.status is Status.OPTIMAL or late:
        return None if answer.x is None else np.rint(answer.x).astype(np.int64)
    reason = f"HiGHS: {answer.message}"
    if answer.status is Status.INFEASIBLE:
        expected, got = "a set with at least one action", f"an empty set ({reason})"
        raise InvalidInput("A, b, bounds", expected, got, "Relax a constraint.")
    expected, got = "a finite set", f"an unbounded set ({reason})"
    hint = Hint("Use upper bounds: {}, for example.", Option("bounds", "(0, 100)"))
    raise InvalidInput("A, b, bounds", expected, got, hint)
