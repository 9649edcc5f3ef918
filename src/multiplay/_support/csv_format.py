"""Format of a CSV file: its encoding, separator and decimal mark, found from its first lines."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from multiplay._support.checks import shortened
from multiplay._support.hints import Hint, Term
from multiplay.errors import InvalidInput

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SAMPLE, SAMPLE_SIZE = 200, 2**20  # lines, and characters of them
LONGEST_CELL = csv.field_size_limit()  # characters
ENCODINGS = {  # by the byte order mark; that of UTF-32 begins with that of UTF-16
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
MARKS = {".": "point", ",": "comma"}
WITH_COMMA = re.compile(r"[-+]?\d+,\d+|[-+]?\d{1,3}(\.\d{3})+,\d+")
WITH_POINT = re.compile(r"[-+]?\d*\.\d+(e[-+]?\d+)?|[-+]?\d{1,3}(,\d{3})+\.\d+", re.IGNORECASE)
# 1,234 and 1.234 may be a thousand or a number near 1
AMBIGUOUS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")
AMBIGUOUS_POINT = re.compile(r"[-+]?[1-9]\d{0,2}\.\d{3}")
GROUPS_OF_POINTS = re.compile(r"[-+]?\d{1,3}(\.\d{3})+,\d+")
GROUPS_OF_COMMAS = re.compile(r"[-+]?\d{1,3}(,\d{3})+\.\d+")
MINUS = "\u2212"
CURRENCY = re.compile(r"(?<=\d)\s*(?:[€$£¥]|EUR|USD|GBP|CHF)$|^[€$£¥]\s*(?=\d)")  # of one amount
NUMBERS = {  # sign, whole part, decimals and exponent; spaces and apostrophes also make groups
    mark: re.compile(
        rf"([-+{MINUS}]?)(\d{{1,3}}(?:[{other}\s'\u2019]\d{{3}})+|\d*)(?:{re.escape(mark)}(\d*))?"
        r"(e[-+]?\d+)?",
        re.IGNORECASE,
    )
    for mark, other in ((".", ","), (",", "."))
}


class CsvFormat(NamedTuple):
    r"""The format of a CSV file.

    Attributes
    ----------
    encoding : str
        The encoding of its text.
    separator, decimal : str
        The separator of its columns, and its decimal mark.
    thousands : str or None
        The mark between groups of three digits.

    Examples
    --------
    >>> text, found = decoded("lane;loss\nZürich;12,50\n".encode("cp1252"))
    >>> print(format_of(text, found))
    columns separated by semicolons, decimal comma, encoding cp1252
    """

    encoding: str = "utf-8"
    separator: str = ","
    decimal: str = "."
    thousands: str | None = None

    def __str__(self) -> str:
        parts = [f"columns separated by {SEPARATORS.get(self.separator, repr(self.separator))}"]
        parts += [f"decimal {MARKS.get(self.decimal, self.decimal)}"]
        parts += [f"encoding {self.encoding}"] if self.encoding != "utf-8" else []
        return ", ".join(parts)


def decoded(data: bytes, argument: str = "table") -> tuple[str, str]:
    """Return the text of a file, and its encoding.

    A byte order mark is removed. What is neither UTF-8, UTF-16 nor UTF-32 is read as cp1252, which
    spreadsheets write in Western Europe.
    """
    encoding = next((name for mark, name in ENCODINGS.items() if data.startswith(mark)), "utf-8")
    try:
        text = data.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        if encoding != "utf-8":
            got, hint = f"damaged {encoding} at byte {error.start}", "Save it as CSV in UTF-8."
            raise InvalidInput(argument, "a CSV file", got, hint) from None
        text, encoding = data.decode("cp1252", errors="replace"), "cp1252"
    if "\0" in text:
        hint = "Save the table as CSV in UTF-8, or as .xlsx."
        raise InvalidInput(argument, "a CSV or Excel file", "a binary file", hint)
    return text, encoding


def rows_of(text: str, separator: str, argument: str = "table") -> Iterator[list[str]]:
    """Yield the rows of a CSV text; lines may end with CR, LF or both."""
    try:
        spaces = separator != " "
        lines = io.StringIO(text, newline="")
        yield from csv.reader(lines, delimiter=separator, skipinitialspace=spaces)
    except csv.Error:
        expected = f"cells of at most {LONGEST_CELL:,} characters"
        hint = "Check the separator, and that every quote is closed."
        raise InvalidInput(argument, expected, "a longer one", hint) from None


def format_of(
    text: str, encoding: str = "utf-8", separator: str | None = None, decimal: str | None = None
) -> CsvFormat:
    """Return the format of a text; what is given is not looked for."""
    if separator is not None and not (
        isinstance(separator, str) and re.fullmatch(r'[^"\r\n\0]', separator)
    ):
        hint = "Use one character, such as ';'."
        raise InvalidInput("sep", "one character", shortened(repr(separator)), hint)
    if decimal is not None and decimal not in MARKS:
        raise InvalidInput("decimal", "'.' or ','", shortened(repr(decimal)), "Leave it out.")
    sample = _first_lines(text)
    separator = _separator(sample) if separator is None else separator
    if separator == decimal:
        hint = "Use different characters for both."
        raise InvalidInput(
            "decimal", f"a mark other than the separator {separator!r}", decimal, hint
        )
    cells = [_bare(cell) for row in rows_of(sample, separator) for cell in row if cell]
    decimal = _decimal(cells, separator) if decimal is None else decimal
    groups = GROUPS_OF_POINTS if decimal == "," else GROUPS_OF_COMMAS
    grouped = any(groups.fullmatch(cell) for cell in cells)
    other = "." if decimal == "," else ","
    return CsvFormat(
        encoding, separator, decimal, other if grouped and other != separator else None
    )


def decimal_of(texts: Iterable[str], argument: str) -> str:
    """Return the decimal mark of texts that are numbers, if they show it."""
    try:
        return _decimal([_bare(text) for text in texts], ",")
    except InvalidInput as error:
        hint = "Use numbers, or write texts with one decimal mark."
        raise InvalidInput(argument, error.expected, error.got, hint) from None


def number_in(text: str, decimal: str) -> float | None:
    """Return the number that a text is, with groups of three digits or without; else None.

    A currency before or after the number is left out.

    Examples
    --------
    >>> number_in("1.234,50 €", ","), number_in("1 234.5", "."), number_in("12 km", ".")
    (1234.5, 1234.5, None)
    """
    match = NUMBERS[decimal].fullmatch(_bare(text))
    if match is None:
        return None
    sign, whole, rest, exponent = (part or "" for part in match.groups())
    digits = "".join(mark for mark in whole if mark.isdecimal())
    if not digits + rest:
        return None
    return float(f"{sign.replace(MINUS, '-')}{digits}.{rest}{exponent}")


def _first_lines(text: str) -> str:
    """Return the first lines of a text that are not empty, and complete if there are several."""
    kept = (line for line in io.StringIO(text[:SAMPLE_SIZE], newline="") if line.strip())
    lines = [*islice(kept, SAMPLE + 1)]
    is_cut = len(text) > SAMPLE_SIZE and len(lines) > 1
    return "".join(lines[: len(lines) - is_cut][:SAMPLE])


def _separator(sample: str) -> str:
    """Return the separator that makes the most columns, the same number in most lines."""
    best, most = ",", (0, 0)
    for separator in SEPARATORS:
        with suppress(InvalidInput):  # with another separator, a whole line may be one cell
            widths = [len(row) for row in rows_of(sample, separator)]
            agree = sum(width == widths[0] for width in widths)
            if widths and widths[0] > 1 and (agree, widths[0]) > most:
                best, most = separator, (agree, widths[0])
    return best


def _decimal(cells: list[str], separator: str) -> str:
    """Return the decimal mark of the numbers among these cells."""
    commas = [cell for cell in cells if WITH_COMMA.fullmatch(cell)]
    points = [cell for cell in cells if WITH_POINT.fullmatch(cell)]
    if not commas:
        if separator in ";\t" and points and all(map(AMBIGUOUS_POINT.fullmatch, points)):
            raise _ambiguous(points[0])  # where a comma is the decimal mark, 1.234 is a thousand
        return "."
    if points and not all(GROUPS_OF_POINTS.fullmatch(cell) for cell in commas):
        got = f"{commas[0]} and {points[0]}"
        raise InvalidInput(
            "decimal",
            "numbers with one decimal mark",
            got,
            Hint("State {}.", Term("decimal", "decimal")),
        )
    if separator != ";" and all(AMBIGUOUS.fullmatch(cell) for cell in commas):
        raise _ambiguous(commas[0])
    return ","


def _bare(text: str) -> str:
    """Return a text without spaces and a currency around it."""
    return CURRENCY.sub("", text.strip())


def _ambiguous(got: str) -> InvalidInput:
    hint = Hint("State {}.", Term("decimal: ',' or '.'", "decimal"))
    return InvalidInput("decimal", "a decimal mark that can be recognised", got, hint)
