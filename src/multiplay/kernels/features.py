"""Regression on features with an effect of each arm: the posterior in triangles, one for each size.

The loss of a unit of arm i is <theta, phi> + b_i + noise, b_i ~ N(0, s2), and s2 is one of a few
sizes. Of arm i the state has N, Z, X, the sums of w, w y, w phi over its reports, where y is the
average of a units and w = 1 / nu the inverse of its variance. Of all arms it has, for each size, a
triangle R and a vector z: R'R is the precision of theta when all b are eliminated, R'z = R'R times
the mean of theta. Given theta, b_i has mean c (Z - X'theta) and variance c = s2 / (1 + s2 N). So
y = phi'theta + b_i + noise says of theta that

    y - c Z = (phi - c X)'theta + noise of variance nu + c,

a row that is appended by plane rotations: nothing is ever subtracted from a precision.

The variance of y is nu = s_u^2 + (s_e^2 + k m (1 - m)) / a, where m is its mean as predicted. The
three variances are fitted to squared errors by weighted least squares: ``noise`` has the matrix S
and the vector T of that fit, and its solution.
"""

import math
from typing import Any

import numpy as np

from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.random import Generators, normal_pair, pick, uniform
from multiplay.kernels.regression import back_substitute
from multiplay.types import FloatArray, IntArray

UU, UE, UQ, EE, EQ, QQ, TU, TE, TQ, ROUND, UNIT, COIN = range(12)  # columns of ``noise``
NOISES = 12
WEIGHT = 0.01  # added to a variance before it is a weight: small estimates must not own the fit
LEAST_ROUND, LEAST_UNIT = 1e-5, 1e-6  # of the variances s_u^2 and s_e^2
LEAST_MEAN = 0.03  # of a chance, when its variance m (1 - m) is predicted
NEGLIGIBLE = 1e-12  # probability of a size that beliefs leave out
COUNT, CENTRE, SPREAD, SLOPE, SLOPE_V, SLOPE_H, BEND, BEND_V, BEND_H, ERRORS = range(10)  # ``fit``
FITS = 10
FIRST = 20  # errors that are not compared, beside two for each coefficient
GONE = 1e-12  # N of an arm of which a discount has left nothing


@subroutine
def dot(a: FloatArray, b: FloatArray) -> float:
    """Return <a, b>, in four sums: they do not wait for each other."""
    n = len(a)
    s = r = q = o = 0.0
    for i in range(0, n - 3, 4):
        s += a[i] * b[i]
        r += a[i + 1] * b[i + 1]
        q += a[i + 2] * b[i + 2]
        o += a[i + 3] * b[i + 3]
    for i in range(n - n % 4, n):
        s += a[i] * b[i]
    return (s + r) + (q + o)


@subroutine
def dot_row(A: FloatArray, i: int, b: FloatArray) -> float:
    """Return <A_i, b> as ``dot``, without a view of the row."""
    n = len(b)
    s = r = q = o = 0.0
    for j in range(0, n - 3, 4):
        s += A[i, j] * b[j]
        r += A[i, j + 1] * b[j + 1]
        q += A[i, j + 2] * b[j + 2]
        o += A[i, j + 3] * b[j + 3]
    for j in range(n - n % 4, n):
        s += A[i, j] * b[j]
    return (s + r) + (q + o)


@subroutine
def append_row(R: FloatArray, z: FloatArray, x: FloatArray, y: float) -> Any:
    """Append the row x to R, and y to z; return what is left of y, and det R^2 new / old."""
    p, shrunk = len(x), 1.0
    for i in range(p):
        if x[i] != 0.0:
            inverse = 1.0 / math.sqrt(R[i, i] * R[i, i] + x[i] * x[i])
            cos, sin = R[i, i] * inverse, x[i] * inverse
            shrunk *= cos
            for j in range(i, p):
                r, s = R[i, j], x[j]
                R[i, j] = cos * r + sin * s
                x[j] = cos * s - sin * r
            z[i], y = cos * z[i] + sin * y, cos * y - sin * z[i]
    return y, 1.0 / (shrunk * shrunk)


