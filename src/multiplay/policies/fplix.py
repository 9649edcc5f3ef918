"""Follow the perturbed leader: an adversarial policy that needs only the oracle."""

import math
from dataclasses import dataclass

import numpy as np

from multiplay._support.checks import integer_setting, is_number
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.policies.base import Play, Policy, PolicyCost
from multiplay.policies.missing import report_counts, report_weights
from multiplay.posteriors.averages import count, predicted
from multiplay.random import Rng, Streams
from multiplay.types import Arrays, BoolArray, FloatArray, IntArray

FIRST_BATCH = 4
BATCH = 1 << 15  # most random numbers of one trial at a time


@dataclass(frozen=True)
class FPLIX(Policy):
    r"""Follow the leader under random bonuses, and resample to learn how likely each arm was.

    Each round, with :math:`Z_i` exponential of mean 1,

    .. math::

        a &= \operatorname*{arg\,min}_{a \in \mathcal{A}} \langle a, \eta \hat{L} - Z \rangle, \\
        \hat{L}_i &\leftarrow \hat{L}_i + k_i K_i \quad \text{where } a_i \ge 1, \\
        \eta &= \gamma = \sqrt{\frac{1 + \ln d}{d + \sum_i \hat{L}_i}}.

    1. a is played; rewards have the arg max of :math:`\langle a, \eta \hat{L} + Z \rangle`;
    2. step 1 is repeated with fresh Z; :math:`K_i` is the number of repetitions until arm i is
       played again, or until a coin of its own with probability :math:`\gamma` falls, and ``cap``
       at most;
    3. :math:`k_i` is the average of the :math:`a_i` losses seen;
    4. :math:`\eta` and :math:`\gamma` are the rates of the next round.

    With :math:`q_i` the probability of :math:`a_i \ge 1`, :math:`K_i` is geometric (resampling),
    and its mean is :math:`1 / p_i` with :math:`p_i = q_i + (1 - q_i) \gamma` (implicit
    exploration), or :math:`(1 - (1 - p_i)^{\text{cap}}) / p_i` with the cap. So :math:`\hat{L}`
    estimates losses a little too low, at least on what is rarely played, at a bounded variance, and
    no probability is ever computed. About d repetitions are made in a round.

    :math:`\hat{L}_i` is the loss of *one unit* of arm i, whatever :math:`a_i` was: more than one
    unit makes :math:`k_i` a better estimate of it, and is not weighted.
    (:math:`a_i / \mathbb{E}[a_i]` would be another unbiased weight, but resampling gives the
    inverse of a probability, not that of a mean.) As always, units of an arm must be exchangeable.
    Where some were not seen, :math:`k_i` becomes :math:`b_i + g_i (k_i - b_i)`, with the average
    :math:`k_i` of those seen, :math:`g_i` the units seen divided by those expected to be seen
    (docs/mathematics.md), and what is believed of the arm, :math:`b_i = (1/2 + S_i) / (1 + N_i)`,
    with :math:`S_i` the sum of its :math:`N_i` samples.

    The rate in step 4 follows the losses, in the manner of the paper, whose perturbations are
    truncated as well, for the proof; here they are not. The guarantee is for losses: with rewards,
    estimates that are too low no longer favour what is rarely played. The objective must be linear;
    known costs of actions (``Model``) count :math:`\eta t` times in step 1.

    Parameters
    ----------
    eta
        A fixed rate :math:`\eta` instead of step 4's, positive.
    gamma
        A fixed probability :math:`\gamma` of the coins in [0, 1]; the rate, and 1 at most, if not
        given.
    cap
        Most repetitions in a round.

    References
    ----------
    Neu: First-order regret bounds for combinatorial semi-bandits, COLT 2015.
    Kocak, Neu, Valko, Munos: Efficient learning by implicit exploration in bandit problems with
    side observations, NIPS 2014, for FPL-IX and its coins.
    Neu, Bartok: Importance Weighting Without Importance Weights, JMLR 2016, for resampling.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import FPLIX, Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), FPLIX(), seed=0)
    >>> sum(learner.ask().plan.values())
    10

    The rate falls as estimated losses add up:

    >>> [FPLIX().rate({"L": np.full((1, 6), lost)}).round(2).item() for lost in (0.0, 10.0, 1000.0)]
    [0.68, 0.21, 0.02]
    """

    does = "Plays the plan that is best after random bonuses, and assumes nothing about results."
    cost = PolicyCost(oracle="often in update", capped=("cap",))
    needs_linear = True
    uses_known = True
    changing = True
    partial = True
    absorbs = True

    eta: float | None = None
    gamma: float | None = None
    cap: int = 1000

    def __post_init__(self) -> None:
        if self.eta is not None and not (is_number(self.eta) and 0 < self.eta < math.inf):
            hint = "Leave it out for a rate that adapts to the losses."
            raise InvalidInput("eta", "a positive rate", repr(self.eta), hint)
        if self.gamma is not None and not (is_number(self.gamma) and 0 <= self.gamma <= 1):
            hint = "Leave it out for the learning rate eta."
            raise InvalidInput("gamma", "a probability in [0, 1]", repr(self.gamma), hint)
        integer_setting(self, "cap", "Leave it out for 1000.")

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        r"""Return the state :math:`\hat{L} = 0`, without samples."""
        zeros = {name: np.zeros((trials, actions.d)) for name in ("L", "count", "sum")}
        t = np.ones(trials, dtype=np.int64)
        return {"t": t, **zeros, **report_counts(trials, actions.d)}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Choose by step 1."""
        eta = self.rate(state, actions)
        costs = actions.sign * eta[:, None] * state["L"]
        if actions.offset is not None:
            costs += actions.sign * (eta * state["t"])[:, None] * actions.offset
        bonus = exponential(rng.random(costs.shape))
        memo = {"costs": costs, "eta": eta}
        if actions.extra:
            memo["known"] = eta * state["t"]
        return Play(_leader(actions, costs - bonus, memo), memo)

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Learn by steps 2 and 3, with the costs and the rate that the action was chosen with."""
        eta = play.memo["eta"]
        gamma = np.minimum(eta, 1.0) if self.gamma is None else np.full(len(eta), self.gamma)
        played, mean = feedback.count >= 1, feedback.mean
        g, b = report_weights(state, feedback), predicted(state)
        mean = np.where(g == 1, mean, b + g * (mean - b))
        K = self.repetitions(actions, play.memo, gamma, played, rng)
        state["L"] += np.where(played, mean * K, 0.0)
        state["t"] += 1
        if len(actions.closed):
            state["L"][:, actions.closed] += predicted(state)[:, actions.closed]
        count(state, feedback)

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Count the samples: they estimate the loss of an arm while it cannot be played."""
        count(state, feedback)

    def believed(self, state: Arrays) -> FloatArray:
        """Return :math:`(1/2 + S_i) / (1 + N_i)`."""
        return predicted(state)

    def absent(self, state: Arrays, rounds: int, offset: FloatArray | float) -> None:
        r"""Add the believed losses to :math:`\hat{L}`; the offset is counted by the rounds."""
        state["L"] += rounds * self.believed(state)

    def rate(self, state: Arrays, actions: ActionSet | None = None) -> FloatArray:
        r"""Return :math:`\eta` of every trial: step 4, over the arms that can be played."""
        L = state["L"]
        if actions is not None and len(actions.closed):
            L = np.where(actions.n > 0, L, 0.0)
        trials, d = L.shape
        if self.eta is not None:
            return np.full(trials, float(self.eta))
        eta: FloatArray = np.sqrt((1 + math.log(d)) / (d + L.sum(axis=1)))
        return eta

    def repetitions(
        self, actions: ActionSet, memo: Arrays, gamma: FloatArray, wanted: BoolArray, rng: Rng
    ) -> IntArray:
        """Return K for the given trials: those not done repeat step 1, in growing batches."""
        costs = memo["costs"]
        K = np.full(costs.shape, self.cap)
        stream = _fork(rng, len(costs))
        missing, done, batch = wanted.copy(), 0, FIRST_BATCH
        rows = np.flatnonzero(missing.any(axis=1))
        while len(rows) > 0 and done < self.cap:
            batch = min(batch, max(1, BATCH // (2 * actions.d)), self.cap - done)
            some = Streams(stream.state[rows])
            bonus, coin = some.random((len(rows), 2, batch, actions.d)).swapaxes(0, 1)
            stream.state[rows] = some.state
            again = _leader(actions, costs[rows, None, :] - exponential(bonus), memo, rows) >= 1
            again |= coin < gamma[rows, None, None]
            found = missing[rows] & again.any(axis=1)
            K[rows] = np.where(found, done + 1 + again.argmax(axis=1), K[rows])
            missing[rows] &= ~found
            rows = rows[missing[rows].any(axis=1)]
            done, batch = done + batch, 2 * batch
        return K


def _leader(
    actions: ActionSet, costs: FloatArray, memo: Arrays, rows: IntArray | None = None
) -> IntArray:
    """Return the action of the least <a, costs> + known h(a), ``known`` being that of the memo.

    It is also that of the least <a, costs / known> + h(a).
    """
    if not actions.extra:
        return actions.argmin(costs)
    weight = memo["known"] if rows is None else memo["known"][rows]
    means = actions.sign * costs / weight.reshape(-1, *[1] * (costs.ndim - 1))
    return actions.best(means if actions.offset is None else means - actions.offset)


def exponential(uniform: FloatArray) -> FloatArray:
    """Return exponential numbers of mean 1 from uniform ones on [0, 1)."""
    numbers: FloatArray = -np.log1p(-uniform)
    return numbers


def _fork(rng: Rng, trials: int) -> Streams:
    """Return new streams, seeded by four numbers of each old one.

    One trial may read further than another: from ``rng`` itself that would move all of them.
    """
    stream = Streams(rng.random((trials, 4)) * 2.0**53)
    stream.random((trials, 12))  # SFC64 mixes its seed in 12 steps
    return stream
