"""Journal entries: records written for each verb of a study, and what is read back from them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from multiplay._support.checks import is_integer
from multiplay._support.dates import day_name
from multiplay._support.serialization import (
    completed,
    number_or_none,
    pack,
    set_digest,
    unpack,
    with_prefix,
    without_prefix,
)
from multiplay.actions import ActionSet, Rule
from multiplay.actions.base import stored_names
from multiplay.actions.milp import solver_version
from multiplay.beliefs.restart import Restart
from multiplay.constraints import Constraint, Promise, SwitchingCost
from multiplay.constraints.promise import promise_of
from multiplay.errors import Conflict, InvalidInput
from multiplay.features import Features
from multiplay.features.table import ALL, ArmFeatures, Scales, Values
from multiplay.kernels.jit import digest_of_kernels
from multiplay.learner import features, snapshot
from multiplay.learner.allowance import FOUND, is_restricted, settings_of, settings_record
from multiplay.learner.constraints import ALLOWANCE, CHANGE, PROMISES, Before
from multiplay.learner.engine import REQUEST, Engine, PlayOutcome, ReportResult, Round
from multiplay.learner.logged_data import NO_DIGESTS, NO_TIMES, LoggedData
from multiplay.learner.plan_request import PlanRequest
from multiplay.learner.play_log import PlayLog
from multiplay.learner.plays import (
    CANCELLED,
    TOLD,
    Estimate,
    PendingState,
    Receipt,
    Remaining,
)
from multiplay.learner.promises import is_held
from multiplay.learner.ranges import OTHERS, Ranges
from multiplay.learner.reports import ParsedLosses
from multiplay.learner.round_set import PlanLimits, RoundSet
from multiplay.learner.snapshot import builder_of
from multiplay.learner.switching import changed_units
from multiplay.policies import Play
from multiplay.storage import Entry, Labels, Record
from multiplay.types import Arrays, IntArray
from multiplay.version import __version__

# Kinds of entries. A part is a report that is not final.
CREATE, IMPORT, ASK, TELL, PART = "create", "import", "ask", "tell", "part"
CLOSE, CANCEL, EXPIRE, LEARN, TABLE = "close", "cancel", "expire", "learn", "learn_table"
FORGET, KEEP, DESCRIBE, WORDS, COMPARE = "forget", "keep", "describe", "words", "compare"
CORRECT, RETRACT, PROMISE, RELEASE = "correct", "retract", "promise", "release"
RANGE = "range"  # of losses: the journal is replayed with the last one
CONSTRAINT = "constraint"  # that is no promise; any of them ends by a release
CORRECTIONS = (CORRECT, RETRACT)
RESTARTS = {FORGET: "before", KEEP: "since"}  # with the field of their round
HIDDEN = "hidden"  # in such an entry: the number of the first entry whose reports count
REQUESTED = "request"  # the result of a request that wrote no other entry without a key
KINDS: dict[str, tuple[str, ...]] = {}  # of the entries of each verb; commands add theirs
OUTCOMES, TIMES = ("arm", "round", "loss"), "times"  # arrays of logged data
DIGESTS = ("labels", "ids")  # of logged data, too
NAMED = ("source", "whole")  # texts of logged data
REPORTS = (TELL, CLOSE)  # after these, the policy has learned from a play
ENDS = (*REPORTS, CANCEL, *CORRECTIONS)  # the last of these determines the status of a play
OF, PARTS = "of", "parts"  # in a correction: the entry of the report, and those of its parts
SET, MEMO, CACHE, FEATURE = "set/", "memo/", "cache/", "feature/"  # before the names of arrays
OTHER = -1.0  # the code of a category's value that is no level
FEW_ARMS = 32  # whose values of a feature are plain data; of more arms, they are an array
FORMAT = 1  # of entries and snapshots; newer formats are refused
USUAL = b""  # the digest of the usual set without limits
BY = "by"  # in an entry: its author
AGAIN = 2 * REQUEST  # prefix of a key that was free again; keys of requests never have it
AT_REQUEST = "request"  # in an entry: the request that wrote it
BODY, EXPECTED = "body", "expected"  # of the request: the digest of its content; its estimate
ID = "id"  # of the request, where the entry has the key of the caller
# Exceptions that content of a different program can raise where it is read or replayed.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
CHANGED = "changed"  # units of a play that differ from the last plan, if they cost something
BASELINE, RESTRICTED = "baseline", "restricted"  # in an entry of a play: see allowance
PRICES, HELD, AHEAD, SETS = "prices", "held", "ahead", "sets"  # in an entry of a play: promises
SOLVER = "solver"  # in the first entry: the version of the solver of the set
BEST = "best"  # in an entry of a play: the expected cost of the best plan then
REPLACES = "replaces"  # in an entry of a play: the pending play that it cancelled
GAP = "gap"  # in an entry of a truncated play: how far it may be from the best
AS_REQUESTED = "requested"  # in an entry of a play of an older file: what it was asked for
PAST = "past"  # in an entry of a promise: the sets of earlier plays
LAST, AFTER = "last", "after"  # of a switching cost: the last plan told, and pending plays
WITH = "with"  # in an entry: the version and the processor that wrote it
MARKS = {BY, AT_REQUEST, WITH}  # fields that replay does not give


class Request(NamedTuple):
    """A request of a client that may be repeated.

    Attributes
    ----------
    id : str
        The id of the request, which no other request has.
    body : str
        The digest of its content; "" if the content is not compared.
    """

    id: str
    body: str = ""


class StoredSet(NamedTuple):
    """The set of a round and its limits, in the form of the journal.

    Attributes
    ----------
    plain : dict or None
        The packed set; None for the usual one.
    limits : dict
        The limits that were given.
    arrays : dict
        The arrays of the packed set.
    digest : bytes
        The digest of the set and its limits.
    """

    plain: Any
    limits: dict[str, Any]
    arrays: Arrays
    digest: bytes

    @classmethod
    def of(cls, actions: ActionSet | None, limits: PlanLimits, usual: bytes) -> StoredSet:
        """Return the stored form of a set; ``usual`` is the digest of the usual set."""
        plain, arrays = (None, {}) if actions is None else pack(actions, "actions")
        if plain is not None and set_digest(plain, arrays) == usual:
            plain, arrays = None, {}
        given = {name: value for name, value in vars(limits).items() if value}
        return cls.with_digest(plain, json.loads(json.dumps(given)), arrays)

    @classmethod
    def with_digest(cls, plain: Any, limits: dict[str, Any], arrays: Arrays) -> StoredSet:
        """Return a stored set with its digest."""
        usual = plain is None and not limits
        digest = USUAL if usual else set_digest([completed(plain), limits], arrays)
        return cls(plain, limits, arrays, digest)

    @classmethod
    def of_record(cls, record: Record) -> StoredSet:
        """Return the stored set of a record."""
        arrays = without_prefix(SET, record.arrays)
        return cls.with_digest(record.header.get("set"), record.header.get("limits", {}), arrays)

    def header(self) -> dict[str, Any]:
        """Return the fields of a record; none for the usual set without limits."""
        given = {"set": self.plain, "limits": self.limits}
        return {name: value for name, value in given.items() if value}

    def given(self, usual: ActionSet) -> ActionSet | None:
        """Build the set; None if it is the usual one."""
        if self.plain is None:
            return None
        with stored_names():
            built: ActionSet = unpack(self.plain, self.arrays, builder_of(usual))
        return built

    def plan_limits(self) -> PlanLimits:
        """Return the limits."""
        given = self.limits
        exclude = tuple(given.get("exclude", ()))
        return PlanLimits(dict(given.get("at_most", {})), exclude, dict(given.get("fixed", {})))


class StoredFeatures(NamedTuple):
    """The features of a round, in the form of the journal.

    Attributes
    ----------
    header : dict
        "features": the values of the day; "scales": the scaling that they determined, if any.
    arrays : dict
        The codes of features with values of many arms, in the order of the set; NaN for no value.
    """

    header: dict[str, Any]
    arrays: Arrays

    @classmethod
    def of(cls, round_set: RoundSet, declared: Features | None) -> StoredFeatures:
        """Return the stored form of the features of a round."""
        found = round_set.features
        if found is None or declared is None:
            return NO_FEATURES
        return cls.of_values(found.today, found.scales, round_set.actions.names, declared)

    @classmethod
    def of_values(
        cls, values: Values, scales: Scales, names: Sequence[str], declared: Features
    ) -> StoredFeatures:
        """Return the stored form of values, and of the scales that they determined."""
        today, arrays = dict(values), dict[str, Any]()
        for name, given in values.items():
            if isinstance(given, dict) and len(given) > FEW_ARMS:
                column, codes = declared.columns[name], np.full(len(names), np.nan)
                for i, arm in enumerate(names):
                    if arm in given:
                        value = given[arm]
                        codes[i] = OTHER if value is None else column.code(name, value)
                today[name] = {ALL: given[ALL]} if ALL in given else {}
                arrays[name] = codes
        header = {"features": today} | scales_field(scales)
        return cls(header, with_prefix(FEATURE, arrays))

    @classmethod
    def of_record(cls, record: Record) -> StoredFeatures:
        """Return the stored features of a record."""
        own = {"features", "scales"} & record.header.keys()
        header = {name: record.header[name] for name in own}
        arrays = with_prefix(FEATURE, without_prefix(FEATURE, record.arrays))
        return cls(header, arrays)

    def today(self, names: Sequence[str], declared: Features) -> Values:
        """Return the values of the day."""
        today = dict(self.header.get("features", {}))
        for name, codes in without_prefix(FEATURE, self.arrays).items():
            column, given = declared.columns[name], {}
            for i in np.flatnonzero(~np.isnan(codes)).tolist():
                given[names[i]] = column.value(float(codes[i]))
            today[name] = given | today[name]
        return today

    @property
    def scales(self) -> Scales:
        """The scaling that the values determined."""
        return scales_of(self.header)


NO_FEATURES = StoredFeatures({}, {})


class StoredAhead(NamedTuple):
    """The sets of the plays after a play, in the form of the journal.

    Attributes
    ----------
    digests : list of str
        The digests of the sets, in order.
    sets : dict
        The packed sets by digest, of those that the play before did not have.
    arrays : dict
        The arrays of the packed sets.
    """

    digests: list[str]
    sets: dict[str, Any]
    arrays: Arrays

    @classmethod
    def of(cls, ahead: Sequence[ActionSet], engine: Engine) -> StoredAhead:
        """Return the stored form of sets, before the play is chosen."""
        if not ahead:
            return NO_SETS
        book, known = engine.constraints.promises, _sets_known(engine)
        digests, sets = [book.digest(one).hex() for one in ahead], dict[str, Any]()
        arrays: Arrays = {}
        for digest, one in zip(digests, ahead, strict=True):
            if digest not in known and digest not in sets:
                sets[digest], of_one = pack(one, "actions")
                arrays |= with_prefix(f"{AHEAD}/{digest}/", of_one)
        return cls(digests, sets, arrays)

    @classmethod
    def of_record(cls, record: Record) -> StoredAhead:
        """Return the stored sets of a record."""
        arrays = with_prefix(f"{AHEAD}/", without_prefix(f"{AHEAD}/", record.arrays))
        return cls(record.header.get(AHEAD, []), record.header.get(SETS, {}), arrays)

    def given(self, engine: Engine) -> tuple[ActionSet, ...]:
        """Build the sets, before the play is chosen."""
        if not self.digests:
            return ()
        known, builder = _sets_known(engine), builder_of(engine.state.actions)
        with stored_names():
            for digest, plain in self.sets.items():
                arrays = without_prefix(f"{AHEAD}/{digest}/", self.arrays)
                known[digest] = unpack(plain, arrays, builder)
        return tuple(known[digest] for digest in self.digests)

    def header(self) -> dict[str, Any]:
        """Return the fields of a record; none without sets."""
        given = {AHEAD: self.digests, SETS: self.sets}
        return {name: value for name, value in given.items() if value}


NO_SETS = StoredAhead([], {}, {})


def _sets_known(engine: Engine) -> dict[str, ActionSet]:
    """Return the sets that an entry need not have, by digest."""
    book = engine.constraints.promises
    return {book.digest(one).hex(): one for one in (engine.state.actions, *book.ahead)}


def same_features(record: Record, stored: StoredFeatures) -> bool:
    """Return whether an entry has these values of features."""
    then = StoredFeatures.of_record(record)
    same = then.header.get("features") == stored.header.get("features")
    return same and same_arrays(then.arrays, stored.arrays)


def scales_of(header: Mapping[str, Any]) -> Scales:
    """Return the scales of an entry."""
    given = header.get("scales", {})
    return {name: (float(centre), float(scale)) for name, (centre, scale) in given.items()}


def scales_field(scales: Scales) -> dict[str, Any]:
    """Return the field of an entry with new scales, if there are any."""
    return {"scales": {name: list(pair) for name, pair in scales.items()}} if scales else {}


def ask_record(
    play: PendingState,
    stored_set: StoredSet,
    features: StoredFeatures = NO_FEATURES,
    ahead: StoredAhead = NO_SETS,
    prices: Mapping[str, float] | None = None,
    replaces: int | None = None,
) -> Record:
    """Return the entry of a chosen play; ``replaces`` is the play that it cancelled."""
    action = play.action[0]
    header = {
        "plan": plan_of(action, play.round_set.actions.names),
        "units": play.units,
        "expected": number_or_none(play.expected),
        **({} if math.isnan(play.best) else {BEST: play.best}),
        **({"hurried": True} if play.truncated else {}),
        **({} if play.gap is None else {GAP: play.gap}),
        **_of_allowance(play),
        **({PRICES: dict(prices)} if prices else {}),
        **({HELD: True} if is_held(play.play) else {}),
        **({CHANGED: changed} if (changed := changed_units(play.play)) else {}),
        **({} if replaces is None else {REPLACES: replaces}),
        **ahead.header(),
        **stored_set.header(),
        **features.header,
    }
    arrays = (
        with_prefix(SET, stored_set.arrays)
        | features.arrays
        | ahead.arrays
        | with_prefix(MEMO, play.memo)
        | with_prefix(CACHE, play.play.cache)
    )
    return Record(header, arrays)


def _of_allowance(play: PendingState) -> dict[str, Any]:
    """Return the baseline's plan of a play, and whether the allowance changed the play."""
    if FOUND not in play.memo:
        return {}
    plan = plan_of(play.memo[FOUND][0], play.round_set.actions.names)
    return {BASELINE: plan} | ({RESTRICTED: True} if is_restricted(play.play) else {})