@subroutine
def best_size(ev: FloatArray) -> int:
    """Return the size of the largest evidence."""
    best = 0
    for g in range(1, len(ev)):
        if ev[g] > ev[best]:
            best = g
    return best


@subroutine
def shares(ev: FloatArray, share: FloatArray) -> None:
    """share = the probabilities of the sizes."""
    most, total = ev.max(), 0.0
    for g in range(len(ev)):
        share[g] = math.exp(ev[g] - most)
        total += share[g]
    for g in range(len(ev)):
        share[g] /= total


@subroutine
def fitted(noise: FloatArray, u: bool, e: bool, q: bool) -> Any:
    """Return the least squares of some of the three variances, the others 0, and their loss.

    The loss is infinite if one is negative.
    """
    S = np.zeros((3, 3))
    t = np.zeros(3)
    S[0, 0], S[1, 1], S[2, 2] = 1.0, 1.0, 1.0
    if u:
        S[0, 0], t[0] = noise[UU], noise[TU]
    if e:
        S[1, 1], t[1] = noise[EE], noise[TE]
    if q:
        S[2, 2], t[2] = noise[QQ], noise[TQ]
    if u and e:
        S[0, 1] = noise[UE]
    if u and q:
        S[0, 2] = noise[UQ]
    if e and q:
        S[1, 2] = noise[EQ]
    l10, l20 = S[0, 1] / S[0, 0], S[0, 2] / S[0, 0]  # S = L D L'
    d1 = S[1, 1] - l10 * S[0, 1]
    l21 = (S[1, 2] - l20 * S[0, 1]) / d1
    d2 = S[2, 2] - l20 * S[0, 2] - l21 * l21 * d1
    f1 = t[1] - l10 * t[0]
    f2 = t[2] - l20 * t[0] - l21 * f1
    x2 = f2 / d2
    x1 = f1 / d1 - l21 * x2
    x0 = t[0] / S[0, 0] - l10 * x1 - l20 * x2
    loss = -(t[0] * x0 + t[1] * x1 + t[2] * x2)
    return x0, x1, x2, loss if min(x0, x1, x2) >= 0.0 else math.inf


@subroutine
def fit_noise(noise: FloatArray) -> None:
    """Fit the three variances to the sums, none of them negative."""
    least = math.inf
    u = e = q = 0.0
    for case in range(1, 8):
        x0, x1, x2, loss = fitted(noise, case & 1 > 0, case & 2 > 0, case & 4 > 0)
        if loss < least:
            least, u, e, q = loss, x0, x1, x2
    noise[ROUND], noise[UNIT], noise[COIN] = max(u, LEAST_ROUND), max(e, LEAST_UNIT), q


@subroutine
def add_error(noise: FloatArray, om: float, u: float, e: float, q: float, found: float) -> None:
    """Add a squared error to the fit, whose mean is u s_u^2 + e s_e^2 + q k, with weight om."""
    noise[UU] += om * u * u
    noise[UE] += om * u * e
    noise[UQ] += om * u * q
    noise[EE] += om * e * e
    noise[EQ] += om * e * q
    noise[QQ] += om * q * q
    noise[TU] += om * u * found
    noise[TE] += om * e * found
    noise[TQ] += om * q * found


@subroutine
def coin(m: float) -> float:
    """Return m (1 - m), the variance of a chance m."""
    m = min(max(m, LEAST_MEAN), 1.0 - LEAST_MEAN)
    return m * (1.0 - m)


