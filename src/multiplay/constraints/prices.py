"""Shadow prices of promises: the linear program of the remaining plays, by column generation.

The master problem is solved by a simplex method in plain loops over Python floats: the same bits on
every machine, which ``verify`` needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from multiplay.actions import ActionSet
from multiplay.actions.base import added, best_of, sums_by_unit
from multiplay.types import BoolArray, FloatArray, IntArray

GAP = 1e-4  # of the cost, at which columns suffice
MOST_COLUMNS = 60
PENALTY = 5.0  # times the dearest unit, for each unit of consumption
LARGER = 10.0  # factor of the penalties if limits that can be kept are overshot
MOST_PENALTIES = 6
FIRST = 1e4  # penalty of limits that are kept first: amounts differ by 1 / SMALL at most
SMALL = 0.01  # of the largest amount of an arm: less is no measure of a price
POINTS = (-1.282, -0.524, 0.0, 0.524, 1.282)  # quantiles 10 %, 30 %, ... of a normal number
OVER = 1e-7  # of the limit, within which it is kept
ROUNDING = 1e-9  # of a reduced cost or a step, below which it is 0
MOST_PIVOTS = 1000


class RemainingSet(NamedTuple):
    """A set that represents some of the remaining plays.

    Attributes
    ----------
    actions : ActionSet
        The set, in the user's unit.
    weight : float
        The number of plays that it stands for.
    means : array of shape (d,), or (d, K) by unit
        What a unit of each arm costs, in addition to the known costs of the set: its believed mean,
        or as the policy draws it.
    amounts : array of shape (promises, d)
        What a unit of each arm counts, with the sign of an upper limit.
    """

    actions: ActionSet
    weight: float
    means: FloatArray
    amounts: FloatArray

    def value(self, plan: IntArray) -> float:
        """Return what the units of a plan cost."""
        if self.means.ndim == 1:
            return float((plan * self.means).sum())
        return float(sums_by_unit(self.means[np.newaxis], plan[np.newaxis]).sum())


class Prices(NamedTuple):
    """Shadow prices and what the linear program expects.

    Attributes
    ----------
    prices : array of shape (promises,)
        What a unit of each promise is worth, 0 or more, in the user's unit.
    use : array of shape (promises,)
        What the remaining plays are expected to use.
    over : array of shape (promises,)
        The least overshoot, where the limits cannot all be kept.
    cost : float
        The expected cost of the remaining plays; for rewards their negative sum.
    """

    prices: FloatArray
    use: FloatArray
    over: FloatArray
    cost: float


def shadow_prices(sets: Sequence[RemainingSet], limits: FloatArray) -> Prices:
    r"""Return the shadow prices of what is left of each promise.

    .. math::

        \min_{a_s \in \operatorname{conv} \mathcal{A}_s} \;
        \sum_s w_s (\langle a_s, m_s \rangle + \text{known}(a_s))
        \quad \text{where} \quad \sum_s w_s \langle c_k, a_s \rangle \le \text{limit}_k

    A column of the master problem is a plan for every set, the best one for some prices: the
    oracle of each set is called once for each column.

    Examples
    --------
    >>> from multiplay import Budget
    >>> day = RemainingSet(Budget(4, [4, 4]), 10, np.array([1.0, 3.0]), np.array([[5.0, 1.0]]))
    >>> found = shadow_prices([day], np.array([120.0]))  # 200 for the cheapest plans, at least 40
    >>> found.prices, found.use, round(found.cost, 9)
    (array([0.5]), array([120.]), 80.0)
    """
    return _shadow_prices(Columns(sets), limits)


def averaged_prices(
    sets: Sequence[RemainingSet], limits: FloatArray, deviation: FloatArray
) -> Prices:
    """Return prices averaged over what the remaining plays may need.

    The limits are less by some multiples of ``deviation``, a standard deviation of the need. The
    price of a limit grows faster the less is left, so the mean is more than the price of the mean;
    and it changes less from play to play. All else is that of the limits themselves.
    """
    columns = Columns(sets)
    found, prices = _shadow_prices(columns, limits), np.zeros(len(limits))
    if not deviation.any():
        return found
    for point in POINTS:
        less = limits - point * deviation
        prices = prices + _generate(columns, less, columns.penalties, 1.0).prices
    return found._replace(prices=prices / len(POINTS))


def least_overshoot(
    sets: Sequence[RemainingSet], limits: FloatArray, order: IntArray
) -> FloatArray:
    """Return how far limits must be overshot, where those that come first in an order are kept.

    The overshoot of the first limit is the least possible, that of the second one the least with
    which the first one is not overshot further, and so on.

    Examples
    --------
    Units of the first arm are limited to 12 of 40, and 30 of them are promised:

    >>> from multiplay import Budget
    >>> amounts = np.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> day = RemainingSet(Budget(4, [4, 4]), 10, np.ones(2), amounts)
    >>> for order in ([0, 1], [1, 0]):
    ...     least_overshoot([day], np.array([12.0, -30.0]), np.array(order))
    array([ 0., 18.])
    array([18.,  0.])
    """
    columns, unit, over = Columns(sets), _reciprocals(sets), np.zeros(len(limits))
    for place, k in enumerate(order):
        penalties = np.zeros(len(limits))
        penalties[order[:place]] = FIRST * unit[order[:place]]
        penalties[k] = unit[k]
        scale = unit[k] * abs(float(limits[k]))
        over[k] = _generate(columns, limits + over, penalties, 0.0, scale).over[k]
    return over


class Columns:
    """Plans for all sets together, each the best one for some prices: their cost and use."""

    def __init__(self, sets: Sequence[RemainingSet]) -> None:
        self.sets = sets
        self.values, self.uses = list[float](), list[FloatArray]()
        self.penalties = _penalties(sets)

    def best(self, prices: FloatArray, cost: float) -> tuple[float, FloatArray]:
        """Return the cost and the use of the best plan of each set; see ``best_plan``."""
        value, use = 0.0, np.zeros(len(prices))
        for one in self.sets:
            plan = best_plan(one, prices, cost)
            value += one.weight * one.actions.sign * one.value(plan)
            if one.actions.has_known:
                value += one.weight * one.actions.sign * float(one.actions.known_cost(plan))
            use = use + one.weight * (one.amounts * plan).sum(axis=1)
        return value, use

    def add(self, value: float, use: FloatArray) -> None:
        """Keep a column."""
        self.values.append(value)
        self.uses.append(use)


def _shadow_prices(columns: Columns, limits: FloatArray) -> Prices:
    penalties, feasible = columns.penalties, None
    for _ in range(MOST_PENALTIES):
        found = _generate(columns, limits, penalties, 1.0)
        if not overshot(found.over, limits).any():
            return found
        if feasible is None:
            least = _generate(columns, limits, _reciprocals(columns.sets), 0.0)
            feasible = not overshot(least.over, limits).any()
        if not feasible:
            return found._replace(over=least.over)
        penalties = LARGER * penalties
    return found


def _generate(
    columns: Columns,
    limits: FloatArray,
    penalties: FloatArray,
    cost: float,
    scale: float | None = None,
) -> Prices:
    """Generate columns until no other one helps; the means count ``cost`` times.

    ``scale`` is that of the gap; the value itself if it is None.
    """
    values, uses = columns.values, columns.uses
    if not values:
        columns.add(*columns.best(np.zeros(len(limits)), cost))
    master = Master(limits.tolist(), penalties.tolist(), cost * values[0], uses[0].tolist())
    for value, use in zip(values[1:], uses[1:], strict=True):
        master.add(cost * value, use.tolist())
    duals = master.solve()
    if scale is None:
        scale = abs(values[0]) if cost else float((penalties * np.abs(limits)).sum())
    for _ in range(MOST_COLUMNS):
        prices = np.array(duals.prices)
        value, use = columns.best(prices, cost)
        bound = cost * value + float((prices * use).sum())
        if bound >= duals.value - GAP * max(scale, 1e-12):
            break
        columns.add(value, use)
        master.add(cost * value, use.tolist())
        duals = master.solve()
    return _mixture(duals, values, uses)


def _mixture(duals: Duals, values: list[float], uses: list[FloatArray]) -> Prices:
    use, cost = np.zeros(len(duals.prices)), 0.0
    for share, value, used in zip(duals.shares, values, uses, strict=True):
        use = use + share * used
        cost += share * value
    return Prices(np.array(duals.prices), use, np.array(duals.over), cost)


def best_plan(one: RemainingSet, prices: FloatArray, cost: float = 1.0) -> IntArray:
    """Return the cheapest action where units also pay the prices of what they use.

    Means and known costs of the set count unless ``cost`` is 0.
    """
    paid = paid_for(one.amounts, prices)
    if not cost:
        return one.actions.argmin(paid)
    plan: IntArray = best_of(one.actions, added(one.means, one.actions.sign * paid)[np.newaxis])[0]
    return plan


def paid_for(amounts: FloatArray, prices: FloatArray) -> FloatArray:
    """Return what a unit of each arm pays for what it uses."""
    paid: FloatArray = (amounts * prices[:, np.newaxis]).sum(axis=0)
    return paid


def _penalties(sets: Sequence[RemainingSet]) -> FloatArray:
    """Return the dearest unit per unit of consumption, times ``PENALTY``."""
    means = np.concatenate([np.abs(one.means).ravel() for one in sets])
    dearest = float(means.max(initial=0.0)) or 1.0
    return PENALTY * dearest * _reciprocals(sets)


def _reciprocals(sets: Sequence[RemainingSet]) -> FloatArray:
    """Return 1 over the smallest amount of each promise that is not negligible."""
    amounts = np.concatenate([np.abs(one.amounts) for one in sets], axis=1)
    largest = amounts.max(axis=1, initial=0.0)
    counts = (amounts > 0) & (amounts >= SMALL * largest[:, np.newaxis])
    counted = np.where(counts, amounts, np.inf)
    least = counted.min(axis=1, initial=np.inf)
    return np.where(np.isfinite(least) & (largest > 0), 1 / np.where(largest > 0, least, 1.0), 1.0)


def overshot(over: FloatArray, limits: FloatArray) -> BoolArray:
    """Return which limits are overshot by more than rounding."""
    beyond: BoolArray = over > OVER * np.maximum(np.abs(limits), 1.0)
    return beyond


# ------------------------------------------------------------ the master problem


class Duals(NamedTuple):
    """The solution of the master problem.

    Attributes
    ----------
    prices : list of float
        What one unit more of each limit saves, 0 or more.
    value : float
        The dual of the sum of weights: a new column helps if its cost at these prices is less.
    shares : list of float
        The weight of each column.
    over : list of float
        The overshoot of each limit.
    """

    prices: list[float]
    value: float
    shares: list[float]
    over: list[float]


class Master:
    r"""The best mixture of some columns under limits that may be overshot at a penalty.

    .. math::

        \min_{z, s, t \ge 0} \; \sum_j \text{cost}_j z_j + \sum_k \text{penalty}_k s_k
        \quad \text{where} \quad
        \sum_j \text{use}_{jk} z_j - s_k + t_k = \text{limit}_k, \quad \sum_j z_j = 1

    Columns are added one by one; each solution starts from the last basis.

    Examples
    --------
    >>> master = Master([4.0], penalties=[100.0], cost=1.0, use=[6.0])
    >>> master.add(3.0, [2.0])
    >>> duals = master.solve()
    >>> duals.prices, duals.shares
    ([0.5], [0.5, 0.5])
    """

    def __init__(
        self, limits: Sequence[float], penalties: Sequence[float], cost: float, use: Sequence[float]
    ) -> None:
        K = len(limits)
        self.limits, self.size = [*limits, 1.0], K + 1
        self.columns: list[list[float]] = []  # of all variables: s, t, then z
        self.costs: list[float] = []
        for sign, of in ((-1.0, list(penalties)), (1.0, [0.0] * K)):
            for k in range(K):
                self.columns.append([sign if row == k else 0.0 for row in range(K + 1)])
                self.costs.append(of[k])
        self.first = 2 * K
        self.add(cost, use)
        over = [use[k] > limits[k] for k in range(K)]
        self.basis = [k if over[k] else K + k for k in range(K)] + [self.first]
        signs = [-1.0 if one else 1.0 for one in over]
        self.inverse = [[0.0] * (K + 1) for _ in range(K + 1)]
        for k in range(K):
            self.inverse[k][k] = signs[k]
            self.inverse[k][K] = -signs[k] * use[k]
        self.inverse[K][K] = 1.0

    def add(self, cost: float, use: Sequence[float]) -> None:
        """Add a column."""
        self.columns.append([*map(float, use), 1.0])
        self.costs.append(float(cost))

    def solve(self) -> Duals:
        """Return the optimal weights and their duals."""
        K = self.size - 1
        for pivot in range(MOST_PIVOTS):
            y = [
                sum(self.costs[j] * row[k] for j, row in zip(self.basis, self.inverse, strict=True))
                for k in range(self.size)
            ]
            entering = self._entering(y, bland=pivot > MOST_PIVOTS // 2)
            if entering is None:
                break
            self._pivot(entering)
        x = self._values()
        shares = [0.0] * (len(self.columns) - self.first)
        over = [0.0] * K
        for j, value in zip(self.basis, x, strict=True):
            if j >= self.first:
                shares[j - self.first] = max(value, 0.0)
            elif j < K:
                over[j] = max(value, 0.0)
        return Duals([max(-y[k], 0.0) for k in range(K)], y[K], shares, over)

    def _entering(self, y: list[float], bland: bool) -> int | None:
        """Return the variable with the least reduced cost, or with Bland's rule the first."""
        best, chosen = -ROUNDING, None
        for j, column in enumerate(self.columns):
            if j in self.basis:
                continue
            scale = max(1.0, abs(self.costs[j]))
            reduced = (self.costs[j] - _dot(y, column)) / scale
            if reduced < best:
                if bland:
                    return j
                best, chosen = reduced, j
        return chosen

    def _values(self) -> list[float]:
        return [_dot(row, self.limits) for row in self.inverse]

    def _pivot(self, entering: int) -> None:
        step = [_dot(row, self.columns[entering]) for row in self.inverse]
        x = self._values()
        leaving, least = -1, 0.0
        for i in range(self.size):
            if step[i] > ROUNDING:
                ratio = max(x[i], 0.0) / step[i]
                first = leaving < 0 or ratio < least - ROUNDING
                tied = not first and ratio <= least and self.basis[i] < self.basis[leaving]
                if first or tied:
                    leaving, least = i, ratio
        if leaving < 0:
            raise ArithmeticError("the master problem of promises is unbounded")
        row = [value / step[leaving] for value in self.inverse[leaving]]
        for i in range(self.size):
            if i != leaving and step[i] != 0.0:
                old = self.inverse[i]
                self.inverse[i] = [old[k] - step[i] * row[k] for k in range(self.size)]
        self.inverse[leaving] = row
        self.basis[leaving] = entering


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    total = 0.0
    for one, other in zip(a, b, strict=True):
        total += one * other
    return total
