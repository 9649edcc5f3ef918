"""Snapshot codec: a learner as one record, and the learner that a record holds."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import multiplay.actions
import multiplay.constraints
import multiplay.policies
from multiplay._support.builder import Builder, classes_of
from multiplay._support.checks import check_instance, shortened
from multiplay._support.hints import Hint, Verb
from multiplay._support.serialization import (
    CONTAINERS,
    comparable,
    completed,
    describe,
    pack,
    type_name,
    types_in,
    unpack,
    with_prefix,
    without_prefix,
)
from multiplay.actions import ActionSet
from multiplay.actions.base import stored_names
from multiplay.beliefs.restart import ReportLog
from multiplay.errors import InvalidInput
from multiplay.learner.constraints import CHANGE, PROMISES, LearnerConstraints
from multiplay.learner.engine import Engine
from multiplay.learner.features import table_of
from multiplay.learner.play_log import PlayLog, truncated_of
from multiplay.learner.plays import PendingState
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.ranges import OTHERS, Ranges
from multiplay.learner.reports import Report
from multiplay.learner.round_set import NO_LIMITS, PlanLimits, RoundSet
from multiplay.learner.statistics import ArmStatistics
from multiplay.learner.switching import CHANGED
from multiplay.policies import Play, Policy
from multiplay.policies.missing import COUNTS, counts_reports
from multiplay.random import Streams
from multiplay.storage import Record
from multiplay.types import Arrays, FloatArray, IntArray

FORMAT = 6  # of states; 3 is that of version 0.9, and in 4 the moments of beliefs are always apart
FILE_FORMAT = 7  # of files of learners: 5 was that with a state of format 4, and a journal
OLDEST = 3  # the oldest format that is read
LONGEST = 200  # characters of settings in an error
VERSION = "multiplay_learner"
# In a header, and before the names of arrays.
NEXT_ID = "next_id"  # in a header: an id after those of all plays
REPORTS, FEATURES, BELIEFS = "told/", "features/", "beliefs/"  # before the names of arrays
LIKE = "like"  # arms of other studies
KINDS = {"actions": ActionSet, "policy": Policy}


def record(engine: Engine) -> Record:
    """Return the state of a learner as one record; its plays and reports are in its journal.

    Stored names such as "days" and "hurried" belong to the format and stay as they are.
    """
    state, pending = engine.state, engine.pending
    actions, of_actions = pack(state.actions, "actions")
    policy, of_policy = pack(state.policy, "policy")
    groups = _stackable(pending)
    book, own = engine.constraints.promises, (state.usual, state.last)
    # Equal sets are one day: whether they are one object depends on the process.
    prepared = {
        book.digest(one): state.prepared(one, NO_LIMITS) for one in (*book.past, *book.ahead)
    }
    used = (*(play.round_set for play in pending.values()), *prepared.values())
    sets = list(dict.fromkeys([*own, *used]))
    number = {one: k for k, one in enumerate(sets)}
    header = {
        VERSION: FORMAT,
        "actions": actions,
        "policy": policy,
        "ranges": [state.ranges.noun, state.ranges.outside, state.ranges.by_name],
        "names": list(state.arms.names),
        "told": state.told,
        "missing": engine.missing,
        "clipped": engine.clipped,
        "log": None,
        "last": number[state.last],
        "pending": groups,
        "days_of": [[number[pending[id].round_set] for id in ids] for ids in groups],
        "keys_of": [[pending[id].key for id in ids] for ids in groups],
    }
    today = {str(id): play.today for id, play in pending.items() if play.today}
    if today:
        header["today"] = today
    arrays: Arrays = {"rng": state.rng.state}
    of_constraints, own_arrays = engine.constraints.record()
    header |= of_constraints
    arrays |= own_arrays
    if book:
        for name in ("past", "ahead"):
            of_plays = [prepared[book.digest(one)] for one in getattr(book, name)]
            header[PROMISES][name] = [number[one] for one in of_plays]
    if engine.words != engine.default_words:
        header["words"] = engine.words._asdict()
    header |= {"asked": engine.asked, **_history_of(pending)}
    if state.features is not None:
        header["features"], of_features = state.features.record()
        arrays |= with_prefix(FEATURES, of_features)
    if state.like is not None:
        arrays[LIKE] = state.like
    arrays |= with_prefix("actions/", of_actions) | with_prefix("policy/", of_policy)
    arrays |= with_prefix("state/", state.arms.arrays)
    arrays |= with_prefix("seen/", state.statistics.arrays())
    arrays |= with_prefix(BELIEFS, state.moments.own or {})
    header["days"], of_days = _days_record(sets, state)
    arrays |= of_days | _plays_record(pending, groups)
    for id, play in pending.items():
        if play.report is not None:
            arrays |= with_prefix(f"reports/{id}/", _report_record(play.report))
    return Record(header, arrays)


def _history_of(pending: Mapping[int, PendingState]) -> dict[str, Any]:
    """Return the fields of pending plays that the log of older files has."""
    cut = {id: play.gap for id, play in pending.items() if play.truncated}
    return {
        "since": {str(id): [p.asked, p.expected, p.digests.hex()] for id, p in pending.items()},
        "hurried": list(cut),
        "gaps": list(cut.values()),
    }


def _days_record(sets: list[RoundSet], state: PolicyState) -> tuple[list[Any], Arrays]:
    """Return sets of rounds as plain data and arrays; the first is the usual set."""
    days, arrays = list[Any](), dict[str, Any]()
    for k, one in enumerate(sets[1:], start=1):
        plain, of_set = (None, {}) if one.given is state.actions else pack(one.given, "actions")
        limits = {"at_most": one.limits.at_most, "fixed": one.limits.fixed}
        days.append([plain, limits | {"exclude": list(one.limits.exclude)}])
        arrays |= with_prefix(f"days/{k}/", of_set)
    return days, arrays


def days_of(days: list[Any], arrays: Arrays, state: PolicyState) -> list[RoundSet]:
    """Return the sets of ``_days_record``."""
    sets, builder = [state.usual], builder_of(state.actions)
    for k, (plain, limits) in enumerate(days, start=1):
        given = unpack(plain, without_prefix(f"days/{k}/", arrays), builder)
        of_plan = PlanLimits(limits["at_most"], tuple(limits["exclude"]), limits["fixed"])
        sets.append(state.prepared(state.actions if given is None else given, of_plan))
    return sets


def _plays_record(plays: Mapping[int, PendingState], groups: list[list[int]]) -> Arrays:
    """Return groups of plays as stacked arrays."""
    arrays: Arrays = {}
    for group, ids in enumerate(groups):
        some = [plays[id] for id in ids]
        arrays[f"plays/{group}/action"] = np.stack([play.action for play in some])
        phi = [play.phi for play in some if play.phi is not None]
        if phi:
            arrays[f"plays/{group}/phi"] = np.stack(phi)
        for name in some[0].memo:
            stacked = np.stack([play.memo[name] for play in some])
            arrays[f"plays/{group}/memo/{name}"] = stacked
    return arrays


def parts_of(
    record: Record, actions: ActionSet | None, policy: Policy | None
) -> tuple[Engine, PlayLog]:
    """Return the learner of a record; ``actions`` and ``policy`` replace those in it.

    Raises ``InvalidInput`` where one of them is needed or does not fit, ``ValueError`` where the
    record does not hold a learner.
    """
    header, arrays = record
    _check_format(header)
    try:
        rebuilt = rebuild("actions", record, actions), rebuild("policy", record, policy)
        engine, log = _parts(header, arrays, *rebuilt)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"incomplete: {error!r}") from None
    engine.state.arms.arrays = _checked_arrays(engine.state, without_prefix("state/", arrays))
    return engine, log


def is_older(header: Any) -> bool:
    """Return whether a header is of an older format, which lacks a part of the present state."""
    version = header.get(VERSION)
    counts = CHANGE not in header or CHANGED in header[CHANGE]
    return isinstance(version, int) and (version < FORMAT or not counts)


def _check_format(header: Any) -> None:
    """Raise an error unless the header is that of a learner in the format of this version."""
    if not isinstance(header, dict) or not isinstance(header.get(VERSION), int):
        raise ValueError("it does not hold a learner")
    if not OLDEST <= header[VERSION] <= FILE_FORMAT:
        newer = header[VERSION] > FILE_FORMAT
        raise InvalidInput(
            "path",
            f"a learner in format {OLDEST} to {FILE_FORMAT}",
            f"format {header[VERSION]}",
            "Update multiplay." if newer else "Save it again with multiplay 0.9.",
        )


def _parts(
    header: Any, arrays: Arrays, actions: ActionSet, policy: Policy
) -> tuple[Engine, PlayLog]:
    state = _state_of(header, arrays, actions, policy)
    sets = days_of(header["days"], arrays, state)
    state.last = sets[header["last"]]
    state.arms.warm_for = state.last.actions
    constraints = LearnerConstraints.restored(header, arrays, sets, builder_of())
    engine = Engine(state, header["missing"], constraints)
    engine.set_words(**header.get("words", {}))
    engine.clipped = header["clipped"]
    pending = _pending_of(header, arrays, sets)
    if header["log"] is None:
        log, engine.asked = PlayLog(), header["asked"]
        rows = [(int(id), *numbers) for id, numbers in header["since"].items()]
        since = {id: (asked, expected, bytes.fromhex(told)) for id, asked, expected, told in rows}
        truncated = truncated_of(header)
    else:
        log = PlayLog.of(header["log"], without_prefix("log/", arrays))
        engine.asked, line = len(log), {id: line for line, id in enumerate(log.ids())}
        order = sorted(pending, key=lambda id: line[id])
        since = {id: log.since(line[id]) for id in order}
        truncated = log.truncated
    engine.seed = header.get("seed")
    for id, (asked, expected, digests) in since.items():
        fields = {"asked": asked, "expected": expected, "digests": digests}
        fields["today"] = header.get("today", {}).get(str(id))
        fields |= {"truncated": id in truncated, "gap": truncated.get(id)}
        engine.pending[id] = pending[id]._replace(**fields)
    return engine, log


def _state_of(header: Any, arrays: Arrays, actions: ActionSet, policy: Policy) -> PolicyState:
    """Return the policy with its state, without the arrays of the policy."""
    noun, outside, by_name = header["ranges"]
    pairs = {name: tuple(pair) for name, pair in by_name.items()}
    ranges = Ranges(noun, pairs, outside, [name for name in pairs if name != OTHERS])
    table, of_features = None, without_prefix(FEATURES, arrays)
    if "features" in header:
        table = table_of(header["features"], of_features)
    rng, like = Streams(arrays["rng"]), arrays.get(LIKE)
    state = PolicyState(actions, policy, ranges, rng, True, table, like)
    state.arms.rename(header["names"])
    if state.features is not None:
        of_policy = without_prefix("state/", arrays)
        state.features.restore(header["features"], of_features, len(header["names"]), of_policy)
    state.statistics = ArmStatistics.of(without_prefix("seen/", arrays))
    state.told = header["told"]
    _restore_moments(state, header[VERSION], arrays)
    told = without_prefix(REPORTS, arrays)
    if policy.restarts:
        state.log = ReportLog.of(told) if told else ReportLog(state.told + 1)
    return state


def _pending_of(header: Any, arrays: Arrays, sets: list[RoundSet]) -> dict[int, PendingState]:
    """Return the pending plays by id, without what ``_history_of`` or the log has."""
    pending: dict[int, PendingState] = {}
    groups = zip(header["pending"], header["days_of"], header["keys_of"], strict=True)
    for group, (ids, numbers, keys) in enumerate(groups):
        plays, phi = _plays_of_group(group, arrays), arrays.get(f"plays/{group}/phi")
        for k, (id, number, key, play) in enumerate(zip(ids, numbers, keys, plays, strict=True)):
            report = _report_of(play.action[0], without_prefix(f"reports/{id}/", arrays))
            units, own = int(play.action.sum()), None if phi is None else phi[k]
            pending[id] = PendingState(play, sets[number], key, report, units=units, phi=own)
    return pending


def _restore_moments(state: PolicyState, version: int, arrays: Arrays) -> None:
    """Set the moments of the arms; format 3 has sums of losses and of their squares instead."""
    if version >= FORMAT:
        own, of_policy = (without_prefix(prefix, arrays) for prefix in (BELIEFS, "state/"))
        state.moments.restore(own, of_policy)
    elif version > OLDEST:
        state.moments.restore_older(without_prefix("moments/", arrays), state.told)
    else:
        units, total, squares = (arrays[f"seen/{name}"] for name in ("units", "total", "squares"))
        state.moments.restore_sums(units, total, squares, state.told)


def _checked_arrays(state: PolicyState, arrays: Arrays) -> Arrays:
    """Return the arrays of a state, if they fit the policy and all arms ever seen.

    A state that version 0.9 began does not count reports.
    """
    fresh, arms = state.policy.start(state.usual.actions, None, 1), len(state.arms.names)
    warm = state.policy.warm(state.actions)
    for name, array in fresh.items():
        shape = array.shape
        if name in warm:
            if state.last is not state.usual or name not in arrays:
                continue
        elif name in COUNTS and not counts_reports(arrays):
            continue
        elif array.ndim > 1 and state.policy.changing and name not in state.policy.shared:
            shape = (1, arms, *shape[2:])
        if name not in arrays or arrays[name].shape != shape:
            raise ValueError("it holds the state of a different policy")
    return arrays


def _report_record(report: Report) -> Arrays:
    """Return the reports of a play so far as arrays."""
    return {
        "slots": report.slots,
        "units": report.units,
        "of_totals": np.array(list(report.totals), dtype=np.int64),
        "totals": np.array(list(report.totals.values()), dtype=float),
        "excused": np.array(sorted(report.excused), dtype=np.int64),
        "others": np.array([report.gaps, report.clipped], dtype=np.int64),
        "round": np.array([] if report.round is None else [report.round]),
    }


def _report_of(count: IntArray, told: Arrays) -> Report | None:
    """Return the reports of ``_report_record``; None without any."""
    if not told:
        return None
    totals = dict(zip(told["of_totals"].tolist(), told["totals"].tolist(), strict=True))
    gaps, clipped = told["others"].tolist()
    excused, slots = frozenset(told["excused"].tolist()), told["slots"]
    round = told["round"][0] if len(told["round"]) else None
    rest = round, bool(gaps), clipped, excused
    return Report(count, slots, told["units"], totals, *rest).judged()


def _stackable(pending: Mapping[int, PendingState]) -> list[list[int]]:
    """Return groups of plays whose arrays can be stacked: one group for most policies."""
    groups: dict[Any, list[int]] = {}
    for id, play in pending.items():
        memo = [(name, array.dtype.str, array.shape) for name, array in play.memo.items()]
        phi = None if play.phi is None else play.phi.shape
        groups.setdefault((play.action.shape, phi, *memo), []).append(id)
    return list(groups.values())


def plays_by_place(
    groups: list[list[int]], arrays: Arrays
) -> Iterator[tuple[int, tuple[Play, FloatArray | None]]]:
    """Yield the plays of groups with their features, each after its place in them."""
    for group, places in enumerate(groups):
        phi = arrays.get(f"plays/{group}/phi")
        for k, (place, play) in enumerate(zip(places, _plays_of_group(group, arrays), strict=True)):
            yield place, (play, None if phi is None else phi[k])


def _plays_of_group(group: int, arrays: Arrays) -> list[Play]:
    action = arrays[f"plays/{group}/action"]
    memo = without_prefix(f"plays/{group}/memo/", arrays)
    rows = range(len(action))
    return [Play(action[k], {name: array[k] for name, array in memo.items()}) for k in rows]


# ------------------------------------------------------------ sets and policies


def rebuild(argument: str, record: Record, given: Any) -> Any:
    """Return the set or policy of a record; or the given one, if it has the same settings."""
    plain = completed(record.header[argument])
    arrays = without_prefix(f"{argument}/", record.arrays)
    if given is not None:
        if not _is_saved(given, argument, plain, arrays):
            saved, got = (
                shortened(str(one), LONGEST)
                for one in _differing(_readable(plain, arrays), describe(given))
            )
            expected = f"the saved settings, {saved}"
            raise InvalidInput(argument, expected, got, "Pass the same object again.")
        return given
    modules = (multiplay.actions, multiplay.policies)
    known = {name for module in modules for name in module.__all__} | CONTAINERS
    foreign = types_in(plain) - known
    if foreign:
        raise InvalidInput(
            argument,
            "a class of multiplay, or the object itself",
            ", ".join(sorted(foreign)),
            Hint("Pass the object again: {}.", Verb("Learner.load", f"path, {argument}=...")),
        )
    try:
        with stored_names():
            built = unpack(plain, arrays, builder_of())
        check_instance(argument, built, KINDS[argument], "a different file")
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return built


def _is_saved(given: Any, argument: str, plain: Any, arrays: Arrays) -> bool:
    """Return whether a set or policy has the saved settings; those not saved have defaults."""
    packed = pack(given, argument)
    if _same(packed, (plain, arrays)):
        return True
    try:
        rebuilt = unpack(plain, arrays, builder_of(given))
        return _same(packed, pack(rebuilt, argument))
    except ValueError:
        return False


def builder_of(*given: object) -> Builder:
    """Return a builder of all sets and policies of multiplay, and of the classes of ``given``."""
    foreign = {type_name(type(one)): type(one) for one in given}
    ours = classes_of(multiplay.actions, multiplay.constraints, multiplay.policies)
    return Builder(ours | foreign)


def _same(one: tuple[Any, Arrays], other: tuple[Any, Arrays]) -> bool:
    """Return whether packed objects are equal bit for bit, so that NaN equals NaN."""
    bits = [
        (
            json.dumps(comparable(plain)),
            {k: (v.dtype.str, v.shape, v.tobytes()) for k, v in arrays.items()},
        )
        for plain, arrays in (one, other)
    ]
    return bits[0] == bits[1]


def _differing(saved: Any, given: Any) -> tuple[Any, Any]:
    """Return the settings of two objects of one class that differ; otherwise both as they are."""
    if saved == given or saved.get("type") != given.get("type"):
        return saved, given
    names = [name for name in given if name not in saved or saved[name] != given[name]]
    return {name: saved.get(name) for name in names}, {name: given[name] for name in names}


def _readable(plain: Any, arrays: Arrays) -> Any:
    """Return a packed header with its arrays in it, as ``describe`` writes it."""
    if isinstance(plain, list):
        return [_readable(value, arrays) for value in plain]
    if not isinstance(plain, dict):
        return plain
    if plain.get("type") == "array":
        return describe(arrays.get(plain.get("name", "")))
    if plain.get("type") == "tuple":
        return _readable(plain["items"], arrays)
    return {key: _readable(value, arrays) for key, value in plain.items()}
