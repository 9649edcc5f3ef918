"""What strangers try: keys that do not fit, requests that cost too much, names with a meaning."""

import hmac
import inspect
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgi import Client, client_of
from commands import forked
from effort import TIME_LIMIT
from page_client import Place
from serving import Served, connected, serving
from trucks import STORES, new_study, store_of

import multiplay as mp
from multiplay.service.api.routes import OPERATIONS
from multiplay.service.api.routing import Operation
from multiplay.service.app import create_app
from multiplay.service.auth import keys
from multiplay.service.pages.page_route import Page
from multiplay.service.pages.routes import PAGES
from multiplay.service.settings import Settings
from multiplay.service.studies.limits import ServiceLimits
from multiplay.service.studies.manager import IdlePool
from multiplay.storage import Head, Store, store_at

TRANSPORT = {"type": "Transport", "supply": [2, 1], "demand": [1, 2]}
READS = ["", "/pending", "/plays", "/plays/1", "/arms", "/drift", "/entries"]
PLAYS = ["/ask", "/plays/1/tell", "/plays/1/close", "/plays/1/cancel", "/expire", "/learn"]
PLAYS += ["/learn-table", "/forget", "/unforget"]
BODIES: dict[str, Any] = {
    "/plays/1/tell": {"losses": {}},
    "/expire": {"older_than": 1e9},
    "/forget": {"before": 1},
    "/unforget": {"since": 0},
    "/learn": {"plan": {}, "losses": {}},
    "/learn-table": {"arm": [], "round": [], "loss": []},
}


class World:
    """A service with two studies, and a key of each kind."""

    def __init__(self, url: str, store: Path) -> None:
        self.url, self.store = url, store
        self.keys = {can: keys.create(store, can, study="lanes").token for can in keys.PERMISSIONS}
        self.master = keys.create(store, "manage").token
        self.other = keys.create(store, "manage", study="others").token

    def send(self, method: str, path: str, key: str | None, **more: Any) -> httpx.Response:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        headers |= more.pop("headers", {})
        return httpx.request(
            method,
            self.url + path,
            headers=headers,
            trust_env=False,
            verify=False,
            timeout=TIME_LIMIT,
            **more,
        )

    def verb(self, path: str, key: str | None) -> httpx.Response:
        """Read, or do, something of the study lanes."""
        if path in READS:
            return self.send("GET", f"/v1/studies/lanes{path}", key)
        return self.send("POST", f"/v1/studies/lanes{path}", key, json=BODIES.get(path, {}))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    store = tmp_path_factory.mktemp("store") / "studies.db"
    for name in ("lanes", "others"):
        with new_study(store_at(store), name) as study:
            study.ask()
    with serving(store) as url:
        yield World(url, store)


# ---------------------------------------------------------------- keys


def wrong_keys(world: World) -> dict[str, str | None]:
    id, secret = world.master.removeprefix("mp_").split("_", 1)
    return {
        "none": None,
        "nonsense": "let me in",
        "unknown": keys.make("nobody", "manage", None, 0.0).token,
        "another secret": f"mp_{id}_{secret[::-1]}",
        "half": world.master[:-1],
        "twice": world.master * 2,
    }


KINDS = ["none", "nonsense", "unknown", "another secret", "half", "twice"]


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
def test_without_a_valid_key_nothing_is_answered(world: World, kind: str) -> None:
    key = wrong_keys(world)[kind]
    for path in ["/v1/key", "/v1/studies"]:
        assert world.send("GET", path, key).status_code == 401
    for path in [*READS, *PLAYS, "/best", "/expect", "/verify"]:
        answer = world.verb(path, key)
        assert answer.status_code == 401, path
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert answer.headers["Content-Type"] == "application/problem+json"
    assert world.send("POST", "/v1/studies", key, json={"name": "x"}).status_code == 401
    assert world.send("DELETE", "/v1/studies/lanes", key).status_code == 401


