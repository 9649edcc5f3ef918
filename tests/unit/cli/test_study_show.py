"""multiplay study show: what is on the screen and on the page is what the study says."""

import gc
import json
import re
import tracemalloc
from collections import Counter
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from browser import measured
from refusal import refused
from rich.cells import cell_len
from scipy.stats import ttest_ind
from typer.testing import CliRunner

from multiplay import Budget, Coverage, GenCTS, LinTS, Reports, ScaledScribble, Study, Transport
from multiplay._support.formatting import (
    LONGEST,
    TIMES,
    abbreviated,
    legible,
    minute,
    percent,
)
from multiplay._support.words import Words, money_text
from multiplay.cli import app
from multiplay.cli.study import drawing
from multiplay.cli.study import show as command
from multiplay.cli.study.drawing import interval_bar
from multiplay.learner.facts import rows_of
from multiplay.learner.play_log import STATUS, plays_table
from multiplay.learner.plays import TOLD
from multiplay.reports import study as reading
from multiplay.reports import study_text
from multiplay.reports.study import BestPlan, study_facts
from multiplay.reports.study_curve import MOST, Curve
from multiplay.reports.study_page import study_report

STORE = "memory://shown"
NAMES = ["<script>alert(1)</script>", "a&b", "x" * 200, "esc\x1b[31m\n[b]bold[/b]", "$a$ 東京"]
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
ROUNDS, PENDING = 60, 2
NOW = FIRST + timedelta(days=ROUNDS)
FORCES_COLOUR = ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "GITHUB_ACTIONS", "PY_COLORS")
PLAIN = {**dict.fromkeys(FORCES_COLOUR), "COLUMNS": "80", "MULTIPLAY_STORE": None}


@pytest.fixture(scope="module")
def study() -> Study:
    """Two months: some plays are cancelled, some units are missing, one is clipped, costs fall."""
    plans = Budget(6, [3] * 5, names=NAMES)
    words = Words("EUR", "truck", "lane", "week")
    terms: Any = {"loss_range": (0, 250), "reports": Reports(outside="clip"), "store": STORE}
    made = Study.create("two months", plans, GenCTS(), **terms, words=words)
    rng, means = np.random.default_rng(3), dict(zip(NAMES, (40, 90, 120, 160, 200), strict=True))
    for day in range(ROUNDS):
        at = FIRST + timedelta(days=day)
        play = made.ask(key=f"{at:%Y-%m-%d}", at=at)
        costs: dict[str, list[float | None]] = {
            arm: list(rng.normal(means[arm] + (40 if day < 20 else 0), 15, units).clip(0, 250))
            for arm, units in play.plan.items()
        }
        if day % 10 == 4:
            made.cancel(play.id)
        elif day < ROUNDS - PENDING:
            played = next(arm for arm, units in play.plan.items() if units)
            if day % 10 == 7:
                costs[played][0] = None
            elif day == 0:
                costs[played][0] = 300.0
            made.tell(play.id, costs, at=at + timedelta(hours=20))
    return made


@pytest.fixture(scope="module")
def seen(study: Study) -> reading.StudyFacts:
    return study_facts(study, now=NOW)


@pytest.fixture(scope="module")
def screen(study: Study) -> str:
    return shown(study)


def shown(study: Study, *options: str, **environment: str) -> str:
    arguments = ["study", "show", study.name, "--store", study.store.url, *options]
    said = CliRunner().invoke(app, arguments, env={**PLAIN, **environment}, catch_exceptions=False)
    assert said.exit_code == 0
    return said.output


def part(screen: str, title: str) -> list[str]:
    """Return the lines below a title."""
    return screen[screen.index(f"{title}\n") :].split("\n\n")[0].splitlines()[1:]


# ---------------------------------------------------------------- the screen


