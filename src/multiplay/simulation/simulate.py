"""Playing policies against an environment, for many rounds and trials."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path

import numpy as np

from multiplay._support.atomic_files import as_path, missing_folders, taken_back_if_refused
from multiplay._support.checks import check_instance, positive_integer, whole_numbers
from multiplay._support.serialization import describe
from multiplay.actions import ActionSet, Changing
from multiplay.environments import Environment
from multiplay.errors import InvalidInput
from multiplay.policies import Policy
from multiplay.policies.base import check_fits
from multiplay.random import POLICY, Streams
from multiplay.results.measured import EACH_ROUND, FIXED, QUANTITIES, RIVALS, Measured
from multiplay.results.result import Result
from multiplay.simulation.block import Block, look_ahead, play
from multiplay.simulation.executors import processes, progress_bars, run_blocks
from multiplay.simulation.pool import MOST_JOBS
from multiplay.simulation.scheduling import LARGEST_BLOCK, effort, sizes_of_blocks
from multiplay.simulation.store import Store
from multiplay.storage import Storage
from multiplay.storage.folder import FIRST_RECORD
from multiplay.types import BoolArray, IntArray
from multiplay.version import __version__

RECORDED = 1000  # rounds kept by default
MOST_RECORDED = MOST_TRIALS = 10_000_000  # each makes arrays of this length


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
    store: str | Path | Storage | None = None,
    resume: bool = False,
    title: str = "",
    against: str | None = None,
) -> Result:
    r"""Play every policy for ``horizon`` rounds in ``trials`` independent trials.

    With :math:`\ell(s)` the means of the losses of round s, and :math:`a(s)` the action that was
    played, the regret of a policy after t rounds of a trial is

    .. math::

        R(t) = \sum_{s=1}^{t} \langle a(s) - a^*, \ell(s) \rangle, \qquad
        a^* = \operatorname*{arg\,min}_{a \in \mathcal{A}}
            \sum_{s=1}^{T} \langle a, \ell(s) \rangle,

    where :math:`a^*` is the best fixed action for the means of the whole horizon T. For rewards it
    is the reward lost, with the other sign and the largest sum. With ``against="each round"`` it is
    not fixed, but the best action for the means of each round:

    .. math::

        a^*(s) = \operatorname*{arg\,min}_{a \in \mathcal{A}_s} \langle a, \ell(s) \rangle,

    or of the least ``actions.value``, where that is not linear.

    In one trial all policies meet the same losses; trial k is the same whatever the number of
    trials, jobs or machines.

    Parameters
    ----------
    actions, environment
        What may be played, and where losses come from.
    policies
        The policies to compare, by the names they shall have in tables and figures.
    horizon, trials, seed
        Rounds in a trial, number of trials, and the one number that everything is drawn from.
    jobs
        Number of processes. In a script, more than one wants ``if __name__ == "__main__":``. They
        are kept for the next call.
    executor
        Any ``concurrent.futures.Executor`` to run on, instead of local processes; ``jobs`` then
        says into how many pieces the trials of a policy are cut.
    record
        The rounds to keep, or how many of them; about 1000, evenly spaced, if not given.
    block
        Trials that are played together, the most that is lost when a run is killed; as many as make
        rounds cheap if not given. The numbers are the same with any.
    store
        A folder that keeps finished blocks until the run is complete, or a ``Storage``.
    resume
        Go on with the run that ``store`` holds: only what is missing is computed.
    title
        What to write above figures, and in reports.
    against
        What regret is measured against: "fixed", the best fixed action for the means of all rounds,
        or "each round", the best action of each round. The second shows how well a policy follows
        losses that drift, and is the only one for sets that change (``Changing``). An objective
        that is not linear has a best fixed action only where the means stay the same; the best
        action of each round is known in all environments.

    Returns
    -------
    Result
        The regret of every policy, trial and recorded round, and what else was measured.

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
    horizon = positive_integer("horizon", horizon, "Give a positive integer.")
    actions = actions.over(horizon)
    usual = usual_rival(actions)
    against = checked_rival(usual if against is None else against, actions, environment)
    trials = positive_integer("trials", trials, "Give a positive integer.", MOST_TRIALS)
    jobs = positive_integer(
        "jobs", jobs, "Give a positive integer; 1 runs everything in this process.", MOST_JOBS
    )
    if block is not None:
        positive_integer("block", block, "Give a positive integer, or leave it out.")
    if resume and store is None:
        raise InvalidInput(
            "store",
            "the folder of the run to resume",
            "none",
            "Give the folder of the run as store.",
        )
    if executor is not None and (isinstance(executor, type) or not hasattr(executor, "submit")):
        raise InvalidInput(
            "executor",
            "a concurrent.futures.Executor",
            repr(executor),
            "Give an executor, or leave it out.",
        )
    rounds = recorded_rounds(horizon, record)
    environment.check(actions, horizon, trials)
    marks = {int(at): str(text) for at, text in environment.marks(horizon).items()}
    Streams.spawn(seed, POLICY, [0])  # refuses a bad seed now, not in a worker
    for policy in policies.values():
        check_fits(policy, actions, horizon, environment.shows_units(actions))
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
            **({} if against == usual else {"against": against}),
        }
    )
    books = Books(len(policies), trials, actions.d, len(rounds))
    made = (
        []
        if store is None or isinstance(store, Storage)
        else missing_folders(as_path("store", store))
    )
    kept = None if store is None else Store(store, configuration, resume)
    for finished in kept.blocks() if kept else ():
        books.enter(*finished)

    players = list(policies.values())
    size = block or min(LARGEST_BLOCK, -(-trials // jobs))
    sizes = [size] * len(players)
    if block is None and executor is None:
        sizes = sizes_of_blocks(actions, players, trials, jobs)
    work = [(k, some) for k in range(len(players)) for some in books.missing(k, sizes[k])]
    with (
        taken_back_if_refused(made, FIRST_RECORD),
        processes(jobs, executor, len(work)) as workers,
        progress_bars(list(policies), [k for k, _ in work], horizon) as advance,
    ):
        best: IntArray | None = None
        if against == FIXED and work and _means_are_luck(actions, environment, horizon, seed):
            best = np.zeros((trials, actions.d), dtype=np.int64)
            ahead = partial(look_ahead, actions, environment, horizon, seed)
            ranges = books.missing_anywhere(size)
            for place, found in run_blocks(ahead, ranges, workers, lambda *_: None, horizon):
                best[ranges[place]] = found
        blocks = [
            Block(actions, environment, players[k], horizon, some, seed, rounds, known, against)
            for k, some in work
            for known in [_rows(best, some)]
        ]
        for place, measured in run_blocks(play, blocks, workers, advance, horizon, _effort):
            finished = *work[place], measured
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
        against=against,
        title=title,
        marks=marks,
    )


class Books:
    """The results of all blocks, filled as they finish: a large run is held once, not twice."""

    def __init__(self, policies: int, trials: int, d: int, rounds: int) -> None:
        sizes = {"round": rounds, "arm": d}
        try:
            self.measured: Measured = {
                name: np.empty((policies, trials, *(sizes[dim] for dim in quantity.dims)))
                for name, quantity in QUANTITIES.items()
            }
        except MemoryError as error:
            raise InvalidInput(
                "trials, record",
                "numbers that fit into the memory",
                f"{trials} trials with {rounds} recorded rounds ({error})",
                "Run fewer trials, or record fewer rounds.",
            ) from None
        self.done = np.zeros((policies, trials), dtype=bool)

    def enter(self, policy: int, trials: range, measured: Measured) -> None:
        """Enter a block."""
        for name, whole in self.measured.items():
            whole[policy, trials] = measured[name]
        self.done[policy, trials] = True

    def missing(self, policy: int, size: int) -> list[range]:
        """Return the trials that are still to be played, in ranges of at most this size."""
        return _ranges(~self.done[policy], size)

    def missing_anywhere(self, size: int) -> list[range]:
        """Return the trials that some policy is still to play."""
        done: BoolArray = np.logical_and.reduce(self.done)
        return _ranges(~done, size)


def _ranges(wanted: BoolArray, size: int) -> list[range]:
    """Return the places that are wanted, in ranges of at most this size."""
    ranges, places = [], np.flatnonzero(wanted)
    while len(places):
        together = places == places[0] + np.arange(len(places))
        length = min(size, int(np.argmin(np.append(together, False))))
        ranges.append(range(int(places[0]), int(places[0]) + length))
        places = places[length:]
    return ranges


def _means_are_luck(actions: ActionSet, environment: Environment, horizon: int, seed: int) -> bool:
    """Say whether the sum of the means is known at the end only, though play cannot change it.

    Then the best fixed action is found once for all policies, before they play.
    """
    if environment.adaptive:
        return False
    return environment.open(actions, horizon, range(1), seed).total_means is None


def _effort(block: Block) -> float:
    return effort(block.actions, block.policy, len(block.trials))


def _rows(best: IntArray | None, trials: range) -> IntArray | None:
    return None if best is None else best[trials.start : trials.stop]


def recorded_rounds(horizon: int, record: int | Sequence[int] | None) -> IntArray:
    """Return the rounds to record, the last one among them."""
    if record is None or isinstance(record, int | np.integer):
        count = (
            RECORDED
            if record is None
            else positive_integer(
                "record", record, "Give a positive integer; the last round is always kept."
            )
        )
        count = positive_integer("record", min(count, horizon), "", MOST_RECORDED)
        even = np.round(np.linspace(horizon / count, horizon, count)).astype(np.int64)
        return even[np.diff(even, prepend=0) > 0]  # as np.unique, for what is sorted
    rounds = np.unique(whole_numbers("record", record))
    if np.ndim(record) != 1 or len(rounds) == 0 or rounds[0] < 1 or rounds[-1] > horizon:
        raise InvalidInput(
            "record",
            f"rounds from 1 to {horizon}",
            repr(record),
            "Give round numbers of at least 1.",
        )
    return np.union1d(rounds, [horizon])


def _check(actions: ActionSet, environment: Environment, policies: object) -> None:
    check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
    check_instance("environment", environment, Environment, "Stochastic(Uniform(0, 2 * means))")
    named = isinstance(policies, Mapping) and all(isinstance(name, str) for name in policies)
    if not isinstance(policies, Mapping) or not policies or not named:
        raise InvalidInput(
            "policies", "policies by name", repr(policies), 'Write {"GenCTS": GenCTS()}, say.'
        )
    for name, policy in policies.items():
        example = policy.__name__ if isinstance(policy, type) else "GenCTS"
        check_instance(f"policies[{name!r}]", policy, Policy, f"{example}()")


def usual_rival(actions: ActionSet) -> str:
    """Return what regret is against if nobody says; sets that change have no fixed action."""
    return EACH_ROUND if isinstance(actions, Changing) else FIXED


def checked_rival(against: object, actions: ActionSet, environment: Environment) -> str:
    """Return what regret is measured against, or say why that makes no sense here."""
    if not isinstance(against, str) or against not in RIVALS:
        raise InvalidInput(
            "against",
            "'fixed' (the best fixed action) or 'each round' (the best action of each round)",
            repr(against),
            "Leave it out for the usual one.",
        )
    if against == FIXED and isinstance(actions, Changing):
        raise InvalidInput(
            "against",
            f"'each round', for {actions!r} has no action that is in the sets of all rounds",
            repr(against),
            "Leave it out.",
        )
    if against == FIXED and not actions.linear and not environment.stationary:
        raise InvalidInput(
            "environment",
            f"one whose means stay the same, for {actions!r}, which is not linear",
            type(environment).__name__,
            "Use Stochastic, for otherwise no single mean tells which fixed action was the best; "
            'or measure against the best action of each round, against="each round".',
        )
    return against