def test_a_key_in_another_place_is_none(world: World) -> None:
    path = "/v1/studies/lanes"
    assert world.send("GET", f"{path}?key={world.master}", None).status_code == 401
    for headers in (
        {"Authorization": f"Basic {world.master}"},
        {"Authorization": world.master},
        {"Authorization": "Bearer"},
        {"X-Api-Key": world.master},
        {"Cookie": f"multiplay_session={world.master}"},
    ):
        assert world.send("GET", path, None, headers=headers).status_code == 401


def test_who_may_read_changes_nothing(world: World) -> None:
    before = mp.Study.open("lanes", store=world.store).head
    for path in READS:
        assert world.verb(path, world.keys["read"]).status_code == 200, path
    assert world.verb("/best", world.keys["read"]).status_code == 200
    for path in PLAYS:
        answer = world.verb(path, world.keys["read"])
        assert answer.status_code == 403, path
        assert answer.json()["expected"] == "a key with the permission play"
    for can in ("read", "play"):
        made = {"name": "lanes", "actions": TRANSPORT}
        assert world.send("POST", "/v1/studies", world.keys[can], json=made).status_code == 403
        assert world.send("DELETE", "/v1/studies/lanes", world.keys[can]).status_code == 403
    assert mp.Study.open("lanes", store=world.store).head == before


def test_a_key_of_another_study_opens_nothing(world: World) -> None:
    before = mp.Study.open("lanes", store=world.store).head
    for path in [*READS, *PLAYS, "/best", "/expect", "/verify", "/events"]:
        method = "GET" if path == "/events" else None
        answer = (
            world.send(method, f"/v1/studies/lanes{path}", world.other)
            if method
            else world.verb(path, world.other)
        )
        assert answer.status_code in (400, 403), path
        assert "plan" not in answer.json()
    listed = world.send("GET", "/v1/studies", world.other).json()
    assert listed == {"items": [{"name": "others"}], "next": None}
    made = {"name": "a third", "actions": TRANSPORT}
    assert world.send("POST", "/v1/studies", world.other, json=made).status_code == 403
    assert world.send("DELETE", "/v1/studies/lanes", world.other).status_code == 403
    missing = world.send("GET", "/v1/studies/none", world.other)
    assert missing.status_code == 403, "whether there is such a study is not said"
    assert mp.Study.open("lanes", store=world.store).head == before


def test_a_revoked_key_is_of_no_use_at_once(tmp_path: Path) -> None:
    """Not even with two services, of which each has seen the key before."""
    store = tmp_path / "studies.db"
    new_study(store_at(store)).disconnect()
    made, stays = (keys.create(store, "play") for _ in "12")
    with serving(store) as one, serving(store) as other:

        def answers(token: str) -> set[int]:
            paths = ["GET /v1/key", "GET /v1/studies/lanes/arms", "POST /v1/studies/lanes/ask"]
            headers = {"Authorization": f"Bearer {token}"}
            return {
                httpx.request(
                    method,
                    url + path,
                    headers=headers,
                    trust_env=False,
                    verify=False,
                    timeout=TIME_LIMIT,
                ).status_code
                for url in (one, other)
                for method, path in [each.split() for each in paths]
            }

        assert answers(made.token) == answers(stays.token) == {200}
        keys.revoke(store, made.row.id)
        assert answers(made.token) == {401}
        assert answers(stays.token) == {200}


