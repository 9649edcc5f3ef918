"""Plain data of an optimisation model: columns, rows and coefficients, checked one by one."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import is_list, is_number, numbers, shortened
from multiplay._support.hints import Hint, Term
from multiplay.actions.milp import MixedProgram
from multiplay.errors import InvalidInput
from multiplay.types import BoolArray, FloatArray, IntArray

COLUMN_FIELDS = ("lower", "upper", "integer", "cost")
LARGEST_BOUND = 1e15
ROUNDED = 1e-6  # bounds of integer columns this close to a whole number are that number
SMALLEST, LARGEST = 1e-9, 1e9  # coefficients that are accepted from others


def check_plain(settings: Mapping[str, Any]) -> None:
    """Raise ``InvalidInput`` for settings that are not accepted from others.

    A wrong n would be believed, and coefficients that are far apart are solved wrongly or slowly.
    """
    if settings.get("n") is not None:
        raise InvalidInput(
            "n", "no n: it is computed", shortened(repr(settings["n"])), "Leave it out."
        )
    for table, name in (("matrix", "value"), ("columns", "cost")):
        given = settings.get(table)
        values: Any = given.get(name) if isinstance(given, Mapping) else None
        for one in values if is_list(values) else ():
            if is_number(one) and one != 0 and not SMALLEST <= abs(one) <= LARGEST:
                expected = f"numbers from {SMALLEST:g} to {LARGEST:g} in absolute value, or 0"
                hint = "Use other units, and smaller big-M constants."
                raise InvalidInput(f"{table}.{name}", expected, f"{one:g}", hint)


def _fields(argument: str, table: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the lists of a table, after checking that they are lists of one length."""
    names = list(names)
    if not isinstance(table, Mapping):
        expected, hint = f"a dict with {', '.join(names)}", "Give a list for each."
        raise InvalidInput(argument, expected, repr(table)[:60], hint)
    for name in table:
        if name not in names:
            expected, hint = f"one of {', '.join(names)}", "Check the spelling."
            raise InvalidInput(f"{argument}.{name}", expected, repr(name), hint)
    for name in names:
        if name not in table or not is_list(table[name]):
            got = "nothing" if name not in table else repr(table[name])[:60]
            raise InvalidInput(f"{argument}.{name}", "a list", got, "Give one entry for each.")
        if len(table[name]) != len(table[names[0]]):
            expected = f"{len(table[names[0]])} entries, as {names[0]} has"
            got, hint = f"{len(table[name])}", "Give one entry for each."
            raise InvalidInput(f"{argument}.{name}", expected, got, hint)
    return {name: table[name] for name in names}


def checked_columns(columns: Any) -> tuple[FloatArray, FloatArray, BoolArray, FloatArray]:
    """Return lower and upper bounds, kinds and costs of the columns, after checking them."""
    if isinstance(columns, Mapping) and "cost" not in columns and is_list(columns.get("lower")):
        columns = {**columns, "cost": [0.0] * len(columns["lower"])}
    given = _fields("columns", columns, COLUMN_FIELDS)
    lower, upper = _limits("columns", given)
    wrong = [one for one in given["integer"] if not isinstance(one, bool | np.bool_)]
    if wrong:
        hint = Hint("Use {} for whole numbers.", Term("True", "true"))
        raise InvalidInput("columns.integer", "True or False", repr(wrong[0]), hint)
    integer = np.array(given["integer"], dtype=bool)
    return lower, upper, integer, numbers("columns.cost", given["cost"]).astype(float).copy()


def checked_rows(rows: Any) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper limits of the rows, after checking them."""
    return _limits("rows", _fields("rows", rows, ("lower", "upper")))


def _limits(argument: str, given: Mapping[str, Any]) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper limits; infinite where they are None."""
    lower = _limit(f"{argument}.lower", given["lower"], -np.inf)
    upper = _limit(f"{argument}.upper", given["upper"], np.inf)
    above = lower > upper
    if above.any():
        place, kind = int(above.argmax()), argument.removesuffix("s")
        got = f"{lower[place]:g} > {upper[place]:g} in {kind} {place}"
        raise InvalidInput(argument, "lower <= upper", got, "Exchange them.")
    return lower, upper


