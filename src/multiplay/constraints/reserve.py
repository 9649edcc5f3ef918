r"""The reserve of promises, plans that keep them for the remaining plays, and the plan it allows.

For weights :math:`\omega` of the promises, the thrifty plan of a set is the action a with the least
:math:`\sum_k \omega_k \langle c_k, a \rangle`. It depends on nothing that is learned. A list has
one thrifty plan for each remaining play, whose sum keeps all promises. If a list stands
before a play, the play of its own plan leaves the rest of the list: a list that stands once can
stand to the end.
"""

from collections.abc import Callable, Sequence
from copy import copy
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from multiplay.actions.base import owners, unit_numbers
from multiplay.constraints.prices import RemainingSet
from multiplay.constraints.terms import is_network
from multiplay.types import BoolArray, FloatArray, IntArray

STEPS = 8  # of each weight from 0 to 1
MOST_WEIGHTS = 50  # with more promises than a grid can have
SWEEPS = 2  # of a repair
FIRST_SWEEPS = 10  # of a new list
LIKELY = 2.6  # standard deviations of what plays on unknown sets need, which are kept back
PROBABLE = 1.645  # standard deviations that 95 % of normal numbers are below
SHARE = 0.5  # of the margin, by which prices are averaged over less
BETWEEN = 8  # steps from the plan that is best for a promise to that of another one
BEFORE = 1e10  # weight of a squared overshoot, relative to that of the next promise
KEPT = 1e-9  # of the scale of a promise, within which it is kept
DOUBLINGS = 8
BISECTIONS = 8
GROWTH = 3.0  # of a raise in each of these steps, where sets are not known
FIRST_PRICE = (
    0.01  # of the largest cost of a unit, for each mean amount: of a promise without price
)


@lru_cache(maxsize=8)
def weights(promises: int) -> FloatArray:
    """Return a grid of weights whose sum is 1, of shape (weights, promises).

    Examples
    --------
    >>> weights(1).tolist(), len(weights(2)), len(weights(3)), len(weights(5))
    ([[1.0]], 9, 45, 50)
    """
    if promises > 3:
        drawn = np.random.default_rng(promises).dirichlet(np.ones(promises), MOST_WEIGHTS)
        drawn[:promises] = np.eye(promises)
        return drawn
    whole = [one for one in product(range(STEPS + 1), repeat=promises) if sum(one) == STEPS]
    return np.array(whole) / STEPS


class ThriftyPlans(NamedTuple):
    """The thrifty plans of a set, and what they use.

    Attributes
    ----------
    plans : array of shape (weights, d)
        A plan for each row of ``weights``.
    use : array of shape (weights, promises)
        What each plan uses.
    """

    plans: IntArray
    use: FloatArray

    @classmethod
    def of(cls, one: RemainingSet, scale: FloatArray) -> "ThriftyPlans":
        """Return the thrifty plans; ``scale`` makes the amounts of the promises comparable."""
        omega = weights(len(scale)) / scale
        costs = np.zeros((len(omega), one.actions.d))
        for k in range(len(scale)):
            costs += omega[:, k, np.newaxis] * one.amounts[k]
        plans = one.actions.argmin(costs)
        return cls(plans, used_by(plans, one.amounts))

    def with_between(self, one: RemainingSet) -> "ThriftyPlans":
        """Return these and, on networks, plans between those of single promises."""
        actions, promises = one.actions, self.use.shape[1]
        if promises < 2 or not is_network(actions):
            return self
        ends = self.plans[weights(promises).argmax(axis=0)]
        pairs = [ends[[j, k]] for k in range(promises) for j in range(k)]
        shares = np.arange(1, BETWEEN) / BETWEEN
        near = np.concatenate([b + shares[:, np.newaxis] * (a - b) for a, b in pairs])
        owner, k = owners(actions.n), unit_numbers(actions.n)
        plans = actions.argmin_increasing(2.0 * (k - near[:, owner]) - 1.0)  # least squares
        more = used_by(plans, one.amounts)
        return ThriftyPlans(np.concatenate([self.plans, plans]), np.concatenate([self.use, more]))


def used_by(plans: IntArray, amounts: FloatArray) -> FloatArray:
    """Return what plans use of each promise, of shape (plans, promises)."""
    return np.stack([(plans * row).sum(axis=-1) for row in amounts], axis=-1)


