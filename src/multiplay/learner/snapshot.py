"""A learner as one record, and back."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

import multiplay.actions
import multiplay.policies
from multiplay.actions import ActionSet
from multiplay.builder import Builder, classes_of
from multiplay.checks import check_instance, shortened
from multiplay.errors import InvalidInput
from multiplay.policies import Play, Policy
from multiplay.serialization import CONTAINERS, describe, pack, types_in, unpack
from multiplay.storage import Record
from multiplay.streams import Streams
from multiplay.types import Arrays

FORMAT = 2
LONGEST = 200  # letters of settings in an error
VERSION = "multiplay_learner"
KINDS = {"actions": ActionSet, "policy": Policy}


class Snapshot(NamedTuple):
    """Everything that a learner holds."""

    actions: ActionSet
    policy: Policy
    rng: Streams
    state: Arrays
    asked: int
    pending: dict[int, Play]

    def record(self) -> Record:
        """Return all of it in one record."""
        actions, of_actions = pack(self.actions, "actions")
        policy, of_policy = pack(self.policy, "policy")
        alike = _alike(self.pending)
        header = {
            VERSION: FORMAT,
            "actions": actions,
            "policy": policy,
            "asked": self.asked,
            "pending": alike,
        }
        arrays: Arrays = {"rng": self.rng.state}
        arrays |= _under("actions", of_actions) | _under("policy", of_policy)
        arrays |= _under("state", self.state)
        for number, ids in enumerate(alike):
            plays = [self.pending[id] for id in ids]
            arrays[f"plays/{number}/action"] = np.stack([play.action for play in plays])
            for name in plays[0].memo:
                stacked = np.stack([play.memo[name] for play in plays])
                arrays[f"plays/{number}/memo/{name}"] = stacked
        return Record(header, arrays)

    @classmethod
    def of(cls, record: Record, actions: ActionSet | None, policy: Policy | None) -> "Snapshot":
        """Return what was in a record; ``actions`` and ``policy`` stand for those in it.

        Raises ``InvalidInput`` where one of them is needed or does not fit, ``ValueError`` where
        the record is no learner.
        """
        header, arrays = record
        if not isinstance(header, dict) or not isinstance(header.get(VERSION), int):
            raise ValueError("no learner is in it")
        if header[VERSION] > FORMAT:
            got = f"format {header[VERSION]}"
            raise InvalidInput("path", f"format {FORMAT} or older", got, "Update multiplay.")
        plays = _plays if header[VERSION] == FORMAT else _plays_of_format_1
        try:
            snapshot = cls(
                _rebuild("actions", record, actions),
                _rebuild("policy", record, policy),
                Streams(arrays["rng"]),
                _below("state/", arrays),
                header["asked"],
                plays(header["pending"], arrays),
            )
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"incomplete: {error!r}") from None
        fresh = snapshot.policy.start(snapshot.actions, None, 1)
        shapes = {name: array.shape for name, array in snapshot.state.items()}
        if any(shapes.get(name) != array.shape for name, array in fresh.items()):
            raise ValueError("the state of another policy is in it")
        return snapshot


def check_storable(actions: ActionSet, policy: Policy) -> None:
    """Raise ``InvalidInput`` if a learner of these could not be saved."""
    pack(actions, "actions")
    pack(policy, "policy")


def _alike(pending: dict[int, Play]) -> list[list[int]]:
    """Group the plays whose arrays can be stacked: all, unless a policy makes exceptions."""
    groups: dict[Any, list[int]] = {}
    for id, play in pending.items():
        memo = [(name, array.dtype.str, array.shape) for name, array in play.memo.items()]
        groups.setdefault((play.action.shape, *memo), []).append(id)
    return list(groups.values())


def _plays(alike: list[list[int]], arrays: Arrays) -> dict[int, Play]:
    found = {}
    for number, ids in enumerate(alike):
        action = arrays[f"plays/{number}/action"]
        memo = _below(f"plays/{number}/memo/", arrays)
        for row, id in zip(range(len(action)), ids, strict=True):
            found[id] = Play(action[row], {name: array[row] for name, array in memo.items()})
    return dict(sorted(found.items()))


def _plays_of_format_1(ids: Iterable[int], arrays: Arrays) -> dict[int, Play]:
    """Each play had arrays of its own, by the number of the play."""
    memos: dict[str, Arrays] = {}
    for name, array in arrays.items():
        kind, _, rest = name.partition("/")
        id, _, rest = rest.partition("/memo/")
        if kind == "play" and rest:
            memos.setdefault(id, {})[rest] = array
    return {id: Play(arrays[f"play/{id}/action"], memos.get(str(id), {})) for id in ids}


def _rebuild(argument: str, record: Record, given: Any) -> Any:
    plain, old = record.header[argument], record.header[VERSION] < FORMAT
    arrays = _below(f"{argument}/", record.arrays)
    if given is not None:
        same = describe(given) == plain if old else _same(pack(given, argument), (plain, arrays))
        if not same:
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
    builder = Builder(classes_of(*modules))
    try:
        built = builder.build(argument, plain) if old else unpack(plain, arrays, builder)
        check_instance(argument, built, KINDS[argument], "another file")
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return built


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
