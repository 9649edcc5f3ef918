"""Web pages: user input, content, permissions, and escaping of stored text."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asgi import client_of
from page_client import Place, browsing
from trucks import ask_and_tell, euros, new_study
from trucks import plans as lanes

import multiplay as mp
from multiplay.errors import InvalidInput
from multiplay.service.app import create_app
from multiplay.service.auth import keys
from multiplay.service.pages import (
    arm_views,
    bills,
    cost_views,
    forms,
    journal_views,
    page_route,
    plan_forms,
    plans,
    render,
    sessions,
)
from multiplay.service.pages.forms import Form, a_number, a_whole_number, named_numbers
from multiplay.service.settings import Settings
from multiplay.service.studies.limits import ServiceLimits, build_actions
from multiplay.storage import MemoryStore, store_at
from multiplay.studies import play_history

NASTY = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
NEW = {
    "name": "lanes",
    "kind": "transport",
    "supply": "Lyon 2\nLille 3",
    "demand": "north 4\nsouth 1",
    "sense": "min",
    "low": "0",
    "high": "250",
    "policy": "GenCTS",
}


# ---------------------------------------------------------------- user input


@pytest.mark.parametrize(
    "text", ["Lyon 3\nLe Havre 2", " Lyon: 3\n\n Le Havre =2 ", "Lyon\t3\r\nLe Havre;2"]
)
def test_names_with_numbers_are_read(text: str) -> None:
    assert named_numbers("supply", text) == {"Lyon": 3, "Le Havre": 2}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing"),
        ("Lyon", "line 1"),
        ("Lyon 3\nLille x", "line 2"),
        ("Lyon 3\nLyon 4", "twice"),
        ("Lyon -1", "line 1"),
        ("Lyon 1.5", "line 1"),
        ("Lyon 1,5", "line 1"),
        ("Lyon 1.234", "1234"),
        ("Lyon,3", "line 1"),
        ("a->b 3", "without ->"),
        ("x" * 81 + " 3", "80 characters"),
        ("Lyon" + " " * 500 + "3", "line 1"),
        ("\n".join(f"a{k} 1" for k in range(501)), "at most 500 lines"),
    ],
)
def test_what_cannot_be_read_names_the_line(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(said)) as caught:
        named_numbers("supply", text)
    assert caught.value.argument == "supply"


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "nan", "inf", "1_000", "1e999", "0x10", "1,2,3", "1.23,45", "12,34.5"),
        *("1.234", "1,234", "-999.000"),  # a thousand and more, or three decimals
    ],
)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        a_number("high", text)


def test_numbers_are_read_with_either_decimal_mark() -> None:
    read = {text: a_number("high", text) for text in (" 120.5 ", "120,5", "-3", "0,125", "1234,5")}
    assert list(read.values()) == [120.5, 120.5, -3, 0.125, 1234.5]
    for text in ("1.234,50", "1,234.50", "1.234,50 €", "$1,234.50", "1234,5 EUR", "€ 1.234,5"):
        assert a_number("high", text) == 1234.5, text
    assert a_whole_number("total", "7") == 7
    for value in (1.0, 1.234, -12.345, 0.125, 1e-9, 123456.789, 1e22):
        assert a_number("high", forms.as_typed(value)) == value


def test_a_form_with_files_is_read_byte_for_byte() -> None:
    content = bytes(range(256)) + b"\r\n--yy\r\n"
    parts = {
        'name="mark"': b"a\r\nb",
        'name="bills"; filename="M\xe4rz \\"1\\";.csv"': content,
        'name="none"; filename=""': b"",
    }
    body = b"".join(
        b"--xx\r\nContent-Disposition: form-data; " + head.encode() + b"\r\n\r\n" + data + b"\r\n"
        for head, data in parts.items()
    )
    read = page_route.multipart_fields("multipart/form-data; boundary=xx", body + b"--xx--\r\n")
    assert read == ({"mark": "a\r\nb"}, {"bills": forms.UploadedFile('M\xe4rz "1";.csv', content)})
    for bad in (b"", b"--xx", b"--xx--", b"--xx\r\n\r\n--xx--", content):
        for kind in ("multipart/form-data; boundary=xx", "multipart/form-data"):
            assert page_route.multipart_fields(kind, bad) == ({}, {})


def test_a_new_study_is_read_into_data() -> None:
    given = forms.new_study(Form(NEW))
    assert given is not None
    made = build_actions("actions", given.actions, ServiceLimits())
    assert made.names == lanes().names
    assert (given.loss_range, given.reports.outside) == ((0.0, 250.0), None)
    learner = mp.Learner(made, loss_range=given.loss_range, reports=given.reports)
    units = {lane: [251.0] * k for lane, k in learner.ask().plan.items()}
    with pytest.raises(
        InvalidInput, match=re.escape("[0, 250], got 251")
    ):  # not None: there is a range
        learner.tell(1, units)
    for outside in ("", "clip"):
        learned = forms.new_study(Form(NEW | {"high": " ", "outside": outside}))
        assert learned is not None
        assert (learned.loss_range, learned.reports.outside) == (None, None)
        learner = mp.Learner(made, loss_range=learned.loss_range, reports=learned.reports)
        learner.tell(1, {lane: 251.0 * k for lane, k in learner.ask().plan.items()})
        assert learner.loss_range == "losses from 0 to 256"
    knapsack = NEW | {"kind": "knapsack", "items": "tent 3.5\nrope 1", "capacity": "7"}
    given = forms.new_study(Form(knapsack | {"outside": "clip"}))
    assert given is not None
    assert (given.loss_range, given.reports.outside) == ((0.0, 250.0), "clip")
    assert isinstance(build_actions("actions", given.actions, ServiceLimits()), mp.Knapsack)
    budget = NEW | {"kind": "budget", "caps": "news 6\nradio 4", "total": "9", "sense": "max"}
    given = forms.new_study(Form(budget))
    assert given is not None
    made = build_actions("actions", given.actions, ServiceLimits())
    assert isinstance(made, mp.Budget)
    assert made.sense == "max"


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": ".."}, "name"),
        ({"kind": "other"}, "kind"),
        ({"policy": "Exec"}, "policy"),
        ({"supply": "Lyon"}, "supply"),
        ({"demand": ""}, "demand"),
        ({"demand": "north 3"}, "demand"),  # two are left over
        ({"demand": "north 9"}, "demand"),  # four are lacking
        ({"shortage": "much"}, "shortage"),
        ({"low": "x"}, "low"),
        ({"high": "0"}, "high"),
        ({"high": "", "policy": "GenLBINFV"}, "high"),  # it needs a range
        ({"kind": "knapsack", "items": "tent", "capacity": "1"}, "items"),
        ({"kind": "knapsack", "items": "tent 1", "capacity": ""}, "capacity"),
        ({"kind": "budget", "caps": "radio 1.5", "total": "1"}, "caps"),
        ({"kind": "budget", "caps": "radio 1", "total": "-1"}, "total"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(typed: dict[str, str], field: str) -> None:
    form = Form(NEW | typed)
    assert forms.new_study(form) is None
    assert field in form.errors
    assert form.get("name") == (NEW | typed)["name"]


def test_what_is_left_over_or_lacking_can_be_allowed() -> None:
    for choice in ("slack", "surplus"):
        study = forms.new_study(Form(NEW | {"demand": "north 3", choice: "yes"}))
        assert study is not None
        day = build_actions("actions", study.actions, ServiceLimits())
        assert isinstance(day, mp.Transport)
        assert (day.slack, day.surplus) == (True, choice == "surplus")
    assert forms.new_study(Form(NEW | {"demand": "north 9", "shortage": "5"})) is not None


def test_today_is_the_usual_day_unless_something_else_is_typed() -> None:
    usual = lanes()
    values = plan_forms.usual_values(usual)
    assert values == {"supply": "Lyon 2\nLille 3", "demand": "north 4\nsouth 1"}
    assert plan_forms.today(Form(values), usual) is None
    assert plan_forms.today(Form({"supply": "Lyon  2\r\nLille 3\r\n"}), usual) is None
    plain = plan_forms.today(Form({"supply": "Lyon 4\nLille 1"}), usual)
    day = build_actions("actions", plain, ServiceLimits())
    assert isinstance(day, mp.Transport)
    assert (day.supply.tolist(), day.names) == ([4, 1], usual.names)
    plain = plan_forms.today(Form({"supply": "Lyon 4\nParis 1"}), usual)
    assert build_actions("actions", plain, ServiceLimits()).names[2] == "Paris->north"


def test_today_keeps_what_the_usual_day_has() -> None:
    usual = mp.Transport([2, 3], [4, 1], capacities=[[2, 1], [3, 1]])
    form = Form({"demand": "d1 3\nd2 2"})
    day = build_actions("actions", plan_forms.today(form, usual), ServiceLimits())
    assert isinstance(day, mp.Transport)
    assert day.capacities is not None
    assert day.demand.tolist() == [3, 2]
    form = Form({"demand": "d1 3\nd9 2"})
    plan_forms.today(form, usual)
    assert "no 's1->d9'" in form.errors["capacities"]
    wider = {"capacities": "s1->d1 2\ns1->d9 2\ns2->d1 3\ns2->d9 1"}
    plain = plan_forms.today(Form({"demand": "d1 3\nd9 2"} | wider), usual)
    day = build_actions("actions", plain, ServiceLimits())
    assert isinstance(day, mp.Transport)
    assert day.capacities is not None
    assert (day.names[1], day.capacities.tolist()) == ("s1->d9", [[2, 2], [3, 1]])
    budget, sack = mp.Budget(5, [4, 4]), mp.Knapsack([1, 2], 3)
    plain = plan_forms.today(Form({"total": "4"}), budget)
    assert build_actions("actions", plain, ServiceLimits()).M == 4
    plain = plan_forms.today(Form({"capacity": "9"}), sack)
    assert build_actions("actions", plain, ServiceLimits()).M == 9


@pytest.mark.parametrize(
    ("text", "units", "told"),
    [
        ("120 95 -", 3, [120, 95, None]),
        ("120", 1, [120]),
        ("310", 2, 310),
        ("-", 2, [None, None]),
        ("-5", 1, [-5]),
    ],
)
def test_losses_are_read(text: str, units: int, told: Any) -> None:
    form = Form({"arm0": text})
    assert bills.losses(form, {"a": units}, by_round=False, partly=False) == {"a": told}


@pytest.mark.parametrize("text", ["", "1 2", "1 2 3 4", "1,2,3", "a b c"])
def test_losses_that_do_not_fit_are_refused(text: str) -> None:
    form = Form({"arm0": "1", "arm1": text})
    assert bills.losses(form, {"a": 1, "b": 3}, by_round=False, partly=False) is None
    assert list(form.errors) == ["arm1"]


def test_a_part_may_leave_arms_out_but_not_all() -> None:
    plan = {"a": 1, "b": 3}
    assert bills.losses(Form({"arm0": "1"}), plan, by_round=False, partly=True) == {"a": [1]}
    form = Form({})
    assert bills.losses(form, plan, by_round=False, partly=True) is None
    assert form.errors
    assert bills.losses(Form({"total": "7"}), plan, by_round=True, partly=False) == 7


def errors_with_python_hints() -> list[InvalidInput]:
    """Return errors whose hints contain Python, as the library raises them."""
    learner = mp.Learner(lanes(), mp.GenCTS(), loss_range=(0, 250))
    play = learner.ask()
    learner.cancel(play.id)
    wrong: list[Callable[[], object]] = [
        lambda: mp.Transport([2], [1]),
        lambda: mp.Transport([1], [2]),
        lambda: learner.tell(learner.ask().id, [[999.0] * k for k in learner.ask().action]),
        lambda: learner.tell(learner.ask().id, {"Lyon->north": [None, None]}),
        lambda: learner.tell(play.id, euros(play)),
        lambda: learner.tell(999, {}),
    ]
    errors = []
    for act in wrong:
        with pytest.raises(InvalidInput) as caught:
            act()
        errors.append(caught.value)
    return errors


def test_hints_contain_no_python() -> None:
    """Their texts are written elsewhere: here it is checked that none reaches a page as code."""
    replaced = 0
    for error in errors_with_python_hints():
        text = forms.error_text(error)
        assert not re.search(r"\w=\S|\w\(", text.partition(". ")[2]), text
        replaced += error.hint not in text
    assert replaced >= 4


def test_a_hint_names_the_fields_of_the_form() -> None:
    with pytest.raises(InvalidInput) as caught:
        mp.Transport([2], [1])
    assert "slack" not in forms.error_text(caught.value)
    assert "Supply may be left over" in forms.error_text(caught.value)


# ---------------------------------------------------------------- what is shown


def test_flows_are_drawn_as_wide_as_their_units() -> None:
    drawing = plans.draw_flows({("a", "x"): 1, ("a", "y"): 3, ("b", "y"): 0}, {"y": 2, "x": 0})
    assert drawing is not None
    assert {(b.source, b.target): b.units for b in drawing.bands} == {
        ("a", "x"): 1,
        ("a", "y"): 3,
        ("", "y"): 2,
    }
    thin, thick, unmet = drawing.bands
    assert thick.width == pytest.approx(3 * thin.width, abs=0.2)
    assert unmet.unmet
    for node in drawing.nodes:
        assert 0 <= node.y <= node.y + node.height <= drawing.height
    assert plans.draw_flows({}) is None
    assert plans.draw_flows({(f"s{k}", "x"): 1 for k in range(plans.MOST_NODES + 1)}) is None


def test_a_plan_that_is_no_transport_is_a_list() -> None:
    assert plans.grid_of({"news": 2, "radio": 0}) is None
    shown = plans.plan_view({"news": 2, "radio": 0}, None, new_study(MemoryStore()))
    assert (shown.arms, shown.unused) == ([("news", 2)], 1)


def test_a_study_without_a_play_shows_its_best_plan() -> None:
    study = new_study(MemoryStore())
    best = plans.current_plan(study, study.pending())
    assert best is not None
    assert best.play is None
    play = study.ask()
    now = plans.current_plan(study, study.pending())
    assert now is not None
    assert now.play is not None
    assert now.play.id == play.id
    assert now.grid is not None
    assert now.grid.total == 5


def test_many_arms_are_cut_and_found() -> None:
    study = mp.Study.create("many", mp.Budget(5, [1] * 300), mp.GenCTS(), store=MemoryStore())
    table = study.arms()
    shown = arm_views.arm_rows(table)
    assert (len(shown.rows), shown.found, shown.all) == (arm_views.MOST_ARMS, 300, 300)
    assert len(arm_views.arm_rows(table, whole=True).rows) == 300
    name = study.actions.names[299]
    found = arm_views.arm_rows(table, wanted=name.upper())
    assert [arm.name for arm in found.rows] == [name]
    assert arm_views.arm_rows(table, wanted="nobody").rows == []


def test_bars_lie_within_their_picture() -> None:
    study = new_study(MemoryStore())
    ask_and_tell(study, 5)
    for arm in arm_views.arm_rows(study.arms()).rows:
        assert arm.bar is not None
        assert 0 <= arm.bar.low <= arm.bar.high <= arm_views.BAR_WIDTH
        if arm.bar.mean is not None:
            assert arm.bar.low <= arm.bar.mean <= arm.bar.high


def test_only_the_last_plays_are_read() -> None:
    store = MemoryStore()
    study = new_study(store)
    with study.together():
        ask_and_tell(study, 350)
    journal, starts = store.open("lanes"), list[tuple[str, int]]()
    pairs = journal.pairs

    def noted(kind: str, ends: Any, start: int = 0) -> Any:
        starts.append((kind, start))
        return pairs(kind, ends, start)

    journal.pairs = noted  # type: ignore[method-assign]
    recent = cost_views.recent_plays(journal)
    assert recent.plays["id"].tolist() == list(range(151, 351))
    first = 701 - cost_views.WINDOW
    assert {("ask", first), ("learn", first), ("learn_table", first)} <= set(starts)
    assert {kind for kind, start in starts if start < first} <= {"correct", "retract"}


def test_plans_of_a_period_are_found_in_any_order_of_time() -> None:
    """As among all plans; only the entries from the first to the last of them are read."""
    rng = np.random.default_rng(4)
    store, start = MemoryStore(), datetime(2026, 1, 1, 6, tzinfo=UTC)
    study = new_study(store, loss_range=(0, 250))
    days = [*range(40), *rng.permutation(np.arange(60, 80)).tolist(), 5]
    for k in days:
        play = study.ask(at=start + timedelta(days=k))
        study.tell(play, euros(play), at=start + timedelta(days=k))
        if k % 7 == 0:
            study.learn(play.plan, euros(play), at=start + timedelta(days=k, hours=1))
    journal = store.open("lanes")
    arm = study.actions.names[0]
    every = cost_views.arm_days(journal, arm, cost_views.Period(date(2025, 1, 1))).days
    assert len(every) == len({*days}) + 1 + sum(k % 7 == 0 for k in days)
    for first, last in ((3, 9), (30, 64), (5, 5), (41, 50), (70, None), (None, 2)):
        ends = [None if k is None else start.date() + timedelta(days=k) for k in (first, last)]
        period = cost_views.Period(*ends)
        plays = cost_views.recent_plays(journal, period).plays["id"].tolist()
        low, high = (0 if first is None else first), (99 if last is None else last)
        assert plays == [k for k, day in enumerate(days, 1) if low <= day <= high]
        shown = cost_views.arm_days(journal, arm, period).days
        assert [(one.when, one.cost) for one in shown] == [
            (one.when, one.cost) for one in every if period.has(one.when)
        ]
    assert cost_views.Period(date(2026, 1, 31), date(2026, 2, 1)).entries(journal)[0] > 60


def test_of_a_long_period_the_last_plans_are_read() -> None:
    store, start = MemoryStore(), datetime(2026, 1, 1, 6, tzinfo=UTC)
    study = new_study(store, loss_range=(0, 250))
    with study.together():
        for k in range(350):
            play = study.ask(at=start + timedelta(days=k))
            study.tell(play, euros(play), at=start + timedelta(days=k))
    journal, period = store.open("lanes"), cost_views.Period(date(2025, 1, 1))
    assert cost_views.recent_plays(journal, period).plays["id"].tolist() == [*range(151, 351)]
    assert period.entries(journal, 200)[0] > 300
    for arm in study.actions.names:
        days = [
            (play["asked"].timestamp(), told[1] / told[0])
            for _, played in play_history.played_plans(journal)
            for name, _, *told in played.outcomes()
            for play in [played.row]
            if name == arm and told[0] and told[1] is not None
        ]
        shown = cost_views.arm_days(journal, arm, period).days
        assert [(one.when, one.cost) for one in shown] == days[-200:]


def test_every_kind_of_entry_is_said_in_words() -> None:
    store = MemoryStore()
    study = new_study(store, reports=mp.Reports(outside="clip", missing="ignore"))
    study.by = "4f2a"
    first, second, third = (study.ask(key=f"day {k}") for k in range(3))
    study.tell(first.id, {lane: [999.0] * k for lane, k in first.plan.items()})
    lane, units = next((lane, k) for lane, k in second.plan.items() if k)
    study.tell(second.id, {lane: [9.0] * units}, final=False)
    study.close(second.id)
    study.cancel(third.id)
    study.ask()
    study.expire(0.0)
    study.learn(first.plan, euros(first))
    study.learn_table({"arm": [lane], "round": [1], "loss": [5.0]})
    study.forget(lane, before=2)
    study.unforget(since=1)
    found = journal_views.last_entries(store.open("lanes"), 50)
    assert {line.what for line in found.rows} == {
        *("created", "made", "reported", "reported in part", "closed", "cancelled"),
        *("expired", "own plan", "imported", "forgot", "unforgot"),
    }
    assert [line.number for line in found.rows] == list(range(found.head, -1, -1))
    told = next(line for line in found.rows if line.what == "reported")
    assert "5 values outside the range" in told.words
    assert told.by == "4f2a"
    assert journal_views.with_key_names([told], {"4f2a": "night job"})[0].by == "night job"
    older = journal_views.last_entries(store.open("lanes"), 2, before=3)
    assert ([line.number for line in older.rows], older.before, older.newer) == ([2, 1], 1, True)


# ---------------------------------------------------------------- in a browser's place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    store = f"sqlite:///{tmp_path / 'plans.db'}"
    with browsing(store) as found:
        yield found


class Parts(HTMLParser):
    """Scripts, tags, handlers and ids of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str | None] = []
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        if tag == "script":
            self.scripts.append(given.get("src"))
        if "id" in given:
            self.ids.append(given["id"] or "")
        self.handlers += [name for name in given if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action"):
            assert (given.get(name) or "/").startswith(("/", "#")), given


def assert_harmless(answer: Any) -> None:
    """Check that only our own scripts run, and that stored text is escaped."""
    page = Parts(answer.text)
    assert all(src and src.startswith("/static/") for src in page.scripts), page.scripts
    assert not page.handlers
    assert "style" not in page.tags
    assert "img" not in page.tags
    assert len(set(page.ids)) == len(page.ids), "ids are used twice"
    assert "<script>alert" not in answer.text


def test_settings_that_few_studies_need_are_folded_away(place: Place) -> None:
    """They are open where one of them was refused."""
    page, refused = place.get("/new/form").text, place.post("/new", **NEW | {"cost": "x"}).text
    few = re.search(r"<details><summary>More settings</summary>(.*?)</details>", page, re.DOTALL)
    assert few
    assert {"policy", "cost", "rule", "currency"} <= {*re.findall(r'name="(\w+)"', few[1])}
    assert "<details open><summary>More settings</summary>" in refused


def test_the_form_of_a_study_selects_the_default_policy(place: Place) -> None:
    selected = re.findall(r'name="policy" value="(\w+)" checked', place.get("/new/form").text)
    assert selected == ["PooledCTS"]


def test_a_day_by_forms_alone(place: Place) -> None:
    assert "No studies yet" in place.get("/").text
    made = place.post("/new", **NEW)
    assert (made.status_code, made.headers["location"]) == (303, "/studies/lanes?done=created")
    assert "The study was created" in place.get("/studies/lanes?done=created").text
    asked = place.post("/studies/lanes/ask", key="Monday")
    assert asked.headers["location"] == "/studies/lanes?done=asked&play=1"
    again = place.post("/studies/lanes/ask", key="Monday")
    assert again.headers["location"] == "/studies/lanes?done=asked-before&play=1"
    page = place.get("/studies/lanes").text
    assert "Monday" in page
    fields = re.findall(r'name="(arm\d+)"', page)
    assert fields
    study = mp.Study.open("lanes", store=place.store)
    (play,) = study.pending()
    units = [k for k in play.plan.values() if k]
    typed = {name: " ".join(["120"] * k) for name, k in zip(fields, units, strict=True)}
    bad = place.post("/studies/lanes/plays/1/tell", **typed | {fields[0]: "999"})
    assert bad.status_code == 422
    assert 'value="999"' in bad.text
    assert "numbers in [0, 250]" in bad.text or "a total in [0" in bad.text
    assert study.pending()
    told = place.post("/studies/lanes/plays/1/tell", **typed)
    assert told.headers["location"] == "/studies/lanes/plays/1?done=told"
    shown = place.get("/studies/lanes/plays/1?done=told").text
    assert "The study has learned from it" in shown
    assert "600" in shown
    late = place.post("/studies/lanes/plays/1/tell", **typed | {fields[0]: "77 nobody"})
    assert late.status_code == 409
    assert "no longer waits for a report" in late.text
    assert 'value="77 nobody"' in late.text, "in the form that corrects the report"
    place.post("/studies/lanes/ask", key="Tuesday", supply="Lyon 1\nLille 4")
    assert mp.Study.open("lanes", store=place.store).pending()[0].plan["Lyon->north"] <= 1
    gone = place.post("/studies/lanes/plays/2/cancel")
    assert gone.headers["location"].endswith("?done=cancelled")
    again = place.post("/studies/lanes/plays/2/cancel")
    assert again.status_code == 409
    assert "which was cancelled" in again.text
    assert "cancelled" in place.get("/studies/lanes/plays/2").text
    assert "The plan of today</a> was carried out: 600" in place.get("/").text


def test_reports_are_forgotten_and_kept_by_forms_alone(place: Place) -> None:
    plans = mp.Budget(2, [2], names=["Lyon->north"])
    study = mp.Study.create("lanes", plans, store=place.store, loss_range=(0, 250))
    for day in range(40):
        play = study.ask()
        study.tell(play.id, {"Lyon->north": [120.0 + day % 3 if day < 25 else 239.0 - day % 3] * 2})
    assert study.drift()["acted"].tolist() == [True]
    page = place.get("/studies/lanes/lanes").text
    assert 'action="/studies/lanes/unforget"' in page
    assert "Unforget older reports of" in page
    kept = place.post("/studies/lanes/unforget", arm="Lyon->north")
    assert kept.headers["location"] == "/studies/lanes/lanes?done=kept"
    assert "The reports count again" in place.get("/studies/lanes/lanes?done=kept").text
    assert study.arms()["average"][0] < 180
    assert "Unforget older" not in place.get("/studies/lanes/lanes").text
    done = place.post("/studies/lanes/forget", arm="Lyon->north", round="26")
    assert done.headers["location"] == "/studies/lanes/lanes?done=forgot"
    assert study.arms()["average"][0] > 230
    for typed, said in (
        ("", "a date"),
        ("soon", "a date"),
        ("99", "a number from 1"),
        ("0", "from 1"),
    ):
        bad = place.post("/studies/lanes/forget", arm="", round=typed)
        assert bad.status_code == 422
        assert said in bad.text
    assert place.post("/studies/lanes/unforget", arm="nowhere").status_code == 422
    assert place.post("/studies/lanes/unforget", arm="", round="2026-01-01").status_code == 303
    assert study.verify().ok


def test_an_actual_cost_says_how_many_units_have_not_reported(place: Place) -> None:
    study = place.study(reports=mp.Reports(missing="ignore"), words=mp.Words("EUR", "truck"))
    play = study.ask(key=f"{datetime.now(UTC):%Y-%m-%d}")
    lane, units = next((lane, k) for lane, k in play.plan.items() if k)
    told = {name: [50.0] * k for name, k in play.plan.items()} | {lane: [None] * units}
    study.tell(play, told, missing="ignore")
    missing = f"{units} truck{'s' if units > 1 else ''} not reported"
    assert missing in place.get("/studies/lanes/plays/1").text
    assert f"EUR, {missing}" in re.sub("<[^>]*>", "", place.get("/").text)
    study.correct(play, {name: [50.0] * k for name, k in play.plan.items()})
    for path in ("/", "/studies/lanes/plays/1"):
        assert "not reported" not in re.sub(
            r'(?s)<form.*?</form>|<p class="faint.*?</p>', "", place.get(path).text
        )


def test_a_play_is_told_in_parts_and_closed(place: Place) -> None:
    study = place.study(reports=mp.Reports(missing="ignore"))
    play = study.ask()
    base = f"/studies/lanes/plays/{play.id}"
    first = next(k for k in play.plan.values() if k)
    part = place.post(f"{base}/tell", arm0=" ".join(["10"] * first), part="yes")
    assert part.headers["location"].endswith("?done=part")
    page = place.get(base).text
    assert "so far" in page
    assert "Close plan 1" in page
    assert place.post(f"{base}/close").headers["location"].endswith("?done=closed")
    assert not study.pending()


def test_what_was_typed_is_kept_when_it_is_refused(place: Place) -> None:
    answer = place.post("/new", **NEW | {"supply": "Lyon two <b>", "name": "my lanes"})
    assert answer.status_code == 422
    assert "Lyon two &lt;b&gt;" in answer.text
    assert 'value="my lanes"' in answer.text
    assert 'aria-describedby="supply-hint supply-error" aria-invalid="true"' in answer.text
    place.study("taken")
    answer = place.post("/new", **NEW | {"name": "taken"})
    assert answer.status_code == 422
    assert 'id="name-error"' in answer.text
    assert "plans.db" not in answer.text, "the address of the store is not shown"
    place.study()
    answer = place.post("/studies/lanes/ask", key="x" * 201, supply="Lyon 3")
    assert answer.status_code == 422
    assert "Lyon 3</textarea>" in answer.text


def test_a_form_that_is_sent_twice_is_done_once(place: Place) -> None:
    study = place.study()
    for _ in range(2):
        answer = place.post("/studies/lanes/ask", key="", request="one")
        assert answer.headers["location"].endswith("play=1")
    assert place.post("/studies/lanes/ask", key="", request="two").headers["location"][-1] == "2"
    assert study.asked == 2


def test_too_many_plays_that_wait_are_refused(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'plans.db'}"
    app = create_app(Settings(store, limits=ServiceLimits(pending=1)))
    with client_of(app) as client:
        place = Place(client, store)
        place.study()
        assert place.post("/studies/lanes/ask", key="a").status_code == 303
        assert place.post("/studies/lanes/ask", key="b").status_code == 422
        assert place.post("/studies/lanes/ask", key="a").status_code == 303


# ---------------------------------------------------------------- nothing stored can harm


def test_markup_in_names_stays_text(place: Place) -> None:
    sides = ([NASTY + "1", "Lille"], ["north", NASTY + "2"])
    plan = mp.Transport([2, 3], [4, 1], names=sides)
    name = "<script>alert(0)</script>"
    study = mp.Study.create(name, plan, mp.GenCTS(), loss_range=(0, 250), store=place.store)
    ask_and_tell(study, 3)
    study.ask(key=NASTY)
    place.log_in(name=NASTY[:40])
    place.post(f"{render.url(name)}/ask", key=NASTY + "!")
    base = render.url(name)
    paths = [
        *("/", base, f"{base}/parts", f"{base}/plays/1", f"{base}/plays/4"),
        *(f"{base}/history", f"{base}/lanes?arms={NASTY}", "/docs", "/new"),
        *(f"{base}?done={NASTY}&play=1", f"/login?next={NASTY}"),
    ]
    for path in paths:
        answer = place.get(path)
        assert answer.status_code == 200, path
        assert_harmless(answer)
    assert "&lt;script&gt;alert(0)" in place.get(base).text
    errors = [
        place.post("/new", **NEW | {"supply": NASTY, "name": NASTY}),
        place.post(f"{base}/ask", supply=NASTY, key="k"),
        place.post(f"{base}/plays/4/tell", arm0=NASTY),
        place.get(f"/studies/{NASTY}"),
    ]
    for answer in errors:
        assert answer.status_code in (404, 422)
        assert_harmless(answer)


def test_invisible_characters_are_replaced(place: Place) -> None:
    study = place.study()
    study.ask(key="left\u202eright\x07")
    page = place.get("/studies/lanes").text
    assert "\u202e" not in page
    assert "\x07" not in page
    assert "left\ufffdright\ufffd" in page


def test_a_name_may_have_a_slash(place: Place) -> None:
    place.study("north/south 100%").ask()
    assert 'href="/studies/north%2Fsouth%20100%25"' in place.get("/").text
    assert place.get("/studies/north%2Fsouth%20100%25/plays/1").status_code == 200


# ---------------------------------------------------------------- who may do what


def test_without_a_session_a_page_asks_for_a_key(place: Place) -> None:
    place.study()
    keys.create(place.store, "read")
    for path in ("/", "/studies/lanes", "/studies/lanes/history?before=2", "/new"):
        answer = place.get(path)
        assert answer.status_code == 303, path
        assert answer.headers["location"].startswith("/login?next=%2F")
    accepted = {"accept": "text/event-stream"}
    assert place.get("/studies/lanes/events", headers=accepted).status_code == 401
    assert place.get("/studies/lanes/parts", headers={"hx-request": "true"}).status_code == 401
    assert place.get("/docs").status_code == 200


def test_a_session_begins_with_a_key_and_ends_with_it(place: Place) -> None:
    place.study()
    made = keys.create(place.store, "play", name="night job")
    wrong = place.post("/login", key=made.token[:-1] + "~")
    assert wrong.status_code == 401
    assert "The API key is not valid" in wrong.text
    right = place.post("/login", key=f" {made.token} ", next="/studies/lanes")
    assert (right.status_code, right.headers["location"]) == (303, "/studies/lanes")
    cookie = right.headers["set-cookie"]
    assert cookie.startswith("multiplay_session=mp_")
    assert {"HttpOnly", "Path=/", "SameSite=strict", "Max-Age=43200"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    page = place.get("/studies/lanes")
    assert page.status_code == 200
    assert page.headers["cache-control"] == "no-store"
    assert "night job" in page.text
    secret = place.client.cookies["multiplay_session"]
    assert secret.split("_", 2)[2] not in page.text, "the secret is in the cookie only"
    place.post("/studies/lanes/ask", key="Monday")
    entry = next(mp.Study.open("lanes", store=place.store).entries(1))
    assert entry.record.header["by"] == made.row.id, "the journal names the key, not the session"
    assert "by night job" in place.get("/studies/lanes/history").text
    keys.revoke(place.store, made.row.id)
    place.client.cookies.set("multiplay_session", secret)
    keys.create(place.store, "read")
    assert place.get("/studies/lanes").status_code == 303


def test_a_form_that_comes_after_the_session_says_so(place: Place) -> None:
    study = place.study()
    keys.create(place.store, "play")
    answer = place.post("/studies/lanes/ask", key="Monday")
    assert answer.status_code == 401
    assert "Your session has ended" in answer.text
    assert study.asked == 0


def test_the_address_of_a_form_leads_to_its_page(place: Place) -> None:
    place.study("north/south").ask()
    base = "/studies/north%2Fsouth"
    for path, page in (("/ask", ""), ("/plays/1/tell", "/plays/1"), ("/plays/1/x", "/plays/1")):
        assert place.get(base + path).headers["location"] == base + page
    assert place.get("/logout").headers["location"] == "/"


def test_logging_out_ends_the_session_for_good(place: Place) -> None:
    place.log_in()
    token = place.client.cookies["multiplay_session"]
    answer = place.post("/logout")
    assert answer.headers["location"] == "/login"
    assert 'multiplay_session=""; HttpOnly; Max-Age=0' in answer.headers["set-cookie"]
    assert "multiplay_session" not in place.client.cookies
    place.client.cookies.set("multiplay_session", token)
    assert place.get("/").status_code == 303


def test_a_session_ends_by_itself_and_makes_no_other(place: Place) -> None:
    made = keys.create(place.store, "manage", days=0.25)
    keyring, now = store_at(place.store).keyring(), made.row.created
    assert sessions.start_session(keyring, made.row.id, now)
    (row,) = [row for row in keyring.all() if row.parent == made.row.id]
    assert row.expires == made.row.expires, "not longer than the key itself"
    assert sessions.start_session(keyring, row.id, now) is None
    forever = keys.create(place.store, "manage")
    assert sessions.start_session(keyring, forever.row.id, now)
    ends = [row.expires for row in keyring.all() if row.parent == forever.row.id]
    assert ends == [now + sessions.LONGEST]
    assert sessions.start_session(keyring, forever.row.id, now + sessions.LONGEST + 1)
    assert len([row for row in keyring.all() if row.parent]) == 1, "old ones are removed"
    place.log_in()
    assert place.post("/login", key=place.client.cookies["multiplay_session"]).status_code == 401


def test_by_https_cookies_belong_to_this_host_only(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'plans.db'}"
    made = keys.create(store, "read")
    app = create_app(Settings(store, open=False))
    with client_of(app, "https://plans.example") as client:
        page = client.get("/login")
        visitor = page.headers["set-cookie"]
        assert visitor.startswith("__Host-multiplay_visitor=")
        assert "Secure" in visitor
        mark = re.search(r'name="mark" value="(\w+)"', page.text)
        assert mark
        answer = client.post("/login", data={"mark": mark[1], "key": made.token})
        assert answer.headers["set-cookie"].startswith("__Host-multiplay_session=mp_")
        assert client.get("/").status_code == 200


def test_who_may_only_look_has_no_forms(place: Place) -> None:
    study = place.study()
    play = study.ask()
    place.log_in("read")
    page = place.get("/studies/lanes").text
    assert 'action="/studies' not in page
    assert 'action="/studies' not in place.get(f"/studies/lanes/plays/{play.id}").text
    assert "New study" not in place.get("/").text
    assert 'id="tell"' not in place.get("/studies/lanes/parts").text
    mark = re.search(r'name="mark" value="(\w+)"', page)
    assert mark, "of the button to log out"
    for path in ("ask", "plays/1/tell", "plays/1/cancel", "plays/1/close"):
        answer = place.client.post(f"/studies/lanes/{path}", data={"mark": mark[1], "arm0": "1"})
        assert answer.status_code == 403, path
    assert place.get("/new").status_code == 403
    answer = place.client.post("/new", data={"mark": mark[1], **NEW, "name": "x"})
    assert answer.status_code == 403
    assert (study.asked, len(study.pending())) == (1, 1)


def test_a_key_for_one_study_shows_no_other(place: Place) -> None:
    place.study("ours")
    place.study("theirs")
    place.log_in("play", study="ours")
    assert "theirs" not in place.get("/").text
    for path in ("", "/lanes", "/parts", "/events", "/history", "/plays/1"):
        assert place.get(f"/studies/theirs{path}").status_code == 403, path
    assert place.get("/studies/ours").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://elsewhere.example"},
        {"origin": "null"},
        {"origin": "http://localhost:9999"},
    ],
)
def test_a_form_of_another_site_is_refused(place: Place, headers: dict[str, str]) -> None:
    study = place.study()
    data = {"mark": place.mark(), "key": "Monday"}
    answer = place.client.post("/studies/lanes/ask", data=data, headers=headers)
    assert answer.status_code == 403
    assert study.asked == 0