def plan_request(record: Record, has_rule: bool) -> PlanRequest | None:
    """Return what the play of an entry was asked for; None if that is not known.

    ``has_rule``: the plan of the baseline is that of a rule, and was not given.
    """
    if AS_REQUESTED in record.header:
        *rest, ahead = record.header[AS_REQUESTED]
        return PlanRequest(*rest)._replace(ahead=tuple(ahead))
    if record.header.get("imported"):
        return None
    stored, features = StoredSet.of_record(record), StoredFeatures.of_record(record)
    plain = None if stored.plain is None else completed(stored.plain)
    values = features.header.get("features")
    if features.arrays:
        values = [values, set_digest(None, features.arrays).hex()]
    return PlanRequest.of(
        "" if plain is None else set_digest(plain, stored.arrays).hex(),
        stored.limits,
        values,
        None if has_rule else record.header.get(BASELINE),
        record.header.get(AHEAD, ()),
    )


def explored(record: Record) -> bool | None:
    """Return whether a play was expected to be worse than the best plan; None if not known."""
    expected, best = (record.header.get(name) for name in (EXPECTED, BEST))
    return None if expected is None or best is None else bool(expected != best)


def signed(record: Record, by: str | None) -> Record:
    """Return a record with its author, and what wrote it."""
    marks = {WITH: writer()} if by is None else {BY: by, WITH: writer()}
    return Record({**record.header, **marks}, record.arrays)


