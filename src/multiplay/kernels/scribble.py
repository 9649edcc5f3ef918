"""SCRiBLe on a polytope {y : C y <= b}, compiled: the barrier, its eigenpairs, and the draw.

The barrier is psi(y) = -sum_j log(b_j - C_j y). Every loop is over the trials, and nothing in a
trial depends on the others.
"""

import math

import numpy as np

from multiplay.kernels.dense import cholesky, jacobi, solve_cholesky
from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.random import pick
from multiplay.types import FloatArray, IntArray

MOST_STEPS = 1000  # two or three from the last minimiser, dozens from the centre
LONG_STEP = 0.25  # Newton decrements above this are damped
SMALL_STEP = 1e-5  # Newton converges quadratically: after a step this small, the next is 1e-10
LEAST_RHO = 1e-12


@kernel
def minimise(C: FloatArray, b: FloatArray, costs: FloatArray, x: FloatArray) -> None:
    """Move x, given inside, to the minimiser of <costs, y> + psi(y) by damped Newton steps.

    A full step is safe where the decrement is small, for psi is self-concordant. Where rounding
    would lead out of the polytope x stays: it is as near to the facet as numbers go.
    """
    facets, r = C.shape
    slack, inverse = np.empty(facets), np.empty(facets)
    step, after, hessian = np.empty(r), np.empty(r), np.empty((r, r))
    for k in range(len(x)):
        measure_slack(C, b, x[k], slack)
        for _ in range(MOST_STEPS):
            for j in range(facets):
                inverse[j] = 1.0 / slack[j]
            curvature(C, inverse, hessian)
            for i in range(r):
                step[i] = -costs[k, i]
                for j in range(facets):
                    step[i] -= C[j, i] * inverse[j]
            if not cholesky(hessian):
                break
            solve_cholesky(hessian, step)
            decrement = 0.0
            for j in range(facets):  # |step| in the norm of the Hessian
                along = 0.0
                for i in range(r):
                    along += C[j, i] * step[i]
                decrement += (along * inverse[j]) ** 2
            decrement = math.sqrt(decrement)
            length = 1.0 / (1.0 + decrement) if decrement > LONG_STEP else 1.0
            for i in range(r):
                after[i] = x[k, i] + length * step[i]
            if not measure_slack(C, b, after, slack):
                break
            x[k] = after
            if decrement < SMALL_STEP:
                break


@subroutine
def measure_slack(C: FloatArray, b: FloatArray, y: FloatArray, slack: FloatArray) -> bool:
    """slack = b - C y; say whether y is inside, with a slack of more than 0 at every facet."""
    inside = True
    for j in range(len(b)):
        slack[j] = b[j]
        for i in range(len(y)):
            slack[j] -= C[j, i] * y[i]
        inside &= slack[j] > 0.0
    return inside


@subroutine
def curvature(C: FloatArray, inverse: FloatArray, hessian: FloatArray) -> None:
    """Return the Hessian of psi, sum_j C_j C_j' / slack_j^2."""
    r = len(hessian)
    for p in range(r):
        for q in range(p + 1):
            total = 0.0
            for j in range(len(inverse)):
                total += C[j, p] * inverse[j] * (C[j, q] * inverse[j])
            hessian[p, q] = hessian[q, p] = total


@kernel
def eigenpairs(
    C: FloatArray, b: FloatArray, x: FloatArray, values: FloatArray, vectors: FloatArray
) -> None:
    """Eigenpairs of the Hessian of psi at x: values[k, i] and the row vectors[k, i]."""
    facets, r = C.shape
    slack, root = np.empty(facets), np.empty((facets, r))
    for k in range(len(x)):
        measure_slack(C, b, x[k], slack)
        for j in range(facets):  # the Hessian is root' root
            for i in range(r):
                root[j, i] = C[j, i] / slack[j]
        jacobi(root, values[k], vectors[k])


@kernel
def nearest_action(
    C: FloatArray,
    b: FloatArray,
    slack: FloatArray,
    x: FloatArray,
    steps: FloatArray,
    z: IntArray,
    rho: FloatArray,
) -> None:
    """z = argmin rho over the actions, and its rho; ``slack`` is that of each at each facet.

    rho(z) is the least share such that z + (w - z) / rho is in the polytope for the 2 r points
    w = x +- steps[i]. A facet allows (C_j w - C_j z) / slack_j(z), that is
    1 - (b_j - C_j w) / slack_j(z), for the w that is nearest to it.
    """
    facets, r = C.shape
    left = np.empty(facets)
    for k in range(len(x)):
        measure_slack(C, b, x[k], left)
        for j in range(facets):
            reach = 0.0
            for i in range(r):
                along = 0.0
                for p in range(r):
                    along += C[j, p] * steps[k, i, p]
                reach = max(reach, abs(along))
            left[j] -= reach
        rho[k] = np.inf
        for a in range(len(slack)):
            share = 0.0
            for j in range(facets):
                if slack[a, j] > 0.0:
                    share = max(share, 1.0 - left[j] / slack[a, j])
            if share < rho[k]:
                rho[k], z[k] = share, a
        rho[k] = min(max(rho[k], LEAST_RHO), 1.0)


@kernel
def draw(
    corners: IntArray, inverse: FloatArray, mean: FloatArray, u: FloatArray, drawn: IntArray
) -> None:
    """Draw a corner of the simplex that contains the mean, by its coordinates there.

    Between two simplices rounding may put it outside both: then the one counts whose smallest
    coordinate is largest. ``u`` has one uniform number for each trial.
    """
    r = mean.shape[1]
    weight, best = np.empty(r + 1), np.empty(r + 1)
    for k in range(len(mean)):
        chosen, most = 0, -np.inf
        for s in range(len(corners)):
            least = np.inf
            for c in range(r + 1):
                w = inverse[s, c, r]
                for i in range(r):
                    w += inverse[s, c, i] * mean[k, i]
                weight[c] = w
                least = min(least, w)
                if least <= most:
                    break
            if least > most:
                chosen, most = s, least
                best[:] = weight
                if most >= 0.0:
                    break
        total = 0.0
        for c in range(r + 1):
            best[c] = max(best[c], 0.0)
            total += best[c]
        drawn[k] = corners[chosen, pick(best, u[k] * total)]
