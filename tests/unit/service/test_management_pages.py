"""Pages on which a study is managed, and tables that users upload or paste."""

import codecs
import csv
import importlib
import io
import re
import sys
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dirty_table import DirtyTable, cost_of
from page_client import Place, browsing
from refusal import refused
from trucks import ask_and_tell
from workbooks import HOSTILE

import multiplay as mp
from multiplay.actions.importers.table_columns import Columns, guessed_columns
from multiplay.service.pages import page_route, uploads
from multiplay.service.pages.forms import Form, UploadedFile

BASE = "/studies/lanes"
BILLS = "depot;town;date;euros\nLyon;north;2026-03-01;120,5\nLille;south;2026-03-02;80\n"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with browsing(f"sqlite:///{tmp_path / 'plans.db'}") as found:
        yield found


def opened(place: Place, name: str = "lanes") -> mp.Study:
    return mp.Study.open(name, store=place.store)


# ---------------------------------------------------------------- words, names, copies


def test_a_study_is_renamed_copied_and_deleted_by_forms_alone(place: Place) -> None:
    ask_and_tell(place.study(), 2)
    with opened(place) as study:
        head = study.head
    done = place.post(f"{BASE}/rename", new=" Straßen/2026 ")
    assert done.headers["location"] == "/studies/Stra%C3%9Fen%2F2026/settings?done=renamed"
    base = done.headers["location"].partition("/settings")[0]
    assert "The study has its new name" in place.get(f"{base}/settings?done=renamed").text
    assert place.get(BASE).status_code == place.get(f"{BASE}/settings").status_code == 404
    assert place.post(f"{base}/copy", copy="trial").headers["location"].endswith("done=copied")
    for name in ("Straßen/2026", "trial"):
        with opened(place, name) as study:
            assert study.head == head
    for field, verb in (("new", "rename"), ("copy", "copy")):
        for bad in ("trial", "", "  ", "..", "a\nb", "x" * 300):
            refusal = place.post(f"{base}/{verb}", **{field: bad})
            assert refusal.status_code == 422, bad
            assert f'id="{field}-error"' in refusal.text
            assert "sqlite" not in refusal.text
    for typed in ("", "trial ?", "TRIAL"):
        refusal = place.post("/studies/trial/delete", typed=typed)
        assert refusal.status_code == 422
        assert "Type the name of the study" in refusal.text
    assert (
        place.post("/studies/trial/delete", typed="trial").headers["location"] == "/?done=deleted"
    )
    assert "The study was deleted" in place.get("/?done=deleted").text
    assert mp.Study.names(store=place.store) == ["Straßen/2026"]


def test_words_are_changed(place: Place) -> None:
    place.study()
    typed = {"currency": "EUR", "unit": "truck", "arm": "lane", "round": "day"}
    assert place.post(f"{BASE}/words", **typed).headers["location"] == f"{BASE}/settings?done=words"
    with opened(place) as study:
        assert study.words == tuple(typed.values())
        assert place.post(f"{BASE}/words", currency="", unit="lorry").status_code == 303
        assert study.words == ("", "lorry", "lane", "day")
        bad = place.post(f"{BASE}/words", currency="x" * 50, unit="van")
        assert bad.status_code == 422
        assert 'id="currency-error"' in bad.text
        assert study.words.unit == "lorry"


