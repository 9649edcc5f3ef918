"""Excel files that are written: sheets row by row, in little memory and without other packages.

openpyxl takes nine times as long. ``sheets`` reads Excel files.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from xml.sax.saxutils import escape, quoteattr

from multiplay.errors import InvalidInput

MOST_ROWS, MOST_COLUMNS, LONGEST_TEXT = 2**20, 2**14, 2**15 - 1  # of Excel
LONGEST_TITLE, NOT_IN_TITLE = 31, re.compile(r"[\[\]:*?/\\]|^'+|'+$")
TEXT, BOLD, WHOLE, AMOUNT, SHARE = "General", "bold", "#,##0", "#,##0.00", "0.0%"
TIME, DAY = "yyyy-mm-dd hh:mm", "yyyy-mm-dd"  # DAY: of texts that may be dates
FORMATS = (TEXT, BOLD, WHOLE, AMOUNT, SHARE, TIME, DAY)
STYLE = {name: place for place, name in enumerate(FORMATS)}
WIDTHS = {TEXT: 10, WHOLE: 10, AMOUNT: 14, SHARE: 9, TIME: 17, DAY: 14}  # characters, at least
WIDEST = 48
FIRST_OWN_FORMAT = 164
FIRST_DAY = datetime(1899, 12, 30, tzinfo=UTC)  # day 0 of Excel
NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
CHUNK = 2**16  # characters that are compressed at once
HINT = "Export the plans as .csv or .parquet."

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"
HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


class Column(NamedTuple):
    """A column of a sheet: its header, the format of its cells, and its width at least."""

    header: str
    format: str = TEXT
    width: int = 0


class Workbook:
    """An Excel file that is written; a context manager.

    Parameters
    ----------
    path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Workbook(Path(folder) / "lanes.xlsx") as book:
    ...         book.write("lanes", [Column("lane"), Column("cost", AMOUNT)], [("=A->B", 12.5)])
    ...     zipfile.is_zipfile(Path(folder) / "lanes.xlsx")
    True
    """

    def __init__(self, path: Path) -> None:
        self._file = zipfile.ZipFile(path, "w")
        self._titles: list[str] = []
        self._filters: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._file:
            if kind is None:
                self._write_parts()

    def write(
        self,
        title: str,
        columns: Sequence[Column],
        rows: Iterable[Sequence[Any]],
        facts: Mapping[str, Any] | None = None,
        fixed: int = 0,
    ) -> None:
        """Write a sheet: some facts, and a table whose header and first columns do not scroll.

        Cells are texts, which are never formulas, numbers, times, True, False, and None.
        """
        if len(columns) > MOST_COLUMNS:
            expected = f"at most {MOST_COLUMNS:,} columns in a sheet"
            raise InvalidInput("path", expected, f"{len(columns):,}", HINT)
        self._titles.append(self._title(title))
        with self._open(f"xl/worksheets/sheet{len(self._titles)}.xml") as file:
            chunk, size = list[str](), 0
            for text in self._sheet(columns, rows, facts or {}, fixed):
                chunk.append(text)
                size += len(text)
                if size > CHUNK:
                    file.write("".join(chunk).encode())
                    chunk, size = [], 0
            file.write("".join(chunk).encode())

    def _sheet(
        self,
        columns: Sequence[Column],
        rows: Iterable[Sequence[Any]],
        facts: Mapping[str, Any],
        fixed: int,
    ) -> Iterator[str]:
        """Yield the parts of a sheet."""
        letters = [letters_of(place) for place in range(len(columns))]
        yield f'{HEAD}<worksheet xmlns="{MAIN}">'
        if not facts:
            corner = f"{letters_of(fixed)}2"
            split, pane = (f'xSplit="{fixed}" ', "Right") if fixed else ("", "Left")
            yield (
                f'<sheetViews><sheetView workbookViewId="0"><pane {split}ySplit="1" '
                f'topLeftCell="{corner}" activePane="bottom{pane}" state="frozen"/>'
                "</sheetView></sheetViews>"
            )
        yield "<cols>"
        for place, column in enumerate(columns, start=1):
            width = max(len(column.header) + 2, column.width, WIDTHS[column.format])
            span = f'min="{place}" max="{place}"'
            yield f'<col {span} width="{min(width, WIDEST)}" customWidth="1"/>'
        yield "</cols><sheetData>"
        first = 1
        for name, value in facts.items():
            style = AMOUNT if isinstance(value, float) else TIME
            yield _row(first, [("A", BOLD, name), ("B", style, value)])
            first += 1
        first += bool(facts)
        yield _row(
            first, [(at, BOLD, one.header) for at, one in zip(letters, columns, strict=True)]
        )
        places, last = [(at, one.format) for at, one in zip(letters, columns, strict=True)], first
        for row in rows:
            last += 1
            if last > MOST_ROWS:
                expected = f"at most {MOST_ROWS:,} rows in a sheet"
                raise InvalidInput("path", expected, "more", HINT)
            yield _row(last, [(*at, value) for at, value in zip(places, row, strict=True)])
        table = f"A{first}:{letters[-1]}{last}"
        yield f'</sheetData><autoFilter ref="{table}"/></worksheet>'
        self._filters.append(f"$A${first}:${letters[-1]}${last}")

    def _title(self, title: str) -> str:
        """Return the title of a sheet as Excel permits it, other than those before."""
        base = title = NOT_IN_TITLE.sub("", _text(title))[:LONGEST_TITLE] or "sheet"
        taken, number = {one.lower() for one in self._titles}, 1
        while title.lower() in taken:
            number += 1
            title = f"{base[: LONGEST_TITLE - 4]} {number}"
        return title

    def _open(self, name: str) -> Any:
        part = zipfile.ZipInfo(name)  # with the same time in every file
        part.compress_type = zipfile.ZIP_DEFLATED
        return self._file.open(part, "w", force_zip64=True)

    def _write_parts(self) -> None:
        """Write all parts that say what the sheets are."""
        numbers = range(1, len(self._titles) + 1)
        sheets, names, links, kinds = "", "", "", ""
        for number, title, table in zip(numbers, self._titles, self._filters, strict=True):
            sheets += f'<sheet name={quoteattr(title)} sheetId="{number}" r:id="rId{number}"/>'
            where = escape("'" + title.replace("'", "''") + "'!" + table)
            names += (
                f'<definedName name="_xlnm._FilterDatabase" localSheetId="{number - 1}" '
                f'hidden="1">{where}</definedName>'
            )
            links += _link(number, "worksheet", f"worksheets/sheet{number}.xml")
            kinds += _kind(f"/xl/worksheets/sheet{number}.xml", "worksheet")
        links += _link(len(self._titles) + 1, "styles", "styles.xml")
        kinds += _kind("/xl/workbook.xml", "sheet.main") + _kind("/xl/styles.xml", "styles")
        parts = {
            "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{sheets}'
            f"</sheets><definedNames>{names}</definedNames></workbook>",
            "xl/_rels/workbook.xml.rels": _links(links),
            "xl/styles.xml": _styles(),
            "_rels/.rels": _links(_link(1, "officeDocument", "xl/workbook.xml")),
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
            '<Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Default Extension="xml" ContentType="application/xml"/>{kinds}</Types>',
        }
        for name, text in parts.items():
            with self._open(name) as file:
                file.write((HEAD + text).encode())


def letters_of(place: int) -> str:
    """Return the letters of a column.

    Examples
    --------
    >>> letters_of(0), letters_of(25), letters_of(26), letters_of(16383)
    ('A', 'Z', 'AA', 'XFD')
    """
    text, place = "", place + 1
    while place:
        place, rest = divmod(place - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


def _row(number: int, cells: Iterable[tuple[str, str, Any]]) -> str:
    """Return a row; a cell is given by its letters, its format and its value."""
    parts = [f'<row r="{number}">']
    for letters, form, value in cells:
        style = STYLE[form]
        if isinstance(value, str):
            day = _day_of(value) if form == DAY else None
            if day is None:
                at = f'r="{letters}{number}" s="{STYLE[BOLD] if form == BOLD else 0}"'
                text = escape(_text(value), {"\r": "&#13;"})
                parts.append(
                    f'<c {at} t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
                )
                continue
            value = (day - FIRST_DAY.date()).days
        elif isinstance(value, bool):
            parts.append(f'<c r="{letters}{number}" s="{style}" t="b"><v>{value:d}</v></c>')
            continue
        elif isinstance(value, datetime):
            value = (value - FIRST_DAY) / timedelta(days=1)
        elif isinstance(value, int) and form == TIME:
            style = STYLE[WHOLE]
        if value is not None and math.isfinite(value):
            parts.append(f'<c r="{letters}{number}" s="{style}"><v>{value!r}</v></c>')
    parts.append("</row>")
    return "".join(parts)


def _text(text: str) -> str:
    return NOT_IN_XML.sub("\ufffd", text)[:LONGEST_TEXT]


def _day_of(text: str) -> date | None:
    """Return the date of a text such as 2026-11-16; None for other texts."""
    if len(text) == 10 and text[4] == text[7] == "-":
        with suppress(ValueError):
            return date.fromisoformat(text)
    return None


def _link(number: int, kind: str, target: str) -> str:
    return f'<Relationship Id="rId{number}" Type="{RELATIONS}/{kind}" Target="{target}"/>'


def _links(links: str) -> str:
    return f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>'


def _kind(part: str, kind: str) -> str:
    return f'<Override PartName="{part}" ContentType="{KIND}.{kind}+xml"/>'


def _styles() -> str:
    """Return the styles of cells, in the order of ``FORMATS``."""
    font = '<sz val="11"/><name val="Calibri"/>'
    codes, cells = "", ""
    for place, name in enumerate(FORMATS):
        is_own = name not in (TEXT, BOLD)
        number = FIRST_OWN_FORMAT + place if is_own else 0
        codes += f'<numFmt numFmtId="{number}" formatCode={quoteattr(name)}/>' if is_own else ""
        cells += (
            f'<xf numFmtId="{number}" fontId="{int(name == BOLD)}" fillId="0" borderId="0" '
            'xfId="0" applyNumberFormat="1" applyFont="1"/>'
        )
    return (
        f'<styleSheet xmlns="{MAIN}"><numFmts count="{len(FORMATS) - 2}">{codes}</numFmts>'
        f'<fonts count="2"><font>{font}</font><font><b/>{font}</font></fonts>'
        '<fills count="2"><fill><patternFill patternType="none"/></fill>'
        '<fill><patternFill patternType="gray125"/></fill></fills>'
        '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
        '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/>'
        f'</cellStyleXfs><cellXfs count="{len(FORMATS)}">{cells}</cellXfs><cellStyles count="1">'
        '<cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
    )
