"""Play history: plays and their outcomes, read from the journal."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice, takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay._support.checks import is_integer
from multiplay._support.dates import day_names
from multiplay._support.serialization import number_or_nan
from multiplay.errors import InvalidInput
from multiplay.learner.engine import Losses, is_key, play_error, told_again
from multiplay.learner.play_log import STATUS, external_line, external_table, plays_table
from multiplay.learner.plays import (
    CANCELLED,
    FROM_ASK_HINT,
    NEVER,
    PENDING,
    TOLD,
    AnyPlay,
    Receipt,
    play_id,
)
from multiplay.learner.reports import is_among, parse_losses
from multiplay.storage import Entry, Record
from multiplay.storage.base import JournalEntries
from multiplay.studies import entry_codec
from multiplay.studies.entry_codec import (
    ASK,
    CANCEL,
    CORRECTIONS,
    ENDS,
    LEARN,
    PART,
    RETRACT,
    TABLE,
    TELL,
    Request,
)
from multiplay.studies.replica import Replica, corrections
from multiplay.types import IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

CHUNK = 10_000  # rows
AT_ONCE = 16  # keys that are looked up in one query
MOST_TABLES = 50  # imported tables whose days are cached

_tables: dict[bytes, list[tuple[float, ...]]] = {}  # by the digest of their entries
LossesByArm = dict[str, list[float | None] | float]


class PlayedPlan(NamedTuple):
    """A play with its plan and the losses that were told of it.

    Attributes
    ----------
    row : dict
        The row of the table of plays.
    plan : dict
        The units of each arm that was played.
    losses : dict
        By arm, the losses of its units with None for a missing one, or their total. Empty if the
        total of all units was told.
    prices : dict
        The prices of promises.
    held : bool
        Whether a promise changed the plan beyond its price.
    """

    row: dict[str, Any]
    plan: dict[str, int]
    losses: LossesByArm
    prices: Mapping[str, float] = MappingProxyType({})
    held: bool = False

    def outcomes(self) -> Iterator[tuple[str, int, int, float | None]]:
        """Yield each arm with its units, the units that were told, and their total loss.

        The total is None if nothing was told of the arm alone.

        Examples
        --------
        >>> [*PlayedPlan({}, {"air": 2, "sea": 3}, {"air": [7.0, None], "sea": 6.0}).outcomes()]
        [('air', 2, 1, 7.0), ('sea', 3, 3, 6.0)]
        """
        together = not self.losses and self.row.get("seen") == sum(self.plan.values())
        for arm, units in self.plan.items():
            if together:  # the total of all units was told
                yield arm, units, units, None
                continue
            told = self.losses.get(arm, [])
            if isinstance(told, list):
                known = [loss for loss in told if loss is not None]
                yield arm, units, len(known), sum(known) if known else None
            else:
                yield arm, units, units, told


def play_tables(journal: JournalEntries, chunk: int, start: int = 0) -> Iterator[pd.DataFrame]:
    """Yield tables of all plays of ``chunk`` rows each; one empty table if there are no plays.

    ``start`` is the number of the first entry that is read.
    """
    pairs = ended_plays(journal, start)
    part = table_of(islice(pairs, chunk))
    yield part
    while len(part) == chunk and len(part := table_of(islice(pairs, chunk))):
        yield part


def ended_plays(journal: JournalEntries, start: int = 0) -> Iterator[tuple[Entry, Entry | None]]:
    """Yield the entry of each play, with the one that ended it.

    That may be the play that replaced it, which has the next use of its key.
    """
    pairs = journal.pairs(ASK, ENDS, start)
    while batch := [*islice(pairs, AT_ONCE)]:
        after = replacements(journal, [asked for asked, end in batch if _is_open(end)])
        for asked, end in batch:
            yield asked, after.get(asked.number, end)


def replacements(journal: JournalEntries, pending: Iterable[Entry]) -> dict[int, Entry]:
    """Return the plays that replaced plays without an end, by the number of the entry of each."""
    keys = {key: one.number for one in pending if (key := entry_codec.next_key(one.labels))}
    found = journal.find_all([(ASK, key) for key in keys]) if keys else []
    return {keys[entry.labels.key or ""]: entry for entry in found}


def keyed(journal: JournalEntries, kinds: Iterable[str], key: str) -> Entry | None:
    """Return the entry of one of these kinds with a key, in any spelling of a date; or None."""
    wanted = [(kind, name) for name in day_names(key) for kind in kinds]
    return next(iter(journal.find_all(wanted)), None)


def last_asked(journal: JournalEntries, key: str) -> Entry | None:
    """Return the entry of the last play with a key; None if there is none."""
    names, times = [*day_names(key), entry_codec.key_again(key)], 1
    last: Entry | None = None
    while found := journal.find_all([(ASK, name) for name in names]):
        last = max(found, key=lambda entry: entry.number)
        if last.labels.key != names[-1]:
            break
        names = [entry_codec.key_again(key, times + k) for k in range(1, AT_ONCE)]
        times += len(names)
    return last


def played_plans(
    journal: JournalEntries,
    start: int = 0,
    chunk: int = CHUNK,
    arm: str | None = None,
    end: float = math.inf,
) -> Iterator[tuple[int, PlayedPlan]]:
    """Yield all plays with their plans and losses, in order, each after the number of its entry.

    External plans are among them, with id 0; imported tables are not. ``start`` and ``end`` are the
    numbers of the first and the last entry that are read, ``chunk`` how many plays are read
    together; with ``arm``, own plays without units of it are left out.
    """
    external = [one for one in _external_plans(journal, start) if one[0] <= end]
    pairs: Iterator[tuple[Entry, Entry | None]] = ended_plays(journal, start)
    pairs = takewhile(lambda pair: pair[0].number <= end, pairs)
    if arm is not None:
        pairs = (pair for pair in pairs if (pair[0].record.header["plan"] or {}).get(arm))
    return merge(external, _own_plans(journal, pairs, chunk), key=lambda one: one[0])


def _own_plans(
    journal: JournalEntries, pairs: Iterator[tuple[Entry, Entry | None]], chunk: int
) -> Iterator[tuple[int, PlayedPlan]]:
    while batch := [*islice(pairs, chunk)]:
        for row, (asked, end) in zip(rows_of(table_of(batch)), batch, strict=True):
            yield asked.number, _played_plan(journal, row, asked, end)


def play_with_plan(journal: JournalEntries, about: Sequence[Entry]) -> PlayedPlan:
    """Return a play with its plan and losses; ``about`` has all its entries."""
    pair = pair_of(about)
    (row,) = rows_of(table_of([pair]))
    return _played_plan(journal, row, *pair)


def _played_plan(
    journal: JournalEntries, row: dict[str, Any], asked: Entry, end: Entry | None
) -> PlayedPlan:
    header = asked.record.header
    plan, prices = header["plan"] or {}, header.get(entry_codec.PRICES, {})
    held = bool(header.get(entry_codec.HELD))
    if row["status"] == CANCELLED:
        return PlayedPlan(row, plan, {}, prices, held)
    told = [] if end is None else [end.record.header.get("losses")]
    played = PlayedPlan(row, plan, joined_losses(plan, told), prices, held)
    seen = sum(seen for _, _, seen, _ in played.outcomes())
    if row["status"] == TOLD and seen == row["seen"]:
        return played
    about = in_effect(journal.of_play(row["id"]))  # there may be parts
    told = [entry.record.header.get("losses") for entry in about]
    return played._replace(losses=joined_losses(plan, told))


def external_days(journal: JournalEntries, start: int = 0) -> pd.DataFrame:
    """Return external plans and imported days, in order of time, in the columns of plays.

    Their id is 0. What was retracted is left out, and corrected losses are as they were corrected.
    ``start`` is the number of the first entry that is read.
    """
    changed = corrected_plans(journal)
    keys, lines = list[str | None](), list[tuple[float, ...]]()
    for kind in (LEARN, TABLE):
        for entry, _ in journal.pairs(kind, (), start):
            last = changed.get(entry.number, entry)
            if last.labels.kind == RETRACT:
                continue
            found = [_plan_line(entry, last)] if kind == LEARN else lines_of_table(journal, entry)
            keys += [entry_codec.shown_key(entry.labels) if kind == LEARN else None] * len(found)
            lines += found
    return external_table(lines, keys)


def corrected_plans(journal: JournalEntries) -> dict[int, Entry]:
    """Return the last correction of each external plan or table, by the number of its entry."""
    return {
        entry.record.header[entry_codec.OF]: entry
        for entry in corrections(journal, journal.head().number + 1)
        if entry.labels.play is None
    }


def _external_plans(journal: JournalEntries, start: int) -> list[tuple[int, PlayedPlan]]:
    """Return the external plans that were not retracted, each after the number of its entry."""
    entries = [entry for entry, _ in journal.pairs(LEARN, (), start)]
    changed = corrected_plans(journal) if entries else {}
    pairs = [(entry, changed.get(entry.number, entry)) for entry in entries]
    kept = [pair for pair in pairs if pair[1].labels.kind != RETRACT]
    keys = [entry_codec.shown_key(entry.labels) for entry, _ in kept]
    lines = np.array([_plan_line(*pair) for pair in kept], dtype=float)
    found: list[tuple[int, PlayedPlan]] = []
    rows = rows_of(plays_table([0] * len(kept), keys, lines))
    for row, (entry, last) in zip(rows, kept, strict=True):
        plan = entry.record.header["plan"] or {}
        losses = joined_losses(plan, [last.record.header["losses"]])
        found.append((entry.number, PlayedPlan(row, plan, losses)))
    return found


def _plan_line(entry: Entry, last: Entry) -> tuple[float, ...]:
    """Return the numbers of an external plan; ``last`` is its entry, or the last correction."""
    plan, said = entry.record.header["plan"] or {}, last.record.header
    losses = said["losses"]
    played = PlayedPlan({}, plan, joined_losses(plan, [losses]))
    known = [total for *_, total in played.outcomes() if total is not None]
    total = sum(known) if isinstance(losses, dict) else number_or_nan(losses)
    return external_line(entry.labels.at, sum(plan.values()), said["seen"], total)


def external_tables(journal: JournalEntries, chunk: int) -> Iterator[pd.DataFrame]:
    """Yield ``external_days`` in tables of ``chunk`` rows; none if there are no such days."""
    table = external_days(journal)
    for first in range(0, len(table), chunk):
        yield table[first : first + chunk].reset_index(drop=True)


def lines_of_table(journal: JournalEntries, entry: Entry) -> list[tuple[float, ...]]:
    """Return the numbers of each day of an imported table, from a cache: its arrays are large."""
    found = _tables.get(entry.digest)
    if found is None:
        found = _tables[entry.digest] = _table_lines(next(journal.entries(entry.number)))
        while len(_tables) > MOST_TABLES:
            _tables.pop(next(iter(_tables)), None)
    return found


def _table_lines(entry: Entry) -> list[tuple[float, ...]]:
    """Return the numbers of each day of an imported table."""
    return [external_line(*line) for line in entry_codec.logged_data_of(entry.record).totals()]


def arm_of_tables(journal: JournalEntries, arm: str) -> Iterator[tuple[float, int, float]]:
    """Yield the time, the units with a loss and their total of each imported day of an arm."""
    changed = corrected_plans(journal)
    for entry, _ in journal.pairs(TABLE, ()):
        if entry.number in changed or arm not in entry.record.header["arms"]:
            continue
        table = entry_codec.logged_data_of(next(journal.entries(entry.number)).record)
        own = (table.arm == table.arms.index(arm)) & ~np.isnan(table.loss)
        rounds, places = np.unique(table.round[own], return_inverse=True)
        seen, totals = np.bincount(places), np.bincount(places, weights=table.loss[own])
        for round, units, total in zip(rounds.tolist(), seen.tolist(), totals, strict=True):
            yield table.time(round), units, float(total)


def rows_of(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as Python values, with None for NaN and NaT."""
    for row in table.itertuples(index=False, name=None):
        yield dict(zip(table.columns, map(_known, row), strict=True))


