"""Forms for a day of a planner: limits, a plan of the user, bills of a spreadsheet, old plans."""

import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from page_client import Place, browsing
from trucks import euros

import multiplay as mp
from multiplay.service.pages import bills, plan_forms
from multiplay.service.pages.forms import Form, UploadedFile
from multiplay.storage import store_at

PLAN = {"Lyon->north": 2, "Lille->south": 1}
DAY = "2026-11-17"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with browsing(f"sqlite:///{tmp_path / 'plans.db'}") as found:
        yield found


def send(place: Place, path: str, typed: dict[str, str], file: bytes = b"") -> Any:
    """Send a form as a browser does that has a field for a file."""
    files = {"file": ("bills.csv" if file else "", file)}
    return place.send(f"/studies/lanes/{path}", typed, files=files)


def values(text: str) -> dict[str, str]:
    """Return the values of the fields for units and costs of a page."""
    return dict(re.findall(r'name="((?:arm|unit)\d+)" value="([^"]*)"', text))


# ---------------------------------------------------------------- bills of a spreadsheet


def read(text: str, key: str | None = DAY, file: str = "") -> tuple[Any, dict[str, str]]:
    """Return the bills in a text, pasted or in a file, and the errors."""
    upload = {"file": UploadedFile(file, text.encode("utf-8-sig"))} if file else {}
    form = Form({} if file else {"rows": text}, files=upload)
    return bills.of_form(form, [*PLAN], key), form.errors


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("Lyon->north\t120\nLyon->north\t95,5\nLille->south\t80", ""),
        ("lane\tEUR\nlyon → North\t120\nLyon->north\t95,50 €\nLille->south\t80", ""),
        ("Lyon->north 120 95.5\n\nLille->south: 80\n", ""),
        ("Lyon->north; 120\nLyon->north; 95,5\nLille->south; 80", ""),
        ("from\tto\tcost\nLyon\tnorth\t120\nLyon\tnorth\t95.5\nLille\tsouth\t80", ""),
        ("date,depot,to,driver,cost\n2026-11-17,Lyon,north,A,120\n2026-11-17,Lyon,north,,95.5\n"
         "2026-11-17,Lille,south,B,80\n2026-11-16,Lille,south,B,1", "b.csv"),
        ("Tag;von;nach;Euro\n17.11.2026;Lyon;north;120\n17.11.2026;Lyon;north;95,5\n"
         "17.11.2026;Lille;south;80,00\n18.11.2026;Lille;south;1,0", "b.csv"),
        ("date,depot,to,cost\n17.11.26 08:15,Lyon,north,120\n11/17/2026,Lyon,north,95.5\n"
         "2026-11-17T09:00:00,Lille,south,80\n11/18/2026,Lille,south,1", "b.csv"),
    ],
)  # fmt: skip
def test_bills_are_read_as_a_spreadsheet_writes_them(text: str, file: str) -> None:
    found, errors = read(text, file=file)
    assert not errors
    assert found.costs == {"Lyon->north": [120, 95.5], "Lille->south": [80]}
    assert found.left_out == ("date" in text or "Tag" in text)


def test_bills_are_read_from_an_excel_file() -> None:
    table = pd.DataFrame(
        {
            "day": pd.to_datetime([DAY, DAY, DAY, "2026-11-16"]),
            "from": ["Lyon", "Lyon", "Lille", "Lille"],
            "to": ["north", "north", "south", "south"],
            "cost": [120.0, 12.345, None, 7.0],
        }
    )
    table["cost"] = table["cost"].astype(object).where(table["cost"].notna(), "-")
    content = io.BytesIO()
    table.to_excel(content, index=False)
    form = Form(files={"file": UploadedFile("Bills.XLSX", content.getvalue())})
    found = bills.of_form(form, [*PLAN], DAY)
    assert found is not None
    assert found.costs == {"Lyon->north": [120, 12.345], "Lille->south": [None]}
    assert found.left_out == 1


