"""A service that is killed again and again: nothing acknowledged is lost, nothing is doubled."""

import os
import random
import re
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from effort import TIME_LIMIT
from pages import ROOT
from postgres import Server
from processes import wait_until
from serving import Served, connected
from trucks import euros, new_study, store_of, verified

import multiplay as mp
from multiplay.service.auth import keys
from multiplay.service.server.run import address, bound
from multiplay.storage import Store
from multiplay.studies.entry_codec import ASK, TELL

CADDYFILE = ROOT / "deploy" / "Caddyfile"


class Client(threading.Thread):
    """Asks and tells until it is told to end, and keeps what was acknowledged."""

    def __init__(
        self, url: str, key: str, end: threading.Event, patience: float = TIME_LIMIT
    ) -> None:
        super().__init__()
        self._study = mp.connect(url, key=key, study="lanes", timeout=TIME_LIMIT, patience=patience)
        self._end = end
        self.asked: list[tuple[int, dict[str, int]]] = []
        self.told: list[int] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with self._study as study:
                while not self._end.is_set():
                    play = study.ask()
                    self.asked.append((play.id, play.plan))
                    told = study.tell(play.id, euros(play))
                    assert not told.repeated, "to repeat a request is not to tell again"
                    self.told.append(play.id)
        except BaseException as error:
            self.error = error


def killed(
    store: Store, tmp_path: Path, clients: int, kills: int, wait: Callable[[list[Client]], None]
) -> None:
    """Let clients work while the service is killed, and compare what they and the journal know.

    ``wait`` is called before each kill, and before the end.
    """
    new_study(store).disconnect()
    url, key = getattr(store, "given_url", store.url), keys.create(store, "play").token
    end = threading.Event()
    with Served(url, tmp_path / "log", "--workers", "2") as service:
        crew = [Client(service.url, key, end) for _ in range(clients)]
        for client in crew:
            client.start()
        for _ in range(kills):
            wait(crew)
            service.kill()
            service.start()
        wait(crew)
        end.set()
        for client in crew:
            client.join(2 * TIME_LIMIT)
            assert client.error is None, client.error
        assert service.stop() == 0
    with mp.Study.open("lanes", store=store) as study:
        compare(crew, study)
    assert key not in service.log


def compare(crew: list[Client], study: mp.Study) -> None:
    asked = {id: plan for client in crew for id, plan in client.asked}
    told = [id for client in crew for id in client.told]
    written: Counter[tuple[str, Any]] = Counter()
    for entry in study.entries():
        written[entry.labels.kind, entry.labels.play] += 1
        if entry.labels.kind == ASK:
            assert entry.labels.play is not None
            plan = {arm: n for arm, n in asked[entry.labels.play].items() if n}
            assert entry.record.header["plan"] == plan
    assert len(asked) == sum(len(client.asked) for client in crew), "no play is given twice"
    assert {id for kind, id in written if kind == ASK} == set(asked), "no play more, none less"
    assert sorted(id for kind, id in written if kind == TELL) == sorted(told)
    assert max(written.values()) == 1
    assert verified(study).ok


def test_a_service_that_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    store = mp.storage.store_at(tmp_path / "studies.db")
    killed(store, tmp_path, 6, 1, lambda crew: wait_for_plays(crew, 40))


def wait_for_plays(crew: list[Client], number: int) -> None:
    """Wait until the clients have told this number of further plays."""
    enough = told_by(crew) + number
    wait_until(lambda: told_by(crew) >= enough)


