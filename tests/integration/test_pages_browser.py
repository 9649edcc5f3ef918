"""Web pages in a browser, with a real server."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import chromium
from dirty_table import DEMAND, OPENS, SUPPLY, DirtyTable
from effort import TIME_LIMIT
from featured import ask_and_tell as ask_with_features
from featured import featured_study
from pictures import guide
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Locator,
    Page,
    Route,
    expect,
    sync_playwright,
)
from serving import Served
from trucks import ask_and_tell, euros, new_study

import multiplay as mp
from multiplay.service.auth import keys

expect.set_options(timeout=1000 * TIME_LIMIT)  # milliseconds; the default is 5 seconds

NARROW, WIDE = 390, 1400
PICTURES = os.environ.get("MULTIPLAY_PICTURES")  # a folder to look at them
OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PATHS = {
    "studies": "/",
    "new": "/new",
    "form": "/new/form",
    "lanes": "/studies/lanes/lanes",
    "promises": "/studies/lanes/promises",
    "history": "/studies/lanes/history",
    "lane": "/studies/lanes/history?arm=Lyon->north",
    "settings": "/studies/lanes/settings",
    "import": "/studies/lanes/import",
    "study": "/studies/lanes",
    "empty": "/studies/empty",
    "knapsack": "/studies/bag",
    "day features": "/studies/featured",
    "features": "/studies/featured/lanes",
    "savings": "/studies/lanes/savings",
    "allowance": "/studies/limited/promises",
    "imported": "/studies/imported",
    "report": "/studies/imported/report",
    "later": "/studies/later",
    "later savings": "/studies/later/savings",
    "later report": "/studies/later/report",
    "pending": "/studies/lanes/plays/42",
    "told": "/studies/lanes/plays/7",
    "journal": "/studies/lanes/history?before=9",
    "docs": "/docs",
    "missing": "/studies/unknown",
}


class Service:
    """A server with a store, and a key for it."""

    def __init__(self, url: str, store: Path, key: str) -> None:
        self.url, self.store, self.key = url, store, key

    def study(self, name: str = "lanes") -> mp.Study:
        return mp.Study.open(name, store=self.store)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    store = tmp_path_factory.mktemp("service") / "plans.db"
    study = new_study(mp.storage.store_at(store), reports=mp.Reports(outside="clip"))
    with study.together():
        ask_and_tell(study, 41)
    study.ask(key="2026-11-15")
    study.versus = mp.PriceList(dict.fromkeys(study.actions.names, 60.0))
    new_study(mp.storage.store_at(store), "empty")
    limited = new_study(
        mp.storage.store_at(store), "limited", constraints=[mp.Baseline(mp.InProportion())]
    )
    ask_and_tell(limited, 3)
    limited.ask()
    german: Any = {"words": mp.Words("EUR", "truck"), "loss_range": (0, 2000)}
    new_study(mp.storage.store_at(store), "german", **german)
    imported = new_study(mp.storage.store_at(store), "imported")
    lanes = [*imported.actions.names] * 20
    days = [f"2026-03-{k // 4 + 1:02}" for k in range(80)]
    imported.learn_table({"arm": lanes, "round": days, "loss": [50.0 + k % 9 for k in range(80)]})
    imported.copy(name="later")
    later = mp.Study.open("later", store=store)
    with later.together():
        ask_and_tell(later, 12)
    typing = new_study(mp.storage.store_at(store), "typing")
    for _ in range(3):
        typing.ask()
    sack = mp.Knapsack([3, 1, 0.5], 7, names=["tent", "rope", "a lamp with a very long name"])
    mp.Study.create("bag", sack, mp.GenCTS(), loss_range=(0, 9), store=store).ask()
    featured = featured_study(mp.storage.store_at(store), "featured")
    with featured.together():
        ask_with_features(featured, 12)
    key = keys.create(store, "manage", name="the planner").token
    with Served(store, store.parent / "log") as served:
        yield Service(served.url, store, key)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=path, args=OPTIONS, timeout=1000 * TIME_LIMIT
        )
        yield started
        started.close()


class Watched:
    """A browser window, and the errors of its scripts."""

    def __init__(self, context: BrowserContext) -> None:
        self.errors: list[str] = []
        self.page = context.new_page()
        self.page.set_default_timeout(1000 * TIME_LIMIT)
        self.page.on("pageerror", lambda error: self.errors.append(f"{error}"))
        self.page.on("console", self._note)

    def _note(self, message: Any) -> None:
        expected = "status of 4" in message.text  # pages of errors
        if message.type in ("error", "warning") and not expected:
            self.errors.append(message.text)


@pytest.fixture
def watched(browser: Browser, service: Service) -> Iterator[Watched]:
    context = browser.new_context(base_url=service.url, viewport={"width": WIDE, "height": 900})
    found = Watched(context)
    yield found
    context.close()
    assert found.errors == [], "no script failed, and nothing broke the content security policy"


def log_in(page: Page, service: Service) -> None:
    page.goto("/")
    page.get_by_label("API key").fill(service.key)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()


def wait_until_live(page: Page) -> None:
    expect(page.locator("#live")).to_have_attribute("data-state", "live")


def test_a_plan_with_features_of_the_day(watched: Watched, service: Service) -> None:
    page = watched.page
    log_in(page, service)
    page.goto("/studies/featured/lanes")
    drivers = page.locator("#drivers")
    expect(drivers).to_contain_text("each 100 km costs")
    expect(drivers.get_by_text("changes no plan", exact=True)).to_have_count(7)
    drivers.get_by_text("Own effects of lanes").click()
    expect(drivers.get_by_role("rowheader", name="Lyon→south")).to_be_visible()
    page.get_by_role("link", name="Plan", exact=True).click()
    wait_until_live(page)
    page.locator("#key").fill("Tuesday")
    page.get_by_label("fuel").fill("1.72")
    page.get_by_role("button", name="Make the plan").click()
    assert page.locator("#feature1:invalid").count() == 1, "the browser asks for the weekday"
    page.get_by_label("weekday").select_option("Tue")
    page.get_by_label("rain", exact=True).check()
    page.get_by_role("button", name="Make the plan").click()
    expect(page.locator(".message")).to_have_text("Plan 13 was made.")
    given = service.study("featured").day_features()
    assert given == {"fuel": 1.72, "weekday": "Tue", "rain": True}


def test_a_day_of_planning_trucks(watched: Watched, service: Service) -> None:
    page = watched.page
    log_in(page, service)
    page.get_by_role("link", name="New study").first.click()
    page.get_by_role("link", name="Without a file").click()
    page.get_by_label("Name").fill("trucks")
    page.get_by_role("textbox", name="Suppliers").fill("Lyon 2\nLille 3")
    page.get_by_role("textbox", name="Customers").fill("north 4\nsouth 2")
    page.get_by_label("Maximum", exact=True).fill("250")
    page.get_by_role("button", name="Create the study").click()
    expect(page.locator("#demand-error")).to_contain_text("The total supply is 5")
    expect(page.get_by_role("textbox", name="Suppliers")).to_have_value("Lyon 2\nLille 3")
    page.get_by_role("textbox", name="Customers").fill("north 4\nsouth 1")
    page.get_by_role("button", name="Create the study").click()

    page.locator("#key").fill("Monday")
    page.get_by_role("button", name="Make the plan").click()
    expect(page.get_by_role("heading", name="Current plan: plan 1")).to_be_visible()
    expect(page.locator(".message")).to_have_text("Plan 1 was made.")
    assert page.locator("svg.flows path").count() >= 2

    for field in page.locator("#tell .telling .field").all():
        units = re.search(r"(\d+) units?", field.inner_text())
        assert units
        field.locator("input").fill(" ".join(["100"] * int(units[1])))
    page.get_by_role("button", name="Save the costs").click()
    expect(page.locator(".message")).to_contain_text("The outcome of plan 1 was saved")
    expect(page.locator(".status")).to_have_text("reported")
    assert service.study("trucks").plays()["realised"].tolist() == [500.0]

    page.get_by_role("link", name="trucks").click()
    page.locator("#key").fill("Tuesday")
    page.get_by_text("Supply and demand of the day").click()
    page.get_by_role("textbox", name="Suppliers").fill("Lyon 4\nLille 1")
    page.get_by_role("button", name="Make the plan").click()
    expect(page.get_by_role("heading", name="Current plan: plan 2")).to_be_visible()
    page.get_by_text("Discard a plan that was not carried out").click()
    page.get_by_role("button", name="Cancel plan 2").click()
    expect(page.locator(".status")).to_have_text("cancelled")

    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.goto("/studies/trucks")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


@pytest.mark.smoke
def test_the_page_moves_when_a_program_tells(watched: Watched, service: Service) -> None:
    page, study = watched.page, service.study()
    log_in(page, service)
    page.goto("/studies/lanes/history")
    wait_until_live(page)
    dots = page.locator("svg.wide .dot")
    before = dots.count()
    page.get_by_text("Table of the last plans").click()

    play = study.ask(key="by a program")
    study.tell(play.id, euros(play, more=150.0))
    expect(dots).to_have_count(before + 1)
    expect(page.locator("#message")).to_contain_text(f"reported plan {play.id}")
    expect(page.locator("#last-plays")).to_have_attribute("open", "")
    expect(page.locator("#last-plays")).to_contain_text("by a program")
    dots.last.hover()
    expect(page.locator("#chart-values")).to_contain_text("by a program, plan")


def test_a_period_is_chosen_in_the_chart(browser: Browser, service: Service) -> None:
    """By dragging; what the chart says of a day has the numbers of the browser's language."""
    view: Any = {"width": WIDE, "height": 900}
    context = browser.new_context(base_url=service.url, viewport=view, locale="de-DE")
    watched = Watched(context)
    page = watched.page
    log_in(page, service)
    page.goto("/studies/imported/history")
    dots = page.locator("svg.wide .dot")
    expect(dots).to_have_count(20)
    dots.first.hover()
    expect(page.locator("#chart-values")).to_have_text("2026-03-01: 206")
    first, last = (dots.nth(place).bounding_box() for place in (4, 9))
    assert first
    assert last
    page.mouse.move(first["x"] - 5, first["y"])
    page.mouse.down()
    page.mouse.move(last["x"] + 10, last["y"], steps=3)
    page.mouse.up()
    expect(page.get_by_label("From")).to_have_value("2026-03-05")
    expect(page.get_by_label("to", exact=True)).to_have_value("2026-03-10")
    expect(dots).to_have_count(6)
    page.get_by_label("Lane", exact=True).select_option("Lyon->north")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(dots).to_have_count(6)
    expect(page.get_by_role("heading", name="Lyon→north")).to_be_visible()
    dots.first.hover()
    expect(page.locator("#chart-values")).to_have_text(re.compile(r"2026-03-05: \d\d(,\d)?$"))
    page.get_by_role("link", name="Show all").click()
    expect(dots).to_have_count(20)
    context.close()
    assert watched.errors == []