def _known(value: Any) -> Any:
    if value is None or value != value:
        return None
    return value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value


def joined_losses(plan: dict[str, int], reports: Iterable[Any]) -> LossesByArm:
    """Return all losses of a play from its reports, which are as ``losses_by_arm`` wrote them.

    A list with an entry for every unit is added unit by unit; a shorter one is for units that were
    not told before, as in ``Report.joined``. Arms without a unit, which have nothing or 0, are left
    out.

    Examples
    --------
    >>> joined_losses({"air": 3}, [{"air": [1.0]}, {"air": [None, 2.0, None]}, {"air": [4.0]}])
    {'air': [1.0, 2.0, 4.0]}
    """
    joined: LossesByArm = {}
    for told in reports:
        if not isinstance(told, dict):  # the total of all units, or nothing
            continue
        for arm, losses in told.items():
            if arm not in plan:
                continue
            known = joined.get(arm)
            if not isinstance(losses, list):
                joined[arm] = losses
                continue
            slots = known if isinstance(known, list) else [None] * plan[arm]
            if len(losses) == len(slots):
                pairs = zip(slots, losses, strict=True)
                joined[arm] = [old if new is None else new for old, new in pairs]
            else:
                rest = iter(losses)
                joined[arm] = [next(rest, None) if old is None else old for old in slots]
    return joined


