"""Several verbs in one turn, requests that come twice, and who wrote what."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from study_contract import check_study
from trucks import STORES, euros, new_study, store_of, tables, verified

import multiplay as mp
from multiplay.errors import Conflict, NotFound
from multiplay.service.auth import keys
from multiplay.storage import Labels, Record, Store, store_at
from multiplay.storage.base import KeyRecord
from multiplay.studies.entry_codec import Request


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return store_of(request.param, request, tmp_path)


# ---------------------------------------------------------------- together


def test_a_block_comes_to_the_same_as_its_verbs(store: Store) -> None:
    one, other = new_study(store, "one"), new_study(store, "other")
    with one.together():
        for _ in range(5):
            play = one.ask(at=0.0)
            one.tell(play.id, euros(play), at=1.0)
    for _ in range(5):
        play = other.ask(at=0.0)
        other.tell(play.id, euros(play), at=1.0)
    assert tables(one) == tables(other)
    assert verified(one).ok


def test_a_block_that_fails_leaves_nothing(store: Store) -> None:
    study = new_study(store)
    first = study.ask()
    before = tables(study)

    def fails() -> None:
        with study.together():
            study.ask(key="gone")
            study.tell(first.id, euros(first))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert tables(study) == before
    assert study.ask(key="gone").id == 2, "the id was never given"
    assert verified(study).ok


def test_a_verb_that_is_refused_does_not_harm_the_others(store: Store) -> None:
    study = new_study(store)
    with study.together():
        play = study.ask()
        with pytest.raises(NotFound):
            study.tell(99, {})
        with pytest.raises(mp.InvalidInput):
            study.tell(play.id, {"Lyon->north": [1e9]})
        study.tell(play.id, euros(play))
    assert study.plays()["status"].tolist() == ["told"]
    assert verified(study).ok


def test_after_a_verb_that_fails_the_block_cannot_go_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = new_study(store)
    study.ask()

    def broken(*_: Any) -> None:
        raise ArithmeticError("broken")

    def goes_on() -> None:
        with study.together():
            study.ask()
            with monkeypatch.context() as patched:
                patched.setattr(mp.GenCTS, "choose", broken)
                with pytest.raises(ArithmeticError):
                    study.ask()
            with pytest.raises(RuntimeError, match="end the block"):
                study.ask()

    with pytest.raises(RuntimeError, match="nothing of the block is kept"):
        goes_on()
    assert study.asked == 1
    assert verified(study).ok


def test_blocks_do_not_nest(store: Store) -> None:
    study = new_study(store)
    with pytest.raises(RuntimeError, match="cannot be nested"), study.together(), study.together():
        raise AssertionError
    study.ask()


def test_others_see_a_block_when_it_is_over(store: Store) -> None:
    study, other = new_study(store), mp.Study.open("lanes", store=store)
    with study.together():
        study.ask()
        if not store.url.startswith("memory"):  # there, the journal has a lock for readers too
            assert other.asked == 0
    assert other.asked == 1


# ---------------------------------------------------------------- requests


def test_a_request_that_comes_twice_is_answered_the_same(store: Store) -> None:
    study = new_study(store)

    def repeated(request: str, verb: str, *args: Any, **options: Any) -> tuple[Any, Any]:
        found = []
        for handle in (study, mp.Study.open("lanes", store=store)):
            act = partial(getattr(handle, verb), *args, **options)
            found.append(handle.once(verb, Request(request), act))
        return found[0], found[1]

    one, other = repeated("1", "ask")
    assert (one.id, one.plan, one.key) == (other.id, other.plan, None)
    part = {arm: [costs[0]] for arm, costs in euros(one).items()}
    told, again = repeated("2", "tell", one.id, part, final=False)
    assert told == again
    assert not again.repeated
    told, again = repeated("3", "close", one.id)
    assert told == again
    play, _ = repeated("4", "ask", key="Monday")
    repeated("5", "cancel", play.id)
    play, _ = repeated("6", "ask", at=0.0)
    assert repeated("7", "expire", 10.0) == ([play.id], [play.id])
    plan = study.best().plan
    losses = {arm: [9.0] * units for arm, units in plan.items()}
    told, again = repeated("8", "learn", plan, losses)
    assert told == again
    table = {"round": [1, 2], "arm": ["Lyon->north"] * 2, "loss": [1.0, 2.0]}
    told, again = repeated("9", "learn_table", table)
    assert told == again
    kinds = [entry.labels.kind for entry in study.entries()]
    assert kinds == [
        *("create", "ask", "part", "close", "ask", "cancel", "ask", "expire", "cancel"),
        *("learn", "learn_table"),
    ]
    assert study.plays()["key"].tolist() == [None, "Monday", None]
    assert verified(study).ok


def test_a_request_with_another_content_is_a_conflict(store: Store) -> None:
    study = new_study(store)
    one, other = study.ask(), study.ask()
    study.once("tell", Request("1", "a"), lambda: study.tell(one.id, euros(one)))
    with pytest.raises(Conflict, match="used for a different request"):
        study.once("tell", Request("1", "b"), lambda: study.tell(other.id, euros(other)))
    study.tell(other.id, euros(other))


def test_requests_of_one_block_are_looked_for_at_once(store: Store) -> None:
    """One came before, one comes twice in the block, and the others are new."""
    study = new_study(store)
    old = study.once("ask", Request("old"), study.ask)
    ids = []
    with study.together():
        study.foresee([("ask", request) for request in ("old", "a", "b", "a")])
        for request in ("old", "a", "b", "a"):
            ids.append(study.once("ask", Request(request), study.ask).id)
    assert ids == [old.id, 2, 3, 2]
    assert verified(study).ok


def test_the_key_of_a_request_is_no_key_of_people(store: Store) -> None:
    with pytest.raises(mp.InvalidInput):
        new_study(store).ask(key="\x1f1")


# ---------------------------------------------------------------- who, and again


def test_entries_name_who_wrote_them(store: Store) -> None:
    made = mp.Study.create("lanes", mp.Budget(2, [1, 2]), mp.GenCTS(), store=store, by="the boss")
    made.ask()
    with mp.Study.open("lanes", store=store, by="night job") as study:
        study.cancel(1)
    by = [entry.record.header["by"] for entry in made.entries()]
    assert by == ["the boss", "the boss", "night job"]
    assert verified(made).ok


def test_a_study_is_created_once_for_each_key(store: Store) -> None:
    made: dict[str, Any] = {"actions": mp.Budget(2, [1, 2]), "policy": mp.GenCTS(), "store": store}
    one = mp.Study.create("lanes", **made, key="k")
    one.ask()
    assert mp.Study.create("lanes", **made, key="k").asked == 1
    for key in (None, "other"):
        with pytest.raises(Conflict):
            mp.Study.create("lanes", **made, key=key)


# ---------------------------------------------------------------- the store


def test_what_is_written_in_a_turn_is_found_in_it(store: Store) -> None:
    journal = store.create("one", Record({}, {}))
    with journal.transaction():
        journal.write(Record({"n": 1}, {}), Labels("ask", "a", 1), is_new=True)
        journal.write(Record({"n": 2}, {}), Labels("tell", None, 1))
        found = journal.find("ask", "a")
        assert found is not None
        assert found.record.header == {"n": 1}
        assert [entry.number for entry in journal.of_play(1)] == [1, 2]
        found_all = journal.find_all([("ask", "a"), ("tell", "a"), ("ask", "b")])
        assert [entry.number for entry in found_all] == [1]
        with pytest.raises(mp.InvalidInput):
            journal.write(Record({}, {}), Labels("ask", "a"))
    assert journal.find_all([]) == []


def test_a_keyring_keeps_and_forgets(store: Store) -> None:
    keyring, other = store.keyring(), store.keyring()
    assert other.is_empty()
    assert other.all() == []
    assert not other.remove("a")
    rows = [
        KeyRecord("a", b"1" * 32, "one", None, "manage", 1.0),
        KeyRecord("b", b"2" * 32, "two", "lanes", "play", 2.0, 50.0, "a"),
        KeyRecord("c", b"3" * 32, "three", "lanes", "read", 3.0, 10.0),
    ]
    with pytest.raises(NotFound):
        keyring.add(rows[2])
    store.create("lanes", Record({}, {})).close()
    for row in rows:
        keyring.add(row)
    assert other.all() == rows
    assert other.find(["c", "x", "a"]) == [rows[2], rows[0]]
    other.remove_expired(20.0)
    assert keyring.all() == rows[:2]
    assert other.remove("a"), "with those that were made with it"
    assert keyring.is_empty()
    keyring.close()
    other.close()


def test_keys_can_be_made_before_any_study(tmp_path: Path) -> None:
    place = tmp_path / "new.db"
    made = keys.create(place, "manage", name="first")
    assert mp.Study.names(store=place) == []
    assert [row.id for row in keys.list_all(place)] == [made.row.id]
    with pytest.raises(NotFound):
        keys.create(place, "play", study="none")
    with pytest.raises(NotFound):
        keys.revoke(place, "none")


def test_the_contract_holds_in_blocks(tmp_path: Path) -> None:
    class Blocks:
        """Studies of which every verb is in a block of its own."""

        store = store_at(tmp_path / "blocks.db")

        def create(self, name: str, *args: Any, **settings: Any) -> Any:
            return InBlocks.create(name, *args, store=self.store, **settings)

        def open(self, name: str) -> Any:
            return InBlocks.open(name, store=self.store)

        def names(self) -> list[str]:
            return mp.Study.names(store=self.store)

        def delete(self, name: str) -> None:
            mp.Study.delete(name, store=self.store)

    check_study(Blocks(), examples=3, steps=20)


class InBlocks(mp.Study):
    def ask(self, *args: Any, **options: Any) -> Any:
        with self.together():
            return super().ask(*args, **options)

    def tell(self, *args: Any, **options: Any) -> Any:
        with self.together():
            return super().tell(*args, **options)
