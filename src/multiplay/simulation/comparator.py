"""Comparators: the best action of each round, for regret against it."""

import numpy as np

from multiplay.actions import ActionSet
from multiplay.kernels import measurements as kernels
from multiplay.types import FloatArray, IntArray

REMEMBERED = 1 << 22  # numbers in the best actions that are kept


class BestOfEachRound:
    """The best action of the set of a round for the means of that round, in every trial.

    As long as the means stay the same, the best actions of the last ``sets`` sets are kept.
    ``unit_means`` are those of a world whose means depend on the number of the unit.
    """

    def __init__(self, sets: int, unit_means: FloatArray | None = None) -> None:
        self.sets, self.means, self.unit_means = sets, np.empty((0, 0)), unit_means
        self.found: dict[int, tuple[ActionSet, IntArray]] = {}

    def of(self, actions: ActionSet, means: FloatArray) -> IntArray:
        """Return a*, shape (trials, d)."""
        if not kernels.same(means, self.means):
            self.means, self.found = means.copy(), {}
        if id(actions) not in self.found:  # the set is kept too, so that no new set gets its id
            if len(self.found) >= min(self.sets, 1 + REMEMBERED // means.size):
                self.found.clear()
            by_unit = self.unit_means
            best = best_actions(actions, means) if by_unit is None else best_units(actions, by_unit)
            self.found[id(actions)] = actions, best
        return self.found[id(actions)][1]


def best_actions(actions: ActionSet, means: FloatArray) -> IntArray:
    """Return the best action for each row of ``means``, with one oracle call for equal rows."""
    if len(means) > 1 and kernels.alike(means):
        return np.repeat(best_actions(actions, means[:1]), len(means), axis=0)
    if not actions.linear:
        return actions.best(means)
    losses = means if actions.offset is None else means + actions.offset
    return actions.oracle(actions.sign * losses)  # what ``best`` does, without its checks


def best_units(actions: ActionSet, unit_means: FloatArray) -> IntArray:
    """Return the best action for each row of means by unit, with one call for equal rows."""
    if len(unit_means) > 1 and kernels.alike(unit_means.reshape(len(unit_means), -1)):
        return np.repeat(best_units(actions, unit_means[:1]), len(unit_means), axis=0)
    return actions.best_by_unit(unit_means)
