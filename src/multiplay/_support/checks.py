"""Checks of arguments: each returns a usable value or raises ``InvalidInput``."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from multiplay._support.hints import Hint, Term
from multiplay.errors import InvalidInput
from multiplay.types import FloatArray, IntArray

LIST = (list, tuple)
INTEGER = (int, np.integer)
NUMBER = (*INTEGER, float, np.floating)
EXACT = 2**53  # whole numbers up to here are exact as floats


def numbers(argument: str, values: ArrayLike) -> FloatArray:
    """Return ``values`` as finite floats, or raise ``InvalidInput``."""
    if type(values) is np.ndarray and values.dtype == float:  # the usual case
        array: FloatArray = values
    else:
        array = _real(argument, values).astype(float, copy=False)
    if np.count_nonzero(np.isfinite(array)) < array.size:  # faster than all()
        bad = array[~np.isfinite(array)].flat[0]
        raise InvalidInput(argument, "finite numbers", f"{bad}", "Replace the missing values.")
    return array


def _real(argument: str, values: ArrayLike) -> NDArray[Any]:
    """Return ``values`` as an array of real numbers of any type, NaN and infinity among them."""
    if isinstance(values, np.ma.MaskedArray) and values.mask.any():
        raise InvalidInput(
            argument, "finite numbers", "masked numbers", "Replace the missing values."
        )
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths
        array = np.array(None)
    if array.dtype == object and all(is_integer(value) for value in array.flat):
        with suppress(OverflowError):  # integers beyond 64 bits
            array = array.astype(float)
    if array.dtype.kind not in "biuf":
        raise InvalidInput(argument, "numbers", _short(values), "Give real numbers, not text.")
    return array


def whole_numbers(argument: str, values: ArrayLike) -> IntArray:
    """Return ``values`` as non-negative integers, or raise ``InvalidInput``."""
    array = _real(argument, values)
    if array.dtype.kind == "f":
        array = numbers(argument, array)
    if array.size == 0 or (array.min() >= 0 and array.max() <= EXACT):
        whole = array.astype(np.int64)
        if array.dtype.kind != "f" or (whole == array).all():
            return whole
    wrong = (array != np.floor(array)) | (array < 0) | (array > EXACT)
    raise InvalidInput(
        argument,
        "whole numbers from 0 to 2^53",
        f"{array[wrong].flat[0]:g}",
        "Give whole numbers.",
    )


def is_list(value: object) -> bool:
    """Return whether ``value`` is a list, a tuple or an array with a length."""
    if isinstance(value, LIST):
        return True
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def is_number(value: object) -> bool:
    """Return whether ``value`` is a single real number."""
    return isinstance(value, NUMBER) and not isinstance(value, bool)


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether ``value`` is a single integer; 2.0 is a float."""
    return isinstance(value, INTEGER) and not isinstance(value, bool)


def natural_number(argument: str, value: object, hint: str) -> int:
    """Return ``value`` as an integer from 0 to 2^53, or raise ``InvalidInput``."""
    number = _whole(value)
    if number is None or not 0 <= number <= EXACT:
        raise InvalidInput(argument, "a whole number from 0 to 2^53", _short(value), hint)
    return number


def positive_integer(argument: str, value: object, hint: str, largest: int = EXACT) -> int:
    """Return ``value`` as an integer from 1 to ``largest``, or raise ``InvalidInput``.

    Examples
    --------
    >>> positive_integer("horizon", 1e4, "Give a positive integer.")
    10000
    """
    number = _whole(value)
    if number is None or number < 1:
        raise InvalidInput(argument, "a whole number of at least 1", _short(value), hint)
    if number > largest:
        expected = f"a whole number of at most {largest}"
        raise InvalidInput(argument, expected, _short(value), "Give a smaller number.")
    return number


def integer_setting(thing: object, name: str, hint: str, largest: int = EXACT) -> None:
    """Check a positive integer setting of a frozen dataclass, and keep it as an int."""
    object.__setattr__(thing, name, positive_integer(name, getattr(thing, name), hint, largest))


def _whole(value: object) -> int | None:
    """Return an integer, or a float that is a whole number, as an int; anything else as None."""
    if is_integer(value):
        return int(value)
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return int(value)
    return None


def probability(argument: str, value: object, hint: str) -> float:
    """Return ``value`` as a probability strictly between 0 and 1, or raise ``InvalidInput``."""
    if not is_number(value) or not 0 < float(value) < 1:  # type: ignore[arg-type]
        raise InvalidInput(argument, "a probability between 0 and 1", _short(value), hint)
    return float(value)  # type: ignore[arg-type]


def true_or_false(argument: str, value: object, hint: str) -> bool:
    """Return ``value`` as a bool, or raise ``InvalidInput``: ``"no"`` would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(argument, "True or False", _short(value), hint)
    return bool(value)


def unit_interval(argument: str, values: ArrayLike) -> FloatArray:
    """Return ``values`` as losses, floats in [0, 1], or raise ``InvalidInput``."""
    array = numbers(argument, values)
    outside = (array < 0) | (array > 1)
    if outside.any():
        raise InvalidInput(
            argument,
            "numbers in [0, 1]",
            f"{array[outside].flat[0]:g}",
            "Divide losses and rewards by the largest possible value.",
        )
    return array


def with_last_axis(argument: str, values: ArrayLike, d: int) -> FloatArray:
    """Return ``values`` as floats of shape (..., d), or raise ``InvalidInput``."""
    array = numbers(argument, values)
    if array.ndim == 0 or array.shape[-1] != d:
        raise InvalidInput(
            argument, f"shape (..., {d})", f"shape {array.shape}", "Give one number for each arm."
        )
    return array


def for_each_arm(argument: str, values: ArrayLike, d: int) -> FloatArray:
    """Return ``values`` as floats of shape (..., d); a single number is used for every arm.

    Examples
    --------
    >>> for_each_arm("means", 0.5, 3)
    array([0.5, 0.5, 0.5])
    """
    if is_number(values) or (isinstance(values, np.ndarray) and values.ndim == 0):
        values = np.full(d, values)
    return with_last_axis(argument, values, d)


def check_instance(argument: str, value: object, kind: type, example: str) -> None:
    """Raise ``InvalidInput`` unless ``value`` is an object of this kind."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        expected = f"{article} {kind.__name__}"
        hint = Hint("Give {}, for example.", Term(example, kind.__name__))
        raise InvalidInput(argument, expected, repr(value), hint)


def shortened(text: str, most: int = 60) -> str:
    """Return a text, cut where it is longer than ``most`` characters.

    Examples
    --------
    >>> shortened("a long word", most=7)
    'a lo...'
    """
    return text if len(text) <= most else text[: most - 3] + "..."


def _short(value: object) -> str:
    try:
        return shortened(repr(value))
    except ValueError:  # Python writes no integers of thousands of digits
        return "a number with thousands of digits"
