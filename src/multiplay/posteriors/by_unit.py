"""OrderedUnits: a mean for the k-th unit of each arm, which follows that of the unit before it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from multiplay._support.hints import Hint, Option
from multiplay.actions import ActionSet, TimeVarying
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.kernels import ordered as kernels
from multiplay.kernels.moments import KEPT
from multiplay.posteriors.base import Posterior
from multiplay.posteriors.memories import FILTERS, PERSISTENCE, Persists
from multiplay.random import Rng, stream_words
from multiplay.types import Arrays, FloatArray, IntArray

ORDERED = "ordered"
SUMS = "by_unit"  # the state: N, average and squared deviations, (trials, d, K, 3)
NO_NUMBERS = np.zeros((1, 0), dtype=np.int64)


class UnitBeliefs(NamedTuple):
    """What is believed of the k-th unit of each arm, (trials, d, K).

    Attributes
    ----------
    mean : array
        Its mean loss; it does not decrease in k (for rewards: increase).
    variance : array
        The variance of what is believed of its mean.
    sum_variance : array
        The variance of what is believed of the sum of the means of the first k units.
    """

    mean: FloatArray
    variance: FloatArray
    sum_variance: FloatArray


@dataclass(frozen=True, repr=False)
class OrderedUnits(Posterior):
    r"""A normal posterior of each unit, where the k-th unit of an arm has a mean of its own.

    The mean :math:`\mu_{ik}` of the k-th unit of arm i is assumed not to
    decrease in k, for losses (not to increase, for rewards): returns diminish. The state has the
    number :math:`N_{ik}`, the average :math:`\bar{k}_{ik}` and the squared deviations of its
    losses. Each round draws from

    .. math::

        \mu_{i1} &\sim \mathcal{N}(1/2, 1/12), \qquad
        \mu_{i,k+1} - \mu_{ik} \sim \mathcal{N}(g, \tau^2), \\
        \bar{k}_{ik} &\sim \mathcal{N}(\mu_{ik}, v_{ik} / N_{ik}),

    exactly, by a filter forwards and draws backwards, in time linear in the units. So a position
    shares what was seen of its neighbours, and one that was never played borrows from those below.
    g and :math:`\tau^2`, the mean and the variance of a step, are those of all arms together, by
    moments; :math:`\tau` is at least g / 2 and at least 0.02, so that a step of 0 stays likely
    enough to be tried. The draws are projected on numbers that do not decrease (isotonic
    regression, weighted by :math:`1 + N_{ik}`), and ``ActionSet.best_by_unit`` solves for them.

    With ``Persists()``, :math:`\mu_{ik}` is the mean in the next round, and :math:`\bar{k}_{ik}`
    and :math:`v_{ik} / N_{ik}` are the mean and the variance that the filters of unit k forecast by
    themselves: see docs/diminishing.md.

    The units of a round count as independent. Units beyond the K-th, the most units of an arm in
    the first set, count as the K-th.

    Parameters
    ----------
    memory
        ``Keep()``, ``Discount(...)`` or, without coins, ``Persists()``.
    coins
        Whether a loss becomes a coin, whose variance is known.
    w
        Units at each end of the range in the variance of a loss.

    References
    ----------
    Carter, Kohn: On Gibbs sampling for state space models, Biometrika 1994. (The draws.)
    Lin, Dunson: Bayesian monotone regression using Gaussian process projection, Biometrika 2014.
    (Draws that are projected on increasing ones.) Both are cited from memory, and were not read
    again for this class; the tests have a dense version of the draws and of the projection.
    """

    by_unit = True
    restarts = False  # logs of reports have no numbers of units

    coins: bool = False
    w: float = 1.0

    def start(self, actions: ActionSet, trials: int) -> Arrays:
        """Return the state before the first round, for a set that can be solved by unit."""
        if not isinstance(actions, TimeVarying):
            actions.check_by_unit()
        K = max(int(actions.n.max()), 1)
        state = {SUMS: np.zeros((trials, actions.d, K, kernels.COLUMNS))}
        if not isinstance(self.memory, Persists):
            return state
        t = np.ones(trials, dtype=np.int64)
        return state | self.memory.filters(trials, actions.d, K) | {"t": t}

    def lacks(self, method: str) -> str | None:
        """Return why a method cannot be called: coins are no reports that persist."""
        if method == "persist" and self.coins:
            return "has coins in place of losses"
        return super().lacks(method)

    def empty(self, trials: int, d: int) -> Arrays:
        """Return sums of arms of one unit."""
        return {SUMS: np.zeros((trials, d, 1, kernels.COLUMNS))}

    def add(self, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Add each loss to its unit; totals of one unit are its loss."""
        sums, seen = state[SUMS], feedback.seen
        words = stream_words(rng, len(sums))
        kernels.learn(words, *_numbered(feedback), seen, self.coins, sums)

    def unit_reports(self, state: Arrays, feedback: Feedback) -> FloatArray:
        """Return the report of each unit by itself, (trials, d K, 5)."""
        trials, d, K = state[SUMS].shape[:3]
        reports = np.empty((trials, d, K, KEPT))
        kernels.reports_of(*_numbered(feedback), feedback.seen, reports)
        return reports.reshape(trials, d * K, KEPT)

    def fade(self, state: Arrays, weight: float) -> None:
        """Let old losses fade."""
        state[SUMS][..., [kernels.N, kernels.SQUARES]] *= weight

    def draw(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        """Return one draw of the means of all units, (trials, d, K)."""
        sums = state[SUMS]
        theta = np.empty(sums.shape[:3])
        words = stream_words(rng, len(sums))
        settings = _upper(actions), actions.sign, self.coins, float(self.w)
        kernels.draw(words, sums, actions._n, *settings, theta)
        return self.persist(actions, state, words, theta)

    def persist(
        self, actions: ActionSet, state: Arrays, words: Any, theta: FloatArray
    ) -> FloatArray:
        """Return theta, where losses may persist with the means of the next round."""
        if FILTERS in state:
            filters, traces, gaps = (state[name] for name in PERSISTENCE)
            own = words, filters, traces, gaps, state["t"], state[SUMS], actions._n
            kernels.overlay(*own, _upper(actions), actions.sign, theta)
        return theta

    def believed_units(self, actions: ActionSet, state: Arrays) -> UnitBeliefs:
        """Return what is believed of each unit; in the next round, where losses may persist."""
        sums, upper = state[SUMS], _upper(actions)
        found = np.empty((*sums.shape[:3], 3))
        kernels.estimate(sums, upper, actions.sign, self.coins, float(self.w), found)
        if FILTERS in state:
            filters, traces, gaps = (state[name] for name in PERSISTENCE)
            kernels.believe(filters, traces, gaps, state["t"], sums, upper, actions.sign, found)
        return UnitBeliefs(*np.moveaxis(found, 3, 0))

    def mean(self, actions: ActionSet, state: Arrays, rng: Rng | None = None) -> FloatArray:
        """Return the mean of each unit, (trials, d, K)."""
        return self.believed_units(actions, state).mean

    def believed(self, state: Arrays) -> FloatArray:
        """Return the average of the losses of all units seen of each arm, with w at each end."""
        n, mean = state[SUMS][..., kernels.N], state[SUMS][..., kernels.MEAN]
        average: FloatArray = ((n * mean).sum(axis=2) + self.w) / (n.sum(axis=2) + 2 * self.w)
        return average


def _numbered(feedback: Feedback) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the losses of units, where each arm begins, and their numbers; totals of one unit."""
    units, first = feedback.units, feedback.first
    if units is None or first is None:
        if (feedback.seen > 1).any() or feedback.total.shape != feedback.seen.shape:
            raise InvalidInput(
                "feedback",
                "the loss of every unit, for unit_means='ordered'",
                "totals of several units",
                Hint(
                    "Give the losses of the units in order, or leave out {}.",
                    Option("unit_means", "'ordered'"),
                ),
            )
        units, first = feedback.total, np.arange(feedback.seen.shape[1] + 1)
    number = NO_NUMBERS if feedback.number is None else feedback.number
    return np.ascontiguousarray(units, dtype=float), first, number


def _upper(actions: ActionSet) -> FloatArray:
    return np.ones(actions.d) if actions.upper is None else np.array(actions.upper, dtype=float)
