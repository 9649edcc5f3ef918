"""Object journal: the entries of a learner in memory, whose records are made when they are read."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence

from multiplay.storage import Entry, Head, Labels, Record
from multiplay.studies import entry_codec
from multiplay.studies.replica import Made

FIRST, NOTHING = Labels(entry_codec.CREATE), Record({}, {})


class ObjectJournal:
    """The entries of a learner, found by their labels.

    They have no digests that chain them. Beside an entry stands the state of the random numbers
    before it, where something was learned with it.

    Examples
    --------
    >>> journal = ObjectJournal()
    >>> journal.write(lambda: Record({"plan": {"air": 2}}, {}), Labels("ask", "Monday", 1))
    1
    >>> journal.find("ask", "Monday").record.header
    {'plan': {'air': 2}}
    """

    def __init__(self) -> None:
        self._labels, self._made, self._words = [FIRST], list[Made]([NOTHING]), [b""]
        self._numbers: dict[tuple[str, str], int] = {}  # by kind and key
        self._of_play: dict[int, tuple[int, ...]] = {}
        self._id = secrets.token_bytes(8)

    def __len__(self) -> int:
        return len(self._labels)

    def write(self, made: Made, labels: Labels, words: bytes = b"") -> int:
        """Append an entry; return its number."""
        number, (kind, key, play, _) = len(self._labels), labels
        self._labels.append(labels)
        self._made.append(made)
        self._words.append(words)
        if key is not None:
            self._numbers[kind, key] = number
        if play is not None:
            self._of_play[play] = (*self._of_play.get(play, ()), number)
        return number

    def words(self, number: int) -> bytes:
        """Return the state of the random numbers before an entry; b"" if it is not kept."""
        return self._words[number]

    def labels(self, number: int) -> Labels:
        """Return the labels of an entry."""
        return self._labels[number]

    def plays(self) -> Iterable[int]:
        """Return the ids of all plays, in order."""
        return self._of_play

    # ------------------------------------------------------------ as other journals

    def head(self) -> Head:
        """Return the number and the digest of the last entry."""
        number = len(self._labels) - 1
        return Head(number, self._digest(number))

    def entries(self, start: int = 0, previous: bytes | None = None) -> Iterator[Entry]:
        """Yield all entries from this number on, in order."""
        number = start
        while number < len(self._labels):
            yield self._entry(number)
            number += 1

    def find(self, kind: str | tuple[str, ...], key: str) -> Entry | None:
        """Return the entry with this key, of this kind or one of these kinds; None if not found."""
        kinds = (kind,) if isinstance(kind, str) else kind
        return next(iter(self.find_all([(one, key) for one in kinds])), None)

    def find_all(self, wanted: Sequence[tuple[str, str]]) -> list[Entry]:
        """Return the existing entries of these (kind, key) pairs."""
        found = (self._numbers.get(pair) for pair in wanted)
        return [self._entry(number) for number in found if number is not None]

    def of_play(self, play: int) -> list[Entry]:
        """Return all entries of a play, in order."""
        return [self._entry(number) for number in self._of_play.get(play, ())]

    def pairs(
        self, kind: str, ends: Sequence[str], start: int = 0
    ) -> Iterator[tuple[Entry, Entry | None]]:
        """Yield all entries of a kind, each with the last entry of its play of a kind in ends."""
        number = start
        while number < len(self._labels):
            labels = self._labels[number]
            if labels.kind == kind:
                last = None if labels.play is None else self._last(labels.play, ends)
                yield self._entry(number), None if last is None else self._entry(last)
            number += 1

    def _last(self, play: int, kinds: Sequence[str]) -> int | None:
        numbers = reversed(self._of_play[play])
        return next((number for number in numbers if self._labels[number].kind in kinds), None)

    def _entry(self, number: int) -> Entry:
        made = self._made[number]
        record = made if isinstance(made, Record) else made()
        return Entry(number, self._labels[number], record, self._digest(number))

    def _digest(self, number: int) -> bytes:
        """Return bytes that no other entry has, by which its content may be cached."""
        return self._id + number.to_bytes(8, "little")
