"""Limits of the service: the size of requests, strict JSON, and the cost of sets and policies."""

import json
import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

import multiplay.actions
import multiplay.policies
from multiplay._support import deadline
from multiplay._support.builder import Builder, classes_of, errors_below, unknown
from multiplay._support.checks import is_list, shortened
from multiplay._support.serialization import LEAVES, settings
from multiplay.actions import ActionSet, Rule
from multiplay.actions.costs import Requirement, positive
from multiplay.constraints import Baseline, Constraint, Promise
from multiplay.errors import InvalidInput
from multiplay.features import Features
from multiplay.policies import Policy
from multiplay.policies.index import PARTS_OF_POLICIES
from multiplay.service.errors import MalformedRequest
from multiplay.studies import comparison
from multiplay.studies.wire import FEATURES, to_constraint


@dataclass(frozen=True)
class ServiceLimits:
    """Limits on requests, sets, studies and connections.

    Attributes
    ----------
    body, headers : int
        Bytes of a body, and of all headers.
    depth : int
        Nesting of lists and objects in a body.
    arms, units : int
        Arms of a set, and units of a play.
    pending : int
        Pending plays of a study.
    seconds : float
        Seconds to choose a play, to send a body, and for a verb that replays the journal.
    rows, page : int
        Rows of a list in one response, and bytes of them; a single row may have more.
    streams : int
        Open event streams of one worker.
    connections : int
        Open connections of one worker.
    """

    body: int = 2**20
    headers: int = 2**14
    depth: int = 32
    arms: int = 2_000
    units: int = 100_000
    pending: int = 1_000
    seconds: float = 10.0
    rows: int = 1_000
    page: int = 2**22
    streams: int = 200
    connections: int = 1_000


# ---------------------------------------------------------------- JSON

WHOLE = 2**63  # the range of int64; longer integers are a mistake, or an attack
DIGITS = 19  # of 2^63
TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # a string without an end, too
ESCAPED, INVALID_CHARACTER = (
    re.compile(rb"\\u(?:0000|[dD][89a-fA-F])"),
    re.compile("[\0\ud800-\udfff]"),
)
OPENS, CLOSES = b"[{", b"]}"
STEPS = bytes(1 if byte in OPENS else 255 if byte in CLOSES else 0 for byte in range(256))
NO_BRACKETS = bytes(byte for byte in range(256) if byte not in OPENS + CLOSES)


def strict_json(body: bytes, limits: ServiceLimits) -> Any:
    """Return the data of a body; raise for JSON that is ambiguous, or not portable.

    Examples
    --------
    >>> strict_json(b'{"at_most": {"Lyon->north": 2}}', ServiceLimits())
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
        raise _no_json(place, "Correct the JSON at this position.") from None
    if ESCAPED.search(body):  # only an escape can produce characters that UTF-8 does not allow
        _check_text(value)
    return value


def _check_depth(body: bytes, most: int) -> None:
    steps = np.frombuffer(TEXT.sub(b"", body).translate(STEPS, NO_BRACKETS), dtype=np.int8)
    depth = int(steps.cumsum(dtype=np.int64).max(initial=0))
    if depth > most:
        expected = f"at most {most} levels of nested lists and objects"
        raise InvalidInput("body", expected, f"{depth}", "Send data with fewer levels.")


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _no_json(f"{_short(twice)} twice in one object", "Write each key once.")
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
    """Raise ``InvalidInput`` for a NUL or a lone surrogate in any string."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo += one
            todo += one.values()
        elif isinstance(one, list):
            todo += one
        elif isinstance(one, str) and INVALID_CHARACTER.search(one):
            raise _too_much(f"the text {_short(one)}", "Remove NUL characters and lone surrogates.")


def _no_json(got: str, hint: str) -> MalformedRequest:
    return MalformedRequest("body", "JSON", got, hint)