def test_a_form_without_the_mark_of_this_visitor_is_refused(place: Place) -> None:
    study = place.study()
    other = place.mark()
    place.client.cookies.clear()
    for mark in ("", "0" * 64, other, "\u00e4"):
        answer = place.client.post("/studies/lanes/ask", data={"mark": mark, "key": "Monday"})
        assert answer.status_code == 403
    answer = place.client.post("/studies/lanes/ask", json={"mark": place.mark()})
    assert answer.status_code == 415
    assert study.asked == 0
    place.log_in()
    assert place.mark() != other, "a session has a mark of its own"


@pytest.mark.parametrize(
    "target", ["//elsewhere", "https://elsewhere", "/\\elsewhere", "javascript:1", "", "/a\nb"]
)
def test_after_logging_in_one_stays_here(target: str) -> None:
    assert sessions.local_path(target) == "/"


def test_an_old_cookie_does_no_harm_where_no_key_is_needed(place: Place) -> None:
    place.client.cookies.set("multiplay_session", f"mp_{'0' * 12}_{'x' * 43}")
    assert place.get("/").status_code == 200
    assert place.get("/login").headers["location"] == "/"


# ---------------------------------------------------------------- the rest


def dots(page: str) -> dict[str, list[str]]:
    """Return the texts of the dots of a chart, by their kind."""
    found: dict[str, list[str]] = {}
    for kind, text in re.findall(r'class="dot (\w+)"[^>]*><title>(.*?)</title>', page):
        found.setdefault(kind, []).append(re.sub(r"</?data[^>]*>", "", text))
    return found


