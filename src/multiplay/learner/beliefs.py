"""Beliefs about the arms: mean losses, their intervals, and the expected cost of a plan."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from multiplay.learner.plays import Estimate
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.round_set import RoundSet
from multiplay.policies import GenCTS
from multiplay.policies.averages import Averages
from multiplay.policies.forgetting import Forgetting
from multiplay.policies.regression import Regression, estimate
from multiplay.types import FloatArray, IntArray


class Beliefs:
    """Mean losses of the arms, in [0, 1], and expected costs of plans, in the user's unit.

    Nothing here changes the state that is read.

    Parameters
    ----------
    state
        The policy with its state, and the statistics of each arm.
    """

    def __init__(self, state: PolicyState) -> None:
        self.state = state

    def mean(self, round_set: RoundSet) -> FloatArray:
        """Return the believed mean loss of each arm of a round, in [0, 1].

        For a policy that learns from totals of rounds and was given nothing else, values of single
        arms have no meaning of their own: the loss of an action is <a, mean>. NaN if the policy has
        no such belief either.
        """
        if self.knows_rounds_only:
            return self._fitted()
        state = self.state
        believed = state.policy.believed(state.arms.arrays) if state.believes else None
        values = state.statistics.predicted() if believed is None else believed[0]
        return self._select(round_set, values, 0.5)

    @property
    def knows_rounds_only(self) -> bool:
        """Whether only totals of rounds were reported, and no loss of a single arm."""
        state = self.state
        return state.policy.learns_from == "round" and not state.statistics.columns["units"].any()

    def _fitted(self) -> FloatArray:
        """Return losses fitted to the totals of the rounds; NaN if there are too few totals."""
        policy, actions, arrays = self.state.policy, self.state.actions, self.state.arms.arrays
        if isinstance(policy, Regression) and arrays["seen"][0] == actions.spanning.s:
            losses: FloatArray = estimate(actions, arrays, np.zeros_like(arrays["z"]))[0]
            return losses
        return np.full(actions.d, np.nan)

    def interval(self, round_set: RoundSet, level: float) -> tuple[FloatArray, FloatArray]:
        """Return intervals for the means of the arms of a round, with probability ``level``."""
        low, high = self.intervals(level)
        return self._select(round_set, low, 0.0), self._select(round_set, high, 1.0)

    def intervals(
        self, level: float, places: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return intervals for the means of all arms ever seen, or of those at ``places``."""
        state = self.state
        if places is not None and not state.policy.changing:  # its state cannot be cut
            low, high = self.intervals(level)
            return low[places], high[places]
        c, arrays = state.statistics.at(places), state.arms.cut(places)
        units, total, squares = c["units"], c["total"], c["squares"]
        if self.forgets and isinstance(state.policy, Averages):  # squares are not discounted
            units, total = arrays["count"][0], arrays["sum"][0]
            squares = total
        low, high = empirical_bernstein(units, total, squares, level)
        posterior = state.policy.interval(arrays, level) if state.believes else None
        if posterior is None:
            return low, high
        # Bernoulli draws for a total vary too much: that posterior is too narrow
        lumped = (c["lumped"] > 0) & isinstance(state.policy, GenCTS)
        return np.where(lumped, low, posterior[0][0]), np.where(lumped, high, posterior[1][0])

    def averages(self, places: IntArray | None = None) -> FloatArray:
        """Return the average loss of a unit of every arm ever seen, in [0, 1]; NaN if unknown.

        Where the policy forgets, old losses are discounted here too. With ``places``, only those
        arms are read.
        """
        state = self.state
        believed = state.policy.believed(state.arms.arrays) if self.forgets else None
        columns = state.statistics.at(places)
        units, total = columns["units"], columns["total"]
        mean = total / np.maximum(units, 1)
        if believed is not None:
            mean = believed[0] if places is None else believed[0][places]
        return np.where(units > 0, mean, np.nan)

    @property
    def forgets(self) -> bool:
        """Whether the policy gives old losses less weight than recent ones."""
        policy = self.state.policy
        return isinstance(policy, Forgetting) and (policy.discount or policy.window) is not None

    def expected(self, round_set: RoundSet, action: IntArray, level: float = 0.95) -> Estimate:
        """Return the expected cost of an action, with an interval.

        Errors of different arms are independent, so their squares are added up. Where the value
        of an action is not linear, the ends are its values at the ends of all arms.
        """
        state, mean = self.state, self.mean(round_set)
        total = round_set.cost(action, mean)
        if self.knows_rounds_only:
            width = np.nan
            if isinstance(state.policy, Regression) and not np.isnan(total):
                sigma = state.policy.doubt(state.actions, state.arms.arrays, action)
                width = state.ranges.scale * sigma * NormalDist().inv_cdf((1 + level) / 2)
            return Estimate(total, total - width, total + width)
        low, high = self.interval(round_set, level)
        if not round_set.actions.linear:  # but it grows with every mean
            return Estimate(total, *(round_set.cost(action, end) for end in (low, high)))
        below, above = (
            state.ranges.scale * float(np.sqrt(((action * width) ** 2).sum()))
            for width in (np.maximum(mean - low, 0.0), np.maximum(high - mean, 0.0))
        )
        return Estimate(total, total - below, total + above)

    def _select(self, round_set: RoundSet, values: FloatArray, unknown: float) -> FloatArray:
        """Return the values of the arms of a round; ``unknown`` for arms never seen."""
        names, arms = round_set.actions.names, self.state.arms
        if names is arms.names or tuple(names) == arms.names:
            return values
        places = np.array([arms.index.get(name, -1) for name in names], dtype=np.int64)
        return np.where(places >= 0, np.append(values, unknown)[places], unknown)


def empirical_bernstein(
    seen: ArrayLike, total: ArrayLike, squares: ArrayLike, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of an interval for the mean of losses in [0, 1], for each arm.

    With N = ``seen`` losses, their average, their sample variance V and
    c = ln(4 / (1 - level)), it is the average -/+ (sqrt(2 V c / N) + 7 c / (3 (N - 1))), cut to
    [0, 1]; [0, 1] where N < 2. For N independent losses it contains the mean with a probability of
    at least ``level``, for every distribution. Where a policy chose N there is no such theorem, but
    the interval is wide enough in simulations.

    Parameters
    ----------
    seen, total, squares
        The number of losses, their sum, and the sum of their squares. Where the squares are not
        known, give ``total`` again: a loss in [0, 1] is at least its square, so the interval only
        becomes wider.
    level
        The probability, such as 0.95.

    References
    ----------
    Maurer, Pontil: Empirical Bernstein Bounds and Sample Variance Penalization, COLT 2009,
    theorem 4, for both sides.

    Examples
    --------
    >>> low, high = empirical_bernstein([1, 100, 100], [1.0, 50.0, 50.0], [1.0, 50.0, 25.0], 0.95)
    >>> low.round(2), high.round(2)
    (array([0.  , 0.25, 0.4 ]), array([1.  , 0.75, 0.6 ]))
    """
    seen, total = np.asarray(seen, dtype=float), np.asarray(total, dtype=float)
    c = np.log(4 / (1 - level))
    n = np.maximum(seen, 2.0)
    mean = total / n
    variance = np.maximum(np.asarray(squares) - total * mean, 0.0) / (n - 1)
    width = np.sqrt(2 * variance * c / n) + 7 * c / (3 * (n - 1))
    known = seen >= 2
    low = np.where(known, np.clip(mean - width, 0.0, 1.0), 0.0)
    high = np.where(known, np.clip(mean + width, 0.0, 1.0), 1.0)
    return low, high
