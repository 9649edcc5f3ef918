"""Strict reader of MPS files: each section once, in order, and every name and number checked.

It reads nothing but the standard: what it does not know, it refuses with the number of the line.
"""

from __future__ import annotations

import gzip
import math
import re
from collections.abc import Callable, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from multiplay._support.suggestions import suggestion
from multiplay.actions.importers.selection import INFINITE, ImportedModel
from multiplay.errors import InvalidInput

SECTIONS = ("NAME", "OBJSENSE", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA")
REQUIRED = ("ROWS", "COLUMNS", "ENDATA")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eEdD][+-]?[0-9]+)?")
INFINITY = re.compile(r"([+-]?)inf(inity)?", re.IGNORECASE)
SENSES = {"MIN": "min", "MINIMIZE": "min", "MAX": "max", "MAXIMIZE": "max"}
PULP_MAXIMIZE = "*SENSE:Maximize"  # PuLP writes the sense as this comment, not as OBJSENSE
MARKERS = ("'INTORG'", "'INTEND'")
WITH_VALUE, WITHOUT_VALUE = ("UP", "LO", "FX", "LI", "UI"), ("FR", "MI", "PL", "BV")
LARGEST_FILE = 200_000_000  # bytes


def read_file(path: str | PathLike[str]) -> ImportedModel:
    """Read a local file: .mps or .mps.gz; .lp if highspy is installed."""
    place = Path(fspath(path))
    if place.suffix == ".lp":
        return _lp_file(place)
    try:
        if place.suffix == ".gz":
            with gzip.open(place) as packed:
                data = packed.read(LARGEST_FILE + 1)
        else:
            with place.open("rb") as plain:
                data = plain.read(LARGEST_FILE + 1)
        text = data.decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        hint = "Check the path, and write the file as text in UTF-8."
        raise InvalidInput("thing", "an MPS file", f"{place.name} ({error})", hint) from None
    if len(data) > LARGEST_FILE:
        expected = f"a file of at most {LARGEST_FILE // 10**6} MB"
        raise InvalidInput("thing", expected, place.name, "Use a smaller model.")
    return read_text(text)


def read_text(text: str) -> ImportedModel:
    """Read the text of an MPS file.

    Examples
    --------
    >>> model = read_text('''NAME
    ... ROWS
    ...  N cost
    ...  G demand
    ... COLUMNS
    ...     MARKER 'MARKER' 'INTORG'
    ...     x cost 1.5 demand 1
    ...     MARKER 'MARKER' 'INTEND'
    ... RHS
    ...     RHS demand 3
    ... BOUNDS
    ...  UP BND x 4
    ... ENDATA''')
    >>> model.names, model.low, model.upper, model.integer
    (['x'], [3.0], [4.0], [True])
    """
    return _Reader(text).model()


def _lp_file(place: Path) -> ImportedModel:
    hint = "Write the model as an .mps file."
    try:
        import highspy
    except ImportError:
        expected = "an .mps file, or highspy to read .lp files"
        raise InvalidInput("thing", expected, place.name, hint) from None
    from multiplay.actions.importers.libraries import from_highspy

    model: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    model.setOptionValue("output_flag", False)
    if model.readModel(str(place)) != highspy.HighsStatus.kOk:
        raise InvalidInput("thing", "a file that HiGHS can read", place.name, hint)
    return from_highspy(model)