def test_the_chart_has_each_day_as_text(place: Place) -> None:
    study = place.study(words=mp.Words("EUR"))
    ask_and_tell(study, 30)
    study.ask()
    page = place.get("/studies/lanes/history").text
    drawn = dots(page)
    assert len(drawn.get("realised", [])) + len(drawn.get("tried", [])) == 30
    last = study.plays().iloc[-2]
    (text,) = (text for texts in drawn.values() for text in texts if text.startswith("plan 30:"))
    assert text.startswith(f"plan 30: {study.words.money(last.realised)}, expected ")
    assert page.count('<polyline class="plans"') == 1
    assert 'class="best-band"' in page
    assert "own plan or import" not in page, "the legend has what is drawn"
    axis = re.findall(r'data-value="([\d.]+)">([\d,.]+)</text>', page)
    assert all(value == text.replace(",", "") for value, text in axis)
    assert dots(place.get("/studies/lanes").text) == {}


def test_the_chart_has_external_days_in_their_place(place: Place) -> None:
    study = place.study()
    start = datetime(2026, 11, 1, 6, tzinfo=UTC)
    table = {"arm": ["Lyon->north"] * 3, "round": ["2026-10-29", "2026-10-29", "2026-10-30"]}
    study.learn_table(table | {"loss": [10.0, 20.0, 5.5]}, key="old")
    for day in range(3):
        play = study.ask(key=f"2026-11-0{day + 1}", at=start + timedelta(days=day))
        if day != 1:
            study.tell(play, euros(play))
    study.cancel(2)
    plan = {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}
    bills = {"Lyon->north": [7.0, 8.0], "Lille->north": 30.0, "Lille->south": [1.0]}
    study.learn(plan, bills, key="by hand", at=start + timedelta(days=1, hours=1))
    page = place.get("/studies/lanes/history").text
    assert dots(page)["external"] == ["2026-10-29: 30", "2026-10-30: 5.5", "by hand: 46"]
    order = re.findall(r"><title>([^:,<]*)[:,]", page)
    assert order == ["2026-10-29", "2026-10-30", "2026-11-01", "by hand", "2026-11-03"]
    study.retract("old")
    study.correct("by hand", bills | {"Lyon->north": [70.0, 8.0]})
    assert dots(place.get("/studies/lanes/history").text)["external"] == ["by hand: 109"]


