"""Tables of logged data: dates, arms, losses, problems by row, and what is learned from them."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusal import refused

import multiplay as mp
from multiplay import Learner, Study
from multiplay._support.csv_format import number_in
from multiplay._support.dates import date_seconds
from multiplay.errors import InvalidInput
from multiplay.learner.logged_data import read_bills
from multiplay.policies import Policy

PLANS = mp.Transport([2, 1], [1, 2], names=(["Lyon", "Lille"], ["north", "south"]))
NEW_YEAR = datetime(2026, 12, 31, tzinfo=UTC).timestamp()


def new(policy: Policy | None = None, **options: Any) -> Learner:
    return Learner(PLANS, policy, loss_range=(0, 250), **options)


def bills(**columns: Any) -> pd.DataFrame:
    """Return three bills of two days, with other columns."""
    rows = {
        "arm": ["Lyon->north", "Lyon->south", "Lyon->north"],
        "round": ["2026-12-30", "2026-12-31", "2026-12-31"],
        "loss": [120.5, 95.0, 80.0],
    }
    return pd.DataFrame(rows | columns)


# ---------------------------------------------------------------- dates


@pytest.mark.parametrize(
    "day",
    [
        *(date(2026, 12, 31), datetime(2026, 12, 31), pd.Timestamp("2026-12-31")),
        datetime(2026, 12, 31, 2, tzinfo=timezone(timedelta(hours=2))),
        *("2026-12-31", " 2026/12/31 ", "2026-12-31T00:00:00Z", "2026-12-30 23:00:00.000-0100"),
        *("31.12.2026", "31.12.26", "31/12/2026", "12/31/2026", "31-12-2026", "31.12.2026 0:00"),
        *("12/31/2026 12:00 AM", "31.12.2026, 01:00 +01:00"),
    ],
    ids=repr,
)
def test_dates_are_read_in_every_usual_form(day: Any) -> None:
    assert date_seconds("day", [day]) == [NEW_YEAR]


@given(st.lists(st.dates(date(1900, 1, 1), date(2100, 1, 1)), min_size=1), st.sampled_from("./-"))
def test_a_date_in_text_is_that_date_or_its_order_is_asked_for(days: list[date], mark: str) -> None:
    texts = [day.strftime(f"%d{mark}%m{mark}%Y") for day in days]
    expected = [datetime(d.year, d.month, d.day, tzinfo=UTC).timestamp() for d in days]
    assert date_seconds("day", texts, day_first=True) == expected
    clear = mark == "." or any(d.day > 12 for d in days) or all(d.day == d.month for d in days)
    if clear:
        assert date_seconds("day", texts) == expected
    else:
        with pytest.raises(InvalidInput, match=r"which number is the month.*day_first=True"):
            date_seconds("day", texts)


def test_an_order_of_day_and_month_is_not_guessed() -> None:
    learner, one = new(), bills(round=["03/04/2026"] * 3)
    with refused("table['round']: expected dates that show which number is the month"):
        learner.learn_table(one)
    with refused("table['round']: expected dates in one format, got '31/12/2026' and '12/31/2026'"):
        learner.learn_table(bills(round=["31/12/2026", "12/31/2026", "01/01/2026"]))
    with refused("day_first: expected True or False"):
        learner.check_table(one, day_first="yes")  # type: ignore[arg-type]
    for day_first, month in ((True, 4), (False, 3)):
        first = learner.check_table(one, day_first=day_first).first
        assert first is not None
        assert (first.month, first.day) == (month, 7 - month)
    mixed = bills(round=["31/12/2026", "12/31/2026", "01/01/2026"])
    (problem,) = learner.check_table(mixed, day_first=True).problems
    assert str(problem) == "row 1, round: '12/31/2026' is not a date"


@pytest.mark.parametrize(
    "rounds",
    [
        pd.to_datetime(["2026-12-30", "2026-12-31", "2026-12-31"]),
        pd.to_datetime(["2026-12-30", "2026-12-31", "2026-12-31"]).tz_localize("UTC"),
        [date(2026, 12, 30), "31.12.2026", datetime(2026, 12, 31)],
        pd.Categorical(["2026-12-30", "2026-12-31", "2026-12-31"]),
    ],
    ids=["times", "times with a zone", "mixed", "categories"],
)
def test_dates_set_the_rounds_and_when_an_arm_was_last_seen(rounds: Any) -> None:
    for table in (bills(round=rounds), bills(round=rounds)[::-1]):
        learner = new()
        learner.learn_table(table)
        arms = learner.arms().set_index("arm")
        seen = arms.loc[["Lyon->north", "Lyon->south"], "last_seen"]
        assert seen.tolist() == [pd.Timestamp(NEW_YEAR, unit="s", tz="UTC")] * 2
        assert arms["last_seen"].isna().tolist() == [False, False, True, True]
        assert arms["share"].tolist() == [1.0, 0.5, 0.0, 0.0]


def test_rounds_without_dates_have_an_order_and_no_time() -> None:
    for rounds in ([1, 2, 2], ["week 1", "week 2", "week 2"], [0.5, 1.5, 1.5]):
        learner = new()
        check = learner.check_table(bills(round=rounds))
        assert (check.rounds, check.first, check.problems) == (2, None, ())
        learner.learn_table(bills(round=rounds))
        assert learner.arms()["last_seen"].isna().all()


# ---------------------------------------------------------------- arms and losses


@pytest.mark.parametrize(
    "convert", [pd.DataFrame, pl.from_pandas, None], ids=["pandas", "polars", "file"]
)
def test_an_arm_in_two_columns_is_one_arm(
    convert: Callable[[pd.DataFrame], Any] | None, tmp_path: Path
) -> None:
    parts = bills(depot=["Lyon", " Lyon", "Lyon"], customer=["north", "south ", "north"])
    table = parts.drop(columns="arm")
    given: Any = tmp_path / "bills.csv"
    if convert is None:
        table.to_csv(given, index=False, sep=";", decimal=",")
    else:
        given = convert(table)
    learners = new(), new()
    learners[0].learn_table(given, arm=["depot", "customer"])
    learners[1].learn_table(bills())
    for one, other in zip(*(learner.state.values() for learner in learners), strict=True):
        np.testing.assert_array_equal(one, other)


NUMBERS = st.decimals(-(10**9), 10**9, places=2)


@given(NUMBERS, st.sampled_from([(".", ","), (",", "."), (".", " "), (",", "\u00a0"), (".", "'")]))
def test_a_number_in_text_is_that_number(value: Any, marks: tuple[str, str]) -> None:
    decimal, groups = marks
    text = f"{value:,}".replace(",", "_").replace(".", decimal).replace("_", groups)
    assert number_in(text, decimal) == float(value)
    assert number_in(f"{text} €", decimal) == number_in(f"{text}EUR", decimal) == float(value)
    assert number_in(f"{text} km", decimal) is None


def test_problems_name_row_column_value_and_reason(tmp_path: Path) -> None:
    """The header is row 1 of a file, and rows of a data frame count from 0."""
    path = tmp_path / "bills.csv"
    path.write_text(
        "date;depot;customer;euros\n"
        "31.12.2026;Lyon;north;1.120,50\n"  # 2: outside the range
        "\n"
        "31.12.2026;Lyon;;95,00\n"  # 4: no customer
        ";Lyon;north;95,00\n"  # 5: no date
        "31.02.2026;Lyon;north;95,00\n"  # 6: no day of the calendar
        "31.12.2026;Lyon;north;n/a\n"  # 7: no number
        "31.12.2026;Lyon;north;-1\n"  # 8: outside
        "31.12.2026;Lyon;north;\n"  # 9: missing, which is no problem
        "1.1.2027;Nice;north;95,00\n"  # 10: a new arm
    )
    columns: Any = {"arm": ["depot", "customer"], "round": "date", "loss": "euros"}
    learner = new()
    check = learner.check_table(path, **columns)
    assert [str(problem) for problem in check.problems] == [
        "row 2, euros: '1.120,50' is outside 0 to 250",
        "row 4, customer is empty",
        "row 5, date is empty",
        "row 6, date: '31.02.2026' is not a date",
        "row 7, euros: 'n/a' is not a number",
        "row 8, euros: '-1' is outside 0 to 250",
    ]
    assert (check.rows, check.rounds, check.missing, check.total) == (8, 2, 1, 95.0)
    assert (check.arms, check.added) == (("Lyon->north", "Nice->north"), ("Nice->north",))
    assert str(check.format) == "columns separated by semicolons, decimal comma"
    assert [str(row["row"]) for row in map(mp.TableProblem._asdict, check.problems)] == list(
        "245678"
    )
    with refused("table: expected rows without problems, got 6 rows with problems:\n  row 2"):
        learner.learn_table(path, **columns)
    told = learner.learn_table(path, **columns, skip_bad=True)
    assert told == mp.Receipt(None, 1, 1, added=("Nice->north",), skipped=6)
    many = pd.concat([bills(loss=["?"] * 3)] * 5)
    with pytest.raises(InvalidInput, match="15 rows with problems") as caught:
        learner.learn_table(many)
    assert str(caught.value).count("\n") == 11
    assert "\n  and 5 more. Correct these rows" in str(caught.value)


HEADERS = [
    ("lane,round,loss\na,1,1\n", "table: expected one column 'arm', got 'lane', 'round', 'loss'"),
    ("arm,arm,round,loss\na,b,1,1\n", "table: expected one column 'arm', got 'arm', 'arm'"),
    ("arm,round,loss\n", "table: expected outcomes, got no rows"),
    ("", "table: expected a CSV file"),
    ("arm,round,loss\na,1,?\n", "table: expected a row without problems"),
]


@pytest.mark.parametrize(("text", "message"), HEADERS, ids=[text for text, _ in HEADERS])
def test_a_file_without_usable_rows_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bills.csv"
    path.write_text(text)
    learner = new()
    with refused(message):
        learner.learn_table(path, skip_bad=True)
    assert learner.arms()["seen"].sum() == 0


def test_columns_are_named_once() -> None:
    for arm in ([], ["arm", 7], ["arm", "arm"], "loss"):
        with pytest.raises(InvalidInput, match=r"^(arm|table): expected"):
            new().learn_table(bills(), arm=arm)  # type: ignore[arg-type]


def test_numbers_in_text_with_two_decimal_marks_are_refused() -> None:
    for losses in (["1,5", "2.5", "3"], ["1,234", "2,345", "3"]):
        with refused("table['loss']: expected"):
            new().learn_table(bills(loss=losses))


def test_names_that_look_alike_are_one_arm() -> None:
    plans = mp.Budget(2, [2, 2], names=["Z\u00fcrich", "7"])
    learner = Learner(plans, loss_range=(0, 250))
    names = ["Zu\u0308rich", " Z\u00fcrich ", "Bern\u200b"]
    assert learner.learn_table(bills(arm=names)).added == ("Bern\u200b",)
    assert learner.learn_table(bills(arm=[7.0, 7, "7"])).added == ()
    assert learner.arms()["seen"].tolist() == [2, 3, 1]


# ---------------------------------------------------------------- new arms


@pytest.mark.parametrize(
    "policy",
    [None, mp.GenCTS(), mp.CombUCB(), mp.GenLBINFV(), mp.GaussianCTS(discount=0.9)],
    ids=repr,
)
def test_an_arm_that_a_table_adds_is_that_of_a_set(policy: Policy | None) -> None:
    """The same belief as if the arm had been in the set from the beginning."""
    wide = mp.Transport([2, 1, 0], [1, 2], names=(["Lyon", "Lille", "Nice"], ["north", "south"]))
    table = bills(arm=["Nice->north", "Lyon->south", "Nice->north"])
    added, known = new(policy), Learner(wide, policy, loss_range=(0, 250))
    assert added.learn_table(table).added == ("Nice->north",)
    assert known.learn_table(table).added == ()
    tables = [
        one.arms().set_index("arm").drop(index="Nice->south", errors="ignore")
        for one in (added, known)
    ]
    pd.testing.assert_frame_equal(
        tables[0][["seen", "average", "last_seen", "share"]],
        tables[1].loc[tables[0].index, ["seen", "average", "last_seen", "share"]],
    )
    play = added.ask(wide)
    added.tell(play, {lane: [50.0] * units for lane, units in play.plan.items()})
    assert added.learn_table(table).added == ()


def test_a_fixed_set_gets_no_arms() -> None:
    learner, table = new(mp.LinTS()), bills(arm=["Nice", "Lyon->north", "Lyon->south"])
    check = learner.check_table(table)
    (problem,) = check.problems
    assert str(problem).startswith("row 0, arm: 'Nice' is not an arm of the set, which is fixed")
    assert check.added == ()


# ---------------------------------------------------------------- studies


def test_a_study_replays_dates_new_arms_and_skipped_rows() -> None:
    store = "memory://logged-tables"
    study = Study.create("bills", PLANS, loss_range=(0, 250), store=store)
    table = bills(arm=["Nice->north", "Lyon->south", None])
    told = study.learn_table(table, key="old", skip_bad=True, at=datetime(2027, 1, 5, tzinfo=UTC))
    assert told == mp.Receipt(None, 2, 0, added=("Nice->north",), skipped=1)
    again = study.learn_table(table, key="old", skip_bad=True)
    assert again == told._replace(repeated=True)
    with pytest.raises(InvalidInput, match="different table"):
        study.learn_table(bills(round=["2026-12-29", "2026-12-31", "2026-12-31"]), key="old")
    assert study.verify().ok
    same = Study.open("bills", store=store)
    pd.testing.assert_frame_equal(same.arms(), study.arms())
    assert same.arms()["last_seen"].notna().sum() == 2
    learner = new()
    learner.learn_table(table, skip_bad=True)
    pd.testing.assert_frame_equal(learner.arms(), study.arms())


def test_external_plans_and_imported_days_are_rows_of_plays(tmp_path: Path) -> None:
    """Before the plays, in order of time, in a study and in a learner that was saved."""
    study = Study.create("days", PLANS, loss_range=(0, 250), store="memory://external-days")
    learner, plan = new(), {"Lyon->north": 1, "Lyon->south": 1, "Lille->south": 1}
    first = datetime(2026, 12, 1, tzinfo=UTC)
    for one in (study, learner):
        one.learn_table(bills(loss=[120.5, None, 80.0]))
        one.learn(
            plan, {"Lyon->north": [50.0], "Lyon->south": [60.0], "Lille->south": 7.5}, at=first
        )
        one.ask(at=first)
        assert len(one.plays()) == 1
    learner.save(tmp_path / "learner.npz")
    for one in (study, learner, Learner.load(tmp_path / "learner.npz")):
        rows = one.plays(external=True)
        assert rows["status"].tolist() == ["external"] * 3 + ["pending"]
        assert rows["id"].tolist() == [0, 0, 0, 1]
        days = rows["asked"].dt.strftime("%m-%d").tolist()
        assert days == ["12-01", "12-30", "12-31", "12-01"]
        assert rows["realised"].tolist()[:3] == [117.5, 120.5, 80.0]
        assert rows["units"].tolist()[:3] == [3, 1, 2]
        assert rows["seen"].tolist()[:3] == [3, 1, 1]
    parts = [len(part) for part in study.plays(external=True, chunk=2)]
    assert parts == [2, 1, 1]
    with refused("external: expected True or False"):
        study.plays(external=1)  # type: ignore[arg-type]


def test_bills_of_a_round_are_read_like_history() -> None:
    parts = {"depot": ["Lyon", "Lyon"], "customer": ["south", "south"], "euros": ["1.020,5", None]}
    assert read_bills(parts, ["depot", "customer"], "euros") == {"Lyon->south": [1020.5, None]}
    with refused(
        "table: expected rows without problems, got 1 row with a problem:\n  row 1, euros"
    ):
        read_bills(parts | {"euros": [1, "x"]}, ["depot", "customer"], "euros")
