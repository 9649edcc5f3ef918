"""Desks: many requests share a turn, and none of them harms another."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trucks import euros, new_study, verified

import multiplay as mp
from multiplay.service.api import events
from multiplay.service.api.refusals import Forbidden, Unknown
from multiplay.service.auth import keys, tokens
from multiplay.service.auth.authenticator import ANYBODY, Caller
from multiplay.service.settings import Settings
from multiplay.service.studies.manager import Office
from multiplay.storage import store_at


class Turns:
    """How many jobs each turn had."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs: list[int] = []
        monkeypatch.setattr("multiplay.service.studies.batching.metrics.turn", self.jobs.append)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    place = tmp_path / "studies.db"
    new_study(store_at(place)).disconnect()
    return place


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    return Turns(monkeypatch)


def at_once(store: Path, act: Callable[[Office], Any]) -> Any:
    """Do something with an office, in a loop of its own."""

    async def done() -> Any:
        office = Office(Settings(store=f"{store}"))
        try:
            return await act(office)
        finally:
            office.close()

    return asyncio.run(done())


def ask(office: Office, caller: Caller = ANYBODY, request: str | None = None) -> Any:
    return office.write("lanes", caller, "ask", lambda study: study.ask(), None, request)


def test_requests_that_come_together_share_turns(store: Path, turns: Turns) -> None:
    async def act(office: Office) -> list[Any]:
        await ask(office)
        return await asyncio.gather(*(ask(office) for _ in range(60)))

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

    async def act(office: Office) -> list[Any]:
        jobs = [ask(office) for _ in range(5)]
        for act in (fails, refused):
            jobs.insert(2, office.write("lanes", ANYBODY, "ask", act))
        return await asyncio.gather(*jobs, return_exceptions=True)

    answers = at_once(store, act)
    kinds = [type(answer).__name__ for answer in answers]
    assert kinds.count("PendingPlay") == 5
    assert {"ZeroDivisionError", "NotFound"} <= set(kinds)
    study = mp.Study.open("lanes", store=store)
    given = {answer.id for answer in answers if hasattr(answer, "id")}
    assert given == {play.id for play in study.pending()}, "what has failed was never asked"
    assert verified(study).ok


def test_a_request_that_comes_twice_at_once_is_done_once(store: Path) -> None:
    async def act(office: Office) -> list[Any]:
        return await asyncio.gather(*(ask(office, request=f"{k % 3}") for k in range(12)))

    plays = at_once(store, act)
    assert len({play.id for play in plays}) == 3
    assert mp.Study.open("lanes", store=store).asked == 3


def test_answers_are_of_what_is_durable(store: Path) -> None:
    """When an answer is made, others see what it answers."""

    def seen_by_others(play: Any) -> bool:
        return play.id in [one.id for one in mp.Study.open("lanes", store=store).pending()]

    async def act(office: Office) -> Any:
        act = [
            office.write("lanes", ANYBODY, "ask", lambda study: study.ask(), seen_by_others)
            for _ in range(4)
        ]
        return await asyncio.gather(*act)

    assert at_once(store, act) == [True] * 4


def test_a_study_that_was_made_anew_is_found(store: Path) -> None:
    async def act(office: Office) -> list[int]:
        first = await ask(office)
        await office.look("lanes", ANYBODY, lambda journal: journal.head())
        mp.Study.delete("lanes", store=store)
        with pytest.raises(mp.InvalidInput):
            await ask(office)
        new_study(store_at(store)).disconnect()
        second = await ask(office)
        head = await office.look("lanes", ANYBODY, lambda journal: journal.head())
        return [first.id, second.id, head.number]

    assert at_once(store, act) == [1, 1, 1]


def test_a_key_is_confirmed_where_something_is_done(store: Path) -> None:
    made = keys.create(store, "play")

    async def act(office: Office) -> None:
        caller = await office.claimed(made.token)
        await ask(office, caller)
        keys.revoke(store, made.row.id)
        assert await office.claimed(made.token) == caller, "it is remembered"
        for job in (
            ask(office, caller),
            office.read("lanes", caller, lambda study: study.asked),
            office.look("lanes", caller, lambda journal: journal.head()),
            office.names(caller),
            office.verify("lanes", caller),
        ):
            with pytest.raises(Unknown):
                await job
        with pytest.raises(Unknown):
            await office.claimed(made.token)

    at_once(store, act)
    assert mp.Study.open("lanes", store=store).asked == 1


def test_rights_are_those_of_the_key(store: Path) -> None:
    rows = {can: tokens.make("a key", can, "lanes", 0.0).row for can in tokens.RIGHTS}
    callers = {can: Caller(row.id, "", "lanes", can, row.id) for can, row in rows.items()}
    for can, caller in callers.items():
        for needed in tokens.RIGHTS:
            if tokens.RIGHTS.index(can) >= tokens.RIGHTS.index(needed):
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

    async def act(office: Office) -> list[Any]:
        jobs = (ask(office) for _ in range(20))
        return await asyncio.gather(*jobs, return_exceptions=True)

    answers = at_once(store, act)
    refused = [answer for answer in answers if isinstance(answer, mp.StoreError)]
    assert refused
    assert mp.Study.open("lanes", store=store).asked == 20 - len(refused)


def test_who_does_not_wait_for_the_answer_harms_nobody(store: Path) -> None:
    async def act(office: Office) -> Any:
        left = asyncio.ensure_future(ask(office))
        await asyncio.sleep(0)
        left.cancel()
        return await ask(office)

    at_once(store, act)
    study = mp.Study.open("lanes", store=store)
    for play in study.pending():
        study.tell(play.id, euros(play))
    assert verified(study).ok


def test_only_some_studies_are_kept_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multiplay.service.studies.manager.MOST_DESKS", 2)
    place = tmp_path / "many.db"
    names = [f"study {k}" for k in range(6)]
    for name in names:
        new_study(store_at(place), name).disconnect()

    async def act(office: Office) -> int:
        for name in names * 2:
            await office.write(name, ANYBODY, "ask", lambda study: study.ask())
            await office.look(name, ANYBODY, lambda journal: journal.head())
        return len(office._desks)

    assert at_once(place, act) <= 3
    assert [mp.Study.open(name, store=place).asked for name in names] == [2] * 6


def test_events_end_with_their_key(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not something happens in the meantime, and a stream that ends is not counted."""
    monkeypatch.setattr(events, "HEARTBEAT", 0.0)
    monkeypatch.setattr(events, "PAUSE", 0.01)
    made = keys.create(store, "play")

    async def act(office: Office) -> list[str]:
        caller = await office.caller(made.token)
        stream: Any = (await events.stream(office, "lanes", made.token)).body_iterator
        said = [str(await anext(stream)), str(await anext(stream))]
        await ask(office, caller)
        while "data: 1" not in (text := str(await anext(stream))):
            said.append(text)
        keys.revoke(store, made.row.id)
        said += [str(text) async for text in stream]
        assert office._streams == 0
        return said

    said = at_once(store, act)
    assert said[0].startswith("retry:")
    assert "data: 0" in said[1]


def test_who_only_reads_has_no_turn(store: Path, turns: Turns) -> None:
    at_once(store, lambda office: office.read("lanes", ANYBODY, lambda study: study.asked))
    assert turns.jobs == []