def test_the_chart_shows_a_period_and_one_lane(place: Place) -> None:
    study = place.study(words=mp.Words("EUR"))
    table = {"arm": ["Lyon->north"] * 3 + ["Lille->south"], "loss": [10.0, 20.0, 5.5, 70.0]}
    study.learn_table(table | {"round": ["2026-10-29", "2026-10-29", "2026-10-30", "2026-10-30"]})
    bills = {"Lyon->north": [7.0, 9.0], "Lille->north": 30.0, "Lille->south": [None]}
    plan = {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}
    study.learn(plan, bills, key="by hand", missing="ignore", at=datetime(2026, 11, 1, tzinfo=UTC))
    base = "/studies/lanes/history"
    lane = dots(place.get(f"{base}?arm=Lyon->north").text)["external"]
    assert lane == ["2026-10-29: 15 EUR", "2026-10-30: 5.5 EUR", "by hand: 8 EUR"]
    found = dots(place.get(f"{base}?first=2026-10-30&last=2026-10-31").text)
    assert found == {"external": ["2026-10-30: 75.5 EUR"]}
    found = dots(place.get(f"{base}?first=2026-10-30&arm=Lille->south").text)
    assert found == {"external": ["2026-10-30: 70 EUR"]}
    nothing = place.get(f"{base}?last=2026-01-01").text
    assert dots(nothing) == {}
    assert "No costs are known of these days yet" in nothing
    assert dots(place.get(f"{base}?first=soon&arm=nowhere").text) == {}


