"""Kinds of feature columns: numbers, categories and flags, each with its scaling."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from multiplay._support.checks import is_list, is_number, shortened, true_or_false
from multiplay._support.hints import Hint, Option, Term
from multiplay._support.suggestions import suggestion
from multiplay.errors import InvalidInput
from multiplay.types import FloatArray

FURTHEST = 1000.0  # scaled: one typing error of 10^6 km would determine all coefficients
TO_DEVIATION = 1.349  # interquartile range of a normal distribution, in deviations
MOST_LEVELS = 199
TRUTHS = {"true": 1.0, "false": 0.0}
LEVELS_HINT = Hint("Write {}, for example.", Term("Category(['Mon', 'Tue'])", "levels"))


class Column(ABC):
    """A feature, which is one or more columns of phi.

    A value is first turned into its code, one number, and codes are turned into columns.
    """

    frozen: ClassVar[bool] = True

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of columns of phi."""

    @abstractmethod
    def names(self, name: str) -> tuple[str, ...]:
        """Return the names of the columns of phi, for the name of the feature."""

    @abstractmethod
    def per(self, name: str) -> tuple[str, ...]:
        """Return by how much the feature differs where a column of phi grows by 1."""

    @abstractmethod
    def code(self, where: str, value: Any) -> float:
        """Return the code of a value; raise ``InvalidInput`` at ``where`` if it has none."""

    def codes(self, where: str, arms: Sequence[str], values: Iterable[Any]) -> FloatArray:
        """Return the codes of the values of some arms."""
        plain = values.tolist() if isinstance(values, np.ndarray) else values
        codes = [
            self.code(f"{where}[{arm!r}]", value) for arm, value in zip(arms, plain, strict=True)
        ]
        return np.array(codes, dtype=float)

    @abstractmethod
    def value(self, code: float) -> Any:
        """Return the value that has this code."""

    @abstractmethod
    def columns(self, codes: FloatArray) -> FloatArray:
        """Return the columns of phi for codes, of shape (codes, width)."""

    @abstractmethod
    def row(self, where: str, code: float) -> list[float]:
        """Return the columns of phi for one code; raise ``InvalidInput`` if it is too far."""

    def check(self, where: str, codes: FloatArray, arms: Sequence[str]) -> None:  # noqa: B027
        """Raise ``InvalidInput`` if a code is too far from the others."""

    def freeze(self, codes: FloatArray) -> Column:
        """Return the same column with the scaling of these codes, if it has none."""
        return self


