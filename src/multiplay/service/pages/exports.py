"""Export of the plans of a study from its page: CSV as the spreadsheet of the reader reads it."""

from __future__ import annotations

import csv
import io
import re
from functools import partial
from typing import Literal

from starlette.responses import Response

from multiplay.service.api.models import ExportQuery
from multiplay.service.api.routes import file_response
from multiplay.service.pages.page_route import Page, StudyPageContext

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t"}
# languages whose spreadsheets write 1234,5 and separate columns by semicolons
COMMA = re.compile(
    "af|bg|ca|cs|da|de|el|es|et|eu|fi|fr|gl|hr|hu|id|is|it|lt|lv|nb|nl|nn|no|"
    "pl|pt|ro|ru|sk|sl|sr|sv|tr|uk|vi"
)
POINT = {"de-ch", "de-li", "es-mx", "es-us", "it-ch"}
TEXTS = {False: 6, True: 5}  # columns before the amounts: id, key, status, two times, the arm
DECIMAL = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


class CsvQuery(ExportQuery):
    """A file of plans; without a separator and a mark, those of the language of the browser."""

    separator: Literal["", "comma", "semicolon", "tab"] = ""
    decimal: Literal["", "comma", "point"] = ""


def marks_of(languages: str) -> tuple[str, str]:
    """Return the names of the separator and of the decimal mark of the first language.

    Examples
    --------
    >>> marks_of("de-DE,de;q=0.9,en;q=0.8"), marks_of("en-GB"), marks_of("de-CH"), marks_of("")
    (('semicolon', 'comma'), ('comma', 'point'), ('semicolon', 'point'), ('comma', 'point'))
    """
    first = languages.split(",")[0].split(";")[0].strip().lower()
    if not COMMA.fullmatch(first.split("-")[0]):
        return "comma", "point"
    return "semicolon", "point" if first in POINT else "comma"


def rewritten(content: bytes, separator: str, decimal: str, texts: int) -> bytes:
    r"""Return CSV text with another separator and decimal mark, for a spreadsheet.

    The first ``texts`` columns have no amounts.

    Examples
    --------
    >>> rewritten(b"key,loss\r\n1.5,1.5\r\n", "semicolon", "comma", 1).decode("utf-8-sig")
    'key;loss\r\n1.5;1,5\r\n'
    """
    rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    text = io.StringIO(newline="")
    made = csv.writer(text, delimiter=SEPARATORS[separator])
    for row in rows:
        if decimal == "comma":
            amounts = (x.replace(".", ",") if DECIMAL.fullmatch(x) else x for x in row[texts:])
            made.writerow([*row[:texts], *amounts])
        else:
            made.writerow(row)
    return text.getvalue().encode("utf-8-sig")


async def export(context: StudyPageContext, query: CsvQuery) -> Response:
    """Return a file with the plans of a study."""
    content = await context.manager.export(context.name, context.caller, query.format, query.wide)
    if query.format == "csv":
        usual = marks_of(context.request.headers.get("accept-language", ""))
        separator, decimal = query.separator or usual[0], query.decimal or usual[1]
        marks = separator, decimal, TEXTS[query.wide]
        content = await context.in_thread(partial(rewritten, content, *marks))
    return file_response(context.name, query.format, content)


PAGES = (Page("GET", "/studies/{study}/export", export),)
