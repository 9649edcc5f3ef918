"""User tables: data frames of several libraries, CSV files of any format, Excel files."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import multiplay as mp
from multiplay._support.csv_format import decoded, format_of
from multiplay._support.frames import frame, read_file

ROWS = pd.DataFrame({"lane": ["007", "Zürich"], "cost": [1234.5, 0.25], "day": [1, 2]})


def written(separator: str, decimal: str, thousands: str = "") -> str:
    """Return ``ROWS`` as a CSV file."""
    lines = [separator.join(ROWS.columns)]
    for lane, cost, day in ROWS.itertuples(index=False):
        whole, _, part = f"{cost:,}".partition(".")
        number = whole.replace(",", thousands) + decimal + part
        lines.append(separator.join([lane, f'"{number}"', str(day)]))
    return "\n".join(lines) + "\n"


@given(
    st.sampled_from(",;\t|"),
    st.sampled_from([(".", ""), (",", ""), (".", ","), (",", ".")]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
)
def test_the_format_of_a_csv_file_is_recognised(
    separator: str, marks: tuple[str, str], encoding: str
) -> None:
    data = written(separator, *marks).encode(encoding)
    found = read_file("costs.csv", "lane", data=data)
    pd.testing.assert_frame_equal(found.frame, ROWS)
    assert found.format is not None
    assert (found.format.separator, found.format.decimal) == (separator, marks[0])


def test_the_format_is_said() -> None:
    text, encoding = decoded(written(";", ",").encode("cp1252"))
    found = format_of(text, encoding)
    assert str(found) == "columns separated by semicolons, decimal comma, encoding cp1252"
    assert str(format_of("a,b\n1.5,2\n")) == "columns separated by commas, decimal point"


def test_a_given_format_is_not_looked_for() -> None:
    text = 'lane;cost\na;"1,234"\n'
    assert format_of(text, separator=";", decimal=".").decimal == "."
    assert format_of("lane;cost\na;1.076\nb;0.5\n").decimal == "."  # 0.5 shows it
    assert read_file("t.csv", "lane", sep=";", decimal=",", data=text.encode()).frame["cost"][
        0
    ] == (1.234)


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ('lane\tcost\na\t"1,234"\n', {}, "a decimal mark that can be recognised, got 1,234"),
        ("lane;cost\na;1.076\nb;742\n", {}, "a decimal mark that can be recognised, got 1.076"),
        ("lane;cost\na;1,5\nb;2.5\n", {}, "one decimal mark, got 1,5 and 2.5"),
        ("a;b\n", {"sep": ";;"}, "sep: expected one character"),
        ("a;b\n", {"decimal": ":"}, "decimal: expected '.' or ','"),
        ("a,b\n", {"sep": ",", "decimal": ","}, "other than the separator"),
        ("", {}, "a CSV file"),
    ],
)
def test_an_unclear_format_is_refused(text: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(mp.InvalidInput, match=re.escape(message)):
        read_file("t.csv", "lane", data=text.encode(), **given)


def test_the_index_gives_the_line_of_a_row() -> None:
    data = b"lane,cost\na,1\n\nb,2\n"
    assert read_file("t.csv", "lane", data=data).frame.index.tolist() == [0, 2]


def test_excel_files_are_read(tmp_path: Path) -> None:
    ROWS.to_excel(tmp_path / "costs.xlsx", index=False)
    pd.testing.assert_frame_equal(frame(tmp_path / "costs.xlsx", ["lane"]), ROWS)
    (tmp_path / "wrong.xlsx").write_text("no workbook")
    with pytest.raises(mp.InvalidInput, match="an Excel file"):
        frame(tmp_path / "wrong.xlsx", "lane")


@pytest.mark.parametrize("kind", ["dict", "polars", "arrow", "array"])
def test_tables_of_other_libraries_are_read(kind: str) -> None:
    columns = ROWS.to_dict("list")
    if kind == "polars":
        table: Any = pytest.importorskip("polars").DataFrame(columns)
    elif kind == "arrow":
        table = pytest.importorskip("pyarrow").table(columns)
    elif kind == "array":
        table = ROWS.to_records(index=False)
    else:
        table = columns
    found = frame(table, "lane")
    assert found.to_dict("list") == columns


@pytest.mark.parametrize("table", [3, "no-such-file.csv", np.array(None)])
def test_what_is_no_table_is_refused(table: Any) -> None:
    with pytest.raises(mp.InvalidInput, match="table: expected a table"):
        frame(table, "lane")