TABS = {
    "": ["latest", "state", "plan", "tell", "other", "pending"],
    "/lanes": ["latest", "changes", "arms"],
    "/promises": ["latest", "constraints"],
    "/history": ["latest", "costs", "journal"],
    "/savings": None,
    "/settings": None,
}


@pytest.mark.parametrize("path", TABS)
def test_each_page_of_a_study_has_its_address_and_its_parts(place: Place, path: str) -> None:
    """All of them link to each other, and the parts that follow the study come together."""
    place.study().ask(key="Monday")
    page = place.get(f"/studies/lanes{path}").text
    tabs = re.search(r'<nav class="tabs".*?</nav>', page, re.DOTALL)
    assert tabs
    links = re.findall(r'href="/studies/lanes([^"]*)"', tabs[0])
    assert links == [*TABS, "/import"]
    current = re.findall(r'href="/studies/lanes([^"]*)" aria-current="page"', tabs[0])
    assert current == [path]
    source = re.search(r'hx-get="([^"]*/parts[^"]*)"', page)
    assert (source is None) == (TABS[path] is None)
    if source:
        parts = re.findall(r'hx-target="#(\w+)"', place.get(source[1].replace("&amp;", "&")).text)
        assert parts == TABS[path]
        assert all(f'id="{part}"' in page for part in parts)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/journal?before=2", "/history?before=2#journal-heading"),
        ("/manage", "/settings"),
        ("?arms=north&all=1", "/lanes?arms=north&all=1"),
    ],
)
def test_addresses_of_older_versions_lead_to_their_page(place: Place, old: str, new: str) -> None:
    place.study()
    answer = place.get(f"/studies/lanes{old}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/studies/lanes{new}")