def test_a_key_ends_when_it_should(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made = keys.create(world.store, "read", days=1)
    assert world.verb("/arms", made.token).status_code == 200
    later = time.time() + 2 * keys.DAY
    monkeypatch.setattr("multiplay.service.auth.authenticator.time.time", lambda: later)
    assert world.verb("/arms", made.token).status_code == 401


def test_the_key_of_a_deleted_study_does_not_open_the_next_of_that_name(tmp_path: Path) -> None:
    store = store_at(tmp_path / "studies.db")
    new_study(store).disconnect()
    made = keys.create(store, "manage", study="lanes")
    mp.Study.delete("lanes", store=store)
    new_study(store).disconnect()
    assert made.row.id not in [row.id for row in keys.list_all(store)]


# ---------------------------------------------------------------- keys of a study with a new name

CONTENTS: dict[str, Any] = {
    "tell": {"losses": {}},
    "correct": {"losses": {}},
    "expire": {"older_than": 1e9},
    "forget": {"before": 1},
    "unforget": {"since": 0},
    "learn": {"plan": {}, "losses": {}},
    "learn_table": {"arm": [], "round": [], "loss": []},
    "check_table": {"arm": [], "round": [], "loss": []},
    "set_arm_features": {"features": {}},
    "set_words": {"arm": "road"},
    "set_versus": {"rule": None},
    "set_range": {"loss_range": [0, 500]},
    "add_constraint": {"constraint": {"type": "AtMost", "limit": 9, "of": {}, "plays": 3}},
    "end_constraint": {"name": "CO2"},
    "note": {"text": "Strike in Lyon."},
    "expect": {"plan": {}},
    "rename_study": {"name": "new"},
    "copy_study": {"name": "new"},
}
OF_ALL = ("rename_study", "copy_study")  # need a key for all studies
OF_STUDY = [one for one in OPERATIONS if "{study}" in one.path]
FORBIDDEN, REFUSED = 403, (401, 403)


class Renamed:
    """Two workers, two studies that exchange their names, and a key for one of the studies."""

    def __init__(self, store: Store, workers: list[Client]) -> None:
        self.store, self.workers = store, workers
        self.mine, self.other = "lanes", "others"
        for name in (self.mine, self.other):
            new_study(store, name).disconnect()
        self.key = keys.create(store, "manage", study=self.mine)

    def send(self, worker: Client, operation: Operation, study: str) -> int:
        path = operation.path.format(study=study, play=1)
        headers = {"Authorization": f"Bearer {self.key.token}"}
        body = CONTENTS.get(operation.name)
        return worker.request(operation.method, path, json=body, headers=headers).status_code

    def read(self, worker: Client) -> int:
        """Read the study of the key, so that the worker has it in its cache."""
        (operation,) = [one for one in OF_STUDY if one.name == "get_study"]
        return self.send(worker, operation, self.mine)

    def exchange(self) -> None:
        """Exchange the names of the studies, as another process does."""
        mp.Study.rename(self.mine, "for a moment", store=self.store)
        mp.Study.rename(self.other, self.mine, store=self.store)
        mp.Study.rename("for a moment", self.other, store=self.store)
        self.mine, self.other = self.other, self.mine

    def exchange_before(self, monkeypatch: pytest.MonkeyPatch, of: Any, name: str) -> None:
        """Exchange the names when a function is called for the first time."""
        function, calls = getattr(of, name), count()

        def called(*given: Any, **named: Any) -> Any:
            if next(calls) == 0:
                self.exchange()
            return function(*given, **named)

        is_bound = inspect.ismethod(function)  # a class method
        monkeypatch.setattr(of, name, staticmethod(called) if is_bound else called)

    def heads(self) -> dict[str, Head]:
        """Return the last entry of each study."""
        found = {}
        for name in mp.Study.names(store=self.store):
            with mp.Study.open(name, store=self.store) as study:
                found[name] = study.head
        return found


@pytest.fixture(params=STORES)
def renamed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Renamed]:
    is_memory = request.param == "memory"
    name = f"memory://{tmp_path}"
    store = store_at(name) if is_memory else store_of(request.param, request, tmp_path)
    with ExitStack() as stack:
        apps = [create_app(Settings(store.url)) for _ in range(2)]
        yield Renamed(store, [stack.enter_context(client_of(app)) for app in apps])


