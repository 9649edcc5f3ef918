"""Files of learners: the state and the journal as one record, in every format so far.

Format 5 has the entries of the journal. Format 4 has events instead, in which corrected reports are
replaced, and format 3, that of version 0.9, has only a log of plays: both become entries when they
are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from multiplay._support.dates import day_name
from multiplay._support.serialization import (
    pack,
    set_digest,
    with_prefix,
    without_prefix,
)
from multiplay.actions import ActionSet
from multiplay.constraints.promise import promise_of
from multiplay.features import Features
from multiplay.features.table import Scales, Values
from multiplay.learner import snapshot
from multiplay.learner.comparison import reports_so_far
from multiplay.learner.constraints import CHANGE
from multiplay.learner.engine import Engine, PlayOutcome, ReportResult, receipt_of
from multiplay.learner.features import table_of, table_record
from multiplay.learner.logged_data import LoggedData, reports
from multiplay.learner.play_log import PlayLog
from multiplay.learner.plays import CANCELLED, TOLD, PendingState, Receipt
from multiplay.learner.ranges import Ranges
from multiplay.learner.reports import ParsedLosses
from multiplay.learner.round_set import RoundSet
from multiplay.learner.switching import CHANGED
from multiplay.policies import Policy
from multiplay.storage import Labels, Record
from multiplay.studies import entry_codec, play_history
from multiplay.studies.entry_codec import (
    ASK,
    CANCEL,
    CLOSE,
    FORGET,
    KEEP,
    PART,
    TELL,
    StoredAhead,
    StoredFeatures,
)
from multiplay.studies.object_journal import ObjectJournal
from multiplay.studies.replica import USUAL_SET, Made, Replica
from multiplay.studies.stream_replica import StreamReplica, asked_record, stored_form
from multiplay.types import Arrays, IntArray

JOURNAL, BEGIN, TABLE, EVENTS = "journal", "begin", "table", "events"  # in a header
OUTCOMES = ("arm", "round", "loss", "times")  # arrays of logged data in format 4
WORDS = 4  # numbers of 64 bits: the state of the random numbers


class LearnerParts(NamedTuple):
    """The state of a learner, and its journal."""

    replica: StreamReplica
    journal: ObjectJournal


def record_of(replica: StreamReplica, journal: ObjectJournal) -> Record:
    """Return a learner as one record."""
    engine, file = replica.engine, replica.file
    header, arrays = snapshot.record(engine)
    header |= {snapshot.VERSION: snapshot.FILE_FORMAT, "seed": engine.seed}
    header[snapshot.NEXT_ID] = max(journal.plays(), default=0) + 1
    if engine.state.log is not None:
        arrays |= with_prefix(snapshot.REPORTS, engine.state.log.arrays())
    parts = {JOURNAL: _journal_record(journal)}
    if replica.table is not None:
        parts[TABLE] = table_record(replica.table)
    if file is not None:
        parts[BEGIN] = file.header, file.arrays
    for name, (plain, of_part) in parts.items():
        header[name] = plain
        arrays |= with_prefix(f"{name}/", of_part)
    return Record(header, arrays)


def parts_of(record: Record, actions: ActionSet | None, policy: Policy | None) -> LearnerParts:
    """Return the learner of a record; user-defined sets and policies are passed again.

    Raises ``InvalidInput`` where one of them is needed or does not fit, ``ValueError`` where the
    record does not hold a learner.
    """
    engine, log = snapshot.parts_of(without_journal(record), actions, policy)
    try:
        return _parts(record, engine, log)
    except (KeyError, TypeError, IndexError, AttributeError, StopIteration) as error:
        raise ValueError(f"incomplete journal: {error!r}") from None


def _parts(record: Record, engine: Engine, log: PlayLog) -> LearnerParts:
    header, arrays = record
    table, file, journal = None, None, ObjectJournal()
    if JOURNAL in header:
        if TABLE in header:
            table = table_of(header[TABLE], without_prefix(f"{TABLE}/", arrays))
        if BEGIN in header:
            file = Record(header[BEGIN], without_prefix(f"{BEGIN}/", arrays))
        _StoredJournal(header[JOURNAL], without_prefix(f"{JOURNAL}/", arrays)).copy_to(journal)
    elif EVENTS in header:
        plain, of_events = header[EVENTS], without_prefix(f"{EVENTS}/", arrays)
        if TABLE in plain:
            table = table_of(plain[TABLE], without_prefix(f"{TABLE}/", of_events))
        for made, labels, words in _Events(plain, of_events, engine, log).entries():
            journal.write(made, labels, words)
    else:
        file = record
        for one, labels in entry_codec.imported_plays(log):
            request = log.requests.get(labels.play or 0)
            asked = {} if request is None or labels.kind != ASK else _requested(request)
            journal.write(Record({**one.header, **asked}, one.arrays), labels)
    own = engine.constraints.switching
    if own is not None and CHANGED not in header[CHANGE]:  # of older files
        for play, end in play_history.ended_plays(journal):
            if end is None or play_history.status_of(end) != CANCELLED:
                own.changed += play.record.header.get(entry_codec.CHANGED, 0)
    replica = StreamReplica(engine, table, file)
    replica.number = len(journal) - 1
    return LearnerParts(replica, journal)


def without_journal(record: Record) -> Record:
    """Return the record of a learner without its journal or its events."""
    parts = (JOURNAL, BEGIN, TABLE, EVENTS)
    header = {name: value for name, value in record.header.items() if name not in parts}
    before = tuple(f"{name}/" for name in parts)
    return Record(header, {k: a for k, a in record.arrays.items() if not k.startswith(before)})


# ------------------------------------------------------------ format 5


def _journal_record(journal: ObjectJournal) -> tuple[dict[str, Any], Arrays]:
    """Return all entries as plain data and arrays.

    Headers are one text. Arrays of the same name, type and shape are stacked, and a set is stored
    once for all plays on it.
    """
    texts, sets, groups = list[bytes](), _Sets(), dict[Any, int]()
    members: list[tuple[list[int], list[Any]]] = []
    for entry in journal.entries(1):
        header, arrays = sets.numbered(entry.record)
        own = list[int]()
        for name, array in arrays.items():
            own.append(groups.setdefault((name, array.dtype.str, array.shape), len(groups)))
            if own[-1] == len(members):
                members.append(([], []))
            members[own[-1]][0].append(entry.number)
            members[own[-1]][1].append(array)
        texts.append(json.dumps([header, own, entry.labels.key]).encode())
    labels = [journal.labels(number) for number in range(1, len(journal))]
    words = [journal.words(number) for number in range(1, len(journal))]
    kinds = {kind: k for k, kind in enumerate(dict.fromkeys(one.kind for one in labels))}
    own_arrays: Arrays = {
        "text": np.frombuffer(b"".join(texts), dtype=np.uint8),
        "ends": np.cumsum([0, *map(len, texts)], dtype=np.int64),
        "kinds": np.array([kinds[one.kind] for one in labels], dtype=np.uint8),
        "plays": np.array([-1 if one.play is None else one.play for one in labels], dtype=np.int64),
        "at": np.array([one.at for one in labels], dtype=float),
        "learned": np.array([bool(one) for one in words], dtype=bool),
        "words": np.frombuffer(b"".join(words), dtype=np.uint64).reshape(-1, WORDS),
    }
    for group, (numbers, stacked) in enumerate(members):
        own_arrays[f"numbers/{group}"] = np.array(numbers, dtype=np.int64)
        own_arrays[f"arrays/{group}"] = np.stack(stacked)
    for number, of_set in enumerate(sets.arrays):
        own_arrays |= with_prefix(f"sets/{number}/", of_set)
    names = [name for name, *_ in groups]
    return {"kinds": [*kinds], "groups": names, "sets": sets.plain}, own_arrays


class _Sets:
    """The different sets of entries."""

    def __init__(self) -> None:
        self.plain, self.arrays = list[Any](), list[Arrays]()
        self._numbers: dict[bytes, int] = {}

    def numbered(self, record: Record) -> Record:
        """Return a record with the number of its set in place of the set."""
        plain = record.header.get("set")
        if plain is None:
            return record
        of_set = without_prefix(entry_codec.SET, record.arrays)
        number = self._numbers.setdefault(set_digest(plain, of_set), len(self.plain))
        if number == len(self.plain):
            self.plain.append(plain)
            self.arrays.append(of_set)
        rest = {k: a for k, a in record.arrays.items() if not k.startswith(entry_codec.SET)}
        return Record({**record.header, "set": number}, rest)


class _StoredJournal:
    """The entries of ``_journal_record``, each of which is read when it is needed."""

    def __init__(self, header: Any, arrays: Arrays) -> None:
        self._kinds, self._names, self._sets = header["kinds"], header["groups"], header["sets"]
        self._text, self._ends = arrays["text"].tobytes(), arrays["ends"].tolist()
        groups = range(len(self._names))
        self._numbers = [arrays[f"numbers/{group}"] for group in groups]
        self._stacked = [arrays[f"arrays/{group}"] for group in groups]
        self._of_sets = [without_prefix(f"sets/{k}/", arrays) for k in range(len(self._sets))]
        self._labels = [arrays[name].tolist() for name in ("kinds", "plays", "at", "learned")]
        self._words = arrays["words"]

    def copy_to(self, journal: ObjectJournal) -> None:
        """Write all entries to a journal; each is read once, so that errors are found."""
        words = iter(self._words)
        rows = zip(pairwise(self._ends), *self._labels, strict=True)
        for number, (place, kind, play, at, learned) in enumerate(rows, start=1):
            self.record(number, *place)
            key = json.loads(self._text[slice(*place)])[2]
            labels = Labels(self._kinds[kind], key, None if play < 0 else play, at)
            before = next(words).tobytes() if learned else b""
            journal.write(partial(self.record, number, *place), labels, before)

    def record(self, number: int, start: int, end: int) -> Record:
        """Return the record of an entry, whose text is at a place."""
        header, own, _ = json.loads(self._text[start:end])
        arrays: Arrays = {}
        for group in own:
            place = int(np.searchsorted(self._numbers[group], number))
            arrays[self._names[group]] = self._stacked[group][place, ...].copy()
        if "set" in header:
            of_set = self._of_sets[header["set"]]
            header["set"] = self._sets[header["set"]]
            arrays |= with_prefix(entry_codec.SET, of_set)
        return Record(header, arrays)


# ------------------------------------------------------------ formats 3 and 4


def _requested(request: Any) -> dict[str, Any]:
    return {entry_codec.AS_REQUESTED: request.plain()}


class _Events:
    """The events of format 4 as entries."""

    def __init__(self, header: Any, arrays: Arrays, engine: Engine, log: PlayLog) -> None:
        self._header, self._arrays, self._engine, self._log = header, arrays, engine, log
        self._sets = snapshot.days_of(header["days"], arrays, engine.state)
        self._plays: dict[int, PendingState] = {}
        self._line = {id: k for k, id in enumerate(log.ids())}
        self._usual = set_digest(*pack(engine.state.actions, "actions"))

    def entries(self) -> Iterator[tuple[Made, Labels, bytes]]:
        """Yield the content of each entry, its labels, and the random numbers before it."""
        arrays = self._arrays
        parsed = _losses_of(without_prefix("losses/", arrays))
        told = len(arrays["told"])
        external = iter(parsed[told:])
        rare = (
            self._rare(plain, without_prefix(f"rare/{k}/", arrays), external)
            for k, plain in enumerate(self._header["rare"])
        )
        own = self._asked(), self._told(parsed[:told]), self._ended()
        sources: list[Iterator[Any]] = [*own, rare]
        for kind in arrays["kinds"].tolist():
            yield next(sources[kind])

    def _asked(self) -> Iterator[tuple[Made, Labels, bytes]]:
        header, arrays, log, engine = self._header, self._arrays, self._log, self._engine
        plays = dict(snapshot.plays_by_place(header["groups"], arrays))
        used: dict[str, int] = {}
        columns = arrays["asked"].tolist(), sorted(plays), arrays["days_of"].tolist()
        for k, (id, place, day) in enumerate(zip(*columns, strict=True)):
            play, phi = plays[place]
            today, scales = (None, None) if header["features"] is None else header["features"][k]
            when, expected, _ = log.since(self._line[id])
            own: dict[str, Any] = {"asked": when, "expected": expected, "phi": phi, "today": today}
            own |= {"truncated": id in log.truncated, "gap": log.truncated.get(id)}
            key, units = log.key_of.get(id), int(play.action.sum())
            pending = PendingState(play, self._sets[day], key, units=units, **own)
            self._plays[id] = pending
            if key is not None:
                used[key] = used.get(key, -1) + 1
                key = entry_codec.key_again(day_name(key), used[key])
            usual = None if pending.round_set is engine.state.usual else self._usual
            prices = engine.constraints.promises.prices_of(play) or None
            rest = usual, engine.declared, _scales(scales), entry_codec.NO_SETS, prices
            made: Made = partial(asked_record, pending, *rest)
            request = log.requests.get(id)
            if request is not None and request.ahead:
                made = partial(_with_request, made, _requested(request))
            yield made, Labels(ASK, key, id, when), b""

    def _told(self, losses: list[ParsedLosses]) -> Iterator[tuple[Made, Labels, bytes]]:
        arrays = self._arrays
        flags = arrays["told_flags"].reshape(-1, 2).tolist()
        columns = arrays["told"].tolist(), losses, flags, arrays["told_when"].tolist()
        for id, parsed, (final, ignore), when, words in zip(
            *columns, arrays["told_words"], strict=True
        ):
            play = self._plays[id]
            result = self._final(id, parsed) if final else self._part(id, parsed)
            names = play.round_set.actions.names
            made = partial(entry_codec.report_record, result, parsed, names, ignore)
            yield made, Labels(TELL if final else PART, None, id, when), words.tobytes()

    def _final(self, id: int, parsed: ParsedLosses) -> ReportResult:
        receipt, outcome = self._outcome(id)
        return ReportResult(receipt, self._log.digests.get(self._line[id], b""), outcome)

    def _part(self, id: int, parsed: ParsedLosses) -> ReportResult:
        play = self._plays[id]
        report = reports_so_far(play, parsed)
        digests = play.digests + parsed.digest(play.action[0])
        self._plays[id] = play._replace(report=report, digests=digests)
        told = receipt_of(id, report)._replace(final=False)
        return ReportResult(told, digests, None)

    def _outcome(self, id: int) -> tuple[Receipt, PlayOutcome]:
        """Return the receipt and the outcome of a closed play, as in the log."""
        log, line = self._log, self._line[id]
        units, seen, clipped = (int(log.get(line, name)) for name in ("units", "seen", "clipped"))
        outcome = PlayOutcome(seen, log.get(line, "realised"), clipped)
        return Receipt(id, seen, units - seen, clipped), outcome

    def _ended(self) -> Iterator[tuple[Made, Labels, bytes]]:
        arrays = self._arrays
        closing = iter(arrays["ended_words"])
        columns = (arrays[name].tolist() for name in ("ended", "ended_when", "closed"))
        for id, when, closed in zip(*columns, strict=True):
            if closed:
                record = entry_codec.close_record(*self._outcome(id))
                yield record, Labels(CLOSE, None, id, when), next(closing).tobytes()
            else:
                yield Record({}, {}), Labels(CANCEL, None, id, when), b""

    def _rare(
        self, plain: list[Any], arrays: Arrays, external: Iterator[ParsedLosses]
    ) -> tuple[Made, Labels, bytes]:
        """Return the entry of an event that is not a play or a report."""
        kind, *rest = plain
        state = self._engine.state
        if kind == "learned":
            day, ignore, when, words, today, scales = rest
            round_set = self._sets[day]
            usual = None if round_set is state.usual else self._usual
            features = today, _scales(scales), self._engine.declared
            plan = round_set, usual, arrays["action"], next(external), ignore
            made: Made = partial(_learned_record, *plan, *features)
            return made, Labels(entry_codec.LEARN, at=when), bytes.fromhex(words)
        if kind == "table":
            arms, skipped, scales, words = rest
            arm, round, loss, times = (arrays[name] for name in OUTCOMES)
            of_arms = without_prefix(snapshot.FEATURES, arrays)
            logged = LoggedData(arms, arm, round, loss, of_arms, times, skipped)
            made = partial(_table_record, logged, _scales(scales) or {}, state.ranges)
            return made, Labels(entry_codec.TABLE), bytes.fromhex(words)
        if kind == "described":
            record = entry_codec.describe_record(rest[0], arrays, _scales(rest[1]) or {})
            return record, Labels(entry_codec.DESCRIBE), b""
        if kind == "promised":
            past = [self._sets[k].given for k in rest[1]]
            return partial(_promise_record, rest[0], past), Labels(entry_codec.PROMISE), b""
        if kind == "released":
            return Record({"name": rest[0]}, {}), Labels(entry_codec.RELEASE), b""
        keep, arm, given, is_time, now = rest
        if is_time:
            given = datetime.fromtimestamp(given, UTC)
        record = Record({"arm": arm, "given": entry_codec.plain_round(given)}, {})
        return record, Labels(KEEP if keep else FORGET, at=now), b""


def _scales(plain: Any) -> Scales | None:
    return None if plain is None else {name: tuple(pair) for name, pair in plain.items()}


def _with_request(made: Made, requested: dict[str, Any]) -> Record:
    record = made if isinstance(made, Record) else made()
    return Record({**record.header, **requested}, record.arrays)


def _learned_record(
    round_set: RoundSet,
    usual: bytes | None,
    action: IntArray,
    parsed: ParsedLosses,
    ignore: bool,
    today: Values | None,
    scales: Scales | None,
    declared: Features | None,
) -> Record:
    names, stored = round_set.actions.names, entry_codec.NO_FEATURES
    if today is not None and declared is not None:
        stored = StoredFeatures.of_values(today, scales or {}, names, declared)
    told = receipt_of(None, round_set.report(action, parsed, partly=True))
    stored_set = USUAL_SET if usual is None else stored_form(round_set, usual)
    return entry_codec.learn_record(told, parsed, action, names, ignore, stored_set, stored)


def _table_record(logged: LoggedData, scales: Scales, ranges: Ranges) -> Record:
    told = [receipt_of(None, one) for one in reports(logged, tuple(logged.arms), ranges)]
    seen, missing, clipped = (
        sum(getattr(one, name) for one in told) for name in ("seen", "missing", "clipped")
    )
    receipt = Receipt(None, seen, missing, clipped, skipped=logged.skipped)
    return entry_codec.table_record(receipt, logged, scales)


def _promise_record(plain: Any, past: list[ActionSet]) -> Record:
    sets, arrays, digests = dict[str, Any](), dict[str, Any](), list[str]()
    for one in past:
        packed, of_one = pack(one, "actions")
        digests.append(set_digest(packed, of_one).hex())
        sets[digests[-1]] = packed
        arrays |= with_prefix(f"{entry_codec.AHEAD}/{digests[-1]}/", of_one)
    return entry_codec.promise_record(promise_of(plain), StoredAhead(digests, sets, arrays))


def _losses_of(arrays: Arrays) -> list[ParsedLosses]:
    """Return the losses of all reports and external plans."""
    totals: list[dict[int, float]] = [{} for _ in arrays["round"]]
    for k, arm, total in arrays["totals"].reshape(-1, 3).tolist():
        totals[int(k)][int(arm)] = total
    length, units = arrays["length"].tolist(), arrays["units"]
    found, begin, first = list[ParsedLosses](), 0, 0
    rest = zip(arrays["round"].tolist(), arrays["gaps"].tolist(), totals, strict=True)
    for (n, d), (round, gaps, total) in zip(arrays["sizes"].tolist(), rest, strict=True):
        own = units[begin : begin + n], length[first : first + d], total
        found.append(ParsedLosses(*own, None if np.isnan(round) else round, gaps))
        begin, first = begin + n, first + d
    return found


# ------------------------------------------------------------ studies of learners


def imported_plays(
    record: Record, actions: ActionSet | None, policy: Policy | None
) -> Iterator[tuple[Record, Labels]]:
    """Yield the entries of the plays of a learner, for a study whose first entry has its state."""
    if JOURNAL not in record.header:
        _, log = snapshot.parts_of(without_journal(record), actions, policy)
        yield from entry_codec.imported_plays(log)
        return
    replica, journal = parts_of(record, actions, policy)
    for asked, end in play_history.ended_plays(journal):
        id, header = asked.labels.play, asked.record.header
        if header.get("imported"):  # of a file of version 0.9
            yield asked.record, asked.labels
        else:
            yield Record(_imported_play(replica, asked.record, asked.labels), {}), asked.labels
        if end is None:
            continue
        status = play_history.status_of(end)
        if status == CANCELLED:
            yield Record({"imported": True}, {}), Labels(CANCEL, None, id, 0.0)
        elif end.record.header.get("imported"):
            yield end.record, end.labels
        elif status == TOLD:
            came = end.record.header
            about = journal.of_play(id or 0)
            told = {
                "imported": True,
                "seen": came["seen"],
                "missing": header["units"] - came["seen"],
                "clipped": came["clipped"],
                "realised": came["realised"],
                "digests": play_history.digests_of(about),
            }
            when = came.get("told", end.labels.at)
            yield Record(told, {}), Labels(TELL, None, id, when)


def _imported_play(replica: Replica, record: Record, labels: Labels) -> dict[str, Any]:
    round_set, _ = replica.round_set_of(record)
    names, header = round_set.actions.names, record.header
    action = entry_codec.action_of_plan(header["plan"], names)
    return {
        "imported": True,
        "arms": [*names],
        "unmet": [*round_set.actions.unmet(action)] if round_set.may_lack else [],
        "plan": None if labels.key is None else round_set.plan(action),
        "units": header["units"],
        "expected": header["expected"],
    }
