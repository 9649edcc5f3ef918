"""Problem instances: transport problems and networks of any size, and games in progress."""

import time
from collections import deque
from statistics import median
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from scipy import sparse

from multiplay import (
    ActionSet,
    GenLBINFV,
    Network,
    Policy,
    Stochastic,
    Streams,
    Transport,
    Uniform,
)
from multiplay.hull import Regulariser
from multiplay.random import POLICY
from multiplay.types import Arrays, FloatArray

Size = tuple[int, int]
SIZES: tuple[Size, ...] = ((3, 2), (10, 10), (50, 50), (200, 200))


def label(size: Size) -> str:
    """Return a size as text, such as "3x2"."""
    return f"{size[0]}x{size[1]}"


def transport(size: Size, seed: int = 0) -> Transport:
    """Return a problem with 1 to 9 units per supplier; for 3x2, the problem of the paper."""
    if size == (3, 2):
        return Transport([1, 4, 5], [4, 6])
    rng = np.random.default_rng((seed, *size))
    supply = rng.integers(1, 10, size[0])
    demand = 1 + rng.multinomial(supply.sum() - size[1], np.full(size[1], 1 / size[1]))
    return Transport(supply, demand)


def network(arcs: int, nodes: int, seed: int = 0) -> Network:
    """Return a network of arcs between random nodes, with capacities of 1 to 9 units.

    A ring of arcs with the largest capacity joins all nodes. Every tenth node supplies 1 to 9
    units, and the next node demands as many, so the problem is feasible.
    """
    rng = np.random.default_rng((seed, arcs, nodes))
    ring = np.arange(nodes)
    tail = np.concatenate([ring, rng.integers(0, nodes, arcs - nodes)])
    away = np.concatenate([np.ones(nodes, int), rng.integers(1, nodes, arcs - nodes)])
    capacity = np.concatenate([np.full(nodes, 9), rng.integers(1, 10, arcs - nodes)])
    sources = ring[: nodes - 1 : 10]
    supply = rng.integers(1, 10, len(sources))
    supplies = dict(zip(sources.tolist(), supply.tolist(), strict=True))
    supplies |= dict(zip((sources + 1).tolist(), (-supply).tolist(), strict=True))
    return Network(np.column_stack([tail, (tail + away) % nodes]), supplies, capacity)


class Game:
    """Trials in progress; each call plays the next round."""

    def __init__(self, actions: ActionSet, policy: Policy, trials: int = 1) -> None:
        horizon = max(10**7, actions.d)  # never reached, so that the environment does not end
        costs = np.random.default_rng(0).uniform(0.1, 0.5, (trials, actions.d))
        self.actions, self.policy = actions, policy
        self.rng = Streams.spawn(0, POLICY, range(trials))
        world = Stochastic(Uniform(0, 2 * costs))
        self.world = world.open(actions, horizon, range(trials), seed=0)
        self.state = policy.start(actions, horizon, trials)
        self.observing: deque[float] = deque(maxlen=1000)

    def __call__(self) -> None:
        """Play a round."""
        play = self.policy.choose(self.actions, self.state, self.rng)
        started = time.perf_counter()
        feedback = self.world.observe(play.action).feedback
        self.observing.append(time.perf_counter() - started)
        self.policy.update(self.actions, self.state, play, feedback, self.rng)

    def environment_seconds(self) -> float:
        """Return the median seconds of the environment per round."""
        return median(self.observing)


class Step(NamedTuple):
    """The arguments of ``hull.minimise`` in one round, and its result."""

    costs: FloatArray
    beta: FloatArray
    regulariser: Regulariser
    warm: Arrays
    point: Arrays


def recorded_steps(actions: ActionSet) -> list[Step]:
    """Return the FTRL steps of consecutive rounds of GenLBINFV, one trial, after a burn-in."""
    burn_in, rounds = (
        (300, 1000) if actions.d <= 100 else (300, 50) if actions.d < 10_000 else (50, 10)
    )
    game = Game(actions, GenLBINFV(horizon=max(10_000, actions.d)))
    for _ in range(burn_in):
        game()
    kept: list[Step] = []
    minimise = type(actions.hull).minimise

    def recorder(
        self: object, costs: FloatArray, beta: FloatArray, weights: Regulariser, warm: Arrays
    ) -> Arrays:
        warm = {name: array.copy() for name, array in warm.items()}
        point = minimise(actions.hull, costs, beta, weights, warm)
        copies = {name: array.copy() for name, array in point.items()}
        kept.append(Step(costs.copy(), beta.copy(), weights, warm, copies))
        return point

    with patch.object(type(actions.hull), "minimise", recorder):
        for _ in range(rounds):
            game()
    return kept


def margins(plans: Transport) -> tuple[sparse.csr_array, FloatArray]:
    """Return the equations of the transport polytope, A x = b."""
    rows, cols = len(plans.supply), len(plans.demand)
    suppliers = sparse.kron(sparse.eye_array(rows), np.ones((1, cols)))
    demanders = sparse.kron(np.ones((1, rows)), sparse.eye_array(cols))
    A = sparse.csr_array(sparse.vstack([suppliers, demanders]))
    return A, np.concatenate([plans.supply, plans.demand]).astype(float)