def told_by(crew: list[Client]) -> int:
    return sum(len(client.told) for client in crew)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_sixteen_clients_for_a_minute_and_ten_kills(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    rng = random.Random(7)
    store = store_of(kind, request, tmp_path)
    killed(store, tmp_path, 16, 10, lambda _: time.sleep(rng.uniform(3.0, 9.0)))


class FleetClient(threading.Thread):
    """Asks and tells random studies, several in a request, and counts what was acknowledged."""

    def __init__(self, url: str, key: str, seed: int, names: list[str], end: threading.Event):
        super().__init__()
        self._studies = connected(url, key=key).studies
        self._chance, self._names, self._end = random.Random(seed), names, end
        self.asked: Counter[tuple[str, int]] = Counter()
        self.told: Counter[tuple[str, int]] = Counter()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._end.is_set():
                asked = list(self._studies.ask(self._chance.sample(self._names, 5)))
                assert [one.error for one in asked if one.error] == []
                self.asked.update((one.study, one.result.id) for one in asked)
                bills = [(one.study, one.result, euros(one.result)) for one in asked]
                told = list(self._studies.tell(bills))
                assert [one.error for one in told if one.error] == []
                assert not [one for one in told if one.result.repeated]
                self.told.update((one.study, one.result.id) for one in told)
        except BaseException as error:
            self.error = error


@pytest.mark.parametrize(
    ("studies", "clients", "kills", "restarts"),
    [
        pytest.param(20, 2, 1, 1, marks=pytest.mark.slow),
        pytest.param(1_000, 16, 20, 5, marks=pytest.mark.soak),
    ],
)
def test_many_studies_lose_and_double_nothing(
    studies: int, clients: int, kills: int, restarts: int, postgresql: Server, tmp_path: Path
) -> None:
    """Workers are killed, and PostgreSQL is started again, while clients ask and tell."""
    store = mp.storage.store_at(postgresql.new_url())
    new_study(store, "city 0").disconnect()
    names = [f"city {k}" for k in range(studies)]
    first = next(iter(store.open("city 0").entries()))
    for name in names[1:]:
        store.create(name, first.record, first.labels).close()
    key, end, chance = keys.create(store, "play").token, threading.Event(), random.Random(3)
    url = getattr(store, "given_url", store.url)
    with Served(url, tmp_path / "log", "--workers", "2") as service:
        crew = [FleetClient(service.url, key, k, names, end) for k in range(clients)]
        for client in crew:
            client.start()
        faults = ["kill"] * kills + ["restart"] * restarts
        chance.shuffle(faults)
        for fault in faults:
            enough = sum(one.told.total() for one in crew) + 20 * clients
            wait_until(lambda: sum(one.told.total() for one in crew) >= enough)  # noqa: B023
            if fault == "kill":
                service.kill()
                service.start()
            else:
                postgresql.stop("immediate")
                postgresql.start()
        end.set()
        for client in crew:
            client.join(2 * TIME_LIMIT)
            assert client.error is None, client.error
    asked, told = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    for client in crew:
        asked += client.asked
        told += client.told
    assert max(asked.values()) == max(told.values()) == 1, "no play is given or told twice"
    written = {ASK: set[tuple[str, int]](), TELL: set[tuple[str, int]]()}
    for name in names:
        with mp.Study.open(name, store=store) as study:
            entries = list(study.entries())
            assert study.verify().ok
        for kind, found in written.items():
            plays = [entry.labels.play for entry in entries if entry.labels.kind == kind]
            assert len(plays) == len({*plays})
            found.update((name, play) for play in plays if play is not None)
    assert (written[ASK], written[TELL]) == ({*asked}, {*told})


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_two_services_on_one_store_of_which_one_is_killed(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    two_services(store_of(kind, request, tmp_path), tmp_path, 8, 6)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("caddy") is None, reason="needs caddy")
def test_no_request_is_lost_while_services_are_replaced(tmp_path: Path) -> None:
    """The clients send no request twice: the proxy finds a service that is ready for each."""
    store = mp.storage.store_at(tmp_path / "studies.db")
    new_study(store).disconnect()
    key, end = keys.create(store, "play").token, threading.Event()
    log_one, log_two = tmp_path / "one", tmp_path / "two"
    with (
        Served(store.url, log_one, "--drain", "3") as one,
        Served(store.url, log_two, "--drain", "3") as other,
        proxied([one.url, other.url], tmp_path) as url,
    ):
        wait_until(lambda: is_ready(one.url) and is_ready(url))
        crew = [Client(url, key, end, patience=0.0) for _ in range(3)]
        for client in crew:
            client.start()
        for service in (one, other):
            wait_for_plays(crew, 20)
            assert service.stop() == 0
            wait_for_plays(crew, 20)
            service.start()
            wait_until(lambda url=service.url: is_ready(url))  # type: ignore[misc]
        wait_for_plays(crew, 20)
        end.set()
        for client in crew:
            client.join(2 * TIME_LIMIT)
            assert client.error is None, client.error
    with mp.Study.open("lanes", store=store) as study:
        compare(crew, study)


@contextmanager
def proxied(urls: list[str], folder: Path) -> Iterator[str]:
    """Start Caddy with the configuration of the project before services; give its address."""
    with bound("127.0.0.1", 0) as listener:
        url = address(listener)
    environment = os.environ | {
        "SITE": url,
        "SERVICES": " ".join(one.removeprefix("http://") for one in urls),
        "CADDY_ADMIN": f"unix/{folder / 'admin'}",
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(CADDYFILE)]
    with (folder / "caddy").open("wb") as log:
        caddy = subprocess.Popen(command, env=environment, stderr=log)
    try:
        yield url
    finally:
        caddy.terminate()
        caddy.wait(TIME_LIMIT)


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=TIME_LIMIT, trust_env=False).is_success
    except httpx.TransportError:
        return False