def test_every_arm_is_shown_with_what_the_study_knows_of_it(study: Study, screen: str) -> None:
    head, *rows = part(screen, "Lanes: cost of a truck, EUR")
    arms = study.arms().sort_values(["share", "seen"], ascending=False, kind="stable")
    values = arms[["low", "mean", "high"]].to_numpy(dtype=float)
    ends = float(values.min()), float(values.max())
    scale = re.search(f"{money_text(ends[0])} +{money_text(ends[1])}", head)
    assert scale
    for row, arm in zip(rows, rows_of(arms), strict=True):
        drawn = interval_bar(arm.low, arm.mean, arm.high, ends, len(scale[0]))
        cells = [str(arm.seen), money_text(arm.mean), Words.ends(arm.low, arm.high)]
        assert re.search(rf"{' +'.join(cells)}  {drawn} +{100 * arm.share:.0f} %$", row)


def test_the_head_counts_what_the_plays_say(study: Study, screen: str) -> None:
    status = Counter(study.plays()["status"])
    assert status == {"told": 52, "pending": PENDING, "cancelled": 6}
    assert "two months in memory://shown\n5 lanes, losses from 0 to 250 EUR\n" in screen
    assert "if every average stays\nthe same (GenCTS)\n" in screen
    counts = "60 plans asked: 52 told, 2 pending, 6 cancelled; 1 number clipped to the range\n"
    assert counts in screen
    assert study.clipped == 1


def test_costs_of_rounds_are_those_of_the_plays(study: Study, screen: str) -> None:
    plays = study.plays()
    told = plays[plays["status"] == "told"]
    costs = (told["realised"] * told["units"] / told["seen"]).to_numpy()
    first, last, trend, best, plan = part(screen, "Cost per week, EUR")[7:12]
    for line, rows in ((first, slice(0, 13)), (last, slice(-13, None))):
        expected = told["expected"].to_numpy()[rows].mean()
        said = f"cost {money_text(costs[rows].mean())} EUR each; "
        said += f"expected: {money_text(expected)} EUR"
        assert line.split(maxsplit=3)[1:] == ["13", "weeks", said]
    falls = ttest_ind(costs[:13], costs[-13:], equal_var=False).confidence_interval()
    found = re.search(r"trend +falling: (\S+) EUR less \(95 % interval: (\S+) to (\S+)\)", trend)
    assert found
    assert found[1] == money_text(costs[:13].mean() - costs[-13:].mean())
    assert [float(end) for end in found.groups()[1:]] == pytest.approx(falls, rel=0.02)
    total, low, high = study.best().expected
    ends = f"(95 % interval: {Words.ends(low, high)}):"
    assert f"should cost {money_text(total)} EUR {ends}" in best
    played = [arm for arm, units in study.best().plan.items() if units]
    assert f"3{TIMES}{abbreviated(played, LONGEST)[0]}, 3" in plan
    incomplete = int((told["seen"] < told["units"]).sum())
    assert f"Some trucks did not report in {incomplete} weeks" in screen


def test_plays_that_wait_are_shown_oldest_first_with_their_age(
    study: Study, seen: reading.StudyFacts
) -> None:
    table = seen.pending_table(10)
    pending = study.pending()
    assert [row[0] for row in table.rows] == [str(play.id) for play in pending] == ["59", "60"]
    assert [row[1] for row in table.rows] == [play.key for play in pending]
    assert [row[2] for row in table.rows] == ["2 d ago", "24 h ago"]
    assert seen.pending_table(1).note == "And 1 more, asked later."
    (early,) = study_facts(study, now=FIRST).pending_table(1).rows
    assert early[2] == "in 58 d", "a clock that is behind"


def test_the_last_plays_are_shown_as_many_as_asked_for(study: Study) -> None:
    rows = part(shown(study, "--last", "3"), "Last plans")[1:-1]
    for row, play in zip(rows, rows_of(study.plays().tail(3)), strict=True):
        assert row.split()[:3] == [str(play.id), play.key, play.status]
        assert row.split()[-2:] == [money_text(play.expected), money_text(play.realised)]
    assert "Last plans" not in shown(study, "--last", "0")


def test_the_screen_is_80_letters_wide_and_plain(screen: str) -> None:
    assert max(map(cell_len, screen.splitlines())) <= 80
    assert "\x1b" not in screen
    assert "esc�[31m�" in screen, "an arm cannot colour the screen"
    assert "[b]" in screen, "nor be taken for markup"


