"""The master problem of column generation: a small linear program, solved by the simplex method.

Plain loops over Python floats: the same bits on every machine, which ``verify`` needs.
"""

from collections.abc import Sequence
from typing import NamedTuple

ROUNDING = 1e-9  # of a reduced cost or a step, below which it is 0
MOST_PIVOTS = 1000


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
