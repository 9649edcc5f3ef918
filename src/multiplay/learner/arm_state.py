"""The arms that a learner knows, by name, and what its policy knows of them."""

from collections.abc import Iterable, Sequence

import numpy as np

from multiplay.actions import ActionSet
from multiplay.policies import Policy
from multiplay.policies.base import drop_warm_start
from multiplay.types import Arrays, FloatArray, IntArray


class Roster:
    """The state of a policy over all arms ever met; a round reads and writes that of its own arms.

    Arrays with the arms on their second axis are cut and put back by name. A warm start belongs to
    one set, and is dropped when another one comes.
    """

    def __init__(self, policy: Policy, actions: ActionSet) -> None:
        self.policy = policy
        self.state = policy.start(actions, None, 1)
        self.warm_for = actions
        self.rename(actions.names)

    def rename(self, names: Sequence[str]) -> None:
        """Say which arms the state has, in order."""
        self.names = tuple(names)
        self.number = {name: i for i, name in enumerate(self.names)}

    def places(self, names: Sequence[str]) -> IntArray | None:
        """Return the places of these arms; None if they are all arms, in order."""
        if names is self.names or tuple(names) == self.names:
            return None
        return np.array([self.number[name] for name in names], dtype=np.int64)

    def newcomers(self, names: Iterable[str]) -> list[str]:
        """Return the names that were never met."""
        return [name for name in names if name not in self.number]

    def add(self, actions: ActionSet, rounds: int, offset: FloatArray) -> None:
        """Add the arms of a set that are new: they begin as ``start`` begins.

        Then the ``rounds`` that were told pass for them, in which nobody could play them. So a
        learner that knew the arm all along knows the same. ``offset`` is that of the set's arms.
        """
        new = self.newcomers(actions.names)
        at = np.array([i for i, name in enumerate(actions.names) if name not in self.number])
        fresh = self.policy.start(actions, None, 1)
        by_arm = self._by_arm(self.warm_for)
        rows = fresh | {name: fresh[name][:, at] for name in by_arm}
        self.policy.absent(rows, rounds, offset[at])
        for name in by_arm:
            self.state[name] = np.concatenate([self.state[name], rows[name]], axis=1)
        self.rename((*self.names, *new))

    def enter(self, actions: ActionSet) -> None:
        """Drop the warm start if it belongs to another set."""
        if actions is not self.warm_for:
            drop_warm_start(self.policy, self.state, self.warm_for)
            self.warm_for = actions

    def cut(self, places: IntArray | None) -> Arrays:
        """Return the state of the arms at these places; the state itself if they are all."""
        if places is None:
            return self.state
        by_arm = self._by_arm(self.warm_for)
        return self.state | {name: self.state[name][:, places] for name in by_arm}

    def put_back(self, places: IntArray | None, part: Arrays) -> None:
        """Take what became of a cut state."""
        if places is None:
            return
        by_arm = self._by_arm(self.warm_for)
        for name in by_arm:
            self.state[name][:, places] = part[name]
        self.state |= {name: array for name, array in part.items() if name not in by_arm}

    def pass_by(self, places: IntArray | None, offset: FloatArray) -> None:
        """Let a round pass for all arms but these; ``offset`` is that of all arms."""
        if places is None:
            return
        others = np.delete(np.arange(len(self.names)), places)
        if len(others):
            part = {name: array.copy() for name, array in self.cut(others).items()}
            self.policy.absent(part, 1, offset[others])
            for name in self._by_arm(self.warm_for):
                self.state[name][:, others] = part[name]

    def _by_arm(self, actions: ActionSet) -> list[str]:
        """Name the arrays with the arms on their second axis."""
        warm = self.policy.warm(actions)
        return [name for name, array in self.state.items() if array.ndim > 1 and name not in warm]
