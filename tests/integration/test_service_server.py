"""The service as processes and sockets, around an application without studies."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import httpx
import pytest
import tiny_service
from effort import TIME_LIMIT
from processes import alive, wait_until
from typer.testing import CliRunner
from uvicorn.server import ServerState

from multiplay.cli import app
from multiplay.errors import InvalidInput
from multiplay.service.auth import keys
from multiplay.service.server.connection import LIMITS as LIMITS_OF_ALL
from multiplay.service.server.connection import PIPELINED, ConnectionLimits, LimitedConfig
from multiplay.service.server.middleware import RequestLog
from multiplay.service.server.run import IDLE, bound
from multiplay.service.server.workers import PREFIX
from multiplay.service.settings import VARIABLE, Settings
from multiplay.service.studies import demonstration
from multiplay.service.studies.limits import ServiceLimits

PLACE = "/v1/studies/lanes"
KEY = "mp_0123456789ab_" + "s3cr3t-" * 6
LIMITS = ServiceLimits(seconds=3.0, connections=40)
HUNDRED_MEGABYTES = 100 * 2**20


class Service:
    """A service in a process of its own, and its log."""

    def __init__(self, folder: Path, settings: Settings, factory: str) -> None:
        self.settings, self.log_file = settings, folder / "log"
        environment = os.environ | {VARIABLE: settings.to_text(), "TMPDIR": str(folder)}
        environment["TINY_SERVICE"] = factory
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, tiny_service.__file__],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self.output: IO[bytes] = self.process.stdout  # type: ignore[assignment]
        self.url = self.output.readline().decode().strip()
        self.client = httpx.Client(
            base_url=self.url, trust_env=False, verify=False, timeout=TIME_LIMIT
        )

    def connect(self) -> socket.socket:
        url = httpx.URL(self.url)
        assert url.port is not None
        return socket.create_connection((url.host, url.port), timeout=IDLE - 5)

    def say(self, *lines: str) -> bytes:
        """Send a request as it is, and return all that comes until the service hangs up."""
        with self.connect() as line:
            line.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
            return everything(line)

    def workers(self) -> list[int]:
        """Return the workers that answer eight requests, which come at the same time.

        Of requests that come one after the other, one worker may take all.
        """
        request = f"GET {PLACE}/process HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        with ExitStack() as stack:
            lines = [stack.enter_context(self.connect()) for _ in range(8)]
            for line in lines:
                line.sendall(request.encode())
            return [int(everything(line).split(b"\r\n")[-1]) for line in lines]

    def all_workers(self) -> set[int]:
        """Return all workers, when all have started."""
        started = set[int]()
        while len(started) < self.settings.workers:
            started.update(self.workers())
        return started

    def log(self) -> list[dict[str, Any]]:
        """Return the lines that are written; the last may be on its way."""
        return [json.loads(line) for line in self.log_file.read_text().split("\n")[:-1]]

    def measure(self, name: str) -> float:
        """Return the sum of a measure, whatever its labels."""
        text = self.client.get("/metrics").text
        return sum(float(found[1]) for found in re.finditer(rf"(?m)^{name}(?:{{.*}})? (.*)$", text))

    def end(self) -> None:
        self.client.close()
        for process in alive(self.process.pid):  # all of its session
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(process, signal.SIGKILL)
        self.process.wait()
        self.output.close()


@contextmanager
def service(folder: Path, factory: str = "make", **settings: Any) -> Iterator[Service]:
    usual = Settings("memory:", port=0, limits=LIMITS)
    running = Service(folder, replace(usual, **settings), factory)
    try:
        yield running
    finally:
        running.end()


@pytest.fixture(scope="module")
def one() -> Iterator[Service]:
    with tempfile.TemporaryDirectory() as folder, service(Path(folder)) as running:
        yield running


@pytest.fixture(scope="module")
def hasty() -> Iterator[Service]:
    """A service that is impatient, yet not with a client that a busy machine delays a little."""
    limits = replace(LIMITS, seconds=2.0)
    with tempfile.TemporaryDirectory() as folder, service(Path(folder), limits=limits) as running:
        yield running


def everything(line: socket.socket) -> bytes:
    parts = []
    while part := line.recv(2**16):
        parts.append(part)
    return b"".join(parts)


def request_wait(line: socket.socket) -> None:
    """Send a request that is answered when the service stops; return when it is being handled."""
    expects = "Host: localhost\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n"
    line.sendall(f"GET {PLACE}/wait HTTP/1.1\r\n{expects}".encode())
    assert line.recv(2**16) == b"HTTP/1.1 100 Continue\r\n\r\n"
    line.sendall(b"x")


def is_refused(service: Service) -> bool:
    try:
        service.connect().close()
    except ConnectionRefusedError:
        return True
    return False


def until(line: socket.socket, end: bytes) -> bytes:
    """Return what comes until it is as it should be."""
    answer = b""
    while not re.search(end, answer):
        part = line.recv(2**16)
        assert part, answer
        answer += part
    return answer


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def problem(answer: bytes) -> dict[str, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"content-security-policy: default-src 'none'" in head
    said: dict[str, Any] = json.loads(body)
    assert said["status"] == status(answer)
    return said


# requests that are refused


@pytest.mark.smoke
def test_headers_that_do_not_come_are_not_waited_for(hasty: Service) -> None:
    with hasty.connect() as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        assert problem(everything(line))["type"] == "urn:multiplay:request-too-slow"
    with hasty.connect() as line:
        assert everything(line) == b"", "who says nothing is told nothing"


def test_the_next_request_must_come_as_quickly(hasty: Service) -> None:
    with hasty.connect() as line:
        line.sendall(f"GET {PLACE}/process HTTP/1.1\r\nHost: localhost\r\n\r\nGET".encode())
        answers = everything(line)
    assert status(answers) == 200
    assert b"HTTP/1.1 408" in answers


def test_an_empty_line_is_no_way_to_keep_a_connection(hasty: Service) -> None:
    with hasty.connect() as line:
        line.sendall(f"GET {PLACE}/process HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert status(until(line, rb"\r\n\r\n\d+$")) == 200
        line.sendall(b"\r\n")
        assert everything(line) == b""


def test_a_body_that_does_not_come_is_not_waited_for(hasty: Service) -> None:
    with hasty.connect() as line:
        line.sendall(f"POST {PLACE}/size HTTP/1.1\r\nHost: localhost\r\n".encode())
        line.sendall(b"Content-Length: 10\r\n\r\n12345")
        assert problem(everything(line))["title"] == "Request too slow"


@pytest.mark.parametrize(
    "headers",
    [
        [f"X-{number}: {'x' * 1000}" for number in range(20)],
        ["X-Long: " + "x" * 100_000],
    ],
)
def test_headers_have_a_limit(one: Service, headers: list[str]) -> None:
    answer = one.say(f"GET {PLACE}/process HTTP/1.1", "Host: localhost", *headers)
    assert problem(answer)["type"] == "urn:multiplay:headers-too-large"


def test_an_endless_address_or_trailer_has_a_limit(one: Service) -> None:
    with one.connect() as line:
        line.sendall(b"GET /" + b"x" * 2**20)
        assert status(everything(line)) == 431
    with one.connect() as line:
        line.sendall(f"POST {PLACE}/size HTTP/1.1\r\nHost: localhost\r\n".encode())
        line.sendall(b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Trailer: ")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):  # nobody takes it
            line.sendall(b"x" * HUNDRED_MEGABYTES)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_a_hundred_megabytes_is_refused_politely(one: Service, chunked: bool) -> None:
    """The client sends all of it before it reads, and still learns why it was refused."""
    part = b"x" * 2**20
    kind = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {HUNDRED_MEGABYTES}"
    before = one.measure("process_resident_memory_bytes")
    with one.connect() as line:
        line.sendall(f"POST {PLACE}/size HTTP/1.1\r\nHost: localhost\r\n{kind}\r\n\r\n".encode())
        for _ in range(HUNDRED_MEGABYTES // len(part)):
            line.sendall(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
        assert problem(everything(line))["type"] == "urn:multiplay:body-too-large"
    assert one.measure("process_resident_memory_bytes") < before + HUNDRED_MEGABYTES / 4


def test_a_body_just_within_the_limit_is_taken(one: Service) -> None:
    size = LIMITS.body
    assert one.client.post(f"{PLACE}/size", content=b"x" * size).json()["size"] == size
    chunks = (b"x" * 1024 for _ in range(size // 1024))
    assert one.client.post(f"{PLACE}/size", content=chunks).json()["size"] == size
    assert one.client.post(f"{PLACE}/size", content=b"x" * (size + 1)).status_code == 413


def test_a_client_that_waits_for_leave_is_refused_without_a_body(one: Service) -> None:
    answer = one.say(
        f"POST {PLACE}/size HTTP/1.1",
        "Host: localhost",
        "Expect: 100-continue",
        f"Content-Length: {HUNDRED_MEGABYTES}",
    )
    assert status(answer) == 413
    assert answer.count(b"HTTP/1.1") == 1, "what follows would be read as a body"


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 5", "Transfer-Encoding: chunked", "", "0"],
        ["Content-Length: 5", "Content-Length: 6", "", "hello"],
        ["Content-Length: +5", "", "hello"],
        ["Transfer-Encoding: chunked, identity", "", "0"],
        ["Transfer-Encoding : chunked", "", "0"],
        ["X-Folded: a\r\n b: c"],
        ["X-Null: a\0b"],
    ],
)
def test_ambiguous_requests_are_refused(one: Service, lines: list[str]) -> None:
    answer = one.say(f"POST {PLACE}/size HTTP/1.1", "Host: localhost", *lines)
    assert problem(answer)["type"] == "urn:multiplay:malformed-request", "and nothing else"


def test_a_trailer_is_no_header(one: Service) -> None:
    answer = one.say(
        f"POST {PLACE}/size HTTP/1.1",
        "Host: localhost",
        "Connection: close",
        "Transfer-Encoding: chunked",
        "",
        "2",
        "hi",
        "0",
        "X-Trailer: injected",
    )
    assert answer.endswith(b'{"size":2,"trailer":null}')


@pytest.mark.parametrize("protocol", ["h2c", "websocket"])
def test_offers_of_other_protocols_are_not_taken(one: Service, protocol: str) -> None:
    offer = ["Host: localhost", "Connection: Upgrade, HTTP2-Settings", f"Upgrade: {protocol}"]
    request = "\r\n".join([f"POST {PLACE}/size HTTP/1.1", *offer, "Content-Length: 5", "", "hello"])
    with one.connect() as line:
        line.sendall((request * 2).encode())
        until(line, rb'(?s)"size":5.*"size":5')
    assert status(one.say("CONNECT localhost:80 HTTP/1.1", "Host: localhost")) == 400


@pytest.mark.parametrize("coding", ["chunked\r\nContent-Encoding: gzip", "gzip, chunked"])
def test_compressed_bodies_are_refused(one: Service, coding: str) -> None:
    lines = ["Host: localhost", "Connection: close", f"Transfer-Encoding: {coding}"]
    answer = one.say(f"POST {PLACE}/size HTTP/1.1", *lines, "", "0")
    assert problem(answer)["type"] == "urn:multiplay:unsupported-encoding"


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        (["localhost"], 200),
        (["127.0.0.1:8000"], 200),
        (["[::1]:1"], 200),
        (["evil.example"], 421),
        (["localhost.evil.example"], 421),
        (["localhost", "localhost"], 400),
        ([], 400),
    ],
)
def test_only_this_machine_is_served_without_keys(
    one: Service, hosts: list[str], expected: int
) -> None:
    lines = [f"Host: {host}" for host in hosts]
    answer = one.say(f"GET {PLACE}/process HTTP/1.1", *lines, "Connection: close")
    assert status(answer) == expected


def test_a_demonstration_that_cannot_begin_leaves_the_key_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:///{tmp_path / 'keys.db'}"
    first = demonstration.new_key(store)
    monkeypatch.setattr(demonstration, "prepare", lambda store: {})  # a year takes seconds
    command = ["serve", "--demonstration", "--store", store, "--port"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = CliRunner().invoke(app, [*command, str(taken.getsockname()[1])])
    assert isinstance(done.exception, InvalidInput)
    assert first not in done.output
    [kept] = keys.list_all(store)
    demonstration.new_key(store)
    assert kept.id not in {row.id for row in keys.list_all(store)}


def test_connections_have_a_limit(one: Service) -> None:
    lines = [one.connect() for _ in range(LIMITS.connections)]
    with one.connect() as last:
        assert problem(everything(last))["type"] == "urn:multiplay:too-many-connections"
    for line in lines:
        line.close()
    wait_until(lambda: one.client.get(f"{PLACE}/process").status_code == 200)


def test_who_does_not_read_is_not_waited_for(hasty: Service) -> None:
    with hasty.connect() as line:
        line.sendall(
            f"GET {PLACE}/characters?count=50000000 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        )
        wait_until(lambda: any(said["event"] == "response not read" for said in hasty.log()))
        assert len(everything(line)) < 50_000_000


class Stuck(asyncio.Transport):
    """The other side takes nothing, and what waits for it is not much."""

    def __init__(self) -> None:
        super().__init__()
        self.aborted = asyncio.Event()

    def get_write_buffer_size(self) -> int:
        return 100

    def is_closing(self) -> bool:
        return False

    def write(self, data: object) -> None:
        pass

    def abort(self) -> None:
        self.aborted.set()


def test_the_last_bytes_of_an_answer_must_be_read_as_well() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async def answer() -> None:
        config = LimitedConfig(
            RequestLog(app), interface="asgi3", http="httptools", log_config=None
        )
        config.load()
        state = {LIMITS_OF_ALL: ConnectionLimits(ServiceLimits(seconds=0.01))}
        make: Any = config.http_protocol_class
        connection = make(config=config, server_state=ServerState(), app_state=state)
        transport = Stuck()
        connection.connection_made(transport)
        connection.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(TIME_LIMIT):
            await transport.aborted.wait()

    asyncio.run(answer())


def test_requests_behind_each_other_are_answered_in_order(one: Service) -> None:
    request = "GET {}/characters?count={} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with one.connect() as line:
        line.sendall("".join(request.format(PLACE, count) for count in (3, 5)).encode())
        with one.connect() as other:
            other.sendall((request.format(PLACE, 1) * 1000).encode())
            assert everything(other).count(b"HTTP/1.1 200") < 100
        answers = until(line, b"xxxxx")
    assert re.findall(rb"\r\n\r\n(x+)", answers) == [b"xxx", b"xxxxx"]


def test_nonsense_behind_a_request_is_not_answered_within_its_answer(one: Service) -> None:
    with one.connect() as line:
        line.sendall(f"GET {PLACE}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        until(line, b"first")
        line.sendall(b"nonsense\r\n\r\n")
        assert b"HTTP" not in everything(line)


# answers


@pytest.mark.smoke
def test_every_answer_has_an_id_and_safe_headers(one: Service) -> None:
    for path in ("/process", "/page", "/error/unforeseen", "/nowhere"):
        headers = one.client.get(PLACE + path, headers={"X-Request-Id": "a.B-1_"}).headers
        assert headers["x-request-id"] == "a.B-1_"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        expected = "same-origin" if path == "/page" else "no-referrer"
        assert headers["referrer-policy"] == expected
        assert "server" not in headers


@pytest.mark.parametrize("given", ["", "a b", "a;b", "x" * 65, "ünïcode", "a\tb", "<b>"])
def test_other_request_ids_are_replaced(one: Service, given: str) -> None:
    headers = {b"X-Request-Id": given.encode("latin-1")}
    answer = one.client.get(f"{PLACE}/process", headers=headers)
    assert re.fullmatch("[0-9a-f]{12}-[0-9a-f]+", answer.headers["x-request-id"])


def test_a_request_id_adds_no_header(one: Service) -> None:
    lines = [f"GET {PLACE}/process HTTP/1.1", "Host: localhost", "Connection: close"]
    answer = one.say(*lines, "X-Request-Id: a\rSet-Cookie: b")
    assert status(answer) == 400
    assert b"set-cookie" not in answer.lower()


def test_errors_are_problems(one: Service) -> None:
    expected = {"not-found": 404, "conflict": 409, "invalid": 422, "store": 503, "unforeseen": 500}
    for kind, number in expected.items():
        answer = one.client.get(f"{PLACE}/error/{kind}")
        said = answer.json()
        assert (answer.status_code, said["status"]) == (number, number)
        assert answer.headers["content-type"] == "application/problem+json"
        assert said["instance"] == f"urn:request:{answer.headers['x-request-id']}"
        assert "word" not in answer.text
        assert "ZeroDivision" not in answer.text
        assert ("retry-after" in answer.headers) == (kind == "store")
    said = one.client.get(f"{PLACE}/error/invalid").json()
    assert [said[name] for name in ("argument", "expected", "got", "hint")] == [
        "unit",
        "a number",
        "x",
        "Give one.",
    ]


def test_wrong_paths_methods_and_fields_are_problems(one: Service) -> None:
    nowhere = one.client.get("/nowhere")
    assert (nowhere.status_code, nowhere.json()["title"]) == (404, "Not found")
    wrong = one.client.delete(f"{PLACE}/process")
    assert (wrong.status_code, wrong.json()["title"]) == (405, "Method not allowed")
    assert wrong.headers["allow"] == "GET, PUT"
    field = one.client.get(f"{PLACE}/characters?count=many").json()
    assert (field["status"], field["argument"], field["got"]) == (400, "count", "'many'")


def test_responses_are_not_compressed(one: Service) -> None:
    """A proxy compresses: then the length of a page with a secret depends on the proxy alone."""
    answer = one.client.get(f"{PLACE}/characters?count=200000", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in answer.headers
    assert answer.text == "x" * 200_000


# the log


def test_the_log_has_a_line_for_each_request_and_no_secret(one: Service) -> None:
    bearer = {"Authorization": f"Bearer {KEY}", "Cookie": f"session={KEY}", "X-Request-Id": "it"}
    body = json.dumps({"secret": "s3cr3t-body"})
    one.client.post(f"{PLACE}/size?key={KEY}", headers=bearer, content=body)
    path = f"/a%0A%22,%20%22level%22:%20%E2%80%A8%00{KEY}"
    one.client.get(path, headers={"X-Request-Id": "odd"})
    one.client.get(f"{PLACE}/error/unforeseen", headers={"X-Request-Id": "bad"})
    one.client.get(f"{PLACE}/error/store", headers={"X-Request-Id": "full"})

    def lines() -> dict[tuple[str | None, str], dict[str, Any]]:
        return {(line.get("id"), line["event"]): line for line in one.log()}

    wait_until(lambda: ("full", "request") in lines())
    said = lines()
    assert said["it", "request"] | {"time": "", "ms": 0} == {
        "time": "",
        "level": "info",
        "event": "request",
        "id": "it",
        "method": "POST",
        "path": f"{PLACE}/size",
        "route": "/v1/studies/{study}/size",
        "status": 200,
        "ms": 0,
        "bytes": 26,
        "caller": "0123456789ab",
        "client": "127.0.0.1",
    }
    assert said["odd", "request"]["path"].startswith('/a\n", "level": ')
    assert said["odd", "request"]["route"] is None
    assert "ZeroDivisionError: of mp_0123456789ab_***" in said["bad", "failed"]["traceback"]
    assert "postgresql://me:***@host" in said["full", "failed"]["traceback"]
    text = one.log_file.read_text()
    assert "s3cr3t" not in text
    assert "c2VjcmV0" not in text
    assert ":word@" not in text


HEAD = f"POST {PLACE}/size HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = f"{HEAD}Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "request_text",
    [
        f"{HEAD}Transfer-Encoding: xchunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n",
        f"{HEAD}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n",
        f"{CHUNKED}zz\r\n{{}}\r\n0\r\n\r\n",
        f"{CHUNKED}-2\r\n{{}}\r\n0\r\n\r\n",
        f"{CHUNKED}2\r\n{{}}xx0\r\n\r\n",
        f"{CHUNKED}1\r\n{{\r\nqq\r\n}}\r\n0\r\n\r\n",
        f"{CHUNKED}{'f' * 18}\r\n{{}}\r\n",
    ],
)
def test_a_malformed_body_is_answered(one: Service, request_text: str) -> None:
    """Also after a complete request, which is answered first."""
    complete = f"{HEAD}Content-Length: 2\r\n\r\n{{}}"
    for before in (0, 1, 3):
        with one.connect() as line:
            line.sendall((complete * before + request_text).encode())
            answer = everything(line)
        assert answer.count(b"HTTP/1.1 200 OK\r\n") == before
        assert answer.count(b"HTTP/1.1 400 Bad Request\r\n") == 1
        assert b"urn:multiplay:malformed-request" in answer


def test_a_malformed_chunk_of_a_request_in_progress_closes_the_connection(one: Service) -> None:
    with one.connect() as line:
        line.sendall(f"{HEAD}Expect: 100-continue\r\n".encode())
        line.sendall(b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
        until(line, b"100 Continue\r\n\r\n")  # the body is being read
        line.sendall(b"zz\r\n")
        assert everything(line) == b""
    assert one.client.get(f"{PLACE}/process").status_code == 200


def test_too_many_pipelined_requests_are_refused_after_the_others(one: Service) -> None:
    text = f"GET {PLACE}/process HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with one.connect() as line:
        line.sendall(text.encode() * 41)
        answer = everything(line)
    assert answer.count(b"HTTP/1.1 200 OK\r\n") == PIPELINED
    assert answer.count(b"HTTP/1.1 400 Bad Request\r\n") == 1
    assert b"urn:multiplay:too-many-pipelined-requests" in answer


def test_names_of_studies_are_no_labels(one: Service) -> None:
    one.client.get("/v1/studies/secret-study/process")
    one.client.get("/somewhere/secret-study")
    one.client.request("PROPFIND", "/")
    text = one.client.get("/metrics").text
    assert 'multiplay_requests_total{method="other",route="none",status="404"} 1.0' in text
    assert 'route="/v1/studies/{study}/process"' in text
    assert "secret-study" not in text
    assert "lanes" not in text


# beginning and end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_is_being_answered_is_answered_before_it_stops(
    tmp_path: Path, number: signal.Signals
) -> None:
    workers = 1 if number == signal.SIGTERM else 2
    with service(tmp_path, workers=workers) as running, running.connect() as pending:
        running.all_workers()  # one that starts would show the interrupt of an import
        request_wait(pending)
        idle = running.connect()
        with running.client.stream("GET", f"{PLACE}/events") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "data: first"
            assert running.measure("multiplay_requests_in_flight") >= 3  # with this one
            os.killpg(running.process.pid, number)  # as a terminal does
            assert "data: last" in list(lines)
        assert everything(pending).endswith(b'"done"')
        assert everything(idle) == b""
        idle.close()
        wait_until(lambda: is_refused(running))
        assert running.output.read() == b"stopped\n"
        assert running.process.wait() == 0
        assert [line["event"] for line in running.log()][-1] == "stopped"
        assert {line["level"] for line in running.log()} == {"info"}
        wait_until(lambda: not alive(running.process.pid))
        assert not list(tmp_path.glob(f"{PREFIX}*"))


def test_workers_answer_when_an_interrupt_follows_the_signal_of_the_parent(tmp_path: Path) -> None:
    with service(tmp_path, workers=2) as running, running.connect() as pending:
        workers = running.all_workers()
        request_wait(pending)
        with running.client.stream("GET", f"{PLACE}/events") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "data: first"
            for worker in workers:
                os.kill(worker, signal.SIGTERM)
            assert "data: last" in list(lines)  # the signal is handled
        for worker in workers:
            with suppress(ProcessLookupError):  # it has ended
                os.kill(worker, signal.SIGINT)
        assert everything(pending).endswith(b'"done"')


def test_workers_that_end_at_the_signal_are_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_RESPONSIVE", "5")
    with service(tmp_path, workers=2) as running:
        worker = running.client.get(f"{PLACE}/process").json()
        os.kill(worker, signal.SIGSTOP)
        time.sleep(1)  # the parent most probably waits for its response
        os.kill(running.process.pid, signal.SIGINT)
        os.kill(worker, signal.SIGKILL)
        assert running.output.read() == b"stopped\n"
        assert running.process.wait() == 0
        assert not any("died" in line["event"] for line in running.log())


def test_workers_are_replaced_add_up_and_do_not_outlive_their_parent(tmp_path: Path) -> None:
    with service(tmp_path, workers=2) as running:
        asked = running.workers()
        while len(set(asked)) < 2:
            asked += running.workers()
        counted = "multiplay_request_seconds_count"
        route = re.escape('{method="GET",route="/v1/studies/{study}/process"}')
        # a request is counted after its response was sent
        wait_until(lambda: running.measure(counted + route) == len(asked))

        with running.client.stream("GET", f"{PLACE}/events") as stream:
            gone = int(stream.headers["x-process"])
            os.kill(gone, signal.SIGKILL)
        wait_until(
            lambda: any(line["event"] == f"Child process [{gone}] died" for line in running.log())
        )
        before = set(asked)
        while set(asked) == before:
            asked += running.workers()
        wait_until(lambda: running.measure(counted + route) == len(asked))
        # one is that which asks for it
        wait_until(lambda: running.measure("multiplay_requests_in_flight") == 1)
        labels = set(re.findall(r'worker="(\d+)"', running.client.get("/metrics").text))
        assert labels == {str(one) for one in set(asked) - {gone}}

        with running.client.stream("GET", f"{PLACE}/events") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "data: first"
            running.process.kill()
            assert "data: last" in list(lines), "even then a stream is ended"
        wait_until(lambda: not alive(running.process.pid))
        with pytest.raises(ConnectionRefusedError):
            running.connect()
        assert not list(tmp_path.glob(f"{PREFIX}*"))


def test_workers_that_start_end_at_once_with_their_parent(tmp_path: Path) -> None:
    with service(tmp_path, "start_slowly", workers=2) as running:
        assert [running.url, running.output.readline()] == ["starting", b"starting\n"]
        running.process.kill()
        wait_until(lambda: not alive(running.process.pid))
        assert "Traceback" not in running.log_file.read_text()
        assert not list(tmp_path.glob(f"{PREFIX}*"))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_store_that_cannot_be_opened_is_an_error_of_the_parent(
    tmp_path: Path, workers: int
) -> None:
    with service(tmp_path, workers=workers, store="broken://") as running:
        assert running.url == ""
        assert running.process.wait() == 1
        assert "InvalidInput: store: expected " in running.log_file.read_text()
        wait_until(lambda: not alive(running.process.pid))


def test_workers_that_cannot_start_are_not_started_for_ever(tmp_path: Path) -> None:
    with service(tmp_path, "fail", workers=2) as running:
        assert running.process.wait() == 3
        events = [line["event"] for line in running.log()]
        assert any("failed to start" in event for event in events)
        wait_until(lambda: not alive(running.process.pid))
        assert not list(tmp_path.glob(f"{PREFIX}*"))


def test_an_address_that_cannot_be_had_is_said() -> None:
    with bound("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInput, match=f"port: expected a free port, got {port}, which"):
            bound("127.0.0.1", port)
    for host in ("192.0.2.1", "no.such.host.invalid", "::ffff:192.0.2.1"):
        with pytest.raises(InvalidInput, match="host: expected an address of this machine"):
            bound(host, 0)
