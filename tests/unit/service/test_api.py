"""The HTTP API: repeated requests, pages of limited size, and metrics of studies."""

import io
import re
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx
import pandas as pd
import pytest
from asgi import Client, client_of
from effort import TIME_LIMIT
from serving import Served
from trucks import costs, new_study

import multiplay as mp
from multiplay.service.api import models
from multiplay.service.app import create_app
from multiplay.service.auth import keys as api_keys
from multiplay.service.settings import Settings
from multiplay.service.studies import limits, manager
from multiplay.service.studies.limits import ServiceLimits
from multiplay.storage import store_at
from multiplay.studies import replica, results

STUDY = "/v1/studies/lanes"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a study."""
    place = tmp_path / "studies.db"
    new_study(store_at(place)).disconnect()
    return place


@pytest.fixture
def client(store: Path) -> Iterator[Client]:
    with client_of(create_app(Settings(store=f"{store}"))) as found:
        yield found


# ------------------------------------------------------------ repeated requests

NEW = {
    "name": "new",
    "actions": {"type": "Budget", "total": 1, "caps": [1, 1]},
    "loss_range": [0, 1],
}


def send(
    client: Client, path: str, body: Any = None, key: str = "one", method: str = "POST"
) -> httpx.Response:
    return client.request(method, path, json=body, headers={"Idempotency-Key": key})


def same(one: httpx.Response, other: httpx.Response) -> bool:
    return (one.status_code, one.content) == (other.status_code, other.content)


def tell(
    client: Client, play: dict[str, Any], request: str, more: dict[str, Any] | None = None
) -> httpx.Response:
    body = {"losses": costs(play["id"], play["plan"]), **(more or {})}
    return send(client, f"{STUDY}/plays/{play['id']}/tell", body, request)


def entries(store: Path) -> int:
    with mp.Study.open("lanes", store=store) as study:
        assert study.verify().ok
        return study.head.number


def test_an_expiry_that_ended_nothing_ends_nothing_later(store: Path, client: Client) -> None:
    body = {"older_than": 0}
    first = send(client, f"{STUDY}/expire", body)
    assert first.json() == {"plays": []}
    send(client, f"{STUDY}/ask", {"at": 0}, "ask")
    assert same(send(client, f"{STUDY}/expire", body), first)
    assert send(client, f"{STUDY}/expire", body, "two").json() == {"plays": [1]}
    assert same(send(client, f"{STUDY}/expire", body), first)
    entries(store)


def test_reports_are_forgotten_and_kept(store: Path, client: Client) -> None:
    for k in range(4):
        tell(client, send(client, f"{STUDY}/ask", {}, f"ask-{k}").json(), f"tell-{k}")
    body = {"arm": "Lyon->north", "before": 3}
    first = send(client, f"{STUDY}/forget", body)
    assert first.json()["since"] == 3
    assert same(send(client, f"{STUDY}/forget", body), first)
    assert send(client, f"{STUDY}/forget", body | {"before": 2}).status_code == 409
    kept = send(client, f"{STUDY}/unforget", {"since": 0}, "two").json()
    assert kept == {"since": 0, "units": 4 * 5}
    early = send(client, f"{STUDY}/forget", {"before": "2026-01-01T00:00:00Z"}, "three")
    assert (early.status_code, early.json()["argument"]) == (422, "before")
    for wrong in ({}, {"before": -1}, {"before": 1.5}, {"before": 99}, {"before": "Monday"}):
        assert send(client, f"{STUDY}/forget", wrong, "wrong").status_code in (400, 422)
    unknown = send(client, f"{STUDY}/unforget", {"arm": "nowhere", "since": 1}, "four")
    assert (unknown.status_code, unknown.json()["argument"]) == (422, "arm")
    assert entries(store) == 4 * 2 + 2


def test_a_correction_that_takes_too_long_changes_nothing(
    store: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    plays = [send(client, f"{STUDY}/ask", {}, f"ask-{k}").json() for k in range(4)]
    for k, play in enumerate(plays):
        tell(client, play, f"tell-{k}")
    right = {"losses": costs(1, plays[0]["plan"], 5.0)}
    verbs = {
        "plays/1/correct": right,
        "plays/2/retract": {},
        "forget": {"before": 2},
        "unforget": {"since": 0},
    }
    before = client.get(STUDY).json()
    with monkeypatch.context() as patch:
        hours = count(step=3600)
        patch.setattr(replica, "time", SimpleNamespace(monotonic=lambda: float(next(hours))))
        for verb, body in verbs.items():
            for key in ("first", "again"):
                answer = send(client, f"{STUDY}/{verb}", body, key)
                assert (answer.status_code, answer.json()["argument"]) == (422, "study"), verb
        assert client.get(STUDY).json() == before
        assert send(client, f"{STUDY}/ask", {}, "next").status_code == 200
    for verb, body in verbs.items():
        assert send(client, f"{STUDY}/{verb}", body, "first").is_success, verb
    assert entries(store) == 4 * 2 + 1 + len(verbs)


def test_savings_need_the_permission_to_read_and_have_limits(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mp.Study.open("lanes", store=store) as study:
        for day in range(12):
            play = study.ask(key=f"2026-03-{day + 1:02}")
            study.tell(play, costs(play.id, play.plan))
        rule = mp.FixedPlan(play.plan, nearest=True)
        whole, part = study.savings(rule), study.savings(rule, since="2026-03-03")
    plain = {"type": "FixedPlan", "units": play.plan, "nearest": True}
    place = store_at(store)
    keys = {can: api_keys.create(place, can, study="lanes").token for can in ("read", "play")}
    headers = {can: {"Authorization": f"Bearer {key}"} for can, key in keys.items()}
    with client_of(create_app(Settings(store=f"{store}"))) as client:

        def post(body: Any, can: str = "read", verb: str = "savings", method: str = "POST") -> Any:
            return client.request(method, f"{STUDY}/{verb}", json=body, headers=headers[can])

        assert post({"versus": plain}).json() == results.to_plain(whole)
        period = {"versus": plain, "since": "2026-03-03", "until": "2026-03-12T23:00:00Z"}
        assert post(period).json() == results.to_plain(part)
        by_key = [{"key": f"2026-03-{day + 1:02}", "plan": play.plan} for day in range(12)]
        assert post({"versus": {"plans": by_key}}).json()["total"] == whole.total
        assert post({"learning": True}).json()["learning"]
        assert post({"rule": plain}, "read", "versus", "PUT").status_code == 403
        assert post({"rule": plain}, "play", "versus", "PUT").status_code == 204
        assert post({}).json()["rule"] == rule.text
        for argument, body in (
            ("since", {"versus": plain, "since": "2026-03-08"}),  # too few plays
            ("since", {"versus": plain, "since": "2026-02-31"}),
            ("learning", {"versus": plain, "learning": True}),
            ("versus.type", {"versus": {"type": "Budget"}}),
            ("versus.units['Lyon->north']", {"versus": plain | {"units": {"Lyon->north": -1}}}),
            ("versus.plans", {"versus": {"plans": by_key[:1] * 2}}),
        ):
            found = post(body)
            assert (found.status_code, found.json()["argument"]) == (422, argument), body
        for argument, versus in {  # plans and classes are told apart by the key "plans"
            "versus.plans[0].plan": {"plans": [{"key": "2026-03-01"}]},
            "versus.plans[0].key": {"plans": [{"key": "", "plan": {}}]},
            "versus.plans": {"plans": []},
            "versus.extra": {"plans": by_key, "extra": 1},
            "versus": [plain],
        }.items():
            found = post({"versus": versus})
            assert (found.status_code, found.json()["argument"]) == (400, argument), versus
        found = post({"versus": {"plans": by_key, "type": "InProportion"}})
        assert (found.status_code, found.json()["argument"]) == (422, "versus.plans")
        monkeypatch.setattr(limits, "COMPARED", 4 * 12 - 1)
        assert "47 plays times arms" in post({"versus": plain}).json()["expected"]


@pytest.mark.parametrize("body", [None, {"key": "Monday"}])
def test_an_ask_again_has_the_estimate_of_the_first_time(
    body: Any, store: Path, client: Client
) -> None:
    other = send(client, f"{STUDY}/ask", None, "other").json()
    first = send(client, f"{STUDY}/ask", body)
    tell(client, other, "tell")
    assert same(send(client, f"{STUDY}/ask", body), first)
    tell(client, first.json(), "last")
    assert same(send(client, f"{STUDY}/ask", body), first), "also of a play that is closed"
    with client_of(create_app(Settings(store=f"{store}"))) as restarted:
        assert same(send(restarted, f"{STUDY}/ask", body), first)
    entries(store)


def test_an_ask_of_a_known_key_again_has_the_same_estimate(client: Client) -> None:
    send(client, f"{STUDY}/ask", {"key": "Monday"}, "first")
    other = send(client, f"{STUDY}/ask", None, "other").json()
    second = send(client, f"{STUDY}/ask", {"key": "Monday"}, "second")
    tell(client, other, "tell")
    assert same(send(client, f"{STUDY}/ask", {"key": "Monday"}, "second"), second)


def test_a_create_again_has_the_first_response(store: Path, client: Client) -> None:
    first = send(client, "/v1/studies", NEW)
    assert first.status_code == 201
    assert first.json()["entries"] == 1
    client.post("/v1/studies/new/ask")
    assert same(send(client, "/v1/studies", NEW), first)
    client.request("DELETE", "/v1/studies/new")
    assert same(send(client, "/v1/studies", NEW), first), "the study is not created again"
    assert mp.Study.names(store=store) == ["lanes"]


@pytest.mark.parametrize("more", [{"seed": 8}, {"name": "newer"}, {"loss_range": [0, 2]}])
def test_a_create_with_another_body_is_a_conflict(more: dict[str, Any], client: Client) -> None:
    assert send(client, "/v1/studies", NEW).status_code == 201
    refused = send(client, "/v1/studies", NEW | more)
    assert refused.status_code == 409
    assert "used for a different request" in refused.json()["detail"]


def test_a_create_with_a_key_in_the_body(client: Client) -> None:
    body = NEW | {"key": "mine"}
    first = client.post("/v1/studies", json=body)
    client.post("/v1/studies/new/ask")
    assert same(client.post("/v1/studies", json=body), first)
    assert same(send(client, "/v1/studies", body, "late"), first)
    assert client.post("/v1/studies", json=body | {"seed": 8}).status_code == 409
    assert client.post("/v1/studies", json=NEW | {"key": "other"}).status_code == 409


def test_keys_that_differ_in_their_last_character_are_different(client: Client) -> None:
    keys = ["k" * 199 + last for last in "ab"]
    ids = [send(client, f"{STUDY}/ask", None, key).json()["id"] for key in keys * 2]
    assert ids == [1, 2, 1, 2]
    made = [send(client, "/v1/studies", NEW | {"name": key[-1]}, key) for key in keys]
    assert [response.status_code for response in made] == [201, 201]


@pytest.mark.parametrize("path", [f"{STUDY}/ask", "/v1/studies"])
def test_a_key_that_is_too_long_is_refused(path: str, client: Client) -> None:
    refused = send(client, path, NEW if path == "/v1/studies" else None, "k" * 201)
    assert refused.status_code == 400
    assert refused.json()["argument"] == "Idempotency-Key"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"key": "Monday"}, {"key": "Tuesday"}),
        ({"key": "Monday"}, None),
        (None, {"key": "Monday"}),
        ({"exclude": []}, {"exclude": ["Lyon->north"]}),
    ],
)
def test_the_same_key_with_another_body_is_a_conflict(
    one: Any, other: Any, store: Path, client: Client
) -> None:
    first = send(client, f"{STUDY}/ask", one)
    assert first.status_code == 200
    before = entries(store)
    assert send(client, f"{STUDY}/ask", other).status_code == 409
    assert same(send(client, f"{STUDY}/ask", one), first)
    assert entries(store) == before
    assert mp.Study.open("lanes", store=store).asked == 1


def test_the_same_key_for_another_play_is_a_conflict(client: Client) -> None:
    for k in range(4):
        send(client, f"{STUDY}/ask", None, f"{k}")
    for verb, plays, status in (("close", (1, 2), 200), ("cancel", (3, 4), 204)):
        responses = [send(client, f"{STUDY}/plays/{play}/{verb}") for play in plays]
        assert [one.status_code for one in responses] == [status, 409]


def test_the_order_of_fields_is_not_content(client: Client) -> None:
    body = {"key": "Monday", "at": 5}
    first = send(client, f"{STUDY}/ask", body)
    assert same(send(client, f"{STUDY}/ask", dict(reversed(body.items()))), first)


def test_a_delete_again_deletes_nothing_more(store: Path, client: Client) -> None:
    first = send(client, STUDY, method="DELETE")
    assert first.status_code == 204
    assert same(send(client, STUDY, method="DELETE"), first)
    new_study(store_at(store)).disconnect()
    assert same(send(client, STUDY, method="DELETE"), first)
    assert mp.Study.names(store=store) == ["lanes"], "the new study is another one"
    assert send(client, "/v1/studies/others", method="DELETE").status_code == 409
    assert send(client, "/v1/studies/others", key="two", method="DELETE").status_code == 404


def test_two_keys_are_refused(client: Client) -> None:
    headers = [("Idempotency-Key", "one"), ("Idempotency-Key", "two")]
    refused = client.post(f"{STUDY}/ask", headers=headers)
    assert refused.status_code == 400
    assert refused.json()["got"] == "2"


def test_reports_again_have_the_first_response(store: Path, client: Client) -> None:
    """With a key in the body and without; also a report that was told before."""
    plays = [send(client, f"{STUDY}/ask", None, f"ask-{k}").json() for k in range(3)]
    sent: list[Callable[[], httpx.Response]] = [
        lambda: tell(client, plays[0], "a", {"key": "mine"}),
        lambda: tell(client, plays[0], "b"),
        lambda: tell(client, plays[1], "c", {"final": False}),
        lambda: send(client, f"{STUDY}/plays/2/close", {"key": "k"}, "d"),
        lambda: send(client, f"{STUDY}/plays/3/cancel", {"key": "k"}, "e"),
        lambda: send(client, f"{STUDY}/expire", {"older_than": 0, "key": "k"}, "f"),
    ]
    first = [act() for act in sent]
    assert [one.status_code for one in first] == [200] * 4 + [204, 200]
    assert [first[k].json()["repeated"] for k in range(2)] == [False, True]
    before = entries(store)
    for act, response in zip(sent, first, strict=True):
        assert same(act(), response)
    assert entries(store) == before


def test_keys_of_different_callers_are_different(store: Path, client: Client) -> None:
    tokens = [api_keys.create(store, "play").token for _ in range(2)]
    for wanted in (1, 2, 1, 2):
        headers = {"Authorization": f"Bearer {tokens[wanted - 1]}", "Idempotency-Key": "one"}
        assert client.post(f"{STUDY}/ask", headers=headers).json()["id"] == wanted


# ------------------------------------------------------------ pages of limited size


def pages(client: Client, path: str, limit: int) -> list[httpx.Response]:
    """Return all pages of a list."""
    found, cursor = list[httpx.Response](), None
    while not found or cursor is not None:
        given = {"limit": limit} | ({} if cursor is None else {"cursor": cursor})
        found.append(client.get(f"{STUDY}/{path}", params=given))
        assert found[-1].status_code == 200
        cursor = found[-1].json()["next"]
    return found


def items(found: list[httpx.Response]) -> list[Any]:
    return [item for page in found for item in page.json()["items"]]


@pytest.mark.parametrize(("path", "rows"), [("pending", 12), ("entries", 13)])
def test_pages_are_limited_by_bytes(store: Path, path: str, rows: int) -> None:
    with mp.Study.open("lanes", store=store) as study:
        for _ in range(12):
            study.ask()
    with client_of(create_app(Settings(store=f"{store}"))) as client:
        whole = pages(client, path, 1000)
        by_rows = pages(client, path, 5)
    assert [len(whole), len(by_rows)] == [1, 3]
    assert len(items(whole)) == rows
    sizes = [len(httpx.Response(200, json=item).content) for item in items(whole)]
    for size in (sum(sizes) // 4, 1):
        at_most = max(size, *sizes)
        limits = ServiceLimits(page=size)
        with client_of(create_app(Settings(store=f"{store}", limits=limits))) as client:
            found = pages(client, path, 1000)
        assert items(found) == items(whole) == items(by_rows)
        assert len(found) > 3
        assert all(len(page.content) <= at_most + 100 for page in found)
        assert all(page.headers["Content-Length"] == f"{len(page.content)}" for page in found)
        assert all(page.headers["Content-Type"] == "application/json" for page in found)


def test_an_empty_page(client: Client) -> None:
    response = client.get(f"{STUDY}/pending")
    assert response.json() == {"items": [], "next": None}
    tag = {"If-None-Match": response.headers["ETag"]}
    assert client.get(f"{STUDY}/pending", headers=tag).status_code == 304


@pytest.mark.slow
def test_pages_of_a_large_set_take_little_memory(tmp_path: Path) -> None:
    """150 plays of 2,000 arms with long names: all of them have 60 MB."""
    store = tmp_path / "large.db"
    names = [f"{k:0200}" for k in range(2_000)]
    large = mp.Budget(2_000, [1] * 2_000, names=names)
    with mp.Study.create("lanes", large, mp.RandomAction(), store=store) as study, study.together():
        for _ in range(150):
            study.ask()
    with (
        Served(store, tmp_path / "log") as service,
        httpx.Client(
            base_url=service.url, trust_env=False, verify=False, timeout=TIME_LIMIT
        ) as client,
    ):
        paths = ("pending", "entries", "plays")
        for path in paths:
            client.get(f"{STUDY}/{path}?limit=1")
        before = memory(client)
        for path in paths:
            response = client.get(f"{STUDY}/{path}?limit=1000")
            assert response.status_code == 200
            assert len(response.content) < 2**22 + 2**20
        assert memory(client) - before < 60e6


def memory(client: httpx.Client) -> float:
    """Return the resident memory of a service."""
    text = client.get("/metrics").text
    return float(re.findall("(?m)^process_resident_memory_bytes (.*)$", text)[0])


# ------------------------------------------------------------ metrics of studies


def values(client: Client, headers: dict[str, str] | None = None) -> dict[str, float]:
    """Return the series of the study."""
    response = client.get("/metrics", headers=headers)
    assert response.status_code == 200
    lines = [line.rsplit(" ", 1) for line in response.text.splitlines() if 'study="' in line]
    return {name: float(value) for name, value in lines}


def test_metrics_of_a_study(client: Client) -> None:
    before = values(client)
    play, _ = (client.post(f"{STUDY}/ask").json() for _ in range(2))
    losses = costs(play["id"], play["plan"])
    client.post(f"{STUDY}/plays/{play['id']}/tell", json={"losses": losses})
    after = values(client)

    def grown(name: str) -> float:
        return after[name] - before.get(name, 0.0)

    assert grown('multiplay_study_entries_total{kind="ask",study="lanes"}') == 2
    assert grown('multiplay_study_entries_total{kind="tell",study="lanes"}') == 1
    assert grown('multiplay_study_loss_count{study="lanes"}') == 1
    total = sum(sum(of_arm) for of_arm in losses.values())
    assert grown('multiplay_study_loss_sum{study="lanes"}') == pytest.approx(total)
    assert after['multiplay_study_pending_plays{study="lanes"}'] == 1
    assert after['multiplay_study_drifting_arms{study="lanes"}'] == 0


def test_metrics_of_a_study_need_a_key_that_may_read_it(store: Path, client: Client) -> None:
    client.post(f"{STUDY}/ask")
    assert values(client)
    unused = f"unused {uuid4()}"  # metrics are those of the process, with studies of other tests
    new_study(store_at(store), unused).disconnect()
    tokens = {
        study: api_keys.create(store, "read", study=study).token for study in ("lanes", unused)
    }
    assert not values(client)
    headers = {study: {"Authorization": f"Bearer {token}"} for study, token in tokens.items()}
    assert values(client, headers["lanes"])
    assert not values(client, headers[unused])
    unknown = {"Authorization": f"Bearer {tokens['lanes'][:-1]}x"}
    assert client.get("/metrics", headers=unknown).status_code == 401


def test_the_service_is_ready_when_kernels_are_compiled(
    store: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compiled = threading.Event()
    monkeypatch.setattr(manager, "PATIENCE", 0.05)
    monkeypatch.setattr(mp.Study, "compile_all", lambda store: compiled.wait(TIME_LIMIT))
    with client_of(create_app(Settings(store=f"{store}"))) as client:
        try:
            assert client.get("/healthz").status_code == 200
            waits = client.get("/readyz")
        finally:
            compiled.set()
        assert waits.status_code == 503
        assert "compiles the kernels" in waits.json()["detail"]
        assert not any(record.levelname == "ERROR" for record in caplog.records)
        monkeypatch.setattr(manager, "PATIENCE", TIME_LIMIT)
        assert client.get("/readyz").status_code == 200


def test_pages_have_routes_in_the_metrics(client: Client) -> None:
    client.get("/studies/lanes")
    text = client.get("/metrics").text
    assert 'multiplay_requests_total{method="GET",route="/studies/{study}",status="200"}' in text


# ------------------------------------------------------------ the OpenAPI document


def test_operations_have_names_for_clients(client: Client) -> None:
    document = client.get("/openapi.json").json()
    operations = [one for path in document["paths"].values() for one in path.values()]
    names = {one["operationId"] for one in operations}
    assert len(names) == len(operations)
    assert {"ask", "tell", "list_plays", "list_pending", "get_play", "get_study"} <= names


def test_sets_are_plain_json(client: Client) -> None:
    study = client.get(STUDY).json()
    assert study["actions"]["names"] == study["arms"]
    assert "tuple" not in client.get(STUDY).text


def test_the_reference_has_the_fields_of_every_body(client: Client) -> None:
    text, document = client.get("/docs").text, client.get("/openapi.json").json()
    for name in ("NewStudy", "Ask", "Tell", "End", "Expire", "Learn", "Table", "Best", "Expect"):
        for field in document["components"]["schemas"][name]["properties"]:
            assert f'<th scope="row" class="words"><code>{field}</code>' in text, (name, field)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("ask", {"at": ""}),
        ("ask", {"at": "2026-11-15"}),
        ("ask", {"at": "2026-13-15T08:00:00Z"}),
        ("ask", {"at": "9999-01-01T00:00:00Z"}),
        ("ask", {"at": 1e10}),
        ("pending?cursor=x", None),
        ("plays?cursor=01", None),
        ("entries?cursor=-1", None),
    ],
)
def test_what_does_not_fit_the_schema_is_a_bad_request(
    path: str, body: Any, client: Client
) -> None:
    method = "GET" if body is None else "POST"
    assert client.request(method, f"{STUDY}/{path}", json=body).status_code == 400


@pytest.mark.parametrize("row", [4, 4.0, [4], [4.0]])
def test_a_whole_number_may_have_a_decimal_point(row: Any, client: Client) -> None:
    """A JSON Schema of the type integer has 4.0."""
    body = {"arm": ["Lyon->north"], "round": ["2026-11-16"], "loss": ["cheap"], "row": row}
    found = client.post(f"{STUDY}/check-table", json=body).json()
    assert found["problems"][0]["row"] == 4


def test_cursors_of_studies(store: Path, client: Client) -> None:
    names = ["K\u00f6ln", "a b", "lanes", "zoo"]
    for name in set(names) - {"lanes"}:
        new_study(store_at(store), name).disconnect()
    found, cursor = list[str](), ""
    while cursor is not None:
        page = client.get(f"/v1/studies?limit=1&cursor={cursor}").json()
        found += [one["name"] for one in page["items"]]
        cursor = page["next"]
    assert found == sorted(names)
    for wrong in ("a", "a+b=", "\u00e4"):
        assert client.get("/v1/studies", params={"cursor": wrong}).status_code == 400


def test_the_schema_of_events_is_that_of_one_event(client: Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    described = paths["/v1/studies/{study}/events"]["get"]["responses"]["200"]["content"]
    schema = described["text/event-stream"]["schema"]
    assert schema["required"] == ["id", "event", "data"]
    assert schema["properties"]["event"] == {"const": "changed"}


# ------------------------------------------------------------ files


def test_plans_are_downloaded_as_files(
    store: Path, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(client, send(client, f"{STUDY}/ask", {"key": "2026-11-16"}).json(), "tell")
    with mp.Study.open("lanes", store=store) as study:
        for format, kind in (("csv", "text/csv"), ("jsonl", "application/jsonl")):
            for wide in (False, True):
                found = client.get(f"{STUDY}/export", params={"format": format, "wide": wide})
                study.export(tmp_path / f"own.{format}", plans=True, wide=wide)
                assert found.content == (tmp_path / f"own.{format}").read_bytes()
                assert found.headers["content-type"].startswith(kind)
                assert found.headers["content-disposition"].endswith(f"lanes.{format}")
    book = client.get(f"{STUDY}/export")
    sheets = pd.read_excel(io.BytesIO(book.content), sheet_name=None)
    assert [*sheets] == ["plans", "bills", "lanes", "summary"]
    bad = client.get(f"{STUDY}/export", params={"format": "pdf"}).json()
    assert (bad["status"], bad["argument"], bad["got"]) == (400, "format", "'pdf'")
    assert "xlsx" in bad["expected"]
    monkeypatch.setattr(manager, "MOST_EXPORTED", 1)
    assert client.get(f"{STUDY}/export").status_code == 422
    assert client.get("/v1/studies/none/export").status_code == 404


def test_plays_have_plans_and_losses_if_requested(client: Client) -> None:
    asked = [send(client, f"{STUDY}/ask", {}, f"{k}").json() for k in range(5)]
    told = costs(1, asked[0]["plan"])
    send(client, f"{STUDY}/plays/1/tell", {"losses": told}, "tell")
    found, path = [], f"{STUDY}/plays?plans=true&limit=2"
    cursor = ""
    while True:
        page = client.get(path + cursor).json()
        found += page["items"]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    plans = [{arm: n for arm, n in play["plan"].items() if n} for play in asked]
    assert [play["plan"] for play in found] == plans
    assert [play["losses"] for play in found] == [
        {arm: losses for arm, losses in told.items() if losses},
        *[{}] * 4,
    ]
    assert client.get(f"{STUDY}/plays/1").json() == found[0]
    assert "plan" not in client.get(f"{STUDY}/plays").json()["items"][0]


# ------------------------------------------------------------ invalid fields

TIME = "a time such as 2026-11-15T08:00:00Z"
TELL, LEARN = "plays/1/tell", "learn"
WRONG: list[tuple[str, Any, str, str]] = [  # the path, the body, the field, what is expected
    ("ask", [], "body", "an object"),
    ("ask", {"key": 5}, "key", "a text"),
    ("ask", {"key": ""}, "key", "at least 1 character"),
    ("ask", {"key": "x" * 201}, "key", "at most 200 characters"),
    ("ask", {"at": "tomorrow"}, "at", f"a number or {TIME}"),
    ("ask", {"time_limit": -1}, "time_limit", "more than 0"),
    ("ask", {"at_most": {"bool": -1}}, "at_most.bool", "at least 0"),
    ("ask", {"at_most": {"float": 1.5}}, "at_most.float", "a whole number"),
    ("ask", {"exclude": ["a", 1]}, "exclude[1]", "a text"),
    ("ask", {"exclude": "Lyon"}, "exclude", "a list"),
    ("ask", {"exlude": []}, "exlude", "no field of this name"),
    ("ask", {"features": {"km": {"a": [1]}}}, "features.km.a", "true or false"),
    (TELL, {}, "losses", "a value"),
    (TELL, {"losses": "x"}, "losses", "an object, a list or a number"),
    (TELL, {"losses": {"list": "x"}}, "losses.list", "a number or a list"),
    (TELL, {"losses": {"Lyon": [1, "x"]}}, "losses.Lyon[1]", "a number"),
    (TELL, {"losses": {}, "final": "maybe"}, "final", "true or false"),
    (TELL, {"losses": {}, "missing": "no"}, "missing", "'refuse' or 'ignore'"),
    (LEARN, {"plan": [1, "x"], "losses": {}}, "plan[1]", "a whole number"),
    (LEARN, {"plan": 5, "losses": {}}, "plan", "an object or a list"),
    ("forget", {"before": 1.5}, "before", "a whole number or a text"),
    ("expect", {"plan": {}, "level": 2}, "level", "less than 1"),
    ("plays?cursor=x", None, "cursor", "the cursor of a page"),
    ("plays?limit=0", None, "limit", "at least 1"),
    ("effects?by=x", None, "by", "'feature' or 'arm'"),
]


def test_an_invalid_field_is_described_in_plain_words(store: Path, client: Client) -> None:
    for path, body, field, expected in WRONG:
        method = "GET" if "?" in path else "POST"
        found = client.request(method, f"{STUDY}/{path}", json=body).json()
        assert (found["status"], found["argument"]) == (400, field)
        assert found["expected"].startswith(expected)
        assert found["detail"].startswith(f"{field}: expected {expected}")
        assert found["hint"].endswith((".", "?"))
        assert "The request has" not in found["hint"]  # alternatives are one field
        text = found["detail"].lower()
        assert not any(word in text for word in ("input", " valid ", "pydantic", "should", "dict["))
    both = client.post(f"{STUDY}/ask", json={"key": 1, "exclude": 2}).json()
    assert both["hint"].endswith("The request has 2 invalid fields.")
    assert entries(store) == 0  # nothing was changed


@pytest.mark.parametrize("name", [{}, [], {"type": "GenCTS"}, 1, 1.5, None, True, ""], ids=repr)
def test_the_name_of_a_class_is_a_text(store: Path, client: Client, name: Any) -> None:
    """Whatever stands in its place, wherever an object names its class."""
    wrong, good = {"type": name}, {"type": "Budget", "total": 2, "caps": [2, 2]}
    new = {"name": "new", "actions": good, "loss_range": [0, 9]}
    for verb, method, body, place in (
        ("savings", "POST", {"versus": wrong}, "versus"),
        ("versus", "PUT", {"rule": wrong}, "rule"),
        ("ask", "POST", {"actions": wrong}, "actions"),
        ("ask", "POST", {"ahead": [wrong]}, "ahead[0]"),
        ("best", "POST", {"actions": good | {"caps": wrong}}, "actions.caps"),
        ("", "POST", new | {"actions": wrong}, "actions"),
        ("", "POST", new | {"policy": wrong}, "policy"),
        ("", "POST", new | {"policy": {"type": "Duplicated", "policy": wrong}}, "policy.policy"),
        ("", "POST", new | {"features": wrong}, "features"),
        ("", "POST", new | {"constraints": [wrong]}, "constraints[0]"),
        (
            *("", "POST", new | {"constraints": [{"type": "Baseline", "rule": wrong}]}),
            "constraints[0].rule",
        ),
        ("constraints", "POST", {"constraint": wrong}, "constraint"),
    ):
        path = f"{STUDY}/{verb}" if verb else "/v1/studies"
        answer = client.request(method, path, json=body)
        assert (answer.status_code, answer.json()["argument"]) == (422, f"{place}.type")
    assert entries(store) == 0


def test_names_of_longer_studies_can_be_used_again(client: Client) -> None:
    other = "/v1/studies/other"
    for k, (method, path, body) in enumerate(
        (
            ("DELETE", other, None),
            ("POST", f"{other}/rename", {"name": "third"}),
            ("GET", other, None),
        )
    ):
        assert send(client, f"{STUDY}/copy", {"name": "other"}, f"copy{k}").status_code == 201
        assert send(client, f"{other}/ask", None, f"ask{k}").status_code == 200
        assert send(client, path, body, f"away{k}", method).is_success


# ------------------------------------------------------------ promises


def test_promises_are_made_read_and_released(client: Client) -> None:
    """Each answer is as documented; bad requests name their field, and change nothing."""
    co2 = {"type": "AtMost", "limit": 400, "of": {"*": 20}, "plays": 3, "name": "CO2 ü"}
    assert send(client, f"{STUDY}/constraints", {"constraint": co2}).status_code == 204
    assert (
        send(client, f"{STUDY}/constraints", {"constraint": co2}).status_code == 204
    )  # the same key
    (row,) = client.get(f"{STUDY}/constraints").json()["items"]
    models.PromiseReport.model_validate(row)
    assert (row["name"], row["constraint"]["type"], row["left_plays"]) == ("CO2 ü", "AtMost", 3)
    bad: list[tuple[dict[str, Any], str]] = [
        ({"type": "Exactly"}, "type"),
        ({"limit": -1}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"of": {}}, "constraint.of"),
        ({"of": {"Lyon->north": 1}}, "of"),
        ({"of": {"*": -1}}, "of"),
        ({"of": {"x" * 300: 1, "*": 1}}, "constraint.of"),
        ({"plays": 0}, "plays"),
        ({"plays": 10**9}, "plays"),
        ({"until": "2026-02-30"}, "constraint.until"),
        ({"until": "soon"}, "until"),
        ({"name": "a\nb"}, "constraint.name"),
        ({"hard": 1}, "hard"),
        ({"colour": "red"}, "colour"),
        ({}, "constraints"),  # the name is in use
    ]
    for k, (change, field) in enumerate(bad):
        answer = send(client, f"{STUDY}/constraints", {"constraint": co2 | change}, key=f"bad{k}")
        assert answer.status_code in (400, 422), (change, answer.text)
        assert field in answer.text, change
    usual = client.get(STUDY).json()["actions"]
    for k, ahead in enumerate(([3], [{"type": "Nothing"}], {}, [usual] * 401)):
        answer = send(client, f"{STUDY}/ask", {"ahead": ahead}, key=f"ahead{k}")
        assert answer.status_code in (400, 422)
        assert "ahead" in answer.text
    play = send(client, f"{STUDY}/ask", {"ahead": [usual, usual]}, key="ask").json()
    models.Play.model_validate(play)
    assert [*play["prices"]] == ["CO2 ü"]
    assert play["held"] is False
    few = co2 | {"name": "few", "limit": 1, "plays": 2}
    assert send(client, f"{STUDY}/constraints", {"constraint": few}, key="few").status_code == 204
    answer = send(client, f"{STUDY}/ask", {"ahead": [usual]}, key="next")
    assert answer.json()["prices"]["few"] == 0  # all plans have as many units: none is nearer to it
    rows = {row["name"]: row for row in client.get(f"{STUDY}/constraints").json()["items"]}
    assert rows["few"]["holds"].startswith("no: at best")
    assert send(client, f"{STUDY}/end-constraint", {"name": "few"}, key="r").status_code == 204
    assert send(client, f"{STUDY}/end-constraint", {"name": "few"}, key="s").status_code == 404
    for k in range(limits.MOST_PROMISES - 1):
        send(client, f"{STUDY}/constraints", {"constraint": co2 | {"name": f"{k}"}}, key=f"more{k}")
    answer = send(
        client, f"{STUDY}/constraints", {"constraint": co2 | {"name": "one more"}}, key="last"
    )
    assert answer.status_code == 422
    assert len(client.get(f"{STUDY}/constraints").json()["items"]) == limits.MOST_PROMISES
