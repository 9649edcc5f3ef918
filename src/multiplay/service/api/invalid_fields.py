"""Invalid fields of a request: what was expected, what was given, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from multiplay._support.checks import shortened
from multiplay._support.formatting import counted
from multiplay._support.suggestions import suggestion
from multiplay.service.api.models import DATE_TIME
from multiplay.service.api.paging import NAME, NUMBER
from multiplay.service.errors import InvalidFields

WHOLE, REAL, TEXT, FLAG = "a whole number", "a number", "a text", "true or false"
OBJECT, LIST = "an object", "a list"
PATTERNS = {
    DATE_TIME: "a time such as 2026-11-15T08:00:00Z",
    NUMBER: "the cursor of a page",
    NAME: "the cursor of a page",
}
KINDS: dict[str, str] = {  # of values, by the type of an error or its part before a "_"
    "int": WHOLE,
    "float": REAL,
    "finite": REAL,
    "string": TEXT,
    "bool": FLAG,
    "dict": OBJECT,
    "model": OBJECT,
    "mapping": OBJECT,
    "list": LIST,
    "tuple": LIST,
}
HINT = "The API reference of the service, at /docs, has an example."
LIMITS: dict[str, Callable[[Mapping[str, Any]], str]] = {  # by the type of an error
    "greater_than_equal": lambda of: f"at least {of['ge']:g}",
    "greater_than": lambda of: f"more than {of['gt']:g}",
    "less_than_equal": lambda of: f"at most {of['le']:g}",
    "less_than": lambda of: f"less than {of['lt']:g}",
    "string_too_short": lambda of: f"at least {counted(of['min_length'], 'character')}",
    "string_too_long": lambda of: f"at most {counted(of['max_length'], 'character')}",
    "too_short": lambda of: f"at least {counted(of['min_length'], 'item')}",
    "too_long": lambda of: f"at most {counted(of['max_length'], 'item')}",
    "literal_error": lambda of: str(of["expected"]),
    "string_pattern_mismatch": lambda of: PATTERNS.get(of["pattern"], "a text of another form"),
    "play_id": lambda of: "the id of a play",
}


class InvalidField(NamedTuple):
    """The first invalid field of a request, and how many there are."""

    argument: str
    expected: str
    got: str
    hint: str
    fields: int


def first_invalid(error: InvalidFields) -> InvalidField:
    """Describe the first invalid field; alternatives of one field are described together."""
    found = [(_path(error.content, one), one) for one in error.errors]
    top = found[0][0][:1]
    of_field = [pair for pair in found if pair[0][:1] == top]
    deepest = max(of_field, key=lambda pair: len(pair[0]))[0]  # the alternative that fits best
    alternatives = [one for path, one in of_field if path == deepest]
    first = alternatives[0]
    got = "nothing" if first["type"] == "missing" else shortened(repr(first.get("input")))
    texts = [*dict.fromkeys(_expected(one) for one in alternatives)]
    hint = _hint(first, error.known if len(deepest) == 1 else ())
    fields = len({path[:1] for path, _ in found})
    return InvalidField(_named(deepest) or error.where, _either(texts), got, hint, fields)


def _expected(error: Mapping[str, Any]) -> str:
    kind = str(error["type"])
    if kind == "missing":
        return "a value"
    if kind == "extra_forbidden":
        return "no field of this name"
    if kind in LIMITS:
        return LIMITS[kind](error.get("ctx", {}))
    return KINDS.get(kind.partition("_")[0], "a valid value")


def _hint(error: Mapping[str, Any], known: Iterable[str]) -> str:
    if error["type"] == "missing":
        return "Add it."
    if error["type"] == "extra_forbidden":
        return suggestion(error["loc"][-1], known).strip() or "Remove it."
    return HINT


def _either(texts: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def _path(content: Any, error: Mapping[str, Any]) -> tuple[int | str, ...]:
    """Return the place of an error in the content, without the names of alternatives."""
    path = list[int | str]()
    for part in error["loc"]:
        inside = isinstance(content, list) and isinstance(part, int) and part < len(content)
        if inside or (isinstance(content, dict) and part in content):
            content = content[part]
            path.append(part)
    if error["type"] == "missing":
        path.append(error["loc"][-1])
    return tuple(path)


def _named(path: Iterable[int | str]) -> str:
    """Return the name of a field, for example ``actions.supply[0]``."""
    text = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path)
    return text.removeprefix(".")
