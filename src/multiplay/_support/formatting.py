"""Numbers, times, plans and tables as text, for screens and pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

ROUNDING = 1e-9
UNKNOWN = "-"
TIMES = "\u00d7"
LONGEST = 24  # characters of a name in a plan
TIME_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
FEWEST_OF_A_UNIT = 2  # a time is shown in the first unit of which it has so many
VOWELS = set("aeiouyäöü")
IRREGULAR = {
    "child": "children",
    "foot": "feet",
    "half": "halves",
    "man": "men",
    "person": "people",
    "shelf": "shelves",
    "woman": "women",
}
SHARES = (0.5, 1.0, 0.0)  # of an abbreviated name: the part before the ellipsis


class Table(NamedTuple):
    """A table as text; the first ``labels`` columns are aligned left, the others right.

    A page shows a ``folded`` table closed. ``ruled`` are the rows, from 0, with a line below them.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""
    labels: int = 1
    folded: bool = False
    ruled: tuple[int, ...] = ()

    def without(self, *columns: str) -> Table:
        """Return the same table without some columns.

        Examples
        --------
        >>> Table("", ["arm", "seen", "mean"], [["a", "3", "0.5"]]).without("seen").rows
        [['a', '0.5']]
        """
        kept = [place for place, name in enumerate(self.columns) if name not in columns]
        return self._replace(
            columns=[self.columns[place] for place in kept],
            rows=[[row[place] for place in kept] for row in self.rows],
            labels=sum(place < self.labels for place in kept),
        )


def number(value: float) -> str:
    """Return a number with about three significant digits.

    Examples
    --------
    >>> [number(x) for x in (0, 0.01234, 9.876, 1234.56, 3e9)]
    ['0', '0.0123', '9.88', '1234.6', '3e+09']

    Rounding errors are 0:

    >>> number(-1.7e-15)
    '0'
    """
    if abs(value) < ROUNDING:
        return "0"
    if not 10 <= abs(value) < 1e7:
        return f"{value:.3g}"
    return f"{value:.1f}"


def between(low: float, high: float) -> str:
    """Return an interval as text."""
    return f"{number(low)} to {number(high)}" if np.isfinite([low, high]).all() else "none"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless it is 1.

    Examples
    --------
    >>> counted(1, "arm"), counted(3, "entry"), counted(12_000, "truck")
    ('1 arm', '3 entries', '12,000 trucks')
    """
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of an English noun; abbreviations such as "kg" stay as they are.

    Examples
    --------
    >>> [plural(noun) for noun in ("lane", "lorry", "day", "box", "batch", "sales person")]
    ['lanes', 'lorries', 'days', 'boxes', 'batches', 'sales people']
    >>> [plural(noun) for noun in ("case of wine", "kg", "TEU", "m3")]
    ['cases of wine', 'kg', 'TEU', 'm3']
    """
    first, of, rest = noun.partition(" of ")
    if of:
        return plural(first) + of + rest
    before, space, last = noun.rpartition(" ")
    low = last.lower()
    if not last[-1:].isalpha() or not set(low) & VOWELS or last.isupper():
        return noun
    if low in IRREGULAR:
        return before + space + IRREGULAR[low]
    if low.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    return noun[:-1] + "ies" if low.endswith("y") and low[-2:-1] not in VOWELS else noun + "s"


def left_out(count: int, things: str) -> str:
    """Return a note on the things that a table leaves out; nothing if it has all.

    Examples
    --------
    >>> left_out(3, "arms"), left_out(0, "arms")
    ('And 3 more arms.', '')
    """
    return f"And {count} more {things}." if count > 0 else ""


def amount(value: float) -> str:
    """Return a number, or a dash if it is not known."""
    return UNKNOWN if np.isnan(value) else number(value)