def test_the_range_is_changed_and_everything_is_learned_again(place: Place) -> None:
    ask_and_tell(place.study(policy=mp.PooledCTS()), 3)
    done = f"{BASE}/settings?done=range"
    page = place.get(f"{BASE}/settings").text
    assert "Today: costs of a unit from 0 to 250." in page
    assert place.get(f"{BASE}/range").headers["location"] == f"{BASE}/settings"
    with opened(place) as study:
        before, plays = study.arms()["average"].tolist(), study.plays()["id"].tolist()
        for low, high, said in (
            ("0", "400", "losses from 0 to 400"),
            ("-50", " 512,5 ", "losses from -50 to 512.5"),
        ):
            assert place.post(f"{BASE}/range", low=low, high=high).headers["location"] == done
            assert study.loss_range == said
        shown = place.get(done).text
        assert "The range was saved. All bills were learned again with it." in shown
        assert "Today: costs of a unit from -50 to 512.5." in re.sub("<[^>]*>", "", shown)
        assert study.arms()["average"].tolist() == pytest.approx(before, nan_ok=True)
        assert study.plays()["id"].tolist() == plays
        entry = study.head
        for low, high, field in (
            ("0", "x", "high"),
            ("x", "9", "low"),
            ("9", "3", "high"),
            ("0", "1", "high"),  # losses that were told are outside
        ):
            refusal = place.post(f"{BASE}/range", low=low, high=high)
            assert refusal.status_code == 422, (low, high)
            assert f'id="{field}-error"' in refusal.text
            assert "sqlite" not in refusal.text
        assert (study.loss_range, study.head) == ("losses from -50 to 512.5", entry)
        assert place.post(f"{BASE}/range", low="0", high="").headers["location"] == done
        play = study.ask()
        study.tell(play.id, {lane: 900.0 * units for lane, units in play.plan.items()})
        assert study.loss_range == "losses from -50 to 1075"
        assert study.verify().ok


def test_the_range_of_a_policy_that_needs_it_stays(place: Place) -> None:
    place.study(policy=mp.GenLBINFV(anytime=True))
    for high in ("400", ""):
        refusal = place.post(f"{BASE}/range", low="0", high=high)
        assert refusal.status_code == 422
        assert "a policy whose range of losses may change" in refusal.text
    with opened(place) as study:
        assert study.loss_range == "losses from 0 to 250"


def test_plans_are_exported(place: Place) -> None:
    study = place.study(words=mp.Words(arm="lane"))
    ask_and_tell(study, 2)
    links = re.findall(rf'href="({BASE}/export[^"]*)" download', place.get(f"{BASE}/settings").text)
    links += [f"{BASE}/export?format=csv", f"{BASE}/export?format=csv&wide=true"]
    found = [place.get(unescape(link)) for link in links]
    assert [file.status_code for file in found] == [200] * 4
    assert all("attachment" in file.headers["content-disposition"] for file in found)
    assert found[0].content.startswith(b"PK")
    assert len(found[1].text.splitlines()) == len(study.plans())
    assert len(found[2].text.splitlines()) == 1 + len(study.plans())
    assert len(found[3].text.splitlines()) == 3
    assert place.get(f"{BASE}/export?format=exe").status_code == 404
    assert place.get("/studies/none/export").status_code == 404


@pytest.mark.parametrize(
    ("language", "chosen", "separator", "mark"),
    [
        ("de-AT,en;q=0.5", "", ";", ","),
        ("en-US", "", ",", "."),
        ("de", "&separator=tab&decimal=point", "\t", "."),
        ("en", "&separator=comma&decimal=comma", ",", ","),
    ],
)
def test_a_csv_file_is_written_for_the_spreadsheet_of_the_reader(
    place: Place, language: str, chosen: str, separator: str, mark: str
) -> None:
    """Keys are texts, also where they look like numbers."""
    study = place.study()
    play = study.ask(key="1.5")
    study.tell(play, {name: [60.25] * units for name, units in play.plan.items()})
    headers = {"accept-language": language}
    content = place.get(f"{BASE}/export?format=csv{chosen}", headers=headers).content
    assert content.startswith(codecs.BOM_UTF8), "Excel reads it as UTF-8"
    rows = [*csv.DictReader(io.StringIO(content.decode("utf-8-sig")), delimiter=separator)]
    assert {row["key"] for row in rows} == {"1.5"}
    for row in rows:
        total = f"{60.25 * play.plan[row[study.words.arm]]:g}".replace(".", mark)
        assert row["cost"] == (total if play.plan[row[study.words.arm]] else "")
    page = place.get(f"{BASE}/settings", headers=headers).text
    assert re.findall(r'value="(comma|point|semicolon)" selected', page) == [
        *(("semicolon", "comma") if language.startswith("de") else ("comma", "point"))
    ]


