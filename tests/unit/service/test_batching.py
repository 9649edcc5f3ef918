"""Request batching: many requests share a turn, and none of them harms another."""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from asgi import client_of
from effort import TIME_LIMIT
from postgres import Server, lose_commits
from trucks import euros, new_study, verified

import multiplay as mp
from multiplay.errors import UnknownOutcome
from multiplay.service.api import events, problems
from multiplay.service.app import create_app
from multiplay.service.auth import keys
from multiplay.service.auth.authenticator import ANONYMOUS, Authenticator, Caller
from multiplay.service.errors import Forbidden, Overloaded, Unauthenticated
from multiplay.service.pages import sessions
from multiplay.service.settings import Settings
from multiplay.service.studies import batching
from multiplay.service.studies.limits import ServiceLimits
from multiplay.service.studies.manager import STUDY_MEMORY, StudyManager
from multiplay.storage import store_at
from multiplay.storage.base import NoConnectionLeft
from multiplay.storage.sql import SqlKeyring
from multiplay.studies.entry_codec import Request


class Turns:
    """How many jobs each turn had."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs: list[int] = []
        monkeypatch.setattr(
            "multiplay.service.studies.batching.metrics.count_turn", self.jobs.append
        )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    place = tmp_path / "studies.db"
    new_study(store_at(place)).disconnect()
    return place


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    return Turns(monkeypatch)


def at_once(store: Path | str, act: Callable[[StudyManager], Any]) -> Any:
    """Do something with an manager, in a loop of its own."""

    async def done() -> Any:
        manager = StudyManager(Settings(store=f"{store}"))
        try:
            return await act(manager)
        finally:
            manager.close()

    return asyncio.run(done())


def ask(manager: StudyManager, caller: Caller = ANONYMOUS, request: str | None = None) -> Any:
    known = None if request is None else Request(request)
    return manager.write("lanes", caller, "ask", lambda study: study.ask(), None, known)


def test_requests_that_come_together_share_turns(
    store: Path, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "LONGEST_TURN", TIME_LIMIT)  # a slow machine has turns of one job

    async def act(manager: StudyManager) -> list[Any]:
        await ask(manager)
        return await asyncio.gather(*(ask(manager) for _ in range(60)))

    plays = at_once(store, act)
    assert sorted(play.id for play in plays) == [*range(2, 62)]
    assert sum(turns.jobs) == 61
    assert max(turns.jobs) > 1
    assert len(turns.jobs) < 30, "many have shared a turn"
    assert verified(mp.Study.open("lanes", store=store)).ok


def test_one_that_fails_does_not_take_the_others_with_it(store: Path) -> None:
    def fails(study: mp.Study) -> None:
        play = study.ask()
        raise ZeroDivisionError(f"after play {play.id}")

    def refused(study: mp.Study) -> None:
        study.tell(999, {})

    async def act(manager: StudyManager) -> list[Any]:
        jobs = [ask(manager) for _ in range(5)]
        for act in (fails, refused):
            jobs.insert(2, manager.write("lanes", ANONYMOUS, "ask", act))
        return await asyncio.gather(*jobs, return_exceptions=True)

    answers = at_once(store, act)
    kinds = [type(answer).__name__ for answer in answers]
    assert kinds.count("PendingPlay") == 5
    assert {"ZeroDivisionError", "NotFound"} <= set(kinds)
    study = mp.Study.open("lanes", store=store)
    given = {answer.id for answer in answers if hasattr(answer, "id")}
    assert given == {play.id for play in study.pending()}, "what has failed was never asked"
    assert verified(study).ok


def test_one_for_which_there_is_no_room_is_run_once(store: Path) -> None:
    """It may have waited for long; the others of its turn are run again without it."""
    runs = list[int]()

    def refused(study: mp.Study) -> None:
        runs.append(study.ask().id)
        raise Overloaded("too much is being solved")

    async def act(manager: StudyManager) -> list[Any]:
        jobs = [ask(manager), manager.write("lanes", ANONYMOUS, "ask", refused), ask(manager)]
        return await asyncio.gather(*jobs, return_exceptions=True)

    answers = at_once(store, act)
    kinds = [type(answer).__name__ for answer in answers]
    assert kinds == ["PendingPlay", "Overloaded", "PendingPlay"]
    assert len(runs) == 1
    study = mp.Study.open("lanes", store=store)
    assert [play.id for play in study.pending()] == [1, 2]
    assert verified(study).ok


def test_a_request_that_comes_twice_at_once_is_done_once(store: Path) -> None:
    async def act(manager: StudyManager) -> list[Any]:
        return await asyncio.gather(*(ask(manager, request=f"{k % 3}") for k in range(12)))

    plays = at_once(store, act)
    assert len({play.id for play in plays}) == 3
    assert mp.Study.open("lanes", store=store).asked == 3


def test_answers_are_of_what_is_durable(store: Path) -> None:
    """When an answer is made, others see what it answers."""

    def seen_by_others(play: Any) -> bool:
        return play.id in [one.id for one in mp.Study.open("lanes", store=store).pending()]

    async def act(manager: StudyManager) -> Any:
        act = [
            manager.write("lanes", ANONYMOUS, "ask", lambda study: study.ask(), seen_by_others)
            for _ in range(4)
        ]
        return await asyncio.gather(*act)

    assert at_once(store, act) == [True] * 4


def test_a_study_that_was_made_anew_is_found(store: Path) -> None:
    async def act(manager: StudyManager) -> list[int]:
        first = await ask(manager)
        await manager.read_journal("lanes", ANONYMOUS, lambda journal: journal.head())
        mp.Study.delete("lanes", store=store)
        with pytest.raises(mp.InvalidInput):
            await ask(manager)
        new_study(store_at(store)).disconnect()
        second = await ask(manager)
        head = await manager.read_journal("lanes", ANONYMOUS, lambda journal: journal.head())
        return [first.id, second.id, head.number]

    assert at_once(store, act) == [1, 1, 1]


def test_a_key_is_confirmed_where_something_is_done(store: Path) -> None:
    made = keys.create(store, "play")

    async def act(manager: StudyManager) -> None:
        caller = await manager.remembered_caller(made.token)
        await ask(manager, caller)
        keys.revoke(store, made.row.id)
        assert await manager.remembered_caller(made.token) == caller, "it is remembered"
        for job in (
            ask(manager, caller),
            manager.read("lanes", caller, lambda study: study.asked),
            manager.read_journal("lanes", caller, lambda journal: journal.head()),
            manager.names(caller),
            manager.verify("lanes", caller),
        ):
            with pytest.raises(Unauthenticated):
                await job
        with pytest.raises(Unauthenticated):
            await manager.remembered_caller(made.token)

    at_once(store, act)
    assert mp.Study.open("lanes", store=store).asked == 1


def test_a_key_that_cannot_be_confirmed_changes_nothing(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the turn of its request fails, and each request gets a turn of its own."""
    monkeypatch.setattr(batching, "LONGEST_TURN", TIME_LIMIT)
    made = keys.create(store, "play")
    started, both_wait = threading.Event(), threading.Event()
    errors: list[Exception] = [mp.StoreError("store", "it is not available", "Retry.")]
    errors += [Unauthenticated("key", "a valid API key", "none", "Use another one.")]

    def confirm(self: Authenticator, caller: Caller, *needed: Any, **named: Any) -> None:
        if caller != ANONYMOUS:
            raise errors.pop(0)

    def begin_turn(study: mp.Study) -> None:
        started.set()
        assert both_wait.wait(TIME_LIMIT)

    def fail(study: mp.Study) -> None:
        raise ZeroDivisionError

    async def act(manager: StudyManager) -> Any:
        caller = await manager.caller(made.token)
        monkeypatch.setattr(Authenticator, "confirm", confirm)
        first = asyncio.ensure_future(manager.write("lanes", ANONYMOUS, "ask", begin_turn))
        while not started.is_set():
            await asyncio.sleep(0.001)
        failing = manager.write("lanes", ANONYMOUS, "ask", fail)
        both = asyncio.gather(ask(manager, caller), failing, return_exceptions=True)
        while len(manager._batcher("lanes")._writing) < 2:
            await asyncio.sleep(0.001)
        both_wait.set()
        await first
        return await both

    refused, failed = at_once(store, act)
    assert isinstance(refused, Unauthenticated)
    assert isinstance(failed, ZeroDivisionError)
    assert mp.Study.open("lanes", store=store).asked == 0


