"""Pooled: moments of every arm, with a prior of the means and a noise that all arms share."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from multiplay.actions import ActionSet
from multiplay.kernels import pooled as kernels
from multiplay.kernels.moments import COLUMNS
from multiplay.posteriors.memories import MOMENTS
from multiplay.posteriors.moments import NOTHING, LossMoments
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray

NO_HYPOTHESES, NO_MARKS, *_ = NOTHING
NO_OTHERS = np.zeros((1, 0, COLUMNS))
OTHERS = "others"  # the state: moments of arms that are absent from a round, on one scale


@dataclass(frozen=True, repr=False)
class Pooled(LossMoments):
    r"""Beta posteriors, with a prior and a noise that are learned from all arms.

    A unit of arm i counts as :math:`1/\varphi_i` coins, where :math:`\varphi_i` is its noise
    relative to that of a coin of the same mean, by its own losses and those of all arms. With the
    average :math:`\bar{k}_i` and :math:`c_i` coins,

    .. math::

        \mu_i \sim \operatorname{Beta}\bigl(m c_0 + c_i \bar{k}_i,\;
            (1 - m) c_0 + c_i (1 - \bar{k}_i)\bigr),

    where m and :math:`c_0` follow from how far the averages of the arms are apart: see
    docs/pooling.md. An arm never seen has :math:`c_i = 0`: it is believed to be like the others.
    All arms of a learner count, also those that are absent from a round.

    Parameters
    ----------
    memory
        Which reports count.
    curiosity
        With ``Changes``: how far, as a share of the range, an idle arm is taken to have moved in
        1,000 rounds, even if no arm was ever seen to move.

    Examples
    --------
    >>> from multiplay import Composed, Learner, OptimisticQuantile, Pooled, PooledCTS, Transport
    >>> plans = Transport([1, 4, 5], [4, 6])
    >>> one = Learner(plans, Composed(Pooled(), OptimisticQuantile()))
    >>> one.ask().plan == Learner(plans, PooledCTS()).ask().plan
    True
    """

    pools: ClassVar[bool] = True

    def taught(self, state: Arrays, offset: FloatArray) -> Arrays:
        """Return the moments of absent arms, with their offset in their means."""
        rows = np.empty_like(state[MOMENTS])
        arrays = state.get("hypotheses", NO_HYPOTHESES), state.get("marks", NO_MARKS)
        kernels.absent(state[MOMENTS], *arrays, offset, rows)
        return {OTHERS: rows}

    def quantile(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        """Return an optimistic quantile of the mean loss of each arm, see ``OptimisticQuantile``.

        What was never seen may still come: until tails prove light, a quantile is moved towards the
        better end of the range.
        """
        theta = np.empty(state[MOMENTS].shape[:2])
        arguments = self.arguments(actions, state, rng)
        others = state.get(OTHERS, NO_OTHERS)
        kernels.draw(*arguments, others, float(self.curiosity), actions.sign, theta)
        return self.persist(actions, state, arguments, theta)