def test_what_to_do_next_is_a_command_with_the_store_if_need_be(study: Study) -> None:
    tell = "    multiplay study tell 'two months' 59 costs.csv"
    assert f"{tell} --store {STORE}\n" in shown(study)
    assert f"{tell}\n" in shown(study, MULTIPLAY_STORE=STORE)


def test_programs_get_the_same_facts(study: Study) -> None:
    told = json.loads(shown(study, "--json", "--level", "0.9", "--last", "2"))
    arms = study.arms(0.9)
    assert [arm["arm"] for arm in told["arms"]] == NAMES
    for column in ("seen", "mean", "low", "high", "share"):
        assert [arm[column] for arm in told["arms"]] == arms[column].tolist()
    counts = {name: told[name] for name in ("asked", "told", "pending", "cancelled", "clipped")}
    assert counts == {"asked": 60, "told": 52, "pending": 2, "cancelled": 6, "clipped": 1}
    assert told["best"]["plan"] == study.best().plan
    assert told["best"]["expected"]["low"] == study.expect(study.best().action, level=0.9).low
    assert [play["id"] for play in told["last_plays"]] == [59, 60]
    assert told["last_plays"][0]["realised"] is None
    plays = study.plays()
    whole = plays[plays["seen"] == plays["units"]]
    stretches = {one["first"]: one["realised"] for one in told["rounds"]["stretches"]}
    assert [stretches[id] for id in whole["id"]] == pytest.approx(whole["realised"].tolist())
    assert told["plays_pending"][0]["plan"] == study.pending()[0].plan


# ---------------------------------------------------------------- one pass, in little memory


def test_a_history_in_parts_gives_the_same(study: Study, seen: reading.StudyFacts) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "CHUNK", 7)
        other = study_facts(study, now=NOW)
    pd.testing.assert_frame_equal(other.last, seen.last)
    assert study_text.outcomes(other) == study_text.outcomes(seen)
    assert repr(other.curve.stretches()) == repr(seen.curve.stretches()), "NaN is NaN"
    assert (other.units, other.incomplete, other.pending) == (seen.units, 6, seen.pending)


def test_a_curve_of_many_rounds_has_few_points_and_loses_nothing() -> None:
    rng, curve = np.random.default_rng(5), Curve()
    costs = 1e6 + rng.normal(size=2345)
    costs[rng.random(len(costs)) < 0.2] = np.nan
    guess = np.where(rng.random(len(costs)) < 0.5, costs + 1, np.nan)
    for some in np.array_split(np.arange(len(costs)), 40):
        curve.add(costs[some], guess[some])
    assert len(curve.stretches()) <= MOST
    assert curve.known == np.isfinite(costs).sum()
    for most in (MOST, 48, 1):
        stretches = curve.stretches(most)
        assert len(stretches) <= most
        assert stretches[-1].last == len(costs)
        for first, last, average in stretches:
            part = costs[first - 1 : last]
            part, expected = part[~np.isnan(part)], guess[first - 1 : last]
            assert average.rounds == len(part)
            assert average.realised == pytest.approx(part.mean(), rel=1e-12)
            assert average.variance == pytest.approx(part.var(ddof=1), rel=1e-6)
            assert average.expected == pytest.approx(np.nanmean(expected), rel=1e-12)
    change = curve.change()
    assert change is not None
    assert not change.is_clear, "there is none"


def test_memory_does_not_grow_with_the_history() -> None:
    told = np.tile([0.0, 0.0, 3.0, 3.0, 5.0, 5.5, 0.0, STATUS.index(TOLD)], (1000, 1))
    history = reading._History(10)
    used = []
    tracemalloc.start()
    for parts in (5, 20):
        for _ in range(parts):
            history.add(plays_table([*range(1000)], [None] * 1000, told))
        gc.collect()
        used.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert history.number[TOLD] == history.curve.known == 25_000
    # of 20 more tables not even half of one stays; pandas 2 keeps 16 kB of its own
    assert used[1] - used[0] < told.nbytes / 2


# ---------------------------------------------------------------- studies of all kinds