@cache
def writer() -> str:
    """Return version, processor and a digest of the kernels: they determine the bits of plays."""
    from llvmlite import binding  # kernels are compiled for the processor that it names

    return f"{__version__} {binding.get_host_cpu_name()} {digest_of_kernels()[:12]}"


def requested(record: Record, request: Request, **more: Any) -> Record:
    """Return a record with the digest of its request, and what its result needs beside it."""
    mark = {BODY: request.body, **more}
    return Record({**record.header, AT_REQUEST: mark}, record.arrays)


def request_number(kind: str, id: str) -> int:
    """Return a number of 64 bits for a request, by the kind of its entry."""
    digest = blake2b(f"{kind}:{id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def request_of(entry: Entry) -> str | None:
    """Return the id of the request of an entry that has the key of a caller; None without."""
    mark = entry.record.header.get(AT_REQUEST)
    return mark.get(ID) if isinstance(mark, dict) else mark  # version 0.9 marked it with the id


def is_of(entry: Entry, request: Request | None) -> bool:
    """Return whether a request wrote an entry that has the key of a caller."""
    return request is not None and request_of(entry) == request.id


def request_keys(verb: str, id: str) -> list[tuple[str, str]]:
    """Return the kinds and keys of the entries that a request may have written."""
    return [*((kind, REQUEST + id) for kind in KINDS[verb]), (REQUESTED, f"{REQUEST}{verb}:{id}")]


def result_record(verb: str, request: Request, result: Any) -> Record:
    """Return the entry for the result of a request that has no entry of its own."""
    return requested(Record({"verb": verb, "result": result}, {}), request)


def estimate_fields(estimate: Estimate) -> list[float | None]:
    """Return an estimate as plain data."""
    return [number_or_none(float(value)) for value in estimate]


def check_same_request(known: Entry, request: Request) -> None:
    """Raise ``Conflict`` if an entry was written by a request with a different content."""
    mark = known.record.header.get(AT_REQUEST)
    then = mark[BODY] if isinstance(mark, dict) else ""  # version 0.9 wrote no digest
    if then and request.body and then != request.body:
        raise different_request()


def different_request() -> Conflict:
    """Return the error of an idempotency key that was used for a different request."""
    return Conflict(
        "Idempotency-Key",
        "a new key, or the same request",
        "a key that was used for a different request",
        "Use a new key for every new request.",
    )


def is_truncated(record: Record) -> bool:
    """Return whether the play of a record is truncated."""
    return bool(record.header.get("hurried"))


def gap_of(record: Record) -> float | None:
    """Return how far the truncated play of a record may be from the best; None if not known."""
    gap: float | None = record.header.get(GAP)
    return gap


def play_of(record: Record, names: Sequence[str]) -> Play:
    """Return the play of a record."""
    action = action_of_plan(record.header["plan"], names)
    return Play(action[None], memo_of(record), without_prefix(CACHE, record.arrays))


def memo_of(record: Record) -> Arrays:
    """Return the memo of the play of a record."""
    return without_prefix(MEMO, record.arrays)


def plan_of(action: IntArray, names: Sequence[str]) -> dict[str, int]:
    """Return the arms that are played, by name."""
    (which,) = action.nonzero()
    arms = [names[i] for i in which.tolist()]
    return dict(zip(arms, action[which].tolist(), strict=True))


def action_of_plan(plan: Mapping[str, int], names: Sequence[str]) -> IntArray:
    """Return a plan of some arms as an action."""
    return np.array([plan.get(name, 0) for name in names], dtype=np.int64)


def report_record(
    result: ReportResult, parsed: ParsedLosses, names: Sequence[str], ignore: bool
) -> Record:
    """Return the entry of a report."""
    header = {
        "losses": losses_by_arm(parsed, names),
        "ignore": ignore,
        **receipt_fields(result.receipt),
    }
    header["digests"] = result.digests.hex()
    if result.outcome is not None:
        header |= outcome_of(result.outcome)
    return Record(header, {})


def learn_record(
    told: Receipt,
    parsed: ParsedLosses,
    action: IntArray,
    names: Sequence[str],
    ignore: bool,
    stored_set: StoredSet,
    features: StoredFeatures = NO_FEATURES,
) -> Record:
    """Return the entry of an external plan."""
    header = {
        "plan": plan_of(action, names),
        "losses": losses_by_arm(parsed, names),
        "ignore": ignore,
        **receipt_fields(told),
        **stored_set.header(),
        **features.header,
    }
    return Record(header, with_prefix(SET, stored_set.arrays) | features.arrays)


def table_record(told: Receipt, logged: LoggedData, scales: Scales) -> Record:
    """Return the entry of logged data."""
    arrays = {name: getattr(logged, name) for name in OUTCOMES}
    more = {name: getattr(logged, name) for name in (TIMES, *DIGESTS)}
    arrays |= {name: array for name, array in more.items() if len(array)}
    header = {"arms": logged.arms, **receipt_fields(told), **scales_field(scales)}
    header |= {name: text for name in NAMED if (text := getattr(logged, name))}
    return Record(header, arrays | with_prefix(FEATURE, logged.features))


def logged_data_of(record: Record) -> LoggedData:
    """Return the logged data of a record."""
    arm, round, loss = (record.arrays[name] for name in OUTCOMES)
    features, times = without_prefix(FEATURE, record.arrays), record.arrays.get(TIMES, NO_TIMES)
    skipped, known = (record.header.get(name, 0) for name in ("skipped", "known"))
    labels, ids = (record.arrays.get(name, NO_DIGESTS) for name in DIGESTS)
    named = (record.header.get(name, "") for name in NAMED)
    rest = features, times, skipped, known, labels, ids, *named
    return LoggedData(record.header["arms"], arm, round, loss, *rest)


def describe_record(arms: Sequence[str], codes: Arrays, scales: Scales) -> Record:
    """Return the entry of features of arms."""
    return Record({"arms": list(arms), **scales_field(scales)}, with_prefix(FEATURE, codes))


def described(record: Record) -> tuple[list[str], Arrays]:
    """Return the arms of an entry, and the codes of their features."""
    return record.header["arms"], without_prefix(FEATURE, record.arrays)


def same_description(record: Record, arms: Sequence[str], codes: Arrays) -> bool:
    """Return whether a record has these features of arms."""
    then, values = described(record)
    return then == list(arms) and same_arrays(values, codes)


def same_arrays(one: Arrays, other: Arrays) -> bool:
    """Return whether two dicts have the same arrays."""
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name], equal_nan=True) for name in one
    )


