"""Features over HTTP and on the page of a study: limits, permissions, fields and effects."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgi import Client, client_of
from featured import FEATURES, KM, ask_and_tell, day, featured_study

import multiplay as mp
from multiplay.errors import InvalidInput
from multiplay.learner.features import FeatureState
from multiplay.reports.study import study_facts
from multiplay.reports.study_text import next_steps
from multiplay.service.app import create_app
from multiplay.service.auth import keys
from multiplay.service.settings import Settings
from multiplay.service.studies import limits
from multiplay.service.studies.limits import ServiceLimits, build_features
from multiplay.storage import store_at
from multiplay.studies import wire

STUDY, PAGE = "/v1/studies/lanes", "/studies/lanes"
TRANSPORT = {"type": "Transport", "supply": [2, 3], "demand": [4, 1]}
MISFIT = "the features do not explain these costs: losses bend"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    place = tmp_path / "studies.db"
    with featured_study(store_at(place)) as study, study.together():
        ask_and_tell(study, 6)
    return place


@pytest.fixture
def client(store: Path) -> Iterator[Client]:
    with client_of(create_app(Settings(store=f"{store}"))) as found:
        yield found


def new(**more: Any) -> dict[str, Any]:
    plain = wire.to_plain("features", FEATURES)
    return {"name": "new", "actions": TRANSPORT, "loss_range": [0, 250], "features": plain} | more


# ------------------------------------------------------------ the API


def test_features_are_given_and_effects_returned(client: Client) -> None:
    asked = client.post(f"{STUDY}/ask", json={"features": day(6)})
    assert asked.status_code == 200
    found = client.get(f"{STUDY}/effects?level=0.5").json()
    assert found["misfit"] == ""
    assert [row["feature"] for row in found["items"]] == list(FEATURES.names)
    km = found["items"][1]
    assert km["text"].startswith("each 100 km costs ")
    assert km["low"] < 20 < km["high"]
    marked = {row["feature"] for row in found["items"] if not row["changes_plans"]}
    assert marked == {
        "1",
        "fuel",
        *(f"weekday={one}" for one in ("Mon", "Tue", "Wed", "Thu", "Fri")),
    }
    own = client.get(f"{STUDY}/effects?by=arm").json()["items"]
    assert [row["arm"] for row in own] == list(KM)
    assert client.get(f"{STUDY}/effects?by=lane").status_code == 400
    etag = client.get(f"{STUDY}/effects").headers["etag"]
    again = client.get(f"{STUDY}/effects", headers={"If-None-Match": etag})
    assert again.status_code == 304


def test_a_study_is_created_with_features(client: Client) -> None:
    made = client.post("/v1/studies", json=new(arm_features={"km": {"s1->d1": 450}}))
    assert made.status_code == 201
    assert made.json()["policy"]["type"] == "FeatureCTS"
    assert made.json()["features"] == wire.to_plain("features", FEATURES)
    refused = client.post("/v1/studies/new/ask", json={"features": day(0) | {"rain": False}})
    assert (refused.status_code, refused.json()["argument"]) == (422, "features['km']")
    body = {"features": {"km": {"s1->d2": 1, "s2->d1": 2, "s2->d2": 3}}, "key": "lanes"}
    for _ in range(2):
        assert client.request("PUT", "/v1/studies/new/arm-features", json=body).status_code == 204
    asked = client.post("/v1/studies/new/ask", json={"features": day(0) | {"rain": False}})
    assert asked.status_code == 200


@pytest.mark.parametrize(
    "more",
    [
        {"features": {"type": "Transport", "supply": [1], "demand": [1]}},
        {"features": {"type": "Features", "columns": {"km": {"type": "Transport"}}}},
        {"features": {"type": "Features", "columns": {"km": {"type": "Number", "scale": 0}}}},
        {"features": {"type": "Features", "columns": {"km\n": {"type": "Number"}}}},
        {"features": {"type": "Features"}},
        {"features": {"columns": {}}},
        {"arm_features": {"km": {"*": 3}}},
        {"arm_features": {"miles": {"s1->d1": 3}}},
        {"features": None, "arm_features": {"km": {"s1->d1": 3}}},
        {"policy": {"type": "GenCTS"}},
    ],
)
def test_what_declares_no_features_is_refused(client: Client, more: dict[str, Any]) -> None:
    refused = client.post("/v1/studies", json=new(**more))
    assert refused.status_code == 422, refused.text
    assert client.get("/v1/studies/new").status_code == 404


@pytest.mark.parametrize(
    "features", [{"fuel": None}, {"fuel": [1]}, {"fuel": {"a": {"b": 1}}}, [1], {"": 1}]
)
def test_what_no_feature_has_is_malformed(client: Client, features: Any) -> None:
    assert client.post(f"{STUDY}/ask", json={"features": features}).status_code == 400


def test_a_request_has_a_limited_number_of_features(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PHI", 4 * FEATURES.p)
    assert client.post(f"{STUDY}/arms", json={"features": day(1)}).status_code == 200
    monkeypatch.setattr(limits, "PHI", 4 * FEATURES.p - 1)
    table = {"arm": ["Lyon->north"] * 4, "round": [1] * 4, "loss": [1.0] * 4}
    for path, body in (
        (f"{STUDY}/arms", {"features": day(1)}),
        (f"{STUDY}/learn-table", table),
        ("/v1/studies", new()),
        (f"{STUDY}/ask", {"features": day(1), "actions": TRANSPORT}),
    ):
        refused = client.post(path, json=body)
        assert refused.status_code == 422
        assert f"times {FEATURES.p}" in refused.json()["detail"]


def test_a_table_with_a_discount_takes_seconds() -> None:
    small, large = 10**9 // FEATURES.p**2, 10**11 // FEATURES.p**2
    limits.check_rebuilt(FEATURES, mp.FeatureCTS(discount=0.9), small, 1)
    limits.check_rebuilt(FEATURES, mp.FeatureCTS(), large, 1)
    with pytest.raises(InvalidInput, match="table"):
        limits.check_rebuilt(FEATURES, mp.FeatureCTS(discount=0.9), large, 1)


def test_descriptions_count_as_arms(store: Path) -> None:
    few = Settings(store=f"{store}", limits=ServiceLimits(arms=5))
    with client_of(create_app(few)) as client:
        for arm, status in (("a", 204), ("a", 204), ("b", 422), ("x" * 201, 422)):
            body = {"features": {"km": {arm: 1}}}
            assert client.request("PUT", f"{STUDY}/arm-features", json=body).status_code == status


def test_a_table_has_columns_of_features(client: Client) -> None:
    table = {"arm": ["Lyon->north", "Lille->north"], "round": [1, 1], "loss": [130.0, 60.0]}
    given = {"fuel": [1.6, 1.6], "weekday": ["Mon", "Mon"], "rain": [True, False]}
    body = table | {"features": given}
    assert client.post(f"{STUDY}/learn-table", json=body).json()["seen"] == 2
    short = table | {"features": given | {"fuel": [1.6]}}
    assert client.post(f"{STUDY}/learn-table", json=short).status_code == 422
    known = client.post(f"{STUDY}/learn-table", json=table).json()
    assert (known["seen"], known["known"], known["repeated"]) == (0, 2, True)
    new = table | {"loss": [131.0, 60.0]}
    assert client.post(f"{STUDY}/learn-table", json=new).status_code == 422
    assert client.post(f"{STUDY}/learn-table", json=new | {"features": given}).json()["seen"] == 1


def test_permissions(store: Path) -> None:
    token = keys.create(store, "read").token
    with client_of(create_app(Settings(store=f"{store}"))) as client:
        headers = {"Authorization": f"Bearer {token}"}
        assert client.get(f"{STUDY}/effects", headers=headers).status_code == 200
        assert client.get(f"{STUDY}/effects").status_code == 401
        body = {"features": {"km": {"Lyon->north": 1}}}
        found = client.request("PUT", f"{STUDY}/arm-features", json=body, headers=headers)
        assert found.status_code == 403


def test_only_features_are_built() -> None:
    for plain in ({"type": "FeatureRows"}, {"type": "Number"}, 3):
        with pytest.raises(InvalidInput):
            build_features("features", plain)
    assert build_features("features", wire.to_plain("features", FEATURES)) == FEATURES


# ------------------------------------------------------------ the page


def send(client: Client, **fields: str) -> Any:
    text = client.get(PAGE).text
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', text))
    return client.post(f"{PAGE}/ask", data=hidden | fields, headers={"Origin": "http://localhost"})


def test_the_form_has_a_field_for_each_feature_of_a_day(client: Client, store: Path) -> None:
    text = client.get(PAGE).text
    assert re.search(r'<input id="feature0" name="feature0"[^>]* required', text)
    assert re.search(r'<select id="feature1" name="feature1" required', text)
    assert re.search(r'<input type="checkbox" name="feature2"', text)
    assert "feature3" not in text, "the distance of all lanes is known"
    assert "in EUR/l, last plan: 1.6" in text
    sent = send(client, key="Monday", feature0="1.72", feature1="Tue", feature2="yes")
    assert sent.status_code == 303, sent.text
    last = mp.Study.open("lanes", store=store).day_features()
    assert last == {"fuel": 1.72, "weekday": "Tue", "rain": True}


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"feature0": "1.720", "feature1": "Tue"}, "feature0", "read in one way"),
        ({"feature0": "", "feature1": "Tue"}, "feature0", "nothing"),
        ({"feature0": "1.7", "feature1": ""}, "feature1", "Choose"),
        ({"feature0": "1.7", "feature1": "Sun"}, "feature1", "Expected one of"),
        ({"feature0": "1e9", "feature1": "Tue"}, "feature0", "1,000 scales"),
    ],
)
def test_a_wrong_value_is_marked_at_its_field(
    client: Client, fields: dict[str, str], field: str, said: str
) -> None:
    answer = send(client, key="Monday", **fields)
    assert answer.status_code == 422
    (error,) = re.findall(rf'<p class="error" id="{field}-error">([^<]*)', answer.text)
    assert said in error


def test_the_page_shows_what_drives_the_costs(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = client.get(f"{PAGE}/lanes").text
    assert "What drives the costs" in text
    assert re.search(r"each 100 km costs \S+ \(\S+ to \S+\)", text)
    assert text.count("changes no plan</span>") == 7
    assert "Own effects of lanes" in text
    assert MISFIT not in text
    assert '<hx-partial hx-target="#drivers"' in client.get(f"{PAGE}/parts?tab=lanes").text
    monkeypatch.setattr(FeatureState, "misfit", MISFIT)
    assert MISFIT in client.get(f"{PAGE}/lanes").text


def test_a_change_that_features_explain_needs_no_other_policy(store: Path, client: Client) -> None:
    """The price of fuel rises on day 20, and the bills with it: nothing has to be forgotten."""
    with featured_study(store_at(store), "fuel") as study, study.together():
        for number in range(32):
            fuel = 1.5 if number < 20 else 1.9
            play = study.ask(features=day(number) | {"fuel": fuel})
            bill = {
                arm: [100 * fuel - 90 + (7 * number + truck) % 5 for truck in range(units)]
                for arm, units in play.plan.items()
            }
            study.tell(play.id, bill)
        rows = study.drift()
        assert len(rows) == 1
        assert not rows["acted"].any()
        assert "follow" not in repr(next_steps(study_facts(study)))
    text = client.get("/studies/fuel/lanes").text
    assert "Features may explain these changes" in text
    assert "does not follow changes" not in text
    assert "Older reports still count" in text


def test_the_page_of_a_study_without_features_has_none(client: Client) -> None:
    client.post("/v1/studies", json={"name": "plain", "actions": TRANSPORT, "loss_range": [0, 250]})
    text = client.get("/studies/plain").text
    assert "What drives" not in text
    assert "feature0" not in text
    assert "#drivers" not in client.get("/studies/plain/parts?tab=lanes").text
    assert client.get("/v1/studies/plain/effects").status_code == 422