class Reserve:
    """The thrifty plans of the remaining plays, from which lists are made.

    ``use`` has for every remaining play what its thrifty plans use, (plays, weights, promises), and
    ``order`` the promises by priority, where they cannot all be kept.
    """

    def __init__(
        self,
        use: FloatArray,
        scale: FloatArray,
        hard: BoolArray,
        order: IntArray | None = None,
    ) -> None:
        self.use, self.scale, self.hard, self.order = use, scale, hard, order
        self._priority = np.ones(len(scale))
        if order is not None:
            self._priority[order] = BEFORE ** -np.arange(len(order), dtype=float)

    @property
    def later(self) -> "Reserve":
        """The reserve of the plays after the first one."""
        return Reserve(self.use[1:], self.scale, self.hard, self.order)

    def slack(self, rest: FloatArray, over: BoolArray) -> FloatArray:
        """Return what the best list overshoots of the promises that are given up."""
        short = self.needed(self.new_list(rest)) - rest
        return np.where(over & self.hard, np.maximum(short, 0.0), 0.0)

    def new_list(self, rest: FloatArray) -> IntArray:
        """Return the best list that is found, from the best single weight on."""
        total = self.use.sum(axis=0)
        start = int(self._overshoot(total, rest).argmin())
        return self._improved(np.full(len(self.use), start), rest, FIRST_SWEEPS)

    def repaired(self, chosen: IntArray, rest: FloatArray) -> IntArray:
        """Return a list near to this one, with less overshoot if it has any."""
        return self._improved(chosen, rest, SWEEPS)

    def stands(self, chosen: IntArray, rest: FloatArray) -> bool:
        """Return whether a list keeps the hard promises."""
        over = self.needed(chosen) - rest
        return bool((over[self.hard] <= KEPT * self.scale[self.hard]).all())

    def needed(self, chosen: IntArray) -> FloatArray:
        """Return what a list uses."""
        needed: FloatArray = self.use[np.arange(len(chosen)), chosen].sum(axis=0)
        return needed

    def _improved(self, chosen: IntArray, rest: FloatArray, sweeps: int) -> IntArray:
        """Sweep over the plays; each takes the plan with which the list overshoots least."""
        chosen, total = chosen.copy(), self.needed(chosen)
        for _ in range(sweeps):
            before = chosen.copy()
            for s in range(len(chosen)):
                others = total - self.use[s, chosen[s]]
                over = self._overshoot(others + self.use[s], rest)
                best = int(over.argmin())
                if over[best] < over[chosen[s]]:
                    chosen[s] = best
                    total = others + self.use[s, best]
            if (chosen == before).all():
                break
        return chosen

    def _overshoot(self, totals: FloatArray, rest: FloatArray) -> FloatArray:
        """Return the squared overshoot of the hard promises, in units of their scale."""
        squared = np.zeros(totals.shape[:-1])
        for k in np.flatnonzero(self.hard):
            over = np.maximum((totals[..., k] - rest[k]) / self.scale[k], 0.0)
            squared += self._priority[k] * over**2
        return squared


