"""Moments: a Bayesian bootstrap of the losses of every arm, which learns their noise."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multiplay._support.checks import is_number
from multiplay._support.hints import Hint, Option
from multiplay.actions import ActionSet
from multiplay.beliefs.restart import Restart
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.kernels import beliefs, change, persistence
from multiplay.kernels import bootstrap as kernels
from multiplay.kernels import moments as columns
from multiplay.kernels.hypotheses import COLUMNS, MARKS, OCTAVES
from multiplay.posteriors.base import Posterior, seeds
from multiplay.posteriors.memories import (
    COMMON,
    FILTERS,
    MOMENTS,
    PERSISTENCE,
    Persists,
    summaries,
)
from multiplay.random import Rng, stream_words
from multiplay.types import Arrays, FloatArray, IntArray

FOLLOW = Option("memory", "Changes()")
OF_DRAWS = ("mean", "deviation")  # of the draws, as hypotheses have them
KEPT = "kept"  # the state: the reports of the rounds of a window
NO_SEEDS = np.zeros((1, 0))
NOT_KEPT = np.zeros((1, 1, 0, columns.KEPT))
NOTHING = (
    np.zeros((1, 1, 0, COLUMNS)),
    np.zeros((1, 1, MARKS)),
    np.zeros((1, 1, OCTAVES, 3)),
    np.zeros(1, dtype=np.int64),
)


class Arguments(NamedTuple):
    """What kernels of draws begin with: generators, moments, hypotheses, and the set."""

    generators: Any
    moments: FloatArray
    hypotheses: FloatArray
    marks: FloatArray
    snaps: FloatArray
    t: IntArray
    shift: FloatArray
    upper: FloatArray


@dataclass(frozen=True, repr=False)
class LossMoments(Posterior):
    """A posterior of nine moments of the reports of each arm: all memories work with it.

    Parameters
    ----------
    memory
        Which reports count.
    curiosity
        With ``Changes``: how far, as a share of the range, an idle arm is taken to have moved in
        1,000 rounds, even if no arm was ever seen to move.
    """

    curiosity: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.curiosity) and 0 <= self.curiosity <= 1):
            hint = "Leave it out for 0, or try 0.1."
            raise InvalidInput("curiosity", "a number from 0 to 1", repr(self.curiosity), hint)
        if self.curiosity and not self.memory.follows:
            hint = Hint("Use {} with it.", FOLLOW)
            raise InvalidInput("curiosity", "0 unless changes are followed", self.curiosity, hint)

    def empty(self, trials: int, d: int) -> Arrays:
        """Return moments of 0."""
        return {MOMENTS: np.zeros((trials, d, columns.COLUMNS))}

    def add(self, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Add the report of each arm."""
        moments, reports = state[MOMENTS], summaries(state, feedback)
        if COMMON in state:
            columns.add_reports(moments[0], state[COMMON][0], reports[0])
        else:
            slot = np.zeros(len(moments), dtype=np.int64)  # of no window
            kernels.learn(moments, NOT_KEPT, slot, reports)

    def fade(self, state: Arrays, weight: float) -> None:
        """Let all reports count ``weight`` times as much."""
        kernels.fade_all(state[MOMENTS], weight)
        if COMMON in state:
            state[COMMON] *= weight

    def room(self, trials: int, d: int, window: int) -> Arrays:
        """Return room for the reports of a window."""
        return {KEPT: np.zeros((trials, d, window, columns.KEPT))}

    def put(self, state: Arrays, slot: NDArray[np.int64], feedback: Feedback, rng: Rng) -> None:
        """Keep the reports in a slot, and compute the moments of the window."""
        moments, kept, reports = state[MOMENTS], state[KEPT], summaries(state, feedback)
        if COMMON in state:
            columns.keep_reports(moments[0], state[COMMON][0], kept[0], slot[0], reports[0])
        else:
            kernels.learn(moments, kept, slot, reports)
            kernels.rebuild(moments, kept, (slot + 1) % kept.shape[2])

    def drop(self, state: Arrays, slots: list[NDArray[np.int64]]) -> None:
        """Drop the reports in some slots, and compute the moments of the window."""
        kept = state[KEPT]
        for slot in slots:
            kept[np.arange(len(slot)), :, slot] = 0.0
        kernels.rebuild(state[MOMENTS], kept, (slots[0] + 1) % kept.shape[2])

    def reset(self, state: Arrays, restart: Restart) -> None:
        """Set the moments of some arms, and the reports of a window."""
        state[MOMENTS][:, restart.places] = restart.sums
        if KEPT in state:
            state[KEPT][:, restart.places] = restart.kept

    def counts(self, units: FloatArray, total: FloatArray) -> tuple[FloatArray, ...]:
        """Return the same: hypotheses have the moments that draws need."""
        return units, total

    def arguments(self, actions: ActionSet, state: Arrays, rng: Rng) -> Arguments:
        """Return what kernels of draws begin with."""
        moments, d = state[MOMENTS], actions.d
        shift = np.zeros(d) if actions.offset is None else actions.offset
        upper = np.ones(d) if actions.upper is None else actions.upper
        hypotheses, marks, snaps, t = NOTHING
        if self.memory.follows:
            hypotheses, marks = state["hypotheses"], state["marks"]
            snaps, t = state["snaps"], state["t"]
        t = state.get("t", t)
        words = stream_words(rng, len(moments))
        return Arguments(words, moments, hypotheses, marks, snaps, t, shift, upper)

    def persist(
        self, actions: ActionSet, state: Arrays, given: Arguments, theta: FloatArray
    ) -> FloatArray:
        """Return theta, where losses may persist with the means of the next round."""
        if FILTERS in state:
            filters, traces, gaps = (state[name] for name in PERSISTENCE)
            own = filters, traces, gaps, given.t, given.shift, given.upper
            persistence.overlay(given.generators, *own, actions.sign, theta)
        return theta


