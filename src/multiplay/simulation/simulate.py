"""The function ``simulate``: policies played in an environment, for many rounds and trials."""

import secrets
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from multiplay._support.atomic_files import as_path, missing_folders, taken_back_if_refused
from multiplay._support.checks import (
    EXACT,
    check_instance,
    is_integer,
    is_list,
    is_number,
    positive_integer,
    shortened,
    whole_numbers,
)
from multiplay._support.serialization import describe
from multiplay._support.suggestions import PYTHON_SUGGESTS, with_suggestions
from multiplay.actions import ActionSet, TimeVarying
from multiplay.environments import Environment
from multiplay.errors import InvalidInput
from multiplay.policies import Policy
from multiplay.policies.base import check_fits
from multiplay.random import POLICY, Streams
from multiplay.results.measured import COMPARATORS, EACH_ROUND, FIXED, QUANTITIES, Measured
from multiplay.results.result import Result
from multiplay.simulation.block import Block, look_ahead, play
from multiplay.simulation.executors import (
    MOST_JOBS,
    available_cores,
    processes,
    progress_bars,
    run_blocks,
)
from multiplay.simulation.scheduling import LARGEST_BLOCK, effort, sizes_of_blocks
from multiplay.simulation.store import Checkpoints, stored_seed
from multiplay.storage import Storage
from multiplay.storage.folder import FIRST_RECORD
from multiplay.types import BoolArray, IntArray
from multiplay.version import __version__

RECORDED = 1000  # rounds kept by default
MOST_RECORDED = MOST_TRIALS = 10_000_000  # each makes arrays of this length
EQUAL = 1e-9  # expected losses that differ by less are equal


