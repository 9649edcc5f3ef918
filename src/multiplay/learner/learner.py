"""One learner, live: ask for a plan, tell what it cost, ask again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multiplay.actions import ActionSet
from multiplay.atomic_files import as_path, remove_stale_drafts
from multiplay.checks import check_instance, is_integer
from multiplay.errors import InvalidInput
from multiplay.learner.losses import feedback_of
from multiplay.learner.snapshot import Snapshot, check_storable
from multiplay.policies import Play, Policy
from multiplay.policies.base import check_fits, shown
from multiplay.policies.feasible import check_play
from multiplay.storage.folder import read_record, write_record
from multiplay.streams import POLICY, Streams
from multiplay.types import FloatArray, IntArray


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
        What may be played, and how to learn. A ``GenLBINFV`` wants its own ``horizon`` here. What
        ``save`` could not keep, a function say, is refused here already.
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
which was told already. Tell each play once.
    """

    def __init__(self, actions: ActionSet, policy: Policy, seed: int = 0) -> None:
        check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
        check_instance("policy", policy, Policy, "GenCTS()")
        check_fits(policy, actions, None, shows_units=True)  # who tells totals is refused there
        check_storable(actions, policy)
        self.actions, self.policy = actions, policy
        self.rng = Streams.spawn(seed, POLICY, [0])
        self.state = policy.start(actions, None, 1)
        self.asked = 0
        self.pending: dict[int, Play] = {}
        self._restored = False

    def ask(self) -> PendingPlay:
        """Choose the next play."""
        play = self.policy.choose(self.actions, self.state, self.rng)
        when = f"play {self.asked + 1}"
        check_play(self.policy, self.actions, play, 1, when, restored=self._restored)
        self.state |= play.cache  # makes the next choice faster, and no more
        self.asked += 1
        self.pending[self.asked] = Play(play.action, play.memo)
        return self._pending_play(self.asked)

    def waiting(self) -> list[PendingPlay]:
        """Return the plays that wait for their losses, oldest first."""
        return [self._pending_play(id) for id in self.pending]

    def tell(self, id: int, losses: Mapping[str, Any] | Sequence[Any] | FloatArray | float) -> None:
        """Learn from the losses of a play.

        ``losses`` gives, for each arm, either a list with the loss of every unit or one number, the
        total of its units. By name, arms that were not played may be left out; otherwise one entry
        for each arm, in order; a pandas Series is taken by its index. Every single loss is in
        [0, 1]; a total may miss its range by rounding.

        A policy that learns from the round, such as ``LinTS``, may be told one number: the total of
        all units. It is shown no more than that, whatever was told.
        """
        play = self._waiting(id)
        feedback = feedback_of(play.action[0], losses, self.actions.names, self.policy)
        self.policy.update(self.actions, self.state, play, shown(self.policy, feedback), self.rng)
        del self.pending[id]

    def save(self, path: str | Path) -> None:
        """Write everything to one file, from which ``load`` continues bit for bit."""
        snapshot = Snapshot(
            self.actions, self.policy, self.rng, self.state, self.asked, self.pending
        )
        write_record(path, snapshot.record())

    @classmethod
    def load(
        cls, path: str | Path, actions: ActionSet | None = None, policy: Policy | None = None
    ) -> Learner:
        """Continue from ``save``; classes that are not multiplay's own must be passed again."""
        place = as_path("path", path)
        remove_stale_drafts(place.parent)
        record = read_record(place)
        try:
            snapshot = Snapshot.of(record, actions, policy)
        except InvalidInput:
            raise
        except ValueError as error:
            raise InvalidInput(
                "path",
                "a file written by Learner.save",
                f"{path} ({error})",
                "The file is damaged, or another one: restore a backup.",
            ) from None
        learner = cls.__new__(cls)
        learner.actions, learner.policy, learner.rng = snapshot[:3]
        learner.state, learner.asked, learner.pending = snapshot[3:]
        learner._restored = True
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
            raise InvalidInput("id", expected, told, "Tell each play once.")
        raise InvalidInput("id", expected, repr(id), "Use the id of a play that ask() gave.")
