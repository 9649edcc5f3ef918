"""Studies: the contract over all stores, and what random uses cannot say."""

import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import study_machine
from constraint_reports import promise_reports
from effort import examples
from hypothesis import Phase
from processes import in_processes, in_threads
from refusal import refused
from study_contract import check_study
from trucks import STORES, ask_and_tell, costs, euros, new_study, plans, store_of, tables, verified

import multiplay as mp
from multiplay.errors import InvalidInput, NotFound, StoreError
from multiplay.random import Rounds, Streams
from multiplay.storage import Head, MemoryStore, Store, store_at
from multiplay.storage.memory import MemoryJournal
from multiplay.studies import entry_codec, replica, synced
from multiplay.studies.commands.base import Command
from multiplay.studies.commands.plays import Cancel, Close
from multiplay.studies.entry_codec import Request
from multiplay.studies.replica import Replica
from multiplay.studies.turn import Turn

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a snapshot after every few entries."""
    monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 5)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return store_of(request.param, request, tmp_path)


@pytest.fixture
def study(store: Store) -> Iterator[mp.Study]:
    with new_study(store) as made:
        yield made


# ---------------------------------------------------------------- the contract

POLICIES: dict[str, mp.Policy] = {
    "GenCTS": mp.GenCTS(),
    "GenLBINFV": mp.GenLBINFV(),
    "CombUCB": mp.CombUCB(),
    "Hybrid": mp.Hybrid(),
    "LinTS": mp.LinTS(),
    "Duplicated": mp.Duplicated(mp.GenCTS()),
}
SMALL = [
    *[("memory", policy) for policy in POLICIES],
    *[("sqlite", policy) for policy in ("GenCTS", "GenLBINFV")],
    *[("postgresql", policy) for policy in ("GenCTS", "Hybrid")],
]


@pytest.mark.slow
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(("kind", "policy"), SMALL)
def test_contract(kind: str, policy: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    store = store_of(kind, request, tmp_path)
    check_study(store, POLICIES[policy], examples=examples(6), steps=25)
    assert mp.Study.names(store=store) == []


@pytest.mark.soak
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", STORES)
def test_contract_for_long(
    kind: str, policy: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    store = store_of(kind, request, tmp_path)
    check_study(store, POLICIES[policy], examples=45, steps=50, seed=1)


@pytest.mark.usefixtures("often")
def test_a_snapshot_after_a_first_promise_equals_its_replay() -> None:
    """Equal sets of earlier plays are built from their entries one by one, or all at once."""
    names = (["A", "B"], ["y", "z"])
    usual = mp.Transport([2, 1], [1, 2], names=names)
    study = mp.Study.create("past", usual, mp.CombUCB(), varying_set=True, store=MemoryStore())
    for _ in range(3):
        study.ask(mp.Transport([2, 2], [1, 3], names=names))
        study.ask()
    study.add_constraint(mp.AtMost(500, of={"*": 1}, plays=9, name="CO2"))
    for play in range(1, 5):
        study.cancel(play)
    verified = study.verify()
    assert verified.ok, str(verified)


def study_with_a_past_set_ahead() -> mp.Study:
    """Return a study whose last entry, with a snapshot, has the set of an earlier play ahead."""
    names = (["A", "B"], ["y", "z"])
    usual, given, equal = (
        mp.Transport(*sizes, names=names)
        for sizes in (([2, 1], [1, 2]), ([2, 2], [1, 3]), ([2, 2], [1, 3]))
    )
    co2 = mp.AtMost(500, of={"*": 1}, plays=9, name="CO2", hard=False)
    store = MemoryStore()
    study = mp.Study.create(
        "ahead", usual, mp.CombUCB(), varying_set=True, constraints=[co2], store=store
    )
    study.ask(given)
    for _ in range(3):
        study.ask()
    study.ask(ahead=[equal])
    return study


@pytest.mark.usefixtures("often")
def test_a_snapshot_with_a_past_set_ahead_equals_its_replay() -> None:
    """The set ahead is the object of the earlier play, or one built from the entry."""
    study = study_with_a_past_set_ahead()
    assert study.verify() == verified(study)
    assert study.verify().ok, str(study.verify())


@pytest.mark.usefixtures("often")
def test_a_snapshot_may_have_equal_sets_more_than_once() -> None:
    """Earlier versions kept a second set in a process that had read the entry."""
    study = study_with_a_past_set_ahead()
    journal = study.store.open("ahead")
    kept = journal.get()
    assert kept is not None
    assert kept.header["number"] == study.head.number
    core = kept.header["core"]
    days, (ahead,) = core["days"], core["promises"]["ahead"]
    days.append(days[ahead - 1])
    core["promises"]["ahead"] = [len(days)]
    begin = f"days/{ahead}/"
    own = {name: array for name, array in kept.arrays.items() if name.startswith(begin)}
    for name, array in own.items():
        kept.arrays[name.replace(begin, f"days/{len(days)}/")] = array
    journal.put(kept)
    assert study.verify() == verified(study)
    assert study.verify().ok, str(study.verify())
    core["promises"]["ahead"] = [ahead, len(days)]  # one set more than the replay has
    journal.put(kept)
    (problem,) = study.verify().problems
    assert "the snapshot after it differs from the replay" in problem


class Distant:
    """A study that is reached in another way, with the verbs of a learner and no more."""

    def __init__(self, study: mp.Study) -> None:
        self._study = study

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("verify", "disconnect", "entries", "store"):
            raise AttributeError(name)
        return getattr(self._study, name)


class Somewhere:
    """Where such studies are."""

    def __init__(self) -> None:
        self.store = MemoryStore()

    def create(self, name: str, actions: Any, policy: mp.Policy, **settings: Any) -> Distant:
        return Distant(mp.Study.create(name, actions, policy, store=self.store, **settings))

    def open(self, name: str) -> Distant:
        return Distant(mp.Study.open(name, store=self.store))

    def names(self) -> list[str]:
        return mp.Study.names(store=self.store)

    def delete(self, name: str) -> None:
        mp.Study.delete(name, store=self.store)


def test_the_contract_needs_no_more_than_the_verbs() -> None:
    place = Somewhere()
    check_study(place, examples=2, steps=12)
    assert place.names() == []


def other_numbers(rounds: Rounds, t: int) -> Streams:
    """Draw what nobody else draws."""
    return Streams.spawn(secrets.randbits(32), 0, [t])


def own_state(study: Any, head: Head, seen: object) -> Replica:
    """Go on with what was known, whatever others did."""
    replica: Replica = study._replica or study._restored()
    study._replica = replica
    return replica


def learns_from_nothing(cancel: Cancel, turn: Turn) -> None:
    """Close where one should cancel."""
    Close(cancel.play).do(turn)


BROKEN: dict[str, tuple[type, str, Any]] = {
    "not be refused|must be refused|not refused": (Command, "known", lambda *_: None),
    "replaying gives|one process": (Rounds, "at", other_numbers),
    "pending|increase|must be": (mp.Study, "_caught_up", own_state),
    "without a final report|status": (Cancel, "do", learns_from_nothing),
}


@pytest.mark.parametrize("seen_as", BROKEN)
def test_the_contract_sees_what_breaks_it(seen_as: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_machine, "PHASES", [Phase.generate])
    monkeypatch.setattr(*BROKEN[seen_as])
    with pytest.raises((AssertionError, InvalidInput), match=seen_as):
        check_study(MemoryStore(), examples=9)


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize("key", [None, "k"])
def test_a_request_that_comes_twice_is_answered_the_very_same(
    study: mp.Study, key: str | None
) -> None:
    """With a key or without; another request with the key is told that nothing has changed."""
    first, second = study.ask(), study.ask()
    table = {"arm": ["Lyon->north"], "round": [1], "loss": [8.0]}
    part = {"Lyon->north": [None] * first.plan["Lyon->north"]}
    acts: list[tuple[str, Callable[[], mp.Receipt]]] = [
        ("tell", lambda: study.tell(first.id, part, final=False, key=key)),
        ("tell", lambda: study.tell(first.id, euros(first), key=key and "k 2")),
        ("close", lambda: study.close(second.id, key=key)),
        ("learn", lambda: study.learn(first.plan, euros(first), key=key)),
        ("learn_table", lambda: study.learn_table(table, key=key)),
    ]
    for number, (verb, act) in enumerate(acts):
        answers = []
        for request in (f"{number}", f"{number}", f"another {number}"):
            if not request.startswith("another") or key is not None:
                answers.append(study.once(verb, Request(request), act))
        assert answers[0] == answers[1]
        assert not answers[0].repeated
        assert [answer.repeated for answer in answers[2:]] == [True] * (key is not None)
    entries = Counter(entry.labels.kind == "request" for entry in study.entries())
    assert (entries[False], entries[True]) == (1 + 2 + 5, 0 if key is None else 5)
    assert study.verify().ok


# ---------------------------------------------------------------- where learners come from


def test_a_learner_goes_on_as_a_study(store: Store, tmp_path: Path) -> None:
    """With plays that wait, keys, and reports that came in parts."""
    learner = mp.Learner(plans(), mp.GenCTS(), seed=7, loss_range=(0, 250))
    told, cancelled, partly, waits = (learner.ask(key=key, at=60.0) for key in "abcd")
    learner.tell(told.id, euros(told), at=120.0)
    learner.cancel(cancelled.id)
    lane, trucks = next((lane, k) for lane, k in partly.plan.items() if k > 1)
    part = {lane: [55.0, *[None] * (trucks - 1)]}
    learner.tell(partly.id, part, final=False)
    learner.save(tmp_path / "learner.npz")
    with mp.Study.import_learner("lanes", tmp_path / "learner.npz", store=store) as study:
        pd.testing.assert_frame_equal(study.plays(), learner.plays())
        pd.testing.assert_frame_equal(study.arms(), learner.arms())
        assert [play.id for play in study.pending()] == [partly.id, waits.id]
        for play in (told, partly, waits):
            assert study.ask(key=play.key).plan == play.plan
        assert study.tell(told.id, euros(told)).repeated
        assert study.tell(partly.id, part, final=False).repeated
        whole = euros(partly)
        with refused(f"losses of {lane!r}"):
            study.tell(partly.id, whole)
        assert study.tell(partly.id, whole | {lane: [55.0, *whole[lane][1:]]}).seen == 5
        with refused("play"):
            study.tell(told.id, euros(told, more=1))
        with refused("play"):
            study.tell(cancelled.id, euros(cancelled))
        study.cancel(waits.id, key="no")
        new = study.ask()
        assert new.id == 5
        study.tell(new.id, euros(new), key="told")
        with mp.Study.open("lanes", store=store) as other:
            assert tables(other) == tables(study)
            assert other.tell(new.id, euros(new), key="told").repeated
        ends = study.plays()["status"].tolist()
        assert ends == ["told", "cancelled", "told", "cancelled", "told"]
        assert verified(study).ok
        assert study.verify().plays == 5


def test_files_of_version_0_9_go_on_as_studies(tmp_path: Path) -> None:
    path = DATA / "learner-0.9.npz"
    learner, store = mp.Learner.load(path), store_at(tmp_path / "trucks.db")
    with mp.Study.import_learner("old", path, store=store) as study:
        pd.testing.assert_frame_equal(study.plays(), learner.plays())
        for play in study.pending():
            if play.key == "part":
                assert study.close(play).seen == 1
                continue
            told = study.tell(play.id, {name: [0.5] * k for name, k in play.plan.items()})
            assert told.missing == 0
        last = study.plays()["id"].max()
        assert study.ask().id == last + 1
        assert verified(study).ok
        with mp.Study.open("old", store=store) as other:
            assert tables(other) == tables(study)


# ---------------------------------------------------------------- classes of others, versions


class Stubborn(mp.GenCTS):
    """A policy of one's own."""


