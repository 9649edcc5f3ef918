"""Losses that persist: of each arm, filters for a deviation that fades from round to round.

The report of a units of an arm in round t has the average

    y = mu + x_t + noise,  x_(t+1) = rho x_t + N(0, (1 - rho^2) v s^2),

with noise of the variance R s^2, where R = c + (1 - c) / a, and c is the share of the noise that
the units of a round have in common. A model is (rho, v); v = 0 says that nothing persists. Each arm
keeps a Kalman filter of (mu, x) for each model, with a flat prior of mu and in units of s^2. The
models are weighed by their forecasts of the reports of all arms; one more model are the hypotheses
of ``kernels.hypotheses``: changes.

A report of an earlier round than others is filtered in its place: each arm keeps its last reports,
and its filters as they were before them.
"""

import math
from typing import Any

import numpy as np

from multiplay.kernels.hypotheses import (
    H_MEAN,
    H_N,
    LAST_MEAN,
    LAST_UNITS,
    LENGTH,
    WEIGHT,
)
from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.moments import AVERAGE, FREEDOM, RHO_0, UNITS, WITHIN, N
from multiplay.kernels.moments import MEAN as OF_UNITS
from multiplay.kernels.random import Generators, uniform
from multiplay.types import FloatArray, IntArray

MODELS = np.array(  # rho and v; the first one says that nothing persists
    [
        *[(0.0, 0.0)],
        *[(0.5, v) for v in (1.0, 3.0)],
        *[(0.8, v) for v in (1.0, 3.0, 10.0)],
        *[(0.93, v) for v in (3.0, 10.0, 30.0)],
        *[(0.98, v) for v in (1.0, 10.0)],
        *[(0.995, v) for v in (1.0, 10.0, 100.0)],
        *[(0.9995, v) for v in (0.1, 10.0, 1000.0, 10_000.0)],
    ]
)
JUMPS = len(MODELS)  # the model of hypotheses, after the others
ROWS = JUMPS + 1
NOTHING, CHANGES = (
    math.log(0.5),
    math.log(0.05),
)  # the prior; the rest is that of models that persist
EACH = math.log(0.45 / (JUMPS - 1))

M0, M1, P00, P01, P11, SQUARES, EVIDENCE = range(7)  # of a filter
FILTER = 7
# Of an arm: reports and units, their average; squares within rounds, with degrees of freedom; of
# pairs of successive rounds the squared differences, half of them, 1 / a, and their number; the
# last round; the reports before those that are kept, and the last round of these.
REPORTS, ALL_UNITS, ALL_MEAN, ALL_WITHIN, ALL_FREEDOM, APART, INVERSE, PAIRS = range(8)
LATEST, BEFORE, BEFORE_ROUND = range(8, 11)
TRACE = 11
ROUND, NOISE, AVERAGE_SEEN = range(3)  # of a report that is kept
KEPT_REPORTS = 8  # the last ones of an arm, which later ones may be put before
REPORT = 3
MEAN, VARIANCE, LONG_RUN = range(3)  # of what is believed of an arm
OCTAVES = 12  # of the rounds for which an arm was idle

FADE = 0.99  # of evidence, and of differences, for each report of an arm
STEADY = 6.0  # reports that the noise of all arms counts for, in that of one
FREE = 4.0  # degrees of freedom of forecasts, and one for each report
MOST_FREE = 20.0
LEAST = 0.002  # variance of a coin
FEW = 0.25  # coins, and their noise, before anything is seen
NEAR = 2.0  # rounds between successive reports, which tell of noise
LARGEST = 100.0  # squared error of a forecast, in deviations
CALIBRATED = 2.0  # forecasts over gaps before anything is seen
LEAST_SPREAD = 2e-4  # variance of the means of arms
SOON = 5.0  # rounds after which a deviation counts as much as it is then expected to be left
LONGEST = 3.0  # rounds since the last report, as often as the evidence of one counts at most
ENOUGH = 0.9  # weight of models that persist, from which plans are chosen by them
RARELY = 1e-9  # weight of a model that is not looked at


@subroutine
def coin(y: float) -> float:
    """Return y (1 - y), which is not 0."""
    return max(y * (1.0 - y), LEAST)


