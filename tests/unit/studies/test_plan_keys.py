"""Keys of plans: one request for each key, dates in any spelling, and plans made again."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from asgi import client_of
from constraint_reports import promise_reports
from owners import Owners
from page_client import browsing
from refusal import refused
from trucks import costs, euros, new_study, plans, verified

import multiplay as mp
from multiplay._support.dates import day_name, day_names
from multiplay.cli.study.app import time_of
from multiplay.errors import Conflict
from multiplay.service.app import create_app
from multiplay.service.settings import Settings
from multiplay.storage import Labels, MemoryStore, store_at
from multiplay.studies import entry_codec, replica, synced
from multiplay.studies.commands.notes import NOTE
from multiplay.studies.entry_codec import Request

DAY, GERMAN, LANE = "2026-11-18", "18.11.2026", "Lyon->south"
EIGHT = datetime(2026, 11, 18, 8, 2, tzinfo=UTC)


@pytest.fixture
def study(owners: Owners) -> Any:
    """A learner, and studies in each store and of a service, with the same verbs."""
    return owners.new(plans(), mp.GenCTS(), loss_range=(0, 250))


def statuses(study: Any) -> list[tuple[int, str, str]]:
    rows = study.plays()[["id", "key", "status"]]
    return [*rows.itertuples(index=False, name=None)]


def entries(study: Any) -> int:
    """Return the number of entries."""
    return study.journal.head().number if isinstance(study, mp.Learner) else study.head.number


def test_a_key_names_one_request(study: Any) -> None:
    play = study.ask(key=DAY, exclude=[LANE], at_most={"Lille->north": 3}, at=EIGHT)
    before = entries(study)
    again = study.ask(key=DAY, at_most={"Lille->north": 3}, exclude=(LANE, LANE), time_limit=9)
    assert (again.id, again.plan, again.repeated, play.repeated) == (1, play.plan, True, False)
    if isinstance(study, mp.RemoteStudy):
        before += 1  # the result of the repeated request
    for other in (
        {},
        {"exclude": [LANE]},
        {"fixed": {LANE: 1}},
        {"actions": plans((1, 3), (3, 1))},
    ):
        with refused("key"):
            study.ask(key=DAY, **other)
    with pytest.raises(Conflict) as caught:
        study.ask(key=DAY)
    error = caught.value
    planned = f"the request of '{DAY}', planned on 2026-11-18 at 08:02 UTC"
    assert error.expected == f"{planned}: without {LANE}, at most 3 of Lille->north"
    assert error.got == "no limits"
    assert "replace=True" in error.hint
    assert entries(study) == before
    study.tell(play, euros(play))
    assert study.ask(key=DAY, exclude=[LANE], at_most={"Lille->north": 3}).id == play.id
    with pytest.raises(Conflict, match=r"Use a different key for a different request\.$"):
        study.ask(key=DAY)


def test_a_plan_is_made_again_in_one_entry(study: Any) -> None:
    first = study.ask(key=DAY)
    part = {max(first.plan, key=first.plan.__getitem__): [100.0]}
    study.tell(first, part, final=False)
    before = entries(study)
    second = study.ask(key=DAY, exclude=[LANE], replace=True)
    assert second.plan[LANE] == 0
    assert not second.repeated
    if not isinstance(study, mp.Learner):
        assert entries(study) == before + 1
    assert statuses(study) == [(1, DAY, "cancelled"), (2, DAY, "pending")]
    assert [play.id for play in study.pending()] == [2]
    assert study.ask(key=DAY, exclude=[LANE]).id == 2
    with refused("play"):
        study.tell(first, euros(first))
    with refused("play"):
        study.cancel(first)
    with refused("play"):
        study.correct(first, euros(first))
    for _ in range(20):  # more than one query finds
        last = study.ask(key=DAY, replace=True)
    assert study.tell(DAY, euros(last)).id == last.id == 22
    assert [status for *_, status in statuses(study)] == ["cancelled"] * 21 + ["told"]
    with pytest.raises(Conflict) as caught:
        study.ask(key=DAY, replace=True)
    assert (caught.value.argument, caught.value.got) == ("key", f"'{DAY}', whose plan was told")
    assert study.arms()["seen"].sum() == 5
    if isinstance(study, mp.Study):
        assert study.verify() == verified(study)
        assert study.verify().ok


def test_the_key_of_a_cancelled_plan_is_free(study: Any) -> None:
    first = study.ask(key=DAY, exclude=[LANE])
    study.cancel(DAY)
    second = study.ask(key=DAY)
    assert (second.id, second.key, second.repeated) == (2, DAY, False)
    assert statuses(study) == [(1, DAY, "cancelled"), (2, DAY, "pending")]
    assert study.tell(DAY, euros(second)).id == 2
    assert first.id == 1


def test_a_key_and_replace_are_checked(study: Any) -> None:
    with refused("replace"):
        study.ask(replace=True)
    with refused("replace"):
        study.ask(key=DAY, replace="yes")
    assert study.ask(key=DAY, replace=True).id == 1


def test_what_cannot_be_planned_again_stays_pending(study: Any) -> None:
    play = study.ask(key=DAY)
    with pytest.raises(mp.InvalidInput):
        study.ask(key=DAY, fixed={LANE: 99}, replace=True)
    assert statuses(study) == [(1, DAY, "pending")]
    assert study.ask(key=DAY).plan == play.plan


def test_a_learner_whose_policy_fails_keeps_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = mp.Learner(plans(), mp.GenCTS(), constraints=[mp.AtMost(99, {"*": 1}, plays=9)])
    play = learner.ask(key=DAY)
    (used,) = [one.used for one in promise_reports(learner)]
    with monkeypatch.context() as patch:
        patch.setattr(type(learner.engine), "ask", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            learner.ask(key=DAY, replace=True)
    assert [one.id for one in learner.pending()] == [play.id]
    assert [one.used for one in promise_reports(learner)] == [used]
    assert [entry.labels.kind for entry in learner.journal.entries(1)] == ["ask"]


def test_a_saved_learner_knows_its_requests(tmp_path: Path) -> None:
    learner = mp.Learner(plans(), mp.GenCTS(), loss_range=(0, 250))
    learner.ask(key=DAY)
    last = learner.ask(key=DAY, exclude=[LANE], replace=True)
    learner.save(tmp_path / "learner.npz")
    loaded = mp.Learner.load(tmp_path / "learner.npz")
    assert loaded.ask(key=DAY, exclude=[LANE]).plan == last.plan
    with refused("key"):
        loaded.ask(key=DAY)
    with mp.Study.import_learner("lanes", tmp_path / "learner.npz", store=MemoryStore()) as study:
        assert statuses(study) == [(1, DAY, "cancelled"), (2, DAY, "pending")]
        assert study.ask(key=GERMAN, exclude=[LANE]).id == last.id
        assert study.verify().ok


def test_features_ahead_and_baselines_are_part_of_a_request() -> None:
    features = mp.Features(fuel=mp.Number(centre=1.0, scale=1.0))
    for one in (
        mp.Learner(plans(), features=features),
        mp.Study.create("lanes", plans(), features=features, store=MemoryStore()),
    ):
        play = one.ask(key=DAY, features={"fuel": 1.5})
        assert one.ask(key=DAY, features={"fuel": 1.5}).id == play.id
        with pytest.raises(Conflict, match=r"features.*1\.5.*got the features.*1\.75"):
            one.ask(key=DAY, features={"fuel": 1.75})
    promise = mp.AtMost(99, {"*": 1}, plays=9)
    for one in (
        mp.Learner(plans(), constraints=[promise]),
        mp.Study.create("lanes", plans(), constraints=[promise], store=MemoryStore()),
    ):
        play = one.ask(key=DAY, ahead=[plans((1, 3), (3, 1))])
        with pytest.raises(Conflict, match="1 sets ahead"):
            one.ask(key=DAY)
        one.end_constraint(promise_reports(one)[0].name)
        assert one.ask(key=DAY, ahead=[plans((1, 3), (3, 1))]).id == play.id
    base = {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}
    other = {LANE: 1, "Lyon->north": 1, "Lille->north": 3}
    given: dict[str, Any] = {"constraints": [mp.Baseline("each day", 0.5)], "loss_range": (0, 250)}
    for one in (
        mp.Learner(plans(), **given),
        mp.Study.create("lanes", plans(), store=MemoryStore(), **given),
    ):
        play = one.ask(key=DAY, baseline=base)
        assert one.ask(key=DAY, baseline=base).id == play.id
        with refused("key"):
            one.ask(key=DAY, baseline=other)


# ---------------------------------------------------------------- requests of clients


@pytest.mark.parametrize("often", [False, True])
def test_a_request_with_both_kinds_of_key_writes_one_entry(
    often: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its id is found again, also from a snapshot; for another request it is refused."""
    if often:
        monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 2)
    store = f"sqlite:///{tmp_path / 'plans.db'}"
    new_study(store_at(store)).disconnect()
    path, asked = "/v1/studies/lanes", {"key": DAY, "exclude": [LANE]}
    with client_of(create_app(Settings(store, open=True))) as client:

        def post(verb: str, key: str, body: dict[str, Any]) -> Any:
            return client.post(f"{path}/{verb}", json=body, headers={"Idempotency-Key": key})

        play = post("ask", "one", asked)
        assert (play.status_code, play.json()["repeated"]) == (200, False)
        told = post("plays/1/tell", "two", {"losses": euros_of(play.json()), "key": "bills"})
        for _ in range(3):
            post("ask", "three", {})
            assert post("ask", "one", asked).text == play.text
            again = post("plays/1/tell", "two", {"losses": euros_of(play.json()), "key": "bills"})
            assert again.text == told.text
        for body in (asked | {"key": "Thursday"}, {}, {"key": DAY}):
            refusal = post("ask", "one", body)
            assert (refusal.status_code, refusal.json()["argument"]) == (409, "Idempotency-Key")
        repeated = post("ask", "four", asked)
        assert repeated.json()["repeated"]
        assert post("ask", "four", asked).text == repeated.text
    with mp.Study.open("lanes", store=store) as study:
        kinds = [entry.labels.kind for entry in study.entries()]
        assert kinds == ["create", "ask", "tell", "ask", "request"]
        assert study.verify().ok


