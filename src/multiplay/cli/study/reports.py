"""Tables that people bring: CSV files as offices write them."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multiplay._support.frames import column, with_all_digits
from multiplay.errors import InvalidInput

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

STDIN = "-"


def read_csv(path: str, arm: str) -> pd.DataFrame:
    """Return a table with the column ``arm`` as text; ``-`` is what comes through a pipe.

    Where commas are decimal points, spreadsheets put semicolons between the columns.
    """
    import pandas as pd

    text = _text(path)
    header = text.partition("\n")[0]
    separator = ";" if ";" in header and "," not in header else ","
    try:
        table = with_all_digits(
            io.StringIO(text),
            arm,
            sep=separator,
            decimal="," if separator == ";" and "," in text else ".",
            skipinitialspace=True,
            skip_blank_lines=False,  # so that rows know their lines
        )
    except ValueError as error:  # those of the parser are ValueErrors
        got = f"{name_of(path)} ({' '.join(str(error).split())})"
        hint = "Write the names of the columns in the first line, and one row for each unit."
        raise InvalidInput("table", "a CSV file", got, hint) from None
    if not isinstance(table.index, pd.RangeIndex):  # there were cells without a column
        hint = "Put quotes around a cell with a comma, or write 120.5 with a dot."
        expected, got = "as many cells in a row as in the first line", "more"
        raise InvalidInput("table", expected, got, hint)
    table = table.dropna(how="all")
    if arm in table:
        empty = table.index[table[arm].isna()]
        if len(empty):
            hint = "Write the name of the arm, or remove the line."
            raise InvalidInput(f"table, line {empty[0] + 2}", f"{arm!r}", "nothing", hint)
        table[arm] = table[arm].str.strip()
    return table


def losses_by_arm(table: pd.DataFrame, arm: str, loss: str) -> dict[str, list[float | None]]:
    """Return the losses of every arm, in the order of the rows; None where none is given."""
    example = "--arm lane --loss euros"
    losses: dict[str, list[float | None]] = {}
    arms, values = column(table, arm, example), column(table, loss, example, gaps=True)
    for line, name, value in zip(table.index + 2, arms, values, strict=True):
        losses.setdefault(name, []).append(_loss(value, f"table, line {line}"))
    return losses


def name_of(path: str) -> str:
    """Name a table for people."""
    return "what came through the pipe" if path == STDIN else path


def _loss(value: Any, argument: str) -> float | None:
    if value != value:
        return None
    try:
        return float(value)
    except ValueError:
        hint = "Write a number, and leave the cell empty where one is missing."
        raise InvalidInput(argument, "a number", repr(value), hint) from None


def _text(path: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
        return data.decode("utf-8-sig")  # some programs begin with a mark
    except UnicodeDecodeError:
        hint = "Save it as CSV UTF-8."
        raise InvalidInput(
            "table", "a CSV file in UTF-8", f"{name_of(path)}, in another code", hint
        ) from None
    except OSError as error:
        got = f"{path} ({error.strerror})"
        raise InvalidInput("table", "a CSV file", got, "Check the name of the file.") from None
