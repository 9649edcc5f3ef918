"""Explanation of a play: how it differs from the best plan by present beliefs, and why."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from multiplay.kernels.moments import SEEN
from multiplay.learner.allowance import WANTED, breaks_promise
from multiplay.learner.engine import Engine
from multiplay.learner.plays import (
    AT_MOST,
    CLOSED,
    FIXED,
    INSTEAD,
    TO_LEARN,
    PendingState,
    Untried,
    Why,
    WhyRow,
)
from multiplay.learner.promises import is_held
from multiplay.learner.round_set import PlanLimits, RoundSet
from multiplay.learner.switching import changed_units
from multiplay.policies.index import ArmPolicy
from multiplay.types import BoolArray, FloatArray, IntArray

LEVEL = 0.95  # of intervals
UNCERTAIN = 0.1  # of the largest doubt: an arm with less is well known


def explain(engine: Engine, id: int) -> Why:
    """Return why a pending play differs from the best plan."""
    play, beliefs = engine.pending[id], engine.beliefs
    if play.today is None:
        round_set = engine.featured(play.round_set, None, default=True)
    else:
        round_set = engine.with_features(play.round_set, play.today)
    engine.check_believes(round_set)
    action, sign = play.action[0], round_set.actions.sign
    paid = engine.constraints.promises.paid(round_set, play.play)
    best = beliefs.best(round_set, paid)
    expected, of_best = (beliefs.expected(round_set, one, LEVEL) for one in (action, best))
    extra = sign * (expected.total - of_best.total)
    if not engine.explores(expected.total, of_best.total):
        best, of_best, extra = action, expected, 0.0
    believed = beliefs.of_round(round_set, LEVEL, np.maximum(action, best))
    rows = _rows(engine, round_set, action, best, believed)
    wanted = _wanted(play, round_set.actions.names)
    of_promises = engine.constraints.promises.prices_of(play.play), is_held(play.play)
    made = rows, expected, of_best, extra, engine.words, round_set.actions.sense
    switching, changed, cost = engine.constraints.switching, 0, 0.0
    if switching is not None:
        changed, cost = changed_units(play.play), switching.cost_of(play.play)
    first = breaks_promise(play.play)
    untried = _untried(engine, round_set, rows, extra)
    return Why(*made, wanted, *of_promises, changed, cost, first, untried=untried)


def _untried(
    engine: Engine, round_set: RoundSet, rows: Sequence[WhyRow], extra: float
) -> Untried | None:
    """Return what other arms teach about arms to learn of which no report counts, or None.

    All of these are believed to cost the same.
    """
    state, actions = engine.state, round_set.actions
    learned = [row for row in rows if row.reason == TO_LEARN]
    counts, index = state.moments.seen > SEEN, state.arms.index
    new = [row for row in learned if row.arm in index and not counts[index[row.arm]]]
    alike = state.features is None and state.ranges.alike and actions.affine
    if isinstance(state.policy, ArmPolicy) and state.policy.posterior.by_unit:
        alike = False  # each unit has a mean of its own
    if not (new and alike and counts.any()):
        return None
    row, place = new[0], actions.names.index(new[0].arm)
    worth = row.mean - actions.sign * extra / sum(one.units - one.best_units for one in learned)
    if not round_set.bounds.low[place] < worth < round_set.bounds.high[place]:
        return None
    below = engine.beliefs.probability_below(index[row.arm], worth)
    share = below if actions.sign > 0 else 1.0 - below
    return Untried(tuple(one.arm for one in new), row.low, row.high, worth, share)


def _wanted(play: PendingState, names: Sequence[str]) -> dict[str, int]:
    """Return the units that the policy wanted of arms of which the allowance left fewer."""
    action, more = play.action[0], play.memo.get(WANTED, play.action)[0]
    order = sorted(np.flatnonzero(more > action).tolist(), key=lambda i: int(action[i] - more[i]))
    return {names[i]: int(more[i]) for i in order}


def _rows(
    engine: Engine,
    round_set: RoundSet,
    action: IntArray,
    best: IntArray,
    believed: tuple[FloatArray, FloatArray, FloatArray],
) -> tuple[WhyRow, ...]:
    state, actions = engine.state, round_set.actions
    limits, uncertain = round_set.limits, _uncertain(action - best, believed, actions.sign)
    limited = {*limits.at_most, *limits.exclude, *limits.fixed}
    units, index, rows = state.statistics.columns["units"], state.arms.index, list[WhyRow]()
    for i, arm in enumerate(actions.names):
        count, of_best = int(action[i]), int(best[i])
        reason = _limit(limits, arm, count, of_best) if arm in limited else ""
        if not reason and count != of_best:
            reason = TO_LEARN if uncertain[i] else INSTEAD
        if count or of_best or reason:
            seen = int(units[index[arm]]) if arm in index else 0
            mean, low, high = (float(one[i]) for one in believed)
            rows.append(WhyRow(arm, count, of_best, mean, low, high, seen, reason))
    unmet, of_best_unmet = actions.unmet(action), actions.unmet(best)
    for name, count in unmet.items():
        other = of_best_unmet[name]
        if count or other:
            cost = actions.sign * actions.penalty
            reason = "" if count == other else INSTEAD
            rows.append(WhyRow(name, count, other, cost, cost, cost, 0, reason))
    return tuple(rows)


def _limit(limits: PlanLimits, arm: str, units: int, best_units: int) -> str:
    """Return the limit that determines the units of an arm; "" if none does."""
    most = 0 if arm in limits.exclude else limits.at_most.get(arm)
    if arm in limits.fixed:
        return FIXED
    if most == 0:
        return CLOSED
    return AT_MOST if units == best_units == most else ""


def _uncertain(
    more: IntArray, believed: tuple[FloatArray, FloatArray, FloatArray], sign: float
) -> BoolArray:
    """Return the arms with more units that are uncertain, compared with all that differ.

    The doubt of an arm with more units is what they cost less at the better end of its interval;
    of one with fewer units, what they would cost more at the worse end. It is infinite where the
    interval is not known.
    """
    mean, low, high = believed
    better, worse = (mean - low, high - mean) if sign > 0 else (high - mean, mean - low)
    doubt = np.abs(more) * np.where(more > 0, better, worse)
    doubt = np.where(np.isnan(doubt), np.inf, doubt)
    largest = doubt[more != 0].max(initial=0.0)
    uncertain: BoolArray = (more > 0) & (doubt > 0.0) & (doubt >= UNCERTAIN * largest)
    return uncertain
