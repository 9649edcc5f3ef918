"""Tables that are imported again: rows that are known are learned once."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import multiplay as mp
from multiplay.errors import Conflict, InvalidInput
from multiplay.learner.known_rows import known_rows
from multiplay.learner.logged_data import LoggedData

PLANS = mp.Transport([2, 1], [1, 2], names=(["Lyon", "Lille"], ["north", "south"]))
NORTH, SOUTH = "Lyon->north", "Lyon->south"
Make = Callable[..., Any]


@pytest.fixture(params=["learner", "study"])
def new(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    def made(**options: Any) -> Any:
        settings = {"loss_range": (0, 250)} | options
        if request.param == "learner":
            return mp.Learner(PLANS, **settings)
        return mp.Study.create("lanes", PLANS, store=tmp_path / "lanes.db", **settings)

    return made


def bills(*rows: tuple[Any, ...], **more: list[Any]) -> pd.DataFrame:
    return pd.DataFrame([*rows], columns=["arm", "round", "loss"]).assign(**more)


MARCH = bills((NORTH, "2026-03-01", 120.0), (NORTH, "2026-03-01", 120.0), (SOUTH, "2026-03-02", 90))
APRIL = bills((NORTH, "2026-04-01", 120.0), (SOUTH, "2026-04-01", 95.0))
YEAR = pd.concat([MARCH, APRIL])


def units(owner: Any) -> int:
    return int(owner.arms()["seen"].sum())


def test_the_same_table_again_adds_nothing(new: Make) -> None:
    owner = new()
    owner.learn_table(MARCH)
    before = owner.arms()
    told = owner.learn_table(MARCH, key="again")
    assert (told.repeated, told.known, told.seen) == (True, 3, 0)
    assert str(told) == "an external plan: all 3 rows are known, nothing has changed"
    pd.testing.assert_frame_equal(owner.arms(), before)
    assert len(owner.imports()) == 1


def test_of_the_year_so_far_the_new_rows_are_learned(new: Make) -> None:
    owner, once = new(), mp.Learner(PLANS, loss_range=(0, 250))
    owner.learn_table(MARCH)
    check = owner.check_table(YEAR)
    assert (check.known, check.new, check.changed) == (3, 2, 0)
    assert "3 known, 2 new" in str(check)
    told = owner.learn_table(YEAR, key="year")
    assert (told.seen, told.known, told.repeated) == (2, 3, False)
    assert owner.learn_table(YEAR, key="year") == told._replace(repeated=True)
    with pytest.raises(Conflict, match="different table"):
        owner.learn_table(MARCH, key="year")
    once.learn_table(MARCH)
    once.learn_table(APRIL)
    pd.testing.assert_frame_equal(owner.arms(), once.arms())


def test_equal_rows_of_one_table_are_counted(new: Make) -> None:
    owner = new()
    owner.learn_table(MARCH[1:])  # one of two equal bills
    told = owner.learn_table(MARCH)
    assert (told.seen, told.known, units(owner)) == (1, 2, 3)


def test_known_rows_are_added_or_refused_on_request(new: Make) -> None:
    owner = new()
    owner.learn_table(MARCH)
    with pytest.raises(Conflict) as caught:
        owner.learn_table(YEAR, again="refuse")
    assert caught.value.got == "3 of 5 rows are known"
    with pytest.raises(Conflict):
        owner.learn_table(MARCH, again="refuse")
    assert units(owner) == 3
    assert owner.learn_table(MARCH, again="add").seen == 3
    assert units(owner) == 6
    with pytest.raises(InvalidInput) as wrong:
        owner.learn_table(MARCH, again="yes")
    assert wrong.value.argument == "again"


def test_rounds_without_dates_are_known_by_their_labels(new: Make) -> None:
    owner = new()
    owner.learn_table(bills((NORTH, "week 2", 10.0), (NORTH, "week 3", 10.0)))
    told = owner.learn_table(bills((NORTH, "week 1", 10.0), (NORTH, "week 2", 10.0)))
    assert (told.seen, told.known) == (1, 1)
    assert owner.learn_table(bills((NORTH, "week 1", 10.0))).known == 1
    owner.learn_table(bills((SOUTH, 7, 10.0)))
    assert owner.learn_table(bills((SOUTH, 7.0, 10.0))).known == 1


@pytest.mark.parametrize(
    ("rounds", "ids"), [(("week 1", "week 2"), None), (("week 1",) * 2, ("A1", "A2"))]
)
def test_a_key_is_of_the_labels_and_ids_of_its_table(
    new: Make, rounds: tuple[str, str], ids: tuple[str, str] | None
) -> None:
    """Another table under the same key would be lost if it counted as the same."""
    owner = new()
    tables = [
        bills((NORTH, week, 120.0), **({} if ids is None else {"id": [ids[k]]}))
        for k, week in enumerate(rounds)
    ]
    more = {} if ids is None else {"id": "id"}
    owner.learn_table(tables[0], key="k", **more)
    assert owner.learn_table(tables[0], key="k", **more).repeated
    with pytest.raises(Conflict, match="key"):
        owner.learn_table(tables[1], key="k", **more)
    owner.learn_table(tables[1], key="l", **more)
    assert units(owner) == 2


def test_ids_name_bills_that_are_equal_otherwise(new: Make) -> None:
    owner = new()
    first = bills((NORTH, "2026-03-01", 120.0), (SOUTH, "2026-03-01", 90.0), invoice=["7", "7"])
    owner.learn_table(first, id="invoice")
    again = bills((NORTH, "2026-03-01", 120.0), (SOUTH, "2026-03-02", 99.0), invoice=["8", "7"])
    check = owner.check_table(again, id="invoice")
    assert (check.known, check.new, check.changed) == (1, 1, 1)
    assert owner.check_table(again).known == 1  # by arm, round and loss
    told = owner.learn_table(again, id="invoice")
    assert (told.seen, told.known) == (1, 1)
    assert owner.learn_table(first.drop(columns="invoice")).known == 2


def test_a_table_without_ids_is_known_when_they_are_given_later(new: Make) -> None:
    owner = new()
    owner.learn_table(MARCH)
    assert owner.learn_table(MARCH.assign(invoice=["1", "2", "3"]), id="invoice").known == 3


def test_losses_that_were_told_for_the_plan_of_a_day_are_known(new: Make) -> None:
    owner = new(varying_set=True)
    owner.ask(key="2026-03-02", fixed={SOUTH: 1, NORTH: 1})
    owner.tell("2026-03-02", {SOUTH: [90.0], NORTH: [50.0], "Lille->south": [60.0]})
    assert owner.learn_table(MARCH).known == 1
    owner.correct("2026-03-02", {SOUTH: [91.0], NORTH: [50.0], "Lille->south": [60.0]})
    both, day = mp.Budget(2, [2], names=[SOUTH]), "2026-04-03"
    owner.learn({SOUTH: 2}, {SOUTH: 200.0}, actions=both, key=day)
    rows = bills((SOUTH, day, 110.0), (SOUTH, day, 90.0), (NORTH, day, 1))
    told = owner.learn_table(rows)  # two rows make up the total
    assert (told.seen, told.known) == (1, 2)
    owner.retract("2026-04-03")
    assert owner.check_table(rows).known == 1


def test_an_import_is_listed_and_retracted_by_its_name(new: Make, tmp_path: Path) -> None:
    owner, path = new(), tmp_path / "bills.csv"
    MARCH.to_csv(path, index=False)
    owner.learn_table(path)
    YEAR.to_csv(path, index=False)
    owner.learn_table(path)
    owner.learn_table(bills((NORTH, "2026-05-01", 100.0)), key="May")
    names = ["bills.csv", "bills.csv (2)", "May"]
    assert [one.name for one in owner.imports()] == names
    assert str(owner.imports()[1]).startswith(
        "bills.csv (2): 2 units of 1 day, 2026-04-01 to 2026-04-01, total 215, 3 rows known before"
    )
    owner.retract("bills.csv")
    assert [one.retracted for one in owner.imports()] == [True, False, False]
    assert units(owner) == 3
    assert owner.learn_table(MARCH).seen == 3  # it is not known any more
    with pytest.raises(Conflict, match="retracted"):
        owner.retract("bills.csv")


def test_entries_without_digests_are_read_and_compared() -> None:
    """Of an older version: dates are known; labels are not, but the whole table is."""
    dated = LoggedData(["air"], np.zeros(1, int), np.zeros(1, int), np.ones(1), times=np.ones(1))
    assert not known_rows(dated, [dated._replace(source="old.csv")]).new.any()
    undated = dated._replace(times=np.zeros(0))
    labelled = undated._replace(labels=np.array([5], dtype=np.uint64))
    assert known_rows(labelled, [undated]).new.all()


def test_a_study_with_known_rows_is_verified(tmp_path: Path) -> None:
    study = mp.Study.create("lanes", PLANS, store=tmp_path / "lanes.db", loss_range=(0, 250))
    study.learn_table(MARCH, id=None, source="march.csv")
    study.learn_table(YEAR.assign(invoice=list("abcde")), id="invoice")
    study.learn_table(bills((NORTH, "week 2", 10.0)))
    assert study.verify().ok
    pd.testing.assert_frame_equal(
        mp.Study.open("lanes", store=tmp_path / "lanes.db").arms(), study.arms()
    )


ROW = st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.sampled_from([1.0, 2.0, np.nan]))


@given(st.lists(ROW), st.lists(st.lists(ROW)))
def test_new_rows_are_those_beyond_the_known_ones(
    rows: list[tuple[str, int, float]], before: list[list[tuple[str, int, float]]]
) -> None:
    def logged(some: list[tuple[str, int, float]]) -> LoggedData:
        arms = sorted({arm for arm, _, _ in some}, reverse=len(some) % 2 == 0)
        return LoggedData(
            arms,
            np.array([arms.index(arm) for arm, _, _ in some], dtype=int),
            np.array([day for _, day, _ in some], dtype=int),
            np.array([loss for _, _, loss in some], dtype=float),
            times=np.array([10.0, 20.0]),
        )

    found = known_rows(logged(rows), [*map(logged, before)])
    left = Counter(map(str, (row for table in before for row in table)))
    new = Counter(map(str, rows)) - left
    kept = [str(row) for row, is_new in zip(rows, found.new, strict=True) if is_new]
    assert Counter(kept) == new
