"""Rows of tables that are probably mistakes, and the sets that tables show."""

import pandas as pd
import pytest
from refusal import refused

from multiplay._support.csv_format import CsvFormat
from multiplay._support.frames import TableFile
from multiplay.actions.importers.table_cleaning import Finding, cleaned, findings
from multiplay.actions.importers.table_columns import Columns
from multiplay.actions.importers.table_sets import usual_set

COLUMNS = Columns(("from", "to"), "day", "cost")
USUAL = [("1.3.2026", "Hamburg", "Edeka", "120,50")] * 30 + [("2.3.2026", "Köln", "Ulm", "99")] * 30


def file(*rows: tuple[object, ...], columns: Columns = COLUMNS, usual: bool = True) -> TableFile:
    """Return a table with usual rows, which differ by a number, and these after them."""
    names = [columns.round, *columns.arm, columns.loss]
    frame = pd.DataFrame([*(USUAL if usual else []), *rows], columns=names)
    frame["number"] = range(len(frame))
    return TableFile(frame, CsvFormat(separator=";", decimal=",", thousands="."))


def found(table: TableFile, columns: Columns = COLUMNS) -> list[tuple[str, int, str]]:
    shift = len(USUAL)
    return [(one.kind, one.rows[0] - shift, one.meant) for one in findings(table, columns)]


@pytest.mark.parametrize(
    "name", ["Summe", "Zwischensumme März", "Total", "Subtotal", "TOTALE", "Somme"]
)
def test_sums_of_rows_are_found(name: str) -> None:
    for row in ((name, None, None, "7.215,00"), (None, name, None, "9"), (None, None, name, "9")):
        assert found(file(row)) == [("subtotal", 0, "")]
    driven = ("2.3.2026", "Köln", "Total Tankstelle", "80")  # a customer of this name
    assert found(file(driven)) == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Hamurg", "Hamburg"),
        ("Hambrug", "Hamburg"),
        ("HAMBURG", "Hamburg"),
        ("Koln", "Köln"),
        ("Köln 2", ""),
        ("Homberg", ""),
        ("Kiel", ""),
    ],
)
def test_misspelt_names_are_found(name: str, meant: str) -> None:
    table = file(("1.3.2026", name, "Edeka", "118"))
    wanted = [("misspelt", 0, meant)] if meant else []
    assert found(table) == wanted
    known = [f"{name}->Edeka", "Hamburg->Edeka", "Köln->Ulm"]
    assert findings(table, COLUMNS, known) == [], "a name of the study is not misspelt"


def test_frequent_names_that_are_near_are_different() -> None:
    rows = [("1.3.2026", name, "Edeka", f"{k}") for k in range(20) for name in ("Essen", "Hessen")]
    assert found(file(*rows)) == []


def test_negative_costs_are_mistakes_unless_they_are_many() -> None:
    assert found(file(("1.3.2026", "Köln", "Ulm", "-95,00 €"))) == [("negative", 0, "")]
    assert found(file(*[("1.3.2026", "Köln", "Ulm", "-95,00 €")] * 30)) == []


def test_equal_rows_are_mistakes_where_they_are_few() -> None:
    few = file()
    few.frame.loc[60] = few.frame.loc[59]
    (finding,) = findings(few, COLUMNS)
    assert (finding.kind, finding.rows, finding.is_sure) == ("duplicate", (60,), True)
    fixed = few._replace(frame=few.frame.drop(columns="number"))  # prices that never change
    assert {one.is_sure for one in findings(fixed, COLUMNS)} == {False}
    with_ids = COLUMNS._replace(id="number")
    assert findings(few, with_ids)[0].is_sure


def test_findings_that_are_accepted_are_left_out_or_joined() -> None:
    table = file(("Summe", None, None, "9"), ("1.3.2026", " Hamurg ", "Edeka", "7"))
    everything = findings(table, COLUMNS)
    assert [one.text for one in everything] == ["Summe · 9 · 60", "Hamurg"]
    rows = cleaned(table, COLUMNS, everything).frame
    assert len(rows) == 61
    assert rows.loc[61, "from"] == "Hamburg"
    kept = cleaned(table, COLUMNS, []).frame
    assert len(kept) == 62
    assert kept.loc[61, "from"] == "Hamurg", "spaces are no part of a name"


