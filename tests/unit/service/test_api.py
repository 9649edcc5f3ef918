"""The HTTP API without a server: metrics of studies."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from asgi import Client, client_of
from trucks import costs, new_study

from multiplay.service.app import create_app
from multiplay.service.auth import keys
from multiplay.service.settings import Settings
from multiplay.storage import store_at

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
    new_study(store_at(store), "others").disconnect()
    tokens = {study: keys.create(store, "read", study=study).token for study in ("lanes", "others")}
    assert not values(client)
    headers = {study: {"Authorization": f"Bearer {token}"} for study, token in tokens.items()}
    assert values(client, headers["lanes"])
    assert not values(client, headers["others"])
    unknown = {"Authorization": f"Bearer {tokens['lanes'][:-1]}x"}
    assert client.get("/metrics", headers=unknown).status_code == 401