@with_suggestions
def simulate(
    actions: ActionSet,
    environment: Environment,
    policies: Mapping[str, Policy] | Sequence[Policy],
    horizon: float,
    trials: float,
    seed: int | None = 0,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    record: int | Sequence[int] | None = None,
    block: int | None = None,
    store: str | Path | Storage | None = None,
    resume: bool = False,
    title: str = "",
    against: str | None = None,
    delay: int | Sequence[int] = 0,
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

    In one trial all policies get the same losses; trial k is the same for any number of trials,
    jobs or machines.

    Parameters
    ----------
    actions, environment
        The set of actions, and the source of the losses.
    policies
        The policies to compare, by their names in tables and figures. The policies of a list are
        named by their ``repr``, such as ``"GenCTS()"``.
    horizon, trials
        Rounds in a trial, and number of trials; ``1e4`` is accepted for 10,000.
    seed
        The seed of all random numbers. With None a random seed is drawn; the result records it, as
        ``result.configuration["seed"]``.
    jobs
        Number of processes; -1 for one on each core. A script that uses more than one must call
        ``simulate`` under ``if __name__ == "__main__":``. They are kept for the next call.
    executor
        Any ``concurrent.futures.Executor`` to run on, instead of local processes; ``jobs`` is then
        the number of blocks into which the trials of a policy are divided.
    record
        The rounds to keep, or their number; about 1000, evenly spaced, if not given.
    block
        Trials that are played together: the most that is lost when a run is killed. Chosen for
        speed if not given. The results do not depend on it.
    store
        A folder that keeps finished blocks until the run is complete, or a ``Storage``.
    resume
        Continue the run in ``store``: only missing blocks are computed.
    title
        The title of figures and reports.
    against
        The comparator of the regret: "fixed", the best fixed action for the means of all rounds, or
        "each round", the best action of each round. The second measures how well a policy tracks
        non-stationary losses. It is the default with features (``Contextual``), and the only one
        for changing sets (``TimeVarying``). A nonlinear objective has a best fixed action only
        where the means stay the same; the best action of each round is defined in all environments.
    delay
        Late feedback: how many rounds later the losses of a round are told. A list has the delays
        of rounds 1, 2, ... and repeats, the same in all trials. Losses that would be told after the
        last round are never told; the regret counts all rounds.

    Returns
    -------
    Result
        The regret of every policy, trial and recorded round, and further measurements.

    Warns
    -----
    UserWarning
        If all actions have the same expected loss, so that the regret of every policy is 0.

    Examples
    --------
    >>> from multiplay import Bernoulli, GenCTS, Stochastic, Transport, simulate
    >>> plans = Transport(supply=[1, 1], demand=[1, 1])
    >>> result = simulate(plans, Stochastic(Bernoulli([0.1, 0.9, 0.9, 0.1])),
    ...                   {"GenCTS": GenCTS()}, horizon=200, trials=4, seed=0)
    >>> bool(result.regret.sel(policy="GenCTS", round=200).mean() < 40)
    True
    """
    by_name = _by_name(policies)
    _check(actions, environment, by_name)
    horizon = positive_integer("horizon", horizon, "Give a positive integer.")
    actions = actions.over(horizon)
    usual = usual_comparator(actions, environment)
    against = checked_comparator(usual if against is None else against, actions, environment)
    trials = positive_integer("trials", trials, "Give a positive integer.", MOST_TRIALS)
    jobs = positive_integer(
        "jobs",
        available_cores() if jobs == -1 else jobs,
        "Give a positive integer, or -1 for all cores; 1 runs everything in this process.",
        MOST_JOBS,
    )
    if block is not None:
        block = positive_integer("block", block, "Give a positive integer, or leave it out.")
    if resume and store is None:
        raise InvalidInput(
            "store",
            "the folder of the run to resume",
            "no folder",
            "Give the folder of the run as store.",
        )
    if executor is not None and (isinstance(executor, type) or not hasattr(executor, "submit")):
        raise InvalidInput(
            "executor",
            "a concurrent.futures.Executor",
            repr(executor),
            "Give an executor, or leave it out.",
        )
    rounds, delays = recorded_rounds(horizon, record), checked_delay(delay)
    environment.check(actions, horizon, trials)
    marks = {int(at): str(text) for at, text in environment.marks(horizon).items()}
    if seed is None:
        seed = stored_seed(store) if resume and store is not None else None
        seed = secrets.randbelow(EXACT) if seed is None else seed
    Streams.spawn(seed, POLICY, [0])  # refuses a bad seed now, not in a worker
    for policy in by_name.values():
        check_fits(policy, actions, horizon, environment.shows_units(actions))
    configuration = describe(
        {
            "multiplay": __version__,
            "actions": actions,
            "environment": environment,
            "policies": by_name,
            "horizon": horizon,
            "trials": trials,
            "seed": seed,
            "rounds": rounds,
            **({} if against == usual else {"against": against}),
            **({"delay": delay} if any(delays) else {}),
        }
    )
    collected = CollectedBlocks(len(by_name), trials, actions.d, len(rounds))
    made = (
        []
        if store is None or isinstance(store, Storage)
        else missing_folders(as_path("store", store))
    )
    kept = None if store is None else Checkpoints(store, configuration, resume)
    for finished in kept.blocks() if kept else ():
        collected.enter(*finished)

    players = list(by_name.values())
    size = block or min(LARGEST_BLOCK, -(-trials // jobs))
    sizes = [size] * len(players)
    if block is None and executor is None:
        sizes = sizes_of_blocks(actions, players, trials, jobs)
    work = [(k, some) for k in range(len(players)) for some in collected.missing(k, sizes[k])]
    with (
        taken_back_if_refused(made, FIRST_RECORD),
        processes(jobs, executor, len(work)) as workers,
        progress_bars(list(by_name), [k for k, _ in work], horizon) as advance,
    ):
        best: IntArray | None = None
        if against == FIXED and work and _has_random_means(actions, environment, horizon, seed):
            best = np.zeros((trials, actions.d), dtype=np.int64)
            ahead = partial(look_ahead, actions, environment, horizon, seed)
            ranges = collected.missing_anywhere(size)
            for place, found in run_blocks(ahead, ranges, workers, lambda *_: None, horizon):
                best[ranges[place]] = found
        blocks = [
            Block(
                actions,
                environment,
                players[k],
                horizon,
                some,
                seed,
                rounds,
                _rows(best, some),
                against,
                delays,
            )
            for k, some in work
        ]
        for place, measured in run_blocks(play, blocks, workers, advance, horizon, _effort):
            finished = *work[place], measured
            if kept:
                kept.keep(*finished)
            collected.enter(*finished)
    _warn_if_actions_are_equal(actions, environment, horizon, trials, seed, collected.measured)
    return Result.from_arrays(
        names=list(by_name),
        arms=actions.names,
        rounds=rounds,
        measured=collected.measured,
        configuration=configuration,
        sense=actions.sense,
        against=against,
        title=title,
        marks=marks,
    )


class CollectedBlocks:
    """The measurements of all blocks in one array each, filled as blocks finish."""

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
                "arrays that fit into memory",
                f"{trials} trials with {rounds} recorded rounds ({error})",
                "Run fewer trials, or record fewer rounds.",
            ) from None
        self.done = np.zeros((policies, trials), dtype=bool)

    def enter(self, policy: int, trials: range, measured: Measured) -> None:
        """Copy the measurements of a finished block."""
        for name, whole in self.measured.items():
            whole[policy, trials] = measured[name]
        self.done[policy, trials] = True

    def missing(self, policy: int, size: int) -> list[range]:
        """Return the trials that this policy has not played, in ranges of at most this size."""
        return _ranges(~self.done[policy], size)

    def missing_anywhere(self, size: int) -> list[range]:
        """Return the trials that some policy has not played."""
        done: BoolArray = np.logical_and.reduce(self.done)
        return _ranges(~done, size)


def _ranges(wanted: BoolArray, size: int) -> list[range]:
    """Return the positions of True, in ranges of at most this size."""
    ranges, places = [], np.flatnonzero(wanted)
    while len(places):
        together = places == places[0] + np.arange(len(places))
        length = min(size, int(np.argmin(np.append(together, False))))
        ranges.append(range(int(places[0]), int(places[0]) + length))
        places = places[length:]
    return ranges


def _has_random_means(
    actions: ActionSet, environment: Environment, horizon: int, seed: int
) -> bool:
    """Return whether the means are random but independent of the actions.

    Then their sum is known at the end only, and the best fixed action is computed once for all
    policies, before they play.
    """
    if environment.adaptive:
        return False
    return environment.open(actions, horizon, range(1), seed).total_means is None


def _effort(block: Block) -> float:
    return effort(block.actions, block.policy, len(block.trials))


def _rows(best: IntArray | None, trials: range) -> IntArray | None:
    return None if best is None else best[trials.start : trials.stop]


def recorded_rounds(horizon: int, record: float | Sequence[int] | None) -> IntArray:
    """Return the rounds to record, the last one among them."""
    if record is None or is_number(record):
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
            "policies",
            "policies by name, or a list of policies",
            repr(policies),
            'Write {"GenCTS": GenCTS()} or [GenCTS()], for example.',
        )
    for name, policy in policies.items():
        example = policy.__name__ if isinstance(policy, type) else "GenCTS"
        check_instance(f"policies[{name!r}]", policy, Policy, f"{example}()")


def _by_name(policies: Any) -> Any:
    """Return the policies of a list by their ``repr``; anything else as it is."""
    if not is_list(policies):
        return policies
    names = [repr(policy) for policy in policies]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidInput(
            "policies",
            "a list of different policies",
            f"{twice[0]} {names.count(twice[0])} times",
            'Name them: {"first": ..., "second": ...}.',
        )
    return dict(zip(names, policies, strict=True))


def _warn_if_actions_are_equal(
    actions: ActionSet,
    environment: Environment,
    horizon: int,
    trials: int,
    seed: int,
    measured: Measured,
) -> None:
    """Warn if every action has the same expected loss, so that there is nothing to learn."""
    stationary = environment.stationary and not environment.adaptive
    if not stationary or not actions.linear or isinstance(actions, TimeVarying):
        return
    if np.abs(measured["regret"]).max() > EQUAL * horizon:
        return
    world = environment.open(actions, horizon, range(trials), seed)
    total = world.total_means
    if total is None or world.unit_means is not None:
        return
    losses = total / horizon + (0.0 if actions.offset is None else actions.offset)
    ends = [(actions.argmin(sign * losses) * losses).sum(axis=1) for sign in (1, -1)]
    if np.abs(ends[0] - ends[1]).max() <= EQUAL:
        name = "loss" if actions.sense == "min" else "reward"
        warnings.warn(
            f"all actions of {actions!r} have the same expected {name} in this environment, so the "
            "regret of every policy is 0. Check the means of the arms, or use a different set.",
            stacklevel=3 if PYTHON_SUGGESTS else 4,  # the call of ``simulate``
        )


def checked_delay(delay: object) -> tuple[int, ...]:
    """Return the delays of the first rounds, which repeat, after checking them."""
    delays = tuple(delay) if isinstance(delay, list | tuple | np.ndarray) else (delay,)
    hint = "Use delay=3, for example, or a list such as [0, 0, 3]."
    if not delays or not all(is_integer(one) and 0 <= one <= EXACT for one in delays):
        expected = "whole numbers of rounds, 0 or more"
        raise InvalidInput("delay", expected, shortened(repr(delay)), hint)
    return tuple(map(int, delays))


def usual_comparator(actions: ActionSet, environment: Environment) -> str:
    """Return the default comparator; sets that change have no fixed action."""
    changes = isinstance(actions, TimeVarying) or environment.contextual
    return EACH_ROUND if changes else FIXED


def checked_comparator(against: object, actions: ActionSet, environment: Environment) -> str:
    """Return the comparator of the regret, or raise ``InvalidInput`` if it is not defined here."""
    if not isinstance(against, str) or against not in COMPARATORS:
        raise InvalidInput(
            "against",
            "'fixed' (the best fixed action) or 'each round' (the best action of each round)",
            repr(against),
            "Leave it out for the default.",
        )
    if against == FIXED and isinstance(actions, TimeVarying):
        raise InvalidInput(
            "against",
            f"'each round', since the set changes and {actions!r} has no fixed action",
            repr(against),
            "Leave it out.",
        )
    if against == FIXED and not actions.affine and not environment.stationary:
        raise InvalidInput(
            "environment",
            f"one whose means stay the same, since {actions!r} is not linear",
            type(environment).__name__,
            "Use Stochastic, or measure against the best action of each round with "
            'against="each round": a nonlinear set has no best fixed action for changing means.',
        )
    return against