@pytest.mark.parametrize("clock", [" {:02}:15", "T{:02}:15:00", ", {}:15 Uhr"])
def test_times_of_the_day_are_left_out_where_each_row_has_one(clock: str) -> None:
    rows = [
        (f"{day:02}.03.2026" + clock.format(7 + hour), "A", "B", f"{hour}")
        for day in (1, 2, 3)
        for hour in range(4)
    ]
    table = file(*rows, usual=False)
    (finding,) = findings(table, COLUMNS)
    assert (finding.kind, finding.text, finding.meant) == ("times", rows[0][0], "01.03.2026")
    days = cleaned(table, COLUMNS, [finding]).frame["day"]
    assert days.tolist() == [row[0][:10] for row in rows]
    assert cleaned(table, COLUMNS, []).frame["day"].tolist() == [row[0] for row in rows]
    by_hour = file(*[row for row in rows for _ in range(3)], usual=False)
    assert "times" not in {one.kind for one in findings(by_hour, COLUMNS)}, "a plan for each time"
    by_day = file(*rows[::4], usual=False)
    assert "times" not in {one.kind for one in findings(by_day, COLUMNS)}, "one time each day"


def test_a_row_of_several_units_is_shared_among_them() -> None:
    columns = Columns(("from", "to"), "day", "cost", "number", "n")
    table = file(("1.3.2026", "A", "B", "90,00 €"), ("1.3.2026", "A", "B", "?"), usual=False)
    table.frame["n"] = ["3", "0"]
    rows = cleaned(table, columns, []).frame
    assert rows["cost"].tolist() == [30.0, 30.0, 30.0]
    assert rows["number"].tolist() == ["0", "0/2", "0/3"]
    assert rows.index.tolist() == [0, 0, 0], "errors name the row of the file"
    for bad in ("1,5", "-1", "many", "5000"):
        table.frame["n"] = ["1", bad]
        with refused("table['n']"):
            cleaned(table, columns, [])


@pytest.mark.parametrize("mark", ["->", " → ", " - ", " \N{EN DASH} ", " => "])
def test_lanes_may_be_written_with_other_arrows(mark: str) -> None:
    columns = Columns(("lane",), "day", "cost")
    rows = [("1.3.2026", f"Bad Ems{mark}Ulm-West", "9"), ("1.3.2026", f"Köln{mark}Ulm-West", "9")]
    table = TableFile(pd.DataFrame(rows, columns=["day", "lane", "cost"]), CsvFormat())
    assert {*cleaned(table, columns, []).frame["lane"]} == {"Bad Ems->Ulm-West", "Köln->Ulm-West"}
    mixed = pd.DataFrame([*rows, ("1.3.2026", "radio", "9")], columns=["day", "lane", "cost"])
    names = cleaned(TableFile(mixed, CsvFormat()), columns, []).frame["lane"]
    assert names[0] == f"Bad Ems{mark}Ulm-West".strip(), "not all names are lanes"


def test_supplies_and_demands_are_usual_not_the_largest() -> None:
    """A mistake of one day, and a depot that opens late, do not change them."""
    days = [(day, "A", "x") for day in range(100) for _ in range(4)]
    days += [(day, "B", "y") for day in range(80, 100) for _ in range(3)]
    days += [(7, "A", "x")] * 5  # copied by mistake
    found = usual_set(pd.DataFrame(days, columns=["day", "from", "to"]), COLUMNS)
    assert (found.supply, found.demand) == ({"A": 4, "B": 3}, {"x": 4, "y": 3})
    assert found.peaks == {"A": 9}, "the user may know better"
    assert not found.slack


def test_a_finding_is_a_row_of_plain_values() -> None:
    one = Finding("negative", (3,), "text")
    assert one == ("negative", (3,), "text", "", "", True)