def same_logged_data(record: Record, logged: LoggedData) -> bool:
    """Return whether a record has these logged data, or is of what was new in them."""
    other = logged_data_of(record)
    if other.whole:
        return other.whole == digest_of_table(logged)
    if other.arms != logged.arms or not same_arrays(other.features, logged.features):
        return False
    kept = (name for name in DIGESTS if len(getattr(other, name)))  # older entries have none
    pairs = ((getattr(other, name), getattr(logged, name)) for name in (*OUTCOMES, TIMES, *kept))
    return all(np.array_equal(one, two, equal_nan=True) for one, two in pairs)


def digest_of_table(logged: LoggedData) -> str:
    """Return the digest of logged data."""
    digest = blake2b(json.dumps(logged.arms).encode(), digest_size=16)
    for name in (*OUTCOMES, TIMES, *DIGESTS):
        digest.update(np.ascontiguousarray(getattr(logged, name)).tobytes())
    for name in sorted(logged.features):
        digest.update(name.encode() + np.ascontiguousarray(logged.features[name]).tobytes())
    return digest.hexdigest()


def restart_record(
    kind: str, arm: str | None, given: Round | None, restart: Restart, hidden: int | None = None
) -> Record:
    """Return the entry of reports that are forgotten or kept.

    It holds the sums of the reports that count, so that replaying does not read earlier entries;
    the state of a policy that needs more follows from a replay in which the reports of the arm
    before entry ``hidden`` are hidden.
    """
    header = {
        "arm": arm,
        RESTARTS[kind]: restart.since,
        "given": plain_round(given),
        "units": restart.units,
        **({} if hidden is None else {HIDDEN: hidden}),
    }
    return Record(header, restart.arrays())


