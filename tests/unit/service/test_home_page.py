"""Home page: the plan of today, missing reports, the small curve, and changes."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from page_client import Place, browsing
from trucks import euros

import multiplay as mp
from multiplay._support.words import Words
from multiplay.reports.study_curve import Curve
from multiplay.service.pages import home
from multiplay.service.studies import demonstration

EUR = Words("EUR", "truck", "lane", "day")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with browsing(f"sqlite:///{tmp_path / 'plans.db'}") as found:
        yield found


def text_of(place: Place) -> str:
    """Return the words of the home page."""
    page = place.get("/")
    assert page.status_code == 200
    return " ".join(re.sub(r"<[^>]*>", " ", page.text).split()).replace(" .", ".")


def test_the_plan_of_today_is_asked_and_told_from_the_home_page(place: Place) -> None:
    place.study(words=mp.Words(currency="EUR"))
    page, today = place.get("/").text, f"{datetime.now(UTC):%Y-%m-%d}"
    assert f'name="key" value="{today}"' in page
    asked = place.post("/studies/lanes/ask", key=today)
    assert asked.headers["location"].endswith("play=1")
    with mp.Study.open("lanes", store=place.store) as study:
        (play,) = study.pending()
        assert f"Plan for today should cost {study.words.estimate(*play.expected)}" in text_of(
            place
        )
        assert "<button>Plan for today" not in place.get("/").text
        study.tell(play, euros(play))
        total = sum(sum(each) for each in euros(play).values())
        assert f"The plan of today was carried out: {total:.0f} EUR" in text_of(place)
        later = study.ask(key="2999-01-01")
        assert f"Plan for 2999-01-01 should cost {EUR.estimate(*later.expected)}" in text_of(place)


def test_reports_of_earlier_days_are_missing(place: Place) -> None:
    study, now = place.study(), datetime.now(UTC)
    assert "missing" not in text_of(place)
    for days in (9, 5, 3, 2):
        study.ask(at=now - timedelta(days=days))
    study.ask(key="2026-01-02")
    study.ask()  # of today
    wanted = [f"{now - timedelta(days=days):%Y-%m-%d}" for days in (9, 5, 3)]
    found = re.search(r"Reports are missing: (.*?) and 2 more", text_of(place))
    assert found is not None
    assert found[1].replace(" ,", ",").split(", ") == wanted
    assert 'href="/studies/lanes/plays/1"' in place.get("/").text


def test_changes_say_what_was_done(place: Place) -> None:
    plans = mp.Budget(2, [2], names=["Lyon->north"])
    study = mp.Study.create(
        "lanes", plans, store=place.store, loss_range=(0, 2500), words=mp.Words(currency="EUR")
    )
    for day in range(40):
        play = study.ask()
        cost = 1200.0 + day % 3 if day < 25 else 2390.0 - day % 3
        study.tell(play.id, {"Lyon->north": [cost] * 2})
    words = "Change: Lyon→north: 1,201 EUR before, 2,389 EUR after day 25. Older reports"
    assert f"{words} no longer count." in text_of(place)
    study.unforget("Lyon->north")
    assert "no longer count" not in text_of(place)
    assert "Cost of the last 30 days: 4,780 EUR on the last day, rising by" in text_of(place)
    assert '<data value="4780">4,780</data> EUR on the last' in place.get("/").text


def plays(*realised: float) -> pd.DataFrame:
    return pd.DataFrame({"id": range(1, len(realised) + 1), "realised": realised})


def test_imported_days_are_in_the_curve(place: Place) -> None:
    study = place.study(policy=mp.BootstrapCTS())
    days = [f"2026-03-{day:02}" for day in range(1, 26)]
    study.learn_table({"arm": ["Lyon->north"] * 25, "round": days, "loss": [*range(100, 125)]})
    words = "124 on the last day (25 from an import or another plan), rising by"
    assert f"Cost of the last 25 days: {words}" in text_of(place)
    play = study.ask()
    study.tell(play, euros(play))
    total = sum(sum(each) for each in euros(play).values())
    words = f"{total:.0f} on the last day (25 from an import or another plan)"
    assert f"Cost of the last 26 days: {words}" in text_of(place)


def test_the_small_curve_lies_within_its_picture_and_skips_unknown_costs() -> None:
    rng = np.random.default_rng(1)
    costs = rng.normal(1000.0, 50.0, 50)
    costs[45] = np.nan
    curve = home.sparkline(plays(*costs), EUR)
    assert curve is not None
    assert len(curve.points) == home.ROUNDS
    x, y = np.array(curve.points).T
    assert (np.diff(x) > 0).all()
    assert x.min() >= 0
    assert x.max() <= home.WIDTH
    assert y.min() >= 0
    assert y.max() <= home.HEIGHT
    known = costs[~np.isnan(costs)][-home.ROUNDS :]
    assert (np.argsort(-y, kind="stable")[[0, -1]] == [known.argmin(), known.argmax()]).all()
    assert len(curve.trend.split()) == home.ROUNDS
    assert home.sparkline(plays(), EUR) is home.sparkline(plays(1.0, np.nan), EUR) is None
    flat = home.sparkline(plays(5.0, 5.0), EUR)
    assert flat is not None
    assert {y for _, y in flat.points} == {home.HEIGHT / 2}
    assert flat.words == "Cost of the last 2 days: 5 EUR on the last day, trend not known yet"


def test_the_trend_is_told_only_if_it_is_clear() -> None:
    for slope, words in ((-10.0, "falling by"), (10.0, "rising by"), (0.0, "no clear")):
        curve = Curve()
        noise = np.random.default_rng(2).normal(0.0, 20.0, 30)
        curve.add(1000.0 + slope * np.arange(30) + noise, np.full(30, np.nan))
        assert home.trend_text(curve.change(), EUR).startswith(words)


def test_who_may_only_read_gets_no_button(place: Place) -> None:
    place.study()
    place.log_in("read")
    page = place.get("/").text
    assert "There is no plan for today" in page
    assert 'action="/studies/lanes/ask"' not in page


@pytest.mark.slow
def test_the_demonstration_follows_its_change_and_says_what_it_saved(tmp_path: Path) -> None:
    store = tmp_path / "demonstration.db"
    notes = demonstration.prepare(store)
    assert demonstration.prepare(store) == notes  # of the same year
    rng = np.random.default_rng(demonstration.SEED)
    means = dict(zip(demonstration._plans().names, rng.uniform(80, 300, 12), strict=True))
    usual = mp.InProportion().plan(demonstration._plans())
    rule = dict(zip(means, usual.tolist(), strict=True))
    truth = 0.0
    with mp.Study.open(demonstration.NAME, store=store) as study:
        for play, of_play in study.plans().query("status == 'told'").groupby("id"):
            assert isinstance(play, int)
            means_then = dict(means)
            means_then["Lille->coast"] += 120.0 * (play > 200)
            driven = dict(zip(of_play["arm"], of_play["units"], strict=True))
            truth += sum((rule[arm] - driven.get(arm, 0)) * means_then[arm] for arm in rule)
        saved = study.savings()  # against the rule that is named
        wide = study.savings(level=0.999)  # one year is tested: 0.95 would fail in one of twenty
        assert wide.low < truth < wide.high
        assert f"Its plans {saved.sentence}" in notes[demonstration.NAME]
        assert f"it was {truth:,.0f} EUR" in notes[demonstration.NAME]
        ((arm, since, acted),) = study.drift()[["arm", "since", "acted"]].to_numpy().tolist()
        assert (arm, acted) == ("Lille->coast", True)
        assert 190 <= since <= 210
        belief = study.arms(level=0.99).set_index("arm").loc[arm]
        assert belief["low"] < means[arm] + 120.0 < belief["high"]
        assert study.why(study.pending()[0]).explores is False
    with browsing(f"sqlite:///{store}", notes=notes) as place:
        for path in ("/", "/studies/trucks"):  # the first screens
            assert notes["trucks"] in re.sub(r"<[^>]+>", "", place.get(path).text)
        assert "Saved against a split in proportion" in place.get("/studies/trucks").text
