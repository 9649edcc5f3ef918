"""Optimisation models of users as action sets: arms are some of the columns of a linear model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support import deadline
from multiplay._support.checks import with_last_axis
from multiplay.actions.base import ActionSet, Duplicate, owners, remember, too_many, whole_box
from multiplay.actions.costs import SetCost, SetSize, entries, length
from multiplay.actions.milp import Answer, MixedProgram, Status
from multiplay.actions.model_data import (
    check_plain,
    checked_columns,
    checked_constant,
    checked_matrix,
    checked_most,
    checked_places,
    checked_rows,
    plain_bounds,
    program_of,
)
from multiplay.errors import InvalidInput
from multiplay.hull import DecompositionHull, Hull, LiftedHull
from multiplay.types import BoolArray, FloatArray, IntArray

LARGEST_KNOWN = 1e7  # known costs beyond this, relative to learned ones, would hide them
WHOLE = 1e-9  # a row may be missed by so much of the numbers that were added
CONTINUOUS = 1e-6  # the same, for a row with continuous columns
REMEMBERED = 10_000  # answers by costs, and actions with the cost of their helpers
MOST_ARMS, MOST_COLUMNS, MOST_ROWS, MOST_NONZEROS = 50, 1_000, 500, 10_000  # solved in seconds


class Model(ActionSet, vectorised=True):
    r"""The settings of some columns of a mixed-integer linear model, the arms.

    .. math::

        \mathcal{A} = \{(x_i)_{i \in \text{arms}} : \;
            & \text{low} \le A x \le \text{high}, \; \text{lower} \le x \le \text{upper}, \\
            & x_j \in \mathbb{Z} \text{ where } \text{integer}_j\}

    The other columns are *helpers*: depots that are open or not, levels of stock. Several settings
    of the helpers for the same units of the arms are one action. The value of an action is

    .. math::

        \langle a, \mu + \text{cost}_{\text{arms}} \rangle + h(a), \qquad
        h(a) = \min_{x : x_{\text{arms}} = a} \sum_{j \notin \text{arms}} \text{cost}_j x_j,

    where the means :math:`\mu` are learned and all ``cost`` are known. Known costs are in the unit
    of the losses, and are never told.

    ``Model.of`` reads a model of PuLP, Pyomo, OR-Tools, cvxpy, linopy, python-mip, highspy, or an
    MPS file. HiGHS solves it, from scratch for every question.

    Parameters
    ----------
    columns
        "lower", "upper" (None for no limit), "integer" and "cost", a list of each with one entry
        for each column; "cost" may be left out.
    rows
        "lower" and "upper", the limits of each row; equal for an equation.
    matrix
        "row", "column" and "value" of every nonzero coefficient once, counted from 0.
    arms
        The places of the columns that are arms.
    sense
        "min" if units bring losses, "max" if they bring rewards; known costs are rewards then too.
    names
        Names of the arms.
    constant
        The cost of doing nothing; it has no effect on choices.
    n
        The largest number of units of each arm, where it is known; else it is computed.

    Examples
    --------
    Two depots that cost 1 each when they are used, and four units to send:

    >>> model = Model(
    ...     columns={
    ...         "lower": [0, 0, 0, 0],
    ...         "upper": [4, 4, 1, 1],
    ...         "integer": [True] * 4,
    ...         "cost": [0, 0, 1, 1],
    ...     },
    ...     rows={"lower": [4, None, None], "upper": [4, 0, 0]},
    ...     matrix={
    ...         "row": [0, 0, 1, 1, 2, 2],
    ...         "column": [0, 1, 0, 2, 1, 3],
    ...         "value": [1, 1, 1, -4, 1, -4],
    ...     },
    ...     arms=[0, 1],
    ...     names=["Lyon", "Lille"],
    ... )
    >>> model.best([0.3, 0.4])
    array([4, 0])
    >>> model.known([[4, 0], [2, 2]])
    array([1., 2.])
    """

    searches = True
    cost = SetCost(
        SetSize("arms", lambda s: length(s["arms"]), MOST_ARMS, "arms in a Model"),
        oracle="solver",
        other=(
            SetSize("columns", lambda s: entries(s["columns"]), MOST_COLUMNS, "columns"),
            SetSize("rows", lambda s: entries(s["rows"]), MOST_ROWS, "rows"),
            SetSize("matrix", lambda s: entries(s["matrix"]), MOST_NONZEROS, "nonzeros"),
        ),
        timed=True,
        check=check_plain,
    )

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls(
            columns={
                "lower": [0, 0, 0, 0],
                "upper": [3, 2, 1, 1],
                "integer": [True, True, True, False],
                "cost": [0, 0, 0, 0],
            },
            rows={"lower": [3, None], "upper": [4, 0]},
            matrix={"row": [0, 0, 1, 1], "column": [0, 1, 1, 2], "value": [1, 1, 1, -2]},
            arms=[0, 1],
        )

    @classmethod
    def of(cls, thing: Any, arms: Any, known: str | None = None, sense: str | None = None) -> Self:
        """Return the model of another library, or of an MPS file.

        Parameters
        ----------
        thing
            A model of PuLP, Pyomo, OR-Tools (linear solver, model builder, MathOpt, CP-SAT), cvxpy,
            linopy, python-mip or highspy; or the path of an MPS file.
        arms
            The columns that are arms: a pattern of names in which ``*`` stands for any text, such
            as ``"x[*]"``; a list of names, patterns or places; or variables of the library.
        known
            The costs of the model that are known: "all", "helpers" or "nothing". It must be given
            if arms have a cost, because that may be a guess of what is to be learned.
        sense
            "min" or "max", if it is not that of the model.
        """
        from multiplay.actions.importers import imported

        return cls(**imported(thing, arms, known, sense))

    def __init__(
        self,
        columns: Mapping[str, Any],
        rows: Mapping[str, Any],
        matrix: Mapping[str, Any],
        arms: Sequence[int],
        sense: str = "min",
        names: Sequence[str] | None = None,
        constant: float = 0.0,
        n: ArrayLike | None = None,
    ) -> None:
        lower, upper, integer, cost = checked_columns(columns)
        low, high = checked_rows(rows)
        place = checked_places(arms, len(lower))
        self.columns = {
            "lower": plain_bounds(lower),
            "upper": plain_bounds(upper),
            "integer": integer.tolist(),
            "cost": cost.tolist(),
        }
        self.rows = {"lower": plain_bounds(low), "upper": plain_bounds(high)}
        entries = checked_matrix(matrix, len(low), len(lower))
        self.matrix = {
            name: array.tolist()
            for name, array in zip(("row", "column", "value"), entries, strict=True)
        }
        self.arms, self.constant = place.tolist(), checked_constant(constant)
        self._place, self._cost = place, cost
        self._check_arms_are_integer(integer, names)
        self._program = program_of(entries, low, high, lower, upper, integer)
        self._scale = 1.0
        self._answers: dict[bytes, IntArray] = {}
        self._inside: dict[bytes, float] = {}  # actions found, and what their helpers cost then
        self._heights: dict[bytes, float] = {}
        helpers = cost.copy()
        helpers[place] = 0.0
        self._helper_cost, self.extra = helpers, bool(helpers.any())
        self.linear = not self.extra
        self.n = np.zeros(len(place), dtype=np.int64)
        super().__init__(names, sense)
        self.offset = cost[place] if cost[place].any() else None
        self.has_known = self.extra or self.offset is not None or bool(self.constant)
        with deadline.status_line(f"reading a model of {len(lower)} columns"):
            self._check_not_negative()
            if n is None:
                self.n = self._most()
                self._check_known_costs_are_bounded()
            else:
                self.n = checked_most(n, self._program.upper[place])
        # tighter bounds: every action is within them
        self._program.lower[place] = np.maximum(self._program.lower[place], 0.0)
        self._program.upper[place] = self.n

    def __repr__(self) -> str:
        helpers = len(self._cost) - self.d
        known = ", known costs" if self.has_known else ""
        return f"Model({self.d} arms, {helpers} helpers, {len(self._program.low)} rows{known})"

    def _facts(self) -> dict[str, str]:
        facts = super()._facts()
        facts["helpers"] = str(len(self._cost) - self.d)
        facts["rows"] = str(len(self._program.low))
        facts["known costs"] = self._known_text()
        return facts

    def _known_text(self) -> str:
        of_arms = 0 if self.offset is None else int((self._cost[self._place] != 0).sum())
        of_helpers = int((self._helper_cost != 0).sum())
        parts = [f"of {of_arms} arms" if of_arms else "", f"of {of_helpers} helpers"]
        return " and ".join(filter(None, parts[: 1 + bool(of_helpers)])) or "none"

    # ------------------------------------------------------------ known costs

    def shifted(self, offset: FloatArray, scale: float = 1.0) -> Self:
        """Return the same set in the unit of the policy: known costs divided by ``scale``.

        A unit of arm i loses offset_i + cost_i / scale beside its loss.
        """
        other = copy(self)
        other.offset, other._scale = offset + self._cost[self._place] / scale, scale
        if self.extra:
            largest = float(np.abs(self._helper_cost).max()) / scale
            if largest > LARGEST_KNOWN:
                raise InvalidInput(
                    "loss_range",
                    f"a range of at least {np.abs(self._helper_cost).max() / LARGEST_KNOWN:g}, for "
                    "the known costs of the model",
                    f"a range of {scale:g}",
                    "Give known costs in the unit of the losses.",
                )
            vars(other).pop("hull", None)
            other._answers = {}
        return other

    def known(self, action: ArrayLike) -> FloatArray:
        """Return h(a), the least known cost of helpers for every vector; NaN outside the set.

        For rewards, the largest known reward. Known costs of the arms are not in it.
        """
        a = with_last_axis("action", action, self.d)
        rows = a.reshape(-1, self.d)
        heights = np.array([self._height(row) for row in rows]) / self._scale
        found: FloatArray = heights.reshape(a.shape[:-1])
        return found

    def known_cost(self, action: ArrayLike) -> FloatArray:
        """Return all known costs of actions, in the user's unit."""
        a = with_last_axis("action", action, self.d)
        cost: FloatArray = a @ self._cost[self._place] + self.constant
        return cost + self.known(a) * self._scale if self.extra else cost

    def _height(self, action: FloatArray) -> float:
        if not self._in_box(action):
            return math.nan
        key = action.astype(np.int64).tobytes()
        if key not in self._heights:
            fixed = self._with_arms(action, action)
            # kept for ever, and asked by contains(): not cut short
            x = self._solved(fixed, self.sign * self._helper_cost, math.inf, empty_is_none=True)
            height = math.nan if x is None else float(self._helper_cost @ x)
            remember(self._heights, key, height, REMEMBERED)
        return self._heights[key]

    def value(self, action: ArrayLike, means: ArrayLike) -> FloatArray:
        """Return the expected loss or reward of an action, with all known costs of columns."""
        linear = super().value(action, means)
        return linear + self.known(action) if self.extra else linear

    def best(self, means: ArrayLike) -> IntArray:
        """Return the action of the best value, with known costs of arms and helpers."""
        costs = self.sign * self._whole("means", means)
        rows = []
        for row in costs.reshape(-1, self.d):
            action, gap = self._answer(row, known=self.extra)
            deadline.report_gap(gap)
            rows.append(action)
        return np.array(rows, dtype=np.int64).reshape(costs.shape)

    # ------------------------------------------------------------ solving

    def oracle(self, costs: FloatArray) -> IntArray:
        """Return the best action for each row of costs of the arms; helpers cost nothing."""
        rows = [self._answer(row, known=False)[0] for row in costs]
        return np.array(rows, dtype=np.int64).reshape(costs.shape)

    def _answer(self, costs: FloatArray, known: bool) -> tuple[IntArray, float]:
        """Return the action of the least cost, from memory if it was asked for before.

        After the deadline, the best action so far, and how much less the least cost may be.
        """
        key = costs.tobytes() + bytes([known])
        if key in self._answers:
            return self._answers[key], 0.0
        full = np.zeros(len(self._cost))
        if known:
            full = self.sign * self._helper_cost / self._scale
        full[self._place] = costs
        bound = self._program.least(full)
        if not (self._inside and deadline.is_over()):
            answer = self._program.solve(full, deadline.left())
            bound = max(bound, answer.bound)
            found = self._settled(self._program, full, answer, late_is_none=True)
            if found is not None:
                action = self._noted(found)
                if not deadline.was_missed():
                    remember(self._answers, key, action, REMEMBERED)
                    return action, 0.0
        action, value = self._best_remembered(costs, known)
        return action, max(value - bound, 0.0)

    def _noted(self, x: FloatArray) -> IntArray:
        """Return the action of a point, and keep it with what its helpers cost."""
        action = np.rint(x[self._place]).astype(np.int64)
        height = float(self.sign * self._helper_cost @ x)
        key = action.tobytes()
        remember(self._inside, key, min(height, self._inside.pop(key, math.inf)), REMEMBERED)
        return action

    def _best_remembered(self, costs: FloatArray, known: bool) -> tuple[IntArray, float]:
        """Return the best of the actions found before, and its value: no time is left to solve."""
        if not self._inside:  # any action: where nothing is minimised, one is found quickly
            nothing = np.zeros(len(self._cost))
            with deadline.before(math.inf):
                x = self._solved(self._program, nothing, math.inf)
            assert x is not None
            self._noted(x)
        keys, heights = zip(*self._inside.items(), strict=True)
        found = np.frombuffer(b"".join(keys), dtype=np.int64).reshape(-1, self.d)
        values = found @ costs
        if known:
            values = values + np.array(heights) / self._scale
        best = int(values.argmin())
        return found[best].copy(), float(values[best])

    def _solved(
        self, program: MixedProgram, costs: FloatArray, limit: float, *, empty_is_none: bool = False
    ) -> FloatArray | None:
        """Return the best point with exact whole numbers; None if there is none, if asked for."""
        return self._settled(
            program, costs, program.solve(costs, limit), empty_is_none=empty_is_none
        )

    def _settled(
        self,
        program: MixedProgram,
        costs: FloatArray,
        answer: Answer,
        *,
        empty_is_none: bool = False,
        late_is_none: bool = False,
    ) -> FloatArray | None:
        """Return the point of an answer with exact whole numbers, after checking its rows."""
        if answer.status is Status.OUT_OF_TIME and deadline.is_over():
            if answer.x is None:
                if late_is_none:
                    return None
                raise _late()
        elif answer.status is Status.INFEASIBLE:
            if empty_is_none:
                return None
            hint = "Relax a constraint or a bound."
            raise InvalidInput("model", "at least one action", "none: it is infeasible", hint)
        elif answer.status is Status.UNBOUNDED:
            got = "arms or helpers without a limit"
            raise InvalidInput(
                "model", "a finite set of actions", got, "Give the arms upper bounds."
            )
        elif answer.x is None or answer.status not in (Status.OPTIMAL, Status.OUT_OF_TIME):
            expected, got = "a model that HiGHS can solve", answer.message
            raise InvalidInput("model", expected, got, "Use numbers of a similar size.")
        assert answer.x is not None
        return self._rounded(program, costs, answer.x)

    def _rounded(self, program: MixedProgram, costs: FloatArray, x: FloatArray) -> FloatArray:
        """Round the integers of a point, and solve for the others again; check all rows."""
        whole = program.integer
        exact = np.where(whole, np.rint(x), x)
        if not whole.all() and (exact != x).any():
            fixed = program._replace(
                lower=np.where(whole, exact, program.lower),
                upper=np.where(whole, exact, program.upper),
            )
            again = fixed.solve(costs)
            if again.status is Status.OPTIMAL and again.x is not None:
                exact = np.where(whole, exact, again.x)
        broken = program.broken(exact, WHOLE if whole.all() else CONTINUOUS)
        if broken is not None:
            raise InvalidInput(
                "model",
                "numbers that HiGHS can tell apart",
                f"row {broken[0]}, which whole numbers break by {broken[1]:.3g}",
                "Make big-M constants smaller.",
            )
        return exact

    def contains(self, action: ArrayLike) -> BoolArray:
        """Return whether vectors are settings of the arms that some setting of helpers allows."""
        a = with_last_axis("action", action, self.d)
        inside = np.atleast_1d(self._in_box(a)).ravel()
        rows = a.reshape(-1, self.d)[inside]
        inside[inside] = [self._holds(row) for row in rows]
        answer: BoolArray = inside.reshape(a.shape[:-1])
        return answer

    def _holds(self, action: FloatArray) -> bool:
        if action.astype(np.int64).tobytes() in self._inside:
            return True
        if len(self._cost) > self.d:
            return not math.isnan(self._height(action))
        x = np.empty(self.d)
        x[self._place] = action
        return self._program.broken(x, WHOLE) is None

    def _in_box(self, action: FloatArray) -> BoolArray:
        """Return whether vectors are whole numbers within the bounds of the arms."""
        enough = (action >= self._program.lower[self._place]).all(axis=-1)
        inside: BoolArray = enough & whole_box(action, self.n)
        return inside

    @cached_property
    def hull(self) -> Hull:
        """conv(A), by calls of HiGHS; lifted by known costs of helpers, if there are any."""
        if not self.extra:
            return DecompositionHull(self.oracle, self.n)
        return LiftedHull(self._cheapest, self._signed_height, self.n)

    def _cheapest(self, costs: FloatArray, weight: float) -> IntArray:
        # <c, a> + w h(a) has the same minimiser as <c / w, a> + h(a)
        return self._answer(costs / weight if weight > 0 else costs, known=weight > 0)[0]

    def _signed_height(self, action: IntArray) -> float:
        return self.sign * float(self.known(action))

    @cached_property
    def _solves_units(self) -> bool:
        return self.extra or super()._solves_units

    def _argmin_by_unit(self, costs: FloatArray) -> IntArray:
        """With known costs of helpers, solve for a column of each unit."""
        if not self.extra:
            return super()._argmin_by_unit(costs)
        copies, owner = self._duplicate
        model = copies.shifted(np.zeros(len(owner)), self._scale)
        assert isinstance(model, Model)
        action = np.zeros((len(costs), self.d), dtype=np.int64)
        for row, chosen in zip(costs, action, strict=True):
            found, gap = model._answer(row, known=True)
            deadline.report_gap(gap)
            np.add.at(chosen, owner, found)
        return action

    # ------------------------------------------------------------ derived sets and numbers

    @cached_property
    def m(self) -> int:
        """Largest number of different arms in one action: y_i <= a_i, y_i <= 1, most y."""
        columns, counted = len(self._cost), self._program.counting(self._place)
        with deadline.before(math.inf):  # it is kept for ever
            x = self._solved(counted, np.repeat([0.0, -1.0], [columns, self.d]), math.inf)
        assert x is not None
        return int(np.rint(x[columns:]).sum())

    def enumerate(self, limit: int = 100_000) -> IntArray:
        """Return all actions, arm by arm: the least and the most units given those before."""
        if len(self._cost) == self.d and not self._is_wide():
            return super().enumerate(limit)
        found: list[FloatArray] = []
        low, high = self._program.lower[self._place].copy(), self.n.astype(float)
        self._list(0, low, high, found, limit)
        return np.array(found, dtype=np.int64).reshape(-1, self.d)

    def _is_wide(self) -> bool:
        return bool(np.prod(self.n + 1.0) > 100_000)

    def _list(
        self, arm: int, low: FloatArray, high: FloatArray, found: list[FloatArray], limit: int
    ) -> None:
        if arm == self.d:
            if self._holds(low):
                found.append(low.copy())
                if len(found) > limit:
                    raise too_many(limit)
            return
        ends = [self._end(arm, sign, low, high) for sign in (1.0, -1.0)]
        if ends[0] is None or ends[1] is None:
            return
        was = low[arm], high[arm]
        for units in range(ends[0], ends[1] + 1):
            low[arm] = high[arm] = units
            self._list(arm + 1, low, high, found, limit)
        low[arm], high[arm] = was

    def _end(self, arm: int, sign: float, low: FloatArray, high: FloatArray) -> int | None:
        costs = np.zeros(len(self._cost))
        costs[self._place[arm]] = sign
        x = self._solved(self._with_arms(low, high), costs, math.inf, empty_is_none=True)
        return None if x is None else round(float(x[self._place[arm]]))

    def _with_arms(self, low: FloatArray, high: FloatArray) -> MixedProgram:
        """Return the program with other bounds of the arms."""
        lower, upper = self._program.lower.copy(), self._program.upper.copy()
        lower[self._place], upper[self._place] = low, high
        return self._program._replace(lower=lower, upper=upper)

    def _within(self, most: IntArray, fixed: IntArray) -> tuple[ActionSet, IntArray]:
        """Change the bounds of the columns of the arms."""
        low = np.maximum(fixed, self._program.lower[self._place])
        high = np.where(fixed >= 0, fixed, most).astype(float)
        columns = dict(self.columns)
        for name, bound in (("lower", low), ("upper", high)):
            values = list(columns[name])
            for place, value in zip(self.arms, bound.tolist(), strict=True):
                values[place] = value
            columns[name] = values
        made = columns, self.rows, self.matrix, self.arms, self.sense, self.names, self.constant
        return type(self)(*made), np.zeros_like(fixed)

    @cached_property
    def _duplicate(self) -> Duplicate:
        """A binary column for each unit; the arm becomes a helper, the sum of its copies."""
        if self.n.max() <= 1:
            return super()._duplicate
        owner = owners(self.n)
        new, before = len(owner), len(self._cost)
        rows_before = len(self._program.low)
        cost = self._cost.copy()
        cost[self._place] = 0.0
        columns = {
            "lower": [*self.columns["lower"], *[0.0] * new],
            "upper": [*self.columns["upper"], *[1.0] * new],
            "integer": [*self.columns["integer"], *[True] * new],
            "cost": [*cost.tolist(), *self._cost[self._place][owner].tolist()],
        }
        rows = {name: [*self.rows[name], *[0.0] * self.d] for name in ("lower", "upper")}
        copies = np.arange(before, before + new)
        matrix = {
            "row": [
                *self.matrix["row"],
                *(rows_before + owner).tolist(),
                *range(rows_before, rows_before + self.d),
            ],
            "column": [*self.matrix["column"], *copies.tolist(), *self.arms],
            "value": [*self.matrix["value"], *[1.0] * new, *[-1.0] * self.d],
        }
        made = columns, rows, matrix, copies.tolist(), self.sense
        return Duplicate(Model(*made, constant=self.constant), owner)

    # ------------------------------------------------------------ checks

    def _check_arms_are_integer(self, integer: BoolArray, names: Sequence[str] | None) -> None:
        bad = self._place[~integer[self._place]]
        if len(bad):
            arm = self.arms.index(int(bad[0]))
            named = names is not None and len(names) > arm
            name = repr(names[arm]) if names is not None and named else f"column {bad[0]}"
            hint = "Make it integer, or count it in whole units."
            raise InvalidInput("arms", "integer columns", f"{name}, which is continuous", hint)

    def _check_not_negative(self) -> None:
        """Raise ``InvalidInput`` if some action has negative units of an arm."""
        for arm in np.flatnonzero(self._program.lower[self._place] < 0):
            costs = np.zeros(len(self._cost))
            costs[self._place[arm]] = 1.0
            x = self._solved(self._program, costs, deadline.left())
            assert x is not None
            least = round(float(x[self._place[arm]]))
            if least < 0:
                raise InvalidInput(
                    "arms",
                    "units from 0 on",
                    f"{least} units of {self.names[arm]!r}",
                    "Use two columns for units in both directions.",
                )

    def _check_known_costs_are_bounded(self) -> None:
        """Raise ``InvalidInput`` if helpers can make the best value of an action infinite."""
        costs = self.sign * self._helper_cost
        ends = np.where(costs > 0, self._program.lower, self._program.upper)
        if np.isfinite(ends[costs != 0]).all():
            return
        # a program that has a point is bounded if and only if its relaxation is
        relaxed = self._program._replace(integer=np.zeros_like(self._program.integer))
        if relaxed.solve(costs, deadline.left()).status is Status.UNBOUNDED:
            free = int(np.flatnonzero((costs != 0) & ~np.isfinite(ends))[0])
            raise InvalidInput(
                "model",
                "known costs with a best value",
                f"known costs without a limit, as those of column {free}",
                "Give the helpers bounds.",
            )

    def _most(self) -> IntArray:
        """Return the largest number of units of each arm."""
        upper = self._program.upper[self._place]
        most, found = np.full(self.d, -1.0), True
        while found:
            costs = np.zeros(len(self._cost))
            costs[self._place] = -1.0 * (most < upper)
            x = self._solved(self._program, costs, deadline.left())
            assert x is not None
            found = bool((x[self._place] > most).any())
            most = np.maximum(most, np.rint(x[self._place]))
            found = found and bool((most < upper).any())
        for arm in np.flatnonzero(most < upper):
            costs = np.zeros(len(self._cost))
            costs[self._place[arm]] = -1.0
            x = self._solved(self._program, costs, deadline.left())
            assert x is not None
            most[arm] = np.rint(x[self._place[arm]])
        if deadline.was_missed():
            raise _late()
        return most.astype(np.int64)


def _late() -> InvalidInput:
    return InvalidInput(
        "model",
        "a model that is solved in the time there is",
        "a model that takes longer",
        "Remove columns or rows, or raise the time limit.",
    )
