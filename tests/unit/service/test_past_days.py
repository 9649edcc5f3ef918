"""What imported days cost, and what their plans would have: numbers, pages, and their limits."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_client import Place, browsing
from trucks import euros

import multiplay as mp
from multiplay.learner.logged_data import LoggedData
from multiplay.service.pages import past_days
from multiplay.service.pages.past_days import DrivenDays, driven_days, plans_of_days
from multiplay.storage import store_at
from multiplay.studies.imports import tables_that_count

PAGE = "/studies/lanes"
COSTS = {"Lyon->north": 100.0, "Lyon->south": 20.0, "Lille->north": 30.0, "Lille->south": 90.0}
WORDS = mp.Words("EUR", "truck", "lane", "day")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with browsing(f"sqlite:///{tmp_path / 'plans.db'}") as found:
        yield found


def bills(days: int, *, noise: float = 0.0) -> dict[str, list[Any]]:
    """Return days on which the dear lanes are driven, and on each third day the others."""
    table: dict[str, list[Any]] = {"arm": [], "round": [], "loss": []}
    rng = np.random.default_rng(7)
    for day in range(days):
        cheap = day % 3 == 0
        for arm in ("Lyon->south", "Lille->north") if cheap else ("Lyon->north", "Lille->south"):
            for _ in range(2):
                table["arm"].append(arm)
                table["round"].append(f"2026-03-{day + 1:02}")
                table["loss"].append(COSTS[arm] + float(rng.normal(0, noise)))
    return table


def study_of(place: Place, name: str = "lanes") -> mp.Study:
    sides = ["Lyon", "Lille"], ["north", "south"]
    actions = mp.Transport([2, 2], [2, 2], names=sides)
    return mp.Study.create(
        name, actions, loss_range=(0, 250), words=WORDS, store=store_at(place.store)
    )


def text_of(page: str) -> str:
    return " ".join(re.sub("<[^>]*>", "", page).split())


def test_the_page_leads_with_what_the_days_cost(place: Place) -> None:
    """20 of 30 days cost 380, the others 100; the best plan costs 100."""
    study = study_of(place)
    assert "What your days cost" not in place.get(PAGE).text
    study.learn_table(bills(30, noise=1.0), source="march.csv")
    page = place.get(PAGE).text
    assert page.index("What your days cost") < page.index('id="plan"')
    lead = text_of(place.get(f"{PAGE}/driven").text)
    found = re.search(r"Your days cost (\S+) EUR on average\. The best plan by these bills: (\S+)"
                      r" EUR \((\S+) to (\S+)\)\.", lead)  # fmt: skip
    assert found
    mean, plan, low, high = map(float, found.groups())
    assert mean == pytest.approx((20 * 380 + 10 * 100) / 30, abs=2)
    assert low < plan < high
    assert plan == pytest.approx(100, abs=3)
    expected = study.best().expected
    assert (plan, low, high) == pytest.approx(expected, abs=0.5), "as the page shows the best plan"
    assert "Of 30 days, each with the plan for its own demand" in lead
    drawn = re.findall(
        r'class="dot external"[^>]*><title>([^<]*)', place.get(f"{PAGE}/driven").text
    )
    assert len(drawn) == 30
    assert drawn[1].startswith("2026-03-02: 38")
    study.retract("march.csv")
    assert "What your days cost" not in place.get(PAGE).text
    assert "What your days cost" not in place.get(f"{PAGE}/driven").text


def test_one_page_to_print(place: Place) -> None:
    study = study_of(place)
    assert "Nothing is known of past days yet" in place.get(f"{PAGE}/report").text
    study.learn_table(bills(12))
    page = place.get(f"{PAGE}/report").text
    text = text_of(page)
    for said in ("Your days cost", "The best plan of a usual day", "What it rests on"):
        assert said in text
    assert 'aria-current="page"' not in page, "it is no tab"
    table = page[page.index("What it rests on") :]
    rows = re.findall(
        r'<th scope="row" class="words">(L[^<]*)</th><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td>', table
    )
    units = {arm: [float(re.sub("<[^>]*>", "", one)) for one in both] for arm, *both in rows}
    assert units["Lyon→south"] == [0.7, 2.0]
    assert units["Lyon→north"] == [1.3, 0.0]
    style = place.get(re.findall(r'href="(/static/pages[^"]*)"', page)[0]).text
    assert "@media print" in style


def test_savings_against_what_was_driven_follow_once_they_are_known(place: Place) -> None:
    study = study_of(place)
    study.learn_table(bills(20, noise=2.0))
    for day in range(11):
        study.tell(play := study.ask(key=f"2026-04-{day + 1:02}"), euros(play))
        leads = "What your days cost" in place.get(PAGE).text
        assert leads == (day < 9), "later, savings are known"
        assert ("Saved against the plans of imported days" in place.get(PAGE).text) != leads
    saved = study.savings("driven")
    ends = saved.words.ends(saved.low, saved.high)
    assert f'hx-get="{PAGE}/saved?part=report"' in place.get(f"{PAGE}/report").text
    for path in ("saved?part=report", "report?wait=yes", "saved?part=page", "savings?wait=yes"):
        page = place.get(f"{PAGE}/{path}").text
        text = text_of(page)
        assert "against the plans of 20 imported days" in text
        assert ends in text
        assert 'class="drawing"' in page, "a bar for each week"
    line = text_of(place.get(f"{PAGE}/saved").text)
    assert "against the plans of 20 imported days" in line
    tab = place.get(f"{PAGE}/savings").text
    assert "Against the plans of imported days" in tab
    study.versus = mp.InProportion()
    assert "in proportion" in text_of(place.get(f"{PAGE}/saved?part=page").text)
    assert "20 imported days" in text_of(place.get(f"{PAGE}/saved?part=report").text)


def logged(arms: list[str], rows: list[tuple[int, int, float]], times: list[float]) -> LoggedData:
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return LoggedData(arms, columns[0], columns[1], columns[2], times=np.array(times))


def test_days_of_several_tables_are_joined() -> None:
    """A unit without a cost counts like the others of its day; a day without costs does not."""
    one = logged(["a", "b"], [(0, 0, 10.0), (1, 0, np.nan), (1, 1, np.nan)], [86400.0, 0.0])
    two = logged(["b", "c"], [(0, 0, 3.0), (1, 0, 4.0), (1, 1, 1.0)], [86400.0, 172800.0])
    days = driven_days([one, two])
    assert days.names == ["a", "b", "c"]
    assert days.times.tolist() == [86400.0, 172800.0]
    assert days.units.tolist() == [[1, 2, 1], [0, 0, 1]]
    assert days.costs.tolist() == [27.0, 1.0]
    assert driven_days([]).units.shape == (0, 0)


def test_the_plan_of_a_day_has_its_demand() -> None:
    """It is as cheap as the cheapest action of the set of that day, found by enumeration."""
    sides = ["Lyon", "Lille"], ["north", "south"]
    actions = mp.Transport([3, 2], [2, 2], names=sides, slack=True)
    names, means = [*COSTS], np.array([*COSTS.values()])
    rng = np.random.default_rng(3)
    units = rng.integers(0, 3, (20, 4))
    days = DrivenDays(names, np.arange(20.0), units, np.ones(20))
    for plan, row in zip(plans_of_days(actions, days, means), units.reshape(20, 2, 2), strict=True):
        assert plan is not None
        supply, demand = np.maximum([3, 2], row.sum(axis=1)), row.sum(axis=0)
        assert plan.reshape(2, 2).sum(axis=0).tolist() == demand.tolist()
        day = mp.Transport([*map(int, supply)], [*map(int, demand)], slack=True)
        assert plan @ means == min(day.enumerate() @ means)


def test_the_picture_has_the_suppliers_of_each_day(place: Place) -> None:
    """Lille, which opens on day 11, is in the best plan, and in the plans of the days since."""
    table: dict[str, list[Any]] = {"arm": [], "round": [], "loss": []}
    for day in range(20):
        north = "Lyon->north" if day < 10 else "Lille->north"
        for arm in (north, "Lyon->south"):
            table["arm"].append(arm)
            table["round"].append(f"2026-03-{day + 1:02}")
            table["loss"].append(COSTS[arm] + (-1) ** day)
    study = study_of(place)
    study.learn_table(table)
    tables = tables_that_count(store_at(place.store).open("lanes"))
    found = past_days.past_days(study, tables)
    assert found is not None
    days, names = driven_days(tables), list(study.actions.names)
    means = np.array([COSTS[name] for name in names])
    for then, wanted in ((False, [50.0] * 20), (True, [120.0] * 10 + [50.0] * 10)):
        plans = plans_of_days(study.actions, days, means, then)
        assert [float(means @ plan) for plan in plans if plan is not None] == wanted
    best, of_then = (
        float(re.search(pattern, text)[1])  # type: ignore[index]
        for pattern, text in (
            (r"by these bills: (\d+(?:\.\d+)?) EUR", found.line),
            (r"would have cost (\d+(?:\.\d+)?) EUR on average", found.remarks[1]),
        )
    )
    assert (best, of_then) == pytest.approx((50, 85), rel=0.05)


def test_days_that_no_plan_fits_are_left_out(place: Place) -> None:
    """They have a lane that the study does not have, or are no plan of its set."""
    days = DrivenDays(["air", "road", "sea"], np.zeros(3), np.eye(3, dtype=np.int64), np.ones(3))
    budget = mp.Budget(1, [1, 1], names=["air", "sea"])
    found = plans_of_days(budget, days, np.array([5.0, 2.0]))
    assert [None if plan is None else plan.tolist() for plan in found] == [[0, 1], None, [0, 1]]
    study = study_of(place)
    study.learn_table({"arm": ["Lyon->north"], "round": ["2026-03-01"], "loss": [9.0]})
    tables = tables_that_count(store_at(place.store).open("lanes"))
    few = past_days.past_days(study, tables)
    assert few is not None
    assert few.line.startswith("Your days cost 9 EUR on average.")
    assert any("with fewer than 5 bills" in remark for remark in few.remarks)
    assert past_days.past_days(study, []) is None
