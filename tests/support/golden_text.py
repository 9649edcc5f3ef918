"""Results, refusals, entries and records as plain data, and as lines of text.

A line is written in two forms: with all bits and digests, to compare two versions of the library in
one environment, and without what depends on the processor, to be kept in the repository.
"""

import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from hashlib import blake2b
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

import multiplay as mp
from multiplay.errors import InvalidInput, StoreError
from multiplay.savings import Savings
from multiplay.storage import Entry, Record

NOW = 1_795_000_000.0  # 2026-11-18T11:06:40Z
DIGITS = 8  # significant ones that are kept in the repository
TINY = 1e-9  # smaller numbers are zero there
LARGE = 1e8  # larger numbers are times, which are given
TOLERANCE = 1e-6  # of the numbers in the repository, on a different processor
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")  # whole numbers are text
LONG_NUMBER = re.compile(r"-?\d+\.\d{7,}(?:e[+-]?\d+)?")  # in a text
# Labels of lines that the repository does not keep: long tables, and archives of arrays.
NOT_KEPT = ("plays", "plans", "GET /v1/studies/featured/entries?limit=1")
OWN = {"digest", "multiplay", "types", "with", "version", "solver"}  # of the installation

PLAY = (
    *("id", "key", "plan", "action", "expected", "truncated", "gap", "baseline", "explores"),
    *("restricted", "prices", "held", "change_cost", "repeated"),
)
FIELDS: dict[type, tuple[str, ...]] = {
    mp.PendingPlay: PLAY,
    mp.Plan: ("plan", "action", "expected"),
    mp.Why: (
        *("rows", "expected", "best", "extra", "explores", "words", "sense", "wanted", "prices"),
        *("held", "changed", "change_cost"),
    ),
}
TEXTS = (mp.Why, mp.Receipt, mp.Remaining, mp.Verified)  # classes with a text for the user


def plain(value: Any) -> Any:
    """Return a value as plain data for JSON, with all bits."""
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, Savings):
        return {"Savings": plain(value.to_dict()), "text": str(value)}
    if isinstance(value, pd.DataFrame):
        return _of_table(value)
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, InvalidInput):
        names = ("argument", "expected", "got", "hint")
        return {type(value).__name__: {name: str(getattr(value, name)) for name in names}}
    if isinstance(value, StoreError):
        return {type(value).__name__: str(value)}
    fields = FIELDS.get(type(value)) or getattr(type(value), "_fields", None)
    if fields is not None:
        found = {type(value).__name__: {name: plain(getattr(value, name)) for name in fields}}
        return found | ({"text": str(value)} if isinstance(value, TEXTS) else {})
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, datetime):
        return None if value is pd.NaT else value.isoformat()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return None if value is pd.NaT else repr(value)


def _of_table(table: pd.DataFrame) -> Any:
    """Return a table: the type of each column, its rows, and its attributes."""
    names = [str(name) for name in table.columns]
    types = [str(table[name].dtype) for name in table.columns]
    rows = [[plain(cell) for cell in row] for row in table.itertuples(index=False, name=None)]
    return {"columns": names, "types": types, "rows": rows, "attrs": plain(table.attrs)}


def of_entry(entry: Entry) -> dict[str, Any]:
    """Return an entry of a journal."""
    found = {"number": entry.number, **entry.labels._asdict(), **of_record(entry.record)}
    return found | {"digest": entry.digest.hex()}


def of_record(record: Record) -> dict[str, Any]:
    """Return a record: its header, and of each array its type, its shape and its digest."""
    arrays = {name: of_array(array) for name, array in record.arrays.items()}
    return {"header": plain(record.header), "arrays": arrays}


def of_array(array: Any) -> dict[str, Any]:
    """Return the type, the shape and the digest of an array."""
    found = np.ascontiguousarray(array)
    digest = blake2b(found.tobytes(), digest_size=16).hexdigest()
    return {"type": str(found.dtype), "shape": list(np.shape(array)), "digest": digest}


class Lines:
    """Lines of text, each with a label and plain data."""

    def __init__(self) -> None:
        self.all: list[tuple[str, Any]] = []

    def add(self, label: str, value: Any) -> None:
        """Add a line with a value."""
        self.all.append((label, plain(value)))

    @contextmanager
    def call(self, label: str) -> Iterator[list[Any]]:
        """Add a line with what the block appends, the refusal that it raises, and its warnings."""
        found: list[Any] = []
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                yield found
            except (InvalidInput, StoreError) as error:
                found.append(error)
        for warning in said:
            self.add(f"{label}, warning", f"{warning.category.__name__}: {warning.message}")
        self.add(label, found[-1] if found else None)

    def complete(self) -> list[str]:
        """Return the lines with all bits and digests."""
        return [f"{label}: {json.dumps(value, ensure_ascii=False)}" for label, value in self.all]

    def portable(self) -> list[str]:
        """Return the lines without what depends on the processor or the installation."""
        return [
            f"{label}: {json.dumps(_portable(value), ensure_ascii=False, separators=(',', ':'))}"
            for label, value in self.all
            if label not in NOT_KEPT
        ]


def _portable(value: Any) -> Any:
    if isinstance(value, dict):
        found = {name: _portable(one) for name, one in value.items() if name not in OWN}
        return {name: one for name, one in found.items() if not _is_empty(one)}
    if isinstance(value, list):
        return [_portable(one) for one in value]
    if isinstance(value, float):
        return _rounded(value)
    if isinstance(value, str):
        return LONG_NUMBER.sub(lambda found: repr(_rounded(float(found[0]))), value)
    return value


def _is_empty(value: Any) -> bool:
    """Return whether a field says nothing; the files of the repository are small without them."""
    return value is None or value is False or value in ("", [], {})


def _rounded(number: float) -> float:
    if abs(number) >= LARGE:
        return number
    return 0.0 if abs(number) < TINY else float(f"{number:.{DIGITS}g}")


def is_like(one: str, other: str) -> bool:
    """Return whether two lines have the same text, and the same numbers but for the last bits."""
    if NUMBER.sub("", one) != NUMBER.sub("", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(a == b or _is_close(float(a), float(b)) for a, b in pairs)


def _is_close(one: float, other: float) -> bool:
    return abs(one) < LARGE and math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


@contextmanager
def fixed_time() -> Iterator[None]:
    """Let ``time.time`` return the same time in the block."""
    with mock.patch("time.time", return_value=NOW):
        yield
