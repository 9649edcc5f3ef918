"""User tables: data frames and CSV files with one row for each outcome."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay.errors import InvalidInput
from multiplay.types import IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd


def frame(table: Any, arm: str) -> pd.DataFrame:
    """Return a table as a data frame; ``arm`` names the column of its arms."""
    import pandas as pd

    try:
        if isinstance(table, str | Path):
            return with_all_digits(table, arm)
        return pd.DataFrame(table)
    except (OSError, ValueError, TypeError) as error:  # those of the CSV parser are ValueErrors
        raise InvalidInput(
            "table",
            "a pandas DataFrame or the path of a CSV file",
            f"{str(table)[:60]} ({error})",
            "Give one row for each outcome.",
        ) from None


def with_all_digits(file: Any, arm: str, **options: Any) -> pd.DataFrame:
    """Read a CSV file with full precision; an arm may have the name 007 or NA."""
    import pandas as pd

    if pd.__version__.startswith(
        "2."
    ):  # off by a last digit otherwise; later ones always are exact
        options["float_precision"] = "round_trip"
    found: pd.DataFrame = pd.read_csv(
        file, dtype={arm: str}, keep_default_na=False, na_values=[""], **options
    )
    return found


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
