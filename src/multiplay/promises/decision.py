"""The plan of a play under promises: priced, and held to what the reserve allows."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from multiplay.promises.reserve import KEPT, LIKELY, LikelyReserve, Reserve, ThriftyPlans, used_by
from multiplay.types import FloatArray, IntArray

DOUBLINGS = 8
BISECTIONS = 8
GROWTH = 3.0  # of a raise in each of these steps, where sets are not known
FIRST_PRICE = (
    0.01  # of the largest cost of a unit, for each mean amount: of a promise without price
)


class Decision(NamedTuple):
    """The plan of a play.

    Attributes
    ----------
    plan : array of shape (d,)
        The units of each arm.
    held : bool
        Whether a promise changed the plan beyond its price.
    chosen : array of integers
        The list of the remaining plays, as numbers of weights; empty if there is none.
    stands : bool
        Whether the list keeps all hard promises.
    """

    plan: IntArray
    held: bool
    chosen: IntArray
    stands: bool


def decide(
    plan_at: Callable[[FloatArray], IntArray],
    prices: FloatArray,
    amounts: FloatArray,
    today: ThriftyPlans,
    reserve: Reserve,
    rest: FloatArray,
    dearest: float,
    before: IntArray | None = None,
) -> Decision:
    """Return the plan for some prices, or one that the reserve of the other plays allows.

    ``plan_at(prices)`` is the plan of the policy; ``rest`` is what is left of each promise before
    this play, and ``dearest`` the largest cost of a unit. ``before`` is the list of the last play,
    of today and of the other plays. If the plan leaves too little, the prices of the promises in
    danger are raised, as little as possible; if that does not help, the plan is the thrifty plan of
    the list.
    """
    whole = Reserve(np.concatenate([today.use[None], reserve.use]), reserve.scale, reserve.hard)
    listed = before if before is not None and whole.stands(before, rest) else whole.new_list(rest)

    def judged(plan: IntArray) -> Decision:
        left = rest - used_by(plan, amounts)
        chosen = reserve.repaired(listed[1:], left)
        return Decision(plan, False, chosen, reserve.stands(chosen, left))

    best = judged(plan_at(prices))
    if best.stands or not reserve.hard.any():
        return best
    stands = whole.stands(listed, rest)
    own = Decision(today.plans[listed[0]], True, listed[1:], stands)
    if not stands:  # it cannot be kept: overshoot little
        return own
    left = rest - used_by(best.plan, amounts) - reserve.needed(best.chosen)
    danger = reserve.hard & (left < 0)
    base = np.where(danger, np.maximum(prices, FIRST_PRICE * dearest / reserve.scale), prices)
    found = _least_raised(lambda x: judged(plan_at(np.where(danger, base * 2.0**x, prices))))
    return own if found is None else found


def decide_likely(
    plan_at: Callable[[FloatArray], IntArray],
    prices: FloatArray,
    amounts: FloatArray,
    today: ThriftyPlans,
    reserve: LikelyReserve,
    rest: FloatArray,
    dearest: float,
) -> Decision:
    """Return the plan for some prices, or one that leaves what the other plays probably need.

    As ``decide``, where sets of other plays are not known. The margin of the reserve is that of
    ``LIKELY``, or the largest one that a thrifty plan leaves. If the plan leaves less, prices are
    raised in the direction of the tightest weights, or else of the thrifty plan.
    """
    plans, use = today.plans[reserve.rows], today.use[reserve.rows]
    margins = reserve.margin(rest - use)
    best = int(margins.argmax()) if len(margins) else -1
    wanted = min(LIKELY, float(margins.max(initial=-np.inf))) - KEPT

    def judged(plan: IntArray) -> Decision:
        stands = bool(reserve.margin(rest - used_by(plan, amounts)) >= wanted)
        return Decision(plan, False, np.zeros(0, dtype=np.int64), stands)

    def raised(step: FloatArray, x: float) -> Decision:
        return judged(plan_at(prices + (GROWTH**x - 1) * step))

    made = judged(plan_at(prices))
    if made.stands:
        return made
    tightest = int(reserve.margins(rest - used_by(made.plan, amounts)).argmin())
    for omega in (reserve.omega[tightest], reserve.omega[best]):
        step = FIRST_PRICE * dearest * omega
        found = _least_raised(partial(raised, step))
        if found is not None:
            return found
    return judged(plans[best])._replace(held=True)


def _least_raised(at: Callable[[float], Decision]) -> Decision | None:
    """Return the decision that stands for the smallest raise that is found; None without one."""
    for raised in range(1, DOUBLINGS + 1):
        best = at(float(raised))
        if best.stands:
            break
    else:
        return None
    low, high = raised - 1.0, float(raised)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        found = at(middle)
        if found.stands:
            best, high = found, middle
        else:
            low = middle
    return best._replace(held=True)
