"""Runs that survive: finished blocks are kept in a folder, and a run goes on from there."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from multiplay.atomic_files import writable_folder, write_text, write_whole
from multiplay.errors import InvalidInput
from multiplay.results.measured import QUANTITIES, Measured

CONFIGURATION = "configuration.json"
SHOWN = 5  # differences


class Store:
    """A folder with the configuration of a run and its finished blocks, each a file.

    A block is written whole or not at all. What is on disk is used when the run is resumed, and
    only what is missing is computed: every trial has numbers of its own, so the outcome is that of
    an undisturbed run.
    """

    def __init__(self, folder: str | Path, configuration: Mapping[str, Any], resume: bool) -> None:
        self.folder = writable_folder("store", folder)
        begun = self.folder / CONFIGURATION
        text = json.dumps(configuration, indent=1)
        if begun.exists():
            if not resume:
                raise InvalidInput(
                    "store",
                    "a folder without a run in it, or resume=True",
                    f"{self.folder}, where a run was begun",
                    "Resume it (--resume), or name another folder.",
                )
            _check_same(begun, json.loads(text))
            for draft in self.folder.glob(".block-*"):  # of a block that was never finished
                draft.unlink()
        else:
            write_text(begun, text)

    def keep(self, policy: int, trials: range, measured: Measured) -> None:
        """Write a finished block."""

        def write(draft: Path) -> None:
            with draft.open("wb") as file:
                np.savez(file, allow_pickle=False, **measured)

        write_whole(self.folder / f"block-{policy}-{trials.start}-{trials.stop}.npz", write)

    def blocks(self) -> Iterator[tuple[int, range, Measured]]:
        """Yield what is on disk; a damaged file counts as missing."""
        for path in sorted(self.folder.glob("block-*.npz")):
            try:
                policy, start, stop = (int(part) for part in path.stem.split("-")[1:])
                with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                    measured = {name: archive[name] for name in QUANTITIES}
            except Exception:  # whatever a damaged archive makes of itself
                path.unlink()
                continue
            yield policy, range(start, stop), measured


def _check_same(begun: Path, configuration: Any) -> None:
    try:
        before = json.loads(begun.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(
            "store", "a run to resume", f"{begun} ({error})", "Start anew in another folder."
        ) from None
    changes = list(_differences("", before, configuration))
    if changes:
        more = [f"and {len(changes) - SHOWN} more"] if len(changes) > SHOWN else []
        raise InvalidInput(
            "store",
            "the configuration that the run was begun with",
            "; ".join(changes[:SHOWN] + more),
            "Undo the change, or start anew in another folder.",
        )


def _differences(where: str, before: Any, now: Any) -> Iterator[str]:
    """Name every setting that is not the same."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            below = f"{where}.{key}" if where else str(key)
            yield from _differences(below, before.get(key), now.get(key))
    elif before != now:
        yield f"{where} was {_short(before)} and is {_short(now)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 50 else text[:47] + "..."