def test_clipped_numbers_and_changes_are_shown(place: Place) -> None:
    study = place.study(reports=mp.Reports(outside="clip"))
    with study.together():
        for k in range(60):
            play = study.ask()
            cost = 10.0 if k < 30 else 400.0
            study.tell(play.id, {lane: [cost] * n for lane, n in play.plan.items()})
    page = place.get("/studies/lanes").text
    assert "150</b> values outside the range" in page
    assert page.count("<b>Change:</b>") == 1
    assert "1 change of costs<br>" in place.get("/studies/lanes/lanes").text


def test_a_policy_that_learns_from_totals_asks_for_one(place: Place) -> None:
    ads = mp.Budget(4, [3, 3], names=["news", "radio"])
    study = mp.Study.create("ads", ads, mp.LinTS(), loss_range=(0, 250), store=place.store)
    study.ask()
    page = place.get("/studies/ads")
    assert_harmless(page)
    assert 'id="tell-total" name="total"' in page.text
    assert 'name="arm0"' not in page.text
    told = place.post("/studies/ads/plays/1/tell", total="310")
    assert told.status_code == 303
    assert "310" in place.get("/studies/ads/plays/1").text


def test_the_journal_is_read_page_by_page(place: Place) -> None:
    study = place.study()
    with study.together():
        ask_and_tell(study, 60)
    seen: list[int] = []
    path: str | None = "/studies/lanes/history"
    while path:
        text = place.get(path).text
        seen += map(int, re.findall(r'class="number">(\d+)<', text))
        older = re.search(r'href="([^"]+)" rel="next"', text)
        path = older[1] if older else None
    assert seen == list(range(120, -1, -1))