@pytest.mark.parametrize(
    ("text", "file", "said"),
    [
        ("Lyon->north\t120\nLyon->mars\t95", "", "in row 2, got 'Lyon->mars'"),
        ("Lyon->north\t120\nLyon->north\tmuch", "", "a number in row 2, got 'much'"),
        ("Lyon->north\nLyon->north 3", "", "one cost in row 1"),
        ("Lyon->north 1.234", "", "in row 1, got '1.234'"),
        ("Lyon->north\t1,234\nLyon->north\t1,235", "", "decimal mark"),
        ("lane\tkm\tmiles\nLyon->north\t12\t120", "", "one cost in row 2, got '12', '120'"),
        ("lane\tcost", "", "Expected rows"),
        ("   ", "", "Expected rows"),
        ("date;lane;cost\n2026-11-16;Lyon->north;3", "b.csv", "got 1 rows of other days"),
        ("", "b.csv", "Expected rows"),
        ("PK\x03\x04 no workbook", "b.xlsx", "an Excel file"),
        ("\x00\x01\x02", "b.csv", "Expected"),
        ("x" * 200_000 + ",1", "b.csv", "Expected"),
        ("Lyon->north 1\n" * 20_001, "", "at most 20000 rows"),
    ],
)
def test_rows_that_cannot_be_read_are_named(text: str, file: str, said: str) -> None:
    found, errors = read(text, file=file)
    assert found is None
    assert list(errors) == ["file" if file else "rows"]
    assert said in "".join(errors.values())


def test_bills_fill_the_fields_and_are_saved(place: Place) -> None:
    study = place.study()
    play = study.ask(key=DAY)
    lanes = [(lane, k) for lane, k in play.plan.items() if k]
    rows = [f"{lane}\t{10 * place},50" for place, (lane, k) in enumerate(lanes) for _ in range(k)]
    shown = send(place, "plays/1/fill", {"rows": "\n".join(rows)})
    assert shown.status_code == 200
    assert "Check the numbers" in shown.text
    filled = {
        f"arm{place}": " ".join([f"{10 * place}.5"] * k) for place, (_, k) in enumerate(lanes)
    }
    assert values(shown.text) == filled
    assert study.pending(), "nothing was saved"
    for typed in (dict[str, str](), {"rows": "Lyon->nowhere\t3"}):
        bad = send(place, "plays/1/fill", typed)
        assert bad.status_code == 422
        assert 'id="tell-rows-error"' in bad.text
        assert typed.get("rows", "").replace(">", "&gt;") in bad.text
    few = send(place, "plays/1/tell", {}, "\n".join(rows[:-1]).encode())
    assert few.status_code == 422
    assert study.pending()
    told = send(place, "plays/1/tell", {}, "\n".join(rows).encode())
    assert told.headers["location"].endswith("done=told")
    total = sum(10 * place + 0.5 for place, (_, k) in enumerate(lanes) for _ in range(k))
    assert study.plays()["realised"][0] == pytest.approx(total)


def test_a_unit_that_was_not_reported_is_marked_with_a_dash(place: Place) -> None:
    study = place.study()  # which refuses missing losses
    play = study.ask()
    units = [k for k in play.plan.values() if k]
    typed = {f"arm{place}": " ".join(["12,5"] * k) for place, k in enumerate(units)}
    typed["arm0"] = " ".join(["-"] + ["12,5"] * (units[0] - 1))
    assert place.post("/studies/lanes/plays/1/tell", **typed).status_code == 303
    assert study.plays()["seen"].tolist() == [sum(units) - 1]


# ---------------------------------------------------------------- the plan of a day


def test_the_plan_of_a_day_keeps_its_limits(place: Place) -> None:
    study = place.study()
    page = place.get("/studies/lanes").text
    assert "closed" in page
    limits = {"rule-arm0": "lyon→north", "rule0": "exclude"}
    limits |= {"rule-arm1": "Lyon->south", "rule1": "at_most", "rule-units1": "1"}
    day = {"key": DAY, "supply": "Lyon 1\nLille 4", "demand": "north 4\nsouth 1"}
    assert place.post("/studies/lanes/ask", **day, **limits).status_code == 303
    (play,) = study.pending()
    assert play.plan == {"Lyon->north": 0, "Lyon->south": 1, "Lille->north": 4, "Lille->south": 0}
    fixed = {"rule-arm0": "Lille->south", "rule0": "fixed", "rule-units0": "1"}
    assert place.post("/studies/lanes/ask", key="b", **fixed).status_code == 303
    assert study.pending()[1].plan["Lille->south"] == 1
    assert f'id="key" name="key" value="{next_of(study)}"' in place.get("/studies/lanes").text


