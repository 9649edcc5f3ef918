"""Contract of storages: order, content, handles, snapshots and damage."""

from collections.abc import Callable

import numpy as np

from multiplay.errors import InvalidInput
from multiplay.storage import Damaged, Journal, Record, Storage
from multiplay.testing.journal import check_journal


def check_storage(
    open_storage: Callable[[str], Storage],
    damage: Callable[[Storage, int], None] | None = None,
    damage_snapshot: Callable[[Storage], None] | None = None,
) -> None:
    """Check the contract of a storage, and that of a journal if it is one.

    Parameters
    ----------
    open_storage
        Returns a new handle on the storage of this name. When it is first opened, a storage is
        empty, and a journal has one record.
    damage
        Damages the record of this number, if that is possible from outside.
    damage_snapshot
        Damages the newest snapshot of a journal.

    Examples
    --------
    >>> from multiplay.storage import MemoryStorage
    >>> from multiplay.testing import check_storage
    >>> from multiplay.testing.storage import NAMES
    >>> memory = {name: MemoryStorage() for name in NAMES}
    >>> check_storage(memory.__getitem__)
    """
    opened: list[Storage] = []

    def opener(name: str) -> Storage:
        opened.append(open_storage(name))
        return opened[-1]

    try:
        _check_order(opener("order"))
        _check_content(opener("content"))
        _check_handles(opener("handles"), opener("handles"))
        _check_snapshot(opener("snapshot"), opener("snapshot"))
        _check_refusals(opener("refusals"))
        if damage is not None:
            _check_damage(opener("damage"), opener("damage"), damage)
        if isinstance(opened[0], Journal):
            check_journal(opener, damage, damage_snapshot)
    finally:
        for storage in opened:
            if isinstance(storage, Journal):
                storage.close()


NAMES = ("order", "content", "handles", "snapshot", "refusals", "damage")


def _begins(storage: Storage) -> int:
    """Return the number of the first new record: a journal begins with one record."""
    return 1 if isinstance(storage, Journal) else 0


def _check_order(storage: Storage) -> None:
    first = _begins(storage)
    assert len(list(storage.read())) == first, "a new storage must be empty, a journal has a record"
    numbers = [storage.append(_numbered(k)) for k in range(12)]
    expected = list(range(first, first + 12))
    assert numbers == expected, "records must be numbered from 0, without gaps"
    assert _seen(storage) == list(range(12)), "records must be read in the order they were written"
    seen = _seen(storage, 7)
    assert seen == list(range(7, 12)), "reading must begin at the given number"
    assert _seen(storage, 12) == [], "after the last record there must be nothing"


def _check_content(storage: Storage) -> None:
    header = {"text": 'ü "quoted"\n', "list": [1, 2.5, None, True], "deep": {"type": {"a": 0.1}}}
    arrays = {
        "file": np.array([0.1, -0.0, np.nan, np.inf]),
        "header": np.arange(6, dtype=np.uint64).reshape(2, 3) + 2**63,
        "a/b.npy": np.array(["one", "zwölf"]),
        "empty": np.empty((0, 4), dtype=np.int8),
        "number": np.array(7),
    }
    record = Record(header, arrays)
    storage.append(record)
    storage.put(record)
    (_, kept), snapshot = next(storage.read(_begins(storage))), storage.get()
    assert _same(kept, record), "a record must be read as it was written"
    assert snapshot is not None, "the snapshot must be kept"
    assert _same(snapshot, record), "a snapshot must be read as it was written"
    arrays["number"][...] = 8
    header["text"] = "changed"
    kept.arrays["file"][:] = 0
    _, again = next(storage.read(_begins(storage)))
    assert again.header["text"] != "changed", "a stored header must be a copy"
    assert again.arrays["number"] == 7, "a stored array must be a copy"
    assert again.arrays["file"][0] == 0.1, "an array that was read must be a copy"


def _check_handles(one: Storage, other: Storage) -> None:
    numbers = [(one if k % 3 else other).append(_numbered(k)) for k in range(12)]
    first = _begins(one)
    assert numbers == list(range(first, first + 12)), "handles must share their numbers"
    assert _seen(one) == _seen(other) == list(range(12)), "handles must see the same records"


def _check_snapshot(one: Storage, other: Storage) -> None:
    assert one.get() is None, "a new storage must have no snapshot"
    for k in range(3):
        one.append(_numbered(10 + k))
        one.put(Record({"k": k}, {"only in the first": np.zeros(3)} if k == 0 else {}))
        found = other.get()
        assert found is not None, "handles must see the same snapshot"
        assert found.header == {"k": k}, "a snapshot must replace the one before"
        assert len(found.arrays) == (k == 0), "nothing of an older snapshot may stay"
    assert _seen(other) == [10, 11, 12], "a snapshot must not change the records"


def _check_refusals(storage: Storage) -> None:
    storage.append(_numbered(0))
    storage.put(_numbered(0))
    odd = np.array([print], dtype=object)
    for record in (Record({"k": print}, {}), Record({"k": 1}, {"k": odd})):
        for write in (storage.append, storage.put):
            try:
                write(record)
            except InvalidInput:
                continue
            raise AssertionError("a record that cannot be stored must raise InvalidInput")
    assert _seen(storage) == [0], "a refused record must not be stored"
    snapshot = storage.get()
    assert snapshot is not None, "a refused snapshot must not replace the old one"
    assert _same(snapshot, _numbered(0)), "a refused snapshot must not replace the old one"
    number = storage.append(_numbered(1))
    assert number == _begins(storage) + 1, "a refused record must not use up a number"


def _check_damage(one: Storage, other: Storage, damage: Callable[[Storage, int], None]) -> None:
    first = _begins(one)
    for k in range(4):
        one.append(_numbered(k))
    damage(one, first + 2)
    for storage in (one, other):
        seen, lost = [], None
        try:
            for _, record in storage.read(first):
                seen.append(record.header["k"])
        except Damaged as damaged:
            lost = damaged.number
        assert lost == first + 2, "a damaged record must raise Damaged, with its number"
        assert seen == [0, 1], "records before the damaged one must be read"
        assert _seen(storage, 3) == [3], "records after the damaged one must be read"
    number = other.append(_numbered(4))
    assert number == first + 4, "the number of a damaged record must not be used again"


def _numbered(k: int) -> Record:
    return Record({"k": k}, {"k": np.full(3, k)})


def _seen(storage: Storage, start: int = 0) -> list[int]:
    """Return the contents from a number on; raise if a record is inconsistent.

    Numbers count from the first new record.
    """
    seen = []
    start += _begins(storage)
    for expected, (number, record) in enumerate(storage.read(start), start):
        assert number == expected, "records must come with their numbers"
        assert (record.arrays["k"] == record.header["k"]).all(), (
            "header and arrays of a record must belong together"
        )
        seen.append(record.header["k"])
    return seen


def _same(one: Record, other: Record) -> bool:
    if one.header != other.header or one.arrays.keys() != other.arrays.keys():
        return False
    pairs = [(one.arrays[name], other.arrays[name]) for name in one.arrays]
    return all((a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()) for a, b in pairs)