@dataclass(frozen=True, repr=False)
class Moments(LossMoments):
    r"""A Bayesian bootstrap of the losses of each arm, from nine moments of its reports.

    .. math::

        (V_0, V_1, V_N) \sim \operatorname{Dirichlet}(w, w, N_i), \qquad
        \mu_i \sim V_0 \cdot 0 + V_1 \cdot 1 + V_N\, \kappa_i,

    where :math:`\kappa_i` has a beta distribution with the average of the arm, and the variance of
    that average by the learned noise: see ``BootstrapCTS``. An arm never seen draws from
    :math:`\operatorname{Beta}(w, n_i w)`.

    Parameters
    ----------
    memory
        Which reports count.
    w
        Pseudo units at each end of the range, positive.
    curiosity
        With ``Changes``: how far, as a share of the range, an idle arm is taken to have moved in
        1,000 rounds, even if no arm was ever seen to move.

    Examples
    --------
    >>> from multiplay import BootstrapCTS, Composed, Draw, Learner, Moments, Transport
    >>> plans = Transport([1, 4, 5], [4, 6])
    >>> one, two = Learner(plans, Composed(Moments(), Draw())), Learner(plans, BootstrapCTS())
    >>> one.ask().plan == two.ask().plan
    True
    """

    w: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.w) and 0 < self.w < np.inf):
            raise InvalidInput("w", "a positive number", repr(self.w), "Leave it out for 1.")

    def lacks(self, method: str) -> str | None:
        """Return why a method cannot be called: quantiles of the draws are known for w = 1."""
        if method in OF_DRAWS and isinstance(self.memory, Persists):
            return f"has no {method}() of losses that persist"
        if method == "draw_shared" and self.w != 1.0:
            return f"has no {method}() for w = {self.w:g}"
        return super().lacks(method)

    # ------------------------------------------------------------ reads

    def draw(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        """Return one draw of the mean loss of each arm."""
        return self._draw(actions, state, rng, NO_SEEDS)

    def draw_shared(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        """Return the draw of each arm at the same quantiles for all arms of a trial."""
        return self._draw(actions, state, rng, None)

    def _draw(
        self, actions: ActionSet, state: Arrays, rng: Rng, z: FloatArray | None
    ) -> FloatArray:
        """Return draws at the quantiles of z: no columns for draws of their own; None for new."""
        theta = np.empty(state[MOMENTS].shape[:2])
        arguments = self.arguments(actions, state, rng)
        if z is None:
            z = seeds(len(theta), rng, numbers=3)
        settings = actions._n, float(self.w), float(self.curiosity), actions.sign, z
        kernels.draw(*arguments, *settings, theta)
        return self.persist(actions, state, arguments, theta)

    def mean(self, actions: ActionSet, state: Arrays, rng: Rng | None = None) -> FloatArray:
        """Return the mean of the draws."""
        N, mean, _ = self._settled(state)
        top = np.ones(actions.d) if actions.upper is None else actions.upper
        expected: FloatArray = (self.w * top + N * mean) / (2 * self.w + N)
        return expected

    def deviation(self, actions: ActionSet, state: Arrays) -> FloatArray:
        r"""Return the standard deviation of the draws.

        With n = 2 w + N, of :math:`V_1 \cdot 1 + V_N \kappa`, where :math:`E V_1^2 = w (w + 1)`,
        :math:`E V_1 V_N = w N` and :math:`E V_N^2 = N (N + 1)`, each over n (n + 1). Arms that were
        not seen of late are not widened.
        """
        N, mean, variance = self._settled(state)
        w, top = self.w, np.ones(actions.d) if actions.upper is None else actions.upper
        n = 2 * w + N
        square = w * (w + 1) * top**2 + 2 * w * N * top * mean + N * (N + 1) * (variance + mean**2)
        spread = square / (n * (n + 1)) - self.mean(actions, state) ** 2
        deviation: FloatArray = np.sqrt(np.maximum(spread, 0.0))
        return deviation

    def _settled(self, state: Arrays) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return units, average and the variance of the average, of each arm since its change."""
        moments = state[MOMENTS]
        if self.memory.follows:
            sums = np.empty_like(moments)
            arrays = moments, state["hypotheses"], state["marks"], sums
            for trial in zip(*arrays, strict=True):
                change.settle(*trial)
            moments = sums
        N, mean = moments[:, :, columns.N], moments[:, :, columns.MEAN]
        variance = np.empty(N.shape)
        for sums, own in zip(moments, variance, strict=True):
            arms = np.empty((len(sums), 6))
            beliefs.believe(sums, np.zeros(2), np.empty((beliefs.SIZES, 4)), arms, np.empty(2))
            own[:] = arms[:, beliefs.V]
        return N, mean, variance

    def believed(self, state: Arrays) -> FloatArray:
        r"""Return the mean of the draws, :math:`(w + N_i \bar{k}_i) / (2 w + N_i)`."""
        n, mean = (state[MOMENTS][:, :, column] for column in (columns.N, columns.MEAN))
        expected: FloatArray = (self.w + n * mean) / (2 * self.w + n)
        return expected
