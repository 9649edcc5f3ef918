"""Measurements of a block: regret against its comparator, and sums over all rounds."""

import numpy as np

from multiplay.actions import ActionSet, TimeVarying
from multiplay.environments import Observation
from multiplay.feedback import Feedback
from multiplay.kernels import measurements as kernels
from multiplay.results import Measured
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


class RegretRecorder:
    """Records every round of a block of trials.

    Regret is against the best fixed action a*, or against the best action of each round. Where the
    best fixed action is not known beforehand (an adaptive adversary), it is found at the end; until
    then the sums of all arms are kept at the recorded rounds. ``unit_means`` are those of a world
    whose means depend on the number of the unit.
    """

    def __init__(
        self,
        actions: ActionSet,
        best: IntArray | BestOfEachRound | None,
        rounds: IntArray,
        trials: int,
        unit_means: FloatArray | None = None,
    ) -> None:
        self.unit_means = unit_means
        self.actions, self.rounds, self.known = actions, set(rounds.tolist()), best is not None
        shape = (trials, actions.d)
        self.best = np.zeros(shape, dtype=np.int64) if best is None else best
        self.arms, self.plays = np.zeros((7, *shape)), np.zeros((3, *shape), dtype=np.int64)
        self.sums, self.no_offset = np.zeros((5, trials)), np.zeros(actions.d)
        self.curves: list[FloatArray] = []
        self.history: list[FloatArray] = []

    def add(self, t: int, actions: ActionSet, action: IntArray, seen: Observation) -> None:
        """Record round t, which was played on the set ``actions``."""
        feedback, means, averages = seen
        if not (means.flags.carray and averages.flags.carray):
            means, averages = _writable(means), _writable(averages)
        best = self.best
        if isinstance(best, BestOfEachRound):
            best = best.of(actions, means)
        kernels.book(
            t,
            actions.affine and self.unit_means is None,
            action,
            best,
            means,
            feedback.total,
            averages,
            self.no_offset if actions.offset is None else _writable(actions.offset),
            self.arms,
            self.plays,
            self.sums,
        )
        if self.unit_means is not None:
            self._add_by_unit(actions, self.unit_means, action, best, feedback)
        elif actions.extra:
            known = actions.known(action) - (actions.known(best) if self.known else 0.0)
            self.sums[[kernels.PSEUDO, kernels.PAID]] += known
        elif not actions.linear:
            self.sums[kernels.PSEUDO] += actions.value(action, means) - actions.value(best, means)
        if t in self.rounds:
            self.curves.append(self.sums[[kernels.PSEUDO, kernels.PAID]])
            if not self.known:
                self.history.append(self.arms[[kernels.MEANS, kernels.S1]])

    def _add_by_unit(
        self,
        actions: ActionSet,
        unit_means: FloatArray,
        action: IntArray,
        best: IntArray,
        feedback: Feedback,
    ) -> None:
        """Add the regret of a round, where the mean of a unit depends on its number."""
        value = actions.value_by_unit
        self.sums[kernels.PSEUDO] += value(action, unit_means) - value(best, unit_means)
        if feedback.units is None or feedback.first is None:
            self.sums[kernels.PAID] = np.nan
            return
        offset, rows = self._offset, np.arange(len(action))[:, None]
        sums = np.pad(feedback.units.cumsum(axis=1), ((0, 0), (1, 0)))
        first = feedback.first[:-1]
        paid = feedback.total - (sums[rows, first + best] - sums[rows, first])
        self.sums[kernels.PAID] += (paid + (action - best) * offset).sum(axis=1)
        if actions.extra:
            self.sums[kernels.PAID] += actions.known(action) - actions.known(best)

    def finished(self, horizon: int, corruption: FloatArray | None, seconds: float) -> Measured:
        """Return the measurements after the last round."""
        sign, trials = self.actions.sign, self.sums.shape[1]
        pseudo, paid = np.stack(self.curves, axis=2)
        excess = self.plays[kernels.EXCESS].astype(float)
        if not self.known:
            best = self.actions.best(self.arms[kernels.MEANS] / horizon)
            offsets = np.multiply.outer(sorted(self.rounds), self._offset)
            for curve, sums in zip((pseudo, paid), np.stack(self.history, axis=2), strict=True):
                curve -= (best[:, None, :] * (sums + offsets)).sum(axis=2)
                if self.actions.extra:
                    curve -= np.multiply.outer(self.actions.known(best), sorted(self.rounds))
            excess[:] = np.nan
        if not self.actions.affine:
            paid[:] = np.nan
        S1, S2 = self.arms[[kernels.S1, kernels.S2]]
        S0_played = np.maximum(self.plays[kernels.S0_PLAYED], 1)
        S1_played, S2_played = self.arms[[kernels.S1_PLAYED, kernels.S2_PLAYED]]
        return {
            "regret": sign * pseudo,
            "realised": sign * paid,
            "excess": excess,
            "switches": self.sums[kernels.SWITCHES],
            "L_star": self._least(S1, horizon),
            "Q2": _variation(S1, S2, horizon),
            "V1": self.sums[kernels.V1],
            "Q2_played": _variation(S1_played, S2_played, S0_played),
            "V1_played": self.sums[kernels.V1_PLAYED],
            "corruption": np.full(trials, np.nan) if corruption is None else corruption,
            "seconds": np.full(trials, seconds / trials),
        }

    @property
    def _offset(self) -> FloatArray:
        return np.zeros(self.actions.d) if self.actions.offset is None else self.actions.offset

    def _least(self, S1: FloatArray, horizon: int) -> FloatArray:
        """Return the total loss of the best fixed action, where there is one."""
        if isinstance(self.actions, TimeVarying) or self.unit_means is not None:
            return np.full(len(S1), np.nan)
        if self.actions.extra:
            mean = S1 / horizon
            return horizon * self.actions.value(self.actions.best(mean), mean)
        sums = S1 + horizon * self._offset
        least: FloatArray = (self.actions.argmin(self.actions.sign * sums) * sums).sum(axis=1)
        return least


def _variation(S1: FloatArray, S2: FloatArray, rounds: IntArray | int) -> FloatArray:
    """Return sum_i sum_t (k_i(t) - mean of k_i)^2 from the sums of k_i and of k_i^2."""
    variation: FloatArray = np.maximum(S2 - S1**2 / rounds, 0.0).sum(axis=1)
    return variation


def _writable(array: FloatArray) -> FloatArray:
    """Return the array with the memory layout that kernels are compiled for."""
    return np.require(array, requirements=["C", "W"])


def best_actions(actions: ActionSet, means: FloatArray) -> IntArray:
    """Return the best action for each row of ``means``, with one oracle call for equal rows."""
    if len(means) > 1 and kernels.alike(means):
        return np.repeat(best_actions(actions, means[:1]), len(means), axis=0)
    if not actions.linear:
        return actions.best(means)
    return actions.oracle(actions.costs_of(means))  # what ``best`` does, without its checks


def best_units(actions: ActionSet, unit_means: FloatArray) -> IntArray:
    """Return the best action for each row of means by unit, with one call for equal rows."""
    if len(unit_means) > 1 and kernels.alike(unit_means.reshape(len(unit_means), -1)):
        return np.repeat(best_units(actions, unit_means[:1]), len(unit_means), axis=0)
    return actions.best_by_unit(unit_means)
