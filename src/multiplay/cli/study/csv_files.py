"""Tables of users in files: CSV of any format, or Excel, with a row for each unit or arm."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from multiplay._support.csv_format import CsvFormat
from multiplay._support.frames import TableFile, read_file
from multiplay.errors import InvalidInput
from multiplay.learner.logged_data import ARROW

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

STDIN = "-"
PLAIN = CsvFormat()

Separator = Annotated[
    str | None,
    typer.Option("--sep", metavar="CHARACTER", help="The separator of columns, if not recognised."),
]
DecimalMark = Annotated[
    str | None,
    typer.Option("--decimal", metavar="MARK", help="The decimal mark, if it is not recognised."),
]


def read_csv(
    path: str,
    arm: str,
    argument: str = "table",
    sep: str | None = None,
    decimal: str | None = None,
) -> "pd.DataFrame":
    """Return a table with the column ``arm`` as text, and a name in every row of it.

    Columns with commas between them, such as depot,customer, are joined to Lyon->north.
    """
    parts = [arm] if "," not in arm else [part.strip() for part in arm.split(",")]
    table = read_table(path, parts, argument, sep, decimal).frame
    known = [part for part in parts if part in table]
    for part in known:
        empty = table.index[table[part].isna()]
        if len(empty):
            hint = "Write the name of the arm, or remove the line."
            raise InvalidInput(f"{argument}, line {empty[0] + 2}", f"{part!r}", "nothing", hint)
        table[part] = table[part].str.strip()
    if len(parts) > 1 and known == parts:
        table[arm] = table[parts].agg(ARROW.join, axis=1)
    return table


def read_table(
    path: str,
    arms: Sequence[str],
    argument: str = "table",
    sep: str | None = None,
    decimal: str | None = None,
) -> TableFile:
    """Return a table with the columns of arms as text; the path ``-`` is standard input.

    A format other than commas, a decimal point and UTF-8 is reported on standard error.
    """
    source = "standard input" if path == STDIN else path
    content = sys.stdin.buffer.read() if path == STDIN else _content(path, argument)
    file = read_file(source, arms, sep, decimal, data=content, argument=argument)
    if file.format not in (None, PLAIN) and sep is None and decimal is None:
        typer.echo(f"{source}: {file.format}", err=True)
    return file


def _content(path: str, argument: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        got = f"{path} ({error.strerror})"
        raise InvalidInput(argument, "a CSV file", got, "Check the name of the file.") from None
