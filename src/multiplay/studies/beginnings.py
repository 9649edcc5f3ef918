"""The first entry of a journal: a study that is made, or one that was a learner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from multiplay._support.serialization import pack
from multiplay.learner import snapshot
from multiplay.learner.engine import Core
from multiplay.learner.plays import CANCELLED, TOLD, PlayLog
from multiplay.storage import Labels, Record
from multiplay.studies import entry_codec
from multiplay.version import __version__


def created(core: Core, seed: int, changing: bool) -> Record:
    """Return the first entry of a new study."""
    mind = core.mind
    (actions, of_actions), (policy, of_policy) = (
        pack(thing, name) for thing, name in ((mind.actions, "actions"), (mind.policy, "policy"))
    )
    header = {
        "format": entry_codec.FORMAT,
        "multiplay": __version__,
        snapshot.VERSION: snapshot.FORMAT,
        "actions": actions,
        "policy": policy,
        "ranges": {mind.ranges.argument: mind.ranges.by_name},
        "outside": mind.ranges.outside,
        "missing": core.missing,
        "changing": changing,
        "seed": seed,
    }
    arrays = entry_codec.under("actions/", of_actions) | entry_codec.under("policy/", of_policy)
    return Record(header, arrays)


def imported(learner: Record, seed: int) -> Record:
    """Return the first entry of a study that was a learner: all of it."""
    header = {
        "format": entry_codec.FORMAT,
        "multiplay": __version__,
        "learner": learner.header,
        "seed": seed,
    }
    return Record(header, learner.arrays)


def old_plays(log: PlayLog) -> Iterator[tuple[Record, Labels]]:
    """Yield the entries of plays that were asked before: what was learned is in the first entry."""
    by_id = {id: key for key, id in log.keys.items()}
    for line, id in enumerate(log.ids()):
        numbers = {name: log.get(line, name) for name in ("asked", "told", "expected", "realised")}
        units, seen, clipped = (int(log.get(line, name)) for name in ("units", "seen", "clipped"))
        asked = {
            "imported": True,
            "arms": list(log.arms[line]),
            "unmet": list(log.unmet.get(line, ())),
            "plan": log.plans.get(id),
            "units": units,
            "expected": entry_codec.number(numbers["expected"]),
            **_unknown("asked", numbers),
        }
        key = by_id.get(id)
        yield Record(asked, {}), Labels(entry_codec.ASK, key, id, _time(numbers["asked"]))
        status = log.status(line)
        if status == CANCELLED:
            yield Record({"imported": True}, {}), Labels(entry_codec.CANCEL, None, id, 0.0)
        elif status == TOLD:
            told = {
                "imported": True,
                "seen": seen,
                "missing": units - seen,
                "clipped": clipped,
                "realised": entry_codec.number(numbers["realised"]),
                "digests": log.digests.get(line, b"").hex(),
                **_unknown("told", numbers),
            }
            yield Record(told, {}), Labels(entry_codec.TELL, None, id, _time(numbers["told"]))


def _time(when: float) -> float:
    return 0.0 if np.isnan(when) else when


def _unknown(name: str, numbers: dict[str, float]) -> dict[str, Any]:
    """Say that a time is not known, of a file of an old version."""
    return {name: None} if np.isnan(numbers[name]) else {}