@pytest.mark.parametrize(
    ("can", "study", "allowed"),
    [
        ("read", None, set()),
        ("play", None, {"words", "import", "range"}),
        ("manage", "lanes", {"words", "import", "range", "delete"}),
    ],
)
def test_permissions(place: Place, can: str, study: str | None, allowed: set[str]) -> None:
    place.study()
    place.log_in(can, study=study)
    page = place.get(f"{BASE}/settings")
    assert page.status_code == 200
    links = rf'(?:method="post" action="{BASE}/|href="{BASE}/(?=import))(\w+)"'
    forms = set(re.findall(links, page.text))
    assert forms == allowed
    for verb in {"words", "range", "rename", "copy", "delete"} - allowed:
        typed = {"new": "a", "copy": "b", "typed": "no", "unit": "van"}
        assert place.post(f"{BASE}/{verb}", **typed).status_code == 403, verb
    if "import" not in allowed:
        assert place.get(f"{BASE}/import").status_code == 403
        assert place.post(f"{BASE}/import", content=BILLS).status_code == 403
    assert mp.Study.names(store=place.store) == ["lanes"]


# ---------------------------------------------------------------- past bills


def sheet(table: pd.DataFrame) -> bytes:
    file = io.BytesIO()
    table.to_excel(file, index=False)
    return file.getvalue()


def filled(page: Any) -> dict[str, str]:
    """Return the input of the form that shows a table, as a browser would send it."""
    form = page.text[page.text.index('class="reading"') :]
    found = re.findall(r'<input id="[\w-]+" name="(\w+)" value="([^"]*)"', form)
    found += re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)
    found += re.findall(r'<textarea[^>]* name="(\w+)"[^>]*>\n(.*?)</textarea>', form, re.DOTALL)
    tick = r'<input type="(?:radio|checkbox)" name="([\w-]+)" value="([^"]*)" checked'
    found += re.findall(tick, form)
    for name, options in re.findall(r'<select id="([\w-]+)"(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', options)
        found += [(name, chosen[1])] if chosen else []
    unsent = ("mark", "request")
    return {name: unescape(value) for name, value in found if name not in unsent}


def confirmed(place: Place, page: Any, **typed: str) -> Any:
    """Send the form that shows a table for a study, as a browser does."""
    values = filled(page) | typed
    return place.post(f"{BASE}/import", **{name: values[name] for name in values if values[name]})


def test_a_preview_says_what_costs_are_like(place: Place) -> None:
    """The five sentences of ``check_data``, where they are asked for, in words of the page."""
    place.study()
    rng, x, rows = np.random.default_rng(7), np.zeros(2), ["date;lane;EUR"]
    for day in pd.date_range("2026-01-05", periods=80):
        x = 0.9 * x + 0.1 * rng.standard_normal(2)
        costs = (np.array([120, 180]) * (1 + x)).round(2).tolist()
        lanes = ("Lyon->north", "Lyon->south")
        rows += [f"{day:%Y-%m-%d};{one};{cost}" for one, cost in zip(lanes, costs, strict=True)]
    for action in (f"{BASE}/import", "/new/table"):
        page = place.post(action, content="\n".join(rows))
        assert "Deviations persist" not in page.text
        assert 'name="like"' in page.text
        again = place.post(action, **filled(page) | {"like": "yes"})
        words = " ".join(unescape(re.sub(r"<[^>]*>", " ", again.text)).split())
        assert "Deviations persist:" in words
        assert "Use “Lanes learn from each other, costs that persist are followed" in words
        assert "Persists()" not in words
    with opened(place) as study:
        assert study.head.number == 0


@pytest.mark.parametrize("kind", ["pasted", "csv", "xlsx"])
def test_bills_are_previewed_and_learned(place: Place, kind: str) -> None:
    place.study(policy=mp.BootstrapCTS())
    if kind == "pasted":
        page = place.post(f"{BASE}/import", content=BILLS.replace(";", "\t"))
    elif kind == "csv":
        page = place.upload(f"{BASE}/import", "bills.csv", BILLS.encode("utf-8-sig"))
    else:
        table = pd.read_csv(io.StringIO(BILLS), sep=";", decimal=",", parse_dates=["date"])
        page = place.upload(f"{BASE}/import", "bills.xlsx", sheet(table))
    assert page.status_code == 200
    words = " ".join(re.sub(r"<[^>]*>", " ", page.text).split())
    for said in ("2 rows", "2 days, 2026-03-01 to 2026-03-02", "2 lanes", "total 200", "120"):
        assert said in words
    with opened(place) as study:
        assert study.head.number == 0  # nothing is learned yet
        done = confirmed(place, page, learn="yes")
        assert done.headers["location"] == f"{BASE}?done=imported&count=2"
        said = "New rows that were imported: 2"
        assert said in place.get(f"{BASE}?done=imported&count=2").text
        arms = study.arms().set_index("arm")
        assert arms["seen"].to_dict() == {
            "Lyon->north": 1,
            "Lyon->south": 0,
            "Lille->north": 0,
            "Lille->south": 1,
        }
        assert arms.loc["Lyon->north", "average"] == 120.5
        assert study.verify().ok


