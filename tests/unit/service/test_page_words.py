"""The words of the pages: those of a planner, not those of the literature or of the program."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from featured import ask_and_tell as ask_with_features
from featured import featured_study
from page_client import Place, browsing
from trucks import ask_and_tell

import multiplay as mp
from multiplay._support.hints import WORDS
from multiplay.service.studies import demonstration
from multiplay.storage import store_at

STYLE = (Path(__file__).parents[3] / "docs/style.md").read_text()
TEXTS = re.compile(r'(?:aria-label|title|placeholder|data-latest)="([^"]*)"')
LINKS = re.compile(r'href="(/(?:(?:studies|new|help)[^"#]*)?)(?:#[^"]*)?"')
FILES = re.compile(r"/(export|events|parts|saved)\b")
PARTS = ("driven", "saved", "saved?part=page", "saved?part=report", "saved?part=learning")


def not_for_planners() -> list[str]:
    """Return the words that the style guide bans from pages."""
    (listed,) = re.findall(r"Pages never say ([^.]*)\.", STYLE)
    return re.findall(r"“([^”]*)”", " ".join(listed.split()))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A demonstration with all that pages can show: constraints, imports, own plans, changes."""
    store = f"sqlite:///{tmp_path_factory.mktemp('words') / 'plans.db'}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demonstration, "DAYS", 60)
        patch.setattr(demonstration, "ROAD_WORKS", (25, 7, 120.0))
        demonstration.prepare(store)
    study = mp.Study.open(demonstration.NAME, store=store)
    names = study.actions.names
    bills = {"arm": [names[0], names[1]], "round": ["2025-01-02"] * 2, "loss": [150.0, 90.0]}
    study.learn_table(bills, source="january.csv")
    rule = mp.InProportion()
    plan = rule.plan(study.actions)
    own = {name: int(units) for name, units in zip(names, plan, strict=True)}
    study.learn(own, {name: [140.0] * units for name, units in own.items()}, key="2025-01-03")
    for limit in (
        mp.AtMost(900, {"*": 1}, plays=30, name="CO2"),
        mp.AtLeast(900, {"*": 0, names[2]: 1}, plays=30, name="contract", hard=False),
        mp.SwitchingCost(5),
        mp.Baseline(rule, 0.03),
    ):
        study.add_constraint(limit)
    for day in range(3):
        play = study.ask(key=f"2099-01-0{day + 1}")
        report = {name: [200.0] * units for name, units in play.plan.items()}
        study.tell(play, report, final=day != 1)
    study.correct(play, report)
    study.retract(play)
    study.cancel(play)
    study.ask(key="2099-02-01")
    study.forget(names[0], before=3)
    study.unforget(names[0])
    wide = demonstration._plans()
    clipping = mp.Study.create(
        "clipping", wide, loss_range=(0, 100), reports=mp.Reports("clip"), store=store_at(store)
    )
    play = clipping.ask()
    clipping.tell(play, {name: [130.0] * units for name, units in play.plan.items()})
    featured = featured_study(store_at(store), "featured", words=mp.Words("EUR", "truck", "lane"))
    with featured.together():
        ask_with_features(featured, 12)
    featured.ask(features={"fuel": 1.5, "weekday": "Mon", "rain": True})
    with browsing(store) as found:
        nameless = found.study("nameless", words=mp.Words("EUR", "truck", "lane", "day"))
        with nameless.together():
            ask_and_tell(nameless, 15)
        nameless.set_versus(mp.PriceList(dict.fromkeys(nameless.actions.names, 60.0)))
        nameless.ask()
        nameless.ask()
        found.study("imported").learn_table(bills | {"arm": ["Lyon->north"] * 2})
        yield found