def test_a_day_of_a_planner_in_german(browser: Browser, service: Service) -> None:
    """Limits, a plan of the user, pasted and uploaded bills, and a correction, on a phone."""
    context = browser.new_context(
        base_url=service.url,
        viewport={"width": NARROW, "height": 900},
        locale="de-DE",
        timezone_id="Europe/Berlin",
    )
    watched = Watched(context)
    page, study = watched.page, service.study("german")
    log_in(page, service)
    page.goto("/studies/german")
    page.get_by_text("Closed lanes and limits").click()
    page.get_by_label("Lane 3", exact=True).fill("Lyon->south")
    expect(page.get_by_label("Lane 4", exact=True)).to_be_visible()  # a row for one more
    page.locator("#key").fill("2026-11-17")
    page.get_by_role("button", name="Make the plan").click()
    expect(page.locator(".message")).to_have_text("Plan 1 was made.")
    (play,) = study.pending()
    assert play.plan["Lyon->south"] == 0
    total = f"{play.expected.total:,.0f}".replace(",", ".")  # as German writes it
    expect(page.locator("#plan")).to_contain_text(f"should cost {total} EUR")

    page.get_by_text("What would my plan cost?").click()
    page.get_by_label("Lyon→north").last.fill("1")
    page.get_by_label("Lyon→south").last.fill("1")
    page.get_by_role("button", name="What would it cost?").click()
    expect(page.locator(".answer")).to_contain_text("EUR")
    assert page.locator(".answer").bounding_box(), "it is shown"

    page.locator("#tell").get_by_text("Paste from a spreadsheet").click()
    lanes = [lane for lane, k in play.plan.items() for _ in range(k)]
    page.locator("#tell-rows").fill("\n".join(f"{lane}\t1000,25" for lane in lanes))
    page.get_by_role("button", name="Fill in the fields").click()
    expect(page.locator(".message")).to_have_text("Check the numbers, and save them.")
    expect(page.locator("#tell-arm0")).to_have_value(re.compile(r"^1000\.25"))
    page.get_by_role("button", name="Save the costs").click()
    expect(page.locator(".status")).to_have_text("reported")
    expect(page.locator(".outcomes")).to_contain_text("5.001 EUR")
    hour = time_in("Europe/Berlin", study.plays()["asked"][0])
    expect(page.locator(".outcomes time")).to_have_text(re.compile(rf"\d{{4}}-\d\d-\d\d {hour}"))
    expect(page.locator("#zone")).to_contain_text("Europe/Berlin")

    page.get_by_text("Correct the costs").click()
    page.locator("#correct-arm0").fill("x")
    page.get_by_role("button", name="Save the correction").click()
    expect(page.locator("#correct-arm0")).to_be_focused()  # the field that is wrong
    page.locator("#correct-file").set_input_files(
        {"name": "b.csv", "mimeType": "text/csv",
         "buffer": "\n".join(f"{lane};7,5" for lane in lanes).encode()}
    )  # fmt: skip
    page.get_by_role("button", name="Save the correction").click()
    expect(page.locator(".message")).to_contain_text("The correction of plan 1 was saved")
    assert study.plays()["realised"].tolist() == [37.5]
    _check(page, "corrected")
    context.close()
    assert watched.errors == []