def _too_much(got: str, hint: str) -> InvalidInput:
    """Return the error of valid JSON that other languages cannot represent."""
    return InvalidInput("body", "numbers and text that all languages can represent", got, hint)


def _short(value: object) -> str:
    return shortened(ascii(value))


DECODER = json.JSONDecoder(
    object_pairs_hook=_table,
    parse_int=_whole,
    parse_float=_fraction,
    parse_constant=_no_number,
)


# ---------------------------------------------------------------- sets and policies

ERROR_PART = 300  # characters of each part of an error, which may repeat the input
SMALLEST, LARGEST = 1e-6, 1e6  # settings of policies: beyond them rounding errors dominate
LONGEST_NAME = 200  # characters
HISTORY = 10_000_000  # rounds times arms of a table: 200 MB
COMPARED = comparison.LARGE  # plays times arms of a study that is compared with a rule
MOST_PROMISES, MOST_PLAYS = 8, 100_000  # of a study, and of a promise
MOST_AHEAD = 400  # sets of plays to come, in one request
AHEAD = 20_000  # their arms in total
SIMULATED = 5_000  # the same, compared with a policy, whose plays are simulated
PHI = 1_000_000  # features in one request: arms, or units of a table, times columns
REBUILT = 10_000_000_000  # rounds, arms and squared columns of a table, with a discount: seconds


def offered(classes: Mapping[str, type], base: type) -> dict[str, Any]:
    """Return the classes that can be built over HTTP: those that declare their cost themselves.

    An inherited cost does not count: a subclass may be more expensive.
    """
    return {
        name: kind
        for name, kind in classes.items()
        if issubclass(kind, base) and vars(kind).get("cost") is not None
    }


EXPORTED = classes_of(multiplay.actions, multiplay.policies)
SETS: dict[str, type[ActionSet]] = offered(EXPORTED, ActionSet)
POLICIES: dict[str, type[Policy]] = offered(EXPORTED, Policy)
PARTS = {name: kind for name, kind in EXPORTED.items() if issubclass(kind, PARTS_OF_POLICIES)}
RULES: dict[str, type] = {n: kind for n, kind in EXPORTED.items() if issubclass(kind, Rule)}


def build_actions(where: str, plain: Any, limits: ServiceLimits) -> ActionSet:
    """Return the set that plain data describe; raise if it is too large for the service.

    Examples
    --------
    >>> build_actions("actions", {"type": "Budget", "total": 2, "caps": [1, 1, 3]}, ServiceLimits())
    Budget(2, caps=[1, 1, 3])
    """
    with brief_errors(), in_time(where, limits):
        made: ActionSet = _Sets(where, limits).build(where, _described(where, plain), ActionSet)
        if made.cost is not None and made.cost.timed:
            made.argmin(-np.ones(made.d))  # M, which has no deadline, is then known
        with errors_below(where):
            check_set_size(made, limits)
    return made


def build_policy(where: str, plain: Any, limits: ServiceLimits) -> Policy:
    """Return the policy that plain data describe; raise if it is too expensive.

    Examples
    --------
    >>> build_policy("policy", {"type": "GenCTS", "discount": 0.99}, ServiceLimits())
    GenCTS(discount=0.99)
    """
    with brief_errors():
        made: Policy = _Policies().build(where, _described(where, plain), Policy)
    return made


def build_rule(where: str, plain: Any, limits: ServiceLimits) -> Rule:
    """Return the rule that plain data describe; raise if it names too many arms.

    Examples
    --------
    >>> build_rule("rule", {"type": "PriceList", "prices": {"air": 9.0}}, ServiceLimits())
    PriceList(prices={'air': 9.0})
    """
    with brief_errors():
        made: Rule = Builder(RULES, _checked_text).build(where, _described(where, plain), Rule)
        for given in settings(made).values():
            if isinstance(given, Mapping):
                check_arms(where, given, limits)
    return made