@dataclass(frozen=True)
class Number(Column):
    r"""A feature that is a number, scaled by constants.

    .. math::

        \phi = \frac{\text{value} - \text{centre}}{\text{scale}}

    Parameters
    ----------
    centre, scale
        Constants of the scaling. If not given, they are taken from the first values that are seen,
        and never change after that: the median, and the interquartile range divided by 1.349 (1 if
        it is 0).
    unit
        The unit of the values, for texts.

    Examples
    --------
    >>> from multiplay import Number
    >>> Number(centre=300, scale=100).columns(np.array([450.0]))
    array([[1.5]])
    """

    centre: float | None = None
    scale: float | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        for name in ("centre", "scale"):
            given = getattr(self, name)
            if given is not None:
                good = is_number(given) and math.isfinite(given) and (name == "centre" or given > 0)
                if not good:
                    kind = "a finite number" if name == "centre" else "a positive number"
                    hint = "Leave it out to take it from the first values."
                    raise InvalidInput(name, kind, shortened(repr(given)), hint)
                object.__setattr__(self, name, float(given))
        if not isinstance(self.unit, str):
            hint = Hint("Write {}, for example.", Option("unit", "'km'"))
            raise InvalidInput("unit", "a text", shortened(repr(self.unit)), hint)

    @property
    def frozen(self) -> bool:  # type: ignore[override]
        """Whether the constants are known."""
        return self.centre is not None and self.scale is not None

    @property
    def width(self) -> int:
        """1."""
        return 1

    def names(self, name: str) -> tuple[str, ...]:
        """Return the name of the feature."""
        return (name,)

    def per(self, name: str) -> tuple[str, ...]:
        """Return the scale with its unit, such as "100 km"."""
        scale = 1.0 if self.scale is None else self.scale
        return (f"{scale:g} {self.unit or name}",)

    def code(self, where: str, value: Any) -> float:
        """Return the number itself."""
        if not is_number(value) or not math.isfinite(value):
            hint = "Give the value of this feature; a missing value cannot be used."
            raise InvalidInput(where, "a finite number", shortened(repr(value)), hint)
        return float(value)

    def codes(self, where: str, arms: Sequence[str], values: Iterable[Any]) -> FloatArray:
        """Return the numbers themselves."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
            codes: FloatArray = values.astype(float)
            if np.isfinite(codes).all():
                return codes
        return super().codes(where, arms, values)

    def value(self, code: float) -> float:
        """Return the number itself."""
        return float(code)

    def columns(self, codes: FloatArray) -> FloatArray:
        """Return scaled numbers."""
        if self.centre is None or self.scale is None:
            raise ValueError("the scaling is not known yet")
        columns: FloatArray = (codes[:, np.newaxis] - self.centre) / self.scale
        return columns

    def row(self, where: str, code: float) -> list[float]:
        """Return the scaled number."""
        if self.centre is None or self.scale is None:
            raise ValueError("the scaling is not known yet")
        scaled = (code - self.centre) / self.scale
        if abs(scaled) > FURTHEST:
            self.check(where, np.array([code]), ())
        return [scaled]

    def check(self, where: str, codes: FloatArray, arms: Sequence[str]) -> None:
        """Raise ``InvalidInput`` if a number is more than 1,000 scales from the centre."""
        if not self.frozen:
            return
        far = np.abs(self.columns(codes)[:, 0]) > FURTHEST
        if far.any():
            i, reach = int(far.argmax()), FURTHEST * float(self.scale or 1.0)
            place = f"{where}[{arms[i]!r}]" if len(arms) else where
            centre = float(self.centre or 0.0)
            raise InvalidInput(
                place,
                f"a number from {centre - reach:g} to {centre + reach:g}, 1,000 scales around the "
                "centre",
                f"{codes[i]:g}",
                "Check the value and its unit; or set centre and scale of the column.",
            )

    def freeze(self, codes: FloatArray) -> Number:
        """Return the same column, scaled by median and interquartile range."""
        if self.frozen or len(codes) == 0:
            return self
        low, middle, high = np.quantile(codes, [0.25, 0.5, 0.75]).tolist()
        centre = middle if self.centre is None else self.centre
        scale = self.scale if self.scale is not None else (high - low) / TO_DEVIATION or 1.0
        return Number(centre, scale, self.unit)


@dataclass(frozen=True)
class Category(Column):
    r"""A feature with one of several levels; each level has a column of its own.

    .. math::

        \phi_l = 1 \text{ for the level of the arm or day, 0 for the others.}

    No level is special: the prior of the coefficients tells them apart from the intercept.

    Parameters
    ----------
    levels
        The names of all levels.
    others
        Whether a value that is not a level is accepted; all of its columns are 0. It is refused
        otherwise.

    Examples
    --------
    >>> from multiplay import Category
    >>> Category(["Mon", "Tue"]).columns(np.array([1.0]))
    array([[0., 1.]])
    """

    levels: Sequence[str]
    others: bool = False

    def __post_init__(self) -> None:
        hint = LEVELS_HINT
        if not is_list(self.levels) or not 0 < len(self.levels) <= MOST_LEVELS:
            expected = f"a list of 1 to {MOST_LEVELS} names"
            raise InvalidInput("levels", expected, shortened(repr(self.levels)), hint)
        levels = tuple(_text(level) for level in self.levels)
        twice = next((level for level in levels if levels.count(level) > 1), None)
        if twice is not None:
            raise InvalidInput("levels", "different names", f"{twice!r} twice", "Remove one.")
        if not all(level.strip() for level in levels) or None in self.levels:
            raise InvalidInput("levels", "names that can be seen", repr(self.levels), hint)
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "others", true_or_false("others", self.others, "Leave it out."))

    @property
    def width(self) -> int:
        """The number of levels."""
        return len(self.levels)

    def names(self, name: str) -> tuple[str, ...]:
        """Return a name for each level, such as "weekday=Mon"."""
        return tuple(f"{name}={level}" for level in self.levels)

    def per(self, name: str) -> tuple[str, ...]:
        """Return the levels."""
        return self.names(name)

    def code(self, where: str, value: Any) -> float:
        """Return the number of the level; -1 for a value that is no level."""
        text = _text(value) if isinstance(value, str) or is_number(value) else None
        if text is not None and text in self.levels:
            return float(self.levels.index(text))
        if self.others and text is not None and text == text.strip() != "" and text != "nan":
            return -1.0
        shown = ", ".join(map(repr, self.levels[:8])) + (", ..." if len(self.levels) > 8 else "")
        near = suggestion(value, self.levels) if isinstance(value, str) else ""
        others = Option("others", "True", "Category(..., {})")
        hint = Hint("Use one of the levels, or {}.", others) + near
        raise InvalidInput(where, f"one of {shown}", shortened(repr(value)), hint)

    def value(self, code: float) -> str | None:
        """Return the name of the level; None for a value that was no level."""
        return None if code < 0 else self.levels[int(code)]

    def columns(self, codes: FloatArray) -> FloatArray:
        """Return 1 in the column of the level."""
        columns: FloatArray = (codes[:, np.newaxis] == np.arange(self.width)).astype(float)
        return columns

    def row(self, where: str, code: float) -> list[float]:
        """Return 1 in the column of the level."""
        return [float(code == level) for level in range(self.width)]


@dataclass(frozen=True)
class Flag(Column):
    """A feature that is true or false: its column is 1 or 0.

    Examples
    --------
    >>> from multiplay import Flag
    >>> Flag().columns(np.array([1.0, 0.0]))
    array([[1.],
           [0.]])
    """

    @property
    def width(self) -> int:
        """1."""
        return 1

    def names(self, name: str) -> tuple[str, ...]:
        """Return the name of the feature."""
        return (name,)

    def per(self, name: str) -> tuple[str, ...]:
        """Return the name of the feature."""
        return (name,)

    def code(self, where: str, value: Any) -> float:
        """Return 1 or 0."""
        if isinstance(value, bool | np.bool_) or (is_number(value) and value in (0, 1)):
            return float(value)
        if isinstance(value, str) and value.lower() in TRUTHS:
            return TRUTHS[value.lower()]
        hint = "Use true or false, or 1 or 0."
        raise InvalidInput(where, "True or False", shortened(repr(value)), hint)

    def value(self, code: float) -> bool:
        """Return True or False."""
        return bool(code)

    def columns(self, codes: FloatArray) -> FloatArray:
        """Return the codes as a column."""
        return codes[:, np.newaxis]

    def row(self, where: str, code: float) -> list[float]:
        """Return the code."""
        return [code]


def _text(value: Any) -> str:
    """Return the name of a level: 1.0 in a table with gaps is the level "1"."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
