"""A learner as one record, and back."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import multiplay.actions
import multiplay.policies
from multiplay._support.builder import Builder, classes_of
from multiplay._support.checks import check_instance, shortened
from multiplay._support.serialization import CONTAINERS, describe, pack, type_name, types_in, unpack
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.learner.beliefs import Mind
from multiplay.learner.engine import Core
from multiplay.learner.plays import TOLD, PendingState, PlayLog
from multiplay.learner.ranges import OTHERS, Ranges
from multiplay.learner.reports import Report
from multiplay.learner.round_set import Limits, Today
from multiplay.learner.statistics import Seen
from multiplay.policies import Play, Policy
from multiplay.random import Streams
from multiplay.storage import Record
from multiplay.types import Arrays, IntArray

FORMAT = 3
LONGEST = 200  # letters of settings in an error
VERSION = "multiplay_learner"
NEWER = ("count", "sum")  # of Hybrid and FPLIX: not in files that are older than these
KINDS = {"actions": ActionSet, "policy": Policy}


def record(core: Core, log: PlayLog | None) -> Record:
    """Return a learner in one record; without a log, if that is kept elsewhere."""
    mind, pending = core.mind, core.pending
    actions, of_actions = pack(mind.actions, "actions")
    policy, of_policy = pack(mind.policy, "policy")
    alike = _alike(pending)
    days = list(dict.fromkeys([mind.usual, mind.last, *(play.today for play in pending.values())]))
    number = {day: k for k, day in enumerate(days)}
    log_header, of_log = (None, {}) if log is None else log.record()
    header = {
        VERSION: FORMAT,
        "actions": actions,
        "policy": policy,
        "ranges": [mind.ranges.argument, mind.ranges.outside, mind.ranges.by_name],
        "names": list(mind.roster.names),
        "told": mind.told,
        "missing": core.missing,
        "clipped": core.clipped,
        "log": log_header,
        "last": number[mind.last],
        "pending": alike,
        "days_of": [[number[pending[id].today] for id in ids] for ids in alike],
        "keys_of": [[pending[id].key for id in ids] for ids in alike],
    }
    if log is None:
        header["asked"] = core.asked
        since = {str(id): [p.asked, p.expected, p.digests.hex()] for id, p in pending.items()}
        header["since"] = since
        header["hurried"] = [id for id, play in pending.items() if play.truncated]
    arrays: Arrays = {"rng": mind.rng.state}
    arrays |= _under("actions", of_actions) | _under("policy", of_policy)
    arrays |= _under("state", mind.roster.state) | _under("seen", mind.seen.arrays())
    arrays |= _under("log", of_log)
    header["days"] = []
    for k, day in enumerate(days[1:], start=1):  # the first is the usual one
        plain, of_day = (None, {}) if day.given is mind.actions else pack(day.given, "actions")
        limits = {"at_most": day.limits.at_most, "fixed": day.limits.fixed}
        header["days"].append([plain, limits | {"exclude": list(day.limits.exclude)}])
        arrays |= _under(f"days/{k}", of_day)
    for group, ids in enumerate(alike):
        plays = [pending[id] for id in ids]
        arrays[f"plays/{group}/action"] = np.stack([play.action for play in plays])
        for name in plays[0].memo:
            stacked = np.stack([play.memo[name] for play in plays])
            arrays[f"plays/{group}/memo/{name}"] = stacked
    for id, play in pending.items():
        if play.report is not None:
            report = play.report
            told = {"slots": report.slots, "units": report.units}
            told["of_totals"] = np.array(list(report.totals), dtype=np.int64)
            told["totals"] = np.array(list(report.totals.values()), dtype=float)
            told["excused"] = np.array(sorted(report.excused), dtype=np.int64)
            told["others"] = np.array([report.gaps, report.clipped], dtype=np.int64)
            told["round"] = np.array([] if report.round is None else [report.round])
            arrays |= _under(f"reports/{id}", told)
    return Record(header, arrays)


def parts_of(
    record: Record, actions: ActionSet | None, policy: Policy | None
) -> tuple[Core, PlayLog]:
    """Return what was in a record; ``actions`` and ``policy`` stand for those in it.

    Raises ``InvalidInput`` where one of them is needed or does not fit, ``ValueError`` where the
    record is no learner.
    """
    header, arrays = record
    if not isinstance(header, dict) or not isinstance(header.get(VERSION), int):
        raise ValueError("no learner is in it")
    if header[VERSION] > FORMAT:
        got = f"format {header[VERSION]}"
        raise InvalidInput("path", f"format {FORMAT} or older", got, "Update multiplay.")
    try:
        rebuilt = rebuild("actions", record, actions), rebuild("policy", record, policy)
        core, log = (_parts if header[VERSION] >= 3 else _parts_of_old)(header, arrays, *rebuilt)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"incomplete: {error!r}") from None
    core.mind.roster.state = _fitting(core.mind, _below("state/", arrays))
    return core, log


def _parts(header: Any, arrays: Arrays, actions: ActionSet, policy: Policy) -> tuple[Core, PlayLog]:
    argument, outside, by_name = header["ranges"]
    pairs = {name: tuple(pair) for name, pair in by_name.items()}
    ranges = Ranges(argument, pairs, outside, [name for name in pairs if name != OTHERS])
    mind = Mind(actions, policy, ranges, Streams(arrays["rng"]), restored=True)
    mind.roster.rename(header["names"])
    mind.seen, mind.told = Seen.of(_below("seen/", arrays)), header["told"]
    days = [mind.usual]
    builder = builder_of(actions)
    for k, (plain, limits) in enumerate(header["days"], start=1):
        given = unpack(plain, _below(f"days/{k}/", arrays), builder)
        wanted = Limits(limits["at_most"], tuple(limits["exclude"]), limits["fixed"])
        days.append(Today.of(actions if given is None else given, wanted, ranges, policy))
    mind.last = days[header["last"]]
    mind.roster.warm_for = mind.last.actions
    pending: dict[int, PendingState] = {}
    groups = zip(header["pending"], header["days_of"], header["keys_of"], strict=True)
    for group, (ids, of_day, keys) in enumerate(groups):
        plays = _plays_of_group(group, arrays)
        for id, day, key, play in zip(ids, of_day, keys, plays, strict=True):
            report = _report(play.action[0], _below(f"reports/{id}/", arrays))
            units = int(play.action.sum())
            pending[id] = PendingState(play, days[day], key, report, units=units)
    core = Core(mind, header["missing"])
    core.clipped = header["clipped"]
    if header["log"] is None:
        log, core.asked = PlayLog(), header["asked"]
        rows = [(int(id), *numbers) for id, numbers in header["since"].items()]
        since = {id: (asked, expected, bytes.fromhex(told)) for id, asked, expected, told in rows}
        truncated = set(header.get("hurried", ()))
    else:
        log = PlayLog.of(header["log"], _below("log/", arrays))
        core.asked, line = len(log), {id: line for line, id in enumerate(log.ids())}
        order = sorted(pending, key=lambda id: line[id])
        since = {id: log.since(line[id]) for id in order}
        truncated = log.truncated
    for id, (asked, expected, digests) in since.items():
        waits = {"asked": asked, "expected": expected, "digests": digests}
        core.pending[id] = pending[id]._replace(**waits, truncated=id in truncated)
    return core, log


def _parts_of_old(
    header: Any, arrays: Arrays, actions: ActionSet, policy: Policy
) -> tuple[Core, PlayLog]:
    """Formats 1 and 2: one set, losses in [0, 1], and no log of the plays."""
    ranges = Ranges.chosen(None, None, "refuse", actions)
    mind = Mind(actions, policy, ranges, Streams(arrays["rng"]), restored=True)
    if header[VERSION] == 1:
        plays = _plays_of_format_1(header["pending"], arrays)
    else:
        groups = enumerate(header["pending"])
        pairs = [zip(ids, _plays_of_group(k, arrays), strict=True) for k, ids in groups]
        plays = dict(sorted(pair for group in pairs for pair in group))
    log = PlayLog()
    for id in range(1, header["asked"] + 1):
        units = int(plays[id].action.sum()) if id in plays else 0
        log.ask(math.nan, actions.names, units, math.nan)
        if id not in plays:
            log.end(id - 1, TOLD)
    mind.told = header["asked"] - len(plays)
    core = Core(mind)
    core.asked = len(log)
    for id, play in plays.items():
        core.pending[id] = PendingState(play, mind.usual, units=int(play.action.sum()))
    return core, log


def _fitting(mind: Mind, state: Arrays) -> Arrays:
    """Return a state, if it is one of the policy over all arms that were met."""
    fresh, arms = mind.policy.start(mind.actions, None, 1), len(mind.roster.names)
    warm = mind.policy.warm(mind.actions)
    for name, array in fresh.items():
        shape = array.shape
        if name in warm:
            if mind.last is not mind.usual or name not in state:
                continue
        elif array.ndim > 1 and mind.policy.changing:
            shape = (1, arms, *shape[2:])
        if name not in state and name in NEWER:
            state[name] = np.zeros(shape)
        if name not in state or state[name].shape != shape:
            raise ValueError("the state of another policy is in it")
    return state


def _report(count: IntArray, told: Arrays) -> Report | None:
    if not told:
        return None
    totals = dict(zip(told["of_totals"].tolist(), told["totals"].tolist(), strict=True))
    gaps, clipped = told["others"].tolist()
    excused, slots = frozenset(told["excused"].tolist()), told["slots"]
    round = told["round"][0] if len(told["round"]) else None
    rest = round, bool(gaps), clipped, excused
    return Report(count, slots, told["units"], totals, *rest).judged()


def _alike(pending: Mapping[int, PendingState]) -> list[list[int]]:
    """Group the plays whose arrays can be stacked: all, unless a policy makes exceptions."""
    groups: dict[Any, list[int]] = {}
    for id, play in pending.items():
        memo = [(name, array.dtype.str, array.shape) for name, array in play.memo.items()]
        groups.setdefault((play.action.shape, *memo), []).append(id)
    return list(groups.values())


def _plays_of_group(group: int, arrays: Arrays) -> list[Play]:
    action = arrays[f"plays/{group}/action"]
    memo = _below(f"plays/{group}/memo/", arrays)
    rows = range(len(action))
    return [Play(action[k], {name: array[k] for name, array in memo.items()}) for k in rows]


def _plays_of_format_1(ids: Iterable[int], arrays: Arrays) -> dict[int, Play]:
    """Each play had arrays of its own, by the number of the play."""
    memos: dict[str, Arrays] = {}
    for name, array in arrays.items():
        kind, _, rest = name.partition("/")
        id, _, rest = rest.partition("/memo/")
        if kind == "play" and rest:
            memos.setdefault(id, {})[rest] = array
    return {id: Play(arrays[f"play/{id}/action"], memos.get(str(id), {})) for id in ids}


def rebuild(argument: str, record: Record, given: Any) -> Any:
    """Return the set or the policy of a record; or the one that is given, if it is the same."""
    plain, old = record.header[argument], record.header[VERSION] < 2
    arrays = _below(f"{argument}/", record.arrays)
    if given is not None:
        if not _is_saved(argument, record, given):
            expected = f"what was saved, {shortened(str(_readable(plain, arrays)), LONGEST)}"
            got = shortened(str(describe(given)), LONGEST)
            raise InvalidInput(argument, expected, got, "Pass the same object again.")
        return given
    modules = (multiplay.actions, multiplay.policies)
    ours = {name for module in modules for name in module.__all__}
    foreign = types_in(plain) - ours - (set() if old else CONTAINERS)
    if foreign:
        left_out = "a large array, which old files leave out"
        raise InvalidInput(
            argument,
            "a class of multiplay, or the object itself",
            ", ".join(left_out if name == "array" else name for name in sorted(foreign)),
            f"Pass the object again: Learner.load(path, {argument}=...).",
        )
    builder = builder_of()
    try:
        built = builder.build(argument, plain) if old else unpack(plain, arrays, builder)
        check_instance(argument, built, KINDS[argument], "another file")
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return built


def _is_saved(argument: str, record: Record, given: Any) -> bool:
    """Say whether a set or policy is that of a record; settings newer than it have defaults."""
    plain, arrays = record.header[argument], _below(f"{argument}/", record.arrays)
    packed = pack(given, argument)
    if describe(given) == plain if record.header[VERSION] < 2 else _same(packed, (plain, arrays)):
        return True
    try:
        return _same(packed, pack(rebuild(argument, record, None), argument))
    except ValueError:
        return False


def builder_of(*others: object) -> Builder:
    """Return a builder of all sets and policies of multiplay, and of the classes of others."""
    foreign = {type_name(type(other)): type(other) for other in others}
    return Builder(classes_of(multiplay.actions, multiplay.policies) | foreign)


def _same(one: tuple[Any, Arrays], other: tuple[Any, Arrays]) -> bool:
    """Compare bit for bit, so that NaN is NaN."""
    bits = [
        (json.dumps(plain), {k: (v.dtype.str, v.shape, v.tobytes()) for k, v in arrays.items()})
        for plain, arrays in (one, other)
    ]
    return bits[0] == bits[1]


def _readable(plain: Any, arrays: Arrays) -> Any:
    """Return a packed header with its arrays in it, as ``describe`` would write it."""
    if isinstance(plain, list):
        return [_readable(value, arrays) for value in plain]
    if not isinstance(plain, dict):
        return plain
    if plain.get("type") == "array":
        return describe(arrays.get(plain.get("name", "")))
    if plain.get("type") == "tuple":
        return _readable(plain["items"], arrays)
    return {key: _readable(value, arrays) for key, value in plain.items()}


def _under(place: str, arrays: Arrays) -> Arrays:
    return {f"{place}/{name}": array for name, array in arrays.items()}


def _below(prefix: str, arrays: Arrays) -> Arrays:
    return {k.removeprefix(prefix): array for k, array in arrays.items() if k.startswith(prefix)}
