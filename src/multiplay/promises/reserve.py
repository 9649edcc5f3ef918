r"""The reserve of promises: plans for the remaining plays that keep them, so that today can.

For weights :math:`\omega` of the promises, the thrifty plan of a set is the action a with the least
:math:`\sum_k \omega_k \langle c_k, a \rangle`. It depends on nothing that is learned. A list has
one thrifty plan for each remaining play, whose sum keeps all promises. If a list stands
before a play, the play of its own plan leaves the rest of the list: a list that stands once can
stand to the end.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from multiplay.promises.prices import RemainingSet
from multiplay.types import BoolArray, FloatArray, IntArray

STEPS = 8  # of each weight from 0 to 1
MOST_WEIGHTS = 50  # with more promises than a grid can have
SWEEPS = 2  # of a repair
FIRST_SWEEPS = 10  # of a new list
LIKELY = 2.6  # standard deviations of what unknown sets need
MARGIN_STEPS = 6  # bisections of a smaller margin
KEPT = 1e-9  # of the scale of a promise, within which it is kept


@lru_cache(maxsize=8)
def weights(promises: int) -> FloatArray:
    """Return a grid of weights whose sum is 1, of shape (weights, promises).

    Examples
    --------
    >>> weights(1).tolist(), len(weights(2)), len(weights(3)), len(weights(5))
    ([[1.0]], 9, 45, 50)
    """
    if promises > 3:
        drawn = np.random.default_rng(promises).dirichlet(np.ones(promises), MOST_WEIGHTS)
        drawn[:promises] = np.eye(promises)
        return drawn
    whole = [one for one in product(range(STEPS + 1), repeat=promises) if sum(one) == STEPS]
    return np.array(whole) / STEPS


class ThriftyPlans(NamedTuple):
    """The thrifty plans of a set, and what they use.

    Attributes
    ----------
    plans : array of shape (weights, d)
        A plan for each row of ``weights``.
    use : array of shape (weights, promises)
        What each plan uses.
    """

    plans: IntArray
    use: FloatArray

    @classmethod
    def of(cls, one: RemainingSet, scale: FloatArray) -> "ThriftyPlans":
        """Return the thrifty plans; ``scale`` makes the amounts of the promises comparable."""
        omega = weights(len(scale)) / scale
        costs = np.zeros((len(omega), one.actions.d))
        for k in range(len(scale)):
            costs += omega[:, k, np.newaxis] * one.amounts[k]
        plans = one.actions.argmin(costs)
        return cls(plans, used_by(plans, one.amounts))


def used_by(plans: IntArray, amounts: FloatArray) -> FloatArray:
    """Return what plans use of each promise, of shape (plans, promises)."""
    return np.stack([(plans * row).sum(axis=-1) for row in amounts], axis=-1)


class Reserve:
    """The thrifty plans of the remaining plays, from which lists are made.

    ``use`` has for every remaining play what its thrifty plans use, (plays, weights, promises).
    Plays whose sets are not known yet are one more row: what they will probably need.
    """

    def __init__(self, use: FloatArray, scale: FloatArray, hard: BoolArray) -> None:
        self.use, self.scale, self.hard = use, scale, hard

    def new_list(self, rest: FloatArray) -> IntArray:
        """Return the best list that is found, from the best single weight on."""
        total = self.use.sum(axis=0)
        start = int(self._overshoot(total, rest).argmin())
        return self._improved(np.full(len(self.use), start), rest, FIRST_SWEEPS)

    def repaired(self, chosen: IntArray, rest: FloatArray) -> IntArray:
        """Return a list near to this one, with less overshoot if it has any."""
        return self._improved(chosen, rest, SWEEPS)

    def stands(self, chosen: IntArray, rest: FloatArray) -> bool:
        """Return whether a list keeps the hard promises."""
        over = self.needed(chosen) - rest
        return bool((over[self.hard] <= KEPT * self.scale[self.hard]).all())

    def needed(self, chosen: IntArray) -> FloatArray:
        """Return what a list uses."""
        needed: FloatArray = self.use[np.arange(len(chosen)), chosen].sum(axis=0)
        return needed

    def _improved(self, chosen: IntArray, rest: FloatArray, sweeps: int) -> IntArray:
        """Sweep over the plays; each takes the plan with which the list overshoots least."""
        chosen, total = chosen.copy(), self.needed(chosen)
        for _ in range(sweeps):
            before = chosen.copy()
            for s in range(len(chosen)):
                others = total - self.use[s, chosen[s]]
                over = self._overshoot(others + self.use[s], rest)
                best = int(over.argmin())
                if over[best] < over[chosen[s]]:
                    chosen[s] = best
                    total = others + self.use[s, best]
            if (chosen == before).all():
                break
        return chosen

    def _overshoot(self, totals: FloatArray, rest: FloatArray) -> FloatArray:
        """Return the squared overshoot of the hard promises, in units of their scale."""
        squared = np.zeros(totals.shape[:-1])
        for k in np.flatnonzero(self.hard):
            squared += np.maximum((totals[..., k] - rest[k]) / self.scale[k], 0.0) ** 2
        return squared


def reserve_of(
    known: Sequence[FloatArray],
    past: Sequence[FloatArray],
    unknown: IntArray,
    rest: FloatArray,
    scale: FloatArray,
    hard: BoolArray,
) -> Reserve:
    """Return the reserve of known sets, and of plays on unknown ones like those of the past.

    ``known`` and ``past`` are what thrifty plans use, ``unknown`` is the number of such plays for
    each promise. If no list keeps the promises with the full margin for unknown sets, the margin is
    the largest one with which a list does.
    """
    shape = (0, len(weights(len(scale))), len(scale))
    rows = np.stack(known) if len(known) else np.zeros(shape)
    if not unknown.any():
        return Reserve(rows, scale, hard)
    uses = np.stack(past)

    def at(margin: float) -> Reserve:
        needed = likely_need(uses, unknown, margin)
        return Reserve(np.concatenate([rows, needed[np.newaxis]]), scale, hard)

    def stands(margin: float) -> bool:
        found = at(margin)
        return found.stands(found.new_list(rest), rest)

    if stands(LIKELY):
        return at(LIKELY)
    if not stands(0.0):
        return at(0.0)
    low, high = 0.0, LIKELY
    for _ in range(MARGIN_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if stands(middle) else (low, middle)
    return at(low)


def likely_need(past: FloatArray, plays: IntArray, margin: float = LIKELY) -> FloatArray:
    r"""Return what plays on unknown sets will probably need, for each weight and promise.

    Mean and standard deviation of the n past sets: :math:`\text{mean} \cdot k + z\, \text{sd}
    \sqrt{k (1 + k / n)}` for k plays, with the margin z.
    """
    mean, spread = likely_sum(past, plays)
    needed: FloatArray = mean + margin * spread
    return needed


def likely_sum(past: FloatArray, plays: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of the sum over some plays like those of the past."""
    n = len(past)
    mean = past.sum(axis=0) / n
    spread = np.sqrt(((past - mean) ** 2).sum(axis=0) / max(n - 1, 1))
    return plays * mean, spread * np.sqrt(plays * (1 + plays / n))
