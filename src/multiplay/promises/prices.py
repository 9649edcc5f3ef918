"""Shadow prices of promises: the linear program of the remaining plays, by column generation."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from multiplay.actions import ActionSet
from multiplay.promises.master import Duals, Master
from multiplay.types import BoolArray, FloatArray, IntArray

GAP = 1e-4  # of the cost, at which columns suffice
MOST_COLUMNS = 60
PENALTY = 5.0  # times the dearest unit, for each unit of consumption
LARGER = 10.0  # factor of the penalties if limits that can be kept are overshot
MOST_PENALTIES = 6
SMALL = 0.01  # of the largest amount of an arm: less is no measure of a price
OVER = 1e-7  # of the limit, within which it is kept


class RemainingSet(NamedTuple):
    """A set that represents some of the remaining plays.

    Attributes
    ----------
    actions : ActionSet
        The set, in the user's unit.
    weight : float
        The number of plays that it stands for.
    means : array of shape (d,)
        The believed mean of a unit of each arm.
    amounts : array of shape (promises, d)
        What a unit of each arm counts, with the sign of an upper limit.
    """

    actions: ActionSet
    weight: float
    means: FloatArray
    amounts: FloatArray


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

        \min_{a_s \in \operatorname{conv} \mathcal{A}_s} \; \sum_s w_s \langle a_s, m_s \rangle
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
    penalties = _penalties(sets)
    feasible: bool | None = None
    for _ in range(MOST_PENALTIES):
        found = _generate(sets, limits, penalties, 1.0)
        if not overshot(found.over, limits).any():
            return found
        if feasible is None:
            least = _generate(sets, limits, _reciprocals(sets), 0.0)
            feasible = not overshot(least.over, limits).any()
        if not feasible:
            return found._replace(over=least.over)
        penalties = LARGER * penalties
    return found


def _generate(
    sets: Sequence[RemainingSet], limits: FloatArray, penalties: FloatArray, cost: float
) -> Prices:
    """Generate columns until no other one helps; the means count ``cost`` times."""
    prices = np.zeros(len(limits))
    values, uses = [], []
    value, use = _column(sets, prices, cost)
    values.append(value)
    uses.append(use)
    master = Master(limits.tolist(), penalties.tolist(), value, use.tolist())
    duals = master.solve()
    for _ in range(MOST_COLUMNS):
        prices = np.array(duals.prices)
        value, use = _column(sets, prices, cost)
        bound = value + float((prices * use).sum())
        scale = abs(values[0]) if cost else float((penalties * np.abs(limits)).sum())
        if bound >= duals.value - GAP * max(scale, 1e-12):
            break
        values.append(value)
        uses.append(use)
        master.add(value, use.tolist())
        duals = master.solve()
    return _mixture(duals, values, uses)


def _mixture(duals: Duals, values: list[float], uses: list[FloatArray]) -> Prices:
    use, cost = np.zeros(len(duals.prices)), 0.0
    for share, value, used in zip(duals.shares, values, uses, strict=True):
        use = use + share * used
        cost += share * value
    return Prices(np.array(duals.prices), use, np.array(duals.over), cost)


def _column(
    sets: Sequence[RemainingSet], prices: FloatArray, cost: float
) -> tuple[float, FloatArray]:
    """Return the cost and the use of the best plan of each set at some prices."""
    value, use = 0.0, np.zeros(len(prices))
    for one in sets:
        plan = best_plan(one, cost * one.actions.sign * one.means, prices)
        value += cost * one.weight * one.actions.sign * float((plan * one.means).sum())
        use = use + one.weight * (one.amounts * plan).sum(axis=1)
    return value, use


def best_plan(one: RemainingSet, costs: FloatArray, prices: FloatArray) -> IntArray:
    """Return the cheapest action where units also pay the prices of what they use."""
    paid = (one.amounts * prices[:, np.newaxis]).sum(axis=0)
    return one.actions.argmin(costs + paid)


def _penalties(sets: Sequence[RemainingSet]) -> FloatArray:
    """Return the dearest unit per unit of consumption, times ``PENALTY``."""
    means = np.concatenate([np.abs(one.means) for one in sets])
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
