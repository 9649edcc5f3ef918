"""User tables: data frames, CSV and Excel files with one row for each outcome."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay._support.csv_format import CsvFormat, decoded, format_of, number_in
from multiplay.errors import InvalidInput
from multiplay.types import IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

EXCEL = (".xlsx", ".xlsm")
NUMBERED = re.compile(r"(.*)\.\d+")
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
    """

    frame: pd.DataFrame
    format: CsvFormat | None
    first: int = 2


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
    if str(path).lower().endswith(EXCEL):
        return TableFile(_read_excel(path, content, texts, argument), None)
    text, encoding = decoded(content)
    found = format_of(text, encoding, sep, decimal)
    return TableFile(_read_csv(path, text, found, texts, argument), found)


def _read_csv(
    path: str | Path, text: str, found: CsvFormat, texts: str | Iterable[str], argument: str
) -> pd.DataFrame:
    import pandas as pd

    try:
        rows = with_all_digits(
            io.StringIO(text),
            texts,
            sep=found.separator,
            decimal=found.decimal,
            skipinitialspace=True,
            skip_blank_lines=False,  # so that the index gives the line
        )
    except ValueError as error:  # pandas' ParserError is a ValueError
        got = f"{path} ({' '.join(str(error).split())})"
        hint = "Write the names of the columns in the first line, and one row for each unit or arm."
        raise InvalidInput(argument, "a CSV file", got, hint) from None
    if not isinstance(rows.index, pd.RangeIndex):  # there are cells without a column
        hint = "Put quotes around a cell with a comma, or write 120.5 with a dot."
        expected, got = "as many cells in a row as in the first line", "more"
        raise InvalidInput(argument, expected, got, hint)
    if found.thousands is not None:
        _join_groups(rows, texts, found.decimal)
    return _with_own_names(rows).dropna(how="all")


def _join_groups(rows: pd.DataFrame, texts: str | Iterable[str], decimal: str) -> None:
    """Turn columns of numbers with groups of digits into numbers.

    pandas would also join the parts of a date such as 31.12.2026.
    """
    import pandas as pd

    for name in rows.columns.difference([texts] if isinstance(texts, str) else [*texts]):
        if rows[name].dtype.kind not in "biuf":
            numbers, different = pd.factorize(rows[name])
            found = [
                number_in(text, decimal) if isinstance(text, str) else None for text in different
            ]
            if None not in found:
                values = np.append(np.array(found, dtype=float), np.nan)
                rows[name] = values[numbers]


def _read_excel(
    path: str | Path, content: bytes, texts: str | Iterable[str], argument: str
) -> pd.DataFrame:
    import pandas as pd

    try:
        rows: pd.DataFrame = pd.read_excel(
            io.BytesIO(content),
            engine="openpyxl",
            dtype=_as_text(texts),
            keep_default_na=False,
            na_values=[""],
        )
    except ImportError:
        hint = "Install it: pip install 'multiplay[excel]'. Or save the sheet as CSV."
        raise InvalidInput(argument, "the package openpyxl, for Excel", "none", hint) from None
    except Exception as error:  # zipfile, KeyError and others, of a file that is none of Excel's
        got = f"{path} ({' '.join(str(error).split())})"
        raise InvalidInput(argument, "an Excel file", got, "Save it again as .xlsx.") from None
    return _with_own_names(rows).dropna(how="all")


def _with_own_names(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the names of their columns as in the file, also where one occurs twice."""
    names = [str(name).strip() for name in rows.columns]
    numbered = (NUMBERED.fullmatch(name) for name in names)  # by pandas
    rows.columns = [
        match[1] if match is not None and match[1] in names else name
        for name, match in zip(names, numbered, strict=True)
    ]
    return rows


def with_all_digits(file: Any, texts: str | Iterable[str], **options: Any) -> pd.DataFrame:
    """Read a CSV file with full precision; an arm may have the name 007 or NA."""
    import pandas as pd

    if pd.__version__.startswith("2."):  # off by a last digit otherwise; later ones are exact
        options["float_precision"] = "round_trip"
    found: pd.DataFrame = pd.read_csv(
        file, dtype=_as_text(texts), keep_default_na=False, na_values=[""], **options
    )
    return found


def _as_text(texts: str | Iterable[str]) -> dict[Any, Any]:
    return dict.fromkeys([texts] if isinstance(texts, str) else texts, str)


def column(frame: pd.DataFrame, name: str, example: str, gaps: bool = False) -> pd.Series[Any]:
    """Return the one column of that name; no value may be missing, unless ``gaps`` is True."""
    columns = list(frame.columns)
    if columns.count(name) != 1:
        raise InvalidInput(
            "table",
            f"one column {name!r}",
            ", ".join(map(repr, columns)) or "no columns",
            f"Name the columns, as in {example}.",
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
