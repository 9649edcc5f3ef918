"""Cost of a policy in time and memory, and its growth with the size of the set."""

import time
import tracemalloc
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import numpy as np

from multiplay._support.serialization import settings
from multiplay.actions import ActionSet, Transport
from multiplay.environments.base import Slots, few_enough
from multiplay.experiments import paper
from multiplay.feedback import Feedback
from multiplay.policies import Policy
from multiplay.policies.base import check_fits, shown
from multiplay.random import POLICY, Streams
from multiplay.types import IntArray

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
LONGEST = 0.4  # seconds of processor time; the first size that takes longer is the last
ROUNDS, TOGETHER = 20, 10  # rounds and trials that are timed
UNDISTURBED = 0.25  # quantile of their times: others may have been slowed by other programs
FEW_ROUNDS = 5  # for memory: it is all there by then


class Growth(NamedTuple):
    """The cost of a policy on the paper's transport, supplies and demands times ``SIZES``.

    Units in an action, actions in the set, µs for each trial and round, bytes of one trial.
    """

    units: list[int]
    actions: list[int]
    time: list[float]
    memory: list[int]


def memory(policy: Policy, actions: ActionSet, horizon: int) -> int:
    """Return the most bytes that a policy needs at once, for one trial of a few rounds.

    What it keeps with the set (copies, lists, facets) counts: the set is built anew. What kernels
    allocate while they run, and the losses themselves, do not.
    """
    losses = Losses(actions, trials=1)
    play(policy, _anew(actions), horizon, losses, FEW_ROUNDS)  # compiles, and imports
    tracemalloc.start()
    try:
        play(policy, _anew(actions), horizon, losses, FEW_ROUNDS)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def growth(policy: Policy, sizes: Sequence[int] = SIZES, longest: float = LONGEST) -> Growth:
    """Measure time and memory on larger and larger sets, as far as it is quick and accepted."""
    found = Growth([], [], [], [])
    with suppress(Exception):  # a set that it refuses, or cannot play: what was measured stays
        memory(policy, _transport(sizes[0]), paper.HORIZON)  # compiles
        for size in sizes:
            started = time.process_time()
            _measure(policy, _transport(size), found)
            if time.process_time() - started > longest:
                break
    found.actions.extend(map(_number_of_plans, sizes[: len(found.units)]))
    return found


def _measure(policy: Policy, actions: Transport, found: Growth) -> None:
    """Enter the cost on one set."""
    check_fits(policy, actions, paper.HORIZON, few_enough(actions.n))
    needed = memory(policy, actions, paper.HORIZON)
    seconds = play(policy, actions, paper.HORIZON, Losses(actions, TOGETHER), ROUNDS)
    found.units.append(actions.M)
    found.time.append(1e6 * float(np.quantile(seconds, UNDISTURBED)) / TOGETHER)
    found.memory.append(needed)


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope of log value against log size over the larger half of the sizes.

    Small sets say little about growth: there is a constant beside it. One size has no slope.

    Examples
    --------
    >>> round(exponent([1, 2, 4, 8], [7, 12, 48, 192]), 9)
    2.0
    """
    if len(sizes) < 2 or min(values) <= 0:  # some clocks tick slowly
        return float("nan")
    large = (len(sizes) - 1) // 2
    return float(np.polyfit(np.log(sizes[large:]), np.log(values[large:]), 1)[0])


class Losses:
    """Losses that are drawn before anything is measured, the same in every round."""

    def __init__(self, actions: ActionSet, trials: int) -> None:
        rng, self.slots = np.random.default_rng(0), Slots(actions.n)
        self.units = rng.random((trials, len(self.slots.owner)))
        self.means = np.full((trials, actions.d), 0.5)

    def seen(self, policy: Policy, action: IntArray) -> Feedback:
        """Return the least that a policy learns from: reading more costs time of its own."""
        everything = self.slots.feedback(self.units, action, self.means)
        if policy.learns_from == "units":
            return everything
        return shown(policy, Feedback(everything.count, everything.total))


def play(
    policy: Policy, actions: ActionSet, horizon: int, losses: Losses, rounds: int
) -> list[float]:
    """Return the seconds of processor time that a policy itself takes for each of some rounds."""
    trials, seconds = len(losses.units), []
    state = policy.start(actions, horizon, trials)
    rng = Streams.spawn(0, POLICY, range(trials))
    for _ in range(min(rounds, horizon)):
        started = time.process_time()
        chosen = policy.choose(actions, state, rng)
        waiting = time.process_time()
        feedback = losses.seen(policy, chosen.action)
        told = time.process_time()
        policy.update(actions, state, chosen, feedback, rng)
        seconds.append(time.process_time() - told + waiting - started)
    return seconds


def _transport(times: int) -> Transport:
    return Transport(times * paper.PLANS.supply, times * paper.PLANS.demand)


@cache
def _number_of_plans(times: int) -> int:
    return len(_transport(times).enumerate())


def _anew(actions: ActionSet) -> ActionSet:
    """Return the same set, without anything that it remembers."""
    return type(actions)(**settings(actions))
