"""Changes of the mean losses of arms, as the hypotheses of their moments tell them."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from multiplay.kernels.hypotheses import (
    CONFIRMED,
    FROM,
    H_MEAN,
    H_N,
    LAST_ROUND,
    LENGTH,
    MOVED,
    SETTLED,
    SHARED,
    SINCE,
    START,
    STEPS,
    WEIGHT,
)
from multiplay.types import FloatArray

LIKELY = 0.5  # weight of a change that is told before it is confirmed
FIRST = 2  # t of the first report: 1 before it


class ArmChange(NamedTuple):
    """A change of the mean loss of an arm, or of several arms at once.

    Attributes
    ----------
    arms : tuple of int
        The numbers of the arms.
    since : int
        The round after which the new mean holds: that of the hypothesis with the largest weight, or
        the first of several changes in one direction.
    before, after : float
        The mean before, and since then.
    units : float
        The number of units since the last change.
    sure : float
        The weight of the hypotheses that begin then or later: a probability under the model.
    acted : bool
        Whether older reports no longer count in beliefs: the change is confirmed, or nearly so.
    """

    arms: tuple[int, ...]
    since: int
    before: float
    after: float
    units: float
    sure: float
    acted: bool


def changes_of(hypotheses: FloatArray, marks: FloatArray) -> list[ArmChange]:
    """Return the last change of each arm that has one; a change that arms share is told once.

    ``hypotheses`` and ``marks`` are those of all arms, see ``multiplay.kernels.hypotheses``.
    """
    found, shared = [], defaultdict(list)
    for arm in np.flatnonzero(marks[:, LENGTH] > 0):
        change = _change_of(int(arm), hypotheses[arm, : int(marks[arm, LENGTH])], marks[arm])
        if change is None:
            continue
        if not (marks[arm, SHARED] and change.since < marks[arm, CONFIRMED]):
            found.append(change)
        elif marks[arm, LAST_ROUND] >= marks[arm, SHARED]:  # otherwise it was only taken to move
            shared[marks[arm, SHARED]].append(change)
    return sorted(found + [_together(group) for group in shared.values()])


def _change_of(arm: int, hypotheses: FloatArray, marks: FloatArray) -> ArmChange | None:
    """Return the change of one arm: one that is likely, or the last that is confirmed."""
    oldest, confirmed = hypotheses[0], marks[STEPS] > 0
    told = max(oldest[START], marks[CONFIRMED] if confirmed else 0.0)
    heaviest, sure = _heaviest(hypotheses, np.inf)
    n = oldest[H_N] - heaviest[H_N]
    if heaviest[START] > told and sure > LIKELY and n > 0:
        before = (oldest[H_N] * oldest[H_MEAN] - heaviest[H_N] * heaviest[H_MEAN]) / n
        since, after, units = _facts(heaviest)
        return ArmChange((arm,), since, float(before), after, units, sure, sure >= SETTLED)
    if not confirmed:
        return None
    heaviest, sure = _heaviest(hypotheses, told)
    since, after, units = _facts(heaviest)
    if marks[STEPS] > 1:
        since = int(max(marks[SINCE] - FIRST, 0))
    elif marks[SHARED]:
        since = int(marks[SHARED] - FIRST)
    if heaviest[START] < marks[SHARED]:  # its past moved with that of other arms
        units = 0.0
    return ArmChange((arm,), since, float(marks[FROM]), after, units, sure, acted=True)


def _heaviest(hypotheses: FloatArray, last: float) -> tuple[FloatArray, float]:
    """Return the heaviest hypothesis that begins by ``last``, and the weight since it begins."""
    starts, weights = hypotheses[:, START], hypotheses[:, WEIGHT]
    heaviest = hypotheses[np.where(starts <= last, weights, -np.inf).argmax()]
    return heaviest, float(weights[starts >= heaviest[START] - MOVED].sum())


def _facts(hypothesis: FloatArray) -> tuple[int, float, float]:
    """Return the last round before a hypothesis, its mean, and its number of units."""
    since = int(max(hypothesis[START] - FIRST, 0))
    return since, float(hypothesis[H_MEAN]), float(hypothesis[H_N])


def _together(group: list[ArmChange]) -> ArmChange:
    """Return the change that several arms share, with the average of their units."""
    units = np.array([one.units for one in group])
    weights = units if units.any() else np.ones(len(group))
    before, after = (
        float(np.average([getattr(one, name) for one in group], weights=weights))
        for name in ("before", "after")
    )
    arms = tuple(arm for one in group for arm in one.arms)
    since = min(one.since for one in group)
    sure = min(one.sure for one in group)
    return ArmChange(arms, since, before, after, float(units.sum()), sure, acted=True)
