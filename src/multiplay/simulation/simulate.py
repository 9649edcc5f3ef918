"""Playing policies against an environment, for many rounds and trials."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from multiplay.actions import ActionSet
from multiplay.checks import check_instance, positive_integer, whole_numbers
from multiplay.environments import Environment, World
from multiplay.errors import InvalidInput
from multiplay.policies import Policy
from multiplay.results.measured import QUANTITIES, Measured
from multiplay.results.result import Result
from multiplay.serialization import describe
from multiplay.simulation.ledger import Ledger
from multiplay.simulation.store import Store
from multiplay.simulation.workers import progress_bars, run_blocks
from multiplay.streams import POLICY, Streams
from multiplay.types import IntArray
from multiplay.version import __version__

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
    block: int | None = None,
    store: str | Path | None = None,
    resume: bool = False,
    title: str = "",
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
    block
        Trials that are played together, the most that is lost when a run is killed; as many as make
        rounds cheap if not given. The numbers are the same with any.
    store
        A folder that keeps finished blocks until the run is complete.
    resume
        Go on with the run that ``store`` holds: only what is missing is computed.
    title
        What to write above figures, and in reports.

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
    if block is not None:
        positive_integer("block", block, "Leave it out for blocks that make rounds cheap.")
    if resume and store is None:
        raise InvalidInput("store", "the folder of the run to resume", "none", "Name it.")
    if executor is not None and (isinstance(executor, type) or not hasattr(executor, "submit")):
        raise InvalidInput(
            "executor", "a concurrent.futures.Executor", repr(executor), "Or leave it out."
        )
    rounds = recorded_rounds(horizon, record)
    environment.check(actions, horizon, trials)
    marks = {int(at): str(text) for at, text in environment.marks(horizon).items()}
    Streams.spawn(seed, POLICY, [0])  # refuses a bad seed now, not in a worker
    for policy in policies.values():
        policy.start(actions, horizon, 1)
    configuration = describe(
        {
            "multiplay": __version__,
            "actions": actions,
            "environment": environment,
            "policies": policies,
            "horizon": horizon,
            "trials": trials,
            "seed": seed,
            "rounds": rounds,
        }
    )
    kept = None if store is None else Store(store, configuration, resume)
    books = Books(len(policies), trials, actions.d, len(rounds))
    for finished in kept.blocks() if kept else ():
        books.enter(*finished)

    size = block or min(LARGEST_BLOCK, -(-trials // jobs))
    work = [
        (number, Block(actions, environment, policy, horizon, some, seed, rounds))
        for number, policy in enumerate(policies.values())
        for some in books.missing(number, size)
    ]
    with progress_bars(list(policies), [number for number, _ in work], horizon) as advance:
        blocks = [one for _, one in work]
        for place, measured in run_blocks(play, blocks, jobs, executor, advance, horizon):
            finished = work[place][0], blocks[place].trials, measured
            if kept:
                kept.keep(*finished)
            books.enter(*finished)
    return Result.from_arrays(
        names=list(policies),
        arms=actions.names,
        rounds=rounds,
        measured=books.measured,
        configuration=configuration,
        sense=actions.sense,
        title=title,
        marks=marks,
    )


class Books:
    """The results of all blocks, filled as they finish: a large run is held once, not twice."""

    def __init__(self, policies: int, trials: int, d: int, rounds: int) -> None:
        sizes = {"round": rounds, "arm": d}
        self.measured: Measured = {
            name: np.empty((policies, trials, *(sizes[dim] for dim in quantity.dims)))
            for name, quantity in QUANTITIES.items()
        }
        self.done = np.zeros((policies, trials), dtype=bool)

    def enter(self, policy: int, trials: range, measured: Measured) -> None:
        """Enter a block."""
        for name, whole in self.measured.items():
            whole[policy, trials] = measured[name]
        self.done[policy, trials] = True

    def missing(self, policy: int, size: int) -> list[range]:
        """Return the trials that are still to be played, in ranges of at most this size."""
        ranges, trials = [], np.flatnonzero(~self.done[policy])
        while len(trials):
            together = trials == trials[0] + np.arange(len(trials))
            length = min(size, int(np.argmin(np.append(together, False))))
            ranges.append(range(int(trials[0]), int(trials[0]) + length))
            trials = trials[length:]
        return ranges


def play(block: Block, advance: Callable[[int], None] = lambda rounds: None) -> Measured:
    """Play one block, round by round; ``advance`` hears of finished rounds now and then."""
    actions, environment, policy, horizon, trials, seed, rounds = block
    rng = Streams.spawn(seed, POLICY, trials)
    world = environment.open(actions, horizon, trials, seed)
    ledger = Ledger(actions, _best_fixed(block, world), rounds, len(trials))
    started = time.perf_counter()
    state = policy.start(actions, horizon, len(trials))
    stride = max(1, horizon // 100)
    for t in range(1, horizon + 1):
        chosen = policy.choose(actions, state, rng)
        if t == 1 or t in ledger.rounds:
            _check_play(policy, actions, chosen.action, len(trials), t)
        feedback = world.observe(chosen.action)
        policy.update(actions, state, chosen, feedback, rng)
        ledger.add(t, chosen.action, feedback, world)
        if t % stride == 0:
            advance(stride)
    measured = ledger.finished(horizon, world.corruption, time.perf_counter() - started)
    if not np.isfinite(measured["regret"]).all():
        raise ArithmeticError(f"the regret of {policy!r} is not finite: mend the policy")
    return measured


def _best_fixed(block: Block, world: World) -> IntArray | None:
    """Return the best fixed action for the means of the whole horizon, if play cannot change it."""
    actions, environment, _, horizon, trials, seed, _ = block
    total, shape = world.total_means, (len(trials), actions.d)
    if total is None and environment.adaptive:
        return None
    if total is None:  # they are a matter of luck: look ahead
        ahead, total = environment.open(actions, horizon, trials, seed), np.zeros(shape)
        idle = np.zeros(shape, dtype=np.int64)
        for _ in range(horizon):
            ahead.observe(idle)
            total += ahead.means
    return actions.best(total / horizon)


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