def test_the_document_has_an_example_for_every_operation(place: Place) -> None:
    document = place.get("/openapi.json").json()
    text = place.get("/docs").text
    for path, methods in document["paths"].items():
        for method in methods:
            assert f'<span class="method">{method.upper()}</span> <code>{path}</code>' in text
    number = sum(len(methods) for methods in document["paths"].values())
    assert text.count('<pre tabindex="0"><code>curl ') == number
    assert "/new" not in document["paths"], "pages are not for programs"


def test_only_our_files_are_given_out(place: Place) -> None:
    for path in render.files():
        answer = place.get(render.static(path))
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    for path in ("../routes.py", "%2e%2e/routes.py", "vendored/htmx/LICENSE", "x"):
        assert place.get(f"/static/{path}").status_code == 404


def test_what_is_vendored_says_what_it_is() -> None:
    for folder in (render.STATIC / "vendored").iterdir():
        assert {"LICENSE", "VERSION"} <= {file.name for file in folder.iterdir()}


def test_what_is_not_there_is_a_page_that_says_so(place: Place) -> None:
    place.study()
    for path in ("/studies/other", "/studies/lanes/plays/7", "/studies/lanes/plays/x"):
        answer = place.get(path)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"].startswith("text/html")
        assert "plans.db" not in answer.text


def test_a_study_that_cannot_be_read_does_not_hide_the_others(place: Place) -> None:
    place.study("good")
    odd = MemoryStore()
    study = new_study(odd, "odd")
    first = next(study.entries())
    record = first.record._replace(header=first.record.header | {"format": 99})
    store_at(place.store).create("odd", record, first.labels)
    page = place.get("/")
    assert page.status_code == 200
    assert "Cannot be shown" in page.text
    assert 'href="/studies/good"' in page.text


def test_every_page_leads_to_its_section_of_the_guide(place: Place) -> None:
    place.study().ask()
    guide = place.get("/help").text
    tabs = ("lanes", "promises", "history", "savings", "settings", "import", "report", "plays/1")
    base, wanted = "/studies/lanes", {"/": "studies", "/new": "new", "/new/form": "new"}
    wanted |= {base: "plan"} | {f"{base}/{tab}": tab.replace("plays/1", "play") for tab in tabs}
    for path, section in wanted.items():
        assert f'href="/help#{section}"' in place.get(path).text, path
        assert f'id="{section}"' in guide
