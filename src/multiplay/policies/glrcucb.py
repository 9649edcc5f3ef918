"""GLR-CUCB: optimism arm by arm that starts again when the losses of an arm changed."""

import math
from dataclasses import dataclass, field

import numpy as np

from multiplay._support.checks import probability
from multiplay.actions import ActionSet
from multiplay.feedback import Feedback
from multiplay.kernels import drift
from multiplay.policies.base import Play, PolicyCost
from multiplay.policies.index import IndexPolicy, Parts
from multiplay.policies.rules import Bound
from multiplay.posteriors.averages import Averages
from multiplay.posteriors.memories import Memory, Sums
from multiplay.random import Rng
from multiplay.types import Arrays, BoolArray, FloatArray, IntArray

MOST, LEFT, STEP = 128, 96, 1 / 8  # checkpoints of an arm, after thinning, and its largest gap
LIVE = 10_000  # rounds, where no horizon is known


@dataclass(frozen=True, repr=False)
class GLRCUCB(IndexPolicy):
    r"""Play as ``CombUCB``, look at every arm now and then, and forget all after a change.

    For n losses of an arm, of which the first s have the average :math:`\hat{\mu}_{1:s}`, the
    generalised likelihood ratio is

    .. math::

        \operatorname{GLR}(n) = \max_{s < n} \;
            s \operatorname{kl}(\hat{\mu}_{1:s}, \hat{\mu}_{1:n})
            + (n - s) \operatorname{kl}(\hat{\mu}_{s+1:n}, \hat{\mu}_{1:n}),

    with :math:`\operatorname{kl}(x, y) = x \ln \frac{x}{y} + (1 - x) \ln \frac{1 - x}{1 - y}`. When
    :math:`\operatorname{GLR}(n) \ge \beta(n, \delta) = \ln (4 n^{3/2} / \delta)` for an arm that
    was just seen, everything learned is dropped, of all arms, and t = 1 again. Changes of arms that
    are not played are found by forced exploration: of :math:`\lfloor d / p \rfloor` rounds, the
    first d play as many units as possible of arm 1, 2, ..., d, and beside these the best for the
    bounds.

    The regret in T rounds with N stationary parts is
    :math:`O(\sqrt{N d T \ln T})`, for detectable changes and the threshold of the theory, which is
    about twice as high. The test is for losses of 0 and 1, and valid for all in [0, 1]; it does not
    learn how noisy losses are. Splits are tried after rounds only, 128 of each arm at most. Units
    that were not seen count for nothing.

    Parameters
    ----------
    alpha
        As in ``CombUCB``.
    p
        The share of rounds that explore; :math:`\sqrt{\ln T / T}` if not given.
    delta
        :math:`\delta`, the probability of a false alarm; 1 / T if not given. Without a horizon,
        T = 10,000 for both.

    See Also
    --------
    PooledCTS : With ``memory=Changes()``, only the arm that changed forgets.

    References
    ----------
    Zhou, Wang, Varshney, Lim: A Near-Optimal Change-Detection Based Algorithm for
    Piecewise-Stationary Combinatorial Semi-Bandits, AAAI 2020. (There an action with the arm whose
    turn it is is drawn at random. The experiments of the paper were not available to us: ``python
    -m benchmarks.change --only piecewise`` measures how the regret grows with T.)
    Besson, Kaufmann, Maillard, Seznec: Efficient Change-Point Detection for Tackling
    Piecewise-Stationary Bandits, JMLR 2022. (The test and its thresholds.)

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import Bernoulli, CombUCB, Corrupted, GLRCUCB, Transport, simulate
    >>> plans, means = Transport([1, 4, 5], [4, 6]), np.array([0.1, 0.4, 0.2, 0.3, 0.3, 0.2])
    >>> world = Corrupted(Bernoulli(means), Bernoulli(1 - means), at=200)
    >>> policies = {"CombUCB": CombUCB(alpha=0.3), "GLRCUCB": GLRCUCB(alpha=0.3, p=0.01)}
    >>> simulate(plans, world, policies, horizon=800, trials=5).ranked
    ['GLRCUCB', 'CombUCB']
    """

    does = "Plays the plan that may be the best, and starts anew after a change."
    cost = PolicyCost(step=4.0)
    changing = False  # a restart drops the sums of all arms, also of those not in today's set

    alpha: float = 1.5
    p: float | None = field(default=None, kw_only=True)
    delta: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name, default in (("p", "sqrt(ln T / T)"), ("delta", "1 / T")):
            if getattr(self, name) is not None:
                probability(name, getattr(self, name), f"Leave it out for {default}.")
        super().__post_init__()

    def parts(self) -> Parts:
        """Return the bounds of averages that start again."""
        return Parts(Restarted(RestartAll()), Bound(self.alpha))

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state before round 1: no losses, and how often to explore and to restart."""
        T = max(horizon or LIVE, 2)
        p = math.sqrt(math.log(T) / T) if self.p is None else self.p
        delta = 1 / T if self.delta is None else self.delta
        return super().start(actions, horizon, trials) | {
            "period": np.full(trials, max(int(actions.d / p), actions.d)),
            "price": np.full(trials, math.log(4 / delta)),
        }

    def index(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        """Return the bounds; the arm whose turn it is comes before all others."""
        theta = self._theta(actions, state, rng)
        return theta - actions.sign * (1 + actions.M) * self._wanted(actions, state)

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play the best action for the bounds, or one with the arm whose turn it is."""
        bounds, wanted = self._theta(actions, state, rng), self._wanted(actions, state)
        action, early = self._plan(actions, state, bounds).action, wanted.any(axis=1)
        if early.any():
            costs = actions.sign * bounds[early]
            action = action.copy()
            action[early] = actions.argmin(costs - (1 + actions.M) * wanted[early])
        return Play(action)

    def _wanted(self, actions: ActionSet, state: Arrays) -> BoolArray:
        """Return the arm whose turn it is in each trial, if any, (trials, d)."""
        turn = (state["t"] - 1) % state["period"]
        wanted: BoolArray = np.arange(actions.d) == turn[:, None]
        return wanted


