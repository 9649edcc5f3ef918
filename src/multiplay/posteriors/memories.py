"""Memories: which of the reports of an arm count, for any posterior."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from multiplay._support.checks import integer_setting, is_number
from multiplay.beliefs.restart import Restart, restart_hypotheses
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback, arm_totals
from multiplay.kernels import change, persistence
from multiplay.kernels.hypotheses import (
    H_MEAN,
    H_N,
    HYPOTHESES,
    LENGTH,
    MARKS,
    MOVED,
    SETTLED,
    START,
    WEIGHT,
    new_hypotheses,
)
from multiplay.kernels.moments import COLUMNS, N
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray, IntArray

LONGEST = 10**6  # rounds of a window: the state keeps all of them
MOMENTS = "moments"  # the state: nine numbers for each arm, see multiplay.kernels.moments
FILTERS, TRACES, GAPS = PERSISTENCE = "filters", "traces", "gaps"  # of ``Persists``; gaps: shared
LATE = "filters_before", "last_reports"  # of ``Persists``: where late reports are put in order
ROUND = "round"  # in the memo of a play: the round to which its report belongs
COMMON = "common"  # two that all arms share, if a learner's beliefs read the state: ``common_of``


class Sums(Protocol):
    """What each memory calls of a posterior."""

    def empty(self, trials: int, d: int) -> Arrays:
        """Return the sums of arms of which nothing is known."""

    def add(self, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Add the losses of a round, or of an external plan."""

    def reset(self, state: Arrays, restart: Restart) -> None:
        """Compute the sums of some arms again."""


class Memory:
    """Which reports count. Two events change it: rounds pass, and a report is learned.

    The base class keeps all reports. ``of`` is the posterior, whose methods change its sums in the
    state.

    Attributes
    ----------
    calls : tuple of strings
        The methods of a posterior that it needs.
    forgets : bool
        Whether ``forget`` changes anything.
    follows : bool
        Whether the state has hypotheses in place of the sums of the posterior.
    says : str
        A sentence for readers of plans.
    """

    calls: ClassVar[tuple[str, ...]] = ()
    forgets: ClassVar[bool] = False
    follows: ClassVar[bool] = False
    says: ClassVar[str] = ""

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The discount, 1 if there is none, and the number of rounds that count at most."""
        return 1.0, math.inf

    @property
    def remembered(self) -> float:
        """The number of rounds that count: those of a window, or 1 / (1 - discount)."""
        discount, window = self.limits
        return window if discount == 1.0 else 1.0 / (1.0 - discount)

    def start(self, of: Sums, trials: int, d: int) -> Arrays:
        """Return the state of a posterior before the first round."""
        return of.empty(trials, d)

    def forget(self, of: Any, state: Arrays, rounds: int) -> None:
        """Let rounds pass, before the losses of the last one are learned; t does not change."""

    def learn(self, of: Sums, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Learn the losses of the last round, or of an external plan."""
        of.add(state, feedback, rng)

    def restart(self, of: Sums, state: Arrays, restart: Restart) -> None:
        """Let only the reports of a restart count of its arms."""
        of.reset(state, restart)


@dataclass(frozen=True)
class Keep(Memory):
    """All reports count alike.

    Examples
    --------
    >>> from multiplay import Bound, Averages, Composed, Keep
    >>> Composed(Averages(Keep()), Bound(0.3))
    Composed(posterior=Averages(), rule=Bound(alpha=0.3))
    """


