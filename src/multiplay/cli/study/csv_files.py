"""Tables of users in files: CSV of any format, or Excel, with a row for each unit or arm."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from multiplay._support.csv_format import CsvFormat
from multiplay._support.frames import TableFile, read_file
from multiplay.errors import InvalidInput
from multiplay.learner.logged_data import TableProblem

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
    """Return a table with the column ``arm`` as text, and a name in every row of it."""
    table = read_table(path, [arm], argument, sep, decimal).frame
    if arm in table:
        empty = table.index[table[arm].isna()]
        if len(empty):
            hint = "Write the name of the arm, or remove the line."
            raise InvalidInput(f"{argument}, line {empty[0] + 2}", f"{arm!r}", "nothing", hint)
        table[arm] = table[arm].str.strip()
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


def write_skipped(path: Path, file: TableFile, problems: Sequence[TableProblem]) -> None:
    """Write rows with problems to a CSV file: their numbers, the problems, and all columns."""
    rows = file.frame.loc[[problem.row - file.first for problem in problems]].copy()
    rows.insert(0, "problem", [problem.text for problem in problems], allow_duplicates=True)
    rows.insert(0, "row", [problem.row for problem in problems], allow_duplicates=True)
    form = file.format or PLAIN
    try:
        rows.to_csv(path, index=False, sep=form.separator, decimal=form.decimal)
    except OSError as error:
        got, hint = f"{path} ({error.strerror})", "Choose a different file."
        raise InvalidInput("--skipped", "a file that can be written", got, hint) from None


def _content(path: str, argument: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        got = f"{path} ({error.strerror})"
        raise InvalidInput(argument, "a CSV file", got, "Check the name of the file.") from None