def table_page(journal: JournalEntries, start: int, rows: int) -> tuple[pd.DataFrame, int | None]:
    """Return a table of ``rows`` plays from an entry on, and the first entry of the next table."""
    pairs = ended_plays(journal, start)
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


def asked_entry(journal: JournalEntries, id: Any) -> Entry:
    """Return the entry of a play; raise ``NotFound`` if the journal has none."""
    found = next((e for e in journal.of_play(checked_id(id)) if e.labels.kind == ASK), None)
    if found is None:
        raise _unknown(id)
    return found


def about(journal: JournalEntries, play: AnyPlay) -> list[Entry]:
    """Return all entries of a play; raise ``NotFound`` if there is no such play.

    The last one may be that of the play that replaced it.
    """
    id = play_id(play, lambda key: id_of(journal, key))
    found = journal.of_play(checked_id(id))
    if not found:
        raise _unknown(id)
    if _is_open(pair_of(found)[1]):
        found += replacements(journal, found[:1]).values()
    return found


def id_of(journal: JournalEntries, key: str) -> int | None:
    """Return the id of the play with a key; None if there is none."""
    asked = last_asked(journal, key) if is_key(key) else None
    return None if asked is None else asked.labels.play


def checked_id(id: object) -> int:
    """Return the id of a play, after checking that it can be one."""
    if not is_integer(id) or not 0 <= id < 2**63:
        raise _unknown(id)
    return int(id)


