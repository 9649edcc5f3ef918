"""Tables that users upload or paste, and limits on their files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from string import ascii_uppercase
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import Response

from multiplay._support.csv_format import SAMPLE, SEPARATORS, CsvFormat, decoded, format_of, rows_of
from multiplay._support.dates import moment_of
from multiplay._support.formatting import legible
from multiplay._support.frames import TableFile, is_excel, read_text
from multiplay._support.sheets import TableLimits, sheet_text
from multiplay.actions.importers.table_columns import Columns
from multiplay.errors import InvalidInput
from multiplay.service.pages.forms import Form, UploadedFile
from multiplay.service.studies.limits import ServiceLimits
from multiplay.storage.base import LONGEST_NAME

# Fields of the columns of a table
FIELDS = tuple(f"column-{role}" for role in ("arm", "second", "round", "loss", "id", "units"))
COOKIE, LONGEST_COOKIE, YEAR = "multiplay_columns", 2_000, 365 * 86_400  # characters, seconds
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
PASTED = "pasted.csv"  # the name of a table without a file
# Reading a file then takes less than 64 MB; its text is sent again in a form
LIMITS = TableLimits(
    unpacked=2**24, rows=100_000, cells=2**18, characters=ServiceLimits().body, columns=200
)


class Upload(NamedTuple):
    """A table of the user.

    Attributes
    ----------
    name : str
        The name of the file.
    text : str
        Its content as CSV, so that a form can send it again.
    format : CsvFormat or None
        The format of a CSV file.
    columns : tuple of str
        The names of its columns.
    above : int
        The number of lines above the names of the columns, such as a title.
    """

    name: str
    text: str
    format: CsvFormat | None
    columns: tuple[str, ...] = ()
    above: int = 0

    def read(self, texts: Iterable[str] = ()) -> TableFile:
        """Return the table; ``texts`` names columns of text."""
        source = "" if self.name == PASTED else self.name
        table, first = _below(self.text, self.above), self.above + 2
        if names := _letters(_lines(table, 1), self.format or CsvFormat()):
            table, first = names + table, first - 1
        found = read_text(table, texts, self.format, "file", LIMITS)
        return found._replace(source=source, first=first)


def uploaded(form: Form) -> Upload:
    """Return the table of a form: the file ``file``, or the text ``content``.

    A page that shows a table sends it again as ``content``, together with its ``state``: a file of
    that form is not the table. A file that cannot be read, or that needs too much memory, raises
    ``InvalidInput``.
    """
    file = None if form.get("state") else form.files.get("file")
    if file is None:
        content = form.get("content")
        if not content.strip():
            hint = "Choose a file, or paste the rows of a spreadsheet with their header."
            raise InvalidInput("file", "a table", "nothing", hint)
        file = UploadedFile(PASTED, content.encode())
    text, encoding = text_of(file)
    given = form.get("source") if file.name == PASTED else file.name
    name = legible(given)[:LONGEST_NAME] or PASTED
    above = _lines_above(text)
    form_of_file = None if encoding is None else format_of(_below(text, above), encoding)
    found = Upload(name, text, form_of_file, above=above)
    frame = found.read().frame
    if not len(frame):
        hint = "Write the names of the columns in the first line, and one row for each unit."
        raise InvalidInput("file", "rows", "none", hint)
    return found._replace(columns=(*map(str, frame.columns),))


def _lines_above(text: str) -> int:
    """Return the number of lines above the table: titles, and empty lines.

    The names of the columns fill at least half of the cells of the widest line.

    Examples
    --------
    >>> _lines_above("Freight, May" + chr(10) * 2 + "day;from;to;cost" + chr(10) + "1;A;B;9")
    2
    """
    lines, best = _lines(text, SAMPLE), list[int]()
    for separator in SEPARATORS:
        filled = [sum(bool(cell.strip()) for cell in line.split(separator)) for line in lines]
        if sum(k > 1 for k in filled) > sum(k > 1 for k in best):
            best = filled
    return next((k for k, one in enumerate(best) if one > 1 and 2 * one >= max(best)), 0)


def _lines(text: str, most: int) -> list[str]:
    """Return the first lines of a text, which may be large."""
    return [found[0] for found in islice(LINE.finditer(text), most) if found[0]]


def _below(text: str, above: int) -> str:
    """Return a text without some lines at its beginning."""
    return text[sum(map(len, _lines(text, above))) :]


def _letters(lines: Sequence[str], found: CsvFormat) -> str:
    """Return a line with the names A, B, C, ... if the first line has a date; "" otherwise."""
    cells = next(iter(rows_of(lines[0], found.separator, "file")), []) if lines else []
    if not any(moment_of(cell) is not None and not cell.isdigit() for cell in cells):
        return ""
    return found.separator.join(ascii_uppercase[: len(cells)]) + "\n"


def text_of(file: UploadedFile) -> tuple[str, str | None]:
    """Return the content of a file as CSV, and its encoding; None for an Excel file."""
    if is_excel(file.name):
        return sheet_text(file.data, "file", LIMITS), None
    return decoded(file.data, "file")


def columns_of_form(form: Form) -> Columns:
    """Return the columns that were chosen in a form."""
    arm, second, *others = map(form.get, FIELDS)
    return Columns((*filter(None, (arm, second)),), *others)


def fields_of(columns: Columns) -> dict[str, str]:
    """Return the input of the fields of columns."""
    arm, second, *_ = (*columns.arm, "", "")
    return dict(zip(FIELDS, (arm, second, *columns[1:]), strict=True))


# ---------------------------------------------------------------- columns that are remembered


def with_remembered(form: Form, request: Request) -> Form:
    """Return a form with the columns that were last used for this study, if it has none."""
    if any(form.get(name) for name in FIELDS):
        return form
    known = dict(parse_qsl(request.cookies.get(COOKIE, "")))
    values = {name: known[name] for name in FIELDS if name in known}
    return Form({**form.values, **values}, form.errors, form.files, form.columns)


def remember(response: Response, base: str, columns: Columns) -> None:
    """Let the browser remember columns for the pages of a study."""
    text = urlencode({name: column for name, column in fields_of(columns).items() if column})
    if columns.loss and len(text) <= LONGEST_COOKIE:
        options: dict[str, Any] = {"path": base, "httponly": True, "samesite": "strict"}
        response.set_cookie(COOKIE, text, max_age=YEAR, **options)
