"""What a client does when a service does not respond, or answers something else."""

import json
import ssl
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from refusal import refused

import multiplay as mp
from multiplay.errors import Conflict, InvalidInput, NotFound
from multiplay.remote import client, connection
from multiplay.remote.client import ConnectionOptions, ServiceClient

URL = "http://127.0.0.1:8000"
PLAY = {
    "id": 1,
    "key": None,
    "truncated": False,
    "plan": {"a": 1},
    "action": [1],
    "expected": {"total": 0.5, "low": None, "high": 1.0},
}
TOLD = {"id": 1, "seen": 1, "missing": 0, "clipped": 0, "repeated": False, "final": True}
PROBLEM = {"title": "No", "detail": "It cannot be.", "instance": "urn:request:7"}
PARTS = {"argument": "losses", "expected": "numbers", "got": "'x'", "hint": "Give numbers."}
LOST = [
    httpx.ConnectError("refused"),
    httpx.ConnectTimeout("slow"),
    httpx.PoolTimeout("slow"),
    httpx.WriteError("lost"),
    httpx.ReadError("lost"),
    httpx.ReadTimeout("slow"),
    httpx.RemoteProtocolError("cut off"),
    httpx.DecodingError("half of it"),
]


def problem(status: int, **more: Any) -> httpx.Response:
    headers = {"Content-Type": "application/problem+json"}
    return httpx.Response(status, json={**PROBLEM, "status": status, **more}, headers=headers)