@subroutine
def coins_of(traces: FloatArray, coins: FloatArray) -> None:
    """coins[i] = the variance of a coin with the average of arm i, moved to that of all arms."""
    n = total = 0.0
    for i in range(len(traces)):
        n += traces[i, ALL_UNITS]
        total += traces[i, ALL_UNITS] * traces[i, ALL_MEAN]
    mean = total / n if n > 0.0 else 0.5
    for i in range(len(traces)):
        n = traces[i, ALL_UNITS]
        coins[i] = coin((n * traces[i, ALL_MEAN] + 2.0 * mean) / (n + 2.0))


@subroutine
def in_common(traces: FloatArray) -> float:
    """Return c, how much of the noise the units of a round have in common."""
    within = freedom = apart = inverse = pairs = 0.0
    for i in range(len(traces)):
        within += traces[i, ALL_WITHIN]
        freedom += traces[i, ALL_FREEDOM]
        apart += traces[i, APART]
        inverse += traces[i, INVERSE]
        pairs += traces[i, PAIRS]
    if freedom == 0.0 or within == 0.0:
        return 0.0
    unit = within / freedom
    day = max(apart - unit * inverse + CALIBRATED * RHO_0 * unit, 0.0) / (pairs + CALIBRATED)
    return float(day / (day + unit))


@subroutine
def noises_of(filters: FloatArray, traces: FloatArray, coins: FloatArray, phi: FloatArray) -> None:
    """phi[g] = the variance of the noise of a report over that of a coin, by model g."""
    free = FEW
    for i in range(len(traces)):
        free += max(traces[i, REPORTS] - 1.0, 0.0) * coins[i]
    for g in range(ROWS):
        squares = FEW
        for i in range(len(traces)):
            squares += filters[i, g, SQUARES]
        phi[g] = squares / free


@subroutine
def noise_of(squares: float, reports: float, phi: float, one: float) -> float:
    """Return s^2 of an arm, from the squared errors of its forecasts and the noise of all arms."""
    return (squares + STEADY * phi * one) / (max(reports - 1.0, 0.0) + STEADY)


@subroutine
def weights_of(filters: FloatArray, weights: FloatArray) -> int:
    """weights[g] = the weight of each model; return the heaviest one that is not of jumps."""
    for g in range(ROWS):
        weights[g] = CHANGES if g == JUMPS else NOTHING if g == 0 else EACH
        for i in range(len(filters)):
            weights[g] += filters[i, g, EVIDENCE]
    heaviest, most = 0, weights[JUMPS]
    for g in range(JUMPS):
        if weights[g] > weights[heaviest]:
            heaviest = g
        most = max(most, weights[g])
    together = 0.0
    for g in range(ROWS):
        weights[g] = math.exp(weights[g] - most)
        together += weights[g]
    for g in range(ROWS):
        weights[g] /= together
    return heaviest


@subroutine
def ahead(row: FloatArray, g: int, gap: float) -> Any:
    """Return (x, P01, P11) of a filter after so many rounds."""
    rho, v = MODELS[g, 0], MODELS[g, 1]
    left = rho**gap if v > 0.0 else 0.0
    return left * row[M1], left * row[P01], left * left * row[P11] + (1.0 - left * left) * v


@subroutine
def log_student(error: float, variance: float, nu: float) -> float:
    """Return the logarithm of the density of Student's distribution, but for a constant."""
    constant = math.lgamma((nu + 1.0) / 2.0) - math.lgamma(nu / 2.0) - 0.5 * math.log(nu * variance)
    return constant - 0.5 * (nu + 1.0) * math.log1p(error * error / (nu * variance))


@subroutine
def jump_forecast(hypotheses: FloatArray, length: int) -> Any:
    """Return the mean that hypotheses forecast, their variance, and the noise of their means."""
    mean = between = own = together = 0.0
    for k in range(length):
        if hypotheses[k, H_N] > 0.0:
            together += hypotheses[k, WEIGHT]
            mean += hypotheses[k, WEIGHT] * hypotheses[k, H_MEAN]
            own += hypotheses[k, WEIGHT] / hypotheses[k, H_N]
    mean /= together
    for k in range(length):
        if hypotheses[k, H_N] > 0.0:
            between += hypotheses[k, WEIGHT] * (hypotheses[k, H_MEAN] - mean) ** 2
    return mean, between / together, own / together


@subroutine
def octave(gap: float) -> int:
    """Return the octave of a number of rounds, at least 2."""
    return min(int(math.log2(gap)), OCTAVES - 1)