def test_a_new_study() -> None:
    new = Study.create("new", Transport([1, 1], [2]), GenCTS(), store=STORE)
    screen = shown(new)
    assert "2 lanes, losses from 0 to 1\n" in screen
    assert "\n0 plans asked\n" in screen
    assert "none was reported yet" in screen
    assert screen.count("●") == 2, "an arm never seen has a mean, and an interval"
    assert "Ask for the first plan:\n    multiplay study ask new" in screen
    assert study_report(study_facts(new)).count("<svg") == 1

    play = new.ask()
    assert "1 plan is pending. Tell the costs of the oldest" in shown(new)
    new.cancel(play.id)
    assert "1 plan asked: 0 told, 0 pending, 1 cancelled" in shown(new)
    assert "none was reported yet" in shown(new)
    assert study_report(study_facts(new)).count("<svg") == 1, "nothing to draw of rounds"

    new.tell(new.ask().id, [[1.0], [0.5]])
    screen = shown(new)
    assert "1 day      cost 1.5 on average; expected: 1\n" in screen
    assert "known after about 20 days" in screen
    assert study_report(study_facts(new)).count("<svg") == 2


def test_three_hundred_arms_and_rewards() -> None:
    names = [f"customer {k} of a very long list" for k in range(300)]
    many = Study.create(
        "many",
        Budget(5, [1] * 300, names=names, sense="max"),
        GenCTS(),
        loss_range=(-5, 20),
        store=STORE,
    )
    play = many.ask()
    chosen = [arm for arm, units in play.plan.items() if units]
    many.tell(play.id, {arm: [7.0] for arm in chosen})
    screen = shown(many)
    _, *rows, more = part(screen, "Items: reward of a unit")
    assert more == "And 280 more items, in fewer plans."
    assert [row.split(" of")[0] for row in rows[:5]] == [arm.split(" of")[0] for arm in chosen]
    assert len({row[:20] for row in rows}) == 20, "names that are cut are still told apart"
    assert "Reward per day" in screen
    assert "1 day      brought 35 on average" in screen
    assert "best plan  should bring" in screen
    text = study_report(study_facts(many))
    assert "The 20 of 300 items that are in most plans." in text
    assert all(name in text for name in names)


def test_who_knows_totals_only_says_so() -> None:
    totals = Study.create("totals", Transport([1, 2], [1, 2]), LinTS(), store=STORE)
    for _ in range(3):
        totals.tell(totals.ask().id, 1.25)
    screen = shown(totals)
    assert "3 days     cost 1.25 on average\n" in screen
    assert "Only totals of days were reported, no costs of single lanes." in screen
    assert "The policy gives no expected totals." in screen
    assert "No change" not in screen

    blind = Study.create("blind", Transport([1, 2], [1, 2]), ScaledScribble(horizon=9), store=STORE)
    blind.tell(blind.ask().id, 1.25)
    screen = " ".join(shown(blind).split())
    assert "4 lanes, losses from 0 to 1" in screen
    assert "by the totals of days (ScaledScribble(horizon=9))" in screen
    assert "best plan not known by ScaledScribble(" in screen
    assert "Tell the losses of each arm, or continue with multiplay study ask." in screen
    assert "◂" not in screen
    assert "refused" in json.loads(shown(blind, "--json"))["best"]
    assert study_report(study_facts(blind)).count("<svg") == 2


def test_rewards_that_are_no_sums_are_not_drawn() -> None:
    cover = Study.create("cover", Coverage(4, [3, 1, 2]), GenCTS(), store=STORE)
    play = cover.ask()
    cover.tell(play.id, {arm: [1.0] * units for arm, units in play.plan.items()})
    assert np.isnan(cover.plays()["realised"]).all()
    screen = shown(cover)
    assert "the reward of a day is not known: it is not the sum" in screen
    assert f"should bring {money_text(cover.best().expected.total)} " in screen
    assert study_report(study_facts(cover)).count("<svg") == 1


