"""Play history: plays and their outcomes, read from the journal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from multiplay._support.checks import is_integer
from multiplay._support.serialization import number_or_nan
from multiplay.errors import InvalidInput
from multiplay.learner.engine import Losses, play_error, told_again
from multiplay.learner.plays import CANCELLED, NEVER, PENDING, STATUS, TOLD, Receipt, plays_table
from multiplay.learner.reports import is_among, parse_losses
from multiplay.storage import Entry, Journal, Record
from multiplay.studies import entry_codec
from multiplay.studies.entry_codec import ASK, CANCEL, ENDS, PART, TELL, Request
from multiplay.studies.replica import Replica
from multiplay.types import IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

CHUNK = 10_000  # rows


def play_tables(journal: Journal, chunk: int, start: int = 0) -> Iterator[pd.DataFrame]:
    """Yield tables of all plays of ``chunk`` rows each; one empty table if there are no plays.

    ``start`` is the number of the first entry that is read.
    """
    pairs = journal.pairs(ASK, ENDS, start)
    part = table_of(islice(pairs, chunk))
    yield part
    while len(part) == chunk and len(part := table_of(islice(pairs, chunk))):
        yield part


def table_page(journal: Journal, start: int, rows: int) -> tuple[pd.DataFrame, int | None]:
    """Return a table of ``rows`` plays from an entry on, and the first entry of the next table."""
    pairs = journal.pairs(ASK, ENDS, start)
    table = table_of(islice(pairs, rows))
    following = next(pairs, None)
    return table, None if following is None else following[0].number


def checked_chunk(chunk: object) -> int:
    """Return the number of rows of a part, after checking it."""
    if not is_integer(chunk) or chunk < 1:
        raise InvalidInput("chunk", "a positive integer", repr(chunk), "Use 1000, for example.")
    return int(chunk)


def table_of(pairs: Iterable[tuple[Entry, Entry | None]]) -> pd.DataFrame:
    """Return a table of plays, each given by its first and its last entry."""
    ids, keys, lines = list[int](), list[str | None](), list[tuple[float, ...]]()
    for asked, end in pairs:  # one by one: their plans may be large
        ids.append(asked.labels.play or 0)
        keys.append(entry_codec.shown_key(asked.labels))
        lines.append(_line(asked, end))
    return plays_table(ids, keys, np.array(lines, dtype=float))


def about(journal: Journal, id: object) -> list[Entry]:
    """Return all entries of a play; raise ``NotFound`` if there is no such play."""
    found = journal.of_play(checked_id(id))
    if not found:
        raise _unknown(id)
    return found


def checked_id(id: object) -> int:
    """Return the id of a play, after checking that it can be one."""
    if not is_integer(id) or not 0 <= id < 2**63:
        raise _unknown(id)
    return int(id)


def _unknown(id: object) -> InvalidInput:
    return play_error(id, "", "Use the id of a play from ask().")


def pair_of(about: Sequence[Entry]) -> tuple[Entry, Entry | None]:
    """Return the first entry of a play, and the entry that closed it, if any."""
    last = about[-1]
    return about[0], last if last.labels.kind in ENDS else None


def _line(asked: Entry, end: Entry | None) -> tuple[float, ...]:
    """Return the numbers of a play, as in ``learner.plays.COLUMNS``."""
    header = asked.record.header
    when = asked.labels.at if header.get("asked", True) else NEVER
    units, expected = header["units"], number_or_nan(header["expected"])
    status = status_of(end)
    if end is None or status == CANCELLED:
        return when, NEVER, units, 0, expected, NEVER, 0, STATUS.index(status)
    came = end.record.header
    told = end.labels.at if came.get("told", True) else NEVER
    realised = number_or_nan(came["realised"])
    rest = came["clipped"], STATUS.index(status)
    return when, told, units, came["seen"], expected, realised, *rest


def status_of(end: Entry | None) -> str:
    """Return the status of a play."""
    if end is None:
        return PENDING
    return CANCELLED if end.labels.kind == CANCEL else TOLD


def plan_again(replica: Replica, asked: Record) -> tuple[IntArray, dict[str, int]]:
    """Return the action and the plan of a closed play."""
    if asked.header.get("imported"):
        plan, arms = asked.header["plan"], asked.header["arms"]
        return entry_codec.action_of_plan(plan, arms), dict(plan)
    round_set, _ = replica.round_set_of(asked)
    action = entry_codec.action_of_plan(asked.header["plan"], round_set.actions.names)
    return action, round_set.plan(action)


def told_before(
    replica: Replica,
    about: Sequence[Entry],
    losses: Losses,
    final: bool,
    known: Entry | None,
    request: Request | None,
) -> Receipt:
    """Return the receipt of a report of a closed play, or of one whose key is ``known``.

    ``about`` has all entries of the play. ``final`` must be that of the first request with the key:
    a client that was told that the play is open must not take it for closed.
    """
    asked, id = about[0].record, about[0].labels.play
    assert id is not None
    names, unmet = _names(replica, asked)
    parsed = parse_losses(losses, names, replica.engine.state.policy, unmet)
    if known is not None:
        said = known.labels.play, known.labels.kind, known.record.header["losses"]
        if said != (id, TELL if final else PART, entry_codec.losses_by_arm(parsed, names)):
            raise entry_codec.used_before(
                known, f"was used for different losses of play {known.labels.play}"
            )
        return entry_codec.repeated_receipt(known, request)
    end = next(entry for entry in reversed(about) if entry.labels.kind in ENDS)
    with_digests = [entry.record.header for entry in about if "digests" in entry.record.header]
    digests = bytes.fromhex(with_digests[-1]["digests"]) if with_digests else b""
    repeated = is_among(parsed.digest(None), digests)
    came = end.record.header
    numbers = asked.header["units"], came.get("seen", 0), came.get("clipped", 0)
    return told_again(id, status_of(end), repeated, *numbers)


def _names(replica: Replica, asked: Record) -> tuple[Sequence[str], Collection[str]]:
    """Return the arms of a play, and the names in its plan that are not arms."""
    if asked.header.get("imported"):
        return asked.header["arms"], asked.header["unmet"]
    round_set, _ = replica.round_set_of(asked)
    names = round_set.actions.names
    if not round_set.may_lack:
        return names, ()
    return names, round_set.actions.unmet(entry_codec.action_of_plan(asked.header["plan"], names))


def ended_play(id: object, about: Sequence[Entry]) -> InvalidInput:
    """Return the error of a play that is closed or cancelled."""
    status = status_of(about[-1])
    return play_error(id, f"which was {status}", "Omit it: this play is closed.")