def time_in(zone: str, when: Any) -> str:
    return f"{when.tz_convert(zone):%H:%M}"


def test_user_input_is_not_replaced(watched: Watched, service: Service) -> None:
    """A form without input follows the study; a form with input stays."""
    page, study = watched.page, service.study("typing")
    log_in(page, service)
    page.goto("/studies/typing")
    wait_until_live(page)
    expect(page.locator("#tell-heading")).to_contain_text("plan 1")
    study.cancel(1)
    expect(page.locator("#tell-heading")).to_contain_text("plan 2")
    field = page.locator("#tell-arm0")
    field.fill("12")
    page.locator("#key").fill("my plan")
    study.cancel(2)
    expect(page.locator("#message")).to_contain_text("cancelled plan 2")
    expect(page.locator("#tell-heading")).to_contain_text("plan 2")
    expect(field).to_have_value("12")
    expect(page.locator("#key")).to_have_value("my plan")
    page.get_by_role("button", name="Save the costs").click()
    expect(page.get_by_role("alert")).to_contain_text("no longer waits for a report")


def test_the_keyboard_is_enough(watched: Watched, service: Service) -> None:
    page = watched.page
    log_in(page, service)
    page.goto("/studies/lanes")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    seen = []
    while "BODY" not in seen:
        page.keyboard.press("Tab")
        name, is_seen = page.evaluate(
            """() => {
              const it = document.activeElement, look = getComputedStyle(it);
              const name = it.id || (it == document.body ? "BODY" : it.textContent.trim());
              return [name, look.outlineStyle != "none"];
            }"""
        )
        assert is_seen or name == "BODY", f"the focus on {name} is not visible"
        seen.append(name)
    assert {"tell-arm0", "Save the costs", "key", "Make the plan"} <= set(seen)