@subroutine
def compare(fit: FloatArray, bends: FloatArray, phi: FloatArray, m: float, error: float) -> None:
    """Add an error of a prediction m, in deviations, to sums that find a wrong shape.

    If the model holds, errors go with nothing that is known before: neither with h = m - centre
    (they would if coefficients change), nor with h = (m - centre)^2 - spread or the square of a
    feature less its average (if the losses are no linear function of the features). The sums are
    of h error, (h error)^2 and h^2.
    """
    n, step = fit[COUNT], m - fit[CENTRE]
    for j in range(len(phi)):
        h = phi[j] * phi[j] - bends[j, 3]
        if n >= 2 * len(phi) + FIRST:
            bends[j, 0] += h * error
            bends[j, 1] += (h * error) ** 2
            bends[j, 2] += h * h
        bends[j, 3] += h / (n + 1.0)
    if n >= 2 * len(phi) + FIRST:
        bend = step * step - fit[SPREAD] / n
        fit[SLOPE] += step * error
        fit[SLOPE_V] += (step * error) ** 2
        fit[SLOPE_H] += step * step
        fit[BEND] += bend * error
        fit[BEND_V] += (bend * error) ** 2
        fit[BEND_H] += bend * bend
        fit[ERRORS] += error * error
    fit[COUNT] = n + 1.0
    fit[CENTRE] += step / (n + 1.0)
    fit[SPREAD] += step * (m - fit[CENTRE])


@kernel
def learn(
    arms: IntArray,
    phi: FloatArray,
    a: FloatArray,
    y: FloatArray,
    scatter: FloatArray,
    N: FloatArray,
    Z: FloatArray,
    X: FloatArray,
    R: FloatArray,
    z: FloatArray,
    ev: FloatArray,
    noise: FloatArray,
    fit: FloatArray,
    bends: FloatArray,
    W: FloatArray,
    h: FloatArray,
    sizes: FloatArray,
    within: float,
) -> None:
    """Add the reports of a round in every trial: ``arms`` of which a units have the average y.

    Arm -1 is no arm, nor is one with a = 0. ``scatter`` is the sum of squared deviations of the
    units from y, NaN if they are not known; ``within`` is the weight of each of their degrees of
    freedom in the fit of the noise, which is not learned if it is 0. W and h are kept if they are
    not empty: the scatter of phi within the arms, and its product with y.
    """
    K, p, G, learns_noise = arms.shape[1], phi.shape[2], len(sizes), within > 0.0
    x, theta, m, q = np.empty(p), np.empty(p), np.empty(K), np.empty(K)
    for k in range(len(arms)):
        own, best = noise[k], best_size(ev[k])
        back_substitute(R[k, best], z[k, best], theta)
        for j in range(K):
            i = arms[k, j]
            if i >= 0 and a[k, j] > 0.0:
                c = sizes[best] / (1.0 + sizes[best] * N[k, i])
                m[j] = dot(phi[k, j], theta) + c * (Z[k, i] - dot(X[k, i], theta))
                q[j] = coin(m[j])
                if learns_noise and a[k, j] > 1.0 and not math.isnan(scatter[k, j]):
                    dof = a[k, j] - 1.0
                    add_error(own, within * dof, 0.0, 1.0, q[j], scatter[k, j] / dof)
        if learns_noise:
            fit_noise(own)
        for j in range(K):
            i, units = arms[k, j], a[k, j]
            if i < 0 or units == 0.0:
                continue
            nu = own[ROUND] + (own[UNIT] + own[COIN] * q[j]) / units
            for g in range(G):
                c = sizes[g] / (1.0 + sizes[g] * N[k, i])
                root = 1.0 / math.sqrt(nu + c)
                for f in range(p):
                    x[f] = (phi[k, j, f] - c * X[k, i, f]) * root
                left, grown = append_row(R[k, g], z[k, g], x, (y[k, j] - c * Z[k, i]) * root)
                v = grown * (nu + c)
                ev[k, g] -= 0.5 * (math.log(v) + left * left)
                if g == best:
                    compare(fit[k], bends[k], phi[k, j], m[j], left)
                if g == best and learns_noise:
                    om = 1.0 / (v - nu + WEIGHT) ** 2
                    found = (left * left - 1.0) * v + nu
                    add_error(own, om, 1.0, 1.0 / units, q[j] / units, found)
            add_to_arm(k, i, phi[k, j], y[k, j], 1.0 / nu, N, Z, X, W, h)
        if learns_noise:
            fit_noise(own)


