"""Contract of journals and stores: labels, digests, transactions, names and keyrings."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from threading import Event, Thread
from typing import Any, cast

import numpy as np

from multiplay.errors import InvalidInput
from multiplay.storage import Damaged, Entry, Head, Journal, Labels, Record, Storage, Store
from multiplay.storage.base import KeyRecord

PAUSE = 0.05  # seconds in which a transaction that does not wait for the lock would begin
FIRST = 1  # the number after the record that a journal begins with
DAMAGED = "a damaged record must not be returned"


def check_journal(
    open_storage: Callable[[str], Storage],
    damage: Callable[[Storage, int], None] | None = None,
    damage_snapshot: Callable[[Storage], None] | None = None,
) -> None:
    """Check the contract of a journal beyond that of a storage; see ``check_storage``."""

    def opener(name: str) -> Journal:
        journal = open_storage(name)
        assert isinstance(journal, Journal), "every storage must be a journal, or none"
        return journal

    _check_labels(opener("labels"), opener("labels"))
    _check_keys(opener("keys"), opener("keys"))
    _check_bad_labels(opener("bad labels"))
    _check_pairs(opener("pairs"))
    _check_chain(opener("chain"))
    _check_rollback(opener("rollback"), opener("rollback"))
    _check_transactions(opener("transactions"), opener("transactions"))
    _check_waiting(opener("waiting"), opener("waiting"))
    _check_closing(opener("closing"))
    _check_accepting(opener("accepting"), opener("accepting"))
    if damage is not None:
        _check_damage(opener("damaged labels"), damage)
    if damage_snapshot is not None:
        _check_snapshots(opener("snapshots"), damage_snapshot)


def _check_labels(one: Journal, other: Journal) -> None:
    written = [
        one.write(Record({"k": 0}, {"k": np.arange(3)}), Labels("ask", 'ü "k"\n', 7, 1e9 + 0.1)),
        one.write(Record({"k": 1}, {}), Labels("tell", None, 7, -0.5)),
        one.write(Record({"k": 2}, {}), Labels("ask", "", 2**63 - 1)),
        one.write(Record({"k": 3}, {})),
    ]
    for journal in (one, other):
        assert _same(list(journal.entries(FIRST)), written), "entries must be read as written"
        assert _same(journal.of_play(7), written[:2]), "of_play must find all records of the play"
        assert _same(journal.of_play(2**63 - 1), written[2:3]), "plays may be large"
        assert journal.of_play(8) == [], "of_play must be empty for an unknown play"
        found = [journal.find("ask", 'ü "k"\n'), journal.find("ask", "")]
        assert _same(found, [written[0], written[2]]), "find must return the record with the key"
        assert journal.find("tell", "") is None, "a key belongs to its kind"
        assert journal.head() == (written[-1].number, written[-1].digest), "head is the last"


def _check_keys(one: Journal, other: Journal) -> None:
    one.write(Record({"k": 0}, {}), Labels("ask", "Monday"))
    with _refused("a key that is used already"):
        other.write(Record({"k": 1}, {}), Labels("ask", "Monday"))
    with one.transaction():
        one.write(Record({"k": 2}, {}), Labels("tell", "Monday"))
        for _ in range(2):
            with _refused("a key that was used in this transaction"):
                one.write(Record({"k": 3}, {}), Labels("tell", "Monday"))
        one.write(Record({"k": 4}, {}), Labels("tell", "Tuesday"))
    kept = [entry.record.header["k"] for entry in other.entries(FIRST)]
    assert kept == [0, 2, 4], "a refused key must not change the rest of the transaction"
    wanted = [("ask", "Monday"), ("ask", "Friday"), ("tell", "Friday"), ("ask", "Sunday")]
    with one.transaction():
        for day in ("Friday", "Saturday"):
            one.write(Record({"k": day}, {}), Labels("ask", day), is_new=True)
        found = {entry.record.header["k"] for entry in one.find_all(wanted)}
        assert found == {0, "Friday"}, (
            "existing entries must be found, also those of this transaction"
        )
        with _refused("a key that was used in this transaction"):
            one.write(Record({"k": 5}, {}), Labels("ask", "Saturday"))
    assert len(other.find_all([("ask", "Friday"), ("ask", "Saturday")])) == 2, "they must be kept"
    assert other.find_all([]) == [], "find_all of nothing must be empty"


def _check_bad_labels(journal: Journal) -> None:
    bad = [
        Labels("a\0b"),
        Labels("x" * 51),
        Labels("ask", "\ud800"),
        Labels("ask", "a\0"),
        Labels("ask", "x" * 501),
        Labels("ask", None, -1),
        Labels("ask", None, 2**63),
        Labels("ask", None, None, math.nan),
    ]
    for labels in bad:
        with _refused(f"labels that not every store can keep, {labels}"):
            journal.write(Record({}, {}), labels)
    assert journal.head().number == FIRST - 1, "a refused record must not be stored"


def _check_pairs(journal: Journal) -> None:
    for play in range(5):
        journal.write(Record({"play": play}, {"memo": np.arange(9)}), Labels("ask", None, play))
    journal.write(Record({"by": "nobody"}, {}), Labels("ask"))
    for play, kind in ((3, "tell"), (1, "cancel"), (3, "close"), (3, "note"), (2, "note")):
        journal.write(Record({"end": kind}, {"units": np.arange(9)}), Labels(kind, None, play))
    pairs = list(journal.pairs("ask", ("tell", "cancel", "close")))
    plays = [asked.labels.play for asked, _ in pairs]
    assert plays == [0, 1, 2, 3, 4, None], "pairs must have all of the kind, in order"
    ends = [end and end.record.header["end"] for _, end in pairs]
    expected = [None, "cancel", None, "close", None, None]
    assert ends == expected, "pairs must have the last end of each play, if there is one"
    bare = [one for pair in pairs for one in pair if one is not None]
    assert all(entry.record.arrays == {} for entry in bare), "pairs must come without arrays"
    assert [end for _, end in journal.pairs("ask", ())] == [None] * 6, "pairs must accept no ends"
    later = [asked.labels.play for asked, _ in journal.pairs("ask", (), pairs[2][0].number)]
    assert later == [2, 3, 4, None], "pairs must begin at the number that is given"


def _check_chain(journal: Journal) -> None:
    record, labels = Record({"k": 1}, {"x": np.arange(3)}), Labels("ask", "key", 3, 0.5)
    others = [
        (record, labels._replace(kind="askk")),
        (record, labels._replace(key="ey")),
        (record, labels._replace(key=None)),
        (record, labels._replace(play=4)),
        (record, labels._replace(play=None)),
        (record, labels._replace(at=0.25)),
        (Record({"k": 2}, record.arrays), labels),
        (Record({"k": 1}, {"y": np.arange(3)}), labels),
        (Record({"k": 1}, {"x": np.arange(3, dtype=np.int32)}), labels),
        (Record({"k": 1}, {"x": np.arange(3)[::-1]}), labels),
        (Record({"k": 1}, {}), labels),
    ]
    digests = [_digest(journal, *one) for one in [(record, labels), *others]]
    assert len(set(digests)) == len(digests), "a digest must depend on all of its entry"
    assert _digest(journal, record, labels) == digests[0], "a digest must depend on nothing else"
    journal.write(Record({}, {}))
    assert _digest(journal, record, labels) not in digests, (
        "a digest must cover the entries before it"
    )


def _digest(journal: Journal, record: Record, labels: Labels) -> bytes:
    """Return the digest of an entry that is written and rolled back."""
    digest = b""
    with _rolled_back(journal):
        digest = journal.write(record, labels).digest
    assert 16 <= len(digest) <= 64, (
        "a digest must have 16 to 64 bytes, so that collisions cannot be found"
    )
    return digest


class _RollBack(Exception):
    """Raised to roll a transaction back."""


@contextmanager
def _rolled_back(journal: Journal) -> Iterator[Head]:
    try:
        with journal.transaction() as head:
            yield head
            raise _RollBack
    except _RollBack:
        return
    raise AssertionError("an exception of the block must be raised")


def _check_rollback(one: Journal, other: Journal) -> None:
    one.put(Record({"snapshot": 0}, {}))
    before = one.write(Record({"k": 0}, {}), Labels("ask", "a", 1))
    with _rolled_back(one) as head:
        assert head == (before.number, before.digest), "a transaction must return the head"
        entry = one.write(Record({"k": 1}, {}), Labels("ask", "b", 1))
        one.put(Record({"snapshot": 1}, {}))
        assert one.head() == (entry.number, entry.digest), "a transaction must see what it wrote"
        assert len(one.of_play(1)) == 2, "a transaction must see what it wrote"
        assert one.find("ask", "b") is not None, "a transaction must see what it wrote"
        assert [e.number for e in one.entries(FIRST)] == [FIRST, FIRST + 1], (
            "a transaction must see all entries"
        )
        snapshot = one.get()
        assert snapshot is not None, "a transaction must see the snapshot"
        assert snapshot.header == {"snapshot": 1}, "a transaction must see its snapshot"
    for journal in (one, other):
        assert journal.head() == (before.number, before.digest), "everything must be rolled back"
        assert len(journal.of_play(1)) == 1, "everything must be rolled back"
        assert journal.find("ask", "b") is None, "everything must be rolled back"
        snapshot = journal.get()
        assert snapshot is not None, "an older snapshot must stay"
        assert snapshot.header == {"snapshot": 0}, "a snapshot must be rolled back too"
    assert other.append(Record({"k": 2}, {})) == FIRST + 1, "its numbers must be used again"


def _check_transactions(one: Journal, other: Journal) -> None:
    with one.transaction():
        for k in range(3):
            one.write(Record({"k": k}, {}), Labels("ask", f"{k}", 0))
            assert other.head().number == FIRST - 1, (
                "other handles must see nothing before the commit"
            )
            assert other.find("ask", f"{k}") is None, (
                "other handles must see nothing before the commit"
            )
        one.put(Record({}, {}))
        assert other.get() is None, "other handles must see nothing before the commit"
    assert other.head().number == FIRST + 2, "other handles must see all after the commit"
    assert len(other.of_play(0)) == 3, "other handles must see all after the commit"
    with one.transaction() as head:
        assert head.number == FIRST + 2, "an empty transaction is allowed"
    assert other.head().number == FIRST + 2, "an empty transaction must change nothing"


def _check_waiting(one: Journal, other: Journal) -> None:
    """Begin two transactions at once: without a lock, both would use the same number."""
    waiting, done = Event(), Event()
    heads: list[int] = []

    def wait() -> None:
        waiting.set()
        with other.transaction() as head:
            heads.append(head.number)
            other.append(Record({"by": "other"}, {}))
        done.set()

    with one.transaction():
        thread = Thread(target=wait, daemon=True)
        thread.start()
        waiting.wait()
        assert not done.wait(PAUSE), "two transactions must not run at once"
        number = one.append(Record({"by": "one"}, {}))
    thread.join()
    assert heads == [number], "a transaction that waited must get the new head"
    writers = [entry.record.header["by"] for entry in one.entries(FIRST)]
    assert writers == ["one", "other"], "a transaction that waited must write after the first one"


def _check_closing(journal: Journal) -> None:
    journal.append(Record({}, {}))
    for _ in range(2):
        journal.close()
    assert journal.head().number == FIRST, "a handle must work after it was closed"
    journal.close()
    assert journal.append(Record({}, {})) == FIRST + 1, "a handle must work after it was closed"


def _check_accepting(one: Journal, other: Journal) -> None:
    one.append(Record({}, {}))
    one.put(Record({}, {}))
    times = [other.accepted()]
    assert times == [0], "a new journal was never accepted"
    for _ in range(2):
        assert one.accept() == other.head(), "accept must return the last entry"
        times.append(other.accepted())
    assert times == sorted(set(times)), "accepted must increase with each call"
    assert other.get() is None, "accept must delete snapshots"
    assert other.append(Record({}, {})) == FIRST + 1, "a journal must continue after accept"


def _check_damage(journal: Journal, damage: Callable[[Storage, int], None]) -> None:
    for k in range(4):
        journal.write(Record({"k": k}, {"x": np.arange(k)}), Labels("ask", f"{k}", k // 2))
    damage(journal, FIRST + 1)
    shown = (FIRST, None)
    assert _number_or_damaged(lambda: journal.find("ask", "1"), FIRST + 1) in shown, DAMAGED
    assert _number_or_damaged(lambda: journal.of_play(0)[-1], FIRST + 1) in shown, DAMAGED
    found = journal.find("ask", "2")
    assert found is not None, "a record after the damaged one must be found"
    assert found.record.header == {"k": 2}, "a record after the damaged one must be found"


def _number_or_damaged(look: Callable[[], Entry | None], damaged: int) -> int | None:
    """Return the number of the entry; None if it is not found, or damaged."""
    try:
        found = look()
    except Damaged as error:
        found = None
        if error.number != damaged:
            raise AssertionError("Damaged must have the number") from error
    return None if found is None else found.number


def _check_snapshots(journal: Journal, damage: Callable[[Storage], None]) -> None:
    for k in range(4):
        journal.put(Record({"k": k}, {"x": np.arange(k)}))
    for expected in (2, None):
        damage(journal)
        snapshot = journal.get()
        found = None if snapshot is None else snapshot.header["k"]
        assert found == expected, "get must return the newest of two readable snapshots"
    journal.put(Record({"k": 4}, {}))
    snapshot = journal.get()
    assert snapshot is not None, "a new snapshot must be read"
    assert snapshot.header == {"k": 4}, "a new snapshot must be read"


def check_store(store: Store) -> None:
    """Check the contract of a store of journals; journals of the check are deleted at the end.

    Parameters
    ----------
    store
        The store; its existing journals are not changed.

    Examples
    --------
    >>> from multiplay.storage import MemoryStore
    >>> from multiplay.testing import check_store
    >>> check_store(MemoryStore())
    """
    before, mine = store.names(), ["check lanes", "check ways", "check Länder ü"]
    assert not set(before) & set(mine), "the names that are tried must be free"
    assert store.url.partition("://")[1], "url must be a URL"
    made = [store.create(name, Record({"of": name}, {}), Labels("create", "0")) for name in mine]
    known = sorted([*before, *mine])
    assert store.names() == known, "names must be those of all, sorted"
    for prefix, after, limit in (("check", "", 2), ("check l", "", None), ("", known[0], 1)):
        those = [name for name in known if name.startswith(prefix) and name > after][:limit]
        assert store.names(prefix, after, limit) == those, "a part of the names"
    for name, journal in zip(mine, made, strict=True):
        other = store.open(name)
        for handle in (journal, other):
            first = list(handle.entries())
            assert [entry.record.header for entry in first] == [{"of": name}], "one first record"
            assert [entry.labels for entry in first] == [Labels("create", "0")], "with its labels"
            assert handle.head() == (0, first[0].digest), "the first record is number 0"
        assert other.find("create", "0") is not None, "the first record must be found"
        other.close()
    with _refused("a name that is in use"):
        store.create(mine[0], Record({"of": "another"}, {}))
    assert next(made[0].entries()).record.header == {"of": mine[0]}, (
        "the existing journal must not change"
    )
    for bad in ("", " ", "a\nb", "x" * 201, "\ud800"):
        with _refused(f"the name {bad!r}"):
            store.create(bad, Record({}, {}))
    with _refused("a record that cannot be stored"):
        store.create("check odd", Record({"odd": print}, {}))
    _check_beginning(store)
    _check_keyring(store)
    for act in (store.open, store.delete):
        with _refused("an unknown name", near=mine[0]):
            act("check lines")
    made[1].write(Record({"n": 1}, {}))
    _check_deleting(store, mine[0], made[0])
    _check_renaming(store, "check old", "check Straße", mine[1])
    assert made[1].head().number == 1, "other journals must stay as they are"
    for name, journal in zip(mine, made, strict=True):
        journal.close()
        store.delete(name)
    assert store.names() == before, "a deleted journal must not be listed"


def _check_beginning(store: Store) -> None:
    """Create a journal with many records: all are stored, or none."""
    name, first = "check many", (Record({"k": 0}, {}), Labels("ask", "0"))
    more = [(Record({"k": k}, {"x": np.arange(k)}), Labels("tell", f"{k}", k)) for k in (1, 2, 3)]
    for bad in ((Record({"odd": print}, {}), Labels()), more[0], first):
        with _refused("a list of first records of which one cannot be stored"):
            store.create(name, *first, [*more, bad])
        assert name not in store.names(), "a refused journal must not be created"
    journal, single = store.create(name, *first, more), store.create("check single", *first)
    for record, labels in more:
        single.write(record, labels)
    together, one_by_one = list(journal.entries()), list(single.entries())
    assert _same(together, one_by_one), "first records must be stored as if they were written later"
    for handle, its_name in ((journal, name), (single, "check single")):
        handle.close()
        store.delete(its_name)


def _check_keyring(store: Store) -> None:
    """Store, find and remove API keys, if the store can keep them."""
    try:
        one, other = store.keyring(), store.keyring()
    except InvalidInput:
        return
    before, name = one.all(), "check keys"
    key = KeyRecord("check-1", b"1" * 32, "one", None, "manage", 1.0)
    session = KeyRecord("check-2", b"2" * 32, "two", None, "play", 2.0, 4e9, "check-1")
    expired = KeyRecord("check-3", b"3" * 32, "three", None, "read", 3.0, 10.0)
    of_study = KeyRecord("check-4", b"4" * 32, "four", name, "read", 4.0)
    with _refused("a key of an unknown study"):
        one.add(of_study)
    store.create(name, Record({}, {})).close()
    for row in (session, key, of_study, expired):
        one.add(row)
    assert not other.is_empty(), "a keyring with keys must not be empty"
    found = other.find(["check-2", "check-5", "check-1"])
    assert sorted(found) == [key, session], "find must return the existing keys, as they were added"
    mine = [row for row in other.all() if row.id.startswith("check-")]
    assert mine == [key, session, expired, of_study], "all must return all keys, oldest first"
    other.remove_expired(11.0)
    assert one.find(["check-3"]) == [], "remove_expired must remove keys that expired before"
    assert one.remove("check-1"), "remove must return True for an existing key"
    assert not other.remove("check-1"), "remove must return False for an unknown key"
    assert one.find(["check-1", "check-2"]) == [], "the sessions of a key must be removed with it"
    with _refused("a check that raises"):
        store.delete(name, check=_refuse)
    assert one.find(["check-4"]) == [of_study], "a check that raises must keep the keys"
    store.delete(name)
    assert one.find(["check-4"]) == [], "the keys of a study must be deleted with it"
    assert [row for row in one.all() if row.id.startswith("check-")] == [], "no key must be left"
    assert set(one.all()) <= set(before), "other keys must not change"
    for keyring in (one, other):
        keyring.close()
        assert keyring.find(["check-1"]) == [], "a keyring must work after it was closed"
        keyring.close()


def _refuse() -> None:
    raise InvalidInput("key", "another one", "this one", "Use another one.")


def _check_deleting(store: Store, name: str, journal: Journal) -> None:
    """Delete a journal and create a new one of the same name: old handles must not see it."""
    closed = store.open(name)
    closed.head()
    closed.close()
    store.delete(name)
    _check_gone(store, name, (journal, closed))


def _check_renaming(store: Store, name: str, new: str, taken: str) -> None:
    """Give a journal a new name: its entries and keys keep it, and old handles are refused."""
    journal = store.create(name, Record({"of": name}, {}), Labels("create", "0"))
    journal.write(Record({"n": 1}, {"x": np.arange(3)}), Labels("ask", "1", 1))
    journal.put(Record({"n": 2}, {}))
    before, closed = list(journal.entries()), store.open(name)
    closed.head()
    closed.close()
    key = KeyRecord("check-5", b"5" * 32, "five", name, "read", 5.0)
    with suppress(InvalidInput), closing(store.keyring()) as keyring:
        keyring.add(key)
    for bad in (taken, name, "", "a\nb", 7):
        with _refused("a new name that is in use or not a name"):
            store.rename(name, cast(Any, bad))
        assert journal.head().number == 1, "a journal that was not renamed must stay as it is"
    with _refused("an unknown name", near=name):
        store.rename(name + "s", new)
    store.rename(name, new)
    assert new in store.names(), "a renamed journal must be listed under its new name"
    _check_gone(store, name, (journal, closed))
    with closing(store.open(new)) as renamed:
        assert _same(list(renamed.entries()), before), "a renamed journal must keep its entries"
        assert renamed.get() is not None, "a renamed journal must keep its snapshot"
        assert renamed.append(Record({}, {})) == len(before), "a renamed journal must continue"
    with suppress(InvalidInput), closing(store.keyring()) as keyring:
        assert keyring.find(["check-5"]) == [key._replace(study=new)], "keys must keep the journal"
    for one in (name, new):
        store.delete(one)


def _check_gone(store: Store, name: str, handles: Sequence[Journal]) -> None:
    """Use handles on a journal that was deleted or renamed, also after a new one has its name."""
    assert name not in store.names(), "the journal must not be listed"
    with _refused("a name that was deleted"):
        store.open(name)
    acts: list[Callable[[Journal], object]] = [
        lambda handle: handle.head(),
        lambda handle: handle.append(Record({}, {})),
        lambda handle: list(handle.entries()),
        lambda handle: list(handle.read()),
        lambda handle: handle.find("create", "0"),
        lambda handle: handle.of_play(0),
        lambda handle: list(handle.pairs("create", ("x",))),
        lambda handle: handle.put(Record({}, {})),
        lambda handle: handle.get(),
        lambda handle: handle.transaction().__enter__(),
    ]
    for again in (False, True):
        if again:
            store.create(name, Record({"of": "another"}, {}), Labels("create", "0")).close()
        for handle in handles:
            for act in acts:
                with _refused("a journal that was deleted or renamed"):
                    act(handle)
            handle.close()
    new = store.open(name)
    assert [entry.record.header for entry in new.entries()] == [{"of": "another"}], (
        "the new journal must be separate"
    )
    new.close()


@contextmanager
def _refused(what: str, near: str = "") -> Iterator[None]:
    """Expect ``InvalidInput`` with a hint that contains ``near``."""
    hint = None
    try:
        yield
    except InvalidInput as error:
        hint = "" if isinstance(error, Damaged) else error.hint
    assert hint, f"{what} must be refused with InvalidInput"
    assert near in hint, f"{what} must be refused with the hint {near!r}"


def _same(some: list[Entry] | list[Entry | None], others: list[Entry]) -> bool:
    if len(some) != len(others):
        return False
    return all(
        one is not None
        and one[:2] == other[:2]
        and one.digest == other.digest
        and one.record.header == other.record.header
        and one.record.arrays.keys() == other.record.arrays.keys()
        and all((array == other.record.arrays[k]).all() for k, array in one.record.arrays.items())
        for one, other in zip(some, others, strict=True)
    )
