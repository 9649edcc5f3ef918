"""Selection of arms and known costs from the columns of an imported model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from multiplay._support.checks import is_integer, is_number
from multiplay._support.patterns import matches
from multiplay._support.suggestions import suggestion
from multiplay.errors import InvalidInput
from multiplay.types import FloatArray

KNOWN = ("all", "helpers", "nothing")
INFINITE = 1e20  # libraries write "no bound" as inf, 1e20, 1e30 or the largest float
MOST_NAMES = 3  # in an error


class ImportedModel(NamedTuple):
    """The columns and rows of a model, as another library or a file has them.

    Attributes
    ----------
    names : list of str
        The names of the columns.
    lower, upper, integer, cost : lists
        The bounds, kinds and costs of the columns.
    low, high : lists
        The limits of the rows.
    entries : list of tuples
        Row, column and value of the coefficients.
    sense : "min" or "max"
        Whether the costs are minimised.
    constant : float
        The constant of the objective.
    place : function or None
        The place of a variable of the library, or None if it is not one of this model.
    doubtful : frozenset
        Integer columns of an MPS file without bounds, which solvers read in different ways.
    rows : list of str
        The names of the rows of an MPS file; empty if it has none.
    """

    names: list[str]
    lower: Sequence[float | None]
    upper: Sequence[float | None]
    integer: Sequence[bool]
    cost: Sequence[float]
    low: Sequence[float | None]
    high: Sequence[float | None]
    entries: list[tuple[int, int, float]]
    sense: str
    constant: float = 0.0
    place: Callable[[Any], Any] | None = None
    doubtful: frozenset[int] = frozenset()
    rows: Sequence[str] = ()


def settings(
    model: ImportedModel, arms: Any, known: str | None, sense: str | None
) -> dict[str, Any]:
    """Return the arguments of ``Model``."""
    places = arm_places(model, arms)
    for place in places:
        if place in model.doubtful:
            expected = f"bounds of the integer arm {model.names[place]!r} in the MPS file"
            hint = "Add an upper bound: without bounds, solvers read 0 to 1, or 0 to infinity."
            raise InvalidInput("arms", expected, "no bounds", hint)
    cost = known_costs(model, places, known)
    row, column, value = summed(model.entries)
    return {
        "columns": {
            "lower": limits(model.lower, -INFINITE),
            "upper": limits(model.upper, INFINITE),
            "integer": [bool(one) for one in model.integer],
            "cost": cost.tolist(),
        },
        "rows": {"lower": limits(model.low, -math.inf), "upper": limits(model.high, math.inf)},
        "matrix": {"row": row, "column": column, "value": value},
        "arms": places,
        "sense": model.sense if sense is None else sense,
        "names": [model.names[place] for place in places],
        "constant": model.constant,
    }


def limits(values: Iterable[Any], infinite: float) -> list[float | None]:
    """Return limits as plain numbers; None for no limit, which begins at ``infinite``."""
    side = math.copysign(1.0, infinite)
    return [None if one is None or side * one >= side * infinite else float(one) for one in values]


def summed(entries: Iterable[tuple[int, int, float]]) -> tuple[list[int], list[int], list[float]]:
    """Return rows, columns and values of coefficients, each once and without zeros."""
    total: dict[tuple[int, int], float] = {}
    for row, column, value in entries:
        total[row, column] = total.get((row, column), 0.0) + float(value)
    kept = [(row, column, value) for (row, column), value in total.items() if value != 0.0]
    return [one[0] for one in kept], [one[1] for one in kept], [one[2] for one in kept]


def known_costs(model: ImportedModel, arms: Sequence[int], known: str | None) -> FloatArray:
    """Return the costs that are known; an error asks if those of arms may be guesses."""
    cost = np.array(model.cost, dtype=float)
    if known is None:
        with_cost = [place for place in arms if cost[place] != 0.0]
        if with_cost:
            name, value = model.names[with_cost[0]], cost[with_cost[0]]
            raise InvalidInput(
                "known",
                "'all', 'helpers' or 'nothing', because arms have costs in the model",
                f"None, and a cost of {value:g} for {name!r}",
                "Use 'helpers' if these costs are guesses of what is to be learned, or 'all' if "
                "they are known and what is learned comes on top.",
            )
    elif known not in KNOWN:
        raise InvalidInput("known", "'all', 'helpers' or 'nothing'", repr(known), "Choose one.")
    if known == "helpers":
        cost[list(arms)] = 0.0
    elif known == "nothing":
        cost[:] = 0.0
    return cost


def arm_places(model: ImportedModel, arms: Any) -> list[int]:
    """Return the places of the columns that ``arms`` names, in the order given."""
    places: list[int] = []
    for one in _flat(arms):
        places.extend(_places_of(model, one))
    if len(set(places)) < len(places):
        twice = next(place for place, times in Counter(places).items() if times > 1)
        got = f"{model.names[twice]!r} twice"
        raise InvalidInput("arms", "each column once", got, "Remove one of them.")
    if not places:
        raise InvalidInput(
            "arms", "at least one column", repr(arms)[:60], "Use 'x[*]', for example."
        )
    return places


def _flat(arms: Any) -> Iterator[Any]:
    """Yield the names, places or variables in any dict, list, array or indexed variable."""
    if isinstance(arms, str) or is_integer(arms):
        yield arms
    elif isinstance(arms, Mapping):
        if any(map(is_number, arms.values())):  # an expression of PuLP: its coefficients
            yield arms
            return
        for one in arms.values():
            yield from _flat(one)
    elif isinstance(arms, np.ndarray):
        for one in arms.ravel():
            yield one.item() if isinstance(one, np.generic) else one
    elif isinstance(arms, list | tuple | set | range):
        for one in arms:
            yield from _flat(one)
    elif hasattr(arms, "is_indexed") and arms.is_indexed():  # an indexed variable of Pyomo
        yield from arms.values()
    else:
        yield arms


def _places_of(model: ImportedModel, one: Any) -> list[int]:
    if isinstance(one, str):
        return _matching(model.names, one)
    if is_integer(one):
        if not 0 <= one < len(model.names):
            expected, hint = f"places below {len(model.names)}", "Count columns from 0."
            raise InvalidInput("arms", expected, f"{one}", hint)
        return [int(one)]
    if model.place is not None:
        try:
            found = model.place(one)
        except (AttributeError, TypeError):  # an expression of the library, for example
            found = None
        if found is not None:
            return list(found) if isinstance(found, list) else [found]
    expected = "names, patterns, places or variables that the model uses and does not fix"
    got = " ".join(str(one).split())[:60]
    raise InvalidInput("arms", expected, got, "Use 'x[*]', for example.")


def _matching(names: Sequence[str], pattern: str) -> list[int]:
    """Return the places of the names that a pattern matches; only ``*`` is special in it."""
    places = [place for place, name in enumerate(names) if matches(pattern, name)]
    if not places:
        some = ", ".join(map(repr, names[:MOST_NAMES]))
        close = suggestion(pattern, names)
        hint = f"Names are such as {some}.{close}" if names else "The model has no columns."
        raise InvalidInput("arms", "a name or pattern of columns", repr(pattern), hint)
    return places