def press_until(page: Page, target: Locator) -> None:
    """Move the focus to an element with the Tab key alone."""
    for _ in range(100):
        if target.evaluate("it => it === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError("the keyboard does not reach the element")


def test_a_study_from_a_file_to_its_deletion_by_keyboard(
    watched: Watched, service: Service, tmp_path: Path
) -> None:
    """The file is given to its field; all else is typed."""
    page, rows = watched.page, ["depot;town;date;euros"]
    for day in range(1, 22):
        rows += [f"Lyon;north;2026-03-{day:02};{100 + day},5", f"Lille;south;2026-03-{day:02};80"]
    file = tmp_path / "roads.csv"
    file.write_text("\n".join([*rows, "Lyon;north;2026-03-30;cheap"]))
    log_in(page, service)

    def press(name: str, role: Any = "button") -> None:
        press_until(page, page.get_by_role(role, name=name, exact=True).first)
        page.keyboard.press("Enter")

    press("New study", "link")
    press_until(page, page.locator("#file"))
    page.locator("#file").set_input_files(file)
    press("Read the table")
    expect(page.get_by_label("Name", exact=True)).to_have_value("roads")
    expect(page.get_by_role("textbox", name="Suppliers")).to_have_value("Lyon 1\nLille 1")
    expect(page.get_by_text("'cheap' is not a number")).to_be_visible()
    _check(page, "preview")
    press_until(page, page.get_by_label("Leave out the row with a problem"))
    expect(page.get_by_label("Leave out the row with a problem")).to_be_checked()
    press("Create the study, and plan today")
    expect(page.get_by_role("heading", name="Current plan: plan 1")).to_be_visible()
    assert service.study("roads").arms()["seen"].sum() == 42
    press("Settings", "link")
    press_until(page, page.get_by_label("Name of the copy"))
    page.keyboard.type("trial")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("This is the copy.")
    press_until(page, page.get_by_label("Type the name"))
    page.keyboard.type("trial")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("The study was deleted.")
    assert {"roads", "trial"} & {*mp.Study.names(store=service.store)} == {"roads"}


def test_the_first_minute_of_a_planner(
    browser: Browser, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """From an empty home page and a dirty file to the best plan of today, without typing."""
    made = DirtyTable(seed=8)
    assert made.best != made.before, "the jump of a lane matters"
    assert {source for source, _ in made.best} >= {*OPENS}, "and so does a depot that opens late"
    file, store = tmp_path / "Frachten 2025.csv", tmp_path_factory.mktemp("first") / "plans.db"
    file.write_bytes(made.text.encode("cp1252"))
    clicks = []
    with Served(store, store.parent / "log") as served:
        context = browser.new_context(
            base_url=served.url, viewport={"width": WIDE, "height": 900}, locale="de-DE"
        )
        watched = Watched(context)
        page = watched.page

        def click(target: Locator) -> None:
            clicks.append(f"{target}")
            target.click()

        page.goto("/")
        _check(page, "first-home")
        with page.expect_file_chooser() as chooser:
            click(page.get_by_label("A file"))
        chooser.value.set_files(file)
        click(page.get_by_role("button", name="Read the table"))
        expect(page.get_by_role("heading", name="Frachten 2025.csv")).to_be_visible()
        roles = [cell.split("\n") for cell in page.locator(".sample th").all_inner_texts()]
        assert [tuple(role) for role in roles] == [
            ("date", "Datum"),
            ("not used", "Dieselpreis €/l"),
            ("not used", "Entfernung km"),
            ("not used", "Fahrer"),
            ("from", "Lager"),
            ("to", "Empfänger"),
            ("cost", "Frachtkosten"),
        ]
        expect(
            page.get_by_text("Not used: Dieselpreis €/l, Entfernung km, Fahrer.")
        ).to_be_visible()
        for mistake in ("“Hamurg” (1 row) to “Hamburg”", "Summe 01", "-95,00 €", made.twice):
            expect(page.locator(".findings .check", has_text=mistake)).to_have_count(1)
        for side, units in (("Suppliers", SUPPLY), ("Customers", DEMAND)):
            lines = page.get_by_role("textbox", name=side).input_value().splitlines()
            assert {*lines} == {f"{name} {number}" for name, number in units.items()}
        _check(page, "first-table")
        click(page.get_by_role("button", name="Create the study, and plan today"))
        expect(page.locator("#plan-heading")).to_contain_text("plan 1")
        assert len(clicks) <= 8, clicks
        driven = sum(bill.cost for bill in made.bills) / len({bill.day for bill in made.bills})
        expect(page.locator("#driven .saved-line")).to_contain_text(
            f"Your days cost {german_count(round(driven))} EUR on average. "
            "The best plan by these bills:"
        )
        jumped = f"{made.jumped[0]}→{made.jumped[1]}"
        expect(page.locator("#state .lacking")).to_contain_text(
            re.compile(rf"{jumped}: .* EUR since 2025-(08|09)-\d\d")
        )
        _check(page, "first-plan")

        study = mp.Study.open("Frachten 2025", store=store)
        assert study.words == ("EUR", "truck", "lane", "day")
        (play,) = study.pending()
        sent = {lane: units for lane, units in play.plan.items() if units}
        assert sent == {f"{source}->{to}": units for (source, to), units in made.best.items()}
        assert study.arms()["seen"].sum() == len(made.bills)
        head = study.head

        page.goto("/studies/Frachten%202025/report")
        expect(page.get_by_role("button", name="Print")).to_be_visible()
        _check_that_one_page_is_printed(page)
        _check(page, "first-report")
        page.goto("/studies/Frachten%202025")
        page.get_by_role("link", name="Import", exact=True).click()
        page.get_by_label("A file").set_input_files(file)
        page.get_by_role("button", name="Read the table").click()
        expect(page.locator(".lacking")).to_contain_text(
            f"{german_count(len(made.bills))} known, 0 new"
        )
        expect(page.get_by_role("button", name="Import", exact=False)).to_have_count(0)
        _check(page, "first-again")
        assert study.head == head, "the same file again changes nothing"
        page.goto("/studies/Frachten%202025/report")
        _check(page, "first-report")
        assert watched.errors == []
        context.close()


def test_the_guide_of_the_documentation_is_that_of_the_service() -> None:
    """``python tests/support/pictures.py`` writes it, with the pictures."""
    page = Path(__file__).parents[2] / "docs/pages.md"
    text = page.read_text(encoding="utf-8")
    assert text == guide()
    named = {*re.findall(r"\]\((pages/\S+)\)", text)}
    assert named == {f"pages/{one.name}" for one in (page.parent / "pages").iterdir()}


def german_count(number: int) -> str:
    return f"{number:,}".replace(",", ".")


def test_a_button_shows_that_something_is_under_way(watched: Watched, service: Service) -> None:
    """The form is answered when the button shows it; sent again meanwhile, it does nothing."""
    page = watched.page
    sent: list[Route] = []
    shown: list[str] = []

    def answer(words: str) -> None:
        shown.append(words)
        sent[0].continue_()

    log_in(page, service)
    page.goto("/studies/empty/settings")
    page.route("**/words", lambda route: sent.append(route))
    page.expose_function("answer", answer)
    button = page.get_by_role("button", name="Save the words")
    button.evaluate(
        """it => new MutationObserver(() => {
          if (it.ariaBusy != "true") return;
          it.form.requestSubmit(it);
          answer(document.getElementById("busy").textContent);
        }).observe(it, { attributes: true })"""
    )
    button.click(no_wait_after=True)
    expect(page.get_by_role("status")).to_have_text("The words were saved.")
    expect(button).not_to_have_attribute("aria-busy", "true")
    assert (len(sent), shown) == (1, ["Please wait."])


def test_every_page_is_accessible(watched: Watched, service: Service) -> None:
    """Check rules of axe on every page, and that pages do not scroll sideways on a phone."""
    page = watched.page
    page.goto("/login")
    _check(page, "login")
    log_in(page, service)
    for name, path in PATHS.items():
        page.set_viewport_size({"width": WIDE, "height": 900})
        page.goto(path)
        if name in ("study", "savings"):
            expect(page.locator(".saved-line")).to_contain_text("against a price list")
        if name == "imported":
            expect(page.locator("#driven .saved-line")).to_contain_text(
                "The best plan by these bills"
            )
        if name.startswith("later"):
            expect(page.locator(".saved-line").last).to_contain_text(
                "against the plans of 20 imported days"
            )
        if name == "later report":
            _check_that_one_page_is_printed(page)
        _check(page, name)


def _check_that_one_page_is_printed(page: Page) -> None:
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) == 1


CUT = """() => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  return [...document.querySelectorAll(".scroll")]
    .filter((one) => one.scrollWidth > one.clientWidth)
    .map((one) => [one.ariaLabel, getComputedStyle(one.querySelector("th") ?? one).position]);
}"""


def _check(page: Page, name: str) -> None:
    for width in (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": 900})
        cut = page.evaluate(CUT)
        assert width == NARROW or not cut, f"{name}: columns are cut at {width} pixels"
        assert all(position == "sticky" for _, position in cut), f"{name}: {cut}"
        scrolls = page.evaluate("document.documentElement.scrollWidth")
        assert scrolls <= width, f"{name} scrolls sideways at {width} pixels"
        if PICTURES:
            page.screenshot(path=Path(PICTURES) / f"{name}-{width}-light.png", full_page=True)
    _check_with_axe(page, {"resultTypes": ["violations"]})
    page.emulate_media(color_scheme="dark")
    _check_with_axe(page, {"runOnly": ["color-contrast"]})
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}-{NARROW}-dark.png", full_page=True)
    page.emulate_media(color_scheme="light")


def _check_with_axe(page: Page, options: dict[str, Any]) -> None:
    found = Axe().run(page, options=options).response["violations"]
    assert not found, [(one["id"], one["nodes"][0]["html"][:300]) for one in found]
