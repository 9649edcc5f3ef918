"""The commands of studies: normal use, and invalid input."""

import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from workbooks import HOSTILE

from multiplay import (
    Budget,
    DataCheck,
    FixedPlan,
    GenCTS,
    InProportion,
    Learner,
    PriceList,
    RandomAction,
    Study,
    Transport,
)
from multiplay.cli import main
from multiplay.cli.study.app import StudyCommands
from multiplay.cli.study.maintenance import progress_bar
from multiplay.learner.plays import PendingPlay
from multiplay.studies.results import fields_of, to_plain

LANES = [
    "--supply",
    "Lyon=1,Lille=4,Paris=5",
    "--demand",
    "north=4,south=6",
    "--loss-range",
    "0,250",
]


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Said]


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process; its studies are in memory."""
    monkeypatch.setenv("MULTIPLAY_STORE", f"memory://{uuid4()}")
    monkeypatch.setenv("COLUMNS", "80")

    def call(*words: object, stdin: str | bytes = "", terminal: bool = False) -> Said:
        data = io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin)
        monkeypatch.setattr(sys, "stdin", (Terminal if terminal else io.TextIOWrapper)(data))
        monkeypatch.setattr(sys, "argv", ["multiplay", "study", *map(str, words)])
        with pytest.raises(SystemExit) as caught:
            main()
        code = caught.value.code
        assert isinstance(code, int)
        return Said(code, *capsys.readouterr())

    return call


@pytest.fixture
def lanes(run: Run) -> Run:
    """A store with the study "lanes", and one play that waits."""
    assert run("create", "lanes", *LANES).code == 0
    assert run("ask", "lanes", "--key", "Monday").code == 0
    return run


def bills(run: Run, id: int, cost: float = 100.0) -> str:
    """What everybody should have reported of a play, as a CSV file."""
    plays = {play["id"]: play["plan"] for play in run("pending", "lanes", "--json").json}
    units = [arm for arm, number in plays[id].items() for _ in range(number)]
    return "arm,loss\n" + "".join(f"{arm},{cost}\n" for arm in units)


# ---------------------------------------------------------------- days


def test_a_first_day(run: Run, tmp_path: Path) -> None:
    said = run("create", "lanes", *LANES)
    assert "PooledCTS on 6 arms" in said.out
    assert said.out.endswith("Next: multiplay study ask lanes\n")
    said = run("ask", "lanes", "--key", "Monday")
    assert "Plan 1, Monday" in said.out
    assert "10 units. This plan should cost 1,250, 0 to 2,500." in said.out
    assert "Next: multiplay study tell lanes 1 costs.csv" in said.out
    grid = [line.split("│")[1:-1] for line in said.out.splitlines() if line.startswith("│")]
    plan = run("ask", "lanes", "--key", "Monday", "--json").json["plan"]
    for row in grid:
        source, *units = [cell.strip() for cell in row]
        assert units == [str(plan[f"{source}->{y}"] or "-") for y in ("north", "south")]
    assert len(grid) == 3
    (tmp_path / "costs.csv").write_text(bills(run, 1))
    for words in ("plan 1: 10 of 10 units seen", "the same was told before, nothing has changed"):
        said = run("tell", "lanes", 1, tmp_path / "costs.csv")
        assert said.code == 0
        assert words in said.out
    assert "all entries are intact" in run("verify", "lanes").out
    assert run("list").out == "lanes\n"


def test_programs_get_json(lanes: Run) -> None:
    play = lanes("ask", "lanes", "--key", "Monday", "--json").json
    assert play["id"] == 1
    assert play["key"] == "Monday"
    assert sum(play["plan"].values()) == 10
    low, total, high = (play["expected"][name] for name in ("low", "total", "high"))
    assert low < total == 1250.0 < high
    assert play["repeated"]
    assert play["action"] == [*play["plan"].values()]
    assert play.keys() == {one.name for one in fields_of(PendingPlay)}
    assert lanes("pending", "lanes", "--json").json == [play | {"repeated": False}]
    costs = bills(lanes, 1)
    told: dict[str, Any] = {"id": 1, "seen": 10, "missing": 0, "clipped": 0}
    told |= {"repeated": False, "final": True, "added": [], "skipped": 0, "known": 0}
    assert lanes("tell", "lanes", 1, "-", "--json", stdin=costs).json == told
    again = lanes("tell", "lanes", 1, "-", "--json", stdin=costs).json
    assert again == told | {"repeated": True}
    arms = lanes("arms", "lanes", "--json").json
    assert [row["arm"] for row in arms] == list(play["plan"])
    assert {row["average"] and round(row["average"], 9) for row in arms} == {100.0, None}
    assert all(row["low"] <= row["mean"] <= row["high"] for row in arms)
    [row] = lanes("plays", "lanes", "--json").json
    assert (row["id"], row["status"], row["realised"]) == (1, "told", 1000.0)
    assert row["asked"].endswith("+00:00")
    best = lanes("best", "lanes", "--json").json
    words = [f"{arm}={units}" for arm, units in best["plan"].items()]
    assert lanes("expect", "lanes", *words, "--json").json["expected"] == best["expected"]
    found = lanes("verify", "lanes", "--json").json
    clean = {"problems": [], "unchecked": 0, "solvers": None, "ok": True}
    assert found == {"entries": 3, "plays": 1, **clean}


def test_another_day_is_the_usual_one_where_nothing_else_is_said(
    lanes: Run, tmp_path: Path
) -> None:
    """Demand alone; suppliers by name; a day that is too short of trucks."""
    more = lanes("ask", "lanes", "--demand", "5,5", "--json").json["plan"]
    assert more.keys() == lanes("ask", "lanes", "--key", "Monday", "--json").json["plan"].keys()
    assert sum(units for lane, units in more.items() if lane.endswith("->north")) == 5
    other = lanes("ask", "lanes", "--supply", "Reims=9,Lyon=1", "--json").json["plan"]
    assert set(other) == {"Reims->north", "Reims->south", "Lyon->north", "Lyon->south"}
    few = "ask", "lanes", "--key", "strike", "--supply", "1,0,5"
    assert "--shortage COST" in lanes(*few).err
    strike = lanes(*few, "--shortage", 400, "--json").json["plan"]  # as the error says
    assert sum(units for lane, units in strike.items() if lane.startswith("unmet")) == 4
    assert "--slack" in lanes("ask", "lanes", "--demand", "1,2").err
    assert (
        sum(lanes("ask", "lanes", "--demand", "1,2", "--slack", "--json").json["plan"].values())
        == 3
    )
    settings = tmp_path / "short.toml"
    settings.write_text(
        'loss_range = [0, 250]\n[actions]\ntype = "Transport"\n'
        "supply = [1, 4, 5]\ndemand = [4, 6]\n"
        'names = [["Lyon", "Lille", "Paris"], ["north", "south"]]\nshortage = 400\n'
    )
    lanes("create", "short", "--settings", settings)
    said = lanes("ask", "short", "--supply", "1,0,5")
    assert "unmet" in said.out
    assert said.out.count("-") >= 1
    assert said.code == 0


def test_wishes_of_a_day(lanes: Run) -> None:
    wishes = [
        "--exclude",
        "Lyon->north",
        "--at-most",
        "Lille->north=1",
        "--fixed",
        "Paris->north=3",
    ]
    plan = lanes("ask", "lanes", *wishes, "--json").json["plan"]
    assert (plan["Lyon->north"], plan["Lille->north"], plan["Paris->north"]) == (0, 1, 3)


def test_reports_in_parts_and_plays_that_end_otherwise(lanes: Run) -> None:
    plan = lanes("ask", "lanes", "--key", "Monday", "--json").json["plan"]
    lane = max(plan, key=lambda lane: plan[lane])
    part = json.dumps({lane: [100, *[None] * (plan[lane] - 1)]})
    said = lanes("tell", "lanes", 1, "--losses", part, "--part", "--key", "early")
    assert "1 of 10 units seen, open for more" in said.out
    assert lanes("close", "lanes", 1, "--json").json["missing"] == 9
    lanes("ask", "lanes")
    assert "cancelled" in lanes("cancel", "lanes", 2, "--key", "boss").out
    assert lanes("cancel", "lanes", 2, "--key", "boss", "--json").json["status"] == "cancelled"
    shown = lanes("plays", "lanes", "--last", 2).out
    assert "1 of 10" in shown
    assert "cancelled" in shown


def test_costs_are_corrected_and_retracted_by_key(lanes: Run, tmp_path: Path) -> None:
    costs, wrong, right = tmp_path / "costs.csv", bills(lanes, 1, 12.0), bills(lanes, 1, 120.0)
    costs.write_text(wrong)
    assert lanes("tell", "lanes", "Monday", costs).code == 0
    assert "multiplay study correct" in lanes("tell", "--help").out
    said = lanes("tell", "lanes", "Monday", "-", stdin=right)
    assert said.code == 2
    assert "correct" in said.err
    assert lanes("correct", "lanes", "Monday", "-", "--json", stdin=right).json["seen"] == 10
    assert lanes("correct", "lanes", 1, "-", "--json", stdin=right).json["repeated"]
    assert lanes("plays", "lanes", "--json").json[0]["realised"] == pytest.approx(1200.0)
    assert lanes("ask", "lanes", "--key", "9").code == 0
    assert lanes("cancel", "lanes", "9", "--json").json["status"] == "cancelled"
    assert "retracted" in lanes("retract", "lanes", "Monday").out
    assert [play["id"] for play in lanes("pending", "lanes", "--json").json] == [1]
    for words in (["retract", "lanes", "Monday"], ["correct", "lanes", "9", costs]):
        assert lanes(*words).code == 2
    assert lanes("retract", "lanes", "Sunday").code == 2
    assert "all entries are intact" in lanes("verify", "lanes").out


def test_old_plays_expire(lanes: Run) -> None:
    assert "no play" in lanes("expire", "lanes", "--older-than", "36h").out
    lanes("ask", "lanes")
    assert lanes("expire", "lanes", "--older-than", "0 days", "--json").json == {"plays": [1, 2]}
    assert lanes("pending", "lanes", "--json").json == []


def test_plans_are_explained_in_the_words_of_the_user(lanes: Run, tmp_path: Path) -> None:
    table = tmp_path / "past.csv"
    table.write_text("round,arm,loss\n" + "1,Paris->south,90\n" * 5 + "2,Lyon->north,130\n" * 9)
    assert lanes("learn-table", "lanes", table).code == 0
    said = lanes(
        *("set", "lanes", "--currency", "EUR"), *("--unit-word", "lorry", "--round-word", "week")
    )
    assert said.out == "currency: EUR\nunit: lorry\narm: lane\nround: week\n"
    assert lanes("set", "lanes", "--json").json["unit"] == "lorry"
    assert (
        "unit: expected a text of at most 40" in lanes("set", "lanes", "--unit-word", "u" * 41).err
    )
    asked = lanes("ask", "lanes", "--key", "Monday", "--why")
    assert "10 lorries. This plan should cost " in asked.out
    assert " EUR, " in asked.out
    study = Study.open("lanes", store=os.environ["MULTIPLAY_STORE"])
    why = study.why("Monday")
    assert str(why) in asked.out
    assert str(why) in lanes("why", "lanes", "Monday").out
    found = lanes("why", "lanes", why_id := study.pending()[-1].id, "--json").json
    assert (found["text"], found["extra"]) == (str(why), why.extra)
    assert (found["wanted"], found["held"], found["change_cost"]) == ({}, False, 0.0)
    asked_again = lanes("ask", "lanes", "--key", "Monday", "--why", "--json").json
    assert (asked_again["id"], asked_again["why"]) == (why_id, found)
    assert lanes("why", "lanes", 99).err.startswith("multiplay: play: expected ")


def test_savings_are_shown_against_options_and_the_rule_that_is_kept(
    run: Run, tmp_path: Path
) -> None:
    place, plan = os.environ["MULTIPLAY_STORE"], {"a": 2, "b": 1}
    study = Study.create("ads", Budget(3, [3, 3], names=["a", "b"]), RandomAction(), store=place)
    keys = [f"2026-03-{day:02}" for day in range(1, 13)]
    for key in keys:
        play = study.ask(key=key)
        study.tell(play, {arm: [0.1, 0.3, 0.5][:n] for arm, n in play.plan.items()})
    split = tmp_path / "split.csv"
    split.write_text("key;arm;units\n" + "".join(f"{k};a;2\n{k};b;1\n" for k in keys))
    prices, one = tmp_path / "prices.csv", tmp_path / "plan.csv"
    prices.write_text("arm,price\na,1\nb,2.5\n")
    one.write_text("arm,units\na,2\nb,1\n")
    for options, expected in (
        (("--in-proportion",), study.savings(InProportion())),
        (("--versus", split), study.savings(dict.fromkeys(keys, plan))),
        (("--versus", one), study.savings(FixedPlan(plan, nearest=True))),
        (("--prices", prices), study.savings(PriceList({"a": 1.0, "b": 2.5}))),
        (("--learning", "--until", keys[-2]), study.cost_of_learning(until=keys[-2])),
    ):
        assert run("savings", "ads", *options).out.startswith(str(expected))
        assert run("savings", "ads", *options, "--json").json == to_plain(expected)
    study.learn_table({"arm": ["a", "a", "b"], "round": ["2025-03-01"] * 3, "loss": [0.1] * 3})
    assert run("savings", "ads", "--versus", "driven").out.startswith(str(study.savings("driven")))
    assert "Use --in-proportion, --versus FILE.csv, --prices FILE" in run("savings", "ads").err
    assert run("show", "ads", "--json").json["saved"] is None
    assert run("savings", "ads", "--prices", prices, "--keep").code == 0
    text = str(study.savings(PriceList({"a": 1.0, "b": 2.5})))
    assert run("savings", "ads").out.startswith(text)
    assert run("show", "ads", "--json").json["saved"] == text
    assert text.partition(",")[0] in run("show", "ads").out
    assert run("savings", "ads", "--no-keep").out == "No rule is kept.\n"
    assert run("savings", "ads", "--no-keep", "--json").json == {"versus": None}
    assert run("show", "ads", "--json").json["saved"] is None
    wrong: Any
    for wrong, argument in (
        (("--learning", "--keep"), "--keep"),
        (("--in-proportion", "--learning"), "--learning"),
        (("--versus", tmp_path / "none.csv"), "--versus"),
        (("--policy", "GenXYZ"), "--policy"),
        (("--in-proportion", "--since", "soon"), "since"),
    ):
        assert run("savings", "ads", *wrong).err.startswith(f"multiplay: {argument}: ")


def test_changes_are_shown(lanes: Run) -> None:
    assert lanes("drift", "lanes").out == "no change was found\n"
    study = Study.open("lanes", store=os.environ["MULTIPLAY_STORE"])
    for k in range(60):
        play = study.ask()
        study.tell(play, {arm: [20.0 + 200 * (k > 30)] * n for arm, n in play.plan.items()})
    found = lanes("drift", "lanes", "--json").json
    assert [row["arm"] for row in found] == study.drift()["arm"].tolist()
    assert found[0]["arm"] == "6 of 6 arms"
    assert "6 of 6 lanes" in lanes("drift", "lanes").out


def test_a_plan_is_expected_on_the_set_of_its_day(lanes: Run) -> None:
    plan = "Lyon->north=1", "Lille->south=2", "Paris->north=2", "Paris->south=3"
    assert lanes("expect", "lanes", *plan).code == 2
    day = "--supply", "1,2,5", "--demand", "3,5"
    found = lanes("expect", "lanes", *plan, *day, "--json").json["expected"]
    with Study.open("lanes", store=os.environ["MULTIPLAY_STORE"]) as study:
        today = Transport([1, 2, 5], [3, 5], study.actions.names)
        units = {"Lyon->north": 1, "Lille->south": 2, "Paris->north": 2, "Paris->south": 3}
        assert found == study.expect(units, actions=today)._asdict()
    for limit, got in (
        ("--exclude Lyon->north", "0, because it is excluded, got 1"),
        ("--at-most Paris->south=2", "at most 2, got 3"),
        ("--fixed Paris->north=1", "1, which is fixed, got 2"),
    ):
        assert got in lanes("expect", "lanes", *plan, *day, *limit.split()).err


def test_plays_are_shown_with_their_plans(lanes: Run, tmp_path: Path) -> None:
    (play,) = lanes("pending", "lanes", "--json").json
    plan = {arm: units for arm, units in play["plan"].items() if units}
    rows = lanes("plays", "lanes", "--plan", "--json").json
    assert {row["arm"]: row["units"] for row in rows} == plan
    (row,) = lanes("plays", "lanes", "--wide", "--json").json
    assert {arm: row[arm] for arm in plan} == plan
    for option in ("--plan", "--wide"):
        shown = lanes("plays", "lanes", option).out
        assert all(arm in shown for arm in plan)
    for words, rows in (("p.csv --plans", len(plan)), ("p.xlsx", len(plan)), ("p.jsonl --wide", 1)):
        name, *more = words.split()
        said = lanes("export", "lanes", tmp_path / name, *more)
        assert said.out == f"{tmp_path / name}: {rows} rows of plans\n"


def test_costs_are_forgotten_and_kept(lanes: Run) -> None:
    for id in (1, 2):
        lanes("tell", "lanes", id, "-", stdin=bills(lanes, id, 100.0 * id))
        lanes("ask", "lanes")
    (arm, *_) = (one["arm"] for one in lanes("arms", "lanes", "--json").json if one["seen"])
    left = lanes("forget", "lanes", "--arm", arm, "--before", 2)
    assert "reports since day 2 count" in left.out
    assert lanes("unforget", "lanes", "--arm", arm, "--since", 0, "--json").json["since"] == 0
    assert lanes("unforget", "lanes", "--arm", arm).code == 0
    for words, said in (
        (["forget", "lanes", "--before", "Monday"], "--before"),
        (["forget", "lanes", "--before", "2001-01-01"], "before"),
        (["unforget", "lanes", "--arm", "nowhere"], "arm"),
    ):
        wrong = lanes(*words)
        assert wrong.code == 2
        assert said in wrong.err
    assert "intact" in lanes("verify", "lanes").out


@pytest.mark.parametrize(
    "table",
    [
        "arm;loss\nLyon->north;120,5\nLyon->north;\n",
        "arm;loss\r\nLyon->north;120.5\r\nLyon->north;\r\n\r\n",
        "\ufeffarm, loss\nLyon->north , 120.5\nLyon->north,\n\n",
        'day,arm,loss\n1,"Lyon->north","120.5"\n1,"Lyon->north",""\n',
        "arm\tloss\nLyon->north\t120,5\nLyon->north\t\n",
        "arm;loss\nLyon->north;120,50 €\nLyon->north;\n",
    ],
)
def test_tables_as_offices_write_them(run: Run, table: str) -> None:
    run("create", "lanes", "--supply", "Lyon=2", "--demand", "north=2", "--loss-range", "0,250")
    run("ask", "lanes")
    told = run("tell", "lanes", 1, "-", "--json", stdin=table)
    assert told.json["seen"] == 1, told
    assert run("arms", "lanes", "--json").json[0]["average"] == pytest.approx(120.5)


def test_an_arm_in_two_columns(lanes: Run) -> None:
    (play,) = lanes("pending", "lanes", "--json").json
    rows = [arm.replace("->", ";") for arm, n in play["plan"].items() for _ in range(n)]
    table = "depot;to;euros\n" + "".join(f"{row};99,5\n" for row in rows)
    options = "--arm-column", "depot,to", "--loss-column", "euros"
    assert "9 of 10" in lanes(
        *("tell", "lanes", 1, "-", *options, "--missing", "ignore"),
        stdin=table.rpartition("\n")[0].rpartition("\n")[0],
    ).out.replace("10 units", "10")
    assert "10 of 10" in lanes("correct", "lanes", "Monday", "-", *options, stdin=table).out
    bad = lanes("correct", "lanes", 1, "-", *options, stdin="depot;to;euros\nLyon;;1\n")
    assert "row 2, to is empty" in bad.err


def test_the_format_of_a_table_is_reported_or_stated(run: Run, tmp_path: Path) -> None:
    run("create", "lanes", "--supply", "Lyon=2", "--demand", "Zürich=2", "--loss-range", "0,250")
    path = tmp_path / "bills.csv"
    path.write_bytes("arm;round;loss\nLyon->Zürich;1;120,5\n".encode("cp1252"))
    told = run("learn-table", "lanes", path)
    assert "bills.csv: columns separated by semicolons, decimal comma, encoding cp1252" in told.err
    more = "--sep", ";", "--decimal", ",", "--again", "add", "--json"
    stated = run("learn-table", "lanes", path, *more)
    assert (stated.json["seen"], stated.err) == (1, "")
    assert run("arms", "lanes", "--json").json[0]["average"] == pytest.approx(120.5)
    wrong = run("learn-table", "lanes", path, "--decimal", ":")
    assert (wrong.code, "decimal: expected '.' or ','" in wrong.err) == (2, True)


def test_a_table_is_checked_before_there_is_a_study(run: Run, tmp_path: Path) -> None:
    path, picture = tmp_path / "bills.csv", tmp_path / "bills.png"
    rows = [f"Lyon;{day:02}.01.2026;{12 + day % 3},5" for day in range(1, 31)]
    path.write_text("\n".join(["depot;date;euros", *rows]))
    words = ["check", path, "--arm-column", "depot", "--round-column", "date"]
    words += ["--loss-column", "euros"]
    told = run(*words, "--currency", "EUR", "--arm-word", "lane", "--plot", picture)
    assert told.code == 0
    assert told.out.startswith("There are 30 units of 1 lane in 30 rounds from 2026-01-01")
    assert len(told.out.splitlines()) == 5
    assert picture.stat().st_size > 5_000
    plain = run(*words, "--rewards", "--json").json
    assert (plain["units"], plain["sense"]) == (30, "max")
    assert set(plain) == {one.name for one in fields_of(DataCheck)}
    path.write_text("depot;date;euros\nLyon;01.01.2026;cheap\n")
    wrong = run(*words)
    assert wrong.code == 2
    assert "'cheap' is not a number. Correct these rows, or state --skip-bad" in wrong.err
    missing = run("check", tmp_path / "none.csv")
    assert missing.code == 2
    assert "Check the name of the file." in missing.err


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "arm,round,loss\na,1,2\n".encode("utf-16")[:-1], "damaged utf-16"),
        ("a.csv", b"arm,round,loss\na,1," + b"x" * 200_000, "cells of at most 131,072"),
        ("a.csv", b"arm,round,loss\na,1,\0\n", "a binary file"),
        ("a.xlsx", HOSTILE["a far cell in single quotes"](), "a sheet of at most"),
        ("a.xlsx", HOSTILE["entities"](), "XML entities"),
    ],
)
def test_tables_that_cannot_be_read(
    run: Run, tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    run("create", "lanes", "--supply", "Lyon=2", "--demand", "north=2", "--loss-range", "0,250")
    (tmp_path / name).write_bytes(content)
    refused = run("learn-table", "lanes", tmp_path / name)
    assert (refused.code, "Traceback" in refused.err) == (2, False)
    assert said in " ".join(refused.err.split())


def test_lines_of_a_table_may_end_with_a_carriage_return(run: Run, tmp_path: Path) -> None:
    run("create", "lanes", "--supply", "Lyon=2", "--demand", "north=2", "--loss-range", "0,250")
    (tmp_path / "a.csv").write_bytes(b"arm,round,loss\rLyon->north,1,2\rLyon->north,2,3\r")
    assert run("learn-table", "lanes", tmp_path / "a.csv", "--json").json["seen"] == 2


def test_history_is_learned_once(lanes: Run, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("lane,day,euros\nLyon->north,2025-01-01,90\n")
    words = ["lanes", tmp_path / "old.csv", "--arm-column", "lane", "--round-column", "day"]
    words += ["--loss-column", "euros"]
    for repeated in (False, True):
        told = lanes("learn-table", *words, "--key", "old", "--json").json
        assert (told["id"], told["seen"], told["repeated"]) == (None, 1, repeated)
    assert lanes("arms", "lanes", "--json").json[0]["seen"] == 1
    title, _, _, _, first, *_ = lanes("plays", "lanes", "--external").out.splitlines()
    assert title.split() == ["Last", "2", "plans", "and", "external", "days", "of", "lanes"]
    day = [cell.strip() for cell in first.strip("│").split("│")]
    assert day == ["-", "external", "2025-01-01 00:00", "1", "-", "90"]


def test_bad_rows_of_a_history_are_shown_skipped_and_written(lanes: Run, tmp_path: Path) -> None:
    path, skipped = tmp_path / "bills.csv", tmp_path / "bad.csv"
    path.write_text(
        "date;depot;to;euros\n31.12.2025;Lyon;north;90,5\n1.1.2026;Nice;north;95\n;Lyon;north;1.250,00\n"
    )
    words = ["learn-table", "lanes", path, "--arm-column", "depot,to", "--round-column", "date"]
    words += ["--loss-column", "euros"]
    refused = lanes(*words)
    assert (refused.code, "row 4, date is empty. " in refused.err) == (2, True)
    assert "--skip-bad" in refused.err
    assert "--skip-bad" in lanes(*words, "--skipped", skipped).err
    said = lanes(*words, "--check")
    assert "3 rows: 2 days from 2025-12-31 to 2026-01-01, 2 lanes, total 186\n1 new" in said.out
    assert lanes("arms", "lanes", "--json").json[0]["seen"] == 0
    options = "--skip-bad", "--skipped", skipped, "--key", "old", "--at", "2026-01-05T08:00Z"
    told = lanes(*words, *options, "--json").json
    assert (told["seen"], told["added"], told["skipped"]) == (2, ["Nice->north"], 1)
    assert told["check"]["problems"][0]["row"] == 4
    lines = skipped.read_text().splitlines()
    assert lines == ["row;problem;date;depot;to;euros", "4;date is empty;;Lyon;north;1250,0"]
    arms = lanes("arms", "lanes", "--json").json
    assert arms[0]["last_seen"] == "2025-12-31T00:00:00.000000+00:00"
    lanes("tell", "lanes", 1, "-", "--at", "2026-01-05T08:00Z", stdin=bills(lanes, 1))
    assert lanes("plays", "lanes", "--json").json[0]["told"] == "2026-01-05T08:00:00.000000+00:00"
    assert "expected a date or a time" in lanes("ask", "lanes", "--at", "soon").err


# ---------------------------------------------------------------- sets


def test_sets_from_options(run: Run) -> None:
    run("create", "bag", "--weights", "tent=3,stove=4,rope=5", "--capacity", 10)
    assert set(run("ask", "bag", "--json").json["plan"]) == {"tent", "stove", "rope"}
    assert sum(run("ask", "bag", "--capacity", 2, "--json").json["plan"].values()) == 0
    run("create", "ads", "--budget", 9, "--caps", "news=6,radio=4", "--loss-range", "0,5")
    said = run("ask", "ads")
    assert "should cost" in said.out
    assert sum(run("ask", "ads", "--budget", 4, "--json").json["plan"].values()) == 4
    words = ["--supply", "2", "--demand", "1,1", "--policy", "genlbinfv"]
    made = run("create", "old", *words, "--json").json
    assert made["policy"] == "GenLBINFV"
    assert made["arms"] == ["s1->d1", "s1->d2"]


def test_settings_from_a_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "paths.toml"
    file.write_text(
        'loss_range = { "*" = [0, 250] }\nseed = 7\nreports = { missing = "ignore" }\n'
        'words = { unit = "van" }\nvarying_set = true\n'
        '[actions]\ntype = "Explicit"\nactions = [[0, 3], [2, 2], [5, 0]]\nnames = ["a", "b"]\n'
        '[policy]\ntype = "GenCTS"\ndiscount = 0.9\n'
    )
    made = run("create", "paths", "--settings", file, "--json").json
    assert made["arms"] == ["a", "b"]
    assert made["policy"] == "GenCTS"
    assert "item" in run("ask", "paths").out
    assert run("set", "paths", "--json").json["unit"] == "van"
    assert run("tell", "paths", 1, "--losses", "{}").code == 0, "missing = ignore"
    today = tmp_path / "today.toml"
    assert "--set: expected one action set" in run("create", "two", *LANES, "--settings", file).err
    today.write_text('type = "Explicit"\nactions = [[1, 1]]\nnames = ["a", "b"]\n')
    assert run("ask", "paths", "--set", today, "--json").json["plan"] == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    "text",
    [
        'type = "subprocess.Popen"\nargs = "ls"',
        '[actions]\ntype = "GenCTS"',
        "[actions]\nsupply = [1]",
        '[actions]\ntype = "Transport"\nsupply = [1]\ndemand = "1"',
        'losses = [0, 1]\n[actions]\ntype = "Budget"\ntotal = 1\ncaps = [1]',
        'reports = "clip"\n[actions]\ntype = "Budget"\ntotal = 1\ncaps = [1]',
        'words = { lane = "a" }\n[actions]\ntype = "Budget"\ntotal = 1\ncaps = [1]',
        'seed = "a"\n[actions]\ntype = "Budget"\ntotal = 1\ncaps = [1]',
        'constraints = "CO2"\n[actions]\ntype = "Budget"\ntotal = 1\ncaps = [1]',
        'change = 15\n[actions]\ntype = "Budget"\ntotal = 1\ncaps = [1]',
        "[policy",
        "",
    ],
)
def test_a_bad_file_makes_nothing(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    for option in ("--set", "--settings"):
        said = run("create", "bad", option, tmp_path / "bad.toml")
        assert said.code == 2
        assert said.err.count("\n") == 1
    assert run("list").out == ""


# ---------------------------------------------------------------- invalid input


@pytest.fixture
def shared(run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """As lanes, but the same for all tests: what is refused changes nothing."""
    monkeypatch.setenv("MULTIPLAY_STORE", store := "memory://shared by refusals")
    if not Study.names(store=store):
        run("create", "lanes", *LANES)
        run("ask", "lanes")
    yield run
    assert Study.names(store=store) == ["lanes"]
    assert len(list(Study.open("lanes", store=store).entries())) == 2


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("create lanes --supply 1 --demand 1", "choose a different name"),
        ("create new", "--supply with --demand"),
        ("create new --supply 1,2", "Add --demand"),
        ("create new --supply 1;2 --demand 3", "--supply 1,4,5"),
        ("create new --supply 1,,2 --demand 3", "--supply 1,4,5"),
        ("create new --supply 1,2 --demand 2", "--slack"),
        (
            "create new --supply 1,1 --demand 3 --loss-range 0,250",
            "--shortage COST, what each unmet",
        ),
        ("create new --supply 1,1 --demand 2 --suppliers Lyon", "--settings STUDY.toml"),
        ("create new --supply 1,1 --demand 2 --losses 0,250", "Use --loss-range 0,250."),
        ("create new --supply 1,1 --demand 2 --columns x", "Add --model PLAN.mps"),
        ("words lanes --currency EUR", "Use multiplay study set."),
        ("ask lanes --features today.csv", "Use --feature-values."),
        ("savings lanes --against split.csv", "Use --versus."),
        ("create new --supply 1 --demand 1 --weights 3", "Leave --weights out"),
        ("create new --slack", "--settings STUDY.toml"),
        ("create new --surplus", "--settings STUDY.toml"),
        ("create new --supply 1 --demand 1 --policy GenCT", "Did you mean 'GenCTS'"),
        ("create new --supply 1 --demand 1 --loss-range 250", "--loss-range 0,250"),
        ("create new --supply 1 --demand 1 --outside clip", "the file of --settings"),
        ("create new --supply 1 --demand 1 --set lanes.toml", "--set: expected a TOML file"),
        ("ask lane", "Did you mean 'lanes'?"),
        ("ask lanes --demand 10", "names with numbers"),
        ("ask lanes --budget 3", "--set FILE.toml"),
        ("ask lanes --fixed Lyon->north", "Lyon->north=2"),
        ("ask lanes --fixed Lyon->north=2.5", "Lyon->north=2"),
        ("ask lanes --at-most Lyon->north=1 --at-most Lyon->north=2", "Leave one"),
        ("ask lanes --exclude Lyon-north", "Did you mean 'Lyon->north'?"),
        ("tell lanes 1", "--losses and JSON"),
        ("tell lanes 1 nowhere.csv", "Check the name"),
        ("tell lanes 1 -", "first line"),
        ("tell lanes 7 --losses {}", "multiplay study ask"),
        (
            "tell lanes 1 --losses {}",
            "--missing ignore if the rest will not be reported, --part (in tell) if it will",
        ),
        ("tell lanes 1 --losses {Lyon", "for example"),
        ("close lanes 7", "multiplay study ask"),
        ("arms lanes --level 95", "0.95"),
        ("expect lanes Lyon->north=1", "--set FILE.toml"),
        ("expire lanes --older-than soon", "Write --older-than 7d"),
        ("export lanes journal.xls", "endings"),
        ("import new journal.csv", "JSON lines"),
        ("delete lanes", "--yes"),
        ("list --store mysql://here", "Use one of these"),
    ],
)
def test_one_clear_line_says_what_to_do(shared: Run, words: str, hint: str) -> None:
    said = shared(*words.split())
    assert said.code == 2
    assert said.out == ""
    assert hint in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("table", "hint"),
    [
        ("lane,loss\nLyon->north,1\n", "--arm-column lane"),
        ("arm,loss\nLyon->north,12x\n", "row 2, loss: '12x' is not a number"),
        ("arm,loss\n\nLyon->north,1\n,1\n", "row 4, arm is empty"),
        ("arm,loss\nLyon->north,120,5\n", "120.5"),
        ("arm,loss\nLyon->north,1\nLyon->north,120,5\n", "line 3"),
        ("arm,loss\n", "no rows"),
        (
            "arm,loss\nLyon->north,1\n\nLyon->nroth,1\nLyon->nroth,2\n",
            "losses, row 4: expected names such as 'Lyon->north', got 'Lyon->nroth'. "
            "Check the spelling. Did you mean 'Lyon->north'?",
        ),
        ("arm,loss\nParis->north,1200\n", 'reports = { outside = "clip" } in its settings'),
        ("arm;loss\nLyon->north;1.076\n", "got 1.076. State --decimal , or --decimal ."),
    ],
)
def test_a_bad_table_is_refused(shared: Run, table: str, hint: str) -> None:
    said = shared("tell", "lanes", 1, "-", "--missing", "ignore", stdin=table)
    assert said.code == 2
    assert hint in said.err
    assert said.err.count("\n") <= 2  # a bad row has a line of its own


# ---------------------------------------------------------------- studies as a whole


def test_a_study_leaves_and_comes_back(lanes: Run, tmp_path: Path) -> None:
    lines, copy = tmp_path / "journal.jsonl", tmp_path / "copy.db"
    assert lanes("export", "lanes", lines, "--json").json == {"file": str(lines), "rows": 2}
    assert lanes("export", "lanes", tmp_path / "plays.csv", "--plays").out.endswith(": 1 plays\n")
    assert "with 2 entries" in lanes("import", "again", lines).out
    assert lanes("backup", "lanes", copy).out == f"{copy}: 2 entries\n"
    assert lanes("list", "--store", copy, "--json").json["studies"] == ["lanes"]
    plans = [lanes("ask", name, "--json").json["plan"] for name in ("lanes", "again")]
    plans.append(lanes("ask", "lanes", "--store", copy, "--json").json["plan"])
    assert plans[0] == plans[1] == plans[2]


def test_a_learner_becomes_a_study(run: Run, tmp_path: Path) -> None:
    learner = Learner(Transport([1], [1]), GenCTS())
    learner.ask(key="before")
    learner.save(tmp_path / "learner.npz")
    assert run("import", "lanes", tmp_path / "learner.npz", "--json").json["entries"] == 2
    assert run("ask", "lanes", "--key", "before", "--json").json["id"] == 1


def test_what_is_damaged_is_named(run: Run, tmp_path: Path) -> None:
    store = ["--store", tmp_path / "lanes.db"]
    said = run("create", "lanes", *LANES, *store)
    assert f"Next: multiplay study ask lanes --store sqlite:///{tmp_path}/lanes.db" in said.out
    for _ in range(3):
        run("ask", "lanes", *store)
    database = sqlite3.connect(tmp_path / "lanes.db")
    database.execute("UPDATE multiplay_entries SET at = at + 1 WHERE number = 2")
    database.commit()
    database.close()
    said = run("verify", "lanes", *store)
    assert said.code == 1
    assert "entry 2" in said.err
    found = run("verify", "lanes", *store, "--json")
    assert found.code == 1
    assert not found.json["ok"]
    assert len(found.json["problems"]) == 1
    said = run("ask", "lanes", *store)
    assert said.code == 1
    assert "entry 2" in said.err
    assert run("delete", "lanes", *store, "--yes").code == 0


def test_a_store_that_fails_is_one_line_and_exit_code_1(run: Run, tmp_path: Path) -> None:
    (tmp_path / "photo.db").write_bytes(b"no database at all" * 100)
    said = run("list", "--store", tmp_path / "photo.db")
    assert said.code == 1
    assert "not a database" in said.err
    assert said.err.count("\n") == 1


def test_delete_asks_on_a_terminal(lanes: Run) -> None:
    said = lanes("delete", "lanes", stdin="n\n", terminal=True)
    assert said.code == 1
    assert "2 entries" in said.err
    assert lanes("list").out == "lanes\n"
    assert lanes("delete", "lanes", "--json", stdin="y\n", terminal=True).json["deleted"]
    assert lanes("list").out == ""


def test_a_bar_is_drawn_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    for kind in (Terminal, io.TextIOWrapper):
        screen = io.BytesIO()
        monkeypatch.setattr(sys, "stderr", kind(screen, write_through=True))
        with progress_bar("copying", 10) as move:
            move(5)
        drawn.append(screen.getvalue())
    assert b"copying" in drawn[0]
    assert drawn[1] == b""


def test_every_command_teaches(run: Run) -> None:
    for name in (name for names in StudyCommands.panels.values() for name in names):
        said = run(name, "--help")
        assert said.code == 0
        assert f"multiplay study {name}" in said.out
        assert "JSON:" in said.out
        assert name == "check" or "MULTIPLAY_STORE" in said.out, "a check reads no store"


# ---------------------------------------------------------------- in processes of their own


@pytest.mark.slow
def test_a_session(tmp_path: Path) -> None:
    """Two processes and a pipe; nothing but a file between them."""
    other = {k: v for k, v in os.environ.items() if k != "MULTIPLAY_STORE"}

    def multiplay(*words: object, stdin: str = "") -> str:
        command = [sys.executable, "-m", "multiplay", "study", *map(str, words)]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, cwd=tmp_path, env=other
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    multiplay("create", "lanes", *LANES)
    play = json.loads(multiplay("ask", "lanes", "--json"))
    rows = [f"{arm},100" for arm, units in play["plan"].items() for _ in range(units)]
    assert "10 of 10" in multiplay("tell", "lanes", 1, "-", stdin="\n".join(["arm,loss", *rows]))
    assert "all entries are intact" in multiplay("verify", "lanes")
    with Study.open("lanes", store=tmp_path / "multiplay.db") as study:
        assert study.plays()["realised"].tolist() == [1000.0]


def test_a_restored_backup_is_accepted(lanes: Run) -> None:
    assert lanes("accept", "lanes").out == "lanes continues after entry 1\n"
    assert lanes("accept", "lanes", "--json").json == {"study": "lanes", "last": 1}


@pytest.mark.parametrize(
    ("url", "warns"),
    [
        ("postgresql://ann:secret@127.0.0.1:1/plans", True),
        ("postgresql://127.0.0.1:1/plans?user=ann&password=secret", True),
        ("postgresql://ann@127.0.0.1:1/plans", False),
    ],
)
def test_a_password_on_the_command_line_is_warned_of(
    url: str, warns: bool, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run("list", "--store", url)
    assert said.code == 1
    assert ("MULTIPLAY_STORE" in said.err) == warns
    assert "secret" not in said.err
    monkeypatch.setenv("MULTIPLAY_STORE", url)
    assert "MULTIPLAY_STORE" not in run("list").err


def test_a_study_is_copied(lanes: Run, tmp_path: Path) -> None:
    said = lanes("copy", "lanes", tmp_path / "a.db", "--as", "more", "--json").json
    assert said == {"study": "more", "store": f"sqlite:///{tmp_path}/a.db", "entries": 2}
    plain = lanes("copy", "lanes", tmp_path / "a.db")
    assert plain.out == f"lanes in sqlite:///{tmp_path}/a.db: 2 entries\n"
    again = lanes("copy", "lanes", tmp_path / "a.db")
    assert again.code == 2
    assert "a new name" in again.err
    assert lanes("copy", "lanes", "--as", "trial", "--json").json["study"] == "trial"
    assert lanes("copy", "lanes").code == 2


def test_a_study_is_renamed(lanes: Run) -> None:
    assert lanes("rename", "lanes", "roads of 2026").out == "lanes is now roads of 2026\n"
    assert lanes("rename", "roads of 2026", "roads", "--json").json == {"study": "roads"}
    assert lanes("list", "--json").json["studies"] == ["roads"]
    for old, new in (("lanes", "ways"), ("roads", "roads"), ("roads", " ")):
        said = lanes("rename", old, new)
        assert (said.code, "name: expected" in said.err) == (2, True)


MODEL = """NAME depots
ROWS
 N  cost
 E  demand
 L  room
