"""Checkpoints of a run: finished blocks in a storage, from which the run can be resumed."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from multiplay._support.atomic_files import writable_folder
from multiplay._support.checks import shortened
from multiplay.errors import InvalidInput
from multiplay.results.measured import QUANTITIES, Measured
from multiplay.storage import Damaged, FolderStorage, Record, Storage

CONFIGURATION = "configuration"
SHOWN = 5  # differences between configurations


class Checkpoints:
    """The configuration of a run, which is the first record, and a record for each finished block.

    A resumed run computes only the blocks that are missing. Every trial has random streams of its
    own, so the result is that of a run without interruption.
    """

    def __init__(
        self, place: str | Path | Storage, configuration: Mapping[str, Any], resume: bool
    ) -> None:
        self.storage = _opened(place)
        now = json.loads(json.dumps(configuration))
        begun = self._configuration()
        if begun is None and self.storage.append(Record({CONFIGURATION: now}, {})) == 0:
            return
        if begun is None or not resume:
            raise InvalidInput(
                "store",
                "an empty store, or resume=True",
                f"{place}, which has a run",
                "Resume that run (--resume), or choose a different folder.",
            )
        _check_same(begun, now)

    def keep(self, policy: int, trials: range, measured: Measured) -> None:
        """Store a finished block."""
        header = {"policy": policy, "start": trials.start, "stop": trials.stop}
        self.storage.append(Record(header, measured))

    def blocks(self) -> Iterator[tuple[int, range, Measured]]:
        """Yield the stored blocks; a damaged block counts as missing."""
        start = 1
        while True:
            try:
                for number, (header, arrays) in self.storage.read(start):
                    start = number + 1
                    if QUANTITIES.keys() <= arrays.keys():
                        yield header["policy"], range(header["start"], header["stop"]), arrays
                return
            except Damaged as damaged:
                start = max(start, damaged.number or 0) + 1

    def _configuration(self) -> Any:
        """Return the configuration of the stored run, or None."""
        try:
            _, (header, _) = next(self.storage.read(), (None, (None, None)))
            return None if header is None else header[CONFIGURATION]
        except (Damaged, KeyError, TypeError) as error:
            raise InvalidInput(
                "store",
                "a run that can be resumed",
                f"{self.storage!r} ({error})",
                "Choose a different folder.",
            ) from None


def stored_seed(place: str | Path | Storage) -> int | None:
    """Return the seed of the run in a store, or None if the store is empty."""
    for _, (header, _) in _opened(place).read():
        seed = header.get(CONFIGURATION, {}).get("seed")
        return seed if isinstance(seed, int) else None
    return None


def _opened(place: str | Path | Storage) -> Storage:
    if isinstance(place, Storage):
        return place
    return FolderStorage(writable_folder("store", place))


def _check_same(before: Any, configuration: Any) -> None:
    changes = list(_differences("", before, configuration))
    if changes:
        more = [f"and {len(changes) - SHOWN} more"] if len(changes) > SHOWN else []
        raise InvalidInput(
            "store",
            "the configuration of the stored run",
            "; ".join(changes[:SHOWN] + more),
            "Undo the change, or start a new run in a different folder.",
        )


def _differences(where: str, before: Any, now: Any) -> Iterator[str]:
    """Yield a description of every setting that differs."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            below = f"{where}.{key}" if where else str(key)
            yield from _differences(below, before.get(key), now.get(key))
    elif before != now:
        old, new = (shortened(json.dumps(value), 50) for value in (before, now))
        yield f"{where} was {old} and is {new}"
