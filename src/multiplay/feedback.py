"""Feedback of a play: the loss of every unit, of every arm, or of the whole round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np

from multiplay.errors import InvalidInput
from multiplay.kernels import bootstrap
from multiplay.kernels import units as kernels
from multiplay.kernels.moments import AVERAGE, KEPT, UNITS
from multiplay.random import Rng, Streams
from multiplay.types import FloatArray, IntArray

NO_UNITS = np.zeros((1, 0))
NO_FIRST = np.zeros(1, dtype=np.int64)


class Units(ABC):
    """The loss of every single unit, as a rule that draws the losses when they are read."""

    @abstractmethod
    def losses(self) -> FloatArray:
        """Return all losses, as ``Feedback.units``."""

    @abstractmethod
    def flip(self, seen: IntArray, rng: Streams) -> IntArray:
        """Return the sum over the units seen of Y_ij ~ Bernoulli(L_ij), for each arm."""


class Feedback:
    r"""The losses of one play in every trial; immutable.

    Of arm i, :math:`a_i` units were played, and their losses add up to

    .. math::

        \text{total}_i = \sum_{j=1}^{a_i} L_{ij}, \qquad
        \text{mean}_i = \frac{\text{total}_i}{a_i},

    or the same for the observed units, where some were not observed.

    Attributes
    ----------
    count : array of shape (trials, d)
        How many units of each arm were played, :math:`a_i`.
    total : array of shape (trials, d), or (trials, 1)
        The sum of the observed losses of each arm; or that of all arms, for full-bandit feedback.
    units, first
        Where every single loss is known: arm i keeps those seen at
        ``units[:, first[i] : first[i] + seen_i]``. Where there are too many, ``units`` is None.
    seen : array of shape (trials, d)
        How many units of each arm were seen, at most ``count``; all of them if not given.
    number : array of shape (trials, slots), or None
        The number of each unit of ``units`` among those of its arm that were played, from 1. None
        if the units seen are the first ones.

    Examples
    --------
    >>> play = Feedback(count=np.array([[2, 0, 1]]), total=np.array([[0.5, 0.0, 0.25]]))
    >>> play.mean
    array([[0.25, 0.  , 0.25]])
    >>> play.round_total
    array([0.75])
    """

    count: IntArray
    total: FloatArray
    first: IntArray | None
    seen: IntArray
    number: IntArray | None
    _units: FloatArray | Units | None

    def __init__(
        self,
        count: IntArray,
        total: FloatArray,
        units: FloatArray | Units | None = None,
        first: IntArray | None = None,
        seen: IntArray | None = None,
        number: IntArray | None = None,
    ) -> None:
        own = self.__dict__  # in every round: faster than setting the attributes one by one
        own["count"], own["total"], own["_units"], own["first"] = count, total, units, first
        own["seen"], own["number"] = count if seen is None else seen, number

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __repr__(self) -> str:
        fields = ["count", "total", "units", "first", "seen"]
        fields += ["number"] if self.number is not None else []
        return f"Feedback({', '.join(f'{name}={getattr(self, name)!r}' for name in fields)})"

    @property
    def units(self) -> FloatArray | None:
        """The loss of every single unit, (trials, slots), where it is known."""
        units = self._units
        if isinstance(units, Units):
            units = self.__dict__["_units"] = units.losses()
        return units

    @property
    def complete(self) -> bool:
        """Whether every unit was observed: no report of missing units was given."""
        return self.seen is self.count

    def extrapolated(self) -> Feedback:
        """Return totals where unobserved units have the mean loss of the arm's observed units.

        An arm without observed units counts as not played.

        Examples
        --------
        >>> some = Feedback(np.array([[4, 2]]), np.array([[0.5, 0.0]]), seen=np.array([[1, 0]]))
        >>> full = some.extrapolated()
        >>> full.count, full.total
        (array([[4, 0]]), array([[2., 0.]]))
        """
        if self.complete:
            return self
        count = np.where(self.seen >= 1, self.count, 0)
        return Feedback(count, self.mean * count)

    @property
    def single_units(self) -> tuple[FloatArray, IntArray]:
        """``units`` and ``first``; both are empty where the losses of units are not known."""
        units, first = self.units, self.first
        return (NO_UNITS, NO_FIRST) if units is None or first is None else (units, first)

    @property
    def reports(self) -> FloatArray:
        """The report of each arm, (trials, d, 5), see ``multiplay.kernels.moments``."""
        known: FloatArray | None = self.__dict__.get("_reports")  # a cached_property would lock
        if known is not None:
            return known
        reports = np.empty((*self.seen.shape, KEPT))
        bootstrap.summarise(self.seen, self.total, *self.single_units, reports)
        self.__dict__["_reports"] = reports
        return reports

    @classmethod
    def of_reports(cls, reports: FloatArray) -> Feedback:
        """Return the feedback of which only these ``reports`` are known."""
        units = reports[:, :, UNITS]
        made = cls(units.astype(np.int64), units * reports[:, :, AVERAGE])
        made.__dict__["_reports"] = reports
        return made

    @property
    def round_total(self) -> FloatArray:
        """The total loss of all units of the round, for each trial."""
        together: FloatArray = self.total.sum(axis=1)
        return together

    def round_only(self) -> Feedback:
        """Return full-bandit feedback: only the total of the round.

        Examples
        --------
        >>> arms = Feedback(count=np.array([[2, 0, 1]]), total=np.array([[0.5, 0.0, 0.25]]))
        >>> arms.round_only().total
        array([[0.75]])
        """
        return Feedback(self.count, self.round_total[:, None])

    @property
    def mean(self) -> FloatArray:
        """The average :math:`k_i` of the observed losses of arm i; 0 where none was observed."""
        if self.total.shape != self.count.shape:
            raise InvalidInput(
                "feedback",
                "the total of each arm",
                "the total of the round only",
                "Use a policy that learns from the round, such as LinTS.",
            )
        average: FloatArray = self.total / np.maximum(self.seen, 1)
        return average

    def flip(self, rng: Rng) -> IntArray:
        r"""Flip a coin for every observed unit, with its loss as probability of heads; sum by arm.

        .. math::

            \sum_j Y_{ij}, \qquad Y_{ij} \sim \mathrm{Bernoulli}(L_{ij})

        From totals, Binomial(seen, mean): the right mean, and at least the right variance.
        """
        units = self._units
        if units is None or self.first is None:
            return rng.binomial(self.seen, np.minimum(self.mean, 1.0))
        if not isinstance(units, np.ndarray):
            if isinstance(rng, Streams):
                return units.flip(self.seen, rng)
            units = units.losses()
        heads = np.empty(self.seen.shape, np.int64)
        if isinstance(rng, Streams):
            kernels.flip(rng.state, units, self.first, self.seen, heads)
        else:
            kernels.count_heads(units, self.first, self.seen, rng.random(units.shape), heads)
        return heads


def arm_totals(feedback: Feedback, state: FloatArray) -> FloatArray:
    """Return the total of each arm, for an array of the state with trials and arms.

    Kernels do not check the bounds of arrays: feedback with only the total of the round, or with
    other trials or arms, is refused here.
    """
    total = feedback.total
    if not state.shape == total.shape == feedback.seen.shape == feedback.count.shape:
        mean = feedback.mean  # raises where only the total of the round is known
        raise ValueError(f"feedback of shape {mean.shape} for a state of shape {state.shape}")
    return total