@dataclass(frozen=True)
class Discount(Memory):
    r"""Old reports count less: a report of k rounds ago counts :math:`\gamma^k`.

    In every round told, the sums of all arms are multiplied by :math:`\gamma` before the losses of
    the round are added. External plans let no round pass.

    Parameters
    ----------
    discount
        :math:`\gamma`, in (0, 1): 0.99 remembers about 100 rounds.

    References
    ----------
    Garivier, Moulines: On Upper-Confidence Bound Policies for Switching Bandit Problems, ALT 2011.
    Raj, Kalyani: Taming Non-stationary Bandits: A Bayesian Approach, 2017.

    Examples
    --------
    >>> from multiplay import Discount, GenCTS
    >>> GenCTS(memory=Discount(0.95)).posterior == GenCTS(discount=0.95).posterior
    True
    """

    calls = ("fade",)
    forgets = True
    says = "Old results count less."

    discount: float

    def __post_init__(self) -> None:
        if not (is_number(self.discount) and 0 < self.discount < 1):
            raise InvalidInput(
                "discount",
                "a number between 0 and 1",
                repr(self.discount),
                "Give 0.99 to remember about 100 rounds, or leave it out to forget nothing.",
            )

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The discount; no window."""
        return float(self.discount), math.inf

    def forget(self, of: Any, state: Arrays, rounds: int) -> None:
        """Let the sums fade."""
        of.fade(state, self.discount**rounds)


@dataclass(frozen=True)
class Window(Memory):
    """Only the reports of the last rounds count.

    The state keeps what every round added, ``recent_...`` or ``kept``, (trials, d, W, ...): round t
    in slot (t - 1) mod W, where t is the round to be reported. External plans are added to
    the last round reported.

    Parameters
    ----------
    window
        W, the number of rounds told that count.

    References
    ----------
    Garivier, Moulines: On Upper-Confidence Bound Policies for Switching Bandit Problems, ALT 2011.
    Trovo, Paladino, Restelli, Gatti: Sliding-Window Thompson Sampling for Non-Stationary Settings,
    JAIR 2020.

    Examples
    --------
    >>> from multiplay import CombUCB, Window
    >>> CombUCB(memory=Window(30)).posterior == CombUCB(window=30).posterior
    True
    """

    calls = ("room", "put", "drop")
    forgets = True
    says = "Only the last results count."

    window: int

    def __post_init__(self) -> None:
        hint = "Give the number of rounds to remember, or leave it out to forget nothing."
        integer_setting(self, "window", hint, LONGEST)

    @cached_property
    def limits(self) -> tuple[float, float]:
        """No discount; the window."""
        return 1.0, float(self.window)

    def start(self, of: Any, trials: int, d: int) -> Arrays:
        """Return the sums, and room for what each round of the window adds."""
        t = np.ones(trials, dtype=np.int64)
        room: Arrays = of.room(trials, d, self.window)
        sums: Arrays = of.empty(trials, d)
        return sums | {"t": t} | room

    def forget(self, of: Any, state: Arrays, rounds: int) -> None:
        """Drop the rounds that leave the window."""
        t = state["t"]
        if rounds:
            of.drop(state, [(t - 1 + k) % self.window for k in range(min(rounds, self.window))])

    def learn(self, of: Any, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Put the losses in the slot of the last round."""
        of.put(state, (state["t"] - 2) % self.window, feedback, rng)