@subroutine
def add_to_arm(
    k: int,
    i: int,
    phi: FloatArray,
    y: float,
    w: float,
    N: FloatArray,
    Z: FloatArray,
    X: FloatArray,
    W: FloatArray,
    h: FloatArray,
) -> None:
    """Add a report of weight w to the sums of an arm, and to the scatter within arms."""
    n, p = N[k, i], len(phi)
    if len(W) > 0 and n > GONE:
        f = w * n / (n + w)
        e = y - Z[k, i] / n
        for r in range(p):
            s = f * (phi[r] - X[k, i, r] / n)
            h[k, r] += s * e
            for o in range(p):
                W[k, r, o] += s * (phi[o] - X[k, i, o] / n)
    N[k, i] += w
    Z[k, i] += w * y
    for f in range(p):
        X[k, i, f] += w * phi[f]


@kernel
def add_arms(
    N: FloatArray, Z: FloatArray, X: FloatArray, sizes: FloatArray, P: FloatArray, b: FloatArray
) -> None:
    """P_g += sum over arms of X X' / (N (1 + s2_g N)), b_g += the same with Z X: what they say."""
    for k in range(len(N)):
        for i in range(N.shape[1]):
            n = N[k, i]
            if n <= GONE:
                continue
            for g in range(len(sizes)):
                f = 1.0 / (n * (1.0 + sizes[g] * n))
                for r in range(X.shape[2]):
                    s = f * X[k, i, r]
                    if s != 0.0:
                        b[k, g, r] += s * Z[k, i]
                        for o in range(r, X.shape[2]):
                            P[k, g, r, o] += s * X[k, i, o]


@kernel
def factor(P: FloatArray, b: FloatArray, R: FloatArray, z: FloatArray) -> None:
    """R'R = P and R'z = b in every trial and size, by Cholesky; P has its upper half only."""
    p = b.shape[2]
    for k in range(len(P)):
        for g in range(P.shape[1]):
            S, T, t = P[k, g], R[k, g], z[k, g]
            for i in range(p):
                for j in range(i, p):
                    T[i, j] = S[i, j]
                t[i] = b[k, g, i]
            for i in range(p):
                root = math.sqrt(T[i, i])
                for j in range(i, p):
                    T[i, j] /= root
                t[i] /= root
                for r in range(i + 1, p):
                    s = T[i, r]
                    if s != 0.0:
                        t[r] -= s * t[i]
                        for j in range(r, p):
                            T[r, j] -= s * T[i, j]


@kernel
def draw(
    generators: Generators,
    N: FloatArray,
    Z: FloatArray,
    X: FloatArray,
    R: FloatArray,
    z: FloatArray,
    ev: FloatArray,
    sizes: FloatArray,
    arm: FloatArray,
    day: FloatArray,
    means: FloatArray,
) -> None:
    """Draw the mean of every arm: a size, one theta = R^-1 (z + xi), and b_i for each arm."""
    trials, d = N.shape
    p, share = R.shape[2], np.empty(len(sizes))
    target, theta, today = np.empty(p), np.empty(p), np.empty(p)
    for k in range(trials):
        words = generators[k]
        shares(ev[k], share)
        g = pick(share, uniform(words))
        second = 0.0
        for j in range(p):
            first, second = normal_pair(words) if j % 2 == 0 else (second, 0.0)
            target[j] = z[k, g, j] + first
        back_substitute(R[k, g], target, theta)
        A, D = arm[k if len(arm) > 1 else 0], day[k if len(day) > 1 else 0]
        for j in range(p):
            today[j] = theta[j] * D[j]
        s2, own = sizes[g], X[k]
        for i in range(d):
            m = dot_row(A, i, today)
            if s2 > 0.0:
                c = s2
                if N[k, i] > 0.0:
                    c = s2 / (1.0 + s2 * N[k, i])
                    m += c * (Z[k, i] - dot_row(own, i, theta))
                first, second = normal_pair(words) if i % 2 == 0 else (second, 0.0)
                m += math.sqrt(c) * first
            means[k, i] = m


