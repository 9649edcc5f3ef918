"""Mixed-integer linear programs: solved from scratch by the HiGHS that comes with scipy.

One engine for all sets: scipy brings its own HiGHS, which works beside every other library that
brings one. Nothing is kept between two solves, so an answer depends on its question alone.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from enum import Enum
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    from scipy.sparse import csr_array

SCALE = 2.0**13  # HiGHS has absolute tolerances: the largest cost is made as large as this
# HiGHS prints this line where it repairs a solution, and no option turns it off
STRAY = b"HighsMipSolverData::transformNewIntegerFeasibleSolution tmpSolver.run();\n"
STDOUT = 1
_one_at_a_time = threading.Lock()


class Status(Enum):
    """The outcome of a solve; the values are those of scipy."""

    OPTIMAL = 0
    OUT_OF_TIME = 1
    INFEASIBLE = 2
    UNBOUNDED = 3
    OTHER = 4


class Answer(NamedTuple):
    """The result of a solve.

    Attributes
    ----------
    status : Status
        The outcome.
    x : array or None
        The best point, or the best one found in time, if any.
    message : str
        The outcome in the words of HiGHS.
    bound : float
        No point costs less, as far as it was proved.
    """

    status: Status
    x: FloatArray | None
    message: str
    bound: float = -np.inf


class MixedProgram(NamedTuple):
    r"""The points :math:`\{x : \text{low} \le A x \le \text{high}, \; l \le x \le u\}`.

    Attributes
    ----------
    matrix : sparse array of shape (rows, columns)
        The coefficients A.
    low, high : arrays of shape (rows,)
        The limits of the rows, which may be infinite.
    lower, upper : arrays of shape (columns,)
        The bounds of the columns, which may be infinite.
    integer : bool array of shape (columns,)
        The columns that are whole numbers.
    """

    matrix: csr_array[Any]
    low: FloatArray
    high: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray

    def counting(self, place: IntArray) -> MixedProgram:
        """Return the program with binary columns y_i <= x_i at the end, for the columns given."""
        from scipy import sparse

        d, columns = len(place), len(self.lower)
        chosen = sparse.csr_array((np.ones(d), (np.arange(d), place)), (d, columns))
        blocks: Any = [[self.matrix, None], [-chosen, sparse.eye_array(d)]]
        matrix: Any = sparse.block_array(blocks)
        return MixedProgram(
            sparse.csr_array(matrix),
            np.concatenate([self.low, np.full(d, -np.inf)]),
            np.concatenate([self.high, np.zeros(d)]),
            np.concatenate([self.lower, np.zeros(d)]),
            np.concatenate([self.upper, np.ones(d)]),
            np.concatenate([self.integer, np.ones(d, dtype=bool)]),
        )

    def broken(self, x: FloatArray, tolerance: float) -> tuple[int, float] | None:
        """Return a row that x breaks, and by how much; None if there is none.

        A row may be missed by ``tolerance`` of the numbers that were added.
        """
        sums, size = self.matrix @ x, abs(self.matrix) @ np.abs(x)
        for limits, sign in ((self.low, 1.0), (self.high, -1.0)):
            finite = np.isfinite(limits)
            room = sign * (sums - np.where(finite, limits, 0.0))
            slack = tolerance * (1.0 + size + np.where(finite, np.abs(limits), 0.0))
            wrong = finite & (room < -slack)
            if wrong.any():
                row = int(wrong.argmax())
                return row, -float(room[row])
        return None

    def least(self, costs: FloatArray) -> float:
        """Return what the bounds of the columns alone say that every point costs at least."""
        with np.errstate(invalid="ignore"):
            ends = np.minimum(costs * self.lower, costs * self.upper)
        return float(np.where(costs == 0, 0.0, ends).sum())

    def solve(self, costs: FloatArray, limit: float = np.inf, gap: float = 0.0) -> Answer:
        """Return a point of the least cost, or the best one found within ``limit`` seconds.

        ``gap`` is the relative gap at which the search may end; infinite for any point.
        """
        answer = self._solve(costs, limit, gap)
        if answer.status is not Status.OTHER or not costs.any():
            return answer
        # HiGHS may not know which of the two it is: unbounded means that some point is feasible
        feasible = self._solve(np.zeros_like(costs), limit, 0.0)
        if feasible.status is Status.OPTIMAL:
            return answer._replace(status=Status.UNBOUNDED)
        return answer._replace(status=feasible.status)

    def _solve(self, costs: FloatArray, limit: float, gap: float) -> Answer:
        return (_solver.get() or MixedProgram.solve_here)(self, costs, limit, gap)

    def solve_here(self, costs: FloatArray, limit: float, gap: float) -> Answer:
        """Call HiGHS in this process."""
        from scipy import optimize

        rows: Any = ()
        if len(self.low):
            rows = optimize.LinearConstraint(self.matrix, self.low, self.high)
        options: Any = {"mip_rel_gap": gap}
        if np.isfinite(limit):
            options["time_limit"] = max(limit, 0.0)
        scale = scale_of(costs)
        with dropped_output(STRAY):
            found = optimize.milp(
                costs * scale,
                integrality=self.integer.astype(np.int64),
                bounds=optimize.Bounds(self.lower, self.upper),
                constraints=rows,
                options=options,
            )
        bound = -np.inf if found.mip_dual_bound is None else float(found.mip_dual_bound) / scale
        return Answer(Status(found.status), found.x, found.message, bound)


Solver = Callable[[MixedProgram, FloatArray, float, float], Answer]
_solver: ContextVar[Solver | None] = ContextVar("solver", default=None)


def use_solver(solver: Solver) -> None:
    """Have another function solve the programs of this thread from now on."""
    _solver.set(solver)


@contextmanager
def solved_by(solver: Solver) -> Iterator[None]:
    """Have another function solve the programs of the block, in a process of its own say."""
    token = _solver.set(solver)
    try:
        yield
    finally:
        _solver.reset(token)


@cache
def solver_version() -> str:
    """Return the version of the library that brings HiGHS: another one may break ties otherwise."""
    return f"scipy {version('scipy')}"


def scale_of(costs: FloatArray) -> float:
    """Return the factor that makes the largest cost ``SCALE``."""
    largest = float(np.abs(costs).max(initial=0.0))
    return SCALE / largest if largest > 0 else 1.0


@contextmanager
def dropped_output(line: bytes) -> Iterator[None]:
    """Run a block, and drop ``line`` from what C code prints to the standard output meanwhile.

    No setting of Python reaches what C code prints: the file descriptor itself is turned to a
    temporary file. What else came, from other threads say, is passed on when the block ends.
    """
    with _one_at_a_time, tempfile.TemporaryFile() as caught:
        try:
            kept = os.dup(STDOUT)
        except OSError:  # a process without a standard output
            yield
            return
        _flush()
        os.dup2(caught.fileno(), STDOUT)
        try:
            yield
        finally:
            _flush()
            os.dup2(kept, STDOUT)
            os.close(kept)
            caught.seek(0)
            rest = caught.read().replace(line, b"")
            while rest:
                rest = rest[os.write(STDOUT, rest) :]


def _flush() -> None:
    """Write out what C code has printed so far."""
    with suppress(OSError, AttributeError):
        (ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)).fflush(None)
