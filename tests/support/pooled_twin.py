"""A slow twin of the pooled model: its formulas in numpy, as docs/pooling.md has them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from multiplay.kernels.moments import A2, DOF, MEAN, N2, B, F, N, R, W
from multiplay.types import FloatArray

KAPPA, RHO_0, H = 6.0, 0.2, 1.0


class Pooled(NamedTuple):
    """The prior Beta(m c0, (1 - m) c0), and of each arm the coins, the mean and e."""

    m: float
    c0: float
    coins: FloatArray
    k: FloatArray
    e: FloatArray


def pooled(rows: FloatArray, shift: FloatArray) -> Pooled:
    """Return what arms with these moments share."""
    seen = rows[:, N] > 1e-9
    own_rows, unseen = rows[seen], not seen.all()
    units, n2, a2, r, b, w, dof, f = (own_rows[:, c] for c in (N, N2, A2, R, B, W, DOF, F))
    k = np.clip(own_rows[:, MEAN] + shift[seen], 0, 1)
    free = np.maximum(r - 1, 0)
    D, SS, n = dof + free, w + b, len(own_rows)
    c = 0.0
    if SS.sum() > 1e-24 * units.sum():
        kurt = f.sum() / (w**2 / (dof + 2) + b**2 / (free + 2)).sum()
        c = 1.0 if kurt <= 3 else 2 / (kurt - 1)
    lam = c * D.sum() / (D.sum() + 2)
    m1 = (k.sum() + 0.5) / (n + 1)
    typ = m1 * (1 - m1)
    coin = k * (1 - k) + np.divide(SS, units * D, out=np.zeros(n), where=D > 0)
    om = 1 / (D + KAPPA)
    most = 1 / KAPPA if unseen else om.max()
    phi = ((SS * om).sum() + 2 * most * typ * (1 - lam)) / ((D * coin * om).sum() + 2 * most * typ)
    mid = (units * k + m1) / (units + 1)
    own = mid * (1 - mid)
    s1 = (KAPPA * phi * own + c**2 * w) / (KAPPA * own + c**2 * dof * coin)
    left = (b - free * s1 * coin).sum()
    gain = np.maximum(units - a2 / n2, 0)
    d0 = a2.sum() / n2.sum() if n else 0.0
    below = (gain * coin).sum() + d0 * typ
    day0 = max(0, left / below) if below > 0 else 0.0
    day = max(0, (left + RHO_0 * d0 * phi * typ) / below) if below > 0 else 0.0
    ratio = np.divide(gain, free, out=np.zeros(n), where=free > 0)
    own_phi = (KAPPA * phi * own + c**2 * (w + b * phi / (phi + day * ratio))) / (
        KAPPA * own + c**2 * D * coin
    )
    own_phi = np.maximum(own_phi, 1e-5)
    v = typ * (phi * n2 + day0 * a2) / units**2
    m, t2 = m1, typ / 3
    for _ in range(3):
        q = t2 / (t2 + v)
        m = ((q * k).sum() + H / 2) / (q.sum() + H)
        apart = max(0, (q**2 * ((k - m) ** 2 - v)).sum())
        t2 = min((apart + H * m * (1 - m) / 3) / ((q**2).sum() + H), 0.9 * m * (1 - m))
    coins, means, e = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))
    coins[seen] = units**2 / (own_phi * n2 + day * a2)
    means[seen] = k
    e[seen] = np.maximum(0, 1 - own_phi) * (1 - lam * units / (units + 1))
    return Pooled(m, m * (1 - m) / t2 - 1, coins, means, e)


def optimistic(
    found: Pooled,
    units: FloatArray,
    level: FloatArray,
    shift: FloatArray,
    upper: FloatArray,
    sign: float,
) -> FloatArray:
    """Return theta at the levels x of the arms."""
    a = found.m * found.c0 + found.coins * found.k
    b = (1 - found.m) * found.c0 + found.coins * (1 - found.k)
    law = stats.beta(a, b)
    tail = stats.norm.cdf(-level)
    q = law.ppf(tail) if sign > 0 else law.isf(tail)
    end = shift if sign > 0 else shift + upper
    theta = q + found.e * (1 - tail ** (1 / (units + 1))) * (end - q)
    return np.clip(theta - shift, 0, upper)


class Hypothesis(NamedTuple):
    """What an arm costs since a round: its weight, units, mean, and squares."""

    weight: float
    units: float
    mean: float
    between: float
    within: float


def of_heaviest(
    rows: FloatArray, hypotheses: Sequence[Sequence[Hypothesis]], changed: Sequence[bool]
) -> FloatArray:
    """Return the moments of arms since the beginning of their heaviest hypotheses.

    What a hypothesis lacks is scaled by its units. Fourth powers of an arm that changed are at most
    those of normal noise.
    """
    found = rows.copy()
    for row, own, cut in zip(found, hypotheses, changed, strict=True):
        if not own:
            continue
        one = max(own, key=lambda h: h.weight)
        share = one.units / row[N]
        row[[A2, DOF, F]] *= share
        row[R] = max(1.0, share * row[R])
        row[[N, N2, MEAN, B, W]] = one.units, one.units, one.mean, one.between, one.within
        if cut:
            normal = one.within**2 / (row[DOF] + 2) + one.between**2 / (max(row[R] - 1, 0) + 2)
            row[F] = min(row[F], 3 * normal)
    return found


def squared_move(looks: FloatArray, curiosity: float, gap: float) -> float:
    """Return how far an arm moves in ``gap`` rounds, squared: on a line between powers of 2.

    ``looks`` has (squared moves, how often) of each arm and power; eight looks saw no move. An arm
    of the last report has not moved.
    """
    if gap < 1:
        return 0.0
    moved = looks[:, :, 0].sum(axis=0) / (8 + looks[:, :, 1].sum(axis=0))
    levels = [0.0]
    for one in moved:
        levels.append(max(one, 2 * levels[-1], curiosity**2 / 1000))
    sizes = 2.0 ** np.arange(len(moved))
    if gap >= sizes[-1]:
        return float(levels[-1] * gap / sizes[-1])
    return float(np.interp(gap, sizes, levels[1:]))


def followed(
    found: Pooled,
    units: FloatArray,
    hypotheses: Sequence[Sequence[Hypothesis]],
    masses: FloatArray,
    moves: FloatArray,
    level: FloatArray,
    shift: FloatArray,
    upper: FloatArray,
    sign: float,
) -> FloatArray:
    """Return theta where arm i has the hypothesis at ``masses[i]``, and moved by ``moves[i]``.

    ``found`` and ``units`` are those of the heaviest hypotheses; moves are squared.
    """
    theta = np.empty(len(units))
    for i, own in enumerate(hypotheses):
        coins, k, n, moved = 0.0, 0.0, 0.0, 0.0
        if own:
            weights = np.cumsum([h.weight for h in own])
            one = own[min(int((weights <= masses[i]).sum()), len(own) - 1)]
            coins, n, moved = found.coins[i] * one.units / units[i], one.units, moves[i] / 4
            k = min(max(one.mean + shift[i], 0.0), 1.0)
        a = found.m * found.c0 + coins * k
        b = (1 - found.m) * found.c0 + coins * (1 - k)
        mean, variance = stats.beta.stats(a, b)
        variance = max(variance, min(variance + moved, mean * (1 - mean) / 3))
        counts = mean * (1 - mean) / variance - 1
        law, tail = stats.beta(mean * counts, (1 - mean) * counts), stats.norm.cdf(-level[i])
        q = law.ppf(tail) if sign > 0 else law.isf(tail)
        end = shift[i] if sign > 0 else shift[i] + upper[i]
        theta[i] = q + found.e[i] * (1 - tail ** (1 / (n + 1))) * (end - q)
    return np.clip(theta - shift, 0, upper)