def _limit(argument: str, given: Sequence[Any], missing: float) -> FloatArray:
    values = np.empty(len(given))
    for place, one in enumerate(given):
        if one is None or (is_number(one) and one == missing):
            values[place] = missing
        elif not is_number(one) or one != one:
            hint = "Replace it."
            raise InvalidInput(argument, "numbers, or None for no limit", repr(one), hint)
        elif abs(one) >= LARGEST_BOUND:
            hint = Hint("Use {} for no limit.", Term("None", "no bound"))
            raise InvalidInput(argument, "bounds below 1e15, or None", f"{one:g}", hint)
        else:
            values[place] = one
    return values


def plain_bounds(values: FloatArray) -> list[float | None]:
    """Return bounds as plain data; None for no limit."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


def check_solvable(argument: str, values: FloatArray) -> None:
    """Raise ``InvalidInput`` for numbers that HiGHS refuses, or reads as infinite."""
    largest = np.abs(values).max(initial=0.0)
    if largest >= LARGEST_BOUND:
        hint = "Make big-M constants smaller."
        raise InvalidInput(argument, "numbers below 1e15", f"{largest:g}", hint)


def checked_matrix(matrix: Any, rows: int, columns: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Return rows, columns and values of the coefficients, after checking them."""
    given = _fields("matrix", matrix, ("row", "column", "value"))
    value = numbers("matrix.value", given["value"]).astype(float)
    check_solvable("matrix.value", value)
    places = []
    for name, most in (("row", rows), ("column", columns)):
        place = numbers(f"matrix.{name}", given[name])
        outside = (place < 0) | (place >= most) | (place != np.floor(place))
        if outside.any():
            expected = f"rows below {rows} and columns below {columns}"
            got = f"{name} {place[outside][0]:g}"
            raise InvalidInput("matrix", expected, got, "Count rows and columns from 0.")
        places.append(place.astype(np.int64))
    row, column = places
    pairs, count = np.unique(np.stack([row, column]), axis=1, return_counts=True)
    if len(count) and count.max() > 1:
        twice = pairs[:, count.argmax()]
        got, hint = f"row {twice[0]}, column {twice[1]} twice", "Add the two up."
        raise InvalidInput("matrix", "every nonzero once", got, hint)
    return row, column, value


def checked_places(arms: Any, columns: int) -> IntArray:
    """Return the places of the arms, after checking them."""
    hint = "Give the places of the columns to learn about."
    if not is_list(arms) or len(arms) == 0:
        expected = "different columns, at least one"
        raise InvalidInput("arms", expected, repr(arms)[:60], hint)
    place = numbers("arms", arms)
    outside = (place < 0) | (place >= columns) | (place != np.floor(place))
    if place.ndim != 1 or outside.any():
        expected, got = f"columns below {columns}", repr(arms)[:60]
        raise InvalidInput("arms", expected, got, hint)
    whole = place.astype(np.int64)
    if len(np.unique(whole)) < len(whole):
        raise InvalidInput("arms", "different columns, at least one", repr(arms)[:60], hint)
    return whole


def checked_constant(constant: Any) -> float:
    """Return the constant, after checking it."""
    if not is_number(constant) or not math.isfinite(constant):
        raise InvalidInput("constant", "a number", repr(constant), "Leave it out for 0.")
    return float(constant)


def checked_most(n: ArrayLike, upper: FloatArray) -> IntArray:
    """Return the given n, after checking it against the upper bounds of the arms."""
    most, hint = numbers("n", n), "Leave it out: it is computed."
    if most.shape != upper.shape or (most < 0).any() or (most != np.floor(most)).any():
        raise InvalidInput("n", f"{len(upper)} whole numbers", repr(n)[:60], hint)
    if (most > upper).any():
        arm = int((most > upper).argmax())
        expected = f"at most {upper[arm]:g} units of arm {arm + 1}, its upper bound"
        raise InvalidInput("n", expected, f"{most[arm]:g}", hint)
    return most.astype(np.int64)


def program_of(
    entries: tuple[IntArray, IntArray, FloatArray],
    low: FloatArray,
    high: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    integer: BoolArray,
) -> MixedProgram:
    """Return the program of checked data.

    Bounds of integer columns are whole numbers: HiGHS solves some programs wrongly otherwise.
    """
    from scipy import sparse

    row, column, value = entries
    matrix = sparse.csr_array((value, (row, column)), shape=(len(low), len(lower)))
    least = np.where(integer, np.ceil(lower - ROUNDED), lower) + 0.0  # no -0.0
    most = np.where(integer, np.floor(upper + ROUNDED), upper)
    return MixedProgram(matrix, low, high, least, most, integer)