def test_a_request_is_answered_alike_after_many_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "MOST_REQUESTS", 2)
    with new_study(MemoryStore()) as study:
        asks = [lambda key=key: study.ask(key=key) for key in "abcd"]
        plays = [study.once("ask", Request(f"{k}", "x"), ask) for k, ask in enumerate(asks)]
        again = [study.once("ask", Request(f"{k}", "x"), ask) for k, ask in enumerate(asks)]
        assert [play.repeated for play in plays + again] == [False] * 8
        assert [play.id for play in again] == [1, 2, 3, 4]


def euros_of(play: dict[str, Any]) -> dict[str, list[float]]:
    return costs(play["id"], play["plan"])


# ---------------------------------------------------------------- dates


def test_a_day_is_found_in_every_spelling(study: Any) -> None:
    play = study.ask(key=GERMAN)
    assert play.key == DAY
    assert study.ask(key=DAY).id == study.ask(key="2026/11/18").id == play.id
    assert study.tell(GERMAN, euros(play), **keyed(study, GERMAN)).id == play.id
    assert study.tell(DAY, euros(play), **keyed(study, DAY)).repeated
    study.correct("18.11.2026", euros(play, more=1.0))
    study.retract(DAY)
    assert statuses(study) == [(1, DAY, "pending")]


