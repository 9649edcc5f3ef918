"""Moments of the losses of each arm by report, and the noise that follows from them.

A report is what one round tells of one arm: a units, their average y, the sum W' of their squared
deviations from y, the sum F' of the squares of all Welford steps, and dof' = a - 1; of a total
only, W' = F' = dof' = 0. The moments of an arm are nine numbers, a row of the columns below:

    N = sum a, N2 = sum w^2 a, A2 = sum w^2 a^2, R = reports, MEAN of all units,
    B = sum a (y - MEAN)^2, W = sum W', DOF = sum dof', F = sum F' + squares of the steps of B,

where w is the weight that a discount leaves of a report, and 1 without one.
"""

import math
from typing import Any

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray, IntArray

N, N2, A2, R, MEAN, B, W, DOF, F = range(9)
COLUMNS = 9
UNITS, AVERAGE, WITHIN, FOURTH, FREEDOM = range(5)  # of a report: a, y, W', F', dof'
KEPT = 5
SEEN = 1e-9  # units: an arm of which less is left has no moments

ROUNDING = 1e-24  # squared deviation of a unit: less than this is no noise

KAPPA = 6.0  # units that the noise of all arms counts for, in the noise of one
RHO_0 = 0.2  # day effect believed before it was seen, relative to the noise of a unit
SPREAD = 0.25  # variance of a loss in [0, 1] of which nothing is known
W_END = 1.0  # pseudo units at the ends of the range, for events that were never seen


@subroutine
def of_units(x: FloatArray, start: int, end: int, shift: float, factor: float) -> Any:
    """Return (a, y, W', F') of the losses shift + factor x; NaN is a unit that was not seen."""
    a, y, within, fourth = 0, 0.0, 0.0, 0.0
    for j in range(start, end):
        if not math.isnan(x[j]):
            d = shift + factor * x[j] - y
            z = d * d * a / (a + 1)
            within += z
            fourth += z * z
            a += 1
            y += d / a
    return a, y, within, fourth


@subroutine
def add(row: FloatArray, a: float, y: float, within: float, fourth: float, dof: float) -> Any:
    """Add a report to the moments of an arm; return the surprise y - MEAN and sqrt(A2) / N before.

    Both are 0 if there was no report before.
    """
    n, surprise, k = row[N], 0.0, 0.0
    d = y - row[MEAN]
    step = n * a / (n + a) * d * d
    if n > SEEN:
        surprise, k = d, math.sqrt(row[A2]) / n
    row[B] += step
    row[F] += fourth + step * step
    row[MEAN] += a / (n + a) * d
    row[N] = n + a
    row[N2] += a
    row[A2] += a * a
    row[R] += 1.0
    row[W] += within
    row[DOF] += dof
    return surprise, k


@subroutine
def add_report(row: FloatArray, report: FloatArray) -> Any:
    """Add a report to the moments of an arm, as ``add``."""
    a, y, within = report[UNITS], report[AVERAGE], report[WITHIN]
    return add(row, a, y, within, report[FOURTH], report[FREEDOM])


@subroutine
def keep(slot: FloatArray, report: FloatArray) -> None:
    """Keep a report in a slot of a window; a second one of the same round becomes one with it."""
    a, before = report[UNITS], slot[UNITS]
    d = report[AVERAGE] - slot[AVERAGE]
    step = before * a / (before + a) * d * d
    slot[UNITS] = before + a
    slot[AVERAGE] += a / (before + a) * d
    slot[WITHIN] += report[WITHIN] + step
    slot[FOURTH] += report[FOURTH] + step * step
    slot[FREEDOM] += report[FREEDOM] + (1.0 if before > 0.0 else 0.0)


@kernel
def summarise(
    places: IntArray,
    played: IntArray,
    slots: IntArray,
    units: FloatArray,
    totals: FloatArray,
    shift: FloatArray,
    factor: float,
    reports: FloatArray,
) -> None:
    """reports[places[i]] = the report of arm i: of its single units, or of their total.

    Without places, arms are in order; without totals or shifts, there are none.
    """
    start = 0
    for i in range(len(played)):
        report = reports[places[i] if len(places) > 0 else i]
        end = start + slots[i]
        moved = shift[i] if len(shift) > 0 else 0.0
        a, y, within, fourth = of_units(units, start, end, moved, factor)
        start = end
        if a > 0:
            report[UNITS], report[AVERAGE], report[WITHIN] = a, y, within
            report[FOURTH], report[FREEDOM] = fourth, a - 1.0
        elif played[i] > 0 and len(totals) > 0 and not math.isnan(totals[i]):
            report[UNITS], report[AVERAGE] = played[i], moved + factor * totals[i] / played[i]


@kernel
def add_reports(moments: FloatArray, common: FloatArray, reports: FloatArray) -> None:
    """Add the reports of a round, of all arms that have units.

    ``common`` = (g_n, g_d) sums surprises that go together: a day that is bad for all arms.
    """
    r = r2 = t = t2 = 0.0
    surprises = 0
    for i in range(len(reports)):
        if reports[i, UNITS] > 0.0:
            surprise, k = add_report(moments[i], reports[i])
            if k > 0.0:
                surprises += 1
                r += surprise
                r2 += surprise * surprise
                t += k
                t2 += k * k
    common[0] += r * r - r2
    common[1] += surprises * (surprises - 1) + t * t - t2


