"""User tables: data frames, CSV and Excel files with one row for each outcome."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay._support import deadline
from multiplay._support.csv_format import CsvFormat, decoded, format_of, number_in, rows_of
from multiplay._support.hints import Hint, Part
from multiplay._support.sheets import OWN_FILES, TableLimits, sheet_text
from multiplay.errors import InvalidInput
from multiplay.types import IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

EXCEL = (".xlsx", ".xlsm")
EXPECTED = "a table (pandas, polars, Arrow), or the path of a CSV or Excel file"


class TableFile(NamedTuple):
    """A table that was read from a file, and its format.

    Attributes
    ----------
    frame : DataFrame
        The rows.
    format : CsvFormat or None
        The format of a CSV file.
    first : int
        The number of the row with index 0: 2 in a file, whose row 1 has the names of the columns.
    source : str
        The name of the file.
    """

    frame: pd.DataFrame
    format: CsvFormat | None
    first: int = 2
    source: str = ""


def table_file(table: Any, texts: str | Iterable[str]) -> TableFile:
    """Return a table with its format; rows of a table that is no file have numbers from 0."""
    if isinstance(table, TableFile):
        return table
    if isinstance(table, str | Path):
        return read_file(table, texts)
    return TableFile(frame(table, texts).reset_index(drop=True), None, 0)


def frame(table: Any, texts: str | Iterable[str]) -> pd.DataFrame:
    """Return a table as a data frame; ``texts`` names columns of text, such as those of arms."""
    import pandas as pd

    try:
        if isinstance(table, str | Path):
            return read_file(table, texts).frame
        if not isinstance(table, pd.DataFrame) and hasattr(table, "to_pandas"):
            table = table.to_pandas()  # polars, Arrow, and others
        return pd.DataFrame(table)
    except (ValueError, TypeError, ImportError) as error:
        if isinstance(error, InvalidInput):
            raise
        got = f"{str(table)[:60]} ({error})"
        raise InvalidInput("table", EXPECTED, got, "Give one row for each outcome.") from None


def read_file(
    path: str | Path,
    texts: str | Iterable[str],
    sep: str | None = None,
    decimal: str | None = None,
    data: bytes | None = None,
    argument: str = "table",
) -> TableFile:
    """Return the table in a CSV or Excel file; ``data`` is its content, if it was read before.

    Separator, decimal mark and encoding of a CSV file are recognised unless they are given.
    """
    hint = "Check the name of the file."
    try:
        content = Path(path).read_bytes() if data is None else data
    except OSError as error:
        raise InvalidInput(argument, EXPECTED, f"{path} ({error.strerror})", hint) from None
    if is_excel(path):
        text, format = sheet_text(content, argument), None
    else:
        text, encoding = decoded(content, argument)
        format = format_of(text, encoding, sep, decimal)
    return read_text(text, texts, format, argument)._replace(source=Path(path).name)


def is_excel(path: str | Path) -> bool:
    """Return whether a file is read as an Excel file, by its name."""
    return str(path).lower().endswith(EXCEL)


def read_text(
    text: str,
    texts: str | Iterable[str],
    found: CsvFormat | None,
    argument: str = "table",
    limits: TableLimits = OWN_FILES,
) -> TableFile:
    """Return the table in a CSV text of a known format; None for the text of a sheet."""
    import pandas as pd

    form, wanted = found or CsvFormat(), {texts} if isinstance(texts, str) else {*texts}
    names = _names(text, form.separator, argument, limits)
    as_text = [k for k, name in enumerate(names) if name in wanted]
    deadline.check(argument)
    try:
        rows = with_all_digits(
            io.BytesIO(text.encode()),
            as_text,
            sep=form.separator,
            decimal=form.decimal,
            header=None,
            names=range(len(names)),  # the names of columns need not differ
            skiprows=1,
            skipinitialspace=form.separator != " ",
            skip_blank_lines=False,  # so that the index gives the line
        )
    except ValueError as error:  # pandas' ParserError is a ValueError
        raise _no_csv(argument, " ".join(str(error).split())) from None
    if not isinstance(rows.index, pd.RangeIndex):  # there are cells without a column
        raise _more_cells(argument)
    if form.thousands is not None:
        _join_groups(rows, as_text, form.decimal)
    rows.columns = pd.Index(names)
    return TableFile(rows.dropna(how="all"), found)


def _names(text: str, separator: str, argument: str, limits: TableLimits) -> list[str]:
    """Return the names of the columns of a CSV text, after a check of the size of its table.

    Cells that rows lack are added, so that a short text may make a large table.
    """
    if not text.strip():
        raise _no_csv(argument, "nothing")
    head, *first = islice(rows_of(text, separator, argument), 2)
    lines = 1 + text.count("\n") + text.count("\r") - text.count("\r\n")
    for amount, most, unit in (
        (len(head), limits.columns, "columns"),
        (lines, limits.rows, "lines"),
        (len(head) * lines, max(limits.cells, len(text)), "cells"),
    ):
        if amount > most:
            got = f"{len(head):,} columns in {lines:,} lines"
            hint = "Remove columns and lines that are not needed."
            raise InvalidInput(argument, f"at most {most:,} {unit}", got, hint)
    if first and len(first[0]) > len(head):
        raise _more_cells(argument)
    return [name.strip() or f"Unnamed: {k}" for k, name in enumerate(head)]


def _no_csv(argument: str, got: str) -> InvalidInput:
    hint = "Write the names of the columns in the first line, and one row for each unit or arm."
    return InvalidInput(argument, "a CSV file", got, hint)


def _more_cells(argument: str) -> InvalidInput:
    hint = "Put quotes around a cell with a comma, or write 120.5 with a dot."
    return InvalidInput(argument, "as many cells in a row as in the first line", "more", hint)


def _join_groups(rows: pd.DataFrame, as_text: Collection[int], decimal: str) -> None:
    """Turn columns of numbers with groups of digits into numbers.

    pandas would also join the parts of a date such as 31.12.2026.
    """
    import pandas as pd

    for k in range(rows.shape[1]):
        if k not in as_text and rows[k].dtype.kind not in "biuf":
            numbers, different = pd.factorize(rows[k])
            found = [
                number_in(text, decimal) if isinstance(text, str) else None for text in different
            ]
            if None not in found:
                values = np.append(np.array(found, dtype=float), np.nan)
                rows[k] = values[numbers]


def with_all_digits(file: Any, as_text: Iterable[int], **options: Any) -> pd.DataFrame:
    """Read a CSV file with full precision; an arm may have the name 007 or NA."""
    import pandas as pd

    if pd.__version__.startswith("2."):  # off by a last digit otherwise; later ones are exact
        options["float_precision"] = "round_trip"
    types: dict[Any, Any] = dict.fromkeys(as_text, str)
    found: pd.DataFrame = pd.read_csv(
        file, dtype=types, keep_default_na=False, na_values=[""], **options
    )
    return found


def column(frame: pd.DataFrame, name: str, example: Part, gaps: bool = False) -> pd.Series[Any]:
    """Return the one column of that name; no value may be missing, unless ``gaps`` is True."""
    columns = list(frame.columns)
    if columns.count(name) != 1:
        raise InvalidInput(
            "table",
            f"one column {name!r}",
            ", ".join(map(repr, columns)) or "no columns",
            Hint("Name the columns, as in {}.", example),
        )
    values = frame[name]
    if len(values) == 0:
        raise InvalidInput("table", "outcomes", "no rows", "Give one row for each outcome.")
    missing = np.flatnonzero(values.isna())
    if len(missing) and not gaps:
        raise InvalidInput(
            f"table[{name!r}]",
            "a value in every row",
            f"{len(missing)} missing, the first in row {missing[0]}",
            "Fill in the missing values, or remove these rows.",
        )
    return values


def in_order(labels: pd.Series[Any]) -> tuple[IntArray, Any]:
    """Return the number of each label in the order of the labels, and the labels once, in order."""
    import pandas as pd

    try:
        return pd.factorize(labels, sort=True)
    except TypeError as error:
        raise InvalidInput(
            f"table[{labels.name!r}]",
            "labels that can be sorted",
            f"labels that cannot be compared ({error})",
            "Give a whole number for each round.",
        ) from None