def test_a_login_that_waits_for_a_turn_does_not_delay_it(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the turn keys are confirmed, and the session is stored after it."""
    made, waits = keys.create(store, "play"), threading.Event()
    remove = SqlKeyring.remove_expired  # the first change of a login

    def watched(self: SqlKeyring, now: float) -> None:
        waits.set()
        remove(self, now)

    monkeypatch.setattr(SqlKeyring, "remove_expired", watched)

    async def act(manager: StudyManager) -> str | None:
        loop, caller = asyncio.get_running_loop(), await manager.caller(made.token)

        def log_in_and_confirm(study: mp.Study) -> Any:
            study.ask()
            login = asyncio.run_coroutine_threadsafe(sessions.log_in(manager, made.token), loop)
            assert waits.wait(TIME_LIMIT)
            manager._authenticator.confirm(caller, "play", "lanes")
            return login

        login = await manager.write("lanes", caller, "ask", log_in_and_confirm)
        return await asyncio.wrap_future(login)

    assert at_once(store, act) is not None


def test_rights_are_those_of_the_key(store: Path) -> None:
    rows = {can: keys.make("a key", can, "lanes", 0.0).row for can in keys.PERMISSIONS}
    callers = {can: Caller(row.id, "", "lanes", can, row.id) for can, row in rows.items()}
    for can, caller in callers.items():
        for needed in keys.PERMISSIONS:
            if keys.PERMISSIONS.index(can) >= keys.PERMISSIONS.index(needed):
                caller.check(needed, "lanes")
            else:
                with pytest.raises(Forbidden):
                    caller.check(needed, "lanes")
        for study in ("others", None):
            with pytest.raises(Forbidden):
                caller.check("read", study)


def test_too_many_that_wait_are_told_to_come_again(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("multiplay.service.studies.manager.MOST_JOBS", 3)

    async def act(manager: StudyManager) -> list[Any]:
        jobs = (ask(manager) for _ in range(20))
        return await asyncio.gather(*jobs, return_exceptions=True)

    answers = at_once(store, act)
    refused = [answer for answer in answers if isinstance(answer, mp.StoreError)]
    assert refused
    assert mp.Study.open("lanes", store=store).asked == 20 - len(refused)


def test_who_does_not_wait_for_the_answer_harms_nobody(store: Path) -> None:
    async def act(manager: StudyManager) -> Any:
        left = asyncio.ensure_future(ask(manager))
        await asyncio.sleep(0)
        left.cancel()
        return await ask(manager)

    at_once(store, act)
    study = mp.Study.open("lanes", store=store)
    for play in study.pending():
        study.tell(play.id, euros(play))
    assert verified(study).ok


def test_only_some_studies_are_kept_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multiplay.service.studies.manager.MOST_OPEN_STUDIES", 2)
    place = tmp_path / "many.db"
    names = [f"study {k}" for k in range(6)]
    for name in names:
        new_study(store_at(place), name).disconnect()

    async def act(manager: StudyManager) -> int:
        for name in names * 2:
            await manager.write(name, ANONYMOUS, "ask", lambda study: study.ask())
            await manager.read_journal(name, ANONYMOUS, lambda journal: journal.head())
        return len(manager._batchers)

    assert at_once(place, act) <= 3
    assert [mp.Study.open(name, store=place).asked for name in names] == [2] * 6


def test_studies_with_shared_connections_are_closed_by_their_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("multiplay.service.studies.manager.MOST_OPEN_STUDIES", 2)
    monkeypatch.setattr("multiplay.service.studies.manager.MOST_MEMORY", 3.5 * STUDY_MEMORY)
    place, names = "memory://closed-by-memory", [f"study {k}" for k in range(6)]
    for name in names:
        new_study(store_at(place), name).disconnect()

    async def act(manager: StudyManager) -> list[str]:
        for name in names:
            await manager.write(name, ANONYMOUS, "ask", lambda study: study.ask())
        for _ in range(1_000):  # those that a thread has just left are closed later
            await manager.read(names[3], ANONYMOUS, lambda study: study.asked)
            if len(manager._batchers) <= 3:
                break
        return [*manager._batchers]

    left = at_once(place, act)
    assert len(left) == 3
    assert left[-1] == names[3]


def test_events_end_with_their_key(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No event of what is written after the key was revoked is sent."""
    monkeypatch.setattr(events, "HEARTBEAT", 0.0)
    monkeypatch.setattr(events, "PAUSE", 0.01)
    made, other = keys.create(store, "play"), keys.create(store, "play")

    async def act(manager: StudyManager) -> list[str]:
        stream: Any = (await events.stream(manager, "lanes", made.token)).body_iterator
        said = [str(await anext(stream)), str(await anext(stream))]
        await ask(manager, await manager.caller(made.token))
        while "data: 1" not in (text := str(await anext(stream))):
            said.append(text)
        keys.revoke(store, made.row.id)
        await ask(manager, await manager.caller(other.token))
        late = [str(text) async for text in stream]
        assert late == []
        return said

    said = at_once(store, act)
    assert said[0].startswith("retry:")
    assert "data: 0" in said[1]


def test_events_end_when_another_study_has_the_name(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "PAUSE", 0.01)
    made = keys.create(store, "read", study="lanes")

    async def act(manager: StudyManager) -> None:
        stream: Any = (await events.stream(manager, "lanes", made.token)).body_iterator
        await anext(stream), await anext(stream)
        mp.Study.rename("lanes", "roads", store=store)
        with new_study(store_at(store)) as study:
            study.ask()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        with pytest.raises(Forbidden):
            await events.stream(manager, "lanes", made.token)
        assert (await events.stream(manager, "roads", made.token)).status_code == 200

    at_once(store, act)


def test_the_end_of_a_key_is_noticed_without_events(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "PAUSE", 0.01)
    made = keys.create(store, "read")

    async def act(manager: StudyManager) -> None:
        stream: Any = (await events.stream(manager, "lanes", made.token)).body_iterator
        await anext(stream), await anext(stream)
        keys.revoke(store, made.row.id)
        assert [text async for text in stream] == []

    at_once(store, act)


def test_too_many_streams_are_refused_without_a_traceback(
    store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(Settings(store=f"{store}", limits=ServiceLimits(streams=0)))
    with client_of(app) as client, caplog.at_level("ERROR"):
        refused = client.get("/v1/studies/lanes/events")
    assert refused.status_code == 503
    assert refused.headers["Retry-After"]
    assert refused.json()["type"] == "urn:multiplay:overloaded"
    assert not caplog.records


def test_who_only_reads_has_no_turn(store: Path, turns: Turns) -> None:
    at_once(store, lambda manager: manager.read("lanes", ANONYMOUS, lambda study: study.asked))
    assert turns.jobs == []


# ------------------------------------------------------------ commits without an answer


@pytest.fixture
def shared(postgresql: Server) -> str:
    """The URL of a store in PostgreSQL, with a study."""
    url = postgresql.new_url()
    new_study(store_at(url)).disconnect()
    return url


class Losses:
    """The next commits that lose their answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, is_sent: bool = True) -> None:
        self.left = 0
        lose_commits(monkeypatch, self._is_next, is_sent)

    def _is_next(self) -> bool:
        self.left -= 1
        return self.left >= 0


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> Losses:
    return Losses(monkeypatch)


def learn(manager: StudyManager, k: int) -> Any:
    plan = {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}
    losses = {arm: [float(k)] * units for arm, units in plan.items()}
    return manager.write("lanes", ANONYMOUS, "learn", lambda study: study.learn(plan, losses))


def test_a_commit_without_an_answer_is_not_done_again(shared: str, lost: Losses) -> None:
    """Eight requests without keys: none has two entries, and the answer is that it is unknown."""

    async def act(manager: StudyManager) -> list[Any]:
        await ask(manager)
        lost.left = 1
        jobs = (learn(manager, k) for k in range(8))
        return await asyncio.gather(*jobs, return_exceptions=True)

    answers = at_once(shared, act)
    unknown = [answer for answer in answers if isinstance(answer, UnknownOutcome)]
    done = [answer for answer in answers if isinstance(answer, mp.Receipt)]
    assert unknown
    assert len(unknown) + len(done) == 8
    assert all("may or may not" in str(error) for error in unknown)
    assert all("Idempotency-Key" in str(error) for error in unknown)
    study = mp.Study.open("lanes", store=shared)
    learned = sum(entry.labels.kind == "learn" for entry in study.entries())
    assert len(done) <= learned <= 8
    assert verified(study).ok


@pytest.mark.parametrize("by", ["request", "key"])
def test_a_commit_without_an_answer_is_recognised_by_its_key(
    by: str, shared: str, lost: Losses
) -> None:
    def asked(manager: StudyManager, k: int) -> Any:
        if by == "request":
            return ask(manager, request=f"{k}")
        key = f"{k}"
        return manager.write("lanes", ANONYMOUS, "ask", lambda study: study.ask(key=key), key=key)

    async def act(manager: StudyManager) -> list[Any]:
        await ask(manager)
        lost.left = 1
        return await asyncio.gather(*(asked(manager, k) for k in range(8)))

    plays = at_once(shared, act)
    assert sorted(play.id for play in plays) == [*range(2, 10)]
    study = mp.Study.open("lanes", store=shared)
    assert study.asked == 9
    assert verified(study).ok


def test_a_refused_request_beside_a_lost_commit_is_refused(shared: str, lost: Losses) -> None:
    async def act(manager: StudyManager) -> Any:
        await ask(manager)
        lost.left = 1
        refused = manager.write("lanes", ANONYMOUS, "tell", lambda study: study.tell(999, {}))
        return await asyncio.gather(ask(manager), refused, return_exceptions=True)

    unknown, refused = at_once(shared, act)
    assert isinstance(unknown, UnknownOutcome)
    assert isinstance(refused, mp.InvalidInput)


def test_a_second_loss_is_unknown_also_with_a_key(shared: str, lost: Losses) -> None:
    """The client is told to send the same request again, which is then recognised."""

    async def act(manager: StudyManager) -> Any:
        await ask(manager)
        lost.left = 2
        with pytest.raises(UnknownOutcome, match="Retry with the same key"):
            await ask(manager, request="a")
        lost.left = 0
        return await ask(manager, request="a")

    play = at_once(shared, act)
    assert play.id == 2
    assert mp.Study.open("lanes", store=shared).asked == 2


# ------------------------------------------------------------ connections


def test_a_study_without_a_connection_gets_that_of_an_idle_one(
    postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three connections, of which one reads keys; six studies and their journals use the others."""
    monkeypatch.setattr("multiplay.service.studies.manager.PAUSES", (0.05,) * 100)
    url, names = postgresql.new_url(), [f"study {k}" for k in range(6)]
    for name in names:
        new_study(store_at(url), name).disconnect()
    few = postgresql.with_few_connections(url, 3)

    async def act(manager: StudyManager) -> list[int]:
        heads = []
        for name in names * 2:
            await manager.write(name, ANONYMOUS, "ask", lambda study: study.ask())
            head = await manager.read_journal(name, ANONYMOUS, lambda journal: journal.head())
            heads.append(head.number)
        return heads

    assert at_once(few, act) == [1] * 6 + [2] * 6


def test_a_study_that_is_used_keeps_its_connection(shared: str, postgresql: Server) -> None:
    """Another one is refused meanwhile, and the client is told to retry."""
    new_study(store_at(shared), "roads").disconnect()
    few = postgresql.with_few_connections(shared, 2)
    begins, ends = threading.Event(), threading.Event()

    def wait(study: mp.Study) -> Any:
        begins.set()
        assert ends.wait(TIME_LIMIT)
        return study.ask()

    async def act(manager: StudyManager) -> Any:
        busy = asyncio.ensure_future(manager.write("lanes", ANONYMOUS, "ask", wait))
        await asyncio.to_thread(begins.wait, TIME_LIMIT)
        try:
            with pytest.raises(NoConnectionLeft) as caught:
                await manager.read("roads", ANONYMOUS, lambda study: study.asked)
        finally:
            ends.set()
        assert problems.of_error(caught.value, "a1").headers["Retry-After"]
        assert (await busy).id == 1

    at_once(few, act)
    with mp.Study.open("lanes", store=shared) as study:
        assert study.asked == 1


# ------------------------------------------------------------ names without an answer

STUDY = "/v1/studies/lanes"
NEW = {
    "name": "new",
    "actions": {"type": "Budget", "total": 1, "caps": [1, 1]},
    "loss_range": [0, 1],
}
CHANGES: dict[str, tuple[str, str, Any, int, list[str]]] = {
    "create": ("POST", "/v1/studies", NEW, 201, ["lanes", "new", "old"]),
    "create with a key": ("POST", "/v1/studies", NEW | {"key": "a"}, 201, ["lanes", "new", "old"]),
    "rename": ("POST", f"{STUDY}/rename", {"name": "new"}, 200, ["new", "old"]),
    "copy": ("POST", f"{STUDY}/copy", {"name": "new"}, 201, ["lanes", "new", "old"]),
    "delete": ("DELETE", STUDY, None, 204, ["old"]),
}


@pytest.mark.parametrize("is_sent", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_names_without_an_answer_is_recognised_by_its_key(
    change: str, is_sent: bool, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not the server has carried out the commit."""
    lost = Losses(monkeypatch, is_sent)
    method, path, body, status, names = CHANGES[change]
    requests = count()

    def headers() -> dict[str, str]:
        is_keyed = change != "create with a key"
        return {"Idempotency-Key": f"{next(requests)}"} if is_keyed else {}

    with client_of(create_app(Settings(store=shared))) as client:
        old = client.post("/v1/studies", json=NEW | {"name": "old"}, headers=headers())
        assert old.status_code == 201  # the table of requests exists now
        lost.left, given = 1, headers()
        first = client.request(method, path, json=body, headers=given)
        assert lost.left <= 0
        assert first.status_code == status, first.text
        again = client.request(method, path, json=body, headers=given)
        assert (again.status_code, again.content) == (status, first.content)
    assert mp.Study.names(store=shared) == names


@pytest.mark.parametrize("change", ["create", "rename", "copy", "delete"])
def test_a_change_of_names_without_a_key_or_an_answer_is_not_repeated(
    change: str, shared: str, lost: Losses
) -> None:
    method, path, body, *_ = CHANGES[change]
    with client_of(create_app(Settings(store=shared))) as client:
        lost.left = 1
        answer = client.request(method, path, json=body)
    assert answer.status_code == 503
    assert answer.json()["type"] == "urn:multiplay:outcome-unknown"
    assert "Idempotency-Key" in answer.json()["detail"]
    assert "Retry-After" not in answer.headers
    assert lost.left == 0


@pytest.mark.soak
def test_two_hundred_lost_commits_double_nothing(
    shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without keys: what is acknowledged is in the journal once."""
    chance, counts = random.Random(3), Counter[str]()
    plays: set[int] = set()

    def is_lost() -> bool:
        loses = chance.random() < 0.3
        counts["lost"] += loses
        return loses

    lose_commits(monkeypatch, is_lost)

    async def with_key(manager: StudyManager, k: int) -> None:
        while True:
            try:
                play = await ask(manager, request=f"{k}")
            except UnknownOutcome:
                continue
            assert play.id not in plays
            plays.add(play.id)
            return

    async def without_key(manager: StudyManager, k: int) -> None:
        try:
            await learn(manager, k % 250)
        except UnknownOutcome:
            counts["unknown"] += 1
        else:
            counts["learned"] += 1

    async def act(manager: StudyManager) -> int:
        sent = 0
        for requests in ([with_key], [without_key], [with_key, without_key]):
            enough = counts["lost"] + 200
            while counts["lost"] < enough:
                numbers = range(sent, sent + 8)
                await asyncio.gather(*(act(manager, k) for act in requests for k in numbers))
                counts.update({act.__name__: 8 for act in requests})
                sent += 8
        return sent

    at_once(shared, act)
    monkeypatch.undo()
    study = mp.Study.open("lanes", store=shared)
    kinds = Counter(entry.labels.kind for entry in study.entries())
    assert kinds["ask"] == counts["with_key"] == len(plays)
    assert counts["learned"] + counts["unknown"] == counts["without_key"]
    assert counts["learned"] <= kinds["learn"] <= counts["without_key"]
    assert verified(study).ok