def changes_past(entry: Entry) -> bool:
    """Return whether an entry changes what was learned before: the journal is replayed."""
    return entry.labels.kind in (*CORRECTIONS, RANGE) or HIDDEN in entry.record.header


def ranges_header(ranges: Ranges) -> dict[str, Any]:
    """Return ranges of losses, and what becomes of losses outside, as in the first entry."""
    return {"ranges": {ranges.noun: ranges.by_name}, "outside": ranges.outside}


def range_record(ranges: Ranges, before: Ranges) -> Record:
    """Return the entry of new ranges of losses."""
    return Record({**ranges_header(ranges), "before": ranges_header(before)}, {})


def ranges_of(header: Mapping[str, Any]) -> Ranges:
    """Return the ranges of an entry."""
    [(noun, plain)] = header["ranges"].items()
    pairs = {name: tuple(pair) for name, pair in plain.items()}
    return Ranges(noun, pairs, header["outside"], [name for name in pairs if name != OTHERS])


def plain_round(given: Round | None) -> int | str | None:
    """Return a round as it was given as plain data; a time as text."""
    if isinstance(given, datetime):
        return given.astimezone(UTC).isoformat()
    return int(given) if is_integer(given) else None


def round_given(plain: int | str | None) -> Round | None:
    """Return a round as it was given."""
    return datetime.fromisoformat(plain) if isinstance(plain, str) else plain


