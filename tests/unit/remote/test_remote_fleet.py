"""Verbs for many studies of a service: each study has its own result or error."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from commands import called
from effort import TIME_LIMIT
from refusal import refused
from serving import connected, serving
from trucks import euros, new_study

import multiplay as mp
from multiplay.errors import NotFound
from multiplay.service.auth import keys
from multiplay.storage import MemoryStore, Store, store_at

NAMES = ["west/lyon", "west/nice", "east/metz"]


def filled(store: Store) -> list[str]:
    """Create three studies with different seeds; return their names."""
    for seed, name in enumerate(NAMES):
        new_study(store, name, seed=seed).disconnect()
    return NAMES


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    store = store_at(tmp_path / "studies.db")
    filled(store)
    with serving(store.url) as found:
        yield found


def test_each_study_gets_what_it_gets_alone(url: str) -> None:
    here = MemoryStore()
    filled(here)
    with connected(url) as service:
        studies = service.studies
        assert studies.names("west/") == NAMES[:2]
        asked = list(studies.ask(NAMES, key="2026-11-18"))
        assert [one.study for one in asked] == NAMES
        again = list(studies.ask(NAMES, key="2026-11-18"))
        assert [one.result.id for one in asked] == [one.result.id for one in again]
        told = list(studies.tell((one.study, one.result, euros(one.result)) for one in asked))
        by_key = list(studies.ask({name: {"at_most": {"Lyon->north": 1}} for name in NAMES}))
        receipts = list(studies.tell([(NAMES[0], by_key[0].result.id, euros(by_key[0].result))]))
        assert receipts[0].result.missing == 0
        for name, one, receipt, second in zip(NAMES, asked, told, by_key, strict=True):
            with mp.Study.open(name, store=here) as study:
                play = study.ask(key="2026-11-18")
                assert one.result.plan == play.plan
                assert one.result.expected == play.expected
                assert receipt.result == study.tell(play, euros(play))
                assert second.result.plan == study.ask(at_most={"Lyon->north": 1}).plan


def test_what_fails_for_one_study_does_not_stop_the_others(url: str) -> None:
    with connected(url) as service:
        wrong = {NAMES[1]: {"exclude": ["Lyon->Mars"]}}
        found = list(service.studies.ask({NAMES[0]: {}, "west/mars": {}, **wrong, NAMES[2]: {}}))
        assert [one.error is None for one in found] == [True, False, False, True]
        assert isinstance(found[1].error, NotFound)
        assert isinstance(found[2].error, mp.InvalidInput)
        assert "Lyon->Mars" in str(found[2].error)
        [late] = service.studies.tell([(NAMES[0], 17, {})])
        assert isinstance(late.error, NotFound)
        with refused("studies"):
            list(service.studies.ask("west/lyon"))


def test_a_request_for_many_is_checked_and_repeated(url: str) -> None:
    """The items of a repeated request are those of the first one; a malformed item is a problem."""
    send: dict[str, Any] = {"url": f"{url}/v1/plays", "timeout": TIME_LIMIT, "trust_env": False}
    items = [
        {"study": NAMES[0]},
        {"study": NAMES[0]},
        {"study": ""},
        {"study": NAMES[1], "wrong": 1},
    ]
    twice = [
        httpx.post(**send, json={"items": items}, headers={"Idempotency-Key": "k"}) for _ in "12"
    ]
    first, second = (one.json() for one in twice)
    for one in (*first["items"], *second["items"]):
        one.get("problem", {}).pop("instance", None)  # the id of the request
    assert first == second
    assert first["failed"] == 2
    assert [one["result"]["id"] for one in first["items"][:2]] == [1, 2]
    assert [one["problem"]["argument"] for one in first["items"][2:]] == ["name", "wrong"]
    wrong: Any
    bad = httpx.post(**send, json={"items": items}, headers={"Idempotency-Key": "a b"})
    assert bad.status_code == 400
    for wrong in (
        {"items": []},
        {"items": 3},
        {},
        {"items": [{}]},
        {"items": [{"study": "a"}] * 1001},
    ):
        assert httpx.post(**send, json=wrong).status_code == 400
    [other] = httpx.post(
        **send, json={"items": items[:1] + items[3:]}, headers={"Idempotency-Key": "k"}
    ).json()["items"][1:]
    assert other["problem"]["status"] in (400, 409)


def test_a_key_for_one_study_asks_no_other(tmp_path: Path) -> None:
    store = store_at(tmp_path / "studies.db")
    filled(store)
    key = keys.create(store, "play", study=NAMES[0]).token
    with serving(store.url, open=False) as url, connected(url, key=key) as service:
        found = list(service.studies.ask(NAMES))
        assert [one.error is None for one in found] == [True, False, False]


@pytest.mark.parametrize("by_service", [False, True])
def test_the_command_asks_again_what_is_asked(by_service: bool, url: str, tmp_path: Path) -> None:
    place = ["--url", url] if by_service else ["--store", f"sqlite:///{tmp_path}/studies.db"]
    file = tmp_path / "plans.jsonl"
    day = ["--at", "2026-11-18", *place]
    assert (
        "3 plans of 2026-11-18" in called("fleet", "ask", "--all", "--out", str(file), *day).stdout
    )
    written = file.read_text()
    assert [line.count('"key": "2026-11-18"') for line in written.splitlines()] == [1, 1, 1]
    called("fleet", "ask", *NAMES, "--out", str(file), *day)
    assert file.read_text().splitlines() == sorted(
        written.splitlines(), key=lambda line: [name in line for name in NAMES[::-1]]
    )
    table = called("fleet", "ask", "--prefix", "west/", *day).stdout
    assert "west/lyon" in table
    assert "east" not in table
    failed = called("fleet", "ask", "west/lyon", "west/mars", *day)
    assert failed.returncode == 1
    assert "west/lyon" in failed.stdout
    assert "1 of 2 studies failed" in failed.stderr
    assert "studies" in called("fleet", "ask", *day).stderr
    assert "--at" in called("fleet", "ask", "--all", *place).stderr
