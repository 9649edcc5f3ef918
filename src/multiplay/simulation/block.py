"""One block: some trials of one policy, played round by round."""

import time
from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

import numpy as np

from multiplay._support.serialization import settings
from multiplay.actions import ActionSet
from multiplay.environments import Adversarial, Environment, World
from multiplay.environments.base import largest_change
from multiplay.policies import Policy
from multiplay.policies.base import drop_warm_start, shown
from multiplay.random import POLICY, Streams
from multiplay.results.measured import EACH_ROUND, FIXED, Measured
from multiplay.simulation.comparator import BestOfEachRound
from multiplay.simulation.measurements import Ledger
from multiplay.simulation.referee import Referee
from multiplay.types import IntArray


class Block(NamedTuple):
    """The unit of work: some trials of one policy. Its numbers depend on nothing else.

    ``best`` is the best fixed action of each trial, where it was found before; ``against`` says
    whether regret is against that or against the best action of each round.
    """

    actions: ActionSet
    environment: Environment
    policy: Policy
    horizon: int
    trials: range
    seed: int
    rounds: IntArray
    best: IntArray | None = None
    against: str = FIXED


def play(block: Block, advance: Callable[[int], None] = lambda rounds: None) -> Measured:
    """Play one block, round by round; ``advance`` hears of finished rounds now and then."""
    actions, environment, policy, horizon, trials, seed, rounds, *_ = block
    warm_up(block)
    world = environment.open(actions, horizon, trials, seed)
    each_round = block.against == EACH_ROUND
    rival = BestOfEachRound(actions.period) if each_round else _best_fixed(block, world)
    ledger = Ledger(actions, rival, rounds, len(trials))
    rng = Streams.spawn(seed, POLICY, trials)
    started = time.perf_counter()
    _play_rounds(block, world, ledger, rng, horizon, advance)
    measured = ledger.finished(horizon, world.corruption, time.perf_counter() - started)
    if not np.isfinite(measured["regret"]).all():
        raise ArithmeticError(f"the regret of {policy!r} is not finite. Fix its update().")
    return measured


def _play_rounds(
    block: Block,
    world: World,
    ledger: Ledger,
    rng: Streams,
    last: int,
    advance: Callable[[int], None],
) -> None:
    """Play rounds 1, ..., last, each on its own set, and book them."""
    actions, policy, horizon = block.actions, block.policy, block.horizon
    trials, today = len(block.trials), actions.at(1)
    referee = Referee(policy, today, trials, block.rounds)
    state = policy.start(today, horizon, trials)
    stride = max(1, horizon // 100)
    for t in range(1, last + 1):
        before, today = today, actions.at(t)
        if today is not before:
            drop_warm_start(policy, state, before)
        chosen = policy.choose(today, state, rng)
        action = chosen.action
        referee.watch(t, today, action)
        seen = world.observe(action)
        policy.update(today, state, chosen, shown(policy, seen.feedback), rng)
        ledger.add(t, today, action, seen)
        if t % stride == 0:
            advance(stride)
    referee.judge()


def warm_up(block: Block) -> None:
    """Play two rounds of two trials for nothing, once in a process for each kind of block.

    Kernels are compiled, or read from disk, when they are first called: that is no time of a
    policy. The policy is a copy, and a function of past actions is not asked: both may remember.
    """
    actions, environment, policy, horizon, trials, *_ = block
    kinds = [type(actions.at(1)), type(environment), *map(type, settings(environment).values())]
    kind = repr(policy), block.against, *kinds
    if kind in _warm:
        return
    _warm.add(kind)
    if environment.adaptive:
        environment = Adversarial(np.full((2, actions.d), 0.5))
    last, few = min(2, horizon), trials[:2]
    some = block._replace(environment=environment, policy=deepcopy(policy), trials=few)
    nothing = np.zeros((len(few), actions.d), dtype=np.int64)
    rival = BestOfEachRound(1) if block.against == EACH_ROUND else nothing
    ledger = Ledger(actions, rival, np.arange(1, last + 1), len(few))
    world = environment.open(actions, horizon, few, block.seed)
    rng = Streams.spawn(block.seed, POLICY, few)
    _play_rounds(some, world, ledger, rng, last, lambda rounds: None)
    ledger.finished(last, world.corruption, 0.0)
    largest_change(np.zeros((1, 1)), np.zeros((1, 1)))  # called only once losses are corrupted


_warm: set[tuple[object, ...]] = set()  # kinds of blocks


def _best_fixed(block: Block, world: World) -> IntArray | None:
    """Return the best fixed action for the means of the whole horizon, if play cannot change it."""
    if block.best is not None or block.environment.adaptive:
        return block.best
    if world.total_means is not None:
        return block.actions.best(world.total_means / block.horizon)
    return look_ahead(block.actions, block.environment, block.horizon, block.seed, block.trials)


def look_ahead(
    actions: ActionSet,
    environment: Environment,
    horizon: int,
    seed: int,
    trials: range,
    advance: Callable[[int], None] = lambda rounds: None,
) -> IntArray:
    """Return the best fixed action of each trial, from the means of all its rounds."""
    world, shape = environment.open(actions, horizon, trials, seed), (len(trials), actions.d)
    total, idle = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    for _ in range(horizon):
        total += world.observe(idle).means
    return actions.best(total / horizon)