def restart_of(entry: Entry, places: IntArray) -> Restart:
    """Return the restart of an entry, whose arms are at these places."""
    since = entry.record.header[RESTARTS[entry.labels.kind]]
    return Restart(entry.labels.kind == KEEP, since, places, **entry.record.arrays)


def remaining_of(known: Entry) -> Remaining:
    """Return the result of forgetting or keeping reports from its entry."""
    header = known.record.header
    return Remaining(header[RESTARTS[known.labels.kind]], header["units"])


def losses_by_arm(parsed: ParsedLosses, names: Sequence[str]) -> Any:
    """Return losses by arm name: a list of units with None for a missing one, or a total."""
    if parsed.round is not None:
        return parsed.round
    told: dict[str, Any] = {}
    first = 0
    units = parsed.units.tolist()
    for i, length in enumerate(parsed.length):
        if length:
            of_arm = units[first : first + length]
            told[names[i]] = [number_or_none(loss) for loss in of_arm] if parsed.gaps else of_arm
            first += length
        elif i in parsed.totals:
            told[names[i]] = parsed.totals[i]
    return told


def compare_record(rule: Rule | None) -> Record:
    """Return the entry of the rule that plays are compared with; None for no rule."""
    header, arrays = (None, {}) if rule is None else pack(rule, "rule")
    return Record({"rule": header}, arrays)


def rule_of(record: Record) -> Rule | None:
    """Return the rule of an entry."""
    header = record.header["rule"]
    if header is None:
        return None
    rule: Rule = unpack(header, record.arrays, builder_of())
    return rule