@dataclass(frozen=True)
class Changes(Memory):
    r"""An arm whose losses changed forgets what it was told before, by itself.

    Each arm keeps up to 16 hypotheses "the same mean since round s", weighed by how well they
    foresaw each report, where a unit counts as :math:`1/\varphi` coins and :math:`\varphi`, the
    noise, is learned. The oldest is dropped when its weight falls below 0.001. A change that most
    arms share, by a factor or by a difference, moves idle arms as well. The hypotheses are the same
    for every posterior, which makes its sums from the units and the mean of one of them: a draw
    picks one by its weight; bounds and means take the one that a change of weight 0.95 leaves.

    ``Moments`` also lets idle arms move, as far as others were seen to; other posteriors do not.

    References
    ----------
    Adams, MacKay: Bayesian Online Changepoint Detection, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import Bernoulli, Changes, Corrupted, GenCTS, Transport, simulate
    >>> plans, means = Transport([1, 4, 5], [4, 6]), np.array([0.1, 0.4, 0.2, 0.3, 0.3, 0.2])
    >>> world = Corrupted(Bernoulli(means), Bernoulli(1 - means), at=200)
    >>> policies = {"all": GenCTS(), "changes": GenCTS(memory=Changes())}
    >>> simulate(plans, world, policies, horizon=500, trials=5).ranked
    ['changes', 'all']
    """

    calls: ClassVar[tuple[str, ...]] = ("counts",)
    follows = True
    says = "It follows changes."

    def start(self, of: Sums, trials: int, d: int) -> Arrays:
        """Return moments of 0, and arms without a hypothesis."""
        moments = np.zeros((trials, d, COLUMNS))
        t = np.ones(trials, dtype=np.int64)
        return {MOMENTS: moments, "t": t, **new_hypotheses(trials, d)}

    def learn(self, of: Sums, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Weigh the hypotheses by the report of each arm, and add it to them."""
        follow(state, summaries(state, feedback))

    def restart(self, of: Sums, state: Arrays, restart: Restart) -> None:
        """Drop the hypotheses that begin before the round, or all of them for one."""
        hypotheses, _, marks, snaps = (state[name] for name in HYPOTHESES)
        for one in zip(state[MOMENTS], hypotheses, marks, snaps, strict=True):
            restart_hypotheses(*one, restart, offset=1)  # t is that of the next round


@dataclass(frozen=True)
class Persists(Changes):
    r"""Losses that persist: a lane that was dear yesterday is dear today, and less so in a week.

    The average of a report of arm i in round t is

    .. math::

        y = \mu_i + x_{it} + \text{noise}, \qquad
        x_{i,t+1} = \rho\, x_{it} + \mathcal{N}\bigl(0, (1 - \rho^2)\, v\, \sigma_i^2\bigr),

    with the learned noise :math:`\sigma_i^2`. There are 17 pairs :math:`(\rho, v)`; "nothing
    persists"; and ``Changes``. All reports of all arms weigh these models by how well each
    foresaw them. What is believed of an arm is its mean in the next round: it returns to the mean
    of the arm while the arm is idle.

    Where a model that persists is drawn by its weight, an arm counts as its mean in the next round
    less one standard deviation, for rewards plus; else as with ``Changes``. See docs/persists.md.

    Examples
    --------
    >>> from multiplay import Learner, Persists, PooledCTS, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), PooledCTS(memory=Persists()))
    >>> sum(learner.ask().plan.values())
    10
    """

    calls = ("persist",)
    says = "It follows changes, and losses that persist for some rounds."

    def start(self, of: Sums, trials: int, d: int) -> Arrays:
        """Return the state of ``Changes``, and filters of no report."""
        return super().start(of, trials, d) | self.filters(trials, d)

    @staticmethod
    def filters(trials: int, *arms: int) -> Arrays:
        """Return filters of no report, for each arm, or for each unit of each arm."""
        kept = persistence.KEPT_REPORTS + 1, persistence.REPORT
        shapes = {
            FILTERS: (persistence.ROWS, persistence.FILTER),
            TRACES: (persistence.TRACE,),
            LATE[0]: (persistence.JUMPS, persistence.FILTER),
            LATE[1]: kept,
        }
        found = {name: np.zeros((trials, *arms, *shape)) for name, shape in shapes.items()}
        return found | {GAPS: np.zeros((trials, persistence.OCTAVES, 2))}

    def learn(
        self,
        of: Any,
        state: Arrays,
        feedback: Feedback,
        rng: Rng,
        rounds: IntArray | None = None,
    ) -> None:
        """Learn the report of each arm; hypotheses come last, for they forecast it too.

        ``rounds`` are those to which the report belongs, the last one if not given.
        """
        at = state["t"] if rounds is None else rounds
        filters, traces, gaps, before, last = (state[name] for name in (*PERSISTENCE, *LATE))
        if of.by_unit:  # each unit is an arm here, without hypotheses
            of.add(state, feedback, rng)
            filters, traces, before, last = map(_flat, (filters, traces, before, last))
            hypotheses, marks = (np.zeros((*traces.shape[:2], *n)) for n in ((0, 1), (MARKS,)))
            reports = of.unit_reports(state, feedback)
        else:
            hypotheses, marks = state["hypotheses"], state["marks"]
            reports = summaries(state, feedback)
        own = filters, traces, gaps, before, last
        persistence.learn(*own, hypotheses, marks, at, reports)
        if not of.by_unit:
            super().learn(of, state, feedback, rng)

    def restart(self, of: Sums, state: Arrays, restart: Restart) -> None:
        """Let each arm begin with one report, the average of what counts."""
        super().restart(of, state, restart)
        arrays = state[FILTERS], state[LATE[0]], state[TRACES]
        for trial in zip(*arrays, strict=True):
            persistence.begin_again(*trial, restart.places, restart.sums)


def _flat(of_units: FloatArray) -> FloatArray:
    """Return a view in which each unit of each arm is an arm."""
    return of_units.reshape(len(of_units), -1, *of_units.shape[3:])


def follow(state: Arrays, reports: FloatArray) -> None:
    """Weigh the hypotheses of a state by the report of each arm, and add it to them."""
    hypotheses, noises, marks, snaps = (state[name] for name in HYPOTHESES)
    arrays = hypotheses, noises, marks, snaps, state["t"]
    change.learn(state[MOMENTS], common_of(state), *arrays, reports)


def summaries(state: Arrays, feedback: Feedback) -> FloatArray:
    """Return the report of each arm, (trials, d, 5), for a state that has moments."""
    arm_totals(feedback, state[MOMENTS][:, :, N])
    return feedback.reports


def common_of(state: Arrays) -> FloatArray:
    """Return the sums that arms share, (trials, 2), which only beliefs read: new ones if none."""
    return state[COMMON] if COMMON in state else np.zeros((len(state[MOMENTS]), 2))


def picked(state: Arrays, mass: FloatArray, by_mean: bool = False) -> tuple[FloatArray, FloatArray]:
    """Return units and mean of the hypothesis of each arm up to which weights exceed ``mass``.

    ``mass`` is in [0, 1), of shape (trials, d) or (trials, 1). Hypotheses are ordered by their
    beginnings, or by their means.
    """
    hypotheses, length = state["hypotheses"], state["marks"][:, :, LENGTH].astype(np.int64)
    weights, own = hypotheses[:, :, :, WEIGHT], hypotheses[:, :, :, H_MEAN]
    if by_mean:
        used = np.arange(weights.shape[2]) < length[:, :, None]
        order = np.where(used, own, np.inf).argsort(axis=2, kind="stable")
        weights = np.take_along_axis(weights, order, axis=2)
    below = (weights.cumsum(axis=2) <= mass[:, :, None]).sum(axis=2)
    at = np.minimum(below, np.maximum(length - 1, 0))
    if by_mean:
        at = np.take_along_axis(order, at[:, :, None], axis=2)[:, :, 0]
    return _units_and_mean(hypotheses, at)


def settled(state: Arrays) -> tuple[FloatArray, FloatArray]:
    """Return units and mean of each arm since its last change, if that is sure enough."""
    hypotheses = state["hypotheses"]
    weights, starts = hypotheses[:, :, :, WEIGHT], hypotheses[:, :, :, START]
    heaviest = weights.argmax(axis=2)
    begins = np.take_along_axis(starts, heaviest[:, :, None], axis=2)
    sure = np.where(starts >= begins - MOVED, weights, 0.0).sum(axis=2)
    return _units_and_mean(hypotheses, np.where(sure >= SETTLED, heaviest, 0))


def _units_and_mean(hypotheses: FloatArray, at: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return units and mean of one hypothesis of each arm; 0 for an arm without any."""
    found = np.take_along_axis(hypotheses, at[:, :, None, None], axis=2)[:, :, 0]
    return found[:, :, H_N], found[:, :, H_MEAN]
