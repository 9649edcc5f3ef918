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
from multiplay.service.studies import demonstration
from multiplay.storage import store_at

STYLE = (Path(__file__).parents[3] / "docs/style.md").read_text()
TEXTS = re.compile(r'(?:aria-label|title|placeholder|data-latest)="([^"]*)"')
LINKS = re.compile(r'href="(/(?:(?:studies|new|help)[^"#]*)?)(?:#[^"]*)?"')
FILES = re.compile(r"/(export|events|parts|saved)\b")


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


def shown(page: str) -> str:
    """Return all text of a page that a reader sees or hears, without code."""
    page = re.sub(r"<(script|style|code)\b.*?</\1>", " ", page, flags=re.DOTALL)
    attributes = " . ".join(TEXTS.findall(page))
    return html.unescape(re.sub(r"<[^>]*>", " ", page) + " . " + attributes)


def test_the_pages_of_a_planner_have_no_words_of_the_program(place: Place) -> None:
    words, seen, waiting = not_for_planners(), set[str](), ["/", "/new"]
    assert len(words) >= 10
    found = set[tuple[str, str]]()
    while waiting:
        path = waiting.pop()
        seen.add(path)
        answer = place.get(path)
        assert answer.status_code == 200, path
        text = " ".join(shown(answer.text).split())
        for word in words:
            for match in re.finditer(rf"\b{word}\b", text, re.IGNORECASE):
                around = text[max(match.start() - 40, 0) : match.end() + 40]
                found.add((re.sub(r"\d+", "#", path), around))
        links = {html.unescape(link) for link in LINKS.findall(answer.text)} - seen - {*waiting}
        waiting += sorted(link for link in links if not FILES.search(link))[:12]
    assert {f"/studies/trucks{tab}" for tab in ("", "/lanes", "/promises", "/history")} <= seen
    assert not found, "\n".join(f"{path}: {text}" for path, text in sorted(found))
