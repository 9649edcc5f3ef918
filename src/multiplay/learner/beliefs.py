"""Beliefs about the arms in the user's unit: mean losses, intervals, expected costs of plans."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiplay.actions.base import sums_by_unit
from multiplay.beliefs.persisting import PersistingPosterior
from multiplay.beliefs.posterior import Posterior
from multiplay.features import FeatureRows
from multiplay.kernels.moments import SEEN
from multiplay.learner.features import FeatureState, deviations
from multiplay.learner.plays import Estimate
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.ranges import Bounds
from multiplay.learner.round_set import RoundSet
from multiplay.policies.index import ArmPolicy
from multiplay.policies.regression import Regression, estimate
from multiplay.posteriors.by_unit import SUMS, OrderedUnits, UnitBeliefs
from multiplay.posteriors.like import recentred
from multiplay.posteriors.memories import FILTERS, TRACES
from multiplay.types import FloatArray, IntArray


class Beliefs:
    """What is believed of the arms, from the losses that were told; the same for every policy.

    Nothing here changes the state that is read.

    Parameters
    ----------
    state
        The policy with its state, and the moments of each arm.
    """

    def __init__(self, state: PolicyState) -> None:
        self.state = state
        self._posterior: tuple[int, Posterior | PersistingPosterior] | None = None

    @property
    def posterior(self) -> Posterior | PersistingPosterior:
        """The posterior of the present moments, computed once for each state."""
        moments = self.state.moments
        if self._posterior is None or self._posterior[0] != moments.version:
            others, sums = self.state.like_shares(), moments.sums
            like = None if others is None else recentred(others, sums)
            found = Posterior(sums, moments.common, *self._shares(), like)
            persisting = moments.persisting
            whole = found if persisting is None else PersistingPosterior(found, persisting)
            self._posterior = moments.version, whole
        return self._posterior[1]

    def _shares(self) -> tuple[FloatArray | float, FloatArray | None]:
        """Return the lowest losses and the widths of ranges as shares; None if all are alike."""
        ranges = self.state.ranges
        if ranges.alike:
            return 0.0, None
        low, high = ranges.of(self.state.arms.names)
        return (low - ranges.origin) / ranges.span, (high - low) / ranges.span

    def mean(self, round_set: RoundSet) -> FloatArray:
        """Return the believed mean loss of each arm of a round, as policies see losses.

        For a policy that learns from totals of rounds and was given nothing else, values of single
        arms have no meaning of their own: the loss of an action is <a, mean>. NaN if the policy has
        no such belief either.
        """
        if self.knows_rounds_only:
            return self._fitted()
        if self.state.features is not None:
            return self._policy_means(round_set)
        posterior, ranges, (low, high) = self.posterior, self.state.ranges, round_set.bounds
        believed = posterior.mean
        if not self._has_all_arms(round_set):
            unseen = posterior.mean_unseen
            if not ranges.alike:
                unseen = (low + unseen * (high - low) - ranges.origin) / ranges.span
            believed = self._select(round_set, believed, unseen)
        if ranges.alike:  # then a share of the span is what policies see
            return believed
        return (np.clip(ranges.from_shares(believed), low, high) - low) / ranges.scale

    def best(self, round_set: RoundSet, paid: FloatArray | float = 0.0) -> IntArray:
        """Return the best action of a round by the believed means, and what units cost beside."""
        by_unit = self._by_unit(round_set)
        if by_unit is None:
            return round_set.actions.best(self.mean(round_set) + paid)
        beside = np.broadcast_to(paid, len(round_set.actions.names))
        return round_set.actions.best_by_unit(by_unit.mean[0] + beside[:, None])

    def _by_unit(self, round_set: RoundSet) -> UnitBeliefs | None:
        """Return what is believed of each unit of a round, if the policy orders units."""
        policy = self.state.policy
        posterior = policy.posterior if isinstance(policy, ArmPolicy) else None
        if not isinstance(posterior, OrderedUnits):
            return None
        arrays, places = self.state.arms.arrays, self._places(round_set)
        of_round = {
            name: np.pad(array, [(0, 0), (0, 1)] + [(0, 0)] * (array.ndim - 2))[:, places]
            for name, array in arrays.items()
            if name in (SUMS, FILTERS, TRACES)  # an arm never seen has zeros
        }
        return posterior.believed_units(round_set.actions, arrays | of_round)

    def _of_units(self, by_unit: UnitBeliefs, action: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the sum of the means of the first units of each arm, and its deviation.

        Units beyond the K-th have the mean of the K-th.
        """
        single, together = by_unit.variance[0], by_unit.sum_variance[0]
        K, arms = single.shape[1], np.arange(len(action))
        last, more = np.clip(action, 1, K) - 1, np.maximum(action - K, 0)
        deviation = np.sqrt(together[arms, last]) + more * np.sqrt(single[:, -1])
        total = sums_by_unit(by_unit.mean, action[None])[0]
        return total, np.where(action > 0, deviation, 0.0)

    def _average_units(self, by_unit: UnitBeliefs, action: IntArray) -> FloatArray:
        """Return the mean of the units of each arm that an action plays, as policies see losses."""
        return self._of_units(by_unit, action)[0] / np.maximum(action, 1)

    @property
    def knows_rounds_only(self) -> bool:
        """Whether only totals of rounds were reported, and no loss of a single arm."""
        state = self.state
        return state.policy.learns_from == "round" and not state.moments.seen.any()

    def _fitted(self) -> FloatArray:
        """Return losses fitted to the totals of the rounds; NaN if there are too few totals."""
        policy, actions, arrays = self.state.policy, self.state.actions, self.state.arms.arrays
        if isinstance(policy, Regression) and arrays["seen"][0] == actions.spanning.s:
            losses: FloatArray = estimate(actions, arrays, np.zeros_like(arrays["z"]))[0]
            return losses
        return np.full(actions.d, np.nan)

    def means(self) -> FloatArray:
        """Return the believed mean loss of a unit of every arm ever seen, in the user's unit.

        NaN if only totals of rounds were told.
        """
        state = self.state
        if self.knows_rounds_only:
            return np.full(len(state.arms.names), np.nan)
        low, high = state.ranges.of(state.arms.names)
        return np.clip(state.ranges.from_shares(self.posterior.mean), low, high)

    def long_run(self) -> FloatArray:
        """Return the means to which losses return, where they persist; else the means."""
        posterior, state = self.posterior, self.state
        if self.knows_rounds_only or not isinstance(posterior, PersistingPosterior):
            return self.means()
        return np.clip(
            state.ranges.from_shares(posterior.long_run), *state.ranges.of(state.arms.names)
        )

    def table(self, level: float, given: Any = None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return means and both ends of their intervals, for all arms ever seen.

        ``given`` are the features at which arms are compared; those of the last play if None. NaN
        for arms without values of all features then.
        """
        state = self.state
        if state.features is None:
            return self.means(), *self.intervals(level)
        found = self._at_features(state.features, given)
        return self._ends(state.features, *found, state.ranges.of(state.arms.names), level)

    def of_round(
        self, round_set: RoundSet, level: float, action: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return means and both ends of their intervals, for the arms of a round.

        NaN if only totals of rounds were told, and for an arm never seen. Where units are ordered,
        the mean is that of the units that ``action`` plays; of the first one if it plays none.
        """
        by_unit = self._by_unit(round_set)
        if by_unit is not None:
            played = np.maximum(action, 1)
            total, deviation = (one / played for one in self._of_units(by_unit, played))
            width = deviations(level) * deviation
            least, scale = round_set.bounds.low, self.state.ranges.scale
            ends = (least + scale * one for one in (total, total - width, total + width))
            mean, low, high = (np.clip(one, *round_set.bounds) for one in ends)
            return mean, low, high
        places, features = self._places(round_set), self.state.features
        if self.knows_rounds_only:
            nothing = np.full(len(places), np.nan)
            return nothing, nothing, nothing
        if features is None:
            mean, low, high = (np.append(one, np.nan)[places] for one in self.table(level))
            return mean, low, high
        assert round_set.features is not None
        found = features.posterior(places, round_set.features.rows)
        return self._ends(features, *found, round_set.bounds, level)

    def _ends(
        self,
        features: FeatureState,
        mean: FloatArray,
        deviation: FloatArray,
        bounds: Bounds,
        level: float,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return means and both ends of their intervals, in the user's unit."""
        width = deviations(level) * deviation
        if features.misfit:
            width = np.full_like(width, np.nan)
        ends = (mean, mean - width, mean + width)
        values = [np.clip(self.state.ranges.from_shares(end), *bounds) for end in ends]
        return values[0], values[1], values[2]

    def intervals(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return intervals for the means of all arms ever seen, in the user's unit."""
        state = self.state
        bounds = state.ranges.of(state.arms.names)
        below, above = map(state.ranges.from_shares, self.posterior.interval(level))
        return np.clip(below, *bounds), np.clip(above, *bounds)

    def probability_below(self, place: int, loss: float) -> float:
        """Return how likely the mean loss of an arm is below one in the user's unit."""
        ranges = self.state.ranges
        return self.posterior.probability_below(place, (loss - ranges.origin) / ranges.span)

    def averages(self) -> FloatArray:
        """Return the average loss of a unit of every arm ever seen, in the user's unit.

        NaN if none counts: it was never seen, or the policy has forgotten all of it.
        """
        moments = self.state.moments
        average = self.state.ranges.from_shares(moments.mean)
        return np.where(moments.seen > SEEN, average, np.nan)

    def spreads(self) -> FloatArray:
        """Return the standard deviation of the loss of a unit of every arm, in the user's unit."""
        spreads: FloatArray = self.state.ranges.span * self.posterior.spread
        return spreads

    def cost(self, round_set: RoundSet, action: IntArray, phi: FloatArray | None = None) -> float:
        """Return the expected cost of an action; NaN if only totals of rounds were told.

        ``phi`` are the features of the arms that are played, where there are any.
        """
        if self.knows_rounds_only:
            return np.nan
        if self.state.features is not None and phi is not None:
            return self._cost_at_features(self.state.features, round_set, action, phi)
        by_unit = self._by_unit(round_set)
        if by_unit is not None:
            return round_set.cost(action, self._average_units(by_unit, action))
        return round_set.cost(action, self.mean(round_set))

    def expected(
        self,
        round_set: RoundSet,
        action: IntArray,
        level: float = 0.95,
        phi: FloatArray | None = None,
    ) -> Estimate:
        """Return the expected cost of an action, with an interval.

        Where the value of an action is not linear, the ends are its values at the ends of all arms.
        ``phi`` are the features of the arms that are played, if the set has none.
        """
        state = self.state
        if self.knows_rounds_only:
            return self._expected_of_rounds(round_set, action, level)
        if state.features is not None:
            return self._expected_at_features(round_set, action, level, phi)
        by_unit = self._by_unit(round_set)
        if by_unit is not None:
            return self._expected_by_unit(round_set, action, level, by_unit)
        total = round_set.cost(action, self.mean(round_set))
        if not round_set.actions.affine:  # but it grows with every mean
            ends = self.posterior.interval(level)
            low, high = (
                np.clip(self._select(round_set, end, unknown), 0.0, 1.0)
                for end, unknown in zip(ends, (0.0, 1.0), strict=True)
            )
            return Estimate(total, round_set.cost(action, low), round_set.cost(action, high))
        places, units, ranges = self._places(round_set), action.astype(float), state.ranges
        if not ranges.alike:
            low, high = round_set.bounds
            units *= (high - low) / ranges.span
        width = ranges.span * self.posterior.half_width(places, units, level)
        return self._within_bounds(round_set, action, total, width)

    def _within_bounds(
        self, round_set: RoundSet, action: IntArray, total: float, width: float
    ) -> Estimate:
        """Return a cost with an interval, cut to what the ranges of the arms allow."""
        least, most = (float(action @ end) for end in round_set.bounds)
        unmet = round_set.certain(action)
        low_end = min(max(total - width, least + unmet), total)
        return Estimate(total, low_end, max(min(total + width, most + unmet), total))

    def _expected_by_unit(
        self, round_set: RoundSet, action: IntArray, level: float, by_unit: UnitBeliefs
    ) -> Estimate:
        """Return the expected cost of an action whose units have means of their own."""
        total = round_set.cost(action, self._average_units(by_unit, action))
        deviation = float(np.sqrt((self._of_units(by_unit, action)[1] ** 2).sum()))
        width = self.state.ranges.scale * deviations(level) * deviation
        return self._within_bounds(round_set, action, total, width)

    def _expected_of_rounds(self, round_set: RoundSet, action: IntArray, level: float) -> Estimate:
        """Return the cost that a regression of the totals of rounds expects; NaN without one."""
        state = self.state
        total, width = round_set.cost(action, self._fitted()), np.nan
        if isinstance(state.policy, Regression) and not np.isnan(total):
            sigma = state.policy.doubt(state.actions, state.arms.arrays, action)
            width = state.ranges.scale * sigma * deviations(level)
        return Estimate(total, total - width, total + width)

    # ------------------------------------------------------------ with features

    def _policy_means(self, round_set: RoundSet) -> FloatArray:
        """Return the means at the features of a round, as policies see losses.

        They are not clipped on linear sets, where that would make cheap arms equal.
        """
        features, ranges = self.state.features, self.state.ranges
        assert features is not None
        assert round_set.features is not None
        mean, _ = features.posterior(self._places(round_set), round_set.features.rows)
        if not round_set.actions.affine:
            return np.clip(mean, 0.0, 1.0)
        return mean if ranges.alike else self._as_policies_see(mean, round_set)

    def _as_policies_see(self, shares: FloatArray, round_set: RoundSet) -> FloatArray:
        ranges = self.state.ranges
        losses: FloatArray = (ranges.from_shares(shares) - round_set.bounds.low) / ranges.scale
        return losses

    def _at_features(self, features: FeatureState, given: Any) -> tuple[FloatArray, FloatArray]:
        """Return means and deviations of all arms, as shares; NaN where features are not known."""
        names = self.state.arms.names
        mean, deviation = (np.full(len(names), np.nan) for _ in range(2))
        places, rows = features.rows_of(given, names)
        if rows is not None:
            mean[places], deviation[places] = features.posterior(places, rows)
        return mean, deviation

    def _cost_at_features(
        self, features: FeatureState, round_set: RoundSet, action: IntArray, phi: FloatArray
    ) -> float:
        """Return the cost of an action of a round that was asked for; all its arms are known."""
        (played,) = action.nonzero()
        mean, ranges = features.means(self._places(round_set)[played], phi), self.state.ranges
        if not round_set.actions.affine:
            return self._value(round_set, action, mean)
        low, high = (end[played] for end in round_set.bounds)
        units = np.minimum(np.maximum(ranges.from_shares(mean), low), high)
        return float(action[played] @ units) + round_set.certain(action)

    def _value(self, round_set: RoundSet, action: IntArray, mean: FloatArray) -> float:
        """Return the value of an action for the means of the arms that are played."""
        means = np.full(len(action), 0.5)
        means[action.nonzero()[0]] = np.clip(mean, 0.0, 1.0)
        return round_set.cost(action, means)

    def _expected_at_features(
        self,
        round_set: RoundSet,
        action: IntArray,
        level: float,
        phi: FloatArray | None,
    ) -> Estimate:
        """Return the cost of an action at the features of its round, with an interval."""
        state, (played,) = self.state, action.nonzero()
        features = state.features
        assert features is not None
        phi = round_set.phi(action) if phi is None else phi
        assert phi is not None
        rows, places = FeatureRows.of(phi), self._places(round_set)[played]
        low, high = (end[played] for end in round_set.bounds)
        mean, deviation = features.posterior(places, rows)
        units = np.clip(state.ranges.from_shares(mean), low, high)
        if not round_set.actions.affine:  # but it grows with every mean
            width = deviations(level) * deviation
            ends = [self._value(round_set, action, mean + sign * width) for sign in (0, -1, 1)]
            return Estimate(ends[0], *([np.nan] * 2 if features.misfit else ends[1:]))
        unmet, count = round_set.certain(action), action[played]
        total = float(count @ units) + unmet
        if features.misfit:
            return Estimate(total, np.nan, np.nan)
        width = state.ranges.span * deviations(level)
        width *= features.joint(places, rows, count)
        least, most = float(count @ low) + unmet, float(count @ high) + unmet
        low_end = min(max(total - width, least), total)
        return Estimate(total, low_end, max(min(total + width, most), total))

    def _places(self, round_set: RoundSet) -> IntArray:
        """Return the places of the arms of a round among all arms; -1 for an arm never seen."""
        names, arms = round_set.actions.names, self.state.arms
        if self._has_all_arms(round_set):
            return np.arange(len(names))
        return np.array([arms.index.get(name, -1) for name in names], dtype=np.int64)

    def _select(
        self, round_set: RoundSet, values: FloatArray, unknown: FloatArray | float
    ) -> FloatArray:
        """Return the values of the arms of a round; ``unknown`` for arms never seen."""
        if self._has_all_arms(round_set):
            return values
        places = self._places(round_set)
        return np.where(places >= 0, np.append(values, np.nan)[places], unknown)

    def _has_all_arms(self, round_set: RoundSet) -> bool:
        """Return whether the arms of a round are all arms ever seen, in order."""
        names, arms = round_set.actions.names, self.state.arms
        return names is arms.names or tuple(names) == arms.names
