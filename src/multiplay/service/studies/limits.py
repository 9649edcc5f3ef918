"""What a stranger may ask of the service: limits, and sets that are built from data."""

import json
import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

import multiplay.policies
from multiplay._support import deadline
from multiplay._support.builder import Builder, classes_of, errors_below, unknown
from multiplay._support.checks import is_list, shortened
from multiplay._support.serialization import LEAVES
from multiplay.actions import ActionSet, IntegerProgram
from multiplay.errors import InvalidInput
from multiplay.policies import Policy
from multiplay.service.api.refusals import Malformed
from multiplay.service.studies.sizes import (
    SIZES,
    check_name,
    check_set,
    check_settings_of_policy,
    check_settings_of_set,
)


@dataclass(frozen=True)
class Limits:
    """The most that one request may have.

    Attributes
    ----------
    body, headers : int
        Bytes of a body, and of all headers.
    depth : int
        Lists and tables within each other.
    arms, units : int
        Of a set.
    pending : int
        Plays of a study that wait for their losses.
    seconds : float
        To choose a play, and to send a body.
    rows : int
        Of a list, in one answer.
    streams : int
        Open streams of events, of one worker.
    connections : int
        That one worker has open.
    """

    body: int = 2**20
    headers: int = 2**14
    depth: int = 32
    arms: int = 2_000
    units: int = 100_000
    pending: int = 1_000
    seconds: float = 10.0
    rows: int = 1_000
    streams: int = 200
    connections: int = 1_000


# ---------------------------------------------------------------- JSON

WHOLE = 2**63  # what int64 holds; whole numbers of more digits are somebody's mistake, or attack
DIGITS = 19  # of 2^63
TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # one that does not end, too
ESCAPED, NO_LETTER = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])"), re.compile("[\0\ud800-\udfff]")
OPENS, CLOSES = b"[{", b"]}"
STEPS = bytes(1 if byte in OPENS else 255 if byte in CLOSES else 0 for byte in range(256))
OTHERS = bytes(byte for byte in range(256) if byte not in OPENS + CLOSES)


def strict_json(body: bytes, limits: Limits) -> Any:
    """Return what a body says; refuse what has two meanings, or none in another language.

    Examples
    --------
    >>> strict_json(b'{"at_most": {"Lyon->north": 2}}', Limits())
    {'at_most': {'Lyon->north': 2}}
    """
    if body.count(b"[") + body.count(b"{") > limits.depth:
        _check_depth(body, limits.depth)
    try:
        value = DECODER.decode(body.decode())
    except UnicodeDecodeError as error:
        raise _no_json(f"byte {error.start} is not UTF-8", "Send the text as UTF-8.") from None
    except json.JSONDecodeError as error:
        place = f"{error.msg}, in line {error.lineno}, column {error.colno}"
        raise _no_json(place, "Correct the text at this place.") from None
    if ESCAPED.search(body):  # only so can text have what UTF-8 and JSON do not allow
        _check_text(value)
    return value


def _check_depth(body: bytes, most: int) -> None:
    steps = np.frombuffer(TEXT.sub(b"", body).translate(STEPS, OTHERS), dtype=np.int8)
    depth = int(steps.cumsum(dtype=np.int64).max(initial=0))
    if depth > most:
        expected = f"at most {most} lists and tables within each other"
        raise InvalidInput("body", expected, f"{depth}", "Send flatter data.")


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _no_json(f"{_short(twice)} twice in one table", "Write each key once.")
    return table


def _whole(text: str) -> int:
    if len(text) <= DIGITS + 1:
        number = int(text)
        if -WHOLE <= number < WHOLE:
            return number
    raise _too_much(f"the number {shortened(text)}", "Send whole numbers below 2^63.")


