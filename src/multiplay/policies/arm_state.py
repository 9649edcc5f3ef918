"""State of a policy over all arms ever seen, by arm name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multiplay.actions import ActionSet
from multiplay.kernels.moments import MEAN
from multiplay.policies.base import Policy, drop_warm_start
from multiplay.posteriors.like import recentred
from multiplay.posteriors.memories import MOMENTS
from multiplay.posteriors.pooled import OTHERS
from multiplay.types import Arrays, FloatArray, IntArray

ALL = slice(None)


class ArmState:
    """The state of a policy over all arms ever seen, by arm name.

    A round reads and writes the state of its own arms: arrays with the arms on their second axis
    are cut and put back by name. A warm start belongs to one set, and is dropped when the set
    changes.

    Attributes
    ----------
    offset_of : function
        Returns what a unit of each named arm is known to lose beside what is learned.
    arrays : dict
        The state of the policy.
    names, index
        The names of all arms in order, and the place of each name.
    warm_for : ActionSet
        The set that the warm start belongs to.
    like : array of shape (k, 10) or None
        Moments of arms of other studies, which teach a policy that pools arms.
    """

    like: FloatArray | None = None

    def __init__(
        self,
        policy: Policy,
        actions: ActionSet,
        offset_of: Callable[[Sequence[str]], FloatArray],
        trials: int = 1,
    ) -> None:
        self.policy, self.offset_of, self.trials = policy, offset_of, trials
        self.arrays = policy.start(actions, None, trials)
        self.warm_for = actions
        self.rename(actions.names)

    def rename(self, names: Sequence[str]) -> None:
        """Set the names of the arms of the state, in order."""
        self.names = tuple(names)
        self.index = {name: i for i, name in enumerate(self.names)}

    def places(self, names: Sequence[str]) -> IntArray | None:
        """Return the places of these arms; None if they are all arms in order."""
        if names is self.names or tuple(names) == self.names:
            return None
        return np.array([self.index[name] for name in names], dtype=np.int64)

    def new_names(self, names: Iterable[str]) -> list[str]:
        """Return the names that are not in the state yet."""
        return [name for name in names if name not in self.index]

    def add(self, actions: ActionSet, rounds: int) -> None:
        """Add the new arms of a set, with the state that ``start`` gives them.

        Then the past ``rounds`` are applied as rounds without these arms, so that the state is that
        of a learner that had the arms from the beginning.
        """
        new = self.new_names(actions.names)
        at = np.array([i for i, name in enumerate(actions.names) if name not in self.index])
        fresh = self.policy.start(actions, None, self.trials)
        by_arm = self._by_arm(self.warm_for)
        rows = fresh | {name: fresh[name].take(at, axis=1) for name in by_arm}
        self.policy.absent(rows, rounds, self.offset_of(new))
        for name in by_arm:
            known, more = self.arrays[name], rows[name]
            if known.ndim > 2:  # units of which nothing is known yet have zeros
                known, more = (
                    _with_units(one, max(known.shape[2], more.shape[2])) for one in (known, more)
                )
            self.arrays[name] = np.concatenate([known, more], axis=1)
        self.rename((*self.names, *new))

    def begin_round(self, actions: ActionSet) -> None:
        """Drop the warm start if it belongs to a different set."""
        if actions is not self.warm_for:
            drop_warm_start(self.policy, self.arrays, self.warm_for)
            self.warm_for = actions

    def cut(self, places: IntArray | None) -> Arrays:
        """Return the state of the arms at these places; the state itself if they are all."""
        if places is None:
            return self.arrays
        by_arm = self._by_arm(self.warm_for)
        return self.arrays | {name: self.arrays[name].take(places, axis=1) for name in by_arm}

    def to_choose(self, places: IntArray | None) -> Arrays:
        """Return the state by which a plan of these arms is chosen: with what other arms teach."""
        part = self.cut(places)
        if not self.policy.pools or (places is None and self.like is None):
            return part
        absent = np.delete(np.arange(len(self.names)), ALL if places is None else places)
        offset = self.offset_of([self.names[place] for place in absent])
        taught = self.policy.taught(self.cut(absent), offset)
        if self.like is not None:
            rows = recentred(self.like, self.arrays[MOMENTS][0])
            rows[:, MEAN] += self.offset_of([""])  # of ranges that are alike
            known = np.broadcast_to(rows, (self.trials, *rows.shape))
            taught[OTHERS] = np.concatenate([taught[OTHERS], known], axis=1)
        return part | taught

    def put_back(self, places: IntArray | None, part: Arrays) -> None:
        """Store a cut state after a round."""
        if places is None:
            return
        by_arm = self._by_arm(self.warm_for)
        for name in by_arm:
            self.arrays[name][:, places] = part[name]
        self.arrays |= {name: array for name, array in part.items() if name not in by_arm}

    def skip_round(self, places: IntArray | None) -> None:
        """Apply a round to the arms that are absent from it."""
        if places is None:
            return
        absent = np.delete(np.arange(len(self.names)), places)
        if len(absent):
            part = {name: array.copy() for name, array in self.cut(absent).items()}
            offset = self.offset_of([self.names[place] for place in absent])
            self.policy.absent(part, 1, offset)
            for name in self._by_arm(self.warm_for):
                self.arrays[name][:, absent] = part[name]
            shared = (name for name in self.policy.shared if name in part)
            self.arrays |= {name: part[name] for name in shared}

    def _by_arm(self, actions: ActionSet) -> list[str]:
        """Return the names of the arrays with the arms on their second axis."""
        others = {*self.policy.warm(actions), *self.policy.shared}
        return [
            name for name, array in self.arrays.items() if array.ndim > 1 and name not in others
        ]


def _with_units(array: NDArray[Any], units: int) -> NDArray[Any]:
    """Return an array with zeros added on its third axis, up to so many entries."""
    missing = units - array.shape[2]
    if missing == 0:
        return array
    return np.pad(array, [(0, 0), (0, 0), (0, missing)] + [(0, 0)] * (array.ndim - 3))
