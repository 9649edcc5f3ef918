"""Off-policy estimates from a logged x: importance weighting, and doubly robust.

They use no model of the means. On m-sets, importance weighting is the independent inverse
propensity score of the Open Bandit Pipeline.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from multiplay.beliefs.smoothed import Reports
from multiplay.errors import InvalidInput
from multiplay.types import FloatArray


class LoggedDays(NamedTuple):
    """Days with a logged x; arrays are (days, arms).

    Attributes
    ----------
    plan, played : array
        The units of the rule, b, and of the play, a.
    x : array
        The mean of the distribution from which the play was drawn.
    units, total : array
        The units of the play that were seen, and the sum of their losses.
    before : array
        The average of the reports before the day, m.
    """

    plan: FloatArray
    played: FloatArray
    x: FloatArray
    units: FloatArray
    total: FloatArray
    before: FloatArray


def difference(days: LoggedDays, method: str) -> tuple[FloatArray, FloatArray]:
    r"""Return what the plans cost more than the plays, by day, and the error of every day.

    .. math::

        \text{ips} = \sum_i \Bigl(\frac{b_i}{x_i} - 1\Bigr) \text{total}_i, \qquad
        \text{dr} = \langle b - a, m \rangle
            + \sum_i \Bigl(\frac{b_i}{x_i} - 1\Bigr) (\text{total}_i - a_i m_i)

    Units that were not seen count like those seen of the same day and arm, or as :math:`m_i` if
    none was. The square of an error estimates the variance of its day.

    Examples
    --------
    >>> one = np.array([[1.0, 0.0]])
    >>> day = LoggedDays(one[:, ::-1], one, np.full((1, 2), 0.5), one, 3 * one, np.ones((1, 2)))
    >>> difference(day, "ips")[0], difference(day, "dr")[0]
    (array([-3.]), array([-2.]))
    """
    if ((days.plan > 0) & ~(days.x > 0)).any():
        expected = "a rule that uses no unit whose logged mean is 0"
        hint = "Use method='model'."
        raise InvalidInput("method", expected, repr(method), hint)
    seen = days.units > 0
    average = np.divide(days.total, days.units, out=days.before.copy(), where=seen)
    ratio = np.divide(days.plan, days.x, out=np.zeros_like(days.x), where=days.plan > 0)
    if method == "ips":
        found = ((ratio - 1) * days.played * average).sum(axis=1)
        return found, found - found.mean()
    rest = ((ratio - 1) * days.played * (average - days.before)).sum(axis=1)
    return ((days.plan - days.played) * days.before).sum(axis=1) + rest, rest


def averages_before(reports: Reports) -> FloatArray:
    """Return the average of the reports before each day, with one unit of the overall average.

    Examples
    --------
    >>> ends = np.zeros(1), np.full(1, 10.0)
    >>> bills = np.array([[4.0], [8.0], [9.0]])
    >>> averages_before(Reports(np.arange(3.0), np.ones((3, 1)), bills, bills**2, *ends))
    array([[5.],
           [4.],
           [6.]])
    """
    order = np.argsort(reports.place, kind="stable")
    units, total = reports.units[order], reports.total[order]
    count, sums = units.cumsum(axis=0) - units, total.cumsum(axis=0) - total
    seen = count.sum(axis=1)
    middle = float((reports.low + reports.high).mean()) / 2
    overall = np.where(seen > 0, sums.sum(axis=1) / np.maximum(seen, 1), middle)
    found = np.empty_like(sums)
    found[order] = (sums + overall[:, None]) / (count + 1)
    return found