def build_versus(where: str, plain: Any, limits: ServiceLimits) -> Rule | Policy:
    """Return the rule or the policy that plain data describe, to compare plays with.

    Examples
    --------
    >>> build_versus("versus", {"type": "GenCTS"}, ServiceLimits())
    GenCTS()
    """
    name = _described(where, plain)["type"]
    if isinstance(name, str) and name in POLICIES:
        return build_policy(where, plain, limits)
    return build_rule(where, plain, limits)


def check_arms(where: str, names: Collection[str], limits: ServiceLimits) -> None:
    """Raise ``InvalidInput`` for more arms than a study may have, or names that it cannot have."""
    if len(names) > limits.arms:
        raise too_many_arms(where, len(names), limits)
    for name in names:
        check_name(where, name)


def build_constraint(where: str, plain: Any, limits: ServiceLimits) -> Constraint:
    """Return the constraint that plain data describe; raise if it names too many arms."""
    with brief_errors():
        made = to_constraint(where, _described(where, plain))
    if isinstance(made, Promise):
        check_arms(f"{where}.of", made.of, limits)
        check_name(f"{where}.name", made.name)
        if made.plays > MOST_PLAYS:
            raise _too_large(f"{where}.plays", MOST_PLAYS, "plays", f"{made.plays}")
    elif isinstance(made, Baseline) and isinstance(made.rule, Rule):
        build_rule(f"{where}.rule", plain["rule"], limits)
    return made


def takes_long(actions: ActionSet) -> bool:
    """Return whether the prices of promises take too long on a set: on an integer program."""
    return actions.cost is None or actions.cost.timed


def check_quick(argument: str, actions: ActionSet) -> None:
    """Raise ``InvalidInput`` for a set on which promises take too long."""
    if takes_long(actions):
        expected, hint = "no promises with an integer program", "Use multiplay in Python."
        raise InvalidInput(argument, expected, type(actions).__name__, hint)


def check_ahead(ahead: Collection[ActionSet]) -> None:
    """Raise ``InvalidInput`` for sets of plays to come that are too large in all."""
    arms = sum(one.d for one in ahead)
    if arms > AHEAD:
        hint = "Give the sets of fewer plays."
        raise InvalidInput("ahead", f"at most {AHEAD} arms in all sets", f"{arms}", hint)
    for k, one in enumerate(ahead):
        check_quick(f"ahead[{k}]", one)


def build_features(where: str, plain: Any) -> Features:
    """Return the declared features that plain data describe.

    Examples
    --------
    >>> build_features("features", {"type": "Features", "columns": {"rain": {"type": "Flag"}}})
    Features(rain=Flag())
    """
    with brief_errors():
        made: Features = _Declared().build(where, _described(where, plain), Features)
        for name in made.columns:
            check_name(where, name)
    return made


@contextmanager
def in_time(where: str, limits: ServiceLimits) -> Iterator[None]:
    """Raise ``InvalidInput`` if the block reaches the time limit of the service.

    Only oracles that observe a deadline stop: those of integer programs, which may take hours.
    """
    with deadline.before(time.monotonic() + limits.seconds) as until:
        yield
    if until.truncated:
        raise InvalidInput(
            where,
            f"a set that is prepared within {limits.seconds:g} seconds",
            "a set that takes longer",
            "Use multiplay in Python for larger problems.",
        )


@contextmanager
def brief_errors() -> Iterator[None]:
    """Shorten the input that errors repeat."""
    try:
        yield
    except InvalidInput as error:
        parts = error.argument, error.expected, str(error.got), error.hint
        raise type(error)(*(shortened(part, ERROR_PART) for part in parts)) from None


def _described(where: str, plain: Any) -> dict[str, Any]:
    """Return an object that names a class; raise for other data."""
    if not isinstance(plain, dict) or "type" not in plain:
        hint = 'Write {"type": "PooledCTS"}, for example, with its settings as further keys.'
        raise InvalidInput(where, "an object with the key type", repr(plain), hint)
    return plain


