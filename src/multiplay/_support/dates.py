"""Dates in tables, keys and options: texts such as 2026-12-31 or 31.12.2026 name one day."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any

import numpy as np

from multiplay._support.hints import Hint, Option
from multiplay.errors import InvalidInput

CLOCK = r"(?:[T ,]\s*(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*([AP]M)?)?"
ZONE = r"\s*(Z|UTC|[+-]\d\d:?\d\d)?"
YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){CLOCK}{ZONE}", re.IGNORECASE)
YEAR_LAST = re.compile(
    rf"(\d{{1,2}})(?:([-/.])(\d{{1,2}})\2(\d{{4}})|\.(\d{{1,2}})\.(\d\d)){CLOCK}{ZONE}",
    re.IGNORECASE,
)
DAY = re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{4}")  # a date alone
RECENT = 256  # texts whose days are remembered: a verb reads its key several times
CENTURY = 2000  # of years with two digits
ORDER_HINT = Hint(
    "Write dates as 2026-12-31, or state {} or {}.",
    Option("day_first", "True"),
    Option("day_first", "False"),
)


def date_seconds(
    argument: str, values: Sequence[Any], day_first: bool | None = None
) -> list[float | None]:
    """Return times as seconds since 1970; None for a value that is no time.

    A time without a zone is UTC. ``day_first`` says how to read 03/04/2026. If it is not given, the
    other dates must show it.

    Examples
    --------
    >>> date_seconds("day", ["1970-01-02", "02.01.1970 00:00", date(1970, 1, 2), "Monday"])
    [86400.0, 86400.0, 86400.0, None]
    >>> date_seconds("day", ["01/02/1970", "01/31/1970"])
    [86400.0, 2592000.0]
    """
    texts = [value for value in values if isinstance(value, str)]
    order = _is_day_first(argument, texts) if day_first is None else day_first
    return [_seconds(value, order) for value in values]


def _is_day_first(argument: str, texts: Iterable[str]) -> bool:
    """Return whether the day comes before the month, by the dates that show it."""
    found = [(text, match) for text in texts if (match := YEAR_LAST.fullmatch(text.strip()))]
    pairs = [(int(match[1]), int(match[3] or match[5])) for _, match in found]
    days = [k for k, (one, other) in enumerate(pairs) if one > 12 >= other]
    months = [k for k, (one, other) in enumerate(pairs) if other > 12 >= one]
    if days and months:
        got = f"{found[days[0]][0]!r} and {found[months[0]][0]!r}"
        raise InvalidInput(argument, "dates in one format", got, ORDER_HINT)
    by_dots = all(match[2] in (".", None) for _, match in found)
    if days or months or by_dots or all(one == other for one, other in pairs):
        return not months
    got = next(text for text, match in found if match[2] not in (".", None))
    expected = "dates that show which number is the month"
    raise InvalidInput(argument, expected, repr(got), ORDER_HINT)


def _seconds(value: Any, day_first: bool) -> float | None:
    if isinstance(value, str):
        value = _moment(value.strip(), day_first)
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime) or value != value:  # NaT is a datetime
        return None
    return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()


def _moment(text: str, day_first: bool) -> datetime | None:
    """Return the time of a text; without a zone if the text has none."""
    match = YEAR_FIRST.fullmatch(text)
    if match is not None:
        year, month, day = int(match[1]), int(match[3]), int(match[4])
    else:
        match = YEAR_LAST.fullmatch(text)
        if match is None:
            return None
        day, month = int(match[1]), int(match[3] or match[5])
        day, month = (day, month) if day_first else (month, day)
        year = int(match[4]) if match[4] else CENTURY + int(match[6])
    hour, minute, second, fraction, half, zone = match.groups()[-6:]
    hours = int(hour or 0)
    if half is not None:
        hours = hours % 12 + (12 if half.upper() == "PM" else 0)
    try:
        clock = hours, int(minute or 0), int(second or 0)
        micro = int((fraction or "0").ljust(6, "0")[:6])
        return datetime(year, month, day, *clock, micro, tzinfo=_zone(zone))
    except (ValueError, OverflowError):  # the calendar has no such day
        return None


def moment_of(text: str) -> datetime | None:
    """Return the time that a text names, without a zone if it has none; None if it names none.

    03/04/2026 names no time: it does not show which number is the month.

    Examples
    --------
    >>> moment_of("18.11.2026") == moment_of("2026-11-18") == datetime(2026, 11, 18)
    True
    >>> moment_of("18.11.2026 08:00"), moment_of("03/04/2026"), moment_of("Monday")
    (datetime.datetime(2026, 11, 18, 8, 0), None, None)
    """
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    with suppress(InvalidInput):
        return _moment(text.strip(), _is_day_first("", [text]))
    return None


@lru_cache(RECENT)
def day_name(text: str) -> str:
    """Return a text that is a date as 2026-11-18, and any other text as it is.

    A date has four digits of its year here: 1.2.26 may be the number of a version.

    Examples
    --------
    >>> [day_name(text) for text in ("18.11.2026", "2026/11/18", "Monday", "31.2.2026", "1.2.26")]
    ['2026-11-18', '2026-11-18', 'Monday', '31.2.2026', '1.2.26']
    """
    if DAY.fullmatch(text.strip()) is None:
        return text
    when = moment_of(text.strip())
    return text if when is None else when.date().isoformat()


@lru_cache(RECENT)
def day_names(text: str) -> tuple[str, ...]:
    """Return the name of a day, then its other spellings, which older keys may have.

    Examples
    --------
    >>> day_names("2026-11-08"), day_names("Monday")
    (('2026-11-08', '08.11.2026', '8.11.2026'), ('Monday',))
    """
    name = day_name(text)
    found = [name]
    if DAY.fullmatch(name) is not None and (when := moment_of(name)) is not None:
        found += [f"{when:%d.%m.%Y}", f"{when.day}.{when.month}.{when.year}"]
    return (*dict.fromkeys([*found, text]),)


def _zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text.upper() in ("Z", "UTC"):
        return UTC
    minutes = 60 * int(text[1:3]) + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
