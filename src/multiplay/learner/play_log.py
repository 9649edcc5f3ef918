"""Tables of plays, and the log of plays in older files of learners."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay.learner.plan_request import PlanRequest
from multiplay.learner.plays import CANCELLED, EXTERNAL, NEVER, PENDING, TOLD
from multiplay.types import Arrays, FloatArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

STATUS = (PENDING, TOLD, CANCELLED, EXTERNAL)
COLUMNS = ("asked", "told", "units", "seen", "expected", "realised", "clipped", "status")
WIDTH, PLACE = len(COLUMNS), {name: place for place, name in enumerate(COLUMNS)}


class PlayLog:
    """The log of all plays of a learner, in files of formats 3 and 4: a line for each play.

    Ids are consecutive within a block. A block began when the learner was created, and each time it
    was loaded.

    Attributes
    ----------
    arms : list of tuples
        The names of the arms of each line; sets with the same arms share one tuple.
    digests : dict
        The digests of all reports by line, concatenated.
    unmet : dict
        The names in a plan that are not arms, by line: those of units that cannot be served.
    key_of, plans, requests : dict
        The key of each play that has one, its plan, and what it was asked for, by id.
    truncated : dict
        The gap of each truncated play, or None, by its id.
    """

    def __init__(self) -> None:
        self.numbers = array("d")  # COLUMNS of every line
        self.id_blocks: list[tuple[int, int]] = [(1, 0)]  # first id and first line of each block
        self.arms: list[tuple[str, ...]] = []
        self.digests: dict[int, bytes] = {}
        self.unmet: dict[int, tuple[str, ...]] = {}
        self.key_of: dict[int, str] = {}
        self.requests: dict[int, PlanRequest] = {}
        self.plans: dict[int, dict[str, int]] = {}
        self.truncated: dict[int, float | None] = {}

    def __len__(self) -> int:
        return len(self.arms)

    def ids(self) -> list[int]:
        """Return all ids in the order of their plays."""
        return [first + k for first, lines in self._id_blocks() for k in range(len(lines))]

    def _id_blocks(self) -> list[tuple[int, range]]:
        """Return the first id and the lines of every block."""
        ends = [line for _, line in self.id_blocks[1:]] + [len(self)]
        pairs = zip(self.id_blocks, ends, strict=True)
        return [(first, range(line, end)) for (first, line), end in pairs]

    @property
    def next_free_id(self) -> int:
        """An id after those of all plays."""
        return max(self.ids(), default=0) + 1

    def get(self, line: int, column: str) -> float:
        """Return a number of a line."""
        return self.numbers[line * WIDTH + PLACE[column]]

    def status(self, line: int) -> str:
        """Return the status of a play."""
        return STATUS[int(self.get(line, "status"))]

    def since(self, line: int) -> tuple[float, float, bytes]:
        """Return the time of a play, its expected cost, and the digests of its reports."""
        digests = self.digests.get(line, b"")
        return self.get(line, "asked"), self.get(line, "expected"), digests

    @classmethod
    def of(cls, header: dict[str, Any], arrays: Arrays) -> PlayLog:
        """Return the log of a file."""
        log = cls()
        log.numbers.extend(arrays["numbers"].tolist())
        log.id_blocks = [(int(first), int(line)) for first, line in header["lives"]]
        different = [tuple(names) for names in header["arms"]]
        log.arms = [different[number] for number in arrays["arms"]]
        log.unmet = {line: tuple(names) for line, names in header["unmet"]}
        requests = {
            id: PlanRequest(*rest)._replace(ahead=tuple(ahead))
            for id, *rest, ahead in header.get("requests", ())
        }
        for key, id, plan in header["keys"]:
            log.key_of[id], log.plans[id] = key, plan
            if id in requests:
                log.requests[id] = requests[id]
        log.truncated = truncated_of(header)
        sizes, joined = arrays["digest_sizes"].tolist(), arrays["digests"].tobytes()
        end = 0
        for line, size in zip(arrays["told_lines"].tolist(), sizes, strict=True):
            log.digests[line], end = joined[end : end + size], end + size
        return log


def truncated_of(header: dict[str, Any]) -> dict[int, float | None]:
    """Return the gaps of truncated plays by their ids; version 0.9 wrote no gaps."""
    ids = header.get("hurried", ())
    return dict(zip(ids, header.get("gaps", [None] * len(ids)), strict=True))


def plays_table(ids: list[int], keys: list[str | None], numbers: FloatArray) -> pd.DataFrame:
    """Return a table of plays; ``numbers`` has ``COLUMNS`` of every line."""
    import pandas as pd

    table: dict[str, Any] = dict(zip(COLUMNS, numbers.reshape(-1, WIDTH).T, strict=True))
    for name in ("asked", "told"):
        table[name] = times(table[name])
    for name in ("units", "seen", "clipped"):
        table[name] = table[name].astype(np.int64)
    status = [STATUS[int(k)] for k in table.pop("status")]
    return pd.DataFrame(
        {
            "id": np.array(ids, dtype=np.int64),
            "key": pd.Series(keys, dtype=object),
            "status": pd.Series(status, dtype=object),
            **table,
        }
    )


def joined_tables(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return tables of plays as one table."""
    import pandas as pd

    parts = [*tables]
    full = [part for part in parts if len(part)]
    return pd.concat(full, ignore_index=True) if len(full) > 1 else (full or parts)[0]


def external_line(when: float, units: float, seen: float, total: float) -> tuple[float, ...]:
    """Return the numbers of an external plan, as in ``COLUMNS``; ``total`` is its cost."""
    realised = total if seen else NEVER
    return when, when, units, seen, NEVER, realised, 0, STATUS.index(EXTERNAL)


def external_table(
    lines: Sequence[tuple[float, ...]], keys: Sequence[str | None] | None = None
) -> pd.DataFrame:
    """Return lines of external plans as a table, in order of time."""
    names: list[str | None] = [None] * len(lines) if keys is None else list(keys)
    table = plays_table([0] * len(lines), names, np.array(lines, dtype=float))
    return table.sort_values("asked", kind="stable", ignore_index=True, na_position="first")


def times(seconds: FloatArray) -> pd.DatetimeIndex:
    """Return seconds since 1970 as times, always of the same type."""
    import pandas as pd

    with np.errstate(
        invalid="ignore"
    ):  # pandas 2 computes with what stands where times are missing
        return pd.to_datetime(seconds, unit="s", utc=True).as_unit("ns")