def next_of(study: mp.Study) -> str:
    return plan_forms.next_day(study.plays()["key"], datetime.now(UTC).date())


@pytest.mark.parametrize(
    ("typed", "field", "said"),
    [
        ({"rule-arm0": "Lyon->mars"}, "rule-arm0", "no &#39;Lyon-&gt;mars&#39; today"),
        ({"rule-arm0": "Lyon->north", "rule0": "at_most", "rule-units0": "1,5"}, "rule-units0",
         "a whole number"),
        ({"rule-arm0": "Lyon->north", "rule0": "at_most"}, "rule-units0", "got nothing"),
        ({"rule-units2": "3"}, "rule-arm2", "Enter the name too"),
        ({"rule-arm0": "Lyon->north", "rule0": "exclude", "rule-arm1": "Lyon->north",
          "rule1": "exclude"}, "rule-arm1", "already"),
        ({"rule-arm0": "Lyon->north", "rule0": "fixed", "rule-units0": "9"}, "rule-arm0",
         "Expected"),
        ({"rule-arm0": "Lyon->north", "rule-arm1": "Lyon->south"}, "rule-arm0", "Expected"),
        ({"supply": "Lyon 1,5\nLille 4"}, "supply", "a whole number"),
    ],
)  # fmt: skip
def test_a_limit_that_cannot_be_kept_is_marked(
    place: Place, typed: dict[str, str], field: str, said: str
) -> None:
    study = place.study()
    bad = place.post("/studies/lanes/ask", key=DAY, **typed)
    assert bad.status_code == 422
    error = re.search(rf'id="{field}-error">([^<]*)', bad.text)
    assert error, bad.text
    assert said in error[1]
    for name, text in typed.items():
        kept = f'name="{name}" value="{text.replace(">", "&gt;")}"'
        assert kept in bad.text or name in ("rule0", "rule1", "supply")
    assert study.asked == 0


# ---------------------------------------------------------------- a plan of the user


def test_a_plan_of_the_user_is_compared_with_the_proposed_plan(place: Place) -> None:
    study = place.study(words=mp.Words(currency="EUR", unit="truck"))
    for _ in range(5):
        play = study.ask()
        study.tell(play, euros(play))
    proposed = study.ask(key=DAY)
    page = place.get("/studies/lanes").text
    units = [str(k or "") for k in proposed.plan.values()]
    assert list(values(page[page.index('id="other"') :]).values()) == units
    own = {"Lyon->north": 2, "Lyon->south": 0, "Lille->north": 2, "Lille->south": 1}
    typed = {f"unit{k}": str(units) for k, units in enumerate(own.values())}
    asked = study.head
    shown = send(place, "expect", typed)
    assert shown.status_code == 200
    said = re.findall(
        r"<dd>(?:<b>)?(.*?)(?:</b>)?</dd>", shown.text.partition('"outcomes answer"')[2]
    )
    texts = [re.sub(r"<[^>]*>", "", text) for text in said[:3]]
    expected = study.expect(own)
    assert texts[0] == study.words.estimate(*expected)
    assert texts[1] == study.words.estimate(*proposed.expected)
    more = expected.total - proposed.expected.total
    assert texts[2] == f"{study.words.money(abs(more))} {'more' if more > 0 else 'less'}"
    assert 'name="unit0" value="2"' in shown.text
    smaller = send(place, "expect", {"unit0": "1"})
    assert smaller.status_code == 200, "supplies and demands are those of the plan"
    assert "not the same deliveries" not in shown.text
    assert "north gets 1 instead of 4, south gets 0 instead of 1" in smaller.text
    assert study.head == asked, "nothing has changed"


