"""Excel files that are read: the first sheet as CSV text, within limits on all that it contains.

A part of the file is unpacked and parsed in pieces. What it contains is counted on the way, and
nothing is kept of a cell beyond its text, so that no file needs more memory than its limits allow.
"""

from __future__ import annotations

import csv
import io
import math
import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import NamedTuple
from xml.parsers import expat

from multiplay._support import deadline
from multiplay._support.xlsx import LONGEST_TEXT, MAIN, MOST_COLUMNS, MOST_ROWS, PACKAGE, RELATIONS
from multiplay.errors import InvalidInput

PIECE = 2**16  # bytes that are unpacked at once
LONGEST_TAG = 2**17  # bytes: expat reads a tag again with each piece, until it is complete
DEEPEST = 50  # nested elements; expat keeps all that are open
MOST_NAMES = 5_000  # of elements, attributes and namespaces: expat keeps every different one
ELEMENTS = 4  # of a cell: itself, its formula, its value, and one for rows and all others
MOST_LISTED = 70_000  # styles of cells (Excel has 65,490), sheets, and links between parts
STRICT = "http://purl.oclc.org/ooxml/"  # of workbooks saved as "Strict Open XML"
SPACES = (MAIN, f"{STRICT}spreadsheetml/main", f"{PACKAGE}/relationships")
SHEET_LINK = (f"{RELATIONS} id", f"{STRICT}officeDocument/relationships id")
PLACE = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,6})")
WHOLE, NUMBER = re.compile(r"-?[0-9]{1,18}"), re.compile(r"[-+0-9.eE]{1,400}")
NUMERIC, YES = "n", ("1", "true")

# Formats of numbers that are dates or durations; a code may have quoted and escaped characters
DATE, DURATION = "date", "duration"
DATE_FORMATS = {*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)}
ELAPSED = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
NO_CODE = re.compile(r'"[^"]*"|[\\_*].|\[[^\]]*\]')
DATE_PARTS = re.compile(r"[dmyhs]", re.IGNORECASE)
FIRST_DAYS = {False: datetime(1899, 12, 30), True: datetime(1904, 1, 1)}  # by date1904
NO_LEAP_DAY = 60  # of 1900, which Excel has and the calendar has not
LAST_DAY = 2_958_466  # the first day of the year 10000

SMALLER = "Delete what is not needed, or save the sheet as CSV."
AGAIN = "Save it again as .xlsx, or as CSV."
DAMAGE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    expat.ExpatError,
    EOFError,
    LookupError,  # of encodings
    OSError,
    OverflowError,
    RuntimeError,  # encrypted, or compressed by a method that zipfile does not have
    ValueError,
)


class TableLimits(NamedTuple):
    """Limits of a table in a file.

    Attributes
    ----------
    unpacked : int
        Bytes of the parts of an Excel file that are read.
    rows, cells : int
        Rows, and cells of the rectangle that they span.
    characters : int
        Characters of all cells of an Excel file.
    columns : int
        Columns.
    """

    unpacked: int = 2**30
    rows: int = 10**9
    cells: int = 20_000_000
    characters: int = 2**28
    columns: int = MOST_COLUMNS


OWN_FILES = TableLimits()  # of a user of Python or of the command line


