"""Blocks: some trials of one policy, played round by round, with a check of its actions."""

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from multiplay._support.serialization import settings
from multiplay.actions import ActionSet
from multiplay.environments import Adversarial, Corrupted, Environment, World
from multiplay.environments.base import largest_change
from multiplay.feedback import Feedback
from multiplay.kernels.units import inside_box
from multiplay.policies import Play, Policy
from multiplay.policies.base import drop_warm_start, no_action, shown
from multiplay.random import POLICY, Streams
from multiplay.results.measured import EACH_ROUND, FIXED, Measured
from multiplay.simulation.measurements import BestOfEachRound, RegretRecorder, best_units
from multiplay.types import IntArray

CHECKED_TOGETHER = 1 << 14  # numbers in actions that wait for the check


class Block(NamedTuple):
    """The unit of work: some trials of one policy. Its numbers depend on no other block.

    ``best`` is the best fixed action of each trial, where it was computed before; ``against`` is
    the comparator of the regret: that action, or the best action of each round. The losses of round
    t are told ``delay[(t - 1) % len(delay)]`` rounds later.
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
    delay: tuple[int, ...] = (0,)


def play(block: Block, advance: Callable[[int], None] = lambda rounds: None) -> Measured:
    """Play one block, round by round; ``advance`` is called with finished rounds now and then."""
    actions, environment, policy, horizon, trials, seed, rounds, *_ = block
    warm_up(block)
    world = environment.open(actions, horizon, trials, seed)
    each_round = block.against == EACH_ROUND
    by_unit = world.unit_means
    each = BestOfEachRound(actions.period, by_unit) if each_round else None
    comparator = _best_fixed(block, world) if each is None else each
    recorder = RegretRecorder(actions, comparator, rounds, len(trials), by_unit)
    rng = Streams.spawn(seed, POLICY, trials)
    started = time.perf_counter()
    _play_rounds(block, world, recorder, rng, horizon, advance)
    measured = recorder.finished(horizon, world.corruption, time.perf_counter() - started)
    if not np.isfinite(measured["regret"]).all():
        raise ArithmeticError(f"the regret of {policy!r} is not finite. Fix its update().")
    return measured


def _play_rounds(
    block: Block,
    world: World,
    recorder: RegretRecorder,
    rng: Streams,
    last: int,
    advance: Callable[[int], None],
) -> None:
    """Play rounds 1, ..., last, each on its own set, and record them.

    A policy that reads features gets each set with those of the round. They are no part of the
    set: warm starts, checks and records compare sets without them.
    """
    actions, policy, horizon = block.actions, block.policy, block.horizon
    trials, current = len(block.trials), actions.at(1)
    check = ActionCheck(policy, current, trials, block.rounds)
    reads = policy.reads_features
    state = policy.start(_featured(current, world, 1) if reads else current, horizon, trials)
    delayed = DelayedReports(block.delay) if any(block.delay) else None
    stride = max(1, horizon // 100)
    for t in range(1, last + 1):
        before, current = current, actions.at(t)
        if current is not before:
            drop_warm_start(policy, state, before)
        shows = _featured(current, world, t) if reads else current
        chosen = policy.choose(shows, state, rng)
        action = chosen.action
        check.add(t, current, action)
        seen = world.observe(action)
        if delayed is None:
            policy.update(shows, state, chosen, shown(policy, seen.feedback), rng)
        else:
            state |= chosen.cache  # before the next choice, not with a late report
            delayed.add(t, Report(shows, Play(action, chosen.memo), shown(policy, seen.feedback)))
            for report in delayed.due(t):
                policy.update(report.actions, state, report.play, report.feedback, rng)
        recorder.add(t, current, action, seen)
        if t % stride == 0:
            advance(stride)
    check.finish()


def _featured(actions: ActionSet, world: World, t: int) -> ActionSet:
    """Return the set of round t with its features, if there are any."""
    rows = world.contexts(t)
    return actions if rows is None else actions.featured(rows)


class Report(NamedTuple):
    """What a policy is told of one round: the set with its features, the play and the losses."""

    actions: ActionSet
    play: Play
    feedback: Feedback


class DelayedReports:
    """The reports that were not told yet, by the round after which they are told."""

    def __init__(self, delay: tuple[int, ...]) -> None:
        self.delay = delay
        self.waiting: dict[int, list[Report]] = {}

    def add(self, t: int, report: Report) -> None:
        """Take the report of round t."""
        told = t + self.delay[(t - 1) % len(self.delay)]
        self.waiting.setdefault(told, []).append(report)

    def due(self, t: int) -> list[Report]:
        """Return the reports that are told after round t, oldest first."""
        return self.waiting.pop(t, [])


class ActionCheck:
    """The check that a policy plays actions of the set.

    Every action must lie between 0 and n. Those of round 1 and of all recorded rounds must also be
    in the set of their round. Membership takes as long as a round, so many rounds of one set are
    checked together.
    """

    def __init__(self, policy: Policy, actions: ActionSet, trials: int, rounds: IntArray) -> None:
        self.policy, self.actions, self.shape = policy, actions, (trials, actions.d)
        self.recorded = {1, *rounds.tolist()}
        self.unchecked: dict[int, IntArray] = {}

    def add(self, t: int, actions: ActionSet, action: IntArray) -> None:
        """Take the action of round t, on the set of that round, before it is played."""
        if actions is not self.actions:
            self.finish()
            self.actions = actions
        if action.shape != self.shape or not inside_box(action, actions._n):
            raise self._error(t)
        if t in self.recorded:
            self.unchecked[t] = action
            if t == 1 or len(self.unchecked) * action.size > CHECKED_TOGETHER:
                self.finish()

    def finish(self) -> None:
        """Raise ``ArithmeticError`` if an action that was not checked yet is not in the set."""
        if self.unchecked:
            rows = np.concatenate(list(self.unchecked.values()))
            inside = self.actions.contains(rows).reshape(-1, self.shape[0]).all(axis=1)
            if not inside.all():
                raise self._error(list(self.unchecked)[int(inside.argmin())])
        self.unchecked = {}

    def _error(self, t: int) -> ArithmeticError:
        return no_action(self.policy, self.actions, self.shape[0], f"round {t}")


def warm_up(block: Block) -> None:
    """Play two rounds of two trials without a record, once in a process for each kind of block.

    Kernels are compiled, or read from disk, when they are first called: that is not part of the
    time of a policy. The policy is a copy, and a function of past actions is not called, since
    both may have state.
    """
    actions, environment, policy, horizon, trials, *_ = block
    kinds = [type(actions.at(1)), type(environment), *map(type, settings(environment).values())]
    kind = repr(policy), block.against, *kinds
    if kind in _warm:
        return
    _warm.add(kind)
    if environment.adaptive:
        environment = Adversarial(np.full((2, actions.d), 0.5))
    if isinstance(environment, Corrupted):
        environment = replace(environment, at=1)  # a round of each phase
    last, few = min(2, horizon), trials[:2]
    some = block._replace(environment=environment, policy=deepcopy(policy), trials=few)
    nothing = np.zeros((len(few), actions.d), dtype=np.int64)
    world = environment.open(actions, horizon, few, block.seed)
    by_unit = world.unit_means
    comparator = BestOfEachRound(1, by_unit) if block.against == EACH_ROUND else nothing
    recorder = RegretRecorder(actions, comparator, np.arange(1, last + 1), len(few), by_unit)
    rng = Streams.spawn(block.seed, POLICY, few)
    _play_rounds(some, world, recorder, rng, last, lambda rounds: None)
    recorder.finished(last, world.corruption, 0.0)
    largest_change(np.zeros((1, 1)), np.zeros((1, 1)))  # called only once losses are corrupted


_warm: set[tuple[object, ...]] = set()  # kinds of blocks


def _best_fixed(block: Block, world: World) -> IntArray | None:
    """Return the best fixed action for the means of the whole horizon, if play cannot change it."""
    if block.best is not None or block.environment.adaptive:
        return block.best
    if world.unit_means is not None:
        return best_units(block.actions, world.unit_means)
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