class LikelyReserve:
    r"""What the remaining plays probably need, where some of their sets are not known.

    For weights :math:`\omega` of the promises, let :math:`h_s(\omega)` be the weighted use of the
    thrifty plan of set s. By the duality of linear programs, mixtures of plans that keep all
    promises exist if and only if :math:`\sum_s h_s(\omega) \le \langle \omega, \text{rest} \rangle`
    for all :math:`\omega`. For k plays on sets like n past ones, the sum has the mean
    :math:`k \cdot \text{mean}` and the standard deviation :math:`\text{sd} \sqrt{k (1 + k / n)}`.

    ``known`` and ``past`` have what thrifty plans use, (weights, promises) for each set, and
    ``unknown`` the number of plays on unknown sets for each promise. Only hard promises count.

    Attributes
    ----------
    rows : array of integers
        Which of all weights have only hard promises.
    omega : array of shape (weights, promises)
        These weights, for amounts as they are.
    need, spread : arrays of shape (weights,)
        Mean and standard deviation of the weighted use of all these plays.
    """

    def __init__(
        self,
        known: Sequence[FloatArray],
        past: Sequence[FloatArray],
        unknown: IntArray,
        scale: FloatArray,
        hard: BoolArray,
    ) -> None:
        grid = weights(len(scale))
        self.rows = np.flatnonzero((grid[:, ~hard] == 0).all(axis=1))
        self.omega, self.order = (grid / scale)[self.rows], np.arange(len(scale))
        self.unknown, self.past = unknown, np.stack(past)
        self.need, variance = np.zeros(len(self.omega)), np.zeros(len(self.omega))
        for use in known:
            self.need += self._weighted(use).min(axis=0)
        before, n = 0, len(past)
        for plays in sorted({*unknown.tolist()} - {0}):
            least = self._weighted(self.past * (unknown >= plays)).min(axis=1)
            mean = least.sum(axis=0) / n
            self.need += (plays - before) * mean
            sums = ((least - mean) ** 2).sum(axis=0)
            variance += sums / max(n - 1, 1) * (plays - before) * (1 + plays / n)
            before = plays
        self.spread = np.maximum(np.sqrt(variance), KEPT)

    def in_order(self, order: IntArray) -> "LikelyReserve":
        """Return the reserve with priorities, by which the promises are considered for slack."""
        other = copy(self)
        other.order = order
        return other

    def slack(self, rest: FloatArray, over: BoolArray) -> FloatArray:
        """Return what promises that are given up must give up, so that others are probably kept."""
        slack, wanted = np.zeros(len(rest)), self.need + LIKELY * self.spread
        for place, k in enumerate(self.order):
            counts = (self.omega[:, self.order[place + 1 :]] == 0).all(axis=1)
            counts &= self.omega[:, k] > 0
            if over[k] and counts.any():
                short = (wanted - self._weighted(rest + slack))[counts] / self.omega[counts, k]
                slack[k] = max(float(short.max()), 0.0)
        return slack

    def without(self, use: FloatArray) -> "LikelyReserve":
        """Return the reserve without one of the known sets."""
        other = copy(self)
        other.need = self.need - self._weighted(use).min(axis=0)
        return other

    def margins(self, rest: FloatArray) -> FloatArray:
        """Return by how many standard deviations ``rest`` is enough, for each weight."""
        margins: FloatArray = (self._weighted(rest) - self.need) / self.spread
        return margins

    def margin(self, rest: FloatArray) -> FloatArray:
        """Return the least margin of all weights; infinite without hard promises."""
        least: FloatArray = self.margins(rest).min(axis=-1, initial=np.inf)
        return least

    def deviation(self, rest: FloatArray) -> FloatArray:
        """Return a standard deviation of what thrifty plans use, for the tightest weight.

        At most a share of the margin: prices for less than is needed say nothing.
        """
        margins, n = self.margins(rest), len(self.past)
        if not len(margins) or n < 2:
            return np.zeros(len(rest))
        tightest = int(margins.argmin())
        weighted = self._weighted(self.past)[:, :, tightest]
        least, use = weighted.min(axis=1), self.past[np.arange(n), weighted.argmin(axis=1)]
        off, off_use = least - least.sum() / n, use - use.sum(axis=0) / n
        together = (off_use * off[:, np.newaxis]).sum(axis=0) / (n - 1)
        alone = max(float(np.sqrt((off**2).sum() / (n - 1))), KEPT)
        share = min(SHARE * max(float(margins[tightest]), 0.0), 1.0)
        deviation: FloatArray = together / alone * np.sqrt(self.unknown * (1 + self.unknown / n))
        return share * deviation

    def _weighted(self, use: FloatArray) -> FloatArray:
        """Return the weighted sum of amounts along the last axis, for each weight."""
        total = np.zeros((*use.shape[:-1], len(self.omega)))
        for k in range(use.shape[-1]):
            total += use[..., k, np.newaxis] * self.omega[:, k]
        return total