def keyed(study: Any, key: str) -> dict[str, Any]:
    return {} if isinstance(study, mp.Learner) else {"key": key}


def test_external_plans_are_found_in_every_spelling() -> None:
    with new_study(MemoryStore()) as study:
        plan = {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}
        study.learn(plan, {lane: [9.0] * k for lane, k in plan.items()}, key=GERMAN)
        assert study.learn(plan, {lane: [9.0] * k for lane, k in plan.items()}, key=DAY).repeated
        assert study.plays(external=True)["key"].tolist() == [DAY]
        study.retract("18.11.2026")
        assert study.arms()["seen"].sum() == 0


def test_a_key_of_an_older_version_is_found() -> None:
    """It stored the spelling that was given."""
    store = MemoryStore()
    with new_study(store) as study:
        play = study.ask()
        asked = [*study.entries()][-1]
        journal = store.create("old", next(study.entries()).record, Labels(entry_codec.CREATE))
        journal.write(asked.record, asked.labels._replace(key=GERMAN))
    with mp.Study.open("old", store=store) as old:
        assert old.ask(key=DAY).plan == play.plan
        assert old.ask(key="18.11.2026").repeated
        new = old.ask(key=DAY, replace=True)
        assert old.plays()["status"].tolist() == ["cancelled", "pending"]
        assert old.ask(key=GERMAN).id == new.id
        assert old.verify().ok


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("18.11.2026", DAY),
        (" 18.11.2026 ", DAY),
        ("8.1.2026", "2026-01-08"),
        ("2026/1/8", "2026-01-08"),
        ("11/18/2026", DAY),
        ("18-11-2026", DAY),
        ("05/05/2026", "2026-05-05"),
        *((name, name) for name in ("03/04/2026", "31.2.2026", "1.2.26", "10000725", "Monday")),
        *((name, name) for name in ("18.11.2026, morning", "2026-11", "20261118", "", "٣")),
    ],
)
def test_what_is_a_date_names_its_day_and_the_rest_stays_a_name(text: str, day: str) -> None:
    assert day_name(text) == day
    assert day_name(day) == day
    assert day_names(text)[0] == day
    assert text in day_names(text)


