"""Log of plays: a line of numbers for each play of a learner, and tables of such lines."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay._support.dates import day_name
from multiplay.learner.plan_request import PlanRequest
from multiplay.learner.plays import CANCELLED, EXTERNAL, NEVER, PENDING, TOLD
from multiplay.types import Arrays, FloatArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

STATUS = (PENDING, TOLD, CANCELLED, EXTERNAL)
COLUMNS = ("asked", "told", "units", "seen", "expected", "realised", "clipped", "status")
WIDTH, PLACE = len(COLUMNS), {name: place for place, name in enumerate(COLUMNS)}


class PlayLog:
    """The log of all plays of a learner: one line of numbers for each play.

    Ids are consecutive within a block. A block begins when the learner is created, and each time it
    is loaded.

    Attributes
    ----------
    arms : list of tuples
        The names of the arms of each line; sets with the same arms share one tuple.
    digests : dict
        The digests of all reports by line, concatenated.
    unmet : dict
        The names in a plan that are not arms, by line: those of units that cannot be served.
    keys : dict
        The id of the last play of each key, in which a date is as 2026-11-18.
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
        self.keys: dict[str, int] = {}
        self.key_of: dict[int, str] = {}
        self.requests: dict[int, PlanRequest] = {}
        self.plans: dict[int, dict[str, int]] = {}
        self.truncated: dict[int, float | None] = {}
        self._tuples: dict[tuple[str, ...], tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self.arms)

    def begin_ids(self, first: int) -> None:
        """Begin a block of ids; a block without a play is dropped."""
        if self.id_blocks[-1][1] == len(self):
            self.id_blocks.pop()
        self.id_blocks.append((first, len(self)))

    def line(self, id: int) -> int | None:
        """Return the line of a play; None if there is no such play."""
        first, line = self.id_blocks[-1]
        if first <= id < first + len(self) - line:  # the usual case
            return line + int(id) - first
        for first, lines in self._id_blocks():
            if first <= id < first + len(lines):
                return lines[int(id) - first]
        return None

    def ids(self) -> list[int]:
        """Return all ids in the order of their plays."""
        return [first + k for first, lines in self._id_blocks() for k in range(len(lines))]

    def _id_blocks(self) -> list[tuple[int, range]]:
        """Return the first id and the lines of every block."""
        ends = [line for _, line in self.id_blocks[1:]] + [len(self)]
        pairs = zip(self.id_blocks, ends, strict=True)
        return [(first, range(line, end)) for (first, line), end in pairs]

    @property
    def next_id(self) -> int:
        """The id of the next play."""
        first, line = self.id_blocks[-1]
        return first + len(self) - line

    def ask(self, when: float, arms: tuple[str, ...], units: int, expected: float) -> None:
        """Add the line of a new play."""
        self.numbers.extend((when, NEVER, units, 0.0, expected, NEVER, 0.0, 0.0))
        self.arms.append(self._tuples.setdefault(arms, arms))

    def name(self, id: int, key: str, plan: dict[str, int], request: PlanRequest | None) -> None:
        """Give a play its key, with its plan and what it was asked for."""
        self.keys[day_name(key)], self.key_of[id], self.plans[id] = id, key, plan
        if request is not None:
            self.requests[id] = request

    def get(self, line: int, column: str) -> float:
        """Return a number of a line."""
        return self.numbers[line * WIDTH + PLACE[column]]

    def column(self, name: str) -> FloatArray:
        """Return one number of every line."""
        return np.array(self.numbers).reshape(-1, WIDTH)[:, PLACE[name]]

    def status(self, line: int) -> str:
        """Return the status of a play."""
        return STATUS[int(self.get(line, "status"))]

    def number(self, status: str) -> int:
        """Return the number of plays with a status."""
        return int((self.column("status") == STATUS.index(status)).sum())

    def end(self, line: int, status: str) -> None:
        """Set the status of a play."""
        self.numbers[line * WIDTH + PLACE["status"]] = STATUS.index(status)

    def tell(self, line: int, when: float, seen: int, realised: float, clipped: int) -> None:
        """Set the outcome of a play."""
        numbers, start = self.numbers, line * WIDTH
        numbers[start + 1], numbers[start + 3] = when, seen  # as in COLUMNS
        numbers[start + 5], numbers[start + 6], numbers[start + 7] = realised, clipped, 1

    def since(self, line: int) -> tuple[float, float, bytes]:
        """Return the time of a play, its expected cost, and the digests of its reports."""
        digests = self.digests.get(line, b"")
        return self.get(line, "asked"), self.get(line, "expected"), digests

    def frame(self) -> pd.DataFrame:
        """Return all lines as a table."""
        ids = self.ids()
        return plays_table(ids, [self.key_of.get(id) for id in ids], np.array(self.numbers))

    def record(self) -> tuple[dict[str, Any], Arrays]:
        """Return the log as plain data and arrays."""
        arrays: Arrays = {"numbers": np.array(self.numbers)}
        different = {names: number for number, names in enumerate(dict.fromkeys(self.arms))}
        arrays["arms"] = np.array([different[names] for names in self.arms], dtype=np.int64)
        lines = sorted(self.digests)
        sizes = [len(self.digests[line]) for line in lines]
        arrays["told_lines"] = np.array(lines, dtype=np.int64)
        arrays["digest_sizes"] = np.array(sizes, dtype=np.int64)
        joined = b"".join(self.digests[line] for line in lines)
        arrays["digests"] = np.frombuffer(joined, dtype=np.uint8)
        return {
            "lives": [list(block) for block in self.id_blocks],
            "arms": [list(names) for names in different],
            "unmet": [[line, list(names)] for line, names in self.unmet.items()],
            "keys": [[key, id, self.plans[id]] for id, key in self.key_of.items()],
            "requests": [[id, *request.plain()] for id, request in self.requests.items()],
            "hurried": sorted(self.truncated),
            "gaps": [gap for _, gap in sorted(self.truncated.items())],
        }, arrays

    @classmethod
    def of(cls, header: dict[str, Any], arrays: Arrays) -> PlayLog:
        """Return the log that ``record`` wrote."""
        log = cls()
        log.numbers.extend(arrays["numbers"].tolist())
        log.id_blocks = [(int(first), int(line)) for first, line in header["lives"]]
        different = [tuple(names) for names in header["arms"]]
        log.arms = [different[number] for number in arrays["arms"]]
        log._tuples = {names: names for names in different}
        log.unmet = {line: tuple(names) for line, names in header["unmet"]}
        requests = {
            id: PlanRequest(*rest)._replace(ahead=tuple(ahead))
            for id, *rest, ahead in header.get("requests", ())
        }
        for key, id, plan in header["keys"]:
            log.name(id, key, plan, requests.get(id))
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