@pytest.mark.smoke
def test_the_rights_of_a_key_follow_its_study(renamed: Renamed) -> None:
    """For each operation, and two workers that have the key with the old name in their caches."""
    one, other = renamed.workers
    assert set(CONTENTS) <= {operation.name for operation in OF_STUDY}
    for operation in OF_STUDY:
        assert [renamed.read(worker) for worker in renamed.workers] == [200, 200]
        renamed.exchange()
        if operation.name not in (*OF_ALL, "delete_study", "watch"):
            assert renamed.send(other, operation, renamed.mine) not in REFUSED, operation.name
        before = renamed.heads()
        for worker in (one, other):
            assert renamed.send(worker, operation, renamed.other) == FORBIDDEN, operation.name
        assert renamed.heads() == before, operation.name
        if operation.name in OF_ALL:
            assert renamed.send(one, operation, renamed.mine) == FORBIDDEN


def test_a_copy_gets_no_key_of_its_study(renamed: Renamed) -> None:
    assert [renamed.read(worker) for worker in renamed.workers] == [200, 200]
    with mp.Study.open("lanes", store=renamed.store) as study:
        study.copy(name="others too")
    before = renamed.heads()
    for operation in OF_STUDY:
        for worker in renamed.workers:
            assert renamed.send(worker, operation, "others too") == FORBIDDEN, operation.name
    assert renamed.heads() == before
    assert renamed.read(renamed.workers[0]) == 200