@subroutine
def begin(filters: FloatArray, y: float, R: float) -> None:
    """Let the filters of an arm be those of one report."""
    for g in range(JUMPS):
        row, v = filters[g], MODELS[g, 1]
        row[M0], row[M1] = y, 0.0
        row[P00], row[P01], row[P11] = v + R, -v, v


@subroutine
def observe(
    filters: FloatArray,
    n: float,
    gap: float,
    R: float,
    y: float,
    phi: FloatArray,
    one: float,
    asked: int,
) -> float:
    """Add a report to the filters of an arm that has n; return the squared error of one model.

    That is in units of the variance that the model ``asked`` forecast.
    """
    if n == 0.0:
        begin(filters, y, R)
        return 0.0
    nu, found = min(n - 1.0, MOST_FREE) + FREE, 0.0
    for g in range(JUMPS):
        row = filters[g]
        row[M1], row[P01], row[P11] = ahead(row, g, gap)
        S = row[P00] + 2.0 * row[P01] + row[P11] + R
        e = y - row[M0] - row[M1]
        variance = S * noise_of(row[SQUARES], n, phi[g], one)
        count = min(max(gap, 1.0), LONGEST)
        row[EVIDENCE] = FADE * row[EVIDENCE] + count * log_student(e, variance, nu)
        row[SQUARES] += e * e / S
        if g == asked:
            found = e * e / variance
        k0, k1 = (row[P00] + row[P01]) / S, (row[P01] + row[P11]) / S
        row[M0] += k0 * e
        row[M1] += k1 * e
        p00, p01, p11 = row[P00], row[P01], row[P11]
        row[P00] = p00 - k0 * k0 * S
        row[P01] = p01 - k0 * k1 * S
        row[P11] = p11 - k1 * k1 * S
    return found


@subroutine
def put_late(
    filters: FloatArray,
    before: FloatArray,
    kept: FloatArray,
    trace: FloatArray,
    length: int,
    phi: FloatArray,
    one: float,
) -> None:
    """Filter the reports of an arm again that are kept, from the filters before them."""
    filters[:JUMPS] = before
    n, at = trace[BEFORE], trace[BEFORE_ROUND]
    for k in range(length):
        gap = max(kept[k, ROUND] - at, 0.0)
        observe(filters, n, gap, kept[k, NOISE], kept[k, AVERAGE_SEEN], phi, one, -1)
        n, at = n + 1.0, max(kept[k, ROUND], at)


@subroutine
def keep(
    before: FloatArray,
    kept: FloatArray,
    trace: FloatArray,
    now: float,
    R: float,
    y: float,
    phi: FloatArray,
    one: float,
) -> int:
    """Keep a report in the order of rounds; return how many are kept.

    The oldest of too many is added to the filters before them.
    """
    length = int(trace[REPORTS] - trace[BEFORE])
    place = length
    while place > 0 and kept[place - 1, ROUND] > now:
        kept[place] = kept[place - 1]
        place -= 1
    kept[place, ROUND], kept[place, NOISE], kept[place, AVERAGE_SEEN] = now, R, y
    if length < KEPT_REPORTS:
        return length + 1
    gap = max(kept[0, ROUND] - trace[BEFORE_ROUND], 0.0)
    observe(before, trace[BEFORE], gap, kept[0, NOISE], kept[0, AVERAGE_SEEN], phi, one, -1)
    trace[BEFORE] += 1.0
    trace[BEFORE_ROUND] = max(kept[0, ROUND], trace[BEFORE_ROUND])
    for k in range(length):
        kept[k] = kept[k + 1]
    return length


@kernel
def begin_again(
    filters: FloatArray,
    before: FloatArray,
    traces: FloatArray,
    places: IntArray,
    sums: FloatArray,
) -> None:
    """Let arms at these places have one report, with the units and the average of these moments."""
    for k in range(len(places)):
        own, trace = filters[places[k]], traces[places[k]]
        latest = trace[LATEST]
        own[:] = 0.0
        trace[:] = 0.0
        trace[LATEST] = trace[BEFORE_ROUND] = latest
        if sums[k, N] > 0.0:
            begin(own, sums[k, OF_UNITS], 1.0 / sums[k, N])
            trace[REPORTS] = trace[BEFORE] = 1.0
            trace[ALL_UNITS], trace[ALL_MEAN] = sums[k, N], sums[k, OF_UNITS]
        before[places[k]] = own[:JUMPS]


