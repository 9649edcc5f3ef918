"""Results as plain data, for HTTP, its client and the command line, from the fields of their class.

A result class is a named tuple or a dataclass. Plain data have its fields, except those that begin
with an underscore or are ``HIDDEN``, and the properties whose type is ``Annotated``. ``text`` is
the text of a result, where ``__str__`` is ``SHOWN``. The notes are in ``types.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from datetime import datetime
from functools import cache, cached_property, partial
from inspect import getmembers_static
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from multiplay._support.serialization import number_or_nan, number_or_none
from multiplay.constraints import Constraint
from multiplay.studies.export import FLAG, INTEGER, LIST, NUMBER, TEXT, TIME
from multiplay.studies.wire import of_constraint, to_constraint
from multiplay.types import MaybeKnown, Note, PlainName

T = TypeVar("T")
Convert = Callable[[Any], Any] | None  # None: the value is plain data as it is
COLUMNS = {str: TEXT, int: INTEGER, float: NUMBER, bool: FLAG, datetime: TIME, tuple: LIST}


class ResultField(NamedTuple):
    """A field of a result class, or a property, that plain data have.

    Attributes
    ----------
    name, attribute : str
        Its name in plain data, and in the class.
    type : type
        Its type, without notes.
    notes : tuple
        A text describes it, a ``Literal`` has its values, a ``Note`` says how it is converted.
    is_argument : bool
        Whether the class is built from it.
    """

    name: str
    attribute: str
    type: Any
    notes: tuple[Any, ...]
    is_argument: bool


def to_plain(result: Any) -> dict[str, Any]:
    """Return a result as plain data for JSON; numbers that are not finite are None.

    Examples
    --------
    >>> from multiplay.learner.plays import Estimate, Receipt
    >>> to_plain(Estimate(12.5, float("nan"), 20.0))
    {'total': 12.5, 'low': None, 'high': 20.0}
    >>> of_plain(Receipt, {"id": 3, "seen": 2, "missing": 1, "added": ["rail"], "newer": 0}).added
    ('rail',)
    """
    kind: Any = type(result)
    names, converted = _writer(kind)
    plain = {name: getattr(result, attribute) for name, attribute in names}
    for name, convert in converted:
        plain[name] = convert(plain[name])
    return plain


def of_plain(kind: Callable[..., T], plain: Mapping[str, Any], **given: Any) -> T:
    """Return the result of plain data, and of arguments that these do not have.

    Fields of a newer service are ignored, and those that an older one does not send have defaults.
    """
    found = {
        attribute: plain[name] if convert is None else convert(plain[name])
        for name, attribute, convert in _reader(kind)
        if name in plain
    }
    return kind(**found, **given)


@cache
def fields_of(kind: Any) -> tuple[ResultField, ...]:
    """Return the fields of a result class that plain data have."""
    hints = get_type_hints(kind, include_extras=True)
    names = kind.__dataclass_fields__ if is_dataclass(kind) else kind._fields
    own = [(name, hints[name]) for name in names if not name.startswith("_")]
    made = [_field(name, hint, name in names) for name, hint in [*own, *_properties(kind)]]
    shown = [one for one in made if Note.HIDDEN not in one.notes]
    return tuple(sorted(shown, key=lambda one: one.attribute != "__str__"))  # the text is first


def columns_of(kind: type) -> dict[str, str]:
    """Return the columns of a table whose rows are results of this class.

    Examples
    --------
    >>> columns_of(ArmEffect)
    {'arm': 'text', 'effect': 'number', 'low': 'number', 'high': 'number'}
    """
    return {one.name: COLUMNS[_origin(without_none(one.type))] for one in fields_of(kind)}


def is_result(kind: Any) -> bool:
    """Return whether a type is a result class."""
    return is_dataclass(kind) or hasattr(kind, "_fields")


def is_optional(kind: Any) -> bool:
    """Return whether a value of this type may be None."""
    return get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind)


def without_none(kind: Any) -> Any:
    """Return the type of a value that is not None."""
    return next(one for one in get_args(kind) if one is not NoneType) if is_optional(kind) else kind


def _properties(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the properties whose type is annotated, and ``__str__`` if it is."""
    for name, member in getmembers_static(kind):
        read: Any = member if name == "__str__" else None
        if isinstance(member, property | cached_property):
            read = member.fget if isinstance(member, property) else member.func
        # Other types may have names that are imported for the type checker alone.
        if "Annotated[" in str(getattr(read, "__annotations__", {}).get("return")):
            yield name, get_type_hints(read, include_extras=True)["return"]