def outcome_of(outcome: PlayOutcome) -> dict[str, Any]:
    """Return the fields of an outcome."""
    return {"realised": number_or_none(outcome.realised)}


def close_record(told: Receipt, outcome: PlayOutcome) -> Record:
    """Return the entry of a play that was closed."""
    return Record(receipt_fields(told) | outcome_of(outcome), {})


def receipt_fields(told: Receipt) -> dict[str, Any]:
    """Return the fields of a receipt; those of a table only where there is something."""
    fields = {"seen": told.seen, "missing": told.missing, "clipped": told.clipped}
    of_table = {"added": list(told.added), "skipped": told.skipped, "known": told.known}
    return fields | {name: value for name, value in of_table.items() if value}


def receipt_of(known: Entry, repeated: bool) -> Receipt:
    """Return the receipt of an entry."""
    header, labels = known.record.header, known.labels
    seen, missing, clipped = (header[name] for name in ("seen", "missing", "clipped"))
    of_table = tuple(header.get("added", ())), header.get("skipped", 0), header.get("known", 0)
    return Receipt(labels.play, seen, missing, clipped, repeated, labels.kind != PART, *of_table)


def repeated_receipt(known: Entry, request: Request | None) -> Receipt:
    """Return the receipt of an entry again; for the request that wrote it, the identical one."""
    return receipt_of(known, not is_of(known, request))


def key_again(key: str, times: int = 1) -> str:
    """Return the key of an entry whose key was used before, and was free again.

    A store has one entry for a kind and a key. ``key`` may be that of an entry.

    Examples
    --------
    >>> key_again(key_again("Monday")) == key_again("Monday", 2)
    True
    """
    before, name = _times_used(key)
    return f"{AGAIN}{before + times} {day_name(name)}" if before + times else name


def next_key(labels: Labels) -> str | None:
    """Return the key that an entry has which uses the key of an entry again; None without one."""
    return None if shown_key(labels) is None else key_again(labels.key or "")


def _times_used(key: str) -> tuple[int, str]:
    """Return how often the key of an entry was used before it, and the key of the caller."""
    if not key.startswith(AGAIN):
        return 0, key
    times, _, name = key.removeprefix(AGAIN).partition(" ")
    return int(times), name


def is_request(key: str | None) -> bool:
    """Return whether a key is that of a request, which users do not see."""
    return key is not None and key.startswith(REQUEST) and not key.startswith(AGAIN)


def shown_key(labels: Labels) -> str | None:
    """Return the key that the caller gave."""
    return None if labels.key is None or is_request(labels.key) else _times_used(labels.key)[1]


def check_format(header: Mapping[str, Any]) -> None:
    """Raise ``InvalidInput`` if an entry or snapshot has a newer format."""
    if header["format"] > FORMAT:
        expected, got = f"format {FORMAT} or older", f"format {header['format']}"
        raise InvalidInput("study", expected, got, "Update multiplay.")


def used_before(known: Entry, what: str) -> Conflict:
    """Return the error of a key that was used for a different request."""
    key = (known.labels.key or "").removeprefix(REQUEST)
    return Conflict(
        "key",
        "a new key, or the key of the same request",
        f"{key!r}, which {what}",
        "Use a different key for a different request.",
    )


def create_record(engine: Engine, seed: int, varying_set: bool) -> Record:
    """Return the first entry of a new study."""
    state = engine.state
    (actions, of_actions), (policy, of_policy) = (
        pack(thing, name) for thing, name in ((state.actions, "actions"), (state.policy, "policy"))
    )
    words = engine.given_words
    header = {
        "format": FORMAT,
        "multiplay": __version__,
        **({SOLVER: solver_version()} if state.actions.searches else {}),
        snapshot.VERSION: snapshot.FORMAT,
        "actions": actions,
        "policy": policy,
        **ranges_header(state.ranges),
        "missing": engine.missing,
        "changing": varying_set,
        "seed": seed,
        **({"words": words} if words else {}),
    }
    arrays = with_prefix("actions/", of_actions) | with_prefix("policy/", of_policy)
    if state.features is not None:
        header["features"], of_features = features.table_record(state.features.table)
        arrays |= with_prefix(snapshot.FEATURES, of_features)
    if state.like is not None:
        arrays[snapshot.LIKE] = state.like
    own = engine.constraints
    if own.allowance is not None:
        header[ALLOWANCE], of_rule = settings_record(own.allowance.settings)
        arrays |= with_prefix(f"{ALLOWANCE}/", of_rule)
    if own.switching is not None:
        header[CHANGE] = own.switching.settings.cost
    if own.promises.initial:
        header[PROMISES] = [one.record() for one in own.promises.initial]
    return Record(header, arrays)