def _tuple(items: Any) -> tuple[Any, ...]:
    if not is_list(items):
        raise InvalidInput("items", "a list", repr(items), "Write [1, 2], for example.")
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
    """Builder of one set, with only lists, tuples and mappings as settings."""

    def __init__(self, where: str, limits: ServiceLimits) -> None:
        super().__init__(SETS, _checked_text)
        self.top, self.limits = f"{where}.type", limits

    def build(self, where: str, plain: Any, wanted: type = object) -> Any:
        """Build plain data; long lists of numbers and strings are returned as they are."""
        if type(plain) is not list or not LEAVES.issuperset(map(type, plain)):
            return super().build(where, plain, wanted)
        for one in plain:
            _checked_text(where, one)
        return plain

    def find(self, where: str, name: Any) -> Any:
        """Return the class of the set, or a container within its settings."""
        if where == self.top:
            _check_declared(where, name, ActionSet)
            return super().find(where, name)
        if isinstance(name, str) and name in CONTAINERS:
            return CONTAINERS[name]
        raise unknown(where, name, CONTAINERS)

    def make(self, kind: Any, settings: dict[str, Any]) -> Any:
        """Check the size before the set is made."""
        if isinstance(kind, type) and issubclass(kind, ActionSet) and kind.cost is not None:
            _check(kind.cost.requirements(settings), self.limits)
            if kind.cost.check is not None:
                kind.cost.check(settings)
        return super().make(kind, settings)


class _Policies(Builder):
    """Builder of a policy, with policies and parts of policies as settings."""

    def __init__(self) -> None:
        super().__init__({**POLICIES, **PARTS}, _moderate)

    def find(self, where: str, name: Any) -> Any:
        """Return a policy that declares its cost."""
        _check_declared(where, name, Policy)
        return super().find(where, name)

    def make(self, kind: Any, settings: dict[str, Any]) -> Any:
        """Check the settings that increase the cost before the policy is made."""
        for name in kind.cost.capped if kind.__name__ in POLICIES else ():
            if name in settings:
                most, unit = getattr(kind, name), "in the service, the default"
                _check([Requirement(name, positive(settings[name]), most, unit)], ServiceLimits())
        return super().make(kind, settings)


class _Declared(Builder):
    """Builder of declared features, with columns, lists and mappings as settings."""

    def __init__(self) -> None:
        super().__init__({**FEATURES, **CONTAINERS}, _checked_text)  # type: ignore[dict-item]


def check_name(argument: str, name: str) -> None:
    """Raise ``InvalidInput`` for a name that is too long, or not printable."""
    if len(name) > LONGEST_NAME or not name.isprintable():
        expected = f"printable names of at most {LONGEST_NAME} characters"
        raise InvalidInput(argument, expected, ascii(name), "Give shorter names, in one line.")


def check_path_name(name: str) -> str:
    """Return the name of a new study; raise ``InvalidInput`` for one that no URL can contain."""
    if name in (".", ".."):
        raise InvalidInput("name", "a name", repr(name), "Use letters and digits.")
    return name


def check_set_size(actions: ActionSet, limits: ServiceLimits) -> None:
    """Raise ``InvalidInput`` for a set with too many units, or with unprintable names."""
    _check(actions.requirements(), limits)
    units = int(actions.n.max())  # first: the sum of many large numbers may exceed int64
    if units <= limits.units:
        units = actions.M
    if units > limits.units:
        raise _too_large("units", limits.units, "units in one plan", f"{units}", "--max-units")
    for name in actions.names:
        check_name("names", name)


def check_together(actions: ActionSet, policy: Policy, limits: ServiceLimits) -> None:
    """Raise ``InvalidInput`` for a policy that takes minutes, or gigabytes, on this set."""
    if policy.cost is None:
        raise _undeclared("policy", type(policy).__name__)
    _check(policy.requirements(actions), limits)