class Script(httpx.BaseTransport):
    """A service that says what it was told to say; the last of it, for ever."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers, self.requests = [*answers], list[httpx.Request]()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer.stream, Stream):
            return answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


class Clock:
    """Time that passes when somebody waits."""

    def __init__(self) -> None:
        self.now, self.pauses = 1000.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(client, "sleep", found.sleep)
    monkeypatch.setattr(client, "monotonic", lambda: found.now)
    return found


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Callable[..., Script]:
    """Let a service say something."""

    def begin(*answers: httpx.Response | Exception) -> Script:
        script = Script(*answers)
        monkeypatch.setattr(ConnectionOptions, "transport", lambda options: script)
        return script

    return begin


@pytest.fixture
def study() -> mp.RemoteStudy:
    options = ConnectionOptions(URL, True, "mp_secret", 30.0, 20.0, None)
    return mp.RemoteStudy(ServiceClient(options), "lanes")


# ---------------------------------------------------------------- what is tried again


@pytest.mark.parametrize(
    "failure",
    [*map(httpx.Response, (408, 425, 429, 502, 503, 504)), problem(503), *LOST],
    ids=lambda one: f"{getattr(one, 'status_code', type(one).__name__)}",
)
def test_it_is_sent_again_as_the_same_request(
    failure: httpx.Response | Exception, scripted: Callable[..., Script], study: mp.RemoteStudy
) -> None:
    script = scripted(failure, failure, httpx.Response(200, json=PLAY))
    assert study.ask(key="k").id == 1
    assert len(script.requests) == 3
    assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 1
    assert {request.content for request in script.requests} == {b'{"key": "k"}'}
    study.ask(key="k")
    assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 2


@pytest.mark.parametrize(
    "status", [400, 401, 403, 404, 405, 409, 410, 413, 415, 421, 422, 500, 501]
)
def test_other_answers_are_taken_as_they_are(
    status: int, scripted: Callable[..., Script], study: mp.RemoteStudy
) -> None:
    script = scripted(problem(status))
    with pytest.raises((InvalidInput, mp.StoreError)):
        study.ask()
    assert len(script.requests) == 1


def test_reading_is_tried_again_too(scripted: Callable[..., Script], study: mp.RemoteStudy) -> None:
    told = [httpx.Response(503), LOST[4], httpx.Response(200, json={"items": [], "next": None})]
    script = scripted(*told)
    assert study.pending() == []
    assert ["Idempotency-Key" in request.headers for request in script.requests] == [False] * 3


WRITES: dict[str, Callable[[mp.RemoteStudy], Any]] = {
    "ask": lambda study: study.ask(),
    "tell": lambda study: study.tell(1, {"a": [0.5]}),
    "close": lambda study: study.close(1),
    "cancel": lambda study: study.cancel(1),
    "expire": lambda study: study.expire(1.0),
    "forget": lambda study: study.forget("a", before=1),
    "unforget": lambda study: study.unforget("a", since=0),
    "learn": lambda study: study.learn({"a": 1}, {"a": [0.5]}),
    "learn-table": lambda study: study.learn_table({"arm": ["a"], "round": [1], "loss": [0.5]}),
    "studies": lambda study: study.create("lanes", mp.Budget(1, [1, 1]), mp.GenCTS()),
}


@pytest.mark.parametrize("verb", WRITES)
def test_all_that_writes_says_who_it_is(
    verb: str, scripted: Callable[..., Script], study: mp.RemoteStudy
) -> None:
    left = {"since": 1, "units": 2}
    answers = {"ask": PLAY, "expire": {"plays": []}, "forget": left, "unforget": left}
    answer = answers.get(verb, TOLD)
    script = scripted(LOST[4], httpx.Response(200, json=answer))
    WRITES[verb](study)
    one, two = script.requests
    assert one.url.path.endswith(f"/{verb}")
    assert one.headers["Idempotency-Key"] == two.headers["Idempotency-Key"]
    assert one.headers["Authorization"] == "Bearer mp_secret"


# ---------------------------------------------------------------- how long


def test_pauses_grow_and_end(
    scripted: Callable[..., Script], study: mp.RemoteStudy, clock: Clock
) -> None:
    script = scripted(LOST[4])
    with pytest.raises(mp.StoreError) as failed:
        study.ask()
    assert str(failed.value) == (
        f"{URL}: the service does not respond (lost). The request may or may not have "
        "succeeded. Retry with the same key."
    )
    assert 20 < sum(clock.pauses) <= 30
    assert len(script.requests) == len(clock.pauses) + 1
    for k, pause in enumerate(clock.pauses):
        whole = min(0.1 * 2**k, 5.0)
        assert whole / 2 <= pause <= whole
    limits = [request.extensions["timeout"]["read"] for request in script.requests]
    assert limits[0] == 20.0
    assert limits[-1] < 10.0, "what is left of the retry budget"


def test_without_retries_there_is_one_attempt(
    scripted: Callable[..., Script], study: mp.RemoteStudy, clock: Clock
) -> None:
    study._client.options = study._client.options._replace(patience=0.0)
    script = scripted(problem(503, detail="The disk is full.", hint="Make room."))
    with pytest.raises(mp.StoreError, match=rf"{URL}: The disk is full \(status 503\). Make room."):
        study.ask()
    assert len(script.requests) == 1
    assert clock.pauses == []


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("as_date", [False, True])
def test_a_service_says_when_to_come_back(
    status: int,
    as_date: bool,
    scripted: Callable[..., Script],
    study: mp.RemoteStudy,
    clock: Clock,
) -> None:
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=25), usegmt=True)
    headers = {"Retry-After": then if as_date else "7"}
    scripted(httpx.Response(status, headers=headers), httpx.Response(200, json=PLAY))
    study.ask()
    (pause,) = clock.pauses
    assert 5 < pause <= 25 if as_date else pause == 7


@pytest.mark.parametrize("after", ["soon", "", "-3", "nan", "Mon, 99 Nov 2026 08:00:00 GMT"])
def test_nonsense_for_a_time_is_no_time(
    after: str, scripted: Callable[..., Script], study: mp.RemoteStudy, clock: Clock
) -> None:
    scripted(httpx.Response(503, headers={"Retry-After": after}), httpx.Response(200, json=PLAY))
    study.ask()
    assert 0 < clock.pauses[0] <= 0.1


def test_who_would_have_to_wait_too_long_is_told_at_once(
    scripted: Callable[..., Script], study: mp.RemoteStudy, clock: Clock
) -> None:
    scripted(httpx.Response(503, headers={"Retry-After": "3600"}))
    with pytest.raises(mp.StoreError, match="503 Service Unavailable"):
        study.ask()
    assert clock.pauses == []


def test_a_name_is_shown_without_retries(
    scripted: Callable[..., Script], study: mp.RemoteStudy, clock: Clock
) -> None:
    scripted(LOST[0])
    assert repr(study) == f"RemoteStudy('lanes' at {URL})"
    assert clock.pauses == []


# ---------------------------------------------------------------- what is removed


@pytest.mark.parametrize("failure", [LOST[4], httpx.Response(504)])
def test_a_delete_is_repeated_with_the_same_key(
    failure: httpx.Response | Exception, scripted: Callable[..., Script], study: mp.RemoteStudy
) -> None:
    script = scripted(failure, httpx.Response(204))
    study.delete("lanes")
    sent = [(request.method, request.url.path) for request in script.requests]
    assert sent == [("DELETE", "/v1/studies/lanes")] * 2
    assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 1


@pytest.mark.parametrize("failure", [LOST[0], httpx.Response(429), None])
def test_what_was_never_there_was_not_removed(
    failure: httpx.Response | Exception | None,
    scripted: Callable[..., Script],
    study: mp.RemoteStudy,
) -> None:
    scripted(*([] if failure is None else [failure]), problem(404, **PARTS))
    with pytest.raises(NotFound):
        study.delete("lanes")


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("status", "kind"), [(404, NotFound), (409, Conflict), (422, InvalidInput), (400, InvalidInput)]
)
def test_problems_become_errors(
    status: int,
    kind: type[InvalidInput],
    scripted: Callable[..., Script],
    study: mp.RemoteStudy,
) -> None:
    scripted(problem(status, **PARTS))
    with pytest.raises(InvalidInput) as caught:
        study.ask()
    assert type(caught.value) is kind
    assert {name: getattr(caught.value, name) for name in PARTS} == PARTS


def test_a_refusal_without_details_is_no_reason_to_try_again(
    scripted: Callable[..., Script], study: mp.RemoteStudy
) -> None:
    scripted(problem(413, detail="A body may have 9 bytes.", hint="Send it in parts."))
    with pytest.raises(InvalidInput, match=r"got 413: A body may have 9 bytes. Send it in parts."):
        study.ask()


def test_what_a_service_cannot_explain_is_found_in_its_log(
    scripted: Callable[..., Script], study: mp.RemoteStudy
) -> None:
    scripted(problem(500))
    with pytest.raises(mp.StoreError, match=r"It cannot be \(status 500, urn:request:7\)"):
        study.ask()


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<h1>Welcome</h1>"),
        httpx.Response(200, json=["hello"]),
        httpx.Response(404, text="nothing"),
        httpx.Response(404, content=b"\xff", headers={"Content-Type": "application/problem+json"}),
        httpx.Response(302, headers={"Location": "https://plans.example.org/login"}),
    ],
)
def test_something_else_at_the_address_is_noticed(
    answer: httpx.Response, scripted: Callable[..., Script]
) -> None:
    script = scripted(answer)
    with pytest.raises(InvalidInput, match="url: expected the URL of a multiplay service") as e:
        mp.connect(URL)
    if answer.is_redirect:
        assert "https://plans.example.org/login. Use that URL." in str(e.value)
    assert len(script.requests) == 1, "who follows could hand the key to somebody else"


def test_where_nobody_listens_is_said_at_once(
    scripted: Callable[..., Script], clock: Clock
) -> None:
    scripted(httpx.ConnectError("[Errno 111] Connection refused"))
    with pytest.raises(mp.StoreError, match=r"does not respond \(.*refused\). Check the URL"):
        mp.connect(URL)
    assert clock.pauses == []


def test_a_certificate_that_nobody_trusts_is_said_at_once(
    scripted: Callable[..., Script], study: mp.RemoteStudy, clock: Clock
) -> None:
    error = httpx.ConnectError("certificate verify failed")
    error.__cause__ = ssl.SSLCertVerificationError("self-signed")
    scripted(error)
    with pytest.raises(mp.StoreError, match="certificate verify failed"):
        study.ask()
    assert clock.pauses == []


# ---------------------------------------------------------------- addresses and keys


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000",
        "ftp://host",
        "http://",
        "http://host:port",
        "http://host:0",
        "",
        None,
        8000,
    ],
)
def test_what_is_no_address_is_refused(url: Any) -> None:
    with refused("url"):
        mp.connect(url)


@pytest.mark.parametrize(
    "url", ["http://me:word@host", "http://host?key=word", "http://host#word", "x://me:word@host"]
)
def test_an_address_has_no_secret(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        mp.connect(url)
    assert caught.value.argument == "url"
    assert "word" not in str(caught.value).replace("password", "")


def test_a_key_is_not_sent_where_others_could_read_it(scripted: Callable[..., Script]) -> None:
    script = scripted(httpx.Response(200, json={"can": "play", "study": "lanes"}))
    with pytest.raises(
        InvalidInput, match=r"url: expected https://, because the API key .* insecure=True"
    ):
        mp.connect("http://plans.example.org", key="mp_secret")
    assert script.requests == []
    places = ["https://plans.example.org", "http://localhost:8000", "http://[::1]:8000"]
    for place in (*places, "http://127.8.8.8"):
        assert mp.connect(place, key="mp_secret").name == "lanes"
    assert mp.connect("http://plans.example.org", key="mp_secret", insecure=True).name == "lanes"
    assert mp.connect("http://plans.example.org").name == "lanes"
    sent = [request.headers.get("Authorization") for request in script.requests]
    assert sent == ["Bearer mp_secret"] * 5 + [None]


@pytest.mark.parametrize("key", ["", "mp secret", "mp_secret\n", "mp_ü", b"mp_secret", 7])
def test_what_cannot_be_a_key_is_not_sent(key: Any, scripted: Callable[..., Script]) -> None:
    script = scripted(httpx.Response(200, json={}))
    with pytest.raises(
        InvalidInput, match=r"^key: expected .*, got a value of a different form"
    ) as caught:
        mp.connect(URL, key=key)
    assert "secret" not in str(caught.value)
    assert script.requests == []


@pytest.mark.parametrize(
    "options", [{"patience": -1}, {"patience": "long"}, {"timeout": 0}, {"insecure": "no"}]
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    with refused(next(iter(options))):
        mp.connect(URL, **options)


def test_a_service_may_be_below_a_path(scripted: Callable[..., Script]) -> None:
    script = scripted(httpx.Response(200, json={"can": "play", "study": "lanes", "items": []}))
    with mp.connect("https://example.org/plans/v1/studies/a%20b") as study:
        assert (study.url, study.name) == ("https://example.org/plans", "a b")
    paths = [request.url.raw_path for request in script.requests]
    assert paths == [b"/plans/v1/key", b"/plans/v1/studies/a%20b"]


def test_the_client_of_http_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.delitem(sys.modules, "multiplay.remote.client", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"Run: pip install 'multiplay\[client\]'"):
        connection.connect(URL)


# ---------------------------------------------------------------- events


class Stream(httpx.SyncByteStream):
    """A stream of events that breaks, if it is to."""

    def __init__(self, *parts: str | Exception) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[bytes]:
        for part in self._parts:
            if isinstance(part, Exception):
                raise part
            yield part.encode()


def test_watching_goes_on_after_a_pause_of_the_service(
    scripted: Callable[..., Script], study: mp.RemoteStudy, clock: Clock
) -> None:
    event = "id: {0}\nevent: changed\ndata: {0}\n\n".format
    scripted(
        httpx.Response(200, stream=Stream("retry: 2000\n\n", event(4), ": still here\n\n")),
        LOST[0],
        httpx.Response(200, stream=Stream(event(4), event(6)[:9], event(6)[9:], LOST[4])),
        problem(503),
        httpx.Response(200, stream=Stream(event(7))),
        problem(401, **PARTS | {"argument": "key"}),
    )
    seen = study.watch()
    assert [next(seen) for _ in range(3)] == [4, 6, 7]
    with pytest.raises(InvalidInput, match="key: expected"):
        next(seen)
    assert len(clock.pauses) == 5


def test_watching_ends_with_the_retry_budget(
    scripted: Callable[..., Script], study: mp.RemoteStudy
) -> None:
    scripted(httpx.Response(200, stream=Stream("data: 1\n\n")), LOST[0])
    seen = study.watch()
    assert next(seen) == 1
    with pytest.raises(mp.StoreError, match="does not respond"):
        next(seen)


def test_bodies_are_json_to_the_last_digit(
    scripted: Callable[..., Script], study: mp.RemoteStudy
) -> None:
    script = scripted(httpx.Response(200, json=TOLD))
    study.tell(1, {"ü": [0.1 + 0.2, 5e-324, 1e308, None]}, at=1e9 / 3)
    sent = json.loads(script.requests[0].content)
    assert sent["losses"] == {"ü": [0.1 + 0.2, 5e-324, 1e308, None]}
    assert sent["at"] == 1e9 / 3