def _fraction(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _too_much(f"the number {shortened(text)}", "Send numbers below 10^308.")
    return number


def _no_number(text: str) -> NoReturn:
    raise _no_json(text, "Send null where a number is missing.")


def _check_text(value: Any) -> None:
    """Refuse a NUL, and half of a pair of surrogates, in any text."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo += one
            todo += one.values()
        elif isinstance(one, list):
            todo += one
        elif isinstance(one, str) and NO_LETTER.search(one):
            raise _too_much(f"the text {_short(one)}", "Send text of whole letters, without NUL.")


def _no_json(got: str, hint: str) -> Malformed:
    return Malformed("body", "JSON", got, hint)


def _too_much(got: str, hint: str) -> InvalidInput:
    """Return the error of what is JSON, and cannot be held."""
    return InvalidInput("body", "numbers and text that all languages can hold", got, hint)


def _short(value: object) -> str:
    return shortened(ascii(value))


DECODER = json.JSONDecoder(
    object_pairs_hook=_table,
    parse_int=_whole,
    parse_float=_fraction,
    parse_constant=_no_number,
)


# ---------------------------------------------------------------- sets and policies

WORDS = 300  # letters in each part of an error: who sends a megabyte does not get it back
SMALLEST, LARGEST = 1e-6, 1e6  # settings of policies: beyond, little is computed but rounding
SETS: dict[str, type] = {kind.__name__: kind for kind in SIZES}
POLICIES: dict[str, type] = {
    name: kind for name, kind in classes_of(multiplay.policies).items() if issubclass(kind, Policy)
}


def build_actions(where: str, plain: Any, limits: Limits) -> ActionSet:
    """Return the set that plain data describe, unless it is too large for a service.

    Examples
    --------
    >>> build_actions("actions", {"type": "Budget", "total": 2, "caps": [1, 1, 3]}, Limits())
    Budget(2, caps=[1, 1, 3])
    """
    with brief_errors(), in_time(where, limits):
        made: ActionSet = _Sets(where, limits).build(where, _described(where, plain), ActionSet)
        if isinstance(made, IntegerProgram):
            made.argmin(-np.ones(made.d))  # M, which is sought without a deadline, is known now
        with errors_below(where):
            check_set(made, limits)
    return made


def build_policy(where: str, plain: Any, limits: Limits) -> Policy:
    """Return the policy that plain data describe, unless it would take too long.

    Examples
    --------
    >>> build_policy("policy", {"type": "GenCTS", "discount": 0.99}, Limits())
    GenCTS(discount=0.99)
    """
    with brief_errors():
        made: Policy = _Policies().build(where, _described(where, plain), Policy)
    return made


@contextmanager
def in_time(where: str, limits: Limits) -> Iterator[None]:
    """Refuse what is prepared within the block if it takes too long, where that can be noticed.

    Only oracles that look at a deadline do: those of integer programs, which may take hours.
    """
    with deadline.before(time.monotonic() + limits.seconds) as until:
        yield
    if until.truncated:
        raise InvalidInput(
            where,
            f"what can be prepared in {limits.seconds:g} seconds",
            "what takes longer",
            "Use multiplay in Python for it.",
        )


@contextmanager
def brief_errors() -> Iterator[None]:
    """Cut what errors repeat of the input."""
    try:
        yield
    except InvalidInput as error:
        parts = error.argument, error.expected, str(error.got), error.hint
        raise type(error)(*(shortened(part, WORDS) for part in parts)) from None


def _described(where: str, plain: Any) -> dict[str, Any]:
    """Return a table that names a class; others would be built as tables."""
    if not isinstance(plain, dict) or "type" not in plain:
        hint = 'Write {"type": "GenCTS"}, say, with the settings beside it.'
        raise InvalidInput(where, "a table with a type", repr(plain), hint)
    return plain


def _tuple(items: Any) -> tuple[Any, ...]:
    if not is_list(items):
        raise InvalidInput("items", "a list", repr(items), "Write [1, 2], say.")
    return tuple(items)


def _mapping(keys: Any, values: Any) -> dict[Any, Any]:
    if not is_list(keys) or not is_list(values) or len(keys) != len(values):
        got = f"{shortened(repr(keys))} and {shortened(repr(values))}"
        hint = "Give a value for each key."
        raise InvalidInput("keys, values", "two lists of the same length", got, hint)
    for key in keys:
        if not isinstance(key, str | int | float | None):
            raise InvalidInput("keys", "texts and numbers", repr(key), "Give simple keys.")
    if len(set(keys)) < len(keys):
        raise InvalidInput("keys", "different keys", "one twice", "Write each key once.")
    return dict(zip(keys, values, strict=True))


CONTAINERS: dict[str, Callable[..., Any]] = {"tuple": _tuple, "mapping": _mapping}


class _Sets(Builder):
    """Builds one set, and nothing but lists, tuples and tables within it."""

    def __init__(self, where: str, limits: Limits) -> None:
        super().__init__(SETS, _readable)
        self.top, self.limits = f"{where}.type", limits

    def build(self, where: str, plain: Any, wanted: type = object) -> Any:
        """Build; of lists of numbers and texts, which may be long, nothing has to be built."""
        if type(plain) is not list or not LEAVES.issuperset(map(type, plain)):
            return super().build(where, plain, wanted)
        for one in plain:
            _readable(where, one)
        return plain

    def find(self, where: str, name: Any) -> Any:
        """Return a class for the set itself, and a container below it."""
        if where == self.top:
            return super().find(where, name)
        if isinstance(name, str) and name in CONTAINERS:
            return CONTAINERS[name]
        raise unknown(where, name, CONTAINERS)

    def make(self, kind: Any, settings: dict[str, Any]) -> Any:
        """Look at the size first."""
        if kind in SIZES:
            check_settings_of_set(kind, settings, self.limits)
        return super().make(kind, settings)


class _Policies(Builder):
    """Builds a policy, and policies within it."""

    def __init__(self) -> None:
        super().__init__(POLICIES, _moderate)

    def make(self, kind: Any, settings: dict[str, Any]) -> Any:
        """Look at the settings first."""
        check_settings_of_policy(kind, settings)
        return super().make(kind, settings)


def _readable(where: str, leaf: Any) -> Any:
    if type(leaf) is str:
        check_name(where, leaf)
    return leaf


def _moderate(where: str, leaf: Any) -> Any:
    if isinstance(leaf, float) and leaf != 0 and not SMALLEST <= abs(leaf) <= LARGEST:
        expected = f"a number between {SMALLEST:g} and {LARGEST:g}"
        raise InvalidInput(where, expected, f"{leaf:g}", "Leave it out for the default.")
    return leaf