def test_a_plan_that_was_driven_is_learned_once(place: Place) -> None:
    study = place.study()
    study.ask(key=DAY)
    rows = (
        "Lyon->north\t100\nLyon->north\t110,5\nLille->north\t90\nLille->north\t80\nLille->south\t70"
    )
    driven = {"day": DAY, "rows": rows, "discard": "1"}
    for _ in range(2):
        done = send(place, "own-plan", driven | {"request": "same"})
        assert done.headers["location"] == "/studies/lanes?done=own"
    assert not study.pending()
    assert study.plays()["status"].tolist() == ["cancelled"]
    seen = dict(zip(study.arms()["arm"], study.arms()["seen"], strict=True))
    assert seen == {"Lyon->north": 2, "Lyon->south": 0, "Lille->north": 2, "Lille->south": 1}
    again = send(place, "own-plan", driven | {"rows": rows.replace("70", "71")})
    assert again.status_code == 422
    assert 'id="day-error"' in again.text
    units = {"unit0": "3", "day": "2026-11-18", "rows": "Lyon->north 300"}
    assert send(place, "own-plan", units).status_code == 303, "a total, of another supply"
    assert study.verify().ok


@pytest.mark.parametrize(
    ("path", "typed", "field"),
    [
        ("expect", {}, ""),
        ("expect", {"unit0": "many"}, "own"),
        ("expect", {"unit0": "1.5"}, "own"),
        ("expect", {"unit0": "-1"}, "own"),
        ("expect", {"unit0": "9" * 20}, "own"),
        ("own-plan", {"rows": "Lyon->north 3", "day": ""}, "day"),
        ("own-plan", {"day": DAY}, "other-rows"),
        ("own-plan", {"day": DAY, "rows": "Lyon->north x"}, "other-rows"),
        ("own-plan", {"day": DAY, "rows": "Lyon->north 999"}, "other-rows"),
        ("own-plan", {"day": DAY, "rows": "Lyon->north 9 8", "unit0": "3"}, "other-rows"),
        ("own-plan", {"day": DAY, "rows": "Lyon->north 9", "unit3": "1"}, "other-rows"),
        ("own-plan", {"day": "x" * 201, "rows": "Lyon->north 9"}, "day"),
    ],
)
def test_a_plan_of_the_user_that_is_wrong_is_marked(
    place: Place, path: str, typed: dict[str, str], field: str
) -> None:
    study = place.study()
    study.ask()
    before = study.head
    bad = send(place, path, {"discard": "1", "names": "[1, 2", **typed})
    assert bad.status_code == 422
    assert f'id="{field}-error"' in bad.text or not field
    assert 'role="alert"' in bad.text
    for name, text in typed.items():
        if name != "rows":
            assert f'name="{name}" value="{text}"' in bad.text
    assert typed.get("rows", "").replace(">", "&gt;") in bad.text
    assert study.head == before


def test_a_large_plan_is_typed_as_lines(place: Place) -> None:
    many = mp.Budget(3, [2] * 300)
    study = mp.Study.create("lanes", many, mp.GenCTS(), store=place.store, loss_range=(0, 9))
    study.ask()
    page = place.get("/studies/lanes").text
    assert 'id="plan" name="plan"' in page
    name = many.names[299]
    shown = send(place, "expect", {"plan": f"{name} 2\n{many.names[0]} 1"})
    assert "outcomes answer" in shown.text
    bad = send(place, "expect", {"plan": "nowhere 2"})
    assert (bad.status_code, "nowhere 2</textarea>" in bad.text) == (422, True)


