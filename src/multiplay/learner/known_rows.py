"""Known rows: the units of logged data that were learned before.

A unit is known by its arm, its round and its loss, or by its id and its arm, if it has an id. Equal
rows are counted: of k equal rows of which j were learned, k - j are new.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from multiplay.learner.logged_data import NO_DIGESTS, Digests, LoggedData, text_digests
from multiplay.types import BoolArray

FACTOR, SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)  # 2^64 over the golden ratio, odd


class KnownRows(NamedTuple):
    """Which units of logged data are new.

    Attributes
    ----------
    new : array of bool
        The units that were not learned before.
    changed : int
        The number of known units whose id was learned with another round or loss.
    """

    new: BoolArray
    changed: int

    @property
    def known(self) -> int:
        """The number of units that were learned before."""
        return len(self.new) - int(self.new.sum())


def known_rows(given: LoggedData, before: Sequence[LoggedData]) -> KnownRows:
    """Return which units of logged data are not among those that were learned before.

    Examples
    --------
    >>> def bills(*losses: float) -> LoggedData:
    ...     zeros = np.zeros(len(losses), dtype=int)
    ...     return LoggedData(["air"], zeros, zeros, np.array(losses), times=np.zeros(1))
    >>> known_rows(bills(80.0, 80.0, 95.0), [bills(80.0), bills(70.0)]).new
    array([False,  True,  True])
    """
    rows, others = _row_digests(given), [_row_digests(one) for one in before]
    named = given.ids != 0 if len(given.ids) else np.zeros(len(rows), dtype=bool)
    with_id = [one.ids != 0 if len(one.ids) else np.zeros(len(one.arm), bool) for one in before]
    new: BoolArray = np.ones(len(rows), dtype=bool)
    new[~named] = _beyond(rows[~named], _joined(others))
    if not named.any():
        return KnownRows(new, 0)
    pairs = zip(before, with_id, strict=True)
    new[named] = _beyond(_id_digests(given)[named], _joined(_id_digests(o)[k] for o, k in pairs))
    by_id, rest = named & ~new, named & new
    without = _joined(one[~k] for one, k in zip(others, with_id, strict=True))
    new[rest] = _beyond(rows[rest], without)
    return KnownRows(new, int(np.isin(rows[by_id], _joined(others), invert=True).sum()))


def _row_digests(logged: LoggedData) -> Digests:
    """Return a digest of the arm, the round and the loss of each unit."""
    if len(logged.times):
        rounds = _bits(logged.times)
    elif len(logged.labels):
        rounds = logged.labels
    else:  # of an older version, without the labels: it equals no other table
        rounds = np.arange(logged.rounds, dtype=np.uint64)
    return _mixed(_arms(logged), rounds[logged.round], _bits(logged.loss))


def _id_digests(logged: LoggedData) -> Digests:
    """Return a digest of the id and the arm of each unit, and of whether it has a loss."""
    ids = logged.ids if len(logged.ids) else np.zeros(len(logged.arm), dtype=np.uint64)
    return _mixed(_arms(logged), ids, np.isnan(logged.loss).astype(np.uint64))


def _arms(logged: LoggedData) -> Digests:
    return text_digests(logged.arms)[logged.arm]


def _bits(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Digests:
    """Return numbers as whole numbers; all that are missing are one, and so are 0 and -0."""
    return np.where(np.isnan(values), np.nan, values + 0.0).view(np.uint64)


def _mixed(*columns: Digests) -> Digests:
    """Return one digest for each row."""
    found = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        found = (found ^ column) * FACTOR
        found ^= found >> SHIFT
        found *= FACTOR
        found ^= found >> SHIFT
    return found


def _joined(parts: Iterable[Digests]) -> Digests:
    return np.concatenate([NO_DIGESTS, *parts])


def _beyond(given: Digests, known: Digests) -> BoolArray:
    """Return which digests are more than there are known ones, the last of equal ones first."""
    order, known = np.argsort(given, kind="stable"), np.sort(known)
    ranked = given[order]
    place = np.arange(len(given)) - np.searchsorted(ranked, ranked)
    count = np.searchsorted(known, ranked, "right") - np.searchsorted(known, ranked)
    beyond: BoolArray = np.empty(len(given), dtype=bool)
    beyond[order] = place >= count
    return beyond
