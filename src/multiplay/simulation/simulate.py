"""Playing policies against an environment, for many rounds and trials."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from multiplay.actions import ActionSet
from multiplay.arrays import (
    FloatArray,
    IntArray,
    check_instance,
    positive_integer,
    whole_numbers,
)
from multiplay.config import to_plain
from multiplay.environments import Environment
from multiplay.errors import InvalidInput
from multiplay.policies import Policy
from multiplay.simulation.results import Result
from multiplay.simulation.workers import progress_bar, run_blocks
from multiplay.streams import POLICY, Streams

RECORDED = 1000  # rounds kept by default
LARGEST_BLOCK = 250  # trials; more do not make a round cheaper, and blocks bound the memory


class Block(NamedTuple):
    """The unit of work: some trials of one policy. Its numbers depend on nothing else."""

    actions: ActionSet
    environment: Environment
    policy: Policy
    horizon: int
    trials: range
    seed: int
    rounds: IntArray


class Played(NamedTuple):
    """What a block gives back: regret (trials, recorded rounds), and seconds (trials,)."""

    regret: FloatArray
    seconds: FloatArray


def simulate(
    actions: ActionSet,
    environment: Environment,
    policies: Mapping[str, Policy],
    horizon: int,
    trials: int,
    seed: int = 0,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    record: int | Sequence[int] | None = None,
) -> Result:
    """Play every policy for ``horizon`` rounds in ``trials`` independent trials.

    The regret of a trial after t rounds is sum_{s <= t} <a(s) - a*, means(s)>, where a* is the best
    fixed action for the means of the whole horizon; for rewards it is the reward lost,
    sum_{s <= t} <a* - a(s), means(s)>. In one trial all policies meet the same losses;
    trial k is the same whatever the number of trials, jobs or machines.

    Parameters
    ----------
    actions, environment
        What may be played, and where losses come from.
    policies
        The policies to compare, by the names they shall have in tables and figures.
    horizon, trials, seed
        Rounds in a trial, number of trials, and the one number that everything is drawn from.
    jobs
        Number of processes. In a script, more than one wants ``if __name__ == "__main__":``.
    executor
        Any ``concurrent.futures.Executor`` to run on, instead of local processes; ``jobs`` then
        says into how many pieces the trials of a policy are cut.
    record
        The rounds to keep, or how many of them; about 1000, evenly spaced, if not given.

    Examples
    --------
    >>> from multiplay import Bernoulli, GenCTS, Stochastic, Transport, simulate
    >>> plans = Transport(supply=[1, 1], demand=[1, 1])
    >>> result = simulate(plans, Stochastic(Bernoulli([0.1, 0.9, 0.9, 0.1])),
    ...                   {"GenCTS": GenCTS()}, horizon=200, trials=4, seed=0)
    >>> bool(result.regret.sel(policy="GenCTS", round=200).mean() < 40)
    True
    """
    _check(actions, environment, policies)
    horizon = positive_integer("horizon", horizon, "Play at least one round.")
    trials = positive_integer("trials", trials, "Run at least one trial.")
    jobs = positive_integer("jobs", jobs, "One job runs in this process.")
    if executor is not None and (isinstance(executor, type) or not hasattr(executor, "submit")):
        raise InvalidInput(
            "executor", "a concurrent.futures.Executor", repr(executor), "Or leave it out."
        )
    rounds = recorded_rounds(horizon, record)
    environment.check(actions, horizon, trials)
    Streams.spawn(seed, POLICY, [0])  # refuses a bad seed now, not in a worker
    for policy in policies.values():
        policy.start(actions, horizon, 1)
    configuration = to_plain(
        {
            "actions": actions,
            "environment": environment,
            "policies": policies,
            "horizon": horizon,
            "trials": trials,
            "seed": seed,
        }
    )

    size = min(LARGEST_BLOCK, -(-trials // jobs))
    blocks = [
        Block(actions, environment, policy, horizon, range(k, min(k + size, trials)), seed, rounds)
        for policy in policies.values()
        for k in range(0, trials, size)
    ]
    # filled as blocks finish: the results of a large run are held once, not twice
    regret = np.empty((len(policies), trials, len(rounds)))
    seconds = np.empty((len(policies), trials))
    with progress_bar(len(blocks) * horizon) as advance:
        for number, played in run_blocks(play, blocks, jobs, executor, advance, horizon):
            place = number * len(policies) // len(blocks), blocks[number].trials
            regret[place], seconds[place] = played
    return Result.from_arrays(
        names=list(policies),
        rounds=rounds,
        regret=regret,
        seconds=seconds,
        corruption=environment.corruption(actions, horizon, trials),
        sense=actions.sense,
        configuration=configuration,
    )


def play(block: Block, advance: Callable[[int], None] = lambda rounds: None) -> Played:
    """Play one block, round by round; ``advance`` hears of finished rounds now and then."""
    actions, environment, policy, horizon, trials, seed, rounds = block
    rng = Streams.spawn(seed, POLICY, trials)
    world = environment.open(actions, horizon, trials, seed)
    total = world.total_means
    means = None if total is None else total / horizon
    regret = Regret(actions, means, rounds, len(trials))
    started = time.perf_counter()
    state = policy.start(actions, horizon, len(trials))
    stride = max(1, horizon // 100)
    for t in range(1, horizon + 1):
        chosen = policy.choose(actions, state, rng)
        if t == 1 or t in regret.rounds:
            _check_play(policy, actions, chosen.action, len(trials), t)
        feedback = world.observe(chosen.action)
        policy.update(actions, state, chosen, feedback, rng)
        regret.add(t, chosen.action, world.means)
        if t % stride == 0:
            advance(stride)
    seconds = (time.perf_counter() - started) / len(trials)
    curves = regret.finished()
    if not np.isfinite(curves).all():
        raise ArithmeticError(f"the regret of {policy!r} is not finite: mend the policy")
    return Played(curves, np.full(len(trials), seconds))


class Regret:
    """Pseudo-regret at the recorded rounds, against the best fixed action of the whole horizon.

    Where the means of the horizon are not known beforehand (an adaptive adversary), the best action
    is only known at the end; until then the losses of all arms are kept at the recorded rounds.
    """

    def __init__(
        self, actions: ActionSet, means: FloatArray | None, rounds: IntArray, trials: int
    ) -> None:
        self.actions, self.rounds = actions, set(rounds.tolist())
        self.best = None if means is None else actions.best(means)
        self.now = np.zeros(trials)
        self.recorded: list[FloatArray] = []
        self.means = np.zeros((trials, actions.d))
        self.recorded_means: list[FloatArray] = []

    def add(self, t: int, action: IntArray, means: FloatArray) -> None:
        """Count round t."""
        if self.best is None:
            self.now += self.actions.sign * (action * means).sum(axis=1)
            self.means += means
        else:
            self.now += self.actions.sign * self._above(self.best, action, means)
        if t in self.rounds:
            self.recorded.append(self.now.copy())
            if self.best is None:
                self.recorded_means.append(self.means.copy())

    def _above(self, best: IntArray, action: IntArray, means: FloatArray) -> FloatArray:
        if not self.actions.linear:
            return self.actions.value(action, means) - self.actions.value(best, means)
        above: FloatArray = ((action - best) * means).sum(axis=1)
        return above

    def finished(self) -> FloatArray:
        """Return the regret, shape (trials, recorded rounds)."""
        regret = np.stack(self.recorded, axis=1)
        if self.best is None:
            best = self.actions.best(self.means)[:, None, :]
            recorded_means = np.stack(self.recorded_means, axis=1)
            regret -= self.actions.sign * (best * recorded_means).sum(axis=2)
        return regret


def recorded_rounds(horizon: int, record: int | Sequence[int] | None) -> IntArray:
    """Return the rounds to record, the last one among them."""
    if record is None or isinstance(record, int | np.integer):
        count = (
            RECORDED
            if record is None
            else positive_integer("record", record, "The last round is always kept.")
        )
        count = min(count, horizon)
        return np.unique(np.round(np.linspace(horizon / count, horizon, count)).astype(np.int64))
    rounds = np.unique(whole_numbers("record", record))
    if np.ndim(record) != 1 or len(rounds) == 0 or rounds[0] < 1 or rounds[-1] > horizon:
        raise InvalidInput(
            "record", f"rounds from 1 to {horizon}", repr(record), "Rounds count from 1."
        )
    return np.union1d(rounds, [horizon])


def _check_play(policy: Policy, actions: ActionSet, action: IntArray, trials: int, t: int) -> None:
    """Make sure now and then that a policy plays actions of the set."""
    if action.shape != (trials, actions.d) or not actions.contains(action).all():
        raise ArithmeticError(
            f"{policy!r} played in round {t} what is no action of {actions!r}: mend the policy"
        )


def _check(actions: ActionSet, environment: Environment, policies: object) -> None:
    check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
    check_instance("environment", environment, Environment, "Stochastic(Uniform(0, 2 * means))")
    if not actions.linear and not environment.stationary:
        raise InvalidInput(
            "environment",
            f"one whose means stay the same, for {actions!r}, which is not linear",
            type(environment).__name__,
            "Use Stochastic: otherwise no single mean tells which fixed action was the best.",
        )
    named = isinstance(policies, Mapping) and all(isinstance(name, str) for name in policies)
    if not isinstance(policies, Mapping) or not policies or not named:
        raise InvalidInput(
            "policies", "policies by name", repr(policies), 'Write {"GenCTS": GenCTS()}, say.'
        )
    for name, policy in policies.items():
        example = policy.__name__ if isinstance(policy, type) else "GenCTS"
        check_instance(f"policies[{name!r}]", policy, Policy, f"{example}()")