def check_known(known: Collection[str], actions: ActionSet, limits: ServiceLimits) -> None:
    """Raise ``InvalidInput`` for a set whose new arms make a study too large: it keeps all arms."""
    arms = len(known) + sum(name not in known for name in actions.names)
    if arms > limits.arms:
        raise too_many_arms("actions", arms, limits)


def too_many_arms(argument: str, arms: int, limits: ServiceLimits) -> InvalidInput:
    """Return the error of a study with too many arms."""
    unit = "arms in all sets of a study"
    return _too_large(argument, limits.arms, unit, f"{arms}", "--max-arms")


def check_history(rounds: int, arms: int) -> None:
    """Raise ``InvalidInput`` for a table of past rounds that is too large to learn at once."""
    if rounds * arms > HISTORY:
        unit = "rounds times arms of the study"
        raise _too_large("table", HISTORY, unit, f"{rounds * arms}")


def check_compared(rounds: int, arms: int, simulated: bool) -> None:
    """Raise ``InvalidInput`` for a study that cannot be compared with a rule in seconds.

    ``simulated``: with a policy, whose plays are simulated.
    """
    most = SIMULATED if simulated else COMPARED
    if rounds * arms > most:
        unit = "plays times arms of the study" + ", to simulate a policy" * simulated
        raise _too_large("versus", most, unit, f"{rounds * arms}")


def check_features(features: Features | None, rows: int, argument: str = "features") -> None:
    """Raise ``InvalidInput`` for more features than one request may have."""
    if features is not None and rows * features.p > PHI:
        unit = "numbers: arms, or units of a table, times columns of features"
        raise _too_large(argument, PHI, unit, f"{rows} times {features.p}")


def check_rebuilt(features: Features | None, policy: Policy, rounds: int, arms: int) -> None:
    """Raise ``InvalidInput`` for a table that takes minutes, because each round is discounted."""
    if features is None or getattr(policy, "discount", None) is None:
        return
    work = rounds * arms * features.p**2
    if work > REBUILT:
        unit = "rounds times arms times squared columns of features, with a discount"
        raise _too_large("table", REBUILT, unit, f"{work}")


def _check(requirements: Iterable[Requirement], limits: ServiceLimits) -> None:
    """Raise ``InvalidInput`` for the first requirement that exceeds its limit."""
    for argument, amount, most, unit, got, hint in requirements:
        largest, option = (limits.arms, "--max-arms") if most is None else (most, "")
        if amount > largest:
            raise _too_large(argument, largest, unit, got or f"{amount}", option, hint)


def _too_large(
    argument: str, most: int, unit: str, got: str, option: str = "", hint: str = ""
) -> InvalidInput:
    started = f", or start the service with {option}" if option else ""
    hint = hint or f"Use multiplay in Python for larger problems{started}."
    return InvalidInput(argument, f"at most {most} {unit}", got, hint)


def _check_declared(where: str, name: Any, base: type) -> None:
    """Raise ``InvalidInput`` for an exported class that does not declare its cost."""
    kind = EXPORTED.get(name) if isinstance(name, str) else None
    if kind is not None and issubclass(kind, base) and not offered({name: kind}, base):
        raise _undeclared(where, name)


def _undeclared(where: str, name: str) -> InvalidInput:
    """Return the error of a class that does not declare its cost."""
    expected = "a class that declares its cost, so that requests can be limited"
    return InvalidInput(where, expected, name, "Use it in Python; the service does not offer it.")


def _checked_text(where: str, leaf: Any) -> Any:
    if type(leaf) is str:
        check_name(where, leaf)
    return leaf


def _moderate(where: str, leaf: Any) -> Any:
    if isinstance(leaf, float) and leaf != 0 and not SMALLEST <= abs(leaf) <= LARGEST:
        expected = f"a number between {SMALLEST:g} and {LARGEST:g}"
        raise InvalidInput(where, expected, f"{leaf:g}", "Leave it out for the default.")
    return leaf
