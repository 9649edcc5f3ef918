"""Beliefs about the next round, where losses may persist from round to round."""

from __future__ import annotations

import math

import numpy as np

from multiplay.beliefs.posterior import Posterior, student
from multiplay.kernels import persistence as kernels
from multiplay.kernels.persistence import LONG_RUN, MEAN, VARIANCE
from multiplay.types import Arrays, FloatArray, IntArray

NORMAL = np.array([np.inf])  # degrees of freedom


class PersistingPosterior:
    r"""Means of the next round: a mixture of ``Posterior`` and of the models that persist.

    With the weight :math:`\pi_g` of model g, and 0 for "nothing persists" and changes, whose mean
    :math:`m_{0i}` and variance :math:`V_{0i}` are those of ``Posterior``,

    .. math::

        m_i = \sum_g \pi_g m_{gi}, \qquad
        V_i = \sum_g \pi_g \bigl(V_{gi} + (m_{gi} - m_i)^2\bigr),

    and intervals are :math:`m_i \mp z \sqrt{V_i}`. Those of a plan have the variances
    :math:`\sum_i a_i^2 V_{gi}`.

    Parameters
    ----------
    posterior
        That of the reports since changes.
    state
        The state of a learner with ``Persists``.
    """

    def __init__(self, posterior: Posterior, state: Arrays) -> None:
        self._posterior = posterior
        filters, traces, gaps = (state[name][0] for name in ("filters", "traces", "gaps"))
        weights = np.empty(kernels.ROWS)
        found = np.zeros((kernels.JUMPS, len(filters), 3))
        kernels.believe(filters, traces, gaps, float(state["t"][0]), weights, found)
        self._models = 1 + np.flatnonzero(weights[1 : kernels.JUMPS])
        self._found = found[self._models]
        own = weights[self._models]
        self.share = float(own.sum())
        self._weights = np.append(own, 1.0 - self.share)  # the last one: nothing persists

    def _mixed(self, values: FloatArray, rest: FloatArray) -> FloatArray:
        """Return the mean of values of models, and of those where nothing persists."""
        mixed: FloatArray = self._weights @ np.concatenate([values, rest[None]])
        return mixed

    @property
    def mean(self) -> FloatArray:
        """The believed mean loss of a unit of each arm in the next round."""
        return self._mixed(self._found[:, :, MEAN], self._posterior.mean)

    @property
    def long_run(self) -> FloatArray:
        """The mean to which the losses of each arm return."""
        return self._mixed(self._found[:, :, LONG_RUN], self._posterior.mean)

    @property
    def spread(self) -> FloatArray:
        """The standard deviation of the loss of a unit of each arm within a round."""
        return self._posterior.spread

    @property
    def mean_unseen(self) -> float:
        """The believed mean loss of an arm that was never seen, as a share of its range."""
        return self._posterior.mean_unseen

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return intervals of the means of the next round."""
        if not self.share:
            return self._posterior.interval(level)
        mean, z = self.mean, float(student(NORMAL, level)[0])
        low, high = self._posterior.interval(level)
        means = np.concatenate([self._found[:, :, MEAN], self._posterior.mean[None]])
        own = self._mixed(self._found[:, :, VARIANCE], ((high - low) / (2 * z)) ** 2)
        width = z * np.sqrt(own + self._weights @ (means - mean) ** 2)
        return mean - width, mean + width

    def probability_below(self, place: int, loss: float) -> float:
        """Return the probability that the mean loss of an arm in the next round is below a loss."""
        from scipy.special import ndtr

        own = self._found[:, place]
        below = ndtr((loss - own[:, MEAN]) / np.sqrt(own[:, VARIANCE]))
        return float(
            self._weights @ np.append(below, self._posterior.probability_below(place, loss))
        )

    def half_width(self, places: IntArray, units: FloatArray, level: float) -> float:
        """Return half of the width of the interval of the mean cost of a plan."""
        rest = self._posterior.half_width(places, units, level)
        if not self.share:
            return rest
        z, seen = float(student(NORMAL, level)[0]), places >= 0
        a, found = units[seen], self._found[:, places[seen]]
        costs = np.append(found[:, :, MEAN] @ a, self._posterior.mean[places[seen]] @ a)
        own = np.append(found[:, :, VARIANCE] @ a**2, (rest / z) ** 2)
        return z * math.sqrt(self._weights @ (own + (costs - self._weights @ costs) ** 2))
