"""User tables: data frames of several libraries, CSV files of any format, Excel files."""

import csv
import io
import random
import re
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook
from openpyxl.utils.datetime import MAC_EPOCH, WINDOWS_EPOCH
from refusal import refused
from workbooks import MAIN, sheet, workbook

import multiplay as mp
from multiplay._support import deadline, xlsx
from multiplay._support.csv_format import LONGEST_CELL, decoded, format_of
from multiplay._support.frames import frame, read_file, read_text
from multiplay._support.sheets import TableLimits, sheet_text

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


def cells_of(data: bytes) -> list[list[str]]:
    """Return the cells of the first sheet as multiplay reads them."""
    return list(csv.reader(io.StringIO(sheet_text(data), newline="")))


def slow_cells_of(data: bytes) -> list[list[str]]:
    """Return the same cells as openpyxl reads them."""
    rows = load_workbook(io.BytesIO(data), data_only=True).worksheets[0].values
    return [[_slow_text(value) for value in row] for row in rows]


def _slow_text(value: Any) -> str:
    if value is None or (isinstance(value, str) and value.startswith("#")):
        return ""
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).removesuffix(" 00:00:00")


def padded(rows: list[list[str]]) -> list[list[str]]:
    """Return rows of equal length, without empty rows at the end."""
    width = max(map(len, rows))
    found = [row + [""] * (width - len(row)) for row in rows]
    while found and not any(found[-1]):
        found.pop()
    return found


def a_cell(rng: random.Random) -> Any:
    day = datetime(2026, 1, 1) + timedelta(seconds=rng.randrange(10**8))
    return rng.choice(
        [
            None,
            rng.randrange(-(10**6), 10**6),
            rng.uniform(-1, 1) * 10 ** rng.randrange(-9, 12),
            rng.random() < 0.5,
            rng.choice(
                ["Zürich", "a,b", 'a "b"', " x ", "a\nb", "007", "#N/A", "\N{GRINNING FACE}"]
            ),
            day,
            day.date(),
            time(rng.randrange(24), rng.randrange(60)),
            timedelta(seconds=rng.randrange(10**6)),
            date(1900, rng.randrange(1, 13), rng.randrange(1, 29)),
        ]
    )


@pytest.mark.parametrize("seed", range(20))
def test_workbooks_of_openpyxl_are_read_as_openpyxl_reads_them(seed: int) -> None:
    rng, book, content = random.Random(seed), Workbook(), io.BytesIO()
    book.epoch = MAC_EPOCH if seed % 4 == 3 else WINDOWS_EPOCH
    book.iso_dates = seed % 4 == 2
    page = book.active
    page.append([f"c{k}" for k in range(rng.randrange(1, 9))])
    for _ in range(rng.randrange(1, 30)):
        row = [a_cell(rng) for _ in range(rng.randrange(9))]
        if book.epoch == MAC_EPOCH or book.iso_dates:  # which have no year 1900, or no durations
            row = [None if isinstance(one, timedelta) else one for one in row]
            row = [None if getattr(one, "year", 2026) < 1904 else one for one in row]
        page.append(row)
    page.merge_cells("A1:A2")
    book.create_sheet("other").append(["not read"])
    book.save(content)
    assert padded(cells_of(content.getvalue())) == padded(slow_cells_of(content.getvalue()))


def test_workbooks_of_multiplay_are_read_as_openpyxl_reads_them(tmp_path: Path) -> None:
    columns = [xlsx.Column("lane"), xlsx.Column("day", xlsx.DAY), xlsx.Column("cost", xlsx.AMOUNT)]
    rows = [("=A->B", "2026-11-16", 12.5), (None, "no day", True), ("\rx", "", 1e-7), ("y", "", 3)]
    with xlsx.Workbook(tmp_path / "a.xlsx") as book:
        book.write("lanes", columns, rows)
    data = (tmp_path / "a.xlsx").read_bytes()
    assert padded(cells_of(data)) == padded(slow_cells_of(data))


def test_cells_of_all_types_are_read() -> None:
    strings = (
        f'<sst xmlns="{MAIN}"><si><r><t>a</t></r><r><t>b</t></r><rPh><t>no</t></rPh></si></sst>'
    )
    styles = (
        f'<styleSheet xmlns="{MAIN}"><numFmts><numFmt numFmtId="170" formatCode="[$-407]d/m"/>'
        '<numFmt numFmtId="171" formatCode="0 &quot;days&quot;"/></numFmts><cellStyleXfs>'
        '<xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/>'
        '<xf numFmtId="170"/><xf numFmtId="171"/><xf numFmtId="46"/></cellXfs></styleSheet>'
    )
    row = (
        '<row><c t="s"><v>0</v></c><c t="str"><f>A1</f><v>text</v></c><c t="b"><v>1</v></c>'
        '<c t="e"><v>#N/A</v></c><c t="d"><v>2026-11-16T00:00:00</v></c><c><f>1+1</f><v>2.0</v></c>'
        '<c s="1"><v>46342</v></c><c s="2"><v>46342.5</v></c><c s="3"><v>3</v></c>'
        '<c s="4"><v>1.5</v></c><c s="1"><v>-1</v></c><c r="M2"><f>A1</f></c><c r="N2"/>'
        '<c r="L2"><v>1E2</v></c></row>'
    )
    data = workbook(sheet(row), strings=strings, styles=styles)
    assert cells_of(data)[1] == [
        *("ab", "text", "True", "", "2026-11-16", "2", "2026-11-16", "2026-11-16 12:00:00"),
        *("3", "36:00:00", "-1", "100"),
    ]


