"""Runs that survive: finished blocks are kept in a storage, and a run goes on from there."""

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
OLD = "configuration.json"  # of runs that began before blocks were records
SHOWN = 5  # differences


class Store:
    """The configuration of a run, which is the first record, and a record for each finished block.

    What is stored is used when the run is resumed, and only what is missing is computed: every
    trial has numbers of its own, so the outcome is that of an undisturbed run.
    """

    def __init__(
        self, place: str | Path | Storage, configuration: Mapping[str, Any], resume: bool
    ) -> None:
        self.storage = place if isinstance(place, Storage) else _open(place)
        now = json.loads(json.dumps(configuration))
        begun = self._configuration()
        if begun is None and self.storage.append(Record({CONFIGURATION: now}, {})) == 0:
            return
        if begun is None or not resume:
            raise InvalidInput(
                "store",
                "a place without a run in it, or resume=True",
                f"{place}, where a run was begun",
                "Resume it (--resume), or choose another folder.",
            )
        _check_same(begun, now)

    def keep(self, policy: int, trials: range, measured: Measured) -> None:
        """Store a finished block."""
        header = {"policy": policy, "start": trials.start, "stop": trials.stop}
        self.storage.append(Record(header, measured))

    def blocks(self) -> Iterator[tuple[int, range, Measured]]:
        """Yield what is stored; a damaged block counts as missing."""
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
        """Return the configuration of the run that was begun, if there is one."""
        try:
            _, (header, _) = next(self.storage.read(), (None, (None, None)))
            return None if header is None else header[CONFIGURATION]
        except (Damaged, KeyError, TypeError) as error:
            raise InvalidInput(
                "store", "a run to resume", f"{self.storage!r} ({error})", "Choose another folder."
            ) from None


def _open(folder: str | Path) -> FolderStorage:
    if (writable_folder("store", folder) / OLD).exists():
        raise InvalidInput(
            "store",
            "a run of this version of multiplay",
            f"{folder}, where an older version began one",
            "Finish it with that version, or start again in another folder.",
        )
    return FolderStorage(folder)


def _check_same(before: Any, configuration: Any) -> None:
    changes = list(_differences("", before, configuration))
    if changes:
        more = [f"and {len(changes) - SHOWN} more"] if len(changes) > SHOWN else []
        raise InvalidInput(
            "store",
            "the configuration that the run was begun with",
            "; ".join(changes[:SHOWN] + more),
            "Undo the change, or start again in another folder.",
        )


def _differences(where: str, before: Any, now: Any) -> Iterator[str]:
    """Name every setting that is not the same."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            below = f"{where}.{key}" if where else str(key)
            yield from _differences(below, before.get(key), now.get(key))
    elif before != now:
        old, new = (shortened(json.dumps(value), 50) for value in (before, now))
        yield f"{where} was {old} and is {new}"