def _field(attribute: str, hint: Any, is_argument: bool) -> ResultField:
    is_annotated = get_origin(hint) is Annotated
    kind, *notes = get_args(hint) if is_annotated else (hint,)
    names = [note.name for note in notes if isinstance(note, PlainName)]
    name = "text" if attribute == "__str__" else names[0] if names else attribute
    return ResultField(name, attribute, kind, tuple(notes), is_argument)


@cache
def _writer(kind: Any) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, Any], ...]]:
    """Return names with their attributes, and names with what converts their values."""
    fields = fields_of(kind)
    found = ((one.name, _converters(one).write) for one in fields)
    return (
        tuple((one.name, one.attribute) for one in fields),
        tuple((name, convert) for name, convert in found if convert is not None),
    )


@cache
def _reader(kind: Any) -> tuple[tuple[str, str, Convert], ...]:
    """Return names, arguments of the class, and what converts their values."""
    fields = (one for one in fields_of(kind) if one.is_argument)
    return tuple((one.name, one.attribute, _converters(one).read) for one in fields)


# ------------------------------------------------------------ values


class Converters(NamedTuple):
    """What converts the values of a type to plain data, and back."""

    write: Convert = None
    read: Convert = None


def _converters(field: ResultField) -> Converters:
    if field.attribute == "__str__":
        return Converters(lambda text: text())
    if Note.UNKNOWN_IS_NAN in field.notes:
        return Converters(number_or_none, number_or_nan)
    found = _of_type(without_none(field.type))
    if not is_optional(field.type):
        return found
    return Converters(*(one and partial(_unless_none, one) for one in found))


def _of_type(kind: Any) -> Converters:
    if isinstance(kind, type) and issubclass(kind, Constraint):
        return Converters(of_constraint, partial(to_constraint, "constraint"))
    if is_result(kind):
        return Converters(to_plain, partial(of_plain, kind))
    if _origin(kind) is tuple and is_result(get_args(kind)[0]):
        read = partial(of_plain, get_args(kind)[0])
        return Converters(lambda rows: [*map(to_plain, rows)], lambda rows: tuple(map(read, rows)))
    return CONVERTERS.get(_origin(kind), Converters())


def _origin(kind: Any) -> Any:
    return get_origin(kind) or kind


def _unless_none(convert: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else convert(value)


CONVERTERS: dict[Any, Converters] = {
    int: Converters(int),
    float: Converters(number_or_none, lambda value: math.nan if value is None else value),
    datetime: Converters(datetime.isoformat, datetime.fromisoformat),
    tuple: Converters(list, tuple),
    dict: Converters(dict, dict),
    Mapping: Converters(dict, dict),
    np.ndarray: Converters(lambda array: array.tolist(), partial(np.array, dtype=np.int64)),
}


# ------------------------------------------------------------ rows of tables


class Arm(NamedTuple):
    """The statistics of an arm, in the unit of the study."""

    arm: str
    seen: int
    mean: MaybeKnown
    low: MaybeKnown
    high: MaybeKnown
    average: MaybeKnown
    spread: float
    last_seen: datetime | None
    share: float
    long_run: Annotated[MaybeKnown, "The mean to which losses return, where they persist."]


class Drift(NamedTuple):
    """A change of the mean loss of an arm, or of several arms at once."""

    arm: Annotated[str, 'The arm, or "8 of 9 arms" for a change that they share.']
    since: Annotated[int, "The round after which the new mean holds."]
    before: float
    after: float
    units: Annotated[int, "The number of units since then."]
    sure: Annotated[
        MaybeKnown,
        "The probability of the change under the model; null if only the test finds it.",
    ]
    acted: Annotated[bool, "Whether losses from before no longer count."]
    certain: Annotated[bool, "Whether the test at the level finds it, without a model."]
    date: Annotated[
        datetime | None, "The first day of the new mean in an imported table; since is 0 then."
    ]
    arms: tuple[str, ...]


class Effect(NamedTuple):
    """The effect of a feature on the loss of a unit, in its unit; levels against their average."""

    feature: Annotated[str, 'The feature; "1" is a unit of the average arm.']
    per: Annotated[str, "By how much the feature differs: the effect is per 100 km."]
    effect: float
    low: MaybeKnown
    high: MaybeKnown
    changes_plans: Annotated[
        bool, "False for a feature that adds the same to the loss of every plan."
    ]
    text: str


class ArmEffect(NamedTuple):
    """The own effect of an arm, compared with the average arm: what its features do not say."""

    arm: str
    effect: float
    low: MaybeKnown
    high: MaybeKnown


ARMS, DRIFT = columns_of(Arm), columns_of(Drift)
EFFECTS, ARM_EFFECTS = columns_of(Effect), columns_of(ArmEffect)
