"""What is written down of a block: regret at the recorded rounds, and sums over all rounds."""

import numpy as np

from multiplay.actions import ActionSet, Changing
from multiplay.environments import Observation
from multiplay.kernels import ledger as kernels
from multiplay.results import Measured
from multiplay.simulation.rival import BestOfEachRound
from multiplay.types import FloatArray, IntArray


class Ledger:
    """Books every round of a block of trials.

    Regret is against the best fixed action a*, or against the best action of each round. Where the
    best fixed action is not known beforehand (an adaptive adversary), it is found at the end; until
    then the sums of all arms are kept at the recorded rounds.
    """

    def __init__(
        self,
        actions: ActionSet,
        best: IntArray | BestOfEachRound | None,
        rounds: IntArray,
        trials: int,
    ) -> None:
        self.actions, self.rounds, self.known = actions, set(rounds.tolist()), best is not None
        shape = (trials, actions.d)
        self.best = np.zeros(shape, dtype=np.int64) if best is None else best
        self.pseudo, self.paid = np.zeros(trials), np.zeros(trials)
        self.curves: list[tuple[FloatArray, FloatArray]] = []
        self.last_action = np.zeros(shape, dtype=np.int64)
        self.excess = np.zeros(shape, dtype=np.int64)
        self.switches = np.zeros(trials, dtype=np.int64)
        self.last_average, self.V1 = np.zeros(shape), np.zeros(trials)
        self.S1, self.S2, self.sum_means = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.sums: list[tuple[FloatArray, FloatArray]] = []
        self.last_played, self.V1_played = np.zeros(shape), np.zeros(trials)
        self.S0_played = np.zeros(shape, dtype=np.int64)
        self.S1_played, self.S2_played = np.zeros(shape), np.zeros(shape)

    def add(self, t: int, today: ActionSet, action: IntArray, seen: Observation) -> None:
        """Book round t, which was played on the set ``today``."""
        means, averages = _writable(seen.means), _writable(seen.averages)
        best = self.best
        if isinstance(best, BestOfEachRound):
            best = best.of(today, means)
        if t == 1:  # nothing comes before the first round
            self.last_action[:], self.last_average[:] = action, averages
        kernels.follow(averages, self.last_average, self.S1, self.S2, self.V1)
        kernels.follow_played(
            action,
            seen.feedback.total,
            self.last_played,
            self.S0_played,
            self.S1_played,
            self.S2_played,
            self.V1_played,
        )
        kernels.count_plays(action, best, self.last_action, self.excess, self.switches)
        if today.linear:
            total = seen.feedback.total
            if today.offset is not None:
                means, averages = means + today.offset, averages + today.offset
                total = total + action * today.offset
            kernels.compare(action, best, means, total, averages, self.pseudo, self.paid)
        else:
            self.pseudo += today.value(action, means) - today.value(best, means)
        if not self.known:
            self.sum_means += seen.means
        if t in self.rounds:
            self.curves.append((self.pseudo.copy(), self.paid.copy()))
            if not self.known:
                self.sums.append((self.sum_means.copy(), self.S1.copy()))

    def finished(self, horizon: int, corruption: FloatArray | None, seconds: float) -> Measured:
        """Close the books after the last round."""
        sign, trials = self.actions.sign, len(self.pseudo)
        pseudo, paid = (np.stack(curve, axis=1) for curve in zip(*self.curves, strict=True))
        excess = self.excess.astype(float)
        if not self.known:
            best = self.actions.best(self.sum_means / horizon)[:, None, :]
            known = np.multiply.outer(sorted(self.rounds), self._offset)
            for curve, sums in zip((pseudo, paid), zip(*self.sums, strict=True), strict=True):
                curve -= (best * (np.stack(sums, axis=1) + known)).sum(axis=2)
            excess[:] = np.nan
        if not self.actions.linear:
            paid[:] = np.nan
        return {
            "regret": sign * pseudo,
            "realised": sign * paid,
            "excess": excess,
            "switches": self.switches.astype(float),
            "L_star": self._least(horizon),
            "Q2": _variation(self.S1, self.S2, horizon),
            "V1": self.V1,
            "Q2_played": _variation(self.S1_played, self.S2_played, np.maximum(self.S0_played, 1)),
            "V1_played": self.V1_played,
            "corruption": np.full(trials, np.nan) if corruption is None else corruption,
            "seconds": np.full(trials, seconds / trials),
        }

    @property
    def _offset(self) -> FloatArray:
        return np.zeros(self.actions.d) if self.actions.offset is None else self.actions.offset

    def _least(self, horizon: int) -> FloatArray:
        """Return what the best fixed action would have got, where there are fixed actions."""
        if isinstance(self.actions, Changing):
            return np.full(len(self.S1), np.nan)
        sums = self.S1 + horizon * self._offset
        least: FloatArray = (self.actions.argmin(self.actions.sign * sums) * sums).sum(axis=1)
        return least


def _variation(S1: FloatArray, S2: FloatArray, rounds: IntArray | int) -> FloatArray:
    """Return sum_i sum_t (k_i(t) - mean of k_i)^2 from the sums of k_i and of k_i^2."""
    variation: FloatArray = np.maximum(S2 - S1**2 / rounds, 0.0).sum(axis=1)
    return variation


def _writable(array: FloatArray) -> FloatArray:
    """Return an array of the one kind that kernels are compiled for."""
    return np.require(array, requirements=["C", "W"])