# ------------------------------------------------------------ the plan of a play


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
    prices : array of shape (promises,)
        The prices at which the plan was found.
    """

    plan: IntArray
    held: bool
    chosen: IntArray
    stands: bool
    prices: FloatArray


PlanAt = Callable[[FloatArray], IntArray]  # the plan of the policy at some prices


class Known:
    """What a plan may use, where the sets of all remaining plays are known.

    ``today`` are the thrifty plans of this play, ``reserve`` those of the plays after it, ``rest``
    is what is left of each promise before this play, and ``amounts`` what its units use. ``before``
    is the list of the last play, of today and of the other plays.
    """

    def __init__(
        self,
        today: ThriftyPlans,
        reserve: Reserve,
        rest: FloatArray,
        amounts: FloatArray,
        before: IntArray | None = None,
    ) -> None:
        self.today, self.reserve, self.rest, self.amounts = today, reserve, rest, amounts
        use = np.concatenate([today.use[None], reserve.use])
        whole = Reserve(use, reserve.scale, reserve.hard, reserve.order)
        kept = (
            before is not None
            and before.max(initial=0) < use.shape[1]
            and whole.stands(before, rest)
        )
        self.listed = before if before is not None and kept else whole.new_list(rest)
        self.stands = whole.stands(self.listed, rest)

    def judged(self, plan: IntArray, prices: FloatArray) -> Decision:
        """Return a plan with what it leaves for the other plays."""
        left = self.rest - used_by(plan, self.amounts)
        chosen = self.reserve.repaired(self.listed[1:], left)
        return Decision(plan, False, chosen, self.reserve.stands(chosen, left), prices)

    def decide(self, plan_at: PlanAt, prices: FloatArray, dearest: float) -> Decision:
        """Return the plan at some prices, or one that the reserve of the other plays allows.

        ``dearest`` is the largest cost of a unit. If the plan leaves too little, the prices of the
        promises in danger are raised, as little as possible; if that does not help, the plan is the
        thrifty plan of the list.
        """
        best, hard = self.judged(plan_at(prices), prices), self.reserve.hard
        if best.stands or not hard.any():
            return best
        plan = self.today.plans[self.listed[0]]
        own = Decision(plan, True, self.listed[1:], self.stands, prices)
        if not self.stands:  # it cannot be kept: overshoot little
            return own
        left = self.rest - used_by(best.plan, self.amounts) - self.reserve.needed(best.chosen)
        danger = hard & (left < 0)
        least = np.maximum(prices, FIRST_PRICE * dearest / self.reserve.scale)
        base = np.where(danger, least, prices)

        def raised(x: float) -> Decision:
            higher = np.where(danger, base * 2.0**x, prices)
            return self.judged(plan_at(higher), higher)

        found = _least_raised(raised)
        return own if found is None else found


class Likely:
    """What a plan may use, where sets of other plays are not known.

    As ``Known``. The margin of the reserve is that of ``LIKELY``, or the largest one that a thrifty
    plan leaves.
    """

    def __init__(
        self, today: ThriftyPlans, reserve: LikelyReserve, rest: FloatArray, amounts: FloatArray
    ) -> None:
        self.reserve, self.rest, self.amounts = reserve, rest, amounts
        self.plans = today.plans[reserve.rows]
        margins = reserve.margin(rest - today.use[reserve.rows])
        self.best = int(margins.argmax()) if len(margins) else -1
        self.wanted = min(LIKELY, float(margins.max(initial=-np.inf))) - KEPT

    def judged(self, plan: IntArray, prices: FloatArray) -> Decision:
        """Return a plan, and whether it leaves what the other plays probably need."""
        stands = bool(self.reserve.margin(self.rest - used_by(plan, self.amounts)) >= self.wanted)
        return Decision(plan, False, np.zeros(0, dtype=np.int64), stands, prices)

    def decide(self, plan_at: PlanAt, prices: FloatArray, dearest: float) -> Decision:
        """Return the plan at some prices, or one that leaves what the other plays probably need.

        If the plan leaves less, prices are raised in the direction of the tightest weights, or else
        of the thrifty plan.
        """
        made = self.judged(plan_at(prices), prices)
        if made.stands:
            return made
        reserve = self.reserve
        left = self.rest - used_by(made.plan, self.amounts)
        tightest = int(reserve.margins(left).argmin())
        for omega in (reserve.omega[tightest], reserve.omega[self.best]):
            step = FIRST_PRICE * dearest * omega

            def raised(x: float, step: FloatArray = step) -> Decision:
                higher = prices + (GROWTH**x - 1) * step
                return self.judged(plan_at(higher), higher)

            found = _least_raised(raised)
            if found is not None:
                return found
        return self.judged(self.plans[self.best], prices)._replace(held=True)


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