def test_alarms_are_shown() -> None:
    changed = Study.create("changed", Budget(2, [2, 2]), GenCTS(), loss_range=(0, 10), store=STORE)
    for day in range(160):
        play = changed.ask()
        cost = 1.0 if day < 80 else 9.0
        changed.tell(play.id, {arm: [cost] * units for arm, units in play.plan.items()})
    screen, alarms = shown(changed), changed.drift()
    assert len(alarms) > 0
    _, *rows = part(screen, "Changes of items")
    for row, alarm in zip(rows, rows_of(alarms), strict=True):
        numbers = [
            str(alarm.since),
            *map(money_text, (alarm.before, alarm.after)),
            str(alarm.units),
        ]
        assert row.split()[-6:] == [*numbers, f"{alarm.sure:.1%}", "yes" if alarm.acted else "no"]
    assert "No change" not in screen
    assert "PooledCTS(memory=Changes())" in screen
    assert f'<td class="">{alarms["since"][0]}</td>' in study_report(study_facts(changed))


# ---------------------------------------------------------------- the page


class Reader(HTMLParser):
    """Collects what a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self.lasttag in ("td", "th") and data.strip():
            self.rows[-1][-1] += data


def test_the_page_says_what_the_study_says(study: Study, seen: reading.StudyFacts) -> None:
    read = Reader(study_report(seen))
    for arm in rows_of(study.arms()):
        cells = [money_text(arm.mean), Words.ends(arm.low, arm.high)]
        row = [legible(arm.arm), str(arm.seen), *cells, minute(arm.last_seen)]
        assert [*row, percent(arm.share)] in read.rows
    for play in rows_of(study.plays().tail(10)):
        row = [str(play.id), play.key, play.status, minute(play.asked)]
        row += [minute(play.told), f"{play.seen} of {play.units}"]
        assert [*row, money_text(play.expected), money_text(play.realised)] in read.rows
    text = "".join(read.words)
    assert isinstance(seen.best, BestPlan)
    assert f"should cost {money_text(seen.best.expected.total)} EUR " in text
    assert all(
        said in text for said in [*study_text.head(seen), *study_text.outcomes(seen).values()]
    )
    assert read.tags.count("svg") == 2


def test_the_page_runs_and_fetches_nothing(seen: reading.StudyFacts) -> None:
    read = Reader(study_report(seen, "postgresql://<host>"))
    assert not {"script", "link", "img", "iframe"} & set(read.tags)
    assert not any(name.startswith("on") or name == "src" for name, _ in read.attributes)
    assert all((to or "").startswith("#") for name, to in read.attributes if name == "href")
    ids = [value for name, value in read.attributes if name == "id"]
    assert len(set(ids)) == len(ids)
    assert "--store 'postgresql://<host>'" in "".join(read.words)


def test_a_phone_shows_the_page_in_the_dark(seen: reading.StudyFacts, tmp_path: Path) -> None:
    found = measured(study_report(seen), tmp_path, "--blink-settings=preferredColorScheme=0")
    assert found["scroll"] <= found["inner"] == 360
    assert len(found["figures"]) == 2
    assert all(300 < width <= 360 for width in found["figures"])
    assert found["text_height"] > 6.5
    assert found["label"] == found["ink"]
    assert found["fetched"] == 0
    assert {"<script>ale…(1)</script>", "a&b", "$a$ 東京"} <= set(found["names"])


def test_the_page_is_written_whole_or_not_at_all(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lanes.html"
    assert shown(study, "--html", str(file)) == f"{file}\n"
    text = file.read_text(encoding="utf-8")
    assert text.endswith("</html>\n")
    assert json.loads(shown(study, "--html", str(file), "--json"))["asked"] == ROUNDS

    def broken(*_: Any) -> str:
        raise RuntimeError("no room")

    monkeypatch.setattr(command, "study_report", broken)
    with pytest.raises(RuntimeError, match="no room"):
        shown(study, "--html", str(file))
    assert [*tmp_path.iterdir()] == [file]
    with refused("html"):
        shown(study, "--html", str(tmp_path / "lanes.txt"))
    with refused("level"):
        shown(study, "--level", "1.5")


def test_other_encodings_get_letters_that_they_have() -> None:
    whole = "".join(map(chr, drawing.ASCII))
    assert len(drawing.writable(whole, "ascii")) == len(whole)
    assert "?" not in drawing.writable(whole.replace("�", ""), "ascii")
