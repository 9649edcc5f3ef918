"""FTRL steps from the centre, with what was learned on other days: they always converge."""

from collections.abc import Callable

import numpy as np
import pytest

import multiplay as mp
from multiplay import ActionSet
from multiplay.actions import limited
from multiplay.hull import DecompositionHull, Hull, Regulariser
from multiplay.testing import optimality_gap
from multiplay.types import FloatArray, IntArray

Rng = np.random.Generator


def shares(rng: Rng, units: int, parts: int) -> IntArray:
    """Spread units over a few parts, very unevenly at times: some get none."""
    return rng.multinomial(units, rng.dirichlet(np.full(parts, 10 ** rng.uniform(-1, 1))))


def plain(rng: Rng) -> ActionSet:
    (rows, cols), units = rng.integers(1, 9, 2), int(10 ** rng.uniform(0, 6))
    return mp.Transport(shares(rng, units, rows), shares(rng, units, cols))


def short(rng: Rng) -> ActionSet:
    """Too small lanes, some closed, and a lane or two where somebody has decided already."""
    (rows, cols), units = rng.integers(1, 6, 2), int(10 ** rng.uniform(0, 6))
    supply, demand = shares(rng, units, rows), shares(rng, units, cols)
    lanes = np.where(rng.random((rows, cols)) < 0.3, 0, rng.integers(0, units + 1, (rows, cols)))
    day = mp.Transport(supply, demand, capacities=lanes, shortage=1)
    some = day.argmin(rng.random(day.d))
    return limited(day, day.n, np.where(rng.random(day.d) < 0.1, some, -1))


def listed(rng: Rng) -> ActionSet:
    shape = rng.integers(1, (20, 8), 2)
    return mp.Explicit(rng.integers(0, int(10 ** rng.uniform(0, 6)) + 1, shape))


def rates(rng: Rng, shape: tuple[int, ...]) -> FloatArray:
    """From 0.05 to 100."""
    return 10 ** rng.uniform(np.log10(0.05), 2, shape)


def steps(rng: Rng, n: IntArray) -> list[tuple[Regulariser, FloatArray, FloatArray]]:
    """Return phi, beta and the linear part as GenLBINFV, LBINF, Hybrid and GenAdaINF have them."""
    one, beta = np.ones(1), rates(rng, (1, len(n)))
    g = rng.uniform(np.log(2), 15)
    log_barrier = Regulariser(barrier=one, entropy=g * one)
    tsallis = Regulariser(barrier=0 * one, entropy=one, root=one)
    same, v = np.full_like(beta, beta[0, 0]), 10 ** rng.uniform(-2, 2, 1)
    adaptive = Regulariser(barrier=beta / np.maximum(n, 1), entropy=v, shannon=v)
    return [
        (log_barrier, beta, 0 * beta),
        (log_barrier, beta, -(1 + g) * beta),
        (tsallis, same, -same),
        (adaptive, np.ones_like(beta), 0 * beta),
    ]


@pytest.mark.parametrize("draw", [plain, short, listed])
def test_a_step_from_the_centre_finds_the_minimiser(draw: Callable[[Rng], ActionSet]) -> None:
    """Learned losses that differ by up to 1e5, n_i from 0 to 10^6, and arms that are forced."""
    rng = np.random.default_rng(13)
    for _ in range(60):
        day = draw(rng)
        hull: Hull = day.hull
        if isinstance(hull, DecompositionHull):  # one with all digits
            hull = DecompositionHull(hull.oracle, day.n, gap=0.0)
        learned = 10 ** rng.uniform(-1, 5) * rng.random((1, day.d))
        learned[:, rng.random(day.d) < rng.choice([0.0, 0.5])] *= 1e-5
        for psi, beta, linear in steps(rng, day.n):
            costs = rng.choice([-1.0, 1.0]) * learned + linear
            point = hull.minimise(costs, beta, psi, hull.start(1))
            assert optimality_gap(day, costs, beta, psi, point) < 1e-7
            assert day.contains(hull.draw(point, rng)).all()