@kernel
def learn(
    filters: FloatArray,
    traces: FloatArray,
    gaps: FloatArray,
    before: FloatArray,
    kept: FloatArray,
    hypotheses: FloatArray,
    marks: FloatArray,
    rounds: IntArray,
    reports: FloatArray,
) -> None:
    """Add the reports of a round, before those of the hypotheses: ``change.learn``."""
    d = filters.shape[1]
    coins, phi, weights = np.empty(d), np.empty(ROWS), np.empty(ROWS)
    for trial in range(len(filters)):
        own, trace, now = filters[trial], traces[trial], float(rounds[trial])
        coins_of(trace, coins)
        noises_of(own, trace, coins, phi)
        c, heaviest = in_common(trace), weights_of(own, weights)
        for i in range(d):
            a, y = reports[trial, i, UNITS], reports[trial, i, AVERAGE]
            if a == 0.0:
                continue
            R, n = c + (1.0 - c) / a, trace[i, REPORTS]
            mark, gap = marks[trial, i], now - trace[i, LATEST]
            length = keep(before[trial, i], kept[trial, i], trace[i], now, R, y, phi, coins[i])
            if n > 0.0 and gap < 0.0:
                put_late(own[i], before[trial, i], kept[trial, i], trace[i], length, phi, coins[i])
            else:
                error = observe(own[i], n, gap, R, y, phi, coins[i], heaviest)
                if n > 0.0 and gap >= 2.0:
                    gaps[trial, octave(gap), 0] += min(error, LARGEST)
                    gaps[trial, octave(gap), 1] += 1.0
            if n > 0.0 and mark[LENGTH] > 0.0:
                row = own[i, JUMPS]
                s2 = noise_of(row[SQUARES], n, phi[JUMPS], coins[i])
                mean, between, few = jump_forecast(hypotheses[trial, i], int(mark[LENGTH]))
                e, variance = y - mean, between + s2 * (R + few)
                nu, count = min(n - 1.0, MOST_FREE) + FREE, min(max(gap, 1.0), LONGEST)
                row[EVIDENCE] = FADE * row[EVIDENCE] + count * log_student(e, variance, nu)
                row[SQUARES] += e * e * s2 / variance
            elif n > 0.0:  # without hypotheses, changes forecast what "nothing persists" does
                own[i, JUMPS, EVIDENCE] = own[i, 0, EVIDENCE]
            add_trace(trace[i], reports[trial, i], mark, gap)
            trace[i, LATEST] = max(now, trace[i, LATEST])


@subroutine
def add_trace(trace: FloatArray, report: FloatArray, mark: FloatArray, gap: float) -> None:
    """Add a report to what is known of the noise of an arm."""
    a, y = report[UNITS], report[AVERAGE]
    if trace[REPORTS] > 0.0 and 0.0 < gap <= NEAR:
        trace[APART] = FADE * trace[APART] + 0.5 * (y - mark[LAST_MEAN]) ** 2
        trace[INVERSE] = FADE * trace[INVERSE] + 0.5 / a + 0.5 / mark[LAST_UNITS]
        trace[PAIRS] = FADE * trace[PAIRS] + 1.0
    trace[REPORTS] += 1.0
    trace[ALL_UNITS] += a
    trace[ALL_MEAN] += a / trace[ALL_UNITS] * (y - trace[ALL_MEAN])
    trace[ALL_WITHIN] += report[WITHIN]
    trace[ALL_FREEDOM] += report[FREEDOM]


@subroutine
def population(
    filters: FloatArray,
    traces: FloatArray,
    coins: FloatArray,
    phi: FloatArray,
    shift: FloatArray,
    g: int,
) -> Any:
    """Return the mean of the means of all arms, their variance, and the number of arms seen."""
    n, m = 1.0, 0.5
    for i in range(len(traces)):
        if traces[i, REPORTS] > 0.0:
            n += 1.0
            m += filters[i, g, M0] + shift[i]
    m /= n
    spread = 1.0 / 12.0
    for i in range(len(traces)):
        if traces[i, REPORTS] > 0.0:
            row = filters[i, g]
            s2 = noise_of(row[SQUARES], traces[i, REPORTS], phi[g], coins[i])
            spread += max((row[M0] + shift[i] - m) ** 2 - s2 * row[P00], 0.0)
    return m, max(spread / n, LEAST_SPREAD), n


@subroutine
def widened(gaps: FloatArray, gap: float) -> float:
    """Return the factor of the variance of an arm that was idle for so many rounds."""
    factor = 1.0
    if gap >= 2.0:
        for j in range(octave(gap) + 1):
            factor = max(factor, (CALIBRATED + gaps[j, 0]) / (CALIBRATED + gaps[j, 1]))
    return factor