class _Reader:
    """The state of reading one file, line by line."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.number, self.section = 0, ""
        self.sense, self.objective, self.constant = "min", "", 0.0
        self.kind: dict[str, str] = {}  # of each row
        self.right: dict[str, float] = {}
        self.range: dict[str, float] = {}
        self.column: dict[str, int] = {}  # the place of each column
        self.integer: list[bool] = []
        self.entries: dict[tuple[str, int], float] = {}
        self.lower: dict[int, float] = {}
        self.upper: dict[int, float] = {}
        self.bounds_given: set[tuple[int, str]] = set()
        self.within_marker = False
        self.vectors: dict[str, str] = {}  # the name of the vector of RHS, RANGES and BOUNDS

    def model(self) -> ImportedModel:
        """Read all lines, and return the model."""
        read: dict[str, Callable[[list[str]], None]] = {
            "NAME": self._name,
            "OBJSENSE": self._objsense,
            "ROWS": self._rows,
            "COLUMNS": self._columns,
            "RHS": self._rhs,
            "RANGES": self._ranges,
            "BOUNDS": self._bounds,
        }
        for words in self._words():
            read[self.section](words)
        if self.section != "ENDATA":
            raise self._error("ENDATA at the end", "the end of the file")
        return self._result()

    def _words(self) -> Iterator[list[str]]:
        """Yield the words of each line of data, after its section was set."""
        order = -1
        for number, line in enumerate(self.lines, start=1):
            self.number = number
            if line.startswith("*") or not line.strip():
                if not self.section and line.rstrip() == PULP_MAXIMIZE:
                    self.sense = "max"
                continue
            if self.section == "ENDATA":
                raise self._error("nothing after ENDATA", line)
            words = line.split()
            if line[0] in " \t":
                if not self.section:
                    raise self._error("a section such as NAME or ROWS", line)
                yield words
                continue
            if words[0] not in SECTIONS:
                hint = suggestion(words[0], SECTIONS)
                raise self._error(f"one of {', '.join(SECTIONS)}", words[0] + hint)
            place = SECTIONS.index(words[0])
            if place <= order:
                raise self._error("each section once and in order", words[0])
            missing = [name for name in SECTIONS[order + 1 : place] if name in REQUIRED]
            if missing:
                raise self._error(f"{missing[0]} first", words[0])
            if self.section == "COLUMNS" and self.within_marker:
                raise self._error("INTEND before the end of COLUMNS", words[0])
            order, self.section = place, words[0]
            if words[0] == "OBJSENSE" and len(words) == 2:
                self._objsense(words[1:])
            elif len(words) > 1 and words[0] != "NAME":
                raise self._error("the name of a section alone", line)

    def _name(self, words: list[str]) -> None:
        raise self._error("a section after NAME", " ".join(words))

    def _objsense(self, words: list[str]) -> None:
        if len(words) != 1 or words[0].upper() not in SENSES:
            raise self._error("MIN or MAX", " ".join(words))
        self.sense = SENSES[words[0].upper()]

    def _rows(self, words: list[str]) -> None:
        if len(words) != 2 or words[0] not in ("N", "L", "G", "E"):
            raise self._error("N, L, G or E and the name of a row", " ".join(words))
        kind, name = words
        if name in self.kind:
            raise self._error("each row once", name)
        self.kind[name] = kind
        if kind == "N" and not self.objective:
            self.objective = name

    def _columns(self, words: list[str]) -> None:
        if "'MARKER'" in words:
            self._marker(words)
            return
        name = words[0]
        if name not in self.column:
            self.column[name] = len(self.column)
            self.integer.append(self.within_marker)
        elif self.column[name] != len(self.column) - 1:
            raise self._error("the entries of a column together", name)
        for row, value in self._pairs(words[1:]):
            key = row, self.column[name]
            if key in self.entries:
                raise self._error("each entry once", f"row {row} of column {name} twice")
            self.entries[key] = value

    def _marker(self, words: list[str]) -> None:
        begins = words[-1] == "'INTORG'"
        known = len(words) == 3 and words[1] == "'MARKER'" and words[2] in MARKERS
        if not known or begins == self.within_marker:
            raise self._error("INTORG and INTEND in turn", " ".join(words))
        self.within_marker = begins

    def _rhs(self, words: list[str]) -> None:
        for row, value in self._pairs(self._of_vector(words)):
            if row in self.right:
                raise self._error("each right-hand side once", row)
            self.right[row] = value

    def _ranges(self, words: list[str]) -> None:
        for row, value in self._pairs(self._of_vector(words)):
            if row in self.range or self.kind[row] == "N":
                raise self._error("one range for a row with limits", row)
            self.range[row] = value

    def _bounds(self, words: list[str]) -> None:
        kind, rest = words[0], words[1:]
        if kind not in WITH_VALUE + WITHOUT_VALUE:
            expected = f"one of {', '.join(WITH_VALUE + WITHOUT_VALUE)}"
            raise self._error(expected, " ".join(words))
        size = 2 if kind in WITH_VALUE else 1
        if len(rest) == size + 1:
            self._same_vector(rest[0])
            rest = rest[1:]
        if len(rest) != size:
            raise self._error("a bound with its column and value", " ".join(words))
        if rest[0] not in self.column:
            raise self._error("a column that is known", rest[0])
        place = self.column[rest[0]]
        value = self._number(rest[1], infinite=True) if kind in WITH_VALUE else 0.0
        if kind in ("LI", "UI"):
            self.integer[place] = True
        if kind == "BV":
            self.integer[place] = True
            self._bound(place, "LO", 0.0)
            self._bound(place, "UP", 1.0)
        if kind in ("LO", "LI", "FX"):
            self._bound(place, "LO", value)
        if kind in ("UP", "UI", "FX"):
            self._bound(place, "UP", value)
        if kind in ("FR", "MI"):
            self._bound(place, "LO", -math.inf)
        if kind in ("FR", "PL"):
            self._bound(place, "UP", math.inf)

    def _bound(self, place: int, side: str, value: float) -> None:
        if (place, side) in self.bounds_given:
            raise self._error("each bound of a column once", side)
        self.bounds_given.add((place, side))
        (self.lower if side == "LO" else self.upper)[place] = value

    def _of_vector(self, words: list[str]) -> list[str]:
        """Return the pairs of a line without the name of their vector."""
        if len(words) % 2 == 0:
            return words
        self._same_vector(words[0])
        return words[1:]

    def _same_vector(self, name: str) -> None:
        if self.vectors.setdefault(self.section, name) != name:
            raise self._error(f"one vector in {self.section}", name)

    def _pairs(self, words: list[str]) -> Iterator[tuple[str, float]]:
        if len(words) not in (2, 4):
            raise self._error("one or two pairs of a row and a number", " ".join(words))
        for row, value in zip(words[::2], words[1::2], strict=True):
            if row not in self.kind:
                raise self._error("a row that is known", row)
            yield row, self._number(value)

    def _number(self, text: str, infinite: bool = False) -> float:
        """Return a number that the solver does not read as infinite, unless it may be."""
        if infinite and INFINITY.fullmatch(text):
            return -math.inf if text.startswith("-") else math.inf
        if NUMBER.fullmatch(text):
            value = float(text.replace("d", "e").replace("D", "e"))
            if abs(value) < INFINITE or (infinite and math.isfinite(value)):
                return value
        raise self._error("a finite number" + ("" if infinite else " below 1e20"), text)

    def _error(self, expected: str, got: str) -> InvalidInput:
        where = f"line {self.number}"
        return InvalidInput(where, expected, repr(got)[:80], "Correct the MPS file.")

    def _result(self) -> ImportedModel:
        if not self.column:
            raise self._error("at least one column", "none")
        rows = [name for name, kind in self.kind.items() if kind != "N"]
        place = {name: number for number, name in enumerate(rows)}
        low, high = list[float | None](), list[float | None]()
        for name in rows:
            kind, right, size = self.kind[name], self.right.get(name, 0.0), self.range.get(name)
            least, most = (None if kind == "L" else right), (None if kind == "G" else right)
            if size is not None:
                if kind == "L" or (kind == "E" and size < 0):
                    least = right - abs(size)
                else:
                    most = right + abs(size)
            low.append(least)
            high.append(most)
        cost = [0.0] * len(self.column)
        entries = list[tuple[int, int, float]]()
        for (row, column), value in self.entries.items():
            if row == self.objective:
                cost[column] = value
            elif row in place:
                entries.append((place[row], column, value))
        lower, upper = [0.0] * len(cost), [math.inf] * len(cost)
        unbounded = frozenset(
            column
            for column, whole in enumerate(self.integer)
            if whole and column not in self.lower and column not in self.upper
        )
        for column in range(len(cost)):
            upper[column] = self.upper.get(column, 1.0 if column in unbounded else math.inf)
            lower[column] = self.lower.get(column, 0.0)
            if column not in self.lower and upper[column] < 0:
                name = list(self.column)[column]
                raise self._error("a lower bound of a column with a negative upper one", name)
        return ImportedModel(
            list(self.column),
            lower,
            upper,
            self.integer,
            cost,
            low,
            high,
            entries,
            self.sense,
            -self.right.get(self.objective, 0.0),
            doubtful=unbounded,
            rows=rows,
        )