def percent(share: float) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> percent(0.5), percent(0.001), percent(0)
    ('50 %', '< 1 %', '0 %')
    """
    return "< 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def minute(when: Any) -> str:
    """Return a time to the minute, or a dash if it is not known (NaT)."""
    return UNKNOWN if when != when else f"{when:%Y-%m-%d %H:%M}"


def time_ago(when: Any, now: datetime) -> str:
    """Return the time that has passed, in one unit, or a dash if ``when`` is not known (NaT).

    Examples
    --------
    >>> from datetime import timedelta
    >>> now = datetime(2026, 11, 15)
    >>> [time_ago(now - timedelta(seconds=s), now) for s in (0.2, 119, 7_300, 400_000, -9)]
    ['0 s ago', '119 s ago', '2 h ago', '4 d ago', 'in 9 s']
    """
    if when is None or when != when:
        return UNKNOWN
    seconds = (now - when).total_seconds()
    size = abs(seconds)
    length, unit = next(
        ((length, unit) for length, unit in TIME_UNITS if size >= FEWEST_OF_A_UNIT * length),
        TIME_UNITS[-1],
    )
    text = f"{int(size / length)} {unit}"
    return f"in {text}" if seconds < 0 else f"{text} ago"


def brief_policy(policy: Any) -> str:
    """Return a policy with the settings that differ from the defaults.

    Examples
    --------
    >>> from multiplay import GenCTS, GenLBINFV
    >>> brief_policy(GenLBINFV()), brief_policy(GenCTS(discount=0.97))
    ('GenLBINFV', 'GenCTS(discount=0.97)')
    """
    if not is_dataclass(policy):
        return type(policy).__name__
    given = ((field, repr(getattr(policy, field.name))) for field in fields(policy) if field.repr)
    chosen = [f"{field.name}={value}" for field, value in given if value != repr(field.default)]
    return type(policy).__name__ + (f"({', '.join(chosen)})" if chosen else "")


def plan_text(units: Mapping[str, int], most: int = 4, arm: str = "arm") -> str:
    """Return the played arms of a plan with their units, as text.

    Examples
    --------
    >>> plan_text({"Lyon->north": 2, "Lyon->south": 0, "Lille->south": 1})
    '2×Lyon->north, 1×Lille->south'
    """
    parts = chosen(units)
    names = abbreviated([legible(arm) for arm in parts], LONGEST)
    played = [f"{n}{TIMES}{name}" for n, name in zip(parts.values(), names, strict=True)]
    if len(played) > most:
        played = [*played[: most - 1], f"and {counted(len(played) - most + 1, f'more {arm}')}"]
    return ", ".join(played) or "nothing"


def chosen(plan: Mapping[str, int]) -> dict[str, int]:
    """Return the arms that a plan plays, with their units."""
    return {name: units for name, units in plan.items() if units}


def legible(text: Any) -> str:
    """Return a text with line ends and control characters replaced.

    Examples
    --------
    >>> print(legible("a" + chr(27) + "[31mb"))
    a�[31mb
    """
    return "".join(char if char.isprintable() else "\ufffd" for char in str(text))


def abbreviated(names: Sequence[str], most: int, width: Callable[[str], int] = len) -> list[str]:
    """Return names of at most this width, without their middles, ends or beginnings.

    The choice among these three is the one that keeps most names different.

    Examples
    --------
    >>> abbreviated(["Lyon, rue de la Part-Dieu -> A", "Lyon, rue de la Part-Dieu -> B"], 16)
    ['Lyon, r…ieu -> A', 'Lyon, r…ieu -> B']
    >>> abbreviated(["customer 1 of the long list", "customer 2 of the long list"], 16)
    ['customer 1 of t…', 'customer 2 of t…']
    """
    ways = [[_cut(name, most, width, share) for name in names] for share in SHARES]
    return max(ways, key=lambda way: len(set(way)))


def _cut(text: str, most: int, width: Callable[[str], int], share: float) -> str:
    """Return a text that fits, with an ellipsis after this share of what is kept."""
    kept, left = text, len(text)
    while width(kept) > most and left > 1:  # some characters are two columns wide
        left -= 1
        first = int(share * left)
        kept = f"{text[:first]}…{text[len(text) - left + first :]}"
    return kept