def test_options_and_promises_read_dates_in_every_spelling() -> None:
    assert time_of("--at", GERMAN) == time_of("--at", DAY) == datetime(2026, 11, 18)
    assert time_of("--at", "18.11.2026 08:02") == datetime(2026, 11, 18, 8, 2)
    with refused("--at"):
        time_of("--at", "03/04/2026")
    one, other = (mp.AtMost(9, {"*": 1}, plays=9, until=day, name="CO2") for day in (GERMAN, DAY))
    assert one == other
    bad: Any
    for bad in ("03/04/2026", "18.11.2026 08:00", "Monday", 20261118):
        with refused("until"):
            mp.AtMost(9, {"*": 1}, plays=9, until=bad)


def test_a_promise_until_a_day_counts_the_plans_of_that_day() -> None:
    learner = mp.Learner(
        plans(), constraints=[mp.AtMost(99, {"*": 1}, plays=9, until="17.11.2026")]
    )
    learner.ask(key="17.11.2026", at=EIGHT)
    learner.ask(key="18.11.2026", at=EIGHT)
    (report,) = promise_reports(learner)
    assert report.used == 5


# ---------------------------------------------------------------- pages


def test_the_page_plans_a_day_again(tmp_path: Path) -> None:
    with browsing(f"sqlite:///{tmp_path / 'plans.db'}") as place:
        place.study(words=mp.Words(currency="EUR", unit="truck", arm="lane"))
        assert "Plan this day again" not in place.get("/studies/lanes").text
        asked = place.post("/studies/lanes/ask", key=GERMAN)
        assert asked.headers["location"] == "/studies/lanes?done=asked&play=1"
        again = place.post("/studies/lanes/ask", key=DAY)
        assert again.headers["location"] == "/studies/lanes?done=asked-before&play=1"
        text = place.get(again.headers["location"]).text
        assert "Plan 1 was made before for this date, by the same request." in text
        assert "Plan this day again" in text
        closed = {"key": DAY, "rule-arm0": LANE, "rule0": "exclude"}
        other = place.post("/studies/lanes/ask", **closed)
        assert other.status_code == 422
        assert "planned on" in other.text
        assert f"without {LANE}".replace(">", "&gt;") in other.text
        assert "use the second button below" in other.text
        assert "replace=" not in other.text
        made = place.post("/studies/lanes/ask", replace="yes", **closed)
        assert made.headers["location"] == "/studies/lanes?done=asked&play=2"
        with mp.Study.open("lanes", store=place.store) as study:
            assert statuses(study) == [(1, DAY, "cancelled"), (2, DAY, "pending")]
            assert study.pending()[0].plan[LANE] == 0
        page = place.get("/studies/lanes/plays/1").text
        assert "cancelled" in page
        assert "instead of plan 1" in place.get("/studies/lanes/history").text


def test_a_cancelled_plan_may_have_a_reason(study: Any) -> None:
    play = study.ask(key=DAY)
    with refused("reason"):
        study.cancel(play, reason="")
    study.cancel(play, reason="The truck broke down.", key="end")
    study.cancel(play, reason="The truck broke down.", key="end")
    with refused("key"):
        study.cancel(play, reason="A strike.", key="end")
    assert header_of(study, entry_codec.CANCEL)["reason"] == "The truck broke down."
    assert statuses(study) == [(1, DAY, "cancelled")]


@pytest.mark.parametrize("text", ["", " ", "two\nlines", "long " * 300, 7, None, "\ud800"])
def test_a_remark_is_one_line_of_text(text: Any) -> None:
    with refused("text"):
        mp.Learner(plans()).note(text)


def test_a_remark_is_kept_in_the_journal(study: Any) -> None:
    before = study.ask(key=DAY).plan
    study.note("Strike in Lyon.", key="remark")
    study.note("Strike in Lyon.", key="remark")
    with refused("key"):
        study.note("Strike in Lille.", key="remark")
    assert header_of(study, NOTE)["text"] == "Strike in Lyon."
    assert study.ask(key=DAY).plan == before
    if isinstance(study, mp.Study):
        assert study.verify().ok


def header_of(study: Any, kind: str) -> dict[str, Any]:
    """Return the content of the only entry of a kind."""
    journal = study.journal if isinstance(study, mp.Learner) else study
    (found,) = [one for one in journal.entries() if one.labels.kind == kind]
    header: dict[str, Any] = found.record.header
    return header
