"""What a journal says of a verb: plain data that people can read, and arrays."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from multiplay._support.serialization import pack, unpack
from multiplay.actions import ActionSet
from multiplay.errors import Conflict, InvalidInput
from multiplay.learner.engine import REQUEST, Heard, Outcome
from multiplay.learner.logged_data import Outcomes
from multiplay.learner.losses import Reading
from multiplay.learner.plays import PendingState, Receipt
from multiplay.learner.round_set import Limits
from multiplay.learner.snapshot import builder_of
from multiplay.policies import Play
from multiplay.storage import Entry, Labels, Record
from multiplay.types import Arrays, IntArray

# What happened. A part is a report that is not the last one.
CREATE, IMPORT, ASK, TELL, PART = "create", "import", "ask", "tell", "part"
CLOSE, CANCEL, EXPIRE, LEARN, TABLE = "close", "cancel", "expire", "learn", "learn_table"
KINDS = {one: (one,) for one in (ASK, CLOSE, CANCEL, EXPIRE, LEARN, TABLE)} | {TELL: (TELL, PART)}
VERB = {kind: verb for verb, kinds in KINDS.items() for kind in kinds}  # that writes it
ENDS = (TELL, CLOSE, CANCEL)  # after these, a play is over
SET, MEMO, CACHE = "set/", "memo/", "cache/"  # before the names of arrays
FORMAT = 1  # of entries and snapshots; newer ones are refused
USUAL = b""  # the digest of the usual day
BY = "by"  # in an entry: who wrote it
AT_REQUEST = "request"  # in an entry with a key: the request that wrote it
MARKS = {BY, AT_REQUEST}  # what no replay can come to


class Day(NamedTuple):
    """The set of a day as it was given, with its limits, as a journal keeps it.

    Attributes
    ----------
    plain : dict or None
        The packed set; None for the usual one.
    limits : dict
        Those that were given.
    arrays : dict
        Of the packed set.
    digest : bytes
        Of all of it: two days with the same digest are the same day.
    """

    plain: Any
    limits: dict[str, Any]
    arrays: Arrays
    digest: bytes

    @classmethod
    def of(cls, actions: ActionSet | None, limits: Limits, usual: bytes) -> Day:
        """Return the day of a set; ``usual`` is the digest of the usual set."""
        plain, arrays = (None, {}) if actions is None else pack(actions, "actions")
        if plain is not None and set_digest(plain, arrays) == usual:
            plain, arrays = None, {}
        given = {name: value for name, value in vars(limits).items() if value}
        return cls.made(plain, json.loads(json.dumps(given)), arrays)

    @classmethod
    def made(cls, plain: Any, limits: dict[str, Any], arrays: Arrays) -> Day:
        """Return a day with its digest."""
        usual = plain is None and not limits
        return cls(plain, limits, arrays, USUAL if usual else set_digest([plain, limits], arrays))

    @classmethod
    def read(cls, record: Record) -> Day:
        """Return the day of a record."""
        arrays = below(SET, record.arrays)
        return cls.made(record.header.get("set"), record.header.get("limits", {}), arrays)

    def header(self) -> dict[str, Any]:
        """Return what a record says of it; nothing of a usual day."""
        given = {"set": self.plain, "limits": self.limits}
        return {name: value for name, value in given.items() if value}

    def given(self, usual: ActionSet) -> ActionSet | None:
        """Build the set; None if it is the usual one."""
        if self.plain is None:
            return None
        built: ActionSet = unpack(self.plain, self.arrays, builder_of(usual))
        return built

    def wanted(self) -> Limits:
        """Return the limits."""
        given = self.limits
        exclude = tuple(given.get("exclude", ()))
        return Limits(dict(given.get("at_most", {})), exclude, dict(given.get("fixed", {})))


def set_digest(plain: Any, arrays: Arrays) -> bytes:
    """Return 16 bytes that tell packed sets apart."""
    digest = hashlib.blake2b(json.dumps(plain).encode(), digest_size=16)
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.digest()


def asked(play: PendingState, day: Day) -> Record:
    """Return what is written of a play that was chosen."""
    action = play.action[0]
    header = {
        "plan": plan_of(action, play.today.actions.names),
        "units": play.units,
        "expected": number(play.expected),
        **({"hurried": True} if play.truncated else {}),
        **day.header(),
    }
    arrays = under(SET, day.arrays) | under(MEMO, play.memo) | under(CACHE, play.play.cache)
    return Record(header, arrays)


def signed(record: Record, by: str | None) -> Record:
    """Return a record that says who wrote it."""
    return record if by is None else Record({**record.header, BY: by}, record.arrays)


def requested(record: Record, request: str) -> Record:
    """Return a record that says which request wrote it; one without a key is found by that."""
    return Record({**record.header, AT_REQUEST: request}, record.arrays)


def is_truncated(record: Record) -> bool:
    """Say whether the time limit of a play was over before the policy had its choice."""
    return bool(record.header.get("hurried"))


def play_of(record: Record, names: Sequence[str]) -> Play:
    """Return the play of a record."""
    action = action_of_plan(record.header["plan"], names)
    return Play(action[None], below(MEMO, record.arrays), below(CACHE, record.arrays))


def plan_of(action: IntArray, names: Sequence[str]) -> dict[str, int]:
    """Return the arms that are played, by name."""
    (which,) = action.nonzero()
    arms = [names[i] for i in which.tolist()]
    return dict(zip(arms, action[which].tolist(), strict=True))


def action_of_plan(plan: Mapping[str, int], names: Sequence[str]) -> IntArray:
    """Return a plan of some arms as an action."""
    return np.array([plan.get(name, 0) for name in names], dtype=np.int64)


def reported(heard: Heard, reading: Reading, names: Sequence[str], ignore: bool) -> Record:
    """Return what is written of a report."""
    header = {"losses": losses_of(reading, names), "ignore": ignore, **answer(heard.told)}
    header["digests"] = heard.digests.hex()
    if heard.outcome is not None:
        header |= outcome_of(heard.outcome)
    return Record(header, {})


def learned(
    told: Receipt, reading: Reading, action: IntArray, names: Sequence[str], ignore: bool, day: Day
) -> Record:
    """Return what is written of a plan that somebody else chose."""
    header = {
        "plan": plan_of(action, names),
        "losses": losses_of(reading, names),
        "ignore": ignore,
        **answer(told),
        **day.header(),
    }
    return Record(header, under(SET, day.arrays))


def learned_table(told: Receipt, outcomes: Outcomes) -> Record:
    """Return what is written of a history."""
    arrays = {name: getattr(outcomes, name) for name in ("arm", "round", "loss")}
    return Record({"arms": outcomes.arms, **answer(told)}, arrays)


def outcomes_of(record: Record) -> Outcomes:
    """Return the history of a record."""
    return Outcomes(record.header["arms"], **record.arrays)


def same_outcomes(record: Record, outcomes: Outcomes) -> bool:
    """Say whether a record is of this history."""
    other = outcomes_of(record)
    if other.arms != outcomes.arms:
        return False
    pairs = zip(other[1:], outcomes[1:], strict=True)
    return all(np.array_equal(one, two, equal_nan=True) for one, two in pairs)


def losses_of(reading: Reading, names: Sequence[str]) -> Any:
    """Return what was told by the names of the arms: units, None for one that did not report."""
    if reading.round is not None:
        return reading.round
    told: dict[str, Any] = {}
    first = 0
    units = reading.units.tolist()
    for i, length in enumerate(reading.length):
        if length:
            of_arm = units[first : first + length]
            told[names[i]] = [number(loss) for loss in of_arm] if reading.gaps else of_arm
            first += length
        elif i in reading.totals:
            told[names[i]] = reading.totals[i]
    return told


def outcome_of(outcome: Outcome) -> dict[str, Any]:
    """Return what came of a play."""
    return {"realised": number(outcome.realised)}


def answer(told: Receipt) -> dict[str, int]:
    """Return what was answered."""
    return {"seen": told.seen, "missing": told.missing, "clipped": told.clipped}


def answered(id: int | None, known: Entry, request: str | None) -> Receipt:
    """Answer again what was answered before; to a request that comes twice, the very same."""
    header, labels = known.record.header, known.labels
    seen, missing, clipped = (header[name] for name in ("seen", "missing", "clipped"))
    same = request is not None and header.get(AT_REQUEST) == request
    repeated = not (same or is_request(labels.key))
    return Receipt(id, seen, missing, clipped, repeated=repeated, final=labels.kind != PART)


def is_request(key: str | None) -> bool:
    """Say whether this is the key of a request, which only repeating it can find."""
    return key is not None and key.startswith(REQUEST)


def shown_key(labels: Labels) -> str | None:
    """Return the key that the caller gave."""
    return None if is_request(labels.key) else labels.key


def number(value: float) -> float | None:
    """Return a number as JSON can write it: None for NaN."""
    return None if math.isnan(value) else value


def from_number(value: float | None) -> float:
    """Return what ``number`` was given."""
    return math.nan if value is None else value


def under(prefix: str, arrays: Arrays) -> Arrays:
    """Put a prefix before the names of arrays."""
    return {prefix + name: array for name, array in arrays.items()}


def below(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays with a prefix, without it."""
    return {k.removeprefix(prefix): array for k, array in arrays.items() if k.startswith(prefix)}


def check_format(header: Mapping[str, Any]) -> None:
    """Raise ``InvalidInput`` if this was written by a newer version of multiplay."""
    if header["format"] > FORMAT:
        expected, got = f"format {FORMAT} or older", f"format {header['format']}"
        raise InvalidInput("study", expected, got, "Update multiplay.")


def used_before(known: Entry, what: str) -> Conflict:
    """Return the error of a key that stands for something else."""
    key = (known.labels.key or "").removeprefix(REQUEST)
    return Conflict(
        "key",
        "a new key, or the one of the same request",
        f"{key!r}, which {what}",
        "Use another key for another request.",
    )