@dataclass(frozen=True, repr=False)
class Restarted(Averages):
    """Averages that no restart by hand reaches: the sums of the test do not tell rounds."""

    restarts = False


@dataclass(frozen=True)
class RestartAll(Memory):
    """All reports count, until the likelihood ratio of an arm shows a change: then none does."""

    def start(self, of: Sums, trials: int, d: int) -> Arrays:
        """Return no losses, and room for their checkpoints."""
        shape = trials, d
        return of.empty(trials, d) | {
            "rounds": np.zeros((*shape, MOST), dtype=np.int64),
            "seen": np.zeros((*shape, MOST), dtype=np.int64),
            "total": np.zeros((*shape, MOST)),
            "length": np.zeros(shape, dtype=np.int64),
        }

    def learn(self, of: Sums, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Count every unit; drop everything after a change."""
        of.add(state, feedback, rng)
        rounds, seen, total = (state[n].reshape(-1, MOST) for n in ("rounds", "seen", "total"))
        length, now = state["length"].reshape(-1), state["t"].max(keepdims=True)
        units, losses = feedback.seen.reshape(1, -1), feedback.total.reshape(1, -1)
        drift.add_many(now, np.arange(len(length)), units, losses, rounds, seen, total, length)
        if length.max() == MOST:
            drift.thin(LEFT, STEP, rounds, seen, total, length)
        restart = ((feedback.seen > 0) & changed(state)).any(axis=1)
        if restart.any():
            for name in ("count", "sum", "length"):
                state[name][restart] = 0
            state["t"][restart] = 1


def changed(state: Arrays) -> BoolArray:
    """Return which arms have a likelihood ratio of at least the threshold."""
    seen, total = (state[name].reshape(-1, MOST) for name in ("seen", "total"))
    length = state["length"].reshape(-1)
    split, excess = np.empty_like(length), np.empty(len(length))
    # The ratio less ln(s^2 sqrt(n - s)), which is at most 2.5 ln n: few arms remain.
    drift.clearest_split(12.0, seen, total, length, split, excess)
    n = np.log(np.maximum(state["count"], 1.0))
    threshold = (state["price"][:, None] + 1.5 * n).reshape(-1)
    rows = np.flatnonzero(excess >= threshold - 2.5 * n.reshape(-1))
    found = np.zeros(len(length), dtype=bool)
    if len(rows):
        ratio = likelihood_ratio(seen[rows], total[rows], length[rows])
        found[rows] = ratio >= threshold[rows]
    return found.reshape(state["length"].shape)


def likelihood_ratio(seen: IntArray, total: FloatArray, length: IntArray) -> FloatArray:
    """Return the largest likelihood ratio over the splits at checkpoints, in every row."""
    last = length[:, None] - 1
    n, everything = np.take_along_axis(seen, last, 1), np.take_along_axis(total, last, 1)
    ratio = log_likelihood(total, seen) + log_likelihood(everything - total, n - seen)
    ratio -= log_likelihood(everything, n)
    largest: FloatArray = np.where(np.arange(seen.shape[1]) < last, ratio, 0.0).max(axis=1)
    return largest


def log_likelihood(total: FloatArray, n: IntArray) -> FloatArray:
    """Return the largest log likelihood of n coins with this total; 0 if all are alike."""
    inside = (total > 0) & (total < n)
    share = np.where(inside, total, 1.0) / np.where(inside, n, 2.0)
    log = n * (share * np.log(share) + (1 - share) * np.log(1 - share))
    return np.where(inside, log, 0.0)
