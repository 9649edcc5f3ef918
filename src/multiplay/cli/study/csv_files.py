"""CSV files of users: tables with a row for each unit or arm."""

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from multiplay._support.frames import with_all_digits
from multiplay.errors import InvalidInput

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

STDIN = "-"


def read_csv(path: str, arm: str, argument: str = "table") -> "pd.DataFrame":
    """Return a table with the column ``arm`` as text; the path ``-`` is standard input.

    Where the decimal mark is a comma, spreadsheets separate columns by semicolons.
    """
    import pandas as pd

    text = _text(path, argument)
    header = text.partition("\n")[0]
    separator = ";" if ";" in header and "," not in header else ","
    try:
        table = with_all_digits(
            io.StringIO(text),
            arm,
            sep=separator,
            decimal="," if separator == ";" and "," in text else ".",
            skipinitialspace=True,
            skip_blank_lines=False,  # so that the index gives the line
        )
    except ValueError as error:  # pandas' ParserError is a ValueError
        got = f"{_source_name(path)} ({' '.join(str(error).split())})"
        hint = "Write the names of the columns in the first line, and one row for each unit or arm."
        raise InvalidInput(argument, "a CSV file", got, hint) from None
    if not isinstance(table.index, pd.RangeIndex):  # there are cells without a column
        hint = "Put quotes around a cell with a comma, or write 120.5 with a dot."
        expected, got = "as many cells in a row as in the first line", "more"
        raise InvalidInput(argument, expected, got, hint)
    table = table.dropna(how="all")
    if arm in table:
        empty = table.index[table[arm].isna()]
        if len(empty):
            hint = "Write the name of the arm, or remove the line."
            raise InvalidInput(f"{argument}, line {empty[0] + 2}", f"{arm!r}", "nothing", hint)
        table[arm] = table[arm].str.strip()
    return table


def _source_name(path: str) -> str:
    """Return the name of a table for messages."""
    return "standard input" if path == STDIN else path


def _text(path: str, argument: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
        return data.decode("utf-8-sig")  # some programs write a byte order mark
    except UnicodeDecodeError:
        hint = "Save it as CSV UTF-8."
        raise InvalidInput(
            argument, "a CSV file in UTF-8", f"{_source_name(path)}, in a different encoding", hint
        ) from None
    except OSError as error:
        got = f"{path} ({error.strerror})"
        raise InvalidInput(argument, "a CSV file", got, "Check the name of the file.") from None