def test_strict_workbooks_and_names_with_prefixes_are_read() -> None:
    strict = sheet("").replace(MAIN, "http://purl.oclc.org/ooxml/spreadsheetml/main")
    prefixed = re.sub(r"<(/?)(\w)", r"<\1m:\2", sheet("")).replace("xmlns=", "xmlns:m=")
    for content in (sheet(""), strict, prefixed, sheet("").encode("utf-16")):
        assert cells_of(workbook(content)) == [["lane"]]


def test_dates_of_a_workbook_are_texts() -> None:
    rows, content = pd.DataFrame({"day": pd.to_datetime(["2026-11-16"]), "cost": [2]}), io.BytesIO()
    rows.to_excel(content, index=False)
    found = read_file("a.xlsx", (), data=content.getvalue()).frame
    assert found.to_dict("list") == {"day": ["2026-11-16"], "cost": [2]}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"unpacked": 500}, "bytes after unpacking"),
        ({"rows": 2}, "at most 2 rows"),
        ({"cells": 5}, "at most 5 cells"),
        ({"characters": 10}, "at most 10 characters"),
        ({"columns": 1}, "at most 1 columns"),
    ],
)
def test_workbooks_have_limits(limits: dict[str, int], expected: str) -> None:
    data = workbook(sheet("<row><c><v>1</v></c><c><v>123456</v></c></row>" * 2))
    assert len(cells_of(data)) == 3
    with refused("file") as error:
        sheet_text(data, "file", TableLimits(**limits))
    assert expected in error.value.expected


# ---------------------------------------------------------------- CSV files that are unusual


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_line_ends_and_encodings_of_csv_files(end: str, encoding: str) -> None:
    data = written(";", ",").replace("\n", end).encode(encoding)
    pd.testing.assert_frame_equal(read_file("a.csv", "lane", data=data).frame, ROWS)


UNREADABLE = {
    "half a character of UTF-16": "lane,cost\na,1\n".encode("utf-16")[:-1],
    "half a character of UTF-32": "lane,cost\na,1\n".encode("utf-32")[:-1],
    "a lone surrogate in UTF-16": b"\xff\xfea\0\n\0\x00\xd8\n\0",
    "UTF-16 without its mark": "lane,cost\na,1\n".encode("utf-16-le"),
    "NUL": b"lane,cost\na,\0\n",
    "a long cell": b"lane,cost\n" + b"x" * (LONGEST_CELL + 1) + b",1\n",
    "one line": b"x" * 10**7,
    "a quote without an end": b'lane,cost\n"a,1\nb,2\n',
    "a long quote": b'lane,cost\n"' + b"x\n" * LONGEST_CELL,
    "only separators": b"," * 10**6,
    "only line ends": b"\n" * 10**6,
    "only spaces": b" " * 10**6,
    "many cells in the second line": b"lane\n" + b"," * 10**6,
    "many cells in the third line": b"lane,cost\na,1\n" + b"," * 10**6,
    "rows that are nearly empty": b"," * 9_999 + b"\n" * 10**6,
    "a workbook": workbook(sheet("")),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_csv_files_that_cannot_be_read_are_refused(name: str) -> None:
    with refused("table"):
        read_file("a.csv", "lane", data=UNREADABLE[name])


@pytest.mark.parametrize("sep", ['"', "\n", "\r", "\0", "", ";;", 3])
def test_separators_that_no_file_can_have_are_refused(sep: Any) -> None:
    with refused("sep"):
        read_file("a.csv", "lane", sep=sep, data=b"lane;cost\na;1\n")


def test_empty_lines_are_no_rows() -> None:
    found = read_file("a.csv", "lane", data=b"lane,cost\n" + b"\n" * 10**5 + b"a,1\n").frame
    assert (found.index.tolist(), found["cost"].tolist()) == ([10**5], [1])


def test_columns_keep_their_names() -> None:
    data = b"lane,cost,cost,cost.1, lane ,\n007,1,2,3,008,4\n"
    for found in (read_file("a.csv", "lane", data=data).frame, _as_workbook(data)):
        names = ["lane", "cost", "cost", "cost.1", "lane", "Unnamed: 5"]
        assert list(found.columns) == names
        assert found.to_numpy().tolist() == [["007", 1, 2, 3, "008", 4]]


def _as_workbook(data: bytes) -> pd.DataFrame:
    book, content = Workbook(), io.BytesIO()
    for row in csv.reader(data.decode().splitlines()):
        book.active.append(row)
    book.save(content)
    return read_file("a.xlsx", "lane", data=content.getvalue()).frame


def test_many_columns_of_one_name_are_read() -> None:
    """pandas would compare each name with all names before it."""
    names = ["c", "c.1"] * 2_000
    found = read_file("a.csv", "lane", data=f"{','.join(names)}\n1\n".encode()).frame
    assert list(found.columns) == names
    with refused("table") as error:
        read_file("a.csv", "lane", data=b",".join([b"c"] * 40_000) + b"\n1\n")
    assert error.value.expected == "at most 16,384 columns"


def test_files_are_read_before_a_deadline() -> None:
    with deadline.before(0.0):
        for act in (
            lambda: sheet_text(workbook(sheet("")), "file"),
            lambda: read_text("a,b\n1,2\n", (), None, "file"),
        ):
            with refused("file") as error:
                act()
            assert error.value.expected == "a file that is read in time"


# ---------------------------------------------------------------- tables of other libraries


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
