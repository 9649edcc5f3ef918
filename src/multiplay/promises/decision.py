"""The plan of a play under promises: priced, and held to what the reserve allows."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from multiplay.promises.reserve import Reserve, ThriftyPlans, used_by
from multiplay.types import FloatArray, IntArray

DOUBLINGS = 8
BISECTIONS = 8
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
    low, high = 0.0, float(DOUBLINGS)
    for doublings in range(1, DOUBLINGS + 1):
        found = judged(plan_at(np.where(danger, base * 2.0**doublings, prices)))
        if found.stands:
            own, low, high = found._replace(held=True), doublings - 1.0, float(doublings)
            break
    else:
        return own
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        found = judged(plan_at(np.where(danger, base * 2.0**middle, prices)))
        if found.stands:
            own, high = found._replace(held=True), middle
        else:
            low = middle
    return own