def sheet_text(data: bytes, argument: str = "table", limits: TableLimits = OWN_FILES) -> str:
    """Return the first sheet of an Excel file as CSV text: commas, decimal points, ISO dates.

    Formulas have the values that the spreadsheet has stored, errors such as #N/A are empty.
    Raises ``InvalidInput`` for a file that is damaged, or larger than the limits.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            return _Package(file, limits).text()
    except InvalidInput as error:
        raise InvalidInput(argument, error.expected, error.got, error.hint) from None
    except DAMAGE as error:
        got = " ".join(f"a damaged file ({error})".split())[:120]
        raise InvalidInput(argument, "an Excel file", got, AGAIN) from None


def _refused(expected: str, got: str, hint: str = AGAIN) -> InvalidInput:
    return InvalidInput("table", expected, got, hint)


def _wrong(got: str) -> InvalidInput:
    """Return the error of a file that Excel has not written."""
    return _refused("an Excel file", got)


def _check(amount: int, most: int, unit: str) -> None:
    """Raise ``InvalidInput`` for more than is allowed of something."""
    if amount > most:
        raise _refused(f"at most {most:,} {unit}", f"{amount:,} or more", SMALLER)


# ---------------------------------------------------------------- the package


class _Package:
    """The parts of an Excel file; only those that the first sheet needs are read, each once."""

    def __init__(self, file: zipfile.ZipFile, limits: TableLimits) -> None:
        self._file, self._limits = file, limits
        self._parts = {part.filename.lower(): part for part in file.infolist()}
        self._unpacked = 0

    def text(self) -> str:
        """Return the first sheet as CSV text."""
        book = _target(self._links("").values(), "officeDocument")
        contents, links = _Book(), self._links(book)
        self._read(book, contents)
        first = _target((links[id] for id in contents.sheets if id in links), "worksheet")
        strings, styles = _Strings(self._limits), _Styles()
        for kind, part in (("sharedStrings", strings), ("styles", styles)):
            if any(one == kind for one, _ in links.values()):
                self._read(_target(links.values(), kind), part)
        sheet = _Sheet(strings.texts, styles.kinds, contents.is_1904, self._limits)
        self._read(first, sheet)
        return sheet.text()

    def _links(self, part: str) -> dict[str, tuple[str, str]]:
        """Return the kinds and targets of the links of a part, by their ids."""
        folder, name = posixpath.split(part)
        found = _Links()
        self._read(posixpath.join(folder, "_rels", f"{name}.rels"), found)
        return {
            id: (kind, posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/"))
            for id, (kind, target) in found.links.items()
        }

    def _read(self, name: str, reader: _Part) -> None:
        """Parse a part in pieces; refuse declarations of types, from which entities come."""
        info = self._parts.get(name.lower())
        if info is None:
            raise _wrong(f"one without the part {name[:60]!r}")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _wrong("one that is packed by a method other than deflate")
        names: dict[str, str] = {}
        parser = expat.ParserCreate(None, " ", names)
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
        parser.CharacterDataHandler = reader.data
        parser.StartDoctypeDeclHandler = _refuse_types
        parser.StartNamespaceDeclHandler = _ignore  # so that their names are counted
        size = 0
        with self._file.open(info) as packed:
            while not reader.is_complete and (piece := packed.read(PIECE)):
                size += len(piece)
                self._unpacked += len(piece)
                _check(self._unpacked, self._limits.unpacked, "bytes after unpacking")
                deadline.check("table")
                parser.Parse(piece, False)
                _check(
                    size - max(parser.CurrentByteIndex, 0), LONGEST_TAG + PIECE, "bytes in a tag"
                )
                _check(len(names), MOST_NAMES, "different names of XML elements")
                _check(reader.elements, ELEMENTS * self._limits.cells, "XML elements")
        if not reader.is_complete:
            parser.Parse(b"", True)


def _target(links: Iterable[tuple[str, str]], kind: str) -> str:
    """Return the target of the first link of a kind."""
    for one, target in links:
        if one == kind:
            return target
    raise _wrong(f"a file without {kind!r}")


def _refuse_types(*_: object) -> None:
    raise _wrong("one with XML entities or a DOCTYPE")


def _ignore(*_: object) -> None:
    """Do nothing."""


# ---------------------------------------------------------------- parts


Attributes = dict[str, str]


class _Part:
    """Reader of an XML part.

    Parameters
    ----------
    opened, closed
        What to call where an element of a name begins and ends.

    Attributes
    ----------
    is_complete : bool
        Whether the rest of the part is not needed.
    elements : int
        The number of elements so far.
    """

    def __init__(
        self,
        opened: Mapping[str, Callable[[Attributes], None]],
        closed: Mapping[str, Callable[[], None]],
    ) -> None:
        self._opened = {f"{space} {tag}": opened[tag] for space in SPACES for tag in opened}
        self._closed = {f"{space} {tag}": closed[tag] for space in SPACES for tag in closed}
        self.is_complete, self.elements, self._depth = False, 0, 0

    def start(self, name: str, attributes: Attributes) -> None:
        """Begin an element."""
        self.elements += 1
        self._depth += 1
        if self._depth > DEEPEST:
            raise _wrong(f"one with more than {DEEPEST} nested XML elements")
        act = self._opened.get(name)
        if act is not None and not self.is_complete:
            act(attributes)

    def end(self, name: str) -> None:
        """End an element."""
        self._depth -= 1
        act = self._closed.get(name)
        if act is not None and not self.is_complete:
            act()

    def data(self, text: str) -> None:
        """Read text between elements."""


class _Links(_Part):
    """Links of a part to others of the same file: kind and target by id."""

    def __init__(self) -> None:
        super().__init__({"Relationship": self._add}, {})
        self.links: dict[str, tuple[str, str]] = {}

    def _add(self, attributes: Attributes) -> None:
        if attributes.get("TargetMode") != "External":
            kind = attributes.get("Type", "").rpartition("/")[2]
            self.links[attributes.get("Id", "")] = (kind, attributes.get("Target", ""))
            _check(len(self.links), MOST_LISTED, "links between parts")


class _Book(_Part):
    """The workbook: the links of its sheets, and the first day of its calendar."""

    def __init__(self) -> None:
        super().__init__({"sheet": self._add, "workbookPr": self._set_calendar}, {})
        self.sheets, self.is_1904 = list[str](), False

    def _add(self, attributes: Attributes) -> None:
        self.sheets += [attributes[link] for link in SHEET_LINK if link in attributes]
        _check(len(self.sheets), MOST_LISTED, "sheets")

    def _set_calendar(self, attributes: Attributes) -> None:
        self.is_1904 = attributes.get("date1904") in YES


class _Styles(_Part):
    """Styles of cells: for each, whether its numbers are dates or durations."""

    def __init__(self) -> None:
        opened = {"numFmt": self._add_format, "cellXfs": self._begin, "xf": self._add_style}
        super().__init__(opened, {"cellXfs": self._end})
        self.kinds = list[str | None]()
        self._kind_of: dict[str, str | None] = {str(id): DATE for id in DATE_FORMATS}
        self._kind_of["46"] = DURATION
        self._in_cells = False

    def _add_format(self, attributes: Attributes) -> None:
        self._kind_of[attributes.get("numFmtId", "")] = _kind(attributes.get("formatCode", ""))
        _check(len(self._kind_of), MOST_LISTED, "formats of numbers")

    def _begin(self, _: Attributes) -> None:
        self._in_cells = True

    def _end(self) -> None:
        self._in_cells = False

    def _add_style(self, attributes: Attributes) -> None:
        if self._in_cells:
            self.kinds.append(self._kind_of.get(attributes.get("numFmtId", "")))
            _check(len(self.kinds), MOST_LISTED, "styles of cells")


def _kind(code: str) -> str | None:
    """Return whether a format of numbers shows dates or durations.

    Examples
    --------
    >>> _kind("yyyy-mm-dd"), _kind("[h]:mm"), _kind('0.00 "days"'), _kind("[Red]#,##0")
    ('date', 'duration', None, None)
    """
    first = code.partition(";")[0]
    if ELAPSED.search(first):
        return DURATION
    return DATE if DATE_PARTS.search(NO_CODE.sub("", first)) else None


class _Texts(_Part):
    """Strings of one or several parts ``t``; ``rPh`` has their pronunciation, which is not read."""

    def __init__(
        self,
        opened: Mapping[str, Callable[[Attributes], None]],
        closed: Mapping[str, Callable[[], None]],
        limits: TableLimits,
    ) -> None:
        own = {"t": self._listen, "rPh": self._begin_phonetic}
        super().__init__(
            {**own, **opened}, {"t": self._ignore, "rPh": self._end_phonetic, **closed}
        )
        self._limits, self._characters = limits, 0
        self._parts, self._length = list[str](), 0
        self._is_heard = self._is_phonetic = False

    def data(self, text: str) -> None:
        """Keep the text of an element that is open."""
        if self._is_heard:
            self._length += len(text)
            _check(self._length, LONGEST_TEXT, "characters in a cell")
            self._parts.append(text)

    def _listen(self, _: Attributes) -> None:
        self._is_heard = not self._is_phonetic

    def _ignore(self) -> None:
        self._is_heard = False

    def _begin_phonetic(self, _: Attributes) -> None:
        self._is_phonetic = True

    def _end_phonetic(self) -> None:
        self._is_phonetic = False

    def _string(self) -> str:
        """Return the string since the last call."""
        text = "".join(self._parts)
        self._parts, self._length = [], 0
        return text

    def _count(self, text: str) -> None:
        self._characters += len(text)
        _check(self._characters, self._limits.characters, "characters in all cells")


class _Strings(_Texts):
    """Strings that cells share."""

    def __init__(self, limits: TableLimits) -> None:
        super().__init__({}, {"si": self._add}, limits)
        self.texts = list[str]()

    def _add(self) -> None:
        text = self._string()
        self._count(text)
        self.texts.append(text)
        _check(len(self.texts), self._limits.cells, "different texts")


class _Sheet(_Texts):
    """The rows of a sheet, written as CSV; cells may be missing, but rows are in order."""

    def __init__(
        self,
        strings: Sequence[str],
        kinds: Sequence[str | None],
        is_1904: bool,
        limits: TableLimits,
    ) -> None:
        opened = {"row": self._begin_row, "c": self._begin_cell, "v": self._listen}
        closed = {"row": self._end_row, "c": self._end_cell, "v": self._ignore}
        super().__init__(opened, {**closed, "sheetData": self._end}, limits)
        self._strings, self._kinds, self._is_1904 = strings, kinds, is_1904
        self._file = io.StringIO(newline="")
        self._writer = csv.writer(self._file)
        self._header = list[str]()
        self._rows = self._row = self._columns = self._column = 0
        self._cells: dict[int, str] = {}
        self._type, self._style = NUMERIC, ""

    def text(self) -> str:
        """Return all rows; the first has a cell for every column."""
        if not self._rows:
            raise _refused("a sheet with rows", "none", "Move the table to the first sheet.")
        head = io.StringIO(newline="")
        csv.writer(head).writerow(self._header + [""] * (self._columns - len(self._header)))
        return head.getvalue() + self._file.getvalue()

    def _end(self) -> None:
        self.is_complete = True

    def _begin_row(self, attributes: Attributes) -> None:
        given = attributes.get("r")
        self._enter(self._row + 1 if given is None else _number(given, MOST_ROWS))

    def _enter(self, row: int) -> None:
        """Begin a row by its number."""
        if row <= self._rows:
            raise _wrong(f"row {row:,} after row {self._rows:,}")
        self._row, self._column = row, 0
        self._cells.clear()

    def _begin_cell(self, attributes: Attributes) -> None:
        self._type, self._style = attributes.get("t", NUMERIC), attributes.get("s", "")
        if self._parts:
            self._string()
        place = attributes.get("r")
        if place is None:
            self._column += 1
            return
        found = PLACE.fullmatch(place)
        if found is None:
            raise _wrong(f"a cell at {place[:20]!r}")
        letters, digits = found.groups()
        row = int(digits)
        if row != self._row:
            if self._cells:
                raise _wrong(f"the cell {place} in row {self._row:,}")
            self._enter(_number(digits, MOST_ROWS))  # rows may have no numbers
        self._column = column_number(letters)

    def _end_cell(self) -> None:
        if self._parts:
            text = self._cell(self._string())
            self._count(text)
            if text:
                self._cells[self._column] = text

    def _end_row(self) -> None:
        """Write a row that has cells, after empty rows before it."""
        if not self._cells:
            return
        width = max(self._cells)
        columns = max(self._columns, width)
        _check(columns, self._limits.columns, "columns")
        _check(self._row, self._limits.rows, "rows")
        if self._row * columns > self._limits.cells:
            expected = f"a sheet of at most {self._limits.cells:,} cells"
            got = f"{self._row:,} rows and {columns:,} columns"
            raise _refused(expected, got, "Delete cells far from the table.")
        self._columns = columns
        cells = [self._cells.get(place, "") for place in range(1, width + 1)]
        if self._row == 1:
            self._header = cells
        else:
            self._file.write("\r\n" * (self._row - 1 - max(self._rows, 1)))
            self._writer.writerow(cells)
        self._rows = self._row
        self._cells.clear()

    def _cell(self, value: str) -> str:
        """Return the text of a cell by its type."""
        match self._type:
            case "n":
                return self._written(value.strip())
            case "s":
                return self._strings[_number(value, len(self._strings) - 1, 0)]
            case "str" | "inlineStr":
                return value
            case "b":
                return str(value.strip() in YES)
            case "d":
                return value.replace("T", " ").removesuffix(" 00:00:00")
            case _:  # errors such as #N/A
                return ""

    def _written(self, text: str) -> str:
        """Return a number as text: a date, a duration, an integer or a decimal number."""
        if not text:
            return ""
        kind = self._kinds[int(self._style)] if self._style and self._kinds else None
        if kind is None and WHOLE.fullmatch(text):
            return str(int(text))
        value = float(text) if NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(value):
            raise _wrong(f"a cell that is no number: {text[:40]!r}")
        if kind is not None and 0 <= value < LAST_DAY - (1462 if self._is_1904 else 0):
            return _date_text(value, self._is_1904) if kind == DATE else _duration_text(value)
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _number(text: str, most: int, least: int = 1) -> int:
    """Return a whole number within limits."""
    number = int(text) if WHOLE.fullmatch(text) else least - 1
    if not least <= number <= most:
        raise _wrong(f"the number {text[:20]!r} of a row or a text")
    return number


@cache
def column_number(letters: str) -> int:
    """Return the number of a column.

    Examples
    --------
    >>> column_number("A"), column_number("AA"), column_number("XFD")
    (1, 27, 16384)
    """
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def _date_text(days: float, is_1904: bool) -> str:
    """Return a date or a time of day, as Excel counts it.

    Examples
    --------
    >>> _date_text(46342, False), _date_text(46342.5, False), _date_text(0.25, False)
    ('2026-11-16', '2026-11-16 12:00:00', '06:00:00')
    """
    whole, part = divmod(days, 1)
    time = timedelta(milliseconds=round(part * 86_400_000))
    if whole == 0 and time.days == 0:
        return str((FIRST_DAYS[is_1904] + time).time())
    if 0 < days < NO_LEAP_DAY and not is_1904:
        whole += 1
    return str(FIRST_DAYS[is_1904] + timedelta(days=whole) + time).removesuffix(" 00:00:00")


def _duration_text(days: float) -> str:
    """Return a duration in hours, minutes and seconds.

    Examples
    --------
    >>> _duration_text(1.0625)
    '25:30:00'
    """
    minutes, seconds = divmod(round(days * 86_400), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
