"""Savings, allowance and promises on pages: rules of forms, drawings, results and refusals."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from constraint_reports import baseline_report, promise_reports
from page_client import Place, browsing
from trucks import euros

import multiplay as mp
from multiplay._support.words import money_text
from multiplay.service.pages import drawings, savings
from multiplay.service.pages.constraints import promise_views
from multiplay.service.pages.cost_views import recent_plays
from multiplay.service.pages.forms import Form, UploadedFile
from multiplay.storage import store_at
from multiplay.studies.study import allowance_curve, promise_curves

LANES = ["Lyon->north", "Lyon->south", "Lille->north", "Lille->south"]


def chosen(rule: str, rows: str = "", file: str = "") -> tuple[Any, dict[str, str]]:
    """Return the rule of a form with these fields, and its errors."""
    files = {"file": UploadedFile("list.csv", file.encode())} if file else {}
    form = Form({"rule": rule, "rows": rows}, files=files)
    return savings.rule_of_form(form, LANES), form.errors


@pytest.mark.parametrize(
    ("rule", "rows", "file", "expected"),
    [
        ("", "", "", None),
        ("proportion", "ignored", "", mp.InProportion()),
        ("prices", "Lyon->north 95,5\nLille → south: 80", "",
         mp.PriceList({"Lyon->north": 95.5, "Lille->south": 80.0})),
        ("prices", "", "from;to;EUR\nLyon;north;1.095,50\nLille;south;80,00\n",
         mp.PriceList({"Lyon->north": 1095.5, "Lille->south": 80.0})),
        ("fixed", "Lyon->north\t2\nLille->south\t0", "",
         mp.FixedPlan({"Lyon->north": 2, "Lille->south": 0}, nearest=True)),
    ],
)  # fmt: skip
def test_a_rule_is_read_from_a_form(rule: str, rows: str, file: str, expected: Any) -> None:
    assert chosen(rule, rows, file) == (expected, {})


@pytest.mark.parametrize(
    ("rule", "rows", "field", "words"),
    [
        ("guess", "", "rule", "Choose one"),
        ("prices", " ", "rows", "its price"),
        ("prices", "Lyon -> nroth 3", "rows", "Did you mean 'Lyon->north'?"),
        ("prices", "Lyon->north 3 4", "rows", "one price for Lyon->north, got 2"),
        ("prices", "Lyon->north -", "rows", "one price for Lyon->north"),
        ("prices", "Lyon->north dear", "rows", "a number"),
        ("fixed", "Lyon->north 1,5", "rows", "a whole number"),
        ("fixed", "Lyon->north -1", "rows", "a whole number"),
        ("fixed", "Lyon->north 1\nlyon -> North 2", "rows", "one number of units"),
    ],
)
def test_an_error_in_a_rule_is_at_its_field(rule: str, rows: str, field: str, words: str) -> None:
    found, errors = chosen(rule, rows)
    assert found is None
    assert words in errors[field]
    assert "Another plan" not in errors[field]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_bars_and_intervals_are_drawn_to_scale(scale: float) -> None:
    rng = np.random.default_rng(0)
    saved, half = scale * rng.normal(50, 100, 20), scale * rng.uniform(1, 80, 20)
    weeks = [
        (f"week {k}", s, s - h, s + h) for k, (s, h) in enumerate(zip(saved, half, strict=True))
    ]
    drawn = drawings.week_bars(weeks)
    assert drawn is not None
    for bar, (_, value, low, high) in zip(drawn.bars, weeks, strict=True):
        assert 0 <= bar.high < bar.low <= drawn.height
        assert drawn.left <= bar.x
        assert bar.x + bar.width <= drawn.width
        end = bar.y if value > 0 else bar.y + bar.height
        ratio = (drawn.zero - end) / (bar.low - bar.high)
        assert ratio == pytest.approx(value / (high - low), abs=0.05 + 0.3 / (bar.low - bar.high))
        assert bar.loss == (value < 0)
    xs = [bar.middle for bar in drawn.bars]
    assert xs == sorted(xs)
    assert len(drawn.labels) <= drawings.MOST_LABELS + 1


def test_a_long_history_shows_its_last_weeks() -> None:
    weeks = [(f"2026-01-{k:03}", 0.0, 0.0, 0.0) for k in range(80)]
    drawn = drawings.week_bars(weeks)
    assert drawn is not None
    assert (len(drawn.bars), drawn.left_out) == (drawings.MOST_WEEKS, 80 - drawings.MOST_WEEKS)
    assert drawn.bars[-1].text.startswith("2026-01-079")
    assert drawings.week_bars([]) is None


def test_costs_are_lines_between_their_doubts() -> None:
    rng = np.random.default_rng(1)
    days = [f"day {k}" for k in range(900)]
    plan, most = np.cumsum(rng.normal(-1, 5, 900)), np.cumsum(rng.uniform(0, 1, 900))
    doubt = np.sqrt(np.arange(900.0))
    drawn = drawings.cost_lines(days, plan, most, doubt)
    assert drawn is not None

    def points(text: str) -> Any:
        return np.array([[float(x) for x in pair.split(",")] for pair in text.split()])

    line, band = points(drawn.plan), points(drawn.doubt)
    count = len(line)
    assert count == drawings.MOST_POINTS == len(points(drawn.most))
    upper, lower = band[:count], band[count:][::-1]
    assert np.allclose(upper[:, 0], line[:, 0])
    assert np.allclose((upper + lower) / 2, line, atol=0.1)
    assert (upper[:, 1] <= line[:, 1]).all()
    unit = (drawn.zero - line[-1, 1]) / plan[-1]
    assert drawn.zero - points(drawn.most)[-1, 1] == pytest.approx(unit * most[-1], abs=0.2)
    assert drawings.cost_lines(days[:1], plan[:1], most[:1], doubt[:1]) is None


# ---------------------------------------------------------------- pages


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with browsing(f"sqlite:///{tmp_path / 'plans.db'}") as found:
        yield found


def play_days(study: mp.Study, days: int) -> None:
    first = date(2026, 10, 5)
    with study.together():
        for k in range(days):
            play = study.ask(key=f"{first + timedelta(days=k)}")
            study.tell(play.id, euros(play))


def test_the_saving_against_a_rule_is_on_the_pages(place: Place) -> None:
    place.log_in()
    study = place.study(words=mp.Words(currency="EUR", unit="truck"))
    play_days(study, 24)
    page = place.get("/studies/lanes/savings").text
    assert "No rule to compare with yet" in page
    assert 'id="saved"' not in place.get("/studies/lanes").text
    assert "<hx-partial" not in place.get("/studies/lanes/saved").text

    answer = place.post("/studies/lanes/versus", rule="fixed", rows="Lyon->north 1")
    assert answer.headers["location"] == "/studies/lanes/savings?done=compared"
    assert study.versus == mp.FixedPlan({"Lyon->north": 1}, nearest=True)
    saved = study.savings()
    page = place.get("/studies/lanes/savings?done=compared").text
    assert "The rule was saved." in page
    assert "\nLyon-&gt;north 1</textarea>" in page
    assert 'hx-get="/studies/lanes/saved?part=page"' in page, "the page does not wait"
    assert 'hx-get="/studies/lanes/saved?part=learning"' in page
    loaded = place.get("/studies/lanes/saved?part=page").text
    whole = place.get("/studies/lanes/savings?wait=yes").text
    for shown in (loaded, whole):
        assert shown.count('class="saved') >= len(saved.weeks) == 4
    assert "hx-get" not in whole, "without scripts it is the whole page"
    learning = place.get("/studies/lanes/saved?part=learning").text
    for shown in (learning, whole):
        assert "Learning cost" in shown
    for shown in (loaded, whole, place.get("/studies/lanes/saved").text):
        text = re.sub(r"<[^>]+>", "", shown)
        assert f"Saved {saved.words.money(saved.total)}" in text
        assert f"{saved.words.ends(saved.low, saved.high)}" in text
    assert 'hx-get="/studies/lanes/saved"' in place.get("/studies/lanes").text

    assert place.post("/studies/lanes/versus", rule="").status_code == 303
    assert study.versus is None


def test_a_saving_that_is_not_known_says_why(place: Place) -> None:
    place.log_in()
    study = place.study()
    play_days(study, 3)
    study.versus = mp.InProportion()
    for path in ("saved", "saved?part=page", "savings?wait=yes"):
        page = place.get(f"/studies/lanes/{path}").text
        assert "is not known: Expected at least 10 reported plans, got 3. Report more plans" in page
    answer = place.post("/studies/lanes/versus", rule="prices", rows="Lyon->east 3")
    assert answer.status_code == 422
    assert 'id="rule-rows-error"' in answer.text
    assert "Lyon-&gt;east 3</textarea>" in answer.text
    assert study.versus == mp.InProportion()


def test_who_may_only_read_cannot_name_the_rule(place: Place) -> None:
    study = place.study()
    place.log_in("read")
    assert "/versus" not in place.get("/studies/lanes/savings").text
    assert place.post("/studies/lanes/versus", rule="proportion").status_code == 403
    assert study.versus is None


# ---------------------------------------------------------------- the allowance


def test_an_allowance_is_created_and_shown_on_the_pages(place: Place) -> None:
    place.log_in()
    made = {"name": "lanes", "kind": "transport", "supply": "Lyon 2\nLille 3", "low": "0"}
    made |= {"demand": "north 4\nsouth 1", "high": "250", "policy": "BootstrapCTS"}
    made |= {"rule": "fixed", "rows": "Lyon->north 2\nLille->north 2\nLille->south 1"}
    refused = place.post("/new", **made, allowance="0", sure="99")
    assert refused.status_code == 422
    assert 'id="allowance-error"' in refused.text
    for change, field in (
        ({"policy": "GenLBINFV"}, "policy"),
        ({"low": "-5"}, "low"),
        ({"rows": "Lyon->west 2"}, "rule-rows"),
        ({"sure": "many"}, "sure"),
        ({"rule": "prices", "rows": "Lyon->north 3"}, "rule"),  # a lane has no price
    ):
        refused = place.post("/new", **made | {"allowance": "3", "sure": "99"} | change)
        assert refused.status_code == 422
        assert f'id="{field}-error"' in refused.text, change
    assert mp.Study.names(store=place.store) == []
    answer = place.post("/new", **made, allowance="2,5", sure="95", per="week")
    assert answer.status_code == 303
    study = mp.Study.open("lanes", store=place.store)
    usual = {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}
    rule = mp.FixedPlan(usual, nearest=True)
    assert study.constrained_by == (mp.Baseline(rule, 0.025, sure=0.95, per="week"),)

    steady = made | {"name": "steady", "rule": ""}
    for price, field in (("-1", "cost"), ("few", "cost"), ("1", "policy")):
        policy = "GenLBINFV" if field == "policy" else "BootstrapCTS"
        refused = place.post("/new", **steady | {"cost": price, "policy": policy})
        assert refused.status_code == 422
        assert f'id="{field}-error"' in refused.text, price
    assert place.post("/new", **steady, cost="7,5").status_code == 303
    assert mp.Study.open("steady", store=place.store).constrained_by == (mp.SwitchingCost(7.5),)

    study = place.study("daily", constraints=[mp.Baseline(rule, 0.03)])
    play = study.ask(key="2026-11-16")
    assert play.restricted  # the first day is the baseline's
    page = place.get("/studies/daily").text
    assert "The allowance changed this plan" in page
    assert "0 units differ from the baseline" in page
    page = place.get("/studies/daily/promises").text
    assert "Allowance: 3 % more than the fixed plan" in page
    assert 'class="most"' not in page  # a line needs two days
    study.tell(play.id, euros(play))
    study.cancel(study.ask(key="cancelled").id)
    study.ask(key="2026-11-17")
    used = baseline_report(study)
    text = re.sub(r"<[^>]+>", "", place.get("/studies/daily/promises").text)
    assert f"may cost {used.left:.3g} more than the baseline" in text
    assert f"changed the plans of {used.restricted} of 2 days" in text
    page = place.get("/studies/daily/parts?tab=promises").text
    assert 'hx-target="#allowance"' in page
    assert page.count('class="most"') == 1
    place.study("calm", constraints=[mp.SwitchingCost(15)])
    assert "Switching cost: 15 for each" in place.get("/studies/calm/promises").text
    place.study("free")
    assert "Switching cost:" not in place.get("/studies/free/promises").text
    assert "#allowance" not in place.get("/studies/free/parts?tab=promises").text


def test_the_curve_of_an_allowance_ends_at_what_is_left(place: Place) -> None:
    """After each play it is the allowance of that many plays, by the beliefs of the end."""
    study = place.study(constraints=[mp.Baseline(mp.InProportion(), 0.05)])
    for k in range(12):
        play = study.ask(at_most={"Lyon->north": 1 + k % 2})
        if k == 4:
            study.cancel(play.id)
        else:
            study.tell(play.id, euros(play))
    used = baseline_report(study)
    asked = [one for one in study.entries() if one.labels.kind == "ask" and one.labels.play != 5]
    curve = allowance_curve(study, asked[-7:])
    assert curve is not None
    assert curve.spent[-1] == pytest.approx(used.spent)
    assert curve.most[-1] - curve.spent[-1] == pytest.approx(used.left)
    assert used.left - curve.doubt[-1] == pytest.approx(used.sure_of)
    whole = allowance_curve(study, asked)
    assert whole is not None
    for some, all_of_them in zip(curve, whole, strict=True):
        assert some == pytest.approx(all_of_them[-7:])
    first = asked[0].record.header  # one play
    arms = study.arms().set_index("arm")["seen"]
    assert whole.most[0] > 0
    assert (whole.spent[0] == 0) == (first["plan"] == first["baseline"])
    assert arms.sum() == 55
    assert allowance_curve(place.study("free"), []) is None


# ---------------------------------------------------------------- promises


def test_promises_are_shown_with_their_prices(place: Place) -> None:
    place.log_in()
    place.study("free")
    assert "straight line" not in place.get("/studies/free/promises").text
    co2 = mp.AtMost(1_200, {"*": 20, "Lyon->north": 40}, until="2026-11-30", plays=8, name="CO2")
    contract = mp.AtLeast(90, {"*": 0, "Lille->south": 1}, plays=9, name="contract", hard=False)
    study = place.study(words=mp.Words(currency="EUR"), constraints=[co2, contract])
    amounts = dict(zip(LANES, [40, 20, 20, 20], strict=True))
    used = []
    for day in range(2, 7):
        play = study.ask(key=f"2026-11-{day:02}", ahead=[study.actions] * 8)
        used.append(sum(amounts[arm] * units for arm, units in play.plan.items()))
        if day == 4:
            study.cancel(play.id)
            used.pop()
        elif day < 6:
            study.tell(play.id, euros(play))
    with closing(store_at(place.store).open("lanes")) as journal:
        asked = recent_plays(journal).asked  # as the page reads them
    assert [one.labels.play for one in asked] == [1, 2, 4, 5]
    curve = promise_curves(study, asked)["CO2"]
    assert curve.used == pytest.approx(np.cumsum(used))
    assert curve.used[-1] == promise_reports(study)[0].used
    assert curve.prices.tolist() == [one.record.header["prices"]["CO2"] for one in asked]
    last = promise_curves(study, asked[-2:])["CO2"]
    assert last.used == pytest.approx(curve.used[-2:])

    page = place.get("/studies/lanes/promises").text
    text = " ".join(re.sub(r"<[^>]+>", "", page).split())
    assert "CO2: at most 1,200 until 2026-11-30" in text
    assert f"{money_text(sum(used))} is used." in text
    assert "Yes: plans for all days to come keep it" in text
    assert "No: at best" in text  # of the contract
    plan = re.sub(r"<[^>]+>", "", place.get("/studies/lanes").text)
    assert "Because of promises, a unit of " in plan
    assert page.count("straight line to the limit</li>") == 2
    assert 'hx-target="#constraints"' in place.get("/studies/lanes/parts?tab=promises").text
    view, other = promise_views(study, study.constraints(), asked)
    assert view.used is not None
    assert len(view.used.plan.split()) == 8 == len(view.used.most.split())
    assert other.prices is not None  # that of the contract, which cannot be kept, is large
    assert len(other.prices.plan.split()) == 4
    study.end_constraint("CO2")
    assert "CO2: at most" not in place.get("/studies/lanes/promises").text
    study.add_constraint(mp.AtMost(9, {"*": 1}, plays=2, name="CO2", hard=False))
    assert not promise_curves(study, asked)["CO2"].asked  # the plays before do not count
    assert "CO2: at most 9" in place.get("/studies/lanes/promises").text


TYPED = {
    "constraint-type": "Promise",
    "promise-name": "CO2",
    "promise-type": "AtMost",
    "promise-limit": "1200,5",
    "promise-of": "* 20\nLyon → north 40",
    "promise-plays": "8",
    "promise-until": "2026-11-30",
    "promise-hard": "yes",
}


def test_a_promise_is_made_and_released_by_forms(place: Place) -> None:
    study = place.study()
    place.log_in("play")
    page = place.get("/studies/lanes/promises").text
    assert 'action="/studies/lanes/add-constraint"' in page
    assert 'action="/studies/lanes/end-constraint"' not in page
    before = study.head
    for change, field, words in (
        ({"promise-name": " "}, "name", "Enter a name"),
        ({"promise-type": "Never"}, "type", "Choose one of the options."),
        ({"promise-limit": "much"}, "limit", "a number"),
        ({"promise-limit": "-1"}, "limit", "a number of 0 or more"),
        ({"promise-of": ""}, "of", "a name and a number in each line"),
        ({"promise-of": "Lyon->north -3"}, "of", "a number of 0 or more"),
        ({"promise-of": "Lyon->north 3"}, "of", "an amount of CO2 for every arm"),
        ({"promise-plays": "1,5"}, "plays", "a whole number"),
        ({"promise-plays": "0"}, "plays", "of at least 1"),
        ({"promise-until": "soon"}, "until", "a date"),
        ({"promise-name": "n" * 300}, "name", "characters"),
    ):
        refused = place.post("/studies/lanes/add-constraint", **TYPED | change)
        assert refused.status_code == 422, change
        error = re.search(rf'id="promise-{field}-error">(.*?)</p>', refused.text)
        assert error is not None, change
        assert words in error[1], change
        assert 'aria-invalid="true"' in refused.text
        assert "<details open><summary>Add a promise" in refused.text
        for name in ("promise-limit", "promise-plays"):  # what was typed is still there
            assert f'name="{name}" value="{(TYPED | change)[name]}"' in refused.text
    assert study.head == before
    answer = place.post("/studies/lanes/add-constraint", **TYPED)
    assert (answer.status_code, answer.headers["location"]) == (
        303, "/studies/lanes/promises?done=constrained"
    )  # fmt: skip
    (made,) = promise_reports(study)
    of = {"*": 20, "Lyon->north": 40}
    promise = mp.AtMost(1200.5, of, until="2026-11-30", plays=8, name="CO2")
    assert made[:3] == ("CO2", promise, 0.0)
    again = place.post("/studies/lanes/add-constraint", **TYPED)  # the name is in use
    assert again.status_code == 422
    assert "one constraint of the name" in again.text
    soft = TYPED | {"promise-name": "<b>", "promise-type": "AtLeast", "promise-until": ""}
    del soft["promise-hard"]
    assert place.post("/studies/lanes/add-constraint", **soft).status_code == 303
    rows = {one.name: one.constraint for one in promise_reports(study)}
    assert (rows["<b>"].kind, rows["<b>"].until, rows["<b>"].hard) == ("at least", None, False)
    page = place.get("/studies/lanes/promises?done=constrained").text
    assert "It was added, and counts" in page
    assert "End &lt;b&gt;</button>" in page
    assert "promised" in page
    journal = re.sub(r"<[^>]+>", "", place.get("/studies/lanes/history").text)
    assert "CO2, at most 1,20" in journal
    assert place.post("/studies/lanes/end-constraint", name="CO2").status_code == 303
    assert [one.name for one in promise_reports(study)] == ["<b>"]
    gone = place.post("/studies/lanes/end-constraint", name="CO2")
    assert gone.status_code == 404
    assert "Nothing" not in gone.text
    assert study.verify().ok


def test_a_likely_promise_says_why_it_is_not_sure(place: Place) -> None:
    limits = [mp.AtMost(99, {"*": 1}, plays=2, name=f"{hard}", hard=hard) for hard in (True, False)]
    study = place.study(constraints=limits)
    assert [row.holds for row in promise_reports(study)] == ["likely", "likely"]
    sets, price = (view.holds for view in promise_views(study, study.constraints(), []))
    assert sets == "Probably. It is not sure, because the sets of the days to come are not known."
    assert price == "Probably. It is not sure, because plans only count a cost for it."


def test_a_promise_needs_a_permission_and_a_form_of_this_page(place: Place) -> None:
    study = place.study(constraints=[mp.AtMost(99, {"*": 1}, plays=2, name="units")])
    place.log_in("read")
    page = place.get("/studies/lanes/promises").text
    assert "units: at most 99" in page
    assert "/add-constraint" not in page
    assert "/end-constraint" not in page
    for path, typed in (("add-constraint", TYPED), ("end-constraint", {"name": "units"})):
        assert place.post(f"/studies/lanes/{path}", **typed).status_code == 403
        place.log_in("play")
        foreign = place.client.post(f"/studies/lanes/{path}", data=typed | {"mark": "0"})
        assert foreign.status_code == 403
        assert place.get(f"/studies/lanes/{path}").status_code == 303
        place.log_in("read")
    assert len(promise_reports(study)) == 1