@subroutine
def length_in(R: FloatArray, x: FloatArray) -> float:
    """Return |R'^-1 x|^2; x is changed."""
    p, total = len(x), 0.0
    for i in range(p):
        w = x[i] / R[i, i]
        total += w * w
        if w != 0.0:
            for j in range(i + 1, p):
                x[j] -= R[i, j] * w
    return total


@kernel
def believe(
    N: FloatArray,
    Z: FloatArray,
    X: FloatArray,
    R: FloatArray,
    z: FloatArray,
    ev: FloatArray,
    sizes: FloatArray,
    arm: FloatArray,
    day: FloatArray,
    mean: FloatArray,
    deviation: FloatArray,
) -> None:
    """Give the mean and the deviation of every arm's mean: a mixture over the sizes."""
    trials, d = N.shape
    p, share = R.shape[2], np.empty(len(sizes))
    theta, x = np.empty((len(sizes), p)), np.empty(p)
    for k in range(trials):
        shares(ev[k], share)
        for g in range(len(sizes)):
            back_substitute(R[k, g], z[k, g], theta[g])
        A, D = arm[k if len(arm) > 1 else 0], day[k if len(day) > 1 else 0]
        for i in range(d):
            weight = m = v = 0.0
            for g in range(len(sizes)):
                if share[g] > NEGLIGIBLE:
                    c = sizes[g] / (1.0 + sizes[g] * N[k, i])
                    for j in range(p):
                        x[j] = A[i, j] * D[j] - c * X[k, i, j]
                    new = c * Z[k, i] + dot(x, theta[g])
                    weight, m, v = mix(weight, m, v, share[g], new, c + length_in(R[k, g], x))
            mean[k, i], deviation[k, i] = m, math.sqrt(v)


@subroutine
def mix(weight: float, m: float, v: float, share: float, mean: float, variance: float) -> Any:
    """Add a part to a mixture: its weight, mean and variance."""
    total = weight + share
    step = mean - m
    f = share / total
    return total, m + f * step, (1.0 - f) * (v + f * step * step) + f * variance


@kernel
def believe_plans(
    N: FloatArray,
    Z: FloatArray,
    X: FloatArray,
    R: FloatArray,
    z: FloatArray,
    ev: FloatArray,
    sizes: FloatArray,
    units: FloatArray,
    phi: FloatArray,
    mean: FloatArray,
    deviation: FloatArray,
) -> None:
    """Give the mean and the deviation of <units, b> + <phi, theta>, several for each trial."""
    trials, plans, d = units.shape
    p, share = R.shape[2], np.empty(len(sizes))
    theta, x, weight = np.empty(p), np.empty(p), np.empty(plans)
    for k in range(trials):
        shares(ev[k], share)
        mean[k], deviation[k], weight[:] = 0.0, 0.0, 0.0
        for g in range(len(sizes)):
            if share[g] <= NEGLIGIBLE:
                continue
            back_substitute(R[k, g], z[k, g], theta)
            for r in range(plans):
                x[:] = phi[k, r]
                known = own = 0.0
                for i in range(d):
                    a = units[k, r, i]
                    if a != 0.0:
                        c = sizes[g] / (1.0 + sizes[g] * N[k, i])
                        known += a * c * Z[k, i]
                        own += a * a * c
                        for j in range(p):
                            x[j] -= a * c * X[k, i, j]
                new = known + dot(x, theta)
                v = own + length_in(R[k, g], x)
                weight[r], mean[k, r], deviation[k, r] = mix(
                    weight[r], mean[k, r], deviation[k, r], share[g], new, v
                )
        for r in range(plans):
            deviation[k, r] = math.sqrt(deviation[k, r])


