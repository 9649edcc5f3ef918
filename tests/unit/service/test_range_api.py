"""The range of losses over HTTP: it is set later, it grows, and losses outside are refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgi import Client, client_of
from trucks import ask_and_tell, new_study

import multiplay as mp
from multiplay.service.app import create_app
from multiplay.service.auth import keys
from multiplay.service.settings import Settings
from multiplay.storage import store_at

STUDY = "/v1/studies/lanes"
BUDGET = {"type": "Budget", "total": 2, "caps": [2], "names": ["trucks"]}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    place = tmp_path / "studies.db"
    with new_study(store_at(place), policy=mp.PooledCTS()) as study:
        ask_and_tell(study, 3)
    return place


@pytest.fixture
def client(store: Path) -> Iterator[Client]:
    with client_of(create_app(Settings(store=f"{store}"))) as found:
        yield found


def put(client: Client, loss_range: Any, study: str = STUDY, **more: Any) -> Any:
    return client.request("PUT", f"{study}/range", json={"loss_range": loss_range}, **more)


def span(client: Client, study: str = STUDY) -> str:
    found: str = client.get(study).json()["loss_range"]
    return found


def test_a_range_is_set_and_a_key_names_one_request(client: Client, store: Path) -> None:
    before = client.get(f"{STUDY}/arms").json()
    key: dict[str, Any] = {"headers": {"Idempotency-Key": "wider"}}
    for _ in "12":
        answer = put(client, [0, 400], **key)
        assert (answer.status_code, answer.content) == (204, b"")
    assert put(client, [0, 500], **key).status_code == 409
    assert span(client) == "losses from 0 to 400"
    after = client.get(f"{STUDY}/arms").json()
    for one, other in zip(before["items"], after["items"], strict=True):
        assert (one["arm"], one["seen"]) == (other["arm"], other["seen"])
        assert one["average"] == pytest.approx(other["average"])
    assert put(client, {"Lyon->north": [0, 900], "*": [0, 600]}).status_code == 204
    assert span(client) == "losses with ranges by arm"
    with mp.Study.open("lanes", store=store) as study:
        assert [entry.labels.kind for entry in study.entries()].count("range") == 2
        assert study.verify().ok


def test_null_is_a_range_that_grows(client: Client) -> None:
    assert put(client, None).status_code == 204
    play = client.post(f"{STUDY}/ask").json()
    losses = {lane: 700.0 * units for lane, units in play["plan"].items()}
    told = client.post(f"{STUDY}/plays/{play['id']}/tell", json={"losses": losses})
    assert told.status_code == 200
    assert span(client) == "losses from 0 to 1000"


@pytest.mark.parametrize(
    ("bad", "status"),
    [
        ([0, 1], 422),  # losses that were told are outside
        ([9, 3], 422),
        ([0, 1e300], 422),
        ({"nowhere": [0, 900], "*": [0, 900]}, 422),
        ([0], 400),
        ([0, 1, 2], 400),
        ("0 to 9", 400),
        ({}, 422),
    ],
    ids=str,
)
def test_a_range_that_does_not_fit_changes_nothing(client: Client, bad: Any, status: int) -> None:
    refusal = put(client, bad)
    assert refusal.status_code == status
    assert refusal.headers["content-type"] == "application/problem+json"
    assert client.request("PUT", f"{STUDY}/range", json={}).status_code == 400
    assert span(client) == "losses from 0 to 250"


def test_a_new_study_needs_no_range(client: Client) -> None:
    new, study = {"name": "new", "actions": BUDGET}, "/v1/studies/new"
    assert client.post("/v1/studies", json=new).status_code == 201
    client.post(f"{study}/ask")
    told = {"losses": {"trucks": [120.0, 180.0]}}
    assert client.post(f"{study}/plays/1/tell", json=told).status_code == 200
    assert span(client, study) == "losses from 0 to 256"
    fixed = new | {"name": "fixed", "reports": {"outside": "refuse"}}
    assert client.post("/v1/studies", json=fixed).status_code == 201
    client.post("/v1/studies/fixed/ask")
    assert client.post("/v1/studies/fixed/plays/1/tell", json=told).status_code == 422


def test_a_key_that_may_read_sets_no_range(client: Client, store: Path) -> None:
    for can, status in (("read", 403), ("play", 204)):
        headers = {"Authorization": f"Bearer {keys.create(store, can).token}"}
        assert put(client, [0, 300], headers=headers).status_code == status
    assert put(client, [0, 300]).status_code == 401