def test_old_plans_are_closed_or_cancelled(place: Place) -> None:
    study, now = place.study(reports=mp.Reports(missing="ignore")), datetime.now(UTC)
    old = [study.ask(at=now - timedelta(days=days)) for days in (9, 8)]
    study.ask()
    lane, units = next((lane, k) for lane, k in old[0].plan.items() if k)
    study.tell(old[0], {lane: [9.0] * units}, final=False)
    for typed in ("", "soon", "-1", "0", "nan", "1e9"):
        bad = place.post("/studies/lanes/expire", days=typed)
        assert (bad.status_code, 'id="days-error"' in bad.text) == (422, True), typed
    assert len(study.pending()) == 3
    done = place.post("/studies/lanes/expire", days="7,5")
    assert done.headers["location"] == "/studies/lanes?done=expired&count=2"
    assert "closed or cancelled: 2" in place.get("/studies/lanes?done=expired&count=2").text
    assert study.plays()["status"].tolist() == ["told", "cancelled", "pending"]


# ---------------------------------------------------------------- why, correct, retract


def test_the_page_says_why_a_plan_was_proposed(place: Place) -> None:
    study = place.study(words=mp.Words(currency="EUR", unit="truck"))
    for _ in range(4):
        play = study.ask()
        study.tell(play, euros(play))
    play = study.ask(exclude=["Lyon->south"])
    why = study.why(play)
    for path in ("", f"/plays/{play.id}"):
        page = place.get(f"/studies/lanes{path}").text
        said = re.search(r'<p class="why">(.*?)</p>', page)
        assert said
        assert re.sub(r"<[^>]*>", "", said[1]) == str(why).replace("->", "→")
        shown = why.as_table(30)
        assert all(f"{column}</th>" in page for column in shown.columns)


def test_a_report_is_corrected_and_retracted_by_forms_alone(place: Place) -> None:
    study, twin = place.study(), place.study("twin")
    play = study.ask()
    typo, right = euros(play), euros(play)
    lane = next(iter(typo))
    typo[lane] = [12.345, *typo[lane][1:]]
    study.tell(play, typo)
    twin.ask()
    twin.tell(1, right)
    base = "/studies/lanes/plays/1"
    page = place.get(base).text
    typed = values(page)
    assert typed["arm0"].startswith("12.3450"), "the report is in the fields"
    for wrong in ("", "x", "999", "1 2 3 4 5 6"):
        bad = send(place, "plays/1/correct", typed | {"arm0": wrong})
        assert bad.status_code == 422
        assert f'name="arm0" value="{wrong}"' in bad.text
        assert 'id="correct-arm0-error"' in bad.text
    assert study.plays()["realised"][0] == pytest.approx(sum(map(sum, typo.values())))
    fixed = typed | {"arm0": " ".join(f"{cost:g}".replace(".", ",") for cost in right[lane])}
    done = send(place, "plays/1/correct", fixed)
    assert done.headers["location"] == f"{base}?done=corrected"
    assert "The correction of plan 1 was saved" in place.get(f"{base}?done=corrected").text
    pd.testing.assert_frame_equal(
        study.arms().drop(columns="last_seen"), twin.arms().drop(columns="last_seen")
    )
    gone = place.post(f"{base}/retract")
    assert gone.headers["location"] == f"{base}?done=retracted"
    assert [one.id for one in study.pending()] == [1]
    page = place.get("/studies/lanes").text
    assert "What did plan 1" in page
    assert '<a href="/studies/lanes/plays/1">plan 1</a>' in page, "it is the current plan again"
    again = place.post(f"{base}/retract")
    assert again.status_code == 409
    assert "pending" in again.text
    told = place.post(f"{base}/tell", **fixed)
    assert told.headers["location"].endswith("done=told")
    assert study.verify().ok


# ---------------------------------------------------------------- the file of the accounting

EXPORT = (
    "Datum;Diesel €/l;km;Lager;Kunde;Fracht;Zuschlag\n"
    "17.11.2026;1,65;450;Lyon;north;1.120,50 €;7,00 €\n"
    "17.11.2026;1,65;450;Lyon;north;95,00 €;8,00 €\n"
    "17.11.2026;1,65;380;Lille;south;80,00 €;9,00 €\n"
    "Summe;;;;;1.295,50 €;24,00 €\n"
    "18.11.2026;1,66;380;Lille;south;1,00 €;1,00 €\n"
)