@kernel
def contrasts(
    N: FloatArray,
    Z: FloatArray,
    X: FloatArray,
    R: FloatArray,
    z: FloatArray,
    ev: FloatArray,
    sizes: FloatArray,
    weights: FloatArray,
    shared: FloatArray,
    arms: IntArray,
    mean: FloatArray,
    deviation: FloatArray,
) -> None:
    """Give mean and deviation of <w_r, theta> + s_r (average of b) + b_r: a mixture over the sizes.

    ``arms`` has the arm of b_r, -1 for none.
    """
    d, p, G = N.shape[1], R.shape[2], len(sizes)
    share, theta, x, average = np.empty(G), np.empty(p), np.empty(p), np.empty(p)
    weight = np.empty(len(weights))
    for k in range(len(N)):
        shares(ev[k], share)
        mean[k], deviation[k], weight[:] = 0.0, 0.0, 0.0
        for g in range(G):
            if share[g] <= NEGLIGIBLE:
                continue
            back_substitute(R[k, g], z[k, g], theta)
            known = own = 0.0  # of the average of b, given theta
            average[:] = 0.0
            for i in range(d):
                c = sizes[g] / (1.0 + sizes[g] * N[k, i])
                known += c * Z[k, i] / d
                own += c / d / d
                for j in range(p):
                    average[j] -= c * X[k, i, j] / d
            for r in range(len(weights)):
                s, i = shared[r], arms[r]
                m, v = s * known, s * s * own
                for j in range(p):
                    x[j] = weights[r, j] + s * average[j]
                if i >= 0:
                    c = sizes[g] / (1.0 + sizes[g] * N[k, i])
                    m += c * Z[k, i]
                    v += c * (1.0 + 2.0 * s / d)
                    for j in range(p):
                        x[j] -= c * X[k, i, j]
                m, v = m + dot(x, theta), v + length_in(R[k, g], x)
                weight[r], mean[k, r], deviation[k, r] = mix(
                    weight[r], mean[k, r], deviation[k, r], share[g], m, v
                )
        for r in range(len(weights)):
            deviation[k, r] = math.sqrt(max(deviation[k, r], 0.0))


@kernel
def played_rows(
    action: IntArray, arm: FloatArray, day: FloatArray, arms: IntArray, phi: FloatArray
) -> None:
    """arms[k] = the arms that are played, in order, then -1; phi[k] = their features."""
    for k in range(len(action)):
        A, D = arm[k if len(arm) > 1 else 0], day[k if len(day) > 1 else 0]
        n = 0
        for i in range(action.shape[1]):
            if action[k, i] > 0:
                arms[k, n] = i
                for j in range(len(D)):
                    phi[k, n, j] = A[i, j] * D[j]
                n += 1
        arms[k, n:] = -1
        phi[k, n:] = 0.0


@kernel
def report(
    arms: IntArray,
    seen: IntArray,
    total: FloatArray,
    units: FloatArray,
    first: IntArray,
    offset: FloatArray,
    a: FloatArray,
    y: FloatArray,
    scatter: FloatArray,
) -> None:
    """Give what a round tells of its arms: the units seen, their average, and their scatter."""
    for k in range(len(arms)):
        for j in range(arms.shape[1]):
            i = arms[k, j]
            a[k, j], y[k, j], scatter[k, j] = 0.0, 0.0, math.nan
            if i < 0 or seen[k, i] == 0:
                continue
            n = seen[k, i]
            a[k, j] = n
            if units.shape[1] > 0 and first[i] + n <= first[i + 1]:
                mean, within = 0.0, 0.0
                for s in range(n):
                    e = units[k, first[i] + s] - mean
                    mean += e / (s + 1)
                    within += e * e * s / (s + 1)
                y[k, j], scatter[k, j] = mean, within
            else:
                y[k, j] = total[k, i] / n
            y[k, j] += offset[i]