COLUMNS
    M1  'MARKER'  'INTORG'
    x[north]  demand  1  room  1
    x[south]  demand  1  cost  0.5
    open  cost  30  room  -5
    M2  'MARKER'  'INTEND'
RHS
    RHS  demand  4
BOUNDS
 UP BND x[north] 5
 UP BND x[south] 5
 BV BND open
ENDATA
"""


def test_a_study_of_an_optimisation_model(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "plan.mps"
    path.write_text(MODEL)
    helpers, known = tmp_path / "helpers.toml", tmp_path / "all.toml"
    helpers.write_text('known = "helpers"\n')
    known.write_text('known = "all"\n')
    create = ("create", "depots", "--model", path, "--loss-range", "0,100")
    made = run(*create, "--columns", "x[*]", "--settings", helpers, "--json")
    assert made.json["arms"] == ["x[north]", "x[south]"]
    plan = run("ask", "depots", "--exclude", "x[south]", "--json").json["plan"]
    assert plan == {"x[north]": 4, "x[south]": 0}
    assert run("best", "depots", "--json").json["plan"] == {"x[north]": 0, "x[south]": 4}
    for options, words in (
        ((), "--columns: expected the columns that are arms"),
        (("--columns", "x[*]"), "--settings, known: expected 'all', 'helpers' or 'nothing'"),
        (("--columns", "y[*]", "--settings", known), "--columns: expected a name or pattern"),
        (
            ("--columns", "x[*]", "--settings", known, "--supply", "1", "--demand", "1"),
            "--set: expected",
        ),
    ):
        refused = run(*create, *options)
        assert refused.code != 0
        assert words in " ".join(refused.err.split())
    lanes = ("create", "lanes", "--supply", "1", "--demand", "1", "--settings", known)
    assert "--settings, known: expected --model with it" in run(*lanes).err
    path.write_text("ROWS\n")
    assert "--model, line 1: expected" in run(*create, "--columns", "x").err


def test_promises_are_made_shown_and_released(run: Run, tmp_path: Path) -> None:
    amounts, ahead = tmp_path / "co2 of lanes.csv", tmp_path / "days.json"
    amounts.write_text("arm;amount\n*;80\nLyon->*;120,5\n", encoding="utf-8")
    settings = tmp_path / "promises.toml"
    settings.write_text(
        f'[[constraints]]\ntype = "AtMost"\nname = "CO2"\nlimit = 2000\nof = "{amounts}"\n'
        'until = "2027-11-30"\nplays = 2\n',
        encoding="utf-8",
    )
    assert run("create", "lanes", *LANES, "--settings", settings).code == 0
    ahead.write_text('[{"demand": [5, 5]}]', encoding="utf-8")
    said = run("ask", "lanes", "--ahead", ahead, "--json").json
    assert [*said["prices"]] == ["CO2"]
    assert said["held"] is False
    used = sum(units * (120.5 if arm[:4] == "Lyon" else 80) for arm, units in said["plan"].items())
    (row,) = run("constraints", "lanes", "--json").json
    assert row["constraint"]["limit"] == 2000
    assert (row["used"], row["left_plays"], row["holds"]) == (used, 1, "sure")
    assert run("show", "lanes", "--json").json["constraints"] == [row]
    assert "will it hold? sure" in " ".join(run("show", "lanes").out.split())
    table = run("constraints", "lanes").out
    assert "at most 2,000" in table

    soft = run("add-constraint", "lanes", f"contract>=3 plays 9 of {amounts} soft", "--json").json
    expected = {"type": "AtLeast", "name": "contract", "hard": False, "until": None, "plays": 9}
    assert expected.items() <= soft["constraint"].items()
    assert "prices: CO2" in run("ask", "lanes").out
    assert run("end-constraint", "lanes", "CO2").out == "CO2: ended\n"
    assert "Did you mean 'contract'" in run("end-constraint", "lanes", "contrac").err
    assert [row["name"] for row in run("constraints", "lanes", "--json").json] == ["contract"]
    run("end-constraint", "lanes", "contract")
    assert run("constraints", "lanes") == (0, "", "no constraints\n")


def test_a_baseline_and_a_switching_cost_are_added(run: Run, tmp_path: Path) -> None:
    settings, prices = tmp_path / "lanes.toml", tmp_path / "prices.csv"
    settings.write_text('[[constraints]]\ntype = "SwitchingCost"\ncost = 15\n')
    prices.write_text("arm,price\n*,3\n")
    assert run("create", "lanes", *LANES, "--settings", settings).code == 0
    limit = ("add-constraint", "lanes", "--baseline", "in-proportion", "--allowance", "0.05")
    added = run(*limit, "--per", "week", "--json").json["constraint"]
    assert (added["rule"]["type"], added["allowance"], added["per"]) == (
        "InProportion",
        0.05,
        "week",
    )
    assert "multiplay study end-constraint STUDY 'baseline'" in run(*limit).err
    assert "one constraint" in run(*limit, "--switching-cost", "3").err
    assert "one constraint" in run("add-constraint", "lanes").err
    rows = run("constraints", "lanes").out.splitlines()
    assert [row.partition(":")[0] for row in rows] == ["baseline", "switching cost"]
    assert run("end-constraint", "lanes", "baseline", "--json").json == {"ended": "baseline"}
    assert run("add-constraint", "lanes", "--baseline", "each-day").code == 0
    assert "Use multiplay study constraints" in run("allowance", "lanes").err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CO2", "expected a promise"),
        ("CO2 < 3 plays 2 of {}", "expected a promise"),
        ("CO2 <= 3 of {}", "expected a promise"),
        ("CO2 <= 3 plays 2.5 of {}", "expected a promise"),
        ("CO2 <= much plays 2 of {}", "a number as the limit"),
        ("CO2 <= nan plays 2 of {}", "limit: expected a number of 0 or more"),
        ("CO2 <= 3 plays 0 of {}", "plays: expected"),
        ("CO2 <= 3 until 2026-02-30 plays 2 of {}", "until: expected a date"),
        ("CO2 <= 3 plays 2 of nowhere.csv", "a CSV file"),
        ("CO2 <= -3 plays 2 of {}", "a number of 0 or more"),
    ],
)
def test_a_promise_that_is_wrong_says_where(
    run: Run, tmp_path: Path, text: str, reason: str
) -> None:
    amounts = tmp_path / "co2.csv"
    amounts.write_text("arm,amount\n*,80\n")
    run("create", "lanes", *LANES)
    said = run("add-constraint", "lanes", text.format(amounts))
    assert said.code != 0
    assert "promise" in said.err
    assert reason in " ".join(said.err.split())
    assert run("constraints", "lanes", "--json").json == []


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("arm,price\n*,80\n", "the columns arm and amount"),
        ("arm,amount\n*,80\n*,90\n", "line 3: expected every arm once"),
        ("arm,amount\n*,-80\n", "a number of 0 or more"),
        ("arm,amount\n*,dear\n", "a number of 0 or more"),
        ("arm,amount\nLyon->*,80\n", "an amount of CO2 for every arm"),
        ("arm,amount\n*,80\nLion->*,3\n", "names or patterns of arms"),
    ],
)
def test_amounts_that_are_wrong_are_named(run: Run, tmp_path: Path, file: str, reason: str) -> None:
    amounts = tmp_path / "co2.csv"
    amounts.write_text(file)
    settings = tmp_path / "promises.toml"
    promise = f'type = "AtMost"\nname = "CO2"\nlimit = 9\nplays = 2\nof = "{amounts}"\n'
    settings.write_text(f"[[constraints]]\n{promise}")
    said = run("create", "lanes", *LANES, "--settings", settings)
    assert said.code != 0
    assert reason in " ".join(said.err.split())
    assert run("list", "--json").json["studies"] == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[", "--ahead: expected JSON"),
        ("{}", "--ahead: expected a list of sets"),
        ("[3]", "--ahead: expected a list of sets"),
        ('[{"demand": [5, 6]}]', "--ahead[0]"),
        ('[{}, {"type": "Nothing"}]', "--ahead[1]"),
        ("[{}]", "ahead: expected no sets without promises"),
    ],
)
def test_sets_ahead_that_are_wrong_are_named(
    run: Run, tmp_path: Path, content: str, reason: str
) -> None:
    ahead = tmp_path / "days.json"
    ahead.write_text(content)
    run("create", "lanes", *LANES)
    said = run("ask", "lanes", "--ahead", ahead)
    assert said.code != 0
    assert reason in " ".join(said.err.split())
    assert "0 plans asked" in run("show", "lanes").out