WRONG: tuple[tuple[str, dict[str, str]], ...] = (  # forms that are refused
    ("/new", {}),
    ("/new", {"name": "x", "kind": "transport", "supply": "Lyon 1", "demand": "north 5"}),
    ("/new", {"name": "x", "kind": "knapsack", "items": "tent", "capacity": "-1", "high": "-3"}),
    (
        "/new",
        {"name": "x", "kind": "transport", "supply": "Lyon 1", "demand": "north 1"}
        | {"policy": "GenLBINFV"},
    ),
    ("/new/table", {"content": "a;b\n1"}),
    ("/studies/trucks/ask", {"key": "x", "supply": "Lyon -1", "demand": "north 2"}),
    ("/studies/trucks/ask", {"key": "y", "rule0": "nowhere", "rule-kind0": "exclude"}),
    ("/studies/nameless/ask", {"key": "z", "supply": "Lyon 1\nLille 1", "demand": "north 9"}),
    ("/studies/nameless/plays/16/tell", {"arm0": "9999"}),
    ("/studies/nameless/plays/16/tell", {"arm0": "x"}),
    ("/studies/nameless/plays/1/tell", {"arm0": "1"}),
    ("/studies/nameless/plays/1/correct", {"arm0": "-7"}),
    ("/studies/nameless/plays/16/correct", {"arm0": "7"}),
    ("/studies/nameless/plays/1/cancel", {}),
    ("/studies/nameless/plays/999/cancel", {}),
    ("/studies/nameless/own-plan", {"day": "d", "plan": "Lyon->north 9"}),
    ("/studies/nameless/expect", {"unit0": "9"}),
    ("/studies/nameless/forget", {"arm": "nowhere", "round": "3"}),
    ("/studies/nameless/forget", {"round": "99999"}),
    ("/studies/nameless/add-constraint", {"type": "AtMost", "promise-name": "c"}),
    ("/studies/trucks/add-constraint", {"type": "SwitchingCost", "switching-cost": "-1"}),
    ("/studies/trucks/add-constraint", {"type": "Baseline", "baseline-allowance": "900"}),
    ("/studies/trucks/end-constraint", {"name": "none"}),
    ("/studies/nameless/versus", {"rule": "prices", "rows": "nowhere 3"}),
    ("/studies/nameless/versus", {"rule": "fixed", "rows": "Lyon->north 1.5"}),
    ("/studies/nameless/range", {"low": "5", "high": "2"}),
    ("/studies/nameless/range", {"low": "0", "high": "20"}),
    ("/studies/nameless/words", {"currency": "x" * 90, "unit": "", "arm": "", "round": ""}),
    ("/studies/nameless/rename", {"new": "trucks"}),
    ("/studies/nameless/import", {"content": "a;b\n1;2"}),
    ("/studies/nameless/import", {"content": "lane;day;cost\nLyon->north;2026-01-01;x"}),
    ("/studies/nameless/undo-import", {"name": "none"}),
    ("/studies/nameless/expire", {"days": "-3"}),
)


def test_errors_of_forms_have_no_words_of_the_program(place: Place) -> None:
    found = set[tuple[str, str]]()
    for path, typed in WRONG:
        answer = place.post(path, **typed)
        assert answer.status_code in (200, 303, 404, 409, 422), (path, answer.status_code)
        found |= {(path, around) for around in forbidden(answer.text)}
    assert not found, "\n".join(f"{path}: {text}" for path, text in sorted(found))


def test_hints_on_pages_have_no_words_of_the_program() -> None:
    found = {key: forbidden(wording.page) for key, wording in WORDS.items()}
    assert {key: words for key, words in found.items() if words} == {}


def forbidden(page: str) -> list[str]:
    """Return the words of a page that are not for planners, with what is around them."""
    text = " ".join(shown(page).split())
    return [
        text[max(match.start() - 40, 0) : match.end() + 40]
        for word in not_for_planners()
        for match in re.finditer(rf"\b{word}\b", text, re.IGNORECASE)
    ]


def shown(page: str) -> str:
    """Return all text of a page that a reader sees or hears, without code."""
    page = re.sub(r"<(script|style|code)\b.*?</\1>", " ", page, flags=re.DOTALL)
    attributes = " . ".join(TEXTS.findall(page))
    return html.unescape(re.sub(r"<[^>]*>", " ", page) + " . " + attributes)


def test_the_pages_of_a_planner_have_no_words_of_the_program(place: Place) -> None:
    loaded = [f"/studies/{name}/{part}" for name in ("trucks", "nameless") for part in PARTS]
    seen, waiting = set[str](), ["/", "/new", *loaded]
    assert len(not_for_planners()) >= 10
    found = set[tuple[str, str]]()
    while waiting:
        path = waiting.pop()
        seen.add(path)
        answer = place.get(path)
        assert answer.status_code == 200, path
        found |= {(re.sub(r"\d+", "#", path), around) for around in forbidden(answer.text)}
        links = {html.unescape(link) for link in LINKS.findall(answer.text)} - seen - {*waiting}
        waiting += sorted(link for link in links if not FILES.search(link))[:12]
    assert {f"/studies/trucks{tab}" for tab in ("", "/lanes", "/promises", "/history")} <= seen
    assert not found, "\n".join(f"{path}: {text}" for path, text in sorted(found))