def test_a_deleted_study_takes_its_keys_with_it(renamed: Renamed) -> None:
    """Also where the other study has its name then."""
    (delete,) = [one for one in OF_STUDY if one.name == "delete_study"]
    one, other = renamed.workers
    assert [renamed.read(worker) for worker in renamed.workers] == [200, 200]
    renamed.exchange()
    assert renamed.send(one, delete, renamed.other) == FORBIDDEN
    assert renamed.send(other, delete, renamed.mine) == 204
    new_study(renamed.store, renamed.mine).disconnect()
    before = renamed.heads()
    for operation in OF_STUDY:
        for name in (renamed.mine, renamed.other):
            for worker in renamed.workers:
                assert renamed.send(worker, operation, name) == 401, operation.name
    assert renamed.heads() == before


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("operation", "of", "name"),
    [
        ("delete_study", "store", "delete"),
        ("ask", mp.Study, "together"),
        ("list_entries", IdlePool, "use"),
        ("verify", mp.Study, "open"),
        ("export", mp.Study, "open"),
    ],
)
def test_a_name_that_changes_during_a_request(
    operation: str, of: Any, name: str, renamed: Renamed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key was confirmed before; nothing of the other study is changed or returned."""
    (wanted,) = [one for one in OF_STUDY if one.name == operation]
    worker = renamed.workers[0]
    assert renamed.read(worker) == 200
    before = renamed.heads()
    kind = type(renamed.store) if of == "store" else of
    renamed.exchange_before(monkeypatch, kind, name)
    assert renamed.send(worker, wanted, renamed.mine) == FORBIDDEN
    assert renamed.heads() == {"lanes": before["others"], "others": before["lanes"]}


def test_the_rights_of_a_session_follow_the_study_of_its_key(
    renamed: Renamed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a session that begins while the study gets a new name."""
    one, other = (Place(worker, renamed.store.url) for worker in renamed.workers)
    renamed.exchange_before(monkeypatch, keys, "make")
    assert one.post("/login", key=renamed.key.token, next="/").status_code == 303
    other.client.cookies.update(one.client.cookies)
    pages = [page for page in PAGES if isinstance(page, Page) and "{study}" in page.path]
    for _ in range(2):
        before = renamed.heads()
        for page in pages:
            path = page.path.format(study=renamed.other, play=1, verb="tell")
            for place in (one, other):
                send = place.get if page.method == "GET" else place.post
                assert send(path).status_code == FORBIDDEN, path
        assert renamed.heads() == before
        for place in (one, other):
            assert place.get(f"/studies/{renamed.mine}/settings").status_code == 200
            assert f"/studies/{renamed.mine}" in place.get("/").text
        renamed.exchange()


def test_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same comparison is made, of the same length, whether or not there is such a key."""
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def watched(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return real(one, other)

    monkeypatch.setattr("multiplay.service.auth.keys.hmac.compare_digest", watched)
    made, other = (keys.make("a key", "read", None, 0.0) for _ in "12")
    claim = keys.split(made.token)
    assert claim is not None
    assert keys.is_of(made.row, claim.digest)
    assert not keys.is_of(other.row, claim.digest)
    assert not keys.is_of(None, claim.digest)
    assert not keys.is_of(None, keys.NO_DIGEST), "the digest of nobody is nobody's"
    assert compared == [(32, 32)] * 4


def test_keys_have_256_bits_and_are_kept_as_digests(tmp_path: Path) -> None:
    store = tmp_path / "studies.db"
    made = [keys.create(store, "read") for _ in range(20)]
    secrets = {one.token.split("_", 2)[2] for one in made}
    assert len(secrets) == 20
    assert all(len(secret) == 43 for secret in secrets)  # 43 letters of 6 bits
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(secret.encode() in kept for secret in secrets)


def test_keys_are_in_no_log_no_journal_and_no_answer(tmp_path: Path) -> None:
    store = tmp_path / "studies.db"
    new_study(store_at(store)).disconnect()
    made = keys.create(store, "manage")
    secret, said = made.token.split("_", 2)[2], []
    with Served(store, tmp_path / "log") as service:
        paths = {"GET": ["/v1/key", f"/v1/studies/{made.token}", f"/{made.token}?key={made.token}"]}
        paths["POST"] = ["/v1/studies", "/v1/studies/lanes/ask", "/v1/studies/lanes/learn"]
        bodies = [{}, {"key": "k"}, {"name": made.token}, [made.token], made.token]
        for method, several in paths.items():
            for path in several:
                for body in bodies:
                    headers = {"Authorization": f"Bearer {made.token}", "X-Request-Id": made.token}
                    answer = httpx.request(
                        method,
                        service.url + path,
                        json=body,
                        headers=headers,
                        trust_env=False,
                        timeout=TIME_LIMIT,
                    )
                    echoed = json.dumps([path, body])
                    if secret not in echoed:
                        said.append(answer.text + str(answer.headers))
        assert service.stop() == 0
    assert secret not in "".join(said)
    assert secret not in service.log
    assert made.row.id in service.log, "who asked is known by the part that is no secret"
    entries = [*mp.Study.open("lanes", store=store).entries()]
    assert {entry.record.header.get("by") for entry in entries[1:]} == {made.row.id}
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("studies.db*"))
    assert secret.encode() not in kept


# ---------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "example.org", "192.168.0.7", "127.0.0.1.nip.io"]
)
def test_without_keys_only_this_machine_is_listened_to(tmp_path: Path, host: str) -> None:
    said = forked("serve", "--host", host, "--port", "0", "--store", f"{tmp_path / 'none.db'}")
    assert said.returncode == 2
    assert "a loopback address" in said.stderr
    assert "multiplay key create" in said.stderr


def test_with_keys_a_service_that_others_reach_is_never_open(tmp_path: Path) -> None:
    """Even if all keys are revoked while it runs."""
    store = tmp_path / "studies.db"
    new_study(store_at(store)).disconnect()
    made = keys.create(store, "manage")
    with serving(store, open=False) as url:
        keys.revoke(store, made.row.id)
        assert (
            httpx.get(
                f"{url}/v1/studies", trust_env=False, verify=False, timeout=TIME_LIMIT
            ).status_code
            == 401
        )


def test_a_service_without_keys_closes_when_there_is_one(tmp_path: Path) -> None:
    store = tmp_path / "studies.db"
    new_study(store_at(store)).disconnect()
    with serving(store) as url:
        assert (
            httpx.get(
                f"{url}/v1/studies", trust_env=False, verify=False, timeout=TIME_LIMIT
            ).status_code
            == 200
        )
        keys.create(store, "read")
        assert (
            httpx.get(
                f"{url}/v1/studies", trust_env=False, verify=False, timeout=TIME_LIMIT
            ).status_code
            == 401
        )
        asked = httpx.post(
            f"{url}/v1/studies/lanes/ask", trust_env=False, verify=False, timeout=TIME_LIMIT
        )
        assert asked.status_code == 401


# ---------------------------------------------------------------- requests that cost too much


ATTACKS: dict[str, Any] = {
    "a million arms": {"type": "Transport", "supply": [1] * 1000, "demand": [1] * 1000},
    "a million rows": {"type": "Assignment", "rows": 10**6},
    "a thousand million units": {"type": "Budget", "total": 10**9, "caps": [10**9] * 3},
    "units beyond all": {"type": "Transport", "supply": [10**18], "demand": [10**18]},
    "a bag for a year": {"type": "Knapsack", "weights": [1.0, 1e-9], "capacity": 1e12},
    "minutes to enumerate": {
        "type": "IntegerProgram",
        "A": [[(7 * i + 3) % 1009 + 1000 for i in range(400)]],
        "b": [200_003],
        "bounds": {"type": "tuple", "items": [0, 5]},
    },
    "a function": {"type": "OracleSet", "best": "print"},
    "a class of others": {"type": "os.system", "command": "true"},
    "a class of Python": {"type": "subprocess.Popen", "args": ["true"]},
    "nothing": {"type": "Explicit", "actions": []},
}


@pytest.mark.parametrize("attack", list(ATTACKS))
def test_sets_that_cost_too_much_are_refused(world: World, attack: str) -> None:
    for body, path in (
        ({"name": "attack", "actions": ATTACKS[attack]}, "/v1/studies"),
        ({"actions": ATTACKS[attack]}, "/v1/studies/lanes/ask"),
        ({"actions": ATTACKS[attack]}, "/v1/studies/lanes/best"),
    ):
        answer = world.send("POST", path, world.master, json=body)
        assert answer.status_code == 422, answer.text
        assert answer.json()["argument"].startswith("actions")
        assert len(answer.content) < 5_000, "an answer is not as long as the question"
    assert "attack" not in mp.Study.names(store=world.store)


BODIES_AS_TEXT = {
    "deep": b'{"losses": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep tables": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "NaN": b'{"losses": {"Lyon->north": [NaN]}}',
    "infinite": b'{"losses": {"Lyon->north": [Infinity]}}',
    "infinite in disguise": b'{"losses": {"Lyon->north": [1e999]}}',
    "a number of a megabyte": b'{"losses": ' + b"9" * 900_000 + b"}",
    "no text": b'{"losses": "\xff"}',
    "half a letter": rb'{"losses": {"\ud800": [1]}}',
    "NUL": rb'{"losses": {"\u0000": [1]}}',
    "twice": b'{"losses": {}, "losses": {}}',
    "nothing": b"\0" * 1000,
}


@pytest.mark.parametrize("kind", list(BODIES_AS_TEXT))
def test_bodies_with_a_trap_are_refused(world: World, kind: str) -> None:
    answer = world.send(
        "POST",
        "/v1/studies/lanes/plays/1/tell",
        world.master,
        content=BODIES_AS_TEXT[kind],
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code in (400, 422), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_form_of_another_site_is_no_request(world: World) -> None:
    """What a browser may send to another site without asking is never JSON."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = world.send(
            "POST",
            "/v1/studies/lanes/ask",
            world.master,
            content=b'{"key": "x"}',
            headers={"Content-Type": kind},
        )
        assert answer.status_code == 415


