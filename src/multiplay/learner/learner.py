"""One learner, live: ask for a plan, tell what it cost, ask again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import multiplay.actions
import multiplay.policies
from multiplay.actions import ActionSet
from multiplay.atomic_files import write_whole
from multiplay.checks import check_instance, is_integer, is_list, is_number, unit_interval
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.policies import Play, Policy
from multiplay.policies.base import check_fits
from multiplay.serialization import UnknownType, describe, from_plain
from multiplay.streams import POLICY, Streams
from multiplay.types import Arrays, FloatArray, IntArray

FORMAT = 1


@dataclass(frozen=True)
class PendingPlay:
    """A play that waits for its losses.

    Attributes
    ----------
    id : int
        What to tell the losses to.
    action : array of shape (d,)
        How many units of each arm to play.
    plan : dict
        The same by the names of the arms.
    """

    id: int
    action: IntArray
    plan: dict[str, int]


class Learner:
    """Learn from every unit that was sent out: ``ask`` for a plan, ``tell`` its losses.

    Losses may come late and in any order; each play is told exactly once. What cannot be used is
    refused with an error, and then nothing has changed.

    Parameters
    ----------
    actions, policy
        What may be played, and how to learn. A ``GenLBINFV`` wants its own ``horizon`` here.
    seed
        Draws everything; the same seed and the same losses give the same plans.

    Examples
    --------
    >>> from multiplay import GenCTS, Learner, Transport
    >>> plans = Transport([2, 1], [1, 2], names=(["Lyon", "Lille"], ["north", "south"]))
    >>> learner = Learner(plans, GenCTS(), seed=7)
    >>> play = learner.ask()
    >>> play.plan["Lyon->north"] + play.plan["Lyon->south"]
    2
    >>> losses = {lane: [0.3] * trucks for lane, trucks in play.plan.items()}
    >>> learner.tell(play.id, losses)
    >>> learner.tell(play.id, losses)
    Traceback (most recent call last):
    ...
    multiplay.errors.InvalidInput: id: expected a play that waits for its losses, got 1, \
which was told already. Each play is told once.
    """

    def __init__(self, actions: ActionSet, policy: Policy, seed: int = 0) -> None:
        check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
        check_instance("policy", policy, Policy, "GenCTS()")
        check_fits(policy, actions, None, shows_units=True)  # who tells totals is refused there
        self.actions, self.policy = actions, policy
        self.rng = Streams.spawn(seed, POLICY, [0])
        self.state = policy.start(actions, None, 1)
        self.asked = 0
        self.pending: dict[int, Play] = {}

    def ask(self) -> PendingPlay:
        """Choose the next play."""
        play = self.policy.choose(self.actions, self.state, self.rng)
        self.asked += 1
        self.pending[self.asked] = play
        return self._pending_play(self.asked)

    def waiting(self) -> list[PendingPlay]:
        """Return the plays that wait for their losses, oldest first."""
        return [self._pending_play(id) for id in self.pending]

    def tell(self, id: int, losses: Mapping[str, Any] | Sequence[Any] | FloatArray) -> None:
        """Learn from the losses of a play.

        ``losses`` gives, for each arm, either a list with the loss of every unit or one number, the
        total of its units. By name, arms that were not played may be left out; otherwise one entry
        for each arm, in order. Every single loss is in [0, 1].
        """
        play = self._waiting(id)
        feedback = self._feedback(play.action[0], losses)
        self.policy.update(self.actions, self.state, play, feedback, self.rng)
        del self.pending[id]

    def save(self, path: str | Path) -> None:
        """Write everything to one file, from which ``load`` continues bit for bit."""
        header = {
            "multiplay_learner": FORMAT,
            "actions": describe(self.actions),
            "policy": describe(self.policy),
            "asked": self.asked,
            "pending": list(self.pending),
        }
        arrays: Arrays = {"header": np.array(json.dumps(header)), "rng": self.rng.state}
        arrays |= {f"state/{name}": array for name, array in self.state.items()}
        for id, play in self.pending.items():
            arrays[f"play/{id}/action"] = play.action
            arrays |= {f"play/{id}/memo/{name}": array for name, array in play.memo.items()}

        def write(draft: Path) -> None:
            with draft.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)

        write_whole(path, write)

    @classmethod
    def load(
        cls, path: str | Path, actions: ActionSet | None = None, policy: Policy | None = None
    ) -> Learner:
        """Continue from ``save``; classes that are not multiplay's own must be passed again."""
        header, arrays = _read(path)
        learner = cls.__new__(cls)
        learner.actions = _rebuild("actions", header, actions, path)
        learner.policy = _rebuild("policy", header, policy, path)
        learner.rng = Streams(arrays["rng"])
        learner.state = _below("state/", arrays)
        learner.asked = header["asked"]
        learner.pending = {
            id: Play(arrays[f"play/{id}/action"], _below(f"play/{id}/memo/", arrays))
            for id in header["pending"]
        }
        fresh = learner.policy.start(learner.actions, None, 1)
        if {k: v.shape for k, v in fresh.items()} != {k: v.shape for k, v in learner.state.items()}:
            raise _not_a_learner(path, "the state of another policy")
        return learner

    def _pending_play(self, id: int) -> PendingPlay:
        action = self.pending[id].action[0]
        return PendingPlay(
            id, action.copy(), dict(zip(self.actions.names, action.tolist(), strict=True))
        )

    def _waiting(self, id: int) -> Play:
        expected = "a play that waits for its losses"
        if is_integer(id) and id in self.pending:
            return self.pending[id]
        if is_integer(id) and 1 <= id <= self.asked:
            told = f"{id}, which was told already"
            raise InvalidInput("id", expected, told, "Each play is told once.")
        raise InvalidInput("id", expected, repr(id), "Use the id of a play that ask() gave.")

    def _feedback(self, action: IntArray, losses: Any) -> Feedback:
        """Check everything before anything is learned."""
        counts, total = action.tolist(), np.zeros(len(action))
        units: list[Any] = []
        per_unit = True
        for i, entry in enumerate(self._by_arm(losses)):
            if entry is None and counts[i] == 0:
                entry = ()
            elif hasattr(entry, "__array__"):
                entry = np.asarray(entry)
                entry = entry if entry.ndim else entry.item()
            if is_number(entry):
                total[i] = _total(self._losses_of(i), entry, counts[i])
                per_unit &= counts[i] == 0
                entry = ()
            elif not is_list(entry) or len(entry) != counts[i]:
                got = len(entry) if is_list(entry) else repr(entry)
                expected = f"a list of {counts[i]} losses, or their total"
                raise InvalidInput(
                    self._losses_of(i), expected, got, "Tell the loss of every unit."
                )
            units.append(entry)
        flat = self._in_unit_interval(units)
        arm = np.repeat(np.arange(len(action)), [len(entry) for entry in units])
        total += np.bincount(arm, weights=flat, minlength=len(action))
        if not per_unit:
            return Feedback(action[None], total[None])
        return Feedback(action[None], total[None], flat[None], np.append(0, np.cumsum(action)))

    def _losses_of(self, i: int) -> str:
        return f"losses of {self.actions.names[i]!r}"

    def _in_unit_interval(self, units: list[Any]) -> FloatArray:
        """Return all losses in one list, or name the arm with one that cannot be."""
        try:
            flat = unit_interval("losses", [loss for entry in units for loss in entry])
        except InvalidInput:
            for i, entry in enumerate(units):
                unit_interval(self._losses_of(i), entry)
            raise
        if flat.ndim > 1:
            raise InvalidInput("losses", "one number for each unit", "lists", "Flatten them.")
        return flat

    def _by_arm(self, losses: Any) -> list[Any]:
        names = self.actions.names
        if isinstance(losses, Mapping):
            unknown = losses.keys() - set(names)
            if unknown:
                raise InvalidInput(
                    "losses",
                    f"names such as {names[0]!r}",
                    repr(unknown.pop()),
                    "Check the spelling.",
                )
            return [losses.get(name) for name in names]
        if not is_list(losses):
            raise InvalidInput(
                "losses", "a dict by arm name, or a list", repr(losses), "See Learner.tell."
            )
        if len(losses) != len(names):
            raise InvalidInput(
                "losses",
                f"{len(names)} entries, one for each arm",
                f"{len(losses)}",
                "Give a list for each arm (empty where nothing was played), or totals.",
            )
        return list(losses)