@subroutine
def next_round(
    row: FloatArray,
    trace: FloatArray,
    gaps: FloatArray,
    g: int,
    gap: float,
    phi: float,
    one: float,
    prior: float,
    spread: float,
    n: float,
) -> Any:
    """Return mu, x and their (co)variances in a round, ``gap`` rounds after the last report.

    The prior N(prior, spread) of mu, which n - 1 arms tell, is one more observation of mu.
    """
    if trace[REPORTS] == 0.0:
        return prior, 0.0, spread * (1.0 + 1.0 / n), 0.0, MODELS[g, 1] * phi * one
    s2 = noise_of(row[SQUARES], trace[REPORTS], phi, one) * widened(gaps, gap)
    m1, p01, p11 = ahead(row, g, gap)
    p00, p01, p11 = s2 * row[P00], s2 * p01, s2 * p11
    S, e = p00 + spread, prior - row[M0]
    k0, k1 = p00 / S, p01 / S
    return row[M0] + k0 * e, m1 + k1 * e, (1.0 - k0) * p00, (1.0 - k0) * p01, p11 - k1 * p01


@subroutine
def drawn(weights: FloatArray, mass: float) -> int:
    """Return the model that persists up to which the weights add up to more than ``mass``."""
    last = 1
    for g in range(1, JUMPS):
        if weights[g] > 0.0:
            last = g
            mass -= weights[g]
            if mass < 0.0:
                break
    return last


@kernel
def overlay(
    generators: Generators,
    filters: FloatArray,
    traces: FloatArray,
    gaps: FloatArray,
    t: IntArray,
    shift: FloatArray,
    upper: FloatArray,
    sign: float,
    theta: FloatArray,
) -> None:
    """Let theta_i be an optimistic mean of the next round, if models that persist weigh enough.

    Each arm draws a model that persists by its weight. theta_i is the mean of the next round less a
    standard deviation (for rewards: plus), in which x counts as much as will be left of it soon.
    """
    d = filters.shape[1]
    coins, phi, weights = np.empty(d), np.empty(ROWS), np.empty(ROWS)
    for trial in range(len(filters)):
        own, trace, generator = filters[trial], traces[trial], generators[trial]
        heaviest = weights_of(own, weights)
        persists = 1.0 - weights[0] - weights[JUMPS]
        if persists < ENOUGH:
            continue
        coins_of(trace, coins)
        noises_of(own, trace, coins, phi)
        prior, spread, n = population(own, trace, coins, phi, shift, heaviest)
        for i in range(d):
            g = drawn(weights, uniform(generator) * persists)
            gap, left = t[trial] + 1.0 - traces[trial, i, LATEST], MODELS[g, 0] ** SOON
            m0, m1, p00, p01, p11 = next_round(
                own[i, g],
                trace[i],
                gaps[trial],
                g,
                gap,
                phi[g],
                coins[i],
                prior - shift[i],
                spread,
                n,
            )
            deviation = math.sqrt(max(p00 + 2.0 * left * p01 + left * left * p11, 0.0))
            theta[trial, i] = min(max(m0 + m1 - sign * deviation, 0.0), upper[i])


@kernel
def believe(
    filters: FloatArray,
    traces: FloatArray,
    gaps: FloatArray,
    t: float,
    weights: FloatArray,
    found: FloatArray,
) -> None:
    """found[g, i] = mean of the next round, its variance, and the long-run mean, of one trial.

    ``weights`` become those of the models; 0 for those of so little weight that they are left out.
    """
    d = len(filters)
    coins, phi = np.empty(d), np.empty(ROWS)
    heaviest = weights_of(filters, weights)
    coins_of(traces, coins)
    noises_of(filters, traces, coins, phi)
    prior, spread, n = population(filters, traces, coins, phi, np.zeros(d), heaviest)
    for g in range(1, JUMPS):
        if weights[g] < RARELY:
            weights[g] = 0.0
            continue
        for i in range(d):
            gap = t + 1.0 - traces[i, LATEST]
            m0, m1, p00, p01, p11 = next_round(
                filters[i, g], traces[i], gaps, g, gap, phi[g], coins[i], prior, spread, n
            )
            found[g, i, MEAN], found[g, i, LONG_RUN] = m0 + m1, m0
            found[g, i, VARIANCE] = p00 + 2.0 * p01 + p11