def test_excel_files_need_no_other_package(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The service, the command line and Python read and write them by themselves."""
    table = pd.read_csv(io.StringIO(BILLS), sep=";", decimal=",", parse_dates=["date"])
    content = sheet(table)
    for name in [name for name in sys.modules if name.partition(".")[0] == "openpyxl"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError):
        importlib.import_module("openpyxl")
    page = place.upload("/new/table", "bills.xlsx", content)
    assert place.post("/new/table", **filled(page), create="yes").status_code == 303
    (tmp_path / "bills.xlsx").write_bytes(content)
    with opened(place, "bills") as study:
        assert study.arms()["seen"].sum() == 2
        again = study.learn_table(tmp_path / "bills.xlsx", ("depot", "town"), "date", "euros")
        assert (again.seen, again.known) == (0, 2)
        study.export(tmp_path / "plans.xlsx")
    assert place.get("/studies/bills/export?format=xlsx").content.startswith(b"PK")


def test_a_table_that_is_known_is_not_imported_again_and_an_import_is_undone(place: Place) -> None:
    place.study()
    year = "invoice;lane;date;cost\n" + "".join(
        f"{number};Lyon->north;2026-03-{number:02};120\n" for number in range(1, 6)
    )
    first = place.upload(f"{BASE}/import", "bills 2026.csv", year.encode())
    assert '<option value="invoice" selected>' in first.text
    assert confirmed(place, first, learn="yes").status_code == 303
    again = place.upload(f"{BASE}/import", "bills 2026.csv", year.encode())
    assert "5 known, 0 new" in re.sub("<[^>]*>", "", again.text)
    assert 'value="yes">Import' not in again.text
    year += "6;Lyon->north;2026-03-01;120"
    longer = place.upload(f"{BASE}/import", "bills 2026.csv", year.encode())
    assert "5 known, 1 new" in re.sub("<[^>]*>", "", longer.text)
    assert "Import 1 row<" in longer.text
    assert confirmed(place, longer, learn="yes").headers["location"].endswith("count=1")
    listed = place.get(f"{BASE}/import").text
    assert re.search(r"bills 2026.csv: 5 \w+ of 5 days, 2026-03-01 to 2026-03-05", listed)
    assert 'value="bills 2026.csv (2)"' in listed
    undone = place.post(f"{BASE}/undo-import", name="bills 2026.csv")
    assert undone.headers["location"] == f"{BASE}/import?done=undone"
    with opened(place) as study:
        assert [one.retracted for one in study.imports()] == [True, False]
        assert study.arms()["seen"].sum() == 1
    assert place.post(f"{BASE}/undo-import", name="bills 2026.csv").status_code == 409


def test_rows_with_problems_are_listed_and_may_be_left_out(place: Place) -> None:
    place.study(policy=mp.BootstrapCTS())
    rows = [f"Lyon->north,2026-03-{day:02},{day}" for day in range(1, 13)]
    bad = [f"Lyon->north,2026-04-{day:02},cheap<b>" for day in range(1, 13)]
    content = "\n".join(["lane,day,cost", *rows, *bad, "Metz->north,2026-03-20,9"])
    page = place.post(f"{BASE}/import", content=content)
    text = unescape(page.text)
    assert "12 rows have problems" in text
    assert "row 14, cost: 'cheap<b>'" in text
    assert "cheap<b>" not in page.text
    assert "And 2 more." in text
    assert "New, and will be added:</b> Metz→north" in page.text
    with opened(place) as study:
        refusal = confirmed(place, page, learn="yes", skip="")
        assert refusal.status_code == 422
        assert 'id="skip-error"' in refusal.text
        assert 'name="skip" value="yes" checked' not in refusal.text
        assert study.head.number == 0
        assert confirmed(place, page, learn="yes").status_code == 303  # the tick is set
        assert study.arms()["seen"].sum() == 13
        assert "Metz->north" in study.known_arms


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("bomb.xlsx", HOSTILE["a bomb"](), "bytes after unpacking"),
        ("far.xlsx", HOSTILE["a far cell in single quotes"](), "at most 200 columns"),
        ("entities.xlsx", HOSTILE["entities"](), "XML entities"),
        ("cut.xlsx", sheet(pd.DataFrame({"a": [1]}))[:-200], "an Excel file"),
        ("text.xlsx", b"depot,town", "an Excel file"),
        ("picture.csv", b"\x89PNG\r\n\x00\x00\x00", "a binary file"),
        ("empty.csv", b"", "Expected a"),
        ("header.csv", b"lane,day,cost\n", "rows"),
        ("wide.csv", (",".join(f"c{k}" for k in range(300)) + "\n1").encode(), "200 columns"),
        ("ragged.csv", b"lane,day,cost\na,1,2,3,4\n", "as many cells in a row"),
        ("utf-16.csv", "lane,day,cost\na,1,2\n".encode("utf-16")[:-1], "damaged utf-16"),
        ("cell.csv", b"lane,day,cost\na,1," + b"x" * 200_000, "cells of at most 131,072"),
        ("lines.csv", b"lane,day,cost\na,1,2" + b"\n" * 10**6, "at most 100,000 lines"),
        ("quote.csv", b'lane,day,cost\n"a,1,2\n', "a CSV file"),
        ("one.csv", b"lane\nLyon->north\n", "Choose the columns"),
        ("none.csv", b"a,b,c\n\xff,\xfe,\x80\n", "Choose the columns"),
    ],
)
def test_files_that_cannot_be_read_change_nothing(
    place: Place, name: str, content: bytes, said: str
) -> None:
    place.study(policy=mp.BootstrapCTS())
    page = place.upload(f"{BASE}/import", name, content, learn="yes")
    assert page.status_code == 422
    assert said in unescape(page.text)
    with opened(place) as study:
        assert study.head.number == 0


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_workbooks_are_refused(name: str) -> None:
    """What they contain is counted before any of it is kept."""
    with refused("file"):
        uploads.uploaded(Form({}, {}, {"file": UploadedFile("a.xlsx", HOSTILE[name]())}))


def test_lines_of_a_table_may_end_with_a_carriage_return(place: Place) -> None:
    place.study(policy=mp.BootstrapCTS())
    content = b"lane,day,cost\rLyon->north,2026-03-01,80\rLyon->north,2026-03-02,81\r"
    assert place.upload(f"{BASE}/import", "mac.csv", content, learn="yes").status_code == 303
    with opened(place) as study:
        assert study.arms()["seen"].sum() == 2


def test_files_are_read_before_a_deadline(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    study, content = place.study(), BILLS.encode()
    play = study.ask()
    monkeypatch.setattr(page_route, "READING", -1.0)
    for path in ("/new/table", f"{BASE}/import", f"{BASE}/plays/{play.id}/fill"):
        page = place.upload(path, "a.csv", content)
        assert page.status_code == 422
        assert "a file that is read in time" in page.text


def test_columns_are_recognised_by_their_names_or_values() -> None:
    known = ("Lyon->north", "Lille->south")
    for table, arms, columns in (
        ({"Ware": "a", "Kunde": "b", "n": 3.5}, (), (("Ware",), "Kunde", "n")),
        ({"from": "a", "to": "b", "day": 1, "cost": 2.0}, (), (("from", "to"), "day", "cost")),
        ({"cost": 2, "when": 1, "lane": "x"}, (), (("lane",), "when", "cost")),
        ({"x": "north", "y": "Lyon", "z": 1, "v": 2.0}, known, (("y", "x"), "z", "v")),
        ({"day": 3, "x": "Lyon->north", "EUR": 9}, known, (("x",), "day", "EUR")),
        ({"only": "x"}, (), (("only",), "", "")),
    ):
        assert guessed_columns(pd.DataFrame([table]), arms) == Columns(*columns)


# ---------------------------------------------------------------- a new study from a file


def days(*bills: str) -> bytes:
    """Return bills of three days: one truck of each lane, and one more on the second day."""
    rows = [f"{one},2026-03-0{day},{80 + day}.5" for day in (1, 2, 3) for one in bills]
    return "\n".join(["Depot,Town,Date,Cost in EUR", *rows, f"{bills[0]},2026-03-02,99"]).encode()


def test_a_study_begins_with_a_file_of_bills(place: Place) -> None:
    content = days("Lyon,north", "Lyon,south", "Lille,south")
    page = place.upload("/new/table", "roads 2026.csv", content)
    assert page.status_code == 200
    typed = filled(page)
    wanted = {
        "name": "roads 2026",
        "kind": "transport",
        "supply": "Lyon 3\nLille 1",
        "demand": "north 1\nsouth 2",
        "slack": "yes",
        "low": "0",
        "currency": "EUR",
        "policy": "PooledCTS",
    }
    assert {name: typed[name] for name in wanted} == wanted
    assert mp.Study.names(store=place.store) == []
    done = place.post("/new/table", **typed | {"unit": "truck", "create": "yes"})
    base, today = "/studies/roads%202026", f"{datetime.now(UTC):%Y-%m-%d}"
    assert done.headers["location"] == f"{base}?done=began&count=10&play=1"
    with opened(place, "roads 2026") as study:
        assert study.words == ("EUR", "truck", "lane", "day")
        assert study.actions.names == ("Lyon->north", "Lyon->south", "Lille->north", "Lille->south")
        assert study.arms()["seen"].sum() == 10
        (play,) = study.pending()
        assert play.key == today
        assert sum(play.plan.values()) == 3  # the demand, not all of the supply
    again = place.upload("/new/table", "roads 2026.csv", content)
    assert f'formaction="{base}/import"' in again.text
    known = place.post(f"{base}/import", **filled(again))
    assert "10 known, 0 new" in re.sub("<[^>]*>", "", known.text)


def test_a_year_with_mistakes_leads_to_the_best_plan_of_today(place: Place) -> None:
    """Fuel and distances before the costs, sums, a misspelt depot, one that opens, and a jump."""
    made = DirtyTable(seed=8)
    file = "Frachten 2025.csv", made.text.encode("cp1252")
    typed = filled(place.upload("/new/table", *file))
    done = place.post("/new/table", **typed, create="yes")
    base = "/studies/Frachten%202025"
    assert done.headers["location"] == f"{base}?done=began&count={len(made.bills)}&play=1"
    with opened(place, "Frachten 2025") as study:
        assert study.words == ("EUR", "truck", "lane", "day")
        (play,) = study.pending()
        sent = {tuple(lane.split("->")): units for lane, units in play.plan.items() if units}
        assert sent == made.best, "that of HiGHS for the true costs after the jump"
        truth = cost_of(made.best, made.truth)
        assert play.expected.low - 0.01 * truth < truth < play.expected.high + 0.01 * truth
        head = study.head
        known = place.upload(f"{base}/import", *file)
        count = f"{len(made.bills):,} known, 0 new"
        assert count in re.sub("<[^>]*>", "", known.text)
        assert study.head == head


KM = {"Lyon->north": 450, "Lyon->south": 120, "Lille->north": 90, "Lille->south": 700}


def priced_days(lanes: Collection[str] = tuple(KM)) -> list[dict[str, Any]]:
    """Return a bill of each lane on twelve days: so much for a kilometre, times a price of fuel."""
    noise = np.random.default_rng(3)
    return [
        {"arm": lane, "round": f"2026-03-{day:02}", "km": KM[lane], "fuel": 1.5 + day / 100,
         "rain": day % 2, "loss": round(KM[lane] * (1.5 + day / 100) + noise.normal(), 2)}
        for day in range(1, 13) for lane in lanes
    ]  # fmt: skip


def german_file(rows: list[dict[str, Any]]) -> bytes:
    """Return a German file of bills, with the price of fuel as text."""
    lines = ["Datum;Von;Nach;km;Diesel;Regen;Fahrer;Kosten"]
    for place, row in enumerate(rows):
        source, target = row["arm"].split("->")
        numbers = [f"{row['fuel']:.2f} €", row["rain"], f"F{place % 5}", f"{row['loss']:.2f}"]
        cells = [row["round"], source, target, row["km"], *numbers]
        lines.append(";".join(map(str, cells)).replace(".", ","))
    return "\n".join(lines).encode()


def test_a_new_study_has_features_of_the_columns_of_its_file(place: Place) -> None:
    """It believes what a study believes that is created with them in Python."""
    rows = priced_days()
    page = place.upload("/new/table", "roads.csv", german_file(rows))
    offered = dict(re.findall(r'<label for="(feature-\d)">(\w+) <', page.text))
    assert offered == {"feature-3": "km", "feature-4": "Diesel", "feature-5": "Regen"}, (
        "the driver changes within lanes and days"
    )
    chosen = filled(page) | {"feature-3": "adds", "feature-4": "multiplies", "create": "yes"}
    done = place.post("/new/table", **chosen)
    assert done.headers["location"].endswith("&play=1"), done.text
    table = pd.DataFrame(rows).rename(columns={"fuel": "Diesel"})
    lanes = pd.DataFrame({"km": KM})
    with opened(place, "roads") as study:
        declared = study.features
        assert declared is not None
        assert (*declared.columns, *declared.multiplies) == ("km", "Diesel", "Diesel")
        assert study.day_features() == {"Diesel": 1.62}, "the last day of the table"
        same = mp.Learner(study.actions, features=declared, arm_features=lanes)
        same.learn_table(table[["arm", "round", "loss", "Diesel", "km"]])
        believed, wanted = study.arms(), same.arms(features={"Diesel": 1.62})
        columns = ["mean", "low", "high", "seen"]
        np.testing.assert_allclose(believed[columns], wanted[columns], rtol=1e-9)
    shown = place.get("/studies/roads").text
    assert 'id="feature0"' in shown, "the price of fuel of the next day"
    assert "km" in place.get("/studies/roads/lanes").text
    more = [row | {"round": "2026-04-01"} for row in rows[:4]]
    page = place.upload("/studies/roads/import", "april.csv", german_file(more))
    assert re.findall(r'class="role">([a-z]+)', page.text) == [
        "date", "from", "to", "feature", "feature", "cost"
    ]  # fmt: skip
    assert place.post("/studies/roads/import", **filled(page), learn="yes").status_code == 303


def test_a_feature_that_a_lane_lacks_is_refused(place: Place) -> None:
    page = place.upload("/new/table", "roads.csv", german_file(priced_days([*KM][:3])))
    chosen = filled(page) | {"feature-3": "adds", "create": "yes"}
    refused = place.post("/new/table", **chosen)
    assert refused.status_code == 422
    assert "no value for Lille-&gt;south" in refused.text
    assert re.search(r'id="feature-3"[^>]* aria-invalid="true"', refused.text)
    assert mp.Study.names(store=place.store) == []
    place.post("/new/table", **chosen | {"feature-3": "", "feature-5": "adds"})
    with opened(place, "roads") as study:
        assert study.features == mp.Features(Regen=mp.Flag())


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"supplier;customer\nLyon;north\nLille;south", {"supply": "Lyon 1\nLille 1"}),
        (
            b"supplier,customer,supply,demand\nLyon,north,5,2\nLyon,south,5,3",
            {"supply": "Lyon 5", "demand": "north 2\nsouth 3"},
        ),
        (
            b"lane,day,cost\nLyon->north,1,9\nLyon->north,1,9",
            {"supply": "Lyon 2", "kind": "transport"},
        ),
        (
            b"channel,day,cost\nradio,1,9\nradio,1,9\ntv,2,4",
            {"caps": "radio 2\ntv 1", "kind": "budget"},
        ),
        (
            b"from;to;day;cost\na;b;1;9,5\na;b;2;cheap",
            {"supply": "a 1"},
        ),
        (  # customers in another language, groups of digits, and a bill without a number
            "Datum;Depot;Kunde;Betrag (EUR)\n1.3.2026;Köln;Ulm;1.200,50\n"
            "1.3.2026;Köln;Ulm;800,00\n2.3.2026;Köln;Aalen;strittig\n"
            "2.3.2026;Köln;Aalen;90,00".encode(),
            {"kind": "transport", "demand": "Ulm 2\nAalen 2", "currency": "EUR"},
        ),
        (b"depot,town,day,cost\n007,NA,1,9", {"supply": "007 1", "demand": "NA 1"}),
    ],
)
def test_what_is_recognised_fills_the_form(
    place: Place, content: bytes, wanted: dict[str, str]
) -> None:
    page = place.upload("/new/table", "a.csv", content)
    assert page.status_code == 200
    typed = filled(page)
    assert {name: typed[name] for name in wanted} == wanted
    assert place.post("/new/table", **typed, create="yes").status_code == 303


TOWNS = ("Bonn", 90), ("Kiel", 250)


@pytest.mark.parametrize(
    ("above", "names", "first"),
    [
        ("", "Tag;Von;Nach;Kosten\n", 2),
        ("Frachten, Stand 1.4.2026\n\n", "Tag;Von;Nach;Kosten\n", 4),
        ("Frachten;;;\n;;;\n", "Tag;Von;Nach;Kosten\n", 4),
        ("", "", 1),
    ],
)
def test_a_title_and_names_of_columns_may_be_there_or_not(
    place: Place, above: str, names: str, first: int
) -> None:
    """Rows keep the numbers that a spreadsheet shows."""
    rows = [f"{day}.3.2026;Ulm;{to};{cost},50" for day in (1, 2, 3, 4) for to, cost in TOWNS]
    rows[2] = "2.3.2026;Ulm;Bonn;?"
    content = above + names + "\n".join(rows)
    page = place.upload("/new/table", "roads.csv", content.encode())
    assert page.status_code == 200, page.text
    assert f"row {first + 2}, " in page.text
    shown = re.findall(r'<span class="role[^"]*">([a-z ]+)</span>(\w+)', page.text)
    called = ("Tag", "Von", "Nach", "Kosten") if names else ("A", "B", "C", "D")
    assert shown == [*zip(("date", "from", "to", "cost"), called, strict=True)]
    again = place.post("/new/table", **filled(page))
    assert f"row {first + 2}, " in again.text, "the table is sent again as it was"


@pytest.mark.parametrize(
    "rows",
    [
        "lane,day,cost\nLyon,,1",
        "lane,day,cost\nLyon,1,1e308",
        "lane,day,cost\nLyon,1,1e-310",
        "lane,day,cost\nLyon,1,inf",
        "from,to,supply,demand\nLyon,north,inf,1e999",
        "from,to,supply,demand\nLyon,north,,",
    ],
)
def test_numbers_that_are_missing_or_extreme_are_left_to_the_user(place: Place, rows: str) -> None:
    page = place.upload("/new/table", "a.csv", rows.encode())
    assert page.status_code == 200
    assert "Lyon" in page.text


def test_files_that_are_no_lanes_are_refused(place: Place) -> None:
    many = "\n".join(["from,to", *(f"a{k},b" for k in range(600))]).encode()
    pairs = "\n".join(["lane", *(f"a{k}->b{k}" for k in range(30_000))]).encode()
    for name, content, said in (
        ("a.csv", b"", "Expected"),
        ("a.csv", b"from,to\n,\n", "Expected rows"),
        ("a.xlsx", b"PK", "an Excel file"),
        ("many.csv", many, "at most 500 names"),
        ("pairs.csv", pairs, "at most 500 names"),  # a lane for each pair would be a billion
        ("same.csv", b"a,a,a\n1,2,3\n", "columns for the names"),
    ):
        page = place.upload("/new/table", name, content)
        assert page.status_code == 422, said
        assert said in unescape(page.text)
    assert "Choose a file" in place.post("/new/table").text
    place.log_in("play")
    assert place.upload("/new/table", "a.csv", BILLS.encode()).status_code == 403