def _total(argument: str, total: float, count: int) -> float:
    if not 0 <= total <= count:
        raise InvalidInput(
            argument,
            f"a total in [0, {count}] for {count} units with losses in [0, 1]",
            f"{total:g}",
            "Divide by the largest possible loss of a unit.",
        )
    return total


def _not_a_learner(path: str | Path, why: object) -> InvalidInput:
    return InvalidInput(
        "path", "a file written by Learner.save", f"{path} ({why})", "Use another copy of it."
    )


def _read(path: str | Path) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays, after making sure that nothing is missing."""
    if not Path(path).is_file():
        raise _not_a_learner(path, "no such file")
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive.items())
        header = json.loads(str(arrays.pop("header")))
        newer = header["multiplay_learner"] > FORMAT
        wanted = {"rng"} | {f"play/{id}/action" for id in header["pending"]}
        missing = wanted - arrays.keys() or {"actions", "policy", "asked"} - header.keys()
    except Exception as error:  # whatever a damaged archive makes of itself
        raise _not_a_learner(path, error) from None
    if newer:
        found = header["multiplay_learner"]
        raise InvalidInput("path", f"format {FORMAT} or older", f"{found}", "Update multiplay.")
    if missing:
        raise _not_a_learner(path, f"without {missing.pop()}")
    return header, arrays


def _rebuild(argument: str, header: dict[str, Any], given: Any, path: str | Path) -> Any:
    plain = header[argument]
    if given is not None:
        if describe(given) != plain:
            raise InvalidInput(
                argument, f"what was saved, {plain}", f"{describe(given)}", "Pass the same again."
            )
        return given
    try:
        return from_plain(plain, (multiplay.actions, multiplay.policies))
    except UnknownType as unknown:
        raise InvalidInput(
            argument,
            "a class of multiplay, or the object itself",
            f"{unknown}",
            f"Pass your own: Learner.load(path, {argument}=...).",
        ) from None
    except (InvalidInput, TypeError) as error:
        raise _not_a_learner(path, error) from None


def _below(prefix: str, arrays: Arrays) -> Arrays:
    return {k.removeprefix(prefix): array for k, array in arrays.items() if k.startswith(prefix)}