@pytest.mark.slow
def test_two_services_on_one_store_in_small(tmp_path: Path) -> None:
    two_services(mp.storage.store_at(tmp_path / "studies.db"), tmp_path, 2, 1)


def two_services(store: Store, tmp_path: Path, clients: int, kills: int) -> None:
    """Let clients of two services work on one study, while one service or the other is killed."""
    new_study(store).disconnect()
    url, key = getattr(store, "given_url", store.url), keys.create(store, "play").token
    end = threading.Event()
    with Served(url, tmp_path / "one") as one, Served(url, tmp_path / "two") as other:
        services = (one, other)
        crew = [Client(services[k % 2].url, key, end) for k in range(clients)]
        for client in crew:
            client.start()
        for k in range(kills):
            wait_for_plays(crew, 20 * clients)
            services[k % 2].kill()
            services[k % 2].start()
        wait_for_plays(crew, 20 * clients)
        end.set()
        for client in crew:
            client.join(2 * TIME_LIMIT)
            assert client.error is None, client.error
        assert [service.stop() for service in services] == [0, 0]
    with mp.Study.open("lanes", store=store) as study:
        compare(crew, study)


# ------------------------------------------------------------ many requests


def resources(client: httpx.Client) -> tuple[float, float]:
    """Return the resident memory in bytes, and the number of open files."""
    text = client.get("/metrics").text
    names = ("process_resident_memory_bytes", "process_open_fds")
    memory, files = (float(re.findall(rf"(?m)^{name} (.*)$", text)[0]) for name in names)
    return memory, files


def many_requests(tmp_path: Path, rounds: int, most: float) -> None:
    """Send five requests a round; after the first tenth, memory and files do not grow."""
    store = tmp_path / "studies.db"
    new_study(mp.storage.store_at(store)).disconnect()
    with (
        Served(store, tmp_path / "log") as service,
        httpx.Client(
            base_url=service.url, trust_env=False, verify=False, timeout=TIME_LIMIT
        ) as client,
    ):
        base, before = "/v1/studies/lanes", (0.0, 0.0)
        for k in range(rounds):
            if k == rounds // 10:
                before = resources(client)
            play = client.post(f"{base}/ask", headers={"Idempotency-Key": f"ask-{k}"}).json()
            losses = {arm: [100.0] * units for arm, units in play["plan"].items() if units}
            body = {"losses": losses}
            responses = [
                client.post(f"{base}/plays/{play['id']}/tell", json=body),
                client.get(f"{base}/arms"),
                client.get(f"{base}/pending"),
                client.get("/v1/studies/nowhere"),
            ]
            assert [one.status_code for one in responses] == [200, 200, 200, 404]
            if k % 50 == 0:  # new connections, also such as are left in the middle
                httpx.get(
                    f"{service.url}/healthz", trust_env=False, verify=False, timeout=TIME_LIMIT
                )
                with client.stream("GET", f"{base}/events") as stream:
                    next(stream.iter_lines())
        after = resources(client)
    assert after[0] - before[0] < most
    assert after[1] <= before[1] + 3


@pytest.mark.soak
def test_twenty_thousand_requests_take_no_more_memory_and_files(tmp_path: Path) -> None:
    many_requests(tmp_path, 4_000, 30e6)


@pytest.mark.slow
def test_five_hundred_requests_take_no_more_files(tmp_path: Path) -> None:
    many_requests(tmp_path, 100, 60e6)