def test_the_daily_file_has_the_columns_of_an_import() -> None:
    """A price of fuel and a distance before the costs, German numbers, a sum, another day."""
    for file in ("b.csv", ""):
        found, errors = read(EXPORT, file=file)
        assert not errors
        assert found.costs == {"Lyon->north": [1120.5, 95.0], "Lille->south": [80.0]}
        assert found.left_out == 1
        assert found.columns.loss == "Fracht"


def test_units_of_a_row_share_its_cost() -> None:
    found, errors = read("lane;LKW;Kosten\nLyon->north;2;300,50\nLille->south;1;80\n")
    assert not errors
    assert found.costs == {"Lyon->north": [150.25, 150.25], "Lille->south": [80.0]}


def plan_of(place: Place) -> mp.Study:
    """Return a study whose plan of the day is known."""
    actions = mp.Transport([2, 1], [2, 1], names=(["Lyon", "Lille"], ["north", "south"]))
    study = mp.Study.create("daily", actions, store=store_at(place.store), seed=5)
    for day in range(1, 9):  # it is learned which lanes are cheap
        costs = {"Lyon->north": 90.0, "Lyon->south": 400.0, "Lille->north": 400.0}
        play = study.ask(key=f"2026-11-0{day}")
        told = {
            arm: [costs.get(arm, 80.0) + 3 * day + k for k in range(units)]
            for arm, units in play.plan.items()
        }
        study.tell(play, told)
    assert study.ask(key=DAY, fixed=PLAN).plan == {**dict.fromkeys(study.actions.names, 0), **PLAN}
    return study


def test_columns_are_chosen_once_and_remembered_for_the_study(place: Place) -> None:
    plan_of(place)
    path = "/studies/daily/plays/9"
    first = place.send(f"{path}/fill", {}, files={"file": ("b.csv", EXPORT.encode())})
    assert first.status_code == 200
    assert values(first.text)["arm0"] == "1120.5 95"
    assert re.search(r'id="tell-column-loss".*?<option selected>Fracht<', first.text, re.DOTALL)
    table = re.search(r'name="table" hidden>\n(.*?)</textarea>', first.text, re.DOTALL)
    assert table
    chosen = {f"column-{role}": name for role, name in (("arm", "Lager"), ("second", "Kunde"))}
    chosen |= {"column-round": "Datum", "column-loss": "Zuschlag", "table": table[1]}
    again = place.post(f"{path}/fill", **chosen)
    assert values(again.text)["arm0"] == "7 8"
    later = place.send(f"{path}/fill", {}, files={"file": ("c.csv", EXPORT.encode())})
    assert values(later.text)["arm0"] == "7 8", "the choice is remembered"
    place.study("other").ask()
    assert "Zuschlag" not in place.get("/studies/other/plays/1").text


def test_a_cost_far_from_what_is_believed_is_asked_about_once(place: Place) -> None:
    study = plan_of(place)
    path, usual = "/studies/daily/plays/9/tell", {"arm1": "105"}
    page = place.post(path, **usual, arm0="104 14")
    assert page.status_code == 422
    assert "Nothing was saved yet" in page.text
    assert re.search(r"Is 14 right\? Usual is \d+ ± [\d.]+\.", re.sub("<[^>]*>", "", page.text))
    assert 'value="104 14"' in page.text
    assert [play.id for play in study.pending()] == [9]
    assert place.post(path, **usual, arm0="104 14", sure="yes").status_code == 303
    assert not study.pending()
    corrected = "/studies/daily/plays/9/correct"
    text = place.post(corrected, **usual, arm0="9999 104").text
    assert 'Is <data value="9999">9999</data> right?' in text, "in the language of the browser"
    assert place.post(corrected, **usual, arm0="104 106").status_code == 303


def test_amounts_are_typed_as_they_are_printed(place: Place) -> None:
    study = plan_of(place)
    typed = {"arm0": "160,50 € € 95", "arm1": "1.234,50 EUR", "sure": "yes"}
    assert place.post("/studies/daily/plays/9/tell", **typed).status_code == 303
    assert study.plays()["realised"].tolist()[-1] == 160.5 + 95 + 1234.5
