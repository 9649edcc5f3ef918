"""Declared features: the columns of phi, their names, and their products."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from multiplay._support.checks import check_instance, is_list, shortened
from multiplay._support.hints import Hint, Term
from multiplay._support.suggestions import suggestion
from multiplay.errors import InvalidInput
from multiplay.features.columns import Category, Column, Flag, Number
from multiplay.types import FloatArray

MOST_COLUMNS = 200
RESERVED = ("arm", "round", "loss", "columns", "products", "multiplies")  # have a meaning
EXAMPLE = "Features(km=Number(), weekday=Category(['Mon', 'Tue']))"
Factors = tuple[tuple[str, int], ...]  # of a column of phi: features, and numbers of levels
FACTORS_HINT = Hint("Write {}, for example.", Term('multiplies=["fuel"]', "multiplies"))
PRODUCTS_HINT = Hint("Write {}, for example.", Term('products=[("km", "fuel")]', "products"))


class Features:
    r"""The features of arms and days, in the order of their declaration.

    .. math::

        \phi_i = (1, \text{columns}, \text{products}, \text{factors}) \in \mathbb{R}^p,
        \qquad p \le 200.

    An arm has features (distance), a day has a context (fuel price); both end in :math:`\phi_i`.
    A value is given for all arms or by arm, when you ask or in a table of the arms.

    Parameters
    ----------
    products
        Products of features, as tuples of their names: ``[("km", "fuel")]`` lets the cost of a
        kilometre depend on the price of fuel, ``[("km", "km")]`` is a square. Columns are scaled
        before they are multiplied; each level of a category gives a product.
    multiplies
        Names of features that change the whole loss of a unit by a percentage, such as a fuel
        clause or a surcharge on Saturdays: ``["fuel", "weekday"]``. Of all other features, each
        adds to the loss what does not depend on the others.
    columns
        The features as a dict, for names that are no keywords of Python.
    **named
        The features by name: ``Number``, ``Category`` or ``Flag``.

    Attributes
    ----------
    columns : dict
        The features by name.
    products : tuple of tuples of names
        The products.
    multiplies : tuple of names
        The features that multiply.

    Examples
    --------
    >>> from multiplay import Category, Features, Flag, Number
    >>> features = Features(
    ...     km=Number(centre=300, scale=100),
    ...     weekday=Category(["Mon", "Tue"]),
    ...     rain=Flag(),
    ...     products=[("km", "rain")],
    ... )
    >>> features.names
    ('1', 'km', 'weekday=Mon', 'weekday=Tue', 'rain', 'km*rain')
    >>> features.p
    6
    """

    def __init__(
        self,
        *,
        products: Iterable[Sequence[str]] = (),
        multiplies: Iterable[str] = (),
        columns: Mapping[str, Column] | None = None,
        **named: Column,
    ) -> None:
        if columns is not None and not isinstance(columns, Mapping):
            hint = 'Write {"km": Number()}, for example.'
            raise InvalidInput("columns", "a dict of columns", shortened(repr(columns)), hint)
        self.columns = dict(columns or {}) | named
        self._check_once([*(columns or {}), *named])
        for name, column in self.columns.items():
            if not isinstance(name, str) or not name.strip() or name in RESERVED:
                taken = ", ".join(RESERVED)
                expected = f"a name of a feature, other than {taken}"
                raise InvalidInput("features", expected, repr(name), "Rename this feature.")
            if isinstance(column, type) and issubclass(column, Column):
                hint = f"Write {column.__name__}(), with parentheses."
                raise InvalidInput(name, "a column", f"the class {column.__name__}", hint)
            check_instance(name, column, Column, "Number(), Category([...]) or Flag()")
        if not self.columns:
            raise InvalidInput(
                "features",
                "at least one feature",
                "none",
                Hint("Write {}.", Term(EXAMPLE, "a feature")),
            )
        self.products = self._checked_products(products)
        self.multiplies = self._checked_factors(multiplies)
        if self.p > MOST_COLUMNS:
            raise InvalidInput(
                "features",
                f"at most {MOST_COLUMNS} columns, levels and products included",
                f"{self.p}",
                "Use fewer levels or products.",
            )
        self._check_once(self.names)

    @staticmethod
    def _check_once(names: Sequence[str]) -> None:
        """Raise ``InvalidInput`` if two features, or two columns of phi, have the same name."""
        twice = first_double(names)
        if twice is not None:
            expected = "columns with different names; '1' is the intercept, 'km*fuel' a product"
            raise InvalidInput("features", expected, f"{twice!r} twice", "Rename a feature.")

    def _checked_products(self, products: Any) -> tuple[tuple[str, ...], ...]:
        hint = PRODUCTS_HINT
        if isinstance(products, str) or not isinstance(products, Iterable):
            raise InvalidInput("products", "a list of products", shortened(repr(products)), hint)
        found: list[tuple[str, ...]] = []
        for factors in products:
            if not is_list(factors) or len(factors) < 2:
                raise InvalidInput("products", "two names or more", shortened(repr(factors)), hint)
            for name in factors:
                self._check_name("products", name)
            whole = tuple(map(str, factors))
            switches = [n for n in whole if isinstance(self.columns[n], Category | Flag)]
            twice = next((name for name in switches if switches.count(name) > 1), None)
            if twice is not None:
                got = f"{'*'.join(whole)}, which is the same as without one {twice}"
                raise InvalidInput("products", "columns that differ", got, "Leave it out.")
            same = next((other for other in found if sorted(other) == sorted(whole)), None)
            if same is not None:
                got = f"{'*'.join(same)} and {'*'.join(whole)}, which are the same"
                raise InvalidInput("products", "columns that differ", got, "Leave one out.")
            found.append(whole)
        return tuple(found)

    def _checked_factors(self, multiplies: Any) -> tuple[str, ...]:
        """Return the names of the features that multiply, in the order of their declaration."""
        if isinstance(multiplies, str) or not isinstance(multiplies, Iterable):
            got = shortened(repr(multiplies))
            raise InvalidInput("multiplies", "a list of names of features", got, FACTORS_HINT)
        given = list(multiplies)
        for name in given:
            self._check_name("multiplies", name)
        twice, inside = first_double(given), {name for one in self.products for name in one}
        if twice is not None:
            hint = "Leave one of the two out."
            raise InvalidInput("multiplies", "each feature once", f"{twice!r} twice", hint)
        both = next((name for name in given if name in inside), None)
        if both is not None:
            expected = "features that are in no product: what is added is multiplied as a whole"
            hint = f"Leave {both} out of the products, or out of the features that multiply."
            raise InvalidInput("multiplies", expected, f"{both!r}, which is in a product", hint)
        return tuple(name for name in self.columns if name in given)

    def _check_name(self, where: str, name: Any) -> None:
        """Raise ``InvalidInput`` unless a feature has this name."""
        if not isinstance(name, str) or name not in self.columns:
            shown = ", ".join(self.columns)
            near = suggestion(name, self.columns) if isinstance(name, str) else ""
            hint = f"Check the spelling, or declare this feature.{near}"
            raise InvalidInput(where, f"names of features: {shown}", shortened(repr(name)), hint)

    def column(self, where: str, name: Any) -> Column:
        """Return the feature of this name; ``where`` is the argument in errors."""
        self._check_name(where, name)
        return self.columns[name]

    def __repr__(self) -> str:
        items = [f"{name}={column!r}" for name, column in self.columns.items()]
        items += [f"products={list(self.products)!r}"] if self.products else []
        items += [f"multiplies={list(self.multiplies)!r}"] if self.multiplies else []
        return f"Features({', '.join(items)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Features):
            return NotImplemented
        mine, theirs = (
            (list(one.columns.items()), one.products, one.multiplies) for one in (self, other)
        )
        return mine == theirs

    def __hash__(self) -> int:
        return hash((tuple(self.columns.items()), self.products, self.multiplies))

    @cached_property
    def p(self) -> int:
        """The number of columns of phi, the intercept among them."""
        widths = {name: column.width for name, column in self.columns.items()}
        multiplied = [np.prod([widths[name] for name in factors]) for factors in self.products]
        return 1 + sum(widths.values()) + int(sum(multiplied))

    @cached_property
    def factors(self) -> int:
        """The number of the last columns of phi, which multiply."""
        return sum(self.columns[name].width for name in self.multiplies)

    @cached_property
    def added(self) -> tuple[str, ...]:
        """The features that add to the loss."""
        return tuple(name for name in self.columns if name not in self.multiplies)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of phi; "1" is the intercept."""
        return self._labels("names", "1", "*")

    @property
    def per(self) -> tuple[str, ...]:
        """By how much a feature differs where its column of phi grows by 1, such as "100 km"."""
        return self._labels("per", "1", " * ")

    def _labels(self, method: str, first: str, times: str) -> tuple[str, ...]:
        labels = {name: getattr(column, method)(name) for name, column in self.columns.items()}
        return (first, *(times.join(labels[n][k] for n, k in term) for term in self._terms[1:]))

    @cached_property
    def differences(self) -> FloatArray:
        """The weights of theta in the effect of each column, of shape (p, p).

        A level of a category is compared with the average of all levels, also in products; a
        category that a column does not contain is averaged. Other values are a level, too. A level
        that multiplies is compared with the average of the other levels.

        Examples
        --------
        >>> from multiplay import Category, Features
        >>> Features(day=Category(["Mon", "Tue"])).differences
        array([[ 1. ,  0.5,  0.5],
               [ 0. ,  0.5, -0.5],
               [ 0. , -0.5,  0.5]])
        """
        terms, first = self._terms, self.p - self.factors
        weights = np.zeros((self.p, self.p))
        for i, one in enumerate(terms):
            for j, other in enumerate(terms):
                if i < first and j < first:
                    weights[i, j] = self._weight(one, other)
                elif i >= first and j >= first and one[0][0] == other[0][0]:
                    weights[i, j] = self._percentage(one[0], other[0])
        return weights

    @property
    def averages(self) -> FloatArray:
        """The weights of the last columns in the factor of average levels, of shape (p,)."""
        weights, first = np.zeros(self.p), self.p - self.factors
        for j, term in enumerate(self._terms[first:], first):
            levels = self._levels(term[0][0])
            weights[j] = 1.0 / levels if levels else 0.0
        return weights

    def _percentage(self, one: tuple[str, int], other: tuple[str, int]) -> float:
        """Return the weight of a column in the percentage of another of the same feature.

        A level is compared with the average of the other levels.
        """
        levels = self._levels(one[0])
        return 1.0 if one == other else -1.0 / (levels - 1)

    @property
    def averaged(self) -> tuple[tuple[str, ...], ...]:
        """The categories of each column, whose levels are compared with their average."""
        return tuple(tuple(n for n, _ in term if self._levels(n)) for term in self._terms)

    @cached_property
    def _terms(self) -> tuple[Factors, ...]:
        """The features that are multiplied in each column of phi, with the number of a level."""
        levels = {n: [(n, k) for k in range(column.width)] for n, column in self.columns.items()}
        own: list[Factors] = [(level,) for name in self.added for level in levels[name]]
        for factors in self.products:
            own += product(*(levels[name] for name in factors))
        own += [(level,) for name in self.multiplies for level in levels[name]]
        return ((), *own)

    def _levels(self, name: str) -> int:
        """Return the number of levels of a category, 0 for other columns."""
        column = self.columns[name]
        return column.width + column.others if isinstance(column, Category) else 0

    def _weight(self, one: Factors, other: Factors) -> float:
        """Return the weight of the coefficient of another column in the effect of one."""
        mine, its = ({n: k for n, k in t if self._levels(n)} for t in (one, other))
        factors = [sorted(n for n, _ in t if not self._levels(n)) for t in (one, other)]
        if factors[0] != factors[1] or not mine.keys() <= its.keys():
            return 0.0
        weight = 1.0
        for name, level in its.items():
            share = 1.0 / self._levels(name)
            weight *= (mine[name] == level) - share if name in mine else share
        return weight

    @cached_property
    def frozen(self) -> bool:
        """Whether the scaling of all columns is known."""
        return all(column.frozen for column in self.columns.values())

    def scaled(self, scales: Mapping[str, tuple[float, float]]) -> Features:
        """Return the same features with the centre and scale of some numbers."""
        columns = dict(self.columns)
        for name, (centre, scale) in scales.items():
            column = columns[name]
            if isinstance(column, Number):
                columns[name] = Number(centre, scale, column.unit)
        return Features(columns=columns, products=self.products, multiplies=self.multiplies)

    def expand(self, blocks: Mapping[str, FloatArray]) -> FloatArray:
        """Return phi from the columns of each feature, of shape (rows, width) each."""
        rows = max(len(block) for block in blocks.values())
        parts = [np.ones((rows, 1))]
        parts += [np.broadcast_to(blocks[n], (rows, blocks[n].shape[1])) for n in self.added]
        for factors in self.products:
            whole = np.ones((rows, 1))
            for name in factors:
                whole = (whole[:, :, np.newaxis] * blocks[name][:, np.newaxis]).reshape(rows, -1)
            parts.append(whole)
        for name in self.multiplies:
            parts.append(np.broadcast_to(blocks[name], (rows, blocks[name].shape[1])))
        return np.concatenate(parts, axis=1)

    def expand_row(self, blocks: Mapping[str, Sequence[float]]) -> FloatArray:
        """Return what ``expand`` returns for one row; of every round, so without small arrays."""
        row = [1.0]
        for name in self.added:
            row += blocks[name]
        for factors in self.products:
            row += [math.prod(one) for one in product(*(blocks[name] for name in factors))]
        for name in self.multiplies:
            row += blocks[name]
        return np.array([row])


def first_double(names: Sequence[str]) -> str | None:
    """Return the first name that occurs twice; None if all are different."""
    if len(set(names)) == len(names):
        return None
    return next(name for name in names if names.count(name) > 1)