def test_a_policy_of_ones_own_is_passed_again(store: Store) -> None:
    with new_study(store, policy=Stubborn()) as study:
        ask_and_tell(study, 3)
        with refused("policy"):
            mp.Study.open("lanes", store=store)
        with refused("policy"):
            mp.Study.open("lanes", store=store, policy=mp.GenCTS())
        with mp.Study.open("lanes", store=store, policy=Stubborn()) as other:
            assert tables(other) == tables(study)
            assert other.verify().ok
        with pytest.raises(InvalidInput, match="Stubborn"):
            verified(study)


@pytest.mark.usefixtures("often")
def test_what_a_newer_version_wrote_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole study; of a snapshot, we do without."""
    store = store_at(tmp_path / "trucks.db")
    with new_study(store) as study:
        with monkeypatch.context() as newer:
            newer.setattr(entry_codec, "FORMAT", entry_codec.FORMAT + 1)
            ask_and_tell(study, 4)
            with new_study(store, "newer") as other:
                ask_and_tell(other, 1)
        with mp.Study.open("lanes", store=store) as again:
            assert tables(again) == tables(study)
        with pytest.raises(InvalidInput, match=r"format 1 or older, got format 2\. Update"):
            mp.Study.open("newer", store=store)


def test_a_study_that_was_deleted_can_be_shown(store: Store) -> None:
    with new_study(store) as study:
        mp.Study.delete("lanes", store=store)
        assert repr(study).startswith("Study('lanes' in ")
        with pytest.raises(InvalidInput, match="which was deleted"):
            study.ask()


def test_a_study_with_a_new_name_goes_on(store: Store) -> None:
    with new_study(store) as study:
        ask_and_tell(study, 2)
        pending, before = study.ask(key="Monday"), study.head
        mp.Study.rename("lanes", "roads", store=store)
        for act in (study.ask, lambda: study.tell(pending, 0.0), study.arms, study.plays):
            with pytest.raises(NotFound, match="was deleted or renamed"):
                act()
    with new_study(store) as new, mp.Study.open("roads", store=store) as renamed:
        assert (new.asked, renamed.asked, renamed.head) == (0, 3, before)
        assert renamed.copy(name="ways") == before.number + 1
        with mp.Study.open("ways", store=store) as copied:
            assert copied.ask(key="Monday").plan == pending.plan
            assert copied.ask().plan == renamed.ask().plan
        verified(renamed)
        with refused("name"):
            renamed.copy()
    assert mp.Study.names(store=store) == ["lanes", "roads", "ways"]


@pytest.mark.slow
def test_what_promises_count_is_what_was_driven() -> None:
    rng, store = np.random.default_rng(5), MemoryStore()
    days = [mp.Budget(n, [n, n, 2], names=["air", "sea", "road"]) for n in (3, 4, 5)]
    amounts = {"air": 5.0, "sea": 1.0, "road": 0.5}
    co2 = mp.AtMost(300, amounts, plays=99, name="CO2", hard=False)
    mp.Study.create(
        "month",
        days[0],
        mp.GenCTS(),
        reports=mp.Reports(missing="ignore"),
        varying_set=True,
        constraints=[co2],
        store=store,
    )
    driven: dict[int, dict[str, int]] = {}
    for step in range(36):
        study = mp.Study.open("month", store=store)  # after a restart
        play = study.ask(days[step % 3])
        driven[play.id] = play.plan
        left = {arm: int(rng.integers(1, n + 1)) for arm, n in play.plan.items() if n}
        whole, short = ({arm: [0.5] * n for arm, n in one.items()} for one in (play.plan, left))
        match step % 9:
            case 0:  # bills that are missing, of units that were driven
                study.tell(
                    play, {arm: [*bills[1:], None][: len(bills)] for arm, bills in whole.items()}
                )
            case 1 | 2:  # fewer units than planned
                study.tell(play, short)
                driven[play.id] = left
            case 3:  # and later all of them
                study.tell(play, short)
                study.correct(play.id, whole)
            case 4:
                study.tell(play, whole)
                study.correct(play.id, short)
                driven[play.id] = left
            case 5:
                study.tell(play, short)
                study.retract(play.id)
            case 6:
                study.cancel(play)
                del driven[play.id]
            case 7:
                study.tell(play, short, final=False)
                study.close(play)
        if step % 4 == 3:
            (row,) = promise_reports(study)
            units = [pair for plan in driven.values() for pair in plan.items()]
            assert row.used == pytest.approx(sum(amounts[arm] * n for arm, n in units)), step
    assert study.verify().ok


# ---------------------------------------------------------------- processes and threads


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_process_that_was_forked_may_go_on_with_the_handle(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with new_study(store_of(kind, request, tmp_path)) as study:
        ask_and_tell(study, 1)

        def work(number: int) -> None:
            for k in range(5):
                for key in (f"{number} {k}", f"{k}"):  # of one's own, and one that all ask for
                    play = study.ask(key=key)
                    study.tell(play.id, euros(play), key=key)

        in_processes(3, work)
        ask_and_tell(study, 1)
        assert study.plays()["id"].tolist() == list(range(1, 23))
        assert set(study.plays()["status"]) == {"told"}
        assert len([*study.entries()]) == 1 + 2 * 22
        assert study.verify().ok


def test_threads_may_share_a_handle(study: mp.Study) -> None:
    def work(number: int) -> None:
        for k in range(8):
            play = study.ask(key=f"{number} {k}")
            _ = play.expected, study.arms(), len(study.plays())
            study.tell(play.id, euros(play), key=f"{number} {k}")

    in_threads(4, work)
    assert study.plays()["id"].tolist() == list(range(1, 33))
    assert study.verify().ok


# ---------------------------------------------------------------- commits that fail

FIXED = {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}  # there is one such plan
FAILS = StoreError("here", "it broke", "Try again.")
VERBS: dict[str, Callable[[mp.Study], Any]] = {
    "ask": lambda study: study.ask(key="k").id,
    "ask on another set": lambda study: study.ask(plans((3, 1), (2, 2)), key="k").id,
    "tell": lambda study: study.tell(1, costs(1, FIXED), key="k").seen,
    "tell a part": lambda study: study.tell(1, {}, final=False, key="k").seen,
    "close": lambda study: study.close(1, key="k").seen,
    "cancel": lambda study: study.cancel(1, key="k"),
    "expire": lambda study: study.expire(0.0, key="k", at=1e6),
    "learn": lambda study: study.learn(FIXED, costs(2, FIXED), key="k").seen,
    "learn_table": lambda study: (
        study.learn_table({"arm": ["Lyon->north"], "round": [1], "loss": [8.0]}, key="k").seen
    ),
    "forget": lambda study: study.forget("Lyon->north", before=2, key="k"),
    "unforget": lambda study: study.unforget("Lyon->north", since=1, key="k"),
}


@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("verb", VERBS)
def test_a_commit_that_fails_leaves_the_handle_right(
    verb: str, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether all is lost or only the answer: do it again with the same key."""
    store, act = MemoryStore(), VERBS[verb]
    study, twin = new_study(store), new_study(store, "twin")
    for one in (study, twin):
        one.ask(key="waits", fixed={"Lyon->north": 2}, at=0.0)
        ask_and_tell(one, 2)
    before = tables(study)
    commit = MemoryJournal._commit

    def fails(journal: MemoryJournal) -> None:
        if is_kept:
            commit(journal)
            journal._shared.lock.acquire()  # for the end of the turn, which gives it back
        raise FAILS

    with monkeypatch.context() as broken:
        broken.setattr(MemoryJournal, "_commit", fails)
        with pytest.raises(StoreError, match="it broke"):
            act(study)
    after = tables(study)
    assert is_kept or after == before
    assert act(study) == act(twin)
    assert not is_kept or tables(study) == after
    ask_and_tell(study, 2)
    ask_and_tell(twin, 2)
    assert study.arms().drop(columns="last_seen").equals(twin.arms().drop(columns="last_seen"))
    assert study.verify().ok
    assert verified(study).ok


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("source", ["sqlite", "postgresql"])
def test_a_copy_continues_in_another_store(
    kind: str, source: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    study = new_study(store_of(source, request, tmp_path))
    other = (
        store_at(tmp_path / "other.db") if kind == "sqlite" else store_of(kind, request, tmp_path)
    )
    with study:
        ask_and_tell(study, 2)
        pending = study.ask(key="waits")
        seen: list[int] = []
        assert study.copy(other, progress=seen.append) == 6
        assert seen == [*range(1, 7)]
        with pytest.raises(InvalidInput, match="a new name"):
            study.copy(other)
        with mp.Study.open("lanes", store=other) as copy:
            assert copy.head == study.head
            assert tables(copy) == tables(study)
            assert copy.tell(pending.id, euros(pending)).seen == 5
            assert copy.ask(key="waits").plan == pending.plan
            assert copy.verify().ok
        assert len(study.pending()) == 1, "the original is not changed"


def test_kernels_are_compiled_before_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    begin = MemoryJournal._begin

    def begun(journal: MemoryJournal) -> Head:
        order.append("transaction")
        return begin(journal)

    study = new_study(MemoryStore())
    monkeypatch.setattr(MemoryJournal, "_begin", begun)
    monkeypatch.setattr(synced, "rehearse", lambda engine, learns: order.append("compile"))
    study.ask()
    assert order == ["compile", "transaction"]


@pytest.mark.parametrize("policy", [mp.GenCTS(), mp.GenLBINFV()])
def test_a_rehearsal_changes_no_play(policy: mp.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "REHEARSED", set())
    studies = [new_study(MemoryStore(), policy=policy) for _ in range(2)]
    for study in studies:
        ask_and_tell(study, 2)
    assert {learns for _, _, learns in replica.REHEARSED} == {False, True}
    assert len({kind for *kind_of, _ in replica.REHEARSED for kind in [(*kind_of,)]}) == 1
    first, second = ([entry.record for entry in study.entries()][1:] for study in studies)
    assert [one.header for one in first] == [other.header for other in second]
    replica.REHEARSED.clear()
    mp.Study.compile_all(store=studies[0].store)
    assert len(replica.REHEARSED) == 1
    mp.Study.compile_all(store=MemoryStore())  # those of the default policy
    assert len(replica.REHEARSED) == 2
