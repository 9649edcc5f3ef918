"""Integer programs in HiGHS: models that are kept, in which only the costs change."""

import ctypes
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from multiplay._support import deadline
from multiplay.types import FloatArray, IntArray

STDOUT = 1
_one_at_a_time = threading.Lock()
# of every model; in the simplex method nothing is gained by simplifying the program first
SETTINGS: dict[str, Any] = {
    "output_flag": False,
    "threads": 1,
    "mip_rel_gap": 0.0,
    "solver": "simplex",
}


class Program:
    """{x : A x <= b, lo <= x <= hi} in HiGHS, for one cost vector after the other.

    An answer depends on its question alone, not on what was asked before, by other trials say.
    Copies in other processes make models of their own.
    """

    def __init__(self, A: FloatArray, b: FloatArray, lo: IntArray, hi: IntArray) -> None:
        self.A, self.b, self.lo, self.hi = A, b, lo.astype(float), hi.astype(float)
        self._one_at_a_time = threading.Lock()
        self._models: dict[bool, tuple[Any, Any]] = {}

    def __reduce__(self) -> Any:
        return Program, (self.A, self.b, self.lo, self.hi)

    def relaxed(self, costs: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return the best x, which need not be integer, and what the constraints cost, y <= 0.

        None if HiGHS cannot tell.
        """
        if not may_stay():
            return self._relaxed_anew(costs)
        with self._one_at_a_time:
            model = self._asked(False, costs, presolve="off")
            return model and _point(model)

    def better(
        self, costs: FloatArray, known: IntArray, target: float, gap: float
    ) -> FloatArray | None:
        """Return an integer x that costs no more than ``target``, by branch and bound.

        If there is none, the best one up to ``gap``. It begins with ``known``. None if HiGHS cannot
        tell.
        """
        with self._one_at_a_time:
            stops = {"objective_target": target, "mip_abs_gap": gap}
            stops["time_limit"] = max(deadline.left(), 0.0)
            model = self._asked(True, costs, known, presolve="choose", **stops)
            return model and _point(model)[0]

    def _asked(
        self, integer: bool, costs: FloatArray, known: IntArray | None = None, **options: Any
    ) -> Any:
        """Return a model that was solved, or None."""
        import highspy  # here: sets without side constraints never need it

        if integer not in self._models:
            self._models[integer] = self._model(integer)
        (model, lp), status = self._models[integer], highspy.HighsModelStatus
        lp.col_cost_ = costs
        model.passModel(lp)  # whole: after mere changes, answers depend on earlier questions
        for name, value in options.items():
            model.setOptionValue(name, value)
        if known is not None:
            start = highspy.HighsSolution()
            start.col_value = known.astype(float)
            model.setSolution(start)
        if model.run() == highspy.HighsStatus.kError:  # others let HiGHS have more threads here
            model.setOptionValue("threads", 0)
            model.run()
        good = status.kOptimal, status.kObjectiveTarget
        return model if model.getModelStatus() in good else None

    def _model(self, integer: bool) -> tuple[Any, Any]:
        import highspy

        (rows, columns), (row, column) = self.A.shape, self.A.nonzero()
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = rows, columns
        lp.col_lower_, lp.col_upper_ = self.lo, self.hi
        lp.row_lower_, lp.row_upper_ = np.full(rows, -np.inf), self.b
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.searchsorted(row, np.arange(rows + 1))
        lp.a_matrix_.index_, lp.a_matrix_.value_ = column, self.A[row, column]
        if integer:
            lp.integrality_ = [highspy.HighsVarType.kInteger] * columns
        model: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, value in SETTINGS.items():
            model.setOptionValue(name, value)
        return model, lp

    def _relaxed_anew(self, costs: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Solve with scipy, which makes a new model each time."""
        from scipy import optimize  # takes as long to import as all the rest

        sides = list(zip(self.lo.tolist(), self.hi.tolist(), strict=True))
        answer = optimize.linprog(costs, self.A, self.b, bounds=sides, method="highs-ds")
        if answer.x is None or answer.status != 0:
            return None
        return answer.x, answer.ineqlin.marginals


def may_stay() -> bool:
    """Return whether models may be kept: OR-tools has a HiGHS too, and the two conflict."""
    return "ortools" not in sys.modules


def _point(model: Any) -> tuple[FloatArray, FloatArray]:
    found = model.getSolution()
    return np.array(found.col_value), np.array(found.row_dual)


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