def _unknown(id: object) -> InvalidInput:
    return play_error(id, "", FROM_ASK_HINT)


def pair_of(about: Sequence[Entry]) -> tuple[Entry, Entry | None]:
    """Return the first entry of a play, and the entry that closed it, if any."""
    first, last = about[0], about[-1]
    return first, last if last.labels.kind in (*ENDS, ASK) and last is not first else None


def in_effect(about: Sequence[Entry]) -> list[Entry]:
    """Return the entries of a play whose losses count: not those that a correction replaced."""
    found: list[Entry] = []
    for entry in about:
        found = [] if entry.labels.kind in CORRECTIONS else found
        found += [] if entry.labels.kind == RETRACT else [entry]
    return found


def _line(asked: Entry, end: Entry | None) -> tuple[float, ...]:
    """Return the numbers of a play, as in ``learner.play_log.COLUMNS``."""
    header = asked.record.header
    when = asked.labels.at if header.get("asked", True) else NEVER
    units, expected = header["units"], number_or_nan(header["expected"])
    status = status_of(end)
    if end is None or status != TOLD:
        return when, NEVER, units, 0, expected, NEVER, 0, STATUS.index(status)
    came = end.record.header
    told = number_or_nan(came.get("told", end.labels.at))
    realised = number_or_nan(came["realised"])
    rest = came["clipped"], STATUS.index(status)
    return when, told, units, came["seen"], expected, realised, *rest


def status_of(end: Entry | None) -> str:
    """Return the status of a play."""
    if end is None or end.labels.kind == RETRACT:
        return PENDING
    return CANCELLED if end.labels.kind in (CANCEL, ASK) else TOLD


def status(journal: JournalEntries, id: int) -> str:
    """Return the status of the play of an id."""
    return status_of(pair_of(about(journal, id))[1])


def _is_open(end: Entry | None) -> bool:
    return status_of(end) == PENDING


def plan_again(replica: Replica, asked: Record) -> tuple[IntArray, dict[str, int]]:
    """Return the action and the plan of a closed play."""
    if asked.header.get("imported"):
        plan, arms = asked.header["plan"], asked.header["arms"]
        return entry_codec.action_of_plan(plan, arms), dict(plan)
    round_set, _ = replica.round_set_of(asked)
    action = entry_codec.action_of_plan(asked.header["plan"], round_set.actions.names)
    return action, round_set.plan(action)


def baseline_again(replica: Replica, asked: Record) -> tuple[dict[str, int] | None, bool]:
    """Return the baseline's plan of a closed play, and whether the allowance changed the play."""
    plan = asked.header.get(entry_codec.BASELINE)
    if plan is None:
        return None, False
    round_set, _ = replica.round_set_of(asked)
    action = entry_codec.action_of_plan(plan, round_set.actions.names)
    return round_set.plan(action), bool(asked.header.get(entry_codec.RESTRICTED))


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
    end = next(entry for entry in reversed(about) if entry.labels.kind in (*ENDS, ASK))
    repeated = is_among(parsed.digest(None), bytes.fromhex(digests_of(about)))
    came = end.record.header
    numbers = asked.header["units"], came.get("seen", 0), came.get("clipped", 0)
    return told_again(id, status_of(end), repeated, *numbers)


def digests_of(about: Sequence[Entry]) -> str:
    """Return the digests of the reports of a play that were not retracted."""
    retracted = [place for place, entry in enumerate(about) if entry.labels.kind == RETRACT]
    counting = about[retracted[-1] if retracted else 0 :]  # what was retracted was not told
    found = [entry.record.header.get("digests", "") for entry in counting]
    return next((digests for digests in reversed(found) if digests), "")


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