def constraints_of(record: Record) -> list[Constraint]:
    """Return the constraints of the first entry of a study."""
    header, found = record.header, list[Constraint]()
    if ALLOWANCE in header:
        arrays = without_prefix(f"{ALLOWANCE}/", record.arrays)
        found.append(settings_of(header[ALLOWANCE], arrays, builder_of()))
    if CHANGE in header:
        found.append(SwitchingCost(header[CHANGE]))
    return [*found, *map(promise_of, header.get(PROMISES, ()))]


def constraint_record(constraint: Constraint, past: StoredAhead, before: Before) -> Record:
    """Return the entry of a constraint: a promise has its fields, others are packed.

    ``past`` are the sets of ``before`` in the form of the journal.
    """
    if isinstance(constraint, Promise):
        return promise_record(constraint, past)
    plain, arrays = pack(constraint, "constraint")
    header = {CONSTRAINT: plain, LAST: before.plan, AFTER: list(before.pending)}
    given = {name: value for name, value in header.items() if value}
    return Record(given, with_prefix(f"{CONSTRAINT}/", arrays))


def promise_record(promise: Promise, past: StoredAhead) -> Record:
    """Return the entry of a promise; ``past`` are the sets of earlier plays."""
    header = {PROMISE: promise.record(), PAST: past.digests, SETS: past.sets}
    return Record({name: value for name, value in header.items() if value}, past.arrays)


def constraint_of(record: Record) -> Constraint:
    """Return the constraint of an entry."""
    if PROMISE in record.header:
        return promise_of(record.header[PROMISE])
    arrays = without_prefix(f"{CONSTRAINT}/", record.arrays)
    found: Constraint = unpack(record.header[CONSTRAINT], arrays, builder_of())
    return found


def before_of(record: Record, engine: Engine) -> Before:
    """Return the plays before the constraint of an entry, as far as it needs them."""
    past = StoredAhead.of_record(record)._replace(digests=record.header.get(PAST, []))
    of_plays = record.header.get(LAST), tuple(record.header.get(AFTER, ()))
    return Before(past.given(engine), *of_plays)


def table_of(record: Record) -> ArmFeatures | None:
    """Return the declared features of the first entry of a study, if there are any."""
    if "features" not in record.header:
        return None
    arrays = without_prefix(snapshot.FEATURES, record.arrays)
    return features.table_of(record.header["features"], arrays)


def import_record(learner: Record, seed: int) -> Record:
    """Return the first entry of an imported learner, which holds all of it."""
    header = {
        "format": FORMAT,
        "multiplay": __version__,
        "learner": learner.header,
        "seed": seed,
    }
    return Record(header, learner.arrays)


def imported_plays(log: PlayLog) -> Iterator[tuple[Record, Labels]]:
    """Yield the entries of earlier plays; what was learned from them is in the first entry."""
    used: dict[str, int] = {}
    for line, id in enumerate(log.ids()):
        numbers = {name: log.get(line, name) for name in ("asked", "told", "expected", "realised")}
        units, seen, clipped = (int(log.get(line, name)) for name in ("units", "seen", "clipped"))
        asked = {
            "imported": True,
            "arms": list(log.arms[line]),
            "unmet": list(log.unmet.get(line, ())),
            "plan": log.plans.get(id),
            "units": units,
            "expected": number_or_none(numbers["expected"]),
            **_unknown("asked", numbers),
        }
        key = log.key_of.get(id)
        if key is not None:
            used[key] = used.get(key, -1) + 1
            key = key_again(key, used[key])
        yield Record(asked, {}), Labels(ASK, key, id, _time(numbers["asked"]))
        status = log.status(line)
        if status == CANCELLED:
            yield Record({"imported": True}, {}), Labels(CANCEL, None, id, 0.0)
        elif status == TOLD:
            told = {
                "imported": True,
                "seen": seen,
                "missing": units - seen,
                "clipped": clipped,
                "realised": number_or_none(numbers["realised"]),
                "digests": log.digests.get(line, b"").hex(),
                **_unknown("told", numbers),
            }
            yield Record(told, {}), Labels(TELL, None, id, _time(numbers["told"]))


def _time(when: float) -> float:
    return 0.0 if np.isnan(when) else when


def _unknown(name: str, numbers: dict[str, float]) -> dict[str, Any]:
    """Say that a time is not known, of a file of an old version."""
    return {name: None} if np.isnan(numbers[name]) else {}
