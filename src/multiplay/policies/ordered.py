"""Means by unit, for diminishing returns: ``units="ordered"`` of some policies."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from multiplay.actions import ActionSet, Changing
from multiplay.actions.costs import Requirement
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.kernels import ordered as kernels
from multiplay.policies.base import LearnsFrom, Play, PolicyCost
from multiplay.policies.forgetting import Forgetting
from multiplay.random import Rng, stream_words
from multiplay.types import Arrays, FloatArray

ORDERED = "ordered"
SUMS = "by_unit"  # the state: N, average and squared deviations, (trials, d, K, 3)
TIE = 1e-12  # between pooled units: solvers are slow where many costs are equal
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


class UnitOrder(Forgetting):
    r"""Thompson sampling where the k-th unit of an arm has a mean of its own.

    With ``units="ordered"``, the mean :math:`\mu_{ik}` of the k-th unit of arm i is assumed not to
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

    The units of a round count as independent. Units beyond the K-th, the most units of an arm in
    the first set, count as the K-th.

    References
    ----------
    Carter, Kohn: On Gibbs sampling for state space models, Biometrika 1994. (The draws.)
    Lin, Dunson: Bayesian monotone regression using Gaussian process projection, Biometrika 2014.
    (Draws that are projected on increasing ones.) Both are cited from memory, and were not read
    again for this class; the tests have a dense version of the draws and of the projection.
    """

    units: str | None = None
    shared_seed: bool = False
    coins = False  # whether a loss becomes a coin, whose variance is known

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.units is None:
            return
        if not isinstance(self.units, str) or self.units != ORDERED:
            hint = "Use 'ordered' if the k-th unit of an arm has a mean of its own."
            raise InvalidInput("units", "'ordered', or nothing", repr(self.units), hint)
        seed, others = self.shared_seed, self.not_ordered()
        others |= {"window": self.window, "shared_seed": seed, "replan": self.replan}
        for name, value in others.items():
            if value:
                hint = f"Leave out {name}." + (" Use discount." if name == "window" else "")
                expected = "nothing beside units='ordered'"
                raise InvalidInput(name, expected, repr(value), hint)

    def not_ordered(self) -> dict[str, object]:
        """Return the settings that must be left out with ``units="ordered"``."""
        return {}

    @property
    def pseudo_units(self) -> float:
        """w, the units at each end of the range in the variance of a loss."""
        return 1.0

    # ------------------------------------------------------------ what the policy is

    @property
    def is_ordered(self) -> bool:
        """Whether the k-th unit of an arm has a mean of its own."""
        return self.units is not None

    @property
    def learns_from(self) -> LearnsFrom:  # type: ignore[override]
        """Single units, if they are ordered; else totals."""
        return "units" if self.is_ordered else "totals"

    @property
    def needs_linear(self) -> bool:  # type: ignore[override]
        """Whether the value of an action must be a sum over its units."""
        return self.is_ordered

    @property
    def restarts(self) -> bool:  # type: ignore[override]
        """Whether single arms can forget: logs of reports have no numbers of units."""
        return not self.is_ordered

    def requirements(self, actions: ActionSet) -> Iterator[Requirement]:
        """Yield the units, if each has a mean of its own: they are limited as arms are."""
        if self.is_ordered:
            most = actions.cost.arms.most if actions.cost else None
            for limit in (most, None):
                yield Requirement("policy", actions.copies, limit, "units for units='ordered'")
        yield from super().requirements(actions)

    def effort(self, actions: ActionSet) -> float:
        """Return the time of a round: with ordered units, that of each unit."""
        if not self.is_ordered:
            return super().effort(actions)
        return 2.0 * actions.copies * (self.cost or PolicyCost()).step

    # ------------------------------------------------------------ rounds

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play the best action for one draw, of the mean of each arm or of each unit."""
        theta = self.index(actions, state, rng)
        if theta is None:
            return self.choose_ordered(actions, state, rng)
        if self.replan is not None:
            return self.best_play(actions, state, theta)
        return Play(actions.best(theta))

    def start_ordered(self, actions: ActionSet, trials: int) -> Arrays:
        """Return the state before the first round, for a set that can be solved by unit."""
        if not isinstance(actions, Changing):
            actions.check_by_unit()
        return {SUMS: np.zeros((trials, actions.d, max(int(actions.n.max()), 1), kernels.COLUMNS))}

    def choose_ordered(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play the best action for one draw of the means of all units."""
        theta = self.draw_units(actions, state, rng)
        return Play(actions.best_by_unit(theta + actions.sign * TIE * np.arange(theta.shape[2])))

    def draw_units(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        """Return one draw of the means of all units, (trials, d, K)."""
        sums = state[SUMS]
        theta = np.empty(sums.shape[:3])
        words = stream_words(rng, len(sums))
        settings = _upper(actions), actions.sign, self.coins, self.pseudo_units
        kernels.draw(words, sums, actions._n, *settings, theta)
        return theta

    def absorb_ordered(self, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Add each loss to its unit; totals of one unit are its loss."""
        sums, units, first = state[SUMS], feedback.units, feedback.first
        if units is None or first is None:
            if (feedback.seen > 1).any() or feedback.total.shape != feedback.seen.shape:
                raise InvalidInput(
                    "feedback",
                    "the loss of every unit, for units='ordered'",
                    "totals of several units",
                    "Give the losses of the units in order, or leave out units='ordered'.",
                )
            units, first = feedback.total, np.arange(feedback.seen.shape[1] + 1)
        number = NO_NUMBERS if feedback.number is None else feedback.number
        words = stream_words(rng, len(sums))
        given = np.ascontiguousarray(units, dtype=float)
        kernels.learn(words, given, first, number, feedback.seen, self.coins, sums)

    def forget_ordered(self, state: Arrays, rounds: int) -> None:
        """Let old losses fade."""
        if self.discount is not None:
            state[SUMS][..., [kernels.N, kernels.SQUARES]] *= self.discount**rounds

    # ------------------------------------------------------------ beliefs

    def believed_units(self, actions: ActionSet, state: Arrays) -> UnitBeliefs:
        """Return what is believed of each unit."""
        sums = state[SUMS]
        found = UnitBeliefs(*(np.empty(sums.shape[:3]) for _ in range(3)))
        settings = _upper(actions), actions.sign, self.coins, self.pseudo_units
        kernels.estimate(sums, *settings, *found)
        return found

    def believed_ordered(self, state: Arrays) -> FloatArray:
        """Return the average of the losses of all units seen of each arm, with w at each end."""
        n, mean = state[SUMS][..., kernels.N], state[SUMS][..., kernels.MEAN]
        w = self.pseudo_units
        average: FloatArray = ((n * mean).sum(axis=2) + w) / (n.sum(axis=2) + 2 * w)
        return average


def _upper(actions: ActionSet) -> FloatArray:
    return np.ones(actions.d) if actions.upper is None else np.array(actions.upper, dtype=float)