def test_plays_do_not_wait_without_end(tmp_path: Path) -> None:
    store = tmp_path / "studies.db"
    new_study(store_at(store)).disconnect()
    with serving(store, limits=ServiceLimits(pending=2)) as url:
        path = f"{url}/v1/studies/lanes/ask"
        said = [
            httpx.post(path, json={"key": k}, trust_env=False, verify=False, timeout=TIME_LIMIT)
            for k in ("1", "2", "3", "1")
        ]
    assert [answer.status_code for answer in said] == [200, 200, 409, 200]


# ---------------------------------------------------------------- names with a meaning


NAMES = ["../../etc/passwd", "..", "%2e%2e", "a/b", "a%2Fb", "100 %", "a\\b", "'; DROP TABLE x; --"]
NAMES += ["<script>alert(1)</script>", "Zürich → 東京", "{{7*7}}", "${7*7}", "a?b=c#d", " x "]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_nothing_but_names(world: World, name: str) -> None:
    made = {"name": name, "actions": TRANSPORT}
    answer = world.send("POST", "/v1/studies", world.master, json=made)
    if name == "..":
        assert answer.status_code == 422
        return
    assert answer.status_code == 201, answer.text
    assert answer.json()["name"] == name
    assert mp.Study.open(name, store=world.store).name == name
    with connected(world.url, key=world.master, study=name) as study:
        study.ask(key=name)
        assert study.pending()[0].key == name
        study.delete(name)
    assert name not in mp.Study.names(store=world.store)