@kernel
def keep_reports(
    moments: FloatArray, common: FloatArray, kept: FloatArray, slot: int, reports: FloatArray
) -> None:
    """Keep the reports of a round in a slot of a window, and compute the moments of the window."""
    for i in range(len(reports)):
        if reports[i, UNITS] > 0.0:
            keep(kept[i, slot], reports[i])
    moments[:] = 0.0
    common[:] = 0.0
    window = kept.shape[1]
    for k in range(1, window + 1):  # the oldest round first
        add_reports(moments, common, kept[:, (slot + k) % window])


@kernel
def fade(moments: FloatArray, weight: float) -> None:
    """Let all reports of these arms count ``weight`` times as much: a discount."""
    for i in range(len(moments)):
        row = moments[i]
        row[N] *= weight
        row[R] *= weight
        row[B] *= weight
        row[W] *= weight
        row[DOF] *= weight
        row[F] *= weight
        row[N2] *= weight * weight
        row[A2] *= weight * weight


@subroutine
def fourths(row: FloatArray) -> float:
    """Return W^2 / (DOF + 2) + B^2 / (free + 2), a third of F for normal noise of any scale."""
    free = max(row[R] - 1.0, 0.0)
    return float(row[W] ** 2 / (row[DOF] + 2.0) + row[B] ** 2 / (free + 2.0))


@subroutine
def noise(moments: FloatArray, shift: FloatArray, s2: FloatArray) -> Any:
    """Compute s_i^2, the noise of a unit of each arm; return what all arms share.

    That is (s_e^2, s_u^2, s_u0^2, c, lambda, sum of N, sum of D, mean of all units): the noise of
    a unit, the day effect with and without its prior, how light the tails are, and how sure that
    is. Arm i has the losses MEAN_i + shift_i.
    """
    d = len(moments)
    n_all = total = d_all = f_all = squares = a2_all = n2_all = gain_all = 0.0
    fewest = math.inf
    for i in range(d):
        row = moments[i]
        if row[N] <= SEEN:
            fewest = 0.0
            continue
        D = row[DOF] + max(row[R] - 1.0, 0.0)
        fewest = min(fewest, D)
        n_all += row[N]
        total += row[N] * (row[MEAN] + shift[i])
        d_all += D
        f_all += row[F]
        squares += row[W] + row[B]
        a2_all += row[A2]
        n2_all += row[N2]
        gain_all += max(row[N] - row[A2] / row[N2], 0.0)
    mean = total / n_all if n_all > 0.0 else 0.5
    c = 0.0
    if squares > ROUNDING * n_all:
        kurtosis = d_all * f_all / (squares * squares)
        c = 1.0 if kurtosis <= 3.0 else 2.0 / (kurtosis - 1.0)
    sure = c * d_all / (d_all + 2.0)
    apart = b_om = free_om = w_ow = dof_ow = 0.0
    om_most = ow_most = 0.0
    for i in range(d):
        row = moments[i]
        seen = row[N] > SEEN
        dof = row[DOF] if seen else 0.0
        free = max(row[R] - 1.0, 0.0) if seen else 0.0
        om, ow = 1.0 / (dof + free + KAPPA), 1.0 / (dof + KAPPA)
        om_most, ow_most = max(om_most, om), max(ow_most, ow)
        if seen:
            apart += row[N] * (row[MEAN] + shift[i] - mean) ** 2
            b_om += row[B] * om
            free_om += free * om
            w_ow += row[W] * ow
            dof_ow += dof * ow
    t0 = ((1.0 - sure) * SPREAD + (apart + squares) / 2.0) / (1.0 + n_all)
    up = (t0 * om_most + b_om) / (om_most + free_om)
    s_e2 = (2.0 * ow_most * up + w_ow) / (2.0 * ow_most + dof_ow)
    c2 = c * c
    left = 0.0
    for i in range(d):
        row = moments[i]
        if row[N] > SEEN:
            s1 = (KAPPA * s_e2 + c2 * row[W]) / (KAPPA + c2 * row[DOF])
            left += row[B] - max(row[R] - 1.0, 0.0) * s1
    d0 = a2_all / n2_all if n2_all > 0.0 else 0.0
    su = su0 = 0.0
    if gain_all + d0 > 0.0:
        su0 = max(0.0, left / (gain_all + d0))
        su = max(0.0, (left + RHO_0 * d0 * s_e2) / (gain_all + d0))
    for i in range(d):
        row = moments[i]
        s2[i] = s_e2
        if row[N] > SEEN:
            free = max(row[R] - 1.0, 0.0)
            between = 0.0
            if free > 0.0:
                gain = max(row[N] - row[A2] / row[N2], 0.0)
                between = row[B] * s_e2 / (s_e2 + gain / free * su)
            s2[i] = (KAPPA * s_e2 + c2 * (row[W] + between)) / (KAPPA + c2 * (row[DOF] + free))
    return s_e2, su, su0, c, sure, n_all, d_all, mean
