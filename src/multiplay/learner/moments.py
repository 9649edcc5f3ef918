"""Moments of the losses of each arm: those of the policy, while beliefs need the same bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from multiplay.beliefs.changes import ArmChange, changes_of
from multiplay.beliefs.restart import UNSEEN, Restart
from multiplay.feedback import Feedback
from multiplay.kernels import change
from multiplay.kernels import moments as kernels
from multiplay.kernels.hypotheses import (
    CONFIRMED,
    H_B,
    H_MEAN,
    H_N,
    LAST_ROUND,
    LENGTH,
    SHARED,
    SINCE,
    START,
    WEIGHT,
)
from multiplay.policies import Policy
from multiplay.policies.arm_state import ArmState
from multiplay.policies.index import ArmPolicy, expects_changes
from multiplay.posteriors.features import FeatureModel
from multiplay.posteriors.memories import COMMON, FILTERS, GAPS, MOMENTS, Changes, Keep, Memory
from multiplay.posteriors.moments import Moments
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray, IntArray

ALL = np.zeros(0, dtype=np.int64)
NO_NUMBERS: Rng = np.random.default_rng(0)  # moments draw none


class ArmReport(NamedTuple):
    """The losses that a round tells of each arm of its set.

    Attributes
    ----------
    played, slots : arrays of shape (d,)
        The number of units played, and of those that have an entry in ``units``.
    units : array
        The losses of single units, ordered by arm; NaN for a unit that was not seen.
    totals : array of shape (d,) or (0,)
        The total loss of all units of an arm, where single units are not known; otherwise NaN.
        Empty if there are none.
    shift, factor
        A loss counts as shift_i + factor times the given number; an empty shift is 0.
    """

    played: IntArray
    slots: IntArray
    units: FloatArray
    totals: FloatArray
    shift: FloatArray
    factor: float


class ArmMoments:
    """What beliefs read of the reports: nine sums for each arm, and two that all arms share.

    A policy that keeps the same sums has them in its state, which is read then: its ``COMMON`` are
    the two that only beliefs need. At the first report from which the policy learns other bits,
    they are copied, and have a state of their own from then on: where a round has other arms than
    all in order, or some arms have units and others totals. Ranges that differ by arm have another
    unit from the beginning.

    Attributes
    ----------
    memory : Memory
        That of the policy; ``Changes()`` if the policy forgets nothing.
    follows : bool
        Whether an arm forgets the reports before a change.
    own : dict of arrays, or None
        The state over all arms; None while it is that of the policy.
    version : int
        Counts changes, for values that are computed once.
    """

    def __init__(self, policy: Policy, arms: ArmState, alike: bool) -> None:
        self.memory = memory_of_beliefs(policy)
        self._posterior, self.follows = Moments(self.memory), self.memory.follows
        self.version = 0
        self._arms = arms
        self._settled: tuple[int, FloatArray] | None = None
        self.own: Arrays | None = None
        if alike and _keeps_moments(policy, arms.arrays):
            arms.arrays[COMMON] = np.zeros((1, 2))
        else:
            self.own = self._start(len(arms.names))

    def _start(self, arms: int) -> Arrays:
        empty = self.memory.start(self._posterior, 1, arms)
        return empty | {COMMON: np.zeros((1, 2))}

    @property
    def _state(self) -> Arrays:
        return self._arms.arrays if self.own is None else self.own

    @property
    def sums(self) -> FloatArray:
        """The nine sums of each arm, of the reports that count.

        Where changes are followed, these are the reports since a change that is confirmed, or has
        a weight of at least 0.95: an arm that is no longer played confirms nothing.
        """
        state = self._state
        sums: FloatArray = state[MOMENTS][0]
        if not self.follows:
            return sums
        if self._settled is None or self._settled[0] != self.version:
            settled = np.empty_like(sums)
            change.settle(sums, state["hypotheses"][0], state["marks"][0], settled)
            self._settled = self.version, settled
        return self._settled[1]

    @property
    def common(self) -> FloatArray:
        """The two sums that all arms share."""
        common: FloatArray = self._state[COMMON][0]
        return common

    @property
    def persisting(self) -> Arrays | None:
        """The state of losses that may persist; None if they are not taken to."""
        return self._state if FILTERS in self._state else None

    @property
    def seen(self) -> FloatArray:
        """The units of each arm that count."""
        return self.sums[:, kernels.N]

    @property
    def mean(self) -> FloatArray:
        """The average loss of each arm; 0 for an arm never seen."""
        return self.sums[:, kernels.MEAN]

    def changes(self) -> list[ArmChange]:
        """Return the last change of each arm that has one; none if changes are not followed."""
        if not self.follows:
            return []
        return changes_of(self._state["hypotheses"][0], self._state["marks"][0])

    @property
    def starts(self) -> FloatArray | None:
        """The first round of each arm whose report counts, ``UNSEEN`` if there is none.

        None if arms do not forget by themselves.
        """
        if not self.follows:
            return None
        begin = self._state["hypotheses"][0, :, 0, START] - 1.0  # t is 1 before the first round
        return np.where(self._state["marks"][0, :, LENGTH] > 0.0, begin, UNSEEN)

    # ------------------------------------------------------------ reports

    def separate(self) -> None:
        """Keep a state of their own from now on: the policy will learn other bits."""
        if self.own is None:
            arrays = self._arms.arrays
            self.own = {name: arrays[name].copy() for name in self._start(0)}
            del arrays[COMMON]

    def grow(self, arms: int) -> None:
        """Add new arms at the end, up to this number; the policy has added them."""
        if self.own is not None:
            fresh = self._start(arms - self.own[MOMENTS].shape[1])
            for name in self.own.keys() - {COMMON, GAPS, "t"}:
                self.own[name] = np.concatenate([self.own[name], fresh[name]], axis=1)
        self.version += 1

    def pass_round(self) -> None:
        """Let a round pass before its report is added; the policy has done so."""
        if self.own is not None:
            if self.memory.forgets:
                self.memory.forget(self._posterior, self.own, 1)
            if "t" in self.own:
                self.own["t"] += 1

    def add(self, places: IntArray | None, report: ArmReport, feedback: Feedback) -> FloatArray:
        """Add the report of a round; its arms are at ``places``, or all arms in order if None.

        Return the reports of all arms. ``feedback`` is what the policy has learned.
        """
        self.version += 1
        if self.own is None:
            learned: FloatArray = feedback.reports[0]
            return learned
        reports = np.zeros((self.own[MOMENTS].shape[1], kernels.KEPT))
        kernels.summarise(ALL if places is None else places, *report, reports)
        known = Feedback.of_reports(reports[None])
        self.memory.learn(self._posterior, self.own, known, NO_NUMBERS)
        return reports

    def restart(self, restart: Restart) -> None:
        """Let only the reports of a restart count of its arms; the policy does so too."""
        if self.own is not None:
            self.memory.restart(self._posterior, self.own, restart)
        self.version += 1

    # ------------------------------------------------------------ files

    def restore(self, own: Arrays, of_policy: Arrays) -> None:
        """Set the state of a file: ``own``, or that of the policy if this is empty."""
        arms, found = len(self._arms.names), own or of_policy
        for name, fresh in self._start(arms).items():
            good = found[name].shape == fresh.shape and np.isfinite(found[name]).all()
            if not good or not (own or self.own is None):
                raise ValueError("it holds the moments of a different learner")
        if own:
            self._arms.arrays.pop(COMMON, None)
            self.own = {name: array.copy() for name, array in own.items()}
        self.version += 1

    def restore_older(self, arrays: Arrays, rounds: int) -> None:
        """Set the state of a file of format 4 or 5, which has no trials and counts from 0."""
        found = {name: array[None] for name, array in arrays.items()}
        found |= {MOMENTS: found["sums"], "t": np.array([rounds + 1])}
        if self.follows:
            hypotheses, marks = (found[name].copy() for name in ("hypotheses", "marks"))
            length = marks[..., LENGTH]
            hypotheses[..., START] += np.arange(hypotheses.shape[2]) < length[..., None]
            marks[..., LAST_ROUND] += length > 0.0
            for column in (SINCE, CONFIRMED, SHARED):
                marks[..., column] += marks[..., column] > 0.0
            found |= {"hypotheses": hypotheses, "marks": marks}
        self.restore({name: found[name] for name in self._start(0)}, {})

    def restore_sums(
        self, units: FloatArray, total: FloatArray, squares: FloatArray, rounds: int
    ) -> None:
        """Set what sums of losses and of their squares tell: each unit counts as one report."""
        own, seen = self._start(len(units)), np.maximum(units, 1.0)
        mean = total / seen
        between = np.maximum(squares - total * mean, 0.0)
        columns = kernels.N, kernels.N2, kernels.A2, kernels.R, kernels.MEAN, kernels.B
        own[MOMENTS][0, :, columns] = np.stack([units, units, units, units, mean, between])
        if self.follows:
            oldest = START, WEIGHT, H_N, H_MEAN, H_B
            begun = units > 0
            own["hypotheses"][0, :, 0, oldest] = np.stack([begun, begun, units, mean, between])
            own["marks"][0, :, LENGTH] = begun
        if "t" in own:
            own["t"][:] = rounds + 1
        self.restore(own, {})


def _keeps_moments(policy: Policy, state: Arrays) -> bool:
    """Return whether a policy learns the moments of all reports, and forgets as beliefs do."""
    return isinstance(policy, ArmPolicy) and policy.restarts and MOMENTS in state


def memory_of_beliefs(policy: Policy) -> Memory:
    """Return how beliefs forget: as the policy does; they follow changes if it forgets nothing.

    Where units have means of their own, the average unit of an arm changes with the plans, and
    all reports count. A policy that reads features forgets coefficients, and not the reports of
    single arms.
    """
    if isinstance(policy, ArmPolicy) and not isinstance(policy.posterior, FeatureModel):
        memory = policy.posterior.memory
        if memory.forgets or not expects_changes(policy):
            return Keep() if memory.follows else memory
    return Changes()