@pytest.mark.parametrize("name", ["a\r\nSet-Cookie: x=1", "a\0b", "\x1b[2J", "", "n" * 300])
def test_names_that_break_lines_are_refused(world: World, name: str) -> None:
    made = {"name": name, "actions": TRANSPORT}
    answer = world.send("POST", "/v1/studies", world.master, json=made)
    assert answer.status_code in (400, 422)
    assert "set-cookie" not in answer.headers


def test_where_the_store_is_concerns_no_client(world: World) -> None:
    for name in ("nowhere", "lanes"):
        made = {"name": name, "actions": {"type": "Transport", "supply": [1], "demand": [2]}}
        told = world.send("POST", "/v1/studies", world.master, json=made).text
        told += world.send("GET", f"/v1/studies/{name}x", world.master).text
        assert str(world.store.parent) not in told


def test_behind_a_proxy_cookies_are_sent_by_https_only(tmp_path: Path) -> None:
    store = tmp_path / "studies.db"
    key = keys.create(store, "manage").token
    with (
        serving(store, https=True) as url,
        httpx.Client(base_url=url, trust_env=False, verify=False, timeout=TIME_LIMIT) as client,
    ):
        page = client.get("/login")
        cookie = page.headers["Set-Cookie"]
        assert cookie.startswith("__Host-")
        for flag in ("Secure", "HttpOnly", "SameSite=strict", "Path=/"):
            assert flag.lower() in cookie.lower()
        assert "Domain" not in cookie
    assert key not in page.text


def test_a_policy_that_takes_minutes_on_a_set_is_refused(world: World) -> None:
    """Each alone is fine: what they cost together is looked at as well."""
    large = {"type": "Transport", "supply": [30] * 8, "demand": [30] * 8}
    made = {"name": "attack", "actions": large, "policy": {"type": "ESCB"}}
    answer = world.send("POST", "/v1/studies", world.master, json=made)
    assert answer.status_code == 422, answer.text
    assert answer.json()["argument"] == "policy"
    made = {"name": "small", "actions": TRANSPORT, "policy": {"type": "ESCB"}}
    assert world.send("POST", "/v1/studies", world.master, json=made).status_code == 201
    for verb in ("ask", "best"):
        path = f"/v1/studies/small/{verb}"
        assert world.send("POST", path, world.master, json={}).status_code == 200
        today = world.send("POST", path, world.master, json={"actions": large})
        assert today.status_code == 422
    world.send("DELETE", "/v1/studies/small", world.master)


def test_a_study_meets_only_so_many_arms(tmp_path: Path) -> None:
    store = tmp_path / "studies.db"
    new_study(store_at(store)).disconnect()
    with serving(store, limits=ServiceLimits(arms=7)) as url:
        for day, status in (("Monday", 200), ("Tuesday", 422), ("Monday", 200)):
            names = [["Lyon", f"{day} depot"], ["north", "south"]]
            today = {"type": "Transport", "supply": [1, 1], "demand": [1, 1], "names": names}
            answer = httpx.post(
                f"{url}/v1/studies/lanes/ask",
                json={"actions": today},
                trust_env=False,
                timeout=TIME_LIMIT,
            )
            assert answer.status_code == status, answer.text
