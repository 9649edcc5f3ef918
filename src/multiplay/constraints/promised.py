"""Promises in one round: what the remaining plays may use, and the plans at the prices of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from multiplay.actions import ActionSet
from multiplay.constraints.prices import (
    Prices,
    RemainingSet,
    averaged_prices,
    least_overshoot,
    overshot,
    paid_for,
    shadow_prices,
)
from multiplay.constraints.promise import Promise
from multiplay.constraints.reserve import (
    Decision,
    Known,
    Likely,
    LikelyReserve,
    Reserve,
    ThriftyPlans,
)
from multiplay.constraints.terms import Cheapest, Keeps, Term
from multiplay.types import BoolArray, FloatArray, IntArray

MOST_PAST = 40  # sets of past plays that stand for unknown ones
LEAST_DRAWS = 20  # of the costs of plays on unknown sets


class RemainingPeriod(NamedTuple):
    """What the remaining plays may use, for the promises that count.

    Attributes
    ----------
    sets : list of RemainingSet
        The sets of the remaining plays, known ones first.
    rest : array of shape (promises,)
        What is left of each, with the sign of an upper limit.
    known : int
        The number of sets that are known.
    reserve : Reserve or LikelyReserve
        The thrifty plans of all these plays, or what they probably need.
    first : ThriftyPlans or None
        Those of the first one.
    unknown : array of shape (promises,)
        The number of plays whose sets are not known.
    kept : array of shape (promises,)
        What the reserve keeps of each: ``rest``, and what promises that are given up leave to those
        before them.
    prices : Prices
        The shadow prices, and what is given up.
    """

    sets: list[RemainingSet]
    rest: FloatArray
    known: int
    reserve: Reserve | LikelyReserve
    first: ThriftyPlans | None
    unknown: IntArray
    kept: FloatArray
    prices: Prices

    def today(self, before: IntArray | None) -> Known | Likely:
        """Return what the first of these plays may use; ``before`` as in ``Known``."""
        first, amounts, reserve = self.first, self.sets[0].amounts, self.reserve
        assert first is not None
        if isinstance(reserve, LikelyReserve):
            return Likely(first, reserve.without(first.use), self.kept, amounts)
        of_today = ThriftyPlans(first.plans, reserve.use[0])
        return Known(of_today, reserve.later, self.kept, amounts, before)


class Promises(NamedTuple):
    """Promises that count, and how they are computed for a set.

    Attributes
    ----------
    promises : sequence of Promise
        The promises.
    amounts : callable
        Returns what a unit of each arm of a set counts, (promises, d), as upper limits.
    thrifty : callable
        Returns the thrifty plans of a set, for the scale of the promises.
    costs : callable
        Returns what a unit of each arm of a set costs in the remaining play of a number.
    draws : bool
        Whether these costs differ from play to play.
    """

    promises: Sequence[Promise]
    amounts: Callable[[ActionSet], FloatArray]
    thrifty: Callable[[ActionSet, FloatArray], ThriftyPlans]
    costs: Callable[[ActionSet, int], FloatArray]
    draws: bool

    def period(
        self, known: Sequence[ActionSet], pool: list[ActionSet], left: IntArray, rest: FloatArray
    ) -> RemainingPeriod:
        """Return the remaining plays: on known sets, and on sets like those of ``pool``.

        ``left`` is the number of plays of each promise, and ``rest`` what is left of it.
        """
        known = known[: int(left.max(initial=0))]
        unknown, sets = np.maximum(left - len(known), 0), list[RemainingSet]()

        def add(actions: ActionSet, weight: float, counts: BoolArray) -> None:
            amounts = self.amounts(actions) * counts[:, np.newaxis]
            sets.append(RemainingSet(actions, weight, self.costs(actions, len(sets)), amounts))

        for s, actions in enumerate(known):
            add(actions, 1.0, s < left)
        before, drawn = 0, pool * (-(-LEAST_DRAWS // len(pool)) if self.draws else 1)
        for plays in sorted({*unknown.tolist()} - {0}):
            for actions in drawn:
                add(actions, (plays - before) / len(drawn), unknown >= plays)
            before = plays
        scale = np.array([max(one.of.values()) or 1.0 for one in self.promises])
        hard = np.array([one.hard for one in self.promises])
        thrifty = [self.thrifty(one, scale) for one in known]
        rows = [plans.use * (s < left) for s, plans in enumerate(thrifty)]
        reserve: Reserve | LikelyReserve
        if unknown.any():
            past = [self.thrifty(one, scale).use for one in pool]
            reserve = LikelyReserve(rows, past, unknown, scale, hard)
        else:
            reserve = Reserve(np.stack(rows), scale, hard)
        found, kept = _prices(sets, rest, reserve), rest
        given_up = overshot(found.over, rest)
        if len(rest) > 1 and (given_up & hard).any():
            order = np.argsort(~hard, kind="stable")
            over = least_overshoot(sets, rest, order)
            given_up, rest = overshot(over, rest), rest + over
            if isinstance(reserve, LikelyReserve):
                reserve = reserve.in_order(order)
            else:
                thrifty = [
                    plans.with_between(one) for plans, one in zip(thrifty, sets, strict=True)
                ]
                rows = [plans.use * (s < left) for s, plans in enumerate(thrifty)]
                reserve = Reserve(np.stack(rows), scale, hard, order)
            found = _prices(sets, rest, reserve)._replace(over=over)
            kept = rest + reserve.slack(rest, given_up)
        first = thrifty[0] if known else None
        return RemainingPeriod(sets, rest, len(known), reserve, first, unknown, kept, found)


def _prices(
    sets: Sequence[RemainingSet], rest: FloatArray, reserve: Reserve | LikelyReserve
) -> Prices:
    """Return the shadow prices of what is left of each promise."""
    if isinstance(reserve, Reserve):
        return shadow_prices(sets, rest)
    return averaged_prices(sets, rest, reserve.deviation(rest))


class Promised(Term):
    """Promises in one round: the plan at their prices, or one that leaves enough for later plays.

    Parameters
    ----------
    rows
        For each row what its play may use, and the prices.
    dearest
        The largest cost of a unit.
    scale
        The unit of the prices, in the unit of the policy.

    Attributes
    ----------
    decisions : list of Decision
        What was decided for each row.
    """

    def __init__(
        self,
        rows: Sequence[tuple[Known | Likely, FloatArray]],
        dearest: float,
        scale: float = 1.0,
    ) -> None:
        self.rows, self.dearest, self.scale = rows, dearest, scale
        self.decisions = list[Decision]()

    def enforce(self, plan: IntArray, cheapest: Cheapest, keeps: Keeps) -> IntArray:
        """Return the plans at the prices, or at raised ones; later terms pay them too."""
        self.decisions, cheapest.paid = [], np.zeros(cheapest.proposal.shape)
        for row, (today, prices) in enumerate(self.rows):
            own = cheapest.rows(np.array([row]))

            def paid(prices: FloatArray, today: Known | Likely = today) -> FloatArray:
                return paid_for(today.amounts, prices)[np.newaxis] / self.scale

            def plan_at(
                prices: FloatArray,
                paid: Callable[[FloatArray], FloatArray] = paid,
                own: Cheapest = own,
            ) -> IntArray:
                found: IntArray = own.plan(paid(prices))[0]
                return found

            made = today.decide(plan_at, prices, self.dearest)
            self.decisions.append(made)
            cheapest.paid[row] = paid(made.prices)[0]
        return np.stack([made.plan for made in self.decisions])

    def holds(self, plans: IntArray) -> BoolArray:
        """Return which plans leave enough for the plays after them."""
        held = np.zeros(plans.shape[:2], dtype=bool)
        for row, (today, prices) in enumerate(self.rows):
            known = dict[bytes, bool]()
            for k, plan in enumerate(plans[row]):
                key = plan.tobytes()
                if key not in known:
                    known[key] = today.judged(plan, prices).stands
                held[row, k] = known[key]
        return held

    def final(self, plan: IntArray) -> list[Decision]:
        """Return the decisions for the plans that are played, (rows, d)."""
        return [
            made
            if np.array_equal(made.plan, own)
            else today.judged(own, prices)._replace(held=made.held)
            for made, own, (today, prices) in zip(self.decisions, plan, self.rows, strict=True)
        ]
